//! Exports, read back: the same sums, whatever the trace holds.

mod files;
mod wire;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use longpole_ingest::import_bytes;
use longpole_report::printable;
use longpole_trace::Trace;
use serde_json::Value;

use crate::harness::{CORPUS, Run, root, run, trace};
use crate::hostile::{self, assert_inert};
use crate::parity::read;
use crate::slice::nasty;
use wire::Perfetto;

fn export(path: &str, output: &Path, more: &[&str]) -> Run {
    run(&[&["export", path, "-o", output.to_str().unwrap()], more].concat())
}

fn json(args: &[&str]) -> Value {
    let run = run(&[args, &["--json"]].concat());
    assert_eq!(run.code, Some(0), "{args:?}: {}", run.stderr);
    serde_json::from_str(&run.stdout).unwrap()
}

fn sum(rows: &Value, key: &str) -> i64 {
    rows.as_array().unwrap().iter().filter_map(|row| row[key].as_i64()).sum()
}

/// Time of each name.
type Sums = BTreeMap<String, i64>;

fn add(sums: &mut Sums, name: &str, time: i64) {
    if time > 0 {
        *sums.entry(printable(name).into_owned()).or_default() += time;
    }
}

/// Recorded traces of every kind, and made ones that are hard to write.
fn inputs(directory: &Path) -> Vec<String> {
    let mut paths: Vec<String> = CORPUS.iter().map(|name| trace(name)).collect();
    let others = ["other/jax.trace.json.gz", "other/onnx_cuda.json", "other/chrome_server.json", "recording/qwen3_graph.longpole"];
    paths.extend(others.iter().map(|name| format!("corpus/{name}")));
    // Cut inside an event, and with a hole.
    let mut text = String::new();
    let packed = fs::File::open(root().join("corpus/kineto/bad.json.gz")).unwrap();
    std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(packed), &mut text).unwrap();
    let hole = format!("{}{}", &text[..text.len() / 3], &text[text.len() / 3 + 57..]);
    for (name, text) in [
        ("cut", text[..text.len() * 3 / 5].to_owned()),
        ("hole", hole),
        ("nasty", nasty()),
        ("hostile", hostile::trace()),
        ("crossing", crossing()),
    ] {
        let path = directory.join(format!("{name}.json"));
        fs::write(&path, text).unwrap();
        paths.push(path.to_str().unwrap().to_owned());
    }
    paths
}

/// Events that overlap in every way, on threads and streams, some without length; one name of a megabyte.
fn crossing() -> String {
    let event = |cat: &str, name: &str, place: &str, ts: usize, dur: usize, args: &str| {
        format!(r#"{{"ph":"X","cat":"{cat}","name":"{name}",{place},"ts":{ts},"dur":{dur},"args":{{{args}}}}}"#)
    };
    let (host, device) = (r#""pid":-5,"tid":99999999999"#, r#""pid":0,"tid":7"#);
    let mut events = vec![event("cpu_op", &"long ".repeat(200_000), host, 0, 3_000, "")];
    for at in 0..60 {
        let (start, dur) = (at * 7 % 50 * 10, at * 13 % 40 * 3);
        events.push(event("cpu_op", &format!("op{}", at % 7), host, start, dur, ""));
        events.push(event("user_annotation", &format!("range{}", at % 3), host, start + 4, dur, ""));
        events.push(event("python_function", &format!("f{}", at % 5), host, start + 2, dur * 2, ""));
        events.push(event("cuda_runtime", "cudaLaunchKernel", host, start + 5, 3, &format!(r#""correlation":{at}"#)));
        events.push(event(
            "kernel",
            &format!("k{}", at % 4),
            device,
            start + 20,
            dur,
            &format!(r#""device":0,"stream":7,"correlation":{at}"#),
        ));
    }
    format!(r#"{{"traceEvents":[{}]}}"#, events.join(",\n"))
}

fn is_refused(made: &Run, path: &str) {
    assert_eq!(made.code, Some(2), "{path}: {}", made.stderr);
    assert!(made.stderr.contains("nothing to write") || made.stderr.contains("no device activity"), "{path}: {}", made.stderr);
}

#[test]
fn perfetto_has_the_sums_of_the_tables() {
    let directory = tempfile::tempdir().unwrap();
    let (output, mut arrows, mut split) = (directory.path().join("out.pftrace"), 0, 0);
    for path in inputs(directory.path()) {
        for scope in [&[][..], &["--time=0us..400us"]] {
            let made = export(&path, &output, scope);
            if made.code == Some(2) {
                is_refused(&made, &path);
                continue;
            }
            assert_eq!(made.code, Some(0), "{path}: {}", made.stderr);
            let perfetto = Perfetto::read(&fs::read(&output).unwrap());
            let mut sums = Sums::new();
            for slice in perfetto.slices.iter().filter(|slice| matches!(slice.category.as_str(), "kernel" | "copy" | "fill" | "other")) {
                add(&mut sums, &slice.name, slice.dur as i64);
            }
            let mut expected = Sums::new();
            for row in json(&[&["kernels", &path][..], scope].concat())["kernels"].as_array().unwrap() {
                add(&mut expected, row["name"].as_str().unwrap(), row["cuda_ns"].as_i64().unwrap());
            }
            assert_eq!(sums, expected, "{path} {scope:?}");
            let idle = json(&[&["idle", &path][..], scope].concat());
            assert_eq!(perfetto.total("idle"), idle["idle_ns"].as_u64().unwrap_or(0), "{path} {scope:?}");
            for cause in idle["causes"].as_array().unwrap() {
                let of = |slice: &&wire::Slice| slice.category == "idle" && slice.name == cause["cause"].as_str().unwrap();
                assert_eq!(perfetto.slices.iter().filter(of).map(|slice| slice.dur).sum::<u64>(), cause["idle_ns"].as_u64().unwrap());
            }
            assert_eq!(perfetto.flows.0.len(), perfetto.flows.1.len(), "{path}: every arrow has two ends");
            arrows += perfetto.flows.0.len();
            split += perfetto.tracks.values().filter(|(name, _)| name.starts_with("overlap")).count();
            if scope.is_empty() {
                has_every_row(&path, &perfetto);
            }
        }
    }
    assert!(arrows > 1_000 && split > 3, "{arrows} arrows, {split} tracks for what overlaps");
}

/// All host rows are there, with their times.
fn has_every_row(path: &str, perfetto: &Perfetto) {
    let path = root().join(path);
    let of = |trace: &Trace| {
        let host = |count: usize, dur: &[longpole_trace::Ns]| (count, dur.iter().map(|dur| dur.get().max(0) as u64).sum::<u64>());
        [
            ("operator", host(trace.host_ops.len(), &trace.host_ops.dur)),
            ("call", host(trace.api_calls.len(), &trace.api_calls.dur)),
            ("range", host(trace.ranges.len(), &trace.ranges.dur)),
            ("python", host(trace.frames.len(), &trace.frames.dur)),
        ]
    };
    for (category, (count, total)) in of(&read(&path)) {
        let slices = perfetto.slices.iter().filter(|slice| slice.category == category);
        assert_eq!((slices.count(), perfetto.total(category)), (count, total), "{} {category}", path.display());
    }
}

#[test]
fn chrome_is_read_again_as_the_same_table() {
    let directory = tempfile::tempdir().unwrap();
    let output = directory.path().join("out.json");
    let mut seen = 0;
    for path in inputs(directory.path()) {
        let made = export(&path, &output, &["--to", "chrome"]);
        assert_eq!(made.code, Some(0), "{path}: {}", made.stderr);
        let text = fs::read_to_string(&output).unwrap();
        assert!(serde_json::from_str::<Value>(&text).is_ok(), "{path}: strict JSON");
        assert_inert(&[&path], &text);
        for table in ["ops", "kernels"] {
            let (whole, again) = (json(&[table, &path]), json(&[table, output.to_str().unwrap()]));
            assert_eq!(whole[table], again[table], "{path} {table}");
            seen += whole[table].as_array().unwrap().len();
        }
    }
    assert!(seen > 500, "{seen} rows");
}

/// Sums over the lines of collapsed stacks, by innermost frame, and how many there are.
fn collapsed(text: &str) -> (i64, usize) {
    let value = |line: &str| {
        let (stack, value) = line.rsplit_once(' ').expect("a stack and its time");
        assert!(!stack.is_empty() && stack.split(';').all(|frame| !frame.is_empty()), "{line}");
        value.parse::<i64>().expect("whole nanoseconds")
    };
    (text.lines().map(value).sum(), text.lines().count())
}

#[test]
fn stacks_have_the_sums_of_the_tables() {
    let directory = tempfile::tempdir().unwrap();
    let output = directory.path().join("out.speedscope.json");
    for path in inputs(directory.path()) {
        let (ops, idle) = (json(&["ops", &path]), json(&["idle", &path]));
        let device = sum(&ops["ops"], "self_cuda_ns");
        let idle = idle["idle_ns"].as_i64().unwrap_or(0);
        let mut of_lines = BTreeMap::new();
        for (weight, expected) in [("device", Some(device)), ("idle", Some(idle)), ("host", None)] {
            let made = run(&["export", &path, "--to", "collapsed", "--weight", weight]);
            if expected == Some(0) || made.code == Some(2) {
                assert!(expected.unwrap_or(0) == 0, "{path} {weight}: {}", made.stderr);
                is_refused(&made, &path);
                continue;
            }
            assert_inert(&[&path, weight], &made.stdout);
            let (total, _) = collapsed(&made.stdout);
            assert_eq!(total, expected.unwrap_or(total), "{path} {weight}");
            of_lines.insert(format!("{weight} time"), total);
        }
        if of_lines.is_empty() {
            continue;
        }
        assert_eq!(export(&path, &output, &[]).code, Some(0));
        let text = fs::read_to_string(&output).unwrap();
        assert_inert(&[&path], &text);
        assert!(!text.contains("<script"), "{path}");
        let document: Value = serde_json::from_str(&text).unwrap();
        let frames = document["shared"]["frames"].as_array().unwrap().len() as u64;
        let mut of_profiles = BTreeMap::new();
        for profile in document["profiles"].as_array().unwrap() {
            let weights: Vec<i64> = profile["weights"].as_array().unwrap().iter().map(|weight| weight.as_i64().unwrap()).collect();
            let samples = profile["samples"].as_array().unwrap();
            assert_eq!((samples.len(), weights.iter().sum::<i64>()), (weights.len(), profile["endValue"].as_i64().unwrap()));
            assert!(samples.iter().flat_map(|stack| stack.as_array().unwrap()).all(|frame| frame.as_u64().unwrap() < frames));
            let (what, _) = profile["name"].as_str().unwrap().split_once(": ").unwrap();
            *of_profiles.entry(what.to_owned()).or_insert(0) += weights.iter().sum::<i64>();
        }
        assert_eq!(of_profiles, of_lines, "{path}");
    }
}

#[test]
fn names_are_shown_as_text() {
    let directory = tempfile::tempdir().unwrap();
    let input = directory.path().join("in.json");
    for (what, text) in [("nasty", nasty()), ("hostile", hostile::trace())] {
        assert!(import_bytes(text.as_bytes(), 1).is_ok());
        fs::write(&input, text).unwrap();
        let path = input.to_str().unwrap();
        let output = directory.path().join("out.pftrace");
        assert_eq!(export(path, &output, &[]).code, Some(0));
        let perfetto = Perfetto::read(&fs::read(&output).unwrap());
        let shown = perfetto.texts.iter().filter(|text| text.contains("\\u{202e}")).count();
        perfetto.texts.iter().for_each(|text| assert_inert(&[what], text));
        assert!(shown > 0, "{what}: the name is there, its marks written out");
        let folder = directory.path().join("csv");
        assert_eq!(export(path, &folder, &[]).code, Some(0));
        for file in fs::read_dir(&folder).unwrap() {
            let text = fs::read_to_string(file.unwrap().path()).unwrap();
            assert_inert(&[what], &text);
            let is_formula = |cell: &String| cell.starts_with(['=', '+', '@']) && cell.parse::<f64>().is_err();
            assert!(!files::csv(&text).iter().flatten().any(is_formula), "{what}: {text}");
        }
    }
}

/// A set of recordings whose order by name is not that of their ranks.
pub(crate) fn ranks_out_of_order(folder: &Path) {
    for rank in [10, 2, 0] {
        let text = format!(
            r#"{{"distributedInfo":{{"backend":"nccl","rank":{rank},"world_size":11}},"traceEvents":[
{{"ph":"X","cat":"cpu_op","name":"op","pid":{pid},"tid":{pid},"ts":1,"dur":20}},
{{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":{pid},"tid":{pid},"ts":2,"dur":3,"args":{{"correlation":1}}}},
{{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":10,"dur":5,"args":{{"device":0,"stream":7,"correlation":1}}}}]}}"#,
            pid = 500 - rank,
        );
        fs::write(folder.join(format!("rank{rank}.json")), text).unwrap();
    }
}

#[test]
fn ranks_are_in_order() {
    let directory = tempfile::tempdir().unwrap();
    let input = directory.path().join("run");
    fs::create_dir(&input).unwrap();
    ranks_out_of_order(&input);
    let output = directory.path().join("out.pftrace");
    let made = export(input.to_str().unwrap(), &output, &[]);
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    let perfetto = Perfetto::read(&fs::read(&output).unwrap());
    let mut tops: Vec<(i64, u64, &str)> = perfetto
        .tracks
        .iter()
        .filter(|(_, (_, parent))| parent.is_none())
        .map(|(id, (name, _))| (perfetto.places[id], *id, name.as_str()))
        .collect();
    tops.sort_unstable();
    let names: Vec<&str> = tops.iter().map(|(.., name)| *name).collect();
    let expected = ["rank 0 GPU 0", "rank 2 GPU 0", "rank 10 GPU 0", "rank 0 process 500", "rank 2 process 498", "rank 10 process 490"];
    assert_eq!(names, expected);
    assert!(tops.is_sorted_by_key(|(_, id, _)| *id), "the file has the same order: {tops:?}");
}
