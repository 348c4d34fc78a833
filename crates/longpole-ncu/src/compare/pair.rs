//! One kernel before and after.

use std::collections::HashSet;

use super::types::{Figure, MatchedBy, Pair};
use crate::rules::MessageKind;
use crate::summary::{KernelSummary, Stall, Suggestion};

type Value = fn(&KernelSummary) -> Option<f64>;

/// The figures in the order in which they are shown.
const FIGURES: &[(&str, &str, Value)] = &[
    ("duration", "ns", |summary| summary.speed.duration_ns.map(|ns| ns as f64)),
    ("DRAM read", "byte", |summary| summary.speed.dram_read_bytes.map(|bytes| bytes as f64)),
    ("DRAM written", "byte", |summary| summary.speed.dram_write_bytes.map(|bytes| bytes as f64)),
    ("DRAM rate", "byte/s", |summary| summary.speed.dram_bytes_per_s),
    ("DRAM of peak", "%", |summary| summary.speed.dram_pct),
    ("memory of peak", "%", |summary| summary.speed.memory_pct),
    ("SM of peak", "%", |summary| summary.speed.sm_pct),
    ("L1 of peak", "%", |summary| summary.speed.l1_pct),
    ("L2 of peak", "%", |summary| summary.speed.l2_pct),
    ("L1 hits", "%", |summary| summary.speed.l1_hit_pct),
    ("L2 hits", "%", |summary| summary.speed.l2_hit_pct),
    ("tensor pipes", "%", |summary| summary.speed.tensor_pct),
    ("instructions per cycle", "", |summary| summary.speed.ipc),
    ("issue active", "%", |summary| summary.speed.issue_active_fraction.map(|fraction| fraction * 100.0)),
    ("active warps per scheduler", "", |summary| summary.speed.active_warps),
    ("eligible warps per scheduler", "", |summary| summary.speed.eligible_warps),
    ("warp cycles per issue", "cycle", |summary| summary.warp_cycles_per_issue),
    ("achieved occupancy", "%", |summary| summary.launch.achieved_occupancy_pct),
    ("theoretical occupancy", "%", |summary| summary.launch.theoretical_occupancy_pct),
    ("waves per SM", "", |summary| summary.launch.waves_per_sm),
    ("blocks", "", |summary| summary.launch.grid.map(volume)),
    ("threads per block", "", |summary| summary.launch.block.map(volume)),
    ("registers per thread", "", |summary| summary.launch.registers_per_thread.map(|registers| registers as f64)),
    ("shared memory per block", "byte", |summary| summary.launch.shared_bytes_per_block.map(|bytes| bytes as f64)),
    ("SM clock", "Hz", |summary| summary.speed.sm_clock_hz),
    ("DRAM clock", "Hz", |summary| summary.speed.dram_clock_hz),
];

/// Cycles per issued instruction that a stall must move by; less is noise between two runs of one program.
const MOVED_CYCLES: f64 = 0.1;

fn volume(sizes: [u64; 3]) -> f64 {
    sizes.iter().map(|&size| size as f64).product()
}

/// Compares two summaries.
pub(super) fn pair(before: &KernelSummary, after: &KernelSummary, matched_by: MatchedBy) -> Pair {
    let figure = |&(what, unit, value): &(&'static str, &'static str, Value)| {
        let figure = Figure { what, unit, before: value(before), after: value(after) };
        (figure.before.is_some() || figure.after.is_some()).then_some(figure)
    };
    Pair {
        kind: before.kind,
        before: before.id,
        after: after.id,
        name_before: before.name.clone(),
        name_after: after.name.clone(),
        matched_by,
        verdict_before: before.verdict.as_ref().map(|verdict| verdict.kind),
        verdict_after: after.verdict.as_ref().map(|verdict| verdict.kind),
        figures: FIGURES.iter().filter_map(figure).collect(),
        stalls: moved_stalls(&before.stalls, &after.stalls),
        rules_gone: Vec::new(),
        rules_new: Vec::new(),
    }
}

/// Where both sides have exact cycles, a reason that one side does not list had none there.
fn moved_stalls(before: &[Stall], after: &[Stall]) -> Vec<Figure> {
    let is_exact = |stalls: &[Stall]| stalls.iter().any(|stall| stall.cycles_per_issue.is_some());
    if !is_exact(before) || !is_exact(after) {
        return Vec::new();
    }
    let cycles = |stalls: &[Stall], reason: &str| {
        stalls.iter().find(|stall| stall.reason == reason).and_then(|stall| stall.cycles_per_issue).unwrap_or(0.0)
    };
    let new = after.iter().filter(|stall| before.iter().all(|known| known.reason != stall.reason));
    let mut moved: Vec<(f64, Figure)> = before
        .iter()
        .chain(new)
        .map(|stall| {
            let (first, second) = (cycles(before, stall.reason), cycles(after, stall.reason));
            ((second - first).abs(), Figure { what: stall.reason, unit: "cycle", before: Some(first), after: Some(second) })
        })
        .filter(|(by, _)| *by >= MOVED_CYCLES)
        .collect();
    moved.sort_by(|a, b| b.0.total_cmp(&a.0));
    moved.into_iter().map(|(_, figure)| figure).collect()
}

/// Rules of one side that the other does not have, by rule and title; texts hold figures that differ by themselves. Plain
/// information is no finding, and neither is a rule of a section that the other side did not collect (`sections`; empty where that is
/// not known). A page without titles has the rule's name in their place: then that alone counts.
pub(super) fn only_in(side: &[Suggestion], other: &[Suggestion], sections: &HashSet<String>) -> Vec<(String, String)> {
    let is_finding = |suggestion: &&Suggestion| {
        suggestion.speedup_pct.is_some() || matches!(suggestion.kind, MessageKind::Warning | MessageKind::Optimization)
    };
    let has_titles = |side: &[Suggestion]| side.is_empty() || side.iter().any(|suggestion| suggestion.title != suggestion.rule);
    let by_title = has_titles(side) && has_titles(other);
    let key = |suggestion: &'_ Suggestion| (suggestion.rule.clone(), if by_title { suggestion.title.clone() } else { String::new() });
    let known: HashSet<_> = other.iter().filter(is_finding).map(key).collect();
    let could_be_known =
        |suggestion: &&Suggestion| sections.is_empty() || suggestion.section.is_empty() || sections.contains(&suggestion.section);
    let mut seen = HashSet::new();
    let only = side.iter().filter(is_finding).filter(could_be_known);
    let only = only.filter(|suggestion| !known.contains(&key(suggestion)) && seen.insert(key(suggestion)));
    only.map(|suggestion| (suggestion.rule.clone(), suggestion.text.clone())).collect()
}
