//! The first pass: totals, the heads of the tables, and a report of five lines with one next experiment.

use crate::families::FamilyRow;
use crate::kernels::KernelRow;
use crate::ops::OpTable;
use crate::ranges::RangeRow;
use crate::totals::Totals;

/// One device for the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HardwareDevice {
    /// Its number.
    pub id: i64,
    /// Rank it belongs to.
    pub rank: u32,
    /// Product name, if the trace says.
    pub name: Option<String>,
    /// Multiprocessors.
    pub sm_count: Option<u32>,
    /// Memory size.
    pub memory_bytes: Option<u64>,
    /// Whether the trace has activity on it.
    pub active: bool,
}

/// What the run was on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hardware {
    /// Devices the trace describes or uses.
    pub devices: Vec<HardwareDevice>,
    /// CUDA version of the driver (HIP, on AMD).
    pub driver: Option<String>,
    /// CUDA runtime version (HIP, on AMD).
    pub cuda: Option<String>,
}

/// Options of [`crate::triage`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TriageOptions {
    /// Replaces the workload line.
    pub workload: Option<String>,
}

/// The one next experiment, and the rule that chose it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NextExperiment {
    /// Stable code of the rule: `host_bound`, `one_operator`, `many_tiny_kernels`, `copies`, ...
    pub code: &'static str,
    /// What to change and what to measure after, in one sentence.
    pub text: String,
}

/// The five lines, without their heads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// What ran.
    pub workload: String,
    /// On what.
    pub hardware: String,
    /// Where device time went.
    pub top_cuda_time: String,
    /// Where host time went.
    pub top_host_cost: String,
    /// What to try next.
    pub next_experiment: NextExperiment,
}

/// Everything the first pass says.
#[derive(Clone, Debug, PartialEq)]
pub struct Triage {
    /// Hardware.
    pub hardware: Hardware,
    /// Totals.
    pub totals: Totals,
    /// Operators.
    pub ops: OpTable,
    /// Families, largest first.
    pub families: Vec<FamilyRow>,
    /// Kernels, largest first.
    pub kernels: Vec<KernelRow>,
    /// Ranges, in nesting order.
    pub ranges: Vec<RangeRow>,
    /// The report.
    pub report: Report,
}
