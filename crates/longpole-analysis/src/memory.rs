//! Allocator events by operator: allocated, freed, net and peak, kept apart.

use longpole_trace::MemoryPlace;

/// Allocations of one operator on host or device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryRow {
    /// Operator name; `(outside any operator)` for the rest.
    pub name: String,
    /// Host or device memory.
    pub place: MemoryPlace,
    /// Calls of the operator that allocated or freed.
    pub calls: u64,
    /// Allocations made by the operator itself (its children not counted).
    pub allocations: u64,
    /// Bytes it allocated itself.
    pub allocated_bytes: u64,
    /// Bytes it freed itself.
    pub freed_bytes: u64,
    /// Allocated minus freed.
    pub net_bytes: i64,
    /// The most that one call held above what was live when it began, children included.
    pub peak_bytes: u64,
}

/// The memory table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryTable {
    /// Rows, most allocated first.
    pub rows: Vec<MemoryRow>,
    /// Largest `total allocated` the allocator reported on a device, if any.
    pub peak_allocated_bytes: Option<u64>,
    /// Largest `total reserved` the allocator reported on a device, if any.
    pub peak_reserved_bytes: Option<u64>,
}
