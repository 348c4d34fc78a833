//! `longpole bench` where suites, disks and other runs get in its way: nothing that was measured is lost, and what went wrong is said.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::bench::{COPY, Place, SUITE, WARP, files, read, with};
use crate::harness::{command, finish, print, root, run};
use crate::schema::validate;

const DEVICE: &str = r#"echo '{"event":"device","device":{"name":"Example GPU","uuid":"GPU-example","driver":"580.1","cuda":"13.0"}}'"#;

/// The path of the made-up suite, from anywhere.
fn suite() -> String {
    root().join(SUITE).canonicalize().expect("the suite is there").to_str().expect("UTF-8").to_owned()
}

/// The start, the samples and the end of a benchmark, as a shell prints them.
fn events(key: &str, time_ps: &str) -> String {
    format!(
        r#"
        echo '{{"event":"start","key":"{key}","bytes":8,"flops":null,"method":"events","launches_per_sample":1,"buffers_rotated":1,"l2":"cold"}}'
        for index in 0 1 2 3 4 5; do echo '{{"event":"sample","key":"{key}","index":'$index',"time_ps":{time_ps}}}'; done
        echo '{{"event":"end","key":"{key}","samples":6,"stopped_by":"count","warm_up_ns":1,"correct":true,"relative_error":null}}'"#
    )
}

/// A suite that lists what the made-up one lists, and runs this.
fn running(place: &Place, name: &str, text: &str) -> String {
    place.script(name, &format!("case $1 in list|peaks) exec {} \"$@\";; esac\n{text}", suite()))
}

/// A build that takes longer by some per mille, and from its second run on does this instead.
fn turning(place: &Place, name: &str, then: &str) -> String {
    let (suite, seen) = (suite(), place.path(&format!("{name}.seen")));
    let text = format!(
        "if [ $1 = run ]; then\nif [ -e {seen} ]; then\n{then}\nfi\n: > {seen}\nfi\nEXAMPLE_SEED=3 EXAMPLE_SCALE='{WARP}=1018' exec {suite} \"$@\""
    );
    place.script(name, &text)
}

/// A page without its line ends, which fall where a path is long.
fn flat(page: &str) -> String {
    page.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Why a benchmark failed, as the document says.
fn reasons(document: &Value) -> Vec<String> {
    let rows = document["results"].as_array().expect("a list").iter();
    rows.filter_map(|row| row["failed"].as_str().map(str::to_owned)).collect()
}

#[test]
fn runs_at_the_same_time_keep_a_file_each() {
    let place = Place::new();
    let results = place.path("results");
    let one = || {
        let mut command = command(&["bench", "run", WARP, "--suite", SUITE, "-q", "--json", "--results", &results]);
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().expect("the program starts")
    };
    let running: Vec<_> = (0..4).map(|_| one()).collect();
    let mut said: Vec<String> = Vec::new();
    for child in running {
        let run = finish(child.wait_with_output().expect("the program ends"));
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        said.push(validate(&run.stdout)["source"]["path"].as_str().expect("a path").to_owned());
    }
    said.sort();
    let kept: Vec<String> = files(Path::new(&results)).iter().map(|path| path.to_str().expect("UTF-8").to_owned()).collect();
    assert_eq!((kept.len(), said), (4, kept.clone()));
    assert!(kept.iter().all(|path| read(path)["complete"] == true));
    // A name is given back where nothing was measured.
    let broken = running_nothing(&place);
    let failed = run(&["bench", "run", WARP, "--suite", &broken, "-q", "--results", &results]);
    assert_eq!((failed.code, files(Path::new(&results)).len()), (Some(3), 4), "{}", failed.stderr);
}

fn running_nothing(place: &Place) -> String {
    running(place, "nothing.sh", "echo no GPU here >&2; exit 5")
}

#[test]
fn a_benchmark_that_fails_when_it_is_measured_again_is_said_and_fails_the_gate() {
    let place = Place::new();
    let error = format!("{DEVICE}\necho '{{\"event\":\"error\",\"key\":\"{WARP}\",\"message\":\"result wrong\"}}'\nexit 1");
    let note = "failed after when it was measured again: result wrong";
    let after = turning(&place, "after.sh", &error);
    let args = ["bench", "compare", "--suite-before", SUITE, "--suite-after", &after, "--key", WARP, "--no-save", "-q", "--gate"];
    let page = run(&args);
    assert_eq!(page.code, Some(1), "{}", page.stdout);
    assert!(page.stdout.contains(note) && page.stderr.contains(&format!("failed or wrong: {WARP}")), "{}{}", page.stdout, page.stderr);
    // Where the first build is no more, too.
    let before = place.measured("before.json", &[WARP], &[]);
    let after = turning(&place, "alone.sh", &error);
    let alone = run(&["bench", "run", WARP, "--suite", &after, "--compare", &before, "--no-save", "-q", "--gate", "--json"]);
    let document = validate(&alone.stdout);
    assert_eq!((alone.code, document["failed"][0].as_str()), (Some(1), Some(WARP)), "{}", alone.stderr);
    assert_eq!(document["results"][0]["notes"][0].as_str(), Some(note));
    // A result that is wrong in a round alone.
    let wrong = turning(&place, "wrong.sh", &format!("EXAMPLE_TROUBLE='wrong:{WARP}' exec {} \"$@\"", suite()));
    let args = ["bench", "compare", "--suite-before", SUITE, "--suite-after", &wrong, "--key", WARP, "--no-save", "-q", "--gate", "--json"];
    let wrong = run(&args);
    let document = validate(&wrong.stdout);
    assert_eq!((wrong.code, document["failed"][0].as_str()), (Some(1), Some(WARP)), "{}", wrong.stderr);
    assert!(document["results"][0]["notes"].to_string().contains("its result is wrong after"), "{document}");
}

#[test]
fn a_suite_that_breaks_down_later_costs_nothing_of_what_was_measured() {
    let place = Place::new();
    let other = format!("EXAMPLE_DEVICE='Another GPU' exec {} \"$@\"", suite());
    for (name, then, said) in
        [("exits.sh", "echo boom >&2; exit 5", "ended with status 5; its last words: boom"), ("moves.sh", &other, "now measures on")]
    {
        let after = turning(&place, name, then);
        let args = |gate: &'static str| {
            [
                &["bench", "compare", "--suite-before", SUITE, "--suite-after", &after, "-k", WARP, "-k", COPY, "--no-save", "-q"][..],
                &[gate],
            ]
            .concat()
        };
        if name == "moves.sh" {
            // Only a process after the first can be on another device than the first.
            let before = place.measured("before.json", &[WARP], &[]);
            let run = run(&["bench", "run", WARP, "--suite", &after, "--compare", &before, "--no-save", "-q", "--gate"]);
            assert_eq!(run.code, Some(1), "{}", run.stderr);
            assert!(run.stdout.contains("Compared · ") && flat(&run.stdout).contains(said), "{}", run.stdout);
            continue;
        }
        let page = run(&args("--gate"));
        assert_eq!(page.code, Some(1), "{}", page.stderr);
        assert!(page.stdout.contains("Compared · ") && flat(&page.stdout).contains(said) && page.stdout.contains(COPY), "{}", page.stdout);
        assert!(page.stderr.contains(&format!("failed or wrong: {WARP}")), "{}", page.stderr);
        fs::remove_file(place.path(&format!("{name}.seen"))).expect("it ran");
        assert_eq!(run(&args("--markdown")).code, Some(0));
    }
    // The first build may break down as well, which says nothing of the second.
    let before = turning(&place, "before.sh", "exit 5");
    let args = ["bench", "compare", "--suite-before", &before, "--suite-after", SUITE, "-k", WARP, "--no-save", "-q", "--json"];
    let document = validate(&print(&args));
    assert_eq!(document["failed"].as_array().map(Vec::len), Some(0));
    assert!(document["results"][0]["notes"].to_string().contains("failed before when it was measured again"), "{document}");
}

#[test]
fn a_place_that_cannot_be_written_to_is_said_and_costs_no_table() {
    let place = Place::new();
    let ran = place.path("ran");
    let marked = running(&place, "marked.sh", &format!(": > {ran}\nexec {} \"$@\"", suite()));
    fs::write(place.path("file"), "").expect("written");
    for place_of in [["-o", &place.path("file/x.json")], ["-o", &place.path("")], ["--results", &place.path("file")]] {
        let refused = run(&["bench", "run", WARP, "--suite", &marked, place_of[0], place_of[1]]);
        assert!(refused.code == Some(2) && refused.stderr.contains("the results cannot be written to"), "{place_of:?}: {}", refused.stderr);
        assert!(!Path::new(&ran).exists(), "nothing was measured");
    }
    // Neither is what it is compared with, or held against, written over.
    let before = place.path("before.json");
    for name in ["--compare", "--peaks"] {
        fs::copy(root().join(if name == "--peaks" { "corpus/bench/peaks.json" } else { "corpus/bench/before.json" }), &before)
            .expect("copied");
        let kept = fs::read(&before).expect("read");
        let refused = run(&["bench", "run", WARP, "--suite", &marked, name, &before, "-o", &before]);
        assert!(refused.code == Some(2) && refused.stderr.contains("is an input, which is not overwritten"), "{name}: {}", refused.stderr);
        assert!(fs::read(&before).expect("read") == kept && !Path::new(&ran).exists(), "nothing was measured");
    }
    // The folder goes while it measures, and a file takes its place.
    let results = place.path("results");
    let going = running(
        &place,
        "going.sh",
        &format!(
            "{} run {COPY}\n/bin/rm -rf {results}\n: > {results}\n{} run {WARP} | {{ read -r device; while read -r line; do echo \"$line\"; done; }}",
            suite(),
            suite()
        ),
    );
    let page = run(&["bench", "run", COPY, WARP, "--suite", &going, "--results", &results]);
    assert_eq!(page.code, Some(2), "{}", page.stderr);
    assert!(page.stdout.contains("2 benchmarks") && !page.stdout.contains("saved"), "{}", page.stdout);
    assert!(page.stderr.contains("error: the results cannot be written to"), "{}", page.stderr);
    let again = run(&["bench", "run", COPY, WARP, "--suite", &going, "--results", &results, "-q"]);
    assert!(again.code == Some(2) && again.stdout.is_empty(), "a file is no folder: {}", again.stderr);
}

#[test]
fn the_repository_that_is_measured_in_is_left_as_it_was() {
    let place = Place::new();
    let folder = place.path("repository");
    let git = |args: &[&str]| {
        let identity = ["-c", "user.name=x", "-c", "user.email=x@x"];
        Command::new("git").arg("-C").arg(&folder).args(identity).args(args).output().is_ok_and(|output| output.status.success())
    };
    fs::create_dir(&folder).expect("made");
    let file = Path::new(&folder).join("file");
    fs::write(&file, "1").expect("written");
    assert!(git(&["init", "-q"]) && git(&["add", "file"]) && git(&["commit", "-qm", "x"]));
    // Of another time and the same content: git would note that in its index.
    let long_ago = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    fs::File::options().write(true).open(&file).and_then(|file| file.set_modified(long_ago)).expect("set");
    let index = || fs::read(Path::new(&folder).join(".git/index")).expect("read");
    let before = index();
    let ran = command(&["bench", "run", WARP, "--suite", &suite(), "-q"]).current_dir(&folder).output().expect("it runs");
    assert_eq!(ran.status.code(), Some(0), "{}", String::from_utf8_lossy(&ran.stderr));
    assert!(index() == before, "the index is as it was");
    assert!(git(&["status"]) && index() != before, "git itself does refresh it");
}

#[test]
fn a_limit_on_files_leaves_no_scratch_files() {
    let place = Place::new();
    let path = place.path("big.json");
    // Blocks of 512 bytes: enough for nothing of 40 samples.
    let script = format!("ulimit -f 2; exec {} bench run {WARP} --suite {SUITE} -q -o {path}", env!("CARGO_BIN_EXE_longpole"));
    let run = finish(Command::new("/bin/sh").args(["-c", &script]).current_dir(root()).output().expect("a shell"));
    assert!(run.code == Some(2) && run.stdout.contains("1 benchmark"), "{:?} {}", run.code, run.stderr);
    assert!(files(place.0.path()).is_empty(), "{:?}", files(place.0.path()));
}

#[test]
fn what_is_measured_again_is_measured_as_it_was_asked_for() {
    let place = Place::new();
    let (before, after) =
        (place.measured("before.json", &[WARP], &[]), place.measured("after.json", &[WARP], &[("EXAMPLE_SCALE", &format!("{WARP}=1018"))]));
    let said = place.path("said");
    let logging = running(&place, "logging.sh", &format!("echo \"$@\" >> {said}\nexec {} \"$@\"", suite()));
    let args = [
        "bench",
        "compare",
        &before,
        &after,
        "--suite-before",
        SUITE,
        "--suite-after",
        &logging,
        "--no-save",
        "-q",
        "--json",
        "--samples",
        "21",
        "--max-seconds",
        "2",
        "--relative-error",
        "0.01",
        "--rounds",
        "1",
    ];
    validate(&print(&args));
    let said = fs::read_to_string(said).expect("it ran");
    assert_eq!(said.trim_end(), format!("run {WARP} --json-lines --max-seconds 2 --relative-error 0.01 --samples 21"));
}

#[test]
fn what_a_suite_does_wrong_is_what_is_said() {
    let place = Place::new();
    let (copy, warp) = (events(COPY, "5000"), events(WARP, "5000"));
    let python = format!("{DEVICE}{}{warp}", copy.replace("null}'", "NaN}'"));
    let nameless = warp.clone();
    let cut = format!("{DEVICE}{copy}{}", warp.split("for index").next().expect("a start"));
    let endless = format!("{DEVICE}{}{warp}", events(COPY, "9223372036854775807"));
    let sized = format!("{DEVICE}{}{warp}", copy.replace("\"bytes\":8", "\"bytes\":18446744073709551615"));
    let nan = "an event that is no JSON: expected value";
    for (name, text, failed, said) in [
        ("python.sh", python.as_str(), 1, nan),
        (
            "nameless.sh",
            &nameless,
            2,
            "without measuring it (it broke the protocol: example/ops/gemv/decode/warp_row starts before the device is named)",
        ),
        ("cut.sh", &cut, 1, "the suite ended in the middle of the benchmark"),
        ("seven.sh", &format!("{cut}\nexit 7"), 1, "the suite ended with status 7 in the middle of the benchmark"),
        ("endless.sh", &endless, 1, "sample 0 of example/ops/copy/decode/float4 takes 9223372036854775807 ps, more than a day"),
        ("sized.sh", &sized, 1, "it broke the protocol: example/ops/copy/decode/float4 starts with 18446744073709551615 bytes"),
    ] {
        let script = running(&place, name, text);
        let run = run(&["bench", "run", COPY, WARP, "--suite", &script, "-q", "--no-save", "--json"]);
        let reasons = reasons(&validate(&run.stdout));
        assert_eq!((run.code, reasons.len()), (Some(1), failed), "{name}: {reasons:?}");
        assert!(reasons.iter().any(|reason| reason.contains(said)), "{name}: {reasons:?}");
    }
    // What was cut costs the one that ran, and no other.
    let sample = format!(r#"printf '{{"event":"sample","key":"{COPY}","ind'"#);
    let begun = copy.split("for index").next().expect("a start");
    let half = running(&place, "half.sh", &format!("{DEVICE}\nif [ $2 = {COPY} ]; then {begun}\n{sample}\nexit; fi\n{warp}"));
    let document = validate(&run(&["bench", "run", COPY, WARP, "--suite", &half, "-q", "--no-save", "--json"]).stdout);
    assert_eq!((document["results"][0]["key"].as_str(), reasons(&document).len()), (Some(WARP), 1), "{document}");
    assert!(reasons(&document)[0].contains("EOF while parsing"), "{document}");
    // What was measured twice in one process says so.
    let twice = running(&place, "twice.sh", &format!("{DEVICE}{warp}{warp}"));
    let document = validate(&print(&["bench", "run", WARP, "--suite", &twice, "-q", "--no-save", "--json"]));
    assert_eq!(document["results"][0]["samples"].as_u64(), Some(6));
    assert!(document["results"][0]["notes"][0].as_str().is_some_and(|note| note.contains("a second time in one process")), "{document}");
    // Where everything failed, nothing is blamed on the list.
    let nothing =
        running(&place, "nothing.sh", &format!("{DEVICE}\necho '{{\"event\":\"error\",\"key\":\"{WARP}\",\"message\":\"no\"}}'\nexit 1"));
    let page = run(&["bench", "run", WARP, "--suite", &nothing, "-q", "--no-save"]).stdout;
    assert!(page.contains("FAILED") && !page.contains("does not say"), "{page}");
}

#[test]
fn lists_are_read_as_the_page_says() {
    let place = Place::new();
    let suite = suite();
    let talkative = place.script("talkative.sh", &format!("echo hello\n{suite} \"$@\"\necho bye"));
    assert_eq!(validate(&print(&["bench", "list", "--suite", &talkative, "--json"]))["total"].as_u64(), Some(6));
    // Something that it leaves running holds its output open.
    let leaving = place.script("leaving.sh", &format!("if [ $1 = list ]; then /bin/sleep 20 & fi\n{suite} \"$@\""));
    assert_eq!(validate(&print(&["bench", "list", "--suite", &leaving, "--json"]))["total"].as_u64(), Some(6));
    let one = |more: &str| {
        format!(
            r#"echo '{{"schema":"longpole.suite.list/1","suite":{{"name":"s"}},"benchmarks":[{{"key":"{WARP}","model":"example",{more}}}]}}'"#
        )
    };
    let long =
        "while :; do echo '                                                                                                        '; done";
    for (name, text, said) in [
        (
            "op.sh",
            one(r#""op":"other""#).as_str(),
            "the op of example/ops/gemv/decode/warp_row is said to be `other`, by its key it is `gemv`",
        ),
        ("bytes.sh", &one(r#""op":"gemv","bytes":18446744073709551615"#), "has 18446744073709551615 bytes, more than any run moves"),
        ("flops.sh", &one(r#""op":"gemv","flops":18446744073709551615"#), "has 18446744073709551615 operations, more than any run does"),
        ("long.sh", long, "the list of benchmarks is longer than 67108864 bytes"),
    ] {
        let refused = run(&["bench", "list", "--suite", &place.script(name, text)]);
        assert!(refused.code == Some(3) && refused.stderr.contains(said), "{name}: {}", refused.stderr);
    }
}

#[test]
fn benchmarks_of_one_suite_alone_are_named() {
    let place = Place::new();
    let suite = suite();
    let only = |name: &str, key: &str, op: &str| {
        let list = format!(
            r#"echo '{{"schema":"longpole.suite.list/1","suite":{{"name":"example"}},"benchmarks":[{{"key":"{COPY}","model":"example","op":"copy"}},{{"key":"{key}","model":"example","op":"{op}"}}]}}'"#
        );
        place.script(name, &format!("if [ $1 = list ]; then {list}; exit; fi\nexec {suite} \"$@\""))
    };
    let (old, new) = (only("old.sh", WARP, "gemv"), only("new.sh", "example/ops/rms_norm/decode/fused", "rms_norm"));
    let page = run(&["bench", "compare", "--suite-before", &old, "--suite-after", &new, "--no-save", "-q", "--gate"]);
    assert_eq!(page.code, Some(0), "{}", page.stderr);
    assert!(page.stdout.contains(&format!("{WARP}: only before: the suite after does not have it")), "{}", page.stdout);
    assert!(page.stdout.contains("rms_norm/decode/fused: only after: the suite from before does not have it"), "{}", page.stdout);
    // One that only the old build has can be chosen.
    let chosen = run(&["bench", "compare", "--suite-before", &old, "--suite-after", &new, "--no-save", "-q", "-k", WARP]);
    assert!(chosen.code == Some(2) && chosen.stderr.contains("in common"), "{}", chosen.stderr);
    let before = place.measured("before.json", &[COPY, WARP], &[]);
    let now = run(&["bench", "compare", &before, "--suite", &new, "--no-save", "-q"]).stdout;
    assert!(now.contains("warp_row: only before") && now.contains("fused: only after: not in the results from before"), "{now}");
}

#[test]
fn peaks_that_are_none_are_said() {
    let place = Place::new();
    let peaks = |name: &str, value: &str| {
        let copy = format!(r#"echo '{{"event":"peak","kind":"copy_bytes_per_s","dtype":null,"value":{value}}}'"#);
        let others = r#"for value in 8e14 1e14; do echo '{"event":"peak","kind":"flops_per_s","dtype":"bf16","value":'$value'}'; done"#;
        let script = place.script(name, &format!("{DEVICE}\n{copy}\n{others}"));
        run(&["bench", "peaks", "--suite", &script, "-q", "--json", "-o", &place.path("peaks.json")])
    };
    let nan = peaks("nan.sh", "NaN");
    assert!(nan.code == Some(1) && nan.stderr.contains("not all peaks are there") && nan.stderr.contains("no JSON"), "{}", nan.stderr);
    let huge = peaks("huge.sh", "1e308");
    assert!(huge.code == Some(1) && huge.stderr.contains("1e308 a second is no peak of any device"), "{}", huge.stderr);
    let fine = peaks("fine.sh", "4e12");
    let values: Vec<f64> =
        validate(&fine.stdout)["peaks"].as_array().expect("a list").iter().filter_map(|peak| peak["value_per_s"].as_f64()).collect();
    assert_eq!((fine.code, values), (Some(0), vec![4e12, 8e14]), "the best of each: {}", fine.stderr);
    let page = with(&["bench", "peaks", "--suite", SUITE, "-q", "-o", &place.path("p.json")], &[]).stdout;
    assert!(flat(&page).contains("bench run --peaks ") && !page.contains("by itself"), "{page}");
    let unwritable = run(&["bench", "peaks", "--suite", SUITE, "-o", &place.path("p.json/x.json")]);
    assert!(unwritable.code == Some(2) && unwritable.stdout.is_empty(), "{}", unwritable.stderr);
}

#[test]
fn results_that_cannot_be_are_refused() {
    let place = Place::new();
    let before = place.measured("before.json", &[WARP], &[]);
    let list = place.path("list.json");
    fs::write(&list, "[]").expect("written");
    let refused = run(&["bench", "compare", &before, &list]);
    assert!(refused.code == Some(3) && refused.stderr.contains("they are a JSON object"), "{}", refused.stderr);
    let mut changed = read(&before);
    changed["results"][0]["samples"][3]["time_ps"] = Value::from(u64::MAX);
    let long = place.path("long.json");
    fs::write(&long, changed.to_string()).expect("written");
    let refused = run(&["bench", "compare", &before, &long]);
    assert!(refused.code == Some(3) && refused.stderr.contains("more than a day"), "{}", refused.stderr);
    // Samples that are missing are said to be.
    changed["results"][0]["samples"] = Value::Array(Vec::new());
    fs::write(&long, changed.to_string()).expect("written");
    let page = run(&["bench", "compare", &before, &long]);
    assert!(page.stdout.contains(&format!("{WARP}: only before: no samples after")), "{}", page.stdout);
}
