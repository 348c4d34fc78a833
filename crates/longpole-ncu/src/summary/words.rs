//! Numbers in sentences.

/// A share as percent with one digit: `55.8 %`.
pub(crate) fn percent(value: f64) -> String {
    // A small share is not none.
    if value > 0.0 && value < 0.05 { "<0.1 %".to_owned() } else { format!("{value:.1} %") }
}

/// A fraction as percent with one digit.
pub(crate) fn fraction(value: f64) -> String {
    percent(value * 100.0)
}

/// Waves with as many digits as tell a small count from none: `141.5`, `2.30`, `0.07`, `0.0026`.
pub(crate) fn waves(value: f64) -> String {
    if value >= 10.0 {
        format!("{value:.1}")
    } else if value >= 0.01 || value <= 0.0 {
        format!("{value:.2}")
    } else {
        format!("{value:.4}")
    }
}

/// A count with its thousands set apart: `46,694,400`.
pub(crate) fn count(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut grouped = String::with_capacity(digits.len() * 4 / 3 + 1);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) && !grouped.ends_with('-') {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!([0.0, 999.0, 1_000.0, 46_694_400.0, -123_456.0].map(count), ["0", "999", "1,000", "46,694,400", "-123,456"]);
        assert_eq!([141.536, 2.303, 0.072, 0.0026, 0.0].map(waves), ["141.5", "2.30", "0.07", "0.0026", "0.00"]);
        assert_eq!(fraction(0.8976), "89.8 %");
    }
}
