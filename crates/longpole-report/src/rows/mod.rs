//! The rows of a trace as CSV, one table a kind of event: what happened, not what follows from it.
//!
//! A column has the same name as in the Parquet files (`longpole-parquet`), and a row the number that it has in the trace, so that tables
//! join: `call` of an activity is `row` of the calls, `thread` that of the threads. `docs/export.md` lists the columns. To add a table, add a
//! variant, its columns and its cells.

mod cells;

use std::io::{self, Write};

use longpole_analysis::{Scope, TraceIndex};
use longpole_trace::{ActivityId, Ns, ThreadId};

use crate::trust::Note;
use cells::Cells;

/// A table of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowTable {
    /// Kernels, copies and fills.
    Activities,
    /// Runtime and driver calls.
    Calls,
    /// Operators.
    HostOps,
    /// Instances of named ranges.
    RangeInstances,
    /// Allocator events.
    MemoryEvents,
    /// Python functions.
    PythonFrames,
    /// Threads.
    Threads,
    /// Devices.
    Devices,
    /// What is to be known of the recording: the notes of the trust header.
    Problems,
}

impl RowTable {
    /// All tables.
    pub const ALL: [Self; 9] = [
        Self::Activities,
        Self::Calls,
        Self::HostOps,
        Self::RangeInstances,
        Self::MemoryEvents,
        Self::PythonFrames,
        Self::Threads,
        Self::Devices,
        Self::Problems,
    ];

    /// Its name: of the file too.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Activities => "activities",
            Self::Calls => "calls",
            Self::HostOps => "host_ops",
            Self::RangeInstances => "range_instances",
            Self::MemoryEvents => "memory_events",
            Self::PythonFrames => "python_frames",
            Self::Threads => "threads",
            Self::Devices => "devices",
            Self::Problems => "problems",
        }
    }

    /// Its columns.
    pub const fn columns(self) -> &'static [&'static str] {
        match self {
            Self::Activities => &[
                "row",
                "kind",
                "name",
                "family",
                "rank",
                "device",
                "context",
                "stream",
                "start_ns",
                "dur_ns",
                "correlation",
                "external_id",
                "call",
                "op",
                "grid_x",
                "grid_y",
                "grid_z",
                "block_x",
                "block_y",
                "block_z",
                "registers_per_thread",
                "shared_bytes",
                "bytes",
                "copy",
                "pageable",
                "graph",
                "graph_node",
            ],
            Self::Calls => &["row", "name", "thread", "start_ns", "dur_ns", "correlation", "external_id"],
            Self::HostOps => &["row", "name", "thread", "start_ns", "dur_ns", "external_id", "shapes", "types", "strides", "values"],
            Self::RangeInstances | Self::PythonFrames => &["row", "name", "thread", "start_ns", "dur_ns"],
            Self::MemoryEvents => {
                &["row", "thread", "start_ns", "place", "device", "bytes", "total_allocated_bytes", "total_reserved_bytes"]
            }
            Self::Threads => &["row", "rank", "pid", "process", "tid", "name"],
            Self::Devices => &[
                "row",
                "rank",
                "device",
                "name",
                "memory_bytes",
                "sm_count",
                "compute_capability",
                "max_threads_per_sm",
                "registers_per_sm",
                "shared_bytes_per_sm",
                "warp_size",
            ],
            Self::Problems => &["code", "severity", "count", "message", "hint"],
        }
    }
}

/// Whether anything lies in a scope.
pub fn has_events(index: &TraceIndex<'_>, scope: &Scope) -> bool {
    let trace = index.trace();
    let (ops, calls, ranges, frames, memory) = (&trace.host_ops, &trace.api_calls, &trace.ranges, &trace.frames, &trace.memory);
    let host = |thread: &[ThreadId], start: &[Ns]| (0..start.len()).any(|row| scope.includes_host(trace, thread[row], start[row]));
    (0..trace.activities.len()).any(|row| scope.includes_activity(index, ActivityId::from_index(row)))
        || host(&ops.thread, &ops.start)
        || host(&calls.thread, &calls.start)
        || host(&ranges.thread, &ranges.start)
        || host(&frames.thread, &frames.start)
        || host(&memory.thread, &memory.start)
}

/// Writes a table of a scope as CSV, and says how many rows it has. Numbers are plain; texts are cells as everywhere in CSV of ours: control
/// characters written out, and an apostrophe before what a spreadsheet would run as a formula. `out` is flushed.
pub fn write_rows(table: RowTable, index: &TraceIndex<'_>, scope: &Scope, notes: &[Note], out: &mut dyn Write) -> io::Result<u64> {
    let trace = index.trace();
    let mut cells = Cells::new(index, out);
    cells.header(table.columns())?;
    let host = |thread: ThreadId, start: Ns| scope.includes_host(trace, thread, start);
    match table {
        RowTable::Activities => {
            for row in (0..trace.activities.len()).filter(|&row| scope.includes_activity(index, ActivityId::from_index(row))) {
                cells.activity(row)?;
            }
        }
        RowTable::Calls => {
            let calls = &trace.api_calls;
            for row in (0..calls.len()).filter(|&row| host(calls.thread[row], calls.start[row])) {
                cells.call(row)?;
            }
        }
        RowTable::HostOps => {
            let ops = &trace.host_ops;
            for row in (0..ops.len()).filter(|&row| host(ops.thread[row], ops.start[row])) {
                cells.op(row)?;
            }
        }
        RowTable::RangeInstances => {
            let ranges = &trace.ranges;
            for row in (0..ranges.len()).filter(|&row| host(ranges.thread[row], ranges.start[row])) {
                cells.interval(row, ranges.name[row], ranges.thread[row], (ranges.start[row], ranges.dur[row]))?;
            }
        }
        RowTable::PythonFrames => {
            let frames = &trace.frames;
            for row in (0..frames.len()).filter(|&row| host(frames.thread[row], frames.start[row])) {
                cells.interval(row, frames.name[row], frames.thread[row], (frames.start[row], frames.dur[row]))?;
            }
        }
        RowTable::MemoryEvents => {
            let memory = &trace.memory;
            for row in (0..memory.len()).filter(|&row| host(memory.thread[row], memory.start[row])) {
                cells.memory(row)?;
            }
        }
        RowTable::Threads => {
            for thread in 0..trace.threads.len() {
                cells.thread(thread)?;
            }
        }
        RowTable::Devices => {
            for device in 0..trace.devices.len() {
                cells.device(device)?;
            }
        }
        RowTable::Problems => {
            for note in notes {
                cells.note(note)?;
            }
        }
    }
    cells.finish()
}
