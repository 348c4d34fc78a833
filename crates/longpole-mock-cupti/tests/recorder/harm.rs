//! What must never happen to a program, and what is left when nothing can be recorded.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use longpole_recording::Refused;

use crate::harness::{Contents, Run, recorder};

fn only_refusal(got: &Contents) -> (u8, i32, String) {
    let refusals = got.refusals();
    assert_eq!(refusals.len(), 1, "{refusals:?}");
    assert!(got.kernels().is_empty() && got.calls().is_empty());
    refusals[0].clone()
}

#[test]
fn without_settings_nothing_happens() {
    let outcome = Run::new("nvtx:0 cuda push:a launch:3 pop exit:5").without("LONGPOLE_RECORD_DIR").go();
    assert_eq!(outcome.status.code(), Some(5));
    assert!(outcome.recordings().is_empty());
}

#[test]
fn without_a_library_the_recording_says_so() {
    let got =
        Run::new("cuda nvtx:0 push:a pop").env("LONGPOLE_LIBCUPTI", "/nonexistent/libcupti.so.13").without("MOCK_LIBCUPTI").recording();
    let (reason, code, detail) = only_refusal(&got);
    assert_eq!((reason, code, detail.as_str()), (Refused::NO_CUPTI, 0, "/nonexistent/libcupti.so.13 is no CUPTI library"));
    assert_eq!(got.nvtx(), ["push a", "pop"], "ranges are recorded all the same");
    // A library that is none of CUPTI's.
    let other = Run::new("cuda").env("LONGPOLE_LIBCUPTI", recorder()).recording();
    assert_eq!(only_refusal(&other).0, Refused::NO_CUPTI);
}

#[test]
fn without_cuda_the_recording_says_so() {
    let got = Run::new("nvtx:0 push:a pop").recording();
    assert_eq!(only_refusal(&got), (Refused::NO_DRIVER, 0, "CUDA was not initialised in this process".to_owned()));
}

#[test]
fn another_profiler_may_be_first() {
    let run = Run::new("load:libcupti.so.13 foreign cuda launch:3 exit:4").without("LONGPOLE_LIBCUPTI");
    let libraries = run.folder.path().join("lib");
    let outcome = run.env("LD_LIBRARY_PATH", libraries).go();
    assert_eq!(outcome.status.code(), Some(4));
    let got = outcome.recordings().remove(0);
    let (reason, code, detail) = only_refusal(&got);
    assert_eq!((reason, code), (Refused::SUBSCRIBER_TAKEN, 39));
    assert!(detail.starts_with("CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED ("), "{detail}");
}

#[test]
fn the_driver_may_refuse() {
    let refused = |code: &str| only_refusal(&Run::new("cuda launch:3").env("MOCK_CUPTI_SUBSCRIBE", code).recording());
    let (reason, code, detail) = refused("35");
    assert_eq!((reason, code), (Refused::NOT_PERMITTED, 35));
    assert!(detail.starts_with("CUPTI_ERROR_INSUFFICIENT_PRIVILEGES ("), "{detail}");
    let (reason, code, detail) = refused("999");
    assert_eq!((reason, code), (Refused::FAILED, 999));
    assert!(detail.starts_with("CUPTI error 999 ("), "{detail}");
    let old = only_refusal(&Run::new("cuda launch:3").env("MOCK_CUPTI_VERSION", "17").recording());
    assert_eq!(old.0, Refused::VERSION);
    assert!(old.2.starts_with("CUPTI's version 17 is older than CUDA 12.0's"), "{}", old.2);
}

#[test]
fn a_loaded_library_is_taken_before_others() {
    // Two in the process: the one that is loaded works, the one that a search would find is refused.
    let run = Run::new("load:libcupti.so.12 cuda launch:5").without("LONGPOLE_LIBCUPTI");
    let libraries = run.folder.path().join("lib");
    let got = run.env("LD_LIBRARY_PATH", &libraries).recording();
    assert_eq!(got.kernels()["decode_kernel"], 5);
    // Both loaded: the newer one.
    let run = Run::new("load:libcupti.so.12 load:libcupti.so.13 cuda launch:5").without("LONGPOLE_LIBCUPTI");
    let libraries = run.folder.path().join("lib");
    let got = run.env("LD_LIBRARY_PATH", &libraries).recording();
    assert_eq!(got.kernels()["decode_kernel"], 5);
    // None loaded: found by name.
    let run = Run::new("cuda launch:5").without("LONGPOLE_LIBCUPTI");
    let libraries = run.folder.path().join("lib");
    let got = run.env("LD_LIBRARY_PATH", &libraries).recording();
    assert_eq!(got.kernels()["decode_kernel"], 5);
}

#[test]
fn a_folder_that_cannot_be_written_to_costs_the_recording_only() {
    for folder in ["/nonexistent/folder", "/proc"] {
        let outcome = Run::new("nvtx:0 cuda push:a launch:100 pop sleep:1100 exit:6").env("LONGPOLE_RECORD_DIR", folder).go();
        assert_eq!(outcome.status.code(), Some(6));
    }
    let run = Run::new("nvtx:0 cuda push:a launch:100 pop exit:6");
    let out = run.folder.path().join("out");
    fs::set_permissions(&out, fs::Permissions::from_mode(0o500)).unwrap();
    assert_eq!(run.go().status.code(), Some(6));
}

/// Files may not grow beyond a few kilobytes here, which fails as a full disk does.
#[test]
fn a_full_disk_costs_the_recording_only() {
    let run = Run::new("nvtx:0 cuda launch:60000 nvtx-flood:2000 sleep:1100 launch:2000 check-signals exit:6");
    let outcome = run.limit_files(20_000).go();
    assert_eq!(outcome.status.code(), Some(6));
    let got = outcome.recordings().remove(0);
    assert!(!got.has_end || got.lost().values().sum::<u64>() > 0);
}

#[test]
fn errno_signals_and_status_are_the_programs() {
    let got = Run::new("nvtx:0 cuda launch:3 check-errno check-signals sleep:1100 check-errno check-signals").recording();
    assert_eq!(got.end().status, Some(0));
    let outcome = Run::new("cuda launch:3 exit:42").go();
    assert_eq!(outcome.status.code(), Some(42));
    assert_eq!(outcome.recordings()[0].end().status, Some(42));
}

/// A daemon closes all descriptors, and files of its own get their numbers.
#[test]
fn descriptors_are_the_programs() {
    let folder = tempfile::TempDir::new().unwrap();
    let own = folder.path().join("own");
    let outcome = Run::new(&format!(
        "cuda launch:3 sleep:1200 take-descriptors:{} launch:500 sleep:1200 check-descriptors launch:500 exit:7",
        own.display()
    ))
    .go();
    assert_eq!(outcome.status.code(), Some(7));
    assert_eq!(fs::read(own).unwrap(), b"");
    let got = outcome.recordings().remove(0);
    assert_eq!((got.kernels()["decode_kernel"], got.has_end, got.faults), (3, false, 0));
}
