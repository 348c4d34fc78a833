use proptest::prelude::*;

use super::*;

const RULES: RunRules = RunRules::BENCHMARK;

/// Times around `middle` that vary by about a tenth of a per cent.
fn times(middle: i64, seed: usize) -> Vec<i64> {
    (0..40).map(|at| middle + middle * ((at * 29 + seed) % 40) as i64 / 40_000).collect()
}

fn verdict(before: &[i64], after: &[i64]) -> Verdict {
    compare_runs(&Runs::of_times(before), &Runs::of_times(after), false, &RULES).unwrap().verdict
}

fn rounds(middles: &[i64]) -> Runs {
    Runs(middles.iter().enumerate().flat_map(|(at, &middle)| Runs::of_times(&times(middle, at)).0).collect())
}

#[test]
fn a_change_beyond_the_floor_is_found_and_one_below_is_none() {
    let before = times(10_000_000, 0);
    for (after, expected) in [
        (times(10_300_000, 3), Verdict::Slower),
        (times(9_700_000, 3), Verdict::Faster),
        (times(10_050_000, 3), Verdict::Same),
        (times(10_000_000, 3), Verdict::Same),
    ] {
        assert_eq!(verdict(&before, &after), expected);
    }
    let result = compare_runs(&Runs::of_times(&before), &Runs::of_times(&times(10_300_000, 3)), false, &RULES).unwrap();
    let (low, high) = result.interval.unwrap();
    assert!(low < 1.03 && 1.03 < high && high - low < 0.005, "{low} {high}");
    // One process a side does not show what processes differ by, and a verdict needs the whole interval of the builds.
    let (low, high) = (low / 1.015, high * 1.015);
    assert!(result.unseen == RULES.floor && result.interval_of_builds() == Some((low, high)) && low > 1.0, "{low} {high}");
    // The floor and half the interval, or a little more where the interval is not even.
    let effect = result.smallest_effect.unwrap();
    assert!((0.0151..0.018).contains(&effect) && result.smallest_decrease().unwrap() < effect, "{effect}");
}

#[test]
fn a_few_stalls_decide_nothing() {
    let before = times(10_000_000, 0);
    let mut stalled = times(10_000_000, 3);
    for at in [3, 4, 5, 20, 31] {
        stalled[at] *= 4;
    }
    assert_eq!(verdict(&before, &stalled), Verdict::Same);
}

#[test]
fn few_samples_and_odd_times_have_no_verdict() {
    let result = compare_runs(&Runs::of_times(&[100; 4]), &Runs::of_times(&[50; 40]), false, &RULES).unwrap();
    assert_eq!((result.verdict, result.doubt, result.interval), (Verdict::Ambiguous, Some(Doubt::TooFew), None));
    assert!((result.ratio.unwrap() - 0.5).abs() < 1e-12);
    let result = compare_runs(&Runs::of_times(&[100; 9]), &Runs::of_times(&[0; 9]), false, &RULES).unwrap();
    assert_eq!((result.verdict, result.doubt, result.ratio), (Verdict::Ambiguous, Some(Doubt::NotATime), None));
    assert!(compare_runs(&Runs::default(), &Runs::of_times(&[1]), false, &RULES).is_none());
    assert_eq!(verdict(&[100, 900], &[100, 900]), Verdict::Same, "the same numbers are the same");
    let wild: Vec<i64> = (0..12).map(|at| 1000 << (at * 5 % 12)).collect();
    assert_eq!(verdict(&wild, &times(60_000, 0)), Verdict::Ambiguous);
}

#[test]
fn rounds_cancel_what_meets_both_builds() {
    // The machine gets 4 % slower while it is measured; every round it does so for both.
    let drift = [10_000_000, 10_100_000, 10_200_000, 10_300_000, 10_400_000];
    let slower = drift.map(|middle| middle + middle / 50);
    let (before, after) = (rounds(&drift), rounds(&slower));
    let paired = compare_runs(&before, &after, true, &RULES).unwrap();
    assert_eq!((paired.verdict, paired.rounds, paired.before.processes), (Verdict::Slower, 5, 5));
    assert_eq!((paired.unseen, paired.interval_of_builds()), (0.0, paired.interval));
    let apart = compare_runs(&before, &after, false, &RULES).unwrap();
    assert_eq!((apart.verdict, apart.rounds), (Verdict::Ambiguous, 0));
    assert!(paired.smallest_effect.unwrap() < 0.5 * apart.smallest_effect.unwrap());
}

#[test]
fn many_processes_of_one_side_say_how_far_a_lone_one_may_be_off() {
    let lone = rounds(&[10_000_000]);
    let near = rounds(&[10_200_000, 10_200_500, 10_199_500, 10_200_100]);
    let far = rounds(&[10_000_000, 10_400_000, 10_100_000, 10_300_000]);
    let verdict = |after: &Runs| compare_runs(&lone, after, false, &RULES).unwrap().verdict;
    assert_eq!(verdict(&near), Verdict::Slower);
    assert_eq!(verdict(&far), Verdict::Ambiguous);
}

#[test]
fn throttled_samples_count_unless_told_otherwise_and_one_sided_ones_withhold_the_verdict() {
    let clean = Runs::of_times(&times(10_000_000, 0));
    let mut held = Runs::of_times(&times(10_000_000, 3));
    for sample in &mut held.0[0][5..20] {
        sample.time_ps += sample.time_ps / 10;
        sample.throttled = true;
    }
    let counted = compare_runs(&clean, &held, false, &RULES).unwrap();
    assert_eq!((counted.verdict, counted.doubt), (Verdict::Ambiguous, Some(Doubt::Throttled)));
    assert_eq!((counted.after.throttled, counted.after.samples), (15, 40));
    let excluded = compare_runs(&clean, &held, false, &RunRules { exclude_throttled: true, ..RULES }).unwrap();
    assert_eq!((excluded.verdict, excluded.after.throttled, excluded.after.samples), (Verdict::Same, 15, 25));
    let both = compare_runs(&held, &Runs(vec![held.0[0].iter().rev().copied().collect()]), false, &RULES).unwrap();
    assert_ne!(both.doubt, Some(Doubt::Throttled), "both sides alike are compared");
}

#[test]
fn a_verdict_is_the_same_when_asked_for_again() {
    let (before, after) = (Runs::of_times(&times(10_000_000, 0)), Runs::of_times(&times(10_110_000, 3)));
    let ask = || compare_runs(&before, &after, false, &RULES).unwrap();
    assert_eq!(ask(), ask());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_times_panic(
        a in prop::collection::vec(prop::collection::vec(any::<i64>(), 0..12), 0..5),
        b in prop::collection::vec(prop::collection::vec(1..i64::MAX, 0..12), 0..5),
        interleaved: bool,
    ) {
        let runs = |runs: Vec<Vec<i64>>| Runs(runs.iter().flat_map(|run| Runs::of_times(run).0).collect());
        let (a, b) = (runs(a), runs(b));
        let _ = compare_runs(&a, &b, interleaved, &RULES);
        let _ = compare_runs(&b, &a, interleaved, &RULES);
        if let Some(same) = compare_runs(&b, &b, interleaved, &RULES) {
            prop_assert_eq!(same.verdict, Verdict::Same);
        }
    }
}
