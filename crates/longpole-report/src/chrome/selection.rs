//! Which rows of a trace are in a scope, and what of their surroundings has to come along.
//!
//! Rows in the scope are kept as they are. A row alone does not say all that is asked of it, though: self time needs the calls inside,
//! the place of a range needs the ranges around it, and work belongs to the operator around its launch, which may have begun before the
//! scope did. Those rows come along (`surroundings`), and the metadata say which intervals of which thread the scope is, so that a
//! reader knows one from the other. What is around the scope is cut to it: else a step out of an hour would last an hour.

use std::cmp::Reverse;

use longpole_analysis::{HostRow, Scope, TraceIndex};
use longpole_trace::{ActivityId, ApiCallId, HostOpId, IntervalSet, LaneId, Ns, ThreadId, Trace};

use super::ChromeError;
use super::surroundings::{Kept, Surroundings};

/// When an event starts, and how long it lasts.
pub(super) type Times = (Ns, Ns);

pub(super) struct Selection<'a, 't> {
    pub(super) index: &'a TraceIndex<'t>,
    pub(super) scope: &'a Scope,
    /// The one recording that has something in the scope.
    pub(super) rank: usize,
    /// By thread, when host events are in the scope; absent when all are.
    pub(super) host: Option<Vec<IntervalSet>>,
    /// When it is that the scope lasts, device work included; absent for the whole trace.
    time: Option<IntervalSet>,
    /// Threads and streams that have events.
    pub(super) threads: Vec<bool>,
    pub(super) lanes: Vec<bool>,
    /// By thread, when kept events start and end. Empty unless the scope is a part of the host's time.
    kept: Vec<Kept>,
    pub(super) surroundings: Surroundings,
}

impl<'a, 't> Selection<'a, 't> {
    pub(super) fn find(index: &'a TraceIndex<'t>, scope: &'a Scope) -> Result<Self, ChromeError> {
        let trace = index.trace();
        let host = scope.host_intervals(trace);
        let time = (!scope.is_whole()).then(|| scope.intervals(index));
        let (threads, lanes) = (vec![false; trace.threads.len()], vec![false; trace.lanes.len()]);
        let kept = if host.is_some() { vec![Kept::default(); trace.threads.len()] } else { Vec::new() };
        let mut selection = Self { index, scope, rank: 0, host, time, threads, lanes, kept, surroundings: Surroundings::default() };
        selection.note_kept();
        selection.rank = selection.only_rank()?;
        if let Some(host) = &selection.host {
            selection.surroundings = Surroundings::find(&selection, host, &selection.kept);
            for &(row, _) in &selection.surroundings.rows {
                selection.threads[thread_of(trace, row).index()] = true;
            }
        }
        Ok(selection)
    }

    fn trace(&self) -> &'t Trace {
        self.index.trace()
    }

    pub(super) fn op(&self, row: usize) -> bool {
        let node = self.host.as_ref().and_then(|_| self.index.tree().op_node(HostOpId::from_index(row)));
        // What is folded into its parent is part of it.
        node.map_or_else(
            || self.scope.includes_host(self.trace(), self.trace().host_ops.thread[row], self.trace().host_ops.start[row]),
            |node| self.scope.includes_node(self.index, node),
        )
    }

    pub(super) fn call(&self, row: usize) -> bool {
        let call = ApiCallId::from_index(row);
        let includes = || self.scope.includes_call(self.trace(), call);
        // One that is folded away belongs to its parent, but what it launched is joined to itself.
        match self.host.as_ref().and_then(|_| self.index.tree().api_node(call)) {
            Some(node) => self.scope.includes_node(self.index, node) || (self.index.links().has_activity(call) && includes()),
            None => includes(),
        }
    }

    pub(super) fn range(&self, row: usize) -> bool {
        self.scope.includes_host(self.trace(), self.trace().ranges.thread[row], self.trace().ranges.start[row])
    }

    pub(super) fn memory(&self, row: usize) -> bool {
        self.scope.includes_host(self.trace(), self.trace().memory.thread[row], self.trace().memory.start[row])
    }

    pub(super) fn activity(&self, row: usize) -> bool {
        self.scope.includes_activity(self.index, ActivityId::from_index(row))
    }

    fn frame_is_inside(&self, row: usize) -> bool {
        self.scope.includes_host(self.trace(), self.trace().frames.thread[row], self.trace().frames.start[row])
    }

    /// Python calls: those around kept events, outermost first, cut to the part that holds them; then those in the scope.
    pub(super) fn frames(&self) -> impl Iterator<Item = (usize, Times)> {
        let frames = &self.trace().frames;
        let mut around: Vec<(usize, Times)> = Vec::new();
        if !self.kept.is_empty() {
            let outside = (0..frames.len()).filter(|&row| !self.frame_is_inside(row));
            let cut = |row: usize| self.kept[frames.thread[row].index()].cut(frames.start[row], frames.end(row));
            around.extend(outside.filter_map(|row| Some((row, cut(row)?))));
            around.sort_by_key(|&(row, _)| (frames.start[row], Reverse(frames.end(row))));
        }
        let inside = (0..frames.len()).filter(|&row| self.frame_is_inside(row));
        around.into_iter().chain(inside.map(|row| (row, (frames.start[row], frames.dur[row]))))
    }

    /// Whether something that is on no thread lies in the time of the scope, in part at least.
    pub(super) fn overlaps(&self, start: Ns, end: Ns) -> bool {
        self.time.as_ref().is_none_or(|time| {
            let next = time.intervals().partition_point(|interval| interval.end <= start);
            time.intervals().get(next).is_some_and(|interval| interval.start <= end)
        })
    }

    pub(super) fn sync_event(&self, row: usize) -> bool {
        let events = &self.trace().sync_events;
        let (start, rank) = (events.start[row], events.rank[row] as usize);
        self.scope.includes_rank(rank) && self.time.as_ref().is_none_or(|time| time.contains(start))
    }

    /// Notes what is kept: on which threads and streams, and when.
    fn note_kept(&mut self) {
        let trace = self.trace();
        let (ranges, ops, calls, memory) = (&trace.ranges, &trace.host_ops, &trace.api_calls, &trace.memory);
        for row in 0..ranges.len() {
            if self.range(row) {
                self.note(ranges.thread[row], ranges.start[row], ranges.end(row));
            }
        }
        for row in 0..ops.len() {
            if self.op(row) {
                self.note(ops.thread[row], ops.start[row], ops.end(row));
            }
        }
        for row in 0..calls.len() {
            if self.call(row) {
                self.note(calls.thread[row], calls.start[row], calls.end(row));
            }
        }
        for row in 0..memory.len() {
            if self.memory(row) {
                self.note(memory.thread[row], memory.start[row], memory.start[row]);
            }
        }
        for row in 0..trace.frames.len() {
            if self.frame_is_inside(row) {
                self.threads[trace.frames.thread[row].index()] = true;
            }
        }
        for row in 0..trace.activities.len() {
            if self.activity(row) {
                self.lanes[trace.activities.lane[row].index()] = true;
            }
        }
        self.kept.iter_mut().for_each(Kept::sort);
    }

    fn note(&mut self, thread: ThreadId, start: Ns, end: Ns) {
        self.threads[thread.index()] = true;
        if let Some(kept) = self.kept.get_mut(thread.index()) {
            kept.note(start, end);
        }
    }

    fn only_rank(&self) -> Result<usize, ChromeError> {
        let trace = self.trace();
        let mut has_events = vec![false; trace.ranks.len().max(1)];
        for thread in (0..self.threads.len()).filter(|&thread| self.threads[thread]) {
            has_events[trace.thread_rank(ThreadId::from_index(thread)) as usize] = true;
        }
        for lane in (0..self.lanes.len()).filter(|&lane| self.lanes[lane]) {
            has_events[trace.lane_rank(LaneId::from_index(lane)) as usize] = true;
        }
        let ranks: Vec<usize> = (0..has_events.len()).filter(|&rank| has_events[rank]).collect();
        match ranks[..] {
            [] => Err(ChromeError::Nothing),
            [only] => Ok(only),
            _ => Err(ChromeError::SeveralRanks(ranks.iter().map(|&rank| trace.ranks[rank].rank).collect())),
        }
    }
}

fn thread_of(trace: &Trace, row: HostRow) -> ThreadId {
    match row {
        HostRow::Range(id) => trace.ranges.thread[id.index()],
        HostRow::Op(id) => trace.host_ops.thread[id.index()],
        HostRow::Api(id) => trace.api_calls.thread[id.index()],
    }
}
