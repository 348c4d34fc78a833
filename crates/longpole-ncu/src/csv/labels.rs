//! ncu's English labels on its details page, and the metrics behind them.
//!
//! The reports of the corpus (ncu 2020.3, 2022.4 and 2025.3) carry these labels beside the names. Left out are labels whose metric depends
//! on the version (`SM Busy`, `Issue Slots Busy` changed from active to elapsed cycles) or on the device (compression in L2).

/// One section.
pub(super) struct LabelledSection {
    /// Its stable name.
    pub(super) id: &'static str,
    /// Its titles, newest first.
    pub(super) titles: &'static [&'static str],
    /// Its labels with their metrics.
    pub(super) labels: &'static [(&'static str, &'static str)],
}

/// The section of a title.
pub(super) fn section(title: &str) -> Option<&'static LabelledSection> {
    SECTIONS.iter().find(|section| section.titles.contains(&title))
}

/// The metric of a label in the section of this title.
pub(super) fn metric(title: &str, label: &str) -> Option<&'static str> {
    section(title)?.labels.iter().find(|(known, _)| *known == label).map(|(_, metric)| *metric)
}

const SECTIONS: &[LabelledSection] = &[
    LabelledSection {
        id: "ComputeWorkloadAnalysis",
        titles: &["Compute Workload Analysis"],
        labels: &[
            ("Executed Ipc Active", "sm__inst_executed.avg.per_cycle_active"),
            ("Executed Ipc Elapsed", "sm__inst_executed.avg.per_cycle_elapsed"),
            ("Issued Ipc Active", "sm__inst_issued.avg.per_cycle_active"),
        ],
    },
    LabelledSection {
        id: "InstructionStats",
        titles: &["Instruction Statistics"],
        labels: &[
            ("Avg. Executed Instructions Per Scheduler", "smsp__inst_executed.avg"),
            ("Avg. Issued Instructions Per Scheduler", "smsp__inst_issued.avg"),
            ("Executed Instructions", "smsp__inst_executed.sum"),
            ("Issued Instructions", "smsp__inst_issued.sum"),
        ],
    },
    LabelledSection {
        id: "LaunchStats",
        titles: &["Launch Statistics"],
        labels: &[
            ("# SMs", "launch__sm_count"),
            ("# TPCs", "launch__tpc_count"),
            ("Block Size", "launch__block_size"),
            ("Cluster Scheduling Policy", "launch__cluster_scheduling_policy"),
            ("Cluster Size", "launch__cluster_size"),
            ("Driver Shared Memory Per Block", "launch__shared_mem_per_block_driver"),
            ("Dynamic Shared Memory Per Block", "launch__shared_mem_per_block_dynamic"),
            ("Enabled TPC IDs", "launch__tpc_enabled"),
            ("Function Cache Configuration", "launch__func_cache_config"),
            ("Grid Size", "launch__grid_size"),
            ("Preferred Cluster Size", "launch__preferred_cluster_size"),
            ("Registers Per Thread", "launch__registers_per_thread"),
            ("Shared Memory Configuration Size", "launch__shared_mem_config_size"),
            ("Stack Size", "launch__stack_size"),
            ("Static Shared Memory Per Block", "launch__shared_mem_per_block_static"),
            ("Threads", "launch__thread_count"),
            ("Uses Green Context", "launch__uses_green_context"),
            ("Waves Per SM", "launch__waves_per_multiprocessor"),
        ],
    },
    LabelledSection {
        id: "MemoryWorkloadAnalysis",
        titles: &["Memory Workload Analysis"],
        labels: &[
            ("L1/TEX Hit Rate", "l1tex__t_sector_hit_rate.pct"),
            ("L2 Hit Rate", "lts__t_sector_hit_rate.pct"),
            ("L2 Persisting Size", "launch__persisting_l2_cache_size"),
            ("Local Memory Spilling Request Overhead", "derived__local_spilling_requests_pct"),
            ("Local Memory Spilling Requests", "derived__local_spilling_requests"),
            ("Max Bandwidth", "gpu__compute_memory_request_throughput.avg.pct_of_peak_sustained_elapsed"),
            ("Mem Busy", "gpu__compute_memory_access_throughput.avg.pct_of_peak_sustained_elapsed"),
            ("Mem Pipes Busy", "sm__memory_throughput.avg.pct_of_peak_sustained_elapsed"),
            ("Memory Throughput", "dram__bytes.sum.per_second"),
        ],
    },
    LabelledSection {
        id: "Nvlink",
        titles: &["NVLink"],
        labels: &[("Logical Links", "nvlink__count_logical"), ("Physical Links", "nvlink__count_physical")],
    },
    LabelledSection {
        id: "Occupancy",
        titles: &["Occupancy"],
        labels: &[
            ("Achieved Active Warps Per SM", "sm__warps_active.avg.per_cycle_active"),
            ("Achieved Occupancy", "sm__warps_active.avg.pct_of_peak_sustained_active"),
            ("Block Limit Barriers", "launch__occupancy_limit_barriers"),
            ("Block Limit Registers", "launch__occupancy_limit_registers"),
            ("Block Limit SM", "launch__occupancy_limit_blocks"),
            ("Block Limit Shared Mem", "launch__occupancy_limit_shared_mem"),
            ("Block Limit Warps", "launch__occupancy_limit_warps"),
            ("Cluster Occupancy", "launch__occupancy_cluster_pct"),
            ("Max Active Clusters", "launch__cluster_max_active"),
            ("Max Cluster Size", "launch__cluster_max_potential_size"),
            ("Overall GPU Occupancy", "launch__occupancy_cluster_gpu_pct"),
            ("Theoretical Active Warps per SM", "sm__maximum_warps_avg_per_active_cycle"),
            ("Theoretical Occupancy", "sm__maximum_warps_per_active_cycle_pct"),
        ],
    },
    LabelledSection {
        id: "PmSampling",
        titles: &["PM Sampling"],
        labels: &[
            ("# Pass Groups", "profiler__pmsampler_pass_groups"),
            ("Maximum Buffer Size", "profiler__pmsampler_buffer_size_bytes"),
            ("Maximum Sampling Interval", "profiler__pmsampler_interval_time"),
        ],
    },
    LabelledSection {
        id: "SchedulerStats",
        titles: &["Scheduler Statistics"],
        labels: &[
            ("Active Warps Per Scheduler", "smsp__warps_active.avg.per_cycle_active"),
            ("Eligible Warps Per Scheduler", "smsp__warps_eligible.avg.per_cycle_active"),
            ("Issued Warp Per Scheduler", "smsp__issue_active.avg.per_cycle_active"),
            ("No Eligible", "smsp__issue_inst0.avg.pct_of_peak_sustained_active"),
            ("One or More Eligible", "smsp__issue_active.avg.pct_of_peak_sustained_active"),
        ],
    },
    LabelledSection {
        id: "SourceCounters",
        titles: &["Source Counters"],
        labels: &[
            ("Avg. Divergent Branches", "smsp__sass_branch_targets_threads_divergent.avg"),
            ("Branch Efficiency", "smsp__sass_average_branch_targets_threads_uniform.pct"),
            ("Branch Instructions", "smsp__inst_executed_op_branch.sum"),
            ("Branch Instructions Ratio", "derived__smsp__inst_executed_op_branch_pct"),
        ],
    },
    LabelledSection {
        id: "SpeedOfLight",
        titles: &["GPU Speed Of Light Throughput", "GPU Speed Of Light"],
        labels: &[
            ("Compute (SM) Throughput", "sm__throughput.avg.pct_of_peak_sustained_elapsed"),
            ("DRAM Frequency", "dram__cycles_elapsed.avg.per_second"),
            ("DRAM Throughput", "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"),
            ("Duration", "gpu__time_duration.sum"),
            ("Elapsed Cycles", "gpc__cycles_elapsed.max"),
            ("L1/TEX Cache Throughput", "l1tex__throughput.avg.pct_of_peak_sustained_active"),
            ("L2 Cache Throughput", "lts__throughput.avg.pct_of_peak_sustained_elapsed"),
            ("Memory Throughput", "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"),
            ("SM Active Cycles", "sm__cycles_active.avg"),
            ("SM Frequency", "gpc__cycles_elapsed.avg.per_second"),
            ("SOL DRAM", "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"),
            ("SOL L1/TEX Cache", "l1tex__throughput.avg.pct_of_peak_sustained_active"),
            ("SOL L2 Cache", "lts__throughput.avg.pct_of_peak_sustained_elapsed"),
            ("SOL Memory", "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"),
            ("SOL SM", "sm__throughput.avg.pct_of_peak_sustained_elapsed"),
        ],
    },
    LabelledSection {
        id: "WarpStateStats",
        titles: &["Warp State Statistics"],
        labels: &[
            ("Avg. Active Threads Per Warp", "smsp__thread_inst_executed_per_inst_executed.ratio"),
            ("Avg. Not Predicated Off Threads Per Warp", "smsp__thread_inst_executed_pred_on_per_inst_executed.ratio"),
            ("Warp Cycles Per Executed Instruction", "smsp__average_warps_active_per_inst_executed.ratio"),
            ("Warp Cycles Per Issued Instruction", "smsp__average_warp_latency_per_inst_issued.ratio"),
        ],
    },
    LabelledSection {
        id: "WorkloadDistribution",
        titles: &["GPU and Memory Workload Distribution"],
        labels: &[
            ("Average DRAM Active Cycles", "dram__cycles_active.avg"),
            ("Average L1 Active Cycles", "l1tex__cycles_active.avg"),
            ("Average L2 Active Cycles", "lts__cycles_active.avg"),
            ("Average MC Channel Active Cycles", "mcc__cycles_active.avg"),
            ("Average SM Active Cycles", "sm__cycles_active.avg"),
            ("Average SMSP Active Cycles", "smsp__cycles_active.avg"),
            ("Total DRAM Elapsed Cycles", "dram__cycles_elapsed.sum"),
            ("Total L1 Elapsed Cycles", "l1tex__cycles_elapsed.sum"),
            ("Total L2 Elapsed Cycles", "lts__cycles_elapsed.sum"),
            ("Total MC Channel Elapsed Cycles", "mcc__cycles_elapsed.sum"),
            ("Total SM Elapsed Cycles", "sm__cycles_elapsed.sum"),
            ("Total SMSP Elapsed Cycles", "smsp__cycles_elapsed.sum"),
        ],
    },
];
