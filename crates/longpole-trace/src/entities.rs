//! What events happen on: ranks, processes, host threads, devices and their streams.

use crate::ids::{DeviceId, ProcessId, StrId, ThreadId};
use crate::interval::Interval;

/// One recording of a set: a rank file of a directory or archive, or the only file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RankInfo {
    /// The file this rank came from, as the user would name it.
    pub label: String,
    /// The rank: from the trace, else from the file's name, else its position in the set.
    pub rank: u32,
    /// World size, if the trace says.
    pub world_size: Option<u32>,
    /// Communication back end, if the trace says (`nccl`, `gloo`, ...).
    pub backend: Option<String>,
}

/// What a recording is about, when it was cut out of a longer one. All device work in it belongs to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// Index into [`crate::Trace::ranks`].
    pub rank: u32,
    /// Host events that start in one of these intervals of their thread; the others are there because they are around those, or
    /// inside. Absent when all belong to it.
    pub host: Option<Vec<(ThreadId, Interval)>>,
    /// Whether the longer recording has device work.
    pub has_device_work: bool,
}

/// A process of one recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Index into [`crate::Trace::ranks`].
    pub rank: u32,
    /// Operating system process id, as the trace gives it.
    pub pid: i64,
    /// Name, if the trace says.
    pub name: Option<StrId>,
}

/// A thread id as traces write it: a number, or text (2021 traces).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tid {
    /// A number.
    Number(i64),
    /// Text that is not a number.
    Text(String),
}

/// A host thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Its process.
    pub process: ProcessId,
    /// Its id.
    pub tid: Tid,
    /// Name, if the trace says.
    pub name: Option<StrId>,
}

/// What a trace says of a device's hardware.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceProperties {
    /// Product name, e.g. `NVIDIA H200`.
    pub name: Option<String>,
    /// Memory size in bytes.
    pub memory_bytes: Option<u64>,
    /// Multiprocessors (compute units on AMD).
    pub sm_count: Option<u32>,
    /// Compute capability, major and minor.
    pub compute_capability: Option<(u32, u32)>,
    /// Threads that fit on one multiprocessor.
    pub max_threads_per_sm: Option<u32>,
    /// Registers of one multiprocessor.
    pub registers_per_sm: Option<u32>,
    /// Shared memory of one multiprocessor, in bytes.
    pub shared_bytes_per_sm: Option<u64>,
    /// Threads in a warp (64 on most AMD devices).
    pub warp_size: Option<u32>,
    /// Bytes a second to and from device memory at most, where the source says what it follows from (clock and width of the bus).
    pub peak_memory_bytes_per_s: Option<u64>,
}

/// A device of one recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// Index into [`crate::Trace::ranks`].
    pub rank: u32,
    /// Its number, as the trace gives it.
    pub ordinal: i64,
    /// Its hardware, as far as the trace says.
    pub properties: DeviceProperties,
}

/// A stream of a context of a device.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Lane {
    /// Its device.
    pub device: DeviceId,
    /// Context, if the trace says.
    pub context: Option<i64>,
    /// Stream id.
    pub stream: i64,
}

/// Software versions a trace names, as `major.minor` text where the producer packs them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Versions {
    /// CUDA runtime, e.g. `13.0`.
    pub cuda_runtime: Option<String>,
    /// CUDA version the driver supports, e.g. `13.0`.
    pub cuda_driver: Option<String>,
    /// CUPTI version number as written.
    pub cupti: Option<String>,
    /// HIP runtime.
    pub hip_runtime: Option<String>,
    /// HIP driver.
    pub hip_driver: Option<String>,
}

/// Which optional data was recorded. A switch that the trace does not name is `false`, unless such data is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// Operator input shapes.
    pub shapes: bool,
    /// Allocator events.
    pub memory: bool,
    /// Python stacks.
    pub stacks: bool,
    /// Module hierarchy.
    pub modules: bool,
}
