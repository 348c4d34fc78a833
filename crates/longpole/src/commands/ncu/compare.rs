//! `longpole ncu AFTER --compare BEFORE`

use std::ffi::OsStr;

use longpole_analysis::short_names;
use longpole_ncu::compare::compare;
use longpole_ncu::summary::VerdictKind;
use longpole_ncu::{EntryKind, Report, table};
use longpole_report::{ComparisonPage, Verdicts, comparison_markdown, comparison_text, redact, redact_comparison, views, wire};
use rayon::prelude::*;

use super::IN_FULL;
use super::open::{Session, family_of};
use crate::args::{Format, NcuArgs};
use crate::exit::Failure;

pub(super) fn run(args: &NcuArgs, before: &OsStr) -> Result<(), Failure> {
    compared(args, before, |page, session| match session.format() {
        Format::Json => session.print_json(&wire::ncu_compare(page)),
        Format::Csv => session.print_csv(views::ncu::comparison_rows(page.comparison)),
        Format::Markdown => session.print(&comparison_markdown(page)),
        Format::Text => session.print(&comparison_text(page, &session.options)),
    })
}

/// Compares, and shows the page and the session of the second report.
pub(super) fn compared(
    args: &NcuArgs,
    before: &OsStr,
    show: impl FnOnce(&ComparisonPage<'_>, &Session<'_>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    if args.input == "-" && before == "-" {
        return Err(Failure::Usage("standard input can be one of the two reports only".to_owned()));
    }
    let first = Session::open(args, before)?;
    let mut second = Session::open(args, &args.input)?;
    let keep = |name: &str| {
        let Some(regex) = &args.kernel else { return true };
        let name = if args.no_redact { name.into() } else { redact(name) };
        let family = family_of(EntryKind::Kernel, &name);
        regex.is_match(&name) || family.is_some_and(|family| regex.is_match(family.name()))
    };
    let mut comparison = compare(&first.report, &second.report, keep);
    if !args.no_redact {
        redact_comparison(&mut comparison);
    }
    let pairs = comparison.pairs.iter().flat_map(|pair| [pair.name_before.as_str(), pair.name_after.as_str()]);
    let mut distinct: Vec<&str> = pairs.chain(comparison.totals.iter().map(|total| total.name.as_str())).collect();
    distinct.sort_unstable();
    distinct.dedup();
    let short = short_names(&distinct);
    let short_of = |name: &str| distinct.binary_search(&name).map_or_else(|_| name.to_owned(), |at| short[at].clone());
    let names: Vec<(String, String)> =
        comparison.pairs.iter().map(|pair| (short_of(&pair.name_before), short_of(&pair.name_after))).collect();
    let total_names: Vec<String> = comparison.totals.iter().map(|total| short_of(&total.name)).collect();
    let verdicts: Vec<Verdicts> =
        comparison.pairs.par_iter().map(|pair| (verdict(&first.report, pair.before), verdict(&second.report, pair.after))).collect();
    second.analysed();
    let (header_before, header_after) = (first.header(), second.header());
    let page = ComparisonPage {
        before: header_before.as_header(),
        after: header_after.as_header(),
        comparison: &comparison,
        names: &names,
        verdicts: &verdicts,
        total_names: &total_names,
        limit: second.limit(),
        in_full: IN_FULL,
        full: args.full,
    };
    show(&page, &second)?;
    first.strict()
}

/// What holds one result back.
fn verdict(report: &Report, id: usize) -> Option<VerdictKind> {
    let result = report.decode(id, &table::selection(report))?;
    table::rows(report, &[result]).first()?.verdict
}
