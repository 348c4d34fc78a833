//! What the smells need beyond the tables: why the device was idle, which single calls stand out, how work was launched.

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use longpole_trace::{ActivityId, ActivityKind, ApiCallId, Interval, IntervalSet, Ns, StrId, ThreadId};

use super::facts::names_with;
use super::outermost::time_in_work;
use super::thresholds::{LONG_CALL_RATIO, LONG_CALL_SHARE, SHORTEST_START_UP, SMALL_KERNEL};
use crate::index::{HostRow, NodeId};
use crate::median::lower_median;
use crate::pace::Pace;
use crate::profiler_overhead::profiler_intervals;
use crate::triage::{Tables, rank_number};

/// A host call of which a single one stands out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LongCall {
    /// The operator or API call.
    pub(crate) name: String,
    /// The operator around an API call.
    pub(crate) inside: Option<String>,
    /// Its own time: children, waiting and the profiler's own work excluded.
    pub(crate) self_ns: Ns,
    /// The part of it in which no device of its rank was busy.
    pub(crate) idle_ns: Ns,
    /// Calls of that name in scope.
    pub(crate) calls: u64,
    /// Whether the trace has no other call of that name, in scope or outside.
    pub(crate) is_only: bool,
    /// Whether it is the first of them, or of those inside the same operator.
    pub(crate) is_first: bool,
    /// Its thread, and when it ran.
    pub(crate) thread: ThreadId,
    pub(crate) interval: Interval,
}

/// Device graphs that were replayed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Replays {
    /// Launches that ran.
    pub(crate) launches: u64,
    /// Activities they ran.
    pub(crate) activities: u64,
    /// Those of them that are kernels.
    pub(crate) kernels: u64,
    /// Summed device time of those.
    pub(crate) device_ns: Ns,
    /// Activities of a launch, and how many launches ran as many: most launches first, then fewest activities.
    pub(crate) sizes: Vec<(u64, u64)>,
}

impl Replays {
    /// Notes how many activities each call launched; 0 is no launch.
    fn count(&mut self, mut activities: Vec<u32>) {
        activities.retain(|&count| count > 0);
        activities.sort_unstable();
        self.launches = activities.len() as u64;
        self.sizes = activities.chunk_by(|a, b| a == b).map(|same| (u64::from(same[0]), same.len() as u64)).collect();
        self.sizes.sort_by_key(|&(_, launches)| std::cmp::Reverse(launches));
    }
}

/// Memory management by the runtime, while the device did nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MemoryCalls {
    /// The call that took longest in sum.
    pub(crate) name: String,
    /// Calls of all such names.
    pub(crate) calls: u64,
    /// Their union, less the time in which the device was busy.
    pub(crate) idle_ns: Ns,
}

/// Host time in operators and calls, those that wait for the device left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HostWork {
    /// Union over the threads of each rank.
    pub(crate) total: Ns,
    /// The part of it in which no device of the rank was busy.
    pub(crate) idle: Ns,
    /// Time in calls that wait for the device in which no device of the rank was busy.
    pub(crate) waiting: Ns,
}

/// Everything the smells look at beside the tables.
#[derive(Clone, Debug, Default)]
pub(crate) struct Evidence {
    /// When the devices worked, and why they did not.
    pub(crate) pace: Pace,
    /// When the profiler did its own bookkeeping; empty with several ranks, where nobody knows whose it is.
    pub(crate) profiler: IntervalSet,
    /// The part of the devices' idle time in which a data loader was being waited for.
    pub(crate) loader_ns: Ns,
    /// Launch calls, as the links count them.
    pub(crate) launch_calls: u64,
    /// Those of them without device activity.
    pub(crate) unanswered: u64,
    /// Those of them that were made while a graph was captured, and rightly have none.
    pub(crate) captured_launches: u64,
    /// Whether a device graph was captured.
    pub(crate) captured: bool,
    pub(crate) replays: Replays,
    /// Kernels shorter than [`SMALL_KERNEL`], and their time.
    pub(crate) small_kernels: u64,
    pub(crate) small_kernels_ns: Ns,
    /// Median duration of kernels.
    pub(crate) median_kernel_ns: Ns,
    /// Copies between device and pageable host memory.
    pub(crate) pageable_ns: Ns,
    pub(crate) memory_calls: MemoryCalls,
    pub(crate) host_work: HostWork,
    /// Single host calls during which the device idled for most of the time, longest first.
    pub(crate) long_calls: Vec<LongCall>,
    /// Part of the wall in which no host thread was in an operator or call. Absent with several ranks, or without host work.
    pub(crate) outside_ns: Option<Ns>,
    /// Communication time by rank, most first. Only with several ranks.
    pub(crate) comm_by_rank: Vec<(u32, Ns)>,
}

impl Evidence {
    pub(crate) fn gather(tables: &Tables<'_, '_>) -> Self {
        let mut evidence = Self {
            pace: Pace::of(tables.index, tables.scope),
            profiler: profiler_intervals(tables.index.trace()),
            comm_by_rank: communication_by_rank(tables),
            ..Self::default()
        };
        evidence.device_side(tables);
        let busy = std::mem::take(&mut evidence.pace.busy);
        evidence.api_side(tables, &busy);
        evidence.host_side(tables, &busy);
        evidence.pace.busy = busy;
        evidence
    }

    /// Reads activities.
    fn device_side(&mut self, tables: &Tables<'_, '_>) {
        let (index, trace) = (tables.index, tables.index.trace());
        let activities = &trace.activities;
        let graph_launch = names_with(trace, |name| name.contains("GraphLaunch"));
        let mut replayed = vec![0_u32; trace.api_calls.len()];
        for row in 0..activities.len() {
            let id = ActivityId::from_index(row);
            if !tables.scope.includes_activity(index, id) {
                continue;
            }
            let duration = activities.dur[row].max(Ns::ZERO);
            let is_kernel = matches!(activities.kind[row], ActivityKind::Kernel | ActivityKind::Other);
            if is_kernel {
                if duration < SMALL_KERNEL.ns() {
                    self.small_kernels += 1;
                    self.small_kernels_ns += duration;
                }
            } else if trace.strings.get(activities.name[row]).contains("Pageable") {
                self.pageable_ns += duration;
            }
            if let Some(call) = index.links().call(id)
                && graph_launch[trace.api_calls.name[call.index()].index()]
            {
                self.replays.activities += 1;
                self.replays.kernels += u64::from(is_kernel);
                self.replays.device_ns += duration;
                replayed[call.index()] = replayed[call.index()].saturating_add(1);
            }
        }
        self.replays.count(replayed);
        let is_kernel = |row: &usize| matches!(activities.kind[*row], ActivityKind::Kernel | ActivityKind::Other);
        let in_scope = |row: &usize| tables.scope.includes_activity(index, ActivityId::from_index(*row));
        let kernels = || (0..activities.len()).filter(is_kernel).filter(in_scope).map(|row| activities.dur[row]);
        self.median_kernel_ns = lower_median(kernels).unwrap_or_default();
        let loader = loader_intervals(tables);
        let none = IntervalSet::default();
        self.loader_ns =
            self.pace.devices.iter().map(|device| self.pace.idle_within(device, loader.get(device.rank).unwrap_or(&none))).sum();
    }

    /// Reads API calls.
    fn api_side(&mut self, tables: &Tables<'_, '_>, busy: &[IntervalSet]) {
        let trace = tables.index.trace();
        let calls = &trace.api_calls;
        let links = tables.index.links();
        let captures = names_with(trace, |name| name.contains("GraphInstantiate") || name.contains("BeginCapture"));
        let memory = names_with(trace, manages_memory);
        let mut managing = vec![Vec::new(); busy.len()];
        let mut by_name: Vec<Ns> = Vec::new();
        for row in 0..calls.len() {
            let id = ApiCallId::from_index(row);
            if !tables.scope.includes_call(trace, id) {
                continue;
            }
            let name = calls.name[row];
            if links.is_launch(id) {
                self.launch_calls += 1;
                self.unanswered += u64::from(!links.has_activity(id));
                self.captured_launches += u64::from(links.is_captured(id));
            }
            self.captured |= captures[name.index()];
            if memory[name.index()] {
                self.memory_calls.calls += 1;
                by_name.resize(trace.strings.len(), Ns::ZERO);
                by_name[name.index()] += calls.dur[row].max(Ns::ZERO);
                let rank = trace.thread_rank(calls.thread[row]) as usize;
                if let Some(managing) = managing.get_mut(rank) {
                    managing.push(Interval::new(calls.start[row], calls.dur[row]));
                }
            }
        }
        let longest = (0..by_name.len()).max_by_key(|&name| by_name[name]);
        self.memory_calls.name = longest.map_or_else(String::new, |name| trace.strings.get(StrId::from_index(name)).to_owned());
        self.memory_calls.idle_ns =
            managing.into_iter().zip(busy).map(|(managing, busy)| IntervalSet::from_unsorted(managing).total_outside(busy)).sum();
    }

    /// Reads the host tree.
    fn host_side(&mut self, tables: &Tables<'_, '_>, busy: &[IntervalSet]) {
        let (tree, trace) = (tables.index.tree(), tables.index.trace());
        let wall = tables.totals.wall_ns;
        // Only calls of this length are worth looking at, and there are few of them.
        let threshold = Ns((wall.get() as f64 * LONG_CALL_SHARE.value) as i64).max(SHORTEST_START_UP.ns());
        // Time of the children of long nodes, and of the ranges right inside any.
        let mut child_time: HashMap<NodeId, Ns, FixedState> = HashMap::default();
        let mut range_time: HashMap<NodeId, Ns, FixedState> = HashMap::default();
        for node in tree.nodes() {
            let Some(parent) = tree.parent(node) else { continue };
            if tree.times(parent).1 >= threshold {
                *child_time.entry(parent).or_default() += tree.times(node).1;
            }
            if matches!(tree.row(node), HostRow::Range(_)) {
                *range_time.entry(parent).or_default() += tree.times(node).1;
            }
        }
        self.host_work = host_work(tables, busy);

        if tables.scope.ranks(trace).len() <= 1 {
            self.outside_ns = time_in_work(tables, &range_time).map(|inside| (wall - inside).max(Ns::ZERO));
        }

        let mut candidates: Vec<(Ns, Ns, NodeId)> = Vec::new();
        for node in tree.nodes() {
            let (start, duration) = tree.times(node);
            if duration < threshold || !tables.scope.includes_node(tables.index, node) {
                continue;
            }
            let name = trace.strings.get(tree.name(node));
            let is_judged = match tree.row(node) {
                HostRow::Range(_) => false,
                HostRow::Op(_) => !waits_or_frames(name),
                HostRow::Api(_) => !blocks(name),
            };
            if !is_judged || duration - child_time.get(&node).copied().unwrap_or_default() < threshold {
                continue;
            }
            let rank = trace.thread_rank(tree.thread(node)) as usize;
            let during = IntervalSet::from_unsorted(vec![Interval::new(start, duration)]);
            let own = own_time(tables, node, &self.profiler);
            let without_busy = |set: &IntervalSet| busy.get(rank).map_or_else(|| set.total(), |busy| set.total_outside(busy));
            if own.total() >= threshold && without_busy(&during).get() >= duration.get() / 5 * 4 {
                candidates.push((own.total(), without_busy(&own), node));
            }
        }
        candidates.sort_by_key(|&(own, _, node)| (std::cmp::Reverse(own), node));
        candidates.truncate(8);
        self.long_calls = candidates.into_iter().filter_map(|(own, idle, node)| long_call(tables, node, own, idle)).collect();
    }
}

/// Time of a host event outside its children and outside the profiler's own bookkeeping.
fn own_time(tables: &Tables<'_, '_>, node: NodeId, profiler: &IntervalSet) -> IntervalSet {
    let tree = tables.index.tree();
    let interval = |node: NodeId| {
        let (start, duration) = tree.times(node);
        Interval::new(start, duration)
    };
    let children = tree.children(node).map(interval);
    let own = IntervalSet::from_unsorted(vec![interval(node)]).difference(&IntervalSet::from_unsorted(children.collect()));
    own.difference(profiler)
}

/// Ranges are host work too, whatever runs inside them: Python between two operators is what a device most often waits for.
fn host_work(tables: &Tables<'_, '_>, busy: &[IntervalSet]) -> HostWork {
    let (tree, trace) = (tables.index.tree(), tables.index.trace());
    let mut working = vec![Vec::new(); busy.len()];
    let mut waiting = working.clone();
    for node in tree.nodes() {
        let is_call = matches!(tree.row(node), HostRow::Api(_));
        let waits = is_call && blocks(trace.strings.get(tree.name(node)));
        let is_outermost = || tree.parent(node).is_none_or(|parent| !tables.scope.includes_node(tables.index, parent));
        if !tables.scope.includes_node(tables.index, node) || !(waits || is_outermost()) {
            continue;
        }
        let (start, duration) = tree.times(node);
        let side = if waits { &mut waiting } else { &mut working };
        if let Some(of_rank) = side.get_mut(trace.thread_rank(tree.thread(node)) as usize) {
            of_rank.push(Interval::new(start, duration));
        }
    }
    let mut work = HostWork::default();
    for ((working, waiting), busy) in working.into_iter().zip(waiting).zip(busy) {
        let waiting = IntervalSet::from_unsorted(waiting);
        let working = IntervalSet::from_unsorted(working).difference(&waiting);
        work.waiting += waiting.total_outside(busy);
        work.total += working.total();
        work.idle += working.total_outside(busy);
    }
    work
}

/// Describes a long call, if it is unlike the other calls of its name.
fn long_call(tables: &Tables<'_, '_>, node: NodeId, self_ns: Ns, idle_ns: Ns) -> Option<LongCall> {
    let (tree, trace) = (tables.index.tree(), tables.index.trace());
    let name = tree.name(node);
    let others = || tree.nodes().filter(|&other| tree.name(other) == name);
    let in_scope = |other: &NodeId| tables.scope.includes_node(tables.index, *other);
    let mut durations: Vec<Ns> = others().filter(in_scope).map(|other| tree.times(other).1).collect();
    let (start, duration) = tree.times(node);
    let inside = matches!(tree.row(node), HostRow::Api(_)).then(|| tree.enclosing_op(node)).flatten();
    let place = |node: NodeId| tree.enclosing_op(node).map(|op| tree.name(op));
    let alike = |other: &NodeId| inside.is_none() || place(*other) == place(node);
    // What is first in a step need not be the first of the run, but other ranks begin on their own.
    let rank = |node: NodeId| trace.thread_rank(tree.thread(node));
    let is_first = others().filter(|&other| rank(other) == rank(node)).filter(alike).all(|other| tree.start(other) >= start);
    let is_only = others().filter(|&other| rank(other) == rank(node)).nth(1).is_none();
    let calls = durations.len() as u64;
    let middle = durations.len().checked_sub(1)? / 2;
    let median = *durations.select_nth_unstable(middle).1;
    if calls > 1 && self_ns.get() < median.get().saturating_mul(LONG_CALL_RATIO.count() as i64) {
        return None;
    }
    let text = |name: StrId| trace.strings.get(name).to_owned();
    let interval = Interval::new(start, duration);
    Some(LongCall {
        name: text(name),
        inside: inside.map(|op| text(tree.name(op))),
        self_ns,
        idle_ns,
        calls,
        is_only,
        is_first,
        thread: tree.thread(node),
        interval,
    })
}

/// API calls that wait for the device: their time says nothing about the call.
pub(super) fn blocks(name: &str) -> bool {
    ["Synchronize", "Memcpy", "EventQuery", "StreamQuery"].iter().any(|part| name.contains(part))
}

/// Operators that wait for other processes or stand for a whole step.
fn waits_or_frames(name: &str) -> bool {
    name.starts_with("enumerate(DataLoader)")
        || name.starts_with("ProfilerStep")
        || name == "record_param_comms"
        || name.to_ascii_lowercase().contains("wait")
}

/// Runtime and driver calls that get or return memory.
pub(crate) fn manages_memory(name: &str) -> bool {
    const WITH_PREFIX: &[&str] =
        &["Malloc", "Free", "HostAlloc", "HostMalloc", "HostFree", "MemAlloc", "MemFree", "MemCreate", "MemMap", "MemUnmap"];
    let rest = ["cuda", "hip", "cu"].iter().find_map(|prefix| name.strip_prefix(prefix));
    rest.is_some_and(|rest| WITH_PREFIX.iter().any(|part| rest.starts_with(part)))
}

/// When each rank waited for a data loader, as operators (old traces) or ranges say.
fn loader_intervals(tables: &Tables<'_, '_>) -> Vec<IntervalSet> {
    let trace = tables.index.trace();
    let is_loader = names_with(trace, |name| name.starts_with("enumerate(DataLoader)"));
    let mut intervals = vec![Vec::new(); trace.ranks.len().max(1)];
    let ranges = (&trace.ranges.name, &trace.ranges.thread, &trace.ranges.start, &trace.ranges.dur);
    let ops = (&trace.host_ops.name, &trace.host_ops.thread, &trace.host_ops.start, &trace.host_ops.dur);
    for (names, threads, starts, durs) in [ranges, ops] {
        for row in (0..names.len()).filter(|&row| is_loader[names[row].index()]) {
            if tables.scope.includes_host(trace, threads[row], starts[row])
                && let Some(of_rank) = intervals.get_mut(trace.thread_rank(threads[row]) as usize)
            {
                of_rank.push(Interval::new(starts[row], durs[row]));
            }
        }
    }
    intervals.into_iter().map(IntervalSet::from_unsorted).collect()
}

fn communication_by_rank(tables: &Tables<'_, '_>) -> Vec<(u32, Ns)> {
    let trace = tables.index.trace();
    let mut sums = std::collections::BTreeMap::<u32, Ns>::new();
    for device in &tables.totals.devices {
        *sums.entry(rank_number(trace, device.device)).or_default() += device.comm_busy_ns;
    }
    let mut by_rank: Vec<(u32, Ns)> = sums.into_iter().collect();
    by_rank.sort_by_key(|&(rank, time)| (std::cmp::Reverse(time), rank));
    if by_rank.len() > 1 { by_rank } else { Vec::new() }
}
