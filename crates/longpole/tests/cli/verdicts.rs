//! `docs/corpus-verdicts.md` says what the program says of every trace of the corpus.
//!
//! `LONGPOLE_UPDATE_DOCS=1 cargo test -p longpole --test cli verdicts` writes the tables; read the change before you commit it. Published
//! traces of other people are no part of the repository: their lines are compared where `LONGPOLE_SHARED` (or `../shared`) has them.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::harness::{CORPUS, root, run, trace};
use crate::schema::validate;

const OURS: &str = "<!-- ours -->";
const OURS_END: &str = "<!-- ours end -->";
const PUBLIC: &str = "<!-- public -->";
const END: &str = "<!-- end -->";
const HEAD: &str = "| trace | next experiment | verdict | suspects (% of wall) |\n| --- | --- | --- | --- |\n";

/// Text for a table cell: names of a trace may hold anything.
fn cell(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('|', "\\|").replace('*', "\\*").replace('`', "\\`")
}

/// The line of one trace.
fn line(name: &str, path: &str) -> String {
    let run = run(&[path, "--json", "--quiet"]);
    assert_eq!(run.code, Some(0), "{path}: {}", run.stderr);
    let page = validate(&run.stdout);
    let report = &page["report"];
    let text = report["next_experiment"].as_str().expect("text");
    let suspects: Vec<String> = page["smells"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|smell| {
            let code = smell["code"].as_str().expect("text");
            let share = smell["share_fraction"].as_f64().map(|share| share * 100.0);
            share.map_or_else(|| code.to_owned(), |share| if share < 0.1 { format!("{code} <0.1") } else { format!("{code} {share:.1}") })
        })
        .collect();
    let code = report["next_experiment_code"].as_str().expect("text");
    format!("| {} | {code} | {} | {} |\n", cell(name), cell(text), cell(&suspects.join(", ")))
}

/// The part of a page between two marks.
fn between<'p>(page: &'p str, from: &str, to: &str) -> &'p str {
    let (_, rest) = page.split_once(from).unwrap_or_else(|| panic!("the page has {from}"));
    rest.split_once(to).unwrap_or_else(|| panic!("the page has {to} after {from}")).0
}

fn public_traces() -> Option<Vec<PathBuf>> {
    let shared = std::env::var_os("LONGPOLE_SHARED").map_or_else(|| root().join("../shared"), PathBuf::from);
    let mut paths: Vec<PathBuf> =
        fs::read_dir(shared.join("corpus/kineto/public")).ok()?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    Some(paths)
}

fn public_name(path: &Path) -> String {
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    [".gz", ".tar", ".json", ".pt.trace"].iter().fold(name, |name, end| name.strip_suffix(end).unwrap_or(&name).to_owned())
}

/// Compares a table with the page, or writes it.
fn check(from: &str, to: &str, table: &str) {
    let path = root().join("docs/corpus-verdicts.md");
    let page = fs::read_to_string(&path).expect("a page is UTF-8");
    let said = between(&page, from, to);
    let real = format!("\n{HEAD}{table}\n");
    if std::env::var_os("LONGPOLE_UPDATE_DOCS").is_some() {
        let written = page.replacen(&format!("{from}{said}{to}"), &format!("{from}{real}{to}"), 1);
        fs::write(&path, written).expect("a page can be written");
        return;
    }
    for (said, real) in said.lines().zip(real.lines()) {
        assert_eq!(said, real, "LONGPOLE_UPDATE_DOCS=1 writes what the program says");
    }
    assert_eq!(said.lines().count(), real.lines().count(), "a trace is missing or too many");
}

#[test]
fn every_verdict_is_what_the_program_says() {
    let ours: String = CORPUS.iter().map(|name| line(name, &trace(name))).collect();
    check(OURS, OURS_END, &ours);
    let Some(paths) = public_traces() else {
        // Straight to the stream: what a passing test prints is captured otherwise.
        let _ = writeln!(std::io::stderr(), "skipped: there are no published traces here (LONGPOLE_SHARED names their folder)");
        return;
    };
    let public: String = paths.iter().map(|path| line(&public_name(path), &path.to_string_lossy())).collect();
    check(PUBLIC, END, &public);
}
