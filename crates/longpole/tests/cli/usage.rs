//! Wrong command lines and unreadable inputs: the right code and one clear sentence.

use std::fs;

use crate::harness::{print, run, run_with, trace};

/// The run fails with `code`, prints nothing on standard output, and says `part`.
fn refuses(args: &[&str], code: i32, part: &str) {
    let run = run(args);
    assert_eq!((run.code, run.stdout.as_str()), (Some(code), ""), "{args:?}: {}", run.stderr);
    assert!(run.stderr.contains(part), "{args:?}: {}", run.stderr);
    assert!(!run.stderr.contains("panicked"), "{args:?}: {}", run.stderr);
}

#[test]
fn usage_errors_exit_with_2_and_say_what_there_is() {
    let (bad, eager) = (&trace("bad"), &trace("qwen3_eager"));
    refuses(&["ops", bad, "--nonsense"], 2, "--nonsense");
    refuses(&["ops"], 2, "<FILE>");
    refuses(&[], 2, "Usage");
    refuses(&["kernals"], 2, "kernels");
    refuses(&["ops", bad, "--filter", "("], 2, "unclosed group");
    refuses(&["ops", bad, "--sort", "speed"], 2, "use one of cuda_time_total, self_cuda_time_total");
    refuses(&["kernels", bad, "--sort", "speed"], 2, "use one of cuda, calls, min, median, max, name");
    refuses(&["ops", bad, "--by", "thread"], 2, "stack=N");
    refuses(&["ops", bad, "--json", "--csv"], 2, "cannot be used with");
    refuses(&[bad, "--csv"], 2, "longpole ops");
    refuses(&[bad, "--unprofiled-step-ms", "0"], 2, "a step takes some time");
    refuses(&["explain", "nonsense"], 2, "there is no suspect `nonsense`; there are allocation, ");
    refuses(&["explain", "copies", "--csv"], 2, "use --json");
    refuses(&[bad, "--report-only", "--json"], 2, "cannot be used with");
    refuses(&["ops", bad, "--time", "5..3"], 2, "ends before it begins");
    refuses(&["ops", bad, "--threads", "0"], 2, "--threads");
    refuses(&["ops", bad, "--threads", "1000"], 2, "1..=64");
    refuses(&["ops", bad, "--threads", "-1"], 2, "1..=64");
    refuses(&["ops", bad, "--limit", "-1"], 2, "use a number of rows, or 0 for all");
    refuses(&["ops", bad, "--step", "-1"], 2, "'--step <K>'");
    refuses(&["ops", bad, "--rank", "-1"], 2, "'--rank <R>'");
    refuses(&["ops", eager, "--device", "-1"], 2, "there is no device -1; the trace has 0");
    refuses(&["ops", eager, "--range", "nope"], 2, "`prefill`, `decode_loop`, `decode_step`");
    refuses(&["ops", eager, "--device", "9"], 2, "there is no device 9; the trace has 0");
    refuses(&["ops", eager, "--rank", "9"], 2, "there is no rank 9; the trace has 0");
    refuses(&["ops", eager, "--step", "99"], 2, "there is no step 99");
}

#[test]
fn unreadable_inputs_exit_with_3_and_one_sentence() {
    refuses(&["no_such_file.json"], 3, "cannot read `no_such_file.json`");
    refuses(&["ops", "Cargo.lock"], 3, "`Cargo.lock` is not a usable profile: expected");
    refuses(&["ops", "corpus/kineto/bad.keyavg.json"], 3, "is not a usable profile");
    let directory = tempfile::tempdir().expect("a temporary directory");
    refuses(&[directory.path().to_str().expect("UTF-8")], 3, "directory");
    let empty = directory.path().join("empty.json");
    fs::write(&empty, "").expect("written");
    refuses(&[empty.to_str().expect("UTF-8")], 3, "empty");
    let run = run_with(&["-"], b"not a trace");
    assert_eq!((run.code, run.stdout.as_str(), run.stderr.lines().count()), (Some(3), "", 1), "{}", run.stderr);
}

#[cfg(target_os = "linux")]
#[test]
fn output_that_cannot_be_written_exits_with_2() {
    let bad = &trace("bad");
    for args in [
        &["--help"][..],
        &["--version"],
        &["ops", "--help"],
        &["ops", bad],
        &["ops", bad, "--json"],
        &["explain"],
        &["completions", "bash"],
    ] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("a full device");
        let output = crate::harness::command(args).stdout(full).output().expect("the program starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains("cannot write the output"), "{args:?}: {said}");
    }
}

#[test]
fn a_file_named_like_a_command_is_reached_by_its_path() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("ops");
    fs::copy(crate::harness::root().join(trace("bad")), &path).expect("copied");
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_longpole"))
        .arg("./ops")
        .current_dir(directory.path())
        .output()
        .expect("the program starts");
    assert_eq!(output.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&output.stdout).contains("source  ./ops"));
}

#[test]
fn a_bare_path_is_triage() {
    assert_eq!(print(&[&trace("bad")]), print(&["triage", &trace("bad")]));
    assert_eq!(print(&["--markdown", &trace("bad")]), print(&["triage", "--markdown", &trace("bad")]));
}

#[test]
fn limits_shorten_text_and_only_asked_for_json() {
    let rows = |args: &[&str]| {
        let json = print(&[&["ops", &trace("qwen3_eager"), "--json"], args].concat());
        crate::schema::validate(&json)["ops"].as_array().map_or(0, Vec::len)
    };
    let whole = rows(&[]);
    assert!(whole > 20);
    assert_eq!((rows(&["--limit", "3"]), rows(&["--limit", "0"])), (3, whole));
    let lines = |args: &[&str]| print(&[&["ops", &trace("qwen3_eager")], args].concat()).lines().count();
    assert_eq!(lines(&["--limit", "0", "--csv"]), whole + 1);
    assert_eq!(lines(&["--csv"]), whole + 1);
    assert_eq!(lines(&["--limit", "20"]), lines(&[]));
    assert!(lines(&["--limit", "0"]) > lines(&[]));
}

#[test]
fn narrow_tables_show_what_they_are_sorted_by() {
    let at_80 = |args: &[&str]| {
        let output = crate::harness::command(args).env("COLUMNS", "80").output().expect("the program starts");
        let text = String::from_utf8(output.stdout).expect("output is UTF-8");
        for line in text.lines().filter(|line| !line.starts_with("source ")) {
            assert!(line.chars().count() <= 80, "{args:?}: {line}");
        }
        text
    };
    let (eager, stacks) = (&trace("qwen3_eager"), &trace("qwen3_stack"));
    let heading = |text: &str| text.lines().skip_while(|line| !line.is_empty()).nth(1).unwrap_or_default().to_owned();
    assert!(heading(&at_80(&["kernels", eager, "--sort", "max"])).contains(" max"));
    assert!(heading(&at_80(&["ops", eager, "--sort", "self_cuda_memory_usage"])).contains("self CUDA mem"));
    assert!(heading(&at_80(&["memory", &trace("bad"), "--sort", "allocations"])).contains("allocations"));
    assert!(heading(&at_80(&["ranges", eager, "--sort", "kernels"])).contains("kernels"));
    assert!(heading(&at_80(&["ops", eager, "--by", "shape"])).contains("input shapes"));
    assert!(at_80(&["ops", stacks, "--by", "stack=3"]).contains(".py("));
    assert!(at_80(&["ops", eager, "--by", "stack=3"]).contains("stacks: not recorded (with_stack=True records them)"));
}

#[test]
fn a_filter_that_matches_nothing_says_so() {
    let bad = &trace("bad");
    for command in ["ops", "kernels", "families", "ranges", "memory"] {
        let out = print(&[command, bad, "--filter", "no such name"]);
        assert!(out.contains("no row matches --filter (") && !out.contains("in scope") && !out.contains("not recorded"), "{out}");
    }
    let page = print(&[bad, "--filter", "no such name"]);
    assert!(page.contains("applies to the tables") && page.contains("no row matches --filter"), "{page}");
}

#[test]
fn kernels_join_with_operators() {
    let first = |line: &str, at: usize| line.split(',').nth(at).unwrap_or_default().to_owned();
    let names: Vec<String> = print(&["ops", &trace("bad"), "--csv"]).lines().map(|line| first(line, 0)).collect();
    let kernels = print(&["kernels", &trace("bad"), "--csv"]);
    assert!(kernels.lines().next().is_some_and(|head| head.ends_with(",op,other_ops")), "{kernels}");
    for line in kernels.lines().skip(1) {
        let op = line.rsplit(',').nth(1).unwrap_or_default();
        assert!(op.is_empty() || names.iter().any(|name| name == op), "{op}");
    }
}

#[test]
fn help_and_completions() {
    for command in [
        "triage",
        "ops",
        "kernels",
        "families",
        "ranges",
        "memory",
        "steps",
        "idle",
        "roofline",
        "ranks",
        "diff",
        "check",
        "bench",
        "profile",
        "explain",
        "doctor",
        "completions",
    ] {
        let help = print(&[command, "--help"]);
        assert!(help.contains("Examples:") && help.contains("longpole"), "{help}");
    }
    assert_eq!(print(&["help", "--help"]), print(&["help"]));
    assert!(print(&["--help"]).contains("--range decode_step"));
    assert!(print(&["--version"]).starts_with("longpole "));
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        assert!(print(&["completions", shell]).contains("kernels"), "{shell}");
    }
}

#[test]
fn a_suspect_is_explained_with_the_limits_that_decide() {
    let list = print(&["explain"]);
    assert!(list.lines().any(|line| line.starts_with("host_bound ")), "{list}");
    let one = print(&["explain", "copies"]);
    assert!(one.starts_with("copies\n") && one.contains("COPY_SHARE = 30 %") && one.contains("fixed by"), "{one}");
    assert!(print(&["explain", "copies", "--markdown"]).starts_with("### copies"));
    let document = crate::schema::validate(&print(&["explain", "copies", "--json"]));
    assert_eq!((document["smells"][0]["code"].as_str(), document["smells"].as_array().map(Vec::len)), (Some("copies"), Some(1)));
    let all = crate::schema::validate(&print(&["explain", "--json"]));
    let codes: Vec<&str> = all["smells"].as_array().expect("a list").iter().filter_map(|smell| smell["code"].as_str()).collect();
    assert_eq!(codes.len(), list.lines().filter(|line| !line.starts_with(' ')).count());
    for code in codes {
        assert!(print(&["explain", code]).contains("detected"), "{code}");
    }
}
