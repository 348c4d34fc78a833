//! What can go wrong in measuring.

/// Why a benchmark gave no time. Every variant is a sentence for the person who runs it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A library that is needed is not there.
    #[error("{0}")]
    Missing(String),
    /// A call to the device failed.
    #[error("{call} failed: {cause}")]
    Call {
        /// The function of the driver or library.
        call: &'static str,
        /// What it answered.
        cause: String,
    },
    /// The result is wrong, so its time says nothing.
    #[error("the result is wrong: {0}")]
    Wrong(String),
    /// The benchmark cannot be set up.
    #[error("{0}")]
    Setup(String),
    /// What was measured could not be printed.
    #[error("cannot print: {0}")]
    Output(#[from] std::io::Error),
}

impl Error {
    /// A failed call.
    pub fn call(call: &'static str, cause: impl std::fmt::Display) -> Self {
        Self::Call { call, cause: cause.to_string() }
    }

    /// Whether it is the reader of the output who has gone, after which there is nobody to measure for.
    pub fn is_output(&self) -> bool {
        matches!(self, Self::Output(_))
    }
}
