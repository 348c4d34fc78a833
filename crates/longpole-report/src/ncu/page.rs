//! The page of one kernel or a few: figures, verdict, stalls, suggestions, hottest instructions.

use std::fmt::Write as _;

use longpole_ncu::MessageKind;
use longpole_ncu::summary::{Stall, Suggestion};

use super::{NcuKernel, estimate, facts, first_sentence};
use crate::markdown_table::markdown;
use crate::names::{markdown_text, printable, width, wrap};
use crate::report_header::{ReportHeader, report_markdown_header, report_text_header};
use crate::suspects::hanging;
use crate::table::Table;
use crate::text_table::{TextOptions, bar, text};
use crate::units::{count, decimal, percent};
use crate::views;

/// Stall reasons below this share are summed up in one line.
const SMALL_STALL: f64 = 0.01;

/// Suggestions that promise less are counted and not shown, in percent.
const SMALL_SPEEDUP: f64 = 1.0;

/// Fewer samples than this say little about single instructions.
const FEW_SAMPLES: u64 = 100;

/// Columns of a bar on the page.
const BAR: usize = 12;

/// Narrower terminals get no bars.
const NARROW: usize = 72;

/// Said above every list of ncu's suggestions.
const ESTIMATES: &str = "estimates are upper bounds and overlap: do not add them up";

/// What the user chose for the page.
#[derive(Clone, Copy, Debug)]
pub struct KernelPage {
    /// Hottest instructions shown; `None` for all.
    pub hot: Option<usize>,
    /// Whole texts of suggestions, and every stall reason.
    pub full: bool,
    /// Kernels of the report that are not shown.
    pub left_out: usize,
}

/// The figures, and below them what was not collected, as (label, text) with an empty label where the one above holds on.
fn lines(kernel: &NcuKernel) -> Vec<(&'static str, String)> {
    let summary = &kernel.summary;
    let mut lines = facts::facts(summary);
    lines.extend(summary.symptoms.iter().enumerate().map(|(at, symptom)| (if at == 0 { "symptoms" } else { "" }, symptom.text.clone())));
    let missing = facts::missing(summary);
    lines.extend(missing.into_iter().enumerate().map(|(at, text)| (if at == 0 { "not collected" } else { "" }, text)));
    lines
}

/// The line below the name: which launch of which program it is.
fn launch_of(kernel: &NcuKernel) -> String {
    let summary = &kernel.summary;
    let mut parts = vec![format!("{} {}", summary.kind.name().replace('_', " "), summary.id)];
    parts.extend(kernel.family.map(|family| family.name().to_owned()));
    parts.extend(kernel.process.iter().map(|process| format!("process {process}")));
    if !summary.nvtx.is_empty() {
        let names: Vec<&str> = summary.nvtx.iter().map(|range| range.name.as_str()).collect();
        parts.push(format!("in {}", names.join(" / ")));
    }
    parts.join(" · ")
}

/// Reasons shown, and how many more there are with how many cycles and what share together.
fn split_stalls(stalls: &[Stall], full: bool) -> (&[Stall], Option<String>) {
    let shown = if full { stalls.len() } else { stalls.partition_point(|stall| stall.share_fraction >= SMALL_STALL) };
    let (shown, rest) = stalls.split_at(shown);
    let more = (!rest.is_empty()).then(|| {
        let share: f64 = rest.iter().map(|stall| stall.share_fraction).sum();
        let under = percent(SMALL_STALL);
        format!("and {} more under {under} % each, {} % together; --full shows them", count(rest.len() as u64), percent(share))
    });
    (shown, more)
}

/// What a reason means; in short what is waited for, without what may be behind it.
fn meaning(stall: &Stall, full: bool) -> &str {
    if full { stall.meaning } else { stall.meaning.split(':').next().unwrap_or_default() }
}

fn stalls_heading(kernel: &NcuKernel) -> String {
    kernel.summary.warp_cycles_per_issue.map_or_else(
        || "Stalls: where warps were, by samples".to_owned(),
        |cycles| format!("Stalls: {} cycles from one instruction of a warp to its next", decimal(cycles)),
    )
}

fn stalls_text(out: &mut String, kernel: &NcuKernel, page: &KernelPage, options: &TextOptions) {
    let stalls = &kernel.summary.stalls;
    if stalls.is_empty() {
        return;
    }
    let style = options.style();
    let _ = writeln!(out, "\n{}", style.bold(&stalls_heading(kernel)));
    let (shown, more) = split_stalls(stalls, page.full);
    let reasons = shown.iter().map(|stall| width(stall.reason)).max().unwrap_or(0);
    for stall in shown {
        let cycles = stall.cycles_per_issue.map_or_else(|| "–".to_owned(), decimal);
        let share = percent(stall.share_fraction);
        let bar = if options.width < NARROW { String::new() } else { format!("{:BAR$}  ", bar(stall.share_fraction, BAR)) };
        let head = format!("  {:reasons$}  {cycles:>7}  {share:>5} %  {bar}", stall.reason);
        hanging(out, &head, meaning(stall, page.full), options);
    }
    if let Some(more) = more {
        hanging(out, "  ", &more, options);
    }
}

/// Suggestions shown, and how many more there are.
fn split_suggestions(suggestions: &[Suggestion], full: bool) -> (Vec<&Suggestion>, Option<String>) {
    // Reports of old versions have no estimates at all.
    let has_estimates = suggestions.iter().any(|suggestion| suggestion.speedup_pct.is_some());
    let counts = |suggestion: &&Suggestion| {
        let is_urgent = suggestion.kind == MessageKind::Warning || (!has_estimates && suggestion.kind == MessageKind::Optimization);
        full || suggestion.speedup_pct.map_or(is_urgent, |speedup| speedup >= SMALL_SPEEDUP)
    };
    let shown: Vec<&Suggestion> = suggestions.iter().filter(counts).collect();
    let rest = (suggestions.len() - shown.len()) as u64;
    let more = (rest > 0).then(|| match shown.len() {
        0 => format!("{} without an estimate or under {SMALL_SPEEDUP} %; --full shows what they say", count(rest)),
        _ => format!("and {} more without an estimate or under {SMALL_SPEEDUP} %; --full shows them", count(rest)),
    });
    (shown, more)
}

/// The words of a suggestion: its title, what it says, and whether it is beside the point.
fn suggestion_words(suggestion: &Suggestion, full: bool) -> String {
    let text = if full { suggestion.text.as_str() } else { first_sentence(&suggestion.text) };
    let title = if suggestion.title.is_empty() { &suggestion.rule } else { &suggestion.title };
    let aside = if suggestion.is_related { "" } else { " [unrelated to the verdict]" };
    format!("{title}{aside}: {text}")
}

fn suggestions_text(out: &mut String, kernel: &NcuKernel, page: &KernelPage, options: &TextOptions) {
    let suggestions = &kernel.summary.suggestions;
    if suggestions.is_empty() {
        return;
    }
    let style = options.style();
    let _ = writeln!(out, "\n{}", style.bold("Suggestions of ncu"));
    let (shown, more) = split_suggestions(suggestions, page.full);
    if shown.iter().any(|suggestion| suggestion.speedup_pct.is_some()) {
        hanging(out, "  ", ESTIMATES, options);
    }
    let estimates: Vec<String> = shown.iter().map(|suggestion| estimate(suggestion)).collect();
    let widest = estimates.iter().map(|text| width(text)).max().unwrap_or(0);
    for (suggestion, estimate) in shown.into_iter().zip(estimates) {
        let head = format!("  {estimate}{}  ", " ".repeat(widest - width(&estimate)));
        let indent = " ".repeat(width(&head));
        for (at, paragraph) in suggestion_words(suggestion, page.full).lines().enumerate() {
            hanging(out, if at == 0 { &head } else { &indent }, paragraph, options);
        }
    }
    if let Some(more) = more {
        hanging(out, "  ", &more, options);
    }
}

/// The hottest instructions as a table; `None` where there is none.
fn hot(kernel: &NcuKernel, page: &KernelPage) -> Option<Table> {
    let source = kernel.source.as_ref()?;
    let all = source.hottest(usize::MAX);
    if all.is_empty() {
        return None;
    }
    let mut table = views::ncu::instructions(&all, source);
    table.truncate(page.hot);
    if source.totals.samples < FEW_SAMPLES {
        table.notes.push("so few samples say little about single instructions: profile a longer run of the kernel".to_owned());
    }
    Some(table)
}

fn hot_heading(kernel: &NcuKernel) -> String {
    let samples = kernel.source.as_ref().map_or(0, |source| source.totals.samples);
    format!("Hottest instructions of {} samples: a stall belongs to the instruction that uses the value", count(samples))
}

/// One kernel for a terminal.
fn kernel_text(out: &mut String, kernel: &NcuKernel, page: &KernelPage, notes: &mut Vec<String>, options: &TextOptions) {
    let style = options.style();
    let summary = &kernel.summary;
    for line in wrap(&printable(&kernel.short_name), options.width.max(20)) {
        let _ = writeln!(out, "{}", style.bold(&line));
    }
    hanging(out, "  ", &launch_of(kernel), options);
    if options.full_names && summary.name != kernel.short_name {
        let _ = writeln!(out, "  {}", printable(&summary.name));
    }
    let lines = lines(kernel);
    let labels = lines.iter().map(|(label, _)| width(label)).max().unwrap_or(0);
    for (label, text) in lines {
        hanging(out, &format!("  {label:labels$}  "), &text, options);
    }
    stalls_text(out, kernel, page, options);
    suggestions_text(out, kernel, page, options);
    if let Some(table) = hot(kernel, page) {
        let heading = wrap(&hot_heading(kernel), options.width.max(20));
        let _ = writeln!(out);
        for line in heading {
            let _ = writeln!(out, "{}", style.bold(&line));
        }
        out.push_str(&text(&table, options));
    }
    for note in new_notes(kernel, notes) {
        hanging(out, "Note: ", note, options);
    }
}

/// The notes of a kernel that no kernel before it has.
fn new_notes<'a>(kernel: &'a NcuKernel, seen: &mut Vec<String>) -> Vec<&'a str> {
    let new: Vec<&str> = kernel.source_notes.iter().filter(|note| !seen.contains(note)).map(String::as_str).collect();
    seen.extend(new.iter().map(|&note| note.to_owned()));
    new
}

/// What is said when no kernel is shown, or some are left out.
fn left_out(kernels: &[NcuKernel], page: &KernelPage) -> Option<String> {
    match (kernels.len(), page.left_out) {
        (0, 0) => Some("the report has no results: nothing was profiled, or nothing of it was kept".to_owned()),
        (_, 0) => None,
        (0, more) => Some(format!("no kernel matches --kernel ({} without it)", count(more as u64))),
        (_, more) => Some(format!("and {} more that were not asked for; `--table` lists all", count(more as u64))),
    }
}

/// The kernels for a terminal, one below the other.
pub fn kernels_text(header: &ReportHeader<'_>, kernels: &[NcuKernel], page: &KernelPage, options: &TextOptions) -> String {
    let style = options.style();
    let mut out = report_text_header(header, options);
    let mut notes = Vec::new();
    for kernel in kernels {
        let _ = writeln!(out, "\n{}", style.dim(&"─".repeat(options.width)));
        kernel_text(&mut out, kernel, page, &mut notes, options);
    }
    if let Some(note) = left_out(kernels, page) {
        let _ = writeln!(out, "\n{note}");
    }
    out
}

fn kernel_markdown(out: &mut String, kernel: &NcuKernel, page: &KernelPage, notes: &mut Vec<String>) {
    let _ = writeln!(out, "\n### {}\n\n{}\n", markdown_text(&kernel.short_name), markdown_text(&launch_of(kernel)));
    out.push_str("| | |\n| --- | --- |\n");
    for (label, text) in lines(kernel) {
        let _ = writeln!(out, "| {label} | {} |", markdown_text(&text));
    }
    if !kernel.summary.stalls.is_empty() {
        let (shown, more) = split_stalls(&kernel.summary.stalls, page.full);
        let _ = writeln!(out, "\n#### {}\n\n| stall | cycles | % | meaning |\n| --- | ---: | ---: | --- |", stalls_heading(kernel));
        for stall in shown {
            let cycles = stall.cycles_per_issue.map_or_else(|| "–".to_owned(), decimal);
            let _ = writeln!(
                out,
                "| {} | {cycles} | {} | {} |",
                stall.reason,
                percent(stall.share_fraction),
                markdown_text(meaning(stall, page.full))
            );
        }
        if let Some(more) = more {
            let _ = writeln!(out, "\n_{}_", markdown_text(&more));
        }
    }
    if !kernel.summary.suggestions.is_empty() {
        let (shown, more) = split_suggestions(&kernel.summary.suggestions, page.full);
        out.push_str("\n#### Suggestions of ncu\n\n");
        if shown.iter().any(|suggestion| suggestion.speedup_pct.is_some()) {
            let _ = writeln!(out, "_{ESTIMATES}_\n");
        }
        for suggestion in shown {
            let words = suggestion_words(suggestion, page.full).lines().map(markdown_text).collect::<Vec<_>>().join(" ");
            let _ = writeln!(out, "- **{}** {words}", estimate(suggestion));
        }
        if let Some(more) = more {
            let _ = writeln!(out, "\n_{}_", markdown_text(&more));
        }
    }
    if let Some(table) = hot(kernel, page) {
        let _ = writeln!(out, "\n#### {}\n\n{}", hot_heading(kernel), markdown(&table).trim_end());
    }
    for note in new_notes(kernel, notes) {
        let _ = writeln!(out, "\n**Note:** {}", markdown_text(note));
    }
}

/// The kernels as Markdown.
pub fn kernels_markdown(header: &ReportHeader<'_>, kernels: &[NcuKernel], page: &KernelPage) -> String {
    let mut out = report_markdown_header(header);
    let mut notes = Vec::new();
    for kernel in kernels {
        kernel_markdown(&mut out, kernel, page, &mut notes);
    }
    if let Some(note) = left_out(kernels, page) {
        let _ = writeln!(out, "\n_{}_", markdown_text(&note));
    }
    out
}
