//! What several analyses need of a trace, computed once: the host call tree and the links from launches to activities.

use longpole_trace::Trace;

/// A trace and what was worked out about it.
#[derive(Debug)]
pub struct TraceIndex<'t> {
    trace: &'t Trace,
}

impl<'t> TraceIndex<'t> {
    /// Prepares a trace for analysis.
    pub fn new(trace: &'t Trace) -> Self {
        Self { trace }
    }

    /// The trace.
    pub fn trace(&self) -> &'t Trace {
        self.trace
    }
}
