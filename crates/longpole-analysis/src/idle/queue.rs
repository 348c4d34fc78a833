//! How much work was queued: launched, and not started.
//!
//! An activity is in the queue of its device from the start of its launch call until it starts. Between two changes of the queue, of
//! the device, or of the slice of time, all stays the same, so one pass over the merged times adds everything up. Time in which nothing was
//! recorded is passed over: slices are equally long without it.

use longpole_trace::{ActivityId, Interval, Ns};

use super::gaps::{DeviceGaps, Gap};
use super::types::{DeviceIdle, Queue, QueueSample};
use crate::index::TraceIndex;

/// The queue of one device.
#[derive(Debug)]
pub(super) struct DeviceQueue {
    pub(super) queue: Queue,
    pub(super) samples: Vec<QueueSample>,
    /// Sum over time of activities queued, in activity-nanoseconds.
    pub(super) depth_ns: i128,
    /// By gap of the device: how much of it the queue was empty.
    pub(super) empty: Vec<Ns>,
}

/// A slice of the window, in the making.
#[derive(Clone, Copy, Debug, Default)]
struct Slice {
    depth_ns: i128,
    max: u64,
    empty: Ns,
}

/// Goes through a device's window.
pub(super) fn of_device(index: &TraceIndex<'_>, device: &DeviceGaps, gaps: &[Gap]) -> DeviceQueue {
    let trace = index.trace();
    let (first, last) = (device.extent.start, device.extent.end);
    let (mut launches, mut starts) = (Vec::with_capacity(device.rows.len()), Vec::with_capacity(device.rows.len()));
    let mut unlaunched = 0;
    for &row in &device.rows {
        let start = trace.activities.start[row as usize];
        match index.links().call(ActivityId(row)) {
            Some(call) if trace.api_calls.start[call.index()] < start => {
                launches.push(trace.api_calls.start[call.index()]);
                starts.push(start);
            }
            Some(_) => {}
            None => unlaunched += u64::from(first <= start && start <= last),
        }
    }
    launches.sort_unstable();
    let unobserved = trace.unobserved.of_rank(trace.devices[device.device.index()].rank as usize);
    let windows: Vec<Interval> = unobserved.outside(device.extent).collect();
    let slices = slices(&windows, device.span, 2 * device.rows.len());
    let (mut launches, mut starts) = (launches.into_iter().peekable(), starts.into_iter().peekable());
    let mut empty = vec![Ns::ZERO; gaps.len()];
    let mut sums = vec![Slice::default(); slices.len()];
    let (mut depth, mut at_gap, mut at_slice, mut at_window, mut now) = (0_u64, 0, 0, 0, first);
    while now < last {
        while windows.get(at_window).is_some_and(|window| window.end <= now) {
            at_window += 1;
        }
        let Some(&window) = windows.get(at_window) else { break };
        now = now.max(window.start);
        // What starts as something else is launched makes room first; no start is before its own launch.
        while launches.next_if(|&at| at <= now).is_some() {
            depth += 1;
        }
        while starts.next_if(|&at| at <= now).is_some() {
            depth = depth.saturating_sub(1);
        }
        while gaps.get(at_gap).is_some_and(|gap| gap.end <= now) {
            at_gap += 1;
        }
        while slices[at_slice].1 <= now {
            at_slice += 1;
        }
        let gap = gaps.get(at_gap);
        let changes = [launches.peek().copied(), starts.peek().copied(), gap.map(|gap| if gap.start > now { gap.start } else { gap.end })];
        let next = changes.into_iter().flatten().fold(slices[at_slice].1.min(window.end), Ns::min);
        let sum = &mut sums[at_slice];
        sum.depth_ns += i128::from(depth) * i128::from((next - now).get());
        sum.max = sum.max.max(depth);
        if let Some(gap) = gap
            && gap.start <= now
            && depth == 0
            && gap.call().is_some()
        {
            sum.empty += next - now;
            empty[at_gap] += next - now;
        }
        now = next;
    }
    let samples = slices.iter().zip(&sums).map(|(&(start, end), sum)| QueueSample {
        start,
        end,
        mean_depth: sum.depth_ns as f64 / ((end - start) - unobserved.time_within(Interval { start, end })).get() as f64,
        max_depth: sum.max,
        empty_ns: sum.empty,
    });
    let depth_ns = sums.iter().map(|sum| sum.depth_ns).sum();
    let queue = Queue {
        window_ns: device.span,
        empty_ns: sums.iter().map(|sum| sum.empty).sum(),
        mean_depth: mean(depth_ns, device.span),
        max_depth: sums.iter().map(|sum| sum.max).max().unwrap_or(0),
        unlaunched,
    };
    DeviceQueue { queue, samples: samples.collect(), depth_ns, empty }
}

/// Activity-nanoseconds over a window.
pub(super) fn mean(depth_ns: i128, window: Ns) -> Option<f64> {
    (window > Ns::ZERO).then(|| depth_ns as f64 / window.get() as f64)
}

/// Slices of equal length, to the nanosecond, of the time in some windows, which is `length` in all; at most `most` of them, so that a device with
/// little work costs little. A slice that is part of two windows reaches from the one into the other.
fn slices(windows: &[Interval], length: Ns, most: usize) -> Vec<(Ns, Ns)> {
    let length = i128::from(length.get());
    let count = length.clamp(0, DeviceIdle::SAMPLES.min(most) as i128);
    let (mut at_window, mut before) = (0, 0_i128);
    // The end of a slice that is `passed` into the windows: inside one, or where it ends.
    let mut edge = |passed: i128| -> Option<Ns> {
        while at_window + 1 < windows.len() && before + i128::from(windows[at_window].len().get()) < passed {
            before += i128::from(windows[at_window].len().get());
            at_window += 1;
        }
        Some(Ns((i128::from(windows.get(at_window)?.start.get()) + passed - before) as i64))
    };
    let mut start = windows.first().map_or(Ns::ZERO, |window| window.start);
    let ends = (1..=count).filter_map(|at| edge(length * at / count.max(1)));
    ends.map(|end| (std::mem::replace(&mut start, end), end)).collect()
}
