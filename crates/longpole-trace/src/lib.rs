//! The trace model that every importer fills and every analysis reads.
//!
//! A [`Trace`] holds columns, not events: one table a kind of event ([`HostOps`], [`ApiCalls`], [`Activities`],
//! [`Ranges`], [`MemoryEvents`], [`PythonFrames`], [`Overheads`], [`SyncEvents`], [`Collectives`], [`OsCalls`],
//! [`CpuSamples`]), strings interned once, rows addressed by typed ids. What a source knows only in sum is in a table of its own,
//! [`Aggregates`].
//! Times are integer nanoseconds ([`Ns`]) since the trace's base. A value the source did not give is `None`, never a
//! sentinel that could slip into a sum.
//!
//! Constraints: no input or output, no serialisation, no knowledge of any file format. To add a kind of event, add a
//! table in [`tables`](crate::HostOps), a row struct beside it, and a `push_*` method on [`TraceBuilder`].

mod aggregates;
mod builder;
mod collectives;
mod columns;
mod entities;
mod ids;
mod interval;
mod native;
mod ns;
mod observed;
mod problems;
mod recorder;
mod rewrite;
mod strings;
mod tables;

pub use aggregates::{Aggregate, AggregateDetail, AggregateKind, Aggregates, FlopWidth};
pub use builder::{EventWindow, TableMarks, Trace, TraceBuilder};
pub use collectives::{Collective, CollectivePlace, Collectives};
pub use entities::{Device, DeviceProperties, Lane, Part, Process, RankInfo, Recorded, Thread, Tid, Versions};
pub use ids::{ActivityId, AggregateId, ApiCallId, DetailId, DeviceId, GraphNodeId, HostOpId, LaneId, ProcessId, RangeId, StrId, ThreadId};
pub use interval::{Interval, IntervalSet};
pub use native::{CpuSample, CpuSamples, OsCall, OsCalls};
pub use ns::Ns;
pub use observed::Unobserved;
pub use problems::{Problem, ProblemCode, Problems, Severity};
pub use recorder::{Advice, Recorder};
pub use strings::Strings;
pub use tables::{
    Activities, Activity, ActivityKind, ApiCall, ApiCalls, Capture, Detail, GraphNode, HostOp, HostOps, LaunchConfig, MemcpyKind,
    MemoryEvent, MemoryEvents, MemoryPlace, Overhead, Overheads, PythonFrame, PythonFrames, Range, Ranges, SyncEvent, SyncEvents, SyncKind,
    Transfer,
};
