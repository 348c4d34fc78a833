//! Idle time inside ranges: the gaps within the device extent of each instance.

use std::cmp::Reverse;

use longpole_trace::Ns;

use super::gaps::{DeviceGaps, Gaps};
use super::tally::Part;
use super::types::{IdleCause, RangeIdle};
use crate::index::TraceIndex;
use crate::ranges::{RangeExtent, RangeRow};

/// Time by cause, and that with an empty queue behind.
type Sums = [Ns; IdleCause::COUNT + 1];

/// The rows of the range table that have device work. `empty` holds, by gap, the time with an empty queue.
pub(super) fn rows(
    index: &TraceIndex<'_>,
    gaps: &Gaps,
    parts: &[Vec<Part>],
    empty: &[Ns],
    rows: Vec<RangeRow>,
    mut extents: Vec<RangeExtent>,
) -> Vec<RangeIdle> {
    let mut sums: Vec<Option<(Sums, Ns)>> = vec![None; rows.len()];
    extents.sort_unstable_by_key(|extent| (extent.device, extent.extent.start));
    for of_device in extents.chunk_by(|a, b| a.device == b.device) {
        if let Ok(at) = gaps.devices.binary_search_by_key(&of_device[0].device, |device| device.device) {
            add_device(index, gaps, &gaps.devices[at], parts, empty, of_device, &mut sums);
        }
    }
    rows.into_iter().zip(sums).filter_map(|(row, sums)| Some(row_of(row, sums?))).collect()
}

/// Adds the instances on one device. They begin and end as activities do, never inside a gap, so that the sums of an instance are
/// those up to its end less those up to its start.
fn add_device(
    index: &TraceIndex<'_>,
    gaps: &Gaps,
    device: &DeviceGaps,
    parts: &[Vec<Part>],
    empty: &[Ns],
    extents: &[RangeExtent],
    sums: &mut [Option<(Sums, Ns)>],
) {
    // Time, instance, and whether it is its end.
    let mut edges: Vec<(Ns, u32, bool)> = Vec::with_capacity(2 * extents.len());
    for (at, extent) in extents.iter().enumerate() {
        edges.extend([(extent.extent.start, at as u32, false), (extent.extent.end, at as u32, true)]);
    }
    edges.sort_unstable();
    let trace = index.trace();
    let unobserved = trace.unobserved.of_rank(trace.devices[device.device.index()].rank as usize);
    let mut so_far: Sums = [Ns::ZERO; IdleCause::COUNT + 1];
    let mut at_gap = device.gaps.start;
    let first = parts.partition_point(|chunk| chunk.last().is_none_or(|part| (part.gap as usize) < at_gap));
    let mut parts = parts[first..].iter().flatten().skip_while(|part| (part.gap as usize) < device.gaps.start).peekable();
    for (time, at, is_end) in edges {
        while at_gap < device.gaps.end && gaps.all[at_gap].end <= time {
            while let Some(part) = parts.next_if(|part| part.gap as usize == at_gap) {
                let next = parts.peek().filter(|next| next.gap == part.gap);
                so_far[part.cause.index()] += next.map_or(gaps.all[at_gap].end, |next| next.start) - part.start;
            }
            so_far[IdleCause::COUNT] += empty[at_gap];
            at_gap += 1;
        }
        let extent = &extents[at as usize];
        let (sum, span) = sums[extent.row as usize].get_or_insert(([Ns::ZERO; IdleCause::COUNT + 1], Ns::ZERO));
        for (sum, so_far) in sum.iter_mut().zip(&so_far) {
            if is_end {
                *sum += *so_far;
            } else {
                *sum -= *so_far;
            }
        }
        if is_end {
            *span += extent.extent.len() - unobserved.time_within(extent.extent);
        }
    }
}

fn row_of(row: RangeRow, (sums, span_ns): (Sums, Ns)) -> RangeIdle {
    let mut causes: Vec<(IdleCause, Ns)> =
        IdleCause::ALL.iter().map(|&cause| (cause, sums[cause.index()])).filter(|&(_, idle)| idle > Ns::ZERO).collect();
    causes.sort_by_key(|&(cause, idle)| (Reverse(idle), cause));
    RangeIdle {
        name: row.name,
        parents: row.parents,
        calls: row.calls,
        span_ns,
        idle_ns: causes.iter().map(|&(_, idle)| idle).sum(),
        empty_queue_ns: sums[IdleCause::COUNT],
        causes,
    }
}
