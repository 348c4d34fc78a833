//! What else differs between two recordings. Times of two devices, or of two batches, compare to nothing.

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use longpole_trace::{HostOpId, Ns, Trace};

use super::types::{DiffSide, SettingChange};
use crate::families::{Family, FamilyOfName};
use crate::index::HostRow;

/// Operators whose shapes are compared.
const SHAPES_OF: usize = 5;
/// Characters of a list of shapes that a line has room for.
const SHAPE_CHARS: usize = 60;

/// The differences, those that forbid a comparison of times first.
pub(super) fn changes(before: &DiffSide<'_, '_>, after: &DiffSide<'_, '_>) -> Vec<SettingChange> {
    let (a, b) = (before.index.trace(), after.index.trace());
    let mut changes = Vec::new();
    let mut add = |what, before: Option<String>, after: Option<String>, means| {
        // What one of them does not say is not a difference.
        if let (Some(before), Some(after)) = (before, after)
            && before != after
        {
            changes.push(SettingChange { what, before, after, means });
        }
    };
    add("device activity", Some(device_activity(before)), Some(device_activity(after)), "what is missing in one cannot be compared");
    add("device", devices(a), devices(b), "times of different devices: no verdict is about the program");
    add("ranks", Some(a.ranks.len().to_string()), Some(b.ranks.len().to_string()), "the work is divided differently");
    add("element type", element_type(before), element_type(after), "kernels do other arithmetic on other sizes");
    for (name, from, to) in shapes(before, after) {
        add("input shapes", Some(format!("{name} {from}")), Some(format!("{name} {to}")), "a step does another amount of work");
    }
    let (from, to) = (&a.versions, &b.versions);
    add("CUDA runtime", from.cuda_runtime.clone(), to.cuda_runtime.clone(), "libraries choose other kernels");
    add("CUDA driver", from.cuda_driver.clone(), to.cuda_driver.clone(), "launches cost differently");
    add("CUPTI", from.cupti.clone(), to.cupti.clone(), "the profiler costs differently");
    add("HIP runtime", from.hip_runtime.clone(), to.hip_runtime.clone(), "libraries choose other kernels");
    add("HIP driver", from.hip_driver.clone(), to.hip_driver.clone(), "launches cost differently");
    add("recorded", Some(recorded(a)), Some(recorded(b)), "host times hold another cost of profiling");
    changes
}

/// What is there of the device's work.
fn device_activity(side: &DiffSide<'_, '_>) -> String {
    let words = match (side.triage.totals.gpu_busy_ns, side.is_cut) {
        (None, _) => "none",
        (Some(_), true) => "a part, as the file is cut",
        (Some(_), false) => "recorded",
    };
    words.to_owned()
}

/// Names of the devices, each with how many.
fn devices(trace: &Trace) -> Option<String> {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for name in trace.devices.iter().filter_map(|device| device.properties.name.as_deref()) {
        match counts.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => counts.push((name, 1)),
        }
    }
    counts.sort_unstable();
    let words: Vec<String> =
        counts.iter().map(|(name, count)| if *count == 1 { (*name).to_owned() } else { format!("{count} x {name}") }).collect();
    (!words.is_empty()).then(|| words.join(", "))
}

/// What the profiler was told to record, as each of these slows the host.
fn recorded(trace: &Trace) -> String {
    let recorded = &trace.recorded;
    let all = [("shapes", recorded.shapes), ("memory", recorded.memory), ("stacks", recorded.stacks), ("modules", recorded.modules)];
    let on: Vec<&str> = all.iter().filter(|(_, on)| *on).map(|(name, _)| *name).collect();
    if on.is_empty() { "no shapes, memory or stacks".to_owned() } else { on.join(", ") }
}

/// Short names of element types, as kernel names and type lists spell them.
const TYPES: &[(&str, &[&str])] = &[
    ("fp8", &["e4m3", "e5m2", "Float8"]),
    ("bf16", &["bf16", "BFloat16", "bfloat16"]),
    ("fp16", &["f16f16", "c10::Half", "__half", "_h16", "fp16", "half"]),
    ("fp64", &["double", "f64"]),
    ("int8", &["int8", "s8"]),
];

/// The reduced type in which most time of matrix products and attention is spent, by the names of kernels and by the types of the operators that
/// launch them; of full precision nothing tells for sure.
fn element_type(side: &DiffSide<'_, '_>) -> Option<String> {
    let trace = side.index.trace();
    let mut families = FamilyOfName::new(trace);
    let mut time: HashMap<&str, Ns, FixedState> = HashMap::default();
    let mut known: HashMap<(u32, Option<u32>), Option<&'static str>, FixedState> = HashMap::default();
    for group in &side.steps.groups {
        for &activity in group.steps.iter().flat_map(|step| &step.activities) {
            let row = activity.index();
            if !matches!(families.get(trace, row), Family::Gemm | Family::Attention) {
                continue;
            }
            let types = side.index.links().owner_node(activity).and_then(|node| match side.index.tree().row(node) {
                HostRow::Op(HostOpId(op)) => trace.host_ops.types(op as usize),
                _ => None,
            });
            let name = trace.activities.name[row];
            let found = *known.entry((name.0, types.map(|id| id.0))).or_insert_with(|| {
                let of = |text: &str| TYPES.iter().find(|(_, spellings)| spellings.iter().any(|s| text.contains(s))).map(|(name, _)| *name);
                types.and_then(|id| of(trace.strings.get(id))).or_else(|| of(trace.strings.get(name)))
            });
            if let Some(found) = found {
                *time.entry(found).or_default() += trace.activities.dur[row];
            }
        }
    }
    time.into_iter().max_by_key(|&(name, time)| (time, name)).map(|(name, _)| name.to_owned())
}

/// Operators that both have, whose shapes by far most of their time goes to are not the same: name, before, after.
fn shapes(before: &DiffSide<'_, '_>, after: &DiffSide<'_, '_>) -> Vec<(String, String, String)> {
    let (a, b) = (usual_shapes(before), usual_shapes(after));
    let mut shared: Vec<(&String, Ns)> = a.iter().filter(|(name, _)| b.contains_key(*name)).map(|(name, of)| (name, of.1)).collect();
    shared.sort_by_key(|&(name, time)| (std::cmp::Reverse(time), name));
    let changed = shared.into_iter().take(SHAPES_OF).filter_map(|(name, _)| {
        let (from, to) = (&a[name].0, &b[name].0);
        (from != to).then(|| (name.clone(), cut(from), cut(to)))
    });
    changed.collect()
}

fn cut(shapes: &str) -> String {
    if shapes.chars().count() <= SHAPE_CHARS {
        return shapes.to_owned();
    }
    shapes.chars().take(SHAPE_CHARS).chain("...".chars()).collect()
}

/// For each operator that launches matrix products or attention in steps that occur several times: the shapes that most of its device time
/// is spent on, and that time.
fn usual_shapes(side: &DiffSide<'_, '_>) -> HashMap<String, (String, Ns), FixedState> {
    let trace = side.index.trace();
    let mut families = FamilyOfName::new(trace);
    let mut time: HashMap<(u32, u32), Ns, FixedState> = HashMap::default();
    let repeated = side.steps.groups.iter().filter(|group| group.steps.len() > 1);
    for &activity in repeated.flat_map(|group| &group.steps).flat_map(|step| &step.activities) {
        let row = activity.index();
        if matches!(families.get(trace, row), Family::Gemm | Family::Attention)
            && let Some(node) = side.index.links().owner_node(activity)
            && let HostRow::Op(HostOpId(op)) = side.index.tree().row(node)
            && let Some(shapes) = trace.host_ops.shapes(op as usize)
        {
            *time.entry((trace.host_ops.name[op as usize].0, shapes.0)).or_default() += trace.activities.dur[row];
        }
    }
    let mut usual: HashMap<String, (String, Ns), FixedState> = HashMap::default();
    let text = |id: u32| trace.strings.get(longpole_trace::StrId(id)).to_owned();
    let mut order: Vec<_> = time.into_iter().collect();
    order.sort_by_key(|&(key, time)| (std::cmp::Reverse(time), key));
    for ((name, shapes), time) in order {
        usual.entry(text(name)).or_insert_with(|| (text(shapes), time));
    }
    usual
}
