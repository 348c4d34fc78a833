//! Trouble that only shows when the parts of a trace are put together, added to what the importer met.

use longpole_analysis::{Finding, Scope, TraceIndex, host_bound_window, profiler_overhead, short_name};
use longpole_trace::{Ns, ProblemCode, Problems};

/// Counts what did not fit when host events were nested and device work was joined to launches, what is wrong on the streams, and what the profiler cost.
/// Of the scope alone: whether the host holds the clock in it, which is partly the profiler's doing.
pub(crate) fn add(index: &TraceIndex<'_>, scope: &Scope, problems: &mut Problems) {
    let (links, streams) = (index.links().counts(), index.stream_health());
    let mut add_finding = |code, finding: &Finding, time: Option<Ns>| {
        let trace = index.trace();
        let name = || finding.example.map(|id| short_name(trace.strings.get(trace.activities.name[id.index()])));
        problems.add_many(code, finding.count, None, name);
        if let Some(time) = time {
            problems.note_time(code, time);
        }
    };
    add_finding(ProblemCode::OrphanActivity, &streams.orphans, None);
    add_finding(ProblemCode::LaunchedBeforeWindow, &streams.before_window, None);
    add_finding(ProblemCode::StreamOverlap, &streams.overlaps, Some(streams.overlaps.largest));
    add_finding(ProblemCode::ImpossibleDuration, &streams.impossible, Some(streams.impossible.largest));
    problems.add_many(ProblemCode::PartialOverlap, index.tree().partial_overlaps(), None, || None);
    problems.add_many(ProblemCode::LaunchWithoutActivity, links.launches_without_activity, None, || None);
    problems.note_out_of(ProblemCode::LaunchWithoutActivity, links.launches);
    problems.add_many(ProblemCode::CapturedLaunch, links.captured_launches, None, || None);
    problems.add_many(ProblemCode::SharedCorrelation, links.chosen_by_time, None, || None);
    if links.starts_before_launch > 0 {
        problems.add_many(ProblemCode::StartBeforeLaunch, links.starts_before_launch, None, || None);
        problems.note_time(ProblemCode::StartBeforeLaunch, links.largest_skew);
    }
    if let Some(overhead) = profiler_overhead(index.trace()) {
        let longest = || Some(index.trace().strings.get(overhead.longest).to_owned());
        problems.add_many(ProblemCode::ProfilerOverhead, overhead.count, None, longest);
        problems.note_time(ProblemCode::ProfilerOverhead, overhead.busy_ns);
        problems.note_time_out_of(ProblemCode::ProfilerOverhead, overhead.wall_ns);
    }
    // Of a cut file nobody knows how long the device waited.
    let is_cut = [ProblemCode::Truncated, ProblemCode::DamagedCompression].iter().any(|&code| problems.get(code).is_some());
    if let Some(window) = (!is_cut).then(|| host_bound_window(index, scope)).flatten() {
        problems.add(ProblemCode::CpuBound, None, || None);
        if window.step.is_some() {
            problems
                .note_hint(ProblemCode::CpuBound, "time one step without a profiler, then give triage its length: --unprofiled-step-ms MS");
        }
    }
    index.trace().recorder.note_hints(problems);
}
