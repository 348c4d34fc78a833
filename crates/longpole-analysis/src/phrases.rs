//! Numbers and names as sentences write them: ASCII, one line, units on every number.

use longpole_trace::Ns;

/// A duration with the unit that suits it.
pub(crate) fn time(ns: Ns) -> String {
    let value = ns.get();
    let magnitude = value.unsigned_abs();
    match magnitude {
        0..1_000 => format!("{value} ns"),
        1_000..1_000_000 => format!("{:.1} us", value as f64 / 1e3),
        1_000_000..10_000_000_000 => {
            let ms = value as f64 / 1e6;
            if magnitude >= 1_000_000_000 { format!("{} ms", count(ms.round() as u64)) } else { format!("{ms:.1} ms") }
        }
        _ => format!("{:.1} s", value as f64 / 1e9),
    }
}

/// A whole number with separators.
pub(crate) fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `part` of `whole` in percent; absent when there is no whole.
pub(crate) fn percent(part: Ns, whole: Ns) -> Option<String> {
    (whole > Ns::ZERO).then(|| percent_of(fraction(part, whole)))
}

/// A fraction in percent.
pub(crate) fn percent_of(fraction: f64) -> String {
    let percent = fraction * 100.0;
    if percent > 0.0 && percent < 0.1 {
        "under 0.1 %".to_owned()
    } else if percent < 9.95 {
        format!("{percent:.1} %")
    } else {
        format!("{percent:.0} %")
    }
}

/// A fraction in percent that keeps a digit or two below a tenth of a percent.
pub(crate) fn fine_percent(fraction: f64) -> String {
    let percent = fraction * 100.0;
    if percent > 0.0 && percent < 0.005 {
        "under 0.01 %".to_owned()
    } else if percent > 0.0 && percent < 0.095 {
        format!("{percent:.2} %")
    } else {
        percent_of(fraction)
    }
}

/// `part / whole`, 0 when there is no whole.
pub(crate) fn fraction(part: Ns, whole: Ns) -> f64 {
    if whole > Ns::ZERO { part.get() as f64 / whole.get() as f64 } else { 0.0 }
}

/// Text as one line.
pub(crate) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A name cut to fit into a sentence.
pub(crate) fn clip(name: &str) -> String {
    clip_to(name, 32)
}

/// A kernel's short name cut to fit into a sentence: a little longer, since its end tells variants apart.
pub(crate) fn clip_kernel(name: &str) -> String {
    clip_to(name, 40)
}

fn clip_to(name: &str, limit: usize) -> String {
    let name = one_line(name);
    let length = name.chars().count();
    if length <= limit {
        return name;
    }
    // Names that begin alike are told apart by their ends.
    let tail = limit / 3;
    let head: String = name.chars().take(limit - 3 - tail).collect();
    let tail: String = name.chars().skip(length - tail).collect();
    format!("{}...{}", head.trim_end_matches(['.', ' ']), tail.trim_start_matches(['.', ' ']))
}

/// A number with its noun: `1 call`, `12 calls`.
pub(crate) fn counted(number: u64, noun: &str) -> String {
    match (number, noun.strip_suffix("ch")) {
        (1, _) => format!("1 {noun}"),
        (_, Some(_)) => format!("{} {noun}es", count(number)),
        _ => format!("{} {noun}s", count(number)),
    }
}

/// Joins as many items as a line of the report has room for after `head`: at least one, at most `most`.
pub(crate) fn list(head: &str, items: impl Iterator<Item = String>, most: usize) -> String {
    const LINE: usize = 190;
    let mut line = head.to_owned();
    for (at, item) in items.take(most).enumerate() {
        if at > 0 && line.chars().count() + item.chars().count() + 2 > LINE {
            break;
        }
        if at > 0 {
            line.push_str(", ");
        }
        line.push_str(&item);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_the_unit_that_suits_them() {
        let cases = [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_600, "1.6 us"),
            (41_600_000, "41.6 ms"),
            (1_257_839_000, "1,258 ms"),
            (43_425_000_000, "43.4 s"),
        ];
        for (ns, expected) in cases {
            assert_eq!(time(Ns(ns)), expected);
        }
    }

    #[test]
    fn shares_are_not_rounded_to_nothing() {
        assert_eq!(percent(Ns(1), Ns(100_000)).as_deref(), Some("under 0.1 %"));
        assert_eq!(percent(Ns(88), Ns(100)).as_deref(), Some("88 %"));
        assert_eq!(percent(Ns(25), Ns(1000)).as_deref(), Some("2.5 %"));
        assert_eq!(percent(Ns(1), Ns(0)), None);
    }

    #[test]
    fn counts_have_separators() {
        assert_eq!([count(7), count(999), count(22_536), count(1_000_000)], ["7", "999", "22,536", "1,000,000"]);
    }

    #[test]
    fn nouns_agree_with_their_number() {
        assert_eq!([counted(1, "call"), counted(0, "call"), counted(1_200, "launch")], ["1 call", "0 calls", "1,200 launches"]);
    }

    #[test]
    fn a_list_stops_where_the_line_is_full_but_keeps_one() {
        let item = || "x".repeat(100);
        assert_eq!(list("head: ", (0..5).map(|_| item()), 3).matches(&item()).count(), 1);
        assert_eq!(list("head: ", ["a", "b", "c"].map(str::to_owned).into_iter(), 2), "head: a, b");
    }

    #[test]
    fn names_are_cut_to_one_short_line() {
        assert_eq!(clip("a\nb"), "a b");
        assert_eq!(clip(&"é".repeat(60)).chars().count(), 32);
        // Both ends stay: what differs may be at either.
        let [input, weight] = ["aten::cudnn_convolution_backward_input", "aten::cudnn_convolution_backward_weight"].map(clip);
        assert_eq!((input.as_str(), weight.as_str()), ("aten::cudnn_convolu...ward_input", "aten::cudnn_convolu...ard_weight"));
    }
}
