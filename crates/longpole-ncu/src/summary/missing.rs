//! What was not collected, and which section of ncu has it.
//!
//! One row a group of figures: when the figure that stands for the group is absent, the whole group is, since a section is
//! collected as one. The sections' names are those that `ncu --section` takes, in reports from 2020.3 to 2025.3; those of two
//! groups differ by version, and the name of today's ncu is given, since that is what will be run.

use super::symptoms;
use super::types::{KernelSummary, Missing};
use crate::metrics::Metrics;

type IsThere = fn(&KernelSummary, &Metrics) -> bool;

const GROUPS: &[(&str, &str, IsThere)] = &[
    ("time and throughput", "SpeedOfLight", |summary, _| {
        summary.speed.duration_ns.is_some() && summary.speed.sm_pct.is_some() && summary.speed.memory_pct.is_some()
    }),
    ("launch", "LaunchStats", |summary, _| summary.launch.registers_per_thread.is_some()),
    ("occupancy", "Occupancy", |summary, _| {
        summary.launch.theoretical_occupancy_pct.is_some() && summary.launch.achieved_occupancy_pct.is_some()
    }),
    ("DRAM rate and cache hit rates", "MemoryWorkloadAnalysis", |summary, _| {
        summary.speed.dram_bytes_per_s.is_some() && summary.speed.l1_hit_pct.is_some() && summary.speed.l2_hit_pct.is_some()
    }),
    ("DRAM bytes", "MemoryWorkloadAnalysis_Tables", |summary, _| summary.speed.dram_read_bytes.is_some()),
    ("DRAM peak", "SpeedOfLight_RooflineChart", |summary, _| summary.speed.dram_peak_bytes_per_s.is_some()),
    ("stall reasons", "WarpStateStats", |summary, _| summary.stalls.iter().any(|stall| stall.cycles_per_issue.is_some())),
    ("issue slots and eligible warps", "SchedulerStats", |summary, _| summary.speed.eligible_warps.is_some()),
    ("instructions per cycle and pipes", "ComputeWorkloadAnalysis", |summary, _| {
        summary.speed.ipc.is_some() && summary.speed.busiest_pipe.is_some()
    }),
    ("coalescing and bank conflicts", "SourceCounters", |_, metrics| symptoms::has_access_counters(metrics)),
    ("spills", "SourceCounters", |_, metrics| symptoms::has_spill_counters(metrics)),
    ("divergence", "WarpStateStats", |_, metrics| symptoms::has_divergence_counters(metrics)),
    ("imbalance between SMs", "WorkloadDistribution", |_, metrics| symptoms::has_imbalance_counters(metrics)),
];

/// The groups that are missing, in the order of a summary.
pub(crate) fn missing(summary: &KernelSummary, metrics: &Metrics) -> Vec<Missing> {
    let absent = GROUPS.iter().filter(|(_, _, is_there)| !is_there(summary, metrics));
    absent.map(|&(what, section, _)| Missing { what, section }).collect()
}
