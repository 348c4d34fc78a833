//! Values of every instruction against ncu's source page.

use std::collections::HashMap;

use longpole_ncu::ProfiledResult;

use crate::files;
use crate::raw_page::Tally;

/// The metric of a column; `None` for text and for what ncu computes from several metrics.
fn metric_of(column: &str) -> Option<String> {
    let fixed = match column {
        "Warp Stall Sampling (All Samples)" | "# Samples" => "smsp__pcsamp_sample_count",
        "Instructions Executed" => "inst_executed",
        "Thread Instructions Executed" => "thread_inst_executed",
        "Predicated-On Thread Instructions Executed" => "thread_inst_executed_true",
        "L1 Tag Requests Global" => "memory_l1_tag_requests_global",
        "L2 Theoretical Sectors Global" => "memory_l2_theoretical_sectors_global",
        "L2 Theoretical Sectors Global Ideal" => "memory_l2_theoretical_sectors_global_ideal",
        "L2 Theoretical Sectors Global Excessive" => "derived__memory_l2_theoretical_sectors_global_excessive",
        "L1 Wavefronts Shared" => "memory_l1_wavefronts_shared",
        "L1 Wavefronts Shared Ideal" => "memory_l1_wavefronts_shared_ideal",
        "L1 Wavefronts Shared Excessive" => "derived__memory_l1_wavefronts_shared_excessive",
        "Divergent Branches" => "smsp__branch_targets_threads_divergent",
        _ => "",
    };
    if !fixed.is_empty() {
        return Some(fixed.to_owned());
    }
    let reason = column.strip_prefix("stall_")?;
    let (reason, suffix) = reason.strip_suffix(" (Not Issued)").map_or((reason, ""), |reason| (reason, "_not_issued"));
    let reason = match reason {
        "dispatch" => "dispatch_stall",
        "imc" => "imc_miss",
        "lg" => "lg_throttle",
        "long_sb" => "long_scoreboard",
        "math" => "math_pipe_throttle",
        "mio" => "mio_throttle",
        "no_inst" => "no_instructions",
        "short_sb" => "short_scoreboard",
        "sleep" => "sleeping",
        "tex" => "tex_throttle",
        "gmma" => "warpgroup_arrive",
        same => same,
    };
    Some(format!("smsp__pcsamp_warps_issue_stalled_{reason}{suffix}"))
}

/// A metric's values by address.
fn by_address(result: &ProfiledResult, metric: &str) -> HashMap<u64, u64> {
    let instances = result.metrics.get(metric).map(|metric| &metric.instances[..]).unwrap_or_default();
    instances.iter().filter_map(|instance| Some((instance.id.as_ref()?.count()?, instance.value.as_ref()?.count()?))).collect()
}

#[test]
fn every_instruction_has_the_values_that_ncu_prints() {
    let mut tally = Tally::default();
    let mut not_zero = 0;
    let mut columns_seen = std::collections::BTreeSet::new();
    for path in files::with_pages("source") {
        let name = path.display();
        let Some((report, page)) = files::report_and_page(&path, "source") else { continue };
        let results = report.decode_all(&report.select().instances(|_| true));
        // The page has each kernel twice.
        let tables: Vec<&[Vec<String>]> = page.split(|row| row[0] == "Kernel Name").filter(|table| !table.is_empty()).collect();
        let names: Vec<&String> = page.iter().filter(|row| row[0] == "Kernel Name").map(|row| &row[1]).collect();
        assert_eq!(tables.len(), names.len(), "{name}");
        for (kernel, table) in names.iter().zip(tables) {
            let result = results.iter().find(|result| result.name == **kernel).unwrap_or_else(|| panic!("{name}: no {kernel}"));
            let [header, rows @ ..] = table else { panic!("{name}: {kernel} has no instructions") };
            for (at, column) in header.iter().enumerate() {
                let Some(metric) = metric_of(column) else { continue };
                let values = by_address(result, &metric);
                columns_seen.insert(column.clone());
                for row in rows {
                    let address = u64::from_str_radix(row[0].trim_start_matches("0x"), 16).unwrap();
                    // ncu prints 0 for an instruction that a metric says nothing of.
                    let ours = values.get(&address).copied().unwrap_or(0);
                    not_zero += usize::from(row[at] != "0");
                    tally.check(|| format!("{name}, {kernel}, {}, {column} = {metric}", row[0]), &row[at], Some(ours.to_string()));
                }
            }
        }
    }
    println!("source page: {} columns, {not_zero} cells are not 0", columns_seen.len());
    tally.finish("source page", files::at_least(600_000, 300_000));
    assert!(not_zero > 10_000, "only {not_zero} cells are not 0");
    assert!(columns_seen.len() >= 40, "only {} columns", columns_seen.len());
}
