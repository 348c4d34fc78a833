//! Filling a [`Trace`]: rows in, columns stored.

use std::hash::Hash;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::aggregates::{Aggregate, Aggregates};
use crate::collectives::{Collective, Collectives};
use crate::entities::{Device, DeviceProperties, Lane, Part, Process, RankInfo, Recorded, Thread, Tid, Versions};
use crate::ids::{ActivityId, AggregateId, DetailId, DeviceId, GraphNodeId, LaneId, ProcessId, StrId, ThreadId};
use crate::native::{CpuSample, CpuSamples, OsCall, OsCalls};
use crate::ns::Ns;
use crate::observed::Unobserved;
use crate::recorder::Recorder;
use crate::strings::Strings;
use crate::tables::{
    Activities, Activity, ApiCall, ApiCalls, Capture, Detail, GraphNode, HostOp, HostOps, MemoryEvent, MemoryEvents, Overhead, Overheads,
    PythonFrame, PythonFrames, Range, Ranges, SyncEvent, SyncEvents,
};

/// First and last time stamp of any event, bookkeeping of the profiler excluded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventWindow {
    bounds: Option<(Ns, Ns)>,
}

impl EventWindow {
    /// Widens the window to hold `[start, end]`.
    pub fn include(&mut self, start: Ns, end: Ns) {
        let (first, last) = self.bounds.unwrap_or((start, end));
        self.bounds = Some((first.min(start), last.max(end)));
    }

    /// Widens the window to hold another.
    pub fn merge(&mut self, other: Self) {
        if let Some((start, end)) = other.bounds {
            self.include(start, end);
        }
    }

    /// First and last time stamp, if there was an event.
    pub fn bounds(self) -> Option<(Ns, Ns)> {
        self.bounds
    }
}

/// A whole recording, or several rank recordings on one time axis.
#[derive(Debug, Default)]
pub struct Trace {
    /// All names, shapes and types.
    pub strings: Strings,
    /// Absolute time of `Ns(0)` in nanoseconds since 1970, if the source says; 0 when its times are absolute already.
    pub base_unix_ns: Option<i64>,
    /// First to last event of any kind.
    pub window: EventWindow,
    /// Stretches of the window in which nothing was recorded.
    pub unobserved: Unobserved,
    /// The recordings, at least one in a trace that was imported.
    pub ranks: Vec<RankInfo>,
    /// Of recordings that were cut out of longer ones: what they are about.
    pub parts: Vec<Part>,
    /// Processes.
    pub processes: Vec<Process>,
    /// Host threads.
    pub threads: Vec<Thread>,
    /// Devices, in order of first mention.
    pub devices: Vec<Device>,
    /// Device streams.
    pub lanes: Vec<Lane>,
    /// Distinct launch shapes and transfers.
    pub details: Vec<Detail>,
    /// Distinct graph nodes.
    pub graph_nodes: Vec<GraphNode>,
    /// Where nodes come from, by recording and node, one each.
    pub captures: Vec<Capture>,
    /// Software versions.
    pub versions: Versions,
    /// What the recorder was asked for.
    pub recorded: Recorded,
    /// What made the recording; of several, the last.
    pub recorder: Recorder,
    /// Operators.
    pub host_ops: HostOps,
    /// Runtime and driver calls.
    pub api_calls: ApiCalls,
    /// Device work.
    pub activities: Activities,
    /// Named host ranges.
    pub ranges: Ranges,
    /// Allocator events.
    pub memory: MemoryEvents,
    /// Python calls.
    pub frames: PythonFrames,
    /// Profiler overhead.
    pub overheads: Overheads,
    /// Synchronisations, as the profiler describes them.
    pub sync_events: SyncEvents,
    /// Calls into the operating system's libraries.
    pub os_calls: OsCalls,
    /// Samples of what processors were running.
    pub cpu_samples: CpuSamples,
    /// What is said of collective operations.
    pub collectives: Collectives,
    /// Work of which the source has sums alone.
    pub aggregates: Aggregates,
    /// Events read, of every kind, those not kept included.
    pub events_read: u64,
}

impl Trace {
    /// The process that a lane's activities belong to is not recorded by every source, so correlation is joined by rank:
    /// this gives the rank of a lane.
    pub fn lane_rank(&self, lane: LaneId) -> u32 {
        self.devices[self.lanes[lane.index()].device.index()].rank
    }

    /// Where the node of a device activity comes from, if it is replayed from a graph and the recording saw the graph being made.
    pub fn capture_of(&self, activity: ActivityId) -> Option<&Capture> {
        if self.captures.is_empty() {
            return None;
        }
        let node = self.activities.graph_node(activity.index())?;
        let rank = self.lane_rank(self.activities.lane[activity.index()]);
        let at = self.captures.binary_search_by_key(&(rank, node), |capture| (capture.rank, capture.node)).ok()?;
        self.captures.get(at)
    }

    /// Whether sums are all there is: nothing says when anything ran.
    pub fn has_totals_only(&self) -> bool {
        !self.aggregates.is_empty()
            && self.host_ops.is_empty()
            && self.api_calls.is_empty()
            && self.activities.is_empty()
            && self.ranges.is_empty()
    }

    /// The rank of a thread.
    pub fn thread_rank(&self, thread: ThreadId) -> u32 {
        self.processes[self.threads[thread.index()].process.index()].rank
    }
}

/// Table lengths at some moment of building.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableMarks {
    host_ops: usize,
    api_calls: usize,
    activities: usize,
    ranges: usize,
    memory: usize,
    frames: usize,
    overheads: usize,
    sync_events: usize,
    os_calls: usize,
    cpu_samples: usize,
    collectives: usize,
    aggregates: usize,
    captures: usize,
}

/// An interned table of small values: a list and its reverse map.
#[derive(Debug)]
struct Unique<K> {
    map: HashMap<K, u32, FixedState>,
}

impl<K: Eq + Hash + Clone> Unique<K> {
    fn new() -> Self {
        Self { map: HashMap::with_hasher(FixedState::default()) }
    }

    fn find(&self, key: &K) -> Option<u32> {
        self.map.get(key).copied()
    }

    /// The index of `key`, and whether it is new.
    fn insert(&mut self, key: K) -> (u32, bool) {
        let next = self.map.len() as u32;
        let index = *self.map.entry(key).or_insert(next);
        (index, index == next && self.map.len() as u32 > next)
    }
}

/// Builds a [`Trace`] row by row.
#[derive(Debug)]
pub struct TraceBuilder {
    trace: Trace,
    processes: Unique<(u32, i64)>,
    threads: Unique<(ProcessId, Tid)>,
    devices: Unique<(u32, i64)>,
    lanes: Unique<Lane>,
    details: Unique<Detail>,
    graph_nodes: Unique<GraphNode>,
}

impl Default for TraceBuilder {
    fn default() -> Self {
        Self {
            trace: Trace::default(),
            processes: Unique::new(),
            threads: Unique::new(),
            devices: Unique::new(),
            lanes: Unique::new(),
            details: Unique::new(),
            graph_nodes: Unique::new(),
        }
    }
}

impl TraceBuilder {
    /// An empty trace.
    pub fn new() -> Self {
        Self::default()
    }

    /// The trace so far, for fields with no method of their own (`strings`, `versions`, `recorded`, `window`, `events_read`).
    pub fn trace_mut(&mut self) -> &mut Trace {
        &mut self.trace
    }

    /// Starts a recording; rows that follow belong to the index returned.
    pub fn add_rank(&mut self, info: RankInfo) -> u32 {
        self.trace.ranks.push(info);
        self.trace.ranks.len() as u32 - 1
    }

    /// The process `pid` of a recording.
    pub fn process(&mut self, rank: u32, pid: i64) -> ProcessId {
        let (index, new) = self.processes.insert((rank, pid));
        if new {
            self.trace.processes.push(Process { rank, pid, name: None });
        }
        ProcessId(index)
    }

    /// A thread of a process.
    pub fn thread(&mut self, process: ProcessId, tid: Tid) -> ThreadId {
        let (index, new) = self.threads.insert((process, tid.clone()));
        if new {
            self.trace.threads.push(Thread { process, tid, name: None });
        }
        ThreadId(index)
    }

    /// A device of a recording.
    pub fn device(&mut self, rank: u32, ordinal: i64) -> DeviceId {
        let (index, new) = self.devices.insert((rank, ordinal));
        if new {
            self.trace.devices.push(Device { rank, ordinal, properties: DeviceProperties::default() });
        }
        DeviceId(index)
    }

    /// A stream of a device.
    pub fn lane(&mut self, lane: Lane) -> LaneId {
        let (index, new) = self.lanes.insert(lane.clone());
        if new {
            self.trace.lanes.push(lane);
        }
        LaneId(index)
    }

    /// A launch shape or transfer.
    pub fn detail(&mut self, detail: Detail) -> DetailId {
        let (index, new) = self.details.insert(detail);
        if new {
            self.trace.details.push(detail);
        }
        DetailId(index)
    }

    /// A node of a device graph.
    pub fn graph_node(&mut self, node: GraphNode) -> GraphNodeId {
        let (index, new) = self.graph_nodes.insert(node);
        if new {
            self.trace.graph_nodes.push(node);
        }
        GraphNodeId(index)
    }

    /// A thread that has rows.
    pub fn find_thread(&self, rank: u32, pid: i64, tid: Tid) -> Option<ThreadId> {
        let process = self.processes.find(&(rank, pid))?;
        self.threads.find(&(ProcessId(process), tid)).map(ThreadId)
    }

    /// Names a thread that has rows; others are ignored.
    pub fn name_thread(&mut self, rank: u32, pid: i64, tid: Tid, name: StrId) {
        if let Some(thread) = self.find_thread(rank, pid, tid) {
            self.trace.threads[thread.index()].name = Some(name);
        }
    }

    /// Names a process that has rows; others are ignored.
    pub fn name_process(&mut self, rank: u32, pid: i64, name: StrId) {
        if let Some(process) = self.processes.find(&(rank, pid)) {
            self.trace.processes[process as usize].name = Some(name);
        }
    }

    /// How long each table is now, to address what is added later.
    pub fn marks(&self) -> TableMarks {
        let trace = &self.trace;
        TableMarks {
            host_ops: trace.host_ops.len(),
            api_calls: trace.api_calls.len(),
            activities: trace.activities.len(),
            ranges: trace.ranges.len(),
            memory: trace.memory.len(),
            frames: trace.frames.len(),
            overheads: trace.overheads.len(),
            sync_events: trace.sync_events.len(),
            os_calls: trace.os_calls.len(),
            cpu_samples: trace.cpu_samples.len(),
            collectives: trace.collectives.len(),
            aggregates: trace.aggregates.len(),
            captures: trace.captures.len(),
        }
    }

    /// Moves every row added since `marks` by `shift` nanoseconds.
    pub fn shift_times_since(&mut self, marks: &TableMarks, shift: Ns) {
        let trace = &mut self.trace;
        let columns = [
            &mut trace.host_ops.start[marks.host_ops..],
            &mut trace.api_calls.start[marks.api_calls..],
            &mut trace.activities.start[marks.activities..],
            &mut trace.ranges.start[marks.ranges..],
            &mut trace.memory.start[marks.memory..],
            &mut trace.frames.start[marks.frames..],
            &mut trace.overheads.start[marks.overheads..],
            &mut trace.sync_events.start[marks.sync_events..],
            &mut trace.os_calls.start[marks.os_calls..],
            &mut trace.cpu_samples.start[marks.cpu_samples..],
            &mut trace.collectives.start[marks.collectives..],
        ];
        for time in columns.into_iter().flatten() {
            *time += shift;
        }
        for capture in trace.captures.iter_mut().skip(marks.captures) {
            capture.at += shift;
        }
    }

    /// Removes every row added since `marks` whose start is not to be kept.
    pub fn remove_since(&mut self, marks: &TableMarks, keep: impl Fn(Ns) -> bool) {
        let trace = &mut self.trace;
        trace.host_ops.retain_starts(marks.host_ops, &keep);
        trace.api_calls.retain_starts(marks.api_calls, &keep);
        trace.activities.retain_starts(marks.activities, &keep);
        trace.ranges.retain_starts(marks.ranges, &keep);
        trace.memory.retain_starts(marks.memory, &keep);
        trace.frames.retain_starts(marks.frames, &keep);
        trace.overheads.retain_starts(marks.overheads, &keep);
        trace.sync_events.retain_starts(marks.sync_events, &keep);
        trace.os_calls.retain_starts(marks.os_calls, &keep);
        trace.cpu_samples.retain_starts(marks.cpu_samples, &keep);
        trace.collectives.retain_starts(marks.collectives, &keep);
        let kept = trace.captures.split_off(marks.captures.min(trace.captures.len()));
        trace.captures.extend(kept.into_iter().filter(|capture| keep(capture.at)));
    }

    /// Forgets the external ids of device activities and API calls added since `marks`: in some traces they are the
    /// correlation number again.
    pub fn forget_external_ids_since(&mut self, marks: &TableMarks) {
        self.trace.activities.forget_external_ids(marks.activities);
        self.trace.api_calls.forget_external_ids(marks.api_calls);
    }

    /// Adds an operator call.
    pub fn push_host_op(&mut self, row: HostOp) {
        self.trace.host_ops.push(row);
    }

    /// Adds an API call.
    pub fn push_api_call(&mut self, row: ApiCall) {
        self.trace.api_calls.push(row);
    }

    /// Adds a device activity.
    pub fn push_activity(&mut self, row: Activity) {
        self.trace.activities.push(row);
    }

    /// Adds a named range.
    pub fn push_range(&mut self, row: Range) {
        self.trace.ranges.push(row);
    }

    /// Adds an allocator event.
    pub fn push_memory_event(&mut self, row: MemoryEvent) {
        self.trace.memory.push(row);
    }

    /// Adds a Python call.
    pub fn push_frame(&mut self, row: PythonFrame) {
        self.trace.frames.push(row);
    }

    /// Adds profiler overhead.
    pub fn push_overhead(&mut self, row: Overhead) {
        self.trace.overheads.push(row);
    }

    /// Adds a synchronisation.
    pub fn push_sync_event(&mut self, row: SyncEvent) {
        self.trace.sync_events.push(row);
    }

    /// Adds a call into the operating system's libraries.
    pub fn push_os_call(&mut self, row: OsCall) {
        self.trace.os_calls.push(row);
    }

    /// Adds a sample of what a processor was running.
    pub fn push_cpu_sample(&mut self, row: CpuSample) {
        self.trace.cpu_samples.push(row);
    }

    /// Adds what is said of a collective operation.
    pub fn push_collective(&mut self, row: Collective) {
        self.trace.collectives.push(row);
    }

    /// Adds work of which the source has sums alone, and returns its row. What is around it must have been added before.
    pub fn push_aggregate(&mut self, row: Aggregate) -> AggregateId {
        self.trace.aggregates.push(row);
        AggregateId::from_index(self.trace.aggregates.len() - 1)
    }

    /// Says where a node of a device graph comes from. What is said of a node twice in one recording is dropped unless it is the same: processes
    /// may share numbers of nodes.
    pub fn push_capture(&mut self, row: Capture) {
        self.trace.captures.push(row);
    }

    /// Says that so many device activities follow: their columns get that much room at once, and no more.
    pub fn announce_activities(&mut self, rows: usize) {
        self.trace.activities.announce(rows);
    }

    /// Says that so many API calls follow.
    pub fn announce_api_calls(&mut self, rows: usize) {
        self.trace.api_calls.announce(rows);
    }

    /// Says that so many ranges follow.
    pub fn announce_ranges(&mut self, rows: usize) {
        self.trace.ranges.announce(rows);
    }

    /// The finished trace. Room that no row took is given back: columns grow by doubling.
    pub fn finish(self) -> Trace {
        let mut trace = self.trace;
        trace.host_ops.shrink();
        trace.api_calls.shrink();
        trace.activities.shrink();
        trace.ranges.shrink();
        trace.memory.shrink();
        trace.frames.shrink();
        trace.overheads.shrink();
        trace.sync_events.shrink();
        trace.os_calls.shrink();
        trace.cpu_samples.shrink();
        trace.collectives.shrink();
        trace.captures.sort_by_key(|capture| (capture.rank, capture.node));
        let chunks = trace.captures.chunk_by(|a, b| (a.rank, a.node) == (b.rank, b.node));
        trace.captures =
            chunks.filter(|same| same.windows(2).all(|pair| pair[0] == pair[1])).filter_map(|same| same.first().copied()).collect();
        trace
    }
}
