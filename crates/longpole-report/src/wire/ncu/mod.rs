//! `longpole.ncu/1` and `longpole.ncu_compare/1`

mod compare;
mod kernel;
mod table;

use longpole_trace::Severity;
use serde::Serialize;

use crate::ncu::NcuKernel;
use crate::report_header::{ReportDevice, ReportHeader};
use crate::views::ncu::{LaunchRow, TotalRow};

pub use compare::ncu_compare;

#[derive(Serialize)]
struct SourceOut<'a> {
    path: &'a str,
    format: &'a str,
    bytes: u64,
    /// Results, as other documents count events.
    events: u64,
    kernels: u64,
    ranges: u64,
    graphs: u64,
    command_lists: u64,
    ncu_version: Option<&'a str>,
    cuda_version: Option<&'a str>,
    driver_version: Option<&'a str>,
    devices: Vec<DeviceOut<'a>>,
    processes: Vec<&'a str>,
    settings: Vec<SettingOut<'a>>,
    command_line: Option<&'a str>,
}

#[derive(Serialize)]
struct DeviceOut<'a> {
    id: u32,
    name: &'a str,
    sm_count: Option<u64>,
    memory_bytes: Option<u64>,
    compute_capability: Option<&'a str>,
}

#[derive(Serialize)]
struct SettingOut<'a> {
    option: &'static str,
    value: &'a str,
}

fn source<'a>(header: &ReportHeader<'a>) -> SourceOut<'a> {
    let source = header.source;
    let of = |kind: &str| source.results.iter().find(|(name, _)| *name == kind).map_or(0, |(_, number)| *number);
    SourceOut {
        path: &source.path,
        format: &source.format,
        bytes: source.bytes,
        events: source.results.iter().map(|(_, number)| number).sum(),
        kernels: of("kernel"),
        ranges: of("range"),
        graphs: of("graph"),
        command_lists: of("command_list"),
        ncu_version: source.ncu_version.as_deref(),
        cuda_version: source.cuda_version.as_deref(),
        driver_version: source.driver_version.as_deref(),
        devices: source.devices.iter().map(device).collect(),
        processes: source.processes.iter().map(String::as_str).collect(),
        settings: source.settings.iter().map(|(option, value)| SettingOut { option, value }).collect(),
        command_line: source.command_line.as_deref(),
    }
}

fn device(device: &ReportDevice) -> DeviceOut<'_> {
    DeviceOut {
        id: device.id,
        name: &device.name,
        sm_count: device.sm_count,
        memory_bytes: device.memory_bytes,
        compute_capability: device.compute_capability.as_deref(),
    }
}

fn trust<'a>(header: &ReportHeader<'a>) -> super::TrustOut<'a> {
    let notes = header.trust.notes.iter().map(|note| super::NoteOut {
        code: note.code,
        severity: Severity::name(note.severity),
        count: note.count,
        message: &note.message,
        hint: note.hint,
        example: note.example.as_deref(),
        first_offset_bytes: note.first_offset,
        time_ns: super::ns(note.time),
    });
    super::TrustOut { grade: header.trust.grade.name(), notes: notes.collect() }
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    source: SourceOut<'a>,
    trust: super::TrustOut<'a>,
    kernels: Vec<kernel::Kernel<'a>>,
    launches: Option<Vec<table::Launch<'a>>>,
    names: Vec<table::Total<'a>>,
    families: Vec<table::Total<'a>>,
}

/// What the document of `longpole ncu` is made from.
#[derive(Clone, Copy, Debug)]
pub struct NcuDocument<'a> {
    /// The report.
    pub header: ReportHeader<'a>,
    /// Kernels in full.
    pub kernels: &'a [NcuKernel],
    /// One row a launch, where the table was asked for.
    pub launches: Option<&'a [LaunchRow]>,
    /// Totals by name.
    pub names: &'a [TotalRow],
    /// Totals by family.
    pub families: &'a [TotalRow],
    /// Hottest instructions of a kernel, at most; `None` for all.
    pub hot: Option<usize>,
    /// Lines and all instructions of the source too.
    pub with_source: bool,
}

/// The document of `longpole ncu`.
pub fn ncu<'a>(document: &NcuDocument<'a>) -> impl Serialize + use<'a> {
    Document {
        schema: "longpole.ncu/1",
        source: source(&document.header),
        trust: trust(&document.header),
        kernels: document.kernels.iter().map(|one| kernel::kernel(one, document.hot, document.with_source)).collect(),
        launches: document.launches.map(|rows| rows.iter().map(table::launch).collect()),
        names: document.names.iter().map(table::total).collect(),
        families: document.families.iter().map(table::total).collect(),
    }
}
