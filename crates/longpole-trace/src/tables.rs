//! The event tables: struct-of-arrays columns, with a row struct each for filling and reading.
//!
//! Columns are public slices, so that an analysis walks only those it needs. Identifiers that are often absent are kept
//! in columns that take no room while nothing is there, and come out as `Option`.

use crate::collectives::Collectives;
use crate::columns::{Column, OptId, OptU64};
use crate::ids::{DetailId, GraphNodeId, LaneId, StrId, ThreadId};
use crate::native::{CpuSamples, OsCalls};
use crate::ns::Ns;

macro_rules! table_len {
    ($($table:ident),*) => {$(
        impl $table {
            /// Number of rows.
            pub fn len(&self) -> usize {
                self.start.len()
            }

            /// True when there are no rows.
            pub fn is_empty(&self) -> bool {
                self.start.is_empty()
            }
        }
    )*};
}
table_len!(HostOps, ApiCalls, Activities, Ranges, PythonFrames, Overheads, MemoryEvents, SyncEvents, Collectives, OsCalls, CpuSamples);

macro_rules! table_columns {
    ($($table:ident { $($column:ident),* })*) => {$(
        impl $table {
            /// Keeps, of the rows from `from` on, those whose start is wanted.
            pub(crate) fn retain_starts(&mut self, from: usize, wanted: impl Fn(Ns) -> bool) {
                let keep: Vec<bool> = self.start[from..].iter().map(|start| wanted(*start)).collect();
                $(self.$column.retain_from(from, &keep);)*
            }

            /// Gives back what no row needs.
            pub(crate) fn shrink(&mut self) {
                $(self.$column.shrink();)*
            }
        }
    )*};
}
table_columns! {
    HostOps { name, thread, start, dur, external_id, shapes, types, strides, values }
    ApiCalls { name, thread, start, dur, correlation, external_id }
    Activities { kind, name, lane, start, dur, correlation, external_id, detail, graph_node }
    Ranges { name, thread, start, dur }
    MemoryEvents { thread, start, bytes, place, device, total_allocated, total_reserved }
    PythonFrames { name, thread, start, dur }
    Overheads { name, start, dur }
    OsCalls { name, thread, start, dur }
    CpuSamples { name, thread, start }
    SyncEvents { kind, rank, start, dur, device, context, stream, wait_on_stream, event_record }
    Collectives {
        place, start, name, group, group_ranks, dtype, group_size, in_elements, out_elements, sequence, source_rank, destination_rank
    }
}

macro_rules! table_announce {
    ($($table:ident { $($column:ident),* })*) => {$(
        impl $table {
            /// Makes room for so many rows more, and for no others.
            pub(crate) fn announce(&mut self, rows: usize) {
                $(self.$column.announce(rows);)*
            }
        }
    )*};
}
table_announce! {
    ApiCalls { name, thread, start, dur, correlation, external_id }
    Activities { kind, name, lane, start, dur, correlation, external_id, detail, graph_node }
    Ranges { name, thread, start, dur }
}

macro_rules! table_end {
    ($($table:ident),*) => {$(
        impl $table {
            /// When the event of row `index` ends.
            pub fn end(&self, index: usize) -> Ns {
                self.start[index] + self.dur[index]
            }
        }
    )*};
}
table_end!(HostOps, ApiCalls, Activities, Ranges, PythonFrames, Overheads, SyncEvents, OsCalls);

/// An operator call on the host, as one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostOp {
    /// Operator name, e.g. `aten::mm`.
    pub name: StrId,
    /// Thread it ran on.
    pub thread: ThreadId,
    /// When it began.
    pub start: Ns,
    /// How long it took.
    pub dur: Ns,
    /// The producer's id of this call; device events may name it as their launcher.
    pub external_id: Option<u64>,
    /// Input shapes in canonical text, e.g. `[[1, 1024], []]`.
    pub shapes: Option<StrId>,
    /// Input types in canonical text, e.g. `["c10::BFloat16", "Scalar"]`.
    pub types: Option<StrId>,
    /// Input strides in canonical text, e.g. `[[1024, 1], []]`.
    pub strides: Option<StrId>,
    /// Values of the inputs that are no tensors, in canonical text, e.g. `["", "[-1]"]`.
    pub values: Option<StrId>,
}

/// Operator calls on the host, in file order.
#[derive(Debug, Default)]
pub struct HostOps {
    /// Operator names.
    pub name: Vec<StrId>,
    /// Threads.
    pub thread: Vec<ThreadId>,
    /// Start times.
    pub start: Vec<Ns>,
    /// Durations.
    pub dur: Vec<Ns>,
    external_id: OptU64,
    shapes: OptId,
    types: OptId,
    strides: OptId,
    values: OptId,
}

impl HostOps {
    pub(crate) fn push(&mut self, row: HostOp) {
        self.name.push(row.name);
        self.thread.push(row.thread);
        self.start.push(row.start);
        self.dur.push(row.dur);
        self.external_id.push(row.external_id);
        self.shapes.push(row.shapes.map(|s| s.0));
        self.types.push(row.types.map(|s| s.0));
        self.strides.push(row.strides.map(|s| s.0));
        self.values.push(row.values.map(|s| s.0));
    }

    /// Renames all that is recorded of inputs; `moved` holds the new id of every old one.
    pub(crate) fn rename_inputs(&mut self, moved: &[StrId]) {
        for column in [&mut self.shapes, &mut self.types, &mut self.strides, &mut self.values] {
            column.rename(moved);
        }
    }

    /// The producer's id of the call.
    pub fn external_id(&self, index: usize) -> Option<u64> {
        self.external_id.get(index)
    }

    /// Input shapes.
    pub fn shapes(&self, index: usize) -> Option<StrId> {
        self.shapes.get(index).map(StrId)
    }

    /// Input types.
    pub fn types(&self, index: usize) -> Option<StrId> {
        self.types.get(index).map(StrId)
    }

    /// Input strides.
    pub fn strides(&self, index: usize) -> Option<StrId> {
        self.strides.get(index).map(StrId)
    }

    /// Values of the inputs that are no tensors.
    pub fn values(&self, index: usize) -> Option<StrId> {
        self.values.get(index).map(StrId)
    }
}

/// A runtime or driver API call, as one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ApiCall {
    /// Function name, e.g. `cudaLaunchKernel`.
    pub name: StrId,
    /// Calling thread.
    pub thread: ThreadId,
    /// When the call began.
    pub start: Ns,
    /// How long it took.
    pub dur: Ns,
    /// Joins the call to the device activities it caused, within its process.
    pub correlation: Option<u64>,
    /// The operator the producer says made the call.
    pub external_id: Option<u64>,
}

/// Runtime and driver API calls, in file order.
#[derive(Debug, Default)]
pub struct ApiCalls {
    /// Function names.
    pub name: Vec<StrId>,
    /// Calling threads.
    pub thread: Vec<ThreadId>,
    /// Start times.
    pub start: Vec<Ns>,
    /// Durations.
    pub dur: Vec<Ns>,
    correlation: OptU64,
    external_id: OptU64,
}

impl ApiCalls {
    pub(crate) fn forget_external_ids(&mut self, from: usize) {
        self.external_id.clear_from(from);
    }

    pub(crate) fn push(&mut self, row: ApiCall) {
        self.name.push(row.name);
        self.thread.push(row.thread);
        self.start.push(row.start);
        self.dur.push(row.dur);
        self.correlation.push(row.correlation);
        self.external_id.push(row.external_id);
    }

    /// Correlation number of the call.
    pub fn correlation(&self, index: usize) -> Option<u64> {
        self.correlation.get(index)
    }

    /// External id of the call.
    pub fn external_id(&self, index: usize) -> Option<u64> {
        self.external_id.get(index)
    }
}

/// What a device activity is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ActivityKind {
    /// A kernel.
    Kernel,
    /// A memory copy.
    Memcpy,
    /// A memory fill.
    Memset,
    /// Work of an accelerator this version has no name for.
    Other,
}

/// Direction of a memory copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MemcpyKind {
    /// Host to device.
    HostToDevice,
    /// Device to host.
    DeviceToHost,
    /// Within one device.
    DeviceToDevice,
    /// Between two devices.
    PeerToPeer,
    /// Host to host.
    HostToHost,
    /// Not said.
    Unknown,
}

/// How a kernel was launched. Absent numbers were not recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct LaunchConfig {
    /// Blocks in x, y and z.
    pub grid: Option<[u32; 3]>,
    /// Threads a block in x, y and z.
    pub block: Option<[u32; 3]>,
    /// Registers a thread.
    pub registers_per_thread: Option<u32>,
    /// Shared memory a block, static and dynamic, in bytes.
    pub shared_bytes: Option<u32>,
}

/// What a copy or fill moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Transfer {
    /// Bytes moved.
    pub bytes: Option<u64>,
    /// Direction of a copy; `Unknown` for a fill.
    pub kind: MemcpyKind,
    /// True when the host side is pageable memory, false when pinned, absent when the trace does not say.
    pub pageable: Option<bool>,
}

/// The repeated part of an activity, interned: real traces have few distinct launch shapes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Detail {
    /// Of a kernel.
    Launch(LaunchConfig),
    /// Of a copy or fill.
    Transfer(Transfer),
}

/// A node of a device graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GraphNode {
    /// The graph.
    pub graph: u64,
    /// The node within it.
    pub node: u64,
}

/// Where a node of a device graph comes from: the host called what became the node there and then. The device work of a replay belongs to the
/// launch of the replay all the same; this says what the node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capture {
    /// The recording.
    pub rank: u32,
    /// The node.
    pub node: GraphNodeId,
    /// The thread that made it.
    pub thread: ThreadId,
    /// When.
    pub at: Ns,
}

/// A device activity, as one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Activity {
    /// What it is.
    pub kind: ActivityKind,
    /// Kernel name, or the producer's label of a copy.
    pub name: StrId,
    /// Device, context and stream.
    pub lane: LaneId,
    /// When it began on the device.
    pub start: Ns,
    /// How long it ran.
    pub dur: Ns,
    /// Joins it to the API call that launched it, within its process.
    pub correlation: Option<u64>,
    /// The operator the producer says launched it.
    pub external_id: Option<u64>,
    /// Launch shape or transfer.
    pub detail: Option<DetailId>,
    /// Graph node, when it was replayed from a graph and the trace says so.
    pub graph_node: Option<GraphNodeId>,
}

/// Device activities, in file order.
#[derive(Debug, Default)]
pub struct Activities {
    /// Kinds.
    pub kind: Vec<ActivityKind>,
    /// Kernel names and copy labels.
    pub name: Vec<StrId>,
    /// Device, context and stream.
    pub lane: Vec<LaneId>,
    /// Start times on the device.
    pub start: Vec<Ns>,
    /// Durations.
    pub dur: Vec<Ns>,
    correlation: OptU64,
    external_id: OptU64,
    detail: OptId,
    graph_node: OptId,
}

impl Activities {
    pub(crate) fn forget_external_ids(&mut self, from: usize) {
        self.external_id.clear_from(from);
    }

    pub(crate) fn push(&mut self, row: Activity) {
        self.kind.push(row.kind);
        self.name.push(row.name);
        self.lane.push(row.lane);
        self.start.push(row.start);
        self.dur.push(row.dur);
        self.correlation.push(row.correlation);
        self.external_id.push(row.external_id);
        self.detail.push(row.detail.map(|d| d.0));
        self.graph_node.push(row.graph_node.map(|g| g.0));
    }

    /// Correlation number of the activity.
    pub fn correlation(&self, index: usize) -> Option<u64> {
        self.correlation.get(index)
    }

    /// The operator the producer says launched it.
    pub fn external_id(&self, index: usize) -> Option<u64> {
        self.external_id.get(index)
    }

    /// Launch shape or transfer, an id into [`crate::Trace::details`].
    pub fn detail(&self, index: usize) -> Option<DetailId> {
        self.detail.get(index).map(DetailId)
    }

    /// Graph node, an id into [`crate::Trace::graph_nodes`].
    pub fn graph_node(&self, index: usize) -> Option<GraphNodeId> {
        self.graph_node.get(index).map(GraphNodeId)
    }
}

/// A named host range (record_function, NVTX, ProfilerStep), as one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// Name as written.
    pub name: StrId,
    /// Thread that opened it.
    pub thread: ThreadId,
    /// When it was opened.
    pub start: Ns,
    /// How long it was open.
    pub dur: Ns,
}

/// Named host ranges, in file order.
#[derive(Debug, Default)]
pub struct Ranges {
    /// Names as written.
    pub name: Vec<StrId>,
    /// Threads.
    pub thread: Vec<ThreadId>,
    /// Start times.
    pub start: Vec<Ns>,
    /// Durations.
    pub dur: Vec<Ns>,
}

impl Ranges {
    pub(crate) fn push(&mut self, row: Range) {
        self.name.push(row.name);
        self.thread.push(row.thread);
        self.start.push(row.start);
        self.dur.push(row.dur);
    }
}

/// Whose memory an allocator event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MemoryPlace {
    /// Host memory.
    Host,
    /// Accelerator memory.
    Device,
}

/// An allocation (positive bytes) or free (negative bytes), as one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryEvent {
    /// Thread that made it.
    pub thread: ThreadId,
    /// When.
    pub start: Ns,
    /// Bytes: positive allocates, negative frees.
    pub bytes: i64,
    /// Whose memory.
    pub place: MemoryPlace,
    /// Device number for accelerator memory, if said.
    pub device: Option<u32>,
    /// Bytes allocated on that device after the event, if said.
    pub total_allocated: Option<u64>,
    /// Bytes the allocator holds on that device after the event, if said.
    pub total_reserved: Option<u64>,
}

/// Allocator events, in file order.
#[derive(Debug, Default)]
pub struct MemoryEvents {
    /// Threads.
    pub thread: Vec<ThreadId>,
    /// When.
    pub start: Vec<Ns>,
    /// Bytes: positive allocates, negative frees.
    pub bytes: Vec<i64>,
    /// Whose memory.
    pub place: Vec<MemoryPlace>,
    device: OptId,
    total_allocated: OptU64,
    total_reserved: OptU64,
}

impl MemoryEvents {
    pub(crate) fn push(&mut self, row: MemoryEvent) {
        self.thread.push(row.thread);
        self.start.push(row.start);
        self.bytes.push(row.bytes);
        self.place.push(row.place);
        self.device.push(row.device);
        self.total_allocated.push(row.total_allocated);
        self.total_reserved.push(row.total_reserved);
    }

    /// Device number for accelerator memory.
    pub fn device(&self, index: usize) -> Option<u32> {
        self.device.get(index)
    }

    /// Bytes allocated on that device after the event.
    pub fn total_allocated(&self, index: usize) -> Option<u64> {
        self.total_allocated.get(index)
    }

    /// Bytes the allocator holds on that device after the event.
    pub fn total_reserved(&self, index: usize) -> Option<u64> {
        self.total_reserved.get(index)
    }
}

/// A Python function call or module forward, as one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PythonFrame {
    /// `file.py(line): function`, or `nn.Module: Linear_0`.
    pub name: StrId,
    /// Thread.
    pub thread: ThreadId,
    /// When it began.
    pub start: Ns,
    /// How long it took.
    pub dur: Ns,
}

/// Python function calls, in file order.
#[derive(Debug, Default)]
pub struct PythonFrames {
    /// `file.py(line): function`, or `nn.Module: Linear_0`.
    pub name: Vec<StrId>,
    /// Threads.
    pub thread: Vec<ThreadId>,
    /// Start times.
    pub start: Vec<Ns>,
    /// Durations.
    pub dur: Vec<Ns>,
}

impl PythonFrames {
    pub(crate) fn push(&mut self, row: PythonFrame) {
        self.name.push(row.name);
        self.thread.push(row.thread);
        self.start.push(row.start);
        self.dur.push(row.dur);
    }
}

/// Time the profiler spent on itself, as one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overhead {
    /// What it did.
    pub name: StrId,
    /// When it began.
    pub start: Ns,
    /// How long it took.
    pub dur: Ns,
}

/// Profiler overhead, in file order.
#[derive(Debug, Default)]
pub struct Overheads {
    /// What it did.
    pub name: Vec<StrId>,
    /// Start times.
    pub start: Vec<Ns>,
    /// Durations.
    pub dur: Vec<Ns>,
}

impl Overheads {
    pub(crate) fn push(&mut self, row: Overhead) {
        self.name.push(row.name);
        self.start.push(row.start);
        self.dur.push(row.dur);
    }
}

/// What a synchronisation waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SyncKind {
    /// A stream waits for an event: its later work starts only when the event has happened. The host goes on.
    StreamWaitsForEvent,
    /// The host waits for an event, or asks about it.
    Event,
    /// The host waits for a stream.
    Stream,
    /// The host waits for all work of a context.
    Context,
    /// Something else.
    Other,
}

/// A synchronisation, as one row. It is what the profiler says beside the API call that made it: no device work, and no host work
/// of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncEvent {
    /// What waits for what.
    pub kind: SyncKind,
    /// The recording, an index into [`crate::Trace::ranks`].
    pub rank: u32,
    /// When it was asked for, on the host.
    pub start: Ns,
    /// How long that took.
    pub dur: Ns,
    /// Device number, as in [`crate::Device::ordinal`].
    pub device: Option<i64>,
    /// Context.
    pub context: Option<i64>,
    /// The stream that waits, or is waited for by the host.
    pub stream: Option<i64>,
    /// For an event: the stream it was recorded on.
    pub wait_on_stream: Option<i64>,
    /// For an event: correlation number of the API call that recorded it.
    pub event_record: Option<u64>,
}

/// Synchronisations, in file order. They name streams by number, since a stream that only waits has no activity and no lane.
#[derive(Debug, Default)]
pub struct SyncEvents {
    /// What waits for what.
    pub kind: Vec<SyncKind>,
    /// Recordings, indexes into [`crate::Trace::ranks`].
    pub rank: Vec<u32>,
    /// When it was asked for, on the host.
    pub start: Vec<Ns>,
    /// How long that took.
    pub dur: Vec<Ns>,
    /// Device numbers.
    pub device: Vec<Option<i64>>,
    /// Contexts.
    pub context: Vec<Option<i64>>,
    /// Streams that wait, or are waited for by the host.
    pub stream: Vec<Option<i64>>,
    /// For events: the streams they were recorded on.
    pub wait_on_stream: Vec<Option<i64>>,
    event_record: OptU64,
}

impl SyncEvents {
    pub(crate) fn push(&mut self, row: SyncEvent) {
        self.kind.push(row.kind);
        self.rank.push(row.rank);
        self.start.push(row.start);
        self.dur.push(row.dur);
        self.device.push(row.device);
        self.context.push(row.context);
        self.stream.push(row.stream);
        self.wait_on_stream.push(row.wait_on_stream);
        self.event_record.push(row.event_record);
    }

    /// For an event: correlation number of the API call that recorded it.
    pub fn event_record(&self, index: usize) -> Option<u64> {
        self.event_record.get(index)
    }
}
