//! What holds a kernel back, in one word.
//!
//! The rules, in order; the first that holds decides. They are those of ncu's speed-of-light rule, so that the two agree.
//!
//! 1. Memory or SM throughput was not collected: no verdict, since either could be the bottleneck.
//! 2. Both are under 60 % of peak: the kernel is *too small* if its grid is less than one wave, else *latency bound*. Ranges
//!    and graphs have no grid of their own and are never too small; neither is a kernel whose waves were not collected.
//! 3. The two are less than 10 points apart: *balanced*.
//! 4. The higher one is the bottleneck: *memory bound* or *compute bound*. Over 80 % it is near its peak, which is said.

use super::thresholds::{BALANCED_POINTS, BUSY_PCT, FULL_WAVE, NEAR_PEAK_PCT};
use super::types::{Verdict, VerdictKind};
use super::words::{percent, waves as waves_text};

/// The verdict from memory and SM throughput (percent of peak) and waves.
pub(crate) fn verdict(memory_pct: Option<f64>, sm_pct: Option<f64>, waves: Option<f64>) -> Option<Verdict> {
    let (memory, sm) = (memory_pct?, sm_pct?);
    let kind = kind(memory, sm, waves);
    let figures = format!("memory {} and SM {} of peak", percent(memory), percent(sm));
    let because = match kind {
        VerdictKind::TooSmall => {
            let waves = waves_text(waves.unwrap_or_default());
            format!("{figures}, both under {BUSY_PCT} %; {waves} waves: the grid does not fill the device once")
        }
        VerdictKind::LatencyBound => match waves {
            Some(waves) => format!("{figures}, both under {BUSY_PCT} %; {} waves", waves_text(waves)),
            None => format!("{figures}, both under {BUSY_PCT} %"),
        },
        VerdictKind::Balanced => format!("{figures}, less than {BALANCED_POINTS} points apart{}", near_peak(memory.max(sm))),
        VerdictKind::MemoryBound | VerdictKind::ComputeBound => {
            format!("{figures}, {:.0} points apart{}", (memory - sm).abs(), near_peak(memory.max(sm)))
        }
    };
    Some(Verdict { kind, because })
}

/// The word alone.
pub(crate) fn kind(memory_pct: f64, sm_pct: f64, waves: Option<f64>) -> VerdictKind {
    if memory_pct < BUSY_PCT && sm_pct < BUSY_PCT {
        if waves.is_some_and(|waves| waves < FULL_WAVE) { VerdictKind::TooSmall } else { VerdictKind::LatencyBound }
    } else if (memory_pct - sm_pct).abs() < BALANCED_POINTS {
        VerdictKind::Balanced
    } else if memory_pct > sm_pct {
        VerdictKind::MemoryBound
    } else {
        VerdictKind::ComputeBound
    }
}

fn near_peak(higher: f64) -> String {
    if higher > NEAR_PEAK_PCT { format!("; over {NEAR_PEAK_PCT} %: near the peak") } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(memory: f64, sm: f64, waves: f64) -> (VerdictKind, String) {
        let verdict = verdict(Some(memory), Some(sm), Some(waves)).unwrap();
        (verdict.kind, verdict.because)
    }

    #[test]
    fn each_verdict_and_its_near_miss() {
        // Under one wave, and just one.
        assert_eq!(of(55.75, 3.38, 0.99).0, VerdictKind::TooSmall);
        assert_eq!(of(55.75, 3.38, 1.0).0, VerdictKind::LatencyBound);
        // Just under 60 % on both sides, and at it on either.
        assert_eq!(of(59.99, 59.99, 2.0).0, VerdictKind::LatencyBound);
        assert_eq!(of(60.0, 50.01, 2.0).0, VerdictKind::Balanced);
        assert_eq!(of(50.01, 60.0, 2.0).0, VerdictKind::Balanced);
        // Ten points apart, either way.
        assert_eq!(of(60.0, 50.0, 2.0).0, VerdictKind::MemoryBound);
        assert_eq!(of(50.0, 60.0, 2.0).0, VerdictKind::ComputeBound);
        // Small, but busy all the same.
        assert_eq!(of(90.0, 20.0, 0.5).0, VerdictKind::MemoryBound);
    }

    #[test]
    fn a_verdict_quotes_its_figures() {
        let small = "memory 55.8 % and SM 3.4 % of peak, both under 60 %; 0.07 waves: the grid does not fill the device once";
        assert_eq!(of(55.75, 3.38, 0.072).1, small);
        assert_eq!(of(53.42, 49.01, 141.536).1, "memory 53.4 % and SM 49.0 % of peak, both under 60 %; 141.5 waves");
        assert_eq!(of(78.06, 33.23, 2.3).1, "memory 78.1 % and SM 33.2 % of peak, 45 points apart");
        assert_eq!(of(81.0, 33.0, 2.3).1, "memory 81.0 % and SM 33.0 % of peak, 48 points apart; over 80 %: near the peak");
        assert_eq!(of(80.0, 75.0, 2.3).1, "memory 80.0 % and SM 75.0 % of peak, less than 10 points apart");
    }

    #[test]
    fn without_both_figures_there_is_no_verdict_and_without_waves_nothing_is_too_small() {
        assert_eq!(verdict(Some(95.0), None, Some(2.0)), None);
        assert_eq!(verdict(None, Some(95.0), Some(2.0)), None);
        let verdict = verdict(Some(5.0), Some(3.0), None).unwrap();
        assert_eq!(
            (verdict.kind, verdict.because.as_str()),
            (VerdictKind::LatencyBound, "memory 5.0 % and SM 3.0 % of peak, both under 60 %")
        );
    }
}
