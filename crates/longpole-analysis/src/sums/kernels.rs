//! The kernel table of sums: kernels and layers by name.

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use longpole_trace::{ActivityKind, AggregateKind, Ns, StrId, Trace};

use super::{Sum, Sums, WorkSum, layer_family};
use crate::families::Family;
use crate::kernels::short_names;
use crate::scope::Scope;

/// The scope around calls of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SumOwner {
    /// Name of the innermost scope.
    pub name: String,
    /// Calls in it.
    pub calls: Option<u64>,
    /// Their device time.
    pub cuda_ns: Option<Ns>,
}

/// All kernels or layers of one name.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelSum {
    /// Full name.
    pub name: String,
    /// A short, readable name of a kernel, which no other row has; of a layer the name.
    pub short_name: String,
    /// Kernel or layer.
    pub kind: AggregateKind,
    /// What it does, by its name.
    pub family: Family,
    /// Calls; absent when one of the counts is.
    pub calls: Option<u64>,
    /// Device time of all calls.
    pub cuda_ns: Option<Ns>,
    /// Device time over calls, to the nanosecond.
    pub average_ns: Option<Ns>,
    /// Median of a call, where the source says so.
    pub median_ns: Option<Ns>,
    /// Clock cycles, where those were counted.
    pub cycles: Option<u64>,
    /// Declared work.
    pub work: WorkSum,
    /// Scopes directly around it, most device time first; none where the source has no tree.
    pub owners: Vec<SumOwner>,
}

/// Kernels and layers of a scope by name, most device time first, then most cycles; equal ones by name.
pub fn kernel_sums(trace: &Trace, scope: &Scope) -> Vec<KernelSum> {
    rows(&Sums::new(trace, scope))
}

/// The quotient of a time and a count, rounded half up.
pub(super) fn mean(time: Option<Ns>, calls: Option<u64>) -> Option<Ns> {
    let (time, calls) = (time?.get().max(0).unsigned_abs(), calls.filter(|&calls| calls > 0)?);
    let mean = (u128::from(time) * 2 + u128::from(calls)) / (u128::from(calls) * 2);
    Some(Ns(i64::try_from(mean).unwrap_or(i64::MAX)))
}

#[derive(Default)]
struct Group {
    sum: Sum,
    rows: u64,
    kind: Option<AggregateKind>,
    median: Option<Ns>,
}

pub(super) fn rows(sums: &Sums<'_>) -> Vec<KernelSum> {
    let (trace, table) = (sums.trace, sums.table());
    let mut groups: HashMap<StrId, Group, FixedState> = HashMap::default();
    let mut around: HashMap<(StrId, StrId), Sum, FixedState> = HashMap::default();
    for row in sums.kernel_rows() {
        let (name, own) = (table.name[row], sums.own(row, false));
        let group = groups.entry(name).or_default();
        group.sum.add(&own);
        group.rows += 1;
        group.kind.get_or_insert(table.kind[row]);
        group.median = table.detail(row).median_ns;
        if let Some(parent) = table.parent(row) {
            around.entry((name, table.name[parent.index()])).or_default().add(&own);
        }
    }
    let mut owners: HashMap<StrId, Vec<SumOwner>, FixedState> = HashMap::default();
    for ((name, scope), sum) in around {
        let owner = SumOwner { name: trace.strings.get(scope).to_owned(), calls: sum.calls, cuda_ns: sum.time };
        owners.entry(name).or_default().push(owner);
    }
    let mut rows: Vec<KernelSum> = groups
        .into_iter()
        .map(|(id, group)| {
            let name = trace.strings.get(id);
            let kind = group.kind.unwrap_or(AggregateKind::Kernel);
            let mut owners = owners.remove(&id).unwrap_or_default();
            owners.sort_by(|a, b| b.cuda_ns.cmp(&a.cuda_ns).then_with(|| a.name.cmp(&b.name)));
            KernelSum {
                name: name.to_owned(),
                short_name: String::new(),
                kind,
                family: if kind == AggregateKind::Layer { layer_family(name) } else { Family::of(ActivityKind::Kernel, name) },
                calls: group.sum.calls,
                cuda_ns: group.sum.time,
                average_ns: mean(group.sum.time, group.sum.calls),
                // Medians of several rows do not add up to one.
                median_ns: group.median.filter(|_| group.rows == 1),
                cycles: group.sum.cycles,
                work: group.sum.work(),
                owners,
            }
        })
        .collect();
    rows.sort_by(|a, b| b.cuda_ns.cmp(&a.cuda_ns).then_with(|| b.cycles.cmp(&a.cycles)).then_with(|| a.name.cmp(&b.name)));
    let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
    let short = short_names(&names);
    for (row, short) in rows.iter_mut().zip(short) {
        row.short_name = if row.kind == AggregateKind::Layer { row.name.clone() } else { short };
    }
    rows
}
