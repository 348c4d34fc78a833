//! Reports against what ncu itself prints for them, and against damage.

mod files;
mod raw_page;
mod summaries;
