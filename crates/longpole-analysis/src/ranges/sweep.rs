//! One pass over the ranges and launches of a thread, in order of time.
//!
//! A launch is noted in the innermost open instances only; an instance hands the union of its work to the one around it
//! when it closes: the smaller of the two is put into the larger, so that an interval moves a logarithmic number of times however
//! deep the nesting is.

use std::collections::BTreeMap;

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use longpole_trace::{ActivityId, DeviceId, Interval, IntervalSet, Ns, Trace};

use super::{DeviceWork, Instance, NONE};

/// A device activity and when its launch began.
#[derive(Clone, Copy, Debug)]
pub(super) struct Launch {
    pub(super) at: Ns,
    pub(super) activity: ActivityId,
    pub(super) is_kernel: bool,
}

/// Work on one device inside one instance.
#[derive(Clone, Debug)]
struct OnDevice {
    /// First start to last end; activities of no length count here alone.
    extent: Interval,
    /// Work launched directly inside, as it came.
    intervals: Vec<Interval>,
    /// Work of closed instances inside.
    inner: Union,
}

/// A union of intervals that grows: starts and ends, disjoint, and their summed length.
#[derive(Clone, Debug, Default)]
struct Union {
    ends: BTreeMap<Ns, Ns>,
    total: Ns,
}

/// An instance of this thread while the pass lasts.
#[derive(Clone, Debug, Default)]
struct Open {
    work: HashMap<DeviceId, OnDevice, FixedState>,
    open_children: u32,
}

/// The pass over one thread.
pub(super) struct Sweep<'a> {
    instances: &'a mut [Instance],
    /// Instances of the thread, in order of start, outer before inner.
    order: &'a [u32],
    open: Vec<Open>,
    /// Open instances by position in `order`, oldest first.
    active: Vec<usize>,
    /// Those with no open instance inside.
    innermost: Vec<usize>,
    /// What was launched inside each instance, device by device.
    extents: &'a mut Vec<(u32, DeviceId, Interval)>,
}

impl<'a> Sweep<'a> {
    /// First start to last end of what each instance launched on a device go to `extents`.
    pub(super) fn new(instances: &'a mut [Instance], order: &'a [u32], extents: &'a mut Vec<(u32, DeviceId, Interval)>) -> Self {
        Self { instances, order, open: vec![Open::default(); order.len()], active: Vec::new(), innermost: Vec::new(), extents }
    }

    fn instance(&self, at: usize) -> &Instance {
        &self.instances[self.order[at] as usize]
    }

    /// Runs the pass. `launches` are sorted by time.
    pub(super) fn run(mut self, trace: &Trace, launches: &[Launch]) {
        self.count_kernels(launches);
        // Inner instances close before those around them, and an instance is closed to a launch at its very end.
        let mut ends: Vec<usize> = (0..self.order.len()).collect();
        ends.sort_by_key(|&at| (self.instance(at).end, std::cmp::Reverse(at)));
        let mut ends = ends.into_iter().peekable();
        let mut launches = launches.iter().peekable();
        for at in 0..self.order.len() {
            let start = self.instance(at).start;
            while let Some(launch) = launches.next_if(|launch| launch.at < start) {
                self.close_until(&mut ends, launch.at);
                self.note(trace, launch);
            }
            self.close_until(&mut ends, start);
            self.begin(at);
        }
        for launch in launches {
            self.close_until(&mut ends, launch.at);
            self.note(trace, launch);
        }
        self.close_until(&mut ends, Ns::MAX);
    }

    /// Kernels inside an instance are those launched before its end less those before its start.
    fn count_kernels(&mut self, launches: &[Launch]) {
        let mut before = Vec::with_capacity(launches.len() + 1);
        before.push(0_u64);
        let mut count = 0;
        for launch in launches {
            count += u64::from(launch.is_kernel);
            before.push(count);
        }
        for &at in self.order {
            let instance = &mut self.instances[at as usize];
            let from = launches.partition_point(|launch| launch.at < instance.start);
            let to = launches.partition_point(|launch| launch.at < instance.end);
            instance.kernels = before[to.max(from)] - before[from];
        }
    }

    fn begin(&mut self, at: usize) {
        let (start, end) = (self.instance(at).start, self.instance(at).end);
        let around =
            self.active.iter().rev().copied().find(|&outer| self.instance(outer).start <= start && end <= self.instance(outer).end);
        if let Some(outer) = around {
            self.instances[self.order[at] as usize].parent = self.order[outer];
            if end > start {
                self.open[outer].open_children += 1;
                self.innermost.retain(|&inner| inner != outer);
            }
        }
        // An instance of no length has nothing launched inside, and it would hide the one around it.
        if end > start {
            self.active.push(at);
            self.innermost.push(at);
        }
    }

    fn note(&mut self, trace: &Trace, launch: &Launch) {
        let row = launch.activity.index();
        let device = trace.lanes[trace.activities.lane[row].index()].device;
        let interval = Interval::new(trace.activities.start[row], trace.activities.dur[row]);
        for &at in &self.innermost {
            self.open[at].add(device, interval);
        }
    }

    fn close_until(&mut self, ends: &mut std::iter::Peekable<std::vec::IntoIter<usize>>, now: Ns) {
        while let Some(at) = ends.next_if(|&at| self.instance(at).end <= now) {
            self.close(at);
        }
    }

    fn close(&mut self, at: usize) {
        let Some(position) = self.active.iter().rposition(|&open| open == at) else { return };
        self.active.remove(position);
        self.innermost.retain(|&inner| inner != at);
        let parent = self.instance(at).parent;
        let outer = if parent == NONE { None } else { self.active.iter().rev().copied().find(|&outer| self.order[outer] == parent) };
        let work = std::mem::take(&mut self.open[at]).work;
        let mut sum: Option<DeviceWork> = None;
        for (device, on_device) in work {
            let sum = sum.get_or_insert_default();
            sum.span += on_device.extent.len();
            self.extents.push((self.order[at], device, on_device.extent));
            let direct = IntervalSet::from_unsorted(on_device.intervals);
            let Some(outer) = outer else {
                // Nobody asks for the union of an outermost instance without others inside.
                sum.busy += if on_device.inner.ends.is_empty() { direct.total() } else { on_device.inner.with(direct.into()).total };
                continue;
            };
            let union = on_device.inner.with(direct.into());
            sum.busy += union.total;
            self.open[outer].add_inner(device, on_device.extent, union);
        }
        self.instances[self.order[at] as usize].device = sum;
        if let Some(outer) = outer {
            self.open[outer].open_children -= 1;
            if self.open[outer].open_children == 0 {
                self.innermost.push(outer);
            }
        }
    }
}

impl Open {
    fn on_device(&mut self, device: DeviceId, extent: Interval) -> &mut OnDevice {
        let known = self.work.entry(device).or_insert_with(|| OnDevice { extent, intervals: Vec::new(), inner: Union::default() });
        known.extent.start = known.extent.start.min(extent.start);
        known.extent.end = known.extent.end.max(extent.end);
        known
    }

    /// Adds an activity.
    fn add(&mut self, device: DeviceId, interval: Interval) {
        self.on_device(device, interval).intervals.push(interval);
    }

    /// Adds the work of an instance inside.
    fn add_inner(&mut self, device: DeviceId, extent: Interval, union: Union) {
        let known = self.on_device(device, extent);
        known.inner = std::mem::take(&mut known.inner).with(union);
    }
}

impl Union {
    /// The union of both.
    fn with(self, other: Self) -> Self {
        let (mut larger, smaller) = if self.ends.len() < other.ends.len() { (other, self) } else { (self, other) };
        for (start, end) in smaller.ends {
            larger.insert(start, end);
        }
        larger
    }

    /// Adds an interval that holds time.
    fn insert(&mut self, mut start: Ns, mut end: Ns) {
        // Those that begin at its end or before and end at its start or after are one with it.
        while let Some((&from, &to)) = self.ends.range(..=end).next_back().filter(|&(_, &to)| to >= start) {
            self.ends.remove(&from);
            self.total -= to - from;
            (start, end) = (start.min(from), end.max(to));
        }
        self.ends.insert(start, end);
        self.total += end - start;
    }
}

impl From<IntervalSet> for Union {
    fn from(set: IntervalSet) -> Self {
        Self { total: set.total(), ends: set.intervals().iter().map(|interval| (interval.start, interval.end)).collect() }
    }
}
