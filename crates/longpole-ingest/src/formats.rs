//! The registry of formats: how each is recognised and read, one line each; and files of neighbouring tools that are
//! recognised only to say what to do with them.

use std::io::{self, Read};
use std::sync::atomic::AtomicU64;

use longpole_trace::TraceBuilder;

use crate::kineto::{self, FileFacts, FileSource, StreamSource};

/// What a format's reader is given.
pub(crate) enum Source<'r> {
    /// A plain file.
    File(FileSource),
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
    /// Reads one recording into the builder.
    pub(crate) read: fn(Source<'_>, usize, &mut TraceBuilder, u32, Report<'_>) -> io::Result<FileFacts>,
}

/// Every format that is read.
pub(crate) const FORMATS: &[Format] = &[Format { name: "kineto", sniff: looks_like_json, read: read_kineto }];

/// Files that are recognised but not read: first bytes, what they are, and what to do.
pub(crate) const NEIGHBOURS: &[(&[u8], &str, &str)] = &[
    (b"SQLite format 3\0", "an SQLite database (an Nsight Systems export?)", "give a PyTorch trace (`prof.export_chrome_trace`)"),
    (b"NVR\0", "an Nsight Compute report", "give a PyTorch trace (`prof.export_chrome_trace`)"),
    (b"PK\x03\x04", "a zip archive", "unpack it and give the trace inside"),
    (b"\x80\x02", "a Python pickle (a memory snapshot?)", "give a PyTorch trace (`prof.export_chrome_trace`)"),
    (b"\x80\x04", "a Python pickle (a memory snapshot?)", "give a PyTorch trace (`prof.export_chrome_trace`)"),
    (b"\x7fELF", "an executable", "give the trace that the run wrote"),
];

/// A JSON document begins with a bracket, after white space and perhaps a byte order mark.
fn looks_like_json(head: &[u8]) -> bool {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    head.trim_ascii_start().first().is_none_or(|byte| matches!(byte, b'{' | b'['))
}

fn read_kineto(source: Source<'_>, threads: usize, builder: &mut TraceBuilder, rank: u32, report: Report<'_>) -> io::Result<FileFacts> {
    match source {
        Source::File(file) => kineto::read(&file, threads, builder, rank, report),
        Source::Stream(input, consumed) => {
            let (source, pump) = StreamSource::new(threads + 1);
            std::thread::scope(|scope| {
                // The stream is read here, since an archive's member cannot leave its thread.
                let reader = scope.spawn(move || kineto::read(&source, threads, builder, rank, report));
                pump.run(input, consumed);
                match reader.join() {
                    Ok(facts) => facts,
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            })
        }
    }
}
