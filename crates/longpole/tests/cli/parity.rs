//! The operator table of the real importer: equal to torch's, and complete.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use longpole_analysis::{GroupBy, Scope, TraceIndex, op_table};
use longpole_ingest::{ImportOptions, Input, import};
use longpole_trace::{Ns, Trace};

use crate::harness::{CORPUS, root, trace};
use crate::torch_table::{CASES, differences};

/// A trace as users get it.
pub(crate) fn read(path: &Path) -> Trace {
    let options = ImportOptions { threads: 2, arguments: true, progress: None };
    import(&Input::Path(path.to_owned()), &options).unwrap_or_else(|error| panic!("{}: {error}", path.display())).trace
}

#[test]
fn host_rows_equal_torch() {
    let mut found = Vec::new();
    for name in CORPUS {
        let read = read(&root().join(trace(name)));
        for (_, table, by) in CASES.iter().filter(|(of, _, _)| *of == name) {
            found.extend(differences(&read, table, *by));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn every_table_of_torch_is_compared() {
    let files = std::fs::read_dir(root().join("corpus/kineto")).unwrap();
    let mut tables: Vec<String> = files
        .filter_map(|file| file.unwrap().file_name().to_str().and_then(|name| name.strip_suffix(".keyavg.json")).map(str::to_owned))
        .collect();
    tables.sort();
    let mut compared = CASES.map(|(_, table, _)| table);
    compared.sort_unstable();
    assert_eq!(tables, compared);
}

/// The sum of self CUDA over rows is the device's activity, however rows are told apart.
fn check_sums(path: &Path) {
    let trace = read(path);
    let activity: Ns = trace.activities.dur.iter().copied().sum();
    let index = TraceIndex::new(&trace);
    for by in [GroupBy::Name, GroupBy::Shape, GroupBy::Stack(2)] {
        let table = op_table(&index, &Scope::whole(), by);
        let sum: Ns = table.rows.iter().filter_map(|row| row.self_cuda_ns).sum();
        assert_eq!(sum, activity, "{} {by:?}", path.display());
        assert_eq!(table.self_cuda_total_ns, (!trace.activities.is_empty()).then_some(activity), "{} {by:?}", path.display());
    }
}

#[test]
fn self_cuda_sums_to_device_activity() {
    for name in CORPUS {
        check_sums(&root().join(trace(name)));
    }
}

/// Traces that may not be kept in the repository: the folder named in `LONGPOLE_SHARED`, else one beside the repository.
fn shared_traces() -> Vec<PathBuf> {
    let shared = std::env::var_os("LONGPOLE_SHARED").map_or_else(|| root().join("../shared"), PathBuf::from);
    let mut found = Vec::new();
    for folder in ["corpus/kineto/ours", "corpus/kineto/public"].map(|folder| shared.join(folder)) {
        let Ok(files) = std::fs::read_dir(&folder) else {
            // Written past the capture of test output: whoever reads a pass shall see what it left out.
            let _ = writeln!(std::io::stderr(), "skipped: there is no {}", folder.display());
            continue;
        };
        found.extend(files.map(|file| file.unwrap().path()).filter(|path| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            !name.ends_with(".keyavg.json") && [".json", ".json.gz", ".tar.gz"].iter().any(|end| name.ends_with(end))
        }));
    }
    found.sort();
    found
}

#[test]
fn self_cuda_sums_to_device_activity_in_shared_traces() {
    for path in &shared_traces() {
        check_sums(path);
    }
}
