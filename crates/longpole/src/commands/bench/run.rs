//! `longpole bench run`

use std::collections::BTreeSet;

use longpole_bench::key::Key;
use longpole_bench::results::Results;
use longpole_report::{Block, views, wire};

use super::print;
use super::work::{Again, PeaksFile, completed, conclude, folder, gate, rules, suite, suite_before};
use crate::args::{BenchRunArgs, Format, SaveFlags};
use crate::bench::bar::Bar;
use crate::bench::judge::same_device;
use crate::bench::measure::Measuring;
use crate::bench::record::{Place, Record};
use crate::bench::when::When;
use crate::bench::{choose, show, store};
use crate::exit::Failure;
use crate::target::refuse_inputs;

pub(super) fn run(args: &BenchRunArgs) -> Result<(), Failure> {
    if args.compare.is_none() && (args.comparing.gate || args.comparing.suite_before.is_some()) {
        return Err(Failure::Usage("--gate and --suite-before compare with something: name it with --compare BEFORE".to_owned()));
    }
    // Before anything is measured, so that a mistyped path does not cost the measuring.
    let before = args.compare.as_deref().map(store::read).transpose()?;
    let peaks = PeaksFile::read(args.peaks.as_deref())?;
    let read = [before.as_ref().map(|(_, path)| path.as_os_str()), args.peaks.as_deref()];
    refuse_inputs(args.save.output.as_deref().map(AsRef::as_ref), &read)?;
    let suite = suite(&args.suite)?;
    let suite_before = suite_before(&args.comparing, &args.suite.more)?;
    let list = suite.list()?;
    let selectors = [args.keys.as_slice(), &args.more_keys].concat();
    let chosen = choose::benchmarks(&list, &selectors, args.model.as_deref())?;
    let keys: Vec<_> = chosen.iter().map(|benchmark| benchmark.key.clone()).collect();
    let when = When::now();
    let SaveFlags { output, results, no_save } = &args.save;
    let parent = folder(results.as_deref());
    let place = match output {
        _ if *no_save => Place::Nowhere,
        Some(path) => Place::File(path.clone()),
        None => Place::Folder(parent.clone(), None),
    };
    let mut record = Record::new(&list.suite, when, place)?;
    let bar = Bar::new(keys.len(), args.out.quiet);
    let words = args.measure.words();
    Measuring { suite: &suite, args: &words, bar: &bar, stage: "" }.all(&mut record, &keys, 0)?;
    completed(&mut record, &bar);
    let saved = |record: &Record| record.path().map(|path| path.display().to_string());
    let unsaved = |record: &Record| record.unsaved().map(str::to_owned).into_iter().collect::<Vec<_>>();
    let limit = args.out.rows();
    let Some((before, before_path)) = before else {
        drop(bar);
        let peaks = peaks.of(&record.results);
        let report = show::report(&record.results, saved(&record).as_deref(), peaks.as_ref());
        print(&args.out, || views::bench(&report, limit), || views::bench_table(&report, limit), &wire::bench(&report, limit))?;
        return conclude(all_well(&record.results), &unsaved(&record));
    };
    same_device(&before, &record.results, args.comparing.other_device)?;
    let again = Again {
        before: suite_before.as_ref(),
        after: &suite,
        args: &words,
        rounds: args.comparing.rounds as usize,
        bar: &bar,
        folder: (!no_save && output.is_none()).then_some(parent.as_path()),
        when,
    };
    let rules = rules(&args.comparing);
    // What was not measured now is not missing from the suite: only the chosen benchmarks are compared.
    let before = only(before, &keys);
    let (mut comparison, mut lost) = again.settle(&before, &mut record, &rules);
    drop(bar);
    comparison.before.path = Some(before_path.display().to_string());
    comparison.after.path = saved(&record);
    let peaks = peaks.of(&record.results);
    let report = show::report(&record.results, saved(&record).as_deref(), peaks.as_ref());
    let blocks = || -> Vec<Block> { views::bench(&report, limit).into_iter().chain(views::bench_compare(&comparison, limit)).collect() };
    print(&args.out, blocks, || views::bench_compare_table(&comparison, limit), &wire::bench_compare(&comparison, limit))?;
    lost.extend(unsaved(&record));
    // Documents and tables of a comparison leave failures to --gate and to who reads them.
    let is_for_people = args.out.format.format() == Format::Text;
    let found = gate(&args.comparing, &comparison).and_then(|()| if is_for_people { all_well(&record.results) } else { Ok(()) });
    conclude(found, &lost)
}

/// The same with these benchmarks alone.
pub(super) fn only(mut results: Results, keys: &[Key]) -> Results {
    let keys: BTreeSet<&Key> = keys.iter().collect();
    results.results.retain(|result| keys.contains(&result.key));
    results.failed.retain(|failed| keys.contains(&failed.key));
    results
}

/// Fails when a benchmark did, or was wrong.
fn all_well(results: &Results) -> Result<(), Failure> {
    let wrong = results.results.iter().filter(|result| result.correct == Some(false)).count();
    let failed = results.failed.len();
    // What was measured may have failed when it was measured again.
    let keys = results.results.iter().map(|result| &result.key).chain(results.failed.iter().map(|failed| &failed.key));
    let all = keys.collect::<BTreeSet<_>>().len();
    match (failed, wrong) {
        (0, 0) => Ok(()),
        (failed, 0) => Err(Failure::Check(format!("{failed} of {all} benchmarks failed"))),
        (0, wrong) => Err(Failure::Check(format!("{wrong} of {all} benchmarks had a wrong result"))),
        (failed, wrong) => Err(Failure::Check(format!("{failed} of {all} benchmarks failed, {wrong} had a wrong result"))),
    }
}
