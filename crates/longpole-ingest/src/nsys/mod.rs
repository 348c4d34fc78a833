//! Nsight Systems, as `nsys export --type sqlite` writes it: any schema, since tables and columns are found by name and all are optional.
//!
//! [`database`] opens the file so that nothing in it can act; [`scan`] reads a table by stretches of row numbers on several connections;
//! [`rows`] makes numbers of rows, [`merge`] adds them to the trace in file order, with texts from [`names`]. Which process is which
//! recording is for [`recordings`], hardware for [`target`], what PyTorch writes into ranges for [`nvtx`]. [`feed`] lets records of CUPTI and
//! NVTX that stand in no database go the same way.

mod database;
pub(crate) mod export;
pub(crate) mod feed;
mod merge;
mod names;
mod nvtx;
mod recordings;
mod rows;
mod samples;
mod scan;
mod tables;
mod target;

use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use longpole_trace::{EventWindow, ProblemCode, Problems, RankInfo, TraceBuilder};

use crate::formats::{Reading, Report};
use crate::kineto::FileFacts;
use database::{Database, Table};
use merge::{EventRecords, Merger};
use names::Names;
use recordings::{Processes, process_of, split};
use rows::Rows;
use samples::Leaves;
use scan::{Scan, Values};
use target::Target;

/// What to do with an export that holds no work.
const RECORD: &str = "record with `nsys profile --trace=cuda,nvtx`, then `nsys export --type sqlite REPORT.nsys-rep`";

/// Why an event is set aside for its times.
const SET_ASIDE: [ProblemCode; 4] =
    [ProblemCode::MissingTime, ProblemCode::UnsetTime, ProblemCode::StrayTime, ProblemCode::ImplausibleDuration];

/// A row with times takes at least this many bytes of a file.
const USUAL_ROW: u64 = 16;

/// Whether the first bytes may be an export.
pub(crate) fn looks_like_sqlite(head: &[u8]) -> bool {
    head.starts_with(b"SQLite format 3\0")
}

/// Reads an export that comes as a stream: SQLite needs a file, so it is copied to a temporary one.
pub(crate) fn read_stream(
    input: &mut dyn Read,
    consumed: &AtomicU64,
    reading: Reading,
    builder: &mut TraceBuilder,
    rank: u32,
    report: Report<'_>,
) -> io::Result<Vec<FileFacts>> {
    let mut copy = tempfile::NamedTempFile::new()?;
    let (mut buffer, mut cut) = (vec![0; 1 << 20], None);
    loop {
        match input.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => {
                copy.write_all(&buffer[..read])?;
                report(consumed.load(Ordering::Relaxed));
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => {
                cut = Some(error.to_string());
                break;
            }
        }
    }
    copy.flush()?;
    let mut documents = read(copy.path(), reading, builder, rank, &|_| ())?;
    if let (Some(cause), Some(facts)) = (cut, documents.first_mut()) {
        if let Some((found, hint)) = &mut facts.unusable {
            *found = format!("{found}, out of a compressed stream that is cut or damaged ({cause})");
            *hint = "copy the file again, or export it again";
        }
        facts.problems.add(ProblemCode::DamagedCompression, None, || Some(cause));
    }
    Ok(documents)
}

/// Reads an export into `builder`, as its recording `rank`; processes with GPUs of their own become recordings that follow.
pub(crate) fn read(path: &Path, reading: Reading, builder: &mut TraceBuilder, rank: u32, report: Report<'_>) -> io::Result<Vec<FileFacts>> {
    let bytes = fs::metadata(path)?.len();
    let mut problems = Problems::default();
    let unusable =
        |found: String, hint: &'static str| FileFacts { recording: rank, bytes, unusable: Some((found, hint)), ..FileFacts::default() };
    let database = match Database::open(path, bytes, &mut problems) {
        Ok(database) => database,
        Err(error) => {
            return Ok(vec![unusable(
                format!("an SQLite database that cannot be opened ({error})"),
                "copy the file again, or export it again",
            )]);
        }
    };
    let known: Vec<&str> = database.names().into_iter().filter(|name| tables::is_read(name)).collect();
    if known.is_empty() {
        let found = format!("an SQLite database without the tables of an Nsight Systems export{}", listed(&database.names()));
        return Ok(vec![unusable(found, RECORD)]);
    }
    let target = Target::read(&database, &mut problems);
    let threads = reading.threads.max(1);
    let separate = recordings::separate(&database, &target, threads, &mut problems);
    let own = add_recordings(builder, rank, &separate);
    let says_whose = |name: &str, column: &str| database.table(name).is_none_or(|table| table.has(column));
    let says_whose = tables::DEVICE_WORK.iter().all(|name| says_whose(name, "globalPid")) && says_whose(tables::CALLS, "globalTid");
    let connection = database.lend().ok();
    let names = Names::new(&database, connection.as_ref(), &mut builder.trace_mut().strings, &mut problems);
    let mut merger = Merger::new(builder, names, Processes::new(own.clone(), rank, says_whose), problems);
    read_tables(&database, threads, &mut merger, report);
    name_threads(&database, &mut merger);
    note_unused(&database, &mut merger.problems);
    if merger.graphs > 0 {
        let graphs = merger.graphs;
        merger.problems.add_many(ProblemCode::GraphLevelTrace, graphs, None, || None);
    }
    if merger.operators > 0 {
        let operators = merger.operators;
        merger.problems.add_many(ProblemCode::OperatorsFromRanges, operators, None, || None);
    }
    let window = merger.finish();
    let mut documents = vec![FileFacts { recording: rank, bytes, window, events: merger.events, ..FileFacts::default() }];
    documents.extend(own.values().filter(|recording| **recording != rank).map(|recording| FileFacts {
        recording: *recording,
        window: EventWindow::default(),
        ..FileFacts::default()
    }));
    documents.sort_by_key(|facts| facts.recording);
    for facts in &mut documents {
        facts.marks = merger.marks();
        facts.base_ns = target.base_ns;
        let devices = merger.devices.iter().filter(|((recording, _), _)| *recording == facts.recording);
        facts.devices = devices
            .filter_map(|((_, device), process)| {
                Some((*device, target.properties(process.map(|process| split(process).0), *device)?.clone()))
            })
            .collect();
    }
    let damaged = merger.problems.get(ProblemCode::DamagedPages).is_some();
    documents[0].problems = std::mem::take(&mut merger.problems);
    let set_aside: u64 = SET_ASIDE.iter().filter_map(|code| documents[0].problems.get(*code)).map(|problem| problem.count).sum();
    let found = if damaged {
        "an Nsight Systems export too damaged to read".to_owned()
    } else if set_aside > 0 {
        format!("an Nsight Systems export whose {set_aside} events were all set aside: their times are missing or cannot be right")
    } else {
        "an Nsight Systems export without calls, ranges or device work".to_owned()
    };
    documents[0].unusable = Some((found, RECORD));
    Ok(documents)
}

/// The first few of some names, for a message.
fn listed(names: &[&str]) -> String {
    let shown: Vec<String> =
        names.iter().take(4).map(|name| format!("`{}`", name.chars().take(40).collect::<String>().escape_debug())).collect();
    if shown.is_empty() { String::new() } else { format!(" (it has {})", shown.join(", ")) }
}

/// Gives each process that is a recording its own, the first that of the file.
fn add_recordings(builder: &mut TraceBuilder, rank: u32, processes: &[i64]) -> HashMap<i64, u32, FixedState> {
    let label = builder.trace_mut().ranks.get(rank as usize).map_or_else(String::new, |info| info.label.clone());
    let mut own = HashMap::default();
    for (at, process) in processes.iter().enumerate() {
        let label = format!("{label} (process {})", split(*process).0);
        let recording = if at == 0 {
            if let Some(info) = builder.trace_mut().ranks.get_mut(rank as usize) {
                info.label = label;
            }
            rank
        } else {
            builder.add_rank(RankInfo { label, ..RankInfo::default() })
        };
        own.insert(*process, recording);
    }
    own
}

/// How a row of a table is made.
type Make = fn(&mut Rows, &mut Values<'_, '_>);

/// Reads all tables with events.
fn read_tables(database: &Database, threads: usize, merger: &mut Merger<'_, '_>, report: Report<'_>) {
    read_domains(database, threads, merger);
    read_event_records(database, merger);
    merger.leaves = Leaves::read(database, threads, merger);
    // Calls and ranges come before what is only of use on their threads.
    let plan: [(&str, &[&str], Make); 11] = [
        (tables::KERNELS, tables::KERNEL_COLUMNS, Rows::kernel),
        (tables::COPIES, tables::COPY_COLUMNS, Rows::copy),
        (tables::FILLS, tables::FILL_COLUMNS, Rows::fill),
        (tables::GRAPHS, tables::GRAPH_COLUMNS, Rows::graph),
        (tables::CALLS, tables::CALL_COLUMNS, Rows::call),
        (tables::RANGES, tables::RANGE_COLUMNS, Rows::range),
        (tables::SYNCS, tables::SYNC_COLUMNS, Rows::sync),
        (tables::OVERHEADS[0], tables::OVERHEAD_COLUMNS, Rows::overhead),
        (tables::OVERHEADS[1], tables::OVERHEAD_COLUMNS, Rows::overhead),
        (tables::OS_CALLS, tables::OS_CALL_COLUMNS, Rows::os_call),
        (tables::SAMPLES, tables::SAMPLE_COLUMNS, Rows::sample),
    ];
    let scans: Vec<(Scan<'_>, Make)> = plan
        .into_iter()
        .filter_map(|(name, columns, make)| Some((Scan::new(database, database.table(name)?, columns, None), make)))
        .collect();
    let (all, mut done) = (scans.iter().map(|(scan, _)| scan.stretches()).sum::<u64>().max(1), 0_u64);
    let mut problems = Problems::default();
    // Row numbers with holes promise more rows than the file can hold, in all tables together.
    let mut room = database.bytes / USUAL_ROW;
    for (scan, make) in &scans {
        let rows = scan.expected_rows().min(room);
        room -= rows;
        match scan.table.name.as_str() {
            tables::CALLS => merger.builder.announce_api_calls(rows as usize),
            tables::RANGES => merger.builder.announce_ranges(rows as usize),
            name if tables::DEVICE_WORK.contains(&name) => merger.builder.announce_activities(rows as usize),
            _ => {}
        }
        scan.run(threads, &mut problems, make, |rows| {
            merger.take(rows);
            done += 1;
            report((u128::from(database.bytes) * u128::from(done) / u128::from(all)) as u64);
        });
    }
    merger.problems.extend(problems);
}

/// Process, domain, and its name as a text or a number.
type DomainRow = (i64, i64, Option<Vec<u8>>, Option<i64>);

/// Names of NVTX domains.
fn read_domains(database: &Database, threads: usize, merger: &mut Merger<'_, '_>) {
    let Some(table) = database.table(tables::RANGES).filter(|table| table.has("eventType") && table.has("domainId")) else { return };
    let make = |found: &mut Vec<DomainRow>, values: &mut Values<'_, '_>| {
        let text = values.text(2).filter(|text| !text.is_empty()).map(<[u8]>::to_vec);
        found.push((process_of(values.int(0).unwrap_or(0)), values.int(1).unwrap_or(0), text, values.int(3)));
    };
    let mut problems = Problems::default();
    let scan = Scan::new(database, table, &["globalTid", "domainId", "text", "textId"], Some("\"eventType\" = 75"));
    scan.run(threads, &mut problems, make, |found: &mut Vec<DomainRow>| {
        for (process, domain, text, id) in found.drain(..) {
            let strings = &mut merger.builder.trace_mut().strings;
            let name = match (text, id) {
                (Some(text), _) => names::intern(strings, &text, &mut merger.problems),
                (None, Some(id)) => merger.names.get(id, strings, &mut merger.problems),
                (None, None) => continue,
            };
            merger.domains.entry((process, domain)).or_insert(name);
        }
    });
}

/// Which stream and call recorded each event, where events are told apart.
fn read_event_records(database: &Database, merger: &mut Merger<'_, '_>) {
    let Some(table) = database.table(tables::EVENTS).filter(|table| table.has("eventSyncId")) else { return };
    let make =
        |found: &mut Vec<[Option<i64>; 5]>, values: &mut Values<'_, '_>| found.push(std::array::from_fn(|column| values.int(column)));
    let mut records = EventRecords::default();
    let scan = Scan::new(database, table, tables::EVENT_COLUMNS, None);
    let mut problems = Problems::default();
    scan.run(1, &mut problems, make, |found| {
        for [stream, call, process, event, sync] in found.drain(..) {
            if let (Some(event), Some(sync)) = (event, sync) {
                let call = call.and_then(|call| u64::try_from(call).ok());
                records.insert((process.map_or(0, process_of), event, sync), (stream, call));
            }
        }
    });
    merger.records = records;
    merger.problems.extend(problems);
}

/// Names of processes and threads.
fn name_threads(database: &Database, merger: &mut Merger<'_, '_>) {
    let mut problems = Problems::default();
    if let Some(table) = database.table(tables::PROCESSES) {
        let make = |found: &mut Vec<(i64, Vec<u8>)>, values: &mut Values<'_, '_>| {
            if let Some((process, name)) = values.int(0).zip(values.text(1)) {
                found.push((process, name.to_vec()));
            }
        };
        Scan::new(database, table, &["globalPid", "name"], None).run(1, &mut problems, make, |found| {
            for (process, name) in found.drain(..) {
                let name = names::intern(&mut merger.builder.trace_mut().strings, &name, &mut merger.problems);
                let recording = merger.processes.recording(Some(process_of(process)));
                merger.builder.name_process(recording, split(process).0, name);
            }
        });
    }
    if let Some(table) = database.table(tables::THREADS) {
        let make = |found: &mut Vec<(i64, i64)>, values: &mut Values<'_, '_>| found.extend(values.int(0).zip(values.int(1)));
        Scan::new(database, table, &["globalTid", "nameId"], None).run(1, &mut problems, make, |found| {
            for (thread, name) in found.drain(..) {
                merger.name_thread(thread, name);
            }
        });
    }
    merger.problems.extend(problems);
}

/// Says which tables with rows nobody looks at.
fn note_unused(database: &Database, problems: &mut Problems) {
    let has_rows = |table: &&Table| database.has_rows(table);
    let unused: Vec<&str> =
        tables::UNUSED.iter().filter(|(name, _)| database.table(name).as_ref().is_some_and(has_rows)).map(|(_, what)| *what).collect();
    problems.add_many(ProblemCode::UnusedTables, unused.len() as u64, None, || Some(unused.join(", ")));
}
