//! The lines above what is said of an Nsight Compute report: how far it can be trusted, what was read, and where it was recorded.

use std::fmt::Write as _;

use crate::header::{markdown_trust, text_trust};
use crate::names::{markdown_text, printable, wrap};
use crate::text_table::TextOptions;
use crate::trust::Trust;
use crate::units::{bytes, count};

/// A report that was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReportSource {
    /// As the user named it.
    pub path: String,
    /// What it was recognised as.
    pub format: String,
    /// Bytes of content, after decompression.
    pub bytes: u64,
    /// Whether it was compressed, so that the file is smaller than its content.
    pub compressed: bool,
    /// How many results of each kind it has, those without any left out.
    pub results: Vec<(&'static str, u64)>,
    /// The version of ncu that wrote it.
    pub ncu_version: Option<String>,
    /// The version of CUDA.
    pub cuda_version: Option<String>,
    /// The version of the driver.
    pub driver_version: Option<String>,
    /// The devices of the machine.
    pub devices: Vec<ReportDevice>,
    /// The programs that were profiled.
    pub processes: Vec<String>,
    /// How ncu was told to measure, as (option, value).
    pub settings: Vec<(&'static str, String)>,
    /// The whole command line, where it may be shown.
    pub command_line: Option<String>,
}

/// A device of the profiled machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReportDevice {
    /// Its number.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// Multiprocessors.
    pub sm_count: Option<u64>,
    /// Device memory in bytes.
    pub memory_bytes: Option<u64>,
    /// Compute capability, e.g. `9.0`.
    pub compute_capability: Option<String>,
}

/// What stands above everything that is said of a report.
#[derive(Clone, Copy, Debug)]
pub struct ReportHeader<'a> {
    /// What was read.
    pub source: &'a ReportSource,
    /// How far it can be trusted.
    pub trust: &'a Trust,
}

impl ReportSource {
    fn source_line(&self) -> String {
        let mut parts = vec![self.path.clone(), self.format.clone()];
        let uncompressed = if self.compressed { " uncompressed" } else { "" };
        parts.push(format!("{}{uncompressed}", bytes(i64::try_from(self.bytes).unwrap_or(i64::MAX))));
        parts.extend(self.results.iter().map(|(kind, number)| {
            let kind = kind.replace('_', " ");
            format!("{} {kind}{}", count(*number), if *number == 1 { "" } else { "s" })
        }));
        if self.results.is_empty() {
            parts.push("no results".to_owned());
        }
        parts.extend(self.ncu_version.as_ref().map(|version| format!("ncu {version}")));
        parts.join(" · ")
    }

    /// The machine; empty where nothing is known of it.
    fn machine_line(&self) -> String {
        let mut parts: Vec<String> = self.devices.iter().map(ReportDevice::words).collect();
        parts.dedup();
        parts.retain(|part| !part.is_empty());
        parts.extend(self.cuda_version.as_ref().map(|version| format!("CUDA {version}")));
        parts.extend(self.driver_version.as_ref().map(|version| format!("driver {version}")));
        parts.join(" · ")
    }

    fn lines(&self) -> Vec<(&'static str, String)> {
        let mut lines = vec![("source", self.source_line())];
        let machine = self.machine_line();
        if !machine.is_empty() {
            lines.push(("device", machine));
        }
        if let Some(command) = &self.command_line {
            lines.push(("command", command.clone()));
        }
        lines
    }
}

impl ReportDevice {
    fn words(&self) -> String {
        let facts = [
            self.sm_count.map(|sms| format!("{} SMs", count(sms))),
            self.memory_bytes.map(|size| bytes(i64::try_from(size).unwrap_or(i64::MAX))),
            self.compute_capability.as_ref().map(|version| format!("compute capability {version}")),
        ];
        let facts: Vec<String> = facts.into_iter().flatten().collect();
        match (self.name.is_empty(), facts.is_empty()) {
            (_, true) => self.name.clone(),
            (true, false) => facts.join(", "),
            (false, false) => format!("{} ({})", self.name, facts.join(", ")),
        }
    }
}

fn write_lines(out: &mut String, lines: Vec<(&'static str, String)>, options: &TextOptions) {
    let style = options.style();
    for (label, text) in lines {
        for (at, line) in wrap(&printable(&text), options.width.saturating_sub(8).max(20)).iter().enumerate() {
            let _ = match at {
                0 => writeln!(out, "{}{} {line}", style.bold(label), " ".repeat(7_usize.saturating_sub(label.len()))),
                _ => writeln!(out, "        {line}"),
            };
        }
    }
}

/// The header for a terminal.
pub fn report_text_header(header: &ReportHeader<'_>, options: &TextOptions) -> String {
    let mut out = text_trust(header.trust, options);
    write_lines(&mut out, header.source.lines(), options);
    out
}

/// The header of a comparison for a terminal: both reports, and what the first adds to the doubts.
pub fn comparison_text_header(before: &ReportHeader<'_>, after: &ReportHeader<'_>, options: &TextOptions) -> String {
    let mut out = String::new();
    for (label, header) in [("before", before), ("after", after)] {
        let mut lines = header.source.lines();
        lines[0].0 = label;
        write_lines(&mut out, lines, options);
        out.push_str(&text_trust(header.trust, options));
    }
    out
}

/// The header as Markdown.
pub fn report_markdown_header(header: &ReportHeader<'_>) -> String {
    let mut out = markdown_trust(header.trust);
    for (label, text) in header.source.lines() {
        let _ = writeln!(out, "\n**{}:** {}", capital(label), markdown_text(&text));
    }
    out
}

/// The header of a comparison as Markdown.
pub fn comparison_markdown_header(before: &ReportHeader<'_>, after: &ReportHeader<'_>) -> String {
    let mut out = String::new();
    for (label, header) in [("before", before), ("after", after)] {
        let mut lines = header.source.lines();
        lines[0].0 = label;
        for (label, text) in lines {
            let _ = writeln!(out, "**{}:** {}\n", capital(label), markdown_text(&text));
        }
        out.push_str(&markdown_trust(header.trust));
        out.push('\n');
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

fn capital(label: &str) -> String {
    let mut letters = label.chars();
    letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect()
}
