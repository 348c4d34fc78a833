//! The recorder under valgrind: it runs inside other people's programs, where a wrong access is their crash.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

/// What stands before each program of the tests. The exit status is one that neither the programs nor the tests use; a forked child is looked at too.
const RUNNER: &str = "valgrind --quiet --error-exitcode=99";

/// Runs the tests of the recorder's mock (`crates/longpole-mock-cupti`), which start programs that load the recorder.
pub(crate) fn run(root: &Path) -> Result<()> {
    let version = Command::new("valgrind").arg("--version").output().context("valgrind is not installed")?;
    println!("{}", String::from_utf8_lossy(&version.stdout).trim());
    let status = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        // Of the whole workspace, so that features are the same as in its other tests and nothing is compiled twice.
        .args(["test", "--locked", "--workspace", "--test", "recorder"])
        .current_dir(root)
        .env("LONGPOLE_TEST_RUNNER", RUNNER)
        .status()
        .context("cargo could not be started")?;
    ensure!(status.success(), "the recorder's tests fail under valgrind");
    Ok(())
}
