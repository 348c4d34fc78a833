//! What of profiling will work here, from the answers of the checks.

use crate::checks::{Check, Status};
use crate::facts::{Facts, Smi};

/// Whether something will work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Works {
    /// It will.
    Yes,
    /// It will, but not all of it, or not at once.
    Partly,
    /// It will not.
    No,
    /// Nobody knows before it is tried.
    Unknown,
}

impl Works {
    /// The word used in text and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::Partly => "partly",
            Self::No => "no",
            Self::Unknown => "unknown",
        }
    }
}

/// One way of profiling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    /// Stable code.
    pub code: &'static str,
    /// What it is.
    pub what: &'static str,
    /// Whether it will work.
    pub works: Works,
    /// Why, or why not.
    pub why: String,
}

/// The answers by code.
struct Answers<'a>(&'a [Check]);

impl Answers<'_> {
    fn status(&self, code: &str) -> Status {
        self.0.iter().find(|check| check.code == code).map_or(Status::Unknown, |check| check.status)
    }

    fn is_bad(&self, code: &str) -> bool {
        self.status(code) == Status::Bad
    }
}

/// Why nothing runs on a GPU here.
fn no_gpu(facts: &Facts) -> String {
    match facts.driver.smi {
        Smi::Mismatch => "the driver and its libraries are of different versions".to_owned(),
        Smi::TimedOut => "the driver does not answer".to_owned(),
        _ if facts.driver.devices_on_bus > 0 || facts.driver.version.is_some() => "no program can use the GPU (see `driver`)".to_owned(),
        _ => "there is no GPU here".to_owned(),
    }
}

fn recording(facts: &Facts, answers: &Answers<'_>) -> (Works, String) {
    if answers.is_bad("cupti") {
        return (Works::No, "no CUPTI library that fits (see `cupti`)".to_owned());
    }
    if answers.is_bad("cuda") {
        return (Works::Partly, "not with every torch and toolkit here (see `cuda`)".to_owned());
    }
    let torch = if facts.cuda.torch.iter().any(|torch| torch.cuda.is_some()) { "torch.profiler and CUPTI are here; " } else { "" };
    (Works::Yes, format!("{torch}it needs no right to read counters"))
}

fn ncu(facts: &Facts, answers: &Answers<'_>) -> (Works, String) {
    let Some(best) = facts.tools.ncu.best() else { return (Works::No, "ncu is not installed".to_owned()) };
    let is_off_path = answers.is_bad("ncu") && facts.tools.ncu.on_path.is_none() && best.trouble.is_none();
    let walls = [
        (answers.is_bad("counters"), "this user may not read the counters (see `counters`)"),
        (answers.is_bad("mig"), "MIG is on without an instance (see `mig`)"),
        (answers.is_bad("ncu") && !is_off_path, "this ncu is of no use (see `ncu`)"),
        (facts.session.foreign_lock.is_some(), "another user's lock is in the way (see `disk`)"),
    ];
    let walls: Vec<&str> = walls.into_iter().filter(|(stands, _)| *stands).map(|(_, wall)| wall).collect();
    if !walls.is_empty() {
        return (Works::No, walls.join("; "));
    }
    if is_off_path {
        return (Works::Partly, "once the right one is on the PATH (see `ncu`)".to_owned());
    }
    if answers.status("counters") == Status::Unknown {
        return (Works::Unknown, "whether this user may read the counters shows when it is tried (see `counters`)".to_owned());
    }
    if answers.status("monitors") == Status::Unknown {
        return (Works::Partly, "once DCGM is paused (see `monitors`)".to_owned());
    }
    if answers.status("mig") == Status::Note {
        return (Works::Partly, "within a MIG instance, without locked clocks (see `mig`)".to_owned());
    }
    (Works::Yes, "counters may be read, and ncu knows the GPU".to_owned())
}

fn nsys(facts: &Facts, answers: &Answers<'_>) -> (Works, String) {
    if facts.tools.nsys.best().is_none() {
        return (Works::No, "nsys is not installed".to_owned());
    }
    if answers.is_bad("nsys") {
        let is_off_path = facts.tools.nsys.on_path.is_none();
        let works = if is_off_path { Works::Partly } else { Works::No };
        return (works, if is_off_path { "once it is on the PATH (see `nsys`)" } else { "see `nsys`" }.to_owned());
    }
    let counters = match answers.status("counters") {
        Status::Bad => Some("GPU metrics (see `counters`)"),
        Status::Unknown => Some("GPU metrics, perhaps (see `counters`)"),
        _ if answers.status("monitors") == Status::Unknown => Some("GPU metrics, perhaps (see `monitors`)"),
        _ if matches!(answers.status("mig"), Status::Note | Status::Bad) => Some("GPU metrics, perhaps (see `mig`)"),
        _ => None,
    };
    let samples = (answers.status("cpu_sampling") != Status::Good).then_some("CPU samples (see `cpu_sampling`)");
    let lacking: Vec<&str> = counters.into_iter().chain(samples).collect();
    if lacking.is_empty() {
        (Works::Yes, "CUDA and NVTX traces, CPU samples, GPU metrics".to_owned())
    } else {
        (Works::Partly, format!("CUDA and NVTX traces, without {}", lacking.join(" and ")))
    }
}

/// What will work.
pub fn ways(facts: &Facts, checks: &[Check]) -> Vec<Way> {
    let answers = Answers(checks);
    let judge = |judge: fn(&Facts, &Answers<'_>) -> (Works, String)| {
        if facts.has_gpu() { judge(facts, &answers) } else { (Works::No, no_gpu(facts)) }
    };
    let way = |code, what, (works, why)| Way { code, what, works, why };
    vec![
        way("read", "read traces and reports", (Works::Yes, "needs neither GPU nor NVIDIA's tools".to_owned())),
        way("record", "record a trace (torch.profiler, CUPTI)", judge(recording)),
        way("ncu", "profile kernels with ncu", judge(ncu)),
        way("nsys", "record with nsys", judge(nsys)),
    ]
}
