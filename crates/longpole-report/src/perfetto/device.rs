//! Devices: steps, idle time by cause, queue and memory, and a track for each stream.

use std::io;

use longpole_analysis::{Family, IdleCause, IdlePiece, Scope, Step, StepTable, TraceIndex, Why, device_label, each_idle_piece, rank_order};
use longpole_trace::{
    ActivityId, ActivityKind, Detail, DeviceId, LaneId, LaunchConfig, MemcpyKind, MemoryPlace, Ns, StrId, Trace, Transfer,
};

use super::host::Arrows;
use super::lanes::{Beside, Slice};
use super::packets::{Category, Key, Name, Notes, Packets, Track, TrackKind, Unit};

/// Ranks of the tracks of a device; streams come behind.
const STEPS: i64 = 0;
const IDLE: i64 = 1;
const QUEUE: i64 = 2;
const MEMORY: i64 = 3;
const STREAMS: i64 = 10;

/// Activities in scope, by stream, in order of start.
struct Streams(Vec<Vec<u32>>);

impl Streams {
    fn find(index: &TraceIndex<'_>, scope: &Scope) -> Self {
        let trace = index.trace();
        let mut of_lane = vec![Vec::new(); trace.lanes.len()];
        for row in 0..trace.activities.len() {
            if scope.includes_activity(index, ActivityId::from_index(row)) {
                of_lane[trace.activities.lane[row].index()].push(row as u32);
            }
        }
        for rows in &mut of_lane {
            if !rows.is_sorted_by_key(|&row| trace.activities.start[row as usize]) {
                rows.sort_by_key(|&row| trace.activities.start[row as usize]);
            }
        }
        Self(of_lane)
    }
}

/// Writes the devices; the tracks they have.
pub(super) fn write(
    packets: &mut Packets<'_, '_>,
    index: &TraceIndex<'_>,
    scope: &Scope,
    steps: &StepTable,
    arrows: &Arrows,
) -> io::Result<()> {
    let trace = index.trace();
    let streams = Streams::find(index, scope);
    let mut of_device: Vec<Vec<LaneId>> = vec![Vec::new(); trace.devices.len()];
    for lane in (0..trace.lanes.len()).filter(|&lane| !streams.0[lane].is_empty()).map(LaneId::from_index) {
        of_device[trace.lanes[lane.index()].device.index()].push(lane);
    }
    let memory = memory_rows(index, scope);
    let mut tracks: Vec<Option<Track>> = vec![None; trace.devices.len()];
    let mut order: Vec<DeviceId> = (0..trace.devices.len()).map(DeviceId::from_index).collect();
    order.sort_by_key(|device| {
        let about = &trace.devices[device.index()];
        (rank_order(trace, about.rank), about.ordinal, *device)
    });
    for (position, &device) in order.iter().enumerate() {
        if of_device[device.index()].is_empty() && memory[device.index()].is_empty() {
            continue;
        }
        let product = trace.devices[device.index()].properties.name.as_deref().map_or_else(String::new, |name| format!(" {name}"));
        let name = format!("{}{product}", device_label(trace, device));
        tracks[device.index()] = Some(packets.track(None, &name, TrackKind::Plain, position as i64));
    }
    idle(packets, index, scope, &tracks)?;
    let mut details = Details { of: vec![None; trace.details.len()], families: vec![None; trace.strings.len()] };
    for device in order {
        let Some(track) = tracks[device.index()] else { continue };
        let lanes = &mut of_device[device.index()];
        write_steps(packets, trace, steps, device, track)?;
        queue(packets, index, lanes.iter().flat_map(|lane| &streams.0[lane.index()]), track)?;
        write_memory(packets, trace, &memory[device.index()], track)?;
        lanes.sort_by_key(|lane| (trace.lanes[lane.index()].stream, trace.lanes[lane.index()].context));
        let several = lanes.iter().any(|lane| trace.lanes[lane.index()].context != trace.lanes[lanes[0].index()].context);
        for (position, &lane) in lanes.iter().enumerate() {
            let about = &trace.lanes[lane.index()];
            let context = about.context.filter(|_| several).map_or_else(String::new, |context| format!(" context {context}"));
            let name = format!("stream {}{context}", about.stream);
            let track = packets.track(Some(track), &name, TrackKind::Plain, STREAMS + position as i64);
            write_stream(packets, index, arrows, &mut details, (track, &streams.0[lane.index()]))?;
        }
    }
    Ok(())
}

fn write_stream(
    packets: &mut Packets<'_, '_>,
    index: &TraceIndex<'_>,
    arrows: &Arrows,
    details: &mut Details,
    (track, rows): (Track, &[u32]),
) -> io::Result<()> {
    let (trace, activities) = (index.trace(), &index.trace().activities);
    let mut lanes = Beside::on(track, "overlap");
    for &row in rows {
        let at = row as usize;
        let category = match activities.kind[at] {
            ActivityKind::Kernel => Category::Kernel,
            ActivityKind::Memcpy => Category::Copy,
            ActivityKind::Memset => Category::Fill,
            ActivityKind::Other => Category::Other,
        };
        let (start, name) = (activities.start[at], activities.name[at]);
        let slice = Slice { start, end: start + activities.dur[at].max(Ns::ZERO), category, name: Name::Of(name) };
        lanes.slice(packets, slice, |notes| {
            if let Some(detail) = activities.detail(at) {
                notes.ready(details.of[detail.index()].get_or_insert_with(|| describe(trace.details[detail.index()])));
            }
            if activities.kind[at] == ActivityKind::Kernel {
                notes.text(Key::Family, details.family(trace, name));
            }
            notes.unsigned(Key::Correlation, activities.correlation(at));
            if let Some(node) = activities.graph_node(at).map(|id| trace.graph_nodes[id.index()]) {
                notes.unsigned(Key::Graph, node.graph);
                notes.unsigned(Key::GraphNode, node.node);
            }
            notes.flow(arrows.of_activity(index, ActivityId(row)), true);
        })?;
    }
    Ok(())
}

/// What is known of activities beside their times, put together once for all that are alike.
struct Details {
    of: Vec<Option<Vec<u8>>>,
    families: Vec<Option<&'static str>>,
}

impl Details {
    fn family(&mut self, trace: &Trace, name: StrId) -> &'static str {
        self.families[name.index()].get_or_insert_with(|| Family::of(ActivityKind::Kernel, trace.strings.get(name)).name())
    }
}

fn describe(detail: Detail) -> Vec<u8> {
    let mut notes = Notes::default();
    let by = |[x, y, z]: [u32; 3]| format!("{x}x{y}x{z}");
    match detail {
        Detail::Launch(LaunchConfig { grid, block, registers_per_thread, shared_bytes }) => {
            for (key, size) in [(Key::Grid, grid), (Key::Block, block)] {
                if let Some(size) = size {
                    notes.text(key, &by(size));
                }
            }
            notes.unsigned(Key::RegistersPerThread, registers_per_thread.map(u64::from));
            notes.unsigned(Key::SharedBytes, shared_bytes.map(u64::from));
        }
        Detail::Transfer(Transfer { bytes, kind, pageable }) => {
            notes.unsigned(Key::Bytes, bytes);
            if kind != MemcpyKind::Unknown {
                notes.text(Key::Copy, super::copy_kind(kind));
            }
            notes.unsigned(Key::Pageable, pageable.map(u64::from));
        }
    }
    notes.into_bytes()
}

/// Why each device was idle. Pieces of one gap come in order of time, and gaps do not touch, so they are written as they come.
fn idle(packets: &mut Packets<'_, '_>, index: &TraceIndex<'_>, scope: &Scope, devices: &[Option<Track>]) -> io::Result<()> {
    if index.trace().activities.is_empty() {
        return Ok(());
    }
    let causes = IdleCause::ALL.map(|cause| packets.own_name(cause.code()));
    let mut tracks: Vec<Option<Track>> = vec![None; devices.len()];
    let mut result = Ok(());
    let mut write = |piece: IdlePiece| {
        let device = piece.device.index();
        if result.is_err() || piece.end <= piece.start {
            return;
        }
        let track = *tracks[device].get_or_insert_with(|| packets.track(devices[device], "idle by cause", TrackKind::Plain, IDLE));
        let begun = packets.begin(track, piece.start, (Category::Idle, causes[piece.cause.index()]), |notes| {
            notes.string(Key::Host, piece.frame.name);
            notes.string(Key::Inside, piece.frame.inside);
        });
        result = begun.and_then(|()| packets.end(track, piece.end));
    };
    each_idle_piece(index, scope, &mut write);
    result
}

fn write_steps(packets: &mut Packets<'_, '_>, trace: &Trace, table: &StepTable, device: DeviceId, parent: Track) -> io::Result<()> {
    let groups = table.groups.iter().filter(|group| group.device == device);
    let mut steps: Vec<(&Step, Option<Why>, &str)> = Vec::new();
    for group in groups {
        steps.extend(group.steps.iter().map(|step| (step, None, group.name.as_str())));
        steps.extend(group.left_out.iter().map(|left| (&left.step, Some(left.why), group.name.as_str())));
    }
    if steps.is_empty() {
        return Ok(());
    }
    steps.sort_by_key(|(step, ..)| (step.start, step.number));
    let track = packets.track(Some(parent), "steps", TrackKind::Plain, STEPS);
    let mut names: hashbrown::HashMap<&str, Name, foldhash::fast::FixedState> = hashbrown::HashMap::default();
    let mut lanes = Beside::on(track, "steps");
    for (step, left_out, name) in steps {
        let name = *names.entry(name).or_insert_with(|| packets.own_name(name));
        let slice = Slice { start: step.start, end: step.end.max(step.start), category: Category::Step, name };
        lanes.slice(packets, slice, |notes| {
            notes.unsigned(Key::Number, u64::from(step.number));
            notes.signed(Key::BusyNs, step.busy_ns.get());
            let is_kernel = |id: &&ActivityId| matches!(trace.activities.kind[id.index()], ActivityKind::Kernel | ActivityKind::Other);
            notes.unsigned(Key::Kernels, step.activities.iter().filter(is_kernel).count() as u64);
            if let Some(why) = left_out {
                notes.text(Key::LeftOut, super::why_left_out(why));
            }
        })?;
    }
    Ok(())
}

/// Activities that were launched and had not started, over time.
fn queue<'a>(packets: &mut Packets<'_, '_>, index: &TraceIndex<'_>, rows: impl Iterator<Item = &'a u32>, parent: Track) -> io::Result<()> {
    let trace = index.trace();
    let (mut launches, mut starts) = (Vec::new(), Vec::new());
    for &row in rows {
        let start = trace.activities.start[row as usize];
        if let Some(call) = index.links().call(ActivityId(row))
            && trace.api_calls.start[call.index()] < start
        {
            launches.push(trace.api_calls.start[call.index()]);
            starts.push(start);
        }
    }
    if launches.is_empty() {
        return Ok(());
    }
    launches.sort_unstable();
    starts.sort_unstable();
    let track = packets.track(Some(parent), "queue depth", TrackKind::Counter(Unit::Count), QUEUE);
    let (mut launched, mut started) = (0, 0);
    while started < starts.len() {
        // What starts as something else is launched makes room first; no start is before its own launch.
        let next = launches.get(launched).copied().unwrap_or(Ns::MAX).min(starts[started]);
        let before = launched - started;
        while launches.get(launched).is_some_and(|&at| at <= next) {
            launched += 1;
        }
        while starts.get(started).is_some_and(|&at| at <= next) {
            started += 1;
        }
        if launched - started != before {
            packets.count(track, next, (launched - started) as i64)?;
        }
    }
    Ok(())
}

/// Rows of allocator events of each device, in order of time. What is of no device that is known is in no counter.
fn memory_rows(index: &TraceIndex<'_>, scope: &Scope) -> Vec<Vec<u32>> {
    let (trace, memory) = (index.trace(), &index.trace().memory);
    let mut of_device = vec![Vec::new(); trace.devices.len()];
    for row in (0..memory.len()).filter(|&row| memory.place[row] == MemoryPlace::Device) {
        if !scope.includes_host(trace, memory.thread[row], memory.start[row]) {
            continue;
        }
        let rank = trace.thread_rank(memory.thread[row]);
        let is_its = |about: &longpole_trace::Device| about.rank == rank && memory.device(row).map(i64::from) == Some(about.ordinal);
        if let Some(device) = trace.devices.iter().position(is_its) {
            of_device[device].push(row as u32);
        }
    }
    for rows in &mut of_device {
        rows.sort_by_key(|&row| memory.start[row as usize]);
    }
    of_device
}

fn write_memory(packets: &mut Packets<'_, '_>, trace: &Trace, rows: &[u32], parent: Track) -> io::Result<()> {
    let memory = &trace.memory;
    let rows = || rows.iter().map(|&row| row as usize);
    let mut counter = |name: &str, rank: i64, values: &mut dyn Iterator<Item = (Ns, u64)>| {
        let mut track = None;
        for (at, value) in values {
            let track = *track.get_or_insert_with(|| packets.track(Some(parent), name, TrackKind::Counter(Unit::Bytes), MEMORY + rank));
            packets.count(track, at, i64::try_from(value).unwrap_or(i64::MAX))?;
        }
        Ok::<(), io::Error>(())
    };
    counter("memory allocated", 0, &mut rows().filter_map(|row| Some((memory.start[row], memory.total_allocated(row)?))))?;
    counter("memory reserved", 1, &mut rows().filter_map(|row| Some((memory.start[row], memory.total_reserved(row)?))))
}
