//! A report, opened for one command, and how its results are printed.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::Path;

use longpole_analysis::{Family, short_names};
use longpole_ncu::{Device, EntryKind, Page, Report, Trouble, TroubleCode};
use longpole_report::{
    Grade, ReportDevice, ReportHeader, ReportSource, Table, TextOptions, Trust, csv, redact, redact_report_source, redact_string,
    redact_troubles, tables_markdown, tables_text, text_trust, wire,
};
use longpole_trace::{ActivityKind, Severity};
use serde::Serialize;

use crate::args::{Format, MOST_THREADS, NcuArgs};
use crate::exit::{Failure, complain};
use crate::sink::Sink;
use crate::stats::Stopwatch;
use crate::terminal;

/// Rows of a table shown when the user does not say.
const DEFAULT_LIMIT: usize = 20;

/// Results that are decoded at a time where little of each is kept.
pub(super) const PIECE: usize = 1 << 12;

/// A report that is ready to be asked.
pub(super) struct Session<'a> {
    pub(super) report: Report,
    pub(super) args: &'a NcuArgs,
    pub(super) options: TextOptions,
    watch: Stopwatch,
    /// Results that were measured while the GPU chose its clocks.
    unlocked: u64,
}

/// A result that was chosen.
#[derive(Clone, Debug)]
pub(super) struct Chosen {
    /// Its place in the report.
    pub(super) id: usize,
    /// Its short name, which no other name of the report has.
    pub(super) short_name: String,
    /// Its family; `None` for what is no kernel.
    pub(super) family: Option<Family>,
}

/// The header, which can only be written once everything is decoded: decoding may find trouble.
pub(super) struct OwnedHeader {
    pub(super) source: ReportSource,
    pub(super) trust: Trust,
}

impl OwnedHeader {
    pub(super) fn as_header(&self) -> ReportHeader<'_> {
        ReportHeader { source: &self.source, trust: &self.trust }
    }
}

/// Why there is nothing to show of a report, in one sentence.
fn why_empty(report: &Report) -> String {
    let path = report.path();
    let troubles = report.troubles();
    let has = |code| troubles.iter().any(|trouble| trouble.code == code);
    if has(TroubleCode::CutReport) || has(TroubleCode::DamagedReportCompression) {
        return format!("`{path}` ends before its first result: copy the file again, or profile again");
    }
    if troubles.iter().any(|trouble| trouble.code.describe().1 == longpole_ncu::Severity::DataLoss) {
        return format!("no result of `{path}` could be read, since it is damaged: copy the file again, or profile again");
    }
    if report.format() == "ncu-csv" {
        return format!("`{path}` has a header and no rows: export it again with `ncu --import REPORT --csv --page raw`");
    }
    format!("`{path}` has no results: nothing was profiled; profile again with filters (`-k`, `-s`, `-c`) that a kernel passes")
}

/// Opens a report by path, or from standard input.
fn read(input: &OsStr) -> Result<Report, Failure> {
    let report = if input == "-" { Report::read(io::stdin().lock(), "-") } else { Report::open(Path::new(input)) };
    report.map_err(|error| Failure::Input(error.to_string()))
}

impl<'a> Session<'a> {
    pub(super) fn open(args: &'a NcuArgs, input: &OsStr) -> Result<Self, Failure> {
        let watch = Stopwatch::start();
        let cores = || std::thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS as usize);
        let threads = args.threads.map_or_else(cores, usize::from);
        // Fails only if a pool exists already, and then that one is used.
        let _ = rayon::ThreadPoolBuilder::new().num_threads(threads).build_global();
        let report = read(input)?;
        if report.is_empty() {
            return Err(Failure::Input(why_empty(&report)));
        }
        let mut session = Self { report, args, options: terminal::report_options(args), watch, unlocked: 0 };
        session.watch.has_read();
        Ok(session)
    }

    /// How many results the report has.
    pub(super) fn results(&self) -> usize {
        self.report.len()
    }

    /// The results that `--kernel` and `--id` choose, in the order of the report.
    pub(super) fn choose(&mut self) -> Result<Vec<Chosen>, Failure> {
        let args = self.args;
        if let Some(beyond) = args.id.iter().find(|&&id| id >= self.report.len()) {
            let there = match self.report.len() {
                0 => "nothing".to_owned(),
                1 => "0".to_owned(),
                results => format!("0 to {}", results - 1),
            };
            return Err(Failure::Usage(format!("there is no result {beyond}; the report has {there}")));
        }
        let (everything, mut heads): (_, Vec<(usize, EntryKind, String)>) = (self.report.select(), Vec::new());
        // In pieces, so that of each result no more than its name is kept.
        for start in (0..self.report.len()).step_by(PIECE) {
            let ids: Vec<usize> = (start..self.report.len().min(start + PIECE)).collect();
            let results = self.report.decode_each(&ids, &everything);
            self.unlocked += results.iter().filter(|result| result.clocks_locked == Some(false)).count() as u64;
            heads.extend(results.into_iter().map(|result| (result.id, result.kind, result.name)));
        }
        if heads.is_empty() {
            return Err(Failure::Input(why_empty(&self.report)));
        }
        if !args.no_redact {
            for (_, _, name) in &mut heads {
                redact_string(name);
            }
        }
        let mut distinct: Vec<&str> = heads.iter().map(|(_, _, name)| name.as_str()).collect();
        distinct.sort_unstable();
        distinct.dedup();
        let short = short_names(&distinct);
        let chosen = heads.iter().filter(|(id, ..)| args.id.is_empty() || args.id.contains(id)).filter_map(|(id, kind, name)| {
            let short_name = distinct.binary_search(&name.as_str()).map_or_else(|_| name.clone(), |at| short[at].clone());
            let family = family_of(*kind, name);
            let matches = args.kernel.as_ref().is_none_or(|regex| {
                regex.is_match(name) || regex.is_match(&short_name) || family.is_some_and(|family| regex.is_match(family.name()))
            });
            matches.then_some(Chosen { id: *id, short_name, family })
        });
        Ok(chosen.collect())
    }

    /// The program of a result, where the report has several.
    pub(super) fn process(&self, index: Option<usize>) -> Option<String> {
        let processes = self.report.processes();
        let process = processes.get(index?).filter(|_| processes.len() > 1)?;
        let name = process.name.rsplit(['/', '\\']).next().unwrap_or_default();
        let words = format!("{} {name}", process.id).trim_end().to_owned();
        Some(if self.args.no_redact { words } else { redact(&words).into_owned() })
    }

    /// What stands above the output. To be called when everything is decoded.
    pub(super) fn header(&self) -> OwnedHeader {
        let mut source = source_of(&self.report, self.args.no_redact);
        let mut troubles = self.report.troubles();
        if self.report.page() != Page::Whole {
            troubles.push(Trouble { code: TroubleCode::RoundedFigures, count: 1, first_offset: None, example: None });
        }
        if self.unlocked > 0 {
            troubles.push(Trouble { code: TroubleCode::ClocksNotLocked, count: self.unlocked, first_offset: None, example: None });
        }
        if !self.args.no_redact {
            redact_report_source(&mut source);
            redact_troubles(&mut troubles);
        }
        OwnedHeader { source, trust: Trust::of_report(&troubles) }
    }

    pub(super) fn format(&self) -> Format {
        self.args.format.format()
    }

    /// What `--limit` says, else `default`; `None` for all.
    pub(super) fn limit_or(&self, default: Option<usize>) -> Option<usize> {
        match self.args.limit {
            Some(0) => None,
            Some(limit) => Some(limit),
            None => default,
        }
    }

    /// Rows of a table to print, `None` for all; machines get all.
    pub(super) fn limit(&self) -> Option<usize> {
        let default = matches!(self.format(), Format::Text | Format::Markdown).then_some(DEFAULT_LIMIT);
        self.limit_or(default)
    }

    /// Notes that the result is there.
    pub(super) fn analysed(&mut self) {
        self.watch.has_analysed();
    }

    /// Prints tables with their titles; of CSV the last one alone, which is the one with a row a launch or metric. The columns of
    /// `kept` stay however narrow the terminal.
    pub(super) fn print_tables(&self, mut tables: Vec<(&'static str, Table)>, kept: &[&str]) -> Result<(), Failure> {
        let header = self.header();
        for (_, table) in &mut tables {
            table.truncate(self.limit());
        }
        if let Some((_, table)) = tables.last_mut() {
            for column in kept {
                table.keep(column);
            }
        }
        match self.format() {
            Format::Csv => match tables.pop() {
                Some((_, table)) => self.print_csv(table),
                None => Ok(()),
            },
            Format::Markdown => self.print(&tables_markdown(&header.as_header(), tables)),
            Format::Text | Format::Json => self.print(&tables_text(&header.as_header(), tables, &self.options)),
        }
    }

    /// Prints one table as CSV.
    pub(super) fn print_csv(&self, mut table: Table) -> Result<(), Failure> {
        table.truncate(self.limit());
        self.trust_to_stderr();
        self.print(&csv(&table))
    }

    pub(super) fn print_json(&self, document: &impl Serialize) -> Result<(), Failure> {
        match &self.args.sink {
            // A document may be large, so it goes out as it is made.
            Sink::Stdout => {
                let mut out = io::BufWriter::with_capacity(1 << 16, io::stdout().lock());
                wire::write(&mut out, document)?;
                out.flush()?;
            }
            sink => {
                let mut text = Vec::new();
                wire::write(&mut text, document)?;
                sink.write(&text)?;
            }
        }
        self.end()
    }

    pub(super) fn print(&self, output: &str) -> Result<(), Failure> {
        self.args.sink.write(output.as_bytes())?;
        self.end()
    }

    /// Says on standard error how far output can be trusted that has no place for it.
    pub(super) fn trust_to_stderr(&self) {
        let trust = self.header().trust;
        if trust.grade != Grade::Good && !self.args.quiet {
            let plain = TextOptions { color: false, wrap: false, ..self.options };
            complain(text_trust(&trust, &plain).trim_end());
        }
    }

    /// `--stats` and `--strict`, after everything is printed.
    pub(super) fn end(&self) -> Result<(), Failure> {
        if let Some(format) = self.args.stats {
            self.watch.report(format, self.report.bytes(), self.report.len() as u64);
        }
        self.strict()
    }

    /// Fails under `--strict` when data is missing.
    pub(super) fn strict(&self) -> Result<(), Failure> {
        let header = self.header();
        if self.args.strict && header.trust.grade == Grade::Partial {
            let lost = header.trust.notes.iter().filter(|note| note.severity >= Severity::DataLoss);
            let codes: Vec<_> = lost.map(|note| note.code).collect();
            return Err(Failure::Input(format!("`{}` is partial ({}) and --strict was given", header.source.path, codes.join(", "))));
        }
        Ok(())
    }
}

/// The family of a kernel, by its whole name.
pub(super) fn family_of(kind: EntryKind, name: &str) -> Option<Family> {
    (kind == EntryKind::Kernel).then(|| Family::of(ActivityKind::Kernel, name))
}

fn device(device: &Device) -> ReportDevice {
    let capability = device.number("compute_capability_major").zip(device.number("compute_capability_minor"));
    ReportDevice {
        id: device.id,
        name: device.name.clone(),
        sm_count: device.number("multiprocessor_count"),
        memory_bytes: device.number("total_memory"),
        compute_capability: capability.map(|(major, minor)| format!("{major}.{minor}")),
    }
}

/// What the header says of a report. The command line holds whatever the user typed, so it is shown on request only; the name of
/// the machine is never read.
fn source_of(report: &Report, shows_secrets: bool) -> ReportSource {
    let session = report.session();
    let kinds = [EntryKind::Kernel, EntryKind::Range, EntryKind::Graph, EntryKind::CommandList];
    ReportSource {
        path: report.path().to_owned(),
        format: report.format().to_owned(),
        bytes: report.bytes(),
        compressed: report.format() == "ncu-repz",
        results: kinds.iter().map(|&kind| (kind.name(), report.count_of(kind) as u64)).filter(|(_, number)| *number > 0).collect(),
        ncu_version: session.ncu_version().map(str::to_owned),
        cuda_version: session.version("CUDA Version").map(str::to_owned),
        driver_version: session.version("Display Driver Version").map(str::to_owned),
        devices: session.devices.iter().map(device).collect(),
        processes: report
            .processes()
            .iter()
            .map(|process| {
                let name = if shows_secrets { process.name.as_str() } else { process.name.rsplit(['/', '\\']).next().unwrap_or_default() };
                format!("{} {name}", process.id).trim_end().to_owned()
            })
            .collect(),
        settings: session.settings.clone(),
        command_line: session.command_line.clone().filter(|_| shows_secrets),
    }
}

/// True for a file that `longpole ncu` reads and no other command does, judged by its first bytes. A zstd stream may hold a trace as
/// well, so its name has a say.
pub(crate) fn is_report(path: &OsStr) -> bool {
    let path = Path::new(path);
    // A pipe is read once, by the command.
    if !path.is_file() {
        return false;
    }
    let mut start = [0; 4];
    let Ok(mut file) = File::open(path) else { return false };
    if file.read_exact(&mut start).is_err() {
        return false;
    }
    match &start {
        b"NVR\0" => true,
        [0x28, 0xb5, 0x2f, 0xfd] | [0x50..=0x5f, 0x2a, 0x4d, 0x18] => path.extension().is_some_and(|extension| extension == "ncu-repz"),
        _ => false,
    }
}
