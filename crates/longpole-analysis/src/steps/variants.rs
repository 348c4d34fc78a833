//! What other kinds of layers have in place of the usual layer's kernels: known differences, which are not noise.
//!
//! Where kinds alternate, each layer of another kind differs from the pattern, always in the same way. Taken for noise, these
//! differences would hide noise beside them. So forms of a layer that come more than once are compared with the usual one, and what they
//! have instead is matched like the pattern itself.

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::align::Reference;
use super::cyclic::BREAK;

/// Other forms of a layer that are compared with the usual one, most frequent first.
const MOST_FORMS: usize = 8;
/// Variants known, at most: each is looked at where something differs.
const MOST_VARIANTS: usize = 64;
/// Layers of one form for it to be more than noise.
const FEWEST_OF_A_FORM: u32 = 2;
/// One layer in so many of those with a repeated form, for its form to be a kind of layer.
const OFTEN: u32 = 6;
/// More than one in so many, for it to have what else would stand between two steps.
const VERY_OFTEN: u32 = 4;

/// What stands in place of a part of the pattern, all as it is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Variant {
    /// Place of the pattern from which it differs.
    pub(super) slot: usize,
    /// How many symbols of the pattern are not there.
    pub(super) missing: usize,
    /// What is there instead.
    pub(super) instead: Vec<u32>,
}

/// The variants of a pattern, read forwards and backwards.
#[derive(Clone, Debug, Default)]
pub(super) struct Variants {
    forwards: Vec<Variant>,
    backwards: Vec<Variant>,
}

impl Variants {
    /// What the layers of a block that come more than once have that the usual one has not.
    pub(super) fn of(usual: &[u32], counts: &HashMap<&[u32], (u32, u32), FixedState>) -> Self {
        let repeated: u32 = counts.values().map(|&(count, _)| count).filter(|&count| count >= FEWEST_OF_A_FORM).sum();
        let is_form = |form: &[u32], count: u32| count >= FEWEST_OF_A_FORM && count * OFTEN >= repeated && form != usual;
        let mut forms: Vec<(u32, u32, &[u32])> = counts
            .iter()
            .filter(|(form, (count, _))| is_form(form, *count))
            .map(|(form, (count, first))| (*count, *first, *form))
            .collect();
        forms.sort_by_key(|&(count, first, _)| (std::cmp::Reverse(count), first));
        forms.truncate(MOST_FORMS);
        let mut variants = Self::default();
        if forms.is_empty() {
            return variants;
        }
        let turned = |symbols: &[u32]| symbols.iter().rev().copied().collect::<Vec<u32>>();
        let backwards = turned(usual);
        let (mut reference, mut turned_reference) = (Reference::new(usual), Reference::new(&backwards));
        let is_break = |variant: &Variant| {
            variant.missing * 2 <= variant.instead.len() && variant.instead.iter().filter(|symbol| !usual.contains(symbol)).count() >= BREAK
        };
        for (count, _, form) in forms {
            let keep = |variant: &Variant| count * VERY_OFTEN > repeated || !is_break(variant);
            differences(&mut reference, form, &keep, &mut variants.forwards);
            differences(&mut turned_reference, &turned(form), &keep, &mut variants.backwards);
        }
        variants
    }

    pub(super) fn is_empty(&self) -> bool {
        self.forwards.is_empty()
    }

    /// The same for a pattern that begins at a later place, of a period.
    pub(super) fn turned(&self, by: usize, period: usize) -> Self {
        let turn = |variants: &[Variant], by: usize| {
            variants.iter().map(|variant| Variant { slot: (variant.slot + period - by) % period, ..variant.clone() }).collect()
        };
        Self { forwards: turn(&self.forwards, by), backwards: turn(&self.backwards, (period - by) % period) }
    }

    /// Those that a view in this direction meets.
    pub(super) fn read(&self, backwards: bool) -> &[Variant] {
        if backwards { &self.backwards } else { &self.forwards }
    }

    /// All symbols that some variant has.
    pub(super) fn symbols(&self) -> impl Iterator<Item = u32> {
        self.forwards.iter().flat_map(|variant| variant.instead.iter().copied())
    }

    /// What it costs to say which of them, or none, comes at a place.
    pub(super) fn choice_bits(&self) -> f64 {
        ((self.forwards.len() + 1) as f64).log2()
    }

    /// What it costs to describe them once, each with a repair of this price and its symbols.
    pub(super) fn bits(&self, agree: f64, repair: f64) -> f64 {
        self.forwards.iter().map(|variant| repair + agree * variant.instead.len() as f64).sum()
    }
}

/// Adds where a form differs from the usual one and how.
fn differences(usual: &mut Reference<'_>, form: &[u32], keep: &dyn Fn(&Variant) -> bool, variants: &mut Vec<Variant>) {
    let period = usual.len();
    let Some(places) = usual.align(form, usize::MAX) else { return };
    let (mut from, mut slot) = (0, 0);
    while from < form.len() || slot < period {
        let to = (from..form.len()).find(|&at| places[at].is_some()).unwrap_or(form.len());
        let next = places.get(to).copied().flatten().map_or(period, |place| place as usize);
        if to > from || next > slot {
            let variant = Variant { slot: slot % period, missing: next - slot, instead: form[from..to].to_vec() };
            if variants.len() < MOST_VARIANTS && keep(&variant) && !variants.contains(&variant) {
                variants.push(variant);
            }
        }
        (from, slot) = (to + 1, next + 1);
    }
}
