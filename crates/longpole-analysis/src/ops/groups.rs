//! Groups of the operator table while they are filled, and their rows.

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use longpole_trace::{HostOpId, Ns, StrId, Trace};

use super::shapes::torch_shapes;
use super::stacks::Stacks;
use super::{GroupBy, OpRow, OpRowKind, OpTable};
use crate::index::{HostRow, HostTree, NodeId};

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

/// What torch writes for calls with no shapes; number 0.
const NO_SHAPES: &str = "[]";

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
    /// Number of a shapes string, and of the text that torch makes of it.
    shape_of: HashMap<StrId, u32, FixedState>,
    shape_numbers: HashMap<String, u32, FixedState>,
    shape_texts: Vec<String>,
    stacks: Option<&'t Stacks>,
}

impl<'t> Groups<'t> {
    pub(super) fn new(tree: &'t HostTree<'t>, by: GroupBy, stacks: Option<&'t Stacks>) -> Self {
        Self {
            tree,
            by,
            list: Vec::new(),
            by_name: vec![UNSET; 3 * tree.trace().strings.len()],
            by_detail: HashMap::default(),
            unrecorded: UNSET,
            shape_of: HashMap::default(),
            shape_numbers: std::iter::once((NO_SHAPES.to_owned(), 0)).collect(),
            shape_texts: vec![NO_SHAPES.to_owned()],
            stacks,
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
        if self.by == GroupBy::Name {
            // Nearly every call comes this way.
            let known = self.by_name[self.name_slot(kind, name)];
            if known != UNSET {
                let group = &mut self.list[known as usize];
                group.first = group.first.min(start);
                return Some(group);
            }
        }
        let detail = if self.by == GroupBy::Name { 0 } else { self.detail(node, op) };
        Some(self.group(kind, Some(name), detail, start))
    }

    /// The group of device work outside operators, by the name of the launching call if that is recorded.
    pub(super) fn of_launch(&mut self, call: Option<StrId>, start: Ns) -> &mut Group {
        self.group(OpRowKind::NoOperator, call, 0, start)
    }

    fn group(&mut self, kind: OpRowKind, name: Option<StrId>, detail: u32, start: Ns) -> &mut Group {
        let next = self.list.len() as u32;
        let number = match name.map(|name| self.name_slot(kind, name)) {
            None => &mut self.unrecorded,
            Some(slot) if self.by == GroupBy::Name || kind == OpRowKind::NoOperator => &mut self.by_name[slot],
            Some(slot) => self.by_detail.entry((slot as u32, detail)).or_insert(UNSET),
        };
        if *number == UNSET {
            *number = next;
            self.list.push(Group::new(kind, name, detail));
        }
        let group = &mut self.list[*number as usize];
        group.first = group.first.min(start);
        group
    }

    /// Adds the groups of another part of the same trace.
    pub(super) fn merge(&mut self, other: Self) {
        for group in other.list {
            let detail = match self.by {
                GroupBy::Shape => self.shape_number(other.shape_texts[group.detail as usize].clone()),
                // Stacks are numbered for the whole trace.
                GroupBy::Name | GroupBy::Stack(_) => group.detail,
            };
            let sum = self.group(group.kind, group.name, detail, group.first);
            sum.calls += group.calls;
            sum.cpu += group.cpu;
            sum.self_cpu += group.self_cpu;
            sum.own.add(group.own);
            sum.total.add(group.total);
        }
    }

    fn shape_number(&mut self, text: String) -> u32 {
        let next = self.shape_texts.len() as u32;
        *self.shape_numbers.entry(text).or_insert_with_key(|text| {
            self.shape_texts.push(text.clone());
            next
        })
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
        if let Some(stacks) = self.stacks {
            return stacks.of_node[node.index()];
        }
        let trace = self.tree.trace();
        let Some(shapes) = op.and_then(|op| trace.host_ops.shapes(op.index())) else { return 0 };
        if let Some(&known) = self.shape_of.get(&shapes) {
            return known;
        }
        let number = self.shape_number(torch_shapes(trace.strings.get(shapes)));
        self.shape_of.insert(shapes, number);
        number
    }

    /// The finished table.
    pub(super) fn into_table(mut self) -> OpTable {
        let trace = self.tree.trace();
        let recorded = Recorded::of(trace);
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
                (false, None) => "(no operator) launch not recorded".to_owned(),
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
    fn of(trace: &Trace) -> Self {
        Self {
            device: !trace.activities.is_empty() || trace.parts.iter().any(|part| part.has_device_work),
            memory: trace.recorded.memory || !trace.memory.is_empty(),
            shapes: trace.recorded.shapes || (0..trace.host_ops.len()).any(|op| trace.host_ops.shapes(op).is_some()),
            stacks: trace.recorded.stacks || !trace.frames.is_empty(),
        }
    }
}
