//! GitHub Markdown tables.

use std::fmt::Write as _;

use crate::names::markdown_text;
use crate::table::{Kind, Row, Table, Value};
use crate::text_table::{closing_notes, heading_unit, number};

/// The table as GitHub Markdown, with its total line and notes.
pub fn markdown(table: &Table) -> String {
    let mut out = String::new();
    let (mut shown, reasons) = table.shown_columns();
    shown.retain(|&i| table.columns[i].kind != Kind::Bar);
    if table.rows.is_empty() {
        let nothing = table.nothing();
        let mut letters = nothing.chars();
        let first = letters.next().map(|letter| letter.to_ascii_uppercase());
        let _ = writeln!(out, "{}{}.", first.into_iter().collect::<String>(), letters.as_str());
    } else {
        let units: Vec<_> = shown.iter().map(|&i| heading_unit(table, i)).collect();
        let titles = shown.iter().zip(&units).map(|(&i, unit)| {
            let title = table.columns[i].title;
            if unit.label().is_empty() { title.to_owned() } else { format!("{title} ({})", unit.label()) }
        });
        let _ = writeln!(out, "| {} |", titles.collect::<Vec<_>>().join(" | "));
        let rules = shown.iter().map(|&i| if table.columns[i].kind == Kind::Text { "---" } else { "---:" });
        let _ = writeln!(out, "| {} |", rules.collect::<Vec<_>>().join(" | "));
        for (row, bold) in table.rows.iter().map(|row| (row, false)).chain(table.totals.iter().map(|row| (row, true))) {
            let cells = shown.iter().zip(&units).enumerate().map(|(at, (&i, unit))| {
                let text = match &row.cells[i] {
                    Value::Text(text) => text_cell(text, row, at == 0),
                    value => number(value, *unit),
                };
                if bold && !text.is_empty() { format!("**{text}**") } else { text }
            });
            let _ = writeln!(out, "| {} |", cells.collect::<Vec<_>>().join(" | "));
        }
    }
    let notes = closing_notes(table, &reasons, &[]);
    if !notes.is_empty() {
        out.push('\n');
    }
    for note in notes {
        let _ = writeln!(out, "_{}_  ", markdown_text(&note));
    }
    out
}

/// A name, indented by its depth, with its frames on lines of their own.
fn text_cell(text: &str, row: &Row, first: bool) -> String {
    let mut out = String::new();
    if first {
        out.push_str(&"&nbsp;&nbsp;".repeat(row.depth));
    }
    out.push_str(&markdown_text(text));
    if first {
        for line in &row.lines {
            out.push_str("<br>&nbsp;&nbsp;");
            out.push_str(&markdown_text(line));
        }
    }
    out
}
