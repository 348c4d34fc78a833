//! When a process was recorded: the windows that its recorder was switched on for.
//!
//! With `--range` the recorder notes each time that it is switched on or off, and why. Without, there is one window, and nothing between.

use longpole_recording::RangeState;
use longpole_trace::{Interval, Ns};

use super::rows::Origin;

/// The windows of one process, in order. `None` where it was not asked to record ranges: then it was recorded from its first event to its last.
pub(super) fn windows(range: Option<&[u8]>, is_delayed: bool, mut switches: Vec<RangeState>, origin: &Origin) -> Option<Vec<Interval>> {
    // As the recorder reads it: what is none of these records everything.
    let is_of_ranges = range.is_some_and(|range| range == b"profiler" || range.starts_with(b"nvtx:") && range.len() > b"nvtx:".len());
    if !is_of_ranges {
        return None;
    }
    switches.sort_by_key(|switch| switch.time);
    let (mut in_time, mut open, mut since) = (!is_delayed, 0_u64, None);
    let mut windows = Vec::new();
    for switch in switches {
        let on = switch.on != 0;
        match switch.cause {
            RangeState::PROFILER => open = u64::from(on),
            RangeState::NVTX if on => open += 1,
            RangeState::NVTX => open = open.saturating_sub(1),
            RangeState::TIMER => in_time = on,
            _ => {}
        }
        let at = Ns(origin.time(switch.time));
        match (in_time && open > 0, since) {
            (true, None) => since = Some(at),
            (false, Some(start)) => {
                windows.push(Interval { start, end: at });
                since = None;
            }
            _ => {}
        }
    }
    // The last one may have been open when the process ended.
    windows.extend(since.map(|start| Interval { start, end: Ns::MAX }));
    Some(windows)
}

#[cfg(test)]
mod tests {
    use longpole_recording::StringId;

    use super::*;
    use crate::nsys::feed::ProcessKey;

    fn found(range: &str, is_delayed: bool, switches: &[(u8, u8, u64)]) -> Option<Vec<(i64, i64)>> {
        let origin = Origin { process: ProcessKey::new(1), generation: 0, number: 0, shift: 1_000 };
        let switch = |&(on, cause, time): &(u8, u8, u64)| RangeState { on, cause, time, tid: 1, name: StringId::NONE };
        let found = windows(Some(range.as_bytes()), is_delayed, switches.iter().map(switch).collect(), &origin)?;
        Some(found.into_iter().map(|window| (window.start.get() - 1_000, window.end.get().saturating_sub(1_000))).collect())
    }

    const NVTX: u8 = RangeState::NVTX;
    const TIMER: u8 = RangeState::TIMER;
    const PROFILER: u8 = RangeState::PROFILER;

    #[test]
    fn ranges_that_overlap_are_one_window() {
        let nested = [(1, NVTX, 10), (1, NVTX, 15), (0, NVTX, 20), (0, NVTX, 30), (1, NVTX, 50), (0, NVTX, 60)];
        assert_eq!(found("nvtx:step", false, &nested), Some(vec![(10, 30), (50, 60)]));
        // Threads may tell it out of order.
        let mut shuffled = nested;
        shuffled.swap(1, 4);
        assert_eq!(found("nvtx:step", false, &shuffled), Some(vec![(10, 30), (50, 60)]));
        let profiler = [(1, PROFILER, 10), (1, PROFILER, 15), (0, PROFILER, 20), (1, PROFILER, 50)];
        assert_eq!(found("profiler", false, &profiler), Some(vec![(10, 20), (50, i64::MAX - 1_000)]));
    }

    #[test]
    fn ranges_count_while_the_time_asked_for_runs() {
        let delayed = [(1, NVTX, 10), (1, TIMER, 15), (0, NVTX, 20), (1, NVTX, 30), (0, TIMER, 35), (0, NVTX, 40)];
        assert_eq!(found("nvtx:step", true, &delayed), Some(vec![(15, 20), (30, 35)]));
        assert_eq!(found("", true, &[(1, TIMER, 15), (0, TIMER, 35)]), None);
        assert_eq!(found("all", false, &[(1, NVTX, 15), (0, NVTX, 35), (1, NVTX, 55)]), None);
    }
}
