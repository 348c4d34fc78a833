//! What each rank's devices did: totals, and a timeline on which every moment belongs to one activity.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use longpole_trace::{ActivityId, ActivityKind, DeviceId, Interval, IntervalSet, Ns, Trace};

use super::types::RankRow;
use crate::families::{Family, FamilyOfName};
use crate::index::TraceIndex;
use crate::scope::Scope;

/// What runs on a device; of several at a time the first counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Class {
    Compute,
    Copy,
    Communication,
}

/// Activities in scope, by rank and device.
pub(super) struct Work {
    /// (device, class, activity), by rank and start.
    by_rank: Vec<Vec<(Interval, DeviceId, Class, u32)>>,
}

fn union(activities: &[(Interval, DeviceId, Class, u32)], device: DeviceId, class: Class) -> IntervalSet {
    let of_class = activities.iter().filter(|(_, on, what, _)| *on == device && *what == class);
    IntervalSet::from_unsorted(of_class.map(|&(interval, ..)| interval).collect())
}

impl Work {
    pub(super) fn new(index: &TraceIndex<'_>, scope: &Scope) -> Self {
        let trace = index.trace();
        let activities = &trace.activities;
        let mut families = FamilyOfName::new(trace);
        let mut by_rank: Vec<Vec<(Interval, DeviceId, Class, u32)>> = vec![Vec::new(); trace.ranks.len()];
        for row in 0..activities.len() {
            if !scope.includes_activity(index, ActivityId::from_index(row)) {
                continue;
            }
            let device = trace.lanes[activities.lane[row].index()].device;
            let class = match activities.kind[row] {
                ActivityKind::Memcpy | ActivityKind::Memset => Class::Copy,
                ActivityKind::Kernel | ActivityKind::Other if families.get(trace, row) == Family::Communication => Class::Communication,
                ActivityKind::Kernel | ActivityKind::Other => Class::Compute,
            };
            let interval = Interval::new(activities.start[row], activities.dur[row]);
            by_rank[trace.devices[device.index()].rank as usize].push((interval, device, class, row as u32));
        }
        for list in &mut by_rank {
            // One device after the other, since most ranks have one.
            list.sort_by_key(|&(interval, device, _, row)| (device, interval.start, row));
        }
        Self { by_rank }
    }

    /// Times of a rank; `waits` are the parts of its collectives before the last rank entered.
    pub(super) fn totals(&self, row: &mut RankRow, waits: &[Interval], waiting_device: Option<DeviceId>) {
        for on_device in self.by_rank[row.rank].chunk_by(|a, b| a.1 == b.1) {
            let device = on_device[0].1;
            let compute = union(on_device, device, Class::Compute);
            let communication = union(on_device, device, Class::Communication);
            let copies = union(on_device, device, Class::Copy);
            let kernels = compute.union(&communication);
            let busy = kernels.union(&copies).total();
            let first = on_device[0].0.start;
            let last = on_device.iter().map(|(interval, ..)| interval.end).max().unwrap_or(first);
            let add = |to: &mut Option<Ns>, more: Ns| *to = Some(to.unwrap_or(Ns::ZERO) + more);
            add(&mut row.span_ns, last - first);
            add(&mut row.busy_ns, busy);
            add(&mut row.compute_ns, compute.total());
            add(&mut row.communication_ns, communication.total());
            add(&mut row.exposed_communication_ns, communication.difference(&compute).total());
            add(&mut row.copy_ns, copies.total());
            add(&mut row.exposed_copy_ns, copies.difference(&kernels).total());
            add(&mut row.idle_ns, last - first - busy);
            row.collectives += on_device.iter().filter(|(_, _, class, _)| *class == Class::Communication).count() as u64;
            if waiting_device == Some(device) {
                row.exposed_waiting_ns = Some(IntervalSet::from_unsorted(waits.to_vec()).difference(&compute).total());
            }
        }
    }

    /// Sum of the durations of a rank's communication kernels.
    pub(super) fn communication_sum(&self, rank: usize) -> Ns {
        self.by_rank[rank].iter().filter(|(_, _, class, _)| *class == Class::Communication).map(|(interval, ..)| interval.len()).sum()
    }

    /// Activities of a rank, all devices together.
    pub(super) fn len(&self, rank: usize) -> usize {
        self.by_rank[rank].len()
    }

    /// The timeline of one device of a rank.
    pub(super) fn timeline(&self, rank: usize, device: DeviceId) -> Timeline {
        let of_device = self.by_rank[rank].iter().filter(|(_, on, ..)| *on == device);
        Timeline::new(of_device.map(|&(interval, _, class, row)| (interval, class, row)))
    }

    /// The first moment of a rank: its first host or device event.
    pub(super) fn first_events(trace: &Trace) -> Vec<Option<Ns>> {
        let mut first: Vec<Option<Ns>> = vec![None; trace.ranks.len()];
        let mut include = |rank: u32, start: Ns| {
            let first = first[rank as usize].get_or_insert(start);
            *first = start.min(*first);
        };
        let ops = trace.host_ops.thread.iter().zip(&trace.host_ops.start);
        let calls = trace.api_calls.thread.iter().zip(&trace.api_calls.start);
        let ranges = trace.ranges.thread.iter().zip(&trace.ranges.start);
        for (&thread, &start) in ops.chain(calls).chain(ranges) {
            include(trace.thread_rank(thread), start);
        }
        for (&lane, &start) in trace.activities.lane.iter().zip(&trace.activities.start) {
            include(trace.lane_rank(lane), start);
        }
        first
    }
}

/// A part of a timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) interval: Interval,
    pub(super) class: Class,
    pub(super) activity: u32,
    /// True for the first part of an activity.
    pub(super) is_first: bool,
}

/// An activity that has begun, in order of what is shown first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Open {
    class: Class,
    start: Ns,
    activity: u32,
    end: Ns,
    is_shown: bool,
}

/// Shows the open activities from `now` until another begins.
fn advance(open: &mut BinaryHeap<Reverse<Open>>, now: &mut Ns, until: Ns, parts: &mut Vec<Part>) {
    while let Some(Reverse(top)) = open.pop() {
        let interval = Interval { start: top.start.max(*now), end: top.end.min(until) };
        let is_shown = !interval.is_empty();
        if is_shown {
            match parts.last_mut() {
                Some(last) if last.activity == top.activity && last.interval.end == interval.start => last.interval.end = interval.end,
                _ => parts.push(Part { interval, class: top.class, activity: top.activity, is_first: !top.is_shown }),
            }
            *now = interval.end;
        }
        if top.end > until {
            open.push(Reverse(Open { is_shown: top.is_shown || is_shown, ..top }));
            break;
        }
    }
    *now = until.max(*now);
}

/// Disjoint parts in order of time. Where activities overlap, compute comes before copies before communication; of equals the first to start.
#[derive(Debug, Default)]
pub(super) struct Timeline {
    parts: Vec<Part>,
}

impl Timeline {
    /// From activities in order of start.
    fn new(activities: impl Iterator<Item = (Interval, Class, u32)>) -> Self {
        let mut parts: Vec<Part> = Vec::new();
        let mut open = BinaryHeap::new();
        let mut now = Ns::MIN;
        for (interval, class, activity) in activities {
            advance(&mut open, &mut now, interval.start, &mut parts);
            if !interval.is_empty() {
                open.push(Reverse(Open { class, start: interval.start, activity, end: interval.end, is_shown: false }));
            }
        }
        advance(&mut open, &mut now, Ns::MAX, &mut parts);
        Self { parts }
    }

    /// The parts within an interval, clipped to it.
    pub(super) fn within(&self, interval: Interval) -> impl Iterator<Item = Part> {
        let from = self.parts.partition_point(|part| part.interval.end <= interval.start);
        self.parts[from..].iter().take_while(move |part| part.interval.start < interval.end).map(move |&part| Part {
            interval: Interval { start: part.interval.start.max(interval.start), end: part.interval.end.min(interval.end) },
            // An activity that began before belongs to what came before.
            is_first: part.is_first && part.interval.start >= interval.start,
            ..part
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(start: i64, end: i64, activity: u32, is_first: bool) -> (i64, i64, u32, bool) {
        (start, end, activity, is_first)
    }

    #[test]
    fn every_moment_belongs_to_the_compute_that_started_first() {
        let at = |start: i64, end: i64| Interval { start: Ns(start), end: Ns(end) };
        let activities = [
            (at(0, 100), Class::Communication, 0),
            (at(10, 20), Class::Compute, 1),
            (at(15, 40), Class::Compute, 2),
            (at(50, 50), Class::Copy, 3),
        ];
        let timeline = Timeline::new(activities.into_iter());
        let parts = |interval| -> Vec<_> {
            timeline.within(interval).map(|p| part(p.interval.start.get(), p.interval.end.get(), p.activity, p.is_first)).collect()
        };
        let all = [part(0, 10, 0, true), part(10, 20, 1, true), part(20, 40, 2, true), part(40, 100, 0, false)];
        assert_eq!(parts(at(-5, 200)), all);
        assert_eq!(parts(at(15, 45)), [part(15, 20, 1, false), part(20, 40, 2, true), part(40, 45, 0, false)]);
        assert_eq!(parts(at(100, 110)), []);
    }
}
