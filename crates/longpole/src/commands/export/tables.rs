//! CSV: one table, or a folder with all of them.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::path::Path;

use longpole_analysis::{GroupBy, family_table, idle_table, kernel_table, memory_table, op_table, range_table};
use longpole_report::views::RangeLayout;
use longpole_report::{RowTable, Table, count, csv, views, write_rows};

use super::{end, open, slice, write};
use crate::args::ExportArgs;
use crate::commands::sort_ops;
use crate::exit::Failure;
use crate::session::Session;
use crate::target::{Target, find_folder};
use crate::whole_folder::WholeFolder;

/// Tables that follow from the rows: those of the commands, with all their columns.
const ANSWERS: [&str; 6] = ["ops", "kernels", "families", "ranges", "memory", "idle"];

/// A table by its name.
#[derive(Clone, Copy)]
enum Which {
    Answer(&'static str),
    Rows(RowTable),
}

impl Which {
    fn all() -> impl Iterator<Item = Self> {
        ANSWERS.into_iter().map(Self::Answer).chain(RowTable::ALL.into_iter().map(Self::Rows))
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Answer(name) => name,
            Self::Rows(rows) => rows.name(),
        }
    }

    fn find(name: &str) -> Result<Self, Failure> {
        Self::all().find(|which| which.name() == name).ok_or_else(|| {
            let names: Vec<_> = Self::all().map(Self::name).collect();
            Failure::Usage(format!("there is no table `{name}`; --table takes {}", names.join(", ")))
        })
    }

    /// Writes the table, and says how many rows it has.
    fn write(self, session: &Session<'_>, out: &mut dyn Write) -> io::Result<u64> {
        match self {
            Self::Answer(name) => {
                let table = answer(session, name);
                out.write_all(csv(&table).as_bytes())?;
                Ok(table.rows.len() as u64)
            }
            Self::Rows(rows) => write_rows(rows, &session.index, &session.scope, &session.header().trust.notes, out),
        }
    }
}

fn answer(session: &Session<'_>, name: &str) -> Table {
    let (index, scope, trace) = (&session.index, &session.scope, session.index.trace());
    match name {
        "ops" => {
            let mut table = op_table(index, scope, GroupBy::Name);
            sort_ops(&mut table);
            views::ops(&table, GroupBy::Name, trace.recorder)
        }
        "kernels" => {
            let rows = kernel_table(index, scope);
            views::kernels(&rows, rows.iter().map(|row| row.cuda_ns).sum(), true)
        }
        "families" => views::families(&family_table(index, scope)),
        "ranges" => views::ranges(&range_table(index, scope), RangeLayout::Tree, None),
        "memory" => views::memory(&memory_table(index, scope), trace.recorder),
        _ => views::idle_csv(&idle_table(index, scope), trace),
    }
}

/// Counts what passes.
struct Counted<'w> {
    out: &'w mut dyn Write,
    bytes: u64,
}

impl Write for Counted<'_> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let written = self.out.write(buffer)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

pub(super) fn run(args: &ExportArgs) -> Result<(), Failure> {
    let Some(name) = &args.table else { return folder(args) };
    let which = Which::find(name)?;
    let target = Target::find(args.output.as_deref().unwrap_or(OsStr::new("-")), &[&args.common.input])?;
    let session = open(args)?;
    let ((rows, bytes), size) = write(args, &session, &target, |out| {
        let mut counted = Counted { out, bytes: 0 };
        Ok((which.write(&session, &mut counted)?, counted.bytes))
    })?;
    end(args, session, &format!("{} rows of {}", count(rows), which.name()), bytes, size)
}

fn folder(args: &ExportArgs) -> Result<(), Failure> {
    let Some(output) = &args.output else {
        return Err(Failure::Usage("name the folder to write with -o, or one table with --table".to_owned()));
    };
    if Path::new(output).extension().is_some_and(|ending| ending.eq_ignore_ascii_case("csv")) {
        let name = output.display();
        return Err(Failure::Usage(format!("`{name}` would be one file: choose its table with --table, or name a folder for all of them")));
    }
    let name = |which: Which| format!("{}.csv", which.name());
    let names: Vec<String> = Which::all().map(name).collect();
    let folder = find_folder(output, &args.common.input, &names)?;
    let session = open(args)?;
    let (mut files, mut rows, mut bytes) = (0, 0, 0);
    let fill = || {
        let filling = WholeFolder::begin(&folder, "export", names)?;
        for which in Which::all() {
            let (of_table, size) = filling.write(&name(which), |out| which.write(&session, out))?;
            (files, rows, bytes) = (files + 1, rows + of_table, bytes + size);
        }
        filling.finish()
    };
    fill().map_err(|error| Failure::Output(slice::named(&error, &session, output)))?;
    end(args, session, &format!("{} tables, {} rows", count(files), count(rows)), bytes, Some(bytes))
}
