//! Totals over rows that share something: a name, a family, a range.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::hash::Hash;

use super::{TableRow, known_first};
use crate::summary::VerdictKind;

/// All launches that share a key.
#[derive(Clone, Debug, PartialEq)]
pub struct Total<K> {
    /// What they share.
    pub key: K,
    /// How many there are.
    pub launches: u64,
    /// How many of them have no time: their time is missing from everything below.
    pub without_duration: u64,
    /// The sum of the times; `None` if no launch has one.
    pub total_ns: Option<u64>,
    /// The shortest.
    pub min_ns: Option<u64>,
    /// The one in the middle; of an even number the mean of the middle two, rounded down.
    pub median_ns: Option<u64>,
    /// The longest.
    pub max_ns: Option<u64>,
    /// The sum's share of the sum over all rows.
    pub share_fraction: Option<f64>,
    /// Device memory throughput, percent of peak, weighted by time, over the launches that have both.
    pub dram_pct: Option<f64>,
    /// SM throughput, weighted likewise.
    pub sm_pct: Option<f64>,
    /// The verdict that most of the time has; of launches without time the most frequent one.
    pub verdict: Option<VerdictKind>,
}

/// What totals can be ordered by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TotalOrder {
    /// Most time first.
    #[default]
    Duration,
    /// Most launches first.
    Launches,
    /// Longest single launch first.
    Longest,
    /// Most device memory throughput first.
    Dram,
    /// Most SM throughput first.
    Sm,
}

impl TotalOrder {
    /// All orders, with the words for them.
    pub const ALL: &[(&str, Self)] =
        &[("duration", Self::Duration), ("launches", Self::Launches), ("longest", Self::Longest), ("dram", Self::Dram), ("sm", Self::Sm)];
}

/// Orders totals. Those without the figure come last, and those that are equal in it stay as they are.
pub fn sort_totals<K>(totals: &mut [Total<K>], order: TotalOrder) {
    totals.sort_by(|a, b| match order {
        TotalOrder::Duration => by_duration(a, b),
        TotalOrder::Launches => b.launches.cmp(&a.launches),
        TotalOrder::Longest => known_first(a.max_ns, b.max_ns, |a, b| b.cmp(a)),
        TotalOrder::Dram => known_first(a.dram_pct, b.dram_pct, |a, b| b.total_cmp(a)),
        TotalOrder::Sm => known_first(a.sm_pct, b.sm_pct, |a, b| b.total_cmp(a)),
    });
}

fn by_duration<K>(a: &Total<K>, b: &Total<K>) -> Ordering {
    known_first(a.total_ns, b.total_ns, |a, b| b.cmp(a))
}

/// A mean with weights.
#[derive(Default)]
struct Weighted {
    sum: f64,
    weight: f64,
}

impl Weighted {
    fn add(&mut self, value: Option<f64>, weight: Option<u64>) {
        if let (Some(value), Some(weight)) = (value, weight) {
            self.sum += value * weight as f64;
            self.weight += weight as f64;
        }
    }

    fn mean(&self) -> Option<f64> {
        (self.weight > 0.0).then(|| self.sum / self.weight).filter(|mean| mean.is_finite())
    }
}

#[derive(Default)]
struct Group {
    launches: u64,
    durations: Vec<u64>,
    dram: Weighted,
    sm: Weighted,
    /// Time and launches by verdict.
    verdicts: Vec<(VerdictKind, u64, u64)>,
}

impl Group {
    fn add(&mut self, row: &TableRow) {
        self.launches += 1;
        self.durations.extend(row.duration_ns);
        self.dram.add(row.dram_pct, row.duration_ns);
        self.sm.add(row.sm_pct, row.duration_ns);
        if let Some(kind) = row.verdict {
            let time = row.duration_ns.unwrap_or(0);
            match self.verdicts.iter_mut().find(|(known, ..)| *known == kind) {
                Some((_, total, launches)) => {
                    *total = total.saturating_add(time);
                    *launches += 1;
                }
                None => self.verdicts.push((kind, time, 1)),
            }
        }
    }

    fn finish<K>(mut self, key: K, whole: u64) -> Total<K> {
        self.durations.sort_unstable();
        let durations = &self.durations;
        let total_ns = (!durations.is_empty()).then(|| sum(durations.iter().copied()));
        // The first seen wins a tie, so that the answer does not depend on the order of a map.
        let verdict = self.verdicts.iter().rev().max_by_key(|(_, time, launches)| (*time, *launches)).map(|(kind, ..)| *kind);
        Total {
            key,
            launches: self.launches,
            without_duration: self.launches - durations.len() as u64,
            total_ns,
            min_ns: durations.first().copied(),
            median_ns: median(durations),
            max_ns: durations.last().copied(),
            share_fraction: total_ns.filter(|_| whole > 0).map(|total| total as f64 / whole as f64),
            dram_pct: self.dram.mean(),
            sm_pct: self.sm.mean(),
            verdict,
        }
    }
}

/// Totals by `key`, most time first; equal ones in the order in which their keys first come.
pub fn totals<K: Eq + Hash + Clone>(rows: &[TableRow], key: impl Fn(&TableRow) -> K) -> Vec<Total<K>> {
    let mut places: HashMap<K, usize> = HashMap::new();
    let mut groups: Vec<(K, Group)> = Vec::new();
    for row in rows {
        let key = key(row);
        let place = *places.entry(key.clone()).or_insert_with(|| {
            groups.push((key, Group::default()));
            groups.len() - 1
        });
        groups[place].1.add(row);
    }
    let whole = sum(rows.iter().filter_map(|row| row.duration_ns));
    let mut totals: Vec<Total<K>> = groups.into_iter().map(|(key, group)| group.finish(key, whole)).collect();
    sort_totals(&mut totals, TotalOrder::Duration);
    totals
}

/// A sum that stays at the largest number rather than wrap: no real report comes near it.
fn sum(durations: impl Iterator<Item = u64>) -> u64 {
    durations.fold(0, u64::saturating_add)
}

fn median(sorted: &[u64]) -> Option<u64> {
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(sorted[middle]),
        _ => Some(sorted[middle - 1].midpoint(sorted[middle])),
    }
}
