use std::collections::{BTreeMap, BTreeSet};

use longpole_trace::{ActivityId, MemoryEvent, MemoryPlace, Ns, ThreadId, Trace};
use proptest::prelude::*;

use super::*;
use crate::idle::idle_stretches;
use crate::index::HostRow;
use crate::sample::Sample;
use crate::scope::ScopeSpec;
use crate::steps::{StepOptions, step_table};
use crate::triage::{TriageOptions, triage};

/// An overview and what it was made from.
struct Looked<'t> {
    index: TraceIndex<'t>,
    steps: StepTable,
    idle: IdleTable,
    triage: Triage,
    overview: Overview,
}

fn look_at<'t>(trace: &'t Trace, scope: &ScopeSpec, options: &OverviewOptions) -> Looked<'t> {
    let index = TraceIndex::new(trace);
    let scope = Scope::resolve(&index, scope).unwrap();
    let steps = step_table(&index, &scope, &StepOptions::default());
    let triage = triage(&index, &scope, &TriageOptions::default());
    let (idle, stretches) = idle_stretches(&index, &scope);
    let overview = {
        let sources = OverviewSources { triage: &triage, steps: &steps, idle: &idle, stretches: &stretches };
        overview(&index, &scope, &sources, options)
    };
    Looked { index, steps, idle, triage, overview }
}

fn look(trace: &Trace) -> Looked<'_> {
    look_at(trace, &ScopeSpec::default(), &OverviewOptions::default())
}

fn lane(overview: &Overview, kind: LaneKind, at: usize) -> &OverviewLane {
    overview.lanes.iter().filter(|lane| lane.kind == kind).nth(at).unwrap()
}

/// Two steps of a range, each with operators that launch kernels on two streams.
fn steps_of(steps: i64, kernels: i64) -> Trace {
    let mut sample = Sample::new();
    for step in 0..steps {
        let from = step * 100_000;
        sample.range("decode", from, 90_000);
        for kernel in 0..kernels {
            let at = from + 1_000 + kernel * 2_000;
            sample.op("aten::mm", at, 900);
            sample.on_device(0, if kernel % 4 == 3 { 9 } else { 7 });
            sample.launch("cudaLaunchKernel", at + 100, 200).kernel(if kernel % 2 == 0 { "gemm" } else { "norm" }, at + 500, 1_200);
        }
    }
    sample.finish()
}

#[test]
fn lanes_hold_what_there_is() {
    let trace = steps_of(3, 8);
    let looked = look(&trace);
    let overview = &looked.overview;
    let kinds: Vec<(LaneKind, u64)> = overview.lanes.iter().map(|lane| (lane.kind, lane.total)).collect();
    let gaps = kinds.iter().find(|(kind, _)| *kind == LaneKind::Gaps).unwrap().1;
    assert_eq!(
        kinds,
        [
            (LaneKind::Steps, 3),
            (LaneKind::Gaps, gaps),
            (LaneKind::Stream, 18),
            (LaneKind::Stream, 6),
            (LaneKind::Ranges, 3),
            (LaneKind::Ops, 24),
            (LaneKind::Calls, 24)
        ]
    );
    assert_eq!(overview.events_kept() as u64, overview.events_total);
    // Every kernel leads to its own launch, and names the operator around that.
    let calls = lane(overview, LaneKind::Calls, 0);
    for event in overview.lanes.iter().filter(|lane| lane.kind == LaneKind::Stream).flat_map(|lane| &lane.events) {
        let call = &calls.events[(event.launch.unwrap() - calls.first) as usize];
        assert_eq!((call.start + Ns(400), event.owner), (event.start, trace.strings.find("aten::mm")));
    }
    // The lanes of the host nest: a range around operators, calls inside them, each kind on its own rows.
    assert!(overview.lanes.iter().filter(|lane| lane.kind != LaneKind::Stream).all(|lane| lane.rows == 1));
}

#[test]
fn gaps_are_the_idle_table() {
    let trace = steps_of(4, 10);
    let looked = look(&trace);
    let gaps = lane(&looked.overview, LaneKind::Gaps, 0);
    assert_eq!(Some(gaps.busy), looked.idle.idle_ns);
    for row in &looked.idle.causes {
        let of_cause = gaps.events.iter().filter(|event| event.name == EventName::Cause(row.cause));
        let (count, sum) = of_cause.fold((0, Ns::ZERO), |(count, sum), event| (count + 1, sum + event.dur));
        assert_eq!((count, sum), (row.intervals, row.idle_ns), "{:?}", row.cause);
    }
}

/// Nested operators, overlapping kernels, and work without a launch, made of small numbers.
fn mixed(numbers: &[(u8, u8, u8)]) -> Trace {
    let mut sample = Sample::new();
    let mut at = 0;
    for &(kind, start, dur) in numbers {
        at += i64::from(start % 40);
        let dur = i64::from(dur % 60);
        match kind % 6 {
            0 => {
                sample.range(if dur % 2 == 0 { "a" } else { "b" }, at, dur);
            }
            1 => {
                sample.op(if dur % 3 == 0 { "x" } else { "y" }, at, dur);
            }
            2 => {
                sample.on_device(0, 7);
                sample.launch("cudaLaunchKernel", at, 3).kernel("k", at + 5, dur).kernel("l", at + 9, dur / 2);
            }
            3 => {
                sample.on_device(1, 7);
                sample.launch("cudaGraphLaunch", at, 2).kernel("m", at + 1, dur);
            }
            4 => {
                sample.on_device(0, i64::from(start % 3));
                sample.orphan("k", at, dur);
            }
            _ => {
                sample.on_thread(i64::from(start % 3));
            }
        }
    }
    sample.finish()
}

/// Blocks of a level, found by counting nanoseconds.
fn slow_level(lane: &OverviewLane, resolution: Ns) -> Vec<Block> {
    let mut blocks = Vec::new();
    for row in 0..lane.rows {
        let events: Vec<&OverviewEvent> = lane.events.iter().filter(|event| event.row == row).collect();
        let mut seen: BTreeSet<i64> = BTreeSet::new();
        let mut first = 0;
        while first < events.len() {
            let from = events[first].start;
            let reach = |upto: usize| events[first..upto].iter().map(|event| event.start + event.dur).max().unwrap();
            let mut upto = first + 1;
            while upto < events.len() && reach(upto + 1) - from <= resolution {
                upto += 1;
            }
            let mut own: BTreeMap<EventName, usize> = BTreeMap::new();
            let mut order: Vec<EventName> = Vec::new();
            for event in &events[first..upto] {
                let fresh = (event.start.get()..(event.start + event.dur).get()).filter(|at| seen.insert(*at)).count();
                if fresh > 0 && !order.contains(&event.name) {
                    order.push(event.name);
                }
                *own.entry(event.name).or_default() += fresh;
            }
            let most = own.values().copied().max().unwrap();
            let name = order.iter().copied().find(|name| own[name] == most).unwrap_or(events[first].name);
            blocks.push(Block {
                start: from,
                dur: reach(upto) - from,
                row,
                count: (upto - first) as u64,
                busy: Ns(own.values().sum::<usize>() as i64),
                name,
            });
            first = upto;
        }
    }
    blocks.sort_by_key(|block| (block.start, block.row));
    blocks
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn levels_are_those_found_by_counting(numbers in prop::collection::vec(any::<(u8, u8, u8)>(), 1..160)) {
        let trace = mixed(&numbers);
        // All events are kept, so that the slow reference has them.
        let looked = look(&trace);
        for lane in &looked.overview.lanes {
            prop_assert_eq!(lane.total as usize, lane.events.len());
            prop_assert!(lane.events.is_sorted_by_key(|event| event.start));
            let mut finer = lane.events.len();
            for level in &lane.levels {
                prop_assert_eq!(&level.blocks, &slow_level(lane, level.resolution));
                prop_assert_eq!(level.blocks.iter().map(|block| block.count).sum::<u64>(), lane.total);
                prop_assert_eq!(level.blocks.iter().map(|block| block.busy).sum::<Ns>(), lane.busy);
                let window = looked.overview.window.len().get();
                for row in 0..lane.rows {
                    let of_row = level.blocks.iter().filter(|block| block.row == row).count() as i64;
                    prop_assert!(of_row <= 2 * (window / level.resolution.get() + 1) + 1, "{} {:?}", of_row, level.resolution);
                }
                prop_assert!(level.blocks.len() < finer);
                finer = level.blocks.len();
            }
        }
    }

    #[test]
    fn sums_are_those_of_the_trace(numbers in prop::collection::vec(any::<(u8, u8, u8)>(), 1..160), nodes in 1_usize..40) {
        let trace = mixed(&numbers);
        let options = OverviewOptions { icicle_nodes: nodes, ..OverviewOptions::default() };
        let looked = look_at(&trace, &ScopeSpec::default(), &options);
        let device: Ns = trace.activities.dur.iter().copied().sum();
        let tree = &looked.overview.icicle;
        if let Some(root) = tree.first() {
            prop_assert_eq!(root.device_ns, device);
            // A parent comes before its children, and has no less device time than they together.
            for (at, node) in tree.iter().enumerate() {
                prop_assert!(node.parent.is_none_or(|parent| (parent as usize) < at));
                let of_children: Ns = tree.iter().filter(|child| child.parent == Some(at as u32)).map(|child| child.device_ns).sum();
                prop_assert!(of_children <= node.device_ns);
            }
            let deepest = 96;
            prop_assert!(tree.len() <= 2 * (nodes + deepest) + 2);
        } else {
            prop_assert_eq!(device, Ns::ZERO);
        }
        // What is idle and what is not adds up, whatever the lanes are split in.
        let gaps: Ns = looked.overview.lanes.iter().filter(|lane| lane.kind == LaneKind::Gaps).map(|lane| lane.busy).sum();
        prop_assert_eq!(gaps, looked.idle.idle_ns.unwrap_or(Ns::ZERO));
        for curve in looked.overview.curves.iter().filter(|curve| curve.kind == CurveKind::QueueDepth) {
            prop_assert!(curve.points.is_sorted_by_key(|point| point.0));
        }
    }

    #[test]
    fn windows_are_complete(numbers in prop::collection::vec(any::<(u8, u8, u8)>(), 40..200), room in 4_usize..60) {
        let trace = mixed(&numbers);
        let all = look(&trace).overview;
        let some = look_at(&trace, &ScopeSpec::default(), &OverviewOptions { events: room, ..OverviewOptions::default() }).overview;
        prop_assert_eq!(all.lanes.len(), some.lanes.len());
        let mut first = 0;
        for (all, some) in all.lanes.iter().zip(&some.lanes) {
            prop_assert_eq!((all.total, all.busy, &all.levels), (some.total, some.busy, &some.levels));
            prop_assert_eq!(some.first, first);
            first += some.events.len() as u32;
            prop_assert!(some.complete.windows(2).all(|pair| pair[0].end < pair[1].start));
            let inside = |event: &&OverviewEvent| {
                some.complete.iter().any(|window| event.start <= window.end && window.start <= event.start + event.dur)
            };
            let origins = |events: Vec<&OverviewEvent>| events.iter().map(|event| event.origin).collect::<Vec<_>>();
            prop_assert_eq!(origins(all.events.iter().filter(inside).collect()), origins(some.events.iter().collect()));
        }
        // A kept launch is the launch.
        let index = TraceIndex::new(&trace);
        let numbered: Vec<&OverviewEvent> = some.lanes.iter().flat_map(|lane| &lane.events).collect();
        for event in &numbered {
            if let (Some(launch), EventOrigin::Activity(activity)) = (event.launch, event.origin) {
                let EventOrigin::Node(node) = numbered[launch as usize].origin else { panic!("no host event") };
                let call = index.links().call(activity).unwrap();
                prop_assert_eq!(index.tree().api_node(call), Some(node));
            }
        }
    }
}

#[test]
fn a_long_trace_keeps_whole_steps_and_stays_small() {
    let trace = steps_of(60, 40);
    let options = OverviewOptions { events: 1_500, blocks: 2_000, ..OverviewOptions::default() };
    let looked = look_at(&trace, &ScopeSpec::default(), &options);
    let overview = &looked.overview;
    assert!(overview.events_total > 8_000 && overview.events_kept() < 1_700, "{} of {}", overview.events_kept(), overview.events_total);
    let group = &looked.steps.groups[0];
    let slowest = group.steps.iter().max_by_key(|step| (step.span_ns(), std::cmp::Reverse(step.number))).unwrap();
    let stream = lane(overview, LaneKind::Stream, 0);
    let holds = |step: &crate::steps::Step| stream.complete.iter().any(|window| window.start <= step.start && step.end <= window.end);
    assert!(holds(slowest) && group.steps.iter().any(|step| !holds(step)));
    // The launches of what is kept are kept.
    assert!(stream.events.iter().all(|event| event.launch.is_some()));
    assert!(stream.levels.iter().all(|level| level.blocks.len() <= 2_000));
}

#[test]
fn moments_lead_to_what_they_name() {
    let trace = steps_of(5, 12);
    let looked = look(&trace);
    let overview = &looked.overview;
    let events: Vec<&OverviewEvent> = overview.lanes.iter().flat_map(|lane| &lane.events).collect();
    let mut seen = BTreeSet::new();
    for moment in &overview.moments {
        let (lane, event) = (&overview.lanes[moment.lane.unwrap() as usize], events[moment.event.unwrap() as usize]);
        assert!(moment.start <= moment.end && overview.window.start <= moment.start && moment.end <= overview.window.end);
        assert_eq!((event.start, event.start + event.dur), (moment.start, moment.end), "{moment:?}");
        assert!((lane.first..lane.first + lane.events.len() as u32).contains(&moment.event.unwrap()));
        let kind = match &moment.subject {
            MomentSubject::Smell(at) => {
                assert!((*at as usize) < looked.triage.smells.len());
                continue;
            }
            MomentSubject::Cause(cause) => {
                assert_eq!(event.name, EventName::Cause(*cause));
                LaneKind::Gaps
            }
            MomentSubject::Step(..) => LaneKind::Steps,
            MomentSubject::Kernel(name) | MomentSubject::Op(name) => {
                assert_eq!(event.name, EventName::Text(*name));
                if matches!(moment.subject, MomentSubject::Kernel(_)) { LaneKind::Stream } else { LaneKind::Ops }
            }
            MomentSubject::Range(name) => {
                assert_eq!(trace.strings.find(name).map(EventName::Text), Some(event.name));
                LaneKind::Ranges
            }
        };
        assert_eq!(lane.kind, kind);
        seen.insert(kind);
    }
    assert_eq!(seen.len(), 5, "{seen:?}");
}

#[test]
fn curves_keep_their_peaks() {
    let mut sample = Sample::new();
    for at in 0..2_000_i64 {
        // Launches run ahead of a busy device, but for the last third.
        let start = if at < 1_300 { at * 20 + 10 } else { at * 20 + 4 };
        sample.launch("cudaLaunchKernel", at * 10, 2).kernel("k", start, 19);
    }
    for at in 0..2_000_i64 {
        let total = if at == 777 { 5_000 } else { 100 + at as u64 };
        sample.builder.push_memory_event(MemoryEvent {
            thread: ThreadId(0),
            start: Ns(at * 10),
            bytes: 1,
            place: MemoryPlace::Device,
            device: Some(0),
            total_allocated: Some(total),
            total_reserved: None,
        });
    }
    let trace = sample.finish();
    let looked = look_at(&trace, &ScopeSpec::default(), &OverviewOptions { curve_slices: 20, ..OverviewOptions::default() });
    let curves = &looked.overview.curves;
    let kinds: Vec<(CurveKind, usize)> = curves.iter().map(|curve| (curve.kind, curve.points.len())).collect();
    assert!(kinds.iter().all(|(_, points)| (2..=60).contains(points)), "{kinds:?}");
    assert_eq!(kinds.iter().map(|(kind, _)| *kind).collect::<Vec<_>>(), [CurveKind::QueueDepth, CurveKind::MemoryAllocated]);
    let most = |at: usize| curves[at].points.iter().map(|point| point.1).max();
    assert_eq!(most(0), Some(looked.idle.queue.max_depth));
    assert_eq!(curves[0].points.last().map(|point| point.1), Some(0), "nothing is left in the queue");
    assert_eq!((most(1), curves[1].points[0].1, curves[1].points.last().unwrap().1), (Some(5_000), 100, 2_099));
}

#[test]
fn a_scope_shows_its_own_alone() {
    let trace = steps_of(6, 10);
    let spec = ScopeSpec { step: Some(2), ..ScopeSpec::default() };
    let looked = look_at(&trace, &spec, &OverviewOptions::default());
    let count = |kind: LaneKind| looked.overview.lanes.iter().filter(|lane| lane.kind == kind).map(|lane| lane.total).sum::<u64>();
    assert_eq!((count(LaneKind::Ranges), count(LaneKind::Ops), count(LaneKind::Stream)), (1, 10, 10));
    let window = looked.overview.window;
    assert!(window.start == Ns(200_000) && window.end <= Ns(295_000), "{window:?}");
    let device: Ns = (0..trace.activities.len())
        .map(ActivityId::from_index)
        .filter(|&id| {
            looked.index.links().call(id).is_some_and(|call| (200_000..300_000).contains(&trace.api_calls.start[call.index()].get()))
        })
        .map(|id| trace.activities.dur[id.index()])
        .sum();
    assert_eq!(looked.overview.icicle[0].device_ns, device);
}

#[test]
fn nothing_is_nothing() {
    let trace = Sample::new().finish();
    let looked = look(&trace);
    assert!(looked.overview.lanes.is_empty() && looked.overview.icicle.is_empty() && looked.overview.curves.is_empty());
    let mut sample = Sample::new();
    sample.op("alone", 5, 0);
    let trace = sample.finish();
    let looked = look(&trace);
    let ops = lane(&looked.overview, LaneKind::Ops, 0);
    assert_eq!((ops.total, ops.busy, ops.levels.len()), (1, Ns::ZERO, 0));
    assert_eq!(looked.overview.icicle.iter().map(|node| node.kind).collect::<Vec<_>>(), [IcicleKind::Root, IcicleKind::Op]);
}

#[test]
fn deep_nesting_and_much_at_once_share_the_last_row() {
    let mut sample = Sample::new();
    for depth in 0..200_i64 {
        // An only child of its own name would be folded.
        sample.op(if depth % 2 == 0 { "even" } else { "odd" }, depth, 1_000 - 2 * depth);
        sample.orphan("k", depth, 5_000);
    }
    let trace = sample.finish();
    let looked = look(&trace);
    let overview = &looked.overview;
    assert_eq!((lane(overview, LaneKind::Ops, 0).rows, lane(overview, LaneKind::Stream, 0).rows), (48, 48));
    let deepest = overview.icicle.iter().filter(|node| node.kind == IcicleKind::Op).count();
    assert!(deepest <= 96, "{deepest}");
    let tree = looked.index.tree();
    assert_eq!(
        tree.nodes().filter(|&node| matches!(tree.row(node), HostRow::Op(_))).count() as u64,
        lane(overview, LaneKind::Ops, 0).total
    );
}
