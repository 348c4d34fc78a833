//! Is one set of times different from another, and how small a difference could these two show?
//!
//! Two recordings of the same step are never equal. [`compare`] says whether the second is faster, slower or the same, or that the data
//! cannot tell, and what the smallest difference is that it could have told. It is used for steps of traces and for samples of benchmarks.
//!
//! # Method
//!
//! Times are positive, their noise is multiplicative and has a long tail upwards, and neighbours resemble each other. So:
//!
//! 1. Logarithms are compared, which makes the result a ratio and gives both directions the same say.
//! 2. The centre of a side is the mean without its lowest and highest fifth (from five samples on), and its error is that of Yuen and Welch
//!    for trimmed means (K. Yuen, "The two-sample trimmed t for unequal population variances", Biometrika 61, 1974): a few stalled
//!    steps do not move it.
//! 3. Samples in sequence are not independent. From sixteen samples on the error is also taken from the centres of eight blocks of
//!    neighbours, and the larger of the two counts. Below that, half the distance between the centres of the two halves is added to the
//!    error of a side, in quadrature: that is what a drift of the side could be worth.
//! 4. The interval of the ratio is the two-sided one of Student's t at [`Rules::confidence`], with Welch's degrees of freedom.
//! 5. No spread inside one recording shows what differs between two (clocks, temperature, placement in memory, and above all the host).
//!    [`Rules::floor`] is what two recordings of the same may differ by; no smaller difference is a verdict. [`Rules::with_host_share`] gives
//!    it for times that the host has a share in.
//!
//! | verdict | when |
//! |---|---|
//! | `FASTER` / `SLOWER` | the whole interval lies below / above 1, by more than the floor |
//! | `SAME` | the whole interval, widened by the floor, lies within [`Rules::same_within`] of 1; or both sides hold the same numbers |
//! | `AMBIGUOUS` | anything else; always for a side with one sample |

//!
//! # Benchmarks
//!
//! [`compare_runs`] compares two builds of a benchmark from the samples of one process each, or of several that took turns. Centres are the
//! same; the interval is that of a block bootstrap: blocks of neighbours are drawn anew a thousand times (with a fixed seed), and processes
//! with them where there are several. docs/bench-statistics.md says how often its verdicts are wrong.

mod centre;
mod compare;
mod quantile;
mod random;
mod runs;

pub use compare::{Comparison, Excess, Rules, Verdict, compare};
pub use quantile::{median, relative_spread};
pub use runs::{Doubt, LEAST_ROUNDS, LEAST_SAMPLES, LOOKS, RunRules, Runs, RunsComparison, RunsSide, Sample, compare_runs};
