//! Groups of the operator table while they are filled, and their rows.

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use longpole_trace::{HostOpId, Ns, StrId, Trace};

use super::shapes::torch_shapes;
use super::stacks::Stacks;
use super::{GroupBy, OpRow, OpRowKind, OpTable};
use crate::index::{HostRow, HostTree, NodeId, TraceIndex};

/// Sums of one row.
#[derive(Clone, Debug)]
pub(super) struct Group {
    kind: OpRowKind,
    /// Name of the operator or call; absent for device work whose launch is not recorded.
    name: Option<StrId>,
    /// Shape text or stack, by number.
    detail: u32,
    /// When it first occurs: rows are in this order.
    first: Ns,
    pub(super) calls: u64,
    pub(super) cpu: Ns,
    pub(super) self_cpu: Ns,
    pub(super) own: Resources,
    pub(super) total: Resources,
}

/// What calls use up beside host time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Resources {
    pub(super) cuda: Ns,
    pub(super) host_bytes: i64,
    pub(super) device_bytes: i64,
}

impl Resources {
    pub(super) fn add(&mut self, other: Self) {
        self.cuda += other.cuda;
        self.host_bytes = self.host_bytes.saturating_add(other.host_bytes);
        self.device_bytes = self.device_bytes.saturating_add(other.device_bytes);
    }
}

const UNSET: u32 = u32::MAX;

/// All groups, found by key.
pub(super) struct Groups<'t> {
    tree: &'t HostTree<'t>,
    by: GroupBy,
    list: Vec<Group>,
    /// Group of a name alone: operators first, then API calls, then calls outside operators. Names are dense numbers, so this is an array.
    by_name: Vec<u32>,
    /// Group of an (operator or API name, detail).
    by_detail: HashMap<(u32, u32), u32, FixedState>,
    unrecorded: u32,
    /// Text number of a shapes string.
    shape_of: HashMap<StrId, u32, FixedState>,
    shape_texts: Vec<String>,
    stacks: Option<Stacks>,
}

impl<'t> Groups<'t> {
    pub(super) fn new(tree: &'t HostTree<'t>, by: GroupBy) -> Self {
        Self {
            tree,
            by,
            list: Vec::new(),
            by_name: vec![UNSET; 3 * tree.trace().strings.len()],
            by_detail: HashMap::default(),
            unrecorded: UNSET,
            shape_of: HashMap::default(),
            shape_texts: vec!["[]".to_owned()],
            stacks: if let GroupBy::Stack(depth) = by { Some(Stacks::find(tree, depth)) } else { None },
        }
    }

    /// The group of an operator or API call; ranges have none.
    pub(super) fn of_node(&mut self, node: NodeId, row: HostRow, start: Ns) -> Option<&mut Group> {
        let trace = self.tree.trace();
        let (kind, name, op) = match row {
            HostRow::Range(_) => return None,
            HostRow::Op(id) => (OpRowKind::Operator, trace.host_ops.name[id.index()], Some(id)),
            HostRow::Api(id) => (OpRowKind::ApiCall, trace.api_calls.name[id.index()], None),
        };
        let slot = self.name_slot(kind, name);
        let next = self.list.len() as u32;
        let detail = if self.by == GroupBy::Name { 0 } else { self.detail(node, op) };
        let number =
            if self.by == GroupBy::Name { &mut self.by_name[slot] } else { self.by_detail.entry((slot as u32, detail)).or_insert(UNSET) };
        if *number == UNSET {
            *number = next;
            self.list.push(Group::new(kind, Some(name), detail));
        }
        let group = &mut self.list[*number as usize];
        group.first = group.first.min(start);
        Some(group)
    }

    /// The group of device work outside operators, by the name of the launching call if that is recorded.
    pub(super) fn of_launch(&mut self, call: Option<StrId>, start: Ns) -> &mut Group {
        let next = self.list.len() as u32;
        let slot = match call {
            Some(name) => {
                let slot = self.name_slot(OpRowKind::NoOperator, name);
                &mut self.by_name[slot]
            }
            None => &mut self.unrecorded,
        };
        if *slot == UNSET {
            *slot = next;
            self.list.push(Group::new(OpRowKind::NoOperator, call, 0));
        }
        let group = *slot;
        let group = &mut self.list[group as usize];
        group.first = group.first.min(start);
        group
    }

    fn name_slot(&self, kind: OpRowKind, name: StrId) -> usize {
        let names = self.by_name.len() / 3;
        name.index()
            + match kind {
                OpRowKind::Operator => 0,
                OpRowKind::ApiCall => names,
                OpRowKind::NoOperator => 2 * names,
            }
    }

    fn detail(&mut self, node: NodeId, op: Option<HostOpId>) -> u32 {
        if let Some(stacks) = &self.stacks {
            return stacks.of_node[node.index()];
        }
        let trace = self.tree.trace();
        let Some(shapes) = op.and_then(|op| trace.host_ops.shapes(op.index())) else { return 0 };
        *self.shape_of.entry(shapes).or_insert_with(|| {
            let text = torch_shapes(trace.strings.get(shapes));
            let known = self.shape_texts.iter().position(|known| *known == text);
            known.unwrap_or_else(|| {
                self.shape_texts.push(text);
                self.shape_texts.len() - 1
            }) as u32
        })
    }

    /// The finished table.
    pub(super) fn into_table(mut self, index: &TraceIndex<'_>) -> OpTable {
        let trace = index.trace();
        let recorded = Recorded::of(trace, &self.shape_of);
        self.list.sort_by_key(|group| (group.first, group.kind));
        let rows: Vec<OpRow> = self.list.iter().map(|group| self.row(trace, group, recorded)).collect();
        let self_cuda_total = self.list.iter().map(|group| group.own.cuda).sum();
        OpTable {
            self_cuda_total_ns: recorded.device.then_some(self_cuda_total),
            self_cpu_total_ns: rows.iter().filter_map(|row| row.self_cpu_ns).sum(),
            rows,
        }
    }

    fn row(&self, trace: &Trace, group: &Group, recorded: Recorded) -> OpRow {
        let on_host = group.kind != OpRowKind::NoOperator;
        let name = group.name.map(|name| trace.strings.get(name));
        let host_time = |time: Ns| on_host.then_some(time);
        let device_time = |time: Ns| recorded.device.then_some(time);
        let bytes = |bytes: i64| (on_host && recorded.memory).then_some(bytes);
        OpRow {
            name: match (on_host, name) {
                (true, name) => name.unwrap_or_default().to_owned(),
                (false, Some(call)) => format!("(no operator) {call}"),
                (false, None) => "(no operator) launched before the window".to_owned(),
            },
            kind: group.kind,
            shapes: (on_host && recorded.shapes && self.by == GroupBy::Shape).then(|| self.shape_texts[group.detail as usize].clone()),
            stack: self
                .stacks
                .as_ref()
                .filter(|_| on_host && recorded.stacks)
                .map(|stacks| stacks.frames[group.detail as usize].iter().map(|&frame| trace.strings.get(frame).to_owned()).collect()),
            calls: group.calls,
            self_cpu_ns: host_time(group.self_cpu),
            cpu_ns: host_time(group.cpu),
            self_cuda_ns: device_time(group.own.cuda),
            cuda_ns: device_time(group.total.cuda),
            self_cpu_mem_bytes: bytes(group.own.host_bytes),
            cpu_mem_bytes: bytes(group.total.host_bytes),
            self_cuda_mem_bytes: bytes(group.own.device_bytes),
            cuda_mem_bytes: bytes(group.total.device_bytes),
        }
    }
}

impl Group {
    fn new(kind: OpRowKind, name: Option<StrId>, detail: u32) -> Self {
        let none = Resources::default();
        Self { kind, name, detail, first: Ns::MAX, calls: 0, cpu: Ns::ZERO, self_cpu: Ns::ZERO, own: none, total: none }
    }
}

/// What the trace has: values of the rest are absent, not zero.
#[derive(Clone, Copy)]
struct Recorded {
    device: bool,
    memory: bool,
    shapes: bool,
    stacks: bool,
}

impl Recorded {
    fn of(trace: &Trace, shape_of: &HashMap<StrId, u32, FixedState>) -> Self {
        Self {
            device: !trace.activities.is_empty(),
            memory: trace.recorded.memory || !trace.memory.is_empty(),
            shapes: trace.recorded.shapes || !shape_of.is_empty(),
            stacks: trace.recorded.stacks || !trace.frames.is_empty(),
        }
    }
}
