//! Units: what ncu prints behind a value, and what a stored value is in.
//!
//! A report stores values in base units and no unit at all; ncu knows it from the metric's name and prints a scaled value
//! (`3.46 Tbyte/s`). Base units here are ns, byte, Hz, % and plain counts, and each of them per something; rates are per second.

mod names;

pub use names::of_metric;

/// A printed unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// A value in this unit times ten to this power is the value in the base unit.
    pub exponent: i32,
    /// The base unit, e.g. `byte/s`; empty for plain numbers.
    pub base: String,
}

impl Unit {
    /// A value in this unit times the factor is the value in the base unit.
    pub fn factor(&self) -> f64 {
        10_f64.powi(self.exponent)
    }
}

/// Scales of a word, as powers of ten: all decimal.
const PREFIXES: &[(char, i32)] = &[('K', 3), ('M', 6), ('G', 9), ('T', 12), ('P', 15), ('E', 18)];

/// Times in nanoseconds, as powers of ten, by the words of all versions of ncu.
const TIMES: &[(&str, i32)] = &[("ns", 0), ("nsecond", 0), ("us", 3), ("usecond", 3), ("ms", 6), ("msecond", 6), ("s", 9), ("second", 9)];

/// Reads a printed unit. Words that are not known are units of their own; what may be a scaled form of one is `None`.
pub fn parse(text: &str) -> Option<Unit> {
    let text = text.trim();
    let (numerator, denominator) = text.split_once('/').map_or((text, None), |(numerator, denominator)| (numerator, Some(denominator)));
    let (exponent, word) = scaled(numerator)?;
    let Some(denominator) = denominator else { return Some(Unit { exponent, base: word.to_owned() }) };
    let (per_exponent, per) = scaled(denominator)?;
    if per == "ns" {
        // Times are in ns, rates are per second.
        let base = if word == "cycle" { "Hz".to_owned() } else { format!("{word}/s") };
        return Some(Unit { exponent: exponent + 9 - per_exponent, base });
    }
    // ncu scales a value per byte as if the prefix stood in front: 1,591 %/byte is printed as 1.591 %/Kbyte. So it is read back.
    Some(Unit { exponent: exponent + per_exponent, base: format!("{word}/{per}") })
}

/// The scale of a word against its base unit, and that.
fn scaled(word: &str) -> Option<(i32, &str)> {
    if let Some((_, exponent)) = TIMES.iter().find(|(name, _)| *name == word) {
        return Some((*exponent, "ns"));
    }
    let prefix = PREFIXES.iter().find_map(|(prefix, exponent)| Some((*exponent, word.strip_prefix(*prefix)?)));
    let (exponent, rest) = prefix.unwrap_or((0, word));
    match rest {
        "byte" => Some((exponent, "byte")),
        "hz" | "Hz" => Some((exponent, "Hz")),
        _ if prefix.is_none() => Some((0, word)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_units_are_scaled_to_base_units() {
        let cases = [
            ("", 0, ""),
            ("%", 0, "%"),
            ("byte", 0, "byte"),
            ("Kbyte", 3, "byte"),
            ("Gbyte/s", 9, "byte/s"),
            ("Tbyte/s", 12, "byte/s"),
            ("Kbyte/block", 3, "byte/block"),
            ("sector/ns", 9, "sector/s"),
            ("sector/us", 6, "sector/s"),
            ("sector/ms", 3, "sector/s"),
            ("sector/s", 0, "sector/s"),
            ("Ghz", 9, "Hz"),
            ("Mhz", 6, "Hz"),
            ("hz", 0, "Hz"),
            ("cycle/nsecond", 9, "Hz"),
            ("cycle/second", 0, "Hz"),
            ("us", 3, "ns"),
            ("ms", 6, "ns"),
            ("s", 9, "ns"),
            ("usecond", 3, "ns"),
            ("inst/cycle", 0, "inst/cycle"),
            ("Kbyte/cycle", 3, "byte/cycle"),
            ("%/Kbyte", 3, "%/byte"),
            ("register/thread", 0, "register/thread"),
            ("SM", 0, "SM"),
            ("branches", 0, "branches"),
        ];
        for (text, exponent, base) in cases {
            assert_eq!(parse(text), Some(Unit { exponent, base: base.to_owned() }), "{text}");
        }
    }

    #[test]
    fn what_may_be_a_scaled_word_is_not_guessed() {
        assert_eq!(parse("Gfoo"), None);
        assert_eq!(parse("byte/Mfoo"), None);
    }
}
