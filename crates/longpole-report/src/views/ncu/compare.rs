//! Tables of two reports beside each other.

use longpole_ncu::compare::{Comparison, Figure, NameTotal, Pair};
use longpole_trace::Ns;

use super::super::text;
use crate::table::{Column, Kind, Row, Table, Value};
use crate::units::{bytes, clock, count, decimal, percent, rate, time};

/// A value of a figure with its unit.
pub(crate) fn figure_words(figure: &Figure, value: Option<f64>) -> String {
    let Some(value) = value else { return "–".to_owned() };
    match figure.unit {
        "ns" => time(Ns(value.round() as i64)),
        "byte" => bytes(value.round() as i64),
        "byte/s" => rate(value),
        "Hz" => clock(value),
        "%" => format!("{} %", percent(value / 100.0)),
        _ if value >= 0.0 && value.fract() == 0.0 && value < 1e15 => count(value as u64),
        _ => decimal(value),
    }
}

fn table(noun: &'static str, columns: Vec<Column>, rows: Vec<Row>) -> Table {
    Table { noun, columns, rows, totals: Vec::new(), hidden: 0, filtered_out: 0, empty: None, notes: Vec::new() }
}

/// Figures of one pair: before, after, and their ratio.
pub fn figures(figures: &[Figure], heading: &'static str) -> Table {
    let columns = vec![
        Column::new("what", heading, Kind::Text).at_least(20),
        Column::new("before", "before", Kind::Quantity),
        Column::new("after", "after", Kind::Quantity),
        Column::new("ratio", "after / before", Kind::Number).droppable(1),
    ];
    let rows = figures.iter().map(|figure| {
        let cell = |value| Value::Text(figure_words(figure, value));
        Row::new(vec![text(figure.what), cell(figure.before), cell(figure.after), Value::number(figure.ratio())])
    });
    table("figures", columns, rows.collect())
}

fn ns(value: Option<u64>) -> Option<Ns> {
    value.map(|value| Ns(i64::try_from(value).unwrap_or(i64::MAX)))
}

/// A row a kernel name with the time of all its launches before and after, in the order of the comparison. `names` are the short
/// forms.
pub fn name_totals(totals: &[NameTotal], names: &[String]) -> Table {
    let columns = vec![
        Column::new("name", "kernel", Kind::Text).at_least(28),
        Column::new("launches_before", "launches before", Kind::Count).droppable(1),
        Column::new("launches_after", "launches after", Kind::Count).droppable(2),
        Column::new("before_ns", "time before", Kind::Time).in_unit_of("time").droppable(6),
        Column::new("after_ns", "time after", Kind::Time).in_unit_of("time").droppable(7),
        Column::new("delta_ns", "difference", Kind::Time).in_unit_of("time"),
        Column::new("ratio", "after / before", Kind::Number).droppable(5),
    ];
    // A name without launches on one side took no time there; one whose times were not collected took an unknown time.
    let side = |launches: u64, time: Option<u64>| if launches == 0 { Some(Ns::ZERO) } else { ns(time) };
    let delta =
        |before: Option<Ns>, after: Option<Ns>| before.zip(after).map(|(before, after)| Ns(after.get().saturating_sub(before.get())));
    let rows = totals.iter().zip(names).map(|(total, name)| {
        let (before, after) = (side(total.launches_before, total.before_ns), side(total.launches_after, total.after_ns));
        Row::new(vec![
            text(name),
            Value::Count(total.launches_before),
            Value::Count(total.launches_after),
            Value::time(before),
            Value::time(after),
            Value::time(delta(before, after)),
            Value::number(total.ratio()),
        ])
    });
    let mut table = table("kernels", columns, rows.collect());
    let sum = |of: fn(&NameTotal) -> Option<u64>| ns(totals.iter().filter_map(of).reduce(u64::saturating_add));
    let (before, after) = (sum(|total| total.before_ns), sum(|total| total.after_ns));
    let ratio = before.zip(after).filter(|(before, _)| *before > Ns::ZERO).map(|(before, after)| after.get() as f64 / before.get() as f64);
    table.totals.push(Row::new(vec![
        super::super::total_label(totals.len(), "name", "names"),
        Value::Count(totals.iter().map(|total| total.launches_before).sum()),
        Value::Count(totals.iter().map(|total| total.launches_after).sum()),
        Value::time(before),
        Value::time(after),
        Value::time(delta(before, after)),
        Value::number(ratio),
    ]));
    let untimed: u64 = totals.iter().map(|total| total.without_duration_before.saturating_add(total.without_duration_after)).sum();
    if untimed > 0 {
        table.notes.push(format!("the time of {} launches was not collected and is in no sum", count(untimed)));
    }
    table
}

/// Every figure of every pair as a row with plain numbers: what CSV takes.
pub fn comparison_rows(comparison: &Comparison) -> Table {
    let columns = vec![
        Column::new("before_id", "", Kind::Count),
        Column::new("after_id", "", Kind::Count),
        Column::new("name_before", "", Kind::Text),
        Column::new("name_after", "", Kind::Text),
        Column::new("kind", "", Kind::Text),
        Column::new("what", "", Kind::Text),
        Column::new("unit", "", Kind::Text),
        Column::new("before", "", Kind::Number),
        Column::new("after", "", Kind::Number),
        Column::new("ratio", "", Kind::Number),
    ];
    let row = |pair: &Pair, kind: &str, figure: &Figure| {
        Row::new(vec![
            Value::Count(pair.before as u64),
            Value::Count(pair.after as u64),
            text(&pair.name_before),
            text(&pair.name_after),
            text(kind),
            text(figure.what),
            text(figure.unit),
            Value::number(figure.before),
            Value::number(figure.after),
            Value::number(figure.ratio()),
        ])
    };
    let rows = comparison.pairs.iter().flat_map(|pair| {
        let figures = pair.figures.iter().map(move |figure| row(pair, "figure", figure));
        figures.chain(pair.stalls.iter().map(move |figure| row(pair, "stall", figure)))
    });
    table("figures", columns, rows.collect())
}
