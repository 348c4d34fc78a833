//! `longpole.idle/1`

use longpole_analysis::{CauseRow, DeviceIdle, FrameRow, HostSamples, IdleTable, Queue, QueueSample, RangeIdle};
use longpole_trace::Trace;
use serde::Serialize;

use super::ranges::Names;
use super::{DeviceOut, device, ns};
use crate::header::Header;
use crate::views::{frame_kind, since_first};

#[derive(Serialize)]
struct CauseOut {
    cause: &'static str,
    is_device_side: bool,
    idle_ns: i64,
    intervals: u64,
    largest_ns: i64,
    largest_at_ns: i64,
    largest_on: DeviceOut,
}

#[derive(Serialize)]
struct RangeOut<'a> {
    name: &'a str,
    parents: Names<'a>,
    calls: u64,
    span_ns: i64,
    idle_ns: i64,
    empty_queue_ns: i64,
    causes: Vec<RangeCause>,
}

#[derive(Serialize)]
struct RangeCause {
    cause: &'static str,
    idle_ns: i64,
}

#[derive(Serialize)]
struct Frame<'a> {
    kind: &'static str,
    name: Option<&'a str>,
    inside: Option<&'a str>,
    cause: &'static str,
    idle_ns: i64,
    intervals: u64,
    largest_ns: i64,
}

#[derive(Serialize)]
struct Samples<'a> {
    samples: u64,
    rows: Vec<SampleOut<'a>>,
}

#[derive(Serialize)]
struct SampleOut<'a> {
    name: &'a str,
    samples: u64,
    share_fraction: f64,
}

#[derive(Serialize)]
struct QueueOut {
    window_ns: i64,
    empty_ns: i64,
    empty_fraction: Option<f64>,
    mean_depth: Option<f64>,
    max_depth: u64,
    without_launch: u64,
}

#[derive(Serialize)]
struct Sample {
    start_ns: i64,
    end_ns: i64,
    mean_depth: f64,
    max_depth: u64,
    empty_ns: i64,
}

#[derive(Serialize)]
struct OfDevice {
    #[serde(flatten)]
    device: DeviceOut,
    span_ns: i64,
    idle_ns: i64,
    gaps: u64,
    causes: Vec<CauseOut>,
    queue: QueueOut,
    queue_over_time: Vec<Sample>,
}

#[derive(Serialize)]
struct Body<'a> {
    idle_ns: Option<i64>,
    span_ns: Option<i64>,
    causes: Vec<CauseOut>,
    by_range: Vec<RangeOut<'a>>,
    by_frame: Vec<Frame<'a>>,
    host_samples: Option<Samples<'a>>,
    queue: QueueOut,
    devices: Vec<OfDevice>,
    unsplit_gaps: u64,
}

fn cause(row: &CauseRow, trace: &Trace) -> CauseOut {
    CauseOut {
        cause: row.cause.code(),
        is_device_side: row.cause.is_device_side(),
        idle_ns: row.idle_ns.get(),
        intervals: row.intervals,
        largest_ns: row.largest_ns.get(),
        largest_at_ns: since_first(trace, row.largest_at).get(),
        largest_on: device(trace, row.largest_on),
    }
}

fn range(row: &RangeIdle) -> RangeOut<'_> {
    RangeOut {
        name: &row.name,
        parents: Names(&row.parents),
        calls: row.calls,
        span_ns: row.span_ns.get(),
        idle_ns: row.idle_ns.get(),
        empty_queue_ns: row.empty_queue_ns.get(),
        causes: row.causes.iter().map(|(cause, idle)| RangeCause { cause: cause.code(), idle_ns: idle.get() }).collect(),
    }
}

fn frame(row: &FrameRow) -> Frame<'_> {
    Frame {
        kind: frame_kind(row.kind),
        name: row.name.as_deref(),
        inside: row.inside.as_deref(),
        cause: row.cause.code(),
        idle_ns: row.idle_ns.get(),
        intervals: row.intervals,
        largest_ns: row.largest_ns.get(),
    }
}

fn host_samples(of: &HostSamples) -> Samples<'_> {
    let share = |samples: u64| samples as f64 / of.samples.max(1) as f64;
    let rows = of.rows.iter().map(|row| SampleOut { name: &row.name, samples: row.samples, share_fraction: share(row.samples) });
    Samples { samples: of.samples, rows: rows.collect() }
}

fn queue(queue: &Queue) -> QueueOut {
    QueueOut {
        window_ns: queue.window_ns.get(),
        empty_ns: queue.empty_ns.get(),
        empty_fraction: queue.empty_fraction(),
        mean_depth: queue.mean_depth,
        max_depth: queue.max_depth,
        without_launch: queue.unlaunched,
    }
}

fn sample(sample: &QueueSample, trace: &Trace) -> Sample {
    Sample {
        start_ns: since_first(trace, sample.start).get(),
        end_ns: since_first(trace, sample.end).get(),
        mean_depth: sample.mean_depth,
        max_depth: sample.max_depth,
        empty_ns: sample.empty_ns.get(),
    }
}

fn of_device(row: &DeviceIdle, trace: &Trace) -> OfDevice {
    OfDevice {
        device: device(trace, row.device),
        span_ns: row.span_ns.get(),
        idle_ns: row.idle_ns.get(),
        gaps: row.gaps,
        causes: row.causes.iter().map(|row| cause(row, trace)).collect(),
        queue: queue(&row.queue),
        queue_over_time: row.queue_over_time.iter().map(|row| sample(row, trace)).collect(),
    }
}

/// The document of `longpole idle`. Times at which something happened count from the first event, as `--time` does.
pub fn idle<'a>(header: &Header<'a>, table: &'a IdleTable, trace: &Trace) -> impl Serialize + use<'a> {
    let body = Body {
        idle_ns: ns(table.idle_ns),
        span_ns: ns(table.span_ns),
        causes: table.causes.iter().map(|row| cause(row, trace)).collect(),
        by_range: table.by_range.iter().map(range).collect(),
        by_frame: table.by_frame.iter().map(frame).collect(),
        host_samples: table.host_samples.as_ref().map(host_samples),
        queue: queue(&table.queue),
        devices: table.devices.iter().map(|row| of_device(row, trace)).collect(),
        unsplit_gaps: table.unsplit_gaps,
    };
    super::document("longpole.idle/1", header, body)
}
