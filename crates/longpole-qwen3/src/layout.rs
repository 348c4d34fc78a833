//! Where everything lies in the one allocation that an engine makes: weights, cache, tables, and what a step works on.

use std::collections::HashMap;

use crate::config::{Config, HEAD};
use crate::error::Error;
use crate::rope::PAIRS;
use crate::weights::{Place, places};

/// Every part begins at a multiple of this, so that 16-byte loads are aligned and two parts share no 128-byte line.
const ALIGNMENT: usize = 256;

/// Splits of the context in decode at most: as many blocks as every device lets a cluster have.
pub const MAX_SPLITS: usize = 8;

/// Blocks that choose a token together.
pub const SAMPLE_BLOCKS: u32 = 64;

/// Something other than a weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Part {
    /// Keys of every layer: heads of a layer, positions of a head, 128 numbers.
    Keys,
    /// Values, likewise.
    Values,
    /// Cosines by position.
    Cosines,
    /// Sines by position.
    Sines,
    /// The hidden state of each token of a step, in 32 bits: every layer adds to it, and rounding it each time would be most of the error.
    Hidden,
    /// The same, normalised.
    Normed,
    /// Queries, keys and values as projected.
    Qkv,
    /// Queries as attention reads them.
    Queries,
    /// What attention gives.
    Attended,
    /// What is added to the hidden state, in 32 bits.
    Delta,
    /// Gates and ups.
    GateUp,
    /// Their product.
    Activated,
    /// Queries, keys and values of one token, in 32 bits, as what follows is.
    TokenQkv,
    /// What attention gives it.
    TokenAttended,
    /// Its product of gates and ups.
    TokenActivated,
    /// 32-bit logits of the last token.
    Logits,
    /// What splits of the context leave for the last of them.
    Splits,
    /// How many splits are done, by row of blocks. Zero between launches.
    SplitsDone,
    /// The best token of each block.
    Best,
    /// How many blocks are done. Zero between launches.
    BestDone,
    /// How to sample: inverse temperature and seed.
    Sampling,
    /// The position of the first token of a step.
    Position,
    /// Tokens of a step.
    Tokens,
    /// Tokens by position, as far as they were chosen here.
    History,
}

/// A place in the allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Bytes from its beginning.
    pub offset: usize,
    /// Its length in bytes.
    pub bytes: usize,
}

/// All places.
#[derive(Clone, Debug)]
pub struct Layout {
    weights: HashMap<Place, Span>,
    parts: HashMap<Part, Span>,
    /// Positions that the cache holds.
    pub capacity: usize,
    /// Tokens of a step at most.
    pub step_tokens: usize,
    /// Bytes of everything.
    pub bytes: usize,
    /// Bytes of the weights.
    pub weight_bytes: usize,
}

#[derive(Default)]
struct Arena {
    used: usize,
}

impl Arena {
    /// The next place; `None` if no machine has so much.
    fn take(&mut self, count: usize, bytes_each: usize) -> Option<Span> {
        let bytes = count.checked_mul(bytes_each)?.max(1);
        let span = Span { offset: self.used, bytes };
        self.used = self.used.checked_add(bytes)?.checked_next_multiple_of(ALIGNMENT)?;
        Some(span)
    }
}

impl Layout {
    /// Plans for a cache of `capacity` positions and steps of up to `step_tokens` tokens.
    pub fn new(config: &Config, capacity: usize, step_tokens: usize) -> Result<Self, Error> {
        let step_tokens = step_tokens.clamp(1, capacity.max(1));
        if capacity == 0 || capacity > config.max_positions {
            return Err(Error::Asked(format!("{capacity} positions, the model has up to {}", config.max_positions)));
        }
        Self::plan(config, capacity, step_tokens).ok_or_else(|| Error::Asked(format!("no device has the memory for {capacity} positions")))
    }

    fn plan(config: &Config, capacity: usize, tokens: usize) -> Option<Self> {
        let mut arena = Arena::default();
        let mut weights = HashMap::new();
        for (place, count) in places(config) {
            weights.insert(place, arena.take(count, 2)?);
        }
        let weight_bytes = arena.used;
        let cache = config.layers.checked_mul(config.kv_heads)?.checked_mul(HEAD)?.checked_mul(capacity)?;
        let mut parts = HashMap::new();
        let mut add = |part: Part, count: usize, bytes: usize| Some(parts.insert(part, arena.take(count, bytes)?));
        add(Part::Keys, cache, 2)?;
        add(Part::Values, cache, 2)?;
        add(Part::Cosines, capacity.checked_mul(PAIRS)?, 4)?;
        add(Part::Sines, capacity.checked_mul(PAIRS)?, 4)?;
        add(Part::Hidden, tokens.checked_mul(config.hidden)?, 4)?;
        for (part, width) in [
            (Part::Normed, config.hidden),
            (Part::Qkv, config.qkv_width()),
            (Part::Queries, config.q_width()),
            (Part::Attended, config.q_width()),
            (Part::GateUp, 2 * config.intermediate),
            (Part::Activated, config.intermediate),
        ] {
            add(part, tokens.checked_mul(width)?, 2)?;
        }
        add(Part::Delta, tokens.checked_mul(config.hidden)?, 4)?;
        add(Part::TokenQkv, config.qkv_width(), 4)?;
        add(Part::TokenAttended, config.q_width(), 4)?;
        add(Part::TokenActivated, config.intermediate, 4)?;
        add(Part::Logits, config.vocabulary, 4)?;
        add(Part::Splits, config.heads * MAX_SPLITS * (HEAD + 2), 4)?;
        add(Part::SplitsDone, config.heads, 4)?;
        add(Part::Best, SAMPLE_BLOCKS as usize, 8)?;
        add(Part::BestDone, 1, 4)?;
        add(Part::Sampling, 2, 4)?;
        add(Part::Position, 1, 4)?;
        add(Part::Tokens, tokens, 4)?;
        add(Part::History, capacity, 4)?;
        Some(Self { weights, parts, capacity, step_tokens: tokens, bytes: arena.used, weight_bytes })
    }

    /// Where a weight lies. A tied output is the embedding.
    pub fn weight(&self, place: Place) -> Span {
        let place = if place == Place::Head && !self.weights.contains_key(&place) { Place::Embedding } else { place };
        self.weights.get(&place).copied().unwrap_or(Span { offset: 0, bytes: 0 })
    }

    /// Where something else lies.
    pub fn part(&self, part: Part) -> Span {
        self.parts.get(&part).copied().unwrap_or(Span { offset: 0, bytes: 0 })
    }

    /// Every place.
    pub fn spans(&self) -> Vec<Span> {
        self.weights.values().chain(self.parts.values()).copied().collect()
    }
}

/// Contexts are rounded up to one of these before a step is captured: 256, 512, 1024 and so on up to the capacity. The graph of a bucket serves every
/// position in it, since positions are read on the device; what changes is into how many splits attention is cut.
pub fn bucket(positions: usize, capacity: usize) -> usize {
    positions.max(256).next_power_of_two().min(capacity.max(1))
}

/// Splits of the context for a bucket, a power of two: up to 160 positions each, which a block reads in one pass, as far as blocks can work together.
pub fn splits(bucket: usize) -> u32 {
    bucket.div_ceil(160).next_power_of_two().min(MAX_SPLITS) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::tiny;

    #[test]
    fn places_do_not_overlap() {
        for config in [tiny(), Config::qwen3_0_6b(), Config::qwen3_4b()] {
            let layout = Layout::new(&config, 64, 16).unwrap();
            let mut spans = layout.spans();
            spans.sort_by_key(|span| span.offset);
            for pair in spans.windows(2) {
                assert!(pair[0].offset + pair[0].bytes <= pair[1].offset);
            }
            assert!(spans.iter().all(|span| span.offset % ALIGNMENT == 0 && span.bytes > 0));
            assert!(spans.last().is_some_and(|last| last.offset + last.bytes <= layout.bytes));
        }
    }

    #[test]
    fn what_does_not_fit_is_said() {
        assert!(Layout::new(&tiny(), 65, 8).unwrap_err().to_string().contains("65 positions"));
        let endless = Config { max_positions: usize::MAX, ..tiny() };
        assert!(Layout::new(&endless, usize::MAX / 2, 8).unwrap_err().to_string().contains("memory"));
        assert!(Layout::new(&tiny(), 0, 8).is_err());
        assert_eq!(Layout::new(&tiny(), 8, 100).unwrap().step_tokens, 8);
    }

    #[test]
    fn weights_are_as_large_as_the_model() {
        let layout = Layout::new(&Config::qwen3_4b(), 2048, 1024).unwrap();
        assert!((8_044_000_000..8_046_000_000).contains(&layout.weight_bytes), "{}", layout.weight_bytes);
        assert_eq!(layout.weight(Place::Head), layout.weight(Place::Embedding));
    }

    #[test]
    fn buckets_double() {
        let found: Vec<usize> = [1, 256, 257, 1024, 1025, 5000].iter().map(|positions| bucket(*positions, 4000)).collect();
        assert_eq!(found, [256, 256, 512, 1024, 2048, 4000]);
        assert_eq!([64, 256, 512, 1024, 4096].map(splits), [1, 2, 4, 8, 8]);
    }
}
