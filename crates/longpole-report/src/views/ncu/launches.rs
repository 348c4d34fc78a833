//! A row a launch, and what they come to by name and by family.

use longpole_analysis::Family;
use longpole_ncu::summary::VerdictKind;
use longpole_ncu::table::{TableRow, Total};
use longpole_trace::Ns;

use super::super::{text, total_label};
use crate::table::{Column, Kind, Row, Table, Value};

/// Why columns may be empty, and what fills them.
const NO_SPEED: &str = "time, throughput or verdict: not collected (add `--section SpeedOfLight`)";
const NO_TRAFFIC: &str = "DRAM bytes: not collected (add `--section MemoryWorkloadAnalysis_Tables`)";
const NO_OCCUPANCY: &str = "occupancy reached: not collected (add `--section Occupancy`)";

/// One launch (or range, or graph) of a report.
#[derive(Clone, Debug, PartialEq)]
pub struct LaunchRow {
    /// Its figures.
    pub row: TableRow,
    /// The short name, which no other name of the report has.
    pub short_name: String,
    /// Its family; `None` for what is no kernel.
    pub family: Option<Family>,
    /// The program that launched it, where the report has several.
    pub process: Option<String>,
}

/// All launches of one name, or of one family.
#[derive(Clone, Debug, PartialEq)]
pub struct TotalRow {
    /// Short name or family.
    pub name: String,
    /// The whole name; `None` for a family.
    pub full_name: Option<String>,
    /// The family of a name; `None` for what is no kernel.
    pub family: Option<Family>,
    /// Their figures, by whole name or family.
    pub total: Total<String>,
}

/// Nanoseconds as cells hold them.
fn ns(value: Option<u64>) -> Value {
    Value::time(value.map(|value| Ns(i64::try_from(value).unwrap_or(i64::MAX))))
}

fn sizes(value: Option<[u64; 3]>) -> Value {
    value.map_or(Value::Missing, |[x, y, z]| match (y, z) {
        (1, 1) => Value::Text(x.to_string()),
        (_, 1) => Value::Text(format!("{x}×{y}")),
        _ => Value::Text(format!("{x}×{y}×{z}")),
    })
}

fn new(noun: &'static str, columns: Vec<Column>, rows: Vec<Row>) -> Table {
    Table { noun, columns, rows, totals: Vec::new(), hidden: 0, filtered_out: 0, empty: None, notes: Vec::new() }
}

/// A row a launch. `total_ns` is the time of all launches, which shares are of.
pub fn launches(rows: &[LaunchRow], total_ns: u64, full_names: bool) -> Table {
    let (full, short) =
        (Column::new("name", "kernel", Kind::Text).at_least(24), Column::new("short_name", "kernel", Kind::Text).at_least(24));
    let has = |present: fn(&LaunchRow) -> bool| rows.iter().any(present);
    let shown_if = |column: Column, present: bool| if present { column } else { column.in_csv_only() };
    let columns = vec![
        if full_names { full } else { short },
        if full_names { short.in_csv_only() } else { full.in_csv_only() },
        Column::new("id", "id", Kind::Count).droppable(9),
        Column::new("kind", "", Kind::Text).in_csv_only(),
        Column::new("family", "family", Kind::Text).droppable(4),
        Column::new("duration_ns", "time", Kind::Time).droppable(10).or_absent(NO_SPEED),
        Column::new("share_fraction", "share", Kind::Share).droppable(8).or_absent(NO_SPEED),
        Column::new("dram_pct", "DRAM", Kind::Percent).droppable(7).or_absent(NO_SPEED),
        Column::new("dram_bytes", "DRAM bytes", Kind::Bytes).droppable(2).or_absent(NO_TRAFFIC),
        Column::new("memory_pct", "memory", Kind::Percent).droppable(3).or_absent(NO_SPEED),
        Column::new("sm_pct", "SM", Kind::Percent).droppable(7).or_absent(NO_SPEED),
        Column::new("achieved_occupancy_pct", "occupancy", Kind::Percent).droppable(3).or_absent(NO_OCCUPANCY),
        Column::new("waves_per_sm", "waves", Kind::Number).droppable(5),
        Column::new("registers_per_thread", "registers", Kind::Count).droppable(1),
        Column::new("grid", "grid", Kind::Quantity).droppable(2),
        Column::new("block", "block", Kind::Quantity).droppable(1),
        Column::new("verdict", "verdict", Kind::Text).at_least(13).droppable(6).or_absent(NO_SPEED),
        shown_if(Column::new("nvtx", "in", Kind::Text).at_least(12).droppable(0), has(|row| row.row.nvtx.is_some())),
        shown_if(Column::new("process", "process", Kind::Text).at_least(10).droppable(3), has(|row| row.process.is_some())),
    ];
    let body = rows.iter().map(|row| {
        let (full, short) = (text(&row.row.name), text(&row.short_name));
        let (first, second) = if full_names { (full, short) } else { (short, full) };
        let words = |value: Option<&str>| value.map_or(Value::Missing, text);
        let LaunchRow { row, family, process, .. } = row;
        Row::new(vec![
            first,
            second,
            Value::Count(row.id as u64),
            text(row.kind.name()),
            words(family.map(Family::name)),
            ns(row.duration_ns),
            share(row.duration_ns, total_ns),
            Value::percent(row.dram_pct),
            Value::bytes(row.dram_bytes.map(|bytes| i64::try_from(bytes).unwrap_or(i64::MAX))),
            Value::percent(row.memory_pct),
            Value::percent(row.sm_pct),
            Value::percent(row.achieved_occupancy_pct),
            Value::number(row.waves_per_sm),
            Value::count(row.registers_per_thread),
            sizes(row.grid),
            sizes(row.block),
            words(row.verdict.map(VerdictKind::name)),
            words(row.nvtx.as_deref()),
            words(process.as_deref()),
        ])
    });
    let mut table = new("kernels", columns, body.collect());
    let whole = sum_of(rows.iter().map(|row| row.row.duration_ns));
    let mut total = vec![total_label(rows.len(), "launch", "launches")];
    total.resize(table.columns.len(), Value::Blank);
    (total[5], total[6]) = (ns(whole), share(whole, total_ns));
    table.totals.push(Row::new(total));
    table
}

fn share(part: Option<u64>, whole: u64) -> Value {
    part.filter(|_| whole > 0).map_or(Value::Missing, |part| Value::Share(part as f64 / whole as f64))
}

/// Times of which the sum does not wrap.
fn sum_of(times: impl Iterator<Item = Option<u64>>) -> Option<u64> {
    times.flatten().reduce(u64::saturating_add)
}

fn grouped(noun: &'static str, one: &'static str, rows: &[TotalRow]) -> Table {
    let is_families = noun == "families";
    let name = Column::new("name", if is_families { "family" } else { "kernel" }, Kind::Text);
    let mut family = Column::new("family", "family", Kind::Text).droppable(2);
    family.csv_only = is_families;
    let columns = vec![
        name.at_least(if is_families { 20 } else { 28 }),
        family,
        Column::new("launches", "launches", Kind::Count).droppable(9),
        Column::new("duration_ns", "time", Kind::Time).droppable(10),
        Column::new("share_fraction", "share", Kind::Share),
        Column::new("min_ns", "min", Kind::Time).in_unit_of("launch").droppable(3),
        Column::new("median_ns", "median", Kind::Time).in_unit_of("launch").droppable(5),
        Column::new("max_ns", "max", Kind::Time).in_unit_of("launch").droppable(4),
        Column::new("dram_pct", "DRAM", Kind::Percent).droppable(7),
        Column::new("sm_pct", "SM", Kind::Percent).droppable(7),
        Column::new("verdict", "mostly", Kind::Text).at_least(13).droppable(6),
        Column::new("share_fraction", "", Kind::Bar).droppable(1).not_in_csv(),
    ];
    let body = rows.iter().map(|row| {
        let total = &row.total;
        let share = total.share_fraction.map_or(Value::Missing, Value::Share);
        Row::new(vec![
            text(&row.name),
            row.family.map_or(Value::Missing, |family| text(family.name())),
            Value::Count(total.launches),
            ns(total.total_ns),
            share.clone(),
            ns(total.min_ns),
            ns(total.median_ns),
            ns(total.max_ns),
            Value::percent(total.dram_pct),
            Value::percent(total.sm_pct),
            total.verdict.map_or(Value::Missing, |verdict| text(verdict.name())),
            share,
        ])
    });
    let mut table = new(noun, columns, body.collect());
    let mut last = vec![total_label(rows.len(), one, noun), Value::Blank, Value::Count(rows.iter().map(|row| row.total.launches).sum())];
    last.push(ns(sum_of(rows.iter().map(|row| row.total.total_ns))));
    let share = super::super::sum(rows.iter().map(|row| row.total.share_fraction));
    last.push(share.map_or(Value::Missing, Value::Share));
    last.resize(table.columns.len(), Value::Blank);
    table.totals.push(Row::new(last));
    let untimed: u64 = rows.iter().map(|row| row.total.without_duration).sum();
    if untimed > 0 {
        table.notes.push(format!("the time of {} launches was not collected and is in no sum", crate::units::count(untimed)));
    }
    table
}

/// A row a kernel name.
pub fn names(rows: &[TotalRow]) -> Table {
    grouped("names", "name", rows)
}

/// A row a family.
pub fn families(rows: &[TotalRow]) -> Table {
    grouped("families", "family", rows)
}
