//! Runs the built binary and measures it from outside: wall time, CPU time and what it says about itself.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// One run of the program.
pub(super) struct Run {
    pub(super) wall_ns: u64,
    /// User and system time of all threads.
    pub(super) cpu_ns: u64,
    pub(super) peak_rss_bytes: u64,
    /// The line `--stats=json` prints on standard error, if there was one.
    pub(super) stats: Option<Value>,
}

/// Runs `program` with its standard output going to `output`.
pub(super) fn run(program: &Path, arguments: &[&str], output: &Path) -> Result<Run> {
    let stdout = File::create(output).with_context(|| format!("cannot create {}", output.display()))?;
    let started = Instant::now();
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(stdout)
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {}", program.display()))?;
    let mut errors = String::new();
    if let Some(mut stderr) = child.stderr.take() {
        stderr.read_to_string(&mut errors)?;
    }
    let (status, usage) = wait(child.id())?;
    let wall_ns = started.elapsed().as_nanos() as u64;
    if status != 0 {
        bail!("{} {} ended with wait status {status}: {}", program.display(), arguments.join(" "), errors.trim());
    }
    let micros = |time: libc::timeval| time.tv_sec as u64 * 1_000_000 + time.tv_usec as u64;
    let stats = errors
        .lines()
        .rev()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .find(|value| value.get("peak_heap_bytes").is_some());
    Ok(Run {
        wall_ns,
        cpu_ns: (micros(usage.ru_utime) + micros(usage.ru_stime)) * 1000,
        peak_rss_bytes: usage.ru_maxrss as u64 * 1024,
        stats,
    })
}

/// Waits for one child and returns its wait status and resource usage, which the standard library's `wait` does not give.
fn wait(pid: u32) -> io::Result<(libc::c_int, libc::rusage)> {
    let mut status = 0;
    // SAFETY: all-zero bytes are a valid `rusage`, a plain C structure of integers.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: both pointers are to live locals; the pid is that of a child this process started and has not waited for.
        let result = unsafe { libc::wait4(pid as libc::pid_t, &raw mut status, 0, &raw mut usage) };
        if result >= 0 {
            return Ok((status, usage));
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_a_child() {
        let output = std::env::temp_dir().join(format!("xtask-child-{}", std::process::id()));
        let script = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; echo hello; echo '{\"peak_heap_bytes\": 5}' >&2";
        let measured = run(Path::new("/bin/sh"), &["-c", script], &output).unwrap();
        assert_eq!(std::fs::read_to_string(&output).unwrap(), "hello\n");
        std::fs::remove_file(&output).unwrap();
        assert_eq!(measured.stats.unwrap()["peak_heap_bytes"], 5);
        assert!(measured.cpu_ns > 0 && measured.wall_ns > 0 && measured.peak_rss_bytes > 0);
        let failed = run(Path::new("/bin/sh"), &["-c", "echo gone >&2; exit 3"], &output);
        std::fs::remove_file(&output).unwrap();
        assert!(failed.err().unwrap().to_string().contains("gone"));
    }
}
