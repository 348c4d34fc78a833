//! Flags of `bench` and `profile`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::{ColorWhen, FormatFlags, parse_limit};

/// Most rounds that can be asked for.
const MOST_ROUNDS: i64 = 1000;

/// Flags of `bench`.
#[derive(Args, Debug)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    pub(crate) command: BenchCommand,
}

/// What to do with benchmarks.
#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    /// The benchmarks of a suite, with their shapes, bytes and operations
    #[command(after_help = "Examples:
  longpole bench list --suite ./suite
  longpole bench list Qwen3-4B/ops --suite ./suite
  longpole bench list '/gemv/' --json")]
    List(BenchListArgs),
    /// Measure benchmarks: time, spread, GB/s, TFLOP/s, share of the measured peak
    #[command(
        after_help = "A KEY is a whole key (Qwen3-4B/ops/linear_down/decode/tile), the beginning of keys (Qwen3-4B/ops) or a regular expression \
('/gemv/', 'warp_row$'). Results are saved in bench/results/DATE-REVISION/ while it measures, with every sample and the clocks, \
temperature and throttling beside it. Exits with 1 when a benchmark fails or its result is wrong.

Examples:
  longpole bench run --suite ./suite
  longpole bench run Qwen3-4B/ops/linear_down --suite ./suite
  longpole bench run '/gemv/' --max-seconds 2 -o gemv.json
  longpole bench run --compare bench/results/2026-01-31-4ad2a26 --gate"
    )]
    Run(BenchRunArgs),
    /// Two builds compared: ratio with an interval, FASTER, SLOWER, SAME or AMBIGUOUS
    #[command(
        after_help = "BEFORE and AFTER are results of `bench run`, or folders of them (the newest is taken). Without AFTER the suite is measured now. \
Benchmarks in doubt are measured again: in turns with the suite from before where --suite-before names it, which cures what \
differs between two processes of the same build. docs/bench-statistics.md says how verdicts are found and how often they are \
wrong. Two devices are not compared; other clocks are flagged. --gate exits with 1 when a benchmark is SLOWER, or when nothing \
could be compared.

Examples:
  longpole bench compare before.json after.json
  longpole bench compare before.json --suite ./suite
  longpole bench compare --suite-before ./suite-old --suite-after ./suite-new --key '/gemv/'
  longpole bench compare before.json after.json --gate --markdown > comment.md"
    )]
    Compare(BenchCompareArgs),
    /// Measure what the device reaches: copy bandwidth and matrix rate, for --peaks
    #[command(
        after_help = "The suite measures them (its `peaks` command). `bench run` holds results against the file it finds in bench/peaks.json, and \
`longpole roofline --peaks` and `longpole steps --peaks` take it.

Examples:
  longpole bench peaks --suite ./suite
  longpole roofline trace.json.gz --peaks bench/peaks.json
  longpole bench peaks --suite ./suite -o h200.json
  longpole bench run --suite ./suite --peaks h200.json"
    )]
    Peaks(BenchPeaksArgs),
}

/// Which suite, and how it is treated.
#[derive(Args, Debug)]
pub(crate) struct SuiteFlags {
    /// The program that holds the benchmarks [default: $LONGPOLE_SUITE]
    #[arg(long, visible_alias = "suite-after", value_name = "PROGRAM", help_heading = "Suite")]
    pub(crate) suite: Option<OsString>,
    #[command(flatten)]
    pub(crate) more: MoreSuiteFlags,
}

/// The same without its program.
#[derive(Args, Debug)]
pub(crate) struct MoreSuiteFlags {
    /// An argument before the suite's own, such as the script of an interpreter; may be repeated
    #[arg(long, value_name = "ARG", allow_hyphen_values = true, help_heading = "Suite")]
    pub(crate) suite_arg: Vec<OsString>,
    /// End a suite that says nothing for this long
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u32).range(1..), help_heading = "Suite")]
    pub(crate) timeout: u32,
}

/// How results are printed.
#[derive(Args, Debug)]
pub(crate) struct BenchOutput {
    /// Show this many benchmarks, 0 for all [default: all]
    #[arg(long, value_name = "N", value_parser = parse_limit, allow_negative_numbers = true, help_heading = "Output")]
    pub(crate) limit: Option<usize>,
    #[command(flatten)]
    pub(crate) format: FormatFlags,
    /// Colour the text; auto means on a terminal, unless NO_COLOR is set
    #[arg(long, value_name = "WHEN", default_value = "auto", help_heading = "Output")]
    pub(crate) color: ColorWhen,
    /// No progress, no notes and nothing of the suite on standard error
    #[arg(long, short, help_heading = "Running")]
    pub(crate) quiet: bool,
}

impl BenchOutput {
    /// Rows to show; `None` for all.
    pub(crate) fn rows(&self) -> Option<usize> {
        self.limit.filter(|&limit| limit > 0)
    }
}

/// Flags of `bench list`.
#[derive(Args, Debug)]
pub(crate) struct BenchListArgs {
    /// A key, the beginning of keys, or a regular expression; all if none is given
    #[arg(value_name = "KEY")]
    pub(crate) keys: Vec<String>,
    /// Only benchmarks of this model
    #[arg(long, value_name = "MODEL", help_heading = "Benchmarks")]
    pub(crate) model: Option<String>,
    #[command(flatten)]
    pub(crate) suite: SuiteFlags,
    #[command(flatten)]
    pub(crate) output: BenchOutput,
}

/// What the second-level cache is to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Cache {
    Cold,
    Warm,
}

impl Cache {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Cold => "cold",
            Self::Warm => "warm",
        }
    }
}

/// How the suite measures; it has defaults of its own.
#[derive(Args, Debug, Default)]
pub(crate) struct MeasureFlags {
    /// Time for the samples of one benchmark
    #[arg(long, value_name = "S", value_parser = parse_positive, help_heading = "Measuring")]
    pub(crate) max_seconds: Option<f64>,
    /// Stop when the standard error of the median is below this share of it (0.002 for 0.2 %)
    #[arg(long, value_name = "F", value_parser = parse_positive, help_heading = "Measuring")]
    pub(crate) relative_error: Option<f64>,
    /// Take this many samples
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Measuring")]
    pub(crate) samples: Option<u32>,
    /// What the L2 cache holds before a run: cold (nothing of it) or warm
    #[arg(long, value_name = "STATE", hide_possible_values = true, help_heading = "Measuring")]
    pub(crate) l2: Option<Cache>,
}

impl MeasureFlags {
    /// As arguments of the suite's `run`.
    pub(crate) fn words(&self) -> Vec<OsString> {
        let mut words: Vec<OsString> = Vec::new();
        let mut add = |flag: &str, value: Option<String>| {
            if let Some(value) = value {
                words.extend([flag.into(), value.into()]);
            }
        };
        add("--max-seconds", self.max_seconds.map(|value| value.to_string()));
        add("--relative-error", self.relative_error.map(|value| value.to_string()));
        add("--samples", self.samples.map(|value| value.to_string()));
        add("--l2", self.l2.map(|value| value.name().to_owned()));
        words
    }
}

/// Where results are kept.
#[derive(Args, Debug)]
pub(crate) struct SaveFlags {
    /// Save the results in this file
    #[arg(long, short, value_name = "FILE", conflicts_with = "no_save", help_heading = "Saving")]
    pub(crate) output: Option<PathBuf>,
    /// Save in a folder of this one, by date and revision [default: bench/results]
    #[arg(long, value_name = "DIR", conflicts_with_all = ["no_save", "output"], help_heading = "Saving")]
    pub(crate) results: Option<PathBuf>,
    /// Save nothing
    #[arg(long, help_heading = "Saving")]
    pub(crate) no_save: bool,
}

/// How two builds are compared.
#[derive(Args, Debug)]
pub(crate) struct CompareFlags {
    /// The suite of the first build, to measure benchmarks in doubt in turns with the second
    #[arg(long, value_name = "PROGRAM", help_heading = "Comparing")]
    pub(crate) suite_before: Option<OsString>,
    /// Measure benchmarks in doubt in up to this many more processes a side, 0 for none
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = clap::value_parser!(u32).range(0..=MOST_ROUNDS), help_heading = "Comparing")]
    pub(crate) rounds: u32,
    /// Leave out samples taken while the device held its clocks down
    #[arg(long, help_heading = "Comparing")]
    pub(crate) exclude_throttled: bool,
    /// Compare even if the devices differ
    #[arg(long, help_heading = "Comparing")]
    pub(crate) other_device: bool,
    /// Exit with 1 when a benchmark is SLOWER or failed, or when nothing could be compared
    #[arg(long, help_heading = "Running")]
    pub(crate) gate: bool,
}

/// Flags of `bench run`.
#[derive(Args, Debug)]
pub(crate) struct BenchRunArgs {
    /// A key, the beginning of keys, or a regular expression; all if none is given
    #[arg(value_name = "KEY")]
    pub(crate) keys: Vec<String>,
    /// The same, as `bench compare` takes it; may be repeated
    #[arg(long = "key", short = 'k', value_name = "KEY", help_heading = "Benchmarks")]
    pub(crate) more_keys: Vec<String>,
    /// Only benchmarks of this model
    #[arg(long, value_name = "MODEL", help_heading = "Benchmarks")]
    pub(crate) model: Option<String>,
    #[command(flatten)]
    pub(crate) suite: SuiteFlags,
    #[command(flatten)]
    pub(crate) measure: MeasureFlags,
    #[command(flatten)]
    pub(crate) save: SaveFlags,
    /// Measured peaks that results are held against [default: bench/peaks.json, if it is of this device]
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) peaks: Option<OsString>,
    /// Compare with these results, and measure again what is in doubt
    #[arg(long, value_name = "BEFORE", help_heading = "Comparing")]
    pub(crate) compare: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) comparing: CompareFlags,
    #[command(flatten)]
    pub(crate) out: BenchOutput,
}

/// Flags of `bench compare`.
#[derive(Args, Debug)]
pub(crate) struct BenchCompareArgs {
    /// Results of the first build
    #[arg(value_name = "BEFORE")]
    pub(crate) before: Option<PathBuf>,
    /// Results of the second build; measured now if not given
    #[arg(value_name = "AFTER")]
    pub(crate) after: Option<PathBuf>,
    /// Only this key, beginning of keys or regular expression; may be repeated
    #[arg(long = "key", short, value_name = "KEY", help_heading = "Benchmarks")]
    pub(crate) keys: Vec<String>,
    /// Only benchmarks of this model
    #[arg(long, value_name = "MODEL", help_heading = "Benchmarks")]
    pub(crate) model: Option<String>,
    #[command(flatten)]
    pub(crate) suite: SuiteFlags,
    #[command(flatten)]
    pub(crate) measure: MeasureFlags,
    /// Save what is measured in a folder of this one, by date and revision [default: bench/results]
    #[arg(long, value_name = "DIR", conflicts_with = "no_save", help_heading = "Saving")]
    pub(crate) results: Option<PathBuf>,
    /// Save nothing
    #[arg(long, help_heading = "Saving")]
    pub(crate) no_save: bool,
    #[command(flatten)]
    pub(crate) comparing: CompareFlags,
    #[command(flatten)]
    pub(crate) out: BenchOutput,
}

/// Flags of `bench peaks`.
#[derive(Args, Debug)]
pub(crate) struct BenchPeaksArgs {
    #[command(flatten)]
    pub(crate) suite: SuiteFlags,
    /// The file to write or to replace [default: bench/peaks.json, if it is not there]
    #[arg(long, short, value_name = "FILE", help_heading = "Saving")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) out: BenchOutput,
}

/// Flags of `profile`.
#[derive(Args, Debug)]
pub(crate) struct ProfileArgs {
    /// A key, the beginning of keys, or a regular expression
    #[arg(value_name = "KEY", required = true)]
    pub(crate) keys: Vec<String>,
    /// Only benchmarks of this model
    #[arg(long, value_name = "MODEL", help_heading = "Benchmarks")]
    pub(crate) model: Option<String>,
    #[command(flatten)]
    pub(crate) suite: SuiteFlags,

    /// Few sections, and a table of all launches
    #[arg(long, conflicts_with_all = ["full", "compare"], help_heading = "View")]
    pub(crate) table: bool,
    /// Every section: stalls, hot instructions, source lines
    #[arg(long, help_heading = "View")]
    pub(crate) full: bool,
    /// What changed since this report
    #[arg(long, value_name = "BEFORE", help_heading = "View")]
    pub(crate) compare: Option<OsString>,

    /// Kernels of an operation that are profiled, 0 for all; of a whole step (`MODEL/model/...`) all always are [default: 1]
    #[arg(long, value_name = "N", help_heading = "Profiling")]
    pub(crate) launch_count: Option<u32>,
    /// Nsight Compute's command line [default: ncu on the PATH, or where its installers put it]
    #[arg(long, value_name = "PROGRAM", help_heading = "Profiling")]
    pub(crate) ncu: Option<OsString>,
    /// Say how long it will take and what would be run, and stop
    #[arg(long, help_heading = "Profiling")]
    pub(crate) estimate: bool,

    /// Keep reports in a folder of this one, by date and revision [default: bench/results]
    #[arg(long, value_name = "DIR", help_heading = "Saving")]
    pub(crate) results: Option<PathBuf>,
    /// Write what is found to this file instead of standard error; - is standard output
    #[arg(long, short, value_name = "OUT", help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) format: FormatFlags,
    /// Never shorten names
    #[arg(long, help_heading = "Output")]
    pub(crate) full_names: bool,
    /// Colour the text; auto means on a terminal, unless NO_COLOR is set
    #[arg(long, value_name = "WHEN", default_value = "auto", help_heading = "Output")]
    pub(crate) color: ColorWhen,
    /// No progress and no notes
    #[arg(long, short, help_heading = "Running")]
    pub(crate) quiet: bool,

    /// Options of ncu, behind --
    #[arg(last = true, value_name = "NCU OPTIONS")]
    pub(crate) ncu_options: Vec<OsString>,
}

fn parse_positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value > 0.0 && value.is_finite() => Ok(value),
        _ => Err("use a number above 0".to_owned()),
    }
}
