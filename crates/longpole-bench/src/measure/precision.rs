//! How well a median is known.

/// Fewer values say nothing about the error of their median.
const MIN_VALUES: usize = 5;

/// From so many values on, blocks of neighbours are compared.
const MIN_FOR_BLOCKS: usize = 16;

/// Blocks of neighbours.
const BLOCKS: usize = 8;

/// Standard error of the median as a share of it; `None` for fewer than five values, or a median of 0.
///
/// The larger of two estimates, since either can be blind:
///
/// - **Order statistics.** The number of values below the true median is binomial with a standard deviation of `sqrt(n) / 2`, whatever the
///   distribution; half the distance between the values that many places above and below the middle is therefore its standard error
///   (H. A. David and H. N. Nagaraja, *Order Statistics*, 3rd edition, section 7.1). It takes the values for independent.
/// - **Blocks.** Neighbours resemble each other while clocks and temperature drift. From sixteen values on, the standard deviation of the
///   medians of eight blocks of neighbours over the root of eight counts as well (batch means, as for simulations; A. M. Law, *Simulation
///   Modeling and Analysis*, chapter 9), which independent values do not raise above the first on average.
pub fn relative_error_of_median(values: &[u64]) -> Option<f64> {
    let count = values.len();
    if count < MIN_VALUES {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let middle = median_of_sorted(&sorted);
    if middle <= 0.0 {
        return None;
    }
    let (centre, reach) = ((count - 1) as f64 / 2.0, (count as f64).sqrt() / 2.0);
    let below = (centre - reach).floor().max(0.0) as usize;
    let above = ((centre + reach).ceil() as usize).min(count - 1);
    let by_order = (sorted[above] - sorted[below]) as f64 / 2.0;
    let by_blocks = if count < MIN_FOR_BLOCKS { 0.0 } else { error_by_blocks(values) };
    Some(by_order.max(by_blocks) / middle)
}

/// The same of samples that may be throttled: of those that are not, if they are enough, since the throttled ones belong to another machine
/// as it were; of all otherwise.
pub fn relative_error(samples: &[(u64, bool)]) -> Option<f64> {
    let free: Vec<u64> = samples.iter().filter(|(_, throttled)| !throttled).map(|(time, _)| *time).collect();
    if free.len() >= MIN_FOR_BLOCKS {
        return relative_error_of_median(&free);
    }
    relative_error_of_median(&samples.iter().map(|(time, _)| *time).collect::<Vec<_>>())
}

fn median_of_sorted(sorted: &[u64]) -> f64 {
    let last = sorted.len().saturating_sub(1);
    match (sorted.get(last / 2), sorted.get(last.div_ceil(2))) {
        (Some(&low), Some(&high)) => low as f64 / 2.0 + high as f64 / 2.0,
        _ => 0.0,
    }
}

fn error_by_blocks(values: &[u64]) -> f64 {
    let medians: Vec<f64> = (0..BLOCKS)
        .map(|block| {
            let mut part = values[block * values.len() / BLOCKS..(block + 1) * values.len() / BLOCKS].to_vec();
            part.sort_unstable();
            median_of_sorted(&part)
        })
        .collect();
    let count = medians.len() as f64;
    let mean = medians.iter().sum::<f64>() / count;
    let variance = medians.iter().map(|median| (median - mean).powi(2)).sum::<f64>() / (count - 1.0);
    (variance / count).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::Random;

    #[test]
    fn few_values_say_nothing() {
        assert_eq!(relative_error_of_median(&[]), None);
        assert_eq!(relative_error_of_median(&[5; 4]), None);
        assert_eq!(relative_error_of_median(&[0; 40]), None);
        assert_eq!(relative_error_of_median(&[5; 40]), Some(0.0));
        assert!(relative_error_of_median(&[u64::MAX; 5]).is_some());
    }

    /// Medians of many experiments scatter as each experiment said they would.
    #[test]
    fn the_estimate_is_the_scatter_of_medians() {
        let mut random = Random::new(7);
        for count in [20, 100, 400] {
            let (mut medians, mut said) = (Vec::new(), Vec::new());
            for _ in 0..300 {
                let values: Vec<u64> = (0..count).map(|_| (1e6 * (1.0 + 0.05 * random.normal())) as u64).collect();
                said.push(relative_error_of_median(&values).unwrap());
                let mut sorted = values;
                sorted.sort_unstable();
                medians.push(median_of_sorted(&sorted) / 1e6);
            }
            let mean = medians.iter().sum::<f64>() / 300.0;
            let scatter = (medians.iter().map(|median| (median - mean).powi(2)).sum::<f64>() / 299.0).sqrt();
            let said = said.iter().sum::<f64>() / 300.0;
            assert!((0.9..1.7).contains(&(said / scatter)), "{count} values: {said} said, {scatter} seen");
        }
    }

    #[test]
    fn outliers_do_not_count_and_drift_does() {
        let mut random = Random::new(3);
        let quiet: Vec<u64> = (0..200).map(|_| (1e6 * (1.0 + 0.002 * random.normal())) as u64).collect();
        let calm = relative_error_of_median(&quiet).unwrap();
        let spiked: Vec<u64> = quiet.iter().enumerate().map(|(at, value)| if at % 20 == 3 { value * 50 } else { *value }).collect();
        assert!(relative_error_of_median(&spiked).unwrap() < 2.0 * calm);
        let drifting: Vec<u64> = quiet.iter().enumerate().map(|(at, value)| value + 300 * at as u64).collect();
        assert!(relative_error_of_median(&drifting).unwrap() > 5.0 * calm);
    }

    #[test]
    fn throttled_samples_do_not_hide_how_well_the_others_are_known() {
        let mixed: Vec<(u64, bool)> = (0..60).map(|at| if at % 2 == 0 { (1000 + at % 3, false) } else { (2000 + at, true) }).collect();
        assert!(relative_error(&mixed).unwrap() < 0.01);
        let all: Vec<(u64, bool)> = mixed.iter().map(|(time, _)| (*time, true)).collect();
        assert!(relative_error(&all).unwrap() > 0.1);
    }
}
