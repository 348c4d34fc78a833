//! What the program's processes wrote, put into one file.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use longpole_recording::{Clock, End, Family, Process, Recording, Refused, copy_whole_frames};

use super::{Output, child};
use crate::unfinished::Unfinished;

/// How long children that outlive the program are waited for: their recorder writes its last page when they end.
const GRACE: Duration = Duration::from_millis(1500);
const PAUSE: Duration = Duration::from_millis(10);

/// What makes a recording worth keeping.
const WORK: [Family; 6] = [Family::Kernel, Family::Memcpy, Family::Memset, Family::PeerCopy, Family::Api, Family::Nvtx];
/// A recording without work is small.
const MOST_WITHOUT_WORK: u64 = 16 << 20;

/// What was collected.
#[derive(Debug, Default)]
pub(in crate::commands) struct Collected {
    /// The recording; absent when there is nothing in it.
    pub(in crate::commands) path: Option<PathBuf>,
    pub(super) bytes: u64,
    /// Processes that wrote something.
    pub(super) processes: usize,
    /// Those that have not ended.
    pub(super) still_running: usize,
    /// Why a process could not be recorded.
    refused: Option<Refusal>,
    /// The process that used CUDA longest and did nothing while it was recorded.
    idle: Option<Idle>,
}

/// Why a process could not be recorded.
#[derive(Debug)]
struct Refusal {
    why: String,
    /// What to do.
    hint: &'static str,
    /// It marked ranges and had no CUDA, which says less than any other process does.
    has_no_cuda: bool,
}

/// A process that started CUDA and did no work on the GPU while it was recorded.
#[derive(Debug)]
struct Idle {
    who: String,
    /// From CUDA's start to its end.
    ran: Duration,
}

impl Collected {
    /// Why there is no recording. The flags are those that say what is recorded; the delay is the one that was asked for, which counts from
    /// CUDA's start, whenever the program began.
    pub(in crate::commands) fn why_nothing(&self, flags: &str, delay: Option<Duration>) -> String {
        let refused = |refusal: &Refusal| format!("nothing was recorded: {}; {}", refusal.why, refusal.hint);
        if let Some(refusal) = self.refused.as_ref().filter(|refusal| !refusal.has_no_cuda) {
            return refused(refusal);
        }
        if let Some(Idle { who, ran }) = &self.idle {
            return match delay.filter(|delay| ran < delay) {
                Some(delay) => format!(
                    "nothing was recorded: {who} started CUDA and ended {:.1} s later, within the delay of {} s; --delay takes a shorter one",
                    ran.as_secs_f64(),
                    delay.as_secs_f64()
                ),
                None => format!("nothing was recorded: {who} started CUDA and did no work on the GPU while it was recorded (see {flags})"),
            };
        }
        if let Some(refusal) = &self.refused {
            return refused(refusal);
        }
        "nothing was recorded: no process of the program started CUDA with the recorder in it (a program that is setuid, static, or clears its \
         environment cannot be recorded); `longpole doctor` tells whether there is a GPU"
            .to_owned()
    }
}

/// A process's file.
struct Part {
    path: PathBuf,
    started_at: u64,
    pid: u32,
    has_ended: bool,
    has_work: bool,
}

/// Puts the recordings of a folder into one file.
pub(super) fn collect(folder: &Path, output: &Output) -> io::Result<Collected> {
    let ended_at = SystemTime::now();
    let files = wait_for_ends(folder)?;
    let mut collected = Collected::default();
    let mut parts = Vec::new();
    for path in files {
        let survey = copy_whole_frames(BufReader::with_capacity(1 << 20, File::open(&path)?), io::sink())?;
        let Some(header) = survey.header else { continue };
        let part = Part {
            path,
            started_at: header.started_at_ns,
            pid: header.pid,
            has_ended: survey.count(Family::End) > 0,
            has_work: WORK.iter().any(|&family| survey.count(family) > 0),
        };
        if !part.has_work {
            // What is larger than any such recording has been is not read for one sentence.
            let bytes = if survey.bytes < MOST_WITHOUT_WORK { fs::read(&part.path)? } else { Vec::new() };
            let (recordings, _) = longpole_recording::read(&bytes);
            note(recordings.into_iter().next(), &part, ended_at, &mut collected);
        }
        parts.push(part);
    }
    parts.sort_by_key(|part| (part.started_at, part.pid));
    collected.still_running = parts.iter().filter(|part| !part.has_ended && child::is_alive(part.pid)).count();
    collected.processes = parts.iter().filter(|part| part.has_work).count();
    if collected.processes == 0 {
        return Ok(collected);
    }
    let mut builder = tempfile::Builder::new();
    builder.prefix(".longpole-record-").suffix(".part");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut file = builder.tempfile_in(output.folder())?;
    let _unfinished = Unfinished::guard(file.path());
    let mut out = BufWriter::with_capacity(1 << 20, &mut file);
    for part in &parts {
        collected.bytes += copy_whole_frames(BufReader::with_capacity(1 << 20, File::open(&part.path)?), &mut out)?.bytes;
    }
    out.flush()?;
    drop(out);
    collected.path = Some(persist(file, output)?);
    Ok(collected)
}

/// Gives the file its name, which nobody else has.
fn persist(mut file: tempfile::NamedTempFile, output: &Output) -> io::Result<PathBuf> {
    let (folder, stem) = match output {
        Output::Named(path) => {
            file.persist_noclobber(path).map_err(|error| error.error)?;
            return Ok(path.clone());
        }
        Output::New { folder, stem } => (folder, stem),
    };
    let mut number = 1;
    loop {
        let suffix = if number == 1 { String::new() } else { format!("-{number}") };
        let name = format!("{stem}{suffix}.longpole");
        let path = if folder == Path::new(".") { PathBuf::from(name) } else { folder.join(name) };
        match file.persist_noclobber(&path) {
            Ok(_) => return Ok(path),
            Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists && number < 1000 => {
                file = error.file;
                number += 1;
            }
            Err(error) => return Err(error.error),
        }
    }
}

/// The files of the folder, when every process that can has written its end, or time is up.
fn wait_for_ends(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let began = Instant::now();
    loop {
        let mut files = Vec::new();
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.extension().is_some_and(|ending| ending == "lprec") {
                files.push(path);
            }
        }
        files.sort();
        let runs = |path: &PathBuf| {
            let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
            let digits: String = name.chars().take_while(char::is_ascii_digit).collect();
            digits.parse().is_ok_and(child::is_alive)
        };
        if began.elapsed() > GRACE || !files.iter().any(runs) {
            return Ok(files);
        }
        std::thread::sleep(PAUSE);
    }
}

/// Notes why a process has nothing. `ended_at` is when the program ended, which is the end of a process that did not write its own.
fn note(recording: Option<Recording<'_>>, part: &Part, ended_at: SystemTime, collected: &mut Collected) {
    let mut who = format!("process {}", part.pid);
    let (mut started_at, mut ended_at) = (part.started_at, ns_since_1970(ended_at));
    if let Some(mut recording) = recording {
        if let Some(refused) = recording.records::<Refused>().first().copied() {
            let (why, hint) = longpole_ingest::explain_refusal(refused.reason);
            let detail = recording.strings.text(refused.detail).map_or_else(String::new, |detail| format!(" ({detail})"));
            let refusal = Refusal { why: format!("{why}{detail}"), hint, has_no_cuda: refused.reason == Refused::NO_DRIVER };
            // Of several, one that had CUDA.
            match &collected.refused {
                Some(known) if !known.has_no_cuda || refusal.has_no_cuda => {}
                _ => collected.refused = Some(refusal),
            }
            return;
        }
        let executable = recording.records::<Process>().first().map(|process| process.executable);
        if let Some(name) = executable.and_then(|name| recording.strings.text(name)) {
            who = format!("{who} ({name})");
        }
        // The clocks are first compared when CUDA has started, from where the delay counts; marked ranges may be there long before.
        started_at = recording.records::<Clock>().first().map_or(started_at, |clock| clock.realtime);
        ended_at = recording.records::<End>().first().map_or(ended_at, |end| end.time);
    }
    let ran = Duration::from_nanos(ended_at.saturating_sub(started_at));
    if collected.idle.as_ref().is_none_or(|known| known.ran < ran) {
        collected.idle = Some(Idle { who, ran });
    }
}

/// A moment as recordings have it.
fn ns_since_1970(time: SystemTime) -> u64 {
    u64::try_from(time.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos()).unwrap_or(u64::MAX)
}

/// The local time for a file's name, as `20260131-235959`.
pub(super) fn now() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let [year, month, day, hour, minute, second] = civil(seconds);
    format!("{year:04}{month:02}{day:02}-{hour:02}{minute:02}{second:02}")
}

/// Year, month, day, hour, minute and second of a moment, by the clock on the wall.
#[cfg(unix)]
fn civil(seconds: u64) -> [i64; 6] {
    let time = seconds.cast_signed() as libc::time_t;
    // SAFETY: the struct is plain data that may be zero, and both pointers are valid for the call.
    let local = unsafe {
        let mut local: libc::tm = std::mem::zeroed();
        libc::localtime_r(&raw const time, &raw mut local);
        local
    };
    [
        i64::from(local.tm_year) + 1900,
        i64::from(local.tm_mon) + 1,
        i64::from(local.tm_mday),
        i64::from(local.tm_hour),
        i64::from(local.tm_min),
        i64::from(local.tm_sec),
    ]
}

/// The seconds since 1970 are as good a name where there is no such function.
#[cfg(not(unix))]
fn civil(seconds: u64) -> [i64; 6] {
    [0, 0, 0, 0, 0, seconds.cast_signed()]
}
