//! Commands and flags.

mod bench;
mod export;
mod ncu;
mod record;
mod report;
mod steps;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::ArgPredicate;
use clap::{Args, Parser, Subcommand, ValueEnum};
use longpole_analysis::{GroupBy, ScopeSpec};
use longpole_trace::Ns;
use regex::Regex;

pub(crate) use bench::{
    BenchArgs, BenchCommand, BenchCompareArgs, BenchListArgs, BenchOutput, BenchPeaksArgs, BenchRunArgs, CompareFlags, MoreSuiteFlags,
    ProfileArgs, SaveFlags, SuiteFlags,
};
pub(crate) use export::{ExportArgs, ExportFormat, Weight};
pub(crate) use ncu::{NcuArgs, NcuView};
pub(crate) use record::{ApiCalls, RecordArgs, parse_range};
pub(crate) use report::ReportArgs;
pub(crate) use steps::{StepRows, StepsArgs};

use crate::time_window;

/// Why is this GPU run slower than it should be?
#[derive(Debug, Parser)]
#[command(
    name = "longpole",
    version,
    about = "Why is this GPU run slower than it should be? Triage for PyTorch and CUDA profiles.",
    arg_required_else_help = true,
    subcommand_required = true,
    after_help = "`longpole FILE` is `longpole triage FILE`. A FILE is a trace (.json, .json.gz, .json.zst, .tar.gz, .longpole), a directory of \
rank files, or - for standard input; write ./ops for a file named like a command.

Examples:
  longpole trace.json.gz                           where to look first
  longpole trace.json.gz --report-only             the same in five lines
  longpole ops trace.json.gz --range decode_step   operators inside a named range
  longpole kernels trace.json.gz --json            whole kernel table for a script
  longpole explain host_bound                      what a suspect means and what fixes it
  longpole record -- python serve.py               record any CUDA program
  longpole doctor                                  what can be profiled on this machine

Exit codes: 0 fine, 1 a check failed (check, diff --gate, bench compare --gate, doctor --strict), 2 usage, 3 input unreadable \
(or partial, under --strict); `record` and `profile` return the status of their program, `steps --run` where it is not 0."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// First pass: trust, totals, heads of the tables, and a report of five lines
    #[command(after_help = "Examples:
  longpole trace.json.gz
  longpole triage ranks/ --rank 1
  longpole trace.json.gz --range decode_step --workload \"Qwen3-0.6B decode, batch 1\"
  longpole trace.json.gz --report-only
  longpole trace.json.gz --unprofiled-step-ms 12.5
  longpole after.json.gz --compare before.json.gz
  zcat trace.json.gz | longpole -")]
    #[command(mut_arg("sort", |arg| arg.help("Sort the operators by this key (`longpole ops --help` lists them), largest first")))]
    #[command(mut_arg("limit", |arg| arg.help("Show this many operators and ranges, 0 for all [default: 10; JSON: all]")))]
    #[command(mut_arg("filter", |arg| arg.help("Only rows of the tables whose name matches; totals, suspects and report stay whole")))]
    #[command(mut_arg("csv", |arg| arg.hide(true)))]
    Triage(TriageArgs),
    /// Operators: calls, host time, device time, memory
    #[command(after_help = "Sort keys (device_* is cuda_*):
  cuda_time_total       self_cuda_time_total       count
  cpu_time_total        self_cpu_time_total
  cuda_memory_usage     self_cuda_memory_usage
  cpu_memory_usage      self_cpu_memory_usage
The default is cuda_time_total, or cpu_time_total without device activity.

Examples:
  longpole ops trace.json.gz --sort self_cpu_time_total --limit 50
  longpole ops trace.json.gz --by shape --filter '^aten::(mm|addmm)$'
  longpole ops trace.json.gz --by stack=3
  longpole ops trace.json.gz --step 4 --csv > step4.csv")]
    Ops(OpsArgs),
    /// Kernels, copies and fills, with the operator that launched them
    #[command(after_help = "Sort keys: cuda (default), calls, min, median, max, name.

Examples:
  longpole kernels trace.json.gz --filter gemm
  longpole kernels trace.json.gz --range decode_step --full-names
  longpole kernels trace.json.gz --sort max --limit 5")]
    Kernels(TableArgs),
    /// Kernel families: gemm, attention, norm, elementwise, copies, ...
    #[command(after_help = "Sort keys: cuda (default), calls, name.

Examples:
  longpole families trace.json.gz
  longpole families trace.json.gz --range prefill --markdown")]
    Families(TableArgs),
    /// Named ranges: host time, GPU span, busy, idle, kernels
    #[command(after_help = "Sort keys: nesting (default), cpu, gpu_span, gpu_busy, gpu_idle, kernels, calls, name.

Examples:
  longpole ranges trace.json.gz
  longpole ranges trace.json.gz --sort gpu_idle --limit 5")]
    Ranges(TableArgs),
    /// Allocations by operator: allocated, freed, net, peak
    #[command(after_help = "Sort keys: allocated (default), freed, net, peak, allocations, calls, name.

Examples:
  longpole memory trace.json.gz
  longpole memory trace.json.gz --sort peak --range decode_step")]
    Memory(TableArgs),
    /// Whole steps: layers, time by role, idle inside and between, slow steps
    #[command(override_usage = "longpole steps [OPTIONS] <FILE>\n       longpole steps --run [OPTIONS] -- <PROGRAM> [ARGS]...")]
    #[command(
        after_help = "Steps are found by marker (record_function, NVTX, ProfilerStep), else by graph replay, else from the order of kernels alone. \
--filter takes markers (or, without any, groups) whose name matches.
Sort keys: part (default), time, spread, calls. Of each group the rows with most time are shown.

--run runs a program, leaves it alone for a second after CUDA starts, records two, and reports the second half of the steps in that \
window; with --range nvtx:NAME each range of that name is a window. What the program prints goes to standard error. Returns its status \
if it fails, and 3 when nothing was recorded, or nothing with steps.

Examples:
  longpole steps trace.json.gz
  longpole steps trace.json.gz --filter decode --limit 0
  longpole steps trace.json.gz --by kernel --sort time
  longpole steps trace.json.gz --ignore-ranges
  longpole steps graph.json.gz --roles-from eager.json.gz
  longpole steps trace.json.gz --csv > rows.csv
  longpole steps --run -- ./engine --model qwen3
  longpole steps --run --delay 20 --window 5 -o serve.longpole -- python serve.py
  longpole steps --run --range nvtx:window --json -- longpole-qwen3 workload"
    )]
    #[command(mut_arg("input", |arg| {
        // With --run there is none; an empty name says so.
        let absent = |id: &'static str| (id, ArgPredicate::IsPresent, Some(""));
        arg.index(1).required(false).required_unless_present_any(["run", "command"]).default_value_ifs([absent("run"), absent("command")])
    }))]
    #[command(mut_arg("range", |arg| arg.help("Only inside ranges of this name (a trailing * takes all that begin so); with --run, `nvtx:NAME` or `profiler` is \
what is recorded, as `record --range` has it")))]
    #[command(mut_arg("filter", |arg| arg.help("Only steps whose marker (or group, without markers) matches")))]
    #[command(mut_arg("limit", |arg| arg.help("Show this many rows of each group, 0 for all rows of all groups [default: 20; JSON and CSV: all]")))]
    Steps(StepsArgs),
    /// Why the GPU was idle: causes, ranges, host frames, queue
    #[command(after_help = "Every nanosecond between the first and the last activity of a device in which it ran nothing has one cause.
Sort keys of causes and host frames: idle (default), intervals, largest, name. --csv: causes by device.

Examples:
  longpole idle trace.json.gz
  longpole idle trace.json.gz --range decode_step
  longpole idle trace.json.gz --sort largest --limit 30
  longpole idle trace.json.gz --time 10ms..25ms --json")]
    #[command(mut_arg("filter", |arg| arg.help("Only ranges and host frames whose name matches; totals and causes stay whole")))]
    #[command(mut_arg("limit", |arg| arg.help("Show this many ranges and host frames, 0 for all [default: 10; JSON and CSV: all]")))]
    Idle(TableArgs),
    /// The least time each operator could take on its device, beside what it took
    #[command(after_help = "FLOPs and bytes follow from recorded input shapes (record_shapes=True), peaks from the device's data sheet.
--peaks FILE gives measured ones, all keys optional:
  {\"name\": \"my H200\", \"memory_bytes_per_s\": 4.3e12, \"cache_bytes\": 52428800,
   \"flops_per_s\": {\"bf16\": 7.5e14, \"fp8\": 1.4e15}}
Sort keys: time (default), above, ratio, floor, calls, flops, bytes, name.

Examples:
  longpole roofline trace.json.gz
  longpole roofline trace.json.gz --range decode_step --sort above
  longpole roofline trace.json.gz --peaks h200-measured.json --filter mm")]
    #[command(mut_arg("filter", |arg| arg.help("Only operators (or their kernels) whose name matches; totals stay whole")))]
    Roofline(RooflineArgs),
    /// Ranks of one run: compute, communication, waiting, and who is late and why
    #[command(after_help = "Give a directory of rank files, or the files. With one rank only, waiting cannot be told from transfer.
Sort keys: rank (default), caused, waiting, compute, communication, exposed, idle. --csv: the ranks.

Examples:
  longpole ranks ranks/
  longpole ranks rank0.json.gz rank1.json.gz
  longpole ranks ranks/ --range train_step --sort caused")]
    #[command(mut_arg("filter", |arg| arg.help("Only ranks whose number or file matches; everything else stays whole")))]
    #[command(mut_arg("limit", |arg| arg.help("Show this many collectives, 0 for all [default: 10; JSON: all]")))]
    Ranks(RanksArgs),
    /// Two traces compared: did it get faster, where, and is that more than noise
    #[command(
        after_help = "Steps are compared with steps (paired by name, else by layers, else by kernels). Verdicts: FASTER, SLOWER, SAME, AMBIGUOUS, with \
the smallest change that the data can show; docs/verdicts.md says how they are found. Two Nsight Compute reports go to `longpole \
ncu --compare`. --gate exits with 1 when a step is SLOWER, or when no steps could be compared.

Examples:
  longpole diff before.json.gz after.json.gz
  longpole diff eager.json.gz graph.json.gz --filter decode
  longpole diff before.json.gz after.json.gz --gate --markdown > comment.md
  longpole diff before.json.gz after.json.gz --csv > rows.csv"
    )]
    #[command(mut_arg("sort", |arg| arg.hide(true)))]
    #[command(mut_arg("filter", |arg| arg.help("Only rows whose name matches; whole steps stay")))]
    #[command(mut_arg("limit", |arg| arg.help("Show this many rows of each table, 0 for all [default: 8; JSON and CSV: all]")))]
    #[command(mut_arg("input", |arg| arg.index(1).value_name("BEFORE").help("The trace before the change")))]
    Diff(DiffArgs),
    /// Limits on any figure, for CI: kernels a step, busy share, allocations, or against a baseline
    #[command(
        after_help = "A budget is TOML with a [[limit]] for each figure, found by its path in what COMMAND --json prints, and a [[regression]] for \
each comparison with an earlier trace; docs/check.md describes it. Exits with 1 when a limit is broken.

Examples:
  longpole check trace.json.gz --write-budget -o budget.toml
  longpole check trace.json.gz --budget budget.toml
  longpole check trace.json.gz --budget budget.toml --github
  longpole check trace.json.gz --budget budget.toml --markdown > comment.md"
    )]
    #[command(mut_arg("sort", |arg| arg.hide(true)))]
    #[command(mut_arg("full_names", |arg| arg.hide(true)))]
    #[command(mut_arg("filter", |arg| arg.help("Only limits whose name matches; the others are not checked")))]
    #[command(mut_arg("limit", |arg| arg.help("Show this many limits, 0 for all [default: all]")))]
    #[command(mut_arg("input", |arg| arg.value_name("TRACE")))]
    Check(CheckArgs),
    /// A small trace of one step, range or time window, for a viewer or a colleague
    #[command(
        after_help = "OUT.json, OUT.json.gz and OUT.json.zst are compressed by their ending; - is standard output. Without a scope the whole trace is \
written anew. What is private is taken out as everywhere; docs/slice.md says what is kept.

Examples:
  longpole slice trace.json.gz --step 3 -o step3.json.gz
  longpole slice trace.json.gz --range decode_step -o decode.json
  longpole slice trace.json.gz --time 100ms..120ms -o window.json.zst
  longpole slice ranks/ --rank 1 --step 3 -o rank1_step3.json.gz
  longpole slice trace.json.gz --step 3 -o - | longpole -"
    )]
    #[command(mut_arg("input", |arg| arg.value_name("TRACE")))]
    #[command(mut_args(|arg| {
        // There is no table.
        let is_of_tables = ["sort", "limit", "filter", "json", "markdown", "csv", "full_names", "color"].iter().any(|id| arg.get_id() == id);
        if is_of_tables { arg.hide(true) } else { arg }
    }))]
    Slice(SliceArgs),
    /// The trace for other programs: Perfetto, Chrome, speedscope, flame graphs, CSV, Parquet
    #[command(after_help = "Formats:
  perfetto    tracks for ui.perfetto.dev (.pftrace): ranges, operators, calls, kernels, idle time
              by cause, steps, queue
  chrome      JSON events, as slice writes them; every command reads them again
  speedscope  flame graphs of host, device and idle time for speedscope.app (.speedscope.json)
  collapsed   a line a stack, for flamegraph.pl and inferno; --weight host, device or idle (.folded)
  csv         a folder with a file a table, or one with --table: ops, kernels, families, ranges,
              memory, idle, activities, calls, host_ops, range_instances, memory_events,
              python_frames, threads, devices, problems
  parquet     a folder with a file a table of rows (a build with the feature parquet)
Files that end in .gz and .zst are compressed. What is private is taken out as everywhere; docs/export.md says what is in each.

Examples:
  longpole export trace.json.gz -o trace.pftrace.gz
  longpole export trace.json.gz --to chrome -o trace.json.gz
  longpole export trace.json.gz --range decode_step -o decode.speedscope.json
  longpole export trace.json.gz --to collapsed --weight idle | flamegraph.pl > idle.svg
  longpole export trace.json.gz --table activities -o kernels.csv
  longpole export ranks/ --rank 1 --to parquet -o rank1.parquet")]
    #[command(mut_arg("input", |arg| arg.value_name("TRACE")))]
    #[command(mut_args(|arg| {
        // There is no table on the terminal.
        let is_of_tables = ["sort", "limit", "filter", "json", "markdown", "csv", "full_names", "color"].iter().any(|id| arg.get_id() == id);
        if is_of_tables { arg.hide(true) } else { arg }
    }))]
    Export(ExportArgs),
    /// One HTML page to open or send: suspects, tables, steps, a timeline, two traces compared
    #[command(
        after_help = "The page holds everything: it loads nothing and sends nothing, and opens without a server. A long recording is summed up where \
not every event fits; docs/report.md says what is kept. What is private is taken out as everywhere. Without -o the page is \
INPUT's name with .report.html, in the current folder, where no file of that name may be.

Examples:
  longpole report trace.json.gz
  longpole report trace.json.gz -o report.html --range decode_step
  longpole report after.json.gz before.json.gz -o compared.html
  longpole report kernels.ncu-rep -o kernels.html
  longpole report trace.json.gz -o - | gzip > report.html.gz"
    )]
    #[command(mut_args(|arg| {
        // There is no table.
        let is_of_tables = ["sort", "limit", "filter", "json", "markdown", "csv", "color"].iter().any(|id| arg.get_id() == id);
        if is_of_tables { arg.hide(true) } else { arg }
    }))]
    #[command(mut_arg("full_names", |arg| arg.help("Never shorten names in sentences; tables show whole names anyway")))]
    #[command(mut_arg("input", |arg| arg.index(1).value_name("INPUT").help("A trace, a directory of rank files, a report of Nsight Compute, or - for standard input")))]
    Report(ReportArgs),
    /// Nsight Compute reports: why a kernel is slow, all launches, source lines, two reports compared
    #[command(
        after_help = "A REPORT is what `ncu -o report` writes (.ncu-rep, .ncu-repz), ncu's `--csv --page raw`, or - for standard input. At most four \
kernels are shown in full; of more there is the table, unless --kernel or --id asks for a few.

Sort keys of the table: launch, duration (default), dram, memory, sm, occupancy, waves, name.

Examples:
  longpole ncu report.ncu-rep
  longpole ncu report.ncu-rep --table --sort occupancy --limit 50
  longpole ncu report.ncu-rep --kernel gemv --full
  longpole ncu report.ncu-rep --id 3 --source
  longpole ncu after.ncu-rep --compare before.ncu-rep
  longpole ncu report.ncu-rep --metrics 'dram__bytes.*sum$' --csv"
    )]
    Ncu(NcuArgs),
    /// Run any CUDA program and record it: kernels, copies, calls, NVTX ranges; ends with the triage
    #[command(
        after_help = "The program is not changed: the driver loads the recorder (liblongpole_recorder.so) into it and into its children. It keeps its \
streams, signals and exit status (128 + N when signal N killed it); the triage goes to standard error, the recording to a file \
that every command reads. docs/record.md says what is recorded and what it costs.

Examples:
  longpole record -- python serve.py
  longpole record --range nvtx:decode_step -o decode.longpole -- ./engine --model qwen3
  longpole record --delay 20 --duration 5 -- vllm serve Qwen/Qwen3-0.6B
  longpole record --range profiler -- python train.py
  longpole steps decode.longpole"
    )]
    Record(RecordArgs),
    /// Keyed benchmarks: list, run, compare two builds, measured peaks
    #[command(
        subcommand_required = true,
        arg_required_else_help = true,
        after_help = "A suite is a program that holds benchmarks, named by --suite or $LONGPOLE_SUITE: Rust, Python or C++ (docs/suite-protocol.md).

Examples:
  longpole bench list --suite ./suite
  longpole bench run --suite ./suite Qwen3-4B/ops
  longpole bench compare before.json after.json
  longpole bench compare --suite-before ./suite-old --suite-after ./suite-new
  longpole bench peaks --suite ./suite
  longpole profile --suite ./suite Qwen3-4B/ops/linear_down/decode/tile"
    )]
    Bench(BenchArgs),
    /// Profile a benchmark under Nsight Compute: why the kernel of a key is slow
    #[command(
        after_help = "The suite runs the benchmark once between cuProfilerStart and cuProfilerStop, and ncu looks at that alone. The report is kept in \
bench/results/DATE-REVISION/; what it says goes to standard error or -o, since standard output is the suite's. Returns the \
status of the suite under ncu.

Examples:
  longpole profile Qwen3-4B/ops/linear_down/decode/tile --suite ./suite
  longpole profile Qwen3-4B/ops/linear_down/decode/tile --full
  longpole profile Qwen3-0.6B/model/decode_step_ctx1024/tile --table
  longpole profile '/gemv/' --compare bench/results/2026-01-31-4ad2a26/gemv.ncu-rep
  longpole profile '/gemv/' --json -o - -- --clock-control none"
    )]
    #[command(mut_arg("csv", |arg| arg.hide(true)))]
    Profile(ProfileArgs),
    /// What can be profiled on this machine, what stands in the way, and the exact fix
    #[command(
        after_help = "It looks and tells, and changes nothing. Without a GPU it says so. Exit code 0 whatever is found; with --strict 1 when a check \
fails.

Examples:
  longpole doctor
  longpole doctor --json
  longpole doctor --strict && ncu -o report ./program"
    )]
    #[command(mut_arg("csv", |arg| arg.hide(true)))]
    Doctor(DoctorArgs),
    /// What a suspect means, how it is detected, and what usually fixes it
    #[command(after_help = "Examples:
  longpole explain
  longpole explain host_bound
  longpole explain copies --json")]
    #[command(mut_arg("csv", |arg| arg.hide(true)))]
    Explain(ExplainArgs),
    /// Every format that is read, how to record it, and what it can answer
    #[command(after_help = "Examples:
  longpole formats
  longpole formats --json")]
    Formats(FormatsArgs),
    /// Shell completions
    #[command(after_help = "Examples:
  longpole completions bash > ~/.local/share/bash-completion/completions/longpole
  longpole completions zsh > ~/.zfunc/_longpole
  longpole completions fish > ~/.config/fish/completions/longpole.fish")]
    Completions {
        /// For which shell
        shell: clap_complete::Shell,
    },
}

impl Command {
    /// The flags of a command that reads a trace.
    pub(crate) fn common(&self) -> Option<&Common> {
        match self {
            Self::Triage(args) => Some(&args.common),
            Self::Ops(args) => Some(&args.common),
            Self::Kernels(args) | Self::Families(args) | Self::Ranges(args) | Self::Memory(args) | Self::Idle(args) => Some(&args.common),
            Self::Steps(args) => Some(&args.common),
            Self::Roofline(args) => Some(&args.common),
            Self::Ranks(args) => Some(&args.common),
            Self::Diff(args) => Some(&args.common),
            Self::Check(args) => Some(&args.common),
            Self::Slice(args) => Some(&args.common),
            Self::Export(args) => Some(&args.common),
            Self::Report(args) => Some(&args.common),
            Self::Ncu(_)
            | Self::Bench(_)
            | Self::Profile(_)
            | Self::Record(_)
            | Self::Doctor(_)
            | Self::Explain(_)
            | Self::Formats(_)
            | Self::Completions { .. } => None,
        }
    }

    /// Whether what is private is to be shown as it is.
    pub(crate) fn shows_secrets(&self) -> bool {
        match self {
            Self::Ncu(args) => args.no_redact,
            Self::Record(args) => args.no_redact,
            command => command.common().is_some_and(|common| common.no_redact),
        }
    }
}

/// Flags of `triage`.
#[derive(Args, Debug)]
pub(crate) struct TriageArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    /// Say what ran, instead of what the trace suggests
    #[arg(long, value_name = "TEXT", help_heading = "Output")]
    pub(crate) workload: Option<String>,
    /// How long one step takes without a profiler, in ms: says how much the profiler slows the host, and how idle the GPU is without it
    #[arg(long, value_name = "MS", value_parser = time_window::parse_ms, help_heading = "Output")]
    pub(crate) unprofiled_step_ms: Option<Ns>,
    /// Compare with this trace from before, as `longpole diff` does
    #[arg(long, value_name = "BEFORE", conflicts_with = "report_only", help_heading = "Output")]
    pub(crate) compare: Option<OsString>,
    /// Print the five lines of the report alone
    #[arg(long, conflicts_with = "format", help_heading = "Output")]
    pub(crate) report_only: bool,
}

/// Flags of `explain`.
#[derive(Args, Debug)]
pub(crate) struct ExplainArgs {
    /// A code from the list of suspects; all of them if not given
    #[arg(value_name = "CODE")]
    pub(crate) code: Option<String>,
    #[command(flatten)]
    pub(crate) format: FormatFlags,
    /// Colour the text; auto means on a terminal, unless NO_COLOR is set
    #[arg(long, value_name = "WHEN", default_value = "auto", help_heading = "Output")]
    pub(crate) color: ColorWhen,
}

/// Flags of `formats`.
#[derive(Args, Debug)]
pub(crate) struct FormatsArgs {
    #[command(flatten)]
    pub(crate) format: FormatFlags,
    /// Colour the text; auto means on a terminal, unless NO_COLOR is set
    #[arg(long, value_name = "WHEN", default_value = "auto", help_heading = "Output")]
    pub(crate) color: ColorWhen,
}

/// Flags of `doctor`.
#[derive(Args, Debug)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    pub(crate) format: FormatFlags,
    /// Colour the text; auto means on a terminal, unless NO_COLOR is set
    #[arg(long, value_name = "WHEN", default_value = "auto", help_heading = "Output")]
    pub(crate) color: ColorWhen,
    /// Exit with 1 when a check fails
    #[arg(long, help_heading = "Running")]
    pub(crate) strict: bool,
    /// Judge a machine written down as text instead of this one
    #[arg(long, value_name = "MACHINE", help_heading = "Running")]
    pub(crate) captured: Option<PathBuf>,
}

/// Flags of `ops`.
#[derive(Args, Debug)]
pub(crate) struct OpsArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    /// Tell operators apart by `shape`, or by `stack=N` (N innermost Python frames; `stack` alone takes 5)
    #[arg(long, value_name = "WHAT", value_parser = parse_group, default_value = "name", hide_default_value = true, help_heading = "Output")]
    pub(crate) by: GroupBy,
}

/// Flags of `roofline`.
#[derive(Args, Debug)]
pub(crate) struct RooflineArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    /// Peaks measured on the machine, as JSON (see below); the table of devices gives the rest
    #[arg(long, value_name = "FILE", help_heading = "Roofline")]
    pub(crate) peaks: Option<OsString>,
}

/// Flags of `ranks`.
#[derive(Args, Debug)]
pub(crate) struct RanksArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    /// More files of the same run
    #[arg(value_name = "MORE")]
    pub(crate) more: Vec<OsString>,
}

/// Flags of `diff`.
#[derive(Args, Debug)]
pub(crate) struct DiffArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    /// The trace after the change
    #[arg(value_name = "AFTER", index = 2)]
    pub(crate) after: OsString,
    /// Exit with 1 when a step is SLOWER, or when no steps could be compared
    #[arg(long, help_heading = "Running")]
    pub(crate) gate: bool,
    /// Find steps as if no range had been recorded
    #[arg(long, help_heading = "Steps")]
    pub(crate) ignore_ranges: bool,
}

/// Flags of `check`.
#[derive(Args, Debug)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    /// The limits
    #[arg(long, value_name = "TOML", required_unless_present = "write_budget", conflicts_with = "write_budget", help_heading = "Budget")]
    pub(crate) budget: Option<OsString>,
    /// Propose a budget that this trace keeps, with head-room
    #[arg(long, conflicts_with_all = ["format", "github"], help_heading = "Budget")]
    pub(crate) write_budget: bool,
    /// Write the proposal to this file instead of standard output, which is also -
    #[arg(long, short, value_name = "TOML", requires = "write_budget", conflicts_with = "budget", help_heading = "Budget")]
    pub(crate) output: Option<OsString>,
    /// Say it to GitHub as well: annotations at the lines of the budget, and the Markdown in the job's summary
    #[arg(long, help_heading = "Output")]
    pub(crate) github: bool,
}

/// Flags of `slice`.
#[derive(Args, Debug)]
pub(crate) struct SliceArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    /// The file to write (.json, .json.gz, .json.zst), or - for standard output
    #[arg(long, short, value_name = "OUT", help_heading = "Output")]
    pub(crate) output: OsString,
}

/// Flags of the other tables.
#[derive(Args, Debug)]
pub(crate) struct TableArgs {
    #[command(flatten)]
    pub(crate) common: Common,
}

/// Flags of every command that reads a trace.
#[derive(Args, Debug)]
pub(crate) struct Common {
    /// A trace, a directory of rank files, or - for standard input
    #[arg(value_name = "FILE")]
    pub(crate) input: OsString,

    /// Sort by this key (the list is below), largest first
    #[arg(long, value_name = "KEY", help_heading = "Output")]
    pub(crate) sort: Option<String>,
    /// Show this many rows, 0 for all [default: 20; JSON and CSV: all]
    #[arg(long, value_name = "N", value_parser = parse_limit, allow_negative_numbers = true, help_heading = "Output")]
    pub(crate) limit: Option<usize>,
    /// Only rows whose name matches (for kernels, name or family)
    #[arg(long, value_name = "REGEX", help_heading = "Output")]
    pub(crate) filter: Option<Regex>,
    #[command(flatten)]
    pub(crate) format: FormatFlags,
    /// Never shorten names
    #[arg(long, help_heading = "Output")]
    pub(crate) full_names: bool,
    /// Colour the text; auto means on a terminal, unless NO_COLOR is set
    #[arg(long, value_name = "WHEN", default_value = "auto", help_heading = "Output")]
    pub(crate) color: ColorWhen,

    #[command(flatten)]
    pub(crate) scope: ScopeFlags,

    /// Threads that read and analyse, up to 64 [default: one a core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=MOST_THREADS), allow_negative_numbers = true, help_heading = "Running")]
    pub(crate) threads: Option<u16>,
    /// No progress and no notes on standard error
    #[arg(long, short, help_heading = "Running")]
    pub(crate) quiet: bool,
    /// Show credentials, user names in paths, e-mail addresses and host names as they are
    #[arg(long, help_heading = "Output")]
    pub(crate) no_redact: bool,
    /// Exit with 3 when data is missing from the trace
    #[arg(long, help_heading = "Running")]
    pub(crate) strict: bool,
    /// Say on standard error what the run cost (`--stats=json` for one line of JSON)
    #[arg(long, value_name = "FORMAT", num_args = 0..=1, require_equals = true, default_missing_value = "text", help_heading = "Running")]
    pub(crate) stats: Option<StatsFormat>,
}

/// The three formats that are not text.
#[derive(Args, Clone, Copy, Debug)]
#[group(id = "format", multiple = false)]
pub(crate) struct FormatFlags {
    /// One JSON object, described in docs/schema
    #[arg(long, help_heading = "Output")]
    json: bool,
    /// GitHub Markdown
    #[arg(long, help_heading = "Output")]
    markdown: bool,
    /// CSV with raw nanoseconds and bytes; names a spreadsheet would run get a leading '
    #[arg(long, help_heading = "Output")]
    csv: bool,
}

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Text,
    Json,
    Markdown,
    Csv,
}

impl FormatFlags {
    pub(crate) fn format(self) -> Format {
        match (self.json, self.markdown, self.csv) {
            (true, _, _) => Format::Json,
            (_, true, _) => Format::Markdown,
            (_, _, true) => Format::Csv,
            _ => Format::Text,
        }
    }
}

/// What part of the trace; all given parts must hold.
#[derive(Args, Debug)]
pub(crate) struct ScopeFlags {
    /// Only inside ranges of this name (a trailing * takes all that begin so)
    #[arg(long, value_name = "NAME", help_heading = "Scope")]
    range: Option<String>,
    /// Only one step, by the number that `longpole steps` and every other command give it
    #[arg(long, value_name = "K", allow_negative_numbers = true, help_heading = "Scope")]
    step: Option<u64>,
    /// Only a window after the first event, e.g. 10ms..1.5s or 200.. (unit ms if not given)
    #[arg(long, value_name = "A..B", value_parser = time_window::parse, help_heading = "Scope")]
    time: Option<(Ns, Ns)>,
    /// Only one device, by number
    #[arg(long, value_name = "D", allow_negative_numbers = true, help_heading = "Scope")]
    device: Option<i64>,
    /// Only one rank
    #[arg(long, value_name = "R", allow_negative_numbers = true, help_heading = "Scope")]
    rank: Option<u32>,
}

impl ScopeFlags {
    /// What is to be recorded, where `--range` says that and not which part of the trace.
    pub(crate) fn recorded_range(&self) -> Option<&str> {
        self.range.as_deref().filter(|range| *range == "profiler" || range.starts_with("nvtx:"))
    }

    /// The scope of a recording that `--range` may have been about.
    pub(crate) fn spec_of_recording(&self) -> ScopeSpec {
        let spec = self.spec();
        ScopeSpec { range: spec.range.filter(|_| self.recorded_range().is_none()), ..spec }
    }

    pub(crate) fn spec(&self) -> ScopeSpec {
        ScopeSpec { range: self.range.clone(), step: self.step, time: self.time, device: self.device, rank: self.rank }
    }
}

/// When to colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorWhen {
    Auto,
    Always,
    Never,
}

/// How `--stats` is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StatsFormat {
    Text,
    Json,
}

/// More threads than this gain nothing, and where memory is limited they cannot all be started.
pub(crate) const MOST_THREADS: i64 = 64;

fn parse_limit(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| "use a number of rows, or 0 for all".to_owned())
}

/// Frames told apart when `--by stack` does not say.
const DEFAULT_FRAMES: usize = 5;

fn parse_group(text: &str) -> Result<GroupBy, String> {
    match text.split_once('=') {
        None if text == "name" => Ok(GroupBy::Name),
        None if text == "shape" => Ok(GroupBy::Shape),
        None if text == "stack" => Ok(GroupBy::Stack(DEFAULT_FRAMES)),
        Some(("stack", frames)) => match frames.parse() {
            Ok(frames) if frames > 0 => Ok(GroupBy::Stack(frames)),
            _ => Err(format!("`{frames}` is not a number of frames")),
        },
        _ => Err("use `shape`, `stack` or `stack=N`".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_flags_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_has_examples() {
        for command in Cli::command().get_subcommands() {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("Examples:"), "{}", command.get_name());
        }
    }

    /// What stands below the flags of every command, of those inside others too.
    fn footers(command: &clap::Command, into: &mut Vec<(String, String)>) {
        into.extend(command.get_after_help().map(|help| (command.get_name().to_owned(), help.to_string())));
        for inside in command.get_subcommands() {
            footers(inside, into);
        }
    }

    #[test]
    fn footers_are_wrapped_by_the_terminal_alone() {
        let mut all = Vec::new();
        footers(&Cli::command(), &mut all);
        assert!(all.len() > 20);
        for (command, help) in all {
            let lines: Vec<&str> = help.lines().collect();
            let is_prose = |line: &str| !line.is_empty() && !line.starts_with(' ');
            for pair in lines.windows(2) {
                // A line ends where a sentence or a list does, never within.
                let is_cut = is_prose(pair[0]) && is_prose(pair[1]) && !pair[0].ends_with(['.', ':']);
                assert!(!is_cut, "{command}: {}", pair[0]);
            }
            // Columns of what is set out in columns: no more than help is ever wide.
            let longest = lines.iter().filter(|line| line.starts_with(' ')).map(|line| line.chars().count()).max();
            assert!(longest.is_none_or(|longest| longest <= 100), "{command}: {longest:?}");
        }
    }

    /// The help of a command as it is printed.
    fn help_of(command: &str) -> String {
        let mut cli = Cli::command();
        cli.build();
        cli.find_subcommand_mut(command).unwrap().render_help().to_string()
    }

    #[test]
    fn help_says_what_is_so_for_its_command() {
        for command in ["triage", "ops", "kernels", "families", "ranges", "memory"] {
            let help = help_of(command);
            assert_eq!(help.contains("list is below"), help.contains("Sort keys"), "{help}");
            assert_eq!(help.contains("default: 10"), command == "triage", "{help}");
            assert_eq!(help.contains("default: 20"), command != "triage", "{help}");
        }
        let ops = help_of("ops");
        assert!(ops.contains("--by stack=3") && ops.contains("`stack=N`") && !ops.contains("stack 3"), "{ops}");
        let (_, below) = ops.split_once("Sort keys").unwrap();
        assert!(below.lines().all(|line| line.chars().count() < 80), "{below}");
        for (key, _) in longpole_analysis::SortKey::ALL {
            assert!(below.contains(key), "{key}");
        }
    }

    #[test]
    fn groups_are_read() {
        assert_eq!(parse_group("shape"), Ok(GroupBy::Shape));
        assert_eq!(parse_group("stack"), Ok(GroupBy::Stack(5)));
        assert_eq!(parse_group("stack=12"), Ok(GroupBy::Stack(12)));
        assert!(parse_group("stack=0").is_err() && parse_group("stack=x").is_err() && parse_group("thread").is_err());
    }
}
