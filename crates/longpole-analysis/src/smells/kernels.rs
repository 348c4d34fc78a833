//! The device's own work: many small kernels, one large one, or neither.

use longpole_trace::{ActivityId, Ns};

use super::facts::Work;
use super::operators::is_listed_elsewhere;
use super::thresholds::{KERNEL_SHARE, MANY_KERNELS, SMALL_KERNEL, SMALL_SHARE, STARVED_SHARE};
use super::{Ceiling, Facts, Found, SmellKind, Stage};
use crate::ceilings::{AtFloor, CeilingKind, all_runs, fusable};
use crate::families::Family;
use crate::kernels::KernelRow;
use crate::phrases::{count, counted, fraction, percent, time};

pub(super) const MANY_TINY_KERNELS: SmellKind = SmellKind {
    code: "many_tiny_kernels",
    stage: Stage::ManyKernels,
    lead_in: "fuse kernels: ",
    meaning: "Device time goes into a great many short kernels: each starts, drains and reads its inputs again.",
    detection: "At least {MANY_KERNELS} kernels, and those under {SMALL_KERNEL} take {SMALL_SHARE} of kernel time. It leads where some of them follow each other and fuse.",
    ceiling: "runs of kernels under the limit that follow each other on a stream and fuse (elementwise, copies and casts, norms, reductions): their time with nothing else \
              running on the device, less the shortest kernel of each run",
    fix: "Fuse neighbours: torch.compile, fused norms, rotary embeddings and activations, a larger batch.",
    find: many_tiny_kernels,
};

pub(super) const ONE_KERNEL: SmellKind = SmellKind {
    code: "one_kernel",
    stage: Stage::Kernel,
    lead_in: "one kernel: ",
    meaning: "One kernel takes a large part of device time.",
    detection: "One kernel takes at least {KERNEL_SHARE} of device time.",
    ceiling: "time of the kernel above the floor of its operator calls, where shapes and device tell the floor of at least half of it; otherwise all of its time. Never more than its time with nothing else running on the device",
    fix: "Profile one launch with ncu (rocprof-compute on AMD) and compare it with its floor: bytes over memory bandwidth, or FLOPs over peak. Then another \
          algorithm, tile, dtype or library.",
    find: one_kernel,
};

pub(super) const TOP_FAMILY: SmellKind = SmellKind {
    code: "top_family",
    stage: Stage::Fallback,
    lead_in: "no single cause: ",
    meaning: "Nothing stands out: device time is spread over kernels, and the largest family is the place to look.",
    detection: "Nothing else was found to try first.",
    ceiling: "the same as of one_kernel, for the largest kernel of the family",
    fix: "Profile the largest kernel of the family with ncu (rocprof-compute on AMD).",
    find: top_family,
};

pub(super) fn is_kernel(row: &KernelRow) -> bool {
    !matches!(row.family, Family::Memcpy | Family::Memset)
}

fn many_tiny_kernels(facts: &Facts<'_, '_>) -> Option<Found> {
    let (totals, evidence, trace) = (facts.tables.totals, facts.evidence, facts.trace());
    let kernel_time: Ns = facts.tables.kernels.iter().filter(|row| is_kernel(row)).map(|row| row.cuda_ns).sum();
    if totals.kernels < MANY_KERNELS.count() || !SMALL_SHARE.is_met(evidence.small_kernels_ns, kernel_time) {
        return None;
    }
    let replays = &evidence.replays;
    let from = counted(replays.launches, "graph replay");
    let launched = if replays.device_ns.get() <= kernel_time.get() / 2 {
        String::new()
    } else if replays.kernels == totals.kernels {
        format!(" from {from}")
    } else {
        format!(" ({} of them from {from})", count(replays.kernels))
    };
    let family = small_family(facts).map(Family::name);
    let is_small = |row: usize| {
        trace.activities.dur[row] < SMALL_KERNEL.ns()
            && !matches!(trace.activities.kind[row], longpole_trace::ActivityKind::Memcpy | longpole_trace::ActivityKind::Memset)
    };
    let small = facts.work(|row, _| is_small(row));
    let index = facts.tables.index;
    let mut is_chained = fusable(trace);
    for (row, is_chained) in is_chained.iter_mut().enumerate() {
        *is_chained = *is_chained && is_small(row) && facts.tables.scope.includes_activity(index, ActivityId::from_index(row));
    }
    let chains = all_runs(trace, &facts.turns, &is_chained);
    let fused = (facts.work(|row, _| chains.is_member[row]).alone - chains.least_ns).max(Ns::ZERO);
    let summary = format!(
        "{}{launched}, median {}; those under 5 us take {} of kernel time, the GPU is busy {}",
        counted(totals.kernels, "kernel"),
        time(evidence.median_kernel_ns),
        percent(evidence.small_kernels_ns, kernel_time)?,
        facts.busy_of_span()?
    );
    let next = format!("fuse{} neighbours, then count kernels per step", family.map_or_else(String::new, |family| format!(" {family}")));
    Some(
        Found::new(family.unwrap_or("small kernels"), summary, next)
            .covering(facts.device_share(small.total))
            .at_most(facts.device_ceiling(CeilingKind::Fused, fused.min(small.alone)))
            .fact("kernels", totals.kernels)
            .fact("small_kernels", evidence.small_kernels)
            .fact("small_kernels_ns", evidence.small_kernels_ns)
            .fact("small_of_kernel_time_fraction", fraction(evidence.small_kernels_ns, kernel_time))
            .fact("small_alone_ns", small.alone)
            .fact("fusable_runs", chains.runs)
            .fact("fusable_kernels", chains.kernels)
            .fact("median_ns", evidence.median_kernel_ns)
            .fact("graph_replays", replays.launches)
            .fact("graph_replay_activities", replays.activities)
            .fact("graph_replay_kernels", replays.kernels)
            // Where no two of them follow each other, fusing is no experiment.
            .leading(fused > Ns::ZERO),
    )
}

/// The family with most time in kernels that are small on the median. Matrix products and attention are not fused away.
fn small_family(facts: &Facts<'_, '_>) -> Option<Family> {
    let mut sums = vec![Ns::ZERO; Family::ALL.len()];
    for row in facts.tables.kernels.iter().filter(|row| is_kernel(row)) {
        let fusable = !matches!(row.family, Family::Gemm | Family::Attention | Family::Communication | Family::Other);
        if fusable && row.median_ns < SMALL_KERNEL.ns() {
            sums[row.family as usize] += row.cuda_ns;
        }
    }
    Family::ALL.iter().copied().max_by_key(|&family| sums[family as usize]).filter(|&family| sums[family as usize] > Ns::ZERO)
}

fn one_kernel(facts: &Facts<'_, '_>) -> Option<Found> {
    let row = facts.tables.kernels.iter().find(|row| is_kernel(row) && !is_listed_elsewhere(facts, row.family))?;
    if !KERNEL_SHARE.is_met(row.cuda_ns, facts.device_time) {
        return None;
    }
    let (work, ceiling, floor) = kernel_ceiling(facts, row);
    let summary = format!(
        "{} ({}) takes {} of GPU time, {} at a median of {}",
        facts.clip_kernel(&row.short_name),
        row.family.name(),
        percent(row.cuda_ns, facts.device_time)?,
        counted(row.calls, "call"),
        time(row.median_ns)
    );
    Some(
        Found::new(
            row.name.as_str(),
            summary,
            format!("profile one with {} against its memory or FLOP floor, then measure the median", facts.kernel_profiler()),
        )
        .covering(facts.device_share(work.total))
        .at_most(ceiling)
        .fact("calls", row.calls)
        .fact("cuda_ns", row.cuda_ns)
        .fact("of_device_time_fraction", fraction(row.cuda_ns, facts.device_time))
        .fact("median_ns", row.median_ns)
        .fact("max_ns", row.max_ns)
        .fact("family", row.family.name())
        .fact("owner", row.owners.first().map(|owner| owner.name.as_str()))
        .fact("floor_ns", floor.map(|floor| floor.floor))
        .fact("without_floor_ns", floor.map(|floor| floor.unknown))
        .leading(true),
    )
}

/// The work of a kernel, what it could win, and its floor. A kernel of several operators has that of their calls.
fn kernel_ceiling(facts: &Facts<'_, '_>, row: &KernelRow) -> (Work, Option<Ceiling>, Option<AtFloor>) {
    let work = facts.kernel_work(&row.name);
    let trace = facts.trace();
    let name = trace.strings.find(&row.name);
    let (ceiling, floor) = facts.work_ceiling(work, |at| Some(trace.activities.name[at]) == name);
    (work, ceiling, floor)
}

fn top_family(facts: &Facts<'_, '_>) -> Option<Found> {
    let family = facts.tables.families.first()?;
    let kernel = facts.tables.kernels.iter().find(|row| row.family == family.family)?;
    let summary = format!(
        "the GPU is busy {}; {} takes {} of its time, {} ({}) the most",
        facts.busy_of_span()?,
        family.family.name(),
        percent(family.self_cuda_ns, facts.device_time)?,
        facts.clip_kernel(&kernel.short_name),
        time(kernel.cuda_ns)
    );
    // It is not shown unless nothing else leads: then its floor is not worth the time.
    let leads_not = facts.plain.is_none() && facts.knows_launchers() && STARVED_SHARE.is_met(facts.host_pace.starved, facts.host_pace.span);
    let (work, ceiling, floor) = if leads_not { (Work::default(), None, None) } else { kernel_ceiling(facts, kernel) };
    Some(
        Found::new(
            family.family.name(),
            summary,
            format!("profile that one with {}, then measure the family again", facts.kernel_profiler()),
        )
        .covering(facts.device_share(work.total))
        .at_most(ceiling)
        .fact("family_ns", family.self_cuda_ns)
        .fact("family_calls", family.calls)
        .fact("kernel", kernel.name.as_str())
        .fact("kernel_ns", kernel.cuda_ns)
        .fact("floor_ns", floor.map(|floor| floor.floor))
        .fact("without_floor_ns", floor.map(|floor| floor.unknown))
        .leading(true),
    )
}
