//! The trust header: how far the numbers below it can be believed, and why.

use longpole_ncu::Trouble;
use longpole_trace::{Ns, Problem, Problems, Severity};

use crate::units::percent;

/// How complete the data behind a report is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grade {
    /// Nothing to report: facts about the recording at most.
    Good,
    /// Something was counted or adjusted; no data is missing.
    Noted,
    /// Data is missing: totals are lower bounds.
    Partial,
}

impl Grade {
    /// The word used in text and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Noted => "noted",
            Self::Partial => "partial",
        }
    }

    /// What the grade means for a reader of the numbers.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Good => "no data was lost",
            Self::Noted => "no data was lost, some events needed care",
            Self::Partial => "data was lost, totals are lower bounds",
        }
    }
}

/// One kind of trouble, counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Stable code.
    pub code: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// How often it was seen.
    pub count: u64,
    /// What happened, with its share where that matters more than the count.
    pub message: String,
    /// What the user can do.
    pub hint: &'static str,
    /// The first example, if there is one to show.
    pub example: Option<String>,
    /// Where the first example is in the decompressed input, in bytes.
    pub first_offset: Option<u64>,
    /// A time that goes with it: time read before the cut of a cut file, largest skew, summed overhead.
    pub time: Option<Ns>,
    /// What the count is a part of.
    pub out_of: Option<u64>,
}

impl Note {
    /// False for facts that change no number and ask nothing of the reader; those are kept for JSON.
    pub fn is_worth_a_line(&self) -> bool {
        self.severity != Severity::Info || self.hint != "nothing to do"
    }
}

/// The trust header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trust {
    /// The grade.
    pub grade: Grade,
    /// Its reasons, most severe first.
    pub notes: Vec<Note>,
}

impl Trust {
    /// Judges everything that an importer and the analyses counted.
    pub fn new(problems: &Problems) -> Self {
        let mut notes: Vec<_> = problems
            .iter()
            .map(|problem| {
                let (code, severity, message, hint) = problem.code.describe();
                Note {
                    code,
                    severity,
                    count: problem.count,
                    message: message_of(problem, message),
                    hint: problem.hint.unwrap_or(hint),
                    example: problem.example.clone(),
                    first_offset: problem.first_offset,
                    time: problem.time,
                    out_of: problem.out_of,
                }
            })
            .collect();
        notes.sort_by_key(|note| std::cmp::Reverse(note.severity));
        Self { grade: grade(problems.worst()), notes }
    }

    /// Judges everything that was counted while a report of Nsight Compute was read.
    pub fn of_report(troubles: &[Trouble]) -> Self {
        let mut notes: Vec<_> = troubles
            .iter()
            .map(|trouble| {
                let (code, severity, message, hint) = trouble.code.describe();
                Note {
                    code,
                    severity: match severity {
                        longpole_ncu::Severity::Info => Severity::Info,
                        longpole_ncu::Severity::Notice => Severity::Notice,
                        longpole_ncu::Severity::DataLoss => Severity::DataLoss,
                    },
                    count: trouble.count,
                    message: message.to_owned(),
                    hint,
                    example: trouble.example.clone(),
                    first_offset: trouble.first_offset,
                    time: None,
                    out_of: None,
                }
            })
            .collect();
        notes.sort_by_key(|note| std::cmp::Reverse(note.severity));
        Self { grade: grade(notes.iter().map(|note| note.severity).max()), notes }
    }
}

/// The grade that the worst of all troubles gives.
const fn grade(worst: Option<Severity>) -> Grade {
    match worst {
        None | Some(Severity::Info) => Grade::Good,
        Some(Severity::Notice) => Grade::Noted,
        Some(Severity::DataLoss | Severity::Error) => Grade::Partial,
    }
}

/// `3.1 % of launches have ...`, where the whole is known.
fn message_of(problem: &Problem, message: &str) -> String {
    let share = |part: f64, whole: f64| percent(part / whole);
    match (problem.out_of, problem.time.zip(problem.time_out_of)) {
        (Some(whole), _) if whole > 0 => format!("{} % of {message}", share(problem.count as f64, whole as f64)),
        (_, Some((time, wall))) if wall > Ns::ZERO => {
            format!("{message}, {} % of wall", share(time.get() as f64, wall.get() as f64))
        }
        _ => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use longpole_trace::ProblemCode;

    use super::*;

    fn trust(codes: &[ProblemCode]) -> Trust {
        let mut problems = Problems::default();
        for &code in codes {
            problems.add(code, None, || None);
        }
        Trust::new(&problems)
    }

    #[test]
    fn the_worst_problem_grades_the_trace() {
        assert_eq!(trust(&[]).grade, Grade::Good);
        assert_eq!(trust(&[ProblemCode::UnusedEventKind]).grade, Grade::Good);
        assert_eq!(trust(&[ProblemCode::UnusedEventKind, ProblemCode::OrphanActivity]).grade, Grade::Noted);
        assert_eq!(trust(&[ProblemCode::OrphanActivity, ProblemCode::Truncated]).grade, Grade::Partial);
    }

    #[test]
    fn notes_are_ordered_by_severity() {
        let notes = trust(&[ProblemCode::NoOperators, ProblemCode::OrphanActivity, ProblemCode::LaunchWithoutActivity]).notes;
        let codes: Vec<_> = notes.iter().map(|n| n.code).collect();
        assert_eq!(codes, ["launch_without_activity", "orphan_activity", "no_operators"]);
        assert!(!trust(&[ProblemCode::UnusedEventKind]).notes[0].is_worth_a_line());
        assert!(trust(&[ProblemCode::NoOperators]).notes[0].is_worth_a_line());
    }

    #[test]
    fn shares_are_said_where_the_whole_is_known() {
        let mut problems = Problems::default();
        problems.add_many(ProblemCode::LaunchWithoutActivity, 25, None, || None);
        problems.note_out_of(ProblemCode::LaunchWithoutActivity, 200);
        problems.add_many(ProblemCode::ProfilerOverhead, 3, None, || None);
        problems.note_time(ProblemCode::ProfilerOverhead, Ns(5));
        problems.note_time_out_of(ProblemCode::ProfilerOverhead, Ns(100));
        let notes = Trust::new(&problems).notes;
        assert_eq!(notes[0].message, "12.5 % of launches have no device event: device totals are a lower bound");
        assert_eq!((notes[0].count, notes[0].out_of), (25, Some(200)));
        assert_eq!(notes[1].message, "the profiler's own bookkeeping appears inside the window, 5.0 % of wall");
        assert_eq!(trust(&[ProblemCode::Truncated]).notes[0].message, "the file ends early; everything before the cut was read");
    }
}
