//! Shapes of traces that cost the square of their size when done carelessly: minutes each then, far below a second as it is.

use std::time::{Duration, Instant};

use longpole_analysis::{
    GroupBy, Scope, StepOptions, StepTable, TraceIndex, TriageOptions, idle_pieces, idle_table, memory_table, op_table, range_table,
    step_table, triage,
};
use longpole_trace::{
    Activity, ActivityKind, ApiCall, HostOp, Lane, LaneId, MemoryEvent, MemoryPlace, Ns, Range, RankInfo, StrId, ThreadId, Tid, Trace,
    TraceBuilder,
};

/// Generous: the slowest machine that runs the tests does other things as well.
const LIMIT: Duration = Duration::from_secs(15);

struct Build {
    builder: TraceBuilder,
    thread: ThreadId,
    lane: LaneId,
}

impl Build {
    fn new() -> Self {
        let mut builder = TraceBuilder::new();
        let rank = builder.add_rank(RankInfo::default());
        let process = builder.process(rank, 1);
        let thread = builder.thread(process, Tid::Number(1));
        let device = builder.device(rank, 0);
        let lane = builder.lane(Lane { device, context: None, stream: 7 });
        Self { builder, thread, lane }
    }

    fn name(&mut self, name: &str) -> StrId {
        self.builder.trace_mut().strings.intern(name)
    }

    fn range(&mut self, name: &str, start: i64, dur: i64) {
        let (name, thread) = (self.name(name), self.thread);
        self.builder.push_range(Range { name, thread, start: Ns(start), dur: Ns(dur) });
    }

    fn op(&mut self, name: &str, start: i64, dur: i64) {
        let (name, thread) = (self.name(name), self.thread);
        let (start, dur, external_id, shapes, types) = (Ns(start), Ns(dur), None, None, None);
        self.builder.push_host_op(HostOp { name, thread, start, dur, external_id, shapes, types, strides: None, values: None });
    }

    /// A launch, and a kernel some time after.
    fn launch(&mut self, at: i64, correlation: u64) {
        let (call, kernel) = (self.name("cudaLaunchKernel"), self.name("kernel"));
        let (thread, lane, correlation, external_id) = (self.thread, self.lane, Some(correlation), None);
        self.builder.push_api_call(ApiCall { name: call, thread, start: Ns(at), dur: Ns(2), correlation, external_id });
        let (kind, start, dur, detail, graph_node) = (ActivityKind::Kernel, Ns(at + 6), Ns(3), None, None);
        self.builder.push_activity(Activity { kind, name: kernel, lane, start, dur, correlation, external_id, detail, graph_node });
    }

    fn finish(mut self, end: i64) -> Trace {
        self.builder.trace_mut().window.include(Ns(0), Ns(end));
        self.builder.finish()
    }
}

/// Looks at a trace in every way, which must not take long.
fn looks_at_all(trace: &Trace) {
    let began = Instant::now();
    let index = TraceIndex::new(trace);
    let scope = Scope::whole();
    let ops = op_table(&index, &scope, GroupBy::Name);
    let kernels: i64 = trace.activities.dur.iter().map(|dur| dur.get()).sum();
    assert_eq!(ops.self_cuda_total_ns.map_or(0, Ns::get), kernels);
    range_table(&index, &scope);
    memory_table(&index, &scope);
    let idle = idle_table(&index, &scope).idle_ns.unwrap_or_default();
    assert_eq!(idle_pieces(&index, &scope).iter().map(|piece| piece.end - piece.start).sum::<Ns>(), idle);
    triage(&index, &scope, &TriageOptions::default());
    assert!(began.elapsed() < LIMIT, "{:?}", began.elapsed());
}

#[test]
fn calls_that_all_have_one_number() {
    let mut build = Build::new();
    let count = 200_000;
    for at in 0..count {
        build.launch(at * 10, 0);
    }
    let trace = build.finish(count * 10);
    looks_at_all(&trace);
    let index = TraceIndex::new(&trace);
    let call = |row| index.links().call(longpole_trace::ActivityId::from_index(row)).unwrap().index();
    assert!((0..trace.activities.len()).all(|row| call(row) == row), "each kernel belongs to the last call before it");
}

#[test]
fn ranges_that_all_have_their_own_name() {
    let mut build = Build::new();
    let count = 200_000;
    for at in 0..count {
        build.range(&format!("request {at}"), at * 10, 9);
        build.launch(at * 10 + 1, at as u64);
    }
    looks_at_all(&build.finish(count * 10));
}

#[test]
fn ranges_nested_without_end() {
    let mut build = Build::new();
    let depth = 100_000;
    for at in 0..depth {
        // Two names in turn, since a range in one of its name is the same.
        build.range(["outer", "inner"][at as usize % 2], at, 20 * depth - 2 * at);
    }
    for at in 0..depth {
        build.launch(depth + at * 10, at as u64);
    }
    let trace = build.finish(20 * depth);
    looks_at_all(&trace);
    let rows = range_table(&TraceIndex::new(&trace), &Scope::whole());
    assert!(rows.iter().all(|row| row.gpu_busy_ns.map(Ns::get) == Some(row.calls as i64 * depth * 3)), "{:?}", rows.last());
}

#[test]
fn operators_nested_without_end() {
    let mut build = Build::new();
    let depth = 100_000;
    for at in 0..depth {
        build.op(["outer", "inner"][at as usize % 2], at, 20 * depth - 2 * at);
    }
    for at in 0..depth {
        let (thread, start) = (build.thread, Ns(depth + at * 10));
        let (place, device, total_allocated, total_reserved) = (MemoryPlace::Device, None, None, None);
        build.builder.push_memory_event(MemoryEvent { thread, start, bytes: 512, place, device, total_allocated, total_reserved });
    }
    let trace = build.finish(20 * depth);
    looks_at_all(&trace);
    let table = memory_table(&TraceIndex::new(&trace), &Scope::whole());
    assert_eq!(table.rows.iter().map(|row| row.peak_bytes).max(), Some(512 * depth as u64));
}

#[test]
fn devices_without_number() {
    let mut build = Build::new();
    let count = 200_000;
    for at in 0..count {
        let device = build.builder.device(0, at);
        build.lane = build.builder.lane(Lane { device, context: None, stream: 7 });
        build.launch(at * 10, at as u64);
    }
    let trace = build.finish(count * 10);
    looks_at_all(&trace);
    let index = TraceIndex::new(&trace);
    let report = triage(&index, &Scope::whole(), &TriageOptions::default()).report;
    assert!(report.hardware.contains("199,992 devices of other kinds"), "{}", report.hardware);
}

/// Finds steps in a trace of kernels by name, one launch each, `marked` at these positions, which must not take long.
fn finds_steps(names: &[u32], marked: &[usize]) -> StepTable {
    let mut build = Build::new();
    let symbols: Vec<StrId> = (0..=names.iter().copied().max().unwrap_or(0)).map(|name| build.name(&format!("kernel {name}"))).collect();
    let call = build.name("cudaLaunchKernel");
    for (at, &name) in names.iter().enumerate() {
        let (thread, lane, correlation, external_id) = (build.thread, build.lane, Some(at as u64), None);
        let start = Ns(at as i64 * 10);
        build.builder.push_api_call(ApiCall { name: call, thread, start, dur: Ns(2), correlation, external_id });
        let (kind, name, dur, detail, graph_node) = (ActivityKind::Kernel, symbols[name as usize], Ns(3), None, None);
        build.builder.push_activity(Activity { kind, name, lane, start, dur, correlation, external_id, detail, graph_node });
    }
    for (number, pair) in marked.windows(2).enumerate() {
        build.range(&format!("step {number}"), pair[0] as i64 * 10, (pair[1] - pair[0]) as i64 * 10 - 1);
    }
    let trace = build.finish(names.len() as i64 * 10);
    let index = TraceIndex::new(&trace);
    index.links();
    let began = Instant::now();
    let table = step_table(&index, &Scope::whole(), &StepOptions::default());
    let took = began.elapsed();
    assert!(took < LIMIT, "{took:?}");
    for group in &table.groups {
        assert_eq!(group.rows.iter().map(|row| row.total_ns).sum::<Ns>(), group.total_busy_ns);
    }
    table
}

/// Numbers that look random (SplitMix64; Steele, Lea and Flood, 2014).
fn scattered(count: usize, below: u64) -> Vec<u32> {
    let mixed = |at: u64| {
        let z = at.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    (1..=count as u64).map(|at| (mixed(at) % below) as u32).collect()
}

#[test]
fn steps_of_long_traces() {
    let step: Vec<u32> = (100..112).chain((0..28).flat_map(|_| 0..58)).chain(120..131).collect();
    let table = finds_steps(&step.repeat(250), &[]);
    assert_eq!(table.groups.iter().map(|group| group.steps.len()).collect::<Vec<_>>(), [250]);
    assert_eq!(table.groups[0].layers.as_ref().map(|layers| layers.order.len()), Some(28));
    finds_steps(&vec![7; 300_000], &[]);
    finds_steps(&[1, 2, 3].repeat(100_000), &[]);
    finds_steps(&scattered(300_000, 2), &[]);
    finds_steps(&scattered(300_000, 40), &[]);
    finds_steps(&scattered(300_000, 100_000), &[]);
}

#[test]
fn marked_steps_that_are_all_unlike() {
    let bounds: Vec<usize> = (0..=30_000).map(|step| step * 10).collect();
    finds_steps(&scattered(300_000, 50), &bounds);
    let bounds: Vec<usize> = (0..=30).map(|step| step * 10_000).collect();
    finds_steps(&scattered(300_000, 50), &bounds);
    finds_steps(&vec![7; 300_000], &bounds);
}
