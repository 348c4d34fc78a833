//! Recordings in windows: the time between them is in no figure. What every figure must equal is that of the same windows, one right after the
//! other.

use longpole_trace::{Interval, IntervalSet, Ns, Trace};
use proptest::prelude::*;

use crate::idle::{idle_pieces, idle_table};
use crate::index::TraceIndex;
use crate::pace::Pace;
use crate::ranges::range_table;
use crate::sample::Sample;
use crate::scope::{Scope, ScopeSpec};
use crate::steps::{StepOptions, step_table};
use crate::totals::{Unrecorded, totals};
use crate::triage::{TriageOptions, triage};

const MS: i64 = 1_000_000;

/// A trace of which nothing was recorded in these times.
fn without(sample: Sample, unobserved: &[(i64, i64)]) -> Trace {
    let mut trace = sample.finish();
    let stretches = unobserved.iter().map(|&(start, end)| Interval { start: Ns(start), end: Ns(end) }).collect();
    trace.unobserved.set(0, IntervalSet::from_unsorted(stretches));
    trace
}

/// Three decode steps a window, windows `apart`.
fn windows(apart: i64) -> Sample {
    let mut sample = Sample::new();
    for window in 0..2 {
        let begin = window * (30 * MS + apart);
        sample.range("window", begin, 30 * MS);
        for step in 0..3 {
            let at = begin + step * 10 * MS;
            sample.range("decode_step", at + MS, 8 * MS);
            for kernel in 0..4 {
                let launch = at + MS + kernel * 2 * MS;
                sample.launch("cudaLaunchKernel", launch, 1_000).kernel(
                    ["norm", "gemm", "attention", "mlp"][kernel as usize],
                    launch + MS / 2,
                    MS,
                );
            }
        }
    }
    sample
}

#[test]
fn time_between_windows_is_neither_wall_nor_idle() {
    let apart = 1_000 * MS;
    // The last kernel of the window ends half a millisecond before the window does.
    let trace = without(windows(apart), &[(30 * MS, 30 * MS + apart)]);
    let joined = windows(0).finish();
    let (index, joined_index) = (TraceIndex::new(&trace), TraceIndex::new(&joined));
    let (found, expected) = (totals(&index, &Scope::whole()), totals(&joined_index, &Scope::whole()));
    assert_eq!(found.unrecorded, Some(Unrecorded { windows: 2, between_ns: Ns(apart) }));
    assert_eq!((found.wall_ns, found.gpu_busy_fraction), (Ns(60 * MS), expected.gpu_busy_fraction));
    assert_eq!((found.gpu_idle_ns, found.gpu_span_ns()), (expected.gpu_idle_ns, expected.gpu_span_ns()));
    let (idle, expected) = (idle_table(&index, &Scope::whole()), idle_table(&joined_index, &Scope::whole()));
    assert_eq!((idle.idle_ns, idle.span_ns, &idle.queue), (expected.idle_ns, expected.span_ns, &expected.queue));
    assert_eq!(idle.causes.iter().map(|row| row.idle_ns).sum::<Ns>(), idle.idle_ns.unwrap());
    assert_eq!(found.gpu_idle_ns, idle.idle_ns);
    assert!(idle.causes.iter().all(|row| row.largest_ns < Ns(10 * MS)), "{:?}", idle.causes);
    // Samples of the queue go on from one window to the next, and each holds as much observed time.
    let samples = &idle.devices[0].queue_over_time;
    assert!(samples.windows(2).all(|pair| pair[0].end == pair[1].start));
    assert_eq!(samples.iter().map(|sample| sample.empty_ns).sum::<Ns>(), idle.queue.empty_ns);
    assert!(samples.iter().all(|sample| sample.mean_depth.is_finite()));
}

#[test]
fn steps_of_two_windows_do_not_follow_each_other() {
    let trace = without(windows(1_000 * MS), &[(30 * MS, 1_030 * MS)]);
    let table = step_table(&TraceIndex::new(&trace), &Scope::whole(), &StepOptions::default());
    let group = table.groups.iter().find(|group| group.name.ends_with("decode_step")).unwrap();
    let periods: Vec<_> = group.steps.iter().map(|step| step.period_ns.map(Ns::get)).collect();
    assert_eq!(periods, [Some(10 * MS), Some(10 * MS), None, Some(10 * MS), Some(10 * MS), None]);
    // Each window warms up by itself: halves are those of windows.
    assert_eq!(group.half_steps, 2);
}

#[test]
fn a_range_around_windows_spans_what_was_recorded() {
    let mut sample = windows(1_000 * MS);
    sample.range("all", 0, 1_060 * MS);
    let trace = without(sample, &[(30 * MS, 1_030 * MS)]);
    let index = TraceIndex::new(&trace);
    let rows = range_table(&index, &Scope::whole());
    let row = rows.iter().find(|row| row.name == "all").unwrap();
    assert_eq!((row.cpu_ns, row.gpu_span_ns), (Ns(1_060 * MS), Some(Ns(57 * MS))));
    let idle = idle_table(&index, &Scope::whole());
    let by_range = idle.by_range.iter().find(|row| row.name == "all").unwrap();
    assert_eq!((Some(by_range.span_ns), Some(by_range.idle_ns)), (row.gpu_span_ns, row.gpu_idle_ns));
    // As a scope it is as long as what was recorded inside.
    let scope = Scope::resolve(&index, &ScopeSpec { range: Some("all".to_owned()), ..ScopeSpec::default() }).unwrap();
    assert_eq!(scope.wall(&index), Ns(60 * MS));
    // A window of time that lies between them holds nothing.
    let between = ScopeSpec { time: Some((Ns(100 * MS), Ns(200 * MS))), ..ScopeSpec::default() };
    assert_eq!(Scope::resolve(&index, &between).unwrap().wall(&index), Ns(0));
}

#[test]
fn no_experiment_wins_time_that_was_not_recorded() {
    let trace = without(windows(1_000 * MS), &[(30 * MS, 1_030 * MS)]);
    let triage = triage(&TraceIndex::new(&trace), &Scope::whole(), &TriageOptions::default());
    let most = triage.smells.iter().filter_map(|smell| smell.ceiling).map(|ceiling| ceiling.win_ns).max();
    assert!(most.is_none_or(|most| most <= triage.totals.gpu_idle_ns.unwrap() + triage.totals.gpu_busy_ns.unwrap()), "{most:?}");
    assert!(triage.smells.iter().all(|smell| smell.share_fraction.is_none_or(|share| share <= 1.0)));
}

/// One piece of work: window, stream, start and length in it, how long before its start it is launched.
type Drawn = (u8, u8, i64, i64, i64);

fn drawn(list: &[Drawn], begins: &[i64]) -> Sample {
    let mut sample = Sample::new();
    // What bounds the windows, so that both traces have the same.
    for &begin in begins {
        sample.op("edge", begin, 0);
        sample.op("edge", begin + 200, 0);
    }
    for &(window, stream, start, dur, ahead) in list {
        let start = begins[window as usize] + start;
        sample.on_device(0, i64::from(stream));
        sample.launch("cudaLaunchKernel", start - ahead, 2).kernel("gemm", start, dur);
    }
    sample
}

proptest! {
    #[test]
    fn windows_apart_have_the_figures_of_windows_in_a_row(
        list in proptest::collection::vec((0_u8..3, 0_u8..2, 40_i64..120, 0_i64..80, 2_i64..40), 1..24),
        apart in proptest::collection::vec(1_i64..500, 2)
    ) {
        let begins = [0, 200 + apart[0], 400 + apart[0] + apart[1]];
        let holes = [(200, begins[1]), (begins[1] + 200, begins[2])];
        let trace = without(drawn(&list, &begins), &holes);
        let joined = drawn(&list, &[0, 200, 400]).finish();
        let (index, joined_index) = (TraceIndex::new(&trace), TraceIndex::new(&joined));
        let (found, expected) = (totals(&index, &Scope::whole()), totals(&joined_index, &Scope::whole()));
        prop_assert_eq!(found.wall_ns, expected.wall_ns);
        prop_assert_eq!(&found.devices, &expected.devices);
        let (idle, expected) = (idle_table(&index, &Scope::whole()), idle_table(&joined_index, &Scope::whole()));
        prop_assert_eq!((idle.idle_ns, idle.span_ns), (expected.idle_ns, expected.span_ns));
        prop_assert_eq!(idle.causes.iter().map(|row| row.idle_ns).sum::<Ns>(), idle.idle_ns.unwrap_or_default());
        prop_assert_eq!(&idle.queue, &expected.queue);
        let unobserved = trace.unobserved.of_rank(0);
        for piece in idle_pieces(&index, &Scope::whole()) {
            prop_assert_eq!(unobserved.time_within(Interval { start: piece.start, end: piece.end }), Ns(0));
        }
        let (pace, expected) = (Pace::of(&index, &Scope::whole()), Pace::of(&joined_index, &Scope::whole()));
        prop_assert_eq!((pace.starved_ns(), pace.in_call_ns()), (expected.starved_ns(), expected.in_call_ns()));
        let sum = |pace: &Pace| pace.devices.iter().map(|device| pace.idle(device).map(Interval::len).sum::<Ns>()).sum::<Ns>();
        prop_assert_eq!(sum(&pace), sum(&expected));
    }
}
