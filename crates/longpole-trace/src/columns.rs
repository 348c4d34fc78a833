//! Columns of numbers that are often absent: they take no room until a row has one, and no more than the widest needs.

use crate::ids::StrId;

/// Absent marker inside the columns; never handed out.
const NONE_U32: u32 = u32::MAX;
const NONE_U64: u64 = u64::MAX;

/// A column of optional 64-bit numbers (correlation and external ids, byte counts). Recorders count from small numbers, so that most
/// columns fit 32 bits.
#[derive(Debug, Default)]
pub(crate) struct OptU64 {
    rows: Rows,
    /// Rows that were announced.
    announced: usize,
}

#[derive(Debug)]
enum Rows {
    /// So many rows, and none has a number.
    Absent(usize),
    Narrow(Vec<u32>),
    Wide(Vec<u64>),
}

impl Default for Rows {
    fn default() -> Self {
        Self::Absent(0)
    }
}

impl OptU64 {
    #[inline]
    pub(crate) fn push(&mut self, value: Option<u64>) {
        match (&mut self.rows, value) {
            (Rows::Absent(rows), None) => *rows += 1,
            (Rows::Narrow(rows), None) => rows.push(NONE_U32),
            (Rows::Narrow(rows), Some(value)) if value < u64::from(NONE_U32) => rows.push(value as u32),
            (Rows::Wide(rows), value) => rows.push(value.unwrap_or(NONE_U64)),
            (_, Some(value)) => self.widen(value),
        }
    }

    /// Adds the first number, or the first that does not fit.
    #[cold]
    fn widen(&mut self, value: u64) {
        let is_narrow = value < u64::from(NONE_U32);
        match &self.rows {
            Rows::Absent(len) if is_narrow => {
                let mut rows = Vec::with_capacity(self.announced.max(len + 1));
                rows.resize(*len, NONE_U32);
                rows.push(value as u32);
                self.rows = Rows::Narrow(rows);
            }
            Rows::Absent(len) => {
                let mut rows = Vec::with_capacity(self.announced.max(len + 1));
                rows.resize(*len, NONE_U64);
                rows.push(value);
                self.rows = Rows::Wide(rows);
            }
            Rows::Narrow(old) => {
                let mut rows = Vec::with_capacity(self.announced.max(old.len() + 1));
                rows.extend(old.iter().map(|&value| if value == NONE_U32 { NONE_U64 } else { u64::from(value) }));
                rows.push(value);
                self.rows = Rows::Wide(rows);
            }
            Rows::Wide(_) => {}
        }
    }

    pub(crate) fn clear_from(&mut self, from: usize) {
        match &mut self.rows {
            Rows::Absent(_) => {}
            Rows::Narrow(rows) if from == 0 => self.rows = Rows::Absent(rows.len()),
            Rows::Wide(rows) if from == 0 => self.rows = Rows::Absent(rows.len()),
            Rows::Narrow(rows) => rows[from..].fill(NONE_U32),
            Rows::Wide(rows) => rows[from..].fill(NONE_U64),
        }
    }

    #[inline]
    pub(crate) fn get(&self, index: usize) -> Option<u64> {
        match &self.rows {
            Rows::Absent(_) => None,
            Rows::Narrow(rows) => Some(rows[index]).filter(|&value| value != NONE_U32).map(u64::from),
            Rows::Wide(rows) => Some(rows[index]).filter(|&value| value != NONE_U64),
        }
    }
}

/// A column of optional typed ids.
#[derive(Debug, Default)]
pub(crate) struct OptId {
    /// Empty while no row has an id.
    rows: Vec<u32>,
    /// Rows before the first that has an id, while none has.
    absent: usize,
    /// Rows that were announced.
    announced: usize,
}

impl OptId {
    #[inline]
    pub(crate) fn push(&mut self, value: Option<u32>) {
        match value {
            None if self.rows.is_empty() => self.absent += 1,
            None => self.rows.push(NONE_U32),
            Some(value) => {
                if self.rows.is_empty() {
                    self.rows.reserve_exact(self.announced.max(self.absent + 1));
                    self.rows.resize(self.absent, NONE_U32);
                    self.absent = 0;
                }
                self.rows.push(value);
            }
        }
    }

    #[inline]
    pub(crate) fn get(&self, index: usize) -> Option<u32> {
        if self.rows.is_empty() { None } else { Some(self.rows[index]).filter(|&value| value != NONE_U32) }
    }

    /// Renames a column of texts; `moved` holds the new id of every old one.
    pub(crate) fn rename(&mut self, moved: &[StrId]) {
        for id in self.rows.iter_mut().filter(|id| **id != NONE_U32) {
            *id = moved[*id as usize].0;
        }
    }
}

/// What all columns of a table are asked together.
pub(crate) trait Column {
    /// Keeps, of the rows from `from` on, those that `keep` marks.
    fn retain_from(&mut self, from: usize, keep: &[bool]);
    /// So many rows follow.
    fn announce(&mut self, rows: usize);
    /// Gives back what no row needs.
    fn shrink(&mut self);
}

impl<T: Copy> Column for Vec<T> {
    fn retain_from(&mut self, from: usize, keep: &[bool]) {
        let mut kept = from;
        for (offset, keep) in keep.iter().enumerate() {
            if *keep {
                self[kept] = self[from + offset];
                kept += 1;
            }
        }
        self.truncate(kept);
    }

    fn announce(&mut self, rows: usize) {
        self.reserve_exact(rows);
    }

    fn shrink(&mut self) {
        self.shrink_to_fit();
    }
}

impl Column for OptU64 {
    fn retain_from(&mut self, from: usize, keep: &[bool]) {
        match &mut self.rows {
            Rows::Absent(rows) => *rows = from + keep.iter().filter(|keep| **keep).count(),
            Rows::Narrow(rows) => rows.retain_from(from, keep),
            Rows::Wide(rows) => rows.retain_from(from, keep),
        }
    }

    fn announce(&mut self, rows: usize) {
        let len = match &mut self.rows {
            Rows::Absent(len) => *len,
            Rows::Narrow(old) => {
                old.announce(rows);
                old.len()
            }
            Rows::Wide(old) => {
                old.announce(rows);
                old.len()
            }
        };
        self.announced = len + rows;
    }

    fn shrink(&mut self) {
        match &mut self.rows {
            Rows::Absent(_) => {}
            Rows::Narrow(rows) => rows.shrink(),
            Rows::Wide(rows) => rows.shrink(),
        }
    }
}

impl Column for OptId {
    fn retain_from(&mut self, from: usize, keep: &[bool]) {
        if self.rows.is_empty() {
            self.absent = from + keep.iter().filter(|keep| **keep).count();
        } else {
            self.rows.retain_from(from, keep);
        }
    }

    fn announce(&mut self, rows: usize) {
        if self.rows.is_empty() {
            self.announced = self.absent + rows;
        } else {
            self.rows.announce(rows);
        }
    }

    fn shrink(&mut self) {
        self.rows.shrink();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_out_as_they_went_in_however_wide() {
        let wide = u64::from(NONE_U32);
        for values in [
            &[None, None, Some(7), None, Some(wide - 1), Some(wide), None, Some(1 << 48)][..],
            &[None, Some(u64::MAX - 1), Some(0), None],
            &[Some(0), Some(wide)],
            &[None, None],
        ] {
            for announced in [0, 3, 100] {
                let mut column = OptU64::default();
                column.announce(announced);
                for value in values {
                    column.push(*value);
                }
                column.shrink();
                assert_eq!((0..values.len()).map(|row| column.get(row)).collect::<Vec<_>>(), values);
                column.retain_from(1, &vec![false; values.len() - 1]);
                column.push(Some(5));
                assert_eq!((column.get(0), column.get(1)), (values[0], Some(5)));
                column.clear_from(1);
                assert_eq!((column.get(0), column.get(1)), (values[0], None));
                column.clear_from(0);
                column.push(Some(6));
                assert_eq!([0, 1, 2].map(|row| column.get(row)), [None, None, Some(6)]);
            }
        }
    }

    #[test]
    fn ids_come_out_as_they_went_in() {
        for values in [&[None, None, Some(7), None, Some(0)][..], &[Some(1), None], &[None, None]] {
            let mut column = OptId::default();
            for value in values {
                column.push(*value);
            }
            assert_eq!((0..values.len()).map(|row| column.get(row)).collect::<Vec<_>>(), values);
            column.retain_from(1, &vec![false; values.len() - 1]);
            column.push(Some(0));
            column.rename(&[StrId(9), StrId(8), StrId(7), StrId(6), StrId(5), StrId(4), StrId(3), StrId(2)]);
            assert_eq!(column.get(1), Some(9));
        }
        let mut none = OptId::default();
        (0..1_000_000).for_each(|_| none.push(None));
        assert_eq!((none.rows.capacity(), none.get(999_999)), (0, None));
    }

    #[test]
    fn a_column_is_as_narrow_as_its_numbers() {
        let mut column = OptU64::default();
        column.announce(10);
        (0..10).for_each(|number| column.push(Some(number)));
        assert!(matches!(&column.rows, Rows::Narrow(rows) if rows.capacity() == 10));
        column.push(Some(1 << 40));
        assert!(matches!(column.rows, Rows::Wide(_)));
        assert_eq!((column.get(3), column.get(10)), (Some(3), Some(1 << 40)));
    }
}
