//! Allocator events by operator: allocated, freed, net and peak, kept apart.
//!
//! An event belongs to the innermost operator of its own thread around it; ranges and API calls in between do not count.

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use longpole_trace::{MemoryPlace, StrId};

use crate::index::{HostTree, NodeId, TraceIndex};
use crate::scope::Scope;

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

/// What one call of an operator holds, while events are read in order of time.
#[derive(Clone, Copy, Default)]
struct Held {
    /// Its own events and those of its descendants, summed so far.
    bytes: i64,
    /// The most that sum ever was.
    peak: i64,
    /// Whether it made an event itself.
    acts: bool,
}

/// The memory table of a scope.
pub fn memory_table(index: &TraceIndex<'_>, scope: &Scope) -> MemoryTable {
    let (trace, tree) = (index.trace(), index.tree());
    let memory = &trace.memory;
    let nodes: Vec<Option<NodeId>> = index.allocation_nodes().map(|node| node.and_then(|node| tree.enclosing_op(node))).collect();
    let mut held: HashMap<(MemoryPlace, Option<NodeId>), Held, FixedState> = HashMap::default();
    let mut rows: HashMap<(MemoryPlace, Option<StrId>), MemoryRow, FixedState> = HashMap::default();
    let (mut peak_allocated, mut peak_reserved) = (None, None);
    // Time order over all threads: what happens outside operators is one sum.
    let mut in_time: Vec<usize> = (0..memory.len()).collect();
    in_time.sort_by_key(|&row| memory.start[row]);
    for row in in_time {
        if !scope.includes_host(trace, memory.thread[row], memory.start[row]) {
            continue;
        }
        let (place, bytes) = (memory.place[row], memory.bytes[row]);
        if place == MemoryPlace::Device {
            peak_allocated = peak_allocated.max(memory.total_allocated(row));
            peak_reserved = peak_reserved.max(memory.total_reserved(row));
        }
        let of_name = rows.entry((place, nodes[row].map(|node| tree.name(node)))).or_insert_with_key(|&(place, name)| MemoryRow {
            name: name.map_or("(outside any operator)", |name| trace.strings.get(name)).to_owned(),
            place,
            calls: 0,
            allocations: 0,
            allocated_bytes: 0,
            freed_bytes: 0,
            net_bytes: 0,
            peak_bytes: 0,
        });
        if bytes >= 0 {
            of_name.allocations += 1;
            of_name.allocated_bytes = of_name.allocated_bytes.saturating_add(bytes.unsigned_abs());
        } else {
            of_name.freed_bytes = of_name.freed_bytes.saturating_add(bytes.unsigned_abs());
        }
        of_name.net_bytes = of_name.net_bytes.saturating_add(bytes);
        held.entry((place, nodes[row])).or_default().acts = true;
        for node in around(tree, nodes[row]) {
            let held = held.entry((place, node)).or_default();
            held.bytes = held.bytes.saturating_add(bytes);
            held.peak = held.peak.max(held.bytes);
        }
    }
    for ((place, node), held) in held {
        // An operator with no event of its own has no row, whatever its children did.
        if let Some(row) = rows.get_mut(&(place, node.map(|node| tree.name(node)))) {
            row.calls += u64::from(held.acts && node.is_some());
            row.peak_bytes = row.peak_bytes.max(held.peak.unsigned_abs());
        }
    }
    let mut rows: Vec<MemoryRow> = rows.into_values().collect();
    rows.sort_by(|a, b| {
        (b.allocated_bytes, b.freed_bytes)
            .cmp(&(a.allocated_bytes, a.freed_bytes))
            .then_with(|| (&a.name, a.place).cmp(&(&b.name, b.place)))
    });
    MemoryTable { rows, peak_allocated_bytes: peak_allocated, peak_reserved_bytes: peak_reserved }
}

/// An operator and the operators around it; only itself where there is none.
fn around<'a>(tree: &'a HostTree<'_>, node: Option<NodeId>) -> impl Iterator<Item = Option<NodeId>> + use<'a> {
    std::iter::successors(Some(node), move |node| {
        let outer = node.and_then(|node| tree.parent(node)).and_then(|outer| tree.enclosing_op(outer));
        outer.map(Some)
    })
}
