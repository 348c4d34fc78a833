//! How much goes into a page, so that none is too large to open and none is much smaller than it may be.

use longpole_analysis::OverviewOptions;
use longpole_report::{HtmlCuts, HtmlLimits};

use crate::exit::Failure;

/// Larger pages are made again with less in them.
const MOST_BYTES: usize = 14_000_000;
/// A page that was made smaller is near enough to the limit with this size; one that is smaller is made again with more in it.
const NEAR_BYTES: usize = 12_000_000;
/// What pages are aimed at when one was too large: below the limit, since what an estimate is off goes both ways.
const WANTED_BYTES: usize = 13_000_000;
/// About what a page has in any case: script, style and the text for readers without scripts.
const FIXED_BYTES: usize = 400_000;
/// How often a page is made.
const MOST_TRIES: u32 = 9;
/// How often it is made once one fits.
const MOST_MORE: u32 = 3;
/// The share that stands for everything that may be in a page.
const WHOLE: u64 = 1 << 20;
/// The least share, which is what a page has at the last try in any case.
const LEAST: u64 = WHOLE >> 14;

/// What may be in a page.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    pub(super) limits: HtmlLimits,
    pub(super) overview: OverviewOptions,
    /// Bytes of names in the timeline.
    pub(super) names_bytes: usize,
}

impl Room {
    /// A share of everything; of what a page is of no use without, a little in any case.
    fn of_share(share: u64) -> Self {
        let less = |most: usize| (most as u64 * share / WHOLE) as usize;
        let overview = OverviewOptions::default();
        Self {
            limits: HtmlLimits { rows: less(5_000).max(20), chars: less(4_000).max(100), bytes: less(16_000_000) },
            overview: OverviewOptions {
                events: less(overview.events),
                blocks: less(overview.blocks),
                threads: less(overview.threads).max(4),
                streams: less(overview.streams).max(4),
                icicle_nodes: less(overview.icicle_nodes).max(100),
                curve_slices: less(overview.curve_slices).max(100),
                moments: less(overview.moments).max(10),
            },
            names_bytes: less(4_000_000),
        }
    }
}

/// Makes a page with all that may be in it; when that is too large, with the share of everything that brings it near the limit.
pub(super) fn fitting(mut make: impl FnMut(&Room) -> Result<(Vec<u8>, HtmlCuts), Failure>) -> Result<(Vec<u8>, HtmlCuts), Failure> {
    let mut search = Search::default();
    let mut best: Option<(Vec<u8>, HtmlCuts)> = None;
    while let Some(share) = search.next() {
        let (page, cuts) = make(&Room::of_share(share))?;
        search.saw(share, page.len());
        if page.len() <= MOST_BYTES && best.as_ref().is_none_or(|(known, _)| page.len() > known.len()) {
            best = Some((page, cuts));
        }
    }
    best.ok_or_else(|| Failure::Input("the page would be too large to open, however little were in it".to_owned()))
}

/// The search for the largest share that fits. Sizes follow shares roughly: a limit that nothing reaches has no effect until it is low enough.
#[derive(Debug, Default)]
struct Search {
    tries: u32,
    /// Tries since the first page that fits.
    more: u32,
    /// The largest share that fits, with the size of its page.
    fits: Option<(u64, usize)>,
    /// The smallest one that does not.
    too_large: Option<(u64, usize)>,
}

impl Search {
    /// The share to try; `None` when the best of those tried is good enough, or the last.
    fn next(&self) -> Option<u64> {
        match (self.fits, self.too_large) {
            (None, None) => Some(WHOLE),
            (None, Some((share, _))) if self.tries >= MOST_TRIES || share <= LEAST => None,
            (None, Some((share, size))) => {
                // In proportion; and a half, a quarter ... at most when that did not do.
                let in_proportion = scaled(share, WANTED_BYTES - FIXED_BYTES, size.saturating_sub(FIXED_BYTES).max(1));
                let is_last = self.tries + 1 >= MOST_TRIES;
                Some(if is_last { LEAST } else { in_proportion.min(share >> (self.tries - 1)).max(LEAST) })
            }
            // Everything is in it.
            (Some(_), None) => None,
            (Some((low, size)), Some((high, _)))
                if size >= NEAR_BYTES || self.tries >= MOST_TRIES || self.more > MOST_MORE || high - low <= low / 16 + 1 =>
            {
                None
            }
            (Some((low, small)), Some((high, large))) => {
                let between = scaled(high - low, WANTED_BYTES.saturating_sub(small), large - small);
                let margin = (high - low) / 8;
                Some(low + between.clamp(margin.max(1), high - low - margin.max(1)))
            }
        }
    }

    fn saw(&mut self, share: u64, size: usize) {
        self.tries += 1;
        if size <= MOST_BYTES {
            self.fits = Some(self.fits.filter(|&(known, _)| known > share).unwrap_or((share, size)));
        } else {
            self.too_large = Some(self.too_large.filter(|&(known, _)| known < share).unwrap_or((share, size)));
        }
        self.more += u32::from(self.fits.is_some());
    }
}

/// `value * of / whole`, with sizes as they may be.
fn scaled(value: u64, of: usize, whole: usize) -> u64 {
    u64::try_from(u128::from(value) * of as u128 / whole as u128).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the search ends with where pages are as large as `size` says: the size of the page, and how many were made.
    fn found(size: impl Fn(u64) -> usize) -> (Option<usize>, u32) {
        let mut search = Search::default();
        let (mut best, mut made) = (None, 0);
        while let Some(share) = search.next() {
            assert!((LEAST..=WHOLE).contains(&share), "{share}");
            made += 1;
            search.saw(share, size(share));
            best = best.max(Some(size(share)).filter(|&size| size <= MOST_BYTES));
        }
        (best, made)
    }

    /// A size that grows with the share.
    fn with_whole(bytes: usize) -> impl Fn(u64) -> usize {
        move |share| FIXED_BYTES + scaled(share, bytes, WHOLE as usize) as usize
    }

    #[test]
    fn what_fits_is_made_once() {
        assert_eq!(found(|_| 3), (Some(3), 1));
        assert_eq!(found(|_| MOST_BYTES), (Some(MOST_BYTES), 1));
    }

    #[test]
    fn a_page_that_is_too_large_is_cut_to_about_the_limit() {
        for whole in [14_000_000, 15_000_000, 20_000_000, 50_000_000, 400_000_000, 10_000_000_000] {
            let (best, made) = found(with_whole(whole));
            assert!(best.is_some_and(|best| best >= NEAR_BYTES), "{whole}: {best:?}");
            assert!(made <= 3, "{whole}: {made} pages");
        }
    }

    #[test]
    fn limits_that_nothing_reaches_do_not_end_the_search_early() {
        // Lists of 500 elements are cut once a tenth of 5,000 is less; up to there nothing changes.
        for reached in [WHOLE / 2, WHOLE / 10, WHOLE / 300, WHOLE / 5_000] {
            let (best, made) = found(|share| with_whole(40_000_000)(scaled(share.min(reached), WHOLE as usize, reached as usize)));
            assert!(best.is_some_and(|best| best > MOST_BYTES / 4) && made <= MOST_TRIES, "{reached}: {best:?} in {made}");
        }
    }

    #[test]
    fn sizes_that_jump_or_fall_end_the_search_too() {
        let steps = |share: u64| if share > WHOLE / 7 { 30_000_000 } else { 5_000_000 };
        assert_eq!(found(steps).0, Some(5_000_000));
        assert!(found(steps).1 <= MOST_TRIES);
        // Less room and a larger page.
        assert!(found(|share| 60_000_000 - (share * 30) as usize).1 <= MOST_TRIES);
        assert_eq!(found(|_| usize::MAX).0, None);
        // Only the least fits.
        assert_eq!(found(|share| if share == LEAST { 1_000 } else { 20_000_000 }).0, Some(1_000));
    }

    #[test]
    fn a_smaller_share_has_no_more_of_anything() {
        let mut before = Room::of_share(WHOLE);
        assert_eq!((before.overview, before.limits.rows), (OverviewOptions::default(), 5_000));
        for share in (0..20).map(|halvings| WHOLE >> halvings) {
            let room = Room::of_share(share);
            let figures = |room: &Room| {
                let HtmlLimits { rows, chars, bytes } = room.limits;
                let OverviewOptions { events, blocks, threads, streams, icicle_nodes, curve_slices, moments } = room.overview;
                [rows, chars, bytes, events, blocks, threads, streams, icicle_nodes, curve_slices, moments, room.names_bytes]
            };
            assert!(figures(&room).iter().zip(figures(&before)).all(|(now, before)| *now <= before), "{share}");
            before = room;
        }
    }
}
