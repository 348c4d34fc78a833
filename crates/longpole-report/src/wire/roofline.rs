//! `longpole.roofline/1`

use std::collections::BTreeMap;

use longpole_analysis::{NoPeaks, PeakKind, Peaks, Roof, RooflineRow, RooflineTable};
use serde::Serialize;

use super::ns;
use crate::header::Header;
use crate::views::no_peaks;

#[derive(Serialize)]
pub(super) struct PeaksOut<'a> {
    name: &'a str,
    source: &'a str,
    memory_bytes_per_s: u64,
    cache_bytes: Option<u64>,
    flops_per_s: BTreeMap<&'static str, u64>,
}

#[derive(Serialize)]
struct RowOut<'a> {
    name: &'a str,
    shapes: Option<&'a str>,
    types: Option<&'a str>,
    kernel: Option<&'a str>,
    family: Option<&'static str>,
    calls: Option<u64>,
    activities: u64,
    device_ns: i64,
    share_fraction: Option<f64>,
    dtype: Option<&'static str>,
    flops_per_call: Option<u64>,
    flops_per_call_most: Option<u64>,
    bytes_per_call: Option<u64>,
    bytes_per_call_most: Option<u64>,
    floor_per_call_ns: Option<i64>,
    compute_floor_per_call_ns: Option<i64>,
    memory_floor_per_call_ns: Option<i64>,
    roof: Option<&'static str>,
    peak: Option<&'static str>,
    floor_ns: Option<i64>,
    above_floor_ns: Option<i64>,
    time_over_floor: Option<f64>,
    flops_per_s: Option<f64>,
    bytes_per_s: Option<f64>,
    verdict: Option<&'static str>,
    faster_than: Option<&'static str>,
    unknown: Option<&'static str>,
}

#[derive(Serialize)]
struct Unknown {
    reason: &'static str,
    rows: u64,
    device_ns: i64,
}

#[derive(Serialize)]
struct Body<'a> {
    peaks: Option<PeaksOut<'a>>,
    no_peaks: Option<String>,
    busy_ns: i64,
    covered_ns: i64,
    covered_fraction: Option<f64>,
    floor_ns: Option<i64>,
    above_floor_ns: Option<i64>,
    unknown: Vec<Unknown>,
    rows: Vec<RowOut<'a>>,
}

pub(super) fn peaks(peaks: &Peaks) -> PeaksOut<'_> {
    PeaksOut {
        name: &peaks.name,
        source: &peaks.source,
        memory_bytes_per_s: peaks.memory_bytes_per_s,
        cache_bytes: peaks.cache_bytes,
        flops_per_s: PeakKind::ALL.into_iter().filter_map(|kind| Some((kind.name(), peaks.flops_per_s(kind)?))).collect(),
    }
}

fn row<'a>(row: &'a RooflineRow, table: &RooflineTable) -> RowOut<'a> {
    let work = row.work.ok();
    let floor = row.floor;
    RowOut {
        name: &row.name,
        shapes: row.shapes.as_deref(),
        types: row.types.as_deref(),
        kernel: row.kernel.as_deref(),
        family: row.family.map(longpole_analysis::WorkFamily::name),
        calls: row.calls,
        activities: row.activities,
        device_ns: row.device_ns.get(),
        share_fraction: (table.busy_ns.get() > 0).then(|| row.device_ns.get() as f64 / table.busy_ns.get() as f64),
        dtype: work.map(|work| work.dtype.name()),
        flops_per_call: work.map(|work| work.flops),
        flops_per_call_most: work.and_then(|work| work.flops_most),
        bytes_per_call: work.map(|work| work.bytes),
        bytes_per_call_most: work.and_then(|work| work.bytes_most),
        floor_per_call_ns: floor.map(|floor| floor.ns.get()),
        compute_floor_per_call_ns: floor.and_then(|floor| ns(floor.compute_ns)),
        memory_floor_per_call_ns: floor.map(|floor| floor.memory_ns.get()),
        roof: floor.map(|floor| match floor.roof {
            Roof::Compute => "compute",
            Roof::Memory => "memory",
        }),
        peak: floor.and_then(|floor| floor.peak).map(PeakKind::name),
        floor_ns: ns(row.floor_ns),
        above_floor_ns: ns(row.above_floor_ns()),
        time_over_floor: row.time_over_floor,
        flops_per_s: row.flops_per_s,
        bytes_per_s: row.bytes_per_s,
        verdict: row.verdict.map(longpole_analysis::Verdict::name),
        faster_than: row.faster_than.map(longpole_analysis::FasterThan::name),
        unknown: row.work.err().map(longpole_analysis::UnknownWork::name),
    }
}

/// The document of `longpole roofline`; `missing` says why there are no peaks. Totals are those of the scope, whatever rows are listed.
pub fn roofline<'a>(header: &Header<'a>, table: &'a RooflineTable, missing: Option<&NoPeaks>) -> impl Serialize + use<'a> {
    let body = Body {
        peaks: table.peaks.as_ref().map(peaks),
        no_peaks: missing.filter(|_| table.peaks.is_none()).map(no_peaks),
        busy_ns: table.busy_ns.get(),
        covered_ns: table.covered_ns.get(),
        covered_fraction: table.covered_fraction(),
        floor_ns: ns(table.floor_ns),
        above_floor_ns: ns(table.above_floor_ns),
        unknown: table
            .unknown
            .iter()
            .map(|rows| Unknown { reason: rows.reason.name(), rows: rows.rows, device_ns: rows.device_ns.get() })
            .collect(),
        rows: table.rows.iter().map(|of_table| row(of_table, table)).collect(),
    };
    super::document("longpole.roofline/1", header, body)
}
