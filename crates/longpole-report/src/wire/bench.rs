//! `longpole.bench/1`, `longpole.bench_list/1`, `longpole.bench_compare/1` and `longpole.bench_peaks/1`: documents about benchmarks, so they
//! have no trust and no scope. Times are nanoseconds as everywhere, with picoseconds beside them.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::bench::{BenchCompared, BenchComparison, BenchList, BenchPeaks, BenchReport, BenchRow, BenchSide, BenchSource};

#[derive(Serialize)]
struct SuiteOut<'a> {
    name: &'a str,
    version: Option<&'a str>,
}

#[derive(Serialize)]
struct DeviceOut<'a> {
    name: Option<&'a str>,
    driver: Option<&'a str>,
    cuda: Option<&'a str>,
}

#[derive(Serialize)]
#[expect(clippy::struct_field_names, reason = "the unit is part of a key")]
struct ClocksOut {
    sm_mhz: Option<u32>,
    sm_low_mhz: Option<u32>,
    sm_high_mhz: Option<u32>,
    memory_mhz: Option<u32>,
}

#[derive(Serialize)]
struct GitOut<'a> {
    revision: &'a str,
    dirty: Option<bool>,
}

#[derive(Serialize)]
struct SourceOut<'a> {
    path: Option<&'a str>,
    date: &'a str,
    complete: bool,
    suite: SuiteOut<'a>,
    device: DeviceOut<'a>,
    clocks: ClocksOut,
    git: Option<GitOut<'a>>,
}

fn source(source: &BenchSource) -> SourceOut<'_> {
    SourceOut {
        path: source.path.as_deref(),
        date: &source.date,
        complete: source.complete,
        suite: SuiteOut { name: &source.suite, version: source.suite_version.as_deref() },
        device: DeviceOut { name: source.device.as_deref(), driver: source.driver.as_deref(), cuda: source.cuda.as_deref() },
        clocks: ClocksOut {
            sm_mhz: source.sm_clock_mhz.map(|(median, _, _)| median),
            sm_low_mhz: source.sm_clock_mhz.map(|(_, low, _)| low),
            sm_high_mhz: source.sm_clock_mhz.map(|(_, _, high)| high),
            memory_mhz: source.memory_clock_mhz,
        },
        git: source.revision.as_deref().map(|revision| GitOut { revision, dirty: source.dirty }),
    }
}

/// Picoseconds as whole nanoseconds.
fn ns(ps: i64) -> i64 {
    // The rest alone is rounded: the whole may be as large as a number gets.
    ps / 1000 + (ps % 1000 + ps.signum() * 500) / 1000
}

fn finite(value: Option<f64>) -> Option<f64> {
    value.filter(|value| value.is_finite())
}

#[derive(Serialize)]
struct RowOut<'a> {
    key: &'a str,
    median_ns: Option<i64>,
    median_ps: Option<i64>,
    spread_fraction: Option<f64>,
    samples: u64,
    processes: u64,
    throttled_samples: Option<u64>,
    bytes: Option<u64>,
    flops: Option<u64>,
    bytes_per_s: Option<f64>,
    flops_per_s: Option<f64>,
    peak_fraction: Option<f64>,
    peak_of: Option<&'a str>,
    method: Option<&'static str>,
    l2: Option<&'static str>,
    correct: Option<bool>,
    stopped_by: Option<&'static str>,
    sm_clock_mhz: Option<u32>,
    failed: Option<&'a str>,
    notes: &'a [String],
}

fn row(row: &BenchRow) -> RowOut<'_> {
    RowOut {
        key: &row.key,
        median_ns: row.median_ps.map(ns),
        median_ps: row.median_ps,
        spread_fraction: finite(row.spread_fraction),
        samples: row.samples,
        processes: row.processes,
        throttled_samples: row.throttled,
        bytes: row.bytes,
        flops: row.flops,
        bytes_per_s: finite(row.bytes_per_s),
        flops_per_s: finite(row.flops_per_s),
        peak_fraction: row.peak.as_ref().and_then(|peak| finite(Some(peak.fraction))),
        peak_of: row.peak.as_ref().map(|peak| peak.of.as_str()),
        method: row.method,
        l2: row.l2,
        correct: row.correct,
        stopped_by: row.stopped_by,
        sm_clock_mhz: row.sm_clock_mhz,
        failed: row.failed.as_deref(),
        notes: &row.notes,
    }
}

#[derive(Serialize)]
struct ReportOut<'a> {
    schema: &'static str,
    source: SourceOut<'a>,
    peaks: Option<&'a str>,
    results: Vec<RowOut<'a>>,
    notes: &'a [String],
}

/// The document of `longpole bench run`, with at most `most` benchmarks.
pub fn bench(report: &BenchReport, most: Option<usize>) -> impl Serialize + use<'_> {
    ReportOut {
        schema: "longpole.bench/1",
        source: source(&report.source),
        peaks: report.peaks.as_deref(),
        results: report.rows.iter().take(most.unwrap_or(usize::MAX)).map(row).collect(),
        notes: &report.notes,
    }
}

#[derive(Serialize)]
struct ListedOut<'a> {
    key: &'a str,
    model: &'a str,
    op: &'a str,
    phase: Option<&'a str>,
    shape: Option<BTreeMap<&'a str, u64>>,
    bytes: Option<u64>,
    flops: Option<u64>,
}

#[derive(Serialize)]
struct ListOut<'a> {
    schema: &'static str,
    suite: SuiteOut<'a>,
    total: u64,
    benchmarks: Vec<ListedOut<'a>>,
}

/// The document of `longpole bench list`.
pub fn bench_list(list: &BenchList, most: Option<usize>) -> impl Serialize + use<'_> {
    let listed = list.rows.iter().take(most.unwrap_or(usize::MAX)).map(|row| ListedOut {
        key: &row.key,
        model: &row.model,
        op: &row.op,
        phase: row.phase.as_deref(),
        shape: row.shape.as_ref().map(|shape| shape.iter().map(|(name, size)| (name.as_str(), *size)).collect()),
        bytes: row.bytes,
        flops: row.flops,
    });
    ListOut {
        schema: "longpole.bench_list/1",
        suite: SuiteOut { name: &list.suite, version: list.suite_version.as_deref() },
        total: list.total,
        benchmarks: listed.collect(),
    }
}

#[derive(Serialize)]
struct SideOut {
    median_ns: i64,
    median_ps: i64,
    samples: u64,
    processes: u64,
    throttled_samples: u64,
    sm_clock_mhz: Option<u32>,
}

fn side(side: &BenchSide) -> SideOut {
    SideOut {
        median_ns: ns(side.median_ps),
        median_ps: side.median_ps,
        samples: side.samples,
        processes: side.processes,
        throttled_samples: side.throttled,
        sm_clock_mhz: side.sm_clock_mhz,
    }
}

#[derive(Serialize)]
struct ComparedOut<'a> {
    key: &'a str,
    before: SideOut,
    after: SideOut,
    ratio: Option<f64>,
    ratio_low: Option<f64>,
    ratio_high: Option<f64>,
    smallest_effect_fraction: Option<f64>,
    smallest_decrease_fraction: Option<f64>,
    rounds: u64,
    verdict: &'static str,
    doubt: Option<&'static str>,
    notes: &'a [String],
}

fn compared(row: &BenchCompared) -> ComparedOut<'_> {
    ComparedOut {
        key: &row.key,
        before: side(&row.before),
        after: side(&row.after),
        ratio: finite(row.ratio),
        ratio_low: finite(row.interval.map(|(low, _)| low)),
        ratio_high: finite(row.interval.map(|(_, high)| high)),
        smallest_effect_fraction: finite(row.smallest_effect.map(|(more, _)| more)),
        smallest_decrease_fraction: finite(row.smallest_effect.map(|(_, less)| less)),
        rounds: row.rounds,
        verdict: row.verdict,
        doubt: row.doubt,
        notes: &row.notes,
    }
}

#[derive(Serialize)]
struct UnpairedOut<'a> {
    key: &'a str,
    in_before: bool,
    in_after: bool,
    why: Option<&'a str>,
}

#[derive(Serialize)]
struct CompareOut<'a> {
    schema: &'static str,
    before: SourceOut<'a>,
    after: SourceOut<'a>,
    faster: usize,
    slower: usize,
    same: usize,
    ambiguous: usize,
    results: Vec<ComparedOut<'a>>,
    unpaired: Vec<UnpairedOut<'a>>,
    failed: &'a [String],
    flags: &'a [String],
    measured_again: Option<u64>,
}

/// The document of `longpole bench compare`.
pub fn bench_compare(comparison: &BenchComparison, most: Option<usize>) -> impl Serialize + use<'_> {
    let unpaired = comparison.unpaired.iter().map(|row| UnpairedOut {
        key: &row.key,
        in_before: row.in_before,
        in_after: row.in_after,
        why: row.why.as_deref(),
    });
    CompareOut {
        schema: "longpole.bench_compare/1",
        before: source(&comparison.before),
        after: source(&comparison.after),
        faster: comparison.count_of("FASTER"),
        slower: comparison.count_of("SLOWER"),
        same: comparison.count_of("SAME"),
        ambiguous: comparison.count_of("AMBIGUOUS"),
        results: comparison.rows.iter().take(most.unwrap_or(usize::MAX)).map(compared).collect(),
        unpaired: unpaired.collect(),
        failed: &comparison.failed,
        flags: &comparison.flags,
        measured_again: comparison.again.map(|(keys, _)| keys),
    }
}

#[derive(Serialize)]
struct PeakOut<'a> {
    kind: &'static str,
    dtype: Option<&'a str>,
    value_per_s: f64,
}

#[derive(Serialize)]
struct PeaksOut<'a> {
    schema: &'static str,
    path: Option<&'a str>,
    device: DeviceOut<'a>,
    peaks: Vec<PeakOut<'a>>,
}

/// The document of `longpole bench peaks`.
pub fn bench_peaks(peaks: &BenchPeaks) -> impl Serialize + use<'_> {
    let rows = peaks.rows.iter().map(|peak| PeakOut { kind: peak.kind, dtype: peak.dtype.as_deref(), value_per_s: peak.value });
    PeaksOut {
        schema: "longpole.bench_peaks/1",
        path: peaks.path.as_deref(),
        device: DeviceOut { name: peaks.device.as_deref(), driver: peaks.driver.as_deref(), cuda: None },
        peaks: rows.collect(),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn picoseconds_round_to_the_nearest() {
        assert_eq!([0, 499, 500, 1_499, -499, -500].map(super::ns), [0, 0, 1, 1, 0, -1]);
        assert_eq!([i64::MAX, i64::MIN].map(super::ns), [9_223_372_036_854_776, -9_223_372_036_854_776]);
    }
}
