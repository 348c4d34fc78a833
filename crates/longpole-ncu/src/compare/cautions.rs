//! What differs between two recordings and moves figures by itself.

use std::collections::BTreeSet;

use super::matching::{Head, Matched};
use super::types::Caution;
use crate::report::{Page, Report};
use crate::session::{Device, Session};

/// What ncu does unless it is told otherwise, for options whose absence on a known command line means that.
const DEFAULTS: &[(&str, &str)] = &[("clock-control", "base"), ("cache-control", "all"), ("replay-mode", "kernel")];

/// The cautions, most serious first. A fact that one side does not have is no difference.
pub(super) fn cautions(before: &Report, after: &Report, heads_before: &[Head], heads_after: &[Head], pairs: &[Matched]) -> Vec<Caution> {
    let (first, second) = (before.session(), after.session());
    let mut found: Vec<Caution> = Vec::new();
    let mut add = |about, text: Option<String>| found.extend(text.map(|text| Caution { about, text }));
    let (device_before, device_after) = (device(before, heads_before), device(after, heads_after));
    add("device", differ("the device", device_before.map(|device| device.name.as_str()), device_after.map(|device| device.name.as_str())));
    let sm_count = |device: Option<&Device>| device.and_then(|device| device.number("multiprocessor_count")).map(|count| count.to_string());
    add("SM count", differ("the number of SMs", sm_count(device_before).as_deref(), sm_count(device_after).as_deref()));
    add("clocks", clocks(first, second, heads_before, heads_after));
    for (option, about) in [("cache-control", "cache control"), ("replay-mode", "replay mode")] {
        add(about, differ(&format!("--{option}"), setting(first, option), setting(second, option)));
    }
    add("rules", rules(before, after));
    add("sections", sections(before, after, heads_before, heads_after));
    add("ncu version", differ("the version of ncu", first.ncu_version(), second.ncu_version()));
    add("CUDA version", differ("the CUDA version", first.version("CUDA Version"), second.version("CUDA Version")));
    let driver = "Display Driver Version";
    add("driver version", differ("the driver", first.version(driver), second.version(driver)));
    add("launch shape", shapes(heads_before, heads_after, pairs));
    add("serialised", Some(SERIALISED.to_owned()));
    found
}

const SERIALISED: &str = "ncu runs kernels one at a time, and may flush caches and lock clocks: times here are not those of the program, \
                          so confirm a change with a benchmark";

fn differ(what: &str, before: Option<&str>, after: Option<&str>) -> Option<String> {
    let (before, after) = (before.filter(|name| !name.is_empty())?, after.filter(|name| !name.is_empty())?);
    (before != after).then(|| format!("{what} differs: {before} before, {after} after"))
}

/// The option as given, or as ncu has it if it was not given; `None` where the command line is not in the report.
fn setting<'a>(session: &'a Session, option: &str) -> Option<&'a str> {
    let given = session.settings.iter().find(|(known, _)| *known == option).map(|(_, value)| value.as_str());
    let default = || DEFAULTS.iter().find(|(known, _)| *known == option).map(|(_, value)| *value);
    given.or_else(|| session.command_line.as_ref().and_then(|_| default()))
}

/// The device that was profiled: that of the first result, or the only one there is.
fn device<'a>(report: &'a Report, heads: &[Head]) -> Option<&'a Device> {
    let devices = &report.session().devices;
    let wanted = report.select().values(|name| name == "launch__device_id");
    let result = heads.first().and_then(|head| report.decode(head.id, &wanted));
    let id = result.and_then(|result| result.metrics.whole("launch__device_id"));
    match id {
        Some(id) => devices.iter().find(|device| u64::from(device.id) == id),
        None => devices.first().filter(|_| devices.len() == 1),
    }
}

/// How many results were measured with locked clocks, and how many without.
fn locked(heads: &[Head]) -> (usize, usize) {
    let count = |locked: bool| heads.iter().filter(|head| head.clocks_locked == Some(locked)).count();
    (count(true), count(false))
}

fn clocks(first: &Session, second: &Session, before: &[Head], after: &[Head]) -> Option<String> {
    let options = differ("--clock-control", setting(first, "clock-control"), setting(second, "clock-control"));
    let word = |heads: &[Head]| match locked(heads) {
        (0, 0) => None,
        (_, 0) => Some("locked"),
        (0, _) => Some("free"),
        _ => Some("locked for some kernels only"),
    };
    let (before, after) = (word(before), word(after));
    let state = match (before, after) {
        (Some(before), Some(after)) if before != after => {
            Some(format!("the clocks were {before} before and {after} after: times differ by that alone"))
        }
        (Some("locked") | None, Some("locked") | None) => None,
        _ => Some("the clocks were not locked: times vary from run to run".to_owned()),
    };
    match (options, state) {
        (Some(options), Some(state)) => Some(format!("{options}; {state}")),
        (options, state) => options.or(state),
    }
}

/// A page of ncu without rules says nothing about what they would have said.
fn rules(before: &Report, after: &Report) -> Option<String> {
    let sides = match (before.page() == Page::Raw, after.page() == Page::Raw) {
        (false, false) => return None,
        (true, true) => "both are",
        (true, false) => "the first is",
        (false, true) => "the second is",
    };
    Some(format!("no rules on this page ({sides} of `--page raw`): what ncu suggests is not compared"))
}

/// What was collected of the first result of each; rules and figures of the other sections cannot be compared.
fn sections(before: &Report, after: &Report, heads_before: &[Head], heads_after: &[Head]) -> Option<String> {
    let of = |report: &Report, heads: &[Head]| -> BTreeSet<String> {
        let result = heads.first().and_then(|head| report.decode(head.id, &report.select().sections()));
        result.into_iter().flat_map(|result| result.sections).map(|section| section.id).collect()
    };
    if before.page() != after.page() {
        // A table names the sections that it has rows of, which says nothing about the others.
        return None;
    }
    let (first, second) = (of(before, heads_before), of(after, heads_after));
    if first.is_empty() || second.is_empty() || first == second {
        return None;
    }
    let list = |names: Vec<&str>, side: &str| if names.is_empty() { None } else { Some(format!("only {side}: {}", names.join(", "))) };
    let only = |a: &BTreeSet<String>, b: &BTreeSet<String>, side| list(a.difference(b).map(String::as_str).collect(), side);
    let parts: Vec<String> = [only(&first, &second, "before"), only(&second, &first, "after")].into_iter().flatten().collect();
    Some(format!("different sections were collected ({})", parts.join("; ")))
}

/// Pairs that do not launch the same number of blocks or threads.
fn shapes(before: &[Head], after: &[Head], pairs: &[Matched]) -> Option<String> {
    let differs = |pair: &&Matched| {
        let (first, second) = (&before[pair.before], &after[pair.after]);
        let known = first.grid.is_some() && second.grid.is_some();
        known && (first.grid != second.grid || first.block != second.block)
    };
    let count = pairs.iter().filter(differs).count();
    let example = pairs.iter().find(differs)?;
    let (first, second) = (&before[example.before], &after[example.after]);
    let shape = |head: &Head| {
        let sizes = |sizes: Option<[u64; 3]>| sizes.map_or_else(|| "?".to_owned(), |[x, y, z]| format!("{x}x{y}x{z}"));
        format!("{} of {}", sizes(head.grid), sizes(head.block))
    };
    let kernels = if count == 1 { "1 kernel was".to_owned() } else { format!("{count} kernels were") };
    Some(format!(
        "{kernels} launched with another grid or block, the first is `{}` ({} before, {} after): the same work cannot be taken for granted",
        first.function,
        shape(first),
        shape(second)
    ))
}
