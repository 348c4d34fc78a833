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
        assert_eq!(problem.time, got.trace.window.bounds().map(|(start, end)| end - start));
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
        event("cpu_op", "negative", "9", "-1", ""),
        event("cpu_op", "backwards", "9", "-3", ""),
        r#"{"ph": "X", "cat": "cpu_op", "name": "no time", "pid": 1, "tid": 1}"#.to_owned(),
    ];
    let (names, counts) = names(&document(&events));
    assert_eq!(names, ["good", "quoted", "negative", "backwards"]);
    assert_eq!(counts, [("missing_time", 2), ("negative_duration", 1), ("end_before_start", 1), ("not_a_number", 1)]);
}

#[test]
fn damaged_metadata_does_not_hide_the_events() {
    let text = format!(r#"{{"note": "a "quoted" word", }}, "traceEvents": [{}]}}"#, event("cpu_op", "found", "1", "2", ""));
    let (names, counts) = names(text.as_bytes());
    assert_eq!(names, ["found"]);
    assert_eq!(counts, [("malformed_event", 1)]);
}

/// Time stamps that were never set would stretch the window by years; a trace that begins at zero keeps its first event.
#[test]
fn times_that_were_never_set_are_set_aside() {
    let far = [
        event("cpu_op", "unset", "0", "0", ""),
        event("kernel", "unset", "-5", "2", ""),
        event("cpu_op", "a", "5107982190005.803", "2", ""),
        event("kernel", "k", "5107982190006", "3", ""),
    ];
    let got = read(&document(&far), 2);
    assert_eq!((got.trace.host_ops.len(), got.trace.activities.len()), (1, 1));
    let problem = got.problems.get(ProblemCode::UnsetTime).unwrap();
    assert_eq!((problem.count, problem.first_offset), (2, Some(37)));
    assert_eq!(got.trace.window.bounds().map(|(a, b)| (b - a).get()), Some(3_197));
    let near = [event("cpu_op", "first", "0", "10", ""), event("cpu_op", "second", "12", "2", "")];
    let (names, counts) = names(&document(&near));
    assert_eq!((names, counts), (vec!["first".to_owned(), "second".to_owned()], vec![]));
}

/// Two rank files written into one: two recordings, whose equal process and correlation numbers do not mix.
#[test]
fn documents_one_after_the_other_are_recordings_of_their_own() {
    for name in ["bad", "qwen3_stack"] {
        let bytes = corpus(name);
        let one = read(&bytes, 2);
        for (gap, threads) in [("", 1), ("\n\n", 3)] {
            let got = read(&[&bytes[..], gap.as_bytes(), &bytes[..]].concat(), threads);
            assert_eq!(got.trace.ranks.iter().map(|rank| rank.rank).collect::<Vec<_>>(), [0, 1]);
            assert_eq!(got.trace.events_read, 2 * one.trace.events_read);
            assert_eq!(got.trace.activities.len(), 2 * one.trace.activities.len());
            assert_eq!((got.trace.threads.len(), got.trace.devices.len()), (2 * one.trace.threads.len(), 2 * one.trace.devices.len()));
            assert_eq!(got.source.bytes, (2 * bytes.len() + gap.len()) as u64);
            assert_eq!(got.problems.get(ProblemCode::ConcatenatedDocuments).map(|p| p.count), Some(1));
            assert!(got.problems.get(ProblemCode::Truncated).is_none());
            let half = dump_rows(&got.trace, true).lines().filter(|line| line.starts_with("op ") && line.contains(" 1/")).count();
            assert_eq!(half, one.trace.host_ops.len());
        }
        let cut = read(&[&bytes[..], &bytes[..bytes.len() / 2]].concat(), 2);
        assert!(cut.problems.get(ProblemCode::Truncated).is_some());
        assert!(cut.trace.events_read > one.trace.events_read);
    }
    let list = format!("[{}]", event("cpu_op", "a", "1", "2", ""));
    let (names, counts) = names(format!("{list}{list}").as_bytes());
    assert_eq!(names, ["a", "a"]);
    assert_eq!(counts, [("concatenated_documents", 1)]);
}

/// Writers that print the same key twice, a comma too many, or numbers past 64 bits.
#[test]
fn oddities_that_are_no_damage() {
    let events = [
        event(
            "kernel",
            "k",
            "1",
            "2",
            r#", "args": {"device": 0, "stream": 3, "stream": 7, "correlation": 99999999999999999999999, "Addr": 18446744073709551616,},"#,
        ),
        event("cpu_op", "a", "1", "2", ""),
    ];
    let text = format!(r#"{{"traceEvents": [{},], "traceName": "t",}}"#, events.join(","));
    let got = read(text.as_bytes(), 1);
    assert_eq!((got.trace.host_ops.len(), got.trace.lanes[0].stream, got.trace.activities.correlation(0)), (1, 7, None));
    assert!(got.problems.is_empty(), "{:?}", got.problems);
}

/// A small generator of repeatable random numbers (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}

/// Cut anywhere, a file is never called whole; edited anywhere, it is read to some end.
#[test]
fn random_cuts_and_edits() {
    for name in ["bad", "nccl_rank0", "gpuonly"] {
        let bytes = corpus(name);
        let mut random = Random(0x9E37_79B9_7F4A_7C15);
        let end = bytes.iter().rposition(|b| *b == b'}').unwrap();
        for _ in 0..200 {
            let cut = random.below(end);
            // Too little to hold an event is an error, which is no grade at all.
            if let Ok(got) = longpole_ingest::import_bytes(&bytes[..cut], 2) {
                let worst = got.problems.worst();
                assert_eq!(worst, Some(longpole_trace::Severity::DataLoss), "{name} cut at {cut}");
            }
        }
        for round in 0..500 {
            let mut edited = bytes.clone();
            for _ in 0..=round % 4 {
                let at = random.below(edited.len());
                match random.below(4) {
                    0 => edited[at] = random.below(256) as u8,
                    1 => edited[at] = br#"{}[]",:\"#[random.below(8)],
                    2 => {
                        edited.remove(at);
                    }
                    _ => edited.insert(at, br#"{}[]",:\"#[random.below(8)]),
                }
            }
            if let Ok(got) = longpole_ingest::import_bytes(&edited, 2) {
                assert!(got.trace.events_read > 0);
            }
        }
    }
}

/// What inflates to a lot of nothing is read in bounded memory and time, whatever the nothing is.
#[test]
fn empty_gigabytes_are_no_trouble() {
    use std::io::Write as _;
    for (filler, usable) in [(b' ', true), (b'[', false), (b'x', false), (b'{', false)] {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        let block = vec![filler; 1 << 20];
        encoder.write_all(if usable { b"{\"traceEvents\": [" } else { b"" }).unwrap();
        for _ in 0..200 {
            encoder.write_all(&block).unwrap();
        }
        if usable {
            encoder.write_all(event("cpu_op", "a", "1", "2", "").as_bytes()).unwrap();
            encoder.write_all(b"]}").unwrap();
        }
        let packed = encoder.finish().unwrap();
        let got = longpole_ingest::import_bytes(&packed, 2);
        assert_eq!(got.is_ok_and(|got| got.trace.host_ops.len() == 1), usable, "{}", char::from(filler));
    }
}

/// One damaged event costs itself, whatever stands in it: its lists, and whatever brackets it leaves behind.
#[test]
fn damage_in_or_around_lists_costs_one_event() {
    let good =
        |range: std::ops::Range<u64>| range.map(|i| event("cpu_op", "good", &format!("{}", 10 * i), "5", "")).collect::<Vec<_>>().join(",");
    let listed = event("cpu_op", "a\"b", "5", "1", r#", "args": {"q": [{"name": 1}, {"name": 2}]}"#);
    let whole = format!(r#"{{"traceEvents": [{},{listed},{}]}}"#, good(1..100), good(100..20_000));
    let (names, counts) = names(whole.as_bytes());
    assert_eq!((names.len(), counts), (19_999, vec![("malformed_event", 1)]));
    for (text, kept) in [
        (format!(r#"{{"traceEvents": [{listed},{}]}}"#, good(1..20)), 19),
        (format!(r#"{{"traceEvents": [5]}},{}]}}"#, good(1..20)), 19),
        (format!(r#"{{"traceEvents": [{}]}},{}]}}"#, good(1..2), good(2..20)), 19),
        (format!(r#"{{"traceEvents": [{},{{"name":1}},{{"name":2}}]}}}},{}]}}"#, good(1..2), good(2..20)), 19),
        (format!(r#"{{"traceEvents": [{}], "traceEvents": [{}]}}"#, good(1..3), good(3..6)), 5),
        (format!(r#"{{"traceEvents": [{}], "note": "a"b", "x": 5}}"#, good(1..4)), 3),
    ] {
        let got = read(text.as_bytes(), 2);
        assert_eq!(got.trace.host_ops.len(), kept, "{text}");
        assert!(got.problems.get(ProblemCode::Truncated).is_none(), "{text}");
        let lost = got.problems.worst() == Some(longpole_trace::Severity::DataLoss);
        assert!(lost || text.matches("traceEvents").count() == 2, "{text}: {:?}", got.problems);
    }
}

#[test]
fn whatever_stands_between_traces_hides_none_of_them() {
    let one = String::from_utf8(document(&[event("cpu_op", "a", "1", "2", "")])).unwrap();
    for (gap, lossy) in [(",", false), ("\0", false), ("\n\u{feff}", false), ("{\"a\": 1}", false), ("[]", false)] {
        let got = read([one.as_str(), gap, one.as_str(), gap, one.as_str()].concat().as_bytes(), 2);
        assert_eq!((got.trace.host_ops.len(), got.trace.ranks.len()), (3, 3), "{gap:?}: {:?}", got.problems);
        assert_eq!(got.problems.worst() == Some(longpole_trace::Severity::DataLoss), lossy, "{gap:?}: {:?}", got.problems);
    }
    assert_eq!(names(format!("{{}}{one}").as_bytes()).0, ["a"]);
    let (_, counts) = names(format!("{one}garbage").as_bytes());
    assert_eq!(counts, [("unread_bytes", 1)]);
    // Many documents need no deep stack and no space for the empty ones.
    let got = read(format!("{}{}", "[]".repeat(100_000), one.repeat(2_000)).as_bytes(), 2);
    assert_eq!((got.trace.host_ops.len(), got.trace.ranks.len()), (2_000, 2_000));
}

#[test]
fn a_checksum_that_does_not_match_is_damage_even_when_the_trace_is_whole() {
    use std::io::Write as _;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
    encoder.write_all(&document(&[event("cpu_op", "a", "1", "2", "")])).unwrap();
    let packed = encoder.finish().unwrap();
    let counts_of = |bytes: &[u8]| counts(&read(bytes, 1).problems).into_iter().map(|(code, _)| code).collect::<Vec<_>>();
    let mut altered = packed.clone();
    let at = altered.windows(8).position(|w| w == b"\"dur\": 2").unwrap() + 7;
    altered[at] = b'9';
    assert_eq!(counts_of(&altered), ["damaged_compression", "no_device_activity"]);
    assert_eq!(counts_of(&packed[..packed.len() - 3]), ["damaged_compression", "no_device_activity"]);
    assert_eq!(counts_of(&[&packed[..], &[0; 600]].concat()), ["trailing_bytes", "no_device_activity"]);
    assert_eq!(counts_of(&packed), ["no_device_activity"]);
}

#[test]
fn what_cannot_be_read_is_not_guessed() {
    let base = event("cpu_op", "a", "100", "50", "");
    for broken in [
        base.replace(r#""tid": 11"#, r#""tid": "#),
        base.replace(r#""tid": 11"#, r#""tid" 11"#),
        base.replace(r#""pid": 10"#, r#""pid":\1"#),
        base.replace(r#""ts": 100"#, r#""ts": 13]1"#),
        base.replace(r#""ts": 100"#, r#""ts": 5 6"#),
        base.replace(r#""name": "a""#, r#""na\me": "a""#),
        base.replace(r#""name": "a""#, r#""name": null"#),
        base.replace(r#""ph": "X", "#, ""),
    ] {
        assert_ne!(broken, base);
        let (names, counts) = names(&document(&[event("cpu_op", "before", "1", "2", ""), broken.clone()]));
        assert_eq!(names, ["before"], "{broken}");
        assert_eq!(counts, [("malformed_event", 1)], "{broken}");
    }
    let (found, counts) = names(&document(&[
        event("cpu_op", "long", "1", "99999999999", ""),
        event("cpu_op", "longer", "1", "9223372036854776", ""),
        base.replace(r#""ph": "X""#, r#""ph": "B""#),
        base.replace(r#""name": "a""#, r#""a\"ph": "s", "name": "kept""#),
    ]));
    assert_eq!(found, ["kept"]);
    assert_eq!(counts, [("missing_time", 1), ("implausible_duration", 1), ("number_too_large", 1), ("unclosed_range", 1)]);
}

/// A kernel with arguments as given, between two operators.
fn with_kernel(args: &str) -> Vec<u8> {
    let kernel = event("kernel", "k", "3", "4", &format!(r#", "args": {{"device": 0, "stream": 7, {args}, "correlation": 5}}"#));
    document(&[event("cpu_op", "before", "1", "2", ""), kernel, event("cpu_op", "after", "9", "2", "")])
}

#[test]
fn an_event_that_is_no_json_is_never_taken_for_one() {
    assert_eq!(names(&with_kernel(r#""grid": [1, 1, 1]"#)).1, []);
    for args in [
        r#""grid":}18, "tid": 1, "ts": 1011, "dur": 10, "args": {"y": 1, "block": [1, 1, 1]"#,
        r#""grid": "#,
        r#""grid": [1[1, 1]"#,
        r#""grid": 1, 1, 1]"#,
        r#""grid": [1, 1, 1"#,
        r#""grid": [[1, 1, 1]"#,
        r#""grid": [[1, "x": [1, 1, 1]"#,
        r#""grid": "x": [1, 1, 1]"#,
        r#""grid" [1, 1, 1]"#,
        r#""grid": [1, 1, 1] 18"#,
        r#""grid": [1, 1, 1] "x""#,
        r#""grid": "x" "y""#,
        r#""grid": 5"y""#,
        "\"grid\": [1, 1, 1] \0",
        r"grid: [1, 1, 1]",
        r", ",
        r#""grid": [, 1]"#,
        r#""grid""#,
        r#""a": 1, "grid", "b": 2"#,
        r#""a": 1, 5, "b": 2"#,
        r#""a": 1, [1, 1, 1], "b": 2"#,
        r#""a": {"grid"}"#,
    ] {
        let got = read(&with_kernel(args), 2);
        let counts = counts(&got.problems);
        assert!(counts.iter().any(|(code, _)| *code == "malformed_event"), "{args}: {counts:?}");
        assert!(got.trace.activities.is_empty(), "{args}");
        assert_eq!(names(&with_kernel(args)).0, ["before", "after"], "{args}");
    }
    // Unusual, and JSON.
    for args in [r#""grid": [ ]"#, r#""a": [{"b": [1]}, { }]"#, r#""a": [[["x"]], [], [[]]]"#, r#""grid": [1, 1, 1], "grid": [1, 1, 1]"#] {
        assert_eq!(names(&with_kernel(args)).1, [], "{args}");
    }
}

#[test]
fn two_events_run_together_are_noticed() {
    let one = event("cpu_op", "one", "1", "2", "");
    let two = event("cpu_op", "two", "5", "2", "");
    let (head, tail) = (&one[..one.find("\"ts\"").unwrap()], &two[two.find("\"cat\"").unwrap()..]);
    let (found, counts) = names(&document(&[format!("{head}{tail}")]));
    assert_eq!((found, counts), (vec!["two".to_owned()], vec![("repeated_member", 1)]));
    let twice = event("cpu_op", "a", "1", "2", r#", "dur": 3"#);
    assert_eq!(names(&document(&[twice])).1, [("repeated_member", 1)]);
}

#[test]
fn events_far_from_all_others_are_set_aside() {
    let day = 86_400_000_000_i64;
    let at = |name: &str, ts: i64| event("cpu_op", name, &ts.to_string(), "5", "");
    let window = |stray: &[i64]| {
        let mut events: Vec<String> = (0..12).map(|i| at("here", 56 * day + 10 * i)).collect();
        events.extend(stray.iter().map(|&ts| at("stray", ts)));
        let got = read(&document(&events), 2);
        let (first, last) = got.trace.window.bounds().unwrap();
        (got.trace.host_ops.len(), (last - first).get(), counts(&got.problems))
    };
    let missing = ("no_device_activity", 1);
    assert_eq!(window(&[5]), (12, 115_000, vec![("stray_time", 1), missing]));
    assert_eq!(window(&[400 * day]), (12, 115_000, vec![("stray_time", 1), missing]));
    assert_eq!(window(&[9_223_372_036_854_775]), (12, 115_000, vec![("stray_time", 1), missing]));
    assert_eq!(window(&[56 * day + day / 2]).2, [missing], "half a day is no damage");
    let two = window(&[400 * day, 400 * day + 1, 400 * day + 2]);
    assert_eq!((two.0, two.2), (15, vec![("separate_runs", 1), missing]), "too many to be a mistake");
    assert_eq!(window(&[0]).2, [("unset_time", 1), missing]);
}

#[test]
fn events_that_all_start_at_once_have_no_time() {
    for ts in ["0", "4838400000000", "-7"] {
        for dur in ["0", "40"] {
            let events: Vec<String> = (0..6).map(|_| event("cpu_op", "a", ts, dur, "")).collect();
            let error = longpole_ingest::import_bytes(&document(&events), 2).unwrap_err().to_string();
            assert!(error.contains("6 events that all start at the same time"), "{error}");
        }
    }
}

#[test]
fn allocator_events_without_a_size_are_called_that() {
    let memory =
        r#"{"ph": "i", "name": "[memory]", "pid": 1, "tid": 1, "ts": 5, "args": {"Bytes": 99999999999999999999, "Device Type": 1}}"#;
    assert_eq!(names(&document(&[event("cpu_op", "a", "1", "2", ""), memory.to_owned()])).1, [("unreadable_size", 1)]);
}

#[test]
fn an_event_list_that_is_none_is_called_that() {
    for (list, found) in [("null", "no list"), (r#"{"a": 1}"#, "no list"), (r#""abc""#, "no list"), ("[]", "no readable event")] {
        let error = longpole_ingest::import_bytes(format!(r#"{{"traceEvents": {list}}}"#).as_bytes(), 1).unwrap_err().to_string();
        assert!(error.contains(found), "{error}");
    }
    let one = document(&[r#"{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "p"}}"#.to_owned()]);
    let error = longpole_ingest::import_bytes(&one, 1).unwrap_err().to_string();
    assert!(error.contains("found 1 event, which is no operator"), "{error}");
}

#[test]
fn processes_with_text_ids_are_told_apart() {
    let events = [("A", "2", "10"), ("B", "3", "2")]
        .map(|(pid, ts, dur)| event("cpu_op", "a", ts, dur, "").replace(r#""pid": 10"#, &format!(r#""pid": "{pid}""#)));
    assert_eq!(read(&document(&events), 1).trace.threads.len(), 2);
}

/// Inputs that once took time with the square of their length.
#[test]
fn nested_damage_takes_linear_time() {
    let flows = format!(r#"{{"traceEvents": [{}"#, r#"{"ph":"s","#.repeat(300_000));
    assert!(longpole_ingest::import_bytes(flows.as_bytes(), 2).is_err());
    let nested = format!(r#"{{"traceEvents": [{}{}"#, r#"{"ph":[1,"#.repeat(400), "0,".repeat(36 << 20));
    assert!(longpole_ingest::import_bytes(nested.as_bytes(), 2).is_err());
}
