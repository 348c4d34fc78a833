//! Which blocks of layers are of like steps.
//!
//! Those of the same usual layer are, and those that have nearly the same kernels: where kinds of layers alternate, or kernels are
//! hit by noise, the usual layer is now the one and now the other.

use std::collections::VecDeque;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::group::{COMPARED, DIFFERS};
use super::repeats::Block;

/// Numbers of the classes of blocks.
#[derive(Default)]
pub(super) struct Classes {
    by_layer: HashMap<Vec<u32>, u32, FixedState>,
    /// How often a block of a class has each symbol, those used last first: not all are compared.
    recent: VecDeque<(u32, Vec<u32>)>,
    count: u32,
}

impl Classes {
    /// How many classes there are.
    pub(super) fn len(&self) -> u32 {
        self.count
    }

    /// The class of a block of these symbols.
    pub(super) fn of(&mut self, symbols: &[u32], block: &Block) -> u32 {
        let layer = block.class();
        if let Some(&number) = self.by_layer.get(&layer) {
            return number;
        }
        let mut sorted = symbols[block.start()..block.end()].to_vec();
        sorted.sort_unstable();
        let like = self.recent.iter().position(|(_, other)| is_like(&sorted, other)).and_then(|at| self.recent.remove(at));
        let (number, of_class) = like.unwrap_or_else(|| {
            self.count += 1;
            (self.count - 1, sorted)
        });
        self.recent.push_front((number, of_class));
        self.recent.truncate(COMPARED);
        self.by_layer.insert(layer, number);
        number
    }
}

/// Whether at most a small share of the symbols of both, which are sorted, is in one alone.
fn is_like(a: &[u32], b: &[u32]) -> bool {
    let both = a.len() + b.len();
    let most = (both as f64 * DIFFERS) as usize;
    if a.len().abs_diff(b.len()) > most {
        return false;
    }
    let (mut at, mut other, mut common) = (0, 0, 0);
    while at < a.len() && other < b.len() {
        match a[at].cmp(&b[other]) {
            std::cmp::Ordering::Less => at += 1,
            std::cmp::Ordering::Greater => other += 1,
            std::cmp::Ordering::Equal => (at, other, common) = (at + 1, other + 1, common + 1),
        }
    }
    both - 2 * common <= most
}
