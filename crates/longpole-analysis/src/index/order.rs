//! The rows of one host table, thread by thread, in nesting order: start ascending, end descending, file order.

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
    /// Orders a table given by its columns.
    pub(crate) fn of(threads: usize, thread: &[ThreadId], start: &[Ns], dur: &[Ns]) -> Self {
        let mut first = vec![0_u32; threads + 1];
        for id in thread {
            first[id.index() + 1] += 1;
        }
        let one_thread = first.iter().filter(|&&count| count > 0).count() <= 1;
        for at in 1..first.len() {
            first[at] += first[at - 1];
        }
        let in_order =
            |a: usize, b: usize| start[a] < start[b] || (start[a] == start[b] && end_of(start[a], dur[a]) >= end_of(start[b], dur[b]));
        if one_thread && (1..start.len()).all(|b| in_order(b - 1, b)) {
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
            if !slice.is_sorted_by(|&a, &b| in_order(a as usize, b as usize)) {
                // Stable, and fast on input that is nearly sorted.
                slice.sort_by_key(|&row| {
                    let row = row as usize;
                    (start[row], std::cmp::Reverse(end_of(start[row], dur[row])))
                });
            }
        }
        Self { rows: Some(rows), first }
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
