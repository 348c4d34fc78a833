//! Budgets: what they let pass and what they break, and what is said of it.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use insta::assert_snapshot;
use serde_json::Value;

use crate::harness::{CORPUS, Run, command, print, root, run, trace};
use crate::hostile::assert_inert;
use crate::redaction::{PASSWORD, TOKEN, USER, assert_clean, planted};
use crate::schema::validate;

const GRAPH: &str = "corpus/budgets/graph.toml";

/// A budget in a folder of its own.
fn written(directory: &Path, text: &str) -> String {
    let path = directory.join("budget.toml");
    fs::write(&path, format!("version = 1\n{text}\n")).expect("written");
    path.to_str().expect("UTF-8").to_owned()
}

/// Checks a recorded trace against a budget.
fn check(name: &str, budget: &str, more: &[&str]) -> Run {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let budget = written(directory.path(), budget);
    run(&[&["check", &trace(name), "--budget", &budget, "--quiet"], more].concat())
}

/// The rows of its document, by name.
fn rows(name: &str, budget: &str) -> Vec<Value> {
    let checked = check(name, budget, &["--json"]);
    validate(&checked.stdout)["limits"].as_array().unwrap_or_else(|| panic!("{}", checked.stderr)).clone()
}

/// Where the recorded traces are, from any folder.
fn corpus() -> String {
    root().join("corpus/kineto").canonicalize().expect("it is there").display().to_string()
}

#[test]
fn one_trace_keeps_a_budget_that_another_breaks() {
    let kept = run(&["check", &trace("qwen3_graph"), "--budget", GRAPH]);
    assert_eq!(kept.code, Some(0), "{}", kept.stderr);
    assert_snapshot!("check_kept", kept.stdout);
    let broken = run(&["check", &trace("qwen3_eager"), "--budget", GRAPH, "--quiet"]);
    assert_eq!(broken.code, Some(1));
    assert!(broken.stderr.starts_with("error: over budget: ") && broken.stderr.lines().count() == 1, "{}", broken.stderr);
    assert_snapshot!("check_broken", broken.stdout);
    for (format, snapshot) in [("--markdown", "check_broken_markdown"), ("--csv", "check_broken_csv"), ("--json", "check_broken_json")] {
        let broken = run(&["check", &trace("qwen3_eager"), "--budget", GRAPH, "--quiet", format]);
        assert_eq!(broken.code, Some(1), "{format}");
        assert_snapshot!(snapshot, broken.stdout);
    }
}

#[test]
fn every_trace_keeps_what_it_proposes() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for name in CORPUS {
        let scopes: &[&[&str]] = if name == "qwen3_eager" {
            &[&[], &["--range", "decode_step"], &["--step", "2"], &["--time", "50ms.."], &["--device", "0"]]
        } else {
            &[&[]]
        };
        for (number, scope) in scopes.iter().enumerate() {
            let path = directory.path().join(format!("{name}{number}.toml"));
            let path = path.to_str().expect("UTF-8");
            let proposed = run(&[&["check", &trace(name), "--write-budget", "-o", path][..], scope].concat());
            assert!(proposed.code == Some(0) && proposed.stdout.is_empty(), "{name} {scope:?}: {}", proposed.stderr);
            assert!(proposed.stderr.starts_with("wrote ") && proposed.stderr.contains(" limits to "), "{}", proposed.stderr);
            let text = fs::read_to_string(path).expect("written");
            assert_eq!(text, print(&[&["check", &trace(name), "--write-budget"][..], scope].concat()), "{name}");
            let kept = run(&["check", &trace(name), "--budget", path, "--json"]);
            assert_eq!(kept.code, Some(0), "{name} {scope:?}: {}", kept.stdout);
            let document = validate(&kept.stdout);
            let limits = document["limits"].as_array().expect("a list");
            assert!(limits.len() >= 3 && limits.iter().all(|limit| limit["verdict"] == "ok"), "{name}: {document}");
            assert!(limits.iter().all(|limit| limit["headroom_fraction"].as_f64().is_none_or(|room| room >= 0.0)), "{name}");
            // The scope is in the budget: what is checked is what was measured.
            assert_eq!(document["scope"]["range"].as_str(), scope.first().filter(|flag| **flag == "--range").map(|_| "decode_step"));
            let again = run(&["check", &trace(name), "--write-budget", "-o", path]);
            assert_eq!(again.code, Some(2), "a budget is not overwritten");
        }
    }
    let proposed = print(&["check", &trace("qwen3_eager"), "--write-budget"]);
    assert_eq!(print(&["check", &trace("qwen3_eager"), "--write-budget", "-o", "-"]), proposed, "- is standard output");
    assert_snapshot!("check_proposed", proposed);
}

#[test]
fn a_figure_is_the_one_that_its_command_prints() {
    for (path, command, pointer) in [
        ("triage.totals.wall_ns", "triage", "/totals/wall_ns"),
        ("triage.totals.gpu_busy_fraction", "triage", "/totals/gpu_busy_fraction"),
        ("ops.ops[0].self_cuda_ns", "ops", "/ops/0/self_cuda_ns"),
        ("kernels.kernels[0].max_ns", "kernels", "/kernels/0/max_ns"),
        ("families.families[0].calls", "families", "/families/0/calls"),
        ("ranges.ranges[1].gpu_busy_ns", "ranges", "/ranges/1/gpu_busy_ns"),
        ("memory.peak_allocated_bytes", "memory", "/peak_allocated_bytes"),
        ("steps.groups[name=decode_step].period_ns", "steps", "/groups/1/period_ns"),
        ("idle.queue.empty_fraction", "idle", "/queue/empty_fraction"),
        ("roofline.covered_fraction", "roofline", "/covered_fraction"),
        ("ranks.ranks[rank=0].compute_ns", "ranks", "/ranks/0/compute_ns"),
    ] {
        let document = validate(&print(&[command, &trace("qwen3_eager"), "--json", "--quiet"]));
        let expected = document.pointer(pointer).unwrap_or_else(|| panic!("{pointer}"));
        let row = rows("qwen3_eager", &format!("[[limit]]\npath = \"{path}\"\nmin = 0")).remove(0);
        match expected.as_i64() {
            Some(whole) => assert_eq!(row["value"].as_i64(), Some(whole), "{path}"),
            None => assert!((row["value"].as_f64().expect(path) - expected.as_f64().expect(path)).abs() < 1e-11, "{path}: {row}"),
        }
        assert_eq!(row["ok"], true);
    }
}

#[test]
fn a_total_is_divided_by_the_steps_in_it() {
    let budget = |more: &str| {
        format!("[scope]\nrange = \"decode_step\"\n[[limit]]\npath = \"triage.totals.kernels\"\nper = \"step\"\nmax = 1700{more}")
    };
    let row = rows("qwen3_eager", &budget("")).remove(0);
    assert_eq!((&row["value"], &row["verdict"], &row["unit"]), (&1646.into(), &"ok".into(), &"number".into()));
    let missing = rows("qwen3_eager", &budget("\nstep = \"prefill\"")).remove(0);
    assert_eq!(missing["verdict"], "MISSING");
    assert!(missing["reason"].as_str().is_some_and(|why| why.contains("there are decode_step")), "{missing}");
    // A flag goes before what the budget says.
    let whole = check("qwen3_eager", &budget("\nstep = \"prefill\""), &["--json", "--range", "prefill"]);
    assert_eq!(validate(&whole.stdout)["limits"][0]["value"], 1590);
}

#[test]
fn a_figure_that_is_not_there_fails_unless_it_may_be_missing() {
    let missing =
        |more: &str| check("qwen3_graph", &format!("[[limit]]\npath = \"memory.peak_allocated_bytes\"\nmax = \"1 GiB\"{more}"), &[]);
    let fails = missing("");
    assert_eq!(fails.code, Some(1));
    assert!(fails.stdout.contains("MISSING") && fails.stdout.contains("it was not recorded (null)"), "{}", fails.stdout);
    let passes = missing("\nmissing = \"ok\"");
    assert_eq!(passes.code, Some(0), "{}", passes.stderr);
    assert!(passes.stdout.contains("MISSING"), "it is said all the same: {}", passes.stdout);
    // A path that no trace has never passes.
    let wrong = check("qwen3_graph", "[[limit]]\npath = \"memory.peak_alocated_bytes\"\nmax = 1\nmissing = \"ok\"", &[]);
    assert_eq!(wrong.code, Some(1));
    assert!(wrong.stdout.contains("has no key `peak_alocated_bytes`; there are"), "{}", wrong.stdout);
    let named = rows("qwen3_eager", "[[limit]]\npath = \"steps.groups[name=decode].busy_ns\"\nmax = 1").remove(0);
    assert!(named["reason"].as_str().is_some_and(|why| why.ends_with("there are prefill, decode_step")), "{named}");
}

#[test]
fn a_regression_takes_more_than_noise() {
    let against = |baseline: &str, more: &str| {
        format!("[[regression]]\nbaseline = \"{}/{baseline}.json.gz\"\nmax_slower = \"3 %\"\n{more}", corpus())
    };
    let verdict = |name: &str, budget: &str| {
        let checked = check(name, budget, &["--json"]);
        let row = validate(&checked.stdout)["limits"][0].clone();
        (row["verdict"].as_str().expect("a verdict").to_owned(), checked.code, row)
    };
    for name in ["qwen3_graph", "qwen3_eager", "bad"] {
        for figure in ["", "figure = \"period\"", "figure = \"busy\"", "family = \"gemm/gemv\"", "idle_cause = \"dispatch\""] {
            let (verdict, code, row) = verdict(name, &against(name, &format!("{figure}\nmissing = \"ok\"")));
            assert!(matches!(verdict.as_str(), "ok" | "MISSING") && code == Some(0), "{name} {figure}: {row}");
        }
    }
    let (slower, code, row) = verdict("qwen3_eager", &against("qwen3_graph", "step = \"decode_step\""));
    assert_eq!((slower.as_str(), code), ("BROKEN", Some(1)), "{row}");
    assert!(row["change"]["low_fraction"].as_f64().is_some_and(|low| low > 0.03), "{row}");
    // Other names of the same step, what is inside it, and what got faster.
    assert_eq!(verdict("qwen3_eager", &against("qwen3_graph", "step = \"replay*\"")).0, "BROKEN");
    assert_eq!(verdict("qwen3_eager", &against("qwen3_graph", "step = \"decode_step\"\nrole = \"attention\"")).0, "ok");
    assert_eq!(verdict("qwen3_graph", &against("qwen3_eager", "step = \"decode_step\"\nfamily = \"attention\"")).0, "BROKEN");
    assert_eq!(verdict("qwen3_graph", &against("qwen3_eager", "step = \"decode_step\"")).0, "ok");
    // One step shows no spread.
    for (more, expected) in [("", Some(0)), ("\nambiguous = \"fail\"", Some(1))] {
        let (verdict, code, row) = verdict("qwen3_item", &against("qwen3_eager", &format!("step = \"prefill\"\nfigure = \"busy\"{more}")));
        assert_eq!((verdict.as_str(), code), ("AMBIGUOUS", expected), "{row}");
        assert!(row["reason"].as_str().is_some_and(|why| why.contains("diff says AMBIGUOUS")), "{row}");
    }
    // What is new has no baseline; what is gone is no regression.
    let (new, code, row) =
        verdict("qwen3_graph", &against("qwen3_eager", "step = \"decode_step\"\nkernel = \"elementwise<direct_copy<bf16>>\""));
    assert_eq!((new.as_str(), code), ("MISSING", Some(1)), "{row}");
    assert!(row["reason"].as_str().is_some_and(|why| why.contains("is new")), "{row}");
    let gone = verdict("qwen3_graph", &against("qwen3_eager", "step = \"decode_step\"\nkernel = \"CatArrayBatchedCopy_vectorized<2B>\""));
    assert_eq!((gone.0.as_str(), gone.1), ("ok", Some(0)), "{}", gone.2);
    let (none, _, row) = verdict("qwen3_graph", &against("qwen3_eager", "step = \"encode\""));
    assert!(none == "MISSING" && row["reason"].as_str().is_some_and(|why| why.contains("paired are replay_step")), "{row}");
    let settings = check("qwen3_eager", &against("qwen3_graph", ""), &[]);
    assert!(settings.stdout.contains("not as in `"), "what else differs is said: {}", settings.stdout);
}

#[test]
fn a_range_of_one_trace_alone_says_which() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    // One kernel in one range, called differently in the two traces.
    let recorded = |name: &str| {
        let event = |more: &str| format!(r#"{{"ph":"X","pid":1,"tid":1,{more}}}"#);
        let events = [
            event(&format!(r#""cat":"user_annotation","name":"{name}","ts":1000,"dur":100"#)),
            event(r#""cat":"cuda_runtime","name":"cudaLaunchKernel","ts":1010,"dur":5,"args":{"correlation":7}"#),
            r#"{"ph":"X","pid":0,"tid":7,"cat":"kernel","name":"k","ts":1020,"dur":50,"args":{"device":0,"stream":7,"correlation":7}}"#
                .to_owned(),
        ];
        let path = directory.path().join(format!("{name}.json"));
        fs::write(&path, format!(r#"{{"schemaVersion":1,"traceEvents":[{}]}}"#, events.join(","))).expect("written");
        path.to_str().expect("UTF-8").to_owned()
    };
    let (old, new) = (recorded("old"), recorded("new"));
    for (range, expected) in [
        ("old", "the checked trace has no such range with device work, the baseline has one"),
        ("new", "the baseline has no such range with device work, the checked trace has one"),
        ("none", "neither trace has such a range with device work"),
        ("*", "no such range with device work is in both traces under one name"),
    ] {
        let text = format!("[[regression]]\nbaseline = \"{old}\"\nrange = \"{range}\"\nmax_slower = \"3 %\"");
        let budget = written(directory.path(), &text);
        let row = validate(&run(&["check", &new, "--budget", &budget, "--json"]).stdout)["limits"][0].clone();
        assert_eq!((row["verdict"].as_str(), row["reason"].as_str()), (Some("MISSING"), Some(expected)), "{range}: {row}");
    }
}

#[test]
fn a_change_of_what_is_below_zero_has_the_right_sign() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = trace("qwen3_eager");
    let document: Value = serde_json::from_str(&print(&["triage", &path, "--json", "--quiet"])).expect("JSON");
    let kernels = document["totals"]["kernels"].as_i64().expect("a number");
    let check = |before: i64, bound: &str| {
        let document = format!(r#"{{"schema": "longpole.triage/1", "scope": {{}}, "totals": {{"kernels": {before}}}}}"#);
        fs::write(directory.path().join("before.json"), document).expect("written");
        let text = format!("[[regression]]\nbaseline = \"before.json\"\npath = \"triage.totals.kernels\"\n{bound}");
        let budget = written(directory.path(), &text);
        let checked = run(&["check", &path, "--budget", &budget, "--json", "--quiet"]);
        (checked.code, validate(&checked.stdout)["limits"][0].clone())
    };
    // From as far below 0 as it now is above: twice that more.
    let (code, row) = check(-kernels, "max_slower = \"10 %\"");
    assert_eq!((code, row["value"].as_i64()), (Some(1), Some(2)), "{row}");
    let (code, row) = check(-kernels, "max_drop = \"10 %\"");
    assert_eq!((code, row["value"].as_i64()), (Some(0), Some(2)), "{row}");
    let (code, row) = check(0, "max_slower = \"1000 %\"");
    assert_eq!((code, row["verdict"].as_str(), row["value"].as_i64()), (Some(1), Some("BROKEN"), None), "{row}");
    assert_eq!(row["reason"], "the baseline is 0, of which nothing is a share");
}

#[test]
fn a_printed_document_is_a_baseline_too() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let budget = |figure: &str| {
        written(directory.path(), &format!("[[regression]]\nbaseline = \"steps.json\"\npath = \"steps.groups[name=decode_step].{figure}"))
    };
    let printed = print(&["steps", &trace("qwen3_eager"), "--json", "--quiet"]);
    fs::write(directory.path().join("steps.json"), &printed).expect("written");
    let checked = |name: &str, figure: &str| {
        let checked = run(&["check", &trace(name), "--budget", &budget(figure), "--quiet", "--json"]);
        (checked.code, validate(&checked.stdout)["limits"][0].clone())
    };
    let (code, row) = checked("qwen3_eager", "busy_ns\"\nmax_slower = 0");
    assert_eq!((code, &row["value"], &row["change"]["before"]), (Some(0), &0.into(), &row["change"]["after"]));
    let (code, row) = checked("qwen3_item", "busy_ns\"\nmax_slower = \"1 %\"");
    assert_eq!((code, row["verdict"].as_str()), (Some(0), Some("ok")), "{row}");
    assert!(row["value"].as_f64().is_some_and(|share| share > 0.0), "{row}");
    let (code, _) = checked("qwen3_item", "busy_ns\"\nmax_slower = \"0.01 %\"");
    assert_eq!(code, Some(1), "single figures have no spread: the limit is the tolerance");
    let (code, row) = checked("qwen3_item", "period_ns\"\nmax_drop = \"1 %\"");
    assert_eq!((code, row["verdict"].as_str()), (Some(1), Some("BROKEN")), "{row}");
    let scoped =
        run(&["check", &trace("qwen3_eager"), "--budget", &budget("busy_ns\"\nmax_slower = 1"), "--range", "decode_step", "--json"]);
    let note = validate(&scoped.stdout)["notes"][0].as_str().expect("a note").to_owned();
    assert!(note.contains("of another scope than this: the whole trace"), "{note}");
    // Figures of another command are not in it, and figures of steps need a trace.
    let reason = |text: &str| {
        let budget =
            written(directory.path(), &format!("[[regression]]\nbaseline = \"steps.json\"\nmax_slower = 1\nmissing = \"ok\"\n{text}"));
        let checked = run(&["check", &trace("qwen3_eager"), "--budget", &budget, "--json"]);
        assert_eq!(checked.code, Some(1), "what can never be there never passes");
        (budget, validate(&checked.stdout)["limits"][0]["reason"].as_str().expect("a reason").to_owned())
    };
    let (_, why) = reason("path = \"idle.idle_ns\"");
    assert_eq!(why, "of the baseline: the document holds no figures of `idle`");
    let (steps, why) = reason("figure = \"busy\"");
    assert!(why.contains("figures of steps need a trace"), "{why}");
    fs::write(directory.path().join("steps.json"), "{\"schema\": \"longpole.explain/1\"}").expect("written");
    let checked = run(&["check", &trace("qwen3_eager"), "--budget", &steps]);
    assert!(checked.code == Some(3) && checked.stderr.contains("its schema is `longpole.explain/1`"), "{}", checked.stderr);
    fs::write(directory.path().join("steps.json"), format!("{{\"schema\": \"longpole.steps/1\", \"x\": {}", "[".repeat(100_000)))
        .expect("written");
    assert_eq!(run(&["check", &trace("qwen3_eager"), "--budget", &steps]).code, Some(3));
}

#[test]
fn github_is_told_at_the_lines_of_the_budget() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let summary = directory.path().join("summary.md");
    fs::write(&summary, "before\n").expect("written");
    let github = |name: &str, more: &[&str]| {
        let path = trace(name);
        let args = [&["check", &path, "--budget", GRAPH, "--github", "--quiet"], more].concat();
        let output = command(&args).env("GITHUB_STEP_SUMMARY", &summary).stdin(Stdio::null()).output().expect("the program starts");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("output is UTF-8");
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    let (code, out, _) = github("qwen3_eager", &[]);
    assert_eq!(code, Some(1));
    let budget = fs::read_to_string(root().join(GRAPH)).expect("a budget");
    let annotations: Vec<&str> = out.lines().filter(|line| line.starts_with("::error file=corpus/budgets/graph.toml,line=")).collect();
    assert_eq!(annotations.len(), 6, "{out}");
    for annotation in annotations {
        let number: usize = annotation.split("line=").nth(1).and_then(|rest| rest.split(',').next()?.parse().ok()).expect("a line");
        let line = budget.lines().nth(number - 1).expect("a line of the budget");
        assert!(line.starts_with("path = ") || line.starts_with("baseline = "), "{annotation}: {line}");
    }
    assert!(out.contains("::notice file=corpus/budgets/graph.toml,title=Over budget::8 limits, 6 broken\n"), "{out}");
    let (code, markdown, err) = github("qwen3_graph", &["--markdown"]);
    assert_eq!(code, Some(0));
    assert!(!markdown.contains("::notice") && err.contains("::notice file=corpus/budgets/graph.toml,title=Within budget::"), "{err}");
    let written = fs::read_to_string(&summary).expect("written");
    assert!(written.starts_with("before\n") && written.contains("### Over budget · "), "{written}");
    assert!(written.ends_with(&markdown), "the summary is what --markdown prints");
    let (_, json, _) = github("qwen3_graph", &["--json"]);
    validate(&json);
}

#[test]
fn what_is_wrong_with_a_budget_is_said_at_once() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("budget.toml");
    let refused = |bytes: &[u8], part: &str| {
        fs::write(&path, bytes).expect("written");
        // The budget is read first: a trace that is not there is not reached.
        let run = run(&["check", "no_such_trace.json", "--budget", path.to_str().expect("UTF-8")]);
        assert_eq!((run.code, run.stdout.as_str(), run.stderr.lines().count()), (Some(2), "", 1), "{}", run.stderr);
        assert!(run.stderr.contains(part), "{part}: {}", run.stderr);
        assert_inert(&["check"], &run.stderr);
    };
    refused(b"version = 1\n[[limit]]\npath = \"steps.x\"\nmax = 1\nmost = 2", "line 5: unknown field `most`");
    refused(b"version = 1\n[[limit]]\npath = \"steps.busy_ns\"\nmax = \"5 GiB\"", "line 4: `5 GiB` does not fit");
    refused(b"version = 1\n# \xff\xfe", "is not UTF-8 (line 2)");
    refused(b"\x00\x1b[31m\xe2\x80\xae", "line 1");
    refused(format!("version = {}", "[".repeat(500_000)).as_bytes(), "is not right");
    refused("version = 1\n".repeat(200_000).as_bytes(), "is larger than");
    refused(b"", "version");
    let usage = |args: &[&str], part: &str| {
        let run = run(args);
        assert!(run.code == Some(2) && run.stderr.contains(part), "{args:?}: {}", run.stderr);
    };
    let graph = &trace("qwen3_graph");
    usage(&["check", graph], "--budget");
    usage(&["check", graph, "--budget", "no_such.toml"], "cannot be read");
    usage(&["check", graph, "--budget", "corpus"], "cannot be read");
    usage(&["check", graph, "--budget", GRAPH, "--write-budget"], "cannot be used with");
    usage(&["check", graph, "--budget", GRAPH, "-o", "x"], "cannot be used with");
    usage(&["check", graph, "--write-budget", "-o", "no/such/folder/b.toml"], "cannot be written");
    assert_eq!(run(&["check", "no_such_trace.json", "--budget", GRAPH]).code, Some(3));
    let budget = written(directory.path(), "[[regression]]\nbaseline = \"no_such.json\"\nmax_slower = 1");
    let missing = run(&["check", graph, "--budget", &budget]);
    assert!(missing.code == Some(3) && missing.stderr.contains("no_such.json"), "{}", missing.stderr);
}

#[test]
fn figures_of_a_cut_trace_are_lower_bounds() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let bytes = fs::read(root().join(trace("qwen3_item"))).expect("the corpus is there");
    let path = directory.path().join("cut.json.gz");
    fs::write(&path, &bytes[..bytes.len() / 2]).expect("written");
    let path = path.to_str().expect("UTF-8");
    let budget = written(directory.path(), "[[limit]]\npath = \"triage.totals.kernels\"\nmax = 1000000");
    let checked = run(&["check", path, "--budget", &budget, "--json"]);
    assert_eq!(checked.code, Some(0), "{}", checked.stderr);
    let document = validate(&checked.stdout);
    assert!(document["notes"][0].as_str().is_some_and(|note| note.contains("lower bounds")), "{document}");
    assert_eq!(run(&["check", path, "--budget", &budget, "--strict"]).code, Some(3));
}

#[test]
fn limits_are_filtered_and_shortened() {
    let rows = |more: &[&str]| {
        let run = run(&[&["check", &trace("qwen3_eager"), "--budget", GRAPH, "--json", "--quiet"], more].concat());
        (run.code, validate(&run.stdout)["limits"].as_array().map_or(0, Vec::len))
    };
    assert_eq!(rows(&["--filter", "^kernels"]), (Some(0), 1), "what is filtered out is not checked");
    assert_eq!(rows(&["--limit", "2"]), (Some(1), 2), "what is not shown is");
    let none = run(&["check", &trace("qwen3_eager"), "--budget", GRAPH, "--filter", "kernles"]);
    assert_eq!((none.code, none.stdout.as_str(), none.stderr.lines().count()), (Some(2), "", 1), "a check of nothing does not pass");
    assert!(none.stderr.contains("--filter `kernles` matches; there are "), "{}", none.stderr);
}

#[test]
fn names_from_a_trace_act_nowhere() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("t.json");
    fs::write(&path, crate::hostile::trace()).expect("written");
    let path = path.to_str().expect("UTF-8");
    let args = ["check", path, "--write-budget"];
    let proposed = print(&args);
    assert_inert(&args, &proposed);
    let budget = directory.path().join("proposed.toml");
    fs::write(&budget, &proposed).expect("written");
    let budget = budget.to_str().expect("UTF-8");
    assert_eq!(run(&["check", path, "--budget", budget]).code, Some(0), "{proposed}");
    let hostile = r#"
        [[limit]]
        name = "=cmd\u001b[31m|<script>\u202e\n::error::x"
        path = "ranges.ranges[name=\u001b\u202e<script>].calls"
        max = 1
        [[limit]]
        path = "ops.ops[name=nothing].calls"
        max = 1"#;
    let budget = written(directory.path(), hostile);
    for format in [&[][..], &["--markdown"], &["--csv"], &["--json"], &["--github"], &["--json", "--github"]] {
        let args = [&["check", path, "--budget", &budget], format].concat();
        let run = run(&args);
        assert_eq!(run.code, Some(1));
        assert_inert(&args, &run.stdout);
        assert_inert(&args, &run.stderr);
        assert!(!run.stdout.lines().chain(run.stderr.lines()).any(|line| line.starts_with("::error::")), "{}", run.stdout);
        assert!(format != ["--markdown"] || !run.stdout.contains("<script"), "{}", run.stdout);
    }
}

#[test]
fn no_secret_is_shown() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let inside = directory.path().join(format!("home/{USER}/{TOKEN}"));
    fs::create_dir_all(&inside).expect("created");
    let path = inside.join("t.json");
    fs::write(&path, planted()).expect("written");
    let path = path.to_str().expect("UTF-8");
    let output = inside.join(format!("{TOKEN}.toml"));
    let args = ["check", path, "--write-budget", "-o", output.to_str().expect("UTF-8")];
    assert_clean(&args, &run(&args));
    let args = ["check", path, "--write-budget"];
    let proposed = run(&args);
    assert_clean(&args, &proposed);
    assert_eq!(fs::read_to_string(&output).expect("written"), proposed.stdout);
    let kept = ["check", path, "--budget", output.to_str().expect("UTF-8")];
    let run_kept = run(&kept);
    assert_clean(&kept, &run_kept);
    assert_eq!(run_kept.code, Some(0), "{}", run_kept.stdout);
    for (text, code) in [
        (format!("[[limit]]\nname = \"{TOKEN}\"\npath = \"ranges.ranges[name={TOKEN} password={PASSWORD}].calls\"\nmax = 1"), 1),
        (format!("[[regression]]\nbaseline = \"t.json\"\nname = \"{TOKEN}\"\noperator = \"{TOKEN}\"\nmax_slower = 1"), 1),
        (format!("[[regression]]\nbaseline = \"/home/{USER}/{TOKEN}.json\"\nmax_slower = 1"), 3),
        (format!("[[limit]]\npath = \"{TOKEN}\"\nmax = 1"), 2),
        (format!("[scope]\nrange = \"{TOKEN}\"\n[[limit]]\npath = \"idle.idle_ns\"\nmax = 1"), 2),
    ] {
        let budget = written(&inside, &text);
        for format in [&[][..], &["--json"], &["--markdown"], &["--csv"], &["--github"]] {
            let args = [&["check", path, "--budget", &budget], format].concat();
            let run = run(&args);
            assert_eq!(run.code, Some(code), "{text}: {}", run.stderr);
            assert_clean(&args, &run);
        }
    }
}
