//! Runs of the mock program, and what they leave.
#![expect(clippy::unwrap_used, reason = "what cannot be set up fails the test")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::OnceLock;

use longpole_recorder::{DIRECTORY, LIBCUPTI, VARIABLES};
use longpole_recording::{Api, Dropped, End, Family, Kernel, Nvtx, Process, RangeState, Record, Recording, Refused, StringId, read};
use tempfile::TempDir;

/// Where the libraries of this build are: beside this test.
fn built(name: &str) -> PathBuf {
    let beside = std::env::current_exe().unwrap();
    let folder = beside.parent().unwrap();
    let candidates = [folder.join(name), folder.parent().unwrap().join(name)];
    // The newer one: a library that is built as a dependency is not always copied up.
    let found = candidates.iter().filter(|path| path.exists()).max_by_key(|path| fs::metadata(path).unwrap().modified().unwrap());
    found.unwrap_or_else(|| panic!("{name} is not built")).clone()
}

/// The recorder's library.
pub(crate) fn recorder() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| built("liblongpole_recorder.so"))
}

/// A run of the program that is being set up.
pub(crate) struct Run {
    pub(crate) folder: TempDir,
    command: Command,
}

/// Whether runs are slow because something watches them.
pub(crate) fn is_watched() -> bool {
    std::env::var_os("LONGPOLE_TEST_RUNNER").is_some()
}

impl Run {
    /// The steps, with all that `longpole record` would set, and a mock as libcupti.
    pub(crate) fn new(steps: &str) -> Self {
        let folder = TempDir::new().unwrap();
        let libraries = folder.path().join("lib");
        fs::create_dir(&libraries).unwrap();
        let mock = built("liblongpole_mock_cupti.so");
        for name in ["libcupti.so.12", "libcupti.so.13"] {
            fs::copy(&mock, libraries.join(name)).unwrap();
        }
        fs::create_dir(folder.path().join("out")).unwrap();
        let program = env!("CARGO_BIN_EXE_mock-gpu-program");
        let runner = std::env::var("LONGPOLE_TEST_RUNNER").unwrap_or_default();
        let mut words = runner.split_whitespace().chain([program]);
        let mut command = Command::new(words.next().unwrap());
        command.args(words).args(steps.split_whitespace());
        for inherited in VARIABLES.into_iter().chain(["RANK", "WORLD_SIZE", "LD_LIBRARY_PATH"]) {
            command.env_remove(inherited);
        }
        command
            .env(DIRECTORY, folder.path().join("out"))
            .env(LIBCUPTI, libraries.join("libcupti.so.13"))
            .env("CUDA_INJECTION64_PATH", recorder())
            .env("NVTX_INJECTION64_PATH", recorder())
            .env("MOCK_LIBCUPTI", libraries.join("libcupti.so.13"));
        Self { folder, command }
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<std::ffi::OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.command.env_remove(name);
        self
    }

    /// Has writing fail beyond so many bytes of a file.
    pub(crate) fn limit_files(mut self, bytes: u64) -> Self {
        use std::os::unix::process::CommandExt as _;
        // SAFETY: both calls may be made between fork and exec; the signal would end a program that is not prepared, as a full disk would not.
        unsafe {
            self.command.pre_exec(move || {
                let limit = libc::rlimit { rlim_cur: bytes, rlim_max: bytes };
                libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit);
                libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
                Ok(())
            });
        }
        self
    }

    /// Runs it. Whatever happens, nothing is printed.
    pub(crate) fn go(mut self) -> Outcome {
        let output = self.command.output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "");
        let own: Vec<&str> = stderr.lines().filter(|line| !line.starts_with("==")).collect();
        assert!(own.is_empty() && output.status.code() != Some(99), "{stderr}");
        Outcome { status: output.status, folder: self.folder }
    }

    /// Runs it, has it end well, and gives the one recording that it leaves.
    pub(crate) fn recording(self) -> Contents {
        let outcome = self.go();
        assert_eq!(outcome.status.code(), Some(0));
        let mut all = outcome.recordings();
        assert_eq!(all.len(), 1);
        let one = all.remove(0);
        assert!(one.has_end && one.faults == 0);
        one
    }
}

/// What a run left.
pub(crate) struct Outcome {
    pub(crate) status: ExitStatus,
    pub(crate) folder: TempDir,
}

impl Outcome {
    /// All recordings, by name of the file.
    pub(crate) fn recordings(&self) -> Vec<Contents> {
        let mut files: Vec<_> = fs::read_dir(self.folder.path().join("out")).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files.iter().map(|file| Contents::of(file)).collect()
    }
}

/// A recording, unpacked.
pub(crate) struct Contents {
    pub(crate) pid: u32,
    pub(crate) has_end: bool,
    pub(crate) faults: usize,
    bytes: Vec<u8>,
    texts: BTreeMap<u32, String>,
}

impl Contents {
    fn of(file: &Path) -> Self {
        let bytes = fs::read(file).unwrap();
        let (recordings, stray) = read(&bytes);
        assert_eq!(recordings.len(), 1, "{}", file.display());
        let recording = &recordings[0];
        let texts = recording.strings.iter().map(|(id, text)| (id.0, String::from_utf8_lossy(text).into_owned())).collect();
        let (pid, has_end, faults) = (recording.header.pid, recording.has_end(), recording.faults.len() + stray.len());
        assert!(file.file_name().unwrap().to_string_lossy().starts_with(&pid.to_string()));
        Self { pid, has_end, faults, bytes, texts }
    }

    pub(crate) fn records<R: Record>(&self) -> Vec<R> {
        let mut recordings: Vec<Recording<'_>> = read(&self.bytes).0;
        recordings[0].records()
    }

    pub(crate) fn count(&self, family: Family) -> u64 {
        read(&self.bytes).0[0].count(family)
    }

    pub(crate) fn text(&self, id: StringId) -> &str {
        self.texts.get(&id.0).map_or("", String::as_str)
    }

    /// Kernels by name.
    pub(crate) fn kernels(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for kernel in self.records::<Kernel>() {
            *counts.entry(self.text(kernel.name).to_owned()).or_default() += 1;
        }
        counts
    }

    /// Calls by name.
    pub(crate) fn calls(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for call in self.records::<Api>() {
            *counts.entry(self.text(call.name).to_owned()).or_default() += 1;
        }
        counts
    }

    /// NVTX events as `kind name`.
    pub(crate) fn nvtx(&self) -> Vec<String> {
        let kinds = ["?", "push", "pop", "start", "end", "mark"];
        let describe = |event: Nvtx| format!("{} {}", kinds[usize::from(event.kind)], self.text(event.name)).trim_end().to_owned();
        self.records::<Nvtx>().into_iter().map(describe).collect()
    }

    /// Records lost, by reason.
    pub(crate) fn lost(&self) -> BTreeMap<u8, u64> {
        let mut counts = BTreeMap::new();
        for lost in self.records::<Dropped>() {
            *counts.entry(lost.reason).or_default() += lost.count;
        }
        counts
    }

    /// Why nothing, or not all, was recorded.
    pub(crate) fn refusals(&self) -> Vec<(u8, i32, String)> {
        self.records::<Refused>().into_iter().map(|refused| (refused.reason, refused.code, self.text(refused.detail).to_owned())).collect()
    }

    pub(crate) fn switches(&self) -> Vec<(u8, u8)> {
        self.records::<RangeState>().into_iter().map(|switch| (switch.on, switch.cause)).collect()
    }

    pub(crate) fn end(&self) -> End {
        self.records::<End>()[0]
    }

    pub(crate) fn process(&self) -> Process {
        *self.records::<Process>().last().unwrap()
    }
}
