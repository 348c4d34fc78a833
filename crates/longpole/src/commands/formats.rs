//! `longpole formats`

use std::io::{self, Write as _};

use longpole_ingest::{FormatFacts, QUESTIONS};
use longpole_report::{FormatRow, Support, formats_csv, formats_markdown, formats_text, wire};

use crate::args::{Format, FormatsArgs};
use crate::exit::Failure;
use crate::terminal;

pub(super) fn run(args: &FormatsArgs) -> Result<(), Failure> {
    let rows: Vec<FormatRow<'_>> = longpole_ingest::formats().map(row).collect();
    let mut out = io::stdout().lock();
    match args.format.format() {
        Format::Json => wire::write(&mut out, &wire::formats(&rows))?,
        Format::Markdown => out.write_all(formats_markdown(&rows).as_bytes())?,
        Format::Csv => out.write_all(formats_csv(&rows).as_bytes())?,
        Format::Text => out.write_all(formats_text(&rows, &terminal::plain_options(args.color)).as_bytes())?,
    }
    Ok(out.flush()?)
}

fn row(facts: &'static FormatFacts) -> FormatRow<'static> {
    let answers = &facts.answers;
    let support = |command: &str| {
        if answers.whole.contains(&command) {
            Support::Whole
        } else if answers.if_recorded.contains(&command) {
            Support::IfRecorded
        } else if answers.totals.contains(&command) {
            Support::Totals
        } else {
            Support::No
        }
    };
    FormatRow {
        name: facts.name,
        title: facts.title,
        producers: facts.producers,
        endings: facts.endings,
        record: facts.record,
        answers: QUESTIONS.iter().map(|&command| (command, support(command))).collect(),
    }
}
