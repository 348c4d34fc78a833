//! The first pass over sums: totals, tables, and the report of five lines.

use longpole_trace::{AggregateKind, DeviceId, Ns, Recorder, Trace};

use super::{FamilySum, KernelSum, ScopeSums, Sum, Sums, families, kernels, scopes};
use crate::families::Family;
use crate::phrases::{clip_kernel, counted, list, one_line, percent, percent_of, time};
use crate::questions::{Question, unknown_questions};
use crate::scope::Scope;
use crate::triage::{Hardware, NextExperiment, Report, hardware, hardware_line};

/// Device work of one device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceSum {
    /// The device; absent for work of which it is not said.
    pub device: Option<DeviceId>,
    /// Device time of its kernels.
    pub cuda_ns: Option<Ns>,
    /// Their calls; absent when one of the counts is.
    pub calls: Option<u64>,
}

/// Everything that a first pass says of sums.
#[derive(Debug)]
pub struct SumsTriage {
    /// Hardware.
    pub hardware: Hardware,
    /// Device time of all kernels and layers.
    pub cuda_ns: Option<Ns>,
    /// Their calls; absent when one of the counts is.
    pub calls: Option<u64>,
    /// Regions of which clock cycles were counted. Regions overlap, so their cycles are not added up.
    pub regions_in_cycles: u64,
    /// Each device apart.
    pub devices: Vec<DeviceSum>,
    /// Kernels and layers, most time first.
    pub kernels: Vec<KernelSum>,
    /// Families, most time first.
    pub families: Vec<FamilySum>,
    /// Scopes, depth first.
    pub scopes: ScopeSums,
    /// The four questions, none of which sums can answer.
    pub questions: Vec<Question>,
    /// The report.
    pub report: Report,
}

const NO_TIMELINE: &str = "cannot be known: the source has totals only, not when anything ran (a trace of the same run would tell)";

/// The first pass over the sums of a scope. `workload` replaces the first line; `full_names` keeps names whole.
pub fn sums_triage(trace: &Trace, scope: &Scope, workload: Option<&str>, full_names: bool) -> SumsTriage {
    let sums = Sums::new(trace, scope);
    let kernels = kernels::rows(&sums);
    let families = families::rows(&kernels);
    let scopes = scopes::rows(&sums);
    let (mut all, mut by_device) = (Sum::default(), vec![None; trace.devices.len() + 1]);
    for row in sums.kernel_rows() {
        let own = sums.own(row, false);
        all.add(&own);
        let at = sums.device(row).map_or(trace.devices.len(), DeviceId::index);
        by_device[at].get_or_insert_with(Sum::default).add(&own);
    }
    let devices: Vec<DeviceSum> = by_device
        .iter()
        .enumerate()
        .filter_map(|(at, sum)| {
            let device = (at < trace.devices.len()).then(|| DeviceId::from_index(at));
            sum.map(|sum| DeviceSum { device, cuda_ns: sum.time, calls: sum.calls })
        })
        .collect();
    let regions = kernels.iter().filter(|row| row.cycles.is_some()).count() as u64;
    let mut hardware = hardware(trace, scope);
    for device in &mut hardware.devices {
        let used = |sum: &DeviceSum| sum.device.is_some_and(|id| trace.devices[id.index()].ordinal == device.id);
        device.active = devices.iter().any(used);
    }
    let name = |text: &str| if full_names { one_line(text) } else { clip_kernel(text) };
    let report = Report {
        workload: workload.map_or_else(|| workload_line(trace, &kernels, &scopes), one_line),
        hardware: hardware_line(&hardware),
        top_cuda_time: top_line(&all, regions, &kernels, &name),
        top_host_cost: "not recorded: the source has totals of device work only".to_owned(),
        next_experiment: next(trace, &all, &kernels, &name),
    };
    SumsTriage {
        hardware,
        cuda_ns: all.time,
        calls: all.calls,
        regions_in_cycles: regions,
        devices,
        kernels,
        families,
        scopes,
        questions: unknown_questions(NO_TIMELINE),
        report,
    }
}

fn is_of_layers(kernels: &[KernelSum]) -> bool {
    kernels.iter().any(|row| row.kind == AggregateKind::Layer)
}

fn workload_line(trace: &Trace, kernels: &[KernelSum], scopes: &ScopeSums) -> String {
    let mut parts = Vec::new();
    if is_of_layers(kernels) {
        parts.push(counted(kernels.len() as u64, "layer"));
        let runs = kernels.iter().map(|row| row.calls).max().flatten();
        parts
            .push(runs.map_or_else(|| "number of runs not recorded".to_owned(), |runs| format!("{} of the network", counted(runs, "run"))));
    } else {
        let outer: Vec<&str> = scopes.rows.iter().filter(|row| row.depth == 0).map(|row| scopes.name(trace, row)).collect();
        let shown = outer.iter().take(3).map(|scope| clip_kernel(scope)).collect::<Vec<_>>().join(", ");
        let more = outer.len().saturating_sub(3);
        let more = if more > 0 { format!(" and {}", counted(more as u64, "more scope")) } else { String::new() };
        parts.push(if outer.is_empty() { "no scopes".to_owned() } else { format!("{shown}{more}") });
        parts.push(counted(kernels.len() as u64, "different kernel"));
    }
    parts.push("totals only, no timeline".to_owned());
    parts.join("; ")
}

fn top_line(all: &Sum, regions: u64, kernels: &[KernelSum], name: &dyn Fn(&str) -> String) -> String {
    const SHOWN: usize = 3;
    let Some(total) = all.time else {
        return if regions > 0 {
            format!("no times: clock cycles of {} inside kernels were counted", counted(regions, "region"))
        } else {
            "no device time recorded".to_owned()
        };
    };
    let top = kernels.iter().filter_map(|row| {
        let own = row.cuda_ns.filter(|&time| time > Ns::ZERO)?;
        let calls = row.calls.map_or_else(String::new, |calls| format!("{}, ", counted(calls, "call")));
        Some(format!("{} {} ({calls}{})", name(&row.short_name), percent(own, total).unwrap_or_default(), row.family.name()))
    });
    let head = format!("{} of device time", time(total));
    if kernels.is_empty() { head } else { list(&format!("{head}: "), top, SHOWN) }
}

/// What to look at: of kernels with a floor the one with most time above it, else the one with most time.
fn next(trace: &Trace, all: &Sum, kernels: &[KernelSum], name: &dyn Fn(&str) -> String) -> NextExperiment {
    let above = |row: &KernelSum| {
        let time = row.cuda_ns.unwrap_or_default();
        row.work.floor_fraction.map_or(time.get() as f64, |fraction| time.get() as f64 * (1.0 - fraction).max(0.0))
    };
    // What waits for other ranks is no kernel to make faster, unless there is nothing else.
    let is_own = |row: &&KernelSum| row.family != Family::Communication;
    let timed = || kernels.iter().filter(|row| row.cuda_ns.is_some_and(|time| time > Ns::ZERO)).rev();
    let largest = |a: &&KernelSum, b: &&KernelSum| above(a).total_cmp(&above(b));
    let top = timed().filter(is_own).max_by(largest).or_else(|| timed().max_by(largest));
    let Some(top) = top else {
        return NextExperiment {
            code: "no_device_time",
            text: "no device time recorded: record a profile with times, or a trace (`longpole formats`)".to_owned(),
        };
    };
    let share = top.cuda_ns.zip(all.time).and_then(|(own, all)| percent(own, all)).unwrap_or_default();
    let floor =
        top.work.floor_fraction.map_or_else(String::new, |fraction| format!(", at {} of what the device can do", percent_of(fraction)));
    let (what, how) = if top.kind == AggregateKind::Layer {
        ("layer", "look at its kernels in a trace of the same engine (nsys profile trtexec --loadEngine=...)")
    } else if trace.devices.iter().any(|device| device.properties.name.as_ref().is_some_and(|name| name.starts_with("AMD"))) {
        ("kernel", "profile it with rocprof-compute")
    } else {
        ("kernel", "profile it with Nsight Compute (ncu --kernel-name NAME -o report), then `longpole ncu report.ncu-rep`")
    };
    let timeline = match trace.recorder {
        Recorder::TensorRt => "",
        _ => "; for idle time between kernels record a trace",
    };
    NextExperiment {
        code: "largest_kernel",
        text: format!("{what} {} is {share} of device time{floor}: {how}{timeline}", name(&top.short_name)),
    }
}
