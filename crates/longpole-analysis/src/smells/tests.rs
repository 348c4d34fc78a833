//! Each smell on a trace that shows it, and on one that nearly does.

use longpole_trace::{Ns, Overhead, PythonFrame, Trace};

use super::*;
use crate::host_pace::{HostBoundWindow, host_bound_window};
use crate::index::TraceIndex;
use crate::sample::Sample;
use crate::scope::{Scope, ScopeSpec};
use crate::triage::{Triage, TriageOptions, triage};

const US: i64 = 1_000;
const MS: i64 = 1_000_000;

fn run_trace(trace: &Trace) -> Triage {
    triage(&TraceIndex::new(trace), &Scope::whole(), &TriageOptions::default())
}

fn run(sample: Sample) -> Triage {
    run_trace(&sample.finish())
}

fn find<'t>(triage: &'t Triage, code: &str) -> Option<&'t Smell> {
    triage.smells.iter().find(|smell| smell.code == code)
}

fn number(smell: &Smell, key: &str) -> i64 {
    match smell.evidence.iter().find(|fact| fact.key == key).map(|fact| &fact.value) {
        Some(FactValue::Time(ns)) => ns.get(),
        Some(FactValue::Count(count)) => *count as i64,
        other => panic!("{key}: {other:?}"),
    }
}

/// The trigger has the smell, the near-miss has not; returns the smell.
fn tells_apart(code: &str, trigger: Sample, near_miss: Sample) -> Smell {
    let (with, without) = (run(trigger), run(near_miss));
    assert!(find(&without, code).is_none(), "{code} in the near-miss: {:#?}", find(&without, code));
    find(&with, code).unwrap_or_else(|| panic!("no {code} in {:?}", with.smells.iter().map(|s| s.code).collect::<Vec<_>>())).clone()
}

/// An operator that launches a kernel.
fn launch(sample: &mut Sample, op: &str, at: i64, host: i64, kernel: (&str, i64, i64)) {
    sample.op(op, at, host);
    sample.launch("cudaLaunchKernel", at + host / 2, host / 4).kernel(kernel.0, kernel.1, kernel.2);
}

/// Steps of a kernel each, back to back; the device is busy for most of it. Lengths of steps in us.
fn steps(lengths: &[i64]) -> Sample {
    let mut sample = Sample::new();
    let mut at = 0;
    for &length in lengths {
        sample.range("decode_step", at, length * US);
        launch(&mut sample, "aten::mm", at, 40 * US, ("gemm", at + 50 * US, 500 * US));
        sample.op("aten::slow", at + 600 * US, (length - 700) * US);
        at += length * US;
    }
    sample
}

#[test]
fn every_code_is_explained_with_its_limits() {
    let all = explanations();
    assert_eq!(all.len(), KINDS.len());
    assert!(all.windows(2).all(|pair| pair[0].code < pair[1].code), "codes are unique");
    for explanation in &all {
        assert!(!explanation.detection.contains(['{', '}']), "{}: {}", explanation.code, explanation.detection);
        for text in [explanation.meaning, explanation.ceiling, explanation.fix, &explanation.detection] {
            assert!(!text.trim().is_empty() && !text.contains("  "), "{}: {text:?}", explanation.code);
        }
        assert_eq!(explain(explanation.code).as_ref(), Some(explanation));
    }
    assert_eq!(explain("nonsense"), None);
}

#[test]
fn the_table_of_limits_is_the_one_that_is_explained() {
    let explained: Vec<&str> = explanations().iter().flat_map(|e| e.thresholds.iter().map(|t| t.name)).collect();
    let of_questions = [PACKED_SHARE, CRITICAL_COPY_SHARE, DENSE_SHARE, HOST_ALONE_SHARE].map(|threshold| threshold.name);
    for threshold in THRESHOLDS {
        assert!(explained.contains(&threshold.name) || of_questions.contains(&threshold.name), "{} decides nothing", threshold.name);
        assert!(threshold.value > 0.0 && !threshold.meaning.is_empty(), "{threshold:?}");
    }
    assert_eq!((thresholds::SMALL_KERNEL.text(), thresholds::COPY_SHARE.text()), ("5.0 us".to_owned(), "30 %".to_owned()));
}

#[test]
fn shares_and_ceilings_stay_within_the_wall_and_are_sorted() {
    let triage = run(steps(&[2_000, 900, 900, 900, 2_500]));
    assert!(triage.smells.len() > 1);
    for smell in &triage.smells {
        assert!(smell.share_fraction.is_none_or(|share| (0.0..=1.0).contains(&share)), "{smell:?}");
        assert!(smell.ceiling.is_none_or(|ceiling| ceiling.win_ns <= triage.totals.wall_ns && ceiling.win_fraction <= 1.0), "{smell:?}");
        assert!(!smell.next.contains('\n') && !smell.summary.contains('\n'), "{smell:?}");
        for fact in &smell.evidence {
            let is_time = matches!(fact.value, FactValue::Time(_));
            assert!(!is_time || fact.key.ends_with("_ns"), "{}: {fact:?}", smell.code);
        }
    }
    let shares: Vec<f64> = triage.smells.iter().map(|smell| smell.share_fraction.unwrap_or(-1.0)).collect();
    assert!(shares.is_sorted_by(|a, b| a >= b), "{shares:?}");
}

#[test]
fn the_sentence_of_the_experiment_says_the_most_it_could_win() {
    let triage = run(steps(&[900; 12]));
    let next = &triage.report.next_experiment;
    let smell = find(&triage, next.code).expect("the experiment is of a smell that is listed");
    assert!(next.text.contains(&smell.summary) && next.text.contains(&smell.next), "{next:?}");
    assert!(next.text.ends_with(&format!("wins {}", smell.ceiling.expect("device work has one").in_words())), "{next:?}");
}

#[test]
fn copies_are_listed_before_they_lead() {
    let copying = |copy: i64| {
        let mut sample = Sample::new();
        for step in 0..20 {
            let at = step * 1_000 * US;
            launch(&mut sample, "aten::mm", at, 10 * US, ("gemm", at + 20 * US, (980 - copy) * US));
            sample.launch("cudaMemcpyAsync", at + 10 * US, US).memcpy(
                "Memcpy DtoH (Device -> Pageable)",
                at + (1_000 - copy) * US,
                copy * US,
            );
        }
        sample
    };
    let smell = tells_apart("copies", copying(100), copying(5));
    assert_eq!(smell.ceiling.map(|ceiling| ceiling.win_ns), Some(Ns(20 * 100 * US)));
    assert_ne!(run(copying(100)).report.next_experiment.code, "copies");
    assert_eq!(run(copying(400)).report.next_experiment.code, "copies");
}

#[test]
fn allocation_is_listed_at_its_share_of_the_wall_and_by_step() {
    let allocating = |calls: i64| {
        let mut sample = Sample::new();
        for step in 0..calls {
            let at = step * 1_000 * US;
            sample.range("bad_step", at, 1_000 * US);
            launch(&mut sample, "aten::mm", at, 10 * US, ("gemm", at + 20 * US, 900 * US));
            // Half of it while the device works, which costs nothing.
            sample.launch("cudaMalloc", at + 910 * US, 20 * US);
        }
        sample
    };
    let smell = tells_apart("allocation", allocating(10), allocating(9));
    assert_eq!((number(&smell, "calls"), number(&smell, "total_ns"), number(&smell, "gpu_idle_during_ns")), (10, 200 * US, 100 * US));
    assert_eq!(smell.share_fraction, Some(0.01));
    assert!(smell.summary.contains("(1.0 a bad_step)"), "{}", smell.summary);
}

#[test]
fn waiting_counts_only_while_the_device_is_empty() {
    // A kernel of 500 us, a wait of 100 us that ends 1 us after it, and a gap until the next step.
    let waiting = |every: i64| {
        let mut sample = Sample::new();
        for step in 0..10 {
            let at = step * 1_000 * US;
            sample.range("decode_step", at, 1_000 * US);
            launch(&mut sample, "aten::mm", at, 40 * US, ("gemm", at + 50 * US, 500 * US));
            if step % every == 0 {
                sample.launch("cudaStreamSynchronize", at + 451 * US, 100 * US);
            }
        }
        sample
    };
    let smell = tells_apart("synchronisation", waiting(1), waiting(3));
    // The last wait is followed by no work, so its empty time is not idle time of the run.
    assert_eq!((number(&smell, "total_ns"), number(&smell, "gpu_idle_during_ns")), (10 * 100 * US, 9 * US));
    assert_eq!(number(&smell, "gaps_begun_ns"), 9 * 500 * US);
    // The gaps that begin under a wait are half of the span: that leads.
    assert_eq!(run(waiting(1)).report.next_experiment.code, "synchronisation");
}

#[test]
fn waits_that_begin_when_the_device_is_empty_already_do_not_cause_its_gaps() {
    let mut sample = Sample::new();
    for step in 0..10 {
        let at = step * 1_000 * US;
        launch(&mut sample, "aten::mm", at, 40 * US, ("gemm", at + 50 * US, 100 * US));
        sample.launch("cudaStreamSynchronize", at + 900 * US, 5 * US);
    }
    let triage = run(sample);
    assert_eq!(number(find(&triage, "synchronisation").expect("ten waits"), "gaps_begun_ns"), 0);
    assert_eq!(triage.report.next_experiment.code, "host_bound");
}

#[test]
fn a_loader_is_listed_before_it_leads() {
    let loading = |load: i64| {
        let mut sample = Sample::new();
        for step in 0..12 {
            let at = step * 1_000 * US;
            sample.range("enumerate(DataLoader)#_Iter.__next__", at, load * US);
            launch(&mut sample, "aten::mm", at + load * US, 8 * US, ("gemm", at + (load + 10) * US, (980 - load) * US));
        }
        sample
    };
    let smell = tells_apart("data_loading", loading(100), loading(20));
    assert!(smell.summary.starts_with("the GPU idles"), "{}", smell.summary);
    assert_ne!(run(loading(100)).report.next_experiment.code, "data_loading");
}

#[test]
fn collectives_are_listed_before_they_lead() {
    let communicating = |communication: i64| {
        let mut sample = Sample::new();
        for step in 0..20 {
            let at = step * 1_000 * US;
            launch(&mut sample, "aten::mm", at, 10 * US, ("gemm", at + 20 * US, (980 - communication) * US));
            let launch = sample.launch("cudaLaunchKernelExC", at + 10 * US, US);
            launch.kernel("ncclDevKernel_AllReduce", at + (1_000 - communication) * US, communication * US);
        }
        sample
    };
    let smell = tells_apart("communication", communicating(100), communicating(40));
    assert_eq!(smell.ceiling.map(|ceiling| ceiling.win_ns), Some(Ns(20 * 100 * US)));
    // What is listed as communication is not listed again as one kernel.
    let much = run(communicating(600));
    assert!(find(&much, "one_kernel").is_none_or(|smell| smell.subject == "gemm"), "{:?}", much.smells);
}

#[test]
fn several_devices_share_the_evidence_and_the_worst_is_the_ceiling() {
    let mut sample = Sample::new();
    for step in 0..20 {
        for (device, copy) in [(0, 600), (1, 200)] {
            sample.on_device(device, 7);
            let at = step * 1_000 * US;
            launch(&mut sample, "aten::mm", at, 10 * US, ("gemm", at + 20 * US, (980 - copy) * US));
            sample.launch("cudaMemcpyAsync", at + 10 * US, US).memcpy(
                "Memcpy DtoH (Device -> Pinned)",
                at + (1_000 - copy) * US,
                copy * US,
            );
        }
    }
    let triage = run(sample);
    let smell = find(&triage, "copies").expect("two fifths of the spans");
    assert_eq!((smell.share_fraction, smell.ceiling.map(|ceiling| ceiling.win_ns)), (Some(0.4), Some(Ns(20 * 600 * US))));
}

#[test]
fn the_host_is_listed_before_it_leads_and_never_for_a_packed_device() {
    let host = |kernel: i64| {
        let mut sample = Sample::new();
        for step in 0..50 {
            let at = step * 100 * US;
            launch(&mut sample, "aten::mm", at, 100 * US, ("gemm", at + 75 * US, kernel * US));
        }
        sample
    };
    let smell = tells_apart("host_bound", host(50), host(90));
    assert_eq!(smell.code, "host_bound");
    // The header says so above every output.
    let window = |sample: Sample| {
        let trace = sample.finish();
        host_bound_window(&TraceIndex::new(&trace), &Scope::whole())
    };
    assert_eq!((window(host(50)), window(host(90))), (Some(HostBoundWindow { step: None }), None));
    assert_eq!(window(steps(&[2_000; 12])), Some(HostBoundWindow { step: Some("decode_step".to_owned()) }));
}

#[test]
fn an_unprofiled_step_restates_how_idle_the_device_is() {
    let trace = steps(&[2_000; 8]).finish();
    let index = TraceIndex::new(&trace);
    let with = |step: i64| {
        let options = TriageOptions { unprofiled_step: Some(Ns(step)), ..TriageOptions::default() };
        triage(&index, &Scope::whole(), &options).host_clock.expect("a step was timed")
    };
    let clock = with(1_000 * US);
    let calibration = clock.calibration.expect("steps repeat");
    assert_eq!((calibration.profiled_step_ns, calibration.busy_per_step_ns, calibration.steps), (Ns(2_000 * US), Some(Ns(500 * US)), 8));
    assert!((calibration.inflation - 2.0).abs() < 1e-9 && calibration.busy_fraction == Some(0.5));
    assert!(clock.note.contains("inflated 2.00 times") && clock.note.contains("so the GPU idles 50 %"), "{}", clock.note);
    assert!(with(100 * US).note.contains("not that of this step"));
    // Without a range that repeats there is no step.
    let mut unnamed = Sample::new();
    unnamed.op("aten::mm", 0, MS);
    let trace = unnamed.finish();
    let options = TriageOptions { unprofiled_step: Some(Ns(US)), ..TriageOptions::default() };
    let clock = triage(&TraceIndex::new(&trace), &Scope::whole(), &options).host_clock.expect("a step was timed");
    assert!(clock.calibration.is_none() && clock.note.starts_with("cannot calibrate"), "{}", clock.note);
}

#[test]
fn a_cheap_operator_called_thousands_of_times() {
    let calls = |calls: i64, kernel: i64| {
        let mut sample = Sample::new();
        for call in 0..calls {
            let at = call * 20 * US;
            launch(&mut sample, "aten::mul", at, 10 * US, ("elementwise_kernel", at + 12 * US, kernel));
        }
        sample
    };
    let smell = tells_apart("many_cheap_calls", calls(1_000, 2 * US), calls(999, 2 * US));
    assert_eq!((number(&smell, "calls"), number(&smell, "host_ns")), (1_000, 10 * MS));
    // The device is busy in none of it but what the kernel before overlaps: nothing here.
    assert_eq!(smell.ceiling.map(|ceiling| ceiling.win_ns), Some(Ns(10 * MS)));
    assert!(find(&run(calls(1_000, 6 * US)), "many_cheap_calls").is_none(), "6 us of device work a call are not cheap");
}

#[test]
fn many_tiny_kernels_win_at_most_their_own_time() {
    let kernels = |count: i64| {
        let mut sample = Sample::new();
        for kernel in 0..count {
            launch(&mut sample, "aten::mul", kernel * US, US, ("elementwise_kernel", 100 * US + kernel * 2 * US, 2 * US));
        }
        sample
    };
    let smell = tells_apart("many_tiny_kernels", kernels(1_000), kernels(999));
    assert_eq!(smell.ceiling.map(|ceiling| ceiling.win_ns), Some(Ns(2 * MS - 2 * US)), "all but one of them");
}

/// Packed kernels of given families: (kernel, operator, share in percent).
fn mixed(parts: &[(&str, &str, i64)]) -> Sample {
    let mut sample = Sample::new();
    let (mut at, mut host) = (100 * US, 0);
    for _ in 0..10 {
        for &(kernel, operator, share) in parts {
            launch(&mut sample, operator, host, US, (kernel, at, share * 10 * US));
            host += US;
            at += share * 10 * US;
        }
    }
    sample
}

#[test]
fn an_operator_that_owns_the_run_is_of_a_kind() {
    const CAST: &str =
        "void at::native::elementwise_kernel<4, at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#1}>(int)";
    let kind = |kernel: &str, share: i64| {
        let triage = run(mixed(&[(kernel, "aten::it", share), ("silu", "aten::silu", 100 - share)]));
        find(&triage, "one_operator").filter(|smell| smell.subject == "aten::it").map(|smell| (smell.summary.clone(), smell.next.clone()))
    };
    let (summary, next) = kind("gemm", 61).expect("61 %");
    assert!(summary.contains("matmul") && next.contains("ncu"), "{summary}; {next}");
    assert!(kind("flash_fwd_kernel", 61).expect("61 %").0.contains("attention"));
    let (summary, next) = kind(CAST, 61).expect("61 %");
    assert!(summary.contains("memory traffic") && next.contains("--by stack") && !next.contains("ncu"), "{summary}; {next}");
    assert!(kind("vectorized_gather_kernel", 61).expect("61 %").0.contains("memory traffic"));
    assert_eq!(kind("gemm", 39), None);
}

#[test]
fn data_movement_by_kernels_is_named_with_its_owner() {
    let with = |share: i64| mixed(&[("vectorized_gather_kernel", "aten::index", share), ("gemm", "aten::mm", 100 - share)]);
    let smell = tells_apart("memory_traffic", with(16), with(14));
    assert_eq!(smell.subject, "aten::index");
    assert_eq!(number(&smell, "cuda_ns"), 10 * 16 * 10 * US);
}

#[test]
fn one_kernel_wins_at_most_what_runs_beside_nothing() {
    let with = |share: i64| {
        mixed(&[
            ("gemm_a", "aten::a", share),
            ("b", "aten::b", 24),
            ("c", "aten::c", 24),
            ("d", "aten::d", 20),
            ("e", "aten::e", 32 - share),
        ])
    };
    let smell = tells_apart("one_kernel", with(26), with(23));
    assert_eq!(smell.subject, "gemm_a");
    let mut beside = with(26);
    beside.on_device(0, 8);
    beside.launch("cudaLaunchKernel", 0, 1).kernel("side", 100 * US, 10 * MS + 260 * US);
    let triage = run(beside);
    let side = find(&triage, "one_kernel").expect("half of device time");
    assert_eq!((side.subject.as_str(), side.ceiling.map(|ceiling| ceiling.win_ns)), ("side", Some(Ns(260 * US))));
}

#[test]
fn the_first_step_is_cold_only_if_it_is_unlike_the_others() {
    let smell = tells_apart("cold_first_step", steps(&[3_000, 900, 900, 900]), steps(&[1_500, 900, 900, 900]));
    assert_eq!((number(&smell, "first_ns"), number(&smell, "median_of_others_ns")), (3_000 * US, 900 * US));
    assert!(find(&run(steps(&[3_000, 900])), "cold_first_step").is_none(), "two steps are not enough to tell");
}

#[test]
fn slow_steps_are_named_with_the_operator_that_took_the_time() {
    let smell = tells_apart("slow_steps", steps(&[900, 900, 2_000, 900, 1_900, 900]), steps(&[900, 900, 1_300, 900, 1_200, 900]));
    assert!(
        smell.summary.contains("takes 2.0 ms (step 2), 1.9 ms (step 4) of host time") && smell.summary.contains("aten::slow took 100 %"),
        "{}",
        smell.summary
    );
    assert_eq!(number(&smell, "excess_ns"), 2_100 * US);
    assert!(smell.next.contains("longpole ops --step 2)"), "{}", smell.next);
    assert_eq!(number(&smell, "slowest_step"), 2);
    // A slow first step is cold, not slow.
    assert!(find(&run(steps(&[3_000, 900, 900, 900])), "slow_steps").is_none());
}

/// Steps in which an operator has the shapes given.
fn shaped(shapes: &[&str]) -> Sample {
    let mut sample = steps(&vec![900; shapes.len()]);
    for (step, shapes) in shapes.iter().enumerate() {
        sample.op_with_shapes("aten::cat", step as i64 * 900 * US + 100 * US, 30 * US, Some((shapes, "[\"float\"]")));
    }
    sample
}

#[test]
fn shapes_that_change_from_step_to_step_churn() {
    let smell = tells_apart("shape_churn", shaped(&["[[1]]", "[[2]]", "[[3]]", "[[4]]"]), shaped(&["[[1]]", "[[2]]", "[[1]]", "[[2]]"]));
    assert_eq!((smell.subject.as_str(), number(&smell, "new_shapes"), number(&smell, "host_ns")), ("aten::cat", 3, 3 * 30 * US));
    assert!(find(&run(shaped(&["[[1024]]", "[[1]]", "[[1]]", "[[1]]"])), "shape_churn").is_none(), "prefill and decode differ once");
}

#[test]
fn loading_and_compiling_inside_the_window() {
    let loading = |name: &str, dur: i64| {
        let mut sample = steps(&[900; 4]);
        sample.on_thread(2);
        sample.launch(name, 100 * US, dur);
        sample
    };
    let smell = tells_apart("compile_or_load", loading("cuLibraryLoadData", 100 * US), loading("cuLibraryLoadData", 10 * US));
    assert_eq!(number(&smell, "load_calls"), 1);
    assert!(find(&run(loading("cuLaunchKernel", 100 * US)), "compile_or_load").is_none());

    let compiling = |range: &str| {
        let mut sample = steps(&[900; 4]);
        sample.on_thread(2);
        sample.range(range, 100 * US, 2_000 * US);
        sample
    };
    let calls = compiling("## Call CompiledFxGraph fc7fgbcyrd3xy5srvcac5h7qi4 ##");
    let smell = tells_apart("compile_or_load", compiling("entire_frame_compile (dynamo_timed)"), calls);
    assert_eq!(number(&smell, "compile_events"), 1);
    assert!(find(&run(compiling("TorchDynamo Cache Lookup")), "compile_or_load").is_none());
}

fn with_overhead(name: &str, dur: i64) -> Sample {
    let mut sample = steps(&[1_000; 4]);
    let name = sample.builder.trace_mut().strings.intern(name);
    sample.builder.push_overhead(Overhead { name, start: Ns(MS), dur: Ns(dur) });
    sample
}

#[test]
fn the_profiler_is_told_from_what_it_watches() {
    let smell = tells_apart(
        "profiler_distorts",
        with_overhead("Activity Buffer Request", 50 * US),
        with_overhead("Activity Buffer Request", 30 * US),
    );
    assert_eq!(number(&smell, "overhead_ns"), 50 * US);
    // Code loading is the program's.
    assert!(find(&run(with_overhead("Lazy Function Loading", 50 * US)), "profiler_distorts").is_none());
    assert!(find(&run(with_overhead("Lazy Function Loading", 50 * US)), "compile_or_load").is_some());
    let mut stacks = steps(&[1_000; 4]);
    let name = stacks.builder.trace_mut().strings.intern("model.py(12): forward");
    let process = stacks.builder.process(0, 100);
    let thread = stacks.builder.thread(process, longpole_trace::Tid::Number(1));
    stacks.builder.push_frame(PythonFrame { name, thread, start: Ns(0), dur: Ns(US) });
    let triage = run(stacks);
    let smell = find(&triage, "profiler_distorts").expect("stacks were recorded");
    assert_eq!((smell.share_fraction, smell.ceiling), (None, None));
}

#[test]
fn phases_without_names_get_the_lines_to_paste() {
    let calls = |calls: i64, named: bool| {
        let mut sample = Sample::new();
        for call in 0..calls {
            sample.op("aten::mm", call * 10 * US, 5 * US);
        }
        if named {
            sample.range("decode", 0, 10 * US);
        }
        sample
    };
    let smell = tells_apart("unnamed_phases", calls(50, false), calls(49, false));
    assert!(smell.next.contains("record_function(\"decode_step\")") && smell.next.contains("nvtx.range"), "{}", smell.next);
    assert!(find(&run(calls(50, true)), "unnamed_phases").is_none());
}

#[test]
fn a_single_long_call_is_start_up_or_a_stall_by_where_it_is() {
    // Twelve steps of 1 ms; one of the calls in them takes 4 ms more.
    let long = |slow: usize| {
        let mut sample = Sample::new();
        let mut at = 0;
        for step in 0..12 {
            let length = if step == slow { 4 * MS } else { 0 };
            sample.op("aten::mm", at, MS + length);
            sample.launch("cudaFuncGetAttributes", at, 10 * US + length);
            sample.launch("cudaLaunchKernel", at + length + 20 * US, 10 * US).kernel("gemm", at + length + 40 * US, 900 * US);
            at += MS + length;
        }
        sample
    };
    let cold = tells_apart("cold_start", long(0), long(6));
    assert_eq!(cold.subject, "cudaFuncGetAttributes");
    let stall = tells_apart("stall", long(6), long(0));
    assert_eq!(number(&stall, "self_ns"), 4 * MS + 10 * US);
    assert_eq!(run(long(6)).report.next_experiment.code, "stall");
}

#[test]
fn what_is_not_recorded_is_said_and_not_judged() {
    let mut host_only = Sample::new();
    for call in 0..60 {
        host_only.op("aten::mm", call * 100 * US, 90 * US);
        host_only.launch("cudaMalloc", call * 100 * US + US, 10 * US);
    }
    let triage = run(host_only);
    assert_eq!(triage.report.next_experiment.code, "record_cuda");
    assert!(triage.smells.iter().all(|smell| !smell.summary.contains("GPU idle")), "{:?}", triage.smells);
    assert!(triage.questions.iter().all(|question| question.verdict == "unknown"), "{:?}", triage.questions);

    let mut few = Sample::new();
    for call in 0..9 {
        launch(&mut few, "aten::mm", call * 100 * US, 50 * US, ("gemm", call * 100 * US + 60 * US, 10 * US));
    }
    let triage = run(few);
    assert!(find(&triage, "too_little").is_some() && find(&triage, "host_bound").is_none() && find(&triage, "one_operator").is_none());
}

fn verdict(triage: &Triage, code: &str) -> &'static str {
    triage.questions.iter().find(|question| question.code == code).map_or("", |question| question.verdict)
}

#[test]
fn the_questions_are_answered_by_numbers() {
    // A dense prefill, then decode steps in which the device waits for launches.
    let mut sample = Sample::new();
    sample.range("prefill", 0, 10 * MS);
    for call in 0..10 {
        launch(&mut sample, "aten::mm", call * 100 * US, 50 * US, ("gemm", MS + call * MS, MS));
    }
    for step in 0..8 {
        let at = 12 * MS + step * 2 * MS;
        sample.range("decode_step", at, 2 * MS);
        launch(&mut sample, "aten::mm", at, 1_000 * US, ("gemm", at + 1_000 * US, 100 * US));
        sample.launch("cudaMemcpyAsync", at + 1_500 * US, US).memcpy("Memcpy DtoH (Device -> Pinned)", at + 1_600 * US, US);
    }
    let trace = sample.finish();
    let whole = run_trace(&trace);
    assert_eq!(verdict(&whole, "kernels_packed"), "waits_for_launches");
    assert_eq!(verdict(&whole, "host_and_gpu"), "host_alone");
    assert_eq!(verdict(&whole, "prefill_and_decode"), "yes");
    assert_eq!(verdict(&whole, "copies_critical"), "no");
    assert!(whole.questions[0].answer.contains("look in decode_step"), "{}", whole.questions[0].answer);
    let answer = &whole.questions[2].answer;
    assert!(
        answer.contains("prefill x1") && answer.contains("GPU busy 100 % of its span") && answer.contains("decode_step x8"),
        "{answer}"
    );

    let index = TraceIndex::new(&trace);
    let spec = ScopeSpec { range: Some("prefill".to_owned()), ..ScopeSpec::default() };
    let prefill = triage(&index, &Scope::resolve(&index, &spec).expect("it is there"), &TriageOptions::default());
    assert_eq!((verdict(&prefill, "kernels_packed"), verdict(&prefill, "host_and_gpu")), ("packed", "aligned"));

    let triage = run(steps(&[900; 4]));
    assert_eq!(verdict(&triage, "prefill_and_decode"), "decode_only");
    let mut unnamed = Sample::new();
    launch(&mut unnamed, "aten::mm", 0, US, ("gemm", 10 * US, US));
    assert_eq!(verdict(&run(unnamed), "prefill_and_decode"), "unknown");
}

#[test]
fn tools_and_words_are_those_of_the_vendor() {
    let text = |launch: &str, host: i64, device: i64, named: Option<&str>| {
        let mut sample = Sample::new();
        for call in 0..100 {
            sample.op("aten::mm", call * host, host / 2);
            sample.launch(launch, call * host, host / 4).kernel("gemm", call * host + host / 2, device);
        }
        let mut trace = sample.finish();
        trace.devices[0].properties.name = named.map(str::to_owned);
        let found = run_trace(&trace);
        let smells: Vec<&str> = found.smells.iter().flat_map(|smell| [smell.summary.as_str(), smell.next.as_str()]).collect();
        format!("{}\n{}", found.report.next_experiment.text, smells.join("\n"))
    };
    for (launch, named, is_amd) in [
        ("hipLaunchKernel", None, true),
        ("hipModuleLaunchKernel", Some("AMD Radeon Graphics"), true),
        ("cudaLaunchKernel", Some("NVIDIA H200"), false),
        ("cudaLaunchKernel", None, false),
        ("launch", Some("AMD Instinct MI300X"), true),
    ] {
        // A packed device, then a starved one.
        let packed = text(launch, 100 * US, 99 * US, named);
        assert_eq!((packed.contains("ncu"), packed.contains("rocprof-compute")), (!is_amd, is_amd), "{launch}: {packed}");
        let starved = text(launch, 100 * US, 10 * US, named);
        assert_eq!((starved.contains("CUDA graphs"), starved.contains("HIP graphs")), (!is_amd, is_amd), "{launch}: {starved}");
    }
}

/// A blocking copy of 50 ms, then `device` ms of one operator; `before` ms of the wait have other work on the device.
fn blocked(device: i64, before: i64) -> Sample {
    let mut sample = Sample::new();
    if before > 0 {
        sample.orphan("other", 2 * MS, before * MS);
    }
    sample.op("aten::to", 0, 51 * MS);
    sample.launch("hipMemcpyWithStream", MS, 50 * MS).memcpy("Memcpy DtoH (Device -> Pinned)", 51 * MS - US, US);
    for call in 0..20 {
        let host = 52 * MS + call * 100 * US;
        launch(&mut sample, "aten::mm", host, 50 * US, ("gemm", 53 * MS + call * device * MS / 20, device * MS / 20));
    }
    sample
}

#[test]
fn one_wait_for_work_that_was_not_recorded_comes_before_a_smaller_operator() {
    let smell = tells_apart("blocking_call", blocked(45, 0), blocked(45, 48));
    assert_eq!((smell.subject.as_str(), number(&smell, "gpu_idle_during_ns")), ("hipMemcpyWithStream", 50 * MS - US));
    assert!(smell.summary.contains("in aten::to") && smell.summary.contains("launched before the window"), "{}", smell.summary);
    assert_eq!(run(blocked(45, 0)).report.next_experiment.code, "blocking_call");
    // A wait for packed work has many short gaps, none of which it waits for.
    let mut packed = Sample::new();
    packed.launch("cudaDeviceSynchronize", 0, 50 * MS);
    (0..50).for_each(|call| packed.orphan("gemm", call * MS, 800 * US));
    assert!(find(&run(packed), "blocking_call").is_none());
    let larger = run(blocked(120, 0));
    assert!(find(&larger, "blocking_call").is_some(), "it is still listed");
    assert_eq!(larger.report.next_experiment.code, "one_operator");
}
