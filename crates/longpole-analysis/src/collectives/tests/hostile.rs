//! Traces that no run writes: nothing panics, and nothing takes long.

use std::time::{Duration, Instant};

use longpole_trace::{Activity, ActivityKind, Collective, CollectivePlace, Lane, LaneId, Ns, RankInfo, StrId, TraceBuilder};

use super::run::Run;
use super::*;

/// Generous: the slowest machine that runs the tests does other things as well.
const LIMIT: Duration = Duration::from_secs(15);

/// Communication kernels of any kind anywhere.
struct Any {
    builder: TraceBuilder,
    lanes: Vec<LaneId>,
}

impl Any {
    fn new(ranks: u32) -> Self {
        let mut builder = TraceBuilder::new();
        let lanes = (0..ranks).map(|rank| {
            let index = builder.add_rank(RankInfo { rank, ..RankInfo::default() });
            let device = builder.device(index, 0);
            builder.lane(Lane { device, context: None, stream: 7 })
        });
        Self { lanes: lanes.collect(), builder }
    }

    fn text(&mut self, text: &str) -> StrId {
        self.builder.trace_mut().strings.intern(text)
    }

    fn kernel(&mut self, rank: usize, name: &str, start: i64, dur: i64, group: Option<&str>, sequence: Option<u64>) {
        let (name, group) = (self.text(name), group.map(|group| self.text(group)));
        let (lane, start, kind) = (self.lanes[rank], Ns(start), ActivityKind::Kernel);
        let (correlation, external_id, detail, graph_node) = (None, None, None, None);
        self.builder.push_activity(Activity { kind, name, lane, start, dur: Ns(dur), correlation, external_id, detail, graph_node });
        if group.is_some() || sequence.is_some() {
            self.builder.push_collective(Collective {
                place: CollectivePlace::Device(lane),
                start,
                name: None,
                group,
                group_ranks: None,
                dtype: Some(name),
                group_size: Some(0),
                in_elements: Some(u64::MAX - 1),
                out_elements: None,
                sequence,
                source_rank: Some(0),
                destination_rank: Some(0),
            });
        }
    }

    fn looked_at(self) -> RankReport {
        let trace = self.builder.finish();
        let began = Instant::now();
        let found = report(&trace);
        assert!(began.elapsed() < LIMIT, "{:?}", began.elapsed());
        found
    }
}

const NAMES: [&str; 5] =
    ["ncclDevKernel_AllReduce_Sum_f16", "ncclDevKernel_Broadcast", "ncclDevKernel_SendRecv", "ncclDevKernel_Generic_4", "gemm"];

proptest! {
    #[test]
    fn any_kernels_add_up(
        drawn in proptest::collection::vec((0_usize..4, 0_usize..5, any::<i64>(), any::<i64>(), 0_u8..4, 0_u64..4), 0..60)
    ) {
        let mut any = Any::new(4);
        for (at, &(rank, name, start, dur, group, sequence)) in drawn.iter().enumerate() {
            // Small times in half of them, so that things meet; any in the others.
            let (start, dur) = if at % 2 == 0 { (start % 1_000_000, dur % 100_000) } else { (start / 4, dur / 4) };
            let group = ["a", "b"].get(group as usize).copied();
            any.kernel(rank, NAMES[name], start, dur, group, (sequence > 0).then_some(sequence));
        }
        let found = any.looked_at();
        let calls: u64 = found.ranks.iter().map(|row| row.collectives).sum();
        let matched: u64 = found.groups.iter().map(|group| group.unmatched).sum::<u64>() + found.entries.len() as u64;
        prop_assert!(matched <= calls, "{matched} of {calls}");
        for collective in &found.collectives {
            prop_assert!(collective.entries.len() > 1);
        }
        for entry in &found.entries {
            prop_assert!(entry.waiting_ns >= Ns::ZERO && entry.transfer_ns >= Ns::ZERO);
        }
    }
}

#[test]
fn many_calls_of_many_ranks_take_linear_time() {
    let mut run = Run::new(8, 40_000);
    run.extra = Some((5, 2, 1, 90_000));
    run.ahead[3] = 2_000_000;
    let made = run.make();
    let began = Instant::now();
    let found = report(&made.trace);
    assert!(began.elapsed() < LIMIT, "{:?}", began.elapsed());
    assert_eq!(assert_right(&made, &found), 320_000);
}

#[test]
fn calls_that_match_nowhere() {
    // Clocks that tell nothing: each rank's calls at its own pace.
    let mut any = Any::new(12);
    for rank in 0..12 {
        for at in 0..4_000 {
            any.kernel(rank, NAMES[0], at * (10_000 + rank as i64 * 997) + at * at % 7_919, 5_000, Some("all"), None);
        }
    }
    let found = any.looked_at();
    assert_eq!(found.groups.len(), 1);
    let mut any = Any::new(200);
    for rank in 0..200 {
        for at in 0..300 {
            any.kernel(rank, NAMES[0], at * (90_000 + rank as i64 * 9_973) + at * at * 131 % 79_190, 5_000, None, None);
        }
    }
    any.looked_at();
}

#[test]
fn as_many_groups_as_calls() {
    let mut any = Any::new(2);
    for at in 0..50_000_i64 {
        let group = format!("group {at}");
        any.kernel(0, NAMES[0], at * 1_000, 900, Some(&group), None);
        any.kernel(1, NAMES[0], at * 1_000 + 50, 850, Some(&group), None);
    }
    let found = any.looked_at();
    assert_eq!((found.groups.len(), found.collectives.len(), found.entries.len()), (50_000, 50_000, 100_000));
}

#[test]
fn numbers_that_all_are_one() {
    let mut any = Any::new(2);
    for at in 0..50_000_i64 {
        any.kernel(0, NAMES[0], at * 1_000, 900, Some("all"), Some(5));
        any.kernel(1, NAMES[0], at * 1_000 + 50, 850, Some("all"), Some(5));
    }
    let found = any.looked_at();
    assert_eq!((found.collectives.len(), found.groups[0].not_split), (50_000, 0));
}

#[test]
fn no_rank_and_no_work() {
    assert_eq!(report(&TraceBuilder::new().finish()), RankReport::default());
    let found = Any::new(3).looked_at();
    assert_eq!((found.ranks.len(), found.groups.len(), found.includes_waiting), (3, 0, false));
    assert_eq!((found.ranks[0].busy_ns, found.ranks[0].not_split_ns), (None, Ns::ZERO));
}
