//! Why a report could not be used at all.

use std::io;

/// Nothing usable came out of the input. Each message is one sentence: what it is, what was expected, what to do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused.
    #[error("cannot read `{path}`: {source}")]
    Io {
        /// The input, as the user named it.
        path: String,
        /// What the system said.
        source: io::Error,
    },
    /// It was read and is not a report this version understands.
    #[error("`{path}` is not a usable Nsight Compute report: expected {expected}, found {found}; {hint}")]
    Unusable {
        /// The input, as the user named it.
        path: String,
        /// What would have been read.
        expected: &'static str,
        /// What was there.
        found: String,
        /// What to do.
        hint: &'static str,
    },
}
