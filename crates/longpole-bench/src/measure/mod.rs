//! Measuring one benchmark: what is done in which order, and why its samples can be believed.
//!
//! 1. **Buffers.** With a cold second-level cache the runs take several sets of buffers in turn, so many that between two uses of a set at
//!    least twice the cache has passed through it ([`plan`]). Nothing is flushed inside the timed window: a flush takes time of its own, and
//!    leaves a cache full of dirty lines that the measured kernel has to write back.
//! 2. **Correctness.** Outputs are filled with a pattern that is NaN in every floating-point type, one run is made on the first and one on
//!    the last set, and the benchmark checks both. A wrong result is not timed.
//! 3. **Method.** Runs whose kernels take under 10 us each go into a CUDA graph, since the host launches hardly faster than that and the
//!    clock would show the launching. All others are launched one after the other.
//! 4. **A sample** is the time between two CUDA events divided by the runs between them. One event ticks every half microsecond
//!    (CUDA driver API, `cuEventElapsedTime`), so a sample lasts about a millisecond and the tick is a twentieth of a percent. Untimed runs
//!    go ahead of the first event, so that the device is busy while the host enqueues the timed ones.
//! 5. **Warm-up** goes on until clocks and times have settled ([`Settings`]); then samples are taken until the median is known well enough
//!    ([`relative_error_of_median`]), the time is used up, or there are as many as asked for.
//! 6. **State.** Clocks, temperature, power and throttle reasons are read while the device works on the sample, never changed. A sample
//!    taken under a throttle reason is marked and printed like any other.

mod driver;
mod error;
pub mod plan;
mod precision;
mod run;
#[cfg(test)]
mod tests;

pub use driver::{Body, Driver, Enqueue, State, Timed};
pub use error::Error;
pub use precision::{relative_error, relative_error_of_median};
pub use run::{Emit, measure, profile};

use crate::protocol::L2;

/// How long and how well to measure. The defaults suit kernels between 2 us and 100 ms.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Nanoseconds for warm-up and samples together.
    pub max_ns: u64,
    /// Standard error of the median, as a share of it, at which it is known well enough.
    pub relative_error: f64,
    /// What the second-level cache holds.
    pub l2: L2,
    /// Take exactly so many samples, if the time suffices, however well the median is known.
    pub samples: Option<u32>,
}

impl Default for Settings {
    fn default() -> Self {
        Self { max_ns: 3_000_000_000, relative_error: 0.001, l2: L2::Cold, samples: None }
    }
}
