//! Which groups of steps are compared with each other.

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use longpole_trace::Trace;

use super::types::{DiffSide, MatchedBy};
use crate::steps::StepGroup;

/// How alike two sequences of kernels have to be where there are no layers: shared calls over all calls.
const ALIKE: f64 = 0.5;
/// By what factor the number of kernels of two steps with as many layers may differ. Fusing a whole layer into a few kernels does more, but
/// then a name is needed.
const MOST_KERNELS: f64 = 8.0;
/// What it counts, in logarithms of that factor, that one side has one step (a prefill) and the other several.
const ONCE_OR_OFTEN: f64 = 0.3;
/// Groups of a trace that are looked at. A trace that names every step differently has thousands, of no use here.
const MOST_GROUPS: usize = 64;

/// A pair of groups, by position in their tables, and why.
pub(super) type Pair = (usize, usize, MatchedBy);

/// One-to-one pairs, the likeliest first.
pub(super) fn pairs(before: &DiffSide<'_, '_>, after: &DiffSide<'_, '_>) -> Vec<Pair> {
    let (a, b) = (heaviest(&before.steps.groups), heaviest(&after.steps.groups));
    let kernels_a: Vec<_> = a.iter().map(|&at| kernels(before.index.trace(), &before.steps.groups[at])).collect();
    let kernels_b: Vec<_> = b.iter().map(|&at| kernels(after.index.trace(), &after.steps.groups[at])).collect();
    let mut candidates = Vec::new();
    for (&from, kernels_a) in a.iter().zip(&kernels_a) {
        for (&to, kernels_b) in b.iter().zip(&kernels_b) {
            let (of_a, of_b) = (&before.steps.groups[from], &after.steps.groups[to]);
            let is_same_place = place(before, of_a) == place(after, of_b);
            if let Some((by, cost)) = cost(of_a, of_b, kernels_a, kernels_b).filter(|_| is_same_place) {
                candidates.push((by, cost, from, to));
            }
        }
    }
    candidates.sort_by(|x, y| x.0.cmp(&y.0).then(x.1.total_cmp(&y.1)).then((x.2, x.3).cmp(&(y.2, y.3))));
    let mut pairs: Vec<Pair> = Vec::new();
    for (by, _, from, to) in candidates {
        if pairs.iter().all(|pair| pair.0 != from && pair.1 != to) {
            pairs.push((from, to, by));
        }
    }
    pairs
}

/// The groups that take most device time.
fn heaviest(groups: &[StepGroup]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..groups.len()).collect();
    order.sort_by_key(|&at| (std::cmp::Reverse(groups[at].total_busy_ns), at));
    order.truncate(MOST_GROUPS);
    order
}

/// Rank and number of a group's device, where the trace has several. The only device of a trace may have any number.
fn place(side: &DiffSide<'_, '_>, group: &StepGroup) -> Option<(u32, i64)> {
    let trace = side.index.trace();
    let device = trace.devices.get(group.device.index())?;
    let rank = trace.ranks.get(device.rank as usize).map_or(device.rank, |rank| rank.rank);
    let is_alone = side.steps.groups.iter().all(|other| other.device == group.device);
    (!is_alone).then_some((rank, device.ordinal))
}

type Kernels<'t> = HashMap<&'t str, u64, FixedState>;

/// Calls of each kernel in a step, in thousandths.
fn kernels<'t>(trace: &'t Trace, group: &StepGroup) -> Kernels<'t> {
    let mut kernels = Kernels::default();
    for row in &group.rows {
        *kernels.entry(trace.strings.get(row.name)).or_default() += row.calls * 1000 / group.steps.len().max(1) as u64;
    }
    kernels
}

fn cost(a: &StepGroup, b: &StepGroup, kernels_a: &Kernels<'_>, kernels_b: &Kernels<'_>) -> Option<(MatchedBy, f64)> {
    let factor = (a.kernels_per_step.max(1) as f64 / b.kernels_per_step.max(1) as f64).ln().abs();
    if a.name == b.name {
        return Some((MatchedBy::Name, factor));
    }
    let layers = |group: &StepGroup| group.layers.as_ref().map_or(0, |layers| layers.order.len());
    let times = if (a.steps.len() == 1) == (b.steps.len() == 1) { 0.0 } else { ONCE_OR_OFTEN };
    if layers(a) > 0 && layers(a) == layers(b) && factor <= MOST_KERNELS.ln() {
        return Some((MatchedBy::Layers, factor + times));
    }
    let alike = alike(kernels_a, kernels_b);
    (alike >= ALIKE).then_some((MatchedBy::Kernels, 1.0 - alike + times))
}

/// Calls that both have, over the calls of both together.
fn alike(a: &Kernels<'_>, b: &Kernels<'_>) -> f64 {
    let shared: u64 = a.iter().map(|(name, &calls)| calls.min(b.get(name).copied().unwrap_or(0))).sum();
    let all = a.values().sum::<u64>() + b.values().sum::<u64>() - shared;
    if all == 0 { 0.0 } else { shared as f64 / all as f64 }
}
