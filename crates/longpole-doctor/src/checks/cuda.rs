//! Can the driver run what the toolkits and torch were built for?
//!
//! A driver runs every CUDA up to its own, and every later minor version of the same major one, with limits (no code that the driver has to
//! compile). A later major version needs a newer driver, or NVIDIA's forward-compatibility libraries on data-centre GPUs.

use super::{Finding, Fix, Status, good};
use crate::advice::{Support, needed};
use crate::facts::{Facts, Version};

/// The oldest driver branch that runs a major version.
fn least_driver(major: u32) -> Option<u32> {
    match major {
        11 => Some(450),
        12 => Some(525),
        13 => Some(580),
        _ => None,
    }
}

/// Everything that asks for a CUDA: what it is, and which.
fn needs(facts: &Facts) -> Vec<(String, Version)> {
    let torch = facts.cuda.torch.iter().filter_map(|torch| Some((format!("torch {}", torch.version), torch.cuda.clone()?)));
    let toolkits =
        facts.cuda.toolkits.iter().filter_map(|kit| Some((format!("toolkit {}", kit.version.as_ref()?), kit.version.clone()?.short())));
    torch.chain(toolkits).collect()
}

pub(super) fn check(facts: &Facts) -> Finding {
    let needs = needs(facts);
    let without: Vec<String> = facts
        .cuda
        .torch
        .iter()
        .filter(|torch| torch.cuda.is_none())
        .map(|torch| format!("torch {} (without CUDA)", torch.version))
        .collect();
    let mut names: Vec<String> = needs.iter().map(|(name, _)| name.clone()).chain(without.iter().cloned()).collect();
    names.dedup();
    names.truncate(6);
    let list = if names.is_empty() { "no toolkit and no torch found".to_owned() } else { names.join(", ") };
    let Some(driver) = facts.driver.cuda.as_ref().filter(|_| facts.has_gpu()) else {
        return if names.is_empty() { (Status::Note, list, None) } else { good(list) };
    };
    if let Some((name, cuda)) = needs.iter().find(|(_, cuda)| cuda.major() > driver.major()) {
        let found = format!("{name} needs CUDA {}, the driver runs up to {driver}", cuda.short());
        if facts.cuda.has_compatibility {
            let fix = "The forward-compatibility libraries in /usr/local/cuda/compat make up for it on data-centre GPUs.";
            return (Status::Note, found, Some(Fix::text(fix)));
        }
        let newer = least_driver(cuda.major()).map_or_else(|| "a newer driver".to_owned(), |least| format!("driver {least} or newer"));
        let fix = format!("Install {newer}, or a build for CUDA {}.x.", driver.major());
        return (Status::Bad, found, Some(Fix::text(fix)));
    }
    let least = facts.newest_compute().and_then(needed).map(Support::cuda);
    let blind = facts.cuda.torch.first().and_then(|torch| Some((torch, torch.cuda.as_ref()?, least?)));
    if let Some((torch, cuda, least)) = blind.filter(|(_, cuda, least)| cuda.short() < *least) {
        let compute = facts.newest_compute().map_or_else(String::new, ToString::to_string);
        let found =
            format!("torch {} is built with CUDA {}, which does not know compute capability {compute}", torch.version, cuda.short());
        return (Status::Bad, found, Some(Fix::text(format!("Install a build of torch for CUDA {least} or newer."))));
    }
    if !without.is_empty() && !facts.cuda.torch.iter().any(|torch| torch.cuda.is_some()) {
        let fix = "Install a build of torch for CUDA: https://pytorch.org/get-started/locally has the command.";
        return (Status::Bad, format!("{list}; the driver runs CUDA up to {driver}"), Some(Fix::text(fix)));
    }
    if let Some((name, cuda)) = needs.iter().find(|(_, cuda)| *cuda > *driver) {
        let found = format!("{name} is newer than the driver's CUDA {driver}");
        let fix = format!(
            "It works within CUDA {}.x, except code that the driver has to compile (PTX): update the driver if that fails.",
            cuda.major()
        );
        return (Status::Note, found, Some(Fix::text(fix)));
    }
    let status = if names.is_empty() { Status::Note } else { Status::Good };
    (status, format!("{list}; the driver runs CUDA up to {driver}"), None)
}
