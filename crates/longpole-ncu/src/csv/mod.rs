//! ncu's own CSV: for who kept the table and not the report.
//!
//! Two pages are read. `--page raw` has a row a result and a column a metric, and a row of units below the header. `--page details` (the
//! default) has a row a metric, under labels instead of names, and a row a message of a rule. ncu prints the table to where the profiled
//! program prints, so that other lines may stand before the header and between rows.
//!
//! The table is read as a stream and kept as results in base units: what a report would have stored, to the printed digits.

mod cells;
mod header;
mod labels;
mod numbers;
mod table;

use std::io::Read;

use crate::error::Error;
use crate::report::{Backing, Report};
use crate::trouble::{TroubleCode, Troubles};

/// What the header of both pages starts with.
const HEADER: &[u8] = b"\"ID\",\"Process ID\"";

/// What some programs put before UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Longest table that is read. That of a thousand kernels with all metrics has a fiftieth of it.
const MOST_BYTES: u64 = 1 << 30;

/// Where in the start of an input the header of a table is: at the start of a line. `None` if there is none.
pub(crate) fn header_at(start: &[u8]) -> Option<usize> {
    let first = if start.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
    let lines = std::iter::once(first).chain(memchr::memchr_iter(b'\n', start).map(|end| end + 1));
    lines.into_iter().find(|&line| start[line.min(start.len())..].starts_with(HEADER))
}

/// Reads a table whose header starts at byte `header` of the input.
pub(crate) fn read(mut input: impl Read, header: usize, name: &str) -> Result<Report, Error> {
    let fail = |source| Error::Io { path: name.to_owned(), source };
    std::io::copy(&mut input.by_ref().take(header as u64), &mut std::io::sink()).map_err(fail)?;
    let troubles = Troubles::default();
    let mut rest = input.by_ref().take(MOST_BYTES);
    let mut tables = table::Tables::new(&troubles, header as u64);
    tables.read(&mut rest).map_err(fail)?;
    if rest.limit() == 0 {
        troubles.add(TroubleCode::CutReport, Some(MOST_BYTES), || Some("more than 1 GiB of table".to_owned()));
    }
    let bytes = header as u64 + (MOST_BYTES - rest.limit());
    let read = tables.finish();
    Ok(Report {
        path: name.to_owned(),
        format: "ncu-csv",
        bytes,
        session: read.session,
        processes: read.processes,
        troubles,
        names: read.names,
        backing: Backing::Table(read.results),
    })
}

/// A cell as text.
fn text_of(cell: &[u8]) -> String {
    String::from_utf8_lossy(cell).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_is_found_behind_other_lines() {
        assert_eq!(header_at(b"\"ID\",\"Process ID\",\"x\"\n"), Some(0));
        assert_eq!(header_at(b"\xef\xbb\xbf\"ID\",\"Process ID\"\n"), Some(3));
        assert_eq!(header_at(b"==PROF== Connected\r\nhello\n\"ID\",\"Process ID\"\n"), Some(26));
        assert_eq!(header_at(b"see \"ID\",\"Process ID\"\n"), None);
        assert_eq!(header_at(b""), None);
    }
}
