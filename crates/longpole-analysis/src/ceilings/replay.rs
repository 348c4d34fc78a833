//! What replaying steps from a device graph can win: the idle time inside steps that a graph has no place for.

use foldhash::fast::FixedState;
use hashbrown::{HashMap, HashSet};
use longpole_trace::{ActivityId, DeviceId, Interval, IntervalSet, Ns};

use super::clipped;
use crate::idle::{IdleCause, IdlePiece, idle_pieces};
use crate::index::TraceIndex;
use crate::scope::Scope;
use crate::steps::{FoundBy, StepGroup};

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

/// The gap that a graph of this trace leaves between two kernels: the first quartile, absent when too few are recorded.
pub(super) fn graph_gap(pieces: &[IdlePiece]) -> Option<Ns> {
    let mut gaps: Vec<Ns> =
        pieces.iter().filter(|piece| piece.cause == IdleCause::GraphInternal).map(|piece| piece.end - piece.start).collect();
    let at = gaps.len() / 4;
    (gaps.len() >= PIECES_TO_KNOW).then(|| *gaps.select_nth_unstable(at).1)
}

/// Whether steps of a group can be replayed and are not: they occur more than once.
pub(super) fn is_replayable(group: &StepGroup) -> bool {
    group.found_by != FoundBy::GraphReplay && group.steps.len() > 1
}

/// The time inside the steps of a group.
pub(super) fn extents(group: &StepGroup) -> IntervalSet {
    IntervalSet::from_unsorted(group.steps.iter().map(|step| Interval { start: step.start, end: step.end }).collect())
}

/// Idle time that replaying removes on one device, wherever it is: of launch latency only what is beyond the gap of a graph.
pub(super) fn removed(pieces: &[IdlePiece], device: DeviceId, graph_gap: Option<Ns>) -> IntervalSet {
    let of_piece = |piece: &IdlePiece| {
        let kept = if piece.cause == IdleCause::LaunchLatency { graph_gap.unwrap_or(Ns::ZERO) } else { Ns::ZERO };
        Interval { start: piece.start, end: (piece.end - kept).max(piece.start) }
    };
    let own = pieces.iter().filter(|piece| piece.device == device && is_replaced(piece.cause));
    IntervalSet::from_unsorted(own.map(of_piece).collect())
}

/// What replaying all steps of a scope wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Replay {
    /// Idle time that is gone, summed over devices.
    pub(crate) win_ns: Ns,
    /// Steps that are replayed.
    pub(crate) steps: u64,
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
        let extent = extents.entry((device, list as u32, step as u32)).or_insert(own);
        *extent = Interval { start: extent.start.min(own.start), end: extent.end.max(own.end) };
    }
    let number = extents.keys().map(|&(_, list, step)| (list, step)).collect::<HashSet<_, FixedState>>().len() as u64;
    if number < 2 {
        return None;
    }
    let idle = idle_pieces(index, scope);
    let gap = graph_gap(&idle);
    let mut win_ns = Ns::ZERO;
    for of_device in idle.chunk_by(|a, b| a.device == b.device) {
        let device = of_device[0].device;
        let inside = extents.iter().filter(|((on, _, _), _)| *on == device).map(|(_, extent)| *extent);
        win_ns += clipped(&removed(of_device, device, gap), &IntervalSet::from_unsorted(inside.collect())).total();
    }
    Some(Replay { win_ns, steps: number })
}
