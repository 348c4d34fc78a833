//! The table, and how a device is found in it.

use super::*;

fn device(name: &str, sm_count: u32, gigabytes: u64) -> DeviceProperties {
    DeviceProperties {
        name: Some(name.to_owned()).filter(|name| !name.is_empty()),
        sm_count: Some(sm_count).filter(|&count| count > 0),
        memory_bytes: Some(gigabytes * 1_000_000_000).filter(|&bytes| bytes > 0),
        ..DeviceProperties::default()
    }
}

fn found(name: &str, sm_count: u32, gigabytes: u64) -> Option<String> {
    Peaks::of_device(&device(name, sm_count, gigabytes)).map(|peaks| peaks.name)
}

#[test]
fn devices_are_known_by_the_names_drivers_give() {
    for (name, sm_count, gigabytes, want) in [
        ("NVIDIA H200", 132, 150, "H200 SXM"),
        ("NVIDIA H200 NVL", 132, 150, "H200 NVL"),
        ("NVIDIA H100 80GB HBM3", 132, 85, "H100 SXM"),
        ("NVIDIA H100", 132, 102, "H100 SXM"),
        ("NVIDIA H100 PCIe", 114, 85, "H100 PCIe"),
        ("NVIDIA H100 NVL", 132, 100, "H100 NVL"),
        ("NVIDIA GH200 480GB", 132, 102, "GH200 96 GB"),
        ("NVIDIA GH200 144G HBM3e", 132, 150, "GH200 144 GB"),
        ("NVIDIA A100-SXM4-40GB", 108, 42, "A100 40 GB"),
        ("NVIDIA A100-PG509-200", 108, 42, "A100 40 GB"),
        ("NVIDIA A100-SXM4-80GB", 108, 85, "A100 SXM 80 GB"),
        ("NVIDIA A100 80GB PCIe", 108, 85, "A100 PCIe 80 GB"),
        ("Tesla V100-SXM2-16GB", 80, 17, "V100 SXM2"),
        ("Tesla V100-DGXS-32GB", 80, 34, "V100 SXM2"),
        ("Tesla V100-PCIE-32GB", 80, 34, "V100 PCIe"),
        ("Tesla V100S-PCIE-32GB", 80, 34, "V100S PCIe"),
        ("Tesla T4", 40, 16, "T4"),
        ("NVIDIA A10G", 80, 24, "A10G"),
        ("NVIDIA A10", 72, 24, "A10"),
        ("NVIDIA A40", 84, 48, "A40"),
        ("NVIDIA L4", 58, 24, "L4"),
        ("NVIDIA L40S", 142, 48, "L40S"),
        ("NVIDIA L40", 142, 48, "L40"),
        ("NVIDIA B200", 148, 191, "B200"),
        ("NVIDIA GB200", 152, 198, "GB200"),
        ("NVIDIA GB300", 152, 295, "GB300"),
        ("NVIDIA B300 SXM6 AC", 148, 287, "B300"),
        ("NVIDIA GeForce RTX 4090", 128, 25, "RTX 4090"),
        ("NVIDIA GeForce RTX 3080", 68, 10, "RTX 3080 10 GB"),
        ("NVIDIA GeForce RTX 5080", 84, 17, "RTX 5080"),
        ("NVIDIA RTX A5000", 64, 25, "RTX A5000"),
        ("NVIDIA RTX A6000", 84, 51, "RTX A6000"),
        ("NVIDIA RTX 6000 Ada Generation", 142, 51, "RTX 6000 Ada"),
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", 188, 102, "RTX PRO 6000 Blackwell Workstation"),
        ("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", 188, 102, "RTX PRO 6000 Blackwell Max-Q"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", 188, 102, "RTX PRO 6000 Blackwell Server"),
        ("AMD Instinct MI300X", 304, 206, "MI300X"),
        ("AMD Instinct MI355X", 256, 309, "MI355X"),
        ("AMD Instinct MI250X", 110, 68, "MI250X (one of two dies)"),
    ] {
        assert_eq!(found(name, sm_count, gigabytes).as_deref(), Some(want), "{name}");
    }
}

#[test]
fn a_generic_name_is_told_by_size() {
    assert_eq!(found("AMD Radeon Graphics", 104, 68).as_deref(), Some("MI250, MI210 (one die)"));
    assert_eq!(found("", 304, 206).as_deref(), Some("MI300X"));
    assert_eq!(found("", 304, 274).as_deref(), Some("MI325X"));
    assert_eq!(found("AMD Radeon Graphics", 256, 309), None, "two devices are of this size");
    assert_eq!(found("", 132, 150), None, "H200 or GH200");
    assert_eq!(found("", 0, 0), None);
}

#[test]
fn other_devices_are_not_guessed() {
    for name in ["NVIDIA A100-SXM4-40GB MIG 3g.20gb", "NVIDIA GeForce GTX 1080", "NVIDIA H1000", "Quadro GP100", "NVIDIA L400"] {
        assert_eq!(found(name, 0, 0), None, "{name}");
    }
    assert_eq!(found("NVIDIA H100 80GB HBM3", 60, 42), None, "a slice");
}

#[test]
fn another_model_is_not_the_one_its_name_contains() {
    for name in [
        "NVIDIA GeForce RTX 5090 D",
        "NVIDIA GeForce RTX 3090 Ti",
        "NVIDIA GeForce RTX 4080 SUPER",
        "NVIDIA GeForce RTX 4090 Laptop GPU",
        "NVIDIA RTX PRO 6000D Blackwell",
    ] {
        assert_eq!(found(name, 0, 0), None, "{name}");
    }
}

#[test]
fn every_line_is_within_what_devices_can_be() {
    for known in Peaks::known() {
        let peaks = known.peaks();
        assert!(peaks.memory_bytes_per_s >= 300_000_000_000 && peaks.memory_bytes_per_s <= 8_000_000_000_000, "{}", known.name);
        assert!(!known.sm_counts.is_empty() && peaks.cache_bytes >= Some(4 << 20), "{}", known.name);
        assert!(peaks.source.len() > 10 && known.checked.len() > 10, "{}", known.name);
        let rate = |kind| peaks.flops_per_s(kind).unwrap_or(0);
        assert!(rate(PeakKind::Bf16) == 0 || rate(PeakKind::Bf16) == rate(PeakKind::Fp16), "{}", known.name);
    }
}

/// Looks a line up by its name in the table.
fn line(name: &str) -> Peaks {
    Peaks::known().find(|known| known.name == name).unwrap_or_else(|| panic!("{name}")).peaks()
}

/// Units of one kind do a fixed number of operations more or fewer for each type, so these ratios hold for all devices of an
/// architecture. In percent of the fp16 rate: fp64, fp64 on matrix units, fp32, TF32, fp8, fp4, int8.
#[test]
fn types_keep_the_ratios_of_their_architecture() {
    use PeakKind::{Fp4, Fp8, Fp16, Fp32, Fp64, Fp64Tensor, Int8, Tf32};
    let groups: [(&str, &[&str], [f64; 7]); 17] = [
        ("Volta", &["V100S PCIe", "V100 PCIe", "V100 SXM2"], [6.25, 0.0, 12.5, 0.0, 0.0, 0.0, 0.0]),
        ("Turing", &["T4"], [0.0, 0.0, 12.5, 0.0, 0.0, 0.0, 200.0]),
        ("GA100", &["A100 PCIe 80 GB", "A100 SXM 80 GB", "A100 40 GB", "A30"], [3.125, 6.25, 6.25, 50.0, 0.0, 0.0, 200.0]),
        ("GA102", &["A10", "A40", "RTX A6000", "RTX A5000"], [0.0, 0.0, 25.0, 50.0, 0.0, 0.0, 200.0]),
        ("GA102, half rate", &["A10G"], [0.0, 0.0, 50.0, 50.0, 0.0, 0.0, 200.0]),
        ("GA102, half rate of fp32 accumulation only", &["RTX 3080 10 GB", "RTX 3090"], [0.0, 0.0, 50.0, 50.0, 0.0, 0.0, 400.0]),
        ("Ada", &["L40S", "RTX 6000 Ada"], [0.39, 0.0, 25.0, 50.0, 200.0, 0.0, 200.0]),
        ("Ada, small", &["L4"], [0.0, 0.0, 25.0, 50.0, 200.0, 0.0, 200.0]),
        ("Ada, half rate", &["L40"], [0.78, 0.0, 50.0, 50.0, 200.0, 0.0, 200.0]),
        ("Ada, half rate of fp32 accumulation only", &["RTX 4090"], [0.78, 0.0, 50.0, 50.0, 200.0, 0.0, 400.0]),
        // The ordinary units run at a higher clock than the matrix units, hence not 1/16.
        (
            "Hopper",
            &["H100 SXM", "H100 PCIe", "H100 NVL", "H200 SXM", "H200 NVL", "GH200 144 GB", "GH200 96 GB"],
            [3.45, 6.9, 6.9, 50.0, 200.0, 0.0, 200.0],
        ),
        ("Blackwell", &["B200", "GB200"], [1.62, 1.62, 3.27, 50.0, 200.0, 400.0, 200.0]),
        ("Blackwell Ultra", &["B300", "GB300"], [0.053, 0.053, 3.27, 50.0, 200.0, 610.0, 6.7]),
        ("Blackwell RTX", &["RTX 5090"], [0.78, 0.0, 50.0, 50.0, 200.0, 800.0, 400.0]),
        (
            "Blackwell RTX PRO",
            &["RTX PRO 6000 Blackwell Max-Q", "RTX PRO 6000 Blackwell Workstation"],
            [0.39, 0.0, 25.0, 50.0, 200.0, 400.0, 200.0],
        ),
        ("CDNA 2", &["MI250X (one of two dies)", "MI250, MI210 (one die)"], [12.5, 25.0, 25.0, 0.0, 0.0, 0.0, 100.0]),
        ("CDNA 3", &["MI300X", "MI300A", "MI325X"], [6.25, 12.5, 12.5, 50.0, 200.0, 0.0, 200.0]),
    ];
    let other = ("CDNA 4", &["MI350X", "MI355X"][..], [3.125, 3.125, 6.25, 0.0, 200.0, 400.0, 200.0]);
    for (architecture, devices, percent) in groups.into_iter().chain([other]) {
        for device in devices {
            let peaks = line(device);
            let fp16 = peaks.flops_per_s(Fp16).unwrap() as f64;
            for (kind, want) in [Fp64, Fp64Tensor, Fp32, Tf32, Fp8, Fp4, Int8].into_iter().zip(percent) {
                let is = peaks.flops_per_s(kind).unwrap_or(0) as f64 * 100.0 / fp16;
                // 6 %: the figures of small rates are rounded to tenths of a TFLOP/s.
                assert!((is - want).abs() <= want * 0.06, "{architecture}: {device} {}: {is} % instead of {want} %", kind.name());
            }
        }
    }
}

/// The rates again from what a data sheet says besides them: multiprocessors, boost clock, and operations that each multiprocessor of the
/// architecture does in a clock.
#[test]
fn rates_follow_from_units_and_clock() {
    // Name, boost clock in MHz, operations a clock of a multiprocessor: fp32, fp16 on matrix units.
    let devices = [
        ("V100S PCIe", 1597, 128, 1024),
        ("V100 PCIe", 1380, 128, 1024),
        ("V100 SXM2", 1530, 128, 1024),
        ("T4", 1590, 128, 1024),
        ("A100 SXM 80 GB", 1410, 128, 2048),
        ("A30", 1440, 128, 2048),
        ("A10", 1695, 256, 1024),
        ("A10G", 1710, 256, 512),
        ("A40", 1740, 256, 1024),
        ("L4", 2040, 256, 1024),
        ("L40S", 2520, 256, 1024),
        ("L40", 2490, 256, 512),
        ("RTX 3080 10 GB", 1710, 256, 512),
        ("RTX 3090", 1695, 256, 512),
        ("RTX A5000", 1695, 256, 1024),
        ("RTX A6000", 1800, 256, 1024),
        ("RTX 4080", 2505, 256, 512),
        ("RTX 4090", 2520, 256, 512),
        ("RTX 6000 Ada", 2505, 256, 1024),
        ("RTX 5080", 2617, 256, 512),
        ("RTX 5090", 2407, 256, 512),
        ("RTX PRO 6000 Blackwell Max-Q", 2280, 256, 1024),
        ("RTX PRO 6000 Blackwell Workstation", 2617, 256, 1024),
        ("MI250X (one of two dies)", 1700, 256, 1024),
        ("MI250, MI210 (one die)", 1700, 256, 1024),
        ("MI300X", 2100, 256, 2048),
        ("MI300A", 2100, 256, 2048),
        ("MI325X", 2100, 256, 2048),
        ("MI350X", 2200, 256, 4096),
        ("MI355X", 2400, 256, 4096),
    ];
    for (name, megahertz, fp32, fp16) in devices {
        let sm_count = u64::from(Peaks::known().find(|known| known.name == name).unwrap().sm_counts[0]);
        for (kind, each) in [(PeakKind::Fp32, fp32), (PeakKind::Fp16, fp16)] {
            let (is, want) = (line(name).flops_per_s(kind).unwrap() as f64, (sm_count * megahertz * 1_000_000 * each) as f64);
            assert!((is / want - 1.0).abs() < 0.015, "{name} {}: {is:e} instead of {want:e}", kind.name());
        }
    }
}

#[test]
fn measured_peaks_override_the_table() {
    let table = Peaks::of_device(&device("NVIDIA H200", 132, 150)).unwrap();
    let measured = MeasuredPeaks {
        memory_bytes_per_s: Some(4_300_000_000_000),
        flops_per_s: vec![(PeakKind::Bf16, 750_000_000_000_000)],
        source: "peaks.json".to_owned(),
        ..MeasuredPeaks::default()
    };
    let peaks = Peaks::measured(Some(&table), &measured).unwrap();
    assert_eq!((peaks.name.as_str(), peaks.memory_bytes_per_s, peaks.source.as_str()), ("H200 SXM", 4_300_000_000_000, "peaks.json"));
    assert_eq!(peaks.flops_per_s(PeakKind::Bf16), Some(750_000_000_000_000));
    assert_eq!(peaks.flops_per_s(PeakKind::Fp16), table.flops_per_s(PeakKind::Fp16));
    assert_eq!(Peaks::measured(None, &MeasuredPeaks::default()), None);
}
