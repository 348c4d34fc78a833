//! All launches of a report: by name, by family, and one by one.

use std::fmt::Write as _;

use crate::markdown_table::markdown;
use crate::report_header::{ReportHeader, report_markdown_header, report_text_header};
use crate::table::Table;
use crate::text_table::{TextOptions, text};

fn sections(tables: Vec<(&'static str, Table)>) -> impl Iterator<Item = (&'static str, Table)> {
    // Nothing at all is said once, by the first of the tables.
    tables.into_iter().enumerate().filter(|(at, (_, table))| *at == 0 || !table.rows.is_empty()).map(|(_, section)| section)
}

/// Tables with their titles, for a terminal.
pub fn tables_text(header: &ReportHeader<'_>, tables: Vec<(&'static str, Table)>, options: &TextOptions) -> String {
    let mut out = report_text_header(header, options);
    for (title, table) in sections(tables) {
        let _ = writeln!(out, "\n{}", options.style().bold(title));
        out.push_str(&text(&table, options));
    }
    out
}

/// The same as Markdown.
pub fn tables_markdown(header: &ReportHeader<'_>, tables: Vec<(&'static str, Table)>) -> String {
    let mut out = report_markdown_header(header);
    for (title, table) in sections(tables) {
        let _ = writeln!(out, "\n### {title}\n\n{}", markdown(&table).trim_end());
    }
    out
}
