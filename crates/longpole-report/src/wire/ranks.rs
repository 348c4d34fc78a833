//! `longpole.ranks/1`

use longpole_analysis::{
    Cause, CollectiveEntry, CollectiveGroup, CollectiveKindRow, HostCause, MatchedCollective, RankClock, RankReport, RankRow, StartUp,
    Straggler,
};
use longpole_trace::Trace;
use serde::Serialize;

use super::ns;
use crate::header::Header;
use crate::views::since_first;

#[derive(Serialize)]
struct RankOut<'a> {
    rank: u32,
    file: &'a str,
    span_ns: Option<i64>,
    busy_ns: Option<i64>,
    compute_ns: Option<i64>,
    communication_ns: Option<i64>,
    exposed_communication_ns: Option<i64>,
    copy_ns: Option<i64>,
    exposed_copy_ns: Option<i64>,
    idle_ns: Option<i64>,
    collectives: u64,
    split: u64,
    start_up_ns: Option<i64>,
    waiting_ns: Option<i64>,
    transfer_ns: Option<i64>,
    not_split_ns: i64,
    exposed_waiting_ns: Option<i64>,
    times_last: u64,
    waiting_caused_ns: i64,
}

#[derive(Serialize)]
struct Clock {
    rank: u32,
    reference: Option<u32>,
    ahead_ns: Option<i64>,
    spread_ns: Option<i64>,
    drift_ns: Option<i64>,
    samples: u64,
    correction_ns: i64,
}

#[derive(Serialize)]
struct Group<'a> {
    name: Option<&'a str>,
    peers: Option<[u32; 2]>,
    members: Vec<u32>,
    size: Option<u32>,
    matched_by: &'static str,
    collectives: usize,
    unmatched: u64,
    not_split: u64,
    start_up_ns: i64,
    waiting_ns: i64,
    transfer_ns: i64,
    kinds: Vec<KindOut>,
}

#[derive(Serialize)]
struct KindOut {
    kind: &'static str,
    bytes: Option<u64>,
    count: u64,
    start_up_ns: i64,
    waiting_ns: i64,
    transfer_ns: i64,
    median_transfer_ns: Option<i64>,
}

#[derive(Serialize)]
struct Collective {
    group: usize,
    kind: &'static str,
    bytes: Option<u64>,
    start_ns: i64,
    skew_ns: i64,
    last_rank: u32,
    is_start_up: bool,
    is_split: bool,
    waiting_ns: i64,
    transfer_ns: i64,
    ranks: Vec<Entry>,
}

#[derive(Serialize)]
struct Entry {
    rank: u32,
    start_ns: i64,
    waiting_ns: i64,
    transfer_ns: i64,
}

#[derive(Serialize)]
struct CauseOut<'a> {
    kind: &'static str,
    name: Option<&'a str>,
    kernel: Option<&'a str>,
    excess_ns: i64,
    excess_calls: i64,
    waiting_fraction: Option<f64>,
}

#[derive(Serialize)]
struct Host<'a> {
    name: Option<&'a str>,
    excess_ns: i64,
}

#[derive(Serialize)]
struct StartUpOut<'a> {
    group: usize,
    collective: usize,
    rank: u32,
    skew_ns: i64,
    waiting_ns: i64,
    causes: Vec<CauseOut<'a>>,
    host: Vec<Host<'a>>,
}

#[derive(Serialize)]
struct Late<'a> {
    rank: u32,
    times_last: u64,
    collectives: u64,
    waiting_caused_ns: i64,
    waiting_fraction: f64,
    delay_ns: i64,
    explained_ns: i64,
    causes: Vec<CauseOut<'a>>,
    host: Vec<Host<'a>>,
}

#[derive(Serialize)]
struct Body<'a> {
    ranks: Vec<RankOut<'a>>,
    clocks: Vec<Clock>,
    groups: Vec<Group<'a>>,
    collectives: Vec<Collective>,
    start_ups: Vec<StartUpOut<'a>>,
    stragglers: Vec<Late<'a>>,
    has_straggler: bool,
    includes_waiting: bool,
}

/// Turns positions of ranks into their numbers.
struct Numbers<'t>(&'t Trace);

impl Numbers<'_> {
    fn of(&self, rank: usize) -> u32 {
        self.0.ranks.get(rank).map_or(rank as u32, |rank| rank.rank)
    }

    fn clock(&self, clock: &RankClock) -> Clock {
        Clock {
            rank: self.of(clock.rank),
            reference: clock.reference.map(|rank| self.of(rank)),
            ahead_ns: ns(clock.ahead_ns),
            spread_ns: ns(clock.spread_ns),
            drift_ns: ns(clock.drift_ns),
            samples: clock.samples,
            correction_ns: clock.correction_ns.get(),
        }
    }

    fn group<'a>(&self, group: &'a CollectiveGroup) -> Group<'a> {
        Group {
            name: group.name.as_deref(),
            peers: group.peers.map(|(from, to)| [from, to]),
            members: group.members.iter().map(|&rank| self.of(rank)).collect(),
            size: group.size,
            matched_by: group.matched_by.name(),
            collectives: group.collectives.len(),
            unmatched: group.unmatched,
            not_split: group.not_split,
            start_up_ns: group.start_up_ns.get(),
            waiting_ns: group.waiting_ns.get(),
            transfer_ns: group.transfer_ns.get(),
            kinds: group.kinds.iter().map(kind).collect(),
        }
    }

    fn collective(&self, collective: &MatchedCollective, report: &RankReport) -> Collective {
        let entries: &[CollectiveEntry] = report.entries.get(collective.entries.clone()).unwrap_or_default();
        let entry = |entry: &CollectiveEntry| Entry {
            rank: self.of(entry.rank),
            start_ns: since_first(self.0, entry.start).get(),
            waiting_ns: entry.waiting_ns.get(),
            transfer_ns: entry.transfer_ns.get(),
        };
        Collective {
            group: collective.group,
            kind: collective.kind.name(),
            bytes: collective.bytes,
            start_ns: since_first(self.0, collective.first_start).get(),
            skew_ns: (collective.last_start - collective.first_start).get(),
            last_rank: self.of(collective.last_rank),
            is_start_up: collective.is_start_up,
            is_split: collective.is_split,
            waiting_ns: entries.iter().map(|entry| entry.waiting_ns.get()).sum(),
            transfer_ns: entries.iter().map(|entry| entry.transfer_ns.get()).sum(),
            ranks: entries.iter().map(entry).collect(),
        }
    }

    fn start_up<'a>(&self, start: &'a StartUp) -> StartUpOut<'a> {
        StartUpOut {
            group: start.group,
            collective: start.collective,
            rank: self.of(start.rank),
            skew_ns: start.skew_ns.get(),
            waiting_ns: start.waiting_ns.get(),
            causes: start.causes.iter().map(cause).collect(),
            host: start.host.iter().map(host).collect(),
        }
    }

    fn late<'a>(&self, late: &'a Straggler) -> Late<'a> {
        Late {
            rank: self.of(late.rank),
            times_last: late.times_last,
            collectives: late.collectives,
            waiting_caused_ns: late.waiting_caused_ns.get(),
            waiting_fraction: late.waiting_fraction,
            delay_ns: late.delay_ns.get(),
            explained_ns: late.explained_ns.get(),
            causes: late.causes.iter().map(cause).collect(),
            host: late.host.iter().map(host).collect(),
        }
    }
}

fn rank(row: &RankRow) -> RankOut<'_> {
    RankOut {
        rank: row.number,
        file: &row.label,
        span_ns: ns(row.span_ns),
        busy_ns: ns(row.busy_ns),
        compute_ns: ns(row.compute_ns),
        communication_ns: ns(row.communication_ns),
        exposed_communication_ns: ns(row.exposed_communication_ns),
        copy_ns: ns(row.copy_ns),
        exposed_copy_ns: ns(row.exposed_copy_ns),
        idle_ns: ns(row.idle_ns),
        collectives: row.collectives,
        split: row.split,
        start_up_ns: ns(row.start_up_ns),
        waiting_ns: ns(row.waiting_ns),
        transfer_ns: ns(row.transfer_ns),
        not_split_ns: row.not_split_ns.get(),
        exposed_waiting_ns: ns(row.exposed_waiting_ns),
        times_last: row.times_last,
        waiting_caused_ns: row.waiting_caused_ns.get(),
    }
}

fn kind(row: &CollectiveKindRow) -> KindOut {
    KindOut {
        kind: row.kind.name(),
        bytes: row.bytes,
        count: row.count,
        start_up_ns: row.start_up_ns.get(),
        waiting_ns: row.waiting_ns.get(),
        transfer_ns: row.transfer_ns.get(),
        median_transfer_ns: ns(row.median_transfer_ns),
    }
}

fn cause(cause: &Cause) -> CauseOut<'_> {
    CauseOut {
        kind: cause.kind.name(),
        name: Some(cause.name.as_str()).filter(|name| !name.is_empty()),
        kernel: cause.kernel.as_deref(),
        excess_ns: cause.excess_ns.get(),
        excess_calls: cause.excess_calls,
        waiting_fraction: cause.waiting_fraction,
    }
}

fn host(cause: &HostCause) -> Host<'_> {
    Host { name: cause.name.as_deref(), excess_ns: cause.excess_ns.get() }
}

/// The document of `longpole ranks`. Times at which something happened count from the first event, as `--time` does; of a rank whose clock
/// was off, after the correction. At most `limit` collectives are listed.
pub fn ranks<'a>(header: &Header<'a>, report: &'a RankReport, trace: &Trace, limit: Option<usize>) -> impl Serialize + use<'a> {
    let numbers = Numbers(trace);
    let collectives = report.collectives.iter().take(limit.unwrap_or(usize::MAX));
    let body = Body {
        ranks: report.ranks.iter().map(rank).collect(),
        clocks: report.clocks.iter().map(|clock| numbers.clock(clock)).collect(),
        groups: report.groups.iter().map(|group| numbers.group(group)).collect(),
        collectives: collectives.map(|collective| numbers.collective(collective, report)).collect(),
        start_ups: report.start_ups.iter().map(|start| numbers.start_up(start)).collect(),
        stragglers: report.stragglers.iter().map(|late| numbers.late(late)).collect(),
        has_straggler: report.has_straggler,
        includes_waiting: report.includes_waiting,
    };
    super::document("longpole.ranks/1", header, body)
}
