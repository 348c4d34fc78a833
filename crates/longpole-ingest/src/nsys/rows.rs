//! Rows of the tables, as numbers, made on any thread; names and places get numbers of their stretch.

use std::hash::Hash;

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use longpole_trace::{ActivityKind, Detail, GraphNode, LaunchConfig, MemcpyKind, Ns, ProblemCode, Problems, SyncKind, Transfer};

use super::nvtx::{self, Kind};
use super::scan::Values;
use crate::days::{DAY, Days};

/// Times past this cannot be right: they would not fit when another recording's base is added.
pub(super) const LATEST: i64 = 1 << 62;

/// What is numbered within a stretch, in the order it is first seen.
#[derive(Debug)]
pub(super) struct Numbers<K> {
    known: HashMap<K, u32, FixedState>,
    pub(super) list: Vec<K>,
    last: u32,
}

impl<K> Default for Numbers<K> {
    fn default() -> Self {
        Self { known: HashMap::default(), list: Vec::new(), last: 0 }
    }
}

impl<K: Hash + Eq + Clone> Numbers<K> {
    /// The number of a value. Neighbouring rows are often alike, so the last one is looked at first.
    #[inline]
    pub(super) fn of(&mut self, value: &K) -> u32 {
        if self.list.get(self.last as usize) != Some(value) {
            let next = self.list.len() as u32;
            self.last = *self.known.entry_ref(value).or_insert(next);
            if self.last == next {
                self.list.push(value.clone());
            }
        }
        self.last
    }

    pub(super) fn clear(&mut self) {
        self.known.clear();
        self.list.clear();
        self.last = 0;
    }
}

/// Texts numbered within a stretch.
#[derive(Debug, Default)]
pub(super) struct Texts {
    known: HashMap<Box<[u8]>, u32, FixedState>,
    pub(super) list: Vec<Box<[u8]>>,
}

impl Texts {
    pub(super) fn of(&mut self, text: &[u8]) -> u32 {
        if let Some(number) = self.known.get(text) {
            return *number;
        }
        let number = self.list.len() as u32;
        self.known.insert(text.into(), number);
        self.list.push(text.into());
        number
    }
}

/// Where device work ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Place {
    pub(super) process: Option<i64>,
    pub(super) device: i64,
    pub(super) context: Option<i64>,
    pub(super) stream: i64,
}

/// How device work is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Name {
    /// A number in the table of strings.
    Id(i64),
    /// Copies, by `copyKind`, `srcKind` and `dstKind`.
    Copy(i64, Option<i64>, Option<i64>),
    /// Fills, by `memKind`.
    Fill(Option<i64>),
    /// Graphs, by number.
    Graph(Option<i64>),
    /// Nothing.
    Missing,
}

/// A kernel, copy, fill or graph.
#[derive(Clone, Copy, Debug)]
pub(super) struct DeviceRow {
    pub(super) kind: ActivityKind,
    pub(super) start: Ns,
    pub(super) dur: Ns,
    pub(super) correlation: Option<u64>,
    pub(super) name: u32,
    pub(super) place: u32,
    pub(super) detail: Option<u32>,
    pub(super) node: Option<u32>,
}

/// A runtime or driver call.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallRow {
    pub(super) start: Ns,
    pub(super) dur: Ns,
    pub(super) correlation: Option<u64>,
    pub(super) thread: i64,
    pub(super) name: Option<i64>,
}

/// A call into the operating system's libraries.
#[derive(Clone, Copy, Debug)]
pub(super) struct OsRow {
    pub(super) start: Ns,
    pub(super) dur: Ns,
    pub(super) thread: i64,
    pub(super) name: Option<i64>,
}

/// A sample of a processor.
#[derive(Clone, Copy, Debug)]
pub(super) struct SampleRow {
    pub(super) start: Ns,
    pub(super) thread: i64,
    /// What its functions are found by.
    pub(super) id: Option<i64>,
}

/// How a range is called.
#[derive(Clone, Copy, Debug)]
pub(super) enum RangeName {
    /// A text of the stretch, with sizes.
    Text { name: u32, is_operator: bool, sizes: Option<u32> },
    /// A number in the table of strings.
    Id(i64),
    /// Nothing.
    Missing,
}

/// An NVTX range or mark.
#[derive(Clone, Copy, Debug)]
pub(super) struct RangeRow {
    pub(super) start: Ns,
    /// Absent when it was never closed.
    pub(super) dur: Option<Ns>,
    pub(super) thread: i64,
    pub(super) domain: i64,
    pub(super) name: RangeName,
}

/// A synchronisation.
#[derive(Clone, Copy, Debug)]
pub(super) struct SyncRow {
    pub(super) kind: SyncKind,
    pub(super) start: Ns,
    pub(super) dur: Ns,
    pub(super) process: Option<i64>,
    pub(super) device: Option<i64>,
    pub(super) context: Option<i64>,
    pub(super) stream: Option<i64>,
    pub(super) event: Option<(i64, i64)>,
}

/// The rows of a stretch.
#[derive(Debug, Default)]
pub(super) struct Rows {
    pub(super) device: Vec<DeviceRow>,
    pub(super) calls: Vec<CallRow>,
    pub(super) ranges: Vec<RangeRow>,
    pub(super) syncs: Vec<SyncRow>,
    pub(super) overheads: Vec<(Ns, Ns, Option<i64>)>,
    pub(super) os_calls: Vec<OsRow>,
    pub(super) samples: Vec<SampleRow>,
    pub(super) names: Numbers<Name>,
    pub(super) places: Numbers<Place>,
    pub(super) details: Numbers<Detail>,
    pub(super) nodes: Numbers<GraphNode>,
    pub(super) texts: Texts,
    pub(super) days: Days,
    pub(super) events: u64,
}

impl Rows {
    /// Makes room for the next stretch.
    pub(super) fn clear(&mut self) {
        self.device.clear();
        self.calls.clear();
        self.ranges.clear();
        self.syncs.clear();
        self.overheads.clear();
        self.os_calls.clear();
        self.samples.clear();
        self.names.clear();
        self.places.clear();
        self.details.clear();
        self.nodes.clear();
        self.texts = Texts::default();
        self.days.clear();
        self.events = 0;
    }

    /// Start and length of an event, if both can be right.
    #[inline]
    fn times(values: &mut Values<'_, '_>) -> Option<(Ns, Ns)> {
        let (start, end) = (time(values, 0), time(values, 1));
        let Some((start, end)) = start.zip(end) else {
            values.problems().add(ProblemCode::MissingTime, None, || None);
            return None;
        };
        length(start, end, values.problems()).map(|dur| (start, dur))
    }

    /// Device work; what the columns behind the common ones say is left to the caller.
    #[inline]
    fn device(&mut self, kind: ActivityKind, values: &mut Values<'_, '_>, graph: Option<i64>, name: Name, detail: Option<Detail>) {
        self.events += 1;
        let Some((start, dur)) = Self::times(values) else { return };
        self.days.include(start, start + dur, 0);
        let place = Place {
            device: values.int(2).unwrap_or(0),
            context: values.int(3),
            stream: values.int(4).unwrap_or(0),
            process: values.int(6),
        };
        let node = values.int(7).filter(|node| *node != 0).map(|node| {
            // Node numbers hold their graph in the upper half.
            let graph = graph.filter(|graph| *graph != 0).map_or(node as u64 >> 32, |graph| graph as u64);
            self.nodes.of(&GraphNode { graph, node: node as u64 })
        });
        self.device.push(DeviceRow {
            kind,
            start,
            dur,
            correlation: correlation(values.int(5)),
            name: self.names.of(&name),
            place: self.places.of(&place),
            detail: detail.map(|detail| self.details.of(&detail)),
            node,
        });
    }

    pub(super) fn kernel(&mut self, values: &mut Values<'_, '_>) {
        let name = values.int(9).or_else(|| values.int(10)).or_else(|| values.int(11)).map_or(Name::Missing, Name::Id);
        let mut three = |first: usize| Some([values.small(first)?, values.small(first + 1)?, values.small(first + 2)?]);
        let (grid, block) = (three(12), three(15));
        let shared = (values.small(19), values.small(20));
        let launch = LaunchConfig {
            grid,
            block,
            registers_per_thread: values.small(18),
            shared_bytes: shared.0.map_or(shared.1, |fixed| Some(fixed.saturating_add(shared.1.unwrap_or(0)))),
        };
        let detail = (launch != LaunchConfig::default()).then_some(Detail::Launch(launch));
        let graph = values.int(8);
        self.device(ActivityKind::Kernel, values, graph, name, detail);
    }

    pub(super) fn copy(&mut self, values: &mut Values<'_, '_>) {
        let bytes = values.int(8).and_then(|bytes| u64::try_from(bytes).ok());
        let (kind, from, to) = (values.int(9).unwrap_or(0), values.int(10), values.int(11));
        let detail = transfer(bytes, kind, from, to);
        self.device(ActivityKind::Memcpy, values, None, Name::Copy(kind, from, to), Some(detail));
    }

    pub(super) fn fill(&mut self, values: &mut Values<'_, '_>) {
        let bytes = values.int(8).and_then(|bytes| u64::try_from(bytes).ok());
        let detail = Detail::Transfer(Transfer { bytes, kind: MemcpyKind::Unknown, pageable: None });
        let name = Name::Fill(values.int(9));
        self.device(ActivityKind::Memset, values, None, name, Some(detail));
    }

    pub(super) fn graph(&mut self, values: &mut Values<'_, '_>) {
        let name = Name::Graph(values.int(8).or_else(|| values.int(9)));
        self.device(ActivityKind::Other, values, None, name, None);
    }

    pub(super) fn call(&mut self, values: &mut Values<'_, '_>) {
        self.events += 1;
        let Some((start, dur)) = Self::times(values) else { return };
        self.days.include(start, start + dur, 0);
        let (thread, name) = (values.int(2).unwrap_or(0), values.int(4));
        self.calls.push(CallRow { start, dur, correlation: correlation(values.int(3)), thread, name });
    }

    pub(super) fn sync(&mut self, values: &mut Values<'_, '_>) {
        self.events += 1;
        let Some((start, dur)) = Self::times(values) else { return };
        self.days.include(start, start + dur, 0);
        let kind = sync_kind(values.int(6));
        // All ones stand for no stream and no event.
        let known = |value: Option<i64>| value.filter(|value| (0..i64::from(u32::MAX)).contains(value));
        let event = known(values.int(7)).map(|event| (event, values.int(8).unwrap_or(0)));
        self.syncs.push(SyncRow {
            kind,
            start,
            dur,
            process: values.int(5),
            device: known(values.int(2)),
            context: known(values.int(3)),
            stream: known(values.int(4)),
            event,
        });
    }

    pub(super) fn overhead(&mut self, values: &mut Values<'_, '_>) {
        self.events += 1;
        let Some((start, dur)) = Self::times(values) else { return };
        self.overheads.push((start, dur, values.int(2)));
    }

    pub(super) fn os_call(&mut self, values: &mut Values<'_, '_>) {
        self.events += 1;
        let Some((start, dur)) = Self::times(values) else { return };
        self.os_calls.push(OsRow { start, dur, thread: values.int(2).unwrap_or(0), name: values.int(3) });
    }

    pub(super) fn sample(&mut self, values: &mut Values<'_, '_>) {
        self.events += 1;
        let Some(start) = time(values, 0) else {
            values.problems().add(ProblemCode::MissingTime, None, || None);
            return;
        };
        self.samples.push(SampleRow { start, thread: values.int(1).unwrap_or(0), id: values.int(2) });
    }

    pub(super) fn range(&mut self, values: &mut Values<'_, '_>) {
        let kind = Kind::of(values.int(2));
        if matches!(kind, Kind::Domain | Kind::Other) {
            return;
        }
        self.events += 1;
        let Some(start) = time(values, 0) else {
            values.problems().add(ProblemCode::MissingTime, None, || None);
            return;
        };
        let dur = match (kind, time(values, 1)) {
            (Kind::Mark, _) => Some(Ns::ZERO),
            // Exports of 2021 write what is missing as zero.
            (_, Some(end)) if end != Ns::ZERO || start <= Ns::ZERO => match length(start, end, values.problems()) {
                Some(dur) => Some(dur),
                None => return,
            },
            (_, _) => None,
        };
        self.days.include(start, start + dur.unwrap_or(Ns::ZERO), 0);
        let name = match values.text(3).filter(|text| !text.is_empty()) {
            Some(text) => {
                let parsed = nvtx::parse(text);
                let is_operator = parsed.is_operator && kind == Kind::PushPop;
                let (name, sizes) = (self.texts.of(parsed.name), parsed.sizes.filter(|_| is_operator).map(|sizes| self.texts.of(sizes)));
                RangeName::Text { name, is_operator, sizes }
            }
            None => values.int(5).map_or(RangeName::Missing, RangeName::Id),
        };
        let (thread, domain) = (values.int(4).unwrap_or(0), values.int(6).unwrap_or(0));
        self.ranges.push(RangeRow { start, dur, thread, domain, name });
    }
}

/// What a copy moved, by `copyKind`, `srcKind` and `dstKind`.
pub(super) fn transfer(bytes: Option<u64>, kind: i64, from: Option<i64>, to: Option<i64>) -> Detail {
    let direction = match kind {
        1 | 3 | 11 => MemcpyKind::HostToDevice,
        2 | 4 | 12 => MemcpyKind::DeviceToHost,
        5..=8 | 13 => MemcpyKind::DeviceToDevice,
        9 => MemcpyKind::HostToHost,
        10 => MemcpyKind::PeerToPeer,
        _ => MemcpyKind::Unknown,
    };
    let host = match direction {
        MemcpyKind::HostToDevice | MemcpyKind::HostToHost => from,
        MemcpyKind::DeviceToHost => to,
        _ => None,
    };
    let pageable = host.and_then(|kind| match kind {
        0 => Some(true),
        1 => Some(false),
        _ => None,
    });
    Detail::Transfer(Transfer { bytes, kind: direction, pageable })
}

/// What a synchronisation waits for, by `syncType`.
pub(super) fn sync_kind(kind: Option<i64>) -> SyncKind {
    match kind {
        Some(1) => SyncKind::Event,
        Some(2) => SyncKind::StreamWaitsForEvent,
        Some(3) => SyncKind::Stream,
        Some(4) => SyncKind::Context,
        _ => SyncKind::Other,
    }
}

/// Zero stands for no correlation.
#[inline]
fn correlation(value: Option<i64>) -> Option<u64> {
    value.and_then(|value| u64::try_from(value).ok()).filter(|value| *value != 0)
}

#[inline]
fn time(values: &mut Values<'_, '_>, column: usize) -> Option<Ns> {
    let value = values.int(column)?;
    if value.unsigned_abs() >= LATEST as u64 {
        values.problems().add(ProblemCode::NumberTooLarge, None, || None);
        return None;
    }
    Some(Ns(value))
}

/// The length of an event, if it can be right. Times are whole nanoseconds as they were measured, so rounding puts no end before a start.
#[inline]
pub(super) fn length(start: Ns, end: Ns, problems: &mut Problems) -> Option<Ns> {
    if end < start {
        problems.add(ProblemCode::EndBeforeStart, None, || None);
        return Some(Ns::ZERO);
    }
    if end - start > DAY {
        problems.add(ProblemCode::ImplausibleDuration, None, || None);
        return None;
    }
    Some(end - start)
}
