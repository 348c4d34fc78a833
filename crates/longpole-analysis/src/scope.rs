//! What part of a trace a question is about. Work belongs to a scope by its launch.
//!
//! A range or step is a set of *instances*: host intervals on a thread. A host event is inside when it starts in an instance on its own
//! thread, or when it starts during one on an autograd worker thread of the same process (backward operators run there, and no range
//! is ever opened for them). A device activity is inside when its launch is; where no call is recorded, the operator that the recording
//! names for it counts as its launch; one with neither is in no range or step.

use std::fmt;

use longpole_trace::{ActivityId, AggregateKind, ApiCallId, DeviceId, Interval, IntervalSet, Ns, ThreadId, Trace};

use crate::index::{NodeId, TraceIndex};

mod find;
mod workers;

pub(crate) use workers::autograd_workers;

/// A scope as the user asks for it; all parts must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScopeSpec {
    /// Instances of the range of this name. A trailing `*` takes all names that begin so (`ProfilerStep*` takes all steps).
    pub range: Option<String>,
    /// One step, by its number: the one that [`crate::Step::number`] and every report give it. With several ranks, or devices that are
    /// counted apart, that step of each. Of a step that is known by its work alone (a graph replay, an order of kernels), this work is
    /// inside, and on the host what each thread did from its first launch to its last.
    pub step: Option<u64>,
    /// A window, relative to the first event of the trace, its end excluded. Host events belong to it by their start, device
    /// activities by the start of their launch, failing that of their operator, or by their own start where neither is recorded.
    pub time: Option<(Ns, Ns)>,
    /// A device, by its number. Restricts device activities; host events stay.
    pub device: Option<i64>,
    /// A rank.
    pub rank: Option<u32>,
}

/// Why a scope could not be found in a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScopeError {
    /// No range has this name; these are the names there are.
    NoSuchRange(String, Vec<String>),
    /// No step has this number; this many were found, counted from 0, and this is what a step is here.
    NoSuchStep(u64, u64, String),
    /// No step has this number; this many were found in the whole trace, counted from 0.
    NoSuchNumber(u64, u64),
    /// No step marker `ProfilerStep#K` has this number; these are the numbers there are.
    NoSuchStepMarker(u64, Vec<u64>),
    /// No device has this number; these are the numbers there are.
    NoSuchDevice(i64, Vec<i64>),
    /// No recording has this rank; these are the ranks there are.
    NoSuchRank(u32, Vec<u32>),
    /// The time window ends before it begins.
    EmptyTime,
    /// The source has sums alone, of which a step or a window is no part.
    TotalsOnly,
}

/// How many names an error message lists.
const NAMES_SHOWN: usize = 8;

fn list(items: impl ExactSizeIterator<Item = String>) -> String {
    let more = items.len().saturating_sub(NAMES_SHOWN);
    let shown: Vec<_> = items.take(NAMES_SHOWN).collect();
    if more > 0 { format!("{} and {more} more", shown.join(", ")) } else { shown.join(", ") }
}

impl fmt::Display for ScopeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchRange(name, names) if names.is_empty() => {
                write!(f, "there is no range `{name}`: the trace has no named ranges (record_function or NVTX would make some)")
            }
            Self::NoSuchRange(name, names) => {
                write!(f, "there is no range `{name}`; the trace has {}", list(names.iter().map(|name| format!("`{name}`"))))
            }
            Self::NoSuchStep(step, 0, _) => write!(
                f,
                "there is no step {step}: the trace has no step markers, no graph launch, and no repeated range but collectives and those \
                 inside operators"
            ),
            Self::NoSuchStep(step, found, what) => {
                write!(f, "there is no step {step}: a step is a {what} here, and {found} were found, counted from 0")
            }
            Self::NoSuchNumber(step, found) => write!(
                f,
                "there is no step {step}: {} found, counted from 0 (`longpole steps --json` lists them)",
                if *found == 1 { "1 was".to_owned() } else { format!("{found} were") }
            ),
            Self::NoSuchStepMarker(step, steps) => {
                write!(f, "there is no step {step}; the trace has markers for {}", list(steps.iter().map(u64::to_string)))
            }
            Self::NoSuchDevice(device, devices) if devices.is_empty() => {
                write!(f, "there is no device {device}: the trace has no device activity")
            }
            Self::NoSuchDevice(device, devices) => {
                write!(f, "there is no device {device}; the trace has {}", list(devices.iter().map(i64::to_string)))
            }
            Self::NoSuchRank(rank, ranks) => {
                write!(f, "there is no rank {rank}; the trace has {}", list(ranks.iter().map(u32::to_string)))
            }
            Self::TotalsOnly => f.write_str("it holds totals only, not when anything ran, so there are no steps and no time windows in it"),
            Self::EmptyTime => f.write_str("the time window is empty: its end must lie after its begin"),
        }
    }
}

impl std::error::Error for ScopeError {}

/// A scope found in a trace.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// Absent for the whole trace, so that unscoped questions pay nothing for each row.
    parts: Option<Box<Parts>>,
}

#[derive(Clone, Debug, Default)]
struct Parts {
    /// By position of the recording in the trace.
    ranks: Option<Vec<bool>>,
    /// By device id.
    devices: Option<Vec<bool>>,
    time: Option<Interval>,
    /// By thread: when host events on it are inside.
    host: Option<Vec<IntervalSet>>,
    /// Rows of sums that are inside.
    aggregates: Option<Vec<bool>>,
    /// The intervals are what the recording is about, which nothing narrows: then all device work in it is inside.
    host_is_all: bool,
    /// By activity: the work of a step that is known by it. What of it has a recorded launch must be launched inside besides.
    activities: Option<Vec<bool>>,
    /// Device work without a recorded launch can be inside.
    takes_unlaunched: bool,
}

impl Scope {
    /// The whole trace.
    pub fn whole() -> Self {
        Self::default()
    }

    /// Finds what is asked for.
    ///
    /// # Errors
    /// When the trace has no such range, step, device or rank, or the time window is empty; the error lists what there is.
    pub fn resolve(index: &TraceIndex<'_>, spec: &ScopeSpec) -> Result<Self, ScopeError> {
        let trace = index.trace();
        let has_parts = trace.parts.iter().any(|part| part.host.is_some());
        if *spec == ScopeSpec::default() && !has_parts {
            return Ok(Self::whole());
        }
        let mut parts = Parts { takes_unlaunched: true, ..Parts::default() };
        if has_parts {
            parts.host = Some(find::recorded_parts(trace));
            parts.host_is_all = true;
        }
        if let Some(rank) = spec.rank {
            parts.ranks = Some(find::ranks(trace, rank)?);
        }
        if let Some(device) = spec.device {
            parts.devices = Some(find::devices(trace, device, parts.ranks.as_deref())?);
        }
        if trace.has_totals_only() {
            if spec.time.is_some() || spec.step.is_some() {
                return Err(ScopeError::TotalsOnly);
            }
            parts.aggregates = spec.range.as_ref().map(|name| find::aggregates(trace, name)).transpose()?;
            return Ok(Self { parts: Some(Box::new(parts)) });
        }
        if let Some((from, to)) = spec.time {
            if to <= from {
                return Err(ScopeError::EmptyTime);
            }
            let first = trace.window.bounds().map_or(Ns::ZERO, |(first, _)| first);
            parts.time = Some(Interval { start: first + from, end: first + to });
        }
        if let Some(name) = &spec.range {
            parts.restrict(find::range(index, name, parts.ranks.as_deref())?);
        }
        if let Some(step) = spec.step {
            let found = find::step(index, step, parts.ranks.as_deref())?;
            parts.restrict_to_step(found);
        }
        Ok(Self { parts: Some(Box::new(parts)) })
    }

    /// True when nothing is left out.
    pub fn is_whole(&self) -> bool {
        self.parts.is_none()
    }

    /// True when nothing that was recorded is left out: the whole trace, or of a recording that was cut out of a longer one all that it is about.
    pub(crate) fn is_all_recorded(&self) -> bool {
        self.parts.as_ref().is_none_or(|parts| {
            let is_narrowed = parts.ranks.is_some() || parts.devices.is_some() || parts.time.is_some() || parts.aggregates.is_some();
            parts.host_is_all && !is_narrowed
        })
    }

    /// By thread, when host events are inside; absent when all are, of the ranks in scope.
    pub fn host_intervals(&self, trace: &Trace) -> Option<Vec<IntervalSet>> {
        let parts = self.parts.as_ref().filter(|parts| parts.host.is_some() || parts.time.is_some())?;
        let time = parts.time.map(|time| IntervalSet::from_unsorted(vec![time]));
        let of_thread = |thread: usize| {
            if !parts.includes_rank(trace.thread_rank(ThreadId::from_index(thread))) {
                return IntervalSet::default();
            }
            match (parts.host.as_ref().map(|host| &host[thread]), &time) {
                (Some(host), Some(time)) => host.intersection(time),
                (Some(only), None) | (None, Some(only)) => only.clone(),
                (None, None) => IntervalSet::default(),
            }
        };
        Some((0..trace.threads.len()).map(of_thread).collect())
    }

    /// Whether a host event that starts at `start` on `thread` is inside.
    pub fn includes_host(&self, trace: &Trace, thread: ThreadId, start: Ns) -> bool {
        self.parts.as_ref().is_none_or(|parts| parts.includes_host(trace, thread, start))
    }

    /// Whether a node of the host tree is inside.
    pub fn includes_node(&self, index: &TraceIndex<'_>, node: NodeId) -> bool {
        let Some(parts) = &self.parts else { return true };
        let tree = index.tree();
        parts.includes_host(index.trace(), tree.thread(node), tree.start(node))
    }

    /// Whether an API call is inside.
    pub fn includes_call(&self, trace: &Trace, call: ApiCallId) -> bool {
        let calls = &trace.api_calls;
        self.includes_host(trace, calls.thread[call.index()], calls.start[call.index()])
    }

    /// Whether a device activity is inside.
    pub fn includes_activity(&self, index: &TraceIndex<'_>, activity: ActivityId) -> bool {
        self.parts.as_ref().is_none_or(|parts| parts.includes_activity(index, activity))
    }

    /// Whether a row of sums is inside: in a scope of the name asked for, of the device and rank asked for. Scopes of the program are on every
    /// device.
    pub fn includes_aggregate(&self, trace: &Trace, row: usize) -> bool {
        let Some(parts) = &self.parts else { return true };
        let table = &trace.aggregates;
        let is_scope = table.kind[row] == AggregateKind::Scope;
        parts.includes_rank(table.rank[row])
            && parts.devices.as_ref().is_none_or(|devices| table.device(row).map_or(is_scope, |device| devices[device.index()]))
            && parts.aggregates.as_ref().is_none_or(|rows| rows[row])
    }

    /// Whether a rank, by position, can have anything inside.
    pub fn includes_rank(&self, rank: usize) -> bool {
        self.parts.as_ref().is_none_or(|parts| u32::try_from(rank).is_ok_and(|rank| parts.includes_rank(rank)))
    }

    /// The ranks that can have anything inside, by position.
    pub fn ranks(&self, trace: &Trace) -> Vec<usize> {
        (0..trace.ranks.len()).filter(|&rank| self.includes_rank(rank)).collect()
    }

    /// Whether work of a device can be inside.
    pub fn includes_device(&self, trace: &Trace, device: DeviceId) -> bool {
        self.parts.as_ref().is_none_or(|parts| parts.includes_device(trace, device))
    }

    /// The length of the scope. For the whole trace: first to last event. For ranges and steps: the union over instances of
    /// `[start, end]`, the end put off to the end of the last device work launched in the instance. A time window likewise, cut to the
    /// trace's own; a rank: first to last event of it. Time in which nothing was recorded of any rank in scope is not in it.
    pub fn wall(&self, index: &TraceIndex<'_>) -> Ns {
        self.intervals(index).total()
    }

    /// What [`Scope::wall`] is the length of.
    pub fn intervals(&self, index: &TraceIndex<'_>) -> IntervalSet {
        let window = index.trace().window.bounds();
        let whole = || IntervalSet::from_unsorted(window.map(|(start, end)| Interval { start, end }).into_iter().collect());
        let all = self.parts.as_ref().map_or_else(whole, |parts| parts.intervals(index));
        let unobserved = self.unobserved(index.trace());
        if unobserved.is_empty() { all } else { all.difference(&unobserved) }
    }

    /// When nothing was recorded of any rank in scope: between the windows of a recording that has several. It is in no part of the scope.
    pub fn unobserved(&self, trace: &Trace) -> IntervalSet {
        if trace.unobserved.is_empty() { IntervalSet::EMPTY } else { trace.unobserved.of_all(self.ranks(trace)) }
    }
}

impl Parts {
    fn restrict(&mut self, host: Vec<IntervalSet>) {
        self.host_is_all = false;
        self.takes_unlaunched = false;
        self.narrow_host(host);
    }

    /// Work that is known to be of a step is inside without a launch too, if nothing else asks for one.
    fn restrict_to_step(&mut self, step: find::OneStep) {
        self.host_is_all = false;
        self.takes_unlaunched &= step.activities.is_some();
        self.activities = step.activities;
        self.narrow_host(step.host);
    }

    fn narrow_host(&mut self, host: Vec<IntervalSet>) {
        self.host = Some(match self.host.take() {
            Some(known) => known.iter().zip(&host).map(|(a, b)| a.intersection(b)).collect(),
            None => host,
        });
    }

    fn includes_rank(&self, rank: u32) -> bool {
        self.ranks.as_ref().is_none_or(|ranks| ranks.get(rank as usize) == Some(&true))
    }

    fn includes_host(&self, trace: &Trace, thread: ThreadId, start: Ns) -> bool {
        self.includes_rank(trace.thread_rank(thread))
            && self.time.is_none_or(|time| time.start <= start && start < time.end)
            && self.host.as_ref().is_none_or(|host| host[thread.index()].contains(start))
    }

    fn includes_device(&self, trace: &Trace, device: DeviceId) -> bool {
        self.includes_rank(trace.devices[device.index()].rank) && self.devices.as_ref().is_none_or(|devices| devices[device.index()])
    }

    fn includes_activity(&self, index: &TraceIndex<'_>, activity: ActivityId) -> bool {
        let trace = index.trace();
        let lane = trace.activities.lane[activity.index()];
        if !self.includes_device(trace, trace.lanes[lane.index()].device) {
            return false;
        }
        if self.activities.as_ref().is_some_and(|inside| !inside[activity.index()]) {
            return false;
        }
        let all_launches = self.host.is_none() || self.host_is_all;
        if self.time.is_none() && all_launches {
            return true;
        }
        if let Some((thread, at)) = index.launch(activity) {
            self.includes_host(trace, thread, at)
        } else {
            let start = trace.activities.start[activity.index()];
            self.takes_unlaunched && self.time.is_none_or(|time| time.start <= start && start < time.end)
        }
    }

    fn intervals(&self, index: &TraceIndex<'_>) -> IntervalSet {
        let trace = index.trace();
        // A part with device work alone lasts as long as that.
        let host = self.host.as_ref().filter(|host| !self.host_is_all || host.iter().any(|set| !set.is_empty()));
        let mut instances: Vec<Vec<Interval>> = match host {
            Some(host) => host.iter().map(|set| set.intervals().to_vec()).collect(),
            None => vec![find::extent(trace, self.ranks.as_deref()).into_iter().collect()],
        };
        if let Some(time) = self.time {
            for interval in instances.iter_mut().flatten() {
                interval.start = interval.start.max(time.start);
                interval.end = interval.end.min(time.end);
            }
        }
        // Work of a step without a recorded launch, by device.
        let mut unlaunched: Vec<Option<Interval>> = vec![None; if self.activities.is_some() { trace.devices.len() } else { 0 }];
        for row in 0..trace.activities.len() {
            let activity = ActivityId::from_index(row);
            if !self.includes_activity(index, activity) {
                continue;
            }
            let (thread, at) = match (host, index.launch(activity)) {
                (Some(_), Some((thread, at))) => (thread.index(), at),
                (_, None) if self.activities.is_some() => {
                    let (start, end) = (trace.activities.start[row], trace.activities.end(row));
                    let device = trace.lanes[trace.activities.lane[row].index()].device.index();
                    let known = unlaunched[device].get_or_insert(Interval { start, end });
                    *known = Interval { start: known.start.min(start), end: known.end.max(end) };
                    continue;
                }
                // Without instances there is one interval, and all that is included was launched in it.
                _ => (0, Ns::MAX),
            };
            let Some(of_thread) = instances.get_mut(thread) else { continue };
            let after = of_thread.partition_point(|instance| instance.start <= at);
            if let Some(instance) = after.checked_sub(1).and_then(|before| of_thread.get_mut(before)) {
                instance.end = instance.end.max(trace.activities.end(row));
            }
        }
        IntervalSet::from_unsorted(instances.into_iter().flatten().chain(unlaunched.into_iter().flatten()).collect())
    }
}
