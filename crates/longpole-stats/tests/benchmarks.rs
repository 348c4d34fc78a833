//! How often a verdict on a benchmark is false, on a simulated machine: processes that differ, drift, neighbours that resemble each other,
//! bursts of outliers, stretches of throttling.
//!
//! Each trial makes the samples of two builds, the second longer or shorter by a known share, and asks. `LONGPOLE_UPDATE_DOCS=1 cargo test
//! -p longpole-stats --test benchmarks` writes the table of docs/bench-statistics.md; read the change before you commit it.

#![expect(clippy::unwrap_used, reason = "a test may fail on its own data")]

use std::fmt::Write as _;
use std::path::Path;

use longpole_stats::{LOOKS, RunRules, Runs, RunsComparison, Sample, Verdict, compare_runs};

/// Trials for each line of the table.
const TRIALS: usize = 1_000;
/// True changes; half of the trials of each go the one way, half the other.
const CHANGES: [f64; 4] = [0.0, 0.01, 0.03, 0.10];

const RULES: RunRules = RunRules::BENCHMARK;

/// The share of intervals that have to hold the true ratio. They are said to at 99 %; few rounds that agree by chance make some too narrow, and
/// that it is looked again after some of them chooses such.
const LEAST_HELD: f64 = 0.97;

/// What times on a machine do, as shares of themselves.
struct Machine {
    title: &'static str,
    /// Samples a process takes of a key: few and a usual number. A suite of `longpole-bench` stops at 16 at the earliest, where its median
    /// is known to 0.1 %; on a restless machine it goes on until its time is over.
    counts: [usize; 2],
    /// Standard deviation of one sample, and what its neighbour shares with it.
    noise: f64,
    correlation: f64,
    /// Standard deviation of what a process adds to all of its samples.
    process: f64,
    /// The most that times move over a process, up or down, while the device warms up.
    drift: f64,
    /// The most that the machine moves from one process to the next.
    wander: f64,
    /// How often a burst of outliers begins; it lasts one to four samples, which take up to twice as long.
    outliers: f64,
    /// How many processes have a stretch of a tenth to a third of their samples that is throttled by 3 to 15 %.
    throttling: f64,
}

const MACHINES: [Machine; 2] = [
    Machine {
        title: "steady",
        counts: [16, 100],
        noise: 0.003,
        correlation: 0.3,
        process: 0.0015,
        drift: 0.002,
        wander: 0.002,
        outliers: 0.005,
        throttling: 0.0,
    },
    Machine {
        title: "restless",
        counts: [30, 100],
        noise: 0.010,
        correlation: 0.6,
        process: 0.003,
        drift: 0.010,
        wander: 0.005,
        outliers: 0.02,
        throttling: 0.10,
    },
];

/// How the two builds are measured.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Design {
    /// One process each.
    Alone,
    /// Processes that take turns.
    Rounds(usize),
    /// What `bench compare` does: one process each, then rounds until the verdict is settled or there were enough.
    UntilSettled,
}

impl Design {
    const ALL: [Self; 3] = [Self::Alone, Self::Rounds(4), Self::UntilSettled];

    fn title(self) -> String {
        match self {
            Self::Alone => "one process a side".to_owned(),
            Self::Rounds(rounds) => format!("{rounds} rounds"),
            Self::UntilSettled => "until settled".to_owned(),
        }
    }
}

/// A xorshift generator: the same trials every time.
struct Random(u64);

impl Random {
    /// Evenly between 0 and 1.
    fn even(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Between -1 and 1.
    fn either_way(&mut self) -> f64 {
        2.0 * self.even() - 1.0
    }

    /// Normally around 0 with a deviation of 1.
    fn normal(&mut self) -> f64 {
        let (length, angle) = (self.even().max(1e-300), self.even());
        (-2.0 * length.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
    }
}

/// What one process measures, where the machine is off by `moved` and the build takes `factor` times 20 us.
fn process(random: &mut Random, machine: &Machine, count: usize, factor: f64, moved: f64) -> Vec<Sample> {
    let level = 20e6 * factor * (moved + machine.process * random.normal()).exp();
    let drift = machine.drift * random.either_way();
    let (mut shared, mut burst) = (random.normal(), 0);
    let length = count as f64 * (0.1 + 0.23 * random.even());
    let from = random.even() * (count as f64 - length);
    let held = if random.even() < machine.throttling { 0.03 + 0.12 * random.even() } else { 0.0 };
    let sample = |at: usize| {
        shared = machine.correlation * shared + (1.0 - machine.correlation * machine.correlation).sqrt() * random.normal();
        let mut off = machine.noise * shared + drift * (-3.0 * at as f64 / count as f64).exp();
        let throttled = held > 0.0 && (from..from + length).contains(&(at as f64));
        off += if throttled { held } else { 0.0 };
        if burst == 0 && random.even() < machine.outliers {
            burst = 1 + (random.even() * 4.0) as usize;
        }
        if burst > 0 {
            burst -= 1;
            off += random.even() * std::f64::consts::LN_2;
        }
        Sample { time_ps: (level * off.exp()) as i64, throttled }
    };
    (0..count).map(sample).collect()
}

fn measure(random: &mut Random, machine: &Machine, design: Design, count: usize, factor: f64) -> RunsComparison {
    let mut rounds = |number: usize| {
        let (mut before, mut after, mut moved) = (Runs::default(), Runs::default(), 0.0);
        for round in 0..number {
            // The machine moves between rounds, and a little between the two of one; they change places every round.
            moved += machine.wander * random.either_way();
            let take = |random: &mut Random, factor: f64| {
                let near = moved + 0.2 * machine.wander * random.either_way();
                process(random, machine, count, factor, near)
            };
            if round % 2 == 0 {
                before.0.push(take(random, 1.0));
                after.0.push(take(random, factor));
            } else {
                after.0.push(take(random, factor));
                before.0.push(take(random, 1.0));
            }
        }
        (before, after)
    };
    match design {
        Design::Alone => {
            // On two days.
            let (before, _) = rounds(1);
            let (_, after) = rounds(1);
            compare_runs(&before, &after, false, &RULES).unwrap()
        }
        Design::Rounds(number) => {
            let (before, after) = rounds(number);
            compare_runs(&before, &after, true, &RULES).unwrap()
        }
        Design::UntilSettled => {
            let (before, _) = rounds(1);
            let (_, after) = rounds(1);
            let mut found = compare_runs(&before, &after, false, &RULES).unwrap();
            if found.is_settled() {
                return found;
            }
            let (before, after) = rounds(LOOKS[LOOKS.len() - 1]);
            for look in LOOKS {
                let first = |runs: &Runs| Runs(runs.0[..look].to_vec());
                found = compare_runs(&first(&before), &first(&after), true, &RULES).unwrap();
                if found.is_settled() {
                    break;
                }
            }
            found
        }
    }
}

/// What was said, in how many trials.
#[derive(Default, Clone, Copy)]
struct Tally {
    /// The direction that the change has.
    found: usize,
    /// The other one; without a change, either.
    wrong_way: usize,
    same: usize,
    ambiguous: usize,
    /// Sum of the smallest effects, where there are any.
    effects: (f64, usize),
    /// Intervals of the builds that hold the true ratio.
    held: usize,
}

impl Tally {
    /// Wrong verdicts: another direction than the change has, a direction without a change, or SAME of more than that word allows.
    fn wrong(self, change: f64) -> usize {
        self.wrong_way + if change > RULES.same_within { self.same } else { 0 }
    }
}

fn tally(machine: &Machine, design: Design, count: usize, change: f64) -> Tally {
    let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ (count as u64) << 8 ^ (change * 1000.0) as u64);
    let mut tally = Tally::default();
    for trial in 0..TRIALS {
        let is_slower = trial % 2 == 0;
        let factor = if is_slower { 1.0 + change } else { 1.0 - change };
        let result = measure(&mut random, machine, design, count, factor);
        // No interval at all excludes nothing.
        tally.held += usize::from(result.interval_of_builds().is_none_or(|(low, high)| low <= factor && factor <= high));
        if let Some(effect) = result.smallest_effect {
            tally.effects = (tally.effects.0 + effect, tally.effects.1 + 1);
        }
        *match (result.verdict, is_slower) {
            (Verdict::Same, _) => &mut tally.same,
            (Verdict::Ambiguous, _) => &mut tally.ambiguous,
            (Verdict::Slower, true) | (Verdict::Faster, false) if change > 0.0 => &mut tally.found,
            (Verdict::Slower | Verdict::Faster, _) => &mut tally.wrong_way,
        } += 1;
    }
    tally
}

fn percent(count: usize) -> String {
    format!("{:.1}", count as f64 / TRIALS as f64 * 100.0)
}

/// What has to hold of a line, in view of what it is for.
fn fault(machine: &Machine, design: Design, change: f64, tally: Tally) -> Option<String> {
    if tally.wrong(change) * 100 >= TRIALS {
        return Some(format!("{} of {TRIALS} false", tally.wrong(change)));
    }
    // One process a side is the first look, and four rounds the second; what is in doubt after them is measured further.
    let least = match (design, machine.title) {
        (Design::UntilSettled, _) => 0.99,
        (_, "steady") => 0.90,
        _ => 0.0,
    };
    let is_missed = change >= 0.03 && (tally.found as f64) < least * TRIALS as f64;
    if is_missed {
        return Some(format!("found {} of {TRIALS}", tally.found));
    }
    let is_narrow = (tally.held as f64) < LEAST_HELD * TRIALS as f64;
    is_narrow.then(|| format!("{} of {TRIALS} intervals hold the true ratio", tally.held))
}

#[test]
fn false_verdicts_stay_under_one_percent_and_three_percent_are_found() {
    let mut table = String::from(
        "| machine | measured | samples a process | true change | found % | SAME % | AMBIGUOUS % | false % | smallest shown % | interval holds % |\n|---|---|---:|---:|---:|---:|---:|---:|---:|---:|\n",
    );
    let mut faults = Vec::new();
    for machine in &MACHINES {
        for design in Design::ALL {
            for count in machine.counts {
                for change in CHANGES {
                    let tally = tally(machine, design, count, change);
                    let line = format!("{}, {}, {count} samples, {change}", machine.title, design.title());
                    faults.extend(fault(machine, design, change, tally).map(|fault| format!("{line}: {fault}")));
                    let (shown, found) = if change == 0.0 {
                        ("none".to_owned(), "–".to_owned())
                    } else {
                        (format!("{:.0} %", change * 100.0), percent(tally.found))
                    };
                    let effect = 100.0 * tally.effects.0 / tally.effects.1.max(1) as f64;
                    let cells = [tally.same, tally.ambiguous, tally.wrong(change)].map(percent).join(" | ");
                    let held = percent(tally.held);
                    let title = design.title();
                    writeln!(table, "| {} | {title} | {count} | {shown} | {found} | {cells} | {effect:.1} | {held} |", machine.title)
                        .unwrap();
                }
            }
        }
    }
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/bench-statistics.md");
    let text = std::fs::read_to_string(&page).unwrap();
    let (start, end) = ("<!-- simulated -->\n\n", "\n<!-- end -->");
    let from = text.find(start).unwrap() + start.len();
    let to = from + text[from..].find(end).unwrap();
    if std::env::var_os("LONGPOLE_UPDATE_DOCS").is_some() {
        std::fs::write(&page, format!("{}{table}{}", &text[..from], &text[to..])).unwrap();
    } else {
        assert_eq!(&text[from..to], table, "LONGPOLE_UPDATE_DOCS=1 writes what the simulation gives");
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
