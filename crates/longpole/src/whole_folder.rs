//! A folder of files that a command writes all or none of: tables join, so tables of two runs side by side would be worse than none.
//!
//! Files are written into a hidden folder inside the one that they belong in, and take their names once all are complete. What had those
//! names waits in the hidden folder until the last one is in place, and goes back when something fails. So an error or a signal that can be
//! caught leaves the folder as it was; a run that is killed outright, or a loss of power, leaves the hidden folder too, and between two of
//! the last renames the old files in it.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::unfinished::{Deferred, Unfinished};

/// A folder that is being filled.
pub(crate) struct WholeFolder {
    folder: PathBuf,
    names: Vec<String>,
    staging: TempDir,
    /// Dropped last but for the folder that was made.
    unfinished: Unfinished,
    made: Made,
}

/// The folder itself, when it was not there: it goes again while it is empty.
struct Made(Option<PathBuf>);

impl Drop for Made {
    fn drop(&mut self) {
        if let Some(folder) = &self.0 {
            // A folder in which something was left is not empty, and stays.
            let _ = fs::remove_dir(folder);
        }
    }
}

impl WholeFolder {
    /// Begins to fill a folder, which is made when it is not there, with files of these names.
    pub(crate) fn begin(folder: &Path, kind: &str, names: Vec<String>) -> io::Result<Self> {
        let made = match fs::create_dir(folder) {
            Ok(()) => Made(Some(folder.to_owned())),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Made(None),
            Err(error) => return Err(error),
        };
        for name in &names {
            may_be_replaced(&folder.join(name))?;
        }
        let staging = tempfile::Builder::new().prefix(&format!(".longpole-{kind}-")).suffix(".part").tempdir_in(folder)?;
        let files: Vec<PathBuf> = names.iter().map(|name| staging.path().join(name)).collect();
        let mut folders = vec![staging.path().to_owned()];
        folders.extend(made.0.clone());
        let unfinished = Unfinished::guard_all(&files, &folders);
        Ok(Self { folder: folder.to_owned(), names, staging, unfinished, made })
    }

    /// Writes one of the files; what `write` returns.
    pub(crate) fn write<T>(&self, name: &str, write: impl FnOnce(&mut (dyn Write + Send)) -> io::Result<T>) -> io::Result<(T, u64)> {
        let mut file = File::create(self.staging.path().join(name))?;
        let written = write(&mut file)?;
        file.flush()?;
        Ok((written, file.metadata()?.len()))
    }

    /// Gives all files their names.
    pub(crate) fn finish(self) -> io::Result<()> {
        // A signal in the middle waits until all is done, or undone.
        let deferred = Deferred::begin();
        let moved = self.publish();
        let Self { staging, unfinished, mut made, .. } = self;
        if moved.is_ok() {
            made.0 = None;
        }
        drop((staging, made, unfinished));
        drop(deferred);
        moved
    }

    fn publish(&self) -> io::Result<()> {
        let mut undo = Undo { renames: Vec::new() };
        for name in &self.names {
            let (new, place, old) =
                (self.staging.path().join(name), self.folder.join(name), self.staging.path().join(format!("{name}.old")));
            may_be_replaced(&place)?;
            if let Ok(metadata) = fs::symlink_metadata(&place) {
                if metadata.is_file() {
                    // As strict as what it replaces.
                    fs::set_permissions(&new, metadata.permissions())?;
                }
                undo.rename(&place, &old)?;
            }
            undo.rename(&new, &place)?;
        }
        undo.renames.clear();
        Ok(())
    }
}

/// Whether a file may have this name: a folder, or a device, is not replaced by a table.
fn may_be_replaced(place: &Path) -> io::Result<()> {
    match fs::symlink_metadata(place) {
        Ok(metadata) if !metadata.is_file() && !metadata.is_symlink() => {
            let name = place.file_name().unwrap_or_default().to_string_lossy();
            Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("`{name}` in it is no file, and is not replaced")))
        }
        _ => Ok(()),
    }
}

/// Renames that are undone, last one first, unless they are forgotten.
struct Undo {
    renames: Vec<(PathBuf, PathBuf)>,
}

impl Undo {
    fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)?;
        self.renames.push((from.to_owned(), to.to_owned()));
        Ok(())
    }
}

impl Drop for Undo {
    fn drop(&mut self) {
        for (from, to) in self.renames.drain(..).rev() {
            // Nothing more can be done, and what failed first is what is said.
            let _ = fs::rename(to, from);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    /// Names and contents of the files of a folder; folders have none.
    fn state(folder: &Path) -> Vec<(String, String)> {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
        let text = |path: PathBuf| fs::read_to_string(path).unwrap_or_default();
        let mut found: Vec<_> = entries.map(|entry| (entry.file_name().into_string().unwrap(), text(entry.path()))).collect();
        found.sort();
        found
    }

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|&(name, text)| (name.to_owned(), text.to_owned())).collect()
    }

    fn put(filling: &WholeFolder, name: &str, text: &str) {
        let written = filling.write(name, |out| out.write_all(text.as_bytes())).unwrap();
        assert_eq!(written, ((), text.len() as u64));
    }

    #[test]
    fn all_files_come_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let folder = directory.path().join("tables");
        for version in ["1", "2"] {
            let filling = WholeFolder::begin(&folder, "export", names(&["a", "b"])).unwrap();
            put(&filling, "a", version);
            assert!(!state(&folder).contains(&("a".to_owned(), version.to_owned())));
            put(&filling, "b", version);
            filling.finish().unwrap();
            assert_eq!(state(&folder), pairs(&[("a", version), ("b", version)]));
        }
    }

    #[test]
    fn what_fails_while_it_is_written_changes_nothing() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("b"), "old").unwrap();
        let filling = WholeFolder::begin(directory.path(), "export", names(&["a", "b"])).unwrap();
        put(&filling, "a", "new");
        filling.write("b", |_| Err::<(), _>(io::Error::other("full"))).unwrap_err();
        drop(filling);
        assert_eq!(state(directory.path()), pairs(&[("b", "old")]));
        // Nor is a folder left that was not there.
        let folder = directory.path().join("new");
        drop(WholeFolder::begin(&folder, "export", names(&["a"])).unwrap());
        assert!(!folder.exists());
    }

    #[test]
    fn what_fails_while_it_is_named_is_undone() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["a", "c"] {
            fs::write(directory.path().join(name), "old").unwrap();
        }
        let filling = WholeFolder::begin(directory.path(), "export", names(&["a", "b", "c", "d"])).unwrap();
        for name in ["a", "b", "c"] {
            put(&filling, name, "new");
        }
        // `d` was never written.
        filling.finish().unwrap_err();
        assert_eq!(state(directory.path()), pairs(&[("a", "old"), ("c", "old")]));
    }

    #[test]
    fn a_folder_of_that_name_stays() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("a")).unwrap();
        fs::write(directory.path().join("a/kept"), "").unwrap();
        let refused = WholeFolder::begin(directory.path(), "export", names(&["a"])).err().unwrap().to_string();
        assert!(refused.contains("`a` in it is no file"), "{refused}");
        // Made while tables were written.
        let filling = WholeFolder::begin(directory.path(), "export", names(&["b", "c"])).unwrap();
        put(&filling, "b", "new");
        put(&filling, "c", "new");
        fs::create_dir(directory.path().join("c")).unwrap();
        filling.finish().unwrap_err();
        assert_eq!(state(directory.path()), pairs(&[("a", ""), ("c", "")]));
        assert!(directory.path().join("a/kept").exists());
    }

    #[cfg(unix)]
    #[test]
    fn rights_are_those_of_what_is_replaced() {
        use std::os::unix::fs::PermissionsExt as _;
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a");
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        let filling = WholeFolder::begin(directory.path(), "export", names(&["a"])).unwrap();
        put(&filling, "a", "new");
        filling.finish().unwrap();
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
    }
}
