//! The Python frames around each host node.

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use longpole_trace::{Ns, StrId, ThreadId};

use crate::index::order::{Order, end_of};
use crate::index::{HostTree, NodeId};

/// The innermost frames around the start of every node.
pub(super) struct Stacks {
    /// Stack number of each node.
    pub(super) of_node: Vec<u32>,
    /// Frame names of each stack, innermost first. The first stack is the empty one.
    pub(super) frames: Vec<Vec<StrId>>,
}

/// A frame that may be around what comes next.
struct Open {
    name: StrId,
    end: Ns,
    /// Number of the stack with this frame innermost, once it was asked for.
    stack: Option<u32>,
}

impl Stacks {
    /// Finds the `depth` innermost frames around the start of each node. A frame is around an instant when `start <= instant < end`;
    /// frames nest as host events do.
    pub(super) fn find(tree: &HostTree<'_>, depth: usize) -> Self {
        let trace = tree.trace();
        let frames = &trace.frames;
        let order = Order::nesting(trace.threads.len(), &frames.thread, &frames.start, &frames.dur);
        let mut numbers: HashMap<Vec<StrId>, u32, FixedState> = HashMap::default();
        numbers.insert(Vec::new(), 0);
        let mut of_node = vec![0; tree.len()];
        let mut open: Vec<Open> = Vec::new();
        for thread in 0..trace.threads.len() {
            open.clear();
            let mut coming = order.thread(thread).map(|position| order.row(position) as usize).peekable();
            for node in tree.thread_nodes(ThreadId::from_index(thread)) {
                let at = tree.start(NodeId(node as u32));
                while let Some(row) = coming.next_if(|&row| frames.start[row] <= at) {
                    let (start, end) = (frames.start[row], end_of(frames.start[row], frames.dur[row]));
                    while open.last().is_some_and(|top| start >= top.end || end > top.end) {
                        open.pop();
                    }
                    open.push(Open { name: frames.name[row], end, stack: None });
                }
                while open.last().is_some_and(|top| top.end <= at) {
                    open.pop();
                }
                let innermost = open.iter().rev().take(depth).map(|frame| frame.name);
                let Some(stack) = open.last().map(|top| top.stack) else { continue };
                let number = stack.unwrap_or_else(|| {
                    let next = numbers.len() as u32;
                    *numbers.entry(innermost.collect()).or_insert(next)
                });
                of_node[node] = number;
                if let Some(top) = open.last_mut() {
                    top.stack = Some(number);
                }
            }
        }
        let mut frames = vec![Vec::new(); numbers.len()];
        for (names, number) in numbers {
            frames[number as usize] = names;
        }
        Self { of_node, frames }
    }
}
