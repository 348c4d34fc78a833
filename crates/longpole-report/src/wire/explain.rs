//! `longpole.explain/1`: a document about the program, so it has no source, trust or scope.

use longpole_analysis::{Explanation, Threshold, Unit};
use serde::Serialize;

#[derive(Serialize)]
struct ThresholdOut {
    name: &'static str,
    value: f64,
    unit: &'static str,
    meaning: &'static str,
}

#[derive(Serialize)]
struct SmellOut<'a> {
    code: &'static str,
    meaning: &'static str,
    detection: &'a str,
    thresholds: Vec<ThresholdOut>,
    ceiling: &'static str,
    fix: &'static str,
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    smells: Vec<SmellOut<'a>>,
}

fn threshold(threshold: &Threshold) -> ThresholdOut {
    let unit = match threshold.unit {
        Unit::Share => "fraction",
        Unit::Count => "count",
        Unit::Time => "ns",
        Unit::Ratio => "ratio",
    };
    ThresholdOut { name: threshold.name, value: threshold.value, unit, meaning: threshold.meaning }
}

/// The document of `longpole explain`.
pub fn explain(explanations: &[Explanation]) -> impl Serialize + use<'_> {
    let smells = explanations.iter().map(|smell| SmellOut {
        code: smell.code,
        meaning: smell.meaning,
        detection: &smell.detection,
        thresholds: smell.thresholds.iter().map(threshold).collect(),
        ceiling: smell.ceiling,
        fix: smell.fix,
    });
    Document { schema: "longpole.explain/1", smells: smells.collect() }
}
