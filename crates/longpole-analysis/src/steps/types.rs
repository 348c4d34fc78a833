//! What step finding gives: groups of like steps, their layers, and a table by place in the step.
//!
//! A [`StepGroup`] has a *canonical sequence*: prologue, layers of one or more kinds, epilogue. Every place of it is a [`StepRow`], and
//! every activity of every step belongs to exactly one row ([`Step::rows`] runs beside [`Step::activities`]). Work that fits no place is in
//! a row without a place, one a kernel name and part, so that nothing is lost from the sums.
//!
//! All times are integer nanoseconds. *Busy* is the union of a step's activities on its device, *span* first start to last end, *period*
//! start to start of this step and the next one of the same group that follows it directly. Where activities overlap, the time
//! belongs to the one that started first (of equal starts, to the one first in the step's order), so rows' `total_ns` sum to
//! `total_busy_ns` exactly.

use std::fmt;

use longpole_trace::{ActivityId, ActivityKind, DeviceId, Ns, RangeId, StrId};

use super::roles::BorrowedRoles;

/// How steps are to be found.
#[derive(Clone, Copy, Default)]
pub struct StepOptions<'o> {
    /// Only ranges whose name it accepts are step markers; without markers (or with `ignore_ranges`), only groups whose name it accepts
    /// are listed.
    pub filter: Option<&'o (dyn Fn(&str) -> bool + Sync)>,
    /// Do not use ranges, as if none had been recorded.
    pub ignore_ranges: bool,
    /// Keep only the second half of each group's steps, so that what warms up in the first is not in the figures.
    pub last_half: bool,
    /// Starts of windows of time that are halved each by itself, ascending, as [`window_starts`](super::window_starts) gives them; none for one
    /// window around everything but those of the recording itself. Two steps in different windows do not follow each other.
    pub windows: &'o [Ns],
}

impl fmt::Debug for StepOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StepOptions")
            .field("filter", &self.filter.map(|_| "a predicate"))
            .field("ignore_ranges", &self.ignore_ranges)
            .field("last_half", &self.last_half)
            .field("windows", &self.windows.len())
            .finish()
    }
}

/// The steps of a trace, in groups of like steps.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepTable {
    /// Groups, by device, then by first step.
    pub groups: Vec<StepGroup>,
    /// Device activities in scope that belong to no step.
    pub activities_outside: u64,
    /// Their summed length (not a union).
    pub outside_ns: Ns,
    /// What is to be known of the table as a whole.
    pub notes: Vec<StepNote>,
    /// Whether only the second half of each group's steps was kept.
    pub last_half: bool,
}

/// How the steps of a group were found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FoundBy {
    /// A named host range around each step's launches.
    Marker,
    /// Graph launches: each step replays the same graph or row of graphs.
    GraphReplay,
    /// The order of kernels alone: each step is one block of repeated layers and the launches around it.
    KernelSequence,
}

impl FoundBy {
    /// A stable code for it.
    pub fn code(self) -> &'static str {
        match self {
            Self::Marker => "marker",
            Self::GraphReplay => "graph_replay",
            Self::KernelSequence => "kernel_sequence",
        }
    }
}

/// What is to be known of a table or a group besides its numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepNote {
    /// First steps were left out: how many, and how much slower (in percent of the median span) the slowest of them was, where slowness
    /// was the reason.
    WarmUpLeftOut {
        /// Steps left out.
        steps: u64,
        /// Span of the slowest over the median of those kept, in percent; absent when they were left out for other kernels alone.
        slowest_percent: Option<u64>,
    },
    /// Busy of the two halves of a group's steps differs by over 3 %: clocks rose, the device throttled, or the work drifts (a
    /// cache that grows).
    Drift {
        /// Mean busy of a step of the first half.
        first_half_ns: Ns,
        /// Mean busy of a step of the second half.
        second_half_ns: Ns,
    },
    /// Part of the device work has no recorded launch and so is in no marker.
    WithoutLaunch {
        /// Such activities.
        activities: u64,
    },
    /// One block of repeated kernels was found, once, and nothing around it that begins and ends a step: its repeats were taken as steps
    /// of a model without layers.
    RepeatsAreSteps,
    /// The first or the last step is cut off by the trace's begin or end, and is left out.
    CutOff {
        /// Steps left out.
        steps: u64,
    },
    /// Kernels of the steps that fit no place of the canonical sequence, and places without a kernel, as a share of all.
    Unmatched {
        /// Activities that fit no place, over all steps kept.
        extra: u64,
        /// Places without an activity, over all steps kept.
        missing: u64,
    },
    /// A marker holds several blocks of layers (prefill and decode, or a whole loop): the blocks were taken as steps instead.
    MarkerHoldsSeveralSteps {
        /// Name of the marker.
        marker: String,
    },
    /// Roles come from another group, by the order of kernels.
    RolesBorrowed(BorrowedRoles),
    /// These are other steps than those that are counted over the whole trace, so that their numbers hold in this table alone.
    NumberedApart,
    /// No steps could be told: no marker, no repeated graph launch, no significant block of repeated kernels.
    NoSteps,
}

impl fmt::Display for StepNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WarmUpLeftOut { steps, slowest_percent: Some(percent) } => {
                write!(f, "{} left out: up to {percent} % of the median span of the others", plural(*steps, "warm-up step"))
            }
            Self::WarmUpLeftOut { steps, slowest_percent: None } => {
                write!(f, "{} left out: other kernels than the steps after", plural(*steps, "warm-up step"))
            }
            Self::Drift { first_half_ns, second_half_ns } => write!(
                f,
                "busy of a step changes from {first_half_ns} in the first half to {second_half_ns} in the second: clocks, throttling, or work that drifts"
            ),
            Self::WithoutLaunch { activities } => {
                write!(f, "{} without a recorded launch: in no marker", plural(*activities, "device event"))
            }
            Self::RepeatsAreSteps => {
                f.write_str("one block of repeated kernels and nothing around it: each repeat is taken as a step, not as a layer")
            }
            Self::CutOff { steps } => write!(f, "{} left out: cut off by the begin or end of the trace", plural(*steps, "step")),
            Self::Unmatched { extra, missing } => {
                let extra = (*extra > 0).then(|| format!("{} at no usual place", plural(*extra, "device event")));
                let missing = (*missing > 0).then(|| format!("{} without a device event", plural(*missing, "usual place")));
                f.write_str(&extra.into_iter().chain(missing).collect::<Vec<_>>().join(", "))
            }
            Self::MarkerHoldsSeveralSteps { marker } => {
                write!(f, "`{marker}` holds several blocks of layers: each block is taken as a step")
            }
            Self::RolesBorrowed(borrowed) => borrowed.fmt(f),
            Self::NumberedApart => f.write_str(
                "numbers of steps hold in this table alone: `--step` counts the steps of the whole trace, which are others; take one of these with --time",
            ),
            Self::NoSteps => {
                f.write_str("no steps found: no marker around device work, no repeated graph launch, no significant repetition of kernels")
            }
        }
    }
}

fn plural(number: u64, noun: &str) -> String {
    crate::phrases::counted(number, noun)
}

/// Steps that do the same: the same kernels in the same order but for noise, with mostly the same launch shapes.
#[derive(Clone, Debug, PartialEq)]
pub struct StepGroup {
    /// The marker's name, numbers that change each step as `*`, behind the ranges around it where these tell groups apart (`MODEL > MARKER`);
    /// without a marker, layers and places of each (`28 x 58`). Unique
    /// within a device.
    pub name: String,
    /// How its steps were found.
    pub found_by: FoundBy,
    /// The device.
    pub device: DeviceId,
    /// Steps kept, in order of time. At least one.
    pub steps: Vec<Step>,
    /// Steps left out of all figures, in order of time.
    pub left_out: Vec<LeftOut>,
    /// Layers of the canonical sequence, if there are any.
    pub layers: Option<LayerStructure>,
    /// The table by place: prologue, then each layer kind, then epilogue; in each the places in order, then work that fits no place.
    pub rows: Vec<StepRow>,
    /// Median number of kernels a step has (copies and fills not counted).
    pub kernels_per_step: u64,
    /// Median number of activities of any kind.
    pub activities_per_step: u64,
    /// Median busy.
    pub busy_ns: Ns,
    /// Median span.
    pub span_ns: Ns,
    /// Median period; absent when no two steps of the group follow each other directly.
    pub period_ns: Option<Ns>,
    /// Median over steps of period less span: idle between one step and the next, negative where steps overlap.
    pub gap_between_ns: Option<Ns>,
    /// Median over steps of span less busy: idle inside a step.
    pub gap_inside_ns: Ns,
    /// Summed busy of all steps kept.
    pub total_busy_ns: Ns,
    /// Steps in each half of a group, summed over windows (the middle one of an odd number is in neither); zero for a single step.
    pub half_steps: usize,
    /// Summed busy of the first half; absent for a single step. Where only the second half was kept, this is what was left out.
    pub first_half_busy_ns: Option<Ns>,
    /// Summed busy of the second half.
    pub second_half_busy_ns: Option<Ns>,
    /// Median busy of each layer over the steps; empty without layers.
    pub strip: Vec<StripLayer>,
    /// Steps that took clearly longer than the median, longest first.
    pub slow_steps: Vec<SlowStep>,
    /// What is to be known.
    pub notes: Vec<StepNote>,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Its number, which is what `--step` takes: its position among all steps of its device in the whole trace, of any group, those left out
    /// included, from 0; where every step lies in a `ProfilerStep#K` of its own, that `K`. With [`StepNote::NumberedApart`] the position
    /// among those of this table.
    pub number: u32,
    /// The range that marked it.
    pub range: Option<RangeId>,
    /// First start of its activities.
    pub start: Ns,
    /// Last end of its activities.
    pub end: Ns,
    /// Union of its activities.
    pub busy_ns: Ns,
    /// Start of the next step less its own, if that next step on the device is of the same group.
    pub period_ns: Option<Ns>,
    /// Its activities in program order: each stream in its own order, streams merged by launch (by start where launches are not
    /// recorded or shared, as in a graph). On one stream this is the order of start.
    pub activities: Vec<ActivityId>,
    /// For each activity, its row in [`StepGroup::rows`].
    pub rows: Vec<u32>,
    /// Its layers, in order.
    pub layers: Vec<StepLayer>,
}

impl Step {
    /// First start to last end.
    pub fn span_ns(&self) -> Ns {
        self.end - self.start
    }
}

/// A layer of one step: `activities[first..first + count]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepLayer {
    /// Its kind, an index into [`LayerStructure::kinds`].
    pub kind: u32,
    /// Position of its first activity in [`Step::activities`].
    pub first: u32,
    /// Number of its activities.
    pub count: u32,
}

/// A step that is left out, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// The step, without rows and layers.
    pub step: Step,
    /// Why.
    pub why: Why,
}

/// Why a step was left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Why {
    /// One of the first, and much slower than the rest.
    Slow,
    /// One of the first, with other kernels than the rest.
    OtherKernels,
    /// Cut off by the begin or end of the trace.
    CutOff,
    /// Before the second half of its window, where only that is wanted.
    FirstHalf,
}

/// The layers of a group's canonical sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayerStructure {
    /// Kinds of layers, in order of first occurrence.
    pub kinds: Vec<LayerKind>,
    /// The kind of each layer of the canonical sequence, in order.
    pub order: Vec<u32>,
}

/// A kind of layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayerKind {
    /// Kernels of a layer (copies and fills not counted).
    pub kernels: u32,
    /// Places of a layer, copies and fills included: rows `first_row..first_row + places` of the group.
    pub places: u32,
    /// First of its rows in [`StepGroup::rows`].
    pub first_row: u32,
    /// Layers of this kind in a step.
    pub count: u32,
}

/// A part of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// Before the first layer; all of a step without layers.
    Prologue,
    /// In a layer of this kind.
    Layer(u32),
    /// After the last layer.
    Epilogue,
}

impl Part {
    /// A stable code for it.
    pub fn code(self) -> &'static str {
        match self {
            Self::Prologue => "prologue",
            Self::Layer(_) => "layer",
            Self::Epilogue => "epilogue",
        }
    }
}

/// Where a role comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RoleSource {
    /// A module of the model.
    Module,
    /// An operator and its weight's shape.
    Operator,
    /// Inferred from the order of launches among equal shapes.
    Inferred,
    /// An aligned step elsewhere.
    Borrowed,
    /// The kernel's own name.
    Kernel,
}

/// One place of the canonical sequence, over all steps kept; or all work of one kernel name in one part that fits no place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepRow {
    /// The part of the step.
    pub part: Part,
    /// Position in the part, from 0; absent for work that fits no place.
    pub place: Option<u32>,
    /// The kernel's full name (for a place at which steps differ, the most frequent one).
    pub name: StrId,
    /// What it is.
    pub kind: ActivityKind,
    /// Its short name.
    pub kernel: String,
    /// What it does in the model. Until better is known the short name, with `#1`, `#2` where several places of the part share it.
    pub role: String,
    /// Where the role comes from.
    pub role_from: RoleSource,
    /// Activities, over all steps.
    pub calls: u64,
    /// Time that belongs to it, over all steps.
    pub total_ns: Ns,
    /// Median over steps of its time in a step (all layers of its kind together; a step without it counts as zero).
    pub ns_per_step: Ns,
    /// Least time in a step.
    pub min_ns: Ns,
    /// Most time in a step.
    pub max_ns: Ns,
}

impl StepRow {
    /// Mean number of activities in a step.
    pub fn calls_per_step(&self, steps: usize) -> f64 {
        if steps == 0 { 0.0 } else { self.calls as f64 / steps as f64 }
    }

    /// Share of the group's busy time, 0..1.
    pub fn share_fraction(&self, total_busy: Ns) -> f64 {
        crate::phrases::fraction(self.total_ns, total_busy)
    }
}

/// A layer of the canonical sequence, over all steps kept that have all layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StripLayer {
    /// Its kind.
    pub kind: u32,
    /// Median time that belongs to its activities.
    pub busy_ns: Ns,
    /// True when that is far from the median layer of its kind: by over 10 %, and by over five times the usual distance.
    pub outlier: bool,
}

/// What took a slow step's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Culprit {
    /// A row of the table.
    Row(u32),
    /// Idle inside the step, most of it before this activity.
    IdleInside(ActivityId),
}

/// A step that took clearly longer than the median.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlowStep {
    /// Its index in [`StepGroup::steps`].
    pub step: u32,
    /// Its span less the median span.
    pub excess_ns: Ns,
    /// What grew most.
    pub culprit: Culprit,
    /// By how much that grew.
    pub culprit_ns: Ns,
}
