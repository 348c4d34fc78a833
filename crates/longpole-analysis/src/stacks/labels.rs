//! What threads and devices are called where a whole trace is shown at once.

use longpole_trace::{DeviceId, ThreadId, Tid, Trace};

/// A thread: its number, its name if there is one, and the rank where there are several.
pub fn thread_label(trace: &Trace, thread: ThreadId) -> String {
    let about = &trace.threads[thread.index()];
    let number = match &about.tid {
        Tid::Number(number) => number.to_string(),
        Tid::Text(text) => text.clone(),
    };
    let name = about.name.map(|name| trace.strings.get(name)).filter(|name| !name.is_empty() && !name.contains(&number));
    let name = name.map_or_else(String::new, |name| format!(" {name}"));
    format!("{}thread {number}{name}", rank(trace, trace.thread_rank(thread)))
}

/// A device: its number, and the rank where there are several.
pub fn device_label(trace: &Trace, device: DeviceId) -> String {
    let about = &trace.devices[device.index()];
    format!("{}GPU {}", rank(trace, about.rank), about.ordinal)
}

/// What recordings are put in order by where several are shown: the number of the rank, and the position in the set, since two may have one
/// number. Sets come in the order of their archive or folder, where `rank10` is before `rank2`.
pub fn rank_order(trace: &Trace, position: u32) -> (u32, u32) {
    (trace.ranks.get(position as usize).map_or(position, |known| known.rank), position)
}

fn rank(trace: &Trace, position: u32) -> String {
    let known = trace.ranks.get(position as usize).filter(|_| trace.ranks.len() > 1);
    known.map_or_else(String::new, |known| format!("rank {} ", known.rank))
}
