//! Mappings that were given up and wait to be used again.
//!
//! A page that comes from the kernel is cleared first, which costs more than most passes over it do afterwards: an analysis
//! that fills and drops a vector of a megabyte pays for the same pages time and again. So a bounded part of what is given up is kept.
//!
//! Any part of a mapping may be unmapped or moved by itself, so a kept one can be cut. Neighbours are not put together again: a block
//! that spans two mappings could not grow.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, Ordering};

/// The most bytes that are kept.
const MOST_BYTES: usize = 64 << 20;
/// The most mappings that are kept.
const MOST: usize = 32;

/// A kept mapping; of no length where there is none.
#[derive(Clone, Copy)]
struct Kept {
    start: *mut u8,
    len: usize,
}

struct Pool {
    taken: AtomicBool,
    kept: UnsafeCell<[Kept; MOST]>,
}

// SAFETY: `kept` is touched only by the thread that has set `taken`, and the mappings in it are nobody's.
unsafe impl Sync for Pool {}

static POOL: Pool = Pool { taken: AtomicBool::new(false), kept: UnsafeCell::new([Kept { start: std::ptr::null_mut(), len: 0 }; MOST]) };

/// Runs `work` on the kept mappings, unless another thread is at them: then the kernel is as quick as waiting would be.
fn with<R>(work: impl FnOnce(&mut [Kept; MOST]) -> R) -> Option<R> {
    if POOL.taken.swap(true, Ordering::Acquire) {
        return None;
    }
    // SAFETY: this thread has set `taken`, which was not set.
    let found = work(unsafe { &mut *POOL.kept.get() });
    POOL.taken.store(false, Ordering::Release);
    Some(found)
}

/// A kept mapping of exactly `len` bytes, cut from the smallest that is long enough. `len` is in whole huge pages. It holds anything.
pub(super) fn take(len: usize) -> Option<*mut u8> {
    with(|kept| {
        let smallest = kept.iter_mut().filter(|kept| kept.len >= len && kept.len > 0).min_by_key(|kept| kept.len)?;
        let start = smallest.start;
        smallest.len -= len;
        // SAFETY: the mapping was at least `len` bytes long; what follows is its rest, or its end.
        smallest.start = unsafe { start.add(len) };
        Some(start)
    })?
}

/// Keeps a mapping that nothing uses any more, if there is room. Otherwise it stays the caller's.
pub(super) fn keep(start: *mut u8, len: usize) -> bool {
    with(|kept| {
        let held: usize = kept.iter().map(|kept| kept.len).sum();
        let place = kept.iter_mut().find(|kept| kept.len == 0).filter(|_| len <= MOST_BYTES.saturating_sub(held));
        place.map(|place| *place = Kept { start, len }).is_some()
    })
    .unwrap_or(false)
}
