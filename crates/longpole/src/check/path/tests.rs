use proptest::prelude::*;
use serde_json::json;

use super::*;

fn document() -> Value {
    json!({
        "idle_ns": 7,
        "peak_bytes": null,
        "big": u64::MAX,
        "groups": [
            { "name": "prefill", "device": 0, "busy_ns": 9, "rows": [{ "role": "a", "calls": 1 }, { "role": "b", "calls": null }] },
            { "name": "decode_step", "device": 0, "busy_ns": 4, "rows": [{ "role": "a", "calls": 5 }] },
            { "name": "decode_step", "device": 1, "busy_ns": 5, "rows": [] },
        ],
        "empty": [],
        "smells": [{ "code": "x", "evidence": { "n": 3 } }, { "code": "y", "evidence": {} }],
    })
}

fn find(path: &str) -> Result<Amount, NoFigure> {
    path.parse::<Path>().unwrap().find(&document())
}

#[test]
fn figures_are_found() {
    for (path, expected) in [
        ("steps.idle_ns", 7),
        ("steps.groups[0].busy_ns", 9),
        ("steps.groups[name=prefill].busy_ns", 9),
        ("steps.groups[name=pre*].busy_ns", 9),
        ("steps.groups[name=*fil*].busy_ns", 9),
        ("steps.groups[name=decode_step][device=1].busy_ns", 5),
        ("steps.groups[name=decode_step][1].busy_ns", 5),
        ("sum(steps.groups[*].busy_ns)", 18),
        (" max( steps.groups[name=decode*].busy_ns ) ", 5),
        ("min(steps.groups[*].busy_ns)", 4),
        ("count(steps.groups[name=decode_step])", 2),
        ("count(steps.groups[name=none])", 0),
        ("count(steps.groups)", 3),
        ("count(steps.empty)", 0),
        ("count(steps.peak_bytes)", 0),
        ("count(steps.groups[*].rows[*].calls)", 2),
        ("count(steps.smells[code=x])", 1),
        ("sum(steps.groups[*].rows[*].calls)", 6),
        ("sum(steps.groups[*].rows[role=a].calls)", 6),
        ("steps.smells[code=x].evidence.n", 3),
    ] {
        assert_eq!(find(path), Ok(Amount::whole(expected)), "{path}");
    }
    assert_eq!(find("steps.big"), Ok(Amount::whole(u64::MAX)), "whole numbers stay exact");
}

#[test]
fn what_is_not_there_says_what_is() {
    for (path, part) in [
        ("steps.groups[name=decode].busy_ns", "there are prefill, decode_step"),
        ("steps.groups[9].busy_ns", "has 3 rows"),
        ("steps.empty[0].x", "`steps.empty` is empty"),
        ("sum(steps.empty[*].x)", "is empty"),
        ("steps.peak_bytes", "not recorded"),
        ("steps.peak_bytes[0].x", "not recorded"),
        ("steps.smells[code=y].evidence.n", "not recorded"),
    ] {
        assert!(matches!(find(path), Err(NoFigure::Missing(why)) if why.contains(part)), "{path}: {:?}", find(path));
    }
    for (path, part) in [
        ("steps.grups", "has no key `grups`; there are "),
        ("steps.groups.busy_ns", "is a list of 3"),
        ("steps.groups", "is a list of 3"),
        ("steps.groups[nam=x].busy_ns", "have no key `nam`"),
        ("steps.groups[name=decode_step].busy_ns", "selects 2 figures"),
        ("steps.groups[0].name", "is a text, not a number"),
        ("steps.idle_ns[0]", "is no list"),
        ("count(steps.smells[evidence=*])", "`evidence` in rows of `steps.smells` is an object, which no text selects"),
        ("count(steps.groups[rows=*])", "`rows` in rows of `steps.groups` is a list"),
        ("count(steps.smells[*].evidence)", "`steps.smells.evidence` is an object"),
        ("steps.idle_ns.x", "is a number: it has no key"),
    ] {
        assert!(matches!(find(path), Err(NoFigure::Wrong(why)) if why.contains(part)), "{path}: {:?}", find(path));
    }
}

#[test]
fn what_is_no_path_says_why() {
    for (path, part) in [
        ("", "begins with a command"),
        ("diff.rows", "begins with a command (triage"),
        ("steps", "ends at `steps`"),
        ("steps[0]", "is an object"),
        ("steps..x", "a key is missing"),
        ("steps.x y", "neither"),
        ("steps.x[", "not closed"),
        ("steps.x[name=a\\]", "not closed"),
        ("steps.x[]", "selects nothing"),
        ("steps.x[=a]", "selects nothing"),
        ("steps.x[99999999999999999999999]", "no place"),
        ("sum(steps.x", "no closing parenthesis"),
        ("mean(steps.x)", "begins with a command"),
    ] {
        let error = path.parse::<Path>().unwrap_err();
        assert!(error.contains(part), "{path}: {error}");
    }
    assert!("steps".repeat(2000).parse::<Path>().is_err());
}

#[test]
fn endings_say_what_a_key_counts() {
    for (key, unit) in [
        ("busy_ns", CheckUnit::Time),
        ("ns_per_step", CheckUnit::Time),
        ("floor_per_call_ns", CheckUnit::Time),
        ("peak_bytes", CheckUnit::Bytes),
        ("bytes_per_call", CheckUnit::Bytes),
        ("memory_bytes_per_s", CheckUnit::Number),
        ("gpu_busy_fraction", CheckUnit::Share),
        ("dram_pct", CheckUnit::Percent),
        ("kernels_per_step", CheckUnit::Number),
        ("columns", CheckUnit::Number),
    ] {
        assert_eq!(unit_of(key), unit, "{key}");
    }
    assert_eq!("count(steps.groups[*].busy_ns)".parse::<Path>().unwrap().unit(), CheckUnit::Number);
}

fn paths() -> impl Strategy<Value = Path> {
    let key = "[a-z_][a-z0-9_]{0,8}";
    let selector = prop_oneof![
        (0..1_000_usize).prop_map(Part::At),
        Just(Part::All),
        (key, any::<String>()).prop_map(|(key, name)| Part::Where(key, Pattern::new(&literal(&name)))),
        (key, ".{0,12}").prop_map(|(key, text)| Part::Where(key, Pattern::new(&text))),
    ];
    let part = (key, prop::collection::vec(selector, 0..3));
    let fold = prop::option::of(prop::sample::select(FOLDS.to_vec()).prop_map(|(_, fold)| fold));
    (fold, prop::sample::select(Name::ALL.to_vec()), prop::collection::vec(part, 1..5)).prop_map(|(fold, document, parts)| Path {
        fold,
        document,
        parts: parts.into_iter().flat_map(|(key, selectors)| std::iter::once(Part::Key(key)).chain(selectors)).collect(),
    })
}

proptest! {
    #[test]
    fn a_path_is_read_as_it_is_written(path in paths()) {
        let text = path.to_string();
        prop_assume!(text.len() <= MOST_BYTES);
        prop_assert_eq!(text.parse::<Path>(), Ok(path), "{}", text);
    }

    #[test]
    fn any_text_is_a_path_or_an_error(text in any::<String>(), tail in r"[a-z.\[\]=*\\0-9()]{0,40}") {
        for text in [text.clone(), format!("steps{text}"), format!("steps.groups{tail}"), format!("sum(steps.{tail})")] {
            if let Ok(path) = text.parse::<Path>() {
                let _ = path.find(&document());
                prop_assert_eq!(path.to_string().parse::<Path>(), Ok(path.clone()));
            }
        }
    }

    #[test]
    fn a_name_finds_itself_whatever_is_in_it(name in any::<String>()) {
        let pattern = Pattern::new(&literal(&name));
        prop_assert!(pattern.matches(&name));
        let longer = name.clone() + "x";
        prop_assert!(!pattern.matches(&longer));
    }

    #[test]
    fn patterns_match_as_the_naive_way_says(pattern in "[ab*]{0,6}", text in "[ab]{0,8}") {
        fn naive(pattern: &[u8], text: &[u8]) -> bool {
            match pattern {
                [] => text.is_empty(),
                [b'*', rest @ ..] => (0..=text.len()).any(|at| naive(rest, &text[at..])),
                [first, rest @ ..] => text.first() == Some(first) && naive(rest, &text[1..]),
            }
        }
        prop_assert_eq!(Pattern::new(&pattern).matches(&text), naive(pattern.as_bytes(), text.as_bytes()));
    }
}
