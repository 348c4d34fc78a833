//! What warps wait for.
//!
//! In every cycle a warp either issues an instruction or has a reason not to. ncu counts these reasons in two ways: as cycles
//! a warp spends for each instruction issued (the `ratio` metrics, exact over the whole kernel), and as samples of the warps'
//! states (`pcsamp`, per instruction). The first is used where it was collected; the two name two reasons differently.

use super::types::Stall;
use crate::metrics::Metrics;

/// Cycles between two issued instructions of a warp: what the cycles of all reasons, `selected` included, add up to.
const LATENCY: &str = "smsp__average_warp_latency_per_inst_issued.ratio";
const RATIO: (&str, &str) = ("smsp__average_warps_issue_stalled_", "_per_issue_active.ratio");
const SAMPLED: &str = "smsp__pcsamp_warps_issue_stalled_";
const NOT_ISSUED: &str = "_not_issued";
const SAMPLES: &str = "smsp__pcsamp_sample_count";

/// The reason of a warp that does issue: it waits for nothing.
const SELECTED: &str = "selected";

/// One reason of the hardware.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StallReason {
    /// Its name in the exact metrics.
    pub name: &'static str,
    /// Its name in the sampled metrics, where that is another.
    pub sampled_name: &'static str,
    /// What the hardware waits for, and what usually causes it, in one line.
    pub meaning: &'static str,
}

const fn reason(name: &'static str, meaning: &'static str) -> StallReason {
    StallReason { name, sampled_name: name, meaning }
}

/// All reasons that GPUs from Volta on give, `selected` left out.
const REASONS: &[StallReason] = &[
    reason("barrier", "waits at a block barrier for slower warps: uneven work between barriers, or blocks so large that many wait for one"),
    reason("branch_resolving", "waits until a branch's target is known: many jumps with little work between them"),
    reason("dispatch_stall", "the dispatch unit holds the instruction back: rare, from register file or pipe conflicts"),
    reason("drain", "has exited and waits for its last stores to reach memory: much is written at the very end, often uncoalesced"),
    StallReason {
        name: "gmma",
        sampled_name: "warpgroup_arrive",
        meaning: "waits for its warp group or its tensor-core operands: other warps of the group arrive late, or tiles are not loaded ahead",
    },
    reason("imc_miss", "waits for a constant that is not in the immediate-constant cache: constants read at many or varying addresses"),
    reason("lg_throttle", "the queue of local and global accesses is full: many small or spilled accesses; wider loads need fewer"),
    reason(
        "long_scoreboard",
        "waits for data from global, local or texture memory: cache misses, uncoalesced access, too few loads in flight",
    ),
    reason("math_pipe_throttle", "the arithmetic pipe it needs is taken: many warps use one pipe at once, near that pipe's peak"),
    reason("membar", "waits at a memory fence until its earlier accesses are visible: fences in inner loops, or slow stores before them"),
    reason(
        "mio_throttle",
        "the queue for shared memory, special functions and dynamic branches is full: many shared accesses close together",
    ),
    reason("misc", "another reason of the hardware that has no name of its own"),
    StallReason {
        name: "no_instruction",
        sampled_name: "no_instructions",
        meaning: "has no instruction to run: the instruction cache misses after far jumps, in code unrolled too far, or in a very short kernel",
    },
    reason("not_selected", "was ready, another warp issued: there are warps enough, and fewer would do as well"),
    reason(
        "short_scoreboard",
        "waits for shared memory or a special function: bank conflicts, dependent shared loads, much exp, log or division",
    ),
    reason("sleeping", "sleeps because the program told it to (nanosleep): usually a spin loop that backs off"),
    reason("tex_throttle", "the queue of the texture unit is full: many texture or surface accesses close together"),
    reason(
        "wait",
        "waits the fixed time of its previous instruction: chains of dependent arithmetic; more independent work per thread hides it",
    ),
];

/// Cycles of reasons that this table does not have.
const OTHER: StallReason = reason("other", "reasons that this version has no words for; `--metrics issue_stalled` shows them by name");

/// The reason of this name, in either family's spelling; `None` for one that is unknown, and for `selected`.
pub fn stall_reason(name: &str) -> Option<&'static StallReason> {
    REASONS.iter().find(|reason| reason.name == name || reason.sampled_name == name)
}

/// Is the metric read here?
pub(crate) fn wants(name: &str) -> bool {
    name == LATENCY || name == SAMPLES || ratio_reason(name).is_some() || sampled_reason(name).is_some()
}

/// Average warp cycles between two issued instructions.
pub(crate) fn warp_cycles_per_issue(metrics: &Metrics) -> Option<f64> {
    metrics.number(LATENCY)
}

/// The reasons with any cycles or samples, largest first.
pub(crate) fn stalls(metrics: &Metrics) -> Vec<Stall> {
    let ratios = collect(metrics, ratio_reason);
    let (found, total, is_exact) = if ratios.is_empty() {
        let samples = collect(metrics, sampled_reason);
        let total = metrics.number(SAMPLES);
        (samples, total, false)
    } else {
        let total = metrics.number(LATENCY);
        (ratios, total, true)
    };
    let total = total.unwrap_or_else(|| found.iter().map(|(_, value)| value).sum());
    if total <= 0.0 {
        return Vec::new();
    }
    let mut stalls: Vec<Stall> = Vec::new();
    for (name, value) in found {
        if name == SELECTED || value <= 0.0 {
            continue;
        }
        let reason = stall_reason(name).unwrap_or(&OTHER);
        let cycles_per_issue = is_exact.then_some(value);
        let share_fraction = value / total;
        if !share_fraction.is_finite() {
            continue;
        }
        match stalls.iter_mut().find(|stall| stall.reason == reason.name) {
            Some(stall) => {
                stall.share_fraction += share_fraction;
                stall.cycles_per_issue = stall.cycles_per_issue.zip(cycles_per_issue).map(|(before, more)| before + more);
            }
            None => stalls.push(Stall { reason: reason.name, cycles_per_issue, share_fraction, meaning: reason.meaning }),
        }
    }
    stalls.sort_by(|a, b| b.share_fraction.total_cmp(&a.share_fraction).then_with(|| a.reason.cmp(b.reason)));
    stalls
}

fn collect(metrics: &Metrics, reason_of: impl Fn(&str) -> Option<&str>) -> Vec<(&str, f64)> {
    let number = |metric: &crate::metrics::Metric| metric.value.as_ref().and_then(crate::metrics::Value::number);
    metrics.iter().filter_map(|(name, metric)| Some((reason_of(name)?, number(metric)?))).collect()
}

fn ratio_reason(name: &str) -> Option<&str> {
    name.strip_prefix(RATIO.0)?.strip_suffix(RATIO.1)
}

fn sampled_reason(name: &str) -> Option<&str> {
    name.strip_prefix(SAMPLED).filter(|reason| !reason.ends_with(NOT_ISSUED))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Sample;

    fn ratio(reason: &str) -> String {
        format!("{}{reason}{}", RATIO.0, RATIO.1)
    }

    #[test]
    fn a_share_is_of_the_latency_and_selected_is_no_stall() {
        let sample = Sample::kernel("k")
            .value(LATENCY, 10.0)
            .value(&ratio("selected"), 1.0)
            .value(&ratio("wait"), 2.0)
            .value(&ratio("long_scoreboard"), 7.0)
            .value(&ratio("barrier"), 0.0);
        let found: Vec<_> =
            stalls(&sample.metrics()).iter().map(|stall| (stall.reason, stall.cycles_per_issue, stall.share_fraction)).collect();
        assert_eq!(found, [("long_scoreboard", Some(7.0), 0.7), ("wait", Some(2.0), 0.2)]);
    }

    #[test]
    fn every_reason_is_found_under_both_names() {
        for reason in REASONS {
            let exact = stalls(&Sample::kernel("k").value(LATENCY, 4.0).value(&ratio(reason.name), 1.0).metrics());
            let sampled = Sample::kernel("k").value(SAMPLES, 8.0).value(&format!("{SAMPLED}{}", reason.sampled_name), 2.0);
            let sampled = stalls(&sampled.metrics());
            assert_eq!((exact[0].reason, exact[0].share_fraction), (reason.name, 0.25));
            assert_eq!((sampled[0].reason, sampled[0].share_fraction, sampled[0].cycles_per_issue), (reason.name, 0.25, None));
            assert_eq!(exact[0].meaning, reason.meaning);
            assert!(!reason.meaning.contains('\n') && reason.meaning.len() < 160, "{}", reason.name);
        }
        assert_eq!(stall_reason("no_instructions"), stall_reason("no_instruction"));
        assert_eq!(stall_reason("warpgroup_arrive"), stall_reason("gmma"));
        assert_eq!(stall_reason("selected"), None);
    }

    #[test]
    fn samples_count_only_without_exact_figures_and_not_issued_ones_never() {
        let sample = Sample::kernel("k")
            .value(SAMPLES, 100.0)
            .value(&format!("{SAMPLED}wait"), 40.0)
            .value(&format!("{SAMPLED}wait_not_issued"), 30.0)
            .value(&format!("{SAMPLED}selected"), 10.0);
        let found = stalls(&sample.clone().metrics());
        assert_eq!((found.len(), found[0].reason, found[0].share_fraction), (1, "wait", 0.4));
        let both = sample.value(LATENCY, 10.0).value(&ratio("barrier"), 5.0);
        let found = stalls(&both.metrics());
        assert_eq!((found.len(), found[0].reason, found[0].share_fraction), (1, "barrier", 0.5));
    }

    #[test]
    fn without_the_whole_the_sum_of_the_parts_is_the_whole() {
        let sample = Sample::kernel("k").value(&ratio("selected"), 1.0).value(&ratio("wait"), 3.0);
        assert_eq!(stalls(&sample.metrics()).iter().map(|stall| stall.share_fraction).collect::<Vec<_>>(), [0.75]);
        assert!(stalls(&Sample::kernel("k").value(&ratio("wait"), 0.0).metrics()).is_empty());
        assert!(stalls(&Sample::kernel("k").metrics()).is_empty());
    }

    #[test]
    fn reasons_of_a_later_gpu_are_added_up() {
        let sample = Sample::kernel("k").value(LATENCY, 10.0).value(&ratio("new_a"), 2.0).value(&ratio("new_b"), 3.0);
        let found = stalls(&sample.metrics());
        assert_eq!((found.len(), found[0].reason, found[0].cycles_per_issue), (1, "other", Some(5.0)));
    }
}
