//! Runs of fusable kernels in steps, put together by their places, and what each place of such a run wins.

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use longpole_trace::{Interval, IntervalSet, Ns, Trace};

use super::alone::{self, NO_OWNER};
use super::chains::{self, NoBytes};
use super::covered::{Covered, clipped};
use super::per_step::median_of_sums;
use super::types::{CeilingKind, CeilingSubject};
use super::{Finder, Time, fusable};
use crate::phrases::counted;
use crate::roofline::CallWorks;
use crate::steps::{StepGroup, StepTable};
use crate::turns::Turns;

/// Runs of the same places.
struct Chain {
    group: usize,
    rows: Vec<u32>,
    /// In order of steps.
    runs: Vec<Run>,
    /// Bytes moved now and at least, or why they are not known of all runs.
    bytes: Result<(u64, u64), NoBytes>,
}

struct Run {
    step: u32,
    extent: Interval,
    /// The least time of what takes its place.
    least: Ns,
}

impl Finder<'_, '_> {
    /// Runs of fusable kernels, by their places in the group's table.
    pub(super) fn chains(&mut self, steps: &StepTable, works: &CallWorks, turns: &Turns) {
        let trace = self.index.trace();
        let fusable = fusable(trace);
        let mut owner_of = vec![NO_OWNER; trace.activities.len()];
        let mut chained: Vec<Chain> = Vec::new();
        for (at, group) in steps.groups.iter().enumerate() {
            let mut of_places: HashMap<&[u32], usize, FixedState> = HashMap::default();
            for (number, step) in (0..).zip(&group.steps) {
                for run in chains::runs(trace, &step.activities, |id| fusable[id.index()]) {
                    let (places, members) = (&step.rows[run.clone()], &step.activities[run]);
                    let owner = *of_places.entry(places).or_insert_with(|| {
                        chained.push(Chain { group: at, rows: places.to_vec(), runs: Vec::new(), bytes: Ok((0, 0)) });
                        chained.len() - 1
                    });
                    for id in members {
                        owner_of[id.index()] = owner as u32;
                    }
                    let bytes = if self.peaks.is_some() { chains::bytes(trace, members, works) } else { Err(NoBytes::NoPeaks) };
                    let chain = &mut chained[owner];
                    chain.bytes = chain.bytes.and_then(|(now, fused)| {
                        let bytes = bytes?;
                        Ok((now.saturating_add(bytes.now), fused.saturating_add(bytes.fused)))
                    });
                    let least = chains::least_time(trace, turns, members, bytes.ok(), self.peaks);
                    chain.runs.push(Run { step: number, extent: chains::extent(trace, members), least });
                }
            }
        }
        if chained.is_empty() {
            return;
        }
        let busy = busy(trace);
        let alone = alone::alone(trace, turns, &owner_of, chained.len());
        for (chain, own) in chained.into_iter().zip(alone.sets) {
            let group = &steps.groups[chain.group];
            self.chain(group, &busy[group.device.index()], own, chain);
        }
    }

    /// `busy` is when the device of the group ran anything, `own` when it ran only kernels of this chain, whatever waited behind them.
    fn chain(&mut self, group: &StepGroup, busy: &Covered, own: Time, mut chain: Chain) {
        let own = own.into_iter().find(|(device, _)| *device == group.device);
        let own = Covered::of(own.map_or_else(|| IntervalSet::from_unsorted(Vec::new()), |(_, set)| set));
        // Runs that overlap, as on several streams, have the time in common once: what an earlier one reached is its own.
        chain.runs.sort_by_key(|run| run.extent.start);
        let mut reached = Ns::MIN;
        let mut wins: Vec<(u32, Ns)> = Vec::with_capacity(chain.runs.len());
        for run in &chain.runs {
            let from = run.extent.start.max(reached);
            let part = Interval { start: from, end: run.extent.end.max(from) };
            reached = reached.max(run.extent.end);
            let others = busy.inside(part) - own.inside(part);
            wins.push((run.step, (part.len() - others - run.least).max(Ns::ZERO)));
        }
        wins.sort_by_key(|&(step, _)| step);
        let win = wins.iter().map(|&(_, win)| win).sum();
        let per_step = median_of_sums(wins.into_iter(), group.steps.len()).min(group.span_ns);
        let claimed = if self.keeps_time {
            let extents = IntervalSet::from_unsorted(chain.runs.iter().map(|run| run.extent).collect());
            let others = clipped(&busy.set, &extents).difference(&own.set);
            vec![(group.device, extents.difference(&others))]
        } else {
            Vec::new()
        };
        let kernels = counted(chain.rows.len() as u64, "kernel");
        let times = counted(chain.runs.len() as u64, "time");
        let basis = match (chain.bytes, self.peaks) {
            (Ok((now, fused)), Some(peaks)) => format!(
                "{kernels} in a row, {times}, move {} and need to move {}: {} of it at the bandwidth of {}, no less than the shortest kernel",
                megabytes(now),
                megabytes(fused),
                megabytes(fused),
                peaks.name
            ),
            (bytes, _) => format!(
                "{kernels} in a row, {times}: all but the shortest of each run, and the gaps between them; by kernels and not by bytes, since {}",
                bytes.err().unwrap_or(NoBytes::NoPeaks).reason()
            ),
        };
        let roles = chain.rows.iter().map(|&row| group.rows[row as usize].role.clone()).collect();
        let subject = CeilingSubject::Chain { group: chain.group as u32, rows: chain.rows, roles };
        self.add(subject, CeilingKind::Fused, win, Some(per_step), claimed, basis);
    }
}

/// When each device ran anything.
fn busy(trace: &Trace) -> Vec<Covered> {
    let activities = &trace.activities;
    let mut of_device: Vec<Vec<Interval>> = vec![Vec::new(); trace.devices.len()];
    for row in 0..activities.len() {
        of_device[trace.lanes[activities.lane[row].index()].device.index()].push(Interval::new(activities.start[row], activities.dur[row]));
    }
    of_device.into_iter().map(|intervals| Covered::of(IntervalSet::from_unsorted(intervals))).collect()
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}
