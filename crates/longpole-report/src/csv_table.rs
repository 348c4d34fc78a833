//! CSV: raw integers, empty cells for what is missing, and names that no spreadsheet runs as a formula.

use crate::names::csv_cell;
use crate::table::{Kind, Table, Value};

/// The whole table with a header row. Times are nanoseconds, sizes bytes, shares 0..1; there is no total line. A name that
/// begins with `=`, `+`, `-`, `@`, a tab or a line break gets a leading apostrophe; control characters and terminal escapes are
/// written out as in text, since CSV is read on terminals as well.
pub fn csv(table: &Table) -> String {
    let columns: Vec<_> =
        (0..table.columns.len()).filter(|&i| table.columns[i].kind != Kind::Bar && !table.columns[i].display_only).collect();
    let mut writer = csv::Writer::from_writer(Vec::new());
    let header = columns.iter().map(|&i| table.columns[i].key.to_owned()).collect::<Vec<_>>();
    // Writing records of one length to memory cannot fail; an error would leave an incomplete buffer, never a panic.
    let _ = writer.write_record(&header);
    for row in &table.rows {
        let _ = writer.write_record(columns.iter().map(|&i| match &row.cells[i] {
            Value::Text(text) => csv_cell(text).into_owned(),
            Value::Count(n) => n.to_string(),
            Value::Time(ns) => ns.get().to_string(),
            Value::Bytes(bytes) => bytes.to_string(),
            Value::Share(number) | Value::Number(number) | Value::Percent(number) | Value::Rate(number) => number.to_string(),
            Value::Missing | Value::Blank => String::new(),
        }));
    }
    writer.into_inner().ok().and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default()
}
