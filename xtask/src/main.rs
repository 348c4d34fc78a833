//! Chores of the workspace, run as `cargo xtask NAME`.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a chore reports to whoever typed it")]

mod bench;
mod gen_nsys;
mod gen_trace;
mod kernels;
mod memcheck;
mod ncu_report;
mod parquet_check;
mod schema;
mod tidy;

use std::path::Path;
use std::time::Instant;

use anyhow::{Result, ensure};
use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Chores of the longpole workspace")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Write a large realistic trace and its exact totals.
    GenTrace(gen_trace::Options),
    /// Write a large realistic Nsight Systems export.
    GenNsys(gen_nsys::Options),
    /// Write a large report by repeating the results of a recorded one.
    GenReport(ncu_report::GenOptions),
    /// Copy a report without the text of the source files packed into it.
    StripReport(ncu_report::StripOptions),
    /// Measure longpole against the least work its input asks for.
    Bench(bench::Options),
    /// Compile the reference engine's kernels, or check that the compiled ones are of the sources.
    Kernels(kernels::Options),
    /// Run the recorder's tests with every program they start under valgrind.
    Memcheck,
    /// Read Parquet files of all corpus traces with pyarrow, and compare with CSV.
    ParquetCheck(parquet_check::Options),
    /// Check the invariants of the workspace on its sources.
    Tidy,
    /// Validate the program's JSON over all corpus traces against the schemas in docs/schema.
    Schema(schema::Options),
}

/// The root of the workspace this program was built from.
fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}

fn main() -> Result<()> {
    match Cli::parse().command {
        Command::GenTrace(options) => {
            let started = Instant::now();
            let made = gen_trace::generate(&options)?;
            println!(
                "{}: {:.1} MB, {} decode steps, {} events, {:.1} s",
                options.output.display(),
                made.bytes as f64 / 1e6,
                made.steps,
                made.events,
                started.elapsed().as_secs_f64()
            );
        }
        Command::GenNsys(options) => {
            let started = Instant::now();
            let made = gen_nsys::generate(&options)?;
            println!(
                "{}: {:.1} MB, {} decode steps, {} rows, {:.1} s",
                options.output.display(),
                made.bytes as f64 / 1e6,
                made.steps,
                made.rows,
                started.elapsed().as_secs_f64()
            );
        }
        Command::GenReport(options) => {
            let bytes = ncu_report::generate(&options)?;
            println!("{}: {:.1} MB", options.output.display(), bytes as f64 / 1e6);
        }
        Command::StripReport(options) => {
            let dropped = ncu_report::strip(&options)?;
            println!("{}: the text of {dropped} files left out", options.output.display());
        }
        Command::Bench(options) => bench::run(root(), &options)?,
        Command::Kernels(options) => kernels::run(root(), &options)?,
        Command::Memcheck => memcheck::run(root())?,
        Command::ParquetCheck(options) => {
            let (traces, rows) = parquet_check::check(root(), &options)?;
            println!("{traces} traces, {rows} rows: pyarrow reads what the CSV has");
        }
        Command::Schema(options) => schema::run(root(), &options)?,
        Command::Tidy => {
            let complaints = tidy::check(root())?;
            for complaint in &complaints {
                eprintln!("{complaint}");
            }
            ensure!(complaints.is_empty(), "{} things are not tidy", complaints.len());
            println!("tidy");
        }
    }
    Ok(())
}
