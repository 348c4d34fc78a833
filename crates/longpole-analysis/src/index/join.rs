//! Joins on numbers that producers give out: correlation numbers and external ids.
//!
//! Such numbers are unique within a process at best, and a device lane knows only its rank, so keys are (rank, number). The
//! numbers of a recording are mostly dense, which a direct table exploits; a hash map takes the rest.

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use longpole_trace::{ThreadId, Trace};

use super::NONE;

/// A direct table may have this many slots for each row before a hash map is smaller.
const SLOTS_PER_ROW: u64 = 8;

type Map<K> = HashMap<K, u32, FixedState>;

#[derive(Clone, Copy)]
struct Extent {
    rows: u64,
    min: u64,
    max: u64,
}

#[derive(Debug)]
enum RankRows {
    Direct { min: u64, rows: Vec<u32> },
    Hashed(Map<u64>),
}

/// Rows of a table by (rank, number).
#[derive(Debug)]
pub(crate) struct KeyMap {
    ranks: Vec<RankRows>,
    /// The row of the same key before a row; empty when keys are unique, as they should be.
    earlier: Map<u32>,
}

impl KeyMap {
    /// Maps rows `0..rows` by their keys.
    pub(crate) fn new(ranks: usize, rows: usize, rank_of: impl Fn(usize) -> u32, key_of: impl Fn(usize) -> Option<u64>) -> Self {
        let mut extents = vec![Extent { rows: 0, min: u64::MAX, max: 0 }; ranks];
        for row in 0..rows {
            if let Some(key) = key_of(row) {
                let extent = &mut extents[rank_of(row) as usize];
                extent.rows += 1;
                extent.min = extent.min.min(key);
                extent.max = extent.max.max(key);
            }
        }
        let mut map = Self { ranks: extents.iter().map(RankRows::for_extent).collect(), earlier: Map::default() };
        for row in 0..rows {
            if let Some(key) = key_of(row) {
                let slot = match &mut map.ranks[rank_of(row) as usize] {
                    RankRows::Direct { min, rows } => &mut rows[(key - *min) as usize],
                    RankRows::Hashed(rows) => rows.entry(key).or_insert(NONE),
                };
                let previous = std::mem::replace(slot, row as u32);
                if previous != NONE {
                    map.earlier.insert(row as u32, previous);
                }
            }
        }
        map
    }

    /// The last row with a key.
    pub(crate) fn last(&self, rank: u32, key: u64) -> Option<u32> {
        let row = match self.ranks.get(rank as usize)? {
            RankRows::Direct { min, rows } => *rows.get(usize::try_from(key.checked_sub(*min)?).ok()?)?,
            RankRows::Hashed(rows) => *rows.get(&key)?,
        };
        (row != NONE).then_some(row)
    }

    /// Whether no key has two rows.
    pub(crate) fn is_unique(&self) -> bool {
        self.earlier.is_empty()
    }

    /// The row of the same key before `row`.
    pub(crate) fn before(&self, row: u32) -> Option<u32> {
        if self.earlier.is_empty() { None } else { self.earlier.get(&row).copied() }
    }
}

impl RankRows {
    fn for_extent(extent: &Extent) -> Self {
        let slots = extent.max.wrapping_sub(extent.min).saturating_add(1);
        if extent.rows > 0 && slots / SLOTS_PER_ROW <= extent.rows + 512 {
            Self::Direct { min: extent.min, rows: vec![NONE; slots as usize] }
        } else {
            Self::Hashed(Map::with_capacity_and_hasher(extent.rows as usize, FixedState::default()))
        }
    }
}

/// The rank of every thread.
fn thread_ranks(trace: &Trace) -> Vec<u32> {
    (0..trace.threads.len()).map(|thread| trace.thread_rank(ThreadId::from_index(thread))).collect()
}

/// How many ranks there are: recordings, or more if processes or devices say so.
fn rank_count(trace: &Trace) -> usize {
    let processes = trace.processes.iter().map(|process| process.rank as usize + 1);
    let devices = trace.devices.iter().map(|device| device.rank as usize + 1);
    processes.chain(devices).max().unwrap_or(0)
}

/// API calls by correlation number.
pub(super) fn launches(trace: &Trace) -> KeyMap {
    let (ranks, calls) = (thread_ranks(trace), &trace.api_calls);
    KeyMap::new(rank_count(trace), calls.len(), |row| ranks[calls.thread[row].index()], |row| calls.correlation(row))
}

/// Operators by external id.
pub(super) fn operators(trace: &Trace) -> KeyMap {
    let (ranks, ops) = (thread_ranks(trace), &trace.host_ops);
    KeyMap::new(rank_count(trace), ops.len(), |row| ranks[ops.thread[row].index()], |row| ops.external_id(row))
}
