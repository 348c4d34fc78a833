//! Results of the comparison of ranks. Ranks are positions in [`longpole_trace::Trace::ranks`]; every time is on the trace's own axis, moved
//! by the clock correction of its rank where one is stated.

use std::ops::Range;

use longpole_trace::{ActivityId, Ns};

use super::kind::CollectiveKind;

/// What the ranks of a run did, how they waited for each other, and who was late.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RankReport {
    /// The ranks of the scope, by number.
    pub ranks: Vec<RankRow>,
    /// The clock of each rank of the scope, in the same order.
    pub clocks: Vec<RankClock>,
    /// Communicators that at least two of the ranks were seen in, by time lost in them.
    pub groups: Vec<CollectiveGroup>,
    /// Collectives found on at least two ranks, group after group, each group's in order.
    pub collectives: Vec<MatchedCollective>,
    /// The part of each rank in each collective; [`MatchedCollective::entries`] are ranges of it.
    pub entries: Vec<CollectiveEntry>,
    /// The first collective of each group and who came late to it, by time waited.
    pub start_ups: Vec<StartUp>,
    /// Ranks that came last to later collectives, by the waiting they caused.
    pub stragglers: Vec<Straggler>,
    /// The first of `stragglers` when it stands out: it caused at least half of all waiting, or twice its fair share.
    pub has_straggler: bool,
    /// True when only one rank was given though it communicates: the time of its collectives includes waiting that cannot be told.
    pub includes_waiting: bool,
}

/// One rank. Device times are sums over its devices; absent when it has no device activity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankRow {
    /// Position in the trace.
    pub rank: usize,
    /// Its number.
    pub number: u32,
    /// The file it came from.
    pub label: String,
    /// First start to last end of device activity.
    pub span_ns: Option<Ns>,
    /// Union of device activity.
    pub busy_ns: Option<Ns>,
    /// Union of kernels that do not communicate.
    pub compute_ns: Option<Ns>,
    /// Union of communication kernels.
    pub communication_ns: Option<Ns>,
    /// Communication with no other kernel beside it.
    pub exposed_communication_ns: Option<Ns>,
    /// Union of copies and fills.
    pub copy_ns: Option<Ns>,
    /// Copies and fills with no kernel beside them.
    pub exposed_copy_ns: Option<Ns>,
    /// Span less busy: compute + exposed communication + exposed copies + idle = span.
    pub idle_ns: Option<Ns>,
    /// Communication kernels.
    pub collectives: u64,
    /// Those that were found on another rank and split; the next three add up to their time.
    pub split: u64,
    /// Time in first collectives before the last rank entered; absent when nothing was split.
    pub start_up_ns: Option<Ns>,
    /// Time in later collectives before the last rank entered.
    pub waiting_ns: Option<Ns>,
    /// Time in collectives after the last rank entered.
    pub transfer_ns: Option<Ns>,
    /// Time of collectives that were not split: found on this rank only, or not seen to end together.
    pub not_split_ns: Ns,
    /// Part of start-up and waiting with no other kernel beside it.
    pub exposed_waiting_ns: Option<Ns>,
    /// Later collectives that this rank entered last while another waited over [`super::WORTH_NS`].
    pub times_last: u64,
    /// Waiting of the other ranks in later collectives that this rank entered last, summed over them.
    pub waiting_caused_ns: Ns,
}

/// The clock of a rank against the first rank that it shares collectives with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankClock {
    /// Position in the trace.
    pub rank: usize,
    /// The rank whose clock is taken as right; itself for that one, absent when no shared collectives tell.
    pub reference: Option<usize>,
    /// How far this clock is ahead: the median difference of the ends of shared collectives.
    pub ahead_ns: Option<Ns>,
    /// Median distance of those differences from their median: how sure it is.
    pub spread_ns: Option<Ns>,
    /// The same median over the later half less that of the earlier half: the clocks drift by so much between the halves.
    pub drift_ns: Option<Ns>,
    /// Shared collectives used.
    pub samples: u64,
    /// What was subtracted from the times of this rank: `ahead_ns` when it is too large for chance, else zero.
    pub correction_ns: Ns,
}

/// How the calls of a group were found to be the same collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MatchedBy {
    /// By the numbers that the recorder wrote.
    Sequence,
    /// By their kind and their common end.
    Time,
    /// By their order alone, since too few end together under any clock offset. Only those that do end together are split.
    Order,
}

impl MatchedBy {
    /// The name used in text and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sequence => "sequence",
            Self::Time => "time",
            Self::Order => "order",
        }
    }
}

/// A communicator: a process group, or, where none is named, ranks whose collectives were seen to belong together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectiveGroup {
    /// Name of the process group, if recorded.
    pub name: Option<String>,
    /// The pair, for point-to-point operations: source and destination as numbered in the group.
    pub peers: Option<(u32, u32)>,
    /// Ranks that were seen in it.
    pub members: Vec<usize>,
    /// Ranks it has, if recorded. With more than were seen, the last to enter may be missing: waiting is a lower bound, transfer an upper.
    pub size: Option<u32>,
    /// The weakest way that a member's calls were matched by.
    pub matched_by: MatchedBy,
    /// Its part of [`RankReport::collectives`].
    pub collectives: Range<usize>,
    /// Calls found on one rank only.
    pub unmatched: u64,
    /// Matched collectives that do not end together on all ranks, so that their time is not split.
    pub not_split: u64,
    /// Waiting in its first collective, summed over ranks.
    pub start_up_ns: Ns,
    /// Waiting in later ones, summed over ranks.
    pub waiting_ns: Ns,
    /// Transfer, summed over ranks.
    pub transfer_ns: Ns,
    /// The same by kind of collective and size, by time.
    pub kinds: Vec<CollectiveKindRow>,
}

/// The collectives of a group of one kind and size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectiveKindRow {
    /// The kind.
    pub kind: CollectiveKind,
    /// Message bytes on a rank, the larger of what goes in and comes out; absent when not recorded.
    pub bytes: Option<u64>,
    /// How many.
    pub count: u64,
    /// Waiting in the first collective of the group, summed over ranks.
    pub start_up_ns: Ns,
    /// Waiting in later ones, summed over ranks.
    pub waiting_ns: Ns,
    /// Transfer, summed over ranks.
    pub transfer_ns: Ns,
    /// Median over collectives of the transfer of the last rank to enter: what one costs without waiting.
    pub median_transfer_ns: Option<Ns>,
}

/// One collective on all ranks that have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchedCollective {
    /// Its group, by position.
    pub group: usize,
    /// What it does.
    pub kind: CollectiveKind,
    /// Message bytes on the first of its ranks, the larger of what goes in and comes out.
    pub bytes: Option<u64>,
    /// When the first rank entered it.
    pub first_start: Ns,
    /// When the last rank entered it.
    pub last_start: Ns,
    /// The rank that entered last (of equals the first).
    pub last_rank: usize,
    /// True for the first of its group: its waiting is start-up.
    pub is_start_up: bool,
    /// False when its ends differ too much for one collective: it is in no sum.
    pub is_split: bool,
    /// The ranks' parts in [`RankReport::entries`].
    pub entries: Range<usize>,
}

/// The part of one rank in a collective: `waiting_ns + transfer_ns` is the duration of its kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CollectiveEntry {
    /// The rank.
    pub rank: usize,
    /// Its kernel.
    pub activity: ActivityId,
    /// When the kernel starts.
    pub start: Ns,
    /// From there to the start of the last rank's kernel, but not past its own end.
    pub waiting_ns: Ns,
    /// The rest.
    pub transfer_ns: Ns,
}

/// The first collective of a group in the recording: nothing before it brought the ranks together, so its waiting holds whatever they had not in
/// common until then (later start of a process or of its recording, lazy initialisation, first calls).
#[derive(Clone, Debug, PartialEq)]
pub struct StartUp {
    /// The group, by position.
    pub group: usize,
    /// The collective, by position.
    pub collective: usize,
    /// The rank that entered last.
    pub rank: usize,
    /// From the first to the last entry.
    pub skew_ns: Ns,
    /// Waiting of the other ranks, summed over them.
    pub waiting_ns: Ns,
    /// What the late rank spent longer on.
    pub causes: Vec<Cause>,
    /// What its host did for longer while the device idled; adds up to the idle part of `causes`.
    pub host: Vec<HostCause>,
}

/// A rank that came last.
#[derive(Clone, Debug, PartialEq)]
pub struct Straggler {
    /// The rank.
    pub rank: usize,
    /// Collectives after the first of their group that it entered last while another waited over [`super::WORTH_NS`].
    pub times_last: u64,
    /// Collectives after the first of their group that it took part in.
    pub collectives: u64,
    /// Waiting of the other ranks in all that it entered last, summed over them.
    pub waiting_caused_ns: Ns,
    /// Its part of all waiting.
    pub waiting_fraction: f64,
    /// From the second last to the last entry, summed: how much sooner its collectives had begun, had it come with the next rank.
    pub delay_ns: Ns,
    /// What it spent longer on between the collective before and the one it was late for. Their excesses add up to the waiting caused in the
    /// `explained` collectives.
    pub causes: Vec<Cause>,
    /// What its host did for longer while the device idled; adds up to the idle part of `causes`, less where launches were not recorded.
    pub host: Vec<HostCause>,
    /// Waiting caused in the collectives that `causes` are about. Less than all where a rank lacks the collective before.
    pub explained_ns: Ns,
}

/// What kind of time a rank spent more of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CauseKind {
    /// Device work of an operator.
    Operator,
    /// Device work that no operator owns.
    Kernel,
    /// Another collective, waiting in it included: the lateness came from somewhere else.
    Communication,
    /// The device had nothing to do: its host was late.
    Idle,
    /// Its recording began later (first collectives only).
    RecordingBegan,
    /// It left the collective before later than the others, or entered before leaving it.
    Unexplained,
}

impl CauseKind {
    /// The name used in text and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::Kernel => "kernel",
            Self::Communication => "communication",
            Self::Idle => "idle",
            Self::RecordingBegan => "recording_began",
            Self::Unexplained => "unexplained",
        }
    }
}

/// Time of one kind that a late rank spent in excess of the ranks that waited for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Cause {
    /// The kind.
    pub kind: CauseKind,
    /// Operator or kernel name; empty for the other kinds.
    pub name: String,
    /// For an operator, its kernel with the largest excess.
    pub kernel: Option<String>,
    /// Time of the late rank less time of another, summed over the others. Negative where the late rank spent less.
    pub excess_ns: Ns,
    /// Kernels of the late rank less those of another, summed over the others.
    pub excess_calls: i64,
    /// Excess over the waiting that is explained, if there is any.
    pub waiting_fraction: Option<f64>,
}

/// What the launching thread did while the device idled, in excess of the others: self time, so that nothing is counted twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostCause {
    /// Operator or API call, by self time; absent for time outside both (Python, or nothing recorded).
    pub name: Option<String>,
    /// Time of the late rank less time of another, summed over the others.
    pub excess_ns: Ns,
}
