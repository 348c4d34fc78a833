//! The system allocator with a count of live bytes, so that `--stats` can tell the peak.
//!
//! Each thread keeps its own balance and adds it to the shared total only when it moved by [`BATCH`], so that the cost is an
//! addition to a thread-local cell. The peak is therefore exact to [`BATCH`] bytes a thread.
//!
//! Large blocks ask Linux for huge pages: the columns of a gigabyte trace are a hundred megabytes of fresh memory, and
//! faulting them in 4 KiB at a time took a sixth of the whole run.

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

/// Blocks from this size on ask for huge pages (2 MiB on x86-64).
#[cfg(target_os = "linux")]
const LARGE: usize = 2 << 20;

/// Asks for huge pages under a large block. Advice only: where it is not taken, nothing changes.
#[cfg(target_os = "linux")]
fn advise(pointer: *mut u8, size: usize) {
    const PAGE: usize = 4096;
    if size < LARGE || pointer.is_null() {
        return;
    }
    // The page that holds the allocator's own header is included: a mapping that begins on a huge page's boundary would
    // lose its first one without it.
    let before = pointer.addr() % PAGE;
    // SAFETY: the range is whole pages of the mapping that a block of this size lies in; this advice changes no contents.
    unsafe { libc::madvise(pointer.sub(before).cast(), (before + size).next_multiple_of(PAGE), libc::MADV_HUGEPAGE) };
}

#[cfg(not(target_os = "linux"))]
fn advise(_pointer: *mut u8, _size: usize) {}

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

/// The allocator.
pub(crate) struct Counting;

// SAFETY: every call is passed on to the system allocator unchanged; counting and advice touch no contents it manages.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller upholds the contract of `alloc`, which is passed on as it is.
        let pointer = unsafe { System.alloc(layout) };
        if !pointer.is_null() {
            add(layout.size() as isize);
            advise(pointer, layout.size());
        }
        pointer
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller upholds the contract of `alloc_zeroed`, which is passed on as it is.
        let pointer = unsafe { System.alloc_zeroed(layout) };
        if !pointer.is_null() {
            add(layout.size() as isize);
            advise(pointer, layout.size());
        }
        pointer
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller upholds the contract of `dealloc`, which is passed on as it is.
        unsafe { System.dealloc(pointer, layout) };
        add(-(layout.size() as isize));
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller upholds the contract of `realloc`, which is passed on as it is.
        let moved = unsafe { System.realloc(pointer, layout, new_size) };
        if !moved.is_null() {
            add(new_size as isize - layout.size() as isize);
            if new_size > layout.size() {
                advise(moved, new_size);
            }
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
}
