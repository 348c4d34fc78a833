//! Trouble that only shows when the parts of a trace are put together, added to what the importer met.

use longpole_analysis::TraceIndex;
use longpole_trace::{ProblemCode, Problems};

/// Counts what did not fit when launches and device work were joined.
pub(crate) fn add(index: &TraceIndex<'_>, problems: &mut Problems) {
    let counts = index.links().counts();
    problems.add_many(ProblemCode::OrphanActivity, counts.orphan_activities, None, || None);
    problems.add_many(ProblemCode::LaunchWithoutActivity, counts.launches_without_activity, None, || None);
    problems.add_many(ProblemCode::CapturedLaunch, counts.captured_launches, None, || None);
    if counts.starts_before_launch > 0 {
        problems.add_many(ProblemCode::StartBeforeLaunch, counts.starts_before_launch, None, || None);
        problems.note_time(ProblemCode::StartBeforeLaunch, counts.largest_skew);
    }
}
