//! The writer: takes records one by one, writes pages.
//!
//! It is meant for one worker thread inside the program that is measured: it never panics, holds a bounded amount of memory, and a full disk
//! costs records, which are counted, not the program.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Seek as _, SeekFrom, Write};
use std::path::Path;

use crate::frame::{FrameHeader, Header, STRINGS};
use crate::page::{Packer, encode_columns};
use crate::records::{Dropped, End, Family, Record, StringId};

/// Records of a page: enough that packing finds what is alike, few enough that all families together hold a few megabytes.
const PAGE_RECORDS: usize = 8192;

/// The longest text; what is behind is cut off.
const MAX_TEXT_BYTES: usize = 64 << 10;

/// Texts waiting to be written, in bytes, beyond which they are.
const PENDING_BYTES: usize = 1 << 20;

/// Texts that are remembered, in bytes and number, so that they get the same id again. Beyond, all are forgotten, and get new ids when they
/// come again.
const REMEMBERED_BYTES: usize = 16 << 20;
const REMEMBERED_TEXTS: usize = 1 << 17;

/// What a recording is written to.
pub trait Sink: Write {
    /// Takes back everything behind the first `length` bytes, after a write that failed half way.
    fn cut_to(&mut self, length: u64) -> io::Result<()>;
}

impl Sink for File {
    fn cut_to(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)?;
        self.seek(SeekFrom::Start(length)).map(|_| ())
    }
}

impl Sink for Vec<u8> {
    fn cut_to(&mut self, length: u64) -> io::Result<()> {
        self.truncate(length as usize);
        Ok(())
    }
}

impl<S: Sink + ?Sized> Sink for &mut S {
    fn cut_to(&mut self, length: u64) -> io::Result<()> {
        (**self).cut_to(length)
    }
}

/// Texts and their ids.
#[derive(Default)]
struct Texts {
    ids: HashMap<Box<[u8]>, StringId>,
    remembered_bytes: usize,
    /// The body of the next frame of texts.
    pending: Vec<u8>,
    pending_count: usize,
    pending_first: u32,
    last: u32,
}

impl Texts {
    fn id(&mut self, text: &[u8]) -> StringId {
        let text = &text[..text.len().min(MAX_TEXT_BYTES)];
        if let Some(&id) = self.ids.get(text) {
            return id;
        }
        // Four billion different texts later there are no ids left.
        let Some(next) = self.last.checked_add(1) else { return StringId::NONE };
        if self.remembered_bytes > REMEMBERED_BYTES || self.ids.len() >= REMEMBERED_TEXTS {
            self.forget();
        }
        self.last = next;
        if self.pending_count == 0 {
            self.pending_first = next;
        }
        self.pending_count += 1;
        self.pending.extend_from_slice(&(text.len() as u32).to_le_bytes());
        self.pending.extend_from_slice(text);
        self.remembered_bytes += text.len();
        self.ids.insert(text.into(), StringId(next));
        StringId(next)
    }

    fn forget(&mut self) {
        self.ids.clear();
        self.remembered_bytes = 0;
    }

    fn clear_pending(&mut self) {
        self.pending.clear();
        self.pending_count = 0;
    }
}

/// Writes a recording. Records are kept until a page of their family is full or [`Writer::flush`] is called, and are lost if the process dies
/// before: flush every second or so, and before what may be the end.
pub struct Writer<W: Sink> {
    out: W,
    texts: Texts,
    /// Rows of the next page of each family, in the order of [`Family::ALL`].
    rows: Vec<Vec<u64>>,
    /// Records of each family that could not be written, and are not yet counted in the file.
    lost: Vec<u64>,
    packer: Packer,
    body: Vec<u8>,
    /// Bytes of whole frames.
    written: u64,
    pages: u64,
    error: Option<io::Error>,
    /// Whether the last write failed; the next flush tries again.
    failing: bool,
}

impl Writer<File> {
    /// Creates a file and writes its header. A file that is there is an error: nothing is overwritten.
    pub fn create(path: &Path, header: Header) -> io::Result<Self> {
        Self::new(OpenOptions::new().write(true).create_new(true).open(path)?, header)
    }
}

impl<W: Sink> Writer<W> {
    /// Writes the header to `out`.
    pub fn new(mut out: W, header: Header) -> io::Result<Self> {
        let header = header.encode();
        out.write_all(&header)?;
        Ok(Self {
            out,
            texts: Texts::default(),
            rows: vec![Vec::new(); Family::ALL.len()],
            lost: vec![0; Family::ALL.len()],
            packer: Packer::new(),
            body: Vec::new(),
            written: header.len() as u64,
            pages: 0,
            error: None,
            failing: false,
        })
    }

    /// The id of a text, for fields of records written by this writer from now on. Ask for it anew for each record: ids of texts are forgotten
    /// when there are too many.
    pub fn string(&mut self, text: &[u8]) -> StringId {
        if self.texts.pending.len() >= PENDING_BYTES {
            self.write_texts();
        }
        self.texts.id(text)
    }

    /// Takes a record. Each family also has a method of its own.
    pub fn record<R: Record>(&mut self, record: &R) {
        let index = index_of(R::FAMILY);
        let Some(rows) = self.rows.get_mut(index) else { return };
        record.push_words(rows);
        if rows.len() >= PAGE_RECORDS * R::COLUMNS {
            self.write_page(index);
        }
    }

    /// Writes everything taken so far. After a failure it tries again, and first counts in the file what was lost.
    pub fn flush(&mut self) {
        self.failing = false;
        self.write_texts();
        self.write_lost();
        for index in 0..Family::ALL.len() {
            self.write_page(index);
        }
        if self.out.flush().is_err() {
            self.failing = true;
        }
    }

    /// Writes everything taken so far and the end.
    pub fn finish(mut self, end: &End) -> io::Result<()> {
        self.flush();
        // What this flush could not write is counted if there is room for that much.
        self.failing = false;
        self.write_lost();
        self.record(end);
        self.write_page(index_of(Family::End));
        match self.error.take() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// The first error of writing, once. From then on records are counted as lost until writing succeeds again.
    pub fn take_error(&mut self) -> Option<io::Error> {
        self.error.take()
    }

    /// What was written to, without what was not flushed.
    pub fn into_inner(self) -> W {
        self.out
    }

    /// Bytes written.
    pub fn bytes_written(&self) -> u64 {
        self.written
    }

    /// Pages written, of records and of texts.
    pub fn pages_written(&self) -> u64 {
        self.pages
    }

    fn write_texts(&mut self) {
        if self.texts.pending_count == 0 {
            return;
        }
        let (count, first) = (self.texts.pending_count, self.texts.pending_first);
        let pending = std::mem::take(&mut self.texts.pending);
        let written = self.write_frame(STRINGS, count, 0, first, &pending);
        self.texts.pending = pending;
        if written {
            self.texts.clear_pending();
        } else if self.texts.pending.len() >= PENDING_BYTES {
            // They cannot be kept for ever; those that come again get new ids.
            self.texts.clear_pending();
            self.texts.forget();
        }
    }

    fn write_lost(&mut self) {
        let losses = Family::ALL.iter().zip(&self.lost).filter(|&(_, &count)| count > 0);
        let losses: Vec<(Family, u64)> = losses.map(|(&family, &count)| (family, count)).collect();
        if losses.is_empty() {
            return;
        }
        // Not through the rows of the family: if this fails, the counts stay where they are.
        let mut rows = Vec::new();
        for &(family, count) in &losses {
            Dropped { family: family.number(), count, reason: Dropped::WRITE, time: 0 }.push_words(&mut rows);
        }
        self.body.clear();
        encode_columns(&rows, Dropped::COLUMNS, &mut self.body);
        let body = std::mem::take(&mut self.body);
        if self.write_frame(Family::Dropped.number(), losses.len(), Dropped::COLUMNS, 0, &body) {
            self.lost.fill(0);
        }
        self.body = body;
    }

    /// Writes what is taken of a family.
    fn write_page(&mut self, index: usize) {
        let (Some(&family), Some(rows)) = (Family::ALL.get(index), self.rows.get_mut(index)) else { return };
        if rows.is_empty() {
            return;
        }
        let columns = family.columns();
        let mut rows = std::mem::take(rows);
        let records = rows.len() / columns;
        // Texts before the page that uses them.
        self.write_texts();
        self.body.clear();
        let mut body = std::mem::take(&mut self.body);
        if !self.failing {
            encode_columns(&rows, columns, &mut body);
        }
        if self.failing || !self.write_frame(family.number(), records, columns, 0, &body) {
            self.lost[index] += records as u64;
        }
        self.body = body;
        rows.clear();
        self.rows[index] = rows;
    }

    /// Writes a frame, whole or not at all; whether it did.
    fn write_frame(&mut self, kind: u16, records: usize, columns: usize, first_id: u32, body: &[u8]) -> bool {
        if self.failing {
            return false;
        }
        let payload = self.packer.pack(records, columns, first_id, body);
        let header = FrameHeader::of(kind, payload).encode();
        let result = self.out.write_all(&header).and_then(|()| self.out.write_all(payload));
        match result {
            Ok(()) => {
                self.written += (header.len() + payload.len()) as u64;
                self.pages += 1;
                true
            }
            Err(error) => {
                self.failing = true;
                // If even this fails, the reader passes over the torn frame.
                let _ = self.out.cut_to(self.written);
                self.error.get_or_insert(error);
                false
            }
        }
    }
}

/// Where a family stands in [`Family::ALL`].
fn index_of(family: Family) -> usize {
    Family::ALL.iter().position(|&f| f == family).unwrap_or(0)
}
