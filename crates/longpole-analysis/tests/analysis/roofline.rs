//! The roofline on real traces, and its page against the table of devices.

use std::fmt::Write as _;
use std::path::Path;

use longpole_analysis::{FasterThan, PeakKind, Peaks, RooflineRow, RooflineTable, Scope, TraceIndex, Verdict, roofline};
use longpole_trace::{DeviceProperties, Ns};

use crate::slow_reader;
use crate::torch_table::corpus;

fn table(path: &Path, device: &str) -> RooflineTable {
    let trace = slow_reader::read(path);
    let peaks = Peaks::of_device(&DeviceProperties { name: Some(device.to_owned()), ..DeviceProperties::default() });
    let table = roofline(&TraceIndex::new(&trace), &Scope::whole(), peaks.as_ref());
    assert!(table.covered_ns <= table.busy_ns);
    assert!(table.rows.iter().all(|row| row.device_ns <= table.busy_ns && row.floor.is_some() == row.work.is_ok()));
    // Faster than memory by more than a tail of writes that stays in the cache, without fitting into it: then a formula would be wrong.
    let is_impossible =
        |row: &&RooflineRow| row.time_over_floor.is_some_and(|ratio| ratio < 0.9) && row.faster_than != Some(FasterThan::Cache);
    assert_eq!(table.rows.iter().find(is_impossible), None, "{}", path.display());
    table
}

#[test]
fn products_of_a_real_run_by_hand() {
    let table = table(&corpus().join("qwen3_eager.json.gz"), "NVIDIA H200");
    assert!(table.covered_fraction().unwrap() > 0.999);
    let row = |shapes: &str| table.rows.iter().find(|row| row.name == "aten::mm" && row.shapes.as_deref() == Some(shapes)).unwrap();
    // The head of a decode step: 1024 x 151,936 weights of 2 bytes, 1024 inputs and 151,936 outputs: 311,470,848 bytes at 4.8 TB/s are 64,890 ns.
    let head = row("[[1, 1024], [1024, 151936]]");
    assert_eq!((head.calls, head.work.unwrap().bytes, head.floor.unwrap().ns), (Some(4), 311_470_848, Ns(64_890)));
    assert_eq!((head.device_ns, head.verdict), (Ns(307_263), Some(Verdict::MemoryBound)));
    assert!((head.time_over_floor.unwrap() - 1.18).abs() < 0.01);
    // The head of the prefill: 2 x 1024 x 1024 x 151,936 FLOPs at 989.5 TFLOP/s are 322,015 ns.
    let prefill = row("[[1024, 1024], [1024, 151936]]");
    assert_eq!(
        (prefill.work.unwrap().flops, prefill.floor.unwrap().ns, prefill.verdict),
        (318_632_886_272, Ns(322_015), Some(Verdict::ComputeBound))
    );
    // Gate and up of a decode step, two in each of 28 layers and 4 steps: 1024 x 3072 weights: 6,299,648 bytes are 1,313 ns.
    let gate = row("[[1, 1024], [1024, 3072]]");
    assert_eq!((gate.calls, gate.floor.unwrap().ns, gate.floor_ns), (Some(224), Ns(1_313), Some(Ns(224 * 1_313))));
    // Causal attention of the prefill: 16 heads, 1024 x 1025 / 2 pairs, 128 features: 2 x 16 x 524,800 x 256 FLOPs.
    let attention = table.rows.iter().find(|row| row.name == "aten::_cudnn_attention_forward").unwrap();
    assert_eq!(attention.work.unwrap().flops, 4_299_161_600);
}

#[test]
fn other_runs_are_covered_as_far_as_there_are_shapes() {
    for (name, least) in [("qwen3_compile", 0.75), ("qwen3_stack", 0.99), ("nccl_rank1", 0.9), ("qwen3_graph", 0.0), ("gpuonly", 0.0)] {
        let table = table(&corpus().join(format!("{name}.json.gz")), "NVIDIA H200");
        assert!(table.covered_fraction().unwrap() >= least, "{name}: {:?} {:?}", table.covered_fraction(), table.unknown);
    }
}

#[test]
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn public_runs() {
    let shared =
        std::env::var_os("LONGPOLE_SHARED").map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"), Into::into);
    let folder = shared.join("corpus/kineto/public");
    for (name, device, least) in [
        ("tl_mi300_ddp_resnet18", "AMD Instinct MI300X", 0.99),
        ("tl_sglang_prefilldecode", "AMD Instinct MI300X", 0.9),
        ("tl_torch_compile_triton", "AMD Instinct MI300X", 0.9),
        ("tl_nv_moe_01", "NVIDIA B300 SXM6 AC", 0.6),
        ("hta_mi250_rocm62_minitoy", "AMD Instinct MI250", 0.6),
    ] {
        let path = folder.join(format!("{name}.json.gz"));
        if !path.exists() {
            eprintln!("skipped: {} is absent", path.display());
            continue;
        }
        let table = table(&path, device);
        assert!(table.covered_fraction().unwrap() >= least, "{name}: {:?} {:?}", table.covered_fraction(), table.unknown);
    }
}

/// The list of devices as the page has it.
fn devices() -> String {
    let mut text = String::from("| device | SMs | GB/s | cache MiB |");
    for kind in PeakKind::ALL {
        write!(text, " {} |", kind.name()).unwrap();
    }
    text.push_str(" source | checked with |\n|---|---|---:|---:|");
    text.push_str(&"---:|".repeat(PeakKind::ALL.len()));
    text.push_str("---|---|\n");
    let mut lines: Vec<String> = Vec::new();
    for known in Peaks::known() {
        let peaks = known.peaks();
        let sms: Vec<String> = known.sm_counts.iter().map(u32::to_string).collect();
        let cache = peaks.cache_bytes.map_or_else(String::new, |bytes| (bytes >> 20).to_string());
        let mut line = format!("| {} | {} | {} | {cache} |", known.name, sms.join(", "), peaks.memory_bytes_per_s / 1_000_000_000);
        for kind in PeakKind::ALL {
            let rate = peaks.flops_per_s(kind).map_or_else(String::new, |rate| (rate as f64 / 1e12).to_string());
            write!(line, " {rate} |").unwrap();
        }
        writeln!(line, " {} | {} |", peaks.source, known.checked).unwrap();
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    text + &lines.concat()
}

#[test]
fn the_page_lists_the_devices() {
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/roofline.md")).unwrap();
    assert!(page.contains(&devices()), "docs/roofline.md should hold:\n{}", devices());
}
