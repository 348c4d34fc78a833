//! Figures beside their limits.

use hashbrown::HashMap;
use longpole_analysis::{Diff, DiffKind, DiffRow, StepPair};
use longpole_report::{Amount, CheckBound, CheckReport, CheckUnit, CheckVerdict, CheckedLimit};
use longpole_stats::Excess;
use serde_json::Value;

use super::budget::{Budget, Compared, Figure, Limit, Per, Regression, Rows};
use super::documents::{Documents, Name};
use super::path::{NoFigure, Pattern};
use crate::exit::Failure;
use crate::session::Beside;

/// Names that are listed where one is not found.
const NAMED: usize = 8;

/// What a figure may be compared with.
pub(crate) struct Baseline<'a> {
    /// Its documents, or the one there is.
    pub(crate) documents: Documents<'a>,
    /// The comparison step by step, where it is a trace and something asks for it.
    pub(crate) diff: Option<Diff>,
    /// The trace, where it is one.
    pub(crate) trace: Option<&'a Beside>,
}

/// Baselines by the name that the budget has for them.
pub(crate) type Baselines<'a> = HashMap<String, Baseline<'a>>;

/// What was found out about a limit.
struct Outcome {
    value: Option<Amount>,
    change: Option<(CheckUnit, Amount, Amount)>,
    interval: Option<(f64, f64)>,
    verdict: CheckVerdict,
    ok: bool,
    reason: Option<String>,
}

impl Outcome {
    fn of(value: Amount, holds: bool) -> Self {
        let verdict = if holds { CheckVerdict::Ok } else { CheckVerdict::Broken };
        Self { value: Some(value), change: None, interval: None, verdict, ok: holds, reason: None }
    }

    fn missing(reason: String, ok: bool) -> Self {
        Self { value: None, change: None, interval: None, verdict: CheckVerdict::Missing, ok, reason: Some(reason) }
    }

    /// A path that is wrong never passes: it would never be looked at again.
    fn without(figure: NoFigure, missing_is_ok: bool) -> Self {
        match figure {
            NoFigure::Missing(why) => Self::missing(why, missing_is_ok),
            NoFigure::Wrong(why) => Self::missing(why, false),
        }
    }
}

/// Judges a whole budget.
pub(crate) fn judge(
    budget: &Budget,
    name: &str,
    documents: &mut Documents<'_>,
    baselines: &mut Baselines<'_>,
) -> Result<CheckReport, Failure> {
    let mut limits = Vec::new();
    for limit in &budget.limits {
        judge_limit(limit, documents, &mut limits)?;
    }
    for regression in &budget.regressions {
        if let Some(baseline) = baselines.get_mut(&regression.baseline) {
            limits.push(judge_regression(regression, documents, baseline)?);
        }
    }
    let mut notes: Vec<String> = Vec::new();
    let mut named: Vec<_> = baselines.iter().collect();
    named.sort_by_key(|(name, _)| name.as_str());
    for (name, baseline) in named {
        if let Some((document, scope)) = baseline.documents.printed_scope()
            && documents.get(document).map_err(internal)?.is_some_and(|now| now["scope"] != *scope)
        {
            notes.push(format!("`{name}` was printed of another scope than this: {}", said(scope)));
        }
        let settings = baseline.diff.iter().flat_map(|diff| &diff.settings);
        notes.extend(
            settings.map(|change| format!("not as in `{name}`: {} {}, now {}: {}", change.what, change.before, change.after, change.means)),
        );
    }
    let mut report = CheckReport { budget: name.to_owned(), limits, notes };
    report.sort();
    Ok(report)
}

/// A scope of a document in one line.
fn said(scope: &Value) -> String {
    let parts = scope.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
    let parts: Vec<String> =
        parts.map(|(key, value)| format!("{key} {}", value.as_str().map_or_else(|| value.to_string(), str::to_owned))).collect();
    if parts.is_empty() { "the whole trace".to_owned() } else { parts.join(", ") }
}

fn internal(error: String) -> Failure {
    Failure::Output(std::io::Error::other(error))
}

fn judge_limit(limit: &Limit, documents: &mut Documents<'_>, out: &mut Vec<CheckedLimit>) -> Result<(), Failure> {
    let found = value(&limit.figure, documents)?;
    for &(bound, amount) in &limit.bounds {
        let outcome = match &found {
            Ok(value) => Outcome::of(*value, if bound == CheckBound::Min { *value >= amount } else { *value <= amount }),
            Err(why) => Outcome::without(why.clone(), limit.missing_is_ok),
        };
        out.push(checked(&limit.name, place(&limit.figure), limit.line, unit(&limit.figure), (bound, amount), None, outcome));
    }
    Ok(())
}

fn checked(
    name: &str,
    (path, over): (String, Option<String>),
    line: usize,
    unit: CheckUnit,
    (bound, limit): (CheckBound, Amount),
    baseline: Option<&str>,
    outcome: Outcome,
) -> CheckedLimit {
    let Outcome { value, change, interval, verdict, ok, reason } = outcome;
    let baseline = baseline.map(str::to_owned);
    CheckedLimit { name: name.to_owned(), path, over, line, unit, bound, limit, value, change, baseline, interval, verdict, ok, reason }
}

/// The path of a figure, and what it is divided by.
fn place(figure: &Figure) -> (String, Option<String>) {
    let over = figure.of.as_ref().map(ToString::to_string).or_else(|| match figure.per.as_ref()? {
        Per::Step => Some("steps".to_owned()),
        Per::StepOf(_, name) => Some(format!("steps {name}")),
    });
    (figure.path.to_string(), over)
}

fn unit(figure: &Figure) -> CheckUnit {
    if figure.of.is_some() { CheckUnit::Share } else { figure.path.unit() }
}

/// The figure, or why there is none.
pub(super) fn value(figure: &Figure, documents: &mut Documents<'_>) -> Result<Result<Amount, NoFigure>, Failure> {
    let mut find = |path: &super::path::Path| -> Result<Result<Amount, NoFigure>, Failure> {
        let document = documents.get(path.document).map_err(internal)?;
        let other = || NoFigure::Wrong(format!("the document holds no figures of `{}`", path.document.code()));
        Ok(document.ok_or_else(other).and_then(|document| path.find(document)))
    };
    let found = match find(&figure.path)? {
        Ok(found) => found,
        Err(why) => return Ok(Err(why)),
    };
    if let Some(whole) = &figure.of {
        let whole = find(whole)?;
        return Ok(whole.and_then(|whole| found.over(whole).ok_or_else(|| NoFigure::Missing("what it is a share of is 0".to_owned()))));
    }
    let Some(per) = &figure.per else { return Ok(Ok(found)) };
    let document = documents.get(Name::Steps).map_err(internal)?;
    let Some(document) = document else { return Ok(Err(NoFigure::Wrong("the document holds no steps to divide by".to_owned()))) };
    Ok(steps(document, per).and_then(|steps| found.over(steps).ok_or_else(|| NoFigure::Missing("there are no steps".to_owned()))))
}

/// How many steps there are, those set aside as slow or cut off included, since totals include them. Of groups on several devices the
/// largest counts.
fn steps(document: &Value, per: &Per) -> Result<Amount, NoFigure> {
    let groups = document["groups"].as_array().map_or(&[][..], Vec::as_slice);
    let name = |group: &Value| group["name"].as_str().unwrap_or_default().to_owned();
    let is_meant = |group: &&Value| match per {
        Per::Step => true,
        Per::StepOf(pattern, _) => pattern.matches(&name(group)),
    };
    let steps = |group: &Value| group["count"].as_u64().unwrap_or(0) + group["left_out"].as_array().map_or(0, |left| left.len() as u64);
    let most = groups.iter().filter(is_meant).map(steps).max();
    let names = || listed(&groups.iter().map(name).collect::<Vec<_>>());
    most.map(Amount::whole).ok_or_else(|| match per {
        Per::StepOf(_, asked) if !groups.is_empty() => NoFigure::Missing(format!("no steps are called `{asked}`; there are {}", names())),
        _ => NoFigure::Missing("no steps were found to divide by".to_owned()),
    })
}

fn listed(names: &[String]) -> String {
    let shown = names.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    let more = names.len().saturating_sub(NAMED);
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}

fn judge_regression(of: &Regression, documents: &mut Documents<'_>, baseline: &mut Baseline<'_>) -> Result<CheckedLimit, Failure> {
    let (path, outcome) = match &of.what {
        Compared::Figure(figure) => {
            let (before, after) = (value(figure, &mut baseline.documents)?, value(figure, documents)?);
            let outcome = match (before, after) {
                (Ok(before), Ok(after)) => compare_figures(of, unit(figure), before, after),
                (Err(NoFigure::Missing(why)), _) => Outcome::missing(format!("of the baseline: {why}"), of.missing_is_ok),
                (Err(NoFigure::Wrong(why)), _) => Outcome::missing(format!("of the baseline: {why}"), false),
                (_, Err(why)) => Outcome::without(why, of.missing_is_ok),
            };
            (place(figure), outcome)
        }
        Compared::Rows(rows) => {
            let outcome = match &baseline.diff {
                Some(diff) => match compare_steps(of, rows, diff) {
                    Ok(outcome) => outcome,
                    Err(there) => {
                        let lacking = who_lacks(rows, &mut baseline.documents, documents)?;
                        Outcome::missing(format!("{lacking}{there}"), of.missing_is_ok)
                    }
                },
                None => Outcome::missing("the baseline is one document: figures of steps need a trace; use `path`".to_owned(), false),
            };
            ((rows.path.clone(), None), outcome)
        }
    };
    Ok(checked(&of.name, path, of.line, CheckUnit::Share, (of.bound, of.limit), Some(&of.baseline), outcome))
}

/// Single figures, which have no spread: the limit is all the tolerance there is. More is more on either side of 0, so the change is a
/// share of how far the baseline is from 0.
fn compare_figures(of: &Regression, unit: CheckUnit, before: Amount, after: Amount) -> Outcome {
    let change = Some((unit, before, after));
    let zero = Amount::default();
    let share = if before == zero { (after == zero).then_some(zero) } else { after.minus(before).over(before.magnitude()) };
    if let Some(share) = share {
        let holds = match of.bound {
            CheckBound::MaxDrop => share.plus(of.limit) >= zero,
            CheckBound::Max | CheckBound::Min | CheckBound::MaxSlower => share <= of.limit,
        };
        return Outcome { change, ..Outcome::of(share, holds) };
    }
    // From nothing to something is beyond every share.
    let holds = (after > zero) == (of.bound == CheckBound::MaxDrop);
    let verdict = if holds { CheckVerdict::Ok } else { CheckVerdict::Broken };
    Outcome {
        value: None,
        change,
        interval: None,
        verdict,
        ok: holds,
        reason: Some("the baseline is 0, of which nothing is a share".to_owned()),
    }
}

/// Which of two traces lacks what was asked for. Of everything but ranges a comparison has what only one of them has, too.
fn who_lacks(rows: &Rows, before: &mut Documents<'_>, now: &mut Documents<'_>) -> Result<&'static str, Failure> {
    if rows.kind != DiffKind::Range {
        return Ok("neither trace has it");
    }
    let has = |documents: &mut Documents<'_>| -> Result<bool, Failure> {
        let ranges = documents.get(Name::Ranges).map_err(internal)?.and_then(|document| document["ranges"].as_array());
        let is_meant = |name: &str| rows.key.as_ref().is_none_or(|key| key.matches(name));
        Ok(ranges.into_iter().flatten().any(|range| !range["gpu_busy_ns"].is_null() && range["name"].as_str().is_some_and(is_meant)))
    };
    Ok(match (has(before)?, has(now)?) {
        (true, false) => "the checked trace has no such range with device work, the baseline has one",
        (false, true) => "the baseline has no such range with device work, the checked trace has one",
        (true, true) => "no such range with device work is in both traces under one name",
        (false, false) => "neither trace has such a range with device work",
    })
}

/// Rows of a comparison step by step; the worst of them counts. Without any, the names that there are.
fn compare_steps(of: &Regression, rows: &Rows, diff: &Diff) -> Result<Outcome, String> {
    let is_meant = |pair: &StepPair| {
        let matches = |pattern: &Pattern| pattern.matches(&pair.names.1) || pattern.matches(&pair.names.0);
        rows.step.as_ref().is_none_or(matches)
    };
    let mut pairs: Vec<Option<usize>> = (0..diff.pairs.len()).filter(|&at| is_meant(&diff.pairs[at])).map(Some).collect();
    if rows.kind == DiffKind::Range {
        pairs = vec![None];
    } else if rows.step.is_none() {
        pairs.truncate(1);
    }
    if pairs.is_empty() {
        let names: Vec<String> = diff.pairs.iter().map(|pair| pair.names.1.clone()).collect();
        let there =
            if names.is_empty() { "no steps of the two could be paired".to_owned() } else { format!("paired are {}", listed(&names)) };
        return Ok(Outcome::missing(format!("there is no such step in both traces; {there}"), of.missing_is_ok));
    }
    let mut outcomes: Vec<Outcome> = Vec::new();
    let mut keys: Vec<String> = Vec::new();
    for row in diff.rows.iter().filter(|row| row.kind == rows.kind && pairs.contains(&row.pair)) {
        let is_meant = match (&rows.key, row.pair.and_then(|pair| diff.pairs.get(pair))) {
            (Some(key), _) => key.matches(&row.key) || key.matches(&row.label),
            (None, Some(pair)) => row.key == pair.step.code(),
            (None, None) => false,
        };
        if is_meant {
            outcomes.push(compare_row(of, row));
        } else {
            keys.push(row.label.clone());
        }
    }
    let worst = outcomes.into_iter().min_by(|a, b| {
        let value = |outcome: &Outcome| outcome.value.unwrap_or_default();
        (a.ok, a.verdict).cmp(&(b.ok, b.verdict)).then(value(b).cmp(&value(a)))
    });
    worst.ok_or_else(|| {
        let both = if rows.kind == DiffKind::Range { "in both" } else { "there" };
        if keys.is_empty() { String::new() } else { format!("; {both} are {}", listed(&keys)) }
    })
}

fn percent(share: f64) -> String {
    format!("{:+.1} %", share * 100.0)
}

fn compare_row(of: &Regression, row: &DiffRow) -> Outcome {
    let Some(comparison) = &row.comparison else {
        return match (row.before_ns, row.after_ns) {
            (Some(_), None) => Outcome {
                value: None,
                change: None,
                interval: None,
                verdict: CheckVerdict::Ok,
                ok: true,
                reason: Some(format!("{} is gone", row.label)),
            },
            _ => Outcome::missing(format!("{} is new: the baseline has none", row.label), of.missing_is_ok),
        };
    };
    let verdict = match comparison.slower_by(of.limit.get()) {
        Excess::Beyond => CheckVerdict::Broken,
        Excess::Within => CheckVerdict::Ok,
        Excess::Unclear => CheckVerdict::Ambiguous,
    };
    let interval = comparison.interval.map(|(low, high)| (low - 1.0, high - 1.0));
    let shown = match (interval, comparison.smallest_effect) {
        (Some((low, high)), Some(effect)) if low.is_finite() && high.is_finite() && effect.is_finite() => {
            format!("between {} and {}, smallest shown {:.1} %", percent(low), percent(high), effect * 100.0)
        }
        _ => "one step, or none, shows no spread".to_owned(),
    };
    Outcome {
        value: comparison.ratio.and_then(|ratio| Amount::nearest(ratio - 1.0)),
        change: Some((CheckUnit::Time, Amount::whole(comparison.before), Amount::whole(comparison.after))),
        interval,
        verdict,
        ok: verdict == CheckVerdict::Ok || (verdict == CheckVerdict::Ambiguous && of.ambiguous_is_ok),
        reason: (verdict != CheckVerdict::Ok).then(|| format!("diff says {}, {shown}", comparison.verdict.code())),
    }
}
