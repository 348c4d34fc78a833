//! Builds the host tree: one sweep over each thread's events in nesting order, merging the three tables on the fly.
//!
//! No merged event list is made: fresh memory costs more than the merge, and the tables are mostly in order already.

use longpole_trace::{Ns, StrId, Trace};

use super::NONE;
use super::order::{Order, end_of};
use super::tree::HostTree;

/// Operators that torch leaves out of its table and its tree: the profiler's own, and accessors that take no time.
const DROPPED_NAMES: [&str; 6] = [
    "profiler::_record_function_enter",
    "profiler::_record_function_enter_new",
    "profiler::_record_function_exit",
    "aten::is_leaf",
    "aten::output_nr",
    "aten::_version",
];

/// One table of one thread, read in order.
struct Cursor<'a> {
    order: &'a Order,
    name: &'a [StrId],
    start: &'a [Ns],
    dur: &'a [Ns],
    /// Number of the table's first row among all host rows.
    base: u32,
    at: usize,
    until: usize,
    head: Head,
}

#[derive(Clone, Copy)]
struct Head {
    row: u32,
    name: StrId,
    start: Ns,
    end: Ns,
}

/// Sorts after every event, and marks a table that has been read to its end.
const EXHAUSTED: Head = Head { row: NONE, name: StrId(NONE), start: Ns::MAX, end: Ns::MIN };

impl<'a> Cursor<'a> {
    fn new(order: &'a Order, name: &'a [StrId], start: &'a [Ns], dur: &'a [Ns], base: usize) -> Self {
        Self { order, name, start, dur, base: base as u32, at: 0, until: 0, head: EXHAUSTED }
    }

    fn enter_thread(&mut self, thread: usize) {
        let positions = self.order.thread(thread);
        (self.at, self.until) = (positions.start, positions.end);
        self.advance();
    }

    fn advance(&mut self) {
        if self.at == self.until {
            self.head = EXHAUSTED;
            return;
        }
        let row = self.order.row(self.at);
        self.at += 1;
        let at = row as usize;
        let start = self.start[at];
        self.head = Head { row: self.base + row, name: self.name[at], start, end: end_of(start, self.dur[at]) };
    }

    fn next(&mut self) -> Head {
        let head = self.head;
        self.advance();
        head
    }
}

/// True when `a` comes before `b`, a table that wins ties.
fn before(a: &Head, b: &Head) -> bool {
    (a.start, b.end) < (b.start, a.end)
}

/// An event that later ones may still fit into.
struct Open {
    node: u32,
    end: Ns,
    name: StrId,
    children: u32,
    /// Name of the first child.
    child_name: StrId,
    /// End of the union of its children so far.
    covered_until: Ns,
}

struct Sweep {
    row: Vec<u32>,
    parent: Vec<u32>,
    stack: Vec<Open>,
    folded: Vec<u32>,
    shared: Vec<(u32, Ns)>,
    partial_overlaps: u64,
    /// First operator and first API call among all host rows.
    first_op: u32,
    first_api: u32,
}

impl Sweep {
    fn kind(&self, row: u32) -> u8 {
        u8::from(row >= self.first_op) + u8::from(row >= self.first_api)
    }

    fn close(&mut self) {
        let Some(open) = self.stack.pop() else { return };
        if open.children == 1 && open.child_name == open.name {
            // Depth-first numbering: the first child follows its parent.
            let (row, child) = (self.row[open.node as usize], self.row[open.node as usize + 1]);
            if self.kind(row) == self.kind(child) {
                self.folded.push(open.node + 1);
            }
        }
    }

    fn open(&mut self, event: Head) {
        let mut overlaps = false;
        while let Some(top) = self.stack.last() {
            if event.start < top.end {
                if event.end <= top.end {
                    break;
                }
                overlaps = true;
            }
            self.close();
        }
        self.partial_overlaps += u64::from(overlaps);
        let node = self.row.len() as u32;
        let parent = match self.stack.last_mut() {
            Some(top) => {
                if top.children == 0 {
                    top.child_name = event.name;
                } else if event.start < top.covered_until {
                    self.shared.push((top.node, top.covered_until.min(event.end) - event.start));
                }
                top.children += 1;
                top.covered_until = top.covered_until.max(event.end);
                top.node
            }
            None => NONE,
        };
        self.row.push(event.row);
        self.parent.push(parent);
        self.stack.push(Open { node, end: event.end, name: event.name, children: 0, child_name: event.name, covered_until: Ns::MIN });
    }

    /// The innermost open event that holds `event`, without closing any.
    fn around(&self, event: Head) -> u32 {
        self.stack.iter().rev().find(|open| event.start < open.end && event.end <= open.end).map_or(NONE, |open| open.node)
    }

    fn close_all(&mut self) {
        while !self.stack.is_empty() {
            self.close();
        }
    }
}

pub(super) fn build(trace: &Trace) -> HostTree<'_> {
    let (ranges, ops, calls) = (&trace.ranges, &trace.host_ops, &trace.api_calls);
    let threads = trace.threads.len();
    let (op_order, (range_order, call_order)) = rayon::join(
        || Order::nesting(threads, &ops.thread, &ops.start, &ops.dur),
        || {
            (
                Order::nesting(threads, &ranges.thread, &ranges.start, &ranges.dur),
                Order::nesting(threads, &calls.thread, &calls.start, &calls.dur),
            )
        },
    );
    let first_op = ranges.len();
    let first_api = first_op + ops.len();
    let total = first_api + calls.len();
    let mut range = Cursor::new(&range_order, &ranges.name, &ranges.start, &ranges.dur, 0);
    let mut op = Cursor::new(&op_order, &ops.name, &ops.start, &ops.dur, first_op);
    let mut call = Cursor::new(&call_order, &calls.name, &calls.start, &calls.dur, first_api);

    let dropped_names: Vec<StrId> = DROPPED_NAMES.iter().filter_map(|name| trace.strings.find(name)).collect();
    let mut dropped = Vec::new();
    let mut sweep = Sweep {
        row: Vec::with_capacity(total),
        parent: Vec::with_capacity(total),
        stack: Vec::new(),
        folded: Vec::new(),
        shared: Vec::new(),
        partial_overlaps: 0,
        first_op: first_op as u32,
        first_api: first_api as u32,
    };
    let mut thread_first = Vec::with_capacity(threads + 1);
    for thread in 0..threads {
        thread_first.push(sweep.row.len() as u32);
        range.enter_thread(thread);
        op.enter_thread(thread);
        call.enter_thread(thread);
        loop {
            let host = if before(&op.head, &range.head) { &mut op } else { &mut range };
            let next = if before(&call.head, &host.head) { &mut call } else { host };
            let event = next.next();
            if event.row == NONE {
                break;
            }
            let is_dropped = dropped_names.contains(&event.name) && sweep.kind(event.row) == 1;
            if is_dropped {
                dropped.push((event.row, sweep.around(event)));
            } else {
                sweep.open(event);
            }
        }
        sweep.close_all();
    }
    thread_first.push(sweep.row.len() as u32);
    finish(trace, sweep, thread_first, &dropped, total)
}

/// Removes the folded nodes and maps rows to nodes.
fn finish<'t>(trace: &'t Trace, sweep: Sweep, mut thread_first: Vec<u32>, dropped: &[(u32, u32)], total: usize) -> HostTree<'t> {
    let Sweep { mut row, mut parent, mut folded, mut shared, partial_overlaps, first_op, first_api, .. } = sweep;
    let mut node_of_row = vec![NONE; total];
    if folded.is_empty() {
        for (node, &row) in row.iter().enumerate() {
            node_of_row[row as usize] = node as u32;
        }
    } else {
        folded.sort_unstable();
        let mut new_id = vec![NONE; row.len()];
        let mut kept = 0;
        let mut fold = folded.iter().copied().peekable();
        let mut threads = thread_first.iter_mut().peekable();
        for old in 0..row.len() {
            while let Some(first) = threads.next_if(|first| **first as usize <= old) {
                *first = kept;
            }
            let outer = if parent[old] == NONE { NONE } else { new_id[parent[old] as usize] };
            let id = if fold.next_if_eq(&(old as u32)).is_some() {
                outer
            } else {
                row[kept as usize] = row[old];
                parent[kept as usize] = outer;
                kept += 1;
                kept - 1
            };
            // The row at `old` is still the old one when `old` was folded: only slots before it have been rewritten.
            node_of_row[row[old] as usize] = id;
            new_id[old] = id;
        }
        threads.for_each(|first| *first = kept);
        row.truncate(kept as usize);
        parent.truncate(kept as usize);
        for (node, _) in &mut shared {
            *node = new_id[*node as usize];
        }
        for &(row, around) in dropped {
            node_of_row[row as usize] = if around == NONE { NONE } else { new_id[around as usize] };
        }
    }
    if folded.is_empty() {
        for &(row, around) in dropped {
            node_of_row[row as usize] = around;
        }
    }
    shared.sort_unstable();
    let (folded, op_around) = (folded.len() as u64, std::sync::OnceLock::new());
    HostTree { trace, first_op, first_api, row, parent, node_of_row, thread_first, shared, partial_overlaps, folded, op_around }
}
