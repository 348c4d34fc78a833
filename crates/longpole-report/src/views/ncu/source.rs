//! Samples by instruction and by source line.

use longpole_ncu::source::dataflow::Relation;
use longpole_ncu::source::{InstructionRow, Producer, SourceView, StallCount};

use super::super::text;
use crate::ncu::{instruction, place, top_stall};
use crate::table::{Column, Kind, Row, Table, Value};
use crate::units::percent;

fn optional(value: Option<String>) -> Value {
    value.map_or(Value::Missing, Value::Text)
}

fn address(value: u64) -> String {
    format!("{value:#06x}")
}

fn with_share(reason: &str, share: f64) -> String {
    format!("{reason} {} %", percent(share))
}

/// `LDG.E.U16 R5, [R2] at 0x0390 (kern.cu:41)`, without the place where it is that of the waiting instruction.
fn producer_words(producer: &Producer, row: &InstructionRow) -> String {
    let what = instruction(producer.sass.as_deref(), producer.mnemonic.as_deref());
    let what = what.unwrap_or_else(|| producer.unit.describe().to_owned());
    let here = kernel_place(row);
    let place = place(producer.file.as_deref(), producer.line)
        .filter(|place| here.as_ref() != Some(place))
        .map_or_else(String::new, |place| format!(" ({place})"));
    let prefix = match producer.relation {
        Relation::Value => "",
        Relation::OperandsRead => "operands of ",
        Relation::CopyGroup => "copy ",
        // A jump or a barrier needs no value of it: it may not run ahead.
        Relation::Scoreboard => "end of ",
    };
    format!("{prefix}{what} at {}{place}", address(producer.address))
}

/// The line of the kernel's own source: of inlined code the line that calls it.
fn kernel_place(row: &InstructionRow) -> Option<String> {
    match &row.called_from {
        Some(call) => place(Some(&call.file), Some(call.line)),
        None => place(row.file.as_deref(), row.line),
    }
}

fn instruction_columns() -> Vec<Column> {
    vec![
        Column::new("id", "", Kind::Count).in_csv_only(),
        Column::new("address", "address", Kind::Text).at_least(7),
        Column::new("sass", "instruction", Kind::Text).at_least(24).not_below(18),
        Column::new("line", "line", Kind::Text).at_least(10).droppable(6).not_in_csv(),
        Column::new("file", "", Kind::Text).in_csv_only(),
        Column::new("line", "", Kind::Count).in_csv_only(),
        Column::new("called_from_file", "", Kind::Text).in_csv_only(),
        Column::new("called_from_line", "", Kind::Count).in_csv_only(),
        Column::new("samples", "samples", Kind::Count).droppable(3),
        Column::new("share_fraction", "share", Kind::Share),
        Column::new("top_stall", "top stall", Kind::Text).at_least(22).not_below(15).droppable(7).not_in_csv(),
        Column::new("top_stall", "", Kind::Text).in_csv_only(),
        Column::new("top_stall_fraction", "", Kind::Share).in_csv_only(),
        Column::new("waits_for", "waits for", Kind::Text).at_least(26).not_below(14).droppable(8).not_in_csv(),
        Column::new("producer_address", "", Kind::Text).in_csv_only(),
        Column::new("producer_sass", "", Kind::Text).in_csv_only(),
        Column::new("executed", "executed", Kind::Count).droppable(1),
        Column::new("threads_executed", "", Kind::Count).in_csv_only(),
    ]
}

fn instruction_row(id: usize, row: &InstructionRow) -> Row {
    let stall = top_stall(row);
    Row::new(vec![
        Value::Count(id as u64),
        Value::Text(address(row.address)),
        optional(instruction(row.sass.as_deref(), row.mnemonic.as_deref())),
        optional(kernel_place(row)),
        optional(row.file.clone()),
        Value::count(row.line.map(u64::from)),
        optional(row.called_from.as_ref().map(|call| call.file.clone())),
        Value::count(row.called_from.as_ref().map(|call| u64::from(call.line))),
        Value::Count(row.samples),
        row.share.map_or(Value::Missing, Value::Share),
        stall.map_or(Value::Missing, |(reason, share)| Value::Text(with_share(reason, share))),
        stall.map_or(Value::Missing, |(reason, _)| text(reason)),
        stall.map_or(Value::Missing, |(_, share)| Value::Share(share)),
        optional(row.producer.as_ref().map(|producer| producer_words(producer, row))),
        optional(row.producer.as_ref().map(|producer| address(producer.address))),
        optional(row.producer.as_ref().and_then(|producer| instruction(producer.sass.as_deref(), producer.mnemonic.as_deref()))),
        Value::count(row.executed),
        Value::count(row.threads_executed),
    ])
}

fn table(noun: &'static str, columns: Vec<Column>, rows: Vec<Row>) -> Table {
    Table { noun, columns, rows, totals: Vec::new(), hidden: 0, filtered_out: 0, empty: None, notes: Vec::new() }
}

/// These instructions of one kernel, in this order. A column that none of them fills is left out.
pub fn instructions(rows: &[&InstructionRow], source: &SourceView) -> Table {
    let mut columns = instruction_columns();
    let has_lines = source.instructions.iter().any(|row| row.line.is_some());
    for column in columns.iter_mut().filter(|column| !column.csv_only) {
        column.csv_only = match column.key {
            "line" => !has_lines,
            "waits_for" => rows.iter().all(|row| row.producer.is_none()),
            "executed" => rows.iter().all(|row| row.executed.is_none()),
            _ => false,
        };
    }
    table("samples", columns, rows.iter().map(|row| instruction_row(0, row)).collect())
}

/// Every instruction of these kernels, by number of the kernel and address: what CSV takes.
pub fn instruction_rows<'a>(kernels: impl Iterator<Item = (usize, &'a SourceView)>) -> Table {
    let rows = kernels.flat_map(|(id, source)| source.instructions.iter().map(move |row| instruction_row(id, row)));
    table("samples", instruction_columns(), rows.collect())
}

/// The source lines of one kernel that have samples, most first; all lines where there are no samples at all. Inlined code counts for
/// the line that calls it.
pub fn lines(source: &SourceView) -> Table {
    let columns = vec![
        Column::new("line", "line", Kind::Text).at_least(12),
        Column::new("samples", "samples", Kind::Count).droppable(3),
        Column::new("share_fraction", "share", Kind::Share),
        Column::new("top_stall", "top stall", Kind::Text).at_least(20).not_below(15).droppable(7),
        Column::new("instructions", "instructions", Kind::Count).droppable(1),
        Column::new("executed", "executed", Kind::Count).droppable(2).or_absent("executions: not recorded"),
        Column::new("text", "source", Kind::Text).at_least(24).or_absent("source text: not in the report (`--import-source yes` keeps it)"),
    ];
    let top = |stalls: &[StallCount], samples: u64| {
        let stall = stalls.iter().find(|stall| stall.reason != "selected");
        stall.map_or(Value::Missing, |stall| Value::Text(with_share(&stall.reason, stall.samples as f64 / samples.max(1) as f64)))
    };
    let has_samples = source.totals.samples > 0;
    let rows = source.kernel_lines.iter().filter(|row| row.samples > 0 || !has_samples).map(|row| {
        Row::new(vec![
            Value::Text(place(row.file.as_deref(), row.line).unwrap_or_else(|| "(no line)".to_owned())),
            Value::Count(row.samples),
            row.share.map_or(Value::Missing, Value::Share),
            top(&row.stalls, row.samples),
            Value::Count(row.instructions as u64),
            Value::count(row.executed),
            optional(row.text.as_ref().map(|text| text.trim().to_owned())),
        ])
    });
    table("samples", columns, rows.collect())
}
