//! Nsight Systems exports: the program's figures against plain queries and slow loops over the same file.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};
use serde_json::Value;

use crate::harness::{command, root, run, trace_commands};
use crate::schema::validate;
use made::{Export, VERSIONS, Version, decode, thread};

#[expect(dead_code, reason = "the importer's own tests make more of it")]
#[path = "../../../longpole-ingest/tests/nsys/made.rs"]
mod made;

/// Exports that may not be kept in the repository, where they are, and one made for the purpose.
fn exports(folder: &Path) -> Vec<PathBuf> {
    let shared = std::env::var_os("LONGPOLE_SHARED").map_or_else(|| root().join("../shared"), PathBuf::from).join("corpus/nsys");
    let mut found: Vec<PathBuf> = fs::read_dir(&shared)
        .map(|entries| {
            entries
                .filter_map(|entry| Some(entry.ok()?.path()))
                .filter(|path| path.extension().is_some_and(|end| end == "sqlite"))
                .collect()
        })
        .unwrap_or_default();
    if found.is_empty() {
        let _ = writeln!(std::io::stderr(), "skipped: there are no published exports here (LONGPOLE_SHARED names their folder)");
    }
    found.extend(VERSIONS.into_iter().map(|version| made_export_of(folder, version)));
    found
}

/// Two processes with GPUs and numbers in common, ranges that nest and one that is never closed.
fn made_export(folder: &Path) -> PathBuf {
    made_export_of(folder, (3, 24, 14))
}

/// The same in some version's layout.
fn made_export_of(folder: &Path, version: Version) -> PathBuf {
    let path = folder.join(format!("made-{}.{}.{}.sqlite", version.0, version.1, version.2));
    let export = Export::new(&path, version);
    for (pid, base) in [(40, 0), (50, 7)] {
        let own = thread(pid, pid);
        decode(&export, own, 0, base, 1);
        export.range(own, "run", base, None);
        export.os_call(own, "pthread_cond_wait", [base + 20, base + 90]);
        for (id, at) in [(1, 95), (2, 100), (3, 200)] {
            export.sample(own, pid * 10 + id, base + at, &[Some("tokenize"), Some("main")]);
        }
    }
    path
}

fn open(path: &Path) -> Connection {
    let uri = format!("file:{}?immutable=1", path.display());
    Connection::open_with_flags(uri, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI).expect("an export")
}

fn json(args: &[&str]) -> Value {
    let run = run(&[args, &["--json", "--no-redact"]].concat());
    assert_eq!(run.code, Some(0), "{args:?}: {}", run.stderr);
    serde_json::from_str(&run.stdout).expect("JSON")
}

#[test]
fn kernels_are_those_of_a_plain_query() {
    let folder = tempfile::tempdir().expect("a folder");
    for path in exports(folder.path()) {
        let answer = json(&["kernels", path.to_str().expect("UTF-8")]);
        let list = answer["kernels"].as_array().expect("a list");
        let number = |row: &Value, key: &str| row[key].as_i64().unwrap_or(-1);
        let got: BTreeMap<String, [i64; 5]> = list
            .iter()
            .filter(|row| row["kind"] == "kernel")
            .map(|row| {
                let figures = ["calls", "cuda_ns", "min_ns", "median_ns", "max_ns"].map(|key| number(row, key));
                (row["name"].as_str().unwrap_or_default().to_owned(), figures)
            })
            .collect();
        let expected: BTreeMap<String, [i64; 5]> = Export::kernels(&open(&path))
            .into_iter()
            .map(|(name, sorted)| {
                let count = sorted.len();
                // Of an even number, the lower of the two in the middle: a time that was measured.
                let median = sorted[(count - 1) / 2];
                (name, [count as i64, sorted.iter().sum(), sorted[0], median, sorted[count - 1]])
            })
            .collect();
        assert_eq!(got, expected, "{}", path.display());
    }
}

/// Kernels launched inside each range, by name, in the slowest way: every range asks for every call of its thread.
fn owned(connection: &Connection) -> BTreeMap<String, (i64, i64)> {
    let end: i64 = ["CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_MEMSET", "NVTX_EVENTS"]
        .iter()
        .filter_map(|table| connection.query_row(&format!("SELECT max(\"end\") FROM {table}"), [], |row| row.get::<_, i64>(0)).ok())
        .max()
        .unwrap_or(0);
    let mut calls: BTreeMap<i64, Vec<(i64, i64)>> = BTreeMap::new();
    let mut statement = connection.prepare("SELECT globalTid, start, correlationId FROM CUPTI_ACTIVITY_KIND_RUNTIME").expect("calls");
    let rows = statement.query_map([], |row| Ok((row.get::<_, i64>(0)?, (row.get(1)?, row.get(2)?)))).expect("calls");
    for (thread, call) in rows.map(Result::unwrap) {
        calls.entry(thread).or_default().push(call);
    }
    let mut kernels: BTreeMap<(i64, i64), i64> = BTreeMap::new();
    let mut statement = connection.prepare("SELECT globalPid, correlationId FROM CUPTI_ACTIVITY_KIND_KERNEL").expect("kernels");
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).expect("kernels");
    for key in rows.map(Result::unwrap) {
        *kernels.entry(key).or_default() += 1;
    }
    let sql =
        "SELECT n.start, n.\"end\", n.globalTid, coalesce(n.text, s.value) FROM NVTX_EVENTS n LEFT JOIN StringIds s ON s.id = n.textId";
    let mut statement = connection.prepare(sql).expect("ranges");
    let rows = statement.query_map([], |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, Option<i64>>(1)?.unwrap_or(end), row.get::<_, i64>(2)?, row.get::<_, String>(3)?))
    });
    let mut found: BTreeMap<String, (i64, i64)> = BTreeMap::new();
    for (start, end, thread, text) in rows.expect("ranges").map(Result::unwrap) {
        let inside = calls.get(&thread).into_iter().flatten().filter(|(at, _)| (start..=end).contains(at));
        let count: i64 = inside.filter_map(|(_, number)| kernels.get(&(thread & !0xFF_FFFF, *number))).sum();
        let name = text.split(", op_id = ").next().and_then(|text| text.split(", seq = ").next()).unwrap_or_default();
        let sums = found.entry(name.to_owned()).or_default();
        *sums = (sums.0 + 1, sums.1 + count);
    }
    found
}

#[test]
fn ranges_own_the_kernels_launched_inside_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut compared = 0;
    for path in exports(folder.path()) {
        let connection = open(&path);
        if connection.query_row("SELECT count(*) FROM NVTX_EVENTS", [], |row| row.get::<_, i64>(0)).unwrap_or(0) == 0 {
            continue;
        }
        let expected = owned(&connection);
        let answer = json(&["ranges", path.to_str().expect("UTF-8")]);
        let mut got: BTreeMap<String, (i64, i64)> = BTreeMap::new();
        for row in answer["ranges"].as_array().expect("a list") {
            let sums = got.entry(row["name"].as_str().unwrap_or_default().to_owned()).or_default();
            *sums = (sums.0 + row["calls"].as_i64().unwrap_or(0), sums.1 + row["kernels"].as_i64().unwrap_or(0));
        }
        for (name, sums) in got {
            assert_eq!(Some(&sums), expected.get(&name), "{name} of {}", path.display());
            compared += 1;
        }
    }
    assert!(compared >= 3, "{compared}");
}

#[test]
fn every_command_answers_from_every_export() {
    let folder = tempfile::tempdir().expect("a folder");
    for path in exports(folder.path()) {
        let path = path.to_str().expect("UTF-8");
        let others = ["diff", "check", "slice", "report"].map(str::to_owned);
        for name in trace_commands().into_iter().chain(others) {
            let more: &[&str] = match name.as_str() {
                "diff" => &[path],
                "check" => &["--write-budget"],
                "slice" => &["--time", "0us..1ms", "--rank", "0", "-o", "-"],
                "report" => &["-o", "-"],
                _ => &[],
            };
            let answer = run(&[&[name.as_str(), path], more].concat());
            assert!(matches!(answer.code, Some(0)), "{name} {path}: {:?} {}", answer.code, answer.stderr);
            assert!(!answer.stdout.is_empty(), "{name} {path}");
            // Advice is given in the words of the program that recorded.
            let foreign = ["ProfilerActivity", "(record_shapes=True records", "(with_stack=True records", "(profile_memory=True records"];
            let all = format!("{}{}", answer.stdout, answer.stderr);
            // The script of a page knows the words for every recorder.
            let is_page = name == "report";
            assert!(is_page || !foreign.iter().any(|words| all.contains(words)), "{name} {path}:\n{all}");
            if !matches!(name.as_str(), "slice" | "check" | "report") {
                let answer = run(&[&[name.as_str(), path, "--json"], more].concat());
                assert_eq!(answer.code, Some(0), "{name} {path}: {}", answer.stderr);
                validate(&answer.stdout);
            }
        }
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = made_export(folder.path());
    let path = path.to_str().expect("UTF-8");
    let triage = run(&["triage", path]);
    assert_eq!(triage.code, Some(0), "{}", triage.stderr);
    for said in ["(no operator) cudaLaunchKernel", "emit_nvtx", "ranges were never closed", "decode_step"] {
        assert!(triage.stdout.contains(said), "{said}:\n{}", triage.stdout);
    }
}

/// Calls into the operating system and samples of the launching thread, against a walk over every nanosecond.
#[test]
fn idle_time_says_what_the_operating_system_and_samples_saw() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("host.sqlite");
    let export = Export::new(&path, (3, 24, 14));
    let own = thread(40, 40);
    for (number, [launch, start, end]) in [[0, 20, 50], [300, 330, 360], [700, 720, 800]].into_iter().enumerate() {
        export.call(own, "cudaLaunchKernel_v7000", number as i64 + 1, [launch, launch + 10]);
        export.kernel(own, 0, "gemm<float>", number as i64 + 1, [start, end]);
    }
    let waits = [("poll", [100, 160]), ("read", [400, 460]), ("pthread_cond_wait", [650, 720])];
    for (name, times) in waits {
        export.os_call(own, name, times);
    }
    let samples: Vec<(i64, &str)> = (0..80).map(|at| (at * 10 + 5, ["tokenize", "schedule", "detokenize"][at as usize % 3])).collect();
    for (id, (at, name)) in samples.iter().enumerate() {
        export.sample(own, id as i64, *at, &[Some(*name), Some("main")]);
    }
    drop(export);
    // The device waits for a launch from the end of a kernel to the next launch.
    let waits_for_launch = |at: i64| (50..300).contains(&at) || (360..700).contains(&at);
    let answer = json(&["idle", path.to_str().expect("UTF-8")]);
    for (name, [from, to]) in waits {
        let expected = (from..to).filter(|at| waits_for_launch(*at)).count() as i64;
        let rows = answer["by_frame"].as_array().expect("a list");
        let row = rows.iter().find(|row| row["name"] == name).expect(name);
        assert_eq!((row["kind"].as_str(), row["idle_ns"].as_i64()), (Some("os_call"), Some(expected)), "{name}");
        assert_eq!(row["cause"], "outside_operators", "{name}");
    }
    let mut expected: BTreeMap<&str, u64> = BTreeMap::new();
    for (_, name) in samples.iter().filter(|(at, _)| waits_for_launch(*at)) {
        *expected.entry(name).or_default() += 1;
    }
    let found = &answer["host_samples"];
    let rows: BTreeMap<&str, u64> = found["rows"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|row| (row["name"].as_str().unwrap_or_default(), row["samples"].as_u64().unwrap_or_default()))
        .collect();
    assert_eq!((rows, found["samples"].as_u64()), (expected.clone(), Some(expected.values().sum())));
}

#[test]
fn a_report_that_cannot_be_exported_says_what_to_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.nsys-rep");
    fs::write(&path, b"NVIDIA T and the rest of a report").expect("written");
    let said = run(&["triage", path.to_str().expect("UTF-8")]);
    assert_eq!(said.code, Some(3));
    let lines: Vec<&str> = said.stderr.lines().collect();
    assert!(said.stderr.contains("and `nsys` is not installed here; run `nsys export --type sqlite"), "{}", said.stderr);
    assert_eq!(lines.len(), 2, "what is tried, and one sentence: {}", said.stderr);
}

#[cfg(unix)]
#[test]
fn a_report_is_exported_where_nsys_is() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().expect("a folder");
    let export = made_export(folder.path());
    let report = folder.path().join("a.nsys-rep");
    fs::write(&report, b"NVIDIA T and the rest of a report").expect("written");
    // It stands in for nsys: writes the export to the path behind `--output`.
    let nsys = folder.path().join("nsys");
    let script = format!("#!/bin/sh\n[ \"$1\" = export ] || exit 1\n/bin/cp '{}' \"$7\"\n", export.display());
    fs::write(&nsys, script).expect("written");
    fs::set_permissions(&nsys, fs::Permissions::from_mode(0o755)).expect("a program");
    let figures = |path: &Path| {
        let output = command(&["kernels", path.to_str().expect("UTF-8"), "--json"]).env("PATH", folder.path()).output().expect("runs");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{stderr}");
        let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        (answer["kernels"].clone(), stderr)
    };
    let (from_report, said) = figures(&report);
    assert_eq!(from_report, figures(&export).0);
    assert!(said.contains("exporting the Nsight Systems report with `nsys export`"), "{said}");
}
