//! Limits as people write them: `1700`, `"5 ms"`, `"30 %"`, `"2 GiB"`.

use longpole_report::{Amount, CheckUnit};

/// What a limit is written in: its name, what it measures, and how many of the unit that figures have it is, as a fraction.
const UNITS: [(&str, CheckUnit, i128, i128); 13] = [
    ("ns", CheckUnit::Time, 1, 1),
    ("us", CheckUnit::Time, 1_000, 1),
    ("µs", CheckUnit::Time, 1_000, 1),
    ("ms", CheckUnit::Time, 1_000_000, 1),
    ("s", CheckUnit::Time, 1_000_000_000, 1),
    ("B", CheckUnit::Bytes, 1, 1),
    ("KiB", CheckUnit::Bytes, 1 << 10, 1),
    ("MiB", CheckUnit::Bytes, 1 << 20, 1),
    ("GiB", CheckUnit::Bytes, 1 << 30, 1),
    ("kB", CheckUnit::Bytes, 1_000, 1),
    ("MB", CheckUnit::Bytes, 1_000_000, 1),
    ("GB", CheckUnit::Bytes, 1_000_000_000, 1),
    ("%", CheckUnit::Share, 1, 100),
];

/// How a figure of a unit may be limited.
fn examples(unit: CheckUnit) -> &'static str {
    match unit {
        CheckUnit::Number => "a number without a unit, such as 1700",
        CheckUnit::Time => "a time such as \"5 ms\"; a bare number is nanoseconds",
        CheckUnit::Bytes => "a size such as \"2 GiB\"; a bare number is bytes",
        CheckUnit::Share => "a share such as \"30 %\"; a bare number is 0 to 1",
        CheckUnit::Percent => "percent such as \"30 %\"; a bare number is percent",
    }
}

/// A limit of a figure that counts `unit`.
pub(crate) fn limit(text: &str, unit: CheckUnit) -> Result<Amount, String> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | '-')).unwrap_or(text.len());
    let (number, suffix) = (text[..end].trim_end(), text[end..].trim());
    let unusable = |why: &str| format!("`{text}` {why}: use {}", examples(unit));
    let (scale, divisor) = if suffix.is_empty() {
        (1, 1)
    } else {
        let (_, measures, scale, divisor) = UNITS.into_iter().find(|(name, ..)| *name == suffix).ok_or_else(|| unusable("is no limit"))?;
        match (measures, unit) {
            (CheckUnit::Share, CheckUnit::Percent) => (1, 1),
            (measures, unit) if measures == unit => (scale, divisor),
            _ => return Err(unusable("does not fit what the path leads to")),
        }
    };
    let amount = Amount::decimal(number, scale, divisor).ok_or_else(|| unusable("is no limit"))?;
    if unit == CheckUnit::Share && suffix.is_empty() && amount > Amount::whole(1) {
        return Err(unusable("is more than all"));
    }
    Ok(amount)
}

/// A share, which may be bare.
pub(crate) fn share(text: &str) -> Result<Amount, String> {
    let amount = limit(text, CheckUnit::Share)?;
    if amount < Amount::default() { Err(format!("`{text}` is below zero: use a share such as \"3 %\"")) } else { Ok(amount) }
}

/// A limit that holds for `value` with room to spare: `value` times `factor` (over a hundred), to two digits, away from the value;
/// counts, of which far less is left, to three.
/// Returned as it is written in a budget.
pub(crate) fn at_most(value: Amount, percent: i64, unit: CheckUnit) -> String {
    let wanted = value.get() * percent as f64 / 100.0;
    match unit {
        CheckUnit::Number => {
            let whole = if wanted <= 20.0 { wanted.ceil() } else { digits_up(wanted, 1_000.0) };
            format!("{whole}")
        }
        CheckUnit::Time => written(wanted.max(1.0), &["ns", "us", "ms", "s"], 1_000.0),
        CheckUnit::Bytes => written(wanted.max(1.0), &["B", "KiB", "MiB", "GiB"], 1_024.0),
        // Beyond half of what is left to all of it a limit on a share says little.
        CheckUnit::Share => {
            let halfway = f64::midpoint(value.get(), 1.0);
            let most = if value.get() < 1.0 { wanted.min(halfway) } else { wanted };
            format!("\"{} %\"", (most * 100.0).ceil().max(1.0))
        }
        CheckUnit::Percent => format!("\"{} %\"", wanted.ceil().max(1.0)),
    }
}

/// The smallest number of some digits and zeros that is not below; `most` is the first number of more digits.
fn digits_up(value: f64, most: f64) -> f64 {
    let mut step = 1.0;
    while value / step >= most {
        step *= 10.0;
    }
    (value / step).ceil() * step
}

/// In the largest unit of which there is at least one.
fn written(value: f64, units: &[&str], step: f64) -> String {
    let mut scaled = value;
    let mut unit = 0;
    while scaled >= step && unit + 1 < units.len() {
        scaled /= step;
        unit += 1;
    }
    // Below ten a decimal is the second digit.
    let shown =
        if scaled < 10.0 && unit > 0 { format!("{:.1}", (scaled * 10.0).ceil() / 10.0) } else { format!("{}", digits_up(scaled, 100.0)) };
    format!("\"{} {}\"", shown.strip_suffix(".0").unwrap_or(&shown), units[unit])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn limits_are_read_exactly() {
        for (text, unit, expected) in [
            ("1700", CheckUnit::Number, Amount::whole(1_700)),
            ("-3", CheckUnit::Number, Amount::whole(-3)),
            ("5 ms", CheckUnit::Time, Amount::whole(5_000_000)),
            ("1.5us", CheckUnit::Time, Amount::whole(1_500)),
            ("17", CheckUnit::Time, Amount::whole(17)),
            ("2 GiB", CheckUnit::Bytes, Amount::whole(2_i64 << 30)),
            ("1.5 GB", CheckUnit::Bytes, Amount::whole(1_500_000_000)),
            ("30 %", CheckUnit::Share, Amount::decimal("0.3", 1, 1).unwrap()),
            ("0.3", CheckUnit::Share, Amount::decimal("0.3", 1, 1).unwrap()),
            ("120 %", CheckUnit::Share, Amount::decimal("1.2", 1, 1).unwrap()),
            ("30 %", CheckUnit::Percent, Amount::whole(30)),
        ] {
            assert_eq!(limit(text, unit), Ok(expected), "{text}");
        }
        // As copied from what a command printed.
        for text in ["0.10382578297194511", "10.382578297194511 %"] {
            assert_eq!(limit(text, CheckUnit::Share), Ok(Amount::nearest(0.103_825_782_971_945_11).unwrap()), "{text}");
        }
    }

    #[test]
    fn a_unit_that_does_not_fit_says_what_does() {
        for (text, unit, part) in [
            ("5 ms", CheckUnit::Bytes, "does not fit what the path leads to: use a size such as"),
            ("5 ms", CheckUnit::Number, "use a number without a unit"),
            ("2 GiB", CheckUnit::Time, "use a time such as"),
            ("30 %", CheckUnit::Time, "does not fit"),
            ("80", CheckUnit::Share, "is more than all: use a share such as \"30 %\""),
            ("5 parsecs", CheckUnit::Time, "is no limit"),
            ("ms", CheckUnit::Time, "is no limit"),
            ("", CheckUnit::Number, "is no limit"),
            ("1e3", CheckUnit::Number, "is no limit"),
            ("5 ms 3 us", CheckUnit::Time, "is no limit"),
            ("99999999999999999999999", CheckUnit::Number, "is no limit"),
        ] {
            let error = limit(text, unit).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
        assert!(share("-3 %").is_err());
    }

    #[test]
    fn proposed_limits_are_round() {
        for (value, percent, unit, expected) in [
            (1_646, 102, CheckUnit::Number, "1680"),
            (101, 102, CheckUnit::Number, "104"),
            (3, 102, CheckUnit::Number, "4"),
            (0, 102, CheckUnit::Number, "0"),
            (5_510_685, 110, CheckUnit::Time, "\"6.1 ms\""),
            (41_293_493, 110, CheckUnit::Time, "\"46 ms\""),
            (700, 110, CheckUnit::Time, "\"770 ns\""),
            (1_656_511_488, 110, CheckUnit::Bytes, "\"1.7 GiB\""),
            (0, 110, CheckUnit::Time, "\"1 ns\""),
        ] {
            assert_eq!(at_most(Amount::whole(value), percent, unit), expected);
        }
        assert_eq!(at_most(Amount::nearest(0.183).unwrap(), 110, CheckUnit::Share), "\"21 %\"");
        assert_eq!(at_most(Amount::nearest(0.84).unwrap(), 200, CheckUnit::Share), "\"92 %\"");
    }

    proptest! {
        #[test]
        fn what_is_proposed_holds(value in 0..i64::MAX / 4, percent in 101..300_i64) {
            for unit in [CheckUnit::Number, CheckUnit::Time, CheckUnit::Bytes] {
                let text = at_most(Amount::whole(value), percent, unit);
                let read = limit(text.trim_matches('"'), unit);
                prop_assert!(read.as_ref().is_ok_and(|read| *read >= Amount::whole(value)), "{text} {read:?}");
            }
        }

        #[test]
        fn any_text_is_a_limit_or_an_error(text in any::<String>()) {
            for unit in [CheckUnit::Number, CheckUnit::Time, CheckUnit::Bytes, CheckUnit::Share, CheckUnit::Percent] {
                let _ = limit(&text, unit);
            }
        }
    }
}
