//! Made-up runs: what is found must be what was put in.

mod hostile;
mod run;

use longpole_trace::{Ns, Trace};
use proptest::prelude::*;

use super::*;
use run::{Made, Run};

fn report(trace: &Trace) -> RankReport {
    rank_report(&TraceIndex::new(trace), &Scope::whole())
}

/// Asserts that matched calls are of one step, and returns how many were matched.
fn assert_right(made: &Made, report: &RankReport) -> usize {
    for collective in &report.collectives {
        let entries = &report.entries[collective.entries.clone()];
        let steps: Vec<_> = entries.iter().map(|entry| made.visit(entry.activity).step).collect();
        assert!(steps.windows(2).all(|pair| pair[0] == pair[1]), "steps {steps:?} are one collective");
        let ranks: Vec<_> = entries.iter().map(|entry| entry.rank).collect();
        assert!(ranks.is_sorted() && ranks.windows(2).all(|pair| pair[0] != pair[1]), "{ranks:?}");
    }
    report.entries.len()
}

/// Asserts that every rank waited as long as it did, but for `slack`.
fn assert_waits(made: &Made, report: &RankReport, slack: i64) {
    for collective in &report.collectives {
        assert!(collective.is_split);
        let entries = &report.entries[collective.entries.clone()];
        let last = entries.iter().map(|entry| made.visit(entry.activity).start).max().unwrap();
        for entry in entries {
            let visit = made.visit(entry.activity);
            let wrong = (entry.waiting_ns.get() - (last - visit.start)).abs();
            assert!(wrong <= slack, "rank {} waited {} in step {}, off by {wrong}", visit.rank, last - visit.start, visit.step);
        }
    }
}

#[test]
fn waiting_transfer_and_the_straggler_are_what_they_were() {
    let mut run = Run::new(4, 60);
    run.extra = Some((2, 1, 2, 150_000));
    let made = run.make();
    let found = report(&made.trace);
    assert_eq!((assert_right(&made, &found), found.groups.len(), found.collectives.len()), (240, 1, 60));
    assert_waits(&made, &found, 0);
    let group = &found.groups[0];
    assert_eq!((group.name.as_deref(), group.size, group.matched_by), (Some("group 0"), Some(4), MatchedBy::Time));
    assert_eq!((group.unmatched, group.not_split, group.members.clone()), (0, 0, vec![0, 1, 2, 3]));
    assert_eq!((group.kinds.len(), group.kinds[0].kind, group.kinds[0].bytes), (1, CollectiveKind::AllReduce, Some(2_048)));
    // Start-up is the first step's, waiting the others'.
    let waited = |steps: std::ops::Range<usize>| -> i64 {
        let of_step = |step: usize| made.all.iter().filter(move |visit| visit.step == step);
        steps.map(|step| of_step(step).map(|v| of_step(step).map(|v| v.start).max().unwrap() - v.start).sum::<i64>()).sum()
    };
    assert_eq!((group.start_up_ns, group.waiting_ns), (Ns(waited(0..1)), Ns(waited(1..60))));
    for row in &found.ranks {
        let parts = [row.start_up_ns, row.waiting_ns, row.transfer_ns].map(Option::unwrap).into_iter().sum::<Ns>();
        assert_eq!((Some(parts + row.not_split_ns), row.split), (row.communication_ns, 60));
        let whole = [row.compute_ns, row.exposed_communication_ns, row.exposed_copy_ns, row.idle_ns].map(Option::unwrap);
        assert_eq!(Some(whole.into_iter().sum::<Ns>()), row.span_ns);
        assert_eq!(row.exposed_waiting_ns, Some(row.start_up_ns.unwrap() + row.waiting_ns.unwrap()));
    }
    // Two matrix products more, in each of the 59 steps after the first, seen by three ranks.
    assert!(found.has_straggler && !found.includes_waiting);
    let straggler = &found.stragglers[0];
    assert_eq!((straggler.rank, straggler.times_last, straggler.collectives), (2, 59, 59));
    assert_eq!((straggler.waiting_caused_ns, straggler.explained_ns), (group.waiting_ns, group.waiting_ns));
    let cause = &straggler.causes[0];
    assert_eq!((cause.kind, cause.name.as_str(), cause.kernel.as_deref()), (CauseKind::Operator, "aten::mm", Some("sm90_gemm")));
    assert_eq!((cause.excess_ns, cause.excess_calls), (Ns(59 * 3 * 300_000), 59 * 3 * 2));
    assert_eq!(straggler.causes.iter().map(|cause| cause.excess_ns).sum::<Ns>(), straggler.explained_ns, "causes add up");
    assert_eq!(found.start_ups[0].causes.iter().map(|cause| cause.excess_ns).sum::<Ns>(), group.start_up_ns);
}

#[test]
fn a_host_that_was_away_is_the_cause_of_one_late_step() {
    let mut run = Run::new(2, 20);
    run.pause = Some((1, 9, 5_000_000));
    let made = run.make();
    let found = report(&made.trace);
    let straggler = &found.stragglers[0];
    assert_eq!(straggler.rank, 1);
    assert_eq!(straggler.causes[0].kind, CauseKind::Idle);
    let idle = straggler.causes[0].excess_ns;
    assert!((4_900_000..=5_100_000).contains(&idle.get()), "{idle}");
    assert_eq!(straggler.host[0].name.as_deref(), Some("aten::item"));
    assert_eq!(straggler.host.iter().map(|host| host.excess_ns).sum::<Ns>(), idle, "host time adds up to the idle excess");
}

#[test]
fn a_recording_that_began_later_is_start_up() {
    let mut run = Run::new(2, 12);
    run.pause = Some((1, 0, 80_000_000));
    let made = run.make();
    let found = report(&made.trace);
    let start_up = &found.start_ups[0];
    assert_eq!((start_up.rank, start_up.group, start_up.collective), (1, 0, 0));
    assert!(start_up.skew_ns > Ns(79_000_000), "{start_up:?}");
    assert_eq!((start_up.causes[0].kind, start_up.host[0].name.as_deref()), (CauseKind::Idle, Some("aten::item")));
    assert!(found.stragglers.iter().all(|straggler| straggler.waiting_caused_ns < Ns(1_000_000)), "start-up is in no later sum");
}

#[test]
fn clocks_that_disagree_are_found_and_corrected() {
    let mut run = Run::new(3, 80);
    run.ahead = vec![0, 3_000_000, -250_000];
    let made = run.make();
    let found = report(&made.trace);
    assert_eq!(assert_right(&made, &found), 240);
    assert_waits(&made, &found, 3_000);
    for (clock, truth) in found.clocks.iter().zip([0, 3_000_000, -250_000]) {
        assert_eq!(clock.reference, Some(0));
        assert!((clock.ahead_ns.unwrap().get() - truth).abs() < 2_000, "{clock:?}");
        assert_eq!(Some(clock.correction_ns), clock.ahead_ns);
        assert!(clock.spread_ns.unwrap() < Ns(2_000));
    }
    // What may be chance is reported and not corrected.
    run.ahead = vec![0, 4_000, 0];
    let found = report(&run.make().trace);
    assert!((found.clocks[1].ahead_ns.unwrap().get() - 4_000).abs() < 2_000);
    assert_eq!(found.clocks[1].correction_ns, Ns::ZERO);
}

#[test]
fn a_clock_that_drifts_is_reported() {
    let mut run = Run::new(2, 400);
    run.drift = vec![0, 60_000];
    let found = report(&run.make().trace);
    let drift = found.clocks[1].drift_ns.unwrap().get();
    assert!((4_000..12_000).contains(&drift), "{drift}");
}

#[test]
fn recordings_that_begin_and_end_apart_are_aligned() {
    let mut run = Run::new(3, 100);
    run.recorded = vec![0..90, 13..100, 5..40];
    for ahead in [vec![0, 0, 0], vec![0, 7_000_000, -90_000_000]] {
        run.ahead = ahead;
        let made = run.make();
        let found = report(&made.trace);
        // Steps 13 to 40 are on all three, 5 to 13 and 40 to 90 on two.
        assert_eq!(assert_right(&made, &found), 27 * 3 + 8 * 2 + 50 * 2);
        assert_eq!(found.groups[0].unmatched, 15);
    }
}

#[test]
fn lost_collectives_leave_the_others_matched() {
    let mut run = Run::new(2, 100);
    run.lost = vec![(0, 3), (0, 4), (0, 50), (1, 20), (1, 51), (1, 52), (1, 53), (1, 99)];
    let made = run.make();
    let found = report(&made.trace);
    assert_eq!(assert_right(&made, &found), 2 * 92);
    assert_eq!(found.groups[0].unmatched, 8);
}

#[test]
fn calls_that_follow_closely_are_not_taken_for_their_neighbours() {
    let mut run = Run::new(2, 300);
    run.hurry = 10;
    for ahead in [0, 60_000, -130_000, 2_000_000] {
        run.ahead = vec![0, ahead];
        let made = run.make();
        let found = report(&made.trace);
        assert_eq!((assert_right(&made, &found), found.groups[0].matched_by), (600, MatchedBy::Time), "{ahead}");
    }
}

#[test]
fn numbers_decide_where_there_are_some() {
    let mut run = Run::new(2, 50);
    run.is_numbered = true;
    run.is_regular = true;
    run.recorded = vec![0..50, 3..50];
    run.ahead = vec![0, 3 * 300_000];
    let made = run.make();
    let found = report(&made.trace);
    assert_eq!((assert_right(&made, &found), found.groups[0].matched_by), (94, MatchedBy::Sequence));
}

#[test]
fn unnamed_communicators_are_told_apart_by_their_ends() {
    let mut run = Run::new(6, 40);
    run.is_named = false;
    run.groups = vec![vec![0, 3], vec![1, 4, 5]];
    let made = run.make();
    let found = report(&made.trace);
    let mut members: Vec<_> = found.groups.iter().map(|group| group.members.clone()).collect();
    members.sort();
    assert_eq!(members, [vec![0, 3], vec![1, 4, 5]]);
    assert_eq!(assert_right(&made, &found), 200);
    assert_waits(&made, &found, 0);
    assert!(found.groups.iter().all(|group| group.name.is_none() && group.size.is_none()));
}

#[test]
fn ranks_of_several_groups_share_one_clock() {
    let mut run = Run::new(4, 40);
    run.groups = vec![vec![0, 1], vec![2, 3], vec![1, 2]];
    run.ahead = vec![0, 1_000_000, 1_400_000, -200_000];
    let found = report(&run.make().trace);
    for (clock, ahead) in found.clocks.iter().zip(&run.ahead) {
        assert_eq!(clock.reference, Some(0));
        assert!((clock.ahead_ns.unwrap().get() - ahead).abs() < 3_000, "{clock:?}");
    }
}

#[test]
fn one_rank_alone_says_that_waiting_is_included() {
    let found = report(&Run::new(1, 5).make().trace);
    assert!(found.includes_waiting && found.groups.is_empty() && !found.has_straggler);
    let row = &found.ranks[0];
    assert_eq!((row.collectives, row.split, row.waiting_ns, row.transfer_ns), (5, 0, None, None));
    assert_eq!(Some(row.not_split_ns), row.communication_ns);
    assert_eq!((found.clocks[0].reference, found.clocks[0].ahead_ns), (None, None));
}

#[test]
fn runs_that_have_nothing_in_common_are_not_split() {
    // The second rank's recording is of another run: nothing ends together.
    let mut run = Run::new(2, 30);
    run.groups = vec![vec![0], vec![1]];
    run.is_named = false;
    assert!(report(&run.make().trace).groups.is_empty());
    let made = run.make();
    let mut named = Run::new(2, 3);
    named.ahead = vec![0, 40_000_000];
    let found = report(&named.make().trace);
    assert_eq!((found.groups[0].matched_by, found.groups[0].not_split, found.groups[0].waiting_ns), (MatchedBy::Order, 3, Ns::ZERO));
    assert_eq!(found.ranks[0].waiting_ns, None, "three collectives tell no clock offset");
    assert_eq!(made.all.len(), 60);
}

#[test]
fn a_scope_restricts_the_ranks() {
    let made = Run::new(3, 10).make();
    let index = TraceIndex::new(&made.trace);
    let spec = crate::scope::ScopeSpec { rank: Some(1), ..Default::default() };
    let found = rank_report(&index, &Scope::resolve(&index, &spec).unwrap());
    assert_eq!(found.ranks.iter().map(|row| row.number).collect::<Vec<_>>(), [1]);
    assert!(found.includes_waiting);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn whatever_was_recorded_is_matched_rightly(
        seed in any::<u64>(),
        ahead in -20_000_000_i64..20_000_000,
        begin in 0_usize..25,
        end in 60_usize..80,
        lost in proptest::collection::vec((0_usize..3, 0_usize..80), 0..6),
        numbered in any::<bool>(),
    ) {
        let mut run = Run::new(3, 80);
        run.seed = seed;
        run.ahead = vec![0, ahead, -ahead / 3];
        run.recorded = vec![0..80, begin..80, 0..end];
        run.lost = lost;
        run.is_numbered = numbered;
        let made = run.make();
        let found = report(&made.trace);
        let matched = assert_right(&made, &found);
        let recorded = |rank: usize, step: usize| run.recorded[rank].contains(&step) && !run.lost.contains(&(rank, step));
        // Only calls that the longest recording has can be matched with it.
        let lengths: Vec<usize> = (0..3).map(|rank| (0..80).filter(|&step| recorded(rank, step)).count()).collect();
        let reference = (0..3).max_by_key(|&rank| (lengths[rank], std::cmp::Reverse(rank))).unwrap();
        let on_several = |step: usize| {
            let ranks = (0..3).filter(|&rank| recorded(rank, step)).count();
            if recorded(reference, step) && ranks > 1 { ranks } else { 0 }
        };
        prop_assert_eq!(matched, (0..80).map(on_several).sum::<usize>());
        // An offset that may be chance is not corrected, so that waiting is wrong by as much.
        let slack = if ahead == 0 || ahead.abs() > 75_000 { 4_000 } else { 50_000 };
        assert_waits(&made, &found, slack);
    }
}
