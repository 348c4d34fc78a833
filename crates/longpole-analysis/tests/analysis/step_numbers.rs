//! The number of a step is the same wherever it is read, and `--step` takes it.

use longpole_analysis::{
    FoundBy, GroupBy, Scope, ScopeError, ScopeSpec, StepNote, StepOptions, StepTable, TraceIndex, op_table, step_table,
};
use longpole_trace::{Activity, ActivityKind, HostOp, Lane, Ns, Trace};

use crate::steps::{Model, find, of_step};

fn step(number: u64) -> ScopeSpec {
    ScopeSpec { step: Some(number), ..ScopeSpec::default() }
}

/// Numbers of all steps kept, group by group.
fn numbers(table: &StepTable) -> Vec<(String, Vec<u32>)> {
    table.groups.iter().map(|group| (group.name.clone(), group.steps.iter().map(|step| step.number).collect())).collect()
}

fn layers(model: &mut Model, kind: &str, blocks: u32) {
    model.part("embed", 2, blocks, 0);
    for _ in 0..6 {
        model.part(kind, 7, blocks, 0);
    }
    model.part("head", 2, blocks, 0);
}

/// A prefill and decode steps in ranges, with `names` for the latter, in a loop.
fn prefill_and_decodes(names: &[&str]) -> Trace {
    let mut model = Model::new(1);
    layers(&mut model, "prefill", 300);
    model.range("prefill", 0);
    for name in names {
        model.now += 300;
        let start = model.now;
        layers(&mut model, "decode", 1);
        model.range(name, start);
    }
    model.finish()
}

#[test]
fn a_prefill_counts_and_a_scope_does_not_count_anew() {
    let trace = prefill_and_decodes(&["decode"; 5]);
    assert_eq!(numbers(&find(&trace, false)), [("prefill".to_owned(), vec![0]), ("decode".to_owned(), vec![1, 2, 3, 4, 5])]);
    let index = TraceIndex::new(&trace);
    let spec = ScopeSpec { range: Some("decode".to_owned()), ..ScopeSpec::default() };
    let table = step_table(&index, &Scope::resolve(&index, &spec).unwrap(), &StepOptions::default());
    assert_eq!(numbers(&table), [("decode".to_owned(), vec![1, 2, 3, 4, 5])]);
    let table = step_table(&index, &Scope::resolve(&index, &step(4)).unwrap(), &StepOptions::default());
    assert_eq!(numbers(&table), [("decode".to_owned(), vec![4])]);
    // Found by their kernels alone they are the same steps.
    let table = step_table(&index, &Scope::whole(), &StepOptions { ignore_ranges: true, ..StepOptions::default() });
    assert_eq!(numbers(&table).iter().flat_map(|(_, numbers)| numbers).copied().collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5]);
    assert!(!table.notes.contains(&StepNote::NumberedApart));
}

#[test]
fn parts_of_steps_have_numbers_of_their_own_and_say_so() {
    let mut model = Model::new(2);
    for _ in 0..4 {
        let start = model.now;
        for _ in 0..3 {
            let part = model.now;
            model.part("block", 9, 1, 0);
            model.range("block", part);
        }
        model.part("head", 20, 1, 0);
        model.range("decode", start);
    }
    let trace = model.finish();
    assert_eq!(numbers(&find(&trace, false)), [("decode".to_owned(), vec![0, 1, 2, 3])]);
    let only_blocks = |name: &str| name == "block";
    let table =
        step_table(&TraceIndex::new(&trace), &Scope::whole(), &StepOptions { filter: Some(&only_blocks), ..StepOptions::default() });
    assert_eq!(numbers(&table), [("block".to_owned(), (0..12).collect())]);
    assert!(table.notes.contains(&StepNote::NumberedApart), "{:?}", table.notes);
}

#[test]
fn a_profiler_step_around_each_step_gives_it_its_number() {
    let made = |without_work: bool| {
        let mut model = Model::new(3);
        for number in 7..11 {
            let outer = model.now;
            model.now += 2;
            let start = model.now;
            layers(&mut model, "decode", 1);
            model.range("decode", start);
            model.now += 5;
            model.range(&format!("ProfilerStep#{number}"), outer);
        }
        let start = model.now;
        model.now += 20;
        if without_work {
            model.range("ProfilerStep#11", start);
        }
        model.finish()
    };
    // Also where the step is a range inside the profiler's.
    for (without_work, name) in [(false, "decode"), (true, "ProfilerStep*")] {
        assert_eq!(numbers(&find(&made(without_work), false)), [(name.to_owned(), vec![7, 8, 9, 10])]);
    }
    let trace = made(true);
    let index = TraceIndex::new(&trace);
    assert_eq!(Scope::resolve(&index, &step(11)).unwrap().wall(&index), Ns(20));
    assert_eq!(Scope::resolve(&index, &step(0)).unwrap_err(), ScopeError::NoSuchStepMarker(0, vec![7, 8, 9, 10, 11]));

    // Two steps in one of the profiler's are counted from 0.
    let mut model = Model::new(3);
    for number in 7..10 {
        let outer = model.now;
        for _ in 0..2 {
            let start = model.now;
            layers(&mut model, "decode", 1);
            model.range("decode", start);
        }
        model.range(&format!("ProfilerStep#{number}"), outer);
    }
    assert_eq!(numbers(&find(&model.finish(), false)), [("decode".to_owned(), vec![0, 1, 2, 3, 4, 5])]);
}

#[test]
fn a_step_on_two_devices_has_one_number() {
    let mut model = Model::new(4);
    let device = model.builder.device(0, 1);
    let other = model.builder.lane(Lane { device, context: None, stream: 0 });
    for round in 0..6 {
        let start = model.now;
        layers(&mut model, "decode", 1);
        if round % 2 == 1 {
            let own = std::mem::replace(&mut model.lanes[0], other);
            (0..9).for_each(|_| model.kernel("draft", 0, 1));
            model.lanes[0] = own;
        }
        model.now += 400;
        model.range("decode", start);
    }
    let trace = model.finish();
    let table = find(&trace, false);
    let on = |device: u32| table.groups.iter().filter(move |group| group.device.0 == device).flat_map(|group| &group.steps);
    assert_eq!(on(0).map(|step| step.number).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5]);
    assert_eq!(on(1).map(|step| step.number).collect::<Vec<_>>(), [1, 3, 5]);
}

/// An operator around what is launched from `start` to now.
fn op(model: &mut Model, name: &str, start: i64) {
    let name = model.builder.trace_mut().strings.intern(name);
    let (thread, dur) = (model.thread, Ns(model.now - start));
    let (external_id, shapes, types, strides, values) = (None, None, None, None, None);
    model.builder.push_host_op(HostOp { name, thread, start: Ns(start), dur, external_id, shapes, types, strides, values });
}

#[test]
fn a_replay_is_a_step_of_its_work_and_of_the_operator_around_its_launch() {
    let mut model = Model::new(5);
    for _ in 0..5 {
        model.now += 300;
        let before = model.now - 50;
        op(&mut model, "between", before);
        let start = model.now;
        model.now += 7;
        model.call("cudaGraphLaunch");
        (0..12).for_each(|at| model.runs(&format!("kernel_{at}"), 0, 1, 6));
        model.now += 3;
        op(&mut model, "replay", start);
    }
    let trace = model.finish();
    let table = find(&trace, false);
    let group = &table.groups[0];
    assert_eq!((table.groups.len(), group.found_by, group.steps.len()), (1, FoundBy::GraphReplay, 5));
    let index = TraceIndex::new(&trace);
    let scope = Scope::resolve(&index, &step(3)).unwrap();
    let ops = op_table(&index, &scope, GroupBy::Name);
    let rows: Vec<(&str, u64)> = ops.rows.iter().map(|row| (row.name.as_str(), row.calls)).collect();
    assert_eq!(rows, [("replay", 1), ("cudaGraphLaunch", 1)]);
    assert_eq!(ops.self_cuda_total_ns, Some(group.steps[3].busy_ns));
    assert_eq!(Scope::resolve(&index, &step(5)).unwrap_err(), ScopeError::NoSuchNumber(5, 5));
}

#[test]
fn a_step_whose_launches_were_not_recorded_is_its_work() {
    let mut model = Model::new(6);
    let lane = model.lanes[0];
    for _ in 0..4 {
        model.now += 200;
        for at in [0, 1].into_iter().chain((0..6).flat_map(|_| 10..17)).chain([2, 3]) {
            let name = model.builder.trace_mut().strings.intern(&format!("kernel_{at}"));
            let (start, dur) = (Ns(model.now), Ns(5));
            let (kind, correlation, external_id, detail, graph_node) = (ActivityKind::Kernel, None, None, None, None);
            model.builder.push_activity(Activity { kind, name, lane, start, dur, correlation, external_id, detail, graph_node });
            model.now += 6;
        }
    }
    let trace = model.finish();
    let table = find(&trace, false);
    assert_eq!((table.groups.len(), table.groups[0].found_by, table.groups[0].steps.len()), (1, FoundBy::KernelSequence, 4));
    let index = TraceIndex::new(&trace);
    let second = &table.groups[0].steps[1];
    assert_eq!(of_step(&index, table.groups[0].device, 1).len(), 46);
    assert_eq!(Scope::resolve(&index, &step(1)).unwrap().wall(&index), second.span_ns());
    // In a window its work counts by its own start, in a range none of it does.
    let window = ScopeSpec { time: Some((Ns(0), second.start + Ns(60))), ..step(1) };
    let within = Scope::resolve(&index, &window).unwrap();
    assert!((1..46).contains(&second.activities.iter().filter(|&&id| within.includes_activity(&index, id)).count()));
}
