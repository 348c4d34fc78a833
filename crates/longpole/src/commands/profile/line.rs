//! The command line of ncu: what the user did not say himself.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use longpole_bench::key::Key;

use crate::args::ProfileArgs;
use crate::bench::suite::Suite;
use crate::exit::Failure;

/// Which sections are collected. Names of sections are those of Nsight Compute's `sections` folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Depth {
    /// What the table shows.
    Table,
    /// What the page of a kernel shows, but for samples by instruction.
    Page,
    /// Everything.
    Full,
    /// One cheap metric, to count kernels.
    Count,
}

/// Sections of [`Depth::Table`].
const TABLE: [&str; 3] = ["SpeedOfLight", "LaunchStats", "Occupancy"];
/// What [`Depth::Page`] adds to them.
const PAGE: [&str; 4] = ["MemoryWorkloadAnalysis", "MemoryWorkloadAnalysis_Tables", "SchedulerStats", "WarpStateStats"];

impl Depth {
    pub(super) fn of(args: &ProfileArgs) -> Self {
        match (args.table, args.full) {
            (true, _) => Self::Table,
            (_, true) => Self::Full,
            _ => Self::Page,
        }
    }

    fn words(self) -> Vec<OsString> {
        let sections = |names: &[&str]| names.iter().flat_map(|name| ["--section".into(), OsString::from(name)]).collect();
        match self {
            Self::Table => sections(&TABLE),
            Self::Page => sections(&[&TABLE[..], &PAGE[..]].concat()),
            Self::Full => ["--set", "full", "--import-source", "yes"].map(OsString::from).into(),
            // Known at the launch, so that the kernel need not run again for it.
            Self::Count => ["--metrics", "launch__grid_size"].map(OsString::from).into(),
        }
    }

    /// How often each kernel runs, about. Of one H200 with Nsight Compute 2025.3; what `ncu` then says itself is what counts.
    pub(super) const fn passes(self) -> u64 {
        match self {
            Self::Table => 10,
            Self::Page => 33,
            Self::Full => 38,
            Self::Count => 1,
        }
    }
}

/// Whether the user gave one of these options, alone or with `=value`.
fn gave(options: &[OsString], names: &[&str]) -> bool {
    options.iter().any(|option| {
        let option = option.to_string_lossy();
        let name = option.split('=').next().unwrap_or_default();
        names.contains(&name)
    })
}

/// Whether the user chose what is collected.
pub(super) fn chose_sections(args: &ProfileArgs) -> bool {
    gave(&args.ncu_options, &["--set", "--section", "--metrics", "--section-folder"])
}

/// Refuses what would take the report out of our hands.
pub(super) fn check(args: &ProfileArgs) -> Result<(), Failure> {
    if gave(&args.ncu_options, &["-o", "--export", "--import", "-i", "--csv", "--page", "--mode"]) {
        let message =
            "the report is kept by longpole: --results says where; ncu's own -o, --import, --csv, --page and --mode cannot be given";
        return Err(Failure::Usage(message.to_owned()));
    }
    Ok(())
}

/// All words behind `ncu`.
pub(super) fn words(args: &ProfileArgs, suite: &Suite, keys: &[Key], depth: Depth, report: &Path) -> Vec<OsString> {
    let user = &args.ncu_options;
    let mut words: Vec<OsString> = Vec::new();
    let mut add = |names: &[&str], value: &[&str]| {
        if !gave(user, names) {
            words.extend(value.iter().map(OsString::from));
        }
    };
    add(&["--profile-from-start"], &["--profile-from-start", "off"]);
    add(&["--target-processes"], &["--target-processes", "all"]);
    // Standard output is the suite's.
    add(&["--log-file"], &["--log-file", "stderr"]);
    let count = launch_count(args, keys).map(|count| count.to_string());
    if let Some(count) = &count {
        add(&["--launch-count", "-c"], &["--launch-count", count]);
    }
    if depth == Depth::Count || !chose_sections(args) {
        words.extend(depth.words());
    }
    // ncu puts numbers and variables in the place of what follows a per cent sign.
    let report = report.to_string_lossy().replace('%', "%%");
    words.extend(["--force-overwrite".into(), "--export".into(), OsString::from(report)]);
    if depth != Depth::Count {
        words.extend(user.iter().cloned());
    }
    words.extend(suite.words().map(OsStr::to_os_string));
    words.push("profile".into());
    words.extend(keys.iter().map(|key| OsString::from(key.as_str())));
    words.extend(["--launches", "1"].map(OsString::from));
    words
}

/// Kernels that ncu looks at: one of a single operation, and all of several, of a whole step, or where the user wants all.
fn launch_count(args: &ProfileArgs, keys: &[Key]) -> Option<u32> {
    match args.launch_count {
        _ if keys.iter().any(Key::is_whole_model) => None,
        Some(0) => None,
        Some(count) => Some(count),
        None => (keys.len() == 1).then_some(1),
    }
}

/// What would be typed.
pub(super) fn shown(ncu: &str, words: &[OsString]) -> String {
    let quoted = |word: &str| {
        let is_plain = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_./=+,:%@".contains(&byte));
        if is_plain { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
    };
    std::iter::once(quoted(ncu)).chain(words.iter().map(|word| quoted(&word.to_string_lossy()))).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_seen_with_and_without_their_value() {
        let options = ["--set=full", "-c", "3"].map(OsString::from);
        assert!(gave(&options, &["--set"]) && gave(&options, &["--launch-count", "-c"]) && !gave(&options, &["--section"]));
    }

    #[test]
    fn what_is_shown_can_be_typed() {
        assert_eq!(shown("ncu", &["--set".into(), "a b".into(), "it's".into()]), "ncu --set 'a b' 'it'\\''s'");
    }
}
