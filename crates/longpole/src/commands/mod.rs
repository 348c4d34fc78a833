//! One file a command.

mod bench;
mod check;
mod diff;
mod doctor;
mod explain;
mod export;
mod families;
mod formats;
mod idle;
mod kernels;
mod memory;
mod ncu;
mod ops;
mod profile;
mod ranges;
mod ranks;
mod record;
mod report;
mod roofline;
mod slice;
mod steps;
mod sums;
mod triage;

pub(crate) use ncu::is_report;
pub(crate) use ops::sort_by_own_key as sort_ops;

use std::io::{self, Write as _};

use clap::CommandFactory as _;

use crate::args::{Cli, Command};
use crate::exit::Failure;

/// Runs a command to its end.
pub(crate) fn run(command: &Command) -> Result<(), Failure> {
    match command {
        Command::Triage(args) => triage::run(args),
        Command::Ops(args) => ops::run(args),
        Command::Kernels(args) => kernels::run(&args.common),
        Command::Families(args) => families::run(&args.common),
        Command::Ranges(args) => ranges::run(&args.common),
        Command::Memory(args) => memory::run(&args.common),
        Command::Steps(args) => steps::run(args),
        Command::Idle(args) => idle::run(&args.common),
        Command::Roofline(args) => roofline::run(args),
        Command::Ranks(args) => ranks::run(args),
        Command::Check(args) => check::run(args),
        Command::Diff(args) => diff::run(args),
        Command::Slice(args) => slice::run(args),
        Command::Export(args) => export::run(args),
        Command::Ncu(args) => ncu::run(args),
        Command::Report(args) => report::run(args),
        Command::Record(args) => record::run(args),
        Command::Bench(args) => bench::run(args),
        Command::Profile(args) => profile::run(args),
        Command::Doctor(args) => doctor::run(args),
        Command::Explain(args) => explain::run(args),
        Command::Formats(args) => formats::run(args),
        Command::Completions { shell } => completions(*shell),
    }
}

fn completions(shell: clap_complete::Shell) -> Result<(), Failure> {
    // Written to memory first: the generator has no way to report a closed pipe.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "longpole", &mut script);
    let mut out = io::stdout().lock();
    out.write_all(&script)?;
    Ok(out.flush()?)
}
