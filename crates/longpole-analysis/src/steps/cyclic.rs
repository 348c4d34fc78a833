//! Aligning a sequence with endless repeats of a pattern, from a seed to either side.
//!
//! Greedy: while symbols agree both advance; where they do not, the nearest place is taken at which [`SYNC`] symbols agree again, by
//! leaving out symbols of the sequence (inserted), of the pattern (missing), or both (swapped). Each agreement is worth its surprise
//! in bits, each repair costs the bits it takes to describe; the extension ends where the sum stays far below its best, and is cut
//! back to that best.

/// Symbols that must agree to resume after a difference, and fewer where the difference is small.
const SYNC: usize = 3;
const SYNC_NEAR: usize = 2;
/// What counts as small.
const NEAR: usize = 4;
/// Most symbols left out on either side in one repair.
const WIDEST: usize = 48;
/// Insertions of at least this many symbols that the pattern does not have, with little missing in exchange, end the repeats: what
/// stands between two steps is longer than noise, and no layer has it.
const BREAK: usize = 3;

/// The prices, in bits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prices {
    /// Of one agreement: minus the logarithm of the chance that two symbols agree.
    pub(super) agree: f64,
    /// Of a repair, before the symbols it inserts.
    pub(super) repair: f64,
    /// How far below the best the sum may fall.
    pub(super) patience: f64,
}

/// Symbols of the sequence with their places in the pattern.
#[derive(Clone, Debug, Default)]
pub(super) struct Extension {
    /// For each symbol from the seed on, its place in the pattern, or none for an inserted one.
    pub(super) places: Vec<Option<u32>>,
    /// Its worth in bits.
    pub(super) bits: f64,
}

/// A sequence read forwards or backwards from a place.
pub(super) struct View<'s> {
    symbols: &'s [u32],
    from: usize,
    backwards: bool,
}

impl<'s> View<'s> {
    /// Symbols from `from` on.
    pub(super) fn forwards(symbols: &'s [u32], from: usize) -> Self {
        Self { symbols, from, backwards: false }
    }

    /// Symbols before `from`, the nearest first.
    pub(super) fn backwards(symbols: &'s [u32], from: usize) -> Self {
        Self { symbols, from, backwards: true }
    }

    fn len(&self) -> usize {
        if self.backwards { self.from } else { self.symbols.len() - self.from }
    }

    fn get(&self, at: usize) -> u32 {
        if self.backwards { self.symbols[self.from - 1 - at] } else { self.symbols[self.from + at] }
    }
}

/// Aligns what is seen with repeats of `pattern` from its place 0 (backwards: from its last place down).
///
/// `eager` extends over ties, so that of equally good ends the farthest is taken. `foreign` tells symbols that the pattern does not have.
pub(super) fn extend(view: &View<'_>, pattern: &[u32], prices: Prices, eager: bool, foreign: impl Fn(u32) -> bool) -> Extension {
    let period = pattern.len();
    let place = |at: usize| if view.backwards { period - 1 - at % period } else { at % period };
    let length = view.len();
    let mut found = Extension::default();
    let (mut best_bits, mut best_len) = (0.0, 0);
    let (mut at, mut slot) = (0, 0);
    let agrees = |at: usize, slot: usize| at < length && view.get(at) == pattern[place(slot)];
    while at < length {
        if agrees(at, slot) {
            found.places.push(Some(place(slot) as u32));
            found.bits += prices.agree;
            at += 1;
            slot += 1;
            if found.bits > best_bits || (eager && found.bits >= best_bits) {
                (best_bits, best_len) = (found.bits, found.places.len());
            }
            continue;
        }
        let widest = WIDEST.min(period);
        let synced = |inserted: usize, missing: usize, count: usize| (0..count).all(|t| agrees(at + inserted + t, slot + missing + t));
        let repair = (1..=2 * widest).find_map(|total| {
            let fewest = total.saturating_sub(widest);
            (fewest..=total.min(widest)).map(|inserted| (inserted, total - inserted)).find(|&(inserted, missing)| {
                // What is left of the sequence may be shorter than what must agree.
                let count = if total <= NEAR { SYNC_NEAR } else { SYNC };
                synced(inserted, missing, count)
            })
        });
        let Some((inserted, missing)) = repair else { break };
        if inserted >= BREAK && (missing * 2 <= inserted || missing * 5 >= period * 3) {
            let strangers = (at..at + inserted).filter(|&at| foreign(view.get(at))).count();
            if strangers >= BREAK {
                break;
            }
        }
        found.bits -= prices.repair + prices.agree * inserted as f64;
        if found.bits < best_bits - prices.patience {
            break;
        }
        found.places.extend(std::iter::repeat_n(None, inserted));
        at += inserted;
        slot += missing;
    }
    found.places.truncate(best_len);
    found.bits = best_bits;
    found
}
