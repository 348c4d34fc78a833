use proptest::prelude::*;

use super::*;
use crate::index::TraceIndex;
use crate::sample::Sample;

/// Kernels as (stream, start, duration), each with a launch of its own.
fn kernels(list: &[(i64, i64, i64)]) -> Trace {
    let mut sample = Sample::new();
    for &(stream, start, dur) in list {
        sample.on_device(0, stream);
        sample.launch("cudaLaunchKernel", 0, 1).kernel("k", start, dur);
    }
    sample.finish()
}

fn health(trace: &Trace) -> StreamHealth {
    *TraceIndex::new(trace).stream_health()
}

fn parts(finding: Finding) -> (u64, i64, Option<u32>) {
    (finding.count, finding.largest.get(), finding.example.map(|id| id.0))
}

const NONE: (u64, i64, Option<u32>) = (0, 0, None);

#[test]
fn kernels_of_one_stream_that_overlap_are_counted_with_the_largest() {
    let found = health(&kernels(&[(7, 0, 10), (7, 8, 10), (7, 18, 5), (7, 20, 30), (7, 22, 1)]));
    // 2 ns, then 3 ns with the third; the fifth lies within the fourth.
    assert_eq!(parts(found.overlaps), (3, 3, Some(3)));
    assert_eq!(parts(found.impossible), NONE);
}

#[test]
fn work_that_follows_or_touches_or_has_no_length_does_not_overlap() {
    assert_eq!(health(&kernels(&[(7, 0, 10), (7, 10, 10), (7, 15, 0), (7, 20, 5)])), StreamHealth::default());
    assert_eq!(health(&kernels(&[])), StreamHealth::default());
}

#[test]
fn two_streams_never_overlap() {
    let mut list = vec![(7, 0, 1_000_000)];
    list.extend((0..50).map(|at| (8, 10 + at * 20, 10)));
    assert_eq!(health(&kernels(&list)), StreamHealth::default());
    let mut sample = Sample::new();
    sample.launch("cudaLaunchKernel", 0, 1).kernel("long", 0, 1_000_000);
    sample.on_device(1, 7);
    for at in 0..5 {
        sample.launch("cudaLaunchKernel", 0, 1).kernel("short", 10 + at * 20, 10);
    }
    assert_eq!(health(&sample.finish()), StreamHealth::default(), "streams of two devices with one number");
}

#[test]
fn a_kernel_that_swallows_its_successors_is_impossible() {
    let found = health(&kernels(&[(7, 0, 10_000), (7, 100, 100), (7, 300, 50), (7, 500, 70), (7, 20_000, 10)]));
    assert_eq!(parts(found.impossible), (1, 9_900, Some(0)));
    assert_eq!(parts(found.overlaps), (3, 100, Some(1)));
}

#[test]
fn near_misses_are_possible() {
    let impossible = |list: &[(i64, i64, i64)]| health(&kernels(list)).impossible.count;
    assert_eq!(impossible(&[(7, 0, 10_000), (7, 100, 100), (7, 300, 50)]), 0, "two successors only");
    assert_eq!(impossible(&[(7, 0, 9_999), (7, 100, 100), (7, 300, 50), (7, 500, 70)]), 0, "99 times as long");
    assert_eq!(impossible(&[(7, 0, 10_000), (7, 100, 100), (7, 300, 50), (7, 9_950, 51)]), 0, "the third ends later");
    assert_eq!(impossible(&[(7, 0, 10_000), (7, 0, 100), (7, 300, 50), (7, 500, 70)]), 0, "the first starts with it");
    assert_eq!(impossible(&[(7, 0, 10_000), (7, 100, 0), (7, 300, 0), (7, 500, 0)]), 0, "successors of no length");
    assert_eq!(impossible(&[(7, 0, 10_000), (7, 100, 100), (7, 300, 50), (8, 500, 70)]), 0, "the third is on another stream");
}

#[test]
fn programmatic_dependent_launch_is_not_impossible() {
    // Each kernel starts a little before the one before it ends, and none ends within another.
    let list: Vec<_> = (0..1_000).map(|at| (7, at * 90, 100)).collect();
    let found = health(&kernels(&list));
    assert_eq!((parts(found.overlaps), parts(found.impossible)), ((999, 10, Some(1)), NONE));
    // A long kernel whose dependents start early, wait for it, and end after it.
    let mut list = vec![(7, 0, 1_000_000)];
    list.extend((0..5).map(|at| (7, 900_000 + at, 200_000 + at)));
    assert_eq!(parts(health(&kernels(&list)).impossible), NONE);
}

#[test]
fn branches_of_a_graph_replay_are_not_judged() {
    let replay = |branches: bool| {
        let mut sample = Sample::new();
        if branches {
            let launch = sample.launch("cudaGraphLaunch", 0, 1).kernel("all_reduce", 10, 100_000);
            launch.kernel("a", 20, 10).kernel("b", 40, 10).kernel("c", 60, 10);
        } else {
            sample.launch("cudaLaunchKernel", 0, 1).kernel("all_reduce", 10, 100_000);
            sample.launch("cudaGraphLaunch", 1, 1).kernel("a", 20, 10).kernel("b", 40, 10).kernel("c", 60, 10);
        }
        health(&sample.finish())
    };
    assert_eq!((replay(true).impossible.count, replay(true).overlaps.count), (0, 3));
    assert_eq!((replay(false).impossible.count, replay(false).overlaps.count), (1, 3));
}

#[test]
fn work_from_before_the_window_is_told_from_lost_launches() {
    let mut sample = Sample::new();
    sample.orphan("before", 0, 30);
    sample.launch("cudaLaunchKernel", 10, 5).kernel("k", 100, 10);
    sample.orphan("lost", 200, 20);
    sample.on_device(0, 8);
    sample.orphan("before, on a stream of its own", 5, 1);
    sample.orphan("lost, on a stream of its own", 11, 2);
    let found = health(&sample.finish());
    assert_eq!(parts(found.before_window), (2, 30, Some(0)));
    assert_eq!(parts(found.orphans), (2, 20, Some(2)));
}

#[test]
fn without_any_call_nothing_is_said_to_be_launched_before() {
    let mut sample = Sample::new();
    sample.orphan("k", 0, 30);
    let found = health(&sample.finish());
    assert_eq!((parts(found.before_window), parts(found.orphans)), (NONE, (1, 30, Some(0))));
}

#[test]
fn deep_nesting_and_long_chains_are_quick() {
    let count = 60_000;
    let nested: Vec<_> = (0..count).map(|at| (7, at, 2 * (count - at))).collect();
    let chain: Vec<_> = (0..count).map(|at| (7, at, count)).collect();
    let swallowing: Vec<_> = std::iter::once((7, 0, 100 * count)).chain((0..count).map(|at| (7, 1 + at * 2, 1))).collect();
    let started = std::time::Instant::now();
    assert_eq!(health(&kernels(&nested)).overlaps.count, count as u64 - 1);
    assert_eq!(health(&kernels(&chain)).overlaps.count, count as u64 - 1);
    assert_eq!(parts(health(&kernels(&swallowing)).impossible), (1, 100 * count - 1, Some(0)));
    // Quadratic, each would take seconds at least.
    assert!(started.elapsed().as_millis() < 3_000, "{:?}", started.elapsed());
}

/// The definitions, word by word, for every pair.
fn naive(list: &[(i64, i64, i64)]) -> (u64, i64, Vec<i64>) {
    let mut sorted = list.to_vec();
    sorted.sort_by_key(|&(_, start, _)| start);
    let (mut overlaps, mut largest, mut overruns) = (0, 0, Vec::new());
    for (at, &(stream, start, dur)) in sorted.iter().enumerate() {
        let end = start + dur;
        let earlier_end = sorted[..at].iter().filter(|other| other.0 == stream).map(|other| other.1 + other.2).max();
        let shared = earlier_end.map_or(0, |earlier| earlier.min(end) - start);
        if shared > 0 {
            overlaps += 1;
            largest = largest.max(shared);
        }
        let swallowed: Vec<_> = sorted.iter().filter(|o| o.0 == stream && o.2 > 0 && o.1 > start && o.1 + o.2 <= end).collect();
        let longest = swallowed.iter().map(|o| o.2).max().unwrap_or(0);
        if swallowed.len() >= 3 && dur >= 100 * longest {
            overruns.push(end - swallowed.iter().map(|o| o.1).min().unwrap_or(end));
        }
    }
    (overlaps, largest, overruns)
}

proptest! {
    #[test]
    fn findings_equal_those_of_every_pair(
        list in proptest::collection::vec(
            (7_i64..9, 0_i64..400, prop_oneof![4 => 0_i64..4, 1 => 0_i64..40, 2 => 90_i64..600]), 0..40,
        )
    ) {
        let found = health(&kernels(&list));
        let (overlaps, largest, overruns) = naive(&list);
        prop_assert_eq!((found.overlaps.count, found.overlaps.largest.get()), (overlaps, largest));
        let overrun = overruns.iter().copied().max().unwrap_or(0);
        prop_assert_eq!((found.impossible.count, found.impossible.largest.get()), (overruns.len() as u64, overrun));
        prop_assert_eq!(found.before_window.count + found.orphans.count, 0);
        prop_assert_eq!(found.overlaps.example.map(|id| list[id.index()].2 > 0), (overlaps > 0).then_some(true));
    }
}
