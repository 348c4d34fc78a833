//! Workers, and the merging thread that keeps file order.

use std::collections::BTreeMap;
use std::io;

use crossbeam_channel::{Receiver, Sender};
use longpole_trace::{DeviceProperties, EventWindow, Interval, ProblemCode, Problems, Recorded, TableMarks, TraceBuilder, Versions};

use super::dialect::Dialect;
use super::envelope::{Envelope, PartFacts, Tail};
use super::merge::Merger;
use super::segment::{SEGMENT, Segment, SegmentSource, event_after_damage, looks_like_event};
use super::worker::{End, Place, Rows, Worker};
use crate::formats::Reading;
use crate::json::Cursor;

/// An event longer than this that does not end is damage, not data.
const MAX_EVENT: usize = 64 << 20;
/// Metadata after the events is read up to this many bytes.
const MAX_TAIL: usize = 64 << 20;

/// What to do about a loss that a slice was made with.
const LOST_BEFORE: &str =
    "it is the trace that this one was made of to which that happened: record it again, or read totals as lower bounds";

/// A parsed segment on its way to the merging thread, with its bytes, which it may have to read again.
#[derive(Debug, Default)]
struct Parsed {
    worker: usize,
    segment: Segment,
    rows: Rows,
    end: Option<End>,
    failure: Option<io::Error>,
}

/// What one document said beside its events.
#[derive(Debug, Default)]
pub(crate) struct FileFacts {
    /// The recording it is.
    pub(crate) recording: u32,
    /// Where its rows begin.
    pub(crate) marks: TableMarks,
    /// Absolute time of time stamp 0.
    pub(crate) base_ns: Option<i64>,
    /// (device number, properties).
    pub(crate) devices: Vec<(i64, DeviceProperties)>,
    /// Rank, world size and back end, as far as the file says.
    pub(crate) rank: Option<u32>,
    pub(crate) world_size: Option<u32>,
    pub(crate) backend: Option<String>,
    /// What it is about, if it is a part of a longer recording.
    pub(crate) part: Option<PartFacts>,
    pub(crate) versions: Versions,
    pub(crate) recorded: Recorded,
    /// Top-level keys other than the events, the first few.
    pub(crate) keys: Vec<String>,
    /// The document has an event array.
    pub(crate) has_events: bool,
    /// `traceEvents` is something else than a list.
    pub(crate) events_are_no_list: bool,
    /// `External id` repeats the correlation number.
    pub(crate) external_id_is_correlation: bool,
    /// Events read.
    pub(crate) events: u64,
    /// First to last time stamp, as written.
    pub(crate) window: EventWindow,
    /// Stretches of it in which nothing was recorded, likewise.
    pub(crate) unobserved: Vec<Interval>,
    /// Bytes read, decompressed.
    pub(crate) bytes: u64,
    pub(crate) problems: Problems,
    /// What the input is when nothing usable came out of it, and what to do, if the format knows.
    pub(crate) unusable: Option<(String, &'static str)>,
}

/// Reads one input's events into `builder`, as its recording `rank`. An input is one document, or several one after the
/// other, which are recordings of their own.
pub(crate) fn read(
    source: &dyn SegmentSource,
    reading: Reading,
    dialect: Dialect,
    builder: &mut TraceBuilder,
    rank: u32,
    progress: &(dyn Fn(u64) + Sync),
) -> io::Result<Vec<FileFacts>> {
    let Reading { threads, arguments } = Reading { threads: reading.threads.max(1), ..reading };
    let (parsed_in, parsed_out) = crossbeam_channel::unbounded::<Parsed>();
    // A fixed set of buffers goes round: workers that run ahead of the merging thread wait for one.
    let (free_in, free_out) = crossbeam_channel::unbounded::<Parsed>();
    for _ in 0..threads * 2 + 2 {
        let _ = free_in.send(Parsed::default());
    }
    std::thread::scope(|scope| {
        for worker in 0..threads {
            let (free, parsed) = (free_out.clone(), parsed_in.clone());
            scope.spawn(move || work(Worker::new(arguments, dialect), worker, source, &free, &parsed));
        }
        drop((free_out, parsed_in));
        let merging = Merging::new(builder, rank, Reading { threads, arguments }, dialect);
        merging.run(&parsed_out, free_in, progress)
    })
}

/// Parses segments until the source, the buffers or the merging thread end.
fn work(mut parser: Worker, worker: usize, source: &dyn SegmentSource, free: &Receiver<Parsed>, parsed: &Sender<Parsed>) {
    while let Ok(mut item) = free.recv() {
        item.worker = worker;
        match source.next(&mut item.segment) {
            Ok(false) => return,
            Err(error) => {
                item.failure = Some(error);
                // Nobody listens any more when the merging thread gave up first.
                let _ = parsed.send(item);
                return;
            }
            Ok(true) => {
                let place = if item.segment.offset == 0 { Place::Head } else { Place::Events };
                let (offset, mut rows) = (item.segment.offset, std::mem::take(&mut item.rows));
                item.end = Some(parser.parse(item.segment.bytes(), offset, place, &mut rows));
                item.rows = rows;
                if parsed.send(item).is_err() {
                    return;
                }
            }
        }
    }
}

/// Where the merging thread stands.
#[derive(Debug)]
enum Stage {
    /// Between two events, or at the very beginning.
    Aligned,
    /// Inside an event (or the head) that began in these bytes, at this offset of the input. It is read again when there
    /// are `enough` bytes: twice as many as last time, so that a giant event costs no more than a few readings.
    Inside { place: Place, bytes: Vec<u8>, offset: u64, enough: usize },
    /// Behind the event array; the rest of the document so far, from this offset on. It is looked at again when there are
    /// `enough` bytes.
    Tail { bytes: Vec<u8>, offset: u64, enough: usize },
    /// Behind the end of a document.
    After,
    /// The document is no event list.
    NotEvents,
}

/// What to do next with bytes in hand; offsets are within them.
enum Step {
    /// Parse from here on.
    Parse(Place, usize),
    /// Go on after what was parsed from here on.
    Parsed(End, Place, usize),
    /// Read what follows the event array.
    Tail(usize),
    /// Look for another document.
    Between(usize),
}

/// The merging thread's state.
struct Merging<'b> {
    merger: Merger<'b>,
    /// Re-reads what was cut inside an event; its id is one past the workers'.
    own: Worker,
    own_id: usize,
    own_rows: Rows,
    stage: Stage,
    /// The current document.
    recording: u32,
    envelope: Envelope,
    has_events: bool,
    /// Documents that ended.
    done: Vec<FileFacts>,
    /// Bytes seen, and those of documents that ended.
    bytes: u64,
    bytes_done: u64,
}

impl<'b> Merging<'b> {
    fn new(builder: &'b mut TraceBuilder, rank: u32, reading: Reading, dialect: Dialect) -> Self {
        Self {
            merger: Merger::new(builder, rank, reading.threads + 1, dialect),
            own: Worker::new(reading.arguments, dialect),
            own_id: reading.threads,
            own_rows: Rows::default(),
            stage: Stage::Aligned,
            recording: rank,
            envelope: Envelope::default(),
            has_events: false,
            done: Vec::new(),
            bytes: 0,
            bytes_done: 0,
        }
    }

    fn run(mut self, parsed: &Receiver<Parsed>, free: Sender<Parsed>, progress: &(dyn Fn(u64) + Sync)) -> io::Result<Vec<FileFacts>> {
        let mut waiting = BTreeMap::new();
        let mut next = 0;
        let mut failure = None;
        for mut item in parsed {
            if matches!(self.stage, Stage::NotEvents) && self.done.is_empty() {
                // Something else than a trace: reading on would find nothing.
                break;
            }
            if let Some(error) = item.failure.take() {
                failure = Some(error);
                continue;
            }
            waiting.insert(item.segment.index, item);
            while let Some(mut item) = waiting.remove(&next) {
                next += 1;
                self.take(&mut item);
                progress(item.segment.consumed);
                // The workers may be done; then the buffer is simply dropped.
                let _ = free.send(item);
            }
        }
        drop(free);
        self.finish(failure)
    }

    fn take(&mut self, item: &mut Parsed) {
        self.merger.learn(item.worker, &item.rows);
        self.bytes = self.bytes.max(item.segment.offset + item.segment.bytes().len() as u64);
        if item.segment.bytes().is_empty() {
            return;
        }
        match std::mem::replace(&mut self.stage, Stage::Aligned) {
            Stage::Aligned => {
                let end = item.end.unwrap_or(End::Complete);
                let (place, offset) = (if item.segment.offset == 0 { Place::Head } else { Place::Events }, item.segment.offset);
                self.merger.add(item.worker, &mut item.rows);
                self.envelope.merge(std::mem::take(&mut item.rows.envelope));
                self.drive(item.segment.bytes(), offset, Step::Parsed(end, place, 0));
            }
            Stage::Inside { place, mut bytes, offset, enough } => {
                bytes.extend_from_slice(item.segment.bytes());
                if bytes.len() < enough {
                    self.stage = Stage::Inside { place, bytes, offset, enough };
                } else {
                    self.drive(&bytes, offset, Step::Parse(place, 0));
                }
            }
            Stage::Tail { mut bytes, offset, enough } => {
                let room = MAX_TAIL.saturating_sub(bytes.len());
                let more = item.segment.bytes();
                bytes.extend_from_slice(&more[..more.len().min(room)]);
                if bytes.len() < enough {
                    self.stage = Stage::Tail { bytes, offset, enough };
                } else {
                    self.drive(&bytes, offset, Step::Tail(0));
                }
            }
            Stage::After => self.drive(item.segment.bytes(), item.segment.offset, Step::Between(0)),
            Stage::NotEvents => self.stage = Stage::NotEvents,
        }
    }

    /// Goes through bytes that no worker's result covers, step by step, until they are used up; then sets the stage.
    fn drive(&mut self, bytes: &[u8], offset: u64, mut step: Step) {
        loop {
            let next = match step {
                Step::Parse(place, at) => Some(Step::Parsed(self.parse(&bytes[at..], offset + at as u64, place), place, at)),
                Step::Parsed(end, place, at) => self.parsed(end, place, bytes, at, offset),
                Step::Tail(at) => self.tail(bytes, at, offset),
                Step::Between(at) => self.between(bytes, at, offset),
            };
            match next {
                Some(next) => step = next,
                None => return,
            }
        }
    }

    /// Parses bytes on this thread.
    fn parse(&mut self, bytes: &[u8], offset: u64, place: Place) -> End {
        let mut rows = std::mem::take(&mut self.own_rows);
        let end = self.own.parse(bytes, offset, place, &mut rows);
        self.merger.learn(self.own_id, &rows);
        self.merger.add(self.own_id, &mut rows);
        self.envelope.merge(std::mem::take(&mut rows.envelope));
        self.own_rows = rows;
        end
    }

    /// After a segment (from `at` on) was parsed and merged.
    fn parsed(&mut self, end: End, place: Place, bytes: &[u8], at: usize, offset: u64) -> Option<Step> {
        self.has_events |= !matches!(end, End::NoEvents(_) | End::Incomplete(0)) || place == Place::Events;
        match end {
            End::Complete => self.stage = Stage::Aligned,
            End::NoEvents(None) => self.stage = Stage::NotEvents,
            End::NoEvents(Some(end)) => return Some(Step::Between(at + end)),
            End::Closed(end) => return Some(Step::Tail(at + end)),
            End::Incomplete(start) => {
                let place = if start == 0 { place } else { Place::Events };
                let start = at + start;
                if bytes.len() - start > MAX_EVENT {
                    // Its own parts may look like events that do not end either; only whole ones are worth a try.
                    let cause = || Some("an event longer than 64 MiB".to_owned());
                    self.merger.problems.add(ProblemCode::MalformedEvent, Some(offset + start as u64), cause);
                    self.stage = Stage::Aligned;
                    return event_after_damage(bytes, start + 1, true).map(|next| Step::Parse(Place::Events, next));
                }
                // A first part longer than a segment is a giant event; a shorter one needs but the next segment.
                let bytes = bytes[start..].to_vec();
                let enough = if bytes.len() as u64 > 2 * SEGMENT { bytes.len() * 2 } else { 0 };
                self.stage = Stage::Inside { place, bytes, offset: offset + start as u64, enough };
            }
        }
        None
    }

    /// Reads what follows the event array, as far as it is there.
    fn tail(&mut self, bytes: &[u8], at: usize, offset: u64) -> Option<Step> {
        if self.envelope.is_array {
            return Some(Step::Between(at));
        }
        let mut tail = Envelope::default();
        let found = tail.read_tail(&mut Cursor::new(&bytes[at..], Vec::new()));
        if found == Tail::Incomplete {
            let bytes = bytes[at..].to_vec();
            self.stage = Stage::Tail { enough: bytes.len() * 2, bytes, offset: offset + at as u64 };
            return None;
        }
        self.envelope.merge(tail);
        match found {
            Tail::End(end) => Some(Step::Between(at + end)),
            Tail::Events(events) => Some(Step::Parse(Place::Events, at + events)),
            Tail::Malformed(bad) => {
                let cause = || Some("in the metadata after the events".to_owned());
                self.merger.problems.add(ProblemCode::MalformedEvent, Some(offset + (at + bad) as u64), cause);
                self.stage = Stage::After;
                event_after_damage(bytes, at + bad, true).map(|next| Step::Parse(Place::Events, next))
            }
            Tail::Incomplete => None,
        }
    }

    /// Looks for more behind the end of a document: another one, or events that a stray bracket cut off.
    fn between(&mut self, bytes: &[u8], at: usize, offset: u64) -> Option<Step> {
        let mut at = at;
        let is_separator = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b',' | 0 | 0xEF | 0xBB | 0xBF);
        at += bytes[at..].iter().take_while(|byte| is_separator(byte)).count();
        let place = Some(offset + at as u64);
        match bytes.get(at) {
            None => {
                self.stage = Stage::After;
                None
            }
            Some(b'{') if looks_like_event(bytes, at) && self.has_events => {
                self.merger.problems.add(ProblemCode::MalformedEvent, place, || Some("a bracket that ends nothing".to_owned()));
                Some(Step::Parse(Place::Events, at))
            }
            Some(b'{' | b'[') => {
                let follows_trace = self.end_document(false, None);
                self.begin_document();
                if follows_trace {
                    self.merger.problems.add(ProblemCode::ConcatenatedDocuments, place, || None);
                }
                Some(Step::Parse(Place::Head, at))
            }
            Some(_) => {
                self.merger.problems.add(ProblemCode::UnreadBytes, place, || None);
                self.stage = Stage::After;
                event_after_damage(bytes, at, true).map(|next| Step::Parse(Place::Events, next))
            }
        }
    }

    fn finish(mut self, failure: Option<io::Error>) -> io::Result<Vec<FileFacts>> {
        // The end came before there was enough to read again.
        match std::mem::replace(&mut self.stage, Stage::Aligned) {
            Stage::Inside { place, bytes, offset, enough: 1.. } => self.drive(&bytes, offset, Step::Parse(place, 0)),
            Stage::Tail { bytes, offset, .. } => self.drive(&bytes, offset, Step::Tail(0)),
            stage => self.stage = stage,
        }
        if let Stage::Tail { bytes, offset, .. } = &self.stage
            && bytes.len() >= MAX_TAIL
        {
            let cause = || Some("metadata longer than 64 MiB".to_owned());
            self.merger.problems.add(ProblemCode::MalformedEvent, Some(*offset), cause);
        }
        let truncated = match &self.stage {
            Stage::Tail { bytes, .. } => bytes.len() < MAX_TAIL,
            Stage::After | Stage::NotEvents => false,
            // The last event is often a whole line short of its closing brackets; whatever was complete was taken.
            Stage::Inside { .. } | Stage::Aligned => true,
        };
        // A damaged compressed stream still gave the bytes before the damage; with nothing read, the error stands.
        if let Some(error) = failure {
            if self.bytes == 0 {
                return Err(error);
            }
            self.end_document(truncated, Some(error));
        } else {
            self.end_document(truncated, None);
        }
        Ok(self.done)
    }

    /// Puts the current document aside and makes room for another; true when it had events.
    fn end_document(&mut self, truncated: bool, failure: Option<io::Error>) -> bool {
        let marks = self.merger.end_document();
        if let Some(error) = failure {
            // A gzip member that does not begin like one is what padding and signatures behind the stream look like.
            let padding = !truncated && error.to_string().contains("gzip header");
            let code = if padding { ProblemCode::TrailingBytes } else { ProblemCode::DamagedCompression };
            self.merger.problems.add(code, Some(self.bytes), || Some(error.to_string()));
        }
        if truncated && self.has_events && self.bytes > 0 {
            self.merger.problems.add(ProblemCode::Truncated, Some(self.bytes), || None);
            if let Some((first, last)) = self.merger.window.bounds() {
                self.merger.problems.note_time(ProblemCode::Truncated, last - first);
            }
        }
        let envelope = std::mem::take(&mut self.envelope);
        let mut problems = std::mem::take(&mut self.merger.problems);
        let had_events = self.merger.events > 0;
        if !had_events && problems.is_empty() && !self.done.is_empty() {
            // An empty document beside others says nothing.
            return false;
        }
        problems.extend(envelope.problems);
        for (code, count) in envelope.lost.unwrap_or_default() {
            let is_new = problems.get(code).is_none();
            problems.add_many(code, count, None, || None);
            if is_new {
                problems.note_hint(code, LOST_BEFORE);
            }
        }
        // All of them, give or take a collision: see the format notes on traces of 2022 to 2024.
        let external_id_is_correlation = self.merger.ids_compared > 0 && self.merger.ids_equal * 100 >= self.merger.ids_compared * 99;
        self.done.push(FileFacts {
            unobserved: envelope.unobserved,
            recording: self.recording,
            marks,
            base_ns: envelope.base_ns,
            devices: envelope.devices,
            rank: envelope.rank,
            world_size: envelope.world_size,
            backend: envelope.backend,
            part: envelope.part,
            versions: envelope.versions,
            recorded: envelope.recorded,
            keys: envelope.keys,
            has_events: self.has_events,
            events_are_no_list: envelope.events_are_no_list,
            external_id_is_correlation,
            events: self.merger.events,
            window: self.merger.window,
            bytes: self.bytes - self.bytes_done,
            problems,
            unusable: None,
        });
        self.bytes_done = self.bytes;
        self.has_events = false;
        had_events
    }

    /// Begins another document, as a recording of its own.
    fn begin_document(&mut self) {
        self.has_events = false;
        if self.merger.document_is_empty() {
            // Its place is free.
            self.merger.begin_document(self.recording);
            return;
        }
        self.recording = self.merger.add_rank();
        self.merger.begin_document(self.recording);
    }
}
