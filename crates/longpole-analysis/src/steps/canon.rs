//! The canonical sequence of like steps: prologue, layers by kind, epilogue.

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::align::Reference;
use super::repeats::blocks;
use super::types::Part;

/// Layers of one exact form that make a kind even if they are nearly like another one.
const LAYERS_OF_A_KIND: u32 = 3;
/// A layer is of a kind if at most this share of its symbols differs.
const LIKE: f64 = 0.25;
/// Kinds told apart at most.
const MOST_KINDS: usize = 16;
/// A block of layers with a smaller share of the step is no structure of the step.
const LEAST_COVER: f64 = 0.25;
/// Differences in a row that are paired up as the same place with another kernel.
const MOST_PAIRED: usize = 8;

/// Where a symbol of the canonical sequence is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spot {
    pub(super) part: Part,
    /// Position in its part.
    pub(super) place: u32,
    /// Its layer, counted over all kinds.
    pub(super) layer: Option<u32>,
}

/// A canonical sequence.
#[derive(Debug)]
pub(super) struct Canon {
    pub(super) symbols: Vec<u32>,
    pub(super) spots: Vec<Spot>,
    /// The symbols of each kind of layer.
    pub(super) kinds: Vec<Vec<u32>>,
    /// The kind of each layer.
    pub(super) order: Vec<u32>,
}

impl Canon {
    /// The canonical sequence of a typical step.
    pub(super) fn of(step: &[u32]) -> Self {
        let found = blocks(step);
        let block = found.iter().max_by_key(|block| block.end() - block.start());
        let block = block.filter(|block| (block.end() - block.start()) as f64 >= step.len() as f64 * LEAST_COVER);
        let mut canon = Self { symbols: Vec::new(), spots: Vec::new(), kinds: Vec::new(), order: Vec::new() };
        let Some(block) = block else {
            canon.push(step, Part::Prologue, None);
            return canon;
        };
        let layers: Vec<&[u32]> = block.bounds.windows(2).map(|pair| &step[pair[0] as usize..pair[1] as usize]).collect();
        let (kinds, order) = kinds(&layers);
        canon.push(&step[..block.start()], Part::Prologue, None);
        for (layer, &kind) in order.iter().enumerate() {
            canon.push(&kinds[kind as usize], Part::Layer(kind), Some(layer as u32));
        }
        canon.push(&step[block.end()..], Part::Epilogue, None);
        (canon.kinds, canon.order) = (kinds, order);
        canon
    }

    fn push(&mut self, symbols: &[u32], part: Part, layer: Option<u32>) {
        self.symbols.extend_from_slice(symbols);
        self.spots.extend((0..symbols.len() as u32).map(|place| Spot { part, place, layer }));
    }

    /// The place of each symbol of a step in the canonical sequence. As many differences on both sides of one gap, if few, are taken
    /// as other kernels at the same places, where `alike` says of two symbols that they can be.
    pub(super) fn places(&self, step: &[u32], alike: impl Fn(u32, u32) -> bool) -> Vec<Option<u32>> {
        if step == self.symbols {
            return (0..step.len() as u32).map(Some).collect();
        }
        let mut places = Reference::new(&self.symbols).align(step, usize::MAX).unwrap_or_else(|| vec![None; step.len()]);
        let mut from = 0;
        let mut next_place = 0;
        while from < places.len() {
            if let Some(place) = places[from] {
                next_place = place as usize + 1;
                from += 1;
                continue;
            }
            let to = (from..places.len()).find(|&at| places[at].is_some()).unwrap_or(places.len());
            let until = places.get(to).copied().flatten().map_or(self.symbols.len(), |place| place as usize);
            let count = to - from;
            if count <= MOST_PAIRED && until - next_place == count {
                for offset in 0..count {
                    if alike(step[from + offset], self.symbols[next_place + offset]) {
                        places[from + offset] = Some((next_place + offset) as u32);
                    }
                }
            }
            from = to;
        }
        places
    }
}

/// The kinds of layers, in order of first occurrence, and the kind of each layer.
///
/// A form that is there often enough is a kind; so is one that is like no kind. Any other layer is of the kind it is like.
fn kinds(layers: &[&[u32]]) -> (Vec<Vec<u32>>, Vec<u32>) {
    let mut forms: HashMap<&[u32], (u32, usize), FixedState> = HashMap::default();
    for (number, layer) in layers.iter().enumerate() {
        forms.entry(layer).or_insert((0, number)).0 += 1;
    }
    let mut forms: Vec<(&[u32], u32, usize)> = forms.into_iter().map(|(form, (count, first))| (form, count, first)).collect();
    forms.sort_by_key(|&(_, count, first)| (std::cmp::Reverse(count), first));
    let mut kinds: Vec<(&[u32], usize)> = Vec::new();
    let mut kind_of: HashMap<&[u32], usize, FixedState> = HashMap::default();
    for (form, count, first) in forms {
        let most = (form.len() as f64 * LIKE) as usize;
        let distance = |kind: &[u32]| {
            let places = Reference::new(kind).align(form, most)?;
            Some(kind.len() + form.len() - 2 * places.iter().flatten().count())
        };
        let like = kinds.iter().enumerate().filter_map(|(at, (kind, _))| Some((distance(kind)?, at))).min().map(|(_, at)| at);
        let kind = match like {
            Some(kind) if count < LAYERS_OF_A_KIND => kind,
            _ if kinds.len() >= MOST_KINDS => like.unwrap_or(0),
            _ => {
                kinds.push((form, first));
                kinds.len() - 1
            }
        };
        kinds[kind].1 = kinds[kind].1.min(first);
        kind_of.insert(form, kind);
    }
    let mut by_first: Vec<usize> = (0..kinds.len()).collect();
    by_first.sort_by_key(|&kind| kinds[kind].1);
    let mut number = vec![0_u32; kinds.len()];
    for (at, &kind) in by_first.iter().enumerate() {
        number[kind] = at as u32;
    }
    let order = layers.iter().map(|layer| kind_of.get(layer).map_or(0, |&kind| number[kind])).collect();
    (by_first.into_iter().map(|kind| kinds[kind].0.to_vec()).collect(), order)
}
