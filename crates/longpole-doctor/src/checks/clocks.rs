//! Which clocks do the GPUs have now? Numbers measured at other clocks cannot be compared.

use super::{Finding, Fix, Status, no_gpu, numbers};
use crate::facts::{Facts, Gpu};

fn clock(now: Option<u32>, most: Option<u32>) -> Option<String> {
    match (now, most) {
        (Some(now), Some(most)) => Some(format!("{now} of {most} MHz")),
        (Some(now), None) => Some(format!("{now} MHz")),
        _ => None,
    }
}

/// The least and the most of what some GPUs say: `76`, `76 to 112`.
fn span(values: impl Iterator<Item = Option<u32>>) -> Option<String> {
    let known: Vec<u32> = values.flatten().collect();
    let (least, most) = (known.iter().min()?, known.iter().max()?);
    Some(if least == most { least.to_string() } else { format!("{least} to {most}") })
}

/// The clocks of a GPU, by which GPUs are put together.
fn clocks(gpu: &Gpu) -> String {
    let parts = [
        clock(gpu.sm_mhz, gpu.max_sm_mhz).map(|clock| format!("SM {clock}")),
        clock(gpu.memory_mhz, gpu.max_memory_mhz).map(|clock| format!("memory {clock}")),
        gpu.pstate.clone(),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() { "clocks not said".to_owned() } else { parts.join(", ") }
}

fn described(facts: &Facts, same: &[&Gpu]) -> String {
    let power = span(same.iter().map(|gpu| gpu.power_w)).map(|now| match span(same.iter().map(|gpu| gpu.power_limit_w)) {
        Some(most) => format!(", {now} of {most} W"),
        None => format!(", {now} W"),
    });
    let heat = span(same.iter().map(|gpu| gpu.temperature_c)).map(|now| format!(", {now} °C"));
    let what = same.first().map_or_else(String::new, |gpu| clocks(gpu));
    format!("{}: {what}{}{}", numbers(facts, same), power.unwrap_or_default(), heat.unwrap_or_default())
}

/// Groups of GPUs that are described; more are left to `nvidia-smi`.
const MOST: usize = 8;

pub(super) fn check(facts: &Facts) -> Finding {
    if !facts.has_gpu() {
        return no_gpu();
    }
    let mut groups: Vec<Vec<&Gpu>> = Vec::new();
    for gpu in &facts.gpus {
        match groups.iter_mut().find(|group| clocks(group[0]) == clocks(gpu)) {
            Some(group) => group.push(gpu),
            None => groups.push(vec![gpu]),
        }
    }
    let mut lines: Vec<String> = groups.iter().take(MOST).map(|group| described(facts, group)).collect();
    if groups.len() > MOST {
        lines.push(format!("and {} more kinds", groups.len() - MOST));
    }
    let text = "ncu locks clocks to their base, so its times are longer than the program's own; with --clock-control none they are as found. For timings that repeat, lock them yourself:";
    // From inside of a container or of WSL that is not allowed.
    let fix = if facts.system.container.is_some() || facts.system.wsl.is_some() {
        Fix::text(text.replace("lock them yourself:", "lock them on the host (nvidia-smi --lock-gpu-clocks=MHZ)."))
    } else {
        Fix::commands(text, ["sudo nvidia-smi --lock-gpu-clocks=MHZ", "sudo nvidia-smi --reset-gpu-clocks"])
    };
    (Status::Note, lines.join("; "), Some(fix))
}
