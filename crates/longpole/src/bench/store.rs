//! Where results are kept: `bench/results/<date>-<revision>/`, each file whole at any moment.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use longpole_bench::results::{Git, MAX_RESULTS_BYTES, Results};

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

/// A path in `folder` that is free: `name.end`, `name-2.end` and so on.
pub(crate) fn free(folder: &Path, name: &str, end: &str) -> PathBuf {
    let first = folder.join(format!("{name}.{end}"));
    let others = (2..10_000_u32).map(|number| folder.join(format!("{name}-{number}.{end}")));
    std::iter::once(first.clone()).chain(others).find(|path| !path.exists()).unwrap_or(first)
}

/// Writes a file so that it is the old one or the new one at any moment.
pub(crate) fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    // A device or a pipe cannot be replaced, only written to.
    if path.exists() && !path.is_file() {
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

/// Writes results.
pub(crate) fn save(path: &Path, results: &Results) -> Result<(), Failure> {
    let unwritable =
        |error: &dyn std::fmt::Display| Failure::Usage(format!("the results cannot be written to `{}`: {error}", path.display()));
    let mut text = serde_json::to_vec(results).map_err(|error| unwritable(&error))?;
    text.push(b'\n');
    write(path, &text).map_err(|error| unwritable(&error))
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
        let is_json = path.extension().is_some_and(|ending| ending == "json") && path.is_file();
        is_json.then(|| Some((path.metadata().ok()?.modified().ok()?, path)))?
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
        let first = free(folder.path(), "a", "json");
        write(&first, b"1").unwrap();
        assert!(free(folder.path(), "a", "json").ends_with("a-2.json"));
        let deep = folder.path().join("b/c.json");
        write(&deep, b"1").unwrap();
        write(&deep, b"2").unwrap();
        assert_eq!(fs::read(&deep).unwrap(), b"2");
        assert_eq!(fs::read_dir(folder.path().join("b")).unwrap().count(), 1, "no scratch file is left");
    }
}
