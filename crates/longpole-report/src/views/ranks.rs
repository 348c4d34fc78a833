//! Ranks against each other: what each did, what its collectives cost, and who was late.

use longpole_analysis::{
    Cause, CauseKind, CollectiveGroup, HostCause, MatchedBy, MatchedCollective, RankReport, RankRow, StartUp, Straggler, short_name,
};
use longpole_trace::{Ns, Trace};

use super::{since_first, text};
use crate::blocks::Block;
use crate::table::{Column, Kind, Row, Table, Value};
use crate::units::{count, percent, time};

/// Causes named of a late rank.
const CAUSES_SHOWN: usize = 5;
/// Late ranks and start-ups that are described.
const LATE_SHOWN: usize = 3;

/// How ranks are shown.
#[derive(Clone, Copy, Debug)]
pub struct RankLayout {
    /// Rows of the tables of collectives; `None` for all.
    pub limit: Option<usize>,
    /// Ranks before any was filtered out.
    pub ranks: usize,
}

fn table(noun: &'static str, columns: Vec<Column>, rows: Vec<Row>) -> Table {
    Table { noun, columns, rows, totals: Vec::new(), hidden: 0, filtered_out: 0, empty: None, notes: Vec::new() }
}

/// The number of the rank at a position of the trace.
fn number(trace: &Trace, rank: usize) -> u32 {
    trace.ranks.get(rank).map_or(rank as u32, |rank| rank.rank)
}

/// One line a rank.
fn by_rank(report: &RankReport) -> Table {
    const NOT_SPLIT: &str = "start-up, waiting, transfer, caused: no collective was found on two ranks";
    let columns = vec![
        Column::new("rank", "rank", Kind::Count),
        Column::new("label", "file", Kind::Text).at_least(12).droppable(1),
        Column::new("span_ns", "span", Kind::Time).in_unit_of("rank").droppable(8),
        Column::new("compute_ns", "compute", Kind::Time).in_unit_of("rank").droppable(11),
        Column::new("communication_ns", "comm", Kind::Time).in_unit_of("rank").droppable(9),
        Column::new("exposed_communication_ns", "exposed", Kind::Time).in_unit_of("rank").droppable(12),
        Column::new("copy_ns", "", Kind::Time).in_csv_only(),
        Column::new("exposed_copy_ns", "copies", Kind::Time).in_unit_of("rank").droppable(2),
        Column::new("idle_ns", "idle", Kind::Time).in_unit_of("rank").droppable(10),
        Column::new("start_up_ns", "start-up", Kind::Time).in_unit_of("rank").droppable(5).or_absent(NOT_SPLIT),
        Column::new("waiting_ns", "waiting", Kind::Time).in_unit_of("rank").droppable(7).or_absent(NOT_SPLIT),
        Column::new("transfer_ns", "transfer", Kind::Time).in_unit_of("rank").droppable(6).or_absent(NOT_SPLIT),
        Column::new("waiting_caused_ns", "caused", Kind::Time).in_unit_of("rank").droppable(4).or_absent(NOT_SPLIT),
        Column::new("times_last", "last", Kind::Count).droppable(3).or_absent(NOT_SPLIT),
        Column::new("collectives", "collectives", Kind::Count).in_csv_only(),
    ];
    // What is said of others can be told from collectives that others were found in.
    let is_told = !report.collectives.is_empty();
    let row = |row: &RankRow| {
        Row::new(vec![
            Value::Count(u64::from(row.number)),
            text(&row.label),
            Value::time(row.span_ns),
            Value::time(row.compute_ns),
            Value::time(row.communication_ns),
            Value::time(row.exposed_communication_ns),
            Value::time(row.copy_ns),
            Value::time(row.exposed_copy_ns),
            Value::time(row.idle_ns),
            Value::time(row.start_up_ns),
            Value::time(row.waiting_ns),
            Value::time(row.transfer_ns),
            if is_told { Value::Time(row.waiting_caused_ns) } else { Value::Missing },
            if is_told { Value::Count(row.times_last) } else { Value::Missing },
            Value::Count(row.collectives),
        ])
    };
    let mut table = table("ranks", columns, report.ranks.iter().map(row).collect());
    table
        .notes
        .push("compute + exposed communication + copies with nothing beside them + idle = span; caused: others waited for it".to_owned());
    table
}

/// The ranks, for CSV.
pub fn ranks_csv(report: &RankReport) -> Table {
    by_rank(report)
}

/// A communicator by its name, its pair or its members.
fn group_name(group: &CollectiveGroup, trace: &Trace) -> String {
    let members: Vec<String> = group.members.iter().map(|&rank| number(trace, rank).to_string()).collect();
    match (&group.name, group.peers) {
        (Some(name), Some((from, to))) => format!("{name}, {from} to {to}"),
        // Some process groups are named by a number.
        (Some(name), None) if name.bytes().all(|b| b.is_ascii_digit()) => format!("group {name}"),
        (Some(name), None) => name.clone(),
        (None, _) => format!("ranks {}", members.join(", ")),
    }
}

fn size(bytes_of: Option<u64>) -> Value {
    Value::bytes(bytes_of.map(|size| i64::try_from(size).unwrap_or(i64::MAX)))
}

/// Collectives by group, kind and size.
fn by_kind(report: &RankReport, trace: &Trace, limit: Option<usize>) -> Table {
    let columns = vec![
        Column::new("kind", "collective", Kind::Text).at_least(14),
        Column::new("group", "group", Kind::Text).at_least(8).droppable(2),
        Column::new("ranks", "ranks", Kind::Count).droppable(1),
        Column::new("bytes", "size", Kind::Bytes).droppable(5),
        Column::new("count", "count", Kind::Count).droppable(6),
        Column::new("start_up_ns", "start-up", Kind::Time).in_unit_of("sum"),
        Column::new("waiting_ns", "waiting", Kind::Time).in_unit_of("sum"),
        Column::new("transfer_ns", "transfer", Kind::Time).in_unit_of("sum"),
        Column::new("median_transfer_ns", "median", Kind::Time).droppable(4),
        Column::new("bytes_per_s", "byte rate", Kind::Rate).droppable(3),
    ];
    let mut kinds: Vec<(&CollectiveGroup, &longpole_analysis::CollectiveKindRow)> =
        report.groups.iter().flat_map(|group| group.kinds.iter().map(move |kind| (group, kind))).collect();
    kinds.sort_by_key(|(_, kind)| std::cmp::Reverse(kind.start_up_ns + kind.waiting_ns + kind.transfer_ns));
    let rate = |bytes: Option<u64>, median: Option<Ns>| {
        let median = median.filter(|&median| median > Ns::ZERO)?;
        Some(bytes? as f64 / median.as_secs_f64())
    };
    let rows = kinds
        .iter()
        .map(|(group, kind)| {
            Row::new(vec![
                text(kind.kind.name()),
                Value::Text(group_name(group, trace)),
                Value::Count(group.members.len() as u64),
                size(kind.bytes),
                Value::Count(kind.count),
                Value::Time(kind.start_up_ns),
                Value::Time(kind.waiting_ns),
                Value::Time(kind.transfer_ns),
                Value::time(kind.median_transfer_ns),
                Value::rate(rate(kind.bytes, kind.median_transfer_ns)),
            ])
        })
        .collect();
    let sum = |of: fn(&CollectiveGroup) -> Ns| Value::Time(report.groups.iter().map(of).sum());
    let mut table = table("collectives on two ranks", columns, rows);
    table.totals = vec![Row::new(vec![
        text("all"),
        Value::Blank,
        Value::Blank,
        Value::Blank,
        Value::Count(report.collectives.len() as u64),
        sum(|group| group.start_up_ns),
        sum(|group| group.waiting_ns),
        sum(|group| group.transfer_ns),
        Value::Blank,
        Value::Blank,
    ])];
    table.notes.push("times are sums over ranks; median: transfer of the rank that entered last, which waits for nobody".to_owned());
    table.truncate(limit);
    table
}

fn waiting(report: &RankReport, collective: &MatchedCollective) -> (Ns, Ns) {
    let entries = report.entries.get(collective.entries.clone()).unwrap_or_default();
    (entries.iter().map(|entry| entry.waiting_ns).sum(), entries.iter().map(|entry| entry.transfer_ns).sum())
}

/// The collectives in which most time was waited.
fn largest(report: &RankReport, trace: &Trace, limit: Option<usize>) -> Table {
    let columns = vec![
        Column::new("kind", "collective", Kind::Text).at_least(14),
        Column::new("group", "group", Kind::Text).at_least(8).droppable(1),
        Column::new("number", "number", Kind::Count).droppable(3),
        Column::new("bytes", "size", Kind::Bytes).droppable(2),
        Column::new("start_ns", "at", Kind::Time).droppable(5),
        Column::new("last_rank", "last rank", Kind::Count).droppable(6),
        Column::new("skew_ns", "skew", Kind::Time).in_unit_of("sum"),
        Column::new("waiting_ns", "waiting", Kind::Time).in_unit_of("sum"),
        Column::new("transfer_ns", "transfer", Kind::Time).in_unit_of("sum"),
        Column::new("what", "", Kind::Text).droppable(4),
    ];
    let mut order: Vec<(usize, Ns, Ns)> = report
        .collectives
        .iter()
        .enumerate()
        .filter(|(_, collective)| collective.is_split)
        .map(|(at, collective)| {
            let (waiting, transfer) = waiting(report, collective);
            (at, waiting, transfer)
        })
        .filter(|(_, waiting, _)| *waiting > Ns::ZERO)
        .collect();
    order.sort_by_key(|&(_, waiting, _)| std::cmp::Reverse(waiting));
    let all = order.len();
    order.truncate(limit.unwrap_or(usize::MAX));
    let rows: Vec<Row> = order
        .iter()
        .map(|&(at, waiting, transfer)| {
            let collective = &report.collectives[at];
            let group = &report.groups[collective.group];
            Row::new(vec![
                text(collective.kind.name()),
                Value::Text(group_name(group, trace)),
                Value::Count((at - group.collectives.start) as u64),
                size(collective.bytes),
                Value::Time(since_first(trace, collective.first_start)),
                Value::Count(u64::from(number(trace, collective.last_rank))),
                Value::Time(collective.last_start - collective.first_start),
                Value::Time(waiting),
                Value::Time(transfer),
                if collective.is_start_up { text("start-up") } else { Value::Blank },
            ])
        })
        .collect();
    let mut table = table("waiting in collectives", columns, rows);
    table.hidden = all - order.len();
    table
}

/// What a late rank spent longer on, most first.
fn causes(causes: &[Cause], of: Ns) -> Table {
    let columns = vec![
        Column::new("kind", "what", Kind::Text).at_least(23),
        Column::new("name", "name", Kind::Text).at_least(14),
        Column::new("kernel", "kernel", Kind::Text).at_least(16).droppable(1),
        Column::new("excess_calls", "more calls", Kind::Text).droppable(2),
        Column::new("excess_ns", "longer by", Kind::Time),
        Column::new("waiting_fraction", "of waiting", Kind::Share),
    ];
    let rows = causes
        .iter()
        .take(CAUSES_SHOWN)
        .map(|cause| {
            let what = match cause.kind {
                CauseKind::Operator => "operator",
                CauseKind::Kernel => "kernel",
                CauseKind::Communication => "another collective",
                CauseKind::Idle => "device idle (host late)",
                CauseKind::RecordingBegan => "recording began later",
                CauseKind::Unexplained => "not explained",
            };
            Row::new(vec![
                text(what),
                match cause.kind {
                    CauseKind::Kernel => Value::Text(short_name(&cause.name)),
                    _ if cause.name.is_empty() => Value::Blank,
                    _ => text(&cause.name),
                },
                cause.kernel.as_deref().map_or(Value::Blank, |kernel| Value::Text(short_name(kernel))),
                if cause.excess_calls == 0 { Value::Blank } else { Value::Text(format!("{:+}", cause.excess_calls)) },
                Value::Time(cause.excess_ns),
                cause.waiting_fraction.map_or(Value::Missing, Value::Share),
            ])
        })
        .collect();
    let mut table = table("causes", columns, rows);
    if causes.len() > CAUSES_SHOWN {
        table.notes.push(format!("and {} smaller ones, which --json lists", count((causes.len() - CAUSES_SHOWN) as u64)));
    }
    table.notes.push(format!("longer than the ranks that waited ({} in all), summed over them", time(of)));
    table
}

fn host(causes: &[HostCause]) -> Option<String> {
    let said: Vec<String> = causes
        .iter()
        .filter(|cause| cause.excess_ns > Ns::ZERO)
        .take(CAUSES_SHOWN)
        .map(|cause| format!("{} {}", cause.name.as_deref().unwrap_or("outside operators and calls"), time(cause.excess_ns)))
        .collect();
    (!said.is_empty()).then(|| said.join(", "))
}

fn start_up(start: &StartUp, report: &RankReport, trace: &Trace) -> Vec<Block> {
    let group = report.groups.get(start.group).map_or_else(String::new, |group| group_name(group, trace));
    let kind = report.collectives.get(start.collective).map_or("collective", |collective| collective.kind.name());
    let mut facts = vec![(
        "start-up",
        format!(
            "rank {} entered the first {kind} of {group}, {} after the first rank; the others waited {}",
            number(trace, start.rank),
            time(start.skew_ns),
            time(start.waiting_ns)
        ),
    )];
    facts.extend(host(&start.host).map(|said| ("its host", said)));
    let mut blocks = vec![Block::Facts(facts)];
    if !start.causes.is_empty() {
        blocks.push(Block::Table(causes(&start.causes, start.waiting_ns)));
    }
    blocks
}

fn straggler(late: &Straggler, trace: &Trace) -> Vec<Block> {
    let mut facts = vec![(
        "late",
        format!(
            "rank {} entered {} of {} collectives last; the others waited {} for it ({} % of all waiting); with the next rank, its collectives would have begun {} sooner",
            number(trace, late.rank),
            count(late.times_last),
            count(late.collectives),
            time(late.waiting_caused_ns),
            percent(late.waiting_fraction),
            time(late.delay_ns)
        ),
    )];
    facts.extend(host(&late.host).map(|said| ("its host", said)));
    let mut blocks = vec![Block::Facts(facts)];
    if !late.causes.is_empty() {
        blocks.push(Block::Table(causes(&late.causes, late.explained_ns)));
    }
    blocks
}

/// What the numbers do not say.
fn notes(report: &RankReport, trace: &Trace) -> Vec<String> {
    let mut notes = Vec::new();
    if trace.activities.is_empty() {
        notes.push(trace.recorder.advice().no_device.to_owned());
    }
    if report.includes_waiting {
        notes.push(
            "only one rank: the time of its collectives includes waiting for the others, which cannot be told apart; give the files of all ranks"
                .to_owned(),
        );
    }
    for clock in report.clocks.iter().filter(|clock| clock.correction_ns != Ns::ZERO) {
        let reference = clock.reference.map_or_else(String::new, |rank| format!(" of rank {}'s", number(trace, rank)));
        let spread = clock.spread_ns.map_or_else(String::new, |spread| format!(", give or take {}", time(spread)));
        notes.push(format!(
            "the clock of rank {} was {} ahead{reference}{spread}: corrected by the ends of {} shared collectives",
            number(trace, clock.rank),
            time(clock.correction_ns),
            count(clock.samples)
        ));
    }
    for group in &report.groups {
        let name = group_name(group, trace);
        if let Some(size) = group.size.filter(|&size| (size as usize) > group.members.len() && group.peers.is_none()) {
            notes.push(format!(
                "{name}: {} of {size} ranks are here, so waiting is a lower and transfer an upper bound",
                group.members.len()
            ));
        }
        match group.matched_by {
            MatchedBy::Sequence => {}
            MatchedBy::Time => notes.push(format!("{name}: collectives carry no numbers and were matched by kind and common end")),
            MatchedBy::Order => notes.push(format!("{name}: collectives were matched by order alone; their waiting is not told")),
        }
        if group.unmatched > 0 {
            notes.push(format!("{name}: {} found on one rank only", count(group.unmatched)));
        }
        if group.not_split > 0 {
            notes.push(format!("{name}: {} do not end together on all ranks and are not split", count(group.not_split)));
        }
    }
    notes
}

/// The whole report.
pub fn ranks(report: &RankReport, trace: &Trace, layout: &RankLayout) -> Vec<Block> {
    let plural = |n: usize, one: &str| format!("{} {one}{}", count(n as u64), if n == 1 { "" } else { "s" });
    let matched = format!("{} on several of them", plural(report.collectives.len(), "collective"));
    let mut blocks = vec![Block::Heading("Ranks".to_owned(), format!("{}, {matched}", plural(layout.ranks, "rank")))];
    blocks.push(Block::Table(by_rank(report)));
    if !report.collectives.is_empty() {
        blocks.extend([Block::Title("Collectives"), Block::Table(by_kind(report, trace, layout.limit))]);
        let waits = largest(report, trace, layout.limit);
        if !waits.rows.is_empty() {
            blocks.extend([Block::Title("Longest waiting"), Block::Table(waits)]);
        }
    }
    let starts = report.start_ups.iter().filter(|start| start.waiting_ns > Ns::ZERO).take(LATE_SHOWN);
    let starts: Vec<Block> = starts.flat_map(|start| start_up(start, report, trace)).collect();
    if !starts.is_empty() {
        blocks.push(Block::Title("Start-up"));
        blocks.extend(starts);
    }
    if !report.stragglers.is_empty() {
        let title = if report.has_straggler { "Straggler" } else { "Late ranks (none stands out)" };
        blocks.push(Block::Title(title));
        let shown = if report.has_straggler { 1 } else { LATE_SHOWN };
        blocks.extend(report.stragglers.iter().take(shown).flat_map(|late| straggler(late, trace)));
    }
    let notes = notes(report, trace);
    if !notes.is_empty() {
        blocks.extend([Block::Title("Notes"), Block::Notes(notes)]);
    }
    blocks
}
