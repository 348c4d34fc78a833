//! Two sets of results beside each other: what may be compared, and what each benchmark's samples say.

use std::collections::{BTreeMap, BTreeSet};

use longpole_bench::key::Key;
use longpole_bench::results::{KeyResult, Results};
use longpole_report::{BenchCompared, BenchComparison, BenchSide, BenchUnpaired, redact};
use longpole_stats::{RunRules, Runs, RunsComparison, RunsSide, Sample, Verdict, compare_runs};

use super::show;
use crate::exit::Failure;

/// Clocks that differ by more than this share are said: times follow them.
const CLOCKS_DIFFER: f64 = 0.015;

/// Why there is no verdict where the two were not measured alike.
const DIFFERENTLY: &str = "measured_differently";

type ByKey<'r> = BTreeMap<&'r Key, &'r KeyResult>;

/// Messages, by benchmark.
type Failures<'r> = BTreeMap<&'r Key, &'r str>;

/// What is compared.
pub(crate) struct Sides<'r> {
    before: &'r Results,
    after: &'r Results,
    by_key: (ByKey<'r>, ByKey<'r>),
    rounds: Option<Rounds<'r>>,
}

/// What was measured again, in turns.
struct Rounds<'r> {
    results: (&'r Results, &'r Results),
    by_key: (ByKey<'r>, ByKey<'r>),
}

/// The processes that took the samples of a benchmark.
fn processes(result: &KeyResult) -> BTreeSet<u32> {
    result.samples.iter().map(|sample| sample.process).collect()
}

/// Whether it has samples that can be compared.
fn is_measured(result: &KeyResult, rules: &RunRules) -> bool {
    result.samples.iter().any(|sample| !rules.exclude_throttled || sample.throttled != Some(true))
}

/// The samples of a benchmark, process by process.
fn runs(result: &KeyResult) -> Runs {
    let mut processes: Vec<(u32, Vec<Sample>)> = Vec::new();
    for sample in &result.samples {
        // What does not fit is beyond any time; the reader of a run refuses it, a file may hold anything.
        let sample =
            (sample.process, Sample { time_ps: i64::try_from(sample.time_ps).unwrap_or(0), throttled: sample.throttled == Some(true) });
        match processes.last_mut() {
            Some((process, samples)) if *process == sample.0 => samples.push(sample.1),
            _ => processes.push((sample.0, vec![sample.1])),
        }
    }
    // Stable, so that samples stay in the order of time.
    processes.sort_by_key(|(process, _)| *process);
    let mut merged: Vec<(u32, Vec<Sample>)> = Vec::new();
    for (process, samples) in processes {
        match merged.last_mut() {
            Some((last, known)) if *last == process => known.extend(samples),
            _ => merged.push((process, samples)),
        }
    }
    Runs(merged.into_iter().map(|(_, samples)| samples).collect())
}

impl<'r> Sides<'r> {
    /// Two runs.
    pub(crate) fn new(before: &'r Results, after: &'r Results) -> Self {
        Self { before, after, by_key: (before.by_key(), after.by_key()), rounds: None }
    }

    /// The same where some benchmarks were measured again in turns, whose samples count instead.
    #[must_use]
    pub(crate) fn with_rounds(mut self, before: &'r Results, after: &'r Results) -> Self {
        self.rounds = Some(Rounds { results: (before, after), by_key: (before.by_key(), after.by_key()) });
        self
    }

    /// Both sides of a benchmark, and whether its processes took turns.
    fn of(&self, key: &Key) -> Option<(&'r KeyResult, &'r KeyResult, bool)> {
        // A benchmark that failed in one of a round's two processes has no pair there.
        if let Some(Rounds { by_key: (before, after), .. }) = &self.rounds
            && let Some((a, b)) = before.get(key).zip(after.get(key))
            && processes(a) == processes(b)
        {
            return Some((a, b, true));
        }
        let took_turns = self.before.session.is_some() && self.before.session == self.after.session;
        let (a, b) = self.by_key.0.get(key).zip(self.by_key.1.get(key))?;
        Some((a, b, took_turns))
    }

    /// What the samples of a benchmark say; `None` where a side has none.
    fn judged(&self, key: &Key, rules: &RunRules) -> Option<(RunsComparison, &'r KeyResult, &'r KeyResult)> {
        let (before, after, took_turns) = self.of(key)?;
        let found = compare_runs(&runs(before), &runs(after), took_turns, rules)?;
        Some((found, before, after))
    }

    /// Benchmarks of both sides that more processes may decide, in the order of the second.
    pub(crate) fn in_doubt(&self, rules: &RunRules) -> Vec<Key> {
        let doubtful = |result: &&KeyResult| {
            let judged = self.judged(&result.key, rules);
            judged.is_some_and(|(found, before, after)| !found.is_settled() && differs(before, after).is_none())
        };
        self.after.results.iter().filter(doubtful).map(|result| result.key.clone()).collect()
    }

    /// The comparison of everything.
    pub(crate) fn compare(&self, rules: &RunRules) -> BenchComparison {
        let failed = self.failures();
        let rows: Vec<BenchCompared> = self.after.results.iter().filter_map(|result| self.row(&result.key, rules, &failed)).collect();
        let compared: BTreeSet<&str> = rows.iter().map(|row| row.key.as_str()).collect();
        BenchComparison {
            before: show::source(self.before, None),
            after: show::source(self.after, None),
            unpaired: self.unpaired(&compared, rules, &failed),
            rows,
            flags: flags(self.before, self.after),
            failed: self.failed_after(&failed.1),
            again: None,
        }
    }

    /// What failed before and after, and why. What was measured in the first processes may have failed in later ones.
    fn failures(&self) -> (Failures<'r>, Failures<'r>) {
        let of = |first: &'r Results, again: Option<&'r Results>| {
            let all = [Some(first), again].into_iter().flatten().flat_map(|results| &results.failed);
            all.map(|failed| (&failed.key, failed.message.as_str())).collect()
        };
        let again = self.rounds.as_ref().map(|rounds| rounds.results);
        (of(self.before, again.map(|(before, _)| before)), of(self.after, again.map(|(_, after)| after)))
    }

    /// Whether a benchmark had a wrong result, in whichever process: before, after.
    fn is_wrong(&self, key: &Key) -> (bool, bool) {
        let wrong = |first: &ByKey<'r>, again: Option<&ByKey<'r>>| {
            [Some(first), again].into_iter().flatten().filter_map(|results| results.get(key)).any(|result| result.correct == Some(false))
        };
        let again = self.rounds.as_ref().map(|rounds| &rounds.by_key);
        (wrong(&self.by_key.0, again.map(|(before, _)| before)), wrong(&self.by_key.1, again.map(|(_, after)| after)))
    }

    /// Benchmarks of the second that failed, or that were wrong.
    fn failed_after(&self, failures: &Failures<'r>) -> Vec<String> {
        let wrong = self.after.results.iter().map(|result| &result.key).filter(|key| !failures.contains_key(key) && self.is_wrong(key).1);
        let mut seen = BTreeSet::new();
        let all = [Some(self.after), self.rounds.as_ref().map(|rounds| rounds.results.1)].into_iter().flatten();
        let failed = all.flat_map(|results| results.failed.iter().map(|failed| &failed.key)).filter(|key| seen.insert(*key));
        failed.chain(wrong).map(|key| key.as_str().to_owned()).collect()
    }

    /// Benchmarks that were not compared, and why: first those of the first side.
    fn unpaired(&self, compared: &BTreeSet<&str>, rules: &RunRules, failed: &(Failures<'r>, Failures<'r>)) -> Vec<BenchUnpaired> {
        let sides = [(self.before, &self.by_key.0, &failed.0, "before"), (self.after, &self.by_key.1, &failed.1, "after")];
        let lacks = |(_, by_key, failed, side): &(_, &ByKey<'r>, &Failures<'r>, &str), key: &Key| match (by_key.get(key), failed.get(key)) {
            (Some(result), _) if is_measured(result, rules) => None,
            (_, Some(message)) => Some(Some(redact(&format!("failed {side}: {message}")).into_owned())),
            (Some(result), None) if result.samples.is_empty() => Some(Some(format!("no samples {side}"))),
            (Some(_), None) => Some(Some(format!("all samples {side} were taken while the device held its clocks down"))),
            (None, None) => Some(None),
        };
        let mut seen = BTreeSet::new();
        let keys = sides.iter().flat_map(|(results, ..)| {
            results.results.iter().map(|result| &result.key).chain(results.failed.iter().map(|failed| &failed.key))
        });
        let keys = keys.filter(|key| !compared.contains(key.as_str()) && seen.insert(*key));
        let mut found: Vec<BenchUnpaired> = keys
            .map(|key| {
                let [before, after] = [lacks(&sides[0], key), lacks(&sides[1], key)];
                let (in_before, in_after) = (before.is_none(), after.is_none());
                let why: Vec<String> = [before, after].into_iter().flatten().flatten().collect();
                let why = (!why.is_empty()).then(|| why.join("; "));
                BenchUnpaired { key: key.as_str().to_owned(), in_before, in_after, why }
            })
            .collect();
        // What the second side lacks is what was lost.
        found.sort_by_key(|row| !row.in_before);
        found
    }

    fn row(&self, key: &Key, rules: &RunRules, failed: &(Failures<'r>, Failures<'r>)) -> Option<BenchCompared> {
        let (found, before, after) = self.judged(key, rules)?;
        let differs = differs(before, after);
        let (verdict, doubt) = match differs {
            Some(_) => (Verdict::Ambiguous, Some(DIFFERENTLY)),
            None => (found.verdict, found.doubt.map(longpole_stats::Doubt::code)),
        };
        let mut notes: Vec<String> = differs.into_iter().collect();
        notes.extend(clocks(before, after));
        let is_wrong = self.is_wrong(key);
        for (is_wrong, failed, side) in [(is_wrong.0, &failed.0, "before"), (is_wrong.1, &failed.1, "after")] {
            if is_wrong {
                notes.push(format!("its result is wrong {side}"));
            }
            // It has samples, so it failed in another process than the one that took them.
            if let Some(message) = failed.get(key) {
                notes.push(redact(&format!("failed {side} when it was measured again: {message}")).into_owned());
            }
        }
        if (before.bytes, before.flops) != (after.bytes, after.flops) {
            notes.push("the two say that they do different amounts of work".to_owned());
        }
        let throttled = |side: &RunsSide| side.throttled > 0;
        if (throttled(&found.before) || throttled(&found.after)) && doubt != Some(longpole_stats::Doubt::Throttled.code()) {
            let what = if rules.exclude_throttled { "left out" } else { "counted in" };
            let (from, to) = (found.before.throttled, found.after.throttled);
            notes.push(format!("throttled samples, {what}: {from} before, {to} after"));
        }
        let is_apart = found.interval.is_some_and(|(low, high)| low > 1.0 || high < 1.0);
        Some(BenchCompared {
            key: key.as_str().to_owned(),
            before: side(&found.before, before),
            after: side(&found.after, after),
            ratio: found.ratio,
            interval: found.interval_of_builds(),
            within_processes: doubt == Some(longpole_stats::Doubt::Noise.code()) && found.rounds == 0 && is_apart,
            smallest_effect: found.smallest_effect.zip(found.smallest_decrease()),
            rounds: found.rounds as u64,
            verdict: verdict.code(),
            doubt,
            notes,
        })
    }
}

fn side(found: &RunsSide, result: &KeyResult) -> BenchSide {
    BenchSide {
        median_ps: found.median_ps,
        samples: found.samples as u64,
        processes: found.processes as u64,
        throttled: found.throttled as u64,
        sm_clock_mhz: result.clocks().sm_mhz,
    }
}

/// How the two were measured differently, so that their times are not of the same thing.
fn differs(before: &KeyResult, after: &KeyResult) -> Option<String> {
    if before.l2 != after.l2 {
        return Some(format!("the L2 cache was {} before and is {} after", show::l2(before.l2), show::l2(after.l2)));
    }
    (before.method != after.method).then(|| {
        let (from, to) = (show::method(before.method), show::method(after.method));
        format!("timed with {from} before and with {to} after")
    })
}

fn share(before: u32, after: u32) -> f64 {
    f64::from(after) / f64::from(before.max(1)) - 1.0
}

fn clocks(before: &KeyResult, after: &KeyResult) -> Option<String> {
    let (from, to) = before.clocks().sm_mhz.zip(after.clocks().sm_mhz)?;
    let change = share(from, to);
    (change.abs() > CLOCKS_DIFFER).then(|| format!("other clocks: SM {from} MHz before, {to} MHz after ({:+.1} %)", change * 100.0))
}

/// What else differs between two runs.
fn flags(before: &Results, after: &Results) -> Vec<String> {
    let mut flags = Vec::new();
    let mut differ = |what: &str, from: Option<&str>, to: Option<&str>| {
        if let Some((from, to)) = from.zip(to)
            && from != to
        {
            flags.push(format!("{what}: {from} before, {to} after"));
        }
    };
    differ("suite", Some(&before.suite.name), Some(&after.suite.name));
    let device = |results: &'_ Results| {
        let unknown = || longpole_bench::protocol::Device { name: "unknown".to_owned(), ..Default::default() };
        results.device.clone().filter(|device| !device.name.trim().is_empty()).unwrap_or_else(unknown)
    };
    let (from, to) = (device(before), device(after));
    differ("device", Some(&from.name), Some(&to.name));
    if from.name == to.name {
        differ("card of the same kind", from.uuid.as_deref(), to.uuid.as_deref());
    }
    differ("driver", from.driver.as_deref(), to.driver.as_deref());
    differ("CUDA", from.cuda.as_deref(), to.cuda.as_deref());
    let clock = |what: &str, from: Option<u32>, to: Option<u32>| {
        let (from, to) = from.zip(to)?;
        (share(from, to).abs() > CLOCKS_DIFFER)
            .then(|| format!("{what} clock: {from} MHz before, {to} MHz after; times follow clocks, so lock them (nvidia-smi --lock-gpu-clocks) to compare builds"))
    };
    flags.extend(clock("SM", before.clocks.sm_mhz, after.clocks.sm_mhz));
    flags.extend(clock("memory", before.clocks.memory_mhz, after.clocks.memory_mhz));
    if let Some((from, to)) = before.git.as_ref().zip(after.git.as_ref())
        && from.revision == to.revision
        && (from.dirty, to.dirty) == (Some(false), Some(false))
    {
        flags.push(format!("nothing in the sources: both were measured at {}", from.revision));
    }
    for (results, side) in [(before, "before"), (after, "after")] {
        if !results.complete {
            flags.push(format!("the run {side} ended before everything was measured"));
        }
    }
    flags
}

/// Refuses to compare times of different devices, which say nothing of a change.
pub(crate) fn same_device(before: &Results, after: &Results, other_device: bool) -> Result<(), Failure> {
    if let Some((from, to)) = before.device.as_ref().zip(after.device.as_ref())
        && from.name != to.name
        && !other_device
    {
        return Err(Failure::Usage(format!(
            "the two were measured on different devices ({} before, {} after), so their times do not tell the builds apart; --other-device compares them all the same",
            from.name, to.name
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use longpole_bench::protocol::{L2, Method, Start, SuiteInfo};
    use longpole_bench::results::Measured;

    use super::*;

    fn result(times: &[(u32, u64)], l2: L2) -> KeyResult {
        let key = Key::parse("m/ops/a/b/c").unwrap();
        let mut result = KeyResult::begin(&Start {
            key,
            bytes: None,
            flops: None,
            dtype: None,
            method: Method::Graph,
            launches_per_sample: 1,
            buffers_rotated: 1,
            l2,
        });
        result.samples = times
            .iter()
            .map(|&(process, time_ps)| Measured {
                process,
                time_ps,
                sm_clock_mhz: Some(1000),
                memory_clock_mhz: None,
                temperature_c: None,
                power_mw: None,
                throttle: None,
                throttled: Some(time_ps > 900),
            })
            .collect();
        result
    }

    fn results(result: KeyResult) -> Results {
        let mut results = Results::new(String::new(), SuiteInfo { name: "s".to_owned(), version: None });
        results.take(result).unwrap();
        results
    }

    #[test]
    fn samples_go_to_their_processes_in_whatever_order() {
        let runs = runs(&result(&[(1, 5), (0, 6), (1, 7), (0, 1000)], L2::Cold));
        let times: Vec<Vec<i64>> = runs.0.iter().map(|run| run.iter().map(|sample| sample.time_ps).collect()).collect();
        assert_eq!((times, runs.throttled()), (vec![vec![6, 1000], vec![5, 7]], 1));
    }

    #[test]
    fn what_was_not_measured_alike_has_no_verdict_and_is_not_measured_again() {
        let times: Vec<(u32, u64)> = (0..20).map(|at| (0, 500 + at % 3)).collect();
        let halves: Vec<(u32, u64)> = times.iter().map(|(process, time)| (*process, time / 2)).collect();
        let (before, warm) = (results(result(&times, L2::Cold)), results(result(&halves, L2::Warm)));
        let sides = Sides::new(&before, &warm);
        let comparison = sides.compare(&RunRules::BENCHMARK);
        assert_eq!((comparison.rows[0].verdict, comparison.rows[0].doubt), ("AMBIGUOUS", Some(DIFFERENTLY)));
        assert!(sides.in_doubt(&RunRules::BENCHMARK).is_empty());
        let cold = results(result(&halves, L2::Cold));
        let comparison = Sides::new(&before, &cold).compare(&RunRules::BENCHMARK);
        assert_eq!(comparison.rows[0].verdict, "FASTER");
    }

    fn some(process: u32, times: &[u64]) -> Results {
        results(result(&times.iter().map(|&time| (process, time)).collect::<Vec<_>>(), L2::Cold))
    }

    #[test]
    fn what_failed_or_was_wrong_when_it_was_measured_again_is_not_lost() {
        let (before, after) = (some(0, &[500; 20]), some(0, &[501; 20]));
        let key = before.results[0].key.clone();
        let (from, mut to) = (some(0, &[500; 20]), Results::new(String::new(), before.suite.clone()));
        to.fail(&key, "result wrong");
        let comparison = Sides::new(&before, &after).with_rounds(&from, &to).compare(&RunRules::BENCHMARK);
        assert_eq!(comparison.failed, [key.as_str()]);
        assert!(comparison.rows[0].notes.iter().any(|note| note == "failed after when it was measured again: result wrong"));
        let mut wrong = some(1, &[501; 20]);
        wrong.results[0].correct = Some(false);
        // Not of the same process as the other side's, so its samples are not what is compared.
        let comparison = Sides::new(&before, &after).with_rounds(&from, &wrong).compare(&RunRules::BENCHMARK);
        assert_eq!((comparison.failed.as_slice(), comparison.rows[0].rounds), ([key.as_str().to_owned()].as_slice(), 0));
        assert!(comparison.rows[0].notes.contains(&"its result is wrong after".to_owned()));
        let comparison = Sides::new(&after, &before).with_rounds(&to, &from).compare(&RunRules::BENCHMARK);
        assert!(
            comparison.failed.is_empty() && comparison.rows[0].notes[0].starts_with("failed before when"),
            "only the second build counts"
        );
    }

    #[test]
    fn every_benchmark_is_compared_or_said_not_to_be() {
        let (whole, mut empty) = (some(0, &[500; 20]), some(0, &[]));
        let unpaired = |before: &Results, after: &Results, rules: &RunRules| {
            let found = Sides::new(before, after).compare(rules);
            assert_eq!(found.rows.len() + found.unpaired.len(), 1, "{found:?}");
            found.unpaired.first().map(|row| (row.in_before, row.in_after, row.why.clone().unwrap_or_default()))
        };
        let rules = RunRules::BENCHMARK;
        assert_eq!(unpaired(&whole, &whole, &rules), None);
        assert_eq!(unpaired(&whole, &empty, &rules), Some((true, false, "no samples after".to_owned())));
        assert_eq!(unpaired(&empty, &empty, &rules), Some((false, false, "no samples before; no samples after".to_owned())));
        let key = whole.results[0].key.clone();
        empty.results.clear();
        assert_eq!(unpaired(&empty, &whole, &rules), Some((false, true, String::new())));
        empty.fail(&key, "no");
        assert_eq!(unpaired(&whole, &empty, &rules), Some((true, false, "failed after: no".to_owned())));
        assert_eq!(unpaired(&empty, &empty, &rules), Some((false, false, "failed before: no; failed after: no".to_owned())));
        let throttled = some(0, &[1500; 20]);
        let found = unpaired(&throttled, &whole, &RunRules { exclude_throttled: true, ..rules }).unwrap();
        assert!(!found.0 && found.2.contains("held its clocks down"), "{found:?}");
    }

    #[test]
    fn a_device_that_is_not_known_is_said_to_be() {
        let (before, mut after) = (some(0, &[500; 20]), some(0, &[500; 20]));
        after.device = Some(longpole_bench::protocol::Device { name: "Example GPU".to_owned(), ..Default::default() });
        let flags = Sides::new(&before, &after).compare(&RunRules::BENCHMARK).flags;
        assert_eq!(flags[0], "device: unknown before, Example GPU after");
    }
}
