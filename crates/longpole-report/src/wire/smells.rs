//! Suspects and questions of `longpole.triage/1`.

use longpole_analysis::{Fact, FactValue, Question, Smell};
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};

#[derive(Serialize)]
pub(super) struct SmellOut<'a> {
    code: &'static str,
    subject: &'a str,
    summary: &'a str,
    share_fraction: Option<f64>,
    evidence: Facts<'a>,
    ceiling: CeilingOut,
    next: &'a str,
}

#[derive(Serialize)]
struct CeilingOut {
    win_ns: Option<i64>,
    win_fraction: Option<f64>,
    /// Whether the fraction is of the wall that is left without the profiler.
    is_calibrated: bool,
    /// What the figure supposes; absent where there is none.
    kind: Option<&'static str>,
    formula: &'static str,
}

#[derive(Serialize)]
pub(super) struct QuestionOut<'a> {
    code: &'static str,
    question: &'static str,
    verdict: &'static str,
    answer: &'a str,
    evidence: Facts<'a>,
}

/// Evidence as an object: its keys differ from smell to smell and say their units.
struct Facts<'a>(&'a [Fact]);

impl Serialize for Facts<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for Fact { key, value } in self.0 {
            match value {
                FactValue::Time(ns) => map.serialize_entry(key, &ns.get())?,
                FactValue::Count(count) => map.serialize_entry(key, count)?,
                FactValue::Fraction(fraction) => map.serialize_entry(key, fraction)?,
                FactValue::Text(text) => map.serialize_entry(key, text)?,
                FactValue::List(items) => map.serialize_entry(key, items)?,
                FactValue::Missing => map.serialize_entry(key, &None::<i64>)?,
            }
        }
        map.end()
    }
}

pub(super) fn smell(smell: &Smell) -> SmellOut<'_> {
    SmellOut {
        code: smell.code,
        subject: &smell.subject,
        summary: &smell.summary,
        share_fraction: smell.share_fraction,
        evidence: Facts(&smell.evidence),
        ceiling: CeilingOut {
            win_ns: smell.ceiling.map(|ceiling| ceiling.win_ns.get()),
            win_fraction: smell.ceiling.map(|ceiling| ceiling.win_fraction),
            is_calibrated: smell.ceiling.is_some_and(|ceiling| ceiling.is_calibrated),
            kind: smell.ceiling.map(|ceiling| ceiling.kind.code()),
            formula: smell.ceiling_formula,
        },
        next: &smell.next,
    }
}

pub(super) fn question(question: &Question) -> QuestionOut<'_> {
    QuestionOut {
        code: question.code,
        question: question.question,
        verdict: question.verdict,
        answer: &question.answer,
        evidence: Facts(&question.evidence),
    }
}
