//! What is said of the kernels of an Nsight Compute report: one kernel on a page, two reports beside each other.
//!
//! [`facts`] puts the figures of a kernel into words once; text and Markdown only lay them out. Tables are in
//! [`views::ncu`](crate::views::ncu), JSON in [`wire`](crate::wire).

mod compare;
mod facts;
mod page;
mod short;
mod source;
mod table;

use longpole_analysis::Family;
use longpole_ncu::source::{InstructionRow, SourceView};
use longpole_ncu::summary::{KernelSummary, Suggestion};
use longpole_ncu::{Instance, Scope, Value};

pub use compare::{ComparisonPage, Verdicts, comparison_markdown, comparison_text};
pub use page::{KernelPage, kernels_markdown, kernels_text};
pub use short::kernel_lines;
pub use source::{sources_markdown, sources_text};
pub use table::{tables_markdown, tables_text};

use crate::units::percent;

/// One kernel (or range, or graph) with everything that a page shows of it.
#[derive(Clone, Debug)]
pub struct NcuKernel {
    /// Its summary.
    pub summary: KernelSummary,
    /// Its short name, which no other kernel of the report has.
    pub short_name: String,
    /// Its family; `None` for what is no kernel.
    pub family: Option<Family>,
    /// The program that launched it, where the report has several.
    pub process: Option<String>,
    /// Samples by instruction and line, where they were asked for and recorded.
    pub source: Option<SourceView>,
    /// Why there is less to see than there might be.
    pub source_notes: Vec<String>,
    /// Raw metrics, where they were asked for.
    pub metrics: Option<Vec<RawMetric>>,
}

/// One metric as the report has it.
#[derive(Clone, Debug, PartialEq)]
pub struct RawMetric {
    /// Its name.
    pub name: String,
    /// Its unit; empty for a plain number or a text.
    pub unit: String,
    /// Its value for the whole kernel.
    pub value: Option<Value>,
    /// What it was broken down into.
    pub instances: Vec<Instance>,
}

/// Percent as the source gives it, with its sign: `86.9 %`.
fn pct(value: f64) -> String {
    format!("{} %", percent(value / 100.0))
}

/// What warps waited for at an instruction, most first: having issued is no wait.
pub(crate) fn top_stall(row: &InstructionRow) -> Option<(&str, f64)> {
    let stall = row.stalls.iter().find(|stall| stall.reason != "selected")?;
    Some((&stall.reason, stall.samples as f64 / row.samples.max(1) as f64))
}

/// File and line, without the folders that all but the last name.
pub(crate) fn place(file: Option<&str>, line: Option<u32>) -> Option<String> {
    let name = file?.rsplit(['/', '\\']).next().unwrap_or_default();
    Some(line.map_or_else(|| name.to_owned(), |line| format!("{name}:{line}")))
}

/// An instruction in as many words as are known.
pub(crate) fn instruction(sass: Option<&str>, mnemonic: Option<&str>) -> Option<String> {
    sass.or(mnemonic).map(str::to_owned)
}

/// The first sentence of a text.
fn first_sentence(text: &str) -> &str {
    let line = text.lines().next().unwrap_or_default();
    let ends = line.match_indices(". ").map(|(at, _)| at);
    // A full stop behind one letter or before a small one is an abbreviation.
    let is_end = |&at: &usize| {
        let (before, after) = (&line[..at], &line[at + 2..]);
        let word = before.rsplit(' ').next().unwrap_or_default();
        word.chars().count() > 1 && !word.contains('.') && after.starts_with(|c: char| !c.is_lowercase())
    };
    ends.into_iter().find(is_end).map_or(line, |at| &line[..=at])
}

/// What ncu expects of a suggestion, at most: `52.3 % global`.
fn estimate(suggestion: &Suggestion) -> String {
    let scope = suggestion.scope.map_or("", Scope::name);
    suggestion.speedup_pct.map_or_else(|| "–".to_owned(), |speedup| format!("{} {scope}", pct(speedup)).trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_ends_where_the_next_begins() {
        assert_eq!(first_sentence("On average, 2.0 of 32 bytes are used. Check X."), "On average, 2.0 of 32 bytes are used.");
        assert_eq!(first_sentence("Uses e.g. Tensor cores. Next."), "Uses e.g. Tensor cores.");
        assert_eq!(first_sentence("No end"), "No end");
        assert_eq!(first_sentence("One.\nTwo."), "One.");
        assert_eq!(first_sentence(""), "");
    }

    #[test]
    fn a_place_is_a_file_name_and_a_line() {
        assert_eq!(place(Some("/a/b/k.cu"), Some(3)).as_deref(), Some("k.cu:3"));
        assert_eq!(place(Some(r"C:\a\k.cu"), None).as_deref(), Some("k.cu"));
        assert_eq!(place(None, Some(3)), None);
    }
}
