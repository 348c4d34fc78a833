//! Benchmarks: what a suite has, what was measured, two runs beside each other.

use super::text;
use crate::bench::{BenchCompared, BenchComparison, BenchList, BenchPeaks, BenchReport, BenchRow, BenchSource};
use crate::blocks::Block;
use crate::names::ellipsis;
use crate::table::{Column, Kind, Row, Table, Value};
use crate::units::{count, decimal, flop_rate, percent, plural, rate};

/// Notes of single benchmarks that are shown; the JSON has all.
const NOTES_SHOWN: usize = 12;

/// Longest note, in columns.
const NOTE_COLUMNS: usize = 400;

/// A time with four digits that count: `2.345 us`.
pub(super) fn precise(ps: i64) -> String {
    const UNITS: [(f64, &str); 4] = [(1e3, "ns"), (1e6, "us"), (1e9, "ms"), (1e12, "s")];
    let ps = ps as f64;
    // A unit is left where rounding would give 1000 of it.
    let (size, unit) = UNITS.into_iter().find(|(size, _)| ps.abs() < 999.95 * size).unwrap_or(UNITS[3]);
    let value = ps / size;
    let decimals = match value.abs() {
        below if below < 9.9995 => 3,
        below if below < 99.995 => 2,
        _ => 1,
    };
    format!("{value:.decimals$} {unit}")
}

fn median(ps: Option<i64>) -> Value {
    ps.map_or(Value::Missing, |ps| Value::Text(precise(ps)))
}

fn table(noun: &'static str, columns: Vec<Column>, rows: Vec<Row>, limit: Option<usize>) -> Table {
    let mut table = Table { noun, columns, rows, totals: Vec::new(), hidden: 0, filtered_out: 0, empty: None, notes: Vec::new() };
    table.truncate(limit);
    table
}

/// What a whole-number rate is as an amount: absent where it is none.
fn amount(value: Option<f64>) -> Value {
    value.filter(|value| value.is_finite() && *value >= 0.0).map_or(Value::Missing, |value| Value::Amount(value as u64))
}

fn flag(value: Option<bool>) -> Value {
    value.map_or(Value::Missing, |value| text(if value { "true" } else { "false" }))
}

/// Clocks, as far as they are known.
fn clocks(source: &BenchSource) -> Option<String> {
    let sm = source.sm_clock_mhz.map(
        |(median, low, high)| {
            if low == high { format!("SM {median} MHz") } else { format!("SM {median} MHz ({low} to {high})") }
        },
    );
    let memory = source.memory_clock_mhz.map(|clock| format!("memory {clock} MHz"));
    let both: Vec<String> = sm.into_iter().chain(memory).collect();
    (!both.is_empty()).then(|| both.join(", "))
}

fn facts(source: &BenchSource) -> Vec<(&'static str, String)> {
    let suite = source.suite_version.as_ref().map_or_else(|| source.suite.clone(), |version| format!("{} {version}", source.suite));
    let device = source.device.as_ref().map(|device| {
        let driver = source.driver.as_ref().map(|driver| format!(", driver {driver}")).unwrap_or_default();
        let cuda = source.cuda.as_ref().map(|cuda| format!(", CUDA {cuda}")).unwrap_or_default();
        format!("{device}{driver}{cuda}")
    });
    let mut facts = vec![("suite", suite)];
    facts.extend(device.map(|device| ("device", device)));
    facts.extend(clocks(source).map(|clocks| ("clocks", clocks)));
    facts.extend(source.path.clone().map(|path| ("saved", path)));
    if !source.complete {
        facts.push(("partial", "the run ended before everything was measured".to_owned()));
    }
    facts
}

fn notes(rows: impl Iterator<Item = (String, String)>) -> Option<Block> {
    let all: Vec<String> =
        rows.map(|(key, note)| ellipsis(&format!("{key}: {}", note.replace('\n', " ")), NOTE_COLUMNS).into_owned()).collect();
    let more = all.len().saturating_sub(NOTES_SHOWN);
    let more = (more > 0).then(|| format!("and {} more notes; --json has all", count(more as u64)));
    (!all.is_empty()).then(|| Block::Notes(all.into_iter().take(NOTES_SHOWN).chain(more).collect()))
}

/// What a suite can measure.
pub fn bench_list(list: &BenchList, limit: Option<usize>) -> Vec<Block> {
    let version = list.suite_version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
    let shown = plural(list.rows.len() as u64, "benchmark", "benchmarks");
    let of = if list.rows.len() as u64 == list.total { String::new() } else { format!(" of {}", count(list.total)) };
    vec![Block::Heading(format!("{}{version}", list.suite), format!("{shown}{of}")), Block::Table(bench_list_table(list, limit))]
}

/// The same as one table, for CSV.
pub fn bench_list_table(list: &BenchList, limit: Option<usize>) -> Table {
    let columns = vec![
        Column::new("key", "key", Kind::Text).at_least(24),
        Column::new("model", "model", Kind::Text).in_csv_only(),
        Column::new("op", "op", Kind::Text).in_csv_only(),
        Column::new("phase", "phase", Kind::Text).in_csv_only(),
        Column::new("shape", "shape", Kind::Text).at_least(12).droppable(1),
        Column::new("bytes", "bytes a run", Kind::Bytes).droppable(3).or_absent("bytes a run: the suite does not say"),
        Column::new("flops", "work a run", Kind::Flops).droppable(2).or_absent("work a run: the suite does not say"),
    ];
    let rows = list.rows.iter().map(|row| {
        let shape = row.shape.as_ref().map(|shape| shape.iter().map(|(name, size)| format!("{name}={size}")).collect::<Vec<_>>().join(" "));
        Row::new(vec![
            Value::Text(row.key.clone()),
            Value::Text(row.model.clone()),
            Value::Text(row.op.clone()),
            Value::name(row.phase.as_deref()),
            Value::name(shape.as_deref()),
            Value::bytes(row.bytes.and_then(|bytes| i64::try_from(bytes).ok())),
            Value::amount(row.flops),
        ])
    });
    table("benchmarks", columns, rows.collect(), limit)
}

/// What is wrong with a benchmark, in a word; empty if nothing is.
fn state(row: &BenchRow) -> &'static str {
    match (row.failed.is_some(), row.correct) {
        (true, _) => "FAILED",
        (false, Some(false)) => "WRONG",
        _ => "",
    }
}

/// What was measured, as one table.
pub fn bench_table(report: &BenchReport, limit: Option<usize>) -> Table {
    let columns = vec![
        Column::new("key", "key", Kind::Text).at_least(24),
        Column::new("median", "median", Kind::Quantity).not_in_csv(),
        Column::new("median_ps", "median", Kind::Count).in_csv_only(),
        Column::new("spread_fraction", "spread", Kind::Share).droppable(5),
        Column::new("samples", "samples", Kind::Count).droppable(4),
        Column::new("processes", "processes", Kind::Count).in_csv_only(),
        Column::new("throttled", "throttled", Kind::Count).droppable(3),
        Column::new("bytes_per_s", "moved", Kind::Rate).or_absent("moved: the suite does not say how many bytes"),
        Column::new("flops_per_s", "computed", Kind::FlopRate).or_absent("computed: the suite does not say how many operations"),
        Column::new("peak_fraction", "of peak", Kind::Share).or_absent("of peak: `longpole bench peaks` measures what shares are of"),
        Column::new("peak_of", "peak of", Kind::Text).at_least(4).droppable(1),
        Column::new("l2", "L2", Kind::Text).at_least(4).droppable(0),
        Column::new("method", "method", Kind::Text).in_csv_only(),
        Column::new("correct", "correct", Kind::Text).in_csv_only(),
        Column::new("state", "", Kind::Text).at_least(6),
    ];
    let rows = report.rows.iter().map(|row| {
        let is_measured = row.median_ps.is_some();
        Row::new(vec![
            Value::Text(row.key.clone()),
            median(row.median_ps),
            Value::count(row.median_ps.and_then(|ps| u64::try_from(ps).ok())),
            row.spread_fraction.map_or(Value::Missing, Value::Share),
            if is_measured { Value::Count(row.samples) } else { Value::Missing },
            if is_measured { Value::Count(row.processes) } else { Value::Missing },
            Value::count(row.throttled),
            Value::rate(row.bytes_per_s),
            amount(row.flops_per_s),
            row.peak.as_ref().map_or(Value::Missing, |peak| Value::Share(peak.fraction)),
            Value::name(row.peak.as_ref().map(|peak| peak.of.as_str())),
            Value::name(row.l2),
            Value::name(row.method),
            flag(row.correct),
            text(state(row)),
        ])
    });
    let mut columns = columns;
    let hide = |columns: &mut Vec<Column>, key: &str| {
        columns.iter_mut().filter(|column| column.key == key).for_each(|column| column.csv_only = true);
    };
    // Columns that would say the same in every row, or nothing.
    if report.rows.iter().all(|row| state(row).is_empty()) {
        hide(&mut columns, "state");
    }
    if report.rows.iter().all(|row| row.throttled.is_none_or(|throttled| throttled == 0)) {
        hide(&mut columns, "throttled");
    }
    if report.rows.iter().all(|row| row.peak.is_none()) {
        hide(&mut columns, "peak_of");
    }
    if report.rows.iter().filter_map(|row| row.l2).all(|l2| l2 == "cold") {
        hide(&mut columns, "l2");
    }
    // What was not measured has no rate, whatever the suite says of it, and what has no rate is no share of a peak.
    if report.rows.iter().all(|row| row.median_ps.is_none()) {
        for key in ["median", "bytes_per_s", "flops_per_s", "peak_fraction"] {
            hide(&mut columns, key);
        }
    }
    let is_rated = report.rows.iter().any(|row| row.bytes_per_s.is_some() || row.flops_per_s.is_some());
    if !is_rated || (report.peaks.is_some() && report.rows.iter().all(|row| row.peak.is_none())) {
        hide(&mut columns, "peak_fraction");
    }
    table("benchmarks", columns, rows.collect(), limit)
}

/// What was measured, as a report of several parts.
pub fn bench(report: &BenchReport, limit: Option<usize>) -> Vec<Block> {
    let failed = report.rows.iter().filter(|row| row.failed.is_some()).count();
    let measured = plural((report.rows.len() - failed) as u64, "benchmark", "benchmarks");
    let aside = if failed == 0 { measured } else { format!("{measured} measured, {failed} failed") };
    let mut blocks = vec![Block::Heading("Benchmarks".to_owned(), aside), Block::Facts(facts(&report.source))];
    blocks.push(Block::Table(bench_table(report, limit)));
    let of_row = report.rows.iter().flat_map(|row| {
        let wrong = (row.correct == Some(false)).then(|| "the result is wrong, so the time says nothing".to_owned());
        let all: Vec<String> = row.failed.iter().cloned().chain(wrong).chain(row.notes.iter().cloned()).collect();
        all.into_iter().map(|note| (row.key.clone(), note))
    });
    blocks.extend(notes(of_row));
    let throttled: u64 = report.rows.iter().filter_map(|row| row.throttled).sum();
    let mut said = report.notes.clone();
    if throttled > 0 {
        let all: u64 = report.rows.iter().filter(|row| row.throttled.is_some()).map(|row| row.samples).sum();
        said.push(format!(
            "{} of {} samples were taken while the device held its clocks down; they are marked and counted in",
            count(throttled),
            count(all)
        ));
    }
    if report.rows.iter().any(|row| row.peak.is_some()) {
        said.extend(report.peaks.as_ref().map(|peaks| format!("shares are of the measured peaks in {peaks}")));
    } else if report.rows.iter().any(|row| row.bytes_per_s.is_some() || row.flops_per_s.is_some()) {
        said.extend(report.peaks.as_ref().map(|peaks| format!("no shares: {peaks} has no peak of what these benchmarks do")));
    }
    if !said.is_empty() {
        blocks.push(Block::Notes(said));
    }
    blocks
}

/// By how much: `-12.3 %`.
fn change(ratio: Option<f64>) -> Value {
    ratio.map_or(Value::Missing, |ratio| Value::Text(signed(ratio - 1.0)))
}

fn signed(share: f64) -> String {
    let sign = if share < 0.0 { "-" } else { "+" };
    // Differences of a few per mille matter here.
    let shown = if share.abs() < 0.1 { format!("{:.2}", share.abs() * 100.0) } else { percent(share.abs()) };
    format!("{sign}{shown} %")
}

/// Why there is no verdict.
fn why(row: &BenchCompared, doubt: &str) -> &'static str {
    match doubt {
        "too_few_samples" => "too few samples",
        "throttled" => "one side was throttled and the other was not",
        "not_a_time" => "a time of zero",
        "measured_differently" => "the two were measured in different ways",
        // The samples agree; what they do not show is how much of it comes from being two processes.
        _ if row.within_processes => "two processes of the same build may differ by as much; processes that take turns would tell",
        _ => "too noisy for the number of samples",
    }
}

/// Two runs, as one table.
pub fn bench_compare_table(comparison: &BenchComparison, limit: Option<usize>) -> Table {
    let columns = vec![
        Column::new("key", "key", Kind::Text).at_least(24),
        Column::new("before", "before", Kind::Quantity).not_in_csv().droppable(6),
        Column::new("after", "after", Kind::Quantity).not_in_csv().droppable(7),
        Column::new("before_ps", "before", Kind::Count).in_csv_only(),
        Column::new("after_ps", "after", Kind::Count).in_csv_only(),
        Column::new("change", "change", Kind::Quantity).not_in_csv(),
        Column::new("interval", "99 % interval", Kind::Quantity).not_in_csv().droppable(4),
        Column::new("ratio", "ratio", Kind::Text).in_csv_only(),
        Column::new("ratio_low", "from", Kind::Text).in_csv_only(),
        Column::new("ratio_high", "to", Kind::Text).in_csv_only(),
        Column::new("smallest_effect_fraction", "could show", Kind::Share).droppable(3),
        Column::new("rounds", "rounds", Kind::Count).droppable(2),
        Column::new("samples_before", "samples before", Kind::Count).in_csv_only(),
        Column::new("samples_after", "samples after", Kind::Count).in_csv_only(),
        Column::new("clock", "SM clock", Kind::Quantity).droppable(5).not_in_csv(),
        Column::new("verdict", "verdict", Kind::Text).at_least(9),
    ];
    let clock = |row: &BenchCompared| match (row.before.sm_clock_mhz, row.after.sm_clock_mhz) {
        (Some(before), Some(after)) if before == after => Value::Text(format!("{after} MHz")),
        (Some(before), Some(after)) => Value::Text(format!("{before} to {after} MHz")),
        _ => Value::Missing,
    };
    let exact = |value: Option<f64>| value.map_or(Value::Missing, |value| Value::Text(format!("{value:.6}")));
    let rows = comparison.rows.iter().map(|row| {
        let interval = row.interval.map(|(low, high)| format!("{} to {}", signed(low - 1.0), signed(high - 1.0)));
        Row::new(vec![
            Value::Text(row.key.clone()),
            median(Some(row.before.median_ps)),
            median(Some(row.after.median_ps)),
            Value::Count(row.before.median_ps.unsigned_abs()),
            Value::Count(row.after.median_ps.unsigned_abs()),
            change(row.ratio),
            Value::name(interval.as_deref()),
            exact(row.ratio),
            exact(row.interval.map(|(low, _)| low)),
            exact(row.interval.map(|(_, high)| high)),
            row.smallest_effect.map_or(Value::Missing, |(more, _)| Value::Share(more)),
            if row.rounds > 0 { Value::Count(row.rounds) } else { Value::Missing },
            Value::Count(row.before.samples),
            Value::Count(row.after.samples),
            clock(row),
            text(row.verdict),
        ])
    });
    let mut columns = columns;
    let has_rounds = comparison.rows.iter().any(|row| row.rounds > 0);
    for column in columns.iter_mut().filter(|column| column.key == "rounds") {
        column.csv_only |= !has_rounds;
    }
    let mut rows: Vec<Row> = rows.collect();
    // Clocks that stayed as they were need no column.
    let differ = |row: &BenchCompared| row.before.sm_clock_mhz != row.after.sm_clock_mhz;
    if let Some(at) = columns.iter().position(|column| column.key == "clock").filter(|_| !comparison.rows.iter().any(differ)) {
        columns.remove(at);
        for row in &mut rows {
            row.cells.remove(at);
        }
    }
    table("benchmarks", columns, rows, limit)
}

/// Verdicts with their numbers, worst first: `1 SLOWER, 3 SAME`.
fn verdicts(comparison: &BenchComparison) -> String {
    let said: Vec<String> = ["SLOWER", "FASTER", "SAME", "AMBIGUOUS"]
        .into_iter()
        .map(|verdict| (verdict, comparison.count_of(verdict)))
        .filter(|(_, number)| *number > 0)
        .map(|(verdict, number)| format!("{number} {verdict}"))
        .collect();
    if said.is_empty() { "nothing to compare".to_owned() } else { said.join(", ") }
}

fn in_one_line(source: &BenchSource) -> String {
    let revision = source.revision.as_ref().map(|revision| format!(" · {revision}{}", if source.dirty == Some(true) { "+" } else { "" }));
    let path = source.path.as_ref().map(|path| format!(" · {path}")).unwrap_or_default();
    format!("{}{}{path}", source.date, revision.unwrap_or_default())
}

/// Two runs, as a report of several parts.
pub fn bench_compare(comparison: &BenchComparison, limit: Option<usize>) -> Vec<Block> {
    let (before, after) = (&comparison.before, &comparison.after);
    let device = after.device.clone().or_else(|| before.device.clone()).unwrap_or_else(|| "unknown".to_owned());
    let mut said = vec![("before", in_one_line(before)), ("after", in_one_line(after)), ("device", device)];
    if let Some((keys, rounds)) = comparison.again {
        let keys = plural(keys, "benchmark", "benchmarks");
        said.push(("again", format!("{keys} in doubt measured in {}", plural(rounds, "more process a side", "more processes a side"))));
    }
    let mut blocks = vec![Block::Heading("Compared".to_owned(), verdicts(comparison)), Block::Facts(said)];
    if !comparison.flags.is_empty() {
        blocks.push(Block::Title("Not the same besides times"));
        blocks.push(Block::Notes(comparison.flags.clone()));
    }
    if !comparison.rows.is_empty() {
        let mut table = bench_compare_table(comparison, limit);
        table.notes.push("could show: the smallest increase that would have got a verdict from such samples".to_owned());
        blocks.push(Block::Table(table));
    }
    let of_rows = comparison.rows.iter().flat_map(|row| {
        let doubt = row.doubt.map(|doubt| format!("no verdict: {}", why(row, doubt)));
        let all: Vec<String> = doubt.into_iter().chain(row.notes.iter().cloned()).collect();
        all.into_iter().map(|note| (row.key.clone(), note))
    });
    let of_unpaired = comparison.unpaired.iter().map(|row| {
        let side = match (row.in_before, row.in_after) {
            (true, false) => "only before",
            (false, true) => "only after",
            _ => "on neither side",
        };
        (row.key.clone(), row.why.as_ref().map_or_else(|| side.to_owned(), |why| format!("{side}: {why}")))
    });
    blocks.extend(notes(of_rows.chain(of_unpaired)));
    blocks
}

/// The peaks of a device.
pub fn bench_peaks(peaks: &BenchPeaks) -> Vec<Block> {
    let mut facts = Vec::new();
    for peak in &peaks.rows {
        let value = if peak.kind == "copy_bytes_per_s" { rate(peak.value) } else { flop_rate(peak.value as u64) };
        let what = peak.dtype.as_ref().map_or_else(|| "copy, read + written".to_owned(), |dtype| format!("matrix product, {dtype}"));
        facts.push(("peak", format!("{value} ({what})")));
    }
    let taken = |path: &String| {
        let by_run = if peaks.is_usual { "`bench run` by itself".to_owned() } else { format!("`longpole bench run --peaks {path}`") };
        ("saved", format!("{path}; `longpole roofline --peaks {path}` takes it, and {by_run}"))
    };
    facts.extend(peaks.path.as_ref().map(taken));
    let driver = peaks.driver.as_ref().map(|driver| format!("driver {driver}")).unwrap_or_default();
    vec![Block::Heading(peaks.device.clone().unwrap_or_else(|| "unknown device".to_owned()), driver), Block::Facts(facts)]
}

/// The same as a table, for CSV.
pub fn bench_peaks_table(peaks: &BenchPeaks) -> Table {
    let columns = vec![
        Column::new("kind", "kind", Kind::Text),
        Column::new("dtype", "type", Kind::Text),
        Column::new("value_per_s", "a second", Kind::Text),
    ];
    let rows = peaks
        .rows
        .iter()
        .map(|peak| Row::new(vec![text(peak.kind), Value::name(peak.dtype.as_deref()), Value::Text(decimal(peak.value).replace(',', ""))]));
    table("peaks", columns, rows.collect(), None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_keep_four_digits() {
        let shown: Vec<String> = [0, 12, 2_345_678, 999_960_000, 12_345_600_000, 812_449_000, 3_000_000_000_000].map(precise).into();
        assert_eq!(shown, ["0.000 ns", "0.012 ns", "2.346 us", "1.000 ms", "12.35 ms", "812.4 us", "3.000 s"]);
    }

    fn report(rows: Vec<BenchRow>, peaks: Option<&str>) -> String {
        let report = BenchReport { rows, peaks: peaks.map(str::to_owned), ..BenchReport::default() };
        crate::blocks::blocks_markdown(&bench(&report, None)).replace('\\', "")
    }

    #[test]
    fn what_is_not_there_is_blamed_on_the_suite_where_it_is_to_blame() {
        let failed = BenchRow { key: "a".to_owned(), failed: Some("no".to_owned()), ..BenchRow::default() };
        let page = report(vec![failed.clone()], None);
        assert!(page.contains("FAILED") && !page.contains("does not say") && !page.contains("of peak"), "{page}");
        let measured = BenchRow { key: "b".to_owned(), median_ps: Some(5), ..BenchRow::default() };
        let page = report(vec![failed, measured.clone()], None);
        assert!(page.contains("moved: the suite does not say how many bytes") && !page.contains("of peak"), "{page}");
        let rated = BenchRow { bytes_per_s: Some(1e9), ..measured };
        assert!(report(vec![rated.clone()], None).contains("of peak: `longpole bench peaks` measures what shares are of"));
        let page = report(vec![rated], Some("p.json"));
        assert!(page.contains("no shares: p.json has no peak") && !page.contains("of peak"), "{page}");
    }

    #[test]
    fn only_the_usual_file_of_peaks_is_found() {
        let said = |is_usual| {
            let peaks = BenchPeaks { path: Some("h200.json".to_owned()), is_usual, ..BenchPeaks::default() };
            crate::blocks::blocks_markdown(&bench_peaks(&peaks)).replace('\\', "")
        };
        assert!(said(true).contains("`bench run` by itself"));
        assert!(said(false).contains("`longpole bench run --peaks h200.json`") && !said(false).contains("by itself"));
    }

    #[test]
    fn changes_carry_their_sign() {
        assert_eq!(
            [signed(0.0), signed(-0.00321), signed(0.0321), signed(-0.5), signed(2.0)],
            ["+0.00 %", "-0.32 %", "+3.21 %", "-50.0 %", "+200.0 %"]
        );
    }
}
