//! The events of each lane, in order of start, as positions in the trace's tables: one lane costs five bytes an event.

use longpole_trace::{ActivityId, DeviceId, LaneId, Ns, ThreadId};

use super::OverviewSources;
use super::rows::{Splitter, of_depth};
use super::types::{EventName, EventOrigin, LaneKind, LanePlace, OverviewOptions};
use crate::idle::IdleCause;
use crate::index::{HostRow, NodeId, TraceIndex, order::end_of};
use crate::scope::Scope;
use crate::stacks::rank_order;
use longpole_trace::StrId;

/// A step on its lane.
#[derive(Clone, Copy, Debug)]
pub(super) struct StepMark {
    pub(super) start: Ns,
    pub(super) end: Ns,
    pub(super) group: u32,
    pub(super) number: u32,
}

/// Where the events of a lane are.
#[derive(Debug)]
enum Events {
    Activities(Vec<u32>),
    Nodes(Vec<u32>),
    /// Part of the list of stretches.
    Stretches(std::ops::Range<usize>),
    Steps(Vec<StepMark>),
}

/// One lane.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) kind: LaneKind,
    pub(super) place: LanePlace,
    events: Events,
    /// By event; empty when all are on row 0.
    row: Vec<u8>,
    pub(super) rows: u32,
}

impl Lane {
    pub(super) fn len(&self) -> usize {
        match &self.events {
            Events::Activities(rows) | Events::Nodes(rows) => rows.len(),
            Events::Stretches(range) => range.len(),
            Events::Steps(steps) => steps.len(),
        }
    }

    pub(super) fn row(&self, at: usize) -> u8 {
        self.row.get(at).copied().unwrap_or(0)
    }

    /// Whether its events happen on the host.
    pub(super) fn is_host(&self) -> bool {
        matches!(self.place, LanePlace::Thread(_))
    }

    /// Positions of the events of each row, one after the other; nothing where all are on one row.
    pub(super) fn by_row(&self) -> Vec<Vec<u32>> {
        if self.rows <= 1 {
            return Vec::new();
        }
        let mut counts = vec![0; self.rows as usize];
        self.row.iter().for_each(|&row| counts[usize::from(row)] += 1);
        let mut rows: Vec<Vec<u32>> = counts.into_iter().map(Vec::with_capacity).collect();
        for (at, &row) in self.row.iter().enumerate() {
            rows[usize::from(row)].push(at as u32);
        }
        rows
    }
}

/// All lanes of a scope.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    pub(super) lanes: Vec<Lane>,
    pub(super) threads_left_out: usize,
    pub(super) streams_left_out: usize,
}

/// The tables that lanes point into.
#[derive(Clone, Copy)]
pub(super) struct View<'a, 't> {
    pub(super) index: &'a TraceIndex<'t>,
    pub(super) sources: &'a OverviewSources<'a>,
}

impl View<'_, '_> {
    /// When an event starts and ends; it never ends before it starts.
    pub(super) fn times(&self, lane: &Lane, at: usize) -> (Ns, Ns) {
        match &lane.events {
            Events::Activities(rows) => {
                let (activities, row) = (&self.index.trace().activities, rows[at] as usize);
                (activities.start[row], end_of(activities.start[row], activities.dur[row]))
            }
            Events::Nodes(nodes) => {
                let (_, start, dur) = self.index.tree().event(NodeId(nodes[at]));
                (start, start + dur)
            }
            Events::Stretches(range) => {
                let stretch = self.sources.stretches.get(range.start + at);
                stretch.map_or((Ns::ZERO, Ns::ZERO), |stretch| (stretch.start, stretch.end))
            }
            Events::Steps(steps) => (steps[at].start, steps[at].end.max(steps[at].start)),
        }
    }

    /// The name of an event, as a number that is small enough to count by.
    pub(super) fn key(&self, lane: &Lane, at: usize) -> u32 {
        match &lane.events {
            Events::Activities(rows) => self.index.trace().activities.name[rows[at] as usize].0,
            Events::Nodes(nodes) => self.index.tree().name(NodeId(nodes[at])).0,
            Events::Stretches(range) => self.sources.stretches.get(range.start + at).map_or(0, |stretch| stretch.cause.index() as u32),
            Events::Steps(steps) => steps[at].group,
        }
    }

    /// Every key of a lane is below this.
    pub(super) fn keys(&self, lane: &Lane) -> usize {
        match &lane.events {
            Events::Activities(_) | Events::Nodes(_) => self.index.trace().strings.len(),
            Events::Stretches(_) => IdleCause::COUNT,
            Events::Steps(_) => self.sources.steps.groups.len(),
        }
    }

    /// The name that a key stands for.
    pub(super) fn name(lane: &Lane, key: u32) -> EventName {
        match &lane.events {
            Events::Activities(_) | Events::Nodes(_) => EventName::Text(StrId(key)),
            Events::Stretches(_) => EventName::Cause(IdleCause::ALL[key as usize]),
            Events::Steps(_) => EventName::Group(key),
        }
    }

    pub(super) fn origin(lane: &Lane, at: usize) -> EventOrigin {
        match &lane.events {
            Events::Activities(rows) => EventOrigin::Activity(ActivityId(rows[at])),
            Events::Nodes(nodes) => EventOrigin::Node(NodeId(nodes[at])),
            Events::Stretches(range) => EventOrigin::Stretch((range.start + at) as u32),
            Events::Steps(steps) => EventOrigin::Step(steps[at].number),
        }
    }

    /// Position of the first event that starts at `from` or later.
    pub(super) fn first_from(&self, lane: &Lane, from: Ns) -> usize {
        let (mut low, mut high) = (0, lane.len());
        while low < high {
            let middle = low.midpoint(high);
            if self.times(lane, middle).0 < from {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

/// Finds the lanes of a scope.
pub(super) fn gather(index: &TraceIndex<'_>, scope: &Scope, sources: &OverviewSources<'_>, options: &OverviewOptions) -> Gathered {
    let (mut streams, (mut threads, threads_left_out)) = rayon::join(|| streams(index, scope), || threads(index, scope, options.threads));
    // Those with most work stay, in the order of the trace.
    let mut sizes: Vec<(usize, usize)> = streams.iter().enumerate().map(|(at, lane)| (lane.len(), at)).collect();
    sizes.sort_unstable_by_key(|&(size, at)| (std::cmp::Reverse(size), at));
    let streams_left_out = sizes.len().saturating_sub(options.streams);
    let mut stays = vec![true; streams.len()];
    sizes.iter().skip(options.streams).for_each(|&(_, at)| stays[at] = false);
    let mut stays = stays.into_iter();
    streams.retain(|_| stays.next().unwrap_or(true));

    let trace = index.trace();
    let device_of = |lane: &Lane| match lane.place {
        LanePlace::Stream(lane) => Some(trace.lanes[lane.index()].device),
        LanePlace::Device(_) | LanePlace::Thread(_) => None,
    };
    let mut devices: Vec<DeviceId> = streams.iter().filter_map(device_of).collect();
    devices.sort_unstable_by_key(|device| {
        let known = &trace.devices[device.index()];
        (rank_order(trace, known.rank), known.ordinal, *device)
    });
    devices.dedup();
    let mut lanes = Vec::new();
    for device in devices {
        lanes.extend(steps_lane(sources, device));
        lanes.extend(gaps_lane(sources, device));
        let (mut own, others) = streams.into_iter().partition::<Vec<Lane>, _>(|lane| device_of(lane) == Some(device));
        own.sort_by_key(|lane| match lane.place {
            LanePlace::Stream(lane) => Some((trace.lanes[lane.index()].context, trace.lanes[lane.index()].stream)),
            LanePlace::Device(_) | LanePlace::Thread(_) => None,
        });
        lanes.extend(own);
        streams = others;
    }
    lanes.append(&mut threads);
    Gathered { lanes, threads_left_out, streams_left_out }
}

fn steps_lane(sources: &OverviewSources<'_>, device: DeviceId) -> Option<Lane> {
    let groups = sources.steps.groups.iter().enumerate().filter(|(_, group)| group.device == device);
    let mut steps: Vec<StepMark> = groups
        .flat_map(|(at, group)| {
            let all = group.steps.iter().chain(group.left_out.iter().map(|left| &left.step));
            all.map(move |step| StepMark { start: step.start, end: step.end, group: at as u32, number: step.number })
        })
        .collect();
    steps.sort_by_key(|step| (step.start, step.number));
    let mut splitter = Splitter::default();
    let row = steps.iter().map(|step| splitter.place(step.start.get(), step.end.get())).collect();
    (!steps.is_empty()).then(|| Lane {
        kind: LaneKind::Steps,
        place: LanePlace::Device(device),
        events: Events::Steps(steps),
        row,
        rows: splitter.rows(),
    })
}

fn gaps_lane(sources: &OverviewSources<'_>, device: DeviceId) -> Option<Lane> {
    let range = sources.stretches.of_device(device);
    (!range.is_empty()).then(|| Lane {
        kind: LaneKind::Gaps,
        place: LanePlace::Device(device),
        row: Vec::new(),
        events: Events::Stretches(range),
        rows: 1,
    })
}

/// The streams with activities in scope, by id.
fn streams(index: &TraceIndex<'_>, scope: &Scope) -> Vec<Lane> {
    let trace = index.trace();
    let activities = &trace.activities;
    let mut of_lane: Vec<Vec<u32>> = vec![Vec::new(); trace.lanes.len()];
    for row in 0..activities.len() {
        if scope.includes_activity(index, ActivityId::from_index(row)) {
            of_lane[activities.lane[row].index()].push(row as u32);
        }
    }
    let lanes = of_lane.into_iter().enumerate().filter(|(_, rows)| !rows.is_empty());
    lanes
        .map(|(lane, mut rows)| {
            let start = |row: u32| activities.start[row as usize];
            if !rows.is_sorted_by_key(|&row| start(row)) {
                rows.sort_by_key(|&row| start(row));
            }
            let mut splitter = Splitter::default();
            let row =
                rows.iter().map(|&row| splitter.place(start(row).get(), end_of(start(row), activities.dur[row as usize]).get())).collect();
            Lane {
                kind: LaneKind::Stream,
                place: LanePlace::Stream(LaneId::from_index(lane)),
                events: Events::Activities(rows),
                row: if splitter.rows() > 1 { row } else { Vec::new() },
                rows: splitter.rows(),
            }
        })
        .collect()
}

/// The lanes of the threads with most launches, of equals those with most host events, rank by rank; and how many threads there are more.
fn threads(index: &TraceIndex<'_>, scope: &Scope, most: usize) -> (Vec<Lane>, usize) {
    let (trace, links, tree) = (index.trace(), index.links(), index.tree());
    let mut launches = vec![0_u64; trace.threads.len()];
    for (call, thread) in trace.api_calls.thread.iter().enumerate() {
        launches[thread.index()] += u64::from(links.is_launch(longpole_trace::ApiCallId::from_index(call)));
    }
    let mut found: Vec<(u64, usize, ThreadId)> = (0..trace.threads.len())
        .map(ThreadId::from_index)
        .map(|thread| (launches[thread.index()], tree.thread_nodes(thread).len(), thread))
        .filter(|&(_, nodes, _)| nodes > 0)
        .collect();
    found.sort_unstable_by_key(|&(launches, nodes, thread)| (std::cmp::Reverse((launches, nodes)), thread));
    let left_out = found.len().saturating_sub(most);
    found.truncate(most);
    // Those of one rank stand together.
    found.sort_by_key(|&(_, _, thread)| rank_order(trace, trace.thread_rank(thread)));
    (found.into_iter().flat_map(|(_, _, thread)| thread_lanes(index, scope, thread)).collect(), left_out)
}

/// Nodes of one kind, in the making.
#[derive(Debug, Default)]
struct Nested {
    nodes: Vec<u32>,
    row: Vec<u8>,
    rows: u8,
}

/// Ranges, operators and calls of a thread, those of each kind that there are.
fn thread_lanes(index: &TraceIndex<'_>, scope: &Scope, thread: ThreadId) -> Vec<Lane> {
    const KINDS: [LaneKind; 3] = [LaneKind::Ranges, LaneKind::Ops, LaneKind::Calls];
    let tree = index.tree();
    let nodes = tree.thread_nodes(thread);
    let first = nodes.start;
    // By node: how many of each kind are around it, itself included.
    let mut depths: Vec<[u32; 3]> = Vec::with_capacity(nodes.len());
    let mut nested: [Nested; 3] = Default::default();
    for node in nodes {
        let id = NodeId(node as u32);
        let kind = match tree.row(id) {
            HostRow::Range(_) => 0,
            HostRow::Op(_) => 1,
            HostRow::Api(_) => 2,
        };
        let around = tree.parent(id).and_then(|parent| depths.get(parent.index().checked_sub(first)?));
        let mut depth = around.copied().unwrap_or_default();
        if scope.includes_node(index, id) {
            let row = of_depth(depth[kind]);
            let of_kind = &mut nested[kind];
            of_kind.nodes.push(node as u32);
            of_kind.row.push(row);
            of_kind.rows = of_kind.rows.max(row + 1);
            depth[kind] += 1;
        }
        depths.push(depth);
    }
    let lanes = KINDS.into_iter().zip(nested).filter(|(_, of_kind)| !of_kind.nodes.is_empty());
    lanes
        .map(|(kind, of_kind)| Lane {
            kind,
            place: LanePlace::Thread(thread),
            events: Events::Nodes(of_kind.nodes),
            row: of_kind.row,
            rows: u32::from(of_kind.rows.max(1)),
        })
        .collect()
}
