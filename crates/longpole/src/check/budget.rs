//! The budget file: TOML, described in `docs/check.md`. What is wrong with it is said with the line where it is.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::ops::Range;

use longpole_analysis::{DiffKind, ScopeSpec, StepFigure};
use longpole_report::{Amount, CheckBound, CheckUnit};
use serde::Deserialize;
use toml::Spanned;

use super::documents::Name;
use super::figure;
use super::path::{Path, Pattern};
use crate::exit::Failure;
use crate::time_window;

/// Larger files are no budgets.
const MOST_BYTES: u64 = 1 << 20;
/// Limits and regressions of a budget.
const MOST_LIMITS: usize = 1_000;
/// The version that is written and read.
const VERSION: i64 = 1;

/// A budget that was read.
#[derive(Debug)]
pub(crate) struct Budget {
    /// What part of the trace it is about.
    pub(crate) scope: ScopeSpec,
    /// Limits of single figures.
    pub(crate) limits: Vec<Limit>,
    /// Limits against a baseline.
    pub(crate) regressions: Vec<Regression>,
}

/// A limit of one figure.
#[derive(Debug)]
pub(crate) struct Limit {
    pub(crate) name: String,
    pub(crate) line: usize,
    pub(crate) figure: Figure,
    /// Each bound holds by itself.
    pub(crate) bounds: Vec<(CheckBound, Amount)>,
    pub(crate) missing_is_ok: bool,
}

impl Limit {
    /// The documents that its figure is of.
    pub(crate) fn documents(&self) -> impl Iterator<Item = Name> {
        let Figure { path, of, per } = &self.figure;
        let steps = per.is_some().then_some(Name::Steps);
        [Some(path.document), of.as_ref().map(|path| path.document), steps].into_iter().flatten()
    }
}

/// Where a figure comes from.
#[derive(Debug)]
pub(crate) struct Figure {
    pub(crate) path: Path,
    /// It is counted as a share of this one.
    pub(crate) of: Option<Path>,
    /// It is divided by the number of steps of this group, or of the one with most steps.
    pub(crate) per: Option<Per>,
}

/// What a figure is divided by.
#[derive(Debug)]
pub(crate) enum Per {
    /// Steps of the group with most.
    Step,
    /// Steps of the groups that are called so.
    StepOf(Pattern, String),
}

/// A limit against a baseline.
#[derive(Debug)]
pub(crate) struct Regression {
    pub(crate) name: String,
    pub(crate) line: usize,
    /// Relative to the folder of the budget.
    pub(crate) baseline: String,
    pub(crate) what: Compared,
    pub(crate) bound: CheckBound,
    /// A share, not below zero.
    pub(crate) limit: Amount,
    pub(crate) ambiguous_is_ok: bool,
    pub(crate) missing_is_ok: bool,
}

/// What is compared with a baseline.
#[derive(Debug)]
pub(crate) enum Compared {
    /// A single figure of each.
    Figure(Figure),
    /// Rows of `longpole diff`, which have a spread.
    Rows(Rows),
}

/// Rows of `longpole diff`.
#[derive(Debug)]
pub(crate) struct Rows {
    /// Which pairs of step groups: all that are called so, or the one with most time.
    pub(crate) step: Option<Pattern>,
    pub(crate) kind: DiffKind,
    /// Which rows of that kind; of steps, none is the one that says whether the step got faster.
    pub(crate) key: Option<Pattern>,
    /// The selection as a path of the document of `longpole diff`.
    pub(crate) path: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BudgetToml {
    version: Spanned<i64>,
    #[serde(default)]
    scope: Option<ScopeToml>,
    #[serde(default)]
    limit: Vec<Spanned<LimitToml>>,
    #[serde(default)]
    regression: Vec<Spanned<RegressionToml>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScopeToml {
    range: Option<String>,
    step: Option<u64>,
    time: Option<Spanned<String>>,
    device: Option<i64>,
    rank: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LimitToml {
    name: Option<String>,
    path: Spanned<String>,
    of: Option<Spanned<String>>,
    per: Option<Spanned<String>>,
    step: Option<String>,
    min: Option<Spanned<Number>>,
    max: Option<Spanned<Number>>,
    missing: Option<OkOrFail>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RegressionToml {
    name: Option<String>,
    baseline: Spanned<String>,
    path: Option<Spanned<String>>,
    of: Option<Spanned<String>>,
    per: Option<Spanned<String>>,
    step: Option<String>,
    figure: Option<FigureToml>,
    role: Option<String>,
    family: Option<String>,
    kernel: Option<String>,
    operator: Option<String>,
    idle_cause: Option<String>,
    range: Option<String>,
    max_slower: Option<Spanned<Number>>,
    max_drop: Option<Spanned<Number>>,
    ambiguous: Option<OkOrFail>,
    missing: Option<OkOrFail>,
}

#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum OkOrFail {
    Ok,
    Fail,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum FigureToml {
    Period,
    Span,
    Busy,
    IdleInside,
    IdleBetween,
}

impl FigureToml {
    fn code(self) -> &'static str {
        match self {
            Self::Period => StepFigure::Period,
            Self::Span => StepFigure::Span,
            Self::Busy => StepFigure::Busy,
            Self::IdleInside => StepFigure::IdleInside,
            Self::IdleBetween => StepFigure::IdleBetween,
        }
        .code()
    }
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "a number, or a text such as \"5 ms\" or \"30 %\"")]
enum Number {
    Whole(i64),
    Decimal(f64),
    Text(String),
}

impl Number {
    /// As people would write it.
    fn text(&self) -> String {
        match self {
            Self::Whole(number) => number.to_string(),
            Self::Decimal(number) => number.to_string(),
            Self::Text(text) => text.clone(),
        }
    }
}

/// What is wrong, and where in the text.
struct Wrong(String, Range<usize>);

/// Reads a budget file.
pub(crate) fn read(path: &OsStr) -> Result<Budget, Failure> {
    let shown = path.to_string_lossy();
    let unusable = |why: &dyn std::fmt::Display| Failure::Usage(format!("the budget `{shown}` {why}"));
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MOST_BYTES + 1).read_to_end(&mut bytes));
    read.map_err(|error| unusable(&format_args!("cannot be read: {error}")))?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(unusable(&format_args!("is larger than {MOST_BYTES} bytes")));
    }
    let text = std::str::from_utf8(&bytes).map_err(|error| {
        let line = line(&String::from_utf8_lossy(&bytes[..error.valid_up_to()]), usize::MAX);
        unusable(&format_args!("is not UTF-8 (line {line})"))
    })?;
    parse(text).map_err(|error| unusable(&error))
}

fn line(text: &str, at: usize) -> usize {
    text.get(..at).unwrap_or(text).matches('\n').count() + 1
}

/// Reads the text of a budget.
pub(crate) fn parse(text: &str) -> Result<Budget, String> {
    let parsed: BudgetToml = toml::from_str(text).map_err(|error| {
        let at = error.span().map_or_else(String::new, |span| format!("line {}: ", line(text, span.start)));
        format!("is not right: {at}{}", error.message().lines().collect::<Vec<_>>().join(" "))
    })?;
    convert(&parsed, text).map_err(|Wrong(why, span)| format!("is not right: line {}: {why}", line(text, span.start)))
}

fn convert(parsed: &BudgetToml, text: &str) -> Result<Budget, Wrong> {
    if *parsed.version.get_ref() != VERSION {
        return Err(Wrong(format!("version {} is not known; there is {VERSION}", parsed.version.get_ref()), parsed.version.span()));
    }
    let (limits, regressions) = (&parsed.limit, &parsed.regression);
    if limits.len() + regressions.len() > MOST_LIMITS {
        return Err(Wrong(format!("there are more than {MOST_LIMITS} limits"), 0..0));
    }
    if limits.is_empty() && regressions.is_empty() {
        return Err(Wrong("there is neither a [[limit]] nor a [[regression]]".to_owned(), 0..0));
    }
    Ok(Budget {
        scope: parsed.scope.as_ref().map_or_else(|| Ok(ScopeSpec::default()), scope)?,
        limits: limits.iter().map(|of| limit(of, text)).collect::<Result<_, _>>()?,
        regressions: regressions.iter().map(|of| regression(of, text)).collect::<Result<_, _>>()?,
    })
}

fn scope(scope: &ScopeToml) -> Result<ScopeSpec, Wrong> {
    let window = |text: &Spanned<String>| time_window::parse(text.get_ref()).map_err(|why| Wrong(why, text.span()));
    Ok(ScopeSpec {
        range: scope.range.clone(),
        step: scope.step,
        time: scope.time.as_ref().map(window).transpose()?,
        device: scope.device,
        rank: scope.rank,
    })
}

fn parse_path(text: &Spanned<String>) -> Result<Path, Wrong> {
    text.get_ref().parse().map_err(|why| Wrong(why, text.span()))
}

fn figure_of(
    path: &Spanned<String>,
    of: Option<&Spanned<String>>,
    per: Option<&Spanned<String>>,
    step: Option<&String>,
) -> Result<(Figure, CheckUnit), Wrong> {
    let (figure, whole) = (parse_path(path)?, of.map(parse_path).transpose()?);
    let per = match per {
        None => None,
        Some(per) if per.get_ref() == "step" => Some(step.map_or(Per::Step, |name| Per::StepOf(Pattern::new(name), name.clone()))),
        Some(per) => return Err(Wrong(format!("`per` may be \"step\", not \"{}\"", per.get_ref()), per.span())),
    };
    let mut unit = figure.unit();
    if let (Some(whole), Some(of)) = (&whole, of) {
        if whole.unit() != unit {
            return Err(Wrong("`path` and `of` do not count the same".to_owned(), of.span()));
        }
        if per.is_some() {
            return Err(Wrong("a share is not divided by steps: use either `of` or `per`".to_owned(), of.span()));
        }
        unit = CheckUnit::Share;
    }
    Ok((Figure { path: figure, of: whole, per }, unit))
}

fn limit(limit: &Spanned<LimitToml>, text: &str) -> Result<Limit, Wrong> {
    let (span, limit) = (limit.span(), limit.get_ref());
    if let (Some(_), None) = (&limit.step, &limit.per) {
        return Err(Wrong("`step` says which steps `per = \"step\"` counts, which is not given".to_owned(), span));
    }
    let (figure, unit) = figure_of(&limit.path, limit.of.as_ref(), limit.per.as_ref(), limit.step.as_ref())?;
    let mut bounds = Vec::new();
    for (bound, number) in [(CheckBound::Min, &limit.min), (CheckBound::Max, &limit.max)] {
        if let Some(number) = number {
            let amount = figure::limit(&number.get_ref().text(), unit).map_err(|why| Wrong(why, number.span()))?;
            bounds.push((bound, amount));
        }
    }
    match &bounds[..] {
        [] => return Err(Wrong("a limit needs `max`, `min` or both".to_owned(), span)),
        [(_, least), (_, most)] if least > most => return Err(Wrong("`min` is more than `max`".to_owned(), span)),
        _ => {}
    }
    Ok(Limit {
        name: limit.name.clone().unwrap_or_else(|| limit.path.get_ref().clone()),
        line: line(text, limit.path.span().start),
        figure,
        bounds,
        missing_is_ok: limit.missing == Some(OkOrFail::Ok),
    })
}

fn regression(of: &Spanned<RegressionToml>, text: &str) -> Result<Regression, Wrong> {
    let (span, of) = (of.span(), of.get_ref());
    let wrong = |why: &str| Wrong(why.to_owned(), span.clone());
    let (bound, number) = match (&of.max_slower, &of.max_drop) {
        (Some(number), None) => (CheckBound::MaxSlower, number),
        (None, Some(number)) => (CheckBound::MaxDrop, number),
        (None, None) => return Err(wrong("a regression needs `max_slower`, such as max_slower = \"3 %\"")),
        (Some(_), Some(_)) => return Err(wrong("use either `max_slower` or `max_drop`")),
    };
    let limit = figure::share(&number.get_ref().text()).map_err(|why| Wrong(why, number.span()))?;
    let named = [
        ("role", DiffKind::Role, &of.role),
        ("family", DiffKind::Family, &of.family),
        ("kernel", DiffKind::Kernel, &of.kernel),
        ("operator", DiffKind::Operator, &of.operator),
        ("idle_cause", DiffKind::IdleCause, &of.idle_cause),
        ("range", DiffKind::Range, &of.range),
    ];
    let mut rows = named.into_iter().filter_map(|(word, kind, name)| Some((word, kind, name.as_deref()?)));
    let (row, second) = (rows.next(), rows.next());
    let selections = usize::from(of.path.is_some()) + usize::from(of.figure.is_some()) + usize::from(row.is_some());
    if selections > 1 || second.is_some() {
        return Err(wrong("use one of path, figure, role, family, kernel, operator, idle_cause and range"));
    }
    let (name, what) = if let Some(path) = &of.path {
        if of.ambiguous.is_some() {
            return Err(wrong("single figures have no spread: `ambiguous` is for figures of steps"));
        }
        let (figure, _) = figure_of(path, of.of.as_ref(), of.per.as_ref(), of.step.as_ref())?;
        (path.get_ref().clone(), Compared::Figure(figure))
    } else {
        if of.of.is_some() || of.per.is_some() {
            return Err(wrong("`of` and `per` belong to a `path`"));
        }
        if bound == CheckBound::MaxDrop {
            return Err(wrong("`max_drop` belongs to a `path`: times of steps can only be too slow"));
        }
        let (kind, key) = row.map_or((DiffKind::Step, of.figure.map(FigureToml::code)), |(_, kind, name)| (kind, Some(name)));
        if kind == DiffKind::Range && of.step.is_some() {
            return Err(wrong("a range belongs to no step: leave out `step`"));
        }
        let word = row.map_or("", |(word, ..)| word);
        let said = [of.step.as_deref().unwrap_or("step"), word, key.unwrap_or("time")];
        let name =
            said.into_iter().skip(usize::from(kind == DiffKind::Range)).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
        let selector = key.map_or_else(String::new, |key| format!("[key={key}]"));
        let path = format!("diff.rows[kind={}]{selector}.ratio", kind.code());
        (name, Compared::Rows(Rows { step: of.step.as_deref().map(Pattern::new), kind, key: key.map(Pattern::new), path }))
    };
    Ok(Regression {
        name: of.name.clone().unwrap_or(name),
        line: line(text, of.baseline.span().start),
        baseline: of.baseline.get_ref().clone(),
        what,
        bound,
        limit,
        ambiguous_is_ok: of.ambiguous != Some(OkOrFail::Fail),
        missing_is_ok: of.missing == Some(OkOrFail::Ok),
    })
}

#[cfg(test)]
mod tests;
