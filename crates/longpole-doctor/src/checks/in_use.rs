//! Does something else run on a GPU now?

use super::{Finding, Fix, Status, good, no_gpu, numbers};
use crate::facts::{Facts, Gpu};

/// Below this a desktop or a monitor is enough to explain it.
const LEAST_PCT: u32 = 10;

pub(super) fn check(facts: &Facts) -> Finding {
    if !facts.has_gpu() {
        return no_gpu();
    }
    let busy: Vec<&Gpu> = facts.gpus.iter().filter(|gpu| gpu.utilization_pct.is_some_and(|pct| pct >= LEAST_PCT)).collect();
    if !busy.is_empty() {
        let most = busy.iter().filter_map(|gpu| gpu.utilization_pct).max().unwrap_or(0);
        let fix = Fix::commands("What is measured now is not the program's alone; see who runs there:", ["nvidia-smi"]);
        return (Status::Note, format!("work runs on {} (up to {most} % of the time)", numbers(facts, &busy)), Some(fix));
    }
    if facts.gpus.iter().all(|gpu| gpu.utilization_pct.is_none()) {
        return (Status::Unknown, "the GPUs do not say".to_owned(), None);
    }
    good("nothing runs on the GPUs")
}
