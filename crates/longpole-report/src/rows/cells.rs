//! One function a table: the cells of a row, in the order of [`super::RowTable::columns`].

use std::fmt::Write as _;
use std::io::{self, Write};

use longpole_analysis::{Family, HostRow, TraceIndex};
use longpole_trace::{
    ActivityId, ActivityKind, Detail, DeviceProperties, LaunchConfig, MemcpyKind, MemoryPlace, Ns, StrId, ThreadId, Tid, Trace, Transfer,
};

use crate::names::csv_cell;
use crate::perfetto::copy_kind;
use crate::trust::Note;

pub(super) struct Cells<'w, 'a, 't> {
    index: &'a TraceIndex<'t>,
    trace: &'t Trace,
    writer: csv::Writer<&'w mut dyn Write>,
    families: Vec<Option<&'static str>>,
    digits: String,
    rows: u64,
}

fn as_io(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}

impl<'w, 'a, 't> Cells<'w, 'a, 't> {
    pub(super) fn new(index: &'a TraceIndex<'t>, out: &'w mut dyn Write) -> Self {
        let trace = index.trace();
        let writer = csv::WriterBuilder::new().buffer_capacity(1 << 16).from_writer(out);
        Self { index, trace, writer, families: vec![None; trace.strings.len()], digits: String::new(), rows: 0 }
    }

    pub(super) fn header(&mut self, columns: &[&str]) -> io::Result<()> {
        self.writer.write_record(columns).map_err(as_io)
    }

    pub(super) fn finish(mut self) -> io::Result<u64> {
        self.writer.flush()?;
        Ok(self.rows)
    }

    fn number(&mut self, value: impl Into<i128>) -> io::Result<()> {
        self.maybe(Some(value))
    }

    fn maybe(&mut self, value: Option<impl Into<i128>>) -> io::Result<()> {
        self.digits.clear();
        if let Some(value) = value {
            // Writing to a String cannot fail.
            let _ = write!(self.digits, "{}", value.into());
        }
        self.writer.write_field(&self.digits).map_err(as_io)
    }

    fn row(&mut self, row: usize) -> io::Result<()> {
        self.number(row as i64)
    }

    fn text(&mut self, text: &str) -> io::Result<()> {
        self.writer.write_field(csv_cell(text).as_ref()).map_err(as_io)
    }

    fn string(&mut self, id: Option<StrId>) -> io::Result<()> {
        self.text(id.map_or("", |id| self.trace.strings.get(id)))
    }

    fn end(&mut self) -> io::Result<()> {
        self.rows += 1;
        self.writer.write_record(None::<&[u8]>).map_err(as_io)
    }

    pub(super) fn activity(&mut self, row: usize) -> io::Result<()> {
        let (activities, id) = (&self.trace.activities, ActivityId::from_index(row));
        let lane = &self.trace.lanes[activities.lane[row].index()];
        let device = &self.trace.devices[lane.device.index()];
        let (kind, name) = (activities.kind[row], activities.name[row]);
        self.row(row)?;
        self.text(match kind {
            ActivityKind::Kernel => "kernel",
            ActivityKind::Memcpy => "memcpy",
            ActivityKind::Memset => "memset",
            ActivityKind::Other => "other",
        })?;
        self.string(Some(name))?;
        let family = match kind {
            ActivityKind::Kernel => {
                *self.families[name.index()].get_or_insert_with(|| Family::of(kind, self.trace.strings.get(name)).name())
            }
            _ => Family::of(kind, self.trace.strings.get(name)).name(),
        };
        self.text(family)?;
        self.number(self.trace.ranks.get(device.rank as usize).map_or(0, |rank| rank.rank))?;
        self.number(device.ordinal)?;
        self.maybe(lane.context)?;
        self.number(lane.stream)?;
        self.number(activities.start[row].get())?;
        self.number(activities.dur[row].get())?;
        self.maybe(activities.correlation(row))?;
        self.maybe(activities.external_id(row))?;
        let (tree, links) = (self.index.tree(), self.index.links());
        self.maybe(links.call(id).map(|call| call.0))?;
        self.maybe(links.owner_node(id).and_then(|node| match tree.row(node) {
            HostRow::Op(op) => Some(op.0),
            HostRow::Range(_) | HostRow::Api(_) => None,
        }))?;
        let detail = activities.detail(row).map(|id| self.trace.details[id.index()]);
        let launch = if let Some(Detail::Launch(launch)) = detail { launch } else { LaunchConfig::default() };
        for size in [launch.grid, launch.block] {
            for axis in 0..3 {
                self.maybe(size.map(|size| size[axis]))?;
            }
        }
        self.maybe(launch.registers_per_thread)?;
        self.maybe(launch.shared_bytes)?;
        let transfer = if let Some(Detail::Transfer(transfer)) = detail { Some(transfer) } else { None };
        self.maybe(transfer.and_then(|Transfer { bytes, .. }| bytes))?;
        self.text(transfer.filter(|transfer| transfer.kind != MemcpyKind::Unknown).map_or("", |transfer| copy_kind(transfer.kind)))?;
        self.text(transfer.and_then(|transfer| transfer.pageable).map_or("", |pageable| if pageable { "true" } else { "false" }))?;
        let node = activities.graph_node(row).map(|id| self.trace.graph_nodes[id.index()]);
        self.maybe(node.map(|node| node.graph))?;
        self.maybe(node.map(|node| node.node))?;
        self.end()
    }

    fn place(&mut self, row: usize, name: StrId, thread: ThreadId, (start, dur): (Ns, Ns)) -> io::Result<()> {
        self.row(row)?;
        self.string(Some(name))?;
        self.number(thread.0)?;
        self.number(start.get())?;
        self.number(dur.get())
    }

    pub(super) fn interval(&mut self, row: usize, name: StrId, thread: ThreadId, times: (Ns, Ns)) -> io::Result<()> {
        self.place(row, name, thread, times)?;
        self.end()
    }

    pub(super) fn call(&mut self, row: usize) -> io::Result<()> {
        let calls = &self.trace.api_calls;
        self.place(row, calls.name[row], calls.thread[row], (calls.start[row], calls.dur[row]))?;
        self.maybe(calls.correlation(row))?;
        self.maybe(calls.external_id(row))?;
        self.end()
    }

    pub(super) fn op(&mut self, row: usize) -> io::Result<()> {
        let ops = &self.trace.host_ops;
        self.place(row, ops.name[row], ops.thread[row], (ops.start[row], ops.dur[row]))?;
        self.maybe(ops.external_id(row))?;
        for input in [ops.shapes(row), ops.types(row), ops.strides(row), ops.values(row)] {
            self.string(input)?;
        }
        self.end()
    }

    pub(super) fn memory(&mut self, row: usize) -> io::Result<()> {
        let memory = &self.trace.memory;
        self.row(row)?;
        self.number(memory.thread[row].0)?;
        self.number(memory.start[row].get())?;
        self.text(match memory.place[row] {
            MemoryPlace::Host => "host",
            MemoryPlace::Device => "device",
        })?;
        self.maybe(memory.device(row))?;
        self.number(memory.bytes[row])?;
        self.maybe(memory.total_allocated(row))?;
        self.maybe(memory.total_reserved(row))?;
        self.end()
    }

    pub(super) fn thread(&mut self, at: usize) -> io::Result<()> {
        let thread = &self.trace.threads[at];
        let process = &self.trace.processes[thread.process.index()];
        self.row(at)?;
        self.number(self.trace.ranks.get(process.rank as usize).map_or(0, |rank| rank.rank))?;
        self.number(process.pid)?;
        self.string(process.name)?;
        match &thread.tid {
            Tid::Number(number) => self.number(*number)?,
            Tid::Text(text) => self.text(text)?,
        }
        self.string(thread.name)?;
        self.end()
    }

    pub(super) fn device(&mut self, at: usize) -> io::Result<()> {
        let device = &self.trace.devices[at];
        let DeviceProperties {
            name,
            memory_bytes,
            sm_count,
            compute_capability,
            max_threads_per_sm,
            registers_per_sm,
            shared_bytes_per_sm,
            warp_size,
            // It follows from the name.
            peak_memory_bytes_per_s: _,
        } = &device.properties;
        self.row(at)?;
        self.number(self.trace.ranks.get(device.rank as usize).map_or(0, |rank| rank.rank))?;
        self.number(device.ordinal)?;
        self.text(name.as_deref().unwrap_or_default())?;
        self.maybe(*memory_bytes)?;
        self.maybe(*sm_count)?;
        self.text(&compute_capability.map_or_else(String::new, |(major, minor)| format!("{major}.{minor}")))?;
        self.maybe(*max_threads_per_sm)?;
        self.maybe(*registers_per_sm)?;
        self.maybe(*shared_bytes_per_sm)?;
        self.maybe(*warp_size)?;
        self.end()
    }

    pub(super) fn note(&mut self, note: &Note) -> io::Result<()> {
        self.text(note.code)?;
        self.text(note.severity.name())?;
        self.number(note.count)?;
        self.text(&note.message)?;
        self.text(note.hint)?;
        self.end()
    }
}
