//! Where results are kept: `bench/results/<date>-<revision>/`, each file whole at any moment.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use longpole_bench::results::{Git, MAX_RESULTS_BYTES, Results};

use super::interrupt;
use super::when::When;
use crate::exit::Failure;

/// The folder of results where no flag names another.
pub(crate) const FOLDER: &str = "bench/results";

/// The folder of what was measured at a state of the sources on a day.
pub(crate) fn folder(parent: &Path, when: When, git: Option<&Git>) -> PathBuf {
    let revision =
        git.map_or_else(|| "norev".to_owned(), |git| format!("{}{}", git.revision, if git.dirty == Some(true) { "+" } else { "" }));
    parent.join(format!("{}-{revision}", when.day()))
}

/// A part of a file's name, from what a suite calls itself.
pub(crate) fn name_part(text: &str) -> String {
    let kept: String = text.chars().map(|c| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' }).take(60).collect();
    let kept = kept.trim_start_matches('.');
    if kept.is_empty() { "suite".to_owned() } else { kept.to_owned() }
}

/// Makes an empty file in `folder` and returns its path: `name.end`, or `name-2.end` and so on where that is taken. Whoever else asks at the same
/// moment gets another one.
pub(crate) fn reserve(folder: &Path, name: &str, end: &str) -> io::Result<PathBuf> {
    fs::create_dir_all(folder)?;
    let numbered = (2..10_000_u32).map(|number| folder.join(format!("{name}-{number}.{end}")));
    for path in std::iter::once(folder.join(format!("{name}.{end}"))).chain(numbered) {
        match File::create_new(&path) {
            Ok(_) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Takes a reserved file away in which nothing was written.
pub(crate) fn release(path: &Path) {
    if fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() == 0) {
        // It may be gone already, which is as good.
        let _ = fs::remove_file(path);
    }
}

/// The folder that a path lies in.
fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Whether it is a device or a pipe, which cannot be replaced, only written to.
pub(crate) fn is_stream(path: &Path) -> bool {
    path.exists() && !path.is_file() && !path.is_dir()
}

/// Whether a file can be written there, found without writing it.
pub(crate) fn probe(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    // Whoever reads a pipe would take closing it for the end.
    if is_stream(path) {
        return Ok(());
    }
    fs::create_dir_all(folder_of(path))?;
    tempfile::Builder::new().prefix(".longpole-").tempfile_in(folder_of(path)).map(drop)
}

/// Which file lies at a path, so that it is noticed when another takes its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    modified: Option<SystemTime>,
    bytes: u64,
    number: u64,
}

impl Stamp {
    /// Of the file there; `None` if there is none.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let found = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
        #[cfg(unix)]
        let number = std::os::unix::fs::MetadataExt::ino(&found);
        #[cfg(not(unix))]
        let number = 0;
        Some(Self { modified: found.modified().ok(), bytes: found.len(), number })
    }
}

/// A free name beside a path.
pub(crate) fn beside(path: &Path) -> io::Result<PathBuf> {
    let part =
        |part: Option<&std::ffi::OsStr>, otherwise: &str| part.map_or(otherwise.to_owned(), |part| part.to_string_lossy().into_owned());
    reserve(folder_of(path), &part(path.file_stem(), "results"), &part(path.extension(), "json"))
}

/// Writes a file so that it is the old one or the new one at any moment.
pub(crate) fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    interrupt::outlive_file_limits();
    let folder = folder_of(path);
    fs::create_dir_all(folder)?;
    if is_stream(path) || path.is_dir() {
        return File::create(path)?.write_all(content);
    }
    let mut file = tempfile::Builder::new().prefix(".longpole-").tempfile_in(folder)?;
    file.write_all(content)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        // A scratch file is for its owner alone; results are for everybody who may read the folder.
        file.as_file().set_permissions(fs::Permissions::from_mode(0o644))?;
    }
    file.persist(path)?;
    Ok(())
}

/// That results cannot be kept, as a sentence.
pub(crate) fn unwritable(path: &Path, error: &dyn std::fmt::Display) -> String {
    format!("the results cannot be written to `{}`: {error}", path.display())
}

/// Writes results; the error is a sentence.
pub(crate) fn save(path: &Path, results: &Results) -> Result<(), String> {
    let mut text = serde_json::to_vec(results).map_err(|error| unwritable(path, &error))?;
    text.push(b'\n');
    write(path, &text).map_err(|error| unwritable(path, &error))
}

/// Reads results: a file, or the newest one of a folder.
pub(crate) fn read(path: &Path) -> Result<(Results, PathBuf), Failure> {
    let path = if path.is_dir() { newest(path)? } else { path.to_path_buf() };
    let named = path.display();
    let mut text = Vec::new();
    let read = File::open(&path).and_then(|file| file.take(MAX_RESULTS_BYTES + 1).read_to_end(&mut text));
    read.map_err(|error| Failure::Input(format!("cannot read `{named}`: {error}")))?;
    if text.len() as u64 > MAX_RESULTS_BYTES {
        return Err(Failure::Input(format!("`{named}` is larger than {MAX_RESULTS_BYTES} bytes, which no results are")));
    }
    let results = Results::parse(&text).map_err(|error| Failure::Input(format!("`{named}`: {error}")))?;
    Ok((results, path))
}

fn newest(folder: &Path) -> Result<PathBuf, Failure> {
    let entries = fs::read_dir(folder).map_err(|error| Failure::Input(format!("cannot list `{}`: {error}", folder.display())))?;
    let results = entries.filter_map(|entry| {
        let path = entry.ok()?.path();
        let found = path.metadata().ok().filter(|_| path.extension().is_some_and(|ending| ending == "json"))?;
        // An empty one is a name that a run holds until it has measured something.
        (found.is_file() && found.len() > 0).then(|| Some((found.modified().ok()?, path)))?
    });
    let newest = results.max().map(|(_, path)| path);
    newest.ok_or_else(|| Failure::Input(format!("`{}` holds no results (.json)", folder.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_harmless_and_free() {
        assert_eq!([name_part("../a b"), name_part(""), name_part("x-1.0")], ["_a_b", "suite", "x-1.0"]);
        let folder = tempfile::tempdir().unwrap();
        let first = reserve(folder.path(), "a", "json").unwrap();
        let second = reserve(folder.path(), "a", "json").unwrap();
        assert!(first.ends_with("a.json") && second.ends_with("a-2.json"));
        write(&first, b"1").unwrap();
        for path in [&first, &second] {
            release(path);
        }
        assert!(first.exists() && !second.exists(), "only what is empty goes");
        let deep = folder.path().join("b/c.json");
        write(&deep, b"1").unwrap();
        write(&deep, b"2").unwrap();
        assert_eq!(fs::read(&deep).unwrap(), b"2");
        assert!(probe(&deep).is_ok() && probe(&folder.path().join("b")).is_err() && probe(&deep.join("d.json")).is_err());
        assert_eq!(fs::read_dir(folder.path().join("b")).unwrap().count(), 1, "no scratch file is left");
    }

    #[test]
    fn many_at_once_get_a_name_each() {
        let folder = tempfile::tempdir().unwrap();
        let one = || reserve(folder.path(), "a", "json").unwrap();
        let names = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(one)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect::<std::collections::BTreeSet<_>>()
        });
        assert_eq!(names.len(), 8);
    }

    #[test]
    fn another_file_in_the_place_of_one_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        assert_eq!(Stamp::of(&path), None);
        write(&path, b"1").unwrap();
        let first = Stamp::of(&path);
        assert!(first.is_some() && Stamp::of(&path) == first);
        write(&path, b"22").unwrap();
        assert_ne!(Stamp::of(&path), first);
        assert!(beside(&path).unwrap().ends_with("a-2.json"));
    }
}
