//! A slow, plain reader of the Kineto traces in the corpus, so that analyses are tested apart from the real importer.
//!
//! It knows the current layout only and fails on anything unexpected. Times go from decimal text to nanoseconds exactly.

use std::io::Read;
use std::path::Path;

use longpole_trace::{
    Activity, ActivityKind, ApiCall, Collective, CollectivePlace, HostOp, Lane, MemoryEvent, MemoryPlace, Ns, Overhead, PythonFrame, Range,
    RankInfo, Tid, Trace, TraceBuilder,
};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a> {
    #[serde(borrow)]
    trace_events: Vec<Event<'a>>,
    #[serde(default, rename = "profile_memory")]
    profile_memory: i64,
    #[serde(default, rename = "record_shapes")]
    record_shapes: i64,
    #[serde(default, rename = "with_stack")]
    with_stack: i64,
    #[serde(default)]
    base_time_nanoseconds: i64,
    #[serde(default)]
    distributed_info: Distributed,
}

#[derive(Default, Deserialize)]
struct Distributed {
    rank: u32,
    world_size: u32,
}

#[derive(Deserialize)]
struct Event<'a> {
    ph: String,
    #[serde(default)]
    cat: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    pid: Value,
    #[serde(default)]
    tid: Value,
    #[serde(borrow, default)]
    ts: Option<&'a RawValue>,
    #[serde(borrow, default)]
    dur: Option<&'a RawValue>,
    #[serde(default)]
    args: Value,
}

/// Nanoseconds from a decimal number of microseconds.
fn nanoseconds(text: Option<&RawValue>) -> Ns {
    let text = text.map_or("0", RawValue::get);
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let fraction = format!("{fraction:0<3}");
    assert_eq!(fraction.len(), 3, "finer than a nanosecond: {text}");
    let sign = if whole.starts_with('-') { -1 } else { 1 };
    Ns(whole.parse::<i64>().unwrap() * 1000 + sign * fraction.parse::<i64>().unwrap())
}

/// JSON lists as Python prints them: a blank after each comma.
fn python_text(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("[{}]", items.iter().map(python_text).collect::<Vec<_>>().join(", ")),
        other => other.to_string(),
    }
}

pub(crate) fn read(path: &Path) -> Trace {
    read_part(path, 100)
}

/// The first events of a file, as of one that was cut after that many percent of them.
pub(crate) fn read_part(path: &Path, percent: usize) -> Trace {
    let mut builder = TraceBuilder::new();
    add_file(&mut builder, path, percent);
    builder.finish()
}

/// Adds a file as a rank; returns the base of its times.
pub(crate) fn add_file(builder: &mut TraceBuilder, path: &Path, percent: usize) -> i64 {
    let bytes = std::fs::read(path).unwrap();
    let mut text = String::new();
    flate2::read::MultiGzDecoder::new(&bytes[..]).read_to_string(&mut text).unwrap();
    add_text(builder, &text, percent)
}

pub(crate) fn add_text(builder: &mut TraceBuilder, text: &str, percent: usize) -> i64 {
    let document: Document<'_> = serde_json::from_str(text).unwrap();
    let info = &document.distributed_info;
    let world_size = Some(info.world_size).filter(|&size| size > 0);
    let rank = builder.add_rank(RankInfo { rank: info.rank, world_size, ..RankInfo::default() });
    let recorded = &mut builder.trace_mut().recorded;
    recorded.memory = document.profile_memory == 1;
    recorded.shapes = document.record_shapes == 1;
    recorded.stacks = document.with_stack == 1;
    for event in &document.trace_events[..document.trace_events.len() * percent / 100] {
        add(builder, rank, event);
    }
    document.base_time_nanoseconds
}

/// What the arguments say of a collective.
fn add_collective(builder: &mut TraceBuilder, place: CollectivePlace, start: Ns, args: &Value) {
    if args.get("Collective name").is_none() {
        return;
    }
    let mut text = |key: &str| args.get(key).and_then(Value::as_str).map(|text| builder.trace_mut().strings.intern(text));
    let number = |key: &str| args.get(key).and_then(Value::as_u64);
    let row = Collective {
        place,
        start,
        name: text("Collective name"),
        group: text("Process Group Name"),
        group_ranks: text("Process Group Ranks"),
        dtype: text("dtype"),
        group_size: number("Group size").map(|size| size as u32),
        in_elements: number("In msg nelems"),
        out_elements: number("Out msg nelems"),
        sequence: number("Seq"),
        source_rank: None,
        destination_rank: None,
    };
    builder.push_collective(row);
}

fn add(builder: &mut TraceBuilder, rank: u32, event: &Event<'_>) {
    let (start, dur) = (nanoseconds(event.ts), nanoseconds(event.dur));
    let name = builder.trace_mut().strings.intern(&event.name);
    let number = |key: &str| event.args.get(key).and_then(Value::as_u64);
    let (correlation, external_id) = (number("correlation"), number("External id"));
    let is_host = matches!(event.cat.as_str(), "cpu_op" | "user_annotation" | "cuda_runtime" | "cuda_driver" | "python_function");
    if event.ph == "X" && is_host || event.cat == "cpu_instant_event" {
        let process = builder.process(rank, event.pid.as_i64().unwrap());
        let thread = builder.thread(process, Tid::Number(event.tid.as_i64().unwrap()));
        builder.trace_mut().window.include(start, start + dur);
        match event.cat.as_str() {
            "cpu_op" => {
                let text = |key: &str| event.args.get(key).map(python_text);
                let keys = ["Input Dims", "Input type", "Input Strides", "Concrete Inputs"];
                let strings = &mut builder.trace_mut().strings;
                let [shapes, types, strides, values] = keys.map(|key| text(key).map(|text| strings.intern(&text)));
                add_collective(builder, CollectivePlace::Host(thread), start, &event.args);
                builder.push_host_op(HostOp { name, thread, start, dur, external_id, shapes, types, strides, values });
            }
            "user_annotation" => builder.push_range(Range { name, thread, start, dur }),
            "python_function" => builder.push_frame(PythonFrame { name, thread, start, dur }),
            "cpu_instant_event" => {
                let place = if number("Device Type") == Some(0) { MemoryPlace::Host } else { MemoryPlace::Device };
                builder.push_memory_event(MemoryEvent {
                    thread,
                    start,
                    bytes: event.args["Bytes"].as_i64().unwrap(),
                    place,
                    device: number("Device Id").map(|id| id as u32),
                    total_allocated: number("Total Allocated"),
                    total_reserved: number("Total Reserved"),
                });
            }
            _ => builder.push_api_call(ApiCall { name, thread, start, dur, correlation, external_id }),
        }
        return;
    }
    let kind = match event.cat.as_str() {
        "kernel" => ActivityKind::Kernel,
        "gpu_memcpy" => ActivityKind::Memcpy,
        "gpu_memset" => ActivityKind::Memset,
        "overhead" => {
            builder.push_overhead(Overhead { name, start, dur });
            return;
        }
        _ => return,
    };
    builder.trace_mut().window.include(start, start + dur);
    let device = builder.device(rank, event.pid.as_i64().unwrap());
    let lane = builder.lane(Lane { device, context: event.args["context"].as_i64(), stream: event.tid.as_i64().unwrap() });
    add_collective(builder, CollectivePlace::Device(lane), start, &event.args);
    builder.push_activity(Activity { kind, name, lane, start, dur, correlation, external_id, detail: None, graph_node: None });
}
