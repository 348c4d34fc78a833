//! Summaries of a lane, from resolutions that fill a screen with the whole window down to the finest that pays.

use longpole_trace::{Interval, Ns};

use super::gather::{Lane, View};
use super::types::{Block, Level};

/// Parts of the window that are the resolutions of levels: a screen has a few thousand columns.
const PARTS: [i64; 6] = [1 << 9, 1 << 11, 1 << 13, 1 << 15, 1 << 17, 1 << 19];
/// The same of a lane with so many rows that not even the first of those fits.
const COARSE_PARTS: [i64; 5] = [1, 1 << 2, 1 << 4, 1 << 6, 1 << 8];

/// Room for the names of a lane, kept from lane to lane.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    of_level: Vec<Vec<i64>>,
}

/// Most blocks of the finest level of each lane: by its share of events, and no lane goes without. They add up to a quarter over `blocks`.
pub(super) fn shares(lanes: &[Lane], blocks: usize) -> Vec<usize> {
    let events: usize = lanes.iter().map(Lane::len).sum();
    let least = blocks / 4 / lanes.len().max(1);
    let share = |lane: &Lane| (blocks as u128 * lane.len() as u128 / events.max(1) as u128) as usize;
    lanes.iter().map(|lane| share(lane).max(least)).collect()
}

/// Time of a lane that events cover, and its levels, finest first. The finest has at most `most` blocks, and each has fewer than four fifths of
/// the blocks of the next finer one, or of the events.
pub(super) fn of_lane(view: &View<'_, '_>, lane: &Lane, window: Interval, most: usize, scratch: &mut Scratch) -> (Ns, Vec<Level>) {
    let (busy, mut levels) = made(view, lane, &resolutions(window, &PARTS), most, scratch);
    if levels.is_empty() {
        levels = made(view, lane, &resolutions(window, &COARSE_PARTS), most, scratch).1;
        // Even the coarsest has a block a row at least.
        if levels.is_empty() {
            levels = made(view, lane, &[window.len().max(Ns(1))], usize::MAX, scratch).1;
        }
        levels.drain(..levels.len().saturating_sub(1));
    }
    let mut kept: Vec<Level> = Vec::new();
    // From fine to coarse.
    for level in levels.into_iter().rev() {
        let finer = kept.last().map_or(lane.len(), |level| level.blocks.len());
        if level.blocks.len() * 5 < finer * 4 || (kept.is_empty() && lane.len() > most) {
            kept.push(level);
        }
    }
    (busy, kept)
}

/// Parts of the window, longest first, each once.
fn resolutions(window: Interval, parts: &[i64]) -> Vec<Ns> {
    let mut lengths: Vec<Ns> = parts.iter().map(|part| Ns((window.len().get() / part).max(1))).collect();
    lengths.dedup();
    lengths
}

/// A block that may grow.
#[derive(Clone, Copy, Debug)]
struct Open {
    start: i64,
    end: i64,
    count: u64,
    busy: i64,
    first_key: u32,
}

/// A level in the making.
struct Maker<'s> {
    resolution: i64,
    open: Option<Open>,
    /// By name: what it covers of the open block.
    times: &'s mut Vec<i64>,
    /// The names that cover any of it, in order.
    touched: Vec<u32>,
    blocks: Vec<(Open, u8)>,
    most: usize,
    is_over: bool,
}

impl Maker<'_> {
    fn add(&mut self, start: i64, end: i64, own: i64, key: u32, row: u8) {
        if let Some(open) = &mut self.open
            && open.end.max(end).saturating_sub(open.start) <= self.resolution
        {
            open.end = open.end.max(end);
            open.count += 1;
            open.busy = open.busy.saturating_add(own);
        } else {
            self.close(row);
            self.open = Some(Open { start, end, count: 1, busy: own, first_key: key });
        }
        if own > 0 {
            let time = &mut self.times[key as usize];
            if *time == 0 {
                self.touched.push(key);
            }
            *time = time.saturating_add(own);
        }
    }

    /// Ends the open block; its name takes the place of the first one.
    fn close(&mut self, row: u8) {
        let Some(mut open) = self.open.take() else { return };
        let mut most = 0;
        for key in self.touched.drain(..) {
            let time = std::mem::take(&mut self.times[key as usize]);
            if time > most {
                (most, open.first_key) = (time, key);
            }
        }
        self.blocks.push((open, row));
        if self.blocks.len() > self.most {
            self.is_over = true;
            self.blocks = Vec::new();
        }
    }
}

/// The levels that do not get too large, coarsest first, and the covered time.
fn made(view: &View<'_, '_>, lane: &Lane, resolutions: &[Ns], most: usize, scratch: &mut Scratch) -> (Ns, Vec<Level>) {
    let keys = view.keys(lane);
    scratch.of_level.resize_with(resolutions.len().max(scratch.of_level.len()), Vec::new);
    // They are zero again after every block.
    scratch.of_level.iter_mut().filter(|times| times.len() < keys).for_each(|times| times.resize(keys, 0));
    let mut makers: Vec<Maker<'_>> = resolutions
        .iter()
        .zip(&mut scratch.of_level)
        .map(|(resolution, times)| Maker {
            resolution: resolution.get(),
            open: None,
            times,
            touched: Vec::new(),
            blocks: Vec::new(),
            most,
            is_over: false,
        })
        .collect();
    let mut busy = Ns::ZERO;
    let mut add_row = |row: u8, events: &mut dyn Iterator<Item = usize>| {
        let mut covered_until = i64::MIN;
        for at in events {
            let (start, end) = view.times(lane, at);
            let key = view.key(lane, at);
            let (start, end) = (start.get(), end.get());
            let own = end.saturating_sub(start.max(covered_until)).max(0);
            covered_until = covered_until.max(end);
            busy += Ns(own);
            makers.iter_mut().filter(|maker| !maker.is_over).for_each(|maker| maker.add(start, end, own, key, row));
        }
        for maker in &mut makers {
            maker.close(row);
        }
    };
    if lane.rows <= 1 {
        add_row(0, &mut (0..lane.len()));
    }
    for (row, events) in lane.by_row().into_iter().enumerate() {
        add_row(row as u8, &mut events.into_iter().map(|at| at as usize));
    }
    let levels = makers.into_iter().filter(|maker| !maker.is_over).map(|mut maker| {
        // Rows came one after the other.
        maker.blocks.sort_by_key(|(block, row)| (block.start, *row));
        let block = |(block, row): (Open, u8)| Block {
            start: Ns(block.start),
            dur: Ns(block.end.saturating_sub(block.start)),
            row: u32::from(row),
            count: block.count,
            busy: Ns(block.busy),
            name: View::name(lane, block.first_key),
        };
        Level { resolution: Ns(maker.resolution), blocks: maker.blocks.into_iter().map(block).collect() }
    });
    (busy, levels.collect())
}
