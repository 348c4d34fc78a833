//! The host call tree: operators, ranges and API calls of each thread, nested by containment as torch nests them.

use std::sync::OnceLock;

use longpole_trace::{ApiCallId, HostOpId, Ns, RangeId, StrId, ThreadId, Trace};

use super::order::end_of;
use super::{NONE, sweep};

/// A node of the host tree: its position in depth-first order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

impl NodeId {
    /// The position in depth-first order.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The table row that a node stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HostRow {
    /// A named range.
    Range(RangeId),
    /// An operator.
    Op(HostOpId),
    /// A runtime or driver API call.
    Api(ApiCallId),
}

/// Host events of every thread as a forest.
///
/// Nodes are numbered depth first, thread after thread, so that a node's descendants follow it directly and one pass
/// backwards adds children to parents. The rules are torch's: events sorted by start ascending and end descending (ties: range,
/// operator, API call, then file order); the parent of an event is the innermost open one that it fits into
/// (`start < parent.end && end <= parent.end`); an event that does not fit closes the open one. Then an only child with the name and
/// kind of its parent is folded into it: it has no node of its own, and its row leads to its parent's node.
///
/// Unlike torch, an operator is never folded into a range of the same name: the range has no row in the operator table,
/// so the operator's time would disappear.
///
/// Rows of operators that torch drops before it builds its tree (`profiler::_record_function_enter` and its kind) have no
/// node either and lead to the node around them, if there is one.
#[derive(Debug)]
pub struct HostTree<'t> {
    pub(super) trace: &'t Trace,
    /// Number of the first operator among all rows, and of the first API call.
    pub(super) first_op: u32,
    pub(super) first_api: u32,
    /// Row of each node, numbered ranges first, then operators, then API calls. The numbering of ties.
    pub(super) row: Vec<u32>,
    pub(super) parent: Vec<u32>,
    /// The node of each row.
    pub(super) node_of_row: Vec<u32>,
    /// First node of each thread, and one past the last thread's.
    pub(super) thread_first: Vec<u32>,
    /// Time that overlapping children of a node have in common, so that their union is their sum less this. Sorted by node.
    pub(super) shared: Vec<(u32, Ns)>,
    pub(super) partial_overlaps: u64,
    pub(super) folded: u64,
    /// The node itself or the operator around it, for every node; worked out when a chain of nodes is too long to walk.
    pub(super) op_around: OnceLock<Vec<u32>>,
}

/// Ancestors that are walked to find an operator. Deeper, a walk for every launch would cost the square of a runaway recursion.
const WALKED: usize = 64;

impl<'t> HostTree<'t> {
    pub(super) fn build(trace: &'t Trace) -> Self {
        sweep::build(trace)
    }

    /// The trace that the tree was built from.
    pub fn trace(&self) -> &'t Trace {
        self.trace
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.row.len()
    }

    /// True when there is no host event.
    pub fn is_empty(&self) -> bool {
        self.row.is_empty()
    }

    /// All nodes, depth first, thread after thread.
    pub fn nodes(&self) -> impl DoubleEndedIterator<Item = NodeId> + use<> {
        (0..self.row.len() as u32).map(NodeId)
    }

    /// The nodes of one thread, in order of start.
    pub fn thread_nodes(&self, thread: ThreadId) -> std::ops::Range<usize> {
        match self.thread_first.get(thread.index()..thread.index() + 2) {
            Some(&[first, next]) => first as usize..next as usize,
            _ => 0..0,
        }
    }

    /// What a node stands for.
    pub fn row(&self, node: NodeId) -> HostRow {
        let row = self.row[node.index()];
        if row >= self.first_api {
            HostRow::Api(ApiCallId(row - self.first_api))
        } else if row >= self.first_op {
            HostRow::Op(HostOpId(row - self.first_op))
        } else {
            HostRow::Range(RangeId(row))
        }
    }

    /// Whether a node is an operator.
    pub fn is_op(&self, node: NodeId) -> bool {
        (self.first_op..self.first_api).contains(&self.row[node.index()])
    }

    /// The node around a node.
    pub fn parent(&self, node: NodeId) -> Option<NodeId> {
        some_node(self.parent[node.index()])
    }

    /// The nodes around a node, innermost first.
    pub fn ancestors(&self, node: NodeId) -> impl Iterator<Item = NodeId> {
        std::iter::successors(self.parent(node), |&node| self.parent(node))
    }

    /// A node and all its descendants, depth first.
    pub fn subtree(&self, node: NodeId) -> impl Iterator<Item = NodeId> {
        // Numbering is depth first, so the subtree ends at the first node whose parent lies before this one.
        let rest = node.0 + 1..self.row.len() as u32;
        std::iter::once(node).chain(
            rest.take_while(move |&next| {
                let parent = self.parent[next as usize];
                parent != NONE && parent >= node.0
            })
            .map(NodeId),
        )
    }

    /// The direct children of a node, in order. Walks the whole subtree.
    pub fn children(&self, node: NodeId) -> impl Iterator<Item = NodeId> {
        self.subtree(node).filter(move |&child| self.parent(child) == Some(node))
    }

    /// The node of an operator: its own, or the one it was folded into.
    pub fn op_node(&self, op: HostOpId) -> Option<NodeId> {
        some_node(self.node_of_row[self.first_op as usize + op.index()])
    }

    /// The node of a range: its own, or the one it was folded into.
    pub fn range_node(&self, range: RangeId) -> Option<NodeId> {
        some_node(self.node_of_row[range.index()])
    }

    /// The node of an API call: its own, or the one it was folded into.
    pub fn api_node(&self, call: ApiCallId) -> Option<NodeId> {
        some_node(self.node_of_row[self.first_api as usize + call.index()])
    }

    /// The name of a node.
    pub fn name(&self, node: NodeId) -> StrId {
        match self.row(node) {
            HostRow::Range(id) => self.trace.ranges.name[id.index()],
            HostRow::Op(id) => self.trace.host_ops.name[id.index()],
            HostRow::Api(id) => self.trace.api_calls.name[id.index()],
        }
    }

    /// The thread of a node.
    pub fn thread(&self, node: NodeId) -> ThreadId {
        match self.row(node) {
            HostRow::Range(id) => self.trace.ranges.thread[id.index()],
            HostRow::Op(id) => self.trace.host_ops.thread[id.index()],
            HostRow::Api(id) => self.trace.api_calls.thread[id.index()],
        }
    }

    /// What a node stands for, when it starts and how long it takes; a negative duration counts as zero.
    pub(crate) fn event(&self, node: NodeId) -> (HostRow, Ns, Ns) {
        let row = self.row(node);
        let (start, dur) = match row {
            HostRow::Range(id) => (self.trace.ranges.start[id.index()], self.trace.ranges.dur[id.index()]),
            HostRow::Op(id) => (self.trace.host_ops.start[id.index()], self.trace.host_ops.dur[id.index()]),
            HostRow::Api(id) => (self.trace.api_calls.start[id.index()], self.trace.api_calls.dur[id.index()]),
        };
        (row, start, dur.max(Ns::ZERO))
    }

    /// When a node starts and how long it takes; a negative duration counts as zero.
    pub fn times(&self, node: NodeId) -> (Ns, Ns) {
        let (_, start, dur) = self.event(node);
        (start, dur)
    }

    /// When a node starts.
    pub fn start(&self, node: NodeId) -> Ns {
        self.times(node).0
    }

    /// When a node ends.
    pub fn end(&self, node: NodeId) -> Ns {
        let (start, dur) = self.times(node);
        end_of(start, dur)
    }

    /// The innermost node of a thread with `start <= at <= end`; where one ends as the next begins, the later one.
    pub fn innermost_at(&self, thread: ThreadId, at: Ns) -> Option<NodeId> {
        let nodes = self.thread_nodes(thread);
        let (mut low, mut high) = (nodes.start, nodes.end);
        while low < high {
            let middle = low.midpoint(high);
            if self.start(NodeId(middle as u32)) <= at {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        if low == nodes.start { None } else { self.enclosing(NodeId(low as u32 - 1), at) }
    }

    /// The given node or the nearest one around it that lasts until `at`.
    pub(crate) fn enclosing(&self, node: NodeId, at: Ns) -> Option<NodeId> {
        let mut node = Some(node);
        while let Some(inner) = node
            && self.end(inner) < at
        {
            node = self.parent(inner);
        }
        node
    }

    /// The node itself if it is an operator, else the nearest operator around it.
    pub fn enclosing_op(&self, node: NodeId) -> Option<NodeId> {
        let mut node = node.0;
        for _ in 0..WALKED {
            if node == NONE || self.is_op(NodeId(node)) {
                return some_node(node);
            }
            node = self.parent[node as usize];
        }
        some_node(node).and_then(|node| some_node(self.op_around.get_or_init(|| self.find_ops_around())[node.index()]))
    }

    fn find_ops_around(&self) -> Vec<u32> {
        let mut around = Vec::with_capacity(self.row.len());
        for node in 0..self.row.len() as u32 {
            // Parents are numbered before their children.
            let parent = self.parent[node as usize];
            let of_parent = around.get(parent as usize).copied().unwrap_or(NONE);
            around.push(if self.is_op(NodeId(node)) { node } else { of_parent });
        }
        around
    }

    /// Events that overlap an earlier one of their thread without fitting into it.
    pub fn partial_overlaps(&self) -> u64 {
        self.partial_overlaps
    }

    /// Events that were folded into their parent.
    pub fn folded(&self) -> u64 {
        self.folded
    }

    /// Time that the direct children of a node have in common.
    pub(crate) fn shared_child_time(&self, node: NodeId) -> Ns {
        if self.shared.is_empty() {
            return Ns::ZERO;
        }
        let from = self.shared.partition_point(|&(other, _)| other < node.0);
        self.shared[from..].iter().take_while(|&&(other, _)| other == node.0).map(|&(_, time)| time).sum()
    }
}

fn some_node(node: u32) -> Option<NodeId> {
    (node != NONE).then_some(NodeId(node))
}
