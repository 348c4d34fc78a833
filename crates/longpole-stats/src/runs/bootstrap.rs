//! One process, and how its centre varies when its blocks of neighbours are drawn anew.

use crate::centre::{TRIM, trimmed_mean};
use crate::random::Random;

/// Of one process: the logarithms of its times, ready to be drawn from.
#[derive(Clone, Debug)]
pub(super) struct Process {
    /// Logarithms, ascending.
    sorted: Vec<f64>,
    /// The place of each sample, in the order of time, among them.
    rank: Vec<u32>,
    /// Neighbours that are drawn together.
    block: usize,
    /// The trimmed mean of the logarithms.
    pub(super) centre: f64,
}

impl Process {
    /// Of at least one positive time.
    pub(super) fn of(times_ps: &[i64]) -> Self {
        let mut logs: Vec<f64> = times_ps.iter().map(|&time| (time as f64).ln()).collect();
        fence_in(&mut logs);
        let mut order: Vec<u32> = (0..logs.len() as u32).collect();
        order.sort_by(|&a, &b| logs[a as usize].total_cmp(&logs[b as usize]));
        let mut rank = vec![0; logs.len()];
        for (place, &sample) in order.iter().enumerate() {
            rank[sample as usize] = place as u32;
        }
        let sorted: Vec<f64> = order.iter().map(|&sample| logs[sample as usize]).collect();
        let block = block_length(&rank);
        Self { block, centre: trimmed_mean(&logs), sorted, rank }
    }

    /// How many independent pieces it is worth.
    pub(super) fn pieces(&self) -> f64 {
        self.rank.len() as f64 / self.block as f64
    }

    /// The centre of as many samples drawn in blocks of neighbours, around the end to the beginning. `counts` is scratch.
    pub(super) fn draw(&self, random: &mut Random, counts: &mut Vec<u32>) -> f64 {
        let count = self.rank.len();
        counts.clear();
        counts.resize(count, 0);
        let mut left = count;
        while left > 0 {
            let mut at = random.below(count);
            for _ in 0..self.block.min(left) {
                counts[self.rank[at] as usize] += 1;
                at = if at + 1 == count { 0 } else { at + 1 };
            }
            left -= self.block.min(left);
        }
        self.trimmed(counts)
    }

    /// The trimmed mean of the samples, each as often as `counts` says, which adds up to their number.
    fn trimmed(&self, counts: &[u32]) -> f64 {
        let count = self.sorted.len();
        let cut = (count as f64 * TRIM) as usize;
        let (mut skip, mut left, mut sum) = (cut, count - 2 * cut, 0.0);
        for (&value, &times) in self.sorted.iter().zip(counts) {
            let times = times as usize;
            let skipped = skip.min(times);
            skip -= skipped;
            let taken = (times - skipped).min(left);
            left -= taken;
            sum += value * taken as f64;
        }
        sum / (count - 2 * cut) as f64
    }
}

/// Quartile distances outside of the quartiles from which a sample counts as that far away.
const FENCE: f64 = 3.0;
/// The least fence, where most samples are equal: half a per cent.
const LEAST_FENCE: f64 = 0.005;

/// Moves outliers to a fence. A burst of them that is drawn several times would otherwise be more than a trimmed mean leaves out, and a single
/// stall would widen the interval to its own size.
fn fence_in(logs: &mut [f64]) {
    let mut sorted = logs.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let Some(last) = sorted.len().checked_sub(1) else { return };
    let (low, high) = (sorted[last / 4], sorted[last - last / 4]);
    let fence = (FENCE * (high - low)).max(LEAST_FENCE);
    for log in logs {
        *log = log.clamp(low - fence, high + fence);
    }
}

/// How many neighbours belong together: more, the more one sample says of the next. The length that serves an autoregressive sequence best is
/// (2 r / (1 - r^2))^(2/3) n^(1/3), with r the correlation of neighbours (E. Carlstein, "The use of subseries values for estimating the
/// variance of a general statistic", Annals of Statistics 14, 1986). Ranks stand for the samples, so that outliers do not hide it. It is at
/// least n^(1/3), and at most a quarter of the samples, of which fewer would say nothing of their spread.
fn block_length(rank: &[u32]) -> usize {
    let count = rank.len() as f64;
    let least = count.cbrt();
    let middle = (count - 1.0) / 2.0;
    let from_middle = |&rank: &u32| f64::from(rank) - middle;
    let whole: f64 = rank.iter().map(from_middle).map(|distance| distance * distance).sum();
    let together: f64 = rank.windows(2).map(|pair| from_middle(&pair[0]) * from_middle(&pair[1])).sum();
    let correlation = if whole > 0.0 { (together / whole).clamp(0.0, 0.98) } else { 0.0 };
    let best = (2.0 * correlation / (1.0 - correlation * correlation)).powf(2.0 / 3.0) * least;
    (best.max(least).ceil() as usize).min(rank.len() / 4).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stall_counts_as_far_as_the_fence() {
        let mut logs = vec![0.00, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 5.0];
        fence_in(&mut logs);
        // Quartiles 0.02 and 0.06.
        assert!((logs[8] - 0.18).abs() < 1e-12 && logs[0].abs() < 1e-12, "{logs:?}");
        let mut equal = vec![1.0, 1.0, 1.0, 1.0, 1.002, 0.0];
        fence_in(&mut equal);
        assert_eq!(equal, [1.0, 1.0, 1.0, 1.0, 1.002, 0.995]);
    }

    #[test]
    fn a_draw_of_everything_is_the_centre_itself() {
        let times: Vec<i64> = (0..25).map(|at| 1000 + at * 37 % 25).collect();
        let process = Process::of(&times);
        assert!((process.trimmed(&[1; 25]) - process.centre).abs() < 1e-12);
        let same = Process::of(&[500; 9]);
        assert!((same.draw(&mut Random::new(1), &mut Vec::new()) - 500_f64.ln()).abs() < 1e-12);
    }

    #[test]
    fn a_draw_counts_what_is_drawn_twice_by_hand() {
        // Ten values, two cut at each end; the lowest is drawn three times, so that one of it stays.
        let process = Process::of(&[1001, 1002, 1003, 1004, 1005, 1006, 1007, 1008, 1009, 1010]);
        let counts = [3, 0, 0, 1, 1, 1, 1, 1, 1, 1];
        let kept: f64 = [1001.0, 1004.0, 1005.0, 1006.0, 1007.0, 1008.0].into_iter().map(f64::ln).sum();
        assert!((process.trimmed(&counts) - kept / 6.0).abs() < 1e-12);
    }

    #[test]
    fn blocks_grow_with_what_neighbours_share() {
        let shuffled: Vec<u32> = (0..64).map(|at| at * 29 % 64).collect();
        let drifting: Vec<u32> = (0..64).collect();
        assert_eq!(block_length(&shuffled), 4);
        assert_eq!(block_length(&drifting), 16);
        assert_eq!([block_length(&[0]), block_length(&[0, 1, 2])], [1, 1]);
    }

    #[test]
    fn a_drift_makes_draws_vary_more() {
        let spread = |times: &[i64]| {
            let process = Process::of(times);
            let (mut random, mut counts) = (Random::new(3), Vec::new());
            let draws: Vec<f64> = (0..500).map(|_| process.draw(&mut random, &mut counts) - process.centre).collect();
            draws.iter().map(|draw| draw * draw).sum::<f64>()
        };
        let shuffled: Vec<i64> = (0..64).map(|at| 10_000 + at * 29 % 64).collect();
        let drifting: Vec<i64> = (0..64).map(|at| 10_000 + at).collect();
        assert!(spread(&drifting) > 2.0 * spread(&shuffled));
    }
}
