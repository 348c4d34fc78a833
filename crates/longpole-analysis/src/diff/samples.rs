//! What each step of a group spent on what.

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use longpole_trace::{ActivityId, Interval, Ns, Trace};

use super::roles::Names;
use super::types::{DiffKind, DiffSide, StepFigure};
use crate::families::FamilyOfName;
use crate::idle::IdlePiece;
use crate::index::Owner;
use crate::steps::{Step, StepGroup, own_times_of};

/// Times of one thing in each step, and how often it occurred in all of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Samples {
    /// One time a step, in the order of steps.
    pub(super) times: Vec<i64>,
    /// Activities or intervals.
    pub(super) calls: u64,
    /// Whether the time is the host's: as often as not twice as long in the next recording.
    pub(super) of_host: bool,
}

/// The samples of a group, by kind and name.
pub(super) type Table = HashMap<(DiffKind, String), Samples, FixedState>;

/// A table that is being filled, step by step.
struct Filling {
    table: Table,
    steps: usize,
}

impl Filling {
    fn add(&mut self, kind: DiffKind, key: &str, step: usize, time: Ns, of_host: bool) {
        // The key is only made where it is new.
        let steps = self.steps;
        let samples = self.table.entry((kind, key.to_owned())).or_insert_with(|| Samples { times: vec![0; steps], calls: 0, of_host });
        samples.times[step] += time.get();
        samples.calls += 1;
    }
}

/// Everything that the steps of a group are compared by. `idle` is that of the group's device, in order of time.
pub(super) fn of_group(
    side: &DiffSide<'_, '_>,
    group: &StepGroup,
    roles: &Names,
    idle: &[IdlePiece],
    families: &mut FamilyOfName,
) -> Table {
    let trace = side.index.trace();
    let mut filling = Filling { table: Table::default(), steps: group.steps.len() };
    for (number, step) in group.steps.iter().enumerate() {
        let own = own_times(trace, step);
        // Work of a step is thousands of activities of some tens of names: they are added up by number before anything has a name.
        let mut by_kernel: HashMap<u32, (Ns, u64), FixedState> = HashMap::default();
        let mut by_family: HashMap<&str, (Ns, u64), FixedState> = HashMap::default();
        let mut by_operator: HashMap<Launcher, (Ns, u64), FixedState> = HashMap::default();
        let mut by_row: HashMap<u32, (Ns, u64), FixedState> = HashMap::default();
        for (at, &activity) in step.activities.iter().enumerate() {
            let row = activity.index();
            let add = |slot: &mut (Ns, u64)| *slot = (slot.0 + own[at], slot.1 + 1);
            add(by_kernel.entry(trace.activities.name[row].0).or_default());
            add(by_family.entry(families.get(trace, row).name()).or_default());
            add(by_operator.entry(launcher(side, activity)).or_default());
            if let Some(&row) = step.rows.get(at) {
                add(by_row.entry(row).or_default());
            }
        }
        let mut put = |kind, key: &str, (time, calls): (Ns, u64)| {
            filling.add(kind, key, number, time, false);
            if let Some(samples) = filling.table.get_mut(&(kind, key.to_owned())) {
                samples.calls += calls - 1;
            }
        };
        for (name, sum) in by_kernel {
            put(DiffKind::Kernel, trace.strings.get(longpole_trace::StrId(name)), sum);
        }
        for (family, sum) in by_family {
            put(DiffKind::Family, family, sum);
        }
        for (launcher, sum) in by_operator {
            put(DiffKind::Operator, &launcher_name(side, launcher), sum);
        }
        for (row, sum) in by_row {
            if let Some(role) = roles.get(row as usize).and_then(Option::as_deref) {
                put(DiffKind::Role, role, sum);
            }
        }
    }
    idle_causes(&mut filling, group, idle);
    filling.table
}

/// Who launched an activity, by name.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Launcher {
    Operator(u32),
    Call(u32),
    Unrecorded,
}

fn launcher(side: &DiffSide<'_, '_>, activity: ActivityId) -> Launcher {
    match side.index.links().owner(activity) {
        Owner::Op(node) => Launcher::Operator(side.index.tree().name(node).0),
        Owner::LaunchedOutside(call) => Launcher::Call(side.index.trace().api_calls.name[call.index()].0),
        Owner::Unrecorded => Launcher::Unrecorded,
    }
}

/// As in the operator table.
fn launcher_name(side: &DiffSide<'_, '_>, launcher: Launcher) -> String {
    let name = |id: u32| side.index.trace().strings.get(longpole_trace::StrId(id));
    match launcher {
        Launcher::Operator(id) => name(id).to_owned(),
        Launcher::Call(id) => format!("(no operator) {}", name(id)),
        Launcher::Unrecorded => "(no operator) launch not recorded".to_owned(),
    }
}

/// Time that belongs to each activity of a step, as in its table: its own, less what started before it and still ran.
fn own_times(trace: &Trace, step: &Step) -> Vec<Ns> {
    own_times_of(step.activities.len(), |at| {
        let row = step.activities[at].index();
        Interval::new(trace.activities.start[row], trace.activities.dur[row])
    })
}

/// Idle time of each cause in each step, the time to the next one included where that is of the same group.
fn idle_causes(filling: &mut Filling, group: &StepGroup, idle: &[IdlePiece]) {
    for (number, step) in group.steps.iter().enumerate() {
        let window = window(step);
        let from = idle.partition_point(|piece| piece.end <= window.start);
        for piece in idle[from..].iter().take_while(|piece| piece.start < window.end) {
            let inside = piece.end.min(window.end) - piece.start.max(window.start);
            filling.add(DiffKind::IdleCause, piece.cause.code(), number, inside, !piece.cause.is_device_side());
        }
    }
}

/// A step and the idle time up to the next one of its group.
fn window(step: &Step) -> Interval {
    let end = step.period_ns.map_or(step.end, |period| (step.start + period).max(step.start));
    Interval { start: step.start, end }
}

/// Share of a median step in which the device waits for its host.
pub(super) fn host_share(group: &StepGroup, table: &Table) -> f64 {
    let mut waits = vec![0_i64; group.steps.len()];
    for samples in table.iter().filter(|((kind, _), samples)| *kind == DiffKind::IdleCause && samples.of_host).map(|(_, samples)| samples) {
        for (wait, time) in waits.iter_mut().zip(&samples.times) {
            *wait += time;
        }
    }
    let lengths: Vec<i64> = group.steps.iter().map(|step| window(step).len().get()).collect();
    match (longpole_stats::median(&waits), longpole_stats::median(&lengths)) {
        (Some(wait), Some(length)) if length > 0 => (wait as f64 / length as f64).clamp(0.0, 1.0),
        _ => 0.0,
    }
}

/// A figure of every step that has it.
pub(super) fn figure(group: &StepGroup, figure: StepFigure) -> Vec<i64> {
    let of = |step: &Step| match figure {
        StepFigure::Period => step.period_ns,
        StepFigure::Span => Some(step.span_ns()),
        StepFigure::Busy => Some(step.busy_ns),
        StepFigure::IdleInside => Some(step.span_ns() - step.busy_ns),
        StepFigure::IdleBetween => step.period_ns.map(|period| period - step.span_ns()),
    };
    group.steps.iter().filter_map(of).map(Ns::get).collect()
}
