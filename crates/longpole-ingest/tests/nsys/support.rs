//! Shared by the tests.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use longpole_ingest::{ImportError, ImportOptions, Imported, Input, import};
use longpole_trace::{ActivityKind, Problems, Trace};
use tempfile::TempDir;

use crate::made::{Export, Version};

/// A file in a folder of its own.
pub(crate) struct Made {
    pub(crate) path: PathBuf,
    _folder: TempDir,
}

/// Makes an export.
pub(crate) fn made(version: Version, fill: impl FnOnce(&Export)) -> Made {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a b?é.sqlite");
    let export = Export::new(&path, version);
    fill(&export);
    Made { path, _folder: folder }
}

pub(crate) fn try_read(path: &Path, threads: usize) -> Result<Imported, ImportError> {
    import(&Input::Path(path.to_owned()), &ImportOptions { threads, ..ImportOptions::default() })
}

/// Imports an export that must be usable.
pub(crate) fn read(path: &Path) -> Imported {
    try_read(path, 2).unwrap_or_else(|error| panic!("{error}"))
}

/// Codes and counts of problems.
pub(crate) fn counts(problems: &Problems) -> Vec<(&'static str, u64)> {
    problems.iter().map(|problem| (problem.code.describe().0, problem.count)).collect()
}

/// Durations of kernels by name, in order.
pub(crate) fn kernels(trace: &Trace) -> BTreeMap<String, Vec<i64>> {
    let mut found = BTreeMap::<String, Vec<i64>>::new();
    let rows = &trace.activities;
    for row in (0..rows.len()).filter(|row| rows.kind[*row] == ActivityKind::Kernel) {
        found.entry(trace.strings.get(rows.name[row]).to_owned()).or_default().push(rows.dur[row].get());
    }
    for durations in found.values_mut() {
        durations.sort_unstable();
    }
    found
}

/// An activity's name and device, and name and process number of the calls with its correlation number in its recording.
pub(crate) type Launch = (String, i64, Vec<(String, i64)>);

/// All activities with their calls.
pub(crate) fn launches(trace: &Trace) -> Vec<Launch> {
    let (rows, calls) = (&trace.activities, &trace.api_calls);
    let call_of = |row: usize| {
        let rank = trace.lane_rank(rows.lane[row]);
        let same = |call: &usize| {
            rows.correlation(row).is_some()
                && calls.correlation(*call) == rows.correlation(row)
                && trace.thread_rank(calls.thread[*call]) == rank
        };
        let describe = |call: usize| {
            let process = trace.threads[calls.thread[call].index()].process;
            (trace.strings.get(calls.name[call]).to_owned(), trace.processes[process.index()].pid)
        };
        (0..calls.len()).filter(same).map(describe).collect()
    };
    (0..rows.len())
        .map(|row| {
            let device = trace.devices[trace.lanes[rows.lane[row].index()].device.index()].ordinal;
            (trace.strings.get(rows.name[row]).to_owned(), device, call_of(row))
        })
        .collect()
}

/// Ranges as text.
pub(crate) fn ranges(trace: &Trace) -> Vec<String> {
    let rows = &trace.ranges;
    (0..rows.len()).map(|row| format!("{} {}+{}", trace.strings.get(rows.name[row]), rows.start[row].get(), rows.dur[row].get())).collect()
}
