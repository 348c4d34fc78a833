use super::*;
use crate::testing::{Sample, report};

const DURATION: &str = "gpu__time_duration.sum";
const SM: &str = "sm__throughput.avg.pct_of_peak_sustained_elapsed";
const MEMORY: &str = "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed";
const DRAM: &str = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed";

fn table(samples: Vec<Sample>) -> Vec<TableRow> {
    let report = report(samples);
    rows(&report, &report.decode_all(&selection(&report)))
}

fn timed(name: &str, ns: f64) -> Sample {
    Sample::kernel(name).value(DURATION, ns)
}

#[test]
fn a_row_has_the_figures_of_its_launch() {
    let sample = timed("f<int>(float *)", 1_000.0)
        .grid([4, 2, 1])
        .block([128, 1, 1])
        .nvtx("step")
        .nvtx("layer")
        .value(SM, 3.0)
        .value(MEMORY, 5.0)
        .value(DRAM, 4.0)
        .value("dram__bytes_read.sum", 10.0)
        .value("dram__bytes_write.sum", 20.0)
        .value("sm__warps_active.avg.pct_of_peak_sustained_active", 50.0)
        .value("launch__waves_per_multiprocessor", 0.5)
        .value("launch__registers_per_thread", 32.0);
    let expected = TableRow {
        id: 0,
        kind: EntryKind::Kernel,
        name: "f<int>(float *)".to_owned(),
        function: Some("f".to_owned()),
        process: None,
        nvtx: Some("layer".to_owned()),
        grid: Some([4, 2, 1]),
        block: Some([128, 1, 1]),
        duration_ns: Some(1_000),
        sm_pct: Some(3.0),
        memory_pct: Some(5.0),
        dram_pct: Some(4.0),
        dram_bytes: Some(30),
        achieved_occupancy_pct: Some(50.0),
        waves_per_sm: Some(0.5),
        registers_per_thread: Some(32),
        verdict: Some(VerdictKind::TooSmall),
    };
    assert_eq!(table(vec![sample]), [expected]);
}

#[test]
fn totals_are_exact_and_missing_times_are_counted() {
    let rows = table(vec![
        timed("a", 10.0).value(DRAM, 80.0).value(SM, 10.0),
        timed("b", 70.0),
        Sample::kernel("a").value(DRAM, 1.0),
        timed("a", 20.0).value(DRAM, 20.0),
        Sample::kernel("c"),
    ]);
    let totals = totals(&rows, |row| row.name.clone());
    let keys: Vec<&str> = totals.iter().map(|total| total.key.as_str()).collect();
    assert_eq!(keys, ["b", "a", "c"]);
    let a = &totals[1];
    assert_eq!((a.launches, a.without_duration, a.total_ns), (3, 1, Some(30)));
    assert_eq!((a.min_ns, a.median_ns, a.max_ns, a.share_fraction), (Some(10), Some(15), Some(20), Some(0.3)));
    // (80 * 10 + 20 * 20) / 30; the launch without a time has no weight.
    assert_eq!((a.dram_pct, a.sm_pct), (Some(40.0), Some(10.0)));
    let c = &totals[2];
    assert_eq!((c.launches, c.without_duration, c.total_ns, c.median_ns, c.share_fraction), (1, 1, None, None, None));
    assert_eq!((c.dram_pct, c.verdict), (None, None));
}

#[test]
fn the_verdict_of_most_of_the_time_wins() {
    let busy = |ns: f64, memory: f64, sm: f64| timed("k", ns).value(MEMORY, memory).value(SM, sm);
    let rows = table(vec![busy(10.0, 90.0, 10.0), busy(10.0, 90.0, 10.0), busy(30.0, 10.0, 90.0)]);
    assert_eq!(totals(&rows, |row| row.name.clone())[0].verdict, Some(VerdictKind::ComputeBound));
    let untimed = |memory: f64, sm: f64| Sample::kernel("k").value(MEMORY, memory).value(SM, sm);
    let rows = table(vec![untimed(10.0, 90.0), untimed(90.0, 10.0), untimed(90.0, 10.0)]);
    assert_eq!(totals(&rows, |row| row.name.clone())[0].verdict, Some(VerdictKind::MemoryBound));
}

#[test]
fn orders_put_the_unknown_last_and_keep_the_rest_as_launched() {
    let mut rows = table(vec![timed("b", 5.0), Sample::kernel("a"), timed("c", 9.0).value(DRAM, 1.0), timed("a", 5.0).value(DRAM, 2.0)]);
    let mut ids = |order| {
        sort_rows(&mut rows, order);
        rows.iter().map(|row| row.id).collect::<Vec<_>>()
    };
    assert_eq!(ids(RowOrder::Duration), [2, 0, 3, 1]);
    assert_eq!(ids(RowOrder::Dram), [3, 2, 0, 1]);
    assert_eq!(ids(RowOrder::Name), [1, 3, 0, 2]);
    assert_eq!(ids(RowOrder::Launch), [0, 1, 2, 3]);
    let mut totals = totals(&rows, |row| row.name.clone());
    let mut keys = |order| {
        sort_totals(&mut totals, order);
        totals.iter().map(|total| total.key.as_str().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(keys(TotalOrder::Launches), ["a", "c", "b"]);
    assert_eq!(keys(TotalOrder::Longest), ["c", "a", "b"]);
    assert_eq!(keys(TotalOrder::Dram), ["a", "c", "b"]);
    assert_eq!(keys(TotalOrder::Duration), ["c", "a", "b"]);
}

#[test]
fn sums_do_not_wrap() {
    let rows = table(vec![timed("k", 1.8e19), timed("k", 1.8e19)]);
    assert_eq!(totals(&rows, |row| row.name.clone())[0].total_ns, Some(u64::MAX));
}
