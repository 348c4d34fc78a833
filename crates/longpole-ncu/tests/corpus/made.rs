//! Reports of shapes that no recording of ours has.

use longpole_ncu::{EntryKind, Instance, MessageKind, ProfiledResult, Report, Scope, TroubleCode, Value};

use crate::encode::{Block, block, count, file, instance, kernel, message, metric, number, put_sized, source, start, words};
use crate::eras::all_of;

fn read(bytes: &[u8]) -> Report {
    Report::read(bytes, "made.ncu-rep").unwrap()
}

/// The results of a report without trouble.
fn whole(bytes: &[u8]) -> Vec<ProfiledResult> {
    let report = read(bytes);
    let results = all_of(&report);
    assert!(report.troubles().is_empty(), "{:?}", report.troubles());
    results
}

fn codes(report: &Report) -> Vec<(TroubleCode, u64)> {
    report.troubles().iter().map(|trouble| (trouble.code, trouble.count)).collect()
}

#[test]
fn a_name_may_stand_behind_the_results_that_use_it() {
    let blocks = [
        Block { names: vec!["a"], kernels: vec![kernel("k", &[metric(0, count(1)), metric(2, count(3))])], ..Block::default() },
        Block { names: vec!["b"], ..Block::default() },
        Block { names: vec!["c"], ..Block::default() },
    ];
    let [result] = &whole(&file(&blocks))[..] else { panic!("not one result") };
    assert_eq!((result.metrics.count("a"), result.metrics.count("b"), result.metrics.count("c")), (Some(1), None, Some(3)));
    assert_eq!((result.grid, result.block, result.thread), (Some([2, 3, 1]), Some([64, 1, 1]), Some(77)));
    assert_eq!((result.name.as_str(), result.function.as_deref(), result.mangled.as_deref()), ("k()", Some("k"), Some("_Z1kv")));
}

#[test]
fn a_name_listed_twice_is_one_metric() {
    let names = vec!["a", "b", "a"];
    let kernels = vec![
        kernel("by_first", &[metric(0, count(1))]),
        kernel("by_second", &[metric(2, count(2))]),
        kernel("by_both", &[metric(2, count(3)), metric(1, count(9)), metric(0, count(4))]),
    ];
    let results = whole(&file(&[Block { names, kernels, ..Block::default() }]));
    let values: Vec<_> = results.iter().map(|result| result.metrics.count("a")).collect();
    assert_eq!(values, [Some(1), Some(2), Some(4)]);
    assert_eq!(results[2].metrics.len(), 2);
}

#[test]
fn of_a_metric_given_twice_the_last_value_counts() {
    let without_value = message().varint(1, 0).message(3, instance(count(5), count(6)));
    let metrics = [metric(0, number(1.0)), metric(0, number(2.0)), without_value, metric(1, words("x"))];
    let [result] = &whole(&file(&[Block { names: vec!["a", "b"], kernels: vec![kernel("k", &metrics)], ..Block::default() }]))[..] else {
        panic!("not one result")
    };
    assert_eq!(result.metrics.number("a"), Some(2.0));
    assert_eq!(result.metrics.get("a").unwrap().instances.len(), 1);
    assert_eq!(result.metrics.text("b"), Some("x"));
}

#[test]
fn instances_without_a_value_of_the_whole_leave_none() {
    let series = message()
        .varint(1, 0)
        .message(2, message())
        .message(3, instance(count(1_000), number(0.5)))
        .message(3, instance(words("FFMA"), count(12)))
        .message(3, message().message(1, count(3)))
        .varint(4, 1);
    let bytes = file(&[Block { names: vec!["a"], kernels: vec![kernel("k", &[series])], ..Block::default() }]);
    let [result] = &whole(&bytes)[..] else { panic!("not one result") };
    let metric = result.metrics.get("a").unwrap();
    assert_eq!((metric.value.as_ref(), metric.is_series, result.metrics.number("a")), (None, true, None));
    let expected = [
        Instance { id: Some(Value::Unsigned(1_000)), value: Some(Value::Double(0.5)) },
        Instance { id: Some(Value::Text("FFMA".to_owned())), value: Some(Value::Unsigned(12)) },
        Instance { id: Some(Value::Unsigned(3)), value: None },
    ];
    assert_eq!(metric.instances, expected);
    // Only what is asked for is there.
    let report = read(&bytes);
    let values_only = report.decode(0, &report.select().values(|_| true)).unwrap();
    assert!(values_only.metrics.get("a").unwrap().instances.is_empty());
}

#[test]
fn values_of_all_types_are_read() {
    let metrics = [
        metric(0, message().float(2, 0.5)),
        metric(1, message().varint(4, 4)),
        metric(2, count(u64::MAX)),
        metric(3, number(f64::NAN)),
        metric(4, number(-0.25)),
    ];
    let names = vec!["float", "u32", "u64", "nan", "negative"];
    let [result] = &whole(&file(&[Block { names, kernels: vec![kernel("k", &metrics)], ..Block::default() }]))[..] else {
        panic!("not one result")
    };
    assert_eq!(result.metrics.number("float"), Some(0.5));
    assert_eq!(result.metrics.count("u32"), Some(4));
    assert_eq!(result.metrics.count("u64"), Some(u64::MAX));
    assert_eq!(result.metrics.number("nan"), None);
    assert_eq!((result.metrics.number("negative"), result.metrics.count("negative")), (Some(-0.25), None));
}

#[test]
fn a_metric_without_a_name_is_counted_and_the_others_stay() {
    let metrics = [metric(5, count(1)), metric(0, count(2)), message().message(2, count(3))];
    let report = read(&file(&[Block { names: vec!["a"], kernels: vec![kernel("k", &metrics)], ..Block::default() }]));
    let [result] = &all_of(&report)[..] else { panic!("not one result") };
    assert_eq!((result.metrics.count("a"), result.metrics.len()), (Some(2), 1));
    assert_eq!(codes(&report), [(TroubleCode::UnnamedMetric, 1)]);
}

#[test]
fn all_kinds_of_results_stand_in_one_block() {
    let other = |stream| {
        let plain = message().varint(1, 5).message(4, metric(0, count(8))).varint(11, 3);
        if stream { plain.varint(12, 9) } else { plain }
    };
    let packed = |number| message().bytes(number, &[1, 0x80, 1]).0;
    let with_sources = |mut result: crate::encode::Message, number| {
        result.0.extend(packed(number));
        result
    };
    let everything = Block {
        names: vec!["a"],
        process: Some((4, "/bin/app")),
        sources: vec![source(128, b"\x7fELF")],
        kernels: vec![kernel("k", &[metric(0, count(7))])],
        ranges: vec![with_sources(other(false), 15)],
        command_lists: vec![with_sources(other(true).text(18, "denoise"), 17)],
        graphs: vec![with_sources(other(true), 17), other(true)],
        ..Block::default()
    };
    let report = read(&file(&[everything]));
    let results = all_of(&report);
    assert!(report.troubles().is_empty(), "{:?}", report.troubles());
    let seen: Vec<_> =
        results.iter().map(|result| (result.kind, result.name.as_str(), result.context, result.stream, result.sources.len())).collect();
    let expected = [
        (EntryKind::Kernel, "k()", Some(1), Some(7), 0),
        (EntryKind::Range, "range", Some(3), None, 2),
        (EntryKind::CommandList, "denoise", Some(3), Some(9), 2),
        (EntryKind::Graph, "graph", Some(3), Some(9), 2),
        (EntryKind::Graph, "graph", Some(3), Some(9), 0),
    ];
    assert_eq!(seen, expected);
    assert!(results[1..].iter().all(|result| result.metrics.count("a") == Some(8)));
    assert_eq!(report.count_of(EntryKind::Graph), 2);
    assert!(results[1..4].iter().all(|result| report.source_of(result).is_some_and(|data| data.cubin.is_some())));
}

#[test]
fn processes_have_their_own_code_under_the_same_reference() {
    let block = |id, name, cubin: &[u8]| Block {
        process: Some((id, name)),
        sources: vec![source(1, cubin)],
        kernels: vec![message().text(7, name).message(15, message().varint(1, 1))],
        ..Block::default()
    };
    let report = read(&file(&[block(10, "one", b"first"), block(20, "two", b"second"), block(10, "one", b"unused")]));
    let results = all_of(&report);
    assert_eq!(report.processes().iter().map(|process| process.id).collect::<Vec<_>>(), [10, 20]);
    let cubins: Vec<_> = results.iter().map(|result| report.source_of(result).unwrap().cubin.unwrap()).collect();
    assert_eq!(cubins, [b"first".to_vec(), b"second".to_vec(), b"first".to_vec()]);
    assert_eq!(results.iter().map(|result| result.process).collect::<Vec<_>>(), [Some(0), Some(1), Some(0)]);
}

#[test]
fn source_data_comes_in_pieces() {
    let function = |symbol: &str, address| message().message(1, message().text(1, symbol).varint(2, address));
    let file_of = |path: &str| message().message(1, message().text(1, path).text(2, "text"));
    let pieces = vec![
        source(1, b"cubin").message(9, function("f", 0x1000)),
        message().varint(1, 1).varint(6, 0x9_0000).message(8, file_of("a.cu")).message(9, function("g", 0x2000)),
        message().varint(1, 1).message(8, file_of("b.cu")).message(9, function("f", 0x3000)),
    ];
    let kernels = vec![message().message(15, message().varint(1, 1))];
    let report = read(&file(&[Block { sources: pieces, kernels, ..Block::default() }]));
    let data = report.source_of(&all_of(&report)[0]).unwrap();
    assert_eq!((data.cubin.as_deref(), data.sm_revision), (Some(&b"cubin"[..]), Some(0x9_0000)));
    assert_eq!(data.files.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(), ["a.cu", "b.cu"]);
    assert_eq!((data.address_of("f"), data.address_of("g"), data.address_of("h")), (Some(0x3000), Some(0x2000), None));
}

#[test]
fn facts_about_the_session_are_merged_over_blocks() {
    let version = |provider: &str, version: &str| message().text(1, provider).text(2, version);
    let device = message().varint(1, 3).text(2, "GPU").message(3, message().text(1, "multiprocessor_count").message(2, count(132)));
    let sessions = [
        message().varint(2, 100).message(8, version("Nsight Compute Target", "2025.3.1.0 (build 1)")),
        message().message(8, version("CUDA Version", "13.0")).message(6, device),
        message().varint(2, 200).text(11, "ncu --set full -- app --token=secret"),
    ];
    let blocks = sessions.map(|session| Block { session: Some(session), ..Block::default() });
    let report = read(&file(&blocks));
    let session = report.session();
    assert_eq!((session.created, session.ncu_version(), session.version("CUDA Version")), (Some(200), Some("2025.3.1.0"), Some("13.0")));
    assert_eq!((session.devices[0].id, session.devices[0].number("multiprocessor_count")), (3, Some(132)));
    assert_eq!(session.settings, [("set", "full".to_owned())]);
}

#[test]
fn later_versions_are_read_as_far_as_they_are_known() {
    let kernel = kernel("k", &[metric(0, count(1).unknown()).unknown()]).unknown();
    let later = Block { names: vec!["a"], kernels: vec![kernel], extra: message().unknown(), ..Block::default() };
    let mut bytes = start(8);
    let (header, mut payload) = block(&later);
    // A payload of a kind that comes behind all known ones.
    let size = payload.len() as u64;
    put_sized(b"a later kind of result", &mut payload);
    let header = message().bytes(900, &header.0).0.into_iter().chain(header.0).collect::<Vec<_>>();
    let mut header = crate::encode::Message(header);
    header = header.varint(5, size + 26);
    put_sized(&header.0, &mut bytes);
    bytes.extend(payload);
    let (header, payload) = block(&Block { kernels: vec![crate::encode::kernel("behind", &[])], ..Block::default() });
    put_sized(&header.0, &mut bytes);
    bytes.extend(payload);
    let report = read(&bytes);
    let results = all_of(&report);
    assert_eq!(results.iter().map(|result| result.name.as_str()).collect::<Vec<_>>(), ["k()", "behind()"]);
    assert_eq!(results[0].metrics.count("a"), Some(1));
    assert_eq!(codes(&report), [(TroubleCode::UnknownReportVersion, 1)]);
}

#[test]
fn estimates_and_focus_metrics_belong_to_the_message_before_them() {
    let item = |number, part| message().message(1, message().message(number, part));
    let said = |text: &str, kind| item(1, message().text(1, text).varint(2, kind));
    let speedup = |scope, percent| item(10, message().varint(1, scope).double(2, percent));
    let body = [
        speedup(2, 99.0),
        said("See @section:Occupancy:Occupancy@.", 4),
        item(8, message().text(2, "metric").double(3, 1.5).text(5, "Decrease")),
        speedup(1, 12.5),
        said("plain", 9),
        speedup(3, 1.0),
        said("no number", 2),
        speedup(2, f64::NAN),
    ];
    let body = crate::encode::Message(body.into_iter().flat_map(|part| part.0).collect());
    let rule = message().text(1, "Rule").text(2, "Title").message(3, body).text(4, "Section");
    let silent = message().text(1, "Silent").message(3, message());
    let kernels = vec![kernel("k", &[]).message(19, rule).message(19, silent)];
    let [result] = &whole(&file(&[Block { kernels, ..Block::default() }]))[..] else { panic!("not one result") };
    let messages = &result.rules[0].messages;
    assert_eq!((result.rules.len(), messages.len(), result.rules[1].messages.len()), (2, 3, 0));
    assert_eq!((messages[0].text.as_str(), messages[0].kind), ("See Occupancy.", MessageKind::Optimization));
    assert_eq!(messages[0].speedup, Some((Scope::Local, 12.5)));
    assert_eq!((messages[0].focus[0].name.as_str(), messages[0].focus[0].value), ("metric", Some(1.5)));
    assert_eq!((messages[1].kind, messages[1].speedup), (MessageKind::Plain, None));
    assert_eq!((messages[2].kind, messages[2].speedup), (MessageKind::Warning, None));
}

#[test]
fn ranges_of_the_launching_thread_and_started_ones_are_read() {
    let pushed = |names: &[&str]| names.iter().fold(message(), |list, name| list.message(3, message().text(1, name)));
    let on = |thread, domain, names: &[&str]| {
        let stack = crate::encode::Message([message().varint(1, domain).0, pushed(names).0].concat());
        message().varint(1, thread).message(2, stack)
    };
    let state = message()
        .message(1, message().varint(1, 0).text(2, "<default domain>"))
        .message(1, message().varint(1, 4).text(2, "NCCL"))
        .message(2, on(77, 0, &["outer", "inner"]))
        .message(2, on(78, 0, &["of another thread"]))
        .message(3, message().varint(1, 4).message(3, message().varint(1, 1).text(2, "started")));
    let kernels = vec![kernel("k", &[]).message(21, state)];
    let [result] = &whole(&file(&[Block { kernels, ..Block::default() }]))[..] else { panic!("not one result") };
    let seen: Vec<_> = result.nvtx.iter().map(|range| (range.name.as_str(), range.domain.as_deref())).collect();
    assert_eq!(seen, [("outer", None), ("inner", None), ("started", Some("NCCL"))]);
}
