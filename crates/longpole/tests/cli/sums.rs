//! Profiles that hold sums alone, as a user meets them: sums against a slow reading, every command, and damage.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::harness::{command, print, root, run, run_with, trace_commands};
use crate::schema::validate;

const PROTON: &str = "corpus/other/proton_scopes.hatchet";
const CYCLES: &str = "corpus/other/proton_cycles.hatchet";
const TENSORRT: &str = "corpus/other/tensorrt_layers.json";
const ALL: [&str; 3] = [PROTON, CYCLES, TENSORRT];

/// Commands that answer, by file.
fn answers(path: &str) -> &'static [&'static str] {
    if path == TENSORRT { &["triage", "kernels", "families"] } else { &["triage", "kernels", "families", "ranges"] }
}

/// Name to calls and time.
type Sums = BTreeMap<String, (u64, i64)>;

fn whole(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| value.as_str()?.parse().ok())
}

/// A slow reading of a tree that shares nothing with the importer: recursion over a parsed document, and one table by name.
fn slow_tree(node: &Value, sums: &mut Sums) {
    let metrics = &node["metrics"];
    if let (Some(time), true) = (whole(&metrics["time (ns)"]), !metrics["device_id"].is_null()) {
        let row = sums.entry(node["frame"]["name"].as_str().unwrap_or_default().to_owned()).or_default();
        row.0 += whole(&metrics["count"]).unwrap_or(0.0) as u64;
        row.1 += time as i64;
    }
    for child in node["children"].as_array().into_iter().flatten() {
        slow_tree(child, sums);
    }
}

fn slow(path: &Path) -> Sums {
    let document: Value = serde_json::from_slice(&fs::read(path).expect("readable")).expect("JSON");
    let (mut sums, elements) = (Sums::new(), document.as_array().expect("a list"));
    if elements[0]["frame"].is_object() {
        for node in elements {
            slow_tree(node, &mut sums);
        }
        return sums;
    }
    let count = elements[0]["count"].as_u64().expect("a count");
    for layer in &elements[1..] {
        let row = sums.entry(layer["name"].as_str().expect("a name").to_owned()).or_default();
        row.0 += count;
        row.1 += (layer["timeMs"].as_f64().expect("a time") * 1e6).round() as i64;
    }
    sums
}

fn found(path: &str) -> Sums {
    let document = validate(&print(&["kernels", path, "--json", "--no-redact"]));
    let rows = document["kernels"].as_array().expect("rows").iter();
    rows.map(|row| {
        let name = row["name"].as_str().expect("a name").to_owned();
        (name, (row["calls"].as_u64().unwrap_or(0), row["cuda_ns"].as_i64().unwrap_or(0)))
    })
    .collect()
}

#[test]
fn sums_are_those_that_the_files_were_made_with() {
    let text = fs::read_to_string(root().join("corpus/other/expected.txt")).expect("the corpus is there");
    let mut checked = 0;
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (file, rest) = line.split_once(' ').expect("a file");
        let (rest, number) = rest.rsplit_once(' ').expect("a number");
        let (name, calls) = rest.rsplit_once(' ').expect("calls");
        let path = format!("corpus/other/{file}");
        let number: i64 = number.parse().expect("a number");
        if calls == "-" {
            let document = validate(&print(&["kernels", &path, "--json"]));
            let rows = document["kernels"].as_array().expect("rows");
            let row = rows.iter().find(|row| row["name"] == name).expect("the region is there");
            assert_eq!((row["cycles"].as_i64(), &row["cuda_ns"], &row["calls"]), (Some(number), &Value::Null, &Value::Null), "{line}");
        } else {
            let sums = found(&path);
            let all = sums.values().fold((0, 0), |sum, row| (sum.0 + row.0, sum.1 + row.1));
            let (of_calls, time) = if name == "*" { all } else { sums[name] };
            assert_eq!((of_calls, time), (calls.parse().expect("calls"), number), "{line}");
        }
        checked += 1;
    }
    assert!(checked >= 12, "{checked}");
    for path in [PROTON, TENSORRT] {
        assert_eq!(found(path), slow(&root().join(path)), "{path}");
    }
}

/// Files of others, beside the repository or not at all.
fn public() -> Vec<PathBuf> {
    let shared = std::env::var_os("LONGPOLE_SHARED").map_or_else(|| root().join("../shared"), PathBuf::from);
    let names = ["tritonbench_proton.hatchet", "mobilenet.qat.profile.json", "triton_example_cuda.json", "triton_example_frame.json"];
    let more = ["triton_example_hip.json", "triton_example_leaf_nodes.json", "triton_example_triton.json"];
    let paths = names.iter().chain(&more).map(|name| shared.join("corpus/other").join(name));
    paths.filter(|path| path.is_file()).collect()
}

#[test]
#[expect(clippy::print_stderr, reason = "a skip must be visible")]
fn public_files_sum_to_what_a_slow_reading_says() {
    let paths = public();
    if paths.is_empty() {
        eprintln!("skipped: there is no corpus/other beside the repository");
    }
    for path in paths {
        let name = path.to_str().expect("UTF-8");
        assert_eq!(found(name), slow(&path), "{name}");
        let page = validate(&print(&[name, "--json", "--no-redact"]));
        let total: i64 = slow(&path).values().map(|row| row.1).sum();
        assert_eq!(page["totals"]["cuda_ns"].as_i64(), Some(total), "{name}");
        // The scopes at the top and the kernels beside them are everything.
        let outer: i64 =
            page["ranges"].as_array().expect("rows").iter().filter(|row| row["depth"] == 0).filter_map(|row| row["cuda_ns"].as_i64()).sum();
        assert!(outer <= total, "{name}: {outer} of {total}");
        print(&[name]);
        print(&[name, "--markdown"]);
    }
}

#[test]
fn every_command_answers_or_says_in_a_line_why_not() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for path in ALL {
        for command in trace_commands() {
            if matches!(command.as_str(), "diff" | "check" | "slice") {
                continue;
            }
            let ended = run(&[&command, path]);
            if answers(path).contains(&command.as_str()) {
                assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{command} {path}");
                let document = validate(&print(&[&command, path, "--json"]));
                assert!(!document.to_string().contains("wall_ns\":0"), "{command} {path}: what is not known is null");
                print(&[&command, path, "--markdown"]);
                if command != "triage" {
                    assert!(print(&[&command, path, "--csv"]).lines().count() > 1, "{command} {path}");
                }
            } else {
                assert_eq!(
                    (ended.code, ended.stdout.as_str(), ended.stderr.lines().count()),
                    (Some(3), "", 1),
                    "{command} {path}: {}",
                    ended.stderr
                );
                assert!(ended.stderr.contains("longpole formats"), "{}", ended.stderr);
            }
        }
        let out = directory.path().join("out.json");
        let sliced = run(&["slice", path, "-o", out.to_str().expect("UTF-8")]);
        assert!(sliced.code == Some(3) && sliced.stderr.contains("totals only") && !out.exists(), "{}", sliced.stderr);
        for flag in [["--step", "1"], ["--time", "1..2"]] {
            let refused = run(&[&["kernels", path], &flag[..]].concat());
            assert!(refused.code == Some(2) && refused.stderr.contains("totals only"), "{}", refused.stderr);
        }
    }
}

#[test]
fn formats_say_what_commands_do() {
    let document = validate(&print(&["formats", "--json"]));
    let support = |format: &str, command: &str| {
        let formats = document["formats"].as_array().expect("formats");
        let format = formats.iter().find(|row| row["name"] == format).expect("the format is listed");
        let answers = format["answers"].as_array().expect("answers");
        answers.iter().find(|row| row["command"] == command).expect("the command is listed")["support"].as_str().expect("a word").to_owned()
    };
    for (format, path) in [("proton", PROTON), ("tensorrt", TENSORRT)] {
        for command in trace_commands().iter().filter(|command| !matches!(command.as_str(), "diff" | "check" | "slice" | "ncu")) {
            let says = run(&[command, path]).code == Some(0);
            assert_eq!(support(format, command) == "totals", says, "{format} {command}");
        }
    }
    // What a timeline does not hold is said in a line, without failing.
    let samples = [
        ("kineto", "corpus/kineto/qwen3_eager.json.gz"),
        ("longpole", "corpus/recording/qwen3_graph.longpole"),
        ("jax", "corpus/other/jax.trace.json.gz"),
        ("onnxruntime", "corpus/other/onnx_cuda.json"),
        ("chrome", "corpus/other/chrome_server.json"),
    ];
    for (format, path) in samples {
        for command in trace_commands().iter().filter(|command| !matches!(command.as_str(), "diff" | "check" | "slice" | "ncu")) {
            let page = print(&[command, path]);
            let words = page.replace("\n ", " ");
            let is_missing =
                ["no device activity was recorded", "memory:", "no operators were recorded", "shapes not recorded", "no formula"]
                    .iter()
                    .any(|said| words.contains(said));
            let has_table = page.contains("────");
            match support(format, command).as_str() {
                "no" => assert!(is_missing, "{format} {command}: {page}"),
                _ => assert!(has_table, "{format} {command}: {page}"),
            }
        }
    }
    let commands = trace_commands();
    let listed: Vec<String> = document["formats"][0]["answers"]
        .as_array()
        .expect("answers")
        .iter()
        .map(|row| row["command"].as_str().expect("a name").to_owned())
        .collect();
    assert!(commands.iter().all(|command| listed.contains(command)), "{commands:?} {listed:?}");
    assert!(print(&["formats"]).contains("Triton Proton") && print(&["formats", "--csv"]).contains("kineto,"));
}

#[test]
fn two_profiles_are_compared_and_kinds_are_not_mixed() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let after = directory.path().join("after.hatchet");
    let text = fs::read_to_string(root().join(PROTON)).expect("the corpus is there").replace("480000", "240000");
    fs::write(&after, text).expect("written");
    let after = after.to_str().expect("UTF-8");
    let document = validate(&print(&["diff", PROTON, after, "--json"]));
    let rows = document["rows"].as_array().expect("rows");
    let row = |key: &str| rows.iter().find(|row| row["key"] == key).expect("the row is there");
    assert_eq!((row("gemv_kernel")["before_ns"].as_i64(), row("gemv_kernel")["after_ns"].as_i64()), (Some(480_000), Some(240_000)));
    assert_eq!(row("device_time")["delta_ns"].as_i64(), Some(-240_000));
    assert!(print(&["diff", PROTON, after]).contains("gemv_kernel"));
    for (before, after) in [(PROTON, "corpus/kineto/bad.json.gz"), ("corpus/kineto/bad.json.gz", PROTON)] {
        let refused = run(&["diff", before, after]);
        assert!(refused.code == Some(3) && refused.stderr.contains("cannot be compared"), "{}", refused.stderr);
    }
    assert_eq!(run(&["diff", PROTON, after, "--gate"]).code, Some(1));
}

#[test]
fn budgets_hold_for_totals_as_well() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let budget = directory.path().join("budget.toml");
    let check = |limit: &str| {
        fs::write(&budget, format!("version = 1\n{limit}")).expect("written");
        run(&["check", PROTON, "--budget", budget.to_str().expect("UTF-8")])
    };
    assert_eq!(check("[[limit]]\nname = \"all\"\npath = \"triage.totals.cuda_ns\"\nmax = 1499393\n").code, Some(0));
    assert_eq!(check("[[limit]]\nname = \"all\"\npath = \"triage.totals.cuda_ns\"\nmax = 1499392\n").code, Some(1));
    let refused = check("[[limit]]\nname = \"idle\"\npath = \"idle.idle_ns\"\nmax = 5\n");
    assert!(refused.code == Some(3) && refused.stderr.contains("longpole idle"), "{}", refused.stderr);
    assert_eq!(run(&["check", PROTON, "--write-budget"]).code, Some(3));
}

#[test]
fn work_is_held_against_the_device() {
    let document = validate(&print(&["kernels", PROTON, "--json"]));
    let rows = document["kernels"].as_array().expect("rows");
    let row = |name: &str| rows.iter().find(|row| row["name"] == name).expect("the kernel is there");
    // 96 x 8 MiB in 480 us on an H100 SXM of 3.35 TB/s.
    let gemv = row("gemv_kernel");
    assert_eq!(gemv["bytes"].as_u64(), Some(805_306_368));
    let fraction = gemv["floor_fraction"].as_f64().expect("the device is known");
    assert!((fraction - 805_306_368.0 / 3.35e12 / 480e-6).abs() < 0.002, "{fraction}");
    // The scope around the product says what it computes: 2 x 2 x 1024^3 operations in 18.4 us, of 989.4 TFLOP/s.
    let product = row("matmul_kernel");
    assert_eq!(product["flops"].as_u64(), Some(4_294_967_296));
    let fraction = product["floor_fraction"].as_f64().expect("the peak is known");
    assert!((fraction - 4_294_967_296.0 / 989.4e12 / 18.4e-6).abs() < 0.002, "{fraction}");
    assert_eq!(document["kernels"][0]["scopes"][0]["name"], "all_reduce");
}

/// Runs a page on damaged bytes: it must end with a page that says so, or with one sentence.
fn survives(bytes: &[u8], what: &str) -> Option<String> {
    let ended = run_with(&["triage", "-", "--json"], bytes);
    match ended.code {
        Some(0) => {
            let page = validate(&ended.stdout);
            Some(page["trust"]["grade"].as_str().expect("a grade").to_owned())
        }
        Some(3) => {
            assert!(ended.stderr.lines().count() == 1 && ended.stdout.is_empty(), "{what}: {}", ended.stderr);
            None
        }
        code => panic!("{what}: {code:?} {}", ended.stderr),
    }
}

#[test]
fn damage_leaves_what_was_before_it() {
    for path in [PROTON, TENSORRT] {
        let bytes = fs::read(root().join(path)).expect("the corpus is there");
        let mut partial = 0;
        for cut in (1..bytes.len() - 2).step_by(bytes.len() / 23) {
            if let Some(grade) = survives(&bytes[..cut], &format!("{path} cut at {cut}")) {
                assert_eq!(grade, "partial", "{path} cut at {cut}");
                partial += 1;
            }
        }
        assert!(partial >= 12, "{path}: {partial} cuts leave something");
        for at in (30..bytes.len() - 40).step_by(bytes.len() / 17) {
            let mut garbled = bytes.clone();
            garbled[at..at + 9].copy_from_slice(b"@\x00\xff]}{\"[x");
            let _ = survives(&garbled, &format!("{path} garbled at {at}"));
        }
    }
    let mut middle = fs::read(root().join(PROTON)).expect("the corpus is there");
    let at = middle.windows(12).position(|bytes| bytes == b"\"all_reduce\"").expect("the scope is there");
    middle.splice(at..at, b"garbage ".iter().copied());
    assert_eq!(survives(&middle, "garbage before a name").as_deref(), Some("partial"));
}

#[test]
fn hostile_trees_are_harmless() {
    let deep = format!("{}{}", "[{\"children\":".repeat(100_000), "[]");
    assert_eq!(survives(deep.as_bytes(), "100,000 deep, cut"), None);
    let named = ",\"frame\":{\"name\":\"a\"},\"metrics\":{\"time (ns)\":1,\"device_id\":\"0\",\"count\":1}}]";
    let whole = format!("{}[]{}", "[{\"children\":".repeat(100_000), named.repeat(100_000));
    assert_eq!(survives(whole.as_bytes(), "100,000 deep").as_deref(), Some("good"));
    let arrays = format!("[{{\"metrics\":{}", "[".repeat(100_000));
    let _ = survives(arrays.as_bytes(), "arrays in metrics");
    let leaf = |name: &str, time: &str| {
        format!(
            "[{{\"children\":[],\"frame\":{{\"name\":{name}}},\"metrics\":{{\"count\":\"3\",\"device_id\":0,\"time (ns)\":{time},\"bytes\":-5}}}}]"
        )
    };
    let page = run_with(&["kernels", "-"], leaf("\"\\u001b[31mred\\u202eevil\\n\"", "\"12.0\"").as_bytes());
    assert!(page.code == Some(0) && !page.stdout.contains(['\u{1b}', '\u{202e}']), "{}", page.stdout);
    let document = validate(&run_with(&["kernels", "-", "--json"], leaf("\"k\"", "\"12.0\"").as_bytes()).stdout);
    assert_eq!((document["kernels"][0]["cuda_ns"].as_i64(), document["kernels"][0]["calls"].as_u64()), (Some(12), Some(3)));
    assert_eq!(document["trust"]["grade"], "partial", "negative bytes are counted");
    for (name, time) in
        [("5", "1"), ("null", "1"), ("\"k\"", "{}"), ("\"k\"", "[1]"), ("\"k\"", "1e400"), ("\"k\"", "NaN"), ("\"k\"", "true")]
    {
        survives(leaf(name, time).as_bytes(), &format!("{name} {time}"));
    }
    for text in
        ["[{\"frame\":{", "[{\"children\":[1,2,{}],\"frame\":{}}]", "[{\"count\":1}]", "[{\"count\":1},{\"name\":5}]", "[{\"metrics\":{}}]"]
    {
        assert_eq!(survives(text.as_bytes(), text), None, "{text}");
    }
}

#[test]
fn threads_compression_and_pipes_change_nothing() {
    let bytes = fs::read(root().join(PROTON)).expect("the corpus is there");
    let plain = run_with(&["kernels", "-", "--json"], &bytes).stdout;
    assert_eq!(plain, run_with(&["kernels", "-", "--json", "--threads", "3"], &bytes).stdout);
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut packed, &bytes).expect("packed");
    assert_eq!(plain, run_with(&["kernels", "-", "--json"], &packed.finish().expect("packed")).stdout);
    let file = print(&["kernels", PROTON, "--json"]);
    assert_eq!(plain.split_once("\"kernels\"").map(|parts| parts.1), file.split_once("\"kernels\"").map(|parts| parts.1));
    let broken = command(&["formats", "--csv"]).output().expect("the program starts");
    assert!(broken.status.success());
}

#[test]
fn a_profile_without_time_has_no_list_behind_its_total() {
    let report = run_with(&["triage", "-", "--report-only"], br#"[{"count":1},{"name":"l","timeMs":0,"averageMs":0,"percentage":0}]"#);
    let line = report.stdout.lines().find(|line| line.starts_with("Top CUDA time:")).expect("five lines");
    assert_eq!(line, "Top CUDA time: 0 ns of device time");
}
