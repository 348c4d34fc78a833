//! `longpole.formats/1`: a document about the program, so it has no source, trust or scope.

use serde::Serialize;

use crate::formats::{FormatRow, Support};

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    formats: Vec<FormatOut<'a>>,
}

#[derive(Serialize)]
struct FormatOut<'a> {
    name: &'a str,
    title: &'a str,
    producers: &'a str,
    endings: &'a [&'a str],
    record: &'a str,
    answers: Vec<AnswerOut<'a>>,
}

#[derive(Serialize)]
struct AnswerOut<'a> {
    command: &'a str,
    support: &'static str,
}

/// The document of `longpole formats`.
pub fn formats<'a>(rows: &'a [FormatRow<'a>]) -> impl Serialize + use<'a> {
    let answer = |&(command, support): &(&'a str, Support)| AnswerOut { command, support: support.code() };
    let formats = rows.iter().map(|row| FormatOut {
        name: row.name,
        title: row.title,
        producers: row.producers,
        endings: row.endings,
        record: row.record,
        answers: row.answers.iter().map(answer).collect(),
    });
    Document { schema: "longpole.formats/1", formats: formats.collect() }
}
