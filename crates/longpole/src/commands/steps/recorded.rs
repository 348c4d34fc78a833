//! `longpole steps --run`: the steps of a program, run and recorded for them.
//!
//! It runs untraced first, so that clocks and caches are as they are in use, then a window is recorded, and of that only the second half is
//! reported, since recording begins slowly. Standard output is the report's; the program's goes to standard error.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::time::Duration;

use longpole_analysis::window_starts;
use longpole_report::redact_string;
use longpole_report::views::Recorded;
use longpole_trace::Ns;

use super::{Prepared, Shown, show};
use crate::args::{ApiCalls, StepsArgs, parse_range};
use crate::commands::record::{self, Ended, Output, Request};
use crate::exit::{Failure, complain};
use crate::session::Session;
use crate::unfinished::Unfinished;

/// Untraced running before a window, where nothing else is said: clocks have risen by then.
const DELAY: Duration = Duration::from_secs(1);
/// What is recorded then: hundreds of decode steps of most models, and few enough events to be read at once.
const WINDOW: Duration = Duration::from_secs(2);

/// The flags that say what is recorded.
const FLAGS: &str = "--delay, --window and --range";

pub(super) fn run(args: &StepsArgs, prepared: &Prepared) -> Result<(), Failure> {
    let flags = &args.recording;
    if !args.common.input.is_empty() {
        let input = args.common.input.to_string_lossy();
        return Err(Failure::Usage(if flags.command.is_empty() {
            format!("--run takes its program behind --, so that its flags are its own: longpole steps --run -- {input}")
        } else {
            format!("steps are of a FILE or of a program that --run runs, and both are given: `{input}` and `{}`", shown(&flags.command[0]))
        }));
    }
    let Some(program) = flags.command.first() else {
        return Err(Failure::Usage("--run needs a program: longpole steps --run -- PROGRAM ARGS".to_owned()));
    };
    if let Some(donor) = args.roles_from.as_deref().filter(|donor| *donor != "-" && !Path::new(donor).exists()) {
        // Asked before anything runs.
        return Err(Failure::Input(format!("there is no `{}`, which --roles-from names", shown(donor))));
    }
    let range = args.common.scope.recorded_range();
    range.map(parse_range).transpose().map_err(|said| Failure::Usage(format!("--range: {said}")))?;
    let by_default = |default: Duration| range.is_none().then_some(default);
    let (delay, window) = (flags.delay.or(by_default(DELAY)), flags.window.or(by_default(WINDOW)));
    let request = Request {
        command: &flags.command,
        range,
        delay,
        duration: window,
        api: ApiCalls::Launch,
        command_line: false,
        recorder: flags.recorder.as_deref(),
        quiet: args.common.quiet,
        output_to_stderr: true,
    };
    // Of its own folder, which nobody else may look into and which goes with this.
    let scratch = flags.output.is_none().then(|| tempfile::Builder::new().prefix("longpole-steps-").tempdir()).transpose()?;
    let output = match &scratch {
        Some(scratch) => Output::Named(scratch.path().join("window.longpole")),
        None => Output::choose(flags.output.as_deref(), program)?,
    };
    let recorded = record::record(&request, &output)?;
    let ended = recorded.ended;
    let still_running = recorded.still_running();
    let failed = recorded.killed("the steps are of what it recorded until then").or_else(|| {
        (ended.status() != 0)
            .then(|| format!("the program ended with status {}; the steps are of what it recorded until then", ended.status()))
    });
    let collected = match recorded.into_collected() {
        Ok(collected) => collected,
        Err(said) => {
            // Its parts are said to be there, if it has any.
            if let Some(scratch) = scratch.filter(|scratch| fs::read_dir(scratch.path()).is_ok_and(|mut entries| entries.next().is_some()))
            {
                let _ = scratch.keep();
            }
            return Err(without_steps(ended, said));
        }
    };
    let Some(path) = &collected.path else { return Err(without_steps(ended, collected.why_nothing(FLAGS, delay))) };
    if let Some(said) = still_running.filter(|_| !args.common.quiet) {
        complain(&said);
    }
    let results = read(args, prepared, path, &request, ended);
    drop(scratch);
    match (failed, results) {
        (Some(said), Ok(_)) => Err(Failure::Program(ended.status(), Some(said))),
        (None, Ok(true)) => Ok(()),
        (None, Ok(false)) => Err(Failure::Input(format!("no steps were found in what was recorded of `{}` (see {FLAGS})", shown(program)))),
        // What is wrong with the report is said, and the program's status is its own.
        (Some(_), Err(failure)) => Err(Failure::Program(ended.status(), failure.message())),
        (None, Err(failure)) => Err(failure),
    }
}

fn shown(text: &OsStr) -> std::borrow::Cow<'_, str> {
    text.to_string_lossy()
}

/// The end of a run that has nothing to report: the program's status where it failed.
fn without_steps(ended: Ended, why: String) -> Failure {
    match ended.status() {
        0 => Failure::Input(why),
        status => Failure::Program(status, Some(format!("{why}; the program ended with status {status}"))),
    }
}

/// Reads the recording and prints its steps; whether there are any.
fn read(args: &StepsArgs, prepared: &Prepared, path: &Path, request: &Request<'_>, ended: Ended) -> Result<bool, Failure> {
    let is_kept = args.recording.output.is_some();
    let private = |text: &OsStr| {
        let mut text = text.to_string_lossy().into_owned();
        if !args.common.no_redact {
            redact_string(&mut text);
        }
        text
    };
    let program = request.command.first().map(|program| private(program)).unwrap_or_default();
    let mut session = {
        // A recording that is not kept goes with a signal too.
        let _unfinished = (!is_kept).then(|| Unfinished::guard(path));
        let session = Session::open_recording(&args.common, path, args.common.scope.spec_of_recording(), &program)?;
        if !is_kept {
            // All of it is in memory now.
            fs::remove_file(path)?;
        }
        session
    };
    let range = request.range.map(|range| private(OsStr::new(range)));
    // The last @ begins a domain, as the recorder has it.
    let name = range.as_deref().and_then(|range| range.strip_prefix("nvtx:"));
    let starts = |name: &str| window_starts(session.index.trace(), name);
    let windows = name.map(|name| match (starts(name), name.rsplit_once('@')) {
        (starts_of, Some((name, _))) if starts_of.is_empty() => starts(name),
        (starts_of, _) => starts_of,
    });
    let nanoseconds = |duration: Duration| Ns(i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX));
    let path = is_kept.then(|| private(path.as_os_str()));
    let recorded = Recorded {
        program: &program,
        status: ended.status(),
        range: range.as_deref(),
        windows: windows.as_ref().map(Vec::len),
        delay: request.delay.filter(|delay| !delay.is_zero()).map(nanoseconds),
        window: request.duration.map(nanoseconds),
        path: path.as_deref(),
    };
    let shown = Shown { last_half: true, windows: windows.unwrap_or_default(), recorded: Some(recorded) };
    show(args, prepared, &mut session, &shown)
}
