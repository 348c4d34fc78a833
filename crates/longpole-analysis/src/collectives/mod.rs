//! Ranks against each other: what each computes, communicates and idles, how each collective's time splits into waiting and transfer, who comes
//! late, and why. `docs/ranks.md` has the definitions and their limits.
//!
//! The calls of each rank are sorted into communicators ([`calls`]), aligned over ranks ([`align`], [`matching`]), their clocks compared
//! ([`clocks`]), each collective split ([`split`]), and late ranks explained ([`causes`]). All of it is near-linear in events: alignment tries a
//! bounded number of shifts, and explanations stop at a bound on the work.

mod align;
mod calls;
mod causes;
mod clocks;
mod kind;
mod matching;
mod split;
#[cfg(test)]
mod tests;
mod types;
mod work;

use longpole_trace::{DeviceId, Interval, Ns};

use self::causes::{Excess, Explainer, Way};
use self::matching::Matched;
use self::split::Split;
use self::work::Work;
use crate::index::TraceIndex;
use crate::scope::Scope;
pub use kind::CollectiveKind;
pub use types::{
    Cause, CauseKind, CollectiveEntry, CollectiveGroup, CollectiveKindRow, HostCause, MatchedBy, MatchedCollective, RankClock, RankReport,
    RankRow, StartUp, Straggler,
};

/// A rank comes late only when another waits longer than this; below, the order of entries is chance.
pub const WORTH_NS: Ns = Ns(5_000);

/// A group with its collectives split.
struct SplitGroup {
    matched: Matched,
    splits: Vec<Split>,
}

impl SplitGroup {
    /// The collectives whose time is split.
    fn split(&self) -> impl Iterator<Item = &Split> {
        self.splits.iter().filter(|split| split.collective.is_split)
    }

    fn lost(&self) -> Ns {
        self.split().map(Split::waiting).sum()
    }
}

/// Compares the ranks of a scope.
pub fn rank_report(index: &TraceIndex<'_>, scope: &Scope) -> RankReport {
    let trace = index.trace();
    let mut ranks = scope.ranks(trace);
    ranks.sort_by_key(|&rank| trace.ranks[rank].rank);
    let (matched, comparisons) = matching::matched(calls::named_groups(index, scope));
    let clocks = clocks::clocks(&ranks, trace.ranks.len(), comparisons);
    let mut corrections = vec![Ns::ZERO; trace.ranks.len()];
    for clock in &clocks {
        corrections[clock.rank] = clock.correction_ns;
    }
    let mut groups: Vec<SplitGroup> =
        matched.into_iter().map(|matched| SplitGroup { splits: split::split(&matched, &corrections), matched }).collect();
    groups.sort_by_key(|group| (std::cmp::Reverse(group.lost()), group.matched.key, group.matched.members[0].rank));

    let work = Work::new(index, scope);
    let mut report = RankReport { clocks, ..RankReport::default() };
    report.ranks = rank_rows(index, &ranks, &work, &groups, &corrections);
    report.includes_waiting = report.ranks.len() == 1 && report.ranks[0].collectives > 0;
    let mut explainer = Explainer::new(index, &work);
    report.start_ups = start_ups(index, &groups, &corrections, &mut explainer);
    report.stragglers = stragglers(index, &groups, &corrections, &mut explainer);
    let share = 0.5_f64.min(2.0 / ranks.len().max(1) as f64);
    report.has_straggler = report.stragglers.first().is_some_and(|first| first.times_last > 0 && first.waiting_fraction >= share);
    for (at, group) in groups.into_iter().enumerate() {
        flatten(index, at, group, &mut report);
    }
    report
}

fn rank_rows(index: &TraceIndex<'_>, ranks: &[usize], work: &Work, groups: &[SplitGroup], corrections: &[Ns]) -> Vec<RankRow> {
    let trace = index.trace();
    let mut waits: Vec<Vec<Interval>> = vec![Vec::new(); trace.ranks.len()];
    let mut devices: Vec<Option<DeviceId>> = vec![None; trace.ranks.len()];
    let mut rows: Vec<Option<RankRow>> = vec![None; trace.ranks.len()];
    for &rank in ranks {
        let info = &trace.ranks[rank];
        rows[rank] = Some(RankRow {
            rank,
            number: info.rank,
            label: info.label.clone(),
            span_ns: None,
            busy_ns: None,
            compute_ns: None,
            communication_ns: None,
            exposed_communication_ns: None,
            copy_ns: None,
            exposed_copy_ns: None,
            idle_ns: None,
            collectives: 0,
            split: 0,
            start_up_ns: None,
            waiting_ns: None,
            transfer_ns: None,
            not_split_ns: Ns::ZERO,
            exposed_waiting_ns: None,
            times_last: 0,
            waiting_caused_ns: Ns::ZERO,
        });
    }
    for split in groups.iter().flat_map(SplitGroup::split) {
        let collective = &split.collective;
        for entry in &split.entries {
            let lane = trace.activities.lane[entry.activity.index()];
            devices[entry.rank] = Some(trace.lanes[lane.index()].device);
            let Some(row) = &mut rows[entry.rank] else { continue };
            row.split += 1;
            let [start_up, waiting, transfer] =
                [&mut row.start_up_ns, &mut row.waiting_ns, &mut row.transfer_ns].map(|time| time.get_or_insert(Ns::ZERO));
            *(if collective.is_start_up { start_up } else { waiting }) += entry.waiting_ns;
            *transfer += entry.transfer_ns;
        }
        for (rank, wait) in split.waits(corrections) {
            waits[rank].push(wait);
        }
        if !collective.is_start_up
            && let Some(row) = &mut rows[collective.last_rank]
        {
            row.times_last += u64::from(split.longest_wait() > WORTH_NS);
            row.waiting_caused_ns += split.waiting();
        }
    }
    let mut rows: Vec<RankRow> = ranks.iter().filter_map(|&rank| rows[rank].take()).collect();
    for row in &mut rows {
        work.totals(row, &waits[row.rank], devices[row.rank]);
        let split: Ns = [row.start_up_ns, row.waiting_ns, row.transfer_ns].into_iter().flatten().sum();
        row.not_split_ns = work.communication_sum(row.rank) - split;
    }
    rows
}

/// The ways of the ranks to a collective. Absent when one of them lacks the collective before.
fn ways<'g>(group: &'g SplitGroup, at: usize, corrections: &[Ns]) -> Option<(Vec<Way<'g>>, usize)> {
    let split = &group.splits[at];
    let before = at.checked_sub(1).map(|before| &group.splits[before]);
    let ways: Option<Vec<Way<'g>>> = split
        .entries
        .iter()
        .zip(&split.calls)
        .map(|(entry, &call)| {
            let before = match before {
                Some(before) => {
                    let of_rank = before.entries.binary_search_by_key(&entry.rank, |entry| entry.rank).ok()?;
                    Some(group.matched.call(before.calls[of_rank]).1)
                }
                None => None,
            };
            let (rank, call) = group.matched.call(call);
            Some(Way { rank, call, before, correction: corrections[rank], waiting: entry.waiting_ns })
        })
        .collect();
    let ways = ways?;
    let late = ways.iter().position(|way| way.rank == split.collective.last_rank)?;
    Some((ways, late))
}

fn start_ups(index: &TraceIndex<'_>, groups: &[SplitGroup], corrections: &[Ns], explainer: &mut Explainer<'_, '_>) -> Vec<StartUp> {
    let trace = index.trace();
    let first = |group: usize| groups[group].splits.first().filter(|split| split.collective.is_split);
    let mut order: Vec<usize> = (0..groups.len()).filter(|&group| first(group).is_some()).collect();
    order.sort_by_key(|&group| (std::cmp::Reverse(first(group).map(Split::waiting)), group));
    let mut collective = 0;
    let firsts: Vec<usize> = groups
        .iter()
        .map(|group| {
            collective += group.splits.len();
            collective - group.splits.len()
        })
        .collect();
    let mut start_ups = Vec::new();
    for group in order {
        let Some(split) = first(group) else { continue };
        let mut excess = Excess::default();
        if split.longest_wait() > WORTH_NS
            && let Some((ways, late)) = ways(&groups[group], 0, corrections)
        {
            explainer.add(&ways, late, &mut excess);
        }
        start_ups.push(StartUp {
            group,
            collective: firsts[group],
            rank: split.collective.last_rank,
            skew_ns: split.collective.last_start - split.collective.first_start,
            waiting_ns: split.waiting(),
            causes: excess.causes(trace),
            host: excess.host_causes(trace),
        });
    }
    start_ups
}

#[derive(Default)]
struct Late {
    times_last: u64,
    collectives: u64,
    caused: Ns,
    delay: Ns,
    excess: Excess,
}

fn stragglers(index: &TraceIndex<'_>, groups: &[SplitGroup], corrections: &[Ns], explainer: &mut Explainer<'_, '_>) -> Vec<Straggler> {
    let trace = index.trace();
    let mut late: Vec<Late> = (0..trace.ranks.len()).map(|_| Late::default()).collect();
    let mut all = Ns::ZERO;
    for group in groups {
        for (at, split) in group.splits.iter().enumerate().filter(|(_, split)| split.collective.is_split && !split.collective.is_start_up) {
            for entry in &split.entries {
                late[entry.rank].collectives += 1;
            }
            let waiting = split.waiting();
            all += waiting;
            let last = &mut late[split.collective.last_rank];
            last.caused += waiting;
            last.delay += split.delay;
            if split.longest_wait() <= WORTH_NS {
                continue;
            }
            last.times_last += 1;
            if let Some((ways, position)) = ways(group, at, corrections) {
                explainer.add(&ways, position, &mut last.excess);
            }
        }
    }
    let mut stragglers: Vec<Straggler> = late
        .iter()
        .enumerate()
        .filter(|(_, late)| late.caused > Ns::ZERO)
        .map(|(rank, late)| Straggler {
            rank,
            times_last: late.times_last,
            collectives: late.collectives,
            waiting_caused_ns: late.caused,
            waiting_fraction: late.caused.get() as f64 / all.get().max(1) as f64,
            delay_ns: late.delay,
            causes: late.excess.causes(trace),
            host: late.excess.host_causes(trace),
            explained_ns: late.excess.explained,
        })
        .collect();
    stragglers.sort_by_key(|straggler| (std::cmp::Reverse(straggler.waiting_caused_ns), straggler.rank));
    stragglers
}

/// Adds a group, its collectives and their entries to the report.
fn flatten(index: &TraceIndex<'_>, at: usize, group: SplitGroup, report: &mut RankReport) {
    let trace = index.trace();
    let mut members: Vec<usize> = group.matched.members.iter().map(|member| member.rank).collect();
    members.sort_unstable();
    let sum = |of: fn(&Split) -> Ns, start_up: bool| group.split().filter(|s| s.collective.is_start_up == start_up).map(of).sum();
    let first = report.collectives.len();
    let mut row = CollectiveGroup {
        name: group.matched.key.name.map(|name| trace.strings.get(name).to_owned()),
        peers: group.matched.key.peers,
        members,
        size: group.matched.size,
        matched_by: group.matched.by,
        collectives: first..first + group.splits.len(),
        unmatched: group.matched.unmatched,
        not_split: (group.splits.len() - group.split().count()) as u64,
        start_up_ns: sum(Split::waiting, true),
        waiting_ns: sum(Split::waiting, false),
        transfer_ns: group.split().map(Split::transfer).sum(),
        kinds: kind_rows(&group),
    };
    row.kinds.sort_by_key(|kind| (std::cmp::Reverse(kind.start_up_ns + kind.waiting_ns + kind.transfer_ns), kind.kind, kind.bytes));
    report.groups.push(row);
    for split in group.splits {
        let first = report.entries.len();
        report.entries.extend_from_slice(&split.entries);
        report.collectives.push(MatchedCollective { group: at, entries: first..report.entries.len(), ..split.collective });
    }
}

fn kind_rows(group: &SplitGroup) -> Vec<CollectiveKindRow> {
    let mut sorted: Vec<&Split> = group.splits.iter().collect();
    let key = |split: &Split| (split.collective.kind, split.collective.bytes);
    sorted.sort_by_key(|split| key(split));
    let rows = sorted.chunk_by(|a, b| key(a) == key(b)).map(|of_kind| {
        let split = || of_kind.iter().filter(|split| split.collective.is_split);
        let last_transfer = |split: &&&Split| {
            let last = split.collective.last_rank;
            split.entries.iter().find(|entry| entry.rank == last).map_or(Ns::ZERO, |entry| entry.transfer_ns)
        };
        let mut transfers: Vec<Ns> = split().map(|split| last_transfer(&split)).collect();
        transfers.sort_unstable();
        let sum = |start_up: bool| split().filter(|s| s.collective.is_start_up == start_up).map(|s| s.waiting()).sum();
        CollectiveKindRow {
            kind: of_kind[0].collective.kind,
            bytes: of_kind[0].collective.bytes,
            count: of_kind.len() as u64,
            start_up_ns: sum(true),
            waiting_ns: sum(false),
            transfer_ns: split().map(|s| s.transfer()).sum(),
            median_transfer_ns: transfers.get(transfers.len() / 2).copied(),
        }
    });
    rows.collect()
}
