//! The interval algebra against a version with one bit a nanosecond.

use longpole_trace::{Interval, IntervalSet, Ns};
use proptest::prelude::*;

/// Times in the tests lie in `0..SPAN`.
const SPAN: i64 = 64;

/// Which nanoseconds are covered: a set bit each.
fn bits(intervals: &[Interval]) -> u64 {
    (0..SPAN).filter(|&at| intervals.iter().any(|i| i.start.get() <= at && at < i.end.get())).fold(0, |bits, at| bits | 1 << at)
}

/// Intervals in any order, empty and backward ones among them.
fn any_intervals() -> impl Strategy<Value = Vec<Interval>> {
    let interval = (0..SPAN, -3..20_i64).prop_map(|(start, length)| Interval { start: Ns(start), end: Ns((start + length).min(SPAN)) });
    proptest::collection::vec(interval, 0..12)
}

/// Sorted, none empty, none touching the next.
fn is_normal(set: &IntervalSet) -> bool {
    set.intervals().iter().all(|i| i.start < i.end) && set.intervals().windows(2).all(|pair| pair[0].end < pair[1].start)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn one_set(list in any_intervals()) {
        let want = bits(&list);
        let set = IntervalSet::from_unsorted(list);
        prop_assert!(is_normal(&set));
        prop_assert_eq!(bits(set.intervals()), want);
        prop_assert_eq!(set.total(), Ns(i64::from(want.count_ones())));
        prop_assert_eq!(set.is_empty(), want == 0);
        for at in -1..=SPAN {
            let covered = (0..SPAN).contains(&at) && want >> at & 1 == 1;
            prop_assert_eq!(set.contains(Ns(at)), covered, "at {}", at);
        }
        let first = Ns(i64::from(want.trailing_zeros()));
        let end = Ns(SPAN - i64::from(want.leading_zeros()));
        prop_assert_eq!(set.extent(), (want != 0).then_some(Interval { start: first, end }));
        let gaps = set.gaps();
        prop_assert!(is_normal(&gaps));
        let inside = (0..SPAN).filter(|&at| first.get() <= at && at < end.get()).fold(0_u64, |bits, at| bits | 1 << at);
        prop_assert_eq!(bits(gaps.intervals()), inside & !want);
    }

    #[test]
    fn two_sets(a in any_intervals(), b in any_intervals()) {
        let (in_a, in_b) = (bits(&a), bits(&b));
        let (a, b) = (IntervalSet::from_unsorted(a), IntervalSet::from_unsorted(b));
        for (result, want) in [
            (a.union(&b), in_a | in_b),
            (a.intersection(&b), in_a & in_b),
            (a.difference(&b), in_a & !in_b),
            (b.difference(&a), in_b & !in_a),
        ] {
            prop_assert!(is_normal(&result));
            prop_assert_eq!(bits(result.intervals()), want);
            prop_assert_eq!(result.total(), Ns(i64::from(want.count_ones())));
        }
        prop_assert_eq!(a.total_outside(&b), a.difference(&b).total());
    }

    #[test]
    fn an_interval_from_a_length(start in -50..50_i64, length in -50..50_i64) {
        let interval = Interval::new(Ns(start), Ns(length));
        prop_assert_eq!(interval.len(), Ns(length.max(0)));
        prop_assert_eq!(interval.is_empty(), length <= 0);
    }
}
