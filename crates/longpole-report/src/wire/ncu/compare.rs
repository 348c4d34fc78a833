//! `longpole.ncu_compare/1`

use longpole_ncu::compare::{Figure, MatchedBy, Pair};
use longpole_ncu::summary::VerdictKind;
use serde::Serialize;

use crate::ncu::{ComparisonPage, Verdicts};

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    source: super::SourceOut<'a>,
    trust: super::super::TrustOut<'a>,
    before: Before<'a>,
    cautions: Vec<CautionOut<'a>>,
    names: Vec<NameOut<'a>>,
    pairs: Vec<PairOut<'a>>,
    only_before: Vec<Unmatched<'a>>,
    only_after: Vec<Unmatched<'a>>,
}

#[derive(Serialize)]
struct Before<'a> {
    source: super::SourceOut<'a>,
    trust: super::super::TrustOut<'a>,
}

#[derive(Serialize)]
struct CautionOut<'a> {
    about: &'static str,
    text: &'a str,
}

#[derive(Serialize)]
struct NameOut<'a> {
    name: &'a str,
    launches_before: u64,
    launches_after: u64,
    before_ns: Option<u64>,
    after_ns: Option<u64>,
    delta_ns: Option<i64>,
    ratio: Option<f64>,
    without_duration_before: u64,
    without_duration_after: u64,
}

#[derive(Serialize)]
struct PairOut<'a> {
    kind: &'static str,
    before_id: usize,
    after_id: usize,
    name_before: &'a str,
    name_after: &'a str,
    short_name_before: &'a str,
    short_name_after: &'a str,
    matched_by: &'static str,
    verdict_before: Option<&'static str>,
    verdict_after: Option<&'static str>,
    figures: Vec<FigureOut>,
    stalls: Vec<FigureOut>,
    rules_gone: Vec<RuleOut<'a>>,
    rules_new: Vec<RuleOut<'a>>,
}

#[derive(Serialize)]
struct FigureOut {
    what: &'static str,
    unit: &'static str,
    before: Option<f64>,
    after: Option<f64>,
    ratio: Option<f64>,
}

#[derive(Serialize)]
struct RuleOut<'a> {
    name: &'a str,
    text: &'a str,
}

#[derive(Serialize)]
struct Unmatched<'a> {
    id: usize,
    name: &'a str,
}

const fn matched_by(by: MatchedBy) -> &'static str {
    match by {
        MatchedBy::Name => "name",
        MatchedBy::Function => "function",
        MatchedBy::OrderAndShape => "order_and_shape",
        MatchedBy::Order => "order",
    }
}

fn figures(figures: &[Figure]) -> Vec<FigureOut> {
    let finite = |value: Option<f64>| value.filter(|value| value.is_finite());
    let out = |figure: &Figure| FigureOut {
        what: figure.what,
        unit: figure.unit,
        before: finite(figure.before),
        after: finite(figure.after),
        ratio: finite(figure.ratio()),
    };
    figures.iter().map(out).collect()
}

fn rules(rules: &[(String, String)]) -> Vec<RuleOut<'_>> {
    rules.iter().map(|(name, text)| RuleOut { name, text }).collect()
}

fn unmatched(kernels: &[(usize, String)]) -> Vec<Unmatched<'_>> {
    kernels.iter().map(|(id, name)| Unmatched { id: *id, name }).collect()
}

fn pair<'a>(((pair, (before, after)), verdicts): ((&'a Pair, &'a (String, String)), &Verdicts)) -> PairOut<'a> {
    PairOut {
        kind: pair.kind.name(),
        before_id: pair.before,
        after_id: pair.after,
        name_before: &pair.name_before,
        name_after: &pair.name_after,
        short_name_before: before,
        short_name_after: after,
        matched_by: matched_by(pair.matched_by),
        verdict_before: verdicts.0.map(VerdictKind::name),
        verdict_after: verdicts.1.map(VerdictKind::name),
        figures: figures(&pair.figures),
        stalls: figures(&pair.stalls),
        rules_gone: rules(&pair.rules_gone),
        rules_new: rules(&pair.rules_new),
    }
}

/// The document of `longpole ncu --compare`.
pub fn ncu_compare<'a>(page: &ComparisonPage<'a>) -> impl Serialize + use<'a> {
    let ComparisonPage { before, after, comparison, names, verdicts, .. } = page;
    Document {
        schema: "longpole.ncu_compare/1",
        source: super::source(after),
        trust: super::trust(after),
        before: Before { source: super::source(before), trust: super::trust(before) },
        cautions: comparison.cautions.iter().map(|caution| CautionOut { about: caution.about, text: &caution.text }).collect(),
        names: comparison
            .totals
            .iter()
            .map(|total| NameOut {
                name: &total.name,
                launches_before: total.launches_before,
                launches_after: total.launches_after,
                before_ns: total.before_ns,
                after_ns: total.after_ns,
                delta_ns: total.before_ns.zip(total.after_ns).map(|(before, after)| {
                    i64::try_from(i128::from(after) - i128::from(before)).unwrap_or(if after > before { i64::MAX } else { i64::MIN })
                }),
                ratio: total.ratio(),
                without_duration_before: total.without_duration_before,
                without_duration_after: total.without_duration_after,
            })
            .collect(),
        pairs: comparison.pairs.iter().zip(*names).zip(*verdicts).map(pair).collect(),
        only_before: unmatched(&comparison.only_before),
        only_after: unmatched(&comparison.only_after),
    }
}
