//! Flags of `export`.

use std::ffi::{OsStr, OsString};

use clap::{Args, ValueEnum};

use super::Common;
use crate::exit::Failure;

/// Flags of `export`.
#[derive(Args, Debug)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    /// What to write; taken from the ending of OUT where that says it
    #[arg(long, value_name = "FORMAT", help_heading = "Output")]
    pub(crate) to: Option<ExportFormat>,
    /// The file or folder to write, or - for standard output (the default of collapsed stacks and single tables)
    #[arg(long, short, value_name = "OUT", help_heading = "Output")]
    pub(crate) output: Option<OsString>,
    /// Which time the stacks have [default: host; speedscope: all three]
    #[arg(long, value_name = "TIME", help_heading = "Output")]
    pub(crate) weight: Option<Weight>,
    /// One table, as one CSV file (the list is below)
    #[arg(long, value_name = "TABLE", help_heading = "Output")]
    pub(crate) table: Option<String>,
}

/// A format that can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    Perfetto,
    Chrome,
    Speedscope,
    Collapsed,
    Csv,
    Parquet,
}

/// What the times of stacks are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Weight {
    Host,
    Device,
    Idle,
}

/// Endings that say what a file is. `.json` alone does not: two formats are JSON.
const ENDINGS: [(&str, ExportFormat); 11] = [
    (".pftrace", ExportFormat::Perfetto),
    (".perfetto-trace", ExportFormat::Perfetto),
    (".speedscope.json", ExportFormat::Speedscope),
    (".chrome.json", ExportFormat::Chrome),
    (".trace.json", ExportFormat::Chrome),
    (".folded", ExportFormat::Collapsed),
    (".collapsed", ExportFormat::Collapsed),
    (".csv", ExportFormat::Csv),
    ("/csv", ExportFormat::Csv),
    (".parquet", ExportFormat::Parquet),
    ("/parquet", ExportFormat::Parquet),
];

impl ExportArgs {
    /// The format that is asked for, or that the name of the file says.
    pub(crate) fn format(&self) -> Result<ExportFormat, Failure> {
        let guessed = self.output.as_deref().and_then(guess);
        let format = match (self.to, guessed, &self.table) {
            (Some(format), ..) | (None, Some(format), _) => format,
            (None, None, Some(_)) => ExportFormat::Csv,
            (None, None, None) => {
                let formats = "--to perfetto, chrome, speedscope, collapsed, csv or parquet";
                return Err(Failure::Usage(match &self.output {
                    Some(output) if output != "-" => {
                        format!("`{}` does not say which format it is to be: give {formats}", output.display())
                    }
                    _ => format!("say which format: {formats}"),
                }));
            }
        };
        let of = |takes: bool, flag: &str, which: &str| {
            if takes { Ok(()) } else { Err(Failure::Usage(format!("{flag} is for {which}"))) }
        };
        of(self.table.is_none() || format == ExportFormat::Csv, "--table", "--to csv")?;
        let has_stacks = matches!(format, ExportFormat::Speedscope | ExportFormat::Collapsed);
        of(self.weight.is_none() || has_stacks, "--weight", "--to collapsed and --to speedscope")?;
        Ok(format)
    }
}

fn guess(output: &OsStr) -> Option<ExportFormat> {
    let name = format!("/{}", output.to_string_lossy().to_ascii_lowercase());
    let name = name.trim_end_matches('/');
    let name = [".gz", ".zst"].iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(name);
    ENDINGS.iter().find(|(ending, _)| name.ends_with(ending)).map(|&(_, format)| format)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_its_format_where_it_can() {
        for (name, format) in [
            ("a.pftrace", Some(ExportFormat::Perfetto)),
            ("a.perfetto-trace.gz", Some(ExportFormat::Perfetto)),
            ("dir/A.SpeedScope.JSON", Some(ExportFormat::Speedscope)),
            ("a.folded", Some(ExportFormat::Collapsed)),
            ("ops.csv", Some(ExportFormat::Csv)),
            ("out/parquet/", Some(ExportFormat::Parquet)),
            ("parquet", Some(ExportFormat::Parquet)),
            ("run.parquet", Some(ExportFormat::Parquet)),
            ("a.json", None),
            ("a.json.gz", None),
            ("-", None),
            ("notparquet", None),
        ] {
            assert_eq!(guess(OsStr::new(name)), format, "{name}");
        }
    }
}
