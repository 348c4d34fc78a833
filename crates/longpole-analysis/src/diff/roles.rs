//! Names for the roles of two groups, so that one part of the model has one name in both.
//!
//! What a trace recorded decides what its roles are called: without input shapes the norm of the queries is `rmsnorm #2`. Where two steps run
//! the same kernels at the same places, the side that tells more roles apart names those of both.

use std::collections::HashSet;

use hashbrown::HashMap;

use longpole_trace::Trace;

use crate::steps::{Part, RoleSource, StepGroup, StepRow};

/// Share of the places of a step that must have the same kernel on both sides, in percent.
const SAME_PLACES_PERCENT: usize = 90;

/// The name of the role of each row; `None` for a row that is known by its kernel alone.
pub(super) type Names = Vec<Option<String>>;

/// Names for the rows of both groups.
pub(super) fn names(a: &StepGroup, of_a: &Trace, b: &StepGroup, of_b: &Trace) -> (Names, Names) {
    let own = |group: &StepGroup| group.rows.iter().map(name).collect::<Names>();
    let (mut names_a, mut names_b) = (own(a), own(b));
    if let Some(pairs) = aligned(a, of_a, b, of_b) {
        let told_apart = |names: &Names| names.iter().flatten().collect::<HashSet<_>>().len();
        let by_a = told_apart(&names_a) >= told_apart(&names_b);
        for (from, to) in pairs {
            if by_a {
                names_b[to].clone_from(&names_a[from]);
            } else {
                names_a[from].clone_from(&names_b[to]);
            }
        }
    }
    (names_a, names_b)
}

fn name(row: &StepRow) -> Option<String> {
    if row.role_from == RoleSource::Kernel {
        return None;
    }
    Some(match row.part {
        Part::Layer(_) => row.role.clone(),
        part => format!("{} ({})", row.role, part.code()),
    })
}

/// Rows at the same places, if the two steps are made the same way.
fn aligned(a: &StepGroup, of_a: &Trace, b: &StepGroup, of_b: &Trace) -> Option<Vec<(usize, usize)>> {
    let places = |group: &StepGroup| -> HashMap<(Part, u32), usize> {
        group.rows.iter().enumerate().filter_map(|(at, row)| Some(((row.part, row.place?), at))).collect()
    };
    let (in_a, in_b) = (places(a), places(b));
    let mut pairs: Vec<(usize, usize)> = in_a.iter().filter_map(|(place, &from)| Some((from, *in_b.get(place)?))).collect();
    pairs.retain(|&(from, to)| of_a.strings.get(a.rows[from].name) == of_b.strings.get(b.rows[to].name));
    (pairs.len() * 100 >= in_a.len().max(in_b.len()) * SAME_PLACES_PERCENT && !pairs.is_empty()).then_some(pairs)
}
