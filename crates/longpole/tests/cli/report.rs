//! Pages: what is in them, that nothing in them acts, and that none is too large. Pages are taken apart as their script does it.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use base64::Engine as _;
use flate2::read::ZlibDecoder;
use serde_json::Value;

use crate::harness::{CORPUS, Run, print, root, run, run_with, trace};
use crate::hostile::assert_inert;
use crate::redaction::{assert_clean, planted};
use crate::schema::validate;

/// A page, taken apart.
struct Page {
    /// All of it but the two packed texts, the script and the style.
    shell: String,
    report: Value,
    /// The same before it was parsed.
    json: String,
    events: Vec<u8>,
    bytes: usize,
}

fn between<'t>(text: &'t str, from: &str, to: &str) -> &'t str {
    text.split_once(from).and_then(|(_, rest)| rest.split_once(to)).unwrap_or_else(|| panic!("{from}")).0
}

fn unpacked(text: &str) -> Vec<u8> {
    let packed = base64::engine::general_purpose::STANDARD.decode(text).expect("base64");
    let mut bytes = Vec::new();
    ZlibDecoder::new(packed.as_slice()).read_to_end(&mut bytes).expect("zlib");
    bytes
}

fn page(html: &str) -> Page {
    let report = between(html, "<script type=\"text/plain\" id=\"longpole-report\">", "</script>");
    let events = between(html, "<script type=\"text/plain\" id=\"longpole-events\">", "</script>");
    let mut shell = html.replacen(report, "", 1);
    if !events.is_empty() {
        shell = shell.replacen(events, "", 1);
    }
    for (from, to) in [("<style>", "</style>"), ("<script>", "</script>")] {
        let inner = between(&shell, from, to).to_owned();
        shell = shell.replacen(&inner, "", 1);
    }
    let json = String::from_utf8(unpacked(report)).expect("UTF-8");
    Page { shell, report: validate(&json), json, events: unpacked(events), bytes: html.len() }
}

/// Writes a page, which must succeed.
fn made(args: &[&str]) -> (Page, Run) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("page.html");
    let run = run(&[&["report"], args, &["-o", path.to_str().expect("UTF-8")]].concat());
    assert!(run.code == Some(0) && run.stdout.is_empty(), "{args:?}: {:?} {}", run.code, run.stderr);
    (page(&fs::read_to_string(&path).expect("written")), run)
}

impl Page {
    /// The numbers of a stream; empty for one that is absent.
    fn numbers(&self, stream: &Value) -> Vec<u64> {
        if stream.is_null() {
            return Vec::new();
        }
        let field = |key: &str| usize::try_from(stream[key].as_u64().expect("a number")).expect("small");
        let (mut values, mut value, mut shift, mut before) = (Vec::new(), 0_u64, 0, 0);
        for byte in &self.events[field("at")..field("at") + field("bytes")] {
            value |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                before = if stream["as"] == "delta" { before + value } else { value };
                values.push(before);
                (value, shift) = (0, 0);
            }
        }
        assert_eq!(values.len(), field("n"));
        values
    }

    fn lanes(&self) -> &[Value] {
        lanes(&self.report["timeline"])
    }
}

fn lanes(timeline: &Value) -> &[Value] {
    timeline["lanes"].as_array().map_or(&[], Vec::as_slice)
}

/// A timeline points into itself. The events that it keeps, and the time of device work and of gaps on its lanes that are whole.
fn check_lanes(name: &str, page: &Page, timeline: &Value) -> (u64, u64, u64) {
    let length = |key: &str| timeline[key].as_array().map_or(0, Vec::len) as u64;
    let (names, details, kept) = (length("names"), length("details"), timeline["events_kept"].as_u64().unwrap_or(0));
    assert_eq!(length("name_family"), names, "{name}");
    let (start, end) = (timeline["start_ns"].as_u64(), timeline["end_ns"].as_u64());
    let (mut first, mut total, mut device, mut gaps) = (0, 0, 0, 0);
    for lane in lanes(timeline) {
        let events = &lane["events"];
        let n = events["n"].as_u64().expect("a number");
        assert_eq!(lane["first"].as_u64(), Some(first), "{name}: numbers run on");
        first += n;
        total += lane["total"].as_u64().expect("a number");
        let (starts, durations) = (page.numbers(&events["start"]), page.numbers(&events["dur"]));
        assert!(starts.is_sorted() && starts.first().is_none_or(|&at| Some(at) >= start), "{name}");
        assert!(starts.iter().zip(&durations).all(|(at, dur)| Some(at + dur) <= end), "{name}");
        for (column, below) in [("name", names), ("owner", names + 1), ("detail", details), ("launch", kept + 1)] {
            assert!(page.numbers(&events[column]).iter().all(|&value| value < below), "{name} {column}");
        }
        let rows = lane["rows"].as_u64().expect("a number");
        assert!(page.numbers(&events["row"]).iter().all(|&row| row < rows), "{name}");
        for level in lane["levels"].as_array().expect("a list") {
            assert_eq!(page.numbers(&level["count"]).iter().sum::<u64>(), lane["total"].as_u64().unwrap_or(0), "{name}");
            assert!(page.numbers(&level["name"]).iter().all(|&value| value < names), "{name}");
        }
        if n == lane["total"].as_u64().unwrap_or(0) {
            let sum: u64 = durations.iter().sum();
            device += if lane["kind"] == "stream" { sum } else { 0 };
            gaps += if lane["kind"] == "gaps" { sum } else { 0 };
        }
    }
    assert_eq!((first, total), (kept, timeline["events_total"].as_u64().unwrap_or(0)), "{name}");
    (kept, device, gaps)
}

/// The timeline points into itself, and its sums are those of the documents.
fn check_timeline(name: &str, page: &Page) {
    let timeline = &page.report["timeline"];
    let (kept, device, gaps) = check_lanes(name, page, timeline);
    let total = timeline["events_total"].as_u64().unwrap_or(0);
    let documents = &page.report["documents"];
    let cuts: Vec<&str> = page.report["cuts"].as_array().expect("a list").iter().filter_map(|cut| cut["list"].as_str()).collect();
    if kept == total && !cuts.contains(&"triage.kernels") && !cuts.contains(&"timeline.streams") {
        let kernels = documents["triage"]["kernels"].as_array().expect("a list");
        assert_eq!(device, kernels.iter().filter_map(|row| row["cuda_ns"].as_u64()).sum::<u64>(), "{name}");
        assert_eq!(gaps, documents["idle"]["idle_ns"].as_u64().unwrap_or(0), "{name}");
    }
    if let Some(root) = page.report["icicle"]["device_ns"].as_array().and_then(|nodes| nodes[0].as_u64()) {
        let families = documents["triage"]["families"].as_array().expect("a list");
        assert_eq!(root, families.iter().filter_map(|row| row["self_cuda_ns"].as_u64()).sum::<u64>(), "{name}");
    }
    for curve in page.report["curves"].as_array().expect("a list") {
        let (times, values) = (page.numbers(&curve["t"]), page.numbers(&curve["v"]));
        assert!(times.len() == values.len() && !times.is_empty(), "{name}");
    }
    for moment in page.report["moments"].as_array().expect("a list") {
        assert!(moment["event"].as_u64().is_none_or(|event| event < kept), "{name}: {moment}");
        assert!(moment["lane"].as_u64().is_none_or(|lane| lane < page.lanes().len() as u64), "{name}: {moment}");
    }
}

#[test]
fn every_trace_gets_a_page_with_the_documents_of_its_commands() {
    for name in CORPUS {
        let path = trace(name);
        let (page, run) = made(&[&path]);
        assert!(page.bytes < 3_000_000, "{name}: {} bytes", page.bytes);
        assert!(run.stderr.starts_with("wrote "), "{name}: {}", run.stderr);
        check_timeline(name, &page);
        let texts_are_cut = page.report["cuts"].as_array().is_some_and(|cuts| !cuts.is_empty());
        let mut seen = 0;
        for (command, document) in page.report["documents"].as_object().expect("an object") {
            let printed: Value = serde_json::from_str(&print(&[command, &path, "--json"])).expect("JSON");
            assert!(texts_are_cut || *document == printed, "{name}: {command} says otherwise alone");
            seen += 1;
        }
        assert!(seen >= 4 && (texts_are_cut || page.report["cuts"] == serde_json::json!([])), "{name}: {seen}");
    }
}

#[test]
fn threads_change_nothing_in_a_page() {
    let path = trace("qwen3_item");
    let with = |threads| made(&[&path, "--threads", threads]).0.json;
    assert!(with("1") == with("4"));
}

#[test]
fn a_scope_and_standard_input_are_shown_like_a_file() {
    let bytes = fs::read(root().join(trace("bad"))).expect("the corpus is there");
    let piped = run_with(&["report", "-", "-o", "-", "--quiet"], &bytes);
    assert_eq!((piped.code, piped.stderr.as_str()), (Some(0), ""));
    let (mut piped, mut whole) = (page(&piped.stdout).report, made(&[&trace("bad")]).0.report);
    for report in [&mut piped, &mut whole] {
        report["title"] = Value::Null;
        for (_, document) in report["documents"].as_object_mut().expect("an object") {
            document["source"]["path"] = Value::Null;
        }
    }
    assert_eq!(piped, whole);
    let path = trace("qwen3_eager");
    let (scoped, _) = made(&[&path, "--range", "decode_step"]);
    check_timeline("qwen3_eager, decode_step", &scoped);
    assert_eq!(scoped.report["documents"]["triage"]["scope"]["range"], "decode_step");
    let whole = made(&[&path]).0.report["timeline"]["events_total"].as_u64();
    assert!(scoped.report["timeline"]["events_total"].as_u64() < whole);
}

#[test]
fn ranks_are_in_order() {
    let folder = tempfile::tempdir().expect("a folder");
    crate::export::ranks_out_of_order(folder.path());
    let target = tempfile::tempdir().expect("a folder");
    let path = target.path().join("page.html");
    let run = run(&["report", folder.path().to_str().expect("UTF-8"), "-o", path.to_str().expect("UTF-8")]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let page = page(&fs::read_to_string(&path).expect("written"));
    let ranks = |groups: Vec<String>| {
        let mut ranks: Vec<String> = groups.iter().filter_map(|group| Some(group.split_once(" · ")?.0.to_owned())).collect();
        ranks.dedup();
        ranks
    };
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let groups = page.lanes().iter().map(|lane| text(&lane["group"])).collect();
    assert_eq!(ranks(groups), ["rank 0", "rank 2", "rank 10", "rank 0", "rank 2", "rank 10"]);
    let curves = page.report["curves"].as_array().expect("a list").iter().map(|curve| text(&curve["title"])).collect();
    assert_eq!(ranks(curves), ["rank 0", "rank 2", "rank 10"]);
}

#[test]
fn two_traces_are_compared() {
    let (before, after) = (trace("qwen3_eager"), trace("qwen3_graph"));
    let (page, _) = made(&[&after, &before]);
    check_timeline("compared", &page);
    assert_eq!((page.report["kind"].as_str(), page.bytes < 3_000_000), (Some("trace_compare"), true));
    let printed = |args: &[&str]| serde_json::from_str::<Value>(&print(args)).expect("JSON");
    assert_eq!(page.report["documents"]["diff"], printed(&["diff", &before, &after, "--json"]));
    assert_eq!(page.report["documents"]["triage"], printed(&["triage", &after, "--json"]));
    assert_eq!(page.report["before"]["triage"], printed(&["triage", &before, "--json"]));
    // Both can be seen: the lanes before are those of a page of that trace alone.
    let of_before = &page.report["before_timeline"];
    let (kept, device, gaps) = check_lanes("before", &page, of_before);
    assert_eq!(Some(kept), of_before["events_total"].as_u64());
    let kernels = page.report["before"]["triage"]["kernels"].as_array().expect("a list");
    assert_eq!(device, kernels.iter().filter_map(|row| row["cuda_ns"].as_u64()).sum::<u64>());
    assert_eq!(gaps, printed(&["idle", &before, "--json"])["idle_ns"].as_u64().unwrap_or(0));
    let (alone, _) = made(&[&before]);
    let shape = |timeline: &Value| -> Vec<(Value, Value, Value)> {
        lanes(timeline).iter().map(|lane| (lane["group"].clone(), lane["title"].clone(), lane["total"].clone())).collect()
    };
    assert_eq!(shape(of_before), shape(&alone.report["timeline"]));
    assert!(alone.report.get("before_timeline").is_none());
    // A side without a timeline has none, and the other one is there.
    let (page, _) = made(&[&after, &trace("cpuonly")]);
    assert!(lanes(&page.report["before_timeline"]).iter().all(|lane| lane["kind"] != "stream") && !page.lanes().is_empty());
}

#[test]
fn reports_of_nsight_compute_and_sums_get_pages() {
    for (args, kind, key) in [
        (&["corpus/ncu/kern_basic.ncu-rep"][..], "ncu", "ncu"),
        (&["corpus/ncu/gemv_before.ncu-repz"], "ncu", "ncu"),
        (&["corpus/ncu/gemv_after.ncu-repz", "corpus/ncu/gemv_before.ncu-repz"], "ncu_compare", "ncu_compare"),
        (&["corpus/other/proton_scopes.hatchet"], "sums", "sums"),
        (&["corpus/other/tensorrt_layers.json"], "sums", "sums"),
        (&["corpus/other/proton_scopes.hatchet", "corpus/other/proton_scopes.hatchet"], "sums", "diff"),
    ] {
        let (page, _) = made(args);
        assert_eq!(page.report["kind"], kind, "{args:?}");
        assert!(page.report["documents"][key].is_object() && page.report["timeline"].is_null(), "{args:?}");
        for document in page.report["documents"].as_object().expect("an object").values() {
            let mut rest = document.clone();
            let schema = rest.as_object_mut().and_then(|document| document.remove("schema")).expect("a schema");
            validate(&format!("{{\"schema\":{schema},{}", &rest.to_string()[1..]));
        }
    }
    let (page, _) = made(&["corpus/ncu/gemv_before.ncu-repz"]);
    let (of_page, path) = (&page.report["documents"]["ncu"], "corpus/ncu/gemv_before.ncu-repz");
    let printed: Value = serde_json::from_str(&print(&["ncu", path, "--source", "--json"])).expect("JSON");
    let table: Value = serde_json::from_str(&print(&["ncu", path, "--table", "--json"])).expect("JSON");
    assert_eq!((&of_page["kernels"], &of_page["launches"]), (&printed["kernels"], &table["launches"]));
}

#[test]
fn hostile_names_are_text_everywhere() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("t\u{1b}[31m\u{202e}<script>.json");
    fs::write(&path, crate::hostile::trace()).expect("written");
    let path = path.to_str().expect("UTF-8");
    for args in [&[path][..], &[path, path], &[path, "--full-names"]] {
        let (page, run) = made(args);
        assert_inert(args, &run.stderr);
        let named = crate::harness::command(&["report", path]).current_dir(folder.path()).output().expect("it runs");
        assert_inert(args, &String::from_utf8_lossy(&named.stderr));
        assert_inert(args, &page.shell);
        // Two texts and the script are all the elements there are.
        assert_eq!(page.shell.matches("<script").count(), 3, "{}", page.shell);
        for tag in ["<img", "alert(1)</script>", "javascript:y\"", "<!--"] {
            assert!(!page.shell.contains(tag), "{tag}: {}", page.shell);
        }
        assert!(page.shell.contains("&lt;script&gt;alert(1)&lt;/script&gt;"), "the first page shows it as text: {}", page.shell);
        let has_name = |value: &Value| value.as_str().is_some_and(|text| text.contains("<script>alert(1)</script>"));
        assert!(page.report["timeline"]["names"].as_array().is_some_and(|names| names.iter().any(has_name)));
        check_timeline("hostile", &page);
    }
}

#[test]
fn no_page_shows_a_secret() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("t.json");
    fs::write(&path, planted()).expect("written");
    let path = path.to_str().expect("UTF-8");
    for args in [&[path][..], &[path, path]] {
        let (page, run) = made(args);
        let events = String::from_utf8_lossy(&page.events).into_owned();
        for stdout in [page.shell, page.json, events] {
            assert_clean(args, &Run { code: run.code, stdout, stderr: run.stderr.clone() });
        }
    }
    let (page, _) = made(&[path, "--no-redact"]);
    assert!(page.json.contains(crate::redaction::TOKEN));
}

/// Kernels, operators, ranges and threads by the ten thousand, with names that are all different, some of them a megabyte long.
fn crowded() -> String {
    let mut events = String::new();
    let long = "n".repeat(1 << 20);
    for number in 0..20_000_u64 {
        let (at, thread) = (number * 10, number % 3_000);
        let long = if number % 8_000 == 17 { long.as_str() } else { "" };
        // Numbers that no compressor makes small.
        let noise = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ number.rotate_left(40);
        let (host, device) = (format!(r#""pid":1,"tid":{thread}"#), format!(r#""pid":0,"tid":{}"#, number % 700));
        for (cat, name, place, start, args) in [
            ("user_annotation", "range", &host, at, String::new()),
            ("cpu_op", "op", &host, at + 1, String::new()),
            ("cuda_runtime", "cudaLaunchKernel", &host, at + 2, format!(r#""correlation":{number}"#)),
            ("kernel", "kernel", &device, at + 4, format!(r#""device":0,"stream":{},"correlation":{number}"#, number % 700)),
        ] {
            let name = if cat == "cuda_runtime" { name.to_owned() } else { format!("{name}_{noise:x}_{}{long}", noise.rotate_left(17)) };
            let _ = writeln!(events, r#"{{"ph":"X","cat":"{cat}","name":"{name}",{place},"ts":{start},"dur":5,"args":{{{args}}}}},"#);
        }
    }
    format!(r#"{{"traceEvents":[{}]}}"#, events.trim_end().trim_end_matches(','))
}

#[test]
fn no_page_is_too_large() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("crowded.json");
    fs::write(&path, crowded()).expect("written");
    let (page, run) = made(&[path.to_str().expect("UTF-8")]);
    assert!(page.bytes < 15_000_000, "{}", page.bytes);
    let cuts: BTreeSet<&str> = page.report["cuts"].as_array().expect("a list").iter().filter_map(|cut| cut["list"].as_str()).collect();
    for list in [
        "triage.kernels",
        "triage.ops",
        "triage.ranges",
        "timeline.threads",
        "timeline.streams",
        "characters of the longest text",
        "moments",
        "icicle.nodes",
    ] {
        assert!(cuts.contains(list) && run.stderr.contains(list), "{list}: {cuts:?}\n{}", run.stderr);
    }
    check_timeline("crowded", &page);
}

/// Kernels and operators with long names that no compressor makes small: what all of it makes a page of is some four times too large.
fn wide() -> String {
    let mut state = 1_u64;
    let mut name = || {
        let mut text = String::new();
        while text.len() < 3_900 {
            // xorshift64 (Marsaglia 2003).
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let _ = write!(text, "{state:x}");
        }
        text
    };
    let mut events = String::new();
    for number in 0..5_000 {
        let at = number * 10;
        let (op, kernel) = (name(), name());
        let _ = writeln!(events, r#"{{"ph":"X","cat":"cpu_op","name":"{op}","pid":1,"tid":1,"ts":{at},"dur":5}},"#);
        let call = format!(r#""cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":{},"dur":2"#, at + 1);
        let _ = writeln!(events, r#"{{"ph":"X",{call},"args":{{"correlation":{number}}}}},"#);
        let device = format!(r#""pid":0,"tid":7,"ts":{},"dur":5"#, at + 4);
        let _ = writeln!(
            events,
            r#"{{"ph":"X","cat":"kernel","name":"{kernel}",{device},"args":{{"device":0,"stream":7,"correlation":{number}}}}},"#
        );
    }
    format!(r#"{{"traceEvents":[{}]}}"#, events.trim_end().trim_end_matches(','))
}

#[test]
fn a_page_that_is_too_large_is_cut_to_about_the_limit() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("wide.json");
    fs::write(&path, wide()).expect("written");
    // Names of this kind look like credentials.
    let (page, run) = made(&[path.to_str().expect("UTF-8"), "--no-redact"]);
    assert!((10_000_000..15_000_000).contains(&page.bytes), "{}: {}", page.bytes, run.stderr);
    let cuts = page.report["cuts"].as_array().expect("a list");
    for list in ["triage.kernels", "triage.ops", "timeline.names", "icicle.nodes", "moments", "characters of the longest text"] {
        let cut = cuts.iter().find(|cut| cut["list"] == list).unwrap_or_else(|| panic!("{list}: {}", run.stderr));
        assert!(cut["kept"].as_u64() < cut["of"].as_u64() && run.stderr.contains(list), "{cut}");
    }
    let held = |list: &str| cuts.iter().find(|cut| cut["list"] == list).map(|cut| cut["kept"].clone());
    assert_eq!(held("moments"), Some(Value::from(page.report["moments"].as_array().map_or(0, Vec::len))));
    let nodes = page.report["icicle"]["kind"].as_array().expect("a list").iter().filter(|kind| *kind != "rest").count();
    assert_eq!(held("icicle.nodes"), Some(Value::from(nodes)));
    check_timeline("wide", &page);
}

#[test]
fn damaged_and_empty_inputs_get_a_page_or_a_sentence() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, bytes: &[u8]| -> PathBuf {
        let path = folder.path().join(name);
        fs::write(&path, bytes).expect("written");
        path
    };
    let bytes = fs::read(root().join(trace("qwen3_item"))).expect("the corpus is there");
    let cut = write("cut.json.gz", &bytes[..bytes.len() / 2]);
    let (page, run) = made(&[cut.to_str().expect("UTF-8")]);
    assert_eq!(page.report["documents"]["triage"]["trust"]["grade"], "partial");
    assert!(run.stderr.contains("trust   partial"), "{}", run.stderr);
    check_timeline("cut", &page);
    let empty = write("empty.json", br#"{"traceEvents":[]}"#);
    let target = folder.path().join("out.html");
    let target = target.to_str().expect("UTF-8");
    let of_empty = crate::harness::run(&["report", empty.to_str().expect("UTF-8"), "-o", target]);
    assert!(!of_empty.stderr.contains("panicked") && matches!(of_empty.code, Some(0 | 3)), "{}", of_empty.stderr);
    let garbled = write("garbled.json", b"{\"traceEvents\":[{]]}}\xff");
    let of_garbled = crate::harness::run(&["report", garbled.to_str().expect("UTF-8"), "-o", target]);
    assert!(!of_garbled.stderr.contains("panicked") && matches!(of_garbled.code, Some(0 | 3)), "{}", of_garbled.stderr);
    let strict = crate::harness::run(&["report", cut.to_str().expect("UTF-8"), "-o", target, "--strict"]);
    assert!(strict.code == Some(3) && Path::new(target).is_file(), "it writes before it fails: {}", strict.stderr);
}

#[test]
fn what_cannot_be_is_refused_before_anything_is_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let copy = folder.path().join("t.json.gz");
    fs::copy(root().join(trace("bad")), &copy).expect("copied");
    let copy = copy.to_str().expect("UTF-8");
    let before = fs::read(copy).expect("read");
    for (args, said) in [
        (&["report", copy, "-o", copy][..], "is the input"),
        (&["report", &trace("bad"), copy, "-o", copy], "is the input"),
        (&["report", &trace("bad"), "--roles-from", copy, "-o", copy], "is the input"),
        (&["report", &trace("bad"), "--peaks", copy, "-o", copy], "is the input"),
        (&["report", copy, "--json"], "report writes a page"),
        (&["report", copy, "--limit", "3"], "report writes a page"),
        (&["report", copy, "corpus/ncu/kern_basic.ncu-rep", "-o", "-"], "cannot be compared"),
        (&["report", "corpus/ncu/kern_basic.ncu-rep", "--step", "1", "-o", "-"], "are for traces"),
        (&["report", "-", "-", "-o", "-"], "only one of INPUT and BEFORE"),
    ] {
        let run = run(args);
        assert!(run.code == Some(2) && run.stderr.contains(said), "{args:?}: {:?} {}", run.code, run.stderr);
    }
    assert_eq!(fs::read(copy).expect("read"), before);
    // Without -o the page is in the current folder, named after the input. A page that is there is kept: nobody named it.
    let here = |args: &[&str], input: &[u8]| {
        let mut command = crate::harness::command(args);
        let mut child = command.current_dir(folder.path()).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        // A command that refuses does not read.
        let _ = child.stdin.take().expect("piped").write_all(input);
        let done = child.wait_with_output().expect("it ends");
        (done.status.code(), String::from_utf8(done.stderr).expect("text"))
    };
    for (input, page) in [("t.json.gz", "t.report.html"), ("-", "report.html")] {
        let place = folder.path().join(page);
        assert_eq!(here(&["report", input], &before).0, Some(0), "{input}");
        assert!(place.is_file());
        fs::write(&place, "older").expect("written");
        let (code, said) = here(&["report", input], &before);
        assert_eq!((code, fs::read_to_string(&place).expect("read")), (Some(2), "older".to_owned()), "{said}");
        assert!(said.contains(&format!("`{page}` is there already: -o {page} replaces it")), "{said}");
        assert_eq!(here(&["report", input, "-o", page], &before).0, Some(0), "{input}");
        assert!(fs::read_to_string(&place).expect("read").starts_with("<!doctype html>"));
    }
}
