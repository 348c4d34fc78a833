use longpole_stats::Verdict;
use longpole_trace::{Ns, Trace};

use super::*;
use crate::sample::Sample;
use crate::scope::Scope;
use crate::steps::{StepOptions, step_table};
use crate::triage::{TriageOptions, triage};
use crate::{TraceIndex, idle::IdleCause};

/// Steps under one marker: a kernel each of the names, of the durations, one after the other, with a pause before each step.
fn steps(marker: &str, kernels: &[(&str, i64)], lengths: &[i64], pause: i64) -> Trace {
    let mut sample = Sample::new();
    let mut at = 1_000;
    for &more in lengths {
        let inside: i64 = kernels.iter().map(|(_, dur)| dur + more).sum();
        sample.range(marker, at, 100 * kernels.len() as i64);
        for (number, &(name, dur)) in kernels.iter().enumerate() {
            let launched = at + 100 * number as i64;
            let before: i64 = kernels[..number].iter().map(|(_, dur)| dur + more).sum();
            sample.launch("cudaLaunchKernel", launched, 50).kernel(name, at + 5_000 + before, dur + more);
        }
        at += 5_000 + inside + pause;
    }
    sample.finish()
}

fn compared(before: &Trace, after: &Trace) -> Diff {
    let (a, b) = (TraceIndex::new(before), TraceIndex::new(after));
    let scope = Scope::whole();
    let tables =
        |index: &TraceIndex<'_>| (step_table(index, &scope, &StepOptions::default()), triage(index, &scope, &TriageOptions::default()));
    let ((steps_a, triage_a), (steps_b, triage_b)) = (tables(&a), tables(&b));
    diff(
        &DiffSide { index: &a, scope: &scope, steps: &steps_a, triage: &triage_a, is_cut: false },
        &DiffSide { index: &b, scope: &scope, steps: &steps_b, triage: &triage_b, is_cut: false },
    )
}

fn row<'d>(diff: &'d Diff, kind: DiffKind, key: &str) -> &'d DiffRow {
    diff.rows.iter().find(|row| row.kind == kind && row.key == key).unwrap_or_else(|| panic!("no {key} in {:?}", diff.rows))
}

fn verdict(row: &DiffRow) -> Option<Verdict> {
    row.comparison.map(|comparison| comparison.verdict)
}

const EVEN: [i64; 6] = [0, 10, 0, 10, 0, 10];

#[test]
fn kernels_of_steps_get_verdicts_of_their_own() {
    let before = steps("decode", &[("gemm", 10_000), ("norm", 20_000), ("old", 3_000)], &EVEN, 1_000);
    let after = steps("decode", &[("gemm", 10_000), ("norm", 12_000), ("fresh", 2_000)], &EVEN, 1_000);
    let diff = compared(&before, &after);
    let pair = &diff.pairs[0];
    assert_eq!((pair.matched_by, pair.steps, pair.verdict), (GroupsMatchedBy::Name, (6, 6), Verdict::Faster));
    let (gemm, norm) = (row(&diff, DiffKind::Kernel, "gemm"), row(&diff, DiffKind::Kernel, "norm"));
    assert_eq!((verdict(gemm), verdict(norm)), (Some(Verdict::Same), Some(Verdict::Faster)));
    assert_eq!((norm.before_ns, norm.after_ns, norm.delta_ns), (Some(Ns(20_000)), Some(Ns(12_000)), Ns(-8_000)));
    let (old, fresh) = (row(&diff, DiffKind::Kernel, "old"), row(&diff, DiffKind::Kernel, "fresh"));
    assert_eq!((old.presence(), old.after_ns, verdict(old)), ("gone", None, None));
    assert_eq!((fresh.presence(), fresh.before_ns, fresh.delta_ns), ("new", None, Ns(2_000)));
    // The largest change comes first.
    let kernels: Vec<&str> = diff.rows.iter().filter(|row| row.kind == DiffKind::Kernel).map(|row| row.key.as_str()).collect();
    assert_eq!(kernels, ["norm", "old", "fresh", "gemm"]);
    let busy = row(&diff, DiffKind::Step, "busy");
    assert_eq!((busy.before_ns, busy.after_ns), (Some(Ns(33_000)), Some(Ns(24_000))));
}

#[test]
fn one_step_of_each_decides_nothing() {
    let diff = compared(&steps("prefill", &[("a", 10_000)], &[0], 0), &steps("prefill", &[("a", 5_000)], &[0], 0));
    assert_eq!(diff.pairs[0].verdict, Verdict::Ambiguous);
    let changed: Vec<_> = diff.rows.iter().filter(|row| row.delta_ns != Ns::ZERO).map(verdict).collect();
    assert!(!changed.is_empty() && changed.iter().all(|verdict| *verdict == Some(Verdict::Ambiguous)), "{:?}", diff.rows);
}

#[test]
fn a_trace_is_the_same_as_itself() {
    let trace = steps("decode", &[("gemm", 10_000), ("norm", 20_000)], &[0, 500, 3_000, 90, 0, 7], 1_000);
    let diff = compared(&trace, &trace);
    assert!(diff.settings.is_empty() && diff.only_before.is_empty() && diff.only_after.is_empty());
    assert!(diff.rows.iter().all(|row| verdict(row) == Some(Verdict::Same) && row.delta_ns == Ns::ZERO), "{:?}", diff.rows);
}

#[test]
fn waiting_for_the_host_takes_more_to_decide() {
    // Device work is equal. The pause between steps, which the host causes, is a third shorter.
    let kernels = [("gemm", 10_000), ("norm", 20_000)];
    let (before, after) = (steps("decode", &kernels, &EVEN, 300_000), steps("decode", &kernels, &EVEN, 200_000));
    let diff = compared(&before, &after);
    let pair = &diff.pairs[0];
    assert!(pair.host_share.0 > 0.8, "{pair:?}");
    assert_eq!((pair.step, pair.verdict), (StepFigure::Period, Verdict::Ambiguous));
    assert_eq!(verdict(row(&diff, DiffKind::Step, "busy")), Some(Verdict::Same));
    let waits = row(&diff, DiffKind::IdleCause, IdleCause::OutsideOperators.code());
    assert_eq!(verdict(waits), Some(Verdict::Ambiguous), "{waits:?}");
    // A tenth of it is beyond what a second recording of the same does.
    let diff = compared(&before, &steps("decode", &kernels, &EVEN, 3_000));
    assert_eq!(diff.pairs[0].verdict, Verdict::Faster);
}

#[test]
fn what_suspects_could_win_is_of_a_step_where_the_traces_have_other_numbers_of_them() {
    let of = |steps_in_it: usize, name: &str| steps(name, &[("gemm", 10_000)], &vec![0; steps_in_it], 300_000);
    let win = |diff: &Diff, after: bool| {
        // What the host could win is between steps, of which there is one less than steps.
        let is_won =
            |change: &SuspectChange| [change.before, change.after].iter().all(|share| share.is_some_and(|s| s.ceiling_ns.is_some()));
        let both = |change: &&SuspectChange| change.code != "host_bound" && is_won(change);
        let change = diff.suspects.iter().find(both).unwrap_or_else(|| panic!("{:?}", diff.suspects));
        let share = if after { change.after } else { change.before }.expect("in both");
        (share.ceiling_ns.expect("a time").get(), share.ceiling_per_step_ns.map(Ns::get))
    };
    let diff = compared(&of(24, "decode"), &of(72, "decode"));
    assert_eq!(diff.ceilings, CeilingsOf::Step(24, 72));
    for (after, steps) in [(false, 24), (true, 72)] {
        let (whole, of_step) = win(&diff, after);
        assert_eq!(of_step, Some(whole / steps));
    }
    let (before, after) = (win(&diff, false), win(&diff, true));
    assert_eq!((after.0, after.1), (before.0 * 3, before.1));
    // As many steps: whole traces will do. Without steps of both nobody knows.
    let diff = compared(&of(24, "decode"), &of(24, "decode"));
    assert_eq!((diff.ceilings, win(&diff, true).1), (CeilingsOf::EqualTraces, None));
    let other = steps("other", &[("x", 1_000), ("y", 2_000)], &EVEN, 300_000);
    assert_eq!(compared(&of(24, "decode"), &other).ceilings, CeilingsOf::WholeTraces);
}

#[test]
fn without_steps_totals_stand_side_by_side() {
    let mut sample = Sample::new();
    sample.launch("cudaLaunchKernel", 0, 10).kernel("alone", 100, 5_000);
    let single = sample.finish();
    let diff = compared(&single, &steps("decode", &[("gemm", 10_000)], &EVEN, 1_000));
    assert!(diff.pairs.is_empty());
    assert_eq!(row(&diff, DiffKind::Total, "gpu_busy").before_ns, Some(Ns(5_000)));
    assert_eq!(row(&diff, DiffKind::Kernel, "alone").presence(), "gone");
    assert!(diff.rows.iter().all(|row| row.per == Per::Trace && matches!(verdict(row), None | Some(Verdict::Ambiguous))));
}

#[test]
fn groups_of_other_names_are_paired_by_their_kernels() {
    let kernels = [("a", 1_000), ("b", 2_000), ("c", 3_000)];
    let diff = compared(&steps("old name", &kernels, &EVEN, 500), &steps("new name", &kernels, &EVEN, 500));
    assert_eq!(diff.pairs.len(), 1);
    assert_eq!(diff.pairs[0].matched_by, GroupsMatchedBy::Kernels);
    let other = [("x", 1_000), ("y", 2_000), ("z", 3_000)];
    let diff = compared(&steps("old name", &kernels, &EVEN, 500), &steps("new name", &other, &EVEN, 500));
    assert!(diff.pairs.is_empty());
    assert_eq!((diff.only_before, diff.only_after), (vec!["old name".to_owned()], vec!["new name".to_owned()]));
}

#[test]
fn another_device_and_another_recording_are_said() {
    let named = |name: &str, shapes: bool| {
        let mut trace = steps("decode", &[("gemm", 10_000)], &EVEN, 500);
        trace.devices[0].properties.name = Some(name.to_owned());
        trace.recorded.shapes = shapes;
        trace
    };
    let diff = compared(&named("H200", false), &named("H100", true));
    let what: Vec<&str> = diff.settings.iter().map(|change| change.what).collect();
    assert_eq!(what, ["device", "recorded"]);
    assert_eq!((diff.settings[0].before.as_str(), diff.settings[0].after.as_str()), ("H200", "H100"));
}

#[test]
fn what_a_trace_does_not_hold_has_not_vanished() {
    let mut sample = Sample::new();
    sample.op("aten::mm", 0, 500);
    let host_only = sample.finish();
    let diff = compared(&steps("decode", &[("gemm", 10_000)], &EVEN, 300_000), &host_only);
    assert_eq!(diff.settings[0].what, "device activity");
    assert!(diff.rows.iter().all(|row| row.key == "wall"), "{:?}", diff.rows);
    assert!(!diff.suspects.is_empty() && diff.suspects.iter().all(|change| change.judged == (true, false)), "{:?}", diff.suspects);
}
