//! Tables of sources that hold sums alone. Columns have the keys of the tables of traces; what sums cannot say is absent.

use longpole_analysis::{FamilySum, KernelSum, ScopeSums, WorkSum};
use longpole_trace::{AggregateKind, Ns, Trace};

use super::{RangeLayout, text, total_label};
use crate::table::{Column, Kind, Row, Table, Value};

/// Columns of declared work. Where none was declared that is said in one line, of layers not at all: nobody can declare any.
fn work_columns<'w>(works: impl Iterator<Item = &'w WorkSum>, can_be_declared: bool) -> [Column; 3] {
    let declared = works.into_iter().any(|work| work.bytes.is_some() || work.flops.is_some());
    let (flops, bytes, peak) = if declared {
        (
            "FLOP rate: no operations were declared",
            "byte rate: no bytes were declared",
            "of peak: the peaks of the device are not known, or the operations have no width",
        )
    } else {
        const NONE: &str = "rates: no bytes or operations were declared";
        (NONE, NONE, NONE)
    };
    let columns = [
        Column::new("flops_per_s", "FLOP rate", Kind::FlopRate).droppable(5).or_absent(flops),
        Column::new("bytes_per_s", "byte rate", Kind::Rate).droppable(5).or_absent(bytes),
        Column::new("floor_fraction", "of peak", Kind::Share).droppable(6).or_absent(peak),
    ];
    if can_be_declared { columns } else { columns.map(Column::in_csv_only) }
}

fn work_cells(work: &WorkSum) -> [Value; 3] {
    [
        // Larger rates than 64 bits hold come of times near nothing.
        Value::amount(work.flops_per_s.filter(|&rate| rate < 1.8e19).map(|rate| rate as u64)),
        Value::rate(work.bytes_per_s),
        work.floor_fraction.map_or(Value::Missing, Value::Share),
    ]
}

/// A column of clock cycles, which few sources count.
fn cycles_column(any: bool) -> Column {
    let column = Column::new("cycles", "cycles", Kind::Count).droppable(7);
    if any { column } else { column.in_csv_only() }
}

fn table(noun: &'static str, columns: Vec<Column>, rows: Vec<Row>, totals: Vec<Row>) -> Table {
    Table { noun, columns, rows, totals, hidden: 0, filtered_out: 0, empty: None, notes: Vec::new() }
}

/// The kernels, or layers, of a source of sums. `total` is the device time of the whole scope, which shares are of.
pub fn kernel_sums(rows: &[KernelSum], total: Ns, full_names: bool) -> Table {
    let layers = rows.iter().any(|row| row.kind == AggregateKind::Layer);
    let title = if layers { "layer" } else { "kernel" };
    let (full, short) = (Column::new("name", title, Kind::Text).at_least(28), Column::new("short_name", title, Kind::Text).at_least(28));
    let median = Column::new("median_ns", "median", Kind::Time).in_unit_of("call").droppable(3);
    let mut columns = vec![
        if full_names { full } else { short },
        if full_names { short.in_csv_only() } else { full.in_csv_only() },
        Column::new("family", "family", Kind::Text).droppable(4),
        Column::new("calls", "calls", Kind::Count).droppable(7),
        Column::new("cuda_ns", "CUDA", Kind::Time).droppable(9),
        Column::new("share_fraction", "share", Kind::Share).droppable(5),
        Column::new("average_ns", "average", Kind::Time).in_unit_of("call").droppable(4),
        if rows.iter().any(|row| row.median_ns.is_some()) { median } else { median.in_csv_only() },
        Column::new("min_ns", "", Kind::Time).in_csv_only(),
        Column::new("max_ns", "", Kind::Time).in_csv_only(),
        cycles_column(rows.iter().any(|row| row.cycles.is_some())),
        Column::new("bytes", "", Kind::Count).in_csv_only(),
        Column::new("flops", "", Kind::Count).in_csv_only(),
    ];
    columns.extend(work_columns(rows.iter().map(|row| &row.work), !layers));
    let scope = Column::new("scope", "in scope", Kind::Text).droppable(3).not_in_csv();
    columns.push(if layers { scope.in_csv_only() } else { scope });
    let width = columns.len();
    let body: Vec<Row> = rows
        .iter()
        .map(|row| {
            let (full, short) = (text(&row.name), text(&row.short_name));
            let (first, second) = if full_names { (full, short) } else { (short, full) };
            let mut cells = vec![
                first,
                second,
                text(row.family.name()),
                Value::count(row.calls),
                Value::time(row.cuda_ns),
                Value::share(row.cuda_ns, Some(total)),
                Value::time(row.average_ns),
                Value::time(row.median_ns),
                Value::Missing,
                Value::Missing,
                Value::count(row.cycles),
                Value::count(row.work.bytes),
                Value::count(row.work.flops),
            ];
            cells.extend(work_cells(&row.work));
            cells.push(match row.owners.as_slice() {
                [] => Value::Missing,
                [one] => text(&one.name),
                [first, more @ ..] => Value::Text(format!("{} +{}", first.name, more.len())),
            });
            Row::new(cells)
        })
        .collect();
    let cuda: Option<Ns> = rows.iter().filter_map(|row| row.cuda_ns).reduce(|a, b| a + b);
    let calls = rows.iter().map(|row| row.calls).try_fold(0_u64, |sum, calls| Some(sum.saturating_add(calls?)));
    let mut last = vec![Value::Blank; width];
    last[0] = total_label(body.len(), "row", "rows");
    (last[3], last[4], last[5]) = (Value::count(calls), Value::time(cuda), Value::share(cuda, Some(total)));
    table(if layers { "layers" } else { "kernels" }, columns, body, vec![Row::new(last)])
}

/// Families of a source of sums.
pub fn family_sums(rows: &[FamilySum]) -> Table {
    let columns = vec![
        Column::new("family", "family", Kind::Text),
        Column::new("calls", "calls", Kind::Count),
        Column::new("self_cuda_ns", "CUDA", Kind::Time),
        Column::new("share_fraction", "share", Kind::Share),
        Column::new("bar", "", Kind::Bar).droppable(1),
    ];
    let share = |row: &FamilySum| row.share_fraction.map_or(Value::Missing, Value::Share);
    let body: Vec<Row> = rows
        .iter()
        .map(|row| {
            let cells = vec![text(row.family.name()), Value::count(row.calls), Value::time(row.self_cuda_ns), share(row), share(row)];
            Row::new(cells)
        })
        .collect();
    let cuda: Option<Ns> = rows.iter().filter_map(|row| row.self_cuda_ns).reduce(|a, b| a + b);
    let calls = rows.iter().map(|row| row.calls).try_fold(0_u64, |sum, calls| Some(sum.saturating_add(calls?)));
    let last = vec![total_label(body.len(), "family", "families"), Value::count(calls), Value::time(cuda), Value::Blank, Value::Blank];
    table("families", columns, body, vec![Row::new(last)])
}

/// The scopes of a tree, at most `limit` of them: their time includes that of scopes inside. There is no total, since scopes nest. `total` is the
/// device time of everything, which shares are of.
pub fn scope_sums(scopes: &ScopeSums, trace: &Trace, total: Ns, layout: RangeLayout, limit: Option<usize>) -> Table {
    let shown = &scopes.rows[..limit.unwrap_or(usize::MAX).min(scopes.rows.len())];
    let host = Column::new("cpu_ns", "host", Kind::Time).droppable(3);
    let mut columns = vec![
        Column::new("name", "range", Kind::Text).at_least(28).not_in_csv(),
        Column::new("name", "", Kind::Text).in_csv_only(),
        Column::new("parents", "parents", Kind::Text).in_csv_only(),
        Column::new("depth", "depth", Kind::Count).in_csv_only(),
        Column::new("kernels", "kernels", Kind::Count).droppable(4),
        Column::new("cuda_ns", "CUDA inside", Kind::Time).in_unit_of("gpu").droppable(9),
        Column::new("share_fraction", "share", Kind::Share).droppable(7),
        Column::new("self_cuda_ns", "own CUDA", Kind::Time).in_unit_of("gpu").droppable(6),
        if shown.iter().any(|row| row.cpu_ns.is_some()) { host } else { host.in_csv_only() },
        cycles_column(shown.iter().any(|row| row.cycles.is_some())),
        Column::new("bytes", "", Kind::Count).in_csv_only(),
        Column::new("flops", "", Kind::Count).in_csv_only(),
    ];
    columns.extend(work_columns(shown.iter().map(|row| &row.work), true));
    let body = shown
        .iter()
        .map(|row| {
            let (name, parents) = (scopes.name(trace, row), scopes.parents(trace, row));
            let whole = || parents.iter().copied().chain([name]).collect::<Vec<_>>().join(" / ");
            let mut cells = vec![
                if layout == RangeLayout::Tree { text(name) } else { Value::Text(whole()) },
                text(name),
                Value::Text(parents.join(" / ")),
                Value::Count(row.depth as u64),
                Value::count(row.kernels),
                Value::time(row.cuda_ns),
                Value::share(row.cuda_ns, Some(total)),
                Value::time(row.self_cuda_ns),
                Value::time(row.cpu_ns),
                Value::count(row.cycles),
                Value::count(row.work.bytes),
                Value::count(row.work.flops),
            ];
            cells.extend(work_cells(&row.work));
            Row { cells, depth: if layout == RangeLayout::Tree { row.depth } else { 0 }, lines: Vec::new() }
        })
        .collect();
    let mut table = table("ranges", columns, body, Vec::new());
    table.hidden = scopes.rows.len() - shown.len();
    table
}
