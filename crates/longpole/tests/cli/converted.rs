//! A recorded PyTorch trace written as one of longpole's own recordings, as far as its recorder would have seen the same run: what is read of
//! it must come to the same as what is read of the trace.

use std::path::Path;

use longpole_ingest::{ImportOptions, Input, import};
use longpole_recording::{Api, Clock, Cost, Device, End, Header, Kernel, Memcpy, Memset, Nvtx, Overhead, Process, StringId, Sync, Writer};
use longpole_trace::{ActivityKind, Detail, MemcpyKind, SyncKind, Tid, Trace};

/// The process that the recording is of.
pub(crate) const PID: u32 = 4711;

/// The recording of a trace of the corpus.
pub(crate) fn recording(trace: &str) -> Vec<u8> {
    let input = Input::Path(crate::harness::root().join(Path::new(&crate::harness::trace(trace))));
    let trace = import(&input, &ImportOptions::default()).expect("a trace").trace;
    let mut converter = Converter::new(&trace);
    converter.surroundings();
    converter.device_work();
    converter.host();
    converter.finish()
}

struct Converter<'t> {
    trace: &'t Trace,
    writer: Writer<Vec<u8>>,
    base: i64,
    end: u64,
}

impl<'t> Converter<'t> {
    fn new(trace: &'t Trace) -> Self {
        // A trace without a base counts from a day of our choice.
        let base = trace.base_unix_ns.unwrap_or(1_790_000_000_000_000_000);
        let (first, last) = trace.window.bounds().expect("events");
        let (start, end) = ((base + first.get()).cast_unsigned(), (base + last.get()).cast_unsigned());
        let mut writer = Writer::new(Vec::new(), Header { pid: PID, started_at_ns: start }).expect("memory does not fail");
        writer.clock(&Clock { cupti: start, realtime: start, monotonic: 1_000_000, uncertainty: 60 });
        Self { trace, writer, base, end }
    }

    fn time(&self, ns: longpole_trace::Ns) -> u64 {
        (self.base + ns.get()).cast_unsigned()
    }

    fn text(&mut self, id: longpole_trace::StrId) -> StringId {
        self.writer.string(self.trace.strings.get(id).as_bytes())
    }

    fn tid(&self, thread: longpole_trace::ThreadId) -> u32 {
        match &self.trace.threads[thread.index()].tid {
            Tid::Number(number) => u32::try_from(*number).unwrap_or(1) & 0xff_ffff,
            Tid::Text(_) => 1,
        }
    }

    fn surroundings(&mut self) {
        let executable = self.writer.string(b"python3.12");
        let recorder = self.writer.string(b"0.1.0");
        let process = Process {
            pid: PID,
            parent: 4700,
            executable,
            recorder,
            cuda_driver: Some(13_000),
            api: Process::API_LAUNCH,
            ..Process::default()
        };
        self.writer.process(&process);
        for device in &self.trace.devices {
            let properties = &device.properties;
            let name = self.writer.string(properties.name.as_deref().unwrap_or("GPU").as_bytes());
            self.writer.device(&Device {
                device: u32::try_from(device.ordinal).unwrap_or(0),
                name,
                sm_count: properties.sm_count,
                memory_bytes: properties.memory_bytes,
                compute_major: properties.compute_capability.map(|(major, _)| major),
                compute_minor: properties.compute_capability.map(|(_, minor)| minor),
                max_threads_per_sm: properties.max_threads_per_sm,
                registers_per_sm: properties.registers_per_sm,
                shared_bytes_per_sm: properties.shared_bytes_per_sm,
                warp_size: properties.warp_size,
                ..Device::default()
            });
        }
    }

    fn device_work(&mut self) {
        let work = &self.trace.activities;
        for row in 0..work.len() {
            let lane = &self.trace.lanes[work.lane[row].index()];
            let device = u32::try_from(self.trace.devices[lane.device.index()].ordinal).unwrap_or(0);
            let (context, stream) = (u32::try_from(lane.context.unwrap_or(1)).unwrap_or(1), u32::try_from(lane.stream).unwrap_or(0));
            let (start, end) = (self.time(work.start[row]), self.time(work.end(row)));
            let correlation = work.correlation(row).and_then(|number| u32::try_from(number).ok()).unwrap_or(0);
            let node = work.graph_node(row).map(|id| self.trace.graph_nodes[id.index()]);
            let (graph_node, graph) = (node.map(|node| node.node), node.and_then(|node| u32::try_from(node.graph).ok()));
            let detail = work.detail(row).map(|id| self.trace.details[id.index()]);
            match (work.kind[row], detail) {
                (ActivityKind::Memcpy, Some(Detail::Transfer(moved))) => {
                    let host = if moved.pageable == Some(true) { 1 } else { 2 };
                    let (kind, source, destination) = match moved.kind {
                        MemcpyKind::HostToDevice => (1, host, 3),
                        MemcpyKind::DeviceToHost => (2, 3, host),
                        MemcpyKind::PeerToPeer => (10, 3, 3),
                        MemcpyKind::HostToHost => (9, host, host),
                        MemcpyKind::DeviceToDevice | MemcpyKind::Unknown => (8, 3, 3),
                    };
                    let bytes = moved.bytes.unwrap_or(0);
                    let copy = Memcpy {
                        start,
                        end,
                        bytes,
                        kind,
                        source,
                        destination,
                        device,
                        context,
                        stream,
                        correlation,
                        graph_node,
                        graph,
                        channel: None,
                    };
                    self.writer.memcpy(&copy);
                }
                (ActivityKind::Memset, detail) => {
                    let bytes = if let Some(Detail::Transfer(set)) = detail { set.bytes.unwrap_or(0) } else { 0 };
                    let set = Memset {
                        start,
                        end,
                        bytes,
                        memory: 3,
                        device,
                        context,
                        stream,
                        correlation,
                        graph_node,
                        graph,
                        ..Memset::default()
                    };
                    self.writer.memset(&set);
                }
                (_, detail) => {
                    let launch = if let Some(Detail::Launch(launch)) = detail { launch } else { longpole_trace::LaunchConfig::default() };
                    let ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]) =
                        (launch.grid.unwrap_or_default(), launch.block.unwrap_or_default());
                    let name = self.text(work.name[row]);
                    self.writer.kernel(&Kernel {
                        start,
                        end,
                        device,
                        context,
                        stream,
                        correlation,
                        name,
                        grid_x,
                        grid_y,
                        grid_z,
                        block_x,
                        block_y,
                        block_z,
                        registers: launch.registers_per_thread.unwrap_or(0),
                        dynamic_shared: launch.shared_bytes.unwrap_or(0),
                        graph_node,
                        graph,
                        ..Kernel::default()
                    });
                }
            }
        }
    }

    fn host(&mut self) {
        let calls = &self.trace.api_calls;
        for row in 0..calls.len() {
            let name = self.text(calls.name[row]);
            let domain = if self.trace.strings.get(calls.name[row]).starts_with("cuda") { Api::RUNTIME } else { Api::DRIVER };
            let correlation = calls.correlation(row).and_then(|number| u32::try_from(number).ok()).unwrap_or(0);
            let (start, end, tid) = (self.time(calls.start[row]), self.time(calls.end(row)), self.tid(calls.thread[row]));
            self.writer.api(&Api { start, end, domain, cbid: 0, name, tid, correlation, result: 0 });
        }
        let ranges = &self.trace.ranges;
        for row in 0..ranges.len() {
            let (name, tid, range) = (self.text(ranges.name[row]), self.tid(ranges.thread[row]), Some(row as u64));
            let (start, end) = (self.time(ranges.start[row]), self.time(ranges.end(row)));
            self.writer.nvtx(&Nvtx { time: start, kind: Nvtx::START, tid, name, range, ..Nvtx::default() });
            self.writer.nvtx(&Nvtx { time: end, kind: Nvtx::END, tid, range, ..Nvtx::default() });
        }
        let syncs = &self.trace.sync_events;
        for row in 0..syncs.len() {
            let kind = match syncs.kind[row] {
                SyncKind::Event => Sync::EVENT,
                SyncKind::StreamWaitsForEvent => Sync::STREAM_WAIT_EVENT,
                SyncKind::Stream => Sync::STREAM,
                SyncKind::Context => Sync::CONTEXT,
                SyncKind::Other => 0,
            };
            let (start, end) = (self.time(syncs.start[row]), self.time(syncs.end(row)));
            let number = |value: Option<i64>| value.and_then(|value| u32::try_from(value).ok());
            let context = number(syncs.context[row]).unwrap_or(1);
            self.writer.sync(&Sync { start, end, kind, context, stream: number(syncs.stream[row]), ..Sync::default() });
        }
        let overheads = &self.trace.overheads;
        for row in 0..overheads.len() {
            let kind = match self.trace.strings.get(overheads.name[row]) {
                "Instrumentation" => 0x2_0000,
                "Resource" => 0x3_0000,
                "Runtime Triggered Module Loading" => 0x4_0000,
                "Lazy Function Loading" => 0x5_0000,
                "Command Buffer Full" => 0x6_0000,
                "Activity Buffer Request" => 0x7_0000,
                _ => 0x1_0000,
            };
            let (start, end) = (self.time(overheads.start[row]), self.time(overheads.end(row)));
            self.writer.overhead(&Overhead { start, end, kind, tid: None, correlation: None });
        }
    }

    fn finish(mut self) -> Vec<u8> {
        let calls = self.trace.api_calls.len() as u64;
        self.writer.flush();
        self.writer.cost(&Cost {
            callbacks: calls,
            callback_ns: calls * 180,
            pages: self.writer.pages_written(),
            page_ns: 9_000_000,
            bytes: self.writer.bytes_written(),
            setup_ns: 21_000_000,
            exit_ns: 4_000_000,
            buffer_bytes: 8 << 20,
        });
        self.writer.clock(&Clock { cupti: self.end, realtime: self.end + 12_000, monotonic: 2_000_000, uncertainty: 60 });
        self.writer.end(&End { time: self.end, status: Some(0) });
        self.writer.flush();
        self.writer.into_inner()
    }
}
