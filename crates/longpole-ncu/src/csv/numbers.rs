//! Numbers as ncu prints them in the language of the machine: `1,234.5`, `1.234,5`, `1 234,5`.

use crate::metrics::Value;

/// What separates decimals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decimals {
    /// `1,234.5`
    Point,
    /// `1.234,5`
    Comma,
}

/// Evidence of which one a table uses. A single number may be either (`1,234`), a whole table hardly ever.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    point: u64,
    comma: u64,
}

impl Evidence {
    /// Looks at a cell.
    pub(super) fn see(&mut self, text: &str) {
        if !is_number_like(text) {
            return;
        }
        let (points, commas) = (text.matches('.').count(), text.matches(',').count());
        let digits_behind = |mark: char| text.rsplit_once(mark).map_or(0, |(_, behind)| behind.len());
        let is_point = match (points, commas) {
            (0, 0) => return,
            // Several of one mark separate thousands; one separates decimals unless three digits stand behind it.
            (1, 0) if digits_behind('.') == 3 => return,
            (0, 1) if digits_behind(',') == 3 => return,
            (_, 0) => points == 1,
            (0, _) => commas > 1,
            // The last one separates decimals.
            _ => text.rfind('.') > text.rfind(','),
        };
        if is_point {
            self.point += 1;
        } else {
            self.comma += 1;
        }
    }

    /// What the table uses, by majority.
    pub(super) const fn decimals(&self) -> Decimals {
        if self.comma > self.point { Decimals::Comma } else { Decimals::Point }
    }
}

/// What separates thousands besides the mark that does not separate decimals: spaces of all widths, apostrophes, and what a
/// narrow space in another encoding becomes.
const fn is_group_mark(c: char) -> bool {
    matches!(c, ' ' | '\u{a0}' | '\u{2009}' | '\u{202f}' | '\'' | '\u{2019}' | '\u{fffd}')
}

fn is_number_like(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    digits.starts_with(|c: char| c.is_ascii_digit())
        && digits.ends_with(|c: char| c.is_ascii_digit())
        && digits.chars().all(|c| c.is_ascii_digit() || c == '.' || c == ',' || is_group_mark(c))
}

/// The number in a cell times a power of ten, exact where it is whole; `None` if it is no number.
pub(super) fn parse(text: &str, decimals: Decimals, exponent: i32) -> Option<Value> {
    let text = text.trim();
    match text {
        "nan" | "-nan" => return Some(Value::Double(f64::NAN)),
        "inf" => return Some(Value::Double(f64::INFINITY)),
        "-inf" => return Some(Value::Double(f64::NEG_INFINITY)),
        _ => {}
    }
    // No number of ncu has as many characters; the limit bounds the work on one cell.
    if text.len() > 64 || !is_number_like(text) {
        return None;
    }
    let (mark, group) = match decimals {
        Decimals::Point => ('.', ','),
        Decimals::Comma => (',', '.'),
    };
    let (whole, fraction) = text.split_once(mark).unwrap_or((text, ""));
    if !fraction.chars().all(|c| c.is_ascii_digit()) || !is_grouped(whole.strip_prefix('-').unwrap_or(whole), group) {
        return None;
    }
    let mut digits: String = whole.chars().chain(fraction.chars()).filter(|c| c.is_ascii_digit() || *c == '-').collect();
    let mut exponent = exponent - fraction.len() as i32;
    while exponent < 0 && digits.len() > 1 && digits.ends_with('0') {
        digits.pop();
        exponent += 1;
    }
    if exponent >= 0 && !digits.starts_with('-') {
        let power = u32::try_from(exponent).ok().and_then(|exponent| 10_u64.checked_pow(exponent));
        if let Some(count) = digits.parse::<u64>().ok().zip(power).and_then(|(digits, power)| digits.checked_mul(power)) {
            return Some(Value::Unsigned(count));
        }
    }
    format!("{digits}e{exponent}").parse().ok().map(Value::Double)
}

/// True for digits in groups of three, the first one shorter or not grouped at all. Two digits a group occur in India.
fn is_grouped(whole: &str, group: char) -> bool {
    let mut groups = whole.split(|c| c == group || is_group_mark(c));
    let first = groups.next().is_some_and(|first| !first.is_empty());
    first && groups.all(|group| matches!(group.len(), 2 | 3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_all_languages_are_read() {
        use Decimals::{Comma, Point};
        let cases = [
            ("1,234.5", Point, 0, Value::Double(1_234.5)),
            ("1.234,5", Comma, 0, Value::Double(1_234.5)),
            ("1 234,5", Comma, 0, Value::Double(1_234.5)),
            ("1\u{202f}234,5", Comma, 0, Value::Double(1_234.5)),
            ("1\u{a0}234\u{a0}567", Comma, 0, Value::Unsigned(1_234_567)),
            ("12'345.6", Point, 0, Value::Double(12_345.6)),
            ("12,34,567", Point, 0, Value::Unsigned(1_234_567)),
            ("1,234", Point, 0, Value::Unsigned(1_234)),
            ("1,234", Comma, 0, Value::Double(1.234)),
            ("366.560000", Point, 3, Value::Unsigned(366_560)),
            ("1.985435", Point, 9, Value::Unsigned(1_985_435_000)),
            ("0.000000", Point, 0, Value::Unsigned(0)),
            ("5706.000000", Point, 0, Value::Unsigned(5_706)),
            ("-3.5", Point, 0, Value::Double(-3.5)),
            ("18446744073709551615", Point, 0, Value::Unsigned(u64::MAX)),
            ("18446744073709551616", Point, 0, Value::Double(18_446_744_073_709_551_616.0)),
        ];
        for (text, decimals, exponent, value) in cases {
            assert_eq!(parse(text, decimals, exponent), Some(value), "{text} {decimals:?}");
        }
    }

    #[test]
    fn what_is_no_number_is_not_read_as_one() {
        for text in ["", "all", "no data", "n/a", "(1, 2, 3)", "1.2.3", "1,2,3", "NVIDIA H200", "0x10", "1e5", "1,", "-", "."] {
            assert_eq!(parse(text, Decimals::Point, 0), None, "{text}");
        }
        assert!(matches!(parse("nan", Decimals::Point, 0), Some(Value::Double(value)) if value.is_nan()));
    }

    #[test]
    fn a_table_shows_what_separates_its_decimals() {
        let decimals = |cells: &[&str]| {
            let mut evidence = Evidence::default();
            for cell in cells {
                evidence.see(cell);
            }
            evidence.decimals()
        };
        assert_eq!(decimals(&["1,234", "5", "all"]), Decimals::Point);
        assert_eq!(decimals(&["1,234", "0,25"]), Decimals::Comma);
        assert_eq!(decimals(&["1.234", "1.234.567"]), Decimals::Comma);
        assert_eq!(decimals(&["1,234.50"]), Decimals::Point);
        assert_eq!(decimals(&["1.234,50"]), Decimals::Comma);
        assert_eq!(decimals(&["1\u{202f}234,50"]), Decimals::Comma);
    }
}
