//! Like steps put together: the same kernels in the same order but for noise, mostly launched in the same shapes.
//!
//! Shapes alone never make a step another one as long as at least half of its kernels keep theirs: where a cache grows, those that
//! read it change every step. A prefill of another length changes nearly all.

use std::collections::VecDeque;

use longpole_trace::{ActivityKind, DetailId, RangeId, Trace};

use super::Program;
use super::align::Reference;
use super::types::FoundBy;

/// Share of symbols (of both steps) that may differ.
pub(super) const DIFFERS: f64 = 0.15;
/// Most groups of one class that a step is compared with, the latest used first: a trace in which every step is unlike all others
/// must not cost the square of its length.
pub(super) const COMPARED: usize = 16;
/// Shares for a step with other kernels to be a warm-up of the group that follows: of symbols that may differ, of the others that must
/// have the same shape.
const WARM_UP_DIFFERS: f64 = 0.5;
const WARM_UP_SAME_SHAPE: f64 = 0.8;

/// A step before it is grouped.
#[derive(Clone, Debug)]
pub(super) struct Raw {
    /// Steps of different classes are never of one group.
    pub(super) class: u32,
    pub(super) by: FoundBy,
    pub(super) range: Option<RangeId>,
    /// Positions in the sequence of its device, ascending.
    pub(super) positions: Vec<u32>,
    /// Layers of the block it was found by.
    pub(super) layers: Option<usize>,
}

/// What is kept of a step when inner loops are folded.
#[derive(Clone, Debug, Default)]
pub(super) struct Local {
    pub(super) symbols: Vec<u32>,
    /// Positions of these.
    pub(super) kept: Vec<u32>,
    /// For each position of the step, the index that stands for it.
    pub(super) onto: Vec<u32>,
}

impl Local {
    pub(super) fn of(program: &Program, positions: &[u32]) -> Self {
        let folded = &program.folded;
        let mut local = Self { onto: Vec::with_capacity(positions.len()), ..Self::default() };
        for &position in positions {
            let stands = folded.kept[folded.onto[position as usize] as usize];
            let known = if stands == position { None } else { local.kept.binary_search(&stands).ok() };
            let at = known.unwrap_or_else(|| {
                local.kept.push(position);
                local.symbols.push(program.sequence.symbols[position as usize]);
                local.kept.len() - 1
            });
            local.onto.push(at as u32);
        }
        local
    }
}

/// Like steps, by index.
#[derive(Debug)]
pub(super) struct Cluster {
    pub(super) class: u32,
    pub(super) members: Vec<usize>,
    /// Steps with other kernels that warm up for it.
    pub(super) warm_ups: Vec<usize>,
    /// Steps cut off by the begin or end of the trace.
    pub(super) cut_off: Vec<usize>,
    symbols: Vec<u32>,
    shapes: Vec<Option<DetailId>>,
}

fn shapes(trace: &Trace, program: &Program, kept: &[u32]) -> Vec<Option<DetailId>> {
    let shape = |&position: &u32| {
        let row = program.sequence.activities[position as usize].index();
        let is_kernel = matches!(trace.activities.kind[row], ActivityKind::Kernel | ActivityKind::Other);
        trace.activities.detail(row).filter(|_| is_kernel)
    };
    kept.iter().map(shape).collect()
}

impl Cluster {
    /// Places of the symbols of a step in this cluster's first one, if at most a share differs.
    fn places(&self, symbols: &[u32], differs: f64) -> Option<Vec<Option<u32>>> {
        if symbols == self.symbols {
            return Some((0..symbols.len() as u32).map(Some).collect());
        }
        let both = symbols.len() + self.symbols.len();
        let most = (both as f64 * differs) as usize;
        if symbols.len().abs_diff(self.symbols.len()) > most {
            return None;
        }
        Reference::new(&self.symbols).align(symbols, most)
    }

    /// Share of kernels at common places that have the same shape; absent when no shapes were recorded.
    fn same_shape(&self, places: &[Option<u32>], shapes: &[Option<DetailId>]) -> Option<f64> {
        let pairs = places.iter().zip(shapes).filter_map(|(place, shape)| Some((self.shapes[(*place)? as usize]?, (*shape)?)));
        let (same, all) = pairs.fold((0_u32, 0_u32), |(same, all), (a, b)| (same + u32::from(a == b), all + 1));
        (all > 0).then(|| f64::from(same) / f64::from(all))
    }
}

/// Groups steps, in order of their first members.
pub(super) fn clusters(trace: &Trace, program: &Program, raws: &[Raw]) -> Vec<Cluster> {
    let mut clusters: Vec<Cluster> = Vec::new();
    let classes = raws.iter().map(|raw| raw.class as usize + 1).max().unwrap_or(0);
    let mut recent: Vec<VecDeque<usize>> = vec![VecDeque::new(); classes];
    for (number, raw) in raws.iter().enumerate() {
        let local = Local::of(program, &raw.positions);
        let shapes = shapes(trace, program, &local.kept);
        let recent = &mut recent[raw.class as usize];
        let like = recent.iter().position(|&at| {
            let cluster = &clusters[at];
            let places = cluster.places(&local.symbols, DIFFERS);
            places.is_some_and(|places| cluster.same_shape(&places, &shapes).is_none_or(|share| share >= 0.5))
        });
        let at = like.and_then(|position| recent.remove(position)).unwrap_or_else(|| {
            clusters.push(Cluster {
                class: raw.class,
                members: Vec::new(),
                warm_ups: Vec::new(),
                cut_off: Vec::new(),
                symbols: local.symbols,
                shapes,
            });
            clusters.len() - 1
        });
        clusters[at].members.push(number);
        recent.push_front(at);
        recent.truncate(COMPARED);
    }
    merge_warm_ups(raws, &mut clusters);
    merge_cut_off(raws, &mut clusters);
    clusters
}

/// A step with other kernels before all steps of a larger group, with the same shapes where kernels are the same, warms up for it.
fn merge_warm_ups(raws: &[Raw], clusters: &mut Vec<Cluster>) {
    let mut gone = vec![false; clusters.len()];
    for at in 0..clusters.len() {
        if clusters[at].members.len() != 1 {
            continue;
        }
        let number = clusters[at].members[0];
        let later = (at + 1..clusters.len()).take(COMPARED).find(|&later| {
            let (warm_up, group) = (&clusters[at], &clusters[later]);
            let is_larger = group.class == warm_up.class && group.members.len() >= 3 && group.members[0] > number;
            is_larger
                && raws[number].layers == raws[group.members[0]].layers
                && group
                    .places(&warm_up.symbols, WARM_UP_DIFFERS)
                    .is_some_and(|places| group.same_shape(&places, &warm_up.shapes).is_some_and(|share| share >= WARM_UP_SAME_SHAPE))
        });
        if let Some(later) = later {
            clusters[later].warm_ups.push(number);
            gone[at] = true;
        }
    }
    let mut gone = gone.into_iter();
    clusters.retain(|_| !gone.next().unwrap_or(false));
}

/// The first or last step found by its kernels alone, if it has fewer layers than another group of its class.
fn merge_cut_off(raws: &[Raw], clusters: &mut Vec<Cluster>) {
    for edge in [0, raws.len().saturating_sub(1)] {
        let Some(layers) = raws.get(edge).and_then(|raw| raw.layers) else { continue };
        let Some(at) = clusters.iter().position(|cluster| cluster.members == [edge]) else { continue };
        let whole = clusters.iter().position(|cluster| {
            cluster.class == clusters[at].class && cluster.members.first().is_some_and(|&first| raws[first].layers > Some(layers))
        });
        if let Some(whole) = whole {
            clusters[whole].cut_off.push(edge);
            clusters.remove(at);
        }
    }
}
