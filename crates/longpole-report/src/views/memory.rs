//! The memory table.

use longpole_analysis::MemoryTable;
use longpole_trace::MemoryPlace;

use super::{text, total_label};
use crate::table::{Column, Kind, Row, Table, Value};
use crate::units::bytes;

/// `value` as the signed number cells hold.
fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// The memory table.
pub fn memory(table: &MemoryTable) -> Table {
    let columns = vec![
        Column::new("name", "operator", Kind::Text).at_least(28),
        Column::new("place", "memory", Kind::Text),
        Column::new("calls", "calls", Kind::Count).droppable(1),
        Column::new("allocations", "allocations", Kind::Count).droppable(2),
        Column::new("allocated_bytes", "allocated", Kind::Bytes).droppable(6),
        Column::new("freed_bytes", "freed", Kind::Bytes).droppable(3),
        Column::new("net_bytes", "net", Kind::Bytes).droppable(4),
        Column::new("peak_bytes", "peak", Kind::Bytes).droppable(5),
    ];
    let place = |place| match place {
        MemoryPlace::Host => "host",
        MemoryPlace::Device => "device",
    };
    let rows: Vec<_> = table
        .rows
        .iter()
        .map(|row| {
            Row::new(vec![
                text(&row.name),
                text(place(row.place)),
                Value::Count(row.calls),
                Value::Count(row.allocations),
                Value::Bytes(signed(row.allocated_bytes)),
                Value::Bytes(signed(row.freed_bytes)),
                Value::Bytes(row.net_bytes),
                Value::Bytes(signed(row.peak_bytes)),
            ])
        })
        .collect();
    let sum =
        |bytes: fn(&longpole_analysis::MemoryRow) -> u64| Value::Bytes(signed(table.rows.iter().map(bytes).fold(0, u64::saturating_add)));
    let total = Row::new(vec![
        total_label(rows.len(), "rows"),
        Value::Blank,
        Value::Blank,
        Value::Count(table.rows.iter().map(|r| r.allocations).sum()),
        sum(|r| r.allocated_bytes),
        sum(|r| r.freed_bytes),
        Value::Bytes(table.rows.iter().map(|r| r.net_bytes).fold(0, i64::saturating_add)),
        // Peaks of different operators happen at different times.
        Value::Blank,
    ]);
    let mut notes = Vec::new();
    if let Some(peak) = table.peak_allocated_bytes {
        let reserved = table.peak_reserved_bytes.map_or_else(String::new, |r| format!(", reserved {}", bytes(signed(r))));
        notes.push(format!("largest total the device allocator reported: allocated {}{reserved}", bytes(signed(peak))));
    }
    Table { noun: "allocations", columns, rows, total: Some(total), hidden: 0, filtered_out: 0, empty: Some(super::NO_MEMORY), notes }
}
