//! What the user gave: a file, a directory, an archive or a stream, compressed or not.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use longpole_trace::{
    Aggregates, EventWindow, Interval, IntervalSet, Ns, Part, ProblemCode, Problems, RankInfo, Recorder, Tid, Trace, TraceBuilder,
};

use crate::error::ImportError;
use crate::formats::{FORMATS, Reading, Report, Source};
use crate::kineto::{Counting, FileFacts, FileSource};
use crate::neighbours::{binary_neighbour, has_report_name, json_neighbour};
use crate::nsys::export;
use crate::rank_files::{is_export_name, is_trace_name, rank_in_name, trace_files};
use crate::unobserved::without_events;

/// An input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A file, or a directory of rank files.
    Path(PathBuf),
    /// Several files or directories of one run.
    Files(Vec<PathBuf>),
    /// Standard input.
    Stdin,
}

impl Input {
    /// A path, or `-` for standard input.
    pub fn from_arg(arg: &str) -> Self {
        if arg == "-" { Self::Stdin } else { Self::Path(PathBuf::from(arg)) }
    }

    /// The input, as the user named it.
    pub fn label(&self) -> String {
        match self {
            Self::Path(path) => path.display().to_string(),
            Self::Files(paths) => match paths.as_slice() {
                [] => "no file".to_owned(),
                [one] => one.display().to_string(),
                [one, two] => format!("{}, {}", one.display(), two.display()),
                [one, more @ ..] => format!("{} and {} more", one.display(), more.len()),
            },
            Self::Stdin => "standard input".to_owned(),
        }
    }
}

/// Told how far reading is, from any thread.
pub trait Progress: Sync {
    /// `done` bytes of the input (compressed ones, if it is) are read, of `total` if that is known.
    fn bytes_read(&self, done: u64, total: Option<u64>);

    /// Something that takes a while, or that the user may want to know, is done for the input.
    fn note(&self, _what: &str) {}
}

/// How to import.
#[derive(Clone, Copy)]
pub struct ImportOptions<'p> {
    /// Threads that parse; one more inflates compressed input.
    pub threads: usize,
    /// Keep strides and values of operators' arguments, where recorded. Only rooflines need them, and they cost a tenth of the time.
    pub arguments: bool,
    /// Told how far it is.
    pub progress: Option<&'p dyn Progress>,
}

impl Default for ImportOptions<'_> {
    fn default() -> Self {
        Self { threads: std::thread::available_parallelism().map_or(1, usize::from), arguments: true, progress: None }
    }
}

/// What was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceInfo {
    /// The input, as the user named it.
    pub path: String,
    /// Its format, one of [`crate::formats`].
    pub format: &'static str,
    /// Bytes of content, after decompression.
    pub bytes: u64,
}

/// A trace, and the trouble met while it was read.
#[derive(Debug)]
pub struct Imported {
    /// The trace.
    pub trace: Trace,
    /// The trouble.
    pub problems: Problems,
    /// What was read.
    pub source: SourceInfo,
}

/// What every message about an unusable input says was expected.
const EXPECTED: &str = "a trace of PyTorch, JAX or ONNX Runtime or any Chrome trace (JSON, plain, .gz, .zst or .tar.gz), an Nsight Systems export (.sqlite), a \
     Triton Proton profile (.hatchet), a TensorRT layer profile or a recording (.longpole)";
pub(crate) const HINT: &str = "export one with `prof.export_chrome_trace(\"trace.json.gz\")`";

/// Reads an input.
pub fn import(input: &Input, options: &ImportOptions<'_>) -> Result<Imported, ImportError> {
    let label = input.label();
    let mut importer = Importer::new(label.clone(), *options);
    let result = match input {
        Input::Stdin => importer.stream(Box::new(io::stdin().lock()), &label),
        Input::Path(path) if path.is_dir() => importer.directory(path),
        Input::Files(paths) => importer.paths(paths),
        Input::Path(path) => importer.file(path, &label),
    };
    result.map_err(|source| ImportError::Io { path: label, source })?;
    importer.finish()
}

/// Reads an input that is in memory, compressed or not.
pub fn import_bytes(bytes: &[u8], threads: usize) -> Result<Imported, ImportError> {
    let label = "bytes in memory".to_owned();
    let mut importer = Importer::new(label.clone(), ImportOptions { threads, arguments: true, progress: None });
    importer.stream(Box::new(bytes), &label).map_err(|source| ImportError::Io { path: label, source })?;
    importer.finish()
}

/// Collects the recordings of one input.
struct Importer<'p> {
    label: String,
    options: ImportOptions<'p>,
    builder: TraceBuilder,
    files: Vec<FileFacts>,
    problems: Problems,
    /// Bytes of the inputs before the current one, and of all, for progress.
    done_before: u64,
    total: Option<u64>,
    format: &'static str,
    recorder: Recorder,
    /// What an unusable input turned out to be.
    found: Option<(String, &'static str)>,
}

impl<'p> Importer<'p> {
    fn new(label: String, options: ImportOptions<'p>) -> Self {
        Self {
            label,
            options,
            builder: TraceBuilder::new(),
            files: Vec::new(),
            problems: Problems::default(),
            done_before: 0,
            total: None,
            format: "kineto",
            recorder: Recorder::Torch,
            found: None,
        }
    }

    fn paths(&mut self, paths: &[PathBuf]) -> io::Result<()> {
        let len = |path: &PathBuf| path.metadata().ok().filter(std::fs::Metadata::is_file).map(|metadata| metadata.len());
        self.total = paths.iter().map(len).sum();
        for path in paths {
            if path.is_dir() {
                self.directory(path)?;
                continue;
            }
            let label = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
            // The user named it, so that it cannot be read is said at once.
            self.file(path, &label).map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
        }
        Ok(())
    }

    fn directory(&mut self, directory: &Path) -> io::Result<()> {
        let files = trace_files(directory)?;
        let bytes: u64 = files.iter().filter_map(|f| f.metadata().ok()).map(|m| m.len()).sum();
        self.total = Some(self.done_before + bytes).max(self.total);
        if files.is_empty() {
            self.found = Some(("a directory with no .json, .json.gz, .json.zst, .sqlite or .longpole file".to_owned(), HINT));
        }
        for file in files {
            let label = file.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
            if let Err(error) = self.file(&file, &label) {
                self.problems.add(ProblemCode::UnusableFile, None, || Some(format!("{label}: {error}")));
            }
        }
        Ok(())
    }

    fn file(&mut self, path: &Path, label: &str) -> io::Result<()> {
        let mut file = File::open(path)?;
        let metadata = file.metadata()?;
        let len = metadata.len();
        self.total = self.total.or(Some(len).filter(|_| metadata.is_file()));
        if metadata.is_file() {
            let mut head = Vec::new();
            (&mut file).take(HEAD).read_to_end(&mut head)?;
            if compression(&head).is_none() && !is_tar(&head) && !is_zeros(&head) {
                if export::is_report(&head) {
                    let result = self.report(path, label);
                    self.done_before += len;
                    return result;
                }
                let after_blanks = begins_blank(&head).then(|| Blanks::pass(head.clone(), &mut file));
                let source = Source::File(FileSource::new(file, len), path);
                let result = self.recording(source, after_blanks.as_ref().map_or(&head[..], |blanks| blanks.judged(&head)), label);
                self.done_before += len;
                return result;
            }
            let rest = io::Cursor::new(head).chain(file);
            let result = self.stream(Box::new(rest), label);
            self.done_before += len;
            return result;
        }
        // A pipe or device: it has no length and is read once.
        self.stream(Box::new(file), label)
    }

    /// Reads a report that only Nsight Systems can: an export of it is made and read.
    fn report(&mut self, path: &Path, label: &str) -> io::Result<()> {
        if let Some(progress) = self.options.progress {
            progress.note("exporting the Nsight Systems report with `nsys export`");
        }
        let exported = match export::export(path) {
            Ok(exported) => exported,
            Err(cause) => {
                self.unusable(label, (format!("an Nsight Systems report, {cause}"), export::HINT));
                return Ok(());
            }
        };
        let mut file = File::open(&exported.path)?;
        let len = file.metadata()?.len();
        let mut head = Vec::new();
        (&mut file).take(HEAD).read_to_end(&mut head)?;
        self.recording(Source::File(FileSource::new(file, len), &exported.path), &head, label)
    }

    /// Reads a stream: decompresses it, opens it if it is an archive, or takes it as a recording.
    fn stream(&mut self, input: Box<dyn Read + '_>, label: &str) -> io::Result<()> {
        let consumed = Arc::new(AtomicU64::new(0));
        let counted = Counting { inner: input, count: Arc::clone(&consumed) };
        let (head, mut input) = peek(decompress(Box::new(counted))?);
        if is_tar(&head) {
            return self.archive(&mut *input, &consumed);
        }
        if is_zeros(&head) {
            self.unusable(label, ("an empty archive (or a file of zeros)".to_owned(), HINT));
            return Ok(());
        }
        self.recording(Source::Stream(&mut *input, &consumed), &head, label)
    }

    fn archive(&mut self, input: &mut dyn Read, consumed: &AtomicU64) -> io::Result<()> {
        let mut archive = tar::Archive::new(input);
        let (mut entries, mut members) = (0, 0);
        for entry in archive.entries()? {
            entries += 1;
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) if members > 0 => {
                    self.problems.add(ProblemCode::Truncated, None, || Some(format!("the archive: {error}")));
                    return Ok(());
                }
                Err(error) => return Err(error),
            };
            let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
            if !entry.header().entry_type().is_file() || !(is_trace_name(&name) || is_export_name(&name)) {
                continue;
            }
            members += 1;
            let label = name.rsplit('/').next().unwrap_or(&name).to_owned();
            let result = decompress(Box::new(entry)).and_then(|plain| {
                let (head, mut plain) = peek(plain);
                self.recording(Source::Stream(&mut *plain, consumed), &head, &label)
            });
            if let Err(error) = result {
                self.problems.add(ProblemCode::UnusableFile, None, || Some(format!("{label}: {error}")));
            }
        }
        if members == 0 {
            let found = if entries == 0 {
                "an empty archive"
            } else {
                "an archive with no .json, .json.gz, .json.zst, .sqlite or .longpole member"
            };
            self.found = Some((found.to_owned(), HINT));
        }
        Ok(())
    }

    /// Reads one recording with the first format that takes it.
    fn recording(&mut self, source: Source<'_>, head: &[u8], label: &str) -> io::Result<()> {
        let Some(format) = FORMATS.iter().find(|format| (format.sniff)(head)) else {
            let (found, hint) = describe_head(head);
            let is_report = has_report_name(label) && binary_neighbour(head).is_none();
            self.unusable(label, (found, if is_report { export::HINT } else { hint }));
            return Ok(());
        };
        // Sums of two formats are of different things, and do not add up.
        let in_sums = |recorder| matches!(recorder, Recorder::Proton | Recorder::TensorRt);
        if !self.files.is_empty() && in_sums(self.recorder) && in_sums(format.recorder) && self.recorder != format.recorder {
            let found = format!("totals of the format {}, which do not add up with those of {}: give them alone", format.name, self.format);
            self.unusable(label, (found, HINT));
            return Ok(());
        }
        let rank = self.builder.add_rank(RankInfo { label: label.to_owned(), ..RankInfo::default() });
        let marks = self.builder.marks();
        let (progress, total, before) = (self.options.progress, self.total, self.done_before);
        let report: Report<'_> = &|done| {
            if let Some(progress) = progress {
                progress.bytes_read(before + done, total);
            }
        };
        let mut documents = match (format.read)(
            source,
            Reading { threads: self.options.threads, arguments: self.options.arguments },
            &mut self.builder,
            rank,
            report,
        ) {
            Ok(documents) => documents,
            Err(error) => {
                self.builder.trace_mut().ranks.pop();
                return Err(error);
            }
        };
        if self.builder.marks() == marks {
            self.builder.trace_mut().ranks.truncate(rank as usize);
            let found = documents.first().map_or_else(
                || ("an empty file".to_owned(), HINT),
                |facts| facts.unusable.clone().unwrap_or_else(|| describe_facts(facts, head, format.recorder)),
            );
            // What calls itself a report, and is none that can be read, has to be exported where it was made.
            let found = if has_report_name(label) { (found.0, export::HINT) } else { found };
            self.unusable(label, found);
            return Ok(());
        }
        for facts in documents.iter().filter(|facts| facts.external_id_is_correlation) {
            self.builder.forget_external_ids_since(&facts.marks);
            self.problems.add(ProblemCode::ExternalIdIsCorrelation, None, || None);
        }
        self.format = format.name;
        self.recorder = format.recorder;
        self.files.append(&mut documents);
        Ok(())
    }

    fn unusable(&mut self, label: &str, found: (String, &'static str)) {
        self.problems.add(ProblemCode::UnusableFile, None, || Some(format!("{label}: {}", found.0)));
        self.found.get_or_insert(found);
    }

    fn finish(mut self) -> Result<Imported, ImportError> {
        if self.files.is_empty() {
            let (found, hint) = self.found.unwrap_or_else(|| ("an empty input".to_owned(), HINT));
            return Err(ImportError::Unusable { path: self.label, expected: EXPECTED, found, hint });
        }
        let bytes = self.files.iter().map(|facts| facts.bytes).sum();
        self.align();
        let mut problems = self.problems;
        for facts in self.files {
            describe_rank(&mut self.builder, &facts);
            problems.extend(facts.problems);
        }
        note_windows(self.builder.trace_mut(), &mut problems);
        let mut trace = self.builder.finish();
        trace.recorded.shapes |= (0..trace.host_ops.len()).any(|row| trace.host_ops.shapes(row).is_some());
        trace.recorded.memory |= !trace.memory.is_empty();
        trace.recorded.stacks |= !trace.frames.is_empty();
        // What a cut file has none of may have stood behind the cut: device events come last.
        let is_cut = problems.get(ProblemCode::Truncated).is_some();
        trace.recorder = self.recorder;
        let is_in_sums = trace.has_totals_only();
        if is_in_sums {
            problems.add(ProblemCode::TotalsOnly, None, || None);
        } else if !trace.aggregates.is_empty() {
            // Sums and a timeline do not add up: which part of the time the sums are of is not known.
            trace.aggregates = Aggregates::default();
            problems.add(ProblemCode::TotalsBesideTimeline, None, || None);
        }
        if trace.host_ops.is_empty() && !is_cut && !is_in_sums {
            problems.add(ProblemCode::NoOperators, None, || None);
        }
        if trace.activities.is_empty() && !is_cut && !is_in_sums {
            problems.add(ProblemCode::NoDeviceActivity, None, || None);
        }
        trace.recorder.note_hints(&mut problems);
        Ok(Imported { trace, problems, source: SourceInfo { path: self.label, format: self.format, bytes } })
    }

    /// Files of one run overlap in time and have a rank each.
    fn note_separate_runs(&mut self, windows: &[(Ns, Ns)]) {
        let mut ranks: Vec<u32> = self.files.iter().filter_map(|facts| facts.rank).collect();
        ranks.sort_unstable();
        let shared = ranks.windows(2).any(|pair| pair[0] == pair[1]);
        let mut windows = windows.to_vec();
        windows.sort_unstable();
        let mut end = windows.first().map_or(Ns::MAX, |first| first.1);
        let mut apart = false;
        for (first, last) in windows {
            apart |= first > end;
            end = end.max(last);
        }
        if shared || apart {
            let cause = if shared { "two recordings have the same rank" } else { "two recordings do not overlap in time" };
            self.problems.add(ProblemCode::SeparateRuns, None, || Some(cause.to_owned()));
        }
    }

    /// Puts all recordings on one time axis: each counts from its own base.
    fn align(&mut self) {
        // Times past 1973 in nanoseconds are absolute: the recording counts from 1970.
        const ABSOLUTE: i64 = 100_000_000_000_000_000;
        let base = |facts: &FileFacts| {
            let absolute = facts.window.bounds().is_some_and(|(first, _)| first.get() > ABSOLUTE);
            facts.base_ns.or(absolute.then_some(0))
        };
        let earliest = self.files.iter().filter_map(base).min();
        let mut window = EventWindow::default();
        let mut windows = Vec::new();
        // Rows since a file's mark include those of later files, so each is moved by the difference to the file before.
        let mut moved = Ns::ZERO;
        for facts in &mut self.files {
            let shift = match (base(facts), earliest) {
                (Some(base), Some(earliest)) => Ns(base) - Ns(earliest),
                _ => Ns::ZERO,
            };
            if shift != moved {
                self.builder.shift_times_since(&facts.marks, shift - moved);
                moved = shift;
            }
            for (_, _, from, to) in facts.part.iter_mut().filter_map(|part| part.host.as_mut()).flatten() {
                *from += shift;
                *to += shift;
            }
            for stretch in &mut facts.unobserved {
                stretch.start += shift;
                stretch.end += shift;
            }
            if let Some((first, last)) = facts.window.bounds() {
                window.include(first + shift, last + shift);
                windows.push((first + shift, last + shift));
            }
        }
        self.note_separate_runs(&windows);
        let trace = self.builder.trace_mut();
        trace.base_unix_ns = earliest;
        trace.window = window;
        trace.events_read = self.files.iter().map(|facts| facts.events).sum();
    }
}

/// Says that nothing was recorded between windows, if so.
fn note_windows(trace: &Trace, problems: &mut Problems) {
    let Some((start, end)) = trace.window.bounds() else { return };
    let unobserved = trace.unobserved.of_all(0..trace.ranks.len());
    let between: Vec<Ns> = unobserved.within(Interval { start, end }).map(Interval::len).collect();
    if !between.is_empty() {
        problems.add_many(ProblemCode::RecordedInWindows, between.len() as u64 + 1, None, || None);
        problems.note_time(ProblemCode::RecordedInWindows, between.into_iter().sum());
    }
}

/// Rank, devices and versions of one recording.
fn describe_rank(builder: &mut TraceBuilder, facts: &FileFacts) {
    let (rank_index, index) = (facts.recording, facts.recording as usize);
    let label = builder.trace_mut().ranks[index].label.clone();
    // Documents one after the other in a file share its name, which then says nothing.
    let shared = builder.trace_mut().ranks.iter().filter(|info| info.label == label).count() > 1;
    let info = &mut builder.trace_mut().ranks[index];
    info.rank = facts.rank.or_else(|| rank_in_name(&label).filter(|_| !shared)).unwrap_or(rank_index);
    info.world_size = facts.world_size;
    info.backend.clone_from(&facts.backend);
    for (ordinal, properties) in &facts.devices {
        let device = builder.device(rank_index, *ordinal);
        builder.trace_mut().devices[device.index()].properties = properties.clone();
    }
    if let Some(part) = &facts.part {
        let interval = |(pid, tid, start, end): &(i64, Tid, Ns, Ns)| {
            let thread = builder.find_thread(rank_index, *pid, tid.clone())?;
            Some((thread, Interval { start: *start, end: *end }))
        };
        let host = part.host.as_ref().map(|host| host.iter().filter_map(interval).collect());
        builder.trace_mut().parts.push(Part { rank: rank_index, host, has_device_work: part.has_device_work });
    }
    let trace = builder.trace_mut();
    if !facts.unobserved.is_empty() {
        let stretches = IntervalSet::from_unsorted(facts.unobserved.clone());
        let stretches = without_events(trace, rank_index, &stretches);
        trace.unobserved.set(index, stretches);
    }
    if index == 0 {
        trace.versions = facts.versions.clone();
    }
    trace.recorded.shapes |= facts.recorded.shapes;
    trace.recorded.memory |= facts.recorded.memory;
    trace.recorded.stacks |= facts.recorded.stacks;
    trace.recorded.modules |= facts.recorded.modules;
}

/// Bytes that formats are recognised by; a tar header is within them, and so are the first events of a trace behind what describes it.
const HEAD: u64 = 64 * 1024;
/// Bytes of a tar header.
const TAR_BLOCK: usize = 512;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compression {
    Gzip,
    Zstd,
}

fn compression(head: &[u8]) -> Option<Compression> {
    if head.starts_with(&[0x1f, 0x8b]) {
        Some(Compression::Gzip)
    } else if head.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        Some(Compression::Zstd)
    } else {
        None
    }
}

fn is_tar(head: &[u8]) -> bool {
    head.get(257..262) == Some(b"ustar")
}

/// What `tar` writes when it is given nothing begins so.
fn is_zeros(head: &[u8]) -> bool {
    head.len() >= TAR_BLOCK && head.iter().all(|byte| *byte == 0)
}

/// The first bytes of a stream, and the stream with them put back. An error met on the way comes back at its place.
fn peek<'r>(mut input: Box<dyn Read + 'r>) -> (Vec<u8>, Box<dyn Read + 'r>) {
    let mut head = Vec::new();
    let error = (&mut input).take(HEAD).read_to_end(&mut head).err();
    if error.is_none() && begins_blank(&head) {
        let blanks = Blanks::pass(head.clone(), &mut input);
        let judged = blanks.judged(&head).to_vec();
        let before = io::Cursor::new(blanks.mark).chain(io::repeat(b' ').take(blanks.count));
        let whole = before.chain(io::Cursor::new(blanks.head)).chain(Failed(blanks.error)).chain(input);
        return (judged, Box::new(whole));
    }
    let whole = io::Cursor::new(head.clone()).chain(Failed(error)).chain(input);
    (head, Box::new(whole))
}

/// White space before a document is passed over this far. It is less than a segment of the event reader, which wants the document's first
/// bracket in the first one.
const MOST_BLANKS: u64 = 256 * 1024;

/// Whether white space stands before the rest.
fn begins_blank(head: &[u8]) -> bool {
    !is_tar(head) && head.strip_prefix(BOM).unwrap_or(head).first().is_some_and(u8::is_ascii_whitespace)
}

/// The byte order mark of UTF-8.
const BOM: &[u8] = b"\xef\xbb\xbf";

/// The first bytes of an input behind white space.
struct Blanks {
    /// A byte order mark, if it begins with one.
    mark: &'static [u8],
    /// Bytes of white space that follow.
    count: u64,
    /// What stands behind it, as much of it as formats are recognised by.
    head: Vec<u8>,
    /// What went wrong behind that.
    error: Option<io::Error>,
}

impl Blanks {
    /// What to judge an input by that begins with `first`: what stands behind the white space, if that is JSON. A line feed is also how
    /// some binary files begin.
    fn judged<'h>(&'h self, first: &'h [u8]) -> &'h [u8] {
        if matches!(self.head.first(), None | Some(b'{' | b'[')) { &self.head } else { first }
    }

    /// Reads on in `input` from behind the bytes `head`.
    fn pass(mut head: Vec<u8>, input: &mut dyn Read) -> Self {
        let mark = if head.starts_with(BOM) { BOM } else { &[] };
        head.drain(..mark.len());
        let mut count = 0;
        loop {
            let blanks = head.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            head.drain(..blanks);
            count += blanks as u64;
            let room = HEAD - (head.len() as u64).min(HEAD);
            let read = if count < MOST_BLANKS && room > 0 { input.take(room).read_to_end(&mut head) } else { Ok(0) };
            if !matches!(read, Ok(1..)) {
                return Self { mark, count, head, error: read.err() };
            }
        }
    }
}

/// A reader that fails once, if there is an error to fail with.
struct Failed(Option<io::Error>);

impl Read for Failed {
    fn read(&mut self, _buffer: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}

/// The plain bytes of a stream. Gzip may have several members, zstd several frames.
fn decompress<'r>(mut input: Box<dyn Read + 'r>) -> io::Result<Box<dyn Read + 'r>> {
    const BUFFER: usize = 256 * 1024;
    let mut head = Vec::new();
    (&mut input).take(4).read_to_end(&mut head)?;
    let kind = compression(&head);
    let whole = io::Cursor::new(head).chain(input);
    Ok(match kind {
        None => Box::new(whole),
        Some(Compression::Gzip) => Box::new(flate2::bufread::MultiGzDecoder::new(BufReader::with_capacity(BUFFER, whole))),
        Some(Compression::Zstd) => Box::new(zstd::Decoder::new(whole)?),
    })
}

/// What the first bytes of an unknown input are.
fn describe_head(head: &[u8]) -> (String, &'static str) {
    if let Some((what, hint)) = binary_neighbour(head) {
        return (what.to_owned(), hint);
    }
    // Few enough to hold no secret: the prefix of a key may be shown, the key may not.
    let text: String = String::from_utf8_lossy(&head[..head.len().min(8)]).escape_debug().collect();
    (format!("bytes that begin with \"{text}\""), HINT)
}

/// What a JSON document without usable events is, and what to do with it.
fn describe_facts(facts: &FileFacts, head: &[u8], recorder: Recorder) -> (String, &'static str) {
    if let Some((what, hint)) = json_neighbour(facts) {
        return (what.to_owned(), hint);
    }
    let found = if facts.bytes > MOST_BLANKS && head.trim_ascii().is_empty() {
        format!("nothing but white space in its first {} KiB", MOST_BLANKS / 1024)
    } else if facts.bytes == 0 || head.trim_ascii().is_empty() {
        "an empty file".to_owned()
    } else if let Some(unset) = facts.problems.get(ProblemCode::UnsetTime) {
        format!("{} events that all start at the same time, as if it had never been set", unset.count)
    } else if facts.events == 1 {
        "1 event, which is no operator, call, range or device work".to_owned()
    } else if facts.events > 0 {
        format!("{} events, none of which is an operator, a call, a range or device work", facts.events)
    } else if facts.has_events {
        "an event list with no readable event".to_owned()
    } else if facts.events_are_no_list {
        "JSON whose `traceEvents` is no list of events".to_owned()
    } else if facts.keys.is_empty() {
        "JSON that is not an object with members".to_owned()
    } else {
        let keys: Vec<_> = facts.keys.iter().take(6).map(|key| format!("`{}`", key.escape_debug())).collect();
        format!("JSON with the keys {} and no `traceEvents`", keys.join(", "))
    };
    match recorder {
        Recorder::Xla => {
            (format!("a trace of JAX (XLA): {found}"), "run the work inside `with jax.profiler.trace(\"folder\"):`, and wait for it there")
        }
        Recorder::OnnxRuntime => (format!("a profile of ONNX Runtime: {found}"), "run the model before `end_profiling()`"),
        Recorder::Unknown => (found, "let its program write ranges (complete events, or begin and end pairs)"),
        _ => (found, HINT),
    }
}

impl std::fmt::Debug for ImportOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ImportOptions").field("threads", &self.threads).finish_non_exhaustive()
    }
}
