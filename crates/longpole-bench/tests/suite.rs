//! A suite on the simulated device: everything it prints is read back, is in order, and follows the schemas.
#![expect(clippy::unwrap_used, reason = "a test may fail on its own data")]

use std::path::{Path, PathBuf};

use jsonschema::Validator;
use longpole_bench::fake::{Fake, FakeBody, Random, World};
use longpole_bench::key::Key;
use longpole_bench::measure::Error;
use longpole_bench::protocol::{Benchmark, Event, Events, Line, Peak, PeakKind, Sequence, read_list};
use longpole_bench::suite::Suite;

fn schema(name: &str) -> Validator {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema");
    let path: PathBuf = root.join(format!("suite-{name}.schema.json"));
    let schema = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    jsonschema::validator_for(&schema).unwrap()
}

/// What the schema says against a text of JSON.
fn faults(schema: &Validator, text: &str) -> Vec<String> {
    let value = serde_json::from_str(text).unwrap();
    schema.iter_errors(&value).map(|error| format!("{error} at {} of {text}", error.instance_path())).collect()
}

fn suite() -> Suite<Fake> {
    let benchmark = |key: &str| Benchmark::new(Key::parse(key).unwrap());
    let mut gemv = benchmark("A/ops/gemv/decode/tile");
    gemv.shape = Some([("rows".to_owned(), 4096), ("columns".to_owned(), 1024)].into());
    gemv.bytes = Some(8 << 20);
    gemv.flops = Some(2 * 4096 * 1024);
    Suite::new("simulated", "1.0")
        .benchmark(gemv, |_| Ok(FakeBody::new(3_000, 8 << 20)))
        .benchmark(benchmark("A/ops/wrong/decode/tile"), |_| Ok(FakeBody { correct: Some(false), ..FakeBody::new(3_000, 1 << 20) }))
        .benchmark(benchmark("A/ops/broken/decode/tile"), |_| Err::<FakeBody, _>(Error::Setup("no such kernel".to_owned())))
        .benchmark(benchmark("B/model/decode_step/tile"), |_| Ok(FakeBody { kernels: 20, correct: None, ..FakeBody::new(3_000, 1 << 26) }))
        .peaks(|_, found| {
            found(Peak { kind: PeakKind::CopyBytesPerS, dtype: None, value: 4.3e12 })?;
            found(Peak { kind: PeakKind::FlopsPerS, dtype: Some("bf16".to_owned()), value: 7.9e14 })
        })
}

fn ask(line: &str) -> (u8, String, String) {
    ask_in(World::default(), line)
}

fn ask_in(world: World, line: &str) -> (u8, String, String) {
    let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    let (mut out, mut complaints) = (Vec::new(), Vec::new());
    let code = suite().run(&arguments, || Ok(Fake::new(world)), &mut out, &mut complaints);
    (code, String::from_utf8(out).unwrap(), String::from_utf8(complaints).unwrap())
}

/// The events of a run, each held against the schema, the reader and the order.
fn events(out: &str) -> Vec<Event> {
    let schema = schema("run");
    let mut sequence = Sequence::new();
    let read = Events::new(out.as_bytes()).map(|line| match line.unwrap() {
        Line::Event(event) => *event,
        other => panic!("{other:?}"),
    });
    let events: Vec<Event> = read.collect();
    assert_eq!(events.len(), out.lines().count());
    for (event, line) in events.iter().zip(out.lines()) {
        assert_eq!(faults(&schema, line), Vec::<String>::new());
        assert_eq!(sequence.accept(event), Ok(()));
    }
    assert_eq!(sequence.open(), None);
    events
}

#[test]
fn the_schema_and_the_reader_agree_on_keys() {
    let long = format!("M/ops/a/decode/{}", "v".repeat(200));
    for (key, is_one) in [
        ("M/ops/a/decode/v", true),
        ("M/model/a/v", true),
        ("M/ops/.a./decode/...v", true),
        ("model/ops/model/model/model", true),
        ("M/model/decode/v/x", false),
        ("M/model/../v", false),
        ("M/ops/../decode/v", false),
        ("../ops/a/decode/v", false),
        ("M/ops/a/decode/...", false),
        ("M/ops/a/decode", false),
        ("M/a/b/c/d/e", false),
        ("M//a/decode/v", false),
        ("M/ops/a b/decode/v", false),
        (&long, false),
    ] {
        assert_eq!(Key::parse(key).is_ok(), is_one, "{key}");
        let line = format!(r#"{{"event":"profile","key":"{key}","launches":1}}"#);
        assert_eq!(faults(&schema("run"), &line).is_empty(), is_one, "{key}");
        let list =
            format!(r#"{{"schema":"longpole.suite.list/1","suite":{{"name":"s"}},"benchmarks":[{{"key":"{key}","model":"M","op":"a"}}]}}"#);
        assert_eq!(faults(&schema("list"), &list).is_empty(), is_one, "{key}");
    }
}

#[test]
fn the_list_follows_its_schema() {
    let (code, out, complaints) = ask("list --json");
    assert_eq!((code, complaints.as_str()), (0, ""));
    assert_eq!(faults(&schema("list"), &out), Vec::<String>::new());
    let list = read_list(out.as_bytes()).unwrap();
    let keys: Vec<&str> = list.benchmarks.iter().map(|benchmark| benchmark.key.as_str()).collect();
    assert_eq!(keys, ["A/ops/gemv/decode/tile", "A/ops/wrong/decode/tile", "A/ops/broken/decode/tile", "B/model/decode_step/tile"]);
    assert_eq!(list.benchmarks[0].shape.as_ref().unwrap()["columns"], 1024);
    assert_eq!(ask("list --model B").1, "B/model/decode_step/tile\n");
}

#[test]
fn a_run_follows_its_schema() {
    let (code, out, complaints) = ask("run A/ops/gemv B --json-lines --samples 20");
    assert_eq!((code, complaints.as_str()), (0, ""));
    let events = events(&out);
    assert!(events.iter().zip(out.lines()).all(|(event, line)| event.to_line() == line));
    assert!(matches!(&events[0], Event::Device { device } if device.name == "Simulated device"));
    let samples = events.iter().filter(|event| matches!(event, Event::Sample(_))).count();
    assert_eq!((samples, events.len()), (40, 45));
    assert!(matches!(&events[1], Event::Start(start) if start.bytes == Some(8 << 20)));
}

#[test]
fn unknown_states_and_notes_follow_it_too() {
    let world = World { has_state: false, free_bytes: 20 << 20, ..World::default() };
    let (code, out, _) = ask_in(world, "run /gemv/ B/ --samples 3 --l2 cold");
    assert_eq!(code, 0);
    let events = events(&out);
    assert!(events.iter().any(|event| matches!(event, Event::End(end) if !end.notes.is_empty() && end.relative_error.is_none())));
}

#[test]
fn one_failure_does_not_end_a_run() {
    let (code, out, _) = ask("run A B --samples 2");
    assert_eq!(code, 1);
    let errors: Vec<String> = events(&out)
        .into_iter()
        .filter_map(|event| match event {
            Event::Error { key, message } => Some(format!("{}: {message}", key.name())),
            _ => None,
        })
        .collect();
    assert_eq!(errors, ["wrong: the result is wrong: the benchmark's own check says so", "broken: no such kernel"]);
    assert!(out.contains("B/model/decode_step/tile"));
}

#[test]
fn profiles_and_peaks_follow_it() {
    let (code, out, _) = ask("profile A/ops/gemv --launches 3");
    assert_eq!(code, 0);
    assert!(matches!(&events(&out)[..], [Event::Profile { launches: 3, .. }]));
    let (code, out, _) = ask("peaks --json-lines");
    assert_eq!((code, events(&out).len()), (0, 3));
}

#[test]
fn complaints_go_beside_the_protocol() {
    let (code, out, complaints) = ask("run nothing");
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(complaints.starts_with("simulated: `nothing` chooses no benchmark"), "{complaints}");
    let (code, _, complaints) = ask("run");
    assert!(code == 2 && complaints.contains("say which benchmarks") && complaints.contains("Usage:"), "{complaints}");
    let (code, out, complaints) = ask("--help");
    assert!(code == 0 && out.contains("profile KEY") && complaints.is_empty());
    let mut complaints = Vec::new();
    let open = || Err(Error::Missing("no driver".to_owned()));
    let code = suite().run(&["peaks".to_owned()], open, &mut Vec::new(), &mut complaints);
    assert_eq!((code, complaints.as_slice()), (1, &b"simulated: no driver\n"[..]));
}

#[test]
fn the_schemas_refuse_what_the_reader_refuses() {
    let schema = schema("run");
    for bad in [
        r#"{"event":"sample","key":"A/ops/gemv/decode/tile","index":0}"#,
        r#"{"event":"sample","key":"A/ops/gemv/decode/tile","index":0,"time_ps":1.5}"#,
        r#"{"event":"sample","key":"A/gemv","index":0,"time_ps":1}"#,
        r#"{"event":"end","key":"A/ops/gemv/decode/tile","samples":1,"stopped_by":"whim","warm_up_ns":1}"#,
        r#"{"event":"peak","kind":"speed","value":1.0}"#,
    ] {
        assert_ne!(faults(&schema, bad), Vec::<String>::new(), "{bad}");
        assert!(Events::new(bad.as_bytes()).all(|line| line.is_err()), "{bad}");
    }
}

/// What suites in Rust and in Python printed on a real device.
#[test]
fn results_of_a_real_device_follow_it_too() {
    let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results");
    for (name, ends, failed) in [("run", 7, 0), ("torch", 2, 1), ("peaks", 0, 0)] {
        let out = std::fs::read_to_string(results.join(format!("bench-h200-{name}.txt"))).unwrap();
        let events = events(&out);
        let count = |wanted: fn(&Event) -> bool| events.iter().filter(|event| wanted(event)).count();
        assert_eq!(count(|event| matches!(event, Event::End(end) if end.correct == Some(true))), ends, "{name}");
        assert_eq!(count(|event| matches!(event, Event::Error { .. })), failed, "{name}");
        assert!(matches!(&events[0], Event::Device { device } if device.name == "NVIDIA H200"), "{name}");
    }
}

#[test]
fn damaged_output_is_read_to_its_end() {
    let (_, out, _) = ask("run gemv --samples 5");
    let (_, list, _) = ask("list --json");
    let mut random = Random::new(1);
    let mut faulty = 0;
    for _ in 0..2000 {
        let damage = |random: &mut Random, text: &str| {
            let mut bytes = text.as_bytes().to_vec();
            for _ in 0..=random.bits() % 3 {
                let at = (random.bits() % bytes.len() as u64) as usize;
                match random.bits() % 3 {
                    0 => bytes[at] = random.bits() as u8,
                    1 if bytes.len() > 1 => drop(bytes.remove(at)),
                    _ => bytes.truncate(at + 1),
                }
            }
            bytes
        };
        let damaged = damage(&mut random, &out);
        let mut sequence = Sequence::new();
        for line in Events::new(damaged.as_slice()) {
            let fine = match line {
                Ok(Line::Event(event)) => sequence.accept(&event).is_ok(),
                Ok(_) => true,
                Err(error) => error.to_string().is_empty(),
            };
            faulty += u32::from(!fine);
        }
        if let Err(error) = read_list(damage(&mut random, &list).as_slice()) {
            assert!(!error.to_string().is_empty());
        }
    }
    assert!(faulty > 500, "{faulty}");
}

#[test]
fn the_documentation_shows_what_is_true() {
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/suite-protocol.md")).unwrap();
    let (list, run) = (schema("list"), schema("run"));
    let (mut lists, mut lines) = (0, 0);
    for block in page.split("```json\n").skip(1).filter_map(|rest| rest.split("```").next()) {
        if block.contains("\"event\"") {
            for line in block.lines() {
                assert_eq!(faults(&run, line), Vec::<String>::new());
                lines += 1;
            }
        } else {
            assert_eq!(faults(&list, block), Vec::<String>::new());
            read_list(block.as_bytes()).unwrap();
            lists += 1;
        }
    }
    assert!(lists == 1 && lines >= 7, "{lists} lists and {lines} lines");
}
