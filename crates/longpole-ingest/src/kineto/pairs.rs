//! Ranges that come as a begin and an end: `B`/`E`, nested on their thread, and `b`/`e`, joined by category, scope and id.
//!
//! Ends may stand before begins in the file and in another segment, so both are kept until the document ends, and matched in order of
//! time: an end closes the innermost open range of its name (of any name, if it has none). Those inside it that are still open were never
//! closed; they end with it. What is open at last ends with the trace.
//!
//! Asynchronous ranges overlap freely, so each gets a thread of its own, as a viewer shows them; a thread that is free again is reused.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use longpole_trace::{Interval, Ns, StrId, ThreadId};

/// A begin or an end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    pub(super) opens: bool,
    /// What joins the ends of an asynchronous range.
    pub(super) key: Option<u64>,
    pub(super) name: Option<StrId>,
    pub(super) thread: ThreadId,
    pub(super) at: Ns,
}

/// A range, matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Matched {
    pub(super) name: StrId,
    /// Where it was begun.
    pub(super) thread: ThreadId,
    pub(super) start: Ns,
    pub(super) end: Ns,
    /// The outermost asynchronous range around it, or itself, by number.
    pub(super) outermost: Option<u32>,
}

/// What marks came to.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    /// In order of thread (or id) and end.
    pub(super) ranges: Vec<Matched>,
    /// Outermost asynchronous ranges: where each was begun, and its extent.
    pub(super) outermost: Vec<(ThreadId, Interval)>,
    /// Begins without an end, and the first one's name.
    pub(super) unclosed: (u64, Option<StrId>),
    /// Ends without a begin, and the first one's name.
    pub(super) stray: (u64, Option<StrId>),
}

/// A range that is open.
struct Open {
    name: StrId,
    thread: ThreadId,
    start: Ns,
}

impl Pairs {
    /// Matches marks, those within `window`; what stays open ends with it.
    pub(super) fn of(mut marks: Vec<Mark>, window: Interval) -> Self {
        marks.retain(|mark| window.start <= mark.at && mark.at <= window.end);
        marks.sort_by_key(|mark| (mark.key, if mark.key.is_some() { 0 } else { mark.thread.0 }, mark.at));
        let mut pairs = Self::default();
        let same = |a: &Mark, b: &Mark| a.key == b.key && (a.key.is_some() || a.thread == b.thread);
        for track in marks.chunk_by(same) {
            pairs.add_track(track, window.end);
        }
        pairs
    }

    fn add_track(&mut self, track: &[Mark], end: Ns) {
        let is_async = track[0].key.is_some();
        let mut open: Vec<Open> = Vec::new();
        // How often each name is open, so that a stray end costs no search.
        let mut count: HashMap<StrId, u32, FixedState> = HashMap::default();
        for mark in track {
            if mark.opens {
                let Some(name) = mark.name else { continue };
                if open.is_empty() && is_async {
                    self.outermost.push((mark.thread, Interval { start: mark.at, end: mark.at }));
                }
                *count.entry(name).or_insert(0) += 1;
                open.push(Open { name, thread: mark.thread, start: mark.at });
                continue;
            }
            let Some(name) =
                mark.name.or_else(|| open.last().map(|top| top.name)).filter(|name| count.get(name).is_some_and(|open| *open > 0))
            else {
                self.stray.0 += 1;
                self.stray.1 = self.stray.1.or(mark.name);
                continue;
            };
            while let Some(top) = open.pop() {
                if let Some(open) = count.get_mut(&top.name) {
                    *open -= 1;
                }
                let is_it = top.name == name;
                if !is_it {
                    self.note_unclosed(top.name);
                }
                self.close(&top, mark.at, is_async);
                if is_it {
                    break;
                }
            }
        }
        while let Some(top) = open.pop() {
            self.note_unclosed(top.name);
            self.close(&top, end, is_async);
        }
    }

    fn note_unclosed(&mut self, name: StrId) {
        self.unclosed.0 += 1;
        self.unclosed.1 = self.unclosed.1.or(Some(name));
    }

    fn close(&mut self, range: &Open, end: Ns, is_async: bool) {
        let outermost = if is_async { self.outermost.len().checked_sub(1) } else { None };
        if let Some((_, extent)) = outermost.and_then(|number| self.outermost.get_mut(number)) {
            extent.end = extent.end.max(end);
        }
        let outermost = outermost.map(|number| number as u32);
        self.ranges.push(Matched { name: range.name, thread: range.thread, start: range.start, end, outermost });
    }

    /// A lane for each outermost asynchronous range, such that those of one lane do not overlap; `processes` numbers the process of each, and
    /// processes share no lane.
    pub(super) fn lanes(&self, processes: &[u32]) -> Vec<u32> {
        let mut order: Vec<usize> = (0..self.outermost.len()).collect();
        order.sort_by_key(|&number| (self.outermost[number].1.start, number));
        let mut lanes = vec![0; order.len()];
        // By process: when each lane is free again, and how many there are.
        let mut free: HashMap<u32, BinaryHeap<Reverse<(Ns, u32)>>, FixedState> = HashMap::default();
        for number in order {
            let extent = self.outermost[number].1;
            let of_process = free.entry(processes[number]).or_default();
            let reused = of_process.peek().filter(|Reverse((end, _))| *end <= extent.start).map(|Reverse((_, lane))| *lane);
            if reused.is_some() {
                of_process.pop();
            }
            lanes[number] = reused.unwrap_or(of_process.len() as u32);
            of_process.push(Reverse((extent.end, lanes[number])));
        }
        lanes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(opens: bool, key: Option<u64>, name: u32, at: i64) -> Mark {
        Mark { opens, key, name: Some(StrId(name)), thread: ThreadId(0), at: Ns(at) }
    }

    fn match_all(marks: &[Mark]) -> (Vec<(u32, i64, i64)>, u64, u64) {
        let pairs = Pairs::of(marks.to_vec(), Interval { start: Ns(0), end: Ns(100) });
        let ranges = pairs.ranges.iter().map(|range| (range.name.0, range.start.get(), range.end.get())).collect();
        (ranges, pairs.unclosed.0, pairs.stray.0)
    }

    #[test]
    fn ends_close_the_innermost_range_of_their_name() {
        let (b, e) = (|name, at| mark(true, None, name, at), |name, at| mark(false, None, name, at));
        assert_eq!(match_all(&[b(1, 0), b(2, 1), e(2, 5), e(1, 9)]), (vec![(2, 1, 5), (1, 0, 9)], 0, 0));
        // Out of order in the file.
        assert_eq!(match_all(&[e(1, 9), b(2, 1), b(1, 0), e(2, 5)]), (vec![(2, 1, 5), (1, 0, 9)], 0, 0));
        // Without names.
        let nameless = Mark { name: None, ..e(0, 5) };
        assert_eq!(match_all(&[b(1, 0), b(2, 1), nameless, Mark { at: Ns(9), ..nameless }]), (vec![(2, 1, 5), (1, 0, 9)], 0, 0));
        // An end that is missing, one that is stray, one that never came.
        assert_eq!(match_all(&[b(1, 0), b(2, 1), e(1, 9)]), (vec![(2, 1, 9), (1, 0, 9)], 1, 0));
        assert_eq!(match_all(&[b(1, 0), e(2, 5), e(1, 9), e(1, 10), Mark { at: Ns(11), ..nameless }]), (vec![(1, 0, 9)], 0, 3));
        assert_eq!(match_all(&[b(1, 0), b(1, 3), e(1, 4)]), (vec![(1, 3, 4), (1, 0, 100)], 1, 0));
    }

    #[test]
    fn asynchronous_ranges_get_as_many_lanes_as_overlap() {
        let (b, e) = (|key, at| mark(true, Some(key), 7, at), |key, at| mark(false, Some(key), 7, at));
        let marks = [b(1, 0), b(2, 5), e(1, 10), b(3, 10), e(3, 20), e(2, 30), b(4, 30), b(4, 31), e(4, 32), e(4, 40)];
        let pairs = Pairs::of(marks.to_vec(), Interval { start: Ns(0), end: Ns(100) });
        assert_eq!(pairs.outermost.len(), 4);
        assert_eq!(pairs.ranges.len(), 5);
        assert_eq!(pairs.lanes(&[0; 4]), [0, 1, 0, 0]);
    }

    #[test]
    fn a_deep_stack_with_stray_ends_takes_no_time() {
        let count = 200_000;
        let begins = (0..count).map(|at| mark(true, None, 1, at));
        let strays = (0..count).map(|at| mark(false, None, 2, count + at));
        let marks: Vec<Mark> = begins.chain(strays).collect();
        let pairs = Pairs::of(marks, Interval { start: Ns(0), end: Ns(2 * count) });
        assert_eq!((pairs.unclosed.0, pairs.stray.0), (count as u64, count as u64));
    }
}
