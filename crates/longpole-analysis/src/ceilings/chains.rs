//! What fusing neighbours can win: kernels that follow each other on a stream and could be one.

use longpole_trace::{ActivityId, ActivityKind, Interval, Ns, Trace};

use crate::families::{Family, FamilyOfName};
use crate::roofline::{CallWorks, Peaks, UnknownWork, Work};
use crate::turns::Turns;

/// Families that compilers fuse into their neighbours: a product of matrices, attention, a sort or a gather starts a kernel of its own.
pub(crate) const fn is_fusable(family: Family) -> bool {
    matches!(family, Family::Elementwise | Family::CopyCast | Family::Norm | Family::Reduction)
}

/// Which activities are kernels that can be fused, by row.
pub(crate) fn fusable(trace: &Trace) -> Vec<bool> {
    let mut families = FamilyOfName::new(trace);
    let activities = &trace.activities;
    (0..activities.len()).map(|row| activities.kind[row] == ActivityKind::Kernel && is_fusable(families.get(trace, row))).collect()
}

/// Runs of at least two fusable activities that follow each other on one stream, as ranges of positions in `order`.
pub(crate) fn runs<'a>(
    trace: &'a Trace,
    order: &'a [ActivityId],
    is_fusable: impl Fn(ActivityId) -> bool + 'a,
) -> impl Iterator<Item = std::ops::Range<usize>> + 'a {
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < order.len() {
            let first = at;
            at += 1;
            if !is_fusable(order[first]) {
                continue;
            }
            let lane = trace.activities.lane[order[first].index()];
            while at < order.len() && is_fusable(order[at]) && trace.activities.lane[order[at].index()] == lane {
                at += 1;
            }
            if at - first > 1 {
                return Some(first..at);
            }
        }
        None
    })
}

/// Bytes of a chain: what its calls move now, and the least that one kernel in their place moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ChainBytes {
    pub(super) now: u64,
    pub(super) fused: u64,
}

/// Why the bytes of a run are not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoBytes {
    /// The device is not in the table of peaks.
    NoPeaks,
    /// No operator owns one of the kernels.
    NoOperator,
    /// The work of a call is not known.
    Call(UnknownWork),
    /// The first or the last call has kernels outside the run.
    PartOfCall,
    /// What the first or the last call reads cannot be told from what it writes.
    NotSplit,
}

impl NoBytes {
    /// To stand after `since`.
    pub(super) const fn reason(self) -> &'static str {
        match self {
            Self::NoPeaks => "the peaks of the device are not known",
            Self::NoOperator | Self::Call(UnknownWork::NoOperator) => "no operator is known for one of them",
            Self::Call(UnknownWork::NoFormula) => "there is no formula for the operator of one of them",
            Self::Call(UnknownWork::NoShapes) => "the shapes of one of them are not recorded",
            Self::Call(UnknownWork::CountedInside) => "the work of one of them is counted with an operator inside its own",
            Self::Call(_) => "what is recorded of one of them does not say its bytes",
            Self::PartOfCall => "the operator of the first or the last one launched more than these",
            Self::NotSplit => "what the first reads or the last writes is not known apart",
        }
    }
}

/// The bytes of a run, if those of all its calls are known. One kernel in their place reads at least what the first call reads and writes at
/// least what the last one writes, if all kernels of these two are in the run.
pub(super) fn bytes(trace: &Trace, run: &[ActivityId], works: &CallWorks) -> Result<ChainBytes, NoBytes> {
    let call = |id: &ActivityId| works.call_of(*id).ok_or(NoBytes::NoOperator);
    let known = |call: u32| works.call(call).ok_or(NoBytes::NoOperator);
    let work = |call: u32| known(call)?.work.map_err(NoBytes::Call);
    let mut now = 0_u64;
    let mut latest = None;
    for id in run {
        let call = call(id)?;
        // A call that launches several kernels in a row moves its bytes once.
        if latest.replace(call) != Some(call) {
            now = now.saturating_add(work(call)?.bytes);
        }
    }
    let whole = |id: Option<&ActivityId>| {
        let edge = call(id.ok_or(NoBytes::NoOperator)?)?;
        let own = run.iter().filter(|id| call(id) == Ok(edge)).map(|id| trace.activities.dur[id.index()].max(Ns::ZERO)).sum::<Ns>();
        if own == known(edge)?.device_ns { work(edge) } else { Err(NoBytes::PartOfCall) }
    };
    let (first, last) = (whole(run.first())?, whole(run.last())?);
    let written = |work: Work| work.bytes_written.ok_or(NoBytes::NotSplit);
    let fused = (first.bytes - written(first)?.min(first.bytes)).saturating_add(written(last)?);
    Ok(ChainBytes { now, fused: fused.min(now) })
}

/// The least time of one kernel in place of a run: that of the run's shortest kernel, and that of its bytes. What a kernel waits behind the
/// one ahead is not counted, and what the first may move meanwhile the one in its place may move too.
pub(super) fn least_time(trace: &Trace, turns: &Turns, run: &[ActivityId], bytes: Option<ChainBytes>, peaks: Option<&Peaks>) -> Ns {
    let shortest = run.iter().map(|id| turns.of_row(trace, id.index()).len()).min().unwrap_or_default();
    let early = run.first().map_or(Ns::ZERO, |id| turns.of_row(trace, id.index()).start - trace.activities.start[id.index()]);
    let moving = bytes.zip(peaks).filter(|(_, peaks)| peaks.memory_bytes_per_s > 0).map(|(bytes, peaks)| {
        let ns = u128::from(bytes.fused) * 1_000_000_000 / u128::from(peaks.memory_bytes_per_s);
        Ns(i64::try_from(ns).unwrap_or(i64::MAX))
    });
    moving.map_or(shortest, |moving| (moving - early).max(shortest))
}

/// From the first start to the last end of a run.
pub(super) fn extent(trace: &Trace, run: &[ActivityId]) -> Interval {
    let start = run.iter().map(|id| trace.activities.start[id.index()]).min().unwrap_or_default();
    let end = run.iter().map(|id| trace.activities.end(id.index())).max().unwrap_or_default();
    Interval { start, end: end.max(start) }
}

/// All runs of some kernels, in or out of steps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AllRuns {
    /// Which activities are in a run, by row.
    pub(crate) is_member: Vec<bool>,
    /// How many runs there are.
    pub(crate) runs: u64,
    /// Of how many kernels.
    pub(crate) kernels: u64,
    /// The least time of what takes their place.
    pub(crate) least_ns: Ns,
}

/// Finds all runs of the kernels in a mask.
pub(crate) fn all_runs(trace: &Trace, turns: &Turns, is_chained: &[bool]) -> AllRuns {
    let activities = &trace.activities;
    let mut of_lane: Vec<Vec<ActivityId>> = vec![Vec::new(); trace.lanes.len()];
    for row in 0..activities.len() {
        of_lane[activities.lane[row].index()].push(ActivityId::from_index(row));
    }
    let mut found = AllRuns { is_member: vec![false; activities.len()], ..AllRuns::default() };
    for order in &mut of_lane {
        if !order.is_sorted_by_key(|id| activities.start[id.index()]) {
            order.sort_by_key(|id| activities.start[id.index()]);
        }
        for run in runs(trace, order, |id| is_chained[id.index()]) {
            found.runs += 1;
            found.kernels += run.len() as u64;
            found.least_ns += least_time(trace, turns, &order[run.clone()], None, None);
            for id in &order[run] {
                found.is_member[id.index()] = true;
            }
        }
    }
    found
}
