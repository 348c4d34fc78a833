//! The family table.

use longpole_analysis::FamilyRow;

use super::{sum_times, text, total_label};
use crate::table::{Column, Kind, Row, Table, Value};

/// The family table.
pub fn families(rows: &[FamilyRow]) -> Table {
    let columns = vec![
        Column::new("family", "family", Kind::Text),
        Column::new("calls", "calls", Kind::Count),
        Column::new("self_cuda_ns", "CUDA", Kind::Time),
        Column::new("share_fraction", "share", Kind::Share),
        Column::new("bar", "", Kind::Bar).droppable(1),
    ];
    let share = |row: &FamilyRow| row.share_fraction.map_or(Value::Missing, Value::Share);
    let body: Vec<_> = rows
        .iter()
        .map(|row| Row::new(vec![text(row.family.name()), Value::Count(row.calls), Value::Time(row.self_cuda_ns), share(row), share(row)]))
        .collect();
    let shares: Option<f64> = rows.iter().map(|r| r.share_fraction).sum();
    let total = Row::new(vec![
        total_label(body.len(), "family", "families"),
        Value::Count(rows.iter().map(|r| r.calls).sum()),
        Value::Time(sum_times(rows.iter(), |r| r.self_cuda_ns)),
        shares.filter(|_| !rows.is_empty()).map_or(Value::Blank, Value::Share),
        Value::Blank,
    ]);
    Table { noun: "families", columns, rows: body, totals: vec![total], hidden: 0, filtered_out: 0, empty: None, notes: Vec::new() }
}
