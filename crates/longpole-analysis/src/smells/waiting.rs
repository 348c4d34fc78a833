//! What the device waits for by name: other ranks, a data loader, the host that waits for the device.

use longpole_trace::{Interval, IntervalSet, Ns};

use super::thresholds::{COMMUNICATION_LISTED, COMMUNICATION_SHARE, LOADER_LISTED, LOADER_SHARE, SYNC_CALLS, SYNC_SHARE};
use super::{Facts, Found, SmellKind, Stage};
use crate::ceilings::CeilingKind;
use crate::pace::time_within;
use crate::phrases::{counted, fine_percent, fraction, percent, percent_of, time};

pub(super) const COMMUNICATION: SmellKind = SmellKind {
    code: "communication",
    stage: Stage::Cause,
    lead_in: "communication: ",
    meaning: "Collectives run while no other kernel does. Their time includes waiting for the rank that comes last.",
    detection: "Collective kernels with no other kernel running take at least {COMMUNICATION_LISTED} of the device span. They lead from \
                {COMMUNICATION_SHARE}.",
    ceiling: "time of collectives with no other kernel running, waiting included, on the device with most",
    fix: "Compare the ranks: the one with the least time in collectives is the one the others wait for. If all wait alike, overlap \
          communication with compute, send less (other dtype, fused buckets), or use a smaller group.",
    find: communication,
};

pub(super) const DATA_LOADING: SmellKind = SmellKind {
    code: "data_loading",
    stage: Stage::Cause,
    lead_in: "feed the GPU: ",
    meaning: "The device idles while the host waits for a data loader.",
    detection: "The device idles for at least {LOADER_LISTED} of its span while enumerate(DataLoader) runs. It leads from {LOADER_SHARE}.",
    ceiling: "idle time inside the device span during which the data loader is waited for",
    fix: "More workers, pinned memory, prefetching, persistent workers, cheaper decoding.",
    find: data_loading,
};

pub(super) const SYNCHRONISATION: SmellKind = SmellKind {
    code: "synchronisation",
    stage: Stage::Cause,
    lead_in: "stop waiting for the device: ",
    meaning: "The host waits for the device again and again (.item(), .cpu(), torch.cuda.synchronize()), so that it cannot launch ahead, and the device \
              idles until the next launch.",
    detection: "At least {SYNC_CALLS} calls of *Synchronize, and if there are steps, one in every second step. It leads when the gaps of the device that \
                begin while such a call waits take {SYNC_SHARE} of its span. The share of wall is that of the waits while the device idles: time spent \
                waiting for a busy device costs nothing.",
    ceiling: "gaps of the device that begin while the host waits in such a call: the device has run dry under the wait",
    fix: "Keep results on the device; read them back every few steps or with non_blocking copies and an event; take torch.cuda.synchronize() \
          out of the loop.",
    find: synchronisation,
};

fn communication(facts: &Facts<'_, '_>) -> Option<Found> {
    let totals = facts.tables.totals;
    let (exposed, covered) = (totals.exposed_comm_ns?, totals.comm_busy_ns?);
    if !COMMUNICATION_LISTED.is_met(exposed, facts.span) {
        return None;
    }
    let share = percent(exposed, facts.span)?;
    let ranks = &facts.evidence.comm_by_rank;
    let found = if let (Some((most, most_time)), Some((least, least_time))) = (ranks.first(), ranks.last()) {
        Found::new(
            format!("rank {least}"),
            format!(
                "collectives with nothing beside them take {share} of the GPU span, waiting included: rank {least} spends {} in them, rank \
                 {most} {}",
                time(*least_time),
                time(*most_time)
            ),
            format!("find what makes rank {least} late, then compare again"),
        )
        .fact("least_rank", u64::from(*least))
        .fact("least_ns", *least_time)
        .fact("most_rank", u64::from(*most))
        .fact("most_ns", *most_time)
    } else {
        Found::new(
            "collectives",
            format!("collectives with nothing beside them take {share} of the GPU span ({}), waiting included", time(exposed)),
            "load all ranks, compare their collective times, and look at the rank with the least",
        )
    };
    Some(
        found
            .covering(facts.device_share(covered))
            .at_most(facts.worst_device_ceiling(|device| device.exposed_comm_ns))
            .fact("comm_busy_ns", covered)
            .fact("exposed_ns", exposed)
            .fact("exposed_of_span_fraction", fraction(exposed, facts.span))
            .leading(COMMUNICATION_SHARE.is_met(exposed, facts.span)),
    )
}

fn data_loading(facts: &Facts<'_, '_>) -> Option<Found> {
    let waited = facts.evidence.loader_ns;
    LOADER_LISTED.is_met(waited, facts.span).then(|| {
        let share = fraction(waited, facts.span);
        Found::new(
            "enumerate(DataLoader)",
            format!("the GPU idles {} of its span ({}) while enumerate(DataLoader) runs", percent_of(share), time(waited)),
            "add workers, pinned memory and prefetch, then measure idle per step",
        )
        .covering(facts.device_share(waited))
        .at_most(facts.idle_ceiling(CeilingKind::IdleGone, waited))
        .fact("gpu_idle_during_ns", waited)
        .fact("of_span_fraction", share)
        .leading(LOADER_SHARE.is_met(waited, facts.span))
    })
}

fn synchronisation(facts: &Facts<'_, '_>) -> Option<Found> {
    let calls = facts.api_calls(|name| name.contains("Synchronize"));
    let per_step = facts.per_step(&calls);
    if calls.number < SYNC_CALLS.count() || per_step.is_some_and(|number| number < 0.5) || facts.span == Ns::ZERO {
        return None;
    }
    // Only idle time between the first and the last work: the wait at the end of a recording is not idle time of the run.
    let (mut idle, mut gaps) = (Ns::ZERO, Ns::ZERO);
    for (rank, waits) in calls.by_rank.iter().enumerate() {
        let empty = || facts.evidence.pace.gaps(rank);
        idle += time_within(empty(), waits);
        gaps += empty().filter(|gap| covers(waits, gap.start)).map(Interval::len).sum();
    }
    let items = facts.tables.ops.rows.iter().find(|row| row.name == "aten::_local_scalar_dense" || row.name == "aten::item");
    let cause = items.map_or("", |_| " (.item() and its kind)");
    let each = match (&facts.steps, per_step) {
        (Some(steps), Some(number)) => format!(", {number:.1} a {}", facts.clip(&steps.name)),
        _ => String::new(),
    };
    let of_idle = fraction(idle, facts.idle());
    let summary = format!(
        "{} for the device{cause}{each}: {} with the GPU idle, {} of its idle time",
        counted(calls.number, "wait"),
        time(idle),
        fine_percent(of_idle)
    );
    Some(
        Found::new("*Synchronize", summary, "keep results on the GPU or read them every few steps, then measure GPU idle")
            .covering(facts.host_share(idle))
            .at_most(facts.steady_host_ceiling(gaps))
            .fact("calls", calls.number)
            .fact("calls_per_step", per_step)
            .fact("total_ns", calls.total)
            .fact("gpu_idle_during_ns", idle)
            .fact("of_idle_fraction", of_idle)
            .fact("gaps_begun_ns", gaps)
            .leading(SYNC_SHARE.is_met(gaps, facts.span)),
    )
}

/// Whether a set holds a time, its ends included: a wait ends as the work it waits for does.
fn covers(set: &IntervalSet, at: Ns) -> bool {
    let after = set.intervals().partition_point(|interval| interval.start <= at);
    after > 0 && at <= set.intervals()[after - 1].end
}
