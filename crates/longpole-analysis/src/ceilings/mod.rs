//! Ceilings: the most that a change can win, for every role of a step, every cause of idle time, and steps as a whole.
//!
//! A ceiling is an upper bound under one supposition (see [`CeilingKind`]) and everything else as it was. Each comes with the device time
//! it is won from, so that those of several changes can be put together without winning any time twice
//! ([`CeilingRow::together`]). The definitions are in `docs/ceilings.md`.

mod alone;
mod chains;
mod floors;
mod inside;
mod lent;
mod lines;
mod replay;
mod rows;
#[cfg(test)]
mod tests;
mod types;

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use longpole_trace::{ActivityId, DeviceId, Interval, IntervalSet, Ns, Trace};

pub(crate) use chains::{all_runs, fusable};
pub(crate) use floors::{AtFloor, above_floor};
use inside::IdleInside;
pub use lent::{FloorDonor, floor_donors};
pub use lines::role_lines;
pub(crate) use replay::{Replay, replay_marked};
use replay::{extents, graph_gap, is_replayable, removed};
use rows::Floored;
pub use types::{CeilingKind, CeilingRow, CeilingSubject, CeilingTable, GroupCeilings, RowCeiling};

use crate::idle::{IdleCause, IdlePiece, IdleWalk};
use crate::index::TraceIndex;
use crate::phrases::{counted, time};
use crate::roofline::{CallWork, Peaks, call_works};
use crate::scope::Scope;
use crate::steps::{RoleSource, StepGroup, StepRow, StepTable};

/// The ceilings of a scope, with the time that each is won from. `steps` and `idle` are those of the same scope ([`crate::step_table`],
/// [`crate::idle_pieces`]: pieces of one device stand together). Without peaks there are no floors.
pub fn ceilings(index: &TraceIndex<'_>, scope: &Scope, steps: &StepTable, idle: &[IdlePiece], peaks: Option<&Peaks>) -> CeilingTable {
    let wall_ns = scope.wall(index);
    let mut found = Finder::new(index, wall_ns, peaks);
    found.keeps_time = true;
    let works = call_works(index, peaks, |row| scope.includes_activity(index, ActivityId(row)));
    let rows = rows::of_rows(index.trace(), steps, &works.0, &works.1);
    let lenders = vec![None; steps.groups.len()];
    found.roles(steps, &rows, &lenders);
    found.chains(steps, &works.0, &works.1);
    found.causes(steps, idle);
    found.replays(steps, idle);
    found.rows.sort_by_key(|row| std::cmp::Reverse(row.ceiling_ns));
    CeilingTable { rows: found.rows, wall_ns }
}

/// The ceilings of each group of steps, without the time that they are won from. `lent` are floors of steps of another trace
/// ([`floor_donors`]), for groups that borrowed their roles from them.
pub fn step_ceilings(
    index: &TraceIndex<'_>,
    scope: &Scope,
    steps: &StepTable,
    peaks: Option<&Peaks>,
    lent: &[FloorDonor],
) -> Vec<GroupCeilings> {
    // The links are there by now, so that no part waits for another inside.
    index.links();
    let ((mut found, rows), (inside, gap)) = rayon::join(
        || {
            let mut found = Finder::new(index, scope.wall(index), peaks);
            let works = call_works(index, peaks, |row| scope.includes_activity(index, ActivityId(row)));
            let mut rows = rows::of_rows(index.trace(), steps, &works.0, &works.1);
            let own = lent::donors(steps, &rows);
            let lenders: Vec<Option<String>> =
                steps.groups.iter().zip(&mut rows).map(|(group, rows)| lent::borrow(group, rows, lent, &own)).collect();
            found.roles(steps, &rows, &lenders);
            found.chains(steps, &works.0, &works.1);
            (found, rows)
        },
        || idle_inside(index, scope, steps),
    );
    found.idle_inside(steps, &inside, gap);
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

/// The floor of each row and what it takes above that, for a step on the mean, where all of it is known.
fn row_ceilings(group: &StepGroup, rows: &[Floored]) -> Vec<RowCeiling> {
    let steps = i64::try_from(group.steps.len().max(1)).unwrap_or(i64::MAX);
    let of_row = |(row, known): (&StepRow, &Floored)| {
        let each = |whole: Ns| known.is_known().then(|| Ns(whole.get() / steps));
        // The time of a step is a median: no more than that is said to be won of it.
        RowCeiling { floor_ns: each(known.floor()), ceiling_ns: each(known.above.min(row.total_ns)).map(|win| win.min(row.ns_per_step)) }
    };
    group.rows.iter().zip(rows).map(of_row).collect()
}

/// Idle time inside all steps, and the gap that a graph leaves between kernels.
fn idle_inside(index: &TraceIndex<'_>, scope: &Scope, steps: &StepTable) -> (IdleInside, Option<Ns>) {
    let idle = IdleWalk::new(index, scope);
    let gap = replay::graph_gap_of(idle.inside_graphs());
    let mut inside = IdleInside::new(index.trace().devices.len(), steps);
    idle.each_piece(&mut |piece| {
        let removed = replay::removed_of(&piece, gap);
        inside.add(piece.device, Interval { start: piece.start, end: piece.end }, piece.cause, removed);
    });
    inside.finish();
    (inside, gap)
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
    fn add(&mut self, subject: CeilingSubject, kind: CeilingKind, ceiling_ns: Ns, steps: Option<usize>, time: Time, basis: String) {
        if ceiling_ns <= Ns::ZERO {
            return;
        }
        let whole = self.wall_ns.get() as f64 * time.len().max(1) as f64;
        self.rows.push(CeilingRow {
            subject,
            kind,
            ceiling_ns,
            share_of_wall: (whole > 0.0).then(|| (ceiling_ns.get() as f64 / whole).min(1.0)),
            per_step_ns: steps.filter(|&steps| steps > 0).map(|steps| Ns(ceiling_ns.get() / steps as i64)),
            basis,
            time: if self.keeps_time { time } else { Vec::new() },
        });
    }

    /// Each role of each group: free, and at its floor. `lenders` names whose shapes a group's floors are of, where they are borrowed.
    fn roles(&mut self, steps: &StepTable, rows: &[Vec<Floored>], lenders: &[Option<String>]) {
        let trace = self.index.trace();
        let mut owner_of = vec![alone::NO_OWNER; trace.activities.len()];
        let mut owners: Vec<(usize, Vec<usize>)> = Vec::new();
        for (at, group) in steps.groups.iter().enumerate() {
            let mut owner_of_row = vec![alone::NO_OWNER; group.rows.len()];
            for line in role_lines(group) {
                for &row in &line {
                    owner_of_row[row] = owners.len() as u32;
                }
                owners.push((at, line));
            }
            for step in &group.steps {
                for (activity, &row) in step.activities.iter().zip(&step.rows) {
                    owner_of[activity.index()] = owner_of_row[row as usize];
                }
            }
        }
        let alone = alone::alone(trace, &owner_of, owners.len());
        for ((group_at, line), time_alone) in owners.into_iter().zip(alone) {
            let group = &steps.groups[group_at];
            let first = &group.rows[line[0]];
            let subject = || CeilingSubject::Role {
                group: group_at as u32,
                rows: line.iter().map(|&row| row as u32).collect(),
                part: first.part,
                role: first.role.clone(),
            };
            let exclusive: Ns = time_alone.iter().map(|(_, set)| set.total()).sum();
            let known: Floored = line.iter().map(|&row| rows[group_at][row]).sum();
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
                self.add(subject(), known.kind(), win, Some(group.steps.len()), time_alone.clone(), basis);
            }
            // Where nothing is put together, that a role were free says less than its floor.
            if peaks.is_some() && !self.keeps_time {
                continue;
            }
            let calls = line.iter().map(|&row| group.rows[row].calls).sum();
            let basis = format!("{} on {} with nothing else on the device", time(exclusive), counted(calls, "call"));
            self.add(subject(), CeilingKind::WorkFree, exclusive, Some(group.steps.len()), time_alone, basis);
        }
    }

    /// Idle time inside the steps of each group: each cause gone, and what replaying removes.
    fn idle_inside(&mut self, steps: &StepTable, inside: &IdleInside, gap: Option<Ns>) {
        for (at, group) in steps.groups.iter().enumerate() {
            let sums = inside.inside(group.device, &extents(group));
            for cause in IdleCause::ALL {
                let subject = CeilingSubject::Cause { group: Some(at as u32), cause };
                self.add(subject, CeilingKind::IdleGone, sums[cause.index()], Some(group.steps.len()), Vec::new(), idle_basis(group));
            }
            if is_replayable(self.index, group) {
                self.replay(at, group, sums[IdleCause::COUNT], Vec::new(), gap);
            }
        }
    }

    /// A group that could be replayed from a graph.
    fn replay(&mut self, at: usize, group: &StepGroup, win: Ns, time_inside: Time, gap: Option<Ns>) {
        let beyond = gap.map_or_else(String::new, |gap| format!(" beyond the {} that a graph leaves between kernels", time(gap)));
        let basis = format!(
            "idle time inside {} for dispatch, Python, code outside operators, memory management, and launch latency{beyond}",
            counted(group.steps.len() as u64, "step")
        );
        let subject = CeilingSubject::Steps { group: at as u32, name: group.name.clone() };
        self.add(subject, CeilingKind::GraphReplay, win, Some(group.steps.len()), time_inside, basis);
    }

    /// Runs of fusable kernels, by their places in the group's table.
    fn chains(&mut self, steps: &StepTable, calls: &[CallWork], call_of: &[u32]) {
        let trace = self.index.trace();
        let fusable = fusable(trace);
        let mut is_member = vec![false; trace.activities.len()];
        let mut of_groups: Vec<Vec<Chain>> = Vec::with_capacity(steps.groups.len());
        for group in &steps.groups {
            let mut chained: Vec<Chain> = Vec::new();
            let mut of_places: HashMap<&[u32], usize, FixedState> = HashMap::default();
            for step in &group.steps {
                for run in chains::runs(trace, &step.activities, |id| fusable[id.index()]) {
                    let (places, members) = (&step.rows[run.clone()], &step.activities[run]);
                    let chain = *of_places.entry(places).or_insert_with(|| {
                        chained.push(Chain { rows: places.to_vec(), runs: Vec::new(), bytes: Some((0, 0)) });
                        chained.len() - 1
                    });
                    for id in members {
                        is_member[id.index()] = true;
                    }
                    let bytes = chains::bytes(members, calls, call_of).filter(|_| self.peaks.is_some());
                    let chain = &mut chained[chain];
                    chain.bytes = chain
                        .bytes
                        .zip(bytes)
                        .map(|((now, fused), bytes)| (now.saturating_add(bytes.now), fused.saturating_add(bytes.fused)));
                    chain.runs.push((chains::extent(trace, members), chains::least_time(trace, members, bytes, self.peaks)));
                }
            }
            of_groups.push(chained);
        }
        let others = others(trace, &is_member);
        for (at, (group, chained)) in steps.groups.iter().zip(of_groups).enumerate() {
            for chain in chained {
                self.chain(at, group, &others[group.device.index()], chain);
            }
        }
    }

    fn chain(&mut self, at: usize, group: &StepGroup, others: &Covered, chain: Chain) {
        let mut win = Ns::ZERO;
        for &(extent, least) in &chain.runs {
            win += (extent.len() - others.inside(extent) - least).max(Ns::ZERO);
        }
        let extents = IntervalSet::from_unsorted(chain.runs.iter().map(|&(extent, _)| extent).collect());
        let claimed = if self.keeps_time { vec![(group.device, extents.difference(&clipped(&others.set, &extents)))] } else { Vec::new() };
        let kernels = chain.rows.len() as u64;
        let times = counted(chain.runs.len() as u64, "time");
        let basis = match (chain.bytes, self.peaks) {
            (Some((now, fused)), Some(peaks)) => format!(
                "{} in a row, {times}, move {} and need to move {}: {} of it at the bandwidth of {}, no less than the shortest kernel",
                counted(kernels, "kernel"),
                megabytes(now),
                megabytes(fused),
                megabytes(fused),
                peaks.name
            ),
            _ => format!(
                "{} in a row, {times}: all but the shortest of each run, and the gaps between them; shapes are not recorded or the device is not known",
                counted(kernels, "kernel")
            ),
        };
        let roles = chain.rows.iter().map(|&row| group.rows[row as usize].role.clone()).collect();
        let subject = CeilingSubject::Chain { group: at as u32, rows: chain.rows, roles };
        self.add(subject, CeilingKind::Fused, win, Some(group.steps.len()), claimed, basis);
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
                let inside = clipped(set, &extents(group));
                let (idle, count, basis) = (inside.total(), group.steps.len(), idle_basis(group));
                let subject = CeilingSubject::Cause { group: Some(at as u32), cause };
                self.add(subject, CeilingKind::IdleGone, idle, Some(count), vec![(*device, inside)], basis);
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
            let inside = clipped(removed, &extents(group));
            self.replay(at, group, inside.total(), vec![(group.device, inside)], gap);
        }
    }
}

fn idle_basis(group: &StepGroup) -> String {
    format!("idle time inside {}", counted(group.steps.len() as u64, "step"))
}

/// Runs of the same places.
struct Chain {
    rows: Vec<u32>,
    /// Extent of each run, and the least time of what takes its place.
    runs: Vec<(Interval, Ns)>,
    /// Bytes moved now and at least, if known of all runs.
    bytes: Option<(u64, u64)>,
}

/// When each device ran anything but the members of chains.
fn others(trace: &Trace, is_member: &[bool]) -> Vec<Covered> {
    let activities = &trace.activities;
    let mut of_device: Vec<Vec<Interval>> = vec![Vec::new(); trace.devices.len()];
    for row in (0..activities.len()).filter(|&row| !is_member[row]) {
        of_device[trace.lanes[activities.lane[row].index()].device.index()].push(Interval::new(activities.start[row], activities.dur[row]));
    }
    of_device.into_iter().map(|intervals| Covered::of(IntervalSet::from_unsorted(intervals))).collect()
}

/// A set that says quickly how much of it lies in an interval.
struct Covered {
    set: IntervalSet,
    /// Total length of the intervals before each.
    before: Vec<Ns>,
}

impl Covered {
    fn of(set: IntervalSet) -> Self {
        let mut before = Vec::with_capacity(set.intervals().len());
        let mut sum = Ns::ZERO;
        for interval in set.intervals() {
            before.push(sum);
            sum += interval.len();
        }
        Self { set, before }
    }

    /// The interval that holds a time.
    fn around(&self, at: Ns) -> Option<Interval> {
        let after = self.set.intervals().partition_point(|interval| interval.start <= at);
        self.set.intervals()[..after].last().copied().filter(|interval| at < interval.end)
    }

    fn until(&self, at: Ns) -> Ns {
        let after = self.set.intervals().partition_point(|interval| interval.start < at);
        after.checked_sub(1).map_or(Ns::ZERO, |last| {
            let interval = self.set.intervals()[last];
            self.before[last] + (at.min(interval.end) - interval.start)
        })
    }

    fn inside(&self, interval: Interval) -> Ns {
        self.until(interval.end) - self.until(interval.start)
    }
}

/// The part of a set inside another of few intervals: the time this takes grows with those and with what is found.
fn clipped(set: &IntervalSet, to: &IntervalSet) -> IntervalSet {
    let all = set.intervals();
    let mut found = Vec::new();
    for window in to.intervals() {
        let first = all.partition_point(|interval| interval.end <= window.start);
        let inside = all[first..].iter().take_while(|interval| interval.start < window.end);
        found.extend(inside.map(|part| Interval { start: part.start.max(window.start), end: part.end.min(window.end) }));
    }
    IntervalSet::from_unsorted(found)
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}
