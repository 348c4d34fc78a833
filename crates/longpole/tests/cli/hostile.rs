//! Names that would act on a terminal, a page or a spreadsheet, in every part of a trace: no command lets them.

use std::fs;

use crate::harness::{run, trace_commands};
use crate::made_report::with_text;
use crate::schema::validate;

/// As JSON text: terminal escapes of both widths, a title sequence, right-to-left marks, markup, and a formula in front.
const HOSTILE: &str =
    r"=cmd\u001b[31m\u001b]0;title\u0007\u009b2J|`<script>alert(1)</script><img src=x>\u202e\u2066\u200f[x](javascript:y)\r\n\t";

pub(crate) fn trace() -> String {
    let event = |cat: &str, name: &str, place: &str, ts: i64, dur: i64, args: &str| {
        format!(r#"{{"ph":"X","cat":"{cat}","name":"{name}",{place},"ts":{ts},"dur":{dur},"args":{{{args}}}}}"#)
    };
    let (host, device) = (r#""pid":1,"tid":1"#, r#""pid":0,"tid":7"#);
    let events = [
        event("user_annotation", HOSTILE, host, 0, 900, ""),
        event("cpu_op", HOSTILE, host, 10, 100, &format!(r#""Input Dims":[[2]],"Input type":["{HOSTILE}"]"#)),
        event("python_function", HOSTILE, host, 5, 200, r#""Python id":1,"Python parent id":null"#),
        event("cuda_runtime", HOSTILE, host, 20, 5, r#""correlation":1"#),
        event("cuda_runtime", "cudaLaunchKernel", host, 300, 5, r#""correlation":2"#),
        event("kernel", HOSTILE, device, 40, 50, r#""device":0,"stream":7,"correlation":1"#),
        event("kernel", HOSTILE, device, 80, 50, r#""device":0,"stream":7,"correlation":2"#),
        event("overhead", HOSTILE, r#""pid":-1,"tid":0"#, 200, 9, ""),
        event(HOSTILE, "x", host, 50, 9, ""),
        event("cpu_op", HOSTILE, host, 400, -5, ""),
        r#"{"ph":"i","cat":"cpu_instant_event","name":"[memory]","pid":1,"tid":1,"ts":35,"s":"t","args":{"Bytes":512,"Device Type":1,"Device Id":0,"Addr":1}}"#.to_owned(),
    ];
    format!(
        r#"{{"deviceProperties":[{{"id":0,"name":"{HOSTILE}"}}],"distributedInfo":{{"backend":"{HOSTILE}","rank":0,"world_size":2}},"traceEvents":[{}]}}"#,
        events.join(",\n")
    )
}

/// Nothing in `text` acts on a terminal.
pub(crate) fn assert_inert(what: &[&str], text: &str) {
    let acts =
        |c: char| (c.is_control() && c != '\n') || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    assert!(!text.contains(acts), "{what:?}:\n{text:?}");
}

#[test]
fn no_command_lets_a_name_act_on_its_reader() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    // A file name may hold nearly anything as well.
    let path = directory.path().join("t\u{1b}[31m\u{202e}.json");
    fs::write(&path, trace()).expect("written");
    let path = path.to_str().expect("UTF-8");
    let mut seen = 0;
    for command in &trace_commands() {
        let command = command.as_str();
        for variant in [&[][..], &["--full-names"], &["--by", "stack=3"], &["--by", "shape"], &["--report-only"], &["--strict", "--stats"]]
        {
            let args = [&[command, path], variant].concat();
            let run = run(&args);
            assert_inert(&args, &run.stdout);
            assert_inert(&args, &run.stderr);
            seen += usize::from(run.stdout.contains("\\u{1b}[31m") || run.stdout.contains("\\u{9b}2J"));
        }
        let args = [command, path, "--markdown"];
        let markdown = run(&args).stdout;
        assert_inert(&args, &markdown);
        for tag in ["<script", "</script", "<img", "[x](", "|`"] {
            assert!(!markdown.contains(tag), "{command}: {tag}\n{markdown}");
        }
        let args = [command, path, "--json"];
        let json = run(&args).stdout;
        assert_inert(&args, &json);
        assert!(!json.contains("<script") && !json.contains("</script"), "{command}: {json}");
        validate(&json);
        if command != "triage" {
            let args = [command, path, "--csv"];
            let csv = run(&args).stdout;
            assert_inert(&args, &csv);
            let cells = csv.lines().flat_map(|line| line.split("\",\"")).map(|cell| cell.trim_start_matches('"'));
            assert!(cells.clone().all(|cell| !cell.starts_with("=cmd")), "{command}: {csv}");
        }
    }
    assert!(seen > 5, "the name is shown, with its escapes written out: {seen}");
    let ops = validate(&run(&["ops", path, "--json"]).stdout);
    let name: String = serde_json::from_str(&format!("\"{HOSTILE}\"")).expect("JSON text");
    assert!(ops["ops"].as_array().is_some_and(|rows| rows.iter().any(|row| row["name"] == name)), "JSON keeps the name");
}

#[test]
fn no_view_of_a_report_lets_a_text_act_on_its_reader() {
    let text: String = serde_json::from_str(&format!("\"{HOSTILE}\"")).expect("JSON text");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("t\u{1b}[31m\u{202e}.ncu-rep");
    fs::write(&path, with_text(&text, &text)).expect("written");
    let path = path.to_str().expect("UTF-8");
    let mut seen = 0;
    for view in [&[][..], &["--full", "--full-names"], &["--table"], &["--source"], &["--metrics", "."], &["--compare", path, "--full"]] {
        for format in [&[][..], &["--markdown"], &["--csv"], &["--json"]] {
            let args = [&["ncu", path], view, format].concat();
            let run = run(&args);
            assert_inert(&args, &run.stdout);
            assert_inert(&args, &run.stderr);
            seen += usize::from(run.stdout.contains("\\u{1b}[31m"));
            assert!(format != ["--json"] || !run.stdout.contains("<script"), "{args:?}: {}", run.stdout);
            assert!(format != ["--markdown"] || !["<script", "<img", "[x]("].iter().any(|tag| run.stdout.contains(tag)), "{}", run.stdout);
        }
    }
    assert!(seen > 10, "the text is shown, with its escapes written out: {seen}");
}

#[test]
fn errors_do_not_act_either() {
    let missing = "no\u{1b}[31m\u{202e}file.json";
    let range = "x\u{1b}]0;t\u{7}";
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("t.json");
    fs::write(&path, trace()).expect("written");
    let path = path.to_str().expect("UTF-8");
    for args in [&["ops", missing][..], &["ops", path, "--range", range], &["ops", path, "--sort", range], &["ops", "Cargo.lock"]] {
        let run = run(args);
        assert!(matches!(run.code, Some(2 | 3)), "{args:?}");
        assert_inert(args, &run.stderr);
    }
}
