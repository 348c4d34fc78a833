//! Several ranks read by the slow reader as one trace.

use std::io::Read as _;
use std::path::Path;

use longpole_trace::{Trace, TraceBuilder};

use crate::slow_reader;

/// Several ranks as one trace.
pub(crate) fn read_ranks(paths: &[&Path]) -> Trace {
    let mut builder = TraceBuilder::new();
    let bases: Vec<i64> = paths.iter().map(|path| slow_reader::add_file(&mut builder, path, 100)).collect();
    assert!(bases.windows(2).all(|pair| pair[0] == pair[1]), "recorded in one quarter of a year: {bases:?}");
    builder.finish()
}

/// The members of a compressed archive as one trace. In an archive a header of 512 bytes precedes each member, with its size in octal at 124, and
/// members are filled up to blocks of 512.
pub(crate) fn read_archive(path: &Path) -> Trace {
    let bytes = std::fs::read(path).unwrap();
    let mut archive = Vec::new();
    flate2::read::MultiGzDecoder::new(&bytes[..]).read_to_end(&mut archive).unwrap();
    let mut builder = TraceBuilder::new();
    let mut rest = &archive[..];
    while rest.len() > 512 && rest[0] != 0 {
        let size = std::str::from_utf8(&rest[124..135]).unwrap();
        let size = usize::from_str_radix(size, 8).unwrap();
        if size > 0 {
            slow_reader::add_text(&mut builder, std::str::from_utf8(&rest[512..512 + size]).unwrap(), 100);
        }
        rest = &rest[512 + size.next_multiple_of(512)..];
    }
    builder.finish()
}
