//! Hand-made results, hostile names included.

use longpole_analysis::{
    Calibration, Ceiling, CeilingKind, DeviceTotals, Fact, FactValue, Family, FamilyRow, Hardware, HardwareDevice, HostClock, KernelOwner,
    KernelRow, MemoryRow, MemoryTable, NextExperiment, OpRow, OpRowKind, OpTable, Question, RangeRow, Report, ScopeSpec, Smell, Totals,
    Triage,
};
use longpole_report::{Header, Source, Trust};
use longpole_trace::{ActivityKind, DeviceId, MemoryPlace, Ns, ProblemCode, Problems, RankInfo, Trace, TraceBuilder};

pub(crate) const HOSTILE: &str = "=evil\x1b[31m|`x`<script>\u{202e}\n";

pub(crate) struct Fixture {
    pub(crate) source: Source,
    pub(crate) trust: Trust,
    pub(crate) scope: ScopeSpec,
}

impl Fixture {
    pub(crate) fn header(&self) -> Header<'_> {
        Header { source: &self.source, trust: &self.trust, scope: &self.scope }
    }
}

pub(crate) fn fixture(codes: &[(ProblemCode, u64)]) -> Fixture {
    let mut problems = Problems::default();
    for &(code, count) in codes {
        problems.add_many(code, count, Some(4_096), || Some("cudaLaunchKernel".to_owned()));
    }
    problems.note_time(ProblemCode::StartBeforeLaunch, Ns(1_250));
    Fixture {
        source: Source {
            path: "qwen3.json.gz".to_owned(),
            format: "kineto json.gz".to_owned(),
            bytes: 1_234_567,
            compressed: true,
            events: 23_456,
        },
        trust: Trust::new(&problems),
        scope: ScopeSpec { range: Some("decode_step".to_owned()), time: Some((Ns(10_000_000), Ns::MAX)), ..ScopeSpec::default() },
    }
}

pub(crate) fn op(name: &str, calls: u64, cpu: i64, cuda: i64, memory: Option<i64>) -> OpRow {
    OpRow {
        name: name.to_owned(),
        kind: OpRowKind::Operator,
        shapes: Some("[[1, 1024], [1024, 3072]]".to_owned()),
        stack: None,
        calls,
        self_cpu_ns: Some(Ns(cpu / 2)),
        cpu_ns: Some(Ns(cpu)),
        self_cuda_ns: Some(Ns(cuda)),
        cuda_ns: Some(Ns(cuda)),
        self_cpu_mem_bytes: memory.map(|_| 0),
        cpu_mem_bytes: memory.map(|_| 0),
        self_cuda_mem_bytes: memory,
        cuda_mem_bytes: memory,
    }
}

pub(crate) fn op_table() -> OpTable {
    let graph = OpRow {
        kind: OpRowKind::NoOperator,
        self_cpu_ns: None,
        cpu_ns: None,
        shapes: None,
        ..op("(no operator) cudaGraphLaunch", 12, 0, 9_000_000, None)
    };
    let rows = vec![
        op("aten::mm", 1_234, 45_600_000, 20_500_000, Some(64 << 20)),
        op("aten::_scaled_dot_product_flash_attention_for_a_very_long_operator_name", 28, 4_000_000, 1_000_000, Some(-4_096)),
        graph,
        op(HOSTILE, 1, 400, 300, Some(0)),
    ];
    let cuda = rows.iter().filter_map(|r| r.self_cuda_ns).sum();
    OpTable { self_cpu_total_ns: rows.iter().filter_map(|r| r.self_cpu_ns).sum(), self_cuda_total_ns: Some(cuda), rows }
}

/// What a trace without device activity, memory and shapes gives.
pub(crate) fn cpu_only_table() -> OpTable {
    let bare = |name: &str, calls, cpu| OpRow { self_cuda_ns: None, cuda_ns: None, shapes: None, ..op(name, calls, cpu, 0, None) };
    OpTable {
        rows: vec![bare("aten::add", 10, 30_000), bare("aten::mul", 5, 9_000)],
        self_cuda_total_ns: None,
        self_cpu_total_ns: Ns(19_500),
    }
}

pub(crate) fn kernels() -> Vec<KernelRow> {
    let owner = |name: &str, calls, ns| KernelOwner { name: name.to_owned(), calls, cuda_ns: Ns(ns) };
    vec![
        KernelRow {
            name: "void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_16x16_128x1_tn_align8>(Params)".to_owned(),
            short_name: "cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_16x16_128x1".to_owned(),
            kind: ActivityKind::Kernel,
            family: Family::Gemm,
            calls: 1_234,
            cuda_ns: Ns(20_500_000),
            min_ns: Ns(4_000),
            median_ns: Ns(16_000),
            max_ns: Ns(120_500),
            owners: vec![owner("aten::mm", 1_200, 20_000_000), owner("aten::addmm", 34, 500_000)],
        },
        KernelRow {
            name: HOSTILE.to_owned(),
            short_name: HOSTILE.to_owned(),
            kind: ActivityKind::Memcpy,
            family: Family::Memcpy,
            calls: 2,
            cuda_ns: Ns(3_000),
            min_ns: Ns(1_000),
            median_ns: Ns(1_000),
            max_ns: Ns(2_000),
            owners: vec![owner("(no operator) cudaMemcpyAsync", 2, 3_000)],
        },
    ]
}

pub(crate) fn families() -> Vec<FamilyRow> {
    let row = |family, calls, ns: i64| FamilyRow { family, calls, self_cuda_ns: Ns(ns), share_fraction: Some(ns as f64 / 20_503_000.0) };
    vec![row(Family::Gemm, 1_234, 20_500_000), row(Family::Memcpy, 2, 3_000)]
}

pub(crate) fn ranges() -> Vec<RangeRow> {
    let row = |name: &str, parents: &[&str], calls, cpu, gpu: Option<(i64, i64)>| RangeRow {
        name: name.to_owned(),
        parents: parents.iter().copied().collect(),
        calls,
        cpu_ns: Ns(cpu),
        gpu_span_ns: gpu.map(|(span, _)| Ns(span)),
        gpu_busy_ns: gpu.map(|(_, busy)| Ns(busy)),
        gpu_idle_ns: gpu.map(|(span, busy)| Ns(span - busy)),
        kernels: gpu.map_or(0, |_| 1_465),
        replayed_ns: None,
        replayed_kernels: 0,
    };
    vec![
        row("prefill", &[], 1, 50_000_000, Some((49_000_000, 20_000_000))),
        row("decode_loop", &[], 1, 170_000_000, Some((165_000_000, 14_000_000))),
        row("decode_step", &["decode_loop"], 4, 164_000_000, Some((163_000_000, 14_000_000))),
        row(HOSTILE, &["decode_loop", "decode_step"], 4, 1_000, None),
    ]
}

pub(crate) fn memory() -> MemoryTable {
    let row = |name: &str, place, allocated: u64, freed: u64| MemoryRow {
        name: name.to_owned(),
        place,
        calls: 12,
        allocations: 12,
        allocated_bytes: allocated,
        freed_bytes: freed,
        net_bytes: allocated as i64 - freed as i64,
        peak_bytes: allocated,
    };
    MemoryTable {
        is_recorded: true,
        rows: vec![
            row("aten::empty", MemoryPlace::Device, 512 << 20, 1_024),
            row("aten::_to_copy", MemoryPlace::Host, 4_096, 4_096),
            row("(outside any operator)", MemoryPlace::Device, 0, 511 << 20),
        ],
        peak_allocated_bytes: Some(2 << 30),
        peak_reserved_bytes: Some(3 << 30),
    }
}

fn device_totals(device: DeviceId) -> DeviceTotals {
    DeviceTotals {
        device,
        busy_ns: Ns(16_000_000),
        span_ns: Ns(80_000_000),
        idle_ns: Ns(64_000_000),
        outside_ns: Ns::ZERO,
        kernel_busy_ns: Ns(15_000_000),
        copy_busy_ns: Ns(1_000_000),
        comm_busy_ns: Ns(2_000_000),
        exposed_copy_ns: Ns(900_000),
        exposed_comm_ns: Ns(100_000),
        activities: 3_000,
    }
}

fn fact(key: &'static str, value: FactValue) -> Fact {
    Fact { key, value }
}

fn smells() -> Vec<Smell> {
    vec![
        Smell {
            code: "host_bound",
            subject: "decode_step".to_owned(),
            share_fraction: Some(0.661),
            evidence: vec![
                fact("starved_ns", FactValue::Time(Ns(109_800_000))),
                fact("starved_of_span_fraction", FactValue::Fraction(0.686)),
                fact("launches", FactValue::Count(5_500)),
                fact("each", FactValue::List(vec!["one".to_owned(), HOSTILE.to_owned()])),
                fact("range", FactValue::Missing),
            ],
            ceiling: Some(Ceiling { win_ns: Ns(109_800_000), win_fraction: 0.661, is_calibrated: false, kind: CeilingKind::IdleGone }),
            ceiling_formula: "idle time in which the next work was not launched",
            summary: "the GPU waits for work 69 % of its span; one decode_step costs 41.6 ms of host (profiler included) for 3.5 ms of GPU in 1,646 kernels"
                .to_owned(),
            next: "try CUDA graphs or torch.compile, then measure busy/span".to_owned(),
        },
        Smell {
            code: "unnamed_phases",
            subject: HOSTILE.to_owned(),
            share_fraction: None,
            evidence: vec![fact("subject", FactValue::Text(HOSTILE.to_owned()))],
            ceiling: None,
            ceiling_formula: "none",
            summary: format!("one call of {HOSTILE} and no named range"),
            next: format!("wrap {HOSTILE}"),
        },
    ]
}

fn questions() -> Vec<Question> {
    vec![Question {
        code: "kernels_packed",
        question: "Are kernels packed, or does the GPU wait between launches?",
        verdict: "waits_for_launches",
        answer: format!("the GPU waits for launches: busy 20 % of its span; look in {HOSTILE}"),
        evidence: vec![fact("gpu_busy_ns", FactValue::Time(Ns(32_000_000)))],
    }]
}

fn host_clock() -> HostClock {
    HostClock {
        note: format!("one {HOSTILE} takes 41.6 ms under the profiler and 20.0 ms without"),
        calibration: Some(Calibration {
            step: HOSTILE.to_owned(),
            steps: 4,
            profiled_step_ns: Ns(41_600_000),
            unprofiled_step_ns: Ns(20_000_000),
            inflation: 2.08,
            busy_per_step_ns: Some(Ns(3_500_000)),
            busy_fraction: Some(0.175),
        }),
    }
}

/// A trace of two ranks with a device each, and what triage says of it.
pub(crate) fn triage() -> (Trace, Triage) {
    let mut builder = TraceBuilder::new();
    let mut devices = Vec::new();
    for number in 0..2 {
        let rank = builder.add_rank(RankInfo { label: format!("rank{number}.json"), rank: number, ..RankInfo::default() });
        devices.push(builder.device(rank, i64::from(number)));
    }
    let totals = Totals {
        wall_ns: Ns(166_102_000),
        unrecorded: None,
        gpu_busy_ns: Some(Ns(32_000_000)),
        gpu_idle_ns: Some(Ns(128_000_000)),
        gpu_outside_ns: Some(Ns::ZERO),
        gpu_busy_fraction: Some(32.0 / 332.204),
        kernel_busy_ns: Some(Ns(30_000_000)),
        copy_busy_ns: Some(Ns(2_000_000)),
        comm_busy_ns: Some(Ns(4_000_000)),
        exposed_copy_ns: Some(Ns(1_800_000)),
        exposed_comm_ns: Some(Ns(200_000)),
        kernels: 5_990,
        memcpys: 9,
        memsets: 1,
        launches: 5_500,
        host_ops: 22_536,
        devices: devices.into_iter().map(device_totals).collect(),
    };
    let hardware_device = |id: i64| HardwareDevice {
        id,
        rank: id as u32,
        name: Some("NVIDIA H200".to_owned()),
        sm_count: Some(132),
        memory_bytes: Some(150_754_820_096),
        active: true,
    };
    let triage = Triage {
        hardware: Hardware { devices: vec![hardware_device(0), hardware_device(1)], driver: Some("13.0".to_owned()), cuda: None },
        totals,
        ops: op_table(),
        families: families(),
        kernels: kernels(),
        ranges: ranges(),
        smells: smells(),
        questions: questions(),
        host_clock: Some(host_clock()),
        report: Report {
            workload: "decode, batch 1,\nbf16".to_owned(),
            hardware: "2 × NVIDIA H200".to_owned(),
            top_cuda_time: "aten::mm, 67.2 % of device time".to_owned(),
            top_host_cost: "aten::mm, 45.600 ms of host time".to_owned(),
            next_experiment: NextExperiment { code: "host_bound", text: "capture the decode step in a CUDA graph".to_owned() },
        },
    };
    (builder.finish(), triage)
}
