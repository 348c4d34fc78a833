//! The commands on a source that holds sums alone: those that it can answer, each like its namesake.

use std::ffi::OsStr;

use longpole_analysis::{KernelSum, ScopeSums, SumsSide, diff_sums, family_sums, kernel_sums, scope_sums, sums_triage};
use longpole_report::views::{DiffLayout, RangeLayout};
use longpole_report::{Page, sums_markdown, sums_report_lines, sums_text, views, wire};
use longpole_trace::Ns;

use crate::args::{Common, DiffArgs, Format, TriageArgs};
use crate::exit::Failure;
use crate::session::{Beside, Session};
use crate::sort;

fn total(rows: &[KernelSum]) -> Ns {
    rows.iter().filter_map(|row| row.cuda_ns).sum()
}

fn filter_kernels(session: &mut Session<'_>, rows: &mut Vec<KernelSum>) {
    session.filter(rows, |regex, row| regex.is_match(&row.name) || regex.is_match(&row.short_name) || regex.is_match(row.family.name()));
}

fn filter_scopes(session: &mut Session<'_>, scopes: &mut ScopeSums) {
    let trace = session.index.trace();
    let mut rows = std::mem::take(&mut scopes.rows);
    session.filter(&mut rows, |regex, row| regex.is_match(scopes.name(trace, row)));
    scopes.rows = rows;
}

pub(super) fn kernels(common: &Common, session: &mut Session<'_>) -> Result<(), Failure> {
    let sorting = sort::kernel_sums(common.sort.as_deref())?;
    let mut rows = kernel_sums(session.index.trace(), &session.scope);
    session.analysed();
    let total = total(&rows);
    if let Some(sorting) = &sorting {
        rows.sort_by(sorting.order);
    }
    filter_kernels(session, &mut rows);
    if session.format() == Format::Json {
        rows.truncate(session.limit().unwrap_or(usize::MAX));
        return session.print_json(&wire::kernel_sums(&session.header(), &rows));
    }
    session.print_table(views::kernel_sums(&rows, total, common.full_names), sorting.map(|sorting| sorting.column))
}

pub(super) fn families(common: &Common, session: &mut Session<'_>) -> Result<(), Failure> {
    let sorting = sort::family_sums(common.sort.as_deref())?;
    let mut rows = family_sums(session.index.trace(), &session.scope);
    session.analysed();
    if let Some(sorting) = &sorting {
        rows.sort_by(sorting.order);
    }
    session.filter(&mut rows, |regex, row| regex.is_match(row.family.name()));
    if session.format() == Format::Json {
        rows.truncate(session.limit().unwrap_or(usize::MAX));
        return session.print_json(&wire::family_sums(&session.header(), &rows));
    }
    session.print_table(views::family_sums(&rows), sorting.map(|sorting| sorting.column))
}

pub(super) fn ranges(common: &Common, session: &mut Session<'_>) -> Result<(), Failure> {
    let sorting = sort::scope_sums(common.sort.as_deref())?;
    let trace = session.index.trace();
    let total = total(&kernel_sums(trace, &session.scope));
    let mut scopes = scope_sums(trace, &session.scope);
    session.analysed();
    if scopes.rows.is_empty() {
        return session.needs("ranges", "has no scopes");
    }
    // A sorted or filtered list is no tree any more.
    let layout = if sorting.is_some() || session.pattern().is_some() { RangeLayout::Paths } else { RangeLayout::Tree };
    if let Some(sorting) = &sorting {
        scopes.rows.sort_by(sorting.order);
    }
    filter_scopes(session, &mut scopes);
    if session.format() == Format::Json {
        scopes.rows.truncate(session.limit().unwrap_or(usize::MAX));
        return session.print_json(&wire::scope_sums(&session.header(), &scopes, trace));
    }
    // Rows are made of what is shown alone: a tree may have a million nodes.
    let table = views::scope_sums(&scopes, trace, total, layout, session.limit());
    session.print_table(table, sorting.map(|sorting| sorting.column))
}

pub(super) fn triage(args: &TriageArgs, session: &mut Session<'_>, head: usize) -> Result<(), Failure> {
    if args.compare.is_some() {
        return Err(Failure::Usage("--compare takes traces; `longpole diff BEFORE AFTER` compares totals".to_owned()));
    }
    if args.unprofiled_step_ms.is_some() {
        return Err(Failure::Usage("--unprofiled-step-ms restates host times, and totals have none".to_owned()));
    }
    let sorting = sort::kernel_sums(args.common.sort.as_deref())?;
    let trace = session.index.trace();
    let workload = session.shown(args.workload.as_deref());
    let mut result = sums_triage(trace, &session.scope, workload.as_deref(), args.common.full_names);
    session.analysed();
    if let Some(sorting) = &sorting {
        result.kernels.sort_by(sorting.order);
    }
    filter_kernels(session, &mut result.kernels);
    session.filter(&mut result.families, |regex, row| regex.is_match(row.family.name()));
    filter_scopes(session, &mut result.scopes);
    let (header, limit, pattern) = (session.header(), session.limit_or(head), session.pattern());
    if args.report_only {
        session.trust_to_stderr();
        return session.print(&sums_report_lines(&result, header.trust, &session.options));
    }
    let page = Page { limit, sorted_by: sorting.map(|sorting| sorting.column), filter: pattern.as_deref() };
    match session.format() {
        Format::Json => {
            let limit = limit.unwrap_or(usize::MAX);
            result.kernels.truncate(limit);
            result.families.truncate(limit);
            result.scopes.rows.truncate(limit);
            session.print_json(&wire::sums_triage(&header, &result, trace))
        }
        Format::Markdown => session.print(&sums_markdown(&header, &result, trace, &page, args.common.full_names)),
        _ => session.print(&sums_text(&header, &result, trace, &page, args.common.full_names, &session.options)),
    }
}

/// Compares two sources of sums. One of each kind cannot be compared.
pub(super) fn diff(args: &DiffArgs, session: &mut Session<'_>, head: usize) -> Result<(), Failure> {
    if args.gate {
        return Err(Failure::Check("totals have no steps to compare, so nothing shows that they are not slower".to_owned()));
    }
    let before = session.read_second(&args.common.input)?;
    same_kind(session, &before, &args.common.input)?;
    let side = |trace, scope| SumsSide { trace, scope };
    let mut result = diff_sums(&side(before.index.trace(), &before.scope), &side(session.index.trace(), &session.scope));
    session.analysed();
    session.filter(&mut result.rows, |regex, row| regex.is_match(&row.key) || regex.is_match(&row.label));
    let limit = session.limit_or(head);
    let layout = DiffLayout { limit, full_names: args.common.full_names };
    match session.format() {
        Format::Json => session.print_json(&wire::diff(&before.header(), &session.header(), &result, limit)),
        Format::Csv => session.print_table(views::diff_csv(&result), None),
        Format::Text | Format::Markdown => session.print_blocks(&views::diff(&result, &before.header(), &layout)),
    }?;
    session.judge(&before)
}

/// Sums compare with sums, and timelines with timelines.
pub(super) fn same_kind(session: &Session<'_>, before: &Beside, named: &OsStr) -> Result<(), Failure> {
    let is_sums = |before: bool| if before { "holds totals only" } else { "has a timeline" };
    let (a, b) = (before.index.trace().has_totals_only(), session.index.trace().has_totals_only());
    if a == b {
        return Ok(());
    }
    let named = session.shown(Some(&named.to_string_lossy())).unwrap_or_default();
    Err(Failure::Input(format!("`{named}` {} and `{}` {}: they cannot be compared", is_sums(a), session.source_path(), is_sums(b))))
}
