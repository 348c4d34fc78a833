//! Ceilings on traces small enough to follow.

use longpole_trace::{DeviceProperties, Ns, Trace};
use proptest::prelude::*;

use super::*;
use crate::idle::idle_pieces;
use crate::sample::Sample;
use crate::steps::{StepOptions, step_table};
use crate::turns::Turns;

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
    of_groups(&index, &steps, &ceilings, peaks);
    (steps, ceilings)
}

/// The ceilings of each group: what a step wins is no more than the figure of the step that it is a part of, and the same as with the time
/// that it is won from.
fn of_groups(index: &TraceIndex<'_>, steps: &StepTable, whole: &CeilingTable, peaks: Option<&Peaks>) -> Vec<GroupCeilings> {
    let found = step_ceilings(&ScopeWork::find(index, &Scope::whole(), peaks), steps, &[]);
    for (group, of_group) in steps.groups.iter().zip(&found) {
        for row in &of_group.ceilings {
            let per_step = row.per_step_ns.unwrap();
            let (most, saves) = match &row.subject {
                CeilingSubject::Role { rows, .. } => {
                    let saves: Option<Ns> = rows.iter().map(|&row| of_group.rows[row as usize].ceiling_ns).sum();
                    (group.busy_ns.min(rows.iter().map(|&row| group.rows[row as usize].ns_per_step).sum()), saves)
                }
                CeilingSubject::Chain { .. } => (group.span_ns, None),
                CeilingSubject::Steps { .. } | CeilingSubject::Cause { .. } => (group.gap_inside_ns, None),
            };
            assert!(per_step <= most, "{row:?} of {most}");
            assert!(saves.is_none_or(|saves| saves == per_step), "{row:?} and {saves:?} in the table");
            let same = |other: &&CeilingRow| other.subject == row.subject && other.kind == row.kind;
            let other = whole.rows.iter().find(same).unwrap();
            assert_eq!((other.ceiling_ns, other.per_step_ns), (row.ceiling_ns, row.per_step_ns), "{row:?}");
        }
        for (row, ceiling) in group.rows.iter().zip(&of_group.rows) {
            assert!(ceiling.ceiling_ns.is_none_or(|win| win <= row.ns_per_step), "{row:?} {ceiling:?}");
        }
        assert!(of_group.ceilings.is_sorted_by_key(|row| std::cmp::Reverse(row.per_step_ns)));
    }
    found
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

/// Steps a millisecond apart, each with two kernels of 10 us; the second is launched some time after the first. Both are negations of a
/// thousand floats: 8,000 bytes, 2 ns at 4.8 TB/s.
fn pairs(gaps: &[i64]) -> Trace {
    let mut sample = Sample::new();
    let mut at = 0;
    for gap in gaps {
        let thousand = Some(("[[1000]]", r#"["float"]"#));
        sample.range("decode", at, gap + 20 * US);
        sample.op_with_shapes("aten::neg", at, 3 * US, thousand);
        sample.launch("cudaLaunchKernel", at + US, US).kernel("elementwise_kernel<neg>", at + 2 * US, 10 * US);
        sample.op_with_shapes("aten::neg", at + 3 * US, gap + 12 * US, thousand);
        sample.launch("cudaLaunchKernel", at + gap + 11 * US, US).kernel("elementwise_kernel<neg>", at + gap + 12 * US, 10 * US);
        at += gap + 1_000 * US;
    }
    sample.finish()
}

#[test]
fn a_cold_first_step_does_not_drive_what_a_step_wins() {
    let trace = pairs(&[5_000 * US, 40 * US, 60 * US]);
    let index = TraceIndex::new(&trace);
    let (steps, table) = table(&trace, Some(&h200()));
    assert_eq!((steps.groups[0].steps.len(), steps.groups[0].gap_inside_ns), (3, Ns(60 * US)));
    let found = &of_groups(&index, &steps, &table, Some(&h200()))[0];
    // In all, the cold one does not count.
    let replay = found.ceilings.iter().find(|row| row.kind == CeilingKind::GraphReplay).unwrap();
    assert_eq!((replay.per_step_ns, replay.ceiling_ns), (Some(Ns(60 * US)), Ns(100 * US)));
    assert!(replay.basis.contains("2 steps, the cold first one left out"), "{}", replay.basis);
    let dispatch = CeilingSubject::Cause { group: Some(0), cause: IdleCause::Dispatch };
    let dispatch = found.ceilings.iter().find(|row| row.subject == dispatch).unwrap();
    assert_eq!((dispatch.per_step_ns, dispatch.ceiling_ns), (Some(Ns(59 * US)), Ns((5_000 + 40 + 60 - 3) * US)));
}

#[test]
fn one_slow_call_does_not_drive_what_a_row_could_save() {
    let mut sample = Sample::new();
    for (step, took) in [500, 12, 11, 10].into_iter().enumerate() {
        let at = step as i64 * 1_000 * US;
        sample.range("decode", at, 10 * US);
        sample.op_with_shapes("aten::mm", at, 10 * US, Some(("[[1, 4096], [4096, 4096]]", r#"["c10::Half", "c10::Half"]"#)));
        sample.launch("cudaLaunchKernel", at + US, US).kernel("gemv", at + 4 * US, took * US);
        sample.launch("cudaLaunchKernel", at + 3 * US, US).kernel("splitKreduce", at + (4 + took) * US, US);
    }
    let trace = sample.finish();
    let index = TraceIndex::new(&trace);
    let (steps, table) = table(&trace, Some(&h200()));
    let (rows, found) = (&steps.groups[0].rows, &of_groups(&index, &steps, &table, Some(&h200()))[0].rows);
    let times: Vec<Ns> = rows.iter().map(|row| row.ns_per_step).collect();
    assert_eq!(times, [Ns(11 * US), Ns(US)]);
    // The floor of 6,994 ns and what is above it are shared in proportion: of the usual step of 11 and 1 us, 6,411 and 583 ns.
    let floors: Vec<Option<Ns>> = found.iter().map(|row| row.floor_ns).collect();
    assert_eq!(floors, [Some(Ns(6_411)), Some(Ns(583))]);
    assert_eq!(found[0].ceiling_ns, Some(Ns(11 * US - 6_411)));
}

#[test]
fn chains_that_run_at_the_same_time_win_only_what_each_has_alone() {
    let mut sample = Sample::new();
    for step in 0..4 {
        let at = step * 1_000 * US;
        let thousand = Some(("[[1000]]", r#"["float"]"#));
        sample.range("decode", at, 20 * US);
        for (number, (stream, start, took)) in [(7, 100, 10), (7, 110, 190), (8, 120, 10), (8, 130, 170)].into_iter().enumerate() {
            sample.on_device(0, stream);
            let launch = at + 4 * number as i64 * US;
            sample.op_with_shapes("aten::neg", launch, 3 * US, thousand);
            sample.launch("cudaLaunchKernel", launch + US, US).kernel("elementwise_kernel<neg>", at + start * US, took * US);
        }
    }
    let trace = sample.finish();
    let index = TraceIndex::new(&trace);
    let (steps, table) = table(&trace, Some(&h200()));
    // The first chain has 20 us to itself, of which one kernel of 10 us stays; the second has none.
    let chains: Vec<&CeilingRow> = table.rows.iter().filter(|row| row.kind == CeilingKind::Fused).collect();
    assert_eq!(chains.iter().map(|row| (row.per_step_ns, row.time_ns())).collect::<Vec<_>>(), [(Some(Ns(10 * US)), Ns(4 * 20 * US))]);
    // Neither can a row save what runs beside others.
    let found = &of_groups(&index, &steps, &table, Some(&h200()))[0];
    let saves: Vec<Option<Ns>> = found.rows.iter().map(|row| row.ceiling_ns).collect();
    assert_eq!(saves, [Some(Ns(10 * US - 2)), Some(Ns(10 * US)), Some(Ns::ZERO), Some(Ns::ZERO)]);
}

/// What is said of one step of two fusable kernels, each of an operator.
fn chain_of(first: (&str, &str, &str), last: (&str, &str, &str)) -> (Ns, String) {
    let mut sample = Sample::new();
    for step in 0..3 {
        let at = step * 1_000 * US;
        sample.range("decode", at, 20 * US);
        for (number, (operator, shapes, types)) in [first, last].into_iter().enumerate() {
            let launch = at + 4 * number as i64 * US;
            sample.op_with_shapes(operator, launch, 3 * US, Some((shapes, types)));
            let kernel = format!("elementwise_kernel<{number}, float>");
            sample.launch("cudaLaunchKernel", launch + US, US).kernel(
                &kernel,
                at + (100 + 10 * number as i64) * US,
                (10 + 190 * number as i64) * US,
            );
        }
    }
    let trace = sample.finish();
    let (_, table) = table(&trace, Some(&h200()));
    let chain = row(&table, CeilingKind::Fused, |_| true);
    (chain.per_step_ns.unwrap(), chain.basis.clone())
}

#[test]
fn a_chain_at_whose_end_stands_a_norm_or_a_softmax_counts_bytes() {
    let neg = ("aten::neg", "[[1000]]", r#"["float"]"#);
    // A step writes 120 MB, 25 us at 4.8 TB/s: more than the shortest kernel takes.
    for last in ["aten::_softmax", "aten::rms_norm", "aten::cumsum"] {
        let (win, basis) = chain_of(neg, (last, "[[1000, 30000], []]", r#"["float", "Scalar"]"#));
        assert!(basis.contains("need to move 360.0 MB"), "{last}: {basis}");
        assert_eq!(win, Ns(210 * US - 25_000), "{last}");
    }
    // What it reads, where it stands first.
    let (_, basis) = chain_of(("aten::_softmax", "[[1000, 30000], []]", r#"["float", "Scalar"]"#), neg);
    assert!(basis.contains("need to move 360.0 MB"), "{basis}");
}

#[test]
fn a_chain_says_why_its_bytes_are_not_known() {
    let neg = ("aten::neg", "[[1000]]", r#"["float"]"#);
    let (win, basis) = chain_of(neg, ("aten::of_no_formula", "[[1000]]", r#"["float"]"#));
    assert!(win == Ns(200 * US) && basis.contains("since there is no formula for the operator of one of them"), "{basis}");
    let (_, basis) = chain_of(neg, ("aiter::rmsnorm", "[[2, 64], [64]]", r#"["float", "float"]"#));
    assert!(basis.contains("what the first reads or the last writes is not known apart"), "{basis}");
}

#[test]
fn medians_are_the_lower_of_two_and_absent_steps_count_as_nothing() {
    let of = |values: &[i64], steps| per_step::median(values.iter().map(|&value| Ns(value)).collect(), steps).get();
    assert_eq!((of(&[5, 1, 3], 3), of(&[4, 1, 3, 2], 4), of(&[], 0), of(&[], 3)), (3, 2, 0, 0));
    assert_eq!((of(&[5, 4], 3), of(&[5], 3), of(&[5, 4], 4), of(&[5, 4, 6], 5)), (4, 0, 0, 4));
    let sums = [(0, Ns(1)), (0, Ns(2)), (2, Ns(7))];
    assert_eq!(per_step::median_of_sums(sums.into_iter(), 3), Ns(3));
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
    // On a stream of its own: behind the last b it would only wait.
    sample.on_device(0, 9);
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
    let found = alone::alone(&trace, &Turns::of(&trace), &owner, 3);
    let ends = |owner: usize| -> Vec<(i64, i64)> {
        found.sets[owner].iter().flat_map(|(_, set)| set.intervals()).map(|interval| (interval.start.get(), interval.end.get())).collect()
    };
    assert_eq!((ends(0), ends(1), ends(2)), (vec![(0, 5), (12, 19)], vec![(20, 28)], Vec::new()));
    let parts: Vec<i64> = found.of_activity.iter().map(|part| part.get()).collect();
    assert_eq!(parts, [12, 0, 0, 8, 0]);
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
        let Alone { sets, of_activity } = alone::alone(&trace, &Turns::of(&trace), &owner, 3);
        for at in 0..80 {
            // Of each stream, whose turn it is: of what runs the one that started first, of equal starts the one that ends first.
            let first_of = |stream: i64| {
                let open = work.iter().enumerate().filter(|(_, of)| of.3 == stream && of.1 <= at && at < of.1 + of.2);
                open.min_by_key(|(row, of)| (of.1, of.2, *row)).map(|(_, of)| of.0)
            };
            let mut open: Vec<u32> = (0..3).filter_map(first_of).collect();
            open.sort_unstable();
            open.dedup();
            for (own, found) in sets.iter().enumerate() {
                let is_alone = open == [own as u32];
                prop_assert_eq!(found.iter().any(|(_, set)| set.contains(Ns(at))), is_alone, "owner {} at {}", own, at);
            }
        }
        for (own, found) in sets.iter().enumerate() {
            let whole: Ns = found.iter().map(|(_, set)| set.total()).sum();
            let parts: Ns = (0..owner.len()).filter(|&row| owner[row] == own as u32).map(|row| of_activity[row]).sum();
            prop_assert_eq!(parts, whole, "owner {}", own);
        }
        for (row, &part) in of_activity.iter().enumerate() {
            prop_assert!(part >= Ns::ZERO && part <= trace.activities.dur[row]);
        }
    }

    #[test]
    fn clipping_is_intersecting(a in prop::collection::vec((0_i64..100, 0_i64..20), 0..20), b in prop::collection::vec((0_i64..100, 0_i64..20), 0..20)) {
        let set = |list: Vec<(i64, i64)>| IntervalSet::from_unsorted(list.into_iter().map(|(start, dur)| Interval::new(Ns(start), Ns(dur))).collect());
        let (a, b) = (set(a), set(b));
        prop_assert_eq!(clipped(&a, &b), a.intersection(&b));
    }
}
