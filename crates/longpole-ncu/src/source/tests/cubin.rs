//! Functions, code and lines of a cubin made by hand, and of the same broken.

use super::elf::{ADD, END, HOPPER, LOAD, Relocations, Shape, USE, code, cubin};
use crate::source::{Cubin, LineTable, SmVersion, SourceInput, source_view};

/// File, line, and file and line of the outermost call.
type Place = (String, u32, Option<(String, u32)>);

fn lines_of(cubin: &Cubin<'_>, name: &str) -> Vec<Place> {
    let function = cubin.function(name).unwrap();
    let table = LineTable::read(cubin, &function).unwrap();
    (0..function.size_bytes / 16)
        .map(|index| {
            let location = table.location(index * 16).unwrap();
            let call = location.called_from.map(|call| (call.file.to_owned(), call.line));
            (location.written.file.to_owned(), location.written.line, call)
        })
        .collect()
}

fn plain(file: &str, line: u32) -> Place {
    (file.to_owned(), line, None)
}

#[test]
fn functions_and_code() {
    let bytes = cubin(Shape::default());
    let cubin = Cubin::parse(&bytes).unwrap();
    assert_eq!(cubin.sm_version(), Some(HOPPER));
    let found: Vec<_> = cubin
        .functions()
        .iter()
        .map(|function| (function.name, function.symbol_index, function.section_offset, function.size_bytes))
        .collect();
    assert_eq!(found, [("first", 1, 0, 0x40), ("second", 2, 0, 0x50), ("$helper", 3, 0x50, 0x20)]);
    let second = cubin.function("second").unwrap();
    assert_eq!(cubin.code(&second).unwrap(), code(&[LOAD, ADD, USE, ADD, END]));
    assert_eq!(cubin.function("third"), None);
}

#[test]
fn lines_of_two_kernels_are_kept_apart() {
    for relocations in [Relocations::Rela, Relocations::Rel] {
        let bytes = cubin(Shape { relocations, ..Shape::default() });
        let cubin = Cubin::parse(&bytes).unwrap();
        let first = lines_of(&cubin, "first");
        assert_eq!(first, [plain("/src/a.cu", 10), plain("/src/a.cu", 10), plain("/src/a.cu", 11), plain("/src/a.cu", 11)]);
        let inlined = ("/inc/b.h".to_owned(), 5, Some(("/src/a.cu".to_owned(), 21)));
        let second = lines_of(&cubin, "second");
        assert_eq!(second, [plain("/src/a.cu", 20), plain("/src/a.cu", 21), inlined, plain("/src/a.cu", 22), plain("/src/a.cu", 22)]);
    }
}

#[test]
fn the_load_address_is_read_where_a_symbol_holds_it() {
    let bytes = cubin(Shape { loaded_at: Some(0x7f5e_16fb_2900), ..Shape::default() });
    let cubin = Cubin::parse(&bytes).unwrap();
    let second = cubin.function("second").unwrap();
    assert_eq!((second.section_offset, second.load_address), (0, Some(0x7f5e_16fb_2900)));
    assert_eq!(cubin.code(&second).unwrap().len(), 0x50);
    assert_eq!(lines_of(&cubin, "second").len(), 5);
    assert_eq!(lines_of(&cubin, "second")[1], plain("/src/a.cu", 21));
}

#[test]
fn without_a_line_table_there_are_no_lines() {
    let bytes = cubin(Shape { lines: false, ..Shape::default() });
    let cubin = Cubin::parse(&bytes).unwrap();
    assert_eq!(LineTable::read(&cubin, &cubin.function("first").unwrap()), None);
}

#[test]
fn an_address_behind_the_function_has_no_line() {
    let bytes = cubin(Shape::default());
    let cubin = Cubin::parse(&bytes).unwrap();
    let table = LineTable::read(&cubin, &cubin.function("first").unwrap()).unwrap();
    assert!(table.location(0x3f).is_some());
    assert_eq!(table.location(0x40), None);
    assert_eq!(table.location(u64::MAX), None);
}

#[test]
fn what_is_no_elf_file_is_an_error() {
    for bytes in [&b""[..], b"\x7fELF", b"text", &[0; 64]] {
        assert!(Cubin::parse(bytes).unwrap_err().to_string().starts_with("the stored cubin is no readable 64-bit ELF file"));
    }
}

#[test]
fn chips_have_versions_in_two_layouts() {
    assert_eq!(SmVersion::from_report(589_824).to_string(), "9.0");
    assert_eq!(SmVersion::from_report(458_757).to_string(), "7.5");
    let mut bytes = cubin(Shape::default());
    // Version 7 of the layout keeps the number in the lowest byte.
    bytes[8] = 7;
    bytes[48..52].copy_from_slice(&0x004b_054b_u32.to_le_bytes());
    assert_eq!(Cubin::parse(&bytes).unwrap().sm_version(), Some(SmVersion { major: 7, minor: 5 }));
}

/// The whole view of a damaged cubin.
fn view_of(bytes: &[u8]) -> usize {
    let mut instructions = 0;
    for function in ["first", "second", "$helper", "third"] {
        let input = SourceInput { cubin: Some(bytes), function, base_address: Some(0), sm: None, rows: &[], files: &[], disassembly: None };
        instructions += source_view(&input).instructions.len();
    }
    if let Ok(cubin) = Cubin::parse(bytes) {
        for function in cubin.functions() {
            instructions += cubin.code(&function).map_or(0, <[u8]>::len);
        }
    }
    instructions
}

#[test]
fn damage_never_panics_and_never_invents_code() {
    let whole = cubin(Shape::default());
    assert_eq!(view_of(&whole), 4 + 5 + 2 + 0x40 + 0x50 + 0x20);
    for length in 0..whole.len() {
        view_of(&whole[..length]);
    }
    let mut state = 1_u64;
    for _ in 0..4000 {
        let mut bytes = whole.clone();
        for _ in 0..3 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let at = (state >> 33) as usize % bytes.len();
            bytes[at] = (state >> 20) as u8;
        }
        // No section can hold more than the file.
        assert!(view_of(&bytes) <= 8 * whole.len());
    }
}
