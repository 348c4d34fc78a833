//! The recorder as programs meet it: the built library, loaded by a program that plays the driver and NVTX, on a mock of CUPTI.
//!
//! `LONGPOLE_TEST_RUNNER` is put before every run of the program: `cargo xtask memcheck` has all of this run under valgrind.

mod checks;
mod harm;
mod harness;
mod processes;
