//! The lines above every report: how far it can be trusted, what was read, and what part of it is shown.

use std::fmt::Write as _;

use longpole_analysis::ScopeSpec;
use longpole_trace::{Ns, Severity};

use crate::names::{markdown_text, printable, wrap};
use crate::style::Style;
use crate::text_table::TextOptions;
use crate::trust::{Grade, Note, Trust};
use crate::units::{bytes, count, time};

/// What was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// As the user named it.
    pub path: String,
    /// What it was recognised as.
    pub format: String,
    /// Bytes of content, after decompression.
    pub bytes: u64,
    /// Whether it was compressed, so that the file is smaller than its content.
    pub compressed: bool,
    /// Events in it.
    pub events: u64,
}

/// What stands above a report.
#[derive(Clone, Copy, Debug)]
pub struct Header<'a> {
    /// What was read.
    pub source: &'a Source,
    /// How far it can be trusted.
    pub trust: &'a Trust,
    /// What part of it was asked for.
    pub scope: &'a ScopeSpec,
}

impl Header<'_> {
    fn source_line(&self) -> String {
        let Source { path, format, bytes: size, compressed, events } = self.source;
        let uncompressed = if *compressed { " uncompressed" } else { "" };
        format!("{path} · {format} · {}{uncompressed} · {} events", bytes((*size).min(i64::MAX as u64) as i64), count(*events))
    }

    /// Source and trust in one line, for a trace that is not the report's own.
    pub fn in_one_line(&self) -> String {
        let grade = self.trust.grade;
        let notes: Vec<&str> = self.trust.notes.iter().filter(|note| note.severity >= Severity::DataLoss).map(|note| note.code).collect();
        let notes = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join(", ")) };
        format!("{} · trust {}{notes}", self.source_line(), grade.name())
    }

    /// The scope in words; empty for the whole trace.
    pub fn part(&self) -> String {
        let ScopeSpec { range, step, time: window, device, rank } = self.scope;
        let mut parts = Vec::new();
        parts.extend(range.as_ref().map(|name| format!("range {name}")));
        parts.extend(step.map(|step| format!("step {step}")));
        parts.extend(window.map(|(start, end)| {
            if end == Ns::MAX { format!("time from {}", time(start)) } else { format!("time {} to {}", time(start), time(end)) }
        }));
        parts.extend(device.map(|device| format!("device {device}")));
        parts.extend(rank.map(|rank| format!("rank {rank}")));
        parts.join(", ")
    }
}

/// One note as a sentence: count, message, example, hint.
fn sentence(note: &Note) -> String {
    // A fact about the recording or the file as a whole is not counted, nor is bookkeeping: how long it took is what matters.
    let is_whole = matches!(note.code, "truncated" | "damaged_compression") || note.severity == Severity::Info && note.time.is_none();
    let times = match (note.out_of, note.count) {
        (Some(whole), part) => Some(format!("{} of {}", count(part), count(whole))),
        _ if matches!(note.code, "profiler_overhead" | "recorder_cost") => None,
        _ if note.code == "recorded_in_windows" => Some(format!("{} windows", count(note.count))),
        (None, 1) if is_whole => None,
        (None, 1) => Some("once".to_owned()),
        (None, many) => Some(format!("{} times", count(many))),
    };
    let at = note.time.map(time).map(|at| match note.code {
        "truncated" => format!("{at} of the run were read"),
        "start_before_launch" => format!("at most {at}"),
        "stream_overlap" => format!("largest overlap {at}"),
        "recorded_in_windows" => format!("{at} between them not recorded"),
        "impossible_duration" => format!("largest overrun {at}"),
        _ => at,
    });
    let mut out = note.message.clone();
    if times.is_some() || at.is_some() {
        let _ = write!(out, " ({})", times.into_iter().chain(at).collect::<Vec<_>>().join(", "));
    }
    if let Some(example) = &note.example {
        let _ = write!(out, ", e.g. {example}");
    }
    let _ = write!(out, " → {}", note.hint);
    out
}

fn paint_grade(style: Style, grade: Grade) -> String {
    match grade {
        Grade::Good => style.green(grade.name()),
        Grade::Noted => style.yellow(grade.name()),
        Grade::Partial => style.red(grade.name()),
    }
}

fn paint_severity(style: Style, severity: Severity, text: &str) -> String {
    match severity {
        Severity::Info => style.dim(text),
        Severity::Notice => style.yellow(text),
        Severity::DataLoss | Severity::Error => style.red(text),
    }
}

/// The trust part of the header.
pub fn text_trust(trust: &Trust, options: &TextOptions) -> String {
    let style = options.style();
    let mut out = String::new();
    let _ = writeln!(out, "{}  {}: {}", style.bold("trust "), paint_grade(style, trust.grade), trust.grade.meaning());
    let notes = trust.notes.iter().filter(|n| n.is_worth_a_line());
    for note in notes {
        let text = sentence(note);
        for (at, line) in wrap(&printable(&text), options.width.saturating_sub(10).max(20)).iter().enumerate() {
            let mark = if at == 0 { paint_severity(style, note.severity, "•") } else { " ".to_owned() };
            let _ = writeln!(out, "        {mark} {line}");
        }
    }
    out
}

/// The header for a terminal.
pub fn text_header(header: &Header<'_>, options: &TextOptions) -> String {
    let style = options.style();
    let mut out = text_trust(header.trust, options);
    let _ = writeln!(out, "{}  {}", style.bold("source"), printable(&header.source_line()));
    let scope = header.part();
    if !scope.is_empty() {
        let _ = writeln!(out, "{}  {}", style.bold("scope "), printable(&scope));
    }
    out
}

/// The trust part of the header as Markdown.
pub(crate) fn markdown_trust(trust: &Trust) -> String {
    let mut out = String::new();
    let grade = trust.grade;
    let _ = writeln!(out, "**Trust:** {}: {}", grade.name(), grade.meaning());
    let notes: Vec<_> = trust.notes.iter().filter(|n| n.is_worth_a_line()).collect();
    if !notes.is_empty() {
        out.push('\n');
    }
    for note in notes {
        let _ = writeln!(out, "- {}", markdown_text(&sentence(note)));
    }
    out
}

/// The header as Markdown.
pub fn markdown_header(header: &Header<'_>) -> String {
    let mut out = markdown_trust(header.trust);
    let _ = writeln!(out, "\n**Source:** {}", markdown_text(&header.source_line()));
    let scope = header.part();
    if !scope.is_empty() {
        let _ = writeln!(out, "\n**Scope:** {}", markdown_text(&scope));
    }
    out
}
