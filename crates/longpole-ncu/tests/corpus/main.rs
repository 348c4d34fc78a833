//! Reports against what ncu itself prints for them, ncu's tables as an input, and damage of all kinds.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "tests stop at what they do not expect, and say what they compared or skipped"
)]

mod compressed;
mod damage;
mod details_page;
#[path = "../support/encode.rs"]
mod encode;
mod eras;
mod files;
mod made;
mod raw_page;
mod source_page;
mod summaries;
mod tables;
mod unit_names;
