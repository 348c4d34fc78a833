//! `longpole report`: one page of everything.

mod ncu;
mod size;
mod sums;
mod trace;

use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal as _};
use std::path::Path;

use longpole_report::{HtmlCuts, bytes, count, printable, redact};

use super::is_report;
use crate::args::ReportArgs;
use crate::exit::{Failure, complain};
use crate::session::Session;
use crate::target::{Target, refuse_table_flags};

/// The program as pages name it.
const MADE_BY: &str = concat!("longpole ", env!("CARGO_PKG_VERSION"));
/// Columns of the text that a reader without scripts gets.
const WIDTH: usize = 120;
/// Bytes of that text; the rest is in the page's tables.
const MOST_TEXT: usize = 1 << 17;
/// Characters of a title.
const MOST_TITLE: usize = 300;

pub(super) fn run(args: &ReportArgs) -> Result<(), Failure> {
    let common = &args.common;
    refuse_table_flags(common, "report writes a page")?;
    let before = args.before.as_deref();
    if common.input == "-" && before.is_some_and(|before| before == "-") {
        return Err(Failure::Usage("standard input holds one trace: only one of INPUT and BEFORE can be `-`".to_owned()));
    }
    let named = args.output.is_some();
    let output = args.output.clone().unwrap_or_else(|| named_after(&common.input));
    if output == "-" && io::stdout().is_terminal() {
        return Err(Failure::Usage("a page is not for a terminal: name a file with -o, or pipe it".to_owned()));
    }
    let read_too = [before, args.roles_from.as_deref(), args.peaks.as_deref()];
    let inputs: Vec<&OsStr> = std::iter::once(common.input.as_os_str()).chain(read_too.into_iter().flatten()).collect();
    // Before minutes of reading.
    let target = if named { Target::find(&output, &inputs)? } else { Target::find_new(&output)? };
    let out = Out { target, name: output, args };
    match (is_report(&common.input), before.map(is_report)) {
        (true, None | Some(true)) => return ncu::run(&out),
        (false, None | Some(false)) => {}
        (true, Some(false)) | (false, Some(true)) => {
            let message = "a trace and a report of Nsight Compute cannot be compared: give two traces, or two reports";
            return Err(Failure::Usage(message.to_owned()));
        }
    }
    let mut session = Session::open_with_arguments(common)?;
    if session.has_totals_only() { sums::run(&out, &mut session) } else { trace::run(&out, &mut session) }
}

/// Where the page goes, and the flags it was asked for with.
struct Out<'a> {
    target: Target,
    name: OsString,
    args: &'a ReportArgs,
}

impl Out<'_> {
    /// Writes the page, and says so.
    fn write(&self, page: &[u8], cuts: &HtmlCuts, about: &str) -> Result<(), Failure> {
        let shown = self.name.to_string_lossy();
        let shown = if self.args.common.no_redact { shown } else { redact(&shown).into_owned().into() };
        let written = self.target.write("report", |out| out.write_all(page));
        written.map_err(|error| Failure::Output(io::Error::new(error.kind(), format!("{shown}: {error}"))))?;
        if self.args.common.quiet {
            return Ok(());
        }
        let name = if matches!(self.target, Target::Stdout) { String::new() } else { format!(" {shown}") };
        let redacted = if self.args.common.no_redact { "not redacted" } else { "redacted" };
        let cut: Vec<String> = cuts.lists().map(|(list, kept, of)| format!("{list} {} of {}", count(kept), count(of))).collect();
        let cut = if cut.is_empty() { "nothing cut".to_owned() } else { format!("cut: {}", cut.join(", ")) };
        // A file may be called anything.
        complain(&printable(&format!("wrote{name}: {}; {about}{redacted}; {cut}", bytes(page.len() as i64))));
        Ok(())
    }
}

/// The name of a page in the current folder.
fn named_after(input: &OsStr) -> OsString {
    let path = Path::new(input);
    // `.` and `..` have no name of their own.
    let name = path.file_name().map(OsStr::to_owned).or_else(|| path.canonicalize().ok()?.file_name().map(OsStr::to_owned));
    let Some(name) = name.filter(|_| input != "-") else { return "report.html".into() };
    let mut stem = name.clone();
    if !path.is_dir() {
        const ENDINGS: [&str; 13] =
            ["json", "gz", "zst", "tar", "tgz", "trace", "pt", "longpole", "sqlite", "hatchet", "ncu-rep", "ncu-repz", "csv"];
        while let (Some(shorter), Some(ending)) = (Path::new(&stem).file_stem(), Path::new(&stem).extension()) {
            if !ENDINGS.iter().any(|known| ending.eq_ignore_ascii_case(known)) {
                break;
            }
            stem = shorter.to_owned();
        }
    }
    stem.push(".report.html");
    stem
}

/// The title of a page about files: their names, with their folders where names alone are equal.
pub(super) fn title_of(path: &str, before: Option<&str>) -> String {
    let name = |path: &str| path.trim_end_matches('/').rsplit('/').next().unwrap_or(path).to_owned();
    title(&match before {
        None => name(path),
        Some(before) if name(before) == name(path) => format!("{path} compared with {before}"),
        Some(before) => format!("{} compared with {}", name(path), name(before)),
    })
}

/// A title that fits on a page.
fn title(text: &str) -> String {
    match text.char_indices().nth(MOST_TITLE) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

/// The first page, as much of it as a page without scripts holds.
fn first_page(mut text: String) -> String {
    if text.len() > MOST_TEXT {
        let end = (0..=MOST_TEXT).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
        text.truncate(end);
        text.push_str("…\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_named_after_its_input() {
        for (input, page) in [
            ("a/b/trace.json.gz", "trace.report.html"),
            ("rank0.pt.trace.json", "rank0.report.html"),
            ("x.ncu-repz", "x.report.html"),
            ("step.1.longpole", "step.1.report.html"),
            ("odd", "odd.report.html"),
            (".json", ".json.report.html"),
            ("-", "report.html"),
        ] {
            assert_eq!(named_after(OsStr::new(input)), page, "{input}");
        }
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        assert_eq!(title(&"é".repeat(MOST_TITLE)).chars().count(), MOST_TITLE);
        assert_eq!(title(&"é".repeat(MOST_TITLE + 1)).chars().count(), MOST_TITLE + 1);
        assert!(first_page("é".repeat(MOST_TEXT)).len() < MOST_TEXT + 8);
    }
}
