//! Reports against what ncu itself prints for them, and against damage.

mod details_page;
mod eras;
mod files;
mod raw_page;
mod source_page;
mod summaries;
mod tables;
mod unit_names;
