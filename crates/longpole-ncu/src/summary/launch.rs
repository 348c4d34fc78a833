//! How the kernel was launched, and how many of its blocks an SM can hold.

use super::types::{Launch, OccupancyLimit};
use crate::container::EntryKind;
use crate::metrics::Metrics;
use crate::report::Report;
use crate::result::ProfiledResult;

/// Resources that limit the blocks of an SM, with the metric that says how many each allows.
const LIMITS: &[(&str, &str)] = &[
    ("registers", "launch__occupancy_limit_registers"),
    ("shared memory", "launch__occupancy_limit_shared_mem"),
    ("warps", "launch__occupancy_limit_warps"),
    ("blocks", "launch__occupancy_limit_blocks"),
    ("barriers", "launch__occupancy_limit_barriers"),
];

const GRID: [&str; 3] = ["launch__grid_dim_x", "launch__grid_dim_y", "launch__grid_dim_z"];
const BLOCK: [&str; 3] = ["launch__block_dim_x", "launch__block_dim_y", "launch__block_dim_z"];
const GRID_SIZE: &str = "launch__grid_size";
const BLOCK_SIZE: &str = "launch__block_size";
const CLUSTER: &str = "launch__cluster_size";
const REGISTERS: &str = "launch__registers_per_thread";
const SHARED: &str = "launch__shared_mem_per_block";
const SHARED_STATIC: &str = "launch__shared_mem_per_block_static";
const SHARED_DYNAMIC: &str = "launch__shared_mem_per_block_dynamic";
const SHARED_DRIVER: &str = "launch__shared_mem_per_block_driver";
const WAVES: &str = "launch__waves_per_multiprocessor";
const SM_COUNT: &str = "launch__sm_count";
/// Reports before 2024 have the count only as an attribute of the device.
const SM_COUNT_OF_DEVICE: &str = "device__attribute_multiprocessor_count";
const DEVICE: &str = "launch__device_id";
const THEORETICAL: &str = "sm__maximum_warps_per_active_cycle_pct";
const ACHIEVED: &str = "sm__warps_active.avg.pct_of_peak_sustained_active";

/// Is the metric read here?
pub(crate) fn wants(name: &str) -> bool {
    const SINGLE: &[&str] = &[
        GRID_SIZE,
        BLOCK_SIZE,
        CLUSTER,
        REGISTERS,
        SHARED,
        SHARED_STATIC,
        SHARED_DYNAMIC,
        SHARED_DRIVER,
        WAVES,
        SM_COUNT,
        SM_COUNT_OF_DEVICE,
        DEVICE,
        THEORETICAL,
        ACHIEVED,
    ];
    SINGLE.contains(&name) || wants_shape(name) || LIMITS.iter().any(|(_, metric)| *metric == name)
}

/// Is the metric needed for a line of the table?
pub(crate) fn wants_for_table(name: &str) -> bool {
    wants_shape(name) || [REGISTERS, WAVES, ACHIEVED].contains(&name)
}

/// Is the metric needed for the shape of a launch?
pub(crate) fn wants_shape(name: &str) -> bool {
    GRID.contains(&name) || BLOCK.contains(&name) || name == GRID_SIZE || name == BLOCK_SIZE
}

/// The launch of one result. Of a range or a graph it is what ncu recorded for it, which is the shape of one of its kernels.
pub(crate) fn launch(report: &Report, result: &ProfiledResult) -> Launch {
    let metrics = &result.metrics;
    let (shared_static, shared_dynamic, shared_driver) =
        (metrics.whole(SHARED_STATIC), metrics.whole(SHARED_DYNAMIC), metrics.whole(SHARED_DRIVER));
    let sum = || Some(shared_static?.saturating_add(shared_dynamic?).saturating_add(shared_driver.unwrap_or(0)));
    let mut limits: Vec<OccupancyLimit> = LIMITS
        .iter()
        // A kernel that ran had a block on an SM: a limit of none says that there is no limit to speak of.
        .filter_map(|&(resource, metric)| {
            Some(OccupancyLimit { resource, blocks_per_sm: metrics.whole(metric).filter(|&blocks| blocks > 0)? })
        })
        .collect();
    limits.sort_by_key(|limit| limit.blocks_per_sm);
    let smallest = limits.first().map(|limit| limit.blocks_per_sm);
    let limiters = limits.iter().filter(|limit| Some(limit.blocks_per_sm) == smallest).map(|limit| limit.resource).collect();
    let (grid, block) = shape(result);
    Launch {
        grid,
        block,
        cluster_size: metrics.whole(CLUSTER).filter(|&blocks| blocks > 1),
        registers_per_thread: metrics.whole(REGISTERS),
        shared_bytes_per_block: metrics.whole(SHARED).or_else(sum),
        shared_static_bytes: shared_static,
        shared_dynamic_bytes: shared_dynamic,
        shared_driver_bytes: shared_driver,
        waves_per_sm: metrics.number(WAVES),
        sm_count: metrics.whole(SM_COUNT).or_else(|| metrics.whole(SM_COUNT_OF_DEVICE)).or_else(|| sm_count_of_session(report, metrics)),
        limits,
        limiters,
        theoretical_occupancy_pct: metrics.number(THEORETICAL),
        achieved_occupancy_pct: metrics.number(ACHIEVED),
    }
}

/// Grid and block: what the result itself says, else the metrics.
pub(crate) fn shape(result: &ProfiledResult) -> (Option<[u64; 3]>, Option<[u64; 3]>) {
    let metrics = &result.metrics;
    let of = |dimensions: [&str; 3], size: &str| {
        let [x, y, z] = dimensions.map(|name| metrics.whole(name));
        match (x, y, z) {
            (Some(x), Some(y), Some(z)) => Some([x, y, z]),
            _ => metrics.whole(size).map(|size| [size, 1, 1]),
        }
    };
    (result.grid.or_else(|| of(GRID, GRID_SIZE)), result.block.or_else(|| of(BLOCK, BLOCK_SIZE)))
}

/// Waves of a kernel. What a range or a graph has under this name belongs to one of its kernels, and no verdict rests on it.
pub(crate) fn waves_of_kernel(result: &ProfiledResult) -> Option<f64> {
    result.metrics.number(WAVES).filter(|_| result.kind == EntryKind::Kernel)
}

fn sm_count_of_session(report: &Report, metrics: &Metrics) -> Option<u64> {
    let devices = &report.session().devices;
    let device = match metrics.whole(DEVICE) {
        Some(id) => devices.iter().find(|device| u64::from(device.id) == id),
        None => devices.first().filter(|_| devices.len() == 1),
    };
    device.and_then(|device| device.number("multiprocessor_count"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::selection;
    use crate::testing::{Sample, report};

    #[test]
    fn ties_are_all_named_and_limits_are_sorted() {
        let sample = Sample::kernel("k")
            .value("launch__occupancy_limit_registers", 8.0)
            .value("launch__occupancy_limit_shared_mem", 16.0)
            .value("launch__occupancy_limit_warps", 8.0)
            .value("launch__occupancy_limit_blocks", 32.0)
            .value("launch__occupancy_limit_barriers", 0.0);
        let report = report(vec![sample]);
        let launch = launch(&report, &report.decode(0, &selection(&report)).unwrap());
        assert_eq!(launch.limiters, ["registers", "warps"]);
        let limits: Vec<_> = launch.limits.iter().map(|limit| (limit.resource, limit.blocks_per_sm)).collect();
        assert_eq!(limits, [("registers", 8), ("warps", 8), ("shared memory", 16), ("blocks", 32)]);
    }

    #[test]
    fn shared_memory_is_what_ncu_says_or_the_sum_of_its_parts() {
        let parts = |sample: Sample| sample.value(SHARED_STATIC, 1_024.0).value(SHARED_DYNAMIC, 512.0).value(SHARED_DRIVER, 1_024.0);
        let samples = vec![parts(Sample::kernel("sum")), parts(Sample::kernel("own")).value(SHARED, 2_048.0), Sample::kernel("none")];
        let report = report(samples);
        let shared: Vec<_> =
            report.decode_all(&selection(&report)).iter().map(|result| launch(&report, result).shared_bytes_per_block).collect();
        assert_eq!(shared, [Some(2_560), Some(2_048), None]);
    }

    #[test]
    fn a_graph_takes_its_shape_from_metrics_and_has_no_waves() {
        let dims = |sample: Sample| sample.value(GRID[0], 64.0).value(GRID[1], 2.0).value(GRID[2], 1.0).value(WAVES, 0.5);
        let report =
            report(vec![dims(Sample::of(EntryKind::Graph, "graph")).value(BLOCK_SIZE, 256.0), dims(Sample::kernel("k").grid([8, 1, 1]))]);
        let results = report.decode_all(&selection(&report));
        assert_eq!(shape(&results[0]), (Some([64, 2, 1]), Some([256, 1, 1])));
        assert_eq!(shape(&results[1]).0, Some([8, 1, 1]));
        assert_eq!((waves_of_kernel(&results[0]), waves_of_kernel(&results[1])), (None, Some(0.5)));
    }

    #[test]
    fn a_cluster_of_one_is_none() {
        let report = report(vec![Sample::kernel("a").value(CLUSTER, 1.0), Sample::kernel("b").value(CLUSTER, 2.0)]);
        let clusters: Vec<_> = report.decode_all(&selection(&report)).iter().map(|result| launch(&report, result).cluster_size).collect();
        assert_eq!(clusters, [None, Some(2)]);
    }
}
