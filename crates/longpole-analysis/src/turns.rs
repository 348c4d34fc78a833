//! Whose turn it is on each stream: of overlapping work of one stream, time belongs to what started first.
//!
//! A stream does one thing after another. With programmatic dependent launch the next kernel starts early and waits for the end of the one
//! ahead: the time in which both run is the turn of the one ahead, and goes when that goes.

use longpole_trace::{Interval, Ns, Trace};

/// The turn of each activity: the part of it that begins where all that started before it on its stream has ended.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    /// By row, where the turn begins, no later than the activity ends. Empty where no work overlaps with other work of its stream: then all
    /// turns are whole.
    starts: Vec<Ns>,
}

impl Turns {
    pub(crate) fn of(trace: &Trace) -> Self {
        let activities = &trace.activities;
        let span = |row: usize| (activities.start[row], activities.end(row).max(activities.start[row]));
        // The latest start and end of each lane. Nearly always rows come by start and none overlaps: then nothing is kept.
        let mut latest = vec![(Ns::MIN, Ns::MIN); trace.lanes.len()];
        let is_plain = (0..activities.len()).all(|row| {
            let (start, end) = span(row);
            let (before, reached) = &mut latest[activities.lane[row].index()];
            let follows = start >= *before && start >= *reached;
            (*before, *reached) = (start, end.max(*reached));
            follows
        });
        if is_plain {
            return Self::default();
        }
        let mut order: Vec<u32> = (0..activities.len() as u32).collect();
        // Of equal starts the one that ends first is ahead: what waits for it cannot end before it.
        order.sort_by_key(|&row| (activities.lane[row as usize].index(), span(row as usize)));
        let mut starts = vec![Ns::ZERO; activities.len()];
        let (mut lane, mut reached) = (None, Ns::MIN);
        for row in order {
            let row = row as usize;
            if lane.replace(activities.lane[row]) != Some(activities.lane[row]) {
                reached = Ns::MIN;
            }
            let (start, end) = span(row);
            starts[row] = start.max(reached).min(end);
            reached = reached.max(end);
        }
        Self { starts }
    }

    /// Whether all turns are whole.
    pub(crate) fn are_whole(&self) -> bool {
        self.starts.is_empty()
    }

    /// The turn of an activity; without length where others that started before have all of its time.
    pub(crate) fn of_row(&self, trace: &Trace, row: usize) -> Interval {
        let start = trace.activities.start[row];
        Interval { start: self.starts.get(row).copied().unwrap_or(start), end: trace.activities.end(row).max(start) }
    }
}
