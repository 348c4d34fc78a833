//! Two traces side by side: what else differs, what whole steps did, where the time went, and which suspects came or went.

use longpole_analysis::{
    CeilingsOf, Comparison, Diff, DiffKind, DiffRow, GroupsMatchedBy, StepFigure, StepPair, SuspectShare, WORTH_SHOWING,
};
use longpole_trace::Ns;

use super::text;
use crate::blocks::Block;
use crate::header::Header;
use crate::table::{Column, Kind, Row, Table, Value};
use crate::units::{count, decimal, percent, plural, time};

/// How a comparison is shown.
#[derive(Clone, Copy, Debug)]
pub struct DiffLayout {
    /// Rows of each table; `None` for all.
    pub limit: Option<usize>,
    /// Whole names of kernels.
    pub full_names: bool,
}

/// Groups without a partner that are named.
const UNPAIRED_NAMED: usize = 4;

fn words(figure: &str) -> &str {
    match figure {
        "idle_inside" => "idle inside",
        "idle_between" => "idle between",
        "gpu_busy" => "GPU busy",
        "gpu_idle" => "GPU idle",
        figure => figure,
    }
}

fn heading(kind: DiffKind) -> &'static str {
    match kind {
        DiffKind::Step => "A step",
        DiffKind::IdleCause => "Idle time of a step, by cause",
        DiffKind::Role => "Roles, by change",
        DiffKind::Family => "Kernel families, by change",
        DiffKind::Kernel => "Kernels, by change",
        DiffKind::Operator => "Device time by operator, by change",
        DiffKind::Range => "GPU busy of a range, by change",
        DiffKind::Total => "Totals of the trace",
    }
}

fn noun(kind: DiffKind) -> &'static str {
    match kind {
        DiffKind::Step => "figures",
        DiffKind::IdleCause => "causes",
        DiffKind::Role => "roles",
        DiffKind::Family => "families",
        DiffKind::Kernel => "kernels",
        DiffKind::Operator => "operators",
        DiffKind::Range => "ranges",
        DiffKind::Total => "totals",
    }
}

/// By how much, as people say it: `2.1 x as fast`, `+3.4 %`.
fn by_how_much(ratio: f64) -> String {
    if ratio < 0.5 {
        format!("{} x less time", decimal(1.0 / ratio))
    } else if ratio > 2.0 {
        format!("{} x the time", decimal(ratio))
    } else {
        format!("{}{} %", if ratio < 1.0 { "-" } else { "+" }, percent((ratio - 1.0).abs()))
    }
}

/// The smallest change that can be shown in the direction of the one that is seen, with its sign.
fn smallest(comparison: &Comparison, delta: Ns) -> Option<f64> {
    if delta < Ns::ZERO { comparison.smallest_decrease().map(|share| -share) } else { comparison.smallest_effect }
}

/// What a table is of.
struct Shown<'d> {
    rows: Vec<&'d DiffRow>,
    kind: DiffKind,
    /// The time of a step before, which changes are shares of.
    whole: Option<Ns>,
}

fn table(shown: &Shown<'_>, layout: &DiffLayout) -> Table {
    let has_calls = shown.rows.iter().any(|row| row.calls.0.or(row.calls.1).is_some());
    let mut columns = vec![
        Column::new("key", noun_of_one(shown.kind), Kind::Text).at_least(24).not_below(16),
        Column::new("calls_before", "calls before", Kind::Number).droppable(2),
        Column::new("calls_after", "calls after", Kind::Number).droppable(2),
        Column::new("before_ns", "before", Kind::Time).in_unit_of("times"),
        Column::new("after_ns", "after", Kind::Time).in_unit_of("times"),
        Column::new("delta_ns", "change", Kind::Time).in_unit_of("times"),
        Column::new("effect_fraction", "of a step", Kind::Share).droppable(4),
        Column::new("ratio", "ratio", Kind::Number).droppable(3),
        Column::new("smallest_effect_fraction", "smallest shown", Kind::Share).droppable(1),
        Column::new("verdict", "verdict", Kind::Text).at_least(9),
    ];
    let rows = shown
        .rows
        .iter()
        .map(|row| {
            let calls = |calls: Option<f64>| calls.map_or(Value::Missing, Value::Mean);
            let comparison = row.comparison.as_ref();
            let name = if row.kind == DiffKind::Kernel && layout.full_names { row.key.as_str() } else { words(&row.label) };
            Row::new(vec![
                Value::Text(name.to_owned()),
                calls(row.calls.0),
                calls(row.calls.1),
                Value::time(row.before_ns),
                Value::time(row.after_ns),
                Value::Time(row.delta_ns),
                Value::share(Some(row.delta_ns), shown.whole),
                Value::number(comparison.and_then(|comparison| comparison.ratio)),
                comparison.and_then(|comparison| smallest(comparison, row.delta_ns)).map_or(Value::Missing, Value::Share),
                text(comparison.map_or(row.presence(), |comparison| comparison.verdict.code())),
            ])
        })
        .collect();
    if !has_calls {
        columns[1].csv_only = true;
        columns[2].csv_only = true;
    }
    if shown.whole.is_none() {
        columns[6].csv_only = true;
    }
    let mut table =
        Table { noun: noun(shown.kind), columns, rows, totals: Vec::new(), hidden: 0, filtered_out: 0, empty: None, notes: Vec::new() };
    if shown.kind != DiffKind::Step {
        table.truncate(layout.limit);
    }
    table
}

fn noun_of_one(kind: DiffKind) -> &'static str {
    match kind {
        DiffKind::Step | DiffKind::Total => "figure",
        DiffKind::IdleCause => "cause",
        DiffKind::Role => "role",
        DiffKind::Family => "family",
        DiffKind::Kernel => "kernel",
        DiffKind::Operator => "operator",
        DiffKind::Range => "range",
    }
}

const KINDS: [DiffKind; 8] = [
    DiffKind::Total,
    DiffKind::Step,
    DiffKind::IdleCause,
    DiffKind::Role,
    DiffKind::Family,
    DiffKind::Kernel,
    DiffKind::Operator,
    DiffKind::Range,
];

/// Tables of rows that belong together. A row that is nothing on both sides is not shown.
fn tables(blocks: &mut Vec<Block>, rows: &[&DiffRow], whole: Option<Ns>, layout: &DiffLayout) {
    for kind in KINDS {
        let is_shown = |row: &&&DiffRow| row.kind == kind && (row.before_ns, row.after_ns) != (Some(Ns::ZERO), Some(Ns::ZERO));
        let rows: Vec<&DiffRow> = rows.iter().filter(is_shown).copied().collect();
        if !rows.is_empty() {
            blocks.push(Block::Title(heading(kind)));
            let whole = whole.filter(|_| !matches!(kind, DiffKind::Total | DiffKind::Range));
            blocks.push(Block::Table(table(&Shown { rows, kind, whole }, layout)));
        }
    }
}

fn steps(number: usize) -> String {
    plural(number as u64, "step", "steps")
}

fn pair_facts(pair: &StepPair, main: Option<&DiffRow>) -> Vec<(&'static str, String)> {
    let why = match pair.matched_by {
        GroupsMatchedBy::Name => "by name",
        GroupsMatchedBy::Layers => "by their layers",
        GroupsMatchedBy::Kernels => "by their kernels",
    };
    let mut facts = vec![("compared", format!("{} with {}, paired {why}", steps(pair.steps.0), steps(pair.steps.1)))];
    if let Some((row, comparison)) = main.and_then(|row| Some((row, row.comparison?))) {
        let figure = if pair.step == StepFigure::Period { "start to start" } else { "first start to last end" };
        let times = format!("{} to {}", time(row.before_ns.unwrap_or_default()), time(row.after_ns.unwrap_or_default()));
        let ratio = comparison.ratio.map_or_else(String::new, |ratio| format!(", {}", by_how_much(ratio)));
        facts.push(("step", format!("{}: {times}{ratio} ({figure})", comparison.verdict.code())));
        let shown = match comparison.smallest_effect {
            Some(effect) => {
                let less = comparison.smallest_decrease().unwrap_or_default();
                format!("changes below -{} % and +{} % cannot be shown by these steps", percent(less), percent(effect))
            }
            None if pair.steps.0.min(pair.steps.1) < 2 => "one step on a side: no verdict".to_owned(),
            None => "these steps are too few or too uneven to show any change".to_owned(),
        };
        facts.push(("smallest", shown));
    }
    let (from, to) = pair.kernels;
    facts.push((
        "kernels",
        if from == to { format!("{} a step in both", count(from)) } else { format!("{} a step, then {}", count(from), count(to)) },
    ));
    let (from, to) = pair.host_share;
    if from.max(to) >= WORTH_SHOWING {
        facts.push(("host", format!("the GPU waits for its host for {} % of a step, then {} %", percent(from), percent(to))));
    }
    facts
}

fn suspects(diff: &Diff) -> Option<Table> {
    let per_step = matches!(diff.ceilings, CeilingsOf::Step(..));
    let columns = vec![
        Column::new("code", "suspect", Kind::Text).at_least(20),
        Column::new("before_fraction", "before", Kind::Share),
        Column::new("after_fraction", "after", Kind::Share),
        Column::new("before_ceiling_ns", if per_step { "could win/step" } else { "could win" }, Kind::Time)
            .in_unit_of("ceilings")
            .droppable(1),
        Column::new("after_ceiling_ns", "after", Kind::Time).in_unit_of("ceilings").droppable(1),
        Column::new("change", "", Kind::Text).at_least(4),
    ];
    let share = |share: Option<SuspectShare>| share.and_then(|share| share.share_fraction).map_or(Value::Missing, Value::Share);
    let ceiling = |share: Option<SuspectShare>| {
        Value::time(share.and_then(|share| if per_step { share.ceiling_per_step_ns } else { share.ceiling_ns }))
    };
    let row = |change: &longpole_analysis::SuspectChange| {
        let word = match (change.before, change.after) {
            (Some(_), None) if !change.judged.1 => "not known",
            (None, Some(_)) if !change.judged.0 => "not known",
            (Some(_), None) => "gone",
            (None, Some(_)) => "new",
            _ => "",
        };
        let (a, b) = (change.before, change.after);
        Row::new(vec![text(change.code), share(a), share(b), ceiling(a), ceiling(b), text(word)])
    };
    let rows: Vec<Row> = diff.suspects.iter().map(row).collect();
    let mut notes = vec!["% of the wall that the evidence covers; `longpole explain CODE` says more".to_owned()];
    notes.extend(match diff.ceilings {
        CeilingsOf::EqualTraces => None,
        CeilingsOf::Step(from, to) => Some(format!("could win: of all there is, a step: {} before, {} after", count(from), count(to))),
        CeilingsOf::WholeTraces => Some("could win: in each whole trace; no steps of the two could be paired".to_owned()),
        CeilingsOf::OtherSteps => {
            Some("could win: in each whole trace, which have other steps: do not compare the two, but the shares".to_owned())
        }
    });
    (!rows.is_empty()).then(|| Table {
        noun: "suspects",
        columns,
        rows,
        totals: Vec::new(),
        hidden: 0,
        filtered_out: 0,
        empty: None,
        notes,
    })
}

/// The comparison as a report of several parts.
pub fn diff(diff: &Diff, before: &Header<'_>, layout: &DiffLayout) -> Vec<Block> {
    let mut blocks = vec![Block::Heading("Compared with".to_owned(), before.in_one_line())];
    if !diff.settings.is_empty() {
        blocks.push(Block::Title("Not the same besides times"));
        let note =
            |change: &longpole_analysis::SettingChange| format!("{}: {} to {}: {}", change.what, change.before, change.after, change.means);
        blocks.push(Block::Notes(diff.settings.iter().map(note).collect()));
    }
    if let Some(table) = suspects(diff) {
        blocks.push(Block::Title("Suspects"));
        blocks.push(Block::Table(table));
    }
    for (number, pair) in diff.pairs.iter().enumerate() {
        let rows: Vec<&DiffRow> = diff.rows.iter().filter(|row| row.pair == Some(number)).collect();
        let main = rows.iter().copied().find(|row| row.kind == DiffKind::Step && row.key == pair.step.code());
        let names = if pair.names.0 == pair.names.1 { pair.names.0.clone() } else { format!("{} to {}", pair.names.0, pair.names.1) };
        blocks.push(Block::Heading(names, pair.verdict.code().to_owned()));
        blocks.push(Block::Facts(pair_facts(pair, main)));
        tables(&mut blocks, &rows, main.and_then(|row| row.before_ns), layout);
    }
    let others: Vec<&DiffRow> = diff.rows.iter().filter(|row| row.pair.is_none()).collect();
    if diff.pairs.is_empty() {
        let why = "no steps of the two traces could be paired: totals stand side by side, and one total of each shows no spread, so there is no verdict";
        blocks.push(Block::Heading("Whole traces".to_owned(), String::new()));
        blocks.push(Block::Notes(vec![why.to_owned()]));
    } else if !others.is_empty() {
        blocks.push(Block::Heading("Ranges".to_owned(), String::new()));
    }
    tables(&mut blocks, &others, None, layout);
    blocks.extend(unpaired(diff));
    blocks
}

fn unpaired(diff: &Diff) -> Option<Block> {
    let said = |names: &[String], side: &str| {
        let more = names.len().saturating_sub(UNPAIRED_NAMED);
        let more = if more > 0 { format!(" and {} more", count(more as u64)) } else { String::new() };
        (!names.is_empty()).then(|| format!("only {side}: {}{more}", names[..names.len().min(UNPAIRED_NAMED)].join(", ")))
    };
    let notes: Vec<String> = [said(&diff.only_before, "before"), said(&diff.only_after, "after")].into_iter().flatten().collect();
    (!notes.is_empty()).then_some(Block::Notes(notes))
}

/// Every row, for CSV.
pub fn diff_csv(diff: &Diff) -> Table {
    let columns = vec![
        Column::new("kind", "kind", Kind::Text),
        Column::new("pair", "pair", Kind::Text),
        Column::new("key", "key", Kind::Text),
        Column::new("per", "per", Kind::Text),
        Column::new("presence", "presence", Kind::Text),
        Column::new("calls_before", "calls before", Kind::Number),
        Column::new("calls_after", "calls after", Kind::Number),
        Column::new("before_ns", "before", Kind::Time),
        Column::new("after_ns", "after", Kind::Time),
        Column::new("delta_ns", "change", Kind::Time),
        Column::new("ratio", "ratio", Kind::Number),
        Column::new("smallest_effect_fraction", "smallest effect", Kind::Share),
        Column::new("smallest_decrease_fraction", "smallest decrease", Kind::Share),
        Column::new("verdict", "verdict", Kind::Text),
    ];
    let row = |row: &DiffRow| {
        let pair = row.pair.and_then(|pair| diff.pairs.get(pair)).map(|pair| pair.names.1.as_str());
        let comparison = row.comparison.as_ref();
        let calls = |calls: Option<f64>| calls.map_or(Value::Missing, Value::Mean);
        Row::new(vec![
            text(row.kind.code()),
            Value::name(pair),
            Value::Text(row.key.clone()),
            text(row.per.code()),
            text(row.presence()),
            calls(row.calls.0),
            calls(row.calls.1),
            Value::time(row.before_ns),
            Value::time(row.after_ns),
            Value::Time(row.delta_ns),
            Value::number(comparison.and_then(|comparison| comparison.ratio)),
            comparison.and_then(|comparison| comparison.smallest_effect).map_or(Value::Missing, Value::Share),
            comparison.and_then(Comparison::smallest_decrease).map_or(Value::Missing, Value::Share),
            Value::name(comparison.map(|comparison| comparison.verdict.code())),
        ])
    };
    let rows = diff.rows.iter().map(row).collect();
    Table { noun: "rows", columns, rows, totals: Vec::new(), hidden: 0, filtered_out: 0, empty: None, notes: Vec::new() }
}
