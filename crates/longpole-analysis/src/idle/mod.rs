//! Why the device did nothing: every nanosecond of idle time has exactly one cause.
//!
//! The idle time of a device is the gaps of its merged timeline between its first and last activity. The activity that ends a
//! gap decides: the part of the gap before its launch goes to what the launching thread was doing, split at every change; the
//! part after it to the device. The rules are in `docs/idle.md`.

mod by_range;
mod gaps;
mod host;
mod names;
mod queue;
mod tally;
mod types;
mod waits;

use longpole_trace::ThreadId;

use crate::index::TraceIndex;
use crate::ranges::ranges_with_extents;
use crate::scope::Scope;
use gaps::Gaps;
use host::{Found, Host, Overheads, Query};
use tally::Tally;
pub use types::{CauseRow, DeviceIdle, FrameKind, FrameRow, HostFrame, IdleCause, IdlePiece, IdleTable, Queue, QueueSample, RangeIdle};

/// Why the devices of a scope were idle.
///
/// The scope's devices are looked at from the first start to the last end of its activity on each, and are idle there when they run
/// nothing at all, in or out of scope. Without device activity all is empty.
pub fn idle_table(index: &TraceIndex<'_>, scope: &Scope) -> IdleTable {
    let gaps = Gaps::find(index, scope);
    if gaps.devices.is_empty() {
        return IdleTable::default();
    }
    let overheads = Overheads::new(index.trace());
    let mut tally = Tally::new(index, &gaps, &overheads);
    tally.parts = (!index.trace().ranges.is_empty()).then(Vec::new);
    // The links are there by now, so that no part waits for another inside.
    let ((), (queues, (range_rows, extents))) = rayon::join(
        || look_at_gaps(index, &gaps, &overheads, &mut tally),
        || {
            let queues = gaps.devices.iter().map(|device| queue::of_device(index, device, &gaps.all[device.gaps.clone()]));
            (queues.collect::<Vec<_>>(), ranges_with_extents(index, scope))
        },
    );

    let (causes_of_device, causes) = tally.cause_rows();
    let mut table = IdleTable {
        idle_ns: Some(gaps.all.iter().map(|gap| gap.end - gap.start).sum()),
        span_ns: Some(gaps.devices.iter().map(|device| device.extent.len()).sum()),
        causes,
        by_frame: tally.frame_rows(),
        unsplit_gaps: tally.unsplit,
        ..IdleTable::default()
    };
    let (mut depth_ns, mut empty) = (0, Vec::with_capacity(gaps.all.len()));
    for ((device, causes), queue) in gaps.devices.iter().zip(causes_of_device).zip(queues) {
        let of_device = &gaps.all[device.gaps.clone()];
        depth_ns += queue.depth_ns;
        empty.extend(queue.empty);
        let sum = &mut table.queue;
        sum.window_ns += queue.queue.window_ns;
        sum.empty_ns += queue.queue.empty_ns;
        sum.max_depth = sum.max_depth.max(queue.queue.max_depth);
        sum.unlaunched += queue.queue.unlaunched;
        table.devices.push(DeviceIdle {
            device: device.device,
            span_ns: device.extent.len(),
            idle_ns: of_device.iter().map(|gap| gap.end - gap.start).sum(),
            gaps: of_device.len() as u64,
            causes,
            queue: queue.queue,
            queue_over_time: queue.samples,
        });
    }
    table.queue.mean_depth = queue::mean(depth_ns, table.queue.window_ns);
    if let Some(parts) = tally.parts.take() {
        table.by_range = by_range::rows(&gaps, parts, &empty, range_rows, extents);
    }
    table
}

/// Every stretch of idle time with one cause and one host frame, device after device, in order of time. They tile the gaps.
pub fn idle_pieces(index: &TraceIndex<'_>, scope: &Scope) -> Vec<IdlePiece> {
    let gaps = Gaps::find(index, scope);
    let overheads = Overheads::new(index.trace());
    let mut tally = Tally::new(index, &gaps, &overheads);
    tally.pieces = Some(Vec::new());
    look_at_gaps(index, &gaps, &overheads, &mut tally);
    let mut pieces = tally.pieces.take().unwrap_or_default();
    pieces.sort_by_key(|piece| (piece.device, piece.start));
    pieces
}

/// Finds the cause of every nanosecond of every gap.
fn look_at_gaps(index: &TraceIndex<'_>, gaps: &Gaps, overheads: &Overheads, found: &mut impl Found) {
    let trace = index.trace();
    let mut queries: Vec<Vec<Query>> = vec![Vec::new(); trace.threads.len()];
    for (at, gap) in gaps.all.iter().enumerate() {
        let (launch, _) = gap.launch(trace);
        let at = at as u32;
        match gap.call() {
            Some(call) if launch > gap.start => {
                let thread: ThreadId = trace.api_calls.thread[call.index()];
                queries[thread.index()].push(Query { start: gap.start, end: launch, gap: at });
            }
            _ => found.done(at),
        }
    }
    let mut host = Host::new(index, overheads);
    for (thread, queries) in queries.iter_mut().enumerate().filter(|(_, queries)| !queries.is_empty()) {
        // Gaps of one device are in order; several devices may wait for one thread.
        queries.sort_by_key(|query| query.start);
        host.run(ThreadId::from_index(thread), queries, found);
    }
}

#[cfg(test)]
mod naive;
#[cfg(test)]
mod tests;
