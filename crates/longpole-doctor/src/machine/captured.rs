//! A machine written down as text: its files, what its programs print, its environment.
//!
//! ```text
//! # a remark
//! @env PATH=/usr/bin:/bin
//! @cwd /home/user/project
//! @program /usr/bin/ncu
//! @link /usr/bin/python3 /usr/bin/python3.12
//! @free /tmp 21474836480
//! @locked /tmp/nsight-compute-lock
//! @file /etc/os-release
//! ID=debian
//! @run nvidia-smi -L
//! GPU 0: NVIDIA H200
//! @exit 9
//! @stderr
//! what went wrong
//! @hangs
//! ```
//!
//! `@file`, `@run` and `@stderr` are followed by their text; `@exit`, `@stderr` and `@hangs` belong to the run before them, and a run
//! without `@exit` went well. A program is known by its name, wherever it lies.

use std::collections::{BTreeMap, BTreeSet};

use super::{MOST_FILE_BYTES, MOST_NAMES, MOST_OUTPUT_BYTES, Machine, Outcome};

/// A machine written down as text.
#[derive(Clone, Debug, Default)]
pub struct Captured {
    variables: BTreeMap<String, String>,
    directory: Option<String>,
    files: BTreeMap<String, String>,
    programs: BTreeSet<String>,
    links: BTreeMap<String, String>,
    free: BTreeMap<String, u64>,
    locked: BTreeSet<String>,
    runs: BTreeMap<String, Run>,
}

/// What a program did.
#[derive(Clone, Debug, Default)]
struct Run {
    failed: bool,
    hangs: bool,
    stdout: String,
    stderr: String,
}

/// Where lines of text go.
enum Open {
    Nothing,
    File(String),
    Output(String),
    Complaint(String),
}

impl Captured {
    /// Reads such a text. An error is one sentence and names the line.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut captured = Self::default();
        let mut open = Open::Nothing;
        let mut last_run = None;
        for (at, line) in text.lines().enumerate() {
            if !line.starts_with('@') {
                captured.append(&open, line).ok_or_else(|| format!("line {}: text belongs to a @file or a @run", at + 1))?;
                continue;
            }
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            let wrong = || format!("line {}: `{word}` is not understood", at + 1);
            let run = |last: &Option<String>| last.clone().ok_or_else(wrong);
            open = Open::Nothing;
            match (word, rest.split_once(' ')) {
                ("@file", None) => {
                    captured.files.insert(rest.to_owned(), String::new());
                    open = Open::File(rest.to_owned());
                }
                ("@run", _) => {
                    captured.runs.insert(rest.to_owned(), Run::default());
                    last_run = Some(rest.to_owned());
                    open = Open::Output(rest.to_owned());
                }
                ("@stderr", _) => open = Open::Complaint(run(&last_run)?),
                ("@exit", _) => captured.runs.entry(run(&last_run)?).or_default().failed = rest != "0",
                ("@hangs", _) => captured.runs.entry(run(&last_run)?).or_default().hangs = true,
                ("@env", _) => {
                    let (name, value) = rest.split_once('=').ok_or_else(wrong)?;
                    captured.variables.insert(name.to_owned(), value.to_owned());
                }
                ("@cwd", _) => captured.directory = Some(rest.to_owned()),
                ("@program", None) => {
                    captured.programs.insert(rest.to_owned());
                }
                ("@link", Some((path, target))) => {
                    captured.links.insert(path.to_owned(), target.to_owned());
                }
                ("@free", Some((path, bytes))) => {
                    captured.free.insert(path.to_owned(), bytes.parse().map_err(|_| wrong())?);
                }
                ("@locked", None) => {
                    captured.locked.insert(rest.to_owned());
                }
                _ => return Err(wrong()),
            }
        }
        Ok(captured)
    }

    /// Adds a line to what is open; `None` when nothing is and the line says something.
    fn append(&mut self, open: &Open, line: &str) -> Option<()> {
        let text = match open {
            Open::Nothing => return (line.starts_with('#') || line.trim().is_empty()).then_some(()),
            Open::File(path) => self.files.get_mut(path)?,
            Open::Output(run) => &mut self.runs.get_mut(run)?.stdout,
            Open::Complaint(run) => &mut self.runs.get_mut(run)?.stderr,
        };
        text.push_str(line);
        text.push('\n');
        Some(())
    }

    /// Everything that has a path.
    fn paths(&self) -> impl Iterator<Item = &String> {
        self.files.keys().chain(&self.programs).chain(self.links.keys()).chain(self.free.keys()).chain(&self.locked)
    }
}

/// The beginning of a text, as a reader with a limit gets it.
fn bounded(text: &str, limit: usize) -> String {
    let mut end = limit.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}

impl Machine for Captured {
    fn read(&self, path: &str) -> Option<String> {
        self.files.get(path).map(|text| bounded(text, MOST_FILE_BYTES))
    }

    fn list(&self, directory: &str) -> Vec<String> {
        let names = self.paths().filter_map(|path| path.strip_prefix(directory)?.strip_prefix('/')?.split('/').next());
        let names: BTreeSet<&str> = names.collect();
        names.into_iter().take(MOST_NAMES).map(str::to_owned).collect()
    }

    fn exists(&self, path: &str) -> bool {
        self.paths().any(|known| known.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
    }

    fn is_program(&self, path: &str) -> bool {
        self.programs.contains(path) || self.links.get(path).is_some_and(|target| self.programs.contains(target))
    }

    fn canonical(&self, path: &str) -> Option<String> {
        self.links.get(path).cloned().or_else(|| self.exists(path).then(|| path.to_owned()))
    }

    fn run(&self, program: &str, args: &[&str]) -> Outcome {
        if !self.is_program(program) {
            return Outcome::Missing;
        }
        let name = program.rsplit('/').next().unwrap_or(program);
        let line = std::iter::once(name).chain(args.iter().copied()).collect::<Vec<_>>().join(" ");
        // The same program of another version lies elsewhere, and is told apart by its path.
        let exact = format!("{program}{}", &line[name.len()..]);
        match self.runs.get(&exact).or_else(|| self.runs.get(&line)) {
            None => Outcome::Ended { success: false, stdout: String::new(), stderr: "not captured\n".to_owned() },
            Some(run) if run.hangs => Outcome::TimedOut,
            Some(run) => Outcome::Ended {
                success: !run.failed,
                stdout: bounded(&run.stdout, MOST_OUTPUT_BYTES),
                stderr: bounded(&run.stderr, MOST_OUTPUT_BYTES),
            },
        }
    }

    fn variable(&self, name: &str) -> Option<String> {
        self.variables.get(name).filter(|value| !value.is_empty()).cloned()
    }

    fn directory(&self) -> Option<String> {
        self.directory.clone()
    }

    fn free_bytes(&self, path: &str) -> Option<u64> {
        let inside = |place: &str| place == "/" || path.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        self.free.iter().filter(|(place, _)| inside(place)).max_by_key(|(place, _)| place.len()).map(|(_, &bytes)| bytes)
    }

    fn is_writable(&self, path: &str) -> Option<bool> {
        Some(!self.locked.contains(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# remark\n\n@env PATH=/opt/x/bin:/usr/bin\n@env EMPTY=\n@cwd /srv\n@program /usr/bin/tool\n@program /opt/tool\n@link /usr/bin/t /usr/bin/tool\n@free / 5\n@free /tmp 7\n@locked /tmp/lock\n@file /etc/a\none\n# two\n@run tool -v\nfine\n@run /opt/tool -v\nother\n@run tool -x\npart\n@exit 3\n@stderr\nbad\n@run tool -z\n@hangs\n";

    #[test]
    fn a_machine_is_read_back() {
        let machine = Captured::parse(TEXT).unwrap();
        assert_eq!(machine.read("/etc/a").as_deref(), Some("one\n# two\n"));
        assert_eq!((machine.variable("EMPTY"), machine.directory().as_deref()), (None, Some("/srv")));
        assert_eq!(machine.on_path("tool").as_deref(), Some("/usr/bin/tool"));
        assert_eq!(machine.canonical("/usr/bin/t").as_deref(), Some("/usr/bin/tool"));
        assert_eq!(machine.list("/usr/bin"), ["t", "tool"]);
        assert!(machine.exists("/etc") && machine.exists("/etc/a") && !machine.exists("/et") && !machine.exists("/tmp/x"));
        assert_eq!((machine.free_bytes("/tmp/x"), machine.free_bytes("/tmpx")), (Some(7), Some(5)));
        assert_eq!((machine.is_writable("/tmp/lock"), machine.is_writable("/tmp")), (Some(false), Some(true)));
        assert_eq!(machine.run("/usr/bin/tool", &["-v"]).output(), Some("fine\n"));
        assert_eq!(machine.run("/opt/tool", &["-v"]).output(), Some("other\n"));
        assert_eq!(machine.run("/usr/bin/tool", &["-x"]).said(), "part\n\nbad\n");
        assert_eq!(machine.run("/usr/bin/tool", &["-z"]), Outcome::TimedOut);
        assert_eq!(machine.run("/usr/bin/tool", &["-?"]).output(), None);
        assert_eq!(machine.run("/bin/none", &[]), Outcome::Missing);
    }

    #[test]
    fn what_is_no_machine_is_said() {
        for (text, part) in [
            ("stray", "line 1: text belongs to"),
            ("\n@what", "line 2: `@what`"),
            ("@env X", "@env"),
            ("@free / many", "@free"),
            ("@link /a", "@link"),
            ("@exit 1", "@exit"),
            ("@file", ""),
        ] {
            let result = Captured::parse(text);
            assert!(part.is_empty() || result.as_ref().is_err_and(|said| said.contains(part)), "{text}: {result:?}");
        }
    }
}
