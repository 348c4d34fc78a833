//! `longpole bench` with the made-up suite of `corpus/bench`: what is measured, saved, compared, and what happens when the suite misbehaves.

#![cfg(unix)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::harness::{Run, command, finish, print, root, run};
use crate::schema::validate;

pub(crate) const SUITE: &str = "corpus/bench/suite.sh";
pub(crate) const WARP: &str = "example/ops/gemv/decode/warp_row";
const THREAD: &str = "example/ops/gemv/decode/thread_row";
pub(crate) const COPY: &str = "example/ops/copy/decode/float4";

/// A folder for results.
pub(crate) struct Place(pub(crate) tempfile::TempDir);

impl Place {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary directory"))
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().expect("UTF-8").to_owned()
    }

    /// A suite that is a script.
    pub(crate) fn script(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).expect("written");
        make_executable(&path);
        path
    }

    /// Measures keys and returns the file that holds the results.
    pub(crate) fn measured(&self, name: &str, keys: &[&str], environment: &[(&str, &str)]) -> String {
        let path = self.path(name);
        let args = [&["bench", "run", "--suite", SUITE, "-q", "-o", &path], keys].concat();
        let run = with(&args, environment);
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        path
    }
}

pub(crate) fn with(args: &[&str], environment: &[(&str, &str)]) -> Run {
    finish(command(args).envs(environment.iter().copied()).output().expect("the program starts"))
}

pub(crate) fn read(path: &str) -> Value {
    serde_json::from_str(&fs::read_to_string(path).expect("results are there")).expect("results are JSON")
}

pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        if entry.path().is_dir() { found.extend(files(&entry.path())) } else { found.push(entry.path()) }
    }
    found.sort();
    found
}

/// The verdicts of a compared document, by key.
fn verdicts(document: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    document["results"].as_array().expect("a list").iter().map(|row| (text(&row["key"]), text(&row["verdict"]))).collect()
}

#[test]
fn a_suite_is_listed_and_chosen_from() {
    let list = validate(&print(&["bench", "list", "--suite", SUITE, "--json"]));
    assert_eq!((list["total"].as_u64(), list["benchmarks"].as_array().map(Vec::len)), (Some(6), Some(6)));
    assert_eq!(list["benchmarks"][0]["shape"]["bytes"].as_u64(), Some(1 << 30));
    let keys = |selectors: &[&str]| {
        let args = [&["bench", "list", "--suite", SUITE, "--json"], selectors].concat();
        validate(&print(&args))["benchmarks"].as_array().map_or(0, Vec::len)
    };
    assert_eq!([keys(&["example/ops"]), keys(&[WARP]), keys(&["/gemv/", "/copy/"]), keys(&["--model", "example"])], [5, 1, 3, 6]);
    let by_variable = with(&["bench", "list", "--csv"], &[("LONGPOLE_SUITE", SUITE)]);
    assert_eq!((by_variable.code, by_variable.stdout.lines().count()), (Some(0), 7), "{}", by_variable.stderr);
    // The flag wins over the variable.
    let both = with(&["bench", "list", "--suite", SUITE], &[("LONGPOLE_SUITE", "/no/such/suite")]);
    assert_eq!(both.code, Some(0), "{}", both.stderr);
}

#[test]
fn a_run_is_measured_saved_and_shown() {
    let place = Place::new();
    let results = place.path("results");
    let run = run(&["bench", "run", "--suite", SUITE, "--results", &results, "--json", "example/ops"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stderr.contains("nothing is measured"), "what the suite says is passed on: {}", run.stderr);
    let document = validate(&run.stdout);
    let copy = &document["results"][0];
    assert_eq!((copy["key"].as_str(), copy["samples"].as_u64(), copy["method"].as_str()), (Some(COPY), Some(40), Some("graph")));
    let (median, rate) = (copy["median_ps"].as_i64().expect("a time"), copy["bytes_per_s"].as_f64().expect("a rate"));
    assert!((rate - 2_147_483_648.0 / median as f64 * 1e12).abs() < 1.0);
    let saved = files(Path::new(&results));
    assert_eq!(saved.len(), 1);
    assert_eq!(document["source"]["path"].as_str(), saved[0].to_str());
    let kept = read(saved[0].to_str().expect("UTF-8"));
    assert_eq!((kept["schema"].as_str(), kept["complete"].as_bool()), (Some("longpole.bench.results/1"), Some(true)));
    assert_eq!((kept["clocks"]["sm_mhz"].as_u64(), kept["driver"].as_str()), (Some(1755), Some("580.1")));
    assert_eq!(kept["results"].as_array().map(Vec::len), Some(5));
    let date = kept["date"].as_str().expect("a date");
    assert!(date.len() == 20 && saved[0].to_str().is_some_and(|path| path.contains(&date[..10])), "{date}");
    // What is measured is what the suite was told to.
    let few = place.path("few.json");
    let run = with(&["bench", "run", WARP, "--suite", SUITE, "-q", "--samples", "7", "--l2", "warm", "-o", &few], &[]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    let kept = read(&few);
    assert_eq!((kept["results"][0]["samples"].as_array().map(Vec::len), kept["results"][0]["l2"].as_str()), (Some(7), Some("warm")));
    let page = print(&["bench", "run", WARP, "--suite", SUITE, "-q", "--no-save"]);
    assert!(page.starts_with("Benchmarks · 1 benchmark\n") && page.contains("of peak: `longpole bench peaks`"), "{page}");
    assert!(page.lines().all(|line| line.chars().count() <= 120), "{page}");
}

#[test]
fn peaks_are_measured_and_runs_are_held_against_them() {
    let place = Place::new();
    let peaks = place.path("peaks.json");
    let document = validate(&print(&["bench", "peaks", "--suite", SUITE, "-q", "-o", &peaks, "--json"]));
    assert_eq!((document["peaks"][0]["kind"].as_str(), document["path"].as_str()), (Some("copy_bytes_per_s"), Some(peaks.as_str())));
    let kept = read(&peaks);
    assert_eq!((kept["name"].as_str(), kept["memory_bytes_per_s"].as_u64()), (Some("Example GPU"), Some(4_310_000_000_000)));
    // The file is one that --peaks takes.
    assert!(print(&["roofline", &crate::harness::trace("bad"), "--peaks", &peaks]).contains("peaks.json"));
    let args = ["bench", "run", "--suite", SUITE, "-q", "--no-save", "--json", "--peaks", &peaks];
    let run = validate(&print(&args));
    let share = |at: usize| (run["results"][at]["peak_fraction"].as_f64().expect("a share"), run["results"][at]["peak_of"].as_str());
    assert!((0.99..1.01).contains(&share(0).0) && share(0).1 == Some("memory"), "{:?}", share(0));
    assert!((0.85..0.95).contains(&share(4).0) && share(4).1 == Some("bf16"), "{:?}", share(4));
    // Where nobody names a file, the usual one is taken if it is of this device.
    let folder = place.0.path();
    fs::create_dir_all(folder.join("bench")).expect("made");
    fs::copy(&peaks, folder.join("bench/peaks.json")).expect("copied");
    let suite = root().join(SUITE).canonicalize().expect("the suite is there");
    // It is measured anew only where it is named.
    let measure = |more: &[&str]| {
        let args = [&["bench", "peaks", "-q", "--suite", suite.to_str().expect("UTF-8")], more].concat();
        finish(command(&args).current_dir(folder).output().expect("the program starts"))
    };
    let usual = folder.join("bench/peaks.json");
    fs::write(&usual, "{}").expect("written");
    let refused = measure(&[]);
    assert!(refused.code == Some(2) && refused.stderr.contains("is there already: -o bench/peaks.json replaces it"), "{}", refused.stderr);
    assert_eq!(fs::read_to_string(&usual).expect("read"), "{}");
    assert_eq!(measure(&["-o", "bench/peaks.json"]).code, Some(0));
    assert_eq!(read(usual.to_str().expect("UTF-8")), kept);
    fs::remove_file(&usual).expect("removed");
    assert_eq!((measure(&[]).code, read(usual.to_str().expect("UTF-8"))), (Some(0), kept));
    for (device, is_held) in [("Example GPU", true), ("Another GPU", false)] {
        let mut here = command(&["bench", "run", WARP, "-q", "--no-save", "--json", "--suite", suite.to_str().expect("UTF-8")]);
        let run = finish(here.current_dir(folder).env("EXAMPLE_DEVICE", device).output().expect("the program starts"));
        assert_eq!(validate(&run.stdout)["results"][0]["peak_fraction"].is_number(), is_held, "{device}: {}", run.stderr);
    }
}

#[test]
fn builds_are_told_apart_and_gates_close() {
    let place = Place::new();
    let before = place.measured("before.json", &[], &[]);
    let again = place.measured("again.json", &[], &[("EXAMPLE_SEED", "2")]);
    let scale = format!("{WARP}=1060 {COPY}=900 {THREAD}=1005");
    let after = place.measured("after.json", &[], &[("EXAMPLE_SCALE", &scale), ("EXAMPLE_SEED", "3")]);
    let same = validate(&print(&["bench", "compare", &before, &again, "--json", "--gate"]));
    assert_eq!((same["same"].as_u64(), same["results"].as_array().map(Vec::len)), (Some(6), Some(6)), "{same}");
    let changed = run(&["bench", "compare", &before, &after, "--json", "--gate"]);
    assert_eq!(changed.code, Some(1));
    assert!(changed.stderr.contains(&format!("slower: {WARP}")), "{}", changed.stderr);
    let document = validate(&changed.stdout);
    let verdict = |key: &str| verdicts(&document).into_iter().find(|(found, _)| found == key).map(|(_, verdict)| verdict);
    assert_eq!([verdict(WARP), verdict(COPY), verdict(THREAD)].map(Option::unwrap), ["SLOWER", "FASTER", "SAME"]);
    let page = run(&["bench", "compare", &before, &after]);
    assert!(page.code == Some(0) && page.stdout.starts_with("Compared · 1 SLOWER, 1 FASTER, 4 SAME"), "{}", page.stdout);
    assert!(run(&["bench", "compare", &before, &after, "--markdown"]).stdout.contains("| SLOWER |"));
    let csv = print(&["bench", "compare", &before, &after, "--csv"]);
    assert!(csv.starts_with("key,before_ps,after_ps,") && csv.lines().count() == 7, "{csv}");
    let one = validate(&print(&["bench", "compare", &before, &after, "--key", "warp_row$", "--json"]));
    assert_eq!(verdicts(&one).len(), 1);
    // Of a folder the newest results are taken.
    let folder = place.0.path().to_str().expect("UTF-8");
    assert_eq!(run(&["bench", "compare", folder, &before]).code, Some(0));
}

#[test]
fn other_devices_are_refused_and_other_conditions_flagged() {
    let place = Place::new();
    let before = place.measured("before.json", &[WARP], &[]);
    let other = place.measured("other.json", &[WARP], &[("EXAMPLE_DEVICE", "Another GPU")]);
    let refused = run(&["bench", "compare", &before, &other]);
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(2), ""));
    assert!(refused.stderr.contains("different devices (Example GPU before, Another GPU after)"), "{}", refused.stderr);
    let forced = validate(&print(&["bench", "compare", &before, &other, "--other-device", "--json"]));
    assert!(forced["flags"][0].as_str().is_some_and(|flag| flag.contains("Another GPU")), "{forced}");
    let clocked = place.measured("clocked.json", &[WARP], &[("EXAMPLE_CLOCK", "1500")]);
    let page = print(&["bench", "compare", &before, &clocked]);
    assert!(page.contains("SM clock: 1755 MHz before, 1500 MHz after") && page.contains("1755 to 1500 MHz"), "{page}");
    let warm = place.measured("warm.json", &[WARP], &[("EXAMPLE_L2", "warm"), ("EXAMPLE_SCALE", &format!("{WARP}=500"))]);
    let document = validate(&print(&["bench", "compare", &before, &warm, "--json"]));
    assert_eq!((document["ambiguous"].as_u64(), document["results"][0]["doubt"].as_str()), (Some(1), Some("measured_differently")));
    // Keys of one side are named, and nothing in common fails a gate.
    let copy = place.measured("copy.json", &[COPY], &[]);
    let nothing = run(&["bench", "compare", &before, &copy, "--gate"]);
    assert_eq!(nothing.code, Some(1));
    assert!(nothing.stdout.contains(&format!("{COPY}: only after")) && nothing.stderr.contains("could be compared"), "{}", nothing.stdout);
}

#[test]
fn throttled_samples_are_marked_counted_and_left_out_on_request() {
    let place = Place::new();
    let before = place.measured("before.json", &[WARP], &[]);
    let hot = place.measured("hot.json", &[WARP], &[("EXAMPLE_TROUBLE", &format!("hot:{WARP}")), ("EXAMPLE_SEED", "2")]);
    let page = with(&["bench", "run", WARP, "--suite", SUITE, "-q", "--no-save"], &[("EXAMPLE_TROUBLE", &format!("hot:{WARP}"))]).stdout;
    assert!(page.contains("throttled") && page.contains("8 of 40 samples were taken while the device held its clocks down"), "{page}");
    let compared = |more: &[&str]| validate(&print(&[&["bench", "compare", &before, &hot, "--json"], more].concat()));
    let counted = compared(&[]);
    assert_eq!(
        (counted["results"][0]["after"]["samples"].as_u64(), counted["results"][0]["after"]["throttled_samples"].as_u64()),
        (Some(40), Some(8))
    );
    let left_out = compared(&["--exclude-throttled"]);
    assert_eq!((left_out["results"][0]["after"]["samples"].as_u64(), left_out["same"].as_u64()), (Some(32), Some(1)));
}

#[test]
fn what_is_in_doubt_is_measured_again_in_turns() {
    let place = Place::new();
    let results = place.path("results");
    // One build is the suite as it is, the other a script that starts it with other times.
    let slower = place.path("slower.sh");
    let suite = root().join(SUITE).canonicalize().expect("the suite is there");
    fs::write(&slower, format!("#!/bin/sh\nEXAMPLE_SEED=$$ EXAMPLE_SCALE='{WARP}=1030 {COPY}=1200' exec {} \"$@\"\n", suite.display()))
        .expect("written");
    make_executable(&slower);
    let args = [
        "bench",
        "compare",
        "--suite-before",
        SUITE,
        "--suite-after",
        &slower,
        "--key",
        "/gemv/|/copy/",
        "--results",
        &results,
        "-q",
        "--json",
    ];
    let run = run(&args);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let document = validate(&run.stdout);
    let row = |key: &str| document["results"].as_array().expect("a list").iter().find(|row| row["key"] == key).expect("the key").clone();
    assert_eq!((row(WARP)["verdict"].as_str(), row(COPY)["verdict"].as_str()), (Some("SLOWER"), Some("SLOWER")));
    // A change of 3 % is confirmed in rounds; one of 20 % needs none, nor does none.
    assert!(row(WARP)["rounds"].as_u64() >= Some(4) && row(WARP)["after"]["processes"].as_u64() >= Some(4), "{}", row(WARP));
    assert_eq!((row(COPY)["rounds"].as_u64(), row(THREAD)["rounds"].as_u64()), (Some(0), Some(0)));
    assert_eq!(document["measured_again"].as_u64(), Some(1));
    let saved = files(Path::new(&results));
    assert_eq!(saved.len(), 4, "{saved:?}");
    let rounds: Vec<&PathBuf> = saved.iter().filter(|path| path.to_string_lossy().contains("rounds")).collect();
    // The two files of the rounds belong together, and say the same when they are compared later.
    let (first, second) = (rounds[1].to_str().expect("UTF-8"), rounds[0].to_str().expect("UTF-8"));
    assert!(first.contains("before") && read(first)["session"].is_string());
    let later = validate(&print(&["bench", "compare", first, second, "--json"]));
    assert_eq!(
        (later["results"][0]["verdict"].as_str(), later["results"][0]["rounds"].as_u64()),
        (Some("SLOWER"), row(WARP)["rounds"].as_u64())
    );
}

#[test]
fn a_suite_of_its_own_is_measured_again_where_the_other_is_no_more() {
    let place = Place::new();
    let before = place.measured("before.json", &[WARP], &[]);
    let (after, scale) = (place.path("after.json"), format!("{WARP}=1035"));
    let environment = [("EXAMPLE_SCALE", scale.as_str()), ("EXAMPLE_SEED", "2")];
    let run = with(&["bench", "run", WARP, "--suite", SUITE, "-q", "--compare", &before, "-o", &after, "--json", "--gate"], &environment);
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    let document = validate(&run.stdout);
    let row = &document["results"][0];
    assert_eq!((row["verdict"].as_str(), row["rounds"].as_u64(), row["before"]["processes"].as_u64()), (Some("SLOWER"), Some(0), Some(1)));
    assert!(row["after"]["processes"].as_u64() > Some(1), "{row}");
    let processes: Vec<u64> =
        read(&after)["results"][0]["samples"].as_array().expect("a list").iter().filter_map(|s| s["process"].as_u64()).collect();
    assert_eq!(processes.iter().max().map(|last| last + 1), row["after"]["processes"].as_u64());
    let page = with(&["bench", "run", WARP, "--suite", SUITE, "-q", "--compare", &before, "--no-save", "--rounds", "0"], &environment);
    assert!(page.stdout.contains("Benchmarks · 1 benchmark") && page.stdout.contains("Compared · 1 SLOWER"), "{}", page.stdout);
    let now = with(&["bench", "compare", &before, "--suite", SUITE, "-q", "--no-save", "--json"], &[("EXAMPLE_SEED", "5")]);
    assert_eq!(validate(&now.stdout)["same"].as_u64(), Some(1), "{}", now.stderr);
}

#[test]
fn a_benchmark_that_fails_costs_no_other() {
    let place = Place::new();
    for (trouble, message) in [
        ("error", "tile.cu(12): error: too many registers"),
        ("crash", "ended by signal 11 (segmentation fault) in the middle of the benchmark; its last words: "),
        ("exit", "ended with status 3 in the middle of the benchmark; its last words: "),
        ("garbage", "broke the protocol: line "),
        ("disorder", "broke the protocol: sample 9 of"),
        ("endless", "starts while"),
    ] {
        let path = place.path(&format!("{trouble}.json"));
        let args = ["bench", "run", "--suite", SUITE, "-o", &path, "example/ops", "--json"];
        let run = with(&args, &[("EXAMPLE_TROUBLE", &format!("{trouble}:{WARP}"))]);
        assert_eq!(run.code, Some(1), "{trouble}: {}", run.stderr);
        assert!(run.stderr.contains("1 of 5 benchmarks failed"), "{trouble}: {}", run.stderr);
        let document = validate(&run.stdout);
        let failed = document["results"].as_array().and_then(|rows| rows.last()).expect("a row");
        let said = failed["failed"].as_str().expect("a reason");
        assert!(failed["key"] == WARP && said.contains(message), "{trouble}: {said}");
        let words = [("crash", "an illegal memory access was encountered"), ("exit", "out of memory")];
        assert!(words.iter().all(|(of, words)| *of != trouble || said.ends_with(words)), "{trouble}: {said}");
        let kept = read(&path);
        assert_eq!((kept["results"].as_array().map(Vec::len), kept["failed"].as_array().map(Vec::len)), (Some(4), Some(1)), "{trouble}");
    }
    let wrong = with(&["bench", "run", "--suite", SUITE, "--no-save", "-q", WARP], &[("EXAMPLE_TROUBLE", &format!("wrong:{WARP}"))]);
    assert_eq!(wrong.code, Some(1));
    assert!(wrong.stdout.contains("WRONG") && wrong.stdout.contains("the result is wrong"), "{}", wrong.stdout);
    assert!(wrong.stderr.contains("1 of 1 benchmarks had a wrong result"), "{}", wrong.stderr);
}

#[test]
fn a_suite_that_hangs_is_ended_and_what_it_measured_is_kept() {
    let place = Place::new();
    let path = place.path("hang.json");
    let started = Instant::now();
    let args = ["bench", "run", "--suite", SUITE, "-q", "-o", &path, "/gemv/|/copy/", "--timeout", "1"];
    let run = with(&args, &[("EXAMPLE_TROUBLE", &format!("hang:{WARP}"))]);
    assert!(started.elapsed() < Duration::from_mins(1), "{:?}", started.elapsed());
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    assert!(run.stdout.contains("said nothing for 1 s and was ended"), "{}", run.stdout);
    assert_eq!(read(&path)["results"].as_array().map(Vec::len), Some(2));
}

#[test]
fn an_interrupt_ends_the_suite_and_keeps_what_it_measured() {
    let place = Place::new();
    let path = place.path("interrupted.json");
    let pid = place.path("pid");
    let script = place.path("suite.sh");
    let suite = root().join(SUITE).canonicalize().expect("the suite is there");
    fs::write(&script, format!("#!/bin/sh\necho $$ > {pid}\nexec {} \"$@\"\n", suite.display())).expect("written");
    make_executable(&script);
    let child = command(&["bench", "run", "--suite", &script, "-o", &path, "/gemv/|/copy/"])
        .env("EXAMPLE_TROUBLE", format!("hang:{WARP}"))
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("the program starts");
    let began = Instant::now();
    while fs::read_to_string(&path).map_or(0, |text| text.matches("\"buffers_rotated\"").count()) < 2 {
        assert!(began.elapsed() < Duration::from_mins(1), "two benchmarks are measured and saved");
        std::thread::sleep(Duration::from_millis(20));
    }
    let send = |signal: &str, to: &str| Command::new("/bin/kill").args([signal, to]).status().expect("kill runs").success();
    assert!(send("-INT", &child.id().to_string()));
    let output = child.wait_with_output().expect("the program ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&output.status), Some(2), "{said}");
    assert!(said.contains("interrupted after 2 benchmarks, kept in "), "{said}");
    let suite = fs::read_to_string(&pid).expect("the suite ran").trim().to_owned();
    assert!(!send("-0", &suite), "the suite is gone");
    let kept = read(&path);
    assert_eq!((kept["complete"].as_bool(), kept["results"].as_array().map(Vec::len)), (Some(false), Some(2)));
}

#[test]
fn wrong_words_and_wrong_suites_are_refused_with_what_helps() {
    let place = Place::new();
    let script = |name: &str, text: &str| place.script(name, text);
    let silent = script("silent.sh", "/bin/sleep 60");
    let chatty = script("chatty.sh", "echo hello");
    let broken = script("broken.sh", "echo no GPU here >&2; exit 7");
    let odd = script(
        "odd.sh",
        &format!("if [ \"$1\" = list ]; then exec {} list; fi; echo hello", root().join(SUITE).canonicalize().unwrap().display()),
    );
    let plain = place.path("plain.py");
    fs::write(&plain, "print()").expect("written");
    let results = place.path("results.json");
    fs::write(&results, "{}").expect("written");
    for (args, code, part) in [
        (&["bench", "list"][..], 2, "which suite? Name the program that holds the benchmarks with --suite PATH or $LONGPOLE_SUITE"),
        (&["bench", "list", "--suite", "no/such"], 3, "there is no suite `no/such`"),
        (&["bench", "list", "--suite", "corpus/bench"], 3, "is a folder"),
        (&["bench", "list", "--suite", &plain], 3, "start it with Python: --suite python3 --suite-arg"),
        (&["bench", "list", "--suite", &chatty], 3, "it holds no JSON object"),
        (&["bench", "list", "--suite", &broken], 3, "ended with status 7; its last words: no GPU here"),
        (&["bench", "list", "--suite", &silent, "--timeout", "1"], 3, "did not list its benchmarks within 1 s"),
        (&["bench", "run", "--suite", &odd, "--no-save"], 3, "printed nothing that the protocol knows"),
        (&["bench", "run", "--suite", SUITE, "--suite", SUITE], 2, "cannot be used multiple times"),
        (&["bench", "run", "--suite", SUITE, "example/ops/gemv/decode/wrap_row"], 2, "did you mean `example/ops/gemv/decode/warp_row`"),
        (&["bench", "run", "--suite", SUITE, "nothing_like_it_at_all"], 2, "the suite has 6, such as `example/ops/copy/decode/float4`"),
        (&["bench", "run", "--suite", SUITE, "("], 2, "unclosed group"),
        (&["bench", "run", "--suite", SUITE, "--model", "other"], 2, "there is no model `other`; there are example"),
        (&["bench", "run", "--suite", SUITE, "--gate"], 2, "name it with --compare BEFORE"),
        (&["bench", "run", "--suite", SUITE, "--max-seconds", "0"], 2, "use a number above 0"),
        (&["bench", "run", "--suite", SUITE, "--compare", "no.json"], 3, "cannot read `no.json`"),
        (&["bench", "compare"], 2, "Name results (BEFORE), or the suite of the first build with --suite-before"),
        (&["bench", "run", "--suite", SUITE, "--no-save", "--peaks", "no.json"], 3, "--peaks `no.json`"),
        (&["bench", "compare", &results, &results], 3, "it holds no results of a benchmark: missing field"),
        (&["bench", "compare", &results], 3, "missing field"),
        (&["bench", "peaks", "--suite", &chatty], 3, "measures no peaks"),
        (&["bench"], 2, "Usage"),
        (&["bench", "rnu"], 2, "unrecognized subcommand"),
    ] {
        let refused = run(args);
        assert_eq!((refused.code, refused.stdout.as_str()), (Some(code), ""), "{args:?}: {}", refused.stderr);
        assert!(refused.stderr.contains(part), "{args:?}: {}", refused.stderr);
    }
}

#[test]
fn neither_secrets_nor_control_characters_get_through() {
    let place = Place::new();
    let suite = root().join(SUITE).canonicalize().expect("the suite is there");
    let script = place.path("suite.sh");
    let text = format!(
        "#!/bin/sh\nif [ \"$1\" = list ]; then exec {0} list; fi\n{0} run {COPY}\nprintf '{{\"event\":\"error\",\"key\":\"{WARP}\",\"message\":\"/home{1}k.cu HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyz012345 \\\\u001b[2J\"}}\\n'\nprintf 'text \\033[2J\\n'\nexit 1\n",
        suite.display(),
        // In parts, so that no search for paths of a machine finds one here.
        ["", "zaphod", ""].join("/"),
    );
    fs::write(&script, text).expect("written");
    make_executable(&script);
    let path = place.path("r.json");
    for format in ["--json", "--markdown", "--color=never"] {
        let run = run(&["bench", "run", COPY, WARP, "--suite", &script, "-o", &path, format]);
        assert_eq!(run.code, Some(1), "{}", run.stderr);
        for said in [&run.stdout, &run.stderr, &fs::read_to_string(&path).expect("kept")] {
            assert!(!said.contains("zaphod") && !said.contains("hf_abc") && !said.contains('\x1b'), "{said}");
        }
    }
}

pub(crate) fn make_executable(path: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("made executable");
}
