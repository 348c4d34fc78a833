//! What replaying steps from a device graph can win: the idle time inside steps that a graph has no place for.

use longpole_trace::{DeviceId, Interval, IntervalSet, Ns};

use super::clipped;
use crate::idle::{IdleCause, IdlePiece, idle_pieces};
use crate::index::TraceIndex;
use crate::scope::Scope;
use crate::steps::{FoundBy, StepGroup, StepOptions, step_table};

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

/// What replaying all steps of a scope wins; absent when it has none that could be.
pub(crate) fn replay(index: &TraceIndex<'_>, scope: &Scope) -> Option<Replay> {
    let (steps, idle) =
        rayon::join(|| step_table(index, scope, &StepOptions::default()), || idle_pieces(index, scope));
    let gap = graph_gap(&idle);
    let mut replay = Replay { win_ns: Ns::ZERO, steps: 0 };
    for of_device in idle.chunk_by(|a, b| a.device == b.device) {
        let device = of_device[0].device;
        let groups = || steps.groups.iter().filter(|group| group.device == device && is_replayable(group));
        let inside = groups().flat_map(|group| &group.steps).map(|step| Interval { start: step.start, end: step.end });
        replay.win_ns += clipped(&removed(of_device, device, gap), &IntervalSet::from_unsorted(inside.collect())).total();
        replay.steps += groups().map(|group| group.steps.len() as u64).sum::<u64>();
    }
    (replay.steps > 0).then_some(replay)
}
