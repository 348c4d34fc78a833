//! NVTX calls into ranges: pushes with their pops, starts with their ends.

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use longpole_recording::{Nvtx, Strings};

use super::rows::Origin;
use crate::nsys::feed::{Batch, NvtxRange};

/// Ranges open at a time on one thread, or in one process: more are a program that never closes any.
const MAX_OPEN: usize = 1 << 20;

/// Adds all NVTX calls of a process to a batch; the number of calls that close a range which no call opened is returned: those were open when
/// recording began.
pub(super) fn add(mut calls: Vec<Nvtx>, origin: &Origin, strings: &Strings, batch: &mut Batch) -> u64 {
    // Threads write side by side; each thread's calls are in order, unless a clock stepped.
    calls.sort_by_key(|call| call.time);
    // Ranges of a thread nest within a domain, and each domain on its own.
    let mut stacks: HashMap<(u32, u32), Vec<Nvtx>, FixedState> = HashMap::default();
    let mut started: HashMap<u64, Nvtx, FixedState> = HashMap::default();
    let (mut closed_only, mut open) = (0, 0);
    let mut add = |opening: &Nvtx, end: Option<i64>, is_nested: bool| {
        batch.range(&NvtxRange {
            start: origin.time(opening.time),
            end,
            tid: opening.tid,
            domain: origin.text(opening.domain).unwrap_or(0),
            text: strings.get(opening.name),
            is_nested,
        });
    };
    for call in calls {
        match call.kind {
            Nvtx::PUSH if open < MAX_OPEN => {
                open += 1;
                stacks.entry((call.tid, call.domain.0)).or_default().push(call);
            }
            Nvtx::POP => match stacks.get_mut(&(call.tid, call.domain.0)).and_then(Vec::pop) {
                Some(push) => {
                    open -= 1;
                    add(&push, Some(origin.time(call.time)), true);
                }
                None => closed_only += 1,
            },
            Nvtx::START if started.len() < MAX_OPEN => {
                // A number that is used again before it was ended: the one before was never closed.
                if let Some(before) = call.range.and_then(|range| started.insert(range, call)) {
                    add(&before, None, false);
                }
            }
            Nvtx::END => match call.range.and_then(|range| started.remove(&range)) {
                Some(start) => add(&start, Some(origin.time(call.time)), false),
                None => closed_only += 1,
            },
            Nvtx::MARK => add(&call, Some(origin.time(call.time)), false),
            _ => {}
        }
    }
    let mut never_closed: Vec<(Nvtx, bool)> = stacks.into_values().flatten().map(|call| (call, true)).collect();
    never_closed.extend(started.into_values().map(|call| (call, false)));
    never_closed.sort_by_key(|(call, _)| (call.time, call.tid, call.name));
    for (call, is_nested) in never_closed {
        add(&call, None, is_nested);
    }
    closed_only
}
