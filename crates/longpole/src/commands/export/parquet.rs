//! Parquet: a folder with a file a table.

use std::borrow::Cow;

use longpole_analysis::{Family, HostRow};
use longpole_parquet::{Export, Problem, Table};
use longpole_report::{count, redact};
use longpole_trace::{ActivityId, Ns, ThreadId};

use super::{WRITER, end, open, slice};
use crate::args::ExportArgs;
use crate::exit::Failure;
use crate::target::find_folder;
use crate::whole_folder::WholeFolder;

pub(super) fn run(args: &ExportArgs) -> Result<(), Failure> {
    let Some(output) = &args.output else { return Err(Failure::Usage("name the folder to write with -o".to_owned())) };
    let name = |table: Table| format!("{}.parquet", table.name());
    let names: Vec<String> = Table::ALL.into_iter().map(name).collect();
    let folder = find_folder(output, &args.common.input, &names)?;
    let session = open(args)?;
    let (index, scope, trace) = (&session.index, &session.scope, session.index.trace());
    let host = |thread: ThreadId, start: Ns| scope.includes_host(trace, thread, start);
    let includes = |table: Table, row: usize| match table {
        Table::Activities => scope.includes_activity(index, ActivityId::from_index(row)),
        Table::Calls => host(trace.api_calls.thread[row], trace.api_calls.start[row]),
        Table::HostOps => host(trace.host_ops.thread[row], trace.host_ops.start[row]),
        Table::RangeInstances => host(trace.ranges.thread[row], trace.ranges.start[row]),
        Table::MemoryEvents => host(trace.memory.thread[row], trace.memory.start[row]),
        Table::PythonFrames => host(trace.frames.thread[row], trace.frames.start[row]),
        Table::Threads | Table::Devices | Table::Problems => true,
    };
    let no_redact = args.common.no_redact;
    let notes = session.header().trust.notes.iter();
    let problems: Vec<_> = notes
        .map(|note| Problem {
            code: note.code.to_owned(),
            severity: note.severity.name().to_owned(),
            count: note.count,
            message: note.message.clone(),
            hint: note.hint.to_owned(),
        })
        .collect();
    let (source, scope_in_words) = (session.source_path().to_owned(), session.header().part());
    let export = Export {
        trace,
        includes: &includes,
        call: &|activity| index.links().call(activity).map(|call| call.0),
        op: &|activity| match index.tree().row(index.links().owner_node(activity)?) {
            HostRow::Op(op) => Some(op.0),
            HostRow::Range(_) | HostRow::Api(_) => None,
        },
        family: &|kind, name| Family::of(kind, name).name(),
        // The trace was redacted when it was opened, and redacting again changes nothing: this is for what was not in it, the notes.
        rewrite: &|text| if no_redact { Cow::Borrowed(text) } else { redact(text) },
        problems: &problems,
        metadata: &[("writer", WRITER.to_owned()), ("source", source), ("scope", scope_in_words)],
    };
    let (mut rows, mut bytes) = (0, 0);
    let fill = || {
        let filling = WholeFolder::begin(&folder, "export", names)?;
        for table in Table::ALL {
            let (of_table, size) = filling.write(&name(table), |out| export.write(table, out))?;
            (rows, bytes) = (rows + of_table, bytes + size);
        }
        filling.finish()
    };
    fill().map_err(|error| Failure::Output(slice::named(&error, &session, output)))?;
    end(args, session, &format!("{} tables, {} rows", count(Table::ALL.len() as u64), count(rows)), bytes, Some(bytes))
}
