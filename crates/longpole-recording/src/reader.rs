//! The reader: recordings of a file, with what could not be read.

use std::borrow::Cow;
use std::fmt;
use std::io;

use crate::checksum::crc32;
use crate::frame::{BadHeader, FRAME_HEADER_BYTES, FRAME_MAGIC, FrameHeader, Header, KIND_VERSION, MAGIC, STRINGS};
use crate::page::{PAYLOAD_HEADER_BYTES, PayloadHeader, decode_columns, unpack};
use crate::records::{Family, Record, StringId};
use crate::window::{RandomAccess, Source, Window, fill};

/// How often a frame that cannot be read is searched for the start of another recording. Each costs the length of a frame; more only stand in
/// a file made to be slow.
const MAX_RESCUES: usize = 64;

/// What is wrong at a place of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// The file ends inside a frame.
    Cut,
    /// Bytes are damaged, or not of a recording.
    Damaged,
    /// The recording is of a version that this reader does not know.
    NewerVersion(u16),
    /// Frames are of a kind, or a version of it, that this reader does not know.
    UnknownKind(u16),
}

/// Something of a file that could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What is wrong.
    pub kind: FaultKind,
    /// Where, in bytes from the start of the file.
    pub offset: u64,
    /// How many bytes were left out.
    pub bytes: u64,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { offset, bytes, .. } = self;
        match self.kind {
            FaultKind::Cut => write!(f, "the recording ends inside a frame at byte {offset}"),
            FaultKind::Damaged => write!(f, "{bytes} bytes at byte {offset} are damaged"),
            FaultKind::NewerVersion(version) => {
                write!(f, "the recording at byte {offset} is of format version {version}, which is newer than this reader")
            }
            FaultKind::UnknownKind(kind) => write!(f, "a frame of unknown kind {kind} stands at byte {offset}"),
        }
    }
}

/// Whether bytes begin like a recording.
pub fn is_recording(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC)
}

/// The texts of a recording.
#[derive(Debug, Default)]
pub struct Strings {
    /// Unpacked bodies.
    bodies: Vec<Box<[u8]>>,
    /// Where each text stands, by ascending id: id, body, offset, length.
    places: Vec<(u32, u32, u32, u32)>,
}

impl Strings {
    /// A text; `None` when its frame is lost. [`StringId::NONE`] has none.
    pub fn get(&self, id: StringId) -> Option<&[u8]> {
        let at = self.places.binary_search_by_key(&id.0, |place| place.0).ok()?;
        let &(_, body, offset, length) = self.places.get(at)?;
        self.bodies.get(body as usize)?.get(offset as usize..)?.get(..length as usize)
    }

    /// A text, with what is not UTF-8 replaced.
    pub fn text(&self, id: StringId) -> Option<Cow<'_, str>> {
        self.get(id).map(String::from_utf8_lossy)
    }

    /// All ids with their texts, by ascending id.
    pub fn iter(&self) -> impl Iterator<Item = (StringId, &[u8])> {
        self.places.iter().filter_map(|&(id, ..)| Some((StringId(id), self.get(StringId(id))?)))
    }

    /// Takes a frame's body; whether it is whole.
    fn add(&mut self, header: PayloadHeader, body: Vec<u8>) -> bool {
        let index = self.bodies.len() as u32;
        let mut at = 0;
        for id in (header.first_id..).take(header.records) {
            let Some(length) = body.get(at..).and_then(<[u8]>::first_chunk).map(|b| u32::from_le_bytes(*b)) else { return false };
            let Some(end) = (at + 4).checked_add(length as usize).filter(|&end| end <= body.len()) else { return false };
            self.places.push((id, index, at as u32 + 4, length));
            at = end;
        }
        self.bodies.push(body.into());
        true
    }

    fn sort(&mut self) {
        // Ids count up, except in files made to be odd: then the first text of an id counts.
        if !self.places.is_sorted_by(|a, b| a.0 < b.0) {
            self.places.sort_by_key(|place| place.0);
            self.places.dedup_by_key(|place| place.0);
        }
    }
}

/// A page that was found, not yet unpacked.
#[derive(Clone, Copy, Debug)]
struct Page<'a> {
    family: Family,
    header: PayloadHeader,
    source: Source<'a>,
    offset: u64,
    payload_bytes: usize,
    checksum: u32,
}

/// A recording of a file: its texts are unpacked, its pages are not.
#[derive(Debug)]
pub struct Recording<'a> {
    /// What it starts with.
    pub header: Header,
    /// Its texts.
    pub strings: Strings,
    /// What of it could not be read. Unpacking its pages may add to that.
    pub faults: Vec<Fault>,
    /// Where it starts and ends in the file, in bytes: up to its last whole frame.
    pub place: std::ops::Range<u64>,
    pages: Vec<Page<'a>>,
}

impl<'a> Recording<'a> {
    /// Pages of a family, each to be read and unpacked where and when it suits (they stand for themselves).
    pub fn pages<R: Record>(&self) -> impl Iterator<Item = impl FnOnce() -> Result<Vec<R>, Fault> + Send + use<'a, R>> + use<'a, '_, R> {
        self.pages.iter().filter(|page| page.family == R::FAMILY).map(|&page| move || read_page(page))
    }

    /// Records of a family, in the order they were written; pages that are damaged are added to [`Recording::faults`].
    pub fn records<R: Record>(&mut self) -> Vec<R> {
        let mut records = Vec::new();
        let mut faults = Vec::new();
        for page in self.pages::<R>() {
            match page() {
                Ok(more) => records.extend(more),
                Err(fault) => faults.push(fault),
            }
        }
        self.faults.extend(faults);
        records
    }

    /// Records that the pages of a family hold, by their own word.
    pub fn count(&self, family: Family) -> u64 {
        self.pages.iter().filter(|page| page.family == family).map(|page| page.header.records as u64).sum()
    }

    /// Whether the recorder wrote the end.
    pub fn has_end(&self) -> bool {
        self.count(Family::End) > 0
    }
}

fn read_page<R: Record>(page: Page<'_>) -> Result<Vec<R>, Fault> {
    let PayloadHeader { records, columns, .. } = page.header;
    let bytes = (FRAME_HEADER_BYTES + page.payload_bytes) as u64;
    let fault = Fault { kind: FaultKind::Damaged, offset: page.offset, bytes };
    let mut read = Vec::new();
    let payload = match page.source {
        Source::Memory(bytes) => {
            let start = page.offset as usize + FRAME_HEADER_BYTES;
            bytes.get(start..).and_then(|rest| rest.get(..page.payload_bytes)).ok_or(fault)?
        }
        Source::File(file) => {
            read.resize(page.payload_bytes, 0);
            let filled = fill(file, &mut read, page.offset + FRAME_HEADER_BYTES as u64);
            // The file may be another by now than the one that was gone through.
            if filled.is_err() || filled.is_ok_and(|filled| filled < read.len()) || crc32(&read) != page.checksum {
                return Err(fault);
            }
            &read
        }
    };
    let body = payload.get(PAYLOAD_HEADER_BYTES..).ok_or(fault)?;
    let body = unpack(page.header, body).ok_or(fault)?;
    let rows = decode_columns(&body, records, columns, R::COLUMNS).ok_or(fault)?;
    Ok(rows.chunks_exact(R::COLUMNS).map(R::from_words).collect())
}

/// Reads a file in memory: one recording or several, one after another. Faults that belong to no recording stand in the second list.
pub fn read(bytes: &[u8]) -> (Vec<Recording<'_>>, Vec<Fault>) {
    let found = Reader::new(Source::Memory(bytes), bytes.len() as u64).run();
    (found.recordings, found.faults)
}

/// What was found in a file that stays where it is.
#[derive(Debug)]
pub struct Found<'a> {
    /// Its recordings.
    pub recordings: Vec<Recording<'a>>,
    /// Faults that belong to no recording.
    pub faults: Vec<Fault>,
    /// What kept the rest of it from being read.
    pub error: Option<io::Error>,
}

/// Goes through a file that stays where it is: a few megabytes of it are in memory at a time, and its pages are read when they are asked for.
/// `report` is told how far it is.
pub fn read_file<'a>(file: &'a dyn RandomAccess, report: &mut dyn FnMut(u64)) -> Found<'a> {
    let mut reader = Reader::new(Source::File(file), file.length());
    reader.report = Some(report);
    reader.run()
}

struct Reader<'a, 'r> {
    source: Source<'a>,
    window: Window,
    /// Where reading is.
    at: u64,
    /// Where the file ends, or where it cannot be read any more.
    end: u64,
    recordings: Vec<Recording<'a>>,
    faults: Vec<Fault>,
    rescues: usize,
    /// What is being passed over until the next recording starts.
    skipped: Option<FaultKind>,
    error: Option<io::Error>,
    report: Option<&'r mut dyn FnMut(u64)>,
}

/// What stands at a place.
enum Step {
    /// A recording starts; the length of its header.
    Recording(Header, usize),
    Frame(FrameHeader),
    /// So many bytes are no part of anything.
    Fault(FaultKind, usize),
    /// So many bytes, and what is behind them, up to the next recording.
    Skip(FaultKind, usize),
}

impl<'a> Reader<'a, '_> {
    fn new(source: Source<'a>, end: u64) -> Self {
        Self {
            source,
            window: Window::default(),
            at: 0,
            end,
            recordings: Vec::new(),
            faults: Vec::new(),
            rescues: 0,
            skipped: None,
            error: None,
            report: None,
        }
    }

    fn run(mut self) -> Found<'a> {
        while self.at < self.end {
            self.step();
        }
        for recording in &mut self.recordings {
            recording.strings.sort();
        }
        Found { recordings: self.recordings, faults: self.faults, error: self.error }
    }

    /// Reads what stands here: a header, a frame, or something else.
    fn step(&mut self) {
        let mut window = std::mem::take(&mut self.window);
        let rest = match self.source {
            Source::Memory(bytes) => bytes.get(self.at as usize..).unwrap_or_default(),
            Source::File(file) => {
                if window.fill(file, self.at, &mut self.end, &mut self.error)
                    && let Some(report) = &mut self.report
                {
                    report(self.at);
                }
                window.from(self.at)
            }
        };
        if !rest.is_empty() {
            let is_last = self.at + rest.len() as u64 >= self.end;
            match step(rest, self.skipped, is_last) {
                Step::Recording(header, length) => {
                    let place = self.at..self.at + length as u64;
                    let (strings, faults, pages) = Default::default();
                    self.recordings.push(Recording { header, strings, faults, place, pages });
                    self.skipped = None;
                    self.at += length as u64;
                }
                Step::Frame(frame) => self.frame(frame, rest),
                Step::Fault(kind, length) => {
                    self.skipped = None;
                    self.leave_out(kind, length);
                }
                Step::Skip(kind, length) => {
                    self.skipped = Some(kind);
                    self.leave_out(kind, length);
                }
            }
        }
        self.window = window;
    }

    fn frame(&mut self, frame: FrameHeader, rest: &[u8]) {
        let start = self.at;
        let behind_header = &rest[FRAME_HEADER_BYTES..];
        let payload = behind_header.get(..frame.length);
        let Some(payload) = payload.filter(|payload| crc32(payload) == frame.checksum) else {
            // Another recording may start inside: this one's process died while it wrote, and files were put one behind the other. A frame that
            // is cut ends with the file, so the rest is all there.
            let is_cut = payload.is_none();
            let inside = payload.unwrap_or(behind_header);
            let rescued = if self.rescues < MAX_RESCUES { next(inside, &MAGIC) } else { None };
            self.rescues += 1;
            let kind = if is_cut || rescued.is_some() { FaultKind::Cut } else { FaultKind::Damaged };
            return self.leave_out(kind, FRAME_HEADER_BYTES + rescued.unwrap_or(inside.len()));
        };
        let length = FRAME_HEADER_BYTES + frame.length;
        let Some(recording) = self.recordings.last_mut() else {
            return self.leave_out(FaultKind::Damaged, length);
        };
        let family = Family::from_number(frame.kind);
        if frame.version != KIND_VERSION || (family.is_none() && frame.kind != STRINGS) {
            recording.place.end = start + length as u64;
            return self.leave_out(FaultKind::UnknownKind(frame.kind), length);
        }
        let Some((header, body)) = PayloadHeader::decode(payload) else {
            return self.leave_out(FaultKind::Damaged, length);
        };
        if let Some(family) = family {
            let (source, payload_bytes, checksum) = (self.source, frame.length, frame.checksum);
            recording.pages.push(Page { family, header, source, offset: start, payload_bytes, checksum });
        } else if !unpack(header, body).is_some_and(|body| recording.strings.add(header, body)) {
            return self.leave_out(FaultKind::Damaged, length);
        }
        recording.place.end = start + length as u64;
        self.at += length as u64;
    }

    /// Notes a fault and passes over its bytes; neighbouring damage is one fault.
    fn leave_out(&mut self, kind: FaultKind, bytes: usize) {
        let (offset, bytes) = (self.at, bytes as u64);
        let faults = self.recordings.last_mut().map_or(&mut self.faults, |recording| &mut recording.faults);
        match faults.last_mut() {
            Some(last) if last.kind == kind && last.offset + last.bytes == offset => last.bytes += bytes,
            _ => faults.push(Fault { kind, offset, bytes }),
        }
        self.at += bytes.max(1);
    }
}

/// What stands at the start of `rest`, which is all of the file when `is_last`, else long enough for any frame.
fn step(rest: &[u8], skipped: Option<FaultKind>, is_last: bool) -> Step {
    if let Some(kind) = skipped
        && !rest.starts_with(&MAGIC)
    {
        return skip(rest, kind, 0, is_last);
    }
    if rest.starts_with(&MAGIC) {
        return match Header::decode(rest) {
            Ok((header, length)) => Step::Recording(header, length),
            Err(BadHeader::Cut) => Step::Fault(FaultKind::Cut, rest.len()),
            Err(BadHeader::Damaged) => leave_out_damage(rest, is_last),
            Err(BadHeader::Newer(version)) => skip(rest, FaultKind::NewerVersion(version), 1, is_last),
        };
    }
    if let Some(frame) = FrameHeader::decode(rest) {
        return Step::Frame(frame);
    }
    if rest.len() < FRAME_HEADER_BYTES && (rest.starts_with(&FRAME_MAGIC) || FRAME_MAGIC.starts_with(rest)) {
        return Step::Fault(FaultKind::Cut, rest.len());
    }
    leave_out_damage(rest, is_last)
}

/// Passes over what stands before the next recording, at `from` or later.
fn skip(rest: &[u8], kind: FaultKind, from: usize, is_last: bool) -> Step {
    match next(rest.get(from..).unwrap_or_default(), &MAGIC) {
        Some(found) => Step::Fault(kind, from + found),
        None if is_last => Step::Fault(kind, rest.len()),
        None => Step::Skip(kind, rest.len() - (MAGIC.len() - 1)),
    }
}

/// Passes over bytes that are damaged, up to what looks like a frame or a recording.
fn leave_out_damage(rest: &[u8], is_last: bool) -> Step {
    // Both begin with "LP", so one search finds either.
    let mut from = 1;
    while let Some(found) = next(&rest[from.min(rest.len())..], b"LP") {
        let candidate = from + found;
        if !is_last && candidate + FRAME_HEADER_BYTES > rest.len() {
            return Step::Fault(FaultKind::Damaged, candidate);
        }
        if rest[candidate..].starts_with(&MAGIC) || FrameHeader::decode(&rest[candidate..]).is_some() {
            return Step::Fault(FaultKind::Damaged, candidate);
        }
        from = candidate + 1;
    }
    // The last byte may be the first of one.
    Step::Fault(FaultKind::Damaged, if is_last { rest.len() } else { rest.len() - 1 })
}

/// Where `pattern` first stands in `bytes`.
fn next(bytes: &[u8], pattern: &[u8]) -> Option<usize> {
    let first = *pattern.first()?;
    let mut from = 0;
    loop {
        let found = from + bytes.get(from..)?.iter().position(|&byte| byte == first)?;
        if bytes[found..].starts_with(pattern) {
            return Some(found);
        }
        from = found + 1;
    }
}
