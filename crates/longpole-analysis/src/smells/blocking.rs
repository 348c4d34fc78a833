//! One call that holds the host for a large part of the run while the device has nothing to do.

use longpole_trace::{ApiCallId, Interval, IntervalSet, Ns, StrId};

use super::evidence::blocks;
use super::facts::names_with;
use super::thresholds::{BLOCKED_LISTED, BLOCKED_SHARE, SHORTEST_START_UP};
use super::{Facts, Found, SmellKind, Stage, operators};
use crate::phrases::time;

pub(super) const BLOCKING_CALL: SmellKind = SmellKind {
    code: "blocking_call",
    stage: Stage::Cause,
    lead_in: "one wait first: ",
    meaning: "A single blocking copy or synchronisation holds the host while nothing runs on the device. No recorded work explains the wait: mostly it is for \
              work that was launched before the recording began, whose events are not in the file.",
    detection: "One call that waits for the device (*Synchronize, *Memcpy*, *Query) takes at least {SHORTEST_START_UP}, and for {BLOCKED_LISTED} of the wall it \
                waits in one stretch with no device of its rank busy, work outside the scope included, and outside the profiler's own work. It leads from {BLOCKED_SHARE} of the wall, unless one operator's \
                ceiling is higher.",
    ceiling: "longest stretch of the call in which no device of the rank was busy",
    fix: "Call torch.cuda.synchronize() before the profiler starts and see whether the wait is still there. If it is, copy with non_blocking=True from and to \
          pinned memory, and read results back later than they are made.",
    find: blocking_call,
};

/// How many of the longest calls are looked at.
const LOOKED_AT: usize = 8;

fn blocking_call(facts: &Facts<'_, '_>) -> Option<Found> {
    let (trace, tree) = (facts.trace(), facts.tables.index.tree());
    let calls = &trace.api_calls;
    let least = SHORTEST_START_UP.ns();
    if !facts.has_device() {
        return None;
    }
    let waits = names_with(trace, blocks);
    let mut longest: Vec<usize> = (0..calls.len())
        .filter(|&row| calls.dur[row] >= least && waits[calls.name[row].index()])
        .filter(|&row| facts.tables.scope.includes_call(trace, ApiCallId::from_index(row)))
        .collect();
    longest.sort_by_key(|&row| (std::cmp::Reverse(calls.dur[row]), row));
    longest.truncate(LOOKED_AT);
    let (row, idle) =
        longest.into_iter().map(|row| (row, idle_during(facts, row))).max_by_key(|&(row, idle)| (idle, std::cmp::Reverse(row)))?;
    if idle < least || !BLOCKED_LISTED.is_met(idle, facts.wall) {
        return None;
    }
    let text = |name: StrId| trace.strings.get(name);
    let name = text(calls.name[row]);
    let op = tree.api_node(ApiCallId::from_index(row)).and_then(|node| tree.enclosing_op(node)).map(|op| text(tree.name(op)));
    let place = op.map_or_else(String::new, |op| format!(" in {}", facts.clip(op)));
    let ceiling = facts.host_ceiling(idle);
    let summary = format!(
        "one call of {}{place} holds the host for {} with the GPU idle: it probably waits for work launched before the window",
        facts.clip(name),
        time(idle)
    );
    let is_largest = operators::ceiling(facts).is_none_or(|other| ceiling.is_some_and(|own| own.win_ns >= other.win_ns));
    Some(
        Found::new(name, summary, "synchronise before the profiler starts, record again, and see whether the wait stays")
            .covering(facts.host_share(idle))
            .at_most(ceiling)
            .fact("inside", op)
            .fact("call_ns", calls.dur[row].max(Ns::ZERO))
            .fact("gpu_idle_during_ns", idle)
            .fact("window", facts.window(Interval::new(calls.start[row], calls.dur[row])).as_str())
            .leading(is_largest && BLOCKED_SHARE.is_met(idle, facts.wall)),
    )
}

/// The longest stretch of a call in which no device of its rank was busy, nor the profiler with itself: short gaps between kernels are no
/// wait for something else. Work outside the scope counts as busy: it may be what is waited for.
fn idle_during(facts: &Facts<'_, '_>, call: usize) -> Ns {
    let trace = facts.trace();
    let rank = trace.thread_rank(trace.api_calls.thread[call]) as usize;
    let during = IntervalSet::from_unsorted(vec![Interval::new(trace.api_calls.start[call], trace.api_calls.dur[call])]);
    let idle = facts.evidence.pace.busy.get(rank).map_or_else(|| during.clone(), |busy| during.difference(busy));
    idle.difference(&facts.evidence.profiler).intervals().iter().map(|gap| gap.len()).max().unwrap_or_default()
}
