//! `longpole.check/1`

use serde::Serialize;

use super::document;
use crate::check::{Amount, CheckReport, CheckedLimit};
use crate::header::Header;

/// An amount: whole where it is.
#[derive(Serialize)]
#[serde(untagged)]
enum NumberOut {
    Whole(i64),
    Decimal(f64),
}

#[derive(Serialize)]
struct LimitOut<'a> {
    name: &'a str,
    kind: &'static str,
    path: &'a str,
    over: Option<&'a str>,
    line: usize,
    unit: &'static str,
    bound: &'static str,
    limit: NumberOut,
    value: Option<NumberOut>,
    headroom_fraction: Option<f64>,
    baseline: Option<&'a str>,
    change: Option<Change>,
    verdict: &'static str,
    ok: bool,
    reason: Option<&'a str>,
}

#[derive(Serialize)]
struct Change {
    unit: &'static str,
    before: NumberOut,
    after: NumberOut,
    low_fraction: Option<f64>,
    high_fraction: Option<f64>,
}

#[derive(Serialize)]
struct Body<'a> {
    budget: &'a str,
    ok: bool,
    limits: Vec<LimitOut<'a>>,
    notes: &'a [String],
}

fn number(amount: Amount) -> NumberOut {
    amount.as_whole().map_or_else(|| NumberOut::Decimal(amount.get()), NumberOut::Whole)
}

fn limit(limit: &CheckedLimit) -> LimitOut<'_> {
    let finite = |value: f64| Some(value).filter(|value| value.is_finite());
    LimitOut {
        name: &limit.name,
        kind: if limit.baseline.is_some() { "regression" } else { "limit" },
        path: &limit.path,
        over: limit.over.as_deref(),
        line: limit.line,
        unit: limit.unit.code(),
        bound: limit.bound.code(),
        limit: number(limit.limit),
        value: limit.value.map(number),
        headroom_fraction: limit.headroom().and_then(finite),
        baseline: limit.baseline.as_deref(),
        change: limit.change.map(|(unit, before, after)| Change {
            unit: unit.code(),
            before: number(before),
            after: number(after),
            low_fraction: limit.interval.and_then(|(low, _)| finite(low)),
            high_fraction: limit.interval.and_then(|(_, high)| finite(high)),
        }),
        verdict: limit.verdict.code(),
        ok: limit.ok,
        reason: limit.reason.as_deref(),
    }
}

/// The document of `longpole check`, with at most `most` limits.
pub fn check<'a>(header: &Header<'a>, report: &'a CheckReport, most: Option<usize>) -> impl Serialize + use<'a> {
    let body = Body {
        budget: &report.budget,
        ok: report.is_ok(),
        limits: report.limits.iter().take(most.unwrap_or(usize::MAX)).map(limit).collect(),
        notes: &report.notes,
    };
    document("longpole.check/1", header, body)
}
