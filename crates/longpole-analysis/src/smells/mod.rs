//! Smells: what is suspicious about a run, each with evidence, the share of the wall that the evidence covers, a ceiling and one
//! next step.
//!
//! A smell is a [`SmellKind`] in a file of this folder and one line in [`KINDS`]. Its numbers come from [`Facts`]; its limits
//! from the table in [`thresholds`]. A smell may be *listed* from a low limit and *lead* from a higher one; the next
//! experiment is that of the best-supported leader: stages are tried in order (a recording that shows nothing is mended before a cause
//! is looked for, a named cause comes before the general one it is a part of), and within a stage the largest ceiling decides. Of the
//! device's own work a larger ceiling goes first wherever it stands, if it rests on more than that the work were free.
//!
//! Evidence is made of interval unions, so that nothing is counted twice. A ceiling is an upper bound: what would be won if the thing
//! cost nothing and nothing else took its place. With several devices or ranks both are
//! means over them; the ceilings of copies and communication are those of the device with most.

mod allocation;
mod blocking;
mod copies;
mod evidence;
mod explain;
mod facts;
pub(crate) mod host;
mod kernels;
mod operators;
mod outermost;
mod profiler;
mod recording;
mod start_up;
mod steps;
mod thresholds;
mod waiting;

use longpole_trace::Ns;
use rayon::prelude::*;

pub(crate) use evidence::{Evidence, Replays, manages_memory};
pub use explain::{Explanation, explain, explanations};
pub(crate) use facts::Facts;
pub(crate) use start_up::{compiles, is_compiler_frame, is_loading_overhead, loads};
pub(crate) use thresholds::{
    CAPTURE_SHARE, COLD_STEP_RATIO, CRITICAL_COPY_SHARE, DENSE_SHARE, FEW_ACTIVITIES, HOST_ALONE_SHARE, LAUNCHES_TO_JUDGE, PACKED_SHARE,
    SHORTEST_START_UP, STARVED_LISTED, STEP_COVERS, STEPS_TO_JUDGE,
};
pub use thresholds::{THRESHOLDS, Threshold, Unit};

use crate::ceilings::CeilingKind;
use crate::phrases::{fine_percent, time};

/// A number or a name that goes with a finding. Its key says the unit: `*_ns`, `*_fraction`, or none.
#[derive(Clone, Debug, PartialEq)]
pub enum FactValue {
    /// A time.
    Time(Ns),
    /// A number of things.
    Count(u64),
    /// A share, 0..1, or a ratio.
    Fraction(f64),
    /// A name.
    Text(String),
    /// Several names or numbers in words.
    List(Vec<String>),
    /// Not recorded.
    Missing,
}

impl From<Ns> for FactValue {
    fn from(value: Ns) -> Self {
        Self::Time(value)
    }
}

impl From<u64> for FactValue {
    fn from(value: u64) -> Self {
        Self::Count(value)
    }
}

impl From<f64> for FactValue {
    fn from(value: f64) -> Self {
        Self::Fraction(value)
    }
}

impl From<&str> for FactValue {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl<T: Into<Self>> From<Option<T>> for FactValue {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Missing, Into::into)
    }
}

/// A row of evidence.
#[derive(Clone, Debug, PartialEq)]
pub struct Fact {
    /// Stable key, with its unit.
    pub key: &'static str,
    /// Its value.
    pub value: FactValue,
}

/// The most that removing a smell could win.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ceiling {
    /// Time.
    pub win_ns: Ns,
    /// The same as a share of the wall.
    pub win_fraction: f64,
    /// Whether the wall is what is left of it without the profiler, by a step that was timed.
    pub is_calibrated: bool,
    /// What it supposes.
    pub kind: CeilingKind,
}

impl Ceiling {
    /// In words: `at most 125.3 ms (59 % of wall)`, `at most 3.1 ms (2 % of wall, at its memory floor)`.
    pub fn in_words(self) -> String {
        let wall = if self.is_calibrated { "the unprofiled wall" } else { "wall" };
        let supposed = self.kind.supposed().map_or_else(String::new, |supposed| format!(", {supposed}"));
        format!("at most {} ({} of {wall}{supposed})", time(self.win_ns), fine_percent(self.win_fraction))
    }
}

/// A smell that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Smell {
    /// Stable code, which `longpole explain` takes.
    pub code: &'static str,
    /// The operator, call, range or kernel it is about.
    pub subject: String,
    /// Share of the wall that its evidence covers; absent where it covers no time.
    pub share_fraction: Option<f64>,
    /// The numbers.
    pub evidence: Vec<Fact>,
    /// What it could win at most; absent where removing it wins knowledge, not time.
    pub ceiling: Option<Ceiling>,
    /// How the ceiling is worked out.
    pub ceiling_formula: &'static str,
    /// The finding in one clause.
    pub summary: String,
    /// What to change and what to measure after.
    pub next: String,
}

/// When a smell may be the next experiment, earliest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    /// The recording does not show what is to be judged.
    Recording,
    /// What is recorded is start-up.
    StartUp,
    /// There is too little to judge.
    TooLittle,
    /// A cause with a name.
    Cause,
    /// Causes cannot be named without operators.
    Unattributed,
    /// The host in general.
    Host,
    /// The device is kept busy: its own work is left. In order of the list.
    ManyKernels,
    Operator,
    Kernel,
    /// Never leads.
    Listed,
    /// Only if nothing else leads; not listed otherwise.
    Fallback,
}

/// A kind of smell: how it is found, and what `longpole explain` says.
struct SmellKind {
    code: &'static str,
    stage: Stage,
    /// Stands before the summary where it is the next experiment.
    lead_in: &'static str,
    meaning: &'static str,
    /// How it is detected. `{NAME}` is a threshold of the table.
    detection: &'static str,
    ceiling: &'static str,
    fix: &'static str,
    find: fn(&Facts<'_, '_>) -> Option<Found>,
}

/// What a kind found.
struct Found {
    subject: String,
    summary: String,
    next: String,
    share: Option<f64>,
    ceiling: Option<Ceiling>,
    evidence: Vec<Fact>,
    leads: bool,
}

impl Found {
    fn new(subject: impl Into<String>, summary: String, next: impl Into<String>) -> Self {
        let (subject, next) = (subject.into(), next.into());
        Self { subject, summary, next, share: None, ceiling: None, evidence: Vec::new(), leads: false }
    }

    /// Covers a share of the wall.
    fn covering(mut self, share: Option<f64>) -> Self {
        self.share = share;
        self
    }

    fn at_most(mut self, ceiling: Option<Ceiling>) -> Self {
        self.ceiling = ceiling;
        self
    }

    fn fact(mut self, key: &'static str, value: impl Into<FactValue>) -> Self {
        self.evidence.push(Fact { key, value: value.into() });
        self
    }

    fn leading(mut self, leads: bool) -> Self {
        self.leads = leads;
        self
    }
}

/// All kinds. Those of one stage that have no ceiling lead in this order.
const KINDS: &[&SmellKind] = &[
    &recording::CUT_FILE,
    &recording::EMPTY,
    &recording::NOTHING_IN_SCOPE,
    &recording::RECORD_CUDA,
    &recording::GRAPH_CAPTURE,
    &recording::KERNELS_MISSING,
    &start_up::COLD_START,
    &start_up::COMPILE_OR_LOAD,
    &start_up::STALL,
    &recording::TOO_LITTLE,
    &copies::COPIES,
    &waiting::COMMUNICATION,
    &allocation::ALLOCATION,
    &waiting::DATA_LOADING,
    &waiting::SYNCHRONISATION,
    &blocking::BLOCKING_CALL,
    &recording::RECORD_CPU,
    &host::HOST_BOUND,
    &kernels::MANY_TINY_KERNELS,
    &operators::ONE_OPERATOR,
    &kernels::ONE_KERNEL,
    &kernels::TOP_FAMILY,
    &recording::RECORD,
    &operators::MANY_CHEAP_CALLS,
    &operators::MEMORY_TRAFFIC,
    &steps::COLD_FIRST_STEP,
    &steps::SLOW_STEPS,
    &steps::SHAPE_CHURN,
    &recording::UNNAMED_PHASES,
    &profiler::PROFILER_DISTORTS,
];

/// What is suspicious, by share of the wall that the evidence covers, and the sentence of the one to try next.
pub(crate) struct Suspects {
    pub(crate) smells: Vec<Smell>,
    pub(crate) next_code: &'static str,
    pub(crate) next_text: String,
}

/// Looks for every kind.
pub(crate) fn suspects(facts: &Facts<'_, '_>) -> Suspects {
    let mut found: Vec<(&SmellKind, Found)> =
        KINDS.par_iter().filter(|kind| is_judged(facts, kind)).filter_map(|&kind| Some((kind, (kind.find)(facts)?))).collect();
    let win = |found: &Found| found.ceiling.map_or(Ns::ZERO, |ceiling| ceiling.win_ns);
    // The first of equals is taken, so that the order of the list settles ties.
    let leader = found
        .iter()
        .enumerate()
        .filter(|(_, (_, found))| found.leads)
        .min_by_key(|(at, (kind, found))| (kind.stage, std::cmp::Reverse(win(found)), *at))
        .map(|(at, _)| at);
    // Of the device's own work, a figure that rests on a floor or on fusing is better than the order of the list.
    let leader = leader.map(|first| {
        let is_device_work = |kind: &SmellKind| matches!(kind.stage, Stage::ManyKernels | Stage::Operator | Stage::Kernel);
        let is_modelled = |found: &Found| found.ceiling.is_some_and(|ceiling| ceiling.kind != CeilingKind::WorkFree);
        let better = found
            .iter()
            .enumerate()
            .filter(|(_, (kind, other))| other.leads && is_device_work(kind) && is_modelled(other) && win(other) > win(&found[first].1));
        let best = better.max_by_key(|(at, (_, other))| (win(other), std::cmp::Reverse(*at))).map(|(at, _)| at);
        best.filter(|_| is_device_work(found[first].0)).unwrap_or(first)
    });
    let (next_code, next_text) = leader.map_or_else(
        || ("record", "record again: nothing here can be judged".to_owned()),
        |at| (found[at].0.code, experiment(found[at].0, &found[at].1)),
    );
    // Where nothing can be judged, nothing is: only what the recording lacks, start-up, and the like are listed.
    let unjudged =
        found.iter().any(|(kind, _)| matches!(kind.code, "empty" | "nothing_in_scope" | "record_cuda" | "graph_capture" | "too_little"));
    found.retain(|(kind, _)| match kind.stage {
        Stage::Fallback => kind.code == next_code,
        Stage::Cause | Stage::Unattributed | Stage::Host | Stage::ManyKernels | Stage::Operator | Stage::Kernel => {
            !unjudged || kind.code == "allocation"
        }
        Stage::Recording | Stage::StartUp | Stage::TooLittle | Stage::Listed => true,
    });
    let mut smells: Vec<Smell> = found.into_iter().map(|(kind, found)| smell(kind, found)).collect();
    smells.sort_by(|a, b| b.share_fraction.unwrap_or(-1.0).total_cmp(&a.share_fraction.unwrap_or(-1.0)));
    Suspects { smells, next_code, next_text }
}

/// Of a cut file only the cut itself is judged, and what the recording cost: everything else rests on what the device did, or did not.
fn is_judged(facts: &Facts<'_, '_>, kind: &SmellKind) -> bool {
    !facts.tables.is_cut || matches!(kind.code, "cut_file" | "profiler_distorts")
}

/// The sentence of the next experiment: finding, what to do, and the most it can win.
fn experiment(kind: &SmellKind, found: &Found) -> String {
    let at_most = found.ceiling.map_or_else(String::new, |ceiling| format!("; wins {}", ceiling.in_words()));
    format!("{}{}; {}{at_most}", kind.lead_in, found.summary, found.next)
}

fn smell(kind: &SmellKind, found: Found) -> Smell {
    Smell {
        code: kind.code,
        subject: found.subject,
        share_fraction: found.share,
        evidence: found.evidence,
        ceiling: found.ceiling,
        ceiling_formula: kind.ceiling,
        summary: found.summary,
        next: found.next,
    }
}

#[cfg(test)]
mod claim_tests;
#[cfg(test)]
mod launcher_tests;
#[cfg(test)]
mod tests;
