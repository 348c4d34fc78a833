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

/// Why a scope could not be found in a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScopeError {
    /// No range has this name; these are the names there are.
    NoSuchRange(String, Vec<String>),
    /// No step has this number; this many were found.
    NoSuchStep(u64, u64),
    /// No device has this number; these are the numbers there are.
    NoSuchDevice(i64, Vec<i64>),
    /// No recording has this rank; these are the ranks there are.
    NoSuchRank(u32, Vec<u32>),
    /// The time window ends before it begins.
    EmptyTime,
}

/// A scope found in a trace.
#[derive(Clone, Debug, Default)]
pub struct Scope {}
