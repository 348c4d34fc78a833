//! The table on small traces.

use longpole_trace::{DeviceProperties, Ns, Trace};

use super::*;
use crate::index::TraceIndex;
use crate::sample::Sample;
use crate::scope::Scope;

fn h200() -> Peaks {
    Peaks::of_device(&DeviceProperties { name: Some("NVIDIA H200".to_owned()), ..DeviceProperties::default() }).unwrap()
}

fn table(trace: &Trace) -> RooflineTable {
    roofline(&TraceIndex::new(trace), &Scope::whole(), Some(&h200()))
}

const SQUARE: Option<(&str, &str)> = Some(("[[4096, 4096], [4096, 4096]]", r#"["c10::BFloat16", "c10::BFloat16"]"#));
const VECTOR: Option<(&str, &str)> = Some(("[[1, 1024], [1024, 1024]]", r#"["c10::BFloat16", "c10::BFloat16"]"#));

#[test]
fn the_operator_that_launches_has_the_row() {
    let mut sample = Sample::new();
    sample.op_with_shapes("aten::linear", 0, 40, Some(("[[4096, 4096], [4096, 4096], []]", r#"["c10::BFloat16", "c10::BFloat16", ""]"#)));
    sample.op_with_shapes("aten::mm", 5, 30, SQUARE);
    sample.launch("cudaLaunchKernel", 10, 5).kernel("gemm", 100, 200_000).memset("Memset (Device)", 200_100, 1_000);
    // What the outer operator launches besides is not a second product.
    sample.launch("cudaLaunchKernel", 36, 2).kernel("bias", 300_000, 2_000);
    let table = table(&sample.finish());
    let [product, besides] = &table.rows[..] else { panic!("{:?}", table.rows) };
    assert_eq!((product.name.as_str(), product.calls, product.activities, product.device_ns), ("aten::mm", Some(1), 2, Ns(201_000)));
    assert_eq!(product.kernel.as_deref(), Some("gemm"));
    // 2 x 4096^3 / 989.5 TFLOP/s = 138.9 us; 3 x 4096^2 x 2 bytes / 4.8 TB/s = 21.0 us.
    let floor = product.floor.unwrap();
    assert_eq!((floor.ns, floor.compute_ns, floor.memory_ns), (Ns(138_898), Some(Ns(138_898)), Ns(20_972)));
    assert_eq!((product.verdict, product.faster_than, floor.peak), (Some(Verdict::ComputeBound), None, Some(PeakKind::Bf16)));
    assert_eq!(product.above_floor_ns(), Some(Ns(201_000 - 138_898)));
    assert_eq!((besides.name.as_str(), besides.work), ("aten::linear", Err(UnknownWork::CountedInside)));
    assert_eq!((table.busy_ns, table.covered_ns, table.floor_ns), (Ns(203_000), Ns(201_000), Some(Ns(138_898))));
    assert_eq!(table.unknown, [UnknownRows { reason: UnknownWork::CountedInside, rows: 1, device_ns: Ns(2_000) }]);
}

#[test]
fn short_kernels_are_bound_by_their_launch() {
    let verdict = |inputs, dur: i64| {
        let mut sample = Sample::new();
        sample.op_with_shapes("aten::mm", 0, 40, inputs);
        sample.launch("cudaLaunchKernel", 10, 5).kernel("gemm", 100, dur);
        let row = table(&sample.finish()).rows.remove(0);
        (row.verdict.unwrap(), row.faster_than)
    };
    // 2 MiB in 438 ns at best.
    assert_eq!(verdict(VECTOR, 3_000), (Verdict::LaunchBound, None));
    assert_eq!(verdict(VECTOR, 6_000), (Verdict::MemoryBound, None));
    assert_eq!(verdict(VECTOR, 800), (Verdict::MemoryBound, None), "near its floor, however short");
    assert_eq!(verdict(VECTOR, 300), (Verdict::MemoryBound, Some(FasterThan::Cache)));
    assert_eq!(verdict(SQUARE, 100_000), (Verdict::ComputeBound, Some(FasterThan::Compute)));
    let tiny = Some(("[[1, 16], [16, 16]]", r#"["c10::BFloat16", "c10::BFloat16"]"#));
    assert_eq!(verdict(tiny, 20_000), (Verdict::LaunchBound, None), "so little work is not what it waits for");
    let wide = Some(("[[1, 8192], [8192, 16384]]", r#"["c10::BFloat16", "c10::BFloat16"]"#));
    assert_eq!(verdict(wide, 50_000), (Verdict::MemoryBound, Some(FasterThan::Memory)), "256 MiB do not fit into the cache");
}

#[test]
fn work_that_other_things_limit_stands_apart() {
    let copy = Some(("[[1000], [1000], []]", r#"["float", "float", "Scalar"]"#));
    let mut sample = Sample::new();
    sample.op_with_shapes("aten::copy_", 0, 20, copy);
    sample.launch("cudaMemcpyAsync", 5, 5).memcpy("Memcpy HtoD (Pinned -> Device)", 100, 50);
    sample.op_with_shapes("aten::copy_", 20, 20, copy);
    sample.launch("cudaLaunchKernel", 25, 5).kernel("copy_kernel", 200, 60);
    sample.op_with_shapes("record_param_comms", 40, 20, None);
    sample.launch("cudaLaunchKernel", 45, 5).kernel("ncclDevKernel_AllReduce", 300, 70);
    sample.op("aten::mm", 60, 20);
    sample.launch("cudaLaunchKernel", 65, 5).kernel("gemm", 400, 80);
    sample.launch("cudaGraphLaunch", 85, 5).kernel("gemm", 500, 90).kernel("gemm", 600, 90);
    let table = table(&sample.finish());
    let found: Vec<_> = table.rows.iter().map(|row| (row.name.as_str(), row.work.err(), row.device_ns.get(), row.calls)).collect();
    assert_eq!(
        found,
        [
            ("(no operator) gemm/gemv", Some(UnknownWork::NoOperator), 180, None),
            ("aten::mm", Some(UnknownWork::NoShapes), 80, Some(1)),
            ("record_param_comms", Some(UnknownWork::Communication), 70, Some(1)),
            ("aten::copy_", None, 60, Some(1)),
            ("aten::copy_", Some(UnknownWork::LinkTransfer), 50, Some(1)),
        ]
    );
    assert_eq!((table.busy_ns, table.covered_ns), (Ns(440), Ns(60)));
}

#[test]
fn overlapping_kernels_are_counted_once_and_devices_apart() {
    let mut sample = Sample::new();
    for (at, device, stream, start) in [(0, 0, 7, 1_000), (20, 0, 8, 6_000), (40, 1, 7, 1_000)] {
        sample.on_device(device, stream);
        sample.op_with_shapes("aten::mm", at, 20, VECTOR);
        sample.launch("cudaLaunchKernel", at + 5, 5).kernel("gemm", start, 10_000);
    }
    let table = table(&sample.finish());
    let [row] = &table.rows[..] else { panic!("{:?}", table.rows) };
    assert_eq!((row.calls, row.device_ns, row.floor_ns), (Some(3), Ns(25_000), Some(Ns(3 * 438))));
    assert_eq!((table.busy_ns, table.covered_fraction()), (Ns(25_000), Some(1.0)));
    assert_eq!(row.bytes_per_s, Some(f64::from(3 * 2_101_248) / 25e-6));
}

#[test]
fn without_peaks_there_is_work_but_no_floor() {
    let mut sample = Sample::new();
    sample.op_with_shapes("aten::mm", 0, 40, VECTOR);
    sample.launch("cudaLaunchKernel", 10, 5).kernel("gemm", 100, 5_000);
    let trace = sample.finish();
    assert_eq!(peaks_of(&trace, &Scope::whole()), Err(NoPeaks::NotRecorded));
    let table = roofline(&TraceIndex::new(&trace), &Scope::whole(), None);
    let row = &table.rows[0];
    assert_eq!(row.work.map(|work| work.flops), Ok(2_097_152));
    assert_eq!((row.floor, row.verdict, row.time_over_floor, table.floor_ns), (None, None, None, None));
}

#[test]
fn the_devices_of_a_trace_are_looked_up() {
    let mut sample = Sample::new();
    sample.on_device(1, 7);
    let mut trace = sample.finish();
    trace.devices[0].properties.name = Some("NVIDIA H200".to_owned());
    assert_eq!(peaks_of(&trace, &Scope::whole()).map(|peaks| peaks.name), Ok("H200 SXM".to_owned()));
    trace.devices[1].properties.name = Some("NVIDIA H100 PCIe".to_owned());
    let several = vec!["H200 SXM".to_owned(), "H100 PCIe".to_owned()];
    assert_eq!(peaks_of(&trace, &Scope::whole()), Err(NoPeaks::SeveralKinds(several)));
    trace.devices.truncate(1);
    trace.devices[0].properties.name = Some("Quadro GP100".to_owned());
    assert_eq!(peaks_of(&trace, &Scope::whole()), Err(NoPeaks::UnknownDevice("Quadro GP100".to_owned())));
}

#[test]
fn an_fp32_product_may_use_tf32_unless_its_kernel_says_no() {
    let peak = |kernel: &str| {
        let mut sample = Sample::new();
        sample.op_with_shapes("aten::mm", 0, 40, Some(("[[64, 64], [64, 64]]", r#"["float", "float"]"#)));
        sample.launch("cudaLaunchKernel", 10, 5).kernel(kernel, 100, 5_000);
        table(&sample.finish()).rows[0].floor.and_then(|floor| floor.peak)
    };
    assert_eq!(peak("sm80_xmma_gemm_f32f32_tf32f32_f32"), Some(PeakKind::Tf32));
    assert_eq!(peak("cutlass_80_simt_sgemm_128x64_8x5_nn_align1"), Some(PeakKind::Fp32));
}
