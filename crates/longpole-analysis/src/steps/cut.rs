//! From anchors (blocks of layers, graph launches) to steps: which of the launches between two anchors belong to which.
//!
//! Between two anchors stand the end of one step and the begin of the next. What follows the last anchor shows how a step ends, what
//! precedes the first one how it begins; where what stands between agrees with one of these, that is the cut. What cuts teach about the
//! begin and end of a kind of step is used for the others. Else the cut is at the longest idle time before any of those launches, by
//! the median over all places where the same launches stand between.

use std::ops::Range;

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use longpole_trace::Ns;

/// Something that is surely of one step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Anchor {
    pub(super) range: Range<usize>,
    /// Anchors of equal steps have the same key.
    pub(super) key: u32,
}

/// What begins and ends the steps of a key.
#[derive(Default)]
struct Learned<'s> {
    begins: HashMap<u32, &'s [u32], FixedState>,
    ends: HashMap<u32, &'s [u32], FixedState>,
}

/// The steps around anchors, one each, in order and without overlap. `idle` is the idle time before a position.
pub(super) fn steps(symbols: &[u32], anchors: &[Anchor], idle: &dyn Fn(usize) -> Ns) -> Vec<Range<usize>> {
    let (Some(first), Some(last)) = (anchors.first(), anchors.last()) else { return Vec::new() };
    let (leading, trailing) = (&symbols[..first.range.start], &symbols[last.range.end..]);
    let between = |at: usize| anchors[at].range.end..anchors[at + 1].range.start.max(anchors[at].range.end);
    // Gaps that look alike are cut alike.
    let mut alike: HashMap<(u32, u32, &[u32]), Vec<usize>, FixedState> = HashMap::default();
    for at in 0..anchors.len() - 1 {
        alike.entry((anchors[at].key, anchors[at + 1].key, &symbols[between(at)])).or_default().push(at);
    }
    let mut forms: Vec<_> = alike.into_iter().collect();
    forms.sort_by_key(|(_, gaps)| gaps[0]);
    let mut learned = Learned::default();
    let mut cuts: Vec<Option<usize>> = vec![None; forms.len()];
    // Gaps between anchors of one key first: those are the usual ones, and both sides of them are known.
    let mut order: Vec<usize> = (0..forms.len()).collect();
    order.sort_by_key(|&form| (forms[form].0.0 != forms[form].0.1, std::cmp::Reverse(forms[form].1.len()), form));
    for &form in &order {
        let ((before, after, gap), gaps) = &forms[form];
        let after_end = (*before == last.key && !trailing.is_empty() && gap.starts_with(trailing)).then_some(trailing.len());
        let before_begin = (*after == first.key && !leading.is_empty() && gap.ends_with(leading)).then(|| gap.len() - leading.len());
        let ends = learned.ends.get(before).filter(|end| !end.is_empty() && gap.starts_with(end)).map(|end| end.len());
        let begins =
            learned.begins.get(after).filter(|begin| !begin.is_empty() && gap.ends_with(begin)).map(|begin| gap.len() - begin.len());
        let cut = after_end.or(before_begin).or(begins).or(ends).unwrap_or_else(|| longest_idle(gaps, |at| between(at), idle));
        cuts[form] = Some(cut);
        learned.ends.entry(*before).or_insert(&gap[..cut]);
        learned.begins.entry(*after).or_insert(&gap[cut..]);
    }
    let mut cut_after = vec![0; anchors.len()];
    for ((_, gaps), cut) in forms.iter().zip(cuts) {
        for &at in gaps {
            cut_after[at] = anchors[at].range.end + cut.unwrap_or(0);
        }
    }
    // Before the first and after the last anchor: what is known to belong there; else all, unless it is longer than the anchor itself.
    let longest = |range: Range<usize>| longest_idle(&[0], |_| range.clone(), idle);
    let begin = match learned.begins.get(&first.key) {
        Some(begin) if leading.ends_with(begin) => leading.len() - begin.len(),
        _ if leading.len() <= first.range.len() => 0,
        _ => longest(0..leading.len()),
    };
    let end = match learned.ends.get(&last.key) {
        Some(end) if trailing.starts_with(end) => last.range.end + end.len(),
        _ if trailing.len() <= last.range.len() => symbols.len(),
        _ => last.range.end + longest(last.range.end..symbols.len()),
    };
    cut_after[anchors.len() - 1] = end;
    let mut from = begin;
    cut_after.into_iter().map(|to| std::mem::replace(&mut from, to)..to).collect()
}

/// The offset into gaps of the same form at which the median idle time before a launch is longest; the launch after the gap counts.
fn longest_idle(gaps: &[usize], between: impl Fn(usize) -> Range<usize>, idle: &dyn Fn(usize) -> Ns) -> usize {
    /// Gaps looked at: a median needs no more.
    const ENOUGH: usize = 101;
    let length = gaps.first().map_or(0, |&at| between(at).len());
    let median = |offset: usize| {
        let mut idles: Vec<Ns> = gaps.iter().take(ENOUGH).map(|&at| idle(between(at).start + offset)).collect();
        let middle = idles.len() / 2;
        *idles.select_nth_unstable(middle).1
    };
    (0..=length).max_by_key(|&offset| (median(offset), std::cmp::Reverse(offset))).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(symbols: &str, anchors: &[(usize, usize, u32)], idle: &dyn Fn(usize) -> Ns) -> Vec<String> {
        let anchors: Vec<Anchor> = anchors.iter().map(|&(from, to, key)| Anchor { range: from..to, key }).collect();
        let text: Vec<u32> = symbols.bytes().map(u32::from).collect();
        steps(&text, &anchors, idle).into_iter().map(|range| symbols[range].to_owned()).collect()
    }

    #[test]
    fn the_end_of_the_last_step_tells() {
        // Prefill `p` and decode `d`, each with a begin and an end.
        let found = cut("abPPPPxybcDDDDxzbcDDDDxz", &[(2, 6, 0), (10, 14, 1), (18, 22, 1)], &|_| Ns(0));
        assert_eq!(found, ["abPPPPxy", "bcDDDDxz", "bcDDDDxz"]);
    }

    #[test]
    fn else_the_longest_idle_time_tells() {
        let idle = |at: usize| Ns(i64::from(at == 7 || at == 15));
        let found = cut("PPPPabcdPPPPabcdPPPPq", &[(0, 4, 0), (8, 12, 0), (16, 20, 0)], &idle);
        assert_eq!(found, ["PPPPabc", "dPPPPabc", "dPPPPq"]);
    }
}
