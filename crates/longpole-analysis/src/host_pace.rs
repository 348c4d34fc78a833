//! Whether the host holds the clock: how long devices idle with their next work not launched, once the run is warm.

use longpole_trace::{IntervalSet, Ns};

use crate::index::TraceIndex;
use crate::pace::{Pace, starved_and_span};
use crate::profiler_overhead::profiler_intervals;
use crate::scope::Scope;
use crate::smells::{CAPTURE_SHARE, FEW_ACTIVITIES, LAUNCHES_TO_JUDGE, STARVED_LISTED};
use crate::step_choice::Steps;

/// What host-bound is judged by. A cold first step is left out: it says nothing of the steps that a run consists of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HostPace {
    /// Time in which devices idle and their next work has not been launched, summed over devices.
    pub(crate) starved: Ns,
    /// First to last device work, summed over devices.
    pub(crate) span: Ns,
    /// The part of the span in which the devices worked.
    pub(crate) busy: Ns,
    /// Whether a cold first step was left out.
    pub(crate) is_without_first: bool,
}

impl HostPace {
    pub(crate) fn of(index: &TraceIndex<'_>, scope: &Scope, pace: &Pace, steps: Option<&Steps>, profiler: &IntervalSet) -> Self {
        let warm_up = steps.map(|steps| steps.warm_up(profiler)).unwrap_or_default();
        let cold =
            |rank: usize| IntervalSet::from_unsorted(warm_up.iter().filter(|(of, _)| *of == rank).map(|(_, interval)| *interval).collect());
        let mut sum = Self { is_without_first: !warm_up.is_empty(), ..Self::default() };
        for device in &pace.devices {
            let span = device.span.difference(&cold(device.rank));
            sum.span += span.total();
            sum.busy += span.total() - pace.idle_within(device, &span);
        }
        sum.starved = if warm_up.is_empty() { pace.starved_ns() } else { Pace::starved_outside(index, scope, cold) };
        sum
    }
}

/// A window in which the devices wait for the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostBoundWindow {
    /// The range that stands for a step, if one repeats here.
    pub step: Option<String>,
}

/// Whether the host holds the clock in a scope, as the smell `host_bound` has it: then host times, and what is said of idle devices, are
/// also the profiler's doing. `None` as well where that cannot be judged: without operators, with a handful of device work, while a graph
/// is captured.
pub fn host_bound_window(index: &TraceIndex<'_>, scope: &Scope) -> Option<HostBoundWindow> {
    let trace = index.trace();
    let ops = &trace.host_ops;
    let links = index.links().counts();
    let unanswered = links.launches_without_activity + links.captured_launches;
    let is_capture = links.launches >= LAUNCHES_TO_JUDGE.count() && unanswered as f64 >= links.launches as f64 * CAPTURE_SHARE.value;
    if (trace.activities.len() as u64) < FEW_ACTIVITIES.count() || is_capture {
        return None;
    }
    (0..ops.len()).find(|&row| scope.includes_host(trace, ops.thread[row], ops.start[row]))?;
    if scope.is_whole() {
        // Every command asks this of every trace, so that the common case is made cheap.
        let steps = Steps::find(index, scope);
        let warm_up = steps.as_ref().map(|steps| steps.warm_up(&profiler_intervals(trace))).unwrap_or_default();
        let cold = |rank| IntervalSet::from_unsorted(warm_up.iter().filter(|(of, _)| *of == rank).map(|(_, interval)| *interval).collect());
        if let Some((starved, span)) = starved_and_span(index, cold) {
            return STARVED_LISTED.is_met(starved, span).then(|| HostBoundWindow { step: steps.map(|steps| steps.name) });
        }
    }
    let pace = Pace::of(index, scope);
    if pace.activities < FEW_ACTIVITIES.count() {
        return None;
    }
    let steps = Steps::find(index, scope);
    let judged = HostPace::of(index, scope, &pace, steps.as_ref(), &profiler_intervals(trace));
    STARVED_LISTED.is_met(judged.starved, judged.span).then(|| HostBoundWindow { step: steps.map(|steps| steps.name) })
}
