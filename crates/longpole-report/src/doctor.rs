//! What the doctor found, as text and as Markdown. Commands are never broken over lines: they are there to be copied.

use std::fmt::Write as _;

use longpole_doctor::{Check, Diagnosis, Fix, Status, Works};

use crate::names::{markdown_text, printable, width, wrap};
use crate::redact::redact_string;
use crate::style::Style;
use crate::text_table::TextOptions;

/// Takes credentials, names and hosts out of everything that is shown of a machine.
pub fn redact_diagnosis(diagnosis: &mut Diagnosis) {
    for check in &mut diagnosis.checks {
        redact_string(&mut check.found);
        if let Some(fix) = &mut check.fix {
            redact_string(&mut fix.text);
            fix.commands.iter_mut().for_each(redact_string);
        }
    }
    diagnosis.ways.iter_mut().for_each(|way| redact_string(&mut way.why));
    let facts = &mut diagnosis.facts;
    facts.system.name.iter_mut().chain(&mut facts.system.kernel).for_each(redact_string);
    facts.gpus.iter_mut().for_each(|gpu| redact_string(&mut gpu.name));
}

/// The first line: what machine this is.
fn machine(diagnosis: &Diagnosis) -> String {
    let (system, driver) = (&diagnosis.facts.system, &diagnosis.facts.driver);
    let parts = [
        Some(system.name.clone().unwrap_or_else(|| "unknown system".to_owned())),
        system.kernel.as_ref().map(|kernel| format!("kernel {kernel}")),
        system.container.map(|container| format!("in a {}", container.name())),
        system.wsl.map(|version| format!("WSL {version}")),
        driver.version.as_ref().map(|version| format!("driver {version}")),
        driver.cuda.as_ref().map(|cuda| format!("CUDA {cuda}")),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

/// What is said of the checks that there was nothing to ask of.
fn skipped(checks: &[Check]) -> Option<String> {
    let codes: Vec<&str> = checks.iter().filter(|check| check.status == Status::Skipped).map(|check| check.code).collect();
    (!codes.is_empty()).then(|| format!("not looked at without a GPU: {}", codes.join(", ")))
}

/// Writes `text` broken to the width behind a label of two columns, of which the first is painted.
fn row(out: &mut String, label: (&str, &str), widths: (usize, usize), text: &str, paint: impl Fn(&str) -> String, options: &TextOptions) {
    let pad = |text: &str, columns: usize| format!("{text}{}", " ".repeat(columns.saturating_sub(width(text))));
    let indent = widths.0 + widths.1 + 6;
    for (at, line) in wrap(&printable(text), options.width.saturating_sub(indent).max(20)).iter().enumerate() {
        if at == 0 {
            let _ = writeln!(out, "  {}  {}  {line}", paint(&pad(label.0, widths.0)), pad(label.1, widths.1));
        } else {
            let _ = writeln!(out, "{}{line}", " ".repeat(indent));
        }
    }
}

fn paint_works(style: Style, works: Works, text: &str) -> String {
    match works {
        Works::Yes => style.green(text),
        Works::Partly | Works::Unknown => style.yellow(text),
        Works::No => style.red(text),
    }
}

fn paint_status(style: Style, status: Status, text: &str) -> String {
    match status {
        Status::Good => style.green(text),
        Status::Note | Status::Unknown => style.yellow(text),
        Status::Bad => style.red(text),
        Status::Skipped => style.dim(text),
    }
}

fn fix_text(out: &mut String, fix: &Fix, indent: usize, options: &TextOptions) {
    let space = " ".repeat(indent);
    for (at, line) in wrap(&printable(&fix.text), options.width.saturating_sub(indent + 2).max(20)).iter().enumerate() {
        let _ = writeln!(out, "{space}{} {line}", if at == 0 { "→" } else { " " });
    }
    for command in &fix.commands {
        let _ = writeln!(out, "{space}    {}", options.style().bold(&printable(command)));
    }
    if let Some(verify) = &fix.verify {
        let _ = writeln!(out, "{space}  then  {}  says: {}", options.style().bold(&printable(&verify.command)), printable(&verify.expect));
    }
}

/// The page for a terminal.
pub fn doctor_text(diagnosis: &Diagnosis, options: &TextOptions) -> String {
    let style = options.style();
    let mut out = String::new();
    for line in wrap(&printable(&machine(diagnosis)), options.width) {
        let _ = writeln!(out, "{}", style.bold(&line));
    }
    let _ = writeln!(out, "\n{}", style.bold("What works here"));
    let whats = diagnosis.ways.iter().map(|way| width(way.what)).max().unwrap_or(0);
    for way in &diagnosis.ways {
        let paint = |text: &str| paint_works(style, way.works, text);
        row(&mut out, (way.works.name(), way.what), (7, whats), &way.why, paint, options);
    }
    let _ = writeln!(out, "\n{}", style.bold("Checks"));
    let codes = diagnosis.checks.iter().map(|check| width(check.code)).max().unwrap_or(0);
    for check in diagnosis.checks.iter().filter(|check| check.status != Status::Skipped) {
        let paint = |text: &str| paint_status(style, check.status, text);
        row(&mut out, (check.status.name(), check.code), (7, codes), &check.found, paint, options);
        if let Some(fix) = &check.fix {
            fix_text(&mut out, fix, 11, options);
        }
    }
    if let Some(skipped) = skipped(&diagnosis.checks) {
        for line in wrap(&skipped, options.width.saturating_sub(2)) {
            let _ = writeln!(out, "  {}", style.dim(&line));
        }
    }
    out
}

/// A fence that nothing inside of it ends.
fn fence(commands: &[String]) -> String {
    let runs = commands.iter().flat_map(|command| command.split(|c| c != '`')).map(str::len);
    "`".repeat(runs.max().unwrap_or(0).max(2) + 1)
}

/// The page as Markdown.
pub fn doctor_markdown(diagnosis: &Diagnosis) -> String {
    let mut out = format!("{}\n\n| works | what | why |\n| --- | --- | --- |\n", markdown_text(&machine(diagnosis)));
    for way in &diagnosis.ways {
        let _ = writeln!(out, "| {} | {} | {} |", way.works.name(), markdown_text(way.what), markdown_text(&way.why));
    }
    out.push_str("\n| result | check | found |\n| --- | --- | --- |\n");
    for check in diagnosis.checks.iter().filter(|check| check.status != Status::Skipped) {
        let _ = writeln!(out, "| {} | {} | {} |", check.status.name(), markdown_text(check.code), markdown_text(&check.found));
    }
    if let Some(skipped) = skipped(&diagnosis.checks) {
        let _ = writeln!(out, "\n{}", markdown_text(&skipped));
    }
    for (check, fix) in diagnosis.checks.iter().filter_map(|check| Some((check, check.fix.as_ref()?))) {
        let _ = writeln!(out, "\n**{}** ({}): {}", markdown_text(check.code), check.status.name(), markdown_text(&fix.text));
        if !fix.commands.is_empty() {
            let fence = fence(&fix.commands);
            let commands: Vec<_> = fix.commands.iter().map(|command| printable(command)).collect();
            let _ = writeln!(out, "\n{fence}sh\n{}\n{fence}", commands.join("\n"));
        }
        if let Some(verify) = &fix.verify {
            let _ = writeln!(out, "\nThen `{}` says: {}", printable(&verify.command), markdown_text(&verify.expect));
        }
    }
    out
}
