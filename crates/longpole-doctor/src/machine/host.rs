//! The machine the doctor runs on.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use super::{MOST_FILE_BYTES, MOST_NAMES, MOST_OUTPUT_BYTES, Machine, Outcome};

/// Longest run of a program. `nvidia-smi` takes seconds for each GPU of a machine without persistence mode.
const PATIENCE: Duration = Duration::from_secs(20);

/// Time between two looks at whether a program has ended.
const TICK: Duration = Duration::from_millis(5);

/// How long a stopped program may take to go. One that waits inside a broken driver never does, and is left behind.
const FAREWELL: Duration = Duration::from_millis(500);

/// The machine the doctor runs on.
#[derive(Clone, Debug)]
pub struct Host {
    patience: Duration,
}

impl Default for Host {
    fn default() -> Self {
        Self { patience: PATIENCE }
    }
}

impl Host {
    /// The same with another time limit for programs.
    pub fn with_patience(patience: Duration) -> Self {
        Self { patience }
    }
}

impl Machine for Host {
    fn read(&self, path: &str) -> Option<String> {
        // A pipe or a device might never end, or never begin.
        if !Path::new(path).metadata().ok()?.is_file() {
            return None;
        }
        let mut bytes = Vec::new();
        File::open(path).ok()?.take(MOST_FILE_BYTES as u64).read_to_end(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn list(&self, directory: &str) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
        let names = entries.take(MOST_NAMES).filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()));
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    fn exists(&self, path: &str) -> bool {
        Path::new(path).exists()
    }

    fn is_program(&self, path: &str) -> bool {
        Path::new(path).is_file() && may(path, Access::Run).unwrap_or(true)
    }

    fn canonical(&self, path: &str) -> Option<String> {
        Some(std::fs::canonicalize(path).ok()?.to_string_lossy().into_owned())
    }

    fn run(&self, program: &str, args: &[&str]) -> Outcome {
        let mut command = Command::new(program);
        command.args(args).env("LC_ALL", "C").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // A group of its own, so that what it started goes with it.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        match command.spawn() {
            Ok(child) => follow(child, self.patience),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Outcome::Missing,
            Err(error) => Outcome::NotStarted(error.to_string()),
        }
    }

    fn variable(&self, name: &str) -> Option<String> {
        std::env::var_os(name).map(|value| value.to_string_lossy().into_owned()).filter(|value| !value.is_empty())
    }

    fn directory(&self) -> Option<String> {
        Some(std::env::current_dir().ok()?.to_string_lossy().into_owned())
    }

    fn free_bytes(&self, path: &str) -> Option<u64> {
        free_bytes(path)
    }

    fn is_writable(&self, path: &str) -> Option<bool> {
        may(path, Access::Write)
    }
}

/// What came from one of the two streams.
enum Piece {
    Output(Vec<u8>),
    Complaint(Vec<u8>),
}

/// Reads a stream on a thread of its own. Past the limit the stream is closed, which ends a program that goes on printing.
fn listen(stream: Option<impl Read + Send + 'static>, pieces: SyncSender<Piece>, wrap: fn(Vec<u8>) -> Piece) {
    let Some(stream) = stream else { return };
    std::thread::spawn(move || {
        let mut stream = stream.take(MOST_OUTPUT_BYTES as u64);
        let mut buffer = [0; 4096];
        while let Ok(read @ 1..) = stream.read(&mut buffer) {
            if pieces.send(wrap(buffer[..read].to_vec())).is_err() {
                break;
            }
        }
    });
}

/// Takes what a program prints until it ends or its time is up.
fn follow(mut child: Child, patience: Duration) -> Outcome {
    let end = Instant::now() + patience;
    let (sender, pieces) = sync_channel(16);
    listen(child.stdout.take(), sender.clone(), Piece::Output);
    listen(child.stderr.take(), sender, Piece::Complaint);
    let (stdout, stderr) = gather(&pieces, &mut child, end);
    let Some(status) = wait(&mut child, end) else {
        stop(&mut child);
        wait(&mut child, Instant::now() + FAREWELL);
        return Outcome::TimedOut;
    };
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Outcome::Ended { success: status.success(), stdout: text(stdout), stderr: text(stderr) }
}

/// Both streams, until they end. A child of the program may hold them open after it ended, so that is looked at too.
fn gather(pieces: &Receiver<Piece>, child: &mut Child, end: Instant) -> (Vec<u8>, Vec<u8>) {
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let mut is_over = false;
    while Instant::now() < end {
        match pieces.recv_timeout(TICK) {
            Ok(Piece::Output(bytes)) => stdout.extend(bytes),
            Ok(Piece::Complaint(bytes)) => stderr.extend(bytes),
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) if is_over => break,
            // What it printed last may be on its way.
            Err(RecvTimeoutError::Timeout) => is_over = child.try_wait().is_ok_and(|status| status.is_some()),
        }
    }
    (stdout, stderr)
}

fn wait(child: &mut Child, end: Instant) -> Option<ExitStatus> {
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if Instant::now() < end => std::thread::sleep(TICK),
            _ => return None,
        }
    }
}

/// Stops a program and what it started.
fn stop(child: &mut Child) {
    #[cfg(unix)]
    if let Ok(group) = i32::try_from(child.id()) {
        // SAFETY: a system call without memory. The child was made the leader of its group, and has not been waited for, so that the number
        // is still its own.
        unsafe { libc::kill(-group, libc::SIGKILL) };
    }
    // It may have ended by itself just now, which is as good.
    let _ = child.kill();
}

/// What may be done with a path.
#[derive(Clone, Copy)]
enum Access {
    Write,
    Run,
}

#[cfg(unix)]
fn may(path: &str, access: Access) -> Option<bool> {
    let path = std::ffi::CString::new(path).ok()?;
    let mode = match access {
        Access::Write => libc::W_OK,
        Access::Run => libc::X_OK,
    };
    // SAFETY: the path ends with a zero byte and is only read.
    Some(unsafe { libc::access(path.as_ptr(), mode) } == 0)
}

#[cfg(not(unix))]
fn may(_: &str, _: Access) -> Option<bool> {
    None
}

#[cfg(unix)]
#[expect(clippy::unnecessary_cast, clippy::useless_conversion, reason = "the widths of these fields differ between systems")]
fn free_bytes(path: &str) -> Option<u64> {
    let path = std::ffi::CString::new(path).ok()?;
    let mut found = std::mem::MaybeUninit::<libc::statvfs>::uninit();
    // SAFETY: the path ends with a zero byte and is only read; the structure has the type that the call fills.
    let failed = unsafe { libc::statvfs(path.as_ptr(), found.as_mut_ptr()) } != 0;
    if failed {
        return None;
    }
    // SAFETY: the call succeeded, so it filled the structure.
    let found = unsafe { found.assume_init() };
    (found.f_bavail as u64).checked_mul(u64::from(found.f_frsize))
}

#[cfg(not(unix))]
fn free_bytes(_: &str) -> Option<u64> {
    None
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn shell(script: &str, patience: Duration) -> Outcome {
        Host::with_patience(patience).run("/bin/sh", &["-c", script])
    }

    #[test]
    fn both_streams_and_the_status_come_back() {
        let ended = |success, stdout: &str, stderr: &str| Outcome::Ended { success, stdout: stdout.into(), stderr: stderr.into() };
        assert_eq!(shell("echo out; echo err >&2", PATIENCE), ended(true, "out\n", "err\n"));
        assert_eq!(shell("echo no; exit 9", PATIENCE), ended(false, "no\n", ""));
        assert_eq!(shell("printf '\\377x'; echo $LC_ALL", PATIENCE), ended(true, "\u{fffd}xC\n", ""));
        assert_eq!(Host::default().run("/no/such/program", &[]), Outcome::Missing);
        assert!(matches!(Host::default().run("/", &[]), Outcome::NotStarted(_)));
    }

    #[test]
    fn a_program_that_hangs_is_stopped_with_its_children() {
        let started = Instant::now();
        assert_eq!(shell("echo begun; sleep 60 & sleep 60", Duration::from_millis(200)), Outcome::TimedOut);
        assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    }

    #[test]
    fn a_child_that_keeps_the_streams_open_is_not_waited_for() {
        let started = Instant::now();
        let Outcome::Ended { success: true, stdout, .. } = shell("sleep 60 & echo done", Duration::from_secs(30)) else {
            panic!("it ended at once");
        };
        assert_eq!(stdout, "done\n");
        assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    }

    #[test]
    fn endless_output_is_cut() {
        let Outcome::Ended { stdout, .. } = shell("yes 2>/dev/null", Duration::from_secs(30)) else {
            panic!("it is ended by its closed pipe")
        };
        assert_eq!(stdout.len(), MOST_OUTPUT_BYTES);
    }

    #[test]
    fn files_are_bounded_and_pipes_are_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        std::fs::write(path("large"), vec![b'x'; MOST_FILE_BYTES + 5]).unwrap();
        std::fs::write(path("odd"), b"a\xffb").unwrap();
        let host = Host::default();
        assert_eq!(host.read(&path("large")).map(|text| text.len()), Some(MOST_FILE_BYTES));
        assert_eq!(host.read(&path("odd")).as_deref(), Some("a\u{fffd}b"));
        assert_eq!(host.run("/usr/bin/env", &["mkfifo", &path("pipe")]).output(), Some(""));
        assert_eq!((host.read(&path("pipe")), host.read(&path("nothing")), host.read("/dev/zero")), (None, None, None));
        assert_eq!(host.list(folder.path().to_str().unwrap()), ["large", "odd", "pipe"]);
        assert_eq!((host.exists(&path("pipe")), host.exists("a\0b"), host.list("/no/such").len()), (true, false, 0));
    }

    #[test]
    fn programs_room_and_rights() {
        let host = Host::default();
        assert!(host.is_program("/bin/sh") && !host.is_program("/etc/passwd") && !host.is_program("/bin"));
        assert!(host.free_bytes("/").is_some() && host.free_bytes("/no/such/place").is_none());
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(host.is_writable(folder.path().to_str().unwrap()), Some(true));
        assert_eq!(host.is_writable("/no/such/place"), Some(false));
        assert!(host.on_path("sh").is_some() && host.on_path("no-such-program-anywhere").is_none());
        assert!(host.canonical("/bin/sh").is_some() && host.directory().is_some());
    }
}
