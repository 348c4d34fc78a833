//! Each collective split over its ranks: start-up skew, waiting for the last rank, transfer.

use longpole_trace::{Interval, Ns};

use super::calls::Call;
use super::matching::Matched;
use super::types::{CollectiveEntry, MatchedBy, MatchedCollective};

/// Ends of one collective may differ by this and half of the shorter kernel after correction of the clocks; more, and it is no single collective,
/// or the clocks are not what they seem.
const ENDS_APART_NS: i64 = 50_000;

/// One collective, split.
#[derive(Debug)]
pub(super) struct Split {
    /// Its group is not known here: 0.
    pub(super) collective: MatchedCollective,
    pub(super) entries: Vec<CollectiveEntry>,
    /// (member, call) of each entry.
    pub(super) calls: Vec<(u32, u32)>,
    /// From the second last to the last entry.
    pub(super) delay: Ns,
}

impl Split {
    /// Waiting summed over ranks.
    pub(super) fn waiting(&self) -> Ns {
        self.entries.iter().map(|entry| entry.waiting_ns).sum()
    }

    /// The longest waiting of a rank.
    pub(super) fn longest_wait(&self) -> Ns {
        self.entries.iter().map(|entry| entry.waiting_ns).max().unwrap_or(Ns::ZERO)
    }

    /// Transfer summed over ranks.
    pub(super) fn transfer(&self) -> Ns {
        self.entries.iter().map(|entry| entry.transfer_ns).sum()
    }

    /// When each rank waited, on its own clock.
    pub(super) fn waits<'s>(&'s self, corrections: &'s [Ns]) -> impl Iterator<Item = (usize, Interval)> + 's {
        self.entries.iter().map(|entry| (entry.rank, Interval::new(entry.start + corrections[entry.rank], entry.waiting_ns)))
    }
}

fn is_one(by: MatchedBy, calls: &[(usize, &Call)], corrections: &[Ns]) -> bool {
    if calls.iter().any(|(_, call)| !call.kind.ends_together()) {
        return by != MatchedBy::Order;
    }
    let ends = || calls.iter().map(|&(rank, call)| call.end - corrections[rank]);
    let shortest = calls.iter().map(|(_, call)| call.end - call.start).min().unwrap_or(Ns::ZERO);
    match (ends().min(), ends().max()) {
        (Some(first), Some(last)) => (last - first).get() <= ENDS_APART_NS.saturating_add(shortest.get() / 2),
        _ => false,
    }
}

/// Splits the collectives of a group. `corrections` are what is subtracted from each rank's times.
pub(super) fn split(group: &Matched, corrections: &[Ns]) -> Vec<Split> {
    let splits = group.collectives.iter().enumerate().map(|(at, entries)| {
        let calls: Vec<(usize, &Call)> = entries.iter().map(|&entry| group.call(entry)).collect();
        let started = |&(rank, call): &(usize, &Call)| call.start - corrections[rank];
        let mut starts: Vec<(Ns, usize)> = calls.iter().map(|call| (started(call), call.0)).collect();
        // Of equal starts the first rank counts as the last to enter.
        starts.sort_by_key(|&(start, rank)| (start, std::cmp::Reverse(rank)));
        let (last_start, last_rank) = starts.last().copied().unwrap_or_default();
        let second = starts.len().checked_sub(2).map_or(last_start, |second| starts[second].0);
        let is_split = is_one(group.by, &calls, corrections);
        let mut parts: Vec<(CollectiveEntry, (u32, u32))> = calls
            .iter()
            .zip(entries)
            .map(|(call, &entry)| {
                let (start, dur) = (started(call), call.1.end - call.1.start);
                let waiting_ns = (last_start - start).max(Ns::ZERO).min(dur);
                (CollectiveEntry { rank: call.0, activity: call.1.activity, start, waiting_ns, transfer_ns: dur - waiting_ns }, entry)
            })
            .collect();
        parts.sort_by_key(|(entry, _)| entry.rank);
        let (entries, ids): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
        let first = group.call(ids[0]).1;
        let collective = MatchedCollective {
            group: 0,
            kind: first.kind,
            bytes: first.bytes,
            first_start: starts.first().map_or(Ns::ZERO, |first| first.0),
            last_start,
            last_rank,
            is_start_up: at == 0,
            is_split,
            entries: 0..0,
        };
        Split { collective, entries, calls: ids, delay: last_start - second }
    });
    splits.collect()
}
