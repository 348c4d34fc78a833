//! `longpole triage`, which is also `longpole FILE`

use std::ffi::OsString;
use std::path::Path;

use clap::Parser as _;
use longpole_analysis::{Triage, TriageOptions, triage};
use longpole_report::views::DiffLayout;
use longpole_report::{Page, blocks_markdown, blocks_text, printable, report_lines, triage_markdown, triage_text, views, wire};

use super::ops::{sort_key, sort_rows};
use crate::args::{Cli, Command, Format, TriageArgs};
use crate::exit::Failure;
use crate::session::Session;
use crate::sort::ops_column;
use crate::terminal;

/// Operators and ranges on the page when the user does not say.
const HEAD: usize = 10;

pub(super) fn run(args: &TriageArgs) -> Result<(), Failure> {
    if args.common.format.format() == Format::Csv {
        return Err(Failure::Usage(
            "triage is several tables; use `longpole ops`, `kernels`, `families`, `ranges` or `memory` with --csv".to_owned(),
        ));
    }
    let key = sort_key(args.common.sort.as_deref());
    let mut session = Session::open_with_arguments(&args.common)?;
    if session.has_totals_only() {
        return super::sums::triage(args, &mut session, HEAD);
    }
    let key = key?;
    let options = TriageOptions {
        workload: session.shown(args.workload.as_deref()),
        unprofiled_step: args.unprofiled_step_ms,
        is_cut: session.is_cut(),
        full_names: args.common.full_names,
    };
    let mut result = triage(&session.index, &session.scope, &options);
    let key = sort_rows(&mut result.ops, key);
    session.analysed();
    if result.host_clock.as_ref().is_some_and(|clock| clock.calibration.is_some()) {
        session.is_calibrated();
    }
    filter(&mut session, &mut result);
    let (header, trace, limit) = (session.header(), session.index.trace(), session.limit_or(HEAD));
    let pattern = session.pattern();
    let page = Page { limit, sorted_by: Some(ops_column(key)), filter: pattern.as_deref() };
    if args.report_only {
        session.trust_to_stderr();
        if let Some(clock) = &result.host_clock {
            session.note_to_stderr(&printable(&clock.note));
        }
        return session.print(&report_lines(&result, header.trust, &session.options));
    }
    let compared = match &args.compare {
        Some(before) => Some(super::diff::with(&session, &result, before, false)?),
        None => None,
    };
    if session.format() == Format::Json {
        truncate(&mut result, limit.unwrap_or(usize::MAX));
        return match &compared {
            Some((before, diff)) => {
                session.print_json(&wire::triage_compared(&header, &result, trace, &before.header(), diff, limit))?;
                session.judge(before)
            }
            None => session.print_json(&wire::triage(&header, &result, trace)),
        };
    }
    let layout = DiffLayout { limit: Some(limit.unwrap_or(usize::MAX).min(super::diff::HEAD)), full_names: args.common.full_names };
    let blocks = compared.as_ref().map(|(before, diff)| views::diff(diff, &before.header(), &layout)).unwrap_or_default();
    match session.format() {
        Format::Markdown => session.print(&(triage_markdown(&header, &result, trace, &page) + &blocks_markdown(&blocks))),
        _ => session.print(&(triage_text(&header, &result, trace, &page, &session.options) + &blocks_text(&blocks, &session.options))),
    }?;
    compared.as_ref().map_or(Ok(()), |(before, _)| session.judge(before))
}

/// The page of a recording that was just made, for standard error.
pub(super) fn page_of_recording(path: &Path, no_redact: bool) -> Result<String, Failure> {
    let mut line = vec![OsString::from("longpole"), "triage".into(), "--quiet".into()];
    line.extend(no_redact.then(|| OsString::from("--no-redact")));
    // A name that looks like a flag or like standard input is none.
    let is_odd = path.to_string_lossy().starts_with('-');
    line.push(if is_odd { Path::new(".").join(path).into() } else { path.into() });
    let cli = Cli::try_parse_from(line).map_err(|error| Failure::Usage(error.to_string()))?;
    let Command::Triage(args) = &cli.command else { return Err(Failure::Usage("no triage".to_owned())) };
    let mut session = Session::open_with_arguments(&args.common)?;
    session.options = terminal::error_options(&args.common);
    let options = TriageOptions { workload: None, unprofiled_step: None, is_cut: session.is_cut(), full_names: false };
    let mut result = triage(&session.index, &session.scope, &options);
    let key = sort_rows(&mut result.ops, sort_key(None)?);
    let page = Page { limit: Some(HEAD), sorted_by: Some(ops_column(key)), filter: None };
    Ok(triage_text(&session.header(), &result, session.index.trace(), &page, &session.options))
}

/// `--filter` on every list; totals and report stay those of the scope.
fn filter(session: &mut Session<'_>, result: &mut Triage) {
    session.filter(&mut result.ops.rows, |regex, row| regex.is_match(&row.name));
    session.filter(&mut result.families, |regex, row| regex.is_match(row.family.name()));
    session.filter(&mut result.kernels, |regex, row| regex.is_match(&row.name) || regex.is_match(&row.short_name));
    session.filter(&mut result.ranges, |regex, row| regex.is_match(&row.name));
}

fn truncate(result: &mut Triage, limit: usize) {
    result.ops.rows.truncate(limit);
    result.families.truncate(limit);
    result.kernels.truncate(limit);
    result.ranges.truncate(limit);
}
