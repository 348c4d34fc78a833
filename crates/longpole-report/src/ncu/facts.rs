//! The figures of one kernel in words: a label and a sentence each, the same for text and Markdown.

use longpole_ncu::summary::{KernelSummary, Launch, Speed};
use longpole_trace::Ns;

use super::pct;
use crate::units::{bytes, clock, count, decimal, rate, time};

/// Said in place of a verdict.
pub(super) const NO_VERDICT: &str = "no verdict: its figures were not collected";

/// Parts that say something, with a dot between; `None` when none does.
fn joined(parts: impl IntoIterator<Item = Option<String>>) -> Option<String> {
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(" · "))
}

pub(super) fn size(value: u64) -> String {
    bytes(i64::try_from(value).unwrap_or(i64::MAX))
}

pub(super) fn nanoseconds(value: u64) -> String {
    time(Ns(i64::try_from(value).unwrap_or(i64::MAX)))
}

/// `152 × 1 × 1`, or the one number if the others are 1.
pub(super) fn dimensions([x, y, z]: [u64; 3]) -> String {
    match (y, z) {
        (1, 1) => count(x),
        (_, 1) => format!("{} × {}", count(x), count(y)),
        _ => format!("{} × {} × {}", count(x), count(y), count(z)),
    }
}

/// A small number with enough digits to tell it from none: `0.07`, `0.0009`.
fn few(value: f64) -> String {
    if value > 0.0 && value < 0.01 {
        let decimals = (1.0 - value.log10().floor()).min(12.0) as usize;
        format!("{value:.decimals$}")
    } else {
        decimal(value)
    }
}

/// The lines of a kernel, in the order of reading. What was not collected has no line: [`missing`] says so.
pub(super) fn facts(summary: &KernelSummary) -> Vec<(&'static str, String)> {
    let verdict =
        summary.verdict.as_ref().map_or_else(|| NO_VERDICT.to_owned(), |verdict| format!("{}: {}", verdict.kind.name(), verdict.because));
    let (launch, speed) = (&summary.launch, &summary.speed);
    let lines = [
        ("verdict", Some(verdict)),
        ("time", time_line(speed)),
        ("launch", launch_line(launch)),
        ("occupancy", occupancy_line(launch)),
        ("DRAM", dram_line(speed)),
        ("memory", memory_line(speed)),
        ("SM", sm_line(speed)),
        ("schedulers", scheduler_line(speed)),
    ];
    lines.into_iter().filter_map(|(label, text)| Some((label, text?))).collect()
}

fn time_line(speed: &Speed) -> Option<String> {
    let duration = speed.duration_ns.map(nanoseconds);
    duration.as_ref()?;
    joined([
        duration,
        speed.sm_clock_hz.map(|hertz| format!("SM clock {}", clock(hertz))),
        speed.dram_clock_hz.map(|hertz| format!("memory clock {}", clock(hertz))),
    ])
}

fn launch_line(launch: &Launch) -> Option<String> {
    let shape = launch.grid.zip(launch.block).map(|(grid, block)| format!("grid {} of block {}", dimensions(grid), dimensions(block)));
    let shared = launch.shared_bytes_per_block.map(|total| {
        let parts =
            [("static", launch.shared_static_bytes), ("dynamic", launch.shared_dynamic_bytes), ("driver", launch.shared_driver_bytes)];
        let parts: Vec<String> =
            parts.iter().filter_map(|(what, part)| part.filter(|&part| part > 0).map(|part| format!("{} {what}", size(part)))).collect();
        let whole = format!("{} shared a block", size(total));
        if parts.is_empty() { whole } else { format!("{whole} ({})", parts.join(", ")) }
    });
    let waves = launch.waves_per_sm.map(|waves| {
        let sms = launch.sm_count.map_or_else(String::new, |sms| format!(" on {} SMs", count(sms)));
        format!("{} waves{sms}", few(waves))
    });
    joined([
        shape,
        launch.cluster_size.map(|blocks| format!("clusters of {}", count(blocks))),
        launch.registers_per_thread.map(|registers| format!("{} registers a thread", count(registers))),
        shared,
        waves,
    ])
}

fn occupancy_line(launch: &Launch) -> Option<String> {
    let limit = (!launch.limiters.is_empty()).then(|| {
        let blocks = launch.limits.first().map_or_else(String::new, |limit| {
            format!(" ({} block{} an SM)", count(limit.blocks_per_sm), if limit.blocks_per_sm == 1 { "" } else { "s" })
        });
        format!("limited by {}{blocks}", in_words(&launch.limiters))
    });
    joined([
        launch.theoretical_occupancy_pct.map(|value| format!("{} theoretical", pct(value))),
        launch.achieved_occupancy_pct.map(|value| format!("{} achieved", pct(value))),
        limit,
    ])
}

/// `a`, `a and b`, `a, b and c`.
fn in_words(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

fn dram_line(speed: &Speed) -> Option<String> {
    let reached = speed.dram_bytes_per_s.map(|value| {
        let peak = speed.dram_peak_bytes_per_s.map_or_else(String::new, |peak| format!(" of {}", rate(peak)));
        format!("{}{peak}", rate(value))
    });
    joined([
        speed.dram_pct.map(|value| format!("{} of peak", pct(value))),
        reached,
        speed.dram_read_bytes.map(|value| format!("{} read", size(value))),
        speed.dram_write_bytes.map(|value| format!("{} written", size(value))),
    ])
}

fn memory_line(speed: &Speed) -> Option<String> {
    let cache = |name: &str, peak: Option<f64>, hit: Option<f64>| {
        let parts: Vec<String> = [peak.map(|value| format!("{} of peak", pct(value))), hit.map(|value| format!("hit {}", pct(value)))]
            .into_iter()
            .flatten()
            .collect();
        (!parts.is_empty()).then(|| format!("{name} {}", parts.join(", ")))
    };
    joined([
        speed.memory_pct.map(|value| format!("{} of peak", pct(value))),
        cache("L1", speed.l1_pct, speed.l1_hit_pct),
        cache("L2", speed.l2_pct, speed.l2_hit_pct),
    ])
}

fn sm_line(speed: &Speed) -> Option<String> {
    joined([
        speed.sm_pct.map(|value| format!("{} of peak", pct(value))),
        speed.ipc.map(|ipc| format!("{} instructions a cycle", decimal(ipc))),
        speed.busiest_pipe.map(|(pipe, value)| format!("busiest pipe {pipe} {}", pct(value))),
        speed.tensor_pct.map(|value| format!("tensor {}", pct(value))),
    ])
}

fn scheduler_line(speed: &Speed) -> Option<String> {
    joined([
        speed.issue_active_fraction.map(|fraction| format!("issue in {} of cycles", pct(fraction * 100.0))),
        speed.active_warps.map(|warps| format!("{} warps active", decimal(warps))),
        speed.eligible_warps.map(|warps| format!("{} ready", decimal(warps))),
    ])
}

/// What was not collected, and what to add for it: one line a section.
pub(super) fn missing(summary: &KernelSummary) -> Vec<String> {
    let mut lines: Vec<(&str, Vec<&str>)> = Vec::new();
    for missing in &summary.missing {
        match lines.iter_mut().find(|(section, _)| *section == missing.section) {
            Some((_, what)) => what.push(missing.what),
            None => lines.push((missing.section, vec![missing.what])),
        }
    }
    let mut lines: Vec<String> =
        lines.into_iter().map(|(section, what)| format!("{}: add `--section {section}`", what.join(", "))).collect();
    if !summary.not_on_page.is_empty() {
        lines.push(format!("{}: this CSV does not hold them: open the .ncu-rep", summary.not_on_page.join(", ")));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_collected_has_no_line() {
        assert_eq!((launch_line(&Launch::default()), dram_line(&Speed::default()), time_line(&Speed::default())), (None, None, None));
        let speed = Speed { sm_clock_hz: Some(1e9), ..Speed::default() };
        assert_eq!(time_line(&speed), None, "a clock is no time");
    }

    #[test]
    fn sizes_of_one_are_not_written() {
        assert_eq!(dimensions([152, 1, 1]), "152");
        assert_eq!(dimensions([1_024, 2, 1]), "1,024 × 2");
        assert_eq!(dimensions([1, 1, 3]), "1 × 1 × 3");
    }

    #[test]
    fn small_numbers_keep_two_digits() {
        assert_eq!([2.303, 0.072, 0.000_947, 0.0].map(few), ["2.30", "0.07", "0.00095", "0"]);
    }

    #[test]
    fn ties_are_all_named() {
        assert_eq!(in_words(&["warps"]), "warps");
        assert_eq!(in_words(&["registers", "shared memory", "warps"]), "registers, shared memory and warps");
    }
}
