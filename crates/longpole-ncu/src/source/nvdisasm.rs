//! The text that `nvdisasm -c CUBIN` prints, as SASS by function and address.
//!
//! This library runs no process: whoever has the tool runs it and hands the text over. The layout, checked on the output of
//! nvdisasm 13.5 for cubins of compute capability 7.5 to 9.0: a `.section .text.NAME` directive opens each code section; an instruction
//! is a hexadecimal offset in comment marks, a predicate or blanks, the instruction, and a semicolon. With `-hex` the encoding follows
//! in further comments, with `-g` lines of source positions stand between, and targets of jumps are labels: all of these are passed
//! over. Offsets count from the start of the section.

use std::collections::HashMap;

/// SASS text by function section and offset.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Disassembly {
    sections: HashMap<String, Vec<(u64, String)>>,
}

impl Disassembly {
    /// Parses what `nvdisasm -c` printed. Lines that are not understood are passed over.
    pub fn parse(text: &str) -> Self {
        let mut sections: HashMap<String, Vec<(u64, String)>> = HashMap::new();
        let mut current: Option<&mut Vec<(u64, String)>> = None;
        for line in text.lines() {
            if let Some(name) = section_name(line) {
                current = name.strip_prefix(".text.").map(|function| sections.entry(function.to_owned()).or_default());
            } else if let (Some(instructions), Some(instruction)) = (current.as_deref_mut(), instruction(line)) {
                instructions.push(instruction);
            }
        }
        for instructions in sections.values_mut() {
            instructions.sort_by_key(|&(offset, _)| offset);
        }
        Self { sections }
    }

    /// Whether no instruction was found.
    pub fn is_empty(&self) -> bool {
        self.sections.values().all(Vec::is_empty)
    }

    /// The mangled names of the functions whose sections were found, sorted.
    pub fn functions(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.sections.keys().map(String::as_str).collect();
        names.sort_unstable();
        names
    }

    /// The instruction at an offset in the section `.text.<mangled>`.
    pub fn sass(&self, mangled: &str, section_offset: u64) -> Option<&str> {
        let instructions = self.sections.get(mangled)?;
        let index = instructions.binary_search_by_key(&section_offset, |&(offset, _)| offset).ok()?;
        instructions.get(index).map(|(_, text)| text.as_str())
    }

    /// All instructions of the section `.text.<mangled>` by ascending offset.
    pub fn instructions(&self, mangled: &str) -> &[(u64, String)] {
        self.sections.get(mangled).map_or(&[], Vec::as_slice)
    }
}

/// The name in a `.section` directive.
fn section_name(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix(".section")?;
    let name = rest.trim_start().split([',', '"']).next()?.trim();
    (rest.starts_with(char::is_whitespace) && !name.is_empty()).then_some(name)
}

/// Offset and text of an instruction line, runs of blanks made single.
fn instruction(line: &str) -> Option<(u64, String)> {
    let rest = line.trim_start().strip_prefix("/*")?;
    let (offset, rest) = rest.split_once("*/")?;
    let offset = u64::from_str_radix(offset, 16).ok()?;
    // Braces hold instructions that issue together on older chips.
    let text = rest.trim_start_matches([' ', '\t', '{']);
    // Anything behind the semicolon is the encoding. A line of encoding alone begins with a comment.
    let (text, _) = text.rsplit_once(';')?;
    if text.is_empty() || text.starts_with("/*") || text.starts_with('.') {
        return None;
    }
    let mut single = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !single.is_empty() {
            single.push(' ');
        }
        single.push_str(word);
    }
    Some((offset, single))
}
