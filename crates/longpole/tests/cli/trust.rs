//! The trust header over whole runs: each trouble of a trace is counted, graded and said where it belongs.

use std::fmt::Write as _;

use crate::harness::{Run, run_with};
use crate::schema::validate;

/// A trace written event by event.
#[derive(Default)]
struct Events {
    list: Vec<String>,
    correlation: u64,
}

impl Events {
    fn event(&mut self, cat: &str, name: &str, (pid, tid): (i64, i64), (ts, dur): (i64, i64), correlation: Option<u64>) {
        let mut args = format!(r#""device":{pid},"stream":{tid}"#);
        if let Some(number) = correlation {
            let _ = write!(args, r#","correlation":{number}"#);
        }
        let event =
            format!(r#"{{"ph":"X","cat":"{cat}","name":"{name}","pid":{pid},"tid":{tid},"ts":{ts},"dur":{dur},"args":{{{args}}}}}"#);
        self.list.push(event);
    }

    fn launch(&mut self, ts: i64) -> u64 {
        self.correlation += 1;
        self.event("cuda_runtime", "cudaLaunchKernel", (9, 9), (ts, 2), Some(self.correlation));
        self.correlation
    }

    /// A kernel with its launch, on stream 7.
    fn kernel(&mut self, launched: i64, start: i64, dur: i64) {
        let correlation = self.launch(launched);
        self.event("kernel", "gemm", (0, 7), (start, dur), Some(correlation));
    }

    fn orphan(&mut self, start: i64) {
        self.event("kernel", "orphan", (0, 7), (start, 1), Some(1_000_000));
    }

    fn text(&self) -> String {
        format!(r#"{{"traceEvents":[{}]}}"#, self.list.join(",\n"))
    }
}

/// A trace in which nothing is wrong.
fn healthy() -> Events {
    let mut events = Events::default();
    events.event("cpu_op", "aten::mm", (9, 9), (0, 20_000), None);
    for at in 0..10 {
        // Launched ahead, so that the device never waits for the host.
        events.kernel(100 + at * 2, 120 + at * 100, 50);
    }
    events
}

fn read(trace: &str, args: &[&str]) -> Run {
    run_with(&[&["-"], args].concat(), trace.as_bytes())
}

/// The note of one code, if there is one, with the grade.
fn note(trace: &str, code: &str) -> (String, Option<serde_json::Value>) {
    let document = validate(&read(trace, &["--json"]).stdout);
    let notes = document["trust"]["notes"].as_array().expect("a list");
    (document["trust"]["grade"].as_str().expect("a word").to_owned(), notes.iter().find(|note| note["code"] == code).cloned())
}

/// The note is there with this count, time and grade, and the page says `words`; the healthy trace has none of it.
fn assert_noted(change: impl Fn(&mut Events), code: &str, (count, time_ns): (u64, Option<i64>), grade: &str, words: &str) {
    let mut events = healthy();
    assert_eq!(note(&events.text(), code).1, None, "{code}");
    change(&mut events);
    let text = events.text();
    let (found, note) = note(&text, code);
    let note = note.unwrap_or_else(|| panic!("{code} is not noted"));
    assert_eq!((note["count"].as_u64(), note["time_ns"].as_i64(), found.as_str()), (Some(count), time_ns, grade), "{code}: {note}");
    let page = read(&text, &[]).stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(page.contains(words), "{code}: {page}");
    let markdown = read(&text, &["--markdown"]).stdout;
    assert!(markdown.contains(words), "{code}: {markdown}");
}

#[test]
fn a_healthy_trace_is_good() {
    let document = validate(&read(&healthy().text(), &["--json"]).stdout);
    assert_eq!((document["trust"]["grade"].as_str(), document["trust"]["notes"].as_array().map(Vec::len)), (Some("good"), Some(0)));
}

#[test]
fn each_trouble_is_counted_and_said() {
    let lost = |events: &mut Events| {
        events.launch(5_000);
        events.launch(5_010);
    };
    let words = "16.7 % of launches have no device event: device totals are a lower bound (2 of 12)";
    assert_noted(lost, "launch_without_activity", (2, None), "partial", words);
    let before = |events: &mut Events| (0..3).for_each(|at| events.orphan(10 + 2 * at));
    assert_noted(
        before,
        "launched_before_window",
        (3, None),
        "noted",
        "device events were launched before the window: their time is counted, their owner is unknown (3 times)",
    );
    let orphan = |events: &mut Events| events.orphan(700);
    assert_noted(
        orphan,
        "orphan_activity",
        (1, None),
        "noted",
        "device events have no launch in the trace: their time is counted, their owner is unknown (once)",
    );
    let skewed = |events: &mut Events| events.kernel(3_000, 2_995, 50);
    assert_noted(skewed, "start_before_launch", (1, Some(5_000)), "noted", "the clocks are skewed (once, at most 5.0 us)");
    let overlap = |events: &mut Events| events.kernel(1_050, 1_060, 50);
    assert_noted(overlap, "stream_overlap", (1, Some(10_000)), "good", "(once, largest overlap 10.0 us), e.g. gemm");
    let impossible = |events: &mut Events| events.kernel(50, 60, 9_000);
    assert_noted(impossible, "impossible_duration", (1, Some(8_940_000)), "noted", "(once, largest overrun 8.940 ms), e.g. gemm");
    let clamped = |events: &mut Events| events.event("cpu_op", "aten::add", (9, 9), (30, -1), None);
    assert_noted(clamped, "negative_duration", (1, None), "noted", "negative durations were read as zero (once), e.g. aten::add");
    let backwards = |events: &mut Events| events.event("cpu_op", "aten::add", (9, 9), (30, -3), None);
    assert_noted(backwards, "end_before_start", (1, None), "partial", "how long they took is lost (once), e.g. aten::add");
    let overhead = |events: &mut Events| events.event("overhead", "Buffer Flush", (-1, 0), (5_000, 2_000), None);
    assert_noted(
        overhead,
        "profiler_overhead",
        (1, Some(2_000_000)),
        "good",
        "inside the window, 10.0 % of wall (2.000 ms), e.g. Buffer Flush",
    );
}

#[test]
fn a_cut_trace_says_how_much_was_read() {
    let text = healthy().text();
    let cut = &text[..text.len() - 200];
    let (grade, note) = note(cut, "truncated");
    assert_eq!((grade.as_str(), note.expect("noted")["time_ns"].is_i64()), ("partial", true));
    assert!(read(cut, &[]).stdout.contains("of the run were read)"), "{}", read(cut, &[]).stdout);
}

#[test]
fn the_report_alone_carries_its_grade_and_says_why_on_standard_error() {
    let mut events = healthy();
    let good = read(&events.text(), &["--report-only"]);
    assert!(!good.stdout.contains("[trust") && good.stderr.is_empty(), "{}{}", good.stdout, good.stderr);
    events.orphan(700);
    let noted = read(&events.text(), &["--report-only"]);
    let first = noted.stdout.lines().next().expect("five lines");
    assert!(first.ends_with("[trust noted: no data was lost, some events needed care]"), "{first}");
    assert!(noted.stderr.contains("device events have no launch in the trace"), "{}", noted.stderr);
    assert_eq!(noted.stdout.lines().count(), 5);
    events.launch(5_000);
    let partial = read(&events.text(), &["--report-only"]);
    let first = partial.stdout.lines().next().expect("five lines");
    assert!(first.ends_with("[trust partial: data was lost, totals are lower bounds]"), "{first}");
    assert!(partial.stderr.contains("9.1 % of launches"), "{}", partial.stderr);
}

/// Four steps in which the device waits for each launch.
fn cpu_bound() -> Events {
    let mut events = Events::default();
    for step in 0..4 {
        events.event("user_annotation", "decode_step", (9, 9), (step * 5_000, 5_000), None);
        for at in 0..10 {
            let at = step * 5_000 + at * 500;
            events.event("cpu_op", "aten::mm", (9, 9), (at, 400), None);
            events.kernel(at + 300, at + 320, 50);
        }
    }
    events
}

#[test]
fn a_cpu_bound_window_is_said_to_be_so_by_every_command() {
    const CAVEAT: &str = "the window is CPU-bound, and profiling inflates host time, typically 1.2 to 3 times";
    let events = cpu_bound();
    let text = events.text();
    let in_one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    for command in ["triage", "ops", "kernels", "families", "ranges"] {
        let run = |more: &[&str]| run_with(&[&[command, "-"], more].concat(), text.as_bytes());
        for more in [&[][..], &["--markdown"]] {
            let said = in_one_line(&run(more).stdout);
            assert_eq!(said.matches(CAVEAT).count(), 1, "{command} {more:?}: {said}");
            assert!(said.contains("--unprofiled-step-ms"), "{command}: {said}");
        }
        let json = validate(&run(&["--json"]).stdout);
        assert!(json["trust"]["notes"].as_array().is_some_and(|notes| notes.iter().any(|note| note["code"] == "cpu_bound")), "{command}");
        assert_eq!(json["trust"]["grade"], "good", "{command}");
    }
    for more in [&["triage", "-", "--report-only"][..], &["ops", "-", "--csv"]] {
        let run = run_with(more, text.as_bytes());
        assert!(in_one_line(&run.stderr).contains(CAVEAT) && !run.stdout.contains("CPU-bound"), "{more:?}: {}", run.stderr);
    }
    // One step does not repeat, so nothing can be calibrated with it.
    let one = run_with(&["ops", "-", "--step", "1"], text.as_bytes());
    assert!(in_one_line(&one.stdout).contains(CAVEAT) && !one.stdout.contains("--unprofiled-step-ms"), "{}", one.stdout);
    // The device is busy with other work in the whole of it, whoever launched that.
    let mut busy = events;
    busy.event("kernel", "other", (0, 9), (0, 20_000), Some(2_000_000));
    let said = read(&busy.text(), &["--step", "1"]).stdout;
    assert!(!said.contains("CPU-bound") && !said.contains("host_bound"), "{said}");
}

#[test]
fn a_timed_step_is_told_beside_the_report_too() {
    let events = cpu_bound();
    let run = read(&events.text(), &["--report-only", "--unprofiled-step-ms", "0.51"]);
    assert!(run.stderr.contains("5.0 ms under the profiler and 510.0 us without"), "{}", run.stderr);
    assert!(!run.stderr.contains("give triage its length") && !run.stdout.contains("host-bound"), "{}{}", run.stderr, run.stdout);
    assert_eq!(run.stdout.lines().count(), 5);
}
