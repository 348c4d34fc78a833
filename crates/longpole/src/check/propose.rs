//! A budget that a trace keeps, with head-room: a start to edit, not a judgement.
//!
//! Counts of kernels repeat exactly, device times nearly so, and times that the host decides may double from one recording to the next
//! (`docs/verdicts.md` has the measurements); limits leave that much room, and are round.

use std::fmt::Write as _;

use longpole_analysis::ScopeSpec;
use longpole_report::{Amount, CheckUnit, printable};
use longpole_trace::Ns;

use super::budget::{Figure, Per};
use super::documents::{Documents, Name};
use super::path::literal;
use super::{figure, judge};
use crate::exit::Failure;

/// Groups of steps that get limits: those with most device time.
const MOST_GROUPS: usize = 4;
/// Names that are told apart: thousands of steps that are all called differently are no groups to limit.
const MOST_NAMES: usize = 64;
/// Percent of the figure that a count may be.
const COUNT: i64 = 102;
/// The same of what the device decides.
const DEVICE: i64 = 105;
/// The same of sizes, and of shares that no host decides.
const SIZE: i64 = 110;
/// The same of what the host has a hand in.
const HOST: i64 = 200;
/// Share of a step in which the device waits for its host from which that has a hand in its length.
const HOST_SHARE: f64 = 0.1;
/// Percent of a share of busy time that has to be left.
const LEAST: f64 = 90.0;
/// The same where the host decides how long the device has nothing to do: the wall may be twice as long, with as much device work in it.
const HOST_LEAST: f64 = 50.0;
/// Share of busy time from which the device rather than its host decides the wall.
const MOSTLY_BUSY: f64 = 0.5;
/// The least share of busy time that a limit is worth: percent.
const LEAST_BUSY: f64 = 5.0;

/// A budget while it is written.
struct Draft<'d, 'a> {
    documents: &'d mut Documents<'a>,
    text: String,
    limits: usize,
}

/// A limit to propose.
struct Idea<'t> {
    /// What it means, in one line.
    comment: &'t str,
    name: String,
    path: String,
    of: Option<String>,
    per_step: Option<&'t str>,
    percent: i64,
}

impl<'t> Idea<'t> {
    fn new(comment: &'t str, name: impl Into<String>, path: impl Into<String>, percent: i64) -> Self {
        Self { comment, name: name.into(), path: path.into(), of: None, per_step: None, percent }
    }
}

/// A text as TOML.
fn quoted(text: &str) -> String {
    let is_plain = |c: char| c != '\'' && !c.is_control() && printable(c.encode_utf8(&mut [0; 4])).chars().eq([c]);
    if text.chars().all(is_plain) && text.contains(['"', '\\']) {
        return format!("'{text}'");
    }
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c == '\'' || is_plain(c) => out.push(c),
            c => {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\U{:08X}", u32::from(c));
            }
        }
    }
    out.push('"');
    out
}

impl Draft<'_, '_> {
    fn value(&mut self, idea: &Idea<'_>) -> Result<Option<(Amount, CheckUnit)>, Failure> {
        let parse = |text: &str| text.parse().ok();
        let Some(path) = parse(&idea.path) else { return Ok(None) };
        let of = idea.of.as_deref().and_then(parse);
        let per = idea.per_step.map(|name| Per::StepOf(super::path::Pattern::new(&literal(name)), name.to_owned()));
        let figure = Figure { path, of, per };
        let unit = if figure.of.is_some() { CheckUnit::Share } else { figure.path.unit() };
        Ok(judge::value(&figure, self.documents)?.ok().map(|value| (value, unit)))
    }

    /// Proposes a limit upwards, if the figure is there.
    fn at_most(&mut self, idea: &Idea<'_>) -> Result<(), Failure> {
        if let Some((value, unit)) = self.value(idea)?.filter(|(value, _)| *value >= Amount::default()) {
            self.write(idea, (value, unit), "max", &figure::at_most(value, idea.percent, unit));
        }
        Ok(())
    }

    fn write(&mut self, idea: &Idea<'_>, (value, unit): (Amount, CheckUnit), bound: &str, limit: &str) {
        let mut lines = format!("\n# {} Here: {}.\n[[limit]]\n", idea.comment, unit.show(value));
        let mut line = |key: &str, value: &str| {
            // Writing to a String cannot fail.
            let _ = writeln!(lines, "{key} = {value}");
        };
        line("name", &quoted(&idea.name));
        line("path", &quoted(&idea.path));
        if let Some(of) = &idea.of {
            line("of", &quoted(of));
        }
        if let Some(step) = idea.per_step {
            line("per", "\"step\"");
            line("step", &quoted(&literal(step)));
        }
        line(bound, limit);
        self.text.push_str(&lines);
        self.limits += 1;
    }
}

/// The text of a budget for the trace, and how many limits it has.
pub(crate) fn budget(documents: &mut Documents<'_>, source: &str, scope: &ScopeSpec) -> Result<(String, usize), Failure> {
    let mut draft = Draft { documents, text: String::new(), limits: 0 };
    let _ = writeln!(
        draft.text,
        "# Proposed by `longpole check --write-budget` from {}: limits that this trace keeps, with head-room.\n\
         # Kernel counts have 2 %, device times 5 %, sizes 10 %, what the host decides 100 %, then rounded up. Tighten what you care about,\n\
         # delete what you do not. docs/check.md describes the format.\nversion = 1",
        printable(source)
    );
    write_scope(&mut draft.text, scope);
    let groups = groups(&mut draft)?;
    let communicates = Idea::new("", "", "triage.totals.comm_busy_ns", 100);
    let communicates = draft.value(&communicates)?.is_some_and(|(value, _)| value > Amount::default());
    for group in &groups {
        of_steps(&mut draft, group, communicates)?;
    }
    of_device(&mut draft)?;
    of_memory(&mut draft, groups.iter().max_by_key(|group| group.count))?;
    if groups.is_empty() {
        let name = "kernels, copies and fills";
        draft.at_most(&Idea::new("Device work of the whole trace.", name, "sum(families.families[*].calls)", COUNT))?;
        draft.at_most(&Idea::new("Operator calls of the whole trace.", "operator calls", "triage.totals.host_ops", COUNT))?;
        draft.at_most(&Idea::new("From the first to the last event; the host has a hand in it.", "wall", "triage.totals.wall_ns", HOST))?;
    }
    let step = groups.first().map_or_else(String::new, |group| format!("# step = {}\n", quoted(&literal(&group.name))));
    let _ = write!(
        draft.text,
        "\n# Against an earlier trace, step by step: breaks only when the step is slower than that beyond noise.\n\
         # [[regression]]\n# baseline = \"before.json.gz\"\n{step}# figure = \"busy\"\n# max_slower = \"3 %\"\n"
    );
    Ok((draft.text, draft.limits))
}

fn write_scope(text: &mut String, scope: &ScopeSpec) {
    if *scope == ScopeSpec::default() {
        return;
    }
    text.push_str("\n# What part of the trace the limits are about.\n[scope]\n");
    let mut line = |key: &str, value: Option<String>| {
        if let Some(value) = value {
            let _ = writeln!(text, "{key} = {value}");
        }
    };
    line("range", scope.range.as_deref().map(quoted));
    line("step", scope.step.map(|step| step.to_string()));
    let end = |end: Ns| if end == Ns::MAX { String::new() } else { format!("{}ns", end.get()) };
    line("time", scope.time.map(|(start, stop)| format!("\"{}ns..{}\"", start.get(), end(stop))));
    line("device", scope.device.map(|device| device.to_string()));
    line("rank", scope.rank.map(|rank| rank.to_string()));
}

/// Steps of one name, on however many devices.
struct Group {
    name: String,
    places: usize,
    count: u64,
    busy_ns: i64,
    /// Share of a step without device work.
    host_share: f64,
    has_period: bool,
}

/// The groups with most device time, by name.
fn groups(draft: &mut Draft<'_, '_>) -> Result<Vec<Group>, Failure> {
    let document = draft.documents.get(Name::Steps).map_err(|error| Failure::Output(std::io::Error::other(error)))?;
    let mut groups: Vec<Group> = Vec::new();
    for group in document.and_then(|document| document["groups"].as_array()).into_iter().flatten() {
        let (Some(name), Some(busy_ns)) = (group["name"].as_str(), group["total_busy_ns"].as_i64()) else { continue };
        let length = group["period_ns"].as_f64().or_else(|| group["span_ns"].as_f64()).unwrap_or(0.0);
        let host_share = if length > 0.0 { 1.0 - group["busy_ns"].as_f64().unwrap_or(0.0) / length } else { 0.0 };
        let has_period = !group["period_ns"].is_null();
        let count = group["count"].as_u64().unwrap_or(0);
        if let Some(other) = groups.iter_mut().find(|other| other.name == name) {
            other.places += 1;
            other.busy_ns = other.busy_ns.saturating_add(busy_ns);
            other.count = other.count.max(count);
            other.host_share = other.host_share.max(host_share);
            other.has_period &= has_period;
        } else if groups.len() < MOST_NAMES {
            groups.push(Group { name: name.to_owned(), places: 1, count, busy_ns, host_share, has_period });
        }
    }
    groups.sort_by_key(|group| std::cmp::Reverse(group.busy_ns));
    groups.truncate(MOST_GROUPS);
    Ok(groups)
}

fn of_steps(draft: &mut Draft<'_, '_>, group: &Group, communicates: bool) -> Result<(), Failure> {
    let path = |key: &str| {
        let path = format!("steps.groups[name={}].{key}", literal(&group.name));
        if group.places > 1 { format!("max({path})") } else { path }
    };
    let name = |what: &str| format!("{}: {what}", group.name);
    let kernels = "Kernels of a median step. They repeat exactly: more of them means that something is no longer fused or captured.";
    draft.at_most(&Idea::new(kernels, name("kernels"), path("kernels_per_step"), COUNT))?;
    let (busy, percent) = if communicates {
        ("Device time of a median step. It includes communication, which waits for other ranks.", HOST)
    } else {
        ("Device time of a median step, which hardly differs between two runs on the same device.", DEVICE)
    };
    draft.at_most(&Idea::new(busy, name("GPU busy"), path("busy_ns"), percent))?;
    // How long nothing was queued is known of ranges; of other steps, only how long the device was idle.
    let by_range = |key: &str| format!("sum(idle.by_range[name={}].{key})", literal(&group.name));
    let queue = Idea::new("", "", by_range("empty_queue_ns"), 100);
    let empty = draft.value(&Idea { of: Some(by_range("span_ns")), ..queue })?;
    let host_share = empty.map_or(group.host_share, |(share, _)| share.get());
    let percent = if host_share > HOST_SHARE || communicates { HOST } else { SIZE };
    let (what, key) = if group.has_period { ("period", "period_ns") } else { ("span", "span_ns") };
    let comment = if percent == HOST {
        "Length of a median step. It waits for its host or for others, which differs up to twofold between two runs."
    } else {
        "Length of a median step, which the device decides."
    };
    draft.at_most(&Idea::new(comment, name(what), path(key), percent))
}

fn of_device(draft: &mut Draft<'_, '_>) -> Result<(), Failure> {
    let idea = Idea::new("Share of the wall in which the GPU works.", "GPU busy", "triage.totals.gpu_busy_fraction", 100);
    if let Some((value, unit)) = draft.value(&idea)? {
        let suspects = draft.value(&Idea::new("", "", "count(triage.smells[code=host_bound])", 100))?;
        let is_suspected = suspects.is_some_and(|(count, _)| count > Amount::default());
        let (percent, comment) = if is_suspected || value.get() < MOSTLY_BUSY {
            (
                HOST_LEAST,
                "Share of the wall in which the GPU works: half of it is left, since its host may take twice as long in another run.",
            )
        } else {
            (LEAST, idea.comment)
        };
        let idea = Idea { comment, ..idea };
        let least = (value.get() * percent).floor();
        if least >= LEAST_BUSY {
            draft.write(&idea, (value, unit), "min", &format!("\"{least} %\""));
        }
        let comment = "The GPU waiting for the host is no suspect here (`longpole explain host_bound`), and should not become one.";
        let idea = Idea::new(comment, "suspected of being host-bound", "count(triage.smells[code=host_bound])", 100);
        if let Some((value, unit)) = draft.value(&idea)?.filter(|(value, _)| *value == Amount::default()) {
            draft.write(&idea, (value, unit), "max", "0");
        }
    }
    let wall = Some("triage.totals.wall_ns".to_owned());
    let copies =
        Idea::new("Copies and fills with no kernel beside them, of the wall.", "exposed copies", "triage.totals.exposed_copy_ns", 150);
    draft.at_most(&Idea { of: wall.clone(), ..copies })?;
    let path = "triage.totals.exposed_comm_ns";
    let communication = Idea::new("Communication with no kernel beside it, of the wall.", "exposed communication", path, HOST);
    if draft.value(&communication)?.is_some_and(|(value, _)| value > Amount::default()) {
        draft.at_most(&Idea { of: wall, ..communication })?;
    }
    Ok(())
}

fn of_memory(draft: &mut Draft<'_, '_>, steps: Option<&Group>) -> Result<(), Failure> {
    let peak = "The most that the allocator had given out at once.";
    draft.at_most(&Idea::new(peak, "peak memory", "memory.peak_allocated_bytes", SIZE))?;
    let Some(group) = steps else { return Ok(()) };
    let comment = "Allocations in the whole scope over the steps in it: set a range under [scope] to leave others out.";
    let idea = Idea::new(comment, format!("{}: allocations", group.name), "sum(memory.memory[place=device].allocations)", SIZE);
    draft.at_most(&Idea { per_step: Some(&group.name), ..idea })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_text_comes_back_from_toml(text in any::<String>()) {
            let written = format!("x = {}", quoted(&text));
            let read: Result<std::collections::BTreeMap<String, String>, _> = toml::from_str(&written);
            prop_assert_eq!(read.map_err(|error| error.to_string()), Ok([("x".to_owned(), text)].into()), "{}", written);
        }
    }

    #[test]
    fn patterns_need_no_escapes() {
        assert_eq!(quoted(r"a\*b"), r"'a\*b'");
        assert_eq!(quoted("a\u{202e}b"), "\"a\\U0000202Eb\"");
        assert_eq!(quoted("decode"), "\"decode\"");
    }
}
