//! What was not collected, and which section of ncu has it.
//!
//! One row a group of figures: when the figure that stands for the group is absent, the whole group is, since a section is
//! collected as one. The sections' names are those that `ncu --section` takes, in reports from 2020.3 to 2025.3; those of two
//! groups differ by version, and the name of today's ncu is given, since that is what will be run.
//!
//! A section that was collected is not asked for again: what it lacks, ncu does not have for this GPU or this kind of result.

use super::symptoms;
use super::types::{KernelSummary, Missing};
use crate::metrics::Metrics;
use crate::report::{Page, Report};
use crate::result::ProfiledResult;

type IsThere = fn(&KernelSummary, &Metrics) -> bool;

const GROUPS: &[(&str, &str, IsThere)] = &[
    ("time", "SpeedOfLight", |summary, _| summary.speed.duration_ns.is_some()),
    ("throughput", "SpeedOfLight", |summary, _| summary.speed.sm_pct.is_some() && summary.speed.memory_pct.is_some()),
    ("registers", "LaunchStats", |summary, _| summary.launch.registers_per_thread.is_some()),
    ("theoretical occupancy", "Occupancy", |summary, _| summary.launch.theoretical_occupancy_pct.is_some()),
    ("achieved occupancy", "Occupancy", |summary, _| summary.launch.achieved_occupancy_pct.is_some()),
    ("DRAM rate", "MemoryWorkloadAnalysis", |summary, _| summary.speed.dram_bytes_per_s.is_some()),
    ("cache hit rates", "MemoryWorkloadAnalysis", |summary, _| summary.speed.l1_hit_pct.is_some() && summary.speed.l2_hit_pct.is_some()),
    ("DRAM bytes", "MemoryWorkloadAnalysis_Tables", |summary, _| summary.speed.dram_read_bytes.is_some()),
    ("DRAM peak", "SpeedOfLight_RooflineChart", |summary, _| summary.speed.dram_peak_bytes_per_s.is_some()),
    ("stall reasons", "WarpStateStats", |summary, _| summary.stalls.iter().any(|stall| stall.cycles_per_issue.is_some())),
    ("issue slots", "SchedulerStats", |summary, _| summary.speed.issue_active_fraction.is_some()),
    ("eligible warps", "SchedulerStats", |summary, _| summary.speed.eligible_warps.is_some()),
    ("instructions per cycle", "ComputeWorkloadAnalysis", |summary, _| summary.speed.ipc.is_some()),
    ("pipes", "ComputeWorkloadAnalysis", |summary, _| summary.speed.busiest_pipe.is_some()),
    ("coalescing and bank conflicts", "SourceCounters", |_, metrics| symptoms::has_access_counters(metrics)),
    ("spills", "MemoryWorkloadAnalysis", |_, metrics| symptoms::has_spill_counters(metrics)),
    ("divergence", "WarpStateStats", |_, metrics| symptoms::has_divergence_counters(metrics)),
    (IMBALANCE, "WorkloadDistribution", |_, metrics| symptoms::has_imbalance_counters(metrics)),
];

/// The section of this came with ncu 2024.1.
const IMBALANCE: &str = "imbalance between SMs";

/// What the details page has no rows for, whatever was collected.
const NOT_IN_DETAILS: &[&str] =
    &["DRAM bytes", "DRAM peak", "stall reasons", "pipes", "coalescing and bank conflicts", "divergence", IMBALANCE];

/// The groups that a table export cannot hold, besides what it holds of no kernel.
pub(crate) fn not_on_page(page: Page, summary: &KernelSummary, result: &ProfiledResult) -> Vec<&'static str> {
    match page {
        Page::Whole => Vec::new(),
        Page::Raw => vec!["ncu's suggestions", "hot instructions"],
        Page::Details => {
            let groups = GROUPS.iter().filter(|(what, _, is_there)| NOT_IN_DETAILS.contains(what) && !is_there(summary, &result.metrics));
            groups.map(|(what, ..)| *what).chain(["hot instructions"]).collect()
        }
    }
}

/// The groups that are missing and can be had with a section, in the order of a summary.
pub(crate) fn missing(report: &Report, summary: &KernelSummary, result: &ProfiledResult) -> Vec<Missing> {
    let year = report.session().ncu_version().and_then(|version| version.split('.').next()?.parse::<u32>().ok());
    let is_known = |what: &str| {
        (what != IMBALANCE || year.is_none_or(|year| year >= 2024)) && (report.page() != Page::Details || !NOT_IN_DETAILS.contains(&what))
    };
    let was_collected = |section: &str| result.sections.iter().any(|collected| collected.id == section);
    let absent =
        GROUPS.iter().filter(|(what, section, is_there)| is_known(what) && !is_there(summary, &result.metrics) && !was_collected(section));
    absent.map(|&(what, section, _)| Missing { what, section }).collect()
}

#[cfg(test)]
mod tests {
    use crate::summary::{selection, summarize};
    use crate::testing::{Sample, report};

    fn sections(sample: Sample) -> Vec<(&'static str, &'static str)> {
        let report = report(vec![sample]);
        let result = report.decode(0, &selection(&report)).unwrap();
        summarize(&report, &result).missing.iter().map(|missing| (missing.what, missing.section)).collect()
    }

    #[test]
    fn a_group_is_missing_until_its_figure_is_there() {
        let all = sections(Sample::kernel("k"));
        assert_eq!(all.len(), super::GROUPS.len());
        let some = Sample::kernel("k")
            .value("gpu__time_duration.sum", 1.0)
            .value("sm__throughput.avg.pct_of_peak_sustained_elapsed", 1.0)
            .value("gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed", 1.0)
            .value("smsp__average_warp_latency_per_inst_issued.ratio", 2.0)
            .value("smsp__average_warps_issue_stalled_wait_per_issue_active.ratio", 1.0)
            .value("sm__cycles_active.max", 1.0);
        let left = sections(some.clone());
        let gone: Vec<_> = all.iter().filter(|group| !left.contains(group)).map(|(what, _)| *what).collect();
        assert_eq!(gone, ["time", "throughput", "stall reasons", "imbalance between SMs"]);
        // Samples alone do not stand for exact cycles.
        let sampled = Sample::kernel("k").value("smsp__pcsamp_warps_issue_stalled_wait", 5.0);
        assert!(sections(sampled).contains(&("stall reasons", "WarpStateStats")));
    }

    #[test]
    fn a_section_that_was_collected_is_not_asked_for_again() {
        let left = sections(Sample::kernel("k").section("Occupancy"));
        assert!(!left.iter().any(|(_, section)| *section == "Occupancy"));
        assert_eq!(left.len(), super::GROUPS.len() - 2);
    }

    #[test]
    fn what_an_old_ncu_does_not_have_is_not_asked_for() {
        for (version, is_asked) in [("2020.3.1", false), ("2022.4.1.0", false), ("2024.1", true), ("", true)] {
            let mut report = report(vec![Sample::kernel("k").value("gpu__time_duration.sum", 5.0)]);
            if !version.is_empty() {
                report.session.versions.push(("Nsight Compute Target".to_owned(), version.to_owned()));
            }
            let result = report.decode(0, &selection(&report)).unwrap();
            let missing = summarize(&report, &result).missing;
            assert_eq!(missing.iter().any(|missing| missing.section == "WorkloadDistribution"), is_asked, "{version}");
            assert!(missing.iter().all(|missing| missing.what != "time") && missing.iter().any(|missing| missing.what == "throughput"));
        }
    }
}
