//! From device activities to groups of calls of one kind, with their device time.

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use longpole_trace::{ActivityId, Detail, HostOpId, MemcpyKind, Ns, StrId, Trace};

use super::formulas::{self, WorkFamily};
use super::op_work::{OpWork, Signature};
use super::work::{UnknownWork, Work};
use crate::families::{Family, FamilyOfName};
use crate::index::{HostRow, NodeId, TraceIndex};
use crate::scope::Scope;

/// What an activity is counted under.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Key {
    /// An operator's own work.
    Op(Signature),
    /// What an operator launched besides, or what is limited by something else.
    Apart(Signature, UnknownWork),
    /// Work that no operator owns, by family.
    NoOperator(Family),
}

pub(super) struct Group {
    pub(super) key: Key,
    pub(super) calls: u64,
    pub(super) activities: u64,
    pub(super) device_ns: Ns,
    pub(super) family: Option<WorkFamily>,
    pub(super) work: Result<Work, UnknownWork>,
    /// The kernel with most time so far, and that time.
    pub(super) kernel: Option<(StrId, Ns)>,
}

/// Adds the part of `[start, end]` beyond what earlier activities reached. Activities come by start.
fn extend(reach: &mut Ns, start: Ns, end: Ns) -> Ns {
    let from = start.max(*reach);
    *reach = (*reach).max(end);
    (end - from).max(Ns::ZERO)
}

/// Walks over the activities of a scope, by start, and fills the groups.
pub(super) struct Collector<'a, 't> {
    index: &'a TraceIndex<'t>,
    works: OpWork<'t>,
    pub(super) groups: Vec<Group>,
    of_key: HashMap<Key, u32, FixedState>,
    /// A bit a node: its call was counted, for its own work and for what stands apart.
    pub(super) counted: [Vec<u64>; 2],
    /// Operators that contain one of the same family which launched work.
    outer: HashMap<NodeId, WorkFamily, FixedState>,
    pub(super) busy_ns: Ns,
    pub(super) covered_ns: Ns,
    /// Row and group of each activity, in order of start, when asked for.
    pub(super) placed: Option<Vec<(u32, u32)>>,
}

impl<'a, 't> Collector<'a, 't> {
    pub(super) fn new(index: &'a TraceIndex<'t>) -> Self {
        let words = index.tree().len().div_ceil(64);
        Self {
            index,
            works: OpWork::new(index.trace()),
            groups: Vec::new(),
            of_key: HashMap::with_hasher(FixedState::default()),
            counted: [vec![0; words], vec![0; words]],
            outer: HashMap::with_hasher(FixedState::default()),
            busy_ns: Ns::ZERO,
            covered_ns: Ns::ZERO,
            placed: None,
        }
    }

    pub(super) fn run(self, scope: &Scope) -> Self {
        let index = self.index;
        self.run_on(|row| scope.includes_activity(index, ActivityId(row)))
    }

    /// The same over the activities for which a condition on their row holds.
    pub(super) fn run_on(mut self, holds: impl Fn(u32) -> bool) -> Self {
        let trace = self.index.trace();
        let activities = &trace.activities;
        let inside = |&row: &u32| holds(row);
        let mut by_start: Vec<u32> = (0..activities.len() as u32).filter(inside).collect();
        by_start.sort_by_key(|&row| activities.start[row as usize]);
        self.find_outer(&by_start);
        let mut families = FamilyOfName::new(trace);
        let mut reach: HashMap<(u32, u32), Ns, FixedState> = HashMap::with_hasher(FixedState::default());
        let mut times: HashMap<(u32, StrId), Ns, FixedState> = HashMap::with_hasher(FixedState::default());
        let (mut busy, mut covered) = (vec![Ns::MIN; trace.devices.len()], vec![Ns::MIN; trace.devices.len()]);
        for row in by_start.into_iter().map(|row| row as usize) {
            let at = self.group_of(row, &mut families);
            if let Some(placed) = &mut self.placed {
                placed.push((row as u32, at));
            }
            let (start, end) = (activities.start[row], activities.end(row));
            let device = trace.lanes[activities.lane[row].index()].device;
            let group = &mut self.groups[at as usize];
            group.activities += 1;
            group.device_ns += extend(reach.entry((at, device.0)).or_insert(Ns::MIN), start, end);
            let name = activities.name[row];
            let time = times.entry((at, name)).or_insert(Ns::ZERO);
            *time += end - start;
            if group.kernel.is_none_or(|(_, most)| *time > most) {
                group.kernel = Some((name, *time));
            }
            self.busy_ns += extend(&mut busy[device.index()], start, end);
            if group.work.is_ok() {
                self.covered_ns += extend(&mut covered[device.index()], start, end);
            }
        }
        self
    }

    fn op(&self, node: NodeId) -> Option<HostOpId> {
        if let HostRow::Op(op) = self.index.tree().row(node) { Some(op) } else { None }
    }

    /// Finds operators that contain one of their family which launched work: a product inside `linear` is that product.
    fn find_outer(&mut self, by_start: &[u32]) {
        let trace = self.index.trace();
        let mut memo: HashMap<StrId, Option<WorkFamily>, FixedState> = HashMap::with_hasher(FixedState::default());
        let mut family_of = |name: StrId| {
            *memo.entry(name).or_insert_with(|| {
                use WorkFamily::{Attention, Convolution, Matmul, Norm, Softmax};
                let family = formulas::formula(trace.strings.get(name))?.family;
                matches!(family, Matmul | Attention | Convolution | Norm | Softmax).then_some(family)
            })
        };
        let mut last = None;
        for &row in by_start {
            let owner = self.index.links().owner_node(ActivityId(row));
            let Some(node) = owner.filter(|_| owner != last) else { continue };
            last = owner;
            let tree = self.index.tree();
            let Some(family) = self.op(node).and_then(|op| family_of(trace.host_ops.name[op.index()])) else { continue };
            for outer in tree.ancestors(node).take(MOST_ANCESTORS) {
                if self.op(outer).and_then(|op| family_of(trace.host_ops.name[op.index()])) == Some(family) {
                    self.outer.insert(outer, family);
                }
            }
        }
    }

    /// The group of an activity, made if it is the first of it.
    fn group_of(&mut self, row: usize, families: &mut FamilyOfName) -> u32 {
        let trace = self.index.trace();
        let family = families.get(trace, row);
        let limit = match family {
            Family::Communication => Some(UnknownWork::Communication),
            Family::Memcpy if !is_within_device(trace, row) => Some(UnknownWork::LinkTransfer),
            _ => None,
        };
        let node = self.index.links().owner_node(ActivityId::from_index(row));
        let owner = node.and_then(|node| Some((node, self.op(node)?)));
        let kernel = trace.activities.name[row];
        let (key, known) = if let Some((node, op)) = owner {
            let signature = self.works.signature(op);
            let (family, work) = self.works.of(op, Some(kernel));
            let inside = || (family.is_some() && self.outer.get(&node).copied() == family).then_some(UnknownWork::CountedInside);
            match limit.or_else(inside) {
                Some(reason) => (Key::Apart(signature, reason), (None, Err(reason))),
                None => (Key::Op(signature), (family, work)),
            }
        } else {
            (Key::NoOperator(family), (None, Err(limit.unwrap_or(UnknownWork::NoOperator))))
        };
        let at = match self.of_key.entry(key) {
            Entry::Occupied(entry) => *entry.get(),
            Entry::Vacant(entry) => {
                let (family, work) = known;
                self.groups.push(Group { key, calls: 0, activities: 0, device_ns: Ns::ZERO, family, work, kernel: None });
                *entry.insert(self.groups.len() as u32 - 1)
            }
        };
        if let Some((node, _)) = owner {
            let counted = &mut self.counted[usize::from(matches!(key, Key::Apart(..)))][node.index() / 64];
            let bit = 1 << (node.index() % 64);
            self.groups[at as usize].calls += u64::from(*counted & bit == 0);
            *counted |= bit;
        }
        at
    }
}

/// Ancestors of an operator that are looked at; operators nest a dozen deep at most.
const MOST_ANCESTORS: usize = 64;

/// Whether a copy stays in the memory of one device.
fn is_within_device(trace: &Trace, row: usize) -> bool {
    let activities = &trace.activities;
    if let Some(detail) = activities.detail(row)
        && let Detail::Transfer(transfer) = trace.details[detail.index()]
        && transfer.kind != MemcpyKind::Unknown
    {
        return transfer.kind == MemcpyKind::DeviceToDevice;
    }
    let label = trace.strings.get(activities.name[row]);
    label.contains("DtoD") || label.contains("DeviceToDevice")
}
