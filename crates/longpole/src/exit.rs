//! How a run ends: exit codes, and one clear sentence on standard error.

use std::io::{self, Write as _};

/// Fine.
const OK: i32 = 0;
/// The command line asks for something that cannot be.
const USAGE: i32 = 2;
/// Nothing usable in the input, or not all of it under `--strict`.
const INPUT: i32 = 3;

/// Why a run ends early.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Wrong flags, or names that the trace does not have.
    Usage(String),
    /// The input cannot be used.
    Input(String),
    /// Output could not be written.
    Output(io::Error),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

/// Prints a line on standard error; a closed one is not worth failing for.
pub(crate) fn complain(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

fn code(result: &Result<(), Failure>) -> i32 {
    match result {
        Ok(()) => OK,
        // The reader has seen enough, as in `longpole ops f | head -1`.
        Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => OK,
        Err(Failure::Output(error)) => {
            complain(&format!("error: cannot write the output: {error}"));
            USAGE
        }
        Err(Failure::Usage(message)) => {
            complain(&format!("error: {message}"));
            USAGE
        }
        Err(Failure::Input(message)) => {
            complain(&format!("error: {message}"));
            INPUT
        }
    }
}

/// Ends the process without freeing what it holds.
pub(crate) fn exit(result: Result<(), Failure>) -> ! {
    let code = code(&result);
    std::mem::forget(result);
    std::process::exit(code)
}
