//! What the facts mean. One file a check; each always answers, so that a reader of the JSON finds every code on every machine.
//!
//! To add a check: a file with a function from [`Facts`] to [`Check`], a line in `CHECKS`, a section in `docs/doctor.md`.

mod clocks;
mod counters;
mod cpu_sampling;
mod cuda;
mod cupti;
mod disk;
mod driver;
mod gpu;
mod in_use;
mod mig;
mod monitors;
mod ncu;
mod nsys;
mod nvdisasm;
mod persistence;
mod throttling;
mod viewer;

pub(crate) use counters::takes_perfmon;

use crate::facts::{Facts, Gpu};

/// How a check came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// As it should be.
    Good,
    /// Nothing is wrong, and something is worth knowing.
    Note,
    /// Something is wrong.
    Bad,
    /// It could not be found out.
    Unknown,
    /// There is nothing here that it could be asked of.
    Skipped,
}

impl Status {
    /// The word used in text and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Good => "ok",
            Self::Note => "note",
            Self::Bad => "fail",
            Self::Unknown => "unknown",
            Self::Skipped => "skipped",
        }
    }

    /// Whether it passed; `None` where nobody knows.
    pub const fn ok(self) -> Option<bool> {
        match self {
            Self::Good | Self::Note => Some(true),
            Self::Bad => Some(false),
            Self::Unknown | Self::Skipped => None,
        }
    }
}

/// How to tell that a fix worked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verify {
    /// A command that changes nothing.
    pub command: String,
    /// What it says then.
    pub expect: String,
}

/// What to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fix {
    /// What to do, in words.
    pub text: String,
    /// Commands for this machine, in order; never run by this program.
    pub commands: Vec<String>,
    /// The check afterwards.
    pub verify: Option<Verify>,
}

impl Fix {
    /// Words alone.
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), commands: Vec::new(), verify: None }
    }

    /// Words and commands.
    pub(crate) fn commands<const N: usize>(text: impl Into<String>, commands: [&str; N]) -> Self {
        Self { commands: commands.map(str::to_owned).into(), ..Self::text(text) }
    }

    /// With a check afterwards.
    pub(crate) fn verified(mut self, command: &str, expect: &str) -> Self {
        self.verify = Some(Verify { command: command.to_owned(), expect: expect.to_owned() });
        self
    }
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// Stable code.
    pub code: &'static str,
    /// How it came out.
    pub status: Status,
    /// What was found.
    pub found: String,
    /// What to do about it, where there is something to do.
    pub fix: Option<Fix>,
}

/// How it came out, what was found, what to do.
type Finding = (Status, String, Option<Fix>);

/// One question.
type Question = fn(&Facts) -> Finding;

/// All checks, in the order in which they are shown.
const CHECKS: [(&str, Question); 17] = [
    ("gpu", gpu::check),
    ("driver", driver::check),
    ("cuda", cuda::check),
    ("counters", counters::check),
    ("mig", mig::check),
    ("monitors", monitors::check),
    ("ncu", ncu::check),
    ("nsys", nsys::check),
    ("cupti", cupti::check),
    ("nvdisasm", nvdisasm::check),
    ("cpu_sampling", cpu_sampling::check),
    ("viewer", viewer::check),
    ("clocks", clocks::check),
    ("throttling", throttling::check),
    ("persistence", persistence::check),
    ("in_use", in_use::check),
    ("disk", disk::check),
];

/// The answer to every check.
pub fn checks(facts: &Facts) -> Vec<Check> {
    let answer = |(code, check): (&'static str, Question)| {
        let (status, found, fix) = check(facts);
        Check { code, status, found, fix }
    };
    CHECKS.into_iter().map(answer).collect()
}

/// What is said where a check needs a GPU and there is none.
fn no_gpu() -> Finding {
    (Status::Skipped, "needs a GPU".to_owned(), None)
}

fn good(found: impl Into<String>) -> Finding {
    (Status::Good, found.into(), None)
}

/// Numbers of GPUs, for a sentence: `GPU 0`, `GPUs 0, 2`, `all 8 GPUs`.
fn numbers(facts: &Facts, chosen: &[&Gpu]) -> String {
    let list: Vec<String> = chosen.iter().map(|gpu| gpu.index.to_string()).collect();
    match (chosen.len(), facts.gpus.len()) {
        (1, _) => format!("GPU {}", list[0]),
        (2, 2) => "both GPUs".to_owned(),
        (some, all) if some == all => format!("all {all} GPUs"),
        _ => format!("GPUs {}", list.join(", ")),
    }
}

/// A size with one unit: `139.8 GiB`.
fn size(bytes: u64) -> String {
    const UNIT: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let power = (bytes.checked_ilog2().unwrap_or(0) / 10).min(4) as usize;
    if power == 0 { format!("{bytes} B") } else { format!("{:.1} {}", bytes as f64 / (1_u64 << (10 * power)) as f64, UNIT[power]) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Captured;

    #[test]
    fn every_check_answers_on_a_machine_that_says_nothing() {
        let checks = checks(&Facts::of(&Captured::default()));
        assert_eq!(checks.len(), CHECKS.len());
        let mut codes: Vec<_> = checks.iter().map(|check| check.code).collect();
        codes.dedup();
        assert_eq!(codes.len(), CHECKS.len());
        assert!(checks.iter().all(|check| !check.found.is_empty()));
        assert_eq!((checks[0].status, checks[3].status), (Status::Bad, Status::Skipped));
    }

    #[test]
    fn sizes_have_one_unit() {
        assert_eq!(
            [size(0), size(1023), size(1 << 20), size(150_754_820_096), size(u64::MAX)],
            ["0 B", "1023 B", "1.0 MiB", "140.4 GiB", "16777216.0 TiB"]
        );
    }

    #[test]
    fn gpus_are_called_by_number() {
        let mut facts = Facts::of(&Captured::default());
        facts.gpus = (0..3).map(|index| Gpu { index, ..Gpu::default() }).collect();
        let named = |chosen: &[usize]| numbers(&facts, &chosen.iter().map(|&at| &facts.gpus[at]).collect::<Vec<_>>());
        assert_eq!([named(&[1]), named(&[0, 2]), named(&[0, 1, 2])], ["GPU 1", "GPUs 0, 2", "all 3 GPUs"]);
    }
}
