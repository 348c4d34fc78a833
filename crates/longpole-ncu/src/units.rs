//! Units: what ncu prints behind a value, and what a stored value is in.
//!
//! A report stores values in base units and no unit at all; ncu knows it from the metric's name and prints a scaled value
//! (`3.46 Tbyte/s`). Base units here are ns, byte, Hz and plain counts, and each of them per something; rates are per second.

/// A printed unit.
#[derive(Clone, Debug, PartialEq)]
pub struct Unit {
    /// A value in this unit times the factor is the value in the base unit.
    pub factor: f64,
    /// The base unit, e.g. `byte/s`; empty for plain numbers.
    pub base: String,
}

/// Scales of a word: decimal, as ncu uses them.
const PREFIXES: &[(&str, f64)] = &[("K", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12), ("P", 1e15), ("E", 1e18)];

/// Times in nanoseconds, by the words of all versions of ncu.
const TIMES: &[(&str, f64)] =
    &[("ns", 1.0), ("nsecond", 1.0), ("us", 1e3), ("usecond", 1e3), ("ms", 1e6), ("msecond", 1e6), ("s", 1e9), ("second", 1e9)];

/// Reads a printed unit. Words that are not known are units of their own; what may be a scaled form of one is `None`.
pub fn parse(text: &str) -> Option<Unit> {
    let text = text.trim();
    let (numerator, denominator) = text.split_once('/').map_or((text, None), |(numerator, denominator)| (numerator, Some(denominator)));
    let (factor, word) = scaled(numerator)?;
    let Some(denominator) = denominator else { return Some(Unit { factor, base: word.to_owned() }) };
    let (divisor, per) = scaled(denominator)?;
    if per == "ns" {
        // Times are in ns, rates are per second.
        let factor = factor * (1e9 / divisor);
        let base = if word == "cycle" { "Hz".to_owned() } else { format!("{word}/s") };
        return Some(Unit { factor, base });
    }
    // ncu scales a value per byte as if the prefix stood in front: 1,591 %/byte is printed as 1.591 %/Kbyte. So it is read back.
    Some(Unit { factor: factor * divisor, base: format!("{word}/{per}") })
}

/// The factor of a word to its base unit, and that.
fn scaled(word: &str) -> Option<(f64, &str)> {
    if let Some((_, factor)) = TIMES.iter().find(|(name, _)| *name == word) {
        return Some((*factor, "ns"));
    }
    let (factor, rest) = PREFIXES.iter().find_map(|(prefix, factor)| Some((*factor, word.strip_prefix(prefix)?))).unwrap_or((1.0, word));
    match rest {
        "byte" => Some((factor, "byte")),
        "hz" | "Hz" => Some((factor, "Hz")),
        _ if factor == 1.0 => Some((1.0, word)),
        _ => None,
    }
}
