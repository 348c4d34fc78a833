//! What `nvdisasm` prints, as SASS by function and address.
//!
//! This library runs no process: whoever has the tool runs it and hands the text over. Two ways of calling it are understood, both
//! checked with nvdisasm 13.5 on code for compute capability 7.5 to 12.0:
//!
//! - `nvdisasm -c CUBIN` ([`Disassembly::parse`]). A `.section .text.NAME` directive opens each code section. An instruction is an offset
//!   in comment marks, a predicate or blanks, the instruction, a semicolon. Targets of jumps are labels, resolved here to offsets.
//! - `nvdisasm -b SM90 CODE` ([`Disassembly::parse_raw`]) on the bare code of one function: the same lines without sections, targets
//!   being offsets already. It takes no time on a cubin of thousands of functions, and it still works where version 13 refuses a cubin
//!   of 2020 that was kept as loaded. [`raw_architecture`] gives the name to ask for.
//!
//! Encodings (`-hex`) and source positions (`-g`) may stand between; they are passed over. `.reuse`, a hint about operand caches, is left
//! out, as it is on the profiler's own source page.

use super::cubin::SmVersion;
use std::collections::HashMap;
use std::fmt::Write as _;

/// SASS text by function section and offset.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Disassembly {
    sections: HashMap<String, Vec<(u64, String)>>,
}

impl Disassembly {
    /// Parses what `nvdisasm -c CUBIN` printed. Lines that are not understood are passed over.
    pub fn parse(text: &str) -> Self {
        let mut disassembly = Self::default();
        let mut section: Option<(&str, Section<'_>)> = None;
        for line in text.lines() {
            if let Some(name) = section_name(line) {
                disassembly.close(section.take());
                section = name.strip_prefix(".text.").map(|function| (function, Section::default()));
            } else if let Some((_, section)) = &mut section {
                section.line(line);
            }
        }
        disassembly.close(section);
        disassembly
    }

    /// Parses what `nvdisasm -b ARCHITECTURE CODE` printed for the code of one kernel.
    pub fn parse_raw(mangled: &str, text: &str) -> Self {
        let mut section = Section::default();
        text.lines().for_each(|line| section.line(line));
        let mut disassembly = Self::default();
        disassembly.close(Some((mangled, section)));
        disassembly
    }

    /// Whether no instruction was found.
    pub fn is_empty(&self) -> bool {
        self.sections.is_empty()
    }

    /// The mangled names of the functions whose sections were found, sorted.
    pub fn functions(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.sections.keys().map(String::as_str).collect();
        names.sort_unstable();
        names
    }

    /// The instruction at an offset in the section `.text.<mangled>`. Kernels begin their section.
    pub fn sass(&self, mangled: &str, section_offset: u64) -> Option<&str> {
        let instructions = self.instructions(mangled);
        let index = instructions.binary_search_by_key(&section_offset, |&(offset, _)| offset).ok()?;
        instructions.get(index).map(|(_, text)| text.as_str())
    }

    /// All instructions of the section `.text.<mangled>` by ascending offset.
    pub fn instructions(&self, mangled: &str) -> &[(u64, String)] {
        self.sections.get(mangled).map_or(&[], Vec::as_slice)
    }

    fn close(&mut self, section: Option<(&str, Section<'_>)>) {
        if let Some((name, section)) = section
            && !section.instructions.is_empty()
        {
            self.sections.insert(name.to_owned(), section.finish());
        }
    }
}

/// The name under which `nvdisasm -b` knows a chip. From 9.0 on it is the one that includes the instructions of that chip alone.
pub fn raw_architecture(sm: SmVersion) -> String {
    format!("SM{}{}{}", sm.major, sm.minor, if sm.major >= 9 { "a" } else { "" })
}

/// A section while it is read.
#[derive(Default)]
struct Section<'text> {
    instructions: Vec<(u64, &'text str)>,
    labels: HashMap<&'text str, u64>,
    /// Labels that wait for the offset of the next instruction.
    pending: Vec<&'text str>,
}

impl<'text> Section<'text> {
    fn line(&mut self, line: &'text str) {
        if let Some((offset, text)) = instruction(line) {
            self.labels.extend(self.pending.drain(..).map(|label| (label, offset)));
            self.instructions.push((offset, text));
        } else if let Some(label) = line.trim_end().strip_suffix(':')
            && !label.is_empty()
            && !label.starts_with(char::is_whitespace)
        {
            self.pending.push(label);
        }
    }

    fn finish(self) -> Vec<(u64, String)> {
        let mut instructions: Vec<_> = self.instructions.iter().map(|&(offset, text)| (offset, clean(text, &self.labels))).collect();
        instructions.sort_by_key(|&(offset, _)| offset);
        instructions
    }
}

/// The name in a `.section` directive.
fn section_name(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix(".section")?;
    let name = rest.trim_start().split([',', '"']).next()?.trim();
    (rest.starts_with(char::is_whitespace) && !name.is_empty()).then_some(name)
}

/// Offset and text of an instruction line.
fn instruction(line: &str) -> Option<(u64, &str)> {
    let (offset, rest) = line.trim_start().strip_prefix("/*")?.split_once("*/")?;
    let offset = u64::from_str_radix(offset, 16).ok()?;
    // Anything behind the semicolon is the encoding. A line of encoding alone begins with a comment, data with a directive.
    let (text, _) = rest.trim_start().rsplit_once(';')?;
    let text = text.trim_end();
    (!text.is_empty() && !text.starts_with("/*") && !text.starts_with('.')).then_some((offset, text))
}

/// Runs of blanks made single, hints left out, labels replaced by offsets.
fn clean(text: &str, labels: &HashMap<&str, u64>) -> String {
    let mut cleaned = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !cleaned.is_empty() {
            cleaned.push(' ');
        }
        let target = word.strip_prefix("`(").and_then(|rest| rest.strip_suffix(')')).and_then(|label| labels.get(label));
        match target {
            // Writing to a string cannot fail.
            Some(offset) => drop(write!(cleaned, "{offset:#x}")),
            None => cleaned.push_str(&word.replace(".reuse", "")),
        }
    }
    cleaned
}
