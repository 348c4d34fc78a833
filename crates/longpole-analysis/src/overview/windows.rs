//! In which windows every event is kept, where not all fit: whole steps, what the first pass names, the begin and the end.

use longpole_trace::{Interval, IntervalSet, Ns};

use super::gather::{Lane, View};
use super::moments::Spot;
use super::types::EventOrigin;
use crate::index::order::end_of;

/// Lanes with no more events are kept whole, as long as they take no more than a quarter of the room.
const SMALL_LANE: usize = 1_024;
/// Groups of steps of which some are kept, those with most device time.
const GROUPS: usize = 12;
/// Steps after the typical one that are kept while there is room.
const NEXT_STEPS: usize = 16;
/// A window that is too large is halved so often.
const HALVINGS: u32 = 24;
/// Spots that get a window.
const SPOTS: usize = 160;

/// What is kept whole.
#[derive(Debug, Default)]
pub(super) struct Chosen {
    /// By lane: all of it.
    pub(super) whole: Vec<bool>,
    /// Of the other lanes of devices and streams.
    pub(super) device: IntervalSet,
    /// Of the other lanes of threads: the same, and where the device work in them was launched.
    pub(super) host: IntervalSet,
}

/// Which part of a window stays when it is halved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keep {
    Start,
    Middle,
    End,
}

/// Chooses windows that hold about `room` events at most.
pub(super) fn choose(view: &View<'_, '_>, lanes: &[Lane], window: Interval, spots: &[Spot], room: usize) -> Chosen {
    let total: usize = lanes.iter().map(Lane::len).sum();
    if total <= room {
        return Chosen { whole: vec![true; lanes.len()], ..Chosen::default() };
    }
    let mut whole = vec![false; lanes.len()];
    let mut small: Vec<(usize, usize)> =
        lanes.iter().enumerate().map(|(at, lane)| (lane.len(), at)).filter(|&(size, _)| size <= SMALL_LANE).collect();
    small.sort_unstable();
    let mut used = 0;
    for (size, at) in small {
        if used + size > room / 4 {
            break;
        }
        (used, whole[at]) = (used + size, true);
    }
    let mut chooser = Chooser { view, lanes, window, left: room - used, chosen: Chosen { whole, ..Chosen::default() } };
    chooser.steps(room);
    for spot in spots.iter().take(SPOTS) {
        let length = (spot.end - spot.start).max(Ns::ZERO);
        let pad = Ns((length.get() / 4).max(20_000));
        chooser.add(Interval { start: spot.start - pad, end: spot.end + pad }, room / 50, Keep::Middle);
    }
    chooser.add(window, room / 16, Keep::Start);
    chooser.add(window, room / 16, Keep::End);
    chooser.more_steps();
    if view.sources.steps.groups.is_empty() {
        let all = chooser.left;
        chooser.add(window, all, Keep::Middle);
    }
    chooser.chosen
}

struct Chooser<'a, 't> {
    view: &'a View<'a, 't>,
    lanes: &'a [Lane],
    window: Interval,
    /// Events that may still be kept.
    left: usize,
    chosen: Chosen,
}

impl Chooser<'_, '_> {
    /// Of each group the slowest step and one of median length.
    fn steps(&mut self, room: usize) {
        let table = self.view.sources.steps;
        let mut groups: Vec<_> = table.groups.iter().filter(|group| !group.steps.is_empty()).collect();
        groups.sort_by_key(|group| std::cmp::Reverse(group.total_busy_ns));
        groups.truncate(GROUPS);
        let limit = room / 2 / (2 * groups.len()).max(1);
        for group in groups {
            let mut by_span: Vec<usize> = (0..group.steps.len()).collect();
            by_span.sort_by_key(|&at| (group.steps[at].span_ns(), at));
            for at in [by_span[by_span.len() - 1], by_span[by_span.len() / 2], 0] {
                self.step(&group.steps[at], limit);
            }
        }
    }

    fn step(&mut self, step: &crate::steps::Step, limit: usize) {
        let pad = Ns(step.span_ns().get() / 50);
        self.add(Interval { start: step.start - pad, end: step.end + pad }, limit, Keep::Start);
    }

    /// The steps after the typical one of the largest group.
    fn more_steps(&mut self) {
        let table = self.view.sources.steps;
        let Some(group) = table.groups.iter().max_by_key(|group| group.total_busy_ns) else { return };
        let mut by_span: Vec<usize> = (0..group.steps.len()).collect();
        by_span.sort_by_key(|&at| (group.steps[at].span_ns(), at));
        let Some(&typical) = by_span.get(by_span.len() / 2) else { return };
        for step in group.steps.iter().skip(typical + 1).take(NEXT_STEPS) {
            self.step(step, self.left);
        }
    }

    /// Adds a window, or the largest half, quarter ... of it that costs no more than `limit`.
    fn add(&mut self, mut wanted: Interval, limit: usize, keep: Keep) {
        let limit = limit.min(self.left);
        wanted.start = wanted.start.max(self.window.start);
        wanted.end = wanted.end.min(self.window.end);
        for _ in 0..HALVINGS {
            if wanted.is_empty() {
                return;
            }
            let device = IntervalSet::from_unsorted(vec![wanted]).difference(&self.chosen.device);
            let cost = self.cost(&device, false);
            if cost <= limit {
                // Of work that was launched long before, the launches come along if there is room for them.
                let of_launches = self.launches(wanted);
                let choices = [vec![wanted].into_iter().chain(of_launches).collect(), vec![wanted]];
                for host in choices {
                    let host = IntervalSet::from_unsorted(host).difference(&self.chosen.host);
                    let cost = cost + self.cost(&host, true);
                    if cost <= limit {
                        self.left -= cost;
                        self.chosen.device = self.chosen.device.union(&device);
                        self.chosen.host = self.chosen.host.union(&host);
                        return;
                    }
                }
            }
            let half = Ns(wanted.len().get() / 2);
            match keep {
                Keep::Start => wanted.end = wanted.start + half,
                Keep::End => wanted.start = wanted.end - half,
                Keep::Middle => {
                    wanted.start += Ns(half.get() / 2);
                    wanted.end = wanted.start + half;
                }
            }
        }
    }

    /// Events that start in windows, of the lanes of one side that are not kept whole.
    fn cost(&self, windows: &IntervalSet, is_host: bool) -> usize {
        let lanes = self.lanes.iter().zip(&self.chosen.whole).filter(|(lane, whole)| !**whole && lane.is_host() == is_host);
        lanes
            .map(|(lane, _)| {
                let windows = windows.intervals().iter();
                windows.map(|window| self.positions(lane, *window).len()).sum::<usize>()
            })
            .sum()
    }

    fn positions(&self, lane: &Lane, window: Interval) -> std::ops::Range<usize> {
        self.view.first_from(lane, window.start)..self.view.first_from(lane, window.end)
    }

    /// From the first to the last launch of the device work that starts in a window.
    fn launches(&self, window: Interval) -> Option<Interval> {
        let (links, calls) = (self.view.index.links(), &self.view.index.trace().api_calls);
        let mut extent: Option<Interval> = None;
        for lane in self.lanes.iter().filter(|lane| !lane.is_host()) {
            for at in self.positions(lane, window) {
                let EventOrigin::Activity(activity) = View::origin(lane, at) else { break };
                let Some(call) = links.call(activity) else { continue };
                let (start, end) = (calls.start[call.index()], end_of(calls.start[call.index()], calls.dur[call.index()]));
                let known = extent.get_or_insert(Interval { start, end });
                known.start = known.start.min(start);
                known.end = known.end.max(end);
            }
        }
        extent
    }
}
