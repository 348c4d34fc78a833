//! `longpole record` with shell scripts for programs: they put a recording where the recorder would.

#![cfg(unix)]

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use longpole_recording::{Header, Process, Refused, Writer};
use tempfile::TempDir;

use crate::converted;
use crate::harness::{print, run};

/// A folder with a recorder that nobody loads, and what a program would have recorded.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("liblongpole_recorder.so"), b"").unwrap();
        fs::write(folder.path().join("sample.lprec"), converted::recording("qwen3_graph")).unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// `longpole record` in the folder, with nothing of the caller's that matters.
    fn record(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_longpole"));
        command
            .arg("record")
            .args(args)
            .current_dir(self.folder.path())
            .env("COLUMNS", "120")
            .env("NO_COLOR", "1")
            .env("PATH", "/usr/bin:/bin");
        for variable in ["CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH", "LONGPOLE_RECORDER", "KINETO_USE_DAEMON"] {
            command.env_remove(variable);
        }
        command.env("LONGPOLE_RECORDER", self.path("liblongpole_recorder.so")).stdin(Stdio::null());
        command
    }

    /// The status, standard output and standard error of a script.
    fn script(&self, flags: &[&str], script: &str) -> (Option<i32>, String, String) {
        let args = [flags, &["--", "/bin/sh", "-c", script]].concat();
        let output = self.record(&args).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    }

    /// Recordings in the folder, and that nothing else is left behind.
    fn recordings(&self) -> Vec<String> {
        let names = fs::read_dir(self.folder.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut found: Vec<String> = names.filter(|name| !["liblongpole_recorder.so", "sample.lprec"].contains(&name.as_str())).collect();
        found.sort();
        assert!(found.iter().all(|name| !name.starts_with('.')), "{found:?}");
        found
    }
}

const WRITE: &str = r#"cp sample.lprec "$LONGPOLE_RECORD_DIR/$$.lprec""#;

#[test]
fn the_program_keeps_its_output_and_status_and_the_triage_goes_to_standard_error() {
    let place = Place::new();
    let (code, stdout, stderr) = place.script(&["-o", "run.longpole"], &format!("{WRITE}; echo its own; echo and this >&2; exit 3"));
    assert_eq!((code, stdout.as_str()), (Some(3), "its own\n"), "{stderr}");
    for part in ["and this\n", "trust ", "NVIDIA H200", "recorded run.longpole (", "next: longpole steps run.longpole"] {
        assert!(stderr.contains(part), "{part}: {stderr}");
    }
    assert_eq!(place.recordings(), ["run.longpole"]);
    let (code, _, stderr) = place.script(&["-o", "quiet.longpole", "--quiet"], WRITE);
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
}

#[test]
fn the_program_is_told_what_to_record() {
    let place = Place::new();
    let show = r#"env | grep -E '^(LONGPOLE_REC|CUDA_INJ|NVTX_INJ)' | grep -v DIR= | sort; test -d "$LONGPOLE_RECORD_DIR" || exit 9"#;
    let recorder = place.path("liblongpole_recorder.so").canonicalize().unwrap().display().to_string();
    let (code, stdout, _) = place.script(&[], show);
    let common = format!("CUDA_INJECTION64_PATH={recorder}\n");
    assert_eq!(code, Some(0));
    let named = place.path("liblongpole_recorder.so").display().to_string();
    assert_eq!(stdout, format!("{common}LONGPOLE_RECORDER={named}\nLONGPOLE_RECORD_API=launch\nNVTX_INJECTION64_PATH={recorder}\n"));
    let flags = ["--range", "nvtx:decode step", "--delay", "0.5", "--duration", "2s", "--api", "all", "--command-line"];
    let (_, stdout, _) = place.script(&flags, show);
    assert_eq!(
        stdout,
        format!(
            "{common}LONGPOLE_RECORDER={named}\nLONGPOLE_RECORD_API=all\nLONGPOLE_RECORD_COMMAND_LINE=1\nLONGPOLE_RECORD_DELAY_MS=500\n\
             LONGPOLE_RECORD_DURATION_MS=2000\nLONGPOLE_RECORD_RANGE=nvtx:decode step\nNVTX_INJECTION64_PATH={recorder}\n"
        )
    );
}

#[test]
fn arguments_of_the_program_are_its_own() {
    let place = Place::new();
    let output = place.record(&["/bin/echo", "--by", "stack", "3", "--quiet", "-o", "x"]).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "--by stack 3 --quiet -o x\n");
}

#[test]
fn recordings_of_all_processes_are_one_file_and_names_are_not_used_twice() {
    let place = Place::new();
    let two = format!(
        "{WRITE}; (sleep 0.2; cp sample.lprec \"$LONGPOLE_RECORD_DIR/1000$$.lprec\"); head -c 3000 sample.lprec > \"$LONGPOLE_RECORD_DIR/7.lprec\""
    );
    let (code, _, stderr) = place.script(&["-o", "two.longpole"], &two);
    assert_eq!(code, Some(0));
    assert!(stderr.contains(" of 3 processes); next:") || stderr.contains(" of 2 processes); next:"), "{stderr}");
    let bytes = fs::read(place.path("two.longpole")).unwrap();
    assert_eq!(longpole_recording::read(&bytes).0.len(), 3);
    // Without a name.
    for _ in 0..2 {
        assert_eq!(place.script(&["--quiet"], WRITE).0, Some(0));
    }
    let names = place.recordings();
    assert!(names.len() == 3 && names[..2].iter().all(|name| name.starts_with("sh-20") && name.ends_with(".longpole")), "{names:?}");
    let (code, stdout, stderr) = place.script(&["-o", "two.longpole"], "echo it ran");
    assert_eq!((code, stdout.as_str()), (Some(2), ""));
    assert_eq!(stderr, "error: `two.longpole` is there already, and recordings are not overwritten; choose another name\n");
}

#[test]
fn what_cannot_be_recorded_is_said_in_one_sentence() {
    let place = Place::new();
    let stderr_of = |command: &mut Command| {
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, said) = stderr_of(place.record(&["--", "no-such-program"]).env_remove("KINETO_USE_DAEMON"));
    assert_eq!(
        (code, said.as_str()),
        (Some(127), "error: there is no program `no-such-program` (on the PATH, or as a path); nothing was run\n")
    );
    let (code, said) = stderr_of(&mut place.record(&["--", "./sample.lprec"]));
    assert!(code == Some(126) && said.starts_with("error: `./sample.lprec` cannot be run: "), "{code:?} {said}");
    let (code, said) = stderr_of(&mut place.record(&["--recorder", "gone.so", "true"]));
    assert_eq!((code, said.as_str()), (Some(2), "error: there is no recorder at `gone.so`, which --recorder names\n"));
    let (code, said) = stderr_of(place.record(&["true"]).env_remove("LONGPOLE_RECORDER"));
    // Where the whole workspace was built, the recorder is beside the program.
    assert!(code == Some(0) || said.contains("there is no recorder (liblongpole_recorder.so) in `"), "{said}");
    let (code, said) = stderr_of(place.record(&["true"]).env("CUDA_INJECTION64_PATH", "/opt/other.so"));
    assert!(
        code == Some(2) && said.contains("CUDA_INJECTION64_PATH is set to `/opt/other.so`: another tool is to be injected there"),
        "{said}"
    );
    let (code, said) = stderr_of(&mut place.record(&["-o", "no/such/x.longpole", "true"]));
    assert!(code == Some(2) && said.contains("there is no folder `no/such`"), "{said}");
    let (code, said) = stderr_of(&mut place.record(&[]));
    assert!(code == Some(2) && said.contains("<COMMAND>"), "{said}");
    assert!(place.recordings().is_empty());
}

#[test]
fn a_program_that_records_nothing_is_said_to_and_keeps_its_status() {
    let place = Place::new();
    let (code, _, said) = place.script(&[], "exit 5");
    assert!(code == Some(5) && said.starts_with("error: nothing was recorded: no process of the program started CUDA"), "{said}");
    let mut writer = Writer::new(Vec::new(), Header { pid: 1, started_at_ns: 1 }).unwrap();
    let executable = writer.string(b"engine");
    writer.process(&Process { pid: 1, executable, ..Process::default() });
    writer.flush();
    fs::write(place.path("idle.bin"), writer.into_inner()).unwrap();
    let (code, _, said) = place.script(&[], r#"cp idle.bin "$LONGPOLE_RECORD_DIR/1000000001.lprec"; exit 6"#);
    assert!(code == Some(6) && said.contains("process 1 (engine) started CUDA and did no work on the GPU while it was recorded"), "{said}");
    let mut writer = Writer::new(Vec::new(), Header { pid: 1, started_at_ns: 1 }).unwrap();
    writer.refused(&Refused { reason: Refused::SUBSCRIBER_TAKEN, code: 39, ..Refused::default() });
    writer.flush();
    fs::write(place.path("refused.bin"), writer.into_inner()).unwrap();
    let (code, _, said) = place.script(&[], r#"cp refused.bin "$LONGPOLE_RECORD_DIR/1000000001.lprec"; exit 7"#);
    let why = "error: nothing was recorded: another profiler holds CUPTI's only subscription; let the program not profile itself";
    assert!(code == Some(7) && said.starts_with(why), "{said}");
    assert_eq!(place.recordings(), ["idle.bin", "refused.bin"]);
}

/// Waits until a file is there.
fn wait_for(path: &Path) {
    let began = Instant::now();
    while !path.exists() {
        assert!(began.elapsed() < Duration::from_mins(1), "{} does not come", path.display());
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn signal(child: &Child, signal: &str) {
    let pid = child.id().to_string();
    assert!(Command::new("/bin/sh").args(["-c", &format!("kill -{signal} {pid}")]).status().unwrap().success());
}

#[test]
fn signals_reach_the_program_and_its_answer_is_the_status() {
    for name in ["TERM", "INT", "HUP", "USR1"] {
        let place = Place::new();
        let script = format!("{WRITE}; trap 'echo got {name}; exit 41' {name}; touch ready; while :; do sleep 0.02; done");
        let child =
            place.record(&["-o", "run.longpole", "--quiet", "--", "/bin/sh", "-c", &script]).stdout(Stdio::piped()).spawn().unwrap();
        wait_for(&place.path("ready"));
        signal(&child, name);
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(41), format!("got {name}\n").as_bytes()));
        assert!(place.path("run.longpole").exists());
    }
}

#[test]
fn a_killed_program_is_said_to_be_and_what_it_recorded_is_kept() {
    let place = Place::new();
    // Without its last frames, as a killed process leaves it.
    let whole = fs::read(place.path("sample.lprec")).unwrap();
    fs::write(place.path("sample.lprec"), &whole[..whole.len() - 60]).unwrap();
    let (code, _, stderr) = place.script(&["-o", "run.longpole"], &format!("{WRITE}; kill -KILL $$"));
    assert_eq!(code, Some(137));
    for part in ["the program was killed by signal 9 (SIGKILL, as when memory runs out)", "partial", "was killed, or did not end yet"] {
        // Where lines break is of no matter here.
        let said = stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains(part), "{part}: {stderr}");
    }
    // Our own end by a signal is not a program's: nothing of ours answers SIGTERM with a signal's end.
    let output = place.record(&["--quiet", "--", "/bin/sh", "-c", "kill -TERM $$"]).output().unwrap();
    assert_eq!((output.status.code(), output.status.signal()), (Some(143), None));
}

/// The recording of the corpus was made by the recorder on a GPU: every node of the graph is there in every replay, and the modules that were
/// open when it was captured name its work. Nothing in it says where it was made.
#[test]
fn the_recording_of_the_corpus_names_the_work_of_a_graph() {
    let path = crate::harness::root().join("corpus/recording/qwen3_graph.longpole");
    let bytes = fs::read(&path).expect("the recording is there");
    let (mut recordings, faults) = longpole_recording::read(&bytes);
    assert!(faults.is_empty() && recordings.len() == 1 && recordings[0].has_end());
    assert!(recordings[0].strings.iter().all(|(_, text)| !text.starts_with(b"/")), "no paths");
    let cost = *recordings[0].records::<longpole_recording::Cost>().last().unwrap();
    assert!(cost.callbacks > 0 && cost.callback_ns > 0 && cost.pages > 0 && cost.page_ns > 0 && cost.setup_ns > 0, "{cost:?}");
    let path = path.display().to_string();
    let json = |args: &[&str]| -> serde_json::Value { serde_json::from_str(&print(args)).unwrap() };
    let steps = json(&["steps", &path, "--range", "replay_step", "--json"]);
    assert_eq!(steps["groups"][0]["count"], 12);
    let text = steps.to_string();
    for role in ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj", "input_layernorm"] {
        assert!(text.contains(&format!("\"role\":\"{role}\"")), "{role}");
    }
    let ranges = json(&["ranges", &path, "--json"]);
    let row = |name: &str| ranges["ranges"].as_array().unwrap().iter().find(|row| row["name"] == name).unwrap().clone();
    let (capture, replays) = (row("capture"), row("replay_step"));
    // All nodes of 12 replays were captured in one range, and their time is that of the replays.
    assert_eq!((&capture["replayed_kernels"], &replays["kernels"]), (&replays["kernels"], &(12 * 1877).into()));
    assert_eq!((&capture["kernels"], &replays["replayed_ns"]), (&2.into(), &serde_json::Value::Null));
    assert_eq!(capture["replayed_ns"], replays["gpu_busy_ns"]);
    for command in crate::harness::trace_commands() {
        let found = run(&[&command, &path, "--json"]);
        assert_eq!(found.code, Some(0), "{command}: {}", found.stderr);
    }
}

#[test]
fn a_recording_answers_what_the_trace_of_the_same_run_does() {
    let place = Place::new();
    let path = place.path("sample.lprec").display().to_string();
    let trace = crate::harness::trace("qwen3_graph");
    let json = |args: &[&str]| -> serde_json::Value { serde_json::from_str(&print(args)).unwrap() };
    let kernels = |file: &str| {
        let found = json(&["kernels", file, "--json", "--no-redact"]);
        let rows = found["kernels"].as_array().unwrap().clone();
        let row = |row: &serde_json::Value| format!("{} {} {} {}", row["name"], row["calls"], row["cuda_ns"], row["median_ns"]);
        // Copies are called as CUPTI has it in one and as PyTorch has it in the other.
        let mut rows: Vec<String> = rows.iter().filter(|row| !row["name"].to_string().starts_with("\"Mem")).map(row).collect();
        rows.sort();
        rows
    };
    assert_eq!(kernels(&path), kernels(&trace));
    let totals = |file: &str| {
        let found = json(&["triage", file, "--json"]);
        let totals = &found["totals"];
        ["gpu_busy_ns", "kernel_busy_ns", "copy_busy_ns", "kernels", "memcpys", "memsets", "launches"].map(|key| totals[key].clone())
    };
    assert_eq!(totals(&path), totals(&trace));
    let steps = |file: &str| {
        let found = json(&["steps", file, "--json"]);
        let groups = found["groups"].as_array().unwrap().clone();
        groups
            .iter()
            .map(|group| format!("{} {} {} {}", group["count"], group["layers"], group["busy_ns"], group["period_ns"]))
            .collect::<Vec<_>>()
    };
    assert_eq!(steps(&path), steps(&trace));
    // Everything else answers.
    for command in crate::harness::trace_commands() {
        let found = run(&[&command, &path, "--json"]);
        assert_eq!(found.code, Some(0), "{command}: {}", found.stderr);
        assert!(found.stdout.contains("\"longpole\""), "{command}");
    }
}
