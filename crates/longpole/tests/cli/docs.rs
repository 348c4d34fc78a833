//! The documentation shows real output: every `console` block of `README.md` and `docs/*.md` is run and compared.
//!
//! A block holds commands, `$ longpole ARGUMENTS`, each followed by what it prints, or `$ export COLUMNS=N`, which holds for the rest of the page and has to come first. `| head -N`, `| tail -n +N` and `| tail -N` may follow a command, and single quotes keep an argument together; that is all the shell there
//! is. `LONGPOLE_UPDATE_DOCS=1 cargo test -p longpole --test cli docs` writes the output into the pages; read the change before you commit it.

use std::fs;
use std::path::PathBuf;

use crate::harness::{command, is_quiet, root};

/// Splits at spaces outside single quotes.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for c in line.chars() {
        match c {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            _ => words.last_mut().expect("never empty").push(c),
        }
    }
    assert!(!quoted, "a quote is not closed: {line}");
    words.retain(|word| !word.is_empty());
    words
}

/// Runs a command line of a page and returns the lines it prints.
fn real_output(line: &str, columns: &str) -> Vec<String> {
    let words = words(line);
    let mut stages = words.split(|word| word == "|");
    let (program, args) = stages.next().and_then(|stage| stage.split_first()).expect("a command");
    assert_eq!(program, "longpole", "only longpole is run: {line}");
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let run = command(&args).env("COLUMNS", columns).output().expect("the program starts");
    let said = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success() && is_quiet(&said), "{line}: {said}");
    let text = String::from_utf8(run.stdout).expect("output is UTF-8");
    let mut lines: Vec<String> = text.lines().map(|line| line.trim_end().to_owned()).collect();
    for stage in stages {
        match stage.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            ["head", count] => lines.truncate(count.trim_start_matches('-').parse().expect("head -N")),
            ["tail", "-n", from] => {
                let from: usize = from.strip_prefix('+').and_then(|from| from.parse().ok()).expect("tail -n +N");
                lines.drain(..(from - 1).min(lines.len()));
            }
            ["tail", last] => {
                let last: usize = last.strip_prefix('-').and_then(|last| last.parse().ok()).expect("tail -N");
                lines.drain(..lines.len().saturating_sub(last));
            }
            _ => panic!("neither head -N nor tail -n +N nor tail -N: {line}"),
        }
    }
    assert!(!lines.is_empty(), "nothing is left to show: {line}");
    lines
}

/// The page as it should be, and how many commands it shows.
fn with_real_output(page: &str) -> (String, usize) {
    let (mut text, mut commands, mut inside) = (String::new(), 0, false);
    // What a pipe gets without the variable.
    let mut columns = "120";
    for line in page.lines() {
        let fence = line.starts_with("```");
        let shown = line.strip_prefix("$ ").filter(|_| inside);
        if !inside || fence || shown.is_some() {
            text.push_str(line);
            text.push('\n');
        }
        if let Some(said) = shown.and_then(|shown| shown.strip_prefix("export COLUMNS=")) {
            assert_eq!(commands, 0, "the width is said before anything is shown");
            columns = said;
        } else if let Some(shown) = shown {
            commands += 1;
            for line in real_output(shown, columns) {
                text.push_str(&line);
                text.push('\n');
            }
        }
        if fence {
            inside = line == "```console";
        }
    }
    (text, commands)
}

#[test]
fn console_blocks_of_the_pages_are_real() {
    let update = std::env::var_os("LONGPOLE_UPDATE_DOCS").is_some();
    let files = fs::read_dir(root().join("docs")).expect("docs/").map(|entry| entry.expect("an entry").path());
    let mut pages: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect();
    pages.sort();
    pages.push(root().join("README.md"));
    let mut commands = 0;
    for path in pages {
        let page = fs::read_to_string(&path).expect("a page is UTF-8");
        let (real, shown) = with_real_output(&page);
        commands += shown;
        if update && real != page {
            fs::write(&path, &real).expect("a page can be written");
        } else {
            let path = path.display();
            for (number, (said, real)) in page.lines().zip(real.lines()).enumerate() {
                assert_eq!(said, real, "{path}:{}: LONGPOLE_UPDATE_DOCS=1 writes what the program prints", number + 1);
            }
            assert_eq!(page.lines().count(), real.lines().count(), "{path}: output is cut short or goes on");
        }
    }
    assert!(commands > 10, "the pages show only {commands} commands");
}

#[test]
fn a_page_with_wrong_output_is_put_right() {
    let wrong = "text\n```console\n$ longpole families 'corpus/kineto/bad.json.gz' --limit 1 | head -1\nlies\n```\n    lies outside stay\n";
    let (real, commands) = with_real_output(wrong);
    assert_eq!(commands, 1);
    assert_eq!(
        real,
        "text\n```console\n$ longpole families 'corpus/kineto/bad.json.gz' --limit 1 | head -1\ntrust   good: no data was lost\n```\n    lies outside stay\n"
    );
}
