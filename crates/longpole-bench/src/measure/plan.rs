//! How many buffers, how many runs a sample, and by which method.

use crate::protocol::{L2, Method};

/// Between two uses of a set of buffers so many times the cache passes through it. Once would do for a cache that replaces strictly in order;
/// that of a GPU does not.
const CACHES_BETWEEN: u64 = 2;

/// Sets of buffers at most: as many runs go into a graph, and a graph of more takes longer to make than to run.
pub const MAX_SETS: u32 = 4096;

/// Share of the free memory that sets may take, as a divisor: libraries want some too.
const MEMORY_SHARE: u64 = 2;

/// A kernel under this many picoseconds is measured in a graph: the host takes 2 to 5 us to launch one.
pub const GRAPH_BELOW_PS: u64 = 10_000_000;

/// Picoseconds that a sample should last; see the module above.
pub const SAMPLE_PS: u64 = 1_000_000_000;

/// Runs in one sample at most, but for the sets of a graph.
const MAX_RUNS: u64 = 1000;

/// Sets of buffers for a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sets {
    /// How many.
    pub count: u32,
    /// Whether they are enough for a cold cache; always so if it may be warm.
    pub enough: bool,
}

/// Sets of buffers that keep the cache as asked for.
///
/// `footprint_bytes` is what one run touches. An unknown cache is taken as 128 MiB, the largest there was when this was written.
pub fn sets(l2: L2, footprint_bytes: u64, l2_bytes: Option<u64>, free_bytes: Option<u64>) -> Sets {
    if l2 == L2::Warm {
        return Sets { count: 1, enough: true };
    }
    let footprint = footprint_bytes.max(1);
    let cache = l2_bytes.unwrap_or(128 << 20);
    // The set itself does not count: it is what must have left the cache.
    let wanted = cache.saturating_mul(CACHES_BETWEEN).div_ceil(footprint).saturating_add(1).max(2);
    let room = free_bytes.map_or(u64::MAX, |free| free / MEMORY_SHARE / footprint).max(1);
    let count = wanted.min(room).min(u64::from(MAX_SETS));
    Sets { count: count as u32, enough: count == wanted }
}

/// The method for runs of `launches` launches that take `run_ps` together.
pub fn method(run_ps: u64, launches: u64, recordable: bool) -> Method {
    if recordable && launches > 0 && run_ps / launches < GRAPH_BELOW_PS { Method::Graph } else { Method::Events }
}

/// Runs in one sample.
///
/// In a graph they are a multiple of the sets, so that every replay goes on where the last one stopped.
pub fn runs_per_sample(method: Method, run_ps: u64, sets: u32) -> u32 {
    let runs = SAMPLE_PS.div_ceil(run_ps.max(1)).clamp(1, MAX_RUNS);
    let sets = u64::from(sets.max(1));
    let runs = if method == Method::Graph { runs.next_multiple_of(sets) } else { runs };
    runs as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn cold_sets_push_twice_the_cache_between_two_uses() {
        for footprint in [64 << 10, MIB, 7 * MIB, 50 * MIB, 600 * MIB] {
            let sets = sets(L2::Cold, footprint, Some(60 * MIB), Some(140 << 30));
            assert!(sets.enough);
            let between = u64::from(sets.count - 1) * footprint;
            assert!(between >= 120 * MIB && sets.count >= 2, "{footprint}: {sets:?}");
            assert!(between < 120 * MIB + footprint.max(MIB), "{footprint}: {sets:?} is more than needed");
        }
    }

    #[test]
    fn sets_have_limits() {
        assert_eq!(sets(L2::Warm, MIB, Some(60 * MIB), None), Sets { count: 1, enough: true });
        assert_eq!(sets(L2::Cold, 1, Some(60 * MIB), None), Sets { count: MAX_SETS, enough: false });
        assert_eq!(sets(L2::Cold, 0, None, None).count, MAX_SETS);
        // 40 MiB in half of 100 MiB: one set only.
        assert_eq!(sets(L2::Cold, 40 * MIB, Some(60 * MIB), Some(100 * MIB)), Sets { count: 1, enough: false });
        assert_eq!(sets(L2::Cold, u64::MAX, Some(u64::MAX), Some(1)), Sets { count: 1, enough: false });
    }

    #[test]
    fn short_kernels_go_into_graphs() {
        assert_eq!(method(9_999_999, 1, true), Method::Graph);
        assert_eq!(method(10_000_000, 1, true), Method::Events);
        assert_eq!(method(5_000_000, 1, false), Method::Events);
        // A step of 500 kernels of 5 us is bound by its launches too.
        assert_eq!(method(2_500_000_000, 500, true), Method::Graph);
        assert_eq!(method(5, 0, true), Method::Events);
    }

    #[test]
    fn a_sample_lasts_a_millisecond() {
        assert_eq!(runs_per_sample(Method::Events, 100_000_000, 7), 10);
        assert_eq!(runs_per_sample(Method::Events, 5_000_000_000, 7), 1);
        assert_eq!(runs_per_sample(Method::Events, 0, 1), 1000);
        assert_eq!(runs_per_sample(Method::Graph, 2_000_000, 1), 500);
        assert_eq!(runs_per_sample(Method::Graph, 2_000_000, 64), 512);
        assert_eq!(runs_per_sample(Method::Graph, 2_000_000, 4000), 4000);
    }
}
