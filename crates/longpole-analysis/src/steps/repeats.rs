//! Blocks of repeated layers in a sequence of symbols, approximately and significantly repeated.
//!
//! How: the distances between occurrences of the same [`GRAM`] symbols vote for periods. For each period that many vote for, a place
//! where the sequence agrees with itself a period earlier is the seed of a run, which is aligned with endless repeats of its pattern to
//! both sides (see [`super::cyclic`]). Of runs that overlap, the shorter period wins unless it explains clearly less: a multiple
//! of a period explains one repeat less, a whole step repeated explains what its layers do and little more.
//!
//! What is significant: the symbols of a run that agree with the pattern, each worth `h = -log2(sum p^2)` bits (`p` the frequencies of
//! symbols, of the whole sequence or of the pattern, whichever is less surprising), less what its differences cost to describe, less
//! the choice of place and period (`2 log2 n`), must leave [`SIGNIFICANT_BITS`]: by chance, one sequence in 2^40 has such a run. A
//! block has at least three layers.
//!
//! Time is linear in the length of the sequence, for a bounded number of periods.

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::cyclic::{Prices, View, extend};
use super::layers::{Run, regular_strangers};

/// Symbols whose common recurrence votes for a period.
const GRAM: usize = 4;
/// Earlier occurrences that vote.
const VOTES: usize = 6;
/// Longest period looked for: a layer of a mixture with all its experts launched one by one is shorter.
const LONGEST_PERIOD: usize = 16_384;
const SHORTEST_PERIOD: usize = 3;
/// Periods that are followed up, most votes first.
const PERIODS: usize = 48;
/// Share of symbols that agree with those a period earlier at a seed.
const SEED_SHARE: f64 = 0.6;
/// Where blocks of a shorter period have a larger share of the symbols, no longer period is looked for: it could not win.
const EXPLAINED: f64 = 0.8;
/// Evidence that a block must have, in bits.
pub(super) const SIGNIFICANT_BITS: f64 = 40.0;
/// Bits to describe a difference besides its place and its symbols.
const REPAIR_BITS: f64 = 4.0;
/// Shortest sequence looked at: three layers of the shortest period.
const SHORTEST_SEQUENCE: usize = 3 * SHORTEST_PERIOD;
/// Shorter periods win over a longer one if they explain this share of it.
const SHORT_WINS: f64 = 0.4;

/// A block of layers.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Block {
    /// First symbol of each layer, and one past the last symbol of the last one.
    pub(super) bounds: Vec<u32>,
    /// The usual layer.
    pub(super) pattern: Vec<u32>,
    /// Evidence in bits.
    pub(super) bits: f64,
}

impl Block {
    pub(super) fn start(&self) -> usize {
        self.bounds.first().map_or(0, |&at| at as usize)
    }

    pub(super) fn end(&self) -> usize {
        self.bounds.last().map_or(0, |&at| at as usize)
    }

    pub(super) fn moved(mut self, by: u32) -> Self {
        self.bounds.iter_mut().for_each(|bound| *bound += by);
        self
    }

    /// What blocks of the same layers have in common, wherever their boundaries are.
    pub(super) fn class(&self) -> Vec<u32> {
        let mut symbols = self.pattern.clone();
        symbols.sort_unstable();
        symbols
    }

    pub(super) fn layers(&self) -> usize {
        self.bounds.len().saturating_sub(1)
    }
}

/// A sequence with dense symbols and what chance agreement is worth in it.
struct Text<'s> {
    symbols: &'s [u32],
    /// Bits of an agreement, by the frequencies of the whole.
    agree: f64,
    /// Bits to choose a place and a period.
    choice: f64,
}

/// Minus the logarithm of the chance that two symbols drawn from these are the same.
pub(super) fn collision_bits(symbols: &[u32]) -> f64 {
    let mut counts: HashMap<u32, u64, FixedState> = HashMap::default();
    for &symbol in symbols {
        *counts.entry(symbol).or_default() += 1;
    }
    let total = symbols.len() as f64;
    let chance: f64 = counts.values().map(|&count| (count as f64 / total).powi(2)).sum();
    if chance > 0.0 { -chance.log2() } else { 0.0 }
}

/// The blocks of a sequence, in order, not overlapping.
pub(super) fn blocks(symbols: &[u32]) -> Vec<Block> {
    let found = unsplit(symbols);
    let mut all = Vec::with_capacity(found.len());
    for (number, block) in found.iter().enumerate() {
        let Some(cuts) = regular_strangers(symbols, block) else {
            all.push(block.clone());
            continue;
        };
        // Between its cuts, a block is looked for anew, not beyond its neighbours.
        let from = number.checked_sub(1).map_or(0, |before| found[before].end());
        let to = found.get(number + 1).map_or(symbols.len(), Block::start);
        let ends = cuts.iter().copied().chain(std::iter::once(to));
        let mut begin = from;
        for end in ends {
            let part = unsplit(&symbols[begin..end]);
            all.extend(part.into_iter().map(|block| block.moved(begin as u32)));
            begin = end;
        }
    }
    all
}

fn unsplit(symbols: &[u32]) -> Vec<Block> {
    if symbols.len() < SHORTEST_SEQUENCE {
        return Vec::new();
    }
    let text = Text { symbols, agree: collision_bits(symbols), choice: 2.0 * (symbols.len() as f64).log2() };
    // Accepted blocks by start.
    let mut accepted: Vec<Block> = Vec::new();
    for period in periods(symbols) {
        let found = text.runs(period, &explained_before(symbols.len(), &accepted, period));
        if !found.is_empty() {
            accepted = settle(accepted, found);
        }
    }
    accepted
}

/// Before each position, how many symbols are in blocks of a clearly shorter period than this.
fn explained_before(length: usize, accepted: &[Block], period: usize) -> Vec<u32> {
    let mut before = Vec::with_capacity(length + 1);
    let mut sum = 0;
    before.push(0);
    for block in accepted.iter().filter(|block| block.pattern.len() * 3 < period * 2) {
        before.resize(block.start() + 1, sum);
        before.extend((sum + 1..).take(block.end() - block.start()));
        sum += (block.end() - block.start()) as u32;
    }
    before.resize(length + 1, sum);
    before
}

/// Periods that get most votes, shortest first.
fn periods(symbols: &[u32]) -> Vec<usize> {
    let longest = LONGEST_PERIOD.min(symbols.len() / 2);
    let mut votes = vec![0_u32; longest + 1];
    let mut last: HashMap<[u32; GRAM], u32, FixedState> = HashMap::default();
    let mut previous = vec![u32::MAX; symbols.len()];
    for at in 0..symbols.len().saturating_sub(GRAM - 1) {
        let mut gram = [0; GRAM];
        gram.copy_from_slice(&symbols[at..at + GRAM]);
        let mut before = last.insert(gram, at as u32).unwrap_or(u32::MAX);
        previous[at] = before;
        for _ in 0..VOTES {
            if before == u32::MAX || at - before as usize > longest {
                break;
            }
            votes[at - before as usize] += 1;
            before = previous[before as usize];
        }
    }
    let mut periods: Vec<usize> = (SHORTEST_PERIOD..=longest).filter(|&period| votes[period] >= GRAM as u32).collect();
    periods.sort_by_key(|&period| (std::cmp::Reverse(votes[period]), period));
    periods.truncate(PERIODS);
    periods.sort_unstable();
    periods
}

/// Two lists of blocks, each in order and without overlap, made one: `longer` have the longer period (or about the same).
fn settle(shorter: Vec<Block>, longer: Vec<Block>) -> Vec<Block> {
    let mut keep_short = vec![true; shorter.len()];
    let mut won = Vec::new();
    let mut from = 0;
    for block in longer {
        while from < shorter.len() && shorter[from].end() <= block.start() {
            from += 1;
        }
        let overlapping = (from..shorter.len()).take_while(|&at| shorter[at].start() < block.end());
        let overlapping: Vec<usize> = overlapping.filter(|&at| keep_short[at]).collect();
        let explained: f64 = overlapping.iter().map(|&at| shorter[at].bits).sum();
        let longest = overlapping.iter().map(|&at| shorter[at].pattern.len()).max().unwrap_or(0);
        let wins = if block.pattern.len() * 2 < longest * 3 { block.bits > explained } else { explained < block.bits * SHORT_WINS };
        if wins {
            for at in overlapping {
                keep_short[at] = false;
            }
            won.push(block);
        }
    }
    let mut all: Vec<Block> = shorter.into_iter().zip(keep_short).filter(|(_, keep)| *keep).map(|(block, _)| block).collect();
    all.extend(won);
    all.sort_by_key(Block::start);
    all
}

impl Text<'_> {
    /// Significant runs of one period, in order, without overlap.
    fn runs(&self, period: usize, explained: &[u32]) -> Vec<Block> {
        let symbols = self.symbols;
        let window = period.max(12);
        let mut runs: Vec<Block> = Vec::new();
        let first = period + window;
        if symbols.len() < first {
            return runs;
        }
        let agrees = |at: usize| u32::from(symbols[at] == symbols[at - period]);
        // Agreements before each place from `period` on.
        let mut before = Vec::with_capacity(symbols.len() - period + 1);
        before.push(0_u32);
        let mut sum = 0;
        for at in period..symbols.len() {
            sum += agrees(at);
            before.push(sum);
        }
        let in_window = |end: usize| before[end - period] - before[end - period - window];
        let least = (window as f64 * SEED_SHARE).ceil() as u32;
        let is_explained = |end: usize| f64::from(explained[end] - explained[end - window]) > window as f64 * EXPLAINED;
        let mut end = first;
        while end <= symbols.len() {
            if in_window(end) < least || is_explained(end) {
                end += 1;
                continue;
            }
            // The best seed nearby.
            let mut best = end;
            for near in end..=(end + 4 * period).min(symbols.len()) {
                let here = in_window(near);
                if here < least {
                    break;
                }
                if here > in_window(best) {
                    best = near;
                }
                if here as usize == window {
                    break;
                }
            }
            let run = self.run(best - period, symbols[best - period..best].to_vec());
            match run {
                Some(block) if runs.last().is_none_or(|last| last.end() <= block.start()) => {
                    end = (block.end() + window).max(end + period);
                    runs.push(block);
                }
                _ => end = best + period,
            }
        }
        runs
    }

    /// The run of a pattern that stands at `at`, if it is significant.
    fn run(&self, at: usize, pattern: Vec<u32>) -> Option<Block> {
        let block = self.extended(at, pattern)?;
        // The seed may be an unusual layer: the usual one explains more.
        let layers = || block.bounds.windows(2).map(|pair| &self.symbols[pair[0] as usize..pair[1] as usize]);
        let mut counts: HashMap<&[u32], (u32, u32), FixedState> = HashMap::default();
        for (number, layer) in layers().enumerate() {
            counts.entry(layer).or_insert((0, number as u32)).0 += 1;
        }
        let (_, &(count, number)) = counts.iter().max_by_key(|(_, (count, number))| (*count, std::cmp::Reverse(*number)))?;
        let usual = layers().nth(number as usize)?.to_vec();
        if count < 2 || usual == block.pattern || usual.len() < SHORTEST_PERIOD {
            return Some(block);
        }
        // A pattern that took in what stands between two steps repeats with a hole in it; its own period finds the layers better.
        let differs = usual.len().abs_diff(block.pattern.len()) * 5 > block.pattern.len();
        let pattern_count = counts.get(block.pattern.as_slice()).map_or(0, |(count, _)| *count);
        if differs {
            return (count <= 2 * pattern_count).then_some(block);
        }
        let again = self.extended(block.bounds[number as usize] as usize, usual);
        Some(again.filter(|again| again.bits > block.bits || count > 2 * pattern_count).unwrap_or(block))
    }

    fn extended(&self, at: usize, pattern: Vec<u32>) -> Option<Block> {
        let agree = self.agree.min(collision_bits(&pattern));
        if agree <= 0.0 {
            return None;
        }
        let repair = (pattern.len() as f64).log2() + REPAIR_BITS;
        let prices = Prices { agree, repair, patience: SIGNIFICANT_BITS.max(agree * pattern.len() as f64 * 0.75) };
        let mut known: Vec<u32> = pattern.clone();
        known.sort_unstable();
        let foreign = |symbol: u32| known.binary_search(&symbol).is_err();
        let left = extend(&View::backwards(self.symbols, at), &pattern, prices, true, foreign);
        let right = extend(&View::forwards(self.symbols, at + pattern.len()), &pattern, prices, false, foreign);
        let bits = left.bits + right.bits - self.choice;
        if bits < SIGNIFICANT_BITS {
            return None;
        }
        let mut places: Vec<Option<u32>> = left.places;
        let start = at - places.len();
        places.reverse();
        places.extend((0..pattern.len()).map(|place| Some(place as u32)));
        places.extend(right.places);
        Run { start, places, pattern, bits }.layered(self.symbols)
    }
}

#[cfg(test)]
mod tests;
