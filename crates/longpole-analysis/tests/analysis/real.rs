//! What must hold on every real trace, and what is known of some.

use longpole_analysis::{GroupBy, Scope, ScopeSpec, TraceIndex, memory_table, op_table};
use longpole_trace::{ActivityId, Ns, Trace};

use crate::slow_reader;
use crate::torch_table::corpus;

const TRACES: [&str; 10] =
    ["bad", "cpuonly", "gpuonly", "nccl_rank0", "nccl_rank1", "qwen3_compile", "qwen3_eager", "qwen3_graph", "qwen3_item", "qwen3_stack"];

fn device_time(trace: &Trace, index: &TraceIndex<'_>, scope: &Scope) -> Ns {
    let inside = |&row: &usize| scope.includes_activity(index, ActivityId::from_index(row));
    (0..trace.activities.len()).filter(inside).map(|row| trace.activities.dur[row]).sum()
}

#[test]
fn self_device_time_sums_up_to_device_activity() {
    let folder = corpus();
    for name in TRACES {
        let trace = slow_reader::read(&folder.join(format!("{name}.json.gz")));
        let index = TraceIndex::new(&trace);
        let (first, last) = trace.window.bounds().unwrap();
        let half = ScopeSpec { time: Some((Ns(0), Ns((last - first).get() / 2))), ..ScopeSpec::default() };
        for scope in [Scope::whole(), Scope::resolve(&index, &half).unwrap()] {
            for by in [GroupBy::Name, GroupBy::Shape, GroupBy::Stack(2)] {
                let table = op_table(&index, &scope, by);
                let sum: Ns = table.rows.iter().filter_map(|row| row.self_cuda_ns).sum();
                assert_eq!(sum, device_time(&trace, &index, &scope), "{name} {by:?}");
                assert_eq!(table.self_cuda_total_ns, (!trace.activities.is_empty()).then_some(sum), "{name} {by:?}");
                assert!(
                    table.rows.iter().all(|row| row.self_cpu_ns <= row.cpu_ns && row.self_cpu_ns >= row.cpu_ns.map(|_| Ns::ZERO)),
                    "{name}"
                );
            }
        }
    }
}

#[test]
fn one_thread_and_many_give_the_same() {
    let folder = corpus();
    let trace = slow_reader::read(&folder.join("qwen3_eager.json.gz"));
    let tables = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let index = TraceIndex::new(&trace);
            (op_table(&index, &Scope::whole(), GroupBy::Shape), memory_table(&index, &Scope::whole()), index.links().counts())
        })
    };
    assert_eq!(tables(1), tables(4));
}

#[test]
fn decode_steps_of_a_real_run() {
    let folder = corpus();
    let trace = slow_reader::read(&folder.join("qwen3_eager.json.gz"));
    let index = TraceIndex::new(&trace);
    let total = |spec: ScopeSpec| op_table(&index, &Scope::resolve(&index, &spec).unwrap(), GroupBy::Name).self_cuda_total_ns.unwrap();
    let range = |name: &str| total(ScopeSpec { range: Some(name.to_owned()), ..ScopeSpec::default() });
    // The prefill is step 0, as `longpole steps` counts.
    let step = |step: u64| total(ScopeSpec { step: Some(step), ..ScopeSpec::default() });
    assert_eq!((step(0), (1..=4).map(step).sum()), (range("prefill"), range("decode_step")));
    assert_eq!(range("prefill") + range("decode_loop"), total(ScopeSpec::default()), "all work is launched in one of the two");
    assert_eq!(range("prefill"), Ns(8_091_093), "torch's prefill row, less the kernel it counts twice");
}

#[test]
fn allocations_of_a_real_run() {
    let folder = corpus();
    let trace = slow_reader::read(&folder.join("qwen3_eager.json.gz"));
    let memory = memory_table(&TraceIndex::new(&trace), &Scope::whole());
    let net: i64 = memory.rows.iter().map(|row| row.net_bytes).sum();
    assert_eq!(net, trace.memory.bytes.iter().sum::<i64>());
    let allocations: u64 = memory.rows.iter().map(|row| row.allocations).sum();
    assert_eq!(allocations as usize, trace.memory.bytes.iter().filter(|&&bytes| bytes >= 0).count());
    assert!(memory.rows.is_sorted_by_key(|row| std::cmp::Reverse(row.allocated_bytes)));
}

#[test]
fn a_step_of_a_rank_is_a_decode_step_and_no_collective() {
    let trace = slow_reader::read(&corpus().join("nccl_rank0.json.gz"));
    let index = TraceIndex::new(&trace);
    let total = |spec: ScopeSpec| op_table(&index, &Scope::resolve(&index, &spec).unwrap(), GroupBy::Name).self_cuda_total_ns.unwrap();
    let steps: Ns = (1..=3).map(|step| total(ScopeSpec { step: Some(step), ..ScopeSpec::default() })).sum();
    assert_eq!(steps, total(ScopeSpec { range: Some("decode_step".to_owned()), ..ScopeSpec::default() }));
    let beyond = Scope::resolve(&index, &ScopeSpec { step: Some(4), ..ScopeSpec::default() }).unwrap_err();
    assert_eq!(beyond.to_string(), "there is no step 4: 4 were found, counted from 0 (`longpole steps --json` lists them)");
}
