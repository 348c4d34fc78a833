//! Where nodes of graphs come from: the thread and the moment at which the program made them, by capture or by hand.
//!
//! Kernels name the nodes of the executable graph. Those are copies of the nodes that were made, perhaps of copies of them; the recorder saw each
//! copy being made.

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use longpole_recording::GraphNode;

use super::rows::Origin;
use crate::nsys::feed::Feed;

/// Copies of copies that are followed; programs copy a graph once or twice.
const MOST_COPIES: usize = 16;

/// Nodes that were made and copied in a process, by their numbers.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    known: HashMap<u64, GraphNode, FixedState>,
}

impl Nodes {
    /// Takes nodes. CUPTI uses no number twice in a process.
    pub(super) fn take(&mut self, nodes: Vec<GraphNode>) {
        for node in nodes {
            self.known.insert(node.node, node);
        }
    }

    /// The node that a node is a copy of, in the end.
    fn made(&self, node: u64) -> Option<&GraphNode> {
        let mut found = self.known.get(&node)?;
        for _ in 0..MOST_COPIES {
            match found.original {
                Some(original) => found = self.known.get(&original)?,
                None => return Some(found),
            }
        }
        None
    }

    /// Says of every node that device work names where it comes from.
    pub(super) fn add(&self, origin: &Origin, feed: &mut Feed<'_>) {
        if self.known.is_empty() {
            return;
        }
        feed.captures(origin.process, |node| self.made(node).map(|made| (made.tid, origin.time(made.time))));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_followed_to_the_node_that_was_made() {
        let node = |node, original, time| GraphNode { node, original, time, ..GraphNode::default() };
        let mut nodes = Nodes::default();
        nodes.take(vec![node(1, None, 10), node(11, Some(1), 20), node(21, Some(11), 30), node(31, Some(30), 40), node(41, Some(41), 50)]);
        let made = |of| nodes.made(of).map(|made| made.time);
        assert_eq!([1, 11, 21].map(made), [Some(10); 3]);
        // A node that nobody saw being made, one that is not known, and one that is its own copy.
        assert_eq!([31, 99, 41].map(made), [None; 3]);
    }
}
