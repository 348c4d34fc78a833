//! Rows into the trace, in file order.

use std::collections::BTreeMap;

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use longpole_trace::{
    Activity, ApiCall, CpuSample, DetailId, EventWindow, GraphNodeId, HostOp, Lane, LaneId, Ns, OsCall, Overhead, ProblemCode, Problems,
    Range, StrId, SyncEvent, TableMarks, ThreadId, Tid, TraceBuilder,
};

use super::names::{self, Names};
use super::recordings::{Processes, process_of, split};
use super::rows::{Place, RangeName, RangeRow, Rows, SyncRow};
use super::samples::Leaves;
use crate::days::{Days, Stretch};

/// A thread of the trace, and the mark of its process.
#[derive(Clone, Copy, Debug)]
struct Known {
    thread: ThreadId,
    mark: u64,
}

/// A range that was never closed.
#[derive(Clone, Copy, Debug)]
struct Open {
    range: Range,
    is_operator: bool,
}

/// An event that was recorded on a stream: which stream, and which call recorded it.
pub(super) type EventRecords = HashMap<(i64, i64, i64), (Option<i64>, Option<u64>), FixedState>;

/// Adds rows of one export to a trace.
pub(super) struct Merger<'b, 'c> {
    pub(super) builder: &'b mut TraceBuilder,
    pub(super) problems: Problems,
    pub(super) names: Names<'c>,
    pub(super) processes: Processes,
    /// Names of NVTX domains.
    pub(super) domains: HashMap<(i64, i64), StrId, FixedState>,
    pub(super) records: EventRecords,
    /// The innermost function of each sample.
    pub(super) leaves: Leaves,
    /// Devices with work, by recording and number, and the first process seen on each.
    pub(super) devices: BTreeMap<(u32, i64), Option<i64>>,
    pub(super) events: u64,
    pub(super) operators: u64,
    pub(super) graphs: u64,
    threads: HashMap<i64, Known, FixedState>,
    last: Option<(i64, Known)>,
    open: Vec<Open>,
    days: Days,
    marks: TableMarks,
}

impl<'b, 'c> Merger<'b, 'c> {
    pub(super) fn new(builder: &'b mut TraceBuilder, names: Names<'c>, processes: Processes, problems: Problems) -> Self {
        let marks = builder.marks();
        Self {
            builder,
            problems,
            names,
            processes,
            domains: HashMap::default(),
            records: HashMap::default(),
            leaves: Leaves::default(),
            devices: BTreeMap::new(),
            events: 0,
            operators: 0,
            graphs: 0,
            threads: HashMap::default(),
            last: None,
            open: Vec::new(),
            days: Days::default(),
            marks,
        }
    }

    /// Where the rows of this export begin.
    pub(super) fn marks(&self) -> TableMarks {
        self.marks
    }

    fn thread(&mut self, global: i64) -> Known {
        if let Some((last, known)) = self.last
            && last == global
        {
            return known;
        }
        let known = if let Some(known) = self.threads.get(&global) {
            *known
        } else {
            let process = process_of(global);
            let (pid, tid) = split(global);
            let owner = self.builder.process(self.processes.recording(Some(process)), pid);
            let known = Known { thread: self.builder.thread(owner, Tid::Number(tid)), mark: self.processes.mark(process) };
            self.threads.insert(global, known);
            known
        };
        self.last = Some((global, known));
        known
    }

    /// Names a thread that has rows: texts of others are not even looked up.
    pub(super) fn name_thread(&mut self, global: i64, name: i64) {
        if let Some(known) = self.threads.get(&global) {
            let name = self.names.get(name, &mut self.builder.trace_mut().strings, &mut self.problems);
            self.builder.trace_mut().threads[known.thread.index()].name = Some(name);
        }
    }

    /// Adds the rows of a stretch, and empties it.
    pub(super) fn take(&mut self, rows: &mut Rows) {
        self.events += rows.events;
        self.days.merge(&rows.days);
        self.take_device(rows);
        for row in &rows.calls {
            let Known { thread, mark } = self.thread(row.thread);
            let name = self.names.call(row.name, &mut self.builder.trace_mut().strings, &mut self.problems);
            let correlation = row.correlation.map(|number| number | mark);
            self.builder.push_api_call(ApiCall { name, thread, start: row.start, dur: row.dur, correlation, external_id: None });
        }
        if !rows.ranges.is_empty() {
            let texts: Vec<StrId> =
                rows.texts.list.iter().map(|text| names::intern(&mut self.builder.trace_mut().strings, text, &mut self.problems)).collect();
            for row in &rows.ranges {
                self.take_range(row, &texts);
            }
        }
        for row in &rows.syncs {
            self.take_sync(row);
        }
        for &(start, dur, name) in &rows.overheads {
            let name = self.names.call(name, &mut self.builder.trace_mut().strings, &mut self.problems);
            self.builder.push_overhead(Overhead { name, start, dur });
        }
        for row in &rows.os_calls {
            // Threads that nothing else is known of are of no use: idle time is that of threads that launch work.
            let Some(thread) = self.known_thread(row.thread) else { continue };
            let strings = &mut self.builder.trace_mut().strings;
            let name = row.name.map(|id| self.names.get(id, strings, &mut self.problems));
            let name = name.unwrap_or_else(|| strings.intern("(unnamed call)"));
            self.builder.push_os_call(OsCall { name, thread, start: row.start, dur: row.dur });
        }
        for row in &rows.samples {
            let Some(thread) = self.known_thread(row.thread) else { continue };
            let name = row.id.and_then(|id| self.leaves.find(id));
            let name = name.unwrap_or_else(|| self.builder.trace_mut().strings.intern("(no function recorded)"));
            self.builder.push_cpu_sample(CpuSample { name, thread, start: row.start });
        }
        rows.clear();
    }

    /// A thread that has rows.
    pub(super) fn known_thread(&self, global: i64) -> Option<ThreadId> {
        self.threads.get(&global).map(|known| known.thread)
    }

    fn take_device(&mut self, rows: &mut Rows) {
        if rows.device.is_empty() {
            return;
        }
        let strings = &mut self.builder.trace_mut().strings;
        let names: Vec<StrId> = rows.names.list.iter().map(|name| self.names.device(*name, strings, &mut self.problems)).collect();
        let places: Vec<(LaneId, u64)> = rows.places.list.iter().map(|place| self.place(place)).collect();
        let details: Vec<DetailId> = rows.details.list.iter().map(|detail| self.builder.detail(*detail)).collect();
        let nodes: Vec<GraphNodeId> = rows.nodes.list.iter().map(|node| self.builder.graph_node(*node)).collect();
        for row in &rows.device {
            let (lane, mark) = places[row.place as usize];
            self.graphs += u64::from(row.kind == longpole_trace::ActivityKind::Other);
            self.builder.push_activity(Activity {
                kind: row.kind,
                name: names[row.name as usize],
                lane,
                start: row.start,
                dur: row.dur,
                correlation: row.correlation.map(|number| number | mark),
                external_id: None,
                detail: row.detail.map(|detail| details[detail as usize]),
                graph_node: row.node.map(|node| nodes[node as usize]),
            });
        }
    }

    fn place(&mut self, place: &Place) -> (LaneId, u64) {
        let process = place.process.map(process_of);
        let recording = self.processes.recording(process);
        let device = self.builder.device(recording, place.device);
        self.devices.entry((recording, place.device)).or_insert(process);
        let lane = self.builder.lane(Lane { device, context: place.context, stream: place.stream });
        (lane, process.map_or(0, |process| self.processes.mark(process)))
    }

    fn take_range(&mut self, row: &RangeRow, texts: &[StrId]) {
        let thread = self.thread(row.thread).thread;
        let strings = &mut self.builder.trace_mut().strings;
        let (mut name, is_operator, sizes) = match row.name {
            RangeName::Text { name, is_operator, sizes } => (texts[name as usize], is_operator, sizes.map(|sizes| texts[sizes as usize])),
            RangeName::Id(id) => (self.names.get(id, strings, &mut self.problems), false, None),
            RangeName::Missing => (strings.intern("(unnamed range)"), false, None),
        };
        if let Some(domain) = self.domains.get(&(process_of(row.thread), row.domain)) {
            name = self.names.inside(*domain, name, &mut self.builder.trace_mut().strings);
        }
        let Some(dur) = row.dur else {
            self.open.push(Open { range: Range { name, thread, start: row.start, dur: Ns::ZERO }, is_operator });
            return;
        };
        self.add_range(Range { name, thread, start: row.start, dur }, is_operator, sizes);
    }

    fn add_range(&mut self, range: Range, is_operator: bool, shapes: Option<StrId>) {
        if is_operator {
            self.operators += 1;
            let Range { name, thread, start, dur } = range;
            self.builder.push_host_op(HostOp {
                name,
                thread,
                start,
                dur,
                external_id: None,
                shapes,
                types: None,
                strides: None,
                values: None,
            });
        } else {
            self.builder.push_range(range);
        }
    }

    fn take_sync(&mut self, row: &SyncRow) {
        let process = row.process.map(process_of);
        let record = row.event.and_then(|(event, sync)| self.records.get(&(process.unwrap_or(0), event, sync)).copied());
        let mark = process.map_or(0, |process| self.processes.mark(process));
        self.builder.push_sync_event(SyncEvent {
            kind: row.kind,
            rank: self.processes.recording(process),
            start: row.start,
            dur: row.dur,
            device: row.device,
            context: row.context,
            stream: row.stream,
            wait_on_stream: record.and_then(|(stream, _)| stream),
            event_record: record.and_then(|(_, call)| call).map(|number| number | mark),
        });
    }

    /// Sets aside events whose time cannot be right, and ends open ranges with the trace. Returns the window.
    pub(super) fn finish(&mut self) -> EventWindow {
        let stretches = self.days.stretches();
        let largest = stretches.iter().map(|stretch| stretch.count).max().unwrap_or(0);
        let (strays, main): (Vec<Stretch>, Vec<Stretch>) = stretches.into_iter().partition(|stretch| stretch.is_few_beside(largest));
        let holds = |start: Ns| strays.iter().any(|stretch| stretch.first_start <= start && start <= stretch.last_start);
        if !strays.is_empty() {
            self.builder.remove_since(&self.marks, |start| !holds(start));
            self.open.retain(|open| !holds(open.range.start));
            self.problems.add_many(ProblemCode::StrayTime, strays.iter().map(|stretch| stretch.count).sum(), None, || None);
        }
        if main.len() > 1 {
            let cause = || Some("events of one recording lie more than a day apart".to_owned());
            self.problems.add(ProblemCode::SeparateRuns, None, cause);
        }
        let mut window = EventWindow::default();
        for stretch in &main {
            window.include(stretch.first_start, stretch.end);
        }
        let end = window.bounds().map_or(Ns::ZERO, |(_, end)| end);
        for open in std::mem::take(&mut self.open) {
            let text = |merger: &mut Self| Some(merger.builder.trace_mut().strings.get(open.range.name).chars().take(80).collect());
            if self.problems.get(ProblemCode::UnclosedRange).is_none() {
                let example = text(self);
                self.problems.add(ProblemCode::UnclosedRange, None, || example);
            } else {
                self.problems.add(ProblemCode::UnclosedRange, None, || None);
            }
            let dur = (end - open.range.start).max(Ns::ZERO);
            self.add_range(Range { dur, ..open.range }, open.is_operator, None);
        }
        window
    }
}
