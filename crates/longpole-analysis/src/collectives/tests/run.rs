//! Runs made up with everything known: who computes how long, when each rank enters a collective, what its clock says, what was recorded.

use std::ops::Range;

use longpole_trace::{
    Activity, ActivityId, ActivityKind, ApiCall, Collective, CollectivePlace, HostOp, Lane, LaneId, Ns, ProcessId, RankInfo, StrId,
    ThreadId, Tid, Trace, TraceBuilder,
};

/// A run to make up. Times in nanoseconds.
#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) ranks: usize,
    pub(super) steps: usize,
    /// What each rank's clock is ahead.
    pub(super) ahead: Vec<i64>,
    /// What each rank's clock gains a second.
    pub(super) drift: Vec<i64>,
    /// Steps that each rank recorded.
    pub(super) recorded: Vec<Range<usize>>,
    /// (rank, step) whose collective was not recorded.
    pub(super) lost: Vec<(usize, usize)>,
    /// (rank, every how many steps, matrix products more, time of one).
    pub(super) extra: Option<(usize, usize, usize, i64)>,
    /// (rank, step, time) that a host was away.
    pub(super) pause: Option<(usize, usize, i64)>,
    /// Groups of ranks.
    pub(super) groups: Vec<Vec<usize>>,
    pub(super) is_named: bool,
    pub(super) is_numbered: bool,
    pub(super) is_regular: bool,
    /// How many times faster than usual everything is.
    pub(super) hurry: i64,
    pub(super) seed: u64,
}

/// When a rank entered and left the collective of a step, in true time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Visit {
    pub(super) rank: usize,
    pub(super) step: usize,
    pub(super) start: i64,
    pub(super) end: i64,
}

/// The trace of a run, and what is true of its collectives, by activity.
pub(super) struct Made {
    pub(super) trace: Trace,
    pub(super) visits: Vec<Option<Visit>>,
    /// All visits, recorded or not.
    pub(super) all: Vec<Visit>,
}

impl Run {
    pub(super) fn new(ranks: usize, steps: usize) -> Self {
        Self {
            ranks,
            steps,
            ahead: vec![0; ranks],
            drift: vec![0; ranks],
            recorded: vec![0..steps; ranks],
            lost: Vec::new(),
            extra: None,
            pause: None,
            groups: vec![(0..ranks).collect()],
            is_named: true,
            is_numbered: false,
            is_regular: false,
            hurry: 1,
            seed: 7,
        }
    }

    pub(super) fn make(&self) -> Made {
        let mut maker = Maker::new(self);
        let mut now = vec![1_000_000_000_i64; self.ranks];
        let mut all = Vec::new();
        for step in 0..self.steps {
            for (group, members) in self.groups.iter().enumerate() {
                let common = if self.is_regular { 300_000 } else { (50_000 + maker.random(600_000)) / self.hurry };
                let mut starts = Vec::new();
                for &rank in members {
                    let compute = common + maker.random(40_000) / self.hurry;
                    maker.work(rank, step, now[rank], compute, "aten::linear");
                    now[rank] += compute;
                    if let Some((late, every, count, time)) = self.extra
                        && late == rank
                        && step.is_multiple_of(every)
                    {
                        for _ in 0..count {
                            maker.work(rank, step, now[rank], time, "aten::mm");
                            now[rank] += time;
                        }
                    }
                    if let Some((late, at, time)) = self.pause
                        && (late, at) == (rank, step)
                    {
                        maker.op(rank, step, now[rank], time, "aten::item");
                        now[rank] += time;
                    }
                    starts.push(now[rank]);
                }
                let last = starts.iter().copied().max().unwrap_or(0);
                let transfer = (15_000 + if self.is_regular { 0 } else { maker.random(30_000) }) / self.hurry;
                for (&rank, start) in members.iter().zip(starts) {
                    let end = last + transfer + maker.random(1_500);
                    let visit = Visit { rank, step, start, end };
                    all.push(visit);
                    maker.collective(group, visit);
                    now[rank] = end;
                }
            }
        }
        Made { trace: maker.builder.finish(), visits: maker.visits, all }
    }
}

struct Maker<'r> {
    run: &'r Run,
    builder: TraceBuilder,
    places: Vec<(ThreadId, LaneId)>,
    visits: Vec<Option<Visit>>,
    state: u64,
    correlation: u64,
}

impl<'r> Maker<'r> {
    fn new(run: &'r Run) -> Self {
        let mut builder = TraceBuilder::new();
        let places = (0..run.ranks).map(|rank| {
            let info = RankInfo { label: format!("rank{rank}"), rank: rank as u32, ..RankInfo::default() };
            let index = builder.add_rank(info);
            let process: ProcessId = builder.process(index, 100);
            let thread = builder.thread(process, Tid::Number(100));
            let device = builder.device(index, rank as i64);
            (thread, builder.lane(Lane { device, context: Some(1), stream: 7 }))
        });
        let places = places.collect();
        Self { run, builder, places, visits: Vec::new(), state: run.seed, correlation: 0 }
    }

    /// A number below `limit`.
    fn random(&mut self, limit: i64) -> i64 {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.state >> 33) as i64) % limit
    }

    fn text(&mut self, text: &str) -> StrId {
        self.builder.trace_mut().strings.intern(text)
    }

    /// What a rank's clock says at a time.
    fn clock(&self, rank: usize, time: i64) -> Ns {
        Ns(time + self.run.ahead[rank] + self.run.drift[rank] * (time / 1_000) / 1_000_000)
    }

    fn op(&mut self, rank: usize, step: usize, start: i64, dur: i64, name: &str) {
        if self.run.recorded[rank].contains(&step) {
            let (name, thread) = (self.text(name), self.places[rank].0);
            let start = self.clock(rank, start);
            self.builder.push_host_op(HostOp {
                name,
                thread,
                start,
                dur: Ns(dur),
                external_id: None,
                shapes: None,
                types: None,
                strides: None,
                values: None,
            });
        }
    }

    /// A kernel, its launch, and the operator around it.
    fn work(&mut self, rank: usize, step: usize, start: i64, dur: i64, name: &str) {
        if !self.run.recorded[rank].contains(&step) {
            return;
        }
        let lane = self.places[rank].1;
        self.op(rank, step, start - 9_000, 4_000, name);
        self.launch(rank, start - 8_000);
        let kernel = self.text("sm90_gemm");
        let (start, correlation) = (self.clock(rank, start), Some(self.correlation));
        self.activity(Activity {
            kind: ActivityKind::Kernel,
            name: kernel,
            lane,
            start,
            dur: Ns(dur),
            correlation,
            external_id: None,
            detail: None,
            graph_node: None,
        });
        self.visits.push(None);
    }

    fn launch(&mut self, rank: usize, start: i64) {
        let (name, thread) = (self.text("cudaLaunchKernel"), self.places[rank].0);
        self.correlation += 1;
        let (start, correlation) = (self.clock(rank, start), Some(self.correlation));
        self.builder.push_api_call(ApiCall { name, thread, start, dur: Ns(2_000), correlation, external_id: None });
    }

    fn activity(&mut self, row: Activity) {
        self.builder.trace_mut().window.include(row.start, row.start + row.dur);
        self.builder.push_activity(row);
    }

    fn collective(&mut self, group: usize, visit: Visit) {
        let rank = visit.rank;
        if !self.run.recorded[rank].contains(&visit.step) || self.run.lost.contains(&(rank, visit.step)) {
            return;
        }
        let lane = self.places[rank].1;
        self.launch(rank, visit.start - 8_000);
        let name = self.text("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)");
        let (start, end) = (self.clock(rank, visit.start), self.clock(rank, visit.end));
        let correlation = Some(self.correlation);
        self.activity(Activity {
            kind: ActivityKind::Kernel,
            name,
            lane,
            start,
            dur: end - start,
            correlation,
            external_id: None,
            detail: None,
            graph_node: None,
        });
        if self.run.is_named {
            let size = self.run.groups[group].len() as u32;
            let (group, dtype) = (self.text(&format!("group {group}")), self.text("BFloat16"));
            self.builder.push_collective(Collective {
                place: CollectivePlace::Device(lane),
                start,
                name: None,
                group: Some(group),
                group_ranks: None,
                dtype: Some(dtype),
                group_size: Some(size),
                in_elements: Some(1_024),
                out_elements: Some(1_024),
                sequence: self.run.is_numbered.then_some(visit.step as u64 + 40),
                source_rank: None,
                destination_rank: None,
            });
        }
        self.visits.push(Some(visit));
    }
}

impl Made {
    pub(super) fn visit(&self, activity: ActivityId) -> Visit {
        self.visits[activity.index()].unwrap()
    }
}
