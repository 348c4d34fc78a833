//! Floors lent by steps with recorded shapes to steps that borrow their roles: a kernel replayed from a graph belongs to no operator.
//!
//! A role takes the floor that one occurrence of it has in the lender (in a layer, or in the prologue or epilogue of a step), once for each
//! of its own occurrences. It does so if the lender does the role by one operator call, or if both have as many kernels for it: one
//! fused kernel does not move the bytes of the five that it replaces. A floor above the time that is taken shows that the shapes were
//! others, and is not taken over.

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use longpole_trace::Ns;

use super::lines::role_lines;
use super::rows::{Floored, InStep, OfRow, up_to};
use crate::index::TraceIndex;
use crate::roofline::{Peaks, call_works};
use crate::scope::Scope;
use crate::steps::{Part, RoleSource, StepGroup, StepNote, StepTable};

/// The part of a step, whatever the kind of layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Place {
    Prologue,
    Layer,
    Epilogue,
}

impl From<Part> for Place {
    fn from(part: Part) -> Self {
        match part {
            Part::Prologue => Self::Prologue,
            Part::Layer(_) => Self::Layer,
            Part::Epilogue => Self::Epilogue,
        }
    }
}

/// The floor of one occurrence of a role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Lent {
    floors: [Ns; 2],
    is_one_call: bool,
    kernels: usize,
}

/// The floors that a group of steps can lend.
#[derive(Clone, Debug)]
pub struct FloorDonor {
    name: String,
    /// Absent where kinds of layers do not agree.
    roles: HashMap<(Place, String), Option<Lent>, FixedState>,
}

/// How often a part of a step occurs in it.
fn layers(group: &StepGroup, part: Part) -> u64 {
    match (part, &group.layers) {
        (Part::Layer(kind), Some(layers)) => layers.kinds.get(kind as usize).map_or(1, |kind| u64::from(kind.count)),
        _ => 1,
    }
}

/// The same in all steps of a group.
fn occurrences(group: &StepGroup, part: Part) -> u64 {
    layers(group, part) * group.steps.len() as u64
}

fn times(per: Ns, number: u64) -> Ns {
    Ns(per.get().saturating_mul(i64::try_from(number).unwrap_or(i64::MAX)))
}

/// The floors of another trace's steps, on the device whose peaks are given.
pub fn floor_donors(index: &TraceIndex<'_>, scope: &Scope, steps: &StepTable, peaks: &Peaks) -> Vec<FloorDonor> {
    let works = call_works(index, Some(peaks), |row| scope.includes_activity(index, longpole_trace::ActivityId(row)));
    let rows = super::rows::of_rows(index.trace(), steps, &works, &[]);
    donors(steps, &rows)
}

/// The groups that know floors.
pub(super) fn donors(steps: &StepTable, rows: &[Vec<OfRow>]) -> Vec<FloorDonor> {
    let of_group = |(group, rows): (&StepGroup, &Vec<OfRow>)| {
        let mut donor = FloorDonor { name: group.name.clone(), roles: HashMap::default() };
        for line in role_lines(group) {
            let first = &group.rows[line[0]];
            let known: Floored = line.iter().map(|&row| rows[row].whole).sum();
            let number = occurrences(group, first.part);
            if first.role_from == RoleSource::Kernel || !known.is_known() || number == 0 {
                continue;
            }
            let each = |floor: Ns| Ns(floor.get() / i64::try_from(number).unwrap_or(i64::MAX));
            let lent = Lent { floors: known.floors.map(each), is_one_call: known.calls == number, kernels: line.len() };
            let of_role = donor.roles.entry((first.part.into(), first.role.clone())).or_insert(Some(lent));
            *of_role = of_role.filter(|known| *known == lent);
        }
        (!donor.roles.is_empty()).then_some(donor)
    };
    steps.groups.iter().zip(rows).filter_map(of_group).collect()
}

/// Gives the rows of a line the floor that it has in each step, and what it takes above that, in proportion to their time there.
fn share_in_steps(steps: usize, rows: &mut [OfRow], line: &[usize], floor: Ns) {
    let mut taken = vec![Ns::ZERO; steps];
    for in_step in line.iter().flat_map(|&row| &rows[row].steps) {
        taken[in_step.step as usize] += in_step.taken;
    }
    let mut given = vec![Ns::ZERO; steps];
    for &row in line {
        for in_step in &mut rows[row].steps {
            let step = in_step.step as usize;
            let before = given[step];
            let after = before + in_step.taken;
            given[step] = after;
            let share = |whole: Ns| up_to(whole, after, taken[step]) - up_to(whole, before, taken[step]);
            let own_floor = share(floor);
            let above = if taken[step] > floor { in_step.taken - own_floor } else { Ns::ZERO };
            *in_step = InStep { floor: own_floor, above, ..*in_step };
        }
    }
}

/// Fills in what a group can borrow from the steps that its roles are from: first those of another trace, then those of its own. Says whose
/// floors were taken.
pub(super) fn borrow(group: &StepGroup, rows: &mut [OfRow], lent: &[FloorDonor], own: &[FloorDonor]) -> Option<String> {
    let names =
        group.notes.iter().rev().filter_map(|note| if let StepNote::RolesBorrowed(borrowed) = note { Some(&borrowed.donor) } else { None });
    let donor = names.flat_map(|name| lent.iter().chain(own).filter(move |donor| donor.name == *name)).next()?;
    let mut is_used = false;
    for line in role_lines(group) {
        let first = &group.rows[line[0]];
        if first.role_from != RoleSource::Borrowed || line.iter().any(|&row| rows[row].whole.unknown < rows[row].whole.taken) {
            continue;
        }
        let Some(Some(lent)) = donor.roles.get(&(first.part.into(), first.role.clone())) else { continue };
        let taken: Ns = line.iter().map(|&row| rows[row].whole.taken).sum();
        let number = occurrences(group, first.part);
        let floors = lent.floors.map(|floor| times(floor, number));
        let floor = floors[0] + floors[1];
        if !(lent.is_one_call || lent.kernels == line.len()) || floor > taken {
            continue;
        }
        is_used = true;
        let mut before = Ns::ZERO;
        for &row in &line {
            let row = &mut rows[row].whole;
            let after = before + row.taken;
            let share = |whole: Ns| up_to(whole, after, taken) - up_to(whole, before, taken);
            *row = Floored { unknown: Ns::ZERO, floors: floors.map(share), above: share(taken - floor), ..*row };
            before = after;
        }
        let per_step = times(lent.floors[0] + lent.floors[1], layers(group, first.part));
        share_in_steps(group.steps.len(), rows, &line, per_step);
    }
    is_used.then(|| donor.name.clone())
}
