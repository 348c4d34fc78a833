//! Summaries, tables and comparisons of real reports against what ncu itself prints for them.

#![expect(clippy::unwrap_used, reason = "a helper that cannot go on fails its test")]

use std::collections::{HashMap, HashSet};
use std::path::Path;

use longpole_ncu::summary::{self, KernelSummary, VerdictKind};
use longpole_ncu::{Report, Scope, compare, table, units};

use crate::files::{self, load, report_and_page, root, shared};
use crate::raw_page::Tally;

/// A report that is part of the repository.
fn own(name: &str) -> Report {
    Report::open(&root().join("corpus/ncu").join(name)).unwrap()
}

fn summaries(report: &Report) -> Vec<KernelSummary> {
    let selection = summary::selection(report);
    report.decode_all(&selection).iter().map(|result| summary::summarize(report, result)).collect()
}

fn codes(summary: &KernelSummary) -> Vec<&str> {
    summary.symptoms.iter().map(|symptom| symptom.code).collect()
}

#[test]
fn the_slow_gemv_is_found_out() {
    let report = own("gemv_before.ncu-repz");
    let summaries = summaries(&report);
    let gemv = &summaries[0];
    let verdict = gemv.verdict.as_ref().unwrap();
    let because = "memory 55.8 % and SM 3.4 % of peak, both under 60 %; 0.07 waves: the grid does not fill the device once";
    assert_eq!((verdict.kind, verdict.because.as_str()), (VerdictKind::TooSmall, because));
    assert_eq!(codes(gemv), ["uncoalesced_access", "low_occupancy", "imbalance"]);
    assert!(gemv.symptoms[0].text.contains("46,694,400 of 51,366,272 sectors (90.9 %)"), "{}", gemv.symptoms[0].text);
    assert!(gemv.symptoms[1].text.contains("7.7 % reached, 100.0 % possible"), "{}", gemv.symptoms[1].text);
    assert_eq!(gemv.launch.limiters, ["registers", "warps"]);
    assert_eq!(gemv.speed.duration_ns, Some(352_576));
    let stall = &gemv.stalls[0];
    let cycles = format!(
        "{:.1} of {:.1}, {:.1} %",
        stall.cycles_per_issue.unwrap(),
        gemv.warp_cycles_per_issue.unwrap(),
        100.0 * stall.share_fraction
    );
    assert_eq!((stall.reason, cycles.as_str()), ("long_scoreboard", "30.5 of 33.9, 89.8 %"));
    assert_eq!(gemv.suggestions[0].rule, "UncoalescedGlobalAccess");
    assert_eq!(gemv.missing, []);
    assert_eq!(codes(&summaries[2]), ["bank_conflicts", "low_occupancy"]);
    assert_eq!(summaries[2].stalls[0].reason, "short_scoreboard");
}

#[test]
fn the_fast_gemv_is_memory_bound() {
    let report = own("gemv_after.ncu-repz");
    let gemv = &summaries(&report)[0];
    assert_eq!(gemv.verdict.as_ref().unwrap().kind, VerdictKind::MemoryBound);
    assert_eq!(gemv.speed.duration_ns, Some(27_200));
    assert_eq!(format!("{:.1}", gemv.speed.dram_pct.unwrap()), "78.1");
    assert_eq!(codes(gemv), ["low_occupancy", "tail_effect"]);
    // ncu's own estimate of the tail is the same.
    let tail = gemv.suggestions.iter().find(|suggestion| suggestion.title == "Tail Effect").unwrap();
    assert_eq!(format!("{:.1}", tail.speedup_pct.unwrap()), "33.3");
    assert!(gemv.symptoms[1].text.ends_with("costs up to 33.3 % of the time"), "{}", gemv.symptoms[1].text);
    assert!(gemv.suggestions.iter().any(|suggestion| suggestion.rule == "FPInstructions" && !suggestion.is_related));
}

#[test]
fn the_two_gemvs_are_one_kernel_before_and_after() {
    let comparison = compare::compare(&own("gemv_before.ncu-repz"), &own("gemv_after.ncu-repz"), |_| true);
    assert_eq!((comparison.pairs.len(), comparison.only_before.len(), comparison.only_after.len()), (3, 0, 0));
    let gemv = &comparison.pairs[0];
    assert!(gemv.name_before.starts_with("gemv_row_per_thread") && gemv.name_after.starts_with("gemv_warp_per_row"));
    assert_eq!(gemv.matched_by, compare::MatchedBy::Order);
    assert_eq!((gemv.verdict_before, gemv.verdict_after), (Some(VerdictKind::TooSmall), Some(VerdictKind::MemoryBound)));
    assert!(comparison.pairs[1..].iter().all(|pair| pair.matched_by == compare::MatchedBy::Name));
    let figure = |what: &str| {
        let figure = gemv.figures.iter().find(|figure| figure.what == what).unwrap();
        (figure.before.unwrap(), figure.after.unwrap())
    };
    assert_eq!(figure("duration"), (352_576.0, 27_200.0));
    let (before, after) = figure("DRAM of peak");
    assert_eq!(format!("{before:.1} -> {after:.1}"), "6.0 -> 78.1");
    assert_eq!(gemv.stalls[0].what, "lg_throttle");
    assert!(gemv.rules_gone.iter().any(|(rule, _)| rule == "UncoalescedGlobalAccess"));
    assert!(gemv.rules_new.iter().any(|(rule, text)| rule == "LaunchConfiguration" && text.contains("wave")));
    let about: Vec<_> = comparison.cautions.iter().map(|caution| caution.about).collect();
    assert_eq!(about, ["clocks", "launch shape", "serialised"]);
    let total = |name: &str| comparison.totals.iter().find(|total| total.name.starts_with(name)).unwrap();
    assert_eq!((total("gemv_row").before_ns, total("gemv_row").after_ns), (Some(352_576), None));
    assert_eq!((total("bank_conflict").before_ns, total("bank_conflict").after_ns), (Some(53_408), Some(53_440)));
}

#[test]
fn a_report_against_itself_shows_no_change() {
    let report = own("kern_basic.ncu-rep");
    let comparison = compare::compare(&report, &report, |_| true);
    assert_eq!(comparison.pairs.len(), report.len());
    for pair in &comparison.pairs {
        assert_eq!((pair.before, pair.matched_by), (pair.after, compare::MatchedBy::Name));
        assert!(pair.figures.iter().all(|figure| figure.before == figure.after));
        assert!(pair.stalls.is_empty() && pair.rules_gone.is_empty() && pair.rules_new.is_empty());
    }
}

/// Figures of a summary as ncu's details page calls them: (section, name), and the value in the base unit.
fn details(summary: &KernelSummary) -> Vec<(&'static str, &'static str, Option<f64>)> {
    let (launch, speed) = (&summary.launch, &summary.speed);
    let number = |value: Option<u64>| value.map(|value| value as f64);
    let limit = |resource: &str| launch.limits.iter().find(|limit| limit.resource == resource).map(|limit| limit.blocks_per_sm as f64);
    let volume = |sizes: Option<[u64; 3]>| sizes.map(|sizes| sizes.iter().product::<u64>() as f64);
    vec![
        ("GPU Speed Of Light Throughput", "DRAM Frequency", speed.dram_clock_hz),
        ("GPU Speed Of Light Throughput", "SM Frequency", speed.sm_clock_hz),
        ("GPU Speed Of Light Throughput", "Memory Throughput", speed.memory_pct),
        ("GPU Speed Of Light Throughput", "DRAM Throughput", speed.dram_pct),
        ("GPU Speed Of Light Throughput", "Duration", number(speed.duration_ns)),
        ("GPU Speed Of Light Throughput", "L1/TEX Cache Throughput", speed.l1_pct),
        ("GPU Speed Of Light Throughput", "L2 Cache Throughput", speed.l2_pct),
        ("GPU Speed Of Light Throughput", "Compute (SM) Throughput", speed.sm_pct),
        ("Compute Workload Analysis", "Executed Ipc Active", speed.ipc),
        ("Memory Workload Analysis", "Memory Throughput", speed.dram_bytes_per_s),
        ("Memory Workload Analysis", "L1/TEX Hit Rate", speed.l1_hit_pct),
        ("Memory Workload Analysis", "L2 Hit Rate", speed.l2_hit_pct),
        ("Scheduler Statistics", "Issued Warp Per Scheduler", speed.issue_active_fraction),
        ("Scheduler Statistics", "Active Warps Per Scheduler", speed.active_warps),
        ("Scheduler Statistics", "Eligible Warps Per Scheduler", speed.eligible_warps),
        ("Warp State Statistics", "Warp Cycles Per Issued Instruction", summary.warp_cycles_per_issue),
        ("Launch Statistics", "Grid Size", volume(launch.grid)),
        ("Launch Statistics", "Block Size", volume(launch.block)),
        ("Launch Statistics", "Registers Per Thread", number(launch.registers_per_thread)),
        ("Launch Statistics", "Driver Shared Memory Per Block", number(launch.shared_driver_bytes)),
        ("Launch Statistics", "Dynamic Shared Memory Per Block", number(launch.shared_dynamic_bytes)),
        ("Launch Statistics", "Static Shared Memory Per Block", number(launch.shared_static_bytes)),
        ("Launch Statistics", "# SMs", number(launch.sm_count)),
        ("Launch Statistics", "Waves Per SM", launch.waves_per_sm),
        ("Occupancy", "Block Limit Registers", limit("registers")),
        ("Occupancy", "Block Limit Shared Mem", limit("shared memory")),
        ("Occupancy", "Block Limit Warps", limit("warps")),
        ("Occupancy", "Block Limit SM", limit("blocks")),
        ("Occupancy", "Block Limit Barriers", limit("barriers")),
        ("Occupancy", "Theoretical Occupancy", launch.theoretical_occupancy_pct),
        ("Occupancy", "Achieved Occupancy", launch.achieved_occupancy_pct),
    ]
}

/// A value as the page prints it: scaled to its unit, with as many decimals, without grouping.
fn printed_like(printed: &str, unit: &str, value: f64) -> String {
    // A size per block or a count per thread is stored without the "per".
    let unit = unit.trim_end_matches("/block").trim_end_matches("/thread");
    let factor = units::parse(unit).map_or(1.0, |unit| unit.factor());
    let decimals = printed.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    format!("{:.decimals$}", value / factor)
}

#[test]
fn every_figure_is_the_one_on_the_details_page() {
    let mut tally = Tally::default();
    for path in files::with_pages("details") {
        let Some((report, page)) = report_and_page(&path, "details") else { continue };
        let name = path.display();
        let (header, rows) = page.split_first().unwrap();
        let column = |name: &str| header.iter().position(|cell| cell == name).unwrap();
        let [id, section, metric, unit, value, rule] =
            ["ID", "Section Name", "Metric Name", "Metric Unit", "Metric Value", "Rule Name"].map(column);
        let mut cells: HashMap<(usize, &str, &str), (&str, &str)> = HashMap::new();
        let mut estimates: HashMap<usize, Vec<(String, Option<String>)>> = HashMap::new();
        for row in rows {
            let id: usize = row[id].parse().unwrap();
            if row.get(rule).is_some_and(|rule| !rule.is_empty()) {
                let (kind, percent) = (&row[column("Estimated Speedup Type")], &row[column("Estimated Speedup")]);
                let speedup = (!kind.is_empty()).then(|| format!("{kind} {percent}"));
                estimates.entry(id).or_default().push((row[rule].clone(), speedup));
            } else {
                cells.insert((id, &row[section], &row[metric]), (&row[unit], &row[value]));
            }
        }
        for summary in summaries(&report) {
            for (section, metric, ours) in details(&summary) {
                let Some((unit, printed)) = cells.get(&(summary.id, section, metric)) else { continue };
                let printed = printed.replace(',', "");
                let place = || format!("{name} #{} {section}: {metric}", summary.id);
                tally.check(place, &printed, ours.map(|ours| printed_like(&printed, unit, ours)));
            }
            // A suggestion for every message, apart from texts that came twice, in which case the page has more.
            let mut wanted: Vec<_> = estimates.remove(&summary.id).unwrap_or_default();
            for suggestion in &summary.suggestions {
                let speedup = suggestion
                    .scope
                    .zip(suggestion.speedup_pct)
                    .map(|(scope, percent)| format!("{} {}", scope.name(), four_digits(percent)));
                let at = wanted.iter().position(|(rule, printed)| *rule == suggestion.rule && *printed == speedup);
                let place = || format!("{name} #{} {}", summary.id, suggestion.rule);
                tally.check(
                    place,
                    "on the page",
                    Some(at.map_or_else(|| format!("not on the page: {speedup:?}"), |_| "on the page".to_owned())),
                );
                if let Some(at) = at {
                    wanted.swap_remove(at);
                }
            }
            assert!(wanted.is_empty(), "{name} #{}: not among the suggestions: {wanted:?}", summary.id);
        }
    }
    tally.finish("figures of the details pages", files::at_least(5_000, 250));
}

/// Four significant digits without trailing zeros, as the page prints estimates.
fn four_digits(percent: f64) -> String {
    let digits = percent.abs().log10().floor();
    let decimals = if percent == 0.0 { 0 } else { (3.0 - digits).max(0.0) as usize };
    let text = format!("{percent:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[test]
fn uneven_work_is_found_where_ncu_finds_it_and_costs_the_same() {
    let Some(folder) = shared() else { return };
    let Some(bytes) = load(&folder.join("decode_step.ncu-rep")) else { return };
    let report = Report::read(&bytes[..], "decode_step").unwrap();
    let mut found = 0;
    for summary in summaries(&report) {
        let theirs = summary.suggestions.iter().find(|suggestion| suggestion.title == "SMs Workload Imbalance");
        let ours = summary.symptoms.iter().find(|symptom| symptom.code == "imbalance");
        assert_eq!(theirs.is_some(), ours.is_some(), "#{}", summary.id);
        if let (Some(theirs), Some(ours)) = (theirs, ours) {
            assert_eq!(theirs.scope, Some(Scope::Global));
            let estimate = format!("could save {:.1} %", theirs.speedup_pct.unwrap());
            assert!(ours.text.ends_with(&estimate), "#{}: {estimate} in {}", summary.id, ours.text);
            found += 1;
        }
    }
    assert_eq!(found, 45);
}

#[test]
fn old_reports_are_summarised_and_say_what_they_lack() {
    let Some(folder) = shared() else { return };
    let open = |name: &str| Report::open(&Path::new(&folder).join(name)).unwrap();
    let scan = summaries(&open("speedyscan_profile.ncu-rep")).remove(0);
    assert_eq!(scan.verdict.as_ref().map(|verdict| verdict.kind), Some(VerdictKind::LatencyBound));
    assert_eq!((scan.stalls[0].reason, format!("{:.2}", scan.stalls[0].share_fraction)), ("barrier", "0.58".to_owned()));
    assert_eq!(scan.launch.sm_count, Some(46));
    // Its ncu has no section for the imbalance between SMs.
    assert_eq!(scan.missing, []);
    assert_eq!(codes(&scan), [""; 0]);
    let mojo = summaries(&open("mojo_profile.ncu-rep"));
    for kernel in &mojo {
        assert_eq!(kernel.verdict.as_ref().map(|verdict| verdict.kind), Some(VerdictKind::TooSmall));
        assert_eq!(kernel.launch.limiters, ["shared memory", "warps", "blocks"]);
        assert!(kernel.stalls.is_empty());
        assert!(kernel.missing.iter().any(|missing| missing.what == "stall reasons" && missing.section == "WarpStateStats"));
        assert!(!kernel.missing.iter().any(|missing| ["SpeedOfLight", "LaunchStats", "Occupancy"].contains(&missing.section)));
    }
}

#[test]
fn graphs_and_ranges_have_the_figures_that_there_are() {
    let Some(folder) = shared() else { return };
    let graphs = summaries(&Report::open(&folder.join("graph.ncu-rep")).unwrap());
    assert_eq!((graphs[0].launch.grid, graphs[0].launch.waves_per_sm), (Some([16_384, 1, 1]), None));
    assert_eq!(graphs[0].verdict.as_ref().map(|verdict| verdict.kind), Some(VerdictKind::LatencyBound));
    assert!(!graphs[0].missing.iter().any(|missing| missing.section == "Occupancy"));
    let range = summaries(&Report::open(&folder.join("range.ncu-rep")).unwrap()).remove(0);
    assert_eq!((range.speed.duration_ns, range.name.as_str()), (Some(258_176), "range"));
}

#[test]
fn totals_of_a_decode_step_are_the_sums_of_the_raw_page() {
    let Some(folder) = shared() else { return };
    let Some((report, page)) = report_and_page(&folder.join("decode_step"), "raw") else { return };
    let rows = table::rows(&report, &report.decode_all(&table::selection(&report)));
    let column = |name: &str| page[0].iter().position(|cell| cell == name).unwrap();
    let (name, duration) = (column("Kernel Name"), column("gpu__time_duration.sum"));
    assert_eq!(page[1][duration], "us");
    // Printed in microseconds with six decimals at most: nanoseconds are exact in it.
    let ns = |cell: &str| {
        let (whole, rest) = cell.split_once('.').unwrap_or((cell, ""));
        format!("{}{:0<3}", whole.replace(',', ""), &rest[..rest.len().min(3)]).parse::<u64>().unwrap()
    };
    // The page leaves the casts of template arguments out of names (`<4>` for `<(int)4>`), so that rows are told apart by number.
    let mut expected: HashMap<&str, (u64, u64)> = HashMap::new();
    let mut printed: HashMap<&str, &str> = HashMap::new();
    for (row, ours) in page[2..].iter().zip(&rows) {
        assert_eq!(row[0], ours.id.to_string());
        let entry = expected.entry(&ours.name).or_default();
        *entry = (entry.0 + 1, entry.1 + ns(&row[duration]));
        assert_eq!(*printed.entry(&ours.name).or_insert(&row[name]), row[name]);
    }
    assert_eq!(page.len() - 2, rows.len());
    let totals = table::totals(&rows, |row| row.name.clone());
    assert_eq!(totals.len(), page[2..].iter().map(|row| &row[name]).collect::<HashSet<_>>().len());
    for total in &totals {
        assert_eq!(Some(&(total.launches, total.total_ns.unwrap())), expected.get(total.key.as_str()), "{}", total.key);
        assert_eq!(total.without_duration, 0);
    }
    assert_eq!(totals.iter().map(|total| total.total_ns.unwrap()).sum::<u64>(), 926_272);
    let shares: f64 = totals.iter().map(|total| total.share_fraction.unwrap()).sum();
    assert!((shares - 1.0).abs() < 1e-9);
    assert_eq!((rows.len(), rows[0].nvtx.as_deref()), (249, Some("decode_step")));
}

#[test]
fn a_decode_step_against_itself_pairs_every_launch_with_itself() {
    let Some(folder) = shared() else { return };
    let Some(bytes) = load(&folder.join("decode_step.ncu-rep")) else { return };
    let report = Report::read(&bytes[..], "decode_step").unwrap();
    let comparison = compare::compare(&report, &report, |_| true);
    assert_eq!(comparison.pairs.len(), 249);
    assert!(comparison.pairs.iter().all(|pair| pair.before == pair.after && pair.matched_by == compare::MatchedBy::Name));
    assert!(comparison.totals.iter().all(|total| total.before_ns == total.after_ns && total.launches_before == total.launches_after));
}
