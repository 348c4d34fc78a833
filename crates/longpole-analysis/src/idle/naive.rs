//! The rules of idle causes, asked anew at every moment and without any shortcut, on random traces.

use std::collections::BTreeMap;

use longpole_trace::{ActivityId, ActivityKind, DeviceId, Ns, Overhead, SyncEvent, SyncKind, ThreadId, Trace};
use proptest::prelude::*;

use super::*;
use crate::index::{HostRow, NodeId};
use crate::sample::Sample;
use crate::totals::totals;

/// All times are multiples of this, and so are those of the rules.
const TICK: i64 = 1_000;
const LONGEST: i64 = 15 * TICK;
const LONGEST_CALL: i64 = 100 * TICK;

/// An event drawn at random: what, which of its kind, thread or stream, start, duration.
type Drawn = (u8, u8, u8, i64, i64);

const OPS: [&str; 4] = ["aten::mm", "aten::add", "compile_inner (dynamo_timed)", "empty_cache"];
const CALLS: [&str; 8] = [
    "cudaLaunchKernel",
    "cudaGraphLaunch",
    "cudaMemcpyAsync",
    "cudaStreamSynchronize",
    "cudaMalloc",
    "cudaMemcpy",
    "cuModuleLoadData",
    "cudaStreamWaitEvent",
];
const FRAMES: [&str; 3] = ["a.py(1): f", "b.py(2): g", "torch/_inductor/compile_fx.py(7): compile_fx"];
const RECORDS: [&str; 4] = ["Buffer Flush", "Lazy Function Loading", "Command Buffer Full", "Activity Buffer Request"];

fn build(drawn: &[Drawn], with_syncs: bool) -> Trace {
    let mut sample = Sample::new();
    for &(what, which, place, start, dur) in drawn {
        // One launch in a while takes very long.
        let (start, dur) = (start * TICK, if what == 11 && dur > 30 { 4 * dur } else { dur } * TICK);
        sample.on_thread(1 + i64::from(place % 3));
        sample.on_device(i64::from(place / 3 % 2), i64::from(place / 6 % 2));
        match what {
            0 => drop(sample.op(OPS[usize::from(which) % OPS.len()], start, dur)),
            1 => drop(sample.range(["step", "inner"][usize::from(which) % 2], start, dur)),
            2 => drop(sample.frame(FRAMES[usize::from(which) % FRAMES.len()], start, dur)),
            3 => drop(sample.launch(CALLS[usize::from(which) % CALLS.len()], start, dur)),
            4 => sample.orphan("orphan", start, dur),
            5 => {
                let name = sample.builder.trace_mut().strings.intern(RECORDS[usize::from(which) % RECORDS.len()]);
                sample.builder.push_overhead(Overhead { name, start: Ns(start), dur: Ns(dur) });
            }
            6 if with_syncs => sample.builder.push_sync_event(SyncEvent {
                kind: if which == 0 { SyncKind::Event } else { SyncKind::StreamWaitsForEvent },
                rank: 0,
                start: Ns(start),
                dur: Ns(0),
                device: Some(i64::from(place / 3 % 2)),
                context: Some(1),
                stream: Some(i64::from(place / 6 % 2)),
                wait_on_stream: Some(i64::from(which % 2)),
                event_record: Some(u64::from(which)),
            }),
            // A launch and one to three activities some time after.
            _ => {
                let call = CALLS[usize::from(which) % 3];
                let mut launch = sample.launch(call, start, dur);
                for at in 0..=i64::from(which / 3) {
                    let begins = start + (dur / TICK / 2 * TICK + at * 7 * TICK) + i64::from(which % 5) * 5 * TICK;
                    launch = match (call, which % 2) {
                        ("cudaMemcpyAsync", 0) => launch.memcpy("Memcpy HtoD (Pageable -> Device)", begins, 2 * TICK),
                        ("cudaMemcpyAsync", _) => launch.memcpy("Memcpy DtoH (Device -> Pinned)", begins, 3 * TICK),
                        _ => launch.kernel(["gemm", "norm", "softmax"][usize::from(which) % 3], begins, i64::from(which % 4) * TICK),
                    };
                }
            }
        }
    }
    sample.finish()
}

/// Start and end of every event that is asked about, in order of start, with what it is.
struct Reference<'t> {
    trace: &'t Trace,
    index: TraceIndex<'t>,
}

impl Reference<'_> {
    fn end(&self, row: usize) -> i64 {
        (self.trace.activities.start[row] + self.trace.activities.dur[row]).get()
    }

    fn start(&self, row: usize) -> i64 {
        self.trace.activities.start[row].get()
    }

    fn device(&self, row: usize) -> usize {
        self.trace.lanes[self.trace.activities.lane[row].index()].device.index()
    }

    /// Start and end of the launch call of an activity.
    fn call(&self, row: usize) -> Option<(usize, i64, i64)> {
        let call = self.index.links().call(ActivityId::from_index(row))?.index();
        let start = self.trace.api_calls.start[call].get();
        Some((call, start, start + self.trace.api_calls.dur[call].get()))
    }

    fn is_copy(&self, row: usize) -> bool {
        self.trace.activities.kind[row] == ActivityKind::Memcpy
    }

    /// The cause at a moment of a device; `None` when it is busy or outside its extent.
    fn cause(&self, device: usize, at: i64) -> Option<IdleCause> {
        let rows: Vec<usize> = (0..self.trace.activities.len()).filter(|&row| self.device(row) == device).collect();
        let begun: Vec<usize> = rows.iter().copied().filter(|&row| self.start(row) <= at).collect();
        let from = begun.iter().map(|&row| self.end(row)).max()?;
        let next = rows.iter().copied().filter(|&row| self.start(row) > at).min_by_key(|&row| (self.start(row), row))?;
        if from > at {
            return None;
        }
        let lane = self.trace.activities.lane[next];
        let on_lane = |row: &usize| self.trace.activities.lane[*row] == lane;
        // Of those that end last the last to start.
        let previous = begun.iter().copied().filter(on_lane).max_by_key(|&row| (self.end(row), self.start(row), row));
        let previous_end = previous.map_or(i64::MIN, |row| self.end(row));
        let queued = |returned: i64| {
            let follows = previous_end >= from;
            if !follows && self.start(next).saturating_sub(returned) > LONGEST {
                IdleCause::Dependency
            } else if follows && self.is_copy(next) != previous.is_some_and(|row| self.is_copy(row)) {
                IdleCause::CopyEngine
            } else {
                IdleCause::LaunchLatency
            }
        };
        let Some((call, launch, returned)) = self.call(next) else {
            let launched = |row: usize| self.call(row).is_some();
            let of_lane = (0..self.trace.activities.len()).filter(on_lane).filter(|&row| launched(row)).map(|row| self.start(row)).min();
            let first_call = self.trace.api_calls.start.iter().map(|start| start.get()).min();
            let is_before = of_lane.or(first_call).is_some_and(|opening| self.start(next) <= opening);
            return Some(if is_before && at < from + LONGEST { queued(i64::MIN) } else { IdleCause::NothingRecorded });
        };
        if begun.iter().any(|&row| self.call(row).is_some_and(|(other, ..)| other == call)) {
            let is_graph = self.trace.strings.get(self.trace.api_calls.name[call]).contains("GraphLaunch");
            return Some(if self.is_copy(next) && !is_graph { IdleCause::CopyEngine } else { IdleCause::GraphInternal });
        }
        if at < launch {
            return Some(self.host(self.trace.api_calls.thread[call], at));
        }
        let (event, unresolved) = self.waited_for(next);
        let is_bound = |event: i64| event <= self.start(next) && event >= returned.max(previous_end) && event + LONGEST >= from;
        let waited = event.is_some_and(is_bound);
        if at < returned {
            let name = |row: usize| self.trace.activities.name[row];
            let is_kernel = self.trace.activities.kind[next] == ActivityKind::Kernel;
            let is_first = !rows.iter().any(|&row| (self.start(row), row) < (self.start(next), next) && name(row) == name(next));
            return Some(self.overhead(at).unwrap_or(if self.trace.strings.get(self.trace.api_calls.name[call]).contains("GraphLaunch") {
                IdleCause::GraphLaunch
            } else if is_kernel && is_first && returned - launch > LONGEST_CALL && !waited {
                IdleCause::CompileOrLoad
            } else {
                IdleCause::LaunchLatency
            }));
        }
        if waited {
            return Some(IdleCause::EventWait);
        }
        if at < returned.max(from) + LONGEST {
            return Some(if returned > from { IdleCause::LaunchLatency } else { queued(returned) });
        }
        let before = previous.and_then(|row| self.call(row)).map_or(i64::MIN, |(_, launch, _)| launch);
        let likely = unresolved || self.made_wait(self.trace.api_calls.thread[call], before, launch);
        Some(if likely { IdleCause::EventWait } else { IdleCause::NothingRecorded })
    }

    fn overhead(&self, at: i64) -> Option<IdleCause> {
        let overheads = &self.trace.overheads;
        let is_open = |row: &usize| overheads.start[*row].get() <= at && at < (overheads.start[*row] + overheads.dur[*row]).get();
        let name = |row: usize| self.trace.strings.get(overheads.name[row]);
        let open: Vec<usize> = (0..overheads.len()).filter(is_open).collect();
        if open.iter().any(|&row| name(row).contains("Function Loading")) {
            return Some(IdleCause::CompileOrLoad);
        }
        open.iter().any(|&row| name(row).contains("Buffer") && !name(row).contains("Full")).then_some(IdleCause::Profiler)
    }

    /// Whether waits are recorded stream by stream.
    fn has_waits(&self) -> bool {
        self.trace.sync_events.kind.contains(&SyncKind::StreamWaitsForEvent)
    }

    fn made_wait(&self, thread: ThreadId, after: i64, before: i64) -> bool {
        let calls = &self.trace.api_calls;
        let is_wait = |row: usize| {
            let at = calls.start[row].get();
            calls.thread[row] == thread && after < at && at < before && self.trace.strings.get(calls.name[row]).contains("StreamWaitEvent")
        };
        !self.has_waits() && (0..calls.len()).any(is_wait)
    }

    /// When what the stream of an activity waited for had ended, and whether some wait of it is for something unknown.
    fn waited_for(&self, activity: usize) -> (Option<i64>, bool) {
        let syncs = &self.trace.sync_events;
        let stream = |row: usize| {
            let lane = &self.trace.lanes[self.trace.activities.lane[row].index()];
            (self.trace.devices[lane.device.index()].ordinal, lane.stream)
        };
        let launched: Vec<(i64, usize)> = (0..self.trace.activities.len()).filter_map(|row| Some((self.call(row)?.1, row))).collect();
        let (mut event, mut unresolved) = (None, false);
        for row in (0..syncs.len()).filter(|&row| syncs.kind[row] == SyncKind::StreamWaitsForEvent) {
            let device = syncs.device[row].unwrap();
            let waiting = (device, syncs.stream[row].unwrap());
            let at = syncs.start[row].get();
            let held = launched.iter().filter(|&&(launch, row)| stream(row) == waiting && launch >= at).min();
            if held.is_none_or(|&(_, held)| held != activity) {
                continue;
            }
            let calls = &self.trace.api_calls;
            let record = (0..calls.len()).find(|&call| calls.correlation(call) == syncs.event_record(row));
            let other = (device, syncs.wait_on_stream[row].unwrap());
            let ends = record.map(|record| calls.start[record].get()).and_then(|record| {
                launched.iter().filter(|&&(launch, row)| stream(row) == other && launch < record).map(|&(_, row)| self.end(row)).max()
            });
            event = event.max(ends);
            unresolved |= ends.is_none();
        }
        (event, unresolved)
    }

    /// What a thread was doing.
    fn host(&self, thread: ThreadId, at: i64) -> IdleCause {
        let (tree, trace) = (self.index.tree(), self.trace);
        let mut open: Vec<Open<'_>> = Vec::new();
        let (mut first, mut last, mut has_detail) = (i64::MAX, i64::MIN, false);
        let mut see = |start: i64, end: i64, order: usize, kind: u8, name, pageable| {
            (first, last) = (first.min(start), last.max(end));
            has_detail |= kind != 3;
            if start <= at && at < end {
                open.push(((start, u8::from(kind > 0), order), kind, name, pageable));
            }
        };
        for node in tree.thread_nodes(thread) {
            let node = NodeId(node as u32);
            let (kind, pageable) = match tree.row(node) {
                HostRow::Range(_) => (1, false),
                HostRow::Op(_) => (2, false),
                HostRow::Api(call) => (
                    3,
                    (0..trace.activities.len()).any(|row| {
                        let pageable = trace.strings.get(trace.activities.name[row]).contains("Pageable");
                        pageable && self.index.links().call(ActivityId::from_index(row)) == Some(call)
                    }),
                ),
            };
            see(tree.start(node).get(), tree.end(node).get(), node.index(), kind, trace.strings.get(tree.name(node)), pageable);
        }
        let frames = &trace.frames;
        let mut of_thread: Vec<usize> = (0..frames.len()).filter(|&row| frames.thread[row] == thread).collect();
        of_thread.sort_by_key(|&row| (frames.start[row], std::cmp::Reverse(frames.end(row))));
        for (order, &row) in of_thread.iter().enumerate() {
            see(frames.start[row].get(), frames.end(row).get(), order, 0, trace.strings.get(frames.name[row]), false);
        }
        if open.iter().any(|(_, _, name, _)| ["compile", "ModuleLoad"].iter().any(|part| name.contains(part))) {
            return IdleCause::CompileOrLoad;
        }
        let innermost = open.iter().filter(|(_, kind, ..)| *kind != 1).max();
        if let Some(&(_, 3, name, pageable)) = innermost
            && (name.contains("Synchronize") || name == "cudaMemcpy" || (name == "cudaMemcpyAsync" && pageable))
        {
            return IdleCause::BlockedInSync;
        }
        if let Some(overhead) = self.overhead(at) {
            return overhead;
        }
        let is_open = |kind| open.iter().any(|(_, other, ..)| *other == kind);
        match innermost {
            None if !has_detail || at < first || at >= last => IdleCause::NothingRecorded,
            Some((_, _, "empty_cache" | "cudaMalloc", _)) => IdleCause::Allocation,
            Some((_, _, "cudaGraphLaunch", _)) => IdleCause::GraphLaunch,
            Some((_, 0, ..)) => IdleCause::Python,
            Some((_, 2, ..)) => IdleCause::Dispatch,
            Some(_) if is_open(2) => IdleCause::Dispatch,
            Some(_) if is_open(0) => IdleCause::Python,
            _ => IdleCause::OutsideOperators,
        }
    }

    /// Whether nothing was queued for an idle device.
    fn is_empty(&self, device: usize, at: i64) -> bool {
        let rows = (0..self.trace.activities.len()).filter(|&row| self.device(row) == device);
        let next = rows.clone().filter(|&row| self.start(row) > at).min_by_key(|&row| (self.start(row), row));
        let is_queued = |row: usize| self.call(row).is_some_and(|(_, launch, _)| launch <= at && at < self.start(row));
        next.is_some_and(|row| self.call(row).is_some()) && !rows.clone().any(is_queued)
    }
}

/// An open host event: its place in order of start, its kind (0 Python, 1 range, 2 operator, 3 call), its name, and whether it is a
/// copy of pageable memory.
type Open<'t> = ((i64, u8, usize), u8, &'t str, bool);

fn check(drawn: &[Drawn], with_syncs: bool) -> Result<(), TestCaseError> {
    let trace = build(drawn, with_syncs);
    let reference = Reference { trace: &trace, index: TraceIndex::new(&trace) };
    let index = TraceIndex::new(&trace);
    let (table, pieces) = (idle_table(&index, &Scope::whole()), idle_pieces(&index, &Scope::whole()));
    prop_assert_eq!(table.idle_ns, totals(&index, &Scope::whole()).gpu_idle_ns);
    let last = (0..trace.activities.len()).map(|row| reference.end(row)).max().unwrap_or(0);
    for device in &table.devices {
        let (mut sums, mut empty) = (BTreeMap::<IdleCause, i64>::new(), 0);
        for at in (0..last).step_by(TICK as usize) {
            let want = reference.cause(device.device.index(), at);
            let covers = |piece: &&IdlePiece| piece.device == device.device && piece.start.get() <= at && at < piece.end.get();
            let found: Vec<IdleCause> = pieces.iter().filter(covers).map(|piece| piece.cause).collect();
            prop_assert_eq!(found, Vec::from_iter(want), "device {} at {}", device.device.index(), at);
            if let Some(want) = want {
                *sums.entry(want).or_default() += TICK;
                empty += if reference.is_empty(device.device.index(), at) { TICK } else { 0 };
            }
        }
        let found: BTreeMap<IdleCause, i64> = device.causes.iter().map(|row| (row.cause, row.idle_ns.get())).collect();
        prop_assert_eq!(&found, &sums);
        prop_assert_eq!(device.idle_ns.get(), sums.values().sum::<i64>());
        prop_assert_eq!(device.queue.empty_ns.get(), empty);
        prop_assert_eq!(device.queue_over_time.iter().map(|slice| slice.empty_ns).sum::<Ns>(), device.queue.empty_ns);
    }
    add_up(&table, &pieces)?;
    ranges_add_up(&index, &table, &pieces)
}

/// All the ways to add up agree.
fn add_up(table: &IdleTable, pieces: &[IdlePiece]) -> Result<(), TestCaseError> {
    let idle = table.idle_ns.unwrap_or_default();
    prop_assert_eq!(table.causes.iter().map(|row| row.idle_ns).sum::<Ns>(), idle);
    prop_assert_eq!(table.by_frame.iter().map(|row| row.idle_ns).sum::<Ns>(), idle);
    prop_assert_eq!(table.by_frame.iter().map(|row| row.intervals).sum::<u64>(), pieces.len() as u64);
    prop_assert_eq!(table.devices.iter().map(|device| device.idle_ns).sum::<Ns>(), idle);
    for row in &table.causes {
        let longest = pieces.iter().filter(|piece| piece.cause == row.cause).map(|piece| piece.end - piece.start).max();
        prop_assert!(Some(row.largest_ns) >= longest && row.largest_ns <= row.idle_ns);
        let begins = |piece: &IdlePiece| piece.cause == row.cause && piece.start == row.largest_at && piece.device == row.largest_on;
        prop_assert!(pieces.iter().any(begins));
    }
    Ok(())
}

/// The idle time of a range is that of the pieces inside the device extents of its instances.
fn ranges_add_up(index: &TraceIndex<'_>, table: &IdleTable, pieces: &[IdlePiece]) -> Result<(), TestCaseError> {
    let (rows, extents) = ranges_with_extents(index, &Scope::whole());
    let mut of_row: Vec<Option<BTreeMap<IdleCause, i64>>> = vec![None; rows.len()];
    for extent in &extents {
        let sums = of_row[extent.row as usize].get_or_insert_default();
        let is_inside =
            |piece: &&IdlePiece| piece.device == extent.device && extent.extent.start <= piece.start && piece.end <= extent.extent.end;
        for piece in pieces.iter().filter(is_inside) {
            *sums.entry(piece.cause).or_default() += (piece.end - piece.start).get();
        }
    }
    let want: Vec<_> = of_row.into_iter().flatten().collect();
    let found: Vec<_> =
        table.by_range.iter().map(|row| row.causes.iter().map(|&(cause, idle)| (cause, idle.get())).collect::<BTreeMap<_, _>>()).collect();
    prop_assert_eq!(found, want);
    Ok(())
}

proptest! {
    #[test]
    fn causes_are_those_found_moment_by_moment(
        drawn in proptest::collection::vec((0_u8..12, 0_u8..9, 0_u8..12, 1_i64..120, 0_i64..40), 0..40),
        with_syncs: bool,
    ) {
        check(&drawn, with_syncs)?;
    }
}

#[test]
fn no_device_twice() {
    let trace = build(&[(7, 0, 0, 5, 3), (7, 0, 0, 50, 3)], false);
    let table = idle_table(&TraceIndex::new(&trace), &Scope::whole());
    assert_eq!(table.devices.iter().map(|device| device.device).collect::<Vec<_>>(), [DeviceId(0)]);
}
