//! What `run`, `compare` and `peaks` share: suites, places for results, measured peaks, and measuring again what is in doubt.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use longpole_analysis::MeasuredPeaks;
use longpole_bench::key::Key;
use longpole_bench::protocol::SuiteInfo;
use longpole_bench::results::Results;
use longpole_report::BenchComparison;
use longpole_stats::{LOOKS, RunRules};

use crate::args::{CompareFlags, MoreSuiteFlags, SuiteFlags};
use crate::bench::bar::Bar;
use crate::bench::judge::Sides;
use crate::bench::measure::Measuring;
use crate::bench::record::Record;
use crate::bench::store;
use crate::bench::suite::Suite;
use crate::bench::when::When;
use crate::exit::Failure;
use crate::peaks;

/// Where measured peaks are looked for.
const PEAKS: &str = "bench/peaks.json";

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

/// Where the results of a suite are to be kept; `what` tells several files of one moment apart.
pub(super) fn place(parent: Option<&Path>, when: When, suite: &SuiteInfo, what: Option<&str>) -> PathBuf {
    let folder = store::folder(parent.unwrap_or(Path::new(store::FOLDER)), when, crate::bench::git::state().as_ref());
    let what = what.map(|what| format!("-{what}")).unwrap_or_default();
    store::free(&folder, &format!("{}-{}{what}", store::name_part(&suite.name), when.clock()), "json")
}

/// The peaks that results are held against: those of a file that was named, or of the usual one if it is of this device.
pub(super) fn measured_peaks(named: Option<&OsStr>, results: &Results) -> Result<Option<MeasuredPeaks>, Failure> {
    if let Some(path) = named {
        return peaks::read(path).map(named_by_file(path)).map(Some);
    }
    let usual = OsStr::new(PEAKS);
    if !Path::new(PEAKS).is_file() {
        return Ok(None);
    }
    let found = peaks::read(usual).map(named_by_file(usual))?;
    let device = results.device.as_ref().map(|device| device.name.as_str());
    Ok(Some(found).filter(|found| found.name.as_deref() == device))
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
    fn measuring<'m>(&'m self, suite: &'m Suite, stage: &'m str) -> Measuring<'m> {
        Measuring { suite, args: self.args, bar: self.bar, stage }
    }

    /// Compares, and measures again what is in doubt, until it is no more or the rounds are used up.
    pub(super) fn settle(&self, before: &Results, after: &mut Record, rules: &RunRules) -> Result<BenchComparison, Failure> {
        let doubtful = Sides::new(before, &after.results).in_doubt(rules);
        if doubtful.is_empty() || self.rounds == 0 {
            return Ok(Sides::new(before, &after.results).compare(rules));
        }
        let number = doubtful.len() as u64;
        let (mut comparison, rounds) = match self.before {
            Some(suite) => self.in_turns(suite, before, &after.results, doubtful, rules)?,
            None => self.one_sided(before, after, doubtful, rules)?,
        };
        comparison.again = Some((number, rounds as u64));
        Ok(comparison)
    }

    /// Both builds in turns. The one that began a round comes second in the next, so that neither always finds the device warmer.
    fn in_turns(
        &self,
        suite: &Suite,
        before: &Results,
        after: &Results,
        mut left: Vec<Key>,
        rules: &RunRules,
    ) -> Result<(BenchComparison, usize), Failure> {
        let session = format!("{}-{}", self.when.whole(), std::process::id());
        let record = |suite: &SuiteInfo, what: &str| {
            let path = self.folder.map(|folder| place(Some(folder), self.when, suite, Some(what)));
            let mut record = Record::new(suite, self.when, path);
            record.results.session = Some(session.clone());
            record
        };
        let (mut from, mut to) = (record(&before.suite, "rounds-before"), record(&after.suite, "rounds-after"));
        // The sources of the first build are not those that lie here now.
        from.results.git.clone_from(&before.git);
        let mut done = 0;
        for look in looks(self.rounds) {
            self.bar.more(2 * (look - done) * left.len());
            while done < look {
                let stage = |side: &str| format!("round {} of up to {}, {side}: ", done + 1, self.rounds);
                let (first, second) = (stage("before"), stage("after"));
                if done % 2 == 0 {
                    self.measuring(suite, &first).all(&mut from, &left, done as u32)?;
                    self.measuring(self.after, &second).all(&mut to, &left, done as u32)?;
                } else {
                    self.measuring(self.after, &second).all(&mut to, &left, done as u32)?;
                    self.measuring(suite, &first).all(&mut from, &left, done as u32)?;
                }
                done += 1;
            }
            let sides = Sides::new(before, after).with_rounds(&from.results, &to.results);
            let doubtful = sides.in_doubt(rules);
            // What failed this time is not tried again.
            let has_failed = |key: &Key| from.results.failed.iter().chain(&to.results.failed).any(|failed| failed.key == *key);
            left = doubtful.into_iter().filter(|key| left.contains(key) && !has_failed(key)).collect();
            if left.is_empty() {
                break;
            }
        }
        from.complete()?;
        to.complete()?;
        Ok((Sides::new(before, after).with_rounds(&from.results, &to.results).compare(rules), done))
    }

    /// The second build alone, where the first is no more.
    fn one_sided(
        &self,
        before: &Results,
        after: &mut Record,
        mut left: Vec<Key>,
        rules: &RunRules,
    ) -> Result<(BenchComparison, usize), Failure> {
        let mut done = 0;
        let first = after.results.results.iter().flat_map(|result| &result.samples).map(|sample| sample.process).max().unwrap_or(0) + 1;
        for look in looks(self.rounds) {
            self.bar.more((look - done) * left.len());
            while done < look {
                let stage = format!("again, {} of up to {}: ", done + 1, self.rounds);
                self.measuring(self.after, &stage).all(after, &left, first + done as u32)?;
                done += 1;
            }
            let doubtful = Sides::new(before, &after.results).in_doubt(rules);
            let has_failed = |key: &Key| after.results.failed.iter().any(|failed| failed.key == *key);
            left.retain(|key| doubtful.contains(key) && !has_failed(key));
            if left.is_empty() {
                break;
            }
        }
        Ok((Sides::new(before, &after.results).compare(rules), done))
    }
}

/// `--gate`: fails when a benchmark is slower or failed, or when nothing shows that none is.
pub(super) fn gate(flags: &CompareFlags, comparison: &BenchComparison, after: &Results) -> Result<(), Failure> {
    if !flags.gate {
        return Ok(());
    }
    if comparison.rows.is_empty() {
        return Err(Failure::Check("no benchmark of the two could be compared, so nothing shows that they are not slower".to_owned()));
    }
    let slower: Vec<&str> = comparison.rows.iter().filter(|row| row.verdict == "SLOWER").map(|row| row.key.as_str()).collect();
    if !slower.is_empty() {
        return Err(Failure::Check(format!("slower: {}", slower.join(", "))));
    }
    let failed: Vec<&str> = after.failed.iter().map(|failed| failed.key.as_str()).collect();
    let wrong = after.results.iter().filter(|result| result.correct == Some(false)).map(|result| result.key.as_str());
    let failed: Vec<&str> = failed.into_iter().chain(wrong).collect();
    if failed.is_empty() { Ok(()) } else { Err(Failure::Check(format!("failed or wrong: {}", failed.join(", ")))) }
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
}
