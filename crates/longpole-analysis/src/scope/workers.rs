//! Which threads run the backward pass for others.

use longpole_trace::{HostOpId, RangeId, Trace};

use crate::index::{HostTree, NodeId, TraceIndex};
use crate::ranges::is_users;

/// The outermost operators of a backward pass: `autograd::engine::evaluate_function: MmBackward0`, and what old traces have instead,
/// `MmBackward0`, `CudnnConvolutionBackward` and `torch::autograd::AccumulateGrad`.
fn is_backward(name: &str) -> bool {
    let name = name.trim();
    name.starts_with("autograd::")
        || name.starts_with("torch::autograd::")
        || name.trim_end_matches(|c: char| c.is_ascii_digit()).ends_with("Backward")
}

/// Autograd worker threads, by thread: their outermost operators are backward ones, and they open no range of their own.
///
/// A thread that runs the training loop runs backward operators too where the backward pass has a single thread; it is known by its
/// ranges. Ranges inside backward operators (hooks open some) and those that libraries open after the pass are not a loop, unless
/// backward operators run in them.
pub(crate) fn autograd_workers(index: &TraceIndex<'_>) -> Vec<bool> {
    let trace = index.trace();
    let backward: Vec<bool> = trace.strings.iter().map(|(_, name)| is_backward(name)).collect();
    let mut workers = vec![false; trace.threads.len()];
    if !backward.contains(&true) || !trace.host_ops.name.iter().any(|name| backward[name.index()]) {
        return workers;
    }
    let tree = index.tree();
    let mut in_range = vec![false; trace.threads.len()];
    for row in (0..trace.host_ops.len()).filter(|&row| backward[trace.host_ops.name[row].index()]) {
        let thread = trace.host_ops.thread[row].index();
        if workers[thread] && in_range[thread] {
            continue;
        }
        let Some(node) = tree.op_node(HostOpId::from_index(row)) else { continue };
        if tree.parent(node).is_none_or(|parent| tree.enclosing_op(parent).is_none()) {
            workers[thread] = true;
            in_range[thread] |= tree.parent(node).is_some();
        }
    }
    for row in 0..trace.ranges.len() {
        let thread = trace.ranges.thread[row];
        if workers[thread.index()] && (in_range[thread.index()] || is_own(trace, tree, row, &backward)) {
            workers[thread.index()] = false;
        }
    }
    workers
}

/// Whether a range was opened by the thread's own program, not by a library and not inside a backward operator.
fn is_own(trace: &Trace, tree: &HostTree<'_>, row: usize, backward: &[bool]) -> bool {
    let is_inside = |node: NodeId| tree.ancestors(node).any(|around| tree.is_op(around) && backward[tree.name(around).index()]);
    is_users(trace.strings.get(trace.ranges.name[row])) && !tree.range_node(RangeId::from_index(row)).is_some_and(is_inside)
}
