//! Blocks that are mapped directly. Whether a block is one follows from its layout alone, so nothing is written down.

use std::alloc::Layout;
use std::ptr;

use super::spare;

/// A huge page on x86-64; elsewhere the advice simply fits fewer pages.
const HUGE: usize = 2 << 20;
/// Blocks from this size on are mapped.
pub(super) const LARGE: usize = HUGE / 4;

pub(super) fn is(layout: Layout) -> bool {
    layout.size() >= LARGE && layout.align() <= 4096
}

fn mapped_len(size: usize) -> Option<usize> {
    size.checked_next_multiple_of(HUGE)
}

/// Reserves address space of `len` bytes at a huge-page boundary, with the given protection.
fn reserve(len: usize, protection: i32) -> Option<*mut u8> {
    let padded = len.checked_add(HUGE)?;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new anonymous mapping at an address the system chooses touches nothing that exists.
    let base = unsafe { libc::mmap(ptr::null_mut(), padded, protection, flags, -1, 0) };
    if base == libc::MAP_FAILED {
        return None;
    }
    let base = base.cast::<u8>();
    let before = base.addr().next_multiple_of(HUGE) - base.addr();
    let after = padded - before - len;
    // SAFETY: both ranges are whole pages at the ends of the mapping just made, which nothing uses yet.
    unsafe {
        let start = base.add(before);
        if before > 0 {
            libc::munmap(base.cast(), before);
        }
        if after > 0 {
            libc::munmap(start.add(len).cast(), after);
        }
        Some(start)
    }
}

/// A new block, with anything in it.
pub(super) fn alloc(size: usize) -> *mut u8 {
    let Some(len) = mapped_len(size) else { return ptr::null_mut() };
    spare::take(len).unwrap_or_else(|| map(len))
}

/// A new block, zeroed.
pub(super) fn alloc_zeroed(size: usize) -> *mut u8 {
    let Some(len) = mapped_len(size) else { return ptr::null_mut() };
    let Some(block) = spare::take(len) else { return map(len) };
    // SAFETY: the block is `len` bytes, which are nobody else's, and `size` is no more. Writing zeros is several times quicker than
    // faulting in pages that the kernel has cleared.
    unsafe { block.write_bytes(0, size) };
    block
}

/// A new mapping, zeroed.
fn map(len: usize) -> *mut u8 {
    let Some(block) = reserve(len, libc::PROT_READ | libc::PROT_WRITE) else { return ptr::null_mut() };
    // SAFETY: advice about the mapping just made; it changes no contents, and where it is refused nothing is lost.
    unsafe { libc::madvise(block.cast(), len, libc::MADV_HUGEPAGE) };
    block
}

/// # Safety
/// `block` came from this module with this size, and nothing uses it any more.
pub(super) unsafe fn dealloc(block: *mut u8, size: usize) {
    if let Some(len) = mapped_len(size)
        && !spare::keep(block, len)
    {
        // SAFETY: the caller gives up the mapping, which is `len` bytes from `block`.
        unsafe { libc::munmap(block.cast(), len) };
    }
}

/// The block with room for `new_size` bytes, its contents kept; null, and the block untouched, when there is no room.
///
/// # Safety
/// `block` came from this module with this size, and is given up for the result.
pub(super) unsafe fn grow(block: *mut u8, size: usize, new_size: usize) -> *mut u8 {
    let (Some(len), Some(new_len)) = (mapped_len(size), mapped_len(new_size)) else { return ptr::null_mut() };
    if new_len == len {
        return block;
    }
    // Moving between huge-page boundaries moves the page tables of whole huge pages.
    let Some(target) = reserve(new_len, libc::PROT_NONE) else { return ptr::null_mut() };
    let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
    // SAFETY: the old mapping is the caller's to move, and the target range was just reserved for it.
    let moved = unsafe { libc::mremap(block.cast(), len, new_len, flags, target.cast::<libc::c_void>()) };
    if moved == libc::MAP_FAILED {
        // SAFETY: the reservation is unused.
        unsafe { libc::munmap(target.cast(), new_len) };
        return ptr::null_mut();
    }
    moved.cast()
}
