//! The README shows what the program prints, and names commands that it has.

use crate::harness::{command, print, root};

fn readme() -> String {
    std::fs::read_to_string(root().join("README.md")).unwrap()
}

/// The first code block of a kind after `start`, without its fences.
fn block<'a>(text: &'a str, start: &str, kind: &str) -> &'a str {
    let (_, rest) = text.split_once(start).unwrap_or_else(|| panic!("the README has `{start}`"));
    let (_, rest) = rest.split_once(&format!("```{kind}\n")).unwrap();
    rest.split_once("```").unwrap().0
}

#[test]
fn the_output_block_is_the_output() {
    let readme = readme();
    let line = block(&readme, "## Try it", "sh").trim();
    let path = line.strip_prefix("cargo run --release -- ").unwrap_or_else(|| panic!("{line}"));
    let output = command(&[path]).env("COLUMNS", "100").output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let printed = String::from_utf8(output.stdout).unwrap();
    let shown = block(&readme, line, "text");
    let differing = printed.lines().zip(shown.lines()).find(|(printed, shown)| printed != shown);
    assert!(printed == shown, "first difference (printed, README): {differing:?}");
}

#[test]
fn every_command_of_the_table_runs() {
    let readme = readme();
    let (_, rest) = readme.split_once("| question | command |").unwrap();
    let rows = rest.split("\n\n").next().unwrap().lines().filter(|line| line.contains("`longpole "));
    let mut run = 0;
    for code in rows.flat_map(|row| row.split('`').skip(1).step_by(2)).filter(|code| code.starts_with("longpole ")) {
        let mut words: Vec<&str> = code.split(' ').skip(1).map(|word| if TRACES.contains(&word) { TRACE } else { word }).collect();
        // One command is about the machine.
        assert!(words.contains(&TRACE) || words == ["doctor"], "{code}");
        if let Some(output) = words.iter().position(|word| *word == "-o") {
            // One writes a file, and says so.
            words[output + 1] = "-";
            words.push("--quiet");
        }
        assert!(!print(&words).is_empty(), "{code}");
        run += 1;
    }
    assert!(run >= 8, "{run} commands");
}

/// What the table calls a trace.
const TRACES: [&str; 3] = ["trace.json.gz", "before.json.gz", "after.json.gz"];

/// Has everything that the commands ask of a trace.
const TRACE: &str = "corpus/kineto/qwen3_eager.json.gz";
