//! Steps without markers: from graph launches and blocks of layers.

use std::ops::Range;

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use longpole_trace::{Ns, Trace};

use super::Program;
use super::classes::Classes;
use super::cut::{Anchor, steps};
use super::group::{Local, Raw};
use super::repeats::{Block, blocks};
use super::types::{FoundBy, StepNote};
use crate::index::TraceIndex;

/// A graph launch with fewer activities is a helper.
const SMALLEST_GRAPH: usize = 4;
/// A block with a smaller share of the longest one's length is no step of its own.
const SMALLEST_BLOCK: f64 = 0.1;
/// Share of the work that graph launches must hold for them alone to make steps.
const HOLDS_MOST: f64 = 0.5;
/// A block with more than this part of the whole around it is no row of steps.
const NEXT_TO_NOTHING: usize = 50;
/// Idle time before a repeat over the longest inside one, and in how many of ten repeats, for each to be a step.
const STANDS_APART: i64 = 3;
const MOST_OF_TEN: usize = 8;
/// Graph launches of one step without layers, at most.
const LONGEST_ROW: usize = 64;

/// A step as it was found: indexes into what is kept of the folded sequence.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) range: Range<usize>,
    pub(super) by: FoundBy,
    /// Steps with different anchors are never of one group.
    pub(super) key: u32,
    /// Layers of its block; absent where its anchor is a graph launch.
    pub(super) layers: Option<usize>,
}

/// A graph launch: indexes of its activities, and a number for its sequence of kernels.
struct Launch {
    range: Range<usize>,
    class: usize,
}

/// Finds the steps of a program without markers.
pub(super) fn find(index: &TraceIndex<'_>, program: &Program) -> (Vec<Found>, Vec<StepNote>) {
    let symbols = &program.folded.symbols;
    let is_graph = graph_calls(index);
    let (launches, classes) = launches(index, program, &is_graph);
    let idle = |at: usize| program.idle_before(index, at);
    let held: usize = launches.iter().map(|launch| launch.range.len()).sum();
    let has_layers: Vec<bool> =
        classes.iter().map(|class| blocks(&symbols[class.clone()]).iter().any(|b| covers(b, class.len()))).collect();
    let mut keys = Classes::default();
    let mut anchors: Vec<(Anchor, Option<usize>)> = Vec::new();
    if has_layers.contains(&true) {
        let whole = || launches.iter().filter(|launch| has_layers[launch.class]);
        let mut from = 0;
        // Eager steps before, between and after the replays.
        for until in whole().map(|launch| &launch.range).chain(std::iter::once(&(symbols.len()..symbols.len()))) {
            for block in blocks(&symbols[from..until.start.max(from)]) {
                anchors.push(block_anchor(symbols, &block.moved(from as u32), &mut keys));
            }
            from = until.end;
        }
        let next = keys.len();
        anchors.extend(whole().map(|launch| (Anchor { range: launch.range.clone(), key: next + launch.class as u32 }, None)));
        anchors.sort_by_key(|(anchor, _)| anchor.range.start);
    } else if program.blocks.is_empty() && held as f64 >= symbols.len() as f64 * HOLDS_MOST {
        let row = shortest_row(&launches);
        let rows = launches.chunks_exact(row.max(1));
        anchors.extend(rows.map(|row| {
            let range = row[0].range.start..row[row.len() - 1].range.end;
            (Anchor { range, key: row[0].class as u32 }, None)
        }));
    } else {
        anchors.extend(program.blocks.iter().map(|block| block_anchor(symbols, block, &mut keys)));
    }
    let longest = anchors.iter().map(|(anchor, _)| anchor.range.len()).max().unwrap_or(0);
    anchors.retain(|(anchor, _)| anchor.range.len() as f64 >= longest as f64 * SMALLEST_BLOCK);
    let mut notes = Vec::new();
    if let [(anchor, Some(_))] = anchors.as_slice()
        && let [block] = program.blocks.as_slice()
        && symbols.len() - anchor.range.len() <= symbols.len() / NEXT_TO_NOTHING
        && (!is_framed(symbols, block) || stand_apart(block, &idle))
    {
        notes.push(StepNote::RepeatsAreSteps);
        anchors = block.bounds.windows(2).map(|pair| (Anchor { range: pair[0] as usize..pair[1] as usize, key: 0 }, None)).collect();
    }
    let (anchors, layers): (Vec<Anchor>, Vec<Option<usize>>) = anchors.into_iter().unzip();
    let mut graph_before = vec![0_u32; symbols.len() + 1];
    for at in 0..symbols.len() {
        graph_before[at + 1] = graph_before[at] + u32::from(program.call(index, at).is_some_and(|call| is_graph[call]));
    }
    let ranges = steps(symbols, &anchors, &idle);
    let found = ranges.into_iter().zip(anchors).zip(layers).map(|((range, anchor), layers)| {
        let replayed = graph_before[range.end] - graph_before[range.start];
        let by_graph = replayed as usize * 2 >= range.len();
        let by = if by_graph { FoundBy::GraphReplay } else { FoundBy::KernelSequence };
        Found { range, by, key: anchor.key, layers }
    });
    (found.filter(|found| !found.range.is_empty()).collect(), notes)
}

fn covers(block: &Block, length: usize) -> bool {
    (block.end() - block.start()) * 2 >= length
}

fn block_anchor(symbols: &[u32], block: &Block, keys: &mut Classes) -> (Anchor, Option<usize>) {
    (Anchor { range: block.start()..block.end(), key: keys.of(symbols, block) }, Some(block.layers()))
}

/// Whether kernels that the layers do not have stand both before and after a block. A model has such: an embedding, a last projection. What is
/// left of repeats that the trace cuts off is none.
fn is_framed(symbols: &[u32], block: &Block) -> bool {
    let mut known = symbols[block.start()..block.end()].to_vec();
    known.sort_unstable();
    let has_stranger = |part: &[u32]| part.iter().any(|symbol| known.binary_search(symbol).is_err());
    has_stranger(&symbols[..block.start()]) && has_stranger(&symbols[block.end()..])
}

/// Whether the device idles between the repeats of a block as it never does inside one.
fn stand_apart(block: &Block, idle: &dyn Fn(usize) -> Ns) -> bool {
    let inner = block.bounds.windows(2).skip(1);
    let apart = inner.clone().filter(|pair| {
        let (from, to) = (pair[0] as usize, pair[1] as usize);
        let inside = (from + 1..to).map(idle).max().unwrap_or(Ns::ZERO);
        idle(from).get() > inside.get().saturating_mul(STANDS_APART)
    });
    apart.count() * 10 >= inner.count() * MOST_OF_TEN
}

/// Markers that hold several blocks of the same layers hold several steps: a prefill and its decode steps, or a whole loop. A pass that
/// goes back through its layers is no step of its own, so where a kernel's name tells of one the marker stays whole.
///
/// A class of markers is judged by its instance with most work, and split in all or none.
pub(super) fn split_markers(trace: &Trace, program: &Program, raws: Vec<Raw>, names: &mut Vec<String>) -> (Vec<Raw>, Vec<StepNote>) {
    let mut largest: Vec<Option<usize>> = vec![None; names.len()];
    for (number, raw) in raws.iter().enumerate() {
        let known = &mut largest[raw.class as usize];
        if known.is_none_or(|known| raws[known].positions.len() < raw.positions.len()) {
            *known = Some(number);
        }
    }
    let mut goes_back: HashMap<u32, bool, FixedState> = HashMap::default();
    let mut notes = Vec::new();
    let is_loop: Vec<bool> = largest
        .iter()
        .enumerate()
        .map(|(class, number)| {
            let Some(number) = *number else { return false };
            let local = Local::of(program, &raws[number].positions);
            let found = blocks(&local.symbols);
            let mut keys = Classes::default();
            let numbers: Vec<u32> = found.iter().map(|block| keys.of(&local.symbols, block)).collect();
            let mut counts = vec![0; keys.len() as usize];
            for (block, &number) in found.iter().zip(&numbers) {
                counts[number as usize] += block.end() - block.start();
            }
            let several = found.iter().zip(&numbers).any(|(block, &number)| {
                let all = counts[number as usize];
                all * 2 >= 3 * (block.end() - block.start()) && all as f64 >= local.symbols.len() as f64 * HOLDS_MOST
            });
            let is_loop = several
                && !local.symbols.iter().any(|&symbol| {
                    *goes_back.entry(symbol).or_insert_with(|| is_backward(trace.strings.get(longpole_trace::StrId(symbol))))
                });
            if is_loop {
                notes.push(StepNote::MarkerHoldsSeveralSteps { marker: names[class].clone() });
            }
            is_loop
        })
        .collect();
    if notes.is_empty() {
        return (raws, notes);
    }
    let mut split = Vec::new();
    let mut keys = Classes::default();
    let mut classes: HashMap<(u32, u32), u32, FixedState> = HashMap::default();
    for raw in raws {
        if !is_loop[raw.class as usize] {
            split.push(raw);
            continue;
        }
        let local = Local::of(program, &raw.positions);
        let (anchors, layers): (Vec<Anchor>, Vec<Option<usize>>) =
            blocks(&local.symbols).iter().map(|block| block_anchor(&local.symbols, block, &mut keys)).unzip();
        let activities = &trace.activities;
        let row = |at: usize| program.sequence.activities[local.kept[at] as usize].index();
        let idle = |at: usize| match at {
            0 => Ns::MAX,
            at if at >= local.kept.len() => Ns::ZERO,
            at => (activities.start[row(at)] - activities.end(row(at - 1))).max(Ns::ZERO),
        };
        for ((range, anchor), layers) in steps(&local.symbols, &anchors, &idle).into_iter().zip(anchors).zip(layers) {
            let class = *classes.entry((raw.class, anchor.key)).or_insert_with(|| {
                names.push(names[raw.class as usize].clone());
                names.len() as u32 - 1
            });
            let inside = raw.positions.iter().zip(&local.onto).filter(|(_, onto)| range.contains(&(**onto as usize)));
            let positions = inside.map(|(&position, _)| position).collect();
            split.push(Raw { class, by: FoundBy::KernelSequence, range: raw.range, positions, layers });
        }
    }
    (split, notes)
}

/// Whether a kernel's name tells that it computes gradients.
fn is_backward(name: &str) -> bool {
    ["backward", "Backward", "bwd", "dgrad", "wgrad", "Grad"].iter().any(|part| name.contains(part))
}

/// Which API calls launch graphs.
fn graph_calls(index: &TraceIndex<'_>) -> Vec<bool> {
    let trace = index.trace();
    let by_name: Vec<bool> = trace.strings.iter().map(|(_, name)| name.contains("GraphLaunch")).collect();
    trace.api_calls.name.iter().map(|name| by_name[name.index()]).collect()
}

/// Graph launches in order, and an example of each class of them.
fn launches(index: &TraceIndex<'_>, program: &Program, is_graph: &[bool]) -> (Vec<Launch>, Vec<Range<usize>>) {
    let symbols = &program.folded.symbols;
    let mut known: HashMap<&[u32], usize, FixedState> = HashMap::default();
    let (mut launches, mut classes) = (Vec::new(), Vec::new());
    let mut at = 0;
    while at < symbols.len() {
        let from = at;
        let call = program.call(index, from);
        at += 1;
        let Some(of) = call.filter(|&call| is_graph[call]) else { continue };
        while at < symbols.len() && program.call(index, at) == Some(of) {
            at += 1;
        }
        if at - from < SMALLEST_GRAPH {
            continue;
        }
        let class = *known.entry(&symbols[from..at]).or_insert_with(|| {
            classes.push(from..at);
            classes.len() - 1
        });
        launches.push(Launch { range: from..at, class });
    }
    (launches, classes)
}

/// How many graph launches make a step: the shortest distance at which nine in ten are of the same class.
fn shortest_row(launches: &[Launch]) -> usize {
    (1..=LONGEST_ROW.min(launches.len() / 2))
        .find(|&row| {
            let same = launches.windows(row + 1).filter(|launches| launches[0].class == launches[row].class).count();
            same * 10 >= (launches.len() - row) * 9
        })
        .unwrap_or(1)
}

impl Program {
    /// The API call that launched what is kept at an index.
    pub(super) fn call(&self, index: &TraceIndex<'_>, at: usize) -> Option<usize> {
        let activity = self.sequence.activities[self.folded.kept[at] as usize];
        index.links().call(activity).map(longpole_trace::ApiCallId::index)
    }

    /// Device time between the activity at an index of what is kept, and the one before it in the whole sequence.
    fn idle_before(&self, index: &TraceIndex<'_>, at: usize) -> Ns {
        let activities = &index.trace().activities;
        let Some(&position) = self.folded.kept.get(at) else { return Ns::ZERO };
        let Some(before) = (position as usize).checked_sub(1) else { return Ns::MAX };
        let here = self.sequence.activities[position as usize].index();
        (activities.start[here] - activities.end(self.sequence.activities[before].index())).max(Ns::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(symbols: &[u32]) -> Block {
        blocks(symbols).swap_remove(0)
    }

    #[test]
    fn kernels_before_and_behind_a_block_make_it_one_step() {
        let layers = (0..24).flat_map(|_| 0..13).collect::<Vec<u32>>();
        let around = |before: &[u32], behind: &[u32]| [before, layers.as_slice(), behind].concat();
        let framed = |symbols: &[u32]| is_framed(symbols, &block(symbols));
        assert!(framed(&around(&[100], &[101])) && framed(&around(&[100], &[101, 102, 103])));
        // What is left of cut-off repeats is nothing.
        assert!(!framed(&layers) && !framed(&around(&[10, 11, 12], &[0, 1])) && !framed(&around(&[100], &[])));
        // One usual step has its layers, also where its repeats are nearly all of it.
        assert_eq!(block(&around(&[100], &[101, 102])).layers(), 24);
    }

    #[test]
    fn idle_time_before_each_repeat_makes_them_steps() {
        let layers = (0..24).flat_map(|_| 0..13).collect::<Vec<u32>>();
        let block = block(&layers);
        assert!(stand_apart(&block, &|at| Ns(if at % 13 == 0 { 40_000 } else { 1_000 })));
        assert!(!stand_apart(&block, &|at| Ns(if at % 13 == 0 { 2_000 } else { 1_000 })));
        assert!(!stand_apart(&block, &|at| Ns(if at % 39 == 0 { 40_000 } else { 1_000 })));
        assert!(!stand_apart(&block, &|_| Ns::ZERO));
    }

    #[test]
    fn blocks_of_alternating_layers_are_of_one_class() {
        // The usual layer is now of the one kind and now of the other.
        let step =
            |first: u32| (0..24).flat_map(|layer| [0, 1, 2, 40 + (layer + first) % 2, 4, 5, 6, 7, 8, 9, 10, 11, 12]).collect::<Vec<u32>>();
        let (a, b) = (step(0), step(1));
        let other: Vec<u32> = (0..24).flat_map(|_| [0, 1, 2, 60, 61, 62, 63, 64, 65, 9, 10, 11, 12]).collect();
        let mut classes = Classes::default();
        let numbers = [&a, &b, &other, &a].map(|symbols| classes.of(symbols, &block(symbols)));
        assert_eq!((numbers, classes.len()), ([0, 0, 1, 0], 2));
    }
}
