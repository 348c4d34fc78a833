//! Device work at its floor.

use longpole_trace::{ActivityId, Ns};

use super::types::CeilingKind;
use crate::index::TraceIndex;
use crate::roofline::{CallWorks, Roof, call_works, peaks_of};
use crate::scope::Scope;

/// Time of some work, and its floor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AtFloor {
    /// Time it takes, summed over its activities.
    pub(crate) taken: Ns,
    /// The part of it whose floor is not known: all of it could be won.
    pub(crate) unknown: Ns,
    /// The floor of the rest.
    pub(crate) floor: Ns,
    /// What it wins at its floor: for each call no more than the call is above its own.
    pub(crate) above: Ns,
    /// Which floor most of it is.
    pub(crate) kind: CeilingKind,
}

/// Adds up activities, given as (call, time), sorted by call; absent when no call has a floor. What a call wins at its
/// floor is won by any of its kernels, but by each no more than it takes.
fn at_floor(parts: &[(Option<u32>, Ns)], works: &CallWorks) -> Option<AtFloor> {
    let (mut taken, mut unknown, mut above) = (Ns::ZERO, Ns::ZERO, Ns::ZERO);
    // Of memory, of arithmetic.
    let mut floors = [Ns::ZERO; 2];
    let mut is_known = false;
    for of_call in parts.chunk_by(|a, b| a.0 == b.0) {
        let of_parts: Ns = of_call.iter().map(|part| part.1).sum();
        taken += of_parts;
        let call = of_call[0].0.and_then(|number| works.call(number));
        if let Some((call, floor, call_above)) = call.and_then(|call| Some((call, call.floor_ns?, call.above_floor_ns()?))) {
            is_known = true;
            above += call_above.min(of_parts);
            floors[usize::from(call.roof == Some(Roof::Compute))] += floor;
        } else {
            unknown += of_parts;
            above += of_parts;
        }
    }
    let kind = if floors[1] > floors[0] { CeilingKind::AtComputeFloor } else { CeilingKind::AtMemoryFloor };
    is_known.then_some(AtFloor { taken, unknown, floor: floors[0] + floors[1], above, kind })
}

/// The floor of the activities in scope for which a condition on their row holds, on the devices as the table of peaks has them. Absent
/// when they are not known, or no floor is.
pub(crate) fn above_floor(index: &TraceIndex<'_>, scope: &Scope, holds: impl Fn(usize) -> bool) -> Option<AtFloor> {
    let trace = index.trace();
    let peaks = peaks_of(trace, scope).ok()?;
    let links = index.links();
    // The floor is that of whole calls: all that they launched is looked at.
    let mut is_asked = vec![false; index.tree().len()];
    let mut rows: Vec<u32> = Vec::new();
    for row in 0..trace.activities.len() {
        if scope.includes_activity(index, ActivityId::from_index(row)) && holds(row) {
            rows.push(row as u32);
            if let Some(node) = links.owner_node(ActivityId::from_index(row)) {
                is_asked[node.index()] = true;
            }
        }
    }
    let works = call_works(index, Some(&peaks), |row| {
        let id = ActivityId(row);
        links.owner_node(id).is_some_and(|node| is_asked[node.index()]) && scope.includes_activity(index, id)
    });
    let duration = |row: u32| trace.activities.dur[row as usize].max(Ns::ZERO);
    let mut parts: Vec<(Option<u32>, Ns)> = rows.into_iter().map(|row| (works.call_of(ActivityId(row)), duration(row))).collect();
    parts.sort_unstable_by_key(|&(call, _)| call);
    at_floor(&parts, &works)
}
