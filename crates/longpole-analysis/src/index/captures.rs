//! Graph captures: while a stream is captured, launches are written into a graph and nothing runs, so that they rightly have no
//! device activity.

use longpole_trace::{Capture, Ns, ThreadId};

/// What an API call does, as far as counting launches is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallKind {
    /// Starts device work.
    Launch,
    /// Begins to capture a stream.
    BeginsCapture,
    /// Ends a capture.
    EndsCapture,
    /// Nothing of these.
    Other,
}

impl CallKind {
    /// By the name alone, of either vendor and of runtime or driver.
    pub(super) fn of(name: &str) -> Self {
        if name.contains("StreamBeginCapture") {
            Self::BeginsCapture
        } else if name.contains("StreamEndCapture") {
            Self::EndsCapture
        } else if ["Launch", "Memcpy", "Memset"].iter().any(|part| name.contains(part)) && !name.contains("HostFunc") {
            // Host functions run on the host: no device activity is ever recorded for them.
            Self::Launch
        } else {
            Self::Other
        }
    }
}

/// When each thread was capturing.
///
/// A capture that has not ended lasts to the end of the recording. One that began before the recording is not known: launches with
/// no activity before its end may just as well have lost theirs, and are not excused, but for calls that a node of a graph was seen to come from.
#[derive(Debug, Default)]
pub(super) struct Captures {
    /// Thread, time, and how many captures are open from there on.
    changes: Vec<(ThreadId, Ns, i64)>,
    /// Thread and time of each node that was seen being made, sorted.
    nodes: Vec<(ThreadId, Ns)>,
}

impl Captures {
    /// With the nodes that were seen being made.
    pub(super) fn new(nodes: &[Capture]) -> Self {
        let mut nodes: Vec<_> = nodes.iter().map(|node| (node.thread, node.at)).collect();
        nodes.sort_unstable();
        Self { changes: Vec::new(), nodes }
    }

    /// Notes that a capture begins, or ends.
    pub(super) fn note(&mut self, thread: ThreadId, at: Ns, begins: bool) {
        self.changes.push((thread, at, if begins { 1 } else { -1 }));
    }

    /// Must be called between the last note and the first question.
    pub(super) fn sort(&mut self) {
        self.changes.sort_unstable();
        let mut open = (None, 0);
        for (thread, _, change) in &mut self.changes {
            if open.0 != Some(*thread) {
                open = (Some(*thread), 0);
            }
            open.1 = (open.1 + *change).max(0);
            *change = open.1;
        }
    }

    /// Whether a call made nodes, or was made while its thread was capturing.
    pub(super) fn include(&self, thread: ThreadId, at: Ns, end: Ns) -> bool {
        let node = self.nodes.get(self.nodes.partition_point(|&node| node < (thread, at)));
        if node.is_some_and(|&(other, made)| other == thread && made <= end) {
            return true;
        }
        let after = self.changes.partition_point(|&(other, time, _)| (other, time) <= (thread, at));
        after.checked_sub(1).is_some_and(|last| self.changes[last].0 == thread && self.changes[last].2 > 0)
    }
}

#[cfg(test)]
mod tests {
    use longpole_trace::GraphNodeId;

    use super::*;

    #[test]
    fn a_call_that_made_a_node_was_captured_though_no_capture_is_seen_to_begin() {
        let node = |thread, at| Capture { rank: 0, node: GraphNodeId(0), thread: ThreadId(thread), at: Ns(at) };
        let mut captures = Captures::new(&[node(1, 50), node(0, 20)]);
        captures.sort();
        let included = |thread, at, end| captures.include(ThreadId(thread), Ns(at), Ns(end));
        assert!(included(0, 15, 20) && included(0, 20, 25) && included(1, 49, 51));
        assert!(!included(0, 21, 60) && !included(1, 10, 49) && !included(2, 0, 100));
    }
}
