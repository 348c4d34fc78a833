//! The kernel table.

use longpole_analysis::KernelRow;
use longpole_trace::Ns;

use super::{sum_times, text, total_label};
use crate::table::{Column, Kind, Row, Table, Value};

/// The kernel table. `total` is the device time of the whole scope, which shares are of; `full_names` shows kernel names as
/// the compiler wrote them.
pub fn kernels(rows: &[KernelRow], total: Ns, full_names: bool) -> Table {
    let (full, short) =
        (Column::new("name", "kernel", Kind::Text).at_least(28), Column::new("short_name", "kernel", Kind::Text).at_least(28));
    let columns = vec![
        if full_names { full } else { short },
        if full_names { short.in_csv_only() } else { full.in_csv_only() },
        Column::new("family", "family", Kind::Text).droppable(4),
        Column::new("calls", "calls", Kind::Count).droppable(7),
        Column::new("cuda_ns", "CUDA", Kind::Time).droppable(8),
        Column::new("share_fraction", "share", Kind::Share).droppable(5),
        Column::new("min_ns", "min", Kind::Time).in_unit_of("call").droppable(2),
        Column::new("median_ns", "median", Kind::Time).in_unit_of("call").droppable(3),
        Column::new("max_ns", "max", Kind::Time).in_unit_of("call").droppable(1),
        Column::new("op", "launched by", Kind::Text).droppable(6).not_in_csv(),
        Column::new("op", "", Kind::Text).in_csv_only(),
        Column::new("other_ops", "", Kind::Count).in_csv_only(),
    ];
    let body: Vec<_> = rows
        .iter()
        .map(|row| {
            let (full, short) = (text(&row.name), text(&row.short_name));
            let (first, second) = if full_names { (full, short) } else { (short, full) };
            Row::new(vec![
                first,
                second,
                text(row.family.name()),
                Value::Count(row.calls),
                Value::Time(row.cuda_ns),
                Value::share(Some(row.cuda_ns), Some(total)),
                Value::Time(row.min_ns),
                Value::Time(row.median_ns),
                Value::Time(row.max_ns),
                launchers(row),
                row.owners.first().map_or(Value::Missing, |owner| text(&owner.name)),
                Value::Count(row.owners.len().saturating_sub(1) as u64),
            ])
        })
        .collect();
    let cuda = sum_times(rows.iter(), |r| r.cuda_ns);
    let last = Row::new(vec![
        total_label(body.len(), "row", "rows"),
        Value::Blank,
        Value::Blank,
        Value::Count(rows.iter().map(|r| r.calls).sum()),
        Value::Time(cuda),
        Value::share(Some(cuda), Some(total)),
        Value::Blank,
        Value::Blank,
        Value::Blank,
        Value::Blank,
        Value::Blank,
        Value::Blank,
    ]);
    Table { noun: "kernels", columns, rows: body, totals: vec![last], hidden: 0, filtered_out: 0, empty: None, notes: Vec::new() }
}

/// The operator that launched most of it, and how many others did.
fn launchers(row: &KernelRow) -> Value {
    let Some(first) = row.owners.first() else { return Value::Missing };
    match row.owners.len() {
        1 => text(&first.name),
        n => Value::Text(format!("{} +{}", first.name, n - 1)),
    }
}
