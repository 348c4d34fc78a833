//! The messages between `longpole` and a suite, and their readers.
//!
//! `list --json` prints one [`List`]. `run`, `profile` and `peaks` print an [`Event`] a line. `docs/suite-protocol.md` describes both in
//! prose, `docs/schema/suite-list.schema.json` and `docs/schema/suite-run.schema.json` as schemas.
//!
//! Within a version keys are only added; a reader passes over keys and events that it does not know. What a suite could not find out is
//! `null` or left out, never 0.

mod read;
mod sequence;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::key::Key;

pub use read::{Events, Line, MAX_BENCHMARKS, MAX_LINE_BYTES, MAX_LIST_BYTES, ReadError, read_list};
pub use sequence::Sequence;
pub(crate) use sequence::{implausible, too_long};

/// The value of `schema` in a [`List`].
pub const LIST_SCHEMA: &str = "longpole.suite.list/1";

/// Picoseconds of the longest sample: a day. A longer one is a mistake of whoever computed it.
pub const MAX_SAMPLE_PS: u64 = 86_400 * 1_000_000_000_000;

/// The most bytes or operations that a run may be said to take. Beyond it lies what a difference of unsigned numbers gives by mistake.
pub const MAX_AMOUNT: u64 = i64::MAX as u64;

/// What `list --json` prints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct List {
    /// [`LIST_SCHEMA`].
    pub schema: String,
    /// Which suite this is.
    pub suite: SuiteInfo,
    /// Everything it can measure, in the order in which it would.
    pub benchmarks: Vec<Benchmark>,
}

/// A suite's name and version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SuiteInfo {
    /// Its name.
    pub name: String,
    /// Its version, in whatever form it has one.
    pub version: Option<String>,
}

/// One benchmark of a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Benchmark {
    /// Its name.
    pub key: Key,
    /// The model it belongs to, as in the key.
    pub model: String,
    /// The operation, as in the key.
    pub op: String,
    /// The phase, as in the key; a whole step has none.
    pub phase: Option<String>,
    /// Sizes by name, as `{"rows": 4096}`; `None` if it has none to tell.
    pub shape: Option<BTreeMap<String, u64>>,
    /// Bytes that one run has to move to and from memory at least; `None` if that is not a fair measure of it.
    pub bytes: Option<u64>,
    /// Floating-point operations of one run, a fused multiply-add as two; `None` if that is not a fair measure of it.
    pub flops: Option<u64>,
    /// The type of number that they are done on, as a peak names it (`bf16`, `fp8`): what the rate is held against. `None` if not said.
    #[serde(default)]
    pub dtype: Option<String>,
    /// Times that one run does the operation; `bytes`, `flops` and the times of samples are those of a run.
    #[serde(default = "one")]
    pub unit_runs: u32,
}

fn one() -> u32 {
    1
}

/// One line of `run`, `profile` or `peaks`. [`Events`] reads them.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The first line of a run: what is measured on.
    Device {
        /// The device.
        device: Device,
    },
    /// A benchmark begins, with how it is measured.
    Start(Start),
    /// A measured time.
    Sample(Sample),
    /// A benchmark is done.
    End(End),
    /// A benchmark failed; what was measured of it before is void.
    Error {
        /// Which one.
        key: Key,
        /// Why, for a person.
        message: String,
    },
    /// A benchmark ran for a profiler.
    Profile {
        /// Which one.
        key: Key,
        /// Times it was launched while the profiler was told to look.
        launches: u32,
    },
    /// A rate that the device reaches.
    Peak(Peak),
}

/// What is measured on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    /// Its name, as `NVIDIA H200`.
    pub name: String,
    /// Its own identifier, which tells two cards of one kind apart.
    pub uuid: Option<String>,
    /// Version of the driver.
    pub driver: Option<String>,
    /// Version of CUDA that the driver supports.
    pub cuda: Option<String>,
    /// Streaming multiprocessors.
    pub sm_count: Option<u32>,
    /// Bytes of its memory.
    pub memory_bytes: Option<u64>,
    /// Bytes of its second-level cache.
    pub l2_bytes: Option<u64>,
}

/// What the clock of a sample stands around.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Launches one after the other between two CUDA events.
    Events,
    /// One launch of a CUDA graph of many runs between two CUDA events: the host is out of the picture.
    Graph,
}

/// What the second-level cache holds of a run's inputs when the run begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum L2 {
    /// As little as could be arranged: every run uses other buffers, and all of them together exceed the cache.
    #[default]
    Cold,
    /// As much as the run before left: every run uses the same buffers.
    Warm,
}

/// The line before the samples of a benchmark.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// Which benchmark.
    pub key: Key,
    /// As in [`Benchmark`].
    pub bytes: Option<u64>,
    /// As in [`Benchmark`].
    pub flops: Option<u64>,
    /// As in [`Benchmark`].
    #[serde(default)]
    pub dtype: Option<String>,
    /// How it is timed.
    pub method: Method,
    /// Runs that one sample is the mean of.
    pub launches_per_sample: u32,
    /// Sets of buffers that the runs take in turn.
    pub buffers_rotated: u32,
    /// The cache that was asked for.
    pub l2: L2,
}

/// One measured time with the state of the device beside it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// Which benchmark.
    pub key: Key,
    /// Number of the sample, from 0.
    pub index: u32,
    /// Picoseconds that one run took: the time between two events, divided by the runs between them. Whole nanoseconds would round a
    /// kernel of 2 us by as much as a verdict may hang on.
    pub time_ps: u64,
    /// Clock of the multiprocessors in MHz.
    pub sm_clock_mhz: Option<u32>,
    /// Clock of the memory in MHz.
    pub memory_clock_mhz: Option<u32>,
    /// Temperature of the chip in degrees Celsius.
    pub temperature_c: Option<u32>,
    /// Power drawn by the card in milliwatts.
    pub power_mw: Option<u64>,
    /// Why the clocks were below what they could be, in the names of the driver; empty if they were not.
    pub throttle: Option<Vec<String>>,
    /// Whether one of these reasons makes the sample unlike others: all but idleness and clocks that someone set.
    pub throttled: Option<bool>,
}

/// Why no more samples were taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoppedBy {
    /// The median is known as well as was asked for.
    Precise,
    /// The time given was used up.
    Time,
    /// As many samples as were asked for, or as are ever taken.
    Count,
}

/// The line behind the samples of a benchmark.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct End {
    /// Which benchmark.
    pub key: Key,
    /// Samples taken, throttled ones included.
    pub samples: u32,
    /// Why there are no more.
    pub stopped_by: StoppedBy,
    /// Nanoseconds of running before the first sample.
    pub warm_up_ns: u64,
    /// Whether the result was right; `None` if the benchmark cannot tell.
    pub correct: Option<bool>,
    /// Standard error of the median as a share of it; `None` where too few samples say nothing about it.
    #[serde(default)]
    pub relative_error: Option<f64>,
    /// What a reader of the samples should know, in sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// What kind of rate a peak is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PeakKind {
    /// Bytes read plus bytes written in a second by a copy within the device's memory.
    CopyBytesPerS,
    /// Floating-point operations in a second of a matrix product, a fused multiply-add as two.
    FlopsPerS,
}

/// A rate that the device reaches: a ceiling to hold results against.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Peak {
    /// What kind of rate.
    pub kind: PeakKind,
    /// Type of the numbers, as `bf16`; `None` for a copy, which has none.
    pub dtype: Option<String>,
    /// The rate, per second.
    pub value: f64,
}

impl Event {
    /// The event as one line of JSON, without the line's end.
    pub fn to_line(&self) -> String {
        // Nothing in an event can fail to become JSON: the keys of its maps are strings.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The benchmark it is about.
    pub fn key(&self) -> Option<&Key> {
        match self {
            Self::Start(Start { key, .. })
            | Self::Sample(Sample { key, .. })
            | Self::End(End { key, .. })
            | Self::Error { key, .. }
            | Self::Profile { key, .. } => Some(key),
            Self::Device { .. } | Self::Peak(_) => None,
        }
    }
}

impl Benchmark {
    /// The benchmark of a key, with nothing known but what the key says.
    pub fn new(key: Key) -> Self {
        let (model, op, phase) = (key.model().to_owned(), key.name().to_owned(), key.phase().map(str::to_owned));
        Self { key, model, op, phase, shape: None, bytes: None, flops: None, dtype: None, unit_runs: 1 }
    }
}
