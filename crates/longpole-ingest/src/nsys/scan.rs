//! Reading a table: stretches of row numbers, several connections, one consumer in file order.
//!
//! A stretch holds about [`ROWS`] rows, so that the buffers that go round stay in the cache and few are needed. Row numbers must
//! rise: a damaged tree that leads in a circle ends its stretch. After damage, reading goes on behind it, at growing distances.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use longpole_trace::{ProblemCode, Problems};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, Row};

use super::database::{Database, Table, forget, quoted};

/// Rows of a stretch, where row numbers have no holes.
const ROWS: u64 = 16 * 1024;
/// A row takes at least this many bytes of the file (a cell, and its place in the page).
const LEAST_ROW: u64 = 4;
/// Places in one stretch at which reading is taken up again after damage.
const MAX_DAMAGE: u32 = 64;

/// One row's values, by position in the list of wanted columns.
pub(super) struct Values<'r, 's> {
    row: &'r Row<'s>,
    problems: &'r mut Problems,
}

impl Values<'_, '_> {
    /// A whole number. Anything else than a number is damage.
    #[inline]
    pub(super) fn int(&mut self, column: usize) -> Option<i64> {
        match self.row.get_ref(column + 1) {
            Ok(ValueRef::Integer(value)) => Some(value),
            Ok(ValueRef::Null) => None,
            other => self.odd(column, other.ok()),
        }
    }

    #[cold]
    fn odd(&mut self, column: usize, value: Option<ValueRef<'_>>) -> Option<i64> {
        /// Beyond this, not every whole number is a float.
        const EXACT: f64 = 9_007_199_254_740_992.0;
        if let Some(ValueRef::Real(value)) = value
            && value.fract() == 0.0
            && value.abs() <= EXACT
        {
            return Some(value as i64);
        }
        self.problems.add(ProblemCode::UnexpectedValue, None, || {
            let name = self.row.as_ref().column_name(column + 1).unwrap_or("a column");
            Some(format!("{name} is no number"))
        });
        None
    }

    /// A number that fits 32 bits and is not negative.
    #[inline]
    pub(super) fn small(&mut self, column: usize) -> Option<u32> {
        self.int(column).and_then(|value| u32::try_from(value).ok())
    }

    /// The bytes of a text.
    pub(super) fn text(&self, column: usize) -> Option<&[u8]> {
        match self.row.get_ref(column + 1) {
            Ok(ValueRef::Text(bytes) | ValueRef::Blob(bytes)) => Some(bytes),
            _ => None,
        }
    }

    /// Where trouble is counted.
    pub(super) fn problems(&mut self) -> &mut Problems {
        self.problems
    }
}

/// What is read of a table.
pub(super) struct Scan<'d> {
    database: &'d Database,
    pub(super) table: &'d Table,
    sql: String,
    /// First and last row number; absent when the table has none and is read as a whole.
    bounds: Option<(i64, i64)>,
    /// How many row numbers a stretch covers.
    width: u64,
    stretches: u64,
}

impl<'d> Scan<'d> {
    /// Prepares to read the wanted columns, in that order; those that the table lacks are always missing.
    pub(super) fn new(database: &'d Database, table: &'d Table, wanted: &[&str], filter: Option<&str>) -> Self {
        let columns: Vec<String> = wanted.iter().map(|column| if table.has(column) { quoted(column) } else { "NULL".to_owned() }).collect();
        let rowid = table.rowid.unwrap_or("0");
        let mut sql = format!("SELECT {rowid}, {} FROM {} NOT INDEXED", columns.join(", "), quoted(&table.name));
        let mut conditions: Vec<String> = table.rowid.map(|rowid| format!("{rowid} BETWEEN ?1 AND ?2")).into_iter().collect();
        conditions.extend(filter.map(str::to_owned));
        if !conditions.is_empty() {
            sql = format!("{sql} WHERE {}", conditions.join(" AND "));
        }
        let bounds = table.rowid.map(|rowid| bounds(database, table, rowid));
        let (width, stretches) = match bounds {
            None => (0, 1),
            Some((first, last)) if first > last => (1, 0),
            Some((first, last)) => {
                let numbers = last.abs_diff(first);
                // Sparse numbers must not make more stretches than the file can fill.
                let most = (database.bytes / (LEAST_ROW * ROWS)).max(1);
                let stretches = (numbers / ROWS + 1).min(most.max(1));
                let width = numbers / stretches + 1;
                (width, numbers / width + 1)
            }
        };
        Self { database, table, sql, bounds, width, stretches }
    }

    /// How many rows there are, if row numbers have no holes.
    pub(super) fn expected_rows(&self) -> u64 {
        self.bounds.map_or(0, |(first, last)| if first > last { 0 } else { last.abs_diff(first).saturating_add(1) })
    }

    /// How many stretches there are.
    pub(super) fn stretches(&self) -> u64 {
        self.stretches
    }

    /// Reads all rows: `make` fills a buffer with a row, on any thread; `take` empties buffers in file order, on this one.
    pub(super) fn run<B: Default + Send>(
        &self,
        threads: usize,
        problems: &mut Problems,
        make: impl Fn(&mut B, &mut Values<'_, '_>) + Sync,
        mut take: impl FnMut(&mut B),
    ) {
        let threads = (threads as u64).min(self.stretches) as usize;
        if threads < 2 {
            let mut buffer = B::default();
            match self.database.lend() {
                Ok(mut connection) => {
                    for stretch in 0..self.stretches {
                        self.read(&mut connection, stretch, &mut buffer, problems, &make);
                        take(&mut buffer);
                    }
                    self.database.give_back(connection);
                }
                Err(error) => self.note(&error, problems),
            }
            return;
        }
        let next = AtomicU64::new(0);
        let (full_in, full_out) = crossbeam_channel::unbounded::<(u64, B, Problems)>();
        // A fixed set of buffers goes round: threads that run ahead of the consumer wait for one.
        let (free_in, free_out) = crossbeam_channel::unbounded::<B>();
        for _ in 0..threads * 2 + 2 {
            let _ = free_in.send(B::default());
        }
        std::thread::scope(|scope| {
            for _ in 0..threads {
                let (full, free, next, make) = (full_in.clone(), free_out.clone(), &next, &make);
                scope.spawn(move || {
                    let mut connection = self.database.lend();
                    while let Ok(mut buffer) = free.recv() {
                        let stretch = next.fetch_add(1, Ordering::Relaxed);
                        if stretch >= self.stretches {
                            break;
                        }
                        let mut problems = Problems::default();
                        match &mut connection {
                            Ok(connection) => self.read(connection, stretch, &mut buffer, &mut problems, make),
                            Err(error) => self.note(error, &mut problems),
                        }
                        if full.send((stretch, buffer, problems)).is_err() {
                            break;
                        }
                    }
                    if let Ok(connection) = connection {
                        self.database.give_back(connection);
                    }
                });
            }
            drop((full_in, free_out));
            let (mut waiting, mut wanted) = (BTreeMap::new(), 0);
            for (stretch, buffer, found) in full_out {
                waiting.insert(stretch, (buffer, found));
                while let Some((mut buffer, found)) = waiting.remove(&wanted) {
                    wanted += 1;
                    problems.extend(found);
                    take(&mut buffer);
                    let _ = free_in.send(buffer);
                }
            }
        });
    }

    /// Reads one stretch as far as it can be read, whatever the connection read before. A damaged one is read again on a new connection.
    fn read<B: Default>(
        &self,
        connection: &mut Connection,
        stretch: u64,
        buffer: &mut B,
        problems: &mut Problems,
        make: &impl Fn(&mut B, &mut Values<'_, '_>),
    ) {
        let range = self.bounds.map(|(first, last)| {
            let from = first.saturating_add_unsigned(stretch.saturating_mul(self.width));
            (from, from.saturating_add_unsigned(self.width - 1).min(last))
        });
        let mut found = Problems::default();
        let is_fresh = forget(connection).is_ok();
        if is_fresh && self.rows(connection, range, buffer, &mut found, make).is_ok() && found.get(ProblemCode::DamagedPages).is_none() {
            problems.extend(found);
            return;
        }
        *buffer = B::default();
        match (self.database.connect(), self.database.connect()) {
            (Ok(first), Ok(second)) => {
                self.read_damaged(&first, range, buffer, problems, make);
                *connection = second;
            }
            (Err(error), _) | (_, Err(error)) => self.note(&error, problems),
        }
    }

    /// Reads what can be read of a stretch with damage in it.
    fn read_damaged<B>(
        &self,
        connection: &Connection,
        range: Option<(i64, i64)>,
        buffer: &mut B,
        problems: &mut Problems,
        make: &impl Fn(&mut B, &mut Values<'_, '_>),
    ) {
        let Some((mut from, to)) = range else {
            if let Err((error, _)) = self.rows(connection, None, buffer, problems, make) {
                self.note(&error, problems);
            }
            return;
        };
        let mut step = 1;
        for _ in 0..MAX_DAMAGE {
            match self.rows(connection, Some((from, to)), buffer, problems, make) {
                Ok(()) => return,
                Err((error, read)) => {
                    self.note(&error, problems);
                    // After rows that could be read, the next one is damaged; after none, all of the page may be.
                    let next = if let Some(read) = read {
                        step = 1;
                        read.saturating_add(2)
                    } else {
                        step *= 2;
                        from.saturating_add(step / 2)
                    };
                    if next > to || next <= from {
                        return;
                    }
                    from = next;
                }
            }
        }
    }

    /// Reads rows until the end or until damage; then the number of the last row read is told.
    fn rows<B>(
        &self,
        connection: &Connection,
        range: Option<(i64, i64)>,
        buffer: &mut B,
        problems: &mut Problems,
        make: &impl Fn(&mut B, &mut Values<'_, '_>),
    ) -> Result<(), (rusqlite::Error, Option<i64>)> {
        let mut statement = connection.prepare(&self.sql).map_err(|error| (error, None))?;
        let rows = match range {
            Some((from, to)) => statement.query([from, to]),
            None => statement.query([]),
        };
        let mut rows = rows.map_err(|error| (error, None))?;
        let (mut before, mut left) = (None, self.database.bytes / LEAST_ROW);
        loop {
            let row = match rows.next() {
                Ok(Some(row)) => row,
                Ok(None) => return Ok(()),
                Err(error) => return Err((error, before)),
            };
            if range.is_some() {
                let number = row.get_ref(0).ok().and_then(|value| value.as_i64().ok());
                if number <= before {
                    // A tree that leads in a circle.
                    problems.add(ProblemCode::DamagedPages, None, || Some(self.table.name.clone()));
                    return Ok(());
                }
                before = number;
            }
            if left == 0 {
                problems.add(ProblemCode::DamagedPages, None, || Some(self.table.name.clone()));
                return Ok(());
            }
            left -= 1;
            make(buffer, &mut Values { row, problems });
        }
    }

    fn note(&self, error: &rusqlite::Error, problems: &mut Problems) {
        let code =
            if error.sqlite_error_code() == Some(ErrorCode::TooBig) { ProblemCode::UnexpectedValue } else { ProblemCode::DamagedPages };
        problems.add(code, None, || Some(format!("{}: {error}", self.table.name)));
    }
}

/// First and last row number. Where they cannot be read, what a file of this size can hold.
fn bounds(database: &Database, table: &Table, rowid: &str) -> (i64, i64) {
    let read = |order: &str| {
        let connection = database.lend()?;
        let sql = format!("SELECT {rowid} FROM {} NOT INDEXED ORDER BY {rowid} {order} LIMIT 1", quoted(&table.name));
        let found = connection.query_row(&sql, [], |row| row.get::<_, i64>(0));
        database.give_back(connection);
        found
    };
    match (read("ASC"), read("DESC")) {
        (Err(rusqlite::Error::QueryReturnedNoRows), _) => (1, 0),
        (first, last) => (first.unwrap_or(1), last.unwrap_or_else(|_| (database.bytes / LEAST_ROW).min(i64::MAX as u64) as i64)),
    }
}
