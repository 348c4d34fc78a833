//! What is said of files that cannot be used, and of what stands before and beside a document.

use longpole_ingest::{ImportOptions, Input, import, import_bytes};

use crate::support::{corpus_bytes, problems, read};

fn refusal(bytes: &[u8]) -> String {
    let error = import_bytes(bytes, 2).expect_err("it is no profile").to_string();
    assert!(!error.contains("export_chrome_trace"), "{error}");
    error
}

#[test]
fn a_file_of_another_tool_is_told_in_its_words() {
    let jax = r#"{"displayTimeUnit":"ns","metadata":{"highres-ticks":true},"traceEvents":["#;
    for events in ["]}", r#"{"ph":"M","pid":1,"name":"process_name","args":{"name":"/device:GPU:0"}}]}"#] {
        let error = refusal(format!("{jax}{events}").as_bytes());
        assert!(error.contains("a trace of JAX (XLA)") && error.contains("jax.profiler.trace"), "{error}");
    }
    let error = refusal(b"QDSTRM\0\0\0\0\0\0");
    assert!(error.contains("Nsight Systems") && error.contains("nsys export --type sqlite"), "{error}");
}

#[test]
fn a_file_that_calls_itself_a_report_is_told_how_to_export_it() {
    let folder = tempfile::tempdir().expect("a folder");
    for bytes in [&b""[..], b"some bytes", b"{}"] {
        let path = folder.path().join("run.nsys-rep");
        std::fs::write(&path, bytes).expect("written");
        let error = import(&Input::Path(path), &ImportOptions::default()).expect_err("it is no report").to_string();
        assert!(error.contains("nsys export --type sqlite"), "{error}");
    }
}

#[test]
fn utf_16_is_named() {
    let text = String::from_utf8(corpus_bytes("chrome_server.json")).expect("text");
    for mark in ["\u{feff}", "", " "] {
        let units: Vec<u16> = format!("{mark}{text}").encode_utf16().collect();
        for bytes in [
            units.iter().flat_map(|unit| unit.to_le_bytes()).collect::<Vec<u8>>(),
            units.iter().flat_map(|unit| unit.to_be_bytes()).collect(),
        ] {
            let error = refusal(&bytes);
            assert!(error.contains("UTF-16") && error.contains("convert it to UTF-8"), "{error}");
        }
    }
}

/// Blanks of any number before a document change nothing, in a file, in a stream, and in a compressed one.
#[test]
fn white_space_before_a_document_does_not_hide_what_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["chrome_server.json", "jax.trace.json.gz", "onnx_cuda.json", "proton_scopes.hatchet", "tensorrt_layers.json"] {
        let whole = corpus_bytes(name);
        let plain = read(&whole);
        for blanks in [1, 60_000, 65_535, 65_536, 66_000, 250_000] {
            for mark in ["", "\u{feff}"] {
                let padded = [mark.as_bytes(), &b" \n".repeat(blanks / 2 + 1), &whole].concat();
                let streamed = read(&padded);
                let path = folder.path().join("padded.json");
                std::fs::write(&path, &padded).expect("written");
                let filed = import(&Input::Path(path), &ImportOptions::default()).expect("it is whole");
                for found in [&streamed, &filed] {
                    assert_eq!(found.source.format, plain.source.format, "{name}, {blanks} blanks");
                    assert_eq!(found.trace.events_read, plain.trace.events_read, "{name}, {blanks} blanks");
                    assert_eq!(problems(found), problems(&plain), "{name}, {blanks} blanks");
                    assert_eq!(found.source.bytes, padded.len() as u64);
                }
            }
        }
    }
    // Nothing but blanks is an empty file, and not for ever.
    let error = import_bytes(&b" ".repeat(3_000_000), 2).expect_err("nothing is in it").to_string();
    assert!(error.contains("nothing but white space in its first 256 KiB"), "{error}");
    let error = import_bytes(&b" ".repeat(300), 2).expect_err("nothing is in it").to_string();
    assert!(error.contains("an empty file"), "{error}");
}

const TREE: &str = r#"[{"children":[{"children":[],"frame":{"name":"k","type":"function"},"metrics":{"count":2,"time (ns)":30,"device_id":"0","device_type":"CUDA"}}],"frame":{"name":"ROOT","type":"function"},"metrics":{"count":0,"time (ns)":0}},{"CUDA":{"0":{"arch":"90","bus_width":5120,"clock_rate":1,"memory_clock_rate":1,"num_sms":132}}}]"#;
const LAYERS: &str = r#"[{"count":2},{"name":"conv","timeMs":1.5,"averageMs":0.75,"percentage":100}]"#;

#[test]
fn sums_of_two_formats_are_not_added_up() {
    let folder = tempfile::tempdir().expect("a folder");
    let (tree, layers) = (folder.path().join("a.hatchet"), folder.path().join("b.json"));
    std::fs::write(&tree, TREE).expect("written");
    std::fs::write(&layers, LAYERS).expect("written");
    let both = |paths: Vec<_>| import(&Input::Files(paths), &ImportOptions::default()).expect("one of them can be used");
    for (paths, format) in [(vec![tree.clone(), layers.clone()], "proton"), (vec![layers, tree], "tensorrt")] {
        let found = both(paths);
        assert_eq!((found.source.format, found.trace.aggregates.is_empty()), (format, false));
        assert_eq!(problems(&found), [("unusable_file", 1), ("totals_only", 1)]);
    }
}

#[test]
fn a_second_document_of_sums_is_one_thing_that_was_not_read() {
    for text in [TREE, LAYERS] {
        let found = read(format!("{text}\n{text}").as_bytes());
        assert_eq!(problems(&found), [("unread_bytes", 1), ("totals_only", 1)]);
        let told = found.problems.iter().find_map(|problem| problem.example.clone()).expect("an example");
        assert!(told.contains("another document"), "{told}");
    }
}
