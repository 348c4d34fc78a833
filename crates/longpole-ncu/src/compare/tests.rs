use super::*;
use crate::metrics::Value;
use crate::rules::{MessageKind, Scope};
use crate::session::{Device, Session};
use crate::testing::{Sample, report, report_of};

const DURATION: &str = "gpu__time_duration.sum";
const LATENCY: &str = "smsp__average_warp_latency_per_inst_issued.ratio";

fn stalled(sample: Sample, reason: &str, cycles: f64) -> Sample {
    sample.value(&format!("smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio"), cycles)
}

fn one(before: Sample, after: Sample) -> Pair {
    compare(&report(vec![before]), &report(vec![after]), |_| true).pairs.remove(0)
}

#[test]
fn figures_are_there_when_one_side_has_them_and_time_comes_first() {
    let pair = one(
        Sample::kernel("k").value(DURATION, 400.0).value("dram__bytes_read.sum", 8.0),
        Sample::kernel("k").value(DURATION, 100.0).value("launch__registers_per_thread", 32.0),
    );
    let figures: Vec<_> =
        pair.figures.iter().map(|figure| (figure.what, figure.unit, figure.before, figure.after, figure.ratio())).collect();
    assert_eq!(
        figures,
        [
            ("duration", "ns", Some(400.0), Some(100.0), Some(0.25)),
            ("DRAM read", "byte", Some(8.0), None, None),
            ("registers per thread", "", None, Some(32.0), None),
        ]
    );
}

#[test]
fn stalls_that_moved_come_largest_first_and_an_unlisted_one_is_none() {
    let before = Sample::kernel("k").value(LATENCY, 34.0);
    let before = stalled(stalled(stalled(before, "long_scoreboard", 30.0), "wait", 1.0), "barrier", 2.0);
    let after = Sample::kernel("k").value(LATENCY, 10.0);
    let after = stalled(stalled(stalled(after, "long_scoreboard", 5.0), "wait", 1.09), "lg_throttle", 0.5);
    let moved: Vec<_> = one(before, after).stalls.iter().map(|figure| (figure.what, figure.before, figure.after)).collect();
    assert_eq!(
        moved,
        [("long_scoreboard", Some(30.0), Some(5.0)), ("barrier", Some(2.0), Some(0.0)), ("lg_throttle", Some(0.0), Some(0.5))]
    );
    // Not collected on one side: nothing can be said.
    assert!(one(stalled(Sample::kernel("k").value(LATENCY, 3.0), "wait", 2.0), Sample::kernel("k")).stalls.is_empty());
}

#[test]
fn rules_are_compared_by_name_and_not_by_their_figures() {
    let global = |percent| Some((Scope::Global, percent));
    let before = Sample::kernel("k")
        .rule("Uncoalesced", "S", "91 % too many", MessageKind::Optimization, global(80.0))
        .rule("CPIStall", "S", "30 cycles", MessageKind::Optimization, global(40.0))
        .rule("Note", "S", "for your information", MessageKind::Information, None);
    let after = Sample::kernel("k").rule("CPIStall", "S", "20 cycles", MessageKind::Optimization, global(20.0)).rule(
        "Tail",
        "S",
        "a partial wave",
        MessageKind::Warning,
        None,
    );
    let pair = one(before, after);
    assert_eq!(pair.rules_gone, [("Uncoalesced".to_owned(), "91 % too many".to_owned())]);
    assert_eq!(pair.rules_new, [("Tail".to_owned(), "a partial wave".to_owned())]);
}

#[test]
fn totals_by_name_are_exact_and_say_what_they_lack() {
    let before = report(vec![Sample::kernel("a").value(DURATION, 10.0), Sample::kernel("a").value(DURATION, 5.0), Sample::kernel("b")]);
    let after = report(vec![Sample::kernel("a").value(DURATION, 3.0), Sample::kernel("c").value(DURATION, 100.0), Sample::kernel("skip")]);
    let totals = compare(&before, &after, |name| name != "skip").totals;
    let rows: Vec<_> = totals
        .iter()
        .map(|total| (total.name.as_str(), total.launches_before, total.launches_after, total.before_ns, total.after_ns))
        .collect();
    assert_eq!(rows, [("c", 0, 1, None, Some(100)), ("a", 2, 1, Some(15), Some(3)), ("b", 1, 0, None, None)]);
    assert_eq!((totals[2].without_duration_before, totals[1].ratio(), totals[0].ratio()), (1, Some(0.2), None));
}

fn session(device: &str, sms: u64, ncu: &str, command_line: &str) -> Session {
    let attribute = ("device__attribute_multiprocessor_count".to_owned(), Value::Unsigned(sms));
    let settings = command_line
        .split_whitespace()
        .filter_map(|word| word.strip_prefix("--clock-control="))
        .map(|value| ("clock-control", value.to_owned()))
        .collect();
    Session {
        devices: vec![Device { id: 0, name: device.to_owned(), attributes: vec![attribute] }],
        versions: vec![("Nsight Compute Target".to_owned(), ncu.to_owned()), ("CUDA Version".to_owned(), "13.0".to_owned())],
        command_line: Some(command_line.to_owned()),
        settings,
        ..Session::default()
    }
}

fn about(before: &Report, after: &Report) -> Vec<(&'static str, String)> {
    compare(before, after, |_| true).cautions.into_iter().map(|caution| (caution.about, caution.text)).collect()
}

#[test]
fn equal_recordings_get_the_one_caution_that_is_always_there() {
    let same = || {
        report_of(session("H200", 132, "2025.3.1", "ncu app"), vec![Sample::kernel("k").grid([1, 1, 1]).section("A").clocks_locked(true)])
    };
    let found = about(&same(), &same());
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].0, "serialised");
    assert!(found[0].1.contains("confirm") && found[0].1.contains("benchmark"));
}

#[test]
fn what_differs_is_said() {
    let before =
        report_of(session("H200", 132, "2025.3.1", "ncu app"), vec![Sample::kernel("k").grid([1, 1, 1]).section("A").clocks_locked(true)]);
    let after = report_of(
        session("A100", 108, "2024.1", "ncu --clock-control=none app"),
        vec![Sample::kernel("k").grid([2, 1, 1]).section("B").clocks_locked(false)],
    );
    let found = about(&before, &after);
    let expected = ["device", "SM count", "clocks", "sections", "ncu version", "launch shape", "serialised"];
    assert_eq!(found.iter().map(|(about, _)| *about).collect::<Vec<_>>(), expected);
    assert_eq!(found[0].1, "the device differs: H200 before, A100 after");
    assert!(
        found[2].1.contains("--clock-control differs: base before, none after; the clocks were locked before and free after"),
        "{}",
        found[2].1
    );
    assert_eq!(found[3].1, "different sections were collected (only before: A; only after: B)");
    assert!(found[5].1.contains("1x1x1 of ?") && found[5].1.contains("2x1x1 of ?"), "{}", found[5].1);
}

#[test]
fn free_clocks_on_both_sides_and_unknown_facts() {
    let free = || report(vec![Sample::kernel("k").clocks_locked(false)]);
    assert_eq!(about(&free(), &free())[0].1, "the clocks were not locked: times vary from run to run");
    // Nothing is known of one side, so that nothing differs.
    let known = report_of(session("H200", 132, "2025.3.1", "ncu app"), vec![Sample::kernel("k").section("A").clocks_locked(true)]);
    assert_eq!(about(&known, &report(vec![Sample::kernel("k")])).len(), 1);
}

#[test]
fn rules_of_a_section_that_the_other_side_lacks_are_neither_gone_nor_new() {
    let rule = |sample: Sample, name: &str, section: &str| sample.rule(name, section, name, MessageKind::Optimization, None);
    let before = rule(rule(Sample::kernel("k").section("A").section("B"), "InA", "A"), "InB", "B");
    let pair = one(before, Sample::kernel("k").section("B"));
    assert_eq!(pair.rules_gone, [("InB".to_owned(), "InB".to_owned())]);
}

#[test]
fn a_page_without_titles_or_rules_makes_no_rule_gone() {
    let titled = |title: &str| {
        let mut report = report(vec![Sample::kernel("k").rule("Imbalance", "S", "x", MessageKind::Optimization, None)]);
        if let crate::report::Backing::Table(results) = &mut report.backing {
            results[0].rules[0].title = title.to_owned();
        }
        report
    };
    let mut table = titled("Imbalance");
    table.page = Page::Details;
    let pair = |before: &Report, after: &Report| compare(before, after, |_| true).pairs.remove(0);
    let found = pair(&titled("SM Imbalance"), &table);
    assert!(found.rules_gone.is_empty() && found.rules_new.is_empty(), "{found:?}");
    let mut raw = report(vec![Sample::kernel("k")]);
    raw.page = Page::Raw;
    let comparison = compare(&titled("SM Imbalance"), &raw, |_| true);
    assert!(comparison.pairs[0].rules_gone.is_empty());
    assert!(comparison.cautions.iter().any(|caution| caution.about == "rules" && caution.text.contains("no rules on this page")));
}

#[test]
fn a_device_without_a_name_is_no_other_device() {
    let with = |name: &str| {
        let device = Device { id: 0, name: name.to_owned(), attributes: Vec::new() };
        let mut report = report(vec![Sample::kernel("k")]);
        report.session = Session { devices: vec![device], ..Session::default() };
        report
    };
    let about =
        |before: &str, after: &str| compare(&with(before), &with(after), |_| true).cautions.iter().any(|caution| caution.about == "device");
    assert_eq!((about("H200", ""), about("H200", "H100")), (false, true));
}
