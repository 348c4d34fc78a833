//! Recordings made for tests.

use std::io::Write as _;

use longpole_ingest::{ImportError, ImportOptions, Imported, Input, import, import_bytes};
use longpole_recording::{Api, Clock, Device, End, Header, Kernel, Nvtx, Process, StringId, Writer};
use longpole_trace::{ProblemCode, Trace};

/// When the recordings begin, in nanoseconds since 1970.
pub(crate) const T0: u64 = 1_790_000_000_000_000_000;

/// A recording being written.
pub(crate) struct Made {
    pub(crate) writer: Writer<Vec<u8>>,
    pid: u32,
    launches: u32,
}

impl Made {
    /// Of a process, with its clock.
    pub(crate) fn new(pid: u32) -> Self {
        let mut writer = Writer::new(Vec::new(), Header { pid, started_at_ns: T0 }).unwrap();
        writer.clock(&Clock { cupti: T0, realtime: T0 + 40, monotonic: 7, uncertainty: 90 });
        Self { writer, pid, launches: 0 }
    }

    /// Says who it is.
    pub(crate) fn process(mut self, rank: Option<u32>) -> Self {
        let executable = self.writer.string(b"engine");
        let process = Process {
            pid: self.pid,
            parent: 1,
            executable,
            cuda_driver: Some(13_000),
            rank,
            world_size: rank.map(|_| 2),
            ..Process::default()
        };
        self.writer.process(&process);
        self
    }

    /// A device with its UUID.
    pub(crate) fn device(mut self, device: u32, uuid: u64) -> Self {
        let name = self.writer.string(b"NVIDIA H200");
        self.writer.device(&Device {
            device,
            name,
            uuid_high: Some(uuid),
            uuid_low: Some(0),
            sm_count: Some(132),
            compute_major: Some(9),
            compute_minor: Some(0),
            ..Device::default()
        });
        self
    }

    /// A kernel with the call that launches it, `at` nanoseconds after the start.
    pub(crate) fn launch(mut self, tid: u32, at: u64, kernel: &str, device: u32) -> Self {
        self.launches += 1;
        let (name, call) = (self.writer.string(kernel.as_bytes()), self.writer.string(b"cudaLaunchKernel_v7000"));
        let start = T0 + at;
        let correlation = self.launches;
        self.writer.api(&Api { start, end: start + 400, domain: Api::RUNTIME, cbid: 211, name: call, tid, correlation, result: 0 });
        self.writer.kernel(&Kernel {
            start: start + 500,
            end: start + 900,
            device,
            context: 1,
            stream: 7,
            correlation,
            name,
            grid_x: 8,
            grid_y: 1,
            grid_z: 1,
            block_x: 128,
            block_y: 1,
            block_z: 1,
            registers: 40,
            static_shared: 16,
            dynamic_shared: 1024,
            ..Kernel::default()
        });
        self
    }

    /// An NVTX call.
    pub(crate) fn nvtx(mut self, kind: u8, tid: u32, at: u64, domain: &str, name: &str, range: Option<u64>) -> Self {
        let [domain, name] =
            [domain, name].map(|text| if text.is_empty() { StringId::default() } else { self.writer.string(text.as_bytes()) });
        self.writer.nvtx(&Nvtx { time: T0 + at, kind, tid, domain, name, range, ..Nvtx::default() });
        self
    }

    /// The bytes of a process that ended in order.
    pub(crate) fn end(mut self) -> Vec<u8> {
        self.writer.end(&End { time: T0 + 1_000_000, status: Some(0) });
        self.killed()
    }

    /// The bytes of one that was killed.
    pub(crate) fn killed(mut self) -> Vec<u8> {
        self.writer.flush();
        self.writer.into_inner()
    }
}

pub(crate) fn read(bytes: &[u8]) -> Imported {
    let imported = import_bytes(bytes, 1).unwrap();
    // Threads change nothing.
    let again = import_bytes(bytes, 3).unwrap();
    assert_eq!(format!("{:?}", imported.trace), format!("{:?}", again.trace));
    assert_eq!(imported.problems, again.problems);
    // Nor does it whether the recording comes through a pipe or lies on a disk.
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    let paged = import(&Input::Path(file.path().to_path_buf()), &ImportOptions { threads: 2, arguments: true, progress: None }).unwrap();
    assert_eq!(
        format!("{:?}", imported.trace).replace("bytes in memory", ""),
        format!("{:?}", paged.trace).replace(&file.path().display().to_string(), "")
    );
    assert_eq!(imported.problems, paged.problems);
    assert_eq!(imported.source.format, "longpole");
    imported
}

pub(crate) fn refuse(bytes: &[u8]) -> String {
    let error: ImportError = import_bytes(bytes, 1).unwrap_err();
    error.to_string()
}

/// How often a problem was counted, and its example.
pub(crate) fn problem(imported: &Imported, code: ProblemCode) -> Option<(u64, String)> {
    imported.problems.get(code).map(|problem| (problem.count, problem.example.clone().unwrap_or_default()))
}

/// Ranges as `name thread start dur`, from the start of the recording.
pub(crate) fn ranges(trace: &Trace) -> Vec<String> {
    let ranges = &trace.ranges;
    let mut found: Vec<String> = (0..ranges.len())
        .map(|row| {
            let tid = &trace.threads[ranges.thread[row].index()].tid;
            let start = ranges.start[row].get() - T0 as i64;
            format!("{start} +{} {} {tid:?}", ranges.dur[row].get(), trace.strings.get(ranges.name[row]))
        })
        .collect();
    found.sort();
    found
}
