//! How long the host was in operators or calls: the union over threads of the outermost of them, in one pass that keeps nothing a call.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use longpole_trace::{Interval, Ns, ThreadId};

use crate::index::{HostRow, NodeId};
use crate::triage::Tables;

/// The time in which any thread was in an operator or call in scope; absent when none ever was. `range_time` is the time of the ranges right
/// inside a node.
pub(super) fn time_in_work<'a>(tables: &'a Tables<'a, '_>, range_time: &'a HashMap<NodeId, Ns, FixedState>) -> Option<Ns> {
    let threads = (0..tables.index.trace().threads.len()).map(|thread| of_thread(tables, ThreadId::from_index(thread), range_time));
    union_total(threads.collect())
}

/// The outermost operators and calls of a thread, in order of start. An operator that is little but a range (a compiled region) is looked
/// through: its time is Python unless something inside says otherwise.
fn of_thread<'a, 't>(
    tables: &'a Tables<'a, 't>,
    thread: ThreadId,
    range_time: &'a HashMap<NodeId, Ns, FixedState>,
) -> impl Iterator<Item = Interval> + use<'a, 't> {
    let tree = tables.index.tree();
    let nodes = tree.thread_nodes(thread);
    let first = nodes.start;
    let mut covered = vec![false; nodes.len()];
    nodes.filter_map(move |at| {
        let node = NodeId(at as u32);
        let (row, start, duration) = tree.event(node);
        // Nodes around a node are of its thread and come before it.
        let around = tree.parent(node).and_then(|parent| covered.get(parent.index() - first)).copied().unwrap_or(false);
        let wraps_range = || range_time.get(&node).is_some_and(|time| time.get() > duration.get() / 2);
        let is_looked_through = matches!(row, HostRow::Range(_)) || wraps_range();
        covered[at - first] = around || !is_looked_through;
        let is_outermost = covered[at - first] && !around;
        (is_outermost && tables.scope.includes_node(tables.index, node)).then(|| Interval::new(start, duration))
    })
}

/// The time covered by any of several streams of intervals, each in order of start; absent when there is no interval.
fn union_total<I: Iterator<Item = Interval>>(mut streams: Vec<I>) -> Option<Ns> {
    let mut heads: BinaryHeap<Reverse<(Ns, Ns, usize)>> = BinaryHeap::new();
    for (at, stream) in streams.iter_mut().enumerate() {
        heads.extend(stream.next().map(|head| Reverse((head.start, head.end, at))));
    }
    let (mut total, mut until) = (None, Ns::MIN);
    while let Some(Reverse((start, end, at))) = heads.pop() {
        let total = total.get_or_insert(Ns::ZERO);
        *total += (end - start.max(until).min(end)).max(Ns::ZERO);
        until = until.max(end);
        heads.extend(streams[at].next().map(|head| Reverse((head.start, head.end, at))));
    }
    total
}

#[cfg(test)]
mod tests {
    use longpole_trace::IntervalSet;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_union_of_streams_is_that_of_all_their_intervals(
            drawn in proptest::collection::vec(proptest::collection::vec((0_i64..100, 0_i64..20), 0..8), 0..4)
        ) {
            let streams: Vec<Vec<Interval>> = drawn
                .iter()
                .map(|stream| {
                    let mut stream: Vec<Interval> = stream.iter().map(|&(start, len)| Interval::new(Ns(start), Ns(len))).collect();
                    stream.sort_unstable();
                    stream
                })
                .collect();
            let all: Vec<Interval> = streams.iter().flatten().copied().collect();
            let expected = (!all.is_empty()).then(|| IntervalSet::from_unsorted(all).total());
            prop_assert_eq!(union_total(streams.into_iter().map(Vec::into_iter).collect()), expected);
        }
    }
}
