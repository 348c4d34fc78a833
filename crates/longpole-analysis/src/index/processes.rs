//! Which process launched an activity, where calls of several processes share its correlation number.
//!
//! That happens when somebody merged the traces of several ranks into one event list: each process counted its calls from one, and a
//! device event does not say whose it is. What tells them apart, best first:
//!
//! 1. The stream. Where all of a stream's unshared numbers belong to one process, its shared ones do too.
//! 2. The external id, where it is that of one process's call only.
//! 3. The order of time. A call that launches one activity gets one: of the calls that fit (a copy fits a call that copies, a graph's
//!    node a graph launch) and the activities, the first belong together, the second, and so on. Where this speaks for one process
//!    nearly always, the stream is taken to be that process's, so that a backlog on one device mixes nothing up.

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use longpole_trace::{ActivityKind, LaneId, Ns, ProcessId, Trace};

use super::captures::CallKind;
use super::join::KeyMap;

/// The processes of activities whose number is shared.
#[derive(Debug, Default)]
pub(super) struct Processes {
    of: HashMap<u32, ProcessId, FixedState>,
    /// Activities for which nothing but the order of time spoke.
    pub(super) by_time: u64,
}

/// A call of a shared number.
#[derive(Clone, Copy, Debug)]
struct Call {
    start: Ns,
    process: ProcessId,
    external_id: Option<u64>,
    kind: Kind,
}

/// What a call launches, or what an activity is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Kernel,
    Copy,
    Fill,
    Graph,
}

/// The calls and activities of one shared number, each in order of time.
struct Group {
    calls: Vec<Call>,
    rows: Vec<u32>,
}

/// Whose work a stream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lane {
    Unknown,
    Of(ProcessId),
    /// Several processes', as far as one can tell.
    Shared,
}

type Lanes = Vec<Lane>;

/// An activity and its process; true when only the order of time spoke for it.
type Choice = (u32, ProcessId, bool);

impl Processes {
    /// Works out the processes of all activities that need it.
    pub(super) fn work_out(trace: &Trace, by_correlation: &KeyMap, lane_ranks: &[u32]) -> Self {
        if by_correlation.is_unique() || trace.processes.len() < 2 {
            return Self::default();
        }
        let mut lanes = vec![Lane::Unknown; trace.lanes.len()];
        let groups = groups(trace, by_correlation, lane_ranks, &mut lanes);
        if groups.is_empty() {
            return Self::default();
        }
        refute(trace, &groups, &mut lanes);
        let mut votes: HashMap<(LaneId, ProcessId), u64, FixedState> = HashMap::default();
        for (row, process, _) in groups.iter().flat_map(|group| group.choose(trace, &lanes)) {
            *votes.entry((trace.activities.lane[row as usize], process)).or_default() += 1;
        }
        learn(&votes, &mut lanes);
        refute(trace, &groups, &mut lanes);
        let mut found = Self::default();
        for (row, process, by_time) in groups.iter().flat_map(|group| group.choose(trace, &lanes)) {
            found.by_time += u64::from(by_time);
            found.of.insert(row, process);
        }
        found
    }

    /// The process of activity `row`, where its number is shared between processes.
    pub(super) fn of(&self, row: usize) -> Option<ProcessId> {
        if self.of.is_empty() { None } else { self.of.get(&(row as u32)).copied() }
    }
}

/// The numbers that several processes share. Notes in `lanes` what unshared ones say.
fn groups(trace: &Trace, by_correlation: &KeyMap, lane_ranks: &[u32], lanes: &mut Lanes) -> Vec<Group> {
    let (activities, calls) = (&trace.activities, &trace.api_calls);
    let process_of = |call: u32| trace.threads[calls.thread[call as usize].index()].process;
    let mut shared: Vec<(u32, Ns, u32)> = Vec::new();
    for row in 0..activities.len() {
        let lane = activities.lane[row];
        let Some(last) = activities.correlation(row).and_then(|key| by_correlation.last(lane_ranks[lane.index()], key)) else { continue };
        if by_correlation.before(last).is_some() {
            shared.push((last, activities.start[row], row as u32));
        } else {
            lanes[lane.index()].note(process_of(last));
        }
    }
    shared.sort_unstable();
    let mut found = Vec::new();
    for same in shared.chunk_by(|a, b| a.0 == b.0) {
        let last = same[0].0;
        let chain = || std::iter::successors(Some(last), |&call| by_correlation.before(call));
        if chain().all(|call| process_of(call) == process_of(last)) {
            for &(_, _, row) in same {
                lanes[activities.lane[row as usize].index()].note(process_of(last));
            }
            continue;
        }
        let mut of_number: Vec<(Call, bool)> = chain()
            .map(|call| {
                let name = trace.strings.get(calls.name[call as usize]);
                let (start, external_id) = (calls.start[call as usize], calls.external_id(call as usize));
                (Call { start, process: process_of(call), external_id, kind: Kind::of_call(name) }, CallKind::of(name) == CallKind::Launch)
            })
            .collect();
        // What launches nothing, going by its name, is a candidate only among its like.
        if of_number.iter().any(|(_, launches)| *launches) {
            of_number.retain(|(_, launches)| *launches);
        }
        let mut calls: Vec<Call> = of_number.into_iter().map(|(call, _)| call).collect();
        calls.sort_by_key(|call| (call.start, call.process));
        found.push(Group { calls, rows: same.iter().map(|&(_, _, row)| row).collect() });
    }
    found
}

/// A stream is not one process's when it has more single activities of a number than that process made calls, while another
/// process's call would go without.
fn refute(trace: &Trace, groups: &[Group], lanes: &mut Lanes) {
    let mut counts: HashMap<LaneId, usize, FixedState> = HashMap::default();
    for group in groups {
        counts.clear();
        for &row in &group.rows {
            *counts.entry(trace.activities.lane[row as usize]).or_default() += 1;
        }
        for (&lane, &count) in &counts {
            if let Lane::Of(process) = lanes[lane.index()] {
                let own = || group.calls.iter().filter(|call| call.process == process);
                if own().next().is_some() && own().all(|call| call.kind != Kind::Graph) && count > own().count() {
                    lanes[lane.index()] = Lane::Shared;
                }
            }
        }
    }
}

/// Streams of which nothing is known are taken to be the process's that nearly all choices speak for.
fn learn(votes: &HashMap<(LaneId, ProcessId), u64, FixedState>, lanes: &mut Lanes) {
    let mut sums: HashMap<LaneId, u64, FixedState> = HashMap::default();
    for (&(lane, _), &count) in votes {
        *sums.entry(lane).or_default() += count;
    }
    for (&(lane, process), &count) in votes {
        if lanes[lane.index()] == Lane::Unknown && sums.get(&lane).is_some_and(|sum| count * 4 >= sum * 3) {
            lanes[lane.index()] = Lane::Of(process);
        }
    }
}

impl Lane {
    fn note(&mut self, process: ProcessId) {
        *self = match *self {
            Self::Unknown => Self::Of(process),
            Self::Of(known) if known == process => Self::Of(known),
            Self::Of(_) | Self::Shared => Self::Shared,
        };
    }
}

impl Kind {
    fn of_call(name: &str) -> Self {
        if name.contains("GraphLaunch") {
            Self::Graph
        } else if name.contains("Memcpy") {
            Self::Copy
        } else if name.contains("Memset") {
            Self::Fill
        } else {
            Self::Kernel
        }
    }

    fn of_activity(trace: &Trace, row: u32) -> Self {
        match trace.activities.kind[row as usize] {
            _ if trace.activities.graph_node(row as usize).is_some() => Self::Graph,
            ActivityKind::Memcpy => Self::Copy,
            ActivityKind::Memset => Self::Fill,
            ActivityKind::Kernel | ActivityKind::Other => Self::Kernel,
        }
    }
}

impl Group {
    /// The process of each activity.
    fn choose(&self, trace: &Trace, lanes: &Lanes) -> Vec<Choice> {
        let activities = &trace.activities;
        let mut taken = vec![false; self.calls.len()];
        let mut chosen: Vec<Choice> = Vec::with_capacity(self.rows.len());
        let mut left = Vec::new();
        // Calls of each process that are not taken yet, last first; and the process of each external id, if it is one.
        let mut own: HashMap<ProcessId, Vec<usize>, FixedState> = HashMap::default();
        let mut with_id: HashMap<u64, Option<ProcessId>, FixedState> = HashMap::default();
        for (at, call) in self.calls.iter().enumerate().rev() {
            own.entry(call.process).or_default().push(at);
            if let Some(id) = call.external_id {
                let process = with_id.entry(id).or_insert(Some(call.process));
                *process = process.filter(|&process| process == call.process);
            }
        }
        for &row in &self.rows {
            let of_lane = match lanes[activities.lane[row as usize].index()] {
                Lane::Of(process) if own.contains_key(&process) => Some(process),
                _ => None,
            };
            let by_id = || activities.external_id(row as usize).and_then(|id| *with_id.get(&id)?);
            if let Some(process) = of_lane.or_else(by_id) {
                if let Some(call) = own.get_mut(&process).and_then(Vec::pop) {
                    taken[call] = true;
                }
                chosen.push((row, process, false));
            } else {
                left.push(row);
            }
        }
        let start = |row: u32| activities.start[row as usize];
        // Nodes of graphs belong to graph launches, however many there are.
        let graphs: Vec<Call> = self.calls.iter().filter(|call| call.kind == Kind::Graph).copied().collect();
        let (nodes, mut single): (Vec<u32>, Vec<u32>) =
            left.into_iter().partition(|&row| !graphs.is_empty() && Kind::of_activity(trace, row) == Kind::Graph);
        let last_resort = if graphs.is_empty() { &self.calls } else { &graphs };
        chosen.extend(nodes.into_iter().filter_map(|row| Some((row, latest(last_resort, start(row))?, true))));
        // All others in order of time: among their like and no later than they are, then among their like, then among all.
        for kinds in [Some(Kind::Kernel), Some(Kind::Copy), Some(Kind::Fill), None] {
            for in_time in [true, false] {
                let fits = |kind: Kind| kinds.is_none_or(|wanted| wanted == kind);
                let free: Vec<usize> = (0..taken.len())
                    .filter(|&call| !taken[call] && self.calls[call].kind != Kind::Graph && fits(self.calls[call].kind))
                    .collect();
                let rows: Vec<u32> = single.iter().copied().filter(|&row| fits(Kind::of_activity(trace, row))).collect();
                let call_starts: Vec<Ns> = free.iter().map(|&call| self.calls[call].start).collect();
                let row_starts: Vec<Ns> = rows.iter().map(|&row| start(row)).collect();
                for (row, call) in pairs(&row_starts, &call_starts, in_time) {
                    taken[free[call]] = true;
                    chosen.push((rows[row], self.calls[free[call]].process, true));
                }
                let done: hashbrown::HashSet<u32, FixedState> = chosen.iter().map(|choice| choice.0).collect();
                single.retain(|row| !done.contains(row));
            }
        }
        chosen.extend(single.into_iter().filter_map(|row| Some((row, latest(last_resort, start(row))?, true))));
        chosen
    }
}

/// The process of the last call to start at or before a time, failing that of the first.
fn latest(calls: &[Call], time: Ns) -> Option<ProcessId> {
    let started = calls.partition_point(|call| call.start <= time);
    calls.get(started.saturating_sub(1)).map(|call| call.process)
}

/// Pairs (activity, call) in order of time, given when each starts. With `in_time`, no call is later than its activity.
fn pairs(activities: &[Ns], calls: &[Ns], in_time: bool) -> Vec<(usize, usize)> {
    let fits = |activity: usize, call: usize| !in_time || calls[call] <= activities[activity];
    let mut found = Vec::new();
    if activities.len() >= calls.len() {
        // Each call has the first activity that is left and not too early.
        let mut next = 0;
        for call in 0..calls.len() {
            while next < activities.len() && !fits(next, call) {
                next += 1;
            }
            if next == activities.len() {
                break;
            }
            found.push((next, call));
            next += 1;
        }
    } else {
        // Some call's activity is missing: each activity has the last call that is left and not too late.
        let mut left = calls.len();
        for activity in (0..activities.len()).rev() {
            while left > 0 && !fits(activity, left - 1) {
                left -= 1;
            }
            if left == 0 {
                break;
            }
            left -= 1;
            found.push((activity, left));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::pairs;
    use longpole_trace::Ns;

    #[test]
    fn activities_and_calls_pair_up_in_order_of_time() {
        let paired = |activities: &[i64], calls: &[i64], in_time| {
            let times = |times: &[i64]| times.iter().map(|&time| Ns(time)).collect::<Vec<_>>();
            pairs(&times(activities), &times(calls), in_time)
        };
        assert_eq!(paired(&[30, 37], &[10, 17], true), [(0, 0), (1, 1)]);
        assert_eq!(paired(&[1030], &[10, 1010], true), [(0, 1)], "the first one's activity is missing");
        assert_eq!(paired(&[30, 35, 1030], &[10, 1010], true), [(0, 0), (2, 1)]);
        assert_eq!(paired(&[5], &[10, 20], true), []);
        assert_eq!(paired(&[5], &[10], false), [(0, 0)]);
    }
}
