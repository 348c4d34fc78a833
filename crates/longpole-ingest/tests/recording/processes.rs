//! Several processes in one file.

use std::collections::BTreeSet;

use crate::made::{Made, read};

#[test]
fn processes_that_share_a_gpu_are_one_recording_and_their_calls_are_told_apart() {
    let one = Made::new(10).process(None).device(0, 5).launch(11, 0, "a", 0).launch(11, 2_000, "b", 0).end();
    let two = Made::new(20).process(None).device(0, 5).launch(21, 1_000, "c", 0).end();
    let trace = read(&[one, two].concat()).trace;
    assert_eq!((trace.ranks.len(), trace.processes.len(), trace.devices.len()), (1, 2, 1));
    let numbers: BTreeSet<_> = (0..3).map(|row| trace.activities.correlation(row).unwrap()).collect();
    assert_eq!(numbers.len(), 3);
    let names: Vec<_> = trace.activities.name.iter().map(|id| trace.strings.get(*id)).collect();
    assert_eq!(names, ["a", "b", "c"]);
    for row in 0..3 {
        let call = (0..3).find(|call| trace.api_calls.correlation(*call) == trace.activities.correlation(row)).unwrap();
        assert_eq!(trace.api_calls.start[call].get() + 500, trace.activities.start[row].get());
    }
}

#[test]
fn processes_with_gpus_of_their_own_are_ranks() {
    // Each sees one GPU, which it calls 0; the launcher's ranks decide the order.
    let one = Made::new(10).process(Some(1)).device(0, 5).launch(11, 0, "a", 0).end();
    let two = Made::new(20).process(Some(0)).device(0, 6).launch(21, 1_000, "b", 0).end();
    let trace = read(&[one, two].concat()).trace;
    let ranks: Vec<_> = trace.ranks.iter().map(|rank| (rank.rank, rank.world_size, rank.label.as_str())).collect();
    assert_eq!(ranks, [(0, Some(2), "bytes in memory (process 20)"), (1, Some(2), "bytes in memory (process 10)")]);
    let of = |row: usize| (trace.strings.get(trace.activities.name[row]), trace.lane_rank(trace.activities.lane[row]));
    assert_eq!([of(0), of(1)], [("a", 1), ("b", 0)]);
    assert!(trace.devices.iter().all(|device| device.properties.sm_count == Some(132)));
}

#[test]
fn a_process_that_runs_another_program_in_its_place_stays_one_process() {
    let before = Made::new(10).process(None).launch(10, 0, "a", 0).killed();
    let after = Made::new(10).process(None).launch(10, 5_000, "b", 0).end();
    let trace = read(&[before, after].concat()).trace;
    assert_eq!((trace.processes.len(), trace.threads.len()), (1, 1));
    assert!(trace.activities.correlation(0) != trace.activities.correlation(1));
    let names: Vec<_> = trace.activities.name.iter().map(|id| trace.strings.get(*id)).collect();
    assert_eq!(names, ["a", "b"]);
}
