//! Sums of made trees, by hand and against a slow reading.

use longpole_trace::{Aggregate, AggregateDetail, AggregateId, AggregateKind, DeviceProperties, Ns, RankInfo, Trace, TraceBuilder};
use proptest::prelude::*;

use super::*;
use crate::index::TraceIndex;
use crate::scope::ScopeSpec;

struct Made(TraceBuilder);

impl Made {
    fn new() -> Self {
        let mut builder = TraceBuilder::new();
        builder.add_rank(RankInfo::default());
        Self(builder)
    }

    fn row(&mut self, parent: Option<AggregateId>, name: &str, kind: AggregateKind, rest: impl FnOnce(&mut Aggregate)) -> AggregateId {
        let name = self.0.trace_mut().strings.intern(name);
        let detail = AggregateDetail::default();
        let mut row = Aggregate { kind, name, rank: 0, parent, count: None, device_ns: None, device: None, detail };
        rest(&mut row);
        self.0.push_aggregate(row)
    }

    fn scope(&mut self, parent: Option<AggregateId>, name: &str) -> AggregateId {
        self.row(parent, name, AggregateKind::Scope, |_| ())
    }

    fn kernel(&mut self, parent: Option<AggregateId>, name: &str, count: u64, ns: i64) -> AggregateId {
        let device = Some(self.0.device(0, 0));
        self.row(parent, name, AggregateKind::Kernel, |row| (row.count, row.device_ns, row.device) = (Some(count), Some(Ns(ns)), device))
    }

    fn device(&mut self, ordinal: i64, bytes_per_s: u64) {
        let id = self.0.device(0, ordinal);
        self.0.trace_mut().devices[id.index()].properties =
            DeviceProperties { peak_memory_bytes_per_s: Some(bytes_per_s), ..DeviceProperties::default() };
    }

    fn finish(self) -> Trace {
        self.0.finish()
    }
}

#[test]
fn time_is_summed_into_scopes_and_nowhere_twice() {
    let mut made = Made::new();
    let step = made.scope(None, "step");
    let layer = made.scope(Some(step), "layer");
    made.kernel(Some(layer), "gemm", 4, 400);
    made.kernel(Some(step), "gemm", 1, 70);
    made.kernel(None, "copy", 2, 30);
    let trace = made.finish();
    let scopes = scope_sums(&trace, &Scope::whole());
    let found: Vec<_> =
        scopes.rows.iter().map(|row| (scopes.name(&trace, row), row.depth, row.kernels, row.cuda_ns, row.self_cuda_ns)).collect();
    let ns = |value| Some(Ns(value));
    assert_eq!(found, [("step", 0, Some(5), ns(470), ns(70)), ("layer", 1, Some(4), ns(400), ns(400))]);
    assert_eq!(scopes.parents(&trace, &scopes.rows[1]), ["step"]);
    let kernels = kernel_sums(&trace, &Scope::whole());
    let found: Vec<_> = kernels.iter().map(|row| (row.name.as_str(), row.calls, row.cuda_ns, row.average_ns)).collect();
    assert_eq!(found, [("gemm", Some(5), ns(470), ns(94)), ("copy", Some(2), ns(30), ns(15))]);
    let owners: Vec<_> = kernels[0].owners.iter().map(|owner| (owner.name.as_str(), owner.calls, owner.cuda_ns)).collect();
    assert_eq!(owners, [("layer", Some(4), ns(400)), ("step", Some(1), ns(70))]);
    assert_eq!((kernels[0].median_ns, kernels[1].owners.len()), (None, 0));
}

#[test]
fn a_missing_count_is_missing_and_not_a_smaller_sum() {
    let mut made = Made::new();
    made.kernel(None, "k", 4, 400);
    let other = made.kernel(None, "k", 1, 100);
    let scope = made.scope(None, "s");
    made.row(Some(scope), "k", AggregateKind::Kernel, |row| row.device_ns = Some(Ns(50)));
    made.row(Some(scope), "cycles", AggregateKind::Kernel, |row| row.detail.cycles = Some(9));
    assert_eq!(other, AggregateId(1));
    let trace = made.finish();
    let rows = kernel_sums(&trace, &Scope::whole());
    assert_eq!((rows[0].calls, rows[0].cuda_ns, rows[0].average_ns), (None, Some(Ns(550)), None));
    assert_eq!((rows[1].calls, rows[1].cuda_ns, rows[1].cycles), (None, None, Some(9)));
    let page = sums_triage(&trace, &Scope::whole(), None, false);
    assert_eq!((page.calls, page.cuda_ns), (None, Some(Ns(550))));
    assert!(page.questions.iter().all(|question| question.verdict == "unknown" && question.answer.contains("totals only")));
}

#[test]
fn work_is_held_against_the_time_it_was_declared_for() {
    let mut made = Made::new();
    // A gigabyte a second is a byte a nanosecond.
    made.device(0, 1_000_000_000);
    let declared = made.row(None, "matmul", AggregateKind::Scope, |row| row.detail.bytes = Some(300));
    made.kernel(Some(declared), "kernel", 1, 400);
    made.kernel(None, "kernel", 1, 1_000);
    let two = made.row(None, "pair", AggregateKind::Scope, |row| row.detail.bytes = Some(50));
    made.kernel(Some(two), "a", 1, 60);
    made.kernel(Some(two), "b", 1, 40);
    let trace = made.finish();
    let rows = kernel_sums(&trace, &Scope::whole());
    let kernel = &rows[0];
    assert_eq!((kernel.name.as_str(), kernel.cuda_ns, kernel.work.bytes), ("kernel", Some(Ns(1_400)), Some(300)));
    assert_eq!(kernel.work.floor_fraction, Some(0.75), "300 ns of 400: the other call has no declared work");
    assert_eq!(kernel.work.bytes_per_s, Some(300.0 / 400e-9));
    assert_eq!(rows[1].work, WorkSum::default(), "which of two kernels moved the bytes is not known");
    let scopes = scope_sums(&trace, &Scope::whole());
    let work: Vec<_> = scopes.rows.iter().map(|row| (row.work.bytes, row.work.floor_fraction)).collect();
    assert_eq!(work, [(Some(300), Some(0.75)), (Some(50), Some(0.5))]);
}

#[test]
fn scopes_devices_and_what_has_no_place() {
    let mut made = Made::new();
    let (a, b) = (made.scope(None, "prefill"), made.scope(None, "decode"));
    made.kernel(Some(a), "k", 1, 10);
    made.kernel(Some(b), "k", 2, 5);
    let device = made.0.device(0, 3);
    made.row(Some(b), "k", AggregateKind::Kernel, |row| (row.count, row.device_ns, row.device) = (Some(1), Some(Ns(100)), Some(device)));
    let trace = made.finish();
    let index = TraceIndex::new(&trace);
    let total = |spec: ScopeSpec| {
        let scope = Scope::resolve(&index, &spec).unwrap();
        kernel_sums(&trace, &scope).iter().filter_map(|row| row.cuda_ns).sum::<Ns>().get()
    };
    let range = |name: &str| ScopeSpec { range: Some(name.to_owned()), ..ScopeSpec::default() };
    assert_eq!((total(range("prefill")), total(range("decode")), total(range("*"))), (10, 105, 115));
    assert_eq!(total(ScopeSpec { device: Some(3), ..range("decode") }), 100);
    let refused = Scope::resolve(&index, &ScopeSpec { step: Some(1), ..ScopeSpec::default() }).unwrap_err().to_string();
    assert!(refused.contains("totals only"), "{refused}");
    let refused = Scope::resolve(&index, &range("train")).unwrap_err().to_string();
    assert!(refused.contains("`decode`, `prefill`"), "{refused}");
}

#[test]
fn layers_are_judged_by_their_parts() {
    use crate::families::Family;
    for (name, family) in [
        ("features.0.0.weight + QuantizeLinear_8 + Conv_12 + PWN(Clip_16)", Family::Gemm),
        ("QuantizeLinear_2", Family::CopyCast),
        ("Reformatting CopyNode for Input Tensor 0 to conv1.weight + Conv_0", Family::CopyCast),
        ("GlobalAveragePool_700", Family::Reduction),
        ("/layer/Softmax", Family::SoftmaxSampling),
        ("conv_gate.weight + something", Family::Other),
    ] {
        assert_eq!(layer_family(name), family, "{name}");
    }
}

#[test]
fn a_chain_a_hundred_thousand_deep_is_no_danger() {
    let mut made = Made::new();
    let mut around = None;
    for depth in 0..100_000 {
        around = Some(made.scope(around, if depth % 2 == 0 { "a" } else { "b" }));
    }
    made.kernel(around, "k", 1, 7);
    let trace = made.finish();
    let scopes = scope_sums(&trace, &Scope::whole());
    assert!(scopes.rows.len() <= 66 && scopes.rows[0].cuda_ns == Some(Ns(7)), "{}", scopes.rows.len());
}

proptest! {
    #[test]
    fn sums_equal_a_slow_reading(drawn in proptest::collection::vec((0_usize..8, 0_u8..3, 0_i64..100, 0_u64..5), 1..40)) {
        let mut made = Made::new();
        let mut scopes = vec![None];
        let mut kernels: Vec<(Option<AggregateId>, String, u64, i64)> = Vec::new();
        for (at, (parent, what, ns, count)) in drawn.into_iter().enumerate() {
            let parent = scopes[parent % scopes.len()];
            if what == 0 {
                scopes.push(Some(made.scope(parent, &format!("s{at}"))));
            } else {
                let name = format!("k{what}");
                made.kernel(parent, &name, count, ns);
                kernels.push((parent, name, count, ns));
            }
        }
        prop_assume!(!kernels.is_empty());
        let trace = made.finish();
        for row in kernel_sums(&trace, &Scope::whole()) {
            let of_name: Vec<_> = kernels.iter().filter(|kernel| kernel.1 == row.name).collect();
            prop_assert_eq!(row.cuda_ns, Some(Ns(of_name.iter().map(|kernel| kernel.3).sum())));
            prop_assert_eq!(row.calls, Some(of_name.iter().map(|kernel| kernel.2).sum()));
        }
        let table = scope_sums(&trace, &Scope::whole());
        for row in &table.rows {
            let name = table.name(&trace, row);
            let inside = |mut at: Option<AggregateId>, deep: bool| loop {
                let Some(here) = at else { return false };
                if trace.strings.get(trace.aggregates.name[here.index()]) == name {
                    return true;
                }
                if !deep {
                    return false;
                }
                at = trace.aggregates.parent(here.index());
            };
            let sum = |deep: bool| {
                let times: Vec<i64> = kernels.iter().filter(|kernel| inside(kernel.0, deep)).map(|kernel| kernel.3).collect();
                (!times.is_empty()).then(|| Ns(times.iter().sum()))
            };
            prop_assert_eq!(row.cuda_ns, sum(true));
            prop_assert_eq!(row.self_cuda_ns, sum(false));
        }
    }
}
