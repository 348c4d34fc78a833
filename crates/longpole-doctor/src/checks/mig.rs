//! Are GPUs divided into instances (MIG)? Then some counters belong to nobody alone, and clocks cannot be locked.

use super::{Finding, Fix, Status, good, no_gpu, numbers};
use crate::facts::{Facts, Gpu};

pub(super) fn check(facts: &Facts) -> Finding {
    let divided: Vec<&Gpu> = facts.gpus.iter().filter(|gpu| gpu.mig == Some(true)).collect();
    if !facts.has_gpu() {
        return no_gpu();
    }
    if divided.is_empty() {
        return good("no GPU is divided");
    }
    let named = numbers(facts, &divided);
    if facts.mig_instances == Some(0) {
        let fix = "Make an instance, or switch MIG off (which resets the GPU).";
        let fix = Fix::commands(fix, ["sudo nvidia-smi mig -lgip", "sudo nvidia-smi mig -cgi PROFILE -C", "sudo nvidia-smi -mig 0"]);
        return (Status::Bad, format!("{named}: MIG is on without any instance, so CUDA finds no device"), Some(fix));
    }
    let count = facts.mig_instances.map_or_else(String::new, |count| format!(", {count} instances"));
    let fix = "Profile an instance that is alone in its GPU instance: one that shares it lacks the counters of shared units. Clocks cannot be locked from inside of an instance.";
    let fix = Fix::commands(fix, ["ncu --clock-control none PROGRAM"]);
    (Status::Note, format!("{named}: MIG is on{count}"), Some(fix))
}
