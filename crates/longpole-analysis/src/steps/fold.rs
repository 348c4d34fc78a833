//! Folding loops inside layers, so that a layer that runs its experts one by one is as long as one that runs one.
//!
//! A block of repeats is a loop inside something larger, and not the layers of a model, when attention runs between such blocks but not
//! in them. Where no attention is known, it is one when blocks of the same pattern have ever different counts: a model has the same
//! number of layers in every step. Of a loop the first round is kept; the others are *folded* onto it.

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::align::Reference;
use super::alphabet::collision_bits;
use super::repeats::{Block, SIGNIFICANT_BITS, blocks};

/// Loops within loops that are followed.
const DEPTH: usize = 3;
/// Kernels of a round of a loop that is looked for by itself, and its fewest rounds: what runs twice may be queries and keys.
const SHORTEST_LOOP: usize = 3;
const LONGEST_LOOP: usize = 32;
const FEWEST_ROUNDS: usize = 3;
/// Patterns of loops that are looked for everywhere.
const MOST_PATTERNS: usize = 16;
/// Fewest blocks of one pattern to judge their counts.
const BLOCKS_TO_JUDGE: usize = 4;

/// A sequence without the later rounds of its inner loops.
#[derive(Debug)]
pub(super) struct Folded {
    /// Positions that are kept, ascending.
    pub(super) kept: Vec<u32>,
    /// For each position of the whole, the index in `kept` that stands for it.
    pub(super) onto: Vec<u32>,
    /// Symbols of those kept.
    pub(super) symbols: Vec<u32>,
}

/// Folds a sequence; the blocks are those of what is kept, by index in it.
pub(super) fn fold(symbols: &[u32], is_attention: &dyn Fn(u32) -> bool) -> (Folded, Vec<Block>) {
    let all = 0..symbols.len() as u32;
    let mut folded = Folded { kept: all.clone().collect(), onto: all.collect(), symbols: symbols.to_vec() };
    let exact = exact_runs(symbols);
    folded.fold(&loops(symbols, &exact, is_attention));
    let mut found = blocks(&folded.symbols);
    for _ in 0..DEPTH {
        let inner = loops(&folded.symbols, &found, is_attention);
        if inner.is_empty() {
            break;
        }
        folded.fold(&inner);
        found = blocks(&folded.symbols);
    }
    (folded, found)
}

/// Exact repeats of short patterns, of which no single one needs to be significant: a pattern is looked at if all its runs together are.
fn exact_runs(symbols: &[u32]) -> Vec<Block> {
    let mut runs: Vec<Block> = Vec::new();
    let mut covered = vec![false; symbols.len()];
    for period in SHORTEST_LOOP..=LONGEST_LOOP.min(symbols.len() / 2) {
        let mut same = 0;
        for at in period..=symbols.len() {
            if at < symbols.len() && symbols[at] == symbols[at - period] {
                same += 1;
                continue;
            }
            let rounds = same / period + 1;
            let start = at - same - period;
            // Multiples of a period repeat at the same places: the shortest one counts.
            if rounds >= FEWEST_ROUNDS && !covered[start] && !covered[at - 1] {
                covered[start..at].fill(true);
                let bounds: Vec<u32> = (0..=rounds).map(|round| (start + round * period) as u32).collect();
                let pattern = symbols[start..start + period].to_vec();
                // Each has to pay for its place, so that chance repeats do not add up.
                let bits = collision_bits(&pattern) * same as f64 - (symbols.len() as f64).log2();
                runs.push(Block { bounds, pattern, bits });
            }
            same = 0;
        }
    }
    let mut together: HashMap<&[u32], (usize, f64), FixedState> = HashMap::default();
    for run in &runs {
        let (count, bits) = together.entry(&run.pattern).or_default();
        *count += 1;
        *bits += run.bits;
    }
    let least = SIGNIFICANT_BITS + 2.0 * (symbols.len() as f64).log2();
    let significant =
        |run: &Block| together.get(run.pattern.as_slice()).is_some_and(|&(count, bits)| count >= BLOCKS_TO_JUDGE && bits >= least);
    let keep: Vec<bool> = runs.iter().map(significant).collect();
    drop(together);
    let mut significant: Vec<Block> = runs.into_iter().zip(keep).filter(|(_, keep)| *keep).map(|(run, _)| run).collect();
    significant.sort_by_key(Block::start);
    significant
}

/// The blocks that are loops inside something larger.
fn loops<'b>(symbols: &[u32], blocks: &'b [Block], is_attention: &dyn Fn(u32) -> bool) -> Vec<&'b Block> {
    let mut attention_before = Vec::with_capacity(symbols.len() + 1);
    attention_before.push(0_u32);
    let mut count = 0;
    for &symbol in symbols {
        count += u32::from(is_attention(symbol));
        attention_before.push(count);
    }
    let attention = |from: usize, to: usize| (attention_before[to] - attention_before[from]) as usize;
    let mut classes: HashMap<Vec<u32>, Vec<usize>, FixedState> = HashMap::default();
    for (number, block) in blocks.iter().enumerate() {
        classes.entry(block.class()).or_default().push(number);
    }
    let mut is_loop = vec![false; blocks.len()];
    for members in classes.values() {
        let inside: usize = members.iter().map(|&at| attention(blocks[at].start(), blocks[at].end())).sum();
        let (Some(&first), Some(&last)) = (members.first(), members.last()) else { continue };
        if inside > 0 {
            continue;
        }
        let between = attention(blocks[first].start(), blocks[last].end());
        let inner = if count > 0 {
            between > 0 && between * 2 >= members.len() - 1
        } else {
            members.len() >= BLOCKS_TO_JUDGE && differ(members.iter().map(|&at| blocks[at].layers()))
        };
        for &at in members {
            is_loop[at] = inner;
        }
    }
    blocks.iter().zip(is_loop).filter(|(_, is_loop)| *is_loop).map(|(block, _)| block).collect()
}

/// Whether no count is that of at least six in ten.
fn differ(counts: impl Iterator<Item = usize>) -> bool {
    let mut sorted: Vec<usize> = counts.collect();
    sorted.sort_unstable();
    let most = sorted.chunk_by(|a, b| a == b).map(<[usize]>::len).max().unwrap_or(0);
    most * 10 < sorted.len() * 6
}

impl Folded {
    fn fold(&mut self, loops: &[&Block]) {
        // For each index kept so far, the one that is to stand for it.
        let mut stands: Vec<u32> = (0..self.kept.len() as u32).collect();
        for block in loops {
            let (from, to) = (block.bounds[0] as usize, block.bounds[1] as usize);
            let mut first = Reference::new(&self.symbols[from..to]);
            for round in block.bounds[1..].windows(2) {
                let range = round[0] as usize..round[1] as usize;
                let places = first.align(&self.symbols[range.clone()], usize::MAX).unwrap_or_default();
                let mut last = 0;
                for (at, place) in range.zip(places) {
                    last = place.unwrap_or(last);
                    stands[at] = from as u32 + last;
                }
            }
        }
        self.fold_alike(loops, &mut stands);
        let mut moved = vec![0_u32; stands.len()];
        let (mut kept, mut symbols) = (Vec::new(), Vec::new());
        for (at, &stand) in stands.iter().enumerate() {
            moved[at] = kept.len() as u32;
            if stand as usize == at {
                kept.push(self.kept[at]);
                symbols.push(self.symbols[at]);
            }
        }
        for onto in &mut self.onto {
            *onto = moved[stands[*onto as usize] as usize];
        }
        (self.kept, self.symbols) = (kept, symbols);
    }
}

impl Folded {
    /// What is a loop in one place is one wherever its rounds follow each other exactly, however few.
    fn fold_alike(&self, loops: &[&Block], stands: &mut [u32]) {
        let mut patterns: Vec<&[u32]> = Vec::new();
        for block in loops {
            if patterns.len() < MOST_PATTERNS && !patterns.contains(&block.pattern.as_slice()) {
                patterns.push(&block.pattern);
            }
        }
        for pattern in patterns {
            let round = |at: usize| self.symbols[at..].starts_with(pattern) && (at..at + pattern.len()).all(|at| stands[at] as usize == at);
            let mut folded = Vec::new();
            let mut at = 0;
            while at + pattern.len() <= self.symbols.len() {
                if !round(at) {
                    at += 1;
                    continue;
                }
                let first = at;
                at += pattern.len();
                while at + pattern.len() <= self.symbols.len() && round(at) {
                    folded.push((at, first));
                    at += pattern.len();
                }
            }
            for (at, first) in folded {
                for offset in 0..pattern.len() {
                    stands[at + offset] = (first + offset) as u32;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn experts_launched_one_by_one_are_one_round() {
        // Layers of attention (symbol 1) and a number of experts that differs.
        let mut symbols = Vec::new();
        for layer in 0..12_u32 {
            symbols.extend([10, 11, 12, 1, 13, 14]);
            for _ in 0..20 + layer * 7 % 9 {
                symbols.extend([20, 21, 22, 23]);
            }
            symbols.extend([30, 31]);
        }
        let (folded, blocks) = fold(&symbols, &|symbol| symbol == 1);
        assert_eq!(folded.symbols.len(), 12 * 12);
        assert_eq!((blocks.len(), blocks[0].layers(), blocks[0].pattern.len()), (1, 12, 12));
        assert!((0..symbols.len()).all(|at| symbols[at] == folded.symbols[folded.onto[at] as usize]));
        // Without attention to tell, the different counts do.
        assert_eq!(fold(&symbols, &|_| false).1[0].layers(), 12);
    }
}
