//! Does the driver stay loaded while nothing uses the GPU? If not, the first CUDA call of each program pays for starting it.

use super::{Finding, Fix, Status, good, no_gpu, numbers};
use crate::facts::{Facts, Gpu};

pub(super) fn check(facts: &Facts) -> Finding {
    if !facts.has_gpu() {
        return no_gpu();
    }
    let off: Vec<&Gpu> = facts.gpus.iter().filter(|gpu| gpu.persistence == Some(false)).collect();
    if !off.is_empty() {
        let text = "Without it the driver starts anew for the first program, which takes seconds and shows in cold starts.";
        let command = "sudo nvidia-smi --persistence-mode=1";
        let fix = if facts.system.container.is_some() {
            Fix::commands(format!("{text} On the host:"), [command])
        } else {
            Fix::commands(text, [command])
        };
        return (Status::Note, format!("off on {}", numbers(facts, &off)), Some(fix));
    }
    if facts.gpus.iter().any(|gpu| gpu.persistence == Some(true)) {
        good("on")
    } else {
        (Status::Unknown, "the GPUs do not say".to_owned(), None)
    }
}
