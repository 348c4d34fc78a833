//! Puts the parts of each gap together and adds them up: by cause, by host frame, by gap.

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use longpole_trace::{ApiCallId, DeviceId, Ns};

use super::gaps::Gaps;
use super::host::{Found, Overheads, State};
use super::types::{CauseRow, FrameKind, FrameRow, HostFrame, IdleCause, IdlePiece, IdleStretch};
use crate::index::TraceIndex;

/// Sums of stretches.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    idle: Ns,
    intervals: u64,
    largest: Ns,
    at: Ns,
}

impl Sums {
    fn add(&mut self, start: Ns, end: Ns) {
        let length = end - start;
        self.idle += length;
        self.intervals += 1;
        // Threads are gone through one after the other, so the earliest of equals need not come first.
        if length > self.largest || (length == self.largest && start < self.at) {
            (self.largest, self.at) = (length, start);
        }
    }
}

/// The last stretches of a gap that is not complete: of one cause, and of one cause and host frame.
#[derive(Clone, Copy, Debug)]
struct Run {
    gap: u32,
    cause_start: Ns,
    frame_start: Ns,
    end: Ns,
    state: State,
}

/// A part of a gap that one cause took: until the next part of the gap, or its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) gap: u32,
    pub(super) cause: IdleCause,
    pub(super) start: Ns,
}

/// Parts of all gaps, several a kernel: in pieces of memory that are not copied as they grow.
#[derive(Debug, Default)]
pub(super) struct Parts {
    chunks: Vec<Vec<Part>>,
    latest: u32,
    is_unsorted: bool,
}

impl Parts {
    const CHUNK: usize = 1 << 15;

    fn push(&mut self, part: Part) {
        self.is_unsorted |= part.gap < self.latest;
        self.latest = part.gap;
        if self.chunks.last().is_none_or(|chunk| chunk.len() >= Self::CHUNK) {
            // A first one grows as it is needed: most recordings are small.
            self.chunks.push(Vec::with_capacity(if self.chunks.is_empty() { 16 } else { Self::CHUNK }));
        }
        if let Some(chunk) = self.chunks.last_mut() {
            chunk.push(part);
        }
    }

    /// The parts by gap, in chunks. Threads are gone through one after the other: with one thread and one device they come in order.
    pub(super) fn by_gap(mut self) -> Vec<Vec<Part>> {
        if self.is_unsorted {
            let mut all: Vec<Part> = self.chunks.into_iter().flatten().collect();
            all.sort_unstable_by_key(|part| (part.gap, part.start));
            self.chunks = vec![all];
        }
        self.chunks
    }
}

/// Every stretch of one cause: device after device, in order of time. They tile the gaps. Sixteen bytes each, and eight a gap.
#[derive(Debug, Default)]
pub struct IdleStretches {
    /// All but the last of one length.
    chunks: Vec<Vec<Part>>,
    /// By gap.
    ends: Vec<Ns>,
    /// Devices with the first of their gaps, and that behind the last one.
    devices: Vec<(DeviceId, std::ops::Range<usize>)>,
}

impl IdleStretches {
    pub(super) fn new(gaps: &Gaps, chunks: Vec<Vec<Part>>) -> Self {
        let devices = gaps.devices.iter().map(|device| (device.device, device.gaps.clone())).collect();
        Self { chunks, ends: gaps.all.iter().map(|gap| gap.end).collect(), devices }
    }

    /// Number of stretches.
    pub fn len(&self) -> usize {
        self.chunks.iter().map(Vec::len).sum()
    }

    /// True when there was no idle time.
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    fn part(&self, at: usize) -> Option<&Part> {
        let length = self.chunks.first().map_or(1, Vec::len).max(1);
        self.chunks.get(at / length)?.get(at % length)
    }

    /// A stretch by its position.
    pub fn get(&self, at: usize) -> Option<IdleStretch> {
        let part = self.part(at)?;
        let gap = part.gap as usize;
        let next = self.part(at + 1).filter(|next| next.gap == part.gap);
        let end = next.map_or_else(|| self.ends.get(gap).copied().unwrap_or(part.start), |next| next.start);
        let device = self.devices.partition_point(|(_, gaps)| gaps.end <= gap);
        let device = self.devices.get(device).map_or(DeviceId(0), |(device, _)| *device);
        Some(IdleStretch { device, start: part.start, end, cause: part.cause })
    }

    /// Positions of the stretches of a device.
    pub fn of_device(&self, device: DeviceId) -> std::ops::Range<usize> {
        let Some((_, gaps)) = self.devices.iter().find(|(other, _)| *other == device) else { return 0..0 };
        let before = |gap: usize| {
            let (mut low, mut high) = (0, self.len());
            while low < high {
                let middle = low.midpoint(high);
                if self.part(middle).is_some_and(|part| (part.gap as usize) < gap) {
                    low = middle + 1;
                } else {
                    high = middle;
                }
            }
            low
        };
        before(gaps.start)..before(gaps.end)
    }
}

/// Sums over all gaps, as they are completed.
pub(super) struct Tally<'a, 't> {
    index: &'a TraceIndex<'t>,
    gaps: &'a Gaps,
    overheads: &'a Overheads,
    /// By position in the list of devices.
    causes: Vec<[Sums; IdleCause::COUNT]>,
    frames: HashMap<State, Sums, FixedState>,
    runs: Vec<Run>,
    /// Kept when asked for, in the order in which gaps are completed.
    pub(super) parts: Option<Parts>,
    /// Is shown every piece, in that order too.
    pub(super) see: Option<&'a mut (dyn FnMut(IdlePiece) + Send)>,
    /// Whether only that is wanted, and no sums.
    pub(super) only_sees: bool,
    pub(super) unsplit: u64,
}

impl<'a, 't> Tally<'a, 't> {
    pub(super) fn new(index: &'a TraceIndex<'t>, gaps: &'a Gaps, overheads: &'a Overheads) -> Self {
        Self {
            index,
            gaps,
            overheads,
            causes: vec![[Sums::default(); IdleCause::COUNT]; gaps.devices.len()],
            frames: HashMap::default(),
            runs: Vec::new(),
            parts: None,
            see: None,
            only_sees: false,
            unsplit: 0,
        }
    }

    fn device(&self, gap: u32) -> usize {
        self.gaps.devices.partition_point(|device| device.gaps.end <= gap as usize)
    }

    fn end_frame(&mut self, run: &Run) {
        let device = self.gaps.devices[self.device(run.gap)].device;
        if let Some(see) = &mut self.see {
            let (cause, frame) = run.state;
            see(IdlePiece { device, start: run.frame_start, end: run.end, cause, frame });
        }
        if !self.only_sees {
            self.frames.entry(run.state).or_default().add(run.frame_start, run.end);
        }
    }

    fn end_cause(&mut self, run: &Run) {
        if self.only_sees {
            return;
        }
        let device = self.device(run.gap);
        let cause = run.state.0;
        self.causes[device][cause.index()].add(run.cause_start, run.end);
        if let Some(parts) = &mut self.parts {
            parts.push(Part { gap: run.gap, cause, start: run.cause_start });
        }
    }

    /// The call that launched the end of a gap, as a frame.
    fn launch_frame(&self, call: ApiCallId) -> HostFrame {
        let (trace, tree) = (self.index.trace(), self.index.tree());
        let inside = tree.api_node(call).and_then(|node| tree.enclosing_op(node)).map(|op| tree.name(op));
        HostFrame { kind: FrameKind::Call, name: Some(trace.api_calls.name[call.index()]), inside }
    }

    /// What happens during a launch call: launching, unless the profiler or a loader is at work.
    fn during_launch(&mut self, gap: u32, call: ApiCallId, frame: HostFrame, from: Ns, to: Ns) {
        let trace = self.index.trace();
        let cause = if trace.strings.get(trace.api_calls.name[call.index()]).contains("GraphLaunch") {
            IdleCause::GraphLaunch
        } else if self.gaps.all[gap as usize].loads_code {
            IdleCause::CompileOrLoad
        } else {
            IdleCause::LaunchLatency
        };
        let launching = (cause, frame);
        let mut now = from;
        while now < to {
            let next = to.min(self.overheads.next_change(now));
            let state = self.overheads.at(now).unwrap_or(launching);
            self.stretch(gap, now, next, state);
            now = next;
        }
    }

    /// Rows of each device, and of all together.
    pub(super) fn cause_rows(&self) -> (Vec<Vec<CauseRow>>, Vec<CauseRow>) {
        let mut total: [Option<CauseRow>; IdleCause::COUNT] = [None; IdleCause::COUNT];
        let mut of_devices = Vec::with_capacity(self.causes.len());
        for (causes, device) in self.causes.iter().zip(&self.gaps.devices) {
            let rows = IdleCause::ALL.iter().filter_map(|&cause| cause_row(cause, &causes[cause.index()], device.device));
            let mut rows: Vec<CauseRow> = rows.collect();
            for row in &rows {
                let total = &mut total[row.cause.index()];
                *total = Some(total.map_or(*row, |known| sum(&known, row)));
            }
            sort_causes(&mut rows);
            of_devices.push(rows);
        }
        let mut total: Vec<CauseRow> = total.into_iter().flatten().collect();
        sort_causes(&mut total);
        (of_devices, total)
    }

    /// Rows by host frame and cause, largest first.
    pub(super) fn frame_rows(&self) -> Vec<FrameRow> {
        let trace = self.index.trace();
        let text = |name: longpole_trace::StrId| trace.strings.get(name).to_owned();
        let mut sums: Vec<(State, Sums)> = self.frames.iter().map(|(state, sums)| (*state, *sums)).collect();
        sums.sort_unstable_by_key(|&(state, sums)| (std::cmp::Reverse(sums.idle), state));
        sums.into_iter()
            .map(|((cause, frame), sums)| FrameRow {
                kind: frame.kind,
                name: frame.name.map(text),
                inside: frame.inside.map(text),
                cause,
                idle_ns: sums.idle,
                intervals: sums.intervals,
                largest_ns: sums.largest,
            })
            .collect()
    }
}

impl Found for Tally<'_, '_> {
    fn stretch(&mut self, gap: u32, start: Ns, end: Ns, state: State) {
        if end <= start {
            return;
        }
        let Some(at) = self.runs.iter().position(|run| run.gap == gap) else {
            self.runs.push(Run { gap, cause_start: start, frame_start: start, end, state });
            return;
        };
        let run = self.runs[at];
        if run.state == state {
            self.runs[at].end = end;
            return;
        }
        self.end_frame(&run);
        let same_cause = run.state.0 == state.0;
        if !same_cause {
            self.end_cause(&run);
        }
        let cause_start = if same_cause { run.cause_start } else { start };
        self.runs[at] = Run { gap, cause_start, frame_start: start, end, state };
    }

    fn done(&mut self, gap: u32) {
        let found = self.gaps.all[gap as usize];
        let (launch, launched) = found.launch(self.index.trace());
        let frame = found.call().map_or(HostFrame::NOTHING, |call| self.launch_frame(call));
        if let Some(call) = found.call() {
            self.during_launch(gap, call, frame, launch, launched);
        }
        let changes_at = found.changes_at.clamp(launched, found.end);
        self.stretch(gap, launched, changes_at, (found.causes.0, frame));
        self.stretch(gap, changes_at, found.end, (found.causes.1, frame));
        if let Some(at) = self.runs.iter().position(|run| run.gap == gap) {
            let run = self.runs.swap_remove(at);
            self.end_frame(&run);
            self.end_cause(&run);
        }
    }

    fn unsplit(&mut self) {
        self.unsplit += 1;
    }
}

fn cause_row(cause: IdleCause, sums: &Sums, device: DeviceId) -> Option<CauseRow> {
    (sums.intervals > 0).then_some(CauseRow {
        cause,
        idle_ns: sums.idle,
        intervals: sums.intervals,
        largest_ns: sums.largest,
        largest_at: sums.at,
        largest_on: device,
    })
}

/// Of equally long stretches that of the device named first.
fn sum(known: &CauseRow, row: &CauseRow) -> CauseRow {
    let largest = if row.largest_ns > known.largest_ns { row } else { known };
    CauseRow { idle_ns: known.idle_ns + row.idle_ns, intervals: known.intervals + row.intervals, ..*largest }
}

fn sort_causes(rows: &mut [CauseRow]) {
    rows.sort_by_key(|row| (std::cmp::Reverse(row.idle_ns), row.cause));
}
