//! Streams that waited for events: which work each wait held back, and what it waited for.

use foldhash::fast::FixedState;
use hashbrown::{HashMap, HashSet};
use longpole_trace::{ActivityId, ApiCallId, LaneId, Ns, SyncKind, Trace};

use crate::index::{TraceIndex, order::end_of};

/// A stream as synchronisations name it: rank, device number, context, stream.
type StreamKey = (u32, Option<i64>, Option<i64>, i64);

/// What the first work launched after a wait waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Wait {
    /// When the last work before the event had ended; absent when it is not in the trace.
    event: Option<Ns>,
    /// There was a wait whose event is not known.
    unresolved: bool,
}

/// The waits of a trace.
#[derive(Debug, Default)]
pub(super) struct Waits {
    /// By activity: the first launched on the stream after the wait was asked for.
    of_activity: HashMap<u32, Wait, FixedState>,
    /// By thread: when it made a stream wait, where the profiler does not say which stream. In order.
    calls: Vec<Vec<Ns>>,
}

/// The activities of one stream in order of launch.
#[derive(Debug, Default)]
struct Launches {
    /// Start of the launch call, row, and the latest end of this and all before.
    all: Vec<(Ns, u32, Ns)>,
}

impl Waits {
    pub(super) fn find(index: &TraceIndex<'_>) -> Self {
        let trace = index.trace();
        let syncs = &trace.sync_events;
        let waits: Vec<usize> = (0..syncs.len()).filter(|&row| syncs.kind[row] == SyncKind::StreamWaitsForEvent).collect();
        if waits.is_empty() {
            return Self { of_activity: HashMap::default(), calls: wait_calls(trace) };
        }
        let key = |row: usize, stream: Option<i64>| -> Option<StreamKey> {
            Some((syncs.rank[row], syncs.device[row], syncs.context[row], stream?))
        };
        let mut streams: HashMap<StreamKey, Launches, FixedState> = HashMap::default();
        for &row in &waits {
            for key in [key(row, syncs.stream[row]), key(row, syncs.wait_on_stream[row])].into_iter().flatten() {
                streams.entry(key).or_default();
            }
        }
        collect_launches(index, &mut streams);
        let recorded = event_records(trace, &waits);
        let mut found = Self::default();
        for &row in &waits {
            let Some(waiting) = key(row, syncs.stream[row]).and_then(|key| streams.get(&key)) else { continue };
            let Some(&(_, held, _)) = waiting.all.get(waiting.all.partition_point(|&(at, ..)| at < syncs.start[row])) else { continue };
            let record = syncs.event_record(row).and_then(|id| recorded.get(&(syncs.rank[row], id)).copied());
            let event = record.and_then(|record| {
                let other = streams.get(&key(row, syncs.wait_on_stream[row])?)?;
                let before = other.all.partition_point(|&(at, ..)| at < record);
                Some(other.all[before.checked_sub(1)?].2)
            });
            let wait = found.of_activity.entry(held).or_default();
            wait.event = wait.event.max(event);
            wait.unresolved |= event.is_none();
        }
        found
    }

    /// When what an activity's stream waited for had ended.
    pub(super) fn resolved(&self, activity: u32) -> Option<Ns> {
        self.of_activity.get(&activity)?.event
    }

    /// Whether its stream waited for something that is not in the trace.
    pub(super) fn is_unresolved(&self, activity: u32) -> bool {
        self.of_activity.get(&activity).is_some_and(|wait| wait.unresolved)
    }

    /// Whether the thread of a launch made some stream wait since the stream's launch before, where the profiler does not say which.
    pub(super) fn is_likely(&self, trace: &Trace, launch: ApiCallId, before: Option<Ns>, began: Ns) -> bool {
        let Some(calls) = self.calls.get(trace.api_calls.thread[launch.index()].index()) else { return false };
        let from = calls.partition_point(|&at| before.is_some_and(|before| at <= before));
        calls.get(from).is_some_and(|&at| at < began)
    }
}

/// By thread, when it called for a stream to wait.
fn wait_calls(trace: &Trace) -> Vec<Vec<Ns>> {
    let waits: Vec<bool> = trace.strings.iter().map(|(_, name)| name.contains("StreamWaitEvent")).collect();
    if !waits.contains(&true) {
        return Vec::new();
    }
    let mut calls = vec![Vec::new(); trace.threads.len()];
    for (row, name) in trace.api_calls.name.iter().enumerate() {
        if waits[name.index()] {
            calls[trace.api_calls.thread[row].index()].push(trace.api_calls.start[row]);
        }
    }
    for calls in &mut calls {
        calls.sort_unstable();
    }
    calls
}

fn collect_launches(index: &TraceIndex<'_>, streams: &mut HashMap<StreamKey, Launches, FixedState>) {
    let trace = index.trace();
    let key = |lane: usize| {
        let lane = &trace.lanes[lane];
        let device = &trace.devices[lane.device.index()];
        (device.rank, Some(device.ordinal), lane.context, lane.stream)
    };
    let wanted: Vec<bool> = (0..trace.lanes.len()).map(|lane| streams.contains_key(&key(lane))).collect();
    for row in 0..trace.activities.len() {
        let lane: LaneId = trace.activities.lane[row];
        if wanted[lane.index()]
            && let Some(call) = index.links().call(ActivityId::from_index(row))
            && let Some(launches) = streams.get_mut(&key(lane.index()))
        {
            let end = end_of(trace.activities.start[row], trace.activities.dur[row]);
            launches.all.push((trace.api_calls.start[call.index()], row as u32, end));
        }
    }
    for launches in streams.values_mut() {
        launches.all.sort_unstable();
        let mut latest = Ns::MIN;
        for (_, _, end) in &mut launches.all {
            latest = latest.max(*end);
            *end = latest;
        }
    }
}

/// When the events that streams waited for were recorded, by rank and correlation number of the call.
fn event_records(trace: &Trace, waits: &[usize]) -> HashMap<(u32, u64), Ns, FixedState> {
    let syncs = &trace.sync_events;
    let wanted: HashSet<(u32, u64), FixedState> =
        waits.iter().filter_map(|&row| Some((syncs.rank[row], syncs.event_record(row)?))).collect();
    let mut records = HashMap::default();
    for row in 0..trace.api_calls.len() {
        if let Some(id) = trace.api_calls.correlation(row) {
            let key = (trace.thread_rank(trace.api_calls.thread[row]), id);
            if wanted.contains(&key) {
                records.insert(key, trace.api_calls.start[row]);
            }
        }
    }
    records
}
