//! The functions of a cubin: an ELF file for one chip, as a report stores it beside the results.
//!
//! Layout, checked on files for compute capability 7.5 to 9.0: every kernel has a section `.text.<mangled name>` and a function symbol of
//! that name at its start; device functions that were not inlined are symbols inside their caller's section. All addresses here are
//! relative to the start of the function asked for, which is what the profiler's addresses become once the load address is taken off.
//!
//! The bytes come from an untrusted file. `object` checks every offset; what it does not know (that a symbol lies inside its section)
//! is checked here, and every list is bounded by the size of the file.

use object::read::elf::{ElfFile64, ElfSection64, ElfSymbol64};
use object::{Endianness, Object, ObjectSection, ObjectSymbol, SymbolKind};
use thiserror::Error;

/// Bytes of one instruction on compute capability 7.0 and later.
pub const INSTRUCTION_BYTES: u64 = 16;

/// The first byte of the version field in `e_ident` that marks the layout of `e_flags` used from CUDA 13 on.
const ABI_WITH_WIDE_FLAGS: u8 = 8;

/// Compute capability of a chip, such as 9.0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SmVersion {
    /// 9 of 9.0.
    pub major: u16,
    /// 0 of 9.0.
    pub minor: u16,
}

impl SmVersion {
    /// From the number a report stores with its cubin: major in the upper half, minor in the lower (589824 is 9.0).
    pub const fn from_report(revision: u32) -> Self {
        Self { major: (revision >> 16) as u16, minor: (revision & 0xffff) as u16 }
    }

    /// Whether instructions take 16 bytes and follow the encoding that began with compute capability 7.0.
    pub const fn has_wide_instructions(self) -> bool {
        self.major >= 7
    }
}

impl std::fmt::Display for SmVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// Why a cubin gave nothing.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CubinError {
    /// The bytes are no 64-bit ELF file, or a broken one.
    #[error("the stored cubin is no readable 64-bit ELF file: {0}")]
    NotElf(String),
}

/// A function symbol of a cubin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function<'data> {
    /// Mangled name.
    pub name: &'data str,
    /// Number of the symbol in the symbol table, as `nvdisasm --cuda-function-index` takes it.
    pub symbol_index: usize,
    /// Number of the section that holds the code.
    pub section_index: usize,
    /// Where the function starts in its section, bytes.
    pub section_offset: u64,
    /// Length of the code, bytes, padding included.
    pub size_bytes: u64,
    /// Where the function was loaded, if the report keeps the cubin as it was in memory: reports of 2020 give symbols this address.
    pub load_address: Option<u64>,
}

/// A parsed cubin that borrows the bytes of the report.
pub struct Cubin<'data> {
    pub(super) file: ElfFile64<'data, Endianness>,
    bytes: &'data [u8],
}

impl std::fmt::Debug for Cubin<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cubin").field("bytes", &self.bytes.len()).finish_non_exhaustive()
    }
}

impl<'data> Cubin<'data> {
    /// Reads headers and the symbol table's place; nothing is copied.
    pub fn parse(bytes: &'data [u8]) -> Result<Self, CubinError> {
        let file = ElfFile64::parse(bytes).map_err(|error| CubinError::NotElf(error.to_string()))?;
        Ok(Self { file, bytes })
    }

    /// Compute capability the code is for, from the header flags. `None` where the field holds no plausible number.
    ///
    /// The two layouts seen: ABI version 7 keeps the number in the lowest byte, version 8 in the one above.
    pub fn sm_version(&self) -> Option<SmVersion> {
        let flags = self.file.elf_header().e_flags.get(self.file.endian()).0;
        let abi = self.bytes.get(8).copied()?;
        let number = if abi >= ABI_WITH_WIDE_FLAGS { (flags >> 8) & 0xff } else { flags & 0xff } as u16;
        (number >= 10).then_some(SmVersion { major: number / 10, minor: number % 10 })
    }

    /// All function symbols that have code, in the order of section and offset.
    pub fn functions(&self) -> Vec<Function<'data>> {
        let mut functions: Vec<_> = self.function_symbols().collect();
        functions.sort_by_key(|function| (function.section_index, function.section_offset, function.symbol_index));
        functions
    }

    /// The function of this mangled name.
    pub fn function(&self, mangled: &str) -> Option<Function<'data>> {
        self.function_symbols().find(|function| function.name == mangled).or_else(|| self.function_by_section(mangled))
    }

    /// The code bytes of a function of this cubin.
    pub fn code(&self, function: &Function<'_>) -> Option<&'data [u8]> {
        let section = self.file.section_by_index(object::SectionIndex(function.section_index)).ok()?;
        let start = usize::try_from(function.section_offset).ok()?;
        let size = usize::try_from(function.size_bytes).ok()?;
        section.data().ok()?.get(start..start.checked_add(size)?)
    }

    /// Where a symbol lies in its section. In a cubin kept as it was in memory, the symbol of a kernel holds the load address instead,
    /// and the kernel begins the section that bears its name.
    pub(super) fn offset_in_section(&self, symbol: &ElfSymbol64<'data, '_, Endianness>) -> Option<u64> {
        let section = self.file.section_by_index(symbol.section_index()?).ok()?;
        if symbol.address() < section.size() {
            return Some(symbol.address());
        }
        let named_after = section.name_bytes().ok()?.strip_prefix(b".text.")?;
        (named_after == symbol.name_bytes().ok()?).then_some(0)
    }

    fn function_symbols(&self) -> impl Iterator<Item = Function<'data>> + '_ {
        self.file.symbols().filter_map(|symbol| {
            if symbol.kind() != SymbolKind::Text {
                return None;
            }
            let section_index = symbol.section_index()?;
            let section = self.file.section_by_index(section_index).ok()?;
            let section_offset = self.offset_in_section(&symbol)?;
            let size_bytes = size_in_section(&section, section_offset, symbol.size())?;
            let name = std::str::from_utf8(symbol.name_bytes().ok()?).ok()?;
            Some(Function {
                name,
                symbol_index: symbol.index().0,
                section_index: section_index.0,
                section_offset,
                size_bytes,
                load_address: (symbol.address() != section_offset).then(|| symbol.address()),
            })
        })
    }

    /// A stripped cubin has no symbols; the section's name still says whose code it holds.
    fn function_by_section(&self, mangled: &str) -> Option<Function<'data>> {
        self.file.sections().find_map(|section| {
            let name = std::str::from_utf8(section.name_bytes().ok()?).ok()?.strip_prefix(".text.")?;
            let size_bytes = size_in_section(&section, 0, 0)?;
            (name == mangled).then(|| Function {
                name,
                symbol_index: 0,
                section_index: section.index().0,
                section_offset: 0,
                size_bytes,
                load_address: None,
            })
        })
    }
}

/// The bytes a symbol covers in its section; a symbol without a size reaches to the end. `None` where it leaves the section.
fn size_in_section(section: &ElfSection64<'_, '_, Endianness>, offset: u64, size: u64) -> Option<u64> {
    let available = (section.data().ok()?.len() as u64).checked_sub(offset)?;
    let size = if size == 0 { available } else { size };
    (size > 0 && size <= available).then_some(size)
}
