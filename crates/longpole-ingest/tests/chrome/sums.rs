//! Counts and sums of every sample against those of a plain reader: `chrome_sums.py`, whose answers lie beside the samples, and here for
//! files that may not be in the repository.

use std::collections::BTreeMap;
use std::io::Write as _;

use crate::support::{Sums, bytes, calls, corpus, corpus_bytes, frames, ops, public, ranges, read, work, work_by_op};

/// The answers of `chrome_sums.py` for a sample, by what they are sums of.
fn expected(file: &str) -> BTreeMap<String, Sums> {
    let text = std::fs::read_to_string(corpus().join("chrome_sums.txt")).unwrap();
    let mut kinds: BTreeMap<String, Sums> = BTreeMap::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.splitn(4, '\t').collect();
        let [name, count, total, key] = fields[..] else { panic!("{line}") };
        if name == file {
            let (kind, key) = key.split_once(' ').unwrap();
            kinds.entry(kind.to_owned()).or_default().insert(key.to_owned(), (count.parse().unwrap(), total.parse().unwrap()));
        }
    }
    assert!(!kinds.is_empty(), "{file} has no sums");
    kinds
}

#[test]
fn jax() {
    let (expected, found) = (expected("jax.trace.json.gz"), read(&corpus_bytes("jax.trace.json.gz")));
    assert_eq!(work(&found), expected["work"]);
    assert_eq!(work_by_op(&found), expected["op"]);
    // Every other event of the file is a row of one of the host's tables; Python frames lose the sign that marks them.
    let mut host = Sums::new();
    for (name, (count, total)) in [calls(&found), ranges(&found)].into_iter().flatten() {
        let sum = host.entry(name).or_default();
        *sum = (sum.0 + count, sum.1 + total);
    }
    host.extend(frames(&found).into_iter().map(|(name, sum)| (format!("${name}"), sum)));
    assert_eq!(host, expected["host"]);
}

#[test]
fn onnx_runtime() {
    let (expected, found) = (expected("onnx_cuda.json"), read(&corpus_bytes("onnx_cuda.json")));
    assert_eq!(work(&found), expected["work"]);
    assert_eq!(ops(&found), expected["op"]);
    let named = expected["host"].iter().filter(|(name, _)| *name != "_kernel_time");
    let nodes: Sums = named.map(|(name, sum)| (name.trim_end_matches("_kernel_time").to_owned(), *sum)).collect();
    assert_eq!(ranges(&found), nodes);
}

#[test]
fn any_chrome_trace() {
    let (expected, found) = (expected("chrome_server.json"), read(&corpus_bytes("chrome_server.json")));
    let mut ranges = ranges(&found);
    let paired: Sums = ["layer", "never closed", "queued", "request", "schedule"]
        .into_iter()
        .map(|name| (name.to_owned(), ranges.remove(name).expect("it is there")))
        .collect();
    assert_eq!(ranges, expected["host"]);
    // What the sample was made with: 12 layers of 840 us, 4 requests of 7.3 ms, ...; the trace ends with the last request.
    let made = [
        ("layer", 12, 10_080_000),
        ("never closed", 1, 300_750),
        ("queued", 4, 402_000),
        ("request", 4, 29_200_000),
        ("schedule", 4, 160_500),
    ];
    assert_eq!(paired, made.into_iter().map(|(name, count, total)| (name.to_owned(), (count, total))).collect());
}

#[test]
fn a_public_profile_of_onnx_runtime() {
    let Some(path) = public("olive_profile_mkldnn_1_threads.json") else {
        let _ = writeln!(std::io::stderr(), "skipped: the public profile is not there (LONGPOLE_SHARED names its folder)");
        return;
    };
    let (bytes, mut by_op, mut by_node, mut fences) = (bytes(&path), Sums::new(), Sums::new(), (0, 0));
    let list: Vec<serde_json::Value> = serde_json::from_slice(&bytes).unwrap();
    for event in &list {
        let dur = event["dur"].as_i64().unwrap() * 1_000;
        let name = event["name"].as_str().unwrap();
        let add = |sums: &mut Sums, name: &str| {
            let sum = sums.entry(name.to_owned()).or_default();
            *sum = (sum.0 + 1, sum.1 + dur);
        };
        if event["cat"] == "Session" {
            add(&mut by_node, name);
        } else if let Some(node) = name.strip_suffix("_kernel_time") {
            add(&mut by_op, event["args"]["op_name"].as_str().unwrap());
            if !node.is_empty() {
                add(&mut by_node, node);
            }
        } else {
            fences = (fences.0 + 1, fences.1 + dur);
        }
    }
    let found = read(&bytes);
    assert_eq!((found.source.format, found.trace.events_read), ("onnxruntime", list.len() as u64));
    assert_eq!(ops(&found), by_op);
    let mut ranges = ranges(&found);
    let waits = ["fence_before", "fence_after"].map(|name| ranges.remove(name).unwrap());
    assert_eq!((waits[0].0 + waits[1].0, waits[0].1 + waits[1].1), fences);
    assert_eq!(ranges, by_node);
}
