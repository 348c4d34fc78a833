//! The kernel table: device activities by name, with the operators that launched them.

use longpole_trace::{ActivityKind, Ns};

use crate::families::Family;

/// An operator that launched a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelOwner {
    /// Operator name, or `(no operator) cudaGraphLaunch`.
    pub name: String,
    /// Launches of the kernel by it.
    pub calls: u64,
    /// Device time of those.
    pub cuda_ns: Ns,
}

/// One row of the kernel table: all activities of one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelRow {
    /// The full name.
    pub name: String,
    /// A short, readable name.
    pub short_name: String,
    /// Kernel, copy, fill or other.
    pub kind: ActivityKind,
    /// Its family.
    pub family: Family,
    /// Number of activities.
    pub calls: u64,
    /// Summed duration.
    pub cuda_ns: Ns,
    /// Shortest.
    pub min_ns: Ns,
    /// Median (lower of the two middle values for an even count).
    pub median_ns: Ns,
    /// Longest.
    pub max_ns: Ns,
    /// Who launched it, most device time first. Never empty.
    pub owners: Vec<KernelOwner>,
}
