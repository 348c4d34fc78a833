//! What lanes, events and moments are called.

use hashbrown::HashMap;
use longpole_analysis::{CurveKind, LaneKind, LanePlace};
use longpole_trace::{Detail, DeviceId, LaneId, LaunchConfig, MemcpyKind, ThreadId, Tid, Trace, Transfer};

use crate::units;

/// Names of the places of a trace.
pub(super) struct Places<'t> {
    trace: &'t Trace,
    /// Whether streams of a device are of several contexts.
    contexts: HashMap<DeviceId, bool, foldhash::fast::FixedState>,
}

impl<'t> Places<'t> {
    pub(super) fn new(trace: &'t Trace) -> Self {
        let mut contexts: HashMap<DeviceId, (Option<i64>, bool), foldhash::fast::FixedState> = HashMap::default();
        for lane in &trace.lanes {
            let known = contexts.entry(lane.device).or_insert((lane.context, false));
            known.1 |= known.0 != lane.context;
        }
        Self { trace, contexts: contexts.into_iter().map(|(device, (_, several))| (device, several)).collect() }
    }

    fn rank(&self, rank: u32) -> String {
        let rank = self.trace.ranks.get(rank as usize).filter(|_| self.trace.ranks.len() > 1);
        rank.map_or_else(String::new, |rank| format!("rank {} · ", rank.rank))
    }

    /// A device by number, of a recording.
    pub(super) fn gpu(&self, rank: u32, ordinal: i64) -> String {
        format!("{}GPU {ordinal}", self.rank(rank))
    }

    /// The lanes that stand together with one of this place.
    pub(super) fn group(&self, place: LanePlace) -> String {
        match place {
            LanePlace::Device(device) => self.device(device),
            LanePlace::Stream(lane) => self.device(self.trace.lanes[lane.index()].device),
            LanePlace::Thread(thread) => self.thread(thread),
        }
    }

    fn device(&self, device: DeviceId) -> String {
        let device = &self.trace.devices[device.index()];
        let name = device.properties.name.as_deref().map_or_else(String::new, |name| format!(" · {name}"));
        format!("{}{name}", self.gpu(device.rank, device.ordinal))
    }

    fn thread(&self, thread: ThreadId) -> String {
        let thread = &self.trace.threads[thread.index()];
        let process = &self.trace.processes[thread.process.index()];
        let named = |name: Option<longpole_trace::StrId>| name.map(|name| self.trace.strings.get(name)).filter(|name| !name.is_empty());
        let name = named(thread.name).or_else(|| named(process.name)).map_or_else(String::new, |name| format!(" ({name})"));
        let tid = match &thread.tid {
            Tid::Number(number) => number.to_string(),
            Tid::Text(text) => text.clone(),
        };
        format!("{}process {} · thread {tid}{name}", self.rank(process.rank), process.pid)
    }

    /// What a lane is called within its group.
    pub(super) fn title(&self, kind: LaneKind, place: LanePlace) -> String {
        match (kind, place) {
            (LaneKind::Steps, _) => "steps".to_owned(),
            (LaneKind::Gaps, _) => "idle by cause".to_owned(),
            (LaneKind::Ranges, _) => "ranges".to_owned(),
            (LaneKind::Ops, _) => "operators".to_owned(),
            (LaneKind::Calls, _) => "calls".to_owned(),
            (LaneKind::Stream, LanePlace::Stream(lane)) => self.stream(lane),
            (LaneKind::Stream, _) => "stream".to_owned(),
        }
    }

    fn stream(&self, lane: LaneId) -> String {
        let lane = &self.trace.lanes[lane.index()];
        let several = self.contexts.get(&lane.device) == Some(&true);
        let context = lane.context.filter(|_| several).map_or_else(String::new, |context| format!("context {context} · "));
        format!("{context}stream {}", lane.stream)
    }
}

pub(super) const fn lane_kind(kind: LaneKind) -> &'static str {
    match kind {
        LaneKind::Steps => "steps",
        LaneKind::Gaps => "gaps",
        LaneKind::Stream => "stream",
        LaneKind::Ranges => "ranges",
        LaneKind::Ops => "ops",
        LaneKind::Calls => "calls",
    }
}

/// Code, words and unit of a curve.
pub(super) const fn curve(kind: CurveKind) -> (&'static str, &'static str, &'static str) {
    match kind {
        CurveKind::QueueDepth => ("queue_depth", "work launched and not started", "launches"),
        CurveKind::MemoryAllocated => ("memory_allocated", "memory allocated", "bytes"),
        CurveKind::MemoryReserved => ("memory_reserved", "memory reserved", "bytes"),
    }
}

/// How work was launched, or what it moved, in words; only what was recorded.
pub(super) fn detail(detail: &Detail) -> String {
    match detail {
        Detail::Launch(launch) => self::launch(launch),
        Detail::Transfer(transfer) => self::transfer(transfer),
    }
}

fn launch(launch: &LaunchConfig) -> String {
    let LaunchConfig { grid, block, registers_per_thread, shared_bytes } = launch;
    let size = |what: &str, [x, y, z]: [u32; 3]| format!("{what} {x}×{y}×{z}");
    let parts = [
        grid.map(|grid| size("grid", grid)),
        block.map(|block| size("block", block)),
        registers_per_thread.map(|registers| format!("{registers} registers")),
        shared_bytes.map(|shared| format!("{} shared", units::bytes(i64::from(shared)))),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

fn transfer(transfer: &Transfer) -> String {
    let Transfer { bytes, kind, pageable } = transfer;
    let direction = match kind {
        MemcpyKind::HostToDevice => Some("host to device"),
        MemcpyKind::DeviceToHost => Some("device to host"),
        MemcpyKind::DeviceToDevice => Some("device to device"),
        MemcpyKind::PeerToPeer => Some("device to other device"),
        MemcpyKind::HostToHost => Some("host to host"),
        MemcpyKind::Unknown => None,
    };
    let memory = pageable.map(|pageable| if pageable { "pageable" } else { "pinned" });
    let bytes = bytes.map(|bytes| units::bytes(i64::try_from(bytes).unwrap_or(i64::MAX)));
    [bytes, direction.map(str::to_owned), memory.map(str::to_owned)].into_iter().flatten().collect::<Vec<_>>().join(" · ")
}
