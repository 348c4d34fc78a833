//! The built program on recorded traces: what it prints, and how it ends. Beside it, what the importer and the analyses come to
//! together, which no library crate can test alone.

#![expect(clippy::expect_used, clippy::unwrap_used, reason = "a helper that cannot go on fails its test")]

mod bench;
mod bench_faults;
mod check;
mod chrome;
mod contract;
mod converted;
mod diff;
mod docs;
mod doctor;
mod export;
mod harness;
mod hostile;
mod importer;
mod made_report;
mod ncu;
mod nsys;
mod nvdisasm;
mod parity;
mod profile;
mod readme;
mod record;
mod redaction;
mod report;
#[path = "../../../longpole-report/tests/report/schema.rs"]
mod schema;
mod slice;
mod slice_rows;
#[path = "../../../longpole-analysis/tests/analysis/slow_reader.rs"]
mod slow_reader;
mod snapshots;
mod steps_idle;
mod steps_run;
mod sums;
#[path = "../../../longpole-analysis/tests/analysis/torch_table.rs"]
mod torch_table;
mod trust;
mod usage;
mod verdicts;
