//! Flags of `record`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

/// Flags of `record`.
#[derive(Args, Debug)]
pub(crate) struct RecordArgs {
    /// The program and its arguments
    #[arg(value_name = "COMMAND", required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) command: Vec<OsString>,

    /// Only while the program says so: `profiler` from cudaProfilerStart to cudaProfilerStop (torch.cuda.profiler.start), `nvtx:NAME`
    /// inside NVTX ranges of that name
    #[arg(long, value_name = "RANGE", value_parser = parse_range, help_heading = "What is recorded")]
    pub(crate) range: Option<String>,
    /// Begin this many seconds after CUDA starts
    #[arg(long, value_name = "S", value_parser = parse_seconds, help_heading = "What is recorded")]
    pub(crate) delay: Option<Duration>,
    /// Record for this many seconds; the program runs on
    #[arg(long, value_name = "S", value_parser = parse_window, help_heading = "What is recorded")]
    pub(crate) duration: Option<Duration>,
    /// Which calls of CUDA: those that launch, copy, wait or allocate, or all (dearer)
    #[arg(long, value_name = "CALLS", default_value = "launch", help_heading = "What is recorded")]
    pub(crate) api: ApiCalls,
    /// Keep the command line in the recording (it may hold secrets)
    #[arg(long, help_heading = "What is recorded")]
    pub(crate) command_line: bool,

    /// The recording to write; a file that is there is not overwritten [default: PROGRAM-DATE-TIME.longpole]
    #[arg(long, short, value_name = "OUT", help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,
    /// No triage and no notes on standard error
    #[arg(long, short, help_heading = "Output")]
    pub(crate) quiet: bool,
    /// Show credentials, user names in paths, e-mail addresses and host names as they are
    #[arg(long, help_heading = "Output")]
    pub(crate) no_redact: bool,

    /// The recorder to inject [default: $LONGPOLE_RECORDER, else liblongpole_recorder.so beside longpole or in ../lib]
    #[arg(long, value_name = "PATH", help_heading = "Running")]
    pub(crate) recorder: Option<PathBuf>,
}

/// Which calls are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ApiCalls {
    Launch,
    All,
}

impl ApiCalls {
    /// The word that the recorder understands.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Launch => "launch",
            Self::All => "all",
        }
    }
}

pub(crate) fn parse_range(text: &str) -> Result<String, String> {
    match text.split_once(':') {
        None if text == "profiler" => Ok(text.to_owned()),
        Some(("nvtx", name)) if !name.is_empty() => Ok(text.to_owned()),
        _ => Err("use `profiler` or `nvtx:NAME`".to_owned()),
    }
}

/// A year of seconds is more than anyone waits for.
const LONGEST: f64 = 365.0 * 86_400.0;

pub(crate) fn parse_seconds(text: &str) -> Result<Duration, String> {
    match text.strip_suffix('s').unwrap_or(text).parse::<f64>() {
        Ok(seconds) if (0.0..=LONGEST).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err("use a number of seconds, such as 10 or 0.5".to_owned()),
    }
}

/// How long is recorded, which the recorder takes in milliseconds: with none of them the program would run for nothing.
pub(crate) fn parse_window(text: &str) -> Result<Duration, String> {
    match parse_seconds(text)? {
        window if window.as_millis() == 0 => Err("nothing would be recorded: use 0.001 seconds or more".to_owned()),
        window => Ok(window),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_and_seconds_are_read() {
        assert_eq!(parse_range("profiler").as_deref(), Ok("profiler"));
        assert_eq!(parse_range("nvtx:decode: step").as_deref(), Ok("nvtx:decode: step"));
        assert!(parse_range("nvtx:").is_err() && parse_range("decode").is_err() && parse_range("").is_err());
        assert_eq!(parse_seconds("1.5"), Ok(Duration::from_millis(1500)));
        assert_eq!(parse_seconds("10s"), Ok(Duration::from_secs(10)));
        assert_eq!((parse_seconds("0"), parse_window("0.001s")), (Ok(Duration::ZERO), Ok(Duration::from_millis(1))));
        assert!(parse_window("0").is_err() && parse_window("0.0009").is_err() && parse_window("-1").is_err());
        assert!(parse_seconds("-1").is_err() && parse_seconds("NaN").is_err() && parse_seconds("1e99").is_err());
    }
}
