//! `longpole.triage/1`

use longpole_analysis::{DeviceTotals, Diff, Hardware, HardwareDevice, HostClock, Report, Totals, Triage};
use longpole_trace::Trace;
use serde::Serialize;

use super::families::{Family, family};
use super::kernels::{Kernel, kernel};
use super::ns;
use super::ops::{Op, op};
use super::ranges::{Range, range};
use super::smells::{QuestionOut, SmellOut, question, smell};
use crate::header::Header;

/// What was measured on, of a source with or without a timeline.
#[derive(Serialize)]
pub(super) struct HardwareOut<'a> {
    devices: Vec<DeviceOut<'a>>,
    driver: Option<&'a str>,
    cuda: Option<&'a str>,
}

#[derive(Serialize)]
struct DeviceOut<'a> {
    id: i64,
    rank: u32,
    name: Option<&'a str>,
    sm_count: Option<u32>,
    memory_bytes: Option<u64>,
    /// Few sources say.
    peak_dram_bytes_per_s: Option<u64>,
    active: bool,
}

#[derive(Serialize)]
struct TotalsOut {
    wall_ns: i64,
    windows: Option<u64>,
    unrecorded_ns: Option<i64>,
    gpu_busy_ns: Option<i64>,
    gpu_idle_ns: Option<i64>,
    gpu_outside_scope_ns: Option<i64>,
    gpu_busy_fraction: Option<f64>,
    kernel_busy_ns: Option<i64>,
    copy_busy_ns: Option<i64>,
    comm_busy_ns: Option<i64>,
    exposed_copy_ns: Option<i64>,
    exposed_comm_ns: Option<i64>,
    kernels: u64,
    memcpys: u64,
    memsets: u64,
    launches: u64,
    host_ops: u64,
    devices: Vec<DeviceTotalsOut>,
}

#[derive(Serialize)]
struct DeviceTotalsOut {
    id: Option<i64>,
    rank: Option<u32>,
    gpu_busy_ns: i64,
    gpu_span_ns: i64,
    gpu_idle_ns: i64,
    kernel_busy_ns: i64,
    copy_busy_ns: i64,
    comm_busy_ns: i64,
    exposed_copy_ns: i64,
    exposed_comm_ns: i64,
    activities: u64,
}

/// The report of five lines.
#[derive(Serialize)]
pub(super) struct ReportOut<'a> {
    workload: &'a str,
    hardware: &'a str,
    top_cuda_time: &'a str,
    top_host_cost: &'a str,
    next_experiment: &'a str,
    next_experiment_code: &'static str,
}

#[derive(Serialize)]
struct HostClockOut<'a> {
    note: &'a str,
    calibration: Option<CalibrationOut<'a>>,
}

#[derive(Serialize)]
struct CalibrationOut<'a> {
    step: &'a str,
    steps: u64,
    profiled_step_ns: i64,
    unprofiled_step_ns: i64,
    inflation_ratio: f64,
    busy_per_step_ns: Option<i64>,
    busy_fraction: Option<f64>,
}

#[derive(Serialize)]
struct Body<'a> {
    hardware: HardwareOut<'a>,
    totals: TotalsOut,
    ops: Vec<Op<'a>>,
    families: Vec<Family>,
    kernels: Vec<Kernel<'a>>,
    ranges: Vec<Range<'a>>,
    smells: Vec<SmellOut<'a>>,
    questions: Vec<QuestionOut<'a>>,
    host_clock: Option<HostClockOut<'a>>,
    report: ReportOut<'a>,
}

fn device<'a>(device: &'a HardwareDevice, trace: &Trace) -> DeviceOut<'a> {
    let is_it = |known: &&longpole_trace::Device| {
        known.ordinal == device.id && trace.ranks.get(known.rank as usize).is_none_or(|rank| rank.rank == device.rank)
    };
    DeviceOut {
        id: device.id,
        rank: device.rank,
        name: device.name.as_deref(),
        sm_count: device.sm_count,
        memory_bytes: device.memory_bytes,
        peak_dram_bytes_per_s: trace.devices.iter().find(is_it).and_then(|known| known.properties.peak_memory_bytes_per_s),
        active: device.active,
    }
}

pub(super) fn hardware<'a>(hardware: &'a Hardware, trace: &Trace) -> HardwareOut<'a> {
    HardwareOut {
        devices: hardware.devices.iter().map(|known| device(known, trace)).collect(),
        driver: hardware.driver.as_deref(),
        cuda: hardware.cuda.as_deref(),
    }
}

pub(super) fn report(report: &Report) -> ReportOut<'_> {
    ReportOut {
        workload: &report.workload,
        hardware: &report.hardware,
        top_cuda_time: &report.top_cuda_time,
        top_host_cost: &report.top_host_cost,
        next_experiment: &report.next_experiment.text,
        next_experiment_code: report.next_experiment.code,
    }
}

fn device_totals(totals: &DeviceTotals, trace: &Trace) -> DeviceTotalsOut {
    let device = trace.devices.get(totals.device.index());
    let rank = device.and_then(|d| trace.ranks.get(d.rank as usize));
    DeviceTotalsOut {
        id: device.map(|d| d.ordinal),
        rank: rank.map(|r| r.rank),
        gpu_busy_ns: totals.busy_ns.get(),
        gpu_span_ns: totals.span_ns.get(),
        gpu_idle_ns: totals.idle_ns.get(),
        kernel_busy_ns: totals.kernel_busy_ns.get(),
        copy_busy_ns: totals.copy_busy_ns.get(),
        comm_busy_ns: totals.comm_busy_ns.get(),
        exposed_copy_ns: totals.exposed_copy_ns.get(),
        exposed_comm_ns: totals.exposed_comm_ns.get(),
        activities: totals.activities,
    }
}

fn totals(totals: &Totals, trace: &Trace) -> TotalsOut {
    TotalsOut {
        wall_ns: totals.wall_ns.get(),
        windows: totals.unrecorded.map(|unrecorded| unrecorded.windows),
        unrecorded_ns: totals.unrecorded.map(|unrecorded| unrecorded.between_ns.get()),
        gpu_busy_ns: ns(totals.gpu_busy_ns),
        gpu_idle_ns: ns(totals.gpu_idle_ns),
        gpu_outside_scope_ns: ns(totals.gpu_outside_ns),
        gpu_busy_fraction: totals.gpu_busy_fraction,
        kernel_busy_ns: ns(totals.kernel_busy_ns),
        copy_busy_ns: ns(totals.copy_busy_ns),
        comm_busy_ns: ns(totals.comm_busy_ns),
        exposed_copy_ns: ns(totals.exposed_copy_ns),
        exposed_comm_ns: ns(totals.exposed_comm_ns),
        kernels: totals.kernels,
        memcpys: totals.memcpys,
        memsets: totals.memsets,
        launches: totals.launches,
        host_ops: totals.host_ops,
        devices: totals.devices.iter().map(|d| device_totals(d, trace)).collect(),
    }
}

fn host_clock(clock: &HostClock) -> HostClockOut<'_> {
    let calibration = clock.calibration.as_ref().map(|known| CalibrationOut {
        step: &known.step,
        steps: known.steps,
        profiled_step_ns: known.profiled_step_ns.get(),
        unprofiled_step_ns: known.unprofiled_step_ns.get(),
        inflation_ratio: known.inflation,
        busy_per_step_ns: ns(known.busy_per_step_ns),
        busy_fraction: known.busy_fraction,
    });
    HostClockOut { note: &clock.note, calibration }
}

/// The document of `longpole triage`. The trace gives devices their numbers and ranks.
pub fn triage<'a>(header: &Header<'a>, triage: &'a Triage, trace: &Trace) -> impl Serialize + use<'a> {
    let body = Body {
        hardware: hardware(&triage.hardware, trace),
        totals: totals(&triage.totals, trace),
        ops: triage.ops.rows.iter().map(op).collect(),
        families: triage.families.iter().map(family).collect(),
        kernels: triage.kernels.iter().map(kernel).collect(),
        ranges: triage.ranges.iter().map(|row| range(row, false)).collect(),
        smells: triage.smells.iter().map(smell).collect(),
        questions: triage.questions.iter().map(question).collect(),
        host_clock: triage.host_clock.as_ref().map(host_clock),
        report: report(&triage.report),
    };
    super::document("longpole.triage/1", header, body)
}

#[derive(Serialize)]
struct Compared<T, D> {
    #[serde(flatten)]
    triage: T,
    compare: D,
}

/// The same with the comparison that `--compare` asks for under `compare`, the document of `longpole diff`.
pub fn triage_compared<'a>(
    header: &Header<'a>,
    result: &'a Triage,
    trace: &Trace,
    before: &Header<'a>,
    diff: &'a Diff,
    limit: Option<usize>,
) -> impl Serialize + use<'a> {
    Compared { triage: triage(header, result, trace), compare: super::diff(before, header, diff, limit) }
}
