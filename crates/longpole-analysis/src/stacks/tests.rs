use hashbrown::HashMap;
use longpole_trace::Ns;
use proptest::prelude::*;

use super::*;
use crate::index::TraceIndex;
use crate::ops::{GroupBy, OpRowKind, op_table};
use crate::sample::Sample;
use crate::scope::Scope;

/// Stacks as lines, `a;b;c value`.
fn lines(tree: &StackTree, trace: &Trace) -> Vec<String> {
    let mut path = Vec::new();
    let line = |(node, value): (usize, Ns)| {
        tree.path(node, &mut path);
        let names: Vec<_> = path.iter().map(|&node| tree.text(trace, tree.label(node))).collect();
        format!("{} {}", names.join(";"), value.get())
    };
    tree.stacks().map(line).collect()
}

/// The self host time of operators and calls, by name, is that of the operator table, and device time too.
fn sums_are_those_of_the_table(trace: &Trace) {
    let index = TraceIndex::new(trace);
    let table = op_table(&index, &Scope::whole(), GroupBy::Name);
    let host = host_stacks(&index, &Scope::whole());
    let mut of_name: HashMap<&str, Ns> = HashMap::new();
    for (node, value) in host.stacks().filter(|&(node, _)| matches!(host.frame(node), StackFrame::Operator | StackFrame::Call)) {
        *of_name.entry(host.text(trace, host.label(node))).or_default() += value;
    }
    for row in table.rows.iter().filter(|row| row.kind != OpRowKind::NoOperator) {
        assert_eq!(of_name.get(row.name.as_str()).copied().unwrap_or_default(), row.self_cpu_ns.unwrap(), "{}", row.name);
    }
    let device = device_stacks(&index, &Scope::whole());
    assert_eq!(device.total(), table.self_cuda_total_ns.unwrap_or_default());
}

#[test]
fn host_time_is_self_time_with_python_between() {
    let mut sample = Sample::new();
    sample.frame("main", 0, 1000);
    sample.range("step", 100, 500);
    sample.frame("forward", 110, 400);
    sample.op("aten::mm", 120, 100);
    sample.launch("cudaLaunchKernel", 130, 20);
    // Python inside an operator takes no time from it.
    sample.frame("inside", 160, 50);
    sample.op("aten::relu", 170, 10);
    let trace = sample.finish();
    let stacks = host_stacks(&TraceIndex::new(&trace), &Scope::whole());
    assert_eq!(
        lines(&stacks, &trace),
        [
            "thread 1;main 500",
            "thread 1;main;step 100",
            "thread 1;main;step;forward 300",
            "thread 1;main;step;forward;aten::mm 70",
            "thread 1;main;step;forward;aten::mm;cudaLaunchKernel 20",
            "thread 1;main;step;forward;aten::mm;inside;aten::relu 10",
        ]
    );
    sums_are_those_of_the_table(&trace);
}

#[test]
fn device_time_is_under_what_launched_it() {
    let mut sample = Sample::new();
    sample.range("step", 0, 500);
    sample.op("aten::mm", 10, 100);
    sample.launch("cudaLaunchKernel", 20, 5).kernel("gemm", 40, 30).memset("Memset", 70, 0);
    sample.launch("cudaGraphLaunch", 200, 5).kernel("a", 210, 7).kernel("a", 215, 7);
    sample.orphan("lost", 600, 9);
    let trace = sample.finish();
    let stacks = device_stacks(&TraceIndex::new(&trace), &Scope::whole());
    assert_eq!(
        lines(&stacks, &trace),
        ["GPU 0;step;aten::mm;gemm 30", "GPU 0;step;cudaGraphLaunch;a 14", "GPU 0;(launch not recorded);lost 9"]
    );
    sums_are_those_of_the_table(&trace);
}

#[test]
fn idle_time_is_under_its_cause() {
    let mut sample = Sample::new();
    sample.op("aten::mm", 0, 1000);
    sample.launch("cudaLaunchKernel", 10, 5).kernel("a", 100, 50);
    sample.launch("cudaLaunchKernel", 400, 5).kernel("b", 500, 50);
    let trace = sample.finish();
    let index = TraceIndex::new(&trace);
    let stacks = idle_stacks(&index, &Scope::whole());
    assert_eq!(Some(stacks.total()), crate::idle::idle_table(&index, &Scope::whole()).idle_ns);
    assert_eq!(lines(&stacks, &trace), ["GPU 0;dispatch;aten::mm 250", "GPU 0;launch_latency;aten::mm;cudaLaunchKernel 100"]);
}

#[test]
fn a_stack_without_end_keeps_its_time() {
    let mut sample = Sample::new();
    for depth in 0..2_000 {
        sample.op(if depth % 2 == 0 { "a" } else { "b" }, depth, 4_000 - depth);
    }
    let trace = sample.finish();
    let stacks = host_stacks(&TraceIndex::new(&trace), &Scope::whole());
    assert_eq!(stacks.total(), Ns(4_000));
    let mut path = Vec::new();
    for (node, _) in stacks.stacks() {
        stacks.path(node, &mut path);
        assert!(path.len() <= StackTree::MAX_DEPTH);
    }
}

#[test]
fn nothing_gives_no_stacks() {
    let trace = Sample::new().finish();
    let index = TraceIndex::new(&trace);
    for stacks in [host_stacks(&index, &Scope::whole()), device_stacks(&index, &Scope::whole()), idle_stacks(&index, &Scope::whole())] {
        assert_eq!(stacks.stacks().count(), 0);
    }
}

proptest! {
    #[test]
    fn whatever_overlaps_the_sums_hold(
        events in prop::collection::vec((0..5_u8, 0..4_usize, 0..60_i64, 0..30_i64), 0..40),
    ) {
        let names = ["a", "b", "c", "d"];
        let mut sample = Sample::new();
        for (kind, name, start, dur) in events {
            match kind {
                0 => { sample.op(names[name], start, dur); }
                1 => { sample.range(names[name], start, dur); }
                2 => { sample.frame(names[name], start, dur); }
                3 => { sample.launch("cudaLaunchKernel", start, dur).kernel("k", start + 3, dur); }
                _ => sample.orphan("o", start, dur),
            }
        }
        let trace = sample.finish();
        sums_are_those_of_the_table(&trace);
        let index = TraceIndex::new(&trace);
        let idle = idle_stacks(&index, &Scope::whole()).total();
        prop_assert_eq!(idle, crate::idle::idle_table(&index, &Scope::whole()).idle_ns.unwrap_or_default());
    }
}
