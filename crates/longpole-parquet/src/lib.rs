//! A trace as Parquet files, one a table, for pandas, polars, DuckDB, Spark and whatever else reads columns.
//!
//! A row stands for one event, under the number that it has in the trace, so that tables join: `call` of an activity is `row` of the calls,
//! `op` that of the operators, `thread` that of the threads. Names and columns are those of the CSV that `longpole export` writes. Each
//! file's metadata say what its columns are, from which source and with which base time (`longpole.*`).
//!
//! The crate takes a trace and closures: what belongs to the part that is asked for, and what an analysis knows of a row. It knows no
//! analysis itself, and it hides nothing by itself: [`Export::rewrite`] is applied to every text before it is written.
//!
//! Row groups hold at most [`ROWS_A_GROUP`] rows, and one is held while it is made. To add a column, add a line in `tables`.

mod tables;
mod writer;

use std::borrow::Cow;
use std::io::{self, Write};

use longpole_trace::{ActivityId, ActivityKind, Trace};

pub use tables::{ColumnKind, Table};

/// Rows of a row group at most.
pub const ROWS_A_GROUP: usize = 1 << 17;

/// Something to know of a recording, as a row of the table of problems.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Stable code.
    pub code: String,
    /// How much it matters: `info`, `notice`, `data_loss`.
    pub severity: String,
    /// How often it was seen.
    pub count: u64,
    /// What happened.
    pub message: String,
    /// What the user can do.
    pub hint: String,
}

/// What is written of a trace, and what is known beside it.
pub struct Export<'a> {
    /// The trace.
    pub trace: &'a Trace,
    /// Whether a row of a table belongs to what is asked for.
    pub includes: &'a dyn Fn(Table, usize) -> bool,
    /// The call that launched an activity, as a row of the calls.
    pub call: &'a dyn Fn(ActivityId) -> Option<u32>,
    /// The operator that an activity belongs to, as a row of the operators.
    pub op: &'a dyn Fn(ActivityId) -> Option<u32>,
    /// The family of an activity of this kind and name.
    pub family: &'a dyn Fn(ActivityKind, &str) -> &'static str,
    /// What is written for a text, e.g. without what is private. Applied once to each distinct text.
    pub rewrite: &'a dyn Fn(&str) -> Cow<'_, str>,
    /// What is to be known of the recording.
    pub problems: &'a [Problem],
    /// Further metadata of each file, as keys and values: the program, the source.
    pub metadata: &'a [(&'a str, String)],
}

impl std::fmt::Debug for Export<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Export").field("problems", &self.problems).field("metadata", &self.metadata).finish_non_exhaustive()
    }
}

impl Export<'_> {
    /// Writes a table as a Parquet file, and says how many rows it has.
    ///
    /// # Errors
    /// When `out` cannot be written to.
    pub fn write(&self, table: Table, out: &mut (dyn Write + Send)) -> io::Result<u64> {
        writer::write(self, table, out)
    }
}

/// The columns of a table: name, type, whether every row has a value, and what it is.
pub fn columns(table: Table) -> Vec<(&'static str, ColumnKind, bool, &'static str)> {
    tables::columns(table).iter().map(|column| (column.name, column.kind, column.is_required, column.what)).collect()
}
