//! A cubin made by hand: two kernels, their line table, and what else an ELF file needs.
//!
//! Kernel `first` has four instructions in `/src/a.cu`; kernel `second` (five) has code inlined from `/inc/b.h` into line 21 of
//! `/src/a.cu`, and a device function `$helper` behind it in the same section.

use crate::source::SmVersion;

pub(super) const HOPPER: SmVersion = SmVersion { major: 9, minor: 0 };

/// Instructions of `second`: a load, an independent operation, one that uses the load, a jump to itself.
pub(super) const LOAD: [u64; 2] = [0x0000_0008_0204_7981, 0x000e_a200_0c1e_1900]; // LDG.E R4, desc[UR8][R2.64], sets scoreboard 2
pub(super) const ADD: [u64; 2] = [0x0000_0001_0606_7836, 0x000f_e200_0000_0000]; // VIADD R6, R6, 0x1
pub(super) const USE: [u64; 2] = [0x0000_0004_0505_7221, 0x004f_e200_0000_0000]; // FADD R5, R5, R4, waits for scoreboard 2
pub(super) const END: [u64; 2] = [0xffff_fffc_00fc_7947, 0x000f_c000_0383_ffff]; // BRA to itself

pub(super) fn code(instructions: &[[u64; 2]]) -> Vec<u8> {
    instructions.iter().flatten().flat_map(|word| word.to_le_bytes()).collect()
}

struct Section {
    name: &'static str,
    kind: u32,
    flags: u64,
    data: Vec<u8>,
    link: u32,
    info: u32,
    entry: u64,
}

fn section(name: &'static str, kind: u32, flags: u64, data: Vec<u8>) -> Section {
    Section { name, kind, flags, data, link: 0, info: 0, entry: 0 }
}

/// How the relocations of the line table are stored.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Relocations {
    /// With addends in the relocations.
    Rela,
    /// With addends in place.
    Rel,
}

/// What differs between the cubins of the tests.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    pub(super) relocations: Relocations,
    pub(super) lines: bool,
    /// Load address given to the symbol of `second`, as reports of 2020 do.
    pub(super) loaded_at: Option<u64>,
}

impl Default for Shape {
    fn default() -> Self {
        Self { relocations: Relocations::Rela, lines: true, loaded_at: None }
    }
}

/// The line program; the positions of its two address operands.
fn debug_line() -> (Vec<u8>, [usize; 2]) {
    let mut tables: Vec<u8> = vec![1, 1, 0xfb, 14, 10, 0, 1, 1, 1, 1, 0, 0, 0, 1];
    tables.extend_from_slice(b"/src\0/inc\0\0");
    tables.extend_from_slice(b"a.cu\0\x01\0\0b.h\0\x02\0\0\0");
    let mut program = Vec::new();
    let mut operands = [0; 2];
    let set_address = |program: &mut Vec<u8>| {
        program.extend_from_slice(&[0, 9, 2]);
        program.extend_from_slice(&[0; 8]);
        program.len() - 8
    };
    let advance_line = |program: &mut Vec<u8>, by: u8| program.extend_from_slice(&[3, by & 0x7f]);
    let copy = |program: &mut Vec<u8>| program.push(1);
    let advance = |program: &mut Vec<u8>, by: u8| program.extend_from_slice(&[2, by]);
    let end = |program: &mut Vec<u8>| program.extend_from_slice(&[0, 1, 1]);

    // first: line 10, then 11 from 0x20 on.
    operands[0] = set_address(&mut program);
    advance_line(&mut program, 9);
    copy(&mut program);
    advance(&mut program, 0x20);
    advance_line(&mut program, 1);
    copy(&mut program);
    advance(&mut program, 0x20);
    end(&mut program);

    // second: line 20; from 0x10 line 21; from 0x20 line 5 of b.h called in row 2 (line 21); from 0x30 line 22.
    operands[1] = set_address(&mut program);
    advance_line(&mut program, 19);
    copy(&mut program);
    advance(&mut program, 0x10);
    advance_line(&mut program, 1);
    copy(&mut program);
    advance(&mut program, 0x10);
    program.extend_from_slice(&[4, 2]); // file 2
    program.extend_from_slice(&[0, 3, 0x90, 2, 0]); // inlined into row 2
    advance_line(&mut program, 0x70); // -16
    copy(&mut program);
    program.extend_from_slice(&[4, 1]); // file 1
    program.extend_from_slice(&[0, 3, 0x90, 0, 0]); // not inlined
    advance_line(&mut program, 17);
    advance(&mut program, 0x10);
    copy(&mut program);
    advance(&mut program, 0x20);
    end(&mut program);

    let mut data = Vec::new();
    let header_length = tables.len() as u32;
    let unit_length = 2 + 4 + header_length + program.len() as u32;
    data.extend_from_slice(&unit_length.to_le_bytes());
    data.extend_from_slice(&2_u16.to_le_bytes());
    data.extend_from_slice(&header_length.to_le_bytes());
    data.extend_from_slice(&tables);
    let start = data.len();
    data.extend_from_slice(&program);
    (data, operands.map(|operand| operand + start))
}

/// Puts the cubin together.
pub(super) fn cubin(shape: Shape) -> Vec<u8> {
    let second = [LOAD, ADD, USE, ADD, END];
    let mut text_second = code(&second);
    text_second.extend(code(&[END, END]));
    let (line_data, operands) = debug_line();

    let names = ["", "first", "second", "$helper"];
    let mut strings = Vec::new();
    let name_offsets: Vec<u32> = names
        .iter()
        .map(|name| {
            let offset = strings.len() as u32;
            strings.extend_from_slice(name.as_bytes());
            strings.push(0);
            offset
        })
        .collect();
    let symbol = |name: usize, section: u16, value: u64, size: u64| {
        let mut bytes = name_offsets[name].to_le_bytes().to_vec();
        bytes.extend_from_slice(&[if name == 0 { 0 } else { 0x12 }, 0]);
        bytes.extend_from_slice(&section.to_le_bytes());
        bytes.extend_from_slice(&value.to_le_bytes());
        bytes.extend_from_slice(&size.to_le_bytes());
        bytes
    };
    let symbols =
        [symbol(0, 0, 0, 0), symbol(1, 1, 0, 0x40), symbol(2, 2, shape.loaded_at.unwrap_or(0), 0x50), symbol(3, 2, 0x50, 0x20)].concat();
    let relocations = operands
        .iter()
        .zip([1_u64, 2])
        .flat_map(|(operand, symbol)| {
            let mut bytes = (*operand as u64).to_le_bytes().to_vec();
            bytes.extend_from_slice(&(symbol << 32 | 2).to_le_bytes());
            if shape.relocations == Relocations::Rela {
                bytes.extend_from_slice(&0_u64.to_le_bytes());
            }
            bytes
        })
        .collect();

    let mut sections = vec![
        section("", 0, 0, Vec::new()),
        section(".text.first", 1, 6, code(&[ADD, ADD, ADD, END])),
        section(".text.second", 1, 6, text_second),
        Section { link: 4, info: 1, entry: 24, ..section(".symtab", 2, 0, symbols) },
        section(".strtab", 3, 0, strings),
    ];
    if shape.lines {
        sections.push(section(".debug_line", 1, 0, line_data));
        let (name, kind, entry) =
            if shape.relocations == Relocations::Rela { (".rela.debug_line", 4, 24) } else { (".rel.debug_line", 9, 16) };
        sections.push(Section { link: 3, info: 5, entry, ..section(name, kind, 0, relocations) });
    }
    sections.push(section(".shstrtab", 3, 0, Vec::new()));
    assemble(sections)
}

fn assemble(mut sections: Vec<Section>) -> Vec<u8> {
    let mut names = Vec::new();
    let name_offsets: Vec<u32> = sections
        .iter()
        .map(|section| {
            let offset = names.len() as u32;
            names.extend_from_slice(section.name.as_bytes());
            names.push(0);
            offset
        })
        .collect();
    sections.last_mut().unwrap().data = names;

    let mut file = vec![0_u8; 64];
    let mut headers = Vec::new();
    for (section, name) in sections.iter().zip(name_offsets) {
        file.resize(file.len().next_multiple_of(16), 0);
        headers.extend_from_slice(&name.to_le_bytes());
        headers.extend_from_slice(&section.kind.to_le_bytes());
        for word in [section.flags, 0, file.len() as u64, section.data.len() as u64] {
            headers.extend_from_slice(&word.to_le_bytes());
        }
        headers.extend_from_slice(&section.link.to_le_bytes());
        headers.extend_from_slice(&section.info.to_le_bytes());
        headers.extend_from_slice(&1_u64.to_le_bytes());
        headers.extend_from_slice(&section.entry.to_le_bytes());
        file.extend_from_slice(&section.data);
    }
    file.resize(file.len().next_multiple_of(16), 0);
    let header_offset = file.len() as u64;
    file.extend_from_slice(&headers);

    file[..9].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1, 1, 0x41, 8]);
    file[16..18].copy_from_slice(&2_u16.to_le_bytes());
    file[18..20].copy_from_slice(&190_u16.to_le_bytes());
    file[20..24].copy_from_slice(&1_u32.to_le_bytes());
    file[40..48].copy_from_slice(&header_offset.to_le_bytes());
    file[48..52].copy_from_slice(&0x0a00_5a04_u32.to_le_bytes());
    file[52..54].copy_from_slice(&64_u16.to_le_bytes());
    file[58..60].copy_from_slice(&64_u16.to_le_bytes());
    file[60..62].copy_from_slice(&(sections.len() as u16).to_le_bytes());
    file[62..64].copy_from_slice(&(sections.len() as u16 - 1).to_le_bytes());
    file
}
