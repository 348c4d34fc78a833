//! Aligning a sequence with endless repeats of a pattern, from a seed to either side.
//!
//! Greedy: while symbols agree both advance; where they do not, the nearest place is taken at which [`SYNC`] symbols agree again, by
//! leaving out symbols of the sequence (inserted), of the pattern (missing), or both (swapped). Each agreement is worth its surprise
//! in bits, each repair costs the bits it takes to describe; the extension ends where the sum stays far below its best, and is cut
//! back to that best.
//!
//! What stands between two steps ends the repeats, but seen from behind it can look like another form of a layer: the first norm of a
//! layer comes once more after the last one. So where an extension backwards leaves out much that the pattern does not have, it is read
//! forwards again from two periods before, and ends there if that does.
//!
//! Differences that layers of another kind have (see [`super::variants`]) are known, and no repairs.
//!
//! The nearest place is found with one bit for each place of the pattern ahead (Shift-And: Baeza-Yates and Gonnet, 1992), so a repair
//! takes about a hundred steps however far it reaches.

use super::alphabet::Scratch;
use super::variants::{Variant, Variants};

/// Symbols that must agree to resume after a difference, and fewer where the difference is small.
const SYNC: usize = 3;
const SYNC_NEAR: usize = 2;
/// What counts as small.
const NEAR: usize = 4;
/// Most symbols left out on either side in one repair.
const WIDEST: usize = 48;
/// Insertions of at least this many symbols that the pattern does not have, with little missing in exchange, end the repeats: what
/// stands between two steps is longer than noise, and no layer has it.
pub(super) const BREAK: usize = 3;
/// As many of them are one also where other symbols are out of order beside them.
const LONG_BREAK: usize = 6;
/// Periods before an insertion from which it is read forwards again.
const AGAIN: usize = 2;

/// The prices, in bits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prices {
    /// Of one agreement: minus the logarithm of the chance that two symbols agree.
    pub(super) agree: f64,
    /// Of a repair, before the symbols it inserts.
    pub(super) repair: f64,
    /// Of a known variant.
    pub(super) variant: f64,
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
    /// How many symbols from the seed on it depends on, at most; more than there are if it depends on where the sequence ends.
    pub(super) reach: usize,
    /// Where it met what ends repeats.
    broken: Option<usize>,
}

/// An insertion that is to be read from the other side.
struct Doubt {
    /// Symbols before it, and with it.
    begin: usize,
    end: usize,
    /// The best extension without it.
    best: (f64, usize),
}

/// A sequence read forwards or backwards from a place.
pub(super) struct View<'s> {
    symbols: &'s [u32],
    from: usize,
    /// Where it ends.
    to: usize,
    backwards: bool,
}

impl<'s> View<'s> {
    /// Symbols from `from` on.
    pub(super) fn forwards(symbols: &'s [u32], from: usize) -> Self {
        Self { symbols, from, to: symbols.len(), backwards: false }
    }

    /// Symbols before `from` down to `to`, the nearest first.
    pub(super) fn backwards(symbols: &'s [u32], from: usize, to: usize) -> Self {
        Self { symbols, from, to, backwards: true }
    }

    pub(super) fn len(&self) -> usize {
        self.from.abs_diff(self.to)
    }

    fn get(&self, at: usize) -> u32 {
        if self.backwards { self.symbols[self.from - 1 - at] } else { self.symbols[self.from + at] }
    }
}

/// A pattern that repeats.
#[derive(Clone, Copy)]
pub(super) struct Pattern<'p> {
    pub(super) symbols: &'p [u32],
    /// What layers of other kinds have instead; of these symbols turned as they are here.
    pub(super) variants: &'p Variants,
    pub(super) prices: Prices,
}

/// Aligns what is seen with repeats of a pattern from its place 0 (backwards: from its last place down).
///
/// `eager` extends over ties, so that of equally good ends the farthest is taken. The symbols of the pattern must be known to `scratch`.
pub(super) fn extend(view: &View<'_>, whole: Pattern<'_>, eager: bool, scratch: &mut Scratch) -> Extension {
    let Pattern { symbols: pattern, variants, prices } = whole;
    let period = pattern.len();
    let length = view.len();
    let mut found = Extension::default();
    let (mut best_bits, mut best_len) = (0.0, 0);
    let (mut at, mut slot) = (0, 0);
    let mut doubt: Option<Doubt> = None;
    while at < length {
        if doubt.as_ref().is_some_and(|doubt| at >= doubt.end + AGAIN * period)
            && let Some(doubt) = doubt.take()
            && doubt.is_confirmed(view, &found.places, whole, scratch)
        {
            (best_bits, best_len) = doubt.best;
            break;
        }
        let place = if view.backwards { period - 1 - slot } else { slot };
        if view.get(at) == pattern[place] {
            found.places.push(Some(place as u32));
            found.bits += prices.agree;
            at += 1;
            slot = if slot + 1 == period { 0 } else { slot + 1 };
            if found.bits > best_bits || (eager && found.bits >= best_bits) {
                (best_bits, best_len) = (found.bits, found.places.len());
            }
            continue;
        }
        let mismatch = Mismatch { view, pattern, variants: variants.read(view.backwards), at, slot };
        if let Some(variant) = mismatch.variant(0, 0) {
            // It counts if more follows: at an end it may be what stands before or behind the layers.
            let (instead, missing) = (variant.instead.len(), variant.missing);
            // Where it stands for the begin of a layer, the layer begins with it.
            let begins = if view.backwards { slot + missing == period } else { slot == 0 };
            let nth = |offset: usize| if view.backwards { instead - 1 - offset } else { offset };
            found.places.extend((0..instead).map(|offset| (begins && nth(offset) < missing).then(|| nth(offset) as u32)));
            found.bits += prices.agree * instead as f64 - prices.variant;
            at += instead;
            slot = (slot + missing) % period;
            continue;
        }
        let Some((inserted, missing)) = mismatch.repair(scratch) else { break };
        let strangers = if inserted < BREAK { 0 } else { (at..at + inserted).filter(|&at| !scratch.knows(view.get(at))).count() };
        let is_break = strangers >= BREAK;
        // What is of a layer but out of order makes up for what is missing.
        let lacking = missing.saturating_sub(inserted - strangers);
        if is_break && (missing * 2 <= inserted || (strangers >= LONG_BREAK && lacking * 2 <= strangers) || missing * 5 >= period * 3) {
            found.broken = Some(at);
            break;
        }
        if is_break {
            if let Some(doubt) = doubt.take()
                && doubt.is_confirmed(view, &found.places, whole, scratch)
            {
                (best_bits, best_len) = doubt.best;
                break;
            }
            doubt = Some(Doubt { begin: at, end: at + inserted, best: (best_bits, best_len) });
        }
        found.bits -= prices.repair + prices.agree * inserted as f64;
        if found.bits < best_bits - prices.patience {
            break;
        }
        found.places.extend(std::iter::repeat_n(None, inserted));
        at += inserted;
        slot = (slot + missing) % period;
    }
    found.reach = at + WIDEST + SYNC;
    scratch.looked_at += at as u64 + 1;
    // What was left out at the end is in doubt only if what is behind it counts; that must be most of a layer.
    if let Some(doubt) = doubt.filter(|doubt| best_len > doubt.end)
        && (found.places[doubt.end..best_len].iter().flatten().count() * 2 < period
            || doubt.is_confirmed(view, &found.places, whole, scratch))
    {
        (best_bits, best_len) = doubt.best;
    }
    found.places.truncate(best_len);
    found.bits = best_bits;
    found
}

impl Doubt {
    /// Whether what follows an insertion backwards, read forwards, ends at it.
    fn is_confirmed(&self, view: &View<'_>, places: &[Option<u32>], pattern: Pattern<'_>, scratch: &mut Scratch) -> bool {
        if !view.backwards {
            return false;
        }
        let Some((last, place)) = places.iter().enumerate().rev().find_map(|(at, place)| Some((at, (*place)?))) else { return false };
        if last < self.end {
            return false;
        }
        let (from, until) = (view.from - 1 - last, view.from - self.begin);
        let mut turned = pattern.symbols.to_vec();
        turned.rotate_left(place as usize);
        let variants = pattern.variants.turned(place as usize, turned.len());
        let pattern = Pattern { symbols: &turned, variants: &variants, prices: pattern.prices };
        let to = (until + WIDEST + SYNC).min(view.symbols.len());
        let again = extend(&View { symbols: view.symbols, from, to, backwards: false }, pattern, true, scratch);
        again.broken.is_some_and(|broken| from + broken < until)
    }
}

/// Where a sequence and a pattern differ.
struct Mismatch<'m> {
    view: &'m View<'m>,
    pattern: &'m [u32],
    variants: &'m [Variant],
    at: usize,
    /// Places of the pattern from its begin as the view reads it, not beyond its period.
    slot: usize,
}

impl<'m> Mismatch<'m> {
    fn symbol(&self, ahead: usize) -> Option<u32> {
        let at = self.at + ahead;
        (at < self.view.len()).then(|| self.view.get(at))
    }

    fn of_pattern(&self, ahead: usize) -> u32 {
        let period = self.pattern.len();
        let slot = (self.slot + ahead) % period;
        self.pattern[if self.view.backwards { period - 1 - slot } else { slot }]
    }

    /// The longest known variant that comes so far ahead. One that only leaves out has to show what follows it.
    fn variant(&self, inserted: usize, missing: usize) -> Option<&'m Variant> {
        let here = self.known(inserted, missing);
        let rated = here.map(|(variant, follows)| (follows, variant.instead.len(), variant));
        let rated = rated.filter(|&(follows, length, _)| follows || length > 0);
        rated.max_by_key(|&(follows, length, _)| (follows, length)).map(|(_, _, variant)| variant)
    }

    /// Whether what comes so far ahead is a known variant and what follows it.
    fn is_variant(&self, inserted: usize, missing: usize) -> bool {
        self.known(inserted, missing).any(|(_, follows)| follows)
    }

    /// Variants that come so far ahead, and whether what follows them is the pattern's.
    fn known(&self, inserted: usize, missing: usize) -> impl Iterator<Item = (&'m Variant, bool)> {
        let slot = (self.slot + missing) % self.pattern.len();
        let is_next = move |variant: &&Variant| {
            variant.slot == slot && variant.instead.iter().zip(inserted..).all(|(&symbol, ahead)| self.symbol(ahead) == Some(symbol))
        };
        self.variants.iter().filter(is_next).map(move |variant| {
            let next = self.symbol(inserted + variant.instead.len());
            (variant, next == Some(self.of_pattern(missing + variant.missing)))
        })
    }

    /// Whether both agree so far ahead, if but by a known variant.
    fn agrees_near(&self, inserted: usize, missing: usize) -> bool {
        let both = |t: usize| self.symbol(inserted + t) == Some(self.of_pattern(missing + t));
        let agreeing = (0..SYNC_NEAR).take_while(|&t| both(t)).count();
        agreeing == SYNC_NEAR || self.is_variant(inserted + agreeing, missing + agreeing)
    }

    /// How many symbols to leave out of the sequence and of the pattern for both to agree again: fewest together, and of those fewest
    /// of the sequence.
    fn repair(&self, scratch: &mut Scratch) -> Option<(usize, usize)> {
        let widest = WIDEST.min(self.pattern.len());
        let near = (1..=NEAR.min(2 * widest)).find_map(|total| {
            (total.saturating_sub(widest)..=total.min(widest))
                .map(|inserted| (inserted, total - inserted))
                .find(|&(inserted, missing)| self.agrees_near(inserted, missing))
        });
        if near.is_some() {
            return near;
        }
        // Bit `m` of a symbol's mask: it stands `m` places ahead in the pattern.
        let ahead = widest + SYNC;
        for missing in 0..ahead {
            scratch.masks[self.of_pattern(missing) as usize] |= 1 << missing;
        }
        let mask = |inserted: usize| self.symbol(inserted).map_or(0, |symbol| scratch.masks[symbol as usize]);
        let allowed = (1_u64 << (widest + 1)) - 1;
        let (mut first, mut second) = (mask(0), mask(1));
        let mut best: Option<(usize, usize)> = None;
        for inserted in 0..=widest {
            if best.is_some_and(|(inserted_best, missing)| inserted >= inserted_best + missing) {
                break;
            }
            let third = mask(inserted + 2);
            let synced = first & (second >> 1) & (third >> 2) & allowed;
            let missing = synced.trailing_zeros() as usize;
            if synced != 0 && best.is_none_or(|(inserted_best, missing_best)| inserted + missing < inserted_best + missing_best) {
                best = Some((inserted, missing));
            }
            // Two symbols and a known variant do as well.
            let mut pairs = if self.variants.is_empty() { 0 } else { first & (second >> 1) & !synced & allowed };
            while pairs != 0 {
                let missing = pairs.trailing_zeros() as usize;
                if best.is_some_and(|(inserted_best, missing_best)| inserted + missing >= inserted_best + missing_best) {
                    break;
                }
                if self.is_variant(inserted + 2, missing + 2) {
                    best = Some((inserted, missing));
                }
                pairs &= pairs - 1;
            }
            (first, second) = (second, third);
        }
        for missing in 0..ahead {
            scratch.masks[self.of_pattern(missing) as usize] = 0;
        }
        best
    }
}
