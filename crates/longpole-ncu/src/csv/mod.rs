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

use std::io::{self, BufRead, BufReader, Read};

use crate::error::Error;
use crate::report::{Backing, Page, Report};
use crate::trouble::{TroubleCode, Troubles};

/// What the header of both pages starts with.
const HEADER: &[u8] = b"\"ID\",\"Process ID\"";

/// What some programs put before UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Longest table that is read. That of a thousand kernels with all metrics has a fiftieth of it.
const MOST_BYTES: u64 = 1 << 30;

/// What ncu's own messages start with.
const MESSAGE: &[u8] = b"==PROF==";

/// Longest piece of a line that is looked at in one go while the header is searched.
const LONGEST_PIECE: u64 = 1 << 16;

/// True for the start of what may hold a table: its header, or ncu's messages, which come in front of it, one a kernel and more.
pub(crate) fn may_start(start: &[u8]) -> bool {
    let lines = std::iter::once(0).chain(memchr::memchr_iter(b'\n', start).map(|end| end + 1));
    let mut lines = lines.filter_map(|line| start.get(line..)).map(|line| line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line));
    lines.any(|line| line.starts_with(HEADER) || line.starts_with(MESSAGE))
}

/// Reads the tables of an input.
pub(crate) fn read(input: impl Read, name: &str) -> Result<Report, Error> {
    let fail = |source| Error::Io { path: name.to_owned(), source };
    let mut input = BufReader::with_capacity(1 << 16, input.take(MOST_BYTES));
    let Some((header, before)) = find_header(&mut input).map_err(fail)? else {
        return Err(Error::Unusable {
            path: name.to_owned(),
            expected: "a table of ncu",
            found: "other text that ncu prints".to_owned(),
            hint: "use `--csv --page raw`, or keep the report with `-o`",
        });
    };
    let troubles = Troubles::default();
    let mut tables = table::Tables::new(&troubles, before);
    tables.read(io::Cursor::new(header).chain(&mut input)).map_err(fail)?;
    let left = input.get_ref().limit();
    if left == 0 {
        troubles.add(TroubleCode::CutReport, Some(MOST_BYTES), || Some("more than 1 GiB of table".to_owned()));
    }
    let read = tables.finish();
    Ok(Report {
        path: name.to_owned(),
        format: "ncu-csv",
        bytes: MOST_BYTES - left,
        session: read.session,
        processes: read.processes,
        troubles,
        names: read.names,
        page: if read.has_details { Page::Details } else { Page::Raw },
        backing: Backing::Table(read.results),
    })
}

/// Skips to the header at the start of a line. What was read of it already, and how many bytes stand before it.
fn find_header(input: &mut impl BufRead) -> io::Result<Option<(Vec<u8>, u64)>> {
    let (mut before, mut is_start) = (0, true);
    let mut piece = Vec::new();
    loop {
        piece.clear();
        if input.by_ref().take(LONGEST_PIECE).read_until(b'\n', &mut piece)? == 0 {
            return Ok(None);
        }
        if before == 0 && piece.starts_with(BYTE_ORDER_MARK) {
            piece.drain(..BYTE_ORDER_MARK.len());
            before += BYTE_ORDER_MARK.len() as u64;
        }
        if is_start && piece.starts_with(HEADER) {
            return Ok(Some((piece, before)));
        }
        is_start = piece.ends_with(b"\n");
        before += piece.len() as u64;
    }
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
        let found = |text: &[u8]| find_header(&mut &text[..]).unwrap().map(|(_, before)| before);
        assert_eq!(found(b"\"ID\",\"Process ID\",\"x\"\n"), Some(0));
        assert_eq!(found(b"\xef\xbb\xbf\"ID\",\"Process ID\"\n"), Some(3));
        assert_eq!(found(b"==PROF== Connected\r\nhello\n\"ID\",\"Process ID\"\n"), Some(26));
        assert_eq!(found(b"see \"ID\",\"Process ID\"\n"), None);
        assert_eq!(found(b""), None);
        // Not in the middle of a line, however long.
        let long = [&vec![b'x'; LONGEST_PIECE as usize][..], HEADER, b"\n", HEADER].concat();
        assert_eq!(found(&long), Some(LONGEST_PIECE + HEADER.len() as u64 + 1));
    }

    #[test]
    fn tables_are_told_by_their_start() {
        assert!(may_start(b"\xef\xbb\xbf\"ID\",\"Process ID\""));
        assert!(may_start(b"hello\n==PROF== Connected to process 7\n"));
        assert!(!may_start(b"see \"ID\",\"Process ID\"\n") && !may_start(b"") && !may_start(b"x\n"));
    }
}
