//! `longpole diff`

use std::ffi::OsStr;

use clap::Parser as _;
use longpole_analysis::{
    Diff, DiffKind, DiffSide, StepOptions, StepTable, TraceIndex, Triage, TriageOptions, borrow_roles, diff, role_donors, step_table,
    triage,
};
use longpole_report::views::DiffLayout;
use longpole_report::{views, wire};
use longpole_stats::Verdict;

use super::is_report;
use crate::args::{Cli, Command, DiffArgs, Format};
use crate::exit::Failure;
use crate::session::{Beside, Session};

/// Rows of each table when the user does not say.
pub(super) const HEAD: usize = 8;

pub(super) fn run(args: &DiffArgs) -> Result<(), Failure> {
    if is_report(&args.common.input) && is_report(&args.after) {
        return compare_reports(args);
    }
    if args.common.input == "-" && args.after == "-" {
        return Err(Failure::Usage("standard input holds one trace: only one of BEFORE and AFTER can be `-`".to_owned()));
    }
    let mut session = Session::open_other(&args.common, &args.after)?;
    if session.has_totals_only() {
        return super::sums::diff(args, &mut session, HEAD);
    }
    let options = TriageOptions { is_cut: session.is_cut(), ..TriageOptions::default() };
    let first = triage(&session.index, &session.scope, &options);
    let (before, mut result) = with(&session, &first, &args.common.input, args.ignore_ranges)?;
    session.analysed();
    session.filter(&mut result.rows, |regex, row| row.kind == DiffKind::Step || regex.is_match(&row.key) || regex.is_match(&row.label));
    let limit = session.limit_or(HEAD);
    let layout = DiffLayout { limit, full_names: args.common.full_names };
    match session.format() {
        Format::Json => session.print_json(&wire::diff(&before.header(), &session.header(), &result, limit)),
        Format::Csv => session.print_table(views::diff_csv(&result), None),
        Format::Text | Format::Markdown => session.print_blocks(&views::diff(&result, &before.header(), &layout)),
    }?;
    session.judge(&before)?;
    gate(args, &result)
}

/// Compares the trace of a session with one from before, in the same scope. `first` is the session's first report.
pub(super) fn with(session: &Session<'_>, first: &Triage, before: &OsStr, ignore_ranges: bool) -> Result<(Beside, Diff), Failure> {
    let named = before;
    let before = session.read_second(named)?;
    super::sums::same_kind(session, &before, named)?;
    let result = compare(session, first, &before, ignore_ranges);
    Ok((before, result))
}

/// The same of one that was read.
pub(super) fn compare(session: &Session<'_>, first: &Triage, before: &Beside, ignore_ranges: bool) -> Diff {
    let options = StepOptions { ignore_ranges, ..StepOptions::default() };
    let mut steps_before = step_table(&before.index, &before.scope, &options);
    let mut steps_after = step_table(&session.index, &session.scope, &options);
    share_roles(&before.index, &mut steps_before, &session.index, &mut steps_after);
    let options = TriageOptions { is_cut: before.is_cut(), ..TriageOptions::default() };
    let first_before = triage(&before.index, &before.scope, &options);
    diff(
        &DiffSide { index: &before.index, scope: &before.scope, steps: &steps_before, triage: &first_before, is_cut: before.is_cut() },
        &DiffSide { index: &session.index, scope: &session.scope, steps: &steps_after, triage: first, is_cut: session.is_cut() },
    )
}

/// What one of the two traces knows about its kernels, the other may as well: a graph replay and an eager run of one model.
fn share_roles(a: &TraceIndex<'_>, of_a: &mut StepTable, b: &TraceIndex<'_>, of_b: &mut StepTable) {
    let (from_a, from_b) = (role_donors(a.trace(), of_a), role_donors(b.trace(), of_b));
    for group in &mut of_a.groups {
        borrow_roles(a.trace(), group, &from_b);
    }
    for group in &mut of_b.groups {
        borrow_roles(b.trace(), group, &from_a);
    }
}

fn gate(args: &DiffArgs, result: &Diff) -> Result<(), Failure> {
    if args.gate && result.pairs.is_empty() {
        return Err(Failure::Check("no steps of the two traces could be compared, so nothing shows that they are not slower".to_owned()));
    }
    let slower: Vec<&str> = result.pairs.iter().filter(|pair| pair.verdict == Verdict::Slower).map(|pair| pair.names.1.as_str()).collect();
    if args.gate && !slower.is_empty() {
        return Err(Failure::Check(format!("slower: {}", slower.join(", "))));
    }
    Ok(())
}

/// Two reports of Nsight Compute have a comparison of their own.
fn compare_reports(args: &DiffArgs) -> Result<(), Failure> {
    let mut line = vec!["longpole".into(), "ncu".into(), args.after.clone(), "--compare".into(), args.common.input.clone()];
    line.extend(match args.common.format.format() {
        Format::Json => Some("--json".into()),
        Format::Markdown => Some("--markdown".into()),
        Format::Csv => Some("--csv".into()),
        Format::Text => None,
    });
    let limit = args.common.limit.map(|limit| format!("--limit={limit}").into());
    let kernel = args.common.filter.as_ref().map(|regex| format!("--kernel={}", regex.as_str()).into());
    line.extend(limit.into_iter().chain(kernel));
    line.extend(args.common.full_names.then(|| "--full-names".into()));
    line.extend(args.common.no_redact.then(|| "--no-redact".into()));
    line.extend(args.common.quiet.then(|| "--quiet".into()));
    match Cli::try_parse_from(line).map(|cli| cli.command) {
        Ok(Command::Ncu(args)) => super::ncu::run(&args),
        Ok(_) => Ok(()),
        Err(error) => Err(Failure::Usage(error.to_string())),
    }
}
