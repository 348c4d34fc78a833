//! Packets on their way out: nothing but the one being made is held, and a bit for each name that was written.

use std::io::{self, Write};

use longpole_trace::{Ns, StrId, Trace};

use super::wire::{bytes, fixed64, interned, number, signed};
use crate::names::printable;

/// Bytes gathered before they are written out.
const CHUNK: usize = 1 << 16;
/// All packets are one sequence: names are interned once.
const SEQUENCE: u64 = 1;
/// Flags of a packet: interned names begin anew, or are needed.
const CLEARED: u64 = 1;
const NEEDED: u64 = 2;

/// Kinds of slices, their Perfetto categories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Category {
    Range,
    Operator,
    Call,
    Python,
    OsCall,
    Kernel,
    Copy,
    Fill,
    Other,
    Idle,
    Step,
    Profiler,
}

impl Category {
    const ALL: [(Self, &'static str); 12] = [
        (Self::Range, "range"),
        (Self::Operator, "operator"),
        (Self::Call, "call"),
        (Self::Python, "python"),
        (Self::OsCall, "os_call"),
        (Self::Kernel, "kernel"),
        (Self::Copy, "copy"),
        (Self::Fill, "fill"),
        (Self::Other, "other"),
        (Self::Idle, "idle"),
        (Self::Step, "step"),
        (Self::Profiler, "profiler"),
    ];

    fn iid(self) -> u64 {
        self as u64 + 1
    }
}

/// What is said beside a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Correlation,
    ExternalId,
    Grid,
    Block,
    RegistersPerThread,
    SharedBytes,
    Bytes,
    Copy,
    Pageable,
    Graph,
    GraphNode,
    Family,
    Shapes,
    Types,
    Launched,
    Host,
    Inside,
    Number,
    BusyNs,
    Kernels,
    LeftOut,
}

impl Key {
    const ALL: [(Self, &'static str); 21] = [
        (Self::Correlation, "correlation"),
        (Self::ExternalId, "external_id"),
        (Self::Grid, "grid"),
        (Self::Block, "block"),
        (Self::RegistersPerThread, "registers_per_thread"),
        (Self::SharedBytes, "shared_bytes"),
        (Self::Bytes, "bytes"),
        (Self::Copy, "copy"),
        (Self::Pageable, "pageable"),
        (Self::Graph, "graph"),
        (Self::GraphNode, "graph_node"),
        (Self::Family, "family"),
        (Self::Shapes, "shapes"),
        (Self::Types, "types"),
        (Self::Launched, "launched"),
        (Self::Host, "host"),
        (Self::Inside, "inside"),
        (Self::Number, "number"),
        (Self::BusyNs, "busy_ns"),
        (Self::Kernels, "kernels"),
        (Self::LeftOut, "left_out"),
    ];
}

/// A name of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    /// A string of the trace.
    Of(StrId),
    /// One of ours, numbered behind those.
    Own(u32),
}

/// A track, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Track(pub(super) u64);

/// What a track is, beside its name.
#[derive(Clone, Copy, Debug)]
pub(super) enum TrackKind {
    Plain,
    Process {
        pid: i64,
    },
    Thread {
        pid: i64,
        tid: i64,
    },
    /// Numbers over time.
    Counter(Unit),
}

/// What a counter counts, as Perfetto numbers it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Unit {
    Count = 2,
    Bytes = 3,
}

/// A bit a string.
#[derive(Debug)]
struct Written(Vec<u64>);

impl Written {
    fn of(strings: usize) -> Self {
        Self(vec![0; strings.div_ceil(64)])
    }

    /// Whether it is the first time.
    fn is_new(&mut self, at: usize) -> bool {
        let (word, bit) = (at / 64, 1 << (at % 64));
        if word >= self.0.len() {
            self.0.resize(word + 1, 0);
        }
        let is_new = self.0[word] & bit == 0;
        self.0[word] |= bit;
        is_new
    }
}

/// What is said beside a slice, as bytes of its event.
#[derive(Debug, Default)]
pub(super) struct Notes {
    event: Vec<u8>,
    values: Vec<StrId>,
}

impl Notes {
    fn annotate(&mut self, key: Key, fill: impl FnOnce(&mut Vec<u8>)) {
        // An annotation is short, but for texts of ours, which are as well.
        let mut annotation = Vec::with_capacity(32);
        number(&mut annotation, 1, key as u64 + 1);
        fill(&mut annotation);
        bytes(&mut self.event, 4, &annotation);
    }

    pub(super) fn unsigned(&mut self, key: Key, value: impl Into<Option<u64>>) {
        if let Some(value) = value.into() {
            self.annotate(key, |out| number(out, 3, value));
        }
    }

    pub(super) fn signed(&mut self, key: Key, value: i64) {
        self.annotate(key, |out| signed(out, 4, value));
    }

    pub(super) fn text(&mut self, key: Key, value: &str) {
        self.annotate(key, |out| bytes(out, 6, printable(value).as_bytes()));
    }

    /// A string of the trace, which is written once.
    pub(super) fn string(&mut self, key: Key, value: Option<StrId>) {
        if let Some(value) = value {
            self.annotate(key, |out| number(out, 17, u64::from(value.0) + 1));
            self.values.push(value);
        }
    }

    /// Annotations that were put together before.
    pub(super) fn ready(&mut self, annotations: &[u8]) {
        self.event.extend_from_slice(annotations);
    }

    /// The beginning of an arrow, or its end.
    pub(super) fn flow(&mut self, id: Option<u64>, ends: bool) {
        if let Some(id) = id {
            fixed64(&mut self.event, if ends { 48 } else { 47 }, id);
        }
    }

    /// The bytes of what was said, to be used again.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.event
    }
}

/// A Perfetto trace being written.
pub(super) struct Packets<'w, 't> {
    trace: &'t Trace,
    out: &'w mut (dyn Write + Send),
    pending: Vec<u8>,
    packet: Vec<u8>,
    notes: Notes,
    names: Written,
    values: Written,
    own: Vec<String>,
    /// Absolute time of the trace's zero.
    origin: i64,
    pub(super) tracks: u64,
    pub(super) slices: u64,
    pub(super) counts: u64,
    pub(super) bytes: u64,
}

impl<'w, 't> Packets<'w, 't> {
    pub(super) fn new(trace: &'t Trace, out: &'w mut (dyn Write + Send)) -> Self {
        let base = trace.base_unix_ns.unwrap_or(0);
        let first = trace.window.bounds().map_or(Ns::ZERO, |(first, _)| first);
        // Perfetto knows no time before its zero. A trace that has one counts from its first event.
        let origin = if base.saturating_add(first.get()) < 0 { first.get().saturating_neg() } else { base };
        let strings = trace.strings.len();
        let mut packets = Self {
            trace,
            out,
            pending: Vec::with_capacity(CHUNK + 4096),
            packet: Vec::new(),
            notes: Notes::default(),
            names: Written::of(strings),
            values: Written::of(strings),
            own: Vec::new(),
            origin,
            tracks: 0,
            slices: 0,
            counts: 0,
            bytes: 0,
        };
        let mut tables = Vec::new();
        for (category, text) in Category::ALL {
            interned(&mut tables, 1, category.iid(), text);
        }
        for (key, text) in Key::ALL {
            interned(&mut tables, 3, key as u64 + 1, text);
        }
        number(&mut packets.packet, 10, SEQUENCE);
        bytes(&mut packets.packet, 12, &tables);
        number(&mut packets.packet, 13, CLEARED);
        packets.close_packet();
        packets
    }

    /// A name that the trace does not have.
    pub(super) fn own_name(&mut self, text: &str) -> Name {
        self.own.push(text.to_owned());
        Name::Own(self.own.len() as u32 - 1)
    }

    fn close_packet(&mut self) {
        let before = self.pending.len();
        bytes(&mut self.pending, 1, &self.packet);
        self.bytes += (self.pending.len() - before) as u64;
        self.packet.clear();
    }

    fn flush_if_full(&mut self) -> io::Result<()> {
        if self.pending.len() >= CHUNK {
            self.out.write_all(&self.pending)?;
            self.pending.clear();
        }
        Ok(())
    }

    /// Makes a track, `rank` among its siblings. Names of tracks are ours or were made printable.
    pub(super) fn track(&mut self, parent: Option<Track>, name: &str, kind: TrackKind, rank: i64) -> Track {
        self.tracks += 1;
        let (track, name) = (Track(self.tracks), printable(name));
        let mut about = Vec::with_capacity(name.len() + 64);
        number(&mut about, 1, track.0);
        bytes(&mut about, 2, name.as_bytes());
        let mut inner = Vec::new();
        match kind {
            TrackKind::Plain => {}
            TrackKind::Process { pid } => {
                signed(&mut inner, 1, pid);
                bytes(&mut inner, 6, name.as_bytes());
                bytes(&mut about, 3, &inner);
            }
            TrackKind::Thread { pid, tid } => {
                signed(&mut inner, 1, pid);
                signed(&mut inner, 2, tid);
                bytes(&mut inner, 5, name.as_bytes());
                bytes(&mut about, 4, &inner);
            }
            TrackKind::Counter(unit) => {
                number(&mut inner, 3, unit as u64);
                bytes(&mut about, 8, &inner);
            }
        }
        if let Some(parent) = parent {
            number(&mut about, 5, parent.0);
        }
        // Children in the order of their ranks.
        number(&mut about, 11, 3);
        signed(&mut about, 12, rank);
        number(&mut self.packet, 10, SEQUENCE);
        bytes(&mut self.packet, 60, &about);
        self.close_packet();
        track
    }

    fn at(&self, time: Ns) -> u64 {
        self.origin.saturating_add(time.get()).max(0) as u64
    }

    /// A slice begins.
    pub(super) fn begin(
        &mut self,
        track: Track,
        at: Ns,
        (category, name): (Category, Name),
        say: impl FnOnce(&mut Notes),
    ) -> io::Result<()> {
        self.slices += 1;
        let mut notes = std::mem::take(&mut self.notes);
        number(&mut notes.event, 3, category.iid());
        number(&mut notes.event, 9, 1);
        let iid = match name {
            Name::Of(id) => u64::from(id.0) + 1,
            Name::Own(own) => self.trace.strings.len() as u64 + u64::from(own) + 1,
        };
        number(&mut notes.event, 10, iid);
        number(&mut notes.event, 11, track.0);
        say(&mut notes);
        let at = self.at(at);
        number(&mut self.packet, 8, at);
        number(&mut self.packet, 10, SEQUENCE);
        let mut tables = Vec::new();
        if self.names.is_new(iid as usize) {
            let text = match name {
                Name::Of(id) => self.trace.strings.get(id),
                Name::Own(own) => &self.own[own as usize],
            };
            interned(&mut tables, 2, iid, &printable(text));
        }
        for value in notes.values.drain(..) {
            if self.values.is_new(value.index()) {
                interned(&mut tables, 29, u64::from(value.0) + 1, &printable(self.trace.strings.get(value)));
            }
        }
        if !tables.is_empty() {
            bytes(&mut self.packet, 12, &tables);
        }
        bytes(&mut self.packet, 11, &notes.event);
        number(&mut self.packet, 13, NEEDED);
        notes.event.clear();
        self.notes = notes;
        self.close_packet();
        self.flush_if_full()
    }

    /// The innermost slice of a track ends.
    pub(super) fn end(&mut self, track: Track, at: Ns) -> io::Result<()> {
        self.plain(at, |event| {
            number(event, 9, 2);
            number(event, 11, track.0);
        })
    }

    /// A number from now on.
    pub(super) fn count(&mut self, track: Track, at: Ns, value: i64) -> io::Result<()> {
        self.counts += 1;
        self.plain(at, |event| {
            number(event, 9, 4);
            number(event, 11, track.0);
            signed(event, 30, value);
        })
    }

    fn plain(&mut self, at: Ns, fill: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        let at = self.at(at);
        number(&mut self.packet, 8, at);
        number(&mut self.packet, 10, SEQUENCE);
        fill(&mut self.notes.event);
        bytes(&mut self.packet, 11, &self.notes.event);
        self.notes.event.clear();
        self.close_packet();
        self.flush_if_full()
    }

    /// Writes what is left.
    pub(super) fn finish(mut self) -> io::Result<(u64, u64, u64, u64)> {
        self.out.write_all(&self.pending)?;
        self.pending.clear();
        self.out.flush()?;
        Ok((self.tracks, self.slices, self.counts, self.bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_in_the_order_of_their_numbers() {
        assert!(Category::ALL.iter().enumerate().all(|(at, (category, _))| *category as usize == at));
        assert!(Key::ALL.iter().enumerate().all(|(at, (key, _))| *key as usize == at));
    }
}
