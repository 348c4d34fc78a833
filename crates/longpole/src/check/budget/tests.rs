use proptest::prelude::*;

use super::*;

fn with(more: &str) -> String {
    format!("version = 1\n{more}\n")
}

#[test]
fn a_budget_is_read() {
    let budget = parse(
        r#"
        version = 1
        [scope]
        range = "decode_step"
        time = "10ms..20ms"
        [[limit]]
        name = "kernels"
        path = "steps.groups[name=decode_step].kernels_per_step"
        min = 1
        max = 1700
        [[limit]]
        path = "idle.idle_ns"
        of = "idle.span_ns"
        max = "30 %"
        missing = "ok"
        [[limit]]
        path = "sum(memory.memory[*].allocations)"
        per = "step"
        step = "decode*"
        max = 12.5
        [[regression]]
        baseline = "base.json.gz"
        step = "decode_step"
        max_slower = "3 %"
        ambiguous = "fail"
        [[regression]]
        baseline = "base.json"
        path = "triage.totals.gpu_busy_fraction"
        max_drop = 0.05
        "#,
    )
    .unwrap();
    assert_eq!((budget.scope.range.as_deref(), budget.limits.len(), budget.regressions.len()), (Some("decode_step"), 3, 2));
    let [kernels, idle, allocations] = &budget.limits[..] else { panic!() };
    assert_eq!((kernels.name.as_str(), kernels.line, kernels.bounds.len()), ("kernels", 8, 2));
    assert_eq!(idle.bounds, [(CheckBound::Max, Amount::decimal("0.3", 1, 1).unwrap())]);
    assert!(idle.missing_is_ok && idle.figure.of.is_some());
    assert!(matches!(&allocations.figure.per, Some(Per::StepOf(_, name)) if name == "decode*"));
    assert_eq!(allocations.bounds[0].1, Amount::decimal("12.5", 1, 1).unwrap());
    let [steps, share] = &budget.regressions[..] else { panic!() };
    assert_eq!((steps.name.as_str(), steps.ambiguous_is_ok, steps.line), ("decode_step time", false, 22));
    assert_eq!(share.bound, CheckBound::MaxDrop);
}

#[test]
fn what_is_wrong_is_said_with_its_line() {
    let limit = "[[limit]]\npath = \"idle.idle_ns\"\n";
    let regression = "[[regression]]\nbaseline = \"b\"\n";
    for (text, parts) in [
        (String::new(), &["version"][..]),
        ("version = 2".to_owned(), &["line 1", "version 2 is not known"]),
        (with(""), &["neither a [[limit]] nor a [[regression]]"]),
        (with(&format!("{limit}max = 5\nmost = 3")), &["line 5", "unknown field `most`"]),
        (with("[[limits]]\n"), &["line 2", "unknown field `limits`"]),
        (with(limit), &["line 2", "needs `max`, `min` or both"]),
        (with(&format!("{limit}max = \"5 GiB\"")), &["line 4", "does not fit what the path leads to", "5 ms"]),
        (with(&format!("{limit}max = [1]")), &["line 4", "a number, or a text"]),
        (with(&format!("{limit}max = nan")), &["line 4", "is no limit"]),
        (with(&format!("{limit}max = 1979-05-27")), &["line 4"]),
        (with(&format!("{limit}max = 1\nmin = 2")), &["`min` is more than `max`"]),
        (with(&format!("{limit}max = 1\nmissing = \"maybe\"")), &["line 5", "`maybe`", "`ok` or `fail`"]),
        (with(&format!("{limit}max = 1\nper = \"hour\"")), &["line 5", "`per` may be \"step\""]),
        (with(&format!("{limit}max = 1\nstep = \"x\"")), &["`per = \"step\"`"]),
        (with(&format!("{limit}max = 1\nof = \"memory.peak_allocated_bytes\"")), &["line 5", "do not count the same"]),
        (with("[[limit]]\npath = \"idle\"\nmax = 1"), &["line 3", "a key has to follow"]),
        (with("[[limit]]\nmax = 1"), &["line 2", "missing field `path`"]),
        (with("[scope]\ntime = \"5..3\"\n[[limit]]\npath = \"idle.x\"\nmax = 1"), &["line 3", "ends before it begins"]),
        (with(regression), &["line 2", "needs `max_slower`"]),
        (with(&format!("{regression}max_slower = \"-3 %\"")), &["line 4", "below zero"]),
        (with(&format!("{regression}max_slower = \"3 ms\"")), &["line 4", "does not fit"]),
        (with(&format!("{regression}max_drop = \"3 %\"")), &["belongs to a `path`"]),
        (with(&format!("{regression}max_slower = 0.1\nrole = \"a\"\nkernel = \"b\"")), &["use one of path, figure"]),
        (with(&format!("{regression}max_slower = 0.1\nfigure = \"speed\"")), &["line 5", "`speed`", "`period`"]),
        ("version = 1\nversion = 1".to_owned(), &["line 2", "duplicate key"]),
        ("version = ".to_owned(), &["line 1"]),
    ] {
        let error = parse(&text).unwrap_err();
        assert!(parts.iter().all(|part| error.contains(part)) && error.lines().count() == 1, "{text}\n{error}");
    }
}

#[test]
fn hostile_files_are_errors() {
    for text in [
        format!("version = {}", "[".repeat(100_000)),
        format!("version = {}1{}", "[".repeat(100_000), "]".repeat(100_000)),
        format!("version = {}", "{a=".repeat(100_000)),
        format!("{}a = 1", "a.".repeat(100_000)),
        format!("[{}a]", "a.".repeat(100_000)),
        with(&"[[limit]]\npath = \"idle.x\"\nmax = 1\n".repeat(MOST_LIMITS + 1)),
        "\u{feff}\u{0}\u{1b}[31m".to_owned(),
    ] {
        assert!(parse(&text).is_err());
    }
}

proptest! {
    #[test]
    fn any_text_is_a_budget_or_an_error(text in any::<String>(), more in r#"[a-z =\[\]"'{}\n.0-9]{0,60}"#) {
        let _ = parse(&text);
        prop_assert!(parse(&with(&more)).is_err());
    }
}
