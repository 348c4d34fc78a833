use longpole_trace::{DeviceProperties, Ns};

use super::*;
use crate::sample::Sample;
use crate::scope::ScopeSpec;

const US: i64 = 1_000;
const MS: i64 = 1_000_000;

fn run(sample: Sample) -> Triage {
    let trace = sample.finish();
    triage(&TraceIndex::new(&trace), &Scope::whole(), &TriageOptions::default())
}

fn next(sample: Sample) -> NextExperiment {
    let report = run(sample).report;
    for line in [&report.workload, &report.hardware, &report.top_cuda_time, &report.top_host_cost, &report.next_experiment.text] {
        assert!(!line.is_empty() && !line.contains('\n') && line.chars().count() <= 300, "{line}");
    }
    report.next_experiment
}

/// `steps` steps of an operator that launches one kernel: host time and device time of each, back to back on the host.
fn steps(sample: &mut Sample, steps: i64, host: i64, device: i64, kernel: &str) {
    for step in 0..steps {
        let at = step * host;
        sample.op("aten::mm", at, host);
        sample.launch("cudaLaunchKernel", at + host / 4 * 3, host / 4).kernel(kernel, at + host, device);
    }
}

#[test]
fn nothing_is_empty() {
    assert_eq!(next(Sample::new()).code, "empty");
    // One event, even of no length, is not nothing.
    let mut sample = Sample::new();
    sample.op("aten::mm", 0, 0);
    assert_ne!(next(sample).code, "empty");
}

#[test]
fn without_device_activity_it_is_to_be_recorded() {
    let mut sample = Sample::new();
    sample.op("aten::mm", 0, 10 * MS);
    let experiment = next(sample);
    assert_eq!(experiment.code, "record_cuda");
    assert!(experiment.text.contains("aten::mm is 100 % of the wall"), "{}", experiment.text);

    let mut sample = Sample::new();
    sample.op("aten::mm", 0, 10 * MS);
    sample.launch("cudaLaunchKernel", MS, MS);
    assert!(next(sample).text.contains("1 launch call but no device activity"));
}

#[test]
fn a_capture_is_not_a_run() {
    let capture = |answered: i64, captured: bool| {
        let mut sample = Sample::new();
        for call in 0..100 {
            let launch = sample.launch("cudaLaunchKernel", call * 100 * US, 10 * US);
            if call < answered {
                launch.kernel("gemm", call * 100 * US + 50 * US, 40 * US);
            }
        }
        sample.op("aten::mm", 0, US);
        if captured {
            sample.launch("cudaGraphInstantiateWithFlags", 20 * MS, MS);
        }
        next(sample).code
    };
    assert_eq!(capture(5, true), "graph_capture");
    assert_eq!(capture(5, false), "kernels_missing");
    assert_eq!(capture(45, true), "kernels_missing");
    assert!(!["graph_capture", "kernels_missing"].contains(&capture(60, true)));
}

#[test]
fn one_long_first_call_is_a_cold_start_unless_the_device_works_or_the_call_waits() {
    // A call of 60 ms, then nine of 1 ms and kernels of 0.9 ms.
    let cold = |first: i64, api: &str, device_busy: bool| {
        let mut sample = Sample::new();
        sample.op("aten::mm", 0, first);
        sample.launch(api, MS, first - 2 * MS).kernel("gemm", if device_busy { MS } else { first }, if device_busy { first } else { MS });
        for step in 0..12 {
            let at = first + step * MS;
            sample.op("aten::mm", at, MS);
            sample.launch("cudaLaunchKernel", at, 10 * US).kernel("gemm", at + 100 * US, 900 * US);
        }
        next(sample)
    };
    let experiment = cold(60 * MS, "cudaFuncGetAttributes", false);
    assert_eq!(experiment.code, "cold_start");
    assert!(experiment.text.contains("cudaFuncGetAttributes in aten::mm"), "{}", experiment.text);
    assert_ne!(cold(60 * MS, "cudaFuncGetAttributes", true).code, "cold_start");
    assert_ne!(cold(60 * MS, "cudaStreamSynchronize", false).code, "cold_start");
    // Two ms of fourteen are no quarter of the wall.
    assert_ne!(cold(3 * MS, "cudaFuncGetAttributes", false).code, "cold_start");
}

#[test]
fn a_long_call_like_all_others_is_not_a_cold_start() {
    let mut sample = Sample::new();
    for step in 0..3 {
        sample.op("aten::mm", step * 10 * MS, 10 * MS);
        for launch in 0..4 {
            let at = step * 10 * MS + launch * 2 * MS;
            sample.launch("cudaLaunchKernel", at, US).kernel("gemm", at + 10 * US, 10 * US);
        }
    }
    assert_ne!(next(sample).code, "cold_start");
}

#[test]
fn a_handful_of_kernels_is_too_little() {
    let with = |count: i64| {
        let mut sample = Sample::new();
        steps(&mut sample, count, 100 * US, 100 * US, "gemm");
        next(sample).code
    };
    assert_eq!(with(9), "too_little");
    assert_ne!(with(10), "too_little");
}

/// Twenty rounds of a kernel and a copy; both lengths in us, with or without overlap.
fn copying(kernel: i64, copy: i64, label: &str, overlap: bool) -> Sample {
    let mut sample = Sample::new();
    let round = if overlap { kernel.max(copy) } else { kernel + copy };
    for step in 0..20 {
        let at = step * round * US;
        sample.op("aten::copy_", step * 4 * US, 2 * US);
        sample.on_device(0, 7);
        sample.launch("cudaLaunchKernel", step * 4 * US, US).kernel("gemm", at + 100 * US, kernel * US);
        sample.on_device(0, 8);
        let copy_at = if overlap { at } else { at + kernel * US };
        sample.launch("cudaMemcpyAsync", step * 4 * US + US, US).memcpy(label, copy_at + 100 * US, copy * US);
    }
    sample
}

#[test]
fn exposed_copies_come_first() {
    let experiment = next(copying(60, 40, "Memcpy DtoH (Device -> Pageable)", false));
    assert_eq!(experiment.code, "copies");
    assert!(experiment.text.contains("40 % of its span") && experiment.text.contains("pin host buffers"), "{}", experiment.text);
    let experiment = next(copying(60, 40, "Memcpy DtoH (Device -> Pinned)", false));
    assert!(experiment.text.contains("overlap them") && !experiment.text.contains("pin host"), "{}", experiment.text);
    assert_ne!(next(copying(80, 20, "Memcpy DtoH (Device -> Pageable)", false)).code, "copies");
    assert_ne!(next(copying(60, 40, "Memcpy DtoH (Device -> Pageable)", true)).code, "copies");
}

fn communicating(sample: &mut Sample, communication: i64, compute: i64) {
    for step in 0..20 {
        let at = step * (communication + compute) * US;
        sample.op("aten::mm", step * 4 * US, 2 * US);
        sample.launch("cudaLaunchKernel", step * 4 * US, US).kernel("gemm", at + 100 * US, compute * US);
        sample.launch("cudaLaunchKernelExC", step * 4 * US + US, US).kernel(
            "ncclDevKernel_AllReduce",
            at + (100 + compute) * US,
            communication * US,
        );
    }
}

#[test]
fn exposed_collectives_are_compared_between_ranks() {
    let mut one = Sample::new();
    communicating(&mut one, 30, 70);
    let experiment = next(one);
    assert_eq!(experiment.code, "communication");
    assert!(experiment.text.contains("30 % of the GPU span") && experiment.text.contains("load all ranks"), "{}", experiment.text);

    let mut few = Sample::new();
    communicating(&mut few, 10, 90);
    assert_ne!(next(few).code, "communication");

    let mut two = Sample::new();
    communicating(&mut two, 60, 40);
    two.next_rank(1);
    communicating(&mut two, 10, 90);
    let experiment = next(two);
    assert_eq!(experiment.code, "communication");
    assert!(experiment.text.contains("find what makes rank 1 late"), "{}", experiment.text);
}

#[test]
fn memory_calls_that_hold_the_host_are_named() {
    let with = |calls: i64, free: i64| {
        let mut sample = Sample::new();
        for step in 0..calls {
            let at = step * 1000 * US;
            sample.op("aten::mm", at, 1000 * US);
            sample.launch("cudaLaunchKernel", at, 10 * US).kernel("gemm", at + 20 * US, 100 * US);
            sample.launch("cudaFree", at + 200 * US, free * US);
        }
        next(sample)
    };
    let experiment = with(20, 500);
    assert_eq!(experiment.code, "allocation");
    assert!(experiment.text.contains("20 memory calls, mostly cudaFree, hold the host 50 %"), "{}", experiment.text);
    assert_ne!(with(20, 100).code, "allocation");
    // The device works meanwhile: freeing waits for it, and is not what holds it up.
    let mut busy = Sample::new();
    for step in 0..20 {
        let at = step * 1000 * US;
        busy.op("aten::mm", at, 1000 * US);
        busy.launch("cudaLaunchKernel", at, 10 * US).kernel("gemm", at + 20 * US, 900 * US);
        busy.launch("cudaFree", at + 200 * US, 500 * US);
    }
    assert_ne!(next(busy).code, "allocation");
    assert_ne!(with(9, 500).code, "allocation");
}

#[test]
fn a_data_loader_is_to_blame_only_while_the_device_idles() {
    let with = |kernel: i64| {
        let mut sample = Sample::new();
        for step in 0..12 {
            let at = step * 10 * MS;
            sample.range("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at, 5 * MS);
            sample.op("aten::mm", at + 6 * MS, MS);
            sample.launch("cudaLaunchKernel", at + 6 * MS, US).kernel("gemm", at + 6 * MS + 10 * US, kernel * MS);
        }
        next(sample).code
    };
    assert_eq!(with(6), "data_loading");
    assert_ne!(with(8), "data_loading");
}

#[test]
fn operators_are_to_be_recorded_before_anyone_is_blamed() {
    let mut sample = Sample::new();
    for call in 0..20 {
        sample.launch("cudaLaunchKernel", call * 100 * US, US).kernel("gemm", call * 100 * US + 10 * US, 50 * US);
    }
    let experiment = next(sample);
    assert_eq!(experiment.code, "record_cpu");
    assert!(experiment.text.contains("gemm (gemm/gemv) is 100 % of its time"), "{}", experiment.text);
}

#[test]
fn late_launches_are_host_bound() {
    let mut sample = Sample::new();
    steps(&mut sample, 100, 100 * US, 20 * US, "gemm");
    for step in 0..4 {
        sample.range("decode_step", step * 2500 * US, 2500 * US);
    }
    let experiment = next(sample);
    assert_eq!(experiment.code, "host_bound");
    assert!(
        experiment
            .text
            .contains("one decode_step costs 2.5 ms of host on the median (profiler included) for 500.0 us of GPU in 25 kernels"),
        "{experiment:?}"
    );
}

#[test]
fn launches_that_keep_up_are_not_host_bound() {
    let mut sample = Sample::new();
    steps(&mut sample, 100, 100 * US, 80 * US, "gemm");
    let experiment = next(sample);
    assert_ne!(experiment.code, "host_bound");
}

#[test]
fn a_clock_fault_does_not_make_more_idle_time_than_there_is() {
    // Every kernel starts long before its launch; the device idles for a tenth of the time.
    let mut sample = Sample::new();
    for step in 0..100 {
        sample.op("aten::mm", 50 * MS + step * 100 * US, 90 * US);
        sample.launch("cudaLaunchKernel", 50 * MS + step * 100 * US, US).kernel("gemm", step * 100 * US, 90 * US);
    }
    assert_ne!(next(sample).code, "host_bound");
}

/// Replays of a graph of many kernels, launched ahead, with gaps between the kernels.
fn replays(kernels: i64, kernel: i64, gap: i64) -> Sample {
    let mut sample = Sample::new();
    let length = kernels * (kernel + gap);
    for replay in 0..10 {
        let mut launch = sample.launch("cudaGraphLaunch", replay * 10 * US, 5 * US);
        for node in 0..kernels {
            launch = launch.kernel("elementwise_kernel", 200 * US + replay * length + node * (kernel + gap), kernel);
        }
    }
    sample.op("aten::argmax", 300 * US, US);
    sample
}

#[test]
fn a_replayed_graph_is_never_host_bound_however_short_its_kernels() {
    let experiment = next(replays(200, 2 * US, 3 * US));
    assert_eq!(experiment.code, "many_tiny_kernels");
    assert!(experiment.text.contains("2,000 kernels from 10 graph replays, median 2.0 us"), "{}", experiment.text);
}

#[test]
fn replays_of_graphs_of_several_sizes_are_counted_by_size() {
    let workload = |sizes: &[(i64, i64)]| {
        let mut sample = Sample::new();
        let mut at = 0;
        for &(launches, kernels) in sizes {
            for _ in 0..launches {
                let mut launch = sample.launch("cudaGraphLaunch", at, 5 * US);
                for node in 0..kernels {
                    launch = launch.kernel("elementwise_kernel", at + (10 + node) * US, US);
                }
                at += 100 * US;
            }
        }
        run(sample).report.workload
    };
    for (sizes, said) in [
        (&[(6, 14)][..], "6 graph replays of 14 nodes"),
        (&[(6, 18), (6, 14)], "6 graph replays of 14 nodes and 6 of 18"),
        (&[(1, 1), (3, 18), (2, 14)], "3 graph replays of 18 nodes, 2 of 14 and 1 of 1"),
        (&[(1, 2), (1, 3), (1, 4), (2, 5)], "5 graph replays of 2 to 5 nodes"),
    ] {
        assert!(workload(sizes).ends_with(said), "{}", workload(sizes));
    }
}

#[test]
fn a_range_of_two_models_is_counted_in_both_and_said_to_be_of_both() {
    let mut sample = Sample::new();
    for (model, name) in ["model-4B", "model-8B"].into_iter().enumerate() {
        let start = model as i64 * 100 * MS;
        sample.range(name, start, 90 * MS);
        for call in 0..3 {
            let at = start + (1 + call * 10) * MS;
            sample.range("prefill", at, 8 * MS);
            sample.launch("cudaLaunchKernel", at + MS, MS).kernel("gemm", at + 3 * MS, 4 * MS);
        }
        for call in 0..5 {
            let at = start + (40 + call * 10) * MS;
            sample.range("decode", at, 8 * MS);
            sample.range("replay", at + MS, 6 * MS);
            for kernel in 0..2 + model as i64 {
                sample.launch("cudaLaunchKernel", at + (3 + kernel) * MS, MS).kernel("gemv", at + (5 + kernel) * MS, MS);
            }
        }
    }
    let triage = run(sample);
    assert!(triage.report.workload.contains("prefill x6, decode x10, replay x10"), "{}", triage.report.workload);
    let phases = triage.questions.iter().find(|question| question.code == "prefill_and_decode").unwrap();
    for part in ["prefill x6 of model-4B and model-8B: 1 kernel of 4.0 ms", "replay x10 of model-4B and model-8B: 2 to 3 kernels of 1.0 ms"]
    {
        assert!(phases.answer.contains(part), "{}", phases.answer);
    }
    assert!(phases.evidence.iter().any(|fact| fact.key == "prefill_calls" && fact.value == 6_u64.into()), "{:?}", phases.evidence);
}

#[test]
fn few_or_long_kernels_are_not_many_tiny_ones() {
    assert_ne!(next(replays(50, 2 * US, US)).code, "many_tiny_kernels");
    assert_ne!(next(replays(200, 6 * US, US)).code, "many_tiny_kernels");
}

/// Packed kernels of given families: (kernel, operator, share in percent).
fn mixed(parts: &[(&str, &str, i64)]) -> Sample {
    let mut sample = Sample::new();
    let mut at = 100 * US;
    let mut host = 0;
    for _ in 0..10 {
        for &(kernel, operator, share) in parts {
            sample.op(operator, host, US);
            sample.launch("cudaLaunchKernel", host, US).kernel(kernel, at, share * 10 * US);
            host += US;
            at += share * 10 * US;
        }
    }
    sample
}

#[test]
fn a_packed_device_is_judged_by_operator_then_kernel_then_family() {
    let experiment = next(mixed(&[("gemm", "aten::mm", 41), ("flash_fwd_kernel", "aten::sdpa", 29), ("silu", "aten::silu", 30)]));
    assert_eq!(experiment.code, "one_operator");
    assert!(experiment.text.contains("aten::mm owns 41 % of GPU time (10 calls, matmul); profile gemm"), "{}", experiment.text);

    let experiment = next(mixed(&[("gemm", "aten::mm", 39), ("flash_fwd_kernel", "aten::sdpa", 31), ("silu", "aten::silu", 30)]));
    assert_eq!(experiment.code, "one_kernel");
    assert!(experiment.text.contains("gemm (gemm/gemv) takes 39 % of GPU time, 10 calls at a median of 390.0 us"), "{}", experiment.text);

    let many: Vec<(String, String)> = (0..10).map(|i| (format!("gemm_{i}"), format!("op_{i}"))).collect();
    let parts: Vec<(&str, &str, i64)> = many.iter().map(|(kernel, op)| (kernel.as_str(), op.as_str(), 10)).collect();
    let experiment = next(mixed(&parts));
    assert_eq!(experiment.code, "top_family");
    assert!(experiment.text.contains("gemm/gemv takes 100 % of its time"), "{}", experiment.text);
    // The same work of one operator is that operator's.
    let parts: Vec<(&str, &str, i64)> = many.iter().map(|(kernel, _)| (kernel.as_str(), "aten::mm", 10)).collect();
    assert_eq!(next(mixed(&parts)).code, "one_operator");
}

#[test]
fn work_of_no_length_has_no_experiment_but_to_record() {
    let mut sample = Sample::new();
    for call in 0..20 {
        sample.op("aten::mm", call, 1);
        sample.launch("cudaLaunchKernel", call, 1).kernel("gemm", 100, 0);
    }
    assert_eq!(next(sample).code, "record");
    // One nanosecond of it is enough to look at.
    let mut sample = Sample::new();
    for call in 0..20 {
        sample.op("aten::mm", call, 1);
        sample.launch("cudaLaunchKernel", call, 1).kernel("gemm", 100, i64::from(call == 19));
    }
    assert_ne!(next(sample).code, "record");
}

#[test]
fn the_workload_line_says_what_shapes_and_ranges_say() {
    let mut sample = Sample::new();
    let types = "[\"c10::BFloat16\", \"long int\", \"Scalar\"]";
    sample.range("prefill", 0, 100);
    sample.op_with_shapes("aten::embedding", 10, 5, Some(("[[151936, 1024], [1, 1024], []]", types)));
    sample.range("decode_loop", 200, 1000);
    for step in 0..4 {
        let at = 200 + step * 240;
        sample.range("decode_step", at, 240);
        sample.op_with_shapes("aten::embedding", at + 10, 5, Some(("[[151936, 1024], [1, 1], []]", types)));
        // A second table, of positions, says nothing about tokens.
        sample.op_with_shapes("aten::embedding", at + 20, 5, Some(("[[512, 1024], [1, 77], []]", types)));
    }
    for call in 0..10 {
        sample.op("aten::scaled_dot_product_attention", 1300 + 2 * call, 1);
    }
    let line = run(sample).report.workload;
    assert_eq!(line, "prefill x1, decode_step x4; batch 1: 1,024 tokens, 1 token x4; bf16 weights; 2 attention calls a pass");
}

#[test]
fn an_unnamed_workload_is_said_to_be_so_and_can_be_given() {
    let mut sample = Sample::new();
    sample.op("aten::mm", 0, 10);
    let trace = sample.finish();
    let index = TraceIndex::new(&trace);
    let line = |options: &TriageOptions| triage(&index, &Scope::whole(), options).report.workload;
    assert_eq!(line(&TriageOptions::default()), "not named in the trace (no ranges)");
    assert_eq!(line(&TriageOptions { workload: Some("Qwen3,\n batch 1".to_owned()), ..TriageOptions::default() }), "Qwen3, batch 1");
}

#[test]
fn hardware_is_described_as_far_as_it_is_recorded() {
    let mut sample = Sample::new();
    steps(&mut sample, 12, 100 * US, 80 * US, "gemm");
    assert_eq!(run(sample).report.hardware, "device 0 not described; versions not recorded");

    let mut sample = Sample::new();
    steps(&mut sample, 12, 100 * US, 80 * US, "gemm");
    sample.on_device(1, 7);
    let trace = sample.builder.trace_mut();
    for device in &mut trace.devices {
        let name = Some("NVIDIA H200".to_owned());
        device.properties =
            DeviceProperties { name, sm_count: Some(132), memory_bytes: Some(150_109_880_320), ..DeviceProperties::default() };
    }
    trace.versions.cuda_runtime = Some("13.0".to_owned());
    let found = run(sample);
    assert_eq!(found.report.hardware, "NVIDIA H200 (132 SMs, 139.8 GiB); 1 more without activity; CUDA runtime 13.0");
    assert_eq!(found.hardware.devices.iter().map(|device| (device.id, device.active)).collect::<Vec<_>>(), [(0, true), (1, false)]);
}

#[test]
fn cost_lines_name_owners_with_shares_and_units() {
    let mut sample = Sample::new();
    steps(&mut sample, 100, 100 * US, 20 * US, "nvjet_sm90");
    let report = run(sample).report;
    assert_eq!(report.top_cuda_time, "GPU busy 20 % of wall (2.0 ms of 10.0 ms): aten::mm 100 % (100 calls, gemm/gemv)");
    assert_eq!(
        report.top_host_cost,
        "GPU idle 80 % of its span; host outside operators and calls 0.2 % of wall; top self CPU, of wall: aten::mm 75 % (100 calls), \
         cudaLaunchKernel 25 % (100 calls)"
    );
}

#[test]
fn a_range_scope_is_judged_by_itself() {
    let mut sample = Sample::new();
    sample.range("prefill", 0, 50 * MS);
    for step in 0..20 {
        sample.op("aten::mm", step * 100 * US, 50 * US);
        sample.launch("cudaLaunchKernel", step * 100 * US, US).kernel("gemm", 200 * US + step * 1000 * US, 1000 * US);
    }
    sample.range("decode", 60 * MS, 100 * MS);
    for step in 0..20 {
        let at = 60 * MS + step * 5 * MS;
        sample.op("aten::mm", at, 5 * MS);
        sample.launch("cudaLaunchKernel", at, US).kernel("gemm", at + 10 * US, 100 * US);
    }
    let trace = sample.finish();
    let index = TraceIndex::new(&trace);
    let code = |range: &str| {
        let scope =
            Scope::resolve(&index, &ScopeSpec { range: Some(range.to_owned()), ..ScopeSpec::default() }).expect("the range is there");
        triage(&index, &scope, &TriageOptions::default())
    };
    assert_eq!(code("prefill").report.next_experiment.code, "one_operator");
    assert_eq!(code("decode").report.next_experiment.code, "host_bound");
    assert_eq!(code("decode").totals.kernels, 20);
    assert_eq!(code("prefill").totals.gpu_idle_ns, Some(Ns::ZERO));
}

/// Two ranks with a long first call each.
fn two_ranks(steps_of_second: i64) -> Sample {
    let mut sample = Sample::new();
    for (rank, steps) in [(0, 3), (1, steps_of_second)] {
        if rank > 0 {
            sample.next_rank(rank);
        }
        for step in 0..steps {
            let at = step * 10 * MS;
            sample.range("decode_step", at, 9 * MS);
            sample.op_with_shapes("aten::embedding", at, 100 * US, Some(("[[1000, 64], [1, 1]]", "[\"float\", \"long\"]")));
            let host = if step == 0 { 8 * MS } else { 100 * US };
            sample.op("aten::mm", at + 200 * US, host);
            sample.launch("cudaLaunchKernel", at + 8300 * US, 10 * US).kernel("gemm", at + 8400 * US, 500 * US);
        }
    }
    sample
}

fn in_scope(sample: Sample, spec: &ScopeSpec) -> Triage {
    let trace = sample.finish();
    let index = TraceIndex::new(&trace);
    let scope = Scope::resolve(&index, spec).expect("the scope is there");
    triage(&index, &scope, &TriageOptions::default())
}

#[test]
fn counts_of_several_ranks_are_of_each_rank() {
    let whole = ScopeSpec::default();
    let workload = |second| in_scope(two_ranks(second), &whole).report.workload;
    assert_eq!(workload(3), "decode_step x3 on each of 2 ranks; batch 1: 1 token x3; f32 weights");
    assert_eq!(workload(4), "decode_step x3 to x4 on each of 2 ranks; batch 1: 1 token x3 to x4; f32 weights");
}

#[test]
fn a_rank_is_judged_without_the_others() {
    let found = in_scope(two_ranks(4), &whole_of(1));
    assert_eq!(found.report.workload, "decode_step x4; batch 1: 1 token x4; f32 weights; rank 1 of 2");
    assert_eq!(found.hardware.devices.iter().map(|device| device.id).collect::<Vec<_>>(), [1]);
    assert!(!found.report.hardware.contains("device 0"), "{}", found.report.hardware);
    let cold = found.smells.iter().find(|smell| smell.code == "cold_start").expect("a long first call");
    assert!(cold.summary.contains("one of 4)"), "{}", cold.summary);
    let ceiling = cold.ceiling.expect("it takes time");
    assert_eq!(ceiling.win_ns, Ns(8 * MS), "not the mean over ranks that are not asked about");
    assert!(found.report.top_host_cost.contains("top self CPU, of wall: "), "{}", found.report.top_host_cost);
}

fn whole_of(rank: u32) -> ScopeSpec {
    ScopeSpec { rank: Some(rank), ..ScopeSpec::default() }
}

#[test]
fn a_scope_without_device_work_is_no_fault_of_the_recording() {
    for spec in [whole_of(1), ScopeSpec { range: Some("idle".to_owned()), ..ScopeSpec::default() }] {
        let mut sample = Sample::new();
        sample.op("aten::mm", 0, 10 * MS);
        sample.launch("cudaLaunchKernel", MS, MS).kernel("gemm", 2 * MS, MS);
        sample.next_rank(1);
        sample.range("idle", 0, 10 * MS);
        sample.op("aten::mm", MS, MS);
        let found = in_scope(sample, &spec);
        let report = &found.report;
        assert_eq!(report.next_experiment.code, "nothing_in_scope");
        assert!(report.next_experiment.text.contains("nothing in scope"), "{}", report.next_experiment.text);
        let text = format!("{report:?}{:?}", found.questions);
        assert!(!text.contains("ProfilerActivity.CUDA") && !text.contains("no device activity recorded"), "{text}");
    }
}

#[test]
fn launches_are_counted_as_the_links_count_them() {
    let mut sample = Sample::new();
    sample.op("aten::mm", 0, 10 * MS);
    for (at, call) in ["cudaLaunchKernel", "cudaMemcpy", "cudaMemsetAsync", "cudaLaunchHostFunc"].iter().enumerate() {
        sample.launch(call, at as i64 * MS, US);
    }
    let trace = sample.finish();
    let index = TraceIndex::new(&trace);
    let found = triage(&index, &Scope::whole(), &TriageOptions::default());
    assert_eq!(index.links().counts().launches_without_activity, 3);
    assert!(found.report.next_experiment.text.starts_with("3 launch calls but no device activity"), "{:?}", found.report);
}
