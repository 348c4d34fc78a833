//! What the profiler cost while it recorded, as far as it says: its own bookkeeping events, buffer flushes and the like.
//!
//! Of what CUPTI calls overhead, loading modules and functions, compiling, and waiting for room in the launch queue are the
//! program's own: they would happen without a profiler, and are not counted. Nor is the cost of recording each event, which is
//! not recorded, so the share is a lower bound of what profiling did to host time.

use longpole_trace::{Interval, IntervalSet, Ns, StrId, Trace};

/// Overhead that the program has without a profiler too, by parts of its names.
const OF_THE_PROGRAM: [&str; 3] = ["Loading", "Command Buffer Full", "Compiler"];

/// Whether what the profiler calls overhead is its own bookkeeping.
pub(crate) fn is_profilers_own(name: &str) -> bool {
    !OF_THE_PROGRAM.iter().any(|part| name.contains(part))
}

/// Whether it is a wait for room in the launch queue.
pub(crate) fn is_full_queue(name: &str) -> bool {
    name.contains("Command Buffer Full")
}

/// When the profiler did its own bookkeeping. Such events name neither thread nor rank: with several ranks nobody knows whose they are, and
/// there are none.
pub(crate) fn profiler_intervals(trace: &Trace) -> IntervalSet {
    let overheads = &trace.overheads;
    if trace.ranks.len() > 1 {
        return IntervalSet::default();
    }
    let own = (0..overheads.len()).filter(|&row| is_profilers_own(trace.strings.get(overheads.name[row])));
    IntervalSet::from_unsorted(own.map(|row| Interval::new(overheads.start[row], overheads.dur[row])).collect())
}

/// The profiler's bookkeeping inside the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProfilerOverhead {
    /// Bookkeeping events that reach into the window.
    pub count: u64,
    /// Their union inside the window.
    pub busy_ns: Ns,
    /// Length of the window, without the time in which nothing was recorded.
    pub wall_ns: Ns,
    /// What the longest of them did.
    pub longest: StrId,
}

/// The bookkeeping inside the window of a trace; `None` if there was none.
pub fn profiler_overhead(trace: &Trace) -> Option<ProfilerOverhead> {
    let (first, last) = trace.window.bounds()?;
    let overheads = &trace.overheads;
    let inside = |row: usize| {
        if !is_profilers_own(trace.strings.get(overheads.name[row])) {
            return None;
        }
        let whole = Interval::new(overheads.start[row], overheads.dur[row]);
        let clipped = Interval { start: whole.start.max(first), end: whole.end.min(last) };
        (!clipped.is_empty()).then_some((clipped, row))
    };
    let found: Vec<_> = (0..overheads.len()).filter_map(inside).collect();
    // The first of the longest, so that equal ones do not depend on anything but the file.
    let (_, longest) = found.iter().rev().max_by_key(|(interval, _)| interval.len())?;
    Some(ProfilerOverhead {
        count: found.len() as u64,
        longest: overheads.name[*longest],
        busy_ns: IntervalSet::from_unsorted(found.iter().map(|(interval, _)| *interval).collect()).total(),
        wall_ns: last - first - trace.unobserved.of_all(0..trace.ranks.len()).time_within(Interval { start: first, end: last }),
    })
}

#[cfg(test)]
mod tests {
    use longpole_trace::Overhead;

    use super::*;
    use crate::sample::Sample;

    fn overhead(list: &[(&str, i64, i64)]) -> Option<(u64, i64, i64, String)> {
        let mut sample = Sample::new();
        sample.op("aten::mm", 100, 900);
        for &(name, start, dur) in list {
            let name = sample.builder.trace_mut().strings.intern(name);
            sample.builder.push_overhead(Overhead { name, start: Ns(start), dur: Ns(dur) });
        }
        let trace = sample.finish();
        profiler_overhead(&trace).map(|o| (o.count, o.busy_ns.get(), o.wall_ns.get(), trace.strings.get(o.longest).to_owned()))
    }

    #[test]
    fn bookkeeping_inside_the_window_is_united() {
        let found =
            overhead(&[("Buffer Request", 50, 100), ("Flush", 140, 60), ("Flush", 500, 100), ("Late", 990, 500), ("After", 2_000, 9)]);
        // 100..150 and 140..200 share 10 ns; the last but one is cut at 1000.
        assert_eq!(found, Some((4, 100 + 100 + 10, 900, "Flush".to_owned())));
    }

    #[test]
    fn what_is_outside_the_window_or_not_the_profilers_does_not_count() {
        assert_eq!(overhead(&[("Before", 0, 100), ("After", 1_000, 50), ("Nothing", 300, 0)]), None);
        let of_the_program = ["Runtime Triggered Module Loading", "Lazy Function Loading", "Command Buffer Full", "Driver Compiler"];
        assert_eq!(overhead(&of_the_program.map(|name| (name, 200, 100))), None);
        assert_eq!(overhead(&[]), None);
    }
}
