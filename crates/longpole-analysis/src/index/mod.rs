//! What several analyses need of a trace, computed once: the host call tree and the links from launches to activities.
//!
//! Each part is computed on first use. The cells are filled with `set`, not with `get_or_init`: computing a part may use
//! the thread pool, and a pool thread that waits inside an initialiser can pick up another analysis that wants the same
//! part, which would wait for itself. The price is that two threads racing for a part may both compute it.

mod captures;
mod choice;
mod join;
mod links;
pub(crate) mod order;
mod processes;
mod sweep;
mod tree;

use std::sync::OnceLock;

use longpole_trace::{ActivityId, Ns, ThreadId, Trace};

use crate::steps::StepNumbers;
use crate::stream_health::StreamHealth;
pub use links::{LinkCounts, Links, Owner};
pub use tree::{HostRow, HostTree, NodeId};

/// Marks an absent row in the packed columns of this module; never handed out.
const NONE: u32 = u32::MAX;

/// A trace and what was worked out about it.
#[derive(Debug)]
pub struct TraceIndex<'t> {
    trace: &'t Trace,
    tree: OnceLock<HostTree<'t>>,
    links: OnceLock<Links>,
    stream_health: OnceLock<StreamHealth>,
    step_numbers: OnceLock<StepNumbers>,
}

impl<'t> TraceIndex<'t> {
    /// Prepares a trace for analysis. Cheap: the parts are computed when they are asked for.
    pub fn new(trace: &'t Trace) -> Self {
        Self { trace, tree: OnceLock::new(), links: OnceLock::new(), stream_health: OnceLock::new(), step_numbers: OnceLock::new() }
    }

    /// The trace.
    pub fn trace(&self) -> &'t Trace {
        self.trace
    }

    /// The host call tree.
    pub fn tree(&self) -> &HostTree<'t> {
        filled(&self.tree, || HostTree::build(self.trace))
    }

    /// The links from device activities to their launches and operators.
    pub fn links(&self) -> &Links {
        filled(&self.links, || {
            let (tree, calls) = rayon::join(|| self.tree(), || join::launches(self.trace));
            Links::build(self.trace, tree, &calls)
        })
    }

    /// The thread that launched an activity, and when: by its call; failing that, by the operator that its external id names.
    pub(crate) fn launch(&self, activity: ActivityId) -> Option<(ThreadId, Ns)> {
        if let Some(call) = self.links().call(activity) {
            let calls = &self.trace.api_calls;
            return Some((calls.thread[call.index()], calls.start[call.index()]));
        }
        let node = self.links().owner_node(activity)?;
        Some((self.tree().thread(node), self.tree().start(node)))
    }

    /// What is wrong on the device streams.
    pub fn stream_health(&self) -> &StreamHealth {
        filled(&self.stream_health, || StreamHealth::build(self.trace, self.links()))
    }

    /// The numbers of the trace's steps.
    pub(crate) fn step_numbers(&self) -> &StepNumbers {
        self.step_numbers_of(|| StepNumbers::of(self))
    }

    /// The same where whoever asks has found the steps already.
    pub(crate) fn step_numbers_of(&self, count: impl FnOnce() -> StepNumbers) -> &StepNumbers {
        filled(&self.step_numbers, count)
    }
}

fn filled<T>(cell: &OnceLock<T>, compute: impl FnOnce() -> T) -> &T {
    cell.get().unwrap_or_else(|| {
        let value = compute();
        cell.get_or_init(|| value)
    })
}
