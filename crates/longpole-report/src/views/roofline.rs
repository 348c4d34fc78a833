//! The roofline: what each operator took beside the least it could have taken.

use std::fmt::Write as _;

use longpole_analysis::{FasterThan, NoPeaks, PeakKind, Peaks, RooflineRow, RooflineTable, UnknownWork, Verdict};
use longpole_trace::{Ns, Recorder, Trace};

use super::shapes::compact_shapes;
use super::{SharesOf, overlap_note, sum_times, text};
use crate::blocks::Block;
use crate::table::{Column, Kind, Row, Table, Value};
use crate::units::{bytes, count, flop_rate, percent, rate, time};

/// Why work is not known, in words.
fn unknown(reason: UnknownWork) -> &'static str {
    match reason {
        UnknownWork::NoOperator => "no operator owns it",
        UnknownWork::NoFormula => "no formula for it",
        UnknownWork::NoShapes => "shapes not recorded",
        UnknownWork::UnreadableShapes => "shapes not as expected",
        UnknownWork::UnknownType => "element type not recorded or not known",
        UnknownWork::MissingArgument => "an argument not recorded",
        UnknownWork::DataDependent => "depends on the data",
        UnknownWork::TooLarge => "impossibly large",
        UnknownWork::LinkTransfer => "limited by the link",
        UnknownWork::Communication => "limited by the network",
        UnknownWork::CountedInside => "counted inside it",
    }
}

/// Why there are no peaks, and what to do.
pub fn no_peaks(reason: &NoPeaks) -> String {
    let (why, whose) = match reason {
        NoPeaks::NotRecorded => ("the trace does not say what the device is".to_owned(), "its"),
        NoPeaks::UnknownDevice(name) => (format!("the peaks of `{name}` are not known here"), "its"),
        NoPeaks::SeveralKinds(names) => (format!("devices of several kinds ({}): choose one with --device", names.join(", ")), "the"),
    };
    format!("{why}; --peaks FILE gives {whose} peaks. Without peaks there are no floors.")
}

/// The peaks that rows were held against.
fn peaks_in_words(peaks: &Peaks, table: &RooflineTable) -> String {
    let mut said = format!("{}: memory {}", peaks.name, rate(peaks.memory_bytes_per_s as f64));
    let is_used = |kind: &PeakKind| table.rows.iter().any(|row| row.floor.is_some_and(|floor| floor.peak == Some(*kind)));
    for kind in PeakKind::ALL.into_iter().filter(is_used) {
        if let Some(peak) = peaks.flops_per_s(kind) {
            let _ = write!(said, ", {} {}", kind.name(), flop_rate(peak));
        }
    }
    if let Some(cache) = peaks.cache_bytes {
        let _ = write!(said, ", cache {}", bytes(i64::try_from(cache).unwrap_or(i64::MAX)));
    }
    format!("{said} ({})", peaks.source)
}

fn peaks_in_words_or_why(table: &RooflineTable, missing: Option<&NoPeaks>) -> String {
    match (&table.peaks, missing) {
        (Some(peaks), _) => peaks_in_words(peaks, table),
        (None, Some(missing)) => no_peaks(missing),
        (None, None) => String::new(),
    }
}

/// What keeps a row from being faster, or why that is not known.
fn verdict(row: &RooflineRow) -> Value {
    if let Err(reason) = row.work {
        return Value::Text(format!("? {}", unknown(reason)));
    }
    let Some(verdict) = row.verdict else { return Value::Missing };
    let bound = match verdict {
        Verdict::ComputeBound => "compute",
        Verdict::MemoryBound => "memory",
        Verdict::LaunchBound => "launch",
    };
    let faster = match row.faster_than {
        Some(FasterThan::Cache) => ", from cache",
        Some(FasterThan::Memory) => ", partly from cache",
        Some(FasterThan::Compute) => ", above peak",
        None => "",
    };
    Value::Text(format!("{bound}{faster}"))
}

/// The table of operators and shapes.
pub fn roofline_rows(table: &RooflineTable, recorder: Recorder) -> Table {
    let advice = recorder.advice();
    let no_floor = if table.peaks.is_some() {
        "floors: of no row shown are both shapes and a formula known"
    } else {
        "floors: the peaks of the device are not known"
    };
    let no_shapes = if table.rows.iter().any(|row| row.shapes.is_some()) { "shapes: the rows shown have none" } else { advice.no_shapes };
    let columns = vec![
        Column::new("name", "operator", Kind::Text).at_least(22).not_below(18),
        Column::new("shapes", "", Kind::Text).in_csv_only(),
        Column::new("shapes", "input shapes", Kind::Text).not_in_csv().at_least(20).not_below(12).droppable(7).or_absent(no_shapes),
        Column::new("types", "types", Kind::Text).in_csv_only(),
        Column::new("kernel", "kernel", Kind::Text).in_csv_only(),
        Column::new("calls", "calls", Kind::Count).droppable(8),
        Column::new("device_ns", "time", Kind::Time).in_unit_of("time"),
        Column::new("share_fraction", "share", Kind::Share).droppable(5),
        Column::new("flops_per_call", "FLOPs/call", Kind::Flops).droppable(3),
        Column::new("bytes_per_call", "bytes/call", Kind::Bytes).droppable(3),
        Column::new("floor_ns", "floor", Kind::Time).in_unit_of("time").droppable(9).or_absent(no_floor),
        Column::new("above_floor_ns", "above", Kind::Time).in_unit_of("time").droppable(4).or_absent(no_floor),
        Column::new("time_over_floor", "time/floor", Kind::Number).droppable(10).or_absent(no_floor),
        Column::new("flops_per_s", "FLOP rate", Kind::FlopRate).droppable(2),
        Column::new("bytes_per_s", "byte rate", Kind::Rate).droppable(2),
        Column::new("verdict", "bound by", Kind::Text).droppable(6),
    ];
    let rows: Vec<Row> = table
        .rows
        .iter()
        .map(|row| {
            let work = row.work.ok();
            Row::new(vec![
                text(&row.name),
                Value::name(row.shapes.as_deref()),
                row.shapes.as_deref().map_or(Value::Missing, |shapes| Value::Text(compact_shapes(shapes))),
                Value::name(row.types.as_deref()),
                Value::name(row.kernel.as_deref()),
                row.calls.map_or(Value::Missing, Value::Count),
                Value::Time(row.device_ns),
                Value::share(Some(row.device_ns), Some(table.busy_ns)),
                Value::amount(work.map(|work| work.flops)),
                Value::bytes(work.map(|work| i64::try_from(work.bytes).unwrap_or(i64::MAX))),
                Value::time(row.floor_ns),
                Value::time(row.above_floor_ns()),
                row.time_over_floor.map_or(Value::Missing, Value::Number),
                Value::amount(row.flops_per_s.map(|rate| rate.round() as u64)),
                Value::rate(row.bytes_per_s),
                verdict(row),
            ])
        })
        .collect();
    let mut total = vec![Value::Blank; columns.len()];
    total[0] = super::total_label(rows.len(), "row", "rows");
    total[5] = Value::Count(table.rows.iter().filter_map(|row| row.calls).sum());
    // Rows can overlap, so their times do not add up: this is the time in which anything ran.
    total[6] = Value::Time(table.busy_ns);
    total[10] = table.floor_ns.map_or(Value::Blank, Value::Time);
    total[11] = table.above_floor_ns.map_or(Value::Blank, Value::Time);
    let notes = overlap_note(Some(sum_times(table.rows.iter(), |row| row.device_ns)), Some(table.busy_ns), SharesOf::Busy);
    Table {
        noun: "operators",
        columns,
        rows,
        totals: vec![Row::new(total)],
        hidden: 0,
        filtered_out: 0,
        empty: None,
        notes: notes.into_iter().collect(),
    }
}

/// The whole report; `rows` is [`roofline_rows`], filtered and cut as asked.
pub fn roofline(table: &RooflineTable, missing: Option<&NoPeaks>, rows: Table, trace: &Trace) -> Vec<Block> {
    if trace.activities.is_empty() {
        return vec![Block::Heading("Roofline".to_owned(), trace.recorder.advice().no_device.to_owned())];
    }
    let of = |part: Ns| if table.busy_ns > Ns::ZERO { part.get() as f64 / table.busy_ns.get() as f64 } else { 0.0 };
    let covered = table.covered_fraction().map_or_else(String::new, |share| format!(", the work of {} % of it is known", percent(share)));
    let mut facts = vec![("device", peaks_in_words_or_why(table, missing))];
    if let (Some(floor), Some(above)) = (table.floor_ns, table.above_floor_ns) {
        facts.push((
            "floor",
            format!(
                "{} for what is known; {} above it ({} % of busy) is the most that faster kernels could win",
                time(floor),
                time(above),
                percent(of(above))
            ),
        ));
    }
    let reasons: Vec<String> = table
        .unknown
        .iter()
        .map(|of_reason| format!("{} {} ({} rows)", time(of_reason.device_ns), unknown(of_reason.reason), count(of_reason.rows)))
        .collect();
    if !reasons.is_empty() {
        facts.push(("not known", reasons.join("; ")));
    }
    vec![Block::Heading("Roofline".to_owned(), format!("{} busy{covered}", time(table.busy_ns))), Block::Facts(facts), Block::Table(rows)]
}
