//! `longpole slice`

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use flate2::write::GzEncoder;
use longpole_report::{ChromeError, ChromeOrigin, ChromeSummary, ChromeTrace, Grade, bytes, count};

use crate::args::{Common, Format, SliceArgs};
use crate::exit::Failure;
use crate::session::Session;
use crate::unfinished::Unfinished;

pub(super) fn run(args: &SliceArgs) -> Result<(), Failure> {
    let common = &args.common;
    check_flags(common)?;
    // Before minutes of reading.
    let target = Target::find(&args.output, &common.input)?;
    let mut session = Session::open_with_arguments(common)?;
    session.needs_timeline("slice")?;
    let (source, part) = (session.source_path().to_owned(), session.header().part());
    let trace = ChromeTrace::new(&session.index, &session.scope).map_err(refusal)?;
    let writer = concat!("longpole ", env!("CARGO_PKG_VERSION"));
    let lost = session.lost();
    let written = target.write(Compression::of(&args.output), &trace, ChromeOrigin { writer, source: &source, part: &part, lost: &lost });
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
fn check_flags(common: &Common) -> Result<(), Failure> {
    let given = [
        ("--sort", common.sort.is_some()),
        ("--limit", common.limit.is_some()),
        ("--filter", common.filter.is_some()),
        ("--full-names", common.full_names),
        ("--json, --markdown and --csv", common.format.format() != Format::Text),
    ];
    match given.iter().find(|(_, is_given)| *is_given) {
        None => Ok(()),
        Some((flag, _)) => Err(Failure::Usage(format!("slice writes a trace, not a table: {flag} has no place here"))),
    }
}

fn refusal(error: ChromeError) -> Failure {
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
fn named(error: &io::Error, session: &Session<'_>, output: &OsStr) -> io::Error {
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compression {
    None,
    Gzip,
    Zstd,
}

impl Compression {
    /// By the name's ending.
    fn of(output: &OsStr) -> Self {
        let ending = Path::new(output).extension().unwrap_or_default();
        if ending.eq_ignore_ascii_case("gz") {
            Self::Gzip
        } else if ending.eq_ignore_ascii_case("zst") {
            Self::Zstd
        } else {
            Self::None
        }
    }
}

/// Where the trace goes.
#[derive(Debug)]
enum Target {
    Stdout,
    /// A file that is made, or replaced as a whole, once everything is written.
    File(PathBuf),
    /// A pipe or a device.
    Stream(PathBuf),
}

impl Target {
    fn find(output: &OsStr, input: &OsStr) -> Result<Self, Failure> {
        if output == "-" {
            return Ok(Self::Stdout);
        }
        if output.is_empty() {
            return Err(Failure::Usage("--output is empty; name the file to write, or - for standard output".to_owned()));
        }
        let path = PathBuf::from(output);
        let shown = path.display();
        // What a link leads to is replaced, not the link.
        let Ok(real) = path.canonicalize() else {
            let parent = folder(&path);
            return if path.file_name().is_none() || !parent.is_dir() {
                Err(Failure::Usage(format!("cannot write `{shown}`: there is no folder `{}`", parent.display())))
            } else {
                Ok(Self::File(path))
            };
        };
        if real.is_dir() {
            return Err(Failure::Usage(format!("`{shown}` is a folder; name the file to write")));
        }
        if !real.is_file() {
            return Ok(Self::Stream(path));
        }
        let is_input = if input == "-" {
            is_standard_input(&real)
        } else {
            Path::new(input).canonicalize().is_ok_and(|input| input == real || real.parent() == Some(&input))
        };
        if is_input {
            return Err(Failure::Usage(format!("`{shown}` is the input, which is not overwritten; choose another name")));
        }
        Ok(Self::File(real))
    }

    /// Writes everything; the size of the file, if it is one.
    fn write(
        &self,
        compression: Compression,
        trace: &ChromeTrace<'_, '_>,
        origin: ChromeOrigin<'_>,
    ) -> io::Result<(ChromeSummary, Option<u64>)> {
        match self {
            Self::Stdout => Ok((compressed(io::stdout().lock(), Compression::None, trace, origin)?, None)),
            Self::Stream(path) => Ok((compressed(fs::OpenOptions::new().write(true).open(path)?, compression, trace, origin)?, None)),
            Self::File(path) => {
                // Under another name until it is whole, so that a run that ends early leaves no half trace behind: it goes with an error and
                // with a signal that can be caught. A run that is killed outright, or a loss of power, leaves the hidden file.
                let mut builder = tempfile::Builder::new();
                builder.prefix(".longpole-slice-").suffix(".part");
                // Those of the file that is replaced, or what any new file has, less what the user's mask takes.
                let known = fs::metadata(path).ok().map(|metadata| metadata.permissions());
                #[cfg(unix)]
                let known = known.or_else(|| Some(std::os::unix::fs::PermissionsExt::from_mode(0o666)));
                if let Some(permissions) = known {
                    builder.permissions(permissions);
                }
                let mut file = builder.tempfile_in(folder(path))?;
                let _unfinished = Unfinished::guard(file.path());
                let summary = compressed(&mut file, compression, trace, origin)?;
                let size = file.as_file().metadata()?.len();
                file.persist(path)?;
                Ok((summary, Some(size)))
            }
        }
    }
}

/// Whether a file is what standard input comes from (`- < FILE`).
#[cfg(unix)]
fn is_standard_input(path: &Path) -> bool {
    use std::os::fd::AsFd as _;
    use std::os::unix::fs::MetadataExt as _;
    let identity = |metadata: io::Result<fs::Metadata>| metadata.ok().map(|metadata| (metadata.dev(), metadata.ino()));
    let input = io::stdin().as_fd().try_clone_to_owned().and_then(|descriptor| fs::File::from(descriptor).metadata());
    identity(input).is_some_and(|input| identity(fs::metadata(path)) == Some(input))
}

#[cfg(not(unix))]
fn is_standard_input(_: &Path) -> bool {
    false
}

/// The folder of a file.
fn folder(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."))
}

fn compressed(
    mut out: impl Write,
    compression: Compression,
    trace: &ChromeTrace<'_, '_>,
    origin: ChromeOrigin<'_>,
) -> io::Result<ChromeSummary> {
    let summary = match compression {
        Compression::None => trace.write(&mut out, origin)?,
        Compression::Gzip => {
            let mut gzip = GzEncoder::new(&mut out, flate2::Compression::default());
            let summary = trace.write(&mut gzip, origin)?;
            gzip.finish()?;
            summary
        }
        Compression::Zstd => {
            let mut zstd = zstd::Encoder::new(&mut out, zstd::DEFAULT_COMPRESSION_LEVEL)?;
            let summary = trace.write(&mut zstd, origin)?;
            zstd.finish()?;
            summary
        }
    };
    out.flush()?;
    Ok(summary)
}
