//! Idle causes of real traces.

use longpole_analysis::{IdleCause, IdleTable, Scope, ScopeSpec, TraceIndex, idle_pieces, idle_table, totals};
use longpole_trace::{Ns, Trace};

use crate::slow_reader;
use crate::torch_table::corpus;

const TRACES: [&str; 10] =
    ["bad", "cpuonly", "gpuonly", "nccl_rank0", "nccl_rank1", "qwen3_compile", "qwen3_eager", "qwen3_graph", "qwen3_item", "qwen3_stack"];

fn read(name: &str) -> Trace {
    slow_reader::read(&corpus().join(format!("{name}.json.gz")))
}

/// Share of the idle time with one of some causes.
fn share(table: &IdleTable, wanted: impl Fn(IdleCause) -> bool) -> f64 {
    let sum: Ns = table.causes.iter().filter(|row| wanted(row.cause)).map(|row| row.idle_ns).sum();
    sum.get() as f64 / table.idle_ns.unwrap().get() as f64
}

#[test]
fn causes_add_up_to_the_idle_time_of_the_totals() {
    for name in TRACES {
        let trace = read(name);
        let index = TraceIndex::new(&trace);
        let (first, last) = trace.window.bounds().unwrap();
        let half = ScopeSpec { time: Some((Ns(0), Ns((last - first).get() / 2))), ..ScopeSpec::default() };
        for scope in [Scope::whole(), Scope::resolve(&index, &half).unwrap()] {
            let table = idle_table(&index, &scope);
            if scope.is_whole() {
                assert_eq!(table.idle_ns, totals(&index, &scope).gpu_idle_ns, "{name}");
            }
            let idle = table.idle_ns.unwrap_or_default();
            assert_eq!(table.causes.iter().map(|row| row.idle_ns).sum::<Ns>(), idle, "{name}");
            assert_eq!(table.by_frame.iter().map(|row| row.idle_ns).sum::<Ns>(), idle, "{name}");
            for device in &table.devices {
                assert_eq!(device.causes.iter().map(|row| row.idle_ns).sum::<Ns>(), device.idle_ns, "{name}");
            }
            let pieces = idle_pieces(&index, &scope);
            assert_eq!(pieces.iter().map(|piece| piece.end - piece.start).sum::<Ns>(), idle, "{name}");
            assert!(pieces.windows(2).all(|pair| pair[0].device != pair[1].device || pair[0].end <= pair[1].start), "{name}");
        }
    }
}

#[test]
fn an_eager_decoder_waits_for_dispatch() {
    let trace = read("qwen3_eager");
    let table = idle_table(&TraceIndex::new(&trace), &Scope::whole());
    assert!(share(&table, |cause| cause == IdleCause::NothingRecorded) <= 0.05, "{:?}", table.causes);
    assert!(share(&table, IdleCause::is_device_side) < 0.5, "{:?}", table.causes);
    assert!(table.queue.empty_fraction().unwrap() > 0.5, "{:?}", table.queue);
}

#[test]
fn between_the_kernels_of_a_graph_the_device_is_the_cause() {
    let trace = read("qwen3_graph");
    let table = idle_table(&TraceIndex::new(&trace), &Scope::whole());
    let of = |cause| table.causes.iter().find(|row| row.cause == cause).map_or(Ns::ZERO, |row| row.idle_ns);
    assert_eq!(of(IdleCause::BlockedInSync), Ns::ZERO, "the host waits all the time, and that is not why");
    assert!(share(&table, IdleCause::is_device_side) > 0.5, "{:?}", table.causes);
    assert!(of(IdleCause::GraphInternal) > of(IdleCause::LaunchLatency));
}

#[test]
fn with_stacks_python_is_named() {
    let trace = read("qwen3_stack");
    let table = idle_table(&TraceIndex::new(&trace), &Scope::whole());
    let python = table.by_frame.iter().find(|row| row.cause == IdleCause::Python).unwrap();
    assert!(python.name.as_ref().is_some_and(|name| name.contains(".py(") || name.contains('<')), "{python:?}");
    assert!(share(&table, |cause| cause == IdleCause::OutsideOperators) < share(&table, |cause| cause == IdleCause::Python));
}
