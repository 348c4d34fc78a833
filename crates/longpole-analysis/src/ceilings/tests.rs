//! Ceilings on traces small enough to follow.

use longpole_trace::{DeviceProperties, Ns, Trace};
use proptest::prelude::*;

use super::*;
use crate::idle::idle_pieces;
use crate::sample::Sample;
use crate::steps::{StepOptions, step_table};

fn table(trace: &Trace, peaks: Option<&Peaks>) -> (StepTable, CeilingTable) {
    let index = TraceIndex::new(trace);
    let scope = Scope::whole();
    let steps = step_table(&index, &scope, &StepOptions::default());
    let ceilings = ceilings(&index, &scope, &steps, &idle_pieces(&index, &scope), peaks);
    for row in &ceilings.rows {
        assert!(row.ceiling_ns > Ns::ZERO && row.ceiling_ns <= row.time_ns(), "{row:?}");
        assert_eq!(CeilingRow::together(&[row]), row.ceiling_ns);
        assert!(CeilingRow::together(&[row, row]) <= row.time_ns(), "{row:?}");
    }
    (steps, ceilings)
}

fn h200() -> Peaks {
    Peaks::of_device(&DeviceProperties { name: Some("NVIDIA H200".to_owned()), ..DeviceProperties::default() }).unwrap()
}

const US: i64 = 1_000;

/// Three steps a millisecond apart. In each: a product of 10 us, then two elementwise kernels of 4 and 6 us, each launched 20 us after the
/// one before and started 2 us after that; the last starts right after the second.
fn three_steps() -> Trace {
    let mut sample = Sample::new();
    for step in 0..3 {
        let at = step * 1_000 * US;
        sample.range("decode", at, 500 * US);
        // 4096 x 4096 half weights: 33,570,816 bytes, 6,994 ns at 4.8 TB/s.
        sample.op_with_shapes("aten::mm", at, 10 * US, Some(("[[1, 4096], [4096, 4096]]", r#"["c10::Half", "c10::Half"]"#)));
        sample.launch("cudaLaunchKernel", at + US, US).kernel("gemv", at + 4 * US, 10 * US);
        // A million floats in and out: 8,000,000 bytes.
        let million = Some(("[[1000000], [1000000]]", r#"["float", "float"]"#));
        sample.op_with_shapes("aten::neg", at + 20 * US, 10 * US, Some(("[[1000000]]", r#"["float"]"#)));
        sample.launch("cudaLaunchKernel", at + 25 * US, US).kernel("elementwise_kernel<neg>", at + 30 * US, 4 * US);
        sample.op_with_shapes("aten::add", at + 31 * US, 2 * US, million);
        sample.launch("cudaLaunchKernel", at + 32 * US, US).kernel("elementwise_kernel<add>", at + 34 * US, 6 * US);
    }
    sample.finish()
}

fn row(table: &CeilingTable, kind: CeilingKind, is_it: impl Fn(&CeilingSubject) -> bool) -> &CeilingRow {
    table.rows.iter().find(|row| row.kind == kind && is_it(&row.subject)).unwrap_or_else(|| panic!("{kind:?} in {:#?}", table.rows))
}

#[test]
fn every_kind_by_hand() {
    let trace = three_steps();
    let (steps, table) = table(&trace, Some(&h200()));
    assert_eq!((steps.groups.len(), steps.groups[0].steps.len()), (1, 3));
    let is_gemv = |subject: &CeilingSubject| matches!(subject, CeilingSubject::Role { rows, .. } if rows[0] == 0);
    let free = row(&table, CeilingKind::WorkFree, is_gemv);
    assert_eq!((free.ceiling_ns, free.per_step_ns), (Ns(30 * US), Some(Ns(10 * US))));
    // 2 x (4096 + 4096 x 4096 + 4096) bytes at 4.8 TB/s.
    let floor = row(&table, CeilingKind::AtMemoryFloor, is_gemv);
    assert_eq!((floor.ceiling_ns, floor.time_ns()), (Ns(3 * (10 * US - 6_994)), Ns(30 * US)));
    // One kernel in place of the two takes 4 us at least, as the shorter of them does: 4 MB read and 4 MB written take 1,667 ns.
    let chain = row(&table, CeilingKind::Fused, |_| true);
    assert_eq!((chain.ceiling_ns, chain.time_ns()), (Ns(3 * 6 * US), Ns(3 * 10 * US)));
    assert!(chain.basis.contains("move 60.0 MB and need to move 24.0 MB"), "{}", chain.basis);
    // From 14 to 20 outside operators, to 25 dispatch, to 30 latency. The 960 us and more between steps stay.
    let replay = row(&table, CeilingKind::GraphReplay, |_| true);
    assert_eq!((replay.ceiling_ns, replay.per_step_ns), (Ns(3 * 16 * US), Some(Ns(16 * US))));
    let dispatch = |group| move |subject: &CeilingSubject| *subject == CeilingSubject::Cause { group, cause: IdleCause::Dispatch };
    assert_eq!(row(&table, CeilingKind::IdleGone, dispatch(Some(0))).ceiling_ns, Ns(3 * 5 * US));
    // Once more between steps: the operator that launches the first kernel of the next.
    assert_eq!(row(&table, CeilingKind::IdleGone, dispatch(None)).ceiling_ns, Ns(3 * 5 * US + 2 * US));
    assert_eq!(table.rows[0].kind, CeilingKind::IdleGone, "the time between steps is most");
}

#[test]
fn without_shapes_or_peaks_there_is_no_floor_and_fusing_counts_kernels() {
    let trace = three_steps();
    let (_, table) = table(&trace, None);
    assert!(!table.rows.iter().any(|row| matches!(row.kind, CeilingKind::AtMemoryFloor | CeilingKind::AtComputeFloor)));
    let chain = row(&table, CeilingKind::Fused, |_| true);
    assert_eq!(chain.ceiling_ns, Ns(3 * 6 * US));
    assert!(chain.basis.contains("all but the shortest"), "{}", chain.basis);
}

#[test]
fn together_no_time_is_won_twice() {
    let trace = three_steps();
    let (_, table) = table(&trace, Some(&h200()));
    let is_gemv = |subject: &CeilingSubject| matches!(subject, CeilingSubject::Role { rows, .. } if rows[0] == 0);
    let (free, floor) = (row(&table, CeilingKind::WorkFree, is_gemv), row(&table, CeilingKind::AtMemoryFloor, is_gemv));
    assert_eq!(CeilingRow::together(&[free, floor]), free.ceiling_ns, "its floor is part of it");
    let replay = row(&table, CeilingKind::GraphReplay, |_| true);
    assert_eq!(CeilingRow::together(&[free, replay]), free.ceiling_ns + replay.ceiling_ns, "busy and idle are apart");
    let all: Vec<&CeilingRow> = table.rows.iter().collect();
    // All there is between the first start and the last end.
    assert_eq!(CeilingRow::together(&all), Ns(2_036 * US));
}

#[test]
fn what_runs_beside_takes_its_part() {
    // A runs alone in 0..5 and 12..20, B in 20..30, both in 5..12.
    let mut sample = Sample::new();
    sample.orphan("a", 0, 20);
    sample.on_device(0, 8);
    sample.orphan("b", 5, 7);
    sample.orphan("b", 12, 0);
    sample.orphan("b", 19, 11);
    sample.orphan("nobody", 28, 2);
    let trace = sample.finish();
    let owner: Vec<u32> = trace
        .activities
        .name
        .iter()
        .map(|&name| match trace.strings.get(name) {
            "a" => 0,
            "b" => 1,
            _ => alone::NO_OWNER,
        })
        .collect();
    let found = alone::alone(&trace, &owner, 3);
    let ends = |owner: usize| -> Vec<(i64, i64)> {
        found[owner].iter().flat_map(|(_, set)| set.intervals()).map(|interval| (interval.start.get(), interval.end.get())).collect()
    };
    assert_eq!((ends(0), ends(1), ends(2)), (vec![(0, 5), (12, 19)], vec![(20, 28)], Vec::new()));
}

proptest! {
    #[test]
    fn alone_is_what_nothing_else_covers(work in prop::collection::vec((0_u32..4, 0_i64..60, 0_i64..20, 0_i64..3), 0..40)) {
        let mut sample = Sample::new();
        let mut owner = Vec::new();
        for &(of, start, dur, stream) in &work {
            sample.on_device(0, stream);
            sample.orphan("k", start, dur);
            owner.push(if of == 3 { alone::NO_OWNER } else { of });
        }
        let trace = sample.finish();
        let found = alone::alone(&trace, &owner, 3);
        for at in 0..80 {
            let mut open: Vec<u32> =
                work.iter().filter(|&&(_, start, dur, _)| start <= at && at < start + dur).map(|&(of, ..)| of).collect();
            open.sort_unstable();
            open.dedup();
            for (own, found) in found.iter().enumerate() {
                let is_alone = open == [own as u32];
                prop_assert_eq!(found.iter().any(|(_, set)| set.contains(Ns(at))), is_alone, "owner {} at {}", own, at);
            }
        }
    }

    #[test]
    fn clipping_is_intersecting(a in prop::collection::vec((0_i64..100, 0_i64..20), 0..20), b in prop::collection::vec((0_i64..100, 0_i64..20), 0..20)) {
        let set = |list: Vec<(i64, i64)>| IntervalSet::from_unsorted(list.into_iter().map(|(start, dur)| Interval::new(Ns(start), Ns(dur))).collect());
        let (a, b) = (set(a), set(b));
        prop_assert_eq!(clipped(&a, &b), a.intersection(&b));
    }
}
