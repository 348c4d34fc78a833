//! Shared by the tests: corpus access, documents made and rewritten, and traces as text.

use std::fmt::Write as _;
use std::io::Read as _;
use std::path::PathBuf;

use longpole_ingest::{Imported, import_bytes};
use longpole_trace::{CollectivePlace, Problems, StrId, ThreadId, Trace};
use serde_json::Value;

/// A trace of the repository's corpus, decompressed.
pub(crate) fn corpus(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../corpus/kineto").join(format!("{name}.json.gz"));
    let file = std::fs::File::open(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut out = Vec::new();
    flate2::read::MultiGzDecoder::new(file).read_to_end(&mut out).unwrap();
    out
}

/// Imports a document that must be usable.
pub(crate) fn read(bytes: &[u8], threads: usize) -> Imported {
    import_bytes(bytes, threads).unwrap_or_else(|e| panic!("{e}"))
}

/// A whole trace as text, a line a row, ids resolved, so that two traces can be compared and a difference read.
pub(crate) fn dump(trace: &Trace) -> String {
    dump_rows(trace, true)
}

/// The same; without thread names when they come at the end of the file and that end may be missing.
pub(crate) fn dump_rows(trace: &Trace, thread_names: bool) -> String {
    let mut out = String::new();
    let text = |id: StrId| trace.strings.get(id);
    let opt = |id: Option<StrId>| id.map_or("-", text).to_owned();
    let thread = |id: ThreadId| {
        let thread = &trace.threads[id.index()];
        let process = &trace.processes[thread.process.index()];
        format!("{}/{}/{:?}/{}", process.rank, process.pid, thread.tid, opt(thread.name.filter(|_| thread_names)))
    };
    let _ = writeln!(out, "window {:?} base {:?} events {}", trace.window.bounds(), trace.base_unix_ns, trace.events_read);
    let _ = writeln!(out, "{:?} {:?} {:?} {:?}", trace.ranks, trace.devices, trace.versions, trace.recorded);
    let t = &trace.host_ops;
    for i in 0..t.len() {
        let (shapes, types, strides, values) = (opt(t.shapes(i)), opt(t.types(i)), opt(t.strides(i)), opt(t.values(i)));
        let _ = writeln!(
            out,
            "op {} {} {} {} {:?} {shapes} {types} {strides} {values}",
            text(t.name[i]),
            thread(t.thread[i]),
            t.start[i],
            t.dur[i],
            t.external_id(i)
        );
    }
    let t = &trace.api_calls;
    for i in 0..t.len() {
        let ids = (t.correlation(i), t.external_id(i));
        let _ = writeln!(out, "api {} {} {} {} {ids:?}", text(t.name[i]), thread(t.thread[i]), t.start[i], t.dur[i]);
    }
    let t = &trace.activities;
    for i in 0..t.len() {
        let lane = &trace.lanes[t.lane[i].index()];
        let device = &trace.devices[lane.device.index()];
        let ids = (t.correlation(i), t.external_id(i));
        let detail = t.detail(i).map(|d| trace.details[d.index()]);
        let node = t.graph_node(i).map(|n| trace.graph_nodes[n.index()]);
        let place = (device.rank, device.ordinal, lane.context, lane.stream);
        let (name, start, dur) = (text(t.name[i]), t.start[i], t.dur[i]);
        let _ = writeln!(out, "act {:?} {name} {place:?} {start} {dur} {ids:?} {detail:?} {node:?}", t.kind[i]);
    }
    let t = &trace.ranges;
    for i in 0..t.len() {
        let _ = writeln!(out, "range {} {} {} {}", text(t.name[i]), thread(t.thread[i]), t.start[i], t.dur[i]);
    }
    let t = &trace.memory;
    for i in 0..t.len() {
        let totals = (t.device(i), t.total_allocated(i), t.total_reserved(i));
        let _ = writeln!(out, "mem {} {} {} {:?} {totals:?}", thread(t.thread[i]), t.start[i], t.bytes[i], t.place[i]);
    }
    let t = &trace.frames;
    for i in 0..t.len() {
        let _ = writeln!(out, "frame {} {} {} {}", text(t.name[i]), thread(t.thread[i]), t.start[i], t.dur[i]);
    }
    let t = &trace.collectives;
    for i in 0..t.len() {
        let row = t.get(i);
        let texts = [row.name, row.group, row.group_ranks, row.dtype].map(opt);
        let place = match row.place {
            CollectivePlace::Host(id) => thread(id),
            CollectivePlace::Device(id) => format!("{:?}", trace.lanes[id.index()]),
        };
        let numbers = (row.group_size, row.in_elements, row.out_elements, row.sequence, row.source_rank, row.destination_rank);
        let _ = writeln!(out, "collective {place} {} {texts:?} {numbers:?}", row.start);
    }
    let t = &trace.overheads;
    for i in 0..t.len() {
        let _ = writeln!(out, "overhead {} {} {}", text(t.name[i]), t.start[i], t.dur[i]);
    }
    out
}

/// Asserts equality and shows the first lines that differ, not megabytes.
pub(crate) fn assert_same(left: &str, right: &str, what: &str) {
    if left == right {
        return;
    }
    let differing = left.lines().zip(right.lines()).enumerate().find(|(_, (a, b))| a != b);
    panic!("{what}: {} and {} lines; first difference {differing:?}", left.lines().count(), right.lines().count());
}

/// Problems as `code count`.
pub(crate) fn counts(problems: &Problems) -> Vec<(&'static str, u64)> {
    problems.iter().map(|p| (p.code.describe().0, p.count)).collect()
}

/// An event with the members every complete event has; `more` is appended to its members.
pub(crate) fn event(cat: &str, name: &str, ts: &str, dur: &str, more: &str) -> String {
    format!(r#"{{"ph": "X", "cat": "{cat}", "name": "{name}", "pid": 10, "tid": 11, "ts": {ts}, "dur": {dur}{more}}}"#)
}

/// A document around events.
pub(crate) fn document(events: &[String]) -> Vec<u8> {
    format!(r#"{{"schemaVersion": 1, "traceEvents": [{}], "traceName": "t"}}"#, events.join(", ")).into_bytes()
}

/// How to write JSON.
#[derive(Clone, Copy)]
pub(crate) struct Style {
    /// Between members and elements, and after brackets.
    pub(crate) gap: &'static str,
    /// After colons.
    pub(crate) colon: &'static str,
    /// Rotates the members of every object by this many.
    pub(crate) rotate: usize,
}

/// Writes a JSON value in a style; numbers keep their text.
pub(crate) fn write(value: &Value, style: Style, out: &mut String) {
    match value {
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                out.push_str(if i > 0 { "," } else { "" });
                out.push_str(style.gap);
                write(item, style, out);
            }
            out.push_str(style.gap);
            out.push(']');
        }
        Value::Object(members) => {
            out.push('{');
            let keys: Vec<_> = members.keys().collect();
            for i in 0..keys.len() {
                let key = keys[(i + style.rotate) % keys.len()];
                out.push_str(if i > 0 { "," } else { "" });
                out.push_str(style.gap);
                let _ = write!(out, "{}{}:{}", Value::String(key.clone()), style.colon, style.colon);
                write(&members[key], style, out);
            }
            out.push_str(style.gap);
            out.push('}');
        }
        other => {
            let _ = write!(out, "{other}");
        }
    }
}
