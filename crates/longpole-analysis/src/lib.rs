//! Questions asked of a trace, one file a question.
//!
//! Every analysis takes a [`TraceIndex`] and a [`Scope`] and returns plain data: no text layout, no files, no knowledge of
//! where the trace came from. To add one, add a file here with its result types and one function, and re-export them.

mod ceilings;
mod collectives;
mod covers;
mod diff;
mod families;
mod host_pace;
mod idle;
mod index;
mod kernels;
mod median;
mod memory;
mod ops;
mod overview;
mod pace;
mod phrases;
mod profiler_overhead;
mod questions;
mod ranges;
mod roofline;
#[cfg(test)]
mod sample;
mod scope;
mod short_name;
mod smells;
mod sort;
mod stacks;
mod step_choice;
mod steps;
mod stream_health;
mod sums;
mod totals;
mod triage;
mod turns;
#[cfg(test)]
mod unobserved_tests;
mod vendor;

pub use ceilings::{
    CeilingKind, CeilingRow, CeilingSubject, CeilingTable, FloorDonor, GroupCeilings, RowCeiling, ScopeWork, StepIdle, ceilings,
    floor_donors, role_lines, step_ceilings, step_ceilings_with, step_idle,
};
pub use collectives::{
    Cause, CauseKind, CollectiveEntry, CollectiveGroup, CollectiveKind, CollectiveKindRow, HostCause, MatchedBy, MatchedCollective,
    RankClock, RankReport, RankRow, StartUp, Straggler, WORTH_NS, rank_report,
};
pub use longpole_stats::Comparison;

pub use diff::{
    CeilingsOf, Diff, DiffKind, DiffRow, DiffSide, GroupsMatchedBy, Per, SettingChange, StepFigure, StepPair, SuspectChange, SuspectShare,
    WORTH_SHOWING, diff,
};
pub use families::{Family, FamilyRow, family_table};
pub use host_pace::{HostBoundWindow, host_bound_window};
pub use idle::{
    CauseRow, DeviceIdle, FrameKind, FrameRow, HostFrame, HostSamples, IdleCause, IdlePiece, IdleStretch, IdleStretches, IdleTable, Queue,
    QueueSample, RangeIdle, SampleRow, each_idle_piece, idle_pieces, idle_stretches, idle_table,
};
pub use index::{HostRow, HostTree, LinkCounts, Links, NodeId, Owner, TraceIndex};
pub use kernels::{KernelOwner, KernelRow, kernel_table, short_names};
pub use memory::{MemoryRow, MemoryTable, memory_table};
pub use ops::{GroupBy, OpRow, OpRowKind, OpTable, op_table};
pub use overview::{
    Block, Curve, CurveKind, EventName, EventOrigin, IcicleKind, IcicleNode, LaneKind, LanePlace, Level, Moment, MomentSubject, Overview,
    OverviewEvent, OverviewLane, OverviewOptions, OverviewSources, overview, overview_lanes,
};
pub use profiler_overhead::{ProfilerOverhead, profiler_overhead};
pub use questions::Question;
pub use ranges::{RangePath, RangeRow, range_table};
pub use roofline::{
    Dtype, Engine, FasterThan, Floor, KnownDevice, LAUNCH_BOUND_KERNEL_NS, MeasuredPeaks, NEGLIGIBLE_FLOOR_NS, NoPeaks, OpWork, PeakKind,
    Peaks, Roof, RooflineRow, RooflineTable, UnknownRows, UnknownWork, Verdict, Work, WorkFamily, gemm_work, peaks_of, roofline,
};
pub use scope::{Scope, ScopeError, ScopeSpec};
pub use short_name::{MAX_CHARS as SHORT_NAME_MAX_CHARS, short_name};
pub use smells::{Ceiling, Explanation, Fact, FactValue, Smell, THRESHOLDS, Threshold, Unit, explain, explanations};
pub use sort::SortKey;
pub use stacks::{StackFrame, StackTree, device_label, device_stacks, host_stacks, idle_stacks, rank_order, thread_label};
pub use steps::{
    BorrowedRoles, Culprit, FoundBy, LayerKind, LayerStructure, LeftOut, Part, RoleDonor, RoleSource, SlowStep, Step, StepGroup, StepLayer,
    StepNote, StepOptions, StepRow, StepTable, StripLayer, Why, borrow_roles, role_donors, step_table, window_starts,
};
pub use stream_health::{Finding, StreamHealth};
pub use sums::{
    DeviceSum, FamilySum, KernelSum, ScopeSum, ScopeSums, SumOwner, SumsSide, SumsTriage, WorkSum, diff_sums, family_sums, kernel_sums,
    layer_family, scope_sums, sums_triage,
};
pub use totals::{DeviceTotals, Totals, Unrecorded, device_busy, totals};
pub use triage::{Calibration, Hardware, HardwareDevice, HostClock, NextExperiment, Report, Triage, TriageOptions, triage};
