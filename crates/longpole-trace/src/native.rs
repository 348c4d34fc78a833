//! What system profilers see of the host beside calls of the device's interface: calls into the operating system, and samples of what the
//! processor was running.
//!
//! Neither is an event of the program that was traced: they make no wall longer and are in no operator.

use crate::ids::{StrId, ThreadId};
use crate::ns::Ns;

/// A call into the operating system's libraries, as one row. Recorders leave out those that take no time worth mentioning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OsCall {
    /// Function name, e.g. `pthread_cond_wait`.
    pub name: StrId,
    /// Calling thread.
    pub thread: ThreadId,
    /// When the call began.
    pub start: Ns,
    /// How long it took.
    pub dur: Ns,
}

/// Calls into the operating system's libraries, in file order.
#[derive(Debug, Default)]
pub struct OsCalls {
    /// Function names.
    pub name: Vec<StrId>,
    /// Calling threads.
    pub thread: Vec<ThreadId>,
    /// Start times.
    pub start: Vec<Ns>,
    /// Durations.
    pub dur: Vec<Ns>,
}

impl OsCalls {
    pub(crate) fn push(&mut self, row: OsCall) {
        self.name.push(row.name);
        self.thread.push(row.thread);
        self.start.push(row.start);
        self.dur.push(row.dur);
    }
}

/// What a processor was running for a thread at one moment, as one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuSample {
    /// The innermost function; failing that, the file it is in.
    pub name: StrId,
    /// Thread that ran.
    pub thread: ThreadId,
    /// When.
    pub start: Ns,
}

/// Samples of what processors were running, in file order.
#[derive(Debug, Default)]
pub struct CpuSamples {
    /// Innermost functions.
    pub name: Vec<StrId>,
    /// Threads.
    pub thread: Vec<ThreadId>,
    /// When.
    pub start: Vec<Ns>,
}

impl CpuSamples {
    pub(crate) fn push(&mut self, row: CpuSample) {
        self.name.push(row.name);
        self.thread.push(row.thread);
        self.start.push(row.start);
    }
}
