//! Flags of `report`.

use std::ffi::OsString;

use clap::Args;
use longpole_trace::Ns;

use super::Common;
use crate::time_window;

/// Flags of `report`.
#[derive(Args, Debug)]
pub(crate) struct ReportArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    /// A trace or report from before, to compare with
    #[arg(value_name = "BEFORE", index = 2)]
    pub(crate) before: Option<OsString>,
    /// The page to write or to replace, or - for standard output [default: INPUT's name with .report.html, if nothing is there]
    #[arg(long, short, value_name = "HTML", help_heading = "Output")]
    pub(crate) output: Option<OsString>,
    /// Say what ran, instead of what the trace suggests
    #[arg(long, value_name = "TEXT", help_heading = "Output")]
    pub(crate) workload: Option<String>,
    /// How long one step takes without a profiler, in ms (see `longpole triage --help`)
    #[arg(long, value_name = "MS", value_parser = time_window::parse_ms, help_heading = "Output")]
    pub(crate) unprofiled_step_ms: Option<Ns>,
    /// Find steps as if no range had been recorded
    #[arg(long, help_heading = "Steps")]
    pub(crate) ignore_ranges: bool,
    /// Take the names of roles from the steps of this trace, e.g. an eager run of the same model
    #[arg(long, value_name = "TRACE", help_heading = "Steps")]
    pub(crate) roles_from: Option<OsString>,
    /// Peaks measured on the machine, as JSON (see `longpole roofline --help`); the table of devices gives the rest
    #[arg(long, value_name = "JSON", help_heading = "Steps")]
    pub(crate) peaks: Option<OsString>,
}
