//! What `longpole check` answers with: figures beside their limits.

use longpole_trace::Ns;

use crate::units::{bytes, count, decimal, time};

/// An exact decimal: trillionths of whatever it counts. Whole nanoseconds and bytes of 64 bits have room to be summed in it, and so a
/// limit that people write with decimals is compared with them as it is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Amount(i128);

/// Trillionths in one.
const ONE: i128 = 1_000_000_000_000;
/// Digits of a decimal that count.
const DIGITS: usize = 12;

impl Amount {
    /// A whole number.
    pub fn whole(number: impl Into<i128>) -> Self {
        Self(number.into().saturating_mul(ONE))
    }

    /// The nearest trillionth of a number that was not whole to begin with; `None` of what is no number, or beyond all reason.
    pub fn nearest(number: f64) -> Option<Self> {
        let scaled = (number * ONE as f64).round();
        (scaled.abs() < 1e37).then_some(Self(scaled as i128))
    }

    /// A decimal without exponent, times `scale`, over `divisor`. Twelve decimals are exact; finer ones, such as doubles printed in full
    /// have, are rounded half away from zero. `None` where it is no decimal, or too large.
    pub fn decimal(text: &str, scale: i128, divisor: i128) -> Option<Self> {
        let (sign, digits) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || whole.len() > DIGITS + 8 || digits.ends_with('.') || !is_number(whole) || !is_number(fraction) {
            return None;
        }
        let (kept, finer) = fraction.split_at(fraction.len().min(DIGITS));
        let parsed: i128 = format!("{whole}{kept:0<DIGITS$}").parse().ok()?;
        let parsed = parsed.checked_add(i128::from(finer.bytes().next().is_some_and(|digit| digit >= b'5')))?;
        let scaled = parsed.checked_mul(scale)?;
        let (quotient, rest) = (scaled.checked_div(divisor)?, scaled.checked_rem(divisor)?);
        let rounded = quotient.checked_add(i128::from(rest.saturating_mul(2) >= divisor))?;
        Some(Self(sign * rounded))
    }

    /// The sum; the largest there is where it does not fit.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The difference.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// How far it is from 0.
    #[must_use]
    pub fn magnitude(self) -> Self {
        Self(self.0.saturating_abs())
    }

    /// This many of `whole`, to the trillionth, with the sign that the two have together; `None` of nothing.
    pub fn over(self, whole: Self) -> Option<Self> {
        let (quotient, rest) = (self.0.checked_div(whole.0)?, self.0 % whole.0);
        // What is left over is below the divisor; of large ones the last digits make no difference.
        let shift = if whole.0.unsigned_abs() > (i128::MAX / ONE) as u128 { ONE } else { 1 };
        let fraction = (rest / shift).saturating_mul(ONE).checked_div(whole.0 / shift)?;
        Some(Self(quotient.saturating_mul(ONE).saturating_add(fraction)))
    }

    /// As a number of one unit, nearly.
    pub fn get(self) -> f64 {
        // Of whole numbers exactly, as far as they have a double.
        if self.0 % ONE == 0 { (self.0 / ONE) as f64 } else { self.0 as f64 / ONE as f64 }
    }

    /// The number if it is whole.
    pub fn as_whole(self) -> Option<i64> {
        (self.0 % ONE == 0).then(|| i64::try_from(self.0 / ONE).ok()).flatten()
    }

    fn rounded(self) -> i64 {
        let half = if self.0 < 0 { -ONE / 2 } else { ONE / 2 };
        i64::try_from(self.0.saturating_add(half) / ONE).unwrap_or(if self.0 < 0 { i64::MIN } else { i64::MAX })
    }
}

/// What a figure counts, by the ending of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CheckUnit {
    /// Things, or a number without a unit.
    Number,
    /// `*_ns`: nanoseconds.
    Time,
    /// `*_bytes`: bytes.
    Bytes,
    /// `*_fraction`: 0..1.
    Share,
    /// `*_pct`: percent.
    Percent,
}

impl CheckUnit {
    /// A stable code for it.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Number => "number",
            Self::Time => "ns",
            Self::Bytes => "bytes",
            Self::Share => "fraction",
            Self::Percent => "pct",
        }
    }

    /// An amount as people read it.
    pub fn show(self, amount: Amount) -> String {
        match self {
            Self::Time => time(Ns(amount.rounded())),
            Self::Bytes => bytes(amount.rounded()),
            Self::Share => percent(amount.get() * 100.0),
            Self::Percent => percent(amount.get()),
            Self::Number => match amount.as_whole() {
                Some(number) if number < 0 => format!("-{}", count(number.unsigned_abs())),
                Some(number) => count(number.unsigned_abs()),
                None => decimal(amount.get()),
            },
        }
    }

    /// An amount in full, where the short form would look like another one.
    fn show_whole(self, amount: Amount) -> String {
        match self {
            Self::Time => format!("{} ns", amount.get()),
            Self::Bytes => format!("{} B", amount.get()),
            Self::Share => format!("{} %", Amount(amount.0.saturating_mul(100)).get()),
            Self::Percent => format!("{} %", amount.get()),
            Self::Number => amount.get().to_string(),
        }
    }

    /// A figure and its limit, told apart however close they are.
    pub(crate) fn show_both(self, figure: Amount, limit: Amount) -> (String, String) {
        let (a, b) = (self.show(figure), self.show(limit));
        if a == b && figure != limit { (self.show_whole(figure), self.show_whole(limit)) } else { (a, b) }
    }
}

fn percent(value: f64) -> String {
    if value != 0.0 && value.abs() < 0.05 { format!("{value:.3} %") } else { format!("{value:.1} %") }
}

/// Which way a limit holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CheckBound {
    /// The figure may be this at most.
    Max,
    /// The figure has to be this at least.
    Min,
    /// The figure may exceed the baseline's by this share at most.
    MaxSlower,
    /// The figure may fall short of the baseline's by this share at most.
    MaxDrop,
}

impl CheckBound {
    /// The key of the budget, which is also its stable code.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Max => "max",
            Self::Min => "min",
            Self::MaxSlower => "max_slower",
            Self::MaxDrop => "max_drop",
        }
    }
}

/// What came of a limit, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CheckVerdict {
    /// The figure is beyond the limit.
    Broken,
    /// There is no such figure.
    Missing,
    /// The two recordings cannot tell.
    Ambiguous,
    /// Within the limit.
    Ok,
}

impl CheckVerdict {
    /// A stable code for it, also what is printed.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Broken => "BROKEN",
            Self::Missing => "MISSING",
            Self::Ambiguous => "AMBIGUOUS",
            Self::Ok => "ok",
        }
    }
}

/// A limit beside its figure.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckedLimit {
    /// What the budget calls it, or its path.
    pub name: String,
    /// Where the figure stands: `COMMAND.key...` in the document that the command prints with `--json`.
    pub path: String,
    /// What that is divided by: another path, or `steps`.
    pub over: Option<String>,
    /// Line of the budget, from 1.
    pub line: usize,
    /// What the figure and the limit count.
    pub unit: CheckUnit,
    /// Which way the limit holds.
    pub bound: CheckBound,
    /// The limit.
    pub limit: Amount,
    /// The figure; of a regression, the change as a share of the baseline.
    pub value: Option<Amount>,
    /// Of a regression: the figures before and after, and what they count.
    pub change: Option<(CheckUnit, Amount, Amount)>,
    /// Of a regression: what it is compared with, as the budget names it.
    pub baseline: Option<String>,
    /// Of a regression with a spread: the interval of the change, as shares.
    pub interval: Option<(f64, f64)>,
    /// What came of it.
    pub verdict: CheckVerdict,
    /// Whether it lets the check pass.
    pub ok: bool,
    /// Why, where the verdict does not say it all.
    pub reason: Option<String>,
}

impl CheckedLimit {
    /// How far the figure is from its limit, as a share of the limit, whatever the sign of that; below zero where it is broken, absent
    /// where it has no meaning.
    pub fn headroom(&self) -> Option<f64> {
        let value = self.value?;
        let room = match self.bound {
            CheckBound::Max => self.limit.minus(value),
            CheckBound::Min => value.minus(self.limit),
            // Shares of the baseline are distances already.
            CheckBound::MaxSlower => return Some(self.limit.minus(value).get()),
            CheckBound::MaxDrop => return Some(self.limit.plus(value).get()),
        };
        if room == Amount::default() {
            return Some(0.0);
        }
        room.over(self.limit.magnitude()).map(Amount::get)
    }

    /// One sentence: the figure, its limit, and why.
    pub fn sentence(&self) -> String {
        let limit = |figure: Option<Amount>| {
            let shown = figure.map_or_else(|| self.unit.show(self.limit), |figure| self.unit.show_both(figure, self.limit).1);
            match self.bound {
                CheckBound::Max => format!("at most {shown}"),
                CheckBound::Min => format!("at least {shown}"),
                CheckBound::MaxSlower => format!("at most {shown} over the baseline"),
                CheckBound::MaxDrop => format!("at most {shown} under the baseline"),
            }
        };
        let figure = match (self.value, self.change) {
            (Some(value), Some((unit, before, after))) => {
                let sign = if value >= Amount::default() { "+" } else { "" };
                let (before, after) = unit.show_both(before, after);
                format!("{sign}{} ({before} to {after})", self.unit.show_both(value, self.limit).0)
            }
            (Some(value), None) => self.unit.show_both(value, self.limit).0,
            (None, Some((unit, before, after))) => format!("{} to {}", unit.show(before), unit.show(after)),
            (None, None) => "no figure".to_owned(),
        };
        let reason = self.reason.as_ref().map_or_else(String::new, |reason| format!("; {reason}"));
        format!("{}: {figure}, limit {}{reason}", self.name, limit(self.value))
    }
}

impl CheckedLimit {
    /// The path, and what it is divided by.
    pub fn place(&self) -> String {
        self.over.as_ref().map_or_else(|| self.path.clone(), |over| format!("{} over {over}", self.path))
    }
}

/// What came of a budget.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckReport {
    /// The budget, as the user named it.
    pub budget: String,
    /// Limits and regressions, the worst first.
    pub limits: Vec<CheckedLimit>,
    /// What else has to be known: settings that differ from a baseline, and the like.
    pub notes: Vec<String>,
}

impl CheckReport {
    /// Puts the worst first: what fails, then by verdict and head-room.
    pub fn sort(&mut self) {
        let room = |limit: &CheckedLimit| limit.headroom().unwrap_or(f64::NEG_INFINITY);
        self.limits.sort_by(|a, b| (a.ok, a.verdict).cmp(&(b.ok, b.verdict)).then(room(a).total_cmp(&room(b))).then(a.line.cmp(&b.line)));
    }

    /// Whether every limit holds.
    pub fn is_ok(&self) -> bool {
        self.limits.iter().all(|limit| limit.ok)
    }

    /// `5 limits, 1 broken`.
    pub fn summary(&self) -> String {
        let of = |verdict: CheckVerdict| self.limits.iter().filter(|limit| limit.verdict == verdict).count();
        let mut said = vec![crate::units::plural(self.limits.len() as u64, "limit", "limits")];
        for (verdict, word) in
            [(CheckVerdict::Broken, "broken"), (CheckVerdict::Missing, "without a figure"), (CheckVerdict::Ambiguous, "ambiguous")]
        {
            if of(verdict) > 0 {
                said.push(format!("{} {word}", of(verdict)));
            }
        }
        if of(CheckVerdict::Ok) == self.limits.len() {
            said.push("all hold".to_owned());
        }
        said.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn decimals_are_exact() {
        assert_eq!(Amount::decimal("1.5", 1_000_000, 1), Some(Amount::whole(1_500_000)));
        assert_eq!(Amount::decimal("30", 1, 100), Amount::nearest(0.3));
        assert_eq!(Amount::decimal("-0.25", 4, 1), Some(Amount::whole(-1)));
        for text in ["", ".", "1.", ".5", "1e3", "+1", "--1", "1 000", "0x1", "1.2.3", "1.00000000000x1", "999999999999999999999", "nan"] {
            assert_eq!(Amount::decimal(text, 1, 1), None, "{text}");
        }
    }

    #[test]
    fn finer_decimals_are_rounded() {
        for (text, scale, divisor, expected) in [
            ("0.10382578297194511", 1, 1, "0.103825782972"),
            ("-0.0000000000005", 1, 1, "-0.000000000001"),
            ("0.9999999999999", 1, 1, "1"),
            ("10.382578297194511", 1, 100, "0.103825782972"),
            ("0.00000000000049999", 1, 1, "0"),
        ] {
            let expected = Amount::decimal(expected, 1, 1);
            assert!(expected.is_some() && Amount::decimal(text, scale, divisor) == expected, "{text}");
        }
        assert_eq!(Amount::decimal("0.10382578297194511", 1, 1), Amount::nearest(0.103_825_782_971_945_11), "as a figure is");
    }

    #[test]
    fn shares_of_what_is_below_zero_have_the_right_sign() {
        let over = |a: i64, b: i64| Amount::whole(a).over(Amount::whole(b)).map(Amount::get);
        assert_eq!((over(-5, -10), over(5, -10), over(-15, 10)), (Some(0.5), Some(-0.5), Some(-1.5)));
        assert_eq!((over(1, 0), over(7, i64::MIN)), (None, Some(0.0)));
        let room = |bound, limit: i64, value: i64| {
            let limit = CheckedLimit {
                name: String::new(),
                path: String::new(),
                over: None,
                line: 1,
                unit: CheckUnit::Number,
                bound,
                limit: Amount::whole(limit),
                value: Some(Amount::whole(value)),
                change: None,
                baseline: None,
                interval: None,
                verdict: CheckVerdict::Ok,
                ok: true,
                reason: None,
            };
            limit.headroom()
        };
        assert_eq!((room(CheckBound::Max, -10, -15), room(CheckBound::Max, -10, -5)), (Some(0.5), Some(-0.5)));
        assert_eq!((room(CheckBound::Min, -10, -5), room(CheckBound::Min, -10, -15)), (Some(0.5), Some(-0.5)));
    }

    #[test]
    fn what_is_close_is_told_apart() {
        let share = |value| Amount::nearest(value).unwrap();
        assert_eq!(CheckUnit::Share.show_both(share(0.80004), share(0.8)), ("80.004 %".to_owned(), "80 %".to_owned()));
        assert_eq!(CheckUnit::Share.show_both(share(0.8), share(0.8)), ("80.0 %".to_owned(), "80.0 %".to_owned()));
        assert_eq!(CheckUnit::Number.show(Amount::whole(-1_234)), "-1,234");
        assert_eq!(CheckUnit::Time.show_both(Amount::whole(5_000_001), Amount::whole(5_000_000)).0, "5000001 ns");
    }

    proptest! {
        #[test]
        fn a_ratio_is_what_a_double_says(a in any::<i64>(), b in any::<i64>().prop_filter("of nothing there is no share", |b| *b != 0)) {
            let found = Amount::whole(a).over(Amount::whole(b)).unwrap().get();
            let expected = a as f64 / b as f64;
            prop_assert!((found - expected).abs() <= expected.abs() * 1e-9 + 1e-11, "{found} {expected}");
        }

        #[test]
        fn whole_numbers_come_back(number in any::<i64>()) {
            prop_assert_eq!(Amount::whole(number).as_whole(), Some(number));
        }
    }
}
