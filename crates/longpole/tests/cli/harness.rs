//! Runs the program from the root of the workspace, so that paths in its output are the same everywhere.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Every recorded trace of the repository.
pub(crate) const CORPUS: [&str; 10] =
    ["bad", "cpuonly", "gpuonly", "nccl_rank0", "nccl_rank1", "qwen3_compile", "qwen3_eager", "qwen3_graph", "qwen3_item", "qwen3_stack"];

/// A recorded trace, as named on the command line.
pub(crate) fn trace(name: &str) -> String {
    format!("corpus/kineto/{name}.json.gz")
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The program, with nothing of the caller's terminal in its environment.
pub(crate) fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_longpole"));
    command
        .args(args)
        .current_dir(root())
        .env("COLUMNS", "120")
        .env_remove("NO_COLOR")
        .env_remove("CLICOLOR_FORCE")
        .env_remove("LONGPOLE_SUITE");
    // Whether the machine has nvdisasm must not show in what is compared.
    command.env("PATH", "");
    command
}

/// The commands that read a trace, as the program lists them: a new one is covered without being named here.
pub(crate) fn trace_commands() -> Vec<String> {
    let help = print(&["--help"]);
    let list = help.split("Commands:").nth(1).and_then(|rest| rest.split("\n\n").next()).expect("help lists the commands");
    let names = list.lines().filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help");
    let found: Vec<_> = names.filter(|name| print(&[name, "--help"]).contains("<FILE>")).map(str::to_owned).collect();
    for expected in ["triage", "ops", "kernels", "families", "ranges", "memory", "steps", "idle", "roofline", "ranks"] {
        assert!(found.iter().any(|name| name == expected), "{found:?}");
    }
    found
}

/// How a run ended.
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

pub(crate) fn finish(output: std::process::Output) -> Run {
    let text = |bytes| String::from_utf8(bytes).expect("output is UTF-8");
    Run { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// Runs the program with an empty standard input.
pub(crate) fn run(args: &[&str]) -> Run {
    finish(command(args).stdin(Stdio::null()).output().expect("the program starts"))
}

/// Runs the program with `input` on its standard input.
pub(crate) fn run_with(args: &[&str], input: &[u8]) -> Run {
    let mut child = command(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
    let mut stdin = child.stdin.take().expect("piped");
    let output = std::thread::scope(|scope| {
        scope.spawn(move || stdin.write_all(input));
        child.wait_with_output()
    });
    finish(output.expect("the program ends"))
}

/// Whether nothing was said on standard error but that the window is CPU-bound, which output without a header has no place for.
pub(crate) fn is_quiet(stderr: &str) -> bool {
    let caveat = "trust   good: no data was lost\n        • the window is CPU-bound, ";
    stderr.is_empty() || stderr.starts_with(caveat) && stderr.matches('•').count() == 1
}

/// Runs the program, which must succeed and keep quiet, and returns what it printed.
pub(crate) fn print(args: &[&str]) -> String {
    let run = run(args);
    assert!(run.code == Some(0) && is_quiet(&run.stderr), "{args:?}: {:?} {}", run.code, run.stderr);
    run.stdout
}
