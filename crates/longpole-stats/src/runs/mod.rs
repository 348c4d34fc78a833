//! Two builds of a benchmark compared, from samples of one process each or of several that took turns.

mod bootstrap;
mod sample;

use statrs::distribution::{ContinuousCDF as _, Normal, StudentsT};

use crate::centre::{TRIM, trimmed_mean};
use crate::compare::Verdict;
use crate::quantile::median;
use crate::random::Random;
use bootstrap::Process;
pub use sample::{Runs, Sample};

/// When a difference of two builds is one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunRules {
    /// Probability that the interval holds the true ratio, below 1.
    pub confidence: f64,
    /// What two processes of the same build may differ by, as a share: no smaller difference is a verdict.
    pub floor: f64,
    /// The same where processes of both took turns, so that what changes with time meets both.
    pub floor_interleaved: f64,
    /// Differences up to this share are none.
    pub same_within: f64,
    /// Leave out samples that were taken while the device held its clocks down.
    pub exclude_throttled: bool,
}

impl RunRules {
    /// For times of benchmarks: 99 %; 1.5 % between two processes of the same build, 0.5 % where they took turns; the same within 3 %. See
    /// docs/bench-statistics.md for where these come from.
    pub const BENCHMARK: Self =
        Self { confidence: 0.99, floor: 0.015, floor_interleaved: 0.005, same_within: 0.03, exclude_throttled: false };
}

/// Samples of a process below which there is no verdict: their spread would be a guess.
pub const LEAST_SAMPLES: usize = 5;

/// Rounds from which processes that took turns are compared round by round.
pub const LEAST_ROUNDS: usize = 3;

/// Numbers of rounds after which it is looked whether more are needed.
pub const LOOKS: [usize; 3] = [4, 8, 12];

/// A difference that no two processes of the same build show, as a share.
const LARGE: f64 = 0.05;

/// Draws of a bootstrap. Another seed moves the ends of an interval by some per cent of its length.
const DRAWS: usize = 1000;
const SEED: u64 = 0x6c6f_6e67_706f_6c65;

/// Data that cannot show a smaller change than this shows none worth a number.
const MOST_EFFECT: f64 = 10.0;

/// Why there is no verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Doubt {
    /// A process has fewer than [`LEAST_SAMPLES`].
    TooFew,
    /// The samples vary too much for their number.
    Noise,
    /// One side was throttled and the other was not, so that the builds are not what is compared.
    Throttled,
    /// A time is zero or less.
    NotATime,
}

impl Doubt {
    /// A stable code for it.
    pub const fn code(self) -> &'static str {
        match self {
            Self::TooFew => "too_few_samples",
            Self::Noise => "noise",
            Self::Throttled => "throttled",
            Self::NotATime => "not_a_time",
        }
    }
}

/// One side of a comparison, in numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunsSide {
    /// Median of the samples that were compared, in picoseconds.
    pub median_ps: i64,
    /// Samples that were compared.
    pub samples: usize,
    /// Throttled ones among those that were taken.
    pub throttled: usize,
    /// Processes that took them.
    pub processes: usize,
}

/// Two builds compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunsComparison {
    /// The first.
    pub before: RunsSide,
    /// The second.
    pub after: RunsSide,
    /// The second over the first, by their centres. Absent where a time is zero or less.
    pub ratio: Option<f64>,
    /// The interval that the ratio of these processes lies in. Absent like the ratio, where there are too few samples, and where it reaches
    /// further than tenfold.
    pub interval: Option<(f64, f64)>,
    /// What two processes of the same build may differ by, as a share, where no side has enough of them to show it; 0 where one has.
    pub unseen: f64,
    /// The smallest increase that data like this can show, as a share. Absent like the interval.
    pub smallest_effect: Option<f64>,
    /// Rounds of processes that took turns; 0 where they did not.
    pub rounds: usize,
    /// What follows.
    pub verdict: Verdict,
    /// Why nothing follows, where the verdict is [`Verdict::Ambiguous`].
    pub doubt: Option<Doubt>,
}

impl RunsComparison {
    /// The smallest decrease that data like this can show, as a share.
    pub fn smallest_decrease(&self) -> Option<f64> {
        self.smallest_effect.map(|effect| effect / (1.0 + effect))
    }

    /// The interval that the ratio of the builds lies in: the processes that were measured are one draw of each.
    pub fn interval_of_builds(&self) -> Option<(f64, f64)> {
        self.interval.map(|(low, high)| (low / (1.0 + self.unseen), high * (1.0 + self.unseen)))
    }

    /// Whether more processes would change nothing worth their time: there is a verdict, and a difference is seen in processes that took turns
    /// or is a large one. One process a side may be off by what no sample of it shows.
    pub fn is_settled(&self) -> bool {
        let is_large = self.interval.is_some_and(|(low, high)| low.ln() > LARGE.ln_1p() || high.ln() < -LARGE.ln_1p());
        match self.verdict {
            Verdict::Ambiguous => false,
            Verdict::Same => true,
            Verdict::Faster | Verdict::Slower => self.rounds > 0 || is_large,
        }
    }
}

/// Compares two builds. `interleaved` says that processes of both took turns, so that those of the same place belong together. `None` when a
/// side has no samples.
pub fn compare_runs(before: &Runs, after: &Runs, interleaved: bool, rules: &RunRules) -> Option<RunsComparison> {
    let throttled = (before.throttled(), after.throttled());
    let is_uneven = (before.throttled_share() - after.throttled_share()).abs() > TRIM;
    let (before, after) =
        if rules.exclude_throttled { (before.without_throttled(), after.without_throttled()) } else { (before.clone(), after.clone()) };
    let side = |runs: &Runs, throttled| {
        let median_ps = median(&runs.times_ps())?;
        let processes = runs.0.iter().filter(|run| !run.is_empty()).count();
        Some(RunsSide { median_ps, samples: runs.samples(), throttled, processes })
    };
    let (a, b) = (side(&before, throttled.0)?, side(&after, throttled.1)?);
    let unknown = RunsComparison {
        before: a,
        after: b,
        ratio: None,
        interval: None,
        smallest_effect: None,
        unseen: 0.0,
        rounds: 0,
        verdict: Verdict::Ambiguous,
        doubt: Some(Doubt::NotATime),
    };
    let times = |runs: &Runs| runs.times_ps();
    if times(&before).into_iter().chain(times(&after)).any(|time| time <= 0) {
        return Some(unknown);
    }
    let processes = |runs: &Runs| -> Vec<Process> {
        let times = |run: &Vec<Sample>| run.iter().map(|sample| sample.time_ps).collect::<Vec<_>>();
        runs.0.iter().filter(|run| !run.is_empty()).map(|run| Process::of(&times(run))).collect()
    };
    let (from, to) = (processes(&before), processes(&after));
    let is_paired = interleaved && from.len() == to.len() && from.len() >= LEAST_ROUNDS;
    let found = if is_paired { paired(&from, &to, rules.confidence) } else { apart(&from, &to, rules.confidence) };
    let rounds = if is_paired { from.len() } else { 0 };
    let is_seen = from.len().max(to.len()) >= LEAST_ROUNDS;
    let unseen = if is_seen { 0.0 } else { rules.floor };
    let known = RunsComparison { ratio: Some(found.change.exp()), unseen, rounds, ..unknown };
    if before == after {
        return Some(RunsComparison { verdict: Verdict::Same, doubt: None, ..known });
    }
    if before.0.iter().chain(&after.0).any(|run| (1..LEAST_SAMPLES).contains(&run.len())) {
        return Some(RunsComparison { doubt: Some(Doubt::TooFew), ..known });
    }
    let floor = if is_paired { rules.floor_interleaved } else { rules.floor };
    Some(judge(known, &found, floor.ln_1p(), rules, is_uneven && !rules.exclude_throttled))
}

fn judge(known: RunsComparison, found: &Found, floor: f64, rules: &RunRules, is_uneven: bool) -> RunsComparison {
    let (low, high) = (found.change + found.below, found.change + found.above);
    let same = rules.same_within.ln_1p();
    let verdict = if is_uneven {
        Verdict::Ambiguous
    } else if high < -floor {
        Verdict::Faster
    } else if low > floor {
        Verdict::Slower
    } else if low - floor >= -same && high + floor <= same {
        Verdict::Same
    } else {
        Verdict::Ambiguous
    };
    let doubt = if is_uneven { Doubt::Throttled } else { Doubt::Noise };
    let reach = found.above.max(-found.below);
    let shows = floor + reach <= MOST_EFFECT.ln_1p();
    RunsComparison {
        interval: shows.then(|| (low.exp(), high.exp())),
        smallest_effect: shows.then(|| (floor + reach).exp_m1()),
        verdict,
        doubt: (verdict == Verdict::Ambiguous).then_some(doubt),
        ..known
    }
}

/// A change of the logarithm, and how far the true one may lie below and above it.
#[derive(Clone, Copy, Debug)]
struct Found {
    change: f64,
    below: f64,
    above: f64,
}

/// The part of draws that the interval holds, stretched for what so few pieces leave out: draws of n pieces vary too little by the root of
/// (n - 1) / n, and their tails are those of a normal distribution instead of Student's (T. Hesterberg, "What teachers should know about the
/// bootstrap", The American Statistician 69, 2015).
fn expanded(change: f64, mut draws: Vec<f64>, freedom: f64, confidence: f64) -> Found {
    draws.sort_unstable_by(f64::total_cmp);
    let tail = (1.0 - confidence) / 2.0;
    let last = draws.len() - 1;
    let (low, high) = (draws[(tail * last as f64).round() as usize], draws[((1.0 - tail) * last as f64).round() as usize]);
    let freedom = freedom.max(1.0);
    let student = StudentsT::new(0.0, 1.0, freedom).map_or(f64::INFINITY, |t| t.inverse_cdf(1.0 - tail));
    let normal = Normal::new(0.0, 1.0).map_or(1.0, |normal| normal.inverse_cdf(1.0 - tail));
    let factor = student / normal * ((freedom + 1.0) / freedom).sqrt();
    Found { change, below: low.min(0.0) * factor, above: high.max(0.0) * factor }
}

/// Processes that took turns: the changes of the rounds are what varies, and at least as much the samples inside of them.
fn paired(before: &[Process], after: &[Process], confidence: f64) -> Found {
    let rounds = before.len();
    let changes: Vec<f64> = before.iter().zip(after).map(|(a, b)| b.centre - a.centre).collect();
    let change = trimmed_mean(&changes);
    let (mut random, mut counts) = (Random::new(SEED), Vec::new());
    let mut drawn = vec![0.0; rounds];
    let between = (0..DRAWS).map(|_| {
        drawn.fill_with(|| changes[random.below(rounds)]);
        trimmed_mean(&drawn) - change
    });
    let between = expanded(change, between.collect(), (rounds - 1) as f64, confidence);
    let inside = (0..DRAWS).map(|_| {
        for (slot, (a, b)) in drawn.iter_mut().zip(before.iter().zip(after)) {
            *slot = b.draw(&mut random, &mut counts) - a.draw(&mut random, &mut counts);
        }
        trimmed_mean(&drawn) - change
    });
    let pieces = before.iter().chain(after).map(Process::pieces).sum::<f64>() / 2.0;
    let inside = expanded(change, inside.collect(), pieces - 1.0, confidence);
    // What varies inside of processes is in what varies between rounds, but a few rounds may agree by chance.
    Found { change, below: between.below.min(inside.below), above: between.above.max(inside.above) }
}

/// Processes that did not. A side of at least [`LEAST_ROUNDS`] shows how much processes of one build differ, and a lone process of the other
/// side is one draw from the same.
fn apart(before: &[Process], after: &[Process], confidence: f64) -> Found {
    let mean = |side: &[Process]| side.iter().map(|process| process.centre).sum::<f64>() / side.len() as f64;
    let (from, to) = (mean(before), mean(after));
    let deviations: Vec<f64> = [(before, from), (after, to)]
        .into_iter()
        .filter(|(side, _)| side.len() >= LEAST_ROUNDS)
        .flat_map(|(side, mean)| {
            let widened = (side.len() as f64 / (side.len() - 1) as f64).sqrt();
            side.iter().map(move |process| (process.centre - mean) * widened)
        })
        .collect();
    let (mut random, mut counts) = (Random::new(SEED), Vec::new());
    let mut draw = |side: &[Process], mean: f64| {
        let mut sum = 0.0;
        for at in 0..side.len() {
            let is_known = side.len() >= LEAST_ROUNDS;
            let process = if is_known { &side[random.below(side.len())] } else { &side[at] };
            sum += process.draw(&mut random, &mut counts);
            if !is_known && !deviations.is_empty() {
                sum += deviations[random.below(deviations.len())];
            }
        }
        sum / side.len() as f64 - mean
    };
    let draws: Vec<f64> = (0..DRAWS).map(|_| draw(after, to) - draw(before, from)).collect();
    let pieces = |side: &[Process]| {
        if side.len() >= LEAST_ROUNDS { side.len() as f64 } else { side.iter().map(Process::pieces).sum() }
    };
    expanded(to - from, draws, pieces(before).min(pieces(after)) - 1.0, confidence)
}

#[cfg(test)]
mod tests;
