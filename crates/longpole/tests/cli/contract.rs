//! What holds whatever the numbers are: schemas, five lines, the same result at any number of threads, from any input.

use std::fs;

use crate::harness::{CORPUS, command, print, root, run, run_with, trace};
use crate::schema::validate;

const TABLES: [&str; 5] = ["ops", "kernels", "families", "ranges", "memory"];

#[test]
fn every_whole_document_follows_its_schema_and_sums_agree() {
    for name in CORPUS {
        let ops = validate(&print(&["ops", &trace(name), "--json"]));
        let page = validate(&print(&[&trace(name), "--json"]));
        for table in TABLES {
            let document = validate(&print(&[table, &trace(name), "--json"]));
            assert!(document[table].is_array(), "{name} {table}");
        }
        let sum = |rows: &serde_json::Value, key: &str| -> i64 {
            rows.as_array().expect("a list").iter().filter_map(|row| row[key].as_i64()).sum()
        };
        let total = ops["self_cuda_total_ns"].as_i64().unwrap_or(0);
        assert_eq!(sum(&ops["ops"], "self_cuda_ns"), total, "{name}");
        assert_eq!(sum(&page["ops"], "self_cuda_ns"), total, "{name}");
        assert_eq!(sum(&page["families"], "self_cuda_ns"), total, "{name}");
        assert_eq!(sum(&page["kernels"], "cuda_ns"), total, "{name}");
        assert_eq!(page["totals"]["gpu_busy_ns"].is_null(), name == "cpuonly", "{name}: absent is null, not zero");
    }
}

#[test]
fn the_report_alone_is_five_lines() {
    let heads = ["Workload: ", "Hardware: ", "Top CUDA time: ", "Top CPU / orchestration cost: ", "Next experiment: "];
    for name in CORPUS {
        let report = print(&[&trace(name), "--report-only"]);
        assert_eq!(report.lines().count(), 5, "{name}: {report}");
        for (line, head) in report.lines().zip(heads) {
            assert!(line.starts_with(head) && line.len() > head.len(), "{name}: {line}");
        }
        let page = print(&[&trace(name)]);
        assert!(page.ends_with(&report), "{name}: the page ends with the same five lines");
    }
    let said = print(&[&trace("bad"), "--report-only", "--workload", "my\nrun"]);
    assert!(said.starts_with("Workload: my"), "{said}");
    assert_eq!(said.lines().count(), 5);
}

#[test]
fn threads_change_nothing() {
    for name in ["qwen3_eager", "nccl_rank1", "qwen3_stack"] {
        for args in [&["triage"][..], &["ops", "--by", "shape"], &["ops", "--by", "stack=3"], &["kernels"], &["ranges"], &["memory"]] {
            for format in ["--json", "--markdown"] {
                let path = trace(name);
                let with = |threads| print(&[args, &[&path, format, "--threads", threads]].concat());
                let one = with("1");
                assert!(one == with("4"), "{name} {args:?} {format}");
                assert!(one == with("2"), "{name} {args:?} {format}");
            }
        }
    }
}

#[test]
fn standard_input_is_read_like_a_file() {
    let bytes = fs::read(root().join(trace("bad"))).expect("the corpus is there");
    let piped = run_with(&["-", "--json"], &bytes);
    assert_eq!((piped.code, piped.stderr.as_str()), (Some(0), ""));
    let (mut piped, mut file) = (validate(&piped.stdout), validate(&print(&[&trace("bad"), "--json"])));
    for document in [&mut piped, &mut file] {
        document["source"]["path"] = serde_json::Value::Null;
    }
    assert_eq!(piped, file);
}

#[test]
fn ranks_of_a_directory_are_kept_apart() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for name in ["nccl_rank0", "nccl_rank1"] {
        fs::copy(root().join(trace(name)), directory.path().join(format!("{name}.json.gz"))).expect("copied");
    }
    let path = directory.path().to_str().expect("UTF-8");
    let activities = |args: &[&str]| {
        let page = validate(&print(&[&[path, "--json"], args].concat()));
        page["totals"]["devices"].as_array().expect("a list").iter().filter_map(|d| d["activities"].as_u64()).sum::<u64>()
    };
    let (both, first, second) = (activities(&[]), activities(&["--rank", "0"]), activities(&["--rank", "1"]));
    assert!(first > 0 && second > 0);
    assert_eq!(both, first + second);
    let missing = run(&["ops", path, "--rank", "7"]);
    assert_eq!(missing.code, Some(2));
    assert!(missing.stderr.contains("there is no rank 7; the trace has 0, 1"), "{}", missing.stderr);
}

#[test]
fn a_cut_file_is_read_as_far_as_it_goes_and_says_so() {
    let bytes = fs::read(root().join(trace("qwen3_item"))).expect("the corpus is there");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("cut.json.gz");
    fs::write(&path, &bytes[..bytes.len() / 2]).expect("written");
    let path = path.to_str().expect("UTF-8");

    let document = validate(&print(&["ops", path, "--json"]));
    assert_eq!(document["trust"]["grade"], "partial");
    assert!(document["ops"].as_array().is_some_and(|rows| rows.len() > 5));

    let page = run(&[path]);
    assert_eq!(page.code, Some(0));
    assert!(page.stdout.starts_with("trust   partial: "), "{}", page.stdout);

    let report = run(&[path, "--report-only"]);
    assert_eq!(report.stdout.lines().count(), 5);
    assert!(report.stdout.lines().next().is_some_and(|line| line.contains("[trust partial: ")), "{}", report.stdout);
    assert!(report.stderr.starts_with("trust   partial: "), "{}", report.stderr);
    for claim in ["of wall (", "host-bound", "ProfilerActivity"] {
        assert!(!report.stdout.contains(claim) && report.stdout.contains("the file was cut"), "{}", report.stdout);
    }
    assert_eq!(run(&[path, "--report-only", "--quiet"]).stderr, "");

    let csv = run(&["ops", path, "--csv"]);
    assert!(csv.stdout.starts_with("name,calls,") && csv.stderr.starts_with("trust   partial: "), "{}", csv.stderr);

    let strict = run(&["ops", path, "--strict"]);
    assert_eq!(strict.code, Some(3));
    assert!(strict.stdout.contains("aten::mm"), "it prints before it fails");
    assert!(strict.stderr.contains("--strict was given"), "{}", strict.stderr);
    assert_eq!(run(&["ops", &trace("bad"), "--strict"]).code, Some(0));
}

#[test]
fn what_the_analyses_find_is_in_the_trust_header() {
    let event = |cat: &str, name: &str, ts: u64, dur: u64, more: &str| {
        format!(r#"{{"ph":"X","cat":"{cat}","name":"{name}","pid":1,"tid":1,"ts":{ts},"dur":{dur},"args":{{{more}}}}}"#)
    };
    let events = [
        event("cpu_op", "aten::first", 100, 50, ""),
        event("cpu_op", "aten::crossing", 140, 60, ""),
        event("cuda_runtime", "cudaLaunchKernel", 110, 5, r#""correlation":1"#),
        event("cuda_runtime", "cudaStreamBeginCapture", 160, 1, r#""correlation":2"#),
        event("cuda_runtime", "cudaLaunchKernel", 170, 5, r#""correlation":3"#),
        event("cuda_runtime", "cudaLaunchKernel", 176, 5, r#""correlation":4"#),
        event("cuda_runtime", "cudaStreamEndCapture", 190, 1, r#""correlation":5"#),
        event("kernel", "k", 60, 40, r#""device":0,"stream":7,"correlation":1"#),
        // Before the window, across its end, inside, and not the profiler's.
        event("overhead", "Buffer Flush", 1, 20, ""),
        event("overhead", "Instrumentation", 195, 20, ""),
        event("overhead", "Lazy Function Loading", 120, 20, ""),
        event("overhead", "Activity Buffer Request", 150, 4, ""),
    ];
    let trace = format!(r#"{{"traceEvents":[{}]}}"#, events.join(","));
    let document = validate(&run_with(&["ops", "-", "--json"], trace.as_bytes()).stdout);
    let notes = document["trust"]["notes"].as_array().expect("a list");
    let mut found: Vec<_> =
        notes.iter().map(|note| (note["code"].as_str().expect("a code"), note["count"].as_u64(), note["time_ns"].as_u64())).collect();
    found.sort_unstable();
    let expected = [
        ("captured_launch", Some(2), None),
        ("partial_overlap", Some(1), None),
        ("profiler_overhead", Some(2), Some(9_000)),
        ("start_before_launch", Some(1), Some(50_000)),
    ];
    assert_eq!(found, expected);
    assert_eq!(document["trust"]["grade"], "noted");
}

#[test]
fn colour_is_asked_for_or_for_a_terminal() {
    assert!(!print(&[&trace("bad")]).contains('\x1b'), "a pipe gets none");
    let painted = print(&[&trace("bad"), "--color", "always"]);
    assert!(painted.contains("\x1b[1m"));
    let mut plain = String::new();
    let mut rest = painted.as_str();
    while let Some((before, after)) = rest.split_once('\x1b') {
        plain.push_str(before);
        rest = after.split_once('m').expect("a colour ends with m").1;
    }
    plain.push_str(rest);
    assert_eq!(plain, print(&[&trace("bad")]), "colour only repeats what the words say");
}

#[test]
fn statistics_go_to_standard_error() {
    let run = run(&["ops", &trace("bad"), "--json", "--stats=json"]);
    validate(&run.stdout);
    let stats: serde_json::Value = serde_json::from_str(&run.stderr).expect("one line of JSON");
    assert_eq!(run.stderr.lines().count(), 1);
    for key in ["bytes", "events", "read_ns", "total_ns", "peak_heap_bytes"] {
        assert!(stats[key].as_u64().is_some_and(|n| n > 0), "{key}: {stats}");
    }
    let text = crate::harness::run(&["ops", &trace("bad"), "--stats"]);
    assert!(text.stderr.starts_with("stats: ") && text.stdout.contains("aten::mm"), "{}", text.stderr);
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    for args in [&["ops", &trace("qwen3_stack"), "--json", "--by", "stack=9"][..], &[&trace("bad")], &["completions", "bash"], &["--help"]]
    {
        let mut child = command(args)
            .stdin(std::process::Stdio::null())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .expect("the program starts");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("the program ends");
        assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0), "{args:?}");
    }
}

#[test]
fn names_from_a_trace_cannot_act_on_the_reader() {
    let event = r#"{"ph":"X","cat":"cpu_op","name":"=cmd\u001b[31m|<b>\u202e`\n","pid":1,"tid":1,"ts":1,"dur":5}"#;
    let trace = format!(r#"{{"traceEvents":[{event}]}}"#);
    let print = |args: &[&str]| run_with(&[&["ops", "-"], args].concat(), trace.as_bytes()).stdout;
    for out in [print(&[]), print(&["--markdown"]), print(&["--csv"])] {
        assert!(!out.contains(['\x1b', '\u{202e}']) && out.contains("\\n"), "{out}");
    }
    assert!(print(&["--markdown"]).contains("\\|&lt;b&gt;"), "{}", print(&["--markdown"]));
    assert!(print(&["--csv"]).contains("\n'=cmd\\u{1b}[31m"), "{}", print(&["--csv"]));
    assert_eq!(validate(&print(&["--json"]))["ops"][0]["name"], "=cmd\u{1b}[31m|<b>\u{202e}`\n");
}

/// What a trace is known to show, in the words of the page.
#[test]
fn suspects_are_listed_at_their_true_size() {
    let page = |name: &str, args: &[&str]| validate(&print(&[&[trace(name).as_str(), "--json"], args].concat()));
    let smell = |page: &serde_json::Value, code: &str| {
        page["smells"].as_array().expect("a list").iter().find(|smell| smell["code"] == code).cloned().unwrap_or_default()
    };
    let near = |value: &serde_json::Value, expected: f64| (value.as_f64().unwrap_or(f64::NAN) - expected).abs() < expected / 20.0;

    let bad = page("bad", &[]);
    assert_eq!(bad["smells"][0]["code"], "copies", "copies first");
    assert!(near(&smell(&bad, "copies")["evidence"]["exposed_of_span_fraction"], 0.88));
    assert!(near(&smell(&bad, "allocation")["share_fraction"], 0.0033));
    assert!(near(&smell(&bad, "cold_start")["evidence"]["self_ns"], 82e6));

    let item = page("qwen3_item", &[]);
    assert_eq!(item["report"]["next_experiment_code"], "host_bound");
    assert!(near(&smell(&item, "synchronisation")["evidence"]["of_idle_fraction"], 0.000_192));
    let slow = smell(&item, "slow_steps");
    assert_eq!((&slow["evidence"]["slow_steps"], &slow["evidence"]["operator"]), (&2.into(), &"aten::_cudnn_attention_forward".into()));

    let eager = page("qwen3_eager", &[]);
    let phases = &eager["questions"][2]["evidence"];
    assert!(near(&phases["prefill_gpu_busy_of_span_fraction"], 0.191) && near(&phases["decode_gpu_busy_of_span_fraction"], 0.084));
    assert!(smell(&eager, "shape_churn")["summary"].as_str().is_some_and(|text| text.starts_with("aten::cat")));
    let calibrated = page("qwen3_eager", &["--range", "decode_step", "--unprofiled-step-ms", "20"]);
    let calibration = &calibrated["host_clock"]["calibration"];
    assert!(near(&calibration["inflation_ratio"], 2.06) && near(&calibration["busy_fraction"], 0.174), "{calibration}");

    let graph = page("qwen3_graph", &[]);
    assert!(smell(&graph, "host_bound").is_null() && graph["host_clock"].is_null(), "replays launched ahead are not host-bound");
    assert_eq!(smell(&graph, "many_tiny_kernels")["evidence"]["graph_replays"], 12);
    assert_eq!(graph["questions"][2]["evidence"]["decode"], "replay_step");

    for question in page("cpuonly", &[])["questions"].as_array().expect("a list") {
        assert_eq!(question["verdict"], "unknown", "{question}");
        assert!(question["answer"].as_str().is_some_and(|answer| answer.contains("cannot be known")), "{question}");
    }
    let gpuonly = page("gpuonly", &[]);
    assert_eq!((&gpuonly["questions"][0]["verdict"], &gpuonly["questions"][1]["verdict"]), (&"packed".into(), &"unknown".into()));
}
