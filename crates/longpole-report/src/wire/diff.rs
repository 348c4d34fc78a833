//! `longpole.diff/1`

use longpole_analysis::{Comparison, Diff, DiffRow, StepPair, SuspectShare};
use serde::Serialize;

use super::{Document, SourceOut, TrustOut, document, ns};
use crate::header::Header;

#[derive(Serialize)]
struct Before<'a> {
    source: SourceOut<'a>,
    trust: TrustOut<'a>,
}

#[derive(Serialize)]
struct Setting<'a> {
    what: &'static str,
    before: &'a str,
    after: &'a str,
    means: &'static str,
}

#[derive(Serialize)]
struct Pair<'a> {
    before: &'a str,
    after: &'a str,
    matched_by: &'static str,
    steps_before: usize,
    steps_after: usize,
    kernels_per_step_before: u64,
    kernels_per_step_after: u64,
    host_wait_fraction_before: f64,
    host_wait_fraction_after: f64,
    figure: &'static str,
    verdict: &'static str,
}

#[derive(Serialize)]
struct RowOut<'a> {
    pair: Option<usize>,
    kind: &'static str,
    key: &'a str,
    label: &'a str,
    per: &'static str,
    presence: &'static str,
    before_ns: Option<i64>,
    after_ns: Option<i64>,
    delta_ns: i64,
    calls_before: Option<f64>,
    calls_after: Option<f64>,
    ratio: Option<f64>,
    ratio_low: Option<f64>,
    ratio_high: Option<f64>,
    smallest_effect_fraction: Option<f64>,
    smallest_decrease_fraction: Option<f64>,
    verdict: Option<&'static str>,
}

#[derive(Serialize)]
struct Suspect {
    code: &'static str,
    before: Option<OfTrace>,
    after: Option<OfTrace>,
    judged_before: bool,
    judged_after: bool,
}

#[derive(Serialize)]
struct OfTrace {
    share_fraction: Option<f64>,
    ceiling_ns: Option<i64>,
    ceiling_per_step_ns: Option<i64>,
}

#[derive(Serialize)]
struct Body<'a> {
    before: Before<'a>,
    settings: Vec<Setting<'a>>,
    pairs: Vec<Pair<'a>>,
    only_before: &'a [String],
    only_after: &'a [String],
    rows: Vec<RowOut<'a>>,
    suspects: Vec<Suspect>,
    suspect_ceilings: &'static str,
}

fn pair(pair: &StepPair) -> Pair<'_> {
    Pair {
        before: &pair.names.0,
        after: &pair.names.1,
        matched_by: pair.matched_by.code(),
        steps_before: pair.steps.0,
        steps_after: pair.steps.1,
        kernels_per_step_before: pair.kernels.0,
        kernels_per_step_after: pair.kernels.1,
        host_wait_fraction_before: pair.host_share.0,
        host_wait_fraction_after: pair.host_share.1,
        figure: pair.step.code(),
        verdict: pair.verdict.code(),
    }
}

fn row(row: &DiffRow) -> RowOut<'_> {
    let comparison = row.comparison.as_ref();
    let interval = comparison.and_then(|comparison| comparison.interval);
    RowOut {
        pair: row.pair,
        kind: row.kind.code(),
        key: &row.key,
        label: &row.label,
        per: row.per.code(),
        presence: row.presence(),
        before_ns: ns(row.before_ns),
        after_ns: ns(row.after_ns),
        delta_ns: row.delta_ns.get(),
        calls_before: row.calls.0,
        calls_after: row.calls.1,
        ratio: comparison.and_then(|comparison| comparison.ratio),
        ratio_low: interval.map(|(low, _)| low),
        ratio_high: interval.map(|(_, high)| high),
        smallest_effect_fraction: comparison.and_then(|comparison| comparison.smallest_effect),
        smallest_decrease_fraction: comparison.and_then(Comparison::smallest_decrease),
        verdict: comparison.map(|comparison| comparison.verdict.code()),
    }
}

fn share(share: SuspectShare) -> OfTrace {
    OfTrace { share_fraction: share.share_fraction, ceiling_ns: ns(share.ceiling_ns), ceiling_per_step_ns: ns(share.ceiling_per_step_ns) }
}

/// The document of `longpole diff`. `source`, `trust` and `scope` are those of the second trace; those of the first are under `before`.
pub fn diff<'a>(before: &Header<'a>, after: &Header<'a>, diff: &'a Diff, limit: Option<usize>) -> impl Serialize + use<'a> {
    // The keys that every document has are made from its header in one place.
    let Document { source, trust, .. } = document("", before, ());
    let body = Body {
        before: Before { source, trust },
        settings: diff
            .settings
            .iter()
            .map(|change| Setting { what: change.what, before: &change.before, after: &change.after, means: change.means })
            .collect(),
        pairs: diff.pairs.iter().map(pair).collect(),
        only_before: &diff.only_before,
        only_after: &diff.only_after,
        rows: diff.rows.iter().take(limit.unwrap_or(usize::MAX)).map(row).collect(),
        suspects: diff
            .suspects
            .iter()
            .map(|change| Suspect {
                code: change.code,
                before: change.before.map(share),
                after: change.after.map(share),
                judged_before: change.judged.0,
                judged_after: change.judged.1,
            })
            .collect(),
        suspect_ceilings: diff.ceilings.code(),
    };
    document("longpole.diff/1", after, body)
}
