//! Keyed GPU benchmarks: what a suite of them is called with, what it prints, and how it measures.
//!
//! A suite is any program that speaks the protocol of `docs/suite-protocol.md`. [`protocol`] holds its messages, for both sides; [`key`] the
//! names of benchmarks and how they are chosen. A suite in Rust lists its benchmarks in a [`suite::Suite`]; [`measure`] times them on a
//! [`measure::Driver`]. There are two drivers: `cuda` behind the feature of that name, and [`fake`] for tests.
//!
//! Without the feature this crate is light: readers of the protocol need no CUDA. [`results`] is what measuring
//! left behind.

#[cfg(feature = "cuda")]
pub mod cuda;
pub mod fake;
pub mod key;
pub mod measure;
pub mod protocol;
pub mod results;
pub mod suite;
