//! What a thread was doing at each moment in which a device waited for it.
//!
//! One pass over a thread's events in order of start. Operators, calls, ranges and Python functions are kept on a stack each; an
//! entry that has ended is dropped when it comes to the top, so that the top is the latest started of those still open, whether
//! or not events nest. Of the tops the latest started is the innermost. No list of changes is made: the pass stops only at
//! changes inside a gap.

use longpole_trace::{Interval, Ns, StrId, ThreadId, Trace};

use super::names::{Work, WorkOfName};
use super::types::{FrameKind, HostFrame, IdleCause, IdleTable};
use crate::index::order::{Order, end_of};
use crate::index::{HostRow, NodeId, TraceIndex};
use crate::profiler_overhead::is_profilers_own;
use crate::smells::is_loading_overhead;

/// The part of a gap before its launch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Query {
    pub(super) start: Ns,
    pub(super) end: Ns,
    pub(super) gap: u32,
}

/// Takes what was found: stretches of each gap, in order.
pub(super) trait Found {
    /// A stretch of a gap, without a hole after the one before.
    fn stretch(&mut self, gap: u32, start: Ns, end: Ns, state: State);
    /// The part before the launch is complete.
    fn done(&mut self, gap: u32);
    /// A gap was not split.
    fn unsplit(&mut self);
}

/// What the host was doing.
pub(super) type State = (IdleCause, HostFrame);

/// Looks at threads.
pub(super) struct Host<'a, 't> {
    index: &'a TraceIndex<'t>,
    frames: Order,
    os_calls: Order,
    calls: WorkOfName,
    ops: WorkOfName,
    python: WorkOfName,
    /// One bit an API call: it copies from or to pageable memory, and returns only when that is done.
    pageable: Vec<u64>,
    records: &'a Overheads,
}

impl<'a, 't> Host<'a, 't> {
    pub(super) fn new(index: &'a TraceIndex<'t>, records: &'a Overheads) -> Self {
        let trace = index.trace();
        let (frames, os_calls) = (&trace.frames, &trace.os_calls);
        Self {
            index,
            frames: Order::nesting(trace.threads.len(), &frames.thread, &frames.start, &frames.dur),
            os_calls: Order::nesting(trace.threads.len(), &os_calls.thread, &os_calls.start, &os_calls.dur),
            calls: WorkOfName::of_calls(trace),
            ops: WorkOfName::of_ops(trace),
            python: WorkOfName::of_frames(trace),
            pageable: pageable_copies(index),
            records,
        }
    }

    /// Goes through a thread. `queries` are in order of start.
    pub(super) fn run(&mut self, thread: ThreadId, queries: impl Iterator<Item = Query>, found: &mut impl Found) {
        let mut sweep = Thread::new(self, thread);
        let mut waiting = queries.peekable();
        let mut active: Vec<Query> = Vec::new();
        let mut now = Ns::MIN;
        while let Some(begin) = active.first().map(|_| now).or_else(|| waiting.peek().map(|query| query.start)) {
            now = begin;
            sweep.advance(now);
            let (state, mut next) = sweep.state(now);
            while let Some(query) = waiting.next_if(|query| query.start <= now) {
                if active.len() < IdleTable::SPLIT_TOGETHER {
                    active.push(query);
                } else {
                    found.stretch(query.gap, query.start, query.end, state);
                    found.done(query.gap);
                    found.unsplit();
                }
            }
            if let Some(query) = waiting.peek() {
                next = next.min(query.start);
            }
            for query in &active {
                next = next.min(query.end);
            }
            for query in &active {
                found.stretch(query.gap, now, next, state);
            }
            active.retain(|query| {
                if query.end <= next {
                    found.done(query.gap);
                }
                query.end > next
            });
            now = next;
        }
    }
}

/// Copies from or to pageable memory, by their call.
fn pageable_copies(index: &TraceIndex<'_>) -> Vec<u64> {
    use longpole_trace::{ActivityId, ActivityKind, Detail, Transfer};
    let trace = index.trace();
    let mut pageable = vec![0; trace.api_calls.len().div_ceil(64)];
    for (row, kind) in trace.activities.kind.iter().enumerate() {
        if *kind != ActivityKind::Memcpy {
            continue;
        }
        let detail = trace.activities.detail(row).map(|detail| trace.details[detail.index()]);
        let says = match detail {
            Some(Detail::Transfer(Transfer { pageable: Some(pageable), .. })) => pageable,
            _ => trace.strings.get(trace.activities.name[row]).contains("Pageable"),
        };
        if says && let Some(call) = index.links().call(ActivityId::from_index(row)) {
            pageable[call.index() / 64] |= 1 << (call.index() % 64);
        }
    }
    pageable
}

/// What the profiler recorded about itself, and about loading code.
#[derive(Debug)]
pub(super) struct Overheads {
    profiler: Records,
    loading: Records,
}

impl Overheads {
    pub(super) fn new(trace: &Trace) -> Self {
        Self { profiler: Records::new(trace, is_profilers_own), loading: Records::new(trace, is_loading_overhead) }
    }

    /// What happened at `now`.
    pub(super) fn at(&self, now: Ns) -> Option<State> {
        let frame = |name| HostFrame { kind: FrameKind::Overhead, name: Some(name), inside: None };
        let of = |records: &Records, cause| records.at(now).map(|name| (cause, frame(name)));
        of(&self.loading, IdleCause::CompileOrLoad).or_else(|| of(&self.profiler, IdleCause::Profiler))
    }

    /// The next moment after `now` at which the answer changes.
    pub(super) fn next_change(&self, now: Ns) -> Ns {
        self.profiler.next_change(now).min(self.loading.next_change(now))
    }
}

/// Records of the profiler of one kind, united where they overlap, each with the name of its first.
#[derive(Debug, Default)]
struct Records(Vec<(Interval, StrId)>);

impl Records {
    /// Empty for several recordings, since nobody knows whose the records are.
    fn new(trace: &Trace, wanted: fn(&str) -> bool) -> Self {
        if trace.ranks.len() > 1 {
            return Self::default();
        }
        let overheads = &trace.overheads;
        let mut records: Vec<(Interval, StrId)> = (0..overheads.len())
            .filter(|&row| wanted(trace.strings.get(overheads.name[row])))
            .map(|row| (Interval::new(overheads.start[row], overheads.dur[row]), overheads.name[row]))
            .filter(|(interval, _)| !interval.is_empty())
            .collect();
        records.sort_by_key(|(interval, _)| interval.start);
        records.dedup_by(|(next, _), (last, _)| {
            let joins = next.start <= last.end;
            if joins {
                last.end = last.end.max(next.end);
            }
            joins
        });
        Self(records)
    }

    fn at(&self, now: Ns) -> Option<StrId> {
        let (interval, name) = self.0.get(self.0.partition_point(|(interval, _)| interval.end <= now))?;
        (interval.start <= now).then_some(*name)
    }

    /// The next moment after `now` at which the answer changes.
    fn next_change(&self, now: Ns) -> Ns {
        let next = self.0.get(self.0.partition_point(|(interval, _)| interval.end <= now));
        next.map_or(Ns::MAX, |(interval, _)| if interval.start <= now { interval.end } else { interval.start })
    }
}

/// Something open.
#[derive(Clone, Copy, Debug)]
struct Open {
    end: Ns,
    /// Position in order of start.
    order: u32,
    name: StrId,
    work: Work,
}

/// The latest started on top; see the module's notes.
#[derive(Debug, Default)]
struct Stack(Vec<Open>);

impl Stack {
    /// The innermost open at `now`, which never goes back.
    fn top(&mut self, now: Ns) -> Option<Open> {
        while self.0.pop_if(|open| open.end <= now).is_some() {}
        self.0.last().copied()
    }
}

/// A pass over one thread.
struct Thread<'s, 'a, 't> {
    host: &'s mut Host<'a, 't>,
    nodes: std::ops::Range<usize>,
    frames: std::ops::Range<usize>,
    os_calls: std::ops::Range<usize>,
    /// Start of the next node, frame and call into the operating system; [`Ns::MAX`] at the end.
    next_node: Ns,
    next_frame: Ns,
    next_os: Ns,
    taken: u32,
    calls: Stack,
    ops: Stack,
    python: Stack,
    ranges: Stack,
    os: Stack,
    /// Until when a compiler is known to work, and what it calls that.
    compiling: (Ns, HostFrame),
    /// What the profiler recorded of itself, and until when that holds.
    record: Option<State>,
    record_until: Ns,
    /// Whether more than calls was recorded on the thread.
    has_detail: bool,
}

impl<'s, 'a, 't> Thread<'s, 'a, 't> {
    fn new(host: &'s mut Host<'a, 't>, thread: ThreadId) -> Self {
        let tree = host.index.tree();
        let (nodes, frames, os_calls) =
            (tree.thread_nodes(thread), host.frames.thread(thread.index()), host.os_calls.thread(thread.index()));
        let is_detail = |node: usize| !matches!(tree.row(NodeId(node as u32)), HostRow::Api(_));
        let has_detail = !frames.is_empty() || nodes.clone().any(is_detail);
        let mut sweep = Self {
            host,
            nodes,
            frames,
            os_calls,
            next_node: Ns::MAX,
            next_frame: Ns::MAX,
            next_os: Ns::MAX,
            taken: 0,
            calls: Stack::default(),
            ops: Stack::default(),
            python: Stack::default(),
            ranges: Stack::default(),
            os: Stack::default(),
            compiling: (Ns::MIN, HostFrame::NOTHING),
            record: None,
            record_until: Ns::MIN,
            has_detail,
        };
        sweep.peek_node();
        sweep.peek_frame();
        sweep.peek_os();
        sweep
    }

    fn peek_node(&mut self) {
        self.next_node = if self.nodes.is_empty() { Ns::MAX } else { self.host.index.tree().start(NodeId(self.nodes.start as u32)) };
    }

    fn peek_frame(&mut self) {
        let row = (!self.frames.is_empty()).then(|| self.host.frames.row(self.frames.start) as usize);
        self.next_frame = row.map_or(Ns::MAX, |row| self.host.index.trace().frames.start[row]);
    }

    fn peek_os(&mut self) {
        let row = (!self.os_calls.is_empty()).then(|| self.host.os_calls.row(self.os_calls.start) as usize);
        self.next_os = row.map_or(Ns::MAX, |row| self.host.index.trace().os_calls.start[row]);
    }

    /// Opens what starts until `now`.
    fn advance(&mut self, now: Ns) {
        loop {
            // Calls into the operating system are inside what starts with them, and a Python function is around it.
            if self.next_os <= now && self.next_os < self.next_node && self.next_os < self.next_frame && !self.os_calls.is_empty() {
                self.open_os_call();
            } else if self.next_frame <= now && self.next_frame <= self.next_node && !self.frames.is_empty() {
                self.open_frame();
            } else if self.next_node <= now && !self.nodes.is_empty() {
                self.open_node();
            } else if self.next_os <= now && !self.os_calls.is_empty() {
                self.open_os_call();
            } else {
                return;
            }
        }
    }

    fn open_frame(&mut self) {
        let trace = self.host.index.trace();
        let row = self.host.frames.row(self.frames.start) as usize;
        self.frames.start += 1;
        let (name, start) = (trace.frames.name[row], trace.frames.start[row]);
        let work = self.host.python.get(trace, name);
        self.open(FrameKind::Python, name, start, end_of(start, trace.frames.dur[row]), work);
        self.peek_frame();
    }

    fn open_os_call(&mut self) {
        let calls = &self.host.index.trace().os_calls;
        let row = self.host.os_calls.row(self.os_calls.start) as usize;
        self.os_calls.start += 1;
        let (name, start, dur) = (calls.name[row], calls.start[row], calls.dur[row]);
        self.taken += 1;
        self.os.top(start);
        self.os.0.push(Open { end: end_of(start, dur), order: self.taken, name, work: Work::Other });
        self.peek_os();
    }

    fn open_node(&mut self) {
        let (trace, tree) = (self.host.index.trace(), self.host.index.tree());
        let node = NodeId(self.nodes.start as u32);
        self.nodes.start += 1;
        let (row, start, dur) = tree.event(node);
        let name = tree.name(node);
        let (kind, work) = match row {
            HostRow::Range(_) => (FrameKind::Range, self.host.ops.get(trace, name)),
            HostRow::Op(_) => (FrameKind::Operator, self.host.ops.get(trace, name)),
            HostRow::Api(call) => {
                let is_pageable = self.host.pageable[call.index() / 64] >> (call.index() % 64) & 1 == 1;
                let work = match self.host.calls.get(trace, name) {
                    Work::AsyncCopy if is_pageable => Work::Waits,
                    work => work,
                };
                (FrameKind::Call, work)
            }
        };
        self.open(kind, name, start, end_of(start, dur), work);
        self.peek_node();
    }

    fn open(&mut self, kind: FrameKind, name: StrId, start: Ns, end: Ns, work: Work) {
        self.taken += 1;
        if work == Work::Compiles && end > self.compiling.0.max(start) {
            self.compiling = (end, HostFrame { kind, name: Some(name), inside: None });
        }
        let stack = match kind {
            FrameKind::Call => &mut self.calls,
            FrameKind::Operator => &mut self.ops,
            FrameKind::Python => &mut self.python,
            FrameKind::Range | FrameKind::OsCall | FrameKind::Overhead | FrameKind::Nothing => &mut self.ranges,
        };
        stack.top(start);
        stack.0.push(Open { end, order: self.taken, name, work });
    }

    /// What the thread does at `now`, to which the pass has been advanced, and when that may change.
    fn state(&mut self, now: Ns) -> (State, Ns) {
        let (call, op, python, range) = (self.calls.top(now), self.ops.top(now), self.python.top(now), self.ranges.top(now));
        if self.record_until <= now {
            self.record_until = self.host.records.next_change(now);
            self.record = self.host.records.at(now);
        }
        let mut next = self.next_node.min(self.next_frame).min(self.next_os).min(self.record_until);
        if self.compiling.0 > now {
            next = next.min(self.compiling.0);
        }
        let mut innermost: Option<(Open, FrameKind)> = None;
        let mut look_at = |open: Option<Open>, kind: FrameKind| {
            if let Some(open) = open {
                next = next.min(open.end);
                if !matches!(kind, FrameKind::Range | FrameKind::OsCall) && innermost.is_none_or(|(known, _)| known.order < open.order) {
                    innermost = Some((open, kind));
                }
            }
        };
        let os = self.os.top(now);
        look_at(call, FrameKind::Call);
        look_at(op, FrameKind::Operator);
        look_at(python, FrameKind::Python);
        look_at(range, FrameKind::Range);
        look_at(os, FrameKind::OsCall);
        let (cause, frame) = self.cause(now, innermost, op, python, range);
        // A call into the operating system says where the host was, not why: the cause stays that of what is around it. Inside a runtime call it
        // is that call's own business.
        let is_told = matches!(frame.kind, FrameKind::Operator | FrameKind::Python | FrameKind::Range | FrameKind::Nothing);
        let is_hosts = matches!(cause, IdleCause::Dispatch | IdleCause::Python | IdleCause::OutsideOperators | IdleCause::NothingRecorded);
        let around = innermost.map_or(0, |(open, _)| open.order);
        let Some(os) = os.filter(|os| is_told && is_hosts && os.order > around) else { return ((cause, frame), next) };
        let cause = if cause == IdleCause::NothingRecorded { IdleCause::OutsideOperators } else { cause };
        ((cause, HostFrame { kind: FrameKind::OsCall, name: Some(os.name), inside: op.map(|op| op.name) }), next)
    }

    fn cause(&self, now: Ns, innermost: Option<(Open, FrameKind)>, op: Option<Open>, python: Option<Open>, range: Option<Open>) -> State {
        if self.compiling.0 > now {
            return (IdleCause::CompileOrLoad, self.compiling.1);
        }
        let frame = innermost.map(|(open, kind)| HostFrame {
            kind,
            name: Some(open.name),
            inside: op.filter(|_| kind == FrameKind::Call).map(|op| op.name),
        });
        let work = innermost.map(|(open, _)| open.work);
        if let (Some(Work::Waits), Some(frame)) = (work, frame) {
            return (IdleCause::BlockedInSync, frame);
        }
        if let Some(overhead) = self.record {
            return overhead;
        }
        let Some((frame, (_, kind))) = frame.zip(innermost) else {
            let has_begun = self.taken > 0;
            let has_ended = self.nodes.is_empty() && self.frames.is_empty() && range.is_none();
            if !self.has_detail || !has_begun || has_ended {
                return (IdleCause::NothingRecorded, HostFrame::NOTHING);
            }
            let frame =
                range.map_or(HostFrame::NOTHING, |range| HostFrame { kind: FrameKind::Range, name: Some(range.name), inside: None });
            return (IdleCause::OutsideOperators, frame);
        };
        let cause = match work {
            Some(Work::Allocates) => IdleCause::Allocation,
            Some(Work::LaunchesGraph) => IdleCause::GraphLaunch,
            _ => match kind {
                FrameKind::Operator => IdleCause::Dispatch,
                FrameKind::Python => IdleCause::Python,
                _ if op.is_some() => IdleCause::Dispatch,
                _ if python.is_some() => IdleCause::Python,
                _ => IdleCause::OutsideOperators,
            },
        };
        (cause, frame)
    }
}
