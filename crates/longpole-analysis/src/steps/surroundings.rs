//! Ranges around several steps, which tell steps of one marker apart: a program that runs two models under the same markers.
//!
//! A step's surroundings are the ranges around it that hold at least two steps of its marker each, by name. Where steps of one marker differ in
//! them, they are steps of different groups, named `MODEL > MARKER`, whether or not their kernels differ; what all of them have around is not said.
//! Names that differ only in whole numbers (`epoch 3`) are one name, as they are for markers; numbers that are part of a word (`Qwen3-4B`) are not.

use foldhash::fast::FixedState;
use hashbrown::{HashMap, HashSet};
use longpole_trace::{RangeId, StrId};

use super::names::without_whole_numbers;
use crate::index::{HostRow, TraceIndex};

/// Different surroundings of one marker that are told apart. More of them are rounds of something, not parts of a program.
const MOST: usize = 16;
/// Ranges around a step that are looked at, from the inside out.
const DEPTH: usize = 16;

/// What stands before the marker's name, for each of these steps: the range and the number of its marker. Empty where there is nothing to tell.
pub(super) fn prefixes(index: &TraceIndex<'_>, steps: &[(RangeId, u32)]) -> Vec<String> {
    let (trace, tree) = (index.trace(), index.tree());
    let around = |range: RangeId| {
        let above = tree.range_node(range).into_iter().flat_map(|node| tree.ancestors(node)).take(DEPTH);
        above.filter_map(|above| if let HostRow::Range(range) = tree.row(above) { Some(range) } else { None })
    };
    let mut held: HashMap<(RangeId, u32), u32, FixedState> = HashMap::default();
    for &(range, marker) in steps {
        around(range).for_each(|above| *held.entry((above, marker)).or_default() += 1);
    }
    let mut names = Names::default();
    let mut paths: Vec<Vec<u32>> = Vec::with_capacity(steps.len());
    let mut of_marker: HashMap<u32, HashSet<Vec<u32>, FixedState>, FixedState> = HashMap::default();
    for &(range, marker) in steps {
        let several = around(range).filter(|&above| held.get(&(above, marker)).is_some_and(|&count| count > 1));
        let mut path: Vec<u32> = several.map(|above| names.number(trace.ranges.name[above.index()], &trace.strings)).collect();
        path.reverse();
        let known = of_marker.entry(marker).or_default();
        // One more than the most says that there are too many.
        if known.len() <= MOST && !known.contains(&path) {
            known.insert(path.clone());
        }
        paths.push(path);
    }
    let mut shared: HashMap<u32, Option<HashSet<u32, FixedState>>, FixedState> = HashMap::default();
    for (&marker, known) in &of_marker {
        let is_told = (2..=MOST).contains(&known.len());
        let in_all = known.iter().map(|path| path.iter().copied().collect()).reduce(|all: HashSet<u32, FixedState>, path| &all & &path);
        shared.insert(marker, in_all.filter(|_| is_told));
    }
    let prefix = |(path, (_, marker)): (&Vec<u32>, &(RangeId, u32))| {
        let Some(Some(in_all)) = shared.get(marker) else { return String::new() };
        let mut told: Vec<&str> =
            path.iter().filter(|name| !in_all.contains(*name)).map(|&name| names.shown[name as usize].as_str()).collect();
        told.dedup();
        told.join(" > ")
    };
    paths.iter().zip(steps).map(prefix).collect()
}

/// Names of surroundings, and how they are shown: as they are, or with `*` for whole numbers where these differ.
#[derive(Default)]
struct Names {
    numbers: HashMap<StrId, u32, FixedState>,
    of_template: HashMap<String, u32, FixedState>,
    shown: Vec<String>,
}

impl Names {
    fn number(&mut self, name: StrId, strings: &longpole_trace::Strings) -> u32 {
        if let Some(&known) = self.numbers.get(&name) {
            return known;
        }
        let text = strings.get(name);
        let template = without_whole_numbers(text);
        let next = self.shown.len() as u32;
        let number = *self.of_template.entry(template.clone()).or_insert(next);
        if number == next {
            self.shown.push(text.to_owned());
        } else {
            self.shown[number as usize] = template;
        }
        self.numbers.insert(name, number);
        number
    }
}
