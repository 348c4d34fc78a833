//! torch's own operator tables, and what ours differs in.
//!
//! Tests take this in from two crates: with a slow reader, which leaves the analysis alone to blame, and with the real importer.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use longpole_analysis::{GroupBy, HostRow, NodeId, OpRow, OpRowKind, Scope, TraceIndex, op_table};
use longpole_trace::{Ns, StrId, ThreadId, Trace};
use serde::Deserialize;

#[derive(Deserialize)]
struct TorchRow {
    key: String,
    count: u64,
    cpu_time_total: f64,
    self_cpu_time_total: f64,
    device_time_total: f64,
    self_device_time_total: f64,
    self_cpu_memory_usage: i64,
    self_device_memory_usage: i64,
    is_user_annotation: bool,
    device_type: String,
    input_shapes: String,
}

/// Traces with a `key_averages()` beside them: trace, its table, how it is grouped.
pub(crate) const CASES: [(&str, &str, GroupBy); 9] = [
    ("bad", "bad", GroupBy::Name),
    ("cpuonly", "cpuonly", GroupBy::Name),
    ("gpuonly", "gpuonly", GroupBy::Name),
    ("qwen3_compile", "qwen3_compile", GroupBy::Name),
    ("qwen3_eager", "qwen3_eager", GroupBy::Name),
    ("qwen3_eager", "qwen3_eager_shapes", GroupBy::Shape),
    ("qwen3_graph", "qwen3_graph", GroupBy::Name),
    ("qwen3_item", "qwen3_item", GroupBy::Name),
    ("qwen3_stack", "qwen3_stack", GroupBy::Name),
];

/// The folder of recorded traces.
pub(crate) fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/kineto")
}

fn micros(value: f64) -> i64 {
    (value * 1000.0).round() as i64
}

type Key = (String, String);

fn torch_rows(path: &Path) -> Vec<TorchRow> {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Host rows of the operator table: what both sides have.
fn is_host_row(row: &TorchRow, overheads: &[&str]) -> bool {
    row.device_type.ends_with("CPU") && !row.is_user_annotation && row.key != "[memory]" && !overheads.contains(&row.key.as_str())
}

/// Overhead time directly inside the calls of each operator or API name. torch takes overhead events for children of what they
/// interrupt, so its self host time is less by this; the host rows that contain none must agree exactly, and these as well.
fn overhead_inside(index: &TraceIndex<'_>) -> HashMap<StrId, Ns> {
    let (trace, tree) = (index.trace(), index.tree());
    let mut inside = HashMap::new();
    for row in 0..trace.overheads.len() {
        let (start, end) = (trace.overheads.start[row], trace.overheads.end(row));
        let around = |thread| {
            let node = tree.innermost_at(thread, start)?;
            std::iter::once(node).chain(tree.ancestors(node)).find(|&node| start < tree.end(node) && end <= tree.end(node))
        };
        let holders: Vec<NodeId> = (0..trace.threads.len()).filter_map(|thread| around(ThreadId::from_index(thread))).collect();
        for node in holders {
            if !matches!(tree.row(node), HostRow::Range(_)) {
                *inside.entry(tree.name(node)).or_insert(Ns::ZERO) += trace.overheads.dur[row];
            }
        }
    }
    inside
}

/// What differs between our operator table of a trace and the one that torch made of the same run.
pub(crate) fn differences(trace: &Trace, table: &str, by: GroupBy) -> Vec<String> {
    let index = TraceIndex::new(trace);
    let ours = op_table(&index, &Scope::whole(), by);
    let overheads: Vec<&str> = trace.overheads.name.iter().map(|&name| trace.strings.get(name)).collect();
    let overhead = overhead_inside(&index);
    let all_theirs = torch_rows(&corpus().join(format!("{table}.keyavg.json")));
    let theirs: BTreeMap<Key, &TorchRow> = all_theirs
        .iter()
        .filter(|row| is_host_row(row, &overheads))
        .map(|row| ((row.key.clone(), row.input_shapes.clone()), row))
        .collect();
    let host_rows = ours.rows.iter().filter(|row| row.kind != OpRowKind::NoOperator);
    let key = |row: &OpRow| (row.name.clone(), row.shapes.clone().unwrap_or_default());
    let ours: BTreeMap<Key, &OpRow> = host_rows.map(|row| (key(row), row)).collect();
    let mut differences = Vec::new();
    for key in ours.keys().filter(|key| !theirs.contains_key(*key)) {
        differences.push(format!("{table}: torch has no row {key:?}"));
    }
    let mut taken_by_overhead = 0;
    for (key, torch) in &theirs {
        let Some(row) = ours.get(key) else {
            differences.push(format!("{table}: no row {key:?}"));
            continue;
        };
        let overhead = trace.strings.find(&key.0).and_then(|name| overhead.get(&name)).copied();
        let mut cells =
            vec![("calls", Some(row.calls as i64), torch.count as i64), ("cpu_ns", row.cpu_ns.map(Ns::get), micros(torch.cpu_time_total))];
        if overhead.is_none() || by == GroupBy::Name {
            let without = row.self_cpu_ns.map(|time| time - overhead.unwrap_or_default());
            cells.push(("self_cpu_ns", without.map(Ns::get), micros(torch.self_cpu_time_total)));
        }
        if row.self_cuda_ns.is_some() {
            cells.push(("self_cuda_ns", row.self_cuda_ns.map(Ns::get), micros(torch.self_device_time_total)));
        }
        if row.self_cpu_mem_bytes.is_some() {
            cells.push(("self_cpu_mem_bytes", row.self_cpu_mem_bytes, torch.self_cpu_memory_usage));
            cells.push(("self_cuda_mem_bytes", row.self_cuda_mem_bytes, torch.self_device_memory_usage));
        }
        for (column, ours, torch) in cells {
            if ours != Some(torch) {
                differences.push(format!("{table}: {key:?} {column}: {ours:?}, torch {torch}"));
            }
        }
        let more = micros(torch.device_time_total) - row.cuda_ns.map_or(0, Ns::get);
        if more < 0 {
            differences.push(format!("{table}: {key:?} cuda_ns is {} more than torch's", -more));
        }
        taken_by_overhead = taken_by_overhead.max(more);
    }
    // torch gives an overhead event the device work of the operator it interrupts, and counts it again under everything around it.
    // So no row can be off by more than what all overhead rows own.
    let overhead_owns: i64 =
        all_theirs.iter().filter(|row| overheads.contains(&row.key.as_str())).map(|row| micros(row.self_device_time_total)).sum();
    if taken_by_overhead > overhead_owns {
        differences.push(format!("{table}: cuda_ns is {taken_by_overhead} less than torch's, of which overhead explains {overhead_owns}"));
    }
    differences
}
