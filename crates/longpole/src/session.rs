//! One trace, opened for one command: read, judged, scoped; then the result is printed.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use longpole_analysis::{Scope, ScopeSpec, TraceIndex};
use longpole_ingest::{ImportOptions, Imported, Input, import};
use longpole_report::{
    Block, Grade, Header, Source, Table, TextOptions, Trust, blocks_markdown, blocks_text, csv, markdown, markdown_header, redact,
    redact_problems, redact_string, redact_trace, text, text_header, text_trust, wire,
};
use longpole_trace::{ProblemCode, Problems, Severity, Trace};
use regex::Regex;
use serde::Serialize;

use crate::args::{Common, Format, MOST_THREADS};
use crate::exit::{Failure, complain};
use crate::problems;
use crate::progress::{Bar, Telling};
use crate::stats::Stopwatch;
use crate::terminal;

/// Rows shown when the user does not say.
const DEFAULT_LIMIT: usize = 20;

/// A trace that is ready to be asked.
pub(crate) struct Session<'a> {
    /// The trace and what was worked out about it.
    pub(crate) index: TraceIndex<'static>,
    /// What part of it is asked about.
    pub(crate) scope: Scope,
    /// How text is laid out.
    pub(crate) options: TextOptions,
    common: &'a Common,
    spec: ScopeSpec,
    source: Source,
    trust: Trust,
    watch: Stopwatch,
    threads: usize,
    filtered_out: usize,
}

impl<'a> Session<'a> {
    /// Reads the input and finds the scope.
    pub(crate) fn open(common: &'a Common) -> Result<Self, Failure> {
        Self::open_any(common, &common.input, &[], false, common.scope.spec())
    }

    /// Reads all of the input, in a scope that the command line alone does not say.
    pub(crate) fn open_within(common: &'a Common, spec: ScopeSpec) -> Result<Self, Failure> {
        Self::open_any(common, &common.input, &[], true, spec)
    }

    /// Reads another input than the first that was named, as the command is about that one.
    pub(crate) fn open_other(common: &'a Common, input: &OsStr) -> Result<Self, Failure> {
        Self::open_any(common, input, &[], true, common.scope.spec())
    }

    /// The same with strides and values of operators' arguments, which rooflines need.
    pub(crate) fn open_with_arguments(common: &'a Common) -> Result<Self, Failure> {
        Self::open_any(common, &common.input, &[], true, common.scope.spec())
    }

    /// Reads a recording that was made for the command, which is shown under the name of its program.
    pub(crate) fn open_recording(common: &'a Common, path: &Path, spec: ScopeSpec, program: &str) -> Result<Self, Failure> {
        Self::open_as(common, path.as_os_str(), &[], true, spec, Some(program))
    }

    /// Reads the input and `more` files of the same run, and finds the scope.
    pub(crate) fn open_all(common: &'a Common, more: &[OsString]) -> Result<Self, Failure> {
        Self::open_any(common, &common.input, more, false, common.scope.spec())
    }

    fn open_any(common: &'a Common, input: &OsStr, more: &[OsString], arguments: bool, spec: ScopeSpec) -> Result<Self, Failure> {
        Self::open_as(common, input, more, arguments, spec, None)
    }

    /// Reads the input and finds the scope. All that is said of it, errors too, is under another name if one is given.
    fn open_as(
        common: &'a Common,
        input: &OsStr,
        more: &[OsString],
        arguments: bool,
        mut spec: ScopeSpec,
        name: Option<&str>,
    ) -> Result<Self, Failure> {
        let mut watch = Stopwatch::start();
        let cores = || std::thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS as usize);
        let threads = common.threads.map_or_else(cores, usize::from);
        // Fails only if a pool exists already, and then that one is used.
        let _ = rayon::ThreadPoolBuilder::new().num_threads(threads).build_global();
        let mut read = read(common, input, more, threads, arguments, &mut spec).map_err(|failure| match (failure, name) {
            (Failure::Input(said), Some(name)) => Failure::Input(said.replace(&*input.to_string_lossy(), name)),
            (failure, _) => failure,
        })?;
        if let Some(name) = name {
            name.clone_into(&mut read.source.path);
        }
        watch.has_read();
        let Beside { index, scope, source, trust, .. } = read.resolve(&spec)?;
        Ok(Self { index, scope, options: terminal::text_options(common), common, spec, source, trust, watch, threads, filtered_out: 0 })
    }

    /// Reads a second trace with the arguments of its operators, redacted like the first. What is wrong with it is said on standard error: the
    /// report is not about it.
    pub(crate) fn read_beside(&self, input: &OsStr) -> Result<TraceIndex<'static>, Failure> {
        let read = read(self.common, input, &[], self.threads, true, &mut ScopeSpec::default())?;
        let Beside { index, source, trust, .. } = read.resolve(&ScopeSpec::default())?;
        if trust.grade == Grade::Partial {
            self.note_to_stderr(&format!("{}: {}: {}", source.path, trust.grade.name(), trust.grade.meaning()));
        }
        Ok(index)
    }

    /// Reads a second trace that the report is about as well, in the scope of the first.
    pub(crate) fn read_second(&self, input: &OsStr) -> Result<Beside, Failure> {
        let mut spec = self.spec.clone();
        let read = read(self.common, input, &[], self.threads, true, &mut spec)?;
        read.resolve(&spec)
    }

    /// Whether the input holds sums alone.
    pub(crate) fn has_totals_only(&self) -> bool {
        self.index.trace().has_totals_only()
    }

    /// Refuses an input that does not say when anything ran, for a command that asks nothing else.
    pub(crate) fn needs_timeline(&self, command: &str) -> Result<(), Failure> {
        if self.has_totals_only() { self.needs(command, "holds totals only, not when anything ran") } else { Ok(()) }
    }

    /// Refuses an input for what it is.
    pub(crate) fn needs(&self, command: &str, what: &str) -> Result<(), Failure> {
        Err(Failure::Input(format!(
            "`{}` {what}, so `longpole {command}` has nothing to say about it; `longpole formats` lists what each format can answer",
            self.source.path
        )))
    }

    /// What stands above every report.
    pub(crate) fn header(&self) -> Header<'_> {
        Header { source: &self.source, trust: &self.trust, scope: &self.spec }
    }

    /// Whether the file was cut or damaged, so that its last part was not read.
    pub(crate) fn is_cut(&self) -> bool {
        is_cut(&self.trust)
    }

    /// Losses of the input that a part of it has as well, without showing them: codes and counts.
    pub(crate) fn lost(&self) -> Vec<(&'static str, u64)> {
        let kept = |code: &str| ProblemCode::ALL.iter().any(|kept| kept.describe().0 == code && kept.is_kept_by_parts());
        self.trust.notes.iter().filter(|note| kept(note.code)).map(|note| (note.code, note.count)).collect()
    }

    /// The output format.
    pub(crate) fn format(&self) -> Format {
        self.common.format.format()
    }

    /// Rows to print, `None` for all; `default` is for people, machines get all.
    pub(crate) fn limit_or(&self, default: usize) -> Option<usize> {
        match (self.common.limit, self.format()) {
            (Some(0), _) | (None, Format::Json | Format::Csv) => None,
            (Some(limit), _) => Some(limit),
            (None, Format::Text | Format::Markdown) => Some(default),
        }
    }

    /// Rows to print of a table.
    pub(crate) fn limit(&self) -> Option<usize> {
        self.limit_or(DEFAULT_LIMIT)
    }

    /// Drops rows whose name does not match `--filter`.
    pub(crate) fn filter<T>(&mut self, rows: &mut Vec<T>, matches: impl Fn(&Regex, &T) -> bool) {
        if let Some(regex) = &self.common.filter {
            let before = rows.len();
            rows.retain(|row| matches(regex, row));
            self.filtered_out += before - rows.len();
        }
    }

    /// The pattern of `--filter` as it may be printed, if one is given.
    pub(crate) fn pattern(&self) -> Option<String> {
        self.shown(self.common.filter.as_ref().map(Regex::as_str))
    }

    /// What the user typed, as it may be printed.
    pub(crate) fn shown(&self, typed: Option<&str>) -> Option<String> {
        typed.map(|text| if self.common.no_redact { text.to_owned() } else { redact(text).into_owned() })
    }

    /// The input, as it may be printed.
    pub(crate) fn source_path(&self) -> &str {
        &self.source.path
    }

    /// Ends a run that printed no report.
    pub(crate) fn finish(&self) -> Result<(), Failure> {
        self.end()
    }

    /// Notes that the result is there.
    pub(crate) fn analysed(&mut self) {
        self.watch.has_analysed();
    }

    /// Prints a table as text, Markdown or CSV. The column that it is sorted by stays, however narrow the terminal.
    pub(crate) fn print_table(&self, mut table: Table, sorted_by: Option<&str>) -> Result<(), Failure> {
        if let Some(column) = sorted_by {
            table.keep(column);
        }
        self.shorten(&mut table);
        match self.format() {
            Format::Csv => {
                self.trust_to_stderr();
                self.print(&csv(&table))
            }
            Format::Markdown => self.print(&format!("{}\n{}", markdown_header(&self.header()), markdown(&table))),
            Format::Text | Format::Json => {
                self.print(&format!("{}\n{}", text_header(&self.header(), &self.options), text(&table, &self.options)))
            }
        }
    }

    /// Cuts a table as the user asked, and says in it what `--filter` left out.
    pub(crate) fn shorten(&self, table: &mut Table) {
        table.filtered_out = self.filtered_out;
        table.truncate(self.limit());
    }

    /// Prints a report of several parts as text or Markdown.
    pub(crate) fn print_blocks(&self, blocks: &[Block]) -> Result<(), Failure> {
        match self.format() {
            Format::Markdown => self.print(&format!("{}{}", markdown_header(&self.header()), blocks_markdown(blocks))),
            _ => self.print(&format!("{}{}", text_header(&self.header(), &self.options), blocks_text(blocks, &self.options))),
        }
    }

    /// Prints a document as JSON.
    pub(crate) fn print_json(&self, document: &impl Serialize) -> Result<(), Failure> {
        let mut out = io::BufWriter::with_capacity(1 << 16, io::stdout().lock());
        wire::write(&mut out, document)?;
        out.flush()?;
        self.end()
    }

    /// Prints text that is complete, and ends the run.
    pub(crate) fn print(&self, output: &str) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        out.write_all(output.as_bytes())?;
        out.flush()?;
        self.end()
    }

    /// Says on standard error how far output can be trusted that has no place for it. Of a good trace only what host times are worth.
    pub(crate) fn trust_to_stderr(&self) {
        let mut trust = self.trust.clone();
        if trust.grade == Grade::Good {
            trust.notes.retain(|note| note.code == ProblemCode::CpuBound.describe().0);
        }
        if !trust.notes.is_empty() && !self.common.quiet {
            let plain = TextOptions { color: false, wrap: false, ..self.options };
            complain(text_trust(&trust, &plain).trim_end());
        }
    }

    /// The step was timed: what to do about a profiled host is done.
    pub(crate) fn is_calibrated(&mut self) {
        for note in self.trust.notes.iter_mut().filter(|note| note.code == ProblemCode::CpuBound.describe().0) {
            note.hint = "--unprofiled-step-ms was given: the suspects are restated by it";
        }
    }

    /// Says something on standard error that output has no place for.
    pub(crate) fn note_to_stderr(&self, note: &str) {
        if !self.common.quiet {
            complain(note);
        }
    }

    /// `--stats` and `--strict`, after everything is printed.
    fn end(&self) -> Result<(), Failure> {
        if let Some(format) = self.common.stats {
            self.watch.report(format, self.source.bytes, self.source.events);
        }
        if self.common.strict { is_whole(&self.source, &self.trust) } else { Ok(()) }
    }

    /// `--strict` for a second trace that the report was about as well.
    pub(crate) fn judge(&self, other: &Beside) -> Result<(), Failure> {
        if self.common.strict { is_whole(&other.source, &other.trust) } else { Ok(()) }
    }
}

/// Fails for a trace of which data is missing.
fn is_whole(source: &Source, trust: &Trust) -> Result<(), Failure> {
    if trust.grade != Grade::Partial {
        return Ok(());
    }
    let codes: Vec<_> = trust.notes.iter().filter(|n| n.severity >= Severity::DataLoss).map(|n| n.code).collect();
    Err(Failure::Input(format!("`{}` is partial ({}) and --strict was given", source.path, codes.join(", "))))
}

/// A trace that was read, before its scope is found.
struct Read {
    trace: Trace,
    problems: Problems,
    source: Source,
}

/// A trace with what stands above its part of a report.
pub(crate) struct Beside {
    pub(crate) index: TraceIndex<'static>,
    pub(crate) scope: Scope,
    source: Source,
    trust: Trust,
    spec: ScopeSpec,
}

impl Beside {
    /// What stands above its part of a report.
    pub(crate) fn header(&self) -> Header<'_> {
        Header { source: &self.source, trust: &self.trust, scope: &self.spec }
    }

    /// Whether the file was cut or damaged, so that its last part was not read.
    pub(crate) fn is_cut(&self) -> bool {
        is_cut(&self.trust)
    }
}

fn is_cut(trust: &Trust) -> bool {
    trust.notes.iter().any(|note| matches!(note.code, "truncated" | "damaged_compression"))
}

impl Read {
    fn resolve(mut self, spec: &ScopeSpec) -> Result<Beside, Failure> {
        // Never freed: the process ends when the command does, and the system is faster at it.
        let index = TraceIndex::new(Box::leak(Box::new(self.trace)));
        let scope = Scope::resolve(&index, spec).map_err(|error| Failure::Usage(format!("`{}`: {error}", self.source.path)))?;
        problems::add(&index, &scope, &mut self.problems);
        Ok(Beside { index, scope, source: self.source, trust: Trust::new(&self.problems), spec: spec.clone() })
    }
}

/// Reads an input, redacted as the user wants it.
fn read(common: &Common, input: &OsStr, more: &[OsString], threads: usize, arguments: bool, spec: &mut ScopeSpec) -> Result<Read, Failure> {
    let Imported { mut trace, mut problems, source } = read_input(input, more, common.quiet, threads, arguments)?;
    let mut source = Source {
        path: source.path,
        format: source.format.to_owned(),
        bytes: source.bytes,
        compressed: is_compressed(input),
        events: trace.events_read,
    };
    if !common.no_redact {
        // Everything that a command can see is redacted here, before any name is shortened, so that no output of any command
        // has to remember it. A range is then looked up by its redacted name, whichever of the two the user typed.
        redact_trace(&mut trace);
        redact_problems(&mut problems);
        redact_string(&mut source.path);
        spec.range.iter_mut().for_each(redact_string);
    }
    Ok(Read { trace, problems, source })
}

fn read_input(input: &OsStr, more: &[OsString], quiet: bool, threads: usize, arguments: bool) -> Result<Imported, Failure> {
    let input = match (input == "-", more) {
        (true, []) => Input::Stdin,
        (false, []) => Input::Path(PathBuf::from(input)),
        _ => Input::Files(std::iter::once(input).chain(more.iter().map(OsString::as_os_str)).map(PathBuf::from).collect()),
    };
    let bar = Bar::new(quiet);
    let telling = Telling { bar: bar.as_ref(), quiet };
    let options = ImportOptions { threads, arguments, progress: Some(&telling) };
    let imported = import(&input, &options);
    if let Some(bar) = bar {
        bar.finish();
    }
    imported.map_err(|error| Failure::Input(error.to_string()))
}

/// True when the input is a compressed file, or a directory that holds one. Of standard input it is not known afterwards.
fn is_compressed(input: &OsStr) -> bool {
    let starts_compressed = |path: &Path| {
        let mut start = [0; 4];
        let read = File::open(path).and_then(|mut file| file.read(&mut start)).unwrap_or(0);
        start[..read].starts_with(&[0x1f, 0x8b]) || start[..read].starts_with(&[0x28, 0xb5, 0x2f, 0xfd])
    };
    let path = Path::new(input);
    if input == "-" {
        return false;
    }
    match path.read_dir() {
        Ok(mut entries) => entries.any(|entry| entry.is_ok_and(|entry| entry.path().is_file() && starts_compressed(&entry.path()))),
        // A pipe is read once, by the import.
        Err(_) => path.is_file() && starts_compressed(path),
    }
}
