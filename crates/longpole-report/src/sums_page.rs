//! The first page of a source that holds sums alone: totals, kernels, families, scopes, and the report of five lines.

use std::fmt::Write as _;

use longpole_analysis::SumsTriage;
use longpole_trace::{Ns, Trace};

use crate::header::{Header, markdown_header, text_header};
use crate::names::{markdown_text, printable};
use crate::table::Table;
use crate::text_table::TextOptions;
use crate::triage_page::{Page, end_markdown, end_text, lines_of, report, shown_report};
use crate::trust::Trust;
use crate::units::{plural, time};
use crate::views::{self, RangeLayout, device_label};

/// Labels, values and what goes with them.
fn totals(result: &SumsTriage, trace: &Trace) -> Vec<(String, String)> {
    let calls = |calls: Option<u64>| calls.map_or_else(|| "calls not counted".to_owned(), |calls| plural(calls, "call", "calls"));
    let mut lines = Vec::new();
    lines.push((
        "CUDA".to_owned(),
        match (result.cuda_ns, result.regions_in_cycles) {
            (None, 0) => "– no device time was recorded".to_owned(),
            (None, regions) => format!("– clock cycles of {} were counted, and no time", plural(regions, "region", "regions")),
            (Some(all), _) => format!("{} in {}", time(all), calls(result.calls)),
        },
    ));
    if result.devices.len() > 1 {
        lines.extend(result.devices.iter().map(|device| {
            let label = device.device.map_or_else(|| "device not said".to_owned(), |id| device_label(trace, id));
            (format!("  {label}"), format!("{} in {}", device.cuda_ns.map_or_else(|| "–".to_owned(), time), calls(device.calls)))
        }));
    }
    lines
}

/// The tables with their titles; families keep all rows, the others their head.
fn tables(result: &SumsTriage, trace: &Trace, page: &Page<'_>, full_names: bool) -> Vec<(&'static str, Table)> {
    let total = result.cuda_ns.unwrap_or(Ns::ZERO);
    let mut kernels = views::kernel_sums(&result.kernels, total, full_names);
    if let Some(column) = page.sorted_by {
        kernels.keep(column);
    }
    kernels.truncate(page.limit);
    let title = if kernels.noun == "layers" { "Layers" } else { "Kernels" };
    let scopes = views::scope_sums(&result.scopes, trace, total, RangeLayout::Tree, page.limit);
    let tables = [(title, kernels), ("Kernel families", views::family_sums(&result.families)), ("Ranges", scopes)];
    tables.into_iter().filter(|(_, table)| !table.rows.is_empty()).collect()
}

fn filter_note(page: &Page<'_>) -> Option<String> {
    page.filter.map(|pattern| format!("--filter {pattern} applies to the tables; totals and report are not filtered"))
}

/// The page for a terminal.
pub fn sums_text(
    header: &Header<'_>,
    result: &SumsTriage,
    trace: &Trace,
    page: &Page<'_>,
    full_names: bool,
    options: &TextOptions,
) -> String {
    let style = options.style();
    let mut out = text_header(header, options);
    let _ = writeln!(out, "\n{}", style.bold("Totals"));
    for (label, value) in totals(result, trace) {
        let _ = writeln!(out, "  {label}  {}", printable(&value));
    }
    end_text(&mut out, filter_note(page), tables(result, trace, page, full_names), options);
    out.push_str(&shown_report(&result.report, header.trust, options));
    out
}

/// The report alone: exactly five lines.
pub fn sums_report_lines(result: &SumsTriage, trust: &Trust, options: &TextOptions) -> String {
    lines_of(&result.report, trust, options)
}

/// The page as Markdown.
pub fn sums_markdown(header: &Header<'_>, result: &SumsTriage, trace: &Trace, page: &Page<'_>, full_names: bool) -> String {
    let mut out = markdown_header(header);
    out.push_str("\n### Report\n\n");
    for (head, text) in report(&result.report, header.trust) {
        let _ = writeln!(out, "- **{head}** {}", markdown_text(&text));
    }
    out.push_str("\n### Totals\n\n");
    for (label, value) in totals(result, trace) {
        let _ = writeln!(out, "- **{}:** {}", markdown_text(label.trim_start()), markdown_text(&value));
    }
    end_markdown(&mut out, filter_note(page), tables(result, trace, page, full_names));
    out
}
