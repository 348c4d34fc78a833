//! What part of a trace a question is about. Work belongs to a scope by its launch.

use longpole_trace::Ns;

/// A scope as the user asks for it; all parts must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScopeSpec {
    /// Instances of the range of this name (`ProfilerStep*` takes all steps).
    pub range: Option<String>,
    /// One step, by number.
    pub step: Option<u64>,
    /// A window, relative to the first event of the trace.
    pub time: Option<(Ns, Ns)>,
    /// A device, by its number.
    pub device: Option<i64>,
    /// A rank.
    pub rank: Option<u32>,
}
