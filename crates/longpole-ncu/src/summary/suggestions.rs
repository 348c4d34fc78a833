//! What ncu's rules suggest, in the order of reading, with those set aside that the verdict makes idle.

use std::cmp::Ordering;
use std::collections::HashSet;

use super::types::{Suggestion, VerdictKind};
use crate::rules::{Message, Rule, Scope};

/// What a rule is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Resource {
    /// How many bytes memory can move: compression, DRAM throughput.
    Bandwidth,
    /// How memory is accessed: coalescing, bank conflicts, hit rates.
    Access,
    /// Arithmetic: pipes, instruction mix, the roofline.
    Arithmetic,
    /// Instructions a cycle: issue slots.
    Issue,
    /// What warps wait for.
    Waiting,
    /// Blocks and warps on the device: grid, occupancy, imbalance.
    Parallelism,
}

/// Rules by the start of their name. Rules that are not here belong to their section, those of unknown sections are related to everything.
const RULES: &[(&str, Resource)] = &[
    ("MemoryL2Compression", Resource::Bandwidth),
    ("MemoryCacheAccessPattern", Resource::Access),
    ("MemoryApertureUsage", Resource::Bandwidth),
    ("SharedMemoryConflicts", Resource::Access),
    ("Uncoalesced", Resource::Access),
    ("HighPipeUtilization", Resource::Arithmetic),
    ("SlowPipeLimiter", Resource::Arithmetic),
    ("FPInstructions", Resource::Arithmetic),
    ("SOLFPRoofline", Resource::Arithmetic),
    ("IssueSlotUtilization", Resource::Issue),
    ("CPIStall", Resource::Waiting),
    ("ThreadDivergence", Resource::Arithmetic),
    ("LaunchConfiguration", Resource::Parallelism),
    ("AchievedOccupancy", Resource::Parallelism),
    ("TheoreticalOccupancy", Resource::Parallelism),
    ("Occupancy", Resource::Parallelism),
    ("WorkloadImbalance", Resource::Parallelism),
];

/// Sections, for rules that [`RULES`] does not have. `SpeedOfLight` is about everything and is left out on purpose.
const SECTIONS: &[(&str, Resource)] = &[
    ("MemoryWorkloadAnalysis", Resource::Access),
    ("ComputeWorkloadAnalysis", Resource::Arithmetic),
    ("InstructionStats", Resource::Arithmetic),
    ("SchedulerStats", Resource::Issue),
    ("WarpStateStats", Resource::Waiting),
    ("LaunchStats", Resource::Parallelism),
    ("Occupancy", Resource::Parallelism),
    ("WorkloadDistribution", Resource::Parallelism),
];

/// What a verdict says does not hold the kernel back. A memory-bound kernel can still gain from better access and from more
/// warps to keep memory busy; one that waits gains nothing from more bandwidth or faster arithmetic.
const fn idle(verdict: VerdictKind) -> &'static [Resource] {
    match verdict {
        VerdictKind::MemoryBound => &[Resource::Arithmetic, Resource::Issue],
        VerdictKind::ComputeBound => &[Resource::Bandwidth, Resource::Access],
        VerdictKind::LatencyBound | VerdictKind::TooSmall => &[Resource::Bandwidth, Resource::Arithmetic],
        VerdictKind::Balanced => &[],
    }
}

fn resource(rule: &str, section: &str) -> Option<Resource> {
    let of =
        |table: &[(&str, Resource)], name: &str| table.iter().find(|(start, _)| name.starts_with(start)).map(|(_, resource)| *resource);
    of(RULES, rule).or_else(|| of(SECTIONS, section))
}

/// Is a rule about something that may hold the kernel back?
fn is_related(rule: &str, section: &str, verdict: Option<VerdictKind>) -> bool {
    let Some((resource, verdict)) = resource(rule, section).zip(verdict) else { return true };
    !idle(verdict).contains(&resource)
}

/// The messages of the rules that fired: global estimates before local ones, the largest first, then messages without an
/// estimate in the order of the report. A text that came twice is there once, in its better place.
pub(crate) fn suggestions(rules: &[Rule], verdict: Option<VerdictKind>) -> Vec<Suggestion> {
    let mut found: Vec<Suggestion> =
        rules.iter().flat_map(|rule| rule.messages.iter().map(move |message| suggestion(rule, message, verdict))).collect();
    found.sort_by(order);
    let mut seen = HashSet::new();
    found.retain(|suggestion| seen.insert(suggestion.text.clone()));
    found
}

fn suggestion(rule: &Rule, message: &Message, verdict: Option<VerdictKind>) -> Suggestion {
    let title = if message.title.is_empty() { &rule.title } else { &message.title };
    Suggestion {
        rule: rule.id.clone(),
        title: title.clone(),
        section: rule.section.clone(),
        text: message.text.clone(),
        kind: message.kind,
        scope: message.speedup.map(|(scope, _)| scope),
        speedup_pct: message.speedup.map(|(_, percent)| percent),
        is_related: is_related(&rule.id, &rule.section, verdict),
    }
}

fn order(a: &Suggestion, b: &Suggestion) -> Ordering {
    let rank = |suggestion: &Suggestion| match suggestion.scope {
        Some(Scope::Global) => 0,
        Some(Scope::Local) => 1,
        None => 2,
    };
    let percent = |suggestion: &Suggestion| suggestion.speedup_pct.unwrap_or(0.0);
    rank(a).cmp(&rank(b)).then_with(|| percent(b).total_cmp(&percent(a)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::MessageKind;
    use crate::testing::Sample;

    fn rules(sample: Sample) -> Vec<Rule> {
        sample.finish(0).rules
    }

    #[test]
    fn global_before_local_before_none_largest_first() {
        let sample = Sample::kernel("k")
            .rule("A", "S", "none", MessageKind::Information, None)
            .rule("B", "S", "local 90", MessageKind::Optimization, Some((Scope::Local, 90.0)))
            .rule("C", "S", "global 5", MessageKind::Optimization, Some((Scope::Global, 5.0)))
            .rule("D", "S", "global 50", MessageKind::Optimization, Some((Scope::Global, 50.0)))
            .rule("E", "S", "none either", MessageKind::Warning, None);
        let texts: Vec<_> = suggestions(&rules(sample), None).into_iter().map(|suggestion| suggestion.text).collect();
        assert_eq!(texts, ["global 50", "global 5", "local 90", "none", "none either"]);
    }

    #[test]
    fn a_text_is_there_once_where_its_estimate_is_best() {
        let sample = Sample::kernel("k")
            .rule("A", "S", "same", MessageKind::Optimization, Some((Scope::Local, 5.0)))
            .rule("B", "S", "same", MessageKind::Optimization, Some((Scope::Global, 7.0)))
            .rule("C", "S", "other", MessageKind::Optimization, Some((Scope::Global, 6.0)));
        let found: Vec<_> = suggestions(&rules(sample), None).into_iter().map(|suggestion| (suggestion.rule, suggestion.text)).collect();
        assert_eq!(found, [("B".to_owned(), "same".to_owned()), ("C".to_owned(), "other".to_owned())]);
    }

    #[test]
    fn what_the_verdict_excludes_is_unrelated_and_the_unknown_is_related() {
        let cases = [
            ("SlowPipeLimiter", "ComputeWorkloadAnalysis", VerdictKind::MemoryBound, false),
            ("IssueSlotUtilization", "SchedulerStats", VerdictKind::MemoryBound, false),
            ("MemoryL2Compression", "MemoryWorkloadAnalysis_Chart", VerdictKind::MemoryBound, true),
            ("UncoalescedGlobalAccess", "SourceCounters", VerdictKind::MemoryBound, true),
            ("UncoalescedGlobalAccess", "SourceCounters", VerdictKind::ComputeBound, false),
            ("CPIStallBarrier", "WarpStateStats", VerdictKind::ComputeBound, true),
            ("MemoryL2Compression", "MemoryWorkloadAnalysis_Chart", VerdictKind::LatencyBound, false),
            ("UncoalescedGlobalAccess", "SourceCounters", VerdictKind::TooSmall, true),
            ("LaunchConfiguration", "LaunchStats", VerdictKind::TooSmall, true),
            ("FPInstructions", "InstructionStats", VerdictKind::TooSmall, false),
            ("FPInstructions", "InstructionStats", VerdictKind::Balanced, true),
            ("ANewRule", "MemoryWorkloadAnalysis_Tables", VerdictKind::ComputeBound, false),
            ("ANewRule", "ANewSection", VerdictKind::ComputeBound, true),
            ("SOLBottleneck", "SpeedOfLight", VerdictKind::LatencyBound, true),
        ];
        for (rule, section, verdict, expected) in cases {
            assert_eq!(is_related(rule, section, Some(verdict)), expected, "{rule} in {section} when {verdict:?}");
            assert!(is_related(rule, section, None));
        }
    }
}
