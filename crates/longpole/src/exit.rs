//! How a run ends: exit codes, and one clear sentence on standard error.

use std::io::{self, Write as _};

use longpole_report::{printable, redact};

/// Fine.
const OK: i32 = 0;
/// A check or a comparison failed.
const CHECK: i32 = 1;
/// The command line asks for something that cannot be.
const USAGE: i32 = 2;
/// Nothing usable in the input, or not all of it under `--strict`.
const INPUT: i32 = 3;

/// Why a run ends early.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A budget was broken, a step got slower and `--gate` was given, or the doctor's checks failed under `--strict`.
    Check(String),
    /// Wrong flags, or names that the trace does not have.
    Usage(String),
    /// The input cannot be used.
    Input(String),
    /// Output could not be written.
    Output(io::Error),
    /// A program that was run for the user ended with this status, which is passed on; a sentence where there is one to say.
    Program(i32, Option<String>),
    /// One of these, with what helps: lines that stand below its message.
    Advised(Box<Self>, Vec<String>),
}

impl Failure {
    /// What there is to say.
    pub(crate) fn message(&self) -> Option<String> {
        parts(self).1
    }
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

/// Exit code and message.
fn parts(failure: &Failure) -> (i32, Option<String>) {
    match failure {
        // The reader has seen enough, as in `longpole ops f | head -1`.
        Failure::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => (OK, None),
        Failure::Output(error) => (USAGE, Some(format!("cannot write the output: {error}"))),
        Failure::Check(message) => (CHECK, Some(message.clone())),
        Failure::Usage(message) => (USAGE, Some(message.clone())),
        Failure::Input(message) => (INPUT, Some(message.clone())),
        Failure::Program(status, message) => (*status, message.clone()),
        Failure::Advised(failure, _) => parts(failure),
    }
}

/// Ends the process without freeing what it holds. Messages name paths and names of the trace, so they are redacted like any
/// other output, and cannot act on the terminal.
pub(crate) fn exit(result: Result<(), Failure>, shows_secrets: bool) -> ! {
    let (code, message) = result.as_ref().err().map_or((OK, None), parts);
    if let Some(message) = message {
        let message = if shows_secrets { message.into() } else { redact(&message) };
        complain(&format!("error: {}", printable(&message)));
    }
    if let Err(Failure::Advised(_, advice)) = &result {
        for line in advice {
            complain(&printable(&if shows_secrets { line.into() } else { redact(line) }));
        }
    }
    std::mem::forget(result);
    std::process::exit(code)
}
