//! ncu as it goes: what it says, how far it is, how it ends.

use std::ffi::OsString;
use std::io::{self, BufReader, Write as _};
use std::process::{ChildStdout, Command, ExitStatus};
use std::time::{Duration, Instant};

use longpole_bench::protocol::{Event, Events, Line, ReadError};

use super::failures;
use crate::bench::bar::Bar;
use crate::bench::child::{Next, Running, Said};
use crate::exit::Failure;

/// Lines kept that may say why it failed.
const MOST_SIGNS: usize = 64;

/// What came of it.
#[derive(Default)]
pub(super) struct Followed {
    /// How it ended; `None` if it had to be ended.
    pub(super) status: Option<ExitStatus>,
    /// Kernels that were profiled.
    pub(super) kernels: u64,
    /// Passes of all of them.
    pub(super) passes: u64,
    /// From the beginning to the first profiled kernel.
    pub(super) start_up: Option<Duration>,
    /// From there to the end.
    pub(super) profiling: Duration,
    /// Lines that may say why it failed.
    pub(super) signs: Vec<String>,
    /// Its last words.
    pub(super) last_words: Vec<String>,
    /// Whether it said nothing for too long.
    pub(super) silent: bool,
    /// The signal by which the user wants an end.
    pub(super) interrupted: Option<i32>,
}

/// Passes that a line of ncu reports of a kernel: `==PROF== Profiling "k" - 0: 0%....50%....100% - 8 passes`.
fn passes(line: &str) -> Option<u64> {
    let rest = line.strip_prefix("==PROF== Profiling ")?;
    let before = rest.trim_end().strip_suffix("passes").or_else(|| rest.trim_end().strip_suffix("pass"))?;
    before.trim_end().rsplit([' ', '-']).next()?.parse().ok()
}

/// Runs ncu. What the suite prints that is no event goes to standard output, what it and ncu complain of to standard error.
pub(super) fn follow(ncu: &str, words: &[OsString], patience: Duration, bar: &Bar, expected: Option<u64>) -> Result<Followed, Failure> {
    let read = |stdout: BufReader<ChildStdout>, take: &dyn Fn(Result<Line, ReadError>) -> bool| {
        for line in Events::new(stdout) {
            if !take(line) {
                break;
            }
        }
    };
    let began = Instant::now();
    let mut running = Running::start(Command::new(ncu).args(words), read)
        .map_err(|error| Failure::Input(format!("`{ncu}` cannot be started: {error}")))?;
    let mut followed = Followed::default();
    let of = |kernels: u64| expected.map_or_else(|| kernels.to_string(), |expected| format!("{kernels} of {expected}"));
    bar.say("starting the suite under ncu");
    loop {
        match running.next(patience) {
            Next::Said(Said::Output(line)) => output(line, &mut followed, bar)?,
            Next::Said(Said::Complaint(line)) => {
                if let Some(passes) = passes(&line) {
                    followed.kernels += 1;
                    followed.passes += passes;
                    followed.start_up.get_or_insert_with(|| began.elapsed());
                    bar.step();
                    bar.say(&format!("kernel {}, {passes} passes", of(followed.kernels)));
                } else {
                    complaint(&line, &mut followed, bar);
                }
            }
            Next::Over => break,
            Next::Silent => {
                followed.silent = true;
                running.stop();
                break;
            }
            Next::Interrupted(signal) => {
                running.leave();
                followed.interrupted = Some(signal);
                break;
            }
        }
    }
    followed.profiling = began.elapsed().saturating_sub(followed.start_up.unwrap_or_default());
    followed.last_words = running.last_words();
    if !followed.silent && followed.interrupted.is_none() {
        followed.status = running.status();
    }
    Ok(followed)
}

fn output(line: Result<Line, ReadError>, followed: &mut Followed, bar: &Bar) -> Result<(), Failure> {
    match line {
        Ok(Line::Text(text)) => {
            // An ncu without --log-file prints where the suite does.
            if text.starts_with("==") {
                complaint(&text, followed, bar);
                return Ok(());
            }
            let mut out = io::stdout().lock();
            writeln!(out, "{text}")?;
            Ok(out.flush()?)
        }
        Ok(Line::Event(event)) => {
            if let Event::Error { key, message } = *event {
                complaint(&format!("{key}: {message}"), followed, bar);
            }
            Ok(())
        }
        Ok(Line::Unknown(_)) => Ok(()),
        Err(error) => {
            bar.line(&format!("the suite breaks the protocol: {error}"));
            Ok(())
        }
    }
}

fn complaint(line: &str, followed: &mut Followed, bar: &Bar) {
    if failures::is_sign(line) && followed.signs.len() < MOST_SIGNS {
        followed.signs.push(line.to_owned());
    }
    // That it connects, disconnects and where the report is says nothing new.
    if !line.starts_with("==PROF==") {
        bar.line(line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_are_read_from_the_line_of_a_kernel() {
        assert_eq!(passes("==PROF== Profiling \"gemv\" - 0: 0%....50%....100% - 8 passes"), Some(8));
        assert_eq!(passes("==PROF== Profiling \"gemv\" - 0 (1/3): 0%....50%....100% - 38 passes "), Some(38));
        assert_eq!(passes("==PROF== Profiling \"gemv\" - 12: 0%....50%....100% - 1 pass"), Some(1));
        assert_eq!(passes("==PROF== Connected to process 12 (suite)"), None);
        assert_eq!(passes("==WARNING== 8 passes"), None);
    }
}
