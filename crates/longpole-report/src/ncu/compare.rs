//! Two reports beside each other: what moved, and what to beware of.

use std::fmt::Write as _;

use longpole_ncu::compare::{Comparison, MatchedBy, Pair};
use longpole_ncu::summary::VerdictKind;

use super::first_sentence;
use crate::markdown_table::markdown;
use crate::names::{markdown_text, printable, width};
use crate::report_header::{ReportHeader, comparison_markdown_header, comparison_text_header};
use crate::suspects::hanging;
use crate::table::Table;
use crate::text_table::{TextOptions, text};
use crate::units::{count, decimal};
use crate::views;

/// A comparison and what the user chose of it.
#[derive(Clone, Copy, Debug)]
pub struct ComparisonPage<'a> {
    /// Both reports.
    pub before: ReportHeader<'a>,
    /// The second of them.
    pub after: ReportHeader<'a>,
    /// What moved.
    pub comparison: &'a Comparison,
    /// Short names of the pairs, before and after.
    pub names: &'a [(String, String)],
    /// What holds each of the pairs back, before and after.
    pub verdicts: &'a [Verdicts],
    /// Short names of the totals.
    pub total_names: &'a [String],
    /// Rows of the table shown; `None` for all.
    pub limit: Option<usize>,
    /// Pairs shown in full below the table.
    pub in_full: usize,
    /// Whole texts of rules.
    pub full: bool,
}

/// The verdict on a kernel before and after; `None` where its figures were not collected.
pub type Verdicts = (Option<VerdictKind>, Option<VerdictKind>);

/// How a pair was found, in words that say how sure it is; `None` for the usual way.
const fn matching(by: MatchedBy) -> Option<&'static str> {
    match by {
        MatchedBy::Name => None,
        MatchedBy::Function => Some("matched by function: other template arguments or parameters"),
        MatchedBy::OrderAndShape => Some("matched by order and launch shape: renamed, or another kernel"),
        MatchedBy::Order => Some("matched by order alone: it may be another kernel"),
    }
}

/// The time and the verdict before and after, as far as they are known.
fn outcome(pair: &Pair, (before, after): Verdicts) -> Option<String> {
    let kinds = before.zip(after).map(|(before, after)| {
        if before == after { format!("{} as before", after.name()) } else { format!("{} → {}", before.name(), after.name()) }
    });
    let parts: Vec<String> = times(pair).into_iter().chain(kinds).collect();
    (!parts.is_empty()).then(|| parts.join(" · "))
}

/// The time before and after in one sentence; `None` where one is missing.
fn times(pair: &Pair) -> Option<String> {
    let figure = pair.figures.iter().find(|figure| figure.unit == "ns")?;
    let (before, after) = (figure.before?, figure.after?);
    let (shown_before, shown_after) = (views::ncu::figure_words(figure, figure.before), views::ncu::figure_words(figure, figure.after));
    if before <= 0.0 || after <= 0.0 {
        return None;
    }
    let words = if shown_before == shown_after {
        "no difference".to_owned()
    } else if after < before {
        format!("{} × as fast", decimal(before / after))
    } else {
        format!("{} × as long", decimal(after / before))
    };
    Some(format!("{shown_before} → {shown_after}: {words}"))
}

fn title((before, after): &(String, String)) -> String {
    if before == after { before.clone() } else { format!("{before} → {after}") }
}

fn about(pair: &Pair) -> String {
    let mut words = format!("{} {} → {}", pair.kind.name().replace('_', " "), pair.before, pair.after);
    if let Some(how) = matching(pair.matched_by) {
        let _ = write!(words, " · {how}");
    }
    words
}

/// Rules that are gone or new: a heading and a line each.
fn rules(page: &ComparisonPage<'_>, pair: &Pair) -> Vec<(&'static str, Vec<String>)> {
    let line = |(rule, text): &(String, String)| {
        let text = if page.full { text.as_str() } else { first_sentence(text) };
        if text.is_empty() { rule.clone() } else { format!("{rule}: {text}") }
    };
    [("Gone from ncu's suggestions", &pair.rules_gone), ("New among ncu's suggestions", &pair.rules_new)]
        .into_iter()
        .filter(|(_, rules)| !rules.is_empty())
        .map(|(heading, rules)| (heading, rules.iter().map(line).collect()))
        .collect()
}

/// Kernels of one report alone.
fn unmatched(comparison: &Comparison) -> Vec<(&'static str, &[(usize, String)])> {
    [("Only before", comparison.only_before.as_slice()), ("Only after", comparison.only_after.as_slice())]
        .into_iter()
        .filter(|(_, kernels)| !kernels.is_empty())
        .collect()
}

/// The table over all pairs, where there are too many to show each in full.
fn overview(page: &ComparisonPage<'_>) -> Option<Table> {
    if page.comparison.pairs.len() <= page.in_full {
        return None;
    }
    let mut table = views::ncu::name_totals(&page.comparison.totals, page.total_names);
    table.truncate(page.limit);
    Some(table)
}

/// Pairs shown in full, with their short names and verdicts.
fn shown_pairs<'a>(page: &'a ComparisonPage<'_>) -> impl Iterator<Item = ((&'a Pair, &'a (String, String)), Verdicts)> {
    let shown = if page.comparison.pairs.len() <= page.in_full { page.in_full } else { 0 };
    page.comparison.pairs.iter().zip(page.names).zip(page.verdicts.iter().copied()).take(shown)
}

/// Said below the table when no pair is shown in full.
const NARROW: &str = "`--kernel REGEX` shows the figures of a few";

fn pair_text(
    out: &mut String,
    page: &ComparisonPage<'_>,
    (pair, names): (&Pair, &(String, String)),
    verdicts: Verdicts,
    options: &TextOptions,
) {
    let style = options.style();
    let _ = writeln!(out, "\n{}", style.dim(&"─".repeat(options.width)));
    let _ = writeln!(out, "{}", style.bold(&printable(&title(names))));
    hanging(out, "  ", &about(pair), options);
    if let Some(outcome) = outcome(pair, verdicts) {
        hanging(out, "  ", &outcome, options);
    }
    out.push('\n');
    out.push_str(&text(&views::ncu::figures(&pair.figures, "figure"), options));
    if !pair.stalls.is_empty() {
        let _ = writeln!(out, "\n{}", style.bold("Stalls that moved, in cycles from one instruction of a warp to its next"));
        out.push_str(&text(&views::ncu::figures(&pair.stalls, "reason"), options));
    }
    for (heading, lines) in rules(page, pair) {
        let _ = writeln!(out, "\n{}", style.bold(heading));
        for line in lines {
            for (at, paragraph) in line.lines().enumerate() {
                hanging(out, if at == 0 { "  • " } else { "    " }, paragraph, options);
            }
        }
    }
}

/// Both reports for a terminal.
pub fn comparison_text(page: &ComparisonPage<'_>, options: &TextOptions) -> String {
    let style = options.style();
    let mut out = comparison_text_header(&page.before, &page.after, options);
    if !page.comparison.cautions.is_empty() {
        let _ = writeln!(out, "\n{}", style.bold("Beware"));
        let widest = page.comparison.cautions.iter().map(|caution| width(caution.about)).max().unwrap_or(0);
        for caution in &page.comparison.cautions {
            hanging(&mut out, &format!("  {:widest$}  ", caution.about), &caution.text, options);
        }
    }
    if page.comparison.pairs.is_empty() {
        let _ = writeln!(out, "\nno kernel is in both reports");
    }
    if let Some(table) = overview(page) {
        let _ = writeln!(out);
        out.push_str(&text(&table, options));
        let _ = writeln!(out, "{}", style.dim(NARROW));
    }
    for (pair, verdicts) in shown_pairs(page) {
        pair_text(&mut out, page, pair, verdicts, options);
    }
    for (heading, kernels) in unmatched(page.comparison) {
        let _ = writeln!(out, "\n{}", style.bold(&format!("{heading}: {}", count(kernels.len() as u64))));
        let shown = page.limit.unwrap_or(usize::MAX);
        for (id, name) in kernels.iter().take(shown) {
            hanging(&mut out, &format!("  {id}  "), &longpole_analysis::short_name(name), options);
        }
        if kernels.len() > shown {
            let _ = writeln!(out, "  and {} more; --limit 0 shows all", count((kernels.len() - shown) as u64));
        }
    }
    out
}

/// Both reports as Markdown.
pub fn comparison_markdown(page: &ComparisonPage<'_>) -> String {
    let mut out = comparison_markdown_header(&page.before, &page.after);
    if !page.comparison.cautions.is_empty() {
        out.push_str("\n### Beware\n\n");
        for caution in &page.comparison.cautions {
            let _ = writeln!(out, "- **{}** {}", caution.about, markdown_text(&caution.text));
        }
    }
    if page.comparison.pairs.is_empty() {
        out.push_str("\nNo kernel is in both reports.\n");
    }
    if let Some(table) = overview(page) {
        let _ = writeln!(out, "\n{}\n\n_{}_", markdown(&table).trim_end(), markdown_text(NARROW));
    }
    for ((pair, names), verdicts) in shown_pairs(page) {
        let _ = writeln!(out, "\n### {}\n\n{}", markdown_text(&title(names)), markdown_text(&about(pair)));
        if let Some(outcome) = outcome(pair, verdicts) {
            let _ = writeln!(out, "\n**{}**", markdown_text(&outcome));
        }
        let _ = writeln!(out, "\n{}", markdown(&views::ncu::figures(&pair.figures, "figure")).trim_end());
        if !pair.stalls.is_empty() {
            let stalls = markdown(&views::ncu::figures(&pair.stalls, "reason"));
            let _ =
                writeln!(out, "\n#### Stalls that moved, in cycles from one instruction of a warp to its next\n\n{}", stalls.trim_end());
        }
        for (heading, lines) in rules(page, pair) {
            let _ = writeln!(out, "\n#### {heading}\n");
            for line in lines {
                let _ = writeln!(out, "- {}", line.lines().map(markdown_text).collect::<Vec<_>>().join(" "));
            }
        }
    }
    for (heading, kernels) in unmatched(page.comparison) {
        let _ = writeln!(out, "\n### {heading}\n");
        for (id, name) in kernels {
            let _ = writeln!(out, "- {id} {}", markdown_text(&longpole_analysis::short_name(name)));
        }
    }
    out
}
