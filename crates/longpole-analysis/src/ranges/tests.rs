use proptest::prelude::*;

use super::*;
use crate::sample::Sample;

fn table(sample: Sample) -> Vec<RangeRow> {
    let trace = sample.finish();
    range_table(&TraceIndex::new(&trace), &Scope::whole())
}

fn names(rows: &[RangeRow]) -> Vec<String> {
    rows.iter().map(|row| row.parents.inside(&row.name).names().join("/")).collect()
}

#[test]
fn nested_ranges_have_their_own_extent_and_that_of_what_is_inside() {
    let mut sample = Sample::new();
    sample.range("decode_loop", 0, 100);
    sample.range("decode_step", 10, 20);
    sample.range("decode_step", 40, 20);
    sample.range("prefill", 200, 50);
    sample.launch("cudaLaunchKernel", 12, 2).kernel("gemm", 100, 5);
    sample.launch("cudaLaunchKernel", 20, 2).kernel("gemm", 110, 5);
    sample.launch("cudaLaunchKernel", 45, 2).kernel("gemm", 130, 5).kernel("gemm", 132, 5);
    sample.launch("cudaMemsetAsync", 80, 2).memset("Memset (Device)", 150, 10);
    let rows = table(sample);
    assert_eq!(names(&rows), ["decode_loop", "decode_loop/decode_step", "prefill"]);
    let numbers = |row: &RangeRow| (row.calls, row.cpu_ns.get(), row.gpu_span_ns.map(Ns::get), row.gpu_busy_ns.map(Ns::get), row.kernels);
    assert_eq!(numbers(&rows[0]), (1, 100, Some(60), Some(27), 4));
    assert_eq!(numbers(&rows[1]), (2, 40, Some(15 + 7), Some(10 + 7), 4));
    assert_eq!(rows[1].gpu_idle_ns, Some(Ns(5)));
    assert_eq!(numbers(&rows[2]), (1, 50, None, None, 0));
}

#[test]
fn replayed_work_belongs_to_its_launch_and_is_given_beside_where_it_was_captured() {
    let mut sample = Sample::new();
    sample.range("capture", 0, 100);
    sample.range("attention", 10, 20);
    sample.range("mlp", 40, 20);
    for (node, at) in [(1, 12), (2, 29), (3, 45), (4, 80)] {
        sample.captured(node, at);
    }
    for step in 0..2 {
        let at = 200 + step * 100;
        sample.range("replay", at, 50);
        // Nodes 1 and 2 overlap; node 9 was never seen being captured.
        let launch = sample.launch("cudaGraphLaunch", at + 1, 2);
        launch.node(1, "a", at + 10, 10).node(2, "b", at + 15, 10).node(3, "c", at + 30, 5).node(4, "d", at + 40, 1).node(
            9,
            "e",
            at + 45,
            2,
        );
    }
    let rows = table(sample);
    assert_eq!(names(&rows), ["capture", "capture/attention", "capture/mlp", "replay"]);
    let launched: Vec<_> = rows.iter().map(|row| (row.kernels, row.gpu_busy_ns.map(Ns::get))).collect();
    assert_eq!(launched, [(0, None), (0, None), (0, None), (10, Some(2 * 23))]);
    let replayed: Vec<_> = rows.iter().map(|row| (row.replayed_kernels, row.replayed_ns.map(Ns::get))).collect();
    assert_eq!(replayed, [(8, Some(2 * 21)), (4, Some(2 * 15)), (2, Some(2 * 5)), (0, None)]);
}

#[test]
fn numbered_steps_are_one_row_and_keep_their_place() {
    let mut sample = Sample::new();
    sample.range("ProfilerStep#1", 0, 10);
    sample.range("inner", 2, 5);
    sample.range("ProfilerStep#2", 10, 10);
    sample.range("inner", 12, 5);
    sample.range("other", 13, 2);
    let rows = table(sample);
    assert_eq!(names(&rows), ["ProfilerStep*", "ProfilerStep*/inner", "ProfilerStep*/inner/other"]);
    assert_eq!(rows.iter().map(|row| row.calls).collect::<Vec<_>>(), [2, 2, 1]);
}

#[test]
fn backward_work_of_a_worker_thread_belongs_to_the_range_open_meanwhile() {
    let mut sample = Sample::new();
    sample.range("step", 0, 100);
    sample.on_thread(2);
    sample.op("autograd::engine::evaluate_function: MmBackward0", 20, 30);
    sample.launch("cudaLaunchKernel", 25, 2).kernel("gemm", 60, 5);
    sample.launch("cudaLaunchKernel", 150, 2).kernel("gemm", 160, 5);
    sample.on_thread(3);
    sample.launch("cudaLaunchKernel", 30, 2).kernel("gemm", 70, 5);
    let rows = table(sample);
    assert_eq!((rows[0].kernels, rows[0].gpu_busy_ns), (1, Some(Ns(5))));
}

#[test]
fn a_scope_keeps_the_instances_that_start_inside() {
    let mut sample = Sample::new();
    sample.range("loop", 0, 100);
    sample.range("step", 10, 20);
    sample.launch("cudaLaunchKernel", 12, 2).kernel("gemm", 30, 5);
    sample.launch("cudaLaunchKernel", 50, 2).kernel("gemm", 60, 5);
    let trace = sample.finish();
    let index = TraceIndex::new(&trace);
    let spec = crate::scope::ScopeSpec { range: Some("step".to_owned()), ..Default::default() };
    let scope = Scope::resolve(&index, &spec).expect("the range is there");
    let rows = range_table(&index, &scope);
    assert_eq!(names(&rows), ["loop/step"]);
    assert_eq!(rows[0].kernels, 1);
}

#[test]
fn runaway_nesting_stays_bounded() {
    let mut sample = Sample::new();
    for depth in 0..500 {
        sample.range("again", depth, 2000 - 2 * depth);
    }
    sample.launch("cudaLaunchKernel", 600, 2).kernel("gemm", 700, 5);
    let rows = table(sample);
    assert_eq!(rows.len(), MAX_DEPTH);
    assert_eq!(rows.iter().map(|row| row.calls).sum::<u64>(), 500);
    assert_eq!(rows.iter().map(|row| row.kernels).sum::<u64>(), 500);
}

#[test]
fn ranges_across_each_other_each_have_what_was_launched_inside() {
    let mut sample = Sample::new();
    for at in 0..4 {
        sample.range("request", 10 * at, 25);
        sample.launch("cudaLaunchKernel", 10 * at + 1, 2).kernel("gemm", 100 + 10 * at, 5);
    }
    let rows = table(sample);
    assert_eq!(names(&rows), ["request"]);
    // Three kernels inside each, but for the last two ranges.
    assert_eq!((rows[0].calls, rows[0].kernels), (4, 3 + 3 + 2 + 1));
    assert_eq!((rows[0].gpu_span_ns, rows[0].gpu_busy_ns), (Some(Ns(25 + 25 + 15 + 5)), Some(Ns(9 * 5))));
}

/// A range: thread, name, start, duration.
type DrawnRange = (u8, u8, u8, u8);
/// A kernel: launching thread, launch time, device, start, duration.
type DrawnKernel = (u8, u8, u8, u8, u8);

/// (calls, kernels, span, busy) of all instances of a name, counted nanosecond by nanosecond.
fn naive(ranges: &[DrawnRange], kernels: &[DrawnKernel], name: u8) -> (u64, u64, i64, i64) {
    let mut sums = (0, 0, 0, 0);
    for &(thread, _, start, dur) in ranges.iter().filter(|range| range.1 == name) {
        let end = u16::from(start) + u16::from(dur);
        // Thread 2 is an autograd worker unless it opens ranges: what it launches counts for every thread's ranges.
        let is_worker = ranges.iter().all(|range| range.0 != 2);
        let inside: Vec<_> =
            kernels.iter().filter(|k| ((is_worker && k.0 == 2) || k.0 == thread) && start <= k.1 && u16::from(k.1) < end).collect();
        sums.0 += 1;
        sums.1 += inside.len() as u64;
        for device in 0..2 {
            let on_device: Vec<_> =
                inside.iter().filter(|k| k.2 == device).map(|k| (i64::from(k.3), i64::from(k.3) + i64::from(k.4))).collect();
            let first = on_device.iter().map(|k| k.0).min().unwrap_or(0);
            let last = on_device.iter().map(|k| k.1).max().unwrap_or(0);
            sums.2 += last - first;
            sums.3 += (first..last).filter(|&at| on_device.iter().any(|k| k.0 <= at && at < k.1)).count() as i64;
        }
    }
    sums
}

proptest! {
    #[test]
    fn ranges_equal_those_counted_nanosecond_by_nanosecond(
        ranges in proptest::collection::vec((0_u8..3, 0_u8..3, 0_u8..60, 0_u8..40), 1..10),
        kernels in proptest::collection::vec((0_u8..3, 0_u8..110, 0_u8..2, any::<u8>(), 0_u8..30), 0..16),
    ) {
        let mut sample = Sample::new();
        for &(thread, name, start, dur) in &ranges {
            sample.on_thread(i64::from(thread));
            sample.range(["a", "b", "c"][usize::from(name)], i64::from(start), i64::from(dur));
        }
        sample.on_thread(2);
        sample.op("autograd::engine::evaluate_function: MmBackward0", 200, 1);
        for &(thread, at, device, start, dur) in &kernels {
            sample.on_thread(i64::from(thread));
            sample.on_device(i64::from(device), 7);
            sample.launch("cudaLaunchKernel", i64::from(at), 1).kernel("gemm", i64::from(start), i64::from(dur));
        }
        let rows = table(sample);
        for (number, name) in ["a", "b", "c"].iter().enumerate() {
            let of_name = rows.iter().filter(|row| row.name == *name);
            let found = of_name.fold((0, 0, 0, 0), |sum, row| {
                let (span, busy) = (row.gpu_span_ns.unwrap_or_default().get(), row.gpu_busy_ns.unwrap_or_default().get());
                assert_eq!(row.gpu_idle_ns.unwrap_or_default().get(), span - busy);
                (sum.0 + row.calls, sum.1 + row.kernels, sum.2 + span, sum.3 + busy)
            });
            prop_assert_eq!(found, naive(&ranges, &kernels, number as u8));
        }
    }
}
