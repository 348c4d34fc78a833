//! Ceilings: the most that a change can win, for every role of a step, every cause of idle time, and steps as a whole.
//!
//! A ceiling is an upper bound under one supposition (see [`CeilingKind`]) and everything else as it was. Each comes with the device time
//! it is won from, so that those of several changes can be put together without winning any time twice
//! ([`CeilingRow::together`]). The definitions are in `docs/ceilings.md`.

mod alone;
mod chains;
mod covered;
mod floors;
mod fused;
mod inside;
mod lent;
mod lines;
mod per_step;
mod replay;
mod rows;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod turn_tests;
mod types;

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use longpole_trace::{ActivityId, DeviceId, Interval, IntervalSet, Ns, Trace};

use alone::Alone;
pub(crate) use chains::{all_runs, fusable};
use covered::{Covered, clipped};
pub(crate) use floors::{AtFloor, above_floor};
use inside::IdleInside;
pub use lent::{FloorDonor, floor_donors};
pub use lines::role_lines;
pub(crate) use replay::{Replay, replay_marked};
use replay::{extent, extents, graph_gap, is_replayable, removed, warm};
use rows::{Floored, OfRow};
pub use types::{CeilingKind, CeilingRow, CeilingSubject, CeilingTable, GroupCeilings, RowCeiling};

use crate::idle::{IdleCause, IdlePiece, IdleStretches, IdleTable, IdleWalk};
use crate::index::TraceIndex;
use crate::phrases::{counted, time};
use crate::roofline::{CallWorks, Peaks, call_works};
use crate::scope::Scope;
use crate::steps::{RoleSource, Step, StepGroup, StepRow, StepTable};
use crate::turns::Turns;

/// The ceilings of a scope, with the time that each is won from. `steps` and `idle` are those of the same scope ([`crate::step_table`],
/// [`crate::idle_pieces`]: pieces of one device stand together). Without peaks there are no floors.
pub fn ceilings(index: &TraceIndex<'_>, scope: &Scope, steps: &StepTable, idle: &[IdlePiece], peaks: Option<&Peaks>) -> CeilingTable {
    let wall_ns = scope.wall(index);
    let mut found = Finder::new(index, wall_ns, peaks);
    found.keeps_time = true;
    let works = call_works(index, peaks, |row| scope.includes_activity(index, ActivityId(row)));
    let turns = Turns::of(index.trace());
    let lines = Lines::of(index.trace(), &turns, steps);
    let rows = rows::of_rows(index.trace(), steps, &works, &lines.alone.of_activity);
    let lenders = vec![None; steps.groups.len()];
    found.roles(steps, &rows, &lenders, lines);
    found.chains(steps, &works, &turns);
    found.causes(steps, idle);
    found.replays(steps, idle);
    found.rows.sort_by_key(|row| std::cmp::Reverse(row.ceiling_ns));
    CeilingTable { rows: found.rows, wall_ns }
}

/// What ceilings of steps take from a scope whatever its steps are, so that both can be found at once.
#[derive(Debug)]
pub struct ScopeWork<'a, 't> {
    index: &'a TraceIndex<'t>,
    scope: &'a Scope,
    peaks: Option<&'a Peaks>,
    works: CallWorks,
    idle: IdleWalk<'a, 't>,
}

impl<'a, 't> ScopeWork<'a, 't> {
    /// What the calls of a scope have to do, and when its devices are idle.
    pub fn find(index: &'a TraceIndex<'t>, scope: &'a Scope, peaks: Option<&'a Peaks>) -> Self {
        let works = call_works(index, peaks, |row| scope.includes_activity(index, ActivityId(row)));
        Self { index, scope, peaks, works, idle: IdleWalk::new(index, scope) }
    }
}

/// The ceilings of each group of steps of a scope, without the time that they are won from. `lent` are floors of steps of another trace
/// ([`floor_donors`]), for groups that borrowed their roles from them.
pub fn step_ceilings(work: &ScopeWork<'_, '_>, steps: &StepTable, lent: &[FloorDonor]) -> Vec<GroupCeilings> {
    let ((found, rows), (inside, gap)) = rayon::join(|| found(work, steps, lent), || idle_inside(work.index, &work.idle, steps));
    of_groups(found, rows, steps, &inside, gap)
}

/// The idle time of a scope: its table, and what ceilings of its steps take from it.
#[derive(Debug)]
pub struct StepIdle {
    /// The table.
    pub table: IdleTable,
    /// Its stretches.
    pub stretches: IdleStretches,
    inside: IdleInside,
    gap: Option<Ns>,
}

/// Finds why devices were idle once for the table and the ceilings of steps: a trace has several pieces of idle time a kernel.
pub fn step_idle(work: &ScopeWork<'_, '_>, steps: &StepTable) -> StepIdle {
    let gap = replay::graph_gap_of(work.idle.inside_graphs());
    let mut inside = IdleInside::new(work.index.trace().devices.len(), steps);
    let (table, stretches) = work.idle.table(true, Some(&mut |piece: IdlePiece| add_inside(&mut inside, &piece, gap)));
    inside.finish();
    StepIdle { table, stretches, inside, gap }
}

/// The same as [`step_ceilings`], with idle time that was looked at before.
pub fn step_ceilings_with(work: &ScopeWork<'_, '_>, steps: &StepTable, lent: &[FloorDonor], idle: &StepIdle) -> Vec<GroupCeilings> {
    let (found, rows) = found(work, steps, lent);
    of_groups(found, rows, steps, &idle.inside, idle.gap)
}

/// The ceilings of device work, and what rows take and must take.
fn found<'a, 't>(work: &ScopeWork<'a, 't>, steps: &StepTable, lent: &[FloorDonor]) -> (Finder<'a, 't>, Vec<Vec<OfRow>>) {
    let ScopeWork { index, scope, peaks, ref works, .. } = *work;
    let mut found = Finder::new(index, scope.wall(index), peaks);
    let turns = Turns::of(index.trace());
    let lines = Lines::of(index.trace(), &turns, steps);
    let mut rows = rows::of_rows(index.trace(), steps, works, &lines.alone.of_activity);
    let own = lent::donors(steps, &rows);
    let lenders: Vec<Option<String>> =
        steps.groups.iter().zip(&mut rows).map(|(group, rows)| lent::borrow(group, rows, lent, &own)).collect();
    found.roles(steps, &rows, &lenders, lines);
    found.chains(steps, works, &turns);
    (found, rows)
}

/// Each group with its ceilings.
fn of_groups(
    mut found: Finder<'_, '_>,
    rows: Vec<Vec<OfRow>>,
    steps: &StepTable,
    inside: &IdleInside,
    gap: Option<Ns>,
) -> Vec<GroupCeilings> {
    found.idle_inside(steps, inside, gap);
    let mut of_groups: Vec<GroupCeilings> = steps
        .groups
        .iter()
        .zip(rows)
        .map(|(group, rows)| GroupCeilings { rows: row_ceilings(group, &rows), ceilings: Vec::new(), best: None })
        .collect();
    for row in found.rows {
        if let Some(of_group) = row.subject.group().and_then(|group| of_groups.get_mut(group as usize)) {
            of_group.ceilings.push(row);
        }
    }
    for of_group in &mut of_groups {
        of_group.sort();
    }
    of_groups
}

/// The floor of each row and what it takes above that, for a step on the median, where all of it is known.
fn row_ceilings(group: &StepGroup, rows: &[OfRow]) -> Vec<RowCeiling> {
    let steps = group.steps.len();
    let of_row = |(row, known): (&StepRow, &OfRow)| {
        let is_known = known.whole.is_known();
        RowCeiling {
            floor_ns: is_known.then(|| known.floor_per_step(steps)),
            ceiling_ns: is_known.then(|| win_per_step(row, known, steps)),
        }
    };
    group.rows.iter().zip(rows).map(of_row).collect()
}

/// What a row at its floor wins of a step. Its time there is a median too, and no less.
fn win_per_step(row: &StepRow, known: &OfRow, steps: usize) -> Ns {
    known.win_per_step(steps).min(row.ns_per_step)
}

/// Idle time inside all steps, and the gap that a graph leaves between kernels.
fn idle_inside(index: &TraceIndex<'_>, idle: &IdleWalk<'_, '_>, steps: &StepTable) -> (IdleInside, Option<Ns>) {
    let gap = replay::graph_gap_of(idle.inside_graphs());
    let mut inside = IdleInside::new(index.trace().devices.len(), steps);
    idle.each_piece(&mut |piece| add_inside(&mut inside, &piece, gap));
    inside.finish();
    (inside, gap)
}

fn add_inside(inside: &mut IdleInside, piece: &IdlePiece, gap: Option<Ns>) {
    let removed = replay::removed_of(piece, gap);
    inside.add(piece.device, Interval { start: piece.start, end: piece.end }, piece.cause, removed);
}

/// A device and time on it.
type Time = Vec<(DeviceId, IntervalSet)>;

struct Finder<'a, 't> {
    index: &'a TraceIndex<'t>,
    peaks: Option<&'a Peaks>,
    wall_ns: Ns,
    /// Whether rows carry the time that they are won from.
    keeps_time: bool,
    rows: Vec<CeilingRow>,
}

impl<'a, 't> Finder<'a, 't> {
    fn new(index: &'a TraceIndex<'t>, wall_ns: Ns, peaks: Option<&'a Peaks>) -> Self {
        Self { index, peaks, wall_ns, keeps_time: false, rows: Vec::new() }
    }

    /// Adds a row, if it wins anything.
    fn add(&mut self, subject: CeilingSubject, kind: CeilingKind, ceiling_ns: Ns, per_step_ns: Option<Ns>, time: Time, basis: String) {
        if ceiling_ns <= Ns::ZERO {
            return;
        }
        let whole = self.wall_ns.get() as f64 * time.len().max(1) as f64;
        self.rows.push(CeilingRow {
            subject,
            kind,
            ceiling_ns,
            share_of_wall: (whole > 0.0).then(|| (ceiling_ns.get() as f64 / whole).min(1.0)),
            per_step_ns,
            basis,
            time: if self.keeps_time { time } else { Vec::new() },
        });
    }

    /// Each role of each group: free, and at its floor. `lenders` names whose shapes a group's floors are of, where they are borrowed.
    fn roles(&mut self, steps: &StepTable, rows: &[Vec<OfRow>], lenders: &[Option<String>], lines: Lines) {
        for ((group_at, line), time_alone) in lines.lines.into_iter().zip(lines.alone.sets) {
            let group = &steps.groups[group_at];
            let first = &group.rows[line[0]];
            let subject = || CeilingSubject::Role {
                group: group_at as u32,
                rows: line.iter().map(|&row| row as u32).collect(),
                part: first.part,
                role: first.role.clone(),
            };
            let exclusive: Ns = time_alone.iter().map(|(_, set)| set.total()).sum();
            let known: Floored = line.iter().map(|&row| rows[group_at][row].whole).sum();
            let count = group.steps.len();
            let of_rows = || line.iter().map(|&row| (&group.rows[row], &rows[group_at][row]));
            let peaks = self.peaks.filter(|_| known.is_mostly_known());
            if let Some(peaks) = peaks {
                let partly =
                    if known.unknown > Ns::ZERO { format!(" ({} of it without a floor)", time(known.unknown)) } else { String::new() };
                let is_borrowed = first.role_from == RoleSource::Borrowed;
                let shapes = lenders[group_at]
                    .as_ref()
                    .filter(|_| is_borrowed)
                    .map_or_else(String::new, |name| format!(", by the shapes of `{name}`"));
                let basis = format!("takes {}{partly} and must take {} on {}{shapes}", time(known.taken), time(known.floor()), peaks.name);
                let win = (known.above + known.unknown).min(exclusive);
                let per_step = of_rows().map(|(row, known)| win_per_step(row, known, count)).sum::<Ns>().min(group.busy_ns);
                self.add(subject(), known.kind(), win, Some(per_step), time_alone.clone(), basis);
            }
            // Where nothing is put together, that a role were free says less than its floor.
            if peaks.is_some() && !self.keeps_time {
                continue;
            }
            let calls = line.iter().map(|&row| group.rows[row].calls).sum();
            let basis = format!("{} on {} with nothing else on the device", time(exclusive), counted(calls, "call"));
            let per_step = of_rows().map(|(row, known)| known.alone_per_step(count).min(row.ns_per_step)).sum::<Ns>().min(group.busy_ns);
            self.add(subject(), CeilingKind::WorkFree, exclusive, Some(per_step), time_alone, basis);
        }
    }

    /// Idle time inside the steps of each group: each cause gone, and what replaying removes.
    fn idle_inside(&mut self, steps: &StepTable, inside: &IdleInside, gap: Option<Ns>) {
        for (at, group) in steps.groups.iter().enumerate() {
            let sums = inside.inside(group.device, &extents(&group.steps));
            let of_steps: Vec<inside::Sums> = group.steps.iter().map(|step| inside.inside_one(group.device, extent(step))).collect();
            let per_step = |cause: usize| per_step::median(of_steps.iter().map(|sums| sums[cause]).collect(), of_steps.len());
            for cause in IdleCause::ALL {
                let subject = CeilingSubject::Cause { group: Some(at as u32), cause };
                let (win, per_step) = (sums[cause.index()], per_step(cause.index()));
                self.add(subject, CeilingKind::IdleGone, win, Some(per_step), Vec::new(), idle_basis(&group.steps));
            }
            if is_replayable(self.index, group) {
                let warm = warm(self.index.trace(), group);
                let win = inside.inside(group.device, &extents(warm))[IdleCause::COUNT];
                self.replay(at, group, win, per_step(IdleCause::COUNT), Vec::new(), gap);
            }
        }
    }

    /// A group that could be replayed from a graph.
    fn replay(&mut self, at: usize, group: &StepGroup, win: Ns, per_step: Ns, time_inside: Time, gap: Option<Ns>) {
        let warm = warm(self.index.trace(), group);
        let beyond = gap.map_or_else(String::new, |gap| format!(" beyond the {} that a graph leaves between kernels", time(gap)));
        let without = if warm.len() < group.steps.len() { ", the cold first one left out," } else { "" };
        let basis = format!(
            "{}{without} for dispatch, Python, code outside operators, memory management, and launch latency{beyond}",
            idle_basis(warm)
        );
        let subject = CeilingSubject::Steps { group: at as u32, name: group.name.clone() };
        self.add(subject, CeilingKind::GraphReplay, win, Some(per_step), time_inside, basis);
    }

    /// Each cause of idle time, everywhere and inside the steps of each group.
    fn causes(&mut self, steps: &StepTable, idle: &[IdlePiece]) {
        let mut of_cause: Vec<Time> = vec![Vec::new(); IdleCause::COUNT];
        for of_device in idle.chunk_by(|a, b| a.device == b.device) {
            let mut intervals: Vec<Vec<Interval>> = vec![Vec::new(); IdleCause::COUNT];
            for piece in of_device {
                intervals[piece.cause.index()].push(Interval { start: piece.start, end: piece.end });
            }
            for (time, intervals) in of_cause.iter_mut().zip(intervals).filter(|(_, intervals)| !intervals.is_empty()) {
                time.push((of_device[0].device, IntervalSet::from_unsorted(intervals)));
            }
        }
        for (&cause, everywhere) in IdleCause::ALL.iter().zip(of_cause) {
            for (at, group) in steps.groups.iter().enumerate() {
                let Some((device, set)) = everywhere.iter().find(|(device, _)| *device == group.device) else { continue };
                let inside = clipped(set, &extents(&group.steps));
                let subject = CeilingSubject::Cause { group: Some(at as u32), cause };
                let (idle, per_step, inside) = (inside.total(), of_each(group, &inside), vec![(*device, inside)]);
                self.add(subject, CeilingKind::IdleGone, idle, Some(per_step), inside, idle_basis(&group.steps));
            }
            let idle = everywhere.iter().map(|(_, set)| set.total()).sum();
            let basis = "idle time between the first and the last work of a device".to_owned();
            self.add(CeilingSubject::Cause { group: None, cause }, CeilingKind::IdleGone, idle, None, everywhere, basis);
        }
    }

    /// Each group that could be replayed from a graph.
    fn replays(&mut self, steps: &StepTable, idle: &[IdlePiece]) {
        let gap = graph_gap(idle);
        let mut of_device: HashMap<DeviceId, IntervalSet, FixedState> = HashMap::default();
        for (at, group) in steps.groups.iter().enumerate().filter(|(_, group)| is_replayable(self.index, group)) {
            let removed = of_device.entry(group.device).or_insert_with(|| removed(idle, group.device, gap));
            let per_step = of_each(group, &clipped(removed, &extents(&group.steps)));
            let inside = clipped(removed, &extents(warm(self.index.trace(), group)));
            self.replay(at, group, inside.total(), per_step, vec![(group.device, inside)], gap);
        }
    }
}

fn idle_basis(steps: &[Step]) -> String {
    format!("idle time inside {}", counted(steps.len() as u64, "step"))
}

/// What lies in each step of a group, on the median.
fn of_each(group: &StepGroup, inside: &IntervalSet) -> Ns {
    let inside = Covered::of(inside.clone());
    per_step::median(group.steps.iter().map(|step| inside.inside(extent(step))).collect(), group.steps.len())
}

/// The rows of all groups that do one thing together, with the group of each, and the time that each has to itself.
struct Lines {
    lines: Vec<(usize, Vec<usize>)>,
    alone: Alone,
}

impl Lines {
    fn of(trace: &Trace, turns: &Turns, steps: &StepTable) -> Self {
        let mut owner_of = vec![alone::NO_OWNER; trace.activities.len()];
        let mut lines: Vec<(usize, Vec<usize>)> = Vec::new();
        for (at, group) in steps.groups.iter().enumerate() {
            let mut owner_of_row = vec![alone::NO_OWNER; group.rows.len()];
            for line in role_lines(group) {
                for &row in &line {
                    owner_of_row[row] = lines.len() as u32;
                }
                lines.push((at, line));
            }
            for step in &group.steps {
                for (activity, &row) in step.activities.iter().zip(&step.rows) {
                    owner_of[activity.index()] = owner_of_row[row as usize];
                }
            }
        }
        let alone = alone::alone(trace, turns, &owner_of, lines.len());
        Self { lines, alone }
    }
}
