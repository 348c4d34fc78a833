//! The range table.

use std::collections::HashSet;

use longpole_analysis::{RangePath, RangeRow};

use super::text;
use crate::table::{Column, Kind, Row, Table, Value};

/// How nesting is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeLayout {
    /// Names indented below their parents: rows are in nesting order and all are there.
    Tree,
    /// Whole paths, for rows that were sorted or filtered.
    Paths,
}

/// The range table, its first `limit` rows. It has no total: ranges nest and overlap.
pub fn ranges(rows: &[RangeRow], layout: RangeLayout, limit: Option<usize>) -> Table {
    const NO_WORK: &str = "GPU times: no device work was launched inside";
    const REPLAYED: &str = "replayed: device time of graph nodes that were captured inside; it belongs to the launches of the replays";
    // People see these only where a graph was seen being made.
    let has_replays = rows.iter().any(|row| row.replayed_ns.is_some());
    let of_replays = |column: Column| if has_replays { column } else { column.in_csv_only() };
    let columns = vec![
        Column::new("name", "range", Kind::Text).at_least(28).not_in_csv(),
        Column::new("name", "", Kind::Text).in_csv_only(),
        Column::new("parents", "parents", Kind::Text).in_csv_only(),
        Column::new("depth", "depth", Kind::Count).in_csv_only(),
        Column::new("calls", "calls", Kind::Count).droppable(4),
        Column::new("cpu_ns", "host", Kind::Time).droppable(7),
        Column::new("gpu_span_ns", "GPU span", Kind::Time).in_unit_of("gpu").droppable(3).or_absent(NO_WORK),
        Column::new("gpu_busy_ns", "GPU busy", Kind::Time).in_unit_of("gpu").droppable(6).or_absent(NO_WORK),
        Column::new("gpu_idle_ns", "GPU idle", Kind::Time).in_unit_of("gpu").droppable(5).or_absent(NO_WORK),
        Column::new("gpu_busy_of_span_fraction", "busy", Kind::Share).droppable(1).or_absent(NO_WORK),
        Column::new("kernels", "kernels", Kind::Count).droppable(2),
        of_replays(Column::new("replayed_ns", "replayed", Kind::Time).in_unit_of("gpu").droppable(8)),
        Column::new("replayed_kernels", "replayed kernels", Kind::Count).in_csv_only(),
    ];
    let shown: HashSet<RangePath> = rows.iter().map(|row| row.parents.inside(&row.name)).collect();
    // Whole paths are written out for what is shown alone: of hundreds of thousands they take more room than all else.
    let limit = limit.unwrap_or(rows.len()).min(rows.len());
    let body = rows[..limit]
        .iter()
        .map(|row| {
            let cells = vec![
                match layout {
                    RangeLayout::Tree => text(&row.name),
                    RangeLayout::Paths => text(&path(row)),
                },
                text(&row.name),
                text(&row.parents.names().join(" / ")),
                Value::Count(row.parents.len() as u64),
                Value::Count(row.calls),
                Value::Time(row.cpu_ns),
                Value::time(row.gpu_span_ns),
                Value::time(row.gpu_busy_ns),
                Value::time(row.gpu_idle_ns),
                Value::share(row.gpu_busy_ns, row.gpu_span_ns),
                Value::Count(row.kernels),
                Value::time(row.replayed_ns),
                Value::Count(row.replayed_kernels),
            ];
            Row { cells, depth: if layout == RangeLayout::Tree { shown_parents(row, &shown) } else { 0 }, lines: Vec::new() }
        })
        .collect();
    Table {
        noun: "ranges",
        columns,
        rows: body,
        totals: Vec::new(),
        hidden: rows.len() - limit,
        filtered_out: 0,
        empty: None,
        notes: has_replays.then(|| REPLAYED.to_owned()).into_iter().collect(),
    }
}

/// How many of the ranges around `row` have a row of their own: one is indented below what is there.
fn shown_parents(row: &RangeRow, shown: &HashSet<RangePath>) -> usize {
    row.parents.and_around().filter(|path| shown.contains(path)).count()
}

fn path(row: &RangeRow) -> String {
    row.parents.names().into_iter().chain([row.name.as_str()]).collect::<Vec<_>>().join(" / ")
}
