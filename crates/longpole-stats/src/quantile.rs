//! Order statistics of integer times.

/// The median: the lower of the two middle values of an even count; `None` for no values.
pub fn median(values: &[i64]) -> Option<i64> {
    let mut values = values.to_vec();
    let middle = values.len().checked_sub(1)? / 2;
    Some(*values.select_nth_unstable(middle).1)
}

/// Distance between the quartiles over the median: how widely usual values lie apart, which outliers do not move. `None` without values or
/// with a median of zero or less.
pub fn relative_spread(values: &[i64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let last = sorted.len().checked_sub(1)?;
    let at = |share: f64| {
        let place = share * last as f64;
        let (below, above) = (sorted[place.floor() as usize] as f64, sorted[place.ceil() as usize] as f64);
        below + (above - below) * place.fract()
    };
    let middle = at(0.5);
    (middle > 0.0).then(|| (at(0.75) - at(0.25)) / middle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_a_value_that_occurred() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[7]), Some(7));
        assert_eq!(median(&[9, 1]), Some(1));
        assert_eq!(median(&[5, 1, 9]), Some(5));
    }

    #[test]
    fn the_spread_is_that_of_the_middle_half() {
        assert_eq!(relative_spread(&[]), None);
        assert_eq!(relative_spread(&[0, 0, 0]), None);
        assert_eq!(relative_spread(&[100; 9]), Some(0.0));
        // Quartiles of 1..=5 are 2 and 4.
        assert_eq!(relative_spread(&[5, 3, 1, 4, 2]), Some(2.0 / 3.0));
        assert_eq!(relative_spread(&[5, 3, 1, 4, 1_000_000]), Some(2.0 / 4.0));
    }
}
