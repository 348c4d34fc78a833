//! Why a rank was late: what it spent longer on than the ranks that waited for it.
//!
//! Between the collective before (which all ranks left together) and this one (which one entered last), the late rank's time and another's
//! differ by exactly the other's waiting. Both times are the device's work by operator, and its idle time; so the differences by operator and
//! idle add up to the waiting. With several waiting ranks everything is summed over them: the late rank's time counts once for each.

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use longpole_trace::{ActivityId, DeviceId, Interval, Ns, StrId, ThreadId, Trace};

use super::calls::{Call, launching_thread};
use super::types::{Cause, CauseKind, HostCause};
use super::work::{Class, Timeline, Work};
use crate::index::{HostRow, NodeId, TraceIndex};

/// Parts of timelines and host events looked at, for each activity and host event of the trace. Each communicator goes through what lies between
/// its collectives, so this is how many communicators, by time waited, are explained at least.
const WORK_FACTOR: u64 = 16;

/// Kinds of device time, told apart by operator and kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Key {
    kind: CauseKind,
    operator: Option<StrId>,
    kernel: Option<StrId>,
}

/// Sums of one late rank.
#[derive(Debug, Default)]
pub(super) struct Excess {
    device: HashMap<Key, (Ns, i64), FixedState>,
    host: HashMap<Option<StrId>, Ns, FixedState>,
    /// Waiting explained.
    pub(super) explained: Ns,
}

/// A rank's way to a collective: when it left the one before (or began), and when it entered this one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way<'c> {
    pub(super) rank: usize,
    pub(super) call: &'c Call,
    /// End of the call before; absent for the first one.
    pub(super) before: Option<&'c Call>,
    /// What its clock is ahead.
    pub(super) correction: Ns,
    pub(super) waiting: Ns,
}

/// Looks for causes, within a bound on the work.
pub(super) struct Explainer<'i, 't> {
    index: &'i TraceIndex<'t>,
    work: &'i Work,
    timelines: Vec<Option<Timeline>>,
    first_events: Vec<Option<Ns>>,
    left: u64,
}

fn times(count: usize, time: Ns) -> Ns {
    Ns(time.get().saturating_mul(count as i64))
}

impl<'i, 't> Explainer<'i, 't> {
    pub(super) fn new(index: &'i TraceIndex<'t>, work: &'i Work) -> Self {
        let trace = index.trace();
        let activities: usize = (0..trace.ranks.len()).map(|rank| work.len(rank)).sum();
        let left = WORK_FACTOR * (activities + index.tree().len() + 1) as u64;
        let timelines = (0..trace.ranks.len()).map(|_| None).collect();
        Self { index, work, timelines, first_events: Work::first_events(trace), left }
    }

    fn timeline(&mut self, rank: usize, activity: ActivityId) -> &Timeline {
        let trace = self.index.trace();
        let device: DeviceId = trace.lanes[trace.activities.lane[activity.index()].index()].device;
        self.timelines[rank].get_or_insert_with(|| self.work.timeline(rank, device))
    }

    /// Adds what the rank at `late` of `ways` spent longer on than the others; false when the work is used up.
    pub(super) fn add(&mut self, ways: &[Way<'_>], late: usize, excess: &mut Excess) -> bool {
        let Some(others) = ways.len().checked_sub(1).filter(|_| self.left > 0) else { return false };
        // Absolute times would overflow when multiplied; the weights add up to zero, so that any base may be taken from them.
        let base = ways[late].call.start - ways[late].correction;
        let mut rest = Ns::ZERO;
        let mut idle: Vec<Vec<Interval>> = Vec::with_capacity(ways.len());
        for (at, way) in ways.iter().enumerate() {
            // The late rank's time counts once for each other rank, the others' against it.
            let weight = |time: Ns| if at == late { times(others, time) } else { Ns::ZERO - time };
            let calls = if at == late { others as i64 } else { -1 };
            let began = match way.before {
                Some(call) => call.end,
                None => self.first_events[way.rank].unwrap_or(way.call.start),
            };
            let interval = Interval { start: began, end: way.call.start.max(began) };
            let (trace, links) = (self.index.trace(), self.index.links());
            let tree = self.index.tree();
            let mut gaps = Vec::new();
            let (mut busy, mut busy_until) = (Ns::ZERO, interval.start);
            let mut looked_at = 1;
            for part in self.timeline(way.rank, way.call.activity).within(interval) {
                looked_at += 1;
                let kernel = Some(trace.activities.name[part.activity as usize]);
                let operator = links.owner_node(ActivityId(part.activity)).map(|node| tree.name(node));
                let (kind, operator) = match (part.class, operator) {
                    (Class::Communication, _) => (CauseKind::Communication, None),
                    (_, Some(_)) => (CauseKind::Operator, operator),
                    (_, None) => (CauseKind::Kernel, None),
                };
                let sum = excess.device.entry(Key { kind, operator, kernel }).or_default();
                sum.0 += weight(part.interval.len());
                sum.1 = sum.1.saturating_add(if part.is_first { calls } else { 0 });
                busy += part.interval.len();
                gaps.push(Interval { start: busy_until, end: part.interval.start });
                busy_until = part.interval.end;
            }
            gaps.push(Interval { start: busy_until, end: interval.end });
            gaps.retain(|gap| !gap.is_empty());
            idle.push(gaps);
            self.left = self.left.saturating_sub(looked_at);
            let mut other = |kind, time| excess.device.entry(Key { kind, operator: None, kernel: None }).or_default().0 += time;
            other(CauseKind::Idle, weight(interval.len() - busy));
            if way.before.is_none() {
                other(CauseKind::RecordingBegan, weight(began - way.correction - base));
            }
            // What is left of the difference: where the interval began, and entries that came before it.
            let entered = way.call.start - way.correction - base;
            let from = if way.before.is_none() { began - way.correction - base } else { Ns::ZERO };
            rest += weight(entered - from - interval.len());
            if at != late {
                excess.explained += way.waiting;
                // A rank that did not stay until the last one entered waited less than the difference of the entries.
                rest += way.waiting + entered;
            }
        }
        excess.device.entry(Key { kind: CauseKind::Unexplained, operator: None, kernel: None }).or_default().0 += rest;
        self.add_host(ways, late, &idle, excess);
        true
    }

    /// What the launching threads did while their devices idled, where the launches of all ranks are known.
    fn add_host(&mut self, ways: &[Way<'_>], late: usize, idle: &[Vec<Interval>], excess: &mut Excess) {
        let index = self.index;
        let threads: Option<Vec<_>> = ways.iter().map(|way| launching_thread(index, way.call.activity)).collect();
        let Some(threads) = threads else { return };
        let others = ways.len() - 1;
        for (at, (thread, gaps)) in threads.into_iter().zip(idle).enumerate() {
            let mut add = |name: Option<StrId>, time: Ns| {
                let weighted = if at == late { times(others, time) } else { Ns::ZERO - time };
                *excess.host.entry(name).or_default() += weighted;
            };
            for &gap in gaps {
                if self.left == 0 {
                    return;
                }
                self.left = self.left.saturating_sub(host_self_times(index, thread, gap, &mut add));
            }
        }
    }
}

/// Self time by operator and API call on a thread within an interval. Returns how many nodes that took.
fn host_self_times(index: &TraceIndex<'_>, thread: ThreadId, interval: Interval, add: &mut impl FnMut(Option<StrId>, Ns)) -> u64 {
    let tree = index.tree();
    let name = |node: Option<NodeId>| {
        let node = node?;
        if matches!(tree.row(node), HostRow::Range(_)) { tree.enclosing_op(node).map(|op| tree.name(op)) } else { Some(tree.name(node)) }
    };
    let nodes = tree.thread_nodes(thread);
    // The nodes of a thread are in order of start: the last to start before the interval, or one around it, is open when it begins.
    let (mut next, mut high) = (nodes.start, nodes.end);
    let mut looked_at = 1;
    while next < high {
        let middle = next.midpoint(high);
        looked_at += 1;
        if tree.start(NodeId(middle as u32)) <= interval.start {
            next = middle + 1;
        } else {
            high = middle;
        }
    }
    let mut current = (next > nodes.start).then(|| NodeId(next as u32 - 1));
    let mut at = interval.start;
    loop {
        let upcoming = (next < nodes.end).then_some(NodeId(next as u32)).filter(|&node| tree.start(node) < interval.end);
        let until = upcoming.map_or(interval.end, |node| tree.start(node));
        while let Some(open) = current {
            looked_at += 1;
            let end = tree.end(open);
            if end > until {
                break;
            }
            if end > at {
                add(name(current), end - at);
                at = end;
            }
            current = tree.parent(open);
        }
        if until > at {
            add(name(current), until - at);
            at = until;
        }
        match upcoming {
            Some(node) => current = Some(node),
            None => return looked_at,
        }
        next += 1;
    }
}

impl Excess {
    /// Causes by excess, the largest first.
    pub(super) fn causes(&self, trace: &Trace) -> Vec<Cause> {
        let mut sums: Vec<(Key, Ns, i64)> = self.device.iter().map(|(&key, &(excess, calls))| (key, excess, calls)).collect();
        // The kernel of an operator with the largest excess comes first.
        sums.sort_by_key(|&(key, excess, _)| (key.kind, key.operator, std::cmp::Reverse(excess), key.kernel));
        let text = |id: StrId| trace.strings.get(id).to_owned();
        let mut causes: Vec<Cause> = Vec::new();
        let same = |a: &Key, b: &Key| a.kind == b.kind && a.operator == b.operator && (a.operator.is_some() || a.kernel == b.kernel);
        for group in sums.chunk_by(|(a, ..), (b, ..)| same(a, b)) {
            let (key, excess_ns) = (group[0].0, group.iter().map(|(_, excess, _)| *excess).sum::<Ns>());
            let excess_calls = group.iter().fold(0_i64, |sum, (_, _, calls)| sum.saturating_add(*calls));
            if excess_ns == Ns::ZERO && excess_calls == 0 {
                continue;
            }
            causes.push(Cause {
                kind: key.kind,
                name: key.operator.or(key.kernel).map_or_else(String::new, text),
                kernel: key.operator.and(key.kernel).map(text),
                excess_ns,
                excess_calls,
                waiting_fraction: (self.explained > Ns::ZERO).then(|| excess_ns.get() as f64 / self.explained.get() as f64),
            });
        }
        causes.sort_by(|a, b| b.excess_ns.cmp(&a.excess_ns).then_with(|| (a.kind, &a.name).cmp(&(b.kind, &b.name))));
        causes
    }

    /// Host causes by excess, the largest first.
    pub(super) fn host_causes(&self, trace: &Trace) -> Vec<HostCause> {
        let mut sums: Vec<(Option<StrId>, Ns)> =
            self.host.iter().map(|(&name, &excess)| (name, excess)).filter(|(_, excess)| *excess != Ns::ZERO).collect();
        sums.sort_by_key(|&(name, excess)| (std::cmp::Reverse(excess), name));
        sums.into_iter().map(|(name, excess_ns)| HostCause { name: name.map(|id| trace.strings.get(id).to_owned()), excess_ns }).collect()
    }
}
