//! When events start, day by day: enough to tell the events of a recording from those whose time stamp went wrong.
//!
//! A recording lasts seconds, a long one hours. Events that lie more than a day before or after all others, and are few beside them,
//! have a wrong time, and one of them would stretch the window (and every share of it) beyond use.

use std::collections::BTreeMap;

use longpole_trace::{Ns, ProblemCode};

/// The code of a length below zero, which is read as zero: rounding explains a microsecond, and beyond it time is lost.
#[inline]
pub(crate) fn below_zero(length: Ns) -> ProblemCode {
    if length < Ns(-1_000) { ProblemCode::EndBeforeStart } else { ProblemCode::NegativeDuration }
}

/// Nothing that a profiler records lasts longer, and nothing of one recording is further from all the rest.
pub(crate) const DAY: Ns = Ns(86_400_000_000_000);

/// Events that start near each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub(crate) first_start: Ns,
    pub(crate) last_start: Ns,
    pub(crate) end: Ns,
    pub(crate) count: u64,
    /// Where in the input the first of them is.
    pub(crate) offset: u64,
}

impl Stretch {
    /// Of one event.
    pub(crate) fn of(start: Ns, end: Ns, offset: u64) -> Self {
        Self { first_start: start, last_start: start, end, count: 1, offset }
    }

    /// Both as one.
    pub(crate) fn merged(self, other: Self) -> Self {
        Self {
            first_start: self.first_start.min(other.first_start),
            last_start: self.last_start.max(other.last_start),
            end: self.end.max(other.end),
            count: self.count + other.count,
            offset: self.offset.min(other.offset),
        }
    }

    /// Few beside `main`: at most a tenth, or one beside three and more.
    pub(crate) fn is_few_beside(&self, main: u64) -> bool {
        self.count.saturating_mul(10) <= main || (self.count == 1 && main >= 3)
    }
}

/// Events by the day they start in. There are days for a hundred thousand at most, whatever the input.
#[derive(Debug, Default)]
pub(crate) struct Days {
    /// The day of the last event: when it begins, and what is new of it.
    recent: Option<(Ns, Stretch)>,
    /// By the time they begin.
    days: BTreeMap<Ns, Stretch>,
}

impl Days {
    pub(crate) fn clear(&mut self) {
        self.recent = None;
        self.days.clear();
    }

    /// Counts an event.
    #[inline]
    pub(crate) fn include(&mut self, start: Ns, end: Ns, offset: u64) {
        match &mut self.recent {
            Some((day, stretch)) if (Ns::ZERO..DAY).contains(&(start - *day)) => *stretch = stretch.merged(Stretch::of(start, end, offset)),
            _ => self.begin(start, end, offset),
        }
    }

    #[cold]
    #[inline(never)]
    fn begin(&mut self, start: Ns, end: Ns, offset: u64) {
        self.flush();
        let day = Ns(start.get().div_euclid(DAY.get()).saturating_mul(DAY.get()));
        self.recent = Some((day, Stretch::of(start, end, offset)));
    }

    fn flush(&mut self) {
        if let Some((day, stretch)) = self.recent.take() {
            self.days.entry(day).and_modify(|known| *known = known.merged(stretch)).or_insert(stretch);
        }
    }

    /// Adds all of `other`.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (day, stretch) in other.days.iter().map(|(day, stretch)| (*day, *stretch)).chain(other.recent) {
            self.days.entry(day).and_modify(|known| *known = known.merged(stretch)).or_insert(stretch);
        }
    }

    /// All events, in stretches that lie more than a day apart.
    pub(crate) fn stretches(&mut self) -> Vec<Stretch> {
        self.flush();
        let mut found: Vec<Stretch> = Vec::new();
        for stretch in self.days.values() {
            match found.last_mut() {
                Some(last) if stretch.first_start - last.end <= DAY => *last = last.merged(*stretch),
                _ => found.push(*stretch),
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_lie_more_than_a_day_apart() {
        let mut days = Days::default();
        let hour = DAY.get() / 24;
        for (at, hours) in [1, 23, 25, 60, 24 * 400, 3, 24 * 400 + 1].into_iter().enumerate() {
            days.include(Ns(hours * hour), Ns(hours * hour + 5), at as u64);
        }
        let mut twice = Days::default();
        twice.merge(&days);
        let found: Vec<_> =
            twice.stretches().iter().map(|s| (s.first_start.get() / hour, s.last_start.get() / hour, s.count, s.offset)).collect();
        assert_eq!(found, [(1, 25, 4, 0), (60, 60, 1, 3), (9600, 9601, 2, 4)]);
        assert_eq!(days.stretches(), twice.stretches());
        assert!(days.stretches()[1].is_few_beside(4) && !days.stretches()[2].is_few_beside(4));
    }
}
