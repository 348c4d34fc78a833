//! Ceilings: the most that a change can win, for every role of a step, every cause of idle time, and steps as a whole.
//!
//! A ceiling is an upper bound under one supposition (see [`CeilingKind`]) and everything else as it was. Each comes with the device time
//! it is won from, so that those of several changes can be put together without winning any time twice
//! ([`CeilingRow::together`]). The definitions are in `docs/ceilings.md`.

mod alone;
mod chains;
mod floors;
mod replay;
#[cfg(test)]
mod tests;
mod types;

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use longpole_trace::{ActivityId, DeviceId, Interval, IntervalSet, Ns, Trace};

pub(crate) use chains::{all_runs, fusable};
pub(crate) use floors::{AtFloor, above_floor};
pub(crate) use replay::{Replay, replay_marked};
use replay::{extents, graph_gap, is_replayable, removed};
pub use types::{CeilingKind, CeilingRow, CeilingSubject, CeilingTable};

use crate::idle::{IdleCause, IdlePiece};
use crate::index::TraceIndex;
use crate::phrases::{counted, time};
use crate::roofline::{CallWork, NO_CALL, Peaks, call_works};
use crate::scope::Scope;
use crate::steps::{StepGroup, StepTable};

/// The ceilings of a scope. `steps` and `idle` are those of the same scope ([`crate::step_table`], [`crate::idle_pieces`]: pieces of one
/// device stand together). Without peaks there are no floors.
pub fn ceilings(index: &TraceIndex<'_>, scope: &Scope, steps: &StepTable, idle: &[IdlePiece], peaks: Option<&Peaks>) -> CeilingTable {
    let wall_ns = scope.wall(index);
    let mut found = Finder { index, peaks, wall_ns, rows: Vec::new() };
    let (calls, call_of) = call_works(index, peaks, |row| scope.includes_activity(index, ActivityId(row)));
    found.roles(steps, &calls, &call_of);
    found.chains(steps, &calls, &call_of);
    found.causes(steps, idle);
    found.replays(steps, idle);
    found.rows.sort_by_key(|row| std::cmp::Reverse(row.ceiling_ns));
    CeilingTable { rows: found.rows, wall_ns }
}

/// A device and time on it.
type Time = Vec<(DeviceId, IntervalSet)>;

struct Finder<'a, 't> {
    index: &'a TraceIndex<'t>,
    peaks: Option<&'a Peaks>,
    wall_ns: Ns,
    rows: Vec<CeilingRow>,
}

impl Finder<'_, '_> {
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
            time,
        });
    }

    /// Each row of each group: free, and at its floor.
    fn roles(&mut self, steps: &StepTable, calls: &[CallWork], call_of: &[u32]) {
        let trace = self.index.trace();
        let mut owner_of = vec![alone::NO_OWNER; trace.activities.len()];
        let mut owners: Vec<(usize, usize)> = Vec::new();
        // Owner, call and time of each activity of a step.
        let mut parts: Vec<(u32, u32, Ns)> = Vec::new();
        for (at, group) in steps.groups.iter().enumerate() {
            let first = owners.len() as u32;
            owners.extend((0..group.rows.len()).map(|row| (at, row)));
            for step in &group.steps {
                for (activity, &row) in step.activities.iter().zip(&step.rows) {
                    owner_of[activity.index()] = first + row;
                    let call = call_of.get(activity.index()).copied().unwrap_or(NO_CALL);
                    parts.push((first + row, call, trace.activities.dur[activity.index()].max(Ns::ZERO)));
                }
            }
        }
        parts.sort_unstable_by_key(|&(owner, call, _)| (owner, call));
        let mut at_floors: Vec<Option<AtFloor>> = vec![None; owners.len()];
        for of_owner in parts.chunk_by(|a, b| a.0 == b.0) {
            at_floors[of_owner[0].0 as usize] = floors::at_floor(of_owner, calls);
        }
        let alone = alone::alone(trace, &owner_of, owners.len());
        for (((group_at, row_at), time_alone), floor) in owners.into_iter().zip(alone).zip(at_floors) {
            let group = &steps.groups[group_at];
            let row = &group.rows[row_at];
            let subject = || CeilingSubject::Role { group: group_at as u32, row: row_at as u32, role: row.role.clone() };
            let exclusive: Ns = time_alone.iter().map(|(_, set)| set.total()).sum();
            if let (Some(floor), Some(peaks)) = (floor, self.peaks) {
                let known =
                    if floor.unknown > Ns::ZERO { format!(" ({} of it without a floor)", time(floor.unknown)) } else { String::new() };
                let basis = format!("takes {}{known} and must take {} on {}", time(floor.taken), time(floor.floor), peaks.name);
                self.add(subject(), floor.kind, floor.above.min(exclusive), Some(group.steps.len()), time_alone.clone(), basis);
            }
            let basis = format!("{} on {} with nothing else on the device", time(exclusive), counted(row.calls, "call"));
            self.add(subject(), CeilingKind::WorkFree, exclusive, Some(group.steps.len()), time_alone, basis);
        }
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
        let claimed = vec![(group.device, extents.difference(&clipped(&others.set, &extents)))];
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
                let (idle, count) = (inside.total(), group.steps.len());
                let basis = format!("idle time inside {}", counted(count as u64, "step"));
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
        for (at, group) in steps.groups.iter().enumerate().filter(|(_, group)| is_replayable(group)) {
            let removed = of_device.entry(group.device).or_insert_with(|| removed(idle, group.device, gap));
            let inside = clipped(removed, &extents(group));
            let beyond = gap.map_or_else(String::new, |gap| format!(" beyond the {} that a graph leaves between kernels", time(gap)));
            let basis = format!(
                "idle time inside {} for dispatch, Python, code outside operators, memory management, and launch latency{beyond}",
                counted(group.steps.len() as u64, "step")
            );
            let subject = CeilingSubject::Steps { group: at as u32, name: group.name.clone() };
            self.add(subject, CeilingKind::GraphReplay, inside.total(), Some(group.steps.len()), vec![(group.device, inside)], basis);
        }
    }
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
