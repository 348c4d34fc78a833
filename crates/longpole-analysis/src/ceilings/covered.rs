//! Sets of time that say quickly what of them lies in an interval.

use longpole_trace::{Interval, IntervalSet, Ns};

/// A set that says quickly how much of it lies in an interval.
pub(super) struct Covered {
    pub(super) set: IntervalSet,
    /// Total length of the intervals before each.
    before: Vec<Ns>,
}

impl Covered {
    pub(super) fn of(set: IntervalSet) -> Self {
        let mut before = Vec::with_capacity(set.intervals().len());
        let mut sum = Ns::ZERO;
        for interval in set.intervals() {
            before.push(sum);
            sum += interval.len();
        }
        Self { set, before }
    }

    /// The interval that holds a time.
    pub(super) fn around(&self, at: Ns) -> Option<Interval> {
        let after = self.set.intervals().partition_point(|interval| interval.start <= at);
        self.set.intervals()[..after].last().copied().filter(|interval| at < interval.end)
    }

    fn until(&self, at: Ns) -> Ns {
        let after = self.set.intervals().partition_point(|interval| interval.start < at);
        after.checked_sub(1).map_or(Ns::ZERO, |last| {
            let interval = self.set.intervals()[last];
            self.before[last] + (at.min(interval.end) - interval.start)
        })
    }

    pub(super) fn inside(&self, interval: Interval) -> Ns {
        self.until(interval.end) - self.until(interval.start)
    }
}

/// The part of a set inside another of few intervals: the time this takes grows with those and with what is found.
pub(super) fn clipped(set: &IntervalSet, to: &IntervalSet) -> IntervalSet {
    let all = set.intervals();
    let mut found = Vec::new();
    for window in to.intervals() {
        let first = all.partition_point(|interval| interval.end <= window.start);
        let inside = all[first..].iter().take_while(|interval| interval.start < window.end);
        found.extend(inside.map(|part| Interval { start: part.start.max(window.start), end: part.end.min(window.end) }));
    }
    IntervalSet::from_unsorted(found)
}
