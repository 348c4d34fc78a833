//! `longpole record`: runs a program with the recorder injected, puts what its processes wrote into one file, and says where to look first.
//!
//! The program keeps its standard streams, its signals and its exit status; what we have to say goes to standard error. If anything of ours
//! fails after the program was started, the program's status is still the one that is returned.

mod child;
mod collect;
mod recorder;

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use longpole_report::{bytes, printable};

use super::triage;
use crate::args::{ApiCalls, RecordArgs};
use crate::exit::{Failure, complain};
pub(super) use child::Ended;
pub(super) use collect::Collected;

/// Status of shells for a program that is not there, and for one that cannot be run.
const NOT_FOUND: i32 = 127;
const NOT_RUN: i32 = 126;

/// A program, and what of it is to be recorded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request<'a> {
    pub(super) command: &'a [OsString],
    /// `profiler` or `nvtx:NAME`.
    pub(super) range: Option<&'a str>,
    pub(super) delay: Option<Duration>,
    pub(super) duration: Option<Duration>,
    pub(super) api: ApiCalls,
    pub(super) command_line: bool,
    pub(super) recorder: Option<&'a Path>,
    pub(super) quiet: bool,
    /// The program's standard output goes to standard error, since ours is for a report.
    pub(super) output_to_stderr: bool,
}

/// How a program ended, and what it left.
pub(super) struct Recorded {
    pub(super) ended: Ended,
    /// The recording, or why it could not be written.
    collected: io::Result<Collected>,
    /// The parts of the recording, which go with this.
    folder: tempfile::TempDir,
}

impl Recorded {
    /// What was collected, or why it could not be put into one file. What was recorded is not thrown away for want of room or permission: the
    /// folder of its parts stays, if there are any.
    pub(super) fn into_collected(self) -> Result<Collected, String> {
        self.collected.map_err(|error| {
            let folder = self.folder.path();
            match std::fs::read_dir(folder).map(|mut entries| entries.next().is_some()) {
                Ok(true) => {
                    format!("the recording could not be written ({error}); its parts are in `{}`", self.folder.keep().display())
                }
                Ok(false) => format!("the recording could not be written ({error}); it has no parts"),
                Err(_) => {
                    let shown = folder.parent().filter(|parent| !parent.is_dir()).unwrap_or(folder).display();
                    format!("the recording could not be written: the folder `{shown}` was removed while the program ran, and what was recorded with it")
                }
            }
        })
    }

    /// That a signal ended the program; `then` says what comes of that.
    pub(super) fn killed(&self, then: &str) -> Option<String> {
        let signal = self.ended.signal()?;
        Some(format!("the program was killed by signal {signal} ({}); {then}", child::signal_name(signal)))
    }

    /// That processes of the program run on.
    pub(super) fn still_running(&self) -> Option<String> {
        let (processes, run) = match self.collected.as_ref().map_or(0, |collected| collected.still_running) {
            0 => return None,
            1 => ("1 process".to_owned(), "runs"),
            several => (format!("{several} processes"), "run"),
        };
        Some(format!("{processes} of the program still {run}: what they do from now on is not recorded"))
    }
}

/// Runs a program to its end and puts what was recorded of it where `output` says, if that may be written.
pub(super) fn record(request: &Request<'_>, output: &Output) -> Result<Recorded, Failure> {
    let program = request.command.first().ok_or_else(|| Failure::Usage("there is no program to record".to_owned()))?;
    let recorder = recorder::find(request.recorder)?;
    recorder::refuse_others(&recorder)?;
    let folder = tempfile::Builder::new()
        .prefix(".longpole-record-")
        .tempdir_in(output.folder())
        .map_err(|error| Failure::Usage(format!("cannot record into `{}`: {error}", output.folder().display())))?;
    let mut command = std::process::Command::new(program);
    command.args(request.command.iter().skip(1));
    set_up(&mut command, request, &recorder, folder.path());
    let ended = child::run(&mut command).map_err(|error| not_started(program, &error))?;
    Ok(Recorded { ended, collected: collect::collect(folder.path(), output), folder })
}

pub(super) fn run(args: &RecordArgs) -> Result<(), Failure> {
    let request = Request {
        command: &args.command,
        range: args.range.as_deref(),
        delay: args.delay,
        duration: args.duration,
        api: args.api,
        command_line: args.command_line,
        recorder: args.recorder.as_deref(),
        quiet: args.quiet,
        output_to_stderr: false,
    };
    let program = args.command.first().ok_or_else(|| Failure::Usage("there is no program to record".to_owned()))?;
    // Before the program runs, so that an hour's recording does not fail for its name.
    let output = Output::choose(args.output.as_deref(), program)?;
    let recorded = record(&request, &output)?;
    let status = recorded.ended.status();
    Err(Failure::Program(status, report(args, recorded)))
}

/// Says what came of it; a message is what went wrong.
fn report(args: &RecordArgs, recorded: Recorded) -> Option<String> {
    let note = |text: &str| {
        if !args.quiet {
            complain(&printable(text));
        }
    };
    if let Some(said) = recorded.killed("what it recorded until then follows") {
        note(&said);
    }
    let still_running = recorded.still_running();
    let collected = match recorded.into_collected() {
        Ok(collected) => collected,
        Err(said) => return Some(said),
    };
    let Some(path) = &collected.path else {
        return Some(collected.why_nothing("--range, --delay and --duration", args.delay));
    };
    if let Some(said) = &still_running {
        note(said);
    }
    let shown = path.display().to_string();
    if args.quiet {
        return None;
    }
    match triage::page_of_recording(path, args.no_redact) {
        Ok(page) => complain(page.trim_end()),
        Err(failure) => return Some(format!("`{shown}` was written, and cannot be read: {}", failure.message().unwrap_or_default())),
    }
    let processes = if collected.processes == 1 { String::new() } else { format!(" of {} processes", collected.processes) };
    let size = bytes(i64::try_from(collected.bytes).unwrap_or(i64::MAX));
    complain("");
    note(&format!("recorded {shown} ({size}{processes}); next: longpole steps {shown}, longpole idle {shown}"));
    None
}

/// Environment of the program.
fn set_up(command: &mut std::process::Command, args: &Request<'_>, recorder: &Path, folder: &Path) {
    if args.output_to_stderr {
        command.stdout(io::stderr());
    }
    for variable in recorder::INJECTIONS {
        command.env(variable, recorder);
    }
    command.env("LONGPOLE_RECORD_DIR", folder).env("LONGPOLE_RECORD_API", args.api.word());
    let settings = [
        ("LONGPOLE_RECORD_RANGE", args.range.map(str::to_owned)),
        ("LONGPOLE_RECORD_DELAY_MS", args.delay.map(|delay| delay.as_millis().to_string())),
        ("LONGPOLE_RECORD_DURATION_MS", args.duration.map(|duration| duration.as_millis().to_string())),
        ("LONGPOLE_RECORD_COMMAND_LINE", args.command_line.then(|| "1".to_owned())),
    ];
    for (variable, value) in settings {
        match value {
            Some(value) => command.env(variable, value),
            // What an outer recording was asked for is not for this one.
            None => command.env_remove(variable),
        };
    }
    if std::env::var_os("KINETO_USE_DAEMON").is_some() && !args.quiet {
        complain("KINETO_USE_DAEMON is set: PyTorch may take CUPTI for itself before the recorder can; unset it if nothing is recorded");
    }
}

fn not_started(program: &OsStr, error: &io::Error) -> Failure {
    let shown = program.to_string_lossy();
    if error.kind() == io::ErrorKind::NotFound {
        let message = format!("there is no program `{shown}` (on the PATH, or as a path); nothing was run");
        return Failure::Program(NOT_FOUND, Some(message));
    }
    Failure::Program(NOT_RUN, Some(format!("`{shown}` cannot be run: {error}")))
}

/// Where the recording goes.
#[derive(Debug)]
pub(super) enum Output {
    /// This file, which was not there before the run.
    Named(PathBuf),
    /// A new file in this folder, with a name that begins so.
    New { folder: PathBuf, stem: String },
}

impl Output {
    /// The file that is named, or a new one by the name of the program; refused where it cannot be.
    pub(super) fn choose(given: Option<&Path>, program: &OsStr) -> Result<Self, Failure> {
        let Some(path) = given else {
            let base = Path::new(program).file_name().unwrap_or(program).to_string_lossy();
            let letters = base.chars().map(|c| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' });
            let base: String = letters.take(64).collect();
            return Ok(Self::New {
                folder: PathBuf::from("."),
                stem: format!("{}-{}", base.trim_start_matches(['.', '-']), collect::now()),
            });
        };
        let shown = path.display();
        if path.file_name().is_none() || path == Path::new("-") {
            return Err(Failure::Usage(
                "-o needs the name of a file: a recording does not go to standard output, which is the program's".to_owned(),
            ));
        }
        if path.symlink_metadata().is_ok() {
            return Err(Failure::Usage(format!("`{shown}` is there already, and recordings are not overwritten; choose another name")));
        }
        let this = Self::Named(path.to_owned());
        if !this.folder().is_dir() {
            return Err(Failure::Usage(format!("cannot write `{shown}`: there is no folder `{}`", this.folder().display())));
        }
        Ok(this)
    }

    /// Its folder.
    pub(super) fn folder(&self) -> &Path {
        match self {
            Self::Named(path) => path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or_else(|| Path::new(".")),
            Self::New { folder, .. } => folder,
        }
    }
}
