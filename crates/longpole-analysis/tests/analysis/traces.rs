//! Small hand-built traces, one for each rule that a real trace shows too rarely to be tested on.

use longpole_analysis::{
    GroupBy, OpRow, OpRowKind, OpTable, Owner, Scope, ScopeError, ScopeSpec, SortKey, TraceIndex, memory_table, op_table,
};
use longpole_trace::{
    Activity, ActivityId, ActivityKind, ApiCall, ApiCallId, HostOp, HostOpId, Lane, LaneId, MemoryEvent, MemoryPlace, Ns, Range, RankInfo,
    ThreadId, Tid, Trace, TraceBuilder,
};

/// Builds traces in few words: everything on one thread and one stream unless it says otherwise.
struct Sketch {
    builder: TraceBuilder,
    thread: ThreadId,
    lane: LaneId,
}

impl Sketch {
    fn new() -> Self {
        let mut sketch = Self { builder: TraceBuilder::new(), thread: ThreadId(0), lane: LaneId(0) };
        sketch.rank(0, 100);
        sketch
    }

    /// What follows happens on a new rank, in process `pid`.
    fn rank(&mut self, rank: u32, pid: i64) {
        let index = self.builder.add_rank(RankInfo { rank, ..RankInfo::default() });
        self.process(index, pid);
        let device = self.builder.device(index, i64::from(rank));
        self.lane = self.builder.lane(Lane { device, context: None, stream: 7 });
    }

    /// What follows happens in process `pid` of the rank at `index`.
    fn process(&mut self, index: u32, pid: i64) {
        let process = self.builder.process(index, pid);
        self.thread = self.builder.thread(process, Tid::Number(pid));
    }

    /// Kernels that follow run on device `ordinal` of the rank at `index`.
    fn device(&mut self, index: u32, ordinal: i64) {
        let device = self.builder.device(index, ordinal);
        self.lane = self.builder.lane(Lane { device, context: None, stream: 7 });
    }

    /// What follows happens on another thread of the same process.
    fn thread(&mut self, tid: i64) {
        let process = self.builder.trace_mut().threads[self.thread.index()].process;
        self.thread = self.builder.thread(process, Tid::Number(tid));
    }

    fn times(&mut self, start: i64, end: i64) -> (ThreadId, Ns, Ns) {
        self.builder.trace_mut().window.include(Ns(start), Ns(end));
        (self.thread, Ns(start), Ns(end - start))
    }

    fn op_with(&mut self, name: &str, start: i64, end: i64, external_id: Option<u64>, shapes: Option<&str>) -> &mut Self {
        let (thread, start, dur) = self.times(start, end);
        let strings = &mut self.builder.trace_mut().strings;
        let (name, shapes) = (strings.intern(name), shapes.map(|text| strings.intern(text)));
        self.builder.push_host_op(HostOp { name, thread, start, dur, external_id, shapes, types: None, strides: None, values: None });
        self
    }

    fn op(&mut self, name: &str, start: i64, end: i64) -> &mut Self {
        self.op_with(name, start, end, None, None)
    }

    fn range(&mut self, name: &str, start: i64, end: i64) -> &mut Self {
        let (thread, start, dur) = self.times(start, end);
        let name = self.builder.trace_mut().strings.intern(name);
        self.builder.push_range(Range { name, thread, start, dur });
        self
    }

    fn api(&mut self, name: &str, start: i64, end: i64, correlation: u64) -> &mut Self {
        let (thread, start, dur) = self.times(start, end);
        let name = self.builder.trace_mut().strings.intern(name);
        self.builder.push_api_call(ApiCall { name, thread, start, dur, correlation: Some(correlation), external_id: None });
        self
    }

    fn kernel_of(&mut self, start: i64, end: i64, correlation: Option<u64>, external_id: Option<u64>) -> &mut Self {
        let (_, start, dur) = self.times(start, end);
        let name = self.builder.trace_mut().strings.intern("kernel");
        let (kind, lane) = (ActivityKind::Kernel, self.lane);
        self.builder.push_activity(Activity { kind, name, lane, start, dur, correlation, external_id, detail: None, graph_node: None });
        self
    }

    fn kernel(&mut self, start: i64, end: i64, correlation: u64) -> &mut Self {
        self.kernel_of(start, end, Some(correlation), None)
    }

    fn alloc(&mut self, at: i64, bytes: i64) -> &mut Self {
        let (thread, start, _) = self.times(at, at);
        let (place, device) = (MemoryPlace::Device, Some(0));
        let total_allocated = Some(1000 + at as u64);
        self.builder.push_memory_event(MemoryEvent { thread, start, bytes, place, device, total_allocated, total_reserved: None });
        self
    }

    fn finish(&mut self) -> Trace {
        std::mem::take(&mut self.builder).finish()
    }
}

fn table(trace: &Trace) -> OpTable {
    op_table(&TraceIndex::new(trace), &Scope::whole(), GroupBy::Name)
}

fn row<'a>(table: &'a OpTable, name: &str) -> &'a OpRow {
    table.rows.iter().find(|row| row.name == name).unwrap_or_else(|| panic!("no row {name} in {:?}", names(table)))
}

fn names(table: &OpTable) -> Vec<&str> {
    table.rows.iter().map(|row| row.name.as_str()).collect()
}

fn scoped(trace: &Trace, spec: &ScopeSpec) -> (OpTable, Ns) {
    let index = TraceIndex::new(trace);
    let scope = Scope::resolve(&index, spec).unwrap();
    (op_table(&index, &scope, GroupBy::Name), scope.wall(&index))
}

#[test]
fn one_graph_launch_has_many_activities_and_is_one_call() {
    let mut sketch = Sketch::new();
    sketch.range("step", 0, 30).api("cudaGraphLaunch", 5, 10, 1);
    sketch.kernel(12, 15, 1).kernel(15, 20, 1).kernel(20, 28, 1);
    let trace = sketch.finish();
    let table = table(&trace);
    let outside = row(&table, "(no operator) cudaGraphLaunch");
    assert_eq!((outside.calls, outside.self_cuda_ns, outside.cuda_ns), (1, Some(Ns(16)), Some(Ns(16))));
    assert_eq!((outside.cpu_ns, outside.self_cpu_ns, outside.cuda_mem_bytes), (None, None, None));
    let call = row(&table, "cudaGraphLaunch");
    assert_eq!((call.kind, call.calls, call.self_cpu_ns, call.self_cuda_ns), (OpRowKind::ApiCall, 1, Some(Ns(5)), Some(Ns(0))));
    assert_eq!(names(&table), ["cudaGraphLaunch", "(no operator) cudaGraphLaunch"], "a range has no row");
    assert_eq!(table.self_cuda_total_ns, Some(Ns(16)));
}

#[test]
fn unrecorded_launches_have_their_own_row() {
    let mut sketch = Sketch::new();
    sketch.op("aten::mm", 0, 10).kernel(1, 4, 77).kernel(4, 5, 77).kernel_of(5, 9, None, None).kernel_of(9, 10, None, None);
    let trace = sketch.finish();
    let index = TraceIndex::new(&trace);
    assert_eq!(index.links().owner(ActivityId(0)), Owner::Unrecorded);
    assert_eq!(index.links().counts().orphan_activities, 4);
    let table = table(&trace);
    let before = row(&table, "(no operator) launch not recorded");
    assert_eq!((before.calls, before.self_cuda_ns), (3, Some(Ns(9))), "one number is one launch, no number is a launch each");
}

#[test]
fn external_id_names_the_operator_where_the_launch_cannot() {
    let mut sketch = Sketch::new();
    sketch.op_with("aten::mm", 0, 10, Some(5), None).op_with("aten::add", 10, 20, Some(6), None);
    // No launch at all; a launch outside any operator; a launch inside an operator, which counts for more than the id.
    sketch.kernel_of(30, 31, None, Some(5)).api("cudaLaunchKernel", 25, 26, 1).kernel_of(32, 34, Some(1), Some(6));
    sketch.api("cudaLaunchKernel", 2, 3, 2).kernel_of(34, 38, Some(2), Some(6));
    let trace = sketch.finish();
    let table = table(&trace);
    assert_eq!(row(&table, "aten::mm").self_cuda_ns, Some(Ns(5)));
    assert_eq!(row(&table, "aten::add").self_cuda_ns, Some(Ns(2)));
    assert_eq!(row(&table, "cudaLaunchKernel").calls, 2);
    assert_eq!(table.rows.len(), 3);
}

#[test]
fn an_only_child_of_the_same_name_is_folded() {
    let mut sketch = Sketch::new();
    sketch.op("aten::to", 0, 100).op("aten::to", 10, 90).op("aten::to", 20, 80);
    sketch.api("cudaMemcpyAsync", 30, 40, 1).kernel(50, 60, 1).op("aten::empty", 70, 75);
    let trace = sketch.finish();
    let index = TraceIndex::new(&trace);
    assert_eq!(index.tree().folded(), 2);
    assert_eq!(index.tree().op_node(HostOpId(2)), index.tree().op_node(HostOpId(0)));
    let table = table(&trace);
    let to = row(&table, "aten::to");
    assert_eq!((to.calls, to.cpu_ns, to.self_cpu_ns, to.self_cuda_ns), (1, Some(Ns(100)), Some(Ns(85)), Some(Ns(10))));
}

#[test]
fn an_operator_is_not_folded_into_a_range() {
    let mut sketch = Sketch::new();
    sketch.range("step", 0, 100).op("step", 10, 90);
    let trace = sketch.finish();
    assert_eq!(row(&table(&trace), "step").cpu_ns, Some(Ns(80)));
}

#[test]
fn recursion_counts_each_call_once() {
    let mut sketch = Sketch::new();
    sketch.op("f", 0, 100).op("f", 10, 50).op("g", 60, 70).api("cudaLaunchKernel", 20, 21, 1).kernel(30, 37, 1);
    let trace = sketch.finish();
    let table = table(&trace);
    let f = row(&table, "f");
    assert_eq!((f.calls, f.cpu_ns, f.self_cpu_ns), (2, Some(Ns(140)), Some(Ns(89))));
    assert_eq!((f.self_cuda_ns, f.cuda_ns), (Some(Ns(7)), Some(Ns(14))));
}

#[test]
fn overlapping_children_are_counted_once_and_self_time_is_never_negative() {
    let mut sketch = Sketch::new();
    sketch.op("parent", 0, 20).op("a", 0, 12).op("b", 8, 20).op("late", 15, 30);
    let trace = sketch.finish();
    assert_eq!(TraceIndex::new(&trace).tree().partial_overlaps(), 2);
    assert_eq!(row(&table(&trace), "parent").self_cpu_ns, Some(Ns(0)));
}

#[test]
fn names_that_torch_drops_have_no_row_but_their_device_time_stays() {
    let mut sketch = Sketch::new();
    sketch.op("aten::mm", 0, 50).op("profiler::_record_function_enter_new", 10, 20).api("cudaLaunchKernel", 12, 13, 1).kernel(30, 35, 1);
    sketch.op_with("aten::_version", 60, 70, Some(9), None).api("cudaLaunchKernel", 61, 62, 2).kernel_of(70, 72, Some(2), Some(9));
    let trace = sketch.finish();
    let table = table(&trace);
    assert_eq!(names(&table), ["aten::mm", "cudaLaunchKernel", "(no operator) cudaLaunchKernel"]);
    assert_eq!(row(&table, "aten::mm").self_cuda_ns, Some(Ns(5)));
    assert_eq!(row(&table, "aten::mm").self_cpu_ns, Some(Ns(49)), "as if the dropped event was not there");
    assert_eq!(table.self_cuda_total_ns, Some(Ns(7)));
}

#[test]
fn what_was_not_recorded_is_absent() {
    let mut sketch = Sketch::new();
    sketch.op("aten::mm", 0, 50);
    let trace = sketch.finish();
    let table = op_table(&TraceIndex::new(&trace), &Scope::whole(), GroupBy::Shape);
    let mm = row(&table, "aten::mm");
    assert_eq!((mm.self_cuda_ns, mm.cuda_ns, mm.self_cpu_mem_bytes, mm.cuda_mem_bytes), (None, None, None, None));
    assert_eq!((mm.shapes.clone(), mm.stack.clone(), table.self_cuda_total_ns), (None, None, None));
    let empty = TraceBuilder::new().finish();
    let empty_table = op_table(&TraceIndex::new(&empty), &Scope::whole(), GroupBy::Stack(3));
    assert_eq!((empty_table.rows.len(), empty_table.self_cpu_total_ns), (0, Ns(0)));
}

#[test]
fn rows_by_shape() {
    let mut sketch = Sketch::new();
    sketch.op_with("aten::cat", 0, 10, None, Some("[[[1, 2], [3, 4]], []]")).op_with("aten::cat", 10, 20, None, Some("[[[5, 6]], []]"));
    sketch.op_with("aten::cat", 20, 30, None, Some("[[5, 6], []]")).op("aten::empty", 30, 40).api("cudaLaunchKernel", 31, 32, 1);
    let trace = sketch.finish();
    let table = op_table(&TraceIndex::new(&trace), &Scope::whole(), GroupBy::Shape);
    let rows: Vec<_> = table.rows.iter().map(|row| (row.name.as_str(), row.shapes.as_deref().unwrap(), row.calls)).collect();
    let want = [("aten::cat", "[[], []]", 2), ("aten::cat", "[[5, 6], []]", 1), ("aten::empty", "[]", 1), ("cudaLaunchKernel", "[]", 1)];
    assert_eq!(rows, want);
}

#[test]
fn sorting_is_stable_and_puts_missing_values_last() {
    let mut sketch = Sketch::new();
    sketch.op("a", 0, 10).op("b", 10, 20).op("c", 20, 40).api("cudaGraphLaunch", 50, 51, 1).kernel(60, 65, 1);
    let trace = sketch.finish();
    let mut table = table(&trace);
    table.sort(SortKey::CpuTimeTotal);
    assert_eq!(names(&table), ["c", "a", "b", "cudaGraphLaunch", "(no operator) cudaGraphLaunch"]);
    table.sort(SortKey::CudaTimeTotal);
    assert_eq!(names(&table), ["(no operator) cudaGraphLaunch", "c", "a", "b", "cudaGraphLaunch"]);
}

#[test]
fn shared_correlation_numbers_go_to_the_call_that_came_last_before() {
    let mut sketch = Sketch::new();
    sketch.op("first", 0, 10).api("cudaLaunchKernel", 1, 2, 1);
    sketch.process(0, 200);
    sketch.op("second", 20, 30).api("cudaLaunchKernel", 21, 22, 1);
    sketch.kernel(5, 8, 1).kernel(40, 50, 1);
    let trace = sketch.finish();
    let index = TraceIndex::new(&trace);
    assert_eq!(index.links().call(ActivityId(0)), Some(ApiCallId(0)));
    assert_eq!(index.links().call(ActivityId(1)), Some(ApiCallId(1)));
}

/// Two processes whose calls have the same numbers, `skew` apart, on the devices given; the operator that each kernel went to.
fn merged_ranks(devices: [i64; 2], skew: i64, backlog: i64, own_number: bool) -> Vec<String> {
    let mut sketch = Sketch::new();
    for (at, device) in devices.into_iter().enumerate() {
        sketch.process(0, 100 * (at as i64 + 1));
        sketch.device(0, device);
        for number in 0..4 {
            let start = 100 * number + skew * at as i64;
            let lag = 20 + if at == 0 { backlog } else { 0 };
            sketch.op(["first", "second"][at], start, start + 50).api("cudaLaunchKernel", start + 10, start + 12, number as u64);
            sketch.kernel(start + lag, start + lag + 3, number as u64);
        }
        if own_number && at == 0 {
            sketch.op("first", 900, 950).api("cudaLaunchKernel", 910, 912, 10).kernel(960, 970, 10);
        }
    }
    let trace = sketch.finish();
    let index = TraceIndex::new(&trace);
    let owner =
        |row| index.links().owner_node(ActivityId::from_index(row)).map(|node| trace.strings.get(index.tree().name(node)).to_owned());
    (0..trace.activities.len()).filter_map(owner).collect()
}

#[test]
fn ranks_merged_into_one_recording_keep_their_kernels() {
    let apart = |own: usize| [vec!["first"; 4 + own], vec!["second"; 4]].concat();
    for devices in [[0, 1], [0, 0]] {
        assert_eq!(merged_ranks(devices, 7, 0, false), apart(0), "{devices:?}");
        assert_eq!(merged_ranks(devices, 1000, 0, false), apart(0), "{devices:?}");
        // One rank made a call more: its stream is not its own for that.
        assert_eq!(merged_ranks(devices, 7, 0, true), apart(1), "{devices:?}");
    }
    // Device 0 is far behind; an unshared number tells whose it is.
    assert_eq!(merged_ranks([0, 1], 7, 60, true), apart(1));
}

#[test]
fn numbers_of_other_ranks_do_not_match_and_sparse_ones_do() {
    let mut sketch = Sketch::new();
    sketch.op("zero", 0, 10).api("cudaLaunchKernel", 1, 2, 1);
    sketch.rank(1, 300);
    sketch.op("one", 0, 10).api("cudaLaunchKernel", 1, 2, u64::MAX - 1).api("cudaLaunchKernel", 3, 4, 3);
    sketch.kernel(10, 12, 1).kernel(12, 15, u64::MAX - 1);
    let trace = sketch.finish();
    let index = TraceIndex::new(&trace);
    assert_eq!(index.links().call(ActivityId(0)), None, "rank 1 has no such number");
    assert_eq!(index.links().call(ActivityId(1)), Some(ApiCallId(1)));
    assert_eq!(row(&table(&trace), "one").self_cuda_ns, Some(Ns(3)));
}

#[test]
fn launches_of_xla_are_known_by_their_number_where_all_device_work_is_missing() {
    let sketch = |with_work: bool| {
        let mut sketch = Sketch::new();
        sketch.api("fusion", 10, 12, 1).api("dot", 12, 14, 2).api("cuStreamSynchronize", 14, 20, 3).api("MemcpyH2D", 20, 22, 4);
        if with_work {
            sketch.kernel(13, 19, 2);
        }
        sketch.finish()
    };
    let counts = |recorder, with_work| {
        let mut trace = sketch(with_work);
        trace.recorder = recorder;
        let counts = TraceIndex::new(&trace).links().counts();
        (counts.launches, counts.launches_without_activity)
    };
    assert_eq!(counts(longpole_trace::Recorder::Xla, false), (3, 3));
    assert_eq!(counts(longpole_trace::Recorder::Torch, false), (1, 1));
    // Where some of it is there, calls of the same names are launches, as ever.
    assert_eq!(counts(longpole_trace::Recorder::Xla, true), (2, 1));
}

#[test]
fn missing_activities_and_skewed_clocks_are_counted() {
    let mut sketch = Sketch::new();
    sketch.api("cudaLaunchKernel", 10, 12, 1).api("cuNewWayToStart", 12, 14, 2).api("cuNewWayToStart", 14, 16, 3);
    sketch.api("cudaStreamSynchronize", 16, 20, 4).api("cudaLaunchHostFunc", 20, 21, 5);
    sketch.kernel(7, 9, 2);
    let trace = sketch.finish();
    let counts = TraceIndex::new(&trace).links().counts();
    assert_eq!((counts.launches, counts.launches_without_activity), (3, 2));
    assert_eq!((counts.starts_before_launch, counts.largest_skew, counts.orphan_activities), (1, Ns(5), 0));
}

#[test]
fn captured_launches_are_not_lost_ones() {
    let mut sketch = Sketch::new();
    sketch.api("cudaStreamEndCapture_v2", 5, 6, 90).api("cudaLaunchKernel", 3, 4, 1);
    sketch.api("cudaStreamBeginCapture", 10, 12, 91).api("cudaLaunchKernel", 13, 14, 2).api("cudaMemcpyAsync", 15, 16, 3);
    // Work on another stream runs during a capture, and a second capture may be open at the same time.
    sketch.api("cudaLaunchKernel", 17, 18, 4).kernel(30, 31, 4);
    sketch.api("cudaStreamBeginCapture", 18, 19, 92).api("cudaStreamEndCapture", 20, 21, 93).api("cudaLaunchKernel", 22, 23, 5);
    sketch.api("cudaStreamEndCapture", 24, 25, 94).api("cudaLaunchKernel", 26, 27, 6);
    sketch.api("cudaStreamBeginCapture", 40, 41, 95).api("cudaLaunchKernel", 42, 43, 7);
    sketch.thread(555);
    sketch.api("cudaLaunchKernel", 13, 14, 8);
    let trace = sketch.finish();
    let counts = TraceIndex::new(&trace).links().counts();
    let (lost, captured) = (3, 4);
    assert_eq!((counts.launches, counts.launches_without_activity, counts.captured_launches), (8, lost, captured));
}

#[test]
fn allocations_belong_to_the_innermost_event() {
    let mut sketch = Sketch::new();
    sketch.op("outer", 0, 100).op("inner", 10, 50).api("cudaMalloc", 20, 30, 1);
    sketch.alloc(25, 64).alloc(40, 32).alloc(45, -32).alloc(60, 8).alloc(200, 5).alloc(210, -64);
    let trace = sketch.finish();
    let ops = table(&trace);
    let bytes = |name: &str| (row(&ops, name).self_cuda_mem_bytes, row(&ops, name).cuda_mem_bytes);
    assert_eq!(bytes("cudaMalloc"), (Some(64), Some(64)));
    assert_eq!(bytes("inner"), (Some(0), Some(64)));
    assert_eq!(bytes("outer"), (Some(8), Some(72)));
    let memory = memory_table(&TraceIndex::new(&trace), &Scope::whole());
    let rows: Vec<_> = memory
        .rows
        .iter()
        .map(|row| (row.name.as_str(), row.calls, row.allocations, row.allocated_bytes, row.freed_bytes, row.net_bytes, row.peak_bytes))
        .collect();
    let want = [("inner", 1, 2, 96, 32, 64, 96), ("outer", 1, 1, 8, 0, 8, 96), ("(outside any operator)", 0, 1, 5, 64, -59, 5)];
    assert_eq!(rows, want);
    assert_eq!((memory.peak_allocated_bytes, memory.peak_reserved_bytes), (Some(1210), None));
}

/// Two steps of a training loop: each range launches work that ends after it, the second one backward on a worker thread.
fn two_steps() -> Trace {
    let mut sketch = Sketch::new();
    sketch.range("ProfilerStep#3", 0, 100).range("forward", 10, 40).op("aten::mm", 20, 30).api("cudaLaunchKernel", 22, 24, 1);
    sketch.range("ProfilerStep#4", 100, 200).range("forward", 110, 140).op("aten::mm", 120, 130).api("cudaLaunchKernel", 122, 124, 2);
    sketch.kernel(150, 180, 1).kernel(180, 260, 2).kernel_of(0, 5, None, None);
    sketch.thread(999);
    sketch.op("autograd::engine::evaluate_function: MmBackward0", 150, 160).api("cudaLaunchKernel", 152, 153, 3).kernel(260, 270, 3);
    sketch.thread(555);
    sketch.op("aten::elsewhere", 25, 26).api("cudaLaunchKernel", 25, 26, 4).kernel(300, 301, 4);
    sketch.finish()
}

#[test]
fn a_range_scope_takes_work_by_its_launch() {
    let trace = two_steps();
    let spec = |range: &str| ScopeSpec { range: Some(range.to_owned()), ..ScopeSpec::default() };
    let (forward, wall) = scoped(&trace, &spec("forward"));
    assert_eq!((row(&forward, "aten::mm").calls, row(&forward, "aten::mm").cuda_ns), (2, Some(Ns(110))));
    assert_eq!(names(&forward), ["aten::mm", "cudaLaunchKernel"]);
    // The first instance runs from 10 to the end of its kernel at 180, the second from 110 to 260.
    assert_eq!(wall, Ns(250));
    let (steps, _) = scoped(&trace, &spec("ProfilerStep*"));
    assert_eq!(row(&steps, "autograd::engine::evaluate_function: MmBackward0").self_cuda_ns, Some(Ns(10)));
    assert!(!names(&steps).contains(&"aten::elsewhere"), "another thread that is no autograd worker is outside");
    assert_eq!(steps.self_cuda_total_ns, Some(Ns(120)), "what has no recorded launch is in no range");
}

#[test]
fn steps_by_marker_by_repeated_range_and_by_graph_launch() {
    let trace = two_steps();
    let step = |number| ScopeSpec { step: Some(number), ..ScopeSpec::default() };
    let (table, wall) = scoped(&trace, &step(4));
    assert_eq!((table.self_cuda_total_ns, wall), (Some(Ns(90)), Ns(170)));
    let index = TraceIndex::new(&trace);
    assert_eq!(Scope::resolve(&index, &step(0)).unwrap_err(), ScopeError::NoSuchStepMarker(0, vec![3, 4]));

    let mut sketch = Sketch::new();
    sketch.range("once", 0, 500).range("decode", 0, 10).range("decode", 20, 40).range("short", 20, 21).range("short", 22, 23);
    sketch.op("aten::mm", 25, 30).op("aten::add", 5, 6);
    let trace = sketch.finish();
    assert_eq!(names(&scoped(&trace, &step(1)).0), ["aten::mm"]);
    assert_eq!(Scope::resolve(&TraceIndex::new(&trace), &step(2)).unwrap_err(), ScopeError::NoSuchStep(2, 2, "`decode`".to_owned()));

    let mut sketch = Sketch::new();
    sketch.api("cudaGraphLaunch", 0, 5, 1).api("cudaGraphLaunch", 10, 15, 2).kernel(20, 30, 1).kernel(30, 50, 2);
    let trace = sketch.finish();
    let (table, wall) = scoped(&trace, &step(1));
    assert_eq!((row(&table, "(no operator) cudaGraphLaunch").self_cuda_ns, wall), (Some(Ns(20)), Ns(40)));
}

#[test]
fn a_time_scope_takes_work_by_its_launch_else_by_its_own_start() {
    let trace = two_steps();
    let spec = ScopeSpec { time: Some((Ns(0), Ns(100))), ..ScopeSpec::default() };
    let (table, wall) = scoped(&trace, &spec);
    assert_eq!(table.self_cuda_total_ns, Some(Ns(36)));
    assert_eq!(row(&table, "(no operator) launch not recorded").self_cuda_ns, Some(Ns(5)));
    assert_eq!(wall, Ns(301), "to the end of the last work launched in it");
    // The operator began before the window, its launch did not: its work counts, its call does not.
    let spec = ScopeSpec { time: Some((Ns(21), Ns(100))), ..ScopeSpec::default() };
    let (table, _) = scoped(&trace, &spec);
    let mm = row(&table, "aten::mm");
    assert_eq!((mm.calls, mm.cpu_ns, mm.self_cuda_ns, mm.cuda_ns), (0, Some(Ns(0)), Some(Ns(30)), Some(Ns(30))));
}

#[test]
fn devices_and_ranks() {
    let mut sketch = Sketch::new();
    sketch.op("zero", 0, 10).api("cudaLaunchKernel", 1, 2, 1).kernel(5, 9, 1);
    sketch.rank(1, 300);
    sketch.op("one", 0, 10).api("cudaLaunchKernel", 1, 2, 1).kernel(5, 30, 1);
    let trace = sketch.finish();
    let (rank, wall) = scoped(&trace, &ScopeSpec { rank: Some(0), ..ScopeSpec::default() });
    assert_eq!((names(&rank), rank.self_cuda_total_ns, wall), (vec!["zero", "cudaLaunchKernel"], Some(Ns(4)), Ns(10)));
    let (device, wall) = scoped(&trace, &ScopeSpec { device: Some(1), ..ScopeSpec::default() });
    assert_eq!(device.self_cuda_total_ns, Some(Ns(25)));
    assert_eq!((row(&device, "zero").calls, row(&device, "zero").self_cuda_ns, wall), (1, Some(Ns(0)), Ns(30)), "host rows stay");
}

#[test]
fn errors_say_what_there_is() {
    let trace = two_steps();
    let index = TraceIndex::new(&trace);
    let error = |spec: ScopeSpec| Scope::resolve(&index, &spec).unwrap_err().to_string();
    assert_eq!(
        error(ScopeSpec { range: Some("backward".to_owned()), ..ScopeSpec::default() }),
        "there is no range `backward`; the trace has `ProfilerStep*`, `forward`"
    );
    assert_eq!(error(ScopeSpec { device: Some(9), ..ScopeSpec::default() }), "there is no device 9; the trace has 0");
    assert_eq!(error(ScopeSpec { rank: Some(9), ..ScopeSpec::default() }), "there is no rank 9; the trace has 0");
    assert_eq!(error(ScopeSpec { step: Some(9), ..ScopeSpec::default() }), "there is no step 9; the trace has markers for 3, 4");
    let backwards = ScopeSpec { time: Some((Ns(5), Ns(5))), ..ScopeSpec::default() };
    assert_eq!(error(backwards), "the time window is empty: its end must lie after its begin");
    let many: Vec<String> = (0..11).map(|n| format!("r{n}")).collect();
    let text = ScopeError::NoSuchRange("x".to_owned(), many).to_string();
    assert!(text.ends_with("`r7` and 3 more"), "{text}");
}

/// A step whose backward pass runs on another thread, and one more thread of the process. `own` adds to the backward thread.
fn backward_thread(outermost: &str, own: impl Fn(&mut Sketch)) -> u64 {
    let mut sketch = Sketch::new();
    sketch.range("ProfilerStep#0", 0, 100).op("aten::mm", 10, 20).api("cudaLaunchKernel", 12, 14, 1).kernel(20, 30, 1);
    sketch.thread(999);
    sketch.op(outermost, 50, 60).op("aten::mm", 51, 59).api("cudaLaunchKernel", 52, 53, 2).kernel(60, 70, 2);
    own(&mut sketch);
    let trace = sketch.finish();
    let spec = ScopeSpec { step: Some(0), ..ScopeSpec::default() };
    row(&scoped(&trace, &spec).0, "aten::mm").calls
}

#[test]
fn backward_threads_of_old_and_new_traces_belong_to_the_step_open_meanwhile() {
    let names = ["MmBackward0", "CudnnConvolutionBackward", "torch::autograd::AccumulateGrad", "autograd::engine::evaluate_function: X"];
    for name in names {
        assert_eq!(backward_thread(name, |_| ()), 2, "{name}");
    }
    for name in ["aten::convolution_backward", "BackwardHook", "aten::mul"] {
        assert_eq!(backward_thread(name, |_| ()), 1, "{name}");
    }
    // Hooks open ranges inside backward operators, libraries after them; a program's own range makes it a loop of its own.
    assert_eq!(backward_thread("MmBackward0", |sketch| _ = sketch.range("hook", 51, 52)), 2);
    assert_eq!(backward_thread("MmBackward0", |sketch| _ = sketch.range("nccl:all_reduce", 70, 80)), 2);
    assert_eq!(backward_thread("MmBackward0", |sketch| _ = sketch.range("other loop", 70, 80)), 1);
    assert_eq!(backward_thread("MmBackward0", |sketch| _ = sketch.range("FSDP::all", 40, 80)), 1);
    assert_eq!(backward_thread("aten::mul", |sketch| _ = sketch.op("MmBackward0", 55, 57)), 1, "not an outermost operator");
}

#[test]
fn collectives_and_ranges_inside_operators_are_no_steps() {
    let mut sketch = Sketch::new();
    for step in 0..2 {
        let at = step * 100;
        sketch.range("decode", at, at + 90).op("aten::mm", at + 1, at + 50).range("part", at + 2, at + 10).range("part", at + 12, at + 20);
        for (nth, name) in ["nccl:all_reduce", "gloo:all_reduce", "c10d::allreduce_"].iter().enumerate() {
            let at = at + 60 + 10 * nth as i64;
            sketch.range(name, at, at + 2).range(name, at + 3, at + 4).range(name, at + 5, at + 6);
        }
    }
    sketch.api("cudaGraphLaunch", 95, 96, 1);
    let trace = sketch.finish();
    let step = |number| ScopeSpec { step: Some(number), ..ScopeSpec::default() };
    assert_eq!(scoped(&trace, &step(1)).1, Ns(90));
    let error = Scope::resolve(&TraceIndex::new(&trace), &step(2)).unwrap_err().to_string();
    assert_eq!(error, "there is no step 2: a step is a `decode` here, and 2 were found, counted from 0");

    let mut sketch = Sketch::new();
    sketch.range("nccl:all_reduce", 0, 5).range("nccl:all_reduce", 10, 15);
    let trace = sketch.finish();
    let error = Scope::resolve(&TraceIndex::new(&trace), &step(0)).unwrap_err();
    assert_eq!(error, ScopeError::NoSuchStep(0, 0, "graph launch".to_owned()));
    assert!(error.to_string().contains("no repeated range but collectives"), "{error}");
}
