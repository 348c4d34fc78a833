//! Flags of `steps`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::Common;
use super::record::{parse_seconds, parse_window};

/// Flags of what is run and recorded first.
#[derive(Args, Debug)]
pub(crate) struct RecordingFlags {
    /// Run a program and record a window of it instead of reading a FILE
    #[arg(long, help_heading = "Recording")]
    pub(crate) run: bool,
    /// Run untraced for this many seconds after CUDA starts [default: 1, with --range 0]
    #[arg(long, value_name = "S", value_parser = parse_seconds, requires = "run", help_heading = "Recording")]
    pub(crate) delay: Option<Duration>,
    /// Then record for this many seconds; the program runs on [default: 2, with --range to the end]
    #[arg(long, value_name = "S", value_parser = parse_window, requires = "run", help_heading = "Recording")]
    pub(crate) window: Option<Duration>,
    /// Keep the recording in this file; a file that is there is not overwritten
    #[arg(long, short, value_name = "OUT", requires = "run", help_heading = "Recording")]
    pub(crate) output: Option<PathBuf>,
    /// The recorder to inject [default: as `record` finds it]
    #[arg(long, value_name = "PATH", requires = "run", help_heading = "Recording")]
    pub(crate) recorder: Option<PathBuf>,
    /// The program and its arguments
    #[arg(value_name = "PROGRAM", index = 2, last = true)]
    pub(crate) command: Vec<OsString>,
}

/// Flags of `steps`.
#[derive(Args, Debug)]
pub(crate) struct StepsArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(flatten)]
    pub(crate) recording: RecordingFlags,
    /// Keep only the second half of each group's steps; the busy time of both halves is shown (--run does so always)
    #[arg(long, help_heading = "Steps")]
    pub(crate) last_half: bool,
    /// Find steps as if no range had been recorded
    #[arg(long, help_heading = "Steps")]
    pub(crate) ignore_ranges: bool,
    /// A row for each `role`, or for each `kernel`
    #[arg(
        long,
        value_name = "WHAT",
        default_value = "role",
        hide_default_value = true,
        hide_possible_values = true,
        help_heading = "Output"
    )]
    pub(crate) by: StepRows,
    /// Take the names of roles from the steps of this trace, e.g. an eager run of the same model
    #[arg(long, value_name = "FILE", help_heading = "Steps")]
    pub(crate) roles_from: Option<OsString>,
    /// Peaks measured on the machine, as JSON (see `longpole roofline --help`); the table of devices gives the rest
    #[arg(long, value_name = "FILE", help_heading = "Steps")]
    pub(crate) peaks: Option<OsString>,
}

/// What a row of `steps` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StepRows {
    Role,
    Kernel,
}
