//! What is said of losses, refusals, cuts, clocks and costs.

use longpole_ingest::import_bytes;
use longpole_recording::{Clock, Cost, Dropped, Family, Kernel, Refused};
use longpole_trace::{Ns, ProblemCode, Severity};
use proptest::prelude::*;

use crate::made::{Made, T0, problem, read, refuse};

#[test]
fn a_killed_process_leaves_a_partial_recording() {
    let imported = read(&Made::new(5).process(None).launch(5, 0, "k", 0).killed());
    assert_eq!(problem(&imported, ProblemCode::RecordingCut).unwrap(), (1, "process 5 (engine) was killed, or did not end yet".to_owned()));
    assert_eq!(imported.problems.worst(), Some(Severity::DataLoss));
    assert_eq!(imported.trace.activities.len(), 1);
}

#[test]
fn a_cut_file_is_partial_wherever_it_is_cut() {
    let bytes = Made::new(5).process(None).launch(5, 0, "k", 0).end();
    for cut in 0..bytes.len() {
        match import_bytes(&bytes[..cut], 1) {
            Ok(imported) => assert_eq!(imported.problems.worst(), Some(Severity::DataLoss), "cut at {cut}"),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}

#[test]
fn losses_are_counted_and_said() {
    let mut made = Made::new(5).launch(5, 0, "k", 0);
    made.writer.dropped(&Dropped { family: Family::Kernel.number(), count: 120, reason: Dropped::CUPTI, time: T0 });
    made.writer.dropped(&Dropped { family: 0, count: 7, reason: Dropped::WRITE, time: T0 });
    let imported = read(&made.end());
    assert_eq!(problem(&imported, ProblemCode::DroppedRecords).unwrap(), (127, "120 kernels: CUPTI had no free buffer".to_owned()));
    assert_eq!(imported.problems.worst(), Some(Severity::DataLoss));
}

#[test]
fn a_refusal_is_said_beside_what_others_recorded_and_alone() {
    let mut made = Made::new(6).process(None);
    let detail = made.writer.string(b"libcupti.so.13");
    made.writer.refused(&Refused { reason: Refused::SUBSCRIBER_TAKEN, code: 39, detail, time: T0 });
    let alone = made.end();
    let said = refuse(&alone);
    let why = "another profiler holds CUPTI's only subscription (libcupti.so.13), CUPTI's error 39";
    assert!(said.contains(&format!("found a recording of nothing: {why}; let the program not profile itself")), "{said}");
    let imported = read(&[alone, Made::new(7).launch(7, 0, "k", 0).end()].concat());
    assert_eq!(problem(&imported, ProblemCode::CaptureRefused).unwrap(), (1, format!("process 6 (engine): {why}")));
    let nothing = refuse(&Made::new(8).end());
    assert!(nothing.contains("without calls, ranges or device work: the process used no CUDA"), "{nothing}");
    assert!(refuse(b"LPREC\r\n\x1a").contains("hold none that can be read"));
}

#[test]
fn what_recording_cost_is_said_as_a_share_of_the_run() {
    let mut made = Made::new(5).launch(5, 0, "k", 0).launch(5, 9_100, "k", 0);
    made.writer.cost(&Cost { callbacks: 1, ..Cost::default() });
    made.writer.cost(&Cost { callbacks: 40, callback_ns: 2_000, pages: 3, page_ns: 5_000_000, bytes: 1_250_000, ..Cost::default() });
    let imported = read(&made.end());
    let cost = imported.problems.get(ProblemCode::RecorderCost).unwrap();
    assert_eq!((cost.count, cost.time, cost.time_out_of), (1, Some(Ns(2_000)), Some(Ns(10_000))));
    assert_eq!(cost.example.as_deref(), Some("50 ns each of 40 calls, 0 ms to begin and to end; 5 ms on its own thread for 1.3 MB"));
    assert!(imported.problems.worst() <= Some(Severity::Info));
}

#[test]
fn times_of_other_clocks_are_put_on_the_wall_clock_and_drift_is_said() {
    let mut made = Made::new(5).launch(5, 0, "k", 0);
    made.writer.clock(&Clock { cupti: T0 + 1_000_000_000, realtime: T0 + 1_003_000_040, monotonic: 9, uncertainty: 90 });
    let imported = read(&made.end());
    assert_eq!(imported.problems.get(ProblemCode::ClockDrift).unwrap().time, Some(Ns(3_000_000)));
    assert_eq!(imported.trace.activities.start[0], Ns(T0 as i64 + 500));
    // A clock that counts from the start of the system.
    let mut writer = longpole_recording::Writer::new(Vec::new(), longpole_recording::Header { pid: 1, started_at_ns: T0 }).unwrap();
    writer.clock(&Clock { cupti: 1_000, realtime: T0, monotonic: 1_000, uncertainty: 10 });
    writer.kernel(&Kernel { start: 2_000, end: 3_000, ..Kernel::default() });
    writer.kernel(&Kernel { start: 0, end: 3_000, ..Kernel::default() });
    writer.flush();
    let imported = read(&writer.into_inner());
    assert_eq!(imported.trace.activities.start, [Ns(T0 as i64 + 1_000)]);
    assert_eq!(problem(&imported, ProblemCode::MissingTime).unwrap().0, 1);
}

#[test]
fn lost_texts_are_said_to_be_missing() {
    let bytes = Made::new(5).launch(5, 0, "k", 0).end();
    // The first frame is the one of texts.
    let mut damaged = bytes;
    damaged[32 + 20 + 16 + 6] ^= 1;
    let imported = read(&damaged);
    assert!(problem(&imported, ProblemCode::UnreadBytes).is_some());
    assert_eq!(problem(&imported, ProblemCode::MissingName).unwrap().0, 2);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Damage anywhere is survived.
    #[test]
    fn flipped_bytes_are_survived(flips in proptest::collection::vec((0_usize..2_000, 1_u8..=255), 1..8)) {
        let mut bytes = Made::new(5).process(None).device(0, 1).launch(5, 0, "k", 0).launch(5, 3_000, "_Z3fooi", 0).end();
        for (at, flip) in flips {
            let at = at % bytes.len();
            bytes[at] ^= flip;
        }
        let _ = import_bytes(&bytes, 2);
    }
}
