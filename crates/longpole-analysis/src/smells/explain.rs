//! What `longpole explain` says: the texts of the kinds, with the limits filled in from the table.

use super::thresholds::{THRESHOLDS, Threshold};
use super::{KINDS, SmellKind};

/// What a smell means.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// Its code.
    pub code: &'static str,
    /// What it means.
    pub meaning: &'static str,
    /// How it is detected, with numbers.
    pub detection: String,
    /// The limits that decide.
    pub thresholds: Vec<Threshold>,
    /// How the most it can win is worked out.
    pub ceiling: &'static str,
    /// What usually fixes it.
    pub fix: &'static str,
}

/// Every smell, in order of its code.
pub fn explanations() -> Vec<Explanation> {
    let mut all: Vec<Explanation> = KINDS.iter().map(|kind| of(kind)).collect();
    all.sort_by_key(|explanation| explanation.code);
    all
}

/// The smell of a code.
pub fn explain(code: &str) -> Option<Explanation> {
    KINDS.iter().find(|kind| kind.code == code).map(|kind| of(kind))
}

fn of(kind: &SmellKind) -> Explanation {
    let mut detection = kind.detection.to_owned();
    let mut thresholds = Vec::new();
    for threshold in THRESHOLDS {
        let place = format!("{{{}}}", threshold.name);
        if detection.contains(&place) {
            detection = detection.replace(&place, &threshold.text());
            thresholds.push(*threshold);
        }
    }
    Explanation { code: kind.code, meaning: kind.meaning, detection, thresholds, ceiling: kind.ceiling, fix: kind.fix }
}
