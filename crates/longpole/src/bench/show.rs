//! Results as what a report says of them.

use longpole_analysis::{MeasuredPeaks, PeakKind};
use longpole_bench::protocol::{Benchmark, L2, List, Method, StoppedBy};
use longpole_bench::results::{KeyResult, Results};
use longpole_report::{BenchList, BenchListed, BenchReport, BenchRow, BenchShare, BenchSource, redact, redact_string};
use longpole_stats::{median, relative_spread};

/// Picoseconds in a second.
const PS: f64 = 1e12;

pub(crate) fn l2(l2: L2) -> &'static str {
    match l2 {
        L2::Cold => "cold",
        L2::Warm => "warm",
    }
}

pub(crate) fn method(method: Method) -> &'static str {
    match method {
        Method::Events => "events",
        Method::Graph => "graph",
    }
}

fn stopped_by(reason: StoppedBy) -> &'static str {
    match reason {
        StoppedBy::Precise => "precise",
        StoppedBy::Time => "time",
        StoppedBy::Count => "count",
    }
}

/// A foreign text without what is private.
fn shown(text: &str) -> String {
    redact(text).into_owned()
}

/// Where and with what something was measured.
pub(crate) fn source(results: &Results, path: Option<&str>) -> BenchSource {
    let device = results.device.as_ref();
    let clocks = results.clocks;
    BenchSource {
        suite: shown(&results.suite.name),
        suite_version: results.suite.version.as_deref().map(shown),
        device: device.map(|device| shown(&device.name)),
        driver: results.driver.as_deref().map(shown),
        cuda: device.and_then(|device| device.cuda.as_deref()).map(shown),
        sm_clock_mhz: match (clocks.sm_mhz, clocks.sm_low_mhz, clocks.sm_high_mhz) {
            (Some(median), Some(low), Some(high)) => Some((median, low, high)),
            _ => None,
        },
        memory_clock_mhz: clocks.memory_mhz,
        date: shown(&results.date),
        revision: results.git.as_ref().map(|git| shown(&git.revision)),
        dirty: results.git.as_ref().and_then(|git| git.dirty),
        path: path.map(shown),
        complete: results.complete,
    }
}

/// The matrix rate that shares are of: that of the benchmark's own type of number; where the suite does not say that, bf16's if it was
/// measured, else the highest. A type that was not measured has no share.
fn flops_peak(peaks: &MeasuredPeaks, dtype: Option<&str>) -> Option<(PeakKind, u64)> {
    if let Some(dtype) = dtype {
        return peaks.flops_per_s.iter().find(|(kind, _)| kind.name() == dtype).copied();
    }
    let bf16 = peaks.flops_per_s.iter().find(|(kind, _)| *kind == PeakKind::Bf16);
    bf16.or_else(|| peaks.flops_per_s.iter().max_by_key(|(_, rate)| *rate)).copied()
}

/// The larger of the two shares: what holds a benchmark back is more likely that one.
fn share(bytes_per_s: Option<f64>, flops_per_s: Option<f64>, dtype: Option<&str>, peaks: &MeasuredPeaks) -> Option<BenchShare> {
    let of_memory = bytes_per_s.zip(peaks.memory_bytes_per_s).map(|(rate, peak)| (rate / peak as f64, "memory"));
    let of_math = flops_per_s.zip(flops_peak(peaks, dtype)).map(|(rate, (kind, peak))| (rate / peak as f64, kind.name()));
    let larger = match (of_memory, of_math) {
        (Some(memory), Some(math)) => Some(if math.0 > memory.0 { math } else { memory }),
        (memory, math) => memory.or(math),
    };
    larger.filter(|(fraction, _)| fraction.is_finite()).map(|(fraction, of)| BenchShare { fraction, of: of.to_owned() })
}

fn row(result: &KeyResult, peaks: Option<&MeasuredPeaks>) -> BenchRow {
    let times: Vec<i64> = result.samples.iter().filter_map(|sample| i64::try_from(sample.time_ps).ok()).collect();
    let median_ps = median(&times).filter(|&median| median > 0);
    let rate = |amount: Option<u64>| amount.zip(median_ps).map(|(amount, ps)| amount as f64 / ps as f64 * PS);
    let (bytes_per_s, flops_per_s) = (rate(result.bytes), rate(result.flops));
    let is_known = result.samples.iter().any(|sample| sample.throttled.is_some());
    let throttled = result.samples.iter().filter(|sample| sample.throttled == Some(true)).count() as u64;
    BenchRow {
        key: result.key.as_str().to_owned(),
        median_ps,
        spread_fraction: relative_spread(&times),
        samples: times.len() as u64,
        processes: result.processes() as u64,
        throttled: is_known.then_some(throttled),
        bytes: result.bytes,
        flops: result.flops,
        bytes_per_s,
        flops_per_s,
        peak: peaks.and_then(|peaks| share(bytes_per_s, flops_per_s, result.dtype.as_deref(), peaks)),
        method: Some(method(result.method)),
        l2: Some(l2(result.l2)),
        correct: result.correct,
        stopped_by: result.stopped_by.map(stopped_by),
        sm_clock_mhz: result.clocks().sm_mhz,
        failed: None,
        notes: result.notes.iter().map(|note| shown(note)).collect(),
    }
}

/// The report of a run. Benchmarks that failed stand at the end.
pub(crate) fn report(results: &Results, path: Option<&str>, peaks: Option<&MeasuredPeaks>) -> BenchReport {
    let measured = results.results.iter().map(|result| row(result, peaks));
    let failed = results.failed.iter().map(|failed| BenchRow {
        key: failed.key.as_str().to_owned(),
        failed: Some(shown(&failed.message)),
        ..BenchRow::default()
    });
    BenchReport {
        source: source(results, path),
        rows: measured.chain(failed).collect(),
        peaks: peaks.map(|peaks| shown(&peaks.source)),
        notes: Vec::new(),
    }
}

/// What a suite can measure.
pub(crate) fn list(list: &List, chosen: &[&Benchmark]) -> BenchList {
    let rows = chosen.iter().map(|benchmark| {
        let (mut model, mut op, mut phase) = (benchmark.model.clone(), benchmark.op.clone(), benchmark.phase.clone());
        [&mut model, &mut op].into_iter().chain(phase.as_mut()).for_each(redact_string);
        BenchListed {
            key: benchmark.key.as_str().to_owned(),
            model,
            op,
            phase,
            shape: benchmark.shape.as_ref().map(|shape| shape.iter().map(|(name, &size)| (shown(name), size)).collect()),
            bytes: benchmark.bytes,
            flops: benchmark.flops,
        }
    });
    BenchList {
        suite: shown(&list.suite.name),
        suite_version: list.suite.version.as_deref().map(shown),
        rows: rows.collect(),
        total: list.benchmarks.len() as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_what_holds_back() {
        let peaks = MeasuredPeaks {
            memory_bytes_per_s: Some(4_000_000_000_000),
            flops_per_s: vec![(PeakKind::Fp8, 1_400), (PeakKind::Bf16, 700)],
            ..MeasuredPeaks::default()
        };
        let of_type = |bytes, flops, dtype| share(bytes, flops, dtype, &peaks).map(|share| (share.fraction, share.of));
        let of = |bytes, flops| of_type(bytes, flops, None);
        assert_eq!(of(Some(2e12), Some(70.0)), Some((0.5, "memory".to_owned())));
        assert_eq!(of(Some(2e11), Some(630.0)), Some((0.9, "bf16".to_owned())));
        assert_eq!(of_type(None, Some(700.0), Some("fp8")), Some((0.5, "fp8".to_owned())));
        assert_eq!(of_type(Some(2e12), Some(700.0), Some("int8")), Some((0.5, "memory".to_owned())));
        assert_eq!(of(None, Some(630.0)), Some((0.9, "bf16".to_owned())));
        assert_eq!(of(None, None), None);
    }
}
