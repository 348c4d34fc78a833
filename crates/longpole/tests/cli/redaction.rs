//! Secrets planted in every part of a trace, looked for in every output of every command.

use std::fs;
use std::path::{Path, PathBuf};

use crate::harness::{CORPUS, Run, print, root, run, run_with, trace, trace_commands};
use crate::made_report::with_text;
use crate::schema::validate;

/// A credential no program could mistake for a name. Its pieces are looked for, so that half of it counts as found.
pub(crate) const TOKEN: &str = "hf_QwErTyUiOpAsDfGhJkLzXcVbNm12345678";
pub(crate) const PASSWORD: &str = "correct-horse-battery";
const KEY: &str = "kJ8sL2pQ9wXv4RtY7uZa1BcD3eFgH6iM0nO5";
pub(crate) const USER: &str = "zaphod";
const HOST: &str = "gpu-node-17";
const MAIL: &str = "zaphod@heart-of-gold.example";

/// What must not be found anywhere, in any case.
const NEEDLES: [&str; 7] = ["QwErTyUiOp", "LzXcVbNm", "correct-horse", "kJ8sL2pQ9w", "H6iM0nO5", USER, HOST];

fn home() -> String {
    format!("/home/{USER}/app")
}

/// A trace with secrets in all it can hold, kept and dropped alike.
pub(crate) fn planted() -> String {
    let home = home();
    let event = |cat: &str, name: &str, place: &str, ts: i64, dur: i64, args: &str| {
        format!(r#"{{"ph":"X","cat":"{cat}","name":"{name}",{place},"ts":{ts},"dur":{dur},"args":{{{args}}}}}"#)
    };
    let (host, device) = (r#""pid":1,"tid":1"#, r#""pid":0,"tid":7"#);
    let inputs = format!(
        r#""External id":1,"Input Dims":[[2,3],[]],"Input type":["float {TOKEN}","x"],"Concrete Inputs":["","{TOKEN}"],"Call stack":"{home}/c.py(1): f""#
    );
    let mut events = vec![
        format!(
            r#"{{"ph":"M","name":"process_name","pid":1,"tid":0,"ts":0,"args":{{"name":"python {home}/serve.py --password {PASSWORD}"}}}}"#
        ),
        format!(r#"{{"ph":"M","name":"thread_name","pid":1,"tid":1,"ts":0,"args":{{"name":"thread {TOKEN}"}}}}"#),
        event("user_annotation", &format!("ProfilerStep#1 {TOKEN}"), host, 0, 5_000, ""),
        event("user_annotation", &format!("request {MAIL} password={PASSWORD}"), host, 10, 4_000, ""),
        event("cpu_op", &format!("load::{TOKEN}"), host, 20, 900, &inputs),
        event("cpu_op", &format!("a_rather_long_operator_name_before_its_secret_comes {KEY} and some more"), host, 1_000, 900, ""),
        event("cpu_op", &format!("fetch https://{USER}:{PASSWORD}@{HOST}.example/x"), host, 2_000, 900, ""),
        event("cpu_op", &format!("rpc tcp://{HOST}:29500"), host, 3_000, -5, ""),
        event(
            "python_function",
            &format!("{home}/model.py(12): forward_{TOKEN}"),
            host,
            15,
            3_900,
            r#""Python id":1,"Python parent id":null"#,
        ),
        event("cuda_runtime", "cudaLaunchKernel", host, 30, 5, r#""correlation":1,"External id":1"#),
        event("cuda_runtime", "cudaMemcpyAsync", host, 1_030, 5, r#""correlation":2"#),
        event("kernel", &format!("void kernel_for<{home}>(char*) [{TOKEN}]"), device, 60, 500, r#""device":0,"stream":7,"correlation":1"#),
        event("gpu_memcpy", &format!("Memcpy HtoD {TOKEN}"), device, 1_100, 100, r#""device":0,"stream":7,"correlation":2,"bytes":64"#),
        event("kernel", &format!("orphan {TOKEN}"), device, 2, 3, r#""device":0,"stream":7,"correlation":9"#),
        event("overhead", &format!("Buffer Flush {TOKEN}"), r#""pid":-1,"tid":0"#, 40, 9, ""),
        event(&format!("strange {TOKEN}"), "x", host, 50, 9, ""),
        event("cpu_op", &format!("threaded {TOKEN}"), &format!(r#""pid":"{TOKEN}","tid":"thread {TOKEN}""#), 50, 9, ""),
        format!(
            r#"{{"ph":"i","cat":"cpu_instant_event","name":"[memory]","pid":1,"tid":1,"ts":35,"s":"t","args":{{"Bytes":512,"Device Type":1,"Device Id":0,"Addr":1,"Total Allocated":512,"Total Reserved":1024}}}}"#
        ),
        format!(r#"{{"ph":"X","cat":"cpu_op","name":"no time {TOKEN}","pid":1,"tid":1}}"#),
        // Not JSON: the excerpt that explains it quotes what is around.
        format!(r#"{{"ph":"X","cat":"cpu_op","name":"broken "{TOKEN}" quote","pid":1,"tid":1,"ts":60,"dur":1}}"#),
        event("cpu_op", "last", host, 4_000, 9, ""),
    ];
    events.insert(3, format!(r#"{{"ph":"{TOKEN}","cat":"cpu_op","name":"x","pid":1,"tid":1,"ts":1}}"#));
    format!(
        r#"{{"schemaVersion":1,"deviceProperties":[{{"id":0,"name":"NVIDIA {TOKEN}"}}],"distributedInfo":{{"backend":"nccl {TOKEN}","rank":0,"world_size":2}},
"host_name":"{HOST}","username":"{USER}","metadata":{{"env":{{"HF_TOKEN":"{TOKEN}","HOME":"{home}","DB_PASSWORD":"{PASSWORD}"}},"cmd":["serve","--api-key","{KEY}"]}},
"traceEvents":[{}],"traceName":"{home}/{TOKEN}.json"}}"#,
        events.join(",\n")
    )
}

pub(crate) fn assert_clean(args: &[&str], run: &Run) {
    for (stream, text) in [("stdout", &run.stdout), ("stderr", &run.stderr)] {
        for needle in NEEDLES {
            let found = text.to_lowercase().find(&needle.to_lowercase());
            assert!(found.is_none(), "{args:?}: `{needle}` on {stream}:\n{text}");
        }
    }
    assert!(!run.stderr.contains("panicked"), "{args:?}: {}", run.stderr);
}

/// Writes the trace under a name with a secret and a host in it.
fn write(directory: &Path, name: &str, content: &str) -> PathBuf {
    let path = directory.join(name);
    fs::write(&path, content).expect("written");
    path
}

fn file_name() -> String {
    format!("{HOST}_4242.1712195495521.pt.trace.json")
}

#[test]
fn no_output_of_any_command_shows_a_secret() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let inside = directory.path().join(format!("home/{USER}/{TOKEN}"));
    fs::create_dir_all(&inside).expect("created");
    let path = write(&inside, &file_name(), &planted());
    let path = path.to_str().expect("UTF-8");
    let by = |text: &str| format!("--range={text}");
    let variants: &[&[&str]] = &[
        &[],
        &["--json"],
        &["--markdown"],
        &["--csv"],
        &["--full-names"],
        &["--limit", "0", "--full-names", "--color", "always"],
        &["--by", "stack=9"],
        &["--by", "stack=9", "--json"],
        &["--by", "stack=9", "--csv"],
        &["--by", "shape"],
        &["--by", "shape", "--csv"],
        &["--report-only"],
        &["--report-only", "--workload", TOKEN],
        &["--strict"],
        &["--stats"],
        &["--stats=json", "--json"],
        &["--filter", "hf_|load|redacted"],
        &["--sort", TOKEN],
        &["--step", "77"],
        &["--device", "77"],
        &[&by("no such range")],
        &[&by(TOKEN)],
        &[&by("request*")],
        &[&by(&format!("request {MAIL} password={PASSWORD}"))],
    ];
    let (mut printed, mut failed) = (0, 0);
    for command in trace_commands() {
        for variant in variants {
            let args = [&[command.as_str(), path], *variant].concat();
            let run = run(&args);
            assert_clean(&args, &run);
            match run.code {
                Some(0) if variant.contains(&"--json") => drop(validate(&run.stdout)),
                Some(0) => {}
                _ => failed += 1,
            }
            printed += usize::from(run.stdout.contains("[redacted]"));
        }
    }
    assert!(printed > 40 && failed > 10, "the variants reach tables and errors: {printed} {failed}");
}

#[test]
fn errors_and_sets_of_files_show_no_secret() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let inside = directory.path().join(format!("home/{USER}"));
    fs::create_dir_all(&inside).expect("created");
    let unusable = write(&inside, &format!("{TOKEN}.json"), &format!("password={PASSWORD} {KEY}"));
    let empty = write(&inside, &format!("{TOKEN}_empty.json"), "");
    let missing = inside.join(format!("missing_{TOKEN}.json"));
    for command in trace_commands() {
        for path in [&unusable, &empty, &missing] {
            let args = [command.as_str(), path.to_str().expect("UTF-8")];
            let run = run(&args);
            assert_eq!((run.code, run.stdout.as_str()), (Some(3), ""), "{args:?}");
            assert!(run.stderr.contains("[redacted]"), "{args:?}: {}", run.stderr);
            assert_clean(&args, &run);
        }
        write(&inside, &file_name(), &planted());
        for format in ["--json", "--markdown", "--quiet"] {
            let args = [command.as_str(), inside.to_str().expect("UTF-8"), format];
            let run = run(&args);
            assert_eq!(run.code, Some(0), "{args:?}: {}", run.stderr);
            assert_clean(&args, &run);
        }
        fs::remove_file(inside.join(file_name())).expect("removed");
    }
    for args in [&[TOKEN][..], &["ops", "x.json", &format!("--{TOKEN}")], &[&trace("bad"), "--token", TOKEN], &["ops", "a", TOKEN]] {
        let run = run(args);
        assert!(matches!(run.code, Some(2 | 3)), "{args:?}");
        assert_clean(args, &run);
    }
}

#[test]
fn the_planted_secrets_are_there_when_asked_for() {
    let ops = run_with(&["ops", "-", "--json", "--no-redact", "--by", "stack=9"], planted().as_bytes()).stdout;
    validate(&ops);
    for needle in ["LzXcVbNm", "correct-horse", "H6iM0nO5", USER, HOST] {
        assert!(ops.contains(needle), "{needle}");
    }
    let ranges = run_with(&["ranges", "-", "--csv", "--no-redact"], planted().as_bytes()).stdout;
    assert!(ranges.contains(MAIL) && ranges.contains(PASSWORD), "{ranges}");
    let said = run_with(&["-", "--no-redact", "--report-only", "--workload", TOKEN], planted().as_bytes()).stdout;
    assert!(said.contains(TOKEN), "{said}");
    assert!(run(&[&format!("{TOKEN}.json"), "--no-redact"]).stderr.contains(TOKEN));
    // Never, since the importer does not keep what is around the events.
    for dropped in ["HF_TOKEN", "DB_PASSWORD", "--api-key"] {
        assert!(!ops.contains(dropped), "{dropped}");
    }
}

#[test]
fn a_range_is_found_by_the_name_that_was_typed_and_by_the_one_that_was_shown() {
    let find = |range: &str| run_with(&["ops", "-", "--json", "--range", range], planted().as_bytes());
    let typed = find(&format!("request {MAIL} password={PASSWORD}"));
    let shown = find("request [redacted] password=[redacted]");
    assert_eq!((typed.code, shown.code), (Some(0), Some(0)), "{} {}", typed.stderr, shown.stderr);
    assert_eq!(validate(&typed.stdout), validate(&shown.stdout));
    let rows = validate(&typed.stdout)["ops"].as_array().map(Vec::len);
    assert!(rows > Some(0), "{rows:?}");
}

#[test]
fn recorded_traces_are_shown_as_they_are() {
    for name in CORPUS {
        for command in ["ops", "kernels", "ranges"] {
            let args = [command, &trace(name), "--json"];
            assert!(print(&args) == print(&[&args[..], &["--no-redact"]].concat()), "{name} {command}");
        }
    }
}

#[test]
fn no_view_of_a_report_shows_a_secret() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join(format!("{TOKEN}.ncu-rep"));
    let secret = format!("{TOKEN} password={PASSWORD} {KEY} {MAIL}");
    fs::write(&path, with_text(&secret, &format!("/home/{USER}/{HOST}.internal/app"))).expect("written");
    let path = path.to_str().expect("UTF-8");
    let mut shown = 0;
    for view in [
        &[][..],
        &["--full"],
        &["--table"],
        &["--table", "--full-names"],
        &["--source"],
        &["--metrics", "."],
        &["--report-only"],
        &["--compare", path],
        &["--compare", path, "--full"],
        &["--kernel", TOKEN],
        &["--sort", TOKEN],
        &["--id", "77"],
        &["--strict", "--stats"],
    ] {
        for format in [&[][..], &["--json"], &["--markdown"], &["--csv"]] {
            let args = [&["ncu", path], view, format].concat();
            let run = run(&args);
            assert_clean(&args, &run);
            shown += usize::from(run.stdout.contains("[redacted]"));
            if run.code == Some(0) && format == ["--json"] {
                validate(&run.stdout);
            }
        }
    }
    assert!(shown > 20, "{shown}");
    let whole = run(&["ncu", path, "--json", "--no-redact", "--metrics", "."]).stdout;
    for needle in ["LzXcVbNm", "correct-horse", "H6iM0nO5", USER] {
        assert!(whole.contains(needle), "{needle}");
    }
}

/// Every text in the files, home folders aside, must survive: names of kernels of many libraries, of operators and of files.
#[test]
#[expect(clippy::print_stderr, reason = "a skip must be visible")]
fn names_of_other_peoples_traces_survive() {
    let shared = std::env::var_os("LONGPOLE_SHARED").map_or_else(|| root().join("../shared"), PathBuf::from).join("corpus/kineto/public");
    let Ok(entries) = fs::read_dir(&shared) else {
        eprintln!("skipped: no public traces at {}", shared.display());
        return;
    };
    let mut seen = 0;
    for entry in entries {
        let path = entry.expect("an entry").path();
        let path = path.to_str().expect("UTF-8");
        for command in ["kernels", "ops", "ranges"] {
            let stack: &[&str] = if command == "ops" { &["--by", "stack=3"] } else { &[] };
            let args = [&[command, path, "--json"], stack].concat();
            let (redacted, whole) = (run(&args), run(&[&args[..], &["--no-redact"]].concat()));
            assert_eq!(redacted.code, whole.code, "{path}");
            let homes = ["/home/", "/Users/", "/users/", "torchinductor_"];
            for (redacted, whole) in redacted.stdout.lines().zip(whole.stdout.lines()) {
                assert!(redacted == whole || homes.iter().any(|home| whole.contains(home)), "{path}\n{whole}\n{redacted}");
                seen += 1;
            }
        }
    }
    assert!(seen > 1_000, "{seen}");
}
