//! What a device can do at most: memory bandwidth and arithmetic peaks, from one table of devices or measured on the machine.
//!
//! The figures are the vendors' own, for dense matrices, at the boost clock. A run seldom reaches them: expect 80 to 93 % of the
//! bandwidth and 60 to 85 % of the tensor peak from the best kernels. To add a device, add its line to the table with its source.

mod table;
#[cfg(test)]
mod tests;

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
    /// What the figures were compared with, besides the document they are from.
    pub checked: &'static str,
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
        table::find(properties).map(table::Entry::peaks).or_else(|| Self::of_bus(properties))
    }

    /// The peaks of a device of which the source says the bandwidth that follows from its bus, and no product name: those of the only device of the
    /// table with as many multiprocessors and about that bandwidth, else the bandwidth alone.
    fn of_bus(properties: &DeviceProperties) -> Option<Self> {
        let bandwidth = properties.peak_memory_bytes_per_s.filter(|&rate| rate > 0)?;
        let known = properties.sm_count.and_then(|sm_count| table::find_by_bus(sm_count, bandwidth));
        Some(known.map_or_else(
            || Self {
                name: properties.name.clone().unwrap_or_else(|| "device".to_owned()),
                memory_bytes_per_s: bandwidth,
                cache_bytes: None,
                source: "clock and width of the memory bus, as recorded".to_owned(),
                flops_per_s: Default::default(),
            },
            table::Entry::peaks,
        ))
    }

    /// Every device of the table.
    pub fn known() -> impl ExactSizeIterator<Item = KnownDevice> {
        table::TABLE.iter().map(|entry| KnownDevice { name: entry.name, sm_counts: entry.sm_counts, checked: entry.source.checked, entry })
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
