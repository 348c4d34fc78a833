//! Idle time inside the steps of groups, by cause, without keeping its pieces.
//!
//! All starts and ends of steps of a device cut its time into segments. A piece of idle time is added to the segments that it lies in, in
//! any order; afterwards running sums answer for any group, however the steps of groups lie to each other.

use longpole_trace::{DeviceId, Interval, IntervalSet, Ns};

use crate::idle::IdleCause;
use crate::steps::StepTable;

/// Time by cause, and behind it the time that replaying removes.
pub(super) type Sums = [Ns; IdleCause::COUNT + 1];

const NOTHING: Sums = [Ns::ZERO; IdleCause::COUNT + 1];

#[derive(Debug, Default)]
struct OfDevice {
    /// Where segments begin; behind the last one the last end.
    edges: Vec<Ns>,
    /// By segment; once all is added, of all segments before and this one.
    sums: Vec<Sums>,
    /// The segment that was last added to.
    latest: usize,
}

impl OfDevice {
    fn add(&mut self, mut piece: Interval, cause: usize) {
        while let (Some(&first), Some(&last)) = (self.edges.first(), self.edges.last())
            && piece.start < piece.end
            && piece.end > first
            && piece.start < last
        {
            piece.start = piece.start.max(first);
            let holds = |at: usize| self.edges.get(at + 1).is_some_and(|&end| self.edges[at] <= piece.start && piece.start < end);
            if !holds(self.latest) {
                self.latest =
                    if holds(self.latest + 1) { self.latest + 1 } else { self.edges.partition_point(|&edge| edge <= piece.start) - 1 };
            }
            let end = self.edges[self.latest + 1].min(piece.end);
            self.sums[self.latest][cause] += end - piece.start;
            piece.start = end;
        }
    }

    /// The sums of the segments before a time that is an edge.
    fn before(&self, edge: Ns) -> Sums {
        let at = self.edges.partition_point(|&other| other < edge);
        at.checked_sub(1).and_then(|last| self.sums.get(last)).copied().unwrap_or(NOTHING)
    }
}

/// Idle time inside steps.
#[derive(Debug)]
pub(super) struct IdleInside {
    devices: Vec<OfDevice>,
}

impl IdleInside {
    pub(super) fn new(devices: usize, steps: &StepTable) -> Self {
        let mut inside = Self { devices: (0..devices).map(|_| OfDevice::default()).collect() };
        for group in &steps.groups {
            let edges = &mut inside.devices[group.device.index()].edges;
            edges.extend(group.steps.iter().flat_map(|step| [step.start, step.end]));
        }
        for device in &mut inside.devices {
            device.edges.sort_unstable();
            device.edges.dedup();
            device.sums = vec![NOTHING; device.edges.len().saturating_sub(1)];
        }
        inside
    }

    /// Adds a piece of idle time, and the part of it that replaying removes.
    pub(super) fn add(&mut self, device: DeviceId, piece: Interval, cause: IdleCause, removed: Option<Interval>) {
        let device = &mut self.devices[device.index()];
        device.add(piece, cause.index());
        if let Some(removed) = removed {
            device.add(removed, IdleCause::COUNT);
        }
    }

    /// All is added.
    pub(super) fn finish(&mut self) {
        for device in &mut self.devices {
            let mut so_far = NOTHING;
            for sums in &mut device.sums {
                for (sum, so_far) in sums.iter_mut().zip(&mut so_far) {
                    *so_far += *sum;
                    *sum = *so_far;
                }
            }
        }
    }

    /// The idle time of a device inside some of the steps.
    pub(super) fn inside(&self, device: DeviceId, steps: &IntervalSet) -> Sums {
        let mut found = NOTHING;
        for &step in steps.intervals() {
            for (found, of_step) in found.iter_mut().zip(self.inside_one(device, step)) {
                *found += of_step;
            }
        }
        found
    }

    /// The idle time of a device inside one of the steps.
    pub(super) fn inside_one(&self, device: DeviceId, step: Interval) -> Sums {
        let device = &self.devices[device.index()];
        let (before, mut found) = (device.before(step.start), device.before(step.end));
        for (found, before) in found.iter_mut().zip(before) {
            *found -= before;
        }
        found
    }
}
