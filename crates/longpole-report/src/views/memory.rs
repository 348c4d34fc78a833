//! The memory table.

use longpole_analysis::{MemoryRow, MemoryTable};
use longpole_trace::{MemoryPlace, Recorder};

use super::{text, total_label};
use crate::table::{Column, Kind, Row, Table, Value};
use crate::units::bytes;

/// `value` as the signed number cells hold.
fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// The memory table.
pub fn memory(table: &MemoryTable, recorder: Recorder) -> Table {
    let advice = recorder.advice();
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
    // Bytes of the host and of the device are not added up.
    let totals = [MemoryPlace::Device, MemoryPlace::Host]
        .into_iter()
        .filter_map(|at| {
            let there: Vec<_> = table.rows.iter().filter(|row| row.place == at).collect();
            let sum = |bytes: fn(&MemoryRow) -> u64| Value::Bytes(signed(there.iter().map(|row| bytes(row)).fold(0, u64::saturating_add)));
            let cells = vec![
                total_label(there.len(), "row", "rows"),
                text(place(at)),
                Value::Blank,
                Value::Count(there.iter().map(|row| row.allocations).sum()),
                sum(|row| row.allocated_bytes),
                sum(|row| row.freed_bytes),
                Value::Bytes(there.iter().map(|row| row.net_bytes).fold(0, i64::saturating_add)),
                // Peaks of different operators happen at different times.
                Value::Blank,
            ];
            (!there.is_empty()).then(|| Row::new(cells))
        })
        .collect();
    let mut notes = Vec::new();
    if let Some(peak) = table.peak_allocated_bytes {
        let reserved = table.peak_reserved_bytes.map_or_else(String::new, |r| format!(", reserved {}", bytes(signed(r))));
        notes.push(format!("largest total the device allocator reported: allocated {}{reserved}", bytes(signed(peak))));
    }
    Table {
        noun: "allocations",
        columns,
        rows,
        totals,
        hidden: 0,
        filtered_out: 0,
        empty: (!table.is_recorded).then_some(advice.no_memory),
        notes,
    }
}
