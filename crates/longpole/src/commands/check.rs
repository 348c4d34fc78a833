//! `longpole check`

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use longpole_analysis::{ScopeSpec, TriageOptions, triage};
use longpole_report::{CheckReport, Grade, blocks_markdown, markdown_header, redact_string};
use longpole_report::{views, wire};

use super::diff;
use crate::args::{CheckArgs, Format};
use crate::check::budget::{self, Budget, Compared, Limit};
use crate::check::documents::{Documents, Subject};
use crate::check::judge::{Baseline, Baselines, judge};
use crate::check::{github, propose};
use crate::exit::{Failure, complain};
use crate::session::{Beside, Session};

/// What a document that was printed as JSON begins with.
const PRINTED: &str = "\"schema\": \"longpole.";
/// Larger documents are not compared with.
const MOST_BYTES: u64 = 256 << 20;
/// Baselines of one budget, each of which stays in memory.
const MOST_BASELINES: usize = 8;
/// Limits named in the last sentence.
const NAMED: usize = 4;

pub(super) fn run(args: &CheckArgs) -> Result<(), Failure> {
    match &args.budget {
        Some(path) => check(args, path),
        None => propose(args),
    }
}

fn check(args: &CheckArgs, path: &OsStr) -> Result<(), Failure> {
    let mut budget = budget::read(path)?;
    if let Some(regex) = &args.common.filter {
        let names = budget.limits.iter().map(|limit| &limit.name).chain(budget.regressions.iter().map(|regression| &regression.name));
        let names: Vec<String> = names.cloned().collect();
        budget.limits.retain(|limit| regex.is_match(&limit.name));
        budget.regressions.retain(|regression| regex.is_match(&regression.name));
        if budget.limits.is_empty() && budget.regressions.is_empty() {
            // A check of nothing would pass, whatever the trace.
            let shown = names[..names.len().min(NAMED)].join(", ");
            let more = more(names.len());
            return Err(Failure::Usage(format!(
                "no limit of the budget has a name that --filter `{regex}` matches; there are {shown}{more}"
            )));
        }
    }
    let mut session = Session::open_within(&args.common, within(&budget.scope, args.common.scope.spec()))?;
    if session.has_totals_only() {
        of_totals(&session, &budget)?;
    }
    let mut baselines = read_baselines(&session, &budget, Path::new(path))?;
    let subject = Subject { index: &session.index, scope: &session.scope, header: session.header(), is_cut: session.is_cut() };
    let mut report = judge(&budget, &path.to_string_lossy(), &mut Documents::of(subject), &mut baselines)?;
    session.analysed();
    if session.header().trust.grade == Grade::Partial {
        report.notes.push("data is missing from the trace: totals are lower bounds, and a `max` that holds may not".to_owned());
    }
    if !args.common.no_redact {
        redact(&mut report);
    }
    let limit = session.limit_or(usize::MAX);
    let blocks = views::check(&report, limit);
    if args.github {
        summarise(&session, &format!("{}{}", markdown_header(&session.header()), blocks_markdown(&blocks)));
    }
    let annotations = if args.github { github::annotations(&report) } else { String::new() };
    if session.format() != Format::Text && args.github {
        // GitHub reads both streams, and this way the document stays whole.
        complain(annotations.trim_end());
    }
    match session.format() {
        Format::Json => session.print_json(&wire::check(&session.header(), &report, limit)),
        Format::Csv => session.print_table(views::check_csv(&report), None),
        Format::Markdown => session.print_blocks(&blocks),
        Format::Text => {
            let printed = session.print_blocks(&blocks);
            let mut out = io::stdout().lock();
            out.write_all(annotations.as_bytes()).and_then(|()| out.flush())?;
            printed
        }
    }?;
    baselines.values().filter_map(|baseline| baseline.trace).try_for_each(|before| session.judge(before))?;
    let failed: Vec<&str> = report.limits.iter().filter(|limit| !limit.ok).map(|limit| limit.name.as_str()).collect();
    if failed.is_empty() {
        return Ok(());
    }
    Err(Failure::Check(format!("over budget: {}{}", failed[..failed.len().min(NAMED)].join(", "), more(failed.len()))))
}

/// Totals have no steps to compare, and no documents but these.
fn of_totals(session: &Session<'_>, budget: &Budget) -> Result<(), Failure> {
    if !budget.regressions.is_empty() {
        return session.needs("check` with a `[[regression]]", "holds totals only, not when anything ran");
    }
    match budget.limits.iter().flat_map(Limit::documents).find(|name| !name.is_of_totals()) {
        Some(name) => session.needs_timeline(name.code()),
        None => Ok(()),
    }
}

/// What is said behind the first names of so many.
fn more(names: usize) -> String {
    let more = names.saturating_sub(NAMED);
    if more > 0 { format!(" and {more} more") } else { String::new() }
}

/// What the command line says goes before what the budget says.
fn within(budget: &ScopeSpec, asked: ScopeSpec) -> ScopeSpec {
    ScopeSpec {
        range: asked.range.or_else(|| budget.range.clone()),
        step: asked.step.or(budget.step),
        time: asked.time.or(budget.time),
        device: asked.device.or(budget.device),
        rank: asked.rank.or(budget.rank),
    }
}

/// Takes what is private out of what the user typed; what the traces hold is clean already.
fn redact(report: &mut CheckReport) {
    redact_string(&mut report.budget);
    report.notes.iter_mut().for_each(redact_string);
    for limit in &mut report.limits {
        redact_string(&mut limit.name);
        redact_string(&mut limit.path);
        limit.over.iter_mut().chain(&mut limit.baseline).chain(&mut limit.reason).for_each(redact_string);
    }
}

/// Reads each baseline once.
fn read_baselines(session: &Session<'_>, budget: &Budget, path: &Path) -> Result<Baselines<'static>, Failure> {
    let mut baselines = Baselines::new();
    for regression in &budget.regressions {
        let name = &regression.baseline;
        if !baselines.contains_key(name) {
            if baselines.len() == MOST_BASELINES {
                return Err(Failure::Usage(format!("the budget names more than {MOST_BASELINES} baselines")));
            }
            let file = path.parent().unwrap_or(Path::new("")).join(name);
            baselines.insert(name.clone(), read_baseline(session, budget, name, &file)?);
        }
    }
    Ok(baselines)
}

fn read_baseline(session: &Session<'_>, budget: &Budget, name: &str, file: &Path) -> Result<Baseline<'static>, Failure> {
    let unusable = |error: &dyn std::fmt::Display| Failure::Input(format!("the baseline `{}`: {error}", file.display()));
    if is_printed(file).map_err(|error| unusable(&error))? {
        let mut text = Vec::new();
        File::open(file).and_then(|file| file.take(MOST_BYTES).read_to_end(&mut text)).map_err(|error| unusable(&error))?;
        let document = serde_json::from_slice(&text).map_err(|error| unusable(&error))?;
        return Ok(Baseline { documents: Documents::printed(document).map_err(|error| unusable(&error))?, diff: None, trace: None });
    }
    let before = session.read_second(file.as_os_str())?;
    // Never freed, like the trace in it: the process ends when the command does.
    let before: &'static Beside = Box::leak(Box::new(before));
    let is_compared = |of: &budget::Regression| of.baseline == name && matches!(of.what, Compared::Rows(_));
    let diff = budget.regressions.iter().any(is_compared).then(|| {
        let options = TriageOptions { is_cut: session.is_cut(), ..TriageOptions::default() };
        let first = triage(&session.index, &session.scope, &options);
        diff::compare(session, &first, before, false)
    });
    let subject = Subject { index: &before.index, scope: &before.scope, header: before.header(), is_cut: before.is_cut() };
    Ok(Baseline { documents: Documents::of(subject), diff, trace: Some(before) })
}

/// Whether a file holds a document that a command printed.
fn is_printed(file: &Path) -> io::Result<bool> {
    if file.is_dir() {
        return Ok(false);
    }
    let mut start = Vec::new();
    File::open(file)?.take(64).read_to_end(&mut start)?;
    let start = String::from_utf8_lossy(&start);
    Ok(start.trim_start().strip_prefix('{').is_some_and(|rest| {
        let rest = rest.trim_start();
        rest.starts_with(PRINTED) || rest.starts_with(&PRINTED.replace(' ', ""))
    }))
}

/// Adds the report to the summary of a GitHub job, where there is one.
fn summarise(session: &Session<'_>, markdown: &str) {
    let Some(path) = std::env::var_os("GITHUB_STEP_SUMMARY").filter(|path| !path.is_empty()) else { return };
    let written = OpenOptions::new().append(true).create(true).open(&path).and_then(|mut file| file.write_all(markdown.as_bytes()));
    if let Err(error) = written {
        session.note_to_stderr(&format!("cannot write to $GITHUB_STEP_SUMMARY: {error}"));
    }
}

fn propose(args: &CheckArgs) -> Result<(), Failure> {
    let mut session = Session::open_within(&args.common, args.common.scope.spec())?;
    session.needs_timeline("check --write-budget")?;
    let header = session.header();
    let subject = Subject { index: &session.index, scope: &session.scope, header, is_cut: session.is_cut() };
    let (text, limits) = propose::budget(&mut Documents::of(subject), &header.source.path, header.scope)?;
    session.analysed();
    let Some(output) = args.output.as_ref().filter(|output| *output != "-") else { return session.print(&text) };
    let path = PathBuf::from(output);
    let created = OpenOptions::new().write(true).create_new(true).open(&path);
    let mut file = created.map_err(|error| match error.kind() {
        // A budget that someone tuned is not overwritten.
        io::ErrorKind::AlreadyExists => Failure::Usage(format!("`{}` is there already: remove it, or write elsewhere", path.display())),
        _ => Failure::Usage(format!("`{}` cannot be written: {error}", path.display())),
    })?;
    file.write_all(text.as_bytes())?;
    let shown = session.shown(Some(&path.to_string_lossy())).unwrap_or_default();
    session.note_to_stderr(&format!("wrote {limits} limits to {}", longpole_report::printable(&shown)));
    session.print("")
}
