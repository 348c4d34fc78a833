//! The tables: which columns they have, and what stands in a cell.

use longpole_trace::{ActivityId, Detail, LaunchConfig, MemcpyKind, MemoryPlace, StrId, Tid};

use crate::Export;

/// A table, and the file that it becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Table {
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
    /// What is to be known of the recording.
    Problems,
}

impl Table {
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

    /// Its name, and that of its file.
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

    pub(crate) fn len(self, export: &Export<'_>) -> usize {
        let trace = export.trace;
        match self {
            Self::Activities => trace.activities.len(),
            Self::Calls => trace.api_calls.len(),
            Self::HostOps => trace.host_ops.len(),
            Self::RangeInstances => trace.ranges.len(),
            Self::MemoryEvents => trace.memory.len(),
            Self::PythonFrames => trace.frames.len(),
            Self::Threads => trace.threads.len(),
            Self::Devices => trace.devices.len(),
            Self::Problems => export.problems.len(),
        }
    }
}

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// `INT64`, signed.
    Signed,
    /// `INT64` that is read as `UINT_64`.
    Unsigned,
    /// `INT64`, signed, mostly rising from row to row: deltas are stored.
    Rising,
    /// Text in a dictionary.
    Text,
    /// True or false.
    Flag,
}

impl ColumnKind {
    /// Its name in the documentation.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Signed | Self::Rising => "int64",
            Self::Unsigned => "uint64",
            Self::Text => "string",
            Self::Flag => "bool",
        }
    }
}

/// What stands in a cell.
pub(crate) enum Cell<'a> {
    Number(i64),
    Flag(bool),
    /// A string of the trace.
    Name(StrId),
    Text(&'a str),
    Owned(String),
}

pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) kind: ColumnKind,
    pub(crate) is_required: bool,
    pub(crate) what: &'static str,
    pub(crate) cell: for<'a> fn(&'a Export<'_>, usize) -> Option<Cell<'a>>,
}

macro_rules! columns {
    ($($name:literal $kind:ident $required:literal $what:literal $cell:expr;)*) => {
        &[$(Column { name: $name, kind: ColumnKind::$kind, is_required: $required, what: $what, cell: $cell },)*]
    };
}

fn unsigned<'a>(value: impl Into<u64>) -> Cell<'a> {
    Cell::Number(value.into() as i64)
}

fn index<'a>(value: usize) -> Cell<'a> {
    Cell::Number(value as i64)
}

fn rank_number(export: &Export<'_>, position: u32) -> i64 {
    export.trace.ranks.get(position as usize).map_or(0, |rank| i64::from(rank.rank))
}

fn launch(export: &Export<'_>, row: usize) -> LaunchConfig {
    match export.trace.activities.detail(row).map(|id| export.trace.details[id.index()]) {
        Some(Detail::Launch(launch)) => launch,
        _ => LaunchConfig::default(),
    }
}

fn axis<'a>(size: Option<[u32; 3]>, axis: usize) -> Option<Cell<'a>> {
    Some(unsigned(size?[axis]))
}

fn transfer(export: &Export<'_>, row: usize) -> Option<longpole_trace::Transfer> {
    match export.trace.details[export.trace.activities.detail(row)?.index()] {
        Detail::Transfer(transfer) => Some(transfer),
        Detail::Launch(_) => None,
    }
}

fn copy(kind: MemcpyKind) -> Option<&'static str> {
    match kind {
        MemcpyKind::HostToDevice => Some("host_to_device"),
        MemcpyKind::DeviceToHost => Some("device_to_host"),
        MemcpyKind::DeviceToDevice => Some("device_to_device"),
        MemcpyKind::PeerToPeer => Some("peer_to_peer"),
        MemcpyKind::HostToHost => Some("host_to_host"),
        MemcpyKind::Unknown => None,
    }
}

fn lane<'a>(export: &'a Export<'_>, row: usize) -> &'a longpole_trace::Lane {
    &export.trace.lanes[export.trace.activities.lane[row].index()]
}

fn kind_name(kind: longpole_trace::ActivityKind) -> &'static str {
    match kind {
        longpole_trace::ActivityKind::Kernel => "kernel",
        longpole_trace::ActivityKind::Memcpy => "memcpy",
        longpole_trace::ActivityKind::Memset => "memset",
        longpole_trace::ActivityKind::Other => "other",
    }
}

const ACTIVITIES: &[Column] = columns! {
    "row" Rising true "number of the row in the trace" |_, row| Some(index(row));
    "kind" Text true "kernel, memcpy, memset or other" |export, row| Some(Cell::Text(kind_name(export.trace.activities.kind[row])));
    "name" Text true "kernel name, or the recorder's label of a copy or fill" |export, row| Some(Cell::Name(export.trace.activities.name[row]));
    "family" Text true "family of the kernel by its name (docs/first-pass.md)" |export, row| {
        let activities = &export.trace.activities;
        Some(Cell::Text((export.family)(activities.kind[row], export.trace.strings.get(activities.name[row]))))
    };
    "rank" Signed true "rank of the recording" |export, row| {
        Some(Cell::Number(rank_number(export, export.trace.lane_rank(export.trace.activities.lane[row]))))
    };
    "device" Signed true "number of the device, as recorded" |export, row| {
        Some(Cell::Number(export.trace.devices[lane(export, row).device.index()].ordinal))
    };
    "context" Signed false "context" |export, row| Some(Cell::Number(lane(export, row).context?));
    "stream" Signed true "stream" |export, row| Some(Cell::Number(lane(export, row).stream));
    "start_ns" Rising true "start, in ns since the base time" |export, row| Some(Cell::Number(export.trace.activities.start[row].get()));
    "dur_ns" Signed true "duration in ns" |export, row| Some(Cell::Number(export.trace.activities.dur[row].get()));
    "correlation" Unsigned false "number that joins work to its launch, as recorded" |export, row| {
        Some(unsigned(export.trace.activities.correlation(row)?))
    };
    "external_id" Unsigned false "number of the operator, as recorded" |export, row| Some(unsigned(export.trace.activities.external_id(row)?));
    "call" Signed false "the launching call: `row` of calls" |export, row| {
        Some(Cell::Number(i64::from((export.call)(ActivityId::from_index(row))?)))
    };
    "op" Signed false "the innermost operator around the launch: `row` of host_ops" |export, row| {
        Some(Cell::Number(i64::from((export.op)(ActivityId::from_index(row))?)))
    };
    "grid_x" Signed false "blocks in x" |export, row| axis(launch(export, row).grid, 0);
    "grid_y" Signed false "blocks in y" |export, row| axis(launch(export, row).grid, 1);
    "grid_z" Signed false "blocks in z" |export, row| axis(launch(export, row).grid, 2);
    "block_x" Signed false "threads a block in x" |export, row| axis(launch(export, row).block, 0);
    "block_y" Signed false "threads a block in y" |export, row| axis(launch(export, row).block, 1);
    "block_z" Signed false "threads a block in z" |export, row| axis(launch(export, row).block, 2);
    "registers_per_thread" Signed false "registers a thread" |export, row| Some(unsigned(launch(export, row).registers_per_thread?));
    "shared_bytes" Signed false "shared memory a block, static and dynamic" |export, row| Some(unsigned(launch(export, row).shared_bytes?));
    "bytes" Unsigned false "bytes moved by a copy or fill" |export, row| Some(unsigned(transfer(export, row)?.bytes?));
    "copy" Text false "direction of a copy, e.g. host_to_device" |export, row| Some(Cell::Text(copy(transfer(export, row)?.kind)?));
    "pageable" Flag false "whether the host's side is pageable memory" |export, row| Some(Cell::Flag(transfer(export, row)?.pageable?));
    "graph" Unsigned false "graph that it was replayed from" |export, row| {
        Some(unsigned(export.trace.graph_nodes[export.trace.activities.graph_node(row)?.index()].graph))
    };
    "graph_node" Unsigned false "node of that graph" |export, row| {
        Some(unsigned(export.trace.graph_nodes[export.trace.activities.graph_node(row)?.index()].node))
    };
};

const CALLS: &[Column] = columns! {
    "row" Rising true "number of the row in the trace" |_, row| Some(index(row));
    "name" Text true "function" |export, row| Some(Cell::Name(export.trace.api_calls.name[row]));
    "thread" Signed true "calling thread: `row` of threads" |export, row| Some(unsigned(export.trace.api_calls.thread[row].0));
    "start_ns" Rising true "start, in ns since the base time" |export, row| Some(Cell::Number(export.trace.api_calls.start[row].get()));
    "dur_ns" Signed true "duration in ns" |export, row| Some(Cell::Number(export.trace.api_calls.dur[row].get()));
    "correlation" Unsigned false "number that joins it to the work it launched, as recorded" |export, row| {
        Some(unsigned(export.trace.api_calls.correlation(row)?))
    };
    "external_id" Unsigned false "number of the operator, as recorded" |export, row| Some(unsigned(export.trace.api_calls.external_id(row)?));
};

const HOST_OPS: &[Column] = columns! {
    "row" Rising true "number of the row in the trace" |_, row| Some(index(row));
    "name" Text true "operator" |export, row| Some(Cell::Name(export.trace.host_ops.name[row]));
    "thread" Signed true "thread: `row` of threads" |export, row| Some(unsigned(export.trace.host_ops.thread[row].0));
    "start_ns" Rising true "start, in ns since the base time" |export, row| Some(Cell::Number(export.trace.host_ops.start[row].get()));
    "dur_ns" Signed true "duration in ns" |export, row| Some(Cell::Number(export.trace.host_ops.dur[row].get()));
    "external_id" Unsigned false "number of this call of the operator, as recorded" |export, row| {
        Some(unsigned(export.trace.host_ops.external_id(row)?))
    };
    "shapes" Text false "shapes of the inputs, as a JSON list" |export, row| Some(Cell::Name(export.trace.host_ops.shapes(row)?));
    "types" Text false "types of the inputs, as a JSON list" |export, row| Some(Cell::Name(export.trace.host_ops.types(row)?));
    "strides" Text false "strides of the inputs, as a JSON list" |export, row| Some(Cell::Name(export.trace.host_ops.strides(row)?));
    "values" Text false "inputs that are no tensors, as a JSON list" |export, row| Some(Cell::Name(export.trace.host_ops.values(row)?));
};

const RANGE_INSTANCES: &[Column] = columns! {
    "row" Rising true "number of the row in the trace" |_, row| Some(index(row));
    "name" Text true "name of the range" |export, row| Some(Cell::Name(export.trace.ranges.name[row]));
    "thread" Signed true "thread: `row` of threads" |export, row| Some(unsigned(export.trace.ranges.thread[row].0));
    "start_ns" Rising true "start, in ns since the base time" |export, row| Some(Cell::Number(export.trace.ranges.start[row].get()));
    "dur_ns" Signed true "duration on the host in ns" |export, row| Some(Cell::Number(export.trace.ranges.dur[row].get()));
};

const PYTHON_FRAMES: &[Column] = columns! {
    "row" Rising true "number of the row in the trace" |_, row| Some(index(row));
    "name" Text true "function or module, as recorded" |export, row| Some(Cell::Name(export.trace.frames.name[row]));
    "thread" Signed true "thread: `row` of threads" |export, row| Some(unsigned(export.trace.frames.thread[row].0));
    "start_ns" Rising true "start, in ns since the base time" |export, row| Some(Cell::Number(export.trace.frames.start[row].get()));
    "dur_ns" Signed true "duration in ns" |export, row| Some(Cell::Number(export.trace.frames.dur[row].get()));
};

const MEMORY_EVENTS: &[Column] = columns! {
    "row" Rising true "number of the row in the trace" |_, row| Some(index(row));
    "thread" Signed true "thread: `row` of threads" |export, row| Some(unsigned(export.trace.memory.thread[row].0));
    "start_ns" Rising true "when, in ns since the base time" |export, row| Some(Cell::Number(export.trace.memory.start[row].get()));
    "place" Text true "host or device" |export, row| Some(Cell::Text(match export.trace.memory.place[row] {
        MemoryPlace::Host => "host",
        MemoryPlace::Device => "device",
    }));
    "device" Signed false "number of the device, as recorded" |export, row| Some(unsigned(export.trace.memory.device(row)?));
    "bytes" Signed true "allocated; below zero: freed" |export, row| Some(Cell::Number(export.trace.memory.bytes[row]));
    "total_allocated_bytes" Unsigned false "allocated on the device after the event, as recorded" |export, row| {
        Some(unsigned(export.trace.memory.total_allocated(row)?))
    };
    "total_reserved_bytes" Unsigned false "held by the allocator after the event, as recorded" |export, row| {
        Some(unsigned(export.trace.memory.total_reserved(row)?))
    };
};

const THREADS: &[Column] = columns! {
    "row" Rising true "number of the row in the trace" |_, row| Some(index(row));
    "rank" Signed true "rank of the recording" |export, row| {
        Some(Cell::Number(rank_number(export, export.trace.processes[export.trace.threads[row].process.index()].rank)))
    };
    "pid" Signed true "number of the process" |export, row| {
        Some(Cell::Number(export.trace.processes[export.trace.threads[row].process.index()].pid))
    };
    "process" Text false "name of the process" |export, row| {
        Some(Cell::Name(export.trace.processes[export.trace.threads[row].process.index()].name?))
    };
    "tid" Text true "number of the thread; text, since some recorders write names" |export, row| Some(match &export.trace.threads[row].tid {
        Tid::Number(number) => Cell::Owned(number.to_string()),
        Tid::Text(text) => Cell::Text(text),
    });
    "name" Text false "name of the thread" |export, row| Some(Cell::Name(export.trace.threads[row].name?));
};

const DEVICES: &[Column] = columns! {
    "row" Rising true "number of the row in the trace" |_, row| Some(index(row));
    "rank" Signed true "rank of the recording" |export, row| Some(Cell::Number(rank_number(export, export.trace.devices[row].rank)));
    "device" Signed true "number of the device, as recorded" |export, row| Some(Cell::Number(export.trace.devices[row].ordinal));
    "name" Text false "product" |export, row| Some(Cell::Text(export.trace.devices[row].properties.name.as_deref()?));
    "memory_bytes" Unsigned false "memory" |export, row| Some(unsigned(export.trace.devices[row].properties.memory_bytes?));
    "sm_count" Signed false "multiprocessors" |export, row| Some(unsigned(export.trace.devices[row].properties.sm_count?));
    "compute_capability" Text false "compute capability, e.g. 9.0" |export, row| {
        let (major, minor) = export.trace.devices[row].properties.compute_capability?;
        Some(Cell::Owned(format!("{major}.{minor}")))
    };
    "max_threads_per_sm" Signed false "threads that fit on a multiprocessor" |export, row| {
        Some(unsigned(export.trace.devices[row].properties.max_threads_per_sm?))
    };
    "registers_per_sm" Signed false "registers of a multiprocessor" |export, row| {
        Some(unsigned(export.trace.devices[row].properties.registers_per_sm?))
    };
    "shared_bytes_per_sm" Unsigned false "shared memory of a multiprocessor" |export, row| {
        Some(unsigned(export.trace.devices[row].properties.shared_bytes_per_sm?))
    };
    "warp_size" Signed false "threads of a warp" |export, row| Some(unsigned(export.trace.devices[row].properties.warp_size?));
};

const PROBLEMS: &[Column] = columns! {
    "code" Text true "code of the note (docs/trust.md)" |export, row| Some(Cell::Text(&export.problems[row].code));
    "severity" Text true "info, notice or data_loss" |export, row| Some(Cell::Text(&export.problems[row].severity));
    "count" Unsigned true "how often it was seen" |export, row| Some(unsigned(export.problems[row].count));
    "message" Text true "what happened" |export, row| Some(Cell::Text(&export.problems[row].message));
    "hint" Text true "what can be done" |export, row| Some(Cell::Text(&export.problems[row].hint));
};

pub(crate) fn columns(table: Table) -> &'static [Column] {
    match table {
        Table::Activities => ACTIVITIES,
        Table::Calls => CALLS,
        Table::HostOps => HOST_OPS,
        Table::RangeInstances => RANGE_INSTANCES,
        Table::MemoryEvents => MEMORY_EVENTS,
        Table::PythonFrames => PYTHON_FRAMES,
        Table::Threads => THREADS,
        Table::Devices => DEVICES,
        Table::Problems => PROBLEMS,
    }
}
