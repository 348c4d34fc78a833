//! The first page: trust, totals, the heads of the tables, and the report of five lines.

use std::fmt::Write as _;

use longpole_analysis::{DeviceTotals, GroupBy, Report, Totals, Triage};
use longpole_trace::{Ns, Recorder, Trace};

use crate::header::{Header, markdown_header, text_header};
use crate::markdown_table::markdown;
use crate::names::{markdown_text, printable, width, wrap};
use crate::suspects::{hanging, host_clock_text, questions_text, suspects_markdown, suspects_text};
use crate::table::{NOTHING_MATCHES, Table};
use crate::text_table::{TextOptions, text};
use crate::trust::{Grade, Trust};
use crate::units::{count, percent, plural, time};
use crate::views;

/// The heads of the five lines, in order.
const HEADS: [&str; 5] = ["Workload:", "Hardware:", "Top CUDA time:", "Top CPU / orchestration cost:", "Next experiment:"];

/// The five lines as (head, text). A grade other than good is part of the first.
pub(crate) fn report(report: &Report, trust: &Trust) -> [(&'static str, String); 5] {
    let suffix = match trust.grade {
        Grade::Good => String::new(),
        grade => format!(" [trust {}: {}]", grade.name(), grade.meaning()),
    };
    let texts = [
        &format!("{}{suffix}", report.workload),
        &report.hardware,
        &report.top_cuda_time,
        &report.top_host_cost,
        &report.next_experiment.text,
    ];
    std::array::from_fn(|i| (HEADS[i], printable(texts[i]).into_owned()))
}

/// The report alone: exactly five lines.
pub fn report_lines(triage: &Triage, trust: &Trust, options: &TextOptions) -> String {
    lines_of(&triage.report, trust, options)
}

/// The five lines of a report.
pub(crate) fn lines_of(of: &Report, trust: &Trust, options: &TextOptions) -> String {
    report(of, trust).iter().fold(String::new(), |mut out, (head, text)| {
        let _ = writeln!(out, "{} {text}", options.style().bold(head));
        out
    })
}

/// The report broken between words, for a terminal. The rest of a line is indented below its head.
pub(crate) fn wrapped_report(of: &Report, trust: &Trust, options: &TextOptions) -> String {
    let mut out = String::new();
    for (head, text) in report(of, trust) {
        let whole = format!("{head} {text}");
        let lines = wrap(&whole, options.width.saturating_sub(2).max(20));
        for (at, line) in lines.iter().enumerate() {
            match line.strip_prefix(head) {
                Some(rest) if at == 0 => {
                    let _ = writeln!(out, "{}{rest}", options.style().bold(head));
                }
                _ => {
                    let _ = writeln!(out, "  {line}");
                }
            }
        }
    }
    out
}

/// What the user chose for the page.
#[derive(Clone, Copy, Debug, Default)]
pub struct Page<'a> {
    /// Operators and ranges shown; `None` for all.
    pub limit: Option<usize>,
    /// The column that the operators are sorted by, which stays however narrow the terminal is.
    pub sorted_by: Option<&'a str>,
    /// The pattern that rows of the tables match, where one was given.
    pub filter: Option<&'a str>,
}

impl Page<'_> {
    /// What the filter leaves out, and that it leaves out nothing else.
    fn filter_note(&self) -> Option<String> {
        self.filter
            .map(|pattern| format!("--filter {pattern} applies to the tables; totals, suspects, questions and report are not filtered"))
    }
}

/// A line of the totals: label, time, and what goes with it.
struct Line {
    label: String,
    value: String,
    aside: String,
}

fn of(part: Option<Ns>, whole: Ns, what: &str) -> Option<String> {
    let part = part.filter(|_| whole > Ns::ZERO)?;
    Some(format!("{} % of {what}", percent(part.get() as f64 / whole.get() as f64)))
}

/// The parts that say something, with a dot between.
fn asides(parts: impl IntoIterator<Item = Option<String>>) -> String {
    parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

fn exposed(time_exposed: Option<Ns>, beside: &str) -> Option<String> {
    time_exposed.map(|ns| format!("{} of it exposed (no {beside} running)", time(ns)))
}

fn totals_lines(totals: &Totals, trace: &Trace) -> Vec<Line> {
    let absent = || "–".to_owned();
    let show = |value: Option<Ns>| value.map_or_else(absent, time);
    let line = |label: &str, value: String, aside: String| Line { label: label.to_owned(), value, aside };
    let busy = totals.gpu_busy_ns;
    let calls = plural(totals.host_ops, "operator call", "operator calls");
    let windows = totals.unrecorded.map(|unrecorded| format!("in {} windows", count(unrecorded.windows)));
    let mut lines = vec![line("wall", time(totals.wall_ns), asides([Some(calls), windows]))];
    if busy.is_none() {
        let why = if trace.activities.is_empty() { "no device activity was recorded" } else { "no device activity is in scope" };
        lines.push(line("GPU busy", absent(), why.to_owned()));
        return lines;
    }
    // Of several devices all times below are sums, so shares are of as many times the wall.
    let devices = totals.devices.len();
    let (times, summed) = if devices > 1 {
        (format!(" × {devices} devices"), format!(", summed over {devices} devices"))
    } else {
        (String::new(), String::new())
    };
    let share = totals.gpu_busy_fraction.map(|f| format!("{} % of wall{times}", percent(f)));
    lines.push(line("GPU busy", show(busy), asides([share, Some(plural(totals.launches, "launch", "launches"))])));
    lines.push(line("GPU idle", show(totals.gpu_idle_ns), format!("between the first and the last device work{summed}")));
    if let Some(outside) = totals.gpu_outside_ns.filter(|&outside| outside > Ns::ZERO) {
        lines.push(line("GPU other", time(outside), format!("with work from outside the scope{summed}")));
    }
    let of_busy = |part: Option<Ns>| of(part, busy.unwrap_or(Ns::ZERO), "busy");
    lines.push(line(
        "  kernels",
        show(totals.kernel_busy_ns),
        asides([of_busy(totals.kernel_busy_ns), Some(plural(totals.kernels, "kernel", "kernels"))]),
    ));
    if totals.memcpys + totals.memsets > 0 {
        let copies = (totals.memcpys > 0).then(|| plural(totals.memcpys, "copy", "copies"));
        let fills = (totals.memsets > 0).then(|| plural(totals.memsets, "fill", "fills"));
        let aside = asides([of_busy(totals.copy_busy_ns), copies, fills, exposed(totals.exposed_copy_ns, "kernel")]);
        lines.push(line("  copies", show(totals.copy_busy_ns), aside));
    }
    if totals.comm_busy_ns.is_some_and(|ns| ns > Ns::ZERO) {
        let aside = asides([of_busy(totals.comm_busy_ns), exposed(totals.exposed_comm_ns, "other kernel")]);
        lines.push(line("  communication", show(totals.comm_busy_ns), aside));
    }
    if totals.devices.len() > 1 {
        lines.extend(totals.devices.iter().map(|device| device_line(device, trace)));
    }
    lines
}

fn device_line(totals: &DeviceTotals, trace: &Trace) -> Line {
    let device = trace.devices.get(totals.device.index());
    let number = device.map_or_else(|| "?".to_owned(), |d| d.ordinal.to_string());
    let rank = device.filter(|_| trace.ranks.len() > 1).and_then(|d| trace.ranks.get(d.rank as usize));
    let label = rank.map_or_else(|| format!("  device {number}"), |rank| format!("  rank {} device {number}", rank.rank));
    let parts = [of(Some(totals.busy_ns), totals.span_ns, "its span"), Some(plural(totals.activities, "activity", "activities"))];
    Line { label, value: time(totals.busy_ns), aside: asides(parts) }
}

/// The tables of the page with their titles; families keep all rows, the others their head.
fn tables(triage: &Triage, recorder: Recorder, page: &Page<'_>) -> Vec<(&'static str, Table)> {
    let limit = page.limit;
    let mut ops = views::ops(&triage.ops, GroupBy::Name, recorder);
    if let Some(column) = page.sorted_by {
        ops.keep(column);
    }
    let ranges = views::ranges(&triage.ranges, views::RangeLayout::Tree, limit);
    ops.truncate(limit);
    let mut families = views::families(&triage.families);
    let note = views::overlap_note(triage.ops.self_cuda_total_ns, triage.totals.gpu_busy_ns, views::SharesOf::Sum);
    ops.notes.extend(note.clone());
    families.notes.extend(note);
    let tables = [("Operators", ops), ("Kernel families", families), ("Ranges", ranges)];
    tables.into_iter().filter(|(_, table)| !table.rows.is_empty()).collect()
}

/// The page for a terminal.
pub fn triage_text(header: &Header<'_>, triage: &Triage, trace: &Trace, page: &Page<'_>, options: &TextOptions) -> String {
    let style = options.style();
    let mut out = text_header(header, options);
    let _ = writeln!(out, "\n{}", style.bold("Totals"));
    let lines = totals_lines(&triage.totals, trace);
    let label_width = lines.iter().map(|l| width(&l.label)).max().unwrap_or(0);
    let value_width = lines.iter().map(|l| width(&l.value)).max().unwrap_or(0);
    let indent = 2 + label_width + 2 + value_width + 3;
    for Line { label, value, aside } in lines {
        let value = format!("{}{value}", " ".repeat(value_width - width(&value)));
        let label = format!("{label}{}", " ".repeat(label_width - width(&label)));
        let aside = wrap(&aside, options.width.saturating_sub(indent).max(20)).join(&format!("\n{}", " ".repeat(indent)));
        let _ = writeln!(out, "{}", format!("  {label}  {value}   {}", style.dim(&aside)).trim_end());
    }
    out.push_str(&suspects_text(&triage.smells, options));
    out.push_str(&host_clock_text(triage, options));
    out.push_str(&questions_text(&triage.questions, options));
    end_text(&mut out, page.filter_note(), tables(triage, trace.recorder, page), options);
    out.push_str(&shown_report(&triage.report, header.trust, options));
    out
}

/// The tables of a page, behind the note on what was filtered.
pub(crate) fn end_text(out: &mut String, note: Option<String>, tables: Vec<(&'static str, Table)>, options: &TextOptions) {
    if let Some(note) = note {
        out.push('\n');
        hanging(out, "Note: ", &note, options);
        if tables.is_empty() {
            let _ = writeln!(out, "{NOTHING_MATCHES}");
        }
    }
    for (title, table) in tables {
        let _ = writeln!(out, "\n{}", options.style().bold(title));
        out.push_str(&text(&table, options));
    }
    out.push('\n');
}

/// The report, wrapped where lines are.
pub(crate) fn shown_report(report: &Report, trust: &Trust, options: &TextOptions) -> String {
    if options.wrap { wrapped_report(report, trust, options) } else { lines_of(report, trust, options) }
}

/// The same in Markdown.
pub(crate) fn end_markdown(out: &mut String, note: Option<String>, tables: Vec<(&'static str, Table)>) {
    if let Some(note) = note {
        let _ = writeln!(out, "\n**Note:** {}", markdown_text(&note));
        if tables.is_empty() {
            let _ = writeln!(out, "\n_{NOTHING_MATCHES}_");
        }
    }
    for (title, table) in tables {
        let _ = writeln!(out, "\n### {title}\n\n{}", markdown(&table).trim_end());
    }
}

/// The page as Markdown.
pub fn triage_markdown(header: &Header<'_>, triage: &Triage, trace: &Trace, page: &Page<'_>) -> String {
    let mut out = markdown_header(header);
    out.push_str("\n### Report\n\n");
    for (head, text) in report(&triage.report, header.trust) {
        let _ = writeln!(out, "- **{head}** {}", markdown_text(&text));
    }
    out.push_str("\n### Totals\n\n| | time | |\n| --- | ---: | --- |\n");
    for Line { label, value, aside } in totals_lines(&triage.totals, trace) {
        let _ = writeln!(out, "| {} | {value} | {aside} |", label.trim_start());
    }
    out.push_str(&suspects_markdown(triage));
    end_markdown(&mut out, page.filter_note(), tables(triage, trace.recorder, page));
    out
}
