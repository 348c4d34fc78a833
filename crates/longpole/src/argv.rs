//! What the user may leave out: `longpole FILE` is `longpole triage FILE`, and `--by stack 3` is `--by stack=3`.

use std::borrow::Cow;
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::Path;

use clap::CommandFactory as _;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use longpole_report::redact;

use crate::args::Cli;
use crate::commands::is_report;
use crate::exit::{complain, exit};

/// True when the first argument is for clap as it is: a command, a question about the program, or a word that is neither a
/// path nor a flag and so is most likely a misspelled command, which clap answers with the nearest one.
fn is_complete(first: &OsString) -> bool {
    let Some(text) = first.to_str() else { return false };
    if matches!(text, "-h" | "--help" | "-V" | "--version" | "help") {
        return true;
    }
    if Cli::command().get_subcommands().any(|command| command.get_name() == text) {
        return true;
    }
    let is_word = text.chars().all(|c| c.is_ascii_alphanumeric()) && !text.is_empty();
    is_word && !Path::new(first).exists()
}

/// The arguments as clap expects them.
pub(crate) fn normalise(mut args: Vec<OsString>) -> Vec<OsString> {
    if args.get(1).is_some_and(|first| !is_complete(first)) {
        // Of a trace the first page is asked for, of a report of Nsight Compute its summary.
        let is_report = args.iter().skip(1).any(|arg| is_report(arg));
        args.insert(1, if is_report { "ncu" } else { "triage" }.into());
    }
    // What follows is another program's.
    if args.get(1).is_some_and(|first| first == "record") {
        return args;
    }
    // Asked twice for help, one answer will do.
    if args.get(1).is_some_and(|first| first == "help") {
        args.retain(|arg| arg != "--help" && arg != "-h");
    }
    // What follows `--` may be another program's.
    let own = args.iter().position(|arg| arg == "--").unwrap_or(args.len());
    let stack = args[..own].windows(2).position(|pair| pair[0] == "--by" && pair[1] == "stack").map(|at| at + 1);
    if let Some(at) = stack
        && let Some(frames) = args.get(at + 1).and_then(|next| next.to_str())
        && !frames.is_empty()
        && frames.bytes().all(|b| b.is_ascii_digit())
    {
        args[at] = format!("stack={frames}").into();
        args.remove(at + 1);
    }
    args
}

/// Ends the process with clap's answer: help and version are fine, everything else is a usage error.
pub(crate) fn refuse(error: &clap::Error) -> ! {
    let plain = error.render().to_string();
    match redact(&plain) {
        Cow::Borrowed(_) => {
            let printed = error.print().and_then(|()| io::stdout().flush());
            if !error.use_stderr()
                && let Err(failed) = printed
            {
                exit(Err(failed.into()), false);
            }
        }
        Cow::Owned(redacted) => complain(redacted.trim_end()),
    }
    if error.kind() == ErrorKind::InvalidSubcommand
        && let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand)
    {
        complain(&format!("There is no file `{}` here either; a trace is named by its path.", redact(word)));
    }
    std::process::exit(error.exit_code())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normalised(line: &str) -> String {
        let args = std::iter::once("longpole").chain(line.split_whitespace()).map(OsString::from).collect();
        normalise(args).iter().skip(1).map(|arg| arg.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_bare_path_is_triaged() {
        for (line, expected) in [
            ("trace.json", "triage trace.json"),
            ("-", "triage -"),
            ("--json trace.json", "triage --json trace.json"),
            ("./ops", "triage ./ops"),
            ("ops trace.json", "ops trace.json"),
            ("kernals", "kernals"),
            ("--help", "--help"),
            ("help ops", "help ops"),
            ("help --help", "help"),
            ("help ops -h", "help ops"),
            ("", ""),
        ] {
            assert_eq!(normalised(line), expected, "{line}");
        }
    }

    #[test]
    fn stack_takes_its_depth_apart() {
        assert_eq!(normalised("ops t.json --by stack 3 --json"), "ops t.json --by stack=3 --json");
        assert_eq!(normalised("record -- prog --by stack 3"), "record -- prog --by stack 3");
        assert_eq!(normalised("steps --run -- prog --by stack 3"), "steps --run -- prog --by stack 3");
        assert_eq!(normalised("ops --by stack t.json"), "ops --by stack t.json");
        assert_eq!(normalised("ops t.json --by stack"), "ops t.json --by stack");
    }
}
