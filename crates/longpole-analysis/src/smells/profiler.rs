//! The profiler's own cost.

use longpole_trace::{Interval, IntervalSet, Ns};

use super::start_up::is_loading_overhead;
use super::thresholds::OVERHEAD_SHARE;
use super::{Facts, Found, SmellKind, Stage};
use crate::phrases::{clip, fine_percent, time};

pub(super) const PROFILER_DISTORTS: SmellKind = SmellKind {
    code: "profiler_distorts",
    stage: Stage::Listed,
    lead_in: "",
    meaning: "The profiler itself takes part of the time it shows: its buffers, and with Python stacks every call.",
    detection: "The profiler's own events (buffer requests, flushes, command buffers; code loading is not counted) take at least {OVERHEAD_SHARE} of the wall, or \
                Python stacks were recorded.",
    ceiling: "union of the profiler's own events inside the window",
    fix: "Record fewer steps, without stacks and shapes, when it is times you want. Time one step without a profiler and give it as \
          --unprofiled-step-ms.",
    find: profiler_distorts,
};

fn profiler_distorts(facts: &Facts<'_, '_>) -> Option<Found> {
    let trace = facts.trace();
    let (first, last) = trace.window.bounds()?;
    // Overhead events name neither thread nor rank, so a part of the trace cannot be told its share.
    if !facts.tables.scope.is_whole() || trace.ranks.len() > 1 {
        return None;
    }
    let overheads = &trace.overheads;
    let rows = || (0..overheads.len()).filter(|&row| !is_loading_overhead(trace.strings.get(overheads.name[row])));
    let window = IntervalSet::from_unsorted(vec![Interval { start: first, end: last }]);
    let union = IntervalSet::from_unsorted(rows().map(|row| Interval::new(overheads.start[row], overheads.dur[row])).collect());
    let inside = union.intersection(&window).total();
    let stacks = trace.recorded.stacks || !trace.frames.is_empty();
    if !OVERHEAD_SHARE.is_met(inside, facts.wall) && !stacks {
        return None;
    }
    let largest = rows().max_by_key(|&row| overheads.dur[row]).map(|row| trace.strings.get(overheads.name[row]));
    let share = facts.host_share(inside);
    let events = format!("its own events take {} ({} of wall)", time(inside), share.map(fine_percent).unwrap_or_default());
    let summary = match (stacks, largest) {
        (true, _) if inside == Ns::ZERO => "Python stacks were recorded, which slows every call".to_owned(),
        (true, _) => format!("Python stacks were recorded, which slows every call; {events}"),
        (false, Some(name)) => format!("{events}, mostly {}", clip(name)),
        (false, None) => events,
    };
    let next =
        if stacks { "record again without stacks, then compare the step time" } else { "record fewer steps, then compare the step time" };
    Some(
        Found::new("profiler", summary, next)
            .covering(share.filter(|_| inside > Ns::ZERO))
            .at_most(facts.host_ceiling(inside).filter(|_| inside > Ns::ZERO))
            .fact("overhead_ns", inside)
            .fact("events", rows().count() as u64)
            .fact("largest", largest)
            .fact("stacks_recorded", if stacks { "yes" } else { "no" })
            .fact("stack_frames", trace.frames.len() as u64),
    )
}
