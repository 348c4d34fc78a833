//! The source view of one kernel: samples and stall reasons by instruction and by source line.
//!
//! Everything is counted in whole samples; shares are made from the sums at the end. Instructions are ordered by address, lines and
//! stall reasons by samples with ties by name, so that equal inputs give equal outputs.

mod build;
mod lines;

use super::cubin::SmVersion;
use super::dataflow::Relation;
use super::nvdisasm::Disassembly;
use super::sass::Unit;
pub use build::source_view;

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
    /// Where the function was loaded. Without it the address in the cubin is taken, if the report keeps one, else the smallest recorded.
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

/// A line of a source file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileLine {
    /// Path as the compiler wrote it.
    pub file: String,
    /// Line from 1.
    pub line: u32,
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
    /// For inlined code, the line of the kernel's own source that it serves: the outermost call.
    pub called_from: Option<FileLine>,
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
    /// The same with inlined code counted at the line of the kernel's own source that calls it, where much of a kernel would
    /// otherwise show under lines of headers. Equal to `lines` where nothing is inlined.
    pub kernel_lines: Vec<LineRow>,
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
