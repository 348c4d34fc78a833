//! From anchors (blocks of layers, graph launches) to steps: which of the launches between two anchors belong to which.
//!
//! Between two anchors stand the end of one step and the begin of the next. What follows the last anchor shows how a step ends, what
//! precedes the first one how it begins, and each cut teaches how steps of its two kinds do. The cut is where both sides have most in
//! common with those, and of equals at the longest idle time before a launch (the median over all places where the same launches stand
//! between).

use std::ops::Range;

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use longpole_trace::Ns;

/// Longer gaps are cut by idle time alone.
const LONGEST_COMPARED: usize = 1_024;

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
        let end = learned.ends.get(before).copied().unwrap_or(trailing);
        let begin = learned.begins.get(after).copied().unwrap_or(leading);
        let cut = best_cut(gap, end, begin, |offset| median_idle(gaps, offset, between, idle));
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
    let longest = |range: Range<usize>| (0..=range.len()).max_by_key(|&at| (idle(range.start + at), std::cmp::Reverse(at))).unwrap_or(0);
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

/// The offset into a gap at which what is before it has most in common with how a step ends, and what is after it with how one begins;
/// of equals that with the longest idle time.
fn best_cut(gap: &[u32], end: &[u32], begin: &[u32], idle: impl Fn(usize) -> Ns) -> usize {
    let mut common = vec![0; gap.len() + 1];
    if gap.len().max(end.len()).max(begin.len()) <= LONGEST_COMPARED {
        let backwards = |symbols: &[u32]| symbols.iter().rev().copied().collect::<Vec<_>>();
        let with_end = common_by_length(gap, end);
        let with_begin = common_by_length(&backwards(gap), &backwards(begin));
        for (offset, common) in common.iter_mut().enumerate() {
            // Nothing more and nothing less is worth something too.
            let is_all = |part: &[u32], of: &[u32]| u32::from(!of.is_empty() && part == of);
            let exact = is_all(&gap[..offset], end) + is_all(&gap[offset..], begin);
            *common = with_end[offset] + with_begin[gap.len() - offset] + exact;
        }
    }
    (0..=gap.len()).max_by_key(|&offset| (common[offset], idle(offset), std::cmp::Reverse(offset))).unwrap_or(0)
}

/// For each length of the beginning of `text`, its longest common subsequence with `other`.
fn common_by_length(text: &[u32], other: &[u32]) -> Vec<u32> {
    let mut row = vec![0_u32; other.len() + 1];
    let mut all = vec![0];
    for symbol in text {
        let mut diagonal = 0;
        for at in 0..other.len() {
            let above = row[at + 1];
            row[at + 1] = if *symbol == other[at] { diagonal + 1 } else { above.max(row[at]) };
            diagonal = above;
        }
        all.push(row[other.len()]);
    }
    all
}

/// The median idle time before a launch, over gaps of the same form; the launch after the gap counts.
fn median_idle(gaps: &[usize], offset: usize, between: impl Fn(usize) -> Range<usize>, idle: &dyn Fn(usize) -> Ns) -> Ns {
    /// Gaps looked at: a median needs no more.
    const ENOUGH: usize = 101;
    let mut idles: Vec<Ns> = gaps.iter().take(ENOUGH).map(|&at| idle(between(at).start + offset)).collect();
    let middle = idles.len() / 2;
    *idles.select_nth_unstable(middle).1
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
