//! Which host event made each allocator event.

use super::NONE;
use super::order::Order;
use super::tree::{HostTree, NodeId};

/// For each allocator event, the innermost node of its thread with `start <= at <= end`: torch's closed interval, but on the
/// event's own thread only. Both sides are in order of time, so one walk over each thread's nodes finds them all.
pub(super) fn nodes(tree: &HostTree<'_>) -> Vec<u32> {
    let memory = &tree.trace.memory;
    let order = Order::by(tree.trace.threads.len(), &memory.thread, |row| memory.start[row]);
    let mut nodes = vec![NONE; memory.len()];
    for thread in 0..tree.trace.threads.len() {
        let of_thread = tree.thread_nodes(longpole_trace::ThreadId::from_index(thread));
        let mut next = of_thread.start;
        for position in order.thread(thread) {
            let row = order.row(position) as usize;
            let at = memory.start[row];
            while next < of_thread.end && tree.start(NodeId(next as u32)) <= at {
                next += 1;
            }
            if next > of_thread.start
                && let Some(node) = tree.enclosing(NodeId(next as u32 - 1), at)
            {
                nodes[row] = node.0;
            }
        }
    }
    nodes
}
