//! What was recorded around the launches of each place: operators with their shapes, module paths, Python frames. Of work that is replayed from a
//! graph it is what was around the call that became the node, where the recording saw the graph being made.
//!
//! A few steps are looked at, all their layers; for each place the evidence that most of its activities have counts.

use std::rc::Rc;

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use longpole_trace::{ActivityId, ActivityKind, ApiCallId, StrId, Trace};

use super::modules::{ModuleRole, Query, may_be_path};
use super::patterns::OpName;
use super::shapes::{Argument, arguments};
use crate::families::Family;
use crate::index::{HostRow, NodeId, TraceIndex};
use crate::steps::types::{Step, StepGroup};

/// Nodes around a launch that are looked at, and operators of them that are kept.
const MOST_NODES: usize = 64;
const MOST_OPS: usize = 8;

/// What is worked out once a name.
pub(super) struct Names<'t> {
    trace: &'t Trace,
    families: HashMap<StrId, Family, FixedState>,
    ops: HashMap<StrId, OpName, FixedState>,
    paths: HashMap<StrId, Option<bool>, FixedState>,
}

impl<'t> Names<'t> {
    pub(super) fn new(trace: &'t Trace) -> Self {
        Self { trace, families: HashMap::default(), ops: HashMap::default(), paths: HashMap::default() }
    }

    pub(super) fn family(&mut self, kind: ActivityKind, name: StrId) -> Family {
        match kind {
            ActivityKind::Memcpy | ActivityKind::Memset => Family::of(kind, ""),
            ActivityKind::Kernel | ActivityKind::Other => {
                *self.families.entry(name).or_insert_with(|| Family::of(kind, self.trace.strings.get(name)))
            }
        }
    }

    /// Whether a name may be a module's path, and whether that names a layer.
    fn path(&mut self, name: StrId) -> Option<bool> {
        *self.paths.entry(name).or_insert_with(|| may_be_path(self.trace.strings.get(name)))
    }

    fn op(&mut self, (name, shapes): (StrId, Option<StrId>)) -> Op<'t> {
        let text = self.trace.strings.get(name);
        let of_name = *self.ops.entry(name).or_insert_with(|| OpName::of(text));
        Op { name: text, of_name, arguments: shapes.map_or_else(Vec::new, |shapes| arguments(self.trace.strings.get(shapes))) }
    }
}

/// An operator around a launch.
#[derive(Clone, Debug)]
pub(super) struct Op<'t> {
    pub(super) name: &'t str,
    pub(super) of_name: OpName,
    /// Empty when shapes were not recorded.
    pub(super) arguments: Vec<Argument>,
}

/// A place of the canonical sequence and what is known of it.
#[derive(Clone, Debug)]
pub(super) struct Place<'t> {
    /// Its row in the group.
    pub(super) row: usize,
    pub(super) family: Family,
    /// The kernel's full name.
    pub(super) kernel: &'t str,
    /// Operators around the launch, innermost first.
    pub(super) ops: Rc<[Op<'t>]>,
    /// Launched by the same call of an operator as the place before it.
    pub(super) is_joined: bool,
    pub(super) module: ModuleRole,
}

/// What was gathered of a group, before its modules are known.
pub(super) struct Gathered<'t> {
    pub(super) places: Vec<Place<'t>>,
    pub(super) queries: Vec<Query>,
}

/// Operators around a launch, innermost first: names and shapes.
type Chain = Vec<(StrId, Option<StrId>)>;

/// What most of some votes say; of equals the lower.
fn most<T: Ord + Copy>(votes: &HashMap<T, u32, FixedState>) -> Option<T> {
    votes.iter().max_by_key(|&(&key, &count)| (count, std::cmp::Reverse(key))).map(|(&key, _)| key)
}

#[derive(Default)]
struct Votes {
    chains: HashMap<u32, u32, FixedState>,
    joined: u32,
    apart: u32,
}

/// The places of a group in order of rows, with their operators, and where modules are to be looked for.
pub(super) fn gather<'t>(index: &TraceIndex<'t>, group: &StepGroup, names: &mut Names<'t>) -> Gathered<'t> {
    let trace = index.trace();
    let mut numbers: HashMap<Chain, u32, FixedState> = HashMap::default();
    let mut votes: Vec<Votes> = group.rows.iter().map(|_| Votes::default()).collect();
    let mut queries = Vec::new();
    for (number, step) in looked_at(group).into_iter().enumerate() {
        let shared = shared_calls(index, step);
        let mut before: Option<(u32, NodeId)> = None;
        for (&activity, &row) in step.activities.iter().zip(&step.rows) {
            if group.rows.get(row as usize).is_none_or(|found| found.place.is_none()) {
                continue;
            }
            let call = index.links().call(activity);
            let is_shared = call.is_some_and(|call| shared.contains_key(&call));
            let captured = trace.capture_of(activity).and_then(|capture| index.tree().innermost_at(capture.thread, capture.at));
            let (owner, first) = match captured {
                Some(node) => (index.tree().enclosing_op(node), Some(node)),
                None if is_shared => {
                    before = None;
                    continue;
                }
                None => {
                    let owner = index.links().owner_node(activity);
                    (owner, call.and_then(|call| index.tree().api_node(call)).or(owner))
                }
            };
            let (chain, path) = around(index, names, owner, first);
            let votes = &mut votes[row as usize];
            let next = numbers.len() as u32;
            *votes.chains.entry(*numbers.entry(chain).or_insert(next)).or_default() += 1;
            // Folded loops put several activities on one row: those say nothing of the place before.
            if let Some((row_before, owner_before)) = before
                && row_before + 1 == row
            {
                if owner == Some(owner_before) { votes.joined += 1 } else { votes.apart += 1 }
            }
            before = owner.map(|owner| (row, owner));
            if let Some(node) = first {
                let thread = index.tree().thread(node);
                let at = trace
                    .capture_of(activity)
                    .filter(|_| captured.is_some())
                    .map_or_else(|| index.tree().start(node), |capture| capture.at);
                queries.push(Query { row, step: number as u32, thread, at, path });
            }
        }
    }
    let mut chains: Vec<Rc<[Op<'t>]>> = vec![Rc::from([]); numbers.len()];
    for (chain, number) in numbers {
        chains[number as usize] = chain.into_iter().map(|op| names.op(op)).collect();
    }
    let places = votes.iter().zip(&group.rows).enumerate().filter(|(_, (_, row))| row.place.is_some());
    let places = places.map(|(row, (votes, found))| Place {
        row,
        family: names.family(found.kind, found.name),
        kernel: trace.strings.get(found.name),
        ops: most(&votes.chains).map_or_else(|| Rc::from([]), |chain| Rc::clone(&chains[chain as usize])),
        is_joined: votes.joined > votes.apart,
        module: ModuleRole::default(),
    });
    Gathered { places: places.collect(), queries }
}

/// The steps that are looked at: the first, the middle and the last, each once.
fn looked_at(group: &StepGroup) -> Vec<&Step> {
    let count = group.steps.len();
    let mut numbers = vec![count / 2, 0, count.saturating_sub(1)];
    numbers.sort_unstable();
    numbers.dedup();
    numbers.into_iter().filter_map(|number| group.steps.get(number)).collect()
}

/// Calls that launched several activities of a step: graph launches. What is around such a call says nothing of one of its kernels.
fn shared_calls(index: &TraceIndex<'_>, step: &Step) -> HashMap<ApiCallId, (), FixedState> {
    let mut seen: HashMap<ApiCallId, u32, FixedState> = HashMap::default();
    for call in step.activities.iter().filter_map(|&activity: &ActivityId| index.links().call(activity)) {
        *seen.entry(call).or_default() += 1;
    }
    seen.into_iter().filter(|&(_, count)| count > 1).map(|(call, _)| (call, ())).collect()
}

/// The operators around a node, innermost first, and the innermost name that is a module's path.
fn around(index: &TraceIndex<'_>, names: &mut Names<'_>, owner: Option<NodeId>, first: Option<NodeId>) -> (Chain, Option<StrId>) {
    let (tree, ops) = (index.tree(), &index.trace().host_ops);
    let mut chain = Vec::new();
    let mut path: Option<(StrId, bool)> = None;
    let nodes = first.into_iter().flat_map(|first| std::iter::once(first).chain(tree.ancestors(first)));
    for node in nodes.take(MOST_NODES) {
        let name = match tree.row(node) {
            HostRow::Api(_) => continue,
            HostRow::Range(_) => tree.name(node),
            HostRow::Op(op) => {
                let name = tree.name(node);
                if chain.len() < MOST_OPS {
                    chain.push((name, ops.shapes(op.index())));
                }
                name
            }
        };
        // The innermost path that names a layer, failing that the innermost at all.
        if path.is_none_or(|(_, names_layer)| !names_layer)
            && let Some(names_layer) = names.path(name)
            && (names_layer || path.is_none())
        {
            path = Some((name, names_layer));
        }
    }
    // An activity whose launch is outside any operator may name one by its external id.
    if chain.is_empty()
        && let Some(owner) = owner
        && let HostRow::Op(op) = tree.row(owner)
    {
        chain.push((tree.name(owner), ops.shapes(op.index())));
    }
    (chain, path.map(|(name, _)| name))
}
