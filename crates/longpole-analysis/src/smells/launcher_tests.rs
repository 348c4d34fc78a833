//! What is tried next where no operators were recorded, and which ranges are steps.

use longpole_trace::Recorder;

use super::*;
use crate::index::TraceIndex;
use crate::sample::Sample;
use crate::scope::Scope;
use crate::triage::{Triage, TriageOptions, triage};

const US: i64 = 1_000;
const MS: i64 = 1_000_000;

fn run(sample: Sample, recorder: Recorder) -> Triage {
    let mut trace = sample.finish();
    trace.recorder = recorder;
    triage(&TraceIndex::new(&trace), &Scope::whole(), &TriageOptions::default())
}

fn find<'t>(triage: &'t Triage, code: &str) -> Option<&'t Smell> {
    triage.smells.iter().find(|smell| smell.code == code)
}

/// Kernels that are launched back to back; the first `ranged` of 40 inside ranges.
fn engine(ranged: i64, kernel: &str) -> Sample {
    let mut sample = Sample::new();
    for call in 0..40 {
        let at = call * 60 * US;
        if call < ranged {
            sample.range("forward", at, 2 * US);
        }
        sample.launch("cuLaunchKernelEx", at + US / 2, US).kernel(kernel, at + 10 * US, 49 * US);
    }
    sample
}

#[test]
fn operators_are_asked_for_where_neither_they_nor_ranges_tell_who_launches() {
    let torch = "void at::native::vectorized_elementwise_kernel<4>(int)";
    for recorder in [Recorder::Longpole, Recorder::NsightSystems] {
        let triage = run(engine(4, torch), recorder);
        assert_eq!(triage.report.next_experiment.code, "record_cpu");
        assert!(triage.report.next_experiment.text.contains("emit_nvtx"), "{:?}", triage.report.next_experiment);
        let triage = run(engine(30, torch), recorder);
        assert!(find(&triage, "record_cpu").is_none());
        // Nothing says that this is PyTorch: what the kernel costs is what can be tried.
        let triage = run(engine(4, "gemv_add"), recorder);
        assert_eq!(triage.report.next_experiment.code, "one_kernel");
        let said = find(&triage, "record_cpu").expect("it is listed");
        assert!(said.next.contains("NVTX ranges") && !said.next.contains("PyTorch"), "{said:?}");
        let triage = run(engine(30, "gemv_add"), recorder);
        assert!(find(&triage, "record_cpu").is_none());
    }
    // PyTorch's own profiler sees operators when it is asked to.
    assert_eq!(run(engine(4, "gemv_add"), Recorder::Torch).report.next_experiment.code, "record_cpu");
}

#[test]
fn ranges_around_a_capture_tell_who_launches_its_replays() {
    let graph = |is_captured: bool| {
        let mut sample = Sample::new();
        sample.range("capture", 0, 10 * US);
        if is_captured {
            for node in 0..10 {
                sample.captured(node, US + node as i64);
            }
        }
        for replay in 0..6 {
            let at = 20 * US + replay * 1_000 * US;
            let mut launch = sample.launch("cuGraphLaunch", at, 5 * US);
            for node in 0..10 {
                launch = launch.node(node, "k", at + 10 * US + node as i64 * 99 * US, 98 * US);
            }
        }
        run(sample, Recorder::Longpole)
    };
    assert!(find(&graph(true), "record_cpu").is_none());
    assert!(find(&graph(false), "record_cpu").is_some());
}

#[test]
fn ranges_tell_that_the_host_holds_the_clock() {
    let mut sample = Sample::new();
    for call in 0..40 {
        let at = call * 100 * US;
        sample.range("forward", at, 90 * US);
        sample.launch("cuLaunchKernelEx", at + 80 * US, 5 * US).kernel("k", at + 90 * US, 10 * US);
    }
    let triage = run(sample, Recorder::Longpole);
    assert_eq!(triage.report.next_experiment.code, "host_bound");
    assert!(!triage.report.next_experiment.text.contains("torch"), "{:?}", triage.report.next_experiment);
}

#[test]
fn without_operators_the_time_between_loads_is_loading() {
    let loads = |pause: i64| {
        let mut sample = Sample::new();
        sample.range("prefill", 0, 300 * MS);
        sample.launch("cuLaunchKernelEx", 0, US).kernel("k", 5 * US, 10 * US);
        for load in 0..10 {
            sample.launch("cuLibraryLoadData", MS + load * (pause + MS), MS);
        }
        for call in 0..20 {
            sample.launch("cuLaunchKernelEx", 250 * MS + call * 60 * US, US).kernel("k", 250 * MS + call * 60 * US + 10 * US, 45 * US);
        }
        run(sample, Recorder::Longpole)
    };
    let triage = loads(15 * MS);
    let smell = find(&triage, "compile_or_load").expect("code is loaded");
    assert_eq!(smell.ceiling.map(|ceiling| ceiling.win_ns), Some(Ns(10 * MS + 9 * 15 * MS)));
    assert_eq!(triage.report.next_experiment.code, "compile_or_load");
    // A host that is away for longer does something else.
    let smell = find(&loads(21 * MS), "compile_or_load").expect("code is loaded").clone();
    assert_eq!(smell.ceiling.map(|ceiling| ceiling.win_ns), Some(Ns(10 * MS)));
}

/// Windows of prefill and of decode in turn, as long as told; steps inside them are alike, one of decode is slow if that is asked for.
fn windows(slow: bool) -> Sample {
    let mut sample = Sample::new();
    let mut at = 0;
    for window in 0..6 {
        let begin = at;
        let (name, steps, length, kernels) = if window % 2 == 0 { ("prefill", 3, 9_000, 8) } else { ("decode step", 10, 600, 4) };
        for step in 0..steps {
            let extra = if slow && window == 3 && step == 4 { 3_000 } else { 0 };
            let length = (length + extra) * US;
            sample.range(name, at, length - US);
            for kernel in 0..kernels {
                let launch = at + kernel * 10 * US;
                sample.launch("cuLaunchKernelEx", launch, US).kernel(
                    ["norm", "gemm", "attention", "mlp"][kernel as usize % 4],
                    launch + 5 * US,
                    9 * US,
                );
            }
            at += length;
        }
        sample.range("window", begin, at - begin);
    }
    sample
}

#[test]
fn ranges_that_hold_different_work_are_no_steps() {
    let triage = run(windows(false), Recorder::Longpole);
    assert!(find(&triage, "slow_steps").is_none(), "{:?}", find(&triage, "slow_steps"));
    // Among those that are alike a slow one stands out.
    let mut sample = Sample::new();
    for step in 0..8 {
        let (at, length) = (step * 1_000 * US, if step == 5 { 1_700 } else { 800 });
        sample.range("decode step", at, length * US);
        sample.range(if step == 5 { "replan" } else { "replay" }, at + US, 5 * US);
        sample.launch("cuLaunchKernelEx", at + 10 * US, US).kernel("gemm", at + 20 * US, 600 * US);
    }
    let triage = run(sample, Recorder::Longpole);
    assert_eq!(find(&triage, "slow_steps").map(|smell| smell.subject.as_str()), Some("decode step"));
}
