//! `longpole ncu` on the recorded reports: what it prints in every form, and how it ends.

use std::fs;

use insta::assert_snapshot;
use serde_json::Value;

use crate::harness::{command, print, root, run, run_with};
use crate::made_report::{empty, many, plain, results_of_no_bytes};
use crate::schema::validate;

const REPORTS: [&str; 3] = ["kern_basic.ncu-rep", "gemv_before.ncu-repz", "gemv_after.ncu-repz"];

fn report(name: &str) -> String {
    format!("corpus/ncu/{name}")
}

fn stem(name: &str) -> &str {
    name.split('.').next().unwrap_or_default()
}

/// What is printed for a report on standard input.
fn print_made(bytes: &[u8], args: &[&str]) -> String {
    let run = run_with(&[&["ncu", "-"], args].concat(), bytes);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{args:?}");
    run.stdout
}

#[test]
fn the_page_of_every_report_as_text() {
    for name in REPORTS {
        assert_snapshot!(format!("ncu_{}", stem(name)), print(&["ncu", &report(name)]));
    }
    for columns in ["80", "140"] {
        let out = command(&["ncu", &report("gemv_before.ncu-repz"), "--id", "0"]).env("COLUMNS", columns).output().expect("it starts");
        assert_snapshot!(format!("ncu_gemv_before_{columns}"), String::from_utf8_lossy(&out.stdout));
    }
    assert_snapshot!("ncu_kern_basic_full", print(&["ncu", &report("kern_basic.ncu-rep"), "--id", "0", "--full"]));
}

#[test]
fn the_page_of_every_report_as_markdown() {
    for name in REPORTS {
        assert_snapshot!(format!("ncu_{}_markdown", stem(name)), print(&["ncu", &report(name), "--id", "0", "--markdown"]));
    }
    assert_snapshot!("ncu_table_markdown", print(&["ncu", &report("gemv_before.ncu-repz"), "--table", "--markdown"]));
    assert_snapshot!(
        "ncu_source_markdown",
        print(&["ncu", &report("gemv_after.ncu-repz"), "--id", "0", "--source", "--markdown", "--limit", "3"])
    );
}

#[test]
fn the_page_of_every_report_as_json() {
    for name in REPORTS {
        let json = print(&["ncu", &report(name), "--json", "--id", "0", "--limit", "1"]);
        validate(&json);
        assert_snapshot!(format!("ncu_{}_json", stem(name)), json);
    }
}

#[test]
fn a_report_of_which_nothing_is_usable_exits_with_3_and_says_why() {
    let kernel = fs::read(root().join(report("kern_basic.ncu-rep"))).expect("the corpus is there");
    let packed = fs::read(root().join(report("gemv_before.ncu-repz"))).expect("the corpus is there");
    let header = "\"ID\",\"Process ID\",\"Process Name\",\"Kernel Name\",\"gpu__time_duration.sum\"\n";
    let no_bytes = results_of_no_bytes(1_000);
    let cases: [(&[u8], &str); 7] = [
        (&empty(), "`-` has no results: nothing was profiled"),
        (&kernel[..1_000], "`-` ends before its first result"),
        (&kernel[..12], "`-` ends before its first result"),
        (&kernel[..4], "`-` ends before its first result"),
        (&packed[..400], "`-` "),
        (header.as_bytes(), "`-` has a header and no rows"),
        (&no_bytes, "no result of `-` could be read"),
    ];
    for (bytes, part) in cases {
        for args in [&[][..], &["--json"], &["--table"], &["--source"], &["--metrics", "."], &["--report-only"], &["--csv"]] {
            let run = run_with(&[&["ncu", "-"], args].concat(), bytes);
            assert_eq!((run.code, run.stdout.as_str(), run.stderr.lines().count()), (Some(3), "", 1), "{args:?}: {}", run.stderr);
            assert!(run.stderr.contains(part), "{args:?}: {}", run.stderr);
        }
    }
}

#[test]
fn metrics_as_csv_have_one_header_and_all_rows_of_all_kernels() {
    let many = many(200);
    let csv = print_made(&many, &["--metrics", ".", "--csv"]);
    assert_eq!((csv.lines().count(), csv.matches("metric,value").count()), (201, 1), "{csv}");
    let limited = print_made(&many, &["--metrics", ".", "--csv", "--limit", "70"]);
    assert_eq!(limited.lines().count(), 71);
    let text = print_made(&many, &["--metrics", ".", "--limit", "70"]);
    assert!(text.contains("and 130 more; --limit 0 shows all"), "{text}");
    let json = validate(&print_made(&many, &["--metrics", ".", "--json"]));
    assert_eq!(json["kernels"].as_array().map(Vec::len), Some(200));
}

#[test]
fn more_kernels_than_fit_into_memory_are_not_shown_in_full() {
    let many = many(66_000);
    for args in [&["--json"][..], &["--source"]] {
        let run = run_with(&[&["ncu", "-"], args].concat(), &many);
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{args:?}");
        assert!(run.stderr.contains("at most 65,536 kernels are shown in full at once, and these are 66,000"), "{}", run.stderr);
    }
}

#[test]
fn every_view_in_every_form() {
    let (before, after) = (&report("gemv_before.ncu-repz"), &report("gemv_after.ncu-repz"));
    assert_snapshot!("ncu_table", print(&["ncu", before, "--table"]));
    assert_snapshot!("ncu_table_csv", print(&["ncu", before, "--csv"]));
    assert_snapshot!(
        "ncu_table_sorted",
        print(&["ncu", &report("kern_basic.ncu-rep"), "--table", "--sort", "launch", "--kernel", "norm|gemv"])
    );
    assert_snapshot!("ncu_source", print(&["ncu", before, "--source", "--limit", "6"]));
    assert_snapshot!("ncu_source_csv", print(&["ncu", before, "--id", "1", "--source", "--csv", "--limit", "4"]));
    assert_snapshot!("ncu_metrics", print(&["ncu", before, "--metrics", "^dram__bytes.*sum$|per_opcode$|waves"]));
    assert_snapshot!("ncu_metrics_csv", print(&["ncu", before, "--id", "0", "--metrics", "^dram__bytes.*sum$|waves", "--csv"]));
    assert_snapshot!("ncu_report_only", print(&["ncu", before, "--report-only"]));
    assert_snapshot!("ncu_compare", print(&["ncu", after, "--compare", before]));
    assert_snapshot!("ncu_compare_markdown", print(&["ncu", after, "--compare", before, "--kernel", "gemv", "--markdown"]));
    assert_snapshot!("ncu_compare_csv", print(&["ncu", after, "--compare", before, "--kernel", "gemv", "--csv"]));
    let json = print(&["ncu", after, "--compare", before, "--kernel", "gemv", "--json"]);
    validate(&json);
    assert_snapshot!("ncu_compare_json", json);
    // More kernels than are compared in full.
    assert_snapshot!("ncu_compare_many", print(&["ncu", &report("kern_basic.ncu-rep"), "--compare", &report("kern_basic.ncu-rep")]));
}

#[test]
fn every_document_follows_its_schema() {
    let before = &report("gemv_before.ncu-repz");
    for name in REPORTS {
        let path = &report(name);
        for args in [&[][..], &["--table"], &["--source"], &["--metrics", "dram|opcode"], &["--compare", before]] {
            validate(&print(&[&["ncu", path, "--json"], args].concat()));
        }
    }
}

#[test]
fn lists_are_whole_in_json_and_what_was_not_collected_is_null() {
    let document = validate(&print(&["ncu", &report("gemv_before.ncu-repz"), "--json"]));
    let kernel = &document["kernels"][0];
    let hot = kernel["hot"].as_array().expect("a list");
    let samples: u64 = hot.iter().filter_map(|row| row["samples"].as_u64()).sum();
    assert_eq!((Some(samples), hot.len() > 50), (kernel["samples"].as_u64(), true));
    assert_eq!((&kernel["instructions"], &kernel["metrics"]), (&Value::Null, &Value::Null));
    assert_eq!((kernel["duration_ns"].as_u64(), kernel["dram_read_bytes"].as_u64()), (Some(352_576), Some(99_635_968)));
    let producer = &hot[0]["waits_for"];
    assert_eq!((&producer["mnemonic"], &producer["what"]), (&"LDG".into(), &"load from global memory".into()), "{producer}");

    let basic = validate(&print(&["ncu", &report("kern_basic.ncu-rep"), "--json"]));
    let kernel = &basic["kernels"][0];
    for key in ["dram_read_bytes", "l2_hit_pct", "warp_cycles_per_issue", "samples"] {
        assert!(kernel[key].is_null(), "{key}: {}", kernel[key]);
    }
    assert!(kernel["missing"].as_array().is_some_and(|missing| missing.iter().any(|one| one["section"] == "WarpStateStats")));
    assert!(print(&["ncu", &report("kern_basic.ncu-rep"), "--id", "0"]).contains("add `--section WarpStateStats`"));

    let source = validate(&print(&["ncu", &report("gemv_before.ncu-repz"), "--json", "--source", "--id", "0"]));
    let kernel = &source["kernels"][0];
    assert_eq!(kernel["instructions"].as_array().map(Vec::len), Some(256));
    assert!(kernel["lines"].as_array().is_some_and(|lines| lines.len() > 1) && kernel["own_lines"].as_array().is_some());
    let metrics = validate(&print(&["ncu", &report("gemv_before.ncu-repz"), "--json", "--metrics", "^inst_executed$", "--id", "0"]));
    let metric = &metrics["kernels"][0]["metrics"][0];
    assert_eq!((&metric["unit"], metric["instances"].as_array().map(Vec::len)), (&"inst".into(), Some(244)));
}

#[test]
fn usage_errors_exit_with_2_and_say_what_there_is() {
    let basic = &report("kern_basic.ncu-rep");
    for (args, part) in [
        (&["--sort", "speed"][..], "use one of launch, duration"),
        (&["--id", "9"], "there is no result 9; the report has 0 to 5"),
        (&["--kernel", "("], "unclosed group"),
        (&["--table", "--source"], "cannot be used with"),
        (&["--compare", basic, "--id", "0"], "cannot be used with"),
        (&["--report-only", "--json"], "cannot be used with"),
        (&["--limit", "-1"], "use a number of rows"),
    ] {
        let run = run(&[&["ncu", basic], args].concat());
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{args:?}: {}", run.stderr);
        assert!(run.stderr.contains(part), "{args:?}: {}", run.stderr);
    }
}

#[test]
fn what_is_no_report_exits_with_3_and_one_sentence() {
    for (path, part) in [
        ("no_such_file.ncu-rep", "cannot read `no_such_file.ncu-rep`"),
        ("Cargo.lock", "is not a usable Nsight Compute report"),
        ("corpus/kineto/bad.json.gz", "found a gzip stream"),
    ] {
        let run = run(&["ncu", path]);
        assert_eq!((run.code, run.stdout.as_str(), run.stderr.lines().count()), (Some(3), "", 1), "{path}: {}", run.stderr);
        assert!(run.stderr.contains(part), "{path}: {}", run.stderr);
    }
}

#[test]
fn a_report_is_recognised_without_a_command_and_named_by_the_others() {
    for name in REPORTS {
        let path = &report(name);
        assert_eq!(print(&[path]), print(&["ncu", path]), "{name}");
        assert_eq!(print(&["--markdown", path]), print(&["ncu", "--markdown", path]), "{name}");
        for other in ["triage", "ops"] {
            let run = run(&[other, path]);
            assert_eq!(run.code, Some(3), "{name}");
            assert!(run.stderr.contains("an Nsight Compute report; read it with `longpole ncu FILE`"), "{name}: {}", run.stderr);
        }
    }
}

#[test]
fn a_cut_report_gives_what_stands_before_the_cut() {
    let bytes = fs::read(root().join(report("kern_basic.ncu-rep"))).expect("the corpus is there");
    let cut = &bytes[..bytes.len() * 3 / 4];
    let document = validate(&print_made(cut, &["--json"]));
    assert_eq!(document["trust"]["grade"], "partial");
    let kernels = document["kernels"].as_array().map_or(0, Vec::len);
    assert!((1..6).contains(&kernels), "{kernels}");
    assert!(print_made(cut, &[]).starts_with("trust   partial: "));
    let strict = run_with(&["ncu", "-", "--strict"], cut);
    assert_eq!(strict.code, Some(3), "{}", strict.stderr);
    assert!(strict.stdout.contains("gemv_row_per_thread") && strict.stderr.contains("--strict was given"), "{}", strict.stderr);
    let csv = run_with(&["ncu", "-", "--csv"], cut);
    assert!(csv.stdout.starts_with("short_name,name,id,") && csv.stderr.starts_with("trust   partial: "), "{}", csv.stderr);
    assert_eq!(run(&["ncu", &report("kern_basic.ncu-rep"), "--strict"]).code, Some(0));
}

#[test]
fn threads_and_ways_in_change_nothing() {
    let path = &report("gemv_before.ncu-repz");
    for args in [&["--json", "--source"][..], &["--table", "--json"]] {
        let with = |threads| print(&[&["ncu", path, "--threads", threads], args].concat());
        assert!(with("1") == with("4"), "{args:?}");
    }
    let bytes = fs::read(root().join(path)).expect("the corpus is there");
    let (mut piped, mut file) = (validate(&print_made(&bytes, &["--json"])), validate(&print(&["ncu", path, "--json"])));
    for document in [&mut piped, &mut file] {
        document["source"]["path"] = Value::Null;
    }
    assert_eq!(piped, file);
}

#[test]
fn narrow_pages_fit_and_keep_what_they_are_sorted_by() {
    let path = report("gemv_before.ncu-repz");
    for args in [&["--id", "0"][..], &["--table", "--sort", "occupancy"], &["--source"], &["--metrics", "dram"], &["--full"]] {
        for columns in [60, 80, 100] {
            let args = [&["ncu", path.as_str()], args].concat();
            let output = command(&args).env("COLUMNS", columns.to_string()).output().expect("the program starts");
            let text = String::from_utf8(output.stdout).expect("output is UTF-8");
            // Words without a space cannot be broken.
            for line in text.lines().filter(|line| line.contains("  ") && !line.contains("https://")) {
                assert!(line.chars().count() <= columns, "{args:?} at {columns}: {line}");
            }
            assert!(
                !args.contains(&"occupancy") || text.lines().any(|line| line.starts_with("kernel ") && line.contains("occupancy")),
                "{text}"
            );
        }
    }
}

#[test]
fn the_command_line_of_a_run_is_shown_on_request_only() {
    for name in REPORTS {
        let (kept, shown) = (print(&["ncu", &report(name), "--json"]), print(&["ncu", &report(name), "--json", "--no-redact"]));
        assert!(validate(&kept)["source"]["command_line"].is_null(), "{name}");
        assert!(validate(&shown)["source"]["command_line"].as_str().is_some_and(|line| line.contains("ncu")), "{name}");
    }
}

#[test]
fn a_plain_kernel_without_sections_says_what_to_add() {
    let text = print_made(&plain(), &[]);
    assert!(text.contains("not collected") && text.contains("--section SpeedOfLight"), "{text}");
    assert!(
        !text.contains("0 ns") && text.contains("verdict        no verdict: its figures were not collected"),
        "nothing is made up: {text}"
    );
    let table = print_made(&plain(), &["--table"]);
    assert!(table.contains("not collected (add `--section SpeedOfLight`)"), "{table}");
}

#[test]
fn nothing_that_matches_is_said_in_every_view() {
    let basic = &report("kern_basic.ncu-rep");
    for args in [&[][..], &["--table"], &["--source"], &["--markdown"]] {
        let text = print(&[&["ncu", basic, "--kernel", "zzz"], args].concat());
        assert!(args == ["--source"] || text.contains("no kernel matches --kernel (6 without it)"), "{args:?}: {text}");
    }
    let lines = run(&["ncu", basic, "--kernel", "zzz", "--report-only"]);
    assert_eq!((lines.code, lines.stdout.as_str(), lines.stderr.trim()), (Some(0), "", "no kernel matches"));
    assert!(print(&["ncu", basic, "--metrics", "zzz"]).contains("no metric matches"));
}

#[test]
fn inputs_of_other_kinds_are_named() {
    for (bytes, part) in
        [(&b" \n {\"traceEvents\": []}"[..], "found JSON"), (b"\x1f\x8b\x08", "found a gzip stream: unpack it first (gunzip)")]
    {
        let run = run_with(&["ncu", "-"], bytes);
        assert!(run.code == Some(3) && run.stderr.contains(part), "{}", run.stderr);
    }
}

#[test]
fn names_of_metrics_are_whole_beside_long_texts() {
    let output = command(&["ncu", &report("gemv_before.ncu-repz"), "--metrics", ".", "--limit", "0"]).env("COLUMNS", "160").output();
    let text = String::from_utf8(output.expect("it starts").stdout).expect("output is UTF-8");
    assert!(text.contains("dram__bytes.sum.per_second") && text.contains(" names "), "{text}");
    let names: Vec<&str> = text.lines().filter_map(|line| line.split("  ").next()).filter(|name| name.contains("__")).collect();
    let cut = names.iter().find(|name| name.contains('…'));
    assert!(names.len() > 500 && cut.is_none(), "{} names, of which {cut:?}", names.len());
}
