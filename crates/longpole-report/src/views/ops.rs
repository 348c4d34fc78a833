//! The operator table.

use longpole_analysis::{GroupBy, OpRow, OpTable};
use longpole_trace::Recorder;

use super::{sum, text, total_label};
use crate::table::{Column, Kind, Row, Table, Value};

/// The operator table; `by` says whether shapes or frames are shown. Shares are of the device time of the whole scope.
pub fn ops(table: &OpTable, by: GroupBy, recorder: Recorder) -> Table {
    let advice = recorder.advice();
    let shape = by == GroupBy::Shape;
    let mut columns = vec![
        Column::new("name", "operator", Kind::Text).at_least(28).not_below(24),
        Column::new("calls", "calls", Kind::Count).droppable(8),
        Column::new("self_cpu_ns", "self CPU", Kind::Time).in_unit_of("cpu").droppable(9),
        Column::new("cpu_ns", "CPU", Kind::Time).in_unit_of("cpu").droppable(7),
        Column::new("self_cuda_ns", "self CUDA", Kind::Time).in_unit_of("cuda").droppable(10).or_absent(advice.no_device_times),
        Column::new("self_cuda_share_fraction", "share", Kind::Share).droppable(5).or_absent(advice.no_device_times),
        Column::new("cuda_ns", "CUDA", Kind::Time).in_unit_of("cuda").droppable(6).or_absent(advice.no_device_times),
        Column::new("self_cuda_mem_bytes", "self CUDA mem", Kind::Bytes).in_unit_of("cuda mem").droppable(4).or_absent(advice.no_memory),
        Column::new("cuda_mem_bytes", "CUDA mem", Kind::Bytes).in_unit_of("cuda mem").droppable(3).or_absent(advice.no_memory),
        Column::new("self_cpu_mem_bytes", "self CPU mem", Kind::Bytes).in_unit_of("cpu mem").droppable(1).or_absent(advice.no_memory),
        Column::new("cpu_mem_bytes", "CPU mem", Kind::Bytes).in_unit_of("cpu mem").droppable(2).or_absent(advice.no_memory),
    ];
    if shape {
        columns.insert(
            1,
            // Its beginning and end still tell most calls apart, which a few letters of a name do not.
            Column::new("shapes", "input shapes", Kind::Text).at_least(36).not_below(16).or_absent(advice.no_shapes),
        );
    }
    if matches!(by, GroupBy::Stack(_)) {
        columns.push(Column::new("stack", "stack", Kind::Text).in_csv_only());
    }
    let total_cuda = table.self_cuda_total_ns;
    let row = |op: &OpRow| {
        let mut cells = vec![
            text(&op.name),
            Value::Count(op.calls),
            Value::time(op.self_cpu_ns),
            Value::time(op.cpu_ns),
            Value::time(op.self_cuda_ns),
            Value::share(op.self_cuda_ns, total_cuda),
            Value::time(op.cuda_ns),
            Value::bytes(op.self_cuda_mem_bytes),
            Value::bytes(op.cuda_mem_bytes),
            Value::bytes(op.self_cpu_mem_bytes),
            Value::bytes(op.cpu_mem_bytes),
        ];
        if shape {
            cells.insert(1, op.shapes.as_deref().map_or(Value::Missing, text));
        }
        let frames = op.stack.clone().unwrap_or_default();
        if matches!(by, GroupBy::Stack(_)) {
            cells.push(if op.stack.is_some() { Value::Text(frames.join("; ")) } else { Value::Missing });
        }
        Row { cells, depth: 0, lines: frames }
    };
    let rows: Vec<_> = table.rows.iter().map(row).collect();
    let cuda = sum(table.rows.iter().map(|r| r.self_cuda_ns));
    let mut total = vec![
        total_label(rows.len(), "row", "rows"),
        Value::Blank,
        Value::time(sum(table.rows.iter().map(|r| r.self_cpu_ns))),
        Value::Blank,
        cuda.map_or(Value::Blank, Value::Time),
        cuda.map_or(Value::Blank, |_| Value::share(cuda, total_cuda)),
        Value::Blank,
        // Sums of inclusive columns would count children again.
        sum(table.rows.iter().map(|r| r.self_cuda_mem_bytes)).map_or(Value::Blank, Value::Bytes),
        Value::Blank,
        sum(table.rows.iter().map(|r| r.self_cpu_mem_bytes)).map_or(Value::Blank, Value::Bytes),
        Value::Blank,
    ];
    if shape {
        total.insert(1, Value::Blank);
    }
    total.resize(columns.len(), Value::Blank);
    let mut notes = Vec::new();
    if matches!(by, GroupBy::Stack(_)) && !table.rows.is_empty() && table.rows.iter().all(|op| op.stack.is_none()) {
        notes.push(advice.no_stacks.to_owned());
    }
    Table { noun: "operators", columns, rows, totals: vec![Row::new(total)], hidden: 0, filtered_out: 0, empty: None, notes }
}
