//! Keyed GPU benchmarks: what a suite of them is called with, what it prints, and how it measures.
//!
//! A suite is any program that speaks the protocol of `docs/suite-protocol.md`. [`protocol`] holds its messages, for both sides; [`key`] the
//! names of benchmarks and how they are chosen, [`results`] what measuring left behind.

pub mod key;
pub mod protocol;
pub mod results;
