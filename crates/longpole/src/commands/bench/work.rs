//! What `run`, `compare` and `peaks` share: suites, places for results, measured peaks, and measuring again what is in doubt.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use longpole_analysis::MeasuredPeaks;
use longpole_bench::key::Key;
use longpole_bench::protocol::SuiteInfo;
use longpole_bench::results::Results;
use longpole_report::{BenchComparison, printable, redact};
use longpole_stats::{LOOKS, RunRules};

use crate::args::{CompareFlags, MoreSuiteFlags, SuiteFlags};
use crate::bench::bar::Bar;
use crate::bench::judge::Sides;
use crate::bench::measure::Measuring;
use crate::bench::record::{Place, Record};
use crate::bench::store;
use crate::bench::suite::Suite;
use crate::bench::when::When;
use crate::exit::{Failure, complain};
use crate::peaks;

/// Where measured peaks are looked for.
pub(super) const PEAKS: &str = "bench/peaks.json";

/// Benchmarks that a message names.
const MOST_NAMED: usize = 10;

/// The suite that flags or the environment name.
pub(super) fn suite(flags: &SuiteFlags) -> Result<Suite, Failure> {
    suite_of(flags.suite.as_deref(), &flags.more)
}

/// The suite of a program.
pub(super) fn suite_of(program: Option<&OsStr>, flags: &MoreSuiteFlags) -> Result<Suite, Failure> {
    Suite::new(program, &flags.suite_arg, Duration::from_secs(u64::from(flags.timeout)))
}

/// The suite from before, where it is named.
pub(super) fn suite_before(flags: &CompareFlags, more: &MoreSuiteFlags) -> Result<Option<Suite>, Failure> {
    flags.suite_before.as_deref().map(|program| suite_of(Some(program), more)).transpose()
}

/// When a difference is one.
pub(super) fn rules(flags: &CompareFlags) -> RunRules {
    RunRules { exclude_throttled: flags.exclude_throttled, ..RunRules::BENCHMARK }
}

/// The folder of results.
pub(super) fn folder(parent: Option<&Path>) -> PathBuf {
    parent.unwrap_or(Path::new(store::FOLDER)).to_path_buf()
}

/// Peaks that results may be held against.
pub(super) struct PeaksFile {
    found: Option<MeasuredPeaks>,
    is_named: bool,
}

impl PeaksFile {
    /// Of a file that was named, or of the usual one. Before anything is measured, so that a mistyped path does not cost the measuring.
    pub(super) fn read(named: Option<&OsStr>) -> Result<Self, Failure> {
        let usual = Some(OsStr::new(PEAKS)).filter(|_| Path::new(PEAKS).is_file());
        let found = named.or(usual).map(|path| peaks::read(path).map(named_by_file(path))).transpose()?;
        Ok(Self { found, is_named: named.is_some() })
    }

    /// Those of the usual file only count if they are of this device.
    pub(super) fn of(self, results: &Results) -> Option<MeasuredPeaks> {
        let device = results.device.as_ref().map(|device| device.name.as_str());
        self.found.filter(|found| self.is_named || found.name.as_deref() == device)
    }
}

fn named_by_file(path: &OsStr) -> impl Fn(MeasuredPeaks) -> MeasuredPeaks {
    let source = path.to_string_lossy().into_owned();
    move |peaks| MeasuredPeaks { source: source.clone(), ..peaks }
}

/// How benchmarks in doubt are measured again.
pub(super) struct Again<'a> {
    /// The suite of the first build, if it is still there.
    pub(super) before: Option<&'a Suite>,
    /// That of the second.
    pub(super) after: &'a Suite,
    /// More arguments of `run`.
    pub(super) args: &'a [OsString],
    /// Most processes a side.
    pub(super) rounds: usize,
    /// Where progress is shown.
    pub(super) bar: &'a Bar,
    /// The folder of results; `None` where nothing is kept.
    pub(super) folder: Option<&'a Path>,
    /// The moment that names what is kept.
    pub(super) when: When,
}

/// Numbers of processes after which it is looked again, at most `rounds`.
fn looks(rounds: usize) -> Vec<usize> {
    let mut looks: Vec<usize> = LOOKS.into_iter().filter(|&look| look < rounds).collect();
    // Beyond the usual ones it is looked as often.
    let last = LOOKS[LOOKS.len() - 1];
    looks.extend((last + LOOKS[0]..rounds).step_by(LOOKS[0]));
    looks.push(rounds);
    looks
}

impl Again<'_> {
    /// Compares, and measures again what is in doubt, until it is no more or the rounds are used up. Whatever goes wrong there, what was
    /// measured before is compared; files that could not be written are told with it.
    pub(super) fn settle(&self, before: &Results, after: &mut Record, rules: &RunRules) -> (BenchComparison, Vec<String>) {
        let doubtful = Sides::new(before, &after.results).in_doubt(rules);
        if doubtful.is_empty() || self.rounds == 0 {
            return (Sides::new(before, &after.results).compare(rules), Vec::new());
        }
        let number = doubtful.len() as u64;
        let (mut comparison, rounds, unsaved) = match self.before {
            Some(suite) => self.in_turns(suite, before, &after.results, doubtful, rules),
            None => self.one_sided(before, after, doubtful, rules),
        };
        comparison.again = Some((number, rounds as u64));
        (comparison, unsaved)
    }

    /// Another process of a suite. One that does nothing is no reason to forget what others did.
    fn process(&self, suite: &Suite, stage: &str, record: &mut Record, keys: &[Key], number: u32) {
        let measuring = Measuring { suite, args: self.args, bar: self.bar, stage };
        if let Err(failure) = measuring.all(record, keys, number) {
            measuring.give_up(record, keys, &failure);
        }
    }

    /// Where the rounds of a suite are kept; nowhere if that cannot be.
    fn record(&self, suite: &SuiteInfo, what: &'static str, unsaved: &mut Vec<String>) -> Record {
        let place = self.folder.map_or(Place::Nowhere, |folder| Place::Folder(folder.to_path_buf(), Some(what)));
        Record::new(suite, self.when, place).unwrap_or_else(|failure| {
            let why = failure.message().unwrap_or_default();
            self.bar.line(&format!("{why}; measuring goes on"));
            unsaved.push(why);
            Record::of(Results::new(self.when.whole(), suite.clone()))
        })
    }

    /// Both builds in turns. The one that began a round comes second in the next, so that neither always finds the device warmer.
    fn in_turns(
        &self,
        suite: &Suite,
        before: &Results,
        after: &Results,
        mut left: Vec<Key>,
        rules: &RunRules,
    ) -> (BenchComparison, usize, Vec<String>) {
        let session = format!("{}-{}", self.when.whole(), std::process::id());
        let mut unsaved = Vec::new();
        let mut from = self.record(&before.suite, "rounds-before", &mut unsaved);
        let mut to = self.record(&after.suite, "rounds-after", &mut unsaved);
        for record in [&mut from, &mut to] {
            record.results.session = Some(session.clone());
        }
        // The sources of the first build are not those that lie here now.
        from.results.git.clone_from(&before.git);
        let mut done = 0;
        for look in looks(self.rounds) {
            self.bar.more(2 * (look - done) * left.len());
            while done < look && !left.is_empty() {
                let stage = |side: &str| format!("round {} of up to {}, {side}: ", done + 1, self.rounds);
                let mut sides = [(suite, stage("before"), &mut from), (self.after, stage("after"), &mut to)];
                if done % 2 == 1 {
                    sides.reverse();
                }
                for (suite, stage, record) in &mut sides {
                    self.process(suite, stage, record, &left, done as u32);
                    // A time without its pair tells nothing.
                    not_failed(&mut left, &record.results);
                    if left.is_empty() {
                        break;
                    }
                }
                done += 1;
            }
            let doubtful = Sides::new(before, after).with_rounds(&from.results, &to.results).in_doubt(rules);
            among(&mut left, doubtful);
            if left.is_empty() {
                break;
            }
        }
        for record in [&mut from, &mut to] {
            completed(record, self.bar);
            unsaved.extend(record.unsaved().map(str::to_owned));
        }
        (Sides::new(before, after).with_rounds(&from.results, &to.results).compare(rules), done, unsaved)
    }

    /// The second build alone, where the first is no more.
    fn one_sided(
        &self,
        before: &Results,
        after: &mut Record,
        mut left: Vec<Key>,
        rules: &RunRules,
    ) -> (BenchComparison, usize, Vec<String>) {
        let mut done = 0;
        let first = after.results.results.iter().flat_map(|result| &result.samples).map(|sample| sample.process).max().unwrap_or(0) + 1;
        for look in looks(self.rounds) {
            self.bar.more((look - done) * left.len());
            while done < look && !left.is_empty() {
                let stage = format!("again, {} of up to {}: ", done + 1, self.rounds);
                self.process(self.after, &stage, after, &left, first + done as u32);
                not_failed(&mut left, &after.results);
                done += 1;
            }
            let doubtful = Sides::new(before, &after.results).in_doubt(rules);
            among(&mut left, doubtful);
            if left.is_empty() {
                break;
            }
        }
        completed(after, self.bar);
        (Sides::new(before, &after.results).compare(rules), done, Vec::new())
    }
}

/// Saves results to which nothing is added any more.
pub(super) fn completed(record: &mut Record, bar: &Bar) {
    record.complete();
    for news in record.news() {
        bar.line(&news);
    }
}

/// Keeps what has not failed, which is not tried again.
fn not_failed(left: &mut Vec<Key>, results: &Results) {
    let failed: BTreeSet<&Key> = results.failed.iter().map(|failed| &failed.key).collect();
    left.retain(|key| !failed.contains(key));
}

/// Keeps what is among others.
fn among(left: &mut Vec<Key>, others: Vec<Key>) {
    let others: BTreeSet<Key> = others.into_iter().collect();
    left.retain(|key| others.contains(key));
}

/// `--gate`: fails when a benchmark is slower or failed, or when nothing shows that none is.
pub(super) fn gate(flags: &CompareFlags, comparison: &BenchComparison) -> Result<(), Failure> {
    if !flags.gate {
        return Ok(());
    }
    let mut said = Vec::new();
    if comparison.rows.is_empty() {
        said.push("no benchmark of the two could be compared, so nothing shows that they are not slower".to_owned());
    }
    let slower: Vec<&str> = comparison.rows.iter().filter(|row| row.verdict == "SLOWER").map(|row| row.key.as_str()).collect();
    let failed: Vec<&str> = comparison.failed.iter().map(String::as_str).collect();
    said.extend([("slower", slower), ("failed or wrong", failed)].iter().filter_map(|(what, keys)| named(what, keys)));
    if said.is_empty() { Ok(()) } else { Err(Failure::Check(said.join("; "))) }
}

/// Benchmarks that something is to be said of.
fn named(what: &str, keys: &[&str]) -> Option<String> {
    let more = keys.len().saturating_sub(MOST_NAMED);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    let shown = keys.iter().take(MOST_NAMED).copied().collect::<Vec<_>>().join(", ");
    (!keys.is_empty()).then(|| format!("{what}: {shown}{more}"))
}

/// How a run ends where files could not be written: never well.
pub(super) fn conclude(found: Result<(), Failure>, unsaved: &[String]) -> Result<(), Failure> {
    if unsaved.is_empty() {
        return found;
    }
    let unsaved = unsaved.join("; ");
    let Err(failure) = found else { return Err(Failure::Usage(unsaved)) };
    complain(&printable(&redact(&unsaved)));
    Err(failure)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_looked_after_some_rounds_and_at_the_end() {
        assert_eq!(looks(12), [4, 8, 12]);
        assert_eq!(looks(3), [3]);
        assert_eq!(looks(5), [4, 5]);
        assert_eq!(looks(23), [4, 8, 12, 16, 20, 23]);
    }

    #[test]
    fn a_message_names_some_of_many() {
        assert_eq!(named("slower", &[]), None);
        assert_eq!(named("slower", &["a", "b"]).unwrap(), "slower: a, b");
        assert!(named("slower", &["a"; 400]).unwrap().ends_with("a, a and 390 more"));
    }

    #[test]
    fn an_end_without_a_file_is_not_a_good_one() {
        let ended = |found, unsaved: &[&str]| conclude(found, &unsaved.iter().map(|&why| why.to_owned()).collect::<Vec<_>>());
        assert!(ended(Ok(()), &[]).is_ok());
        assert!(matches!(ended(Ok(()), &["a", "b"]), Err(Failure::Usage(why)) if why == "a; b"));
        assert!(matches!(ended(Err(Failure::Check("c".to_owned())), &["a"]), Err(Failure::Check(why)) if why == "c"));
    }
}
