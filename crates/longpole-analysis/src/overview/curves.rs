//! Queue depth and memory over time, thinned out so that no peak is lost.

use longpole_trace::{ActivityId, DeviceId, MemoryPlace, Ns};

use super::types::{Curve, CurveKind, OverviewOptions};
use crate::index::TraceIndex;
use crate::scope::Scope;
use crate::stacks::rank_order;

/// The curves that the recording has figures for.
pub(super) fn curves(index: &TraceIndex<'_>, scope: &Scope, options: &OverviewOptions) -> Vec<Curve> {
    let mut curves = queues(index, scope, options.curve_slices);
    curves.extend(memory(index, scope, options.curve_slices));
    curves.retain(|curve| !curve.points.is_empty());
    // What a device queues stands above its memory, as before; ranks are in order within each.
    curves.sort_by_key(|curve| (curve.kind != CurveKind::QueueDepth, rank_order(index.trace(), curve.rank), curve.device));
    curves
}

/// Work of each device that was launched and has not started.
fn queues(index: &TraceIndex<'_>, scope: &Scope, slices: usize) -> Vec<Curve> {
    let trace = index.trace();
    let (activities, calls, links) = (&trace.activities, &trace.api_calls, index.links());
    let mut of_device: Vec<(Vec<i64>, Vec<i64>)> = vec![Default::default(); trace.devices.len()];
    for row in 0..activities.len() {
        let id = ActivityId::from_index(row);
        let Some(call) = links.call(id).filter(|_| scope.includes_activity(index, id)) else { continue };
        let (launch, start) = (calls.start[call.index()], activities.start[row]);
        if launch < start {
            let (launches, starts) = &mut of_device[trace.lanes[activities.lane[row].index()].device.index()];
            launches.push(launch.get());
            starts.push(start.get());
        }
    }
    let curve = |(device, (mut launches, mut starts)): (usize, (Vec<i64>, Vec<i64>))| {
        launches.sort_unstable();
        starts.sort_unstable();
        let Some((&first, &last)) = launches.first().zip(starts.last()) else { return Vec::new() };
        let mut points = Thinned::new(first, last, slices);
        let (mut launches, mut starts, mut depth) = (launches.into_iter().peekable(), starts.into_iter().peekable(), 0_u64);
        // Nothing starts before its own launch, so after the last start there is no launch left.
        while let Some(&start) = starts.peek() {
            let at = launches.peek().map_or(start, |&launch| launch.min(start));
            while launches.next_if(|&launch| launch <= at).is_some() {
                depth += 1;
            }
            while starts.next_if(|&start| start <= at).is_some() {
                depth = depth.saturating_sub(1);
            }
            points.push(at, depth);
        }
        vec![of(index, DeviceId::from_index(device), CurveKind::QueueDepth, points.finish())]
    };
    of_device.into_iter().enumerate().flat_map(curve).collect()
}

fn of(index: &TraceIndex<'_>, device: DeviceId, kind: CurveKind, points: Vec<(Ns, u64)>) -> Curve {
    let device = &index.trace().devices[device.index()];
    Curve { kind, rank: device.rank, device: device.ordinal, points }
}

/// Device memory, where the recorder says how much there is after each event.
fn memory(index: &TraceIndex<'_>, scope: &Scope, slices: usize) -> Vec<Curve> {
    let trace = index.trace();
    let events = &trace.memory;
    let mut rows: Vec<(u32, i64, i64, u32)> = (0..events.len())
        .filter(|&row| events.place[row] == MemoryPlace::Device)
        .filter(|&row| scope.includes_host(trace, events.thread[row], events.start[row]))
        .filter_map(|row| {
            let device = i64::from(events.device(row)?);
            Some((trace.thread_rank(events.thread[row]), device, events.start[row].get(), row as u32))
        })
        .collect();
    rows.sort_unstable();
    let mut curves = Vec::new();
    for of_device in rows.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
        let (Some(&(rank, device, first, _)), Some(&(_, _, last, _))) = (of_device.first(), of_device.last()) else { continue };
        for kind in [CurveKind::MemoryAllocated, CurveKind::MemoryReserved] {
            let mut points = Thinned::new(first, last, slices);
            for &(_, _, at, row) in of_device {
                let row = row as usize;
                let value = if kind == CurveKind::MemoryAllocated { events.total_allocated(row) } else { events.total_reserved(row) };
                if let Some(value) = value {
                    points.push(at, value);
                }
            }
            curves.push(Curve { kind, rank, device, points: points.finish() });
        }
    }
    curves
}

/// Points of a curve, of each slice of time the first least, the first largest and the last one.
struct Thinned {
    first: i64,
    length: i128,
    slices: i128,
    slice: i128,
    least: Option<(i64, u64)>,
    largest: Option<(i64, u64)>,
    last: Option<(i64, u64)>,
    points: Vec<(Ns, u64)>,
}

impl Thinned {
    fn new(first: i64, last: i64, slices: usize) -> Self {
        let length = (i128::from(last) - i128::from(first) + 1).max(1);
        Self { first, length, slices: slices.max(1) as i128, slice: 0, least: None, largest: None, last: None, points: Vec::new() }
    }

    fn push(&mut self, at: i64, value: u64) {
        let slice = (i128::from(at) - i128::from(self.first)) * self.slices / self.length;
        if slice != self.slice {
            self.end_slice();
            self.slice = slice;
        }
        let point = (at, value);
        if self.least.is_none_or(|(_, least)| value < least) {
            self.least = Some(point);
        }
        if self.largest.is_none_or(|(_, largest)| value > largest) {
            self.largest = Some(point);
        }
        self.last = Some(point);
    }

    fn end_slice(&mut self) {
        let mut kept: Vec<(i64, u64)> = [self.least.take(), self.largest.take()].into_iter().flatten().collect();
        kept.sort_by_key(|&(at, _)| at);
        kept.extend(self.last.take());
        for (at, value) in kept {
            // What stays as it was is no new point.
            if self.points.last().is_none_or(|&(_, before)| before != value) {
                self.points.push((Ns(at), value));
            }
        }
    }

    fn finish(mut self) -> Vec<(Ns, u64)> {
        self.end_slice();
        self.points
    }
}
