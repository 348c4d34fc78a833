//! Two sides compared.

use statrs::distribution::{ContinuousCDF as _, StudentsT};

use crate::centre::Centre;
use crate::quantile::median;

/// When a difference is one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rules {
    /// Probability that the interval holds the true ratio, below 1.
    pub confidence: f64,
    /// What two recordings of the same may differ by, as a share: no smaller difference is a verdict.
    pub floor: f64,
    /// Differences up to this share are none.
    pub same_within: f64,
}

/// By what factor idle time that the host causes differs between two recordings of the same program, with room to spare: in eight fresh
/// processes each on one H200 the medians differed by up to 1.7 (`tests/data/h200_steps.json`).
const HOST_FACTOR: f64 = 2.0;

impl Rules {
    /// For device work of two recordings: 99.5 %; 1 % between two runs of the same program on one device (eight processes each on one H200
    /// differed by 0.15 % at most; clocks and temperature of a less steady machine do more); the same within 3 %.
    pub const DEVICE_TIME: Self = Self { confidence: 0.995, floor: 0.01, same_within: 0.03 };

    /// For figures of which the host causes a share (0..1): the idle time of a step that waits for its launches. Between two runs of the same
    /// program that share may be twice as long, which no spread inside one of them shows.
    pub fn with_host_share(host_share: f64) -> Self {
        let most = 1.0 + (HOST_FACTOR - 1.0) * host_share.clamp(0.0, 1.0);
        Self { floor: (1.0 + Self::DEVICE_TIME.floor) * most - 1.0, ..Self::DEVICE_TIME }
    }
}

/// Data that cannot show a smaller change than this shows none worth a number.
const MOST_EFFECT: f64 = 10.0;

/// Where a side holds zeros, this share of the larger median is added to every sample of both, so that their logarithms exist. Changes far
/// below that share of it are then not seen, and are not worth seeing.
const SHARE_FOR_ZERO: f64 = 0.01;

/// What is said of two sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// The second takes less.
    Faster,
    /// The second takes more.
    Slower,
    /// They are equal as far as it matters.
    Same,
    /// The data cannot tell.
    Ambiguous,
}

impl Verdict {
    /// A stable code for it, also what is printed.
    pub fn code(self) -> &'static str {
        match self {
            Self::Faster => "FASTER",
            Self::Slower => "SLOWER",
            Self::Same => "SAME",
            Self::Ambiguous => "AMBIGUOUS",
        }
    }
}

/// Two sides compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// Median of the first side.
    pub before: i64,
    /// Median of the second.
    pub after: i64,
    /// The second over the first, by their medians. Absent where one of them holds a time of zero or less.
    pub ratio: Option<f64>,
    /// The interval that the true ratio of the centres lies in. Absent like the ratio, where a side has one sample, and where it reaches further than
    /// tenfold.
    pub interval: Option<(f64, f64)>,
    /// The smallest increase that data like this can show, as a share; [`Self::smallest_decrease`] is the other way. Absent like the interval.
    pub smallest_effect: Option<f64>,
    /// What follows.
    pub verdict: Verdict,
}

/// Whether the second side takes more than a share more than the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Excess {
    /// It does not, as far as the data shows.
    Within,
    /// The data cannot tell.
    Unclear,
    /// It does: the whole interval lies beyond, by more than two recordings may differ.
    Beyond,
}

impl Comparison {
    /// The smallest decrease that data like this can show, as a share: the inverse factor of the smallest increase.
    pub fn smallest_decrease(&self) -> Option<f64> {
        self.smallest_effect.map(|effect| effect / (1.0 + effect))
    }

    /// Whether the second side is slower by more than `share` (0.03 for 3 %), which is what a limit on a regression asks. Stricter than
    /// [`Verdict::Slower`], which only asks whether it is slower at all.
    pub fn slower_by(&self, share: f64) -> Excess {
        let limit = share.max(0.0).ln_1p();
        let (Some(ratio), Some((low, high)), Some(effect)) = (self.ratio, self.interval, self.smallest_effect) else {
            return match self.verdict {
                // Times of zero have no ratio, and an interval that is too wide to be given belongs to a change of more than tenfold here;
                // that one side takes more is shown all the same, and the medians say by how much.
                Verdict::Slower if self.after as f64 > self.before as f64 * (1.0 + share) => Excess::Beyond,
                Verdict::Faster | Verdict::Same | Verdict::Slower => Excess::Within,
                Verdict::Ambiguous => Excess::Unclear,
            };
        };
        let (low, high) = (low.ln(), high.ln());
        // The smallest effect is half the interval and the floor.
        let floor = (effect.ln_1p() - (high - low) / 2.0).max(0.0);
        if low - floor > limit {
            Excess::Beyond
        } else if high + floor <= limit || (self.verdict != Verdict::Ambiguous && ratio.ln() <= limit) {
            Excess::Within
        } else {
            Excess::Unclear
        }
    }
}

/// Compares two sides, each in the order of time. `None` when one of them is empty.
pub fn compare(before: &[i64], after: &[i64], rules: &Rules) -> Option<Comparison> {
    let (from, to) = (median(before)?, median(after)?);
    let unknown = Comparison { before: from, after: to, ratio: None, interval: None, smallest_effect: None, verdict: Verdict::Ambiguous };
    let are_equal = before == after;
    if before.iter().chain(after).any(|&value| value < 0) {
        return Some(Comparison { verdict: if are_equal { Verdict::Same } else { Verdict::Ambiguous }, ..unknown });
    }
    if before.iter().chain(after).any(|&value| value == 0) {
        // Zero has no logarithm, and a ratio to it no meaning; which side takes more can still be told.
        let least = (from.max(to) as f64 * SHARE_FOR_ZERO).ceil() as i64;
        let lifted = |values: &[i64]| values.iter().map(|&value| value.saturating_add(least.max(1))).collect::<Vec<i64>>();
        let verdict = compare(&lifted(before), &lifted(after), rules)?.verdict;
        return Some(Comparison { verdict, ..unknown });
    }
    let logs = |values: &[i64]| values.iter().map(|&value| (value as f64).ln()).collect::<Vec<f64>>();
    let (a, b) = (logs(before), logs(after));
    let (Some(a), Some(b)) = (Centre::of(&a), Centre::of(&b)) else {
        let ratio = Some(to as f64 / from as f64);
        return Some(Comparison { ratio, verdict: if are_equal { Verdict::Same } else { Verdict::Ambiguous }, ..unknown });
    };
    let (change, reach) = (b.at - a.at, reach(&a, &b, rules.confidence));
    let (low, high) = (change - reach, change + reach);
    let (floor, same) = (rules.floor.ln_1p(), rules.same_within.ln_1p());
    let verdict = if are_equal {
        Verdict::Same
    } else if high < -floor {
        Verdict::Faster
    } else if low > floor {
        Verdict::Slower
    } else if low - floor >= -same && high + floor <= same {
        Verdict::Same
    } else {
        Verdict::Ambiguous
    };
    let shows = floor + reach <= MOST_EFFECT.ln_1p();
    Some(Comparison {
        ratio: Some(to as f64 / from as f64),
        interval: shows.then(|| (low.exp(), high.exp())),
        smallest_effect: shows.then(|| (floor + reach).exp_m1()),
        verdict,
        ..unknown
    })
}

/// Half the length of the interval of the difference of two centres: Student's t times the error, with Welch's degrees of freedom.
fn reach(a: &Centre, b: &Centre, confidence: f64) -> f64 {
    let variance = a.variance + b.variance;
    if variance <= 0.0 {
        return 0.0;
    }
    let freedom = variance * variance / (a.variance * a.variance / a.freedom + b.variance * b.variance / b.freedom);
    let factor = StudentsT::new(0.0, 1.0, freedom.max(1.0)).map_or(f64::INFINITY, |t| t.inverse_cdf(0.5 + confidence / 2.0));
    factor * variance.sqrt()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn verdict(before: &[i64], after: &[i64]) -> Verdict {
        compare(before, after, &Rules::DEVICE_TIME).unwrap().verdict
    }

    #[test]
    fn one_sample_never_decides() {
        let result = compare(&[100], &[50], &Rules::DEVICE_TIME).unwrap();
        assert_eq!((result.verdict, result.ratio, result.interval), (Verdict::Ambiguous, Some(0.5), None));
        assert_eq!(verdict(&[100], &[50, 51, 50, 51]), Verdict::Ambiguous);
        assert_eq!(verdict(&[100], &[100]), Verdict::Same, "the same number is the same");
        assert!(compare(&[], &[1], &Rules::DEVICE_TIME).is_none());
    }

    #[test]
    fn a_limit_is_broken_when_the_whole_interval_is_beyond_it() {
        let before = [1000, 1001, 1000, 999, 1000];
        let slower_by = |after: &[i64], share| compare(&before, after, &Rules::DEVICE_TIME).unwrap().slower_by(share);
        let six = [1060, 1061, 1060, 1059, 1060];
        assert_eq!(
            (slower_by(&six, 0.03), slower_by(&six, 0.055), slower_by(&six, 0.1)),
            (Excess::Beyond, Excess::Unclear, Excess::Within)
        );
        assert_eq!(slower_by(&before, 0.0), Excess::Within, "the same numbers are no regression");
        assert_eq!(slower_by(&[900, 901, 900, 899, 900], 0.0), Excess::Within);
        assert_eq!(slower_by(&[700, 1300, 900, 2000, 1500], 0.1), Excess::Unclear);
        assert_eq!(slower_by(&[2000], 0.1), Excess::Unclear, "one step never decides");
        let host = compare(&before, &[1400, 1401, 1400, 1399, 1400], &Rules::with_host_share(0.9)).unwrap();
        assert_eq!(host.slower_by(0.03), Excess::Unclear, "a host may take that much longer the next time");
        let zeros = compare(&[0, 0, 0], &[5, 5, 5], &Rules::DEVICE_TIME).unwrap();
        assert_eq!(zeros.slower_by(0.5), Excess::Beyond);
        let wide = compare(&[1, 30, 2, 20, 5], &[900_000, 20_000_000, 500_000, 9_000_000, 1_000_000], &Rules::DEVICE_TIME).unwrap();
        assert_eq!((wide.verdict, wide.interval, wide.slower_by(0.5)), (Verdict::Slower, None, Excess::Beyond));
    }

    #[test]
    fn zero_and_less_have_no_ratio() {
        let result = compare(&[0, 0, 0], &[5, 5, 5], &Rules::DEVICE_TIME).unwrap();
        assert_eq!((result.verdict, result.ratio), (Verdict::Slower, None));
        assert_eq!(verdict(&[5, 5, 0, 5], &[0, 0, 5, 0]), Verdict::Ambiguous);
        assert_eq!(verdict(&[0, 0], &[0, 0]), Verdict::Same);
        assert_eq!(verdict(&[-5, 7], &[-5, 8]), Verdict::Ambiguous);
    }

    #[test]
    fn the_floor_is_what_runs_differ_by() {
        let before = [1000, 1001, 1000, 999, 1000];
        assert_eq!(verdict(&before, &[1008, 1009, 1008, 1007, 1008]), Verdict::Same);
        assert_eq!(verdict(&before, &[1060, 1061, 1060, 1059, 1060]), Verdict::Slower);
        assert_eq!(verdict(&before, &[940, 941, 940, 939, 940]), Verdict::Faster);
        let host = Rules::with_host_share(0.9);
        assert!((host.floor - (1.01 * 1.9 - 1.0)).abs() < 1e-12);
        assert_eq!(compare(&before, &[700, 701, 700, 699, 700], &host).unwrap().verdict, Verdict::Ambiguous);
        assert_eq!(compare(&before, &[400, 401, 400, 399, 400], &host).unwrap().verdict, Verdict::Faster);
    }

    #[test]
    fn an_interval_by_hand() {
        // Two samples a side, none trimmed: log distances d = ln(1.1), error squared of a side = (d^2 / 2) / 2.
        let result = compare(&[100, 110], &[100, 110], &Rules { confidence: 0.9, floor: 0.0, same_within: 0.0 }).unwrap();
        let error = (1.1_f64.ln().powi(2) / 2.0).sqrt();
        // t of two degrees of freedom at 95 %: 2.919986.
        let (low, high) = result.interval.unwrap();
        assert!((high.ln() - 2.919_986 * error).abs() < 1e-6 && (low.ln() + high.ln()).abs() < 1e-9, "{low} {high}");
        assert!((result.smallest_effect.unwrap() - (high - 1.0)).abs() < 1e-9);
        assert!((result.smallest_decrease().unwrap() - (1.0 - low)).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn swapping_the_sides_swaps_the_verdict(
            a in prop::collection::vec(1_i64..1_000_000_000, 1..40),
            b in prop::collection::vec(1_i64..1_000_000_000, 1..40),
        ) {
            let swapped = match verdict(&b, &a) {
                Verdict::Faster => Verdict::Slower,
                Verdict::Slower => Verdict::Faster,
                other => other,
            };
            prop_assert_eq!(verdict(&a, &b), swapped);
            prop_assert_eq!(verdict(&a, &a), Verdict::Same);
        }

        #[test]
        fn no_times_panic(a in prop::collection::vec(any::<i64>(), 0..40), b in prop::collection::vec(any::<i64>(), 0..40)) {
            let _ = compare(&a, &b, &Rules::with_host_share(f64::NAN));
        }
    }
}
