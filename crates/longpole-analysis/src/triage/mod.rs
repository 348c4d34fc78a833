//! The first pass: totals, the heads of the tables, and a report of five lines with one next experiment.
//!
//! The lines are facts of the trace with numbers and units; the next experiment is that of the best-supported smell (see
//! [`crate::smells`]). Nothing here is a guess about code that the trace does not show: what is not recorded is
//! said to be so.

mod calibration;
mod lines;

use longpole_trace::{DeviceId, Ns, Trace};

use crate::families::{FamilyRow, family_table};
use crate::index::TraceIndex;
use crate::kernels::{KernelRow, kernel_table};
use crate::ops::{GroupBy, OpTable, op_table};
use crate::phrases::{clip, clip_kernel, one_line};
use crate::questions::{Question, questions};
use crate::ranges::{RangeRow, RangeWork, range_tables};
use crate::scope::Scope;
use crate::smells::{Evidence, Facts, Smell, suspects};
use crate::totals::{Totals, totals};
use crate::vendor::is_amd;
pub use calibration::{Calibration, HostClock};

/// One device for the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HardwareDevice {
    /// Its number.
    pub id: i64,
    /// Rank it belongs to.
    pub rank: u32,
    /// Product name, if the trace says.
    pub name: Option<String>,
    /// Multiprocessors.
    pub sm_count: Option<u32>,
    /// Memory size.
    pub memory_bytes: Option<u64>,
    /// Whether the trace has activity on it.
    pub active: bool,
}

/// What the run was on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hardware {
    /// Devices the trace describes or uses.
    pub devices: Vec<HardwareDevice>,
    /// CUDA version of the driver (HIP, on AMD).
    pub driver: Option<String>,
    /// CUDA runtime version (HIP, on AMD).
    pub cuda: Option<String>,
}

/// Options of [`triage`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TriageOptions {
    /// Replaces the workload line.
    pub workload: Option<String>,
    /// How long a step takes without a profiler, to restate what host time means.
    pub unprofiled_step: Option<Ns>,
    /// Whether the file was cut or damaged, so that its last part was not read. Device events are the last part of most traces, so then no
    /// share of the wall is given for the device, and nothing is judged that a missing event would change.
    pub is_cut: bool,
    /// Whether sentences hold whole names, however long.
    pub full_names: bool,
}

/// The one next experiment, and the smell that it is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NextExperiment {
    /// Code of the smell: `host_bound`, `one_operator`, `many_tiny_kernels`, `copies`, ...
    pub code: &'static str,
    /// What was found, what to change, what to measure after, and the most it could win, in one sentence.
    pub text: String,
}

/// The five lines, without their heads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// What ran.
    pub workload: String,
    /// On what.
    pub hardware: String,
    /// Where device time went.
    pub top_cuda_time: String,
    /// Where host time went.
    pub top_host_cost: String,
    /// What to try next.
    pub next_experiment: NextExperiment,
}

/// Everything the first pass says.
#[derive(Clone, Debug, PartialEq)]
pub struct Triage {
    /// Hardware.
    pub hardware: Hardware,
    /// Totals.
    pub totals: Totals,
    /// Operators.
    pub ops: OpTable,
    /// Families, largest first.
    pub families: Vec<FamilyRow>,
    /// Kernels, largest first.
    pub kernels: Vec<KernelRow>,
    /// Ranges, in nesting order.
    pub ranges: Vec<RangeRow>,
    /// Suspects, those whose evidence covers most of the wall first.
    pub smells: Vec<Smell>,
    /// The four questions.
    pub questions: Vec<Question>,
    /// What is to be said about host times, if they matter.
    pub host_clock: Option<HostClock>,
    /// The report.
    pub report: Report,
}

/// The tables that lines, smells and questions read.
pub(crate) struct Tables<'a, 't> {
    pub(crate) index: &'a TraceIndex<'t>,
    pub(crate) scope: &'a Scope,
    pub(crate) totals: &'a Totals,
    pub(crate) ops: &'a OpTable,
    pub(crate) families: &'a [FamilyRow],
    pub(crate) kernels: &'a [KernelRow],
    pub(crate) ranges: &'a [RangeRow],
    /// Work of each range by itself, by its id.
    pub(crate) range_work: &'a [RangeWork],
    pub(crate) is_cut: bool,
    pub(crate) full_names: bool,
}

impl Tables<'_, '_> {
    /// A name cut to fit into a sentence, if names are cut.
    pub(crate) fn clip(&self, name: &str) -> String {
        if self.full_names { one_line(name) } else { clip(name) }
    }

    /// The same for a kernel's short name.
    pub(crate) fn clip_kernel(&self, name: &str) -> String {
        if self.full_names { one_line(name) } else { clip_kernel(name) }
    }
}

/// The first pass over a scope.
pub fn triage(index: &TraceIndex<'_>, scope: &Scope, options: &TriageOptions) -> Triage {
    let hardware = hardware(index.trace(), scope);
    // All tables need the links, and only the links need work; the tables then fill two threads about evenly.
    index.links();
    let ((mut totals, families, kernels), (ops, (ranges, range_work))) = rayon::join(
        || (totals(index, scope), family_table(index, scope), kernel_table(index, scope)),
        || (op_table(index, scope, GroupBy::Name), range_tables(index, scope)),
    );
    let is_cut = options.is_cut;
    if is_cut {
        // What was read says how long the device worked at least, but not that it did nothing else.
        (totals.gpu_idle_ns, totals.gpu_busy_fraction) = (None, None);
    }
    let tables = Tables {
        index,
        scope,
        totals: &totals,
        ops: &ops,
        families: &families,
        kernels: &kernels,
        ranges: &ranges,
        range_work: &range_work,
        is_cut,
        full_names: options.full_names,
    };
    let evidence = Evidence::gather(&tables);
    let facts = Facts::new(&tables, &evidence, options.unprofiled_step.filter(|&step| step > Ns::ZERO));
    let (suspects, questions) = rayon::join(|| suspects(&facts), || questions(&facts));
    let host_clock = calibration::host_clock(&facts, options.unprofiled_step);
    let report = Report {
        workload: options.workload.as_deref().map_or_else(|| lines::workload(&tables, &evidence), one_line),
        hardware: lines::hardware(&hardware, if is_amd(index.trace()) { "HIP" } else { "CUDA" }, is_cut),
        top_cuda_time: lines::top_cuda_time(&tables),
        top_host_cost: lines::top_host_cost(&facts),
        next_experiment: NextExperiment { code: suspects.next_code, text: suspects.next_text },
    };
    let smells = suspects.smells;
    Triage { hardware, totals, ops, families, kernels, ranges, smells, questions, host_clock, report }
}

/// The devices in scope that a trace describes or uses, and its software versions.
pub(crate) fn hardware(trace: &Trace, scope: &Scope) -> Hardware {
    let mut active = vec![false; trace.devices.len()];
    for lane in &trace.activities.lane {
        active[trace.lanes[lane.index()].device.index()] = true;
    }
    let devices = trace
        .devices
        .iter()
        .enumerate()
        .filter(|&(at, _)| scope.includes_device(trace, DeviceId::from_index(at)))
        .filter(|(at, device)| active[*at] || device.properties != longpole_trace::DeviceProperties::default())
        .map(|(at, device)| HardwareDevice {
            id: device.ordinal,
            rank: rank_number(trace, DeviceId::from_index(at)),
            name: device.properties.name.clone().filter(|name| !name.trim().is_empty()),
            sm_count: device.properties.sm_count,
            memory_bytes: device.properties.memory_bytes,
            active: active[at],
        })
        .collect();
    let versions = &trace.versions;
    Hardware {
        devices,
        driver: versions.cuda_driver.clone().or_else(|| versions.hip_driver.clone()),
        cuda: versions.cuda_runtime.clone().or_else(|| versions.hip_runtime.clone()),
    }
}

/// The line of the report on hardware, of a source that names no versions.
pub(crate) fn hardware_line(hardware: &Hardware) -> String {
    lines::hardware(hardware, "CUDA", false)
}

/// The rank of a device as users number it.
pub(crate) fn rank_number(trace: &Trace, device: DeviceId) -> u32 {
    let position = trace.devices[device.index()].rank;
    trace.ranks.get(position as usize).map_or(position, |info| info.rank)
}

#[cfg(test)]
mod tests;
