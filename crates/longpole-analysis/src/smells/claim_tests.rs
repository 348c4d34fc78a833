//! What the first page claims must hold for the machine, not only for the part of the trace that was asked for.

use longpole_trace::{Ns, Overhead};

use super::*;
use crate::index::TraceIndex;
use crate::sample::Sample;
use crate::scope::{Scope, ScopeSpec};
use crate::triage::{Triage, TriageOptions, triage};

const US: i64 = 1_000;
const MS: i64 = 1_000_000;

fn find<'t>(triage: &'t Triage, code: &str) -> Option<&'t Smell> {
    triage.smells.iter().find(|smell| smell.code == code)
}

fn run_with(sample: Sample, spec: &ScopeSpec, options: &TriageOptions) -> Triage {
    let trace = sample.finish();
    let index = TraceIndex::new(&trace);
    let scope = Scope::resolve(&index, spec).expect("the scope is there");
    triage(&index, &scope, options)
}

fn run(sample: Sample) -> Triage {
    run_with(sample, &ScopeSpec::default(), &TriageOptions::default())
}

fn in_range(sample: Sample, name: &str) -> Triage {
    run_with(sample, &ScopeSpec { range: Some(name.to_owned()), ..ScopeSpec::default() }, &TriageOptions::default())
}

fn answer<'t>(triage: &'t Triage, code: &str) -> (&'static str, &'t str) {
    let found = triage.questions.iter().find(|question| question.code == code).expect("all are answered");
    (found.verdict, &found.answer)
}

fn overhead(sample: &mut Sample, name: &str, start: i64, dur: i64) {
    let name = sample.builder.trace_mut().strings.intern(name);
    sample.builder.push_overhead(Overhead { name, start: Ns(start), dur: Ns(dur) });
}

/// A step of 100 ms with one long call in it, while a kernel that was launched before the step runs for `beside` ms of it.
fn step_beside(beside: i64) -> Sample {
    let mut sample = Sample::new();
    for call in 0..3 {
        sample.op("aten::mm", call * 100 * US, 50 * US);
    }
    if beside > 0 {
        sample.on_device(0, 9);
        sample.launch("cudaLaunchKernel", MS, 10 * US).kernel("ncclDevKernel_AllReduce", 2 * MS, beside * MS);
        sample.on_device(0, 7);
    }
    sample.range("decode_step", 2 * MS, 100 * MS);
    sample.op("aten::mm", 2 * MS, 80 * MS);
    for call in 0..20 {
        let at = 82 * MS + call * MS;
        sample.op("aten::add", at, 500 * US);
        sample.launch("cudaLaunchKernel", at + 100 * US, 10 * US).kernel("add", at + 500 * US, 100 * US);
    }
    sample
}

#[test]
fn work_from_outside_the_scope_keeps_the_device_busy() {
    let busy = in_range(step_beside(100), "decode_step");
    assert!(busy.smells.iter().all(|smell| !["stall", "cold_start", "host_bound"].contains(&smell.code)), "{:#?}", busy.smells);
    assert!(busy.smells.iter().all(|smell| smell.ceiling.is_none_or(|ceiling| ceiling.win_ns < Ns(5 * MS))), "{:#?}", busy.smells);
    assert_eq!(answer(&busy, "host_and_gpu").0, "aligned");
    assert_eq!(answer(&busy, "kernels_packed").0, "packed");
    let totals = &busy.totals;
    assert_eq!((totals.gpu_busy_ns, totals.gpu_idle_ns, totals.gpu_outside_ns), (Some(Ns(2 * MS)), Some(Ns::ZERO), Some(Ns(98 * MS))));
    assert!(busy.report.top_cuda_time.contains("98.0 ms with work from outside the scope"), "{}", busy.report.top_cuda_time);

    let idle = in_range(step_beside(0), "decode_step");
    let stall = find(&idle, "stall").expect("80 of 100 ms in one call");
    assert_eq!(stall.ceiling.map(|ceiling| ceiling.win_ns), Some(Ns(80 * MS)));
    assert_eq!(answer(&idle, "host_and_gpu").0, "host_alone");
    assert_eq!(idle.totals.gpu_outside_ns, Some(Ns::ZERO));
}

#[test]
fn what_runs_beside_a_copy_may_be_from_outside_the_scope() {
    let with = |beside: i64| {
        let mut sample = Sample::new();
        sample.on_device(0, 9);
        sample.launch("cudaLaunchKernel", 0, US).kernel("gemm", MS, beside * MS);
        sample.on_device(0, 7);
        sample.range("decode_step", MS, 20 * MS);
        for copy in 0..10 {
            let at = MS + copy * 2 * MS;
            sample.launch("cudaMemcpyAsync", at, US).memcpy("Memcpy DtoH (Device -> Pinned)", at, 2 * MS);
        }
        in_range(sample, "decode_step")
    };
    assert_eq!(with(20).totals.exposed_copy_ns, Some(Ns::ZERO));
    assert_eq!(answer(&with(20), "copies_critical").0, "no");
    assert_eq!(with(5).totals.exposed_copy_ns, Some(Ns(15 * MS)));
}

#[test]
fn one_step_in_scope_is_not_called_first_or_later() {
    let idle = in_range(step_beside(0), "decode_step");
    let summary = &find(&idle, "stall").expect("80 of 100 ms in one call").summary;
    assert!(summary.ends_with("not its first call"), "{summary}");
}

/// Steps of 20 ms on the host for `busy` us on the device.
fn slow_host(busy: i64) -> Sample {
    let mut sample = Sample::new();
    for step in 0..8 {
        let at = step * 20 * MS;
        sample.range("decode_step", at, 20 * MS);
        for call in 0..20 {
            let at = at + call * MS;
            sample.op("aten::mm", at, 900 * US);
            sample.launch("cudaLaunchKernel", at + 800 * US, 50 * US).kernel("gemm", at + 850 * US, busy * US / 20);
        }
    }
    sample
}

#[test]
fn a_timed_step_takes_the_profilers_part_out_of_every_ceiling() {
    let with = |busy: i64, unprofiled: Option<i64>| {
        let options = TriageOptions { unprofiled_step: unprofiled.map(|us| Ns(us * US)), ..TriageOptions::default() };
        run_with(slow_host(busy), &ScopeSpec::default(), &options)
    };
    let plain = with(3_000, None);
    assert_eq!(plain.report.next_experiment.code, "host_bound");
    // Without the profiler a step takes little more than its device work.
    let packed = with(3_000, Some(3_020));
    assert!(find(&packed, "host_bound").is_none(), "{:#?}", packed.smells);
    assert_eq!(packed.report.next_experiment.code, "one_operator");
    assert_eq!(answer(&packed, "kernels_packed").0, "packed_without_profiler");
    assert!(packed.host_clock.as_ref().is_some_and(|clock| clock.note.contains("host_bound is not listed")), "{:?}", packed.host_clock);
    for text in [answer(&packed, "kernels_packed").1, answer(&packed, "host_and_gpu").1, &packed.report.top_host_cost] {
        assert!(text.contains("under the profiler"), "{text}");
    }
    // At half the profiled step the device idles as much as it is busy.
    let half = with(3_000, Some(6_000));
    let smell = find(&half, "host_bound").expect("half of the step is idle");
    let ceiling = smell.ceiling.expect("it has one");
    assert!(ceiling.is_calibrated && ceiling.win_fraction < 0.51 && ceiling.win_ns < Ns(8 * 3 * MS), "{ceiling:?}");
    assert!(smell.summary.contains("without the profiler"), "{}", smell.summary);
    // A time that cannot be that of the step changes nothing but the note.
    for (unprofiled, said) in [(1_000, "not that of this step"), (30_000, "a profiler makes no step faster")] {
        let odd = with(3_000, Some(unprofiled));
        assert_eq!(find(&odd, "host_bound"), find(&plain, "host_bound"));
        assert!(odd.host_clock.as_ref().is_some_and(|clock| clock.note.contains(said)), "{:?}", odd.host_clock);
    }
}

/// A first step of `first` us, then four of 1 ms that a kernel fills.
fn with_first(first: i64) -> Sample {
    let mut sample = Sample::new();
    let mut at = 0;
    for step in 0..5 {
        let length = if step == 0 { first } else { 1_000 };
        sample.range("decode_step", at, length * US);
        sample.op("aten::mm", at, 50 * US);
        for call in 0..5 {
            let at = at + call * length / 5 * US;
            sample.launch("cudaLaunchKernel", at, 5 * US).kernel("gemm", at + 10 * US, 180 * US);
        }
        at += length * US;
    }
    sample
}

#[test]
fn a_cold_first_step_is_no_reason_to_call_the_run_host_bound() {
    let cold = run(with_first(20_000));
    assert!(find(&cold, "host_bound").is_none(), "{:#?}", cold.smells);
    assert_eq!(cold.report.next_experiment.code, "cold_first_step");
    assert!(cold.report.next_experiment.text.contains("warm up before the profiler starts and record again"));
    assert_ne!(run(with_first(3_000)).report.next_experiment.code, "cold_first_step", "it is not most of the wall");
}

#[test]
fn a_range_inside_one_of_its_name_is_no_step_of_its_own() {
    let mut sample = Sample::new();
    for step in 0..4 {
        let at = step * MS;
        sample.range("forward", at, 900 * US);
        sample.range("forward", at + 100 * US, 700 * US);
        sample.op("aten::mm", at, 50 * US);
        sample.launch("cudaLaunchKernel", at, 5 * US).kernel("gemm", at + 10 * US, 100 * US);
    }
    let options = TriageOptions { unprofiled_step: Some(Ns(500 * US)), ..TriageOptions::default() };
    let found = run_with(sample, &ScopeSpec::default(), &options);
    let calibration = found.host_clock.and_then(|clock| clock.calibration).expect("steps repeat");
    assert_eq!((calibration.steps, calibration.profiled_step_ns), (4, Ns(MS)));
}

/// A first call of 10 ms in which the profiler works for itself for `own` us; then calls like others.
fn long_call(own: i64, name: &str) -> Sample {
    let mut sample = Sample::new();
    for call in 0..20 {
        let at = if call == 0 { 0 } else { 10 * MS + call * 100 * US };
        let host = if call == 0 { 10 * MS } else { 50 * US };
        sample.op("aten::gather", at, host);
        sample.launch("cudaLaunchKernel", at + host, 5 * US).kernel("gather", at + host + 10 * US, 10 * US);
    }
    overhead(&mut sample, name, 100 * US, own * US);
    sample
}

#[test]
fn the_profilers_own_time_is_nobodys_start_up() {
    let own = |own: i64, name: &str| find(&run(long_call(own, name)), "cold_start").map(|smell| smell.evidence[0].value.clone());
    assert_eq!(own(4_000, "Activity Buffer Request"), Some(FactValue::Time(Ns(6 * MS))));
    assert_eq!(own(9_700, "Activity Buffer Request"), None);
    // Loading code is the program's own.
    assert_eq!(own(9_700, "Lazy Function Loading"), Some(FactValue::Time(Ns(10 * MS))));
}

#[test]
fn a_full_launch_queue_is_named_and_not_the_profilers() {
    let mut sample = Sample::new();
    for step in 0..8 {
        let at = step * MS;
        let length = if step == 6 { 2 * MS } else { 900 * US };
        let at = if step == 7 { at + 2 * MS } else { at };
        sample.range("replay_step", at, length);
        sample.launch("cudaGraphLaunch", at, length - 100 * US).kernel("gemm", at + 100 * US, 800 * US);
    }
    overhead(&mut sample, "Command Buffer Full", 6 * MS + 100 * US, 1_100 * US);
    let found = run(sample);
    let smell = find(&found, "slow_steps").expect("one takes twice as long");
    assert!(smell.summary.contains("waiting for room in the launch queue (Command Buffer Full) took 100 %"), "{}", smell.summary);
    assert!(!smell.next.contains("cudaGraphLaunch"), "{}", smell.next);
    assert!(find(&found, "profiler_distorts").is_none());
}

#[test]
fn kernels_are_said_to_be_of_replays_only_if_they_are() {
    let with = |eager: i64| {
        let mut sample = Sample::new();
        let mut launch = sample.launch("cudaGraphLaunch", 0, 50 * US);
        for kernel in 0..1_200 {
            launch = launch.kernel("elementwise_kernel", 100 * US + kernel * 3 * US, 3 * US);
        }
        for call in 0..eager {
            sample.op("aten::fill_", 60 * US + call * US, US);
            sample.launch("cudaLaunchKernel", 60 * US + call * US, US / 2).kernel("fill", 4 * MS + call * 2 * US, US);
        }
        find(&run(sample), "many_tiny_kernels").expect("all are tiny").summary.clone()
    };
    assert!(with(0).starts_with("1,200 kernels from 1 graph replay,"), "{}", with(0));
    assert!(with(24).starts_with("1,224 kernels (1,200 of them from 1 graph replay),"), "{}", with(24));
}

#[test]
fn what_is_measured_after_is_what_was_found() {
    let mut sample = Sample::new();
    for call in 0..10 {
        let at = call * 100 * US;
        sample.op("aten::index", at, 10 * US);
        sample.launch("cudaLaunchKernel", at, US).kernel("vectorized_gather_kernel", at + 10 * US, 40 * US);
        sample.op("aten::mm", at + 50 * US, 10 * US);
        sample.launch("cudaLaunchKernel", at + 51 * US, US).kernel("gemm", at + 60 * US, 40 * US);
    }
    let found = run(sample);
    let smell = find(&found, "memory_traffic").expect("half of the time");
    assert!(smell.next.ends_with("then measure gather/scatter time"), "{}", smell.next);
}

/// A range with kernels back to back, or 500 us apart.
fn named(sample: &mut Sample, name: &str, at: i64, gap: i64) {
    sample.range(name, at, 10 * MS);
    for call in 0..10 {
        sample.op("aten::mm", at + call * 100 * US, 50 * US);
        let start = at + 100 * US + call * (500 + gap) * US;
        sample.launch("cudaLaunchKernel", at + call * 100 * US, 5 * US).kernel("gemm", start, 500 * US);
    }
}

#[test]
fn batches_are_named_by_their_requests() {
    let of = |names: &[&str]| {
        let mut sample = Sample::new();
        for (at, name) in names.iter().enumerate() {
            named(&mut sample, name, at as i64 * 10 * MS, 0);
        }
        let triage = run(sample);
        let (verdict, text) = answer(&triage, "prefill_and_decode");
        (verdict, text.to_owned())
    };
    assert_eq!(of(&["execute_32_context_0(sq0sk0)_generation_32(sq32sk55)"]).0, "decode_once");
    assert_eq!(of(&["execute_15360_context_15(sq1sk1)_generation_0(sq0sk0)"]).0, "prefill_dense");
    let (verdict, text) = of(&["execute_40_context_1(sq1sk1)_generation_8(sq8sk9)"]);
    assert!(verdict == "unknown" && text.contains("both prefill and decode"), "{text}");
    assert_eq!(of(&["execute_model"]).0, "unknown");
}

#[test]
fn a_collective_that_waits_does_not_make_a_prefill_dense() {
    let with = |collective: bool| {
        let mut sample = Sample::new();
        named(&mut sample, "prefill", 0, 500);
        if collective {
            sample.on_device(0, 9);
            sample.launch("cudaLaunchKernel", 5 * MS, US).kernel("ncclDevKernel_AllReduce", 10 * MS, 200 * MS);
        }
        let triage = run(sample);
        let (verdict, text) = answer(&triage, "prefill_and_decode");
        (verdict, text.to_owned())
    };
    assert_eq!(with(false).0, "prefill_not_dense");
    let (verdict, text) = with(true);
    assert_eq!(verdict, "prefill_not_dense");
    assert!(text.contains("10 kernels of 500.0 us") && text.contains("1 collective (200.0 ms alone) left out"), "{text}");
}

#[test]
fn gaps_are_put_down_to_what_the_evidence_says() {
    // The launch itself takes long.
    let mut sample = Sample::new();
    for call in 0..20 {
        let at = call * MS;
        sample.op("aten::add", at, 900 * US);
        sample.launch("hipLaunchKernel", at + 100 * US, 700 * US).kernel("add", at + 800 * US, 50 * US);
    }
    let found = run(sample);
    let (verdict, text) = answer(&found, "kernels_packed");
    assert!(verdict == "waits_in_calls" && text.contains("inside the call that launches"), "{text}");

    // Launched long before, and one gap is all there is; the host waits meanwhile.
    let mut sample = Sample::new();
    for call in 0..20 {
        sample.op("aten::add", call * 10 * US, 9 * US);
        let start = if call < 10 { MS + call * 100 * US } else { 100 * MS + call * 100 * US };
        sample.launch("hipLaunchKernel", call * 10 * US, 5 * US).kernel("add", start, 100 * US);
    }
    sample.launch("hipMemcpyWithStream", MS, 100 * MS);
    let found = run(sample);
    let (verdict, text) = answer(&found, "kernels_packed");
    assert!(verdict == "gaps_after_launch" && text.contains("in one gap although the next work was launched"), "{text}");
    assert!(!text.contains("mostly launched in time"), "{text}");
    let (verdict, text) = answer(&found, "host_and_gpu");
    assert!(verdict == "host_waits" && text.contains("waits in blocking calls"), "{text}");
}

#[test]
fn an_only_call_has_nothing_to_be_compared_with() {
    let mut sample = Sample::new();
    sample.launch("hipGraphLaunch", 0, 2 * MS);
    for call in 0..20 {
        let at = 2 * MS + call * 100 * US;
        sample.op("aten::mm", at, 90 * US);
        sample.launch("hipLaunchKernel", at, 5 * US).kernel("gemm", at + 5 * US, 90 * US);
    }
    let found = run(sample);
    let summary = &find(&found, "cold_start").expect("half of the wall").summary;
    assert!(summary.ends_with("its only call here, so whether it is start-up cannot be told"), "{summary}");
}

#[test]
fn an_empty_scope_is_said_to_be_empty() {
    let mut sample = Sample::new();
    named(&mut sample, "prefill", 0, 0);
    let spec = ScopeSpec { time: Some((Ns(500 * MS), Ns(600 * MS))), ..ScopeSpec::default() };
    let report = run_with(sample, &spec, &TriageOptions::default()).report;
    assert_eq!((report.workload.as_str(), report.top_host_cost.as_str()), ("nothing is in scope", "nothing is in scope"));
}

#[test]
fn devices_are_listed_by_rank() {
    let mut sample = Sample::new();
    for rank in [4, 2, 3] {
        sample.next_rank(rank);
        sample.launch("cudaLaunchKernel", 0, US).kernel("gemm", 0, US);
    }
    let trace = sample.finish();
    let found = triage(&TraceIndex::new(&trace), &Scope::whole(), &TriageOptions::default());
    let ranks: Vec<u32> = found.totals.devices.iter().map(|device| crate::triage::rank_number(&trace, device.device)).collect();
    assert_eq!(ranks, [2, 3, 4]);
}

#[test]
fn whole_names_are_kept_where_they_are_asked_for() {
    const LONG: &str = "aten::cudnn_convolution_backward_weight_of_the_first_layer";
    let with = |full_names: bool| {
        let mut sample = Sample::new();
        for call in 0..20 {
            sample.op(LONG, call * 100 * US, 90 * US);
            sample.launch("cudaLaunchKernel", call * 100 * US, 5 * US).kernel("gemm", call * 100 * US + 5 * US, 95 * US);
        }
        let options = TriageOptions { full_names, ..TriageOptions::default() };
        run_with(sample, &ScopeSpec::default(), &options).report.top_cuda_time.contains(LONG)
    };
    assert_eq!((with(true), with(false)), (true, false));
}
