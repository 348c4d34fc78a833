//! From device activities to the calls that launched them and the operators that own them.

use longpole_trace::{ActivityId, ApiCallId, HostOpId, LaneId, Ns, Recorder, Trace};

use super::NONE;
use super::captures::{CallKind, Captures};
use super::choice::Chooser;
use super::join::{self, KeyMap};
use super::tree::{HostTree, NodeId};

/// Who a device activity belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The innermost operator around its launch, as a node of the host tree; failing that, the operator with its external id.
    Op(NodeId),
    /// Nobody: this call, outside any operator, launched it.
    LaunchedOutside(ApiCallId),
    /// Unknown: its launch is not in the trace.
    Unrecorded,
}

/// Whether a name is that of a function of CUDA or HIP.
fn is_function(name: &str) -> bool {
    ["cuda", "cu", "hip"]
        .iter()
        .any(|prefix| name.strip_prefix(prefix).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase())))
}

/// What did not fit when activities were linked to launches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounts {
    /// Activities with no launch in the trace.
    pub orphan_activities: u64,
    /// Launch calls with no activity, though nothing says that they were only captured. A call is a launch call if calls of its
    /// name have activities in this trace, or if its name says so.
    pub launches_without_activity: u64,
    /// Launch calls with no activity that were made while their thread captured a graph: they were noted down, not run.
    pub captured_launches: u64,
    /// Launch calls.
    pub launches: u64,
    /// Activities whose number calls of several processes share, and which only the order of time tells apart.
    pub chosen_by_time: u64,
    /// Activities that start before their launch.
    pub starts_before_launch: u64,
    /// By how much at most.
    pub largest_skew: Ns,
}

/// The links of every device activity.
///
/// An activity is joined to an API call by correlation number within its rank, never by the call's name; one call may have many
/// activities. Where calls of several processes share a number (ranks merged into one recording), the stream tells the process, else the
/// external id, else the order of time, by which each call has one activity before any has two. Where calls of one process share it, the
/// one with the activity's external id is taken; failing that the last to start at or before the activity; failing that the first.
#[derive(Debug)]
pub struct Links {
    call: Vec<u32>,
    /// Empty when there is no operator.
    owner: Vec<u32>,
    /// One bit an API call.
    launched: Vec<u64>,
    /// One bit an API call: launch calls, and those of them that were captured only.
    launches: Vec<u64>,
    captured: Vec<u64>,
    counts: LinkCounts,
}

impl Links {
    pub(super) fn build(trace: &Trace, tree: &HostTree<'_>, by_correlation: &KeyMap) -> Self {
        let count = trace.activities.len();
        let mut links = Self {
            call: Vec::with_capacity(count),
            owner: Vec::with_capacity(if trace.host_ops.is_empty() { 0 } else { count }),
            launched: vec![0; trace.api_calls.len().div_ceil(64)],
            launches: vec![0; trace.api_calls.len().div_ceil(64)],
            captured: vec![0; trace.api_calls.len().div_ceil(64)],
            counts: LinkCounts::default(),
        };
        let lane_ranks: Vec<u32> = (0..trace.lanes.len()).map(|lane| trace.lane_rank(LaneId::from_index(lane))).collect();
        let mut chooser = Chooser::new(trace, by_correlation, &lane_ranks);
        let mut by_external_id = None;
        // Activities of one graph launch mostly follow each other, so the owner of the last call is kept.
        let mut last = (NONE, None);
        for row in 0..count {
            let rank = lane_ranks[trace.activities.lane[row].index()];
            let call = trace.activities.correlation(row).and_then(|key| chooser.choose(rank, key, row));
            let mut owner = None;
            if let Some(call) = call {
                links.launched[call as usize / 64] |= 1 << (call % 64);
                let ahead = trace.api_calls.start[call as usize] - trace.activities.start[row];
                if ahead > Ns::ZERO {
                    links.counts.starts_before_launch += 1;
                    links.counts.largest_skew = links.counts.largest_skew.max(ahead);
                }
                if last.0 != call {
                    last = (call, tree.api_node(ApiCallId(call)).and_then(|node| tree.enclosing_op(node)));
                }
                owner = last.1;
            } else {
                links.counts.orphan_activities += 1;
            }
            if owner.is_none()
                && let Some(id) = trace.activities.external_id(row)
            {
                let ops = by_external_id.get_or_insert_with(|| join::operators(trace));
                owner = ops.last(rank, id).and_then(|op| tree.op_node(HostOpId(op))).and_then(|node| tree.enclosing_op(node));
            }
            links.call.push(call.unwrap_or(NONE));
            if !trace.host_ops.is_empty() {
                links.owner.push(owner.map_or(NONE, |node| node.0));
            }
        }
        links.counts.chosen_by_time = chooser.chosen_by_time();
        links.count_launches(trace);
        links
    }

    fn count_launches(&mut self, trace: &Trace) {
        let calls = &trace.api_calls;
        let mut kinds = vec![None; trace.strings.len()];
        for call in self.launched_calls() {
            kinds[calls.name[call].index()] = Some(CallKind::Launch);
        }
        let (mut captures, mut without_activity) = (Captures::new(&trace.captures), Vec::new());
        // XLA gives a launch the name of what it launches. Where none of that is in the trace, the call with a number is all that is left of it.
        let has_launches_by_number = trace.recorder == Recorder::Xla && trace.activities.is_empty();
        for (call, &name) in calls.name.iter().enumerate() {
            let by_name = *kinds[name.index()].get_or_insert_with(|| CallKind::of(trace.strings.get(name)));
            let is_by_number = has_launches_by_number && calls.correlation(call).is_some() && !is_function(trace.strings.get(name));
            match if is_by_number { CallKind::Launch } else { by_name } {
                CallKind::Launch => {
                    self.counts.launches += 1;
                    self.launches[call / 64] |= 1 << (call % 64);
                    if !self.has_activity(ApiCallId::from_index(call)) {
                        without_activity.push(call);
                    }
                }
                CallKind::BeginsCapture => captures.note(calls.thread[call], calls.start[call], true),
                CallKind::EndsCapture => captures.note(calls.thread[call], calls.start[call], false),
                CallKind::Other => {}
            }
        }
        captures.sort();
        for &call in &without_activity {
            if captures.include(calls.thread[call], calls.start[call], calls.start[call] + calls.dur[call].max(Ns::ZERO)) {
                self.captured[call / 64] |= 1 << (call % 64);
                self.counts.captured_launches += 1;
            }
        }
        self.counts.launches_without_activity = without_activity.len() as u64 - self.counts.captured_launches;
    }

    fn launched_calls(&self) -> impl Iterator<Item = usize> {
        self.launched
            .iter()
            .enumerate()
            .flat_map(|(word, &bits)| (0..64).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| word * 64 + bit))
    }

    /// The API call that launched an activity, if it is in the trace.
    pub fn call(&self, activity: ActivityId) -> Option<ApiCallId> {
        Some(self.call[activity.index()]).filter(|&call| call != NONE).map(ApiCallId)
    }

    fn owner_of(&self, activity: ActivityId) -> u32 {
        if self.owner.is_empty() { NONE } else { self.owner[activity.index()] }
    }

    /// Who an activity belongs to.
    pub fn owner(&self, activity: ActivityId) -> Owner {
        match (self.owner_of(activity), self.call[activity.index()]) {
            (NONE, NONE) => Owner::Unrecorded,
            (NONE, call) => Owner::LaunchedOutside(ApiCallId(call)),
            (node, _) => Owner::Op(NodeId(node)),
        }
    }

    /// The operator that an activity belongs to, as a node of the host tree.
    pub fn owner_node(&self, activity: ActivityId) -> Option<NodeId> {
        Some(self.owner_of(activity)).filter(|&node| node != NONE).map(NodeId)
    }

    /// Whether an API call launched any recorded activity.
    pub fn has_activity(&self, call: ApiCallId) -> bool {
        self.launched[call.index() / 64] >> (call.index() % 64) & 1 == 1
    }

    /// Whether an API call is one of [`LinkCounts::launches`].
    pub fn is_launch(&self, call: ApiCallId) -> bool {
        self.launches[call.index() / 64] >> (call.index() % 64) & 1 == 1
    }

    /// Whether an API call is one of [`LinkCounts::captured_launches`].
    pub fn is_captured(&self, call: ApiCallId) -> bool {
        self.captured[call.index() / 64] >> (call.index() % 64) & 1 == 1
    }

    /// What did not fit.
    pub fn counts(&self) -> LinkCounts {
        self.counts
    }
}
