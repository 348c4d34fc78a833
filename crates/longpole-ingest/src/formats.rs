//! The registry of formats: how each is recognised and read, one line each.

use std::io::{self, Read};
use std::path::Path;
use std::sync::atomic::AtomicU64;

use longpole_trace::{Recorder, TraceBuilder};

use crate::kineto::{self, Dialect, FileFacts, FileSource, StreamSource};
use crate::neighbours::is_utf16;
use crate::{nsys, recording, totals};

/// What a format's reader is given.
pub(crate) enum Source<'r> {
    /// A plain file, and where it is.
    File(FileSource, &'r Path),
    /// Anything else, decompressed; the counter tells how far the underlying file was read.
    Stream(&'r mut dyn Read, &'r AtomicU64),
}

/// How a reader reports: bytes of the underlying file consumed so far.
pub(crate) type Report<'r> = &'r (dyn Fn(u64) + Sync);

/// A format that is read.
pub(crate) struct Format {
    /// Name in `source.format`.
    pub(crate) name: &'static str,
    /// What makes such recordings.
    pub(crate) recorder: Recorder,
    /// Whether the first bytes may be this format.
    pub(crate) sniff: fn(&[u8]) -> bool,
    /// Reads a recording (or several, one after the other in one input) into the builder.
    pub(crate) read: fn(Source<'_>, Reading, &mut TraceBuilder, u32, Report<'_>) -> io::Result<Vec<FileFacts>>,
    /// What users want to know before they have a file of it.
    facts: FormatFacts,
}

/// What can be asked of an input: the commands that read one, in the order of their list.
pub const QUESTIONS: [&str; 15] = [
    "triage", "ops", "kernels", "families", "ranges", "steps", "idle", "roofline", "memory", "ranks", "diff", "check", "slice", "report",
    "ncu",
];

/// Which of [`QUESTIONS`] a format answers, and how well; those in no list it cannot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answers {
    /// With all that the command can say.
    pub whole: &'static [&'static str],
    /// If the recording was asked for what it takes.
    pub if_recorded: &'static [&'static str],
    /// In sums alone: the format does not say when anything ran.
    pub totals: &'static [&'static str],
}

/// What is to be known of a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FormatFacts {
    /// Name in `source.format` of every document.
    pub name: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// Versions and producers that it was read from.
    pub producers: &'static str,
    /// Endings of its files. Files are recognised by content, whatever they are called.
    pub endings: &'static [&'static str],
    /// How to make one.
    pub record: &'static str,
    /// What it answers.
    pub answers: Answers,
}

/// Every format that is read, those included that a command of their own reads; the most usual first.
pub fn formats() -> impl Iterator<Item = &'static FormatFacts> {
    FORMATS.iter().rev().map(|format| &format.facts).chain(&READ_BY_THEIR_OWN_COMMAND)
}

/// How events are read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    /// Threads that parse.
    pub(crate) threads: usize,
    /// Keep strides and values of operators' arguments.
    pub(crate) arguments: bool,
}

/// Commands that a timeline answers.
const OF_TIMELINES: &[&str] = &["triage", "kernels", "families", "ranges", "steps", "idle", "ranks", "diff", "check", "slice", "report"];

/// Commands that a timeline with operators answers.
const WITH_OPERATORS: &[&str] =
    &["triage", "ops", "kernels", "families", "ranges", "steps", "idle", "ranks", "diff", "check", "slice", "report"];

/// Every format that is read. The first that recognises an input reads it, so what is more particular stands first, and the most usual last.
pub(crate) const FORMATS: &[Format] = &[
    Format {
        name: "tensorrt",
        recorder: Recorder::TensorRt,
        sniff: totals::looks_like_tensorrt,
        read: totals::read_tensorrt,
        facts: FormatFacts {
            name: "tensorrt",
            title: "TensorRT layer profile",
            producers: "trtexec of TensorRT 7 and newer (medians since 8.4)",
            endings: &[".json"],
            record: "trtexec --loadEngine=ENGINE --exportProfile=profile.json --separateProfileRun",
            answers: Answers { whole: &[], if_recorded: &[], totals: &["triage", "kernels", "families", "diff", "check", "report"] },
        },
    },
    Format {
        name: "proton",
        recorder: Recorder::Proton,
        sniff: totals::looks_like_proton,
        read: totals::read_proton,
        facts: FormatFacts {
            name: "proton",
            title: "Triton Proton",
            producers: "trees of Triton 3.0 and newer, NVIDIA and AMD; times, flops and bytes, cycles",
            endings: &[".hatchet", ".json"],
            record: "proton.start(\"name\", hook=\"triton\") ... proton.finalize()",
            answers: Answers {
                whole: &[],
                if_recorded: &[],
                totals: &["triage", "kernels", "families", "ranges", "diff", "check", "report"],
            },
        },
    },
    Format {
        name: "chrome",
        recorder: Recorder::Unknown,
        sniff: |head| Dialect::of(head) == Dialect::Chrome,
        read: read_chrome,
        facts: FormatFacts {
            name: "chrome",
            title: "other Chrome traces",
            producers: "begin and end pairs, asynchronous ones, complete events",
            endings: &[".json", ".json.gz"],
            record: "any program that writes the Trace Event Format",
            answers: Answers { whole: &["triage", "ranges", "diff", "check", "slice", "report"], if_recorded: &[], totals: &[] },
        },
    },
    Format {
        name: "onnxruntime",
        recorder: Recorder::OnnxRuntime,
        sniff: |head| Dialect::of(head) == Dialect::Onnx,
        read: read_onnx,
        facts: FormatFacts {
            name: "onnxruntime",
            title: "ONNX Runtime",
            producers: "profiles of 1.0 to 1.23; device work from builds with CUDA profiling",
            endings: &[".json", ".json.gz"],
            record: "SessionOptions.enable_profiling = True",
            answers: Answers {
                whole: &["triage", "ops", "ranges", "diff", "check", "slice", "report"],
                if_recorded: &["kernels", "families", "steps", "idle", "ranks"],
                totals: &[],
            },
        },
    },
    Format {
        name: "jax",
        recorder: Recorder::Xla,
        sniff: |head| Dialect::of(head) == Dialect::Jax,
        read: read_jax,
        facts: FormatFacts {
            name: "jax",
            title: "JAX (XLA)",
            producers: "jax.profiler of JAX 0.4 to 0.11, GPU",
            endings: &[".trace.json.gz"],
            record: "with jax.profiler.trace(\"folder\"): ...",
            answers: Answers { whole: WITH_OPERATORS, if_recorded: &[], totals: &[] },
        },
    },
    Format {
        name: "nsys",
        recorder: Recorder::NsightSystems,
        sniff: nsys::looks_like_sqlite,
        read: read_nsys,
        facts: FormatFacts {
            name: "nsys",
            title: "Nsight Systems",
            producers: "exports of 2021 to 2026.2; reports where `nsys` is installed",
            endings: &[".sqlite", ".nsys-rep"],
            record: "nsys profile --trace=cuda,nvtx --cuda-graph-trace=node, then nsys export --type sqlite",
            answers: Answers { whole: OF_TIMELINES, if_recorded: &["ops"], totals: &[] },
        },
    },
    Format {
        name: "longpole",
        recorder: Recorder::Longpole,
        sniff: recording::looks_like_recording,
        read: read_recording,
        facts: FormatFacts {
            name: "longpole",
            title: "longpole's own recorder",
            producers: "recordings of any CUDA program, format version 1",
            endings: &[".longpole", ".lprec"],
            record: "longpole record -- PROGRAM",
            answers: Answers { whole: OF_TIMELINES, if_recorded: &["ops"], totals: &[] },
        },
    },
    // Any other JSON: its reader says what it is, if it is no trace.
    Format {
        name: "kineto",
        recorder: Recorder::Torch,
        sniff: looks_like_json,
        read: read_kineto,
        facts: FormatFacts {
            name: "kineto",
            title: "PyTorch profiler (Kineto)",
            producers: "torch 1.8 to 2.11, CUDA and ROCm, and what vLLM, SGLang and HTA write of it",
            endings: &[".json", ".json.gz", ".json.zst", ".tar.gz"],
            record: "prof.export_chrome_trace(\"trace.json.gz\")",
            answers: Answers { whole: WITH_OPERATORS, if_recorded: &["roofline", "memory"], totals: &[] },
        },
    },
];

/// Formats of which no trace is made.
const READ_BY_THEIR_OWN_COMMAND: [FormatFacts; 1] = [FormatFacts {
    name: "ncu",
    title: "Nsight Compute",
    producers: "reports and CSV of ncu 2020 to 2025",
    endings: &[".ncu-rep", ".ncu-repz", ".csv"],
    record: "ncu -o report PROGRAM",
    answers: Answers { whole: &["diff", "report", "ncu"], if_recorded: &[], totals: &[] },
}];

/// A JSON document begins with a bracket, after white space and perhaps a byte order mark.
fn looks_like_json(head: &[u8]) -> bool {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    head.trim_ascii_start().first().is_none_or(|byte| matches!(byte, b'{' | b'[')) && !is_utf16(head)
}

macro_rules! reads_dialect {
    ($($name:ident $dialect:ident),*) => {$(
        fn $name(source: Source<'_>, reading: Reading, builder: &mut TraceBuilder, rank: u32, report: Report<'_>) -> io::Result<Vec<FileFacts>> {
            read_events(source, reading, Dialect::$dialect, builder, rank, report)
        }
    )*};
}
reads_dialect!(read_kineto Kineto, read_jax Jax, read_onnx Onnx, read_chrome Chrome);

fn read_events(
    source: Source<'_>,
    reading: Reading,
    dialect: Dialect,
    builder: &mut TraceBuilder,
    rank: u32,
    report: Report<'_>,
) -> io::Result<Vec<FileFacts>> {
    match source {
        Source::File(file, _) => kineto::read(&file, reading, dialect, builder, rank, report),
        Source::Stream(input, consumed) => {
            let (source, pump) = StreamSource::new(reading.threads + 1);
            std::thread::scope(|scope| {
                // The stream is read here, since an archive's member cannot leave its thread.
                let reader = scope.spawn(move || kineto::read(&source, reading, dialect, builder, rank, report));
                pump.run(input, consumed);
                match reader.join() {
                    Ok(facts) => facts,
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            })
        }
    }
}

fn read_nsys(
    source: Source<'_>,
    reading: Reading,
    builder: &mut TraceBuilder,
    rank: u32,
    report: Report<'_>,
) -> io::Result<Vec<FileFacts>> {
    match source {
        Source::File(_, path) => nsys::read(path, reading, builder, rank, report),
        Source::Stream(input, consumed) => nsys::read_stream(input, consumed, reading, builder, rank, report),
    }
}

fn read_recording(
    source: Source<'_>,
    reading: Reading,
    builder: &mut TraceBuilder,
    rank: u32,
    report: Report<'_>,
) -> io::Result<Vec<FileFacts>> {
    match source {
        Source::File(file, _) => recording::read(&file, reading, builder, rank, report),
        Source::Stream(input, consumed) => recording::read_stream(input, consumed, reading, builder, rank, report),
    }
}
