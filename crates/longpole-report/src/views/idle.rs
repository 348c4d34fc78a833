//! Idle time: totals, causes, where they are (ranges, host frames), and how full the queues were.

use std::collections::HashSet;
use std::fmt::Write as _;

use longpole_analysis::{
    CauseRow, DeviceIdle, FrameKind, FrameRow, HostSamples, IdleCause, IdleTable, Queue, RangeIdle, RangePath, SampleRow,
};
use longpole_trace::{Ns, Trace};

use super::{device_label, since_first, text};
use crate::blocks::{Bar, Block, Strip};
use crate::table::{Column, Kind, Row, Table, Value};
use crate::units::{count, decimal, percent, time};

/// Causes named beside a range.
const CAUSES_NAMED: usize = 2;
/// Devices whose queue is drawn.
const QUEUES_DRAWN: usize = 8;

/// How idle time is shown.
#[derive(Clone, Copy, Debug)]
pub struct IdleLayout {
    /// Rows of the tables by range and by frame; `None` for all.
    pub limit: Option<usize>,
    /// Rows that `--filter` took from the table by frame.
    pub frames_filtered_out: usize,
    /// Rows that `--filter` took from the table by range.
    pub ranges_filtered_out: usize,
}

/// A cause in a few words.
fn meaning(cause: IdleCause) -> &'static str {
    match cause {
        IdleCause::BlockedInSync => "host waited, device had no work left",
        IdleCause::Dispatch => "an operator's own host time",
        IdleCause::Python => "in a recorded Python function",
        IdleCause::OutsideOperators => "host code outside operators",
        IdleCause::Allocation => "allocating or freeing memory",
        IdleCause::GraphLaunch => "host was launching a graph",
        IdleCause::CompileOrLoad => "compiling, tuning, loading code",
        IdleCause::Profiler => "the profiler's own work",
        IdleCause::LaunchLatency => "launch call to kernel's start",
        IdleCause::EventWait => "stream waited for an event",
        IdleCause::Dependency => "waited for another stream",
        IdleCause::GraphInternal => "between kernels of one graph",
        IdleCause::CopyEngine => "between computing and copying",
        IdleCause::NothingRecorded => "nothing in the trace says why",
    }
}

fn side(cause: IdleCause) -> &'static str {
    match cause {
        IdleCause::NothingRecorded => "?",
        cause if cause.is_device_side() => "device",
        _ => "host",
    }
}

/// What kind of thing a host frame is, as it is written in JSON and text.
pub fn frame_kind(kind: FrameKind) -> &'static str {
    match kind {
        FrameKind::Operator => "operator",
        FrameKind::Call => "call",
        FrameKind::Python => "python",
        FrameKind::OsCall => "os_call",
        FrameKind::Range => "range",
        FrameKind::Overhead => "overhead",
        FrameKind::Nothing => "nothing",
    }
}

fn fraction(part: Ns, whole: Ns) -> f64 {
    if whole > Ns::ZERO { part.get() as f64 / whole.get() as f64 } else { 0.0 }
}

fn table(noun: &'static str, columns: Vec<Column>, rows: Vec<Row>) -> Table {
    Table { noun, columns, rows, totals: Vec::new(), hidden: 0, filtered_out: 0, empty: None, notes: Vec::new() }
}

/// The causes, whose sum is the idle time.
fn causes(causes: &[CauseRow], idle: Ns, trace: &Trace, several: bool) -> Table {
    let columns = vec![
        Column::new("cause", "cause", Kind::Text).at_least(17),
        Column::new("side", "side", Kind::Text).droppable(3),
        Column::new("idle_ns", "idle", Kind::Time),
        Column::new("share_fraction", "share", Kind::Share),
        Column::new("share_fraction", "", Kind::Bar).droppable(1),
        Column::new("intervals", "intervals", Kind::Count).droppable(7),
        Column::new("largest_ns", "largest", Kind::Time).droppable(6),
        Column::new("largest_at_ns", "at", Kind::Time).droppable(5),
        Column::new("largest_on", "on", Kind::Text).droppable(4),
        Column::new("meaning", "meaning", Kind::Text).at_least(28).not_below(20).droppable(2),
    ];
    let rows = causes
        .iter()
        .map(|row| {
            let share = Value::share(Some(row.idle_ns), Some(idle));
            Row::new(vec![
                text(row.cause.code()),
                text(side(row.cause)),
                Value::Time(row.idle_ns),
                share.clone(),
                share,
                Value::Count(row.intervals),
                Value::Time(row.largest_ns),
                Value::Time(since_first(trace, row.largest_at)),
                Value::Text(device_label(trace, row.largest_on)),
                text(meaning(row.cause)),
            ])
        })
        .collect();
    let mut table = table("idle time", columns, rows);
    if !several {
        table.columns[8].csv_only = true;
    }
    table.totals = vec![Row::new(vec![
        text("idle"),
        Value::Blank,
        Value::Time(idle),
        Value::share(Some(idle), Some(idle)),
        Value::Blank,
        Value::Count(causes.iter().map(|row| row.intervals).sum()),
        Value::Blank,
        Value::Blank,
        Value::Blank,
        Value::Blank,
    ])];
    table
}

/// The causes of every device, for CSV.
pub fn idle_csv(idle: &IdleTable, trace: &Trace) -> Table {
    let columns = vec![
        Column::new("device", "device", Kind::Text),
        Column::new("cause", "cause", Kind::Text),
        Column::new("side", "side", Kind::Text),
        Column::new("idle_ns", "idle", Kind::Time),
        Column::new("share_fraction", "share", Kind::Share),
        Column::new("intervals", "intervals", Kind::Count),
        Column::new("largest_ns", "largest", Kind::Time),
        Column::new("largest_at_ns", "at", Kind::Time),
    ];
    let row = |device: &DeviceIdle, row: &CauseRow| {
        Row::new(vec![
            Value::Text(device_label(trace, device.device)),
            text(row.cause.code()),
            text(side(row.cause)),
            Value::Time(row.idle_ns),
            Value::share(Some(row.idle_ns), Some(device.idle_ns)),
            Value::Count(row.intervals),
            Value::Time(row.largest_ns),
            Value::Time(since_first(trace, row.largest_at)),
        ])
    };
    let rows = idle.devices.iter().flat_map(|device| device.causes.iter().map(move |cause| row(device, cause)));
    table("idle time", columns, rows.collect())
}

fn devices(idle: &IdleTable, trace: &Trace) -> Table {
    let columns = vec![
        Column::new("device", "device", Kind::Text).at_least(16),
        Column::new("span_ns", "span", Kind::Time).in_unit_of("device"),
        Column::new("idle_ns", "idle", Kind::Time).in_unit_of("device"),
        Column::new("idle_fraction", "idle", Kind::Share),
        Column::new("gaps", "gaps", Kind::Count).droppable(1),
        Column::new("empty_fraction", "queue empty", Kind::Share).droppable(2),
        Column::new("cause", "largest cause", Kind::Text).droppable(4),
        Column::new("cause_fraction", "of idle", Kind::Share).droppable(3),
    ];
    let rows = idle
        .devices
        .iter()
        .map(|device| {
            let largest = device.causes.first();
            Row::new(vec![
                Value::Text(device_label(trace, device.device)),
                Value::Time(device.span_ns),
                Value::Time(device.idle_ns),
                Value::share(Some(device.idle_ns), Some(device.span_ns)),
                Value::Count(device.gaps),
                device.queue.empty_fraction().map_or(Value::Missing, Value::Share),
                Value::name(largest.map(|row| row.cause.code())),
                Value::share(largest.map(|row| row.idle_ns), Some(device.idle_ns)),
            ])
        })
        .collect();
    table("devices", columns, rows)
}

fn ranges(idle: &IdleTable, layout: &IdleLayout) -> Table {
    let columns = vec![
        Column::new("name", "range", Kind::Text).at_least(24),
        Column::new("calls", "calls", Kind::Count).droppable(2),
        Column::new("span_ns", "span", Kind::Time).in_unit_of("range").droppable(6),
        Column::new("idle_ns", "idle", Kind::Time).in_unit_of("range"),
        Column::new("idle_fraction", "idle", Kind::Share),
        Column::new("empty_queue_ns", "queue empty", Kind::Time).in_unit_of("range").droppable(1),
        Column::new("causes", "largest causes, % of idle", Kind::Text).at_least(20).droppable(5),
    ];
    let shown: HashSet<RangePath> = idle.by_range.iter().map(|row| row.parents.inside(&row.name)).collect();
    let depth = |row: &RangeIdle| row.parents.and_around().filter(|path| shown.contains(path)).count();
    let rows = idle
        .by_range
        .iter()
        .map(|row| {
            let causes: Vec<String> = row
                .causes
                .iter()
                .take(CAUSES_NAMED)
                .map(|&(cause, ns)| format!("{} {}", cause.code(), percent(fraction(ns, row.idle_ns))))
                .collect();
            let cells = vec![
                text(&row.name),
                Value::Count(row.calls),
                Value::Time(row.span_ns),
                Value::Time(row.idle_ns),
                Value::share(Some(row.idle_ns), Some(row.span_ns)),
                Value::Time(row.empty_queue_ns),
                if causes.is_empty() { Value::Missing } else { Value::Text(causes.join(", ")) },
            ];
            Row { cells, depth: depth(row), lines: Vec::new() }
        })
        .collect();
    let mut table = table("ranges", columns, rows);
    table.filtered_out = layout.ranges_filtered_out;
    table.truncate(layout.limit);
    table
}

/// A host frame in words.
fn frame(row: &FrameRow) -> String {
    let name = row.name.as_deref().unwrap_or("(nothing open on the host)");
    match &row.inside {
        Some(inside) => format!("{name} in {inside}"),
        None => name.to_owned(),
    }
}

fn frames(idle: &IdleTable, whole: Ns, layout: &IdleLayout) -> Table {
    let columns = vec![
        Column::new("name", "host frame", Kind::Text).at_least(28),
        Column::new("kind", "kind", Kind::Text).droppable(2),
        Column::new("cause", "cause", Kind::Text).droppable(6),
        Column::new("idle_ns", "idle", Kind::Time),
        Column::new("share_fraction", "share", Kind::Share),
        Column::new("share_fraction", "", Kind::Bar).droppable(1),
        Column::new("intervals", "intervals", Kind::Count).droppable(4),
        Column::new("largest_ns", "largest", Kind::Time).droppable(3),
    ];
    let rows = idle
        .by_frame
        .iter()
        .map(|row| {
            let share = Value::share(Some(row.idle_ns), Some(whole));
            Row::new(vec![
                Value::Text(frame(row)),
                text(frame_kind(row.kind)),
                text(row.cause.code()),
                Value::Time(row.idle_ns),
                share.clone(),
                share,
                Value::Count(row.intervals),
                Value::Time(row.largest_ns),
            ])
        })
        .collect();
    let mut table = table("host frames", columns, rows);
    table.filtered_out = layout.frames_filtered_out;
    table.truncate(layout.limit);
    table
}

/// What launching threads ran while devices waited for them.
fn samples(samples: &HostSamples, layout: &IdleLayout) -> Table {
    let columns = vec![
        Column::new("name", "innermost function", Kind::Text).at_least(28),
        Column::new("samples", "samples", Kind::Count),
        Column::new("share_fraction", "share", Kind::Share),
        Column::new("share_fraction", "", Kind::Bar).droppable(1),
    ];
    let row = |row: &SampleRow| {
        let share = Value::Share(row.samples as f64 / samples.samples.max(1) as f64);
        Row::new(vec![text(&row.name), Value::Count(row.samples), share.clone(), share])
    };
    let mut table = table("functions", columns, samples.rows.iter().map(row).collect());
    table.truncate(layout.limit);
    table
}

fn queue_in_words(queue: &Queue) -> String {
    let empty = queue.empty_fraction().map_or_else(|| "–".to_owned(), |share| format!("{} %", percent(share)));
    let depth = queue.mean_depth.map_or_else(|| "–".to_owned(), decimal);
    let mut said = format!(
        "empty while the device was idle {empty} of the time; {depth} launches deep on average, at most {}",
        count(queue.max_depth)
    );
    if queue.unlaunched > 0 {
        let _ = write!(said, "; {} without a recorded launch are in no queue", count(queue.unlaunched));
    }
    said
}

/// The queue of a device over time.
fn queue_strip(device: &DeviceIdle, label: &'static str, name: &str) -> Option<Strip> {
    let samples = &device.queue_over_time;
    let deepest = samples.iter().map(|sample| sample.mean_depth).fold(0.0, f64::max);
    let slice = samples.first().map(|sample| sample.end - sample.start).filter(|_| samples.len() > 1)?;
    // Depths reach from one to thousands: equal steps of the bar are equal factors.
    let top = (1.0 + deepest).ln();
    let bars = samples
        .iter()
        .map(|sample| Bar { height: if top > 0.0 { (1.0 + sample.mean_depth).ln() / top } else { 0.0 }, marked: false })
        .collect();
    let scale = format!("{name}launches queued over time, {} a character, from 0 to {} (logarithmic)", time(slice), decimal(deepest));
    Some(Strip { label, bars, scale, remarks: Vec::new() })
}

/// The whole report.
pub fn idle(idle: &IdleTable, trace: &Trace, layout: &IdleLayout) -> Vec<Block> {
    let (Some(idle_ns), Some(span_ns)) = (idle.idle_ns, idle.span_ns) else {
        let nothing = if trace.activities.is_empty() { trace.recorder.advice().no_device } else { "no device activity in scope" };
        return vec![Block::Heading("Idle".to_owned(), nothing.to_owned())];
    };
    let several = idle.devices.len() > 1;
    let sum = if several { format!(" over {} devices", idle.devices.len()) } else { String::new() };
    let share = percent(fraction(idle_ns, span_ns));
    let gaps: u64 = idle.devices.iter().map(|device| device.gaps).sum();
    let gaps = format!("{} {}", count(gaps), if gaps == 1 { "gap" } else { "gaps" });
    let mut blocks =
        vec![Block::Heading("Idle".to_owned(), format!("{} of {} span ({share} %), {gaps}{sum}", time(idle_ns), time(span_ns)))];
    let on_device: Ns = idle.causes.iter().filter(|row| row.cause.is_device_side()).map(|row| row.idle_ns).sum();
    let unknown: Ns = idle.causes.iter().filter(|row| row.cause == IdleCause::NothingRecorded).map(|row| row.idle_ns).sum();
    let on_host = idle_ns - on_device - unknown;
    let of_idle = |part: Ns| format!("{} ({} %)", time(part), percent(fraction(part, idle_ns)));
    blocks.push(Block::Facts(vec![
        ("host side", format!("{}: the work was not launched yet", of_idle(on_host))),
        ("device side", format!("{}: it was launched, a faster host would not help", of_idle(on_device))),
        ("not told", format!("{}: nothing recorded", of_idle(unknown))),
        ("queue", queue_in_words(&idle.queue)),
    ]));
    if several {
        blocks.push(Block::Table(devices(idle, trace)));
    }
    blocks.push(Block::Title("By cause"));
    blocks.push(Block::Table(causes(&idle.causes, idle_ns, trace, several)));
    if !idle.by_range.is_empty() || layout.ranges_filtered_out > 0 {
        blocks.push(Block::Title("By range"));
        blocks.push(Block::Table(ranges(idle, layout)));
    }
    blocks.push(Block::Title("By host frame"));
    blocks.push(Block::Table(frames(idle, idle_ns, layout)));
    if let Some(host_samples) = &idle.host_samples {
        blocks.push(Block::Title("CPU samples of launching threads, while a device waited for their launch"));
        blocks.push(Block::Table(samples(host_samples, layout)));
    }
    let strips = idle.devices.iter().take(QUEUES_DRAWN).filter_map(|device| {
        let name = if several { format!("{}: ", device_label(trace, device.device)) } else { String::new() };
        queue_strip(device, "queue", &name).map(Block::Strip)
    });
    blocks.extend(strips);
    if idle.unsplit_gaps > 0 {
        blocks.push(Block::Notes(vec![format!(
            "{} gaps are not split: more than {} devices waited for one thread, so all of each went to what it did as the gap began",
            count(idle.unsplit_gaps),
            IdleTable::SPLIT_TOGETHER
        )]));
    }
    blocks
}
