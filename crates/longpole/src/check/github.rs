//! What GitHub shows beside a change: workflow commands, one a line.
//!
//! A limit that fails is an error at its line of the budget, one that two recordings cannot decide a warning, the whole a notice.

use std::fmt::Write as _;

use longpole_report::{CheckReport, CheckVerdict, CheckedLimit, printable};

/// The text of a message, which may not end its line.
fn message(text: &str) -> String {
    printable(text).replace('%', "%25")
}

/// The value of a property, which may not end it either.
fn property(text: &str) -> String {
    message(text).replace(':', "%3A").replace(',', "%2C")
}

/// All of them.
pub(crate) fn annotations(report: &CheckReport) -> String {
    let mut out = String::new();
    let mut say = |level: &str, limit: &CheckedLimit| {
        let (file, title, said) = (property(&report.budget), property(&limit.name), message(&limit.sentence()));
        // Writing to a String cannot fail.
        let _ = writeln!(out, "::{level} file={file},line={},title={title}::{said}", limit.line);
    };
    for limit in &report.limits {
        match limit.verdict {
            _ if !limit.ok => say("error", limit),
            CheckVerdict::Ambiguous | CheckVerdict::Missing => say("warning", limit),
            CheckVerdict::Broken | CheckVerdict::Ok => {}
        }
    }
    let head = if report.is_ok() { "Within budget" } else { "Over budget" };
    let _ = writeln!(out, "::notice file={},title={head}::{}", property(&report.budget), message(&report.summary()));
    out
}

#[cfg(test)]
mod tests {
    use longpole_report::{Amount, CheckBound, CheckUnit};

    use super::*;

    #[test]
    fn a_name_cannot_end_its_line_or_its_property() {
        let limit = CheckedLimit {
            name: "a,b: 5 %\n::error::x".to_owned(),
            path: "idle.idle_ns".to_owned(),
            over: None,
            line: 7,
            unit: CheckUnit::Time,
            bound: CheckBound::Max,
            limit: Amount::whole(5),
            value: Some(Amount::whole(6)),
            change: None,
            baseline: None,
            interval: None,
            verdict: CheckVerdict::Broken,
            ok: false,
            reason: None,
        };
        let report = CheckReport { budget: "b,1.toml".to_owned(), limits: vec![limit], notes: Vec::new() };
        assert_eq!(
            annotations(&report),
            "::error file=b%2C1.toml,line=7,title=a%2Cb%3A 5 %25\\n%3A%3Aerror%3A%3Ax::a,b: 5 %25\\n::error::x: 6 ns, limit at most 5 ns\n\
             ::notice file=b%2C1.toml,title=Over budget::1 limit, 1 broken\n"
        );
    }
}
