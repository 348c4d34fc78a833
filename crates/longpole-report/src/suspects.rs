//! The suspects and the questions of the first page, and the texts of `longpole explain`.

use std::fmt::Write as _;

use longpole_analysis::{Explanation, Question, Smell, Triage};

use crate::names::{markdown_text, printable, width, wrap};
use crate::text_table::TextOptions;
use crate::units::percent;

/// Room for the share: `100.0`.
const SHARE: usize = 5;

fn share(smell: &Smell) -> String {
    smell.share_fraction.map_or_else(|| "–".to_owned(), percent)
}

/// What to do, and the most it can win.
fn next_step(smell: &Smell) -> String {
    let at_most = smell.ceiling.map_or_else(String::new, |ceiling| format!("; wins {}", ceiling.in_words()));
    format!("{}{at_most}", smell.next)
}

/// Writes `text` broken to the width; the first line stands behind `head`, the others below it.
pub(crate) fn hanging(out: &mut String, head: &str, text: &str, options: &TextOptions) {
    let indent = " ".repeat(width(head));
    let text = printable(text);
    for (at, line) in wrap(&text, options.width.saturating_sub(width(head)).max(20)).iter().enumerate() {
        let _ = writeln!(out, "{}{}", if at == 0 { head } else { &indent }, line);
    }
}

/// The suspects, a line each and its next step below. Empty when nothing is suspicious.
pub(crate) fn suspects_text(smells: &[Smell], options: &TextOptions) -> String {
    let mut out = String::new();
    let style = options.style();
    if smells.is_empty() {
        return out;
    }
    let codes = smells.iter().map(|smell| width(smell.code)).max().unwrap_or(0);
    let _ = writeln!(out, "\n{}", style.bold("Suspects"));
    let _ = writeln!(
        out,
        "{}",
        style.dim(&format!("{:>SHARE$}  share of wall that the evidence covers; `longpole explain CODE` says more", "%"))
    );
    for smell in smells {
        let head = format!("{:>SHARE$}  {:codes$}  ", share(smell), smell.code);
        hanging(&mut out, &head, &smell.summary, options);
        hanging(&mut out, &format!("{:SHARE$}  {:codes$}  → ", "", ""), &next_step(smell), options);
    }
    out
}

/// The questions with their answers.
pub(crate) fn questions_text(questions: &[Question], options: &TextOptions) -> String {
    let mut out = String::new();
    if questions.is_empty() {
        return out;
    }
    let style = options.style();
    let _ = writeln!(out, "\n{}", style.bold("Questions"));
    for question in questions {
        hanging(&mut out, "  ", question.question, options);
        hanging(&mut out, "    ", &question.answer, options);
    }
    out
}

/// What is to be said about host times.
pub(crate) fn host_clock_text(triage: &Triage, options: &TextOptions) -> String {
    let mut out = String::new();
    if let Some(clock) = &triage.host_clock {
        out.push('\n');
        hanging(&mut out, "Note: ", &clock.note, options);
    }
    out
}

/// Suspects, questions and the note as Markdown.
pub(crate) fn suspects_markdown(triage: &Triage) -> String {
    let mut out = String::new();
    if !triage.smells.is_empty() {
        out.push_str("\n### Suspects\n\n| % of wall | suspect | what was found | next step |\n| ---: | --- | --- | --- |\n");
        for smell in &triage.smells {
            let (summary, next) = (markdown_text(&smell.summary), markdown_text(&next_step(smell)));
            let _ = writeln!(out, "| {} | {} | {summary} | {next} |", share(smell), markdown_text(smell.code));
        }
    }
    if let Some(clock) = &triage.host_clock {
        let _ = writeln!(out, "\n**Note:** {}", markdown_text(&clock.note));
    }
    if !triage.questions.is_empty() {
        out.push_str("\n### Questions\n\n");
        for question in &triage.questions {
            let _ = writeln!(out, "- **{}** {}", markdown_text(question.question), markdown_text(&question.answer));
        }
    }
    out
}

/// The texts of `longpole explain`, one smell after the other.
pub fn explain_text(explanations: &[Explanation], options: &TextOptions) -> String {
    let mut out = String::new();
    let style = options.style();
    for (at, smell) in explanations.iter().enumerate() {
        if at > 0 {
            out.push('\n');
        }
        let _ = writeln!(out, "{}", style.bold(smell.code));
        hanging(&mut out, "  means     ", smell.meaning, options);
        hanging(&mut out, "  detected  ", &smell.detection, options);
        hanging(&mut out, "  wins      ", &format!("at most: {}", smell.ceiling), options);
        hanging(&mut out, "  fixed by  ", smell.fix, options);
        for (at, threshold) in smell.thresholds.iter().enumerate() {
            let head = if at == 0 { "  limits    " } else { "            " };
            hanging(&mut out, head, &format!("{} = {}: {}", threshold.name, threshold.text(), threshold.meaning), options);
        }
    }
    out
}

/// The same as Markdown.
pub fn explain_markdown(explanations: &[Explanation]) -> String {
    let mut out = String::new();
    for (at, smell) in explanations.iter().enumerate() {
        if at > 0 {
            out.push('\n');
        }
        let _ = writeln!(out, "### {}\n\n{}\n", markdown_text(smell.code), markdown_text(smell.meaning));
        let _ = writeln!(out, "- **Detected:** {}", markdown_text(&smell.detection));
        let _ = writeln!(out, "- **Wins at most:** {}", markdown_text(smell.ceiling));
        let _ = writeln!(out, "- **Usually fixed by:** {}", markdown_text(smell.fix));
        for threshold in &smell.thresholds {
            let (name, value) = (markdown_text(threshold.name), threshold.text());
            let _ = writeln!(out, "- {name} = {value}: {}", markdown_text(threshold.meaning));
        }
    }
    out
}

/// The list of all smells: code and meaning.
pub fn explain_list(explanations: &[Explanation], options: &TextOptions) -> String {
    let codes = explanations.iter().map(|smell| width(smell.code)).max().unwrap_or(0);
    let mut out = String::new();
    for smell in explanations {
        hanging(&mut out, &format!("{:codes$}  ", smell.code), smell.meaning, options);
    }
    out
}
