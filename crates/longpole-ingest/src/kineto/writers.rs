//! What events of writers other than PyTorch become, and what the merging thread has to remember of them.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;
use longpole_trace::{
    Activity, ActivityKind, ApiCall, Detail, DetailId, GraphNode, GraphNodeId, HostOp, LaneId, LaunchConfig, Ns, ProblemCode, Problems,
    PythonFrame, StrId, ThreadId, TraceBuilder, Transfer,
};

use super::dialect::Dialect;
use super::event::{self, Event};
use super::jax::{self, Jax};
use super::local::RawLane;
use super::onnx::{self, Node};
use super::pairs::Mark;
use super::worker::{Rows, Worker, copy_direction, time};
use crate::json::unescape;

/// The external id of device work whose node ran in the segment before. No offset of an event is so large.
pub(super) const AWAITS_RUN: u64 = u64::MAX - 1;

/// A fixed seed: results must not differ from run to run.
const HASHER: FixedState = FixedState::with_seed(0x6368_726f_6d65);

/// Runs of nodes at the edges of a segment of ONNX Runtime's.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NodeRuns {
    /// The name, hashed, of the run that device work at the beginning is of.
    awaited: Option<u64>,
    /// The last run: its name, hashed, and its id.
    last: Option<(u64, u64)>,
}

impl Worker {
    /// Keeps the begin or the end of a range.
    pub(super) fn keep_mark(&mut self, event: &Event<'_>, offset: u64, rows: &mut Rows) {
        let Some(at) = time(event.ts, offset, rows) else {
            rows.problems.add(ProblemCode::MissingTime, Some(offset), || Some(unescape(event.name).0.into_owned()));
            return;
        };
        let is_async = !matches!(event.phase, b'B' | b'E');
        // Ids called `local` are told apart by process.
        let process = if memchr::memmem::find(event.extras.id, b"\"local\"").is_some() { event.pid } else { None };
        // A number and the same number as text are one id.
        let id = event.extras.id;
        let id = id.strip_prefix(b"\"").and_then(|id| id.strip_suffix(b"\"")).unwrap_or(id);
        let key = is_async.then(|| HASHER.hash_one((event.cat, event.extras.scope, id, process)));
        let opens = matches!(event.phase, b'B' | b'b' | b'S');
        rows.include(at, at, offset);
        // A begin without a name still needs its end; an end without one closes whatever is open.
        let name = (opens || !event.name.is_empty()).then(|| self.text(event.name));
        let thread = self.thread(event);
        rows.marks.push(Mark { opens, key, name, thread, at, before: rows.ranges.len() as u32 });
    }

    /// Keeps a complete event of a writer with arguments of its own.
    pub(super) fn keep_of_other_writer(&mut self, event: &Event<'_>, start: Ns, dur: Ns, offset: u64, rows: &mut Rows) {
        if self.dialect == Dialect::Jax {
            rows.limited += 1;
            self.keep_jax(event, start, dur, rows);
        } else {
            self.keep_onnx(event, start, dur, offset, rows);
        }
    }

    fn keep_jax(&mut self, event: &Event<'_>, start: Ns, dur: Ns, rows: &mut Rows) {
        let says = &event.extras.jax;
        if let Some(work) = says.work.filter(|_| !says.is_call) {
            let (kind, detail) = match work {
                jax::Work::Kernel(details) => (ActivityKind::Kernel, Some(Detail::Launch(jax::launch(details)))),
                jax::Work::Memcpy(details) => transferred(ActivityKind::Memcpy, event.name, details),
                jax::Work::Memset(details) => transferred(ActivityKind::Memset, event.name, details),
                jax::Work::Graph => {
                    rows.problems.add(ProblemCode::GraphLevelTrace, None, || Some(unescape(event.name).0.into_owned()));
                    (ActivityKind::Other, None)
                }
            };
            // Operations are told apart by module: `fusion.1` of two functions are two operations.
            let operation = says.hlo_op.map(|op| match says.hlo_module {
                Some(module) => self.text(&[module, b"/", op].concat()),
                None => self.text(op),
            });
            // The process stands for the device, and which one is known when names of processes are.
            let lane = RawLane {
                ordinal: event.pid.unwrap_or(1),
                context: event.args.context,
                stream: event::stream_number(event.tid).unwrap_or(0),
            };
            self.keep_work(event, kind, lane, detail, (start, dur), rows);
            rows.operations.push(operation);
            return;
        }
        let (name, thread) = (self.text(event.name.strip_prefix(b"$").unwrap_or(event.name)), self.thread(event));
        let correlation = event.args.correlation;
        if event.name.starts_with(b"$") {
            rows.frames.push(PythonFrame { name, thread, start, dur });
        } else if correlation.is_some() || jax::is_function(event.name) {
            rows.api_calls.push(ApiCall { name, thread, start, dur, correlation, external_id: None });
        } else if let Some(op) = says.hlo_op {
            // Work of a CPU.
            let name = match says.hlo_module {
                Some(module) => self.text(&[module, b"/", op].concat()),
                None => self.text(op),
            };
            rows.host_ops.push(operator(name, thread, start, dur));
        } else {
            self.keep_range(event.name, event, start, dur, rows);
        }
    }

    fn keep_onnx(&mut self, event: &Event<'_>, start: Ns, dur: Ns, offset: u64, rows: &mut Rows) {
        match event.cat {
            b"Node" => {
                rows.limited += 1;
                // Times say nothing apart within a microsecond; the offset of an event is its own.
                rows.runs.last = Some((HASHER.hash_one(event.name), offset));
                match Node::of(event.name) {
                    Node::Run(node) => self.keep_node(event, node, offset, (start, dur), rows),
                    Node::FenceBefore => self.keep_range(b"fence_before", event, start, dur, rows),
                    Node::FenceAfter => self.keep_range(b"fence_after", event, start, dur, rows),
                    Node::Other => self.keep_range(event.name, event, start, dur, rows),
                }
            }
            b"Kernel" => {
                let says = &event.extras.onnx;
                let triple = |[x, y, z]: [Option<u32>; 3]| Some([x?, y?, z?]);
                let (grid, block) = (triple(says.grid), triple(says.block));
                let (kind, detail) = if event.name.starts_with(b"Memcpy") && grid.is_none() {
                    let (kind, pageable) = copy_direction(event.name, None);
                    (ActivityKind::Memcpy, Some(Detail::Transfer(Transfer { bytes: None, kind, pageable })))
                } else if event.name.starts_with(b"Memset") && grid.is_none() {
                    (ActivityKind::Memset, None)
                } else {
                    let launch = LaunchConfig { grid, block, ..LaunchConfig::default() };
                    (ActivityKind::Kernel, (launch != LaunchConfig::default()).then_some(Detail::Launch(launch)))
                };
                // Which GPU it was is not said.
                let lane = RawLane { ordinal: 0, context: None, stream: event.args.stream.unwrap_or(0) };
                self.keep_work(event, kind, lane, detail, (start, dur), rows);
                let external_id = says.parent_name.and_then(|parent| rows.runs.id_of(HASHER.hash_one(parent)));
                if let Some(row) = rows.activities.last_mut() {
                    row.external_id = external_id;
                }
            }
            b"Api" => {
                let (name, thread) = (self.name(event), self.thread(event));
                rows.api_calls.push(ApiCall { name, thread, start, dur, correlation: None, external_id: None });
            }
            _ => {
                rows.limited += 1;
                self.keep_range(event.name, event, start, dur, rows);
            }
        }
    }

    /// Keeps a run of a node: an operator by its kind, inside a range by the node's name.
    fn keep_node(&mut self, event: &Event<'_>, node: &[u8], offset: u64, (start, dur): (Ns, Ns), rows: &mut Rows) {
        let says = &event.extras.onnx;
        if !node.is_empty() {
            self.keep_range(node, event, start, dur, rows);
        }
        let (name, thread) = (self.text(says.op_name.unwrap_or(node)), self.thread(event));
        let inputs = says.inputs.and_then(onnx::shapes_and_types);
        let (shapes, types) = match &inputs {
            Some((shapes, types)) => (Some(self.locals.values.intern(shapes)), Some(self.locals.values.intern(types))),
            None => (None, None),
        };
        let described = HostOp { shapes: shapes.map(StrId), types: types.map(StrId), ..operator(name, thread, start, dur) };
        rows.host_ops.push(HostOp { external_id: Some(offset), ..described });
    }

    fn keep_work(
        &mut self,
        event: &Event<'_>,
        kind: ActivityKind,
        lane: RawLane,
        detail: Option<Detail>,
        (start, dur): (Ns, Ns),
        rows: &mut Rows,
    ) {
        let (args, name) = (&event.args, self.name(event));
        let lane = LaneId(self.locals.lanes.intern(lane));
        let detail = detail.map(|detail| DetailId(self.locals.details.intern(detail)));
        let graph_node = (args.graph.is_some() || args.graph_node.is_some()).then(|| {
            let node = GraphNode { graph: args.graph.unwrap_or(0), node: args.graph_node.unwrap_or(0) };
            GraphNodeId(self.locals.graph_nodes.intern(node))
        });
        rows.activities.push(Activity {
            kind,
            name,
            lane,
            start,
            dur,
            correlation: args.correlation,
            external_id: None,
            detail,
            graph_node,
        });
    }
}

fn operator(name: StrId, thread: ThreadId, start: Ns, dur: Ns) -> HostOp {
    HostOp { name, thread, start, dur, external_id: None, shapes: None, types: None, strides: None, values: None }
}

fn transferred(kind: ActivityKind, name: &[u8], details: &[u8]) -> (ActivityKind, Option<Detail>) {
    (kind, Some(Detail::Transfer(jax::transfer(kind, name, details))))
}

impl NodeRuns {
    /// The external id of device work whose run has this name, hashed.
    fn id_of(&mut self, parent: u64) -> Option<u64> {
        match self.last {
            Some((name, id)) => (name == parent).then_some(id),
            None => (*self.awaited.get_or_insert(parent) == parent).then_some(AWAITS_RUN),
        }
    }
}

/// What the merging thread remembers of the current document.
#[derive(Debug)]
pub(super) struct Documents {
    dialect: Dialect,
    jax: Jax,
    /// The last run of a node: its name, hashed, and its id.
    last_run: Option<(u64, u64)>,
    limited: u64,
}

impl Documents {
    pub(super) fn new(dialect: Dialect) -> Self {
        Self { dialect, jax: Jax::default(), last_run: None, limited: 0 }
    }

    /// Whether external ids are made here, not read.
    pub(super) fn makes_external_ids(&self) -> bool {
        self.dialect.has_own_arguments()
    }

    /// Learns what a process is, by its name as written.
    pub(super) fn learn_process(&mut self, pid: i64, name: &[u8]) {
        if self.dialect == Dialect::Jax {
            self.jax.learn(pid, name);
        }
    }

    /// The number of a device, by what its events name it.
    pub(super) fn ordinal(&self, raw: i64) -> i64 {
        if self.dialect == Dialect::Jax { self.jax.ordinal(raw) } else { raw }
    }

    /// Whether threads may be lines of a device.
    pub(super) fn has_device_lines(&self) -> bool {
        self.dialect == Dialect::Jax
    }

    /// Whether a host event of this process is none: XLA derives lines from those of a device. Devices whose work is not read are counted.
    pub(super) fn is_device_line(&self, pid: i64, problems: &mut Problems) -> bool {
        if self.jax.is_unread(pid) {
            problems.add(ProblemCode::UnknownCategory, None, || Some("work of a device that is no GPU".to_owned()));
        }
        self.jax.is_device(pid)
    }

    pub(super) fn learn_call(&mut self, correlation: Option<u64>, thread: ThreadId, start: Ns, dur: Ns) {
        if let Some(correlation) = correlation.filter(|_| self.dialect == Dialect::Jax) {
            self.jax.add_call(correlation, thread, start, dur);
        }
    }

    /// The external id of device work of an operation.
    pub(super) fn operation(&mut self, correlation: Option<u64>, operation: StrId) -> Option<u64> {
        correlation.map(|correlation| self.jax.external_id(correlation, operation))
    }

    /// The run before this segment, if its first device work waits for it.
    pub(super) fn run_before(&self, runs: &NodeRuns) -> Option<u64> {
        self.last_run.filter(|(name, _)| runs.awaited == Some(*name)).map(|(_, id)| id)
    }

    pub(super) fn end_segment(&mut self, runs: &NodeRuns, limited: u64) {
        self.last_run = runs.last.or(self.last_run);
        self.limited += limited;
    }

    /// Adds what only the whole document tells.
    pub(super) fn end_document(&mut self, builder: &mut TraceBuilder, problems: &mut Problems) {
        for operator in self.jax.operators() {
            builder.push_host_op(operator);
        }
        let (at_limit, hint) = match self.dialect {
            Dialect::Jax => (
                self.limited > 0 && self.limited.is_multiple_of(jax::EVENT_LIMIT),
                "trace fewer steps, or set TF_PROFILER_TRACE_VIEWER_MAX_EVENTS to more than there are",
            ),
            Dialect::Onnx => (self.limited == onnx::EVENT_LIMIT, "profile fewer runs of the model"),
            Dialect::Kineto | Dialect::Chrome => (false, ""),
        };
        if at_limit {
            problems.add_many(ProblemCode::EventLimit, 1, None, || Some(format!("{} events", self.limited)));
            problems.note_hint(ProblemCode::EventLimit, hint);
        }
        if problems.get(ProblemCode::GraphLevelTrace).is_some() {
            problems.note_hint(
                ProblemCode::GraphLevelTrace,
                "record graphs node by node, or run without command buffers (XLA_FLAGS=--xla_gpu_enable_command_buffer=)",
            );
        }
        *self = Self::new(self.dialect);
    }
}
