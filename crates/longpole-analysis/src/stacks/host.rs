//! The host's own time by stack: Python functions, ranges, operators and calls of each thread.
//!
//! The host tree nests ranges, operators and calls; Python functions are put between them by containment. Operators and calls have the self
//! time of the operator table, whatever Python ran inside. Ranges, and Python functions outside of operators, have what is left. A Python
//! function that overlaps a node without holding it or fitting into it is in no stack.

use std::cmp::Reverse;

use longpole_trace::{Ns, StrId, ThreadId, Trace};

use super::{StackFrame, StackTree, thread_label};
use crate::index::order::{Order, end_of};
use crate::index::{HostRow, NodeId, TraceIndex};
use crate::scope::Scope;

/// Where threads spent their own time: thread, then Python functions, ranges, operators and calls, outermost first. Of operators and calls
/// the sum is the self CPU of the operator table.
pub fn host_stacks(index: &TraceIndex<'_>, scope: &Scope) -> StackTree {
    let trace = index.trace();
    let frames = &trace.frames;
    let order = Order::nesting(trace.threads.len(), &frames.thread, &frames.start, &frames.dur);
    let mut walk = Walk { index, scope, tree: StackTree::new(trace), open: Vec::new() };
    for thread in (0..trace.threads.len()).map(ThreadId::from_index) {
        let nodes = index.tree().thread_nodes(thread);
        let mut frames = order.thread(thread.index()).map(|position| order.row(position) as usize).peekable();
        if nodes.is_empty() && frames.peek().is_none() {
            continue;
        }
        let place = walk.tree.texted(None, StackFrame::Place, &thread_label(trace, thread));
        for node in nodes.map(|node| NodeId(node as u32)) {
            let (start, end) = (index.tree().start(node), index.tree().end(node));
            while let Some(row) = frames.next_if(|&row| {
                let frame = extent(trace, row);
                (frame.0, Reverse(frame.1)) <= (start, Reverse(end))
            }) {
                walk.open_frame(place, row);
            }
            walk.open_node(place, node);
        }
        for row in frames {
            walk.open_frame(place, row);
        }
        while walk.close() {}
    }
    walk.tree
}

fn extent(trace: &Trace, row: usize) -> (Ns, Ns) {
    let start = trace.frames.start[row];
    (start, end_of(start, trace.frames.dur[row].max(Ns::ZERO)))
}

/// A frame that is open.
struct Open {
    /// Absent for Python functions.
    node: Option<NodeId>,
    /// Position of the nearest node among what is open: itself, or the one around; absent where there is none.
    node_at: Option<usize>,
    stack: u32,
    start: Ns,
    end: Ns,
    /// The union of what is inside, and until when that reaches.
    inside: Ns,
    covered: Ns,
    /// Whether its time counts: not out of scope, and not Python inside an operator.
    counts: bool,
    is_op_or_call: bool,
    /// Whether an operator or call is open around it, or it is one.
    in_op: bool,
}

impl Open {
    fn hold(&mut self, start: Ns, end: Ns) {
        let (from, to) = (start.max(self.covered), end.min(self.end));
        if to > from {
            self.inside += to - from;
            self.covered = to;
        }
    }
}

struct Walk<'a, 't> {
    index: &'a TraceIndex<'t>,
    scope: &'a Scope,
    tree: StackTree,
    open: Vec<Open>,
}

impl Walk<'_, '_> {
    fn close(&mut self) -> bool {
        let Some(done) = self.open.pop() else { return false };
        if done.counts {
            self.tree.add(done.stack, done.end - done.start - done.inside);
        }
        true
    }

    fn push(&mut self, place: u32, node: Option<NodeId>, (frame, name): (StackFrame, StrId), (start, end): (Ns, Ns), in_scope: bool) {
        let is_op_or_call = matches!(frame, StackFrame::Operator | StackFrame::Call);
        let (parent, around_op) = self.open.last().map_or((place, false), |top| (top.stack, top.in_op));
        let counts = in_scope && (node.is_some() || !around_op);
        let stack = self.tree.named(Some(parent), frame, name);
        let in_op = around_op || is_op_or_call;
        let node_at = if node.is_some() { Some(self.open.len()) } else { self.open.last().and_then(|top| top.node_at) };
        self.open.push(Open { node, node_at, stack, start, end, inside: Ns::ZERO, covered: start, counts, is_op_or_call, in_op });
    }

    fn open_frame(&mut self, place: u32, row: usize) {
        let trace = self.index.trace();
        let (start, end) = extent(trace, row);
        while let Some(top) = self.open.last() {
            let is_over = top.end <= start;
            if is_over || (top.node.is_none() && end > top.end) {
                self.close();
            } else if end > top.end {
                // It reaches out of a node.
                return;
            } else {
                break;
            }
        }
        if let Some(top) = self.open.last_mut().filter(|top| !top.is_op_or_call) {
            top.hold(start, end);
        }
        let in_scope = self.scope.includes_host(trace, trace.frames.thread[row], start);
        self.push(place, None, (StackFrame::Python, trace.frames.name[row]), (start, end), in_scope);
    }

    fn open_node(&mut self, place: u32, node: NodeId) {
        let tree = self.index.tree();
        let (start, end, parent) = (tree.start(node), tree.end(node), tree.parent(node));
        while let Some(top) = self.open.last() {
            let goes = match top.node {
                Some(_) => top.node != parent,
                None => end > top.end || top.end <= start,
            };
            if !goes {
                break;
            }
            self.close();
        }
        // Python inside an operator has no time, so the operator has what is inside of that.
        let holder = match self.open.last() {
            Some(top) if top.node.is_none() && top.in_op => top.node_at,
            Some(_) => Some(self.open.len() - 1),
            None => None,
        };
        if let Some(holder) = holder {
            self.open[holder].hold(start, end);
        }
        let frame = match tree.row(node) {
            HostRow::Range(_) => StackFrame::Range,
            HostRow::Op(_) => StackFrame::Operator,
            HostRow::Api(_) => StackFrame::Call,
        };
        let in_scope = self.scope.includes_node(self.index, node);
        self.push(place, Some(node), (frame, tree.name(node)), (start, end), in_scope);
    }
}
