//! Rows of the workers into the trace, in file order.
//!
//! Ids are translated when a row first uses them, so the trace's ids follow the file and not the workers: the same trace
//! comes out of one worker and of many.

use longpole_trace::{
    Activity, ApiCall, Collective, CollectivePlace, Detail, DetailId, EventWindow, GraphNode, GraphNodeId, HostOp, Interval, Lane, LaneId,
    MemoryEvent, Ns, ProblemCode, Problems, PythonFrame, Range, RankInfo, StrId, SyncEvent, TableMarks, ThreadId, Tid, TraceBuilder,
};

use super::dialect::Dialect;
use super::local::{NewBytes, RawLane};
use super::pairs::{Mark, Pairs};
use super::worker::Rows;
use super::writers::{AWAITS_RUN, Documents};
use crate::days::{DAY, Days, Stretch};
use crate::json::{canonical, unescape};

/// Not translated yet.
const UNSET: u32 = u32::MAX;

/// Local numbers of one kind: their values, and their ids in the trace once used.
#[derive(Debug)]
struct Translation<V> {
    values: Vec<V>,
    ids: Vec<u32>,
}

impl<V> Default for Translation<V> {
    fn default() -> Self {
        Self { values: Vec::new(), ids: Vec::new() }
    }
}

impl<V> Translation<V> {
    fn extend(&mut self, values: impl Iterator<Item = V>) {
        self.values.extend(values);
        self.ids.resize(self.values.len(), UNSET);
    }

    #[inline]
    fn get(&mut self, local: u32, make: impl FnOnce(&V) -> u32) -> u32 {
        let id = &mut self.ids[local as usize];
        if *id == UNSET {
            *id = make(&self.values[local as usize]);
        }
        *id
    }
}

/// An hour: no trace whose clock starts at zero is so late, and clocks that do not are years away.
const FAR: Ns = Ns(3_600_000_000_000);

/// This many events that all start in the same nanosecond have no time at all.
const SAME_TIME: u64 = 4;

/// The stretches of a recording, and those of few events beside the largest.
fn split(stretches: Vec<Stretch>) -> (Vec<Stretch>, Vec<Stretch>) {
    let largest = stretches.iter().map(|stretch| stretch.count).max().unwrap_or(0);
    stretches.into_iter().partition(|stretch| !stretch.is_few_beside(largest))
}

/// What one worker's local numbers mean.
#[derive(Debug, Default)]
struct WorkerIds {
    texts: Translation<Box<[u8]>>,
    values: Translation<Box<[u8]>>,
    threads: Translation<(i64, Tid)>,
    lanes: Translation<RawLane>,
    details: Translation<Detail>,
    graph_nodes: Translation<GraphNode>,
}

/// Adds the rows of one input to a trace.
#[derive(Debug)]
pub(super) struct Merger<'b> {
    builder: &'b mut TraceBuilder,
    rank: u32,
    workers: Vec<WorkerIds>,
    /// Activities with both an external id and a correlation, and those where the two are equal.
    pub(super) ids_compared: u64,
    pub(super) ids_equal: u64,
    pub(super) problems: Problems,
    /// First to last time stamp of this document, once it ended.
    pub(super) window: EventWindow,
    /// Events after time zero, and those at or before it.
    days: Days,
    early: Option<Stretch>,
    /// Events of this document.
    pub(super) events: u64,
    /// Where this document's rows begin.
    marks: TableMarks,
    /// Names from metadata events; applied at the end, since they may stand before the rows of their threads.
    thread_names: Vec<(i64, Tid, StrId)>,
    process_names: Vec<(i64, StrId)>,
    /// Begins and ends of ranges, which are matched at the end.
    range_marks: Vec<Mark>,
    /// What writers other than PyTorch need.
    writer: Documents,
}

fn boxed(bytes: &NewBytes) -> impl Iterator<Item = Box<[u8]>> {
    bytes.iter().map(Box::from)
}

impl<'b> Merger<'b> {
    pub(super) fn new(builder: &'b mut TraceBuilder, rank: u32, workers: usize, dialect: Dialect) -> Self {
        let workers = (0..workers).map(|_| WorkerIds::default()).collect();
        let marks = builder.marks();
        Self {
            builder,
            rank,
            workers,
            ids_compared: 0,
            ids_equal: 0,
            problems: Problems::default(),
            window: EventWindow::default(),
            days: Days::default(),
            early: None,
            events: 0,
            marks,
            thread_names: Vec::new(),
            process_names: Vec::new(),
            range_marks: Vec::new(),
            writer: Documents::new(dialect),
        }
    }

    /// Learns the new local numbers of a segment; must be called for every segment of a worker, in order, even when its
    /// rows are not used.
    pub(super) fn learn(&mut self, worker: usize, rows: &Rows) {
        let ids = &mut self.workers[worker];
        ids.texts.extend(boxed(&rows.new.texts));
        ids.values.extend(boxed(&rows.new.values));
        ids.threads.extend(rows.new.threads.iter().cloned());
        ids.lanes.extend(rows.new.lanes.iter().copied());
        ids.details.extend(rows.new.details.iter().copied());
        ids.graph_nodes.extend(rows.new.graph_nodes.iter().copied());
    }

    /// Adds a segment's rows.
    pub(super) fn add(&mut self, worker: usize, rows: &mut Rows) {
        let (builder, rank) = (&mut *self.builder, self.rank);
        let problems = &mut self.problems;
        let ids = &mut self.workers[worker];
        problems.extend(std::mem::take(&mut rows.problems));
        let writer = &mut self.writer;
        for (pid, name) in &rows.process_names {
            writer.learn_process(*pid, &ids.texts.values[name.index()]);
        }
        macro_rules! text {
            ($id:expr) => {
                StrId(ids.texts.get($id.0, |raw| {
                    let (text, replaced) = unescape(raw);
                    if replaced {
                        problems.add(ProblemCode::BadUtf8, None, || Some(text.chars().take(80).collect()));
                    }
                    builder.trace_mut().strings.intern(&text).0
                }))
            };
        }
        macro_rules! value {
            ($id:expr) => {
                $id.map(|id: StrId| StrId(ids.values.get(id.0, |raw| builder.trace_mut().strings.intern(&canonical(raw)).0)))
            };
        }
        macro_rules! thread {
            ($id:expr) => {
                ThreadId(ids.threads.get($id.0, |(pid, tid)| {
                    let process = builder.process(rank, *pid);
                    builder.thread(process, tid.clone()).0
                }))
            };
        }
        macro_rules! lane {
            ($id:expr) => {
                LaneId(ids.lanes.get($id.0, |raw| {
                    let device = builder.device(rank, writer.ordinal(raw.ordinal));
                    builder.lane(Lane { device, context: raw.context, stream: raw.stream }).0
                }))
            };
        }
        if writer.has_device_lines() {
            let mut is_device = |thread: ThreadId| writer.is_device_line(ids.threads.values[thread.index()].0, problems);
            rows.ranges.retain(|row| !is_device(row.thread));
            rows.host_ops.retain(|row| !is_device(row.thread));
            rows.api_calls.retain(|row| !is_device(row.thread));
            rows.frames.retain(|row| !is_device(row.thread));
        }
        for row in rows.host_ops.drain(..) {
            let (name, thread) = (text!(row.name), thread!(row.thread));
            let (shapes, types, strides, values) = (value!(row.shapes), value!(row.types), value!(row.strides), value!(row.values));
            builder.push_host_op(HostOp { name, thread, shapes, types, strides, values, ..row });
        }
        for row in rows.api_calls.drain(..) {
            let (name, thread) = (text!(row.name), thread!(row.thread));
            writer.learn_call(row.correlation, thread, row.start, row.dur);
            builder.push_api_call(ApiCall { name, thread, ..row });
        }
        for (index, mut row) in rows.activities.drain(..).enumerate() {
            let name = text!(row.name);
            if let Some(&Some(operation)) = rows.operations.get(index) {
                row.external_id = writer.operation(row.correlation, text!(operation));
            } else if row.external_id == Some(AWAITS_RUN) {
                row.external_id = writer.run_before(&rows.runs);
            }
            let lane = lane!(row.lane);
            let detail = row.detail.map(|id| DetailId(ids.details.get(id.0, |detail| builder.detail(*detail).0)));
            let graph_node = row.graph_node.map(|id| GraphNodeId(ids.graph_nodes.get(id.0, |node| builder.graph_node(*node).0)));
            if let (Some(external), Some(correlation)) = (row.external_id, row.correlation)
                && !writer.makes_external_ids()
            {
                self.ids_compared += 1;
                self.ids_equal += u64::from(external == correlation);
            }
            builder.push_activity(Activity { name, lane, detail, graph_node, ..row });
        }
        let ranges_before = builder.trace_mut().ranges.len() as u32;
        for row in rows.ranges.drain(..) {
            let (name, thread) = (text!(row.name), thread!(row.thread));
            builder.push_range(Range { name, thread, ..row });
        }
        for row in rows.memory.drain(..) {
            let thread = thread!(row.thread);
            builder.push_memory_event(MemoryEvent { thread, ..row });
        }
        for row in rows.frames.drain(..) {
            let (name, thread) = (text!(row.name), thread!(row.thread));
            builder.push_frame(PythonFrame { name, thread, ..row });
        }
        for mut row in rows.overheads.drain(..) {
            row.name = text!(row.name);
            builder.push_overhead(row);
        }
        for row in rows.sync_events.drain(..) {
            builder.push_sync_event(SyncEvent { rank, ..row });
        }
        for row in rows.collectives.drain(..) {
            let place = match row.place {
                CollectivePlace::Host(id) => CollectivePlace::Host(thread!(id)),
                CollectivePlace::Device(id) => CollectivePlace::Device(lane!(id)),
            };
            let [name, group, group_ranks, dtype] = [row.name, row.group, row.group_ranks, row.dtype].map(|id| id.map(|id| text!(id)));
            builder.push_collective(Collective { place, name, group, group_ranks, dtype, ..row });
        }
        for (thread, name) in rows.thread_names.drain(..) {
            let (pid, tid) = ids.threads.values[thread.index()].clone();
            self.thread_names.push((pid, tid, text!(name)));
        }
        for (pid, name) in rows.process_names.drain(..) {
            self.process_names.push((pid, text!(name)));
        }
        for row in rows.marks.drain(..) {
            let name = row.name.map(|name| text!(name));
            let before = ranges_before.saturating_add(row.before);
            self.range_marks.push(Mark { name, thread: thread!(row.thread), before, ..row });
        }
        writer.end_segment(&rows.runs, rows.limited);
        self.days.merge(&rows.days);
        if let Some(early) = rows.early {
            self.early = Some(self.early.map_or(early, |known| known.merged(early)));
        }
        self.events += rows.events;
    }

    /// Ends this document: names its threads, sets aside events whose time cannot be right. Returns where its rows begin.
    pub(super) fn end_document(&mut self) -> TableMarks {
        self.apply_names();
        self.writer.end_document(self.builder, &mut self.problems);
        let marks = std::mem::take(&mut self.range_marks);
        let mut stretches = self.days.stretches();
        let later = stretches.iter().copied().reduce(Stretch::merged);
        if let Some(early) = self.early {
            let gap = later.map_or(Ns::ZERO, |later| later.first_start - early.end);
            let is_recording = early.first_start < early.last_start && later.is_none_or(|later| later.is_few_beside(early.count));
            if gap > FAR && !is_recording {
                let unset = Stretch { first_start: Ns::MIN, last_start: Ns::ZERO, ..early };
                self.set_aside(ProblemCode::UnsetTime, &[unset]);
            } else {
                match stretches.first_mut() {
                    Some(first) if gap <= DAY => *first = first.merged(early),
                    _ => stretches.insert(0, early),
                }
            }
        }
        let (main, strays) = split(stretches);
        self.set_aside(ProblemCode::StrayTime, &strays);
        if let [only] = main[..]
            && only.first_start == only.last_start
            && only.count >= SAME_TIME
        {
            let all = Stretch { first_start: Ns::MIN, last_start: Ns::MAX, ..only };
            self.set_aside(ProblemCode::UnsetTime, &[all]);
            return self.marks;
        }
        if main.len() > 1 {
            let cause = || Some("events of one recording lie more than a day apart".to_owned());
            self.problems.add(ProblemCode::SeparateRuns, None, cause);
        }
        for stretch in &main {
            self.window.include(stretch.first_start, stretch.end);
        }
        self.match_ranges(marks);
        self.marks
    }

    /// Makes ranges of begins and ends.
    fn match_ranges(&mut self, marks: Vec<Mark>) {
        let Some((start, end)) = self.window.bounds().filter(|_| !marks.is_empty()) else { return };
        let complete = self.builder.trace_mut().ranges.len();
        let pairs = Pairs::of(marks, Interval { start, end });
        let process_of = |builder: &mut TraceBuilder, thread: ThreadId| builder.trace_mut().threads[thread.index()].process;
        let processes: Vec<u32> = pairs.outermost.iter().map(|(thread, _)| process_of(self.builder, *thread).0).collect();
        let lanes = pairs.lanes(&processes);
        for range in &pairs.ranges {
            let thread = range.outermost.map_or(range.thread, |outermost| {
                let process = process_of(self.builder, pairs.outermost[outermost as usize].0);
                self.builder.thread(process, Tid::Text(format!("async {}", lanes[outermost as usize])))
            });
            self.builder.push_range(Range { name: range.name, thread, start: range.start, dur: range.end - range.start });
        }
        self.interleave(complete, &pairs);
        for (code, (count, name)) in [(ProblemCode::UnclosedRange, pairs.unclosed), (ProblemCode::StrayEnd, pairs.stray)] {
            let example = name.map(|name| self.builder.trace_mut().strings.get(name).to_owned());
            self.problems.add_many(code, count, None, || example);
        }
    }

    /// Puts the ranges of pairs, which are the rows from `complete` on, where they were opened among the complete ones: the nesting of ranges
    /// that begin and end together is their order.
    fn interleave(&mut self, complete: usize, pairs: &Pairs) {
        let ranges = &mut self.builder.trace_mut().ranges;
        let first = pairs.ranges.first().map_or(complete, |range| complete.min(range.order.0 as usize));
        let mut order: Vec<usize> = Vec::with_capacity(ranges.len() - first);
        let mut next = first;
        for (row, range) in (complete..).zip(&pairs.ranges) {
            let until = complete.min(range.order.0 as usize).max(next);
            order.extend(next..until);
            next = until;
            order.push(row);
        }
        order.extend(next..complete);
        permute(&mut ranges.name[first..], first, &order);
        permute(&mut ranges.thread[first..], first, &order);
        permute(&mut ranges.start[first..], first, &order);
        permute(&mut ranges.dur[first..], first, &order);
    }

    /// Removes the rows of events that start in certain stretches of time, and counts those events.
    fn set_aside(&mut self, code: ProblemCode, stretches: &[Stretch]) {
        if stretches.is_empty() {
            return;
        }
        let holds = |start: Ns| stretches.iter().any(|stretch| stretch.first_start <= start && start <= stretch.last_start);
        self.builder.remove_since(&self.marks, |start| !holds(start));
        let count = stretches.iter().map(|stretch| stretch.count).sum();
        let first = stretches.iter().map(|stretch| stretch.offset).min();
        self.problems.add_many(code, count, first, || None);
    }

    /// Begins another document of the same input, as a recording of its own: its threads and devices are others.
    pub(super) fn begin_document(&mut self, rank: u32) {
        self.rank = rank;
        self.marks = self.builder.marks();
        self.ids_compared = 0;
        self.ids_equal = 0;
        self.problems = Problems::default();
        self.window = EventWindow::default();
        self.days.clear();
        self.early = None;
        self.events = 0;
        self.range_marks.clear();
        for ids in &mut self.workers {
            ids.threads.ids.fill(UNSET);
            ids.lanes.ids.fill(UNSET);
        }
    }

    /// True when the current document added no row.
    pub(super) fn document_is_empty(&self) -> bool {
        self.builder.marks() == self.marks
    }

    /// Adds a recording like the current one.
    pub(super) fn add_rank(&mut self) -> u32 {
        let label = self.builder.trace_mut().ranks.get(self.rank as usize).map_or_else(String::new, |info| info.label.clone());
        self.builder.add_rank(RankInfo { label, ..RankInfo::default() })
    }

    /// Names the threads and processes that have rows (metadata also describes device rows, which are no threads).
    fn apply_names(&mut self) {
        for (pid, tid, name) in self.thread_names.drain(..) {
            self.builder.name_thread(self.rank, pid, tid, name);
        }
        for (pid, name) in self.process_names.drain(..) {
            self.builder.name_process(self.rank, pid, name);
        }
    }
}

/// Brings the rows of a column, of which the first is number `first`, into an order.
fn permute<T: Copy>(column: &mut [T], first: usize, order: &[usize]) {
    let ordered: Vec<T> = order.iter().map(|&row| column[row - first]).collect();
    column.copy_from_slice(&ordered);
}
