//! `longpole-qwen3`: see [`longpole_qwen3::cli::USAGE`].

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned()).collect();
    ExitCode::from(longpole_qwen3::cli::main(&arguments, &mut std::io::stdout().lock(), &mut std::io::stderr().lock()))
}
