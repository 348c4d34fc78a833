//! The symbols of a sequence as numbers from 0 up, and tables by symbol that are used again and again.

use foldhash::fast::FixedState;
use hashbrown::HashMap;

/// A sequence in dense symbols.
#[derive(Debug)]
pub(super) struct Dense {
    pub(super) symbols: Vec<u32>,
    /// What each dense symbol was.
    pub(super) names: Vec<u32>,
}

impl Dense {
    pub(super) fn new(symbols: &[u32]) -> Self {
        let mut numbers: HashMap<u32, u32, FixedState> = HashMap::default();
        let mut names = Vec::new();
        let dense = symbols.iter().map(|&symbol| {
            *numbers.entry(symbol).or_insert_with(|| {
                names.push(symbol);
                names.len() as u32 - 1
            })
        });
        Self { symbols: dense.collect(), names }
    }
}

/// Tables by dense symbol.
#[derive(Debug)]
pub(super) struct Scratch {
    /// All zero between uses.
    pub(super) masks: Vec<u64>,
    /// All zero between uses.
    counts: Vec<u32>,
    /// The last pattern that has the symbol.
    known: Vec<u32>,
    patterns: u32,
    /// Symbols that extensions looked at, so that their work can be bounded.
    pub(super) looked_at: u64,
}

impl Scratch {
    pub(super) fn new(alphabet: usize) -> Self {
        Self { masks: vec![0; alphabet], counts: vec![0; alphabet], known: vec![0; alphabet], patterns: 0, looked_at: 0 }
    }

    /// Minus the logarithm of the chance that two symbols drawn from these are the same.
    pub(super) fn collision_bits(&mut self, symbols: &[u32]) -> f64 {
        for &symbol in symbols {
            self.counts[symbol as usize] += 1;
        }
        // The sum of the squares of all counts: each is taken where its symbol is first seen.
        let pairs = symbols.iter().map(|&symbol| u64::from(std::mem::take(&mut self.counts[symbol as usize])).pow(2)).sum();
        bits_of_pairs(pairs, symbols.len())
    }

    /// Makes the symbols of a pattern the known ones.
    pub(super) fn know(&mut self, pattern: impl Iterator<Item = u32>) {
        self.patterns += 1;
        for symbol in pattern {
            self.known[symbol as usize] = self.patterns;
        }
    }

    pub(super) fn knows(&self, symbol: u32) -> bool {
        self.known[symbol as usize] == self.patterns
    }
}

/// [`Scratch::collision_bits`] of any symbols, for short sequences.
pub(super) fn collision_bits(symbols: &[u32]) -> f64 {
    let mut sorted = symbols.to_vec();
    sorted.sort_unstable();
    bits_of_pairs(sorted.chunk_by(|a, b| a == b).map(|same| (same.len() as u64).pow(2)).sum(), symbols.len())
}

fn bits_of_pairs(pairs: u64, length: usize) -> f64 {
    if pairs == 0 { 0.0 } else { -(pairs as f64 / (length as f64).powi(2)).log2() }
}
