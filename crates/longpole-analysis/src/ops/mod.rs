//! The operator table: torch's `key_averages()`, minus its known errors.
//!
//! Rows are operators and API calls. Named ranges have none and own no device time, but they are children like others where self
//! host time is worked out, as in torch. What torch gets wrong is right here: a kernel is counted once, under the operator around
//! its launch; ranges are not work of the device; self time is never negative; device work launched outside any operator has
//! rows of its own, so that the self device times of all rows sum up to the device time in scope.
//!
//! A call that began before the scope did can still own work launched inside it. Its row then has that work, and not the call.

mod groups;
mod shapes;
mod stacks;
mod tally;

use longpole_trace::Ns;

use crate::index::TraceIndex;
use crate::scope::Scope;
use crate::sort::SortKey;

/// What rows are grouped by, beside the operator's name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GroupBy {
    /// The name alone.
    #[default]
    Name,
    /// Name and input shapes.
    Shape,
    /// Name and the innermost Python frames, this many.
    Stack(usize),
}

/// What kind of thing a row counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OpRowKind {
    /// An operator.
    Operator,
    /// A runtime or driver API call.
    ApiCall,
    /// Device work launched outside any operator, by launching call.
    NoOperator,
}

/// One row of the operator table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpRow {
    /// Operator or API name; `(no operator) cudaGraphLaunch` for device work outside operators.
    pub name: String,
    /// What the row counts.
    pub kind: OpRowKind,
    /// Input shapes, when grouped by shape and recorded.
    pub shapes: Option<String>,
    /// Python frames, innermost first, when grouped by stack.
    pub stack: Option<Vec<String>>,
    /// Number of calls (of launches, for device work outside operators).
    pub calls: u64,
    /// Host time minus children. Absent where the row has no host time of its own.
    pub self_cpu_ns: Option<Ns>,
    /// Host time, children included.
    pub cpu_ns: Option<Ns>,
    /// Device time of work launched by these calls themselves. Absent when the trace recorded no device activity.
    pub self_cuda_ns: Option<Ns>,
    /// Device time, children included.
    pub cuda_ns: Option<Ns>,
    /// Host bytes allocated minus freed by these calls themselves. Absent when memory was not recorded.
    pub self_cpu_mem_bytes: Option<i64>,
    /// Host bytes, children included.
    pub cpu_mem_bytes: Option<i64>,
    /// Device bytes allocated minus freed by these calls themselves.
    pub self_cuda_mem_bytes: Option<i64>,
    /// Device bytes, children included.
    pub cuda_mem_bytes: Option<i64>,
}

/// The operator table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpTable {
    /// Rows, in order of first occurrence.
    pub rows: Vec<OpRow>,
    /// Sum of the device time of all rows: equals the sum of durations of all device activity in scope, exactly.
    pub self_cuda_total_ns: Option<Ns>,
    /// Sum of self host time over all rows.
    pub self_cpu_total_ns: Ns,
}

/// The operator table of a scope.
pub fn op_table(index: &TraceIndex<'_>, scope: &Scope, by: GroupBy) -> OpTable {
    if scope.is_whole() { tally::tally(index, by, &tally::Everything) } else { tally::tally(index, by, &tally::Within { index, scope }) }
}

impl OpTable {
    /// Sorts rows by a column, largest first. Rows that miss the value come last; equal rows keep their order.
    pub fn sort(&mut self, key: SortKey) {
        self.rows.sort_by_cached_key(|row| std::cmp::Reverse(row.value(key)));
    }
}

impl OpRow {
    /// The column that a sort key names.
    pub fn value(&self, key: SortKey) -> Option<i64> {
        match key {
            SortKey::CudaTimeTotal => self.cuda_ns.map(Ns::get),
            SortKey::SelfCudaTimeTotal => self.self_cuda_ns.map(Ns::get),
            SortKey::CpuTimeTotal => self.cpu_ns.map(Ns::get),
            SortKey::SelfCpuTimeTotal => self.self_cpu_ns.map(Ns::get),
            SortKey::Count => i64::try_from(self.calls).ok(),
            SortKey::CudaMemoryUsage => self.cuda_mem_bytes,
            SortKey::CpuMemoryUsage => self.cpu_mem_bytes,
            SortKey::SelfCudaMemoryUsage => self.self_cuda_mem_bytes,
            SortKey::SelfCpuMemoryUsage => self.self_cpu_mem_bytes,
        }
    }
}
