//! The simulated process: one host thread, one stream, an allocator and the profiler that records them.
//!
//! A trace file has its events in sections (host operators, memory records, Python frames, CUPTI records, annotations on the GPU).
//! Holding four sections while the first is written would cost as much memory as the file, so the simulation runs once a section and
//! only that section's events are rendered. The runs are identical because everything random comes from one seed.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::event::{EventWriter, Gap, push_int};
use super::kernels::{KERNELS, Kernel};
use super::rng::Rng;

pub(crate) const PID: i64 = 25_286;
pub(crate) const TID: i64 = 25_286;
pub(crate) const STREAM: i64 = 7;
/// Where the trace's clock stands when the window opens, relative to `baseTimeNanoseconds`.
pub(crate) const WINDOW_START_NS: i64 = 1_428_625_731_456_483;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Section {
    Host,
    Memory,
    Python,
    Cupti,
    GpuAnnotations,
}

pub(crate) const SECTIONS: [Section; 5] = [Section::Host, Section::Memory, Section::Python, Section::Cupti, Section::GpuAnnotations];

/// What the profiler was told to record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recording {
    pub(crate) shapes: bool,
    pub(crate) memory: bool,
    pub(crate) stack: bool,
}

/// One concrete input of an operator.
#[derive(Clone, Copy)]
pub(crate) enum Concrete<'a> {
    Text(&'a str),
    List(&'a [i64]),
}

/// An operator's recorded inputs. A missing concrete input is the empty string, as in Kineto.
#[derive(Clone, Copy, Default)]
pub(crate) struct Inputs<'a> {
    pub(crate) dims: &'a [&'a [i64]],
    pub(crate) types: &'a [&'a str],
    pub(crate) concrete: &'a [Concrete<'a>],
}

/// Exact totals of what was written, for whoever checks a reader against the file.
#[derive(Clone, Default)]
pub(crate) struct Truth {
    pub(crate) counts: BTreeMap<&'static str, u64>,
    pub(crate) kernel_ns: i64,
    pub(crate) gpu_mem_ns: i64,
    pub(crate) gpu_busy_ns: i64,
    pub(crate) kernel_without_launch: u64,
    pub(crate) launch_without_kernel: u64,
    /// Calls and nanoseconds of each kernel.
    pub(crate) kernels: [(u64, i64); KERNELS.len()],
}

type Span = (u32, u32);

/// A host event that contains others: it stands before them in the file, but its duration is known only after them.
struct Deferred {
    category: &'static str,
    name: Span,
    start: i64,
    duration: i64,
    /// External id, or the Python frame's own id.
    id: i64,
    parent: Option<i64>,
    module: Option<i64>,
    event_index: i64,
    inputs: Option<[Span; 4]>,
}

/// A graph launch whose nodes are being emitted.
#[derive(Clone, Copy)]
struct Replay {
    correlation: i64,
    launched_at: i64,
    node: i64,
}

pub(crate) struct Sim<'s, 'w> {
    pub(crate) recording: Recording,
    section: Section,
    writer: &'s mut EventWriter<'w>,
    rng: Rng,
    pub(crate) now: i64,
    pub(crate) gpu_free_at: i64,
    correlation: i64,
    external_id: i64,
    current_op: i64,
    event_index: i64,
    python_id: i64,
    python_stack: Vec<i64>,
    allocated: i64,
    address: i64,
    replay: Option<Replay>,
    gpu_first: Option<i64>,
    gpu_last: i64,
    deferred: Vec<Deferred>,
    /// Names and inputs of the deferred events.
    arena: Vec<u8>,
    scratch: String,
    kernel_names: Vec<String>,
    pub(crate) truth: Truth,
}

impl<'s, 'w> Sim<'s, 'w> {
    pub(crate) fn new(recording: Recording, section: Section, seed: u64, writer: &'s mut EventWriter<'w>) -> Self {
        Self {
            recording,
            section,
            writer,
            rng: Rng::new(seed),
            now: WINDOW_START_NS + 700_000,
            gpu_free_at: WINDOW_START_NS + 720_000,
            correlation: 682_747,
            external_id: 18_433,
            current_op: 0,
            event_index: 0,
            python_id: 0,
            python_stack: Vec::new(),
            allocated: 1_003_059_712,
            address: 137_877_174_353_920,
            replay: None,
            gpu_first: None,
            gpu_last: 0,
            deferred: Vec::new(),
            arena: Vec::new(),
            scratch: String::new(),
            kernel_names: KERNELS.iter().map(|kernel| kernel.name()).collect(),
            truth: Truth::default(),
        }
    }

    fn count(&mut self, what: &'static str) {
        *self.truth.counts.entry(what).or_default() += 1;
    }

    fn spend(&mut self, low: i64, high: i64) {
        self.now += self.rng.skewed(low, high);
    }

    fn next_event_index(&mut self) -> i64 {
        self.event_index += 1;
        self.event_index
    }

    fn keep(&mut self, text: &[u8]) -> Span {
        let start = self.arena.len() as u32;
        self.arena.extend_from_slice(text);
        (start, self.arena.len() as u32)
    }

    /// An operator around `body`. Inside a graph replay no host code runs, so only the body's kernels are left.
    pub(crate) fn op<'i>(&mut self, name: &str, inputs: impl Into<Option<Inputs<'i>>>, body: impl FnOnce(&mut Self)) {
        if self.replay.is_some() {
            return body(self);
        }
        let start = self.now;
        self.external_id += 1;
        let id = self.external_id;
        let event_index = self.next_event_index();
        let slot = self.deferred.len();
        if self.section == Section::Host {
            let inputs = if self.recording.shapes { inputs.into().map(|inputs| self.render_inputs(&inputs)) } else { None };
            let name = self.keep(name.as_bytes());
            self.deferred.push(Deferred {
                category: "cpu_op",
                name,
                start,
                duration: 0,
                id,
                parent: None,
                module: None,
                event_index,
                inputs,
            });
        }
        self.spend(600, 4000);
        let outer = std::mem::replace(&mut self.current_op, id);
        body(self);
        self.current_op = outer;
        self.spend(300, 2500);
        if self.section == Section::Host {
            self.deferred[slot].duration = self.now - start;
        }
        self.count("cpu_op");
        self.spend(100, 900);
    }

    /// A Python frame around `body`, when stacks are recorded.
    pub(crate) fn frame(&mut self, name: std::fmt::Arguments<'_>, module: Option<i64>, body: impl FnOnce(&mut Self)) {
        if !self.recording.stack || self.replay.is_some() {
            return body(self);
        }
        let start = self.now;
        self.python_id += 1;
        let id = self.python_id;
        let parent = self.python_stack.last().copied();
        self.python_stack.push(id);
        let event_index = self.next_event_index();
        let slot = self.deferred.len();
        if self.section == Section::Python {
            self.scratch.clear();
            // Writing to a string does not fail.
            let _ = self.scratch.write_fmt(name);
            let text = std::mem::take(&mut self.scratch);
            let name = self.keep(text.as_bytes());
            self.scratch = text;
            self.deferred.push(Deferred {
                category: "python_function",
                name,
                start,
                duration: 0,
                id,
                parent,
                module,
                event_index,
                inputs: None,
            });
        }
        self.spend(200, 1500);
        body(self);
        self.spend(100, 700);
        self.python_stack.pop();
        if self.section == Section::Python {
            self.deferred[slot].duration = self.now - start;
        }
        self.count("python_function");
    }

    fn render_inputs(&mut self, inputs: &Inputs<'_>) -> [Span; 4] {
        let out = &mut self.arena;
        let mut marks = [0u32; 5];
        marks[0] = out.len() as u32;
        list(out, inputs.types.len(), |out, i| {
            out.push(b'"');
            match inputs.concrete.get(i) {
                Some(Concrete::Text(text)) => out.extend_from_slice(text.as_bytes()),
                Some(Concrete::List(items)) => ints(out, items),
                None => {}
            }
            out.push(b'"');
        });
        marks[1] = out.len() as u32;
        list(out, inputs.types.len(), |out, i| {
            out.push(b'"');
            out.extend_from_slice(inputs.types[i].as_bytes());
            out.push(b'"');
        });
        marks[2] = out.len() as u32;
        list(out, inputs.dims.len(), |out, i| {
            let dims = inputs.dims[i];
            list(out, dims.len(), |out, d| push_int(out, dims[d + 1..].iter().product()));
        });
        marks[3] = out.len() as u32;
        list(out, inputs.dims.len(), |out, i| ints(out, inputs.dims[i]));
        marks[4] = out.len() as u32;
        [(marks[0], marks[1]), (marks[1], marks[2]), (marks[2], marks[3]), (marks[3], marks[4])]
    }

    /// An allocation, or with negative bytes a release.
    pub(crate) fn memory(&mut self, bytes: i64) {
        if self.replay.is_some() || !self.recording.memory {
            return;
        }
        self.allocated += bytes;
        self.address += 512;
        let event_index = self.next_event_index();
        self.count("memory");
        if self.section == Section::Memory {
            let w = &mut *self.writer;
            w.text("ph", Gap::Space, b"i");
            w.text("cat", Gap::Space, b"cpu_instant_event");
            w.text("s", Gap::Space, b"t");
            w.text("name", Gap::Space, b"[memory]");
            w.int("pid", Gap::Line, PID);
            w.int("tid", Gap::Space, TID);
            w.micros("ts", Gap::Line, self.now);
            w.args();
            w.int("Total Reserved", Gap::Space, 2_629_828_608);
            w.int("Total Allocated", Gap::Space, self.allocated);
            w.int("Bytes", Gap::Space, bytes);
            w.int("Addr", Gap::Space, self.address);
            w.int("Device Id", Gap::Space, 0);
            w.int("Device Type", Gap::Space, 1);
            w.int("Ev Idx", Gap::Space, event_index);
            w.end();
        }
    }

    fn complete(&mut self, category: &str, name: &[u8], (pid, tid): (i64, i64), start: i64, duration: i64) {
        let w = &mut *self.writer;
        w.text("ph", Gap::Space, b"X");
        w.text("cat", Gap::Space, category.as_bytes());
        w.text("name", Gap::Space, name);
        w.int("pid", Gap::Space, pid);
        w.int("tid", Gap::Space, tid);
        w.micros("ts", Gap::Line, start);
        w.micros("dur", Gap::Space, duration);
        w.args();
    }

    fn flow(&mut self, starts: bool, id: i64, (pid, tid): (i64, i64), at: i64) {
        self.count(if starts { "flow_start" } else { "flow_finish" });
        if self.section != Section::Cupti {
            return;
        }
        let w = &mut *self.writer;
        w.text("ph", Gap::Space, if starts { b"s" } else { b"f" });
        w.int("id", Gap::Space, id);
        w.int("pid", Gap::Space, pid);
        w.int("tid", Gap::Space, tid);
        w.micros("ts", Gap::Space, at);
        w.text("cat", Gap::Line, b"ac2g");
        w.text("name", Gap::Space, b"ac2g");
        if !starts {
            w.text("bp", Gap::Space, b"e");
        }
        w.end();
    }

    /// A runtime or driver call of a known duration. Calls that launch nothing carry an unmatched flow end, as Kineto writes them.
    fn api(&mut self, category: &'static str, name: &str, cbid: i64, duration: i64, launches: bool, in_op: bool) -> (i64, i64) {
        let start = self.now;
        let correlation = self.correlation;
        self.now += duration;
        self.count(category);
        if self.section == Section::Cupti {
            let owner = self.current_op;
            self.complete(category, name.as_bytes(), (PID, TID), start, duration);
            if in_op {
                self.writer.int("External id", Gap::Space, owner);
            }
            self.writer.int("cbid", Gap::Wide, cbid);
            self.writer.int("correlation", Gap::Space, correlation);
            self.writer.end();
        }
        self.flow(launches, correlation, (PID, TID), start);
        (correlation, start)
    }

    /// A runtime call that launches nothing.
    pub(crate) fn runtime(&mut self, name: &str, cbid: i64, low: i64, high: i64) {
        if self.replay.is_some() {
            return;
        }
        self.correlation += 1;
        let duration = self.rng.skewed(low, high);
        self.api("cuda_runtime", name, cbid, duration, false, true);
    }

    /// Waits until the device has done all its work.
    pub(crate) fn synchronize(&mut self, name: &str, cbid: i64, in_op: bool) {
        self.correlation += 2;
        let slack = self.rng.skewed(1000, 3000);
        let wait = (self.gpu_free_at - self.now + slack).max(1500);
        self.api("cuda_runtime", name, cbid, wait, false, in_op);
    }

    /// Puts `duration` of work on the stream once it is free and `ready` has come.
    fn occupy(&mut self, ready: i64, duration: i64) -> i64 {
        let start = if self.gpu_free_at >= ready { self.gpu_free_at + self.rng.skewed(0, 900) } else { ready };
        self.gpu_free_at = start + duration;
        self.gpu_first.get_or_insert(start);
        self.gpu_last = start + duration;
        // One stream, in order: the union of the device's work is its sum.
        self.truth.gpu_busy_ns += duration;
        start
    }

    /// Launches a kernel, or inside a graph replay emits it as one of the graph's nodes.
    pub(crate) fn kernel(&mut self, kernel: Kernel, duration: i64, grid: (i64, i64), block: i64) {
        let (correlation, launched_at) = self.launch(kernel);
        let duration = (duration * (9200 + self.rng.below(2000) as i64) / 10_000).max(700);
        let latency = self.rng.skewed(2200, 4200);
        let start = self.occupy(launched_at + latency, duration);
        self.kernel_record(kernel, correlation, start, duration, grid, block);
    }

    /// The launch of a kernel that runs after the window has closed.
    pub(crate) fn launch_without_kernel(&mut self, kernel: Kernel) {
        self.launch(kernel);
        self.truth.launch_without_kernel += 1;
    }

    /// A kernel whose launch came before the window opened.
    pub(crate) fn kernel_without_launch(&mut self, kernel: Kernel, start: i64, duration: i64) {
        self.correlation += 4;
        self.truth.gpu_busy_ns += duration;
        self.truth.kernel_without_launch += 1;
        self.kernel_record(kernel, self.correlation, start, duration, (17_888, 1), 128);
    }

    fn launch(&mut self, kernel: Kernel) -> (i64, i64) {
        if let Some(replay) = &mut self.replay {
            replay.node += 1;
            return (replay.correlation, replay.launched_at);
        }
        self.correlation += 4;
        let cost = self.rng.skewed(2600, 9000);
        if kernel.launched_by_driver() {
            self.api("cuda_driver", "cuLaunchKernelEx", 652, cost, true, true)
        } else {
            self.api("cuda_runtime", "cudaLaunchKernel", 211, cost, true, true)
        }
    }

    fn kernel_record(&mut self, kernel: Kernel, correlation: i64, start: i64, duration: i64, grid: (i64, i64), block: i64) {
        self.count("kernel");
        self.truth.kernel_ns += duration;
        let total = &mut self.truth.kernels[kernel as usize];
        total.0 += 1;
        total.1 += duration;
        if self.section == Section::Cupti {
            let name = std::mem::take(&mut self.kernel_names[kernel as usize]);
            self.complete("kernel", name.as_bytes(), (0, STREAM), start, duration);
            self.kernel_names[kernel as usize] = name;
            let owner = self.current_op;
            let node = self.replay.map(|replay| replay.node);
            let w = &mut *self.writer;
            if owner != 0 && node.is_none() {
                w.int("External id", Gap::Space, owner);
            }
            w.int("queued", Gap::Wide, 0);
            w.int("device", Gap::Space, 0);
            w.int("context", Gap::Space, 1);
            w.int("stream", Gap::Wide, STREAM);
            w.int("correlation", Gap::Space, correlation);
            if let Some(node) = node {
                w.int("graph id", Gap::Wide, 3);
                w.int("graph node id", Gap::Space, 12_884_901_888 + node);
            }
            let blocks = grid.0 * grid.1;
            let blocks_per_sm = blocks * 1_000_000 / 132;
            w.int("registers per thread", Gap::Wide, kernel.registers());
            w.int("shared memory", Gap::Wide, if block == 128 { 0 } else { 49_152 });
            w.millionths("blocks per SM", Gap::Wide, blocks_per_sm);
            w.millionths("warps per SM", Gap::Wide, blocks_per_sm * block / 32);
            self.scratch.clear();
            // Writing to a string does not fail.
            let _ = write!(self.scratch, "[{}, {}, 1][{block}, 1, 1]", grid.0, grid.1);
            let split = self.scratch.find(']').map_or(0, |at| at + 1);
            w.json("grid", Gap::Wide, &self.scratch.as_bytes()[..split]);
            w.json("block", Gap::Wide, &self.scratch.as_bytes()[split..]);
            w.int("est. achieved occupancy %", Gap::Wide, (blocks * 10 / 132).min(100));
            w.end();
        }
        self.flow(false, correlation, (0, STREAM), start);
    }

    /// A copy or a fill, with its launching call.
    pub(crate) fn memory_operation(&mut self, category: &'static str, name: &str, bytes: i64) {
        self.correlation += 3;
        let fill = category == "gpu_memset";
        let (call, cbid, cost) = if fill {
            ("cudaMemsetAsync", 51, self.rng.skewed(2500, 7000))
        } else {
            ("cudaMemcpyAsync", 41, self.rng.skewed(3500, 12_000))
        };
        let (correlation, launched_at) = self.api("cuda_runtime", call, cbid, cost, true, true);
        let duration = 900 + bytes / 1500;
        let start = self.occupy(launched_at + 2500, duration);
        self.count(category);
        self.truth.gpu_mem_ns += duration;
        if self.section == Section::Cupti {
            let owner = self.current_op;
            self.complete(category, name.as_bytes(), (0, STREAM), start, duration);
            let w = &mut *self.writer;
            w.int("External id", Gap::Space, owner);
            w.int("device", Gap::Wide, 0);
            w.int("context", Gap::Space, 1);
            w.int("stream", Gap::Wide, STREAM);
            w.int("correlation", Gap::Space, correlation);
            w.int("bytes", Gap::Wide, bytes);
            w.millionths("memory bandwidth (GB/s)", Gap::Space, bytes * 1_000_000 / duration);
            w.end();
        }
        self.flow(false, correlation, (0, STREAM), start);
    }

    /// One graph launch; the kernels of `body` are its nodes.
    pub(crate) fn graph_launch(&mut self, body: impl FnOnce(&mut Self)) {
        self.correlation += 4;
        let cost = self.rng.skewed(8000, 30_000);
        let (correlation, launched_at) = self.api("cuda_runtime", "cudaGraphLaunch", 311, cost, true, true);
        self.replay = Some(Replay { correlation, launched_at, node: 0 });
        body(self);
        self.replay = None;
    }

    /// One annotated step, with its mirror on the GPU's timeline.
    pub(crate) fn step(&mut self, name: &'static str, body: impl FnOnce(&mut Self)) {
        let start = self.now;
        self.external_id += 1;
        let id = self.external_id;
        let event_index = self.next_event_index();
        let slot = self.deferred.len();
        if self.section == Section::Host {
            let name = self.keep(name.as_bytes());
            self.deferred.push(Deferred {
                category: "user_annotation",
                name,
                start,
                duration: 0,
                id,
                parent: None,
                module: None,
                event_index,
                inputs: None,
            });
        }
        self.gpu_first = None;
        self.current_op = id;
        body(self);
        self.synchronize("cudaDeviceSynchronize", 165, false);
        self.current_op = 0;
        if self.section == Section::Host {
            self.deferred[slot].duration = self.now - start;
        }
        self.count("user_annotation");
        if let Some(first) = self.gpu_first {
            self.count("gpu_user_annotation");
            if self.section == Section::GpuAnnotations {
                // Kineto widens the mirror by a nanosecond on either side, so that it contains its kernels.
                self.complete("gpu_user_annotation", name.as_bytes(), (0, STREAM), first - 1, self.gpu_last - first + 2);
                self.writer.int("External id", Gap::Space, id);
                self.writer.end();
            }
        }
        self.flush_deferred();
        self.spend(20_000, 90_000);
    }

    /// Writes the host events collected since the last call, whose durations are all known by now.
    pub(crate) fn flush_deferred(&mut self) {
        let deferred = std::mem::take(&mut self.deferred);
        let arena = std::mem::take(&mut self.arena);
        let at = |span: Span| &arena[span.0 as usize..span.1 as usize];
        for event in &deferred {
            self.complete(event.category, at(event.name), (PID, TID), event.start, event.duration);
            let w = &mut *self.writer;
            if event.category == "python_function" {
                match event.parent {
                    Some(parent) => w.int("Python parent id", Gap::Space, parent),
                    None => w.json("Python parent id", Gap::Space, b"null"),
                }
                w.int("Python id", Gap::Space, event.id);
                if let Some(module) = event.module {
                    w.int("Python module id", Gap::Space, module);
                }
            } else {
                w.int("External id", Gap::Space, event.id);
                w.int("Record function id", Gap::Tight, 0);
                if let Some(inputs) = event.inputs {
                    for (key, span) in ["Concrete Inputs", "Input type", "Input Strides", "Input Dims"].into_iter().zip(inputs) {
                        w.json(key, Gap::Space, at(span));
                    }
                }
            }
            w.int("Ev Idx", Gap::Space, event.event_index);
            w.end();
        }
        self.deferred = deferred;
        self.deferred.clear();
        self.arena = arena;
        self.arena.clear();
    }
}

/// `[a, b, c]` with each element written by `item`.
fn list(out: &mut Vec<u8>, len: usize, mut item: impl FnMut(&mut Vec<u8>, usize)) {
    out.push(b'[');
    for i in 0..len {
        if i > 0 {
            out.extend_from_slice(b", ");
        }
        item(out, i);
    }
    out.push(b']');
}

fn ints(out: &mut Vec<u8>, items: &[i64]) {
    list(out, items.len(), |out, i| push_int(out, items[i]));
}
