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

use super::alphabet::{Dense, Scratch};
use super::layers::regular_strangers;
use super::runs::{Runs, SHORTEST_PERIOD};

/// Symbols whose common recurrence votes for a period.
const GRAM: usize = 4;
/// Earlier occurrences that vote.
const VOTES: usize = 6;
/// Longest period looked for: a layer of a mixture with all its experts launched one by one is shorter.
const LONGEST_PERIOD: usize = 16_384;
/// Periods that are followed up, most votes first.
const PERIODS: usize = 48;
/// Evidence that a block must have, in bits.
pub(super) const SIGNIFICANT_BITS: f64 = 40.0;
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

/// The blocks of a sequence, in order, not overlapping.
pub(super) fn blocks(symbols: &[u32]) -> Vec<Block> {
    if symbols.len() < SHORTEST_SEQUENCE {
        return Vec::new();
    }
    let Dense { symbols, names } = Dense::new(symbols);
    let mut found = dense_blocks(&symbols, &mut Scratch::new(names.len()));
    found.iter_mut().flat_map(|block| &mut block.pattern).for_each(|symbol| *symbol = names[*symbol as usize]);
    found
}

fn dense_blocks(symbols: &[u32], scratch: &mut Scratch) -> Vec<Block> {
    let found = unsplit(symbols, scratch);
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
            let part = unsplit(&symbols[begin..end], scratch);
            all.extend(part.into_iter().map(|block| block.moved(begin as u32)));
            begin = end;
        }
    }
    all
}

fn unsplit(symbols: &[u32], scratch: &mut Scratch) -> Vec<Block> {
    if symbols.len() < SHORTEST_SEQUENCE {
        return Vec::new();
    }
    let agree = scratch.collision_bits(symbols);
    let mut runs = Runs { symbols, agree, choice: 2.0 * (symbols.len() as f64).log2(), scratch };
    // Accepted blocks by start.
    let mut accepted: Vec<Block> = Vec::new();
    for period in periods(symbols) {
        let found = runs.of_period(period, &explained_before(symbols.len(), &accepted, period));
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

#[cfg(test)]
mod tests;
