//! Small traces for tests, built event by event.

use longpole_trace::{
    Activity, ActivityKind, ApiCall, Capture, CpuSample, Detail, GraphNode, GraphNodeId, HostOp, Lane, LaneId, MemcpyKind, Ns, OsCall,
    PythonFrame, Range, RankInfo, ThreadId, Tid, Trace, TraceBuilder, Transfer,
};

/// A host event that was added.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Added {
    pub(crate) start: i64,
}

/// Builds a trace with one process; thread 1 is the main thread, device 0 with stream 7 the default.
pub(crate) struct Sample {
    pub(crate) builder: TraceBuilder,
    rank: u32,
    thread: ThreadId,
    lane: LaneId,
    correlation: u64,
    /// The graph node of the next activity.
    node: Option<GraphNodeId>,
}

impl Sample {
    pub(crate) fn new() -> Self {
        let mut builder = TraceBuilder::new();
        let rank = builder.add_rank(RankInfo { label: "sample".to_owned(), ..RankInfo::default() });
        let process = builder.process(rank, 100);
        let thread = builder.thread(process, Tid::Number(1));
        let device = builder.device(rank, 0);
        let lane = builder.lane(Lane { device, context: Some(1), stream: 7 });
        Self { builder, rank, thread, lane, correlation: 0, node: None }
    }

    /// Starts another rank with its own process, thread and device; what follows belongs to it.
    pub(crate) fn next_rank(&mut self, number: u32) {
        self.rank = self.builder.add_rank(RankInfo { label: format!("rank{number}"), rank: number, ..RankInfo::default() });
        self.on_thread(1);
        self.on_device(i64::from(number), 7);
    }

    pub(crate) fn on_thread(&mut self, tid: i64) {
        let process = self.builder.process(self.rank, 100);
        self.thread = self.builder.thread(process, Tid::Number(tid));
    }

    pub(crate) fn on_device(&mut self, ordinal: i64, stream: i64) {
        let device = self.builder.device(self.rank, ordinal);
        self.lane = self.builder.lane(Lane { device, context: Some(1), stream });
    }

    fn include(&mut self, start: i64, dur: i64) {
        self.builder.trace_mut().window.include(Ns(start), Ns(start + dur));
    }

    pub(crate) fn op(&mut self, name: &str, start: i64, dur: i64) -> Added {
        self.op_with_shapes(name, start, dur, None)
    }

    /// An operator with input shapes and types in canonical text.
    pub(crate) fn op_with_shapes(&mut self, name: &str, start: i64, dur: i64, inputs: Option<(&str, &str)>) -> Added {
        self.include(start, dur);
        let strings = &mut self.builder.trace_mut().strings;
        let name = strings.intern(name);
        let (shapes, types) = inputs.map(|(shapes, types)| (strings.intern(shapes), strings.intern(types))).unzip();
        let thread = self.thread;
        self.builder.push_host_op(HostOp {
            name,
            thread,
            start: Ns(start),
            dur: Ns(dur),
            external_id: None,
            shapes,
            types,
            strides: None,
            values: None,
        });
        Added { start }
    }

    pub(crate) fn range(&mut self, name: &str, start: i64, dur: i64) -> Added {
        self.include(start, dur);
        let name = self.builder.trace_mut().strings.intern(name);
        self.builder.push_range(Range { name, thread: self.thread, start: Ns(start), dur: Ns(dur) });
        Added { start }
    }

    pub(crate) fn frame(&mut self, name: &str, start: i64, dur: i64) -> Added {
        self.include(start, dur);
        let name = self.builder.trace_mut().strings.intern(name);
        self.builder.push_frame(PythonFrame { name, thread: self.thread, start: Ns(start), dur: Ns(dur) });
        Added { start }
    }

    /// A call into the operating system. It makes the recording no longer.
    pub(crate) fn os_call(&mut self, name: &str, start: i64, dur: i64) {
        let name = self.builder.trace_mut().strings.intern(name);
        self.builder.push_os_call(OsCall { name, thread: self.thread, start: Ns(start), dur: Ns(dur) });
    }

    /// A sample of what the processor ran for the thread.
    pub(crate) fn cpu_sample(&mut self, name: &str, start: i64) {
        let name = self.builder.trace_mut().strings.intern(name);
        self.builder.push_cpu_sample(CpuSample { name, thread: self.thread, start: Ns(start) });
    }

    /// An API call; device work added to what is returned was launched by it.
    pub(crate) fn launch(&mut self, name: &str, start: i64, dur: i64) -> Launch<'_> {
        self.include(start, dur);
        self.correlation += 1;
        let name = self.builder.trace_mut().strings.intern(name);
        let (thread, correlation) = (self.thread, Some(self.correlation));
        self.builder.push_api_call(ApiCall { name, thread, start: Ns(start), dur: Ns(dur), correlation, external_id: None });
        Launch { correlation: self.correlation, sample: self }
    }

    /// Says that a node of a graph was captured on the thread.
    pub(crate) fn captured(&mut self, node: u64, at: i64) {
        let node = self.builder.graph_node(GraphNode { graph: 1, node });
        self.builder.push_capture(Capture { rank: self.rank, node, thread: self.thread, at: Ns(at) });
    }

    /// A kernel whose launch is not in the trace.
    pub(crate) fn orphan(&mut self, name: &str, start: i64, dur: i64) {
        self.activity(ActivityKind::Kernel, name, start, dur, None, None);
    }

    fn activity(&mut self, kind: ActivityKind, name: &str, start: i64, dur: i64, correlation: Option<u64>, transfer: Option<Transfer>) {
        self.include(start, dur);
        let name = self.builder.trace_mut().strings.intern(name);
        let detail = transfer.map(|transfer| self.builder.detail(Detail::Transfer(transfer)));
        let (start, dur) = (Ns(start), Ns(dur));
        let (lane, graph_node) = (self.lane, self.node.take());
        self.builder.push_activity(Activity { kind, name, lane, start, dur, correlation, external_id: None, detail, graph_node });
    }

    pub(crate) fn finish(self) -> Trace {
        self.builder.finish()
    }
}

/// An API call that device work can be added to.
pub(crate) struct Launch<'s> {
    sample: &'s mut Sample,
    correlation: u64,
}

impl Launch<'_> {
    pub(crate) fn kernel(self, name: &str, start: i64, dur: i64) -> Self {
        self.sample.activity(ActivityKind::Kernel, name, start, dur, Some(self.correlation), None);
        self
    }

    /// A kernel that is a node of a graph.
    pub(crate) fn node(self, node: u64, name: &str, start: i64, dur: i64) -> Self {
        self.sample.node = Some(self.sample.builder.graph_node(GraphNode { graph: 1, node }));
        self.kernel(name, start, dur)
    }

    pub(crate) fn memset(self, name: &str, start: i64, dur: i64) -> Self {
        self.sample.activity(ActivityKind::Memset, name, start, dur, Some(self.correlation), None);
        self
    }

    pub(crate) fn memcpy(self, name: &str, start: i64, dur: i64) -> Self {
        let pageable = Some(name.contains("Pageable"));
        let kind = if name.contains("HtoD") { MemcpyKind::HostToDevice } else { MemcpyKind::DeviceToHost };
        let transfer = Transfer { bytes: Some(1_000), kind, pageable };
        self.sample.activity(ActivityKind::Memcpy, name, start, dur, Some(self.correlation), Some(transfer));
        self
    }
}
