//! Where a report goes that is usually printed: standard output belongs to the program where one is run for the user.

use std::fs::OpenOptions;
use std::io::{self, IsTerminal as _};
use std::path::PathBuf;

/// A place for output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Sink {
    /// Standard output.
    #[default]
    Stdout,
    /// Standard error.
    Stderr,
    /// A file, to which is added.
    File(PathBuf),
}

impl Sink {
    /// The place that `-o` names: standard error without it, standard output for `-`, and a file otherwise, which is made empty.
    pub(crate) fn named(output: Option<&PathBuf>) -> io::Result<Self> {
        match output {
            None => Ok(Self::Stderr),
            Some(path) if path.as_os_str() == "-" => Ok(Self::Stdout),
            Some(path) => {
                std::fs::File::create(path)?;
                Ok(Self::File(path.clone()))
            }
        }
    }

    /// Writes and flushes.
    pub(crate) fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let to = |out: &mut dyn io::Write| out.write_all(bytes).and_then(|()| out.flush());
        match self {
            Self::Stdout => to(&mut io::stdout().lock()),
            Self::Stderr => to(&mut io::stderr().lock()),
            Self::File(path) => to(&mut OpenOptions::new().append(true).create(true).open(path)?),
        }
    }

    /// Whether someone looks at it.
    pub(crate) fn is_terminal(&self) -> bool {
        match self {
            Self::Stdout => io::stdout().is_terminal(),
            Self::Stderr => io::stderr().is_terminal(),
            Self::File(_) => false,
        }
    }

    /// Its columns, where it is a terminal.
    pub(crate) fn columns(&self) -> Option<usize> {
        let size = match self {
            Self::Stdout => terminal_size::terminal_size_of(io::stdout()),
            Self::Stderr => terminal_size::terminal_size_of(io::stderr()),
            Self::File(_) => None,
        };
        size.map(|(width, _)| usize::from(width.0))
    }
}
