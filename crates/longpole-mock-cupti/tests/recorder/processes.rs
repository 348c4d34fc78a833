//! Processes that fork, replace themselves, start others, or die.

use std::os::unix::process::ExitStatusExt as _;

use crate::harness::Run;

#[test]
fn a_forked_child_is_silent_until_it_uses_cuda() {
    // The parent uses CUDA, the child only NVTX: its events are nobody's.
    let outcome = Run::new("nvtx:0 cuda launch:3 push:parent fork push:child pop exit:0 join pop launch:4").go();
    assert_eq!(outcome.status.code(), Some(0));
    let all = outcome.recordings();
    assert_eq!(all.len(), 1);
    assert_eq!((all[0].kernels()["decode_kernel"], all[0].nvtx(), all[0].faults), (7, vec!["push parent".to_owned(), "pop".to_owned()], 0));
    assert!(all[0].has_end);
}

#[test]
fn a_forked_child_that_uses_cuda_has_a_recording_of_its_own() {
    let outcome = Run::new("nvtx:0 push:parent fork cuda push:child launch:5 pop join fork cuda launch:1 join pop cuda launch:2").go();
    assert_eq!(outcome.status.code(), Some(0));
    let mut all = outcome.recordings();
    all.sort_by_key(|recording| recording.kernels().values().sum::<usize>());
    assert_eq!(all.len(), 3);
    assert!(all.iter().all(|recording| recording.has_end && recording.faults == 0));
    let kernels: Vec<_> = all.iter().map(|recording| recording.kernels()["decode_kernel"]).collect();
    assert_eq!(kernels, [1, 2, 5]);
    assert_eq!(all[1].nvtx(), ["push parent", "pop"]);
    assert_eq!(all[2].nvtx(), ["push child", "pop"]);
    assert!(all.iter().all(|recording| recording.process().pid == recording.pid));
}

#[test]
fn a_program_that_replaces_itself_leaves_two_recordings() {
    // What the first one had is written within a second; the second has the same number.
    let outcome = Run::new("cuda launch:3 sleep:2200 exec:cuda,launch:4").go();
    assert_eq!(outcome.status.code(), Some(0));
    let all = outcome.recordings();
    assert_eq!(all.len(), 2);
    assert_eq!(all[0].pid, all[1].pid);
    let mut kernels: Vec<_> = all.iter().map(|recording| (recording.kernels()["decode_kernel"], recording.has_end)).collect();
    kernels.sort_unstable();
    assert_eq!(kernels, [(3, false), (4, true)]);
}

#[test]
fn children_have_recordings_of_their_own() {
    let outcome = Run::new("cuda launch:3 spawn:cuda,launch:4").go();
    assert_eq!(outcome.status.code(), Some(0));
    let all = outcome.recordings();
    assert_eq!(all.len(), 2);
    assert_ne!(all[0].pid, all[1].pid);
    assert!(all.iter().all(|recording| recording.has_end));
}

#[test]
fn a_killed_program_leaves_what_was_flushed() {
    let outcome = Run::new("nvtx:0 cuda push:a launch:300 sleep:2500 launch:7 kill").go();
    assert_eq!(outcome.status.signal(), Some(libc::SIGKILL));
    let got = outcome.recordings().remove(0);
    assert_eq!((got.kernels()["decode_kernel"], got.nvtx(), got.has_end, got.faults), (300, vec!["push a".to_owned()], false, 0));
    assert_eq!(got.calls()["cudaLaunchKernel_v7000"], 300);
}

#[test]
fn a_program_that_ends_without_handlers_leaves_what_was_flushed() {
    for (last, code) in [("quit:3", Some(3)), ("abort", None)] {
        let outcome = Run::new(&format!("cuda launch:300 sleep:2500 {last}")).go();
        assert_eq!(outcome.status.code(), code);
        let got = outcome.recordings().remove(0);
        assert_eq!((got.kernels()["decode_kernel"], got.has_end), (300, false));
    }
}
