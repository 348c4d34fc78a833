//! Windows of time, and the halves of a group's steps in each: what warms up does so at the begin of each of them.

use longpole_trace::{Ns, Trace};

use super::Program;
use super::group::Raw;
use super::types::Step;
use crate::index::TraceIndex;

/// Starts of the windows that the ranges of this name make on the host, ascending; ranges that overlap are one window.
pub fn window_starts(trace: &Trace, name: &str) -> Vec<Ns> {
    let ranges = &trace.ranges;
    let Some(wanted) = (0..ranges.len()).map(|row| ranges.name[row]).find(|&id| trace.strings.get(id) == name) else { return Vec::new() };
    let mut of_name: Vec<(Ns, Ns)> =
        (0..ranges.len()).filter(|&row| ranges.name[row] == wanted).map(|row| (ranges.start[row], ranges.end(row))).collect();
    of_name.sort_unstable();
    let (mut starts, mut covered) = (Vec::new(), Ns::MIN);
    for (start, end) in of_name {
        if start >= covered {
            starts.push(start);
        }
        covered = covered.max(end);
    }
    starts
}

/// The window of each step, by when its first work was launched: the device may be at it when the next window has begun. Work without a recorded
/// launch is of the window in which it ran. `starts` are the windows that were asked for; those of the recording part steps besides.
pub(super) fn windows_of(index: &TraceIndex<'_>, program: &Program, raws: &[Raw], starts: &[Ns]) -> Vec<usize> {
    let trace = index.trace();
    let unobserved = trace.unobserved.of_rank(trace.devices[program.sequence.device.index()].rank as usize);
    let mut starts: Vec<Ns> = starts.iter().copied().chain(unobserved.intervals().iter().map(|stretch| stretch.end)).collect();
    starts.sort_unstable();
    let of = |raw: &Raw| {
        let &first = program.sequence.activities.get(*raw.positions.first()? as usize)?;
        let at = index.launch(first).map_or(trace.activities.start[first.index()], |(_, at)| at);
        Some(starts.partition_point(|&start| start <= at))
    };
    raws.iter().map(|raw| of(raw).unwrap_or(0)).collect()
}

/// How steps are halved.
#[derive(Clone, Copy, Debug)]
pub(super) struct Halving<'w> {
    pub(super) last_half: bool,
    /// The window of each step.
    pub(super) window_of: &'w [usize],
}

/// The halves of a group's steps, and which of them are kept.
#[derive(Debug, Default)]
pub(super) struct Halves {
    /// Steps that figures are of.
    pub(super) kept: Vec<usize>,
    /// Steps that are left out for coming before the second half.
    pub(super) before: Vec<usize>,
    /// Steps in each half.
    pub(super) steps: usize,
    pub(super) first_busy: Ns,
    pub(super) second_busy: Ns,
}

impl Halving<'_> {
    /// The halves of these steps, which are in order of time. A window's only step is kept, and in neither half.
    pub(super) fn halves(self, members: &[usize], steps: &[Option<Step>]) -> Halves {
        let busy = |members: &[usize]| members.iter().filter_map(|&at| steps[at].as_ref()).map(|step| step.busy_ns).sum::<Ns>();
        let mut halves = Halves::default();
        for window in members.chunk_by(|&a, &b| self.window_of[a] == self.window_of[b]) {
            let half = window.len() / 2;
            let (first, second) = (&window[..half], &window[window.len() - half..]);
            halves.steps += half;
            halves.first_busy += busy(first);
            halves.second_busy += busy(second);
            let from = if self.last_half && half > 0 { window.len() - half } else { 0 };
            halves.before.extend(&window[..from]);
            halves.kept.extend(&window[from..]);
        }
        halves
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(busy: i64) -> Step {
        let (activities, rows, layers) = (Vec::new(), Vec::new(), Vec::new());
        Step { number: 0, range: None, start: Ns(0), end: Ns(busy), busy_ns: Ns(busy), period_ns: None, activities, rows, layers }
    }

    #[test]
    fn each_window_is_halved_by_itself() {
        let steps: Vec<Option<Step>> = [9, 5, 4, 8, 3, 2, 1, 7].map(|busy| Some(step(busy))).into();
        let members: Vec<usize> = (0..steps.len()).collect();
        let halves = |last_half, window_of: &[usize]| Halving { last_half, window_of }.halves(&members, &steps);
        let by_window = halves(true, &[1, 1, 1, 2, 2, 2, 2, 3]);
        // The middle one of three is in neither half; the only step of the last window is all that there is of it.
        assert_eq!((by_window.kept, by_window.before), (vec![2, 5, 6, 7], vec![0, 1, 3, 4]));
        assert_eq!((by_window.steps, by_window.first_busy, by_window.second_busy), (3, Ns(9 + 8 + 3), Ns(4 + 2 + 1)));
        let whole = halves(true, &[0; 8]);
        assert_eq!((whole.kept, whole.steps), (vec![4, 5, 6, 7], 4));
        let all = halves(false, &[0; 8]);
        assert_eq!((all.kept, all.before.len(), all.first_busy, all.second_busy), (members.clone(), 0, Ns(26), Ns(13)));
    }
}
