//! Aligning one sequence with another that is nearly the same.
//!
//! Greedy, as in [`super::cyclic`]: both advance while they agree, and at a difference resume at the nearest place where some symbols
//! agree again. Where nothing near agrees, a table of the reference's longer runs of symbols finds the next common one.

use foldhash::fast::FixedState;
use hashbrown::HashMap;

/// Symbols that must agree to resume, by how many were left out.
const SYNC: usize = 3;
const SYNC_NEAR: usize = 2;
const NEAR: usize = 4;
/// Most symbols left out on either side before the table is asked.
const WIDEST: usize = 32;
/// Symbols of a common run that the table finds.
const GRAM: usize = 5;

/// A sequence that others are aligned with.
#[derive(Debug)]
pub(super) struct Reference<'r> {
    symbols: &'r [u32],
    /// Where each run of symbols stands, in order; built when first needed.
    grams: Option<HashMap<[u32; GRAM], Vec<u32>, FixedState>>,
}

impl<'r> Reference<'r> {
    pub(super) fn new(symbols: &'r [u32]) -> Self {
        Self { symbols, grams: None }
    }

    pub(super) fn len(&self) -> usize {
        self.symbols.len()
    }

    /// For each symbol of `text` its place in the reference, or none. Places ascend. Gives up and returns `None` as soon as more than
    /// `most` symbols are unmatched on both sides together.
    pub(super) fn align(&mut self, text: &[u32], most: usize) -> Option<Vec<Option<u32>>> {
        let mut places = Vec::with_capacity(text.len());
        let (mut at, mut place, mut unmatched) = (0, 0, 0);
        while at < text.len() {
            if place < self.symbols.len() && text[at] == self.symbols[place] {
                places.push(Some(place as u32));
                at += 1;
                place += 1;
                continue;
            }
            let (extra, missing) = self.resume(text, at, place, most - unmatched).unwrap_or((text.len() - at, self.symbols.len() - place));
            unmatched += extra + missing;
            if unmatched > most {
                return None;
            }
            places.extend(std::iter::repeat_n(None, extra));
            at += extra;
            place += missing;
        }
        (unmatched + self.symbols.len() - place <= most).then_some(places)
    }

    /// What to leave out of both to resume; nothing near costs more than `most`.
    fn resume(&mut self, text: &[u32], at: usize, place: usize, most: usize) -> Option<(usize, usize)> {
        let reference = self.symbols;
        let agrees = |at: usize, place: usize| at < text.len() && place < reference.len() && text[at] == reference[place];
        // The common end of both counts however short it is.
        let ends = |at: usize, place: usize| text.len() - at == reference.len() - place;
        let near = (1..=most.min(2 * WIDEST)).find_map(|total: usize| {
            let fewest = total.saturating_sub(WIDEST);
            (fewest..=total.min(WIDEST)).map(|extra| (extra, total - extra)).find(|&(extra, missing)| {
                let (at, place) = (at + extra, place + missing);
                let count = if total <= NEAR { SYNC_NEAR } else { SYNC };
                if at > text.len() || place > reference.len() {
                    return false;
                }
                let left = text.len() - at;
                if left < count && ends(at, place) {
                    return (0..left).all(|t| agrees(at + t, place + t));
                }
                (0..count).all(|t| agrees(at + t, place + t))
            })
        });
        if near.is_some() || most <= 2 * WIDEST {
            return near;
        }
        let grams = self.grams.get_or_insert_with(|| {
            let mut grams: HashMap<[u32; GRAM], Vec<u32>, FixedState> = HashMap::default();
            for (start, gram) in reference.windows(GRAM).enumerate() {
                let mut key = [0; GRAM];
                key.copy_from_slice(gram);
                grams.entry(key).or_default().push(start as u32);
            }
            grams
        });
        text[at..].windows(GRAM).enumerate().find_map(|(extra, gram)| {
            let mut key = [0; GRAM];
            key.copy_from_slice(gram);
            let starts = grams.get(&key)?;
            let next = *starts.get(starts.partition_point(|&start| (start as usize) < place))?;
            Some((extra, next as usize - place))
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn differences_are_bridged() {
        let reference = [1, 2, 3, 4, 5, 6, 7, 8, 9];
        let places = Reference::new(&reference).align(&[1, 2, 30, 3, 4, 6, 7, 8, 9], 5).unwrap();
        assert_eq!(places, [0, 1, 99, 2, 3, 5, 6, 7, 8].map(|place| Some(place).filter(|&place| place != 99)));
        assert_eq!(Reference::new(&reference).align(&[20, 21, 22], 5), None);
    }

    #[test]
    fn a_far_common_part_is_found() {
        let reference: Vec<u32> = (0..200).collect();
        let text: Vec<u32> = (0..10).chain(1_000..1_100).chain(150..200).collect();
        let places = Reference::new(&reference).align(&text, 1_000).unwrap();
        assert_eq!(places[110], Some(150));
        assert_eq!(places.iter().flatten().count(), 60);
    }

    proptest! {
        #[test]
        fn places_ascend_and_agree(
            reference in proptest::collection::vec(0_u32..6, 0..60), text in proptest::collection::vec(0_u32..6, 0..60)
        ) {
            let places = Reference::new(&reference).align(&text, 1_000).unwrap();
            prop_assert_eq!(places.len(), text.len());
            let matched: Vec<(usize, u32)> = places.iter().enumerate().filter_map(|(at, place)| Some((at, (*place)?))).collect();
            prop_assert!(matched.windows(2).all(|pair| pair[0].1 < pair[1].1));
            prop_assert!(matched.iter().all(|&(at, place)| text[at] == reference[place as usize]));
            prop_assert_eq!(Reference::new(&text).align(&text, 0), Some((0..text.len() as u32).map(Some).collect()));
        }
    }
}
