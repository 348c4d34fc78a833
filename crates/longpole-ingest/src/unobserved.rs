//! Stretches in which nothing was recorded, made to fit what was.
//!
//! A source says when its recorder was switched off. What is launched in a window may run after it, and calls of other threads may begin a little
//! before it: so the stretch between two windows begins when the last work of the one ended, and ends when the first call of the other began.
//! That also keeps a switch that was lost, or a file that says nonsense, from taking out time of which something is known.

use longpole_trace::{Interval, IntervalSet, Ns, ThreadId, Trace};

/// What is left of stretches in which a rank is said to be not recorded, once what was recorded is taken out.
pub(crate) fn without_events(trace: &Trace, rank: u32, between: &IntervalSet) -> IntervalSet {
    if between.is_empty() {
        return IntervalSet::EMPTY;
    }
    let holes = between.intervals();
    let middle = |hole: &Interval| Ns(hole.start.get() + (hole.end - hole.start).get() / 2);
    let reaches_in = |whole: Interval| between.within(whole).next().is_some();
    let hole_at = |at: Ns| {
        let hole = holes.partition_point(|hole| hole.end <= at);
        holes.get(hole).filter(|known| known.start <= at).map(|known| (hole, known))
    };
    // What reaches into a stretch from before, and the first that begins in its second half.
    let mut before = Vec::new();
    let mut first: Vec<Ns> = holes.iter().map(|hole| hole.end).collect();
    let mut host = |thread: ThreadId, whole: Interval| {
        if trace.thread_rank(thread) != rank {
            return;
        }
        match hole_at(whole.start) {
            Some((hole, known)) if whole.start >= middle(known) => first[hole] = first[hole].min(whole.start),
            _ => before.extend(reaches_in(whole).then_some(whole)),
        }
    };
    let calls = &trace.api_calls;
    for (row, &thread) in calls.thread.iter().enumerate() {
        host(thread, Interval::new(calls.start[row], calls.dur[row]));
    }
    // A range may be open across stretches; that it began is what was seen.
    let ranges = &trace.ranges;
    for (row, &thread) in ranges.thread.iter().enumerate() {
        host(thread, Interval::new(ranges.start[row], Ns::ZERO));
    }
    let activities = &trace.activities;
    for (row, &lane) in activities.lane.iter().enumerate() {
        let whole = Interval::new(activities.start[row], activities.dur[row]);
        if trace.lane_rank(lane) == rank && reaches_in(whole) {
            before.push(whole);
        }
    }
    let seen = IntervalSet::from_unsorted(before);
    let stretch = |(hole, &end): (&Interval, &Ns)| {
        let start = seen.within(Interval { start: hole.start, end }).last().map_or(hole.start, |last| last.end);
        Interval { start, end }
    };
    IntervalSet::from_unsorted(holes.iter().zip(&first).map(stretch).collect())
}
