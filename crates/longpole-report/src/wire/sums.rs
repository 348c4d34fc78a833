//! Documents of sources that hold sums alone: those of `kernels`, `families`, `ranges` and `triage`, with null for what sums cannot say.

use longpole_analysis::{FamilySum, KernelSum, ScopeSum, ScopeSums, SumOwner, SumsTriage, WorkSum};
use longpole_trace::{AggregateKind, DeviceId, Ns, Trace};
use serde::{Serialize, Serializer};

use super::smells::{QuestionOut, question};
use super::triage::{HardwareOut, ReportOut, hardware, report};
use super::{DeviceOut, device, ns};
use crate::header::Header;

#[derive(Serialize)]
struct WorkOut {
    bytes: Option<u64>,
    flops: Option<u64>,
    bytes_per_s: Option<f64>,
    flops_per_s: Option<f64>,
    floor_fraction: Option<f64>,
}

fn work(work: &WorkSum) -> WorkOut {
    let WorkSum { bytes, flops, bytes_per_s, flops_per_s, floor_fraction } = *work;
    WorkOut { bytes, flops, bytes_per_s, flops_per_s, floor_fraction }
}

#[derive(Serialize)]
struct Kernel<'a> {
    name: &'a str,
    short_name: &'a str,
    kind: &'static str,
    family: &'static str,
    calls: Option<u64>,
    cuda_ns: Option<i64>,
    min_ns: Option<i64>,
    median_ns: Option<i64>,
    max_ns: Option<i64>,
    average_ns: Option<i64>,
    cycles: Option<u64>,
    #[serde(flatten)]
    work: WorkOut,
    op: Option<&'a str>,
    ops: [(); 0],
    scopes: Vec<Owner<'a>>,
}

#[derive(Serialize)]
struct Owner<'a> {
    name: &'a str,
    calls: Option<u64>,
    cuda_ns: Option<i64>,
}

fn owner(owner: &SumOwner) -> Owner<'_> {
    Owner { name: &owner.name, calls: owner.calls, cuda_ns: ns(owner.cuda_ns) }
}

fn kernel(row: &KernelSum) -> Kernel<'_> {
    Kernel {
        name: &row.name,
        short_name: &row.short_name,
        kind: if row.kind == AggregateKind::Layer { "layer" } else { "kernel" },
        family: row.family.name(),
        calls: row.calls,
        cuda_ns: ns(row.cuda_ns),
        min_ns: None,
        median_ns: ns(row.median_ns),
        max_ns: None,
        average_ns: ns(row.average_ns),
        cycles: row.cycles,
        work: work(&row.work),
        op: None,
        ops: [],
        scopes: row.owners.iter().map(owner).collect(),
    }
}

#[derive(Serialize)]
struct Kernels<'a> {
    kernels: Vec<Kernel<'a>>,
}

/// The document of `longpole kernels`.
pub fn kernel_sums<'a>(header: &Header<'a>, rows: &'a [KernelSum]) -> impl Serialize + use<'a> {
    super::document("longpole.kernels/1", header, Kernels { kernels: rows.iter().map(kernel).collect() })
}

#[derive(Serialize)]
struct Family {
    #[serde(rename = "family")]
    name: &'static str,
    calls: Option<u64>,
    self_cuda_ns: Option<i64>,
    share_fraction: Option<f64>,
}

fn family(row: &FamilySum) -> Family {
    Family { name: row.family.name(), calls: row.calls, self_cuda_ns: ns(row.self_cuda_ns), share_fraction: row.share_fraction }
}

#[derive(Serialize)]
struct Families {
    families: Vec<Family>,
}

/// The document of `longpole families`.
pub fn family_sums<'a>(header: &Header<'a>, rows: &[FamilySum]) -> impl Serialize + use<'a> {
    super::document("longpole.families/1", header, Families { families: rows.iter().map(family).collect() })
}

#[derive(Serialize)]
struct Range<'a> {
    name: &'a str,
    parents: Vec<&'a str>,
    depth: usize,
    calls: Option<u64>,
    cpu_ns: Option<i64>,
    gpu_span_ns: Option<i64>,
    gpu_busy_ns: Option<i64>,
    gpu_idle_ns: Option<i64>,
    kernels: Option<u64>,
    cuda_ns: Option<i64>,
    self_cuda_ns: Option<i64>,
    cycles: Option<u64>,
    #[serde(flatten)]
    work: WorkOut,
}

/// Rows that are made one by one while they are written: every row has the names around it.
struct Ranges<'a> {
    scopes: &'a ScopeSums,
    trace: &'a Trace,
}

impl Serialize for Ranges<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.scopes.rows.iter().map(|row| self.row(row)))
    }
}

impl<'a> Ranges<'a> {
    fn row(&self, row: &ScopeSum) -> Range<'a> {
        Range {
            name: self.scopes.name(self.trace, row),
            parents: self.scopes.parents(self.trace, row),
            depth: row.depth,
            calls: None,
            cpu_ns: ns(row.cpu_ns),
            gpu_span_ns: None,
            gpu_busy_ns: None,
            gpu_idle_ns: None,
            kernels: row.kernels,
            cuda_ns: ns(row.cuda_ns),
            self_cuda_ns: ns(row.self_cuda_ns),
            cycles: row.cycles,
            work: work(&row.work),
        }
    }
}

#[derive(Serialize)]
struct RangesBody<'a> {
    ranges: Ranges<'a>,
}

/// The document of `longpole ranges`.
pub fn scope_sums<'a>(header: &Header<'a>, scopes: &'a ScopeSums, trace: &'a Trace) -> impl Serialize + use<'a> {
    super::document("longpole.ranges/1", header, RangesBody { ranges: Ranges { scopes, trace } })
}

/// Every total that needs a timeline is absent.
#[derive(Serialize)]
struct TotalsOut {
    wall_ns: Option<i64>,
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
    kernels: Option<u64>,
    memcpys: Option<u64>,
    memsets: Option<u64>,
    launches: Option<u64>,
    host_ops: Option<u64>,
    devices: [(); 0],
    cuda_ns: Option<i64>,
    device_sums: Vec<DeviceSumOut>,
}

#[derive(Serialize)]
struct DeviceSumOut {
    #[serde(flatten)]
    device: DeviceOut,
    cuda_ns: Option<i64>,
    calls: Option<u64>,
}

#[derive(Serialize)]
struct Triage<'a> {
    hardware: HardwareOut<'a>,
    totals: TotalsOut,
    ops: [(); 0],
    families: Vec<Family>,
    kernels: Vec<Kernel<'a>>,
    ranges: Ranges<'a>,
    smells: [(); 0],
    questions: Vec<QuestionOut<'a>>,
    host_clock: Option<()>,
    report: ReportOut<'a>,
}

fn totals(result: &SumsTriage, trace: &Trace) -> TotalsOut {
    let none = DeviceOut { device: None, rank: None };
    let device_sums = result.devices.iter().map(|sum| DeviceSumOut {
        device: sum.device.map_or(DeviceOut { ..none }, |id: DeviceId| device(trace, id)),
        cuda_ns: ns(sum.cuda_ns),
        calls: sum.calls,
    });
    TotalsOut {
        wall_ns: None,
        windows: None,
        unrecorded_ns: None,
        gpu_busy_ns: None,
        gpu_idle_ns: None,
        gpu_outside_scope_ns: None,
        gpu_busy_fraction: None,
        kernel_busy_ns: None,
        copy_busy_ns: None,
        comm_busy_ns: None,
        exposed_copy_ns: None,
        exposed_comm_ns: None,
        kernels: result.calls,
        memcpys: None,
        memsets: None,
        launches: None,
        host_ops: None,
        devices: [],
        cuda_ns: result.cuda_ns.map(Ns::get),
        device_sums: device_sums.collect(),
    }
}

/// The document of `longpole triage`.
pub fn sums_triage<'a>(header: &Header<'a>, result: &'a SumsTriage, trace: &'a Trace) -> impl Serialize + use<'a> {
    let body = Triage {
        hardware: hardware(&result.hardware, trace),
        totals: totals(result, trace),
        ops: [],
        families: result.families.iter().map(family).collect(),
        kernels: result.kernels.iter().map(kernel).collect(),
        ranges: Ranges { scopes: &result.scopes, trace },
        smells: [],
        questions: result.questions.iter().map(question).collect(),
        host_clock: None,
        report: report(&result.report),
    };
    super::document("longpole.triage/1", header, body)
}
