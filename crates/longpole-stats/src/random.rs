//! Numbers that look random and are the same every time: a verdict must not change when it is asked for again.

/// The splitmix64 generator (S. Vigna's public-domain description of it: one addition and three rounds of shifting and multiplying).
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which is not zero. The bias of the multiplication is below 2^-32 for the counts that occur here.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next()) * bound as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_below_the_bound_comes_about_equally_often() {
        let mut random = Random::new(7);
        let mut seen = [0_usize; 6];
        for _ in 0..60_000 {
            seen[random.below(6)] += 1;
        }
        assert!(seen.iter().all(|&times| (9_500..10_500).contains(&times)), "{seen:?}");
        let (mut again, mut other) = (Random::new(7), Random::new(8));
        let first: Vec<usize> = (0..8).map(|_| again.below(1000)).collect();
        let mut repeated = Random::new(7);
        assert_eq!(first, (0..8).map(|_| repeated.below(1000)).collect::<Vec<_>>());
        assert_ne!(first, (0..8).map(|_| other.below(1000)).collect::<Vec<_>>());
    }
}
