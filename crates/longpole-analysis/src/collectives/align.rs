//! Which call of one rank is which call of another.
//!
//! All ranks of a communicator run its collectives in one order, but their recordings may begin and end at different ones, and may have lost
//! some. Where the recorder numbered the calls, numbers decide. Else time does: no rank leaves an all-reduce before the last has entered, so
//! the ends of one collective agree within microseconds on all ranks, whatever their starts, once the offset between the clocks is known. That
//! offset is the difference of ends that most calls agree on.

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use longpole_trace::Ns;

use super::calls::Call;
use super::types::MatchedBy;

/// Ends of one collective differ by at most this and a quarter of the shorter kernel: the last rank's kernel is nearly all transfer, and ranks
/// leave at most about a chunk of it apart. Measured on NVLink: 1 to 3 us between 2 GPUs, up to 7 us between 8.
const TOLERANCE_NS: i64 = 20_000;
/// A spread of the differences of ends so small that the alignment is right.
const SURE_NS: i64 = 2_000;
/// Calls compared with many of the other rank's when the clocks do not agree.
const ANCHORS: usize = 64;
/// How many of the other rank's in each direction.
const REACH: usize = 512;
/// Clock offsets under which the whole sequence is compared.
const CANDIDATES: usize = 6;
/// Fewer common calls than this tell no clock offset.
pub(super) const MIN_SAMPLES: usize = 4;

/// Calls that are the same collective.
#[derive(Debug)]
pub(super) struct Alignment {
    /// Positions in the reference's and in the other's calls, both rising unless numbers say otherwise.
    pub(super) pairs: Vec<(u32, u32)>,
    pub(super) by: MatchedBy,
}

/// Median of numbers, and the median distance from it.
pub(super) fn centre(values: &mut [i64]) -> Option<(i64, i64)> {
    if values.is_empty() {
        return None;
    }
    let middle = values.len() / 2;
    let median = *values.select_nth_unstable(middle).1;
    for value in values.iter_mut() {
        *value = value.saturating_sub(median).saturating_abs();
    }
    let spread = *values.select_nth_unstable(middle).1;
    Some((median, spread))
}

/// How far apart the ends of two calls are beyond `ahead`, by which the other's clock is ahead.
fn apart(reference: &Call, other: &Call, ahead: i64) -> i64 {
    (other.end - reference.end).get().saturating_sub(ahead)
}

fn tolerance(reference: &Call, other: &Call) -> i64 {
    TOLERANCE_NS + (reference.end - reference.start).min(other.end - other.start).get().max(0) / 4
}

/// Whether two calls may be one collective, by kind and time.
fn is_same(reference: &Call, other: &Call, ahead: i64) -> bool {
    if reference.key != other.key {
        return false;
    }
    if reference.kind.ends_together() {
        return apart(reference, other, ahead).saturating_abs() <= tolerance(reference, other);
    }
    let slack = Ns(ahead.saturating_add(TOLERANCE_NS));
    let other_slack = Ns(TOLERANCE_NS.saturating_sub(ahead));
    other.start <= reference.end + slack && reference.start <= other.end + other_slack
}

/// Walks both sequences under a clock offset. The offset follows the matches slowly, since clocks drift.
fn walk(reference: &[Call], other: &[Call], ahead: i64) -> Vec<(u32, u32)> {
    let mut pairs = Vec::new();
    let (mut i, mut j, mut ahead) = (0, 0, ahead);
    while let (Some(a), Some(b)) = (reference.get(i), other.get(j)) {
        let by = apart(a, b, ahead);
        if is_same(a, b, ahead) {
            let nearer = |a: &Call, b: &Call| is_same(a, b, ahead) && apart(a, b, ahead).saturating_abs() < by.saturating_abs();
            if by < 0 && other.get(j + 1).is_some_and(|next| nearer(a, next)) {
                j += 1;
            } else if by > 0 && reference.get(i + 1).is_some_and(|next| nearer(next, b)) {
                i += 1;
            } else {
                pairs.push((i as u32, j as u32));
                if a.kind.ends_together() {
                    ahead = ahead.saturating_add(by / 8);
                }
                i += 1;
                j += 1;
            }
        } else if by > 0 {
            i += 1;
        } else {
            j += 1;
        }
    }
    pairs
}

/// Walks under an offset, and then under the one that the matches tell: an offset that is slightly off matches most calls rightly and some to
/// their neighbours.
fn settle(reference: &[Call], other: &[Call], ahead: i64) -> Vec<(u32, u32)> {
    let pairs = walk(reference, other, ahead);
    let Some((median, _)) = centre(&mut differences(reference, other, &pairs)) else { return pairs };
    let again = walk(reference, other, median);
    if again.len() * 10 >= pairs.len() * 9 { again } else { pairs }
}

/// Clock offsets that many calls agree on, whatever is missing between them.
///
/// Calls of the reference taken at even distances each give the differences to the ends of many calls of the other: the right one, if it is
/// there, and others. The right ones agree on the offset; the others scatter. Near which call the right one is, is unknown too: by time, if the
/// clocks are not far apart; by position from the beginning; by position from the end.
fn offsets(reference: &[Call], other: &[Call], work: &mut u64) -> Vec<i64> {
    let anchors = reference.len().min(ANCHORS);
    let mut found: Vec<(usize, i64)> = Vec::new();
    let mut differences: Vec<(i64, usize)> = Vec::new();
    for near in [Near::Time, Near::Beginning, Near::End] {
        differences.clear();
        for anchor in 0..anchors {
            let at = anchor * reference.len() / anchors;
            let call = &reference[at];
            let centre = match near {
                Near::Time => other.partition_point(|candidate| candidate.end < call.end),
                Near::Beginning => at,
                Near::End => (at + other.len()).saturating_sub(reference.len()),
            };
            let (first, last) = (centre.saturating_sub(REACH).min(other.len()), (centre + REACH).min(other.len()));
            let alike = other[first..last].iter().filter(|candidate| candidate.key == call.key);
            differences.extend(alike.map(|candidate| (apart(call, candidate, 0), anchor)));
        }
        *work += differences.len() as u64;
        densest(&mut differences, anchors, &mut found);
    }
    found.sort_by_key(|&(count, offset)| (std::cmp::Reverse(count), offset.saturating_abs(), offset));
    found.truncate(CANDIDATES);
    found.into_iter().map(|(_, offset)| offset).collect()
}

/// Where the right call may be looked for.
#[derive(Clone, Copy)]
enum Near {
    Time,
    Beginning,
    End,
}

/// The offsets that most anchors agree on within the tolerance, with their number.
fn densest(differences: &mut [(i64, usize)], anchors: usize, found: &mut Vec<(usize, i64)>) {
    differences.sort_unstable();
    let mut seen = vec![0_u32; anchors];
    let (mut first, mut distinct) = (0, 0);
    // The best window of each stretch of overlapping ones: (anchors, offset, end).
    let mut best: Option<(usize, i64, i64)> = None;
    for last in 0..differences.len() {
        let (difference, anchor) = differences[last];
        seen[anchor] += 1;
        distinct += usize::from(seen[anchor] == 1);
        while difference.saturating_sub(differences[first].0) > TOLERANCE_NS {
            let left = differences[first].1;
            seen[left] -= 1;
            distinct -= usize::from(seen[left] == 0);
            first += 1;
        }
        if distinct < MIN_SAMPLES {
            continue;
        }
        let middle = differences[first.midpoint(last)].0;
        match best {
            Some((count, _, end)) if differences[first].0 <= end => {
                if distinct > count {
                    best = Some((distinct, middle, difference));
                }
            }
            _ => {
                found.extend(best.map(|(count, offset, _)| (count, offset)));
                best = Some((distinct, middle, difference));
            }
        }
    }
    found.extend(best.map(|(count, offset, _)| (count, offset)));
}

/// How far apart the ends of matched calls are.
fn differences(reference: &[Call], other: &[Call], pairs: &[(u32, u32)]) -> Vec<i64> {
    pairs.iter().map(|&(i, j)| apart(&reference[i as usize], &other[j as usize], 0)).collect()
}

/// Spread of the differences of ends, for telling which of two alignments is right.
fn spread(reference: &[Call], other: &[Call], pairs: &[(u32, u32)]) -> i64 {
    centre(&mut differences(reference, other, pairs)).map_or(i64::MAX, |(_, spread)| spread)
}

/// Aligns two ranks' calls of one communicator. `work` is raised by the comparisons made.
pub(super) fn align(reference: &[Call], other: &[Call], work: &mut u64) -> Alignment {
    let fewer = reference.len().min(other.len());
    *work += (reference.len() + other.len()) as u64;
    if reference.iter().chain(other).all(|call| call.sequence.is_some()) {
        return Alignment { pairs: by_sequence(reference, other), by: MatchedBy::Sequence };
    }
    let mut best = settle(reference, other, 0);
    let mut best_spread = spread(reference, other, &best);
    if best.len() * 20 < fewer * 19 || best_spread > SURE_NS {
        for offset in offsets(reference, other, work) {
            *work += (reference.len() + other.len()) as u64;
            let pairs = settle(reference, other, offset);
            let its_spread = spread(reference, other, &pairs);
            // Where calls follow closely, a wrong offset matches many of them too, but not as steadily.
            let is_steadier = pairs.len() * 20 >= best.len() * 19 && its_spread.saturating_mul(2) < best_spread;
            if pairs.len() * 19 > best.len() * 20 || is_steadier {
                (best, best_spread) = (pairs, its_spread);
            }
        }
    }
    if best.len() * 2 >= fewer && !best.is_empty() {
        return Alignment { pairs: best, by: MatchedBy::Time };
    }
    let (ahead, behind) = (other.len().saturating_sub(reference.len()), reference.len().saturating_sub(other.len()));
    let from_beginning = in_order(reference, other, 0, 0);
    let to_end = in_order(reference, other, behind, ahead);
    let pairs = if to_end.len() > from_beginning.len() { to_end } else { from_beginning };
    Alignment { pairs, by: MatchedBy::Order }
}

/// Calls of one kind in the same place, counted from two first ones.
fn in_order(reference: &[Call], other: &[Call], first: usize, other_first: usize) -> Vec<(u32, u32)> {
    let both = reference[first..].iter().zip(&other[other_first..]).zip(0..);
    both.filter(|((a, b), _)| a.key == b.key).map(|(_, at)| (first as u32 + at, other_first as u32 + at)).collect()
}

/// Joins calls by number, and those that share a number (parts of one operation) by their order.
fn by_sequence(reference: &[Call], other: &[Call]) -> Vec<(u32, u32)> {
    let numbered = |calls: &[Call]| {
        let mut seen: HashMap<u64, u32, FixedState> = HashMap::default();
        let number = |call: &Call| {
            let nth = seen.entry(call.sequence.unwrap_or_default()).or_insert(0);
            *nth += 1;
            (call.sequence, *nth, call.key)
        };
        calls.iter().map(number).collect::<Vec<_>>()
    };
    let places: HashMap<_, u32, FixedState> = numbered(other).into_iter().zip(0..).collect();
    numbered(reference).into_iter().zip(0..).filter_map(|(number, i)| Some((i, *places.get(&number)?))).collect()
}
