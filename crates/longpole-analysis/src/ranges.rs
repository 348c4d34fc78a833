//! Named ranges: what the host named, and what the device did for it.

use longpole_trace::Ns;

/// All instances of one range at one place in the nesting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeRow {
    /// Its name; `ProfilerStep#3` is listed as `ProfilerStep*`.
    pub name: String,
    /// Names of the ranges around it, outermost first.
    pub parents: Vec<String>,
    /// Number of instances.
    pub calls: u64,
    /// Summed host time.
    pub cpu_ns: Ns,
    /// Sum over instances of first start to last end of the device work launched inside; absent when none was.
    pub gpu_span_ns: Option<Ns>,
    /// Union of that work, inside those spans.
    pub gpu_busy_ns: Option<Ns>,
    /// Span minus busy.
    pub gpu_idle_ns: Option<Ns>,
    /// Kernels launched inside.
    pub kernels: u64,
}
