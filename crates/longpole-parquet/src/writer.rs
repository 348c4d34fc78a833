//! Rows into row groups, a column at a time.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{Compression, Encoding};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;

use crate::tables::{Cell, Column, columns};
use crate::{ColumnKind, Export, ROWS_A_GROUP, Table};

/// Bytes of distinct texts of a column and row group that stay in its dictionary: kernel names are long.
const DICTIONARY_BYTES: usize = 8 << 20;

fn as_io(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(error) => match error.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(error) => io::Error::other(error),
        },
        other => io::Error::other(other),
    }
}

/// Texts of the trace as they are written, each rewritten once.
struct Texts {
    of: Vec<Option<ByteArray>>,
}

pub(crate) fn write(export: &Export<'_>, table: Table, out: &mut (dyn Write + Send)) -> io::Result<u64> {
    let columns = columns(table);
    let schema = parse_message_type(&message(table, columns)).map_err(as_io)?;
    let mut file = SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties(export, columns))).map_err(as_io)?;
    let mut texts = Texts { of: vec![None; export.trace.strings.len()] };
    let mut rows = (0..table.len(export)).filter(|&row| (export.includes)(table, row)).peekable();
    let mut written = 0;
    // A file without rows has one row group, so that every reader finds its columns.
    while rows.peek().is_some() || written == 0 {
        let of_group: Vec<usize> = rows.by_ref().take(ROWS_A_GROUP).collect();
        let mut group = file.next_row_group().map_err(as_io)?;
        for column in columns {
            write_column(export, column, &of_group, &mut texts, &mut group).map_err(as_io)?;
        }
        group.close().map_err(as_io)?;
        written += of_group.len() as u64;
        if of_group.is_empty() {
            break;
        }
    }
    file.close().map_err(as_io)?;
    Ok(written)
}

/// The schema as text. Names of columns are ours.
fn message(table: Table, columns: &[Column]) -> String {
    let mut text = format!("message {} {{\n", table.name());
    for column in columns {
        let presence = if column.is_required { "required" } else { "optional" };
        let kind = match column.kind {
            ColumnKind::Signed | ColumnKind::Rising => ("int64", " (INTEGER(64,true))"),
            ColumnKind::Unsigned => ("int64", " (INTEGER(64,false))"),
            ColumnKind::Text => ("binary", " (STRING)"),
            ColumnKind::Flag => ("boolean", ""),
        };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "  {presence} {} {}{};", kind.0, column.name, kind.1);
    }
    text.push('}');
    text
}

fn properties(export: &Export<'_>, columns: &[Column]) -> WriterProperties {
    let about: Vec<String> = columns.iter().map(|column| format!("{}: {}", column.name, column.what)).collect();
    let own = [
        ("longpole.schema".to_owned(), "1".to_owned()),
        ("longpole.columns".to_owned(), about.join("\n")),
        ("longpole.base_unix_ns".to_owned(), export.trace.base_unix_ns.map_or_else(String::new, |base| base.to_string())),
    ];
    let more = export.metadata.iter().map(|(key, value)| (format!("longpole.{key}"), value.clone()));
    let metadata = own.into_iter().chain(more).map(|(key, value)| KeyValue::new(key, value)).collect();
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(concat!("longpole ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_dictionary_page_size_limit(DICTIONARY_BYTES)
        .set_key_value_metadata(Some(metadata));
    for column in columns.iter().filter(|column| column.kind == ColumnKind::Rising) {
        let path = ColumnPath::from(column.name);
        properties = properties.set_column_dictionary_enabled(path.clone(), false).set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
    }
    properties.build()
}

fn write_column(
    export: &Export<'_>,
    column: &Column,
    rows: &[usize],
    texts: &mut Texts,
    group: &mut SerializedRowGroupWriter<'_, &mut (dyn Write + Send)>,
) -> Result<(), ParquetError> {
    let Some(mut writer) = group.next_column()? else {
        return Err(ParquetError::General(format!("there is no column {}", column.name)));
    };
    let mut is_there: Vec<i16> = Vec::with_capacity(rows.len());
    let (mut numbers, mut flags, mut names) = (Vec::new(), Vec::new(), Vec::new());
    for &row in rows {
        let cell = (column.cell)(export, row);
        is_there.push(i16::from(cell.is_some()));
        match cell {
            Some(Cell::Number(number)) => numbers.push(number),
            Some(Cell::Flag(flag)) => flags.push(flag),
            Some(Cell::Name(id)) => {
                let text = || ByteArray::from(Bytes::from((export.rewrite)(export.trace.strings.get(id)).into_owned()));
                names.push(texts.of[id.index()].get_or_insert_with(text).clone());
            }
            Some(Cell::Text(text)) => names.push(ByteArray::from(Bytes::from((export.rewrite)(text).into_owned()))),
            Some(Cell::Owned(text)) => names.push(ByteArray::from(Bytes::from(text))),
            None => {}
        }
    }
    let levels = (!column.is_required).then_some(is_there.as_slice());
    match column.kind {
        ColumnKind::Signed | ColumnKind::Unsigned | ColumnKind::Rising => {
            writer.typed::<Int64Type>().write_batch(&numbers, levels, None)?
        }
        ColumnKind::Text => writer.typed::<ByteArrayType>().write_batch(&names, levels, None)?,
        ColumnKind::Flag => writer.typed::<BoolType>().write_batch(&flags, levels, None)?,
    };
    writer.close()
}
