//! `docs/trust.md` explains every note there is.

use std::path::Path;

use longpole_ncu::TroubleCode;
use longpole_report::{Grade, Trust};
use longpole_trace::ProblemCode;

#[test]
fn every_note_is_explained_with_its_severity() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/trust.md");
    let page = std::fs::read_to_string(path).expect("the page is there");
    let rows: Vec<Vec<&str>> = page.lines().map(|line| line.trim_matches('|').split('|').map(str::trim).collect()).collect();
    let problems = ProblemCode::ALL.iter().map(|code| {
        let (name, severity, ..) = code.describe();
        (name, severity)
    });
    let troubles = TroubleCode::ALL.iter().map(|&code| {
        let trouble = longpole_ncu::Trouble { code, count: 1, first_offset: None, example: None };
        let note = Trust::of_report(&[trouble]).notes.remove(0);
        (note.code, note.severity)
    });
    for (name, severity) in problems.chain(troubles) {
        let row = rows.iter().find(|row| row[0] == format!("`{name}`")).unwrap_or_else(|| panic!("{name} is not explained"));
        assert_eq!(row.len(), 4, "{name}: {row:?}");
        assert_eq!(row[1], severity.name(), "{name}");
        assert!(row[2].len() > 40 && row[3].len() > 5, "{name}: what it means and what to do");
    }
    let explained = rows.iter().filter(|row| row.len() == 4 && row[0].starts_with('`')).count();
    assert_eq!(explained, ProblemCode::ALL.len() + TroubleCode::ALL.len(), "nothing else is explained");
}

#[test]
fn the_worst_trouble_grades_a_report() {
    let grade = |codes: &[TroubleCode]| {
        let troubles: Vec<_> =
            codes.iter().map(|&code| longpole_ncu::Trouble { code, count: 2, first_offset: Some(8), example: None }).collect();
        Trust::of_report(&troubles).grade
    };
    assert_eq!(grade(&[]), Grade::Good);
    assert_eq!(grade(&[TroubleCode::ClocksNotLocked]), Grade::Good);
    assert_eq!(grade(&[TroubleCode::ClocksNotLocked, TroubleCode::UnknownReportVersion]), Grade::Noted);
    assert_eq!(grade(&[TroubleCode::UnknownReportVersion, TroubleCode::CutReport]), Grade::Partial);
}
