//! Fills the groups of the operator table: device time and bytes to nodes, then one walk over the tree.

use longpole_trace::{ActivityId, ApiCallId, MemoryPlace, Ns, ThreadId};

use super::GroupBy;
use super::groups::{Groups, Resources};
use crate::index::{NodeId, Owner, TraceIndex};
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

pub(super) fn tally<'a, F: Filter>(index: &'a TraceIndex<'_>, by: GroupBy, filter: &F) -> Groups<'a> {
    index.links();
    let mut groups = Groups::new(index.tree(), by);
    let (device_time, bytes) = rayon::join(|| device_time(index, filter, &mut groups), || bytes_by_node(index, filter));
    walk(index, filter, &device_time, &bytes, &mut groups);
    groups
}

/// Own device time of every node; what no operator owns goes to its group at once.
fn device_time<F: Filter>(index: &TraceIndex<'_>, filter: &F, groups: &mut Groups<'_>) -> Vec<Ns> {
    let (trace, links) = (index.trace(), index.links());
    let activities = &trace.activities;
    if activities.is_empty() {
        return Vec::new();
    }
    let mut of_node = vec![Ns::ZERO; index.tree().len()];
    let mut outside = Vec::new();
    let mut unrecorded = Vec::new();
    for row in 0..activities.len() {
        let activity = ActivityId::from_index(row);
        if !filter.activity(activity) {
            continue;
        }
        // A negative duration would make a sum smaller than its parts; importers do not let one pass.
        let dur = activities.dur[row].max(Ns::ZERO);
        let (call, start) = match links.owner(activity) {
            Owner::Op(node) => {
                of_node[node.index()] += dur;
                continue;
            }
            Owner::LaunchedOutside(call) => {
                outside.push(call);
                (Some(trace.api_calls.name[call.index()]), trace.api_calls.start[call.index()])
            }
            Owner::Unrecorded => {
                unrecorded.push((trace.lane_rank(activities.lane[row]), activities.correlation(row)));
                (None, activities.start[row])
            }
        };
        let group = groups.of_launch(call, start);
        group.own.cuda += dur;
        group.total.cuda += dur;
    }
    count_launches(index, outside, unrecorded, groups);
    of_node
}

/// Counts launches, not activities: a graph launch has many. Activities with no number are a launch each.
fn count_launches(index: &TraceIndex<'_>, mut outside: Vec<ApiCallId>, mut unrecorded: Vec<(u32, Option<u64>)>, groups: &mut Groups<'_>) {
    let calls = &index.trace().api_calls;
    outside.sort_unstable();
    outside.dedup();
    for call in outside {
        groups.of_launch(Some(calls.name[call.index()]), Ns::MAX).calls += 1;
    }
    unrecorded.sort_unstable();
    unrecorded.dedup_by(|a, b| a == b && a.1.is_some());
    if !unrecorded.is_empty() {
        groups.of_launch(None, Ns::MAX).calls += unrecorded.len() as u64;
    }
}

/// Own bytes of every node, host and device apart; empty where there are none.
struct Bytes {
    host: Vec<i64>,
    device: Vec<i64>,
}

fn bytes_by_node<F: Filter>(index: &TraceIndex<'_>, filter: &F) -> Bytes {
    let memory = &index.trace().memory;
    let mut bytes = Bytes { host: Vec::new(), device: Vec::new() };
    if memory.is_empty() {
        return bytes;
    }
    let nodes = index.tree().len();
    for (row, node) in index.allocation_nodes().enumerate() {
        let Some(node) = node else { continue };
        if !filter.host(memory.thread[row], memory.start[row]) {
            continue;
        }
        let column = match memory.place[row] {
            MemoryPlace::Host => &mut bytes.host,
            MemoryPlace::Device => &mut bytes.device,
        };
        if column.is_empty() {
            column.resize(nodes, 0);
        }
        let sum = &mut column[node.index()];
        *sum = sum.saturating_add(memory.bytes[row]);
    }
    bytes
}

/// A node whose descendants are still to come.
struct Open {
    node: NodeId,
    start: Ns,
    dur: Ns,
    children: Ns,
    own: Resources,
    total: Resources,
}

/// Walks the tree depth first; a node is put in its group when its last descendant has passed.
fn walk<F: Filter>(index: &TraceIndex<'_>, filter: &F, device_time: &[Ns], bytes: &Bytes, groups: &mut Groups<'_>) {
    let tree = index.tree();
    let mut stack: Vec<Open> = Vec::new();
    let mut close = |open: &Open| {
        let own_work = open.own.cuda != Ns::ZERO || open.own.host_bytes != 0 || open.own.device_bytes != 0;
        let inside = F::ALL || filter.node(open.node);
        if !inside && !own_work {
            return;
        }
        let Some(group) = groups.of_node(open.node, open.start) else { return };
        let group = groups.get_mut(group);
        group.own.add(open.own);
        if inside {
            group.calls += 1;
            group.cpu += open.dur;
            group.self_cpu += open.dur - (open.children - tree.shared_child_time(open.node));
            group.total.add(open.total);
        } else {
            group.total.add(open.own);
        }
    };
    for node in tree.nodes() {
        let parent = tree.parent(node);
        while let Some(top) = stack.last()
            && Some(top.node) != parent
        {
            let Some(done) = stack.pop() else { break };
            close(&done);
            if let Some(outer) = stack.last_mut() {
                outer.total.add(done.total);
            }
        }
        let (start, dur) = tree.times(node);
        if let Some(outer) = stack.last_mut() {
            outer.children += dur;
        }
        let own = Resources {
            cuda: device_time.get(node.index()).copied().unwrap_or_default(),
            host_bytes: bytes.host.get(node.index()).copied().unwrap_or_default(),
            device_bytes: bytes.device.get(node.index()).copied().unwrap_or_default(),
        };
        stack.push(Open { node, start, dur, children: Ns::ZERO, own, total: own });
    }
    while let Some(done) = stack.pop() {
        close(&done);
        if let Some(outer) = stack.last_mut() {
            outer.total.add(done.total);
        }
    }
}
