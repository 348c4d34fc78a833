//! Just enough of a report for these tests: the code, load addresses and source files of its kernels, and NVIDIA's own source page.

use crate::source::{SampleRow, StallCount};
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

/// Where recorded reports are: the folder named in `LONGPOLE_SHARED`, else one beside the repository. `None` where there are none.
pub(super) fn folder() -> Option<PathBuf> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let shared = std::env::var_os("LONGPOLE_SHARED").map_or_else(|| root.join("../shared"), PathBuf::from);
    let folder = shared.join("corpus/ncu");
    folder.is_dir().then_some(folder)
}

/// A line for whoever runs the tests.
pub(super) fn say(line: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// The code one or more kernels of a report share.
pub(super) struct Source {
    pub(super) cubin: Vec<u8>,
    /// Mangled name -> load address.
    pub(super) functions: Vec<(String, u64)>,
    pub(super) files: Vec<(String, String)>,
}

/// One kernel of NVIDIA's source page.
pub(super) struct Page {
    pub(super) kernel: String,
    /// SASS text by absolute address.
    pub(super) sass: Vec<(u64, String)>,
    pub(super) rows: Vec<SampleRow>,
}

/// All code in a report file.
pub(super) fn sources(name: &str) -> Vec<Source> {
    let mut found = Vec::new();
    for_each_block(name, |_, entries| found.extend(entries.0.iter().filter_map(|entry| source(entry))));
    found
}

/// How often each mnemonic was executed, as the profiler itself counts it: mangled kernel name and instances of the metric.
pub(super) fn opcode_counts(name: &str) -> Vec<(String, BTreeMap<String, u64>)> {
    let mut strings = Vec::new();
    for_each_block(name, |header, _| {
        for (_, _, table) in header.iter().filter(|(field, _, _)| *field == 4) {
            strings.extend(fields(table).into_iter().map(|(_, _, text)| String::from_utf8_lossy(text).into_owned()));
        }
    });
    let metric = strings.iter().position(|name| name == "sass__inst_executed_per_opcode").unwrap() as u64;
    let mut counts = Vec::new();
    for_each_block(name, |_, entries| {
        for result in entries.1 {
            let parts = fields(result);
            let function = parts.iter().find(|(field, _, _)| *field == 5).unwrap().2;
            let instances = parts.iter().filter(|(field, _, _)| *field == 13).map(|(_, _, message)| fields(message));
            let instances = instances.filter(|message| message.iter().any(|&(field, id, _)| field == 1 && id == metric)).flatten();
            // An instance has the mnemonic as its correlation id (a string value) and a number.
            let pairs = instances.filter(|(field, _, _)| *field == 3).map(|(_, _, instance)| {
                let sides = fields(instance);
                let (mnemonic, count) = (fields(sides[0].2), fields(sides[1].2));
                // Field 3 is a double, field 5 an integer.
                let number = if count[0].0 == 3 { f64::from_bits(count[0].1) as u64 } else { count[0].1 };
                (String::from_utf8_lossy(mnemonic[0].2).into_owned(), number)
            });
            counts.push((String::from_utf8_lossy(function).into_owned(), pairs.collect()));
        }
    });
    counts
}

/// Gives the fields of each block's header, and the block's sources and kernel results.
fn for_each_block(name: &str, mut visit: impl FnMut(&[(u64, u64, &[u8])], (&[&[u8]], &[&[u8]]))) {
    let bytes = std::fs::read(folder().unwrap().join(name)).unwrap();
    let mut at = 8 + word(&bytes, 4);
    while at < bytes.len() {
        let header_size = word(&bytes, at);
        let header = fields(&bytes[at + 4..at + 4 + header_size]);
        let number = |field: u64| header.iter().find(|(name, _, _)| *name == field).map_or(0, |(_, value, _)| *value as usize);
        let payload = at + 4 + header_size;
        let mut entry = payload;
        let mut entries = Vec::new();
        for _ in 0..number(1) + number(2) {
            let size = word(&bytes, entry);
            entries.push(&bytes[entry + 4..entry + 4 + size]);
            entry += 4 + size;
        }
        let (sources, results) = entries.split_at(number(1));
        visit(&header, (sources, results));
        at = payload + number(5);
    }
}

fn source(message: &[u8]) -> Option<Source> {
    let mut source = Source { cubin: Vec::new(), functions: Vec::new(), files: Vec::new() };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    for (field, _, bytes) in fields(message) {
        match field {
            4 => source.cubin = bytes.to_vec(),
            8 => {
                for (_, _, file) in fields(bytes) {
                    let parts = fields(file);
                    source.files.push((text(parts[0].2), text(parts[1].2)));
                }
            }
            9 => {
                for (_, _, function) in fields(bytes).into_iter().filter(|(field, _, _)| *field == 1) {
                    let parts = fields(function);
                    source.functions.push((text(parts[0].2), parts[1].1));
                }
            }
            _ => {}
        }
    }
    (!source.cubin.is_empty()).then_some(source)
}

fn word(bytes: &[u8], at: usize) -> usize {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize
}

/// Field number, value, bytes of every field of a protobuf message.
fn fields(mut bytes: &[u8]) -> Vec<(u64, u64, &[u8])> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        match key & 7 {
            0 => found.push((key >> 3, varint(&mut bytes), &[][..])),
            1 => {
                let (value, rest) = bytes.split_at(8);
                found.push((key >> 3, u64::from_le_bytes(value.try_into().unwrap()), value));
                bytes = rest;
            }
            2 => {
                let size = varint(&mut bytes) as usize;
                let (value, rest) = bytes.split_at(size);
                found.push((key >> 3, 0, value));
                bytes = rest;
            }
            5 => {
                let (value, rest) = bytes.split_at(4);
                found.push((key >> 3, 0, value));
                bytes = rest;
            }
            other => panic!("wire type {other}"),
        }
    }
    found
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    let mut shift = 0;
    loop {
        let byte = bytes[0];
        *bytes = &bytes[1..];
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return value;
        }
        shift += 7;
    }
}

/// The kernels of a source page in CSV form.
pub(super) fn pages(name: &str) -> Vec<Page> {
    let text = std::fs::read_to_string(folder().unwrap().join(name)).unwrap();
    let mut pages: Vec<Page> = Vec::new();
    let mut columns: Vec<String> = Vec::new();
    for line in text.lines() {
        let cells = csv_cells(line);
        match cells.first().map(String::as_str) {
            Some("Kernel Name") => {
                pages.push(Page { kernel: cells[1].clone(), sass: Vec::new(), rows: Vec::new() });
            }
            Some("Address") => columns = cells,
            Some(address) if address.starts_with("0x") => {
                let page = pages.last_mut().unwrap();
                let cell: HashMap<&str, &str> = columns.iter().map(String::as_str).zip(cells.iter().map(String::as_str)).collect();
                let number = |name: &str| cell[name].parse::<u64>().unwrap();
                let address = u64::from_str_radix(&address[2..], 16).unwrap();
                let sass = cell["Source"].split_whitespace().collect::<Vec<_>>().join(" ");
                let stalls = columns
                    .iter()
                    .filter(|name| !name.contains('('))
                    .filter_map(|name| Some(StallCount { reason: name.strip_prefix("stall_")?.to_owned(), samples: number(name) }))
                    .collect();
                page.sass.push((address, sass));
                page.rows.push(SampleRow {
                    address,
                    samples: number("# Samples"),
                    not_issued: Some(number("Warp Stall Sampling (Not-issued Samples)")),
                    stalls,
                    executed: Some(number("Instructions Executed")),
                    threads_executed: Some(number("Thread Instructions Executed")),
                });
            }
            _ => {}
        }
    }
    pages
}

fn csv_cells(line: &str) -> Vec<String> {
    line.trim_end_matches(',').trim_matches('"').split("\",\"").map(str::to_owned).collect()
}

/// The address of a kernel's code and its mangled name: the source page gives only the demangled one.
pub(super) fn function_of<'a>(source: &'a Source, page: &Page) -> Option<&'a (String, u64)> {
    let first = page.sass.first()?.0;
    source.functions.iter().find(|(_, address)| *address == first)
}
