//! Interval algebra: unions, intersections and gaps of half-open time intervals.
//!
//! Everything the tool says about busy, idle and exposed time is built on [`IntervalSet`], so its operations are checked
//! against bit-per-nanosecond versions by property tests (`tests/intervals.rs`).

use crate::ns::Ns;

/// A half-open interval `[start, end)` in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Interval {
    /// First nanosecond inside.
    pub start: Ns,
    /// First nanosecond after.
    pub end: Ns,
}

impl Interval {
    /// The interval from `start` of length `duration`; a negative duration gives an empty interval.
    pub fn new(start: Ns, duration: Ns) -> Self {
        Self { start, end: start + duration.max(Ns::ZERO) }
    }

    /// Its length.
    pub fn len(self) -> Ns {
        (self.end - self.start).max(Ns::ZERO)
    }

    /// True when it holds no time.
    pub fn is_empty(self) -> bool {
        self.end <= self.start
    }
}

/// A union of intervals, kept sorted, disjoint and without neighbours that touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IntervalSet {
    intervals: Vec<Interval>,
}

impl IntervalSet {
    /// The set without time.
    pub const EMPTY: Self = Self { intervals: Vec::new() };

    /// The union of any intervals, in any order. Empty intervals hold no time and vanish.
    pub fn from_unsorted(mut intervals: Vec<Interval>) -> Self {
        intervals.retain(|i| !i.is_empty());
        if !intervals.is_sorted_by_key(|i| i.start) {
            intervals.sort_unstable_by_key(|i| i.start);
        }
        let mut kept = 0;
        for next in 0..intervals.len() {
            let interval = intervals[next];
            if kept > 0 && interval.start <= intervals[kept - 1].end {
                let last = &mut intervals[kept - 1];
                last.end = last.end.max(interval.end);
            } else {
                intervals[kept] = interval;
                kept += 1;
            }
        }
        intervals.truncate(kept);
        Self { intervals }
    }

    /// The disjoint intervals, in order.
    pub fn intervals(&self) -> &[Interval] {
        &self.intervals
    }

    /// Time covered.
    pub fn total(&self) -> Ns {
        self.intervals.iter().map(|i| i.len()).sum()
    }

    /// From the first start to the last end, if there is any time at all.
    pub fn extent(&self) -> Option<Interval> {
        Some(Interval { start: self.intervals.first()?.start, end: self.intervals.last()?.end })
    }

    /// True when no time is covered.
    pub fn is_empty(&self) -> bool {
        self.intervals.is_empty()
    }

    /// Time covered by either.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let mut all = Vec::with_capacity(self.intervals.len() + other.intervals.len());
        all.extend_from_slice(&self.intervals);
        all.extend_from_slice(&other.intervals);
        Self::from_unsorted(all)
    }

    /// Time covered by both.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let (mut a, mut b) = (0, 0);
        let mut out = Vec::new();
        while let (Some(x), Some(y)) = (self.intervals.get(a), other.intervals.get(b)) {
            let shared = Interval { start: x.start.max(y.start), end: x.end.min(y.end) };
            if !shared.is_empty() {
                out.push(shared);
            }
            if x.end <= y.end {
                a += 1;
            } else {
                b += 1;
            }
        }
        Self { intervals: out }
    }

    /// Time covered by this set and not by `other`.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        let mut out = Vec::new();
        let mut next = 0;
        for &interval in &self.intervals {
            let mut start = interval.start;
            while next < other.intervals.len() && other.intervals[next].end <= start {
                next += 1;
            }
            let mut at = next;
            while at < other.intervals.len() && other.intervals[at].start < interval.end {
                let hole = other.intervals[at];
                if hole.start > start {
                    out.push(Interval { start, end: hole.start });
                }
                start = start.max(hole.end);
                at += 1;
            }
            if start < interval.end {
                out.push(Interval { start, end: interval.end });
            }
        }
        Self { intervals: out }
    }

    /// Time covered by this set and not by `other`: the total of the difference, without making it.
    pub fn total_outside(&self, other: &Self) -> Ns {
        let mut next = 0;
        let mut total = Ns::ZERO;
        for &interval in &self.intervals {
            total += interval.len();
            while next < other.intervals.len() && other.intervals[next].end <= interval.start {
                next += 1;
            }
            // The last hole may reach into the next interval.
            for hole in other.intervals[next..].iter().take_while(|hole| hole.start < interval.end) {
                total -= hole.end.min(interval.end) - hole.start.max(interval.start);
            }
        }
        total
    }

    /// The gaps between the intervals: extent minus the set.
    #[must_use]
    pub fn gaps(&self) -> Self {
        let gaps = self.intervals.windows(2).map(|pair| Interval { start: pair[0].end, end: pair[1].start }).collect();
        Self { intervals: gaps }
    }

    /// True when `at` lies inside one of the intervals.
    pub fn contains(&self, at: Ns) -> bool {
        let after = self.intervals.partition_point(|i| i.start <= at);
        after > 0 && at < self.intervals[after - 1].end
    }

    /// The time of the set inside an interval.
    pub fn time_within(&self, interval: Interval) -> Ns {
        self.within(interval).map(Interval::len).sum()
    }

    /// The parts of the set inside an interval, in order.
    pub fn within(&self, interval: Interval) -> impl Iterator<Item = Interval> + use<'_> {
        let first = self.intervals().partition_point(|part| part.end <= interval.start);
        let parts = self.intervals().get(first..).unwrap_or_default().iter();
        parts
            .take_while(move |part| part.start < interval.end)
            .map(move |part| Interval { start: part.start.max(interval.start), end: part.end.min(interval.end) })
            .filter(|part| !part.is_empty())
    }

    /// The parts of an interval outside the set, in order.
    pub fn outside(&self, interval: Interval) -> impl Iterator<Item = Interval> + use<'_> {
        let end = Interval { start: interval.end, end: interval.end };
        let mut from = interval.start;
        self.within(interval).chain(std::iter::once(end)).filter_map(move |part| {
            let before = Interval { start: from, end: part.start };
            from = part.end;
            (!before.is_empty()).then_some(before)
        })
    }
}
