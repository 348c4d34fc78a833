//! `longpole steps --run`, with shell scripts for programs that put a recording where the recorder would; and once with the recorder itself, in a
//! program that needs no GPU.

#![cfg(unix)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::converted;
use crate::harness::{Run, finish, print, run, trace};
use crate::schema::validate;

/// A folder with a recorder that nobody loads, and what a program would have recorded.
struct Place {
    folder: TempDir,
}

const WRITE: &str = r#"cp sample.lprec "$LONGPOLE_RECORD_DIR/$$.lprec""#;

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("tmp")).unwrap();
        fs::write(folder.path().join("liblongpole_recorder.so"), b"").unwrap();
        fs::write(folder.path().join("sample.lprec"), converted::recording("qwen3_graph")).unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn steps(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_longpole"));
        for variable in ["CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH", "KINETO_USE_DAEMON"] {
            command.env_remove(variable);
        }
        command
            .arg("steps")
            .args(args)
            .current_dir(self.folder.path())
            .env("COLUMNS", "120")
            .env("NO_COLOR", "1")
            .env("PATH", "/usr/bin:/bin")
            .env("TMPDIR", self.path("tmp"))
            .env("LONGPOLE_RECORDER", self.path("liblongpole_recorder.so"))
            .stdin(Stdio::null());
        command
    }

    fn run(&self, args: &[&str]) -> Run {
        finish(self.steps(args).output().unwrap())
    }

    /// Runs a script, and sees that nothing is left behind but what `-o` names.
    fn script(&self, flags: &[&str], script: &str) -> Run {
        let run = self.run(&[&["--run"], flags, &["--", "/bin/sh", "-c", script]].concat());
        assert_eq!(fs::read_dir(self.path("tmp")).unwrap().count(), 0);
        run
    }
}

#[test]
fn help_tells_the_two_ways_apart() {
    insta::assert_snapshot!("steps_help", print(&["steps", "--help"]));
}

fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_report_is_alone_on_standard_output() {
    let place = Place::new();
    let shown = place.script(&[], &format!("{WRITE}; echo words of its; echo and this >&2"));
    assert_eq!((shown.code, shown.stderr.as_str()), (Some(0), "words of its\nand this\n"));
    let said = words(&shown.stdout);
    for part in [
        "Recorded /bin/sh",
        "window from 1.000 s after CUDA started, for 2.000 s",
        "reported the second half of each group's steps in the window; of the first half busy alone, in `halves`",
        "recording not kept (-o FILE keeps it)",
        "replay_step · 6 steps of the second half, found by marker",
        "left out 6 steps before the second half",
        "which is what is reported",
    ] {
        assert!(said.contains(part), "{part}: {}", shown.stdout);
    }
    assert!(
        !shown.stdout.contains("words of its") && !shown.stdout.contains("sample") && !shown.stdout.contains("tmp"),
        "{}",
        shown.stdout
    );
}

#[test]
fn json_is_of_the_second_half_and_keeps_both() {
    let place = Place::new();
    let flags = ["--json", "--delay", "0.5", "--window", "3s", "-o", "kept.longpole"];
    let shown = place.script(&flags, &format!("{WRITE}; echo its own"));
    assert_eq!((shown.code, shown.stderr.as_str()), (Some(0), "its own\n"));
    let half = validate(&shown.stdout);
    let expected = serde_json::json!({
        "program": "/bin/sh", "status": 0, "range": null, "windows": null, "delay_ns": 500_000_000, "window_ns": 3_000_000_000_i64,
        "path": "kept.longpole",
    });
    assert_eq!((&half["recorded"], &half["last_half"], &half["source"]["path"]), (&expected, &true.into(), &"/bin/sh".into()));
    let kept = place.path("kept.longpole").display().to_string();
    let whole = validate(&print(&["steps", &kept, "--json"]));
    assert_eq!((&whole["recorded"], &whole["last_half"]), (&Value::Null, &false.into()));
    let (half, whole) = (&half["groups"][0], &whole["groups"][0]);
    assert_eq!((&whole["count"], &whole["half_steps"], &half["count"], &half["half_steps"]), (&12.into(), &6.into(), &6.into(), &6.into()));
    for key in ["first_half_busy_ns", "second_half_busy_ns", "name", "found_by", "layers"] {
        assert_eq!(half[key], whole[key], "{key}");
    }
    // What is reported is the second half, and nothing else.
    assert_eq!(half["total_busy_ns"], whole["second_half_busy_ns"]);
    let of_steps = |steps: &Value| steps.as_array().unwrap().iter().map(|step| step["number"].as_i64().unwrap()).collect::<Vec<_>>();
    let (first, second) = (of_steps(&half["left_out"]), of_steps(&half["steps"]));
    assert_eq!([first, second.clone()].concat(), of_steps(&whole["steps"]));
    assert!(half["left_out"].as_array().unwrap().iter().all(|step| step["why"] == "first_half"));
    assert!(half["slow_steps"].as_array().unwrap().iter().all(|slow| second.contains(&slow["number"].as_i64().unwrap())));
    let total: i64 = half["rows"].as_array().unwrap().iter().map(|row| row["total_ns"].as_i64().unwrap()).sum();
    assert_eq!(Some(total), half["total_busy_ns"].as_i64());
    // A file can be asked the same.
    let of_file = validate(&print(&["steps", &kept, "--json", "--last-half"]));
    assert_eq!((&of_file["groups"][0], &of_file["last_half"]), (half, &true.into()));
}

#[test]
fn all_formats_and_flags_of_steps_go_with_it() {
    let place = Place::new();
    for (flags, part) in [
        (&["--markdown"][..], "## Recorded /bin/sh"),
        (&["--csv"], "replay_step,"),
        (&["--by", "kernel", "--sort", "time", "--limit", "3"], "and "),
        (&["--ignore-ranges", "--full-names"], "found by"),
        (&["--range", "replay_step"], "replay_step"),
        (&["--filter", "replay", "--strict"], "replay_step"),
    ] {
        let shown = place.script(flags, WRITE);
        assert!(shown.code == Some(0) && shown.stdout.contains(part), "{flags:?} {:?}: {}{}", shown.code, shown.stdout, shown.stderr);
    }
    let donor = crate::harness::root().join(trace("qwen3_eager")).display().to_string();
    assert!(place.script(&["--roles-from", &donor], WRITE).stdout.contains("q_proj"));
}

#[test]
fn the_program_is_told_what_to_record() {
    let place = Place::new();
    let told = |flags: &[&str]| {
        let shown = place.script(flags, &format!("{WRITE}; env | grep -E '^LONGPOLE_RECORD_' | grep -v DIR= | sort"));
        assert_eq!(shown.code, Some(0), "{}", shown.stderr);
        shown.stderr.replace("LONGPOLE_RECORD_", "").lines().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(told(&[]), ["API=launch", "DELAY_MS=1000", "DURATION_MS=2000"]);
    assert_eq!(told(&["--delay", "0", "--window", "0.25"]), ["API=launch", "DELAY_MS=0", "DURATION_MS=250"]);
    // Its ranges are the windows, however long.
    assert_eq!(told(&["--range", "nvtx:replay_step"]), ["API=launch", "RANGE=nvtx:replay_step"]);
    assert_eq!(told(&["--range", "profiler", "--delay", "2"]), ["API=launch", "DELAY_MS=2000", "RANGE=profiler"]);
    // The name of a range in the trace is a scope, as without --run.
    assert_eq!(told(&["--range", "replay_step"]), ["API=launch", "DELAY_MS=1000", "DURATION_MS=2000"]);
    let json = place.script(&["--range", "nvtx:replay_step", "--json"], WRITE).stdout;
    let document = validate(&json);
    assert_eq!((&document["recorded"]["range"], &document["recorded"]["windows"]), (&"nvtx:replay_step".into(), &12.into()));
    assert_eq!(document["scope"]["range"], Value::Null);
    // Each is a window with one step, of which there is no half.
    assert_eq!((&document["groups"][0]["count"], &document["groups"][0]["half_steps"]), (&12.into(), &0.into()));
    assert_eq!(document["groups"][0]["period_ns"], Value::Null, "what is between two windows was not recorded");
}

#[test]
fn a_program_that_fails_is_said_to_and_its_steps_are_shown() {
    let place = Place::new();
    let failed = place.script(&[], &format!("{WRITE}; exit 5"));
    assert_eq!(failed.code, Some(5));
    assert_eq!(failed.stderr, "error: the program ended with status 5; the steps are of what it recorded until then\n");
    assert!(failed.stdout.contains("6 steps of the second half") && failed.stdout.contains("ended with status 5"), "{}", failed.stdout);
    let killed = place.script(&["--json"], &format!("{WRITE}; kill -TERM $$"));
    assert_eq!(killed.code, Some(143));
    assert_eq!(killed.stderr, "error: the program was killed by signal 15 (SIGTERM); the steps are of what it recorded until then\n");
    assert_eq!(validate(&killed.stdout)["recorded"]["status"], 143);
}

#[test]
fn what_cannot_be_run_or_recorded_is_said_in_one_sentence() {
    let place = Place::new();
    let trace = crate::harness::root().join(trace("bad")).display().to_string();
    for (args, code, said) in [
        (&["--run"][..], 2, "--run needs a program: longpole steps --run -- PROGRAM ARGS"),
        (&["--run", "true"], 2, "--run takes its program behind --, so that its flags are its own: longpole steps --run -- true"),
        (
            &["x.json", "--run", "--", "true"],
            2,
            "steps are of a FILE or of a program that --run runs, and both are given: `x.json` and `true`",
        ),
        (&["x.json", "--", "true"], 2, "what stands behind -- is a program; --run runs it: longpole steps --run -- PROGRAM"),
        (&["--run", "--range", "nvtx:", "--", "true"], 2, "--range: use `profiler` or `nvtx:NAME`"),
        (&["--run", "--sort", "speed", "--", "true"], 2, "speed"),
        (&["--run", "--recorder", "gone.so", "--", "true"], 2, "there is no recorder at `gone.so`, which --recorder names"),
        (
            &["--run", "-o", "sample.lprec", "--", "true"],
            2,
            "`sample.lprec` is there already, and recordings are not overwritten; choose another name",
        ),
        (&["--run", "--roles-from", "gone.json", "--", "true"], 3, "there is no `gone.json`, which --roles-from names"),
        (&["--run", "--", "no-such-program"], 127, "there is no program `no-such-program` (on the PATH, or as a path); nothing was run"),
        (&["--run", "--", "./sample.lprec"], 126, "`./sample.lprec` cannot be run: "),
        // The delay counts from CUDA's start, which never came.
        (&["--run", "--", "true"], 3, "nothing was recorded: no process of the program started CUDA"),
        (&["--run", "--window", "0", "--", "touch", "ran"], 2, "use 0.001 seconds or more"),
        (&["--run", "--delay", "0", "--", "true"], 3, "nothing was recorded: no process of the program started CUDA"),
        (&["--run", "--delay", "0", "--", "false"], 1, "; the program ended with status 1"),
    ] {
        let run = place.run(args);
        assert_eq!((run.code, run.stdout.as_str()), (Some(code), ""), "{args:?}: {}", run.stderr);
        let is_one = run.stderr.lines().count() == 1 || run.stderr.contains("--window");
        assert!(run.stderr.starts_with("error: ") && run.stderr.contains(said) && is_one, "{args:?}: {}", run.stderr);
    }
    assert!(!place.path("ran").exists(), "nothing runs for nothing");
    // Flags of the recording have no meaning without one.
    for flag in [&["--delay", "1"][..], &["--window", "1"], &["-o", "x"], &["--recorder", "x"]] {
        let refused = run(&[&["steps", trace.as_str()], flag].concat());
        assert!(refused.code == Some(2) && refused.stderr.contains("--run"), "{}", refused.stderr);
    }
    assert_eq!(run(&["steps"]).code, Some(2));
    // What stands behind -- is still the file where nothing is run.
    assert_eq!(run(&["steps", "--json", "--", &trace]).stdout, run(&["steps", "--json", &trace]).stdout);
    assert_eq!(fs::read_dir(place.path("tmp")).unwrap().count(), 0);
}

/// The recording of a process that has no work in it: CUDA starts some milliseconds after the recorder, and the process ends later.
fn without_work(started_ms: u64, cuda_after_ms: u64, ended_after_ms: Option<u64>) -> Vec<u8> {
    use longpole_recording::{Clock, End, Header, Process, Writer};
    let at = |ms: u64| (started_ms + ms) * 1_000_000;
    let mut writer = Writer::new(Vec::new(), Header { pid: 7, started_at_ns: at(0) }).unwrap();
    let executable = writer.string(b"engine");
    writer.process(&Process { pid: 7, executable, ..Process::default() });
    writer.clock(&Clock { cupti: at(cuda_after_ms), realtime: at(cuda_after_ms), monotonic: 1, uncertainty: 1 });
    if let Some(ms) = ended_after_ms {
        writer.end(&End { time: at(ms), status: Some(0) });
    }
    writer.flush();
    writer.into_inner()
}

#[test]
fn what_was_missed_is_told_by_when_cuda_started() {
    let place = Place::new();
    let write = r#"cp idle.bin "$LONGPOLE_RECORD_DIR/1000000001.lprec""#;
    let said = |flags: &[&str], recording: &[u8]| {
        fs::write(place.path("idle.bin"), recording).unwrap();
        let run = place.script(flags, write);
        assert_eq!(run.code, Some(3));
        run.stderr
    };
    // However long it did other things before: marked ranges load the recorder too.
    assert_eq!(
        said(&[], &without_work(1_000, 1_300, Some(1_900))),
        "error: nothing was recorded: process 7 (engine) started CUDA and ended 0.6 s later, within the delay of 1 s; --delay takes a shorter one\n"
    );
    let idle = "process 7 (engine) started CUDA and did no work on the GPU while it was recorded (see --delay, --window and --range)";
    assert!(said(&[], &without_work(1_000, 1_300, Some(2_300))).contains(idle));
    assert!(said(&["--delay", "0"], &without_work(1_000, 1_300, Some(1_900))).contains(idle));
    // A process that did not write its end ran until the program ended.
    assert!(said(&[], &without_work(1_000, 1_300, None)).contains(idle));
}

#[test]
fn parts_of_a_recording_are_where_they_are_said_to_be() {
    let place = Place::new();
    let appears = place.script(&["-o", "taken.longpole"], &format!("{WRITE}; echo mine > taken.longpole"));
    assert_eq!((appears.code, appears.stdout.as_str()), (Some(3), ""));
    assert_eq!(fs::read_to_string(place.path("taken.longpole")).unwrap(), "mine\n");
    let folder = appears.stderr.split("its parts are in `").nth(1).and_then(|rest| rest.split('`').next()).expect("a folder");
    let parts: Vec<_> = fs::read_dir(place.path(folder)).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(parts.len() == 1 && fs::read(&parts[0]).unwrap() == fs::read(place.path("sample.lprec")).unwrap(), "{}", appears.stderr);
    // With its folder they are gone, and nobody says otherwise.
    fs::create_dir(place.path("out")).unwrap();
    let removed = place.script(&["-o", "out/kept.longpole"], &format!("{WRITE}; rm -r out"));
    let said = "/out` was removed while the program ran, and what was recorded with it\n";
    assert!(removed.code == Some(3) && removed.stderr.ends_with(said), "{}", removed.stderr);
    assert!(!removed.stderr.contains("its parts are in"));
    let scratch = place.script(&[], &format!("{WRITE}; rm -r tmp/longpole-steps-*"));
    assert!(scratch.code == Some(3) && scratch.stderr.contains("was removed while the program ran"), "{}", scratch.stderr);
    assert!(!scratch.stderr.contains("its parts are in"));
}

#[test]
fn errors_are_about_the_program_and_not_about_a_file_that_nobody_has() {
    let place = Place::new();
    for flags in [&["--step", "999"][..], &["--range", "nope"], &["--device", "5"]] {
        let run = place.script(flags, WRITE);
        assert!(run.code == Some(2) && run.stderr.starts_with("error: `/bin/sh`: "), "{flags:?}: {}", run.stderr);
        assert!(!run.stderr.contains("longpole-steps-"), "{}", run.stderr);
    }
}

#[test]
fn a_recording_without_steps_is_said_to_have_none() {
    use longpole_recording::{Clock, End, Header, Kernel, Process, Writer};
    let place = Place::new();
    let mut writer = Writer::new(Vec::new(), Header { pid: 1, started_at_ns: 1 }).unwrap();
    let (executable, name) = (writer.string(b"engine"), writer.string(b"only_kernel"));
    writer.process(&Process { pid: 1, executable, ..Process::default() });
    writer.clock(&Clock { cupti: 10, realtime: 10, monotonic: 10, uncertainty: 1 });
    writer.kernel(&Kernel { start: 100, end: 200, name, ..Kernel::default() });
    writer.clock(&Clock { cupti: 1_000, realtime: 1_000, monotonic: 1_000, uncertainty: 1 });
    writer.end(&End { time: 1_000, status: Some(0) });
    writer.flush();
    fs::write(place.path("sample.lprec"), writer.into_inner()).unwrap();
    let found = place.script(&["--json"], WRITE);
    assert_eq!(found.code, Some(3));
    assert_eq!(found.stderr, "error: no steps were found in what was recorded of `/bin/sh` (see --delay, --window and --range)\n");
    assert_eq!(validate(&found.stdout)["groups"], Value::Array(Vec::new()));
}

/// A file of this build, if the whole workspace was built.
fn built(name: &str) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_BIN_EXE_longpole")).parent()?;
    [folder.join(name), folder.join("deps").join(name)].into_iter().find(|path| path.exists())
}

/// With the recorder itself: two windows, each with a model's name around its steps, and steps before and between them that are not recorded.
#[test]
#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
fn windows_that_a_program_marks_are_recorded_and_named_by_the_ranges_inside() {
    let files = ["liblongpole_recorder.so", "liblongpole_mock_cupti.so", "mock-gpu-program"].map(built);
    let [Some(recorder), Some(mock), Some(program)] = &files else {
        eprintln!("skipped: the whole workspace is not built, so there is no recorder or no program for it: {files:?}");
        return;
    };
    let place = Place::new();
    fs::copy(mock, place.path("libcupti.so.13")).unwrap();
    // The mock's calls begin a microsecond before they are made, which is to be within the range still.
    let layer = (0..9).map(|at| format!("launch-named:kernel_{at}")).collect::<Vec<_>>().join(" ");
    let step = format!("push:step sleep:1 launch:1 {layer} {layer} {layer} {layer} launch:1 pop");
    let steps = vec![step; 6].join(" ");
    let window = |model: &str| format!("{steps} push:window push:{model} {steps} pop pop");
    let program_steps = format!("cuda nvtx:0 {} {} exit:3", window("model-4B"), window("model-8B"));
    let shown = |flags: &[&str]| {
        let mut args = vec!["--run"];
        args.extend(flags);
        args.extend(["--json", "--recorder", recorder.to_str().unwrap(), "--", program.to_str().unwrap()]);
        args.extend(program_steps.split(' '));
        let mut command = place.steps(&args);
        let libcupti = place.path("libcupti.so.13");
        command.env("LONGPOLE_LIBCUPTI", &libcupti).env("MOCK_LIBCUPTI", &libcupti);
        let run = finish(command.output().unwrap());
        assert_eq!(run.code, Some(3), "{}", run.stderr);
        validate(&run.stdout)
    };
    let document = shown(&["--range", "nvtx:window"]);
    let groups = document["groups"].as_array().unwrap();
    let of =
        |group: &Value| [group["name"].clone(), group["count"].clone(), group["half_steps"].clone(), group["kernels_per_step"].clone()];
    let expected = |name: &str| [Value::from(name), 3.into(), 3.into(), 38.into()];
    assert_eq!(groups.iter().map(of).collect::<Vec<_>>(), [expected("model-4B > step"), expected("model-8B > step")]);
    assert_eq!((&document["recorded"]["windows"], &document["recorded"]["status"]), (&2.into(), &3.into()));
    // Without a delay the steps around the windows are recorded as well: of all 24 those of no model are a group of their own.
    let whole = shown(&["--delay", "0", "--window", "30"]);
    let counts: Vec<i64> = whole["groups"].as_array().unwrap().iter().map(|group| group["half_steps"].as_i64().unwrap()).collect();
    assert_eq!(counts.iter().sum::<i64>(), 12, "{counts:?}");
}
