//! How often a verdict is false, on step times that were really recorded: 24 processes on one H200 (`tests/data/README.md`).
//!
//! Each trial takes a window of neighbouring steps of one process and one of another (or of the same, elsewhere in it), makes the second
//! longer or shorter by a known share, and asks. `LONGPOLE_UPDATE_DOCS=1 cargo test -p longpole-stats` writes the table of
//! docs/verdicts.md; read the change before you commit it.

#![expect(clippy::unwrap_used, reason = "a test may fail on its own data")]

use std::fmt::Write as _;
use std::path::Path;

use longpole_stats::{Rules, Verdict, compare, median};
use serde::Deserialize;

/// Trials for each line of the table.
const TRIALS: usize = 8_000;
/// Steps a side.
const COUNTS: [usize; 4] = [2, 4, 16, 64];
/// True changes; half of the trials of each go the one way, half the other.
const CHANGES: [f64; 4] = [0.0, 0.01, 0.03, 0.10];

#[derive(Deserialize)]
struct Run {
    kind: String,
    span_ns: Vec<i64>,
    busy_ns: Vec<i64>,
}

/// A figure of a kind of run.
struct Figure {
    title: &'static str,
    kind: &'static str,
    values: fn(&Run) -> &Vec<i64>,
    /// Whether the host causes the idle time in it.
    host: bool,
}

const FIGURES: [Figure; 5] = [
    Figure { title: "busy, CUDA graph", kind: "graph", values: |run| &run.busy_ns, host: false },
    Figure { title: "span, CUDA graph", kind: "graph", values: |run| &run.span_ns, host: false },
    Figure { title: "busy, eager", kind: "eager", values: |run| &run.busy_ns, host: false },
    Figure { title: "span, eager, large batch", kind: "large", values: |run| &run.span_ns, host: true },
    Figure { title: "span, eager, host-bound", kind: "eager", values: |run| &run.span_ns, host: true },
];

/// A xorshift generator: the same trials every time.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
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
}

fn window(random: &mut Random, run: &Run, figure: &Figure, count: usize) -> (Vec<i64>, f64) {
    let from = random.below(run.span_ns.len() - count + 1);
    let values = (figure.values)(run)[from..from + count].to_vec();
    let (span, busy) = (median(&run.span_ns[from..from + count]).unwrap(), median(&run.busy_ns[from..from + count]).unwrap());
    (values, if figure.host { 1.0 - busy as f64 / span as f64 } else { 0.0 })
}

fn tally(runs: &[Run], figure: &Figure, count: usize, change: f64) -> Tally {
    let runs: Vec<&Run> = runs.iter().filter(|run| run.kind == figure.kind).collect();
    let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ count as u64);
    let mut tally = Tally::default();
    for trial in 0..TRIALS {
        let (a, b) = (runs[random.below(runs.len())], runs[random.below(runs.len())]);
        let (before, share_a) = window(&mut random, a, figure, count);
        let (mut after, share_b) = window(&mut random, b, figure, count);
        let is_slower = trial % 2 == 0;
        let factor = if is_slower { 1.0 + change } else { 1.0 - change };
        for value in &mut after {
            *value = (*value as f64 * factor).round() as i64;
        }
        let result = compare(&before, &after, &Rules::with_host_share(share_a.max(share_b))).unwrap();
        *match (result.verdict, is_slower) {
            (Verdict::Same, _) => &mut tally.same,
            (Verdict::Ambiguous, _) => &mut tally.ambiguous,
            (Verdict::Slower, true) | (Verdict::Faster, false) if change > 0.0 => &mut tally.found,
            (Verdict::Slower | Verdict::Faster, _) => &mut tally.wrong_way,
        } += 1;
    }
    tally
}

/// Verdicts that are wrong: another direction than the change has, a direction without a change, or "the same" of a change beyond what that
/// word allows.
fn wrong(tally: Tally, change: f64) -> usize {
    tally.wrong_way + if change > Rules::DEVICE_TIME.same_within { tally.same } else { 0 }
}

fn percent(count: usize) -> String {
    format!("{:.1}", count as f64 / TRIALS as f64 * 100.0)
}

#[test]
fn false_verdicts_stay_under_one_percent() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let runs: Vec<Run> = serde_json::from_str(&std::fs::read_to_string(here.join("tests/data/h200_steps.json")).unwrap()).unwrap();
    let mut table = String::from(
        "| figure | steps a side | true change | found % | SAME % | AMBIGUOUS % | false % |\n|---|---:|---:|---:|---:|---:|---:|\n",
    );
    let mut faults = Vec::new();
    for figure in &FIGURES {
        for count in COUNTS {
            for change in CHANGES {
                let tally = tally(&runs, figure, count, change);
                let wrong = wrong(tally, change);
                if wrong * 100 >= TRIALS {
                    faults.push(format!("{} with {count} steps at {change}: {wrong} of {TRIALS} false", figure.title));
                }
                // One recording a side cannot show as much of a step that waits for its host; see the page.
                if change >= 0.1 && count >= 4 && !figure.host && tally.found != TRIALS {
                    faults.push(format!("{} with {count} steps at {change}: found {} of {TRIALS}", figure.title, tally.found));
                }
                let (shown, found) = if change == 0.0 {
                    ("none".to_owned(), "–".to_owned())
                } else {
                    (format!("{:.0} %", change * 100.0), percent(tally.found))
                };
                let cells = [tally.same, tally.ambiguous, wrong].map(percent).join(" | ");
                writeln!(table, "| {} | {count} | {shown} | {found} | {cells} |", figure.title).unwrap();
            }
        }
    }
    let page = here.join("../../docs/verdicts.md");
    let text = std::fs::read_to_string(&page).unwrap();
    let (start, end) = ("<!-- false verdicts -->\n\n", "\n<!-- end -->");
    let from = text.find(start).unwrap() + start.len();
    let to = from + text[from..].find(end).unwrap();
    if std::env::var_os("LONGPOLE_UPDATE_DOCS").is_some() {
        std::fs::write(&page, format!("{}{table}{}", &text[..from], &text[to..])).unwrap();
    } else {
        assert_eq!(&text[from..to], table, "LONGPOLE_UPDATE_DOCS=1 writes what the simulation gives");
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
