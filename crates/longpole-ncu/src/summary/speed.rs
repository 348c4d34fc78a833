//! How fast it ran, and how much of the machine it used.
//!
//! One figure has different names on different GPUs and in different versions of ncu: each is looked for under its names in
//! order, and the first that is there counts. Figures ending in `_active` are relative to the cycles in which the unit had work,
//! those in `_elapsed` to the whole time; each figure here is the one that ncu shows on its details page.

use super::types::Speed;
use crate::metrics::Metrics;

const DURATION: &str = "gpu__time_duration.sum";
const SM: &str = "sm__throughput.avg.pct_of_peak_sustained_elapsed";
const MEMORY: &str = "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed";
/// The second is there only if it was asked for by name.
const DRAM: &[&str] = &["gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", "dram__throughput.avg.pct_of_peak_sustained_elapsed"];
/// The second name is Blackwell's.
const DRAM_READ: &[&str] = &["dram__bytes_read.sum", "dram__bytes_op_read.sum"];
const DRAM_WRITE: &[&str] = &["dram__bytes_write.sum", "dram__bytes_op_write.sum"];
const DRAM_RATE: &str = "dram__bytes.sum.per_second";
const DRAM_READ_RATE: &[&str] = &["dram__bytes_read.sum.per_second", "dram__bytes_op_read.sum.per_second"];
const DRAM_WRITE_RATE: &[&str] = &["dram__bytes_write.sum.per_second", "dram__bytes_op_write.sum.per_second"];
const DRAM_PEAK_PER_CYCLE: &str = "dram__bytes.sum.peak_sustained";
const DRAM_CLOCK: &str = "dram__cycles_elapsed.avg.per_second";
const SM_CLOCK: &str = "gpc__cycles_elapsed.avg.per_second";
const L1: &str = "l1tex__throughput.avg.pct_of_peak_sustained_active";
const L2: &str = "lts__throughput.avg.pct_of_peak_sustained_elapsed";
const L1_HIT: &str = "l1tex__t_sector_hit_rate.pct";
const L2_HIT: &str = "lts__t_sector_hit_rate.pct";
const IPC: &str = "sm__inst_executed.avg.per_cycle_active";
const ISSUE: &str = "smsp__issue_active.avg.per_cycle_active";
const ISSUE_PCT: &str = "smsp__issue_active.avg.pct_of_peak_sustained_active";
const ACTIVE_WARPS: &str = "smsp__warps_active.avg.per_cycle_active";
const ELIGIBLE_WARPS: &str = "smsp__warps_eligible.avg.per_cycle_active";

/// Tensor pipes: the whole, else the busiest of the parts that a generation has (the warp-wide ones, Hopper's warpgroup-wide
/// one, then Blackwell's).
const TENSOR: &[&[&str]] = &[
    &["sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active"],
    &[
        "sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_active",
        "sm__pipe_tensor_op_imma_cycles_active.avg.pct_of_peak_sustained_active",
        "sm__pipe_tensor_op_dmma_cycles_active.avg.pct_of_peak_sustained_active",
        "sm__inst_executed_pipe_tensor_op_gmma.avg.pct_of_peak_sustained_active",
    ],
    &[
        "sm__pipe_tensor_subpipe_hmma_cycles_active.avg.pct_of_peak_sustained_active",
        "sm__pipe_tensor_subpipe_imma_cycles_active.avg.pct_of_peak_sustained_active",
        "sm__pipe_tensor_subpipe_dmma_cycles_active.avg.pct_of_peak_sustained_active",
    ],
];

/// Execution pipes other than the tensor ones.
const PIPES: &[(&str, &str)] = &[
    ("alu", "sm__inst_executed_pipe_alu.avg.pct_of_peak_sustained_active"),
    ("fma", "sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active"),
    ("fp16", "sm__inst_executed_pipe_fp16.avg.pct_of_peak_sustained_active"),
    ("fp64", "sm__inst_executed_pipe_fp64.avg.pct_of_peak_sustained_active"),
    ("lsu", "sm__inst_executed_pipe_lsu.avg.pct_of_peak_sustained_active"),
    ("xu", "sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active"),
    ("uniform", "sm__inst_executed_pipe_uniform.avg.pct_of_peak_sustained_active"),
    ("cbu", "sm__inst_executed_pipe_cbu.avg.pct_of_peak_sustained_active"),
    ("adu", "sm__inst_executed_pipe_adu.avg.pct_of_peak_sustained_active"),
    ("tex", "sm__inst_executed_pipe_tex.avg.pct_of_peak_sustained_active"),
    ("tma", "sm__inst_executed_pipe_tma.avg.pct_of_peak_sustained_active"),
];

/// Is the metric read here?
pub(crate) fn wants(name: &str) -> bool {
    const SINGLE: &[&str] = &[
        DRAM_RATE,
        DRAM_PEAK_PER_CYCLE,
        DRAM_CLOCK,
        SM_CLOCK,
        L1,
        L2,
        L1_HIT,
        L2_HIT,
        IPC,
        ISSUE,
        ISSUE_PCT,
        ACTIVE_WARPS,
        ELIGIBLE_WARPS,
    ];
    const SEVERAL: &[&[&str]] = &[DRAM_READ_RATE, DRAM_WRITE_RATE];
    wants_for_table(name)
        || SINGLE.contains(&name)
        || SEVERAL.iter().chain(TENSOR).any(|names| names.contains(&name))
        || PIPES.iter().any(|(_, metric)| *metric == name)
}

/// Is the metric needed for a line of the table?
pub(crate) fn wants_for_table(name: &str) -> bool {
    name == DURATION || name == SM || name == MEMORY || [DRAM, DRAM_READ, DRAM_WRITE].iter().any(|names| names.contains(&name))
}

/// Is the metric the time?
pub(crate) fn is_duration(name: &str) -> bool {
    name == DURATION
}

/// Nanoseconds on the GPU.
pub(crate) fn duration_ns(metrics: &Metrics) -> Option<u64> {
    metrics.whole(DURATION)
}

/// Bytes read from and written to device memory.
pub(crate) fn dram_bytes(metrics: &Metrics) -> (Option<u64>, Option<u64>) {
    let first = |names: &[&str]| names.iter().find_map(|name| metrics.whole(name));
    (first(DRAM_READ), first(DRAM_WRITE))
}

/// Memory, SM and DRAM throughput, percent of peak.
pub(crate) fn of_peak(metrics: &Metrics) -> (Option<f64>, Option<f64>, Option<f64>) {
    (metrics.number(MEMORY), metrics.number(SM), metrics.first_number(DRAM))
}

/// Everything about speed that the metrics have.
pub(crate) fn speed(metrics: &Metrics) -> Speed {
    let (dram_read_bytes, dram_write_bytes) = dram_bytes(metrics);
    let (memory_pct, sm_pct, dram_pct) = of_peak(metrics);
    let both_rates = || Some(metrics.first_number(DRAM_READ_RATE)? + metrics.first_number(DRAM_WRITE_RATE)?);
    // Bytes a cycle at most, times the cycles of a second at the clock of this measurement.
    let peak = || Some(metrics.number(DRAM_PEAK_PER_CYCLE)? * metrics.number(DRAM_CLOCK)?).filter(|peak| peak.is_finite());
    let tensor_pct = TENSOR.iter().find_map(|names| names.iter().filter_map(|name| metrics.number(name)).max_by(f64::total_cmp));
    let pipes = PIPES.iter().filter_map(|&(pipe, metric)| Some((pipe, metrics.number(metric)?)));
    Speed {
        duration_ns: duration_ns(metrics),
        dram_read_bytes,
        dram_write_bytes,
        dram_bytes_per_s: metrics.number(DRAM_RATE).or_else(both_rates),
        dram_peak_bytes_per_s: peak(),
        dram_pct,
        memory_pct,
        sm_pct,
        l1_pct: metrics.number(L1),
        l2_pct: metrics.number(L2),
        l1_hit_pct: metrics.number(L1_HIT),
        l2_hit_pct: metrics.number(L2_HIT),
        ipc: metrics.number(IPC),
        // ncu prints the first with more digits, which counts where a table is all there is.
        issue_active_fraction: metrics.number(ISSUE_PCT).map(|percent| percent / 100.0).or_else(|| metrics.number(ISSUE)),
        active_warps: metrics.number(ACTIVE_WARPS),
        eligible_warps: metrics.number(ELIGIBLE_WARPS),
        busiest_pipe: pipes.chain(tensor_pct.map(|percent| ("tensor", percent))).max_by(|a, b| a.1.total_cmp(&b.1)),
        tensor_pct,
        sm_clock_hz: metrics.number(SM_CLOCK),
        dram_clock_hz: metrics.number(DRAM_CLOCK),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Sample;

    #[test]
    fn every_name_of_a_figure_is_tried_in_order() {
        let blackwell = Sample::kernel("k")
            .value("dram__bytes_op_read.sum", 100.0)
            .value("dram__bytes_op_write.sum", 50.0)
            .value("dram__bytes_op_read.sum.per_second", 10.0)
            .value("dram__bytes_op_write.sum.per_second", 5.0)
            .value("sm__pipe_tensor_subpipe_hmma_cycles_active.avg.pct_of_peak_sustained_active", 40.0)
            .value("sm__pipe_tensor_subpipe_imma_cycles_active.avg.pct_of_peak_sustained_active", 4.0)
            .value("dram__throughput.avg.pct_of_peak_sustained_elapsed", 7.0);
        let found = speed(&blackwell.clone().metrics());
        assert_eq!((found.dram_read_bytes, found.dram_write_bytes, found.dram_bytes_per_s), (Some(100), Some(50), Some(15.0)));
        assert_eq!((found.tensor_pct, found.dram_pct), (Some(40.0), Some(7.0)));
        let preferred = blackwell
            .value("dram__bytes_read.sum", 200.0)
            .value("dram__bytes.sum.per_second", 20.0)
            .value("sm__inst_executed_pipe_tensor_op_gmma.avg.pct_of_peak_sustained_active", 30.0)
            .value("gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", 8.0);
        let found = speed(&preferred.metrics());
        assert_eq!((found.dram_read_bytes, found.dram_bytes_per_s), (Some(200), Some(20.0)));
        assert_eq!((found.tensor_pct, found.dram_pct), (Some(30.0), Some(8.0)));
    }

    #[test]
    fn one_half_of_a_sum_is_no_sum() {
        let found = speed(&Sample::kernel("k").value("dram__bytes_read.sum.per_second", 10.0).value(DRAM_CLOCK, 3.2e9).metrics());
        assert_eq!((found.dram_bytes_per_s, found.dram_peak_bytes_per_s), (None, None));
    }

    #[test]
    fn bytes_and_time_are_whole() {
        let sample = Sample::kernel("k").value(DURATION, 352_575.999_999_99).value("dram__bytes_read.sum", 99_635_968.000_000_02);
        let found = speed(&sample.metrics());
        assert_eq!((found.duration_ns, found.dram_read_bytes), (Some(352_576), Some(99_635_968)));
        assert_eq!(speed(&Sample::kernel("k").value(DURATION, -1.0).metrics()).duration_ns, None);
    }

    #[test]
    fn the_busiest_pipe_may_be_the_tensor_one() {
        let sample = Sample::kernel("k").value(PIPES[0].1, 32.0).value(PIPES[1].1, 17.0);
        assert_eq!(speed(&sample.clone().metrics()).busiest_pipe, Some(("alu", 32.0)));
        assert_eq!(speed(&sample.value(TENSOR[0][0], 90.0).metrics()).busiest_pipe, Some(("tensor", 90.0)));
    }
}
