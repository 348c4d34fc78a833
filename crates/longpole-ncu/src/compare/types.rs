//! What a comparison of two reports holds.

use crate::container::EntryKind;
use crate::summary::VerdictKind;

/// Two reports, kernel by kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Why the two may not be comparable, most serious first.
    pub cautions: Vec<Caution>,
    /// Kernels that are in both, in the order of the first.
    pub pairs: Vec<Pair>,
    /// Launches and time by whole name, largest change first.
    pub totals: Vec<NameTotal>,
    /// Kernels that are only in the first, as (id, name).
    pub only_before: Vec<(usize, String)>,
    /// Kernels that are only in the second, as (id, name).
    pub only_after: Vec<(usize, String)>,
}

/// All launches of one whole name, before and after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameTotal {
    /// The name.
    pub name: String,
    /// Launches in the first report.
    pub launches_before: u64,
    /// Launches in the second.
    pub launches_after: u64,
    /// Their time in the first; `None` if none of them has one.
    pub before_ns: Option<u64>,
    /// Their time in the second.
    pub after_ns: Option<u64>,
    /// Launches without a time in the first: they are missing from the sum.
    pub without_duration_before: u64,
    /// Launches without a time in the second.
    pub without_duration_after: u64,
}

impl NameTotal {
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            launches_before: 0,
            launches_after: 0,
            before_ns: None,
            after_ns: None,
            without_duration_before: 0,
            without_duration_after: 0,
        }
    }

    /// After over before; `None` where one is missing or the first is 0.
    pub fn ratio(&self) -> Option<f64> {
        let before = self.before_ns.filter(|&before| before != 0)?;
        Some(self.after_ns? as f64 / before as f64)
    }
}

/// Something that differs between the recordings and moves figures by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caution {
    /// What: `device`, `clocks`, `cache control`, `replay mode`, `sections`, `ncu version`, `serialised` (always there) ...
    pub about: &'static str,
    /// The sentence.
    pub text: String,
}

/// How a pair was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatchedBy {
    /// The same whole name (and launch shape, if there are several).
    Name,
    /// The same function with other template arguments or parameters.
    Function,
    /// Nothing but order and launch shape: it was renamed, or it is another kernel.
    OrderAndShape,
    /// Nothing but the order of launches.
    Order,
}

/// One kernel before and after.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// What was profiled.
    pub kind: EntryKind,
    /// Its place in the first report.
    pub before: usize,
    /// Its place in the second.
    pub after: usize,
    /// Its name in the first.
    pub name_before: String,
    /// Its name in the second.
    pub name_after: String,
    /// How it was found.
    pub matched_by: MatchedBy,
    /// What holds the first back; `None` without the figures for a verdict.
    pub verdict_before: Option<VerdictKind>,
    /// What holds the second back.
    pub verdict_after: Option<VerdictKind>,
    /// The figures that both, or one of them, have; in a fixed order, time first.
    pub figures: Vec<Figure>,
    /// Stall reasons whose cycles per issued instruction moved, largest move first.
    pub stalls: Vec<Figure>,
    /// Rules with an estimate or a warning that are gone, as (rule, text).
    pub rules_gone: Vec<(String, String)>,
    /// Rules that are new.
    pub rules_new: Vec<(String, String)>,
}

/// One figure before and after.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// What it is, e.g. `duration`.
    pub what: &'static str,
    /// Its unit: `ns`, `byte`, `byte/s`, `%`, `cycle`, `Hz`, or empty.
    pub unit: &'static str,
    /// Before.
    pub before: Option<f64>,
    /// After.
    pub after: Option<f64>,
}

impl Figure {
    /// After over before; `None` where one is missing or the first is 0.
    pub fn ratio(&self) -> Option<f64> {
        match (self.before, self.after) {
            (Some(before), Some(after)) if before != 0.0 => Some(after / before),
            _ => None,
        }
    }
}
