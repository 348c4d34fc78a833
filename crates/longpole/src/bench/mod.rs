//! Running suites of benchmarks and keeping what they measured: the part of `longpole bench` and `longpole profile` that is not about flags
//! and output.
//!
//! A suite is a foreign program. It runs in a group of processes of its own ([`child`]), which goes with it when it hangs, when the user
//! interrupts, or when this program ends; what it prints is bounded by the readers of `longpole-bench`. Results are saved while measuring
//! goes on ([`record`]), so that whatever happens later costs at most the last seconds of them.

pub(crate) mod bar;
pub(crate) mod child;
pub(crate) mod choose;
pub(crate) mod git;
pub(crate) mod interrupt;
pub(crate) mod judge;
pub(crate) mod measure;
pub(crate) mod near;
pub(crate) mod record;
pub(crate) mod show;
pub(crate) mod store;
pub(crate) mod suite;
pub(crate) mod when;
