//! Source file and line of every instruction of one function, from the cubin's `.debug_line`.
//!
//! Facts checked on cubins of CUDA 11 to 13: DWARF 2, minimum instruction length 1, one sequence a function. The operand of
//! DW_LNE_set_address is 0 in the file and gets its meaning from `.rel.debug_line` or `.rela.debug_line` (type 2, symbol = the function):
//! without it all kernels collapse onto address 0. Here each code section is given a range of addresses of its own, so that one pass
//! over the table can tell functions apart.
//!
//! Extended opcode 0x90 is NVIDIA's record of an inlined call: two LEB128 numbers, of which the first is the row (counted from 1 over the
//! sequence) that holds the call, 0 for none; the second is the callee's name in `.debug_str`. It holds for the rows that follow. A row names the
//! line the code was written on, in a header as often as not; the outermost call is the line of the kernel's own source that it serves.
//!
//! The input is untrusted: `gimli` bounds every read, and what is kept is bounded by the size of the section.

use super::cubin::{Cubin, Function};
use gimli::{
    AttributeValue, DebugLine, DebugLineOffset, EndianSlice, IncompleteLineProgram, LineInstruction, LineProgramHeader, LineRow,
    LittleEndian, Reader as _, SectionId,
};
use object::{Object, ObjectSection, ObjectSymbol, RelocationFlags, RelocationTarget};
use std::collections::HashMap;

/// The type of relocation for the 64-bit address of a symbol, the only one seen in `.rel.debug_line` and `.rela.debug_line`.
const RELOCATION_ADDRESS_64: u32 = 2;

/// Bits of a made-up address that hold the offset in a section. A cubin section never reaches a terabyte.
const SECTION_SHIFT: u32 = 40;

/// NVIDIA's extended opcode for an inlined call.
const INLINED_CALL: u8 = 0x90;

/// Rows kept of one function. The largest kernels seen have some ten thousand; a table of zeros would have one a byte.
const MAX_ROWS: usize = 1 << 21;

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// A line of a source file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceLine<'table> {
    /// Path as the compiler wrote it, directory included.
    pub file: &'table str,
    /// Line, from 1.
    pub line: u32,
}

/// Where an instruction comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Location<'table> {
    /// The line the code was written on.
    pub written: SourceLine<'table>,
    /// The outermost call that brought it in, where it was inlined: a line of the kernel itself.
    pub called_from: Option<SourceLine<'table>>,
}

/// File index and line.
type Place = (usize, u32);

/// A run of instructions from one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Run {
    start: u64,
    /// `None` where the table says "no line".
    written: Option<Place>,
    called_from: Option<Place>,
}

/// The line table of one function, addresses relative to its start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineTable {
    files: Vec<String>,
    /// By ascending start.
    runs: Vec<Run>,
    size_bytes: u64,
}

impl LineTable {
    /// Reads the rows of a function. `None` where the cubin has no line table, or no row for this function.
    pub fn read(cubin: &Cubin<'_>, function: &Function<'_>) -> Option<Self> {
        let section_data = relocated(cubin)?;
        let mut builder = Builder::new(function);
        let strings = Strings::of(cubin);
        let debug_line = DebugLine::new(&section_data, LittleEndian);
        let mut offset = 0_usize;
        while offset < section_data.len() {
            let Ok(program) = debug_line.program(DebugLineOffset(offset), 8, None, None) else { break };
            // The length field itself takes 4 bytes, 12 in the 64-bit format.
            let length_field: usize = if program.header().format() == gimli::Format::Dwarf64 { 12 } else { 4 };
            let Some(next) = program.header().unit_length().checked_add(length_field).and_then(|length| offset.checked_add(length)) else {
                break;
            };
            builder.unit(program, &strings);
            offset = next;
        }
        builder.finish()
    }

    /// Where the instruction at this relative address comes from.
    pub fn location(&self, address: u64) -> Option<Location<'_>> {
        if address >= self.size_bytes {
            return None;
        }
        let after = self.runs.partition_point(|run| run.start <= address);
        let run = self.runs.get(after.checked_sub(1)?)?;
        let named = |(file, line): Place| Some(SourceLine { file: self.files.get(file)?, line });
        Some(Location { written: named(run.written?)?, called_from: run.called_from.and_then(named) })
    }

    /// All source files that some instruction of the function comes from.
    pub fn files(&self) -> &[String] {
        &self.files
    }
}

/// A row of the present sequence: a later one may name it as its call.
#[derive(Clone, Copy)]
struct TableRow {
    file: u64,
    line: u32,
    /// Index of the row with the outermost call that brought it in.
    outermost: Option<usize>,
}

/// Collects the rows of one function out of the rows of the whole file.
struct Builder {
    /// Made-up address of the function's first byte.
    start: u64,
    size_bytes: u64,
    files: Vec<String>,
    file_numbers: HashMap<String, usize>,
    runs: Vec<Run>,
}

impl Builder {
    fn new(function: &Function<'_>) -> Self {
        Self {
            start: section_base(function.section_index) | function.section_offset,
            size_bytes: function.size_bytes,
            files: Vec::new(),
            file_numbers: HashMap::new(),
            runs: Vec::new(),
        }
    }

    /// Runs one line program. A broken instruction ends it; what was read before stays.
    fn unit(&mut self, mut program: IncompleteLineProgram<Slice<'_>>, strings: &Strings<'_>) {
        let header = program.header().clone();
        let mut instructions = header.instructions();
        let mut row = LineRow::new(&header);
        let mut rows: Vec<TableRow> = Vec::new();
        let mut context = 0;
        // File number of this unit -> index in `files`.
        let mut unit_files = HashMap::new();
        while let Ok(Some(instruction)) = instructions.next_instruction(&header) {
            if let LineInstruction::UnknownExtended(opcode, mut operands) = instruction {
                if opcode.0 == INLINED_CALL {
                    context = operands.read_uleb128().ok().and_then(|number| usize::try_from(number).ok()).unwrap_or(0);
                }
                continue;
            }
            if rows.len().max(self.runs.len()) >= MAX_ROWS {
                break;
            }
            match row.execute(instruction, &mut program) {
                Ok(true) => {}
                Ok(false) => continue,
                Err(_) => break,
            }
            let line = row.line().map(|line| u32::try_from(line.get()).unwrap_or(u32::MAX));
            if !row.end_sequence() {
                // The call's own outermost call was found when its row was read; a number that names no earlier row means nothing.
                let call = context.checked_sub(1).and_then(|index| Some(rows.get(index)?.outermost.unwrap_or(index)));
                rows.push(TableRow { file: row.file_index(), line: line.unwrap_or(0), outermost: call });
            }
            if let Some(start) = self.covers(row.address()) {
                let mut place = |row: &TableRow| {
                    let known = unit_files.entry(row.file).or_insert_with(|| self.file(row.file, &header, strings));
                    known.filter(|_| row.line > 0).map(|file| (file, row.line))
                };
                let last = if row.end_sequence() { None } else { rows.last() };
                let written = last.and_then(&mut place);
                let called_from = last.and_then(|row| rows.get(row.outermost?)).and_then(&mut place);
                self.runs.push(Run { start, written, called_from });
            }
            if row.end_sequence() {
                rows.clear();
                context = 0;
            }
            row.reset(&header);
        }
    }

    /// Where in the function a row's address lies. A row ahead of it in the same section may cover its first instructions.
    fn covers(&self, address: u64) -> Option<u64> {
        match address.checked_sub(self.start) {
            Some(relative) => (relative < self.size_bytes).then_some(relative),
            None => (address >> SECTION_SHIFT == self.start >> SECTION_SHIFT).then_some(0),
        }
    }

    fn file(&mut self, number: u64, header: &LineProgramHeader<Slice<'_>>, strings: &Strings<'_>) -> Option<usize> {
        let path = path(number, header, strings)?;
        Some(*self.file_numbers.entry(path).or_insert_with_key(|path| {
            self.files.push(path.clone());
            self.files.len() - 1
        }))
    }

    fn finish(mut self) -> Option<LineTable> {
        // Stable: of several rows for one address the last counts, as it does for a debugger.
        self.runs.sort_by_key(|run| run.start);
        let mut runs: Vec<Run> = Vec::with_capacity(self.runs.len());
        for run in self.runs {
            match runs.last_mut() {
                Some(last) if last.start == run.start => *last = run,
                _ => runs.push(run),
            }
        }
        runs.iter().any(|run| run.written.is_some()).then_some(LineTable { files: self.files, runs, size_bytes: self.size_bytes })
    }
}

/// The string sections that line tables of DWARF 5 point into.
struct Strings<'data> {
    debug_str: &'data [u8],
    debug_line_str: &'data [u8],
}

impl<'data> Strings<'data> {
    fn of(cubin: &Cubin<'data>) -> Self {
        let section = |id: SectionId| cubin.file.section_by_name(id.name()).and_then(|section| section.data().ok()).unwrap_or_default();
        Self { debug_str: section(SectionId::DebugStr), debug_line_str: section(SectionId::DebugLineStr) }
    }

    fn text(&self, value: AttributeValue<Slice<'_>>) -> Option<String> {
        let from = |section: &'data [u8], offset: usize| {
            let mut rest = EndianSlice::new(section.get(offset..)?, LittleEndian);
            Some(rest.read_null_terminated_slice().ok()?.slice())
        };
        let bytes = match value {
            AttributeValue::String(text) => text.slice().to_vec(),
            AttributeValue::DebugStrRef(offset) => from(self.debug_str, offset.0)?.to_vec(),
            AttributeValue::DebugLineStrRef(offset) => from(self.debug_line_str, offset.0)?.to_vec(),
            _ => return None,
        };
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// Whole path of a file of the table. A directory the table leaves out (the compiler's working directory) stays out.
fn path(number: u64, header: &LineProgramHeader<Slice<'_>>, strings: &Strings<'_>) -> Option<String> {
    let file = header.file(number)?;
    let name = strings.text(file.path_name())?;
    if name.starts_with('/') {
        return Some(name);
    }
    let directory = file.directory(header).and_then(|directory| strings.text(directory)).filter(|directory| !directory.is_empty());
    Some(match directory {
        Some(directory) if directory.ends_with('/') => format!("{directory}{name}"),
        Some(directory) => format!("{directory}/{name}"),
        None => name,
    })
}

/// The first made-up address of a code section.
fn section_base(section_index: usize) -> u64 {
    ((section_index as u64) & 0x7f_ffff) << SECTION_SHIFT
}

/// A copy of `.debug_line` with every address operand naming its section and offset.
fn relocated(cubin: &Cubin<'_>) -> Option<Vec<u8>> {
    let section = cubin.file.section_by_name(".debug_line")?;
    let mut data = section.data().ok()?.to_vec();
    for (offset, relocation) in section.relocations() {
        let RelocationFlags::Elf { r_type } = relocation.flags() else { continue };
        if r_type.0 != RELOCATION_ADDRESS_64 {
            continue;
        }
        let RelocationTarget::Symbol(symbol) = relocation.target() else { continue };
        let Ok(symbol) = cubin.file.symbol_by_index(symbol) else { continue };
        let Some(symbol_section) = symbol.section_index() else { continue };
        let Some(in_section) = cubin.offset_in_section(&symbol) else { continue };
        let Some(target) = usize::try_from(offset).ok().and_then(|start| data.get_mut(start..start.checked_add(8)?)) else { continue };
        let Ok(operand) = <[u8; 8]>::try_from(&*target) else { continue };
        // `.rel` keeps the addend in the place it patches, `.rela` in the relocation.
        let implicit = if relocation.has_implicit_addend() { u64::from_le_bytes(operand) } else { 0 };
        let within = in_section.wrapping_add_signed(relocation.addend()).wrapping_add(implicit);
        target.copy_from_slice(&(section_base(symbol_section.0) | (within & ((1 << SECTION_SHIFT) - 1))).to_le_bytes());
    }
    Some(data)
}
