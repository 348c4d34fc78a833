//! Which event carries the arguments about a collective operation.
//!
//! The model keeps them beside the events, by place and start. Several events may share both; PyTorch puts the arguments on
//! `record_param_comms` and on the kernels of the communication library, so those are preferred.

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use longpole_trace::{Collective, CollectivePlace, Ns, Trace};

use super::selection::Selection;

#[derive(Default)]
struct Description {
    /// Rows of the table, in its order.
    rows: Vec<u32>,
    /// The event that carries them: its row, and whether its name is one that does.
    carrier: Option<(u32, bool)>,
    written: usize,
}

/// Descriptions of collectives by place and start.
pub(super) struct Descriptions(HashMap<(CollectivePlace, Ns), Description, FixedState>);

impl Descriptions {
    pub(super) fn find(selection: &Selection<'_, '_>) -> Self {
        let trace = selection.index.trace();
        let mut found = Self(HashMap::default());
        for row in 0..trace.collectives.len() {
            let key = (trace.collectives.place[row], trace.collectives.start[row]);
            found.0.entry(key).or_default().rows.push(row as u32);
        }
        if found.0.is_empty() {
            return found;
        }
        let (ops, activities) = (&trace.host_ops, &trace.activities);
        for row in (0..ops.len()).filter(|&row| selection.op(row)) {
            let carries = || trace.strings.get(ops.name[row]) == "record_param_comms";
            found.note((CollectivePlace::Host(ops.thread[row]), ops.start[row]), row, carries);
        }
        for row in (0..activities.len()).filter(|&row| selection.activity(row)) {
            let carries = || ["nccl", "rccl", "Nccl"].iter().any(|word| trace.strings.get(activities.name[row]).contains(word));
            found.note((CollectivePlace::Device(activities.lane[row]), activities.start[row]), row, carries);
        }
        found
    }

    fn note(&mut self, key: (CollectivePlace, Ns), row: usize, carries: impl FnOnce() -> bool) {
        if let Some(description) = self.0.get_mut(&key)
            && !matches!(description.carrier, Some((_, true)))
        {
            let carries = carries();
            if carries || description.carrier.is_none() {
                description.carrier = Some((row as u32, carries));
            }
        }
    }

    /// The description that the event in `row` carries, if it does. One event carries one: of several with one place and start, the
    /// others go to the events that come after it.
    pub(super) fn of(&mut self, trace: &Trace, place: CollectivePlace, start: Ns, row: usize) -> Option<Collective> {
        let description = self.0.get_mut(&(place, start))?;
        if description.written == 0 && description.carrier.is_some_and(|(carrier, _)| carrier as usize != row) {
            return None;
        }
        let next = *description.rows.get(description.written)?;
        description.written += 1;
        Some(trace.collectives.get(next as usize))
    }
}
