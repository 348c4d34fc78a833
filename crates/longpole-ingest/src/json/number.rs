//! Numbers from decimal text, exactly: nothing here passes through floating point.

/// A parsed decimal number of microseconds, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decimal {
    /// The value, rounded half away from zero when the text has more than three decimals.
    Ns(i64),
    /// `NaN` or `Infinity`.
    NotFinite,
    /// A number whose nanoseconds do not fit 64 bits.
    TooLarge,
    /// Not a number at all.
    Invalid,
}

/// Reads decimal microseconds as integer nanoseconds.
#[inline]
pub(crate) fn parse_decimal_ns(text: &[u8]) -> Decimal {
    let (negative, digits) = match text.first() {
        Some(b'-') => (true, &text[1..]),
        _ => (false, text),
    };
    // Nearly all times have three decimals or none; up to 16 digits of microseconds fit 64 bits with their decimals.
    let (whole, thousandths) = match digits {
        [whole @ .., b'.', a, b, c] => (whole, digits3([*a, *b, *c])),
        _ => (digits, Some(0)),
    };
    if whole.is_empty() || whole.len() > 16 {
        return parse_slow(text);
    }
    match (parse_digits(whole), thousandths) {
        (Some(whole), Some(thousandths)) if whole < i64::MAX as u64 / 1_000 => {
            let value = (whole * 1_000 + thousandths) as i64;
            Decimal::Ns(if negative { -value } else { value })
        }
        _ => parse_slow(text),
    }
}

fn digits3(text: [u8; 3]) -> Option<u64> {
    let [a, b, c] = text.map(|byte| u64::from(byte.wrapping_sub(b'0')));
    (a < 10 && b < 10 && c < 10).then_some(a * 100 + b * 10 + c)
}

/// Up to 19 decimal digits, eight at a time; `None` when one of the bytes is no digit.
#[inline]
fn parse_digits(text: &[u8]) -> Option<u64> {
    let (eights, rest) = text.as_chunks::<8>();
    let mut value = 0_u64;
    for eight in eights {
        value = value * 100_000_000 + eight_digits(u64::from_le_bytes(*eight))?;
    }
    for byte in rest {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + u64::from(digit);
    }
    Some(value)
}

/// Eight ASCII digits in one word, the first in the lowest byte: neighbours are joined to pairs, pairs to fours, fours to
/// the whole, each step by one multiplication.
#[inline]
fn eight_digits(word: u64) -> Option<u64> {
    const ZEROS: u64 = 0x3030_3030_3030_3030;
    const HIGH_NIBBLES: u64 = 0xF0F0_F0F0_F0F0_F0F0;
    let digits = word ^ ZEROS;
    // A digit has no high nibble left, and stays below 16 when 6 is added.
    if (digits | digits.wrapping_add(0x0606_0606_0606_0606)) & HIGH_NIBBLES != 0 {
        return None;
    }
    let pairs = (digits * 10 + (digits >> 8)) & 0x00FF_00FF_00FF_00FF;
    let fours = (pairs * 100 + (pairs >> 16)) & 0x0000_FFFF_0000_FFFF;
    Some((fours * 10_000 + (fours >> 32)) & 0xFFFF_FFFF)
}

/// Any JSON number, and the non-finite words some writers use. Exact for every value whose nanoseconds fit 64 bits.
#[cold]
fn parse_slow(text: &[u8]) -> Decimal {
    parse_scaled(text, 3)
}

/// A decimal number times ten to the power of `places`, rounded half away from zero: 3 reads microseconds as nanoseconds, 6 milliseconds.
pub(crate) fn parse_scaled(text: &[u8], places: i64) -> Decimal {
    let Ok(text) = std::str::from_utf8(text) else { return Decimal::Invalid };
    let text = text.trim();
    let (negative, body) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    if ["nan", "inf", "infinity"].iter().any(|word| body.eq_ignore_ascii_case(word)) {
        return Decimal::NotFinite;
    }
    let (mantissa, exponent) = match body.find(['e', 'E']) {
        Some(at) => match body[at + 1..].parse::<i64>() {
            Ok(exponent) => (&body[..at], exponent),
            Err(_) => return Decimal::Invalid,
        },
        None => (body, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() || !whole.bytes().chain(fraction.bytes()).all(|b| b.is_ascii_digit()) {
        return Decimal::Invalid;
    }
    // value = digits * 10^(exponent - fraction.len() + places)
    let shift = exponent.saturating_sub(fraction.len() as i64).saturating_add(places);
    let digits = whole.bytes().chain(fraction.bytes()).skip_while(|b| *b == b'0');
    let kept: Vec<u8> = digits.map(|b| b - b'0').collect();
    // Digits at and after `keep` are beyond the nanosecond.
    let keep = (kept.len() as i64).saturating_add(shift);
    if kept.is_empty() || keep < 0 {
        return Decimal::Ns(0);
    }
    if keep > 20 {
        return Decimal::TooLarge;
    }
    let mut value: i128 = 0;
    for at in 0..keep {
        value = value * 10 + i128::from(kept.get(at as usize).copied().unwrap_or(0));
    }
    if kept.get(keep as usize).is_some_and(|digit| *digit >= 5) {
        value += 1;
    }
    match i64::try_from(if negative { -value } else { value }) {
        Ok(value) => Decimal::Ns(value),
        Err(_) => Decimal::TooLarge,
    }
}

/// An unsigned integer; `None` for anything else, values past 64 bits included.
#[inline]
pub(crate) fn parse_u64(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    if text.len() <= 19
        && let Some(value) = parse_digits(text)
    {
        return Some(value);
    }
    parse_u64_slow(text)
}

/// Twenty digits, or an integer that a writer printed as a float (`7.0`, `1.2e3`).
#[cold]
fn parse_u64_slow(text: &[u8]) -> Option<u64> {
    if text.len() == 20 && text.iter().all(u8::is_ascii_digit) {
        return std::str::from_utf8(text).ok()?.parse().ok();
    }
    match parse_slow(text) {
        Decimal::Ns(thousandths) if thousandths % 1_000 == 0 => u64::try_from(thousandths / 1_000).ok(),
        _ => None,
    }
}

/// A signed integer; `None` for anything else.
pub(crate) fn parse_i64(text: &[u8]) -> Option<i64> {
    match text.strip_prefix(b"-") {
        Some(digits) => parse_u64(digits).and_then(|v| 0i64.checked_sub_unsigned(v)),
        None => parse_u64(text).and_then(|v| i64::try_from(v).ok()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn microseconds_become_exact_nanoseconds() {
        for (text, want) in [
            ("5107982190005.803", 5_107_982_190_005_803),
            ("1712195495521716.781", 1_712_195_495_521_716_781),
            ("44733.320", 44_733_320),
            ("0", 0),
            ("7", 7_000),
            ("-1.5", -1_500),
            ("0.0004", 0),
            ("0.0005", 1),
            ("1.23456", 1_235),
            ("1.5e3", 1_500_000),
            ("2E-3", 2),
            ("9223372036854774.999", 9_223_372_036_854_774_999),
            ("17121954955217167.25", 17_121_954_955_217_167_250_i128 as i64),
        ] {
            let got = parse_decimal_ns(text.as_bytes());
            let fits = text != "17121954955217167.25";
            assert_eq!(got, if fits { Decimal::Ns(want) } else { Decimal::TooLarge }, "{text}");
        }
    }

    #[test]
    fn what_is_not_a_finite_number_is_said_so() {
        for text in ["NaN", "Infinity", "-inf"] {
            assert_eq!(parse_decimal_ns(text.as_bytes()), Decimal::NotFinite, "{text}");
        }
        for text in ["1e400", "99999999999999999999999", "9223372036854776", "-9999999999999999"] {
            assert_eq!(parse_decimal_ns(text.as_bytes()), Decimal::TooLarge, "{text}");
        }
        for text in ["", "-", ".", "1.2.3", "12a", "null", "1e"] {
            assert_eq!(parse_decimal_ns(text.as_bytes()), Decimal::Invalid, "{text}");
        }
    }

    #[test]
    fn other_units_are_as_exact() {
        for (text, places, want) in [
            ("31.3879", 6, 31_387_900),
            ("0.00474854", 6, 4_749),
            ("1e11", 0, 100_000_000_000),
            ("2.0", 0, 2),
            ("9007199254740993", 0, 9_007_199_254_740_993),
            ("-3", 0, -3),
        ] {
            assert_eq!(parse_scaled(text.as_bytes(), places), Decimal::Ns(want), "{text}");
        }
    }

    #[test]
    fn integers_keep_all_64_bits() {
        assert_eq!(parse_u64(b"10159970886766084423"), Some(10_159_970_886_766_084_423));
        assert_eq!(parse_u64(b"99999999999999999999"), None);
        assert_eq!(parse_i64(b"-9223372036854775808"), Some(i64::MIN));
        assert_eq!(parse_i64(b"7.0"), Some(7));
        assert_eq!(parse_i64(b"7.5"), None);
    }
}
