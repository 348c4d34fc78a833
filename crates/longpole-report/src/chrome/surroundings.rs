//! Host events that are not in a scope and come along with it.
//!
//! - Whatever is around a kept event, or owns kept device work or a kept allocation. It began before the scope, and is cut to begin just
//!   before it: a nanosecond for each level, so that outer events stay outer.
//! - The calls directly inside a kept operator or range that start when the scope has ended. Self time is time less those.
//! - One neighbour of an event whose parent has its name: an only child of that kind would become one with its parent.

use std::cmp::Reverse;

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use longpole_analysis::{HostRow, HostTree, NodeId, Owner};
use longpole_trace::{ActivityId, IntervalSet, Ns, RangeId, ThreadId, Trace};

use super::selection::{Selection, Times};

/// When kept events of a thread start, and when the last of them ends.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    starts: Vec<Ns>,
    last_end: Ns,
}

impl Default for Kept {
    fn default() -> Self {
        Self { starts: Vec::new(), last_end: Ns::MIN }
    }
}

impl Kept {
    pub(super) fn note(&mut self, start: Ns, end: Ns) {
        self.starts.push(start);
        self.last_end = self.last_end.max(end);
    }

    pub(super) fn sort(&mut self) {
        self.starts.sort_unstable();
    }

    /// The end of an event that lasts until `end`, cut behind all kept events; an empty one at the very end is still inside.
    fn cut_end(&self, end: Ns) -> Ns {
        end.min(self.last_end + Ns(1))
    }

    /// The part of an event that holds kept events, if there are any in it.
    pub(super) fn cut(&self, start: Ns, end: Ns) -> Option<Times> {
        let first = *self.starts.get(self.starts.partition_point(|&kept| kept < start))?;
        (first < end).then(|| (first, self.cut_end(end).max(first) - first))
    }
}

/// Rows that come along, with the times that they are written with; outer ones first.
#[derive(Debug, Default)]
pub(super) struct Surroundings {
    pub(super) rows: Vec<(HostRow, Times)>,
}

impl Surroundings {
    pub(super) fn find(selection: &Selection<'_, '_>, host: &[IntervalSet], kept: &[Kept]) -> Self {
        let tree = selection.index.tree();
        let is_inside = |node: NodeId| selection.scope.includes_node(selection.index, node);
        let mut is_around = vec![false; tree.len()];
        let mut mark = |node: NodeId| {
            let mut node = Some(node);
            while let Some(outer) = node
                && !is_around[outer.index()]
                && !is_inside(outer)
            {
                is_around[outer.index()] = true;
                node = tree.parent(outer);
            }
        };
        owners_of_work(selection, &mut mark);
        owners_of_memory(selection, &mut mark);
        for node in tree.nodes().filter(|&node| is_inside(node)) {
            tree.parent(node).into_iter().for_each(&mut mark);
        }
        let mut found = Self::default();
        // What is directly inside a kept event keeps its times, whatever it is around.
        let is_whole = |node: NodeId| tree.parent(node).is_some_and(is_inside);
        let cut = tree.nodes().filter(|&node| is_around[node.index()] && !is_whole(node));
        let mut around: Vec<HostRow> = cut.map(|node| tree.row(node)).collect();
        let is_new = |&range: &RangeId| {
            !tree.range_node(range).is_some_and(|node| is_around[node.index()] && tree.row(node) == HostRow::Range(range))
        };
        around.extend(ranges_around(selection).into_iter().filter(is_new).map(HostRow::Range));
        found.add_around(selection.index.trace(), around, host, kept);
        let whole = tree.nodes().filter(|&node| !is_inside(node) && is_whole(node));
        found.rows.extend(whole.map(|node| (tree.row(node), tree.times(node))));
        found.add_neighbours(tree, &is_around, is_inside);
        found
    }

    /// What is around kept events, cut: of those cut at the same place, outer ones first and a nanosecond earlier each.
    fn add_around(&mut self, trace: &Trace, mut around: Vec<HostRow>, host: &[IntervalSet], kept: &[Kept]) {
        around.sort_by_cached_key(|&row| {
            let (thread, start, end) = extent(trace, row);
            (thread, start, Reverse(end), row)
        });
        // Where each begins to hold something of the scope. One that is known by its external id alone may hold nothing.
        let edge = |row: HostRow| {
            let (thread, start, end) = extent(trace, row);
            let scope = host[thread.index()].intervals();
            let next = scope.get(scope.partition_point(|interval| interval.start <= start));
            (thread, next.map(|next| next.start).filter(|&next| next < end))
        };
        for alike in around.chunk_by(|&a, &b| edge(a) == edge(b)) {
            for (at, &row) in alike.iter().enumerate() {
                let ((thread, start, end), (_, edge)) = (extent(trace, row), edge(row));
                let times = edge.map_or((start, end - start), |edge| {
                    let cut = start.max(edge - Ns((alike.len() - at) as i64));
                    (cut, kept[thread.index()].cut_end(end).max(cut) - cut)
                });
                self.rows.push((row, times));
            }
        }
    }

    /// Neighbours of events whose parents have their name and kind. They are put where their parent begins, and take no time.
    fn add_neighbours(&mut self, tree: &HostTree<'_>, is_around: &[bool], is_inside: impl Fn(NodeId) -> bool) {
        let times: HashMap<HostRow, Times, FixedState> = self.rows.iter().copied().collect();
        let is_alike = |a: NodeId, b: NodeId| {
            tree.name(a) == tree.name(b) && std::mem::discriminant(&tree.row(a)) == std::mem::discriminant(&tree.row(b))
        };
        for node in tree.nodes().filter(|&node| is_around[node.index()] || is_inside(node)) {
            let Some(parent) = tree.parent(node).filter(|&parent| is_around[parent.index()] && is_alike(node, parent)) else { continue };
            let first = NodeId(parent.0 + 1);
            let neighbour = if first == node { NodeId(node.0 + tree.subtree(node).count() as u32) } else { first };
            let is_neighbour = neighbour.index() < tree.len() && tree.parent(neighbour) == Some(parent);
            let is_missing = is_neighbour && !is_inside(neighbour) && !is_around[neighbour.index()];
            if let Some((start, _)) = times.get(&tree.row(parent)).filter(|_| is_missing) {
                self.rows.push((tree.row(neighbour), (*start, Ns::ZERO)));
            }
        }
    }
}

/// The thread of a row, and when it starts and ends.
fn extent(trace: &Trace, row: HostRow) -> (ThreadId, Ns, Ns) {
    let (thread, start, dur) = match row {
        HostRow::Range(id) => (trace.ranges.thread[id.index()], trace.ranges.start[id.index()], trace.ranges.dur[id.index()]),
        HostRow::Op(id) => (trace.host_ops.thread[id.index()], trace.host_ops.start[id.index()], trace.host_ops.dur[id.index()]),
        HostRow::Api(id) => (trace.api_calls.thread[id.index()], trace.api_calls.start[id.index()], trace.api_calls.dur[id.index()]),
    };
    (thread, start, start + dur.max(Ns::ZERO))
}

/// Ranges around those in the scope, as the table of ranges sees it: whatever else lies between them, and a range inside one of its
/// name counts by itself. Only ranges with a length are around others.
fn ranges_around(selection: &Selection<'_, '_>) -> Vec<RangeId> {
    let trace = selection.index.trace();
    let of = |row: u32| extent(trace, HostRow::Range(RangeId(row)));
    let mut order: Vec<u32> = (0..trace.ranges.len() as u32).collect();
    order.sort_by_key(|&row| {
        let (thread, start, end) = of(row);
        (thread, start, Reverse(end))
    });
    let mut parent = vec![None; order.len()];
    let mut is_around = vec![false; order.len()];
    let mut open: Vec<u32> = Vec::new();
    for row in order {
        let (thread, start, end) = of(row);
        let holds = |outer: (ThreadId, Ns, Ns)| outer.0 == thread && outer.2 >= end && outer.2 > start;
        while open.pop_if(|outer| !holds(of(*outer))).is_some() {}
        parent[row as usize] = open.last().copied();
        if end > start {
            open.push(row);
        }
        let mut outer = if selection.range(row as usize) { parent[row as usize] } else { None };
        while let Some(range) = outer
            && !is_around[range as usize]
            && !selection.range(range as usize)
        {
            is_around[range as usize] = true;
            outer = parent[range as usize];
        }
    }
    (0..is_around.len()).filter(|&row| is_around[row]).map(RangeId::from_index).collect()
}

/// The operators that own kept device work, and the calls that launched it.
fn owners_of_work(selection: &Selection<'_, '_>, mark: &mut impl FnMut(NodeId)) {
    let activities = &selection.index.trace().activities;
    for row in (0..activities.len()).filter(|&row| selection.activity(row)) {
        let (links, activity) = (selection.index.links(), ActivityId::from_index(row));
        if let Owner::Op(node) = links.owner(activity) {
            mark(node);
        }
        let call = links.call(activity).and_then(|call| selection.index.tree().api_node(call));
        call.into_iter().for_each(&mut *mark);
    }
}

/// The innermost events around kept allocator events, in one pass over both.
fn owners_of_memory(selection: &Selection<'_, '_>, mark: &mut impl FnMut(NodeId)) {
    let (memory, tree) = (&selection.index.trace().memory, selection.index.tree());
    let mut events: Vec<(ThreadId, Ns)> =
        (0..memory.len()).filter(|&row| selection.memory(row)).map(|row| (memory.thread[row], memory.start[row])).collect();
    events.sort_unstable();
    for of_thread in events.chunk_by(|a, b| a.0 == b.0) {
        let mut coming = tree.thread_nodes(of_thread[0].0).map(|node| NodeId(node as u32)).peekable();
        let mut open: Vec<NodeId> = Vec::new();
        for &(_, at) in of_thread {
            while let Some(node) = coming.next_if(|&node| tree.start(node) <= at) {
                let parent = tree.parent(node);
                while open.pop_if(|top| Some(*top) != parent).is_some() {}
                open.push(node);
            }
            while open.pop_if(|top| tree.end(*top) < at).is_some() {}
            open.last().copied().into_iter().for_each(&mut *mark);
        }
    }
}
