//! The significant runs of one period: where a sequence repeats itself after so many symbols.
//!
//! A seed is a place where the sequence agrees with itself a period earlier. What stands there is the pattern; the run is as far as
//! repeats of it reach (see [`super::cyclic`]). Programs repeat themselves: an attempt looks at the symbols around its seed and at
//! nothing else, so it is made once for all places that look the same as far as it looked.

use std::ops::Range;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::alphabet::Scratch;
use super::cyclic::{Pattern, Prices, View, extend};
use super::layers::{LOOKS_BACK, Run};
use super::repeats::{Block, SIGNIFICANT_BITS};
use super::variants::Variants;

pub(super) const SHORTEST_PERIOD: usize = 3;
/// Fewest symbols of a seed.
const SHORTEST_SEED: usize = 12;
/// Share of symbols that agree with those a period earlier at a seed.
const SEED_SHARE: f64 = 0.6;
/// Where blocks of a shorter period have a larger share of the symbols, no longer period is looked for: it could not win.
const EXPLAINED: f64 = 0.8;
/// Bits to describe a difference besides its place and its symbols.
const REPAIR_BITS: f64 = 4.0;
/// Attempts kept for each pattern, the latest.
const KEPT: usize = 8;

/// How often every symbol may be looked at for one period, on the mean. Programs need a few times, since attempts at places that look alike are
/// made once; a sequence made to look like repeats everywhere without repeating (Thue and Morse) would take a time in its square.
const LOOKS: u64 = 24;
/// What is allowed besides, so that short sequences are searched whole.
const LOOKS_BESIDES: u64 = 1 << 20;

/// What became of a seed.
#[derive(Clone, Debug)]
enum Attempt {
    /// A significant run with layers.
    Block(Block),
    /// A significant run without enough layers, up to here.
    NoLayers {
        /// One past its last symbol.
        end: usize,
    },
    /// Nothing significant.
    Chance,
}

impl Attempt {
    /// The same attempt so many symbols later.
    fn moved(self, by: usize) -> Self {
        match self {
            Self::Block(block) => Self::Block(block.moved(by as u32)),
            Self::NoLayers { end } => Self::NoLayers { end: end + by },
            Self::Chance => Self::Chance,
        }
    }
}

/// An attempt that was made.
struct Tried {
    /// Where the seed stood.
    at: usize,
    /// All that it depends on.
    looked_at: Range<usize>,
    attempt: Attempt,
}

/// Where earlier runs ended.
#[derive(Clone, Copy, Debug, Default)]
struct Ends {
    /// Of those with layers: another one may not overlap.
    taken: usize,
    /// Of all significant ones: another one goes back into it no more than a period, or each would cost as much as all before it.
    reached: usize,
}

/// Finds runs in a sequence of dense symbols.
pub(super) struct Runs<'s> {
    pub(super) symbols: &'s [u32],
    /// Bits of an agreement, by the frequencies of the whole.
    pub(super) agree: f64,
    /// Bits to choose a place and a period.
    pub(super) choice: f64,
    pub(super) scratch: &'s mut Scratch,
}

impl<'s> Runs<'s> {
    /// Significant runs of one period, in order, without overlap. `explained` says of how many symbols before each place a clearly
    /// shorter period is known.
    pub(super) fn of_period(&mut self, period: usize, explained: &[u32]) -> Vec<Block> {
        let symbols = self.symbols;
        let window = period.max(SHORTEST_SEED);
        let mut runs: Vec<Block> = Vec::new();
        let first = period + window;
        if symbols.len() < first {
            return runs;
        }
        // Agreements before each place from `period` on.
        let mut before = Vec::with_capacity(symbols.len() - period + 1);
        before.push(0_u32);
        let mut sum = 0;
        before.extend(symbols.iter().zip(&symbols[period..]).map(|(earlier, here)| {
            sum += u32::from(earlier == here);
            sum
        }));
        let in_window = |end: usize| before[end - period] - before[end - period - window];
        let least = (window as f64 * SEED_SHARE).ceil() as u32;
        let is_explained = |end: usize| f64::from(explained[end] - explained[end - window]) > window as f64 * EXPLAINED;
        let mut tried: HashMap<&[u32], Vec<Tried>, FixedState> = HashMap::default();
        let mut ends = Ends::default();
        let mut end = first;
        let most = self.scratch.looked_at + LOOKS * symbols.len() as u64 + LOOKS_BESIDES;
        while end <= symbols.len() && self.scratch.looked_at < most {
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
            // What a run reached is not looked at again, whatever became of it: seeds inside it would only find the same run anew, each
            // at the cost of all of it.
            match self.attempt(best - period..best, ends, &mut tried) {
                Attempt::Block(block) => {
                    let is_free = ends.taken <= block.start();
                    end = (block.end() + window).max(if is_free { end } else { best } + period);
                    ends.taken = block.end().max(ends.taken);
                    ends.reached = block.end().max(ends.reached);
                    if is_free {
                        runs.push(block);
                    }
                }
                Attempt::NoLayers { end: reached } => {
                    end = (reached + window).max(best + period);
                    ends.reached = reached.max(ends.reached);
                }
                Attempt::Chance => end = best + period,
            }
        }
        runs
    }

    /// What becomes of a seed, or became of one that looks the same.
    fn attempt(&mut self, seed: Range<usize>, ends: Ends, tried: &mut HashMap<&'s [u32], Vec<Tried>, FixedState>) -> Attempt {
        let symbols = self.symbols;
        let floor = ends.reached.saturating_sub(seed.len());
        let known = tried.entry(&symbols[seed.clone()]).or_default();
        let same = known.iter().find(|tried| {
            seed.start.checked_sub(tried.at).is_some_and(|by| {
                tried.looked_at.start + LOOKS_BACK + by >= floor
                    && symbols.get(tried.looked_at.start + by..tried.looked_at.end + by) == Some(&symbols[tried.looked_at.clone()])
            })
        });
        if let Some(same) = same {
            return same.attempt.clone().moved(seed.start - same.at);
        }
        let (attempt, looked_at) = self.run(seed.start, symbols[seed.clone()].to_vec(), floor);
        if let Some(looked_at) = looked_at {
            if known.len() == KEPT {
                known.remove(0);
            }
            known.push(Tried { at: seed.start, looked_at, attempt: attempt.clone() });
        }
        attempt
    }

    /// The run of a pattern that stands at `at`, going back to `floor` at most, and all symbols that it depends on; none if it depends on
    /// the floor, or on where the sequence begins or ends.
    fn run(&mut self, at: usize, pattern: Vec<u32>, floor: usize) -> (Attempt, Option<Range<usize>>) {
        let (block, looked_at) = match self.extended(at, pattern, &Variants::default(), floor) {
            (Attempt::Block(block), looked_at) => (block, looked_at),
            other => return other,
        };
        // The seed may be an unusual layer: the usual one explains more.
        let symbols = self.symbols;
        let layers = || block.bounds.windows(2).map(|pair| &symbols[pair[0] as usize..pair[1] as usize]);
        let mut counts: HashMap<&[u32], (u32, u32), FixedState> = HashMap::default();
        for (number, layer) in layers().enumerate() {
            counts.entry(layer).or_insert((0, number as u32)).0 += 1;
        }
        let most = counts.iter().max_by_key(|(_, (count, number))| (*count, std::cmp::Reverse(*number)));
        let Some((&usual, &(count, number))) = most else { return (Attempt::Block(block), looked_at) };
        if count < 2 || usual.len() < SHORTEST_PERIOD || (usual == block.pattern && counts.len() == 1) {
            return (Attempt::Block(block), looked_at);
        }
        // A pattern that took in what stands between two steps repeats with a hole in it; its own period finds the layers better.
        let differs = usual.len().abs_diff(block.pattern.len()) * 5 > block.pattern.len();
        let pattern_count = counts.get(block.pattern.as_slice()).map_or(0, |(count, _)| *count);
        if differs {
            let attempt = if count <= 2 * pattern_count { Attempt::Block(block) } else { Attempt::NoLayers { end: block.end() } };
            return (attempt, looked_at);
        }
        let variants = Variants::of(usual, &counts);
        if usual == block.pattern && variants.is_empty() {
            return (Attempt::Block(block), looked_at);
        }
        let (again, looked_at_again) = self.extended(block.bounds[number as usize] as usize, usual.to_vec(), &variants, floor);
        let both = looked_at.zip(looked_at_again).map(|(a, b)| a.start.min(b.start)..a.end.max(b.end));
        match again {
            Attempt::Block(again) if again.bits > block.bits || count > 2 * pattern_count => (Attempt::Block(again), both),
            _ => (Attempt::Block(block), both),
        }
    }

    /// The run of just this pattern, with what it depends on.
    fn extended(&mut self, at: usize, pattern: Vec<u32>, variants: &Variants, floor: usize) -> (Attempt, Option<Range<usize>>) {
        let agree = self.agree.min(self.scratch.collision_bits(&pattern));
        let seed_end = at + pattern.len();
        if agree <= 0.0 {
            return (Attempt::Chance, Some(at..seed_end));
        }
        let repair = (pattern.len() as f64).log2() + REPAIR_BITS;
        let patience = SIGNIFICANT_BITS.max(agree * pattern.len() as f64 * 0.75);
        let prices = Prices { agree, repair, variant: variants.choice_bits(), patience };
        self.scratch.know(pattern.iter().copied().chain(variants.symbols()));
        let whole = Pattern { symbols: &pattern, variants, prices };
        let back = View::backwards(self.symbols, at, floor.min(at));
        let left = extend(&back, whole, true, self.scratch);
        let right = extend(&View::forwards(self.symbols, seed_end), whole, false, self.scratch);
        let from = at.checked_sub(left.reach + LOOKS_BACK).filter(|_| left.reach <= back.len());
        let looked_at = from.zip(Some(seed_end + right.reach).filter(|&to| to <= self.symbols.len()));
        let looked_at = looked_at.map(|(from, to)| from..to);
        let bits = left.bits + right.bits - self.choice - variants.bits(agree, repair);
        if bits < SIGNIFICANT_BITS {
            return (Attempt::Chance, looked_at);
        }
        let mut places: Vec<Option<u32>> = left.places;
        let start = at - places.len();
        places.reverse();
        places.extend((0..pattern.len()).map(|place| Some(place as u32)));
        places.extend(right.places);
        let end = start + places.len();
        let block = Run { start, places, pattern, bits }.layered(self.symbols);
        (block.map_or(Attempt::NoLayers { end }, Attempt::Block), looked_at)
    }
}
