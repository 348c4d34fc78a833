//! Which classes of ranges have layers, judged by the range of the class with most work.

use super::Program;
use super::markers::{Forest, NONE};
use super::repeats::blocks;

/// How often all device work may be looked at for layers: each class of ranges once, so often only where ranges nest strangely.
const LOOKS: usize = 16;

/// What is known of the layers in ranges.
pub(super) struct Looks<'f> {
    forest: &'f Forest,
    programs: &'f [Program],
    /// For each class the instance with most work.
    largest: Vec<u32>,
    /// For each class, whether its largest instance has layers; none if it was not looked at.
    has_layers: Vec<Option<bool>>,
    /// Symbols that may still be looked at.
    left: usize,
    held: Option<Held>,
}

/// The work that each instance holds directly.
struct Held {
    /// For each instance the first one directly inside, and the next one inside the same.
    first_inside: Vec<u32>,
    next: Vec<u32>,
    /// For each program: indexes of what is kept, by innermost instance, and where each instance begins in them.
    kept: Vec<(Vec<u32>, Vec<u32>)>,
}

impl<'f> Looks<'f> {
    pub(super) fn new(forest: &'f Forest, programs: &'f [Program]) -> Self {
        let mut largest = vec![NONE; forest.classes];
        for (at, instance) in forest.instances.iter().enumerate() {
            let known = &mut largest[instance.class as usize];
            if *known == NONE || forest.instances[*known as usize].work < instance.work {
                *known = at as u32;
            }
        }
        let all: usize = programs.iter().map(|program| program.folded.kept.len()).sum();
        Self { forest, programs, largest, has_layers: vec![None; forest.classes], left: all.saturating_mul(LOOKS), held: None }
    }

    /// Whether ranges that repeat inside others are whole steps: they have layers of their own, or the ranges around have none either.
    pub(super) fn are_steps(&mut self, around: u32, repeated: &[u32]) -> bool {
        repeated.iter().any(|&class| self.has_layers(class)) || !self.has_layers(around)
    }

    fn has_layers(&mut self, class: u32) -> bool {
        if let Some(known) = self.has_layers[class as usize] {
            return known;
        }
        let symbols = self.symbols(self.largest[class as usize]);
        let found = if symbols.len() <= self.left { blocks(&symbols) } else { Vec::new() };
        self.left = self.left.saturating_sub(symbols.len());
        let has_layers = found.iter().any(|block| (block.end() - block.start()) * 2 >= symbols.len());
        self.has_layers[class as usize] = Some(has_layers);
        has_layers
    }

    /// The symbols of an instance, in the program with most of them.
    fn symbols(&mut self, instance: u32) -> Vec<u32> {
        if instance == NONE {
            return Vec::new();
        }
        let held = self.held.get_or_insert_with(|| Held::new(self.forest, self.programs));
        let mut inside = vec![instance];
        let mut at = 0;
        while at < inside.len() {
            let mut child = held.first_inside[inside[at] as usize];
            while child != NONE {
                inside.push(child);
                child = held.next[child as usize];
            }
            at += 1;
        }
        let mut best = Vec::new();
        for (program, (kept, begins)) in self.programs.iter().zip(&held.kept) {
            let of_instance = |&at: &u32| &kept[begins[at as usize] as usize..begins[at as usize + 1] as usize];
            let mut indexes: Vec<u32> = inside.iter().flat_map(of_instance).copied().collect();
            if indexes.len() > best.len() {
                indexes.sort_unstable();
                best = indexes.into_iter().map(|at| program.folded.symbols[at as usize]).collect();
            }
        }
        best
    }
}

impl Held {
    fn new(forest: &Forest, programs: &[Program]) -> Self {
        let count = forest.instances.len();
        let (mut first_inside, mut next) = (vec![NONE; count], vec![NONE; count]);
        for at in (0..count).rev() {
            let parent = forest.instances[at].parent;
            if parent != NONE {
                next[at] = std::mem::replace(&mut first_inside[parent as usize], at as u32);
            }
        }
        let kept = programs.iter().zip(&forest.inner).map(|(program, inner)| by_instance(&program.folded.kept, inner, count)).collect();
        Self { first_inside, next, kept }
    }
}

/// Indexes of what is kept, those of one instance together, and where each instance begins.
fn by_instance(kept: &[u32], inner: &[u32], count: usize) -> (Vec<u32>, Vec<u32>) {
    let mut begins = vec![0_u32; count + 1];
    let of = |position: u32| Some(inner[position as usize] as usize).filter(|&instance| instance < count);
    kept.iter().filter_map(|&position| of(position)).for_each(|instance| begins[instance + 1] += 1);
    for at in 0..count {
        begins[at + 1] += begins[at];
    }
    let mut free = begins.clone();
    let mut sorted = vec![0_u32; begins[count] as usize];
    for (at, &position) in kept.iter().enumerate() {
        if let Some(instance) = of(position) {
            sorted[free[instance] as usize] = at as u32;
            free[instance] += 1;
        }
    }
    (sorted, begins)
}
