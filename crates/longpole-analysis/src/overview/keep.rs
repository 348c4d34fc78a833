//! The lanes with the events that are kept, numbered, and linked to their launches.

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use longpole_trace::{Interval, IntervalSet, Ns, StrId};
use rayon::prelude::*;

use super::gather::{Lane, View};
use super::types::{EventOrigin, LaneKind, Level, OverviewEvent, OverviewLane};
use super::windows::Chosen;
use crate::index::{HostRow, NodeId};

/// Puts lanes together.
pub(super) fn lanes(
    view: &View<'_, '_>,
    lanes: &[Lane],
    chosen: &Chosen,
    summaries: Vec<(Ns, Vec<Level>)>,
    window: Interval,
) -> Vec<OverviewLane> {
    let kept: Vec<(Vec<OverviewEvent>, Vec<Interval>)> = lanes
        .par_iter()
        .zip(&chosen.whole)
        .map(|(lane, &is_whole)| {
            if is_whole {
                return ((0..lane.len()).map(|at| event(view, lane, at)).collect(), vec![window]);
            }
            let windows = if lane.is_host() { &chosen.host } else { &chosen.device };
            (inside(view, lane, windows), windows.intervals().to_vec())
        })
        .collect();
    let mut first = 0;
    let mut made: Vec<OverviewLane> = Vec::with_capacity(lanes.len());
    for ((lane, (events, complete)), (busy, levels)) in lanes.iter().zip(kept).zip(summaries) {
        let count = events.len() as u32;
        let (kind, place, rows, total) = (lane.kind, lane.place, lane.rows, lane.len() as u64);
        made.push(OverviewLane { kind, place, rows, total, busy, first, events, complete, levels });
        first += count;
    }
    link(view, &mut made);
    made
}

/// Events that have a moment in one of the windows.
fn inside(view: &View<'_, '_>, lane: &Lane, windows: &IntervalSet) -> Vec<OverviewEvent> {
    let windows = windows.intervals();
    let (mut next, mut events) = (0, Vec::new());
    for at in 0..lane.len() {
        let (start, end) = view.times(lane, at);
        while windows.get(next).is_some_and(|window| window.end < start) {
            next += 1;
        }
        if windows.get(next).is_some_and(|window| window.start <= end) {
            events.push(event(view, lane, at));
        }
    }
    events
}

fn event(view: &View<'_, '_>, lane: &Lane, at: usize) -> OverviewEvent {
    let (start, end) = view.times(lane, at);
    let name = View::name(lane, view.key(lane, at));
    let (row, origin) = (u32::from(lane.row(at)), View::origin(lane, at));
    OverviewEvent { start, dur: end - start, name, row, origin, launch: None, owner: owner(view, origin) }
}

/// The operator that device work was launched in, failing that the innermost range.
fn owner(view: &View<'_, '_>, origin: EventOrigin) -> Option<StrId> {
    let EventOrigin::Activity(activity) = origin else { return None };
    let (links, tree) = (view.index.links(), view.index.tree());
    if let Some(node) = links.owner_node(activity) {
        return Some(tree.name(node));
    }
    let call = tree.api_node(links.call(activity)?)?;
    let range = tree.ancestors(call).find(|&node| matches!(tree.row(node), HostRow::Range(_)))?;
    Some(tree.name(range))
}

/// Links device work to the calls that are kept.
fn link(view: &View<'_, '_>, lanes: &mut [OverviewLane]) {
    let (links, tree) = (view.index.links(), view.index.tree());
    let mut number_of: HashMap<NodeId, u32, FixedState> = HashMap::default();
    for lane in lanes.iter().filter(|lane| lane.kind == LaneKind::Calls) {
        for (number, event) in (lane.first..).zip(&lane.events) {
            if let EventOrigin::Node(node) = event.origin {
                number_of.insert(node, number);
            }
        }
    }
    for event in lanes.iter_mut().filter(|lane| lane.kind == LaneKind::Stream).flat_map(|lane| &mut lane.events) {
        if let EventOrigin::Activity(activity) = event.origin {
            let node = links.call(activity).and_then(|call| tree.api_node(call));
            event.launch = node.and_then(|node| number_of.get(&node).copied());
        }
    }
}
