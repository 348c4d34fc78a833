//! Processes and threads: ranges, operators and calls on the track of their thread, Python functions and calls into the operating system on
//! tracks of their own.

use std::cmp::Reverse;
use std::io;

use foldhash::fast::FixedState;
use hashbrown::{HashMap, HashSet};
use longpole_analysis::{HostRow, NodeId, Scope, TraceIndex, rank_order, thread_label};
use longpole_trace::{ActivityId, ApiCallId, HostOpId, Ns, ProcessId, RangeId, StrId, ThreadId, Tid, Trace};

use super::lanes::{Nested, Slice};
use super::packets::{Category, Key, Name, Packets, Track, TrackKind};

/// Numbers for processes and threads that have none that Perfetto can take (text, too large, or of several ranks).
const FIRST_MADE_UP: i64 = 1_000_000_000;
/// Processes come behind the devices, in the order in which they are written, and what is of no process behind them.
const FIRST_PROCESS: i64 = 1_000_000;
const PROFILER: i64 = 2_000_000_000;

/// Work that a call launched: the first of it in the table, and how much.
#[derive(Clone, Copy, Debug, Default)]
struct Launched {
    first: u32,
    count: u32,
}

/// From launches to what they launched, for arrows.
pub(super) struct Arrows(Vec<Launched>);

impl Arrows {
    pub(super) fn find(index: &TraceIndex<'_>, scope: &Scope) -> Self {
        let mut of_call = vec![Launched::default(); index.trace().api_calls.len()];
        for activity in (0..index.trace().activities.len()).map(ActivityId::from_index) {
            if let Some(call) = index.links().call(activity).filter(|_| scope.includes_activity(index, activity)) {
                let launched = &mut of_call[call.index()];
                // Rows of a file need not be in order of time.
                let start = |row: u32| (index.trace().activities.start[row as usize], row);
                if launched.count == 0 || start(activity.0) < start(launched.first) {
                    launched.first = activity.0;
                }
                launched.count = launched.count.saturating_add(1);
            }
        }
        Self(of_call)
    }

    /// The arrow that an activity ends: that of its launch, if it is the first of it.
    pub(super) fn of_activity(&self, index: &TraceIndex<'_>, activity: ActivityId) -> Option<u64> {
        let call = index.links().call(activity)?;
        let launched = self.0[call.index()];
        (launched.count > 0 && launched.first == activity.0).then(|| u64::from(call.0) + 1)
    }

    fn of_call(&self, call: ApiCallId) -> (Option<u64>, u32) {
        let launched = self.0[call.index()];
        ((launched.count > 0).then(|| u64::from(call.0) + 1), launched.count)
    }
}

/// What goes on the tracks of one thread.
#[derive(Default)]
struct OfThread {
    rows: bool,
    python: Vec<u32>,
    os_calls: Vec<u32>,
}

pub(super) fn write(packets: &mut Packets<'_, '_>, index: &TraceIndex<'_>, scope: &Scope, arrows: &Arrows) -> io::Result<()> {
    let trace = index.trace();
    let mut of_thread: Vec<OfThread> = trace.threads.iter().map(|_| OfThread::default()).collect();
    let nodeless = nodeless(index, scope);
    for &(thread, ..) in &nodeless {
        of_thread[thread.index()].rows = true;
    }
    for thread in (0..trace.threads.len()).map(ThreadId::from_index) {
        let mut nodes = index.tree().thread_nodes(thread).map(|node| NodeId(node as u32));
        of_thread[thread.index()].rows |= nodes.any(|node| scope.includes_node(index, node));
    }
    let (frames, os_calls) = (&trace.frames, &trace.os_calls);
    for row in (0..frames.len()).filter(|&row| scope.includes_host(trace, frames.thread[row], frames.start[row])) {
        of_thread[frames.thread[row].index()].python.push(row as u32);
    }
    for row in (0..os_calls.len()).filter(|&row| scope.includes_host(trace, os_calls.thread[row], os_calls.start[row])) {
        of_thread[os_calls.thread[row].index()].os_calls.push(row as u32);
    }
    let mut places = Places::new(trace);
    let extra: HashMap<ThreadId, &[Placed], FixedState> = nodeless.chunk_by(|a, b| a.0 == b.0).map(|chunk| (chunk[0].0, chunk)).collect();
    // Viewers that go by the order of the file show ranks in order as well.
    let mut order: Vec<ThreadId> = (0..trace.threads.len()).map(ThreadId::from_index).collect();
    order.sort_by_key(|&thread| (rank_order(trace, trace.thread_rank(thread)), thread));
    for thread in order {
        let of_thread = std::mem::take(&mut of_thread[thread.index()]);
        let extra = extra.get(&thread).copied().unwrap_or_default();
        if !of_thread.rows && of_thread.python.is_empty() && of_thread.os_calls.is_empty() {
            continue;
        }
        let track = places.thread(packets, thread);
        rows(packets, index, scope, arrows, (thread, track), extra)?;
        let python = of_thread.python.iter().map(|&row| row as usize);
        let python = python.map(|row| (frames.start[row], frames.end(row), frames.name[row])).collect();
        beside(packets, track, ("Python", Category::Python, 1000), python)?;
        let os = of_thread.os_calls.iter().map(|&row| row as usize);
        let os = os.map(|row| (os_calls.start[row], os_calls.end(row), os_calls.name[row])).collect();
        beside(packets, track, ("operating system", Category::OsCall, 2000), os)?;
    }
    Ok(())
}

/// A row with its thread and times; the order of slices on a track.
type Placed = (ThreadId, Ns, Reverse<Ns>, HostRow);

fn placed(trace: &Trace, row: HostRow) -> Placed {
    let (thread, start, dur) = match row {
        HostRow::Range(id) => (trace.ranges.thread[id.index()], trace.ranges.start[id.index()], trace.ranges.dur[id.index()]),
        HostRow::Op(id) => (trace.host_ops.thread[id.index()], trace.host_ops.start[id.index()], trace.host_ops.dur[id.index()]),
        HostRow::Api(id) => (trace.api_calls.thread[id.index()], trace.api_calls.start[id.index()], trace.api_calls.dur[id.index()]),
    };
    (thread, start, Reverse(start + dur.max(Ns::ZERO)), row)
}

/// Rows in scope that have no node of their own in the host tree (those folded into their parents): the tree has the order of all others.
fn nodeless(index: &TraceIndex<'_>, scope: &Scope) -> Vec<Placed> {
    let (trace, tree) = (index.trace(), index.tree());
    let ranges = (0..trace.ranges.len()).map(RangeId::from_index).map(|id| (HostRow::Range(id), tree.range_node(id)));
    let ops = (0..trace.host_ops.len()).map(HostOpId::from_index).map(|id| (HostRow::Op(id), tree.op_node(id)));
    let calls = (0..trace.api_calls.len()).map(ApiCallId::from_index).map(|id| (HostRow::Api(id), tree.api_node(id)));
    let without = ranges.chain(ops).chain(calls).filter(|&(row, node)| node.is_none_or(|node| tree.row(node) != row));
    let placed = without.map(|(row, _)| placed(trace, row));
    let mut found: Vec<Placed> = placed.filter(|&(thread, start, ..)| scope.includes_host(trace, thread, start)).collect();
    found.sort_unstable();
    found
}

/// Ranges, operators and calls of a thread.
fn rows(
    packets: &mut Packets<'_, '_>,
    index: &TraceIndex<'_>,
    scope: &Scope,
    arrows: &Arrows,
    (thread, track): (ThreadId, Track),
    extra: &[Placed],
) -> io::Result<()> {
    let (trace, tree) = (index.trace(), index.tree());
    let mut lanes = Nested::on(track, "overlap");
    let nodes = tree.thread_nodes(thread).map(|node| NodeId(node as u32)).filter(|&node| scope.includes_node(index, node));
    let mut nodes = nodes.map(|node| placed(trace, tree.row(node))).peekable();
    let mut extra = extra.iter().copied().peekable();
    loop {
        let takes_node = match (nodes.peek(), extra.peek()) {
            (Some(node), Some(extra)) => (node.1, node.2) <= (extra.1, extra.2),
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (None, None) => break,
        };
        let Some((_, start, Reverse(end), row)) = (if takes_node { nodes.next() } else { extra.next() }) else { break };
        let (category, name) = match row {
            HostRow::Range(id) => (Category::Range, trace.ranges.name[id.index()]),
            HostRow::Op(id) => (Category::Operator, trace.host_ops.name[id.index()]),
            HostRow::Api(id) => (Category::Call, trace.api_calls.name[id.index()]),
        };
        let slice = Slice { start, end, category, name: Name::Of(name) };
        lanes.slice(packets, slice, |notes| match row {
            HostRow::Range(_) => {}
            HostRow::Op(id) => {
                notes.string(Key::Shapes, trace.host_ops.shapes(id.index()));
                notes.string(Key::Types, trace.host_ops.types(id.index()));
                notes.unsigned(Key::ExternalId, trace.host_ops.external_id(id.index()));
            }
            HostRow::Api(id) => {
                let (flow, count) = arrows.of_call(id);
                notes.unsigned(Key::Correlation, trace.api_calls.correlation(id.index()));
                notes.unsigned(Key::Launched, (count > 0).then_some(u64::from(count)));
                notes.flow(flow, false);
            }
        })?;
    }
    lanes.finish(packets)
}

/// Slices of a kind on a track below that of their thread.
fn beside(
    packets: &mut Packets<'_, '_>,
    parent: Track,
    (label, category, rank): (&'static str, Category, i64),
    slices: Vec<(Ns, Ns, StrId)>,
) -> io::Result<()> {
    let mut slices: Vec<_> = slices.into_iter().map(|(start, end, name)| (start, Reverse(end.max(start)), name)).collect();
    if slices.is_empty() {
        return Ok(());
    }
    slices.sort_by_key(|&(start, end, _)| (start, end));
    let track = packets.track(Some(parent), label, TrackKind::Plain, rank);
    let mut lanes = Nested::on(track, label);
    for (start, Reverse(end), name) in slices {
        lanes.slice(packets, Slice { start, end, category, name: Name::Of(name) }, |_| {})?;
    }
    lanes.finish(packets)
}

/// The profiler's own time, which is on no thread.
pub(super) fn profiler(packets: &mut Packets<'_, '_>, index: &TraceIndex<'_>, scope: &Scope) -> io::Result<()> {
    let overheads = &index.trace().overheads;
    let time = (!scope.is_whole()).then(|| scope.intervals(index));
    let is_inside = |row: usize| time.as_ref().is_none_or(|time| time.contains(overheads.start[row]));
    let mut rows: Vec<usize> = (0..overheads.len()).filter(|&row| is_inside(row)).collect();
    if rows.is_empty() {
        return Ok(());
    }
    rows.sort_by_key(|&row| (overheads.start[row], Reverse(overheads.end(row))));
    let track = packets.track(None, "profiler overhead", TrackKind::Plain, PROFILER);
    let mut lanes = Nested::on(track, "profiler overhead");
    for row in rows {
        let (start, end) = (overheads.start[row], overheads.end(row).max(overheads.start[row]));
        lanes.slice(packets, Slice { start, end, category: Category::Profiler, name: Name::Of(overheads.name[row]) }, |_| {})?;
    }
    lanes.finish(packets)
}

/// Numbers of processes and threads as Perfetto takes them: each thread of the trace must be a thread there, whatever its number says.
struct Places<'t> {
    trace: &'t Trace,
    processes: HashMap<ProcessId, (i64, Track), FixedState>,
    pids: HashSet<i64, FixedState>,
    tids: HashSet<(i64, i64), FixedState>,
    made_up: i64,
}

impl<'t> Places<'t> {
    fn new(trace: &'t Trace) -> Self {
        Self { trace, processes: HashMap::default(), pids: HashSet::default(), tids: HashSet::default(), made_up: FIRST_MADE_UP }
    }

    fn number(&mut self, known: Option<i64>, mut is_new: impl FnMut(&mut Self, i64) -> bool) -> i64 {
        if let Some(known) = known.filter(|known| (1..FIRST_MADE_UP).contains(known))
            && is_new(self, known)
        {
            return known;
        }
        self.made_up += 1;
        self.made_up
    }

    fn process(&mut self, packets: &mut Packets<'_, '_>, process: ProcessId) -> (i64, Track) {
        if let Some(&known) = self.processes.get(&process) {
            return known;
        }
        let about = &self.trace.processes[process.index()];
        let pid = self.number(Some(about.pid), |places, pid| places.pids.insert(pid));
        let rank = self.trace.ranks.get(about.rank as usize).filter(|_| self.trace.ranks.len() > 1);
        let rank = rank.map_or_else(String::new, |rank| format!("rank {} ", rank.rank));
        let name = about.name.map_or("process", |name| self.trace.strings.get(name));
        let track = packets.track(
            None,
            &format!("{rank}{name} {}", about.pid),
            TrackKind::Process { pid },
            FIRST_PROCESS + self.processes.len() as i64,
        );
        self.processes.insert(process, (pid, track));
        (pid, track)
    }

    fn thread(&mut self, packets: &mut Packets<'_, '_>, thread: ThreadId) -> Track {
        let about = &self.trace.threads[thread.index()];
        let (pid, process) = self.process(packets, about.process);
        let known = match about.tid {
            Tid::Number(number) => Some(number),
            Tid::Text(_) => None,
        };
        let tid = self.number(known, |places, tid| places.tids.insert((pid, tid)));
        packets.track(Some(process), &thread_label(self.trace, thread), TrackKind::Thread { pid, tid }, thread.index() as i64)
    }
}
