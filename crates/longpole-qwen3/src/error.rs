//! What can go wrong, each as a sentence for the person who runs it.

use std::path::{Path, PathBuf};

use longpole_bench::measure;

/// Why something could not be done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read.
    #[error("{}: {cause}", path.display())]
    File {
        /// Which one.
        path: PathBuf,
        /// Why.
        cause: std::io::Error,
    },
    /// A file does not say what it should.
    #[error("{}: {what}", path.display())]
    Content {
        /// Which one.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// The model is of a kind that this engine does not run.
    #[error("unsupported model: {0}")]
    Unsupported(String),
    /// The weights do not have what the configuration asks for.
    #[error("weights: {0}")]
    Weights(String),
    /// The model cannot be found.
    #[error("{0}")]
    NotFound(String),
    /// What is asked does not fit.
    #[error("{0}")]
    Asked(String),
    /// The device, its driver or a library.
    #[error(transparent)]
    Device(#[from] measure::Error),
    /// The text cannot be printed.
    #[error("cannot print: {0}")]
    Output(std::io::Error),
}

impl Error {
    /// A file that cannot be read.
    pub fn file(path: &Path, cause: std::io::Error) -> Self {
        Self::File { path: path.to_owned(), cause }
    }

    /// A file that says something else than it should.
    pub fn content(path: &Path, what: impl std::fmt::Display) -> Self {
        Self::Content { path: path.to_owned(), what: what.to_string() }
    }
}
