//! Which row of its lane an event is drawn on.

/// Most rows of a lane. Deeper nesting, and more that runs at once, shares the last row.
pub(super) const MOST_ROWS: usize = 48;

/// Puts events that overlap on rows of their own: each on the first row that is free again. Shown in order of start.
#[derive(Debug, Default)]
pub(super) struct Splitter {
    /// By row: when it is free again.
    ends: Vec<i64>,
}

impl Splitter {
    /// The row of the next event.
    pub(super) fn place(&mut self, start: i64, end: i64) -> u8 {
        let free = self.ends.iter().position(|&busy_until| busy_until <= start);
        let row = free.unwrap_or_else(|| {
            if self.ends.len() < MOST_ROWS {
                self.ends.push(i64::MIN);
            }
            self.ends.len() - 1
        });
        self.ends[row] = self.ends[row].max(end);
        row as u8
    }

    /// Rows so far, at least one.
    pub(super) fn rows(&self) -> u32 {
        self.ends.len().max(1) as u32
    }
}

/// The row of a depth of nesting.
pub(super) fn of_depth(depth: u32) -> u8 {
    depth.min(MOST_ROWS as u32 - 1) as u8
}
