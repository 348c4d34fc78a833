//! Device time that one owner has to itself.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use longpole_trace::{DeviceId, Interval, IntervalSet, Ns, Trace};

use crate::turns::Turns;

/// Marks an activity without an owner.
pub(super) const NO_OWNER: u32 = u32::MAX;

/// Time in which a device runs work of one owner and of nobody else. Work that waits behind other work of its stream does not run: the time is
/// that of the one ahead (see [`Turns`]).
pub(super) struct Alone {
    /// By owner.
    pub(super) sets: Vec<Vec<(DeviceId, IntervalSet)>>,
    /// By activity row, the part of it that belongs to the activity: where work of one owner overlaps, to what started first. The parts of
    /// an owner's activities add up to its time.
    pub(super) of_activity: Vec<Ns>,
}

/// The time that each owner has to itself, by the turns of its work. `owner_of` is by activity row; what has no owner still takes time away from the others.
pub(super) fn alone(trace: &Trace, turns: &Turns, owner_of: &[u32], owners: usize) -> Alone {
    let activities = &trace.activities;
    let mut of_device: Vec<Vec<u32>> = vec![Vec::new(); trace.devices.len()];
    for row in 0..activities.len() {
        of_device[trace.lanes[activities.lane[row].index()].device.index()].push(row as u32);
    }
    let mut found: Vec<Vec<(DeviceId, IntervalSet)>> = vec![Vec::new(); owners];
    let mut of_activity = vec![Ns::ZERO; activities.len()];
    let mut places = vec![Place::default(); owners];
    // One more for what has no owner.
    let mut open = vec![0_u32; owners + 1];
    for (device, mut rows) in of_device.into_iter().enumerate() {
        if rows.iter().all(|&row| owner_of[row as usize] == NO_OWNER) {
            continue;
        }
        rows.sort_by_key(|&row| turns.of_row(trace, row as usize).start);
        let mut stretches: Vec<(u32, Interval)> = Vec::with_capacity(rows.len());
        let mut ends: BinaryHeap<Reverse<(Ns, u32)>> = BinaryHeap::new();
        // Owners with open work, how many and their numbers xor-ed: with one of them that is its number.
        let (mut distinct, mut mixed, mut now) = (0_u32, 0_u32, Ns::MIN);
        let mut until = |to: Ns, ends: &mut BinaryHeap<Reverse<(Ns, u32)>>, open: &mut [u32], distinct: &mut u32, mixed: &mut u32| {
            while let Some(&Reverse((end, owner))) = ends.peek()
                && end <= to
            {
                if *distinct == 1 && end > now {
                    stretches.push((*mixed, Interval { start: now, end }));
                }
                now = now.max(end);
                ends.pop();
                open[owner as usize] -= 1;
                if open[owner as usize] == 0 {
                    *distinct -= 1;
                    *mixed ^= owner;
                }
            }
            if *distinct == 1 && to > now {
                stretches.push((*mixed, Interval { start: now, end: to }));
            }
            now = now.max(to);
        };
        for &row in &rows {
            let row = row as usize;
            let Interval { start, end } = turns.of_row(trace, row);
            if end <= start {
                continue;
            }
            until(start, &mut ends, &mut open, &mut distinct, &mut mixed);
            let owner = if owner_of[row] == NO_OWNER { owners as u32 } else { owner_of[row] };
            if open[owner as usize] == 0 {
                distinct += 1;
                mixed ^= owner;
            }
            open[owner as usize] += 1;
            ends.push(Reverse((end, owner)));
        }
        until(Ns::MAX, &mut ends, &mut open, &mut distinct, &mut mixed);
        let own = by_owner(&stretches, owners);
        drop(stretches);
        places.fill(Place::default());
        for &row in &rows {
            let row = row as usize;
            if let Some(set) = own.get(owner_of[row] as usize) {
                let place = &mut places[owner_of[row] as usize];
                of_activity[row] = place.part(set.intervals(), turns.of_row(trace, row));
            }
        }
        for (found, set) in found.iter_mut().zip(own).filter(|(_, set)| !set.intervals().is_empty()) {
            found.push((DeviceId::from_index(device), set));
        }
    }
    Alone { sets: found, of_activity }
}

/// The stretches of each owner; what has none is left out.
fn by_owner(stretches: &[(u32, Interval)], owners: usize) -> Vec<IntervalSet> {
    let mut counts = vec![0_usize; owners];
    for &(owner, _) in stretches {
        if let Some(count) = counts.get_mut(owner as usize) {
            *count += 1;
        }
    }
    let mut own: Vec<Vec<Interval>> = counts.into_iter().map(Vec::with_capacity).collect();
    for &(owner, interval) in stretches {
        if let Some(own) = own.get_mut(owner as usize) {
            own.push(interval);
        }
    }
    own.into_iter().map(IntervalSet::from_unsorted).collect()
}

/// How far the activities of an owner have come through its stretches.
#[derive(Clone, Copy)]
struct Place {
    /// The next stretch.
    at: usize,
    /// Up to where its activities reached.
    reached: Ns,
}

impl Default for Place {
    fn default() -> Self {
        Self { at: 0, reached: Ns::MIN }
    }
}

impl Place {
    /// The part of the stretches that is in an activity and in none before. Activities come by start, so that each looks on from where
    /// the last one ended.
    fn part(&mut self, stretches: &[Interval], activity: Interval) -> Ns {
        let from = activity.start.max(self.reached);
        self.reached = self.reached.max(activity.end);
        let mut part = Ns::ZERO;
        while let Some(stretch) = stretches.get(self.at).filter(|stretch| stretch.start < activity.end) {
            part += (stretch.end.min(activity.end) - stretch.start.max(from)).max(Ns::ZERO);
            if stretch.end > activity.end {
                break;
            }
            self.at += 1;
        }
        part
    }
}
