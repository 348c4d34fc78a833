//! A report of several parts: headings, facts, tables, strips and notes, as text and as Markdown.

use std::fmt::Write as _;

use crate::markdown_table::markdown;
use crate::names::{markdown_text, printable, width, wrap};
use crate::table::Table;
use crate::text_table::{TextOptions, text};

/// One part of a report.
#[derive(Clone, Debug)]
pub enum Block {
    /// The beginning of a chapter: what it is about, and a few words beside it.
    Heading(String, String),
    /// The beginning of a table or list inside a chapter.
    Title(&'static str),
    /// Labels and what is said under each.
    Facts(Vec<(&'static str, String)>),
    /// A table.
    Table(Table),
    /// A row of small bars.
    Strip(Strip),
    /// Sentences worth a line each.
    Notes(Vec<String>),
}

/// One bar of a strip.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bar {
    /// Its height, 0..1.
    pub height: f64,
    /// Whether it is pointed at.
    pub marked: bool,
}

/// A row of small bars, one a character, with what the marked ones are.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Strip {
    /// What is shown.
    pub label: &'static str,
    /// The bars.
    pub bars: Vec<Bar>,
    /// What stands behind the label: the scale.
    pub scale: String,
    /// A line each below it.
    pub remarks: Vec<String>,
}

/// Bars shown at most; a longer strip says how many it leaves out.
const MOST_BARS: usize = 480;

/// The characters of a bar, lowest first. The lowest is not empty, so that a bar is always seen.
const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

fn bar(height: f64) -> char {
    // Whatever is no number is a low bar.
    HEIGHTS[((height.clamp(0.0, 1.0) * 7.0).round() as usize).min(7)]
}

impl Strip {
    /// Lines of at most `columns` bars, each with a line of marks below where one is marked.
    fn lines(&self, columns: usize) -> Vec<(String, Option<String>)> {
        self.bars[..self.bars.len().min(MOST_BARS)]
            .chunks(columns.max(8))
            .map(|bars| {
                let marks: String = bars.iter().map(|bar| if bar.marked { '^' } else { ' ' }).collect();
                let marks = marks.trim_end().to_owned();
                (bars.iter().map(|b| bar(b.height)).collect(), (!marks.is_empty()).then_some(marks))
            })
            .collect()
    }

    fn remarks(&self) -> Vec<String> {
        let more = self.bars.len().saturating_sub(MOST_BARS);
        let more = (more > 0).then(|| format!("and {} more bars", crate::units::count(more as u64)));
        self.remarks.iter().cloned().chain(more).collect()
    }
}

/// Writes text behind a label, broken to the width.
fn labelled(out: &mut String, label: &str, columns: usize, said: &str, options: &TextOptions) {
    let style = options.style();
    let room = options.width.saturating_sub(columns + 4).max(20);
    for (at, line) in wrap(&printable(said), room).iter().enumerate() {
        let label = if at == 0 { label } else { "" };
        let label = format!("{label}{}", " ".repeat(columns.saturating_sub(width(label))));
        let _ = writeln!(out, "  {}  {line}", style.dim(&label));
    }
}

fn strip_text(out: &mut String, strip: &Strip, options: &TextOptions) {
    let style = options.style();
    let label = width(strip.label);
    labelled(out, strip.label, label, &strip.scale, options);
    let indent = " ".repeat(label + 4);
    for (bars, marks) in strip.lines(options.width.saturating_sub(label + 4)) {
        let _ = writeln!(out, "{indent}{}", style.cyan(&bars));
        if let Some(marks) = marks {
            let _ = writeln!(out, "{indent}{marks}");
        }
    }
    for remark in strip.remarks() {
        labelled(out, "", label, &remark, options);
    }
}

/// The report for a terminal.
pub fn blocks_text(blocks: &[Block], options: &TextOptions) -> String {
    let style = options.style();
    let mut out = String::new();
    for block in blocks {
        match block {
            Block::Heading(name, aside) => {
                let dot = if aside.is_empty() { "" } else { " · " };
                let whole = format!("{name}{dot}{aside}");
                for (at, line) in wrap(&printable(&whole), options.width).iter().enumerate() {
                    let _ = writeln!(out, "{}{}", if at == 0 { "\n" } else { "" }, style.bold(line));
                }
            }
            Block::Title(title) => {
                let _ = writeln!(out, "\n{}", style.bold(title));
            }
            Block::Facts(facts) => {
                let columns = facts.iter().map(|(label, _)| width(label)).max().unwrap_or(0);
                for (label, said) in facts {
                    labelled(&mut out, label, columns, said, options);
                }
            }
            Block::Table(table) => {
                let _ = write!(out, "\n{}", text(table, options));
            }
            Block::Strip(strip) => {
                out.push('\n');
                strip_text(&mut out, strip, options);
            }
            Block::Notes(notes) => {
                for note in notes {
                    for (at, line) in wrap(&printable(note), options.width.saturating_sub(4).max(20)).iter().enumerate() {
                        let _ = writeln!(out, "  {} {line}", if at == 0 { "•" } else { " " });
                    }
                }
            }
        }
    }
    out
}

/// The report as Markdown.
pub fn blocks_markdown(blocks: &[Block]) -> String {
    let mut out = String::new();
    for block in blocks {
        match block {
            Block::Heading(name, aside) => {
                let dot = if aside.is_empty() { "" } else { " · " };
                let _ = writeln!(out, "\n### {}{dot}{}", markdown_text(name), markdown_text(aside));
            }
            Block::Title(title) => {
                let _ = writeln!(out, "\n#### {title}");
            }
            Block::Facts(facts) => {
                out.push('\n');
                for (label, said) in facts {
                    let _ = writeln!(out, "- **{label}:** {}", markdown_text(said));
                }
            }
            Block::Table(table) => {
                let _ = writeln!(out, "\n{}", markdown(table).trim_end());
            }
            Block::Strip(strip) => {
                let _ = writeln!(out, "\n{}: {}\n\n```text", markdown_text(strip.label), markdown_text(&strip.scale));
                for (bars, marks) in strip.lines(100) {
                    let _ = writeln!(out, "{bars}");
                    if let Some(marks) = marks {
                        let _ = writeln!(out, "{marks}");
                    }
                }
                out.push_str("```\n");
                let remarks = strip.remarks();
                if !remarks.is_empty() {
                    out.push('\n');
                }
                for remark in remarks {
                    let _ = writeln!(out, "- {}", markdown_text(&remark));
                }
            }
            Block::Notes(notes) => {
                if !notes.is_empty() {
                    out.push('\n');
                }
                for note in notes {
                    let _ = writeln!(out, "- {}", markdown_text(note));
                }
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strip() -> Strip {
        let bars = (0..20).map(|at| Bar { height: f64::from(at) / 19.0, marked: at == 3 || at == 17 }).collect();
        Strip { label: "layers", bars, scale: "1 to 2 us".to_owned(), remarks: vec!["layer 3 is \x1b[2J odd".to_owned()] }
    }

    #[test]
    fn strips_break_and_point_at_what_is_marked() {
        let out = blocks_text(&[Block::Strip(strip())], &TextOptions { width: 20, color: false, full_names: false, wrap: false });
        assert_eq!(
            out,
            "\n  layers  1 to 2 us\n          ▁▁▂▂▂▃▃▄▄▄\n             ^\n          ▅▅▅▆▆▇▇▇██\n                 ^\n          layer 3 is \\u{1b}[2J\n          odd\n"
        );
        let markdown = blocks_markdown(&[Block::Strip(strip())]);
        assert!(markdown.contains("```text\n▁▁▂▂▂▃▃▄▄▄▅▅▅▆▆▇▇▇██\n   ^             ^\n```\n"), "{markdown}");
        assert!(!markdown.contains('\x1b'));
    }

    #[test]
    fn a_bar_is_always_seen_and_a_strip_never_endless() {
        assert_eq!([bar(f64::NAN), bar(-1.0), bar(0.5), bar(9.0)], ['▁', '▁', '▅', '█']);
        let endless = Strip { bars: vec![Bar { height: 1.0, marked: false }; 10_000], ..strip() };
        let bars: usize = endless.lines(80).iter().map(|(bars, _)| bars.chars().count()).sum();
        assert_eq!((bars, endless.remarks().last().map(String::as_str)), (MOST_BARS, Some("and 9,520 more bars")));
    }

    #[test]
    fn labels_are_aligned_and_lines_broken() {
        let facts = Block::Facts(vec![("a", "one two three four".to_owned()), ("label", "x".to_owned())]);
        let blocks = [Block::Heading("name".to_owned(), "3 steps".to_owned()), facts, Block::Notes(vec!["said".to_owned()])];
        let out = blocks_text(&blocks, &TextOptions { width: 30, color: false, full_names: false, wrap: false });
        assert_eq!(out, "\nname · 3 steps\n  a      one two three four\n  label  x\n  • said\n");
        assert_eq!(blocks_markdown(&blocks), "\n### name · 3 steps\n\n- **a:** one two three four\n- **label:** x\n\n- said\n");
    }
}
