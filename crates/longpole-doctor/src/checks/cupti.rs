//! Is there a CUPTI library that knows the GPU and fits the driver? Every trace of CUDA work comes through one.

use super::{Finding, Fix, Status, good};
use crate::advice::{Support, needed};
use crate::facts::{Cupti, Facts, Version};

/// The Python package of the library for a major version of CUDA.
fn wheel(facts: &Facts) -> &'static str {
    match facts.driver.cuda.as_ref().map(Version::major) {
        Some(11) => "pip install nvidia-cuda-cupti-cu11",
        Some(12) => "pip install nvidia-cuda-cupti-cu12",
        _ => "pip install nvidia-cuda-cupti",
    }
}

fn named(facts: &Facts, cupti: &Cupti) -> String {
    let cuda = cupti.cuda.as_ref().map_or_else(|| "CUDA ?".to_owned(), |cuda| format!("CUDA {cuda}"));
    format!("{cuda} ({}, {})", cupti.origin, facts.shown(&cupti.path))
}

/// Whether a library is for this driver: later major versions are not.
fn suits_driver(facts: &Facts, cupti: &Cupti) -> bool {
    let majors = facts.driver.cuda.as_ref().zip(cupti.cuda.as_ref());
    facts.cuda.has_compatibility || majors.is_none_or(|(driver, cupti)| cupti.major() <= driver.major())
}

/// Whether a library knows the GPU. Where its minor version is not known, the benefit of the doubt is given within the major one.
fn knows(cupti: &Cupti, least: Option<&Version>) -> bool {
    match (cupti.cuda.as_ref(), least) {
        (Some(cuda), Some(least)) if *cuda == Version::of(&[cuda.major()]) => cuda.major() >= least.major(),
        (Some(cuda), Some(least)) => cuda.short() >= *least,
        _ => true,
    }
}

pub(super) fn check(facts: &Facts) -> Finding {
    let libraries = &facts.cuda.cupti;
    if libraries.is_empty() {
        if !facts.has_gpu() {
            return (Status::Note, "no library found; it is needed where the GPU is".to_owned(), None);
        }
        let fix = Fix::commands("Install it; torch from PyPI brings its own.", [wheel(facts)]);
        return (Status::Bad, "no library found".to_owned(), Some(fix));
    }
    let list = |chosen: &[&Cupti]| chosen.iter().take(4).map(|cupti| named(facts, cupti)).collect::<Vec<_>>().join("; ");
    let all: Vec<&Cupti> = libraries.iter().collect();
    if !facts.has_gpu() {
        return good(list(&all));
    }
    let compute = facts.newest_compute();
    let least = compute.and_then(needed).map(Support::cuda);
    let fitting: Vec<&Cupti> = all.iter().copied().filter(|cupti| suits_driver(facts, cupti) && knows(cupti, least.as_ref())).collect();
    if !fitting.is_empty() {
        return good(list(&fitting));
    }
    let driver = facts.driver.cuda.as_ref().filter(|_| !all.iter().all(|cupti| suits_driver(facts, cupti)));
    let driver = driver.map_or_else(String::new, |cuda| format!("; the driver's CUDA is {cuda}"));
    let asks = least.zip(compute).filter(|(least, _)| !all.iter().all(|cupti| knows(cupti, Some(least))));
    let asks = asks.map_or_else(String::new, |(least, compute)| format!("; compute capability {compute} needs CUDA {least}"));
    let text = if facts.cuda.torch.is_empty() {
        "Install one that fits:"
    } else {
        "torch uses the one that comes with it: install a build of torch for a CUDA that fits. For other programs:"
    };
    (Status::Bad, format!("none that fits: {}{driver}{asks}", list(&all)), Some(Fix::commands(text, [wheel(facts)])))
}
