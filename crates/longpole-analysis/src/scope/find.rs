//! Finds the ranks, devices and instances that a scope names.

use longpole_trace::{AggregateKind, Interval, IntervalSet, Ns, ProcessId, RangeId, StrId, ThreadId, Trace};

use super::{ScopeError, autograd_workers};
use crate::index::TraceIndex;
use crate::ranges::is_communication;

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

pub(super) fn step(index: &TraceIndex<'_>, step: u64, ranks: Option<&[bool]>) -> Result<Vec<IntervalSet>, ScopeError> {
    let trace = index.trace();
    let marker = |id: StrId| trace.strings.get(id).strip_prefix("ProfilerStep#").and_then(|number| number.parse::<u64>().ok());
    let markers = range_instances(trace, ranks, |id| marker(id).is_some());
    if !markers.is_empty() {
        let wanted = range_instances(trace, ranks, |id| marker(id) == Some(step));
        if !wanted.is_empty() {
            return Ok(by_thread(index, &wanted));
        }
        let mut numbers: Vec<_> = trace.ranges.name.iter().filter_map(|&id| marker(id)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        return Err(ScopeError::NoSuchStepMarker(step, numbers));
    }
    let can_be_step = steps_by_row(index, ranks);
    let (instances, what) = match most_repeated(trace, &can_be_step) {
        Some(name) => {
            let instances = trace.ranges.name.iter().enumerate().filter(|&(row, id)| *id == name && can_be_step[row]);
            (instances.map(|(row, _)| instance(trace, row)).collect(), format!("`{}`", trace.strings.get(name)))
        }
        None => (graph_launches(trace, ranks), "graph launch".to_owned()),
    };
    let (wanted, found) = nth_of_each_rank(trace, instances, step);
    if wanted.is_empty() { Err(ScopeError::NoSuchStep(step, found, what)) } else { Ok(by_thread(index, &wanted)) }
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

fn graph_launches(trace: &Trace, ranks: Option<&[bool]>) -> Vec<Instance> {
    let calls = &trace.api_calls;
    (0..calls.len())
        .filter(|&row| trace.strings.get(calls.name[row]).contains("GraphLaunch"))
        .filter(|&row| rank_is_in(ranks, trace.thread_rank(calls.thread[row])))
        .map(|row| Instance { thread: calls.thread[row], interval: Interval::new(calls.start[row], calls.dur[row]) })
        .collect()
}

/// Which ranges can be a step, by row: not collectives, and not what lies inside an operator.
fn steps_by_row(index: &TraceIndex<'_>, ranks: Option<&[bool]>) -> Vec<bool> {
    let (trace, tree) = (index.trace(), index.tree());
    let ranges = &trace.ranges;
    let is_in_operator = |row: usize| {
        let node = tree.range_node(RangeId::from_index(row));
        node.and_then(|node| tree.parent(node)).is_some_and(|around| tree.enclosing_op(around).is_some())
    };
    (0..ranges.len())
        .map(|row| {
            rank_is_in(ranks, trace.thread_rank(ranges.thread[row]))
                && !is_communication(trace.strings.get(ranges.name[row]))
                && !is_in_operator(row)
        })
        .collect()
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

/// The `step`-th instance of each rank in order of start, and how many the rank with most has.
fn nth_of_each_rank(trace: &Trace, mut instances: Vec<Instance>, step: u64) -> (Vec<Instance>, u64) {
    instances.sort_by_key(|instance| (trace.thread_rank(instance.thread), instance.interval.start));
    let mut found = 0;
    let mut wanted = Vec::new();
    for of_rank in instances.chunk_by(|a, b| trace.thread_rank(a.thread) == trace.thread_rank(b.thread)) {
        found = found.max(of_rank.len() as u64);
        wanted.extend(usize::try_from(step).ok().and_then(|step| of_rank.get(step)));
    }
    (wanted, found)
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
