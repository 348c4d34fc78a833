//! Records of CUPTI and NVTX that stand in no database, made into rows and added to a trace as those of an export are.
//!
//! A [`Batch`] is filled on any thread, a [`Feed`] takes batches in their order. Processes go by a number of 24 bits, threads likewise; what
//! else a number means is what it means in CUPTI. Names are numbers whose texts are asked for when a batch is taken.

use std::borrow::Cow;
use std::collections::BTreeMap;

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use longpole_trace::TraceBuilder;
use longpole_trace::{
    ActivityKind, Capture, Detail, EventWindow, GraphNode, GraphNodeId, LaunchConfig, MemcpyKind, Ns, ProblemCode, Problems, TableMarks,
    Transfer,
};

use super::merge::Merger;
use super::names::{self, Names};
use super::nvtx;
use super::recordings::{Processes, split, with_own_gpus};
use super::rows::{CallRow, DeviceRow, LATEST, Name, Numbers, Place, RangeName, RangeRow, Rows, SyncRow, length, sync_kind, transfer};

/// Bits of a process's and of a thread's number.
const BITS: u32 = 24;

/// A process, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ProcessKey(i64);

impl ProcessKey {
    pub(crate) fn new(pid: u32) -> Self {
        Self((i64::from(pid) & ((1 << BITS) - 1)) << BITS)
    }

    /// The number it was made of.
    pub(crate) fn pid(self) -> i64 {
        split(self.0).0
    }

    fn thread(self, tid: u32) -> i64 {
        self.0 | (i64::from(tid) & ((1 << BITS) - 1))
    }
}

/// Which processes work mainly on GPUs of their own, in order of those: such are recordings of their own.
pub(crate) fn ranks(work: &HashMap<(ProcessKey, i64), u64, FixedState>, gpu_of: impl Fn(ProcessKey, i64) -> i64) -> Vec<ProcessKey> {
    let work = work.iter().map(|(&(process, device), &count)| ((process.0, device), count)).collect();
    with_own_gpus(&work, |process, device| gpu_of(ProcessKey(process), device)).into_iter().map(ProcessKey).collect()
}

/// What device work has in common. Times are absolute.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    pub(crate) start: i64,
    pub(crate) end: i64,
    pub(crate) device: u32,
    pub(crate) context: u32,
    pub(crate) stream: u32,
    pub(crate) correlation: Option<u64>,
    pub(crate) graph_node: Option<u64>,
    pub(crate) graph: Option<u32>,
}

/// An NVTX range or mark; without an end it was never closed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NvtxRange<'t> {
    pub(crate) start: i64,
    pub(crate) end: Option<i64>,
    pub(crate) tid: u32,
    pub(crate) domain: i64,
    pub(crate) text: Option<&'t [u8]>,
    /// It was opened and closed on one thread, nested.
    pub(crate) is_nested: bool,
}

/// A wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    pub(crate) start: i64,
    pub(crate) end: i64,
    pub(crate) kind: u8,
    pub(crate) device: Option<u32>,
    pub(crate) context: u32,
    pub(crate) stream: Option<u32>,
    /// The event, and which record of it.
    pub(crate) event: Option<(u32, i64)>,
}

/// Rows of one process, not yet in a trace.
#[derive(Debug)]
pub(crate) struct Batch {
    process: ProcessKey,
    rows: Rows,
    /// Numbers of texts.
    ids: Numbers<i64>,
    pub(crate) problems: Problems,
}

impl Batch {
    pub(crate) fn new(process: ProcessKey) -> Self {
        Self { process, rows: Rows::default(), ids: Numbers::default(), problems: Problems::default() }
    }

    /// Start and length, if both can be right. Zero is what CUPTI writes where it has no time.
    fn times(&mut self, start: i64, end: i64) -> Option<(Ns, Ns)> {
        self.rows.events += 1;
        if start == 0 || end == 0 {
            self.problems.add(ProblemCode::MissingTime, None, || None);
            return None;
        }
        if start.unsigned_abs() >= LATEST as u64 || end.unsigned_abs() >= LATEST as u64 {
            self.problems.add(ProblemCode::NumberTooLarge, None, || None);
            return None;
        }
        let dur = length(Ns(start), Ns(end), &mut self.problems)?;
        Some((Ns(start), dur))
    }

    fn work(&mut self, kind: ActivityKind, work: &Work, name: Name, detail: Detail) {
        let Some((start, dur)) = self.times(work.start, work.end) else { return };
        self.rows.days.include(start, start + dur, 0);
        let place = Place {
            process: Some(self.process.0),
            device: i64::from(work.device),
            context: Some(i64::from(work.context)),
            stream: i64::from(work.stream),
        };
        let node = work.graph_node.map(|node| {
            // Node numbers hold their graph in the upper half.
            let graph = work.graph.map_or(node >> 32, u64::from);
            self.rows.nodes.of(&GraphNode { graph, node })
        });
        self.rows.device.push(DeviceRow {
            kind,
            start,
            dur,
            correlation: work.correlation,
            name: self.rows.names.of(&name),
            place: self.rows.places.of(&place),
            detail: Some(self.rows.details.of(&detail)),
            node,
        });
    }

    /// A kernel; its name is a number.
    pub(crate) fn kernel(&mut self, work: &Work, name: Option<i64>, launch: LaunchConfig) {
        let name = name.map_or(Name::Missing, |id| {
            self.ids.of(&id);
            Name::Id(id)
        });
        self.work(ActivityKind::Kernel, work, name, Detail::Launch(launch));
    }

    /// A copy, by CUPTI's kinds.
    pub(crate) fn copy(&mut self, work: &Work, bytes: u64, kind: u8, from: u8, to: u8) {
        let (kind, from, to) = (i64::from(kind), memory(from), memory(to));
        self.work(ActivityKind::Memcpy, work, Name::Copy(kind, from, to), transfer(Some(bytes), kind, from, to));
    }

    /// Memory that was set.
    pub(crate) fn fill(&mut self, work: &Work, bytes: u64, kind: u8) {
        let detail = Detail::Transfer(Transfer { bytes: Some(bytes), kind: MemcpyKind::Unknown, pageable: None });
        self.work(ActivityKind::Memset, work, Name::Fill(memory(kind)), detail);
    }

    /// A call of the runtime or driver; its name is a number.
    pub(crate) fn call(&mut self, start: i64, end: i64, tid: u32, correlation: Option<u64>, name: Option<i64>) {
        let Some((start, dur)) = self.times(start, end) else { return };
        self.rows.days.include(start, start + dur, 0);
        if let Some(id) = name {
            self.ids.of(&id);
        }
        self.rows.calls.push(CallRow { start, dur, correlation, thread: self.process.thread(tid), name });
    }

    /// A wait.
    pub(crate) fn wait(&mut self, wait: &Wait) {
        let Some((start, dur)) = self.times(wait.start, wait.end) else { return };
        self.rows.days.include(start, start + dur, 0);
        self.rows.syncs.push(SyncRow {
            kind: sync_kind(Some(i64::from(wait.kind))),
            start,
            dur,
            process: Some(self.process.0),
            device: wait.device.map(i64::from),
            context: Some(i64::from(wait.context)),
            stream: wait.stream.map(i64::from),
            event: wait.event.map(|(event, record)| (i64::from(event), record)),
        });
    }

    /// Time that the driver or the profiler took; its name is a number.
    pub(crate) fn overhead(&mut self, start: i64, end: i64, name: i64) {
        if let Some((start, dur)) = self.times(start, end) {
            self.ids.of(&name);
            self.rows.overheads.push((start, dur, Some(name)));
        }
    }

    /// An NVTX range or mark.
    pub(crate) fn range(&mut self, range: &NvtxRange<'_>) {
        let Some((start, dur)) = self.times(range.start, range.end.unwrap_or(range.start)) else { return };
        self.rows.days.include(start, start + dur, 0);
        let name = range.text.filter(|text| !text.is_empty()).map_or(RangeName::Missing, |text| {
            let parsed = nvtx::parse(text);
            let is_operator = parsed.is_operator && range.is_nested;
            let texts = &mut self.rows.texts;
            let (name, sizes) = (texts.of(parsed.name), parsed.sizes.filter(|_| is_operator).map(|sizes| texts.of(sizes)));
            RangeName::Text { name, is_operator, sizes }
        });
        let dur = range.end.map(|_| dur);
        self.rows.ranges.push(RangeRow { start, dur, thread: self.process.thread(range.tid), domain: range.domain, name });
    }
}

/// CUPTI's kinds of memory as an export counts them: from pageable on; zero is unknown.
fn memory(kind: u8) -> Option<i64> {
    i64::from(kind).checked_sub(1).filter(|kind| *kind >= 0)
}

/// What was fed.
pub(crate) struct Fed {
    pub(crate) window: EventWindow,
    pub(crate) marks: TableMarks,
    pub(crate) events: u64,
    /// Devices with work, by recording and number, and the first process seen on each.
    pub(crate) devices: BTreeMap<(u32, i64), Option<ProcessKey>>,
    pub(crate) problems: Problems,
}

/// Adds batches to a trace.
pub(crate) struct Feed<'b> {
    merger: Merger<'b, 'static>,
}

impl<'b> Feed<'b> {
    /// `own` are processes with recordings of their own, `first` is the recording of all others.
    pub(crate) fn new(builder: &'b mut TraceBuilder, own: &HashMap<ProcessKey, u32, FixedState>, first: u32) -> Self {
        let own = own.iter().map(|(process, recording)| (process.0, *recording)).collect();
        Self { merger: Merger::new(builder, Names::empty(), Processes::new(own, first, true), Problems::default()) }
    }

    pub(crate) fn problems(&mut self) -> &mut Problems {
        &mut self.merger.problems
    }

    /// Names a domain of NVTX, before ranges of it are taken.
    pub(crate) fn name_domain(&mut self, process: ProcessKey, domain: i64, name: &[u8]) {
        let name = names::intern(&mut self.merger.builder.trace_mut().strings, name, &mut self.merger.problems);
        self.merger.domains.entry((process.0, domain)).or_insert(name);
    }

    /// Says where an event was recorded, before waits for that record of it are taken.
    pub(crate) fn event_record(&mut self, process: ProcessKey, event: (u32, i64), stream: u32, correlation: Option<u64>) {
        self.merger.records.insert((process.0, i64::from(event.0), event.1), (Some(i64::from(stream)), correlation));
    }

    /// Adds the rows of a batch. `text` gives the text of a number.
    pub(crate) fn take<'t>(&mut self, mut batch: Batch, text: &impl Fn(i64) -> Option<Cow<'t, [u8]>>) {
        self.merger.problems.extend(std::mem::take(&mut batch.problems));
        for &id in &batch.ids.list {
            let strings = &mut self.merger.builder.trace_mut().strings;
            self.merger.names.add(id, || text(id), strings, &mut self.merger.problems);
        }
        self.merger.take(&mut batch.rows);
    }

    /// Says where nodes that a process's device work may name come from: thread and time by the number of a node.
    pub(crate) fn captures(&mut self, process: ProcessKey, made: impl Fn(u64) -> Option<(u32, i64)>) {
        let recording = self.merger.processes.recording(Some(process.0));
        let nodes: Vec<(usize, u64)> = self.merger.builder.trace_mut().graph_nodes.iter().map(|node| node.node).enumerate().collect();
        for (index, node) in nodes {
            let Some((tid, at)) = made(node).filter(|(_, at)| at.unsigned_abs() < LATEST as u64) else { continue };
            // Nothing is known of what a thread without rows was at.
            let Some(thread) = self.merger.known_thread(process.thread(tid)) else { continue };
            let node = GraphNodeId::from_index(index);
            self.merger.builder.push_capture(Capture { rank: recording, node, thread, at: Ns(at) });
        }
    }

    /// Names a process and its threads that have rows.
    pub(crate) fn name_process(&mut self, process: ProcessKey, name: &[u8]) {
        let name = names::intern(&mut self.merger.builder.trace_mut().strings, name, &mut self.merger.problems);
        let recording = self.merger.processes.recording(Some(process.0));
        self.merger.builder.name_process(recording, process.pid(), name);
    }

    /// Names a thread that has rows.
    pub(crate) fn name_thread<'t>(&mut self, process: ProcessKey, tid: u32, name: i64, text: &impl Fn(i64) -> Option<Cow<'t, [u8]>>) {
        let strings = &mut self.merger.builder.trace_mut().strings;
        self.merger.names.add(name, || text(name), strings, &mut self.merger.problems);
        self.merger.name_thread(process.thread(tid), name);
    }

    /// Ends open ranges with the trace.
    pub(crate) fn finish(mut self) -> Fed {
        let window = self.merger.finish();
        let operators = self.merger.operators;
        self.merger.problems.add_many(ProblemCode::OperatorsFromRanges, operators, None, || None);
        Fed {
            window,
            marks: self.merger.marks(),
            events: self.merger.events,
            devices: self.merger.devices.iter().map(|(&place, process)| (place, process.map(ProcessKey))).collect(),
            problems: self.merger.problems,
        }
    }
}
