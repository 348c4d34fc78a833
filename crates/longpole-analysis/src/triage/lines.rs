//! The first four lines of the report.

use foldhash::fast::FixedState;
use hashbrown::{HashMap, HashSet};
use longpole_trace::Ns;

use super::{Hardware, HardwareDevice, Tables};
use crate::families::Family;
use crate::ops::{OpRow, OpRowKind};
use crate::phrases::{clip, count, counted, list, percent, percent_of, time};
use crate::ranges::{is_users, wrapping};
use crate::smells::{Evidence, Facts, Replays};

/// What ran, as far as ranges, shapes and launches say.
pub(super) fn workload(tables: &Tables<'_, '_>, evidence: &Evidence) -> String {
    let trace = tables.index.trace();
    let mut parts = Vec::new();
    let named = ranges(tables);
    let ranks_are_said = named.is_some() && tables.scope.ranks(trace).len() > 1;
    if named.is_none() && is_empty(tables) {
        return "nothing is in scope".to_owned();
    }
    parts
        .push(named.unwrap_or_else(|| format!("not named in the {} (no ranges)", if tables.scope.is_whole() { "trace" } else { "scope" })));
    parts.extend(tokens(tables).or_else(|| matmul_type(tables)));
    let in_all = if tables.scope.ranks(trace).len() > 1 { " in all" } else { "" };
    if let Some(row) = tables.ops.rows.iter().find(|row| row.name.starts_with("Torch-Compiled Region")) {
        parts.push(format!("torch.compile ({}{in_all})", counted(row.calls, "region call")));
    }
    if tables.ops.rows.iter().any(|row| row.name.starts_with("autograd::engine::evaluate_function")) {
        parts.push("with backward pass".to_owned());
    }
    let replays = &evidence.replays;
    if replays.launches > 0 && !tables.is_cut {
        parts.push(graph_replays(replays, in_all));
    }
    parts.extend(rank_text(tables).filter(|_| !ranks_are_said));
    parts.join("; ")
}

/// Replays of graphs by their size; a mean of two sizes is the size of neither.
fn graph_replays(replays: &Replays, in_all: &str) -> String {
    const SHOWN: usize = 3;
    let nodes = |&(nodes, _): &(u64, u64)| nodes;
    match replays.sizes.as_slice() {
        [(first, launches), more @ ..] if more.len() < SHOWN => {
            let mut items = vec![format!("{}{in_all} of {}", counted(*launches, "graph replay"), counted(*first, "node"))];
            items.extend(more.iter().map(|&(nodes, launches)| format!("{} of {}", count(launches), count(nodes))));
            let last = items.pop().unwrap_or_default();
            if items.is_empty() { last } else { format!("{} and {last}", items.join(", ")) }
        }
        sizes => {
            let (least, most) = (sizes.iter().map(nodes).min().unwrap_or(0), sizes.iter().map(nodes).max().unwrap_or(0));
            format!("{}{in_all} of {} to {}", counted(replays.launches, "graph replay"), count(least), counted(most, "node"))
        }
    }
}

/// Whether a scope was asked for in which nothing happened.
fn is_empty(tables: &Tables<'_, '_>) -> bool {
    !tables.scope.is_whole() && tables.totals.host_ops == 0 && tables.totals.devices.is_empty() && tables.ops.rows.is_empty()
}

/// Range names with counts, without those that only wrap others. A name is counted in all ranges around it.
fn ranges(tables: &Tables<'_, '_>) -> Option<String> {
    const SHOWN: usize = 4;
    const ROOM: usize = 90;
    let rows = tables.ranges;
    let mut calls: HashMap<&str, u64, FixedState> = HashMap::default();
    for row in rows {
        *calls.entry(&row.name).or_default() += row.calls;
    }
    let mut own: Vec<&str> = Vec::new();
    let mut listed: HashSet<&str, FixedState> = HashSet::default();
    for (row, wraps) in rows.iter().zip(wrapping(rows)) {
        if is_users(&row.name) && !wraps && listed.insert(&row.name) {
            own.push(&row.name);
        }
    }
    let mut text = String::new();
    let mut shown = 0;
    let ranks = tables.scope.ranks(tables.index.trace());
    for &name in own.iter().take(SHOWN) {
        let calls = if ranks.len() > 1 {
            calls_by_rank(tables, &ranks, name).text()
        } else {
            format!("x{}", count(calls.get(name).copied().unwrap_or(0)))
        };
        let item = format!("{} {calls}", tables.clip(name));
        if shown > 0 && text.len() + item.len() > ROOM {
            break;
        }
        text.push_str(if shown > 0 { ", " } else { "" });
        text.push_str(&item);
        shown += 1;
    }
    if own.len() > shown {
        let more = counted((own.len() - shown) as u64, "more range");
        text.push_str(" and ");
        text.push_str(&more);
    }
    if ranks.len() > 1 {
        let each = format!(" on each of {}", counted(ranks.len() as u64, "rank"));
        text.push_str(&each);
    }
    (shown > 0).then_some(text)
}

/// How often each rank opened a range of a name in scope.
fn calls_by_rank(tables: &Tables<'_, '_>, ranks: &[usize], wanted: &str) -> PerRank {
    let trace = tables.index.trace();
    let ranges = &trace.ranges;
    let is_named = |at: usize| {
        let name = trace.strings.get(ranges.name[at]);
        name == wanted || wanted == "ProfilerStep*" && name.starts_with("ProfilerStep#")
    };
    let rows = (0..ranges.len()).filter(|&at| is_named(at) && tables.scope.includes_host(trace, ranges.thread[at], ranges.start[at]));
    PerRank::count(ranks, rows.map(|at| trace.thread_rank(ranges.thread[at])))
}

/// Batch, tokens and type from the inputs of `aten::embedding`: the weights, then the token ids.
fn tokens(tables: &Tables<'_, '_>) -> Option<String> {
    let trace = tables.index.trace();
    let ops = &trace.host_ops;
    let embedding = trace.strings.find("aten::embedding")?;
    let ranks = tables.scope.ranks(trace);
    let mut seen: Vec<(Vec<u64>, Vec<u32>)> = Vec::new();
    let mut table: Vec<u64> = Vec::new();
    let mut element = None;
    let mut types_read = false;
    for row in
        (0..ops.len()).filter(|&row| ops.name[row] == embedding && tables.scope.includes_host(trace, ops.thread[row], ops.start[row]))
    {
        let shapes = trace.strings.get(ops.shapes(row)?);
        let mut lists = shapes.trim_start_matches('[').split(']').map(numbers);
        let (weights, ids) = (lists.next()?, lists.next()?);
        if weights.len() != 2 || ids.is_empty() {
            return None;
        }
        // Positions and token types have tables of their own; tokens have the largest.
        if table.first() < weights.first() {
            table = weights;
            seen.clear();
            types_read = false;
        } else if table != weights {
            continue;
        }
        if !std::mem::replace(&mut types_read, true) {
            element = ops.types(row).and_then(|types| first_type(trace.strings.get(types)));
        }
        let rank = trace.thread_rank(ops.thread[row]);
        match seen.iter_mut().find(|(known, _)| *known == ids) {
            Some((_, calls)) => calls.push(rank),
            None => seen.push((ids, vec![rank])),
        }
    }
    if seen.is_empty() {
        return None;
    }
    let batch = seen[0].0.first().copied().filter(|&batch| seen.iter().all(|(ids, _)| ids.len() == 2 && ids[0] == batch));
    let said: Vec<String> =
        seen.iter().take(3).map(|(ids, calls)| token_text(ids, &PerRank::count(&ranks, calls.iter().copied()), batch.is_some())).collect();
    let batch = batch.map_or_else(String::new, |batch| format!("batch {}: ", count(batch)));
    let more = if seen.len() > 3 { format!(" and {}", counted(seen.len() as u64 - 3, "more shape")) } else { String::new() };
    let element = element.map_or_else(String::new, |element| format!("; {element} weights"));
    let passes: u64 = seen.iter().map(|(_, calls)| calls.len() as u64).sum();
    let attention = tables.ops.rows.iter().find(|row| row.name == "aten::scaled_dot_product_attention").map_or(0, |row| row.calls);
    // Every pass looks its tokens up once. Most models attend once a layer, but that is not for this line to say.
    let attention = if attention > 0 && attention % passes == 0 {
        format!("; {} a pass", counted(attention / passes, "attention call"))
    } else {
        String::new()
    };
    Some(format!("{batch}{}{more}{element}{attention}", said.join(", ")))
}

fn token_text(ids: &[u64], calls: &PerRank, batch_is_said: bool) -> String {
    let times = if calls.0.iter().all(|&calls| calls == 1) { String::new() } else { format!(" {}", calls.text()) };
    match *ids {
        [batch, length] => {
            let batch = if batch_is_said { String::new() } else { format!("batch {} of ", count(batch)) };
            format!("{batch}{}{times}", counted(length, "token"))
        }
        _ => format!("{} in one batch{times}", counted(ids.iter().fold(1, |product: u64, &side| product.saturating_mul(side)), "token")),
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
    seen.sort_by_key(|&(_, calls)| std::cmp::Reverse(calls));
    let most = seen.first()?.1;
    let common: Vec<&str> = seen.iter().filter(|&&(_, calls)| calls >= most / 4).take(3).map(|&(element, _)| element).collect();
    Some(format!("{} matrix products", common.join(" and ")))
}

fn rank_text(tables: &Tables<'_, '_>) -> Option<String> {
    let trace = tables.index.trace();
    let ranks = tables.scope.ranks(trace);
    if ranks.len() > 1 {
        return Some(format!("{} ranks", ranks.len()));
    }
    let info = trace.ranks.get(*ranks.first()?)?;
    let loaded = u32::try_from(trace.ranks.len()).ok();
    let size = info.world_size.or(loaded).filter(|&size| size > 1)?;
    let backend = info.backend.as_ref().map_or_else(String::new, |backend| format!(" ({})", tables.clip(backend)));
    Some(format!("rank {} of {size}{backend}", info.rank))
}

/// How often something was counted on each rank: `x3`, or `x2 to x3` where they differ.
struct PerRank(Vec<u64>);

impl PerRank {
    /// Of the ranks in scope; each item is the rank of one thing that is counted.
    fn count(ranks: &[usize], items: impl Iterator<Item = u32>) -> Self {
        let mut counts = vec![0; ranks.len()];
        for item in items {
            if let Ok(at) = ranks.binary_search(&(item as usize)) {
                counts[at] += 1;
            }
        }
        Self(counts)
    }

    fn text(&self) -> String {
        let (least, most) = (self.0.iter().min().copied().unwrap_or(0), self.0.iter().max().copied().unwrap_or(0));
        if least == most { format!("x{}", count(most)) } else { format!("x{} to x{}", count(least), count(most)) }
    }
}

/// Kinds of devices that the report lists; the line is one of five.
const MOST_DEVICES: usize = 8;

/// Which devices, and the software versions.
pub(super) fn hardware(hardware: &Hardware, platform: &str, is_cut: bool) -> String {
    let active: Vec<&HardwareDevice> = hardware.devices.iter().filter(|device| device.active).collect();
    // Each rank describes all devices that it sees, those that other ranks use included: only one rank's list has idle ones.
    let is_one_rank = hardware.devices.windows(2).all(|pair| pair[0].rank == pair[1].rank);
    let idle = if is_one_rank { hardware.devices.len() - active.len() } else { 0 };
    let shown: Vec<&HardwareDevice> = if active.is_empty() { hardware.devices.iter().collect() } else { active.clone() };
    // Traces of one process often describe the devices as the process numbers them, and use them as the system does.
    let described = hardware.devices.iter().find_map(|other| other.name.as_ref());
    let described = described.map_or_else(String::new, |name| format!(", {} described", clip(name)));
    let mut groups: Vec<(String, usize)> = Vec::new();
    let mut known: HashMap<String, usize, FixedState> = HashMap::default();
    for device in &shown {
        let text = device_text(device, &described);
        let at = *known.entry(text.clone()).or_insert(groups.len());
        match groups.get_mut(at) {
            Some((_, number)) => *number += 1,
            None => groups.push((text, 1)),
        }
    }
    let unlisted: usize = groups.iter().skip(MOST_DEVICES).map(|(_, number)| number).sum();
    groups.truncate(MOST_DEVICES);
    let mut parts: Vec<String> =
        groups.into_iter().map(|(text, number)| if number > 1 { format!("{number} x {text}") } else { text }).collect();
    if unlisted > 0 {
        parts.push(format!("{} of other kinds", counted(unlisted as u64, "device")));
    }
    if parts.is_empty() {
        parts.push("device not recorded".to_owned());
    } else if is_cut {
        // Activity of the others may have been cut off.
    } else if active.is_empty() {
        parts.push("none with activity".to_owned());
    } else if idle > 0 {
        parts.push(format!("{idle} more without activity"));
    }
    match (&hardware.cuda, &hardware.driver) {
        (Some(runtime), Some(driver)) => parts.push(format!("{platform} runtime {runtime}, driver for {driver}")),
        (Some(runtime), None) => parts.push(format!("{platform} runtime {runtime}")),
        (None, Some(driver)) => parts.push(format!("driver for {platform} {driver}")),
        (None, None) => parts.push("versions not recorded".to_owned()),
    }
    parts.join("; ")
}

fn device_text(device: &HardwareDevice, described: &str) -> String {
    let mut facts = Vec::new();
    facts.extend(device.sm_count.map(|count| format!("{count} SMs")));
    facts.extend(device.memory_bytes.map(|bytes| format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30))));
    let facts = if facts.is_empty() { String::new() } else { format!(" ({})", facts.join(", ")) };
    match &device.name {
        Some(name) => format!("{}{facts}", clip(name)),
        None if facts.is_empty() => format!("device {} not described{described}", device.id),
        None => format!("unnamed device{facts}"),
    }
}

/// The operators that own most device time, and how busy the device was.
pub(super) fn top_cuda_time(tables: &Tables<'_, '_>) -> String {
    const SHOWN: usize = 3;
    let totals = tables.totals;
    let (Some(busy), Some(total)) = (totals.gpu_busy_ns, tables.ops.self_cuda_total_ns) else {
        return if tables.is_cut { "no GPU work was read, for the file was cut" } else { no_device(tables) }.to_owned();
    };
    let devices = if totals.devices.len() > 1 { format!(" x {} devices", totals.devices.len()) } else { String::new() };
    let head = match totals.gpu_busy_fraction {
        Some(fraction) => {
            let outside = totals.gpu_outside_ns.filter(|&outside| outside > Ns::ZERO);
            let outside = outside.map_or_else(String::new, |outside| format!(", and {} with work from outside the scope", time(outside)));
            format!("GPU busy {} of wall ({} of {}{devices}){outside}", percent_of(fraction), time(busy), time(totals.wall_ns))
        }
        None if tables.is_cut => format!("at least {} of GPU work{devices}, for the file was cut; of what was read", time(busy)),
        None => format!("GPU busy {}", time(busy)),
    };
    let mut rows: Vec<(&OpRow, Ns)> =
        tables.ops.rows.iter().filter_map(|row| Some((row, row.self_cuda_ns?))).filter(|&(_, time)| time > Ns::ZERO).collect();
    rows.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.name.cmp(&b.0.name)));
    let top = rows.iter().map(|&(row, own)| {
        let family = main_family(tables, row).map_or_else(String::new, |family| format!(", {}", family.name()));
        let share = percent(own, total).unwrap_or_default();
        let unit = if row.kind == OpRowKind::NoOperator { "launch" } else { "call" };
        format!("{} {share} ({}{family})", tables.clip(&row.name), counted(row.calls, unit))
    });
    if rows.is_empty() { head } else { list(&format!("{head}: "), top, SHOWN) }
}

/// Why there are no device times.
fn no_device(tables: &Tables<'_, '_>) -> &'static str {
    if tables.scope.is_whole() || tables.index.trace().activities.is_empty() {
        "no device activity recorded"
    } else {
        "no device activity in scope"
    }
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
pub(super) fn top_host_cost(facts: &Facts<'_, '_>) -> String {
    const SHOWN: usize = 3;
    let (tables, evidence) = (facts.tables, facts.evidence);
    let totals = tables.totals;
    let mut parts = Vec::new();
    if is_empty(tables) {
        return "nothing is in scope".to_owned();
    }
    match (totals.gpu_idle_ns, totals.gpu_span_ns()) {
        (Some(idle), Some(span)) if span > Ns::ZERO => {
            // One long gap is another matter than many short ones.
            let gap = evidence.pace.largest_gap_ns();
            let gap = if gap.get() > idle.get() / 2 && idle.get() > span.get() / 10 {
                format!(", {} in one gap", time(gap))
            } else {
                String::new()
            };
            let profiled = if facts.plain.is_some() { " under the profiler" } else { "" };
            parts.push(format!("GPU idle {} of its span{profiled}{gap}", percent(idle, span).unwrap_or_default()));
        }
        (None, _) if tables.is_cut => parts.push("the file was cut".to_owned()),
        (None, _) => parts.push(no_device(tables).to_owned()),
        _ => {}
    }
    let mut rows: Vec<(&OpRow, Ns)> =
        tables.ops.rows.iter().filter_map(|row| Some((row, row.self_cpu_ns?))).filter(|&(_, time)| time > Ns::ZERO).collect();
    rows.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.name.cmp(&b.0.name)));
    if totals.host_ops == 0 {
        parts.push(if tables.scope.is_whole() { "no operators recorded" } else { "no operators in scope" }.to_owned());
    }
    if rows.is_empty() {
        parts.push(if tables.scope.is_whole() { "no host time recorded" } else { "no host time in scope" }.to_owned());
        return parts.join("; ");
    }
    // Several ranks run side by side: their host times add up to more than the wall, so the share is of their sum.
    let ranks = tables.scope.ranks(tables.index.trace()).len();
    let (whole, of) = if ranks > 1 {
        (tables.ops.self_cpu_total_ns, format!("shares of all self CPU of the {ranks} ranks"))
    } else {
        (totals.wall_ns, "of wall".to_owned())
    };
    if let Some(outside) = evidence.outside_ns.filter(|_| totals.host_ops > 0 && !tables.is_cut) {
        parts.push(format!("host outside operators and calls {} of wall", percent(outside, totals.wall_ns).unwrap_or_default()));
    }
    let top = rows.iter().map(|&(row, own)| {
        let share = percent(own, whole).unwrap_or_default();
        let single = evidence.long_calls.iter().find(|call| call.name == row.name && call.calls > 1 && call.self_ns.get() >= own.get() / 3);
        let single = single.map_or_else(String::new, |call| format!(", {} in one", time(call.self_ns)));
        format!("{} {share} ({}{single})", tables.clip(&row.name), counted(row.calls, "call"))
    });
    parts.push(String::new());
    list(&format!("{}top self CPU, {of}: ", parts.join("; ")), top, SHOWN)
}
