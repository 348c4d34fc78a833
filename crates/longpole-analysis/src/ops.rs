//! The operator table: torch's `key_averages()`, minus its known errors.

use longpole_trace::Ns;

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
