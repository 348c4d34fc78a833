//! What a step is: one choice for everything that counts, compares or times steps.

use longpole_trace::{Interval, IntervalSet, Ns, RangeId, ThreadId};

use crate::index::TraceIndex;
use crate::ranges::is_users;
use crate::scope::Scope;
use crate::smells::{COLD_STEP_RATIO, SHORTEST_START_UP, STEP_COVERS, STEPS_TO_JUDGE};
use crate::steps::marked_groups;

/// One instance of a range.
pub(crate) type Instance = (RangeId, Interval);

/// Instances of the repeated range that stands for a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Steps {
    /// Its name; `ProfilerStep#3` is `ProfilerStep*`.
    pub(crate) name: String,
    /// Its thread.
    pub(crate) thread: ThreadId,
    /// Its instances in order of time.
    pub(crate) instances: Vec<Instance>,
    /// The instances of each rank: position of the rank, and those of its thread that spends most time in them, in order of time.
    pub(crate) by_rank: Vec<(usize, Vec<Instance>)>,
}

/// A first step that is unlike the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ColdStep {
    /// When it ran.
    pub(crate) interval: Interval,
    /// When the second began.
    pub(crate) until: Ns,
    /// The profiler's own time in it.
    pub(crate) profiler: Ns,
    /// The median of the others.
    pub(crate) median: Ns,
    /// How much longer it took than that, without the profiler's own time.
    pub(crate) excess: Ns,
}

impl Steps {
    /// Of the ranges of users that repeat on one thread, the one that covers most host time, if it covers a part of the wall worth the name;
    /// a range around it that covers about the same stands for it, since that is the whole step. An instance inside another of its name is a
    /// part of that one.
    pub(crate) fn find(index: &TraceIndex<'_>, scope: &Scope) -> Option<Self> {
        let trace = index.trace();
        let ranges = &trace.ranges;
        let mut groups: Vec<(&str, ThreadId, Vec<Instance>)> = Vec::new();
        let mut known = hashbrown::HashMap::<(&str, ThreadId), usize, foldhash::fast::FixedState>::default();
        for row in 0..ranges.len() {
            let name = trace.strings.get(ranges.name[row]);
            if !is_users(name) || is_part_of_a_step(name) || !scope.includes_host(trace, ranges.thread[row], ranges.start[row]) {
                continue;
            }
            let name = if name.starts_with("ProfilerStep#") { "ProfilerStep*" } else { name };
            let at = *known.entry((name, ranges.thread[row])).or_insert(groups.len());
            if at == groups.len() {
                groups.push((name, ranges.thread[row], Vec::new()));
            }
            groups[at].2.push((RangeId::from_index(row), Interval::new(ranges.start[row], ranges.dur[row])));
        }
        for (_, _, instances) in &mut groups {
            outermost(instances);
        }
        let total = |instances: &[Instance]| instances.iter().map(|(_, interval)| interval.len()).sum::<Ns>();
        let repeated = || groups.iter().filter(|(_, _, instances)| instances.len() > 1);
        let most = repeated().map(|(_, _, instances)| total(instances)).max()?;
        if !STEP_COVERS.is_met(most, scope.wall(index)) {
            return None;
        }
        let &(name, thread, ref instances) = repeated()
            .filter(|(_, _, instances)| total(instances).get() >= most.get() / 10 * 9)
            .min_by_key(|(_, _, instances)| (instances.len(), std::cmp::Reverse(total(instances))))?;
        if hold_different_work(instances, thread, &groups) {
            return Self::of_marked_groups(index, scope);
        }
        let by_rank = (0..trace.ranks.len())
            .filter_map(|rank| {
                let of_rank = groups.iter().filter(|(other, on, _)| *other == name && trace.thread_rank(*on) as usize == rank);
                let (_, _, instances) = of_rank.max_by_key(|(_, on, instances)| (total(instances), std::cmp::Reverse(*on)))?;
                Some((rank, instances.clone()))
            })
            .collect();
        Some(Self { name: name.to_owned(), thread, instances: instances.clone(), by_rank })
    }

    /// The steps that `longpole steps` finds by their ranges: of their groups the one that covers most host time.
    fn of_marked_groups(index: &TraceIndex<'_>, scope: &Scope) -> Option<Self> {
        let trace = index.trace();
        let ranges = &trace.ranges;
        let total = |instances: &[Instance]| instances.iter().map(|(_, interval)| interval.len()).sum::<Ns>();
        let mut groups: Vec<(String, ThreadId, Vec<Instance>)> = Vec::new();
        for (name, of_group) in marked_groups(index, scope) {
            let of_thread = |thread: ThreadId| {
                let own = of_group.iter().filter(|range| ranges.thread[range.index()] == thread);
                let instance = |&range: &RangeId| (range, Interval::new(ranges.start[range.index()], ranges.dur[range.index()]));
                let mut instances: Vec<Instance> = own.map(instance).collect();
                outermost(&mut instances);
                (name.clone(), thread, instances)
            };
            let mut threads: Vec<ThreadId> = of_group.iter().map(|range| ranges.thread[range.index()]).collect();
            threads.sort_unstable();
            threads.dedup();
            groups.extend(threads.into_iter().map(of_thread));
        }
        let repeated = groups.iter().filter(|(_, _, instances)| instances.len() > 1);
        let (name, thread, instances) = repeated
            .max_by_key(|(name, thread, instances)| (total(instances), std::cmp::Reverse(*thread), std::cmp::Reverse(name.as_str())))?;
        if !STEP_COVERS.is_met(total(instances), scope.wall(index)) {
            return None;
        }
        let of_rank = |rank: usize| {
            let of_rank = groups.iter().filter(|(other, on, _)| other == name && trace.thread_rank(*on) as usize == rank);
            let (_, _, instances) = of_rank.max_by_key(|(_, on, instances)| (total(instances), std::cmp::Reverse(*on)))?;
            Some((rank, instances.clone()))
        };
        let by_rank = (0..trace.ranks.len()).filter_map(of_rank).collect();
        Some(Self { name: name.clone(), thread: *thread, instances: instances.clone(), by_rank })
    }

    /// Whether a time lies before the second step.
    pub(crate) fn is_before_second(&self, at: Ns) -> bool {
        self.instances.get(1).is_some_and(|(_, second)| at < second.start)
    }

    /// Whether a host event of a thread begins in a step.
    pub(crate) fn contains(&self, thread: ThreadId, at: Ns) -> bool {
        thread == self.thread && self.position(at).is_some()
    }

    /// The step that a time lies in.
    pub(crate) fn position(&self, at: Ns) -> Option<usize> {
        let after = self.instances.partition_point(|(_, interval)| interval.start <= at);
        after.checked_sub(1).filter(|&before| at < self.instances[before].1.end)
    }

    /// The first step of some instances, if it warms up what the others use. `profiler` says when the profiler worked for itself.
    pub(crate) fn cold_first(instances: &[Instance], profiler: &IntervalSet) -> Option<ColdStep> {
        let (first, others) = instances.split_first()?;
        let own = IntervalSet::from_unsorted(vec![first.1]).intersection(profiler).total();
        let (median, took) = (median_length(others), first.1.len() - own);
        let is_cold = instances.len() as u64 >= STEPS_TO_JUDGE.count()
            && median > Ns::ZERO
            && took.get() as f64 >= median.get() as f64 * COLD_STEP_RATIO.value
            && took - median >= SHORTEST_START_UP.ns();
        let until = others.first()?.1.start;
        is_cold.then_some(ColdStep { interval: first.1, until, profiler: own, median, excess: took - median })
    }

    /// When each rank was in a cold first step, by position of the rank: until the second began.
    pub(crate) fn warm_up(&self, profiler: &IntervalSet) -> Vec<(usize, Interval)> {
        let cold = |(rank, instances): &(usize, Vec<Instance>)| {
            let cold = Self::cold_first(instances, profiler)?;
            Some((*rank, Interval { start: cold.interval.start, end: cold.until }))
        };
        self.by_rank.iter().filter_map(cold).collect()
    }

    /// The steps of all ranks, cold first ones left out.
    pub(crate) fn steady(&self, profiler: &IntervalSet) -> Vec<Instance> {
        let warm = |(_, instances): &(usize, Vec<Instance>)| {
            let cold = usize::from(Self::cold_first(instances, profiler).is_some());
            instances[cold..].to_vec()
        };
        self.by_rank.iter().flat_map(warm).collect()
    }
}

/// Whether instances hold different kinds of work, so that they are no steps: one has repeated ranges inside that another lacks, and the other way
/// round, as a window of prefill and one of decode. Ranges that only some instances have on top are the same work with an exception.
fn hold_different_work(instances: &[Instance], thread: ThreadId, groups: &[(&str, ThreadId, Vec<Instance>)]) -> bool {
    let mut inside: Vec<Vec<usize>> = vec![Vec::new(); instances.len()];
    let repeated = groups.iter().enumerate().filter(|(_, (_, on, others))| *on == thread && others.len() as u64 >= STEPS_TO_JUDGE.count());
    for (name, (_, _, others)) in repeated {
        for (_, other) in others {
            let after = instances.partition_point(|(_, interval)| interval.start <= other.start);
            let Some(around) = after.checked_sub(1) else { continue };
            let is_inside = other.end <= instances[around].1.end && *other != instances[around].1;
            if is_inside && inside[around].last() != Some(&name) {
                inside[around].push(name);
            }
        }
    }
    // Names come in order. What is no part of the largest set lacks something that it has, and has something that it lacks.
    let Some(largest) = inside.iter().max_by_key(|names| names.len()) else { return false };
    !inside.iter().all(|names| names.iter().all(|name| largest.binary_search(name).is_ok()))
}

/// Sorts instances and leaves out those inside another.
fn outermost(instances: &mut Vec<Instance>) {
    instances.sort_by_key(|&(range, interval)| (interval.start, std::cmp::Reverse(interval.end), range));
    let mut until = Ns::MIN;
    instances.retain(|(_, interval)| {
        let is_inside = interval.end <= until;
        until = until.max(interval.end);
        !is_inside
    });
}

/// The median duration, the lower of two.
pub(crate) fn median_length(instances: &[Instance]) -> Ns {
    median(instances.iter().map(|(_, interval)| interval.len())).unwrap_or_default()
}

/// The median, the lower of two.
pub(crate) fn median<T: Ord + Copy>(values: impl Iterator<Item = T>) -> Option<T> {
    let mut values: Vec<T> = values.collect();
    values.sort_unstable();
    values.get(values.len().checked_sub(1)? / 2).copied()
}

/// Ranges that the framework opens around a part of a step.
fn is_part_of_a_step(range: &str) -> bool {
    range.starts_with("enumerate(DataLoader)") || range.starts_with("Optimizer.")
}
