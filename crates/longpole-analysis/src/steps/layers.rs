//! From a run of repeats to layers: where their boundaries are.
//!
//! Boundaries rotate freely; the leftmost place of the run is one. Where the last layer then lacks its end, and what stands before
//! the run is mostly that end in another form (a first norm without the addition that later ones have), the boundaries go back by it.

use super::repeats::Block;

/// A first or last layer with a smaller share of its places is none.
const WHOLE_LAYER: f64 = 0.5;
/// Share of a layer's places that are there when both ends of a run are put together, for boundaries to go back.
const WHOLE_TOGETHER: f64 = 0.75;
/// Longest end that is looked for before a run: the search takes the square.
const LONGEST_END: usize = 256;
/// Fewest layers of a block; what repeats twice can be a step as well.
const FEWEST_LAYERS: usize = 3;
/// Strangers that are looked at, fewest layers between two of them, and how far before a block the first one may stand.
const STRANGERS: usize = 8;
const FEWEST_BETWEEN: usize = 3;
const NEAR: usize = 3;

/// A run of a pattern's places: for each symbol from `start` on its place, or none for an inserted one.
pub(super) struct Run {
    pub(super) start: usize,
    pub(super) places: Vec<Option<u32>>,
    pub(super) pattern: Vec<u32>,
    pub(super) bits: f64,
}

impl Run {
    /// The layers, if there are enough.
    pub(super) fn layered(mut self, symbols: &[u32]) -> Option<Block> {
        let (mut bounds, mut matched, missing_end) = self.cut()?;
        if missing_end > 0
            && let Some(last) = matched.last()
            && self.go_back(symbols, missing_end, *last)
        {
            (bounds, matched, _) = self.cut()?;
        }
        let period = self.pattern.len();
        let whole = |count: usize| count as f64 >= period as f64 * WHOLE_LAYER;
        while matched.first().is_some_and(|&count| !whole(count)) {
            matched.remove(0);
            bounds.remove(0);
        }
        while matched.last().is_some_and(|&count| !whole(count)) {
            matched.pop();
            bounds.pop();
        }
        if matched.len() < FEWEST_LAYERS {
            return None;
        }
        let turned = self.first_place()?;
        self.pattern.rotate_left(turned);
        Some(Block { bounds, pattern: self.pattern, bits: self.bits })
    }

    fn first_place(&self) -> Option<usize> {
        self.places.iter().flatten().next().map(|&place| place as usize)
    }

    /// Bounds of layers that begin at the first place, how many places each has, and how many the last one lacks at its end.
    fn cut(&self) -> Option<(Vec<u32>, Vec<usize>, usize)> {
        let period = self.pattern.len();
        let turned = self.first_place()?;
        let mut bounds = vec![self.start as u32];
        let mut matched = vec![0_usize];
        let mut last = None;
        let mut end = self.start;
        for (at, place) in self.places.iter().enumerate() {
            let Some(place) = place else { continue };
            let place = (*place as usize + period - turned) % period;
            if last.is_some_and(|last| place <= last) {
                bounds.push((self.start + at) as u32);
                matched.push(0);
            }
            last = Some(place);
            end = self.start + at + 1;
            if let Some(count) = matched.last_mut() {
                *count += 1;
            }
        }
        bounds.push(end as u32);
        Some((bounds, matched, period - 1 - last?))
    }

    /// Adds what stands before the run, if most of the end of a layer is there; `last` is what the last layer has.
    fn go_back(&mut self, symbols: &[u32], missing_end: usize, last: usize) -> bool {
        let (period, Some(turned)) = (self.pattern.len(), self.first_place()) else { return false };
        if missing_end > LONGEST_END || last * 2 < period {
            return false;
        }
        let end: Vec<u32> = (period - missing_end..period).map(|place| ((place + turned) % period) as u32).collect();
        let before = &symbols[self.start.saturating_sub(2 * missing_end)..self.start];
        // Longest common subsequence of what follows each pair of places.
        let width = end.len() + 1;
        let mut common = vec![0_u32; (before.len() + 1) * width];
        for a in (0..before.len()).rev() {
            for b in (0..end.len()).rev() {
                let same = before[a] == self.pattern[end[b] as usize];
                common[a * width + b] =
                    if same { common[(a + 1) * width + b + 1] + 1 } else { common[(a + 1) * width + b].max(common[a * width + b + 1]) };
            }
        }
        let mut added = vec![None; before.len()];
        let (mut a, mut b) = (0, 0);
        while a < before.len() && b < end.len() && common[a * width + b] > 0 {
            // As late in what stands before as possible.
            if common[(a + 1) * width + b] == common[a * width + b] {
                a += 1;
            } else if before[a] == self.pattern[end[b] as usize] {
                added[a] = Some(end[b]);
                (a, b) = (a + 1, b + 1);
            } else {
                b += 1;
            }
        }
        // From the run backwards, as far as more is there than is not.
        let (mut first, mut best, mut sum) = (added.len(), 0_i64, 0_i64);
        for (at, place) in added.iter().enumerate().rev() {
            sum += if place.is_some() { 1 } else { -1 };
            if sum > best {
                (first, best) = (at, sum);
            }
        }
        let found = added[first..].iter().flatten().count();
        if found * 2 < missing_end || ((last + found) as f64) < period as f64 * WHOLE_TOGETHER {
            return false;
        }
        self.start -= before.len() - first;
        added.drain(..first);
        added.append(&mut self.places);
        self.places = added;
        true
    }
}

/// Where the same stranger stands just before a block and again and again in it, each time after as many layers: it begins a step. The
/// positions at which to cut, if there is such a stranger.
pub(super) fn regular_strangers(symbols: &[u32], block: &Block) -> Option<Vec<usize>> {
    let mut known = block.pattern.clone();
    known.sort_unstable();
    let (start, end, layers) = (block.start(), block.end(), block.layers());
    let near = start.saturating_sub(NEAR)..start;
    let strangers = symbols[near.clone()].iter().rev().filter(|&symbol| known.binary_search(symbol).is_err());
    strangers.take(STRANGERS).find_map(|&stranger| {
        let inside: Vec<usize> = (start..end).filter(|&at| symbols[at] == stranger).collect();
        // Layers that begin at or before each, so that only whole ones count in between.
        let begun = |at: usize| block.bounds[..layers].partition_point(|&bound| bound as usize <= at);
        let counts: Vec<usize> = inside.iter().map(|&at| begun(at)).collect();
        let first = *counts.first()?;
        let regular = first >= FEWEST_BETWEEN
            && counts.windows(2).all(|pair| pair[1] - pair[0] == first)
            && layers - counts[counts.len() - 1] == first;
        regular.then_some(inside)
    })
}
