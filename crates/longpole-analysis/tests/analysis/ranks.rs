//! Two real ranks: one does matrix products of its own before each collective.

use std::io::Write as _;
use std::path::PathBuf;

use longpole_analysis::{CauseKind, CollectiveKind, MatchedBy, RankReport, Scope, TraceIndex, rank_report};
use longpole_trace::{Ns, Trace};

use crate::{slow_ranks, slow_reader};

fn path(rank: u32) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("../../corpus/kineto/nccl_rank{rank}.json.gz"))
}

fn report(trace: &Trace) -> RankReport {
    rank_report(&TraceIndex::new(trace), &Scope::whole())
}

#[test]
fn the_first_collective_is_start_up_and_the_others_wait_for_matrix_products() {
    let trace = slow_ranks::read_ranks(&[&path(0), &path(1)]);
    let found = report(&trace);
    assert_eq!((found.groups.len(), found.collectives.len()), (1, 33));
    let group = &found.groups[0];
    assert_eq!((group.name.as_deref(), group.size, group.matched_by), (Some("0"), Some(2), MatchedBy::Time));
    assert_eq!((group.unmatched, group.not_split, group.members.clone()), (0, 0, vec![0, 1]));
    let kinds: Vec<_> = group.kinds.iter().map(|kind| (kind.kind, kind.bytes, kind.count)).collect();
    let want =
        [(CollectiveKind::AllReduce, 4_194_304, 8), (CollectiveKind::AllReduce, 8_192, 24), (CollectiveKind::AllGather, 4_194_304, 1)];
    assert_eq!(kinds, want.map(|(kind, bytes, count)| (kind, Some(bytes), count)));

    // The kernel of the first all-reduce lasts 584,339,798 ns on rank 0. Its last 201 us are the transfer.
    let [start_up] = &found.start_ups[..] else { panic!("{:?}", found.start_ups) };
    assert_eq!((start_up.rank, start_up.skew_ns, start_up.waiting_ns), (1, Ns(584_138_514), Ns(584_138_514)));
    let first = found.entries[found.collectives[0].entries.clone()][0];
    assert_eq!((first.rank, first.waiting_ns, first.transfer_ns), (0, Ns(584_138_514), Ns(201_284)));
    assert_eq!((found.ranks[0].start_up_ns, found.ranks[0].waiting_ns), (Some(Ns(584_138_514)), Some(Ns(24_574_689))));
    // Rank 1's recording began later, and its first matrix products loaded their library.
    let kinds: Vec<_> = start_up.causes.iter().take(2).map(|cause| cause.kind).collect();
    assert_eq!(kinds, [CauseKind::RecordingBegan, CauseKind::Idle]);
    assert_eq!(start_up.host[0].name.as_deref(), Some("aten::mm"));

    assert!(found.has_straggler);
    let straggler = &found.stragglers[0];
    assert_eq!((straggler.rank, straggler.times_last, straggler.collectives), (1, 30, 32));
    assert_eq!((straggler.waiting_caused_ns, straggler.explained_ns), (Ns(24_574_689), Ns(24_574_689)));
    let cause = &straggler.causes[0];
    assert_eq!((cause.kind, cause.name.as_str(), cause.excess_calls), (CauseKind::Operator, "aten::mm", 60), "two a step more");
    assert!(cause.waiting_fraction.unwrap() > 0.8 && cause.kernel.as_ref().unwrap().contains("sgemm"), "{cause:?}");
    for causes in [&straggler.causes, &found.stragglers[1].causes] {
        let idle = causes.iter().find(|cause| cause.kind == CauseKind::Idle).unwrap().excess_ns;
        assert!(idle > Ns::ZERO);
    }
    let sum = |straggler: &longpole_analysis::Straggler| straggler.causes.iter().map(|cause| cause.excess_ns).sum::<Ns>();
    assert!(found.stragglers.iter().all(|straggler| sum(straggler) == straggler.explained_ns));

    // One host, one clock.
    assert_eq!((found.clocks[1].reference, found.clocks[1].samples, found.clocks[1].correction_ns), (Some(0), 33, Ns::ZERO));
    assert!(found.clocks[1].ahead_ns.unwrap().get().abs() < 1_000);
}

#[test]
fn rank_rows_agree_with_the_totals() {
    let trace = slow_ranks::read_ranks(&[&path(0), &path(1)]);
    let index = TraceIndex::new(&trace);
    let totals = longpole_analysis::totals(&index, &Scope::whole());
    let found = rank_report(&index, &Scope::whole());
    for (row, device) in found.ranks.iter().zip(&totals.devices) {
        assert_eq!(row.busy_ns, Some(device.busy_ns));
        assert_eq!(row.communication_ns, Some(device.comm_busy_ns));
        assert_eq!(row.exposed_communication_ns, Some(device.exposed_comm_ns));
        assert_eq!((row.copy_ns, row.exposed_copy_ns), (Some(device.copy_busy_ns), Some(device.exposed_copy_ns)));
        assert_eq!(row.compute_ns.map(|compute| compute + device.exposed_comm_ns), Some(device.kernel_busy_ns));
        assert_eq!(row.idle_ns, Some(device.span_ns - device.busy_ns));
    }
}

#[test]
fn one_rank_of_two_says_that_waiting_is_included() {
    let found = report(&slow_reader::read(&path(0)));
    assert!(found.includes_waiting);
    assert_eq!((found.ranks[0].collectives, found.ranks[0].waiting_ns), (33, None));
}

/// Traces that may not be kept in the repository: the folder named in `LONGPOLE_SHARED`, else one beside the repository.
fn published(name: &str) -> Option<PathBuf> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let shared = std::env::var_os("LONGPOLE_SHARED").map_or_else(|| root.join("../shared"), PathBuf::from);
    let path = shared.join("corpus/kineto/public").join(name);
    if !path.exists() {
        let _ = writeln!(std::io::stderr(), "skipped: there is no {name} here (LONGPOLE_SHARED names its folder)");
        return None;
    }
    Some(path)
}

/// Eight ranks of 2023, which name no process group and round times to microseconds; the archive has them in no order.
#[test]
fn ranks_that_name_no_group_are_found_to_be_one() {
    let Some(path) = published("param_dlrm_kineto.tar.gz") else { return };
    let trace = slow_ranks::read_archive(&path);
    let found = report(&trace);
    assert_eq!(found.ranks.iter().map(|row| row.number).collect::<Vec<_>>(), (0..8).collect::<Vec<_>>());
    assert_eq!((found.groups.len(), found.collectives.len(), found.entries.len()), (1, 8, 64));
    let group = &found.groups[0];
    assert_eq!((group.members.len(), group.matched_by, group.unmatched, group.not_split), (8, MatchedBy::Time, 0, 0));
    let kinds: Vec<_> = found.collectives.iter().map(|collective| (collective.kind, collective.bytes)).collect();
    let (all_to_all, all_reduce) = (CollectiveKind::AllToAll, CollectiveKind::AllReduce);
    let want = [
        (all_to_all, Some(24_576)),
        (all_to_all, Some(192)),
        (all_to_all, Some(1_536)),
        (all_to_all, Some(9_216)),
        (all_reduce, None),
        (all_to_all, Some(24_576)),
        (all_reduce, None),
        (all_reduce, None),
    ];
    assert_eq!(kinds, want, "sizes from the operators' inputs; all-reduces have lists of tensors");
    // The recordings began up to 7.6 ms apart: that, and nothing the ranks did, is the first collective's skew.
    let start_up = &found.start_ups[0];
    assert_eq!((trace.ranks[start_up.rank].rank, start_up.skew_ns), (7, Ns(7_624_000)));
    assert_eq!(start_up.causes[0].kind, CauseKind::RecordingBegan);
    assert_eq!(trace.ranks[found.stragglers[0].rank].rank, 7);
    assert!(found.clocks.iter().all(|clock| clock.correction_ns == Ns::ZERO && clock.spread_ns.unwrap() <= Ns(1_000)));
}
