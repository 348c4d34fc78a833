//! Where reports and ncu's own pages are.

use std::path::{Path, PathBuf};
use std::process::Command;

use longpole_ncu::Report;

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The folder of reports that are not part of the repository; `None`, with a word about it, where it is absent.
pub(crate) fn shared() -> Option<PathBuf> {
    let shared = std::env::var_os("LONGPOLE_SHARED").map_or_else(|| root().join("../shared"), PathBuf::from);
    let folder = shared.join("corpus/ncu");
    if !folder.is_dir() {
        eprintln!("skipped: there is no {}", folder.display());
        return None;
    }
    Some(folder)
}

/// A file of the shared folder, or what `xz` makes of its compressed form; `None`, with a word about it, without either.
pub(crate) fn load(path: &Path) -> Option<Vec<u8>> {
    if path.is_file() {
        return Some(std::fs::read(path).unwrap());
    }
    let packed = PathBuf::from(format!("{}.xz", path.display()));
    if !packed.is_file() {
        return None;
    }
    match Command::new("xz").arg("-dc").arg(&packed).output() {
        Ok(output) if output.status.success() => Some(output.stdout),
        Ok(output) => panic!("xz failed on {}: {}", packed.display(), String::from_utf8_lossy(&output.stderr)),
        Err(_) => {
            eprintln!("skipped {}: there is no xz program", packed.display());
            None
        }
    }
}

/// The names of all reports of the shared folder that have a page of this kind, e.g. `raw`.
pub(crate) fn names(folder: &Path, page: &str) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .filter_map(|entry| {
            let file = entry.unwrap().file_name().into_string().unwrap();
            let name = file.strip_suffix(".xz").unwrap_or(&file);
            name.strip_suffix(&format!(".{page}.csv")).map(str::to_owned)
        })
        .collect();
    names.sort();
    names
}

/// A report of the shared folder with one of its pages, as lists of cells.
pub(crate) fn with_page(folder: &Path, name: &str, page: &str) -> Option<(Report, Vec<Vec<String>>)> {
    let bytes = load(&folder.join(format!("{name}.ncu-rep")))?;
    let text = load(&folder.join(format!("{name}.{page}.csv")))?;
    Some((Report::read(&bytes[..], name).unwrap(), table(&text)))
}

/// The cells of a CSV file.
pub(crate) fn table(text: &[u8]) -> Vec<Vec<String>> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text);
    reader.records().map(|row| row.unwrap().iter().map(str::to_owned).collect()).collect()
}
