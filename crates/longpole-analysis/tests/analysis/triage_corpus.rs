//! The first pass on recorded traces: what it says of each must be true of it.

use std::sync::OnceLock;

use longpole_analysis::{Family, Scope, ScopeSpec, TraceIndex, Triage, TriageOptions, totals, triage};
use longpole_trace::{Ns, Trace};

use crate::slow_reader;
use crate::torch_table::corpus;

/// Recording, code of the next experiment, and what its text must name.
const EXPECTED: &[(&str, &str, &[&str])] = &[
    // 1,258 of 1,427 ms of the GPU's span are pageable copies.
    ("bad", "copies", &["88 %", "Device -> Pageable", "aten::copy_", "pin host buffers"]),
    ("cpuonly", "record_cuda", &["ProfilerActivity.CUDA", "aten::mm"]),
    ("gpuonly", "record_cpu", &["ProfilerActivity.CPU", "cutlass_80_simt_sgemm"]),
    // Rank 0 waits in its first step, in a collective, for rank 1, which is late with first calls.
    ("nccl_rank0", "cold_first_step", &["the first decode_step takes 607.4 ms", "warm up before", "83 % of wall"]),
    ("nccl_rank1", "cold_start", &["aten::mm", "63.9 ms", "compare ranks"]),
    ("qwen3_compile", "host_bound", &["one prefill", "440 kernels", "compiled already"]),
    ("qwen3_eager", "host_bound", &["one decode_step", "40.8 ms of host", "3.5 ms of GPU"]),
    // The GPU is packed: that the kernels were launched by a host is no reason to blame it.
    ("qwen3_graph", "many_tiny_kernels", &["22,536", "22,512 of them from 12 graph replays", "busy 83 %"]),
    // Reading each token back costs 0.02 % of the idle time.
    ("qwen3_item", "host_bound", &["one decode_step"]),
    ("qwen3_stack", "host_bound", &["stacks included"]),
];

/// The recordings, read once for all tests.
fn recordings() -> &'static [(&'static str, Trace)] {
    static READ: OnceLock<Vec<(&str, Trace)>> = OnceLock::new();
    READ.get_or_init(|| {
        let folder = corpus();
        EXPECTED.iter().map(|&(name, _, _)| (name, slow_reader::read(&folder.join(format!("{name}.json.gz"))))).collect()
    })
}

fn each(check: impl Fn(&str, &Trace, &TraceIndex<'_>, Triage)) {
    for (name, trace) in recordings() {
        let index = TraceIndex::new(trace);
        let found = triage(&index, &Scope::whole(), &TriageOptions::default());
        check(name, trace, &index, found);
    }
}

#[test]
fn the_next_experiment_is_the_true_one() {
    each(|name, _, _, found| {
        let (_, code, parts) = EXPECTED.iter().find(|(known, _, _)| *known == name).unwrap();
        let next = &found.report.next_experiment;
        assert_eq!(next.code, *code, "{name}: {}", next.text);
        for part in *parts {
            assert!(next.text.contains(part), "{name}: no `{part}` in: {}", next.text);
        }
        assert!(!next.text.contains("item"), "{name}: {}", next.text);
    });
}

#[test]
fn every_line_is_one_short_line() {
    each(|name, _, _, found| {
        let report = &found.report;
        for line in [&report.workload, &report.hardware, &report.top_cuda_time, &report.top_host_cost, &report.next_experiment.text] {
            assert!(!line.contains('\n') && (1..=270).contains(&line.chars().count()), "{name}: {line}");
        }
    });
}

#[test]
fn tables_sum_to_all_device_activity() {
    each(|name, trace, _, found| {
        let total: Ns = trace.activities.dur.iter().copied().sum();
        assert_eq!(found.families.iter().map(|row| row.self_cuda_ns).sum::<Ns>(), total, "{name}");
        assert_eq!(found.kernels.iter().map(|row| row.cuda_ns).sum::<Ns>(), total, "{name}");
        let of_owners = |row: &longpole_analysis::KernelRow| row.owners.iter().map(|owner| owner.cuda_ns).sum::<Ns>();
        assert!(found.kernels.iter().all(|row| of_owners(row) == row.cuda_ns), "{name}");
        let unknown: Vec<_> = found.kernels.iter().filter(|row| row.family == Family::Other).map(|row| &row.name).collect();
        assert!(unknown.is_empty(), "{name}: {unknown:?}");
        let mut names: Vec<_> = found.kernels.iter().map(|row| &row.short_name).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{name}: {names:?}");
    });
}

#[test]
fn ranges_agree_with_scopes() {
    each(|name, _, index, found| {
        for row in &found.ranges {
            // Only ranges that occur at one place in the nesting are one row.
            if found.ranges.iter().filter(|other| other.name == row.name).count() > 1 {
                continue;
            }
            let spec = ScopeSpec { range: Some(row.name.clone()), ..ScopeSpec::default() };
            let of_scope = totals(index, &Scope::resolve(index, &spec).unwrap());
            assert_eq!(row.kernels, of_scope.kernels, "{name}: {}", row.name);
            // On one stream the work of different instances does not overlap, so the parts are the whole.
            assert_eq!(row.gpu_busy_ns, of_scope.gpu_busy_ns, "{name}: {}", row.name);
        }
    });
}

#[test]
fn the_workload_is_told_from_ranges_and_shapes() {
    each(|name, _, _, found| {
        let workload = &found.report.workload;
        match name {
            "qwen3_eager" => assert_eq!(
                workload,
                "prefill x1, decode_step x4; batch 1: 1,024 tokens, 1 token x4; bf16 weights; 28 attention calls a pass"
            ),
            "qwen3_graph" => assert_eq!(workload, "replay_step x12; 12 graph replays of 1,877 nodes"),
            "gpuonly" => assert_eq!(workload, "not named in the trace (no ranges)"),
            _ => assert!(!workload.is_empty()),
        }
    });
}

#[test]
fn no_two_suspects_of_a_trace_have_the_same_next_step() {
    let mut seen = 0;
    each(|name, _, _, found| {
        let mut steps: Vec<&str> = found.smells.iter().map(|smell| smell.next.as_str()).collect();
        steps.sort_unstable();
        assert!(steps.windows(2).all(|pair| pair[0] != pair[1]), "{name}: {steps:?}");
        let led = found.smells.iter().find(|smell| smell.code == found.report.next_experiment.code);
        assert!(led.is_some_and(|smell| found.report.next_experiment.text.contains(&smell.next)), "{name}");
    });
    for (_, trace) in recordings() {
        seen += triage(&TraceIndex::new(trace), &Scope::whole(), &TriageOptions::default()).smells.len();
    }
    assert!(seen > 30, "{seen} suspects in all");
}

#[test]
fn of_a_cut_file_nothing_is_claimed_that_the_lost_part_could_change() {
    let path = corpus().join("qwen3_eager.json.gz");
    let options = TriageOptions { is_cut: true, unprofiled_step: Some(Ns(12_000_000)), ..TriageOptions::default() };
    let mut read = Vec::new();
    for percent in [0, 1, 20, 45, 60, 75, 90, 99] {
        let trace = slow_reader::read_part(&path, percent);
        let found = triage(&TraceIndex::new(&trace), &Scope::whole(), &options);
        let report = &found.report;
        assert_eq!(report.next_experiment.code, "cut_file", "{percent} %");
        assert!(report.next_experiment.text.contains("the file was cut"), "{}", report.next_experiment.text);
        assert!(
            found.smells.iter().all(|smell| ["cut_file", "profiler_distorts"].contains(&smell.code)),
            "{percent} %: {:?}",
            found.smells
        );
        assert!(found.questions.iter().all(|question| question.verdict == "unknown"), "{percent} %");
        assert_eq!((found.totals.gpu_busy_fraction, found.totals.gpu_idle_ns), (None, None), "{percent} %");
        assert!(found.host_clock.as_ref().is_none_or(|clock| clock.calibration.as_ref().is_none_or(|c| c.busy_fraction.is_none())));
        let text = [&report.workload, &report.hardware, &report.top_cuda_time, &report.top_host_cost, &report.next_experiment.text];
        let text = text.map(String::as_str).join("\n");
        for claim in ["GPU busy 1", "GPU busy 2", "GPU idle", "host-bound", "ProfilerActivity", "without activity", "outside operators"] {
            assert!(!text.contains(claim), "{percent} %: {claim} in {text}");
        }
        assert_eq!(report.top_cuda_time.contains("at least"), found.totals.gpu_busy_ns.is_some(), "{percent} %: {}", report.top_cuda_time);
        read.push(found.totals.gpu_busy_ns.unwrap_or_default());
    }
    assert!(read.is_sorted() && read[0] == Ns::ZERO && read[7] > Ns::ZERO, "{read:?}");
}
