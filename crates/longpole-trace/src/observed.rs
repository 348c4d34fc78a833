//! What was not observed: stretches between a recording's first and last event in which its recorder was switched off.
//!
//! A recorder that is switched on for ranges of the program writes several windows into one recording. What happened between them is not known: it
//! is neither wall nor idle time, so every sum over time leaves it out. An importer that knows of such stretches says so by [`Unobserved::set`];
//! none of them overlaps a device activity or an API call of its rank.

use crate::interval::IntervalSet;

/// The stretches of each rank in which nothing was recorded. Most traces have none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unobserved {
    by_rank: Vec<IntervalSet>,
}

static NOTHING: IntervalSet = IntervalSet::EMPTY;

impl Unobserved {
    /// Says when nothing was recorded of a rank, given by its position.
    pub fn set(&mut self, rank: usize, stretches: IntervalSet) {
        if self.by_rank.len() <= rank {
            self.by_rank.resize(rank + 1, IntervalSet::default());
        }
        if let Some(of_rank) = self.by_rank.get_mut(rank) {
            *of_rank = stretches;
        }
    }

    /// True when all of the time was observed, on all ranks.
    pub fn is_empty(&self) -> bool {
        self.by_rank.iter().all(IntervalSet::is_empty)
    }

    /// When nothing was recorded of a rank, given by its position.
    pub fn of_rank(&self, rank: usize) -> &IntervalSet {
        self.by_rank.get(rank).unwrap_or(&NOTHING)
    }

    /// When nothing was recorded of any of some ranks.
    pub fn of_all(&self, ranks: impl IntoIterator<Item = usize>) -> IntervalSet {
        if self.is_empty() {
            return IntervalSet::default();
        }
        let mut ranks = ranks.into_iter();
        let first = ranks.next().map(|rank| self.of_rank(rank).clone()).unwrap_or_default();
        ranks.fold(first, |known, rank| if known.is_empty() { known } else { known.intersection(self.of_rank(rank)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interval::Interval;
    use crate::ns::Ns;

    fn set(list: &[(i64, i64)]) -> IntervalSet {
        IntervalSet::from_unsorted(list.iter().map(|&(start, end)| Interval { start: Ns(start), end: Ns(end) }).collect())
    }

    #[test]
    fn parts_inside_and_outside_make_up_an_interval() {
        let holes = set(&[(10, 20), (30, 40), (50, 60)]);
        for (start, end) in [(0, 70), (10, 60), (15, 35), (20, 30), (32, 38), (60, 90), (0, 5), (40, 41)] {
            let interval = Interval { start: Ns(start), end: Ns(end) };
            let (inside, outside): (Vec<_>, Vec<_>) = (holes.within(interval).collect(), holes.outside(interval).collect());
            assert_eq!(inside, set(&[(start, end)]).intersection(&holes).intervals());
            assert_eq!(outside, set(&[(start, end)]).difference(&holes).intervals());
            assert_eq!(holes.time_within(interval) + outside.into_iter().map(Interval::len).sum(), interval.len());
        }
    }

    #[test]
    fn what_one_rank_recorded_was_observed() {
        let mut unobserved = Unobserved::default();
        assert!(unobserved.is_empty() && unobserved.of_rank(3).is_empty());
        unobserved.set(1, set(&[(10, 20), (30, 40)]));
        assert_eq!(unobserved.of_all([1]), set(&[(10, 20), (30, 40)]));
        assert!(unobserved.of_all([0, 1]).is_empty());
        unobserved.set(0, set(&[(15, 35)]));
        assert_eq!(unobserved.of_all([0, 1]), set(&[(15, 20), (30, 35)]));
        assert!(unobserved.of_all([]).is_empty());
    }
}
