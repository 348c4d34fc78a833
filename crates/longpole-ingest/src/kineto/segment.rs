//! Cutting an input into segments that begin and end between events.
//!
//! Cuts are made near multiples of [`SEGMENT`] by looking at a few bytes only, so a file can be cut by all workers at once
//! and a stream as it arrives, at the same places: each stretch of that length is cut where its first event begins, or, if
//! none does, at its beginning. So a segment is at most two stretches long, whatever the input. A cut is a guess (the pattern may stand inside a string or a nested
//! list); the merging thread notices a wrong one because the segment before it ends inside an event.

use std::fs::File;
use std::io::{self, Read};
#[cfg(not(unix))]
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_channel::{Receiver, Sender};

use crate::json::strict;

/// Distance between cuts. Small enough for the second-level cache, large enough that a segment's fixed costs vanish.
/// Fuzzing uses small ones, so that small inputs are cut too.
pub(super) const SEGMENT: u64 = if cfg!(fuzzing) { 1500 } else { 512 * 1024 };
/// White space allowed on each side of the comma before an event, and before its first key. Longer gaps are no cut.
const GAP: usize = 256;
/// Bytes read past the next cut at first; enough for a usual event.
const LOOKAHEAD: u64 = 4096;
/// Bytes that must lie behind a candidate, and before it.
const MARGIN: usize = 2 * GAP + 64;

/// The first place at or after `from`, and before `limit`, where an event of an event list begins: a brace after `},`
/// whose first key is one that events have.
pub(super) fn event_start(bytes: &[u8], from: usize, limit: usize) -> Option<usize> {
    brace_where(bytes, from, limit, |at| follows_event(bytes, at) && has_event_key(bytes, at, &KEYS))
}

/// The next event after damage, from `from` on. The event before may lack its brace, so a comma before it will do; and the
/// damaged event's own lists may hold objects that look like events, so it must be whole and have a `ph`, or begin with one
/// (then it may be damaged or cut itself). With `whole`, only whole ones count.
pub(super) fn event_after_damage(bytes: &[u8], from: usize, whole: bool) -> Option<usize> {
    /// Events longer than this are not looked through.
    const LOOK: usize = 64 * 1024;
    brace_where(bytes, from, bytes.len(), |at| {
        let after_comma = last_black(bytes, at).is_some_and(|comma| bytes[comma] == b',');
        if !after_comma || !has_event_key(bytes, at, &KEYS) {
            return false;
        }
        if !whole && has_event_key(bytes, at, &KEYS[..1]) {
            return true;
        }
        let look = &bytes[..bytes.len().min(at + LOOK)];
        strict::value_end(look, at).is_ok_and(|end| memchr::memmem::find(&bytes[at..end], b"\"ph\"").is_some())
    })
}

/// Whether an object begins at `at` whose first key is one that events have, and documents have not.
pub(super) fn looks_like_event(bytes: &[u8], at: usize) -> bool {
    has_event_key(bytes, at, &KEYS)
}

/// The cut of the stretch from `from` to `to`: the first event that begins there. Only the first `seen` bytes are looked at.
fn cut(bytes: &[u8], from: usize, to: usize, seen: usize) -> Option<usize> {
    event_start(bytes, from, to.min(seen))
}

fn brace_where(bytes: &[u8], from: usize, limit: usize, wanted: impl Fn(usize) -> bool) -> Option<usize> {
    let limit = limit.min(bytes.len());
    let mut at = from;
    while at < limit {
        at += memchr::memchr(b'{', &bytes[at..limit])?;
        if wanted(at) {
            return Some(at);
        }
        at += 1;
    }
    None
}

/// Keys that an event may begin with.
const KEYS: [&[u8]; 11] = [b"ph", b"cat", b"name", b"pid", b"tid", b"ts", b"dur", b"args", b"id", b"s", b"bp"];

fn follows_event(bytes: &[u8], at: usize) -> bool {
    let Some(comma) = last_black(bytes, at) else { return false };
    bytes[comma] == b',' && last_black(bytes, comma).is_some_and(|brace| bytes[brace] == b'}')
}

/// The last byte before `end` that is not white space, at most [`GAP`] away.
fn last_black(bytes: &[u8], end: usize) -> Option<usize> {
    (end.saturating_sub(GAP)..end).rev().find(|at| !bytes[*at].is_ascii_whitespace())
}

fn has_event_key(bytes: &[u8], brace: usize, keys: &[&[u8]]) -> bool {
    let after = &bytes[brace + 1..bytes.len().min(brace + 1 + GAP)];
    let Some(key) = after.trim_ascii_start().strip_prefix(b"\"") else { return false };
    keys.iter().any(|known| key.strip_prefix(*known).is_some_and(|rest| rest.first() == Some(&b'"')))
}

/// Part of an input that a worker parses.
#[derive(Debug, Default)]
pub(crate) struct Segment {
    /// Position in the sequence of segments, from 0, without holes.
    pub(super) index: u64,
    /// Offset of its first byte in the input.
    pub(super) offset: u64,
    /// Its bytes are `buffer[start..end]`.
    pub(super) buffer: Vec<u8>,
    pub(super) start: usize,
    pub(super) end: usize,
    /// Bytes of the source consumed so far, compressed ones when it is compressed; for progress.
    pub(super) consumed: u64,
}

impl Segment {
    /// The bytes to parse.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }
}

/// Where segments come from. `next` is called by several workers at once.
pub(crate) trait SegmentSource: Sync {
    /// Fills `segment` (whose buffer is reused) with the next one; false at the end of the input.
    fn next(&self, segment: &mut Segment) -> io::Result<bool>;
}

/// A plain file, read and cut by the workers themselves.
#[derive(Debug)]
pub(crate) struct FileSource {
    file: File,
    #[cfg(not(unix))]
    lock: Mutex<()>,
    len: u64,
    next: AtomicU64,
}

impl FileSource {
    /// Reads `file`, which is `len` bytes long.
    pub(crate) fn new(file: File, len: u64) -> Self {
        Self {
            file,
            #[cfg(not(unix))]
            lock: Mutex::new(()),
            len,
            next: AtomicU64::new(0),
        }
    }

    #[cfg(unix)]
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        std::os::unix::fs::FileExt::read_at(&self.file, buffer, offset)
    }

    #[cfg(not(unix))]
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        use std::io::{Seek, SeekFrom};
        let _guard = self.lock.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut file = &self.file;
        file.seek(SeekFrom::Start(offset))?;
        file.read(buffer)
    }

    /// Makes `buffer` hold the file from `base` to `upto` (or its end), `have` bytes of which are there already; returns
    /// how many are there now. A file that shrank while it was read ends where it ends. The buffer only grows: filling
    /// half a megabyte with zeros for every segment would cost as much as reading it.
    fn extend(&self, buffer: &mut Vec<u8>, mut have: usize, base: u64, upto: u64) -> io::Result<usize> {
        let want = usize::try_from(upto.min(self.len) - base).map_err(io::Error::other)?;
        if want > buffer.len() {
            buffer.resize(want, 0);
        }
        while have < want {
            match self.read_at(&mut buffer[have..want], base + have as u64) {
                Ok(0) => break,
                Ok(read) => have += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(have)
    }
}

impl longpole_recording::RandomAccess for FileSource {
    fn length(&self) -> u64 {
        self.len
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        Self::read_at(self, buffer, offset)
    }
}

impl SegmentSource for FileSource {
    fn next(&self, segment: &mut Segment) -> io::Result<bool> {
        let index = self.next.fetch_add(1, Ordering::Relaxed);
        let from = index * SEGMENT;
        if from >= self.len {
            return Ok(false);
        }
        let base = from.saturating_sub(MARGIN as u64);
        let buffer = &mut segment.buffer;
        let mut have = self.extend(buffer, 0, base, from + SEGMENT + LOOKAHEAD)?;
        let (relative, target) = ((from - base) as usize, (from + SEGMENT - base) as usize);
        let start = if index == 0 { 0 } else { cut(&buffer[..have], relative, target, have).unwrap_or(relative) };
        let mut end = self.end_of(&buffer[..have], base, target);
        if end.is_none() {
            have = self.extend(buffer, have, base, from + 2 * SEGMENT + MARGIN as u64)?;
            end = self.end_of(&buffer[..have], base, target);
        }
        segment.index = index;
        segment.offset = base + start as u64;
        segment.start = start;
        segment.end = end.unwrap_or_else(|| have.min(target)).max(start);
        segment.consumed = (from + SEGMENT).min(self.len);
        Ok(true)
    }
}

impl FileSource {
    /// Where the segment before `target` ends, if the bytes at hand tell: at the next cut, or with the file.
    fn end_of(&self, bytes: &[u8], base: u64, target: usize) -> Option<usize> {
        let at_end = base + bytes.len() as u64 >= self.len;
        if at_end && bytes.len() <= target {
            return Some(bytes.len());
        }
        let seen = if at_end { bytes.len() } else { bytes.len().saturating_sub(MARGIN) };
        let found = cut(bytes, target, target + SEGMENT as usize, seen);
        found.or_else(|| (at_end || seen >= target + SEGMENT as usize).then_some(target))
    }
}

/// A stream (compressed file, archive member, standard input): one thread reads and cuts, workers take.
#[derive(Debug)]
pub(crate) struct StreamSource {
    full: Receiver<io::Result<Segment>>,
    empty: Sender<Vec<u8>>,
}

/// The reading end of a [`StreamSource`].
#[derive(Debug)]
pub(crate) struct StreamPump {
    full: Sender<io::Result<Segment>>,
    empty: Receiver<Vec<u8>>,
}

impl StreamSource {
    /// A source and its pump, with at most `depth` segments waiting.
    pub(crate) fn new(depth: usize) -> (Self, StreamPump) {
        let (full_in, full_out) = crossbeam_channel::bounded(depth);
        let (empty_in, empty_out) = crossbeam_channel::unbounded();
        (Self { full: full_out, empty: empty_in }, StreamPump { full: full_in, empty: empty_out })
    }
}

impl SegmentSource for StreamSource {
    fn next(&self, segment: &mut Segment) -> io::Result<bool> {
        match self.full.recv() {
            Err(_) => Ok(false),
            Ok(Err(error)) => Err(error),
            Ok(Ok(next)) => {
                let used = std::mem::replace(segment, next);
                // The pump may be done already; then nobody needs the buffer.
                let _ = self.empty.send(used.buffer);
                Ok(true)
            }
        }
    }
}

impl StreamPump {
    /// Reads `input` to its end and hands out segments. An error ends the stream after the segments before it; it is
    /// handed out last. `consumed` tells how far the underlying file was read.
    pub(crate) fn run(self, input: &mut dyn Read, consumed: &AtomicU64) {
        let mut buffer: Vec<u8> = Vec::new();
        let (mut index, mut offset, mut have) = (0, 0_u64, 0);
        let mut failure = None;
        let mut done = false;
        while !done {
            let target = ((offset / SEGMENT + 1) * SEGMENT - offset) as usize;
            let mut end = None;
            for want in [target + LOOKAHEAD as usize, target + SEGMENT as usize + MARGIN] {
                let finished = match fill(input, &mut buffer, &mut have, want) {
                    Ok(more) => !more,
                    Err(error) => {
                        failure = Some(error);
                        true
                    }
                };
                done = finished && have <= target;
                if done {
                    end = Some(have);
                } else {
                    let seen = if finished { have } else { have - MARGIN };
                    end = cut(&buffer[..have], target, target + SEGMENT as usize, seen);
                }
                if end.is_some() || finished {
                    break;
                }
            }
            let end = end.unwrap_or(target);
            let mut next = self.empty.try_recv().unwrap_or_default();
            if next.len() < have - end {
                next.resize(have - end, 0);
            }
            next[..have - end].copy_from_slice(&buffer[end..have]);
            let consumed = consumed.load(Ordering::Relaxed);
            let segment = Segment { index, offset, buffer, start: 0, end, consumed };
            index += 1;
            offset += end as u64;
            have -= end;
            buffer = next;
            if self.full.send(Ok(segment)).is_err() {
                return;
            }
        }
        if let Some(error) = failure {
            // The workers may have stopped already; then nobody wants to know.
            let _ = self.full.send(Err(error));
        }
    }
}

/// Reads until `buffer[..have]` is `want` bytes; false when the input ended first.
fn fill(input: &mut dyn Read, buffer: &mut Vec<u8>, have: &mut usize, want: usize) -> io::Result<bool> {
    if want > buffer.len() {
        buffer.resize(want, 0);
    }
    while *have < want {
        match input.read(&mut buffer[*have..want]) {
            Ok(0) => return Ok(false),
            Ok(read) => *have += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

/// A reader that counts what passes through it.
#[derive(Debug)]
pub(crate) struct Counting<R> {
    pub(crate) inner: R,
    pub(crate) count: std::sync::Arc<AtomicU64>,
}

impl<R: Read> Read for Counting<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.count.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}
