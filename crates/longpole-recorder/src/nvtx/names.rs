//! Domains and registered strings: named once, then meant by a handle.
//!
//! They outlive everything else here, forks included, so they are kept where no lock is needed: a list that only grows, in chunks that
//! are never moved. A handle is a number that is looked up, not an address that is followed: a wrong one finds nothing.

use std::ffi::c_void;
use std::ptr::{self, null_mut};
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

const CHUNK: usize = 1024;
const CHUNKS: usize = 256;

/// The longest name that is kept.
const MOST_BYTES: usize = super::super::queue::MOST_MESSAGE_BYTES;

type Slots = [AtomicPtr<Box<[u8]>>; CHUNK];

/// Names by number, from one on; at most 262,143 of them.
pub(crate) struct Names {
    chunks: [AtomicPtr<Slots>; CHUNKS],
    count: AtomicU32,
    /// The upper half of handles, so that those of one list are not taken for those of another.
    tag: u64,
}

/// Domains. Zero is the default domain, which has no name.
pub(crate) static DOMAINS: Names = Names::new(0x4c50_0001);
/// Registered strings.
pub(crate) static STRINGS: Names = Names::new(0x4c50_0002);

impl Names {
    const fn new(tag: u64) -> Self {
        Self { chunks: [const { AtomicPtr::new(null_mut()) }; CHUNKS], count: AtomicU32::new(1), tag: tag << 32 }
    }

    /// Keeps a name; its handle, or null when there are too many.
    pub(crate) fn add(&self, name: &[u8]) -> *mut c_void {
        let Ok(index) =
            self.count.fetch_update(Ordering::AcqRel, Ordering::Relaxed, |count| ((count as usize) < CHUNK * CHUNKS).then_some(count + 1))
        else {
            return null_mut();
        };
        let name: Box<[u8]> = name.get(..name.len().min(MOST_BYTES)).unwrap_or(name).into();
        if let Some(slot) = self.chunk(index as usize / CHUNK).and_then(|chunk| chunk.get(index as usize % CHUNK)) {
            slot.store(Box::into_raw(Box::new(name)), Ordering::Release);
        }
        ptr::without_provenance_mut((self.tag | u64::from(index)) as usize)
    }

    /// A chunk, made when it is first needed.
    fn chunk(&self, number: usize) -> Option<&'static Slots> {
        let place = self.chunks.get(number)?;
        let mut chunk = place.load(Ordering::Acquire);
        if chunk.is_null() {
            let new: *mut Slots = Box::into_raw(Box::new([const { AtomicPtr::new(null_mut()) }; CHUNK]));
            chunk = match place.compare_exchange(null_mut(), new, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => new,
                Err(other) => {
                    // SAFETY: another thread was first, so nobody has seen this one.
                    drop(unsafe { Box::from_raw(new) });
                    other
                }
            };
        }
        // SAFETY: chunks are made above and never freed.
        Some(unsafe { &*chunk })
    }

    /// The number that a handle stands for; zero for null and for what is no handle.
    pub(crate) fn index(&self, handle: *const c_void) -> u32 {
        let handle = handle.addr() as u64;
        let index = handle as u32;
        if handle & !0xffff_ffff == self.tag && index < self.count.load(Ordering::Acquire) { index } else { 0 }
    }

    /// A name by its number.
    pub(crate) fn get(&self, index: u32) -> Option<&'static [u8]> {
        let chunk = self.chunks.get(index as usize / CHUNK)?.load(Ordering::Acquire);
        if chunk.is_null() {
            return None;
        }
        // SAFETY: chunks are never freed.
        let name = unsafe { &*chunk }.get(index as usize % CHUNK)?.load(Ordering::Acquire);
        // SAFETY: names are never freed.
        (!name.is_null()).then(|| &**unsafe { &*name })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_by_their_handles_only() {
        static NAMES: Names = Names::new(7);
        let handles: Vec<_> = (0..3000).map(|n| NAMES.add(format!("name {n}").as_bytes()).addr()).collect();
        for (n, &handle) in handles.iter().enumerate() {
            let index = NAMES.index(ptr::without_provenance(handle));
            assert_eq!(NAMES.get(index), Some(format!("name {n}").as_bytes()));
        }
        for wrong in [0, 1, 0xdead_beef, handles[0] + 1_000_000, usize::MAX] {
            assert_eq!(NAMES.index(ptr::without_provenance(wrong)), 0, "{wrong:x}");
        }
        assert_eq!((NAMES.get(0), NAMES.get(200_000), NAMES.get(u32::MAX)), (None, None, None));
    }

    #[test]
    fn a_full_list_gives_no_handles() {
        static NAMES: Names = Names::new(8);
        NAMES.count.store((CHUNK * CHUNKS) as u32, Ordering::Relaxed);
        assert!(NAMES.add(b"one too many").is_null());
    }

    #[test]
    fn threads_may_add_at_once() {
        static NAMES: Names = Names::new(9);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                scope.spawn(move || {
                    for n in 0..2000 {
                        let name = format!("{thread}/{n}");
                        let handle = NAMES.add(name.as_bytes());
                        assert_eq!(NAMES.get(NAMES.index(handle)), Some(name.as_bytes()));
                    }
                });
            }
        });
        assert_eq!(NAMES.count.load(Ordering::Relaxed), 8001);
    }
}
