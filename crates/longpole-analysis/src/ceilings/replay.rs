//! What replaying steps from a device graph can win: the idle time inside steps that a graph has no place for.

use foldhash::fast::FixedState;
use hashbrown::{HashMap, HashSet};
use longpole_trace::{ActivityId, ApiCallId, DeviceId, Interval, IntervalSet, Ns, RangeId, Trace};

use super::covered::Covered;
use crate::idle::{IdleCause, IdlePiece, IdleWalk};
use crate::index::TraceIndex;
use crate::profiler_overhead::profiler_intervals;
use crate::scope::Scope;
use crate::step_choice::{Instance, Steps};
use crate::steps::{FoundBy, Step, StepGroup};

/// Pieces of idle time inside graph launches from which on the gap that a graph leaves between two kernels is known.
const PIECES_TO_KNOW: usize = 32;

/// Causes that replaying removes. Launching ahead needs no dispatch, no Python and no allocator inside a step; what each launch takes
/// to reach the device is paid once for the whole step.
const fn is_replaced(cause: IdleCause) -> bool {
    matches!(
        cause,
        IdleCause::Dispatch | IdleCause::Python | IdleCause::OutsideOperators | IdleCause::Allocation | IdleCause::LaunchLatency
    )
}

/// The gap that a graph of this trace leaves between two kernels, given all of them: the first quartile, absent when too few are recorded.
pub(super) fn graph_gap_of(mut gaps: Vec<Ns>) -> Option<Ns> {
    let at = gaps.len() / 4;
    (gaps.len() >= PIECES_TO_KNOW).then(|| *gaps.select_nth_unstable(at).1)
}

/// The same, given all pieces of idle time.
pub(super) fn graph_gap(pieces: &[IdlePiece]) -> Option<Ns> {
    graph_gap_of(pieces.iter().filter(|piece| piece.cause == IdleCause::GraphInternal).map(|piece| piece.end - piece.start).collect())
}

/// The part of a piece of idle time that replaying removes: of launch latency only what is beyond the gap of a graph.
pub(super) fn removed_of(piece: &IdlePiece, graph_gap: Option<Ns>) -> Option<Interval> {
    let kept = if piece.cause == IdleCause::LaunchLatency { graph_gap.unwrap_or(Ns::ZERO) } else { Ns::ZERO };
    is_replaced(piece.cause).then(|| Interval { start: piece.start, end: (piece.end - kept).max(piece.start) })
}

/// Whether steps of a group can be replayed and are not: they occur more than once, and most of their work is not of a graph yet. Steps
/// of a group do the same, so that the first answers for all.
pub(super) fn is_replayable(index: &TraceIndex<'_>, group: &StepGroup) -> bool {
    let trace = index.trace();
    let of_graph = |id: &ActivityId| {
        let is_launch = |call: ApiCallId| trace.strings.get(trace.api_calls.name[call.index()]).contains("GraphLaunch");
        trace.activities.graph_node(id.index()).is_some() || index.links().call(*id).is_some_and(is_launch)
    };
    let is_replayed = |step: &Step| 2 * step.activities.iter().filter(|id| of_graph(id)).count() >= step.activities.len();
    group.found_by != FoundBy::GraphReplay && group.steps.len() > 1 && !group.steps.first().is_some_and(is_replayed)
}

/// The steps of a group without a cold first one. As for the first page, host time decides where ranges mark the steps; elsewhere device
/// time does.
pub(super) fn warm<'g>(trace: &Trace, group: &'g StepGroup) -> &'g [Step] {
    let marked: Option<Vec<Instance>> = group
        .steps
        .iter()
        .map(|step| step.range.map(|range| (range, Interval::new(trace.ranges.start[range.index()], trace.ranges.dur[range.index()]))))
        .collect();
    // A range around several steps says nothing of one of them.
    let marked = marked.filter(|marked| marked.windows(2).all(|two| two[0].0 != two[1].0));
    let cold = if let Some(marked) = marked {
        Steps::cold_first(&marked, &profiler_intervals(trace))
    } else {
        let no_range = RangeId::from_index(0);
        let on_device: Vec<Instance> = group.steps.iter().map(|step| (no_range, extent(step))).collect();
        Steps::cold_first(&on_device, &IntervalSet::default())
    };
    &group.steps[usize::from(cold.is_some())..]
}

/// The time from the begin of a step to its end.
pub(super) fn extent(step: &Step) -> Interval {
    Interval { start: step.start, end: step.end }
}

/// The time inside some steps.
pub(super) fn extents(steps: &[Step]) -> IntervalSet {
    IntervalSet::from_unsorted(steps.iter().map(extent).collect())
}

/// Idle time that replaying removes on one device, wherever it is.
pub(super) fn removed(pieces: &[IdlePiece], device: DeviceId, graph_gap: Option<Ns>) -> IntervalSet {
    let own = pieces.iter().filter(|piece| piece.device == device);
    IntervalSet::from_unsorted(own.filter_map(|piece| removed_of(piece, graph_gap)).collect())
}

/// What replaying all steps of a scope wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Replay {
    /// Idle time that is gone, summed over devices.
    pub(crate) win_ns: Ns,
    /// Steps that are replayed.
    pub(crate) steps: u64,
}

fn hull(a: Interval, b: Interval) -> Interval {
    Interval { start: a.start.min(b.start), end: a.end.max(b.end) }
}

/// What replaying marked steps wins, without looking for steps in the order of kernels. Given are the steps of each rank, by position, in order
/// of time and apart from each other. Absent when fewer than two of them launched anything.
pub(crate) fn replay_marked(index: &TraceIndex<'_>, scope: &Scope, steps: &[(usize, Vec<Interval>)]) -> Option<Replay> {
    let trace = index.trace();
    let activities = &trace.activities;
    let mut list_of_rank = vec![None; trace.ranks.len()];
    for (list, (rank, _)) in steps.iter().enumerate() {
        if let Some(of_rank) = list_of_rank.get_mut(*rank) {
            *of_rank = Some(list);
        }
    }
    // Device extent of each step, by device, rank's list and step.
    let mut extents: HashMap<(DeviceId, u32, u32), Interval, FixedState> = HashMap::default();
    let mut add = |found: Option<((DeviceId, u32, u32), Interval)>| {
        if let Some((key, own)) = found {
            extents.entry(key).and_modify(|extent| *extent = hull(*extent, own)).or_insert(own);
        }
    };
    let mut latest = None;
    for row in 0..activities.len() {
        let id = ActivityId::from_index(row);
        let Some(call) = index.links().call(id).filter(|_| scope.includes_activity(index, id)) else { continue };
        let (thread, at) = (trace.api_calls.thread[call.index()], trace.api_calls.start[call.index()]);
        let rank = trace.thread_rank(thread) as usize;
        let Some(list) = list_of_rank.get(rank).copied().flatten() else { continue };
        let of_rank = &steps[list].1;
        let before = of_rank.partition_point(|step| step.start <= at);
        let Some(step) = before.checked_sub(1).filter(|&step| at < of_rank[step].end) else { continue };
        let device = trace.lanes[activities.lane[row].index()].device;
        let own = Interval { start: activities.start[row], end: activities.end(row) };
        let key = (device, list as u32, step as u32);
        // Work comes mostly step after step.
        match &mut latest {
            Some((of, extent)) if *of == key => *extent = hull(*extent, own),
            _ => add(latest.replace((key, own))),
        }
    }
    add(latest);
    let number = extents.keys().map(|&(_, list, step)| (list, step)).collect::<HashSet<_, FixedState>>().len() as u64;
    if number < 2 {
        return None;
    }
    let mut of_device: Vec<Vec<Interval>> = vec![Vec::new(); trace.devices.len()];
    for ((device, _, _), extent) in extents {
        of_device[device.index()].push(extent);
    }
    let inside: Vec<Covered> = of_device.into_iter().map(|extents| Covered::of(IntervalSet::from_unsorted(extents))).collect();
    let idle = IdleWalk::new(index, scope);
    let gap = graph_gap_of(idle.inside_graphs());
    let mut win_ns = Ns::ZERO;
    // Pieces come mostly in order of time, many inside one step.
    let mut latest: Option<(DeviceId, Interval)> = None;
    idle.each_piece(&mut |piece| {
        let Some(removed) = removed_of(&piece, gap) else { return };
        let of_device = &inside[piece.device.index()];
        let holds = |step: Interval| step.start <= removed.start && removed.end <= step.end;
        if !latest.is_some_and(|(device, step)| device == piece.device && holds(step)) {
            latest = of_device.around(removed.start).map(|step| (piece.device, step));
        }
        let is_inside = latest.is_some_and(|(device, step)| device == piece.device && holds(step));
        win_ns += if is_inside { removed.len() } else { of_device.inside(removed) };
    });
    Some(Replay { win_ns, steps: number })
}
