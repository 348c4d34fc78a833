//! Fills the groups of the operator table in one walk over the tree.

use longpole_trace::{ActivityId, MemoryPlace, Ns, ThreadId};

use super::GroupBy;
use super::groups::{Groups, Resources};
use crate::index::order::{Order, end_of};
use crate::index::{HostRow, NodeId, Owner, TraceIndex};
use crate::scope::Scope;

/// What counts. A trait, so that the whole trace costs no test a row.
pub(super) trait Filter {
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

pub(super) fn tally<'a, F: Filter>(index: &'a TraceIndex<'_>, by: GroupBy, filter: &F) -> Groups<'a> {
    index.links();
    let mut groups = Groups::new(index.tree(), by);
    outside_operators(index, filter, &mut groups);
    Walk::new(index, filter).run(&mut groups);
    groups
}

/// How long an activity took. A negative duration would make a sum smaller than its parts; importers do not let one pass.
fn duration(index: &TraceIndex<'_>, activity: ActivityId) -> Ns {
    index.trace().activities.dur[activity.index()].max(Ns::ZERO)
}

/// Gives device work that no operator owns to its groups.
fn outside_operators<F: Filter>(index: &TraceIndex<'_>, filter: &F, groups: &mut Groups<'_>) {
    let (trace, links) = (index.trace(), index.links());
    let mut outside = Vec::new();
    let mut unrecorded = Vec::new();
    for row in 0..trace.activities.len() {
        let activity = ActivityId::from_index(row);
        let owner = links.owner(activity);
        if matches!(owner, Owner::Op(_)) || !filter.activity(activity) {
            continue;
        }
        let (name, start) = if let Owner::LaunchedOutside(call) = owner {
            outside.push(call);
            (Some(trace.api_calls.name[call.index()]), trace.api_calls.start[call.index()])
        } else {
            unrecorded.push((trace.lane_rank(trace.activities.lane[row]), trace.activities.correlation(row)));
            (None, trace.activities.start[row])
        };
        let group = groups.of_launch(name, start);
        group.own.cuda += duration(index, activity);
        group.total.cuda += duration(index, activity);
    }
    // Launches are counted, not activities: a graph launch has many. Activities with no number are a launch each.
    outside.sort_unstable();
    outside.dedup();
    for call in outside {
        groups.of_launch(Some(trace.api_calls.name[call.index()]), Ns::MAX).calls += 1;
    }
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

/// Walks the tree depth first, and device work and allocator events in step with it: they are nearly in that order already, so that
/// no column of sums a node is needed (filling fresh memory would take longer than the walk).
struct Walk<'a, 't, F> {
    index: &'a TraceIndex<'t>,
    filter: &'a F,
    stack: Vec<Open>,
    /// Activities that have an owner, by owner; absent when they are in that order in the table.
    activities: Option<Vec<u32>>,
    next_activity: usize,
    allocations: Order,
}

impl<'a, 't, F: Filter> Walk<'a, 't, F> {
    fn new(index: &'a TraceIndex<'t>, filter: &'a F) -> Self {
        let (trace, links) = (index.trace(), index.links());
        let owner = |row: usize| links.owner_node(ActivityId::from_index(row));
        let activities = if (0..trace.activities.len()).filter_map(owner).is_sorted() {
            None
        } else {
            let mut rows: Vec<u32> = (0..trace.activities.len() as u32).filter(|&row| owner(row as usize).is_some()).collect();
            rows.sort_by_key(|&row| owner(row as usize));
            Some(rows)
        };
        let allocations = Order::by(trace.threads.len(), &trace.memory.thread, |row| trace.memory.start[row]);
        Self { index, filter, stack: Vec::new(), activities, next_activity: 0, allocations }
    }

    fn run(mut self, groups: &mut Groups<'_>) {
        let (trace, tree) = (self.index.trace(), self.index.tree());
        for thread in 0..trace.threads.len() {
            let mut allocations = self.allocations.thread(thread);
            let thread = ThreadId::from_index(thread);
            for node in tree.thread_nodes(thread).map(|node| NodeId(node as u32)) {
                let (row, start, dur) = tree.event(node);
                allocations.start = self.allocations_before(allocations.clone(), thread, Some(start));
                let parent = tree.parent(node);
                while self.stack.last().is_some_and(|top| Some(top.node) != parent) {
                    self.close(groups);
                }
                if let Some(outer) = self.stack.last_mut() {
                    outer.children += dur;
                }
                let own = Resources { cuda: self.device_time(node), ..Resources::default() };
                self.stack.push(Open { node, row, start, dur, children: Ns::ZERO, own, total: own });
            }
            self.allocations_before(allocations, thread, None);
            while !self.stack.is_empty() {
                self.close(groups);
            }
        }
    }

    /// Device time of the activities that a node owns. Nodes must be asked for in order.
    fn device_time(&mut self, node: NodeId) -> Ns {
        let links = self.index.links();
        let mut sum = Ns::ZERO;
        loop {
            let row = match &self.activities {
                Some(rows) => rows.get(self.next_activity).map(|&row| row as usize),
                None => Some(self.next_activity).filter(|&row| row < self.index.trace().activities.len()),
            };
            let Some(activity) = row.map(ActivityId::from_index) else { return sum };
            if links.owner_node(activity).is_some_and(|owner| owner > node) {
                return sum;
            }
            if links.owner_node(activity).is_some() && self.filter.activity(activity) {
                sum += duration(self.index, activity);
            }
            self.next_activity += 1;
        }
    }

    /// Gives the allocator events before `until` to the innermost open nodes that last until them. The open nodes include those that
    /// ended but were not closed yet: an event at the very end of a node belongs to it.
    fn allocations_before(&mut self, mut events: std::ops::Range<usize>, thread: ThreadId, until: Option<Ns>) -> usize {
        let memory = &self.index.trace().memory;
        for position in events.by_ref() {
            let row = self.allocations.row(position) as usize;
            let at = memory.start[row];
            if until.is_some_and(|until| at >= until) {
                return position;
            }
            if !self.filter.host(thread, at) {
                continue;
            }
            if let Some(open) = self.stack.iter_mut().rev().find(|open| end_of(open.start, open.dur) >= at) {
                let mut bytes = Resources::default();
                match memory.place[row] {
                    MemoryPlace::Host => bytes.host_bytes = memory.bytes[row],
                    MemoryPlace::Device => bytes.device_bytes = memory.bytes[row],
                }
                open.own.add(bytes);
                open.total.add(bytes);
            }
        }
        events.end
    }

    /// Puts the innermost open node in its group: all its descendants have passed.
    fn close(&mut self, groups: &mut Groups<'_>) {
        let Some(done) = self.stack.pop() else { return };
        if let Some(outer) = self.stack.last_mut() {
            outer.total.add(done.total);
        }
        let inside = F::ALL || self.filter.node(done.node);
        if !inside && done.own == Resources::default() {
            return;
        }
        let Some(group) = groups.of_node(done.node, done.row, done.start) else { return };
        group.own.add(done.own);
        if inside {
            let shared = self.index.tree().shared_child_time(done.node);
            group.calls += 1;
            group.cpu += done.dur;
            group.self_cpu += done.dur - (done.children - shared);
            group.total.add(done.total);
        } else {
            group.total.add(done.own);
        }
    }
}
