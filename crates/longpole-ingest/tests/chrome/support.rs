//! Shared by the tests: the corpus, and tables of a trace as counts and sums.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use longpole_ingest::{Imported, import_bytes};
use longpole_trace::{ActivityKind, Ns, StrId};

/// Calls and nanoseconds by name.
pub(crate) type Sums = BTreeMap<String, (u64, i64)>;

pub(crate) fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/other")
}

/// Public files that may not be in the repository, if they are there.
pub(crate) fn public(name: &str) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let shared = std::env::var_os("LONGPOLE_SHARED").map_or_else(|| root.join("../shared"), PathBuf::from);
    Some(shared.join("corpus/other").join(name)).filter(|path| path.exists())
}

/// A file's plain bytes.
pub(crate) fn bytes(path: &Path) -> Vec<u8> {
    let packed = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    if !packed.starts_with(&[0x1f, 0x8b]) {
        return packed;
    }
    let mut plain = Vec::new();
    flate2::read::MultiGzDecoder::new(&packed[..]).read_to_end(&mut plain).unwrap();
    plain
}

/// A trace of the corpus.
pub(crate) fn corpus_bytes(name: &str) -> Vec<u8> {
    bytes(&corpus().join(name))
}

pub(crate) fn read(bytes: &[u8]) -> Imported {
    import_bytes(bytes, 2).unwrap_or_else(|error| panic!("{error}"))
}

fn sums(imported: &Imported, rows: impl Iterator<Item = (StrId, Ns)>) -> Sums {
    let mut sums = Sums::new();
    for (name, dur) in rows {
        let sum = sums.entry(imported.trace.strings.get(name).to_owned()).or_default();
        *sum = (sum.0 + 1, sum.1 + dur.get());
    }
    sums
}

macro_rules! tables {
    ($($name:ident $table:ident),*) => {$(
        pub(crate) fn $name(imported: &Imported) -> Sums {
            let table = &imported.trace.$table;
            sums(imported, (0..table.len()).map(|row| (table.name[row], table.dur[row])))
        }
    )*};
}
tables!(ops host_ops, calls api_calls, work activities, ranges ranges, frames frames);

/// Device work by the operator whose external id it has.
pub(crate) fn work_by_op(imported: &Imported) -> Sums {
    let trace = &imported.trace;
    let op_of =
        |id: u64| (0..trace.host_ops.len()).find(|&op| trace.host_ops.external_id(op) == Some(id)).map(|op| trace.host_ops.name[op]);
    let owned = (0..trace.activities.len()).filter_map(|row| {
        let op = op_of(trace.activities.external_id(row)?).expect("an external id is an operator's");
        Some((op, trace.activities.dur[row]))
    });
    sums(imported, owned)
}

pub(crate) fn of_kind(imported: &Imported, kind: ActivityKind) -> usize {
    imported.trace.activities.kind.iter().filter(|found| **found == kind).count()
}

/// Problems as `code count`.
pub(crate) fn problems(imported: &Imported) -> Vec<(&'static str, u64)> {
    imported.problems.iter().map(|problem| (problem.code.describe().0, problem.count)).collect()
}
