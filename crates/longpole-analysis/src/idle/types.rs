//! What `idle` answers with.

use longpole_trace::{DeviceId, Ns, StrId};

use crate::ranges::RangePath;

/// Why a device was idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IdleCause {
    /// The launching thread was in a call that waits for the device, and the device had nothing to do.
    BlockedInSync,
    /// It was in an operator's own time: the framework's dispatch.
    Dispatch,
    /// It was in a recorded Python function, innermost.
    Python,
    /// It was in no operator, and no Python frame says where.
    OutsideOperators,
    /// It was getting or returning memory.
    Allocation,
    /// It was launching a device graph.
    GraphLaunch,
    /// It was compiling, tuning or loading code.
    CompileOrLoad,
    /// The profiler was busy with itself.
    Profiler,
    /// The work was launched, and starting it took this long.
    LaunchLatency,
    /// The work was launched, and its stream waited for an event.
    EventWait,
    /// The work was launched, and waited for work of another stream.
    Dependency,
    /// Between two activities of one graph launch.
    GraphInternal,
    /// The work was launched, and the device switched between computing and copying.
    CopyEngine,
    /// Nothing in the trace says why.
    NothingRecorded,
}

impl IdleCause {
    /// Number of causes.
    pub const COUNT: usize = Self::ALL.len();

    /// All causes, those of the host first.
    pub const ALL: [Self; 14] = [
        Self::BlockedInSync,
        Self::Dispatch,
        Self::Python,
        Self::OutsideOperators,
        Self::Allocation,
        Self::GraphLaunch,
        Self::CompileOrLoad,
        Self::Profiler,
        Self::LaunchLatency,
        Self::EventWait,
        Self::Dependency,
        Self::GraphInternal,
        Self::CopyEngine,
        Self::NothingRecorded,
    ];

    /// Its name in output.
    pub const fn code(self) -> &'static str {
        match self {
            Self::BlockedInSync => "blocked_in_sync",
            Self::Dispatch => "dispatch",
            Self::Python => "python",
            Self::OutsideOperators => "outside_operators",
            Self::Allocation => "allocation",
            Self::GraphLaunch => "graph_launch",
            Self::CompileOrLoad => "compile_or_load",
            Self::Profiler => "profiler",
            Self::LaunchLatency => "launch_latency",
            Self::EventWait => "event_wait",
            Self::Dependency => "dependency",
            Self::GraphInternal => "graph_internal",
            Self::CopyEngine => "copy_engine",
            Self::NothingRecorded => "nothing_recorded",
        }
    }

    /// Whether the work that ended the idle time was launched already, so that a faster host would not have helped.
    pub const fn is_device_side(self) -> bool {
        matches!(self, Self::LaunchLatency | Self::EventWait | Self::Dependency | Self::GraphInternal | Self::CopyEngine)
    }

    /// Its position in [`Self::ALL`].
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// Idle time of one cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CauseRow {
    /// The cause.
    pub cause: IdleCause,
    /// Its idle time.
    pub idle_ns: Ns,
    /// Longest stretches of this cause without a break, counted.
    pub intervals: u64,
    /// The longest of them.
    pub largest_ns: Ns,
    /// When that began, on the trace's own clock.
    pub largest_at: Ns,
    /// On which device it was.
    pub largest_on: DeviceId,
}

/// What kind of thing a host frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FrameKind {
    /// An operator, in its own time.
    Operator,
    /// A runtime or driver call.
    Call,
    /// A Python function.
    Python,
    /// A call into the operating system's libraries, innermost, in no runtime or driver call.
    OsCall,
    /// A named range, with no operator, call or Python function open inside it.
    Range,
    /// A record of the profiler about itself or about loading code.
    Overhead,
    /// None was open.
    Nothing,
}

/// Where the host was, innermost. For causes on the device's side: the call that launched the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostFrame {
    /// What it is.
    pub kind: FrameKind,
    /// Its name; absent for [`FrameKind::Nothing`].
    pub name: Option<StrId>,
    /// The innermost operator around a call.
    pub inside: Option<StrId>,
}

impl HostFrame {
    /// No frame.
    pub const NOTHING: Self = Self { kind: FrameKind::Nothing, name: None, inside: None };
}

/// What CPU samples say of the threads that devices waited for.
///
/// A sample is a moment, not a stretch of time: how many there are of a function is in proportion to the time in it, where the recorder
/// samples by the clock. Nothing is made of single samples.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostSamples {
    /// Samples of a launching thread while a device waited for it to launch; each is counted once.
    pub samples: u64,
    /// By innermost function, most first; equal numbers by name.
    pub rows: Vec<SampleRow>,
}

/// Samples of one function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampleRow {
    /// The innermost function of the stack.
    pub name: String,
    /// Its samples.
    pub samples: u64,
}

/// Idle time of one host frame and cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameRow {
    /// What the frame is.
    pub kind: FrameKind,
    /// Its name; absent for [`FrameKind::Nothing`].
    pub name: Option<String>,
    /// The innermost operator around a call.
    pub inside: Option<String>,
    /// The cause.
    pub cause: IdleCause,
    /// Idle time.
    pub idle_ns: Ns,
    /// Stretches without a break.
    pub intervals: u64,
    /// The longest of them.
    pub largest_ns: Ns,
}

/// Idle time inside a range: for each instance and device, between the first start and last end of the work launched inside, and
/// only where the device ran nothing at all; on 64 devices an instance at most. Rows of nested ranges hold the same time, so they do not add up to a total.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeIdle {
    /// Name of the range; `ProfilerStep#3` is listed as `ProfilerStep*`.
    pub name: String,
    /// The ranges around it.
    pub parents: RangePath,
    /// Number of instances, those without device work included.
    pub calls: u64,
    /// Sum over instances and devices of first start to last end.
    pub span_ns: Ns,
    /// Idle time in it.
    pub idle_ns: Ns,
    /// The part of it in which nothing was queued for the device either.
    pub empty_queue_ns: Ns,
    /// Its causes that occur, largest first, with their time.
    pub causes: Vec<(IdleCause, Ns)>,
}

/// Work that was launched and had not started, over a window: the span of a device, or the sum over devices.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Queue {
    /// Length of the window: first start to last end of the scope's activity.
    pub window_ns: Ns,
    /// Time in which the device was idle and nothing was queued for it.
    pub empty_ns: Ns,
    /// Activities queued, averaged over time. Absent when the window has no length.
    pub mean_depth: Option<f64>,
    /// Most activities queued at any moment on one device.
    pub max_depth: u64,
    /// Activities in the window that have no launch in the trace, and are in no queue.
    pub unlaunched: u64,
}

impl Queue {
    /// [`Self::empty_ns`] as a share of the window, 0..1; absent when the window has no length.
    pub fn empty_fraction(&self) -> Option<f64> {
        (self.window_ns > Ns::ZERO).then(|| self.empty_ns.get() as f64 / self.window_ns.get() as f64)
    }
}

/// The queue in one slice of a device's window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QueueSample {
    /// When the slice begins, on the trace's own clock.
    pub start: Ns,
    /// When it ends.
    pub end: Ns,
    /// Activities queued, averaged over the slice.
    pub mean_depth: f64,
    /// Most activities queued at any moment.
    pub max_depth: u64,
    /// Time in which the device was idle and nothing was queued.
    pub empty_ns: Ns,
}

/// Idle time of one device.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceIdle {
    /// The device.
    pub device: DeviceId,
    /// First start to last end of the scope's activity on it.
    pub span_ns: Ns,
    /// Time in it in which the device ran nothing at all, in or out of scope.
    pub idle_ns: Ns,
    /// Number of gaps.
    pub gaps: u64,
    /// Causes that occur, largest first; their sum is `idle_ns`.
    pub causes: Vec<CauseRow>,
    /// The queue.
    pub queue: Queue,
    /// The queue over time: slices of equal length, at most [`DeviceIdle::SAMPLES`], fewer for a device with few activities.
    pub queue_over_time: Vec<QueueSample>,
}

impl DeviceIdle {
    /// Most slices of [`Self::queue_over_time`].
    pub const SAMPLES: usize = 120;
}

/// Idle time of a scope.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IdleTable {
    /// Sum over devices; absent when the scope has no device activity.
    pub idle_ns: Option<Ns>,
    /// Sum over devices of first start to last end.
    pub span_ns: Option<Ns>,
    /// Causes that occur, largest first; their sum is `idle_ns`.
    pub causes: Vec<CauseRow>,
    /// By range, in the order of the range table; ranges without device work are left out.
    pub by_range: Vec<RangeIdle>,
    /// By host frame and cause, largest first; their sum is `idle_ns`.
    pub by_frame: Vec<FrameRow>,
    /// What launching threads ran meanwhile; absent when the recording has no CPU samples.
    pub host_samples: Option<HostSamples>,
    /// The queues of all devices together.
    pub queue: Queue,
    /// Each device.
    pub devices: Vec<DeviceIdle>,
    /// Gaps whose time before the launch was not split, and went to what the thread did as they began: more devices than
    /// [`IdleTable::SPLIT_TOGETHER`] waited for one thread at once.
    pub unsplit_gaps: u64,
}

impl IdleTable {
    /// Devices that wait for one thread at once and still have every moment of it told apart.
    pub const SPLIT_TOGETHER: usize = 64;
}

/// A stretch of a device's idle time with one cause and one host frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdlePiece {
    /// The device.
    pub device: DeviceId,
    /// When it begins, on the trace's own clock.
    pub start: Ns,
    /// When it ends.
    pub end: Ns,
    /// Why.
    pub cause: IdleCause,
    /// Where the host was.
    pub frame: HostFrame,
}

/// A stretch of a device's idle time with one cause, as long as it lasts within one gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdleStretch {
    /// The device.
    pub device: DeviceId,
    /// When it begins, on the trace's own clock.
    pub start: Ns,
    /// When it ends.
    pub end: Ns,
    /// Why.
    pub cause: IdleCause,
}
