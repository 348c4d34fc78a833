//! Chrome traces of writers other than PyTorch: recorded and made ones, their sums, and damage to them.

#![expect(clippy::expect_used, clippy::unwrap_used, reason = "a helper that cannot go on fails its test")]

mod damage;
mod generic;
mod jax;
mod onnx;
mod refusals;
mod sums;
mod support;
