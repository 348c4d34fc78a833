//! Which clocks do the GPUs have now? Numbers measured at other clocks cannot be compared.

use super::{Finding, Fix, Status, no_gpu};
use crate::facts::{Facts, Gpu};

fn clock(now: Option<u32>, most: Option<u32>) -> Option<String> {
    match (now, most) {
        (Some(now), Some(most)) => Some(format!("{now} of {most} MHz")),
        (Some(now), None) => Some(format!("{now} MHz")),
        _ => None,
    }
}

fn described(gpu: &Gpu) -> String {
    let parts = [
        clock(gpu.sm_mhz, gpu.max_sm_mhz).map(|clock| format!("SM {clock}")),
        clock(gpu.memory_mhz, gpu.max_memory_mhz).map(|clock| format!("memory {clock}")),
        gpu.pstate.clone(),
        gpu.power_w.map(|now| gpu.power_limit_w.map_or_else(|| format!("{now} W"), |most| format!("{now} of {most} W"))),
        gpu.temperature_c.map(|now| format!("{now} °C")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    format!("GPU {}: {}", gpu.index, if parts.is_empty() { "not said".to_owned() } else { parts.join(", ") })
}

/// GPUs described one by one; more are left to `nvidia-smi`.
const MOST: usize = 8;

pub(super) fn check(facts: &Facts) -> Finding {
    if !facts.has_gpu() {
        return no_gpu();
    }
    let mut lines: Vec<String> = facts.gpus.iter().take(MOST).map(described).collect();
    if facts.gpus.len() > MOST {
        lines.push(format!("and {} more", facts.gpus.len() - MOST));
    }
    let text = "ncu locks clocks to their base, so its times are longer than the program's own; with --clock-control none they are as found. For timings that repeat, lock them yourself:";
    let fix = Fix::commands(text, ["sudo nvidia-smi --lock-gpu-clocks=MHZ", "sudo nvidia-smi --reset-gpu-clocks"]);
    (Status::Note, lines.join("; "), Some(fix))
}
