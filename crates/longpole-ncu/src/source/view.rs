//! The source view of one kernel: samples and stall reasons by instruction and by source line.
//!
//! Everything is counted in whole samples; shares are made from the sums at the end. Instructions are ordered by address, lines and
//! stall reasons by samples with ties by name, so that equal inputs give equal outputs.

use super::cubin::{Cubin, Function, INSTRUCTION_BYTES, SmVersion};
use super::dataflow::{Dependency, Program, Relation};
use super::lines::LineTable;
use super::nvdisasm::Disassembly;
use super::sass::Unit;
use std::collections::BTreeMap;

/// Samples that found a warp in one state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StallCount {
    /// Name of the reason, such as `long_scoreboard`.
    pub reason: String,
    /// Number of samples.
    pub samples: u64,
}

/// What the profiler recorded at one address.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SampleRow {
    /// Address: virtual if the input has a base address or the smallest one is to be taken for it.
    pub address: u64,
    /// All samples.
    pub samples: u64,
    /// Samples in cycles in which the scheduler issued nothing, where collected.
    pub not_issued: Option<u64>,
    /// Samples by reason.
    pub stalls: Vec<StallCount>,
    /// Times a warp executed the instruction, where collected.
    pub executed: Option<u64>,
    /// Times a thread executed it, where collected.
    pub threads_executed: Option<u64>,
}

/// What a source view is made from.
#[derive(Debug, Clone, Copy)]
pub struct SourceInput<'a> {
    /// The cubin's bytes, where the report has them.
    pub cubin: Option<&'a [u8]>,
    /// Mangled name of the kernel.
    pub function: &'a str,
    /// Where the function was loaded. Without it the smallest sampled address is taken.
    pub base_address: Option<u64>,
    /// Compute capability, where the report says it; else it is read from the cubin.
    pub sm: Option<SmVersion>,
    /// What was recorded, in any order.
    pub rows: &'a [SampleRow],
    /// Source files stored in the report: path and text.
    pub files: &'a [(&'a str, &'a str)],
    /// The cubin's disassembly, where a tool has made one.
    pub disassembly: Option<&'a Disassembly>,
}

/// The instruction that a stalled instruction waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Producer {
    /// Address relative to the function.
    pub address: u64,
    /// SASS text, where a disassembly was given.
    pub sass: Option<String>,
    /// Base mnemonic, where known.
    pub mnemonic: Option<String>,
    /// Where it runs, and so what is late.
    pub unit: Unit,
    /// What about it is waited for.
    pub relation: Relation,
    /// Source file, where the cubin says.
    pub file: Option<String>,
    /// Source line, where the cubin says.
    pub line: Option<u32>,
}

/// One instruction.
#[derive(Debug, Clone, PartialEq)]
pub struct InstructionRow {
    /// Address relative to the function, bytes.
    pub address: u64,
    /// SASS text, where a disassembly was given.
    pub sass: Option<String>,
    /// Base mnemonic, where known.
    pub mnemonic: Option<String>,
    /// Source file, where the cubin says.
    pub file: Option<String>,
    /// Source line, where the cubin says.
    pub line: Option<u32>,
    /// Samples, all reasons together.
    pub samples: u64,
    /// Part of the kernel's samples, 0 to 1. `None` where the kernel has none.
    pub share: Option<f64>,
    /// Samples in cycles without an issue, where collected.
    pub not_issued: Option<u64>,
    /// Samples by reason, most first; reasons without samples left out.
    pub stalls: Vec<StallCount>,
    /// Times a warp executed it, where collected.
    pub executed: Option<u64>,
    /// Times a thread executed it, where collected.
    pub threads_executed: Option<u64>,
    /// What it waits for, if it waited on a scoreboard and registers and scoreboards say for what.
    pub producer: Option<Producer>,
}

/// One source line.
#[derive(Debug, Clone, PartialEq)]
pub struct LineRow {
    /// Source file; `None` gathers the instructions that no line is known for.
    pub file: Option<String>,
    /// Line from 1.
    pub line: Option<u32>,
    /// The line's text, where the report has the file.
    pub text: Option<String>,
    /// Samples of all its instructions.
    pub samples: u64,
    /// Part of the kernel's samples, 0 to 1. `None` where the kernel has none.
    pub share: Option<f64>,
    /// Samples by reason, most first.
    pub stalls: Vec<StallCount>,
    /// Number of its instructions.
    pub instructions: usize,
    /// Warp-level executions of all its instructions, where collected.
    pub executed: Option<u64>,
}

/// Sums over the kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Totals {
    /// Samples of all instructions shown.
    pub samples: u64,
    /// Samples in cycles without an issue, where collected.
    pub not_issued: Option<u64>,
    /// Samples by reason, most first.
    pub stalls: Vec<StallCount>,
    /// Warp-level executions, where collected.
    pub executed: Option<u64>,
    /// Thread-level executions, where collected.
    pub threads_executed: Option<u64>,
}

/// Something the reader of a view should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// The report has no cubin for the kernel.
    NoCubin,
    /// The stored cubin cannot be read.
    BrokenCubin(String),
    /// The cubin has no function of this name.
    FunctionNotInCubin,
    /// The cubin has no line table for the kernel.
    NoLineInfo,
    /// Instructions of this chip are not decoded.
    UndecodedChip(SmVersion),
    /// Compute capability unknown, so nothing was decoded.
    UnknownChip,
    /// No load address: relative addresses count from the smallest one recorded.
    BaseAddressGuessed,
    /// Some recorded addresses lie outside the kernel's code: a function it calls, most likely.
    OutsideFunction {
        /// Addresses left out.
        addresses: usize,
        /// Their samples.
        samples: u64,
    },
    /// No disassembly was given: mnemonics instead of SASS text.
    NoDisassembly,
    /// Opcodes this program does not know.
    UnknownOpcodes {
        /// Instructions without a mnemonic.
        instructions: usize,
    },
    /// Line numbers are known, the text is not in the report.
    NoSourceText,
}

impl std::fmt::Display for Note {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoCubin => f.write_str("the report holds no code for this kernel: addresses only"),
            Self::BrokenCubin(error) => write!(f, "{error}: addresses only"),
            Self::FunctionNotInCubin => f.write_str("the stored code has no function of this kernel's name: addresses only"),
            Self::NoLineInfo => f.write_str("no source lines: the kernel was built without -lineinfo"),
            Self::UndecodedChip(sm) => write!(f, "instructions of compute capability {sm} are not supported: addresses only"),
            Self::UnknownChip => f.write_str("neither report nor code says which chip this is for: addresses only"),
            Self::BaseAddressGuessed => {
                f.write_str("the report does not say where the kernel was loaded: addresses count from the smallest one recorded")
            }
            Self::OutsideFunction { addresses, samples } => {
                write!(
                    f,
                    "{addresses} recorded addresses ({samples} samples) lie outside the kernel's code, in functions it calls, and are left out"
                )
            }
            Self::NoDisassembly => f.write_str("no nvdisasm: mnemonics in place of SASS text"),
            Self::UnknownOpcodes { instructions } => write!(f, "{instructions} instructions have opcodes this program does not know"),
            Self::NoSourceText => f.write_str("the report holds no source text: profile with --import-source yes"),
        }
    }
}

/// Samples and stall reasons of one kernel by instruction and by line.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SourceView {
    /// Every instruction by ascending address.
    pub instructions: Vec<InstructionRow>,
    /// Every line that has instructions, most samples first; ties by file and line, unknown last.
    pub lines: Vec<LineRow>,
    /// Sums.
    pub totals: Totals,
    /// What is missing, and why.
    pub notes: Vec<Note>,
}

impl SourceView {
    /// The instructions with the most samples, most first; ties by address. Those without samples are left out.
    pub fn hottest(&self, limit: usize) -> Vec<&InstructionRow> {
        let mut rows: Vec<_> = self.instructions.iter().filter(|row| row.samples > 0).collect();
        rows.sort_by_key(|row| (std::cmp::Reverse(row.samples), row.address));
        rows.truncate(limit);
        rows
    }
}

/// Builds the view. It never fails: what cannot be found out is `None`, and a note says why.
pub fn source_view(input: &SourceInput<'_>) -> SourceView {
    let mut notes = Vec::new();
    let code = Code::of(input, &mut notes);
    let recorded = recorded(input, code.as_ref().map(|code| code.function.size_bytes), &mut notes);

    let mut instructions: BTreeMap<u64, SampleRow> = recorded;
    if let Some(code) = &code {
        // Every instruction is listed, whether anything was recorded there or not.
        for index in 0..code.bytes.len() as u64 / INSTRUCTION_BYTES {
            instructions.entry(index * INSTRUCTION_BYTES).or_default();
        }
    }

    let mut view = SourceView::default();
    let mut totals = Sums::default();
    for (address, row) in instructions {
        totals.add(&row);
        view.instructions.push(instruction_row(address, row, code.as_ref(), input));
    }
    view.totals = Totals {
        samples: totals.samples,
        not_issued: totals.not_issued,
        stalls: totals.sorted_stalls(),
        executed: totals.executed,
        threads_executed: totals.threads_executed,
    };
    for row in &mut view.instructions {
        row.share = share(row.samples, view.totals.samples);
    }
    view.lines = line_rows(&view.instructions, view.totals.samples, input.files);

    if code.as_ref().is_some_and(|code| code.program.is_some()) {
        let unknown = view.instructions.iter().filter(|row| row.mnemonic.is_none()).count();
        if unknown > 0 {
            notes.push(Note::UnknownOpcodes { instructions: unknown });
        }
        if view.instructions.iter().all(|row| row.sass.is_none()) {
            notes.push(Note::NoDisassembly);
        }
    }
    if view.lines.iter().any(|line| line.line.is_some()) && view.lines.iter().all(|line| line.text.is_none()) {
        notes.push(Note::NoSourceText);
    }
    view.notes = notes;
    view
}

/// What the cubin says about the kernel.
struct Code<'a> {
    function: Function<'a>,
    bytes: &'a [u8],
    lines: Option<LineTable>,
    /// `None` where instructions cannot be decoded.
    program: Option<Program>,
}

impl<'a> Code<'a> {
    fn of(input: &SourceInput<'a>, notes: &mut Vec<Note>) -> Option<Self> {
        let Some(bytes) = input.cubin.filter(|bytes| !bytes.is_empty()) else {
            notes.push(Note::NoCubin);
            return None;
        };
        let cubin = match Cubin::parse(bytes) {
            Ok(cubin) => cubin,
            Err(error) => {
                notes.push(Note::BrokenCubin(error.to_string()));
                return None;
            }
        };
        let found = cubin.function(input.function).and_then(|function| cubin.code(&function).map(|code| (function, code)));
        let Some((function, code)) = found else {
            notes.push(Note::FunctionNotInCubin);
            return None;
        };
        let lines = LineTable::read(&cubin, &function);
        if lines.is_none() {
            notes.push(Note::NoLineInfo);
        }
        let program = match input.sm.or_else(|| cubin.sm_version()) {
            Some(sm) if sm.has_wide_instructions() => Some(Program::new(code, sm)),
            Some(sm) => {
                notes.push(Note::UndecodedChip(sm));
                None
            }
            None => {
                notes.push(Note::UnknownChip);
                None
            }
        };
        // Where instructions have another length, only recorded addresses are listed.
        let bytes = if program.is_some() { code } else { &[] };
        Some(Self { function, bytes, lines, program })
    }

    fn mnemonic(&self, address: u64) -> Option<&'static str> {
        let index = usize::try_from(address / INSTRUCTION_BYTES).ok()?;
        self.program.as_ref()?.instructions().get(index)?.mnemonic()
    }

    fn place(&self, address: u64) -> (Option<String>, Option<u32>) {
        match self.lines.as_ref().and_then(|lines| lines.location(address)) {
            Some(location) => (Some(location.file.to_owned()), Some(location.line)),
            None => (None, None),
        }
    }

    fn sass(&self, address: u64, input: &SourceInput<'_>) -> Option<String> {
        let offset = self.function.section_offset.checked_add(address)?;
        input.disassembly?.sass(input.function, offset).map(str::to_owned)
    }
}

/// Rows by relative address, those of one address added up.
fn recorded(input: &SourceInput<'_>, size: Option<u64>, notes: &mut Vec<Note>) -> BTreeMap<u64, SampleRow> {
    let base = input.base_address.unwrap_or_else(|| {
        if !input.rows.is_empty() {
            notes.push(Note::BaseAddressGuessed);
        }
        input.rows.iter().map(|row| row.address).min().unwrap_or(0)
    });
    let mut rows: BTreeMap<u64, SampleRow> = BTreeMap::new();
    let (mut addresses, mut samples) = (0, 0_u64);
    for row in input.rows {
        let relative = row.address.checked_sub(base).filter(|&relative| size.is_none_or(|size| relative < size));
        let Some(relative) = relative else {
            addresses += 1;
            samples = samples.saturating_add(row.samples);
            continue;
        };
        let mut sums = Sums::default();
        let entry = rows.entry(relative).or_default();
        sums.add(entry);
        sums.add(row);
        *entry = SampleRow {
            address: relative,
            samples: sums.samples,
            not_issued: sums.not_issued,
            stalls: sums.sorted_stalls(),
            executed: sums.executed,
            threads_executed: sums.threads_executed,
        };
    }
    if addresses > 0 {
        notes.push(Note::OutsideFunction { addresses, samples });
    }
    rows
}

fn instruction_row(address: u64, row: SampleRow, code: Option<&Code<'_>>, input: &SourceInput<'_>) -> InstructionRow {
    let sass = code.and_then(|code| code.sass(address, input));
    let (file, line) = code.map_or((None, None), |code| code.place(address));
    InstructionRow {
        address,
        mnemonic: mnemonic(code, address, sass.as_deref()),
        sass,
        file,
        line,
        samples: row.samples,
        share: None,
        not_issued: row.not_issued,
        producer: code.and_then(|code| producer(address, &row, code, input)),
        stalls: row.stalls,
        executed: row.executed,
        threads_executed: row.threads_executed,
    }
}

/// The decoded mnemonic, else the one in the text.
fn mnemonic(code: Option<&Code<'_>>, address: u64, sass: Option<&str>) -> Option<String> {
    let decoded = code.and_then(|code| code.mnemonic(address));
    let written = || sass?.split_whitespace().find(|word| !word.starts_with('@'))?.split('.').next();
    decoded.or_else(written).map(str::to_owned)
}

/// The scoreboard stalls of a row: long (memory behind L1) and short.
fn scoreboard_stalls(stalls: &[StallCount]) -> (u64, u64) {
    let of = |long: &str, short: &str| {
        stalls.iter().filter(|stall| stall.reason == long || stall.reason == short).map(|stall| stall.samples).sum()
    };
    (of("long_scoreboard", "long_sb"), of("short_scoreboard", "short_sb"))
}

/// What a row's scoreboard stalls are for, if it has any.
fn producer(address: u64, row: &SampleRow, code: &Code<'_>, input: &SourceInput<'_>) -> Option<Producer> {
    let (long, short) = scoreboard_stalls(&row.stalls);
    if long == 0 && short == 0 {
        return None;
    }
    let index = usize::try_from(address / INSTRUCTION_BYTES).ok()?;
    let dependencies = code.program.as_ref()?.dependencies(index);
    // The kind of stall tells apart what the registers leave open.
    let fits = |dependency: &&Dependency| dependency.unit.is_long_scoreboard() == (long >= short);
    let chosen = dependencies.iter().find(fits)?;
    let address = chosen.index as u64 * INSTRUCTION_BYTES;
    let sass = code.sass(address, input);
    let (file, line) = code.place(address);
    Some(Producer {
        address,
        mnemonic: mnemonic(Some(code), address, sass.as_deref()),
        sass,
        unit: chosen.unit,
        relation: chosen.relation,
        file,
        line,
    })
}

/// Samples and counts added up.
#[derive(Default)]
struct Sums<'a> {
    samples: u64,
    not_issued: Option<u64>,
    stalls: BTreeMap<std::borrow::Cow<'a, str>, u64>,
    executed: Option<u64>,
    threads_executed: Option<u64>,
}

impl Sums<'_> {
    fn add(&mut self, row: &SampleRow) {
        self.add_parts(row.samples, row.not_issued, &row.stalls, row.executed, row.threads_executed);
    }

    fn add_parts(&mut self, samples: u64, not_issued: Option<u64>, stalls: &[StallCount], executed: Option<u64>, threads: Option<u64>) {
        let plus = |sum: Option<u64>, more: Option<u64>| more.map_or(sum, |more| Some(sum.unwrap_or(0).saturating_add(more)));
        self.samples = self.samples.saturating_add(samples);
        self.not_issued = plus(self.not_issued, not_issued);
        self.executed = plus(self.executed, executed);
        self.threads_executed = plus(self.threads_executed, threads);
        for stall in stalls {
            let sum = self.stalls.entry(std::borrow::Cow::Owned(stall.reason.clone())).or_default();
            *sum = sum.saturating_add(stall.samples);
        }
    }

    /// Reasons with samples, most first.
    fn sorted_stalls(&self) -> Vec<StallCount> {
        let mut stalls: Vec<_> = self
            .stalls
            .iter()
            .filter(|&(_, &samples)| samples > 0)
            .map(|(reason, &samples)| StallCount { reason: reason.to_string(), samples })
            .collect();
        // The map is ordered by name and the sort stable.
        stalls.sort_by_key(|stall| std::cmp::Reverse(stall.samples));
        stalls
    }
}

/// File and line.
type Place<'a> = (Option<&'a str>, Option<u32>);

fn line_rows(instructions: &[InstructionRow], total: u64, files: &[(&str, &str)]) -> Vec<LineRow> {
    let mut lines: BTreeMap<Place<'_>, (usize, Sums<'_>)> = BTreeMap::new();
    for row in instructions {
        let (count, sums) = lines.entry((row.file.as_deref(), row.line)).or_default();
        *count += 1;
        sums.add_parts(row.samples, row.not_issued, &row.stalls, row.executed, row.threads_executed);
    }
    let mut texts: BTreeMap<&str, Option<Vec<&str>>> = BTreeMap::new();
    let mut rows: Vec<LineRow> = lines
        .into_iter()
        .map(|((file, line), (instructions, sums))| LineRow {
            file: file.map(str::to_owned),
            line,
            text: file.zip(line).and_then(|(file, line)| {
                let text = texts.entry(file).or_insert_with(|| Some(text_of(file, files)?.lines().collect())).as_ref()?;
                text.get((line as usize).checked_sub(1)?).map(|&text| text.to_owned())
            }),
            samples: sums.samples,
            share: share(sums.samples, total),
            stalls: sums.sorted_stalls(),
            instructions,
            executed: sums.executed,
        })
        .collect();
    // The map is ordered by file and line and the sort stable; instructions without a line go behind others of as many samples.
    rows.sort_by_key(|row| (std::cmp::Reverse(row.samples), row.line.is_none()));
    rows
}

/// The stored text of a file: the same path, else the one path that ends in the same components.
fn text_of<'a>(path: &str, files: &[(&str, &'a str)]) -> Option<&'a str> {
    if let Some(&(_, text)) = files.iter().find(|(stored, _)| *stored == path) {
        return Some(text);
    }
    let common = |stored: &str| {
        let (left, right) = (components(path), components(stored));
        left.iter().rev().zip(right.iter().rev()).take_while(|(left, right)| left == right).count()
    };
    let best = files.iter().map(|(stored, _)| common(stored)).max().filter(|&count| count > 0)?;
    let mut matching = files.iter().filter(|(stored, _)| common(stored) == best);
    let &(_, text) = matching.next()?;
    matching.next().is_none().then_some(text)
}

/// The components of a path, `.` and `..` resolved. Windows paths occur in reports too.
fn components(path: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    for part in path.split(['/', '\\']) {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts
}

fn share(samples: u64, total: u64) -> Option<f64> {
    (total > 0).then(|| samples as f64 / total as f64)
}
