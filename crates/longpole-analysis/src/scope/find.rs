//! Finds the ranks, devices and instances that a scope names.

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use longpole_trace::{ActivityId, AggregateKind, Interval, IntervalSet, Ns, ProcessId, StrId, ThreadId, Trace};

use super::{ScopeError, autograd_workers};
use crate::index::TraceIndex;
use crate::steps::{Counted, NumberedStep, OnThread};

/// A host interval on a thread.
#[derive(Clone, Copy)]
struct Instance {
    thread: ThreadId,
    interval: Interval,
}

fn rank_is_in(ranks: Option<&[bool]>, rank: u32) -> bool {
    ranks.is_none_or(|ranks| ranks.get(rank as usize) == Some(&true))
}

pub(super) fn ranks(trace: &Trace, rank: u32) -> Result<Vec<bool>, ScopeError> {
    let wanted: Vec<bool> = trace.ranks.iter().map(|info| info.rank == rank).collect();
    if wanted.contains(&true) {
        return Ok(wanted);
    }
    let mut known: Vec<u32> = trace.ranks.iter().map(|info| info.rank).collect();
    known.sort_unstable();
    known.dedup();
    Err(ScopeError::NoSuchRank(rank, known))
}

/// By thread, what recordings that were cut out of longer ones are about; all of the others.
pub(super) fn recorded_parts(trace: &Trace) -> Vec<IntervalSet> {
    let all = trace.window.bounds().map(|(first, last)| Interval { start: first, end: last + Ns(1) });
    let mut is_part = vec![false; trace.ranks.len()];
    for part in &trace.parts {
        is_part[part.rank as usize] |= part.host.is_some();
    }
    let mut of_thread = vec![Vec::new(); trace.threads.len()];
    for (thread, intervals) in of_thread.iter_mut().enumerate() {
        if !is_part[trace.thread_rank(ThreadId::from_index(thread)) as usize] {
            intervals.extend(all);
        }
    }
    for &(thread, interval) in trace.parts.iter().filter_map(|part| part.host.as_ref()).flatten() {
        of_thread[thread.index()].push(interval);
    }
    of_thread.into_iter().map(IntervalSet::from_unsorted).collect()
}

pub(super) fn devices(trace: &Trace, ordinal: i64, ranks: Option<&[bool]>) -> Result<Vec<bool>, ScopeError> {
    let in_ranks = || trace.devices.iter().map(|device| (device, rank_is_in(ranks, device.rank)));
    let wanted: Vec<bool> = in_ranks().map(|(device, is_in)| is_in && device.ordinal == ordinal).collect();
    if wanted.contains(&true) {
        return Ok(wanted);
    }
    let mut known: Vec<i64> = in_ranks().filter(|&(_, is_in)| is_in).map(|(device, _)| device.ordinal).collect();
    known.sort_unstable();
    known.dedup();
    Err(ScopeError::NoSuchDevice(ordinal, known))
}

/// Rows of sums in a scope of that name, the scope included.
pub(super) fn aggregates(trace: &Trace, name: &str) -> Result<Vec<bool>, ScopeError> {
    let table = &trace.aggregates;
    let matches = |text: &str| name.strip_suffix('*').map_or(text == name, |prefix| text.starts_with(prefix));
    let mut inside = vec![false; table.len()];
    for row in 0..table.len() {
        let around = table.parent(row).is_some_and(|parent| inside[parent.index()]);
        inside[row] = around || table.kind[row] == AggregateKind::Scope && matches(trace.strings.get(table.name[row]));
    }
    if inside.contains(&true) {
        return Ok(inside);
    }
    let mut names: Vec<&str> =
        (0..table.len()).filter(|&row| table.kind[row] == AggregateKind::Scope).map(|row| trace.strings.get(table.name[row])).collect();
    names.sort_unstable();
    names.dedup();
    Err(ScopeError::NoSuchRange(name.to_owned(), names.into_iter().map(str::to_owned).collect()))
}

pub(super) fn range(index: &TraceIndex<'_>, name: &str, ranks: Option<&[bool]>) -> Result<Vec<IntervalSet>, ScopeError> {
    let trace = index.trace();
    let matches = |text: &str| name.strip_suffix('*').map_or(text == name, |prefix| text.starts_with(prefix));
    let instances = range_instances(trace, ranks, |id| matches(trace.strings.get(id)));
    if instances.is_empty() {
        Err(ScopeError::NoSuchRange(name.to_owned(), range_names(trace, ranks)))
    } else {
        Ok(by_thread(index, &instances))
    }
}

/// Where a step is.
pub(super) struct OneStep {
    pub(super) host: Vec<IntervalSet>,
    /// Its activities, where not all of it is known by when it was launched.
    pub(super) activities: Option<Vec<bool>>,
}

pub(super) fn step(index: &TraceIndex<'_>, step: u64, ranks: Option<&[bool]>) -> Result<OneStep, ScopeError> {
    let trace = index.trace();
    let numbers = index.step_numbers();
    let in_ranks = || numbers.steps.iter().filter(|step| rank_is_in(ranks, step.rank));
    let is_wanted = |of: &NumberedStep| u64::from(of.number) == step && rank_is_in(ranks, of.rank);
    let found = in_ranks().map(|step| u64::from(step.number) + 1).max().unwrap_or(0);
    if !in_ranks().any(is_wanted) {
        return Err(match &numbers.counted {
            Counted::Steps => ScopeError::NoSuchNumber(step, found),
            Counted::ProfilerSteps => {
                let mut numbers: Vec<u64> = in_ranks().map(|step| u64::from(step.number)).collect();
                numbers.sort_unstable();
                numbers.dedup();
                ScopeError::NoSuchStepMarker(step, numbers)
            }
            Counted::Range(name) => ScopeError::NoSuchStep(step, found, format!("`{name}`")),
            Counted::GraphLaunches => ScopeError::NoSuchStep(step, found, "graph launch".to_owned()),
        });
    }
    let marked = in_ranks().filter(|of| is_wanted(of)).filter_map(|step| step.host);
    let marked: Vec<Instance> = marked.map(|(thread, interval)| Instance { thread, interval }).collect();
    let mut host = by_thread(index, &marked);
    let mut activities = None;
    if in_ranks().any(|of| is_wanted(of) && of.host.is_none()) {
        let step_of = |row| numbers.step_of(ActivityId::from_index(row)).filter(|&at| is_wanted(&numbers.steps[at]));
        activities = Some((0..trace.activities.len()).map(|row| step_of(row).is_some()).collect());
        for (thread, interval) in launch_times(index, |row| step_of(row).filter(|&at| numbers.steps[at].host.is_none())) {
            host[thread.index()] = host[thread.index()].union(&IntervalSet::from_unsorted(vec![interval]));
        }
    }
    Ok(OneStep { host, activities })
}

/// Of steps that are known by their work: for each and each thread, from its first launch to the end of its last one. It begins as early
/// as the outermost event around the first launch in which nothing was launched before.
fn launch_times(index: &TraceIndex<'_>, step_of: impl Fn(usize) -> Option<usize>) -> Vec<OnThread> {
    let (trace, tree, links) = (index.trace(), index.tree(), index.links());
    let mut launches: Vec<Vec<Ns>> = vec![Vec::new(); trace.threads.len()];
    let mut times: HashMap<(usize, ThreadId), (Interval, ActivityId), FixedState> = HashMap::default();
    for row in 0..trace.activities.len() {
        let activity = ActivityId::from_index(row);
        let Some((thread, start)) = index.launch(activity) else { continue };
        launches[thread.index()].push(start);
        let Some(step) = step_of(row) else { continue };
        let end = match links.call(activity) {
            Some(call) => trace.api_calls.end(call.index()),
            None => links.owner_node(activity).map_or(start, |node| tree.end(node)),
        };
        // What starts at its begin is inside, however short it is.
        let own = Interval { start, end: end.max(start + Ns(1)) };
        let (known, first) = times.entry((step, thread)).or_insert((own, activity));
        if start < known.start {
            *first = activity;
        }
        *known = Interval { start: known.start.min(own.start), end: known.end.max(own.end) };
    }
    for of_thread in &mut launches {
        of_thread.sort_unstable();
    }
    let mut times: Vec<_> = times.into_iter().collect();
    times.sort_unstable_by_key(|&(key, _)| key);
    let widened = times.into_iter().map(|((_, thread), (mut interval, first))| {
        let of_thread = &launches[thread.index()];
        let before = of_thread.partition_point(|&at| at < interval.start).checked_sub(1).map(|at| of_thread[at]);
        let node = links.call(first).and_then(|call| tree.api_node(call)).or_else(|| links.owner_node(first));
        for around in node.into_iter().flat_map(|node| tree.ancestors(node)) {
            let start = tree.start(around);
            if before.is_some_and(|before| start <= before) {
                break;
            }
            interval.start = interval.start.min(start);
        }
        (thread, interval)
    });
    widened.collect()
}

/// First start to last end of the host events and device activities of some ranks, cut to the window of the trace.
pub(super) fn extent(trace: &Trace, ranks: Option<&[bool]>) -> Option<Interval> {
    if ranks.is_none() {
        return trace.window.bounds().map(|(start, end)| Interval { start, end });
    }
    let mut extent: Option<Interval> = None;
    let mut include = |rank: u32, start: Ns, end: Ns| {
        if rank_is_in(ranks, rank) {
            let known = extent.get_or_insert(Interval { start, end });
            known.start = known.start.min(start);
            known.end = known.end.max(end);
        }
    };
    let tables = [
        (&trace.ranges.thread, &trace.ranges.start, Some(&trace.ranges.dur)),
        (&trace.host_ops.thread, &trace.host_ops.start, Some(&trace.host_ops.dur)),
        (&trace.api_calls.thread, &trace.api_calls.start, Some(&trace.api_calls.dur)),
        (&trace.frames.thread, &trace.frames.start, Some(&trace.frames.dur)),
        (&trace.memory.thread, &trace.memory.start, None),
    ];
    for (threads, starts, durs) in tables {
        for (row, &thread) in threads.iter().enumerate() {
            let end = starts[row] + durs.map_or(Ns::ZERO, |durs| durs[row].max(Ns::ZERO));
            include(trace.thread_rank(thread), starts[row], end);
        }
    }
    for (row, &lane) in trace.activities.lane.iter().enumerate() {
        include(trace.lane_rank(lane), trace.activities.start[row], trace.activities.end(row));
    }
    extent
}

fn range_instances(trace: &Trace, ranks: Option<&[bool]>, wanted: impl Fn(StrId) -> bool) -> Vec<Instance> {
    let ranges = &trace.ranges;
    (0..ranges.len())
        .filter(|&row| wanted(ranges.name[row]) && rank_is_in(ranks, trace.thread_rank(ranges.thread[row])))
        .map(|row| instance(trace, row))
        .collect()
}

fn instance(trace: &Trace, range: usize) -> Instance {
    let ranges = &trace.ranges;
    Instance { thread: ranges.thread[range], interval: Interval::new(ranges.start[range], ranges.dur[range]) }
}

/// Distinct range names in order of first mention, all numbered steps as one.
fn range_names(trace: &Trace, ranks: Option<&[bool]>) -> Vec<String> {
    let mut seen = vec![false; trace.strings.len()];
    let mut seen_step = false;
    let mut names: Vec<String> = Vec::new();
    for (row, name) in trace.ranges.name.iter().enumerate() {
        if seen[name.index()] || !rank_is_in(ranks, trace.thread_rank(trace.ranges.thread[row])) {
            continue;
        }
        seen[name.index()] = true;
        let text = trace.strings.get(*name);
        if !text.starts_with("ProfilerStep#") {
            names.push(text.to_owned());
        } else if !seen_step {
            seen_step = true;
            names.push("ProfilerStep*".to_owned());
        }
    }
    names
}

/// For each thread, when its events are inside: its own instances, and on an autograd worker those of its whole process.
fn by_thread(index: &TraceIndex<'_>, instances: &[Instance]) -> Vec<IntervalSet> {
    let trace = index.trace();
    let mut of_thread = vec![Vec::new(); trace.threads.len()];
    let mut of_process = vec![Vec::new(); trace.processes.len()];
    for instance in instances {
        of_thread[instance.thread.index()].push(instance.interval);
        of_process[process_of(trace, instance.thread).index()].push(instance.interval);
    }
    for (thread, is_worker) in autograd_workers(index).into_iter().enumerate() {
        if is_worker {
            of_thread[thread].clone_from(&of_process[process_of(trace, ThreadId::from_index(thread)).index()]);
        }
    }
    of_thread.into_iter().map(IntervalSet::from_unsorted).collect()
}

fn process_of(trace: &Trace, thread: ThreadId) -> ProcessId {
    trace.threads[thread.index()].process
}
