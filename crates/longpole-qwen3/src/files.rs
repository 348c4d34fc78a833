//! Files of a model, which may be somebody else's: only regular ones are opened, and none is read beyond a bound. And the file that results go to.

use std::fs::{File, Metadata};
use std::io::{BufWriter, ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};

use crate::error::Error;

/// Names of a temporary file that are tried.
const ATTEMPTS: u32 = 1000;

/// Opens a regular file. A pipe would be waited for, and a device has no end.
pub fn open(path: &Path) -> Result<File, Error> {
    let regular = |metadata: std::io::Result<Metadata>| match metadata {
        Ok(metadata) if metadata.is_file() => Ok(()),
        Ok(_) => Err(Error::content(path, "it is no regular file")),
        Err(cause) => Err(Error::file(path, cause)),
    };
    regular(std::fs::metadata(path))?;
    let file = File::open(path).map_err(|cause| Error::file(path, cause))?;
    // Once more by the handle, since the name may mean another file by now.
    regular(file.metadata())?;
    Ok(file)
}

/// The text of a regular file of `most` bytes at most.
pub fn text(path: &Path, most: u64) -> Result<String, Error> {
    let mut bytes = Vec::new();
    open(path)?.take(most.saturating_add(1)).read_to_end(&mut bytes).map_err(|cause| Error::file(path, cause))?;
    if bytes.len() as u64 > most {
        return Err(Error::content(path, format!("it has more than {most} bytes, and none of its kind needs so many")));
    }
    String::from_utf8(bytes).map_err(|_| Error::content(path, "it is no text in UTF-8"))
}

/// A file that is written. A regular one appears under its name when it is whole, so that a failure leaves what was there before; something else, such
/// as `/dev/null`, is written to as it is.
#[derive(Debug)]
pub struct Output {
    path: PathBuf,
    writer: Option<BufWriter<File>>,
    /// Where it is written meanwhile, and where it belongs.
    moved: Option<(PathBuf, PathBuf)>,
}

impl Output {
    /// Finds out whether a file can be written there, and begins it.
    pub fn create(path: &Path) -> Result<Self, Error> {
        let target = |what: &str| Error::Target { path: path.to_owned(), what: what.to_owned() };
        let failed = |cause: std::io::Error| target(&cause.to_string());
        if path.file_name().is_none() {
            return Err(target(if path.as_os_str().is_empty() { "an empty name is none of a file" } else { "it is a folder" }));
        }
        let before = match std::fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => return Err(target("it is a folder")),
            Ok(metadata) if !metadata.is_file() => {
                let file = File::options().write(true).open(path).map_err(failed)?;
                return Ok(Self { path: path.to_owned(), writer: Some(BufWriter::new(file)), moved: None });
            }
            Ok(metadata) => Some(metadata),
            Err(cause) if cause.kind() == ErrorKind::NotFound => None,
            Err(cause) => return Err(failed(cause)),
        };
        // A link stays one: what it points to is replaced.
        let whole = if before.is_some() { path.canonicalize().map_err(failed)? } else { path.to_owned() };
        let folder = match whole.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        if !folder.is_dir() {
            return Err(target("there is no such folder to put it into"));
        }
        for attempt in 0..ATTEMPTS {
            let part = folder.join(format!(".longpole-logits-{}-{attempt}.part", std::process::id()));
            match File::options().write(true).create_new(true).open(&part) {
                Ok(file) => {
                    let made = Self { path: path.to_owned(), writer: Some(BufWriter::new(file)), moved: Some((part.clone(), whole)) };
                    if let Some(before) = before {
                        std::fs::set_permissions(&part, before.permissions()).map_err(failed)?;
                    }
                    return Ok(made);
                }
                Err(cause) if cause.kind() == ErrorKind::AlreadyExists => {}
                Err(cause) => return Err(failed(cause)),
            }
        }
        Err(target("every name of a temporary file beside it is taken"))
    }

    fn failed(&self, cause: &std::io::Error) -> Error {
        Error::Target { path: self.path.clone(), what: cause.to_string() }
    }

    /// Writes on.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let written = self.writer.as_mut().map_or(Ok(()), |writer| writer.write_all(bytes));
        written.map_err(|cause| self.failed(&cause))
    }

    /// It is whole.
    pub fn finish(mut self) -> Result<(), Error> {
        let flushed = self.writer.take().map_or(Ok(()), |mut writer| writer.flush());
        flushed.map_err(|cause| self.failed(&cause))?;
        if let Some((part, whole)) = &self.moved {
            std::fs::rename(part, whole).map_err(|cause| self.failed(&cause))?;
        }
        self.moved = None;
        Ok(())
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Some((part, _)) = &self.moved {
            // It is a left-over at worst, and something else has failed already.
            let _ = std::fs::remove_file(part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn only_regular_files_are_read_and_only_so_far() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        std::fs::write(&path, "12345").unwrap();
        assert_eq!(text(&path, 5).unwrap(), "12345");
        assert!(text(&path, 4).unwrap_err().to_string().contains("a.json: it has more than 4 bytes"));
        std::fs::write(&path, [0xFF]).unwrap();
        assert!(text(&path, 4).unwrap_err().to_string().contains("no text"));
        assert!(text(Path::new("/dev/zero"), 4).unwrap_err().to_string().contains("/dev/zero: it is no regular file"));
        assert!(text(folder.path(), 4).unwrap_err().to_string().contains("no regular file"));
        let pipe = folder.path().join("pipe");
        let name = std::ffi::CString::new(pipe.to_str().unwrap()).unwrap();
        // SAFETY: the name ends in a zero and outlives the call.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        assert!(text(&pipe, 4).unwrap_err().to_string().contains("no regular file"));
    }

    #[test]
    fn a_failure_leaves_the_old_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("logits.bin");
        std::fs::write(&path, "old").unwrap();
        let mut output = Output::create(&path).unwrap();
        output.write(b"half of the").unwrap();
        assert_eq!(names(folder.path()).len(), 2);
        drop(output);
        assert_eq!((names(folder.path()).len(), std::fs::read(&path).unwrap()), (1, b"old".to_vec()));
        let (mut one, two) = (Output::create(&path).unwrap(), Output::create(&path).unwrap());
        one.write(b"new").unwrap();
        one.finish().unwrap();
        drop(two);
        assert_eq!((names(folder.path()), std::fs::read(&path).unwrap()), (vec!["logits.bin".to_owned()], b"new".to_vec()));
    }

    #[test]
    fn a_link_and_a_device_stay_what_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("logits.bin"), folder.path().join("link"));
        std::fs::write(&path, "old").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let mut output = Output::create(&link).unwrap();
        output.write(b"new").unwrap();
        output.finish().unwrap();
        assert!(link.is_symlink());
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        let mut null = Output::create(Path::new("/dev/null")).unwrap();
        null.write(b"gone").unwrap();
        null.finish().unwrap();
        assert!(!Path::new("/dev/null").is_file());
    }

    #[test]
    fn what_is_no_place_for_a_file_is_said() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("file"), "").unwrap();
        for (path, said) in [("", "folder"), ("gone/x.bin", "no such folder"), ("file/x.bin", "file/x.bin"), ("..", "folder")] {
            let complaint = Output::create(&folder.path().join(path)).unwrap_err().to_string();
            assert!(complaint.contains(said), "{path}: {complaint}");
        }
        assert!(Output::create(Path::new("")).unwrap_err().to_string().contains("empty name"));
        assert_eq!(names(folder.path()), ["file"]);
    }
}
