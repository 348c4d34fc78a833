//! Floors of the rows of groups, from the operator calls behind their activities.
//!
//! The floor is that of a whole call. Its kernels share it, and what the call takes above it, in proportion to their time, to the
//! nanosecond: so the floors of rows add up, and those of a role are those of its calls.

use longpole_trace::{Ns, Trace};

use super::types::CeilingKind;
use crate::phrases::fraction;
use crate::roofline::{CallWork, NO_CALL, Roof};
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

/// A part of `whole` in proportion to the part of a length up to `at`.
pub(super) fn up_to(whole: Ns, at: Ns, length: Ns) -> Ns {
    if length <= Ns::ZERO {
        return Ns::ZERO;
    }
    let part = i128::from(whole.get()) * i128::from(at.min(length).get()) / i128::from(length.get());
    Ns(i64::try_from(part).unwrap_or(i64::MAX))
}

/// What is known of each row of each group.
pub(super) fn of_rows(trace: &Trace, steps: &StepTable, calls: &[CallWork], call_of: &[u32]) -> Vec<Vec<Floored>> {
    let mut found: Vec<Vec<Floored>> = steps.groups.iter().map(|group| vec![Floored::default(); group.rows.len()]).collect();
    // Time of each call that was given out already.
    let mut given = vec![Ns::ZERO; calls.len()];
    for (group, rows) in steps.groups.iter().zip(&mut found) {
        for step in &group.steps {
            for (activity, &row) in step.activities.iter().zip(&step.rows) {
                let row = &mut rows[row as usize];
                let own = trace.activities.dur[activity.index()].max(Ns::ZERO);
                row.taken += own;
                let number = call_of.get(activity.index()).copied().filter(|&call| call != NO_CALL);
                let call = number.and_then(|number| Some((number as usize, calls.get(number as usize)?)));
                let Some((number, call, floor, above)) =
                    call.and_then(|(at, call)| Some((at, call, call.floor_ns?, call.above_floor_ns()?)))
                else {
                    row.unknown += own;
                    continue;
                };
                let before = given[number];
                let after = before + own;
                given[number] = after;
                let share = |whole: Ns| up_to(whole, after, call.device_ns) - up_to(whole, before, call.device_ns);
                row.floors[usize::from(call.roof == Some(Roof::Compute))] += share(floor);
                row.above += share(above);
                row.calls += u64::from(before == Ns::ZERO);
            }
        }
    }
    found
}
