//! Ceilings where kernels of one stream overlap, since each starts early and waits for the one ahead.

use longpole_trace::{Ns, Trace};
use proptest::prelude::*;

use super::*;
use crate::sample::Sample;
use crate::turns::Turns;

/// Kernels as (owner, stream, start, end).
fn trace_of(kernels: &[(u32, i64, i64, i64)]) -> (Trace, Vec<u32>) {
    let mut sample = Sample::new();
    for &(_, stream, start, end) in kernels {
        sample.on_device(0, stream);
        sample.orphan("k", start, end - start);
    }
    (sample.finish(), kernels.iter().map(|&(owner, ..)| owner).collect())
}

/// What each owner has to itself, and each kernel.
fn won(kernels: &[(u32, i64, i64, i64)], owners: usize) -> (Vec<i64>, Vec<i64>) {
    let (trace, owner) = trace_of(kernels);
    let Alone { sets, of_activity } = alone::alone(&trace, &Turns::of(&trace), &owner, owners);
    let total = |time: &Time| time.iter().map(|(_, set)| set.total().get()).sum();
    (sets.iter().map(total).collect(), of_activity.iter().map(|part| part.get()).collect())
}

#[test]
fn in_a_chain_of_dependent_launches_each_kernel_wins_what_it_adds() {
    // Each starts 8 before the one ahead ends.
    let chain = [(0, 7, 0, 20), (1, 7, 12, 32), (0, 7, 24, 44), (1, 7, 36, 56)];
    assert_eq!(won(&chain, 2), (vec![32, 24], vec![20, 12, 12, 12]));
    // All of it goes with both.
    assert_eq!(won(&chain.map(|(_, stream, start, end)| (0, stream, start, end)), 1).0, [56]);
}

#[test]
fn on_two_streams_what_truly_runs_bounds_the_win() {
    assert_eq!(won(&[(0, 7, 0, 20), (1, 8, 12, 32)], 2).0, [12, 12]);
    // The second of stream 7 waits until 20; from 15 to 18 stream 8 runs.
    assert_eq!(won(&[(0, 7, 0, 20), (1, 7, 10, 30), (2, 8, 15, 18)], 3), (vec![17, 10, 0], vec![17, 10, 0]));
}

#[test]
fn a_kernel_that_overlaps_two_successors_keeps_its_time() {
    assert_eq!(won(&[(0, 7, 0, 30), (1, 7, 10, 40), (2, 7, 20, 55)], 3).0, [30, 10, 15]);
    // One that ends inside another adds nothing, and takes nothing away: it cannot have been waited for.
    assert_eq!(won(&[(0, 7, 0, 30), (1, 7, 10, 25), (2, 7, 20, 55)], 3).0, [30, 0, 25]);
    // Of equal starts the one that ends first is ahead, however they are recorded.
    assert_eq!(won(&[(0, 7, 5, 30), (1, 7, 5, 12)], 2).0, [18, 7]);
}

#[test]
fn work_that_does_not_overlap_on_its_stream_is_left_alone() {
    let (trace, _) = trace_of(&[(0, 7, 0, 20), (1, 8, 12, 32), (0, 7, 20, 25), (0, 7, 25, 25)]);
    assert!(Turns::of(&trace).are_whole());
    let (trace, _) = trace_of(&[(0, 7, 0, 20), (1, 7, 19, 32)]);
    assert!(!Turns::of(&trace).are_whole());
}

const US: i64 = 1_000;

/// Three steps of a product of 10 us and two elementwise kernels of 9 and 14 us, each started 4 us before the one ahead ended.
fn overlapped_steps() -> Trace {
    let mut sample = Sample::new();
    for step in 0..3 {
        let at = step * 1_000 * US;
        sample.range("decode", at, 50 * US);
        for (number, (name, start, took)) in
            [("gemv", 100, 10), ("elementwise_kernel<neg>", 106, 9), ("elementwise_kernel<add>", 111, 14)].into_iter().enumerate()
        {
            let launch = at + 4 * number as i64 * US;
            sample.launch("cudaLaunchKernel", launch, US).kernel(name, at + start * US, took * US);
        }
    }
    sample.finish()
}

#[test]
fn roles_of_a_step_win_their_rows_and_a_chain_what_is_not_the_shortest() {
    let trace = overlapped_steps();
    let index = TraceIndex::new(&trace);
    let scope = Scope::whole();
    let steps = crate::steps::step_table(&index, &scope, &crate::steps::StepOptions::default());
    let table = ceilings(&index, &scope, &steps, &crate::idle::idle_pieces(&index, &scope), None);
    let group = &steps.groups[0];
    let times: Vec<i64> = group.rows.iter().map(|row| row.ns_per_step.get()).collect();
    assert_eq!(times, [10 * US, 5 * US, 10 * US]);
    let roles: Vec<&CeilingRow> = table.rows.iter().filter(|row| matches!(row.subject, CeilingSubject::Role { .. })).collect();
    for role in &roles {
        let CeilingSubject::Role { rows, .. } = &role.subject else { continue };
        assert_eq!(role.per_step_ns, Some(group.rows[rows[0] as usize].ns_per_step), "{role:?}");
    }
    assert_eq!(CeilingRow::together(&roles), Ns(3 * 25 * US), "all of them, and nothing twice");
    // Of the 15 us after the product one kernel stays, of 5 us at least.
    let chain = table.rows.iter().find(|row| row.kind == CeilingKind::Fused).unwrap();
    assert_eq!((chain.per_step_ns, chain.time_ns()), (Some(Ns(10 * US)), Ns(3 * 15 * US)));
    let all: Vec<&CeilingRow> = roles.into_iter().chain([chain]).collect();
    assert_eq!(CeilingRow::together(&all), Ns(3 * 25 * US));
}

/// A kernel of a stream: when the host launches it, how long it works once it need not wait, how long before the end of the one ahead it starts
/// at most, and whether it starts before that end at all.
type Launch = (i64, i64, i64, bool);

/// Runs kernels of one stream, each of which waits for the end of the one ahead, without those that are gone. What is left works as long as
/// before.
fn run(launches: &[Launch], is_gone: impl Fn(usize) -> bool) -> Vec<(usize, i64, i64)> {
    let (mut start, mut end) = (0, 0);
    let mut found = Vec::new();
    for (at, &(host, work, lead, early)) in launches.iter().enumerate() {
        if is_gone(at) {
            continue;
        }
        let ready = if early { (end - lead).max(start) } else { end };
        start = ready.max(host);
        end = end.max(start) + work;
        found.push((at, start, end));
    }
    found
}

proptest! {
    /// Kernels are launched by a host at given times, some start before the one ahead ends and wait. Without any set of them the last one, which
    /// stays, ends earlier by no more than the set's ceiling; and just by that if all were launched in time.
    #[test]
    fn no_set_of_dependent_kernels_wins_more_than_its_ceiling(
        kernels in prop::collection::vec((0_i64..12, 0_i64..20, 0_i64..40, any::<bool>(), 0_u32..3), 1..30),
        is_ahead in any::<bool>(),
    ) {
        let last = (0, 5, 10, true, 3);
        let kernels: Vec<_> = kernels.into_iter().chain([last]).collect();
        let mut host = 0;
        let launches: Vec<Launch> = kernels
            .iter()
            .map(|&(after, work, lead, early, _)| {
                host += if is_ahead { 0 } else { after };
                (host, work, lead, early)
            })
            .collect();
        let ran = run(&launches, |_| false);
        let recorded: Vec<(u32, i64, i64, i64)> = ran.iter().map(|&(at, start, end)| (kernels[at].4, 7, start, end)).collect();
        let (ceilings, _) = won(&recorded, 4);
        let end = |ran: &[(usize, i64, i64)]| ran.last().map_or(0, |&(_, _, end)| end);
        for set in 1_u32..8 {
            let is_gone = |at: usize| set >> kernels[at].4 & 1 == 1;
            let wins = end(&ran) - end(&run(&launches, is_gone));
            let ceiling: i64 = (0..3).filter(|owner| set >> owner & 1 == 1).map(|owner| ceilings[owner]).sum();
            prop_assert!(wins <= ceiling, "set {} wins {}, its ceiling is {}: {:?}", set, wins, ceiling, ran);
            prop_assert!(!is_ahead || wins == ceiling, "set {} wins {}, its ceiling is {}: {:?}", set, wins, ceiling, ran);
        }
    }
}
