//! Things that cost time of their own and have counters of their own.
//!
//! Each is one function: counters in, a sentence with the figures out, or nothing. They stand in the order in which they are
//! worth looking at. Limits are in [`thresholds`](super::thresholds).

use super::launch;
use super::thresholds::{
    EXCESSIVE_FRACTION, FULL_WAVE, IMBALANCE_FRACTION, OCCUPANCY_GAP_POINTS, SPILL_FRACTION, TAIL_FRACTION, THEORETICAL_OCCUPANCY_PCT,
    THREADS_PER_INSTRUCTION,
};
use super::types::{Launch, Symptom};
use super::words::{count, fraction, percent, waves as waves_text};
use crate::metrics::Metrics;
use crate::result::ProfiledResult;

/// Sectors of 32 bytes that global accesses ask the L2 for beyond what their addresses need, and all of them. The second pair
/// is what ncu called them before 2022.
const GLOBAL_SECTORS: &[(&str, &str)] = &[
    ("derived__memory_l2_theoretical_sectors_global_excessive", "memory_l2_theoretical_sectors_global"),
    ("derived__memory_l2_sectors_global_excessive", "memory_l2_sectors_global"),
];
/// Passes over shared memory beyond what conflict-free access needs, and all of them.
const SHARED_WAVEFRONTS: &[(&str, &str)] = &[
    ("derived__memory_l1_wavefronts_shared_excessive", "memory_l1_wavefronts_shared"),
    ("derived__memory_l1_sectors_shared_excessive", "memory_l1_sectors_shared"),
    ("l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum", "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"),
];
const BYTES_PER_SECTOR: &[(&str, &str)] = &[
    ("loads", "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio"),
    ("stores", "smsp__sass_average_data_bytes_per_sector_mem_global_op_st.ratio"),
];
const SECTOR_BYTES: f64 = 32.0;
/// From 2025.1 on ncu tells spilled registers from arrays that live in local memory.
const SPILLED: &str = "sass__inst_executed_register_spilling";
const LOCAL_LOADS: &str = "sass__inst_executed_local_loads";
const LOCAL_STORES: &str = "sass__inst_executed_local_stores";
const INSTRUCTIONS: &[&str] = &["smsp__inst_executed.sum", "inst_executed"];
const THREADS: &str = "smsp__thread_inst_executed_per_inst_executed.ratio";
const WARP_THREADS: f64 = 32.0;
const UNIFORM_BRANCHES: &str = "smsp__sass_average_branch_targets_threads_uniform.pct";
const SM_ACTIVE_MIN: &str = "sm__cycles_active.min";
const SM_ACTIVE_AVG: &str = "sm__cycles_active.avg";
const SM_ACTIVE_MAX: &str = "sm__cycles_active.max";
const ELAPSED: &[&str] = &["sm__cycles_elapsed.avg", "gpc__cycles_elapsed.max"];

/// Is the metric read here?
pub(crate) fn wants(name: &str) -> bool {
    let pairs = GLOBAL_SECTORS.iter().chain(SHARED_WAVEFRONTS).chain(BYTES_PER_SECTOR);
    [SPILLED, LOCAL_LOADS, LOCAL_STORES, THREADS, UNIFORM_BRANCHES, SM_ACTIVE_MIN, SM_ACTIVE_AVG, SM_ACTIVE_MAX].contains(&name)
        || INSTRUCTIONS.contains(&name)
        || ELAPSED.contains(&name)
        || pairs.into_iter().any(|(first, second)| *first == name || *second == name)
}

/// Were the counters of a symptom collected?
pub(crate) fn has_access_counters(metrics: &Metrics) -> bool {
    GLOBAL_SECTORS.iter().any(|(excessive, _)| metrics.number(excessive).is_some())
}

/// Were local loads and stores, or spilled registers, counted?
pub(crate) fn has_spill_counters(metrics: &Metrics) -> bool {
    metrics.number(SPILLED).or_else(|| metrics.number(LOCAL_LOADS)).is_some()
}

/// Was it counted how many threads take part in an instruction?
pub(crate) fn has_divergence_counters(metrics: &Metrics) -> bool {
    metrics.number(THREADS).is_some()
}

/// Were the SMs' active cycles recorded apart?
pub(crate) fn has_imbalance_counters(metrics: &Metrics) -> bool {
    metrics.number(SM_ACTIVE_MAX).is_some()
}

/// The symptoms of one result.
pub(crate) fn symptoms(result: &ProfiledResult, launch: &Launch) -> Vec<Symptom> {
    let metrics = &result.metrics;
    [
        uncoalesced(metrics),
        bank_conflicts(metrics),
        low_occupancy(launch),
        spills(metrics),
        divergence(metrics),
        imbalance(metrics),
        launch::waves_of_kernel(result).and_then(tail),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The first pair of counters that is there: what is too much, and of how much.
fn excess(metrics: &Metrics, pairs: &[(&str, &str)]) -> Option<(f64, f64)> {
    let (excessive, all) = pairs.iter().find_map(|(excessive, all)| Some((metrics.number(excessive)?, metrics.number(all)?)))?;
    (all > 0.0 && excessive / all >= EXCESSIVE_FRACTION).then_some((excessive, all))
}

fn uncoalesced(metrics: &Metrics) -> Option<Symptom> {
    let (excessive, all) = excess(metrics, GLOBAL_SECTORS)?;
    let used = |(what, metric): &(&str, &str)| {
        let bytes = metrics.number(metric).filter(|&bytes| bytes > 0.0 && bytes < SECTOR_BYTES)?;
        Some(format!("; {what} use {bytes:.1} of {SECTOR_BYTES} bytes of a sector"))
    };
    let used: String = BYTES_PER_SECTOR.iter().filter_map(used).collect();
    let text = format!(
        "uncoalesced global access: {} of {} sectors ({}) are more than the addresses need{used}",
        count(excessive),
        count(all),
        fraction(excessive / all)
    );
    Some(Symptom { code: "uncoalesced_access", text })
}

fn bank_conflicts(metrics: &Metrics) -> Option<Symptom> {
    let (excessive, all) = excess(metrics, SHARED_WAVEFRONTS)?;
    let text = format!(
        "shared memory bank conflicts: {} of {} passes ({}) are more than conflict-free access needs",
        count(excessive),
        count(all),
        fraction(excessive / all)
    );
    Some(Symptom { code: "bank_conflicts", text })
}

fn low_occupancy(launch: &Launch) -> Option<Symptom> {
    let theoretical = launch.theoretical_occupancy_pct?;
    let achieved = launch.achieved_occupancy_pct;
    let is_limited = theoretical < THEORETICAL_OCCUPANCY_PCT;
    let is_behind = achieved.is_some_and(|achieved| theoretical - achieved > OCCUPANCY_GAP_POINTS);
    if !is_limited && !is_behind {
        return None;
    }
    let reached = achieved.map_or_else(String::new, |achieved| format!("{} reached, ", percent(achieved)));
    let limit =
        if is_limited && !launch.limiters.is_empty() { format!(", limited by {}", launch.limiters.join(" and ")) } else { String::new() };
    let cause = match launch.waves_per_sm {
        _ if !is_behind => "",
        Some(waves) if waves < FULL_WAVE => "; the grid has too few blocks to reach it",
        _ => "; warps or blocks end at different times, or the last wave is small",
    };
    let text = format!("low occupancy: {reached}{} possible{limit}{cause}", percent(theoretical));
    Some(Symptom { code: "low_occupancy", text })
}

fn spills(metrics: &Metrics) -> Option<Symptom> {
    let instructions = metrics.first_number(INSTRUCTIONS).filter(|&instructions| instructions > 0.0);
    let is_worth = |some: f64| some > 0.0 && instructions.is_none_or(|all| some / all >= SPILL_FRACTION);
    let share = |some: f64| instructions.map_or_else(String::new, |all| format!(" ({} of all)", fraction(some / all)));
    let text = match metrics.number(SPILLED) {
        Some(spilled) if is_worth(spilled) => {
            format!("register spills: {} instructions{} store or reload a spilled register", count(spilled), share(spilled))
        }
        Some(_) => return None,
        None => {
            let (loads, stores) = (metrics.number(LOCAL_LOADS)?, metrics.number(LOCAL_STORES)?);
            if !is_worth(loads + stores) {
                return None;
            }
            format!(
                "local memory: {} loads and {} stores{}: spilled registers, or arrays indexed at run time",
                count(loads),
                count(stores),
                share(loads + stores)
            )
        }
    };
    Some(Symptom { code: "spills", text })
}

fn divergence(metrics: &Metrics) -> Option<Symptom> {
    let threads = metrics.number(THREADS).filter(|&threads| threads > 0.0 && threads < THREADS_PER_INSTRUCTION)?;
    let uniform =
        metrics.number(UNIFORM_BRANCHES).map_or_else(String::new, |uniform| format!("; {} of branches are uniform", percent(uniform)));
    let text = format!("divergence: {threads:.1} of {WARP_THREADS} threads of a warp take part in an instruction{uniform}");
    Some(Symptom { code: "divergence", text })
}

/// What evening the work out could save, as ncu estimates it: the share of the busiest SM's cycles that the average SM does not
/// have, of the part of the time in which the average SM is active. A grid of a few blocks leaves most SMs idle, and it is
/// that part which keeps it from being taken for uneven work.
fn imbalance(metrics: &Metrics) -> Option<Symptom> {
    let (average, most) = (metrics.number(SM_ACTIVE_AVG)?, metrics.number(SM_ACTIVE_MAX)?);
    let elapsed = metrics.first_number(ELAPSED).filter(|&elapsed| elapsed > 0.0)?;
    // Of an SM count of nothing the cost is no number, and no number is enough.
    let cost = Some((most - average) / most * (average / elapsed)).filter(|&cost| cost >= IMBALANCE_FRACTION)?;
    let least = metrics.number(SM_ACTIVE_MIN).map_or_else(String::new, |least| format!(", the least busy one for {}", count(least)));
    let text = format!(
        "uneven work: the busiest SM is active for {} cycles, the average one for {}{least}; evening it out could save {}",
        count(most),
        count(average),
        fraction(cost)
    );
    Some(Symptom { code: "imbalance", text })
}

/// A last wave that does not fill the device takes as long as a full one: one of `whole + 1`. It is how ncu estimates it, and
/// an upper bound, since a nearly full wave costs nearly what it does.
fn tail(waves: f64) -> Option<Symptom> {
    let whole = waves.floor();
    let partial = waves - whole;
    let cost = 1.0 / (whole + 1.0);
    if whole < 1.0 || partial <= 0.0 || cost < TAIL_FRACTION {
        return None;
    }
    let text = format!(
        "tail effect: {} waves; the last fills {} of the device and costs up to {} of the time",
        waves_text(waves),
        fraction(partial),
        fraction(cost)
    );
    Some(Symptom { code: "tail_effect", text })
}

#[cfg(test)]
mod tests;
