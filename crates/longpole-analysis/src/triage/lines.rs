//! The first four lines of the report.

use longpole_trace::{Ns, Trace};

use super::evidence::Evidence;
use super::rules::is_users;
use super::text::{clip, count, percent, percent_of, time};
use super::{Hardware, HardwareDevice, Tables};
use crate::families::Family;
use crate::ops::{OpRow, OpRowKind};
use crate::ranges::RangeRow;

/// What ran, as far as ranges, shapes and launches say.
pub(super) fn workload(tables: &Tables<'_, '_>, evidence: &Evidence) -> String {
    let trace = tables.index.trace();
    let mut parts = Vec::new();
    parts.push(ranges(tables).unwrap_or_else(|| "not named in the trace (no ranges)".to_owned()));
    parts.extend(tokens(tables).or_else(|| matmul_type(tables)));
    if let Some(row) = tables.ops.rows.iter().find(|row| row.name.starts_with("Torch-Compiled Region")) {
        parts.push(format!("torch.compile ({} region calls)", count(row.calls)));
    }
    if tables.ops.rows.iter().any(|row| row.name.starts_with("autograd::engine::evaluate_function")) {
        parts.push("with backward pass".to_owned());
    }
    let replays = &evidence.replays;
    if replays.launches > 0 {
        parts.push(format!("{} graph replays ({} device activities)", count(replays.launches), count(replays.activities)));
    }
    parts.extend(rank_text(trace));
    parts.join("; ")
}

/// Range names with counts, without those that only wrap others.
fn ranges(tables: &Tables<'_, '_>) -> Option<String> {
    const SHOWN: usize = 4;
    let rows = tables.ranges;
    let own: Vec<&RangeRow> = rows.iter().filter(|row| is_users(&row.name) && !wraps(row, rows)).collect();
    let shown: Vec<String> = own.iter().take(SHOWN).map(|row| format!("{} x{}", clip(&row.name), count(row.calls))).collect();
    let more = own.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!(" and {more} more ranges") } else { String::new() };
    (!shown.is_empty()).then(|| format!("{}{more}", shown.join(", ")))
}

/// A range that is called once and spends nearly all its time in one repeated range inside is a loop around steps.
fn wraps(row: &RangeRow, rows: &[RangeRow]) -> bool {
    let is_inside = |inner: &&RangeRow| inner.parents.last() == Some(&row.name) && inner.parents[..inner.parents.len() - 1] == row.parents;
    row.calls == 1 && rows.iter().filter(is_inside).any(|inner| inner.calls > 1 && inner.cpu_ns.get() >= row.cpu_ns.get() / 10 * 9)
}

/// Batch, tokens and type from the inputs of `aten::embedding`: the weights, then the token ids.
fn tokens(tables: &Tables<'_, '_>) -> Option<String> {
    let trace = tables.index.trace();
    let ops = &trace.host_ops;
    let embedding = trace.strings.find("aten::embedding")?;
    let mut seen: Vec<(Vec<u64>, u64)> = Vec::new();
    let mut weights = None;
    for row in
        (0..ops.len()).filter(|&row| ops.name[row] == embedding && tables.scope.includes_host(trace, ops.thread[row], ops.start[row]))
    {
        let shapes = trace.strings.get(ops.shapes(row)?);
        let mut lists = shapes.trim_start_matches('[').split(']').map(numbers);
        let (table, ids) = (lists.next()?, lists.next()?);
        if table.len() != 2 || ids.is_empty() {
            return None;
        }
        match seen.iter_mut().find(|(known, _)| *known == ids) {
            Some((_, calls)) => *calls += 1,
            None => seen.push((ids, 1)),
        }
        weights.get_or_insert((table, ops.types(row).and_then(|types| first_type(trace.strings.get(types)))));
    }
    let (_, element) = weights?;
    let said: Vec<String> = seen.iter().take(3).map(|(ids, calls)| token_text(ids, *calls)).collect();
    let more = if seen.len() > 3 { format!(" and {} more shapes", seen.len() - 3) } else { String::new() };
    let element = element.map_or_else(String::new, |element| format!("; {element} weights"));
    Some(format!("{}{more}{element}", said.join(", ")))
}

fn token_text(ids: &[u64], calls: u64) -> String {
    let times = if calls > 1 { format!(" x{}", count(calls)) } else { String::new() };
    match *ids {
        [batch, 1] => format!("batch {}, 1 token a step{times}", count(batch)),
        [batch, length] => format!("batch {}, {} tokens{times}", count(batch), count(length)),
        _ => format!("{} tokens in one batch{times}", count(ids.iter().product())),
    }
}

/// The numbers in the text of one shape.
fn numbers(text: &str) -> Vec<u64> {
    text.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse().ok()).collect()
}

/// The first of the input types, in short.
fn first_type(types: &str) -> Option<&str> {
    let first =
        types.trim_start_matches('[').split(',').next()?.trim_matches(|c: char| c == '"' || c == '\'' || c == ']' || c.is_whitespace());
    match first {
        "" | "Scalar" | "ScalarList" | "TensorList" => None,
        "c10::BFloat16" => Some("bf16"),
        "c10::Half" => Some("f16"),
        "float" => Some("f32"),
        "double" => Some("f64"),
        "c10::Float8_e4m3fn" => Some("f8e4m3"),
        other => Some(other),
    }
}

/// The element type of most matrix products and convolutions.
fn matmul_type(tables: &Tables<'_, '_>) -> Option<String> {
    const PRODUCTS: &[&str] = &["aten::mm", "aten::addmm", "aten::bmm", "aten::_scaled_mm", "aten::convolution"];
    let trace = tables.index.trace();
    let ops = &trace.host_ops;
    let products: Vec<_> = PRODUCTS.iter().filter_map(|name| trace.strings.find(name)).collect();
    let mut seen: Vec<(&str, u64)> = Vec::new();
    for row in (0..ops.len()).filter(|&row| products.contains(&ops.name[row])) {
        if let Some(element) = ops.types(row).and_then(|types| first_type(trace.strings.get(types)))
            && tables.scope.includes_host(trace, ops.thread[row], ops.start[row])
        {
            match seen.iter_mut().find(|(known, _)| *known == element) {
                Some((_, calls)) => *calls += 1,
                None => seen.push((element, 1)),
            }
        }
    }
    seen.into_iter().max_by_key(|&(_, calls)| calls).map(|(element, _)| format!("{element} matrix products"))
}

fn rank_text(trace: &Trace) -> Option<String> {
    if trace.ranks.len() > 1 {
        return Some(format!("{} ranks", trace.ranks.len()));
    }
    let info = trace.ranks.first()?;
    let size = info.world_size.filter(|&size| size > 1)?;
    let backend = info.backend.as_ref().map_or_else(String::new, |backend| format!(" ({})", clip(backend)));
    Some(format!("rank {} of {size}{backend}", info.rank))
}

/// Which devices, and the software versions.
pub(super) fn hardware(hardware: &Hardware) -> String {
    let active: Vec<&HardwareDevice> = hardware.devices.iter().filter(|device| device.active).collect();
    let idle = hardware.devices.len() - active.len();
    let shown: Vec<&HardwareDevice> = if active.is_empty() { hardware.devices.iter().collect() } else { active.clone() };
    let mut groups: Vec<(String, usize)> = Vec::new();
    for device in &shown {
        let text = device_text(device, hardware);
        match groups.iter_mut().find(|(known, _)| *known == text) {
            Some((_, number)) => *number += 1,
            None => groups.push((text, 1)),
        }
    }
    let mut parts: Vec<String> =
        groups.into_iter().map(|(text, number)| if number > 1 { format!("{number} x {text}") } else { text }).collect();
    if parts.is_empty() {
        parts.push("device not recorded".to_owned());
    } else if active.is_empty() {
        parts.push("none with activity".to_owned());
    } else if idle > 0 {
        parts.push(format!("{idle} more without activity"));
    }
    match (&hardware.cuda, &hardware.driver) {
        (Some(runtime), Some(driver)) => parts.push(format!("runtime {runtime}, driver {driver}")),
        (Some(runtime), None) => parts.push(format!("runtime {runtime}")),
        (None, Some(driver)) => parts.push(format!("driver {driver}")),
        (None, None) => parts.push("versions not recorded".to_owned()),
    }
    parts.join("; ")
}

fn device_text(device: &HardwareDevice, hardware: &Hardware) -> String {
    let mut facts = Vec::new();
    facts.extend(device.sm_count.map(|count| format!("{count} SMs")));
    facts.extend(device.memory_bytes.map(|bytes| format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30))));
    let facts = if facts.is_empty() { String::new() } else { format!(" ({})", facts.join(", ")) };
    match &device.name {
        Some(name) => format!("{}{facts}", clip(name)),
        None if facts.is_empty() => {
            // Traces of one process often describe the devices as the process numbers them, and use them as the system does.
            let described = hardware.devices.iter().find_map(|other| other.name.as_ref());
            let described = described.map_or_else(String::new, |name| format!(", {} described", clip(name)));
            format!("device {} not described{described}", device.id)
        }
        None => format!("unnamed device{facts}"),
    }
}

/// The operators that own most device time, and how busy the device was.
pub(super) fn top_cuda_time(tables: &Tables<'_, '_>) -> String {
    const SHOWN: usize = 3;
    let totals = tables.totals;
    let (Some(busy), Some(total)) = (totals.gpu_busy_ns, tables.ops.self_cuda_total_ns) else {
        return "no device activity recorded".to_owned();
    };
    let devices = if totals.devices.len() > 1 { format!(" x {} devices", totals.devices.len()) } else { String::new() };
    let head = match totals.gpu_busy_fraction {
        Some(fraction) => {
            format!("GPU busy {} of wall ({} of {}{devices})", percent_of(fraction), time(busy), time(totals.wall_ns))
        }
        None => format!("GPU busy {}", time(busy)),
    };
    let mut rows: Vec<(&OpRow, Ns)> =
        tables.ops.rows.iter().filter_map(|row| Some((row, row.self_cuda_ns?))).filter(|&(_, time)| time > Ns::ZERO).collect();
    rows.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.name.cmp(&b.0.name)));
    let top: Vec<String> = rows
        .iter()
        .take(SHOWN)
        .map(|&(row, own)| {
            let family = main_family(tables, row).map_or_else(String::new, |family| format!(", {}", family.name()));
            let share = percent(own, total).unwrap_or_default();
            let unit = if row.kind == OpRowKind::NoOperator { "launches" } else { "calls" };
            format!("{} {share} ({} {unit}{family})", clip(&row.name), count(row.calls))
        })
        .collect();
    if top.is_empty() { head } else { format!("{head}: {}", top.join(", ")) }
}

/// The family in which an operator's kernels spend most time.
fn main_family(tables: &Tables<'_, '_>, row: &OpRow) -> Option<Family> {
    let mut sums = vec![Ns::ZERO; Family::ALL.len()];
    for kernel in tables.kernels {
        for owner in kernel.owners.iter().filter(|owner| owner.name == row.name) {
            sums[kernel.family as usize] += owner.cuda_ns;
        }
    }
    Family::ALL.iter().copied().max_by_key(|&family| sums[family as usize]).filter(|&family| sums[family as usize] > Ns::ZERO)
}

/// What holds the host.
pub(super) fn top_host_cost(tables: &Tables<'_, '_>, evidence: &Evidence) -> String {
    const SHOWN: usize = 3;
    let totals = tables.totals;
    let mut parts = Vec::new();
    match (totals.gpu_idle_ns, totals.gpu_span_ns()) {
        (Some(idle), Some(span)) if span > Ns::ZERO => {
            parts.push(format!("GPU idle {} of its span", percent(idle, span).unwrap_or_default()));
        }
        (None, _) => parts.push("no device activity recorded".to_owned()),
        _ => {}
    }
    let mut rows: Vec<(&OpRow, Ns)> =
        tables.ops.rows.iter().filter_map(|row| Some((row, row.self_cpu_ns?))).filter(|&(_, time)| time > Ns::ZERO).collect();
    rows.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.name.cmp(&b.0.name)));
    if totals.host_ops == 0 {
        parts.push("no operators recorded".to_owned());
    }
    if rows.is_empty() {
        parts.push("no host time recorded".to_owned());
        return parts.join("; ");
    }
    // Several ranks run side by side: their host times add up to more than the wall, so the share is of their sum.
    let several = tables.index.trace().ranks.len() > 1;
    let (whole, of) = if several { (tables.ops.self_cpu_total_ns, "self CPU") } else { (totals.wall_ns, "wall") };
    let top: Vec<String> = rows
        .iter()
        .take(SHOWN)
        .map(|&(row, own)| {
            let share = percent(own, whole).unwrap_or_default();
            let single = evidence.long_calls.iter().find(|call| call.name == row.name && call.calls > 1);
            let single = single.map_or_else(String::new, |call| format!(", {} in one", time(call.self_ns)));
            format!("{} {share} ({} calls{single})", clip(&row.name), count(row.calls))
        })
        .collect();
    parts.push(format!("top self CPU, of {of}: {}", top.join(", ")));
    if let Some(outside) = evidence.outside_ns.filter(|_| totals.host_ops > 0) {
        parts.push(format!("outside operators and calls {}", percent(outside, totals.wall_ns).unwrap_or_default()));
    }
    parts.join("; ")
}
