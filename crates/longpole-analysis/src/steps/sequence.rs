//! The device work of one device in program order.

use longpole_trace::{ActivityId, DeviceId, Ns};

use crate::index::TraceIndex;
use crate::scope::Scope;

/// Activities of one device in program order, and the name of each as a symbol.
#[derive(Debug)]
pub(super) struct Sequence {
    pub(super) device: DeviceId,
    pub(super) activities: Vec<ActivityId>,
    /// Ids of the names in the trace.
    pub(super) symbols: Vec<u32>,
}

/// The sequences of all devices that have work in scope.
///
/// Streams run in their own order; several are merged by the time of launch, which does not change from step to step as the start on
/// the device does. An activity without a recorded launch follows the one before it on its stream. Equal launches (a graph) are in
/// order of start.
pub(super) fn sequences(index: &TraceIndex<'_>, scope: &Scope) -> Vec<Sequence> {
    let trace = index.trace();
    let activities = &trace.activities;
    let mut of_lane: Vec<Vec<u32>> = vec![Vec::new(); trace.lanes.len()];
    for row in 0..activities.len() {
        if scope.includes_activity(index, ActivityId::from_index(row)) {
            of_lane[activities.lane[row].index()].push(row as u32);
        }
    }
    let mut of_device: Vec<Vec<(Ns, Ns, u32)>> = vec![Vec::new(); trace.devices.len()];
    for (lane, mut rows) in of_lane.into_iter().enumerate() {
        let start = |row: u32| activities.start[row as usize];
        if !rows.is_sorted_by_key(|&row| start(row)) {
            rows.sort_by_key(|&row| start(row));
        }
        let merged = &mut of_device[trace.lanes[lane].device.index()];
        merged.reserve(rows.len());
        let mut launched = Ns::MIN;
        for row in rows {
            if let Some(call) = index.links().call(ActivityId(row)) {
                launched = launched.max(trace.api_calls.start[call.index()]);
            }
            merged.push((launched, start(row), row));
        }
    }
    let mut sequences = Vec::new();
    for (device, mut order) in of_device.into_iter().enumerate() {
        if order.is_empty() {
            continue;
        }
        if !order.is_sorted() {
            order.sort();
        }
        let activities: Vec<ActivityId> = order.into_iter().map(|(_, _, row)| ActivityId(row)).collect();
        let symbols = activities.iter().map(|id| trace.activities.name[id.index()].0).collect();
        sequences.push(Sequence { device: DeviceId::from_index(device), activities, symbols });
    }
    sequences
}
