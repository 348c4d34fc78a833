//! What an overview is made of.

use longpole_trace::{ActivityId, DeviceId, Interval, LaneId, Ns, StrId, ThreadId};

use crate::idle::IdleCause;
use crate::index::NodeId;

/// How large an overview may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OverviewOptions {
    /// Most single events, over all lanes; somewhat more where many long ones reach into the windows.
    pub events: usize,
    /// Most blocks of the finest levels, over all lanes.
    pub blocks: usize,
    /// Most host threads, those with most launches first.
    pub threads: usize,
    /// Most streams, those with most activities first.
    pub streams: usize,
    /// Most nodes of the tree.
    pub icicle_nodes: usize,
    /// Slices that a curve is cut in.
    pub curve_slices: usize,
    /// Most moments of groups of steps, of kernels, of operators, and of ranges.
    pub moments: usize,
}

impl Default for OverviewOptions {
    fn default() -> Self {
        // A million events take about 6 MB of a page. Beside 200,000 they cost a tenth of a second on recordings of 700,000 to 930,000 events, and
        // less than nothing on larger ones, where windows need not be halved until they fit.
        Self { events: 1_000_000, blocks: 80_000, threads: 128, streams: 128, icicle_nodes: 4_000, curve_slices: 1_000, moments: 200 }
    }
}

/// A recording to look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overview {
    /// First to last event, on the trace's own clock.
    pub window: Interval,
    /// Lanes: those of each device together, then those of each thread.
    pub lanes: Vec<OverviewLane>,
    /// Threads with host events that have no lanes.
    pub threads_left_out: usize,
    /// Streams with activities that have no lane.
    pub streams_left_out: usize,
    /// Events of all lanes.
    pub events_total: u64,
    /// Ranges, operators, and what they launched, in preorder; empty when there is neither host nor device work.
    pub icicle: Vec<IcicleNode>,
    /// Nodes that the tree has without a limit, those aside that stand for what was too small.
    pub icicle_total: usize,
    /// Quantities over time.
    pub curves: Vec<Curve>,
    /// Where to look.
    pub moments: Vec<Moment>,
    /// Moments that there are without a limit.
    pub moments_total: usize,
}

impl Overview {
    /// Single events of all lanes.
    pub fn events_kept(&self) -> usize {
        self.lanes.iter().map(|lane| lane.events.len()).sum()
    }
}

/// What a lane holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LaneKind {
    /// Steps of a device, those left out included.
    Steps,
    /// Idle time of a device by cause.
    Gaps,
    /// Activities of a stream.
    Stream,
    /// Named ranges of a thread.
    Ranges,
    /// Operators of a thread.
    Ops,
    /// Runtime and driver calls of a thread.
    Calls,
}

/// Whose lane it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LanePlace {
    /// A device's.
    Device(DeviceId),
    /// A stream's.
    Stream(LaneId),
    /// A host thread's.
    Thread(ThreadId),
}

/// What an event is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventName {
    /// A name of the trace.
    Text(StrId),
    /// Why a device was idle.
    Cause(IdleCause),
    /// Name of a group of steps, by its position in the table.
    Group(u32),
}

/// What an event of a lane is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventOrigin {
    /// Device work.
    Activity(ActivityId),
    /// A range, operator or call.
    Node(NodeId),
    /// A stretch of idle time, by its position in the list.
    Stretch(u32),
    /// A step, by its number on its device.
    Step(u32),
}

/// One lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverviewLane {
    /// What it holds.
    pub kind: LaneKind,
    /// Whose.
    pub place: LanePlace,
    /// Rows it needs: depth of nesting, or how many ran at once. At least 1.
    pub rows: u32,
    /// Its events.
    pub total: u64,
    /// Time that events cover, added up over rows.
    pub busy: Ns,
    /// Number of its first kept event; events are numbered over all lanes.
    pub first: u32,
    /// Kept events, by start.
    pub events: Vec<OverviewEvent>,
    /// Windows in which all events are kept, ascending, disjoint; their ends are inside.
    pub complete: Vec<Interval>,
    /// Summaries, finest first.
    pub levels: Vec<Level>,
}

/// A kept event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OverviewEvent {
    /// When it starts.
    pub start: Ns,
    /// How long it lasts; never negative.
    pub dur: Ns,
    /// What it is called.
    pub name: EventName,
    /// Its row.
    pub row: u32,
    /// What it is.
    pub origin: EventOrigin,
    /// Of device work: number of the kept event that is the call it was launched by.
    pub launch: Option<u32>,
    /// Of device work: name of the operator it was launched in, failing that of the innermost range.
    pub owner: Option<StrId>,
}

/// A summary of a lane: of each row, events in order of start are put together as long as they lie within `resolution`. So a block of several
/// events is at most that long, and any two neighbours of a row take more together: a level has at most two blocks a row for each
/// `resolution` of the window, and one more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Level {
    /// Longest block of several events.
    pub resolution: Ns,
    /// Blocks, by start and row.
    pub blocks: Vec<Block>,
}

/// Events of one row that lie close together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// First start.
    pub start: Ns,
    /// First start to last end.
    pub dur: Ns,
    /// The row.
    pub row: u32,
    /// Events.
    pub count: u64,
    /// Time that they cover and no earlier event of the row covered.
    pub busy: Ns,
    /// The name that covers most of that; of equals the first.
    pub name: EventName,
}

/// What a node of the tree is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IcicleKind {
    /// Everything.
    Root,
    /// Ranges of one name.
    Range,
    /// Operators of one name.
    Op,
    /// Calls of one name.
    Call,
    /// Device work of one name.
    Kernel,
    /// What was too small for nodes of its own.
    Rest,
    /// Device work whose launch is not recorded.
    NoLaunch,
}

/// A node of the tree; its sums include its children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IcicleNode {
    /// Position of the node around it; the root has none.
    pub parent: Option<u32>,
    /// What it is.
    pub kind: IcicleKind,
    /// Its name, but of the root, the rest, and work without a launch.
    pub name: Option<StrId>,
    /// Host time: start to end, over all instances. Of the root: of what is in nothing else. Absent for device work.
    pub host_ns: Option<Ns>,
    /// Time of device work launched inside.
    pub device_ns: Ns,
    /// Instances. Of the rest: those of the nodes it stands for.
    pub calls: u64,
}

/// What a curve shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CurveKind {
    /// Work launched and not started.
    QueueDepth,
    /// Bytes allocated.
    MemoryAllocated,
    /// Bytes that the allocator holds.
    MemoryReserved,
}

/// A quantity over time. Of each slice of time the first least and the first largest value are kept, and the last one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Curve {
    /// What it shows.
    pub kind: CurveKind,
    /// The recording, an index into the trace's ranks.
    pub rank: u32,
    /// Number of the device.
    pub device: i64,
    /// When, and the value from then on. Times never fall.
    pub points: Vec<(Ns, u64)>,
}

/// What a moment shows.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MomentSubject {
    /// A suspect, by its position in the list.
    Smell(u32),
    /// A cause of idle time.
    Cause(IdleCause),
    /// A step: position of the group in the table, number of the step.
    Step(u32, u32),
    /// A kernel, copy or fill.
    Kernel(StrId),
    /// An operator.
    Op(StrId),
    /// A range; numbered steps of the profiler are one range.
    Range(String),
}

/// A moment to look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    /// What it shows.
    pub subject: MomentSubject,
    /// What is seen there, in words.
    pub label: &'static str,
    /// From when to look.
    pub start: Ns,
    /// Until when.
    pub end: Ns,
    /// Position of the lane.
    pub lane: Option<u32>,
    /// Number of the kept event.
    pub event: Option<u32>,
}
