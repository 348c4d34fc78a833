//! From a run of repeats to layers: where their boundaries are.
//!
//! Boundaries rotate freely; the leftmost place of the run is one. Where the last layer then lacks its end, and what stands before
//! the run is mostly that end in another form (a first norm without the addition that later ones have), the boundaries go back by it.

use std::ops::Range;

use super::repeats::Block;

/// A first or last layer with a smaller share of its places is none.
const WHOLE_LAYER: f64 = 0.5;
/// Share of a layer's places that are there when both ends of a run are put together, for boundaries to go back.
const WHOLE_TOGETHER: f64 = 0.75;
/// Longest end that is looked for before a run: the search takes the square.
const LONGEST_END: usize = 64;
/// How far before a run is looked.
pub(super) const LOOKS_BACK: usize = 4 * LONGEST_END;
/// Forms of that end that are tried.
const MOST_FORMS: usize = 4;
/// Fewest layers of a block; what repeats twice can be a step as well.
const FEWEST_LAYERS: usize = 3;
/// Strangers that are looked at, and fewest layers between two of them.
const STRANGERS: usize = 8;
const FEWEST_BETWEEN: usize = 3;

/// A run of a pattern's places: for each symbol from `start` on its place, or none for an inserted one.
pub(super) struct Run {
    pub(super) start: usize,
    pub(super) places: Vec<Option<u32>>,
    pub(super) pattern: Vec<u32>,
    pub(super) bits: f64,
}

/// A run cut into layers.
struct Cut {
    bounds: Vec<u32>,
    /// How many places each layer has.
    matched: Vec<usize>,
    /// Place of the pattern at which layers begin.
    turned: usize,
}

impl Run {
    /// The layers, if there are enough.
    pub(super) fn layered(mut self, symbols: &[u32]) -> Option<Block> {
        let cut = self.cut()?;
        let Cut { mut bounds, mut matched, turned } = self.gone_back(symbols, &cut).unwrap_or(cut);
        let period = self.pattern.len();
        let whole = |count: usize| count as f64 >= period as f64 * WHOLE_LAYER;
        let partial = matched.iter().take_while(|&&count| !whole(count)).count();
        matched.drain(..partial);
        bounds.drain(..partial);
        while matched.last().is_some_and(|&count| !whole(count)) {
            matched.pop();
            bounds.pop();
        }
        if matched.len() < FEWEST_LAYERS {
            return None;
        }
        self.pattern.rotate_left(turned);
        Some(Block { bounds, pattern: self.pattern, bits: self.bits })
    }

    /// Layers that begin at the first place.
    fn cut(&self) -> Option<Cut> {
        let period = self.pattern.len();
        let turned = *self.places.iter().flatten().next()? as usize;
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
        Some(Cut { bounds, matched, turned })
    }

    /// Layers that begin where the last one ends early, if what stands before the run is mostly what the last one lacks.
    fn gone_back(&self, symbols: &[u32], cut: &Cut) -> Option<Cut> {
        let period = self.pattern.len();
        let turn = |place: u32| (place as usize + period - cut.turned) % period;
        let last_place = turn(self.places.iter().flatten().next_back().copied()?);
        let last = *cut.matched.last()?;
        let missing = period - 1 - last_place;
        if missing == 0 || missing > LONGEST_END || last * 2 < period {
            return None;
        }
        // Where the other layers have what the last one lacks; those of other kinds have it in other forms.
        let layers = cut.matched.len();
        let mut ends: Vec<Range<usize>> = Vec::with_capacity(layers);
        let mut kept = Vec::with_capacity(layers);
        for layer in 0..layers - 1 {
            let range = cut.bounds[layer] as usize..cut.bounds[layer + 1] as usize;
            let places = &self.places[range.start - self.start..range.end - self.start];
            let has = |place: &Option<u32>| place.is_some_and(|place| turn(place) <= last_place);
            let end = range.start + places.iter().rposition(has).map_or(0, |at| at + 1);
            kept.push(places.iter().filter(|place| has(place)).count());
            ends.push(end..range.end);
        }
        let mut forms: Vec<&[u32]> = Vec::new();
        for end in &ends {
            let form = &symbols[end.clone()];
            if forms.len() < MOST_FORMS && !form.is_empty() && form.len() <= 2 * LONGEST_END && !forms.contains(&form) {
                forms.push(form);
            }
        }
        let found = forms.iter().filter_map(|form| {
            let (length, common) = before_run(&symbols[self.start.saturating_sub(2 * form.len())..self.start], form);
            let enough = common * 2 >= form.len() && (last + common) as f64 >= period as f64 * WHOLE_TOGETHER;
            enough.then_some((common as f64 / form.len() as f64, length, common))
        });
        let (_, length, common) = found.max_by(|a, b| a.0.total_cmp(&b.0))?;
        let mut bounds = vec![(self.start - length) as u32];
        bounds.extend(ends.iter().map(|end| end.start as u32));
        bounds.push(*cut.bounds.last()?);
        let mut matched = vec![kept.first()? + common];
        matched.extend((1..layers - 1).map(|layer| kept[layer] + ends[layer - 1].len().min(missing)));
        matched.push(last + ends.last()?.len().min(missing));
        Some(Cut { bounds, matched, turned: (cut.turned + last_place + 1) % period })
    }
}

/// How much of the end of `before` is `form` with differences: its length, and the symbols in common (a longest common subsequence,
/// taken from the end backwards as far as more is common than is not).
fn before_run(before: &[u32], form: &[u32]) -> (usize, usize) {
    let width = form.len() + 1;
    let mut common = vec![0_u32; (before.len() + 1) * width];
    for a in (0..before.len()).rev() {
        for b in (0..form.len()).rev() {
            common[a * width + b] = if before[a] == form[b] {
                common[(a + 1) * width + b + 1] + 1
            } else {
                common[(a + 1) * width + b].max(common[a * width + b + 1])
            };
        }
    }
    let mut is_common = vec![false; before.len()];
    let (mut a, mut b) = (0, 0);
    while a < before.len() && b < form.len() && common[a * width + b] > 0 {
        // As late in what stands before as possible.
        if common[(a + 1) * width + b] == common[a * width + b] {
            a += 1;
        } else if before[a] == form[b] {
            is_common[a] = true;
            (a, b) = (a + 1, b + 1);
        } else {
            b += 1;
        }
    }
    let (mut first, mut best, mut sum) = (before.len(), 0_i64, 0_i64);
    for (at, is_common) in is_common.iter().enumerate().rev() {
        sum += if *is_common { 1 } else { -1 };
        if sum > best {
            (first, best) = (at, sum);
        }
    }
    (before.len() - first, is_common[first..].iter().filter(|is_common| **is_common).count())
}

/// Where the same stranger stands less than half a layer before a block and again and again in it, each time after as many layers: it begins a step. The
/// positions at which to cut, if there is such a stranger.
pub(super) fn regular_strangers(symbols: &[u32], block: &Block) -> Option<Vec<usize>> {
    let mut known = block.pattern.clone();
    known.sort_unstable();
    let (start, end, layers) = (block.start(), block.end(), block.layers());
    let strangers =
        symbols[start.saturating_sub(block.pattern.len() / 2)..start].iter().rev().filter(|&symbol| known.binary_search(symbol).is_err());
    strangers.take(STRANGERS).find_map(|&stranger| {
        let inside: Vec<usize> = (start..end).filter(|&at| symbols[at] == stranger).collect();
        // Layers that begin before each: a stranger may be the end of a layer or the first of the next.
        let begun = |at: usize| block.bounds[..layers].partition_point(|&bound| (bound as usize) < at);
        let counts: Vec<usize> = inside.iter().map(|&at| begun(at)).collect();
        let first = *counts.first()?;
        // Where it stands but once inside, it has to stand at the same place of a layer as the one before the block.
        let is_same_place = |at: usize| {
            let before = symbols[..start].iter().rposition(|&symbol| symbol == stranger);
            let next = block.bounds[block.bounds.partition_point(|&bound| bound as usize <= at).min(layers)] as usize;
            before.is_some_and(|before| start - before == next - at)
        };
        let regular = first >= FEWEST_BETWEEN
            && (inside.len() > 1 || is_same_place(inside[0]))
            && counts.windows(2).all(|pair| pair[1] - pair[0] == first)
            && layers - counts[counts.len() - 1] == first;
        regular.then_some(inside)
    })
}
