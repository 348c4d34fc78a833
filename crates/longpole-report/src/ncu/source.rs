//! Samples by source line and by instruction.

use std::fmt::Write as _;

use super::NcuKernel;
use crate::markdown_table::markdown;
use crate::names::markdown_text;
use crate::report_header::{ReportHeader, report_markdown_header, report_text_header};
use crate::suspects::hanging;
use crate::table::Table;
use crate::text_table::{TextOptions, text};
use crate::views;

/// Said once above the tables.
const WHOSE: &str = "A stall is charged to the instruction that could not issue: the one that uses a value, not the load that is late. \
`waits for` names that load, where registers and scoreboards tell. Inlined code counts for the line that calls it.";

/// Said where nothing was recorded by instruction.
const NOTHING: &str = "nothing was recorded by instruction: add `--section SourceCounters`";

fn tables(kernel: &NcuKernel, limit: Option<usize>) -> Vec<(&'static str, Table)> {
    let Some(source) = &kernel.source else { return Vec::new() };
    let mut lines = views::ncu::lines(source);
    let mut instructions = views::ncu::instructions(&source.hottest(usize::MAX), source);
    lines.truncate(limit);
    instructions.truncate(limit);
    vec![("By source line", lines), ("By instruction", instructions)]
}

/// Samples of each kernel by line and by instruction, for a terminal.
pub fn sources_text(header: &ReportHeader<'_>, kernels: &[NcuKernel], limit: Option<usize>, options: &TextOptions) -> String {
    let style = options.style();
    let mut out = report_text_header(header, options);
    out.push('\n');
    hanging(&mut out, "", WHOSE, options);
    for kernel in kernels {
        let _ = writeln!(out, "\n{}", style.dim(&"─".repeat(options.width)));
        hanging(&mut out, "", &format!("{} {}", kernel.summary.id, kernel.short_name), options);
        if kernel.source.is_none() && kernel.summary.not_on_page.is_empty() {
            hanging(&mut out, "  ", NOTHING, options);
        }
        for (title, table) in tables(kernel, limit) {
            let _ = writeln!(out, "\n{}", style.bold(title));
            out.push_str(&text(&table, options));
        }
        for note in &kernel.source_notes {
            hanging(&mut out, "Note: ", note, options);
        }
    }
    out
}

/// The same as Markdown.
pub fn sources_markdown(header: &ReportHeader<'_>, kernels: &[NcuKernel], limit: Option<usize>) -> String {
    let mut out = report_markdown_header(header);
    let _ = writeln!(out, "\n{}", markdown_text(WHOSE));
    for kernel in kernels {
        let _ = writeln!(out, "\n### {} {}", kernel.summary.id, markdown_text(&kernel.short_name));
        if kernel.source.is_none() && kernel.summary.not_on_page.is_empty() {
            let _ = writeln!(out, "\n_{}_", markdown_text(NOTHING));
        }
        for (title, table) in tables(kernel, limit) {
            let _ = writeln!(out, "\n#### {title}\n\n{}", markdown(&table).trim_end());
        }
        for note in &kernel.source_notes {
            let _ = writeln!(out, "\n**Note:** {}", markdown_text(note));
        }
    }
    out
}
