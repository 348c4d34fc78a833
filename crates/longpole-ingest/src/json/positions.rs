//! Structural positions of a byte slice, handed out one by one and indexed a window at a time.

use super::structural::{Indexer, Wanted};

/// Bytes indexed at a time: small enough that positions and text stay in the first-level cache.
const WINDOW: usize = 16 * 1024;
/// Position returned at the end of the input.
pub(crate) const END: usize = u32::MAX as usize;

/// A place in a byte slice (under 4 GiB), and the structural positions from there on.
#[derive(Debug)]
pub(super) struct Positions<'a> {
    pub(super) bytes: &'a [u8],
    window: Vec<u32>,
    at: usize,
    indexer: Indexer,
}

impl<'a> Positions<'a> {
    /// Positions from `offset` on, which must lie outside any string. `window` is scratch space to reuse.
    pub(super) fn new(bytes: &'a [u8], offset: usize, wanted: Wanted, window: Vec<u32>) -> Self {
        let mut positions = Self { bytes, window, at: 0, indexer: Indexer::new(wanted) };
        positions.restart(offset);
        positions
    }

    /// The scratch space, for the next one.
    pub(super) fn into_scratch(self) -> Vec<u32> {
        self.window
    }

    /// Starts over at `offset`, which must lie outside any string.
    pub(super) fn restart(&mut self, offset: usize) {
        self.indexer.restart(offset);
        self.window.clear();
        self.at = 0;
    }

    /// Offset of the first byte seen so far that follows a string and may not; `usize::MAX` while there is none.
    #[inline]
    pub(super) fn first_bad(&self) -> usize {
        self.indexer.first_bad()
    }

    /// Takes the next position; [`END`] when there is none.
    #[inline]
    pub(super) fn next(&mut self) -> usize {
        let position = self.peek();
        self.at += 1;
        position
    }

    /// The next position without taking it.
    #[inline]
    pub(super) fn peek(&mut self) -> usize {
        match self.window.get(self.at) {
            Some(&position) => position as usize,
            None => self.refill(),
        }
    }

    /// The next positions, if this window has so many.
    #[inline]
    pub(super) fn upcoming<const N: usize>(&self) -> Option<&[u32; N]> {
        self.window.get(self.at..)?.first_chunk()
    }

    /// Takes positions that [`Positions::upcoming`] told.
    #[inline]
    pub(super) fn take(&mut self, count: usize) {
        self.at += count;
    }

    #[cold]
    #[inline(never)]
    fn refill(&mut self) -> usize {
        loop {
            self.at = 0;
            if !self.indexer.fill(self.bytes, WINDOW, &mut self.window) {
                return END;
            }
            if let Some(&position) = self.window.first() {
                return position as usize;
            }
        }
    }
}
