//! Graph captures: while a stream is captured, launches are written into a graph and nothing runs, so that they rightly have no
//! device activity.

use longpole_trace::{Ns, ThreadId};

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
/// no activity before its end may just as well have lost theirs, and are not excused.
#[derive(Debug, Default)]
pub(super) struct Captures {
    /// Thread, time, and how many captures are open from there on.
    changes: Vec<(ThreadId, Ns, i64)>,
}

impl Captures {
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

    /// Whether the thread was capturing at that time.
    pub(super) fn include(&self, thread: ThreadId, at: Ns) -> bool {
        let after = self.changes.partition_point(|&(other, time, _)| (other, time) <= (thread, at));
        after.checked_sub(1).is_some_and(|last| self.changes[last].0 == thread && self.changes[last].2 > 0)
    }
}
