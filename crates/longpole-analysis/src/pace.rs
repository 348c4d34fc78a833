//! When each device worked, and why it did not: idle time, and the part of it in which its next work had not been launched.
//!
//! A scope says whose work is looked at, not what the device was busy with. Work from outside it is no idle time, whoever launched it.

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use longpole_trace::{ActivityId, Interval, IntervalSet, Ns};

use crate::index::TraceIndex;
use crate::scope::Scope;

/// One device with work in scope.
#[derive(Clone, Debug)]
pub(crate) struct DevicePace {
    /// Position of its rank.
    pub(crate) rank: usize,
    /// First start to last end of the work in scope.
    pub(crate) extent: Interval,
    /// The time that shares are of: the extent where it was recorded, and when it worked for others inside the scope; not when it did between instances.
    pub(crate) span: IntervalSet,
    /// Inside the extent, when it ran nothing at all. Absent when these are the gaps of its rank, which has no other device: a trace has as
    /// many of them as kernels.
    idle: Option<IntervalSet>,
    /// The part of the idle time before the call that launches the next work began.
    starved_ns: Ns,
    /// The part of the idle time inside the call that launches the next work.
    in_call_ns: Ns,
}

/// All devices with work in scope.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pace {
    pub(crate) devices: Vec<DevicePace>,
    /// When any device of each rank was busy, with work from outside the scope too, and when nothing was recorded of the rank: all the time in
    /// which nobody can say that it idled.
    pub(crate) busy: Vec<IntervalSet>,
    /// Pieces of work in scope.
    pub(crate) activities: u64,
}

impl Pace {
    pub(crate) fn of(index: &TraceIndex<'_>, scope: &Scope) -> Self {
        let trace = index.trace();
        let activities = &trace.activities;
        let interval = |row: u32| Interval::new(activities.start[row as usize], activities.dur[row as usize]);
        let (inside, outside) = rows_by_device(index, scope);
        let mut busy = vec![Vec::new(); trace.ranks.len().max(1)];
        let mut devices = Vec::new();
        let whole = if scope.is_whole() { IntervalSet::default() } else { scope.intervals(index) };
        // Devices with work, by rank.
        let mut devices_of: HashMap<usize, usize, FixedState> = HashMap::default();
        for device in (0..trace.devices.len()).filter(|&device| !(inside[device].is_empty() && outside[device].is_empty())) {
            *devices_of.entry(trace.devices[device].rank as usize).or_default() += 1;
        }
        let activities_inside = inside.iter().map(|rows| rows.len() as u64).sum();
        for (device, (mut rows, others)) in inside.into_iter().zip(outside).enumerate() {
            let rank = trace.devices[device].rank as usize;
            let busy = busy.get_mut(rank);
            let is_alone = busy.as_ref().is_some_and(|busy| busy.is_empty()) && others.is_empty() && devices_of.get(&rank) == Some(&1);
            if let Some(busy) = busy {
                busy.reserve_exact(rows.len() + others.len());
                busy.extend(rows.iter().chain(&others).map(|&row| interval(row)));
            }
            if !rows.is_sorted_by_key(|&row| activities.start[row as usize]) {
                rows.sort_by_key(|&row| activities.start[row as usize]);
            }
            let others = IntervalSet::from_unsorted(others.into_iter().map(interval).collect());
            devices.extend(of_device(index, rank, &rows, &others, &whole, !is_alone).map(|(pace, _)| pace));
        }
        for (rank, busy) in busy.iter_mut().enumerate() {
            busy.extend(trace.unobserved.of_rank(rank).intervals());
        }
        Self { devices, activities: activities_inside, busy: busy.into_iter().map(IntervalSet::from_unsorted).collect() }
    }

    /// Idle time in which the next work had not been launched, summed over devices.
    pub(crate) fn starved_ns(&self) -> Ns {
        self.devices.iter().map(|device| device.starved_ns).sum()
    }

    /// Idle time inside the calls that launch the next work, summed over devices.
    pub(crate) fn in_call_ns(&self) -> Ns {
        self.devices.iter().map(|device| device.in_call_ns).sum()
    }

    /// When a device ran nothing at all, inside its extent.
    pub(crate) fn idle<'a>(&'a self, device: &'a DevicePace) -> impl Iterator<Item = Interval> + use<'a> {
        let own = device.idle.as_ref().map_or(&[][..], IntervalSet::intervals);
        let of_rank = device.idle.is_none().then(|| self.gaps_within(device.rank, device.extent));
        own.iter().copied().chain(of_rank.into_iter().flatten())
    }

    /// The part of a device's idle time inside a set.
    pub(crate) fn idle_within(&self, device: &DevicePace, set: &IntervalSet) -> Ns {
        time_within(self.idle(device), set)
    }

    /// The longest time that a device ran nothing.
    pub(crate) fn largest_gap_ns(&self) -> Ns {
        self.devices.iter().flat_map(|device| self.idle(device)).map(Interval::len).max().unwrap_or_default()
    }

    /// How long devices starved outside some times, given by rank.
    pub(crate) fn starved_outside(index: &TraceIndex<'_>, scope: &Scope, cold: impl Fn(usize) -> IntervalSet) -> Ns {
        let (mut sum, trace) = (Ns::ZERO, index.trace());
        let (inside, outside) = rows_by_device(index, scope);
        let activities = &trace.activities;
        for (device, (mut rows, others)) in inside.into_iter().zip(outside).enumerate() {
            let start = |row: &u32| activities.start[*row as usize];
            if !rows.is_sorted_by_key(start) {
                rows.sort_by_key(start);
            }
            let rank = trace.devices[device].rank as usize;
            let interval = |row: u32| Interval::new(activities.start[row as usize], activities.dur[row as usize]);
            let others = IntervalSet::from_unsorted(others.into_iter().map(interval).collect());
            if let Some((_, starved)) = of_device(index, rank, &rows, &others, &IntervalSet::default(), true) {
                sum += starved.total_outside(&cold(rank));
            }
        }
        sum
    }

    /// When no device of a rank ran anything, between the first and the last work in scope.
    pub(crate) fn gaps(&self, rank: usize) -> impl Iterator<Item = Interval> {
        let of_rank = || self.devices.iter().filter(|device| device.rank == rank).map(|device| device.extent);
        let extent = of_rank().map(|extent| extent.start).min().zip(of_rank().map(|extent| extent.end).max());
        extent.into_iter().flat_map(move |(start, end)| self.gaps_within(rank, Interval { start, end }))
    }

    /// When no device of a rank ran anything, within an interval.
    fn gaps_within(&self, rank: usize, extent: Interval) -> impl Iterator<Item = Interval> {
        let busy = self.busy.get(rank).map_or(&[][..], IntervalSet::intervals);
        let from = busy.partition_point(|busy| busy.end <= extent.start);
        let end = Interval { start: extent.end, end: extent.end };
        let mut until = extent.start;
        busy[from..].iter().copied().take_while(move |busy| busy.start < extent.end).chain(std::iter::once(end)).filter_map(move |busy| {
            let gap = Interval { start: until, end: busy.start };
            until = until.max(busy.end);
            (!gap.is_empty()).then_some(gap)
        })
    }
}

/// The part of intervals, given in order and apart from each other, inside a set.
pub(crate) fn time_within(intervals: impl Iterator<Item = Interval>, set: &IntervalSet) -> Ns {
    let (mut next, mut total) = (0, Ns::ZERO);
    if set.is_empty() {
        return total;
    }
    for interval in intervals {
        while set.intervals().get(next).is_some_and(|part| part.end <= interval.start) {
            next += 1;
        }
        for part in set.intervals()[next..].iter().take_while(|part| part.start < interval.end) {
            total += part.end.min(interval.end) - part.start.max(interval.start);
        }
    }
    total
}

/// How long devices starved, and their span, over a whole trace: the same as [`Pace::of`] with the times of `cold` taken out of both, in one pass
/// that keeps nothing. `None` where the work of a device does not come in order of start.
pub(crate) fn starved_and_span(index: &TraceIndex<'_>, cold: impl Fn(usize) -> IntervalSet) -> Option<(Ns, Ns)> {
    let trace = index.trace();
    let activities = &trace.activities;
    let cold = |rank| if trace.unobserved.is_empty() { cold(rank) } else { cold(rank).union(trace.unobserved.of_rank(rank)) };
    let cold: Vec<IntervalSet> = (0..trace.ranks.len().max(1)).map(cold).collect();
    let without_cold = |rank: usize, piece: Interval| {
        let overlaps = cold.get(rank).into_iter().flat_map(IntervalSet::intervals).map(|cold| {
            let (start, end) = (piece.start.max(cold.start), piece.end.min(cold.end));
            if start < end { end - start } else { Ns(0) }
        });
        piece.len() - overlaps.sum()
    };
    let mut extents: Vec<Option<(Ns, Interval)>> = vec![None; trace.devices.len()];
    let mut starved = Ns(0);
    for row in 0..activities.len() {
        let device = trace.lanes[activities.lane[row].index()].device.index();
        let own = Interval::new(activities.start[row], activities.dur[row]);
        let (last_start, extent) = extents[device].get_or_insert((own.start, own));
        if own.start < *last_start {
            return None;
        }
        *last_start = own.start;
        if own.start > extent.end
            && let Some(call) = index.links().call(ActivityId::from_index(row))
        {
            let launched = trace.api_calls.start[call.index()].clamp(extent.end, own.start);
            starved += without_cold(trace.devices[device].rank as usize, Interval { start: extent.end, end: launched });
        }
        extent.end = extent.end.max(own.end);
    }
    let spans = extents.iter().zip(&trace.devices).filter_map(|(extent, device)| {
        let (_, extent) = (*extent)?;
        Some(without_cold(device.rank as usize, extent))
    });
    Some((starved, spans.sum()))
}

/// Device work in scope and outside, by device.
fn rows_by_device(index: &TraceIndex<'_>, scope: &Scope) -> (Vec<Vec<u32>>, Vec<Vec<u32>>) {
    let trace = index.trace();
    let mut inside: Vec<Vec<u32>> = vec![Vec::new(); trace.devices.len()];
    let mut outside = inside.clone();
    for (row, lane) in trace.activities.lane.iter().enumerate() {
        let side = if scope.includes_activity(index, ActivityId::from_index(row)) { &mut inside } else { &mut outside };
        side[trace.lanes[lane.index()].device.index()].push(row as u32);
    }
    (inside, outside)
}

/// The pace of one device, whose work in scope is given in order of start; and, with `keep`, when it starved.
fn of_device(
    index: &TraceIndex<'_>,
    rank: usize,
    rows: &[u32],
    others: &IntervalSet,
    scope: &IntervalSet,
    keep: bool,
) -> Option<(DevicePace, IntervalSet)> {
    let trace = index.trace();
    // Without work of others all gaps are idle, so that sums will do.
    let keep = keep || !others.is_empty();
    let (mut idle, mut starved, mut in_call) = (Vec::new(), Vec::new(), Vec::new());
    let (mut starved_ns, mut in_call_ns) = (Ns::ZERO, Ns::ZERO);
    let mut extent: Option<Interval> = None;
    let unobserved = trace.unobserved.of_rank(rank);
    for &row in rows {
        let own = Interval::new(trace.activities.start[row as usize], trace.activities.dur[row as usize]);
        let known = extent.get_or_insert(own);
        if own.start > known.end {
            let gap = Interval { start: known.end, end: own.start };
            if keep {
                idle.push(gap);
            }
            if let Some(call) = index.links().call(ActivityId(row)) {
                let calls = &trace.api_calls;
                let call = Interval::new(calls.start[call.index()], calls.dur[call.index()]);
                let launched = call.start.clamp(gap.start, gap.end);
                let before = Interval { start: gap.start, end: launched };
                let inside = Interval { start: launched, end: call.end.clamp(launched, gap.end) };
                starved_ns += before.len() - unobserved.time_within(before);
                in_call_ns += inside.len() - unobserved.time_within(inside);
                if keep && !before.is_empty() {
                    starved.push(before);
                }
                if !others.is_empty() && !inside.is_empty() {
                    in_call.push(inside);
                }
            }
        }
        known.end = known.end.max(own.end);
    }
    let alone = |gaps: Vec<Interval>| {
        let gaps = IntervalSet::from_unsorted(gaps);
        let gaps = if unobserved.is_empty() { gaps } else { gaps.difference(unobserved) };
        if others.is_empty() { gaps } else { gaps.difference(others) }
    };
    let extent = extent?;
    let span = alone(vec![extent]).union(&others.intersection(scope));
    let starved = alone(starved);
    if !others.is_empty() {
        (starved_ns, in_call_ns) = (starved.total(), alone(in_call).total());
    }
    Some((DevicePace { rank, extent, span, idle: keep.then(|| alone(idle)), starved_ns, in_call_ns }, starved))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sample::Sample;

    proptest! {
        #[test]
        fn one_pass_over_a_whole_trace_gives_what_the_pace_gives(
            drawn in proptest::collection::vec((0_i64..2, 0_i64..2, any::<u8>(), 0_i64..60, 0_i64..40), 0..24),
            cold in (0_i64..200, 0_i64..120)
        ) {
            let mut sample = Sample::new();
            let mut sorted = drawn;
            sorted.sort_by_key(|&(_, _, start, _, _)| start);
            for (device, stream, start, dur, ahead) in sorted {
                sample.on_device(device, stream);
                sample.launch("cudaLaunchKernel", i64::from(start) - ahead, 2).kernel("gemm", i64::from(start), dur);
            }
            let trace = sample.finish();
            let index = TraceIndex::new(&trace);
            let cold = IntervalSet::from_unsorted(vec![Interval { start: Ns(cold.0), end: Ns(cold.0 + cold.1) }]);
            let pace = Pace::of(&index, &Scope::whole());
            let expected = pace.devices.iter().fold((Ns(0), Ns(0)), |(starved, span), device| {
                (starved, span + device.span.difference(&cold).total())
            });
            let expected = (Pace::starved_outside(&index, &Scope::whole(), |_| cold.clone()), expected.1);
            prop_assert_eq!(starved_and_span(&index, |_| cold.clone()), Some(expected));
            prop_assert_eq!(pace.starved_ns(), Pace::starved_outside(&index, &Scope::whole(), |_| IntervalSet::default()));
            // Of a device that is alone, idle time is not kept but read off its rank's busy time.
            for device in &pace.devices {
                let rows = (0..trace.activities.len())
                    .filter(|&row| trace.devices[trace.lanes[trace.activities.lane[row].index()].device.index()].rank as usize == device.rank);
                let all = rows.map(|row| Interval::new(trace.activities.start[row], trace.activities.dur[row])).collect();
                let idle: Vec<Interval> = pace.idle(device).collect();
                if pace.devices.iter().filter(|other| other.rank == device.rank).count() == 1 {
                    let expected = IntervalSet::from_unsorted(vec![device.extent]).difference(&IntervalSet::from_unsorted(all));
                    prop_assert_eq!(idle.as_slice(), expected.intervals());
                }
                let within = IntervalSet::from_unsorted(idle).intersection(&cold).total();
                prop_assert_eq!(pace.idle_within(device, &cold), within);
            }
        }
    }
}
