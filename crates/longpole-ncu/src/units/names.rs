//! The unit of a metric by its name.
//!
//! A name is `unit__counter.rollup.rate`, e.g. `dram__bytes.sum.per_second`: the counter says what is counted, the rate what it is
//! divided by. The rules were derived from the units that ncu 2024.1 and 2025.3 print, and are checked against them.

/// Base units of metrics that no rule about their parts gives.
const WHOLE_NAMES: &[(&str, &str)] = &[
    ("derived__avg_thread_executed", "thread"),
    ("derived__avg_thread_executed_true", "thread"),
    ("derived__local_spilling_requests_pct", "%"),
    ("derived__pct_occupancy_per_register_count", "%/register"),
    ("derived__pct_occupancy_per_shared_mem_size", "%/byte"),
    ("derived__smsp__inst_executed_op_branch_pct", "%"),
    ("inst_executed", "inst"),
    ("launch__block_dim_x", "block"),
    ("launch__block_dim_y", "block"),
    ("launch__block_dim_z", "block"),
    ("launch__cluster_max_active", "cluster"),
    ("launch__cluster_max_potential_size", "block"),
    ("launch__occupancy_cluster_gpu_pct", "%"),
    ("launch__occupancy_cluster_pct", "%"),
    ("launch__occupancy_limit_blocks", "block"),
    ("launch__occupancy_limit_registers", "block"),
    ("launch__occupancy_limit_shared_mem", "block"),
    ("launch__occupancy_limit_warps", "block"),
    ("launch__persisting_l2_cache_size", "byte"),
    ("launch__registers_per_thread", "register/thread"),
    ("launch__registers_per_thread_allocated", "register/thread"),
    ("launch__shared_mem_config_size", "byte"),
    ("launch__shared_mem_per_block", "byte/block"),
    ("launch__shared_mem_per_block_allocated", "byte/block"),
    ("launch__shared_mem_per_block_driver", "byte/block"),
    ("launch__shared_mem_per_block_dynamic", "byte/block"),
    ("launch__shared_mem_per_block_static", "byte/block"),
    ("launch__sm_count", "SM"),
    ("launch__thread_count", "thread"),
    ("profiler__pmsampler_buffer_size_bytes", "byte"),
    ("profiler__pmsampler_dropped_samples", "sample"),
    ("profiler__pmsampler_interval_time", "ns"),
    ("profiler__pmsampler_merged_samples", "sample"),
    ("profiler__replayer_passes", "pass"),
    ("profiler__replayer_passes_type_warmup", "pass"),
    ("sm__maximum_warps_avg_per_active_cycle", "warp"),
    ("sm__maximum_warps_per_active_cycle_pct", "%"),
    ("smsp__average_warp_latency_per_inst_issued.ratio", "cycle"),
    ("smsp__average_warps_active_per_inst_executed.ratio", "cycle"),
    ("smsp__maximum_warps_avg_per_active_cycle", "warp"),
    ("smsp__pcsamp_aggregated_passes", "pass"),
    ("smsp__pcsamp_buffer_size_bytes", "byte"),
    ("smsp__pcsamp_dropped_bytes", "byte"),
    ("smsp__pcsamp_interval_cycles", "cycle"),
    ("thread_inst_executed", "inst"),
    ("thread_inst_executed_true", "inst"),
];

/// The base unit of a metric's stored values; `None` for plain numbers and wherever the name does not say.
pub fn of_metric(name: &str) -> Option<&'static str> {
    if let Some((_, unit)) = WHOLE_NAMES.iter().find(|(whole, _)| *whole == name) {
        return Some(unit);
    }
    // What sampling adds in front (`pmsampling:`, `TPC.TriageCompute.`) changes nothing.
    let name = name.rsplit_once(':').map_or(name, |(_, name)| name);
    let mut parts = name.split('.').skip_while(|part| !part.contains("__"));
    let (of, counter) = parts.next()?.split_once("__")?;
    let rates: Vec<&str> = parts.filter(|part| !matches!(*part, "sum" | "avg" | "min" | "max")).collect();
    match rates[..] {
        [rate] if rate == "pct" || rate.starts_with("pct_of_") => Some("%"),
        ["ratio" | "max_rate"] => counter.starts_with("sass_average_data_bytes_per_sector_").then_some("byte/sector"),
        [] => counted(of, counter),
        ["per_second"] => match counted(of, counter)? {
            "byte" => Some("byte/s"),
            "sector" => Some("sector/s"),
            "cycle" => Some("Hz"),
            _ => None,
        },
        ["per_cycle_active" | "per_cycle_elapsed" | "peak_sustained"] => match counted(of, counter)? {
            "byte" => Some("byte/cycle"),
            "sector" => Some("sector/cycle"),
            "inst" => Some("inst/cycle"),
            // On average so many, in a cycle or over all of them.
            "warp" => Some("warp"),
            _ => None,
        },
        _ => None,
    }
}

/// What a counter counts.
fn counted(of: &str, counter: &str) -> Option<&'static str> {
    // Results of formulas, whose names say what went in; histograms; samples, whose names say what was sampled.
    let is_formula = matches!(of, "derived" | "breakdown" | "group" | "device" | "launch");
    if is_formula || ["throughput", "rate", "_per_", "memdesc", "xbar2gcc", "pcsamp"].iter().any(|word| counter.contains(word)) {
        return None;
    }
    let has = |word: &str| counter.split('_').any(|part| part == word);
    match counter {
        "time_duration" => Some("ns"),
        "lsu_writeback_active" => Some("cycle"),
        _ if counter.starts_with("ctas_launched") => Some("block"),
        _ if has("bytes") => Some("byte"),
        _ if has("sectors") => Some("sector"),
        _ if has("cycles") => Some("cycle"),
        _ if counter.contains("inst_executed") || counter.contains("inst_issued") => Some("inst"),
        _ if has("warps") => Some("warp"),
        _ if has("requests") && matches!(of, "lts" | "gcc") => Some("request"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_their_units() {
        let cases = [
            ("gpu__time_duration.sum", Some("ns")),
            ("dram__bytes.sum.per_second", Some("byte/s")),
            ("dram__bytes.sum.peak_sustained", Some("byte/cycle")),
            ("dram__cycles_elapsed.avg.per_second", Some("Hz")),
            ("sm__throughput.avg.pct_of_peak_sustained_elapsed", Some("%")),
            ("sm__inst_executed.avg.per_cycle_active", Some("inst/cycle")),
            ("FBSP.TriageCompute.dramc__read_throughput.avg.pct_of_peak_sustained_elapsed", Some("%")),
            ("pmsampling:sm__cycles_active.avg", Some("cycle")),
            ("smsp__pcsamp_warps_issue_stalled_wait", None),
            ("sass__inst_executed_per_opcode", None),
            ("smsp__issue_active.avg.per_cycle_active", None),
            ("device__attribute_clock_rate", None),
            ("derived__lts__lts2xbar_bytes.sum.per_second", None),
            ("", None),
            ("no_such_metric", None),
        ];
        for (name, unit) in cases {
            assert_eq!(of_metric(name), unit, "{name}");
        }
    }
}
