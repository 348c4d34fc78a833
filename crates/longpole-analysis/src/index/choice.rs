//! Which of the calls that share a correlation number launched an activity.

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use longpole_trace::{Ns, ProcessId, Trace};

use super::join::KeyMap;
use super::processes::Processes;

/// Calls of one number are looked at one by one up to this many; more are sorted once. A recording of a few processes has a few,
/// a producer that leaves the number at zero has one key for all its calls.
const WALKED: usize = 4;

/// Chooses calls for activities, one after the other.
pub(super) struct Chooser<'a> {
    trace: &'a Trace,
    by_correlation: &'a KeyMap,
    processes: Processes,
    /// Numbers with many calls, by the last of them and the process in question.
    sorted: HashMap<(u32, Option<ProcessId>), Sorted, FixedState>,
}

/// The calls of one number.
struct Sorted {
    /// By start, then row.
    all: Vec<(Ns, u32)>,
    /// Those with an external id, by that id first.
    with_id: Vec<(u64, Ns, u32)>,
}

impl<'a> Chooser<'a> {
    /// `lane_ranks` are the ranks of the trace's streams.
    pub(super) fn new(trace: &'a Trace, by_correlation: &'a KeyMap, lane_ranks: &[u32]) -> Self {
        let processes = Processes::work_out(trace, by_correlation, lane_ranks);
        Self { trace, by_correlation, processes, sorted: HashMap::default() }
    }

    /// Activities whose number calls of several processes share, and for which nothing but the order of time spoke.
    pub(super) fn chosen_by_time(&self) -> u64 {
        self.processes.by_time
    }

    /// The call of this rank and correlation number that launched activity `row`.
    pub(super) fn choose(&mut self, rank: u32, key: u64, row: usize) -> Option<u32> {
        let (trace, by_correlation) = (self.trace, self.by_correlation);
        let last = by_correlation.last(rank, key)?;
        if by_correlation.before(last).is_none() {
            return Some(last);
        }
        let process = self.processes.of(row);
        let (external_id, start) = (trace.activities.external_id(row), trace.activities.start[row]);
        let is_candidate =
            |call: &u32| process.is_none_or(|process| trace.threads[trace.api_calls.thread[*call as usize].index()].process == process);
        let chain = || std::iter::successors(Some(last), |&call| by_correlation.before(call));
        if chain().nth(WALKED).is_some() {
            let sorted = self.sorted.entry((last, process)).or_insert_with(|| Sorted::new(trace, chain().filter(is_candidate)));
            return sorted.choose(external_id, start);
        }
        chain().filter(is_candidate).max_by_key(|&call| {
            let (call, calls) = (call as usize, &trace.api_calls);
            let same_operator = external_id.is_some() && calls.external_id(call) == external_id;
            let ahead = calls.start[call] - start;
            (same_operator, ahead <= Ns::ZERO, if ahead <= Ns::ZERO { ahead } else { Ns::ZERO - ahead })
        })
    }
}

impl Sorted {
    fn new(trace: &Trace, chain: impl Iterator<Item = u32>) -> Self {
        let calls = &trace.api_calls;
        let mut all: Vec<(Ns, u32)> = chain.map(|call| (calls.start[call as usize], call)).collect();
        all.sort_unstable();
        let mut with_id: Vec<(u64, Ns, u32)> =
            all.iter().filter_map(|&(start, call)| Some((calls.external_id(call as usize)?, start, call))).collect();
        with_id.sort_unstable();
        Self { all, with_id }
    }

    fn choose(&self, external_id: Option<u64>, start: Ns) -> Option<u32> {
        let of_operator = external_id.map_or(&[][..], |id| {
            let from = self.with_id.partition_point(|&(other, ..)| other < id);
            let len = self.with_id[from..].partition_point(|&(other, ..)| other == id);
            &self.with_id[from..from + len]
        });
        if of_operator.is_empty() {
            last_until(&self.all, start, |&call| call)
        } else {
            last_until(of_operator, start, |&(_, at, call)| (at, call))
        }
    }
}

/// The last call to start at or before a time, failing that the first of all; of calls that start together the first.
fn last_until<T>(calls: &[T], time: Ns, read: impl Fn(&T) -> (Ns, u32)) -> Option<u32> {
    let started = calls.partition_point(|call| read(call).0 <= time);
    let start = read(calls.get(started.saturating_sub(1))?).0;
    let first = calls.partition_point(|call| read(call).0 < start);
    calls.get(first).map(|call| read(call).1)
}
