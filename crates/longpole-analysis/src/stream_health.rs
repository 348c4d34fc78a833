//! What cannot be right on a device stream, or needs care: overlaps, impossible durations, work launched before the window.
//!
//! A stream runs its work in order, so activities of one stream should follow each other. Where they do not:
//!
//! - **Overlap**: an activity starts before an earlier one of its stream has ended. Programmatic dependent launch and the
//!   branches of a device graph do this by design. Both are kept, and busy time is their union.
//! - **Impossible duration**: an activity swallows at least 3 whole successors of its own stream and is at least
//!   [`TIMES_LONGER`] times longer than the longest of them. A successor is swallowed if it starts after the activity does and
//!   ends no later; one of no length is not counted. No launch order explains it: the recorded end is wrong. The **overrun** is
//!   the time from the start of the first swallowed successor to the activity's end. Work of a graph replay, where several
//!   activities share a launch, is not judged, since branches of a graph run side by side under one stream number.
//! - **Launched before the window**: an activity with no launch in the trace that starts no later than the first of its stream
//!   whose launch is there (on a stream with none: than the first API call of its rank). A stream keeps its order, so it was
//!   launched earlier than anything that was recorded. Any other activity without a launch is an orphan.
//!
//! Two streams never count as one: a lane is a device, a context and a stream. Sorting by lane and time, then one pass; only
//! groups of activities that overlap are looked at twice, in `n log n` however deep they nest.

use longpole_trace::{ActivityId, LaneId, Ns, Trace};

use crate::index::Links;

/// Fewest successors that an activity of impossible duration swallows.
const SWALLOWED: usize = 3;
/// How many times longer than the longest of them it is at least.
const TIMES_LONGER: i64 = 100;

/// How often something was seen, by how much at most, and where that was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Finding {
    /// How often.
    pub count: u64,
    /// The largest overlap, overrun or duration.
    pub largest: Ns,
    /// The activity with the largest, the first of equals in time.
    pub example: Option<ActivityId>,
}

impl Finding {
    fn add(&mut self, row: u32, amount: Ns) {
        self.count += 1;
        if self.example.is_none() || amount > self.largest {
            (self.largest, self.example) = (amount, Some(ActivityId(row)));
        }
    }
}

/// The state of all streams of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamHealth {
    /// Activities that start before an earlier one of their stream has ended; the largest is the time they share.
    pub overlaps: Finding,
    /// Activities of impossible duration; the largest is the overrun.
    pub impossible: Finding,
    /// Activities launched before the window; the largest is a duration.
    pub before_window: Finding,
    /// Activities whose launch is not in the trace though it should be; the largest is a duration.
    pub orphans: Finding,
}

impl StreamHealth {
    /// Looks at every stream.
    pub(crate) fn build(trace: &Trace, links: &Links) -> Self {
        let mut health = Self::default();
        let first_calls = first_calls(trace);
        for (lane, rows) in rows_by_lane(trace).iter_mut().enumerate() {
            let start = |row: u32| trace.activities.start[row as usize];
            if !rows.is_sorted_by_key(|&row| start(row)) {
                // Stable, and fast on input that is nearly sorted.
                rows.sort_by_key(|&row| start(row));
            }
            health.overlapping(trace, rows);
            let first_call = first_calls.get(trace.lane_rank(LaneId::from_index(lane)) as usize).copied().flatten();
            health.unlaunched(trace, links, rows, first_call);
        }
        health
    }

    /// Groups of activities that overlap one after another, and what is in them.
    fn overlapping(&mut self, trace: &Trace, rows: &[u32]) {
        let (mut first, mut busy_until) = (0, Ns::MIN);
        for (at, &row) in rows.iter().enumerate() {
            let (start, end) = bounds(trace, row);
            if start >= busy_until {
                self.impossible_in(trace, &rows[first..at]);
                first = at;
            } else if end > start {
                self.overlaps.add(row, busy_until.min(end) - start);
            }
            busy_until = busy_until.max(end);
        }
        self.impossible_in(trace, &rows[first..]);
    }

    /// Impossible durations in a group, which nothing outside it overlaps.
    fn impossible_in(&mut self, trace: &Trace, group: &[u32]) {
        if group.len() <= SWALLOWED {
            return;
        }
        let mut ends: Vec<Ns> = group.iter().map(|&row| bounds(trace, row).1).collect();
        ends.sort_unstable();
        let mut correlations: Vec<u64> = group.iter().filter_map(|&row| trace.activities.correlation(row as usize)).collect();
        correlations.sort_unstable();
        let shares_launch = |row: u32| {
            trace.activities.graph_node(row as usize).is_some()
                || trace.activities.correlation(row as usize).is_some_and(|key| {
                    let at = correlations.partition_point(|&other| other < key);
                    correlations.get(at + 1) == Some(&key)
                })
        };
        let mut later = ByEnd::new(ends.len());
        let mut found = Vec::new();
        // From the last start to the first: what is in `later` starts after the activity at hand. Equal starts go in together.
        let mut pending = group.len();
        for at in (0..group.len()).rev() {
            let (start, end) = bounds(trace, group[at]);
            while pending > at + 1 && bounds(trace, group[pending - 1]).0 > start {
                pending -= 1;
                let (later_start, later_end) = bounds(trace, group[pending]);
                if later_end > later_start {
                    later.insert(ends.partition_point(|&e| e < later_end), later_start, later_end - later_start);
                }
            }
            let swallowed = later.up_to(ends.partition_point(|&e| e <= end));
            let is_longer = (end - start).get() / TIMES_LONGER >= swallowed.longest.get();
            if swallowed.count >= SWALLOWED && is_longer && !shares_launch(group[at]) {
                found.push((group[at], end - swallowed.first_start));
            }
        }
        for &(row, overrun) in found.iter().rev() {
            self.impossible.add(row, overrun);
        }
    }

    /// Activities without a launch, unless their operator is known without one.
    fn unlaunched(&mut self, trace: &Trace, links: &Links, rows: &[u32], first_call: Option<Ns>) {
        let is_launched = |row: u32| links.call(ActivityId(row)).is_some() || links.owner_node(ActivityId(row)).is_some();
        let first_launched = rows.iter().copied().find(|&row| is_launched(row)).map(|row| trace.activities.start[row as usize]);
        let opening = first_launched.or(first_call);
        for &row in rows.iter().filter(|&&row| !is_launched(row)) {
            let (start, end) = bounds(trace, row);
            let before = opening.is_some_and(|opening| start <= opening);
            (if before { &mut self.before_window } else { &mut self.orphans }).add(row, end - start);
        }
    }
}

/// Start and end of an activity; a negative duration counts as zero.
fn bounds(trace: &Trace, row: u32) -> (Ns, Ns) {
    let start = trace.activities.start[row as usize];
    (start, start + trace.activities.dur[row as usize].max(Ns::ZERO))
}

/// The start of the first API call of each rank.
fn first_calls(trace: &Trace) -> Vec<Option<Ns>> {
    let mut first = vec![None; trace.ranks.len()];
    let ranks: Vec<usize> = trace.threads.iter().map(|thread| trace.processes[thread.process.index()].rank as usize).collect();
    for (thread, &start) in trace.api_calls.thread.iter().zip(&trace.api_calls.start) {
        if let Some(slot) = first.get_mut(ranks[thread.index()]) {
            *slot = Some(slot.map_or(start, |earlier: Ns| earlier.min(start)));
        }
    }
    first
}

/// The activities of each lane, in file order.
fn rows_by_lane(trace: &Trace) -> Vec<Vec<u32>> {
    let lanes = &trace.activities.lane;
    let mut counts = vec![0; trace.lanes.len()];
    for lane in lanes {
        counts[lane.index()] += 1;
    }
    let mut rows: Vec<Vec<u32>> = counts.into_iter().map(Vec::with_capacity).collect();
    for (row, lane) in lanes.iter().enumerate() {
        rows[lane.index()].push(row as u32);
    }
    rows
}

/// Activities that end no later than some time.
#[derive(Clone, Copy)]
struct Swallowed {
    count: usize,
    longest: Ns,
    first_start: Ns,
}

const NOBODY: Swallowed = Swallowed { count: 0, longest: Ns::ZERO, first_start: Ns::MAX };

/// Sums over prefixes of a list that is filled one by one (a Fenwick tree over the order of ends).
struct ByEnd(Vec<Swallowed>);

impl ByEnd {
    fn new(len: usize) -> Self {
        Self(vec![NOBODY; len + 1])
    }

    fn insert(&mut self, position: usize, start: Ns, length: Ns) {
        let mut at = position + 1;
        while let Some(node) = self.0.get_mut(at) {
            *node = Swallowed { count: node.count + 1, longest: node.longest.max(length), first_start: node.first_start.min(start) };
            at += at & at.wrapping_neg();
        }
    }

    /// Those inserted at the first `len` positions.
    fn up_to(&self, len: usize) -> Swallowed {
        let (mut at, mut sum) = (len, NOBODY);
        while at > 0 {
            let Swallowed { count, longest, first_start } = self.0[at];
            sum = Swallowed { count: sum.count + count, longest: sum.longest.max(longest), first_start: sum.first_start.min(first_start) };
            at &= at - 1;
        }
        sum
    }
}

#[cfg(test)]
mod tests;
