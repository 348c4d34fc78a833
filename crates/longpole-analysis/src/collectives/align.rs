//! Which call of one rank is which call of another.
//!
//! All ranks of a communicator run its collectives in one order, but their recordings may begin and end at different ones, and may have lost
//! some. Where the recorder numbered the calls, numbers decide. Else time does: no rank leaves an all-reduce before the last has entered, so
//! the ends of one collective agree within microseconds on all ranks, whatever their starts, once the offset between the clocks is known. That
//! offset is looked for among the shifts of one sequence against the other: under the right shift all ends differ by the same.

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use longpole_trace::Ns;

use super::calls::Call;
use super::types::MatchedBy;

/// Ends of one collective differ by at most this and a quarter of the shorter kernel: the last rank's kernel is nearly all transfer, and ranks
/// leave at most about a chunk of it apart. Measured on NVLink: 1 to 3 us between 2 GPUs, up to 7 us between 8.
const TOLERANCE_NS: i64 = 20_000;
/// Shifts tried in each direction when the clocks do not agree.
const SHIFTS: i64 = 2_048;
/// Calls compared for a shift.
const SAMPLES: usize = 31;
/// Shifts of which the whole sequence is compared.
const CANDIDATES: usize = 4;
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

/// One sequence against another shifted by `shift` calls.
struct Shift {
    by: i64,
    /// Calls in common, were the shift right, and those among them whose kinds agree, by the sample.
    common: usize,
    alike: usize,
    offset: i64,
    spread: i64,
}

fn shifts(reference: &[Call], other: &[Call], work: &mut u64) -> Vec<Shift> {
    let (left, right) = (reference.len() as i64, other.len() as i64);
    let least = (left.min(right) / 4).max(left.min(right).min(MIN_SAMPLES as i64));
    let mut found = Vec::new();
    let mut differences = Vec::with_capacity(SAMPLES);
    for shift in (-SHIFTS).max(least - left)..=SHIFTS.min(right - least) {
        let first = (-shift).max(0);
        let common = (left.min(right - shift) - first).max(0);
        if common < least {
            continue;
        }
        let sampled = common.min(SAMPLES as i64);
        differences.clear();
        for sample in 0..sampled {
            let at = first + sample * common / sampled;
            let (a, b) = (&reference[at as usize], &other[(at + shift) as usize]);
            if a.key == b.key {
                differences.push(apart(a, b, 0));
            }
        }
        *work += sampled as u64;
        let alike = differences.len();
        if let Some((offset, spread)) = centre(&mut differences) {
            found.push(Shift { by: shift, common: common as usize, alike: common as usize * alike / sampled as usize, offset, spread });
        }
    }
    found
}

/// Spread of the differences of ends, for telling which of two alignments is right.
fn spread(reference: &[Call], other: &[Call], pairs: &[(u32, u32)]) -> i64 {
    let mut differences: Vec<i64> = pairs.iter().map(|&(i, j)| apart(&reference[i as usize], &other[j as usize], 0)).collect();
    centre(&mut differences).map_or(i64::MAX, |(_, spread)| spread)
}

/// Aligns two ranks' calls of one communicator. `work` is raised by the comparisons made.
pub(super) fn align(reference: &[Call], other: &[Call], work: &mut u64) -> Alignment {
    let fewer = reference.len().min(other.len());
    *work += (reference.len() + other.len()) as u64;
    if reference.iter().chain(other).all(|call| call.sequence.is_some()) {
        return Alignment { pairs: by_sequence(reference, other), by: MatchedBy::Sequence };
    }
    let mut best = walk(reference, other, 0);
    if best.len() * 20 >= fewer * 19 {
        return Alignment { pairs: best, by: MatchedBy::Time };
    }
    let mut shifts = shifts(reference, other, work);
    // Kinds that agree in four of five places, and then the steadiest differences.
    shifts.sort_by_key(|s| (s.alike * 5 < s.common * 4, s.spread, s.offset.saturating_abs(), s.by));
    if fewer >= MIN_SAMPLES {
        for shift in shifts.iter().take(CANDIDATES) {
            *work += (reference.len() + other.len()) as u64;
            let pairs = walk(reference, other, shift.offset);
            let is_better = pairs.len() > best.len()
                || (pairs.len() == best.len() && spread(reference, other, &pairs) < spread(reference, other, &best));
            if is_better {
                best = pairs;
            }
        }
    }
    if best.len() * 2 >= fewer && !best.is_empty() {
        return Alignment { pairs: best, by: MatchedBy::Time };
    }
    let in_order = shifts.iter().max_by_key(|s| (s.alike, -s.by.saturating_abs(), s.by));
    let shift = in_order.map_or(0, |s| s.by);
    let pairs = (0..reference.len() as i64)
        .filter_map(|i| {
            let j = usize::try_from(i + shift).ok()?;
            (other.get(j)?.key == reference[i as usize].key).then_some((i as u32, j as u32))
        })
        .collect();
    Alignment { pairs, by: MatchedBy::Order }
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
