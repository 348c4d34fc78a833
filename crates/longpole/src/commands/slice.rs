//! `longpole slice`

use std::ffi::OsStr;
use std::io;

use longpole_report::{ChromeError, ChromeOrigin, ChromeSummary, ChromeTrace, Grade, bytes, count};

use crate::args::{Common, SliceArgs};
use crate::exit::Failure;
use crate::session::Session;
use crate::target::{Compression, Target, refuse_table_flags};

pub(super) fn run(args: &SliceArgs) -> Result<(), Failure> {
    let common = &args.common;
    check_flags("slice", common)?;
    // Before minutes of reading.
    let target = Target::find(&args.output, &[&common.input])?;
    let mut session = Session::open_with_arguments(common)?;
    session.needs_timeline("slice")?;
    let (source, part) = (session.source_path().to_owned(), session.header().part());
    let trace = ChromeTrace::new(&session.index, &session.scope).map_err(refusal)?;
    let writer = concat!("longpole ", env!("CARGO_PKG_VERSION"));
    let lost = session.lost();
    let origin = ChromeOrigin { writer, source: &source, part: &part, lost: &lost };
    let compression = Compression::of(&args.output, &target);
    let written = target.write("slice", |out| compression.write(out, |out| trace.write(out, origin)));
    let (summary, size) = written.map_err(|error| Failure::Output(named(&error, &session, &args.output)))?;
    session.analysed();
    session.note_to_stderr(&said(&summary, size, &session, args, &part));
    // That host times are inflated is for those who read them.
    if session.header().trust.grade != Grade::Good {
        session.trust_to_stderr();
    }
    session.finish()
}

/// Flags of tables have nothing to work on.
pub(super) fn check_flags(command: &str, common: &Common) -> Result<(), Failure> {
    refuse_table_flags(common, &format!("{command} writes a trace"))?;
    if common.full_names {
        return Err(Failure::Usage(format!("{command} writes a trace, not a table: --full-names has no place here")));
    }
    Ok(())
}

pub(super) fn refusal(error: ChromeError) -> Failure {
    Failure::Usage(match error {
        ChromeError::Nothing => "nothing of the trace lies in this scope, so there is nothing to write".to_owned(),
        ChromeError::SeveralRanks(mut ranks) => {
            ranks.sort_unstable();
            let all: Vec<_> = ranks.iter().take(8).map(u32::to_string).collect();
            let more = if ranks.len() > all.len() { ", ..." } else { "" };
            let mut distinct = ranks.clone();
            distinct.dedup();
            let way = if distinct.len() == ranks.len() { "choose one with --rank" } else { "give one of the files alone" };
            format!("there are {} recordings here (ranks {}{more}), and a trace file holds one: {way}", ranks.len(), all.join(", "))
        }
    })
}

/// The error with the file that it is about.
pub(super) fn named(error: &io::Error, session: &Session<'_>, output: &OsStr) -> io::Error {
    let name = session.shown(Some(&output.to_string_lossy())).unwrap_or_default();
    io::Error::new(error.kind(), format!("{name}: {error}"))
}

fn said(summary: &ChromeSummary, size: Option<u64>, session: &Session<'_>, args: &SliceArgs, part: &str) -> String {
    let size_of = |size: u64| bytes(i64::try_from(size).unwrap_or(i64::MAX));
    let name =
        session.shown(Some(&args.output.to_string_lossy())).filter(|name| name != "-").map_or_else(String::new, |name| format!(" {name}"));
    let on_disk = size.filter(|&size| size != summary.bytes).map_or_else(String::new, |size| format!("{}, ", size_of(size)));
    let unpacked = if on_disk.is_empty() { "" } else { " unpacked" };
    let what = if part.is_empty() { "the whole trace (no scope was given)" } else { part };
    let redacted = if args.common.no_redact { "not redacted" } else { "redacted" };
    let left_out = match summary.unreadable_inputs {
        0 => String::new(),
        inputs => format!("\nleft out: {} shapes, types or values of operators that are no JSON", count(inputs)),
    };
    let (events, unpacked_size) = (count(summary.events), size_of(summary.bytes));
    format!("wrote{name}: {events} events, {on_disk}{unpacked_size}{unpacked}; {what}, {redacted}{left_out}")
}
