//! Limits beside their figures, the worst first.

use super::text;
use crate::blocks::Block;
use crate::check::{CheckBound, CheckReport, CheckVerdict, CheckedLimit};
use crate::table::{Column, Kind, Row, Table, Value};

/// `figure` and `limit` as cells.
fn amounts(limit: &CheckedLimit) -> (Value, Value) {
    let (figure, bound) = match limit.value {
        Some(value) => {
            let (figure, bound) = limit.unit.show_both(value, limit.limit);
            (Some(figure), bound)
        }
        None => (None, limit.unit.show(limit.limit)),
    };
    let sign = if limit.change.is_some() && limit.value.is_some_and(|value| value.get() > 0.0) { "+" } else { "" };
    let bound = match limit.bound {
        CheckBound::Max => format!("≤ {bound}"),
        CheckBound::Min => format!("≥ {bound}"),
        CheckBound::MaxSlower => format!("≤ +{bound}"),
        CheckBound::MaxDrop => format!("≥ -{bound}"),
    };
    (figure.map_or(Value::Missing, |figure| Value::Text(format!("{sign}{figure}"))), Value::Text(bound))
}

fn table(report: &CheckReport, limit: Option<usize>) -> Table {
    let columns = vec![
        Column::new("name", "limit", Kind::Text).at_least(20),
        Column::new("value", "figure", Kind::Quantity),
        Column::new("limit", "allowed", Kind::Quantity),
        Column::new("headroom_fraction", "head-room", Kind::Share),
        Column::new("verdict", "", Kind::Text).at_least(9),
    ];
    let row = |limit: &CheckedLimit| {
        let (figure, bound) = amounts(limit);
        let room = limit.headroom().filter(|room| room.is_finite()).map_or(Value::Missing, Value::Share);
        Row::new(vec![Value::Text(limit.name.clone()), figure, bound, room, text(limit.verdict.code())])
    };
    let mut table = plain("limits", columns, report.limits.iter().map(row).collect());
    table.truncate(limit);
    table
}

fn plain(noun: &'static str, columns: Vec<Column>, rows: Vec<Row>) -> Table {
    Table { noun, columns, rows, totals: Vec::new(), hidden: 0, filtered_out: 0, empty: None, notes: Vec::new() }
}

/// The check as a report of several parts. `limit` shortens the table, never what is said of limits that do not hold.
pub fn check(report: &CheckReport, limit: Option<usize>) -> Vec<Block> {
    let head = if report.is_ok() { "Within budget" } else { "Over budget" };
    let mut blocks =
        vec![Block::Heading(head.to_owned(), format!("{} · {}", report.budget, report.summary())), Block::Table(table(report, limit))];
    let worth_a_line = |limit: &&CheckedLimit| limit.verdict != CheckVerdict::Ok || limit.reason.is_some();
    let place = |limit: &CheckedLimit| {
        let path = if limit.name == limit.place() { String::new() } else { format!(": {}", limit.place()) };
        format!("{} (line {}{path})", limit.sentence(), limit.line)
    };
    let said: Vec<String> = report.limits.iter().filter(worth_a_line).map(place).collect();
    if !said.is_empty() || !report.notes.is_empty() {
        blocks.push(Block::Notes(said.into_iter().chain(report.notes.iter().cloned()).collect()));
    }
    blocks
}

/// Every limit, for CSV: plain numbers, in the unit that the row names.
pub fn check_csv(report: &CheckReport) -> Table {
    let columns = vec![
        Column::new("name", "limit", Kind::Text),
        Column::new("path", "path", Kind::Text),
        Column::new("over", "over", Kind::Text),
        Column::new("line", "line", Kind::Count),
        Column::new("unit", "unit", Kind::Text),
        Column::new("bound", "bound", Kind::Text),
        Column::new("limit", "allowed", Kind::Text),
        Column::new("value", "figure", Kind::Text),
        Column::new("headroom_fraction", "head-room", Kind::Share),
        Column::new("verdict", "verdict", Kind::Text),
        Column::new("ok", "ok", Kind::Text),
        Column::new("reason", "reason", Kind::Text),
    ];
    let number = |amount: crate::check::Amount| Value::Text(amount.get().to_string());
    let row = |limit: &CheckedLimit| {
        Row::new(vec![
            Value::Text(limit.name.clone()),
            Value::Text(limit.path.clone()),
            Value::name(limit.over.as_deref()),
            Value::Count(limit.line as u64),
            text(limit.unit.code()),
            text(limit.bound.code()),
            number(limit.limit),
            limit.value.map_or(Value::Missing, number),
            limit.headroom().filter(|room| room.is_finite()).map_or(Value::Missing, Value::Share),
            text(limit.verdict.code()),
            text(if limit.ok { "true" } else { "false" }),
            Value::name(limit.reason.as_deref()),
        ])
    };
    plain("limits", columns, report.limits.iter().map(row).collect())
}
