//! Where the bytes of a file are: in memory, or in the file itself, of which a few megabytes are looked at at a time.

use std::fmt;
use std::io;

use crate::frame::{FRAME_HEADER_BYTES, MAX_PAYLOAD_BYTES};

/// A file whose parts are read in any order, by several threads at once.
pub trait RandomAccess: Sync + fmt::Debug {
    /// Its length in bytes.
    fn length(&self) -> u64;
    /// Reads bytes from `offset` on, as many as it likes; none only at the end.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
}

/// Where bytes are.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Source<'a> {
    Memory(&'a [u8]),
    File(&'a dyn RandomAccess),
}

/// Fills a buffer as far as the file goes; how far.
pub(crate) fn fill(file: &dyn RandomAccess, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut filled = 0;
    while let Some(room) = buffer.get_mut(filled..).filter(|room| !room.is_empty()) {
        match file.read_at(room, offset + filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read.min(room.len()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Bytes that a frame may have at most: so many must be in sight unless the file ends before.
const IN_SIGHT: usize = FRAME_HEADER_BYTES + MAX_PAYLOAD_BYTES;
/// Bytes that are read ahead. More than [`IN_SIGHT`], so that what is left over is seldom moved.
const WINDOW: usize = 2 * IN_SIGHT;

/// The part of a file that is in memory.
#[derive(Debug, Default)]
pub(crate) struct Window {
    bytes: Vec<u8>,
    /// Where its first byte is in the file.
    start: u64,
}

impl Window {
    /// Makes sure that enough is in sight from `at` on; whether anything had to be read. What cannot be read is where the file ends.
    pub(crate) fn fill(&mut self, file: &dyn RandomAccess, at: u64, end: &mut u64, error: &mut Option<io::Error>) -> bool {
        let wanted = (*end - at).min(WINDOW as u64) as usize;
        let have = self.from(at).len();
        if have >= wanted.min(IN_SIGHT) {
            return false;
        }
        let kept = self.bytes.len() - have;
        self.bytes.drain(..kept);
        self.start = at;
        self.bytes.resize(wanted, 0);
        let result = fill(file, self.bytes.get_mut(have..).unwrap_or_default(), at + have as u64);
        let read = match result {
            Ok(read) => read,
            Err(failed) => {
                error.get_or_insert(failed);
                0
            }
        };
        self.bytes.truncate(have + read);
        if have + read < wanted {
            *end = at + (have + read) as u64;
        }
        true
    }

    /// What is in memory from `at` on.
    pub(crate) fn from(&self, at: u64) -> &[u8] {
        at.checked_sub(self.start).and_then(|from| self.bytes.get(usize::try_from(from).ok()?..)).unwrap_or_default()
    }
}
