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
mod samples;
mod tally;
mod types;
mod waits;

use longpole_trace::{Ns, ThreadId};

use crate::index::TraceIndex;
use crate::ranges::ranges_with_extents;
use crate::scope::Scope;
use gaps::Gaps;
use host::{Found, Host, Overheads, Query};
pub use tally::IdleStretches;
use tally::{Parts, Tally};
pub use types::{
    CauseRow, DeviceIdle, FrameKind, FrameRow, HostFrame, HostSamples, IdleCause, IdlePiece, IdleStretch, IdleTable, Queue, QueueSample,
    RangeIdle, SampleRow,
};

/// Why the devices of a scope were idle.
///
/// The scope's devices are looked at from the first start to the last end of its activity on each, and are idle there when they run
/// nothing at all, in or out of scope. Without device activity all is empty.
pub fn idle_table(index: &TraceIndex<'_>, scope: &Scope) -> IdleTable {
    IdleWalk::new(index, scope).table(false, None).0
}

/// The same, and the stretches that its rows by cause are the sums of.
pub fn idle_stretches(index: &TraceIndex<'_>, scope: &Scope) -> (IdleTable, IdleStretches) {
    IdleWalk::new(index, scope).table(true, None)
}

/// Every stretch of idle time with one cause and one host frame, device after device, in order of time. They tile the gaps.
pub fn idle_pieces(index: &TraceIndex<'_>, scope: &Scope) -> Vec<IdlePiece> {
    let mut pieces = Vec::new();
    IdleWalk::new(index, scope).each_piece(&mut |piece| pieces.push(piece));
    pieces.sort_by_key(|piece| (piece.device, piece.start));
    pieces
}

/// Shows the pieces of [`idle_pieces`] without keeping them: those of one gap in order of time, gaps in no order.
pub fn each_idle_piece(index: &TraceIndex<'_>, scope: &Scope, see: &mut (dyn FnMut(IdlePiece) + Send)) {
    IdleWalk::new(index, scope).each_piece(see);
}

/// The idle time of a scope, to be gone through piece by piece: a trace has several pieces a kernel, too many to keep where sums will do.
#[derive(Debug)]
pub(crate) struct IdleWalk<'a, 't> {
    index: &'a TraceIndex<'t>,
    scope: &'a Scope,
    gaps: Gaps,
    overheads: Overheads,
}

impl<'a, 't> IdleWalk<'a, 't> {
    pub(crate) fn new(index: &'a TraceIndex<'t>, scope: &'a Scope) -> Self {
        Self { index, scope, gaps: Gaps::find(index, scope), overheads: Overheads::new(index.trace()) }
    }

    /// Lengths of the pieces between two activities of one graph launch, which are known before any piece is gone through: their gaps are
    /// not split.
    pub(crate) fn inside_graphs(&self) -> Vec<Ns> {
        let inside = self.gaps.all.iter().filter(|gap| gap.causes.0 == IdleCause::GraphInternal);
        inside.map(|gap| gap.end - gap.start).collect()
    }

    /// The table, its stretches if they are wanted, and meanwhile the pieces of [`Self::each_piece`], if they are.
    pub(crate) fn table(&self, with_stretches: bool, see: Option<&mut (dyn FnMut(IdlePiece) + Send)>) -> (IdleTable, IdleStretches) {
        let (index, gaps) = (self.index, &self.gaps);
        if gaps.devices.is_empty() {
            return (IdleTable::default(), IdleStretches::default());
        }
        let mut tally = Tally::new(index, gaps, &self.overheads);
        if let Some(see) = see {
            tally.see = Some(see);
        }
        let has_ranges = !index.trace().ranges.is_empty();
        tally.parts = (has_ranges || with_stretches).then(Parts::default);
        // The links are there by now, so that no part waits for another inside.
        let ((), (queues, (range_rows, extents))) = rayon::join(
            || look_at_gaps(index, gaps, &self.overheads, &mut tally),
            || {
                let queues = gaps.devices.iter().map(|device| queue::of_device(index, device, &gaps.all[device.gaps.clone()]));
                (queues.collect::<Vec<_>>(), ranges_with_extents(index, self.scope))
            },
        );

        let (causes_of_device, causes) = tally.cause_rows();
        let mut table = IdleTable {
            idle_ns: Some(gaps.all.iter().map(|gap| gap.end - gap.start).sum()),
            span_ns: Some(gaps.devices.iter().map(|device| device.span).sum()),
            causes,
            by_frame: tally.frame_rows(),
            host_samples: samples::of_gaps(index, gaps),
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
                span_ns: device.span,
                idle_ns: of_device.iter().map(|gap| gap.end - gap.start).sum(),
                gaps: of_device.len() as u64,
                causes,
                queue: queue.queue,
                queue_over_time: queue.samples,
            });
        }
        table.queue.mean_depth = queue::mean(depth_ns, table.queue.window_ns);
        let parts = tally.parts.take().map(Parts::by_gap).unwrap_or_default();
        if has_ranges {
            table.by_range = by_range::rows(index, gaps, &parts, &empty, range_rows, extents);
        }
        (table, if with_stretches { IdleStretches::new(gaps, parts) } else { IdleStretches::default() })
    }

    /// Shows the pieces of [`idle_pieces`]: those of one gap in order of time, gaps in no order.
    pub(crate) fn each_piece(&self, see: &mut (dyn FnMut(IdlePiece) + Send)) {
        let mut tally = Tally::new(self.index, &self.gaps, &self.overheads);
        tally.see = Some(see);
        tally.only_sees = true;
        look_at_gaps(self.index, &self.gaps, &self.overheads, &mut tally);
    }
}

/// Finds the cause of every nanosecond of every gap.
fn look_at_gaps(index: &TraceIndex<'_>, gaps: &Gaps, overheads: &Overheads, found: &mut impl Found) {
    let trace = index.trace();
    // Positions of gaps that ended with a launch from each thread.
    let mut of_thread: Vec<Vec<u32>> = vec![Vec::new(); trace.threads.len()];
    for (at, gap) in gaps.all.iter().enumerate() {
        let (launch, _) = gap.launch(trace);
        match gap.call() {
            Some(call) if launch > gap.start => of_thread[trace.api_calls.thread[call.index()].index()].push(at as u32),
            _ => found.done(at as u32),
        }
    }
    let mut host = Host::new(index, overheads);
    for (thread, own) in of_thread.iter_mut().enumerate().filter(|(_, own)| !own.is_empty()) {
        let gap = |at: u32| &gaps.all[at as usize];
        // Gaps of one device are in order; several devices may wait for one thread.
        if !own.is_sorted_by_key(|&at| gap(at).start) {
            own.sort_by_key(|&at| gap(at).start);
        }
        let queries = own.iter().map(|&at| Query { start: gap(at).start, end: gap(at).launch(trace).0, gap: at });
        host.run(ThreadId::from_index(thread), queries, found);
    }
}

#[cfg(test)]
mod naive;
#[cfg(test)]
mod tests;
