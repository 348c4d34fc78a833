//! Fills the groups of the operator table in one walk over the tree, in two halves at once.

use std::ops::Range;

use longpole_trace::{ActivityId, MemoryPlace, Ns, ThreadId};

use super::groups::{Groups, Resources};
use super::stacks::Stacks;
use super::{GroupBy, OpTable};
use crate::index::order::{Order, end_of};
use crate::index::{HostRow, HostTree, NodeId, Owner, TraceIndex};
use crate::scope::Scope;

/// What counts. A trait, so that the whole trace costs no test a row.
pub(super) trait Filter: Sync {
    /// True when nothing is left out.
    const ALL: bool;
    fn node(&self, node: NodeId) -> bool;
    fn activity(&self, activity: ActivityId) -> bool;
    fn host(&self, thread: ThreadId, at: Ns) -> bool;
}

pub(super) struct Everything;

impl Filter for Everything {
    const ALL: bool = true;

    fn node(&self, _: NodeId) -> bool {
        true
    }

    fn activity(&self, _: ActivityId) -> bool {
        true
    }

    fn host(&self, _: ThreadId, _: Ns) -> bool {
        true
    }
}

pub(super) struct Within<'a, 't> {
    pub(super) index: &'a TraceIndex<'t>,
    pub(super) scope: &'a Scope,
}

impl Filter for Within<'_, '_> {
    const ALL: bool = false;

    fn node(&self, node: NodeId) -> bool {
        self.scope.includes_node(self.index, node)
    }

    fn activity(&self, activity: ActivityId) -> bool {
        self.scope.includes_activity(self.index, activity)
    }

    fn host(&self, thread: ThreadId, at: Ns) -> bool {
        self.scope.includes_host(self.index.trace(), thread, at)
    }
}

pub(super) fn tally<F: Filter>(index: &TraceIndex<'_>, by: GroupBy, filter: &F) -> OpTable {
    index.links();
    let tree = index.tree();
    let stacks = if let GroupBy::Stack(depth) = by { Some(Stacks::find(tree, depth)) } else { None };
    let inputs = Inputs::new(index, filter);
    let split = split(tree);
    let (mut groups, late) = rayon::join(
        || {
            let mut groups = Groups::new(tree, by, stacks.as_ref());
            Walk::new(&inputs).run(0..split, &mut groups);
            groups
        },
        || {
            let mut groups = Groups::new(tree, by, stacks.as_ref());
            Walk::new(&inputs).run(split..tree.len(), &mut groups);
            outside_operators(index, filter, &mut groups);
            groups
        },
    );
    groups.merge(late);
    groups.into_table()
}

/// A node near the middle with only ranges around it, so that nothing of either side belongs to an operator of the other.
fn split(tree: &HostTree<'_>) -> usize {
    let middle = NodeId(tree.len() as u32 / 2);
    if tree.is_empty() {
        return 0;
    }
    let chain = std::iter::once(middle).chain(tree.ancestors(middle));
    let outermost = chain.filter(|&node| !matches!(tree.row(node), HostRow::Range(_))).last();
    outermost.unwrap_or(middle).index()
}

/// How long an activity took. A negative duration would make a sum smaller than its parts; importers do not let one pass.
fn duration(index: &TraceIndex<'_>, activity: ActivityId) -> Ns {
    index.trace().activities.dur[activity.index()].max(Ns::ZERO)
}

/// Gives device work that no operator owns to its groups.
fn outside_operators<F: Filter>(index: &TraceIndex<'_>, filter: &F, groups: &mut Groups<'_>) {
    let (trace, links) = (index.trace(), index.links());
    // One bit a call, in the order of the table: launches are counted, not activities, since a graph launch has many.
    let mut outside = vec![0_u64; trace.api_calls.len().div_ceil(64)];
    let mut unrecorded = Vec::new();
    for row in 0..trace.activities.len() {
        let activity = ActivityId::from_index(row);
        let owner = links.owner(activity);
        if matches!(owner, Owner::Op(_)) || !filter.activity(activity) {
            continue;
        }
        let (name, start) = if let Owner::LaunchedOutside(call) = owner {
            outside[call.index() / 64] |= 1 << (call.index() % 64);
            (Some(trace.api_calls.name[call.index()]), trace.api_calls.start[call.index()])
        } else {
            unrecorded.push((trace.lane_rank(trace.activities.lane[row]), trace.activities.correlation(row)));
            (None, trace.activities.start[row])
        };
        let group = groups.of_launch(name, start);
        group.own.cuda += duration(index, activity);
        group.total.cuda += duration(index, activity);
    }
    for (word, bits) in outside.into_iter().enumerate().filter(|(_, bits)| *bits != 0) {
        for call in (0..64).filter(|bit| bits >> bit & 1 == 1).map(|bit| word * 64 + bit) {
            groups.of_launch(Some(trace.api_calls.name[call]), Ns::MAX).calls += 1;
        }
    }
    // Activities with no number are a launch each.
    unrecorded.sort_unstable();
    unrecorded.dedup_by(|a, b| a == b && a.1.is_some());
    if !unrecorded.is_empty() {
        groups.of_launch(None, Ns::MAX).calls += unrecorded.len() as u64;
    }
}

/// A node whose descendants are still to come.
struct Open {
    node: NodeId,
    row: HostRow,
    start: Ns,
    dur: Ns,
    children: Ns,
    own: Resources,
    total: Resources,
}

/// What a walk over the tree reads beside it, in nearly the same order as the nodes. So no column of sums a node is needed: filling fresh
/// memory would take longer than the walk.
struct Inputs<'a, 't, F> {
    index: &'a TraceIndex<'t>,
    filter: &'a F,
    /// Activities that have an owner, by owner; absent when they are in that order in the table.
    activities: Option<Vec<u32>>,
    allocations: Order,
}

impl<'a, 't, F: Filter> Inputs<'a, 't, F> {
    fn new(index: &'a TraceIndex<'t>, filter: &'a F) -> Self {
        let (trace, links) = (index.trace(), index.links());
        let owner = |row: usize| links.owner_node(ActivityId::from_index(row));
        let by_owner = || {
            if (0..trace.activities.len()).filter_map(owner).is_sorted() {
                return None;
            }
            let mut rows: Vec<u32> = (0..trace.activities.len() as u32).filter(|&row| owner(row as usize).is_some()).collect();
            rows.sort_by_key(|&row| owner(row as usize));
            Some(rows)
        };
        let in_time = || Order::by(trace.threads.len(), &trace.memory.thread, |row| trace.memory.start[row]);
        let (activities, allocations) = rayon::join(by_owner, in_time);
        Self { index, filter, activities, allocations }
    }

    fn activity(&self, position: usize) -> Option<ActivityId> {
        let row = match &self.activities {
            Some(rows) => rows.get(position).map(|&row| row as usize),
            None => Some(position).filter(|&row| row < self.index.trace().activities.len()),
        };
        row.map(ActivityId::from_index)
    }

    fn owner(&self, activity: ActivityId) -> Option<NodeId> {
        self.index.links().owner_node(activity)
    }

    /// Time of the allocator event at a position.
    fn allocation(&self, position: usize) -> (usize, Ns) {
        let row = self.allocations.row(position) as usize;
        (row, self.index.trace().memory.start[row])
    }
}

/// A walk over some of the nodes, depth first.
struct Walk<'a, 't, F> {
    inputs: &'a Inputs<'a, 't, F>,
    stack: Vec<Open>,
    /// Position of the next activity, and its owner; no owner when there is none left.
    next_activity: usize,
    next_owner: Option<NodeId>,
    /// Positions of the allocator events to come on this thread, and the time of the first.
    allocations: Range<usize>,
    next_allocation: Ns,
}

impl<'a, 't, F: Filter> Walk<'a, 't, F> {
    fn new(inputs: &'a Inputs<'a, 't, F>) -> Self {
        Self { inputs, stack: Vec::new(), next_activity: 0, next_owner: None, allocations: 0..0, next_allocation: Ns::MAX }
    }

    fn run(mut self, nodes: Range<usize>, groups: &mut Groups<'_>) {
        let (inputs, tree) = (self.inputs, self.inputs.index.tree());
        self.seek_activity(NodeId(nodes.start as u32));
        for thread in 0..inputs.index.trace().threads.len() {
            let thread = ThreadId::from_index(thread);
            let of_thread = tree.thread_nodes(thread);
            let wanted = nodes.start.max(of_thread.start)..nodes.end.min(of_thread.end);
            if wanted.is_empty() {
                continue;
            }
            // Where the thread is split, an event goes with the last node to start before it.
            let start_of = |node: usize| (of_thread.start < node && node < of_thread.end).then(|| tree.start(NodeId(node as u32)));
            self.enter_thread(thread, start_of(wanted.start));
            let until = start_of(wanted.end);
            for node in wanted.map(|node| NodeId(node as u32)) {
                let (row, start, dur) = tree.event(node);
                if self.next_allocation < start {
                    self.allocations_before(thread, Some(start), groups);
                }
                let parent = tree.parent(node);
                while self.stack.last().is_some_and(|top| Some(top.node) != parent) {
                    self.close(groups);
                }
                if let Some(outer) = self.stack.last_mut() {
                    outer.children += dur;
                }
                let cuda = if self.next_owner == Some(node) { self.device_time(node) } else { Ns::ZERO };
                let own = Resources { cuda, ..Resources::default() };
                self.stack.push(Open { node, row, start, dur, children: Ns::ZERO, own, total: own });
            }
            self.allocations_before(thread, until, groups);
            while !self.stack.is_empty() {
                self.close(groups);
            }
        }
    }

    /// Goes on to the next activity of `first` or a later node.
    fn seek_activity(&mut self, first: NodeId) {
        self.next_owner = None;
        while let Some(activity) = self.inputs.activity(self.next_activity) {
            self.next_owner = self.inputs.owner(activity).filter(|&owner| owner >= first);
            if self.next_owner.is_some() {
                return;
            }
            self.next_activity += 1;
        }
    }

    /// Device time of the activities that a node owns. Nodes must be asked for in order.
    fn device_time(&mut self, node: NodeId) -> Ns {
        let inputs = self.inputs;
        let mut sum = Ns::ZERO;
        while self.next_owner == Some(node)
            && let Some(activity) = inputs.activity(self.next_activity)
        {
            if inputs.filter.activity(activity) {
                sum += duration(inputs.index, activity);
            }
            self.next_activity += 1;
            self.seek_activity(node);
        }
        sum
    }

    /// Goes to the first allocator event of a thread, at `from` or later.
    fn enter_thread(&mut self, thread: ThreadId, from: Option<Ns>) {
        self.allocations = self.inputs.allocations.thread(thread.index());
        let is_before = |&position: &usize| from.is_some_and(|from| self.inputs.allocation(position).1 < from);
        self.allocations.start += self.allocations.clone().take_while(is_before).count();
        self.peek_allocation();
    }

    fn peek_allocation(&mut self) {
        let next = self.allocations.clone().next();
        self.next_allocation = next.map_or(Ns::MAX, |position| self.inputs.allocation(position).1);
    }

    /// Gives the allocator events before `until` to the innermost open nodes that last until them. The open nodes include those that
    /// have ended since: an event at the very end of a node belongs to it.
    fn allocations_before(&mut self, thread: ThreadId, until: Option<Ns>, groups: &mut Groups<'_>) {
        let memory = &self.inputs.index.trace().memory;
        while !self.allocations.is_empty() && until.is_none_or(|until| self.next_allocation < until) {
            let (row, at) = self.inputs.allocation(self.allocations.start);
            self.allocations.start += 1;
            self.peek_allocation();
            // What ended before has no more events and no more children.
            while self.stack.last().is_some_and(|top| end_of(top.start, top.dur) < at) {
                self.close(groups);
            }
            if !self.inputs.filter.host(thread, at) {
                continue;
            }
            if let Some(open) = self.stack.last_mut() {
                let mut bytes = Resources::default();
                match memory.place[row] {
                    MemoryPlace::Host => bytes.host_bytes = memory.bytes[row],
                    MemoryPlace::Device => bytes.device_bytes = memory.bytes[row],
                }
                open.own.add(bytes);
                open.total.add(bytes);
            }
        }
    }

    /// Puts the innermost open node in its group: all its descendants have passed.
    fn close(&mut self, groups: &mut Groups<'_>) {
        let Some(done) = self.stack.pop() else { return };
        if let Some(outer) = self.stack.last_mut() {
            outer.total.add(done.total);
        }
        let inside = F::ALL || self.inputs.filter.node(done.node);
        if !inside && done.own == Resources::default() {
            return;
        }
        let Some(group) = groups.of_node(done.node, done.row, done.start) else { return };
        group.own.add(done.own);
        if inside {
            let shared = self.inputs.index.tree().shared_child_time(done.node);
            group.calls += 1;
            group.cpu += done.dur;
            group.self_cpu += done.dur - (done.children - shared);
            group.total.add(done.total);
        } else {
            group.total.add(done.own);
        }
    }
}
