//! The registry of formats: how each is recognised and read, one line each.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use longpole_trace::TraceBuilder;

use crate::kineto::{self, Counting, FileFacts, FileSource, StreamSource};
use crate::{nsys, recording};

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
    /// Whether the first bytes may be this format.
    pub(crate) sniff: fn(&[u8]) -> bool,
    /// Reads a recording (or several, one after the other in one input) into the builder.
    pub(crate) read: fn(Source<'_>, Reading, &mut TraceBuilder, u32, Report<'_>) -> io::Result<Vec<FileFacts>>,
}

/// How events are read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    /// Threads that parse.
    pub(crate) threads: usize,
    /// Keep strides and values of operators' arguments.
    pub(crate) arguments: bool,
}

/// Every format that is read.
pub(crate) const FORMATS: &[Format] = &[
    Format { name: "kineto", sniff: looks_like_json, read: read_kineto },
    Format { name: "nsys", sniff: nsys::looks_like_sqlite, read: read_nsys },
    Format { name: "longpole", sniff: recording::looks_like_recording, read: read_recording },
];

/// A JSON document begins with a bracket, after white space and perhaps a byte order mark.
fn looks_like_json(head: &[u8]) -> bool {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    head.trim_ascii_start().first().is_none_or(|byte| matches!(byte, b'{' | b'['))
}

fn read_kineto(
    source: Source<'_>,
    reading: Reading,
    builder: &mut TraceBuilder,
    rank: u32,
    report: Report<'_>,
) -> io::Result<Vec<FileFacts>> {
    match source {
        Source::File(file, _) => kineto::read(&file, reading, builder, rank, report),
        Source::Stream(input, consumed) => {
            let (source, pump) = StreamSource::new(reading.threads + 1);
            std::thread::scope(|scope| {
                // The stream is read here, since an archive's member cannot leave its thread.
                let reader = scope.spawn(move || kineto::read(&source, reading, builder, rank, report));
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
        Source::File(_, path) => {
            let consumed = Arc::new(AtomicU64::new(0));
            let mut counted = Counting { inner: File::open(path)?, count: Arc::clone(&consumed) };
            recording::read(&mut counted, &consumed, reading, builder, rank, report)
        }
        Source::Stream(input, consumed) => recording::read(input, consumed, reading, builder, rank, report),
    }
}
