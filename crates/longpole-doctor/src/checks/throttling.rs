//! Is anything holding the clocks down?
//!
//! The bits are NVML's `nvmlClocksEventReasons`.

use super::{Finding, Fix, Status, good, no_gpu, numbers};
use crate::facts::{Facts, Gpu};

/// A reason: its bit, its name, and whether it means that something is wrong.
const REASONS: [(u64, &str, bool); 8] = [
    (0x2, "application clocks are set", false),
    (0x4, "power limit", false),
    (0x8, "hardware slowdown", true),
    (0x10, "sync boost", false),
    (0x20, "thermal limit (software)", true),
    (0x40, "thermal limit (hardware)", true),
    (0x80, "power brake (supply)", true),
    (0x100, "display clocks", false),
];

/// What each reason asks for.
fn advice(bits: u64) -> Fix {
    if bits & 0x60 != 0 {
        return Fix::commands(
            "Too hot: look at fans and airflow, and measure when it is cool.",
            ["nvidia-smi -q -d TEMPERATURE,PERFORMANCE"],
        );
    }
    if bits & 0x88 != 0 {
        return Fix::commands(
            "The hardware holds the clocks down: look at the power supply and its cables.",
            ["nvidia-smi -q -d POWER,PERFORMANCE"],
        );
    }
    if bits & 0x2 != 0 {
        return Fix::commands(
            "Somebody set application clocks; to go back to the highest:",
            ["sudo nvidia-smi --reset-applications-clocks"],
        );
    }
    Fix::text("Under load this is normal; numbers from a cooler or less loaded machine will differ.")
}

pub(super) fn check(facts: &Facts) -> Finding {
    if !facts.has_gpu() {
        return no_gpu();
    }
    let known: Vec<u64> = facts.gpus.iter().filter_map(|gpu| gpu.reasons).collect();
    if known.is_empty() {
        return (Status::Unknown, "the GPUs do not say".to_owned(), None);
    }
    let all = known.iter().fold(0, |bits, more| bits | more);
    let mut parts = Vec::new();
    for (bit, name, _) in REASONS.iter().filter(|(bit, _, _)| all & bit != 0) {
        let held: Vec<&Gpu> = facts.gpus.iter().filter(|gpu| gpu.reasons.is_some_and(|bits| bits & bit != 0)).collect();
        parts.push(format!("{name} ({})", numbers(facts, &held)));
    }
    if parts.is_empty() {
        return good("nothing holds the clocks down");
    }
    let is_bad = REASONS.iter().any(|(bit, _, is_bad)| *is_bad && all & bit != 0);
    (if is_bad { Status::Bad } else { Status::Note }, parts.join(", "), Some(advice(all)))
}
