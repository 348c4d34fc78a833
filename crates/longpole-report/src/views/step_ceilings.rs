//! What changes to a step could win at most.

use longpole_analysis::{CeilingRow, CeilingSubject, GroupCeilings, NoPeaks, Part, Peaks, StepGroup, StepTable};
use longpole_trace::Ns;

use super::recorded::Recorded;
use crate::blocks::Block;
use crate::units::{percent, plural, time};

/// Ceilings that are said of a group, the best one first.
const CEILINGS_SHOWN: usize = 4;
/// Roles of a chain that are named.
const ROLES_SHOWN: usize = 3;

/// The steps, and what there is to win in them.
#[derive(Clone, Copy, Debug)]
pub struct Steps<'a> {
    /// The steps.
    pub table: &'a StepTable,
    /// The ceilings of each of its groups.
    pub ceilings: &'a [GroupCeilings],
    /// The peaks that floors are of, or why there are none.
    pub peaks: Result<&'a Peaks, &'a NoPeaks>,
    /// The run that was recorded for this report, where there was one.
    pub recorded: Option<&'a Recorded<'a>>,
}

/// What a step wins as a share of its span, both medians.
pub(crate) fn of_span(row: &CeilingRow, group: &StepGroup) -> Option<f64> {
    let win = row.per_step_ns?;
    (group.span_ns > Ns::ZERO).then(|| win.get() as f64 / group.span_ns.get() as f64)
}

/// What is changed, in words.
fn change(row: &CeilingRow, group: &StepGroup) -> String {
    match &row.subject {
        CeilingSubject::Role { role, part, .. } => {
            let place = if matches!(part, Part::Layer(_)) { " in all layers" } else { "" };
            match row.kind.supposed() {
                Some(supposed) => format!("{role}{place} {supposed}"),
                None => format!("{role}{place} gone"),
            }
        }
        CeilingSubject::Chain { rows, roles, .. } => {
            let mut named: Vec<&str> = roles.iter().map(String::as_str).collect();
            named.dedup();
            let others = named.len().saturating_sub(ROLES_SHOWN);
            named.truncate(ROLES_SHOWN);
            let others = if others > 0 { format!(" and {others} more") } else { String::new() };
            let in_layers = rows.iter().any(|&row| group.rows.get(row as usize).is_some_and(|row| matches!(row.part, Part::Layer(_))));
            let place = if in_layers { ", in all layers" } else { "" };
            format!("{} in a row fused ({}{others}){place}", plural(roles.len() as u64, "kernel", "kernels"), named.join(", "))
        }
        CeilingSubject::Steps { .. } => "the step replayed from a graph".to_owned(),
        CeilingSubject::Cause { cause, .. } => format!("no idle time inside a step for {}", cause.code()),
    }
}

/// The largest ceilings of a group: the best supported first, then the others by size.
pub(super) fn most_to_win(group: &StepGroup, ceilings: &GroupCeilings) -> Option<[Block; 2]> {
    let best = ceilings.best?;
    let wins = |at: usize| ceilings.ceilings[at].per_step_ns.is_some_and(|win| win > Ns::ZERO);
    let others = (0..ceilings.ceilings.len()).filter(|&at| at != best && wins(at));
    let said = std::iter::once(best).chain(others).take(CEILINGS_SHOWN).map(|at| {
        let row = &ceilings.ceilings[at];
        let share = of_span(row, group).map_or_else(String::new, |share| format!(" ({} % of span)", percent(share)));
        let head = if at == best && row.kind.is_supported() { "best supported: " } else { "" };
        format!("{head}{} a step{share}: {}", time(row.per_step_ns.unwrap_or(row.ceiling_ns)), change(row, group))
    });
    Some([Block::Title("At most to win (ceilings overlap: do not add them)"), Block::Notes(said.collect())])
}
