//! `longpole export`

#[cfg(feature = "parquet")]
mod parquet;
mod stacks;
mod tables;

use std::ffi::OsStr;
use std::io::{self, IsTerminal as _, Write};

use longpole_analysis::{StepOptions, step_table};
use longpole_report::{ChromeOrigin, ChromeTrace, Grade, bytes, count, has_events, perfetto, printable};

use super::slice;
use crate::args::{ExportArgs, ExportFormat};
use crate::exit::Failure;
use crate::session::Session;
use crate::target::{Compression, Target};

/// The program, as files say who wrote them.
const WRITER: &str = concat!("longpole ", env!("CARGO_PKG_VERSION"));

pub(super) fn run(args: &ExportArgs) -> Result<(), Failure> {
    slice::check_flags("export", &args.common)?;
    let format = args.format()?;
    match format {
        ExportFormat::Perfetto => run_perfetto(args),
        ExportFormat::Chrome => run_chrome(args),
        ExportFormat::Speedscope => stacks::speedscope(args),
        ExportFormat::Collapsed => stacks::collapsed(args),
        ExportFormat::Csv => tables::run(args),
        #[cfg(feature = "parquet")]
        ExportFormat::Parquet => parquet::run(args),
        #[cfg(not(feature = "parquet"))]
        ExportFormat::Parquet => Err(Failure::Usage(
            "this longpole was built without Parquet: build it with `cargo install --path crates/longpole --features parquet`, or take --to csv"
                .to_owned(),
        )),
    }
}

fn run_perfetto(args: &ExportArgs) -> Result<(), Failure> {
    let target = target(args)?;
    let session = open(args)?;
    let steps = step_table(&session.index, &session.scope, &StepOptions::default());
    let (summary, size) = write(args, &session, &target, |out| perfetto(&session.index, &session.scope, &steps, out))?;
    let counts = if summary.counts > 0 { format!(", {} counter values", count(summary.counts)) } else { String::new() };
    let what = format!("{} tracks, {} slices{counts}", count(summary.tracks), count(summary.slices));
    end(args, session, &what, summary.bytes, size)
}

fn run_chrome(args: &ExportArgs) -> Result<(), Failure> {
    let target = target(args)?;
    let session = open(args)?;
    let (source, part, lost) = (session.source_path().to_owned(), session.header().part(), session.lost());
    let trace = ChromeTrace::new(&session.index, &session.scope).map_err(slice::refusal)?;
    let origin = ChromeOrigin { writer: WRITER, source: &source, part: &part, lost: &lost };
    let (summary, size) = write(args, &session, &target, |out| trace.write(out, origin))?;
    let left_out = match summary.unreadable_inputs {
        0 => String::new(),
        inputs => format!(" ({} shapes, types or values that are no JSON left out)", count(inputs)),
    };
    end(args, session, &format!("{} events{left_out}", count(summary.events)), summary.bytes, size)
}

/// Where a single file goes that is not for people.
fn target(args: &ExportArgs) -> Result<Target, Failure> {
    let Some(output) = &args.output else {
        return Err(Failure::Usage("name the file to write with -o, or - for standard output".to_owned()));
    };
    if output == "-" && io::stdout().is_terminal() {
        return Err(Failure::Usage("standard output is a terminal, where this is of no use: name a file with -o".to_owned()));
    }
    Target::find(output, &[&args.common.input])
}

/// Reads the trace, which must have something in its scope.
fn open(args: &ExportArgs) -> Result<Session<'_>, Failure> {
    let session = Session::open_with_arguments(&args.common)?;
    session.needs_timeline("export")?;
    if has_events(&session.index, &session.scope) {
        Ok(session)
    } else {
        Err(Failure::Usage("nothing of the trace lies in this scope, so there is nothing to write".to_owned()))
    }
}

/// Writes a file.
fn write<T>(
    args: &ExportArgs,
    session: &Session<'_>,
    target: &Target,
    write: impl FnOnce(&mut (dyn Write + Send)) -> io::Result<T>,
) -> Result<(T, Option<u64>), Failure> {
    let output = args.output.as_deref().unwrap_or(OsStr::new("-"));
    let compression = Compression::of(output, target);
    target.write("export", |out| compression.write(out, write)).map_err(|error| Failure::Output(slice::named(&error, session, output)))
}

/// Says what was written, and how far it can be trusted.
fn end(args: &ExportArgs, mut session: Session<'_>, what: &str, unpacked: u64, size: Option<u64>) -> Result<(), Failure> {
    session.analysed();
    let name = args.output.as_deref().map(OsStr::to_string_lossy).filter(|name| name != "-");
    let name = session.shown(name.as_deref()).map_or_else(String::new, |name| format!(" {}", printable(&name)));
    let size_of = |size: u64| bytes(i64::try_from(size).unwrap_or(i64::MAX));
    let sizes = match size.filter(|&size| size != unpacked) {
        Some(size) => format!("{}, {} unpacked", size_of(size), size_of(unpacked)),
        None => size_of(unpacked),
    };
    let part = session.header().part();
    let part = if part.is_empty() { "the whole trace" } else { &part };
    let redacted = if args.common.no_redact { "not redacted" } else { "redacted" };
    session.note_to_stderr(&format!("wrote{name}: {what}, {sizes}; {part}, {redacted}"));
    if session.header().trust.grade != Grade::Good {
        session.trust_to_stderr();
    }
    session.finish()
}
