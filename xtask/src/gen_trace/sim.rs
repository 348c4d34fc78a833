//! The simulated process: one host thread, one stream, an allocator and the profiler that records them.
//!
//! A trace file has its events in sections (host operators, memory records, Python frames, CUPTI records, annotations on the GPU).
//! Holding four sections while the first is written would cost as much memory as the file, so the simulation runs once a section and
//! only that section's events are rendered. The runs are identical because everything random comes from one seed.

mod device;

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
