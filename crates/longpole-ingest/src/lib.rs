//! Importers: profile files in, the trace model and its problems out.
//!
//! [`import`] takes a file, a directory or archive of rank files, or standard input, compressed or not, finds the format
//! by content, and returns an [`Imported`]: a trace and the trouble met on the way. Only an input with nothing usable in
//! it is an [`ImportError`].
//!
//! To add a format: one folder beside `kineto`, one line in `formats`.

mod days;
mod error;
mod formats;
mod input;
mod json;
mod kineto;
mod neighbours;
mod nsys;
mod rank_files;
mod recording;
mod totals;
mod unobserved;

pub use error::ImportError;
pub use formats::{Answers, FormatFacts, QUESTIONS, formats};
pub use input::{ImportOptions, Imported, Input, Progress, SourceInfo, import, import_bytes};
pub use recording::explain_refusal;
