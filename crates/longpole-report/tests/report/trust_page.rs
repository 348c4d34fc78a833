//! `docs/trust.md` explains every note there is.

use std::path::Path;

use longpole_trace::ProblemCode;

#[test]
fn every_note_is_explained_with_its_severity() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/trust.md");
    let page = std::fs::read_to_string(path).expect("the page is there");
    let rows: Vec<Vec<&str>> = page.lines().map(|line| line.trim_matches('|').split('|').map(str::trim).collect()).collect();
    for code in ProblemCode::ALL {
        let (name, severity, ..) = code.describe();
        let row = rows.iter().find(|row| row[0] == format!("`{name}`")).unwrap_or_else(|| panic!("{name} is not explained"));
        assert_eq!(row.len(), 4, "{name}: {row:?}");
        assert_eq!(row[1], severity.name(), "{name}");
        assert!(row[2].len() > 40 && row[3].len() > 5, "{name}: what it means and what to do");
    }
    let explained = rows.iter().filter(|row| row.len() == 4 && row[0].starts_with('`')).count();
    assert_eq!(explained, ProblemCode::ALL.len(), "nothing else is explained");
}
