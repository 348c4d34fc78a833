//! Where reports and ncu's own pages are.

use std::path::{Path, PathBuf};
use std::process::Command;

use longpole_ncu::Report;

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The folders with reports: that of the repository, and those that are not part of it, where they are.
pub(crate) fn folders() -> Vec<PathBuf> {
    std::iter::once(root().join("corpus/ncu")).chain(shared()).collect()
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

/// A file, or what its compressed form unpacks to; `None` without either, or, with a word about it, without an `xz` program.
pub(crate) fn load(path: &Path) -> Option<Vec<u8>> {
    let with = |end: &str| PathBuf::from(format!("{}{end}", path.display()));
    if path.is_file() {
        return Some(std::fs::read(path).unwrap());
    }
    if with(".zst").is_file() {
        return Some(zstd::decode_all(&std::fs::read(with(".zst")).unwrap()[..]).unwrap());
    }
    // A compressed report is read as it is.
    if with("z").is_file() {
        return Some(std::fs::read(with("z")).unwrap());
    }
    let packed = with(".xz");
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

/// All reports of all folders that have a page of this kind, e.g. `raw`.
pub(crate) fn with_pages(page: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in folders() {
        let names = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let ends = ["", ".xz", ".zst"].map(|end| format!(".{page}.csv{end}"));
        found.extend(names.filter_map(|name| ends.iter().find_map(|end| name.strip_suffix(end)).map(|name| folder.join(name))));
    }
    found.sort();
    assert!(found.len() >= 2, "{found:?}");
    found
}

/// A report with one of its pages, as text.
pub(crate) fn report_and_text(path: &Path, page: &str) -> Option<(Report, Vec<u8>)> {
    let bytes = load(&path.with_extension("ncu-rep"))?;
    let text = load(&path.with_extension(format!("{page}.csv")))?;
    Some((Report::read(&bytes[..], &path.display().to_string()).unwrap(), text))
}

/// A report with one of its pages, as lists of cells.
pub(crate) fn report_and_page(path: &Path, page: &str) -> Option<(Report, Vec<Vec<String>>)> {
    let (report, text) = report_and_text(path, page)?;
    Some((report, table(&text)))
}

/// What must have been compared at least, with and without the reports that are not part of the repository (one of which needs `xz`).
pub(crate) fn at_least(with: usize, without: usize) -> usize {
    let has_xz = Command::new("xz").arg("--version").output().is_ok();
    if has_xz && shared().is_some() { with } else { without }
}

/// The cells of a CSV file.
pub(crate) fn table(text: &[u8]) -> Vec<Vec<String>> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text);
    reader.records().map(|row| row.unwrap().iter().map(str::to_owned).collect()).collect()
}
