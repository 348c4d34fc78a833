//! Parquet files of all corpus traces, read by pyarrow: the same sums as the program's own CSV.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::Args;

/// Reads a folder of Parquet files and one of CSV, and compares rows, names of columns and sums of every column of numbers.
const SCRIPT: &str = r#"
import csv, os, sys
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
parquet, tables = sys.argv[1:]
csv.field_size_limit(1 << 30)
rows = 0
for name in sorted(os.listdir(parquet)):
    table = pq.read_table(os.path.join(parquet, name))
    with open(os.path.join(tables, name.replace(".parquet", ".csv")), newline="") as file:
        lines = list(csv.reader(file))
    assert lines[0] == table.column_names, (name, lines[0], table.column_names)
    assert len(lines) - 1 == table.num_rows, (name, len(lines) - 1, table.num_rows)
    for at, column in enumerate(table.column_names):
        cells = [line[at] for line in lines[1:]]
        values = table.column(column)
        if pa.types.is_integer(values.type):
            ours = sum(value for value in values.to_pylist() if value is not None)
            assert ours == sum(int(cell) for cell in cells if cell), (name, column)
            assert values.null_count == cells.count(""), (name, column)
        elif pa.types.is_string(values.type):
            assert len({value or "" for value in values.to_pylist()}) == len(set(cells)), (name, column)
    rows += table.num_rows
print(rows)
"#;

/// Where things are.
#[derive(Args)]
pub(crate) struct Options {
    /// The program, built with the feature parquet
    #[arg(long)]
    binary: PathBuf,
    /// A Python that has pyarrow
    #[arg(long)]
    python: PathBuf,
}

/// Exports every trace, and says how many rows were compared.
pub(crate) fn check(root: &Path, options: &Options) -> Result<(usize, u64)> {
    let place = tempfile::tempdir()?;
    let corpus = fs::read_dir(root.join("corpus/kineto"))?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>()?;
    let mut traces: Vec<_> = corpus.into_iter().filter(|path| path.to_string_lossy().ends_with(".json.gz")).collect();
    traces.sort();
    let mut rows = 0;
    for trace in &traces {
        let folder = |format: &str| place.path().join(format);
        for format in ["parquet", "csv"] {
            let ended = Command::new(&options.binary).arg("export").arg(trace).args(["--quiet", "-o"]).arg(folder(format)).status();
            ensure!(ended.context("the program starts")?.success(), "{}: {format}", trace.display());
        }
        let read = Command::new(&options.python).args(["-c", SCRIPT]).arg(folder("parquet")).arg(folder("csv")).output()?;
        ensure!(read.status.success(), "{}: {}", trace.display(), String::from_utf8_lossy(&read.stderr));
        rows += String::from_utf8_lossy(&read.stdout).trim().parse::<u64>()?;
    }
    Ok((traces.len(), rows))
}
