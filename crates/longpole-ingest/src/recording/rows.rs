//! Records of a recording into rows of a trace.

use std::borrow::Cow;
use std::collections::BTreeMap;

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use longpole_recording::{Api, EventRecord, Kernel, Memcpy, Memset, Overhead, PeerCopy, Record, Recording, StringId, Strings, Sync};
use longpole_trace::LaunchConfig;

use super::demangle::demangled;
use crate::nsys::feed::{Batch, ProcessKey, Wait, Work};

/// Which process, and which of its recordings: a process that runs another program in its place goes on under its number, and counts its
/// calls from one again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin {
    pub(super) process: ProcessKey,
    pub(super) generation: u16,
    /// Its number among the recordings of the file.
    pub(super) number: u32,
    /// What its times lack to be absolute.
    pub(super) shift: i64,
}

impl Origin {
    /// A time, in nanoseconds since 1970. Zero stays zero: it stands for no time.
    pub(super) fn time(&self, time: u64) -> i64 {
        if time == 0 { 0 } else { i64::try_from(time).unwrap_or(i64::MAX).saturating_add(self.shift) }
    }

    /// A correlation number, told apart from those of the process's other recordings.
    pub(super) fn correlation(&self, correlation: u32) -> Option<u64> {
        (correlation != 0).then(|| u64::from(correlation) | u64::from(self.generation) << 32)
    }

    /// The number of a text, told apart from those of all other recordings.
    pub(super) fn text(&self, id: StringId) -> Option<i64> {
        id.is_some().then(|| i64::from(id.0) | i64::from(self.number & 0x7fff_ffff) << 32)
    }
}

/// What the numbers of a batch stand for: below zero kinds of overhead, else texts of the recording.
pub(super) fn text_of(id: i64, strings: &Strings) -> Option<Cow<'_, [u8]>> {
    if id < 0 {
        return Some(Cow::Owned(overhead_name(id.unsigned_abs()).into_owned().into_bytes()));
    }
    strings.get(StringId(id as u32)).map(demangled)
}

/// What Kineto calls CUPTI's kinds of overhead.
fn overhead_name(kind: u64) -> Cow<'static, str> {
    Cow::Borrowed(match kind {
        1 => "Driver Compiler",
        0x1_0000 => "Buffer Flush",
        0x2_0000 => "Instrumentation",
        0x3_0000 => "Resource",
        0x4_0000 => "Runtime Triggered Module Loading",
        0x5_0000 => "Lazy Function Loading",
        0x6_0000 => "Command Buffer Full",
        0x7_0000 => "Activity Buffer Request",
        0x8_0000 => "UVM Activity Init",
        other => return Cow::Owned(format!("Overhead {other}")),
    })
}

/// What records of a recording say of each other.
#[derive(Debug, Default)]
pub(super) struct Context {
    /// Devices of contexts.
    devices: HashMap<u32, u32, FixedState>,
    /// Records of each event: by the number of their call.
    records: HashMap<u32, BTreeMap<u32, i64>, FixedState>,
    /// The same by what newer drivers tell them apart with.
    exact: HashMap<(u32, u64), i64, FixedState>,
    all: Vec<EventRecord>,
}

impl Context {
    pub(super) fn read(recording: &mut Recording<'_>) -> Self {
        let mut this = Self::default();
        for context in recording.records::<longpole_recording::Context>() {
            this.devices.insert(context.context, context.device);
        }
        this.all = recording.records::<EventRecord>();
        for (at, record) in this.all.iter().enumerate() {
            this.records.entry(record.event).or_default().insert(record.correlation, at as i64);
            if let Some(sync) = record.event_sync {
                this.exact.insert((record.event, sync), at as i64);
            }
        }
        this
    }

    /// All records of events: the event and the number of the record, the stream, the call.
    pub(super) fn event_records(&self) -> impl Iterator<Item = ((u32, i64), u32, u32)> {
        self.all.iter().enumerate().map(|(at, record)| ((record.event, at as i64), record.stream, record.correlation))
    }

    /// The record of an event that a wait is for: the one that the driver names, else the last one before the wait, since numbers of calls
    /// count up.
    fn record_of(&self, wait: &Sync) -> Option<(u32, i64)> {
        let event = wait.event?;
        let exact = wait.event_sync.and_then(|sync| self.exact.get(&(event, sync)));
        let last = || self.records.get(&event)?.range(..wait.correlation).next_back().map(|(_, at)| at);
        exact.or_else(last).map(|at| (event, *at))
    }
}

/// A record that becomes a row by itself.
pub(super) trait IntoRow: Record {
    fn add(&self, origin: &Origin, context: &Context, batch: &mut Batch);
}

macro_rules! work {
    ($origin:ident, $record:ident) => {
        Work {
            start: $origin.time($record.start),
            end: $origin.time($record.end),
            device: $record.device,
            context: $record.context,
            stream: $record.stream,
            correlation: $origin.correlation($record.correlation),
            graph_node: $record.graph_node.filter(|node| *node != 0),
            graph: $record.graph.filter(|graph| *graph != 0),
        }
    };
}

impl IntoRow for Kernel {
    fn add(&self, origin: &Origin, _: &Context, batch: &mut Batch) {
        let launch = LaunchConfig {
            grid: Some([self.grid_x, self.grid_y, self.grid_z]),
            block: Some([self.block_x, self.block_y, self.block_z]),
            registers_per_thread: Some(self.registers),
            shared_bytes: Some(self.static_shared.saturating_add(self.dynamic_shared)),
        };
        batch.kernel(&work!(origin, self), origin.text(self.name), launch);
    }
}

impl IntoRow for Memcpy {
    fn add(&self, origin: &Origin, _: &Context, batch: &mut Batch) {
        batch.copy(&work!(origin, self), self.bytes, self.kind, self.source, self.destination);
    }
}

impl IntoRow for Memset {
    fn add(&self, origin: &Origin, _: &Context, batch: &mut Batch) {
        batch.fill(&work!(origin, self), self.bytes, self.memory);
    }
}

impl IntoRow for PeerCopy {
    fn add(&self, origin: &Origin, _: &Context, batch: &mut Batch) {
        // Both ends are memory of devices.
        batch.copy(&work!(origin, self), self.bytes, 10, 3, 3);
    }
}

impl IntoRow for Api {
    fn add(&self, origin: &Origin, _: &Context, batch: &mut Batch) {
        let name = origin.text(self.name);
        batch.call(origin.time(self.start), origin.time(self.end), self.tid, origin.correlation(self.correlation), name);
    }
}

impl IntoRow for Sync {
    fn add(&self, origin: &Origin, context: &Context, batch: &mut Batch) {
        // All ones stand for no stream and no event.
        let known = |number: Option<u32>| number.filter(|number| *number != u32::MAX);
        batch.wait(&Wait {
            start: origin.time(self.start),
            end: origin.time(self.end),
            kind: self.kind,
            device: context.devices.get(&self.context).copied(),
            context: self.context,
            stream: known(self.stream),
            event: context.record_of(self).map(|(event, record)| (event, record | i64::from(origin.generation) << 32)),
        });
    }
}

impl IntoRow for Overhead {
    fn add(&self, origin: &Origin, _: &Context, batch: &mut Batch) {
        batch.overhead(origin.time(self.start), origin.time(self.end), -i64::from(self.kind));
    }
}
