//! The centre of one side and how far it may be off.

/// Share of samples that is cut off at each end.
pub(crate) const TRIM: f64 = 0.2;
/// Samples from which blocks of neighbours say how much these resemble each other.
const BLOCKS_FROM: usize = 16;
/// Number of such blocks.
const BLOCKS: usize = 8;

/// Where the logarithms of one side lie.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Centre {
    /// Their trimmed mean.
    pub(crate) at: f64,
    /// The square of its standard error.
    pub(crate) variance: f64,
    /// Degrees of freedom of that error.
    pub(crate) freedom: f64,
}

impl Centre {
    /// Of at least two logarithms in the order of time; `None` of fewer.
    pub(crate) fn of(logs: &[f64]) -> Option<Self> {
        let own = Self::independent(logs)?;
        if logs.len() >= BLOCKS_FROM {
            let centres: Vec<f64> = (0..BLOCKS).map(|block| trimmed_mean(part(logs, block, BLOCKS))).collect();
            let (variance, freedom) = (variance_of(&centres) / BLOCKS as f64, (BLOCKS - 1) as f64);
            return Some(if variance > own.variance { Self { at: own.at, variance, freedom } } else { own });
        }
        // Halves of fewer than two samples each would count the noise of single samples as a drift once more.
        let drift = if logs.len() >= 4 { (trimmed_mean(part(logs, 0, 2)) - trimmed_mean(part(logs, 1, 2))) / 2.0 } else { 0.0 };
        Some(Self { variance: own.variance + drift * drift, ..own })
    }

    /// Yuen's error of a trimmed mean, as if samples were independent.
    fn independent(logs: &[f64]) -> Option<Self> {
        let count = logs.len();
        if count < 2 {
            return None;
        }
        let mut sorted = logs.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let cut = cut(count);
        let kept = count - 2 * cut;
        let at = mean(&sorted[cut..count - cut]);
        // Winsorised: what was cut counts as the last value kept.
        let (low, high) = (sorted[cut], sorted[count - 1 - cut]);
        sorted[..cut].fill(low);
        sorted[count - cut..].fill(high);
        let variance = variance_of(&sorted) * (count - 1) as f64 / (kept * (kept - 1)) as f64;
        Some(Self { at, variance, freedom: (kept - 1) as f64 })
    }
}

/// How many samples are cut at each end. At least two stay.
fn cut(count: usize) -> usize {
    (count as f64 * TRIM) as usize
}

fn part(values: &[f64], number: usize, parts: usize) -> &[f64] {
    &values[values.len() * number / parts..values.len() * (number + 1) / parts]
}

/// The mean without the lowest and the highest fifth.
pub(crate) fn trimmed_mean(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let cut = cut(sorted.len());
    mean(&sorted[cut..sorted.len() - cut])
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn variance_of(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / (values.len() - 1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trimmed_mean_and_its_error_by_hand() {
        // Ten values, two cut at each end: the mean of 3..=8 is 5.5. Winsorised: 3 3 3 4 5 6 7 8 8 8, mean 5.5, squared distances
        // 3 x 6.25 + 2.25 + 0.25 + 0.25 + 2.25 + 3 x 6.25 = 42.5. Error squared 42.5 / (6 x 5).
        let values: Vec<f64> = (1..=10).map(f64::from).collect();
        let centre = Centre::independent(&values).unwrap();
        assert!((centre.at - 5.5).abs() < 1e-12);
        assert!((centre.variance - 42.5 / 30.0).abs() < 1e-12);
        assert!((centre.freedom - 5.0).abs() < 1e-12);
    }

    #[test]
    fn an_outlier_does_not_move_it() {
        let usual = Centre::of(&[1.0, 1.1, 0.9, 1.0, 1.05]).unwrap();
        let stalled = Centre::of(&[1.0, 1.1, 0.9, 1.0, 9.0]).unwrap();
        assert!((usual.at - stalled.at).abs() < 0.02, "{usual:?} {stalled:?}");
    }

    #[test]
    fn a_drift_widens_the_error() {
        let shuffled: Vec<f64> = (0..64).map(|at| f64::from(at * 29 % 64)).collect();
        let drifting: Vec<f64> = (0..64).map(f64::from).collect();
        assert!(Centre::of(&drifting).unwrap().variance > 3.0 * Centre::of(&shuffled).unwrap().variance);
        assert!(Centre::of(&[1.0, 1.0, 2.0, 2.0]).unwrap().variance > 1.5 * Centre::independent(&[1.0, 1.0, 2.0, 2.0]).unwrap().variance);
    }

    #[test]
    fn one_sample_has_no_error() {
        assert!(Centre::of(&[1.0]).is_none() && Centre::of(&[]).is_none());
    }
}
