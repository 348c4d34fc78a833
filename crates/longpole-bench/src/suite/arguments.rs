//! The command line of a suite.
//!
//! Parsed by hand: it is seven options that `longpole` writes and people rarely do, and a parser library would be the largest dependency of
//! every suite.

use crate::key::{KeyError, Selector};
use crate::measure::Settings;
use crate::protocol::L2;

/// What a suite answers to, for people.
pub const USAGE: &str = "\
Usage:
  list [KEY...] [--json]                 print the benchmarks
  run KEY... [--json-lines] [options]    measure, one JSON line a sample
  profile KEY... [--launches N]          run between cuProfilerStart and cuProfilerStop
  peaks [--json-lines]                   measure what the device reaches

KEY is a key, parts of one in a row (`Qwen3-4B/ops`, `gemv`), or a regular expression.

Options:
  --model NAME         only this model
  --max-seconds S      time for a benchmark, warm-up and samples [3]
  --relative-error F   stop when the median is known so well [0.001]
  --samples N          take N samples instead
  --l2 cold|warm       what the second-level cache holds [cold]
  --launches N         runs to profile [1]
";

/// What is asked of a suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Which benchmarks there are.
    List,
    /// Their times.
    Run,
    /// Runs for a profiler.
    Profile,
    /// What the device reaches.
    Peaks,
}

/// A parsed command line.
#[derive(Clone, Debug)]
pub struct Request {
    /// What is asked.
    pub command: Command,
    /// Which benchmarks; all if empty.
    pub selectors: Vec<Selector>,
    /// Only those of this model.
    pub model: Option<String>,
    /// How to measure.
    pub settings: Settings,
    /// Runs to profile.
    pub launches: u32,
    /// Whether `--json` was given to `list`; other commands print JSON lines always.
    pub json: bool,
}

/// Why a command line makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UsageError {
    /// `--help` was given.
    #[error("help was asked for")]
    Help,
    /// There is none.
    #[error("say `list`, `run`, `profile` or `peaks`")]
    NoCommand,
    /// It is none of them.
    #[error("`{0}` is no command")]
    Command(String),
    /// An option that does not exist here.
    #[error("`{0}` is no option of this command")]
    Option(String),
    /// An option without its value, or with an unusable one.
    #[error("{0} needs {1}")]
    Value(&'static str, &'static str),
    /// `run` or `profile` of everything by accident.
    #[error("say which benchmarks: a KEY, or --model NAME, or `.*` for all of them")]
    NoKey,
    /// A selector that is none.
    #[error(transparent)]
    Key(#[from] KeyError),
}

/// The longest time for one benchmark in seconds: a day.
const MAX_SECONDS: f64 = 86_400.0;

/// Samples of one benchmark, or launches for a profiler, at most.
const MAX_COUNT: u32 = 1_000_000;

impl Request {
    /// Reads the arguments after the program's name.
    pub fn parse(arguments: &[String]) -> Result<Self, UsageError> {
        if arguments.iter().any(|argument| argument == "--help" || argument == "-h") {
            return Err(UsageError::Help);
        }
        let command = match arguments.first().map(String::as_str) {
            Some("list") => Command::List,
            Some("run") => Command::Run,
            Some("profile") => Command::Profile,
            Some("peaks") => Command::Peaks,
            Some(other) => return Err(UsageError::Command(other.to_owned())),
            None => return Err(UsageError::NoCommand),
        };
        let mut request = Self { command, selectors: Vec::new(), model: None, settings: Settings::default(), launches: 1, json: false };
        let mut rest = arguments[1..].iter();
        while let Some(argument) = rest.next() {
            let Some(option) = argument.strip_prefix("--") else {
                if command == Command::Peaks {
                    return Err(UsageError::Option(argument.clone()));
                }
                request.selectors.push(Selector::parse(argument)?);
                continue;
            };
            let (name, inline) = match option.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (option, None),
            };
            let mut value = || inline.or_else(|| rest.next().map(String::as_str)).unwrap_or_default();
            let measures = command == Command::Run;
            match name {
                "json" if command == Command::List && inline.is_none() => request.json = true,
                "json-lines" if command != Command::List && inline.is_none() => {}
                "model" if command != Command::Peaks => request.model = Some(value().to_owned()),
                "max-seconds" if measures => {
                    let seconds = value().parse::<f64>().ok().filter(|seconds| *seconds > 0.0 && *seconds <= MAX_SECONDS);
                    let seconds = seconds.ok_or(UsageError::Value("--max-seconds", "a number of seconds above 0, a day at most"))?;
                    request.settings.max_ns = (seconds * 1e9) as u64;
                }
                "relative-error" if measures => {
                    let share = value().parse::<f64>().ok().filter(|share| *share > 0.0 && *share < 1.0);
                    request.settings.relative_error = share.ok_or(UsageError::Value("--relative-error", "a share between 0 and 1"))?;
                }
                "samples" if measures => {
                    request.settings.samples = Some(count(value()).ok_or(UsageError::Value("--samples", "a number from 1 to a million"))?);
                }
                "launches" if command == Command::Profile => {
                    request.launches = count(value()).ok_or(UsageError::Value("--launches", "a number from 1 to a million"))?;
                }
                "l2" if measures || command == Command::Profile => {
                    request.settings.l2 = match value() {
                        "cold" => L2::Cold,
                        "warm" => L2::Warm,
                        _ => return Err(UsageError::Value("--l2", "`cold` or `warm`")),
                    };
                }
                _ => return Err(UsageError::Option(argument.clone())),
            }
        }
        let needs_key = matches!(command, Command::Run | Command::Profile);
        if needs_key && request.selectors.is_empty() && request.model.is_none() {
            return Err(UsageError::NoKey);
        }
        Ok(request)
    }
}

fn count(text: &str) -> Option<u32> {
    text.parse().ok().filter(|count| (1..=MAX_COUNT).contains(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Request, UsageError> {
        Request::parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn what_longpole_asks_is_understood() {
        let request = parse("run m/ops/a --json-lines --max-seconds 0.5 --relative-error=0.01 --l2 warm --samples 7").unwrap();
        let settings = Settings { max_ns: 500_000_000, relative_error: 0.01, l2: L2::Warm, samples: Some(7) };
        assert_eq!((request.command, request.settings), (Command::Run, settings));
        assert_eq!(request.selectors[0].as_str(), "m/ops/a");
        assert!(parse("list --json").unwrap().json);
        assert_eq!(parse("profile m --launches 3").unwrap().launches, 3);
        assert_eq!(parse("run --model m").unwrap().model.as_deref(), Some("m"));
        assert_eq!(parse("peaks --json-lines").unwrap().command, Command::Peaks);
    }

    #[test]
    fn nonsense_is_answered() {
        let said = |line: &str| parse(line).unwrap_err().to_string();
        assert_eq!(said(""), "say `list`, `run`, `profile` or `peaks`");
        assert_eq!(said("measure"), "`measure` is no command");
        assert_eq!(said("run m --launches 3"), "`--launches` is no option of this command");
        assert_eq!(said("list --samples 3"), "`--samples` is no option of this command");
        assert!(said("run").starts_with("say which benchmarks"));
        assert_eq!(said("run m --l2"), "--l2 needs `cold` or `warm`");
        assert!(said("run a(").contains("regular expression"));
        for bad in ["--samples 0", "--samples x", "--max-seconds -1", "--max-seconds nan", "--max-seconds inf", "--relative-error 1"] {
            assert!(said(&format!("run m {bad}")).contains("needs"), "{bad}");
        }
        assert_eq!(parse("run m --help").unwrap_err(), UsageError::Help);
        assert_eq!(said("peaks m"), "`m` is no option of this command");
    }
}
