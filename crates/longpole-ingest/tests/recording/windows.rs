//! Recordings that were switched on and off: what lies between their windows.

use longpole_recording::{Process, RangeState, StringId};
use longpole_trace::{Ns, ProblemCode};

use crate::made::{Made, T0, problem, read};

/// A recording that was asked for a range, with these switches.
fn recorded(range: &str, switches: &[(u8, u8, u64)]) -> Made {
    let mut made = Made::new(1);
    let range = if range.is_empty() { StringId::default() } else { made.writer.string(range.as_bytes()) };
    made.writer.process(&Process { pid: 1, parent: 0, range, ..Process::default() });
    for &(on, cause, at) in switches {
        made.writer.range_state(&RangeState { on, cause, time: T0 + at, tid: 7, name: StringId::NONE });
    }
    made
}

/// When nothing was recorded, from the start of the recording.
fn unobserved(made: Made) -> Vec<(i64, i64)> {
    let imported = read(&made.end());
    let of_rank = imported.trace.unobserved.of_rank(0).intervals();
    let said = problem(&imported, ProblemCode::RecordedInWindows).map(|(windows, _)| windows as usize);
    assert_eq!(said, (!of_rank.is_empty()).then_some(of_rank.len() + 1));
    let from_start = |time: Ns| time.get() - T0 as i64;
    of_rank.iter().map(|stretch| (from_start(stretch.start), from_start(stretch.end))).collect()
}

const NVTX: u8 = RangeState::NVTX;
const TWO: [(u8, u8, u64); 4] = [(1, NVTX, 1_000), (0, NVTX, 5_000), (1, NVTX, 50_000), (0, NVTX, 55_000)];

#[test]
fn what_is_between_windows_was_not_observed() {
    let with_work = |made: Made| made.launch(7, 1_500, "k", 0).launch(7, 51_000, "k", 0);
    assert_eq!(unobserved(with_work(recorded("nvtx:step", &TWO))), [(5_000, 50_000)]);
    let profiler = TWO.map(|(on, _, at)| (on, RangeState::PROFILER, at));
    assert_eq!(unobserved(with_work(recorded("profiler", &profiler))), [(5_000, 50_000)]);
    // All of it, or one stretch of it, has nothing between.
    assert_eq!(unobserved(with_work(recorded("", &[]))), []);
    assert_eq!(unobserved(with_work(recorded("", &[(1, RangeState::TIMER, 1_000), (0, RangeState::TIMER, 60_000)]))), []);
    assert_eq!(unobserved(with_work(recorded("nvtx:step", &TWO[..2]))), []);
}

#[test]
fn a_window_ends_with_its_last_work_and_begins_with_its_first_call() {
    // Launched at 4,900, it runs until 5,800; the other thread calls at 49,990, just before the switch is noted.
    let made = recorded("nvtx:step", &TWO).launch(7, 4_900, "k", 0).launch(8, 49_990, "k", 0);
    assert_eq!(unobserved(made), [(5_800, 49_990)]);
    // Of a switch that was lost the events are left: what they cover is known.
    let made = recorded("nvtx:step", &[TWO[0], TWO[1], (1, NVTX, 90_000)]).launch(7, 2_000, "k", 0).launch(7, 51_000, "k", 0);
    assert_eq!(unobserved(made), [(5_000, 51_000)]);
}

#[test]
fn a_process_that_was_recorded_throughout_leaves_nothing_between() {
    let windows = recorded("nvtx:step", &TWO).launch(7, 2_000, "k", 0).launch(7, 51_000, "k", 0).end();
    let throughout = Made::new(2).process(None).launch(9, 20_000, "k", 0).end();
    let imported = read(&[windows, throughout].concat());
    assert!(imported.trace.unobserved.is_empty());
    assert!(problem(&imported, ProblemCode::RecordedInWindows).is_none());
}
