//! The roofline table: rows by operator, shapes and types, their device time beside their floor.

use longpole_trace::{DeviceId, Ns, StrId, Trace};

use super::collect::{Collector, Group, Key};
use super::dtype::Dtype;
use super::formulas::WorkFamily;
use super::peaks::{PeakKind, Peaks};
use super::work::{Engine, Floor, Roof, UnknownWork, Work};
use crate::index::TraceIndex;
use crate::scope::Scope;

/// A row whose kernels take at most this long each is launch-bound, if its floor is below half of what it took. Data-centre GPUs need 1
/// to 3 microseconds for a kernel that does next to nothing: blocks are placed, a chain of loads goes to memory and back, and the end is
/// signalled.
pub const LAUNCH_BOUND_KERNEL_NS: Ns = Ns(4_000);

/// A row whose floor is below this for each kernel is launch-bound however long it took: its work is a small part of what any kernel
/// takes, so that neither arithmetic nor memory can be what it waits for.
pub const NEGLIGIBLE_FLOOR_NS: Ns = Ns(100);

/// What keeps a row from being faster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// Arithmetic is the higher floor.
    ComputeBound,
    /// Moving the bytes is the higher floor.
    MemoryBound,
    /// The kernels are about as short as kernels can be, and the work itself would take less than half of that: fewer launches help, a
    /// faster kernel does not.
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
    /// Faster than memory though its bytes do not all fit into the cache (or its size is not known): a part was there, or not all of an
    /// input was read.
    Memory,
    /// Faster than the arithmetic peak: the kernel does fewer operations than the definition (Winograd), in a faster type than assumed,
    /// or the clock is above the one that the peak is given at.
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
        if !scope.includes_device(trace, DeviceId::from_index(at)) {
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
pub(super) fn peak_by_name(work: Work, kernel: Option<&str>) -> Option<PeakKind> {
    let name = kernel.filter(|_| work.engine == Engine::Tensor && work.dtype == Dtype::F32)?;
    let says = |part: &str| name.contains(part);
    ((says("sgemm") || says("simt") || says("ffma")) && !says("tf32") && !says("1688")).then_some(PeakKind::Fp32)
}
