//! `longpole.memory/1`

use longpole_analysis::{MemoryRow, MemoryTable};
use longpole_trace::MemoryPlace;
use serde::Serialize;

use crate::header::Header;

#[derive(Serialize)]
struct Memory<'a> {
    name: &'a str,
    place: &'static str,
    calls: u64,
    allocations: u64,
    allocated_bytes: u64,
    freed_bytes: u64,
    net_bytes: i64,
    peak_bytes: u64,
}

#[derive(Serialize)]
struct Body<'a> {
    recorded: bool,
    peak_allocated_bytes: Option<u64>,
    peak_reserved_bytes: Option<u64>,
    memory: Vec<Memory<'a>>,
}

fn memory_row(row: &MemoryRow) -> Memory<'_> {
    Memory {
        name: &row.name,
        place: match row.place {
            MemoryPlace::Host => "host",
            MemoryPlace::Device => "device",
        },
        calls: row.calls,
        allocations: row.allocations,
        allocated_bytes: row.allocated_bytes,
        freed_bytes: row.freed_bytes,
        net_bytes: row.net_bytes,
        peak_bytes: row.peak_bytes,
    }
}

/// The document of `longpole memory`.
pub fn memory<'a>(header: &Header<'a>, table: &'a MemoryTable) -> impl Serialize + 'a {
    let body = Body {
        recorded: table.is_recorded,
        peak_allocated_bytes: table.peak_allocated_bytes,
        peak_reserved_bytes: table.peak_reserved_bytes,
        memory: table.rows.iter().map(memory_row).collect(),
    };
    super::document("longpole.memory/1", header, body)
}
