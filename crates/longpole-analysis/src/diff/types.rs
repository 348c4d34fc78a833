//! What `diff` answers with.

use longpole_stats::{Comparison, Verdict};
use longpole_trace::Ns;

use crate::steps::StepTable;
use crate::triage::Triage;
use crate::{Scope, TraceIndex};

/// One of the two traces, with what was worked out about it.
#[derive(Clone, Copy, Debug)]
pub struct DiffSide<'a, 't> {
    /// The trace.
    pub index: &'a TraceIndex<'t>,
    /// The part of it that is compared.
    pub scope: &'a Scope,
    /// Its steps in that scope.
    pub steps: &'a StepTable,
    /// Its first report in that scope.
    pub triage: &'a Triage,
    /// Whether the file was cut or damaged, so that its last part, in most traces the device's, was not read.
    pub is_cut: bool,
}

/// Two traces compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Diff {
    /// What is not the same about the two recordings, besides their times.
    pub settings: Vec<SettingChange>,
    /// Groups of steps that are compared with each other, by effect on the trace: the one with most time first.
    pub pairs: Vec<StepPair>,
    /// Names of groups of the first trace that have no partner.
    pub only_before: Vec<String>,
    /// The same of the second trace.
    pub only_after: Vec<String>,
    /// Every figure that both or one of them has: those of a pair together, by kind, each kind by how much it changed.
    pub rows: Vec<DiffRow>,
    /// Suspects of either trace, by the larger of their two shares.
    pub suspects: Vec<SuspectChange>,
    /// What their ceilings are of.
    pub ceilings: CeilingsOf,
}

/// What the ceilings of suspects are of, and so whether those of the two traces can be held against each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CeilingsOf {
    /// Whole traces with as many steps each.
    EqualTraces,
    /// A step: every group has its partner, and all have as many steps before, and as many after; these are the two numbers. What was left out
    /// of a group as warm-up or cut off is a step too.
    Step(u64, u64),
    /// Whole traces in which no steps were paired.
    WholeTraces,
    /// Whole traces with other steps: the ceilings cannot be compared.
    OtherSteps,
}

impl CeilingsOf {
    /// A stable code for it.
    pub const fn code(self) -> &'static str {
        match self {
            Self::EqualTraces => "equal_traces",
            Self::Step(..) => "step",
            Self::WholeTraces => "whole_traces",
            Self::OtherSteps => "other_steps",
        }
    }
}

/// Something other than time in which the recordings differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingChange {
    /// What: `device`, `element type`, `input shapes`, ...
    pub what: &'static str,
    /// What it was, as text.
    pub before: String,
    /// What it is.
    pub after: String,
    /// What that does to the comparison.
    pub means: &'static str,
}

/// Why two groups of steps are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MatchedBy {
    /// They have the same name.
    Name,
    /// They have as many layers, and about as many kernels.
    Layers,
    /// They run mostly the same kernels.
    Kernels,
}

impl MatchedBy {
    /// A stable code for it.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Layers => "layers",
            Self::Kernels => "kernels",
        }
    }
}

/// Two groups of steps.
#[derive(Clone, Debug, PartialEq)]
pub struct StepPair {
    /// Position of the group in the first step table.
    pub before: usize,
    /// Position in the second.
    pub after: usize,
    /// Name of the group, in each.
    pub names: (String, String),
    /// Steps of each.
    pub steps: (usize, usize),
    /// Median number of kernels of a step of each.
    pub kernels: (u64, u64),
    /// Share of a step in which the device waits for its host, each, 0..1.
    pub host_share: (f64, f64),
    /// Why they are compared.
    pub matched_by: MatchedBy,
    /// The time of a step: the period where both have one, else the span; the figure that says whether the step got faster.
    pub step: StepFigure,
    /// What that figure did.
    pub verdict: Verdict,
}

/// A figure of whole steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StepFigure {
    /// Start to start.
    Period,
    /// First start to last end.
    Span,
    /// Union of device work.
    Busy,
    /// Span less busy.
    IdleInside,
    /// Period less span.
    IdleBetween,
}

impl StepFigure {
    /// A stable code for it.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Period => "period",
            Self::Span => "span",
            Self::Busy => "busy",
            Self::IdleInside => "idle_inside",
            Self::IdleBetween => "idle_between",
        }
    }
}

/// What a row is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DiffKind {
    /// A figure of whole steps.
    Step,
    /// Idle time of one cause.
    IdleCause,
    /// A part of the model.
    Role,
    /// A family of kernels.
    Family,
    /// A kernel, copy or fill.
    Kernel,
    /// Device time of an operator's own launches.
    Operator,
    /// Device work launched inside a range.
    Range,
    /// A total of the trace.
    Total,
}

impl DiffKind {
    /// A stable code for it.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Step => "step",
            Self::IdleCause => "idle_cause",
            Self::Role => "role",
            Self::Family => "family",
            Self::Kernel => "kernel",
            Self::Operator => "operator",
            Self::Range => "range",
            Self::Total => "total",
        }
    }
}

/// What a row's times are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Per {
    /// The median step.
    Step,
    /// The median instance of a range.
    Instance,
    /// The whole trace, or the scope.
    Trace,
}

impl Per {
    /// A stable code for it.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Step => "step",
            Self::Instance => "instance",
            Self::Trace => "trace",
        }
    }
}

/// One figure of both traces.
#[derive(Clone, Debug, PartialEq)]
pub struct DiffRow {
    /// The pair of step groups it belongs to, by position; absent for what is not by step.
    pub pair: Option<usize>,
    /// What it is about.
    pub kind: DiffKind,
    /// Its name, the same in both traces; of kernels the whole name.
    pub key: String,
    /// The name as tables show it.
    pub label: String,
    /// What its times are of.
    pub per: Per,
    /// Median before; absent for what is new.
    pub before_ns: Option<Ns>,
    /// Median after; absent for what vanished.
    pub after_ns: Option<Ns>,
    /// After less before; what is absent counts as nothing.
    pub delta_ns: Ns,
    /// Mean number of activities, intervals or calls before, and after.
    pub calls: (Option<f64>, Option<f64>),
    /// The comparison; absent for what is new or vanished.
    pub comparison: Option<Comparison>,
}

/// A suspect of either trace.
#[derive(Clone, Debug, PartialEq)]
pub struct SuspectChange {
    /// Its code.
    pub code: &'static str,
    /// Share of the wall that it covers before; `None` where it is not suspected.
    pub before: Option<SuspectShare>,
    /// The same after.
    pub after: Option<SuspectShare>,
    /// Whether each trace holds what is needed to suspect anything of its device: device activity, and all of it.
    pub judged: (bool, bool),
}

/// A suspect of one trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SuspectShare {
    /// Share of the wall, 0..1; absent where it covers no time.
    pub share_fraction: Option<f64>,
    /// The most it could win, in the whole trace.
    pub ceiling_ns: Option<Ns>,
    /// The same of a step, where ceilings are [`CeilingsOf::Step`].
    pub ceiling_per_step_ns: Option<Ns>,
}

/// Share of a step from which waiting for the host is worth a line.
pub const WORTH_SHOWING: f64 = 0.02;

impl DiffRow {
    /// Whether it is `new`, `gone`, or in `both` traces.
    pub fn presence(&self) -> &'static str {
        match (self.before_ns, self.after_ns) {
            (None, _) => "new",
            (_, None) => "gone",
            _ => "both",
        }
    }
}
