//! Where a figure stands: `steps.groups[name=decode_step].kernels_per_step`.
//!
//! ```text
//! figure   = plain | fold "(" plain ")"           fold     = "sum" | "count" | "max" | "min"
//! plain    = command { "." key { selector } }     selector = "[" ( "*" | number | key "=" pattern ) "]"
//! ```
//!
//! The command names the document that `longpole COMMAND --json` prints, keys and selectors lead into it. Of a list something has to be
//! selected before a key can follow. Several selectors behind one key narrow each other. In a pattern `*` stands for any characters, and a
//! backslash takes the meaning from what follows it. Without a fold exactly one figure has to be found.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use longpole_report::{Amount, CheckUnit};
use serde_json::Value;

use super::documents::Name;

/// Longer texts are no paths.
const MOST_BYTES: usize = 4096;
/// Names and keys listed where one is not found.
const NAMED: usize = 8;

/// Which figure, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Path {
    /// What becomes of several figures.
    pub(crate) fold: Option<Fold>,
    /// Whose document.
    pub(crate) document: Name,
    parts: Vec<Part>,
}

/// What becomes of several figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fold {
    Sum,
    Count,
    Max,
    Min,
}

const FOLDS: [(&str, Fold); 4] = [("sum", Fold::Sum), ("count", Fold::Count), ("max", Fold::Max), ("min", Fold::Min)];

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Key(String),
    At(usize),
    All,
    Where(String, Pattern),
}

/// A text in which some places stand for anything: what lies between those places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pattern(Vec<String>);

impl Pattern {
    /// Reads a whole text as a pattern.
    pub(crate) fn new(text: &str) -> Self {
        let mut pieces = vec![String::new()];
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            let piece = pieces.last_mut();
            match (c, piece) {
                ('*', _) => pieces.push(String::new()),
                ('\\', Some(piece)) => piece.push(chars.next().unwrap_or('\\')),
                (c, Some(piece)) => piece.push(c),
                (_, None) => {}
            }
        }
        Self(pieces)
    }

    /// Whether a text is one of those meant. Each piece is taken where it first fits, which is right for any number of them.
    pub(crate) fn matches(&self, text: &str) -> bool {
        let [first, middle @ .., last] = &self.0[..] else { return self.0.iter().all(|only| only == text) };
        let Some(mut rest) = text.strip_prefix(first.as_str()) else { return false };
        for piece in middle {
            match rest.split_once(piece.as_str()) {
                Some((_, after)) => rest = after,
                None => return false,
            }
        }
        rest.ends_with(last.as_str())
    }
}

/// A name written so that as a pattern it means itself, inside brackets too.
pub(crate) fn literal(name: &str) -> String {
    name.chars().flat_map(|c| matches!(c, '*' | '\\' | ']').then_some('\\').into_iter().chain([c])).collect()
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.iter().map(|piece| literal(piece)).collect::<Vec<_>>().join("*"))
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fold = self.fold.and_then(|fold| FOLDS.into_iter().find(|(_, other)| *other == fold));
        if let Some((name, _)) = fold {
            write!(f, "{name}(")?;
        }
        write!(f, "{}", self.document.code())?;
        for part in &self.parts {
            match part {
                Part::Key(key) => write!(f, ".{key}"),
                Part::At(at) => write!(f, "[{at}]"),
                Part::All => f.write_str("[*]"),
                Part::Where(key, pattern) => write!(f, "[{key}={pattern}]"),
            }?;
        }
        if fold.is_some() { f.write_str(")") } else { Ok(()) }
    }
}

impl FromStr for Path {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.len() > MOST_BYTES {
            return Err(format!("the path is longer than {MOST_BYTES} bytes"));
        }
        let text = text.trim();
        let folded = FOLDS.into_iter().find_map(|(name, fold)| Some((fold, text.strip_prefix(name)?.strip_prefix('(')?)));
        let (fold, plain) = match folded {
            Some((fold, rest)) => (Some(fold), rest.strip_suffix(')').ok_or("the path has no closing parenthesis")?.trim()),
            None => (None, text),
        };
        let (command, mut rest) = plain.split_at(key_length(plain));
        let document = Name::find(command)
            .ok_or_else(|| format!("a path begins with a command ({}), not with `{command}`", Name::ALL.map(Name::code).join(", ")))?;
        let mut parts = Vec::new();
        while !rest.is_empty() {
            let (part, after) = part(rest)?;
            if !matches!(part, Part::Key(_)) && parts.is_empty() {
                return Err(format!("`{command}` is an object: a key has to follow, as in `{command}.KEY`"));
            }
            parts.push(part);
            rest = after;
        }
        if parts.is_empty() {
            return Err(format!("the path ends at `{command}`: a key has to follow, as in `{command}.KEY`"));
        }
        Ok(Self { fold, document, parts })
    }
}

/// Bytes of the key that a text begins with.
fn key_length(text: &str) -> usize {
    text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len())
}

fn part(text: &str) -> Result<(Part, &str), String> {
    if let Some(rest) = text.strip_prefix('.') {
        let (key, rest) = rest.split_at(key_length(rest));
        return if key.is_empty() { Err("a key is missing behind a dot".to_owned()) } else { Ok((Part::Key(key.to_owned()), rest)) };
    }
    let Some(inside) = text.strip_prefix('[') else {
        return Err(format!("`{}` is neither `.key` nor `[selector]`", text.chars().take(24).collect::<String>()));
    };
    let mut escaped = false;
    let end = inside.find(|c: char| {
        let closes = c == ']' && !escaped;
        escaped = c == '\\' && !escaped;
        closes
    });
    let end = end.ok_or("a bracket is not closed")?;
    let (selector, rest) = (&inside[..end], &inside[end + 1..]);
    let part = if selector == "*" {
        Part::All
    } else if !selector.is_empty() && selector.bytes().all(|byte| byte.is_ascii_digit()) {
        Part::At(selector.parse().map_err(|_| format!("`[{selector}]` is no place in a list"))?)
    } else if let Some((key, pattern)) = selector.split_once('=')
        && !key.is_empty()
        && key_length(key) == key.len()
    {
        Part::Where(key.to_owned(), Pattern::new(pattern))
    } else {
        return Err(format!("`[{selector}]` selects nothing; use [*], [0] or [name=decode_step]"));
    };
    Ok((part, rest))
}

/// Why there is no figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NoFigure {
    /// This trace has none: nothing was recorded, or nothing has that name.
    Missing(String),
    /// No trace has: the path is wrong.
    Wrong(String),
}

/// What the part of a path that was followed so far has led to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// A value, or one of each row that was selected.
    Plain,
    /// The rows of a list, of which some have to be selected.
    List,
    /// Selected rows.
    Narrowed,
}

impl Path {
    /// What the figure counts.
    pub(crate) fn unit(&self) -> CheckUnit {
        let key = self.parts.iter().rev().find_map(|part| if let Part::Key(key) = part { Some(key.as_str()) } else { None });
        match (self.fold, key) {
            (Some(Fold::Count), _) | (_, None) => CheckUnit::Number,
            (_, Some(key)) => unit_of(key),
        }
    }

    /// The figure.
    pub(crate) fn find(&self, document: &Value) -> Result<Amount, NoFigure> {
        let values = self.select(document)?;
        if self.fold == Some(Fold::Count) {
            return Ok(Amount::whole(values.iter().filter(|value| !value.is_null()).count() as u64));
        }
        let mut amounts = Vec::with_capacity(values.len());
        for value in &values {
            match value {
                Value::Null => {}
                Value::Number(number) => amounts.extend(amount(number)),
                other => return Err(NoFigure::Wrong(format!("`{self}` is {}, not a number", kind(other)))),
            }
        }
        let folded = match self.fold {
            Some(Fold::Sum) => amounts.iter().copied().reduce(Amount::plus),
            Some(Fold::Max) => amounts.iter().copied().max(),
            Some(Fold::Min) => amounts.iter().copied().min(),
            Some(Fold::Count) | None => match values.len() {
                0 | 1 => amounts.first().copied(),
                several => {
                    let many =
                        format!("the path selects {several} figures: narrow it, or take their sum(...), max(...), min(...) or count(...)");
                    return Err(NoFigure::Wrong(many));
                }
            },
        };
        folded.ok_or_else(|| NoFigure::Missing("it was not recorded (null)".to_owned()))
    }

    fn select<'v>(&self, document: &'v Value) -> Result<Vec<&'v Value>, NoFigure> {
        let mut at = self.document.code().to_owned();
        let mut found = vec![document];
        let mut state = State::Plain;
        // Within what is not the same for every trace, such as the evidence of a suspect, a key that is not there is no mistake.
        let mut is_free = false;
        for part in &self.parts {
            match (part, state) {
                (Part::Key(_), State::List) => return Err(unselected(&at, found.len())),
                (Part::Key(key), State::Plain | State::Narrowed) => {
                    found = self.members(&found, key, &at, is_free)?;
                    is_free |= matches!(key.as_str(), "evidence" | "ceiling" | "flops_per_s");
                    at = format!("{at}.{key}");
                    state = State::Plain;
                    if found.iter().any(|value| value.is_array()) {
                        found = found.iter().filter_map(|value| value.as_array()).flatten().collect();
                        state = State::List;
                    }
                }
                (_, State::Plain) if found.is_empty() => {}
                (_, State::Plain) if found.iter().all(|value| value.is_null()) => {
                    return Err(NoFigure::Missing(format!("`{at}` was not recorded (null)")));
                }
                (_, State::Plain) => return Err(NoFigure::Wrong(format!("`{at}` is no list"))),
                (selector, State::List | State::Narrowed) => {
                    found = self.narrowed(&found, selector, &at)?;
                    state = State::Narrowed;
                }
            }
        }
        if state == State::List && self.fold != Some(Fold::Count) {
            return Err(unselected(&at, found.len()));
        }
        if state == State::Plain && self.fold == Some(Fold::Count) && found.iter().any(|value| value.is_object()) {
            return Err(NoFigure::Wrong(format!("`{at}` is an object: there are no rows of it to count")));
        }
        Ok(found)
    }

    fn members<'v>(&self, found: &[&'v Value], key: &str, at: &str, is_free: bool) -> Result<Vec<&'v Value>, NoFigure> {
        let mut members = Vec::with_capacity(found.len());
        for value in found {
            match value {
                Value::Object(object) => match object.get(key) {
                    Some(member) => members.push(member),
                    None if is_free => {}
                    None => {
                        let keys: Vec<&str> = object.keys().map(String::as_str).collect();
                        return Err(NoFigure::Wrong(format!("`{at}` has no key `{key}`; there are {}", listed(&keys))));
                    }
                },
                Value::Null => {}
                other => return Err(NoFigure::Wrong(format!("`{at}` is {}: it has no key `{key}`", kind(other)))),
            }
        }
        if members.is_empty() && !found.is_empty() && self.fold != Some(Fold::Count) {
            return Err(NoFigure::Missing(format!("`{at}.{key}` was not recorded")));
        }
        Ok(members)
    }

    fn narrowed<'v>(&self, found: &[&'v Value], selector: &Part, at: &str) -> Result<Vec<&'v Value>, NoFigure> {
        let rows = found.len();
        let narrowed: Vec<&Value> = match selector {
            Part::At(place) => found.get(*place).copied().into_iter().collect(),
            Part::Where(key, pattern) => {
                if let Some(row) = found.iter().find(|row| row.get(key).is_none()) {
                    let keys: Vec<&str> = row.as_object().into_iter().flatten().map(|(key, _)| key.as_str()).collect();
                    return Err(NoFigure::Wrong(format!("rows of `{at}` have no key `{key}`; there are {}", listed(&keys))));
                }
                if let Some(value) = found.iter().filter_map(|row| row.get(key)).find(|value| value.is_object() || value.is_array()) {
                    let holds = format!("`{key}` in rows of `{at}` is {}, which no text selects; narrow by another key", kind(value));
                    return Err(NoFigure::Wrong(holds));
                }
                found.iter().copied().filter(|row| row.get(key).and_then(text).is_some_and(|text| pattern.matches(&text))).collect()
            }
            Part::Key(_) | Part::All => found.to_vec(),
        };
        if !narrowed.is_empty() || self.fold == Some(Fold::Count) {
            return Ok(narrowed);
        }
        Err(NoFigure::Missing(match selector {
            _ if rows == 0 => format!("`{at}` is empty"),
            Part::Where(key, pattern) => {
                let mut names: Vec<String> = found.iter().filter_map(|row| text(row.get(key)?)).map(Cow::into_owned).collect();
                names.dedup();
                format!("nothing in `{at}` has {key}={pattern}; there are {}", listed(&names))
            }
            _ => format!("`{at}` has {rows} rows"),
        }))
    }
}

fn unselected(at: &str, rows: usize) -> NoFigure {
    NoFigure::Wrong(format!("`{at}` is a list of {rows}: select from it, as in `{at}[0]` or `{at}[*]`"))
}

/// The first few.
fn listed<S: AsRef<str>>(names: &[S]) -> String {
    let shown: Vec<&str> = names.iter().take(NAMED).map(AsRef::as_ref).collect();
    let more = names.len().saturating_sub(NAMED);
    if more > 0 { format!("{} and {more} more", shown.join(", ")) } else { shown.join(", ") }
}

/// What a value is compared with a pattern as.
fn text(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::String(text) => Some(text.into()),
        Value::Number(number) => Some(number.to_string().into()),
        Value::Bool(is_true) => Some(is_true.to_string().into()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn amount(number: &serde_json::Number) -> Option<Amount> {
    let whole = number.as_i64().map(Amount::whole).or_else(|| number.as_u64().map(Amount::whole));
    whole.or_else(|| number.as_f64().and_then(Amount::nearest))
}

/// What a key counts, by its ending; what it is counted per does not matter.
fn unit_of(key: &str) -> CheckUnit {
    let counted = match key.split_once("_per_") {
        // Bytes a second are no bytes.
        Some((_, per)) if per == "s" || per.starts_with("s_") => return CheckUnit::Number,
        Some((counted, per)) if !per.ends_with("_ns") => counted,
        _ => key,
    };
    match counted.rsplit('_').next() {
        Some("ns") => CheckUnit::Time,
        Some("bytes") => CheckUnit::Bytes,
        Some("fraction") => CheckUnit::Share,
        Some("pct") => CheckUnit::Percent,
        _ => CheckUnit::Number,
    }
}

#[cfg(test)]
mod tests;
