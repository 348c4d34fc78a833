//! The communication kernels of each rank, with what is known of them, sorted into communicators.

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use longpole_trace::{ActivityId, Collective, CollectivePlace, DeviceId, Ns, StrId, ThreadId, Trace};

use super::kind::{CollectiveKind, element_bytes, first_input_elements};
use crate::families::{Family, FamilyOfName};
use crate::index::{HostRow, TraceIndex};
use crate::scope::Scope;

/// A communication kernel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    pub(super) activity: ActivityId,
    pub(super) start: Ns,
    pub(super) end: Ns,
    pub(super) kind: CollectiveKind,
    /// Equal for calls that may be the same collective.
    pub(super) key: u32,
    pub(super) sequence: Option<u64>,
    pub(super) bytes: Option<u64>,
}

/// What tells communicators apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct GroupKey {
    pub(super) name: Option<StrId>,
    ranks: Option<StrId>,
    pub(super) peers: Option<(u32, u32)>,
    /// Without a name: the stream, by number where all ranks use the same numbers, else by position.
    stream: Option<i64>,
}

/// The calls of one rank in one communicator, by start.
#[derive(Debug)]
pub(super) struct MemberCalls {
    pub(super) rank: usize,
    pub(super) calls: Vec<Call>,
}

/// A communicator as the traces name it. Unnamed ones may turn out to be several.
#[derive(Debug)]
pub(super) struct NamedGroup {
    pub(super) key: GroupKey,
    pub(super) size: Option<u32>,
    pub(super) members: Vec<MemberCalls>,
}

/// Operators around a kernel's launch that are looked at for one that names the collective.
const ANCESTORS: usize = 4;

/// Finds what is known of collectives.
struct Describer<'i, 't> {
    index: &'i TraceIndex<'t>,
    trace: &'t Trace,
    rows: HashMap<(CollectivePlace, Ns), u32, FixedState>,
    kinds: Vec<Option<CollectiveKind>>,
}

impl<'i, 't> Describer<'i, 't> {
    fn new(index: &'i TraceIndex<'t>) -> Self {
        let trace = index.trace();
        let table = &trace.collectives;
        let mut rows = HashMap::with_capacity_and_hasher(table.len(), FixedState::default());
        for (row, (&place, &start)) in table.place.iter().zip(&table.start).enumerate() {
            rows.entry((place, start)).or_insert(row as u32);
        }
        Self { index, trace, rows, kinds: vec![None; trace.strings.len()] }
    }

    fn kind(&mut self, name: StrId) -> CollectiveKind {
        *self.kinds[name.index()].get_or_insert_with(|| CollectiveKind::of(self.trace.strings.get(name)))
    }

    fn row(&self, place: CollectivePlace, start: Ns) -> Option<Collective> {
        self.rows.get(&(place, start)).map(|&row| self.trace.collectives.get(row as usize))
    }

    /// The call of an activity, its group, and the group's size.
    fn describe(&mut self, row: usize) -> (Call, GroupKey, Option<u32>) {
        let activity = ActivityId::from_index(row);
        let activities = &self.trace.activities;
        let on_device = self.row(CollectivePlace::Device(activities.lane[row]), activities.start[row]);
        let (mut on_host, mut operator) = (None, None);
        let tree = self.index.tree();
        let owner = self.index.links().owner_node(activity);
        for node in owner.into_iter().flat_map(|node| std::iter::once(node).chain(tree.ancestors(node))).take(ANCESTORS) {
            let HostRow::Op(op) = tree.row(node) else { continue };
            let place = CollectivePlace::Host(self.trace.host_ops.thread[op.index()]);
            on_host = on_host.or_else(|| self.row(place, self.trace.host_ops.start[op.index()]));
            if self.trace.strings.get(self.trace.host_ops.name[op.index()]).starts_with("c10d::") {
                operator = Some((op.index(), node));
            }
        }
        let said: [Option<Collective>; 2] = [on_device, on_host];
        let first = |member: fn(&Collective) -> Option<StrId>| said.iter().flatten().find_map(member);
        let number = |member: fn(&Collective) -> Option<u64>| said.iter().flatten().find_map(member);
        let name = first(|c| c.name);
        let kind = [name, operator.map(|(op, _)| self.trace.host_ops.name[op]), Some(activities.name[row])]
            .into_iter()
            .flatten()
            .map(|name| self.kind(name))
            .find(|kind| *kind != CollectiveKind::Other)
            .unwrap_or(CollectiveKind::Other);
        let key = if kind == CollectiveKind::Other { 16 + activities.name[row].0.min(u32::MAX - 16) } else { kind as u32 };
        let elements = number(|c| c.in_elements).into_iter().chain(number(|c| c.out_elements)).max();
        let bytes = match (elements, first(|c| c.dtype)) {
            (Some(elements), Some(dtype)) => element_bytes(self.trace.strings.get(dtype)).and_then(|size| elements.checked_mul(size)),
            _ => operator.and_then(|(op, _)| self.operator_bytes(op)),
        };
        let peers = said.iter().flatten().find_map(|c| Some((c.source_rank?, c.destination_rank?)));
        let group = first(|c| c.group);
        let key_of_group = GroupKey {
            name: group,
            ranks: first(|c| c.group_ranks).filter(|_| group.is_some()),
            peers: peers.filter(|_| kind == CollectiveKind::SendReceive).map(|(a, b)| (a.min(b), a.max(b))),
            stream: group.is_none().then(|| self.trace.lanes[activities.lane[row].index()].stream),
        };
        let (start, end) = (activities.start[row], activities.start[row] + activities.dur[row].max(Ns::ZERO));
        let call = Call { activity, start, end, kind, key, sequence: number(|c| c.sequence), bytes };
        (call, key_of_group, said.iter().flatten().find_map(|c| c.group_size))
    }

    /// Bytes of the first input of a `c10d::` operator.
    fn operator_bytes(&self, op: usize) -> Option<u64> {
        let ops = &self.trace.host_ops;
        let types = self.trace.strings.get(ops.types(op)?);
        let first_type = types.trim_start_matches('[').split(',').next()?.trim().trim_matches('"');
        first_input_elements(self.trace.strings.get(ops.shapes(op)?))?.checked_mul(element_bytes(first_type)?)
    }
}

/// The device of each rank whose communication is compared: the one with most communication kernels.
fn compared_devices(trace: &Trace, rows: &[usize]) -> Vec<Option<DeviceId>> {
    let mut counts = vec![0_u64; trace.devices.len()];
    let device_of = |row: usize| trace.lanes[trace.activities.lane[row].index()].device;
    for &row in rows {
        counts[device_of(row).index()] += 1;
    }
    let mut chosen: Vec<Option<DeviceId>> = vec![None; trace.ranks.len()];
    for (at, device) in trace.devices.iter().enumerate() {
        let most = chosen[device.rank as usize].map_or(0, |best| counts[best.index()]);
        if counts[at] > most {
            chosen[device.rank as usize] = Some(DeviceId::from_index(at));
        }
    }
    chosen
}

/// The communication kernels in scope, by communicator.
pub(super) fn named_groups(index: &TraceIndex<'_>, scope: &Scope) -> Vec<NamedGroup> {
    let trace = index.trace();
    let activities = &trace.activities;
    let mut families = FamilyOfName::new(trace);
    let mut rows: Vec<usize> = (0..activities.len())
        .filter(|&row| families.get(trace, row) == Family::Communication && scope.includes_activity(index, ActivityId::from_index(row)))
        .collect();
    rows.sort_by_key(|&row| (activities.start[row], row));
    let devices = compared_devices(trace, &rows);
    let mut describer = Describer::new(index);
    let mut calls: Vec<(GroupKey, usize, Call)> = Vec::with_capacity(rows.len());
    let mut sizes: HashMap<GroupKey, u32, FixedState> = HashMap::default();
    for &row in &rows {
        let device = trace.lanes[activities.lane[row].index()].device;
        let rank = trace.devices[device.index()].rank as usize;
        if devices[rank] == Some(device) {
            let (call, key, size) = describer.describe(row);
            calls.push((key, rank, call));
            if let Some(size) = size {
                sizes.entry(key).or_insert(size);
            }
        }
    }
    name_streams(&mut calls);
    calls.sort_by_key(|&(key, rank, _)| (key, rank));
    let mut groups: Vec<NamedGroup> = Vec::new();
    for (key, rank, call) in calls {
        if groups.last().is_none_or(|group| group.key != key) {
            groups.push(NamedGroup { key, size: sizes.get(&key).copied(), members: Vec::new() });
        }
        let Some(group) = groups.last_mut() else { continue };
        match group.members.last_mut() {
            Some(member) if member.rank == rank => member.calls.push(call),
            _ => group.members.push(MemberCalls { rank, calls: vec![call] }),
        }
    }
    groups
}

/// Stream numbers are each process's own: where ranks use different ones for unnamed communicators, the order of first use takes their place.
fn name_streams(calls: &mut [(GroupKey, usize, Call)]) {
    let mut of_rank: HashMap<usize, Vec<i64>, FixedState> = HashMap::default();
    let mut place: HashMap<(usize, i64), i64, FixedState> = HashMap::default();
    for &(key, rank, _) in calls.iter() {
        if let Some(stream) = key.stream {
            let streams = of_rank.entry(rank).or_default();
            place.entry((rank, stream)).or_insert_with(|| {
                streams.push(stream);
                streams.len() as i64 - 1
            });
        }
    }
    let mut sets: Vec<Vec<i64>> = of_rank.into_values().collect();
    for set in &mut sets {
        set.sort_unstable();
    }
    if sets.windows(2).all(|pair| pair[0] == pair[1]) {
        return;
    }
    for (key, rank, _) in calls {
        if let Some(stream) = &mut key.stream {
            *stream = place.get(&(*rank, *stream)).copied().unwrap_or(*stream);
        }
    }
}

/// The thread that launched an activity.
pub(super) fn launching_thread(index: &TraceIndex<'_>, activity: ActivityId) -> Option<ThreadId> {
    Some(index.trace().api_calls.thread[index.links().call(activity)?.index()])
}
