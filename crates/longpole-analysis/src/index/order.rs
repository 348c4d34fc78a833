//! The rows of one host table, thread by thread, in order of time; ties in file order.

use std::cmp::Reverse;

use longpole_trace::{Ns, ThreadId};

/// The order of one table's rows.
#[derive(Debug)]
pub(crate) struct Order {
    /// Rows grouped by thread; absent when the table's own order will do (one thread, already sorted), as it mostly does.
    rows: Option<Vec<u32>>,
    /// Where each thread's rows begin, and one past the last thread's.
    first: Vec<u32>,
}

/// When a row ends; a negative duration counts as zero.
pub(crate) fn end_of(start: Ns, dur: Ns) -> Ns {
    start + dur.max(Ns::ZERO)
}

impl Order {
    /// Orders the rows of a table, given the thread of each, by a key of the row.
    pub(crate) fn by<K: Ord>(threads: usize, thread: &[ThreadId], key: impl Fn(usize) -> K) -> Self {
        let mut first = vec![0_u32; threads + 1];
        for id in thread {
            first[id.index() + 1] += 1;
        }
        let one_thread = first.iter().filter(|&&count| count > 0).count() <= 1;
        for at in 1..first.len() {
            first[at] += first[at - 1];
        }
        if one_thread && (0..thread.len()).is_sorted_by_key(&key) {
            return Self { rows: None, first };
        }
        let mut rows = vec![0_u32; thread.len()];
        let mut next = first.clone();
        for (row, id) in thread.iter().enumerate() {
            let slot = &mut next[id.index()];
            rows[*slot as usize] = row as u32;
            *slot += 1;
        }
        for bounds in first.windows(2) {
            let slice = &mut rows[bounds[0] as usize..bounds[1] as usize];
            if !slice.is_sorted_by_key(|&row| key(row as usize)) {
                // Stable, and fast on input that is nearly sorted.
                slice.sort_by_key(|&row| key(row as usize));
            }
        }
        Self { rows: Some(rows), first }
    }

    /// Orders events that nest: start ascending, end descending.
    pub(crate) fn nesting(threads: usize, thread: &[ThreadId], start: &[Ns], dur: &[Ns]) -> Self {
        Self::by(threads, thread, |row| (start[row], Reverse(end_of(start[row], dur[row]))))
    }

    /// The positions of a thread's rows, to be given to [`Self::row`].
    pub(crate) fn thread(&self, thread: usize) -> std::ops::Range<usize> {
        self.first[thread] as usize..self.first[thread + 1] as usize
    }

    /// The table row at a position.
    pub(crate) fn row(&self, position: usize) -> u32 {
        self.rows.as_ref().map_or(position as u32, |rows| rows[position])
    }
}
