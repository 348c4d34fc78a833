//! `longpole profile` with a made-up suite and an ncu that is a script: it runs the suite as ncu would and leaves a recorded report.

#![cfg(unix)]

use std::fs;

use crate::bench::{SUITE, make_executable};
use crate::harness::{Run, command, finish, root};
use crate::schema::validate;

const WARP: &str = "example/ops/gemv/decode/warp_row";
const STEP: &str = "example/model/decode_step_ctx1024/eager";

struct Place(tempfile::TempDir);

impl Place {
    /// With an `ncu` whose middle part is `what`; it has the words in `$words`, and runs the suite before.
    fn new(what: &str) -> Self {
        let place = Self(tempfile::tempdir().expect("a temporary directory"));
        let report = root().join("corpus/ncu/kern_basic.ncu-rep").canonicalize().expect("the corpus is there");
        let script = format!(
            r#"#!/bin/sh
PATH=/usr/bin:/bin
if [ "$1" = --version ]; then echo "Version 2025.3.1.0 (build 1)"; exit 0; fi
echo "$@" >> "{words}"
while [ $# -gt 0 ]; do
    case $1 in
    --export) export=$2; shift ;;
    *suite.sh) break ;;
    esac
    shift
done
echo "==PROF== Connected to process 12 (suite)" >&2
"$@"
status=$?
{what}
case $export in *count*) kernels=3 ;; *) kernels=1 ;; esac
kernel=0
while [ $kernel -lt $kernels ]; do
    echo "==PROF== Profiling \"gemv\" - $kernel: 0%....50%....100% - 8 passes" >&2
    kernel=$((kernel + 1))
done
cp "{report}" "$export"
echo "==PROF== Report: $export" >&2
exit $status
"#,
            words = place.path("words"),
            report = report.display()
        );
        fs::write(place.path("ncu"), script).expect("written");
        make_executable(&place.path("ncu"));
        place
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().expect("UTF-8").to_owned()
    }

    fn profile(&self, args: &[&str]) -> Run {
        let results = self.path("results");
        let args = [&["profile", "--suite", SUITE, "--results", &results], args].concat();
        finish(command(&args).env("PATH", self.0.path()).output().expect("the program starts"))
    }

    /// The words that ncu was started with, a line for each start.
    fn words(&self) -> String {
        fs::read_to_string(self.path("words")).unwrap_or_default()
    }

    fn reports(&self) -> Vec<String> {
        let folders = fs::read_dir(self.path("results")).into_iter().flatten().flatten();
        let files = folders.flat_map(|folder| fs::read_dir(folder.path()).into_iter().flatten().flatten());
        let mut names: Vec<String> = files.map(|file| file.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

#[test]
fn a_key_is_profiled_and_its_report_kept_and_shown() {
    let place = Place::new("");
    let run = place.profile(&[WARP]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert_eq!(run.stdout, "hello from the suite\n", "standard output is the suite's");
    assert!(run.stderr.contains("waited") || run.stderr.contains("DRAM"), "{}", run.stderr);
    assert!(run.stderr.contains("report kept in ") && !run.stderr.contains("==PROF=="), "{}", run.stderr);
    assert_eq!(place.reports(), ["example+ops+gemv+decode+warp_row.ncu-rep"]);
    let words = place.words();
    assert!(
        words.starts_with("--profile-from-start off --target-processes all --log-file stderr --launch-count 1 --section SpeedOfLight "),
        "{words}"
    );
    assert!(words.trim_end().ends_with(&format!("{SUITE} profile {WARP} --launches 1")), "{words}");
    assert!(words.contains("--section WarpStateStats") && words.lines().count() == 1, "{words}");
    // A second report does not replace the first.
    assert_eq!(place.profile(&[WARP, "-q"]).code, Some(0));
    assert_eq!(place.reports().len(), 2);
}

#[test]
fn what_is_shown_goes_where_it_is_wanted() {
    let place = Place::new("");
    let file = place.path("page.txt");
    let run = place.profile(&[WARP, "--table", "-q", "-o", &file]);
    assert_eq!((run.code, run.stderr.as_str(), run.stdout.as_str()), (Some(0), "", "hello from the suite\n"));
    assert!(fs::read_to_string(&file).expect("written").contains("By family"));
    assert!(!place.words().contains("WarpStateStats"), "a table needs few sections");
    let json = place.profile(&[WARP, "--json", "-o", &file, "--full"]);
    assert_eq!(json.code, Some(0), "{}", json.stderr);
    assert_eq!(validate(&fs::read_to_string(&file).expect("written"))["schema"], "longpole.ncu/1");
    assert!(place.words().contains("--set full --import-source yes"));
    let both = place.profile(&[WARP, "-q", "--markdown", "-o", "-"]);
    assert!(both.stdout.starts_with("hello from the suite\n") && both.stdout.contains("**"), "{}", both.stdout);
    let compared = place.profile(&[WARP, "-q", "--compare", "corpus/ncu/kern_basic.ncu-rep"]);
    assert!(compared.code == Some(0) && compared.stderr.contains("before"), "{}", compared.stderr);
}

#[test]
fn the_users_options_of_ncu_take_the_place_of_ours() {
    let place = Place::new("");
    let run = place.profile(&["/gemv/", "-q", "--", "--set=detailed", "--clock-control", "none", "-c", "3"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let words = place.words();
    assert!(
        words.contains("--set=detailed --clock-control none -c 3 ") && !words.contains("--section") && !words.contains("--launch-count"),
        "{words}"
    );
    assert!(words.contains("thread_row example/ops/gemv/decode/warp_row --launches 1"), "{words}");
    assert_eq!(place.reports(), ["example+ops+gemv+decode+thread_row+and-1-more.ncu-rep"]);
    let refused = place.profile(&[WARP, "--", "-o", "mine"]);
    assert!(refused.code == Some(2) && refused.stderr.contains("--results says where"), "{}", refused.stderr);
}

#[test]
fn a_whole_step_is_counted_and_estimated_first() {
    let place = Place::new("");
    let run = place.profile(&[STEP, "--table"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stderr.contains("3 kernels x about 10 passes: about "), "{}", run.stderr);
    let words = place.words();
    let (count, real) = words.split_once('\n').expect("two starts");
    assert!(count.contains("--metrics launch__grid_size") && !words.contains("--launch-count"), "{words}");
    assert!(real.contains("--section SpeedOfLight"), "{words}");
    let only = place.profile(&[STEP, "--estimate"]);
    assert!(only.code == Some(0) && only.stderr.contains("3 kernels") && only.stderr.contains("--export"), "{}", only.stderr);
    assert_eq!((place.words().lines().count(), place.reports().len()), (3, 1), "nothing but the count runs");
}

#[test]
fn known_failures_come_with_what_helps() {
    for (what, code, means, helps) in [
        (
            "echo '==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters on the target device 0.' >&2; exit 1",
            1,
            "this user may not read the GPU's counters (ERR_NVGPUCTRPERM)",
            "→ ",
        ),
        (
            "echo '==ERROR== Profiling failed because a driver resource was unavailable. Ensure that no other tool (like DCGM) is concurrently collecting profiling data.' >&2; exit 9",
            9,
            "something else holds the GPU's counters",
            "→ ",
        ),
        (
            "echo '==WARNING== No kernels were profiled.'; exit 0",
            3,
            "no kernel ran between cuProfilerStart and cuProfilerStop",
            "docs/suite-protocol.md",
        ),
        ("kill -9 $$", 137, "ended by signal 9", ""),
        ("echo 'something new' >&2; exit 4", 4, "ended with status 4; its last words: ", "something new"),
        ("exit 0", 3, "ncu ended without a report", ""),
    ] {
        let place = Place::new(what);
        let run = place.profile(&[WARP]);
        assert_eq!(run.code, Some(code), "{what}: {}", run.stderr);
        assert!(run.stderr.contains(means) && run.stderr.contains(helps), "{what}: {}", run.stderr);
        // What helps stands below what it helps against.
        let (error, hint) = (run.stderr.find("error: "), run.stderr.find("→ "));
        assert!(error.is_some() && hint.is_none_or(|hint| Some(hint) > error), "{what}: {}", run.stderr);
        assert!(place.reports().is_empty(), "{what}: a name is given back");
    }
}

#[test]
fn the_programs_own_status_is_passed_on_and_its_report_shown_all_the_same() {
    let place = Place::new("status=5");
    let run = place.profile(&[WARP, "-q"]);
    assert_eq!(run.code, Some(5), "{}", run.stderr);
    assert!(run.stderr.contains("DRAM") && run.stderr.contains("ended with status 5"), "{}", run.stderr);
}

#[test]
fn what_cannot_be_profiled_is_refused() {
    let place = Place::new("");
    for (args, code, part) in [
        (&["example/ops/gemv/decode/wrap_row"][..], 2, "did you mean `example/ops/gemv/decode/warp_row`"),
        (&[WARP, "--csv"], 2, "profile has no CSV"),
        (&[WARP, "--ncu", "/no/such/ncu"], 3, "--ncu `/no/such/ncu` is no program"),
        (&[WARP, "--compare", "Cargo.toml"], 3, "is no report of Nsight Compute"),
        (&[WARP, "--table", "--full"], 2, "cannot be used with"),
    ] {
        let refused = place.profile(args);
        assert_eq!((refused.code, refused.stdout.as_str()), (Some(code), ""), "{args:?}: {}", refused.stderr);
        assert!(refused.stderr.contains(part), "{args:?}: {}", refused.stderr);
    }
    assert!(place.words().is_empty() && place.reports().is_empty(), "nothing ran");
    let without = finish(command(&["profile", WARP, "--suite", SUITE]).output().expect("the program starts"));
    if !std::path::Path::new("/opt/nvidia/nsight-compute").exists() && !std::path::Path::new("/usr/local/cuda").exists() {
        assert_eq!(without.code, Some(3), "{}", without.stderr);
        assert!(without.stderr.contains("ncu) is not installed here") && without.stderr.contains("→ "), "{}", without.stderr);
    }
}

#[test]
fn a_suite_that_hangs_under_ncu_is_ended() {
    let place = Place::new("sleep 60");
    let started = std::time::Instant::now();
    let run = place.profile(&[WARP, "--timeout", "1"]);
    assert!(started.elapsed() < std::time::Duration::from_secs(50), "{:?}", started.elapsed());
    assert!(run.code == Some(3) && run.stderr.contains("said nothing under ncu for 1 s"), "{}", run.stderr);
}
