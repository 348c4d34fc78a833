//! The memory that CUPTI writes records into: handed out empty, taken back full, used again.
//!
//! Empty means zero throughout: otherwise CUPTI would clear a buffer itself, on whichever thread of the program happens to need one.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes of a buffer: some 10,000 kernels. Current CUPTIs ask for one for every thread that calls CUDA, so larger ones would cost programs with many
/// threads much memory, and smaller ones are handed over often.
pub(crate) const BUFFER_BYTES: usize = 2 << 20;

/// Full buffers that may wait for the worker (256 MiB). Beyond that records are counted and dropped: the program's memory is not ours to fill.
const MOST_WAITING: usize = 128;

/// Empty buffers that are kept; more are given back.
const MOST_FREE: usize = 16;

/// CUPTI asks for eight bytes; a page spares it from sharing lines with anything of the program's.
const LAYOUT: Layout = match Layout::from_size_align(BUFFER_BYTES, 4096) {
    Ok(layout) => layout,
    Err(_) => panic!("a power of two"),
};

/// A buffer of [`BUFFER_BYTES`].
pub(crate) struct Buffer(*mut u8);

// SAFETY: it is memory that has one owner at a time.
unsafe impl Send for Buffer {}

impl Buffer {
    /// Takes memory from the system.
    pub(crate) fn new() -> Option<Self> {
        // SAFETY: the layout is not empty.
        let address = unsafe { alloc_zeroed(LAYOUT) };
        (!address.is_null()).then_some(Self(address))
    }

    /// The address, for CUPTI, which owns it from here on.
    pub(crate) fn into_address(self) -> *mut u8 {
        self.0
    }

    /// A buffer that CUPTI gives back.
    ///
    /// # Safety
    ///
    /// The address must come from [`Self::into_address`] and be given back once.
    pub(crate) unsafe fn from_address(address: *mut u8) -> Self {
        Self(address)
    }

    pub(crate) fn address(&self) -> *mut u8 {
        self.0
    }

    /// Touches every page, so that the thread that fills it is not held up by the system finding memory for it.
    fn touch(&self) {
        for page in (0..BUFFER_BYTES).step_by(4096) {
            // SAFETY: within the buffer.
            unsafe { self.0.add(page).write_volatile(0) };
        }
    }

    /// Makes it empty again.
    fn clear(&self) {
        // SAFETY: within the buffer, which has one owner.
        unsafe { self.0.write_bytes(0, BUFFER_BYTES) };
    }

    /// Gives the memory back to the system.
    pub(crate) fn release(self) {
        // SAFETY: it was allocated with this layout, and its only owner ends here.
        unsafe { dealloc(self.0, LAYOUT) };
    }
}

/// A buffer with records in it.
pub(crate) struct Full {
    pub(crate) buffer: Buffer,
    pub(crate) valid: usize,
}

/// All buffers of a recorder.
#[derive(Default)]
pub(crate) struct Buffers {
    free: Mutex<Vec<Buffer>>,
    full: Mutex<VecDeque<Full>>,
    taken: AtomicUsize,
    peak: AtomicUsize,
}

/// A panic while a list is held leaves it as it was: every change is one push or one pop.
fn lock<T>(list: &Mutex<T>) -> MutexGuard<'_, T> {
    list.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Buffers {
    /// Gets buffers ready before they are asked for.
    pub(crate) fn prepare(&self, count: usize) {
        for _ in 0..count {
            let Some(buffer) = self.allocate() else { return };
            buffer.touch();
            lock(&self.free).push(buffer);
        }
    }

    fn allocate(&self) -> Option<Buffer> {
        let buffer = Buffer::new()?;
        let taken = self.taken.fetch_add(1, Ordering::Relaxed) + 1;
        self.peak.fetch_max(taken, Ordering::Relaxed);
        Some(buffer)
    }

    /// An empty buffer.
    pub(crate) fn empty(&self) -> Option<Buffer> {
        let known = lock(&self.free).pop();
        known.or_else(|| self.allocate())
    }

    /// Whether so many wait that one more must be dropped.
    pub(crate) fn is_full(&self) -> bool {
        lock(&self.full).len() >= MOST_WAITING
    }

    /// Hands a buffer to the worker.
    pub(crate) fn push(&self, full: Full) {
        lock(&self.full).push_back(full);
    }

    /// The buffer that has waited longest.
    pub(crate) fn pop(&self) -> Option<Full> {
        lock(&self.full).pop_front()
    }

    /// A buffer whose records have been read.
    pub(crate) fn recycle(&self, buffer: Buffer) {
        if lock(&self.free).len() < MOST_FREE {
            buffer.clear();
            lock(&self.free).push(buffer);
            return;
        }
        // A buffer that was handed out before a fork is not in this process's count.
        let _ = self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |taken| Some(taken.saturating_sub(1)));
        buffer.release();
    }

    /// The most memory that was held at a time.
    pub(crate) fn peak_bytes(&self) -> u64 {
        (self.peak.load(Ordering::Relaxed) * BUFFER_BYTES) as u64
    }
}

/// The last resort when the system has no memory left: old CUPTIs crash when they get no buffer.
pub(crate) static RESERVE: Reserve = Reserve { used: AtomicBool::new(false), bytes: ReserveBytes(std::cell::UnsafeCell::new([0; 8192])) };

/// A small buffer that is always there.
pub(crate) struct Reserve {
    used: AtomicBool,
    bytes: ReserveBytes,
}

struct ReserveBytes(std::cell::UnsafeCell<[u64; 8192]>);

// SAFETY: only its address is taken, by the one caller that finds it unused; CUPTI writes there.
unsafe impl Sync for ReserveBytes {}

impl Reserve {
    /// Its address and size, when nobody has it.
    pub(crate) fn take(&self) -> Option<(*mut u8, usize)> {
        (!self.used.swap(true, Ordering::AcqRel)).then(|| (self.address(), size_of::<[u64; 8192]>()))
    }

    fn address(&self) -> *mut u8 {
        self.bytes.0.get().cast()
    }

    /// Takes it back, if this is it.
    pub(crate) fn give_back(&self, address: *mut u8) -> bool {
        let ours = std::ptr::eq(address, self.address());
        if ours {
            // SAFETY: CUPTI has given it back, and nobody can take it before the next line.
            unsafe { self.address().write_bytes(0, size_of::<[u64; 8192]>()) };
            self.used.store(false, Ordering::Release);
        }
        ours
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_and_used_again() {
        let buffers = Buffers::default();
        buffers.prepare(2);
        let first = buffers.empty().unwrap();
        assert_eq!(first.address() as usize % 8, 0);
        let address = first.address();
        // SAFETY: within the buffer.
        unsafe { first.address().write_bytes(0xa5, 24) };
        buffers.push(Full { buffer: first, valid: 24 });
        let full = buffers.pop().unwrap();
        assert_eq!((full.buffer.address(), full.valid), (address, 24));
        buffers.recycle(full.buffer);
        let again = buffers.empty().unwrap();
        assert_eq!(again.address(), address);
        // SAFETY: the buffer is ours and initialised.
        assert!(unsafe { std::slice::from_raw_parts(again.address(), BUFFER_BYTES) }.iter().all(|&byte| byte == 0));
        assert_eq!(buffers.peak_bytes(), 2 * BUFFER_BYTES as u64);
    }

    #[test]
    fn more_than_enough_is_given_back() {
        let buffers = Buffers::default();
        let many: Vec<_> = (0..MOST_FREE + 3).map(|_| buffers.empty().unwrap()).collect();
        for buffer in many {
            buffers.recycle(buffer);
        }
        assert_eq!(lock(&buffers.free).len(), MOST_FREE);
        assert_eq!(buffers.taken.load(Ordering::Relaxed), MOST_FREE);
    }

    #[test]
    fn the_reserve_is_handed_out_once() {
        let (address, size) = RESERVE.take().unwrap();
        assert_eq!((address as usize % 8, size), (0, 65_536));
        assert!(RESERVE.take().is_none());
        assert!(!RESERVE.give_back(std::ptr::null_mut()));
        assert!(RESERVE.give_back(address));
        let again = RESERVE.take().unwrap();
        assert!(RESERVE.give_back(again.0));
    }
}
