//! Results computed on the host in double precision, and how far those of a device may be from them.

use longpole_bench::fake::Random;
use longpole_bench::measure::Error;

/// Relative error of rounding to the eight bits of a bfloat16.
const BF16_ROUNDING: f64 = 1.0 / 256.0;

/// Relative error of a sum of products in 32 bits, against the sum of their magnitudes. In the order a device sums them the error grows with
/// the length of the longest chain, here some hundreds of roundings of 2^-24; a wrong element is thousands of times further away.
const SUM_ROUNDING: f64 = 1e-4;

/// Numbers evenly spread in -1..1, the same for the same seed.
pub(crate) fn numbers(seed: u64, count: usize) -> Vec<f32> {
    let mut random = Random::new(seed);
    (0..count).map(|_| (2.0 * random.uniform() - 1.0) as f32).collect()
}

/// A value that a result should have, and the magnitude its error is measured by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expected {
    pub(crate) value: f64,
    pub(crate) magnitude: f64,
}

/// The product of two vectors.
pub(crate) fn dot(a: &[f32], b: &[f32]) -> Expected {
    let products = a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b));
    let (value, magnitude) = products.fold((0.0, 0.0), |(value, magnitude), product| (value + product, magnitude + f64::abs(product)));
    Expected { value, magnitude }
}

/// Compares results with what they should be, at places numbered from `first`.
pub(crate) fn compare(
    found: impl IntoIterator<Item = (usize, f32)>,
    mut expected: impl FnMut(usize) -> Expected,
) -> Result<Option<bool>, Error> {
    for (at, found) in found {
        let Expected { value, magnitude } = expected(at);
        let allowed = BF16_ROUNDING * value.abs() + SUM_ROUNDING * magnitude;
        let distance = (f64::from(found) - value).abs();
        // NaN, which unwritten outputs hold, is at no distance below anything.
        if distance.is_nan() || distance > allowed {
            return Err(Error::Wrong(format!("element {at} is {found}, {value:.6} was expected, within {allowed:.1e}")));
        }
    }
    Ok(Some(true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_results_are_right_and_others_wrong() {
        let expected = |_| dot(&[1.0, 2.0, -3.0], &[1.0, 1.0, 0.5]);
        assert_eq!(compare([(0, 1.5), (1, 1.503)], expected).unwrap(), Some(true));
        for wrong in [1.52, -1.5, 0.0, f32::NAN, f32::INFINITY] {
            let error = compare([(0, 1.5), (7, wrong)], expected).unwrap_err().to_string();
            assert!(error.contains("element 7") && error.contains("1.5"), "{error}");
        }
    }

    #[test]
    fn numbers_repeat_and_are_spread() {
        let numbers = numbers(3, 1000);
        assert_eq!(numbers, super::numbers(3, 1000));
        assert!(numbers.iter().all(|number| (-1.0..1.0).contains(number)));
        assert!(numbers.iter().filter(|number| **number < 0.0).count() > 400);
    }
}
