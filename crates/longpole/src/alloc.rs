//! The system allocator with a count of live bytes, so that `--stats` can tell the peak; and huge pages for large blocks.
//!
//! Each thread keeps its own balance and adds it to the shared total only when it moved by [`BATCH`], so that the cost is an
//! addition to a thread-local cell. The peak is therefore exact to [`BATCH`] bytes a thread.
//!
//! Blocks of [`large::LARGE`] bytes and more are mapped from Linux directly, at huge-page boundaries, and asked to be huge
//! pages: the columns of a gigabyte trace are a hundred megabytes of fresh memory, and faulting them in 4 KiB at a time was
//! a sixth of the whole run. Growing one moves its pages instead of copying its bytes. Some of what is given up is kept for the next
//! block, since the kernel clears every page it hands out.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicIsize, Ordering};

/// How far a thread's balance may move before it is shared.
const BATCH: isize = 64 * 1024;

static LIVE: AtomicIsize = AtomicIsize::new(0);
static PEAK: AtomicIsize = AtomicIsize::new(0);

thread_local! {
    // A constant without a destructor: using it allocates nothing and works while the thread ends.
    static BALANCE: Cell<isize> = const { Cell::new(0) };
}

/// Counts `change` bytes.
fn add(change: isize) {
    let _ = BALANCE.try_with(|balance| {
        let now = balance.get() + change;
        if now.abs() < BATCH {
            balance.set(now);
            return;
        }
        balance.set(0);
        let live = LIVE.fetch_add(now, Ordering::Relaxed) + now;
        if now > 0 {
            PEAK.fetch_max(live, Ordering::Relaxed);
        }
    });
}

/// The most bytes that were live at once.
pub(crate) fn peak_bytes() -> u64 {
    PEAK.load(Ordering::Relaxed).max(0) as u64
}

#[cfg(target_os = "linux")]
mod large;
#[cfg(target_os = "linux")]
mod spare;

#[cfg(not(target_os = "linux"))]
mod large {
    use std::alloc::Layout;

    pub(super) fn is(_layout: Layout) -> bool {
        false
    }

    pub(super) fn alloc(_size: usize) -> *mut u8 {
        std::ptr::null_mut()
    }

    pub(super) fn alloc_zeroed(_size: usize) -> *mut u8 {
        std::ptr::null_mut()
    }

    pub(super) unsafe fn dealloc(_block: *mut u8, _size: usize) {}

    pub(super) unsafe fn grow(_block: *mut u8, _size: usize, _new_size: usize) -> *mut u8 {
        std::ptr::null_mut()
    }
}

/// The allocator.
pub(crate) struct Counting;

// SAFETY: a block is the system allocator's or a mapping of its own, as its layout says, in every call the same way; counting
// touches no memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let pointer = if large::is(layout) {
            large::alloc(layout.size())
        } else {
            // SAFETY: the caller upholds the contract of `alloc`, which is passed on as it is.
            unsafe { System.alloc(layout) }
        };
        if !pointer.is_null() {
            add(layout.size() as isize);
        }
        pointer
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let pointer = if large::is(layout) {
            large::alloc_zeroed(layout.size())
        } else {
            // SAFETY: the caller upholds the contract of `alloc_zeroed`, which is passed on as it is.
            unsafe { System.alloc_zeroed(layout) }
        };
        if !pointer.is_null() {
            add(layout.size() as isize);
        }
        pointer
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        if large::is(layout) {
            // SAFETY: `alloc` mapped this block, since its layout is the same.
            unsafe { large::dealloc(pointer, layout.size()) };
        } else {
            // SAFETY: the caller upholds the contract of `dealloc`, which is passed on as it is.
            unsafe { System.dealloc(pointer, layout) };
        }
        add(-(layout.size() as isize));
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller guarantees that `new_size`, rounded up to the alignment, does not overflow.
        let new_layout = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
        let moved = match (large::is(layout), large::is(new_layout)) {
            // SAFETY: the caller upholds the contract of `realloc`, which is passed on as it is.
            (false, false) => unsafe { System.realloc(pointer, layout, new_size) },
            // SAFETY: `alloc` mapped this block, since its layout is the same.
            (true, true) => unsafe { large::grow(pointer, layout.size(), new_size) },
            _ => {
                // SAFETY: both blocks hold at least the smaller size and are apart; the old one is given up after the copy.
                return unsafe {
                    let moved = self.alloc(new_layout);
                    if !moved.is_null() {
                        moved.copy_from_nonoverlapping(pointer, layout.size().min(new_size));
                        self.dealloc(pointer, layout);
                    }
                    moved
                };
            }
        };
        if !moved.is_null() {
            add(new_size as isize - layout.size() as isize);
        }
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_outlives_what_caused_it() {
        let before = peak_bytes();
        let block = vec![1_u8; 64 << 20];
        assert!(block.iter().map(|&b| u64::from(b)).sum::<u64>() == 64 << 20);
        drop(block);
        assert!(peak_bytes() >= 64 << 20, "{before} {}", peak_bytes());
        assert!(LIVE.load(Ordering::Relaxed) < 64 << 20);
    }

    /// Through every border: small to large, large to larger, within one mapping, and back.
    #[test]
    fn contents_survive_growing_and_shrinking() {
        let mut numbers: Vec<u64> = Vec::new();
        for n in 0..3_000_000_u64 {
            numbers.push(n * n);
        }
        assert!(numbers.iter().enumerate().all(|(n, square)| *square == (n * n) as u64));
        for keep in [2_000_000, 600_000, 262_144, 262_143, 1_000] {
            numbers.truncate(keep);
            numbers.shrink_to_fit();
            assert!(numbers.iter().enumerate().all(|(n, square)| *square == (n * n) as u64), "{keep}");
        }
        let zeroed = vec![0_u8; 9 << 20];
        assert!(zeroed.iter().all(|b| *b == 0));
    }
}
