//! Two sets of results beside each other: what may be compared, and what each benchmark's samples say.

use std::collections::BTreeMap;

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

/// What is compared.
pub(crate) struct Sides<'r> {
    before: &'r Results,
    after: &'r Results,
    by_key: (ByKey<'r>, ByKey<'r>),
    rounds: Option<(ByKey<'r>, ByKey<'r>)>,
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
        self.rounds = Some((before.by_key(), after.by_key()));
        self
    }

    /// Both sides of a benchmark, and whether its processes took turns.
    fn of(&self, key: &Key) -> Option<(&'r KeyResult, &'r KeyResult, bool)> {
        if let Some((before, after)) = &self.rounds
            && let Some((a, b)) = before.get(key).zip(after.get(key))
            && a.processes() == b.processes()
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
        let rows = self.after.results.iter().filter_map(|result| self.row(&result.key, rules)).collect();
        BenchComparison {
            before: show::source(self.before, None),
            after: show::source(self.after, None),
            rows,
            unpaired: self.unpaired(),
            flags: flags(self.before, self.after),
            again: None,
        }
    }

    fn unpaired(&self) -> Vec<BenchUnpaired> {
        fn failed(results: &Results) -> BTreeMap<&Key, &str> {
            results.failed.iter().map(|failed| (&failed.key, failed.message.as_str())).collect()
        }
        let (failed_before, failed_after) = (failed(self.before), failed(self.after));
        let one = |key: &Key, in_before: bool| {
            let why = if in_before { &failed_after } else { &failed_before }.get(key);
            let why = why.map(|message| redact(&format!("failed: {message}")).into_owned());
            BenchUnpaired { key: key.as_str().to_owned(), in_before, in_after: !in_before, why }
        };
        let only = |of: &'r Results, other: &ByKey<'r>| -> Vec<&'r Key> {
            of.results.iter().map(|result| &result.key).filter(|key| !other.contains_key(key)).collect()
        };
        let before = only(self.before, &self.by_key.1).into_iter().map(|key| one(key, true));
        before.chain(only(self.after, &self.by_key.0).into_iter().map(|key| one(key, false))).collect()
    }

    fn row(&self, key: &Key, rules: &RunRules) -> Option<BenchCompared> {
        let (found, before, after) = self.judged(key, rules)?;
        let differs = differs(before, after);
        let (verdict, doubt) = match differs {
            Some(_) => (Verdict::Ambiguous, Some(DIFFERENTLY)),
            None => (found.verdict, found.doubt.map(longpole_stats::Doubt::code)),
        };
        let mut notes: Vec<String> = differs.into_iter().collect();
        notes.extend(clocks(before, after));
        for (result, side) in [(before, "before"), (after, "after")] {
            if result.correct == Some(false) {
                notes.push(format!("its result is wrong {side}"));
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
        Some(BenchCompared {
            key: key.as_str().to_owned(),
            before: side(&found.before, before),
            after: side(&found.after, after),
            ratio: found.ratio,
            interval: found.interval,
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
    let device = |results: &'_ Results| results.device.clone().unwrap_or_default();
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
}
