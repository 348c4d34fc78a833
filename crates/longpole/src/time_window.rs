//! `--time A..B`.

use longpole_trace::Ns;

/// Units, longest name first so that `ms` is not read as `s`.
const UNITS: [(&str, u128); 4] = [("ms", 1_000_000), ("us", 1_000), ("ns", 1), ("s", 1_000_000_000)];

/// A window: begin and end with units, either of which may be left out.
pub(crate) fn parse(text: &str) -> Result<(Ns, Ns), String> {
    let (start, end) = text.split_once("..").ok_or("expected A..B, e.g. 10ms..1.5s")?;
    let start = if start.trim().is_empty() { Ns::ZERO } else { time(start)? };
    let end = if end.trim().is_empty() { Ns::MAX } else { time(end)? };
    if end <= start {
        return Err("the window ends before it begins".to_owned());
    }
    Ok((start, end))
}

/// A positive time: milliseconds when it has no unit.
pub(crate) fn parse_ms(text: &str) -> Result<Ns, String> {
    time(text).and_then(|ns| if ns > Ns::ZERO { Ok(ns) } else { Err("a step takes some time".to_owned()) })
}

/// A time as exact nanoseconds; milliseconds when it has no unit.
fn time(text: &str) -> Result<Ns, String> {
    let text = text.trim();
    let bad = || format!("`{text}` is not a time; write it like 10ms, 1.5s, 200us or 40ns");
    let (number, unit) =
        UNITS.iter().find_map(|&(name, ns)| text.strip_suffix(name).map(|number| (number.trim_end(), ns))).unwrap_or((text, 1_000_000));
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit()) && s.len() <= 18;
    if (whole.is_empty() && fraction.is_empty()) || !digits(whole) || !digits(fraction) {
        return Err(bad());
    }
    let parse = |s: &str| if s.is_empty() { Some(0) } else { s.parse::<u128>().ok() };
    let whole = parse(whole).ok_or_else(bad)? * unit;
    let fraction = parse(fraction).ok_or_else(bad)? * unit / 10_u128.pow(fraction.len() as u32);
    i64::try_from(whole + fraction).map(Ns).map_err(|_| bad())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_read_exactly() {
        assert_eq!(parse("10ms..1.5s"), Ok((Ns(10_000_000), Ns(1_500_000_000))));
        assert_eq!(parse("10..20"), Ok((Ns(10_000_000), Ns(20_000_000))));
        assert_eq!(parse("0.0005us..3 ns"), Ok((Ns(0), Ns(3))));
        assert_eq!(parse("..7us"), Ok((Ns(0), Ns(7_000))));
        assert_eq!(parse(".25.."), Ok((Ns(250_000), Ns::MAX)));
    }

    #[test]
    fn a_step_takes_some_milliseconds() {
        assert_eq!((parse_ms("12.5"), parse_ms("300us")), (Ok(Ns(12_500_000)), Ok(Ns(300_000))));
        assert!(parse_ms("0").is_err() && parse_ms("-1").is_err() && parse_ms("fast").is_err());
    }

    #[test]
    fn anything_else_is_refused() {
        for text in ["10", "a..b", "5..3", "3..3", "1h..2h", "-1..2", "1e3..", "...", "99999999999999999999..", "999999999999999999s.."] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
