//! Tables for a terminal: columns that fit its width, numbers right-aligned, one unit a column.
//!
//! What gives way on a narrow terminal: first the columns a reader can do without (with a line saying which), then the names,
//! which are cut in their middle. Numbers are never cut.

use std::fmt::Write as _;

use crate::names::{ellipsis, printable, width, wrap};
use crate::style::Style;
use crate::table::{Column, Kind, Row, Table, Value};
use crate::units::{Scale, byte_scale, count, decimal, flop_rate_scale, flop_scale, mean, percent, rate_scale, time_scale};

/// How text is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextOptions {
    /// Columns of the terminal.
    pub width: usize,
    /// Whether to colour.
    pub color: bool,
    /// Names whole, whatever the width.
    pub full_names: bool,
    /// Someone reads this on a terminal: long sentences are broken between words.
    pub wrap: bool,
}

impl TextOptions {
    /// The style that goes with it.
    pub const fn style(&self) -> Style {
        Style::new(self.color)
    }
}

/// Space between columns.
const GAP: usize = 2;
/// Widest bar.
const BAR: usize = 20;

/// The unit of a column.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Unit {
    /// None, or part of the text.
    Plain,
    /// Percent.
    Percent,
    /// A time or byte unit.
    Scaled(Scale),
}

impl Unit {
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Percent => "%",
            Self::Scaled(scale) => scale.label,
        }
    }
}

pub(crate) fn heading_unit(table: &Table, column: usize) -> Unit {
    match table.columns[column].kind {
        Kind::Text | Kind::Count | Kind::Bar | Kind::Number | Kind::Quantity => Unit::Plain,
        Kind::Share | Kind::Percent => Unit::Percent,
        Kind::Rate => Unit::Scaled(rate_scale(table.largest(column))),
        Kind::Time => Unit::Scaled(time_scale(table.largest(column))),
        Kind::Bytes => Unit::Scaled(byte_scale(table.largest(column))),
        Kind::Flops => Unit::Scaled(flop_scale(table.largest(column))),
        Kind::FlopRate => Unit::Scaled(flop_rate_scale(table.largest(column))),
    }
}

/// A cell that is not text.
pub(crate) fn number(value: &Value, unit: Unit) -> String {
    match (value, unit) {
        (Value::Time(ns), Unit::Scaled(scale)) => scale.show(ns.get()),
        (Value::Bytes(bytes), Unit::Scaled(scale)) => scale.show(*bytes),
        (Value::Amount(amount), Unit::Scaled(scale)) => scale.show(i64::try_from(*amount).unwrap_or(i64::MAX)),
        (Value::Share(share), _) => percent(*share),
        (Value::Mean(value), _) => mean(*value),
        (Value::Percent(value), _) => percent(*value / 100.0),
        (Value::Number(value), _) => decimal(*value),
        (Value::Rate(rate), Unit::Scaled(scale)) => scale.show(rounded(*rate)),
        (Value::Rate(rate), _) => count(rate.abs() as u64),
        (Value::Count(n) | Value::Amount(n), _) => count(*n),
        (Value::Missing, _) => "–".to_owned(),
        (Value::Blank, _) => String::new(),
        (Value::Text(text), _) => printable(text).into_owned(),
        (Value::Time(ns), _) => count(ns.get().unsigned_abs()),
        (Value::Bytes(bytes), _) => count(bytes.unsigned_abs()),
    }
}

/// A rate as the whole number of bytes a second that a scale takes.
fn rounded(rate: f64) -> i64 {
    rate.round() as i64
}

/// A bar of at most `columns` columns, in eighths of a column.
pub(crate) fn bar(share: f64, columns: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (share.clamp(0.0, 1.0) * (columns * 8) as f64).round() as usize;
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}

/// Sentences below a table: what was left out and why.
pub(crate) fn closing_notes(table: &Table, absent: &[&str], dropped: &[&str]) -> Vec<String> {
    let mut notes = Vec::new();
    if table.hidden > 0 {
        notes.push(format!("and {} more; --limit 0 shows all", count(table.hidden as u64)));
    }
    notes.extend(absent.iter().map(|&reason| reason.to_owned()));
    if !dropped.is_empty() {
        notes.push(format!("left out to fit the width: {}", dropped.join(", ")));
    }
    notes.extend(table.notes.iter().cloned());
    notes
}

/// The cells of a column as text, before any is cut: header, rows, total.
struct Laid {
    column: usize,
    title: &'static str,
    unit: &'static str,
    text: bool,
    cells: Vec<String>,
    width: usize,
    min_width: usize,
    floor: usize,
}

fn lay_out(table: &Table, column: usize) -> Laid {
    let (heading, unit) = (&table.columns[column], heading_unit(table, column));
    let first = column == 0;
    let cells: Vec<String> = table
        .rows
        .iter()
        .chain(&table.totals)
        .map(|row| match &row.cells[column] {
            Value::Text(text) if first => format!("{}{}", "  ".repeat(row.depth), printable(text)),
            Value::Share(share) if heading.kind == Kind::Bar => bar(*share, BAR),
            value => number(value, unit),
        })
        .collect();
    let widest = cells.iter().map(|cell| width(cell)).max().unwrap_or(0);
    let title = heading.title;
    let text = matches!(heading.kind, Kind::Text | Kind::Bar);
    let (min_width, floor) = if heading.kind == Kind::Bar { (BAR, BAR) } else { (heading.min_width, heading.floor) };
    Laid { column, title, unit: unit.label(), text, min_width, floor, width: widest.max(width(title)).max(width(unit.label())), cells }
}

/// Narrowest a column may become while columns of little weight can go instead.
fn minimum(laid: &Laid) -> usize {
    if laid.text { laid.width.min(laid.min_width) } else { laid.width }
}

/// Narrowest a column may become while any other can go instead.
fn floor(laid: &Laid) -> usize {
    if laid.text { laid.width.min(laid.floor) } else { laid.width }
}

fn row_width(widths: impl Iterator<Item = usize>) -> usize {
    widths.map(|w| w + GAP).sum::<usize>().saturating_sub(GAP)
}

/// Leaves columns out until the rest fits; returns the titles of those left out.
fn drop_columns(table: &Table, laid: &mut Vec<Laid>, available: usize) -> Vec<&'static str> {
    let mut gone: Vec<Laid> = Vec::new();
    for (narrowest, heaviest) in [(minimum as fn(&Laid) -> usize, Column::LIGHT), (floor, u8::MAX)] {
        while row_width(laid.iter().map(narrowest)) > available {
            let candidates = laid.iter().enumerate().filter_map(|(at, l)| Some((table.columns[l.column].drop?, at)));
            let Some((_, at)) = candidates.filter(|&(drop, _)| drop <= heaviest).min() else { break };
            gone.push(laid.remove(at));
        }
    }
    // A wide column that went last may have made room for narrow ones that went before it.
    for at in (0..gone.len()).rev() {
        if row_width(laid.iter().map(minimum)) + GAP + minimum(&gone[at]) <= available {
            let back = gone.remove(at);
            let place = laid.partition_point(|l| l.column < back.column);
            laid.insert(place, back);
        }
    }
    gone.iter().filter(|l| table.columns[l.column].kind != Kind::Bar).map(|l| l.title).collect()
}

/// Cuts text columns until the row fits, the widest first.
fn shrink(laid: &mut [Laid], available: usize) {
    let mut excess = row_width(laid.iter().map(|l| l.width)).saturating_sub(available);
    for narrowest in [minimum as fn(&Laid) -> usize, floor] {
        while excess > 0 {
            let Some(widest) = laid.iter_mut().filter(|l| l.width > narrowest(l)).max_by_key(|l| l.width) else { break };
            widest.width -= 1;
            excess -= 1;
        }
    }
    // A terminal too narrow even for that: the name gives way to a handful of columns.
    if let Some(name) = laid.first_mut() {
        name.width -= excess.min(name.width.saturating_sub(8));
    }
}

/// With whole names a row may be wider than the terminal: numbers come first then, so that they stay in sight, and the name
/// comes last.
fn names_last(laid: &mut [Laid], available: usize) {
    if row_width(laid.iter().map(|l| l.width)) > available {
        laid.sort_by_key(|l| (l.text, l.column == 0));
    }
}

fn pad(text: &str, columns: usize, left: bool) -> String {
    let space = " ".repeat(columns.saturating_sub(width(text)));
    if left { format!("{text}{space}") } else { format!("{space}{text}") }
}

fn line(laid: &[Laid], cell: impl Fn(&Laid) -> String) -> String {
    let cells: Vec<_> = laid.iter().map(|l| pad(&ellipsis(&cell(l), l.width), l.width, l.text)).collect();
    cells.join(&" ".repeat(GAP)).trim_end().to_owned()
}

/// The table as text.
pub fn text(table: &Table, options: &TextOptions) -> String {
    let style = options.style();
    let mut out = String::new();
    let (shown, absent) = table.shown_columns();
    if table.rows.is_empty() {
        let _ = writeln!(out, "{}", table.nothing());
        for note in closing_notes(table, &absent, &[]) {
            write_note(&mut out, &note, options);
        }
        return out;
    }
    let mut laid: Vec<_> = shown.into_iter().map(|i| lay_out(table, i)).collect();
    let mut dropped = Vec::new();
    if options.full_names {
        names_last(&mut laid, options.width);
    } else {
        dropped = drop_columns(table, &mut laid, options.width);
        shrink(&mut laid, options.width);
    }
    let total_width = row_width(laid.iter().map(|l| l.width));
    let rule = style.dim(&"─".repeat(if options.full_names { total_width.min(options.width) } else { total_width }));
    let _ = writeln!(out, "{}", style.bold(&line(&laid, |l| l.title.to_owned())));
    if laid.iter().any(|l| !l.unit.is_empty()) {
        let _ = writeln!(out, "{}", style.dim(&line(&laid, |l| l.unit.to_owned())));
    }
    let _ = writeln!(out, "{rule}");
    for (at, row) in table.rows.iter().enumerate() {
        let _ = writeln!(out, "{}", line(&laid, |l| l.cells[at].clone()));
        write_lines(&mut out, row, options);
    }
    if !table.totals.is_empty() {
        let _ = writeln!(out, "{rule}");
    }
    for at in 0..table.totals.len() {
        let _ = writeln!(out, "{}", style.bold(&line(&laid, |l| l.cells[table.rows.len() + at].clone())));
    }
    for note in closing_notes(table, &absent, &dropped) {
        write_note(&mut out, &note, options);
    }
    out
}

/// A sentence below the table, broken between words.
fn write_note(out: &mut String, note: &str, options: &TextOptions) {
    for (at, line) in wrap(&printable(note), options.width.saturating_sub(2).max(20)).iter().enumerate() {
        let _ = writeln!(out, "{}{}", if at == 0 { "" } else { "  " }, options.style().dim(line));
    }
}

fn write_lines(out: &mut String, row: &Row, options: &TextOptions) {
    for text in &row.lines {
        let text = printable(text);
        let text = if options.full_names { text } else { ellipsis(&text, options.width.saturating_sub(4)).into_owned().into() };
        let _ = writeln!(out, "    {}", options.style().dim(&text));
    }
}

#[cfg(test)]
mod tests {
    use longpole_trace::Ns;

    use super::*;

    fn table() -> Table {
        let columns = vec![
            Column::new("name", "name", Kind::Text).at_least(28),
            Column::new("calls", "calls", Kind::Count),
            Column::new("cuda_ns", "CUDA", Kind::Time).droppable(1),
            Column::new("mem_bytes", "memory", Kind::Bytes).or_absent("memory was not recorded"),
        ];
        let row =
            |name: &str, calls, ns| Row::new(vec![Value::Text(name.to_owned()), Value::Count(calls), Value::Time(Ns(ns)), Value::Missing]);
        let rows = vec![row("漢字 operator with a very long name indeed", 1_234, 20_000_000), row("b\x1b[2J", 1, 1)];
        Table { noun: "rows", columns, rows, totals: Vec::new(), hidden: 3, filtered_out: 0, empty: None, notes: vec![] }
    }

    #[test]
    fn every_line_fits_and_what_is_left_out_is_said() {
        for columns in [30, 38, 44, 60, 120] {
            let out = text(&table(), &TextOptions { width: columns, color: false, full_names: false, wrap: false });
            assert!(out.lines().count() >= 6, "{out}");
            for line in out.lines() {
                assert!(width(line) <= columns, "{columns}: {line:?}");
            }
            assert!(out.contains("memory was not recorded") && out.contains("and 3 more"), "{out}");
            let unbroken = out.replace("\n  ", " ");
            assert_eq!(unbroken.contains("left out to fit the width: CUDA"), columns < 44, "{columns}: {out}");
            assert!(!out.contains('\x1b'), "{out}");
        }
    }

    #[test]
    fn one_unit_a_column_and_nothing_nonzero_is_zero() {
        let out = text(&table(), &TextOptions { width: 100, color: false, full_names: false, wrap: false });
        assert!(out.contains("20.000") && out.contains("<0.001"), "{out}");
    }

    #[test]
    fn full_names_are_whole_at_any_width_and_come_last() {
        let out = text(&table(), &TextOptions { width: 20, color: false, full_names: true, wrap: false });
        assert!(out.lines().any(|line| line.ends_with("operator with a very long name indeed")), "{out}");
        let wide = text(&table(), &TextOptions { width: 200, color: false, full_names: true, wrap: false });
        assert!(wide.lines().any(|line| line.starts_with("漢字 operator")), "{wide}");
    }

    #[test]
    fn bars_round_to_eighths() {
        assert_eq!(bar(0.0, BAR), "");
        assert_eq!(bar(1.0, BAR), "█".repeat(20));
        assert_eq!(bar(0.5, BAR), "█".repeat(10));
        assert_eq!(bar(7.0, BAR), "█".repeat(20));
        assert_eq!(bar(f64::NAN, BAR), "");
        assert_eq!(bar(0.006, BAR), "▏");
    }
}
