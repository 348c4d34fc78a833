//! Files read back: every value, and nothing that was not recorded.

#![expect(clippy::unwrap_used, reason = "a helper that cannot go on fails its test")]

use std::borrow::Cow;

use bytes::Bytes;
use longpole_parquet::{ColumnKind, Export, Problem, ROWS_A_GROUP, Table, columns};
use longpole_trace::{
    Activity, ActivityKind, ApiCall, Detail, HostOp, Lane, LaunchConfig, MemcpyKind, MemoryEvent, MemoryPlace, Ns, RankInfo, Tid, Trace,
    TraceBuilder, Transfer,
};
use parquet::basic::Encoding;
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::Field;

/// Names that would act elsewhere.
const HOSTILE: &str = "=cmd<script>\u{1b}[31m\u{202e}\0\"',\n\t";

fn sample(kernels: usize) -> Trace {
    let mut builder = TraceBuilder::new();
    let rank = builder.add_rank(RankInfo { label: "r".to_owned(), rank: 3, ..RankInfo::default() });
    let process = builder.process(rank, 100);
    let thread = builder.thread(process, Tid::Text("worker".to_owned()));
    let device = builder.device(rank, 1);
    let lane = builder.lane(Lane { device, context: None, stream: 7 });
    let launch = LaunchConfig { grid: Some([1, 2, u32::MAX]), block: Some([32, 1, 1]), registers_per_thread: None, shared_bytes: Some(0) };
    let launch = builder.detail(Detail::Launch(launch));
    let copy = Transfer { bytes: Some(u64::MAX - 1), kind: MemcpyKind::DeviceToHost, pageable: Some(false) };
    let copy = builder.detail(Detail::Transfer(copy));
    builder.trace_mut().base_unix_ns = Some(1_700_000_000_000_000_000);
    let [op, call, kernel, memcpy] =
        ["aten::mm", "cudaLaunchKernel", HOSTILE, "Memcpy"].map(|name| builder.trace_mut().strings.intern(name));
    let host =
        HostOp { name: op, thread, start: Ns(-5), dur: Ns(50), external_id: None, shapes: None, types: None, strides: None, values: None };
    builder.push_host_op(host);
    for number in 0..kernels as u64 {
        let start = Ns(10 + number as i64);
        builder.push_api_call(ApiCall {
            name: call,
            thread,
            start,
            dur: Ns(1),
            correlation: Some(u64::MAX - 1 - number),
            external_id: None,
        });
        let (kind, name, detail) =
            if number % 2 == 0 { (ActivityKind::Kernel, kernel, launch) } else { (ActivityKind::Memcpy, memcpy, copy) };
        builder.push_activity(Activity {
            kind,
            name,
            lane,
            start: start + Ns(100),
            dur: Ns(number as i64),
            correlation: Some(u64::MAX - 1 - number),
            external_id: None,
            detail: Some(detail),
            graph_node: None,
        });
    }
    let place = MemoryPlace::Device;
    builder.push_memory_event(MemoryEvent {
        thread,
        start: Ns(1),
        bytes: -512,
        place,
        device: Some(1),
        total_allocated: Some(0),
        total_reserved: None,
    });
    builder.finish()
}

fn written(trace: &Trace, table: Table, includes: &dyn Fn(Table, usize) -> bool, rewrite: &dyn Fn(&str) -> Cow<'_, str>) -> Vec<u8> {
    let problems = [Problem { code: "c".to_owned(), severity: "info".to_owned(), count: 2, message: "m".to_owned(), hint: String::new() }];
    let export = Export {
        trace,
        includes,
        call: &|activity| (activity.0 != 1).then_some(activity.0),
        op: &|_| Some(0),
        family: &|kind, _| if kind == ActivityKind::Kernel { "other" } else { "memcpy" },
        rewrite,
        problems: &problems,
        metadata: &[("source", "trace.json".to_owned())],
    };
    let mut out = Vec::new();
    export.write(table, &mut out).unwrap();
    out
}

fn same(text: &str) -> Cow<'_, str> {
    Cow::Borrowed(text)
}

fn read(bytes: Vec<u8>) -> Vec<Vec<Field>> {
    let reader = SerializedFileReader::new(Bytes::from(bytes)).unwrap();
    reader.get_row_iter(None).unwrap().map(|row| row.unwrap().get_column_iter().map(|(_, field)| field.clone()).collect()).collect()
}

#[test]
fn every_value_is_what_the_trace_has() {
    let trace = sample(3);
    let rows = read(written(&trace, Table::Activities, &|_, _| true, &same));
    let cell = |row: usize, name: &str| {
        let at = columns(Table::Activities).iter().position(|column| column.0 == name).unwrap();
        rows[row][at].clone()
    };
    assert_eq!(rows.len(), 3);
    assert_eq!(cell(0, "name"), Field::Str(HOSTILE.to_owned()));
    assert_eq!((cell(0, "kind"), cell(1, "kind")), (Field::Str("kernel".to_owned()), Field::Str("memcpy".to_owned())));
    assert_eq!((cell(2, "start_ns"), cell(2, "dur_ns"), cell(2, "row")), (Field::Long(112), Field::Long(2), Field::Long(2)));
    assert_eq!((cell(0, "rank"), cell(0, "device"), cell(0, "context")), (Field::Long(3), Field::Long(1), Field::Null));
    assert_eq!((cell(0, "correlation"), cell(1, "bytes")), (Field::ULong(u64::MAX - 1), Field::ULong(u64::MAX - 1)));
    assert_eq!((cell(0, "call"), cell(1, "call"), cell(1, "op")), (Field::Long(0), Field::Null, Field::Long(0)));
    assert_eq!((cell(0, "grid_z"), cell(1, "grid_z")), (Field::Long(i64::from(u32::MAX)), Field::Null));
    assert_eq!((cell(0, "registers_per_thread"), cell(0, "shared_bytes")), (Field::Null, Field::Long(0)));
    assert_eq!((cell(1, "copy"), cell(0, "copy")), (Field::Str("device_to_host".to_owned()), Field::Null));
    assert_eq!((cell(1, "pageable"), cell(0, "pageable")), (Field::Bool(false), Field::Null));
    let memory = read(written(&trace, Table::MemoryEvents, &|_, _| true, &same));
    assert_eq!(memory[0][5..], [Field::Long(-512), Field::ULong(0), Field::Null]);
    let threads = read(written(&trace, Table::Threads, &|_, _| true, &same));
    assert_eq!(threads[0][1..5], [Field::Long(3), Field::Long(100), Field::Null, Field::Str("worker".to_owned())]);
}

#[test]
fn a_table_without_rows_has_its_columns() {
    let trace = TraceBuilder::new().finish();
    for table in Table::ALL {
        let bytes = written(&trace, table, &|table, _| table == Table::Problems, &same);
        let reader = SerializedFileReader::new(Bytes::from(bytes)).unwrap();
        let schema = reader.metadata().file_metadata().schema_descr();
        let names: Vec<_> = schema.columns().iter().map(|column| column.name().to_owned()).collect();
        assert_eq!(names, columns(table).iter().map(|column| column.0).collect::<Vec<_>>());
        assert_eq!(reader.metadata().file_metadata().num_rows(), i64::from(table == Table::Problems));
    }
}

#[test]
fn only_what_is_asked_for_is_written_and_names_are_rewritten() {
    let trace = sample(10);
    let rows = read(written(&trace, Table::Activities, &|_, row| row % 3 == 0, &|text| Cow::Owned(text.to_uppercase())));
    assert_eq!(rows.iter().map(|row| row[0].clone()).collect::<Vec<_>>(), [0, 3, 6, 9].map(Field::Long));
    assert_eq!(rows[1][2], Field::Str("MEMCPY".to_owned()));
}

#[test]
fn groups_are_bounded_and_names_are_in_dictionaries() {
    let trace = sample(ROWS_A_GROUP + 1);
    let reader = SerializedFileReader::new(Bytes::from(written(&trace, Table::Activities, &|_, _| true, &same))).unwrap();
    let metadata = reader.metadata();
    let rows: Vec<_> = metadata.row_groups().iter().map(parquet::file::metadata::RowGroupMetaData::num_rows).collect();
    assert_eq!(rows, [ROWS_A_GROUP as i64, 1]);
    for (at, (name, kind, ..)) in columns(Table::Activities).into_iter().enumerate() {
        let encodings: Vec<_> = metadata.row_group(0).column(at).encodings().collect();
        assert_eq!(
            encodings.contains(&Encoding::RLE_DICTIONARY),
            kind == ColumnKind::Text || (kind != ColumnKind::Rising && kind != ColumnKind::Flag),
            "{name}: {encodings:?}"
        );
    }
    let about = metadata.file_metadata().key_value_metadata().unwrap();
    let value = |key: &str| about.iter().find(|entry| entry.key == key).and_then(|entry| entry.value.clone()).unwrap();
    assert_eq!((value("longpole.base_unix_ns"), value("longpole.source")), ("1700000000000000000".to_owned(), "trace.json".to_owned()));
    assert!(value("longpole.columns").contains("dur_ns: duration in ns\n"));
}

#[test]
fn the_documentation_lists_every_column() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/export.md")).unwrap();
    for table in Table::ALL {
        let heading = format!("### `{}`\n", table.name());
        let section = page.split(&heading).nth(1).unwrap_or_else(|| panic!("{heading}")).split("\n#").next().unwrap();
        let rows: Vec<_> = section.lines().filter(|line| line.starts_with("| `")).collect();
        let expected: Vec<_> = columns(table)
            .iter()
            .map(|(name, kind, is_required, what)| {
                format!("| `{name}` | {}{} | {what} |", kind.name(), if *is_required { "" } else { ", may be missing" })
            })
            .collect();
        assert_eq!(rows, expected, "{}", table.name());
    }
}
