//! Ranges that come as a begin and an end: `B`/`E`, nested on their thread, and `b`/`e`, joined by category, scope and id.
//!
//! Ends may stand before begins in the file and in another segment, so both are kept until the document ends, and matched in order of
//! time: an end closes the innermost open range of its name (of any name, if it has none). On a thread, those inside it that are still open
//! were never closed; they end with it. Asynchronous ranges of one id may cross, so there only the range of that name ends. What is open at
//! last ends with the trace.
//!
//! Ranges are given in the order in which they were opened: of two that begin and end together, the first is around the second.
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
    /// How many complete ranges stand before it in the file.
    pub(super) before: u32,
}

/// A range, matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Matched {
    pub(super) name: StrId,
    /// Where it was begun.
    pub(super) thread: ThreadId,
    pub(super) start: Ns,
    pub(super) end: Ns,
    /// Its place among the complete ranges of the file, and among all that were opened.
    pub(super) order: (u32, u32),
    /// The outermost asynchronous range around it, or itself, by number.
    pub(super) outermost: Option<u32>,
}

/// What marks came to.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    /// In order of opening.
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
    order: (u32, u32),
}

/// The open ranges of a thread or an id.
#[derive(Default)]
struct Stack {
    /// In order of opening. A range that ended while later ones were open leaves a hole; the last is none.
    open: Vec<Option<Open>>,
    /// The places of each name's, so that neither a stray end nor one across others costs a search.
    of_name: HashMap<StrId, Vec<u32>, FixedState>,
}

impl Stack {
    fn push(&mut self, range: Open) {
        self.of_name.entry(range.name).or_default().push(self.open.len() as u32);
        self.open.push(Some(range));
    }

    fn last_name(&self) -> Option<StrId> {
        self.open.last()?.as_ref().map(|open| open.name)
    }

    /// Takes the innermost range.
    fn pop(&mut self) -> Option<Open> {
        let name = self.last_name()?;
        self.take(name)
    }

    /// Takes the innermost range of a name.
    fn take(&mut self, name: StrId) -> Option<Open> {
        let place = self.of_name.get_mut(&name)?.pop()?;
        let range = self.open.get_mut(place as usize)?.take();
        while self.open.pop_if(|last| last.is_none()).is_some() {}
        range
    }

    fn holds(&self, name: StrId) -> bool {
        self.of_name.get(&name).is_some_and(|places| !places.is_empty())
    }
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
        pairs.ranges.sort_unstable_by_key(|range| range.order);
        pairs
    }

    fn add_track(&mut self, track: &[Mark], end: Ns) {
        let is_async = track[0].key.is_some();
        // Every range of the tracks before is closed.
        let closed = self.ranges.len() as u32;
        let mut stack = Stack::default();
        for (number, mark) in track.iter().enumerate() {
            if mark.opens {
                let Some(name) = mark.name else { continue };
                if stack.open.is_empty() && is_async {
                    self.outermost.push((mark.thread, Interval { start: mark.at, end: mark.at }));
                }
                let order = (mark.before, closed.saturating_add(number as u32));
                stack.push(Open { name, thread: mark.thread, start: mark.at, order });
                continue;
            }
            let Some(name) = mark.name.or_else(|| stack.last_name()).filter(|name| stack.holds(*name)) else {
                self.stray.0 += 1;
                self.stray.1 = self.stray.1.or(mark.name);
                continue;
            };
            while !is_async
                && stack.last_name() != Some(name)
                && let Some(inner) = stack.pop()
            {
                self.note_unclosed(inner.name);
                self.close(&inner, mark.at, is_async);
            }
            if let Some(range) = stack.take(name) {
                self.close(&range, mark.at, is_async);
            }
        }
        while let Some(range) = stack.pop() {
            self.note_unclosed(range.name);
            self.close(&range, end, is_async);
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
        self.ranges.push(Matched { name: range.name, thread: range.thread, start: range.start, end, order: range.order, outermost });
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
        Mark { opens, key, name: Some(StrId(name)), thread: ThreadId(0), at: Ns(at), before: 0 }
    }

    fn match_all(marks: &[Mark]) -> (Vec<(u32, i64, i64)>, u64, u64) {
        let pairs = Pairs::of(marks.to_vec(), Interval { start: Ns(0), end: Ns(100) });
        let ranges = pairs.ranges.iter().map(|range| (range.name.0, range.start.get(), range.end.get())).collect();
        (ranges, pairs.unclosed.0, pairs.stray.0)
    }

    #[test]
    fn ends_close_the_innermost_range_of_their_name() {
        let (b, e) = (|name, at| mark(true, None, name, at), |name, at| mark(false, None, name, at));
        assert_eq!(match_all(&[b(1, 0), b(2, 1), e(2, 5), e(1, 9)]), (vec![(1, 0, 9), (2, 1, 5)], 0, 0));
        // Out of order in the file.
        assert_eq!(match_all(&[e(1, 9), b(2, 1), b(1, 0), e(2, 5)]), (vec![(1, 0, 9), (2, 1, 5)], 0, 0));
        // Without names.
        let nameless = Mark { name: None, ..e(0, 5) };
        assert_eq!(match_all(&[b(1, 0), b(2, 1), nameless, Mark { at: Ns(9), ..nameless }]), (vec![(1, 0, 9), (2, 1, 5)], 0, 0));
        // An end that is missing, one that is stray, one that never came.
        assert_eq!(match_all(&[b(1, 0), b(2, 1), e(1, 9)]), (vec![(1, 0, 9), (2, 1, 9)], 1, 0));
        assert_eq!(match_all(&[b(1, 0), e(2, 5), e(1, 9), e(1, 10), Mark { at: Ns(11), ..nameless }]), (vec![(1, 0, 9)], 0, 3));
        assert_eq!(match_all(&[b(1, 0), b(1, 3), e(1, 4)]), (vec![(1, 0, 100), (1, 3, 4)], 1, 0));
    }

    #[test]
    fn asynchronous_ranges_of_one_id_may_cross() {
        let (b, e) = (|name, at| mark(true, Some(1), name, at), |name, at| mark(false, Some(1), name, at));
        assert_eq!(match_all(&[b(1, 0), b(2, 5), e(1, 10), e(2, 30)]), (vec![(1, 0, 10), (2, 5, 30)], 0, 0));
        let nameless = Mark { name: None, ..e(0, 40) };
        let marks = [b(1, 0), b(2, 5), b(1, 6), e(2, 7), e(1, 8), nameless, e(2, 50)];
        assert_eq!(match_all(&marks), (vec![(1, 0, 40), (2, 5, 7), (1, 6, 8)], 0, 1));
        let pairs = Pairs::of(vec![b(1, 0), b(2, 5), e(1, 10), e(2, 30), b(3, 30)], Interval { start: Ns(0), end: Ns(100) });
        let extents: Vec<_> = pairs.outermost.iter().map(|(_, extent)| (extent.start.get(), extent.end.get())).collect();
        assert_eq!(extents, [(0, 30), (30, 100)]);
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
