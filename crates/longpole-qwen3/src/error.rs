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
    /// The device has not enough memory.
    #[error("{0}")]
    Room(String),
    /// Results cannot be written where they were asked for.
    #[error("{} cannot be written: {what}", if path.as_os_str().is_empty() { "-o".into() } else { path.display().to_string() })]
    Target {
        /// Where to.
        path: PathBuf,
        /// Why not.
        what: String,
    },
    /// The text cannot be printed.
    #[error("cannot print: {0}")]
    Output(std::io::Error),
}

impl Error {
    /// What the program ends with: 2 if something else has to be asked for, 3 if the model cannot be used, there is nothing to run it on, or its text cannot be printed. 1 is left
    /// to results that are wrong.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Asked(_) | Self::Target { .. } => 2,
            Self::File { .. }
            | Self::Content { .. }
            | Self::Unsupported(_)
            | Self::Weights(_)
            | Self::NotFound(_)
            | Self::Room(_)
            | Self::Device(_)
            | Self::Output(_) => 3,
        }
    }

    /// A file that cannot be read.
    pub fn file(path: &Path, cause: std::io::Error) -> Self {
        Self::File { path: path.to_owned(), cause }
    }

    /// A file that says something else than it should.
    pub fn content(path: &Path, what: impl std::fmt::Display) -> Self {
        Self::Content { path: path.to_owned(), what: what.to_string() }
    }
}
