//! Source file and line of every instruction of one function, from the cubin's `.debug_line`.
//!
//! Facts checked on cubins of CUDA 11 to 13: DWARF 2, minimum instruction length 1, one sequence a function. The operand of
//! DW_LNE_set_address is 0 in the file and gets its meaning from `.rel.debug_line` or `.rela.debug_line` (type 2, symbol = the function):
//! without it all kernels collapse onto address 0. Here each code section is given a range of addresses of its own, so that one pass
//! over the table can tell functions apart. Extended opcode 0x90 (NVIDIA's record of an inlined call) is skipped by its length: the row
//! that follows already names the line the code was written on.
//!
//! The input is untrusted: `gimli` bounds every read, and rows are kept only for the function asked for.

use super::cubin::{Cubin, Function};
use gimli::{AttributeValue, DebugLine, DebugLineOffset, EndianSlice, LineProgramHeader, LittleEndian, Reader as _, SectionId};
use object::{Object, ObjectSection, ObjectSymbol, RelocationFlags, RelocationTarget};
use std::collections::HashMap;

/// `R_CUDA_64`: the 64-bit address of a symbol. The only type seen in `.rel.debug_line` and `.rela.debug_line`.
const RELOCATION_ADDRESS_64: u32 = 2;

/// Bits of a made-up address that hold the offset in a section. A cubin section never reaches a terabyte.
const SECTION_SHIFT: u32 = 40;

/// A place in a source file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Location<'table> {
    /// Path as the compiler wrote it, directory included.
    pub file: &'table str,
    /// Line, from 1.
    pub line: u32,
}

/// The line table of one function, addresses relative to its start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineTable {
    files: Vec<String>,
    /// Start of a run of instructions, with the place they come from, by ascending start; `None` where the table says "no line".
    runs: Vec<(u64, Option<(usize, u32)>)>,
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
            builder.start_unit();
            let mut rows = program.rows();
            // A broken row ends the unit; what was read before it stays.
            while let Ok(Some((header, row))) = rows.next_row() {
                let place = row.line().map(|line| (row.file_index(), u32::try_from(line.get()).unwrap_or(u32::MAX)));
                builder.add(row.address(), row.end_sequence(), place, header, &strings);
            }
            offset = next;
        }
        builder.finish()
    }

    /// Where the instruction at this relative address comes from.
    pub fn location(&self, address: u64) -> Option<Location<'_>> {
        if address >= self.size_bytes {
            return None;
        }
        let after = self.runs.partition_point(|&(start, _)| start <= address);
        let (file, line) = self.runs.get(after.checked_sub(1)?)?.1?;
        Some(Location { file: self.files.get(file)?, line })
    }

    /// All source files that some instruction of the function comes from.
    pub fn files(&self) -> &[String] {
        &self.files
    }
}

/// Collects the rows of one function out of the rows of the whole file.
struct Builder {
    /// Made-up address of the function's first byte.
    start: u64,
    size_bytes: u64,
    files: Vec<String>,
    file_numbers: HashMap<String, usize>,
    /// Number of a file within the present unit -> index in `files`.
    unit_files: HashMap<u64, Option<usize>>,
    /// Rows by address and order of appearance.
    rows: Vec<(u64, Option<(usize, u32)>)>,
}

impl Builder {
    fn new(function: &Function<'_>) -> Self {
        Self {
            start: section_base(function.section_index) | function.section_offset,
            size_bytes: function.size_bytes,
            files: Vec::new(),
            file_numbers: HashMap::new(),
            unit_files: HashMap::new(),
            rows: Vec::new(),
        }
    }

    fn start_unit(&mut self) {
        self.unit_files.clear();
    }

    fn add(
        &mut self,
        address: u64,
        end: bool,
        place: Option<(u64, u32)>,
        header: &LineProgramHeader<EndianSlice<'_, LittleEndian>>,
        strings: &Strings<'_>,
    ) {
        let Some(relative) = address.checked_sub(self.start) else { return self.add_before(address, end, place, header, strings) };
        // The end of a sequence may stand one byte behind the function.
        if relative >= self.size_bytes {
            return;
        }
        let place = if end { None } else { place.and_then(|(file, line)| Some((self.file(file, header, strings)?, line))) };
        self.rows.push((relative, place));
    }

    /// A row ahead of a function inside a shared section: it may cover the function's first instructions.
    fn add_before(
        &mut self,
        address: u64,
        end: bool,
        place: Option<(u64, u32)>,
        header: &LineProgramHeader<EndianSlice<'_, LittleEndian>>,
        strings: &Strings<'_>,
    ) {
        if address >> SECTION_SHIFT != self.start >> SECTION_SHIFT {
            return;
        }
        let place = if end { None } else { place.and_then(|(file, line)| Some((self.file(file, header, strings)?, line))) };
        match self.rows.last_mut() {
            Some(last) if last.0 == 0 => last.1 = place,
            _ => self.rows.push((0, place)),
        }
    }

    fn file(&mut self, number: u64, header: &LineProgramHeader<EndianSlice<'_, LittleEndian>>, strings: &Strings<'_>) -> Option<usize> {
        if let Some(&known) = self.unit_files.get(&number) {
            return known;
        }
        let index = path(number, header, strings).map(|path| {
            *self.file_numbers.entry(path).or_insert_with_key(|path| {
                self.files.push(path.clone());
                self.files.len() - 1
            })
        });
        self.unit_files.insert(number, index);
        index
    }

    fn finish(mut self) -> Option<LineTable> {
        // Stable: of several rows for one address the last counts, as it does for a debugger.
        self.rows.sort_by_key(|&(address, _)| address);
        let mut runs: Vec<(u64, Option<(usize, u32)>)> = Vec::with_capacity(self.rows.len());
        for (address, place) in self.rows {
            match runs.last_mut() {
                Some(last) if last.0 == address => last.1 = place,
                _ => runs.push((address, place)),
            }
        }
        runs.iter().any(|(_, place)| place.is_some()).then_some(LineTable { files: self.files, runs, size_bytes: self.size_bytes })
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

    fn text(&self, value: AttributeValue<EndianSlice<'_, LittleEndian>>) -> Option<String> {
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
fn path(number: u64, header: &LineProgramHeader<EndianSlice<'_, LittleEndian>>, strings: &Strings<'_>) -> Option<String> {
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
        let Some(target) = usize::try_from(offset).ok().and_then(|start| data.get_mut(start..start.checked_add(8)?)) else { continue };
        let Ok(operand) = <[u8; 8]>::try_from(&*target) else { continue };
        // `.rel` keeps the addend in the place it patches, `.rela` in the relocation.
        let implicit = if relocation.has_implicit_addend() { u64::from_le_bytes(operand) } else { 0 };
        let within = symbol.address().wrapping_add_signed(relocation.addend()).wrapping_add(implicit);
        target.copy_from_slice(&(section_base(symbol_section.0) | (within & ((1 << SECTION_SHIFT) - 1))).to_le_bytes());
    }
    Some(data)
}
