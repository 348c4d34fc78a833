//! The table of devices.
//!
//! Bandwidth in GB/s (10^9 bytes). Arithmetic in tenths of a TFLOP/s (10^11 operations a second), dense, in the order of [`PeakKind`]:
//! fp64, fp64 on matrix units, fp32, TF32, fp16, bf16, fp8, fp4, int8; 0 where the device has no such units or no figure could be
//! confirmed. Where a vendor prints figures with sparsity, half of them stand here. Consumer cards, the L40 and the A10G accumulate fp16 and
//! fp8 products in fp32 at half the rate of fp16 accumulation; frameworks accumulate in fp32, so that rate stands here. Where two documents of
//! the vendor disagree, the higher figure stands here: a floor must not be above the truth.
//!
//! The source says which document a line is from and what else it was compared with. "Units and clock" is multiprocessors, times operations
//! each does in a clock, times boost clock, which the tests work out again.

use longpole_trace::DeviceProperties;

use super::{PeakKind, Peaks};

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: &'static str,
    /// Words that must all be in the device's name.
    words: &'static [&'static str],
    pub(super) sm_counts: &'static [u32],
    /// Least and most memory in GB, as a driver reports it.
    memory: Option<(u64, u64)>,
    bandwidth: u64,
    cache_mib: u64,
    tenths: [u64; PeakKind::ALL.len()],
    pub(super) source: Source,
}

/// Where a line is from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source {
    /// The vendor's document.
    pub(super) document: &'static str,
    /// What else the figures were compared with.
    pub(super) checked: &'static str,
}

impl Entry {
    pub(super) fn peaks(&self) -> Peaks {
        Peaks {
            name: self.name.to_owned(),
            memory_bytes_per_s: self.bandwidth * 1_000_000_000,
            cache_bytes: Some(self.cache_mib << 20),
            source: self.source.document.to_owned(),
            flops_per_s: self.tenths.map(|tenths| Some(tenths * 100_000_000_000).filter(|&rate| rate > 0)),
        }
    }

    fn fits(&self, properties: &DeviceProperties) -> bool {
        let sm_fits = |count: u32| self.sm_counts.is_empty() || self.sm_counts.contains(&count);
        let memory_fits = |bytes: u64| self.memory.is_none_or(|(least, most)| (least..=most).contains(&(bytes / 1_000_000_000)));
        properties.sm_count.is_none_or(sm_fits) && properties.memory_bytes.is_none_or(memory_fits)
    }
}

/// A device name as words: letters and digits, lower-cased, split at everything else.
fn words(name: &str) -> Vec<String> {
    name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_ascii_lowercase).collect()
}

/// Words that make another model of a name: an RTX 5090 D is no RTX 5090.
const OTHER_MODEL: [&str; 4] = ["d", "ti", "super", "laptop"];

/// The first line whose words are all in the name and whose size fits. A name that says no model is told by its size, if one line alone
/// fits.
pub(super) fn find(properties: &DeviceProperties) -> Option<&'static Entry> {
    const GENERIC: [&str; 5] = ["amd", "radeon", "graphics", "instinct", "nvidia"];
    let name = words(properties.name.as_deref().unwrap_or_default());
    if name.iter().any(|word| word == "mig" || OTHER_MODEL.contains(&word.as_str())) {
        return None;
    }
    if name.iter().any(|word| !GENERIC.contains(&word.as_str())) {
        return TABLE.iter().find(|entry| entry.words.iter().all(|word| name.iter().any(|has| has == word)) && entry.fits(properties));
    }
    properties.sm_count?;
    properties.memory_bytes?;
    let mut fitting = TABLE.iter().filter(|entry| !entry.sm_counts.is_empty() && entry.memory.is_some() && entry.fits(properties));
    fitting.next().filter(|first| fitting.all(|other| other.name == first.name))
}

/// The only line with so many multiprocessors whose bandwidth is within a thirtieth of one that clock and bus width give: vendors round theirs.
pub(super) fn find_by_bus(sm_count: u32, bytes_per_s: u64) -> Option<&'static Entry> {
    let near = |entry: &&Entry| (entry.bandwidth * 1_000_000_000).abs_diff(bytes_per_s) <= bytes_per_s / 30;
    let mut fitting = TABLE.iter().filter(|entry| entry.sm_counts.contains(&sm_count)).filter(near);
    fitting.next().filter(|first| fitting.all(|other| other.tenths == first.tenths))
}

const TESLA: Source =
    Source { document: "NVIDIA V100 datasheet (2020) and whitepaper", checked: "TechPowerUp (all but tensor), units and clock (tensor)" };
const T4: Source = Source { document: "NVIDIA T4 datasheet (2019)", checked: "TechPowerUp (all but tensor), units and clock (tensor)" };
const A100: Source = Source {
    document: "NVIDIA A100 datasheet (2022), cache: whitepaper",
    checked: "TechPowerUp (all but tensor, and its 80 MiB for the PCIe card: the whitepaper has 40), torch's own device table, units \
              and clock (tensor)",
};
const A30: Source = Source { document: "NVIDIA A30 datasheet (2022)", checked: "TechPowerUp (all but tensor), units and clock (tensor)" };
const A10G: Source = Source {
    document: "NVIDIA A10G datasheet for AWS (2022)",
    checked: "SMs and cache as torch reports them (TechPowerUp has 72 SMs), units and clock (arithmetic)",
};
const GA102_DC: Source = Source {
    document: "NVIDIA A10 (2021) and A40 (2022) datasheets",
    checked: "TechPowerUp (all but tensor), vendors' listings, units and clock (tensor)",
};
const ADA_DC: Source = Source {
    document: "NVIDIA L40S, L40 and L4 datasheets (2023), sparsity halved",
    checked: "TechPowerUp (all but tensor, and its 48 MiB for the L40S: measured 96), vendors' listings, units and clock (tensor)",
};
const H100: Source = Source {
    document: "NVIDIA H100 datasheet (2024), sparsity halved, cache: whitepaper",
    checked: "TechPowerUp (all but tensor), device tables of torchtitan and NVIDIA's exemplar benchmarks (tensor)",
};
const H100_PCIE: Source =
    Source { document: "NVIDIA H100 whitepaper v1.04", checked: "TechPowerUp (all but tensor), torchtitan's device table (tensor)" };
const H200: Source = Source {
    document: "NVIDIA H200 datasheet (2024), sparsity halved, cache: whitepaper",
    checked: "TechPowerUp (all but GB/s, where it has 4,890 by the memory's clock, and tensor), torchtitan's device table (tensor)",
};
const GH200: Source =
    Source { document: "NVIDIA GH200 datasheet (2024), sparsity halved", checked: "articles (GB/s), otherwise as H100 SXM, the same chip" };
const B200: Source = Source {
    document: "NVIDIA Blackwell datasheet: HGX B200, sparsity halved (TF32 as printed for eight)",
    checked: "SMs, cache and bus as the driver reports them (7,672 GB/s), NVIDIA's exemplar benchmarks (GB/s, bf16, fp8, fp4), \
              TechPowerUp (fp64, fp32)",
};
const B300: Source = Source {
    document: "NVIDIA Blackwell Ultra datasheet: HGX B300, sparsity halved (TF32 as printed for eight), fp4 printed dense",
    checked: "NVIDIA's exemplar benchmarks (GB/s, bf16, fp8; fp4 there and on the page of HGX B300 is 13,500), measured SMs and \
              cache, TechPowerUp (fp64, fp32)",
};
const GB200: Source = Source {
    document: "NVIDIA Blackwell datasheet: GB200, sparsity halved",
    checked: "measured SMs, NVIDIA's exemplar benchmarks (GB/s, bf16, fp8, fp4, 2 % lower); cache as B200",
};
const GB300: Source = Source {
    document: "NVIDIA Blackwell Ultra datasheet: GB300, sparsity halved, fp4 printed dense",
    checked: "measured SMs, NVIDIA's exemplar benchmarks (GB/s, bf16, fp8, fp4, 2 % lower); cache as B300",
};
const GA102: Source =
    Source { document: "NVIDIA GA102 whitepaper v2.1", checked: "TechPowerUp (all but tensor), units and clock (tensor)" };
const A5000: Source = Source {
    document: "NVIDIA RTX A5000 datasheet (2021), sparsity halved",
    checked: "TechPowerUp (all but tensor), units and clock (tensor)",
};
const ADA: Source = Source { document: "NVIDIA Ada whitepaper v2.1", checked: "TechPowerUp (all but tensor), units and clock (tensor)" };
const BLACKWELL_RTX: Source =
    Source { document: "NVIDIA RTX Blackwell whitepaper v1.1", checked: "TechPowerUp (all but tensor), units and clock (tensor)" };
const BLACKWELL_PRO: Source = Source {
    document: "NVIDIA RTX PRO Blackwell whitepaper v1.0",
    checked: "TechPowerUp (all but tensor), hmc-tech (tensor), units and clock (tensor)",
};
const BLACKWELL_PRO_MAX_Q: Source = Source {
    document: "NVIDIA RTX PRO 6000 Max-Q datasheet (2025: GB/s, fp32, fp4 with sparsity halved); other types by the Workstation's ratios",
    checked: "TechPowerUp (all but tensor), units and clock (tensor)",
};
const BLACKWELL_PRO_SERVER: Source = Source {
    document: "NVIDIA RTX PRO 6000 Server datasheet (2025: GB/s, fp32) and product page (fp16, fp8, fp4, sparsity halved); TF32 and \
               int8 by the Workstation's ratios",
    checked: "TechPowerUp (SMs, cache)",
};
const CDNA2: Source = Source {
    document: "AMD Instinct MI200 datasheets (2022), packages of two dies halved, fp32 packed",
    checked: "AMD's ROCm documentation of MI250 (CUs, cache, arithmetic), TechPowerUp (GB/s)",
};
const CDNA3: Source = Source {
    document: "AMD Instinct MI300X and MI300A datasheets (2023)",
    checked: "AMD's ROCm documentation (CUs, Infinity Cache, MI300X arithmetic), torch's own device table, AMD's footnote MI300-05A \
              (GB/s: 8,192 bits at 5.2 Gbit/s)",
};
const MI325X: Source = Source {
    document: "AMD Instinct MI325X datasheet (2024)",
    checked: "AMD's ROCm documentation (CUs, Infinity Cache), TraceLens (GB/s), units and clock (arithmetic)",
};
const CDNA4: Source = Source {
    document: "AMD Instinct MI350X and MI355X datasheets (2025)",
    checked: "AMD's ROCm documentation (CUs, Infinity Cache), torch's own device table (MI350X), units and clock (arithmetic)",
};

macro_rules! entry {
    ($name:literal, [$($word:literal),*], [$($sm:literal),*], $memory:expr, $bandwidth:literal, $cache:literal, $tenths:expr, $source:expr) => {
        Entry {
            name: $name,
            words: &[$($word),*],
            sm_counts: &[$($sm),*],
            memory: $memory,
            bandwidth: $bandwidth,
            cache_mib: $cache,
            tenths: $tenths,
            source: $source,
        }
    };
}

/// Lines with more words stand before those with fewer.
pub(super) static TABLE: &[Entry] = &[
    //     name, words of its name, SMs, memory GB, GB/s, cache MiB, [fp64, fp64 matrix, fp32, TF32, fp16, bf16, fp8, fp4, int8], source
    entry!("V100S PCIe", ["v100s"], [80], None, 1134, 6, [82, 0, 164, 0, 1300, 0, 0, 0, 0], TESLA),
    entry!("V100 PCIe", ["v100", "pcie"], [80], None, 900, 6, [70, 0, 140, 0, 1120, 0, 0, 0, 0], TESLA),
    entry!("V100 SXM2", ["v100", "sxm2"], [80], None, 900, 6, [78, 0, 157, 0, 1250, 0, 0, 0, 0], TESLA),
    entry!("V100 SXM2", ["v100", "dgxs"], [80], None, 900, 6, [78, 0, 157, 0, 1250, 0, 0, 0, 0], TESLA),
    entry!("T4", ["t4"], [40], Some((15, 17)), 320, 4, [0, 0, 81, 0, 650, 0, 0, 0, 1300], T4),
    entry!("A100 PCIe 80 GB", ["a100", "pcie"], [108], Some((78, 90)), 1935, 40, [97, 195, 195, 1560, 3120, 3120, 0, 0, 6240], A100),
    entry!("A100 SXM 80 GB", ["a100"], [108], Some((78, 90)), 2039, 40, [97, 195, 195, 1560, 3120, 3120, 0, 0, 6240], A100),
    entry!("A100 40 GB", ["a100"], [108], Some((38, 45)), 1555, 40, [97, 195, 195, 1560, 3120, 3120, 0, 0, 6240], A100),
    entry!("A30", ["a30"], [56], None, 933, 24, [52, 103, 103, 820, 1650, 1650, 0, 0, 3300], A30),
    entry!("A10G", ["a10g"], [80], None, 600, 6, [0, 0, 350, 350, 700, 700, 0, 0, 1400], A10G),
    entry!("A10", ["a10"], [72], None, 600, 6, [0, 0, 312, 625, 1250, 1250, 0, 0, 2500], GA102_DC),
    entry!("A40", ["a40"], [84], None, 696, 6, [0, 0, 374, 748, 1497, 1497, 0, 0, 2993], GA102_DC),
    entry!("L4", ["l4"], [58], None, 300, 48, [0, 0, 303, 600, 1210, 1210, 2425, 0, 2425], ADA_DC),
    entry!("L40S", ["l40s"], [142], None, 864, 96, [14, 0, 916, 1830, 3620, 3620, 7330, 0, 7330], ADA_DC),
    entry!("L40", ["l40"], [142], None, 864, 96, [14, 0, 905, 905, 1810, 1810, 3620, 0, 3620], ADA_DC),
    entry!("H100 NVL", ["h100", "nvl"], [132], None, 3938, 50, [300, 600, 600, 4175, 8355, 8355, 16_705, 0, 16_705], H100),
    entry!("H100 PCIe", ["h100", "pcie"], [114], None, 2039, 50, [256, 512, 512, 3780, 7560, 7560, 15_130, 0, 15_130], H100_PCIE),
    entry!("H100 SXM", ["h100"], [132], None, 3350, 50, [340, 670, 670, 4945, 9895, 9895, 19_790, 0, 19_790], H100),
    entry!("H200 NVL", ["h200", "nvl"], [132], None, 4800, 50, [300, 600, 600, 4175, 8355, 8355, 16_705, 0, 16_705], H200),
    entry!("H200 SXM", ["h200"], [132], Some((130, 155)), 4800, 50, [340, 670, 670, 4945, 9895, 9895, 19_790, 0, 19_790], H200),
    entry!("GH200 144 GB", ["gh200"], [132], Some((120, 160)), 4900, 50, [340, 670, 670, 4945, 9900, 9900, 19_790, 0, 19_790], GH200),
    entry!("GH200 96 GB", ["gh200"], [132], Some((90, 105)), 4000, 50, [340, 670, 670, 4945, 9900, 9900, 19_790, 0, 19_790], GH200),
    entry!("B200", ["b200"], [148], None, 7700, 126, [370, 370, 750, 11_250, 22_500, 22_500, 45_000, 90_000, 45_000], B200),
    entry!("B300", ["b300"], [148], None, 7700, 126, [12, 12, 750, 11_250, 22_500, 22_500, 45_000, 140_000, 1535], B300),
    entry!("GB200", ["gb200"], [148, 152], None, 8000, 126, [400, 400, 800, 12_500, 25_000, 25_000, 50_000, 100_000, 50_000], GB200),
    entry!("GB300", ["gb300"], [148, 152], None, 8000, 126, [13, 13, 800, 12_500, 25_000, 25_000, 50_000, 150_000, 1650], GB300),
    entry!("RTX 3080 10 GB", ["rtx", "3080"], [68], None, 760, 5, [0, 0, 298, 298, 595, 595, 0, 0, 2380], GA102),
    entry!("RTX 3090", ["rtx", "3090"], [82], None, 936, 6, [0, 0, 356, 356, 712, 712, 0, 0, 2840], GA102),
    entry!("RTX A5000", ["a5000"], [64], None, 768, 6, [0, 0, 278, 555, 1111, 1111, 0, 0, 2222], A5000),
    entry!("RTX A6000", ["a6000"], [84], None, 768, 6, [0, 0, 387, 774, 1548, 1548, 0, 0, 3097], GA102),
    entry!("RTX 4080", ["rtx", "4080"], [76], None, 717, 64, [0, 0, 487, 487, 975, 975, 1949, 0, 3899], ADA),
    entry!("RTX 4090", ["rtx", "4090"], [128], None, 1008, 72, [13, 0, 826, 826, 1652, 1652, 3303, 0, 6606], ADA),
    entry!("RTX 6000 Ada", ["rtx", "6000", "ada"], [142], None, 960, 96, [14, 0, 911, 1821, 3642, 3642, 7285, 0, 7285], ADA),
    entry!("RTX 5080", ["rtx", "5080"], [84], None, 960, 64, [0, 0, 563, 563, 1126, 1126, 2251, 9004, 4502], BLACKWELL_RTX),
    entry!("RTX 5090", ["rtx", "5090"], [170], None, 1792, 96, [16, 0, 1048, 1048, 2095, 2095, 4190, 16_760, 8380], BLACKWELL_RTX),
    entry!(
        "RTX PRO 6000 Blackwell Max-Q",
        ["rtx", "pro", "6000", "blackwell", "max"],
        [188],
        None,
        1792,
        128,
        [17, 0, 1097, 2194, 4389, 4389, 8778, 17_555, 8778],
        BLACKWELL_PRO_MAX_Q
    ),
    entry!(
        "RTX PRO 6000 Blackwell Server",
        ["rtx", "pro", "6000", "blackwell", "server"],
        [188],
        None,
        1597,
        128,
        [0, 0, 1200, 2500, 5000, 5000, 10_000, 20_000, 10_000],
        BLACKWELL_PRO_SERVER
    ),
    entry!(
        "RTX PRO 6000 Blackwell Workstation",
        ["rtx", "pro", "6000", "blackwell"],
        [188],
        None,
        1792,
        128,
        [20, 0, 1260, 2519, 5038, 5038, 10_076, 20_152, 10_076],
        BLACKWELL_PRO
    ),
    entry!("MI250X (one of two dies)", ["mi250x"], [110], Some((60, 70)), 1638, 8, [239, 479, 479, 0, 1915, 1915, 0, 0, 1915], CDNA2),
    entry!("MI250, MI210 (one die)", ["mi250"], [104], Some((60, 70)), 1638, 8, [226, 453, 453, 0, 1810, 1810, 0, 0, 1810], CDNA2),
    entry!("MI250, MI210 (one die)", ["mi210"], [104], None, 1638, 8, [226, 453, 453, 0, 1810, 1810, 0, 0, 1810], CDNA2),
    entry!("MI300X", ["mi300x"], [304], Some((180, 210)), 5325, 256, [817, 1634, 1634, 6537, 13_074, 13_074, 26_149, 0, 26_149], CDNA3),
    entry!("MI300A", ["mi300a"], [228], Some((100, 140)), 5325, 256, [613, 1226, 1226, 4903, 9806, 9806, 19_612, 0, 19_612], CDNA3),
    entry!("MI325X", ["mi325x"], [304], Some((240, 280)), 6000, 256, [817, 1634, 1634, 6537, 13_074, 13_074, 26_149, 0, 26_149], MI325X),
    entry!("MI350X", ["mi350x"], [256], Some((270, 320)), 8000, 256, [721, 721, 1442, 0, 23_069, 23_069, 46_137, 92_275, 46_137], CDNA4),
    entry!("MI355X", ["mi355x"], [256], Some((270, 320)), 8000, 256, [786, 786, 1573, 0, 25_166, 25_166, 50_332, 100_663, 50_332], CDNA4),
];
