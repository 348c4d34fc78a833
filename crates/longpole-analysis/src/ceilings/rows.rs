//! Floors of the rows of groups, from the operator calls behind their activities.
//!
//! The floor is that of a whole call. Its kernels share it, and what the call takes above it, in proportion to their time, to the
//! nanosecond: so the floors of rows add up, and those of a role are those of its calls.

use longpole_trace::{Ns, Trace};

use super::per_step::median;
use super::types::CeilingKind;
use crate::phrases::fraction;
use crate::roofline::{CallWorks, Roof};
use crate::steps::StepTable;

/// Time of some work of a group over all its steps, and its floor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Floored {
    /// Time it takes, summed over its activities.
    pub(super) taken: Ns,
    /// The part of it whose floor is not known.
    pub(super) unknown: Ns,
    /// The floor of the rest: by memory, by arithmetic.
    pub(super) floors: [Ns; 2],
    /// What the rest takes above its floor.
    pub(super) above: Ns,
    /// Operator calls with a floor that begin in it.
    pub(super) calls: u64,
}

impl Floored {
    pub(super) fn floor(&self) -> Ns {
        self.floors[0] + self.floors[1]
    }

    /// Whether the floor of all of it is known.
    pub(super) fn is_known(&self) -> bool {
        self.taken > Ns::ZERO && self.unknown == Ns::ZERO
    }

    /// Whether the floor of at least half of it is.
    pub(super) fn is_mostly_known(&self) -> bool {
        self.taken > Ns::ZERO && fraction(self.unknown, self.taken) <= 0.5
    }

    pub(super) fn kind(&self) -> CeilingKind {
        if self.floors[1] > self.floors[0] { CeilingKind::AtComputeFloor } else { CeilingKind::AtMemoryFloor }
    }
}

impl std::iter::Sum for Floored {
    fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
        parts.fold(Self::default(), |sum, part| Self {
            taken: sum.taken + part.taken,
            unknown: sum.unknown + part.unknown,
            floors: [sum.floors[0] + part.floors[0], sum.floors[1] + part.floors[1]],
            above: sum.above + part.above,
            calls: sum.calls + part.calls,
        })
    }
}

/// What a row does in one step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct InStep {
    /// Position of the step in its group.
    pub(super) step: u32,
    /// Time it takes, summed over its activities.
    pub(super) taken: Ns,
    /// The floor of what has one.
    pub(super) floor: Ns,
    /// What takes longer than its floor, by how much; what has none, whole.
    pub(super) above: Ns,
    /// The part of its time in which nothing else ran on the device.
    pub(super) alone: Ns,
}

/// What is known of a row of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct OfRow {
    /// Over all steps.
    pub(super) whole: Floored,
    /// By step, those in which it does anything, in order.
    pub(super) steps: Vec<InStep>,
}

impl OfRow {
    /// The floor of a step, on the median of some steps.
    pub(super) fn floor_per_step(&self, steps: usize) -> Ns {
        median(self.steps.iter().map(|in_step| in_step.floor).collect(), steps)
    }

    /// What a step wins with the row at its floor, on the median: in no step more than what the device does for it alone.
    pub(super) fn win_per_step(&self, steps: usize) -> Ns {
        median(self.steps.iter().map(|in_step| in_step.above.min(in_step.alone)).collect(), steps)
    }

    /// What a step wins without the row, on the median.
    pub(super) fn alone_per_step(&self, steps: usize) -> Ns {
        median(self.steps.iter().map(|in_step| in_step.alone).collect(), steps)
    }
}

/// A part of `whole` in proportion to the part of a length up to `at`.
pub(super) fn up_to(whole: Ns, at: Ns, length: Ns) -> Ns {
    if length <= Ns::ZERO {
        return Ns::ZERO;
    }
    let part = i128::from(whole.get()) * i128::from(at.min(length).get()) / i128::from(length.get());
    Ns(i64::try_from(part).unwrap_or(i64::MAX))
}

/// What is known of each row of each group. `alone` is the time that each activity has to itself, by row of the trace.
pub(super) fn of_rows(trace: &Trace, steps: &StepTable, works: &CallWorks, alone: &[Ns]) -> Vec<Vec<OfRow>> {
    let mut found: Vec<Vec<OfRow>> = steps.groups.iter().map(|group| vec![OfRow::default(); group.rows.len()]).collect();
    // Time of each call that was given out already.
    let mut given = vec![Ns::ZERO; works.len()];
    for (group, rows) in steps.groups.iter().zip(&mut found) {
        for (at, step) in (0..).zip(&group.steps) {
            for (activity, &row) in step.activities.iter().zip(&step.rows) {
                let OfRow { whole: row, steps } = &mut rows[row as usize];
                let own = trace.activities.dur[activity.index()].max(Ns::ZERO);
                row.taken += own;
                if steps.last().is_none_or(|latest| latest.step != at) {
                    steps.push(InStep { step: at, ..InStep::default() });
                }
                let Some(in_step) = steps.last_mut() else { continue };
                in_step.taken += own;
                in_step.alone += alone.get(activity.index()).copied().unwrap_or_default();
                let call = works.call_of(*activity).and_then(|number| Some((number as usize, works.call(number)?)));
                let Some((number, call, floor, above)) =
                    call.and_then(|(at, call)| Some((at, call, call.floor_ns?, call.above_floor_ns()?)))
                else {
                    row.unknown += own;
                    in_step.above += own;
                    continue;
                };
                let before = given[number];
                let after = before + own;
                given[number] = after;
                let share = |whole: Ns| up_to(whole, after, call.device_ns) - up_to(whole, before, call.device_ns);
                let floor = share(floor);
                // To the nanosecond: what is not floor is above it.
                let above = if above > Ns::ZERO { own - floor } else { Ns::ZERO };
                row.floors[usize::from(call.roof == Some(Roof::Compute))] += floor;
                row.above += above;
                in_step.floor += floor;
                in_step.above += above;
                row.calls += u64::from(before == Ns::ZERO);
            }
        }
    }
    found
}
