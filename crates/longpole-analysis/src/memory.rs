//! Allocator events by operator: allocated, freed, net and peak, kept apart.
//!
//! An event belongs to the operator around the innermost host event of its own thread with `start <= at <= end`; ranges and API calls
//! have no rows here.

use std::num::NonZeroU32;

use longpole_trace::{MemoryPlace, Ns, StrId, ThreadId, Trace};

use crate::index::order::{Order, end_of};
use crate::index::{HostRow, NodeId, TraceIndex};
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
    /// Whether the trace has memory events at all, in scope or not.
    pub is_recorded: bool,
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

impl Held {
    fn add(&mut self, bytes: i64) {
        self.bytes = self.bytes.saturating_add(bytes);
        self.peak = self.peak.max(self.bytes);
    }

    /// Adds what a call inside held from its first event to its end. Meanwhile no other event was this call's.
    fn add_inner(&mut self, inner: Self) {
        self.peak = self.peak.max(self.bytes.saturating_add(inner.peak));
        self.bytes = self.bytes.saturating_add(inner.bytes);
    }
}

fn number(place: MemoryPlace) -> usize {
    usize::from(place == MemoryPlace::Device)
}

/// A host event that is open, or ended and not yet followed by another.
struct Open {
    node: NodeId,
    end: Ns,
    /// Name, if it is an operator.
    operator: Option<StrId>,
    /// Position of the innermost operator on the stack, this one included.
    innermost: Option<usize>,
    held: [Held; 2],
}

/// The memory table of a scope.
pub fn memory_table(index: &TraceIndex<'_>, scope: &Scope) -> MemoryTable {
    let trace = index.trace();
    let mut rows = Rows { trace, list: Vec::new(), by_name: vec![[Slot::default(); 2]; trace.strings.len() + 1] };
    let order = Order::by(trace.threads.len(), &trace.memory.thread, |row| trace.memory.start[row]);
    let mut outside = Vec::new();
    for thread in 0..trace.threads.len() {
        let events = order.thread(thread).map(|position| order.row(position) as usize);
        let inside = |&row: &usize| scope.includes_host(trace, trace.memory.thread[row], trace.memory.start[row]);
        walk(index, ThreadId::from_index(thread), events.filter(inside), &mut rows, &mut outside);
    }
    // What happens outside operators is one sum over all threads.
    outside.sort_unstable_by_key(|&row| (trace.memory.start[row], row));
    let mut held = [Held::default(); 2];
    for row in outside {
        held[number(trace.memory.place[row])].add(trace.memory.bytes[row]);
        rows.add_event(None, row);
    }
    rows.close(None, &held);
    rows.into_table(scope)
}

/// Reads a thread's events and host events together, in order of time. Events in no operator are left in `outside`.
fn walk(index: &TraceIndex<'_>, thread: ThreadId, events: impl Iterator<Item = usize>, rows: &mut Rows<'_>, outside: &mut Vec<usize>) {
    let (trace, tree) = (index.trace(), index.tree());
    let mut nodes = tree.thread_nodes(thread).map(|node| NodeId(node as u32)).peekable();
    let mut stack: Vec<Open> = Vec::new();
    for event in events {
        let (at, bytes, place) = (trace.memory.start[event], trace.memory.bytes[event], number(trace.memory.place[event]));
        while let Some(node) = nodes.next_if(|&node| tree.start(node) <= at) {
            let parent = tree.parent(node);
            while let Some(done) = stack.pop_if(|top| Some(top.node) != parent) {
                close(&done, &mut stack, rows);
            }
            let (row, start, dur) = tree.event(node);
            let operator = if let HostRow::Op(id) = row { Some(trace.host_ops.name[id.index()]) } else { None };
            let innermost = if operator.is_some() { Some(stack.len()) } else { stack.last().and_then(|around| around.innermost) };
            stack.push(Open { node, end: end_of(start, dur), operator, innermost, held: [Held::default(); 2] });
        }
        // What ended before has no more events and no more children.
        while let Some(done) = stack.pop_if(|top| top.end < at) {
            close(&done, &mut stack, rows);
        }
        let Some(operator) = stack.last().and_then(|top| top.innermost).and_then(|at| stack.get_mut(at)) else {
            outside.push(event);
            continue;
        };
        operator.held[place].acts = true;
        operator.held[place].add(bytes);
        rows.add_event(operator.operator, event);
    }
    while let Some(done) = stack.pop() {
        close(&done, &mut stack, rows);
    }
}

/// Ends what was on top of the stack. What it held goes to the operator around it only now: handed to all of them at every event, it
/// would cost the square of the depth.
fn close(done: &Open, stack: &mut [Open], rows: &mut Rows<'_>) {
    if done.operator.is_none() {
        return;
    }
    rows.close(done.operator, &done.held);
    if let Some(around) = stack.last().and_then(|top| top.innermost).and_then(|at| stack.get_mut(at)) {
        for (held, inner) in around.held.iter_mut().zip(done.held) {
            held.add_inner(inner);
        }
    }
}

/// What is known of a name at a place.
#[derive(Clone, Copy, Default)]
struct Slot {
    /// Position of its row, once it has made an event itself.
    row: Option<NonZeroU32>,
    /// The most that one call held; kept apart because a call without events of its own may end before the row is there.
    peak: i64,
}

/// Rows while they are filled: by name, the last for events outside any operator, and by place.
struct Rows<'t> {
    trace: &'t Trace,
    list: Vec<(usize, MemoryRow)>,
    by_name: Vec<[Slot; 2]>,
}

impl Rows<'_> {
    fn slot(&self, operator: Option<StrId>) -> usize {
        operator.map_or(self.by_name.len() - 1, StrId::index)
    }

    /// Counts an event made by an operator itself.
    fn add_event(&mut self, operator: Option<StrId>, event: usize) {
        let (bytes, place) = (self.trace.memory.bytes[event], self.trace.memory.place[event]);
        let slot = self.slot(operator);
        let known = &mut self.by_name[slot][number(place)].row;
        if known.is_none() {
            let name = operator.map_or("(outside any operator)", |name| self.trace.strings.get(name)).to_owned();
            let (calls, allocations, allocated_bytes, freed_bytes, net_bytes, peak_bytes) = (0, 0, 0, 0, 0, 0);
            self.list.push((slot, MemoryRow { name, place, calls, allocations, allocated_bytes, freed_bytes, net_bytes, peak_bytes }));
            *known = NonZeroU32::new(self.list.len() as u32);
        }
        let Some((_, row)) = known.and_then(|row| self.list.get_mut(row.get() as usize - 1)) else { return };
        if bytes >= 0 {
            row.allocations += 1;
            row.allocated_bytes = row.allocated_bytes.saturating_add(bytes.unsigned_abs());
        } else {
            row.freed_bytes = row.freed_bytes.saturating_add(bytes.unsigned_abs());
        }
        row.net_bytes = row.net_bytes.saturating_add(bytes);
    }

    /// Ends a call. If it made events itself, its row is there.
    fn close(&mut self, operator: Option<StrId>, held: &[Held; 2]) {
        let slot = self.slot(operator);
        for (known, held) in self.by_name[slot].iter_mut().zip(held) {
            known.peak = known.peak.max(held.peak);
            if held.acts
                && let Some((_, row)) = known.row.and_then(|row| self.list.get_mut(row.get() as usize - 1))
            {
                row.calls += 1;
            }
        }
    }

    fn into_table(self, scope: &Scope) -> MemoryTable {
        let memory = &self.trace.memory;
        let on_device = |&row: &usize| {
            memory.place[row] == MemoryPlace::Device && scope.includes_host(self.trace, memory.thread[row], memory.start[row])
        };
        let events = || (0..memory.len()).filter(on_device);
        let peak_allocated_bytes = events().filter_map(|row| memory.total_allocated(row)).max();
        let peak_reserved_bytes = events().filter_map(|row| memory.total_reserved(row)).max();
        let peak = |slot: usize, place| self.by_name[slot][number(place)].peak.unsigned_abs();
        let with_peak = |(slot, row): (usize, MemoryRow)| MemoryRow { peak_bytes: peak(slot, row.place), ..row };
        let mut rows: Vec<MemoryRow> = self.list.into_iter().map(with_peak).collect();
        rows.sort_by(|a, b| {
            let most_first = (b.allocated_bytes, b.freed_bytes).cmp(&(a.allocated_bytes, a.freed_bytes));
            most_first.then_with(|| (&a.name, a.place).cmp(&(&b.name, b.place)))
        });
        MemoryTable { is_recorded: self.trace.recorded.memory || !memory.is_empty(), rows, peak_allocated_bytes, peak_reserved_bytes }
    }
}
