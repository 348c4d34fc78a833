//! `longpole bench compare`

use std::path::{Path, PathBuf};

use longpole_bench::key::Key;
use longpole_bench::results::Results;
use longpole_report::{BenchComparison, views, wire};

use super::print;
use super::run::only;
use super::work::{Again, gate, place, rules, suite, suite_before};
use crate::args::BenchCompareArgs;
use crate::bench::bar::Bar;
use crate::bench::judge::{Sides, same_device};
use crate::bench::measure::Measuring;
use crate::bench::record::Record;
use crate::bench::suite::Suite;
use crate::bench::when::When;
use crate::bench::{choose, store};
use crate::exit::Failure;

pub(super) fn run(args: &BenchCompareArgs) -> Result<(), Failure> {
    if args.before.is_none() && args.after.is_some() {
        return Err(Failure::Usage("AFTER without BEFORE".to_owned()));
    }
    match (&args.before, &args.after) {
        (Some(before), Some(after)) => of_files(args, before, after),
        (Some(before), None) => with_now(args, before),
        (None, _) => of_suites(args),
    }
}

/// The benchmarks of results that are meant.
fn chosen(args: &BenchCompareArgs, results: Results) -> Result<Results, Failure> {
    if args.keys.is_empty() && args.model.is_none() {
        return Ok(results);
    }
    let all: Vec<Key> = results.results.iter().map(|result| result.key.clone()).collect();
    let keys = choose::keys(&all, &args.keys, args.model.as_deref())?;
    Ok(only(results, &keys))
}

fn finish(
    args: &BenchCompareArgs,
    mut comparison: BenchComparison,
    paths: (Option<&Path>, Option<&Path>),
    after: &Results,
) -> Result<(), Failure> {
    let shown = |path: Option<&Path>| path.map(|path| path.display().to_string());
    comparison.before.path = shown(paths.0);
    comparison.after.path = shown(paths.1);
    for path in comparison.before.path.iter_mut().chain(&mut comparison.after.path) {
        longpole_report::redact_string(path);
    }
    let limit = args.out.rows();
    print(
        &args.out,
        || views::bench_compare(&comparison, limit),
        || views::bench_compare_table(&comparison, limit),
        &wire::bench_compare(&comparison, limit),
    )?;
    gate(&args.comparing, &comparison, after)
}

/// What was measured, twice. Where both suites are named, what is in doubt is measured again.
fn of_files(args: &BenchCompareArgs, before: &Path, after: &Path) -> Result<(), Failure> {
    let ((before, before_path), (after, after_path)) = (store::read(before)?, store::read(after)?);
    let (before, after) = (chosen(args, before)?, chosen(args, after)?);
    same_device(&before, &after, args.comparing.other_device)?;
    let rules = rules(&args.comparing);
    let paths = (Some(before_path.as_path()), Some(after_path.as_path()));
    let (Some(suite_before), Some(_)) = (suite_before(&args.comparing, &args.suite.more)?, &args.suite.suite) else {
        let comparison = Sides::new(&before, &after).compare(&rules);
        return finish(args, comparison, paths, &after);
    };
    let suite_after = suite(&args.suite)?;
    let bar = Bar::new(0, args.out.quiet);
    // A copy, which is not saved over what is there.
    let mut record = Record { results: after, path: None };
    let comparison = again(args, Some(&suite_before), &suite_after, &bar).settle(&before, &mut record, &rules)?;
    drop(bar);
    finish(args, comparison, paths, &record.results)
}

fn again<'a>(args: &'a BenchCompareArgs, before: Option<&'a Suite>, after: &'a Suite, bar: &'a Bar) -> Again<'a> {
    Again {
        before,
        after,
        args: &[],
        rounds: args.comparing.rounds as usize,
        bar,
        folder: (!args.no_save).then_some(args.results.as_deref().unwrap_or(Path::new(store::FOLDER))),
        when: When::now(),
    }
}

/// What was measured, and the suite as it is now.
fn with_now(args: &BenchCompareArgs, before: &Path) -> Result<(), Failure> {
    let (before, before_path) = store::read(before)?;
    let before = chosen(args, before)?;
    let suite = suite(&args.suite)?;
    let suite_before = suite_before(&args.comparing, &args.suite.more)?;
    let list = suite.list()?;
    let has = |key: &Key| list.benchmarks.iter().any(|benchmark| benchmark.key == *key);
    let keys: Vec<Key> = before.results.iter().map(|result| result.key.clone()).filter(|key| has(key)).collect();
    if keys.is_empty() {
        return Err(Failure::Input(format!("the suite `{}` has none of the benchmarks in `{}`", suite.name(), before_path.display())));
    }
    let bar = Bar::new(keys.len(), args.out.quiet);
    let words = args.measure.words();
    let mut record = measured(args, &suite, &list.suite, &keys, &bar, None)?;
    same_device(&before, &record.results, args.comparing.other_device)?;
    let again = Again { args: &words, ..again(args, suite_before.as_ref(), &suite, &bar) };
    let comparison = again.settle(&before, &mut record, &rules(&args.comparing))?;
    drop(bar);
    let Record { results, path } = record;
    finish(args, comparison, (Some(&before_path), path.as_deref()), &results)
}

/// Two suites, both measured now.
fn of_suites(args: &BenchCompareArgs) -> Result<(), Failure> {
    let Some(suite_before) = suite_before(&args.comparing, &args.suite.more)? else {
        return Err(Failure::Usage("BEFORE is missing: name results, or a suite with --suite-before".to_owned()));
    };
    let suite_after = suite(&args.suite)?;
    let (list_before, list_after) = (suite_before.list()?, suite_after.list()?);
    let chosen = choose::benchmarks(&list_after, &args.keys, args.model.as_deref())?;
    let keys: Vec<Key> = chosen.iter().map(|benchmark| benchmark.key.clone()).collect();
    let in_before: Vec<Key> =
        keys.iter().filter(|key| list_before.benchmarks.iter().any(|benchmark| benchmark.key == **key)).cloned().collect();
    if in_before.is_empty() {
        return Err(Failure::Usage(format!("the two suites have none of the {} chosen benchmarks in common", keys.len())));
    }
    let bar = Bar::new(2 * in_before.len(), args.out.quiet);
    let words = args.measure.words();
    let mut before = measured(args, &suite_before, &list_before.suite, &in_before, &bar, Some("before"))?;
    // Whatever state the sources are in, it is that of the second build at best.
    before.results.git = None;
    before.complete()?;
    let mut after = measured(args, &suite_after, &list_after.suite, &in_before, &bar, Some("after"))?;
    same_device(&before.results, &after.results, args.comparing.other_device)?;
    let again = Again { args: &words, ..again(args, Some(&suite_before), &suite_after, &bar) };
    let mut comparison = again.settle(&before.results, &mut after, &rules(&args.comparing))?;
    drop(bar);
    for key in keys.iter().filter(|key| !in_before.contains(key)) {
        let why = Some("the suite from before does not have it".to_owned());
        comparison.unpaired.push(longpole_report::BenchUnpaired { key: key.to_string(), in_before: false, in_after: true, why });
    }
    let Record { results, path } = after;
    finish(args, comparison, (before.path.as_deref(), path.as_deref()), &results)
}

/// One process of a suite with these benchmarks.
fn measured(
    args: &BenchCompareArgs,
    suite: &Suite,
    info: &longpole_bench::protocol::SuiteInfo,
    keys: &[Key],
    bar: &Bar,
    side: Option<&str>,
) -> Result<Record, Failure> {
    let when = When::now();
    let path: Option<PathBuf> = (!args.no_save).then(|| place(args.results.as_deref(), when, info, side));
    let mut record = Record::new(info, when, path);
    let stage = side.map(|side| format!("{side}: ")).unwrap_or_default();
    let words = args.measure.words();
    Measuring { suite, args: &words, bar, stage: &stage }.all(&mut record, keys, 0)?;
    record.complete()?;
    Ok(record)
}
