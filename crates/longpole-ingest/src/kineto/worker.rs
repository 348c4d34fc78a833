//! A worker: segments in, rows with local ids out.

use longpole_trace::{
    Activity, ActivityKind, ApiCall, Collective, CollectivePlace, Detail, DetailId, GraphNode, GraphNodeId, HostOp, LaneId, LaunchConfig,
    MemcpyKind, MemoryEvent, MemoryPlace, Ns, Overhead, ProblemCode, Problems, PythonFrame, Range, StrId, SyncEvent, SyncKind, ThreadId,
    Tid, Transfer,
};

use super::arguments::Args;
use super::category::{Category, is_annotation_name};
use super::collective;
use super::dialect::Dialect;
use super::envelope::{Envelope, Head, Tail};
use super::event::{self, Event, Id};
use super::local::{Locals, NewLocals, RawLane};
use super::pairs::Mark;
use super::segment::event_after_damage;
use super::writers::NodeRuns;
use crate::days::{DAY, Days, Stretch};
use crate::json::{Cursor, Damage, Decimal, END, Tokens, unescape};

/// Rows of one segment. Ids are the worker's own.
#[derive(Debug, Default)]
pub(super) struct Rows {
    pub(super) new: NewLocals,
    pub(super) host_ops: Vec<HostOp>,
    pub(super) api_calls: Vec<ApiCall>,
    pub(super) activities: Vec<Activity>,
    pub(super) ranges: Vec<Range>,
    pub(super) memory: Vec<MemoryEvent>,
    pub(super) frames: Vec<PythonFrame>,
    pub(super) overheads: Vec<Overhead>,
    /// Their rank is filled in when they are merged.
    pub(super) sync_events: Vec<SyncEvent>,
    pub(super) collectives: Vec<Collective>,
    /// Begins and ends of ranges.
    pub(super) marks: Vec<Mark>,
    /// The operation that each activity is of, where XLA wrote them; empty otherwise.
    pub(super) operations: Vec<Option<StrId>>,
    /// What ONNX Runtime's device work waits for from the segment before, and what the segment after may wait for.
    pub(super) runs: NodeRuns,
    /// Events that count towards the writer's own limit.
    pub(super) limited: u64,
    /// (thread, name) from metadata events.
    pub(super) thread_names: Vec<(ThreadId, StrId)>,
    /// (pid, name) from metadata events.
    pub(super) process_names: Vec<(i64, StrId)>,
    /// Events that start after time zero.
    pub(super) days: Days,
    /// Events that start at or before time zero: a short trace may begin there, but in most they are time stamps never set.
    pub(super) early: Option<Stretch>,
    pub(super) events: u64,
    pub(super) problems: Problems,
    pub(super) envelope: Envelope,
}

impl Rows {
    fn clear(&mut self) {
        self.host_ops.clear();
        self.api_calls.clear();
        self.activities.clear();
        self.ranges.clear();
        self.memory.clear();
        self.frames.clear();
        self.overheads.clear();
        self.sync_events.clear();
        self.collectives.clear();
        self.marks.clear();
        self.operations.clear();
        self.runs = NodeRuns::default();
        self.limited = 0;
        self.thread_names.clear();
        self.process_names.clear();
        self.days.clear();
        self.early = None;
        self.events = 0;
        self.problems = Problems::default();
        self.envelope = Envelope::default();
    }
}

impl Rows {
    /// Counts an event at its time.
    #[inline]
    pub(super) fn include(&mut self, start: Ns, end: Ns, offset: u64) {
        if start > Ns::ZERO {
            self.days.include(start, end, offset);
        } else {
            let event = Stretch::of(start, end, offset);
            self.early = Some(self.early.map_or(event, |known| known.merged(event)));
        }
    }
}

/// Where a segment's bytes begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// At the beginning of the input.
    Head,
    /// Between two events.
    Events,
}

/// How a segment ended. Offsets are within the segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Between two events.
    Complete,
    /// Inside the event (or the head) that begins here.
    Incomplete(usize),
    /// The event array was closed just before this offset.
    Closed(usize),
    /// The document has no event array, or is no JSON at all; the offset behind it, if it ends.
    NoEvents(Option<usize>),
}

/// Parses segments, one at a time.
#[derive(Debug, Default)]
pub(super) struct Worker {
    pub(super) locals: Locals,
    scratch: Vec<u32>,
    /// Keep strides and values of operators' arguments.
    arguments: bool,
    pub(super) dialect: Dialect,
}

impl Worker {
    pub(super) fn new(arguments: bool, dialect: Dialect) -> Self {
        Self { arguments, dialect, ..Self::default() }
    }

    /// Parses one segment; `offset` is where it begins in the input.
    pub(super) fn parse(&mut self, bytes: &[u8], offset: u64, place: Place, rows: &mut Rows) -> End {
        rows.clear();
        let end = match place {
            Place::Events => self.parse_events(bytes, 0, offset, rows),
            Place::Head => {
                let mut cursor = Cursor::new(bytes, std::mem::take(&mut self.scratch));
                let head = rows.envelope.read_head(&mut cursor);
                self.scratch = cursor.into_scratch();
                match head {
                    Head::Events(at) => self.parse_events(bytes, at, offset, rows),
                    Head::NoEvents(end) => End::NoEvents(end),
                    Head::Incomplete => End::Incomplete(0),
                }
            }
        };
        self.locals.take_new(&mut rows.new);
        end
    }

    /// Parses events from `at` on, which lies between two events.
    fn parse_events(&mut self, bytes: &[u8], at: usize, offset: u64, rows: &mut Rows) -> End {
        let mut tokens = Tokens::new(bytes, at, std::mem::take(&mut self.scratch));
        let end = self.parse_list(&mut tokens, at, offset, rows);
        self.scratch = tokens.into_scratch();
        end
    }

    fn parse_list<'a>(&mut self, tokens: &mut Tokens<'a>, mut at: usize, offset: u64, rows: &mut Rows) -> End {
        let bytes = tokens.bytes();
        let mut event = Event::<'a>::default();
        loop {
            // Between two events: white space and commas, and whatever does not belong there.
            let start = loop {
                match tokens.black_after(at) {
                    None => return End::Complete,
                    Some((start, b'{')) => break start,
                    Some((close, b']')) if closes_list(bytes, close) => return End::Closed(close + 1),
                    Some((comma, b',')) => at = comma + 1,
                    Some((junk, _)) => {
                        rows.problems.add(ProblemCode::MalformedEvent, Some(offset + junk as u64), || excerpt(bytes, junk));
                        match next_event(bytes, junk) {
                            Some(next) => {
                                at = next;
                                tokens.restart(next);
                            }
                            None => return list_end(bytes, junk),
                        }
                    }
                }
            };
            if tokens.peek() != start {
                // A token was left over from damage before this event.
                tokens.restart(start);
                if tokens.peek() == END {
                    return End::Complete;
                }
            }
            let context = event::Context { locals: &self.locals, arguments: self.arguments, dialect: self.dialect };
            match event::read(tokens, start, &mut event, &context) {
                Ok(end) => {
                    at = end;
                    if event.phase == 0 {
                        // An empty object at the end of the list.
                        continue;
                    }
                    rows.events += 1;
                    if event.repeats() {
                        let name = || Some(unescape(event.name).0.into_owned());
                        rows.problems.add(ProblemCode::RepeatedMember, Some(offset + start as u64), name);
                    }
                    self.keep(&event, offset + start as u64, rows);
                    if self.locals.texts.is_full() || self.locals.values.is_full() {
                        // Over a gibibyte of distinct names: hostile or hopeless; what was read so far stands.
                        rows.problems.add(ProblemCode::Truncated, Some(offset + start as u64), || None);
                        return End::Complete;
                    }
                }
                Err(Damage::Incomplete) => return End::Incomplete(start),
                Err(Damage::Malformed(bad)) => {
                    rows.problems.add(ProblemCode::MalformedEvent, Some(offset + start as u64), || excerpt(bytes, bad));
                    match event_after_damage(bytes, start + 1, false) {
                        Some(next) => {
                            at = next;
                            tokens.restart(next);
                        }
                        None => return list_end(bytes, start + 1),
                    }
                }
            }
        }
    }

    /// Turns an event into a row.
    fn keep(&mut self, event: &Event<'_>, offset: u64, rows: &mut Rows) {
        match event.phase {
            b'X' => self.keep_complete(event, offset, rows),
            b'i' | b'I' | b'n' | b'R' if event.name == b"[memory]" => self.keep_memory(event, offset, rows),
            b'M' => self.keep_metadata(event, rows),
            // Flow arrows repeat what correlation says; other instants mark the profiler's own doings.
            b's' | b't' | b'f' | b'i' | b'I' | b'n' | b'R' => {}
            b'B' | b'E' | b'b' | b'e' | b'S' | b'F' => self.keep_mark(event, offset, rows),
            phase => {
                rows.problems
                    .add(ProblemCode::UnusedEventKind, Some(offset), || Some(format!("ph {}", char::from(phase).escape_default())));
            }
        }
    }

    fn keep_complete(&mut self, event: &Event<'_>, offset: u64, rows: &mut Rows) {
        let category = event.category.unwrap_or(Category::Unknown);
        let is_own = self.dialect.has_own_arguments();
        if category == Category::Bookkeeping && !is_own {
            return;
        }
        let (Some(start), Some(dur)) = (time(event.ts, offset, rows), time(event.dur, offset, rows)) else {
            rows.problems.add(ProblemCode::MissingTime, Some(offset), || Some(unescape(event.name).0.into_owned()));
            return;
        };
        let dur = if dur < Ns::ZERO {
            rows.problems.add(ProblemCode::NegativeDuration, Some(offset), || Some(unescape(event.name).0.into_owned()));
            Ns::ZERO
        } else {
            dur
        };
        if dur > DAY {
            rows.problems.add(ProblemCode::ImplausibleDuration, Some(offset), || Some(unescape(event.name).0.into_owned()));
            return;
        }
        if is_own || category != Category::Overhead {
            rows.include(start, start + dur, offset);
        }
        if is_own {
            self.keep_of_other_writer(event, start, dur, offset, rows);
            return;
        }
        let args = &event.args;
        match category {
            Category::HostOp => self.keep_op(event, start, dur, rows),
            Category::HostOpOrAnnotation if !is_annotation_name(event.name) => self.keep_op(event, start, dur, rows),
            Category::HostOpOrAnnotation | Category::Annotation => {
                let (name, thread) = (self.name(event), self.thread(event));
                rows.ranges.push(Range { name, thread, start, dur });
            }
            Category::Api => {
                let (name, thread) = (self.name(event), self.thread(event));
                let (correlation, external_id) = (args.correlation, args.external_id);
                rows.api_calls.push(ApiCall { name, thread, start, dur, correlation, external_id });
            }
            Category::Python => {
                let (name, thread) = (self.name(event), self.thread(event));
                rows.frames.push(PythonFrame { name, thread, start, dur });
            }
            Category::Overhead => {
                let name = self.name(event);
                rows.overheads.push(Overhead { name, start, dur });
            }
            Category::Sync => rows.sync_events.push(sync_event(event, start, dur)),
            Category::Kernel => self.keep_activity(event, ActivityKind::Kernel, start, dur, rows),
            Category::Memcpy => self.keep_activity(event, ActivityKind::Memcpy, start, dur, rows),
            Category::Memset => self.keep_activity(event, ActivityKind::Memset, start, dur, rows),
            Category::Unknown if args.correlation.is_some() && (args.stream.is_some() || args.device.is_some()) => {
                rows.problems.add(ProblemCode::UnknownDeviceCategory, Some(offset), || Some(unescape(event.cat).0.into_owned()));
                self.keep_activity(event, ActivityKind::Other, start, dur, rows);
            }
            Category::Unknown if self.dialect == Dialect::Chrome => self.keep_range(event.name, event, start, dur, rows),
            Category::Unknown => {
                rows.problems.add(ProblemCode::UnknownCategory, Some(offset), || Some(unescape(event.cat).0.into_owned()));
            }
            Category::TimedOnly | Category::Bookkeeping => {}
        }
    }

    /// Keeps a named host range.
    pub(super) fn keep_range(&mut self, name: &[u8], event: &Event<'_>, start: Ns, dur: Ns, rows: &mut Rows) {
        let (name, thread) = (self.text(name), self.thread(event));
        rows.ranges.push(Range { name, thread, start, dur });
    }

    fn keep_op(&mut self, event: &Event<'_>, start: Ns, dur: Ns, rows: &mut Rows) {
        let (name, thread) = (self.name(event), self.thread(event));
        let args = &event.args;
        let (shapes, types) = ((args.shapes, args.known_shapes), (args.types, args.known_types));
        let [shapes, types] = self.locals.shapes_and_types(name.0, shapes, types).map(|number| number.map(StrId));
        let [strides, values] = [args.strides, args.values].map(|raw| raw.map(|raw| StrId(self.locals.values.intern(raw))));
        rows.collectives.extend(collective::row(&args.collective, &mut self.locals, CollectivePlace::Host(thread), start));
        rows.host_ops.push(HostOp { name, thread, start, dur, external_id: args.external_id, shapes, types, strides, values });
    }

    fn keep_activity(&mut self, event: &Event<'_>, kind: ActivityKind, start: Ns, dur: Ns, rows: &mut Rows) {
        let args = &event.args;
        let name = self.name(event);
        let lane = RawLane {
            ordinal: args.device.or(event.pid).unwrap_or(0),
            context: args.context,
            stream: args.stream.or_else(|| event::stream_number(event.tid)).unwrap_or(0),
        };
        let lane = LaneId(self.locals.lanes.intern(lane));
        let detail = detail(kind, event.name, args).map(|detail| DetailId(self.locals.details.intern(detail)));
        // The node number may be absent or repeated from graph to graph; the pair names it.
        let graph_node = match (args.graph, args.graph_node) {
            (None, None) => None,
            (graph, node) => {
                let node = GraphNode { graph: graph.unwrap_or(0), node: node.unwrap_or(0) };
                Some(GraphNodeId(self.locals.graph_nodes.intern(node)))
            }
        };
        let (correlation, external_id) = (args.correlation, args.external_id);
        rows.collectives.extend(collective::row(&args.collective, &mut self.locals, CollectivePlace::Device(lane), start));
        rows.activities.push(Activity { kind, name, lane, start, dur, correlation, external_id, detail, graph_node });
    }

    fn keep_memory(&mut self, event: &Event<'_>, offset: u64, rows: &mut Rows) {
        let args = &event.args;
        let Some(start) = time(event.ts, offset, rows) else {
            rows.problems.add(ProblemCode::MissingTime, Some(offset), || Some("[memory]".to_owned()));
            return;
        };
        let Some(bytes) = args.memory_bytes else {
            rows.problems.add(ProblemCode::UnreadableSize, Some(offset), || None);
            return;
        };
        rows.include(start, start, offset);
        let thread = self.thread(event);
        // c10::DeviceType 0 is the CPU; MKLDNN (5) and IDEEP (7) tensors live there too. Without a type, a device number
        // below zero means the CPU.
        let host = match args.memory_device_type {
            Some(0 | 5 | 7) => true,
            Some(_) => false,
            None => args.memory_device.is_none_or(|device| device < 0),
        };
        rows.memory.push(MemoryEvent {
            thread,
            start,
            bytes,
            place: if host { MemoryPlace::Host } else { MemoryPlace::Device },
            device: args.memory_device.filter(|_| !host).and_then(|device| u32::try_from(device).ok()),
            total_allocated: args.total_allocated,
            total_reserved: args.total_reserved,
        });
    }

    fn keep_metadata(&mut self, event: &Event<'_>, rows: &mut Rows) {
        let Some(label) = event.args.label else { return };
        match event.name {
            b"thread_name" => {
                let (thread, label) = (self.thread(event), self.text(label));
                rows.thread_names.push((thread, label));
            }
            b"process_name" => {
                if let Some(pid) = event.pid {
                    let label = self.text(label);
                    rows.process_names.push((pid, label));
                }
            }
            _ => {}
        }
    }

    #[inline]
    pub(super) fn text(&mut self, raw: &[u8]) -> StrId {
        StrId(self.locals.texts.intern(raw))
    }

    #[inline]
    pub(super) fn name(&mut self, event: &Event<'_>) -> StrId {
        StrId(self.locals.name(event.name, event.known_name))
    }

    #[inline]
    pub(super) fn thread(&mut self, event: &Event<'_>) -> ThreadId {
        let pid = event.pid.unwrap_or(-1);
        let tid = match event.tid {
            // A process whose id is text: its threads are told apart by both texts.
            tid if event.pid_text.is_some() => {
                let tid = match tid {
                    Some(Id::Number(number)) => number.to_string(),
                    Some(Id::Text(raw)) => unescape(raw).0.into_owned(),
                    None => String::new(),
                };
                Tid::Text(format!("{}/{tid}", unescape(event.pid_text.unwrap_or_default()).0))
            }
            Some(Id::Number(number)) => Tid::Number(number),
            Some(Id::Text(raw)) => Tid::Text(unescape(raw).0.into_owned()),
            None => Tid::Text(String::new()),
        };
        ThreadId(self.locals.threads.intern((pid, tid)))
    }
}

/// A time or duration, if there is a readable one.
#[inline]
pub(super) fn time(value: Option<Decimal>, offset: u64, rows: &mut Rows) -> Option<Ns> {
    match value? {
        Decimal::Ns(ns) => Some(Ns(ns)),
        Decimal::NotFinite => {
            rows.problems.add(ProblemCode::NotANumber, Some(offset), || None);
            None
        }
        Decimal::TooLarge => {
            rows.problems.add(ProblemCode::NumberTooLarge, Some(offset), || None);
            None
        }
        Decimal::Invalid => None,
    }
}

/// A row of the category of synchronisations; producers write -1 for no stream.
fn sync_event(event: &Event<'_>, start: Ns, dur: Ns) -> SyncEvent {
    let args = &event.args;
    let kind = match event.name {
        b"Stream Wait Event" => SyncKind::StreamWaitsForEvent,
        b"Event Sync" => SyncKind::Event,
        b"Stream Sync" => SyncKind::Stream,
        b"Context Sync" => SyncKind::Context,
        _ => SyncKind::Other,
    };
    let stream = |number: Option<i64>| number.filter(|&number| number >= 0);
    SyncEvent {
        kind,
        rank: 0,
        start,
        dur,
        device: args.device.or(event.pid),
        context: args.context,
        stream: stream(args.stream),
        wait_on_stream: stream(args.wait_on_stream),
        event_record: args.event_record,
    }
}

fn detail(kind: ActivityKind, name: &[u8], args: &Args<'_>) -> Option<Detail> {
    match kind {
        ActivityKind::Kernel | ActivityKind::Other => {
            let launch =
                LaunchConfig { grid: args.grid, block: args.block, registers_per_thread: args.registers, shared_bytes: args.shared_bytes };
            (launch != LaunchConfig::default()).then_some(Detail::Launch(launch))
        }
        ActivityKind::Memcpy | ActivityKind::Memset => {
            let (direction, pageable) = copy_direction(name, args.copy_kind);
            Some(Detail::Transfer(Transfer { bytes: args.bytes, kind: direction, pageable }))
        }
    }
}

/// How names (`Memcpy HtoD (...)`) and ROCm's `kind` argument spell directions.
const DIRECTIONS: [(&[u8], &[u8], MemcpyKind); 5] = [
    (b"HtoD", b"HostToDevice", MemcpyKind::HostToDevice),
    (b"DtoH", b"DeviceToHost", MemcpyKind::DeviceToHost),
    (b"DtoD", b"DeviceToDevice", MemcpyKind::DeviceToDevice),
    (b"PtoP", b"PeerToPeer", MemcpyKind::PeerToPeer),
    (b"HtoH", b"HostToHost", MemcpyKind::HostToHost),
];

/// Direction and host memory of a copy: `Memcpy HtoD (Pageable -> Device)`, or ROCm's `kind` argument.
pub(super) fn copy_direction(name: &[u8], kind: Option<&[u8]>) -> (MemcpyKind, Option<bool>) {
    let has = |text: &[u8], needle: &[u8]| memchr::memmem::find(text, needle).is_some();
    let kind = kind.unwrap_or_default();
    let direction = DIRECTIONS
        .iter()
        .find(|(short, long, _)| has(name, short) || has(kind, long) || has(name, long))
        .map_or(MemcpyKind::Unknown, |(_, _, direction)| *direction);
    let pageable = if has(name, b"Pageable") {
        Some(true)
    } else if has(name, b"Pinned") {
        Some(false)
    } else {
        None
    };
    (direction, pageable)
}

/// Whether the bracket at `close` ends the event list: then the document ends behind it, or another member or document
/// follows. A bracket that damage left behind is followed by the next event, or by more brackets.
fn closes_list(bytes: &[u8], close: usize) -> bool {
    let rest = bytes[close + 1..].trim_ascii_start();
    match rest.first() {
        None | Some(b'{' | b'[') => true,
        Some(b'}') => !matches!(rest[1..].trim_ascii_start().first(), Some(b',' | b']' | b'}')),
        Some(b',') => matches!(rest[1..].trim_ascii_start().first(), None | Some(b'"' | b'}')),
        Some(_) => false,
    }
}

/// Where the event list ends, when damage is followed by no more events: at the bracket behind which the document goes on to
/// its end as it should.
fn list_end(bytes: &[u8], from: usize) -> End {
    /// Brackets tried at most; a damaged event's own lists come first.
    const TRIES: usize = 256;
    for at in memchr::memchr_iter(b']', &bytes[from..]).take(TRIES).map(|at| from + at) {
        let rest = &bytes[at + 1..];
        let ends = match Envelope::default().read_tail(&mut Cursor::new(rest, Vec::new())) {
            Tail::End(end) => rest[end..].trim_ascii().is_empty(),
            _ => rest.trim_ascii().is_empty(),
        };
        if ends {
            return End::Closed(at + 1);
        }
    }
    End::Complete
}

/// Where to go on after something that is no event: the next brace, or the end of the list.
fn next_event(bytes: &[u8], junk: usize) -> Option<usize> {
    let mut at = junk;
    while bytes.get(at) == Some(&b'"') {
        // A string: what is in it is text.
        at = crate::json::strict::value_end(bytes, at).ok()?;
    }
    loop {
        at += memchr::memchr2(b'{', b']', bytes.get(at..)?)?;
        if bytes[at] == b'{' || closes_list(bytes, at) {
            return Some(at);
        }
        at += 1;
    }
}

/// A few characters around damage, for the message.
fn excerpt(bytes: &[u8], at: usize) -> Option<String> {
    let from = at.saturating_sub(24);
    let to = bytes.len().min(at + 24);
    let text = String::from_utf8_lossy(bytes.get(from..to)?).split_whitespace().collect::<Vec<_>>().join(" ");
    Some(text)
}
