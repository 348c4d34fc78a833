//! Named ranges: what the host named, and what the device did for it.
//!
//! A row is a path of range names on one thread, all its instances together; `ProfilerStep#3` is listed as `ProfilerStep*`.
//! Device work belongs to an instance by its launch, as in [`Scope`]: launched on the instance's thread while it was open, or on
//! an autograd worker thread of the same process meanwhile. Ranges that overlap without nesting both have it. Work that is replayed
//! from a graph belongs to the launch of the replay like any other; what of it was captured inside a range is given beside that.

mod path;
mod sweep;

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use longpole_trace::{ActivityId, DeviceId, Interval, Ns, RangeId, ThreadId, Trace};

use crate::index::TraceIndex;
use crate::scope::{Scope, autograd_workers};
pub use path::RangePath;

/// All instances of one range at one place in the nesting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeRow {
    /// Its name; `ProfilerStep#3` is listed as `ProfilerStep*`.
    pub name: String,
    /// The ranges around it.
    pub parents: RangePath,
    /// Number of instances.
    pub calls: u64,
    /// Summed host time.
    pub cpu_ns: Ns,
    /// Sum over instances (and devices) of first start to last end of the device work launched inside; absent when none was.
    pub gpu_span_ns: Option<Ns>,
    /// Union of that work, inside those spans.
    pub gpu_busy_ns: Option<Ns>,
    /// Span minus busy.
    pub gpu_idle_ns: Option<Ns>,
    /// Kernels launched inside.
    pub kernels: u64,
    /// Union of the device work of graph nodes that were captured inside, in all replays in scope; absent when there was none. It is part of the
    /// busy time of the ranges that launched the replays.
    pub replayed_ns: Option<Ns>,
    /// Kernels of it.
    pub replayed_kernels: u64,
}

/// Ranges nested deeper than this are listed at this depth: a path is written out in every row, and a runaway recursion of
/// ranges must not cost memory in its square.
const MAX_DEPTH: usize = 64;

/// Nothing, in the packed indexes of this module.
const NONE: u32 = u32::MAX;

/// An open or closed range.
#[derive(Clone, Copy, Debug)]
struct Instance {
    range: RangeId,
    thread: ThreadId,
    start: Ns,
    end: Ns,
    /// Index of the innermost instance around it.
    parent: u32,
    /// What was launched inside.
    device: Option<DeviceWork>,
    kernels: u64,
    /// What was captured inside and replayed: its device time, its kernels.
    replayed: Option<(Ns, u64)>,
}

/// Device time of one instance, summed over devices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct DeviceWork {
    span: Ns,
    busy: Ns,
}

/// Which rows are a loop around steps: called once, and nearly all their time is spent in one range inside. Rows are in nesting order,
/// and one pass answers for all, since a trace may name every request differently.
pub(crate) fn wrapping(rows: &[RangeRow]) -> Vec<bool> {
    let mut wraps = vec![false; rows.len()];
    let mut around: Vec<usize> = Vec::new();
    for (at, inner) in rows.iter().enumerate() {
        while around.pop_if(|outer| rows[*outer].parents.len() >= inner.parents.len()).is_some() {}
        if let (Some(&outer), Some((parent, grandparents))) = (around.last(), inner.parents.split_last()) {
            let row = &rows[outer];
            let is_inside = row.name == parent && row.parents == *grandparents;
            wraps[outer] |= row.calls == 1 && is_inside && is_users(&inner.name) && inner.cpu_ns.get() >= row.cpu_ns.get() / 10 * 9;
        }
        around.push(at);
    }
    wraps
}

/// Ranges that libraries open on their own are not what the user calls a step.
pub(crate) fn is_users(range: &str) -> bool {
    const LIBRARIES: &[&str] = &["## Call CompiledFxGraph", "Torch-Compiled Region", "FullyShardedDataParallel.", "FSDP::"];
    !is_communication(range) && !LIBRARIES.iter().any(|prefix| range.starts_with(prefix))
}

/// Ranges around a collective or a message, by the prefix that names their backend.
pub(crate) fn is_communication(range: &str) -> bool {
    const BACKENDS: &[&str] = &[
        "nccl:",
        "rccl:",
        "gloo:",
        "mpi:",
        "ucc:",
        "xccl:",
        "hccl:",
        "cncl:",
        "mccl:",
        "c10d::",
        "_c10d_functional::",
        "record_param_comms",
    ];
    BACKENDS.iter().any(|prefix| range.starts_with(prefix))
}

/// Device work launched inside one range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RangeWork {
    /// Union of it, summed over devices; absent when there was none.
    pub(crate) busy_ns: Option<Ns>,
    /// Kernels of it.
    pub(crate) kernels: u64,
}

/// The ranges of a scope, depth first, in order of first occurrence.
pub fn range_table(index: &TraceIndex<'_>, scope: &Scope) -> Vec<RangeRow> {
    rows(index.trace(), scope, &instances(index, scope, None)).0
}

/// The same, and the work of each range by itself.
pub(crate) fn range_tables(index: &TraceIndex<'_>, scope: &Scope) -> (Vec<RangeRow>, Vec<RangeWork>) {
    let instances = instances(index, scope, None);
    let mut work = vec![RangeWork::default(); instances.len()];
    for instance in &instances {
        work[instance.range.index()] = RangeWork { busy_ns: instance.device.map(|work| work.busy), kernels: instance.kernels };
    }
    (rows(index.trace(), scope, &instances).0, work)
}

/// The device work that one instance of a range launched on one device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RangeExtent {
    /// The position of the range's row in the table.
    pub(crate) row: u32,
    pub(crate) device: DeviceId,
    /// First start to last end.
    pub(crate) extent: Interval,
}

/// The range table, and where on the devices each instance in scope was.
pub(crate) fn ranges_with_extents(index: &TraceIndex<'_>, scope: &Scope) -> (Vec<RangeRow>, Vec<RangeExtent>) {
    let mut extents = Vec::new();
    let instances = instances(index, scope, Some(&mut extents));
    let (rows, row_of) = rows(index.trace(), scope, &instances);
    let extents = extents.into_iter().filter_map(|(instance, device, extent)| {
        let row = row_of[instance as usize];
        (row != NONE).then_some(RangeExtent { row, device, extent })
    });
    (rows, extents.collect())
}

/// Every range with the work in scope that was launched inside it, whatever is around a range before it. The span of work from several windows of
/// a recording is without the time between them.
fn instances(index: &TraceIndex<'_>, scope: &Scope, extents: Option<&mut Vec<(u32, DeviceId, Interval)>>) -> Vec<Instance> {
    let trace = index.trace();
    if trace.unobserved.is_empty() {
        return whole_instances(index, scope, extents);
    }
    let mut found = Vec::new();
    let mut instances = whole_instances(index, scope, Some(&mut found));
    for &(at, device, extent) in &found {
        if let Some(work) = &mut instances[at as usize].device {
            work.span -= trace.unobserved.of_rank(trace.devices[device.index()].rank as usize).time_within(extent);
        }
    }
    if let Some(extents) = extents {
        *extents = found;
    }
    instances
}

/// The same, with spans from first to last.
fn whole_instances(index: &TraceIndex<'_>, scope: &Scope, mut extents: Option<&mut Vec<(u32, DeviceId, Interval)>>) -> Vec<Instance> {
    let trace = index.trace();
    if trace.ranges.is_empty() {
        return Vec::new();
    }
    let mut instances: Vec<Instance> = (0..trace.ranges.len())
        .map(|row| {
            let (start, dur) = (trace.ranges.start[row], trace.ranges.dur[row].max(Ns::ZERO));
            let (range, thread) = (RangeId::from_index(row), trace.ranges.thread[row]);
            Instance { range, thread, start, end: start + dur, parent: NONE, device: None, kernels: 0, replayed: None }
        })
        .collect();
    // Whatever is around an instance comes before it.
    instances.sort_by_key(|i| (i.start, std::cmp::Reverse(i.end)));
    let mut of_thread: Vec<Vec<u32>> = vec![Vec::new(); trace.threads.len()];
    for (at, instance) in instances.iter().enumerate() {
        of_thread[instance.thread.index()].push(at as u32);
    }
    let mut launches = launches_by_thread(index, scope);
    let workers = autograd_workers(index);
    let worker_threads: Vec<usize> = (0..workers.len()).filter(|&thread| workers[thread]).collect();
    for (thread, own) in of_thread.iter().enumerate().filter(|(_, own)| !own.is_empty()) {
        let process = trace.threads[thread].process;
        let (first, last) = own
            .iter()
            .map(|&at| &instances[at as usize])
            .fold((Ns::MAX, Ns::MIN), |(first, last), instance| (first.min(instance.start), last.max(instance.end)));
        // Many threads may each see all that the autograd workers launched; most of it lies outside their ranges.
        let of_process = worker_threads.iter().filter(|&&worker| trace.threads[worker].process == process);
        let launched = |row: &u32| index.launch(ActivityId(*row)).map_or(Ns::MIN, |(_, at)| at);
        let is_seen = |row: &u32| (first..last).contains(&launched(row));
        // What a thread launched itself is asked for once, and its list is as long as the trace.
        let mut seen = if workers[thread] { Vec::new() } else { std::mem::take(&mut launches[thread]) };
        seen.retain(is_seen);
        let own_launches = seen.len();
        seen.extend(of_process.flat_map(|&source| &launches[source]).filter(|row| is_seen(row)));
        // Ties go to the workers' launches.
        seen.rotate_left(own_launches);
        if !seen.is_sorted_by_key(launched) {
            seen.sort_by_key(launched);
        }
        sweep::run(&mut instances, own, trace, &sweep::Launches { rows: &seen, launched: &launched }, extents.as_deref_mut());
    }
    if !trace.captures.is_empty() {
        find_replayed(index, scope, &of_thread, &mut instances);
    }
    instances
}

/// Finds what was captured inside each range, as if it had been launched when it was captured.
fn find_replayed(index: &TraceIndex<'_>, scope: &Scope, of_thread: &[Vec<u32>], instances: &mut [Instance]) {
    let trace = index.trace();
    let mut captured: Vec<Vec<u32>> = vec![Vec::new(); trace.threads.len()];
    for row in 0..trace.activities.len() {
        let id = ActivityId::from_index(row);
        if let Some(capture) = trace.capture_of(id)
            && scope.includes_activity(index, id)
        {
            captured[capture.thread.index()].push(row as u32);
        }
    }
    let mut like: Vec<Instance> = instances.to_vec();
    let made = |row: &u32| trace.capture_of(ActivityId(*row)).map_or(Ns::MIN, |capture| capture.at);
    for (own, rows) in of_thread.iter().zip(&mut captured).filter(|(own, rows)| !own.is_empty() && !rows.is_empty()) {
        rows.sort_by_cached_key(made);
        for &at in own {
            (like[at as usize].device, like[at as usize].kernels) = (None, 0);
        }
        sweep::run(&mut like, own, trace, &sweep::Launches { rows, launched: &made }, None);
        for &at in own {
            let found = like[at as usize];
            instances[at as usize].replayed = found.device.map(|work| (work.busy, found.kernels));
        }
    }
}

/// Device activities in scope, by the thread that launched them.
fn launches_by_thread(index: &TraceIndex<'_>, scope: &Scope) -> Vec<Vec<u32>> {
    let trace = index.trace();
    let mut launches = vec![Vec::new(); trace.threads.len()];
    for row in 0..trace.activities.len() {
        let id = ActivityId::from_index(row);
        if let Some((thread, _)) = index.launch(id)
            && scope.includes_activity(index, id)
        {
            launches[thread.index()].push(row as u32);
        }
    }
    launches
}

/// A path of range names, and the sums of its instances.
struct PathNode {
    parent: u32,
    depth: usize,
    children: Vec<u32>,
    row: RangeRow,
    /// The path of what lies inside, once something does.
    inner: RangePath,
}

impl PathNode {
    fn inner(&mut self) -> RangePath {
        if self.inner.is_empty() {
            self.inner = self.row.parents.inside(&self.row.name);
        }
        self.inner.clone()
    }
}

/// The rows, and the position of each instance's row; of those out of scope [`NONE`].
fn rows(trace: &Trace, scope: &Scope, instances: &[Instance]) -> (Vec<RangeRow>, Vec<u32>) {
    let mut paths: Vec<PathNode> = Vec::new();
    let mut known: HashMap<(u32, &str), u32, FixedState> = HashMap::default();
    let mut roots = Vec::new();
    let mut path_of = vec![NONE; instances.len()];
    for (at, instance) in instances.iter().enumerate() {
        let name = canonical(trace.strings.get(trace.ranges.name[instance.range.index()]));
        let mut parent = if instance.parent == NONE { NONE } else { path_of[instance.parent as usize] };
        while parent != NONE && paths[parent as usize].depth + 1 >= MAX_DEPTH {
            parent = paths[parent as usize].parent;
        }
        let path = *known.entry((parent, name)).or_insert_with(|| {
            let path = paths.len() as u32;
            let depth = if parent == NONE { 0 } else { paths[parent as usize].depth + 1 };
            let around = paths.get_mut(parent as usize).map_or_else(RangePath::default, PathNode::inner);
            paths.push(PathNode { parent, depth, children: Vec::new(), row: empty_row(name, around), inner: RangePath::default() });
            if parent == NONE {
                roots.push(path);
            } else {
                paths[parent as usize].children.push(path);
            }
            path
        });
        path_of[at] = path;
        if scope.includes_host(trace, instance.thread, instance.start) {
            add(&mut paths[path as usize].row, instance);
        }
    }
    let mut rows = Vec::new();
    let mut row_of_path = vec![NONE; paths.len()];
    let mut stack: Vec<u32> = roots.into_iter().rev().collect();
    while let Some(path) = stack.pop() {
        stack.extend(paths[path as usize].children.iter().rev());
        if paths[path as usize].row.calls > 0 {
            row_of_path[path as usize] = rows.len() as u32;
            rows.push(std::mem::replace(&mut paths[path as usize].row, empty_row("", RangePath::default())));
        }
    }
    let row_of = |(path, instance): (u32, &Instance)| {
        if scope.includes_host(trace, instance.thread, instance.start) { row_of_path[path as usize] } else { NONE }
    };
    let row_of_instance = path_of.into_iter().zip(instances).map(row_of).collect();
    (rows, row_of_instance)
}

/// All numbered steps are one range.
fn canonical(name: &str) -> &str {
    if name.starts_with("ProfilerStep#") { "ProfilerStep*" } else { name }
}

fn empty_row(name: &str, parents: RangePath) -> RangeRow {
    RangeRow {
        name: name.to_owned(),
        parents,
        calls: 0,
        cpu_ns: Ns::ZERO,
        gpu_span_ns: None,
        gpu_busy_ns: None,
        gpu_idle_ns: None,
        kernels: 0,
        replayed_ns: None,
        replayed_kernels: 0,
    }
}

fn add(row: &mut RangeRow, instance: &Instance) {
    row.calls += 1;
    row.cpu_ns += instance.end - instance.start;
    row.kernels += instance.kernels;
    if let Some(device) = instance.device {
        *row.gpu_span_ns.get_or_insert_default() += device.span;
        *row.gpu_busy_ns.get_or_insert_default() += device.busy;
        *row.gpu_idle_ns.get_or_insert_default() += device.span - device.busy;
    }
    if let Some((time, kernels)) = instance.replayed {
        *row.replayed_ns.get_or_insert_default() += time;
        row.replayed_kernels += kernels;
    }
}

#[cfg(test)]
mod tests;
