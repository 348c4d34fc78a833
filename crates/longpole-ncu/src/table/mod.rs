//! A line a launch, and totals over them: where to start in a report of many kernels.
//!
//! Times are integer nanoseconds and are added as such. A launch whose time was not collected counts as a launch and adds no
//! time; how many these are is said.

mod totals;

pub use totals::{Total, TotalOrder, sort_totals, totals};

use std::cmp::Ordering;

use crate::container::EntryKind;
use crate::report::Report;
use crate::result::{ProfiledResult, Selection};
use crate::summary::{VerdictKind, launch, speed, verdict};

/// One launch.
#[derive(Clone, Debug, PartialEq)]
pub struct TableRow {
    /// Its place in the report, from 0: ncu's "ID".
    pub id: usize,
    /// What was profiled.
    pub kind: EntryKind,
    /// The whole name.
    pub name: String,
    /// The name without parameters and templates.
    pub function: Option<String>,
    /// Index into [`Report::processes`](crate::Report::processes).
    pub process: Option<usize>,
    /// The innermost NVTX range around its launch.
    pub nvtx: Option<String>,
    /// Blocks in x, y, z.
    pub grid: Option<[u64; 3]>,
    /// Threads of a block in x, y, z.
    pub block: Option<[u64; 3]>,
    /// Time on the GPU.
    pub duration_ns: Option<u64>,
    /// SM throughput, percent of peak.
    pub sm_pct: Option<f64>,
    /// Throughput of the busiest part of the memory system, percent of peak.
    pub memory_pct: Option<f64>,
    /// Device memory throughput, percent of peak.
    pub dram_pct: Option<f64>,
    /// Bytes read from and written to device memory; `None` unless both were counted.
    pub dram_bytes: Option<u64>,
    /// Occupancy that it reached, percent.
    pub achieved_occupancy_pct: Option<f64>,
    /// How often the grid fills the device.
    pub waves_per_sm: Option<f64>,
    /// Registers a thread.
    pub registers_per_thread: Option<u64>,
    /// What holds it back, as in its summary.
    pub verdict: Option<VerdictKind>,
}

/// What [`rows`] reads of a result.
pub fn selection(report: &Report) -> Selection {
    report.select().values(|name| launch::wants_for_table(name) || speed::wants_for_table(name)).nvtx()
}

/// A row for each of the results, in their order. They were decoded with [`selection`], or with more.
pub fn rows(report: &Report, results: &[ProfiledResult]) -> Vec<TableRow> {
    results.iter().map(|result| row(report, result)).collect()
}

fn row(report: &Report, result: &ProfiledResult) -> TableRow {
    let launch = launch::launch(report, result);
    let (memory_pct, sm_pct, dram_pct) = speed::of_peak(&result.metrics);
    let (read, write) = speed::dram_bytes(&result.metrics);
    TableRow {
        id: result.id,
        kind: result.kind,
        name: result.name.clone(),
        function: result.function.clone(),
        process: result.process,
        nvtx: result.nvtx.last().map(|range| range.name.clone()),
        grid: launch.grid,
        block: launch.block,
        duration_ns: speed::duration_ns(&result.metrics),
        sm_pct,
        memory_pct,
        dram_pct,
        dram_bytes: read.zip(write).map(|(read, write)| read.saturating_add(write)),
        achieved_occupancy_pct: launch.achieved_occupancy_pct,
        waves_per_sm: launch.waves_per_sm,
        registers_per_thread: launch.registers_per_thread,
        verdict: memory_pct.zip(sm_pct).map(|(memory, sm)| verdict::kind(memory, sm, launch::waves_of_kernel(result))),
    }
}

/// What rows can be ordered by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RowOrder {
    /// As they were launched.
    #[default]
    Launch,
    /// Longest first.
    Duration,
    /// Most device memory throughput first.
    Dram,
    /// Most memory throughput first.
    Memory,
    /// Most SM throughput first.
    Sm,
    /// Least occupancy first: where to look.
    Occupancy,
    /// Fewest waves first.
    Waves,
    /// By name.
    Name,
}

impl RowOrder {
    /// All orders, with the words for them.
    pub const ALL: &[(&str, Self)] = &[
        ("launch", Self::Launch),
        ("duration", Self::Duration),
        ("dram", Self::Dram),
        ("memory", Self::Memory),
        ("sm", Self::Sm),
        ("occupancy", Self::Occupancy),
        ("waves", Self::Waves),
        ("name", Self::Name),
    ];
}

/// Orders rows. Rows without the figure come last, and rows that are equal in it stay in the order of their launch.
pub fn sort_rows(rows: &mut [TableRow], order: RowOrder) {
    let launched = |a: &TableRow, b: &TableRow| a.id.cmp(&b.id);
    rows.sort_by(|a, b| {
        let by = match order {
            RowOrder::Launch => Ordering::Equal,
            RowOrder::Duration => known_first(a.duration_ns, b.duration_ns, |a, b| b.cmp(a)),
            RowOrder::Dram => known_first(a.dram_pct, b.dram_pct, |a, b| b.total_cmp(a)),
            RowOrder::Memory => known_first(a.memory_pct, b.memory_pct, |a, b| b.total_cmp(a)),
            RowOrder::Sm => known_first(a.sm_pct, b.sm_pct, |a, b| b.total_cmp(a)),
            RowOrder::Occupancy => known_first(a.achieved_occupancy_pct, b.achieved_occupancy_pct, f64::total_cmp),
            RowOrder::Waves => known_first(a.waves_per_sm, b.waves_per_sm, f64::total_cmp),
            RowOrder::Name => a.name.cmp(&b.name),
        };
        by.then_with(|| launched(a, b))
    });
}

/// Orders what is known by `order`, and before what is not.
fn known_first<T>(a: Option<T>, b: Option<T>, order: impl Fn(&T, &T) -> Ordering) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) => order(&a, &b),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => Ordering::Equal,
    }
}

#[cfg(test)]
mod tests;
