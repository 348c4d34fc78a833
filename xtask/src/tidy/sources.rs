//! Rules on the text of files.

use std::ffi::OsStr;
use std::path::Path;

/// A file longer than this is split.
const MAX_LINES: usize = 800;

/// Recorded data, which is as long as it is.
const DATA: [&str; 9] = ["snap", "json", "csv", "lock", "svg", "md", "txt", "gz", "zst"];

/// Crates whose job is to print, and the test program whose failures have to be seen.
const PRINTERS: [&str; 3] = ["crates/longpole/", "crates/longpole-mock-cupti/", "xtask/"];

/// Integration tests print when they skip something, so that nobody takes a skip for a pass.
const TESTS: &str = "/tests/";

const PRINT_MACROS: [&str; 5] = ["println!", "eprintln!", "print!", "eprint!", "dbg!"];

/// The rules' own sources, which have to name what they look for.
const OWN: &str = "xtask/src/tidy/";

/// Spelled in halves, so that a search of the tree for a mark finds only real ones.
const MARKS: [[&str; 2]; 6] = [["TO", "DO"], ["FIX", "ME"], ["X", "XX"], ["to", "do!("], ["unimple", "mented!("], ["#[ig", "nore"]];

pub(super) fn check(path: &str, text: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    let kind = Path::new(path).extension().and_then(OsStr::to_str).unwrap_or_default();
    let data = DATA.contains(&kind) || path.starts_with("corpus/");
    let lines = text.lines().count();
    if !data && lines > MAX_LINES {
        complaints.push(format!("{path}: {lines} lines, more than {MAX_LINES}"));
    }
    if path.starts_with("corpus/") || kind == "lock" || path.starts_with(OWN) {
        return complaints;
    }
    let rust = kind == "rs";
    for (number, line) in text.lines().enumerate() {
        let mut complain = |what: String| complaints.push(format!("{path}:{}: {what}", number + 1));
        if rust
            && !PRINTERS.iter().any(|printer| path.starts_with(printer))
            && !path.contains(TESTS)
            && let Some(found) = PRINT_MACROS.iter().find(|found| calls(line, found))
        {
            complain(format!("{found} outside the crates that print"));
        }
        if !data || kind == "md" {
            for [first, second] in MARKS {
                if word(line, &format!("{first}{second}")) {
                    complain(format!("{first}{second} is left"));
                }
            }
        }
        if let Some(found) = machine_path(line) {
            complain(format!("{found} is a path of one machine"));
        }
    }
    complaints
}

/// Whether the line calls the macro, outside a line comment and not as the tail of a longer name.
fn calls(line: &str, name: &str) -> bool {
    let code = line.split("//").next().unwrap_or(line);
    word(code, name)
}

/// Whether `needle` occurs with no identifier character right before it, or after it when it ends in one.
pub(super) fn word(line: &str, needle: &str) -> bool {
    let identifier = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(needle).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + needle.len()..].chars().next();
        !(before.is_some_and(identifier) || needle.ends_with(identifier) && after.is_some_and(identifier))
    })
}

/// An absolute path that exists on somebody's machine only: a home directory.
fn machine_path(line: &str) -> Option<String> {
    let inside = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '~' | '$' | '}' | ')' | '*' | '/');
    for root in ["/home/", "/root/", "/Users/"] {
        for (at, _) in line.match_indices(root) {
            let before = line[..at].chars().next_back();
            let rest: String =
                line[at + root.len()..].chars().take_while(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.')).collect();
            // `user` stands for whoever recorded a public trace.
            if !before.is_some_and(inside) && rest != "user" && (!rest.is_empty() || root == "/root/") {
                return Some(format!("{root}{rest}"));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> String {
        check(path, text).join("; ")
    }

    #[test]
    fn print_macros_are_for_the_program() {
        assert!(found("crates/longpole-trace/src/lib.rs", "fn f() { println!(\"x\"); }").contains("println!"));
        assert!(found("crates/longpole-report/src/t.rs", "    eprint!(\"x\");").contains("eprint!"));
        assert_eq!(found("crates/longpole-report/tests/t.rs", "eprintln!(\"skipped\");"), "");
        assert_eq!(found("crates/longpole/src/main.rs", "println!(\"x\");"), "");
        assert_eq!(found("xtask/src/main.rs", "println!(\"x\");"), "");
        assert_eq!(found("crates/longpole-trace/src/lib.rs", "// println! is for the binary\nmy_print!(1);"), "");
    }

    #[test]
    fn long_files_are_found() {
        let long = "// line\n".repeat(801);
        assert_eq!(found("crates/a/src/lib.rs", &long), "crates/a/src/lib.rs: 801 lines, more than 800");
        assert_eq!(found("crates/a/src/lib.rs", &long[..long.len() - 8]), "");
        assert_eq!(found("crates/a/tests/snapshots/x.snap", &long), "");
        assert_eq!(found("corpus/kineto/README.md", &long), "");
    }

    #[test]
    fn leftovers_are_found() {
        for [first, second] in MARKS {
            let text = format!("    {first}{second}");
            assert!(found("crates/a/src/lib.rs", &text).contains("is left"), "{text}");
            assert!(found("docs/x.md", &text).contains("is left"), "{text}");
        }
        assert_eq!(found("crates/a/src/lib.rs", "let todos = \"done\";"), "");
    }

    #[test]
    fn machine_paths_are_found() {
        for bad in ["/home/alice/x", "see /root/.cargo", "path=/Users/bob/y", "(/root/)"] {
            assert!(found("README.md", bad).contains("a path of one machine"), "{bad}");
        }
        for good in ["/home/user/app.py", "src/home/a.rs", "https://example.com/home/x", "$HOME/x", "a/root/b", "/home/"] {
            assert_eq!(found("README.md", good), "", "{good}");
        }
    }

    #[test]
    fn recorded_data_is_not_read_for_marks() {
        let [first, second] = MARKS[0];
        assert_eq!(found("crates/a/tests/x.snap", &format!("{first}{second}")), "");
        assert!(found("crates/a/tests/x.snap", "/home/alice/x").contains("machine"));
    }
}
