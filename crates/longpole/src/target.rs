//! A file that is written as a whole: under another name until it is complete, compressed by its ending, never over the input.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use flate2::write::GzEncoder;

use crate::exit::Failure;
use crate::unfinished::Unfinished;

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compression {
    None,
    Gzip,
    Zstd,
}

impl Compression {
    /// By the name's ending.
    pub(crate) fn of(output: &OsStr) -> Self {
        let ending = Path::new(output).extension().unwrap_or_default();
        if ending.eq_ignore_ascii_case("gz") {
            Self::Gzip
        } else if ending.eq_ignore_ascii_case("zst") {
            Self::Zstd
        } else {
            Self::None
        }
    }

    fn write<T>(self, mut out: impl Write + Send, write: impl FnOnce(&mut (dyn Write + Send)) -> io::Result<T>) -> io::Result<T> {
        let written = match self {
            Self::None => write(&mut out)?,
            Self::Gzip => {
                let mut gzip = GzEncoder::new(&mut out, flate2::Compression::default());
                let written = write(&mut gzip)?;
                gzip.finish()?;
                written
            }
            Self::Zstd => {
                let mut zstd = zstd::Encoder::new(&mut out, zstd::DEFAULT_COMPRESSION_LEVEL)?;
                let written = write(&mut zstd)?;
                zstd.finish()?;
                written
            }
        };
        out.flush()?;
        Ok(written)
    }
}

/// Where a file goes.
#[derive(Debug)]
pub(crate) enum Target {
    Stdout,
    /// A file that is made, or replaced as a whole, once everything is written.
    File(PathBuf),
    /// A pipe or a device.
    Stream(PathBuf),
}

impl Target {
    /// Looks at what the user named, before anything is read.
    pub(crate) fn find(output: &OsStr, input: &OsStr) -> Result<Self, Failure> {
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
        if is_input(&real, input) {
            return Err(Failure::Usage(format!("`{shown}` is the input, which is not overwritten; choose another name")));
        }
        Ok(Self::File(real))
    }

    /// Writes everything; the size of the file, if it is one.
    pub(crate) fn write<T>(
        &self,
        compression: Compression,
        write: impl FnOnce(&mut (dyn Write + Send)) -> io::Result<T>,
    ) -> io::Result<(T, Option<u64>)> {
        match self {
            Self::Stdout => Ok((Compression::None.write(io::stdout(), write)?, None)),
            Self::Stream(path) => Ok((compression.write(fs::OpenOptions::new().write(true).open(path)?, write)?, None)),
            Self::File(path) => {
                // Under another name until it is whole, so that a run that ends early leaves no half file behind: it goes with an error and
                // with a signal that can be caught. A run that is killed outright, or a loss of power, leaves the hidden file.
                let mut builder = tempfile::Builder::new();
                builder.prefix(".longpole-").suffix(".part");
                // Those of the file that is replaced, or what any new file has, less what the user's mask takes.
                let known = fs::metadata(path).ok().map(|metadata| metadata.permissions());
                #[cfg(unix)]
                let known = known.or_else(|| Some(std::os::unix::fs::PermissionsExt::from_mode(0o666)));
                if let Some(permissions) = known {
                    builder.permissions(permissions);
                }
                let mut file = builder.tempfile_in(folder(path))?;
                let _unfinished = Unfinished::guard(file.path());
                let written = compression.write(&mut file, write)?;
                let size = file.as_file().metadata()?.len();
                file.persist(path)?;
                Ok((written, Some(size)))
            }
        }
    }
}

/// A folder that is made, or filled: its path, if it may be.
pub(crate) fn find_folder(output: &OsStr, input: &OsStr) -> Result<PathBuf, Failure> {
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
    Ok(real)
}

fn is_input(real: &Path, input: &OsStr) -> bool {
    if input == "-" {
        is_standard_input(real)
    } else {
        Path::new(input).canonicalize().is_ok_and(|input| input == real || real.parent() == Some(&input))
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
