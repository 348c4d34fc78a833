//! The same trace in any layout and with any number of threads.

use longpole_trace::Tid;
use serde_json::Value;

use crate::support::{Style, assert_same, corpus, dump, event, read, write};

#[test]
fn threads_do_not_change_the_trace() {
    for name in ["qwen3_eager", "qwen3_graph", "qwen3_stack"] {
        let bytes = corpus(name);
        let one = dump(&read(&bytes, 1).trace);
        for threads in [2, 3, 8] {
            assert_same(&one, &dump(&read(&bytes, threads).trace), &format!("{name} with {threads} threads"));
        }
    }
}

#[test]
fn layout_does_not_change_the_trace() {
    for name in ["bad", "nccl_rank1", "qwen3_stack"] {
        let bytes = corpus(name);
        let want = dump(&read(&bytes, 2).trace);
        let value: Value = serde_json::from_slice(&bytes).unwrap();
        let styles = [
            ("minified", Style { gap: "", colon: "", rotate: 0 }),
            ("one member a line", Style { gap: "\n    ", colon: " ", rotate: 0 }),
            ("crlf and blank lines", Style { gap: "\r\n\r\n\t", colon: " ", rotate: 0 }),
            ("rotated keys", Style { gap: " ", colon: "", rotate: 1 }),
            ("rotated keys, further", Style { gap: "\n", colon: " ", rotate: 3 }),
        ];
        for (label, style) in styles {
            let mut text = String::new();
            write(&value, style, &mut text);
            let got = read(text.as_bytes(), 2);
            assert_same(&want, &dump(&got.trace), &format!("{name}, {label}"));
            assert!(got.problems.get(longpole_trace::ProblemCode::MalformedEvent).is_none());
        }
    }
}

#[test]
fn a_bare_array_is_a_trace_without_metadata() {
    let bytes = corpus("bad");
    let value: Value = serde_json::from_slice(&bytes).unwrap();
    let got = read(value["traceEvents"].to_string().as_bytes(), 2);
    let want = read(&bytes, 2);
    let rows = |text: String| text.lines().filter(|l| l.starts_with("op ") || l.starts_with("act ")).collect::<Vec<_>>().join("\n");
    assert_eq!(got.trace.base_unix_ns, None);
    assert_same(&rows(dump(&want.trace)), &rows(dump(&got.trace)), "bare array");
}

/// Lists of objects inside arguments look like events to the cutter. Here they fill several segments, so that cuts fall
/// inside them and have to be found out.
#[test]
fn nested_lists_that_look_like_events_are_not_events() {
    let fake = r#"{"name": "fake", "ph": "X", "cat": "cpu_op", "pid": 1, "tid": 1, "ts": 1, "dur": 1}"#;
    let nested = format!(r#", "args": {{"frames": [{}]}}"#, vec![fake; 20_000].join(", "));
    let mut events = Vec::new();
    for i in 0..6 {
        events.push(event("cpu_op", "real", &format!("{}", 10 * i), "5", &nested));
        events.push(event("cpu_op", "small", &format!("{}", 10 * i + 6), "1.5", ""));
    }
    let text = format!(r#"{{"traceEvents": [{}]}}"#, events.join(",\n"));
    for threads in [1, 4] {
        let got = read(text.as_bytes(), threads);
        let names: Vec<_> = got.trace.host_ops.name.iter().map(|id| got.trace.strings.get(*id)).collect();
        assert_eq!(names, ["real", "small"].repeat(6), "{threads} threads");
        assert!(got.problems.get(longpole_trace::ProblemCode::MalformedEvent).is_none());
    }
}

/// The same inside a string, where braces and quotes are only text.
#[test]
fn strings_that_look_like_events_are_not_events() {
    let fake = r#"}, {\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"fake\"}, {"ph""#.replace("{\"ph\"", "{ph");
    let events: Vec<_> = (0..4)
        .map(|i| event("cpu_op", "real", &format!("{}", 10 * i), "5", &format!(r#", "args": {{"note": "{}"}}"#, fake.repeat(20_000))))
        .collect();
    let text = format!(r#"{{"traceEvents": [{}]}}"#, events.join(","));
    let got = read(text.as_bytes(), 3);
    assert_eq!(got.trace.host_ops.len(), 4);
    assert_eq!(got.trace.events_read, 4);
}

/// A loop whose rounds are alike but for texts that begin alike: what came last time is a guess, not the answer.
#[test]
fn texts_that_begin_alike_are_told_apart_in_a_loop() {
    let names = ["aten::mm", "aten::mm_out", "aten::", "", r#"aten::\"mm\""#, "aten::mm"];
    let shapes = ["[[1, 2], []]", "[[1, 2], [], []]", "[[1, 2]]", "[]", r#"["]", "[["]"#, "[[1,2], []]"];
    let numbers = ["1", "12", "1234567", "12345678", "-1", "\"12\"", "\"worker\""];
    let pick = |list: &[&'static str], i: usize| list[(i + i / 7 + i / 50) % list.len()];
    let (mut events, mut want) = (Vec::new(), Vec::new());
    for i in 0..600 {
        let [name, shape, types, tid] = [pick(&names, i), pick(&shapes, i), pick(&shapes, i / 2), pick(&numbers, i)];
        events.push(format!(
            r#"{{"ph": "X", "cat": "cpu_op", "name": "{name}", "pid": 7, "tid": {tid}, "ts": {}, "dur": 0.5, "args": {{"Input Dims": {shape}, "Input type": {types}}}}}"#,
            i + 1
        ));
        let canonical = |list: &str| list.replace("1,2", "1, 2");
        let tid = tid.trim_matches('"');
        let tid = tid.parse().map_or_else(|_| Tid::Text(tid.to_owned()), Tid::Number);
        want.push((name.replace('\\', ""), canonical(shape), canonical(types), tid));
    }
    let got = read(format!(r#"{{"traceEvents": [{}]}}"#, events.join(",\n")).as_bytes(), 2);
    let (ops, text) = (&got.trace.host_ops, |id| got.trace.strings.get(id).to_owned());
    let row = |i: usize| {
        let [shapes, types] = [ops.shapes(i), ops.types(i)].map(|id| id.map_or_else(String::new, text));
        (text(ops.name[i]), shapes, types, got.trace.threads[ops.thread[i].index()].tid.clone())
    };
    assert_eq!((0..ops.len()).map(row).collect::<Vec<_>>(), want);
}

#[test]
fn metadata_may_follow_the_events() {
    let mut value: Value = serde_json::from_slice(&corpus("bad")).unwrap();
    let want = dump(&read(&corpus("bad"), 2).trace);
    let members = value.as_object_mut().unwrap();
    let events = members.remove("traceEvents").unwrap();
    let rest = Value::Object(members.clone()).to_string();
    let text = format!(r#"{{"traceEvents": {events}, {}"#, &rest[1..]);
    assert_same(&want, &dump(&read(text.as_bytes(), 2).trace), "metadata last");
}

/// An event of many segments, before others; and a head of many segments.
#[test]
fn giant_events_and_heads_are_whole() {
    let giant = format!(r#", "args": {{"External id": 7, "note": "{}"}}"#, "x".repeat(5 << 20));
    let events = [event("cpu_op", "giant", "1", "5", &giant), event("cpu_op", "after", "8", "1", "")].join(",");
    let environment = format!(r#""environment": {{"A": "{}"}}"#, "y".repeat(3 << 20));
    let text = format!(r#"{{{environment}, "traceEvents": [{events}], {environment}, "baseTimeNanoseconds": 5}}"#);
    for threads in [1, 3] {
        let got = read(text.as_bytes(), threads);
        let names: Vec<_> = got.trace.host_ops.name.iter().map(|id| got.trace.strings.get(*id)).collect();
        assert_eq!(names, ["giant", "after"]);
        assert_eq!(got.trace.host_ops.external_id(0), Some(7));
        assert_eq!(got.trace.base_unix_ns, Some(5));
        assert!(got.problems.get(longpole_trace::ProblemCode::MalformedEvent).is_none(), "{:?}", got.problems);
        assert!(got.problems.get(longpole_trace::ProblemCode::Truncated).is_none(), "{:?}", got.problems);
    }
}
