//! A table of typed cells, which the renderers lay out.

use longpole_trace::Ns;

/// Said in place of a table of which `--filter` left nothing.
pub(crate) const NOTHING_MATCHES: &str = "no row matches --filter";

/// What the cells of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Names: left-aligned, shortened to fit.
    Text,
    /// Whole numbers.
    Count,
    /// Nanoseconds, shown in one unit a column.
    Time,
    /// Bytes, shown in one unit a column.
    Bytes,
    /// 0..1, shown as percent.
    Share,
    /// 0..1, drawn as a bar; text only.
    Bar,
    /// Numbers with two decimals.
    Number,
    /// Percent as the source gives it, with one decimal.
    Percent,
    /// Bytes a second, shown in one unit a column.
    Rate,
    /// Numbers of different units, each written with its own: texts that are right-aligned and never cut.
    Quantity,
}

/// One column.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Its name in CSV, the same as the key in JSON.
    pub key: &'static str,
    /// Its heading in text and Markdown.
    pub title: &'static str,
    /// What its cells are.
    pub kind: Kind,
    /// Left out of narrow text in this order, lowest first; `None` always stays. Up to `Column::LIGHT` it goes before a name is
    /// cut to its last.
    pub drop: Option<u8>,
    /// Said once, instead of the column, when none of its cells has a value.
    pub absent: Option<&'static str>,
    /// Only in CSV.
    pub csv_only: bool,
    /// Not in CSV: what people read there is not the plain value.
    pub display_only: bool,
    /// Columns of one group are compared with each other and share a unit.
    pub unit_group: Option<&'static str>,
    /// Text is not cut below this while columns of little weight can be left out.
    pub min_width: usize,
    /// Text is not cut below this while any column can be left out.
    pub floor: usize,
}

impl Column {
    /// The last place in the order of leaving out that counts as of little weight.
    pub(crate) const LIGHT: u8 = 5;

    /// A column that is always shown.
    pub const fn new(key: &'static str, title: &'static str, kind: Kind) -> Self {
        Self {
            key,
            title,
            kind,
            drop: None,
            absent: None,
            csv_only: false,
            display_only: false,
            unit_group: None,
            min_width: 16,
            floor: 16,
        }
    }

    /// A column of names that stays readable on narrow terminals.
    #[must_use]
    pub const fn at_least(mut self, columns: usize) -> Self {
        self.min_width = columns;
        self.floor = columns;
        self
    }

    /// A column of names that gives way further before a column of weight is left out.
    #[must_use]
    pub const fn not_below(mut self, columns: usize) -> Self {
        self.floor = columns;
        self
    }

    /// A column that shares its unit with the others of its group.
    #[must_use]
    pub const fn in_unit_of(mut self, group: &'static str) -> Self {
        self.unit_group = Some(group);
        self
    }

    /// A column that narrow terminals can do without.
    #[must_use]
    pub const fn droppable(mut self, order: u8) -> Self {
        self.drop = Some(order);
        self
    }

    /// A column left out of text and Markdown when it is empty, with a reason.
    #[must_use]
    pub const fn or_absent(mut self, reason: &'static str) -> Self {
        self.absent = Some(reason);
        self
    }

    /// A column for people, which stands for others that machines read.
    #[must_use]
    pub const fn not_in_csv(mut self) -> Self {
        self.display_only = true;
        self
    }

    /// A column for machines.
    #[must_use]
    pub const fn in_csv_only(mut self) -> Self {
        self.csv_only = true;
        self
    }
}

/// One cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A name, as the trace has it.
    Text(String),
    /// A number.
    Count(u64),
    /// A time.
    Time(Ns),
    /// A size.
    Bytes(i64),
    /// A share, 0..1.
    Share(f64),
    /// A number without a unit, or one that its heading names.
    Number(f64),
    /// Percent, 100 for all of it.
    Percent(f64),
    /// Bytes a second.
    Rate(f64),
    /// Not recorded.
    Missing,
    /// Nothing belongs here (sums that would mean nothing).
    Blank,
}

impl Value {
    /// A time that may be absent.
    pub fn time(value: Option<Ns>) -> Self {
        value.map_or(Self::Missing, Self::Time)
    }

    /// A size that may be absent.
    pub fn bytes(value: Option<i64>) -> Self {
        value.map_or(Self::Missing, Self::Bytes)
    }

    /// A count that may be absent.
    pub fn count(value: Option<u64>) -> Self {
        value.map_or(Self::Missing, Self::Count)
    }

    /// A number that may be absent.
    pub fn number(value: Option<f64>) -> Self {
        value.map_or(Self::Missing, Self::Number)
    }

    /// Percent that may be absent.
    pub fn percent(value: Option<f64>) -> Self {
        value.map_or(Self::Missing, Self::Percent)
    }

    /// A rate that may be absent.
    pub fn rate(value: Option<f64>) -> Self {
        value.map_or(Self::Missing, Self::Rate)
    }

    /// `part` of `whole`; missing when either is, or when the whole is zero.
    pub fn share(part: Option<Ns>, whole: Option<Ns>) -> Self {
        match (part, whole) {
            (Some(part), Some(whole)) if whole > Ns::ZERO => Self::Share(part.get() as f64 / whole.get() as f64),
            _ => Self::Missing,
        }
    }

    /// True when it says something.
    pub(crate) fn is_present(&self) -> bool {
        !matches!(self, Self::Missing | Self::Blank)
    }

    /// The number behind it, for choosing a unit.
    pub(crate) fn magnitude(&self) -> u64 {
        match self {
            Self::Time(ns) => ns.get().unsigned_abs(),
            Self::Bytes(bytes) => bytes.unsigned_abs(),
            Self::Rate(rate) => rate.abs() as u64,
            _ => 0,
        }
    }
}

/// One row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// One value a column.
    pub cells: Vec<Value>,
    /// Nesting depth: the first cell is indented by it in text.
    pub depth: usize,
    /// Lines below the row (Python frames).
    pub lines: Vec<String>,
}

impl Row {
    /// A plain row.
    pub fn new(cells: Vec<Value>) -> Self {
        Self { cells, depth: 0, lines: Vec::new() }
    }
}

/// A table.
#[derive(Clone, Debug)]
pub struct Table {
    /// What one row is, in the plural.
    pub noun: &'static str,
    /// Columns, the name first.
    pub columns: Vec<Column>,
    /// Rows.
    pub rows: Vec<Row>,
    /// Sums over all rows, those not shown included; several where sums over all of them would mean nothing.
    pub totals: Vec<Row>,
    /// Rows left out by `--limit`.
    pub hidden: usize,
    /// Rows left out by `--filter`.
    pub filtered_out: usize,
    /// What is said in place of rows when there are none because nothing was recorded.
    pub empty: Option<&'static str>,
    /// Sentences below the table.
    pub notes: Vec<String>,
}

impl Table {
    /// Keeps the first `limit` rows and remembers how many were left out.
    pub fn truncate(&mut self, limit: Option<usize>) {
        let limit = limit.unwrap_or(self.rows.len()).min(self.rows.len());
        self.hidden += self.rows.len() - limit;
        self.rows.truncate(limit);
    }

    /// Keeps a column however narrow the terminal is: the one that the rows are sorted by.
    pub fn keep(&mut self, key: &str) {
        for column in self.columns.iter_mut().filter(|column| column.key == key) {
            column.drop = None;
        }
    }

    /// What is said in place of a table without rows.
    pub(crate) fn nothing(&self) -> String {
        if self.filtered_out > 0 {
            let without = crate::units::count(self.filtered_out as u64);
            let rows = if self.filtered_out == 1 { "row" } else { "rows" };
            format!("{NOTHING_MATCHES} ({without} {rows} without it)")
        } else {
            // Where nothing was recorded, that there is none would be a claim.
            self.empty.map_or_else(|| format!("no {} in scope", self.noun), str::to_owned)
        }
    }

    /// Columns shown to people, and the reasons for those that hold nothing.
    pub(crate) fn shown_columns(&self) -> (Vec<usize>, Vec<&'static str>) {
        let (mut shown, mut reasons) = (Vec::new(), Vec::new());
        for (index, column) in self.columns.iter().enumerate().filter(|(_, column)| !column.csv_only) {
            let has_value = |row: &Row| row.cells[index].is_present();
            match column.absent {
                Some(reason) if !self.rows.iter().any(has_value) && !self.totals.iter().any(has_value) => {
                    // An empty table has no values because it has no rows, which says nothing about the recording.
                    if !reasons.contains(&reason) && !self.rows.is_empty() {
                        reasons.push(reason);
                    }
                }
                _ => shown.push(index),
            }
        }
        (shown, reasons)
    }

    /// The largest number of a column and of those that share its unit.
    pub(crate) fn largest(&self, column: usize) -> u64 {
        let group = self.columns[column].unit_group;
        let shares = |&other: &usize| other == column || (group.is_some() && self.columns[other].unit_group == group);
        let of = |other: usize| self.rows.iter().chain(&self.totals).map(move |row: &Row| row.cells[other].magnitude());
        (0..self.columns.len()).filter(shares).flat_map(of).max().unwrap_or(0)
    }
}
