//! One expensive operator, many cheap calls of one, or operators that only move data.

use longpole_trace::{ActivityId, Ns};

use super::facts::Work;
use super::thresholds::{CHEAP_CALLS, CHEAP_SHARE, COMMUNICATION_LISTED, COPY_LISTED, OPERATOR_SHARE, SMALL_KERNEL, TRAFFIC_SHARE};
use super::{Ceiling, Facts, Found, SmellKind, Stage};
use crate::ceilings::{AtFloor, CeilingKind};
use crate::families::{Family, FamilyOfName};
use crate::index::Owner;
use crate::ops::OpRowKind;
use crate::phrases::{count, counted, fraction, percent, time};

pub(super) const ONE_OPERATOR: SmellKind = SmellKind {
    code: "one_operator",
    stage: Stage::Operator,
    lead_in: "one operator: ",
    meaning: "One operator owns the run. Its kind matters: a matrix product or attention is model work and has a floor; a copy, cast, gather, scatter \
              or contiguous is memory traffic dressed as model work, and mostly can go.",
    detection: "One operator owns at least {OPERATOR_SHARE} of device time by itself. Its kind is that of the kernels in which most of its time goes. Copies and collectives that are listed as copies or communication are not repeated.",
    ceiling: "time of the operator's own device work above its floor, where shapes and device tell the floor of at least half of it; otherwise all of that time. Never more than its time with nothing else running on the device",
    fix: "Model work: profile its largest kernel with ncu (rocprof-compute on AMD) against its memory or FLOP floor. Memory traffic: find who asks for it (longpole ops --by stack) \
          and keep one dtype and layout instead.",
    find: one_operator,
};

pub(super) const MEMORY_TRAFFIC: SmellKind = SmellKind {
    code: "memory_traffic",
    stage: Stage::Listed,
    lead_in: "",
    meaning: "Kernels that only move data (copies, casts, layout changes, gathers, scatters) take a good part of device time.",
    detection: "Kernels of the families copy/cast and gather/scatter take at least {TRAFFIC_SHARE} of device time.",
    ceiling: "time covered by those kernels with nothing else running on the device",
    fix: "Keep weights and activations in one dtype; avoid permute().contiguous() and cat() in the loop (write into a preallocated buffer); \
          let a compiler fuse casts into their neighbours.",
    find: memory_traffic,
};

pub(super) const MANY_CHEAP_CALLS: SmellKind = SmellKind {
    code: "many_cheap_calls",
    stage: Stage::Listed,
    lead_in: "",
    meaning: "An operator whose device work is tiny is called thousands of times: the calls cost more than the work.",
    detection: "At least {CHEAP_CALLS} calls of one operator that take {CHEAP_SHARE} of the wall on the host, at less than {SMALL_KERNEL} of device time a \
                call. Of those, the one with most host time.",
    ceiling: "union of the calls on the host, less the time in which a device of the rank was busy",
    fix: "Batch or fuse the calls: foreach and fused variants, torch.compile, one larger tensor instead of many, work moved out of Python loops.",
    find: many_cheap_calls,
};

/// What kind of work a family is.
fn kind(family: Option<Family>) -> &'static str {
    match family {
        Some(Family::Gemm) => "matmul",
        Some(Family::Attention) => "attention",
        Some(Family::CopyCast | Family::GatherScatter | Family::Memcpy | Family::Memset) => "memory traffic",
        Some(Family::Communication) => "communication",
        Some(_) => "other",
        None => "unknown",
    }
}

/// The device work that operators of a name own themselves, what it could win, and its floor.
fn own_work(facts: &Facts<'_, '_>, operator: &str) -> (Work, Option<Ceiling>, Option<AtFloor>) {
    let (index, trace) = (facts.tables.index, facts.trace());
    let Some(name) = trace.strings.find(operator) else { return (Work::default(), None, None) };
    let is_its = |owner: Owner| matches!(owner, Owner::Op(node) if index.tree().name(node) == name);
    let work = facts.work(|_, owner| is_its(owner));
    let (ceiling, floor) = facts.work_ceiling(work, |row| is_its(index.links().owner(ActivityId::from_index(row))));
    (work, ceiling, floor)
}

/// Copies and collectives are judged by how exposed they are, in smells of their own.
pub(super) fn is_listed_elsewhere(facts: &Facts<'_, '_>, family: Family) -> bool {
    let totals = facts.tables.totals;
    let (limit, exposed) = match family {
        Family::Memcpy | Family::Memset => (COPY_LISTED, totals.exposed_copy_ns),
        Family::Communication => (COMMUNICATION_LISTED, totals.exposed_comm_ns),
        _ => return false,
    };
    exposed.is_some_and(|exposed| limit.is_met(exposed, facts.span))
}

fn one_operator(facts: &Facts<'_, '_>) -> Option<Found> {
    let operators = facts.tables.ops.rows.iter().filter(|row| row.kind == OpRowKind::Operator);
    let row = operators.max_by_key(|row| row.self_cuda_ns)?;
    let own = row.self_cuda_ns?;
    if !OPERATOR_SHARE.is_met(own, facts.device_time) {
        return None;
    }
    let mut families = vec![Ns::ZERO; Family::ALL.len()];
    let mut largest = None;
    for kernel in facts.tables.kernels {
        let Some(owner) = kernel.owners.iter().find(|owner| owner.name == row.name) else { continue };
        families[kernel.family as usize] += owner.cuda_ns;
        if largest.is_none_or(|(_, time)| owner.cuda_ns > time) {
            largest = Some((kernel, owner.cuda_ns));
        }
    }
    let (kernel, kernel_time) = largest?;
    let family = Family::ALL.iter().copied().max_by_key(|&family| families[family as usize]);
    if family.is_some_and(|family| is_listed_elsewhere(facts, family)) {
        return None;
    }
    let kind = kind(family);
    let next = match kind {
        "memory traffic" => {
            format!("find who asks for {} (longpole ops --by stack) and drop it, then measure its self CUDA time", facts.clip(&row.name))
        }
        "communication" => "compare the ranks' time in it, then look at the rank with the least".to_owned(),
        _ => format!(
            "profile {} ({}) with {} against its memory or FLOP floor, then measure its self CUDA time",
            facts.clip_kernel(&kernel.short_name),
            time(kernel_time),
            facts.kernel_profiler()
        ),
    };
    let (work, ceiling, floor) = own_work(facts, &row.name);
    let share = percent(own, facts.device_time)?;
    let aside = if kind == "other" { String::new() } else { format!(", {kind}") };
    Some(
        Found::new(
            row.name.as_str(),
            format!("{} owns {share} of GPU time ({}{aside})", facts.clip(&row.name), counted(row.calls, "call")),
            next,
        )
        .covering(facts.device_share(work.total))
        .at_most(ceiling)
        .fact("kind", kind)
        .fact("calls", row.calls)
        .fact("self_cuda_ns", own)
        .fact("of_device_time_fraction", fraction(own, facts.device_time))
        .fact("largest_kernel", kernel.name.as_str())
        .fact("largest_kernel_ns", kernel_time)
        .fact("floor_ns", floor.map(|floor| floor.floor))
        .fact("without_floor_ns", floor.map(|floor| floor.unknown))
        .leading(true),
    )
}

/// What one operator could win, if there is one that owns the run.
pub(super) fn ceiling(facts: &Facts<'_, '_>) -> Option<Ceiling> {
    one_operator(facts).and_then(|found| found.ceiling)
}

fn memory_traffic(facts: &Facts<'_, '_>) -> Option<Found> {
    let moves = |family: Family| matches!(family, Family::CopyCast | Family::GatherScatter);
    let rows = || facts.tables.kernels.iter().filter(|row| moves(row.family));
    let moved: Ns = rows().map(|row| row.cuda_ns).sum();
    if !TRAFFIC_SHARE.is_met(moved, facts.device_time) {
        return None;
    }
    let calls: u64 = rows().map(|row| row.calls).sum();
    let mut sums: hashbrown::HashMap<&str, Ns, foldhash::fast::FixedState> = hashbrown::HashMap::default();
    for owner in rows().flat_map(|row| &row.owners) {
        *sums.entry(&owner.name).or_default() += owner.cuda_ns;
    }
    // What is measured after is the family that the owner's time is in.
    let of_owner = |name: &str, family: Family| -> Ns {
        let owners = rows().filter(|row| row.family == family).flat_map(|row| &row.owners);
        owners.filter(|owner| owner.name == name).map(|owner| owner.cuda_ns).sum()
    };
    let mut owners: Vec<(&str, Ns)> = sums.into_iter().collect();
    owners.sort_by_key(|&(name, time)| (std::cmp::Reverse(time), name));
    let (owner, owner_time) = *owners.first()?;
    let is_copied = of_owner(owner, Family::CopyCast) >= of_owner(owner, Family::GatherScatter);
    let family = if is_copied { Family::CopyCast } else { Family::GatherScatter };
    let metric = family.name();
    let trace = facts.trace();
    let mut families = FamilyOfName::new(trace);
    let is_moved: Vec<bool> = (0..trace.activities.len()).map(|row| moves(families.get(trace, row))).collect();
    let work = facts.work(|row, _| is_moved[row]);
    let names: Vec<String> =
        owners.iter().take(3).map(|&(name, time)| format!("{} {}", facts.clip(name), percent(time, moved).unwrap_or_default())).collect();
    Some(
        Found::new(
            owner,
            format!(
                "{} that only move data take {} of GPU time ({}): {}",
                counted(calls, "kernel"),
                percent(moved, facts.device_time)?,
                time(moved),
                names.join(", ")
            ),
            if owner.starts_with("(no operator)") {
                let of_family = rows().find(|row| row.family == family && row.owners.iter().any(|other| other.name == owner));
                let kernel = of_family.map(|row| facts.clip_kernel(&row.short_name)).unwrap_or_default();
                format!("find the operator of {kernel} in an eager run and drop or fuse it, then measure {metric} time")
            } else {
                format!("drop or fuse the data movement of {}, then measure {metric} time", facts.clip(owner))
            },
        )
        .covering(facts.device_share(work.total))
        .at_most(facts.device_ceiling(CeilingKind::WorkFree, work.alone))
        .fact("kernels", calls)
        .fact("cuda_ns", moved)
        .fact("of_device_time_fraction", fraction(moved, facts.device_time))
        .fact("largest_owner", owner)
        .fact("largest_owner_ns", owner_time)
        .fact("largest_owner_family", metric),
    )
}

fn many_cheap_calls(facts: &Facts<'_, '_>) -> Option<Found> {
    let is_cheap = |device: Option<Ns>, calls: u64| device.is_none_or(|ns| ns.get() < SMALL_KERNEL.ns().get().saturating_mul(calls as i64));
    let rows = facts.tables.ops.rows.iter().filter(|row| {
        row.kind == OpRowKind::Operator
            && row.calls >= CHEAP_CALLS.count()
            && is_cheap(row.cuda_ns, row.calls)
            && row.cpu_ns.is_some_and(|ns| CHEAP_SHARE.is_met(ns, facts.wall))
    });
    let row = rows.max_by_key(|row| row.cpu_ns)?;
    let calls = facts.operators(|name| name == row.name);
    // An operator may call itself, and threads run side by side: the table's sum can be more than what is covered.
    if facts.host_share(calls.total).is_none_or(|share| share < CHEAP_SHARE.value) {
        return None;
    }
    let device = row.cuda_ns.map(|ns| Ns(ns.get() / row.calls as i64));
    let work = device.map_or_else(String::new, |ns| format!(" for {} of GPU", time(ns)));
    let summary = format!(
        "{} is called {} times: {} of host, {} a call{work}",
        facts.clip(&row.name),
        count(row.calls),
        time(calls.total),
        time(Ns(calls.total.get() / row.calls as i64))
    );
    Some(
        Found::new(
            row.name.as_str(),
            summary,
            format!("batch or fuse the calls of {}, then count its calls per step", facts.clip(&row.name)),
        )
        .covering(facts.host_share(calls.total))
        .at_most(facts.steady_host_ceiling(calls.idle))
        .fact("calls", row.calls)
        .fact("calls_per_step", facts.per_step(&calls))
        .fact("host_ns", calls.total)
        .fact("gpu_idle_during_ns", facts.idle_part(&calls))
        .fact("cuda_ns", row.cuda_ns),
    )
}
