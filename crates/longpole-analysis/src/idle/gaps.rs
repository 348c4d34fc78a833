//! The gaps of each device, and what the device's side of them was.

use longpole_trace::{ActivityId, ActivityKind, ApiCallId, DeviceId, Interval, IntervalSet, LaneId, Ns, Trace};

use super::types::IdleCause;
use super::waits::Waits;
use crate::index::{TraceIndex, order::end_of};
use crate::scope::Scope;

/// Longest time that starting work takes once its launch call has returned and the work before it has ended. From calls of eager
/// PyTorch into an idle device, and from queued kernels that follow each other, the longest of 24,000 on NVIDIA (V100 to B300) were
/// 6.5 µs and of 3,000 on AMD (MI250, MI300) 11.7 µs.
pub(super) const LONGEST_START: Ns = Ns(15_000);

/// Longest time that a launch call takes without loading code. Of 36,209 launches of kernels that had run before (V100 to B300, MI250,
/// MI300), 2 took longer and 99.9 % took less than 27 µs; of 408 first launches 10 took longer, up to seconds, and not every
/// profiler says why.
pub(super) const LONGEST_CALL: Ns = Ns(100_000);

/// Marks a gap whose end has no launch in the trace.
const NONE: u32 = u32::MAX;

/// Time in which a device did nothing, up to the start of one activity.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gap {
    pub(super) start: Ns,
    pub(super) end: Ns,
    call: u32,
    /// The launch has work before the gap already, so that its call has done its part, even if it goes on.
    is_internal: bool,
    /// What ends the gap is the first kernel of its name on the device, and its launch call is too long for a mere launch.
    pub(super) loads_code: bool,
    /// Causes from the end of the launch call on: the first until `changes_at`, then the second.
    pub(super) causes: (IdleCause, IdleCause),
    pub(super) changes_at: Ns,
}

impl Gap {
    /// The same gap as far as it lies in a window of the recording: the host launches what ends it, and the device takes it up, when they do.
    fn part(self, part: Interval) -> Self {
        Self { start: part.start, end: part.end, changes_at: self.changes_at.clamp(part.start, part.end), ..self }
    }

    /// The call that launched what ends the gap.
    pub(super) fn call(&self) -> Option<ApiCallId> {
        (self.call != NONE).then_some(ApiCallId(self.call))
    }

    /// When the launch of what ends the gap began and ended, cut to the gap. Without a launch both are its start.
    pub(super) fn launch(&self, trace: &Trace) -> (Ns, Ns) {
        let Some(call) = self.call() else { return (self.start, self.start) };
        if self.is_internal {
            return (self.start, self.start);
        }
        let calls = &trace.api_calls;
        let (from, to) = (calls.start[call.index()], end_of(calls.start[call.index()], calls.dur[call.index()]));
        (from.clamp(self.start, self.end), to.clamp(self.start, self.end))
    }
}

/// A device's part of the scope.
#[derive(Clone, Debug)]
pub(super) struct DeviceGaps {
    pub(super) device: DeviceId,
    /// First start to last end of the scope's activity.
    pub(super) extent: Interval,
    /// The length of that, without the time in which nothing was recorded.
    pub(super) span: Ns,
    /// Its gaps, as positions in the list of all.
    pub(super) gaps: std::ops::Range<usize>,
    /// All activities of the device, in order of start.
    pub(super) rows: Vec<u32>,
}

/// All devices with activity in the scope, and their gaps: device after device, in order of time.
#[derive(Debug, Default)]
pub(super) struct Gaps {
    pub(super) devices: Vec<DeviceGaps>,
    pub(super) all: Vec<Gap>,
}

impl Gaps {
    pub(super) fn find(index: &TraceIndex<'_>, scope: &Scope) -> Self {
        let trace = index.trace();
        let mut gaps = Self::default();
        let mut sweep = Sweep::new(index);
        for (device, (extent, rows)) in extents(index, scope).into_iter().zip(rows_by_device(trace)).enumerate() {
            let Some(extent) = extent else { continue };
            let first = gaps.all.len();
            let unobserved = trace.unobserved.of_rank(trace.devices[device].rank as usize);
            sweep.run(&rows, extent, unobserved, &mut gaps.all);
            let span = extent.len() - unobserved.time_within(extent);
            gaps.devices.push(DeviceGaps { device: DeviceId::from_index(device), extent, span, gaps: first..gaps.all.len(), rows });
        }
        gaps.all.shrink_to_fit();
        gaps
    }
}

/// First start to last end of the scope's activity on each device.
fn extents(index: &TraceIndex<'_>, scope: &Scope) -> Vec<Option<Interval>> {
    let trace = index.trace();
    let mut extents: Vec<Option<Interval>> = vec![None; trace.devices.len()];
    for row in 0..trace.activities.len() {
        if !scope.includes_activity(index, ActivityId::from_index(row)) {
            continue;
        }
        let interval = Interval::new(trace.activities.start[row], trace.activities.dur[row]);
        let extent = extents[device_of(trace, row).index()].get_or_insert(interval);
        extent.start = extent.start.min(interval.start);
        extent.end = extent.end.max(interval.end);
    }
    extents
}

fn device_of(trace: &Trace, activity: usize) -> DeviceId {
    trace.lanes[trace.activities.lane[activity].index()].device
}

/// The activities of each device, by start and then row.
fn rows_by_device(trace: &Trace) -> Vec<Vec<u32>> {
    let starts = &trace.activities.start;
    let mut counts = vec![0; trace.devices.len()];
    for row in 0..starts.len() {
        counts[device_of(trace, row).index()] += 1;
    }
    let mut rows: Vec<Vec<u32>> = counts.into_iter().map(Vec::with_capacity).collect();
    for row in 0..starts.len() {
        rows[device_of(trace, row).index()].push(row as u32);
    }
    for rows in &mut rows {
        if !rows.is_sorted_by_key(|&row| starts[row as usize]) {
            // Stable, and fast on input that is nearly sorted.
            rows.sort_by_key(|&row| starts[row as usize]);
        }
    }
    rows
}

/// What ran last, on a stream or on the device.
#[derive(Clone, Copy, Debug)]
struct Last {
    end: Ns,
    row: u32,
}

/// A pass over the activities of one device after the other.
struct Sweep<'a, 't> {
    index: &'a TraceIndex<'t>,
    waits: Waits,
    /// One bit an API call: it launched an activity already.
    launched: Vec<u64>,
    /// By lane: the activity with the last end, and the start of the first one whose launch is known.
    lanes: Vec<Option<Last>>,
    opening: Vec<Option<Ns>>,
    /// By name: the last device on which an activity of that name was met, counted from 1.
    seen: Vec<u32>,
    device: u32,
}

impl<'a, 't> Sweep<'a, 't> {
    fn new(index: &'a TraceIndex<'t>) -> Self {
        let trace = index.trace();
        Self {
            index,
            waits: Waits::find(index),
            launched: vec![0; trace.api_calls.len().div_ceil(64)],
            lanes: vec![None; trace.lanes.len()],
            opening: openings(index),
            seen: vec![0; trace.strings.len()],
            device: 0,
        }
    }

    fn run(&mut self, rows: &[u32], extent: Interval, unobserved: &IntervalSet, gaps: &mut Vec<Gap>) {
        let trace = self.index.trace();
        let mut last: Option<Last> = None;
        self.device += 1;
        for &row in rows {
            let start = trace.activities.start[row as usize];
            let end = end_of(start, trace.activities.dur[row as usize]);
            if let Some(last) = last
                && last.end < start
                && extent.start <= last.end
                && start <= extent.end
            {
                let whole = self.gap(last, row, start);
                if unobserved.is_empty() {
                    gaps.push(whole);
                } else {
                    let parts = unobserved.outside(Interval { start: whole.start, end: whole.end });
                    gaps.extend(parts.map(|part| whole.part(part)));
                }
            }
            self.seen[trace.activities.name[row as usize].index()] = self.device;
            if last.is_none_or(|last| end >= last.end) {
                last = Some(Last { end, row });
            }
            let lane = &mut self.lanes[trace.activities.lane[row as usize].index()];
            if lane.is_none_or(|lane| end >= lane.end) {
                *lane = Some(Last { end, row });
            }
            if let Some(call) = self.index.links().call(ActivityId(row)) {
                self.launched[call.index() / 64] |= 1 << (call.index() % 64);
            }
        }
    }

    fn gap(&self, last: Last, row: u32, end: Ns) -> Gap {
        let start = last.end;
        let call = self.index.links().call(ActivityId(row));
        let gap = |first, second, changes_at: Ns| Gap {
            start,
            end,
            call: call.map_or(NONE, |call| call.0),
            is_internal: false,
            loads_code: false,
            causes: (first, second),
            changes_at: changes_at.clamp(start, end),
        };
        let trace = self.index.trace();
        let Some(call) = call else {
            let lane = trace.activities.lane[row as usize].index();
            // A stream keeps its order: what starts before all that has a launch was launched earlier, before the recording.
            if self.opening[lane].is_none_or(|opening| end > opening) {
                return gap(IdleCause::NothingRecorded, IdleCause::NothingRecorded, end);
            }
            let cause = self.queued(last, row, Ns::MIN, end);
            return gap(cause, IdleCause::NothingRecorded, start + LONGEST_START);
        };
        if self.launched[call.index() / 64] >> (call.index() % 64) & 1 == 1 {
            // Copies of one call that the driver cut in pieces, or else the nodes of a graph.
            let is_copy = trace.activities.kind[row as usize] == ActivityKind::Memcpy && !self.is_graph(call, row);
            let cause = if is_copy { IdleCause::CopyEngine } else { IdleCause::GraphInternal };
            return Gap { is_internal: true, ..gap(cause, cause, end) };
        }
        let calls = &trace.api_calls;
        let (began, returned) = (calls.start[call.index()], end_of(calls.start[call.index()], calls.dur[call.index()]));
        let previous = self.previous(row);
        let waited_for = self.waits.resolved(row).filter(|&event| event <= end && event >= returned.max(previous));
        if waited_for.is_some_and(|event| event + LONGEST_START >= start) {
            return gap(IdleCause::EventWait, IdleCause::EventWait, end);
        }
        let is_kernel = trace.activities.kind[row as usize] == ActivityKind::Kernel;
        let cause = if returned > start { IdleCause::LaunchLatency } else { self.queued(last, row, returned, end) };
        let unexplained = || self.waits.is_unresolved(row) || self.waits.is_likely(trace, call, self.previous_launch(row), began);
        let is_long = end - returned.max(start) > LONGEST_START;
        let beyond = if is_long && unexplained() { IdleCause::EventWait } else { IdleCause::NothingRecorded };
        let is_first = self.seen[trace.activities.name[row as usize].index()] != self.device;
        let loads_code = is_first && is_kernel && returned - began > LONGEST_CALL;
        Gap { loads_code, ..gap(cause, beyond, returned.max(start) + LONGEST_START) }
    }

    fn is_graph(&self, call: ApiCallId, row: u32) -> bool {
        let trace = self.index.trace();
        trace.activities.graph_node(row as usize).is_some() || trace.strings.get(trace.api_calls.name[call.index()]).contains("GraphLaunch")
    }

    /// When the activity before `row` on its stream ended.
    fn previous(&self, row: u32) -> Ns {
        self.lanes[self.lane(row).index()].map_or(Ns::MIN, |last| last.end)
    }

    /// When the activity before `row` on its stream was launched.
    fn previous_launch(&self, row: u32) -> Option<Ns> {
        let last = self.lanes[self.lane(row).index()]?;
        let call = self.index.links().call(ActivityId(last.row))?;
        Some(self.index.trace().api_calls.start[call.index()])
    }

    fn lane(&self, row: u32) -> LaneId {
        self.index.trace().activities.lane[row as usize]
    }

    /// Why work waited that was launched before the gap began; its launch call returned at `returned`.
    fn queued(&self, last: Last, row: u32, returned: Ns, end: Ns) -> IdleCause {
        let kind = |row: u32| self.index.trace().activities.kind[row as usize];
        let follows_its_stream = self.previous(row) >= last.end;
        if !follows_its_stream && end - returned > LONGEST_START {
            return IdleCause::Dependency;
        }
        let is_copy = |row: u32| kind(row) == ActivityKind::Memcpy;
        if follows_its_stream && is_copy(row) != self.lanes[self.lane(row).index()].is_some_and(|last| is_copy(last.row)) {
            return IdleCause::CopyEngine;
        }
        IdleCause::LaunchLatency
    }
}

/// For each lane the start of its first activity with a launch, failing that of the first API call of its rank.
fn openings(index: &TraceIndex<'_>) -> Vec<Option<Ns>> {
    let trace = index.trace();
    let mut lanes: Vec<Option<Ns>> = vec![None; trace.lanes.len()];
    let mut all_known = true;
    for row in 0..trace.activities.len() {
        if index.links().call(ActivityId::from_index(row)).is_none() {
            all_known = false;
            continue;
        }
        let (opening, start) = (&mut lanes[trace.activities.lane[row].index()], trace.activities.start[row]);
        *opening = Some(opening.map_or(start, |known: Ns| known.min(start)));
    }
    if all_known {
        return lanes;
    }
    let mut ranks: Vec<Option<Ns>> = vec![None; trace.ranks.len()];
    for (&thread, &start) in trace.api_calls.thread.iter().zip(&trace.api_calls.start) {
        if let Some(first) = ranks.get_mut(trace.thread_rank(thread) as usize) {
            *first = Some(first.map_or(start, |known: Ns| known.min(start)));
        }
    }
    for (lane, opening) in lanes.iter_mut().enumerate() {
        let first_call = ranks.get(trace.lane_rank(LaneId::from_index(lane)) as usize).copied().flatten();
        *opening = opening.or(first_call);
    }
    lanes
}
