//! Steps of real traces and of generated ones whose structure is known.

use std::path::{Path, PathBuf};

use longpole_analysis::{
    Culprit, FoundBy, Part, Scope, ScopeSpec, Step, StepGroup, StepNote, StepOptions, StepTable, TraceIndex, Why, step_table, window_starts,
};
use longpole_trace::{
    Activity, ActivityId, ActivityKind, ApiCall, Detail, DeviceId, IntervalSet, Lane, LaneId, LaunchConfig, Ns, Range, RankInfo, ThreadId,
    Tid, Trace, TraceBuilder,
};
use proptest::prelude::*;

use crate::slow_reader;
use crate::torch_table::corpus;

#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
fn shared(name: &str) -> Option<PathBuf> {
    let root =
        std::env::var_os("LONGPOLE_SHARED").map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"), PathBuf::from);
    let path = root.join("corpus/kineto/public").join(name);
    if !path.exists() {
        eprintln!("skipped: {} is not there", path.display());
        return None;
    }
    Some(path)
}

pub(crate) fn find(trace: &Trace, ignore_ranges: bool) -> StepTable {
    let index = TraceIndex::new(trace);
    let table = step_table(&index, &Scope::whole(), &StepOptions { ignore_ranges, ..StepOptions::default() });
    check(trace, &table);
    check_numbers(&index, &table, ignore_ranges);
    table
}

/// The first, the middle and the last step of each group, left out ones included.
fn some_steps(table: &StepTable) -> impl Iterator<Item = (&StepGroup, &Step)> {
    table.groups.iter().flat_map(|group| {
        let all: Vec<&Step> = group.steps.iter().chain(group.left_out.iter().map(|left| &left.step)).collect();
        let mut at = vec![0, all.len() / 2, all.len() - 1];
        at.dedup();
        at.into_iter().map(move |at| (group, all[at])).collect::<Vec<_>>()
    })
}

/// The activities of a device in the scope of a step.
pub(crate) fn of_step(index: &TraceIndex<'_>, device: DeviceId, number: u32) -> Vec<ActivityId> {
    let trace = index.trace();
    let scope = Scope::resolve(index, &ScopeSpec { step: Some(u64::from(number)), ..ScopeSpec::default() }).unwrap();
    let on_device = |id: &ActivityId| trace.lanes[trace.activities.lane[id.index()].index()].device == device;
    (0..trace.activities.len()).map(ActivityId::from_index).filter(on_device).filter(|&id| scope.includes_activity(index, id)).collect()
}

/// The number that a table gives a step is the one that gives its work as a scope.
fn check_numbers(index: &TraceIndex<'_>, table: &StepTable, ignore_ranges: bool) {
    if table.notes.contains(&StepNote::NumberedApart) {
        assert!(ignore_ranges, "all steps of a trace are counted");
        return;
    }
    for (group, step) in some_steps(table) {
        let inside = of_step(index, group.device, step.number);
        let mut own = step.activities.clone();
        own.sort_unstable();
        if ignore_ranges {
            let held = own.iter().filter(|id| inside.binary_search(id).is_ok()).count();
            assert!(held * 10 >= own.len() * 9, "{} step {}: {held} of {}", group.name, step.number, own.len());
        } else {
            assert_eq!(inside, own, "{} step {}", group.name, step.number);
        }
    }
}

/// What must hold of every table: sums are exact, every activity has its row, layers lie in their step.
fn check(trace: &Trace, table: &StepTable) {
    let mut seen = vec![false; trace.activities.len()];
    for group in &table.groups {
        let total: Ns = group.rows.iter().map(|row| row.total_ns).sum();
        assert_eq!(total, group.total_busy_ns, "{}", group.name);
        assert_eq!(group.steps.iter().map(|step| step.busy_ns).sum::<Ns>(), group.total_busy_ns);
        assert_eq!(
            group.rows.iter().map(|row| row.calls).sum::<u64>(),
            group.steps.iter().map(|step| step.activities.len() as u64).sum::<u64>()
        );
        assert!(group.rows.iter().all(|row| row.min_ns <= row.ns_per_step && row.ns_per_step <= row.max_ns));
        assert!(group.steps.is_sorted_by_key(|step| step.number) && !group.steps.is_empty());
        for step in group.steps.iter().chain(group.left_out.iter().map(|left| &left.step)) {
            let of = |id: &ActivityId| longpole_trace::Interval::new(trace.activities.start[id.index()], trace.activities.dur[id.index()]);
            let union = IntervalSet::from_unsorted(step.activities.iter().map(of).collect());
            assert_eq!(step.busy_ns, union.total());
            assert!(step.busy_ns <= step.span_ns());
            for id in &step.activities {
                assert!(!std::mem::replace(&mut seen[id.index()], true), "an activity is in two steps");
            }
        }
        for step in &group.steps {
            assert_eq!(step.rows.len(), step.activities.len());
            for (id, row) in step.activities.iter().zip(&step.rows) {
                let row = &group.rows[*row as usize];
                assert!(row.place.is_some() || row.name == trace.activities.name[id.index()], "a row without place is of one kernel");
            }
            for layer in &step.layers {
                let inside = layer.first as usize..(layer.first + layer.count) as usize;
                assert!(step.rows[inside].iter().all(|&row| group.rows[row as usize].part == Part::Layer(layer.kind)));
            }
            assert!(step.layers.windows(2).all(|pair| pair[0].first + pair[0].count <= pair[1].first));
        }
        if let Some(layers) = &group.layers {
            for (number, kind) in layers.kinds.iter().enumerate() {
                let rows = &group.rows[kind.first_row as usize..(kind.first_row + kind.places) as usize];
                assert!(rows.iter().enumerate().all(|(at, row)| row.part == Part::Layer(number as u32) && row.place == Some(at as u32)));
            }
            assert_eq!(layers.kinds.iter().map(|kind| kind.count as usize).sum::<usize>(), layers.order.len());
            assert_eq!(group.strip.len(), layers.order.len());
        }
    }
    assert_eq!(seen.iter().filter(|seen| !**seen).count() as u64, table.activities_outside);
}

/// How often, and how many layers of how many places.
fn shape(group: &StepGroup) -> (usize, Vec<(u32, u32)>) {
    let kinds = group.layers.iter().flat_map(|layers| &layers.kinds);
    (group.steps.len(), kinds.map(|kind| (kind.count, kind.places)).collect())
}

fn shapes(table: &StepTable) -> Vec<(usize, Vec<(u32, u32)>)> {
    table.groups.iter().map(shape).collect()
}

#[test]
fn prefill_and_decode_steps_are_found_with_and_without_markers() {
    for (name, decode_steps) in [("qwen3_eager", 4), ("qwen3_item", 6)] {
        let trace = slow_reader::read(&corpus().join(format!("{name}.json.gz")));
        for ignore_ranges in [true, false] {
            let table = find(&trace, ignore_ranges);
            assert_eq!(shapes(&table), [(1, vec![(28, 57)]), (decode_steps, vec![(28, 58)])], "{name}");
            let by = if ignore_ranges { FoundBy::KernelSequence } else { FoundBy::Marker };
            assert!(table.groups.iter().all(|group| group.found_by == by));
            assert_eq!(table.activities_outside, 0);
        }
        let with_markers = find(&trace, false);
        assert_eq!(with_markers.groups.iter().map(|group| group.name.as_str()).collect::<Vec<_>>(), ["prefill", "decode_step"]);
        // Without markers the same activities make the same steps.
        let activities = |table: &StepTable| -> Vec<Vec<_>> {
            table.groups.iter().flat_map(|group| &group.steps).map(|step| step.activities.clone()).collect()
        };
        assert_eq!(activities(&find(&trace, true)), activities(&with_markers), "{name}");
    }
}

#[test]
fn graph_replays_are_steps() {
    let trace = slow_reader::read(&corpus().join("qwen3_graph.json.gz"));
    let table = find(&trace, true);
    assert_eq!(shapes(&table), [(12, vec![(28, 66)])]);
    assert_eq!((table.groups[0].found_by, table.activities_outside), (FoundBy::GraphReplay, 0));
    assert_eq!(shapes(&find(&trace, false)), [(12, vec![(28, 66)])]);
}

#[test]
fn one_kernel_between_steps_is_enough() {
    for (rank, prefill, decode) in [(0, 5, 6), (1, 18, 19)] {
        let trace = slow_reader::read(&corpus().join(format!("nccl_rank{rank}.json.gz")));
        for ignore_ranges in [true, false] {
            let table = find(&trace, ignore_ranges);
            assert_eq!(shapes(&table), [(1, vec![(8, prefill)]), (3, vec![(8, decode)])], "rank {rank}");
        }
    }
}

#[test]
fn repeats_with_nothing_around_are_steps() {
    let trace = slow_reader::read(&corpus().join("bad.json.gz"));
    let table = find(&trace, true);
    assert_eq!((shapes(&table), table.groups[0].activities_per_step), (vec![(6, vec![])], 7));
    assert!(table.notes.contains(&StepNote::RepeatsAreSteps));
    assert_eq!(shapes(&find(&trace, false)), [(6, vec![])]);
}

#[test]
fn public_traces_have_their_layers() {
    if let Some(path) = shared("tl_vllm_decode_full_graph.json.gz") {
        assert_eq!(shapes(&find(&slow_reader::read(&path), true)), [(1, vec![(12, 17), (12, 18)])]);
    }
    if let Some(path) = shared("tl_sglang_prefilldecode.json.gz") {
        assert_eq!(shapes(&find(&slow_reader::read(&path), true)), [(1, vec![(36, 14)])]);
    }
}

#[test]
fn every_trace_adds_up() {
    for name in ["cpuonly", "gpuonly", "qwen3_compile", "qwen3_stack"] {
        let trace = slow_reader::read(&corpus().join(format!("{name}.json.gz")));
        for ignore_ranges in [true, false] {
            find(&trace, ignore_ranges);
        }
    }
}

/// A program that launches kernels, some on side streams, all on one thread.
pub(crate) struct Model {
    pub(crate) builder: TraceBuilder,
    pub(crate) thread: ThreadId,
    pub(crate) lanes: Vec<LaneId>,
    /// Host time, and when each stream is free.
    pub(crate) now: i64,
    pub(crate) free: Vec<i64>,
    correlation: u64,
    random: u64,
}

impl Model {
    pub(crate) fn new(seed: u64) -> Self {
        let mut builder = TraceBuilder::new();
        let rank = builder.add_rank(RankInfo::default());
        let process = builder.process(rank, 1);
        let thread = builder.thread(process, Tid::Number(1));
        let device = builder.device(rank, 0);
        let lanes = (0..3).map(|stream| builder.lane(Lane { device, context: None, stream })).collect();
        Self { builder, thread, lanes, now: 0, free: vec![0; 3], correlation: 0, random: seed }
    }

    fn below(&mut self, bound: u64) -> u64 {
        // SplitMix64 (Steele, Lea and Flood, 2014).
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }

    pub(crate) fn call(&mut self, name: &str) {
        self.correlation += 1;
        let name = self.builder.trace_mut().strings.intern(name);
        let (thread, start, correlation) = (self.thread, Ns(self.now), Some(self.correlation));
        self.builder.push_api_call(ApiCall { name, thread, start, dur: Ns(1), correlation, external_id: None });
        self.now += 2;
    }

    /// A kernel of the last call.
    pub(crate) fn runs(&mut self, name: &str, stream: usize, blocks: u32, dur: i64) {
        let start = self.free[stream].max(self.now + 3);
        self.free[stream] = start + dur;
        let name = self.builder.trace_mut().strings.intern(name);
        let launch = LaunchConfig { grid: Some([blocks, 1, 1]), ..LaunchConfig::default() };
        let detail = Some(self.builder.detail(Detail::Launch(launch)));
        let (kind, lane, correlation) = (ActivityKind::Kernel, self.lanes[stream], Some(self.correlation));
        let (start, dur) = (Ns(start), Ns(dur));
        self.builder.push_activity(Activity { kind, name, lane, start, dur, correlation, external_id: None, detail, graph_node: None });
    }

    pub(crate) fn kernel(&mut self, name: &str, stream: usize, blocks: u32) {
        let dur = 4 + self.below(9) as i64;
        self.call("cudaLaunchKernel");
        self.runs(name, stream, blocks, dur);
    }

    /// Kernels of one part of the model, some of them on a side stream, with noise in one of `noise` if not zero.
    pub(crate) fn part(&mut self, part: &str, kernels: usize, blocks: u32, noise: u64) {
        for at in 0..kernels {
            let name = format!("{part}_{at}");
            match if noise > 0 { self.below(noise) } else { noise + 9 } {
                0 => {}
                1 => self.kernel("unexpected_fill", 0, 1),
                _ => self.kernel(&name, usize::from(at % 5 == 3), blocks),
            }
        }
    }

    pub(crate) fn range(&mut self, name: &str, start: i64) {
        let name = self.builder.trace_mut().strings.intern(name);
        self.builder.push_range(Range { name, thread: self.thread, start: Ns(start), dur: Ns(self.now - start) });
    }

    pub(crate) fn finish(self) -> Trace {
        self.builder.finish()
    }
}

/// A prefill in two chunks of different length, then decode steps, found by their kernels. One kernel in `noise` is missing and one has a
/// stranger instead, if that is not zero.
fn prefills_and_decode_steps(seed: u64, layers: u32, (attention, mlp): (usize, usize), decodes: usize, noise: u64) -> StepTable {
    let mut model = Model::new(seed);
    for blocks in [512, 300].into_iter().chain((0..decodes).map(|_| 1)) {
        let kind = if blocks == 1 { "decode" } else { "prefill" };
        model.part("embed", 6, blocks, 0);
        for _ in 0..layers {
            model.part(&format!("attention_{kind}"), attention, blocks, noise);
            model.part("mlp", mlp, blocks, noise);
        }
        model.part("head", 5, blocks, 0);
        model.now += 400;
    }
    find(&model.finish(), true)
}

#[test]
fn noise_seldom_hides_a_prefill_or_a_decode_step() {
    // Where noise hits the very end of a block, what stands between two blocks is no longer told from it: a few in a thousand.
    let mut off = Vec::new();
    for seed in 0..300_u64 {
        let mut random = Model::new(seed ^ 0x5eed);
        let (layers, decodes) = (4 + random.below(26) as u32, 2 + random.below(4) as usize);
        let parts = (5 + random.below(15) as usize, 5 + random.below(15) as usize);
        let table = prefills_and_decode_steps(seed, layers, parts, decodes, 400);
        let counts: Vec<usize> = table.groups.iter().map(|group| group.steps.len()).collect();
        let has_all = |group: &StepGroup| group.layers.as_ref().is_some_and(|found| found.order.len() == layers as usize);
        if counts != [1, 1, decodes] || !table.groups.iter().all(has_all) {
            off.push((seed, layers, parts, shapes(&table)));
        }
    }
    assert!(off.len() <= MOST_OFF, "{} of 300: {off:?}", off.len());
}

/// Of those 300.
const MOST_OFF: usize = 3;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn generated_prefills_and_decode_steps_are_recovered(
        seed in any::<u64>(), layers in 4_u32..30, attention in 5_usize..20, mlp in 5_usize..20, decodes in 2_usize..6
    ) {
        let table = prefills_and_decode_steps(seed, layers, (attention, mlp), decodes, 0);
        let counts: Vec<usize> = table.groups.iter().map(|group| group.steps.len()).collect();
        prop_assert_eq!(&counts, &[1, 1, decodes], "{:?}", shapes(&table));
        for group in &table.groups {
            prop_assert_eq!(shape(group).1, vec![(layers, (attention + mlp) as u32)]);
        }
    }

    #[test]
    fn layers_of_a_mixture_of_experts_are_recovered(seed in any::<u64>(), layers in 6_u32..20, steps in 2_usize..4) {
        let mut model = Model::new(seed);
        for _ in 0..steps {
            model.part("embed", 5, 8, 0);
            for _ in 0..layers {
                model.part("flash_attn", 7, 8, 0);
                // Each expert that some token chose runs its own kernels.
                for _ in 0..4 + model.below(10) {
                    model.part("expert", 4, 8, 0);
                }
                model.part("combine", 3, 8, 0);
            }
            model.part("head", 4, 8, 0);
            model.now += 400;
        }
        let table = find(&model.finish(), true);
        prop_assert_eq!(shapes(&table), vec![(steps, vec![(layers, 7 + 4 + 3)])]);
    }

    #[test]
    fn alternating_kinds_are_recovered(seed in any::<u64>(), pairs in 3_u32..15) {
        let mut model = Model::new(seed);
        for _ in 0..3 {
            model.part("embed", 5, 8, 0);
            for _ in 0..pairs {
                model.part("sliding", 4, 8, 0);
                model.part("mlp", 12, 8, 0);
                model.part("full", 6, 8, 0);
                model.part("mlp", 12, 8, 0);
            }
            model.part("head", 4, 8, 0);
            model.now += 400;
        }
        let table = find(&model.finish(), true);
        prop_assert_eq!(table.groups.len(), 1);
        prop_assert_eq!(shape(&table.groups[0]), (3, vec![(pairs, 16), (pairs, 18)]));
    }
}

#[test]
fn random_kernels_have_no_steps() {
    for seed in 0..60 {
        let mut model = Model::new(seed);
        for _ in 0..1_500 {
            let name = format!("kernel_{}", model.below(2 + seed % 49));
            model.kernel(&name, 0, 4);
        }
        let table = find(&model.finish(), true);
        assert_eq!((table.groups.len(), table.notes), (0, vec![StepNote::NoSteps]), "seed {seed}");
    }
}

#[test]
fn the_innermost_marker_around_whole_steps_is_taken_and_numbers_are_stars() {
    let mut model = Model::new(1);
    let loop_start = model.now;
    for step in 0..6 {
        let start = model.now;
        model.part("embed", 3, 4, 0);
        for layer in 0..8 {
            let layer_start = model.now;
            model.part("layer", 9, 4, 0);
            model.range(&format!("layer {layer}"), layer_start);
        }
        model.part("head", 3, 4, 0);
        model.range(&format!("step {step} of request 7"), start);
        model.now += 50;
    }
    model.range("serve", loop_start);
    let table = find(&model.finish(), false);
    assert_eq!(shapes(&table), [(6, vec![(8, 9)])]);
    assert_eq!((table.groups[0].name.as_str(), table.groups[0].found_by), ("step * of request 7", FoundBy::Marker));
}

/// Steps of one marker, so many inside each of these ranges, which all stand in one range more each. All have the same kernels.
fn surrounded(names: &[&str], steps: usize) -> Model {
    let mut model = Model::new(6);
    for name in names {
        let start = model.now;
        for _ in 0..steps {
            let step = model.now;
            model.part("embed", 3, 4, 0);
            for _ in 0..8 {
                model.part("layer", 9, 4, 0);
            }
            model.range("decode", step);
            model.now += 50;
        }
        model.range(name, start);
        model.now += 5;
        model.range("window", start - 5);
        model.now += 500;
    }
    model
}

#[test]
fn ranges_around_steps_tell_two_models_apart() {
    let names = |table: &StepTable| table.groups.iter().map(|group| (group.name.clone(), group.steps.len())).collect::<Vec<_>>();
    let named = |all: &[(&str, usize)]| all.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect::<Vec<_>>();
    let of = |around: &[&str], steps: usize| find(&surrounded(around, steps).finish(), false);
    let two = of(&["Qwen3-4B", "Qwen3-8B", "Qwen3-4B"], 5);
    assert_eq!(names(&two), named(&[("Qwen3-4B > decode", 10), ("Qwen3-8B > decode", 5)]));
    assert!(two.groups.iter().all(|group| group.found_by == FoundBy::Marker));
    // Rounds of something are no models, and one model needs no name.
    assert_eq!(names(&of(&["epoch 1", "epoch 2", "epoch 3"], 5)), named(&[("decode", 15)]));
    assert_eq!(names(&of(&["Qwen3-4B", "Qwen3-4B"], 5)), named(&[("decode", 10)]));
    // A range around one step says nothing of several.
    assert_eq!(names(&of(&["warm", "hot"], 1)).iter().map(|(_, count)| count).sum::<usize>(), 2);
    let many: Vec<String> = (0..40).map(|request| format!("r{request}x")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert_eq!(names(&of(&many, 3)), named(&[("decode", 120)]));
    // A filter takes markers, and what is around them names them still.
    let trace = surrounded(&["A", "B"], 4).finish();
    let index = TraceIndex::new(&trace);
    let table = step_table(&index, &Scope::whole(), &StepOptions { filter: Some(&|name| name == "decode"), ..StepOptions::default() });
    assert_eq!(names(&table), named(&[("A > decode", 4), ("B > decode", 4)]));
}

#[test]
fn the_second_half_of_each_window_is_kept() {
    let trace = surrounded(&["A", "A", "A"], 5).finish();
    let index = TraceIndex::new(&trace);
    let starts = window_starts(&trace, "window");
    assert_eq!((starts.len(), window_starts(&trace, "nothing").len()), (3, 0));
    let table = |last_half, windows: &[Ns]| {
        let table = step_table(&index, &Scope::whole(), &StepOptions { last_half, windows, ..StepOptions::default() });
        check(&trace, &table);
        assert_eq!((table.groups.len(), table.last_half), (1, last_half));
        table.groups.into_iter().next().unwrap()
    };
    let numbers = |group: &StepGroup| group.steps.iter().map(|step| step.number).collect::<Vec<_>>();
    let by_window = table(true, &starts);
    assert_eq!((numbers(&by_window), by_window.half_steps), (vec![3, 4, 8, 9, 13, 14], 6));
    assert_eq!(by_window.left_out.iter().map(|left| (left.step.number, left.why)).collect::<Vec<_>>().len(), 9);
    assert!(by_window.left_out.iter().all(|left| left.why == Why::FirstHalf));
    assert_eq!(Some(by_window.total_busy_ns), by_window.second_half_busy_ns);
    // Nothing follows the last step of a window.
    assert_eq!(by_window.steps.iter().filter(|step| step.period_ns.is_none()).map(|step| step.number).collect::<Vec<_>>(), [4, 9, 14]);
    let whole = table(true, &[]);
    assert_eq!((numbers(&whole), whole.half_steps), ((8..15).collect(), 7));
    let all = table(false, &starts);
    assert_eq!((all.steps.len(), all.half_steps, all.left_out.len()), (15, 6, 0));
    assert_eq!((all.first_half_busy_ns, all.second_half_busy_ns), (by_window.first_half_busy_ns, by_window.second_half_busy_ns));
}

#[test]
fn one_marker_around_prefill_and_decode_steps_holds_several_steps() {
    let mut model = Model::new(2);
    let start = model.now;
    for blocks in [64, 1, 1, 1] {
        model.part("embed", 4, blocks, 0);
        for _ in 0..8 {
            model.part("layer", 9, blocks, 0);
        }
        model.part("head", 4, blocks, 0);
        model.now += 200;
    }
    model.range("generate", start);
    let table = find(&model.finish(), false);
    assert_eq!(shapes(&table), [(1, vec![(8, 9)]), (3, vec![(8, 9)])]);
    assert!(matches!(&table.notes[..], [StepNote::MarkerHoldsSeveralSteps { marker }] if marker == "generate"));
}

#[test]
fn warm_ups_are_left_out_and_a_slow_step_is_named() {
    let mut model = Model::new(3);
    for step in 0..10 {
        let start = model.now;
        for at in 0..20 {
            let dur = match (step, at) {
                (0, _) => 100,
                (6, 11) => 2_000,
                _ => 10,
            };
            if step == 0 && at == 7 {
                model.call("cudaLaunchKernel");
                model.runs("autotune", 0, 4, 500);
            }
            model.call("cudaLaunchKernel");
            model.runs(&format!("kernel_{at}"), 0, 4, dur);
        }
        model.now = model.free[0] + 30;
        model.range(&format!("step {step}"), start);
    }
    let table = find(&model.finish(), false);
    let group = &table.groups[0];
    assert_eq!((table.groups.len(), group.steps.len()), (1, 9));
    assert_eq!(group.left_out.iter().map(|left| (left.step.number, left.why)).collect::<Vec<_>>(), [(0, Why::Slow)]);
    let slow: Vec<_> =
        group.slow_steps.iter().map(|slow| (group.steps[slow.step as usize].number, slow.culprit, slow.culprit_ns)).collect();
    assert_eq!(slow, [(6, Culprit::Row(11), Ns(1_990))]);
    assert!(group.notes.iter().any(|note| matches!(note, StepNote::WarmUpLeftOut { steps: 1, .. })));
}

#[test]
fn several_graph_launches_make_one_step() {
    let mut model = Model::new(4);
    for _ in 0..5 {
        for layer in 0..10 {
            // A piece of the graph, then attention launched eagerly.
            model.call("cudaGraphLaunch");
            for at in 0..9 {
                model.runs(&format!("piece_{}_{at}", usize::from(layer > 0)), 0, 4, 5);
            }
            model.kernel("flash_attn", 0, 4);
        }
        model.call("cudaGraphLaunch");
        for at in 0..6 {
            model.runs(&format!("tail_{at}"), 0, 4, 5);
        }
        model.now += 300;
    }
    let table = find(&model.finish(), true);
    assert_eq!(table.groups.len(), 1, "{:?}", shapes(&table));
    assert_eq!((table.groups[0].steps.len(), table.groups[0].found_by), (5, FoundBy::GraphReplay));
    assert_eq!(table.groups[0].activities_per_step, 106);
}

#[test]
fn a_filter_names_the_markers() {
    let mut model = Model::new(5);
    for _ in 0..4 {
        let start = model.now;
        model.part("a", 10, 4, 0);
        model.range("one", start);
        let start = model.now;
        model.part("b", 40, 4, 0);
        model.range("two", start);
    }
    let trace = model.finish();
    let index = TraceIndex::new(&trace);
    let table = step_table(&index, &Scope::whole(), &StepOptions { filter: Some(&|name| name == "one"), ..StepOptions::default() });
    check(&trace, &table);
    assert_eq!(table.groups.iter().map(|group| (group.name.as_str(), group.steps.len())).collect::<Vec<_>>(), [("one", 4)]);
    assert_eq!(table.activities_outside, 160);
}
