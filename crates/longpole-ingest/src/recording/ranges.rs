//! NVTX calls into ranges: pushes with their pops, starts with their ends.
//!
//! Calls come as they stand in the recording: those of a thread in order, those of different threads a page or so apart. So ranges of a thread are
//! paired as they come, and an end may stand before its start, which another thread called.

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use longpole_recording::{Nvtx, Strings};

use super::rows::Origin;
use crate::nsys::feed::{Batch, NvtxRange};

/// Ranges open at a time on all threads, or started in one process: more are a program that never closes any.
const MAX_OPEN: usize = 1 << 20;

/// The ranges of a process that are open.
#[derive(Default)]
pub(super) struct Ranges {
    /// Ranges of a thread nest within a domain, and each domain on its own.
    stacks: HashMap<(u32, u32), Vec<Nvtx>, FixedState>,
    open: usize,
    started: HashMap<u64, Nvtx, FixedState>,
    /// Ends whose start has not come yet.
    ended: HashMap<u64, Nvtx, FixedState>,
    /// Starts whose number was used again before they were ended: they were never closed.
    abandoned: Vec<Nvtx>,
    closed_only: u64,
}

impl Ranges {
    /// Takes calls, and adds the ranges that they close.
    pub(super) fn take(&mut self, calls: Vec<Nvtx>, origin: &Origin, strings: &Strings, batch: &mut Batch) {
        let mut add = |opening: &Nvtx, end: u64, is_nested: bool| add_range(batch, origin, strings, opening, Some(end), is_nested);
        for call in calls {
            match call.kind {
                Nvtx::PUSH if self.open < MAX_OPEN => {
                    self.open += 1;
                    self.stacks.entry((call.tid, call.domain.0)).or_default().push(call);
                }
                Nvtx::POP => match self.stacks.get_mut(&(call.tid, call.domain.0)).and_then(Vec::pop) {
                    Some(push) => {
                        self.open -= 1;
                        add(&push, call.time, true);
                    }
                    None => self.closed_only += 1,
                },
                Nvtx::START if self.started.len() < MAX_OPEN => {
                    let Some(range) = call.range else { continue };
                    if let Some(end) = self.ended.remove(&range) {
                        add(&call, end.time.max(call.time), false);
                    } else if let Some(before) = self.started.insert(range, call) {
                        self.abandoned.push(before);
                    }
                }
                Nvtx::END => match call.range.and_then(|range| self.started.remove(&range)) {
                    Some(start) => add(&start, call.time, false),
                    None if self.ended.len() < MAX_OPEN => {
                        if let Some(range) = call.range
                            && self.ended.insert(range, call).is_some()
                        {
                            self.closed_only += 1;
                        }
                    }
                    None => self.closed_only += 1,
                },
                Nvtx::MARK => add(&call, call.time, false),
                _ => {}
            }
        }
    }

    /// Adds what was never closed; the number of calls that close a range which no call opened: those were open when recording began.
    pub(super) fn finish(self, origin: &Origin, strings: &Strings, batch: &mut Batch) -> u64 {
        let mut never_closed: Vec<(Nvtx, bool)> = self.stacks.into_values().flatten().map(|call| (call, true)).collect();
        never_closed.extend(self.started.into_values().chain(self.abandoned).map(|call| (call, false)));
        never_closed.sort_by_key(|(call, _)| (call.time, call.tid, call.name));
        for (call, is_nested) in never_closed {
            add_range(batch, origin, strings, &call, None, is_nested);
        }
        self.closed_only + self.ended.len() as u64
    }
}

fn add_range(batch: &mut Batch, origin: &Origin, strings: &Strings, opening: &Nvtx, end: Option<u64>, is_nested: bool) {
    batch.range(&NvtxRange {
        start: origin.time(opening.time),
        end: end.map(|end| origin.time(end)),
        tid: opening.tid,
        domain: origin.text(opening.domain).unwrap_or(0),
        text: strings.get(opening.name),
        is_nested,
    });
}
