//! A whole recording to look at: what stands on which lane, thinned out so that its size does not follow the recording's.
//!
//! An [`Overview`] has a lane a device for its steps and one for its gaps by cause, a lane a stream, and up to three a host thread (ranges,
//! operators, calls). Of each lane it has summaries (`levels`), and single events: all of them where they fit, else those of windows that
//! show something (`windows`). Beside that a tree of ranges and operators over host and device time (`icicle`), queue depth and memory
//! over time (`curves`), and where to look for what the first pass names (`moments`).
//!
//! Nothing is left out of sums: the blocks of each level add up to the lane, and the tree to all device work of the scope. Every pass is
//! linear in events but for sorting.

mod curves;
mod gather;
mod icicle;
mod keep;
mod levels;
mod moments;
mod rows;
mod types;
mod windows;

#[cfg(test)]
mod tests;

use longpole_trace::{Interval, Ns};
use rayon::prelude::*;

use crate::idle::{IdleStretches, IdleTable};
use crate::index::TraceIndex;
use crate::scope::Scope;
use crate::steps::StepTable;
use crate::triage::Triage;
pub use types::{
    Block, Curve, CurveKind, EventName, EventOrigin, IcicleKind, IcicleNode, LaneKind, LanePlace, Level, Moment, MomentSubject, Overview,
    OverviewEvent, OverviewLane, OverviewOptions,
};

/// What an overview shows that was worked out already, all of the same scope.
#[derive(Clone, Copy, Debug)]
pub struct OverviewSources<'a> {
    /// The first pass, for what it names.
    pub triage: &'a Triage,
    /// The steps.
    pub steps: &'a StepTable,
    /// Idle time.
    pub idle: &'a IdleTable,
    /// Its stretches.
    pub stretches: &'a IdleStretches,
}

/// An overview of a scope.
pub fn overview(index: &TraceIndex<'_>, scope: &Scope, sources: &OverviewSources<'_>, options: &OverviewOptions) -> Overview {
    // Both are there before, so that no part waits for another inside.
    index.links();
    let (timeline, (icicle, curves)) = rayon::join(
        || timeline(index, scope, sources, options),
        || rayon::join(|| icicle::icicle(index, scope, options), || curves::curves(index, scope, options)),
    );
    let (icicle, icicle_total) = icicle;
    Overview { icicle, icicle_total, curves, ..timeline }
}

/// The lanes of a scope alone, with the events that [`overview`] would keep of them: no tree, no curves, and no moments.
pub fn overview_lanes(index: &TraceIndex<'_>, scope: &Scope, sources: &OverviewSources<'_>, options: &OverviewOptions) -> Overview {
    index.links();
    Overview { moments: Vec::new(), moments_total: 0, ..timeline(index, scope, sources, options) }
}

/// All but the tree and the curves.
fn timeline(index: &TraceIndex<'_>, scope: &Scope, sources: &OverviewSources<'_>, options: &OverviewOptions) -> Overview {
    let gathered = gather::gather(index, scope, sources, options);
    let view = gather::View { index, sources };
    let window = window(index, scope, &view, &gathered.lanes);
    let events_total: u64 = gathered.lanes.iter().map(|lane| lane.len() as u64).sum();
    let ((spots, moments_total), kept) = rayon::join(
        || moments::spots(index, scope, sources, options),
        || {
            let shares = levels::shares(&gathered.lanes, options.blocks);
            gathered
                .lanes
                .par_iter()
                .zip(shares)
                .map_init(levels::Scratch::default, |scratch, (lane, share)| levels::of_lane(&view, lane, window, share, scratch))
                .collect::<Vec<_>>()
        },
    );
    let chosen = windows::choose(&view, &gathered.lanes, window, &spots, options.events);
    let lanes = keep::lanes(&view, &gathered.lanes, &chosen, kept, window);
    let moments = moments::placed(&view, spots, &lanes);
    Overview {
        window,
        lanes,
        threads_left_out: gathered.threads_left_out,
        streams_left_out: gathered.streams_left_out,
        events_total,
        moments,
        moments_total,
        icicle: Vec::new(),
        icicle_total: 0,
        curves: Vec::new(),
    }
}

/// First to last event of the scope, and all that the lanes hold.
fn window(index: &TraceIndex<'_>, scope: &Scope, view: &gather::View<'_, '_>, lanes: &[gather::Lane]) -> Interval {
    let whole = index.trace().window.bounds().map(|(start, end)| Interval { start, end });
    // The whole trace holds all there is.
    if let Some(whole) = whole.filter(|_| scope.is_whole()) {
        return whole;
    }
    let mut window = scope.intervals(index).extent();
    for lane in lanes {
        let mut events = (0..lane.len()).map(|at| view.times(lane, at));
        // Lanes are in order of start.
        let Some((start, first_end)) = events.next() else { continue };
        let end = events.map(|(_, end)| end).fold(first_end, Ns::max);
        let known = window.get_or_insert(Interval { start, end });
        known.start = known.start.min(start);
        known.end = known.end.max(end);
    }
    window.unwrap_or(Interval { start: Ns::ZERO, end: Ns::ZERO })
}
