//! `longpole bench`: keyed benchmarks.

mod compare;
mod list;
mod peaks;
mod run;
mod work;

use std::io::{self, Write as _};

use longpole_report::{Block, Table, blocks_markdown, blocks_text, csv, wire};
use serde::Serialize;

use crate::args::{BenchArgs, BenchCommand, BenchOutput, Format};
use crate::exit::Failure;
use crate::terminal;

pub(super) fn run(args: &BenchArgs) -> Result<(), Failure> {
    match &args.command {
        BenchCommand::List(args) => list::run(args),
        BenchCommand::Run(args) => run::run(args),
        BenchCommand::Compare(args) => compare::run(args),
        BenchCommand::Peaks(args) => peaks::run(args),
    }
}

/// Prints blocks, a table or a document, as was asked for.
fn print(
    output: &BenchOutput,
    blocks: impl FnOnce() -> Vec<Block>,
    table: impl FnOnce() -> Table,
    document: &impl Serialize,
) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match output.format.format() {
        Format::Json => wire::write(&mut out, document)?,
        Format::Csv => out.write_all(csv(&table()).as_bytes())?,
        // A report begins with an empty line that separates it from what stands above it, of which there is nothing here.
        Format::Markdown => out.write_all(blocks_markdown(&blocks()).trim_start_matches('\n').as_bytes())?,
        Format::Text => {
            out.write_all(blocks_text(&blocks(), &terminal::plain_options(output.color)).trim_start_matches('\n').as_bytes())?;
        }
    }
    Ok(out.flush()?)
}
