//! Damage to each sample: what is whole is read, or one sentence says what it is; nothing panics, and threads change nothing.

use longpole_ingest::{Imported, import_bytes};

use crate::support::{calls, corpus_bytes, frames, ops, problems, ranges, work};

const SAMPLES: [&str; 3] = ["chrome_server.json", "jax.trace.json.gz", "onnx_cuda.json"];

/// How many rows there are, and what was told, whatever the number of threads; nothing if it is unusable, which must be one sentence.
fn rows(bytes: &[u8]) -> Option<(u64, Vec<(&'static str, u64)>)> {
    let one = |threads| match import_bytes(bytes, threads) {
        Ok(found) => Some((count(&found), problems(&found))),
        Err(error) => {
            let text = error.to_string();
            assert!(!text.contains('\n') && text.len() < 600, "{text}");
            None
        }
    };
    let alone = one(1);
    assert_eq!(alone, one(3));
    alone
}

fn count(found: &Imported) -> u64 {
    let tables = [work(found), calls(found), ranges(found), frames(found), ops(found)];
    tables.iter().flat_map(|sums| sums.values()).map(|(count, _)| count).sum()
}

#[test]
fn a_cut_file_gives_what_is_before_the_cut() {
    for name in SAMPLES {
        let whole = corpus_bytes(name);
        let mut before = 0;
        for cut in (0..whole.len()).step_by(whole.len() / 60) {
            let Some((count, told)) = rows(&whole[..cut]) else {
                assert!(cut < whole.len() / 3, "{name} cut at {cut}");
                continue;
            };
            assert!(count >= before, "{name} cut at {cut}: {count} rows, {before} before");
            assert!(told.iter().any(|(code, _)| *code == "truncated"), "{name} cut at {cut}: {told:?}");
            // A range may lose its end, and end with the trace; operators of XLA's stand only with their launch.
            before = count.saturating_sub(40);
        }
        let end = rows(&whole).expect("it is whole");
        assert!(end.1.iter().all(|(code, _)| *code != "truncated"), "{name}: {end:?}");
    }
}

#[test]
fn garbage_in_the_middle_costs_little() {
    for name in SAMPLES {
        let whole = corpus_bytes(name);
        let (all, _) = rows(&whole).expect("it is whole");
        for (at, garbage) in [(2, "}}}]]"), (3, "\"\"\"\u{0}\u{1}"), (4, "{\"ph\":\"X\",\"name\":"), (5, "[[[[{{{{"), (6, "\\\\\\")] {
            let at = whole.len() * at / 8;
            let damaged = [&whole[..at], garbage.as_bytes(), &whole[at + 9..]].concat();
            let (found, told) = rows(&damaged).unwrap_or_else(|| panic!("{name} is unusable with {garbage}"));
            // Some of it lands inside a name, where it is a name.
            assert!(found * 2 > all && (!told.is_empty() || found == all), "{name}, {garbage}: {found} of {all} rows, {told:?}");
        }
    }
}

#[test]
fn wrong_types_huge_numbers_deep_nesting_and_hostile_names() {
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    let objects = format!("{}1{}", "{\"a\":".repeat(100_000), "}".repeat(100_000));
    let values = [
        "null",
        "true",
        "-1",
        "1e999",
        "99999999999999999999999999",
        "\"\"",
        "\"$$99999999999999999999\"",
        "\"\\u001b[31m\\u202e\"",
        "[]",
        "{}",
        &deep,
        &objects,
    ];
    for name in SAMPLES {
        let text = String::from_utf8(corpus_bytes(name)).unwrap();
        let (all, _) = rows(text.as_bytes()).expect("it is whole");
        for key in [
            "\"ph\"",
            "\"pid\"",
            "\"tid\"",
            "\"ts\"",
            "\"dur\"",
            "\"name\"",
            "\"args\"",
            "\"id\"",
            "\"cat\"",
            "\"correlation_id\"",
            "\"kernel_details\"",
            "\"hlo_op\"",
            "\"input_type_shape\"",
            "\"grid_x\"",
            "\"parent_name\"",
            "\"stream\"",
        ] {
            // The tenth of its kind, so that the document stays what it is.
            let Some((at, _)) = text.match_indices(key).nth(9) else { continue };
            for value in values {
                let begin = at + key.len();
                let rest = text[begin..].find([',', '}']).unwrap();
                let changed = format!("{} : {value}{}", &text[..begin], &text[begin + rest..]);
                let found = rows(changed.as_bytes());
                assert!(found.is_some_and(|(count, _)| count * 4 > all * 3), "{name}: {key} is {}", &value[..value.len().min(40)]);
            }
        }
    }
}

#[test]
fn other_json_is_no_trace() {
    for (text, told) in [
        (r#"{"$schema":"https://www.speedscope.app/file-format-schema.json","shared":{"frames":[]},"profiles":[]}"#, "speedscope"),
        ("<!doctype html><html></html>", "bytes that begin with"),
        ("[1, 2, 3]", "no readable event"),
        (r#"{"a": 1, "b": [{"name": "x"}]}"#, "no `traceEvents`"),
        (
            r#"[{"ph":"C","name":"c","pid":1,"ts":1,"args":{"v":1}},{"ph":"C","name":"c","pid":1,"ts":2,"args":{"v":1}}]"#,
            "2 events, none of which",
        ),
        (r#"{"displayTimeUnit":"ns","metadata":{"highres-ticks":true},"traceEvents":[{}]}"#, "no readable event"),
    ] {
        let error = import_bytes(text.as_bytes(), 1).expect_err("it is no trace").to_string();
        assert!(error.contains(told), "{text}: {error}");
    }
}
