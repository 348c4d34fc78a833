//! The trust header: how far the numbers below it can be believed, and why.

use longpole_trace::{Ns, Problems, Severity};

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
    /// What happened.
    pub message: &'static str,
    /// What the user can do.
    pub hint: &'static str,
    /// The first example, if there is one to show.
    pub example: Option<String>,
    /// Where the first example is in the decompressed input, in bytes.
    pub first_offset: Option<u64>,
    /// A time that goes with it: time read before the cut of a cut file, largest skew, summed overhead.
    pub time: Option<Ns>,
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
        let grade = match problems.worst() {
            None | Some(Severity::Info) => Grade::Good,
            Some(Severity::Notice) => Grade::Noted,
            Some(Severity::DataLoss | Severity::Error) => Grade::Partial,
        };
        let mut notes: Vec<_> = problems
            .iter()
            .map(|problem| {
                let (code, severity, message, hint) = problem.code.describe();
                Note {
                    code,
                    severity,
                    count: problem.count,
                    message,
                    hint,
                    example: problem.example.clone(),
                    first_offset: problem.first_offset,
                    time: problem.time,
                }
            })
            .collect();
        notes.sort_by_key(|note| std::cmp::Reverse(note.severity));
        Self { grade, notes }
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
}
