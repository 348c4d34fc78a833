//! What a device can do at most: memory bandwidth and arithmetic peaks, from one table of devices or measured on the machine.
//!
//! The figures are the vendors' own, for dense matrices, at the boost clock. A run seldom reaches them: expect 80 to 93 % of the
//! bandwidth and 60 to 85 % of the tensor peak from the best kernels. To add a device, add its line to the table with its source.

mod table;

use longpole_trace::DeviceProperties;

use super::dtype::Dtype;
use super::work::Engine;

/// One kind of arithmetic peak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PeakKind {
    /// fp64 on the ordinary units.
    Fp64,
    /// fp64 on the matrix units.
    Fp64Tensor,
    /// fp32 on the ordinary units.
    Fp32,
    /// fp32 matrices rounded to TF32 on the matrix units.
    Tf32,
    /// fp16 on the matrix units, accumulated in fp32.
    Fp16,
    /// bf16 on the matrix units, accumulated in fp32.
    Bf16,
    /// fp8 on the matrix units, accumulated in fp32.
    Fp8,
    /// fp4 on the matrix units.
    Fp4,
    /// int8 on the matrix units.
    Int8,
}

impl PeakKind {
    /// Every kind, in the order of the enumeration.
    pub const ALL: [Self; 9] =
        [Self::Fp64, Self::Fp64Tensor, Self::Fp32, Self::Tf32, Self::Fp16, Self::Bf16, Self::Fp8, Self::Fp4, Self::Int8];

    /// The name used in text, in JSON and in a file of measured peaks.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fp64 => "fp64",
            Self::Fp64Tensor => "fp64_tensor",
            Self::Fp32 => "fp32",
            Self::Tf32 => "tf32",
            Self::Fp16 => "fp16",
            Self::Bf16 => "bf16",
            Self::Fp8 => "fp8",
            Self::Fp4 => "fp4",
            Self::Int8 => "int8",
        }
    }
}

/// What a device can do at most.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peaks {
    /// The device as the table calls it, or the name given with measured peaks.
    pub name: String,
    /// Bytes a second to and from device memory.
    pub memory_bytes_per_s: u64,
    /// The largest cache in front of device memory, in bytes, if known. Work that fits in it can be faster than memory.
    pub cache_bytes: Option<u64>,
    /// Where the figures are from.
    pub source: String,
    flops_per_s: [Option<u64>; PeakKind::ALL.len()],
}

/// Peaks measured on a machine. Everything absent is taken from the table, if the device is in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MeasuredPeaks {
    /// What to call the device.
    pub name: Option<String>,
    /// Bytes a second to and from device memory.
    pub memory_bytes_per_s: Option<u64>,
    /// The largest cache in front of device memory, in bytes.
    pub cache_bytes: Option<u64>,
    /// Operations a second, by kind.
    pub flops_per_s: Vec<(PeakKind, u64)>,
    /// Where the figures are from, e.g. the name of the file.
    pub source: String,
}

/// A line of the table of known devices, for a list of them.
#[derive(Clone, Copy, Debug)]
pub struct KnownDevice {
    /// What the device is called here.
    pub name: &'static str,
    /// Multiprocessors it may have; empty when any number is accepted.
    pub sm_counts: &'static [u32],
    entry: &'static table::Entry,
}

impl KnownDevice {
    /// Its peaks.
    pub fn peaks(&self) -> Peaks {
        self.entry.peaks()
    }
}

impl Peaks {
    /// The peaks of a device the table knows: by its name, told apart by multiprocessors and memory size where the name leaves it open;
    /// by those two alone where a driver gives only a generic name. `None` when it is not in the table, and for a slice of a device
    /// (MIG), whose share of the bandwidth is not known.
    pub fn of_device(properties: &DeviceProperties) -> Option<Self> {
        table::find(properties).map(table::Entry::peaks)
    }

    /// Every device of the table.
    pub fn known() -> impl ExactSizeIterator<Item = KnownDevice> {
        table::TABLE.iter().map(|entry| KnownDevice { name: entry.name, sm_counts: entry.sm_counts, entry })
    }

    /// Measured peaks, the rest filled in from `base`. `None` when neither says what the memory bandwidth is.
    pub fn measured(base: Option<&Self>, measured: &MeasuredPeaks) -> Option<Self> {
        let mut peaks = Self {
            name: measured.name.clone().or_else(|| base.map(|base| base.name.clone())).unwrap_or_else(|| "measured".to_owned()),
            memory_bytes_per_s: measured
                .memory_bytes_per_s
                .or_else(|| base.map(|base| base.memory_bytes_per_s))
                .filter(|&rate| rate > 0)?,
            cache_bytes: measured.cache_bytes.or_else(|| base.and_then(|base| base.cache_bytes)),
            source: measured.source.clone(),
            flops_per_s: base.map(|base| base.flops_per_s).unwrap_or_default(),
        };
        for &(kind, rate) in &measured.flops_per_s {
            peaks.flops_per_s[kind as usize] = Some(rate).filter(|&rate| rate > 0);
        }
        Some(peaks)
    }

    /// Operations a second of one kind, a multiply-add counted as two; absent when the device has no such units or the figure is not
    /// published.
    pub fn flops_per_s(&self, kind: PeakKind) -> Option<u64> {
        self.flops_per_s[kind as usize]
    }

    /// The peak that arithmetic on a type is held against: the fastest that the type can run at, since a floor must not be above the
    /// truth. fp32 matrix products may be allowed TF32. Integers outside matrix products run on the ordinary units, at the rate of fp32 or
    /// below.
    pub fn kind_for(&self, dtype: Dtype, engine: Engine) -> Option<PeakKind> {
        use PeakKind::{Bf16, Fp4, Fp8, Fp16, Fp32, Fp64, Fp64Tensor, Int8, Tf32};
        let candidates: &[PeakKind] = match (engine, dtype) {
            (Engine::Vector, Dtype::F64 | Dtype::C128) => &[Fp64],
            (Engine::Vector, _) | (Engine::Tensor, Dtype::I16 | Dtype::I32 | Dtype::I64 | Dtype::Bool) => &[Fp32],
            (Engine::Tensor, Dtype::F64 | Dtype::C128) => &[Fp64Tensor, Fp64],
            (Engine::Tensor, Dtype::F32 | Dtype::C64) => &[Tf32, Fp32],
            (Engine::Tensor, Dtype::F16 | Dtype::C32) => &[Fp16, Fp32],
            (Engine::Tensor, Dtype::Bf16) => &[Bf16, Fp32],
            (Engine::Tensor, Dtype::F8) => &[Fp8, Fp16, Bf16],
            (Engine::Tensor, Dtype::F4x2) => &[Fp4, Fp8],
            (Engine::Tensor, Dtype::I8) => &[Int8],
        };
        candidates.iter().copied().filter(|&kind| self.flops_per_s(kind).is_some()).max_by_key(|&kind| self.flops_per_s(kind))
    }
}

#[cfg(test)]
mod tests {
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
            ("NVIDIA B300 SXM6 AC", 148, 287, "B300"),
            ("NVIDIA GeForce RTX 4090", 128, 25, "RTX 4090"),
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
    fn figures_are_consistent() {
        for known in Peaks::known() {
            let peaks = known.peaks();
            assert!(peaks.memory_bytes_per_s >= 300_000_000_000 && peaks.memory_bytes_per_s <= 8_000_000_000_000, "{}", known.name);
            assert!(peaks.source.len() > 10, "{}", known.name);
            let rate = |kind| peaks.flops_per_s(kind).unwrap_or(0);
            assert!(rate(PeakKind::Fp32) > 0 && rate(PeakKind::Fp16) >= rate(PeakKind::Fp32), "{}", known.name);
            assert!(rate(PeakKind::Bf16) == 0 || rate(PeakKind::Bf16) == rate(PeakKind::Fp16), "{}", known.name);
            assert!(rate(PeakKind::Fp8) == 0 || rate(PeakKind::Fp8) >= rate(PeakKind::Fp16), "{}", known.name);
            assert!(rate(PeakKind::Fp4) == 0 || rate(PeakKind::Fp4) > rate(PeakKind::Fp8), "{}", known.name);
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
}
