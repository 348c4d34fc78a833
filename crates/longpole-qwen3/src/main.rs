//! `longpole-qwen3`: see [`longpole_qwen3::cli::USAGE`].

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = std::env::args_os().skip(1).collect();
    ExitCode::from(longpole_qwen3::cli::start(arguments, &mut std::io::stdout().lock(), &mut std::io::stderr().lock()))
}
