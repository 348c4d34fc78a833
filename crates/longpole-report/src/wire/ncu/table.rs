//! Launches and what they come to.

use longpole_analysis::Family;
use longpole_ncu::summary::VerdictKind;
use serde::Serialize;

use crate::views::ncu::{LaunchRow, TotalRow};

#[derive(Serialize)]
pub(super) struct Launch<'a> {
    id: usize,
    kind: &'static str,
    name: &'a str,
    short_name: &'a str,
    function: Option<&'a str>,
    family: Option<&'static str>,
    process: Option<&'a str>,
    nvtx: Option<&'a str>,
    grid: Option<[u64; 3]>,
    block: Option<[u64; 3]>,
    registers_per_thread: Option<u64>,
    waves_per_sm: Option<f64>,
    duration_ns: Option<u64>,
    dram_bytes: Option<u64>,
    dram_pct: Option<f64>,
    memory_pct: Option<f64>,
    sm_pct: Option<f64>,
    achieved_occupancy_pct: Option<f64>,
    verdict: Option<&'static str>,
}

pub(super) fn launch(launch: &LaunchRow) -> Launch<'_> {
    let row = &launch.row;
    Launch {
        id: row.id,
        kind: row.kind.name(),
        name: &row.name,
        short_name: &launch.short_name,
        function: row.function.as_deref(),
        family: launch.family.map(Family::name),
        process: launch.process.as_deref(),
        nvtx: row.nvtx.as_deref(),
        grid: row.grid,
        block: row.block,
        registers_per_thread: row.registers_per_thread,
        waves_per_sm: row.waves_per_sm,
        duration_ns: row.duration_ns,
        dram_bytes: row.dram_bytes,
        dram_pct: row.dram_pct,
        memory_pct: row.memory_pct,
        sm_pct: row.sm_pct,
        achieved_occupancy_pct: row.achieved_occupancy_pct,
        verdict: row.verdict.map(VerdictKind::name),
    }
}

#[derive(Serialize)]
pub(super) struct Total<'a> {
    name: Option<&'a str>,
    short_name: Option<&'a str>,
    family: Option<&'static str>,
    launches: u64,
    without_duration: u64,
    duration_ns: Option<u64>,
    share_fraction: Option<f64>,
    min_ns: Option<u64>,
    median_ns: Option<u64>,
    max_ns: Option<u64>,
    dram_pct: Option<f64>,
    sm_pct: Option<f64>,
    verdict: Option<&'static str>,
}

/// A name or a family. Of a family the names are null.
pub(super) fn total(row: &TotalRow) -> Total<'_> {
    let total = &row.total;
    Total {
        name: row.full_name.as_deref(),
        short_name: row.full_name.as_ref().map(|_| row.name.as_str()),
        family: row.family.map(Family::name),
        launches: total.launches,
        without_duration: total.without_duration,
        duration_ns: total.total_ns,
        share_fraction: total.share_fraction,
        min_ns: total.min_ns,
        median_ns: total.median_ns,
        max_ns: total.max_ns,
        dram_pct: total.dram_pct,
        sm_pct: total.sm_pct,
        verdict: total.verdict.map(VerdictKind::name),
    }
}
