//! One function a kind of event. Categories and arguments are Kineto's.

use std::io;

use longpole_analysis::HostRow;
use longpole_trace::{
    ActivityId, ActivityKind, ApiCallId, Collective, CollectivePlace, Detail, LaunchConfig, MemcpyKind, MemoryPlace, Ns, StrId, SyncKind,
    ThreadId, Tid, Trace, Transfer,
};
use serde::de::IgnoredAny;

use super::collectives::Descriptions;
use super::json::{JsonLines, Members, Place};
use super::selection::{Selection, Times};

/// Whether a recorded value is JSON; found out once for each.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Checked {
    NotYet,
    Json,
    NotJson,
}

pub(super) struct Events<'w, 'a, 't> {
    lines: JsonLines<'w>,
    selection: &'a Selection<'a, 't>,
    trace: &'t Trace,
    descriptions: Descriptions,
    checked: Vec<Checked>,
    /// What is added to external ids.
    id_offset: u64,
    unreadable_inputs: u64,
}

impl<'w, 'a, 't> Events<'w, 'a, 't> {
    pub(super) fn new(lines: JsonLines<'w>, selection: &'a Selection<'a, 't>, descriptions: Descriptions) -> Self {
        let trace = selection.index.trace();
        let (checked, id_offset) = (vec![Checked::NotYet; trace.strings.len()], id_offset(selection));
        Self { lines, selection, trace, descriptions, checked, id_offset, unreadable_inputs: 0 }
    }

    /// What is to be written on, and how many inputs of operators were left out because they are no JSON.
    pub(super) fn finish(self) -> (JsonLines<'w>, u64) {
        (self.lines, self.unreadable_inputs)
    }

    fn thread(&self, thread: ThreadId) -> Place<'t> {
        let thread = &self.trace.threads[thread.index()];
        Place::Thread(self.trace.processes[thread.process.index()].pid, &thread.tid)
    }

    fn external_id(&self, id: Option<u64>) -> Option<u64> {
        id.map(|id| id.wrapping_add(self.id_offset))
    }

    fn text(&self, id: StrId) -> &'t str {
        self.trace.strings.get(id)
    }

    /// A host event that is not in the scope, with the times it is cut to.
    pub(super) fn surrounding(&mut self, row: HostRow, times: Times) -> io::Result<()> {
        match row {
            HostRow::Range(id) => self.range(id.index(), times),
            HostRow::Op(id) => self.op(id.index(), times),
            HostRow::Api(id) => self.call(id.index(), times),
        }
    }

    pub(super) fn range(&mut self, row: usize, times: Times) -> io::Result<()> {
        let ranges = &self.trace.ranges;
        let (name, place) = (self.text(ranges.name[row]), self.thread(ranges.thread[row]));
        self.lines.complete(("user_annotation", name), place, times, |_| {})
    }

    pub(super) fn op(&mut self, row: usize, times: Times) -> io::Result<()> {
        let ops = &self.trace.host_ops;
        let inputs = [
            ("Input Dims", ops.shapes(row)),
            ("Input type", ops.types(row)),
            ("Input Strides", ops.strides(row)),
            ("Concrete Inputs", ops.values(row)),
        ]
        .map(|(key, value)| Some((key, self.readable(value?)?)));
        let collective = self.descriptions.of(self.trace, CollectivePlace::Host(ops.thread[row]), ops.start[row], row);
        let external_id = self.external_id(ops.external_id(row));
        let (trace, name, place) = (self.trace, self.text(ops.name[row]), self.thread(ops.thread[row]));
        self.lines.complete(("cpu_op", name), place, times, |args| {
            args.optional("External id", external_id);
            for (key, json) in inputs.into_iter().flatten() {
                args.json(key, json);
            }
            if let Some(collective) = collective {
                describe(args, trace, &collective);
            }
        })
    }

    /// The text of an input of an operator, unless it is no JSON list: then it would make the whole file unreadable.
    fn readable(&mut self, id: StrId) -> Option<&'t str> {
        let text = self.text(id);
        let checked = &mut self.checked[id.index()];
        if *checked == Checked::NotYet {
            let is_list = text.starts_with('[') && serde_json::from_str::<IgnoredAny>(text).is_ok();
            *checked = if is_list { Checked::Json } else { Checked::NotJson };
        }
        let is_json = *checked == Checked::Json;
        self.unreadable_inputs += u64::from(!is_json);
        is_json.then_some(text)
    }

    pub(super) fn call(&mut self, row: usize, times: Times) -> io::Result<()> {
        let calls = &self.trace.api_calls;
        let (name, place) = (self.text(calls.name[row]), self.thread(calls.thread[row]));
        let external_id = self.external_id(calls.external_id(row));
        let cat = if is_driver_call(name) { "cuda_driver" } else { "cuda_runtime" };
        self.lines.complete((cat, name), place, times, |args| {
            args.optional("External id", external_id);
            args.optional("correlation", calls.correlation(row));
        })?;
        let launched = |row: usize| self.selection.index.links().has_activity(ApiCallId::from_index(row)) && self.selection.call(row);
        match calls.correlation(row).filter(|_| launched(row)) {
            Some(id) => self.arrow(b's', id, place, calls.start[row]),
            None => Ok(()),
        }
    }

    /// One end of an arrow from a launch to what it launched.
    fn arrow(&mut self, phase: u8, id: u64, place: Place<'_>, at: Ns) -> io::Result<()> {
        let more = |members: &mut Members<'_>| {
            members.number("id", id);
            if phase == b'f' {
                members.string("bp", "e");
            }
        };
        self.lines.instant(phase, ("ac2g", "ac2g"), place, Some(at), more, |_| {})
    }

    pub(super) fn activity(&mut self, row: usize) -> io::Result<()> {
        let (trace, activities) = (self.trace, &self.trace.activities);
        let lane = &trace.lanes[activities.lane[row].index()];
        let device = trace.devices[lane.device.index()].ordinal;
        let cat = match activities.kind[row] {
            ActivityKind::Kernel => "kernel",
            ActivityKind::Memcpy => "gpu_memcpy",
            ActivityKind::Memset => "gpu_memset",
            // No category that an importer knows: device and correlation number say what it is.
            ActivityKind::Other => "device_activity",
        };
        let (name, place) = (self.text(activities.name[row]), Place::Stream(device, lane.stream));
        let external_id = self.external_id(activities.external_id(row));
        let node = activities.graph_node(row).map(|id| trace.graph_nodes[id.index()]);
        let collective = self.descriptions.of(trace, CollectivePlace::Device(activities.lane[row]), activities.start[row], row);
        self.lines.complete((cat, name), place, (activities.start[row], activities.dur[row]), |args| {
            args.optional("External id", external_id);
            args.number("device", device);
            args.optional("context", lane.context);
            args.number("stream", lane.stream);
            args.optional("correlation", activities.correlation(row));
            match activities.detail(row).map(|id| trace.details[id.index()]) {
                Some(Detail::Launch(launch)) => describe_launch(args, launch),
                Some(Detail::Transfer(transfer)) => describe_transfer(args, name, transfer),
                None => {}
            }
            if let Some(node) = node {
                args.number("graph id", node.graph);
                args.number("graph node id", node.node);
            }
            if let Some(collective) = collective {
                describe(args, trace, &collective);
            }
        })?;
        let is_launched = self.selection.index.links().call(ActivityId::from_index(row)).is_some();
        match activities.correlation(row).filter(|_| is_launched) {
            Some(id) => self.arrow(b'f', id, place, activities.start[row]),
            None => Ok(()),
        }
    }

    pub(super) fn memory(&mut self, row: usize) -> io::Result<()> {
        let memory = &self.trace.memory;
        let place = self.thread(memory.thread[row]);
        // Numbers of c10::DeviceType: 0 is the CPU, 1 is CUDA.
        let (kind, device) = match memory.place[row] {
            MemoryPlace::Host => (0, Some(-1)),
            MemoryPlace::Device => (1, memory.device(row).map(i64::from)),
        };
        let scope = |members: &mut Members<'_>| members.string("s", "t");
        self.lines.instant(b'i', ("cpu_instant_event", "[memory]"), place, Some(memory.start[row]), scope, |args| {
            args.number("Bytes", memory.bytes[row]);
            args.number("Device Type", kind);
            args.optional("Device Id", device);
            args.optional("Total Allocated", memory.total_allocated(row));
            args.optional("Total Reserved", memory.total_reserved(row));
        })
    }

    pub(super) fn frame(&mut self, row: usize, times: Times) -> io::Result<()> {
        let frames = &self.trace.frames;
        let (name, place) = (self.text(frames.name[row]), self.thread(frames.thread[row]));
        self.lines.complete(("python_function", name), place, times, |_| {})
    }

    pub(super) fn sync_event(&mut self, row: usize) -> io::Result<()> {
        let events = &self.trace.sync_events;
        let name = match events.kind[row] {
            SyncKind::StreamWaitsForEvent => "Stream Wait Event",
            SyncKind::Event => "Event Sync",
            SyncKind::Stream => "Stream Sync",
            SyncKind::Context => "Context Sync",
            SyncKind::Other => "Synchronization",
        };
        let stream = events.stream[row];
        let place = events.device[row].map_or(Place::NoDevice(-1), |device| Place::Stream(device, stream.unwrap_or(-1)));
        self.lines.complete(("cuda_sync", name), place, (events.start[row], events.dur[row]), |args| {
            args.optional("device", events.device[row]);
            args.optional("context", events.context[row]);
            args.optional("stream", stream);
            args.optional("wait_on_stream", events.wait_on_stream[row]);
            args.optional("wait_on_cuda_event_record_corr_id", events.event_record(row));
        })
    }

    pub(super) fn overhead(&mut self, row: usize) -> io::Result<()> {
        let overheads = &self.trace.overheads;
        let name = self.text(overheads.name[row]);
        let place = Place::Thread(-1, &Tid::Number(0));
        self.lines.complete(("overhead", name), place, (overheads.start[row], overheads.dur[row]), |_| {})
    }
}

/// External ids name operators and are arbitrary. Some versions of PyTorch wrote the correlation number in their place, and a reader
/// takes them for that when all of them are equal to it, as those of a small part of a sound trace may be by accident. Then all are
/// moved by one.
fn id_offset(selection: &Selection<'_, '_>) -> u64 {
    let activities = &selection.index.trace().activities;
    let (mut both, mut equal) = (0_u64, 0_u64);
    for row in (0..activities.len()).filter(|&row| selection.activity(row)) {
        if let (Some(id), Some(correlation)) = (activities.external_id(row), activities.correlation(row)) {
            both += 1;
            equal += u64::from(id == correlation);
        }
    }
    u64::from(equal > 0 && equal >= both / 2)
}

/// `cuLaunchKernel` and its kind; the runtime's functions begin with `cuda` or `hip`.
fn is_driver_call(name: &str) -> bool {
    name.strip_prefix("cu").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()))
}

fn describe_launch(args: &mut Members<'_>, launch: LaunchConfig) {
    let LaunchConfig { grid, block, registers_per_thread, shared_bytes } = launch;
    args.optional("registers per thread", registers_per_thread);
    args.optional("shared memory", shared_bytes);
    for (key, size) in [("grid", grid), ("block", block)] {
        if let Some(size) = size {
            args.triple(key, size);
        }
    }
}

fn describe_transfer(args: &mut Members<'_>, name: &str, transfer: Transfer) {
    let Transfer { bytes, kind, pageable: _ } = transfer;
    args.optional("bytes", bytes);
    let (in_name, in_full) = match kind {
        MemcpyKind::HostToDevice => ("HtoD", "HostToDevice"),
        MemcpyKind::DeviceToHost => ("DtoH", "DeviceToHost"),
        MemcpyKind::DeviceToDevice => ("DtoD", "DeviceToDevice"),
        MemcpyKind::PeerToPeer => ("PtoP", "PeerToPeer"),
        MemcpyKind::HostToHost => ("HtoH", "HostToHost"),
        MemcpyKind::Unknown => return,
    };
    // CUDA's names say it; ROCm's do not, and an argument does.
    if !name.contains(in_name) && !name.contains(in_full) {
        args.string("kind", in_full);
    }
}

fn describe(args: &mut Members<'_>, trace: &Trace, collective: &Collective) {
    let Collective {
        place: _,
        start: _,
        name,
        group,
        group_ranks,
        dtype,
        group_size,
        in_elements,
        out_elements,
        sequence,
        source_rank,
        destination_rank,
    } = *collective;
    // One of name and group makes it a collective; an empty one does as well.
    let nameless = name.is_none() && group.is_none();
    args.string_or("Collective name", name.map(|id| trace.strings.get(id)), nameless.then_some(""));
    args.string_or("dtype", dtype.map(|id| trace.strings.get(id)), None);
    args.optional("In msg nelems", in_elements);
    args.optional("Out msg nelems", out_elements);
    args.optional("Group size", group_size);
    args.string_or("Process Group Name", group.map(|id| trace.strings.get(id)), None);
    args.string_or("Process Group Ranks", group_ranks.map(|id| trace.strings.get(id)), None);
    args.optional("Src Rank", source_rank);
    args.optional("Dst Rank", destination_rank);
    args.optional("Seq", sequence);
}
