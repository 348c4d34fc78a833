//! The view of a kernel made by hand.

use super::elf::{Shape, cubin};
use crate::source::dataflow::Relation;
use crate::source::{Disassembly, LineRow, Note, SampleRow, SmVersion, SourceInput, SourceView, StallCount, source_view};

const BASE: u64 = 0x7f00_0000_0000;

fn row(address: u64, stalls: &[(&str, u64)]) -> SampleRow {
    SampleRow {
        address,
        samples: stalls.iter().map(|(_, samples)| samples).sum(),
        not_issued: None,
        stalls: stalls.iter().map(|&(reason, samples)| StallCount { reason: reason.to_owned(), samples }).collect(),
        executed: Some(8),
        threads_executed: Some(256),
    }
}

fn rows() -> Vec<SampleRow> {
    vec![
        row(BASE + 0x20, &[("wait", 1), ("long_scoreboard", 60)]),
        row(BASE, &[("selected", 2)]),
        row(BASE + 0x10, &[("not_selected", 2), ("math", 2)]),
        row(BASE + 0x30, &[]),
    ]
}

fn input<'a>(cubin: Option<&'a [u8]>, rows: &'a [SampleRow]) -> SourceInput<'a> {
    SourceInput { cubin, function: "second", base_address: Some(BASE), sm: None, rows, files: &[], disassembly: None }
}

fn table(lines: &[LineRow]) -> String {
    let line = |row: &LineRow| {
        let stalls: Vec<_> = row.stalls.iter().map(|stall| format!("{} {}", stall.reason, stall.samples)).collect();
        let place = row.file.as_ref().zip(row.line).map_or("?".to_owned(), |(file, line)| format!("{file}:{line}"));
        format!("{place} | {} | {} | {} | {}", row.text.as_deref().unwrap_or("-"), row.samples, row.instructions, stalls.join(", "))
    };
    lines.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn check_notes(view: &SourceView, expected: &[Note]) {
    assert_eq!(view.notes, expected);
    for note in &view.notes {
        assert!(!note.to_string().is_empty());
    }
}

#[test]
fn lines_and_instructions() {
    let (bytes, rows) = (cubin(Shape::default()), rows());
    let a = (1..30).map(|line| format!("line {line}")).collect::<Vec<_>>().join("\n");
    let files = [("/src/a.cu", a.as_str()), ("/other/inc/b.h", "1\n2\n3\n4\nfive\n")];
    let view = source_view(&SourceInput { files: &files, ..input(Some(&bytes), &rows) });

    assert_eq!(
        table(&view.lines),
        "/inc/b.h:5 | five | 61 | 1 | long_scoreboard 60, wait 1\n\
         /src/a.cu:21 | line 21 | 4 | 1 | math 2, not_selected 2\n\
         /src/a.cu:20 | line 20 | 2 | 1 | selected 2\n\
         /src/a.cu:22 | line 22 | 0 | 2 | "
    );
    assert_eq!(
        table(&view.kernel_lines),
        "/src/a.cu:21 | line 21 | 65 | 2 | long_scoreboard 60, math 2, not_selected 2, wait 1\n\
         /src/a.cu:20 | line 20 | 2 | 1 | selected 2\n\
         /src/a.cu:22 | line 22 | 0 | 2 | "
    );
    assert_eq!((view.totals.samples, view.totals.executed, view.totals.not_issued), (67, Some(32), None));

    let mnemonics: Vec<_> = view.instructions.iter().map(|row| (row.address, row.mnemonic.as_deref(), row.samples)).collect();
    let expected = [(0, "LDG", 2), (0x10, "VIADD", 4), (0x20, "FADD", 61), (0x30, "VIADD", 0), (0x40, "BRA", 0)];
    assert_eq!(mnemonics, expected.map(|(address, mnemonic, samples)| (address, Some(mnemonic), samples)));
    assert_eq!(view.instructions[4].executed, None, "nothing was recorded there");
    assert_eq!(view.instructions[2].share, Some(61.0 / 67.0));

    let hottest: Vec<_> = view.hottest(10).iter().map(|row| row.address).collect();
    assert_eq!(hottest, [0x20, 0x10, 0]);
    assert_eq!(view.hottest(1).len(), 1);
    check_notes(&view, &[Note::NoDisassembly]);
}

#[test]
fn a_stall_names_the_load_behind_it() {
    let (bytes, rows) = (cubin(Shape::default()), rows());
    let disassembly = Disassembly::parse_raw("second", "/*0000*/ LDG.E R4, desc[UR8][R2.64] ;\n/*0020*/ FADD R5, R5, R4 ;\n");
    let view = source_view(&SourceInput { disassembly: Some(&disassembly), ..input(Some(&bytes), &rows) });
    let producer = view.instructions[2].producer.as_ref().unwrap();
    assert_eq!((producer.address, producer.mnemonic.as_deref(), producer.line), (0, Some("LDG"), Some(20)));
    assert_eq!(producer.sass.as_deref(), Some("LDG.E R4, desc[UR8][R2.64]"));
    assert_eq!((producer.unit.describe(), producer.relation), ("load from global memory", Relation::Value));
    assert_eq!(view.instructions[2].sass.as_deref(), Some("FADD R5, R5, R4"));
    assert!(view.instructions.iter().enumerate().all(|(index, row)| index == 2 || row.producer.is_none()));
    check_notes(&view, &[Note::NoSourceText]);
}

#[test]
fn a_short_scoreboard_is_not_put_down_to_a_global_load() {
    let bytes = cubin(Shape::default());
    let rows = [row(BASE + 0x20, &[("short_scoreboard", 9)])];
    let view = source_view(&input(Some(&bytes), &rows));
    assert_eq!(view.instructions[2].producer, None);
}

#[test]
fn rows_of_one_address_add_up_and_order_does_not_matter() {
    let bytes = cubin(Shape::default());
    let mut split = rows();
    split.push(row(BASE + 0x20, &[("long_scoreboard", 3)]));
    let forward = source_view(&input(Some(&bytes), &split));
    split.reverse();
    assert_eq!(forward, source_view(&input(Some(&bytes), &split)));
    assert_eq!(forward.instructions[2].samples, 64);
    assert_eq!(forward.instructions[2].executed, Some(16));
}

#[test]
fn addresses_alone_still_make_a_view() {
    let rows = rows();
    let view = source_view(&input(None, &rows));
    let found: Vec<_> = view.instructions.iter().map(|row| (row.address, row.samples, row.mnemonic.clone())).collect();
    assert_eq!(found, [(0, 2, None), (0x10, 4, None), (0x20, 61, None), (0x30, 0, None)]);
    assert_eq!(table(&view.lines), "? | - | 67 | 4 | long_scoreboard 60, math 2, not_selected 2, selected 2, wait 1");
    check_notes(&view, &[Note::NoCubin]);
}

#[test]
fn what_is_missing_is_said() {
    let (bytes, rows) = (cubin(Shape { lines: false, ..Shape::default() }), rows());
    let view = source_view(&SourceInput { base_address: None, ..input(Some(&bytes), &rows) });
    assert_eq!(view.instructions[2].samples, 61);
    check_notes(&view, &[Note::NoLineInfo, Note::BaseAddressGuessed, Note::NoDisassembly]);

    let view = source_view(&SourceInput { function: "third", ..input(Some(&bytes), &rows) });
    check_notes(&view, &[Note::FunctionNotInCubin]);

    let view = source_view(&SourceInput { sm: Some(SmVersion { major: 6, minor: 1 }), ..input(Some(&bytes), &rows) });
    assert_eq!(view.instructions.len(), rows.len());
    check_notes(&view, &[Note::NoLineInfo, Note::UndecodedChip(SmVersion { major: 6, minor: 1 })]);

    let view = source_view(&input(Some(b"not an ELF file at all"), &rows));
    assert!(matches!(view.notes[..], [Note::BrokenCubin(_)]), "{:?}", view.notes);
    assert_eq!(view.totals.samples, 67);

    let view = source_view(&input(Some(&bytes), &[]));
    assert_eq!((view.totals.samples, view.instructions[0].share), (0, None));
}

#[test]
fn the_load_address_in_the_cubin_serves_where_the_report_has_none() {
    let (bytes, rows) = (cubin(Shape { loaded_at: Some(BASE), ..Shape::default() }), [row(BASE + 0x10, &[("wait", 5)])]);
    let view = source_view(&SourceInput { base_address: None, ..input(Some(&bytes), &rows) });
    assert_eq!(view.instructions[1].samples, 5);
    check_notes(&view, &[Note::NoDisassembly, Note::NoSourceText]);
}

#[test]
fn samples_of_called_functions_are_counted_apart() {
    let bytes = cubin(Shape::default());
    let rows = [row(BASE, &[("wait", 1)]), row(BASE + 0x50, &[("wait", 4)]), row(BASE - 16, &[("wait", 2)])];
    let view = source_view(&input(Some(&bytes), &rows));
    assert_eq!(view.totals.samples, 1);
    check_notes(&view, &[Note::OutsideFunction { addresses: 2, samples: 6 }, Note::NoDisassembly, Note::NoSourceText]);
}

#[test]
fn a_file_is_found_by_the_end_of_its_path_if_that_is_unambiguous() {
    let (bytes, rows) = (cubin(Shape::default()), rows());
    let text_of_header = |files: &[(&str, &str)]| {
        let view = source_view(&SourceInput { files, ..input(Some(&bytes), &rows) });
        view.lines.iter().find(|line| line.file.as_deref() == Some("/inc/b.h")).unwrap().text.clone()
    };
    let text = "1\n2\n3\n4\nfive\n";
    assert_eq!(text_of_header(&[("/usr/lib/../../inc/./b.h", text)]).as_deref(), Some("five"));
    assert_eq!(text_of_header(&[("C:\\x\\inc\\b.h", text), ("/y/b.h", "no")]).as_deref(), Some("five"));
    assert_eq!(text_of_header(&[("/x/b.h", text), ("/y/b.h", text)]), None);
    assert_eq!(text_of_header(&[("/x/c.h", text)]), None);
    assert_eq!(text_of_header(&[("/inc/b.h", "short\n")]), None);
}
