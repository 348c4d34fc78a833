//! Nsight Systems' own reports (`.nsys-rep`, `.qdrep`): nobody but `nsys` reads them, so it is run where it is installed.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// First bytes of a report.
const MAGIC: &[u8] = b"NVIDIA T";
/// An export of a gigabyte takes a minute or two.
const LIMIT: Duration = Duration::from_mins(10);
/// How often it is looked whether it has ended.
const PAUSE: Duration = Duration::from_millis(20);

/// What to do with a report where `nsys` is not there.
pub(crate) const HINT: &str =
    "run `nsys export --type sqlite --output REPORT.sqlite REPORT.nsys-rep` where Nsight Systems is installed, and give that .sqlite file";

/// Whether the first bytes are a report's.
pub(crate) fn is_report(head: &[u8]) -> bool {
    head.starts_with(MAGIC)
}

/// An export in a folder that goes with it.
pub(crate) struct Exported {
    /// The export.
    pub(crate) path: PathBuf,
    _folder: TempDir,
}

/// Exports a report with the `nsys` on the path. `Err` holds what went wrong, to be said after "an Nsight Systems report".
pub(crate) fn export(report: &Path) -> Result<Exported, String> {
    let folder = tempfile::Builder::new().prefix("longpole-nsys").tempdir().map_err(|error| format!("no room for its export ({error})"))?;
    let path = folder.path().join("export.sqlite");
    let mut command = Command::new("nsys");
    command.args(["export", "--type", "sqlite", "--force-overwrite", "true", "--output"]).arg(&path).arg(absolute(report));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match run(&mut command) {
        Ok(Some(status)) if status.success() && path.is_file() => Ok(Exported { path, _folder: folder }),
        Ok(Some(status)) => Err(format!("which `nsys export` could not export ({status})")),
        Ok(None) => Err(format!("which `nsys export` did not export within {} minutes", LIMIT.as_secs() / 60)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err("and `nsys` is not installed here".to_owned()),
        Err(error) => Err(format!("and `nsys` cannot be run ({error})")),
    }
}

/// A path that no program takes for an option.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Runs a program; `None` when it took too long.
fn run(command: &mut Command) -> io::Result<Option<ExitStatus>> {
    let (started, mut child) = (Instant::now(), command.spawn()?);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if started.elapsed() > LIMIT {
            // It may have ended just now; either way it is waited for.
            let _ = child.kill();
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(PAUSE);
    }
}
