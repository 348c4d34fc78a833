//! The command line: flags to options, one library call, a printed result.
//!
//! This crate owns the terminal, the files and the exit codes; what is computed and how it is laid out live in the libraries.
//! To add a command: a file in `commands`, a variant in [`args::Command`], a line in [`commands::run`].

mod alloc;
mod args;
mod argv;
mod bench;
mod check;
mod commands;
mod exit;
mod peaks;
mod problems;
mod progress;
mod session;
mod sink;
mod sort;
mod stats;
mod target;
mod terminal;
mod time_window;
mod unfinished;
mod whole_folder;

use clap::Parser as _;

#[global_allocator]
static ALLOCATOR: alloc::Counting = alloc::Counting;

fn main() {
    let cli = args::Cli::try_parse_from(argv::normalise(std::env::args_os().collect())).unwrap_or_else(|error| argv::refuse(&error));
    // Exiting here instead of returning leaves the trace to the system, which frees it all at once.
    exit::exit(commands::run(&cli.command), cli.command.shows_secrets());
}
