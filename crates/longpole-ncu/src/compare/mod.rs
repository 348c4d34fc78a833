//! Two reports, kernel by kernel: what moved.
//!
//! `matching` finds which kernel of the one report is which of the other, in time that grows with their number; `pair` compares
//! the summaries of the two; `cautions` says what differs between the recordings and moves figures by itself. Results are decoded
//! pair by pair, so that a report of any size needs no more memory than its comparison.

mod cautions;
mod matching;
mod pair;
mod types;

pub use types::{Caution, Comparison, Figure, MatchedBy, NameTotal, Pair};

use std::collections::{HashMap, HashSet};

use rayon::prelude::*;

use crate::report::{Page, Report};
use crate::result::ProfiledResult;
use crate::summary::{self, launch, speed};
use matching::{Head, Matched};

/// Results that are decoded at a time.
const PIECE: usize = 1 << 12;

/// Compares two reports. Results whose name does not pass `keep` are left out of both.
pub fn compare(before: &Report, after: &Report, keep: impl Fn(&str) -> bool) -> Comparison {
    let (heads_before, heads_after) = (heads(before, &keep), heads(after, &keep));
    let matching = matching::matching(&heads_before, &heads_after);
    let (selection_before, selection_after) = (summary::selection(before), summary::selection(after));
    let has_rules = before.page() != Page::Raw && after.page() != Page::Raw;
    let compared = |matched: &Matched| {
        let first = before.decode(heads_before[matched.before].id, &selection_before)?;
        let second = after.decode(heads_after[matched.after].id, &selection_after)?;
        let summaries = (summary::summarize(before, &first), summary::summarize(after, &second));
        let mut pair = pair::pair(&summaries.0, &summaries.1, matched.by);
        if has_rules {
            // A table does not name all sections that were collected.
            let sections = |report: &Report, result: &ProfiledResult| -> HashSet<String> {
                let sections = result.sections.iter().filter(|_| report.page() == Page::Whole);
                sections.map(|section| section.id.clone()).collect()
            };
            pair.rules_gone = pair::only_in(&summaries.0.suggestions, &summaries.1.suggestions, &sections(after, &second));
            pair.rules_new = pair::only_in(&summaries.1.suggestions, &summaries.0.suggestions, &sections(before, &first));
        }
        Some(pair)
    };
    let pairs: Vec<Pair> = matching.pairs.par_iter().filter_map(compared).collect();
    let named = |heads: &[Head], places: &[usize]| places.iter().map(|&place| (heads[place].id, heads[place].name.clone())).collect();
    Comparison {
        cautions: cautions::cautions(before, after, &heads_before, &heads_after, &matching.pairs),
        totals: totals(&heads_before, &heads_after),
        pairs,
        only_before: named(&heads_before, &matching.only_before),
        only_after: named(&heads_after, &matching.only_after),
    }
}

/// What matching, totals and cautions need of every result.
fn heads(report: &Report, keep: &impl Fn(&str) -> bool) -> Vec<Head> {
    let wanted = report.select().values(|name| launch::wants_shape(name) || speed::is_duration(name));
    let mut heads = Vec::new();
    // In pieces, so that the results of a large report are not all in memory at once.
    for start in (0..report.len()).step_by(PIECE) {
        let piece: Vec<usize> = (start..report.len().min(start + PIECE)).collect();
        for result in report.decode_each(&piece, &wanted) {
            if keep(&result.name) {
                let (grid, block) = launch::shape(&result);
                heads.push(Head {
                    id: result.id,
                    kind: result.kind,
                    function: result.function.unwrap_or_else(|| result.name.clone()),
                    name: result.name,
                    grid,
                    block,
                    duration_ns: speed::duration_ns(&result.metrics),
                    clocks_locked: result.clocks_locked,
                });
            }
        }
    }
    heads
}

/// Launches and time by whole name, largest change first; names that are only in one report are there with nothing on the other side.
fn totals(before: &[Head], after: &[Head]) -> Vec<NameTotal> {
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut totals: Vec<NameTotal> = Vec::new();
    for (head, is_after) in before.iter().map(|head| (head, false)).chain(after.iter().map(|head| (head, true))) {
        let place = *places.entry(&head.name).or_insert_with(|| {
            totals.push(NameTotal::new(&head.name));
            totals.len() - 1
        });
        let total = &mut totals[place];
        let (launches, missing, sum) = if is_after {
            (&mut total.launches_after, &mut total.without_duration_after, &mut total.after_ns)
        } else {
            (&mut total.launches_before, &mut total.without_duration_before, &mut total.before_ns)
        };
        *launches += 1;
        match head.duration_ns {
            Some(ns) => *sum = Some(sum.unwrap_or(0).saturating_add(ns)),
            None => *missing += 1,
        }
    }
    totals.sort_by_key(|total| std::cmp::Reverse(total.before_ns.unwrap_or(0).abs_diff(total.after_ns.unwrap_or(0))));
    totals
}

#[cfg(test)]
mod tests;
