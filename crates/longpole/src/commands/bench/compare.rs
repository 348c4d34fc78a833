//! `longpole bench compare`

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;

use longpole_bench::key::Key;
use longpole_bench::protocol::List;
use longpole_bench::results::Results;
use longpole_report::{BenchComparison, BenchUnpaired, views, wire};

use super::print;
use super::run::only;
use super::work::{Again, completed, conclude, folder, gate, rules, suite, suite_before};
use crate::args::BenchCompareArgs;
use crate::bench::bar::Bar;
use crate::bench::judge::{Sides, same_device};
use crate::bench::measure::Measuring;
use crate::bench::record::{Place, Record};
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
    unsaved: &[String],
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
    conclude(gate(&args.comparing, &comparison), unsaved)
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
        return finish(args, comparison, paths, &[]);
    };
    let suite_after = suite(&args.suite)?;
    let bar = Bar::new(0, args.out.quiet);
    // A copy, which is not saved over what is there.
    let mut record = Record::of(after);
    let words = args.measure.words();
    let (comparison, unsaved) = again(args, &words, Some(&suite_before), &suite_after, &bar).settle(&before, &mut record, &rules);
    drop(bar);
    finish(args, comparison, paths, &unsaved)
}

fn again<'a>(args: &'a BenchCompareArgs, words: &'a [OsString], before: Option<&'a Suite>, after: &'a Suite, bar: &'a Bar) -> Again<'a> {
    Again {
        before,
        after,
        args: words,
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
    let listed: BTreeSet<&Key> = list.benchmarks.iter().map(|benchmark| &benchmark.key).collect();
    let keys: Vec<Key> = before.results.iter().map(|result| result.key.clone()).filter(|key| listed.contains(key)).collect();
    if keys.is_empty() {
        return Err(Failure::Input(format!("the suite `{}` has none of the benchmarks in `{}`", suite.name(), before_path.display())));
    }
    let bar = Bar::new(keys.len(), args.out.quiet);
    let words = args.measure.words();
    let mut record = measured(args, &suite, &list.suite, &keys, &bar, None)?;
    same_device(&before, &record.results, args.comparing.other_device)?;
    let again = again(args, &words, suite_before.as_ref(), &suite, &bar);
    let (mut comparison, mut unsaved) = again.settle(&before, &mut record, &rules(&args.comparing));
    drop(bar);
    // What the results did not choose, the suite may have all the same.
    let all: Vec<Key> = list.benchmarks.iter().map(|benchmark| benchmark.key.clone()).collect();
    let known: BTreeSet<&Key> =
        before.results.iter().map(|result| &result.key).chain(before.failed.iter().map(|failed| &failed.key)).collect();
    let chosen = choose::keys(&all, &args.keys, args.model.as_deref()).unwrap_or_default();
    comparison
        .unpaired
        .extend(chosen.iter().filter(|key| !known.contains(key)).map(|key| missing(key, false, "not in the results from before")));
    unsaved.extend(record.unsaved().map(str::to_owned));
    finish(args, comparison, (Some(&before_path), record.path()), &unsaved)
}

/// A benchmark that one side does not have, so that it was not measured.
fn missing(key: &Key, in_before: bool, why: &str) -> BenchUnpaired {
    BenchUnpaired { key: key.to_string(), in_before, in_after: !in_before, why: Some(format!("{why}, so it was not measured")) }
}

/// Two suites, both measured now.
fn of_suites(args: &BenchCompareArgs) -> Result<(), Failure> {
    let Some(suite_before) = suite_before(&args.comparing, &args.suite.more)? else {
        return Err(Failure::Usage("what is compared? Name results (BEFORE), or the suite of the first build with --suite-before and that of the second with --suite-after".to_owned()));
    };
    let suite_after = suite(&args.suite)?;
    let (list_before, list_after) = (suite_before.list()?, suite_after.list()?);
    let has = |list: &List| list.benchmarks.iter().map(|benchmark| benchmark.key.clone()).collect::<BTreeSet<_>>();
    let (has_before, has_after) = (has(&list_before), has(&list_after));
    // Chosen from what either has, in the order of the second: what one lacks is said.
    let of_before = list_before.benchmarks.iter().map(|benchmark| &benchmark.key).filter(|key| !has_after.contains(key));
    let all: Vec<Key> = list_after.benchmarks.iter().map(|benchmark| &benchmark.key).chain(of_before).cloned().collect();
    let keys = choose::keys(&all, &args.keys, args.model.as_deref())?;
    let in_both: Vec<Key> = keys.iter().filter(|key| has_before.contains(key) && has_after.contains(key)).cloned().collect();
    if in_both.is_empty() {
        return Err(Failure::Usage(format!("the two suites have none of the {} chosen benchmarks in common", keys.len())));
    }
    let bar = Bar::new(2 * in_both.len(), args.out.quiet);
    let words = args.measure.words();
    let mut before = measured(args, &suite_before, &list_before.suite, &in_both, &bar, Some("before"))?;
    // Whatever state the sources are in, it is that of the second build at best.
    before.results.git = None;
    completed(&mut before, &bar);
    let mut after = measured(args, &suite_after, &list_after.suite, &in_both, &bar, Some("after"))?;
    same_device(&before.results, &after.results, args.comparing.other_device)?;
    let again = again(args, &words, Some(&suite_before), &suite_after, &bar);
    let (mut comparison, mut unsaved) = again.settle(&before.results, &mut after, &rules(&args.comparing));
    drop(bar);
    let lost = keys.iter().filter(|key| !has_after.contains(key)).map(|key| missing(key, true, "the suite after does not have it"));
    let new = keys.iter().filter(|key| !has_before.contains(key)).map(|key| missing(key, false, "the suite from before does not have it"));
    comparison.unpaired.extend(lost.chain(new));
    unsaved.extend([&before, &after].into_iter().filter_map(|record| record.unsaved().map(str::to_owned)));
    finish(args, comparison, (before.path(), after.path()), &unsaved)
}

/// One process of a suite with these benchmarks.
fn measured(
    args: &BenchCompareArgs,
    suite: &Suite,
    info: &longpole_bench::protocol::SuiteInfo,
    keys: &[Key],
    bar: &Bar,
    side: Option<&'static str>,
) -> Result<Record, Failure> {
    let when = When::now();
    let place = if args.no_save { Place::Nowhere } else { Place::Folder(folder(args.results.as_deref()), side) };
    let mut record = Record::new(info, when, place)?;
    let stage = side.map(|side| format!("{side}: ")).unwrap_or_default();
    let words = args.measure.words();
    Measuring { suite, args: &words, bar, stage: &stage }.all(&mut record, keys, 0)?;
    completed(&mut record, bar);
    Ok(record)
}
