//! Chrome traces of unknown writers.

use std::fmt::Write as _;

use longpole_trace::{Recorder, Tid};

use crate::support::{corpus_bytes, ops, problems, ranges, read, work};

#[test]
fn the_sample() {
    let found = read(&corpus_bytes("chrome_server.json"));
    assert_eq!((found.source.format, found.trace.recorder), ("chrome", Recorder::Unknown));
    let codes = [("stray_end", 1), ("unused_event_kind", 4), ("unclosed_range", 1), ("no_operators", 1), ("no_device_activity", 1)];
    assert_eq!(problems(&found), codes);
    // Requests overlap, so they take two lanes.
    let lanes = found.trace.threads.iter().filter(|thread| matches!(&thread.tid, Tid::Text(text) if text.starts_with("async "))).count();
    assert_eq!(lanes, 2);
    let name = |id: Option<longpole_trace::StrId>| id.map(|id| found.trace.strings.get(id));
    assert_eq!(name(found.trace.processes[0].name), Some("server"));
    assert!(found.trace.threads.iter().any(|thread| name(thread.name) == Some("worker")));
}

/// Name, start and duration in nanoseconds.
type Row = (String, i64, i64);

/// Ranges of a list of events, and what was told.
fn pairs(events: &str) -> (Vec<Row>, Vec<(&'static str, u64)>) {
    let found = read(format!(r#"[{events}, {{"ph":"X","name":"end","pid":1,"tid":9,"ts":1,"dur":99}}]"#).as_bytes());
    let table = &found.trace.ranges;
    let mut rows: Vec<_> = (0..table.len())
        .map(|row| (found.trace.strings.get(table.name[row]).to_owned(), table.start[row].get(), table.dur[row].get()))
        .filter(|(name, _, _)| name != "end")
        .collect();
    rows.sort();
    let told = problems(&found).into_iter().filter(|(code, _)| !code.starts_with("no_")).collect();
    (rows, told)
}

#[test]
fn begins_and_ends_are_matched_by_thread_or_by_id() {
    let named = |name: &str, start, dur| (name.to_owned(), start, dur);
    let nested = r#"{"ph":"B","name":"a","pid":1,"tid":1,"ts":1},{"ph":"B","name":"b","pid":1,"tid":1,"ts":2.5},{"ph":"B","name":"a","pid":2,"tid":1,"ts":3},
        {"ph":"E","pid":1,"tid":1,"ts":4},{"ph":"E","pid":2,"tid":1,"ts":5},{"ph":"E","pid":1,"tid":1,"ts":6}"#;
    assert_eq!(pairs(nested), (vec![named("a", 1_000, 5_000), named("a", 3_000, 2_000), named("b", 2_500, 1_500)], vec![]));
    // The same id in another category, scope or process is another range; local ids are of a process, others are not.
    let ids = |member: &str, pid: u8, ts: u8, ph: char| format!(r#"{{"ph":"{ph}","name":"r","pid":{pid},"tid":1,"ts":{ts},{member}}}"#);
    for (member, other, apart) in [
        (r#""cat":"a","id":1"#, r#""cat":"b","id":1"#, true),
        (r#""cat":"a","id":"0x1","scope":"s""#, r#""cat":"a","id":"0x1","scope":"t""#, true),
        (r#""cat":"a","id2":{"local":"0x1"}"#, r#""cat":"a","id2":{"local":"0x1"}"#, true),
        (r#""cat":"a","id2":{"global":"0x1"}"#, r#""cat":"a","id2":{"global":"0x1"}"#, false),
        (r#""cat":"a","id":7"#, r#""cat":"a","id":7"#, false),
        (r#""cat":"a","id":7"#, r#""cat":"a","id":"7""#, false),
    ] {
        let events = [ids(member, 1, 1, 'b'), ids(other, 2, 3, 'b'), ids(member, 1, 4, 'e'), ids(other, 2, 9, 'e')].join(",");
        let expected = if apart { [(1_000, 3_000), (3_000, 6_000)] } else { [(1_000, 8_000), (3_000, 1_000)] };
        let expected = expected.map(|(start, dur)| named("r", start, dur)).to_vec();
        assert_eq!(pairs(&events), (expected, vec![]), "{member} {other}");
    }
    assert_eq!(pairs(&[ids(r#""id":1"#, 1, 1, 'S'), ids(r#""id":1"#, 1, 5, 'F')].join(",")).0, [named("r", 1_000, 4_000)]);
    let untimed = r#"{"ph":"B","name":"a","pid":1,"tid":1},{"ph":"E","name":"a","pid":1,"tid":1,"ts":"x"}"#;
    assert_eq!(pairs(untimed), (vec![], vec![("missing_time", 2)]));
}

#[test]
fn pairs_meet_across_segments() {
    let count = 30_000;
    let mut text = String::from("{\"traceEvents\": [\n");
    for n in 0..count {
        let _ = writeln!(text, r#"{{"ph":"B","name":"r{}","pid":1,"tid":1,"ts":{n}}},"#, n % 7);
    }
    for n in 0..count {
        let _ = writeln!(text, r#"{{"ph":"E","pid":1,"tid":1,"ts":{}}},"#, count + n);
    }
    let found = read((text + "{\"ph\":\"X\",\"name\":\"x\",\"pid\":1,\"tid\":2,\"ts\":1,\"dur\":1}]}").as_bytes());
    let total: i64 = ranges(&found).iter().filter(|(name, _)| *name != "x").map(|(_, sum)| sum.1).sum();
    assert_eq!((found.trace.ranges.len(), total), (count + 1, (0..count as i64).map(|n| (2 * n + 1) * 1_000).sum()));
    assert_eq!(problems(&found), [("no_operators", 1), ("no_device_activity", 1)]);
}

#[test]
fn categories_of_pytorch_keep_their_meaning() {
    let filler =
        format!(r#"{{"ph":"X","cat":"mine","name":"filler","pid":1,"tid":1,"ts":1,"dur":1,"args":{{"text":"{}"}}}}"#, "x".repeat(70_000));
    let late = r#"{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":5,"dur":1},{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":6,"dur":2,"args":{"device":0,"stream":7,"correlation":1}}"#;
    let found = read(format!("[{filler},{late}]").as_bytes());
    assert_eq!(found.source.format, "chrome");
    assert_eq!((ops(&found).len(), work(&found).len(), ranges(&found).len()), (1, 1, 1));
}

/// A trace of one thread, properly nested, in which many times are equal; and its ranges by a stack, in order of opening: name, start,
/// end, and whether its begin and end were written as one complete event.
fn nested(choices: &[(u8, u8, bool)]) -> (String, Vec<(usize, u64, u64)>) {
    let (mut text, mut now) = (String::new(), 0);
    let mut open: Vec<(usize, usize, bool)> = Vec::new();
    let mut found: Vec<(usize, u64, u64)> = Vec::new();
    let mut places: Vec<String> = Vec::new();
    let close = |places: &mut Vec<String>, open: &mut Vec<(usize, usize, bool)>, found: &mut Vec<(usize, u64, u64)>, now: u64| {
        let Some((number, place, is_complete)) = open.pop() else { return };
        found[number].2 = now;
        if is_complete {
            let start = found[number].1;
            places[place] = format!(r#"{{"ph":"X","name":"r{number}","pid":1,"tid":1,"ts":{start},"dur":{}}},"#, now - start);
        } else {
            places.push(format!(r#"{{"ph":"E","name":"r{number}","pid":1,"tid":1,"ts":{now}}},"#));
        }
    };
    for &(what, step, is_complete) in choices {
        now += u64::from(step % 2);
        if what % 2 == 0 {
            let number = found.len();
            found.push((number, now, now));
            open.push((number, places.len(), is_complete));
            places.push(format!(r#"{{"ph":"B","name":"r{number}","pid":1,"tid":1,"ts":{now}}},"#));
        } else {
            close(&mut places, &mut open, &mut found, now);
        }
    }
    while !open.is_empty() {
        close(&mut places, &mut open, &mut found, now);
    }
    for place in places {
        text.push_str(&place);
    }
    (text, found)
}

proptest::proptest! {
    #[test]
    fn ranges_that_begin_together_are_in_order_of_opening(choices in proptest::collection::vec(proptest::prelude::any::<(u8, u8, bool)>(), 1..60)) {
        let (events, expected) = nested(&choices);
        // Two more, since times that are all the same were never set.
        let end = r#"{"ph":"X","name":"end","pid":1,"tid":9,"ts":0,"dur":1},{"ph":"X","name":"end","pid":1,"tid":9,"ts":90,"dur":9}"#;
        let found = read(format!("[{events} {end}]").as_bytes());
        let table = &found.trace.ranges;
        let rows: Vec<_> = (0..table.len())
            .map(|row| (found.trace.strings.get(table.name[row]).to_owned(), table.start[row].get(), table.end(row).get()))
            .filter(|(name, _, _)| name != "end")
            .collect();
        let expected: Vec<_> = expected.into_iter().map(|(number, start, end)| (format!("r{number}"), start as i64 * 1000, end as i64 * 1000)).collect();
        proptest::prop_assert_eq!(rows, expected);
    }
}
