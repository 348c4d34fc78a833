//! Prints what recordings hold: counts by family, kernels by name with their time, ranges, costs. For comparing with other profilers' answers.
#![expect(clippy::print_stdout, reason = "an example reports to whoever typed it")]

use std::collections::BTreeMap;
use std::fs;

use longpole_recording::{
    Api, Clock, Cost, Device, Dropped, End, Family, GraphNode, Kernel, Memcpy, Memset, Nvtx, Process, RangeState, Recording, Refused,
    Strings, read,
};

fn main() {
    let mut arguments = std::env::args().skip(1).peekable();
    let kernels_only = arguments.next_if(|argument| argument == "--kernels").is_some();
    for file in arguments {
        let Ok(bytes) = fs::read(&file) else {
            println!("{file}: cannot be read");
            continue;
        };
        for mut recording in read(&bytes).0 {
            if kernels_only {
                kernels(&mut recording);
            } else {
                all(&mut recording, bytes.len());
            }
        }
    }
}

fn text(strings: &Strings, id: longpole_recording::StringId) -> String {
    strings.text(id).unwrap_or_default().into_owned()
}

/// Tab-separated: count, nanoseconds, name.
fn kernels(recording: &mut Recording<'_>) {
    let mut by_name: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for kernel in recording.records::<Kernel>() {
        let of = by_name.entry(text(&recording.strings, kernel.name)).or_default();
        *of = (of.0 + 1, of.1 + (kernel.end - kernel.start));
    }
    let copies = recording.records::<Memcpy>();
    by_name.insert("(copies)".into(), (copies.len() as u64, copies.iter().map(|copy| copy.end - copy.start).sum()));
    let sets = recording.records::<Memset>();
    by_name.insert("(sets)".into(), (sets.len() as u64, sets.iter().map(|set| set.end - set.start).sum()));
    for (name, (count, time)) in by_name {
        println!("{count}\t{time}\t{name}");
    }
}

fn all(recording: &mut Recording<'_>, bytes: usize) {
    println!("pid {}, {bytes} bytes, end: {}", recording.header.pid, recording.has_end());
    for family in Family::ALL {
        let count = recording.count(*family);
        if count > 0 {
            println!("  {:<24} {count}", family.plural());
        }
    }
    for process in recording.records::<Process>() {
        println!("  {process:?} {}", text(&recording.strings, process.executable));
    }
    for device in recording.records::<Device>() {
        println!(
            "  {} {:?} SMs, {:?} bytes, {:?} kHz",
            text(&recording.strings, device.name),
            device.sm_count,
            device.memory_bytes,
            device.core_clock_khz
        );
    }
    for refused in recording.records::<Refused>() {
        println!("  refused {} {}: {}", refused.reason, refused.code, text(&recording.strings, refused.detail));
    }
    for lost in recording.records::<Dropped>() {
        println!("  {lost:?}");
    }
    for clock in recording.records::<Clock>() {
        println!("  clock: CUPTI - wall {} ns, within {} ns", clock.cupti.cast_signed() - clock.realtime.cast_signed(), clock.uncertainty);
    }
    for switch in recording.records::<RangeState>() {
        println!("  {switch:?}");
    }
    let mut calls: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for call in recording.records::<Api>() {
        let of = calls.entry(text(&recording.strings, call.name)).or_default();
        *of = (of.0 + 1, of.1 + (call.end - call.start));
    }
    for (name, (count, time)) in calls {
        println!("  call {name:<40} {count:>8} {:>12.3} ms", time as f64 / 1e6);
    }
    let nodes = recording.records::<GraphNode>();
    println!(
        "  graph nodes: {} created, {} copied",
        nodes.iter().filter(|node| node.original.is_none()).count(),
        nodes.iter().filter(|node| node.original.is_some()).count()
    );
    let kernels = recording.records::<Kernel>();
    let known: std::collections::HashMap<u64, Option<u64>> = nodes.iter().map(|node| (node.node, node.original)).collect();
    let in_graphs: Vec<_> = kernels.iter().filter_map(|kernel| kernel.graph_node).collect();
    println!(
        "  kernels of graphs: {}, of nodes seen: {}",
        in_graphs.len(),
        in_graphs.iter().filter(|node| known.contains_key(node)).count()
    );
    let mut ranges: BTreeMap<String, u64> = BTreeMap::new();
    for event in recording.records::<Nvtx>() {
        let name = text(&recording.strings, event.name);
        let domain = text(&recording.strings, event.domain);
        *ranges.entry(format!("{} {domain}/{name}", event.kind)).or_default() += 1;
    }
    for (name, count) in ranges.into_iter().take(40) {
        println!("  nvtx {count:>6} {name}");
    }
    println!("  {:?}", recording.records::<Cost>().last());
    println!("  {:?}", recording.records::<End>());
}
