//! The profiler's own cost.

use longpole_trace::Ns;

use super::thresholds::OVERHEAD_SHARE;
use super::{Facts, Found, SmellKind, Stage};
use crate::phrases::{fine_percent, time};
use crate::profiler_overhead::profiler_overhead;

pub(super) const PROFILER_DISTORTS: SmellKind = SmellKind {
    code: "profiler_distorts",
    stage: Stage::Listed,
    lead_in: "",
    meaning: "The profiler itself takes part of the time it shows: its buffers, and with Python stacks every call.",
    detection: "The profiler's own events (buffer requests, flushes; code loading, compiling and a full launch queue are the program's own and not counted) take at least {OVERHEAD_SHARE} of the wall, or \
                Python stacks were recorded.",
    ceiling: "union of the profiler's own events inside the window",
    fix: "Record fewer steps, without stacks and shapes, when it is times you want. Time one step without a profiler and give it as \
          --unprofiled-step-ms.",
    find: profiler_distorts,
};

fn profiler_distorts(facts: &Facts<'_, '_>) -> Option<Found> {
    let trace = facts.trace();
    // Overhead events name neither thread nor rank, so a part of the trace cannot be told its share.
    if !facts.tables.scope.is_whole() || trace.ranks.len() > 1 {
        return None;
    }
    let overhead = profiler_overhead(trace);
    let inside = overhead.map_or(Ns::ZERO, |overhead| overhead.busy_ns);
    let stacks = trace.recorded.stacks || !trace.frames.is_empty();
    if !OVERHEAD_SHARE.is_met(inside, facts.wall) && !stacks {
        return None;
    }
    let largest = overhead.map(|overhead| trace.strings.get(overhead.longest));
    let share = facts.host_share(inside);
    let events = format!("its own events take {} ({} of wall)", time(inside), share.map(fine_percent).unwrap_or_default());
    let summary = match (stacks, largest) {
        (true, _) if inside == Ns::ZERO => "Python stacks were recorded, which slows every call".to_owned(),
        (true, _) => format!("Python stacks were recorded, which slows every call; {events}"),
        (false, Some(name)) => format!("{events}, mostly {}", facts.clip(name)),
        (false, None) => events,
    };
    let next =
        if stacks { "record again without stacks, then compare the step time" } else { "record fewer steps, then compare the step time" };
    Some(
        Found::new("profiler", summary, next)
            .covering(share.filter(|_| inside > Ns::ZERO))
            .at_most(facts.host_ceiling(inside).filter(|_| inside > Ns::ZERO))
            .fact("overhead_ns", inside)
            .fact("events", overhead.map_or(0, |overhead| overhead.count))
            .fact("largest", largest)
            .fact("stacks_recorded", if stacks { "yes" } else { "no" })
            .fact("stack_frames", trace.frames.len() as u64),
    )
}
