//! The roofline table: rows by operator, shapes and types, their device time beside their floor.

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use longpole_trace::{ActivityId, Detail, HostOpId, MemcpyKind, Ns, StrId, Trace};

use super::dtype::Dtype;
use super::formulas::{self, WorkFamily};
use super::peaks::{PeakKind, Peaks};
use super::shapes::{Inputs, RecordedInputs};
use super::work::{Engine, Floor, Roof, UnknownWork, Work};
use crate::families::{Family, FamilyOfName};
use crate::index::{HostRow, NodeId, TraceIndex};
use crate::scope::Scope;

/// A row whose kernels take at most this long each is launch-bound, if its floor is below half of what it took. Data-centre GPUs need 1 to 3
/// microseconds for a kernel that does next to nothing: blocks are placed, a chain of loads goes to memory and back, and the end is
/// signalled.
pub const LAUNCH_BOUND_KERNEL_NS: Ns = Ns(4_000);

/// A row whose floor is below this for each kernel is launch-bound however long it took: its work is a small part of what any kernel takes, so
/// that neither arithmetic nor memory can be what it waits for.
pub const NEGLIGIBLE_FLOOR_NS: Ns = Ns(100);

/// What keeps a row from being faster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// Arithmetic is the higher floor.
    ComputeBound,
    /// Moving the bytes is the higher floor.
    MemoryBound,
    /// The kernels are about as short as kernels can be, and the work itself would take less than half of that: fewer launches help, a faster kernel does not.
    LaunchBound,
}

impl Verdict {
    /// The name used in text and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ComputeBound => "compute_bound",
            Self::MemoryBound => "memory_bound",
            Self::LaunchBound => "launch_bound",
        }
    }
}

/// Why a row can be faster than its floor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FasterThan {
    /// Faster than memory: its bytes fit into the largest cache, so they were there already or never left it.
    Cache,
    /// Faster than memory though its bytes do not all fit into the cache (or its size is not known): a part was there, or not all of an input was read.
    Memory,
    /// Faster than the arithmetic peak: the kernel does fewer operations than the definition (Winograd), in a faster type than assumed, or the clock is above the one
    /// that the peak is given at.
    Compute,
}

impl FasterThan {
    /// The name used in text and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cache => "cache",
            Self::Memory => "memory",
            Self::Compute => "compute",
        }
    }
}

/// One row of the table: calls of one operator on inputs of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct RooflineRow {
    /// Operator name; a kernel's family for device work that no operator owns.
    pub name: String,
    /// Input shapes as recorded.
    pub shapes: Option<String>,
    /// Input types as recorded.
    pub types: Option<String>,
    /// The kernel that most of the row's time is of.
    pub kernel: Option<String>,
    /// Calls that launched device work. Absent for device work that no operator owns.
    pub calls: Option<u64>,
    /// Device activities they launched themselves.
    pub activities: u64,
    /// Union of these activities' times, on each device; the devices are added up.
    pub device_ns: Ns,
    /// Which formula was used; absent when there is none.
    pub family: Option<WorkFamily>,
    /// The work of one call, or why it is not known.
    pub work: Result<Work, UnknownWork>,
    /// The floor of one call. Absent when the work or the device is not known.
    pub floor: Option<Floor>,
    /// The floor of all calls: that of one, times their number.
    pub floor_ns: Option<Ns>,
    /// Device time over floor: 1 is perfect, below 1 see [`Self::faster_than`].
    pub time_over_floor: Option<f64>,
    /// Operations a second over the row's device time.
    pub flops_per_s: Option<f64>,
    /// Least bytes a second over the row's device time. Not what memory moved: the cache may have served a part, or waste been added.
    pub bytes_per_s: Option<f64>,
    /// What keeps it from being faster.
    pub verdict: Option<Verdict>,
    /// Set when the row took less than its floor.
    pub faster_than: Option<FasterThan>,
}

impl RooflineRow {
    /// Device time above the floor, which a perfect kernel would win; 0 for rows faster than their floor.
    pub fn above_floor_ns(&self) -> Option<Ns> {
        self.floor_ns.map(|floor| (self.device_ns - floor).max(Ns::ZERO))
    }
}

/// Rows whose work is not known for one reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownRows {
    /// The reason.
    pub reason: UnknownWork,
    /// How many rows.
    pub rows: u64,
    /// Sum of their device time. Rows can overlap, so the sum can exceed the device's busy time.
    pub device_ns: Ns,
}

/// The roofline table.
#[derive(Clone, Debug, PartialEq)]
pub struct RooflineTable {
    /// The peaks that rows were held against.
    pub peaks: Option<Peaks>,
    /// Rows, most device time first. Those of unknown work are among them.
    pub rows: Vec<RooflineRow>,
    /// Rows of unknown work by reason, most device time first.
    pub unknown: Vec<UnknownRows>,
    /// Union of all device activities in scope, on each device; the devices are added up.
    pub busy_ns: Ns,
    /// The part of it in which work runs whose amount is known.
    pub covered_ns: Ns,
    /// Sum of the floors of all rows that have one.
    pub floor_ns: Option<Ns>,
    /// Sum over these rows of the device time above the floor.
    pub above_floor_ns: Option<Ns>,
}

impl RooflineTable {
    /// The share of busy time in which work runs whose amount is known; absent when nothing ran.
    pub fn covered_fraction(&self) -> Option<f64> {
        (self.busy_ns > Ns::ZERO).then(|| self.covered_ns.get() as f64 / self.busy_ns.get() as f64)
    }
}

/// Why there are no peaks for a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoPeaks {
    /// The trace does not say what the devices are.
    NotRecorded,
    /// The table has no such device; its name.
    UnknownDevice(String),
    /// The devices in scope are of several kinds; their names.
    SeveralKinds(Vec<String>),
}

/// The peaks of the devices in scope, from the table.
///
/// # Errors
/// When the trace does not say what they are, the table does not have them, or they are of several kinds.
pub fn peaks_of(trace: &Trace, scope: &Scope) -> Result<Peaks, NoPeaks> {
    let mut found: Vec<Result<Peaks, NoPeaks>> = Vec::new();
    for (at, device) in trace.devices.iter().enumerate() {
        if !scope.includes_device(trace, longpole_trace::DeviceId::from_index(at)) {
            continue;
        }
        let properties = &device.properties;
        let of_device = Peaks::of_device(properties).ok_or_else(|| match &properties.name {
            Some(name) if !name.is_empty() => NoPeaks::UnknownDevice(name.clone()),
            _ => NoPeaks::NotRecorded,
        });
        // Devices that are mentioned but not described do not spoil what is known of the others.
        if of_device != Err(NoPeaks::NotRecorded) && !found.contains(&of_device) {
            found.push(of_device);
        }
    }
    match found.len() {
        0 => Err(NoPeaks::NotRecorded),
        1 => found.remove(0),
        _ => Err(NoPeaks::SeveralKinds(
            found
                .into_iter()
                .map(|found| {
                    found.map_or_else(
                        |unknown| if let NoPeaks::UnknownDevice(name) = unknown { name } else { String::new() },
                        |peaks| peaks.name,
                    )
                })
                .collect(),
        )),
    }
}

/// Everything about an operator call that its work follows from.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Signature {
    name: StrId,
    inputs: [Option<StrId>; 4],
}

/// Works out the work of operator calls, each distinct signature once.
#[derive(Debug)]
pub struct OpWork<'t> {
    trace: &'t Trace,
    known: HashMap<Signature, (Option<WorkFamily>, Result<Work, UnknownWork>), FixedState>,
}

impl std::fmt::Debug for Signature {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Signature").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<'t> OpWork<'t> {
    /// For the operators of a trace.
    pub fn new(trace: &'t Trace) -> Self {
        Self { trace, known: HashMap::with_hasher(FixedState::default()) }
    }

    /// The work of one call, and the formula that was used. `kernel` is the name of a kernel the call launched: for lists of tensors it alone says the type.
    pub fn of(&mut self, op: HostOpId, kernel: Option<StrId>) -> (Option<WorkFamily>, Result<Work, UnknownWork>) {
        let signature = self.signature(op);
        *self.known.entry(signature).or_insert_with(|| work_of(self.trace, signature, kernel))
    }

    fn signature(&self, op: HostOpId) -> Signature {
        let (ops, row) = (&self.trace.host_ops, op.index());
        Signature { name: ops.name[row], inputs: [ops.shapes(row), ops.types(row), ops.strides(row), ops.values(row)] }
    }
}

fn work_of(trace: &Trace, signature: Signature, kernel: Option<StrId>) -> (Option<WorkFamily>, Result<Work, UnknownWork>) {
    let text = |id: Option<StrId>| id.map(|id| trace.strings.get(id));
    let Some(formula) = formulas::formula(trace.strings.get(signature.name)) else { return (None, Err(UnknownWork::NoFormula)) };
    let [shapes, types, strides, values] = signature.inputs.map(text);
    let inputs = Inputs::read(RecordedInputs { shapes, types, strides, values, kernel: text(kernel) });
    (Some(formula.family), inputs.and_then(|inputs| (formula.work)(&inputs)))
}

/// What an activity is counted under.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    /// An operator's own work.
    Op(Signature),
    /// What an operator launched besides, or what is limited by something else.
    Apart(Signature, UnknownWork),
    /// Work that no operator owns, by family.
    NoOperator(Family),
}

struct Group {
    key: Key,
    calls: u64,
    activities: u64,
    device_ns: Ns,
    family: Option<WorkFamily>,
    work: Result<Work, UnknownWork>,
    /// The kernel with most time so far, and that time.
    kernel: Option<(StrId, Ns)>,
}

/// Adds the part of `[start, end]` beyond what earlier activities reached. Activities come by start.
fn extend(reach: &mut Ns, start: Ns, end: Ns) -> Ns {
    let from = start.max(*reach);
    *reach = (*reach).max(end);
    (end - from).max(Ns::ZERO)
}

/// The roofline table of a scope. Without peaks, rows have their work but no floor.
pub fn roofline(index: &TraceIndex<'_>, scope: &Scope, peaks: Option<&Peaks>) -> RooflineTable {
    let trace = index.trace();
    let collected = Collector::new(index).run(scope);
    let mut rows: Vec<RooflineRow> = collected.groups.iter().map(|group| row(trace, group, peaks)).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.device_ns));
    let mut unknown: Vec<UnknownRows> = Vec::new();
    let (mut floor_ns, mut above_floor_ns) = (None, None);
    for row in &rows {
        if let Err(reason) = row.work {
            match unknown.iter_mut().find(|rows| rows.reason == reason) {
                Some(known) => (known.rows, known.device_ns) = (known.rows + 1, known.device_ns + row.device_ns),
                None => unknown.push(UnknownRows { reason, rows: 1, device_ns: row.device_ns }),
            }
        }
        if let (Some(floor), Some(above)) = (row.floor_ns, row.above_floor_ns()) {
            *floor_ns.get_or_insert(Ns::ZERO) += floor;
            *above_floor_ns.get_or_insert(Ns::ZERO) += above;
        }
    }
    unknown.sort_by_key(|rows| std::cmp::Reverse(rows.device_ns));
    let Collector { busy_ns, covered_ns, .. } = collected;
    RooflineTable { peaks: peaks.cloned(), rows, unknown, busy_ns, covered_ns, floor_ns, above_floor_ns }
}

fn row(trace: &Trace, group: &Group, peaks: Option<&Peaks>) -> RooflineRow {
    let text = |id: StrId| trace.strings.get(id).to_owned();
    let (name, signature) = match group.key {
        Key::Op(signature) | Key::Apart(signature, _) => (text(signature.name), Some(signature)),
        Key::NoOperator(family) => (format!("(no operator) {}", family.name()), None),
    };
    let input = |at: usize| signature.and_then(|signature| signature.inputs[at]).map(text);
    let kernel = group.kernel.map(|(name, _)| text(name));
    let work = group.work.ok();
    let floor = work.zip(peaks).and_then(|(work, peaks)| work.floor(peaks, peak_by_name(work, kernel.as_deref())));
    let calls = i64::try_from(group.calls).unwrap_or(i64::MAX);
    let floor_ns = floor.map(|floor| Ns(floor.ns.get().saturating_mul(calls)));
    let device_ns = group.device_ns;
    let rate = |amount: u64| {
        let total = u128::from(amount) * u128::from(group.calls);
        (device_ns > Ns::ZERO).then(|| total as f64 / device_ns.as_secs_f64())
    };
    let is_faster = floor_ns.is_some_and(|floor| device_ns < floor);
    let faster_than = floor.zip(work).filter(|_| is_faster).map(|(floor, work)| match floor.roof {
        Roof::Compute => FasterThan::Compute,
        Roof::Memory => {
            let bytes = work.bytes_most.unwrap_or(work.bytes);
            let fits = peaks.and_then(|peaks| peaks.cache_bytes).is_some_and(|cache| bytes <= cache);
            if fits { FasterThan::Cache } else { FasterThan::Memory }
        }
    });
    let activities = i64::try_from(group.activities).unwrap_or(i64::MAX);
    let is_short = device_ns.get() <= LAUNCH_BOUND_KERNEL_NS.get().saturating_mul(activities);
    let is_negligible = floor_ns.is_some_and(|floor| floor.get() < NEGLIGIBLE_FLOOR_NS.get().saturating_mul(activities));
    let verdict = floor.zip(floor_ns).map(|(floor, total)| match floor.roof {
        _ if (is_short || is_negligible) && total + total < device_ns => Verdict::LaunchBound,
        Roof::Compute => Verdict::ComputeBound,
        Roof::Memory => Verdict::MemoryBound,
    });
    RooflineRow {
        name,
        shapes: input(0),
        types: input(1),
        kernel,
        calls: signature.map(|_| group.calls),
        activities: group.activities,
        device_ns,
        family: group.family,
        work: group.work,
        floor,
        floor_ns,
        time_over_floor: floor_ns.filter(|&floor| floor > Ns::ZERO).map(|floor| device_ns.get() as f64 / floor.get() as f64),
        flops_per_s: work.filter(|work| work.flops > 0).and_then(|work| rate(work.flops)),
        bytes_per_s: work.filter(|work| work.bytes > 0).and_then(|work| rate(work.bytes)),
        verdict,
        faster_than,
    }
}

/// The peak of an fp32 matrix product whose kernel says that it does not use TF32: the trace does not record whether that was allowed.
fn peak_by_name(work: Work, kernel: Option<&str>) -> Option<PeakKind> {
    let name = kernel.filter(|_| work.engine == Engine::Tensor && work.dtype == Dtype::F32)?;
    let says = |part: &str| name.contains(part);
    ((says("sgemm") || says("simt") || says("ffma")) && !says("tf32") && !says("1688")).then_some(PeakKind::Fp32)
}

struct Collector<'a, 't> {
    index: &'a TraceIndex<'t>,
    works: OpWork<'t>,
    groups: Vec<Group>,
    of_key: HashMap<Key, u32, FixedState>,
    /// A bit a node: its call was counted, for its own work and for what stands apart.
    counted: [Vec<u64>; 2],
    /// Operators that contain one of the same family which launched work.
    outer: HashMap<NodeId, WorkFamily, FixedState>,
    busy_ns: Ns,
    covered_ns: Ns,
}

impl<'a, 't> Collector<'a, 't> {
    fn new(index: &'a TraceIndex<'t>) -> Self {
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
        }
    }

    fn run(mut self, scope: &Scope) -> Self {
        let trace = self.index.trace();
        let activities = &trace.activities;
        let inside = |&row: &u32| scope.includes_activity(self.index, ActivityId(row));
        let mut by_start: Vec<u32> = (0..activities.len() as u32).filter(inside).collect();
        by_start.sort_by_key(|&row| activities.start[row as usize]);
        self.find_outer(&by_start);
        let mut families = FamilyOfName::new(trace);
        let mut reach: HashMap<(u32, u32), Ns, FixedState> = HashMap::with_hasher(FixedState::default());
        let mut times: HashMap<(u32, StrId), Ns, FixedState> = HashMap::with_hasher(FixedState::default());
        let (mut busy, mut covered) = (vec![Ns::MIN; trace.devices.len()], vec![Ns::MIN; trace.devices.len()]);
        for row in by_start.into_iter().map(|row| row as usize) {
            let at = self.group_of(row, &mut families);
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
