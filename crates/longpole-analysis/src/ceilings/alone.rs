//! Device time that one owner has to itself.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use longpole_trace::{DeviceId, Interval, IntervalSet, Ns, Trace};

/// Marks an activity without an owner.
pub(super) const NO_OWNER: u32 = u32::MAX;

/// Time in which a device runs work of one owner and of nobody else.
pub(super) struct Alone {
    /// By owner.
    pub(super) sets: Vec<Vec<(DeviceId, IntervalSet)>>,
    /// By activity row, the part of it that belongs to the activity: where work of one owner overlaps, to what started first. The parts of
    /// an owner's activities add up to its time.
    pub(super) of_activity: Vec<Ns>,
}

/// The time that each owner has to itself. `owner_of` is by activity row; what has no owner still takes time away from the others.
pub(super) fn alone(trace: &Trace, owner_of: &[u32], owners: usize) -> Alone {
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
        rows.sort_by_key(|&row| activities.start[row as usize]);
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
            let (start, end) = (activities.start[row], activities.end(row));
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
        stretches.sort_by_key(|&(owner, _)| owner);
        let owner = |row: &u32| owner_of[*row as usize] as usize;
        for row in &rows {
            if let Some(place) = places.get_mut(owner(row)) {
                *place = Place::default();
            }
        }
        let mut at = 0;
        for of_owner in stretches.chunk_by(|a, b| a.0 == b.0) {
            let next = at + of_owner.len();
            if let Some(found) = found.get_mut(of_owner[0].0 as usize) {
                let intervals = of_owner.iter().map(|&(_, interval)| interval).collect();
                found.push((DeviceId::from_index(device), IntervalSet::from_unsorted(intervals)));
                places[of_owner[0].0 as usize] = Place { at, end: next, reached: Ns::MIN };
            }
            at = next;
        }
        for row in &rows {
            if let Some(place) = places.get_mut(owner(row)) {
                let row = *row as usize;
                of_activity[row] = place.part(&stretches, Interval { start: activities.start[row], end: activities.end(row) });
            }
        }
    }
    Alone { sets: found, of_activity }
}

/// How far the activities of an owner have come through its stretches.
#[derive(Clone, Copy, Default)]
struct Place {
    /// The next stretch, and where the owner's end.
    at: usize,
    end: usize,
    /// Up to where its activities reached.
    reached: Ns,
}

impl Place {
    /// The part of the stretches that is in an activity and in none before. Activities come by start, so that each looks on from where
    /// the last one ended.
    fn part(&mut self, stretches: &[(u32, Interval)], activity: Interval) -> Ns {
        let from = activity.start.max(self.reached);
        self.reached = self.reached.max(activity.end);
        let mut part = Ns::ZERO;
        while self.at < self.end && stretches[self.at].1.start < activity.end {
            let stretch = stretches[self.at].1;
            part += (stretch.end.min(activity.end) - stretch.start.max(from)).max(Ns::ZERO);
            if stretch.end > activity.end {
                break;
            }
            self.at += 1;
        }
        part
    }
}
