//! How much goes into a page, so that none is too large to open.

use longpole_analysis::OverviewOptions;
use longpole_report::{HtmlCuts, HtmlLimits};

use crate::exit::Failure;

/// Larger pages are made again with less in them.
const MOST_BYTES: usize = 14_000_000;
/// How often a page is made smaller; each time of every list there is a quarter.
const MOST_TRIES: u32 = 8;

/// What may be in a page.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    pub(super) limits: HtmlLimits,
    pub(super) overview: OverviewOptions,
    /// Bytes of names in the timeline.
    pub(super) names_bytes: usize,
}

impl Room {
    fn of_try(number: u32) -> Self {
        let less = |most: usize| most >> (2 * number);
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

/// Makes a page with all that may be in it, and again with less as long as it is too large.
pub(super) fn fitting(mut make: impl FnMut(&Room) -> Result<(Vec<u8>, HtmlCuts), Failure>) -> Result<(Vec<u8>, HtmlCuts), Failure> {
    for number in 0..MOST_TRIES {
        let (page, cuts) = make(&Room::of_try(number))?;
        if page.len() <= MOST_BYTES {
            return Ok((page, cuts));
        }
    }
    Err(Failure::Input("the page would be too large to open, however little were in it".to_owned()))
}
