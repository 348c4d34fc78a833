//! When each device worked, and why it did not: idle time, and the part of it in which its next work had not been launched.
//!
//! A scope says whose work is looked at, not what the device was busy with. Work from outside it is no idle time, whoever launched it.

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
    /// The time that shares are of: the extent, and when it worked for others inside the scope; not when it did between instances.
    pub(crate) span: IntervalSet,
    /// Inside the extent, when it ran nothing at all.
    pub(crate) idle: IntervalSet,
    /// The part of the idle time before the call that launches the next work began.
    pub(crate) starved: IntervalSet,
    /// The part of the idle time inside the call that launches the next work.
    pub(crate) in_call: IntervalSet,
}

/// All devices with work in scope.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pace {
    pub(crate) devices: Vec<DevicePace>,
    /// When any device of each rank was busy, with work from outside the scope too.
    pub(crate) busy: Vec<IntervalSet>,
    /// Pieces of work in scope.
    pub(crate) activities: u64,
}

impl Pace {
    pub(crate) fn of(index: &TraceIndex<'_>, scope: &Scope) -> Self {
        let trace = index.trace();
        let activities = &trace.activities;
        let interval = |row: u32| Interval::new(activities.start[row as usize], activities.dur[row as usize]);
        let mut inside: Vec<Vec<u32>> = vec![Vec::new(); trace.devices.len()];
        let mut outside = inside.clone();
        for row in 0..activities.len() {
            let device = trace.lanes[activities.lane[row].index()].device.index();
            let side = if scope.includes_activity(index, ActivityId::from_index(row)) { &mut inside } else { &mut outside };
            side[device].push(row as u32);
        }
        let mut busy = vec![Vec::new(); trace.ranks.len().max(1)];
        let mut devices = Vec::new();
        let whole = if scope.is_whole() { IntervalSet::default() } else { scope.intervals(index) };
        let activities_inside = inside.iter().map(|rows| rows.len() as u64).sum();
        for (device, (mut rows, others)) in inside.into_iter().zip(outside).enumerate() {
            let rank = trace.devices[device].rank as usize;
            if let Some(busy) = busy.get_mut(rank) {
                busy.extend(rows.iter().chain(&others).map(|&row| interval(row)));
            }
            if !rows.is_sorted_by_key(|&row| activities.start[row as usize]) {
                rows.sort_by_key(|&row| activities.start[row as usize]);
            }
            let others = IntervalSet::from_unsorted(others.into_iter().map(interval).collect());
            devices.extend(of_device(index, rank, &rows, &others, &whole));
        }
        Self { devices, activities: activities_inside, busy: busy.into_iter().map(IntervalSet::from_unsorted).collect() }
    }

    fn sum(&self, part: impl Fn(&DevicePace) -> &IntervalSet) -> Ns {
        self.devices.iter().map(|device| part(device).total()).sum()
    }

    /// Idle time in which the next work had not been launched, summed over devices.
    pub(crate) fn starved_ns(&self) -> Ns {
        self.sum(|device| &device.starved)
    }

    /// Idle time inside the calls that launch the next work, summed over devices.
    pub(crate) fn in_call_ns(&self) -> Ns {
        self.sum(|device| &device.in_call)
    }

    /// The longest time that a device ran nothing.
    pub(crate) fn largest_gap_ns(&self) -> Ns {
        let gaps = self.devices.iter().flat_map(|device| device.idle.intervals());
        gaps.map(|gap| gap.len()).max().unwrap_or_default()
    }

    /// When no device of a rank ran anything, between the first and the last work in scope.
    pub(crate) fn gaps(&self, rank: usize) -> IntervalSet {
        let of_rank = || self.devices.iter().filter(|device| device.rank == rank).map(|device| device.extent);
        let (Some(start), Some(end)) = (of_rank().map(|extent| extent.start).min(), of_rank().map(|extent| extent.end).max()) else {
            return IntervalSet::default();
        };
        let extent = IntervalSet::from_unsorted(vec![Interval { start, end }]);
        self.busy.get(rank).map_or_else(|| extent.clone(), |busy| extent.difference(busy))
    }
}

/// How long devices starved, and their span, over a whole trace: the same as [`Pace::of`] with the times of `cold` taken out of both, in one pass
/// that keeps nothing. `None` where the work of a device does not come in order of start.
pub(crate) fn starved_and_span(index: &TraceIndex<'_>, cold: impl Fn(usize) -> IntervalSet) -> Option<(Ns, Ns)> {
    let trace = index.trace();
    let activities = &trace.activities;
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

/// The pace of one device, whose work in scope is given in order of start.
fn of_device(index: &TraceIndex<'_>, rank: usize, rows: &[u32], others: &IntervalSet, scope: &IntervalSet) -> Option<DevicePace> {
    let trace = index.trace();
    let (mut idle, mut starved, mut in_call) = (Vec::new(), Vec::new(), Vec::new());
    let mut extent: Option<Interval> = None;
    for &row in rows {
        let own = Interval::new(trace.activities.start[row as usize], trace.activities.dur[row as usize]);
        let known = extent.get_or_insert(own);
        if own.start > known.end {
            let gap = Interval { start: known.end, end: own.start };
            idle.push(gap);
            if let Some(call) = index.links().call(ActivityId(row)) {
                let calls = &trace.api_calls;
                let call = Interval::new(calls.start[call.index()], calls.dur[call.index()]);
                let launched = call.start.clamp(gap.start, gap.end);
                starved.push(Interval { start: gap.start, end: launched });
                in_call.push(Interval { start: launched, end: call.end.clamp(launched, gap.end) });
            }
        }
        known.end = known.end.max(own.end);
    }
    let alone = |gaps: Vec<Interval>| {
        let gaps = IntervalSet::from_unsorted(gaps);
        if others.is_empty() { gaps } else { gaps.difference(others) }
    };
    let extent = extent?;
    let span = alone(vec![extent]).union(&others.intersection(scope));
    Some(DevicePace { rank, extent, span, idle: alone(idle), starved: alone(starved), in_call: alone(in_call) })
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
                (starved + device.starved.difference(&cold).total(), span + device.span.difference(&cold).total())
            });
            prop_assert_eq!(starved_and_span(&index, |_| cold.clone()), Some(expected));
        }
    }
}
