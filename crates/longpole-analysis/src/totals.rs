//! Totals before tables: wall, busy, idle, and how much of each kind of device time was exposed.
//!
//! Everything is a union of intervals per device, so work that overlaps is not counted twice; the totals are sums over
//! devices. Work of an accelerator with no name for its kind counts as a kernel, so that kernels, copies and fills add up
//! to all activities.
//!
//! Work counts by its scope; that nothing ran, or ran beside something, is said of the device, so there work from outside the scope
//! counts too.

use longpole_trace::{ActivityId, ActivityKind, DeviceId, Interval, IntervalSet, Ns, Trace};

use crate::covers::{Cover, sums};
use crate::families::{Family, FamilyOfName};
use crate::index::TraceIndex;
use crate::scope::Scope;
use crate::triage::rank_number;

/// Totals of one device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceTotals {
    /// The device.
    pub device: DeviceId,
    /// Union of all its activity.
    pub busy_ns: Ns,
    /// First start to last end of its activity, without the time between the windows of a recording.
    pub span_ns: Ns,
    /// The part of the span in which it ran nothing, from outside the scope neither.
    pub idle_ns: Ns,
    /// Time inside the scope in which it ran work from outside the scope alone.
    pub outside_ns: Ns,
    /// Union of its kernels, communication kernels included.
    pub kernel_busy_ns: Ns,
    /// Union of its copies and fills.
    pub copy_busy_ns: Ns,
    /// Union of its communication kernels.
    pub comm_busy_ns: Ns,
    /// Copy time with no kernel running.
    pub exposed_copy_ns: Ns,
    /// Communication time with no other kernel running.
    pub exposed_comm_ns: Ns,
    /// Its activities.
    pub activities: u64,
}

/// What lies between the windows of a recording that has several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unrecorded {
    /// Windows that the scope reaches into.
    pub windows: u64,
    /// Time between the first and the last of them in which nothing was recorded.
    pub between_ns: Ns,
}

impl Unrecorded {
    /// Of a scope.
    fn of(index: &TraceIndex<'_>, scope: &Scope) -> Option<Self> {
        let unobserved = scope.unobserved(index.trace());
        let extent = if unobserved.is_empty() { None } else { scope.intervals(index).extent() }?;
        let (mut windows, mut between_ns) = (1, Ns::ZERO);
        for stretch in unobserved.within(extent) {
            windows += 1;
            between_ns += stretch.len();
        }
        (windows > 1).then_some(Self { windows, between_ns })
    }
}

/// Totals of the scope. Device times are sums over devices; absent when no device activity was recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct Totals {
    /// First to last event of any kind; for a scope, the union of its instances, device work included. Time in which nothing was recorded is
    /// not in it.
    pub wall_ns: Ns,
    /// Time inside the scope, from its first to its last event, in which nothing was recorded; absent where all was.
    pub unrecorded: Option<Unrecorded>,
    /// Union of device activity.
    pub gpu_busy_ns: Option<Ns>,
    /// The part of the span in which nothing ran, from outside the scope neither.
    pub gpu_idle_ns: Option<Ns>,
    /// Time inside the scope in which devices ran work from outside the scope alone.
    pub gpu_outside_ns: Option<Ns>,
    /// Busy over wall, 0..1 (over wall times devices, where several were active).
    pub gpu_busy_fraction: Option<f64>,
    /// Kernel time.
    pub kernel_busy_ns: Option<Ns>,
    /// Copy and fill time.
    pub copy_busy_ns: Option<Ns>,
    /// Communication time.
    pub comm_busy_ns: Option<Ns>,
    /// Copy time with no kernel running.
    pub exposed_copy_ns: Option<Ns>,
    /// Communication time with no other kernel running.
    pub exposed_comm_ns: Option<Ns>,
    /// Kernels.
    pub kernels: u64,
    /// Copies.
    pub memcpys: u64,
    /// Fills.
    pub memsets: u64,
    /// API calls that launched device work.
    pub launches: u64,
    /// Operator calls.
    pub host_ops: u64,
    /// Each active device apart.
    pub devices: Vec<DeviceTotals>,
}

impl Totals {
    /// What shares of the devices' time are of, summed over devices: first start to last end of their work, and what they did in the scope
    /// before and after for others. Absent where idle time is.
    pub fn gpu_span_ns(&self) -> Option<Ns> {
        Some(self.gpu_busy_ns? + self.gpu_idle_ns? + self.gpu_outside_ns?)
    }
}

/// What ran on one device: rows of the activities, by class.
#[derive(Default)]
struct Work {
    rows: [Vec<u32>; CLASSES],
    extent: Option<Interval>,
    activities: u64,
}

/// Kernels but communication, communication, copies and fills; first in scope, then from outside.
const CLASSES: usize = 6;
/// Bits of classes.
const COMPUTE: usize = 1;
const COMMUNICATION: usize = 1 << 1;
const COPIES: usize = 1 << 2;
const OUTSIDE: usize = 3;
/// Bits of what is not work: inside the scope, inside the extent.
const SCOPE: usize = 1 << CLASSES;
const EXTENT: usize = 1 << (CLASSES + 1);

/// The union of all device work of a scope, on each device; the devices are added up. Absent when nothing ran.
pub fn device_busy(index: &TraceIndex<'_>, scope: &Scope) -> Option<Ns> {
    let trace = index.trace();
    let activities = &trace.activities;
    let mut devices: Vec<Vec<Interval>> = trace.devices.iter().map(|_| Vec::new()).collect();
    for row in (0..activities.len()).filter(|&row| scope.includes_activity(index, ActivityId::from_index(row))) {
        devices[trace.lanes[activities.lane[row].index()].device.index()].push(Interval::new(activities.start[row], activities.dur[row]));
    }
    devices.retain(|intervals| !intervals.is_empty());
    (!devices.is_empty()).then(|| devices.into_iter().map(|intervals| IntervalSet::from_unsorted(intervals).total()).sum())
}

/// The totals of a scope.
pub fn totals(index: &TraceIndex<'_>, scope: &Scope) -> Totals {
    let trace = index.trace();
    let activities = &trace.activities;
    let mut families = FamilyOfName::new(trace);
    let mut work: Vec<Work> = trace.devices.iter().map(|_| Work::default()).collect();
    let (mut kernels, mut memcpys, mut memsets) = (0, 0, 0);
    let mut launched = vec![false; trace.api_calls.len()];
    for row in 0..activities.len() {
        let id = ActivityId::from_index(row);
        let on_device = &mut work[trace.lanes[activities.lane[row].index()].device.index()];
        let is_kernel = matches!(activities.kind[row], ActivityKind::Kernel | ActivityKind::Other);
        let class = match is_kernel.then(|| families.get(trace, row)) {
            Some(Family::Communication) => 1,
            Some(_) => 0,
            None => 2,
        };
        if !scope.includes_activity(index, id) {
            on_device.rows[OUTSIDE + class].push(row as u32);
            continue;
        }
        on_device.rows[class].push(row as u32);
        *(match activities.kind[row] {
            ActivityKind::Kernel | ActivityKind::Other => &mut kernels,
            ActivityKind::Memcpy => &mut memcpys,
            ActivityKind::Memset => &mut memsets,
        }) += 1;
        let interval = Interval::new(activities.start[row], activities.dur[row]);
        on_device.activities += 1;
        // A zero-length activity holds no time, but the device was there: it counts for the extent.
        let extent = on_device.extent.get_or_insert(interval);
        extent.start = extent.start.min(interval.start);
        extent.end = extent.end.max(interval.end);
        if let Some(call) = index.links().call(id) {
            launched[call.index()] = true;
        }
    }
    let extent = if scope.is_whole() { IntervalSet::default() } else { scope.intervals(index) };
    let mut devices: Vec<DeviceTotals> = work
        .into_iter()
        .enumerate()
        .filter_map(|(device, work)| device_totals(trace, DeviceId::from_index(device), work, &extent))
        .collect();
    // As users number them, not as their files were found in a directory or an archive.
    devices.sort_by_key(|totals| (rank_number(trace, totals.device), trace.devices[totals.device.index()].ordinal, totals.device));
    let sum = |part: fn(&DeviceTotals) -> Ns| (!devices.is_empty()).then(|| devices.iter().map(part).sum::<Ns>());
    let wall_ns = scope.wall(index);
    let gpu_busy_ns = sum(|d| d.busy_ns);
    let available = wall_ns.get() as f64 * devices.len() as f64;
    let host_ops = &trace.host_ops;
    let host_ops = (0..host_ops.len()).filter(|&row| scope.includes_host(trace, host_ops.thread[row], host_ops.start[row])).count() as u64;
    Totals {
        wall_ns,
        unrecorded: Unrecorded::of(index, scope),
        gpu_busy_ns,
        gpu_idle_ns: sum(|d| d.idle_ns),
        gpu_outside_ns: sum(|d| d.outside_ns),
        gpu_busy_fraction: gpu_busy_ns.filter(|_| available > 0.0).map(|busy| busy.get() as f64 / available),
        kernel_busy_ns: sum(|d| d.kernel_busy_ns),
        copy_busy_ns: sum(|d| d.copy_busy_ns),
        comm_busy_ns: sum(|d| d.comm_busy_ns),
        exposed_copy_ns: sum(|d| d.exposed_copy_ns),
        exposed_comm_ns: sum(|d| d.exposed_comm_ns),
        kernels,
        memcpys,
        memsets,
        launches: launched.iter().filter(|&&launched| launched).count() as u64,
        host_ops,
        devices,
    }
}

fn device_totals(trace: &Trace, device: DeviceId, mut work: Work, scope: &IntervalSet) -> Option<DeviceTotals> {
    let extent = work.extent?;
    let activities = &trace.activities;
    for rows in &mut work.rows {
        let start = |row: &u32| activities.start[*row as usize];
        if !rows.is_sorted_by_key(start) {
            rows.sort_unstable_by_key(start);
        }
    }
    let mut covers: Vec<Cover<'_>> = Vec::new();
    let of_row = |row: &u32| Interval::new(activities.start[*row as usize], activities.dur[*row as usize]);
    for (class, rows) in work.rows.iter().enumerate().filter(|(_, rows)| !rows.is_empty()) {
        covers.push(Cover::new(1 << class, Box::new(rows.iter().map(of_row))));
    }
    let has_others = work.rows[OUTSIDE..].iter().any(|rows| !rows.is_empty());
    if has_others {
        covers.push(Cover::new(SCOPE, Box::new(scope.intervals().iter().copied())));
        covers.push(Cover::new(EXTENT, Box::new(std::iter::once(extent))));
    }
    let sums = sums(&mut covers, CLASSES + 2);
    // Time in which one of some bits was set, and none of others.
    let time = |any: usize, none: usize| -> Ns {
        sums.iter().enumerate().filter(|(bits, _)| bits & any != 0 && bits & none == 0).map(|(_, time)| *time).sum()
    };
    let kernels = COMPUTE | COMMUNICATION;
    let (own, others) = (kernels | COPIES, (kernels | COPIES) << OUTSIDE);
    // Work from outside alone, inside something.
    let alone = |bit: usize| -> Ns {
        let holds = |bits: usize| bits & others != 0 && bits & own == 0 && bits & bit != 0;
        sums.iter().enumerate().filter(|(bits, _)| holds(*bits)).map(|(_, time)| *time).sum()
    };
    let busy_ns = time(own, 0);
    // The device did no work then that anybody knows of, nor did anybody see it idle.
    let unobserved = trace.unobserved.of_rank(trace.devices[device.index()].rank as usize).time_within(extent);
    let span_ns = extent.len() - unobserved;
    Some(DeviceTotals {
        device,
        busy_ns,
        span_ns,
        idle_ns: span_ns - busy_ns - alone(EXTENT),
        outside_ns: alone(SCOPE),
        kernel_busy_ns: time(kernels, 0),
        copy_busy_ns: time(COPIES, 0),
        comm_busy_ns: time(COMMUNICATION, 0),
        exposed_copy_ns: time(COPIES, kernels | kernels << OUTSIDE),
        exposed_comm_ns: time(COMMUNICATION, COMPUTE | COMPUTE << OUTSIDE),
        activities: work.activities,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sample::Sample;

    #[test]
    fn overlapping_work_is_counted_once() {
        let mut sample = Sample::new();
        sample.op("aten::mm", 0, 50);
        sample.launch("cudaLaunchKernel", 5, 5).kernel("gemm", 100, 10);
        sample.launch("cudaLaunchKernel", 15, 5).kernel("ncclDevKernel_AllReduce", 105, 15);
        sample.launch("cudaMemcpyAsync", 25, 5).memcpy("Memcpy HtoD (Pageable -> Device)", 118, 10);
        let trace = sample.finish();
        let totals = totals(&TraceIndex::new(&trace), &Scope::whole());
        assert_eq!(totals.wall_ns, Ns(128));
        assert_eq!((totals.gpu_busy_ns, totals.gpu_idle_ns, totals.gpu_span_ns()), (Some(Ns(28)), Some(Ns(0)), Some(Ns(28))));
        assert_eq!((totals.kernel_busy_ns, totals.copy_busy_ns, totals.comm_busy_ns), (Some(Ns(20)), Some(Ns(10)), Some(Ns(15))));
        assert_eq!((totals.exposed_copy_ns, totals.exposed_comm_ns), (Some(Ns(8)), Some(Ns(10))));
        assert_eq!((totals.kernels, totals.memcpys, totals.memsets, totals.launches, totals.host_ops), (2, 1, 0, 3, 1));
    }

    #[test]
    fn without_device_work_device_times_are_absent() {
        let mut sample = Sample::new();
        sample.op("aten::mm", 0, 50);
        let trace = sample.finish();
        let totals = totals(&TraceIndex::new(&trace), &Scope::whole());
        assert_eq!((totals.wall_ns, totals.gpu_busy_ns, totals.gpu_idle_ns, totals.gpu_busy_fraction), (Ns(50), None, None, None));
        assert!(totals.devices.is_empty());
    }

    #[test]
    fn several_devices_share_the_wall() {
        let mut sample = Sample::new();
        sample.launch("cudaLaunchKernel", 0, 5).kernel("gemm", 0, 100);
        sample.on_device(1, 7);
        sample.launch("cudaLaunchKernel", 5, 5).kernel("gemm", 50, 50);
        let trace = sample.finish();
        let totals = totals(&TraceIndex::new(&trace), &Scope::whole());
        assert_eq!(totals.gpu_busy_ns, Some(Ns(150)));
        assert_eq!(totals.gpu_busy_fraction, Some(0.75));
        assert_eq!(totals.devices.len(), 2);
    }

    /// One activity: device, stream, kind (kernel, communication, copy, fill), start, duration.
    type Drawn = (u8, u8, u8, u8, u8);

    /// What a nanosecond holds, one flag a kind.
    fn naive(drawn: &[Drawn], device: u8) -> Option<[i64; 7]> {
        let of_device: Vec<_> = drawn.iter().filter(|d| d.0 == device).collect();
        let first = i64::from(of_device.iter().map(|d| d.3).min()?);
        let last = of_device.iter().map(|d| i64::from(d.3) + i64::from(d.4)).max()?;
        let mut sums = [0; 7];
        for at in 0..600 {
            let runs = |kinds: &[u8]| {
                of_device.iter().any(|d| kinds.contains(&d.2) && i64::from(d.3) <= at && at < i64::from(d.3) + i64::from(d.4))
            };
            let (compute, communication, copy) = (runs(&[0]), runs(&[1]), runs(&[2, 3]));
            sums[0] += i64::from(compute || communication || copy);
            sums[2] += i64::from(compute || communication);
            sums[3] += i64::from(copy);
            sums[4] += i64::from(communication);
            sums[5] += i64::from(copy && !compute && !communication);
            sums[6] += i64::from(communication && !compute);
        }
        sums[1] = last - first;
        Some(sums)
    }

    proptest! {
        #[test]
        fn totals_equal_those_counted_nanosecond_by_nanosecond(
            drawn in proptest::collection::vec((0_u8..2, 0_u8..3, 0_u8..4, any::<u8>(), 0_u8..60), 0..24)
        ) {
            let mut sample = Sample::new();
            for (at, &(device, stream, kind, start, dur)) in drawn.iter().enumerate() {
                sample.on_device(i64::from(device), i64::from(stream));
                let (start, dur) = (i64::from(start), i64::from(dur));
                let launch = sample.launch("cudaLaunchKernel", at as i64, 1);
                match kind {
                    0 => launch.kernel("gemm", start, dur),
                    1 => launch.kernel("ncclDevKernel_AllReduce", start, dur),
                    2 => launch.memcpy("Memcpy DtoH (Device -> Pinned)", start, dur),
                    _ => launch.memset("Memset (Device)", start, dur),
                };
            }
            let trace = sample.finish();
            let found = totals(&TraceIndex::new(&trace), &Scope::whole());
            for device in 0..2_u8 {
                let of_device = found.devices.iter().find(|d| trace.devices[d.device.index()].ordinal == i64::from(device));
                let sums = of_device.map(|d| {
                    [d.busy_ns, d.span_ns, d.kernel_busy_ns, d.copy_busy_ns, d.comm_busy_ns, d.exposed_copy_ns, d.exposed_comm_ns].map(Ns::get)
                });
                prop_assert_eq!(sums, naive(&drawn, device));
            }
            prop_assert_eq!(found.kernels + found.memcpys + found.memsets, drawn.len() as u64);
        }
    }
}
