use super::*;
use crate::summary::launch::launch;
use crate::summary::selection;
use crate::testing::{Sample, report};

/// The symptoms of a sample, as (code, text).
fn of(sample: Sample) -> Vec<(&'static str, String)> {
    let report = report(vec![sample]);
    let result = report.decode(0, &selection(&report)).unwrap();
    let launch = launch(&report, &result);
    symptoms(&result, &launch).into_iter().map(|symptom| (symptom.code, symptom.text)).collect()
}

fn text(sample: Sample) -> String {
    let found = of(sample);
    assert_eq!(found.len(), 1, "{found:?}");
    found.into_iter().next().unwrap().1
}

fn codes(sample: Sample) -> Vec<&'static str> {
    of(sample).into_iter().map(|(code, _)| code).collect()
}

fn with(pairs: &[(&str, f64)]) -> Sample {
    pairs.iter().fold(Sample::kernel("k"), |sample, (name, value)| sample.value(name, *value))
}

#[test]
fn uncoalesced_access() {
    let sectors = |excessive| {
        with(&[
            ("derived__memory_l2_theoretical_sectors_global_excessive", excessive),
            ("memory_l2_theoretical_sectors_global", 51_366_272.0),
        ])
    };
    let expected = "uncoalesced global access: 46,694,400 of 51,366,272 sectors (90.9 %) are more than the addresses need; loads use 2.0 of 32 bytes of a sector";
    let loads = "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio";
    let stores = "smsp__sass_average_data_bytes_per_sector_mem_global_op_st.ratio";
    assert_eq!(text(sectors(46_694_400.0).value(loads, 2.0).value(stores, 32.0)), expected);
    assert_eq!(codes(sectors(5_136_628.0)), ["uncoalesced_access"]);
    assert_eq!(codes(sectors(5_136_626.0)), [""; 0]);
    // Reports of 2020 have other names.
    let old = |excessive| with(&[("derived__memory_l2_sectors_global_excessive", excessive), ("memory_l2_sectors_global", 100.0)]);
    assert_eq!(codes(old(10.0)), ["uncoalesced_access"]);
    assert_eq!(codes(old(9.9)), [""; 0]);
    assert_eq!(codes(with(&[("derived__memory_l2_sectors_global_excessive", 10.0)])), [""; 0]);
}

#[test]
fn bank_conflicts() {
    let passes =
        |excessive| with(&[("derived__memory_l1_wavefronts_shared_excessive", excessive), ("memory_l1_wavefronts_shared", 102_408.0)]);
    let expected = "shared memory bank conflicts: 99,200 of 102,408 passes (96.9 %) are more than conflict-free access needs";
    assert_eq!(text(passes(99_200.0)), expected);
    assert_eq!(codes(passes(10_241.0)), ["bank_conflicts"]);
    assert_eq!(codes(passes(10_240.0)), [""; 0]);
    let counted =
        with(&[("l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum", 50.0), ("l1tex__data_pipe_lsu_wavefronts_mem_shared.sum", 100.0)]);
    assert_eq!(codes(counted), ["bank_conflicts"]);
}

#[test]
fn low_occupancy() {
    let occupancy = |theoretical, achieved| {
        with(&[
            ("sm__maximum_warps_per_active_cycle_pct", theoretical),
            ("sm__warps_active.avg.pct_of_peak_sustained_active", achieved),
            ("launch__occupancy_limit_registers", 2.0),
            ("launch__occupancy_limit_shared_mem", 2.0),
            ("launch__occupancy_limit_warps", 4.0),
        ])
    };
    assert_eq!(codes(occupancy(80.0, 70.0)), [""; 0]);
    let behind = "low occupancy: 69.9 % reached, 80.0 % possible; warps or blocks end at different times, or the last wave is small";
    assert_eq!(text(occupancy(80.0, 69.9)), behind);
    let limited = "low occupancy: 75.0 % reached, 79.0 % possible, limited by registers and shared memory";
    assert_eq!(text(occupancy(79.0, 75.0)), limited);
    let small = "low occupancy: 7.7 % reached, 100.0 % possible; the grid has too few blocks to reach it";
    assert_eq!(text(occupancy(100.0, 7.69).value("launch__waves_per_multiprocessor", 0.07)), small);
    // The limit alone is known without having measured.
    assert_eq!(text(with(&[("sm__maximum_warps_per_active_cycle_pct", 50.0)])), "low occupancy: 50.0 % possible");
    assert_eq!(codes(with(&[("sm__warps_active.avg.pct_of_peak_sustained_active", 5.0)])), [""; 0]);
}

#[test]
fn spills() {
    let spilled = |count| with(&[("sass__inst_executed_register_spilling", count), ("smsp__inst_executed.sum", 10_000.0)]);
    assert_eq!(text(spilled(100.0)), "register spills: 100 instructions (1.0 % of all) store or reload a spilled register");
    assert_eq!(codes(spilled(99.0)), [""; 0]);
    let local = |loads, stores| {
        with(&[
            ("sass__inst_executed_local_loads", loads),
            ("sass__inst_executed_local_stores", stores),
            ("smsp__inst_executed.sum", 10_000.0),
        ])
    };
    let expected = "local memory: 60 loads and 40 stores (1.0 % of all): spilled registers, or arrays indexed at run time";
    assert_eq!(text(local(60.0, 40.0)), expected);
    assert_eq!(codes(local(60.0, 39.0)), [""; 0]);
    // Where spills are counted apart, local arrays are not taken for them.
    assert_eq!(codes(local(600.0, 400.0).value("sass__inst_executed_register_spilling", 0.0)), [""; 0]);
    // Without the number of instructions any spill is worth a line.
    assert_eq!(codes(with(&[("sass__inst_executed_register_spilling", 1.0)])), ["spills"]);
    assert_eq!(codes(with(&[("sass__inst_executed_register_spilling", 0.0)])), [""; 0]);
}

#[test]
fn divergence() {
    let threads = |threads| with(&[("smsp__thread_inst_executed_per_inst_executed.ratio", threads)]);
    let uniform = ("smsp__sass_average_branch_targets_threads_uniform.pct", 61.0);
    let expected = "divergence: 8.0 of 32 threads of a warp take part in an instruction; 61.0 % of branches are uniform";
    assert_eq!(text(threads(8.0).value(uniform.0, uniform.1)), expected);
    assert_eq!(codes(threads(23.99)), ["divergence"]);
    assert_eq!(codes(threads(24.0)), [""; 0]);
    assert_eq!(codes(threads(0.0)), [""; 0]);
}

#[test]
fn imbalance() {
    let active = |average, most| {
        with(&[
            ("sm__cycles_active.min", 50.0),
            ("sm__cycles_active.avg", average),
            ("sm__cycles_active.max", most),
            ("gpc__cycles_elapsed.max", 2_000.0),
        ])
    };
    // (1,500 - 1,000) / 1,500 of 1,000 / 2,000.
    let expected = "uneven work: the busiest SM is active for 1,500 cycles, the average one for 1,000, the least busy one for 50; \
                    evening it out could save 16.7 %";
    assert_eq!(text(active(1_000.0, 1_500.0)), expected);
    assert_eq!(codes(active(900.0, 1_013.0)), ["imbalance"]);
    assert_eq!(codes(active(900.0, 1_012.0)), [""; 0]);
    // One block on one of many SMs is no uneven work.
    assert_eq!(codes(active(15.0, 2_000.0)), [""; 0]);
    assert_eq!(codes(active(0.0, 0.0)), [""; 0]);
    assert_eq!(codes(with(&[("sm__cycles_active.avg", 100.0), ("sm__cycles_active.max", 200.0)])), [""; 0]);
}

#[test]
fn tail_effect() {
    let waves = |waves| with(&[("launch__waves_per_multiprocessor", waves)]);
    let expected = "tail effect: 2.30 waves; the last fills 30.3 % of the device and costs up to 33.3 % of the time";
    assert_eq!(text(waves(2.303)), expected);
    assert_eq!(codes(waves(4.5)), ["tail_effect"]);
    assert_eq!(codes(waves(5.5)), [""; 0]);
    assert_eq!(codes(waves(2.0)), [""; 0]);
    assert_eq!(codes(waves(0.9)), [""; 0]);
    let range = Sample::of(crate::container::EntryKind::Range, "range").value("launch__waves_per_multiprocessor", 2.3);
    assert_eq!(codes(range), [""; 0]);
}

#[test]
fn every_counter_that_a_symptom_reads_is_selected() {
    for name in [
        "derived__memory_l2_theoretical_sectors_global_excessive",
        "memory_l2_sectors_global",
        "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
        "smsp__sass_average_data_bytes_per_sector_mem_global_op_st.ratio",
        "sass__inst_executed_register_spilling",
        "sass__inst_executed_local_stores",
        "smsp__inst_executed.sum",
        "sm__cycles_active.min",
        "gpc__cycles_elapsed.max",
    ] {
        assert!(wants(name), "{name}");
    }
    assert!(!wants("sm__cycles_active.sum"));
}
