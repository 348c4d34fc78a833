//! Does DCGM hold the counters? The hardware serves one reader at a time.

use super::{Finding, Fix, Status, good, no_gpu};
use crate::facts::Facts;

pub(super) fn check(facts: &Facts) -> Finding {
    let running = &facts.session.monitors;
    if running.is_empty() {
        if !facts.has_gpu() {
            return no_gpu();
        }
        // The processes of the host are not visible in a container.
        return match facts.system.container {
            Some(_) => (Status::Note, "DCGM does not run in this container; whether it does on the host is not visible".to_owned(), None),
            None => good("DCGM does not run"),
        };
    }
    let text = "DCGM may be reading profiling counters, and the GPU serves one reader at a time: pause it while ncu runs or nsys samples GPU metrics.";
    let fix = Fix::commands(text, ["dcgmi profile --pause", "dcgmi profile --resume"]);
    (
        Status::Unknown,
        format!("{}: {}", if running.len() == 1 { "a program of DCGM runs" } else { "programs of DCGM run" }, running.join(", ")),
        Some(fix),
    )
}
