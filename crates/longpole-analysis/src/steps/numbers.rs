//! The numbers of steps: one count that every command shows and `--step` takes.
//!
//! Counted are the steps that are found in the whole trace, of all groups, warm-up and cut-off ones included, in order of start, from 0.
//! Each device has its own count, but devices whose work lies in the same markers share one, so that a step has one number on all of them.
//! Where every step lies in a `ProfilerStep#K` of its own, its number is `K`.
//!
//! A trace without device work, or whose work shows no steps, is counted by its host: `ProfilerStep#K`; else the instances, on each rank,
//! of the repeated range that covers most host time; else of the range with most instances (at least two) that is neither around a
//! collective nor inside an operator; else graph launches.
//!
//! What is looked at under a scope or with other options is given these numbers where the steps are the same ones ([`StepNumbers::apply`]).

use foldhash::fast::FixedState;
use hashbrown::{HashMap, HashSet};
use longpole_trace::{ActivityId, DeviceId, Interval, Ns, RangeId, StrId, ThreadId, Trace};

use super::Program;
use super::group::Raw;
use super::types::{FoundBy, Step, StepNote, StepTable};
use crate::index::TraceIndex;
use crate::ranges::is_communication;
use crate::scope::{Scope, ScopeSpec};
use crate::step_choice;

const NONE: u32 = u32::MAX;
/// Tenths of a step's activities that must lie in a numbered one for it to be that one.
const IS_THE_SAME: usize = 9;

/// A host interval on a thread.
pub(crate) type OnThread = (ThreadId, Interval);

/// A step that has a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NumberedStep {
    pub(crate) number: u32,
    /// Position of the rank.
    pub(crate) rank: u32,
    /// The host time that marks it: its work is what is launched then. Absent where it was found by its work alone.
    pub(crate) host: Option<OnThread>,
    /// The range that marks it.
    range: Option<RangeId>,
    device: Option<DeviceId>,
    start: Ns,
}

/// What is counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Counted {
    /// Steps as [`crate::step_table`] finds them.
    #[default]
    Steps,
    /// Steps by the numbers of the profiler.
    ProfilerSteps,
    /// Instances of this range on the host.
    Range(String),
    /// Calls that launch graphs.
    GraphLaunches,
}

/// The numbers of a trace's steps.
#[derive(Debug, Default)]
pub(crate) struct StepNumbers {
    pub(crate) steps: Vec<NumberedStep>,
    pub(crate) counted: Counted,
    /// For each device activity its step; empty where steps are counted by the host.
    of_activity: Vec<u32>,
    /// Those that have host time, by thread and start.
    on_host: Vec<u32>,
}

/// The number in `ProfilerStep#17`.
fn profiler_number(name: &str) -> Option<u32> {
    name.strip_prefix("ProfilerStep#").and_then(|number| number.parse().ok())
}

impl StepNumbers {
    /// The numbers of a trace.
    pub(crate) fn of(index: &TraceIndex<'_>) -> Self {
        let Ok(scope) = Scope::resolve(index, &ScopeSpec::default()) else { return Self::default() };
        let found = super::Findings::of(index, &scope, &super::StepOptions::default());
        Self::of_found(index, found.of_device.iter().map(|found| (&found.program, found.raws.as_slice())))
    }

    /// The numbers of the steps found in the whole trace.
    pub(super) fn of_found<'a>(index: &TraceIndex<'_>, found: impl Iterator<Item = (&'a Program, &'a [Raw])>) -> Self {
        let trace = index.trace();
        let mut numbers = Self { of_activity: vec![NONE; trace.activities.len()], ..Self::default() };
        // By step, an activity in its middle, which says where it was launched.
        let mut middle = Vec::new();
        for (program, raws) in found {
            let device = program.sequence.device;
            for raw in raws.iter().filter(|raw| !raw.positions.is_empty()) {
                let rows = || raw.positions.iter().map(|&position| program.sequence.activities[position as usize]);
                rows().for_each(|id| numbers.of_activity[id.index()] = numbers.steps.len() as u32);
                middle.push(program.sequence.activities[raw.positions[raw.positions.len() / 2] as usize]);
                let range = raw.range.filter(|_| raw.by == FoundBy::Marker);
                numbers.steps.push(NumberedStep {
                    number: 0,
                    rank: trace.devices[device.index()].rank,
                    host: range.map(|range| on_thread(trace, range.index())),
                    range,
                    device: Some(device),
                    start: rows().map(|id| trace.activities.start[id.index()]).min().unwrap_or_default(),
                });
            }
        }
        if numbers.steps.is_empty() {
            numbers = Self::of_host(index);
        } else {
            numbers.count(trace, &middle, index);
        }
        let host = |at: u32| numbers.steps[at as usize].host.map(|(thread, interval)| (thread, interval.start));
        let mut on_host: Vec<u32> = (0..numbers.steps.len() as u32).filter(|&at| host(at).is_some()).collect();
        on_host.sort_by_key(|&at| host(at));
        Self { on_host, ..numbers }
    }

    /// Gives each step its number.
    fn count(&mut self, trace: &Trace, middle: &[ActivityId], index: &TraceIndex<'_>) {
        let together = self.together(trace.devices.len());
        let count_of = |step: &NumberedStep| step.device.map_or(0, |device| together[device.index()]);
        let mut order: Vec<usize> = (0..self.steps.len()).collect();
        order.sort_by_key(|&at| (count_of(&self.steps[at]), self.steps[at].start, at));
        let counts: Vec<usize> = self.steps.iter().map(count_of).collect();
        for of_count in order.chunk_by(|&a, &b| counts[a] == counts[b]) {
            let mut known: HashMap<RangeId, u32, FixedState> = HashMap::default();
            let mut next = 0;
            for &at in of_count {
                let number = self.steps[at].range.map_or(next, |range| *known.entry(range).or_insert(next));
                next += u32::from(number == next);
                self.steps[at].number = number;
            }
        }
        if let Some(of_profiler) = self.profiler_numbers(index, middle, &together) {
            self.steps.iter_mut().zip(of_profiler).for_each(|(step, number)| step.number = number);
            self.counted = Counted::ProfilerSteps;
            // Those without device work of their own.
            let known: HashSet<(u32, u32), FixedState> = self.steps.iter().map(|step| (step.rank, step.number)).collect();
            self.steps.extend(profiler_steps(trace).filter(|step| !known.contains(&(step.rank, step.number))));
        }
    }

    /// For each device, the first one whose work lies in the same markers, at any remove.
    fn together(&self, devices: usize) -> Vec<usize> {
        fn first(of: &mut [usize], mut device: usize) -> usize {
            while of[device] != device {
                of[device] = of[of[device]];
                device = of[device];
            }
            device
        }
        let mut of: Vec<usize> = (0..devices).collect();
        let mut device_of: HashMap<RangeId, usize, FixedState> = HashMap::default();
        for step in &self.steps {
            if let (Some(range), Some(device)) = (step.range, step.device) {
                let other = *device_of.entry(range).or_insert(device.index());
                let (a, b) = (first(&mut of, other), first(&mut of, device.index()));
                of[a.max(b)] = a.min(b);
            }
        }
        (0..devices).map(|device| first(&mut of, device)).collect()
    }

    /// The numbers of the profiler, if every step lies in one of its steps and no two of a count in the same.
    fn profiler_numbers(&self, index: &TraceIndex<'_>, middle: &[ActivityId], together: &[usize]) -> Option<Vec<u32>> {
        let (trace, tree) = (index.trace(), index.tree());
        if !trace.ranges.name.iter().any(|&name| profiler_number(trace.strings.get(name)).is_some()) {
            return None;
        }
        let mut seen: HashMap<(usize, u32), u32, FixedState> = HashMap::default();
        let mut numbers = Vec::with_capacity(self.steps.len());
        for (step, &middle) in self.steps.iter().zip(middle) {
            let node = match step.range {
                Some(range) => tree.range_node(range)?,
                None => index.launch(middle).and_then(|(thread, at)| tree.innermost_at(thread, at))?,
            };
            let around = std::iter::once(node).chain(tree.ancestors(node));
            let number = around.filter(|&node| !tree.is_op(node)).find_map(|node| profiler_number(trace.strings.get(tree.name(node))))?;
            let count = step.device.map_or(0, |device| together[device.index()]);
            // The same step on another device is no second one.
            if *seen.entry((count, number)).or_insert(step.number) != step.number {
                return None;
            }
            numbers.push(number);
        }
        Some(numbers)
    }

    /// Steps that the host alone shows.
    fn of_host(index: &TraceIndex<'_>) -> Self {
        let trace = index.trace();
        let steps: Vec<NumberedStep> = profiler_steps(trace).collect();
        if !steps.is_empty() {
            return Self { steps, counted: Counted::ProfilerSteps, ..Self::default() };
        }
        let chosen = Scope::resolve(index, &ScopeSpec::default()).ok().and_then(|scope| step_choice::Steps::find(index, &scope));
        let (rows, counted): (Vec<usize>, _) = if let Some(chosen) = chosen {
            let of_rank = chosen.by_rank.iter().flat_map(|(_, instances)| instances);
            (of_rank.map(|(range, _)| range.index()).collect(), Counted::Range(chosen.name))
        } else {
            let can_be_step = steps_by_row(index);
            let Some(name) = most_repeated(trace, &can_be_step) else { return Self::of_graph_launches(trace) };
            let rows = (0..trace.ranges.len()).filter(|&row| trace.ranges.name[row] == name && can_be_step[row]);
            (rows.collect(), Counted::Range(trace.strings.get(name).to_owned()))
        };
        let steps = counted_by_rank(trace, rows.into_iter().map(|row| (on_thread(trace, row), Some(RangeId::from_index(row)))).collect());
        Self { steps, counted, ..Self::default() }
    }

    fn of_graph_launches(trace: &Trace) -> Self {
        let calls = &trace.api_calls;
        let launches: Vec<(OnThread, Option<RangeId>)> = (0..calls.len())
            .filter(|&row| trace.strings.get(calls.name[row]).contains("GraphLaunch"))
            .map(|row| ((calls.thread[row], Interval::new(calls.start[row], calls.dur[row])), None))
            .collect();
        Self { steps: counted_by_rank(trace, launches), counted: Counted::GraphLaunches, ..Self::default() }
    }

    /// The step of a device activity, by position in [`StepNumbers::steps`].
    pub(crate) fn step_of(&self, activity: ActivityId) -> Option<usize> {
        self.of_activity.get(activity.index()).filter(|&&step| step != NONE).map(|&step| step as usize)
    }

    /// The number of the step that a range stands for: it marks it, or it is the only one around its marker, or inside.
    pub(crate) fn of_range(&self, trace: &Trace, range: RangeId) -> Option<u32> {
        let (thread, own) = on_thread(trace, range.index());
        let on_thread = |at: usize| {
            let step = &self.steps[*self.on_host.get(at)? as usize];
            step.host.filter(|(on, _)| *on == thread).map(|(_, interval)| (interval, step.number))
        };
        // Markers of steps do not lie in each other, so that those inside follow each other and one alone can be around.
        let start = |at: &u32| self.steps[*at as usize].host.map(|(on, interval)| (on, interval.start));
        let first = self.on_host.partition_point(|at| start(at) < Some((thread, own.start)));
        let mut inside = (first..).map_while(on_thread).take_while(|(interval, _)| interval.end <= own.end).map(|(_, number)| number);
        if let Some(number) = inside.next() {
            return inside.all(|other| other == number).then_some(number);
        }
        let around = [first.checked_sub(1), Some(first)].into_iter().flatten().filter_map(on_thread);
        let mut around = around.filter(|(interval, _)| interval.start <= own.start && own.end <= interval.end);
        around.next().map(|(_, number)| number)
    }

    /// Gives the steps of a table their numbers. Where they are other steps than those counted, they keep the numbers they have in the
    /// table, with a note.
    pub(super) fn apply(&self, table: &mut StepTable) {
        let mut seen: HashSet<(DeviceId, u32), FixedState> = HashSet::default();
        let mut numbers = Vec::new();
        for group in &table.groups {
            for step in group.steps.iter().chain(group.left_out.iter().map(|left| &left.step)) {
                let number = self.number_of(step).filter(|&number| seen.insert((group.device, number)));
                let Some(number) = number else {
                    table.notes.push(StepNote::NumberedApart);
                    return;
                };
                numbers.push(number);
            }
        }
        let steps =
            table.groups.iter_mut().flat_map(|group| group.steps.iter_mut().chain(group.left_out.iter_mut().map(|left| &mut left.step)));
        steps.zip(numbers).for_each(|(step, number)| step.number = number);
    }

    /// The number of the step that holds nearly all of another's work.
    fn number_of(&self, step: &Step) -> Option<u32> {
        let of = |id: &ActivityId| self.of_activity.get(id.index()).copied().filter(|&at| at != NONE);
        // What holds more than half is what is left when different ones cancel each other.
        let (mut most, mut votes) = (None, 0_usize);
        for at in step.activities.iter().map(of) {
            if votes == 0 {
                most = at;
            }
            if at == most { votes += 1 } else { votes -= 1 }
        }
        let most = most?;
        let held = step.activities.iter().filter(|id| of(id) == Some(most)).count();
        (held * 10 >= step.activities.len() * IS_THE_SAME).then(|| self.steps[most as usize].number)
    }
}

fn on_thread(trace: &Trace, range: usize) -> OnThread {
    let ranges = &trace.ranges;
    (ranges.thread[range], Interval::new(ranges.start[range], ranges.dur[range]))
}

fn profiler_steps(trace: &Trace) -> impl Iterator<Item = NumberedStep> {
    trace.ranges.name.iter().enumerate().filter_map(|(row, &name)| {
        let number = profiler_number(trace.strings.get(name))?;
        let host = on_thread(trace, row);
        let (rank, range) = (trace.thread_rank(host.0), Some(RangeId::from_index(row)));
        Some(NumberedStep { number, rank, host: Some(host), range, device: None, start: host.1.start })
    })
}

/// The instances of each rank, counted in order of start.
fn counted_by_rank(trace: &Trace, mut instances: Vec<(OnThread, Option<RangeId>)>) -> Vec<NumberedStep> {
    instances.sort_by_key(|&((thread, interval), range)| (trace.thread_rank(thread), interval.start, range));
    let of_rank = instances.chunk_by(|((a, _), _), ((b, _), _)| trace.thread_rank(*a) == trace.thread_rank(*b));
    let step = |number: usize, (host, range): (OnThread, Option<RangeId>)| NumberedStep {
        number: number as u32,
        rank: trace.thread_rank(host.0),
        host: Some(host),
        range,
        device: None,
        start: host.1.start,
    };
    of_rank.flat_map(|of_rank| of_rank.iter().enumerate().map(|(number, &instance)| step(number, instance))).collect()
}

/// Which ranges can be a step, by row: not collectives, and not what lies inside an operator.
fn steps_by_row(index: &TraceIndex<'_>) -> Vec<bool> {
    let (trace, tree) = (index.trace(), index.tree());
    let is_in_operator = |row: usize| {
        let node = tree.range_node(RangeId::from_index(row));
        node.and_then(|node| tree.parent(node)).is_some_and(|around| tree.enclosing_op(around).is_some())
    };
    (0..trace.ranges.len()).map(|row| !is_communication(trace.strings.get(trace.ranges.name[row])) && !is_in_operator(row)).collect()
}

/// The range name with most instances that can be a step, at least two; of equals the one with the longest total, and of those the
/// one that the trace mentions first.
fn most_repeated(trace: &Trace, can_be_step: &[bool]) -> Option<StrId> {
    let ranges = &trace.ranges;
    let mut totals = vec![(0_u64, Ns::ZERO); trace.strings.len()];
    for row in (0..ranges.len()).filter(|&row| can_be_step[row]) {
        let (count, total) = &mut totals[ranges.name[row].index()];
        *count += 1;
        *total += ranges.dur[row].max(Ns::ZERO);
    }
    let best = (0..totals.len()).rev().max_by_key(|&name| totals[name])?;
    (totals[best].0 >= 2).then_some(StrId::from_index(best))
}
