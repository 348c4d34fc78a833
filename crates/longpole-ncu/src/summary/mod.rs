//! Why one kernel takes its time: launch, speed, verdict, stalls, suggestions.
//!
//! One file a topic: `launch` (shape and occupancy limits), `speed` (time, throughput, caches), `verdict` (the one word),
//! `stalls` (what warps wait for), `suggestions` (ncu's rules in order of reading), `symptoms` (costs with counters of their own),
//! `missing` (what to collect for the rest). Every limit is in `thresholds`. A file says with `wants` which metrics it
//! reads; a new figure is added there, in `types` and, if a section has it, in `missing`.

pub(crate) mod launch;
mod missing;
pub(crate) mod speed;
mod stalls;
mod suggestions;
mod symptoms;
mod thresholds;
mod types;
pub(crate) mod verdict;
mod words;

pub use stalls::{StallReason, stall_reason};
pub use types::{KernelSummary, Launch, Missing, OccupancyLimit, Speed, Stall, Suggestion, Symptom, Verdict, VerdictKind};

use crate::report::Report;
use crate::result::{ProfiledResult, Selection};

/// What [`summarize`] reads of a result.
pub fn selection(report: &Report) -> Selection {
    report.select().values(wants).rules().sections().nvtx()
}

fn wants(name: &str) -> bool {
    launch::wants(name) || speed::wants(name) || stalls::wants(name) || symptoms::wants(name)
}

/// Summarises one result that was decoded with [`selection`], or with more.
pub fn summarize(report: &Report, result: &ProfiledResult) -> KernelSummary {
    let metrics = &result.metrics;
    let launch = launch::launch(report, result);
    let speed = speed::speed(metrics);
    let verdict = verdict::verdict(speed.memory_pct, speed.sm_pct, launch::waves_of_kernel(result));
    let kind = verdict.as_ref().map(|verdict| verdict.kind);
    let symptoms = symptoms::symptoms(result, &launch);
    let mut summary = KernelSummary {
        id: result.id,
        kind: result.kind,
        name: result.name.clone(),
        function: result.function.clone(),
        process: result.process,
        nvtx: result.nvtx.clone(),
        launch,
        speed,
        verdict,
        warp_cycles_per_issue: stalls::warp_cycles_per_issue(metrics),
        stalls: stalls::stalls(metrics),
        suggestions: suggestions::suggestions(&result.rules, kind),
        symptoms,
        missing: Vec::new(),
        not_on_page: Vec::new(),
    };
    summary.missing = missing::missing(report, &summary, result);
    summary.not_on_page = missing::not_on_page(report.page(), &summary, result);
    summary
}
