//! Tables of two reports beside each other.

use longpole_ncu::compare::{Comparison, Figure, Pair};
use longpole_trace::Ns;

use super::super::text;
use crate::ncu::matching;
use crate::table::{Column, Kind, Row, Table, Value};
use crate::units::{bytes, clock, count, decimal, percent, rate, time};

/// A value of a figure with its unit.
pub fn figure_words(figure: &Figure, value: Option<f64>) -> String {
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

fn duration(pair: &Pair) -> (Option<f64>, Option<f64>) {
    pair.figures.iter().find(|figure| figure.unit == "ns").map_or((None, None), |figure| (figure.before, figure.after))
}

fn nanoseconds(value: Option<f64>) -> Option<Ns> {
    value.map(|value| Ns(value.round() as i64))
}

/// A row a pair: its time before and after, the largest difference first.
pub fn pairs(comparison: &Comparison, names: &[(String, String)]) -> Table {
    let columns = vec![
        Column::new("name", "kernel", Kind::Text).at_least(28),
        Column::new("before", "before", Kind::Count).droppable(1),
        Column::new("after", "after", Kind::Count).droppable(2),
        Column::new("before_ns", "time before", Kind::Time).in_unit_of("time").droppable(6),
        Column::new("after_ns", "time after", Kind::Time).in_unit_of("time").droppable(7),
        Column::new("delta_ns", "difference", Kind::Time).in_unit_of("time"),
        Column::new("ratio", "after / before", Kind::Number).droppable(5),
        Column::new("matched_by", "matched by", Kind::Text).droppable(3),
    ];
    let mut rows: Vec<(i64, Row)> = comparison
        .pairs
        .iter()
        .zip(names)
        .map(|(pair, (before, after))| {
            let (was, is) = duration(pair);
            let (was_ns, is_ns) = (nanoseconds(was), nanoseconds(is));
            let delta = was_ns.zip(is_ns).map(|(was, is)| Ns(is.get().saturating_sub(was.get())));
            let ratio = was.zip(is).filter(|(was, _)| *was > 0.0).map(|(was, is)| is / was);
            let name = if before == after { before.clone() } else { format!("{before} → {after}") };
            let cells = vec![
                Value::Text(name),
                Value::Count(pair.before as u64),
                Value::Count(pair.after as u64),
                Value::time(was_ns),
                Value::time(is_ns),
                Value::time(delta),
                Value::number(ratio),
                text(matching(pair.matched_by).map_or("name", |how| how.split(':').next().unwrap_or(how).trim_start_matches("matched by "))),
            ];
            (delta.map_or(0, |delta| delta.get().saturating_abs()), Row::new(cells))
        })
        .collect();
    rows.sort_by_key(|(size, _)| std::cmp::Reverse(*size));
    let sum = |side: fn((Option<f64>, Option<f64>)) -> Option<f64>| {
        let times: Option<Vec<i64>> = comparison.pairs.iter().map(|pair| nanoseconds(side(duration(pair))).map(Ns::get)).collect();
        times.map(|times| Ns(times.into_iter().fold(0, i64::saturating_add)))
    };
    let (was, is) = (sum(|times| times.0), sum(|times| times.1));
    let total = Row::new(vec![
        super::super::total_label(rows.len(), "pair", "pairs"),
        Value::Blank,
        Value::Blank,
        Value::time(was),
        Value::time(is),
        Value::time(was.zip(is).map(|(was, is)| Ns(is.get().saturating_sub(was.get())))),
        Value::number(was.zip(is).filter(|(was, _)| *was > Ns::ZERO).map(|(was, is)| is.get() as f64 / was.get() as f64)),
        Value::Blank,
    ]);
    let mut table = table("pairs", columns, rows.into_iter().map(|(_, row)| row).collect());
    table.totals.push(total);
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
