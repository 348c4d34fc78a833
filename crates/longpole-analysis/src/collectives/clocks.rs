//! How far the clocks of the ranks are apart, told by the ends of their shared collectives.

use longpole_trace::Ns;

use super::align::{MIN_SAMPLES, centre};
use super::calls::Call;
use super::types::RankClock;

/// An offset below this may be chance: ranks leave a collective some microseconds apart.
const LEAST_OFFSET_NS: i64 = 20_000;

/// What one communicator says of two clocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Comparison {
    reference: usize,
    other: usize,
    ahead: i64,
    spread: i64,
    drift: i64,
    samples: usize,
}

/// Compares the clocks of two ranks by the ends of calls that are the same collective.
pub(super) fn compare(reference: (usize, &[Call]), other: (usize, &[Call]), pairs: &[(u32, u32)]) -> Option<Comparison> {
    let mut differences: Vec<i64> = pairs
        .iter()
        .map(|&(i, j)| (&reference.1[i as usize], &other.1[j as usize]))
        .filter(|(a, _)| a.kind.ends_together())
        .map(|(a, b)| (b.end - a.end).get())
        .collect();
    let samples = differences.len();
    if samples < MIN_SAMPLES {
        return None;
    }
    let (early, late) = differences.split_at_mut(samples / 2);
    // Medians of copies, since finding one disorders the list.
    let (early, late) = (centre(&mut early.to_vec())?.0, centre(&mut late.to_vec())?.0);
    let (ahead, spread) = centre(&mut differences)?;
    Some(Comparison { reference: reference.0, other: other.0, ahead, spread, drift: late.saturating_sub(early), samples })
}

/// The clock of each of `ranks`, from pairwise comparisons: along the best-sampled comparisons from rank to rank.
pub(super) fn clocks(ranks: &[usize], count: usize, mut comparisons: Vec<Comparison>) -> Vec<RankClock> {
    comparisons.sort_by_key(|c| (std::cmp::Reverse(c.samples), c.spread, c.reference, c.other));
    // A forest of the strongest comparisons, by union-find.
    let mut root: Vec<usize> = (0..count).collect();
    let mut edges: Vec<Vec<(usize, Comparison, i64)>> = vec![Vec::new(); count];
    for comparison in comparisons {
        let (a, b) = (find(&mut root, comparison.reference), find(&mut root, comparison.other));
        if a != b {
            root[a.max(b)] = a.min(b);
            edges[comparison.reference].push((comparison.other, comparison, 1));
            edges[comparison.other].push((comparison.reference, comparison, -1));
        }
    }
    let mut clocks: Vec<Option<RankClock>> = vec![None; count];
    for &rank in ranks {
        if clocks[rank].is_some() {
            continue;
        }
        let alone = edges[rank].is_empty();
        let zero = (!alone).then_some(Ns::ZERO);
        clocks[rank] = Some(RankClock {
            rank,
            reference: (!alone).then_some(rank),
            ahead_ns: zero,
            spread_ns: zero,
            drift_ns: zero,
            samples: 0,
            correction_ns: Ns::ZERO,
        });
        let mut open = vec![(rank, 0_i64, 0_i64, 0_i64)];
        while let Some((from, ahead, spread, drift)) = open.pop() {
            for &(to, comparison, sign) in &edges[from] {
                if clocks[to].is_some() {
                    continue;
                }
                let ahead = ahead.saturating_add(comparison.ahead.saturating_mul(sign));
                let drift = drift.saturating_add(comparison.drift.saturating_mul(sign));
                let spread = spread.max(comparison.spread);
                let is_certain = ahead.saturating_abs() > LEAST_OFFSET_NS && spread <= ahead.saturating_abs() / 4;
                clocks[to] = Some(RankClock {
                    rank: to,
                    reference: Some(rank),
                    ahead_ns: Some(Ns(ahead)),
                    spread_ns: Some(Ns(spread)),
                    drift_ns: Some(Ns(drift)),
                    samples: comparison.samples as u64,
                    correction_ns: if is_certain { Ns(ahead) } else { Ns::ZERO },
                });
                open.push((to, ahead, spread, drift));
            }
        }
    }
    ranks.iter().filter_map(|&rank| clocks[rank]).collect()
}

fn find(root: &mut [usize], mut rank: usize) -> usize {
    while root[rank] != rank {
        root[rank] = root[root[rank]];
        rank = root[rank];
    }
    rank
}
