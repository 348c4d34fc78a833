//! Which rows of a trace are in a scope, and what of its surroundings has to come along.
//!
//! Rows that are in the scope are kept whole. Beside them there are two kinds of guests, which began before the scope and are cut to
//! the part that holds kept events:
//!
//! - Python calls around kept events: the stack of an operator is what is around it;
//! - operators that own work of the scope. Without them that work would look as if no operator had launched it.
//!
//! Named ranges and other operators around the scope are left out: as rows of the slice they would claim to be in it.

use std::cmp::Reverse;

use longpole_analysis::{HostRow, NodeId, Owner, Scope, TraceIndex};
use longpole_trace::{ActivityId, ApiCallId, HostOpId, IntervalSet, LaneId, Ns, ThreadId, Trace};

use super::ChromeError;

/// When an event starts, and how long it lasts.
pub(super) type Times = (Ns, Ns);

pub(super) struct Selection<'a, 't> {
    pub(super) index: &'a TraceIndex<'t>,
    pub(super) scope: &'a Scope,
    /// The one recording that has something in the scope.
    pub(super) rank: usize,
    /// When it is that the scope lasts, device work included; absent for the whole trace.
    time: Option<IntervalSet>,
    /// Threads and streams that have kept events.
    pub(super) threads: Vec<bool>,
    pub(super) lanes: Vec<bool>,
    /// For each thread, when kept events start, in order, and when the last of them ends. Empty for the whole trace.
    kept: Vec<(Vec<Ns>, Ns)>,
    /// Operators that are guests, outermost first.
    guests: Vec<u32>,
}

impl<'a, 't> Selection<'a, 't> {
    pub(super) fn find(index: &'a TraceIndex<'t>, scope: &'a Scope) -> Result<Self, ChromeError> {
        let trace = index.trace();
        let time = (!scope.is_whole()).then(|| scope.intervals(index));
        let (threads, lanes) = (vec![false; trace.threads.len()], vec![false; trace.lanes.len()]);
        let kept = if time.is_some() { vec![(Vec::new(), Ns::MIN); trace.threads.len()] } else { Vec::new() };
        let mut selection = Self { index, scope, rank: 0, time, threads, lanes, kept, guests: Vec::new() };
        selection.note_kept();
        selection.rank = selection.only_rank()?;
        if !scope.is_whole() {
            selection.guests = selection.find_guests();
            for &op in &selection.guests {
                selection.threads[trace.host_ops.thread[op as usize].index()] = true;
            }
        }
        Ok(selection)
    }

    fn trace(&self) -> &'t Trace {
        self.index.trace()
    }

    pub(super) fn op(&self, row: usize) -> bool {
        let node = (!self.scope.is_whole()).then(|| self.index.tree().op_node(HostOpId::from_index(row))).flatten();
        // What is folded into its parent is part of it.
        node.map_or_else(
            || self.scope.includes_host(self.trace(), self.trace().host_ops.thread[row], self.trace().host_ops.start[row]),
            |node| self.scope.includes_node(self.index, node),
        )
    }

    pub(super) fn call(&self, row: usize) -> bool {
        self.scope.includes_call(self.trace(), ApiCallId::from_index(row))
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

    /// Python calls, guests first and outermost first among them.
    pub(super) fn frames(&self) -> impl Iterator<Item = (usize, Times)> {
        let frames = &self.trace().frames;
        let mut guests: Vec<(usize, Times)> = Vec::new();
        if !self.scope.is_whole() {
            let outside = (0..frames.len()).filter(|&row| !self.frame_is_inside(row));
            guests.extend(outside.filter_map(|row| Some((row, self.cut(frames.thread[row], frames.start[row], frames.end(row))?))));
            guests.sort_by_key(|&(row, _)| (frames.start[row], Reverse(frames.end(row))));
        }
        let inside = (0..frames.len()).filter(|&row| self.frame_is_inside(row));
        guests.into_iter().chain(inside.map(|row| (row, (frames.start[row], frames.dur[row]))))
    }

    /// Operators that are guests.
    pub(super) fn guest_ops(&self) -> impl Iterator<Item = (usize, Times)> {
        let ops = &self.trace().host_ops;
        self.guests.iter().map(|&row| row as usize).map(|row| {
            // One that is known by its external id alone may have nothing inside.
            let times = self.cut(ops.thread[row], ops.start[row], ops.end(row)).unwrap_or((ops.start[row], ops.dur[row]));
            (row, times)
        })
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

    /// The part of an event that holds kept events of its thread, if any.
    fn cut(&self, thread: ThreadId, start: Ns, end: Ns) -> Option<Times> {
        let (starts, last) = self.kept.get(thread.index())?;
        let first = *starts.get(starts.partition_point(|&kept| kept < start))?;
        (first < end).then(|| (first, end.min(*last) - first))
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
        for (starts, _) in &mut self.kept {
            starts.sort_unstable();
        }
    }

    fn note(&mut self, thread: ThreadId, start: Ns, end: Ns) {
        self.threads[thread.index()] = true;
        if let Some((starts, last)) = self.kept.get_mut(thread.index()) {
            starts.push(start);
            *last = end.max(*last);
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

    /// Operators that are not in the scope, but own work or allocations that are.
    fn find_guests(&self) -> Vec<u32> {
        let (trace, tree) = (self.trace(), self.index.tree());
        let mut nodes: Vec<NodeId> = Vec::new();
        for row in (0..trace.activities.len()).filter(|&row| self.activity(row)) {
            if let Owner::Op(node) = self.index.links().owner(ActivityId::from_index(row)) {
                nodes.push(node);
            }
        }
        self.owners_of_memory(&mut nodes);
        nodes.sort_unstable();
        nodes.dedup();
        let op = |node: NodeId| if let HostRow::Op(id) = tree.row(node) { Some(id.0) } else { None };
        nodes.into_iter().filter(|&node| !self.scope.includes_node(self.index, node)).filter_map(op).collect()
    }

    /// The innermost operators around kept allocator events, in one pass over the events and nodes of each thread.
    fn owners_of_memory(&self, nodes: &mut Vec<NodeId>) {
        let (trace, tree) = (self.trace(), self.index.tree());
        let mut events: Vec<(ThreadId, Ns)> = (0..trace.memory.len())
            .filter(|&row| self.memory(row))
            .map(|row| (trace.memory.thread[row], trace.memory.start[row]))
            .collect();
        events.sort_unstable();
        for of_thread in events.chunk_by(|a, b| a.0 == b.0) {
            let mut coming = tree.thread_nodes(of_thread[0].0).map(|node| NodeId(node as u32)).peekable();
            // Open nodes, each with the innermost operator around it.
            let mut open: Vec<(NodeId, Option<NodeId>)> = Vec::new();
            for &(_, at) in of_thread {
                while let Some(node) = coming.next_if(|&node| tree.start(node) <= at) {
                    let parent = tree.parent(node);
                    while open.pop_if(|top| Some(top.0) != parent).is_some() {}
                    let operator = if tree.is_op(node) { Some(node) } else { open.last().and_then(|top| top.1) };
                    open.push((node, operator));
                }
                while open.pop_if(|top| tree.end(top.0) < at).is_some() {}
                let owner = open.last().and_then(|top| top.1);
                if owner.is_some() && nodes.last() != owner.as_ref() {
                    nodes.extend(owner);
                }
            }
        }
    }
}
