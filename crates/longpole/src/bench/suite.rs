//! A suite: the program, and its list of benchmarks.

use std::ffi::{OsStr, OsString};
use std::io::BufRead as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use longpole_bench::protocol::{List, MAX_LIST_BYTES, ReadError, read_list};
use longpole_doctor::{Host, Machine as _};

use super::child::{Next, Running, Said, how};
use super::interrupt;
use crate::exit::Failure;

/// The variable that names the suite where no flag does.
pub(crate) const VARIABLE: &str = "LONGPOLE_SUITE";

/// A program that speaks the protocol of docs/suite-protocol.md.
#[derive(Clone, Debug)]
pub(crate) struct Suite {
    program: PathBuf,
    args: Vec<OsString>,
    /// How long it may say nothing.
    pub(crate) patience: Duration,
}

/// Where a suite is looked for: a path, or a name on the PATH.
fn find(program: &OsStr) -> Result<PathBuf, Failure> {
    let host = Host::default();
    let named = program.to_string_lossy();
    let path = if named.contains('/') || named.contains('\\') {
        PathBuf::from(program)
    } else {
        // A file of the current folder is meant before a program of the system.
        let here = PathBuf::from(".").join(program);
        if here.is_file() { here } else { PathBuf::from(host.on_path(&named).unwrap_or_else(|| named.clone().into_owned())) }
    };
    let text = path.to_string_lossy();
    if path.is_dir() {
        return Err(Failure::Input(format!("the suite `{named}` is a folder; name its program")));
    }
    if !path.exists() {
        return Err(Failure::Input(format!(
            "there is no suite `{named}`: --suite and ${VARIABLE} name the program that holds the benchmarks"
        )));
    }
    if !host.is_program(&text) {
        let ending = path.extension().and_then(OsStr::to_str);
        let fix = if ending == Some("py") {
            format!("start it with Python: --suite python3 --suite-arg {named}")
        } else {
            format!("make it executable: chmod +x {named}")
        };
        return Err(Failure::Input(format!("the suite `{named}` is no program that can be run; {fix}")));
    }
    Ok(path)
}

impl Suite {
    /// The suite that was named, or the one of the environment.
    pub(crate) fn new(named: Option<&OsStr>, args: &[OsString], patience: Duration) -> Result<Self, Failure> {
        let of_environment = std::env::var_os(VARIABLE).filter(|value| !value.is_empty());
        let Some(program) = named.map(OsStr::to_os_string).or(of_environment) else {
            return Err(Failure::Usage(format!(
                "which suite? Name the program that holds the benchmarks with --suite PATH or ${VARIABLE}; docs/suite-protocol.md says how to write one"
            )));
        };
        Ok(Self { program: find(&program)?, args: args.to_vec(), patience })
    }

    /// How it is called in messages.
    pub(crate) fn name(&self) -> String {
        self.program.file_name().unwrap_or(self.program.as_os_str()).to_string_lossy().into_owned()
    }

    /// The program with its own arguments, for a command line.
    pub(crate) fn words(&self) -> impl Iterator<Item = &OsStr> {
        std::iter::once(self.program.as_os_str()).chain(self.args.iter().map(OsString::as_os_str))
    }

    /// It, about to be started with these arguments.
    pub(crate) fn command<'a>(&self, args: impl IntoIterator<Item = &'a OsStr>) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.args).args(args);
        command
    }

    /// What it can measure.
    pub(crate) fn list(&self) -> Result<List, Failure> {
        let name = self.name();
        // Handed on as it comes: a long list takes time to understand, and something that the suite started may hold its output open.
        let read = |mut stdout: std::io::BufReader<std::process::ChildStdout>, take: &dyn Fn(Vec<u8>) -> bool| {
            while let Ok(some) = stdout.fill_buf().map(<[u8]>::to_vec) {
                stdout.consume(some.len());
                if some.is_empty() || !take(some) {
                    break;
                }
            }
        };
        let mut command = self.command(["list", "--json"].map(OsStr::new));
        let mut running =
            Running::start(&mut command, read).map_err(|error| Failure::Input(format!("the suite `{name}` cannot be started: {error}")))?;
        let mut text = Vec::new();
        while text.len() <= MAX_LIST_BYTES {
            match running.next(self.patience) {
                Next::Said(Said::Output(some)) => text.extend(some),
                Next::Said(Said::Complaint(_)) => {}
                Next::Over => break,
                Next::Silent => {
                    running.stop();
                    return Err(Failure::Input(format!(
                        "the suite `{name}` did not list its benchmarks within {} s and was ended (--timeout gives it longer)",
                        self.patience.as_secs()
                    )));
                }
                Next::Interrupted(signal) => {
                    running.leave();
                    interrupt::end(signal);
                }
            }
        }
        if text.len() > MAX_LIST_BYTES {
            // However it ends then: it was not let go on.
            running.stop();
            return Err(Failure::Input(format!("`{name} list --json`: {}", ReadError::LongList)));
        }
        let status = running.status();
        let words = last_words(&running.last_words());
        if !status.is_some_and(|status| status.success()) {
            return Err(Failure::Input(format!("`{name} list --json` {}{words}", how(status))));
        }
        read_list(text.as_slice()).map_err(|error| Failure::Input(format!("`{name} list --json`: {error}{words}")))
    }
}

/// What a program complained about last, as the end of a sentence.
pub(crate) fn last_words(lines: &[String]) -> String {
    if lines.is_empty() { String::new() } else { format!("; its last words: {}", lines.join(" | ")) }
}
