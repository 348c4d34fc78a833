//! Hand-made results through every renderer: snapshots of what people read, schemas for what machines read.

#![expect(clippy::expect_used, reason = "a helper that cannot go on fails its test")]

mod doctor;
mod fixtures;
mod schema;
mod trust_page;

use fixtures::{HOSTILE, cpu_only_table, families, fixture, kernels, memory, op_table, ranges, triage};
use insta::assert_snapshot;
use longpole_analysis::{GroupBy, MemoryTable, OpTable};
use longpole_report::views::RangeLayout;
use longpole_report::{Page, TextOptions, csv, markdown, report_lines, text, text_header, triage_markdown, triage_text, views, wire};
use longpole_trace::{Ns, ProblemCode, Recorder};

const ALL_TROUBLE: &[(ProblemCode, u64)] = &[
    (ProblemCode::UnusedEventKind, 7),
    (ProblemCode::ProfilerOverhead, 3),
    (ProblemCode::OrphanActivity, 436),
    (ProblemCode::StartBeforeLaunch, 2),
    (ProblemCode::LaunchWithoutActivity, 1_029),
];

fn plain(width: usize) -> TextOptions {
    TextOptions { width, color: false, full_names: false, wrap: false }
}

fn json_text(document: &impl serde::Serialize) -> String {
    let mut out = Vec::new();
    wire::write(&mut out, document).expect("memory does not fail");
    String::from_utf8(out).expect("JSON is UTF-8")
}

fn json(document: &impl serde::Serialize) -> serde_json::Value {
    schema::validate(&json_text(document))
}

/// No control character, bidirectional mark or line of a hostile name survives.
fn is_inert(out: &str) -> bool {
    !out.contains(|c: char| (c.is_control() && c != '\n') || c == '\u{202e}')
}

#[test]
fn operators_at_three_widths() {
    for width in [80, 120, 200] {
        let mut table = views::ops(&op_table(), GroupBy::Name, Recorder::Torch);
        table.truncate(Some(4));
        let out = text(&table, &plain(width));
        assert!(is_inert(&out));
        assert_snapshot!(format!("ops_{width}"), out);
    }
}

#[test]
fn operators_by_shape_and_stack() {
    assert_snapshot!("ops_by_shape_120", text(&views::ops(&op_table(), GroupBy::Shape, Recorder::Torch), &plain(120)));
    let mut table = op_table();
    table.rows[0].stack = Some(vec!["model.py(12): forward".to_owned(), format!("nn.Module: {HOSTILE}")]);
    let view = views::ops(&table, GroupBy::Stack(2), Recorder::Torch);
    assert_snapshot!("ops_by_stack_100", text(&view, &plain(100)));
    assert_snapshot!("ops_by_stack_markdown", markdown(&view));
    assert_snapshot!("ops_by_stack_csv", csv(&view));
    let document = json(&wire::ops(&fixture(&[]).header(), &table, GroupBy::Stack(2)));
    assert_eq!(document["ops"][0]["stack"][0], "model.py(12): forward");
    assert_eq!(document["ops"][1]["stack"], serde_json::Value::Null);
}

#[test]
fn columns_without_data_are_said_not_shown() {
    assert_snapshot!("ops_cpu_only", text(&views::ops(&cpu_only_table(), GroupBy::Shape, Recorder::Torch), &plain(100)));
    let document = json(&wire::ops(&fixture(&[]).header(), &cpu_only_table(), GroupBy::Name));
    assert_eq!(document["self_cuda_total_ns"], serde_json::Value::Null);
    assert_eq!(document["ops"][0]["self_cuda_ns"], serde_json::Value::Null);
}

#[test]
fn an_empty_table_says_so() {
    let empty = OpTable { rows: vec![], self_cuda_total_ns: None, self_cpu_total_ns: Ns::ZERO };
    let view = views::ops(&empty, GroupBy::Name, Recorder::Torch);
    assert_eq!(text(&view, &plain(80)), "no operators in scope\n");
    assert_eq!(markdown(&view), "No operators in scope.\n");
    assert_eq!(csv(&view).lines().count(), 1);
    json(&wire::ops(&fixture(&[]).header(), &empty, GroupBy::Name));
}

#[test]
fn kernels_in_every_format() {
    let total = Ns(20_503_000);
    let view = views::kernels(&kernels(), total, false);
    assert_snapshot!("kernels_80", text(&view, &plain(80)));
    assert_snapshot!("kernels_160", text(&view, &plain(160)));
    assert_snapshot!("kernels_full_names", text(&views::kernels(&kernels(), total, true), &TextOptions { full_names: true, ..plain(80) }));
    assert_snapshot!("kernels_markdown", markdown(&view));
    assert_snapshot!("kernels_csv", csv(&view));
    let document = json(&wire::kernels(&fixture(&[]).header(), &kernels()));
    assert_eq!(document["kernels"][1]["name"], HOSTILE, "JSON keeps names as they are");
    assert_eq!(document["kernels"][0]["op"], "aten::mm");
    assert_eq!(document["kernels"][0]["ops"][1]["cuda_ns"], 500_000);
}

#[test]
fn families_ranges_and_memory_as_text() {
    assert_snapshot!("families_80", text(&views::families(&families()), &plain(80)));
    assert_snapshot!("ranges_tree_100", text(&views::ranges(&ranges(), RangeLayout::Tree, None), &plain(100)));
    assert_snapshot!("ranges_paths_80", text(&views::ranges(&ranges(), RangeLayout::Paths, None), &plain(80)));
    // What is not shown is not written out, and counted as if it had been.
    let (mut all, few) = (views::ranges(&ranges(), RangeLayout::Paths, None), views::ranges(&ranges(), RangeLayout::Paths, Some(2)));
    all.truncate(Some(2));
    assert!(few.hidden > 0 && text(&all, &plain(80)) == text(&few, &plain(80)));
    assert_snapshot!("ranges_markdown", markdown(&views::ranges(&ranges(), RangeLayout::Tree, None)));
    assert_snapshot!("memory_100", text(&views::memory(&memory(), Recorder::Torch), &plain(100)));
    assert_snapshot!("memory_csv", csv(&views::memory(&memory(), Recorder::Torch)));
}

#[test]
fn families_ranges_and_memory_as_json() {
    let fixture = fixture(ALL_TROUBLE);
    let document = json(&wire::families(&fixture.header(), &families()));
    assert_eq!(document["families"][0]["family"], "gemm/gemv");
    let document = json(&wire::ranges(&fixture.header(), &ranges()));
    assert_eq!(document["ranges"][3]["depth"], 2);
    assert_eq!(document["ranges"][3]["gpu_span_ns"], serde_json::Value::Null);
    assert_eq!(document["scope"]["start_ns"], 10_000_000);
    assert_eq!(document["scope"]["end_ns"], serde_json::Value::Null);
    let document = json(&wire::memory(&fixture.header(), &memory()));
    assert_eq!(document["memory"][2]["net_bytes"], -(511_i64 << 20));
}

#[test]
fn the_header_grades_and_explains() {
    assert_snapshot!("header_good", text_header(&fixture(&[]).header(), &plain(80)));
    assert_snapshot!("header_partial_100", text_header(&fixture(ALL_TROUBLE).header(), &plain(100)));
    let painted = text_header(&fixture(ALL_TROUBLE).header(), &TextOptions { color: true, ..plain(100) });
    assert!(painted.contains("\x1b[31mpartial\x1b[0m: data was lost"), "{painted}");
}

#[test]
fn the_page() {
    let (trace, result) = triage();
    let fixture = fixture(ALL_TROUBLE);
    let head = Page { limit: Some(3), ..Page::default() };
    for width in [80, 120, 200] {
        let out = triage_text(&fixture.header(), &result, &trace, &head, &plain(width));
        assert!(is_inert(&out));
        assert_snapshot!(format!("triage_{width}"), out);
    }
    let out = triage_markdown(&fixture.header(), &result, &trace, &head);
    assert!(is_inert(&out) && !out.contains("<script>"));
    assert_snapshot!("triage_markdown", out);
    let written = json_text(&wire::triage(&fixture.header(), &result, &trace));
    let document = schema::validate(&written);
    assert_eq!(document["totals"]["devices"][1]["rank"], 1);
    assert_eq!(document["trust"]["notes"].as_array().map(Vec::len), Some(5), "JSON keeps every note");
    assert_snapshot!("triage_json", written);
}

#[test]
fn on_a_terminal_the_report_is_wrapped_between_words() {
    let (trace, result) = triage();
    let fixture = fixture(ALL_TROUBLE);
    let head = Page { limit: Some(3), ..Page::default() };
    let out = triage_text(&fixture.header(), &result, &trace, &head, &TextOptions { wrap: true, ..plain(80) });
    let report: Vec<_> = out.lines().skip_while(|line| !line.starts_with("Workload:")).collect();
    assert!(report.len() > 5, "{report:?}");
    assert!(report.iter().all(|line| line.chars().count() <= 80), "{report:?}");
    let joined = report.join(" ").replace("   ", " ");
    assert_eq!(joined, report_lines(&result, &fixture.trust, &plain(80)).trim_end().replace('\n', " "));
}

#[test]
fn the_report_is_five_lines_with_its_grade() {
    let (_, result) = triage();
    let good = report_lines(&result, &fixture(&[]).trust, &plain(80));
    let heads = ["Workload: ", "Hardware: ", "Top CUDA time: ", "Top CPU / orchestration cost: ", "Next experiment: "];
    assert_eq!(good.lines().count(), 5, "a line break in the workload is written out");
    for (line, head) in good.lines().zip(heads) {
        assert!(line.starts_with(head), "{line}");
    }
    let partial = report_lines(&result, &fixture(ALL_TROUBLE).trust, &plain(80));
    assert!(partial.lines().next().is_some_and(|l| l.ends_with("[trust partial: data was lost, totals are lower bounds]")), "{partial}");
    assert!(good.lines().skip(1).eq(partial.lines().skip(1)));
}

/// The lines of a table, which all have to fit.
fn fitting(table: &longpole_report::Table, width: usize) -> String {
    let out = text(table, &plain(width));
    for line in out.lines() {
        assert!(line.chars().count() <= width, "{width}: {line}");
    }
    out
}

#[test]
fn the_column_sorted_by_outlives_the_others() {
    let heading = |mut table: longpole_report::Table, key: &str, width: usize| {
        table.keep(key);
        fitting(&table, width).lines().next().unwrap_or_default().to_owned()
    };
    let keys: [(&str, &str); 9] = [
        ("calls", "calls"),
        ("self_cpu_ns", "self CPU"),
        ("cpu_ns", " CPU"),
        ("self_cuda_ns", "self CUDA"),
        ("cuda_ns", " CUDA"),
        ("self_cuda_mem_bytes", "self CUDA mem"),
        ("cuda_mem_bytes", " CUDA mem"),
        ("self_cpu_mem_bytes", "self CPU mem"),
        ("cpu_mem_bytes", " CPU mem"),
    ];
    for width in [50, 60, 80] {
        for (key, title) in keys {
            for by in [GroupBy::Name, GroupBy::Shape] {
                assert!(heading(views::ops(&op_table(), by, Recorder::Torch), key, width).contains(title), "{width} {key}");
            }
        }
        for (key, title) in [("min_ns", "min"), ("median_ns", "median"), ("max_ns", "max"), ("calls", "calls"), ("cuda_ns", "CUDA")] {
            assert!(heading(views::kernels(&kernels(), Ns(20_503_000), false), key, width).contains(title), "{width} {key}");
        }
        for (key, title) in [("allocations", "allocations"), ("freed_bytes", "freed"), ("net_bytes", "net"), ("peak_bytes", "peak")] {
            assert!(heading(views::memory(&memory(), Recorder::Torch), key, width).contains(title), "{width} {key}");
        }
        for (key, title) in [("gpu_span_ns", "GPU span"), ("gpu_idle_ns", "GPU idle"), ("kernels", "kernels"), ("cpu_ns", "host")] {
            assert!(heading(views::ranges(&ranges(), RangeLayout::Tree, None), key, width).contains(title), "{width} {key}");
        }
    }
}

#[test]
fn shapes_and_stacks_leave_room_for_names() {
    let mut table = op_table();
    table.rows[1].shapes = Some("[[1, 16, 1024, 128], [1, 8, 1024, 128], [1, 8, 1024, 128], [], []]".to_owned());
    table.rows[0].stack = Some(vec![format!("model.py(12): {}", "forward".repeat(20))]);
    for by in [GroupBy::Shape, GroupBy::Stack(3)] {
        for width in [60, 80, 100, 120] {
            let out = fitting(&views::ops(&table, by, Recorder::Torch), width);
            let name = out.lines().find(|line| line.starts_with("aten::_scaled")).expect("the long name");
            let shown = name.split("  ").next().unwrap_or_default();
            assert!(shown.chars().count() >= 24, "{width}: {shown}");
        }
    }
}

#[test]
fn stacks_that_were_not_recorded_are_said() {
    let out = text(&views::ops(&op_table(), GroupBy::Stack(3), Recorder::Torch), &plain(100));
    assert!(out.contains("stacks: not recorded (with_stack=True records them)"), "{out}");
    assert!(!text(&views::ops(&op_table(), GroupBy::Name, Recorder::Torch), &plain(100)).contains("stacks"));
}

#[test]
fn a_filter_that_matches_nothing_is_named() {
    let mut table = views::memory(&MemoryTable { rows: vec![], ..memory() }, Recorder::Torch);
    assert_eq!(text(&table, &plain(100)).lines().next(), Some("no allocations in scope"));
    let unrecorded = views::memory(&MemoryTable { rows: vec![], is_recorded: false, ..memory() }, Recorder::Torch);
    let out = text(&unrecorded, &plain(100));
    assert!(out.contains("profile_memory=True") && !out.contains("in scope"), "{out}");
    table.filtered_out = 3;
    let out = text(&table, &plain(100));
    assert!(out.starts_with("no row matches --filter (3 rows without it)\n") && !out.contains("profile_memory"), "{out}");
    assert!(markdown(&table).starts_with("No row matches --filter (3 rows without it).\n"));
}

#[test]
fn a_filter_leaves_the_totals_alone_and_the_page_says_so() {
    let (trace, mut result) = triage();
    let page = Page { filter: Some("^gemm$"), ..Page::default() };
    let note = "--filter ^gemm$ applies to the tables; totals, suspects, questions and report are not filtered";
    let out = triage_text(&fixture(&[]).header(), &result, &trace, &page, &plain(200));
    assert!(out.contains(note) && !out.contains("no row matches"), "{out}");
    result.ops.rows.clear();
    result.families.clear();
    result.ranges.clear();
    let out = triage_text(&fixture(&[]).header(), &result, &trace, &page, &plain(200));
    assert!(out.contains(note) && out.contains("no row matches --filter"), "{out}");
    assert!(triage_markdown(&fixture(&[]).header(), &result, &trace, &page).contains("no row matches --filter"));
}

#[test]
fn totals_of_several_devices_say_of_how_many() {
    let (trace, mut result) = triage();
    let head = Page { limit: Some(1), ..Page::default() };
    let of_both = triage_text(&fixture(&[]).header(), &result, &trace, &head, &plain(200));
    assert!(of_both.contains("% of wall × 2 devices") && of_both.contains("device work, summed over 2 devices"), "{of_both}");
    result.totals.devices.truncate(1);
    let of_one = triage_text(&fixture(&[]).header(), &result, &trace, &head, &plain(200));
    assert!(!of_one.contains("2 devices") && !of_one.contains("summed"), "{of_one}");
}

#[test]
fn csv_cells_are_values_not_phrases() {
    let out = csv(&views::kernels(&kernels(), Ns(20_503_000), false));
    let mut lines = out.lines();
    assert!(lines.next().is_some_and(|head| head.ends_with(",op,other_ops")), "{out}");
    assert!(lines.next().is_some_and(|row| row.ends_with(",aten::mm,1")), "{out}");
    assert!(text(&views::kernels(&kernels(), Ns(20_503_000), false), &plain(160)).contains("aten::mm +1"));
    let paths = csv(&views::ranges(&ranges(), RangeLayout::Paths, None));
    assert!(paths.lines().any(|row| row.starts_with("decode_step,decode_loop,1,")), "{paths}");
    assert_eq!(paths, csv(&views::ranges(&ranges(), RangeLayout::Tree, None)), "the layout is for people");
}

#[test]
fn memory_has_a_total_for_each_place() {
    let out = text(&views::memory(&memory(), Recorder::Torch), &plain(100));
    let totals: Vec<Vec<&str>> = out.lines().filter(|l| l.starts_with("total of")).map(|l| l.split_whitespace().collect()).collect();
    assert_eq!(totals.len(), 2, "{out}");
    for (total, place) in totals.iter().zip(["device", "host"]) {
        assert_eq!(total[4], place, "{out}");
        let rows = memory().rows.iter().filter(|row| (row.place == longpole_trace::MemoryPlace::Host) == (place == "host")).count();
        assert_eq!((total[2], total[3]), (rows.to_string().as_str(), if rows == 1 { "row" } else { "rows" }), "{out}");
    }
}

#[test]
fn one_of_anything_reads_right() {
    for &code in ProblemCode::ALL {
        for (count, said) in [(1, "(once"), (2, "(2 times")] {
            let fixture = fixture(&[(code, count)]);
            let out = text_header(&fixture.header(), &plain(400));
            let whole = matches!(code, ProblemCode::Truncated | ProblemCode::DamagedCompression);
            let Some(note) = fixture.trust.notes.first().filter(|note| note.is_worth_a_line()) else { continue };
            let uncounted = matches!(code, ProblemCode::ProfilerOverhead | ProblemCode::RecorderCost | ProblemCode::RecordedInWindows)
                || count == 1 && (whole || note.severity == longpole_trace::Severity::Info);
            assert_eq!(out.contains(said), !uncounted, "{out}");
            assert!(!out.contains('×'), "{out}");
        }
    }
}

#[test]
fn ranges_are_indented_below_what_is_shown() {
    let rows = &ranges()[2..];
    let out = text(&views::ranges(rows, RangeLayout::Tree, None), &plain(100));
    assert!(out.lines().any(|line| line.starts_with("decode_step")), "{out}");
    assert!(out.lines().any(|line| line.starts_with("  =evil")), "{out}");
}

#[test]
fn the_size_of_what_was_compressed_is_said_to_be_that_of_its_content() {
    let mut fixture = fixture(&[]);
    assert!(text_header(&fixture.header(), &plain(200)).contains(" · 1.18 MiB uncompressed · "));
    fixture.source.compressed = false;
    assert!(text_header(&fixture.header(), &plain(200)).contains(" · 1.18 MiB · "));
}

#[test]
fn what_a_suspect_means() {
    let all = longpole_analysis::explanations();
    let one = [longpole_analysis::explain("host_bound").expect("it is known")];
    assert_snapshot!("explain_host_bound_80", longpole_report::explain_text(&one, &plain(80)));
    assert_snapshot!("explain_host_bound_markdown", longpole_report::explain_markdown(&one));
    assert_snapshot!("explain_list_100", longpole_report::explain_list(&all, &plain(100)));
    let document = json(&wire::explain(&all));
    assert_eq!(document["smells"].as_array().map(Vec::len), Some(all.len()));
}
