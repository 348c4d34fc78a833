//! What was launched inside each range of a thread, however the ranges lie: nested, side by side, or across each other.
//!
//! The launches inside a range are neighbours in order of time, so a range asks for the union of the activities of a stretch of
//! launches. All ranges are answered in one pass, in order of their ends. Every stretch of device time remembers the latest launch
//! whose work covers it; when the pass has come to a range's end, the time that remembers a launch at or behind the range's start is
//! exactly the union of the work launched inside. A binary indexed tree over launches holds those sums, so the whole costs
//! `(launches + ranges) * log(launches)` steps, and memory for two pieces a launch. (Noting each launch in every range open around it
//! costs the square when ranges overlap.)

use std::collections::BTreeMap;

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use longpole_trace::{ActivityKind, DeviceId, Interval, Ns, Trace};

use super::{DeviceWork, Instance, NONE};

/// Devices of one instance whose extents are given. A thread works for a few; a hostile trace must not cost ranges times devices.
const DEVICES: usize = 64;

/// Device activities in order of their launches.
pub(super) struct Launches<'a> {
    pub(super) rows: &'a [u32],
    /// When the launch of an activity began.
    pub(super) launched: &'a dyn Fn(&u32) -> Ns,
}

impl Launches<'_> {
    /// How many were launched before a time.
    fn before(&self, time: Ns) -> u32 {
        self.rows.partition_point(|row| (self.launched)(row) < time) as u32
    }
}

/// A range and the launches inside it.
#[derive(Clone, Copy)]
struct Asked {
    from: u32,
    to: u32,
    at: u32,
}

/// Finds the work of all instances of one thread, and what is around each. `order` is in order of start, outer before inner.
/// First start to last end on each device go to `extents`, of [`DEVICES`] devices an instance at most.
pub(super) fn run(
    instances: &mut [Instance],
    order: &[u32],
    trace: &Trace,
    launches: &Launches<'_>,
    mut extents: Option<&mut Vec<(u32, DeviceId, Interval)>>,
) {
    set_parents(instances, order);
    // Launches inside each instance: from its start until before its end.
    let mut asked: Vec<Asked> = Vec::with_capacity(order.len());
    for &at in order {
        let instance = &instances[at as usize];
        let (from, to) = (launches.before(instance.start), launches.before(instance.end));
        if from < to {
            asked.push(Asked { from, to, at });
        }
    }
    asked.sort_unstable_by_key(|asked| asked.from);
    // Ranges that share no launch, not even over others, are answered apart: steps follow each other, and the sums of one step fit the cache.
    let mut rest = asked.as_mut_slice();
    while let Some(first) = rest.first() {
        let (from, mut to) = (first.from, first.to);
        let is_together = |asked: &&Asked| {
            let joins = asked.from < to;
            to = if joins { to.max(asked.to) } else { to };
            joins
        };
        let len = rest.iter().take_while(is_together).count();
        let (together, others) = std::mem::take(&mut rest).split_at_mut(len);
        together.sort_unstable_by_key(|asked| (asked.to, asked.from, asked.at));
        answer(instances, trace, together, &launches.rows[from as usize..to as usize], from, extents.as_deref_mut());
        rest = others;
    }
}

/// Finds the work of instances in order of the last launch inside, given the launches inside any of them; `first` is the position of the first.
fn answer(
    instances: &mut [Instance],
    trace: &Trace,
    asked: &[Asked],
    launches: &[u32],
    first: u32,
    mut extents: Option<&mut Vec<(u32, DeviceId, Interval)>>,
) {
    let activities = &trace.activities;
    let mut kernels = Vec::with_capacity(launches.len() + 1);
    kernels.push(0_u32);
    let mut work = Work::new(launches.len());
    for &Asked { from, to, at } in asked {
        let (from, to) = ((from - first) as usize, (to - first) as usize);
        while kernels.len() <= to {
            let row = launches[kernels.len() - 1] as usize;
            let device = trace.lanes[activities.lane[row].index()].device;
            work.push(device, Interval::new(activities.start[row], activities.dur[row]));
            let is_kernel = matches!(activities.kind[row], ActivityKind::Kernel | ActivityKind::Other);
            kernels.push(kernels.last().copied().unwrap_or(0) + u32::from(is_kernel));
        }
        let instance = &mut instances[at as usize];
        instance.kernels = u64::from(kernels[to] - kernels[from]);
        instance.device = Some(work.since(from));
        if let Some(extents) = &mut extents {
            extents.extend(work.extents(from).map(|(device, extent)| (at, device, extent)));
        }
    }
}

/// The parent of an instance is the last one to begin, at its own start or before, that is still open and lasts as long.
fn set_parents(instances: &mut [Instance], order: &[u32]) {
    // Ends fall from the bottom to the top: an instance that ends before a later one ends is around nothing that comes after.
    let mut open: Vec<u32> = Vec::new();
    for &at in order {
        let (start, end) = (instances[at as usize].start, instances[at as usize].end);
        while open.pop_if(|outer| instances[*outer as usize].end < end || instances[*outer as usize].end <= start).is_some() {}
        instances[at as usize].parent = open.last().copied().unwrap_or(NONE);
        // An instance of no length has nothing launched inside, and it would hide the one around it.
        if end > start {
            open.push(at);
        }
    }
}

/// The work of the launches so far, by launch.
struct Work {
    pushed: usize,
    busy: Sums,
    span: Sums,
    /// Covered device time: the end of each stretch and the latest launch that covers it, by device and start.
    covered: BTreeMap<(DeviceId, Ns), (Ns, usize)>,
    /// By device: launches whose end no later one reaches, and launches before whose start no later one begins (negated).
    outlasting: HashMap<DeviceId, [Vec<(usize, Ns)>; 2], FixedState>,
    /// Devices by their latest launch.
    latest: BTreeMap<usize, DeviceId>,
}

impl Work {
    fn new(launches: usize) -> Self {
        Self {
            pushed: 0,
            busy: Sums::new(launches),
            span: Sums::new(launches),
            covered: BTreeMap::new(),
            outlasting: HashMap::default(),
            latest: BTreeMap::new(),
        }
    }

    /// The next launch.
    fn push(&mut self, device: DeviceId, work: Interval) {
        let launch = self.pushed;
        self.pushed += 1;
        self.cover(device, work, launch);
        let [ends, starts] = self.outlasting.entry(device).or_default();
        if let Some(&(before, _)) = ends.last() {
            self.latest.remove(&before);
        }
        self.latest.insert(launch, device);
        // The latest end since any launch is that of the first one left in the list from there on; likewise the earliest start, negated.
        for (list, value) in [(ends, work.end), (starts, Ns(work.start.get().saturating_neg()))] {
            // Each launch in the list holds its value less that of the next, so that a sum from any launch on is the first value.
            while let Some((earlier, last)) = list.pop_if(|(_, last)| *last <= value) {
                self.span.add(earlier, -i128::from(last.get()));
                if let Some(&(before, _)) = list.last() {
                    self.span.add(before, i128::from(last.get()));
                }
            }
            if let Some(&(before, _)) = list.last() {
                self.span.add(before, -i128::from(value.get()));
            }
            self.span.add(launch, i128::from(value.get()));
            list.push((launch, value));
        }
    }

    /// Lets a stretch of device time remember `launch`.
    fn cover(&mut self, device: DeviceId, work: Interval, launch: usize) {
        if work.is_empty() {
            return;
        }
        // A stretch that begins before is cut in two.
        let before =
            self.covered.range_mut(..(device, work.start)).next_back().filter(|(key, (end, _))| key.0 == device && *end > work.start);
        if let Some((_, (end, owner))) = before {
            let (old_end, owner) = (std::mem::replace(end, work.start), *owner);
            self.covered.insert((device, work.start), (old_end, owner));
        }
        while let Some((&(_, start), &(end, owner))) = self.covered.range((device, work.start)..(device, work.end)).next() {
            self.covered.remove(&(device, start));
            self.busy.add(owner, -length(start, end.min(work.end)));
            if end > work.end {
                self.covered.insert((device, work.end), (end, owner));
            }
        }
        self.covered.insert((device, work.start), (work.end, launch));
        self.busy.add(launch, length(work.start, work.end));
    }

    /// What was launched from launch `from` on, summed over devices.
    fn since(&self, from: usize) -> DeviceWork {
        let time = |sums: &Sums| Ns(i64::try_from(sums.since(from)).unwrap_or(i64::MAX));
        DeviceWork { span: time(&self.span), busy: time(&self.busy) }
    }
}

impl Work {
    /// First start to last end of what was launched from launch `from` on, device by device: those launched to last.
    fn extents(&self, from: usize) -> impl Iterator<Item = (DeviceId, Interval)> {
        self.latest.range(from..).rev().take(DEVICES).filter_map(move |(_, device)| {
            let [ends, starts] = self.outlasting.get(device)?;
            let first = |list: &[(usize, Ns)]| list.get(list.partition_point(|&(launch, _)| launch < from)).map(|&(_, value)| value);
            Some((*device, Interval { start: Ns(first(starts)?.get().saturating_neg()), end: first(ends)? }))
        })
    }
}

fn length(start: Ns, end: Ns) -> i128 {
    i128::from(end.get()) - i128::from(start.get())
}

/// Numbers by position, and their sum from a position on (a binary indexed tree). Sums of hostile times do not fit 64 bits.
struct Sums {
    tree: Vec<i128>,
}

impl Sums {
    fn new(len: usize) -> Self {
        Self { tree: vec![0; len + 1] }
    }

    fn add(&mut self, position: usize, value: i128) {
        // A node holds the sum of itself and of those after it that it stands for.
        let mut at = position + 1;
        while at > 0 {
            self.tree[at] += value;
            at &= at - 1;
        }
    }

    fn since(&self, position: usize) -> i128 {
        let (mut at, mut sum) = (position + 1, 0);
        while at < self.tree.len() {
            sum += self.tree[at];
            at += at & at.wrapping_neg();
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_and_steps_follow_the_launches() {
        // Each kernel overlaps the next: every push cuts a stretch, and none is kept for a launch that is hidden.
        let count = 2_000;
        let mut work = Work::new(count);
        for launch in 0..count as i64 {
            work.push(DeviceId(0), Interval::new(Ns(launch * 10), Ns(25)));
            let outlasting: usize = work.outlasting.values().flatten().map(Vec::len).sum();
            assert!(work.covered.len() <= 2 * work.pushed && outlasting <= 2 * work.pushed);
        }
        assert_eq!(work.since(0), DeviceWork { span: Ns(20_015), busy: Ns(20_015) });
        assert_eq!(work.since(count - 1), DeviceWork { span: Ns(25), busy: Ns(25) });
    }

    #[test]
    fn hostile_times_saturate() {
        let mut work = Work::new(2);
        work.push(DeviceId(0), Interval { start: Ns::MIN, end: Ns::MAX });
        work.push(DeviceId(1), Interval { start: Ns::MIN, end: Ns::MAX });
        assert_eq!(work.since(0), DeviceWork { span: Ns::MAX, busy: Ns::MAX });
    }
}
