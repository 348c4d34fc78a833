//! ncu's CSV as an input: the same figures as the report it was printed from.

use std::path::Path;

use longpole_ncu::{Page, ProfiledResult, Report, TroubleCode, summary};

use crate::details_page::{estimate, without_addresses};
use crate::eras::all_of;
use crate::files;
use crate::raw_page::{Tally, name_alike, plain, print_like};

fn read(text: &[u8]) -> Report {
    Report::read(text, "table.csv").unwrap()
}

/// A report and its page as a table.
fn pair(path: &Path, page: &str) -> Option<(Report, Report)> {
    let (report, table) = files::report_and_text(path, page)?;
    Some((report, read(&table)))
}

/// What both pages say of a result besides its figures.
fn about(report: &Report, result: &ProfiledResult) -> String {
    let process = result.process.map(|process| &report.processes()[process]);
    let process = process.map(|process| (process.id, process.name.rsplit('/').next().unwrap().to_owned(), process.host.clone()));
    let sizes = (result.grid, result.block);
    let (kind, name) = (result.kind.name(), name_alike(&result.name));
    format!(
        "{} {kind} {name} {process:?} {sizes:?} {:?} {:?} {:?} {:?}",
        result.id, result.function, result.context, result.stream, result.nvtx
    )
}

#[test]
fn the_raw_page_gives_the_figures_of_the_report() {
    let mut tally = Tally::default();
    for path in files::with_pages("raw") {
        let name = path.display();
        let (Some((report, table)), Some((_, page))) = (pair(&path, "raw"), files::report_and_page(&path, "raw")) else { continue };
        assert_eq!(table.format(), "ncu-csv");
        assert!(table.troubles().is_empty(), "{name}: {:?}", table.troubles());
        let (expected, ours) = (all_of(&report), all_of(&table));
        assert_eq!(ours.len(), expected.len(), "{name}");
        for ((ours, expected), row) in ours.iter().zip(&expected).zip(&page[2..]) {
            tally.check(|| name.to_string(), &about(&report, expected), Some(about(&table, ours)));
            for ((column, unit), printed) in page[0].iter().zip(&page[1]).zip(row) {
                let value = |result: &ProfiledResult| result.metrics.get(column).and_then(|metric| metric.value.clone());
                let place = || format!("{name}, result {}, {column} [{unit}]", ours.id);
                match (value(ours), value(expected)) {
                    (None, None) => {}
                    (Some(ours), _) => tally.check(place, &plain(printed), print_like(&plain(printed), unit, Some(&ours))),
                    (None, Some(expected)) => tally.check(place, "", Some(expected.text().unwrap_or("a value").to_owned())),
                }
            }
        }
        let device = |report: &Report| {
            let device = &report.session().devices[0];
            (device.id, device.name.clone(), device.number("multiprocessor_count"), device.number("compute_capability_major"))
        };
        assert_eq!(device(&table), device(&report), "{name}");
    }
    tally.finish("raw page as a table", files::at_least(170_000, 10_000));
}

#[test]
fn the_details_page_gives_the_figures_of_the_report() {
    let mut tally = Tally::default();
    for path in files::with_pages("details") {
        let name = path.display();
        let (Some((report, table)), Some((_, page))) = (pair(&path, "details"), files::report_and_page(&path, "details")) else {
            continue;
        };
        assert!(table.troubles().is_empty(), "{name}: {:?}", table.troubles());
        let (expected, ours) = (all_of(&report), all_of(&table));
        assert_eq!(ours.len(), expected.len(), "{name}");
        for (ours, expected) in ours.iter().zip(&expected) {
            tally.check(|| name.to_string(), &about(&report, expected), Some(about(&table, ours)));
            let messages = |result: &ProfiledResult| {
                let rules = result.rules.iter().flat_map(|rule| rule.messages.iter().map(move |message| (rule, message)));
                let mut rows: Vec<String> = rules
                    .map(|(rule, message)| {
                        let speedup = message.speedup.map(|(scope, percent)| (scope, estimate(percent)));
                        format!("{} {} {:?} {speedup:?} {}", rule.section, rule.id, message.kind, without_addresses(&message.text))
                    })
                    .collect();
                rows.sort();
                rows
            };
            assert_eq!(messages(ours), messages(expected), "{name}, result {}", ours.id);
            assert!(
                ours.sections.iter().all(|section| expected.sections.iter().any(|known| known.id == section.id)),
                "{:?}",
                ours.sections
            );
        }
        // Every row whose label has one meaning is there, to the printed digits.
        let at = |title: &str| page[0].iter().position(|column| column == title).unwrap();
        let columns = ["Section Name", "Metric Name", "Metric Unit", "Metric Value"].map(at);
        for row in &page[1..] {
            let [title, label, unit, printed] = columns.map(|at| row[at].as_str());
            let id: usize = row[0].parse().unwrap();
            let section = expected[id].sections.iter().find(|section| section.title == title);
            let Some((metric, _)) = section.and_then(|section| section.labels.iter().find(|(_, known)| known == label)) else { continue };
            if label.starts_with("L2 Compression") || ["Maximum Sampling Interval", "SM Busy", "Issue Slots Busy"].contains(&label) {
                assert_eq!(ours[id].metrics.get(metric), None, "{label} depends on the version or the device");
                continue;
            }
            let value = ours[id].metrics.get(metric).and_then(|metric| metric.value.as_ref());
            let place = || format!("{name}, result {id}, {label} = {metric} [{unit}]");
            tally.check(place, &plain(printed), print_like(&plain(printed), unit, value));
        }
        // What a summary opens with.
        for (ours, expected) in ours.iter().zip(&expected) {
            for metric in ["gpu__time_duration.sum", "sm__throughput.avg.pct_of_peak_sustained_elapsed"] {
                let (Some(figure), Some(expected)) = (ours.metrics.number(metric), expected.metrics.number(metric)) else {
                    panic!("{name}, result {}: no {metric}", ours.id)
                };
                assert!((figure - expected).abs() <= 0.005 * expected.max(1.0), "{name}, result {}: {metric} {figure} {expected}", ours.id);
            }
        }
    }
    tally.finish("details page as a table", files::at_least(14_000, 400));
}

/// A table with its numbers as another language prints them.
fn translated(text: &[u8], group: &str) -> Vec<u8> {
    let mut rows = files::table(text);
    let metrics = rows[0].iter().position(|column| column == "CC").unwrap() + 1;
    for row in &mut rows[2..] {
        for cell in &mut row[metrics..] {
            if plain(cell).parse::<f64>().is_ok() {
                *cell = cell.replace(',', "#").replace('.', ",").replace('#', group);
            }
        }
    }
    let mut writer = csv::WriterBuilder::new().quote_style(csv::QuoteStyle::Always).from_writer(Vec::new());
    for row in &rows {
        writer.write_record(row).unwrap();
    }
    writer.into_inner().unwrap()
}

/// Everything a table holds, as text.
fn contents(report: &Report) -> String {
    assert!(report.troubles().is_empty(), "{:?}", report.troubles());
    format!("{:?} {:?} {:?}", report.session(), report.processes(), all_of(report))
}

#[test]
fn tables_of_other_languages_give_the_same_figures() {
    for name in ["gemv_before", "gemv_after"] {
        let text = files::load(&files::root().join("corpus/ncu").join(format!("{name}.raw.csv"))).unwrap();
        let expected = contents(&read(&text));
        for group in [".", " ", "\u{a0}", "\u{202f}"] {
            let ours = contents(&read(&translated(&text, group)));
            assert!(ours == expected, "{name} differs with {group:?} between thousands");
        }
    }
}

const RAW: &str = r#""ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC","gpu__time_duration.sum","dram__bytes.sum.per_second","launch__registers_per_thread","launch__func_cache_config","smsp__x.sum"
"","","","","","","","","","","","us","Gbyte/s","register/thread","","Gfoo"
"0","7","app","127.0.0.1","void f<4>(int)","1","7","(128, 1, 1)","(64, 2, 1)","0","9.0","1,366.560000","12.5","32","CachePreferNone","3"
"1","7","app","127.0.0.1","g","1","7","(128, 1, 1)","(64, 2, 1)","0","9.0","no data","","n/a","","4"
"#;

#[test]
fn a_table_becomes_results_in_base_units() {
    let report = read(RAW.as_bytes());
    assert!(report.troubles().is_empty());
    assert_eq!((report.format(), report.bytes(), report.len()), ("ncu-csv", RAW.len() as u64, 2));
    let [first, second] = &all_of(&report)[..] else { panic!("not two results") };
    assert_eq!((first.name.as_str(), first.function.as_deref()), ("void f<4>(int)", Some("f")));
    assert_eq!((first.grid, first.block, first.stream), (Some([64, 2, 1]), Some([128, 1, 1]), Some(7)));
    assert_eq!(first.metrics.count("gpu__time_duration.sum"), Some(1_366_560));
    assert_eq!(first.metrics.number("dram__bytes.sum.per_second"), Some(12.5e9));
    assert_eq!(first.metrics.count("launch__registers_per_thread"), Some(32));
    assert_eq!(first.metrics.text("launch__func_cache_config"), Some("CachePreferNone"));
    // A unit that is not understood gives no value rather than a wrong one.
    assert_eq!(first.metrics.get("smsp__x.sum"), None);
    assert!(second.metrics.is_empty(), "{:?}", second.metrics);
    assert_eq!(report.session().devices[0].number("compute_capability_major"), Some(9));
    // A selection is kept to.
    let selected = report.decode(0, &report.select().values(|name| name.starts_with("dram"))).unwrap();
    assert_eq!(selected.metrics.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["dram__bytes.sum.per_second"]);
}

#[test]
fn other_lines_around_and_in_a_table_do_no_harm() {
    let expected = contents(&read(RAW.as_bytes()));
    let (header, rows) = RAW.split_once('\n').unwrap();
    let with_lines =
        format!("==PROF== Connected to process 7 (app)\nhello, world\n\n{header}\n{rows}==PROF== Disconnected from process 7\n");
    assert_eq!(contents(&read(with_lines.as_bytes())), expected);
    // ncu says what it does at every kernel, all of it before the table.
    let with_messages = format!("{}{RAW}", "==PROF== Profiling \"gemv\" - 0: 0%....50%....100% - 8 passes\n".repeat(5_000));
    let report = read(with_messages.as_bytes());
    assert_eq!((contents(&report), report.bytes()), (expected.clone(), with_messages.len() as u64));
    assert_eq!(contents(&read(format!("\u{feff}{RAW}").as_bytes())), expected);
    assert_eq!(contents(&read(RAW.replace('\n', "\r\n").as_bytes())), expected);
}

#[test]
fn a_table_is_opened_by_its_content() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table");
    std::fs::write(&path, RAW).unwrap();
    assert_eq!(contents(&Report::open(&path).unwrap()), contents(&read(RAW.as_bytes())));
}

#[test]
fn ncu_without_a_table_is_no_table() {
    let error = Report::read(&b"==PROF== Connected to process 7 (app)\nhello\n"[..], "out.txt").unwrap_err().to_string();
    assert!(error.contains("`out.txt`") && error.contains("--csv --page raw"), "{error}");
}

#[test]
fn damaged_rows_are_counted_and_the_others_kept() {
    let damaged = format!("{RAW}\"2\",\"7\",\"app\"\nsegmentation fault\n\"x{}", &RAW.lines().nth(2).unwrap()[2..]);
    let report = read(damaged.as_bytes());
    let [trouble] = &report.troubles()[..] else { panic!("{:?}", report.troubles()) };
    assert_eq!((trouble.code, trouble.count, trouble.first_offset), (TroubleCode::DamagedTableRow, 3, Some(RAW.len() as u64)));
    assert_eq!(report.len(), 2);
    for cut in 0..RAW.len() {
        // A cut row is either counted or has all its cells.
        if let Ok(report) = Report::read(&RAW.as_bytes()[..cut], "cut") {
            all_of(&report);
        }
    }
}

#[test]
fn a_table_without_rows_is_an_empty_report() {
    let report = read(format!("{}\n", RAW.lines().next().unwrap()).as_bytes());
    assert!(report.is_empty() && report.troubles().is_empty());
}

#[test]
fn two_tables_one_after_the_other_are_one_report() {
    let other = RAW.replace("dram__bytes.sum.per_second", "dram__bytes_read.sum.per_second");
    let report = read(format!("{RAW}{other}").as_bytes());
    let results = all_of(&report);
    assert_eq!(results.iter().map(|result| result.id).collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert_eq!(results[2].metrics.number("dram__bytes_read.sum.per_second"), Some(12.5e9));
    assert_eq!(results[2].metrics.number("dram__bytes.sum.per_second"), None);
}

#[test]
fn rows_put_together_without_a_header_are_results_of_their_own() {
    let rows: String = RAW.lines().skip(2).flat_map(|row| [row, "\n"]).collect();
    assert_eq!(read(format!("{RAW}{rows}").as_bytes()).len(), 4);
}

#[test]
fn metrics_asked_for_by_name_are_read_from_the_details_page() {
    let text = r#""ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC","Section Name","Metric Name","Metric Unit","Metric Value"
"0","7","app","127.0.0.1","f(int)","1","7","(128, 1, 1)","(64, 2, 1)","0","9.0","Command line profiler metrics","gpu__time_duration.sum","us","2.50"
"0","7","app","127.0.0.1","f(int)","1","7","(128, 1, 1)","(64, 2, 1)","0","9.0","PM Sampling","Maximum Sampling Interval","cycle","20,000"
"0","7","app","127.0.0.1","f(int)","1","7","(128, 1, 1)","(64, 2, 1)","0","9.0","Some Section","Some Label","","1"
"#;
    let report = read(text.as_bytes());
    assert!(report.troubles().is_empty());
    let [result] = &all_of(&report)[..] else { panic!("not one result") };
    assert_eq!(result.metrics.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["gpu__time_duration.sum"]);
    assert_eq!(result.metrics.count("gpu__time_duration.sum"), Some(2_500));
    assert_eq!(result.sections.len(), 3);
}

/// A raw page with these units (`None` for no row of them).
fn raw_with(units: Option<&str>) -> Report {
    let head = "\"ID\",\"Process ID\",\"Kernel Name\",\"gpu__time_duration.sum\",\"launch__grid_size\",\"sm__throughput.avg.pct_of_peak_sustained_elapsed\"\n";
    let units = units.map_or_else(String::new, |unit| format!("\"\",\"\",\"\",\"{unit}\",\"\",\"%\"\n"));
    read(format!("{head}{units}\"0\",\"1\",\"k\",\"353.0\",\"152\",\"3.4\"\n").as_bytes())
}

#[test]
fn a_figure_without_its_unit_is_no_figure() {
    let of = |report: &Report| {
        let result = report.decode(0, &report.select().values(|_| true)).unwrap();
        let number = |name: &str| result.metrics.number(name);
        (number("gpu__time_duration.sum"), number("launch__grid_size"), number("sm__throughput.avg.pct_of_peak_sustained_elapsed"))
    };
    let (good, bare, odd) = (raw_with(Some("us")), raw_with(None), raw_with(Some("fortnight")));
    assert_eq!(of(&good), (Some(353_000.0), Some(152.0), Some(3.4)));
    assert!(good.troubles().is_empty());
    assert_eq!(of(&bare), (None, Some(152.0), Some(3.4)));
    assert_eq!(bare.troubles()[0].example.as_deref(), Some("a row without the row of units above it"));
    assert_eq!(of(&odd), (None, Some(152.0), Some(3.4)));
}

#[test]
fn a_page_says_what_it_cannot_hold_and_names_sections_of_rules() {
    let details = "\"ID\",\"Process ID\",\"Kernel Name\",\"Section Name\",\"Metric Name\",\"Metric Unit\",\"Metric Value\",\"Rule Name\",\"Rule Type\",\"Rule Description\"\n\
        \"0\",\"1\",\"k\",\"GPU Speed Of Light Throughput\",\"Duration\",\"us\",\"353\"\n\
        \"0\",\"1\",\"k\",\"Scheduler Statistics\",\"One or More Eligible\",\"%\",\"3.62\"\n\
        \"0\",\"1\",\"k\",\"Scheduler Statistics\",\"Issued Warp Per Scheduler\",\"\",\"0.04\"\n\
        \"0\",\"1\",\"k\",\"Launch Statistics\",\"\",\"\",\"\",\"LaunchConfiguration\",\"OPT\",\"small\"\n";
    let report = read(details.as_bytes());
    let result = report.decode(0, &summary::selection(&report)).unwrap();
    assert_eq!((report.page(), result.rules[0].section.as_str()), (Page::Details, "LaunchStats"));
    assert!(result.sections.iter().any(|section| section.id == "LaunchStats"));
    let summary = summary::summarize(&report, &result);
    assert!((summary.speed.issue_active_fraction.unwrap() - 0.0362).abs() < 1e-9);
    assert!(
        summary.missing.iter().all(|missing| missing.section != "WarpStateStats" && missing.section != "LaunchStats"),
        "{:?}",
        summary.missing
    );
    assert!(summary.not_on_page.contains(&"stall reasons") && summary.not_on_page.contains(&"hot instructions"));
    let raw = raw_with(Some("us"));
    let raw_summary = summary::summarize(&raw, &raw.decode(0, &summary::selection(&raw)).unwrap());
    assert_eq!((raw.page(), raw_summary.not_on_page), (Page::Raw, vec!["ncu's suggestions", "hot instructions"]));
}
