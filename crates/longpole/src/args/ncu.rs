//! Flags of `ncu`.

use std::ffi::OsString;

use clap::Args;
use regex::Regex;

use crate::sink::Sink;

use super::{ColorWhen, FormatFlags, MOST_THREADS, StatsFormat, parse_limit};

/// Flags of `ncu`.
#[derive(Args, Debug)]
pub(crate) struct NcuArgs {
    /// A report of Nsight Compute, or - for standard input
    #[arg(value_name = "REPORT")]
    pub(crate) input: OsString,

    #[command(flatten)]
    pub(crate) view: NcuView,

    /// Only kernels whose name or family matches
    #[arg(long, visible_alias = "filter", value_name = "REGEX", help_heading = "Kernels")]
    pub(crate) kernel: Option<Regex>,
    /// Only these results, by number from 0 (ncu's ID): 3 or 3,7
    #[arg(long, value_name = "N", value_delimiter = ',', conflicts_with = "compare", help_heading = "Kernels")]
    pub(crate) id: Vec<usize>,

    /// Order of the table (the keys are below) [default: duration]
    #[arg(long, value_name = "KEY", help_heading = "Output")]
    pub(crate) sort: Option<String>,
    /// Show this many rows of a table [default: 20; JSON and CSV: all] or hottest instructions [default: 5], 0 for all
    #[arg(long, value_name = "N", value_parser = parse_limit, allow_negative_numbers = true, help_heading = "Output")]
    pub(crate) limit: Option<usize>,
    /// Whole texts of ncu's suggestions, and every stall reason
    #[arg(long, help_heading = "Output")]
    pub(crate) full: bool,
    #[command(flatten)]
    pub(crate) format: FormatFlags,
    /// Never shorten names
    #[arg(long, help_heading = "Output")]
    pub(crate) full_names: bool,
    /// Colour the text; auto means on a terminal, unless NO_COLOR is set
    #[arg(long, value_name = "WHEN", default_value = "auto", help_heading = "Output")]
    pub(crate) color: ColorWhen,
    /// Show credentials, user names in paths and the recorded command line as they are
    #[arg(long, help_heading = "Output")]
    pub(crate) no_redact: bool,

    /// Threads that read, up to 64 [default: one a core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=MOST_THREADS), allow_negative_numbers = true, help_heading = "Running")]
    pub(crate) threads: Option<u16>,
    /// Do not run nvdisasm, even if it is there
    #[arg(long, help_heading = "Running")]
    pub(crate) no_nvdisasm: bool,
    /// No notes on standard error
    #[arg(long, short, help_heading = "Running")]
    pub(crate) quiet: bool,
    /// Exit with 3 when data is missing from the report
    #[arg(long, help_heading = "Running")]
    pub(crate) strict: bool,
    /// Say on standard error what the run cost (`--stats=json` for one line of JSON)
    #[arg(long, value_name = "FORMAT", num_args = 0..=1, require_equals = true, default_missing_value = "text", help_heading = "Running")]
    pub(crate) stats: Option<StatsFormat>,

    /// Where it is printed; no flag of this command.
    #[arg(skip)]
    pub(crate) sink: Sink,
}

/// What of a report is shown; the summary if nothing is said.
#[derive(Args, Debug, Default)]
#[group(id = "view", multiple = false)]
pub(crate) struct NcuView {
    /// All launches, with totals by name and by family
    #[arg(long, help_heading = "View")]
    pub(crate) table: bool,
    /// Samples by source line and by instruction
    #[arg(long, help_heading = "View")]
    pub(crate) source: bool,
    /// What changed since this report
    #[arg(long, value_name = "BEFORE", help_heading = "View")]
    pub(crate) compare: Option<OsString>,
    /// Raw metrics whose name matches, with their units
    #[arg(long, value_name = "REGEX", help_heading = "View")]
    pub(crate) metrics: Option<Regex>,
    /// One line a kernel
    #[arg(long, conflicts_with = "format", help_heading = "View")]
    pub(crate) report_only: bool,
}
