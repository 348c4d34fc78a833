//! Rows of a group that do one thing together.

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::steps::{Part, RoleSource, StepGroup};

/// The rows of a group, by position, that share a role in one part of the step, each list in order, lists in order of their first rows. What
/// fits no place, and what has only its kernel's name for a role, stands alone.
pub fn role_lines(group: &StepGroup) -> Vec<Vec<usize>> {
    let mut lines: Vec<Vec<usize>> = Vec::new();
    let mut known: HashMap<(Part, &str, RoleSource), usize, FixedState> = HashMap::default();
    for (at, row) in group.rows.iter().enumerate() {
        let end = lines.len();
        let is_alone = row.place.is_none() || row.role_from == RoleSource::Kernel;
        let line = if is_alone { end } else { *known.entry((row.part, &row.role, row.role_from)).or_insert(end) };
        if line == end {
            lines.push(Vec::new());
        }
        lines[line].push(at);
    }
    lines
}
