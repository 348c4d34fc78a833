//! The built program on recorded traces: what it prints, and how it ends.

#![expect(clippy::expect_used, reason = "a helper that cannot go on fails its test")]

mod contract;
mod docs;
mod harness;
#[path = "../../../longpole-report/tests/report/schema.rs"]
mod schema;
mod snapshots;
mod usage;
