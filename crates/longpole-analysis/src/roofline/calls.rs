//! The work of single operator calls: what [`super::roofline`] adds up over calls of one kind, kept apart by call.

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use longpole_trace::{ActivityId, Ns};

use super::collect::{Collector, Key};
use super::peaks::Peaks;
use super::table::peak_by_name;
use super::work::{Floor, Roof, UnknownWork, Work};
use crate::index::{NodeId, TraceIndex};

/// One operator call that launched device work itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CallWork {
    /// Device time of all it launched, summed.
    pub(crate) device_ns: Ns,
    /// What it has to do, or why that is not known.
    pub(crate) work: Result<Work, UnknownWork>,
    /// How long that must take, if the device is known too.
    pub(crate) floor_ns: Option<Ns>,
    /// Which side of the roof that is.
    pub(crate) roof: Option<Roof>,
}

impl CallWork {
    /// Time above the floor: what a perfect kernel would win. Absent without a floor.
    pub(crate) fn above_floor_ns(&self) -> Option<Ns> {
        self.floor_ns.map(|floor| (self.device_ns - floor).max(Ns::ZERO))
    }
}

/// Marks an activity without a call.
pub(crate) const NO_CALL: u32 = u32::MAX;

/// The operator calls behind the activities for which a condition on their row holds, and the position of each activity's call in that list, by
/// row ([`NO_CALL`] where no operator owns the activity or the condition does not hold). The condition should take in all activities of a
/// call: the floor is that of the whole call.
pub(crate) fn call_works(index: &TraceIndex<'_>, peaks: Option<&Peaks>, holds: impl Fn(u32) -> bool) -> (Vec<CallWork>, Vec<u32>) {
    let trace = index.trace();
    let mut collector = Collector::new(index);
    collector.placed = Some(Vec::new());
    let mut collected = collector.run_on(holds);
    let placed = collected.placed.take().unwrap_or_default();
    let of_group: Vec<(Result<Work, UnknownWork>, Option<Floor>)> = collected
        .groups
        .iter()
        .map(|group| {
            let kernel = group.kernel.map(|(name, _)| trace.strings.get(name));
            let work = group.work;
            let floor = work.ok().zip(peaks).and_then(|(work, peaks)| work.floor(peaks, peak_by_name(work, kernel)));
            (work, floor)
        })
        .collect();
    let mut calls: Vec<CallWork> = Vec::new();
    let mut call_of = vec![NO_CALL; trace.activities.len()];
    // A call has at most two entries: its own work, and what stands apart. The work that stands apart has no floor.
    let mut of_node: HashMap<NodeId, [u32; 2], FixedState> = HashMap::default();
    for (row, group) in placed {
        let Some(node) = index.links().owner_node(ActivityId(row)) else { continue };
        let side = match collected.groups[group as usize].key {
            Key::Op(_) => 0,
            Key::Apart(..) => 1,
            Key::NoOperator(_) => continue,
        };
        let slot = &mut of_node.entry(node).or_insert([NO_CALL; 2])[side];
        if *slot == NO_CALL {
            let (work, floor) = of_group[group as usize];
            *slot = calls.len() as u32;
            calls.push(CallWork { device_ns: Ns::ZERO, work, floor_ns: floor.map(|floor| floor.ns), roof: floor.map(|floor| floor.roof) });
        }
        calls[*slot as usize].device_ns += trace.activities.dur[row as usize].max(Ns::ZERO);
        call_of[row as usize] = *slot;
    }
    (calls, call_of)
}
