//! Damaged documents: the readable part is read, and the damage is counted.

use longpole_trace::ProblemCode;

use crate::support::{corpus, counts, document, dump_rows, event, read};

fn names(bytes: &[u8]) -> (Vec<String>, Vec<(&'static str, u64)>) {
    let got = read(bytes, 2);
    let names = got.trace.host_ops.name.iter().map(|id| got.trace.strings.get(*id).to_owned()).collect();
    let counts = counts(&got.problems).into_iter().filter(|(code, _)| *code != "no_device_activity").collect();
    (names, counts)
}

#[test]
fn a_cut_file_gives_its_complete_events() {
    let bytes = corpus("bad");
    let whole = read(&bytes, 2);
    let rows = |text: &str| text.lines().skip(2).map(str::to_owned).collect::<std::collections::HashSet<_>>();
    let all = rows(&dump_rows(&whole.trace, false));
    let mut last = 0;
    for cut in (4_000..bytes.len() - 200).step_by(3_777) {
        let got = read(&bytes[..cut], 2);
        assert!(rows(&dump_rows(&got.trace, false)).is_subset(&all), "cut at {cut}");
        assert!(got.trace.events_read >= last, "cut at {cut}");
        last = got.trace.events_read;
        let problem = got.problems.get(ProblemCode::Truncated).unwrap_or_else(|| panic!("cut at {cut} is not noticed"));
        assert_eq!(problem.first_offset, Some(cut as u64));
        assert_eq!(problem.time, got.trace.window.bounds().map(|(_, end)| end));
    }
    assert!(whole.problems.get(ProblemCode::Truncated).is_none());
}

#[test]
fn a_cut_gzip_member_gives_what_was_inflated() {
    use std::io::Write as _;
    let bytes = corpus("qwen3_stack");
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(&bytes).unwrap();
    let packed = encoder.finish().unwrap();
    let got = read(&packed[..packed.len() / 2], 2);
    assert!(got.trace.events_read > 1_000);
    let counts = counts(&got.problems);
    assert!(counts.contains(&("truncated", 1)) && counts.contains(&("damaged_compression", 1)), "{counts:?}");
}

#[test]
fn an_unescaped_quote_costs_one_event() {
    let events = [
        event("cpu_op", "before", "1", "2", ""),
        event("cpu_op", r#"a "quoted" name"#, "4", "2", ""),
        event("cpu_op", "after", "7", "2", ""),
    ];
    let (names, counts) = names(&document(&events));
    assert_eq!(names, ["before", "after"]);
    assert_eq!(counts, [("malformed_event", 1)]);
}

#[test]
fn broken_events_do_not_take_their_neighbours_along() {
    for broken in [
        r#"{"ph": "X", "cat": "cpu_op", "name" "x", "ts": 1, "dur": 1}"#,
        r#"{"ph": "X", "cat": "cpu_op", "name": "x", "dur": , "ts": }"#,
        r#"{"ph": "X", "cat": "cpu_op", "name": "x", "ts": 1, "dur": 1, "args": {"correlation": 1}"#,
        r#"{"ph": "X", "cat": "cpu_op", "name": "x", "ts": 1, "dur": 1, "args": {"correlation": "#,
        r#"{"ph": "X", "cat": "cpu_op", "name": "x", "ts": 1, "dur": 1, "args": {"correlation": 1"#,
        r#"{"ph": "X", "cat": "cpu_op", "name": "x", "ts": 1, "dur": 1"#,
        r#"{"ph": "X", "args": {"list": ["a "b"]}}"#,
        r#"{"ph": "X", "cat": "cpu_op", "name": "x"}}"#,
        r"]]]",
        r#""text""#,
    ] {
        let events = [event("cpu_op", "before", "1", "2", ""), broken.to_owned(), event("cpu_op", "after", "7", "2", "")];
        let mut bytes = document(&events);
        if broken.starts_with(']') {
            // Closing brackets end the event list: what follows is not an event any more.
            let (names, counts) = names(&bytes);
            assert_eq!(names, ["before"], "{broken}");
            assert!(!counts.is_empty(), "{broken}");
            continue;
        }
        bytes.push(b'\n');
        let (names, counts) = names(&bytes);
        assert_eq!(names, ["before", "after"], "{broken}");
        assert!(counts.contains(&("malformed_event", 1)), "{broken}: {counts:?}");
    }
}

#[test]
fn names_with_odd_characters_are_kept() {
    let mut bytes = document(&[event("cpu_op", "C:\\Windows\\path", "1", "2", ""), event("cpu_op", "tab\there", "4", "2", "")]);
    let at = bytes.windows(4).position(|w| w == b"path").unwrap();
    bytes[at] = 0xff;
    let (names, counts) = names(&bytes);
    assert_eq!(names, ["C:\\Windows\\\u{FFFD}ath", "tab\there"]);
    assert_eq!(counts, [("bad_utf8", 1)]);
}

#[test]
fn times_that_are_no_numbers_are_missing_and_negative_durations_are_zero() {
    let events = [
        event("cpu_op", "good", "1", "2", ""),
        event("cpu_op", "nan", "NaN", "2", ""),
        event("cpu_op", "quoted", "\"5\"", "2", ""),
        event("cpu_op", "negative", "9", "-3", ""),
        r#"{"ph": "X", "cat": "cpu_op", "name": "no time", "pid": 1, "tid": 1}"#.to_owned(),
    ];
    let (names, counts) = names(&document(&events));
    assert_eq!(names, ["good", "quoted", "negative"]);
    assert_eq!(counts, [("missing_time", 2), ("negative_duration", 1), ("not_a_number", 1)]);
}

#[test]
fn damaged_metadata_does_not_hide_the_events() {
    let text = format!(r#"{{"note": "a "quoted" word", }}, "traceEvents": [{}]}}"#, event("cpu_op", "found", "1", "2", ""));
    let (names, counts) = names(text.as_bytes());
    assert_eq!(names, ["found"]);
    assert_eq!(counts, [("malformed_event", 1)]);
}
