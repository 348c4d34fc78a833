//! What the recording does not show. These come before any suspicion: nothing wins time here, only knowledge.

use longpole_trace::{Ns, Recorder};

use super::thresholds::{CAPTURE_SHARE, FEW_ACTIVITIES, LAUNCHES_TO_JUDGE, MISSING_SHARE, UNNAMED_CALLS};
use super::{Facts, Found, SmellKind, Stage};
use crate::ops::OpRow;
use crate::phrases::{count, counted, percent, time};
use crate::ranges::is_users;

const NO_CEILING: &str = "none: recording again wins knowledge, not time";

pub(super) const EMPTY: SmellKind = SmellKind {
    code: "empty",
    stage: Stage::Recording,
    lead_in: "",
    meaning: "The scope holds no operator, no range and no device work.",
    detection: "There is no event in the scope.",
    ceiling: NO_CEILING,
    fix: "Profile while the model runs, or ask for a scope in which something happens.",
    find: empty,
};

pub(super) const CUT_FILE: SmellKind = SmellKind {
    code: "cut_file",
    stage: Stage::Recording,
    lead_in: "",
    meaning: "The file ends early or is damaged. Device events are the last part of most traces, so a cut loses them first: how busy the device was, and \
              what the host waited for, cannot be known.",
    detection: "Reading met a cut or damage (trust: truncated, damaged_compression). Nothing but what the recording itself cost is judged then.",
    ceiling: NO_CEILING,
    fix: "Copy the file again and compare sizes. If it is short at its origin, let the program that recorded it end by itself: the profiler writes the file \
          when it stops. Record fewer steps if the disk was full.",
    find: cut_file,
};

pub(super) const RECORD_CUDA: SmellKind = SmellKind {
    code: "record_cuda",
    stage: Stage::Recording,
    lead_in: "",
    meaning: "No device activity was recorded: whether the device was busy, and with what, cannot be known.",
    detection: "There is no device activity in the trace.",
    ceiling: NO_CEILING,
    fix: "Add ProfilerActivity.CUDA to the activities of the profiler; with Nsight Systems, record with --trace=cuda,nvtx. Counter and range profiling hide kernels from it: leave them off. If nothing was \
          meant to run on a device, read the host table (longpole ops --sort self_cpu_time_total).",
    find: record_cuda,
};

pub(super) const NOTHING_IN_SCOPE: SmellKind = SmellKind {
    code: "nothing_in_scope",
    stage: Stage::Recording,
    lead_in: "",
    meaning: "The trace has device work, and none of it is in the scope that was asked for.",
    detection: "There is a scope without device activity in it, in a trace that has some.",
    ceiling: NO_CEILING,
    fix: "Ask for another scope: longpole ranges says which ranges launch device work; the hardware line names the devices of a rank.",
    find: nothing_in_scope,
};

pub(super) const GRAPH_CAPTURE: SmellKind = SmellKind {
    code: "graph_capture",
    stage: Stage::Recording,
    lead_in: "",
    meaning: "A device graph is being captured: its launches are recorded into the graph and run nothing.",
    detection: "At least {LAUNCHES_TO_JUDGE} launch calls, {CAPTURE_SHARE} of them without device work, a call that captures or instantiates a graph, and no \
                replay of a graph with device work.",
    ceiling: NO_CEILING,
    fix: "Profile steps that replay the graph.",
    find: graph_capture,
};

pub(super) const KERNELS_MISSING: SmellKind = SmellKind {
    code: "kernels_missing",
    stage: Stage::Recording,
    lead_in: "",
    meaning: "Most launches have no device work in the trace: device times are lower bounds.",
    detection: "At least {LAUNCHES_TO_JUDGE} launch calls, {MISSING_SHARE} of them without device work.",
    ceiling: NO_CEILING,
    fix: "Synchronise before the profiler stops, record fewer steps, and see that no other profiler holds the device.",
    find: kernels_missing,
};

pub(super) const TOO_LITTLE: SmellKind = SmellKind {
    code: "too_little",
    stage: Stage::TooLittle,
    lead_in: "",
    meaning: "There is device work, but too little of it to judge.",
    detection: "Fewer than {FEW_ACTIVITIES} pieces of device work.",
    ceiling: NO_CEILING,
    fix: "Profile several whole steps after a warm-up.",
    find: too_little,
};

pub(super) const RECORD_CPU: SmellKind = SmellKind {
    code: "record_cpu",
    stage: Stage::Unattributed,
    lead_in: "",
    meaning: "Neither operators nor ranges say who launches the device work, and what the host does meanwhile.",
    detection: "There is device work and no operator, and less than {RANGED_SHARE} of device time is launched, or was captured, inside ranges. It leads where the \
                recorder could have seen operators: under Nsight Systems and longpole record where kernels or ranges are PyTorch's.",
    ceiling: NO_CEILING,
    fix: "Add ProfilerActivity.CPU to the activities of the profiler; with Nsight Systems or longpole record, run PyTorch under torch.autograd.profiler.emit_nvtx(). A program without \
          PyTorch puts NVTX ranges around its phases.",
    find: record_cpu,
};

pub(super) const RECORD: SmellKind = SmellKind {
    code: "record",
    stage: Stage::Fallback,
    lead_in: "",
    meaning: "The device work in the trace has no length.",
    detection: "Nothing else was found, and the durations of all device work are zero.",
    ceiling: NO_CEILING,
    fix: "Record again, with a current version of the profiler.",
    find: record,
};

pub(super) const UNNAMED_PHASES: SmellKind = SmellKind {
    code: "unnamed_phases",
    stage: Stage::Listed,
    lead_in: "",
    meaning: "The trace names no phases: prefill, decode and their steps cannot be told apart.",
    detection: "At least {UNNAMED_CALLS} operator or API calls, and no range other than those that libraries open.",
    ceiling: NO_CEILING,
    fix: "Wrap each phase: `with torch.profiler.record_function(\"decode_step\"):` where torch.profiler records, `with \
          torch.cuda.nvtx.range(\"decode_step\"):` for Nsight Systems, `nvtxRangePushA(\"decode_step\"); ... nvtxRangePop();` in C++.",
    find: unnamed_phases,
};

fn empty(facts: &Facts<'_, '_>) -> Option<Found> {
    let totals = facts.tables.totals;
    let nothing = totals.host_ops == 0 && totals.devices.is_empty() && facts.tables.ops.rows.is_empty() && facts.tables.ranges.is_empty();
    let (summary, next) = if facts.tables.scope.is_whole() {
        ("there are no events here", "record again")
    } else {
        ("nothing is in scope", "ask for a scope in which something ran")
    };
    nothing.then(|| Found::new("the scope", summary.to_owned(), next).leading(true))
}

fn cut_file(facts: &Facts<'_, '_>) -> Option<Found> {
    facts.tables.is_cut.then(|| {
        let busy = facts.tables.totals.gpu_busy_ns;
        let read = busy.map_or_else(|| "no GPU work was read".to_owned(), |busy| format!("at least {} of GPU work was read", time(busy)));
        Found::new(
            "the file",
            format!("the file was cut, and device events come last in it: {read}"),
            "copy or record it again whole, then read the GPU busy share",
        )
        .fact("gpu_busy_read_ns", busy)
        .fact("activities_read", activities(facts))
        .fact("host_ops_read", facts.tables.totals.host_ops)
        .leading(true)
    })
}

fn record_cuda(facts: &Facts<'_, '_>) -> Option<Found> {
    if facts.has_device() || empty(facts).is_some() || facts.has_work_outside_scope() {
        return None;
    }
    let (launches, advice) = (facts.evidence.launch_calls, facts.trace().recorder.advice());
    let found = if launches > 0 {
        Found::new(
            "device activity",
            format!("{} but no device activity: whether the GPU was busy cannot be known", counted(launches, "launch call")),
            advice.record_device,
        )
    } else {
        let top = top_host_row(facts).map_or_else(String::new, |(row, time)| {
            let share = percent(time, facts.wall).unwrap_or_default();
            format!("; if the CPU does the work, {} is {share} of the wall", facts.clip(&row.name))
        });
        Found::new(
            "device activity",
            format!("no device activity and no launch is here: whether a GPU was busy cannot be known{top}"),
            advice.record_device_if_used,
        )
    };
    Some(found.fact("launch_calls", launches).fact("host_ops", facts.tables.totals.host_ops).leading(true))
}

fn nothing_in_scope(facts: &Facts<'_, '_>) -> Option<Found> {
    (facts.has_work_outside_scope() && empty(facts).is_none()).then(|| {
        let outside = facts.trace().activities.len() as u64;
        Found::new(
            "the scope",
            format!("nothing in scope ran on a device: all {} of device work are outside it", counted(outside, "piece")),
            "ask for a scope with device work (longpole ranges)",
        )
        .fact("activities_outside", outside)
        .fact("host_ops", facts.tables.totals.host_ops)
        .leading(true)
    })
}

fn graph_capture(facts: &Facts<'_, '_>) -> Option<Found> {
    let evidence = facts.evidence;
    let (all, unanswered) = (evidence.launch_calls, evidence.unanswered);
    // Where replays are in it, they show what the graph costs.
    let is_replayed = evidence.replays.launches > 0;
    let holds =
        all >= LAUNCHES_TO_JUDGE.count() && unanswered as f64 >= all as f64 * CAPTURE_SHARE.value && evidence.captured && !is_replayed;
    holds.then(|| {
        Found::new(
            "graph capture",
            format!("here a graph is being captured ({} of {} launches ran nothing yet)", count(unanswered), count(all)),
            "record a replay: profile steps that replay it and measure busy over span",
        )
        .fact("launch_calls", all)
        .fact("launches_without_device_work", unanswered)
        .leading(true)
    })
}

fn kernels_missing(facts: &Facts<'_, '_>) -> Option<Found> {
    // As the trust header counts them: what was only captured is not missing.
    let (all, unanswered) = (facts.evidence.launch_calls, facts.evidence.unanswered - facts.evidence.captured_launches);
    let holds = all >= LAUNCHES_TO_JUDGE.count() && unanswered as f64 >= all as f64 * MISSING_SHARE.value;
    // Without any device work the message is another.
    (holds && !facts.tables.totals.devices.is_empty() && graph_capture(facts).is_none()).then(|| {
        Found::new(
            "launches",
            format!("{} of {} launches have no device work, so every device time is a lower bound", count(unanswered), count(all)),
            "record again and synchronise before the profiler stops, then compare launches with kernels",
        )
        .fact("launch_calls", all)
        .fact("launches_without_device_work", unanswered)
        .leading(true)
    })
}

fn activities(facts: &Facts<'_, '_>) -> u64 {
    facts.tables.totals.devices.iter().map(|device| device.activities).sum()
}

fn too_little(facts: &Facts<'_, '_>) -> Option<Found> {
    let activities = activities(facts);
    (activities > 0 && activities < FEW_ACTIVITIES.count() && graph_capture(facts).is_none()).then(|| {
        let pieces = counted(activities, "piece");
        Found::new(
            "device work",
            format!("{pieces} of device work ({}) in {} is too little to judge", time(facts.busy), time(facts.wall)),
            "record more: profile several whole steps and read busy over span",
        )
        .fact("activities", activities)
        .fact("gpu_busy_ns", facts.busy)
        .leading(true)
    })
}

fn record_cpu(facts: &Facts<'_, '_>) -> Option<Found> {
    if facts.knows_launchers() {
        return None;
    }
    let (recorder, is_torch) = (facts.trace().recorder, is_torch(facts));
    // Recorders that see operators, and the one program that can announce its own.
    let can_record = is_torch || !matches!(recorder, Recorder::Longpole | Recorder::NsightSystems);
    let next = if can_record {
        recorder.advice().record_operators
    } else {
        "put NVTX ranges around the phases of the program (nvtxRangePush, nvtxRangePop), then read which of them launches that kernel"
    };
    let what = if can_record { "no operators" } else { "neither operators nor ranges" };
    let top = facts.tables.kernels.first()?;
    let found = Found::new(
        "operators",
        format!(
            "{what}: who launches what cannot be known; the GPU is busy {} of its span, {} ({}) is {} of its time",
            percent(facts.busy, facts.span)?,
            facts.clip_kernel(&top.short_name),
            top.family.name(),
            percent(top.cuda_ns, facts.device_time)?
        ),
        next,
    );
    let found = found.fact("activities", activities(facts)).fact("top_kernel", top.name.as_str()).fact("top_kernel_ns", top.cuda_ns);
    Some(found.leading(can_record))
}

/// Whether anything hints at PyTorch: its kernels, those of its compiler, the names of its ranges.
pub(super) fn is_torch(facts: &Facts<'_, '_>) -> bool {
    const KERNELS: &[&str] = &["at::native", "at_cuda_detail", "c10::", "triton_"];
    const RANGES: &[&str] = &["aten::", "ProfilerStep", "Torch-Compiled Region", "autograd::"];
    facts.trace().recorder == Recorder::Torch
        || facts.tables.kernels.iter().any(|row| KERNELS.iter().any(|part| row.name.contains(part)))
        || facts.tables.ranges.iter().any(|row| RANGES.iter().any(|prefix| row.name.starts_with(prefix)))
}

fn record(facts: &Facts<'_, '_>) -> Option<Found> {
    let holds = activities(facts) > 0 && facts.device_time == Ns::ZERO;
    holds.then(|| Found::new("device work", "the trace has device work of no length only".to_owned(), "record again").leading(true))
}

fn unnamed_phases(facts: &Facts<'_, '_>) -> Option<Found> {
    let calls: u64 = facts.tables.ops.rows.iter().map(|row| row.calls).sum();
    let named = facts.tables.ranges.iter().any(|row| is_users(&row.name));
    (calls >= UNNAMED_CALLS.count() && !named).then(|| {
        Found::new(
            "ranges",
            format!("{} and no named range: phases cannot be told apart", counted(calls, "call")),
            facts.trace().recorder.advice().name_phases,
        )
        .fact("calls", calls)
        .fact("ranges", 0)
    })
}

/// The operator or call with most self host time.
fn top_host_row<'a>(facts: &Facts<'a, '_>) -> Option<(&'a OpRow, Ns)> {
    let rows = facts.tables.ops.rows.iter().filter_map(|row| Some((row, row.self_cpu_ns?)));
    rows.max_by_key(|&(_, time)| time)
}
