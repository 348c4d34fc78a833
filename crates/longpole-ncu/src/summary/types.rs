//! What a summary of one result holds. Figures that were not collected are `None`, and [`KernelSummary::missing`] says which section
//! has them.

use crate::container::EntryKind;
use crate::nvtx::NvtxRange;
use crate::rules::{MessageKind, Scope};

/// Why a kernel takes its time, on one page.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelSummary {
    /// Its place in the report, from 0: ncu's "ID".
    pub id: usize,
    /// What was profiled.
    pub kind: EntryKind,
    /// The whole name.
    pub name: String,
    /// The name without parameters and templates.
    pub function: Option<String>,
    /// Index into [`Report::processes`](crate::Report::processes).
    pub process: Option<usize>,
    /// The NVTX ranges around its launch, outermost first.
    pub nvtx: Vec<NvtxRange>,
    /// How it was launched and what that allows.
    pub launch: Launch,
    /// How fast it ran and how much of the machine it used.
    pub speed: Speed,
    /// The one word for it; `None` when the figures for a verdict were not collected.
    pub verdict: Option<Verdict>,
    /// Average warp cycles between two issued instructions of a warp.
    pub warp_cycles_per_issue: Option<f64>,
    /// What warps wait for, largest first. Empty when not collected.
    pub stalls: Vec<Stall>,
    /// What ncu's rules suggest, in the order of reading: global before local, largest estimate first, those without an estimate last.
    pub suggestions: Vec<Suggestion>,
    /// Symptoms with their own counters: uncoalesced access, bank conflicts, spills, divergence, imbalance, tail.
    pub symptoms: Vec<Symptom>,
    /// Figures that were not collected, with the section that has them.
    pub missing: Vec<Missing>,
    /// What the table export that was read cannot hold, whatever was collected. Empty for a report.
    pub not_on_page: Vec<&'static str>,
}

/// The launch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Launch {
    /// Blocks in x, y, z.
    pub grid: Option<[u64; 3]>,
    /// Threads of a block in x, y, z.
    pub block: Option<[u64; 3]>,
    /// Blocks of a cluster; `None` without clusters (or a cluster of one).
    pub cluster_size: Option<u64>,
    /// Registers a thread.
    pub registers_per_thread: Option<u64>,
    /// Shared memory of a block in bytes: static, dynamic and the driver's own.
    pub shared_bytes_per_block: Option<u64>,
    /// The static part, bytes.
    pub shared_static_bytes: Option<u64>,
    /// The dynamic part, bytes.
    pub shared_dynamic_bytes: Option<u64>,
    /// The driver's part, bytes.
    pub shared_driver_bytes: Option<u64>,
    /// How often the grid fills the device.
    pub waves_per_sm: Option<f64>,
    /// Multiprocessors of the device.
    pub sm_count: Option<u64>,
    /// Blocks an SM could hold by each resource, smallest first.
    pub limits: Vec<OccupancyLimit>,
    /// What of [`limits`](Self::limits) is smallest, ties all named.
    pub limiters: Vec<&'static str>,
    /// Occupancy that the launch allows, percent.
    pub theoretical_occupancy_pct: Option<f64>,
    /// Occupancy that it reached, percent.
    pub achieved_occupancy_pct: Option<f64>,
}

/// One limit of the blocks an SM can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OccupancyLimit {
    /// `registers`, `shared memory`, `warps`, `blocks` or `barriers`.
    pub resource: &'static str,
    /// Blocks an SM can hold by it.
    pub blocks_per_sm: u64,
}

/// Time, throughput, caches.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Speed {
    /// Time on the GPU.
    pub duration_ns: Option<u64>,
    /// Bytes read from device memory.
    pub dram_read_bytes: Option<u64>,
    /// Bytes written to device memory.
    pub dram_write_bytes: Option<u64>,
    /// Device memory traffic, bytes a second.
    pub dram_bytes_per_s: Option<f64>,
    /// What device memory could do at the clocks of the measurement, bytes a second.
    pub dram_peak_bytes_per_s: Option<f64>,
    /// Device memory throughput, percent of peak.
    pub dram_pct: Option<f64>,
    /// Throughput of the busiest part of the memory system, percent of peak.
    pub memory_pct: Option<f64>,
    /// Throughput of the busiest part of the SMs, percent of peak.
    pub sm_pct: Option<f64>,
    /// L1 throughput, percent of peak.
    pub l1_pct: Option<f64>,
    /// L2 throughput, percent of peak.
    pub l2_pct: Option<f64>,
    /// L1 hits, percent of sectors.
    pub l1_hit_pct: Option<f64>,
    /// L2 hits, percent of sectors. Can exceed 100.
    pub l2_hit_pct: Option<f64>,
    /// Instructions an SM executed per active cycle.
    pub ipc: Option<f64>,
    /// Cycles in which a scheduler issued, as a fraction of its active cycles.
    pub issue_active_fraction: Option<f64>,
    /// Warps a scheduler had, and had ready to issue, per active cycle.
    pub active_warps: Option<f64>,
    /// Warps ready to issue, per scheduler and active cycle.
    pub eligible_warps: Option<f64>,
    /// The busiest execution pipe, with percent of its peak.
    pub busiest_pipe: Option<(&'static str, f64)>,
    /// Tensor pipes, percent of peak.
    pub tensor_pct: Option<f64>,
    /// SM clock, Hz.
    pub sm_clock_hz: Option<f64>,
    /// Memory clock, Hz.
    pub dram_clock_hz: Option<f64>,
}

/// What holds a kernel back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VerdictKind {
    /// The grid is too small to fill the device.
    TooSmall,
    /// The memory system is the bottleneck.
    MemoryBound,
    /// The SMs' arithmetic is the bottleneck.
    ComputeBound,
    /// Neither is busy: warps wait.
    LatencyBound,
    /// Both are used about equally.
    Balanced,
}

impl VerdictKind {
    /// The words used in text and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TooSmall => "too small",
            Self::MemoryBound => "memory bound",
            Self::ComputeBound => "compute bound",
            Self::LatencyBound => "latency bound",
            Self::Balanced => "balanced",
        }
    }
}

/// A verdict with the rule that gave it.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The verdict.
    pub kind: VerdictKind,
    /// The figures and the limit that led to it, in one short sentence.
    pub because: String,
}

/// One reason why warps did not issue.
#[derive(Clone, Debug, PartialEq)]
pub struct Stall {
    /// The reason, as ncu names it, e.g. `long_scoreboard`.
    pub reason: &'static str,
    /// Cycles per issued instruction; `None` when only samples were collected.
    pub cycles_per_issue: Option<f64>,
    /// Its share of all warp cycles (or of all samples).
    pub share_fraction: f64,
    /// What it means, in one line.
    pub meaning: &'static str,
}

/// One message of one of ncu's rules.
#[derive(Clone, Debug, PartialEq)]
pub struct Suggestion {
    /// The rule's stable name.
    pub rule: String,
    /// What ncu calls it.
    pub title: String,
    /// Its section.
    pub section: String,
    /// The whole text.
    pub text: String,
    /// Its kind.
    pub kind: MessageKind,
    /// What the estimate is of.
    pub scope: Option<Scope>,
    /// The estimate: how many percent faster at most.
    pub speedup_pct: Option<f64>,
    /// False when it is about something that the verdict says does not hold the kernel back.
    pub is_related: bool,
}

/// Something measured that costs time of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Symptom {
    /// Stable code, e.g. `uncoalesced_access`.
    pub code: &'static str,
    /// The figures, in one short sentence.
    pub text: String,
}

/// A figure that was not collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missing {
    /// What is missing, e.g. `stall reasons`.
    pub what: &'static str,
    /// The section that has it: what `--section` takes.
    pub section: &'static str,
}
