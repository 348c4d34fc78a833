//! Tests of the analyses on whole traces: hand-built ones, random ones against naive versions, and real ones against torch.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails, in its helpers too")]

mod idle;
mod naive;
mod ranks;
mod real;
mod roles;
mod roofline;
mod scale;
mod slow_ranks;
mod slow_reader;
mod step_ceilings;
mod step_numbers;
mod steps;
mod torch_parity;
mod torch_table;
mod traces;
mod triage_corpus;
