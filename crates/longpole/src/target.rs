//! A file that a command writes whole or not at all: a slice, a page, an export.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use flate2::write::GzEncoder;

use crate::args::{Common, Format};
use crate::exit::Failure;
use crate::unfinished::Unfinished;

/// Refuses flags of tables, which have nothing to work on where `what` is written.
pub(crate) fn refuse_table_flags(common: &Common, what: &str) -> Result<(), Failure> {
    let given = [
        ("--sort", common.sort.is_some()),
        ("--limit", common.limit.is_some()),
        ("--filter", common.filter.is_some()),
        ("--json, --markdown and --csv", common.format.format() != Format::Text),
    ];
    match given.iter().find(|(_, is_given)| *is_given) {
        None => Ok(()),
        Some((flag, _)) => Err(Failure::Usage(format!("{what}, not a table: {flag} has no place here"))),
    }
}

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compression {
    None,
    Gzip,
    Zstd,
}

impl Compression {
    /// By the ending of the name that `-o` gives; what goes down a pipe by the name of `-` is plain.
    pub(crate) fn of(output: &OsStr, target: &Target) -> Self {
        let ending = Path::new(output).extension().unwrap_or_default();
        if matches!(target, Target::Stdout) {
            Self::None
        } else if ending.eq_ignore_ascii_case("gz") {
            Self::Gzip
        } else if ending.eq_ignore_ascii_case("zst") {
            Self::Zstd
        } else {
            Self::None
        }
    }

    /// Writes compressed.
    pub(crate) fn write<T>(
        self,
        out: &mut (dyn Write + Send),
        write: impl FnOnce(&mut (dyn Write + Send)) -> io::Result<T>,
    ) -> io::Result<T> {
        match self {
            Self::None => write(out),
            Self::Gzip => {
                let mut gzip = GzEncoder::new(out, flate2::Compression::default());
                let written = write(&mut gzip)?;
                gzip.finish()?;
                Ok(written)
            }
            Self::Zstd => {
                let mut zstd = zstd::Encoder::new(out, zstd::DEFAULT_COMPRESSION_LEVEL)?;
                let written = write(&mut zstd)?;
                zstd.finish()?;
                Ok(written)
            }
        }
    }
}

/// Where it goes.
#[derive(Debug)]
pub(crate) enum Target {
    /// Standard output.
    Stdout,
    /// A file that is made, or replaced as a whole, once everything is written.
    File(PathBuf),
    /// A file that is made under a name that the user did not choose, so that what may be there is kept.
    New(PathBuf),
    /// A pipe or a device.
    Stream(PathBuf),
}

impl Target {
    /// The place that `-o` names, which must be none of the inputs.
    pub(crate) fn find(output: &OsStr, inputs: &[&OsStr]) -> Result<Self, Failure> {
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
        let is_input = |input: &&OsStr| {
            if *input == "-" {
                return is_standard_input(&real);
            }
            // Of a folder every file is input, but for a page that was written there before.
            let is_inside = |input: &Path| real.parent() == Some(input) && real.extension().is_none_or(|extension| extension != "html");
            Path::new(input).canonicalize().is_ok_and(|input| input == real || is_inside(&input))
        };
        if inputs.iter().any(is_input) {
            return Err(Failure::Usage(format!("`{shown}` is the input, which is not overwritten; choose another name")));
        }
        Ok(Self::File(real))
    }

    /// The place of a name that the user did not choose: nothing may be there.
    pub(crate) fn find_new(output: &OsStr) -> Result<Self, Failure> {
        refuse_taken(Path::new(output))?;
        match Self::find(output, &[])? {
            Self::File(path) => Ok(Self::New(path)),
            other => Ok(other),
        }
    }

    /// Writes everything; the size of the file, if it is one. `kind` is a word of the name that it has until it is whole.
    pub(crate) fn write<T>(
        &self,
        kind: &str,
        write: impl FnOnce(&mut (dyn Write + Send)) -> io::Result<T>,
    ) -> io::Result<(T, Option<u64>)> {
        match self {
            Self::Stdout => Ok((flushed(&mut io::stdout(), write)?, None)),
            Self::Stream(path) => Ok((flushed(&mut fs::OpenOptions::new().write(true).open(path)?, write)?, None)),
            Self::File(path) | Self::New(path) => {
                // Under another name until it is whole, so that a run that ends early leaves no half file behind: it goes with an error and
                // with a signal that can be caught. A run that is killed outright, or a loss of power, leaves the hidden file.
                let mut builder = tempfile::Builder::new();
                let prefix = format!(".longpole-{kind}-");
                builder.prefix(&prefix).suffix(".part");
                // Those of the file that is replaced, or what any new file has, less what the user's mask takes.
                let known = fs::metadata(path).ok().map(|metadata| metadata.permissions());
                #[cfg(unix)]
                let known = known.or_else(|| Some(std::os::unix::fs::PermissionsExt::from_mode(0o666)));
                if let Some(permissions) = known {
                    builder.permissions(permissions);
                }
                let mut file = builder.tempfile_in(folder(path))?;
                let _unfinished = Unfinished::guard(file.path());
                let written = flushed(&mut file, write)?;
                let size = file.as_file().metadata()?.len();
                if matches!(self, Self::New(_)) {
                    // It may have come while everything was read.
                    file.persist_noclobber(path)?;
                } else {
                    file.persist(path)?;
                }
                Ok((written, Some(size)))
            }
        }
    }
}

fn flushed<T>(out: &mut (dyn Write + Send), write: impl FnOnce(&mut (dyn Write + Send)) -> io::Result<T>) -> io::Result<T> {
    let written = write(out)?;
    out.flush()?;
    Ok(written)
}

/// A folder that is made, or filled with files of these names: its path, if it may be.
pub(crate) fn find_folder(output: &OsStr, input: &OsStr, names: &[String]) -> Result<PathBuf, Failure> {
    let path = PathBuf::from(output);
    let shown = path.display();
    if output.is_empty() || output == "-" {
        return Err(Failure::Usage("several files are written: name a folder with --output".to_owned()));
    }
    let Ok(real) = path.canonicalize() else {
        let parent = folder(&path);
        return if path.file_name().is_none() || !parent.is_dir() {
            Err(Failure::Usage(format!("cannot make the folder `{shown}`: there is no folder `{}`", parent.display())))
        } else {
            Ok(path)
        };
    };
    if !real.is_dir() {
        return Err(Failure::Usage(format!("`{shown}` is a file, and several files are written; name a folder")));
    }
    if input != "-" && Path::new(input).canonicalize().is_ok_and(|input| input == real) {
        return Err(Failure::Usage(format!("`{shown}` is the input; choose another folder")));
    }
    // Before minutes of reading.
    let is_taken = |name: &&String| real.join(name).symlink_metadata().is_ok_and(|known| !known.is_file() && !known.is_symlink());
    if let Some(name) = names.iter().find(is_taken) {
        return Err(Failure::Usage(format!("`{}` is no file, and is not replaced; choose another folder", path.join(name).display())));
    }
    let is_input = |name: &&String| real.join(name).canonicalize().is_ok_and(|file| is_one_of(&file, input));
    if let Some(name) = names.iter().find(is_input) {
        return Err(Failure::Usage(format!(
            "`{}` is the input and would be written over; choose another folder",
            path.join(name).display()
        )));
    }
    Ok(real)
}

/// Refuses a name that is taken, where the user did not choose it.
pub(crate) fn refuse_taken(output: &Path) -> Result<(), Failure> {
    // A link that leads nowhere is something too.
    if output.symlink_metadata().is_err() {
        return Ok(());
    }
    let shown = output.display();
    Err(Failure::Usage(format!("`{shown}` is there already: -o {shown} replaces it, another name after -o keeps it")))
}

/// Refuses an output that something is read from.
pub(crate) fn refuse_inputs(output: Option<&OsStr>, inputs: &[Option<&OsStr>]) -> Result<(), Failure> {
    let Some((output, real)) = output.and_then(|output| Some((output, Path::new(output).canonicalize().ok()?))) else { return Ok(()) };
    if real.is_file() && inputs.iter().flatten().any(|input| is_one_of(&real, input)) {
        return Err(Failure::Usage(format!("`{}` is an input, which is not overwritten; choose another name", output.display())));
    }
    Ok(())
}

/// Whether a file is an input.
fn is_one_of(file: &Path, input: &OsStr) -> bool {
    if input == "-" { is_standard_input(file) } else { Path::new(input).canonicalize().is_ok_and(|input| input == file) }
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
