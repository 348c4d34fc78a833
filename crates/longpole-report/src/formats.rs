//! The list of formats: what is read, and what each can answer.

use crate::blocks::{Block, blocks_markdown, blocks_text};
use crate::csv_table::csv;
use crate::table::{Column, Kind, Row, Table, Value};
use crate::text_table::TextOptions;

/// How far a format answers a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    /// All that the command can say.
    Whole,
    /// If the recording was asked for what it takes.
    IfRecorded,
    /// In sums alone.
    Totals,
    /// Not at all.
    No,
}

impl Support {
    /// The word in JSON.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::IfRecorded => "if_recorded",
            Self::Totals => "totals",
            Self::No => "no",
        }
    }

    /// The word in the table.
    const fn word(self) -> &'static str {
        match self {
            Self::Whole => "yes",
            Self::IfRecorded => "asked",
            Self::Totals => "sums",
            Self::No => "-",
        }
    }
}

/// A format that is read.
#[derive(Clone, Debug)]
pub struct FormatRow<'a> {
    /// Its name in `source.format`, which heads its column.
    pub name: &'static str,
    /// Its name for people.
    pub title: &'a str,
    /// Versions and producers.
    pub producers: &'a str,
    /// Endings of its files.
    pub endings: &'a [&'a str],
    /// How to make one.
    pub record: &'a str,
    /// Every command that reads an input, and how far it is answered.
    pub answers: Vec<(&'a str, Support)>,
}

fn blocks(rows: &[FormatRow<'_>]) -> Vec<Block> {
    let mut blocks = Vec::new();
    for row in rows {
        blocks.push(Block::Heading(row.title.to_owned(), row.endings.join(" ")));
        blocks.push(Block::Facts(vec![
            ("source.format", row.name.to_owned()),
            ("read from", row.producers.to_owned()),
            ("record", row.record.to_owned()),
        ]));
    }
    blocks.push(Block::Heading("What each can answer".to_owned(), String::new()));
    blocks.push(Block::Table(answers(rows)));
    blocks.push(Block::Notes(vec![
        "yes: all that the command says; asked: if the recording was asked for it (shapes, memory, NVTX operators); sums: totals, as the format \
         does not say when anything ran; -: the source does not hold it, which one line says (formats with sums alone: exit code 3)"
            .to_owned(),
        "files are recognised by content, whatever they are called, and may be compressed (gzip, zstd) or come by a pipe".to_owned(),
    ]));
    blocks
}

/// Commands by format: as many columns as formats, which are fewer.
fn answers(rows: &[FormatRow<'_>]) -> Table {
    let mut columns = vec![Column::new("command", "command", Kind::Text)];
    columns.extend(rows.iter().map(|row| Column::new(row.name, row.name, Kind::Text)));
    let commands: Vec<&str> = rows.first().map_or_else(Vec::new, |row| row.answers.iter().map(|&(command, _)| command).collect());
    let body = commands.iter().enumerate().map(|(at, command)| {
        let cells = rows.iter().map(|row| Value::Text(row.answers[at].1.word().to_owned()));
        Row::new(std::iter::once(Value::Text((*command).to_owned())).chain(cells).collect())
    });
    Table {
        noun: "commands",
        rows: body.collect(),
        columns,
        totals: Vec::new(),
        hidden: 0,
        filtered_out: 0,
        empty: None,
        notes: Vec::new(),
    }
}

/// The list for a terminal.
pub fn formats_text(rows: &[FormatRow<'_>], options: &TextOptions) -> String {
    blocks_text(&blocks(rows), options).trim_start().to_owned()
}

/// The list as Markdown.
pub fn formats_markdown(rows: &[FormatRow<'_>]) -> String {
    blocks_markdown(&blocks(rows)).trim_start().to_owned()
}

/// One row a format and command.
pub fn formats_csv(rows: &[FormatRow<'_>]) -> String {
    let columns = vec![
        Column::new("name", "", Kind::Text),
        Column::new("title", "", Kind::Text),
        Column::new("command", "", Kind::Text),
        Column::new("support", "", Kind::Text),
    ];
    let text = |text: &str| Value::Text(text.to_owned());
    let body = rows.iter().flat_map(|row| {
        let cells = move |&(command, support): &(&str, Support)| {
            Row::new(vec![text(row.name), text(row.title), text(command), text(support.code())])
        };
        row.answers.iter().map(cells)
    });
    let body = body.collect();
    csv(&Table { noun: "answers", rows: body, columns, totals: Vec::new(), hidden: 0, filtered_out: 0, empty: None, notes: Vec::new() })
}
