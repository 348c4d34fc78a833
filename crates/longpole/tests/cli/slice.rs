//! Slices: the rows of a scope, read back from a file of their own.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use longpole_ingest::import_bytes;
use longpole_trace::Trace;
use serde_json::Value;

use crate::harness::{CORPUS, Run, command, root, run, run_with, trace};
use crate::importer::tables;
use crate::parity::read;
use crate::redaction::{assert_clean, planted};

const TABLES: [&str; 5] = ["ops", "kernels", "families", "ranges", "memory"];

/// What a command says in JSON, without what is about the file.
fn rows(command: &str, path: &str, scope: &[&str]) -> Value {
    let args = [&[command, path, "--json"], scope].concat();
    let run = run(&args);
    assert_eq!(run.code, Some(0), "{args:?}: {}", run.stderr);
    let mut document: Value = serde_json::from_str(&run.stdout).unwrap();
    let object = document.as_object_mut().unwrap();
    for about in ["source", "trust", "scope"] {
        object.remove(about);
    }
    document
}

fn slice(path: &str, scope: &[&str], output: &Path) -> Run {
    run(&[&["slice", path, "-o", output.to_str().unwrap()], scope].concat())
}

/// Slices a trace, and checks that the tables of the slice are those of the scope. False when nothing is in the scope.
fn holds_its_rows(path: &str, scope: &[&str], commands: &[&str], output: &Path) -> bool {
    let made = slice(path, scope, output);
    if made.code == Some(2) && made.stderr.contains("nothing of the trace") {
        for (command, list) in [("ops", "ops"), ("kernels", "kernels"), ("ranges", "ranges"), ("memory", "memory")] {
            assert_eq!(rows(command, path, scope)[list], Value::Array(Vec::new()), "{path} {scope:?}");
        }
        return false;
    }
    assert_eq!(made.code, Some(0), "{path} {scope:?}: {}", made.stderr);
    // A strict reader: NaN, a control character or a lone surrogate would be refused.
    let text = fs::read_to_string(output).unwrap();
    serde_json::from_str::<Value>(&text).unwrap_or_else(|error| panic!("{path} {scope:?}: {error}"));
    for command in commands {
        let (whole, part) = (rows(command, path, scope), rows(command, output.to_str().unwrap(), &[]));
        assert!(whole == part, "{command} {path} {scope:?}\n{whole:#}\n{part:#}");
    }
    true
}

/// Names of ranges, and how long the trace is in microseconds.
fn shape(path: &str) -> (Vec<String>, i64) {
    let mut names: Vec<String> =
        rows("ranges", path, &[])["ranges"].as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap().to_owned()).collect();
    names.sort();
    names.dedup();
    let wall = rows("triage", path, &[])["totals"]["wall_ns"].as_i64().unwrap();
    (names, wall / 1_000)
}

#[test]
fn a_slice_has_the_rows_of_its_scope() {
    let directory = tempfile::tempdir().unwrap();
    let checked = AtomicUsize::new(0);
    let check = |name: &str| {
        let (path, output) = (trace(name), directory.path().join(format!("{name}.json")));
        let (ranges, wall) = shape(&path);
        let mut scopes: Vec<Vec<String>> = ranges.into_iter().map(|range| vec![format!("--range={range}")]).collect();
        scopes.push(vec!["--device=0".to_owned()]);
        // Edges of windows fall into operators, calls and gaps alike.
        for (from, to) in [(0, 20), (37, 61), (80, 81), (95, 100)] {
            scopes.push(vec![format!("--time={}us..{}us", wall * from / 100, wall * to / 100)]);
        }
        scopes.push(vec![format!("--time={}us..", wall / 2)]);
        if run(&["ops", &path, "--step", "1", "--json"]).code == Some(0) {
            scopes.push(vec!["--step=1".to_owned()]);
            scopes.push(vec!["--step=1".to_owned(), format!("--time={}us..{}us", wall / 3, wall * 2 / 3)]);
        }
        for scope in scopes {
            let scope: Vec<&str> = scope.iter().map(String::as_str).collect();
            let is_no_device = scope == ["--device=0"] && name == "cpuonly";
            if !is_no_device && holds_its_rows(&path, &scope, &TABLES, &output) {
                checked.fetch_add(1, Ordering::Relaxed);
            }
        }
    };
    std::thread::scope(|threads| {
        for names in CORPUS.chunks(CORPUS.len().div_ceil(2)) {
            threads.spawn(move || names.iter().copied().for_each(check));
        }
    });
    let checked = checked.into_inner();
    assert!(checked > 70, "{checked} scopes");
}

#[test]
fn a_whole_trace_written_anew_says_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let commands = [&TABLES[..], &["steps", "idle", "roofline"]].concat();
    for name in CORPUS {
        let output = directory.path().join(format!("{name}.json"));
        assert!(holds_its_rows(&trace(name), &[], &commands, &output), "{name}");
        let (whole, copy) = (read(&root().join(trace(name))), read(&output));
        assert_same(name, &whole, &copy);
        assert!(copy.parts.is_empty(), "{name}");
    }
}

/// Every table, and what is said of the recording.
fn assert_same(what: &str, a: &Trace, b: &Trace) {
    for ((table, a), (_, b)) in tables(a).iter().zip(tables(b)) {
        assert_eq!(a.len(), b.len(), "{what}: {table}");
        for (row, (a, b)) in a.iter().zip(&b).enumerate() {
            assert_eq!(a, b, "{what}: {table}, row {row}");
        }
    }
    let details = |trace: &Trace| -> Vec<_> {
        let activities = &trace.activities;
        let detail = |row| activities.detail(row).map(|id| trace.details[id.index()]);
        let node = |row| activities.graph_node(row).map(|id| trace.graph_nodes[id.index()]);
        (0..activities.len()).map(|row| (detail(row), node(row))).collect()
    };
    assert!(details(a) == details(b), "{what}");
    let sync = |trace: &Trace| format!("{:?}", trace.sync_events);
    assert_eq!(sync(a), sync(b), "{what}");
    let collectives = |trace: &Trace| -> Vec<_> {
        let text = |id: Option<longpole_trace::StrId>| id.map(|id| trace.strings.get(id).to_owned());
        let row = |row: usize| {
            let row = trace.collectives.get(row);
            let texts = [row.name, row.group, row.group_ranks, row.dtype].map(text);
            let numbers = (row.group_size, row.in_elements, row.out_elements, row.sequence, row.source_rank, row.destination_rank);
            format!("{:?} {} {texts:?} {numbers:?}", row.place, row.start)
        };
        (0..trace.collectives.start.len()).map(row).collect()
    };
    assert_eq!(collectives(a), collectives(b), "{what}");
    assert_eq!((&a.devices, &a.versions, a.recorded, a.base_unix_ns), (&b.devices, &b.versions, b.recorded, b.base_unix_ns), "{what}");
    let ranks = |trace: &Trace| trace.ranks.iter().map(|info| (info.rank, info.world_size, info.backend.clone())).collect::<Vec<_>>();
    assert_eq!(ranks(a), ranks(b), "{what}");
    let names = |trace: &Trace| -> Vec<_> {
        let name = |id: Option<longpole_trace::StrId>| id.map(|id| trace.strings.get(id).to_owned());
        trace
            .threads
            .iter()
            .map(|thread| (thread.tid.clone(), name(thread.name), name(trace.processes[thread.process.index()].name)))
            .collect()
    };
    assert_eq!(names(a), names(b), "{what}");
}

/// Names that would break careless text, as JSON.
const NASTY: &str =
    r#"quote \" slash \\ tab\t line\n bell\u0007 nul\u0000 c1\u009b right-to-left\u202e grin\ud83d\ude00 lone\ud800 caf\u00e9 </script>"#;

/// A trace with one of everything that is written in a way of its own.
pub(crate) fn nasty() -> String {
    let event = |cat: &str, name: &str, place: &str, ts: &str, dur: &str, args: &str| {
        format!(r#"{{"ph":"X","cat":"{cat}","name":"{name}",{place},"ts":{ts},"dur":{dur},"args":{{{args}}}}}"#)
    };
    let (host, device) = (r#""pid":10,"tid":11"#, r#""pid":1,"tid":7"#);
    let events = [
        format!(r#"{{"ph":"M","name":"process_name","pid":10,"tid":0,"args":{{"name":"{NASTY}"}}}}"#),
        format!(r#"{{"ph":"M","name":"thread_name","pid":10,"tid":11,"args":{{"name":"{NASTY}"}}}}"#),
        event("user_annotation", NASTY, host, "-1.5", "9000.001", ""),
        event("cpu_op", NASTY, host, "0.001", "50", r#""External id":18446744073709551614,"Input Dims":[[2,3],[]],"Input type":["float",""],"Concrete Inputs":["","a \"b\" \\"],"Input Strides":[[3,1],[]]"#),
        event("cpu_op", "record_param_comms", host, "60", "5", r#""External id":3,"Collective name":"allreduce","Process Group Name":"0","Process Group Ranks":"[0, 1]","dtype":"BFloat16","Group size":2,"In msg nelems":7,"Out msg nelems":8,"Seq":9,"Src Rank":1,"Dst Rank":0"#),
        event("cpu_op", "c10d::nameless", host, "70", "5", r#""Collective name":"""#),
        event("cpu_op", "on a named thread", r#""pid":"a \"b\"","tid":"thread 5""#, "80", "5", ""),
        event("cpu_op", "on text", r#""pid":10,"tid":"stream x""#, "80", "5", ""),
        event("cuda_runtime", "cudaLaunchKernel", host, "1", "2", r#""correlation":18446744073709551613,"External id":2"#),
        event("cuda_driver", "cuLaunchKernelEx", host, "4", "2", r#""correlation":5"#),
        event("cuda_runtime", "hipMemcpyAsync", host, "10", "2", r#""correlation":6"#),
        event("cuda_runtime", "hipMemsetAsync", host, "13", "2", r#""correlation":7"#),
        event("cuda_runtime", "cudaGraphLaunch", host, "16", "2", r#""correlation":8"#),
        event("kernel", NASTY, device, "20", "3.007", r#""device":1,"context":1,"stream":7,"correlation":18446744073709551613,"External id":2,"grid":[4294967295,2,3],"block":[4,5,6],"registers per thread":255,"shared memory":4294967295"#),
        event("kernel", "bare", device, "24", "0", r#""device":1,"stream":7,"correlation":5"#),
        event("gpu_memcpy", "CopyDeviceToHost", device, "25", "1", r#""device":1,"stream":7,"correlation":6,"bytes":18446744073709551614,"kind":"DeviceToHost""#),
        event("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", device, "26", "1", r#""device":1,"stream":7,"bytes":5"#),
        event("gpu_memset", "Memset (Device)", device, "27", "1", r#""device":1,"stream":7,"correlation":7,"bytes":9"#),
        event("kernel", "ncclDevKernel", device, "28", "1", r#""device":1,"stream":20,"correlation":8,"graph id":0,"graph node id":4294967299,"Collective name":"allreduce","Seq":4"#),
        event("strange_events", "unnamed work", device, "30", "1", r#""device":1,"stream":7,"correlation":99"#),
        event("cuda_sync", "Stream Wait Event", device, "31", "1", r#""device":1,"context":1,"stream":7,"wait_on_stream":20,"wait_on_cuda_event_record_corr_id":5"#),
        event("cuda_sync", "Context Sync", r#""pid":"","tid":"""#, "32", "1", r#""stream":-1"#),
        event("overhead", NASTY, r#""pid":-1,"tid":0"#, "33", "1", ""),
        event("python_function", NASTY, r#""pid":0,"tid":0"#, "34", "1", ""),
        r#"{"ph":"i","cat":"cpu_instant_event","name":"[memory]","pid":10,"tid":11,"ts":35.5,"s":"t","args":{"Bytes":-512,"Device Type":1,"Device Id":3,"Total Allocated":5,"Total Reserved":6}}"#.to_owned(),
        r#"{"ph":"i","cat":"cpu_instant_event","name":"[memory]","pid":10,"tid":11,"ts":36,"s":"t","args":{"Bytes":9223372036854775807,"Device Type":0,"Device Id":-1}}"#.to_owned(),
    ];
    format!(
        r#"{{"schemaVersion":1,"deviceProperties":[{{"id":1,"name":"{NASTY}","totalGlobalMem":150000000000,"numSms":132,"computeMajor":9,"computeMinor":0,"warpSize":32}},{{"id":2,"name":"idle"}}],
"distributedInfo":{{"backend":"nccl","rank":1,"world_size":2}},"record_shapes":1,"with_modules":1,"cuda_runtime_version":13000,"cuda_driver_version":12080,"cupti_version":130100,
"hip_runtime_version":60204000,"baseTimeNanoseconds":1767225600000000000,"traceEvents":[{}]}}"#,
        events.join(",\n")
    )
}

fn import(text: &str) -> Trace {
    import_bytes(text.as_bytes(), 2).unwrap().trace
}

#[test]
fn one_of_everything_comes_back_as_it_was() {
    let made = run_with(&["slice", "-", "-o", "-", "--no-redact"], nasty().as_bytes());
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    serde_json::from_str::<Value>(&made.stdout).unwrap();
    assert!(made.stdout.bytes().all(|byte| byte >= b' ' || byte == b'\n'), "nothing acts on a terminal");
    assert!(!made.stdout.contains(['\u{9b}', '\u{202e}']));
    let (whole, copy) = (import(&nasty()), import(&made.stdout));
    assert_eq!((whole.activities.len(), whole.sync_events.len(), whole.collectives.start.len()), (7, 2, 3));
    assert_same("nasty", &whole, &copy);
}

/// A recording counts from 1970, where a double of microseconds no longer tells nanoseconds apart: what is written counts from near its first
/// event, and the base says where that is.
#[test]
fn times_of_a_recording_are_exact_for_readers_that_use_doubles() {
    let directory = tempfile::tempdir().unwrap();
    let recording = root().join("corpus/recording/engine_windows.longpole");
    let from = recording.display().to_string();
    let starts = |trace: &Trace| -> Vec<i64> {
        let base = trace.base_unix_ns.unwrap();
        let (ranges, calls, activities) = (&trace.ranges.start, &trace.api_calls.start, &trace.activities.start);
        ranges.iter().chain(calls).chain(activities).map(|start| base + start.get()).collect()
    };
    let whole = read(&recording);
    for (number, args) in [&["slice"][..], &["slice", "--time", "2180ms..2345ms"], &["export", "--to", "chrome"]].iter().enumerate() {
        let output = directory.path().join(format!("{number}.json"));
        let to = output.display().to_string();
        let made = run(&[*args, &[from.as_str(), "-o", to.as_str()][..]].concat());
        assert_eq!(made.code, Some(0), "{args:?}: {}", made.stderr);
        let copy = read(&output);
        let (before, after) = (starts(&whole), starts(&copy));
        if args.contains(&"--time") {
            let before: HashSet<i64> = before.into_iter().collect();
            let kept = &copy.activities.start;
            assert!(!kept.is_empty() && kept.iter().all(|start| before.contains(&(copy.base_unix_ns.unwrap() + start.get()))));
        } else {
            assert_eq!(before, after, "{args:?}");
        }
        // Another reader: doubles of microseconds, and the base.
        let document: Value = serde_json::from_slice(&fs::read(&output).unwrap()).unwrap();
        let base = document["baseTimeNanoseconds"].as_i64().unwrap();
        let kernels = document["traceEvents"].as_array().unwrap().iter().filter(|event| event["cat"] == "kernel" && event["ph"] == "X");
        let in_doubles: Vec<i64> = kernels.map(|event| base + (event["ts"].as_f64().unwrap() * 1e3).round() as i64).collect();
        let kernels = (0..copy.activities.len()).filter(|&row| copy.activities.kind[row] == longpole_trace::ActivityKind::Kernel);
        let exact: Vec<i64> = kernels.map(|row| copy.base_unix_ns.unwrap() + copy.activities.start[row].get()).collect();
        assert_eq!(in_doubles, exact, "{args:?}");
        // A slice of it counts from the same moment.
        let again = run(&["slice", &to, "-o", "-"]);
        assert_eq!(import(&again.stdout).base_unix_ns, copy.base_unix_ns);
    }
}

/// Host events that only rows outside the window tell apart.
fn edges() -> String {
    let event = |cat: &str, name: &str, place: &str, ts: i64, dur: i64, args: &str| {
        format!(r#"{{"ph":"X","cat":"{cat}","name":"{name}",{place},"ts":{ts},"dur":{dur},"args":{{{args}}}}}"#)
    };
    let (host, device) = (r#""pid":10,"tid":11"#, r#""pid":0,"tid":7"#);
    let events = [
        event("user_annotation", "loop", host, 0, 10_000, ""),
        event("user_annotation", "loop", host, 5, 9_000, ""),
        // An operator of its parent's name, and not an only child: the other lies before the window.
        event("cpu_op", "outer", host, 10, 900, r#""External id":100"#),
        event("cpu_op", "before", host, 20, 10, ""),
        event("cpu_op", "outer", host, 100, 700, ""),
        event("cuda_runtime", "cudaLaunchKernel", host, 120, 5, r#""correlation":1"#),
        // Launched by an operator that began before, and by one that the window ends in.
        event("cuda_runtime", "cudaLaunchKernel", host, 820, 5, r#""correlation":2"#),
        event("cpu_op", "late", host, 1_000, 900, r#""External id":1"#),
        event("cpu_op", "inside late", host, 1_100, 50, ""),
        event("cpu_op", "inside late, after", host, 1_500, 300, ""),
        event("cpu_op", "deeper", host, 1_550, 100, ""),
        event("cuda_runtime", "cudaLaunchKernel", host, 1_560, 10, r#""correlation":3"#),
        event("cpu_op", "after", host, 2_000, 10, ""),
        event("kernel", "k1", device, 200, 50, r#""device":0,"stream":7,"correlation":1,"External id":1"#),
        event("kernel", "k2", device, 900, 50, r#""device":0,"stream":7,"correlation":2,"External id":2"#),
        event("kernel", "k3", device, 1_900, 50, r#""device":0,"stream":7,"correlation":3,"External id":9"#),
        event("kernel", "no launch", device, 1_000, 5, r#""device":0,"stream":7,"correlation":77,"External id":1"#),
        r#"{"ph":"i","cat":"cpu_instant_event","name":"[memory]","pid":10,"tid":11,"ts":850,"s":"t","args":{"Bytes":512,"Device Type":1,"Device Id":0}}"#.to_owned(),
        r#"{"ph":"i","cat":"cpu_instant_event","name":"[memory]","pid":10,"tid":11,"ts":1600,"s":"t","args":{"Bytes":64,"Device Type":1,"Device Id":0}}"#.to_owned(),
    ];
    format!(r#"{{"schemaVersion":1,"traceEvents":[{}]}}"#, events.join(",\n"))
}

#[test]
fn what_lies_across_an_edge_is_counted_as_before() {
    let directory = tempfile::tempdir().unwrap();
    let (input, output) = (directory.path().join("edges.json"), directory.path().join("slice.json"));
    fs::write(&input, edges()).unwrap();
    let input = input.to_str().unwrap();
    for from in (0..2_200).step_by(90) {
        for length in [1, 100, 730, 5_000] {
            let window = format!("--time={from}us..{}us", from + length);
            holds_its_rows(input, &[&window], &TABLES, &output);
            holds_its_rows(input, &[&window, "--range=loop"], &TABLES, &output);
        }
    }
    // What is around the scope does not make it longer.
    assert!(holds_its_rows(input, &["--time=90us..130us"], &TABLES, &output));
    let cut = read(&output);
    let (first, last) = cut.window.bounds().unwrap();
    assert!((last - first).get() < 720_000, "{first} {last}");
    assert_eq!(cut.parts.len(), 1);
}

/// The grade, and code and count of everything that was lost.
fn losses(path: &str) -> (Value, Vec<(String, u64)>) {
    let run = run(&["triage", path, "--json", "--strict"]);
    let document: Value = serde_json::from_str(&run.stdout).unwrap();
    let trust = &document["trust"];
    assert_eq!(run.code, Some(if trust["grade"] == "partial" { 3 } else { 0 }), "{path}: {}", run.stderr);
    let notes = trust["notes"].as_array().unwrap().iter().filter(|note| note["severity"] == "data_loss");
    (trust["grade"].clone(), notes.map(|note| (note["code"].as_str().unwrap().to_owned(), note["count"].as_u64().unwrap())).collect())
}

#[test]
fn a_slice_of_what_was_cut_is_no_better() {
    let directory = tempfile::tempdir().unwrap();
    let [cut, part, again] = ["cut.json", "part.json.gz", "again.json"].map(|name| directory.path().join(name));
    let mut text = String::new();
    std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(fs::File::open(root().join(trace("bad"))).unwrap()), &mut text)
        .unwrap();
    // Two events are damaged as well.
    let text = text[..text.len() / 3].replacen(r#""ph": "X", "cat": "cpu_op""#, r#""ph": X", "cat": "cpu_op""#, 2);
    fs::write(&cut, text).unwrap();
    let [cut_path, part_path, again_path] = [&cut, &part, &again].map(|path| path.to_str().unwrap());
    let whole = losses(cut_path);
    assert!(whole.0 == "partial" && whole.1.iter().any(|(code, _)| code == "truncated") && whole.1.len() > 1, "{whole:?}");
    let kept = |(grade, mut codes): (Value, Vec<(String, u64)>)| {
        codes.retain(|(code, _)| code != "launch_without_activity");
        (grade, codes)
    };
    assert_eq!(slice(cut_path, &["--time=0..2ms"], &part).code, Some(0));
    assert_eq!(kept(losses(part_path)), kept(whole.clone()));
    assert_eq!(slice(part_path, &[], &again).code, Some(0));
    assert_eq!(kept(losses(again_path)), kept(whole));
    assert_eq!(losses(&trace("qwen3_eager")).1, []);
    assert!(run(&["ops", part_path]).stdout.contains("the trace that this one was made of"));
}

#[test]
fn losses_that_nobody_knows_are_not_believed() {
    let with = |lost: &str| {
        let document = edges().replacen('{', &format!(r#"{{"longpole":{{"lost":{lost}}},"#), 1);
        let problems = import_bytes(document.as_bytes(), 2).unwrap().problems;
        problems.iter().map(|problem| (problem.code.describe().0, problem.count)).collect::<Vec<_>>()
    };
    let known = with(
        r#"{"truncated":1,"malformed_event":99999999999999999999,"truncated":7,"no_such":3,"cpu_bound":1,"launch_without_activity":5,"missing_time":"x"}"#,
    );
    assert_eq!(known, [("truncated", 1), ("malformed_event", 1), ("missing_time", 1)]);
    assert_eq!(with(r#"{"malformed_event":18446744073709551615}"#), [("malformed_event", u64::from(u32::MAX))]);
    for nothing in ["[]", "7", "{}", r#"["truncated"]"#, "null"] {
        assert_eq!(with(nothing), [], "{nothing}");
    }
}

#[test]
fn a_slice_can_be_sliced_and_narrowed() {
    let directory = tempfile::tempdir().unwrap();
    let [decode, step, again] = ["decode.json", "step.json.zst", "again.json.gz"].map(|name| directory.path().join(name));
    let path = trace("qwen3_eager");
    assert_eq!(slice(&path, &["--range", "decode_step"], &decode).code, Some(0));
    let decode = decode.to_str().unwrap();
    for table in TABLES {
        // Before the slice is the prefill, which is a step too.
        assert_eq!(rows(table, decode, &["--step", "2"]), rows(table, &path, &["--step", "3"]), "{table}");
        assert_eq!(rows(table, decode, &["--range", "decode_step"]), rows(table, &path, &["--range", "decode_step"]), "{table}");
    }
    assert_eq!(slice(decode, &["--step", "2"], &step).code, Some(0));
    assert_eq!(slice(step.to_str().unwrap(), &[], &again).code, Some(0));
    for table in TABLES {
        for path in [&step, &again] {
            assert_eq!(rows(table, path.to_str().unwrap(), &[]), rows(table, decode, &["--step", "2"]), "{table}");
        }
    }
}

#[test]
fn what_is_said_and_where_it_goes() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str| directory.path().join(name);
    let path = trace("qwen3_graph");
    let plain = slice(&path, &["--step", "1"], &file("a.json"));
    assert!(plain.stdout.is_empty() && plain.stderr.starts_with("wrote ") && plain.stderr.contains("step 1"), "{}", plain.stderr);
    assert!(plain.stderr.contains(" redacted"), "{}", plain.stderr);
    assert!(slice(&path, &["--no-redact"], &file("b.json")).stderr.contains("the whole trace (no scope was given), not redacted"));
    assert_eq!(slice(&path, &["--step", "1", "--quiet"], &file("a.json")).stderr, "", "a file that is there is replaced");
    let streamed = run(&["slice", &path, "--step", "1", "-o", "-"]).stdout;
    assert_eq!(streamed, fs::read_to_string(file("a.json")).unwrap());
    for (name, magic) in [("c.json.gz", [0x1f, 0x8b]), ("c.json.zst", [0x28, 0xb5])] {
        assert_eq!(slice(&path, &["--step", "1"], &file(name)).code, Some(0));
        let packed = fs::read(file(name)).unwrap();
        assert!(packed.starts_with(&magic) && packed.len() * 4 < streamed.len(), "{name}");
        assert_eq!(rows("ops", file(name).to_str().unwrap(), &[]), rows("ops", &path, &["--step", "1"]));
    }
    let mut names: Vec<_> = fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["a.json", "b.json", "c.json.gz", "c.json.zst"], "nothing else is left behind");
}

fn refused(args: &[&str], why: &str) {
    let run = run(args);
    assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{args:?}: {}", run.stderr);
    assert!(run.stderr.contains(why), "{args:?}: {}", run.stderr);
}

#[test]
fn what_cannot_be_is_refused_before_anything_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let output = elsewhere.path().join("out.json");
    let output = output.to_str().unwrap();
    let path = trace("bad");
    refused(&["slice", &path], "--output");
    for flag in [&["--json"][..], &["--csv"], &["--limit", "3"], &["--sort", "name"], &["--filter", "x"], &["--full-names"]] {
        refused(&[&["slice", &path, "-o", output], flag].concat(), "not a table");
    }
    refused(&["slice", &path, "-o", output, "--step", "77"], "there is no step 77");
    refused(&["slice", &path, "-o", output, "--time", "1000s.."], "nothing of the trace");
    refused(&["slice", &path, "-o", directory.path().to_str().unwrap()], "is a folder");
    refused(&["slice", &path, "-o", "/no/such/folder/x.json"], "there is no folder");
    // Two recordings, which a file cannot hold.
    for rank in ["0", "1"] {
        fs::copy(root().join(trace(&format!("nccl_rank{rank}"))), directory.path().join(format!("rank{rank}.json.gz"))).unwrap();
    }
    let ranks = directory.path().to_str().unwrap();
    refused(&["slice", ranks, "-o", output], "choose one with --rank");
    assert!(!Path::new(output).exists());
    // The input by another name.
    let input = directory.path().join("rank0.json.gz");
    let dotted = directory.path().join(".").join("rank0.json.gz");
    let before = fs::read(&input).unwrap();
    refused(&["slice", input.to_str().unwrap(), "-o", dotted.to_str().unwrap()], "is the input");
    refused(&["slice", ranks, "--rank", "1", "-o", dotted.to_str().unwrap()], "is the input");
    assert!(fs::read(&input).unwrap() == before);
    // With the rank it works, and the file keeps it.
    assert_eq!(run(&["slice", ranks, "--rank", "1", "--range", "decode_step", "-o", output]).code, Some(0));
    let (whole, part) = (rows("kernels", ranks, &["--rank", "1", "--range", "decode_step"]), rows("kernels", output, &["--rank", "1"]));
    assert_eq!(whole, part);
}

#[cfg(unix)]
#[test]
fn standard_input_is_not_overwritten_either() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("x.json.gz");
    fs::copy(root().join(trace("bad")), &file).unwrap();
    let before = fs::read(&file).unwrap();
    let read_from = |output: &Path| {
        let args = ["slice", "-", "-o", output.to_str().unwrap()];
        command(&args).stdin(fs::File::open(&file).unwrap()).output().unwrap()
    };
    let refused = read_from(&file);
    assert!(refused.status.code() == Some(2) && String::from_utf8_lossy(&refused.stderr).contains("is the input"), "{refused:?}");
    assert!(fs::read(&file).unwrap() == before);
    let other = directory.path().join("y.json.gz");
    assert_eq!((read_from(&other).status.code(), read_from(&other).status.code()), (Some(0), Some(0)), "another file is replaced");
}

#[cfg(unix)]
#[test]
fn names_that_are_none_or_no_text() {
    use std::os::unix::ffi::OsStrExt as _;
    refused(&["slice", &trace("bad"), "-o", ""], "--output is empty");
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join(std::ffi::OsStr::from_bytes(b"caf\xe9.json"));
    let made = command(&["slice", &trace("bad"), "-o"]).arg(&file).output().unwrap();
    let said = String::from_utf8(made.stderr).unwrap();
    assert!(made.status.code() == Some(0) && said.contains("caf\u{fffd}.json: "), "{said}");
    assert!(file.is_file());
}

#[cfg(unix)]
#[test]
fn a_signal_leaves_nothing_behind() {
    use std::os::unix::process::ExitStatusExt as _;
    // Only TERM is never ignored by what runs tests in the background. On a busy machine it may come too late.
    let was_ended = (0..20).any(|_| {
        let directory = tempfile::tempdir().unwrap();
        let entries = || fs::read_dir(directory.path()).unwrap().count();
        let output = directory.path().join("out.json.gz");
        let args = ["slice", &trace("qwen3_eager"), "-o", output.to_str().unwrap()];
        let mut child = command(&args).stderr(std::process::Stdio::null()).spawn().unwrap();
        while entries() == 0 && child.try_wait().unwrap().is_none() {
            std::thread::sleep(std::time::Duration::from_micros(200));
        }
        // The file is there some moments before it is guarded.
        std::thread::sleep(std::time::Duration::from_millis(20));
        let kill = format!("kill -TERM {}", child.id());
        assert!(std::process::Command::new("sh").args(["-c", &kill]).status().unwrap().success());
        let status = child.wait().unwrap();
        if status.success() {
            return false;
        }
        assert_eq!(status.signal(), Some(15), "it ends as it would without a guard");
        assert_eq!((entries(), output.exists()), (0, false));
        true
    });
    assert!(was_ended);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_one_sentence() {
    let run = run(&["slice", &trace("bad"), "-o", "/dev/full"]);
    assert_eq!((run.code, run.stderr.lines().count()), (Some(2), 1), "{}", run.stderr);
    assert!(run.stderr.contains("cannot write the output") && run.stderr.contains("/dev/full"), "{}", run.stderr);
}

#[test]
fn a_slice_shows_no_secret() {
    for scope in [&[][..], &["--range=request*"], &["--time=0..3ms"], &["--step=1"]] {
        let args = [&["slice", "-", "-o", "-"], scope].concat();
        let run = run_with(&args, planted().as_bytes());
        assert_clean(&args, &run);
        if run.code == Some(0) {
            serde_json::from_str::<Value>(&run.stdout).unwrap();
            assert!(run.stdout.contains("[redacted]"), "{args:?}");
        } else {
            assert_eq!(scope, ["--step=1"], "{}", run.stderr);
        }
    }
}

/// Files of other producers and eras.
#[test]
#[expect(clippy::print_stderr, reason = "a skip must be visible")]
fn other_peoples_traces_are_written_anew() {
    let shared = std::env::var_os("LONGPOLE_SHARED").map_or_else(|| root().join("../shared"), PathBuf::from).join("corpus/kineto/public");
    let Ok(entries) = fs::read_dir(&shared) else {
        eprintln!("skipped: no public traces at {}", shared.display());
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let output = directory.path().join("copy.json");
    let mut seen = 0;
    for entry in entries {
        let path = entry.unwrap().path();
        let path = path.to_str().unwrap();
        // Archives of several ranks are no one file.
        if !path.ends_with(".tar.gz") {
            assert!(holds_its_rows(path, &[], &["ops", "kernels", "ranges", "idle", "steps"], &output), "{path}");
            seen += 1;
        }
    }
    assert!(seen > 10, "{seen}");
}
