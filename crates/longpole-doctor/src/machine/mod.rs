//! How a machine is looked at. Everything the doctor knows comes through [`Machine`], so that any machine can be put in its place.

mod captured;
mod host;

pub use captured::Captured;
pub use host::Host;

/// Most bytes that are read of a file. What is read is configuration and tables of the kernel; the largest, a list of modules, is some
/// ten kilobytes.
pub const MOST_FILE_BYTES: usize = 1 << 20;

/// Most bytes that are read of each stream of a program.
pub const MOST_OUTPUT_BYTES: usize = 1 << 18;

/// Most names that are read of a directory. `/proc` has one for each process.
pub const MOST_NAMES: usize = 1 << 16;

/// How a program ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// There is no such program.
    Missing,
    /// It could not be started.
    NotStarted(String),
    /// It did not end in time and was stopped.
    TimedOut,
    /// It ended by itself.
    Ended {
        /// Whether it says that all went well.
        success: bool,
        /// The beginning of what it printed.
        stdout: String,
        /// The beginning of its complaints.
        stderr: String,
    },
}

impl Outcome {
    /// What it printed, if it says that all went well.
    pub fn output(&self) -> Option<&str> {
        match self {
            Self::Ended { success: true, stdout, .. } => Some(stdout),
            _ => None,
        }
    }

    /// Everything it said, whether it succeeded or not.
    pub fn said(&self) -> String {
        match self {
            Self::Ended { stdout, stderr, .. } => format!("{stdout}\n{stderr}"),
            _ => String::new(),
        }
    }
}

/// A machine that can be looked at, and not changed.
///
/// Every answer is bounded ([`MOST_FILE_BYTES`], [`MOST_OUTPUT_BYTES`], [`MOST_NAMES`], a time limit for programs), and none panics. Bytes
/// that are no UTF-8 are replaced. What cannot be read is absent: the doctor says of such a fact that it is not known.
pub trait Machine {
    /// The text of a regular file.
    fn read(&self, path: &str) -> Option<String>;
    /// The names in a directory, sorted; none if it cannot be listed.
    fn list(&self, directory: &str) -> Vec<String>;
    /// Whether something is at this path.
    fn exists(&self, path: &str) -> bool;
    /// Whether a program that can be run is at this path.
    fn is_program(&self, path: &str) -> bool;
    /// The path with every symbolic link followed.
    fn canonical(&self, path: &str) -> Option<String>;
    /// Runs a program, given by its path, in the plainest language and with nothing to read.
    fn run(&self, program: &str, args: &[&str]) -> Outcome;
    /// A variable of the environment; an empty one is none.
    fn variable(&self, name: &str) -> Option<String>;
    /// The current directory.
    fn directory(&self) -> Option<String>;
    /// Bytes that this user may still write below a path.
    fn free_bytes(&self, path: &str) -> Option<u64>;
    /// Whether this user may write at a path.
    fn is_writable(&self, path: &str) -> Option<bool>;

    /// A program as a shell would find it.
    fn on_path(&self, name: &str) -> Option<String> {
        let path = self.variable("PATH")?;
        path.split(':').filter(|folder| folder.starts_with('/')).map(|folder| join(folder, name)).find(|path| self.is_program(path))
    }
}

/// The names of configuration files in a folder, as its tools take them.
pub(crate) fn configuration_files(machine: &dyn Machine, folder: &str) -> Vec<String> {
    /// Files read of one folder.
    const MOST: usize = 256;
    let names = machine.list(folder).into_iter();
    names.filter(|name| std::path::Path::new(name).extension().is_some_and(|ending| ending == "conf")).take(MOST).collect()
}

/// A path below a folder.
pub(crate) fn join(folder: &str, name: &str) -> String {
    format!("{}/{name}", folder.trim_end_matches('/'))
}
