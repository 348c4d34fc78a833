//! Names of markers: which differ only in numbers that change each step.

use foldhash::fast::FixedState;
use hashbrown::{HashMap, HashSet};

/// What stands before a number that tells what a step is (tokens, requests): such a number is part of the name.
const KEPT_AFTER: &[&str] = &["execute_", "context_", "generation_", "bs=", "toks=", "tokens=", "batch_size=", "batch="];
/// What stands before a number that changes each step: the step's own number, the length of the cache, and sums made of it.
const DROPPED_AFTER: &[&str] = &["ProfilerStep#", "sqsk", "sqsq", "sk"];

/// Text and numbers of a name in turn; the text comes first.
fn split(name: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = name;
    let mut digits = false;
    while !rest.is_empty() {
        let end = rest.find(|c: char| c.is_ascii_digit() != digits).unwrap_or(rest.len());
        parts.push(&rest[..end]);
        rest = &rest[end..];
        digits = !digits;
    }
    parts
}

/// The name with every number as `*`.
pub(super) fn template(name: &str) -> String {
    split(name).into_iter().enumerate().map(|(at, part)| if at % 2 == 1 { "*" } else { part }).collect()
}

/// The name with every number that is a word of its own as `*`: that of `epoch 3`, not those of `Qwen3-4B`.
pub(super) fn without_whole_numbers(name: &str) -> String {
    let parts = split(name);
    let is_letter = |c: Option<char>| c.is_some_and(char::is_alphabetic);
    let is_whole = |at: usize| {
        let before = at.checked_sub(1).and_then(|before| parts[before].chars().next_back());
        !is_letter(before) && !is_letter(parts.get(at + 1).and_then(|after| after.chars().next()))
    };
    (0..parts.len()).map(|at| if at % 2 == 1 && is_whole(at) { "*" } else { parts[at] }).collect()
}

/// Names to show for markers of one template, one each: numbers that differ in more than half of them are `*`, the others stay.
pub(super) fn shown(names: &[&str]) -> Vec<String> {
    let parts: Vec<Vec<&str>> = {
        // Distinct names are few or all different; either way each is split once.
        let mut known: HashMap<&str, Vec<&str>, FixedState> = HashMap::default();
        names.iter().map(|name| known.entry(name).or_insert_with(|| split(name)).clone()).collect()
    };
    let width = parts.iter().map(Vec::len).max().unwrap_or(0);
    let starred: Vec<bool> = (0..width)
        .map(|at| {
            if at % 2 == 0 {
                return false;
            }
            let before = parts.first().and_then(|parts| parts.get(at - 1)).copied().unwrap_or("");
            if DROPPED_AFTER.iter().any(|end| before.ends_with(end)) {
                return true;
            }
            if KEPT_AFTER.iter().any(|end| before.ends_with(end)) {
                return false;
            }
            let distinct: HashSet<&str, FixedState> = parts.iter().filter_map(|parts| parts.get(at).copied()).collect();
            names.len() > 1 && distinct.len() * 2 > names.len()
        })
        .collect();
    let show = |parts: &Vec<&str>| -> String { parts.iter().enumerate().map(|(at, part)| if starred[at] { "*" } else { part }).collect() };
    // The range table says `ProfilerStep*`.
    parts.iter().map(show).map(|name| if name == "ProfilerStep#*" { "ProfilerStep*".to_owned() } else { name }).collect()
}

/// The same for markers of several templates; in the order given.
pub(super) fn shown_by_template(names: &[&str]) -> Vec<String> {
    let mut of_template: HashMap<String, Vec<usize>, FixedState> = HashMap::default();
    for (at, name) in names.iter().enumerate() {
        of_template.entry(template(name)).or_default().push(at);
    }
    let mut all = vec![String::new(); names.len()];
    for members in of_template.values() {
        let like: Vec<&str> = members.iter().map(|&at| names[at]).collect();
        for (&at, name) in members.iter().zip(shown(&like)) {
            all[at] = name;
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_change_each_step_are_stars() {
        assert_eq!(template("step 12 of 90"), "step * of *");
        assert_eq!(
            shown(&["decode bs 8 step 1", "decode bs 8 step 2", "decode bs 4 step 3", "decode bs 4 step 4"])[2],
            "decode bs 4 step *"
        );
        assert_eq!(shown(&["ProfilerStep#7"]), ["ProfilerStep*"]);
        assert_eq!(shown(&["prefill", "prefill"])[1], "prefill");
    }

    #[test]
    fn numbers_of_words_are_part_of_a_name() {
        for (name, without) in [
            ("epoch 3", "epoch *"),
            ("ProfilerStep#12", "ProfilerStep#*"),
            ("Qwen3-4B", "Qwen3-4B"),
            ("Qwen3-0.6B", "Qwen3-*.6B"),
            ("7 of 9", "* of *"),
            ("", ""),
        ] {
            assert_eq!(without_whole_numbers(name), without);
        }
    }

    #[test]
    fn token_counts_stay_and_cache_lengths_go() {
        let name = |tokens: u32, cache: u32| {
            format!("execute_{tokens}_context_0(sq0sk0sqsq0sqsk0)_generation_{tokens}(sq{tokens}sk{cache}sqsq{tokens}sqsk{cache})")
        };
        let names: Vec<String> = (0..6).map(|step| name(if step < 4 { 32 } else { 31 }, 55_086 + step * 32)).collect();
        let all: Vec<&str> = names.iter().map(String::as_str).collect();
        let shown = shown(&all);
        assert_eq!(shown[0], "execute_32_context_0(sq0sk*sqsq*sqsk*)_generation_32(sq32sk*sqsq*sqsk*)");
        assert_eq!(shown[0], shown[3]);
        assert_ne!(shown[3], shown[4]);
    }
}
