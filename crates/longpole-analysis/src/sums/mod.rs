//! Questions asked of a source that has sums alone: kernels, families, scopes and a first pass over [`Aggregates`].
//!
//! Device time is what the source added up; whether any of it overlapped, and what ran between, it does not say, so there is no busy time, no
//! wall and no idle time here. A value that a source leaves out is absent: a sum of counts is absent when one of them is.
//!
//! Work (bytes and operations that the program declared) stands at a kernel or at a scope around it. A scope with one kernel inside lends
//! its work to that kernel. A rate is work over the device time of the kernels that it was declared for, and of no others; the floor is the
//! time that the work takes at the device's peaks, the larger of bytes over bandwidth and operations over the peak of their width.

mod compare;
mod families;
mod kernels;
mod report;
mod scopes;
#[cfg(test)]
mod tests;

use longpole_trace::{AggregateDetail, AggregateKind, Aggregates, DeviceId, FlopWidth, Ns, Trace};

pub use compare::{SumsSide, diff_sums};
pub use families::{FamilySum, family_sums, layer_family};
pub use kernels::{KernelSum, SumOwner, kernel_sums};
pub use report::{DeviceSum, SumsTriage, sums_triage};
pub use scopes::{ScopeSum, ScopeSums, scope_sums};

use crate::roofline::{PeakKind, Peaks, ns_at};
use crate::scope::Scope;

/// No row, in packed indexes.
const NONE: u32 = u32::MAX;

/// What work comes to: sums, rates, and the floor.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WorkSum {
    /// Bytes that the program says it moved.
    pub bytes: Option<u64>,
    /// Operations that it says it did, of every width.
    pub flops: Option<u64>,
    /// Bytes a second of the kernels that bytes were declared for.
    pub bytes_per_s: Option<f64>,
    /// Operations a second of the kernels that operations were declared for.
    pub flops_per_s: Option<f64>,
    /// The floor of all kernels that have one over their device time: 1 is as fast as the device can be.
    pub floor_fraction: Option<f64>,
}

/// Sums while they are made. All of them can be added to each other.
#[derive(Clone, Copy, Debug)]
struct Sum {
    /// Absent when a count is missing.
    calls: Option<u64>,
    time: Option<Ns>,
    cycles: Option<u64>,
    bytes: Option<u64>,
    flops: Option<u64>,
    /// Device time of kernels whose bytes, operations, or floor are in the sums.
    bytes_time: Ns,
    flops_time: Ns,
    floor_time: Ns,
    floor: Ns,
}

impl Default for Sum {
    fn default() -> Self {
        Self {
            calls: Some(0),
            time: None,
            cycles: None,
            bytes: None,
            flops: None,
            bytes_time: Ns::ZERO,
            flops_time: Ns::ZERO,
            floor_time: Ns::ZERO,
            floor: Ns::ZERO,
        }
    }
}

/// The sum of what is there.
fn both(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.saturating_add(b)),
        (only, None) | (None, only) => only,
    }
}

impl Sum {
    fn add(&mut self, other: &Self) {
        self.calls = self.calls.zip(other.calls).map(|(a, b)| a.saturating_add(b));
        self.time = match (self.time, other.time) {
            (Some(a), Some(b)) => Some(a + b),
            (only, None) | (None, only) => only,
        };
        self.cycles = both(self.cycles, other.cycles);
        self.bytes = both(self.bytes, other.bytes);
        self.flops = both(self.flops, other.flops);
        self.bytes_time += other.bytes_time;
        self.flops_time += other.flops_time;
        self.floor_time += other.floor_time;
        self.floor += other.floor;
    }

    fn work(&self) -> WorkSum {
        let rate = |amount: Option<u64>, time: Ns| amount.filter(|_| time > Ns::ZERO).map(|amount| amount as f64 / time.as_secs_f64());
        WorkSum {
            bytes: self.bytes,
            flops: self.flops,
            bytes_per_s: rate(self.bytes, self.bytes_time),
            flops_per_s: rate(self.flops, self.flops_time),
            floor_fraction: (self.floor_time > Ns::ZERO && self.floor > Ns::ZERO)
                .then(|| self.floor.get() as f64 / self.floor_time.get() as f64),
        }
    }
}

/// Work without anything else.
fn has_work(detail: &AggregateDetail) -> bool {
    detail.bytes.is_some() || detail.all_flops().is_some()
}

/// The rows of a scope, with the work of each where it belongs.
pub(crate) struct Sums<'t> {
    trace: &'t Trace,
    /// By row: whether it is in scope.
    included: Vec<bool>,
    /// By row: the row that has its work, itself or the only kernel inside.
    lender: Vec<u32>,
    /// By row: what is known of its work, for the device of the kernels that it is for.
    floors: Vec<Option<Ns>>,
    /// By row: whether bytes, operations and a floor are declared at it or around it.
    covered: Vec<[bool; 3]>,
    /// By row: whether its work is to be counted, which that of a scope is whose kernels are all in scope.
    counts_work: Vec<bool>,
}

impl<'t> Sums<'t> {
    /// Looks at every row twice: from the inside out, and back.
    pub(crate) fn new(trace: &'t Trace, scope: &Scope) -> Self {
        let table = &trace.aggregates;
        let rows = table.len();
        let included: Vec<bool> = (0..rows).map(|row| scope.includes_aggregate(trace, row)).collect();
        // Kernels in each row, those in scope, and one of them.
        let (mut below, mut below_in, mut kernel) = (vec![0_u32; rows], vec![0_u32; rows], vec![NONE; rows]);
        for row in (0..rows).rev() {
            if table.kind[row] != AggregateKind::Scope {
                below[row] += 1;
                below_in[row] += u32::from(included[row]);
                kernel[row] = row as u32;
            }
            if let Some(parent) = table.parent(row) {
                let parent = parent.index();
                below[parent] += below[row];
                below_in[parent] += below_in[row];
                // Rows are met last to first, so this leaves the first kernel.
                if kernel[row] != NONE && table.kind[parent] == AggregateKind::Scope {
                    kernel[parent] = kernel[row];
                }
            }
        }
        let mut lender: Vec<u32> = (0..rows).map(|row| if has_work(&table.detail(row)) { row as u32 } else { NONE }).collect();
        for row in (0..rows).rev() {
            let only = kernel[row];
            let lends = table.kind[row] == AggregateKind::Scope && lender[row] == row as u32 && below[row] == 1;
            if lends && lender[only as usize] == NONE {
                lender[only as usize] = row as u32;
                lender[row] = NONE;
            }
        }
        let counts_work: Vec<bool> = (0..rows).map(|row| included[row] && below[row] == below_in[row]).collect();
        let peaks: Vec<Option<Peaks>> = trace.devices.iter().map(|device| Peaks::of_device(&device.properties)).collect();
        let floors: Vec<Option<Ns>> = (0..rows)
            .map(|row| {
                let detail = (lender[row] != NONE).then(|| table.detail(lender[row] as usize))?;
                let device = table.device(if kernel[row] == NONE { row } else { kernel[row] as usize })?;
                floor(&detail, peaks[device.index()].as_ref()?)
            })
            .collect();
        let mut sums = Self { trace, included, lender, floors, covered: vec![[false; 3]; rows], counts_work };
        for row in 0..rows {
            let detail = sums.declared(row);
            let own = [detail.bytes.is_some(), detail.all_flops().is_some(), sums.counts_work[row] && sums.floors[row].is_some()];
            let around = table.parent(row).map_or([false; 3], |parent| sums.covered[parent.index()]);
            sums.covered[row] = std::array::from_fn(|what| own[what] || around[what]);
        }
        sums
    }

    fn table(&self) -> &'t Aggregates {
        &self.trace.aggregates
    }

    /// The work that counts as that of a row.
    fn declared(&self, row: usize) -> AggregateDetail {
        let lender = self.lender[row];
        if lender == NONE || !self.counts_work[row] { AggregateDetail::default() } else { self.table().detail(lender as usize) }
    }

    /// A row's own numbers. Of a kernel `covered` says which time its work is of: its own alone, or also that declared around it.
    fn own(&self, row: usize, with_around: bool) -> Sum {
        let table = self.table();
        if !self.included[row] {
            return Sum::default();
        }
        let declared = self.declared(row);
        let floor = self.floors[row].filter(|_| self.counts_work[row]);
        let time = table.device_ns(row);
        let is_scope = table.kind[row] == AggregateKind::Scope;
        let covered =
            if with_around { self.covered[row] } else { [declared.bytes.is_some(), declared.all_flops().is_some(), floor.is_some()] };
        let time_if = |what: usize| if covered[what] { time.unwrap_or_default() } else { Ns::ZERO };
        Sum {
            calls: if is_scope { Some(0) } else { table.count(row) },
            time,
            cycles: table.detail(row).cycles,
            bytes: declared.bytes,
            flops: declared.all_flops(),
            bytes_time: time_if(0),
            flops_time: time_if(1),
            floor_time: time_if(2),
            floor: floor.unwrap_or_default(),
        }
    }

    /// Rows of kernels and layers in scope.
    fn kernel_rows(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.table().len()).filter(|&row| self.included[row] && self.table().kind[row] != AggregateKind::Scope)
    }

    /// The device of a row.
    fn device(&self, row: usize) -> Option<DeviceId> {
        self.table().device(row)
    }
}

/// The shortest time that work takes on a device: the larger of bytes over bandwidth, and operations over the peak of their width. Of a width that
/// several types have, the fastest counts; operations of unknown width and of widths without a known peak are left out, so a floor is never
/// above the truth. Absent when there is nothing to hold against a peak.
fn floor(work: &AggregateDetail, peaks: &Peaks) -> Option<Ns> {
    let memory = work.bytes.and_then(|bytes| ns_at(bytes, peaks.memory_bytes_per_s));
    let of_width = |width: FlopWidth| {
        let kinds: &[PeakKind] = match width {
            FlopWidth::Unknown => &[],
            FlopWidth::Bits4 => &[PeakKind::Fp4],
            FlopWidth::Bits8 => &[PeakKind::Fp8, PeakKind::Int8],
            FlopWidth::Bits16 => &[PeakKind::Fp16, PeakKind::Bf16],
            FlopWidth::Bits32 => &[PeakKind::Fp32, PeakKind::Tf32],
            FlopWidth::Bits64 => &[PeakKind::Fp64, PeakKind::Fp64Tensor],
        };
        let peak = kinds.iter().filter_map(|&kind| peaks.flops_per_s(kind)).max()?;
        ns_at(work.flops[width as usize]?, peak)
    };
    let compute = FlopWidth::ALL.into_iter().filter_map(of_width).reduce(|a, b| a + b);
    memory.into_iter().chain(compute).max()
}
