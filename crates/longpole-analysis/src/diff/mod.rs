//! Two traces of one program compared: did it get faster, where, and is that more than noise.
//!
//! Steps are compared with steps: groups are paired by name, else by layers, else by kernels. Within a pair every figure has one sample a
//! step, and [`longpole_stats::compare`] says what two sets of samples show. Times that the host decides (the idle time of a step that waits for its
//! launches) may differ by more between two recordings than any spread inside one shows, so they take more to get a verdict; see
//! `docs/verdicts.md`. Where no steps can be paired, totals of the whole trace stand side by side, without verdicts.

mod groups;
mod roles;
mod samples;
mod settings;
#[cfg(test)]
mod tests;
mod types;

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use longpole_stats::{Comparison, Rules, Verdict, compare};
use longpole_trace::{DeviceId, Ns};

use self::groups::Pair;
use self::samples::{Samples, Table};
pub use self::types::{
    CeilingsOf, Diff, DiffKind, DiffRow, DiffSide, MatchedBy as GroupsMatchedBy, Per, SettingChange, StepFigure, StepPair, SuspectChange,
    SuspectShare, WORTH_SHOWING,
};
use crate::families::FamilyOfName;
use crate::idle::{IdlePiece, idle_pieces};
use crate::kernels::short_names;
use crate::ranges::range_tables;
use crate::smells::Smell;
use crate::steps::StepGroup;

/// A row of a source without steps: what it is of, its time, and its calls.
pub(crate) type WholeRow = (DiffKind, String, Ns, Option<u64>);

/// Compares two traces.
pub fn diff(before: &DiffSide<'_, '_>, after: &DiffSide<'_, '_>) -> Diff {
    let (a, b) = (&before.steps.groups, &after.steps.groups);
    let mut found = groups::pairs(before, after);
    let time = |&(from, to, _): &Pair| a[from].total_busy_ns.max(b[to].total_busy_ns);
    found.sort_by_key(|pair| (std::cmp::Reverse(time(pair)), pair.0));
    let mut rows = Rows::default();
    let pairs = step_pairs(before, after, &found, &mut rows);
    ranges(before, after, &mut rows);
    if pairs.is_empty() {
        whole(before, after, &mut rows);
    }
    let unpaired = |groups: &[StepGroup], of: fn(&Pair) -> usize| -> Vec<String> {
        let is_paired = |at: usize| found.iter().any(|pair| of(pair) == at);
        groups.iter().enumerate().filter(|(at, _)| !is_paired(*at)).map(|(_, group)| group.name.clone()).collect()
    };
    let (only_before, only_after) = (unpaired(a, |pair| pair.0), unpaired(b, |pair| pair.1));
    let ceilings = ceilings_of(before, after, &found, only_before.is_empty() && only_after.is_empty());
    Diff {
        settings: settings::changes(before, after),
        pairs,
        only_before,
        only_after,
        rows: rows.finish(),
        suspects: suspects(before, after, ceilings),
        ceilings,
    }
}

fn step_pairs(before: &DiffSide<'_, '_>, after: &DiffSide<'_, '_>, found: &[Pair], rows: &mut Rows) -> Vec<StepPair> {
    if found.is_empty() {
        return Vec::new();
    }
    let (idle_a, idle_b) = (Idle::of(before), Idle::of(after));
    let (mut families_a, mut families_b) = (FamilyOfName::new(before.index.trace()), FamilyOfName::new(after.index.trace()));
    let mut pairs = Vec::with_capacity(found.len());
    for (number, &(from, to, matched_by)) in found.iter().enumerate() {
        let (a, b) = (&before.steps.groups[from], &after.steps.groups[to]);
        let (roles_a, roles_b) = roles::names(a, before.index.trace(), b, after.index.trace());
        let table_a = samples::of_group(before, a, &roles_a, idle_a.on(a.device), &mut families_a);
        let table_b = samples::of_group(after, b, &roles_b, idle_b.on(b.device), &mut families_b);
        let host_share = (samples::host_share(a, &table_a), samples::host_share(b, &table_b));
        let (step, verdict) = figures(a, b, number, host_share, rows);
        merge(number, (a.steps.len(), b.steps.len()), table_a, table_b, rows);
        pairs.push(StepPair {
            before: from,
            after: to,
            names: (a.name.clone(), b.name.clone()),
            steps: (a.steps.len(), b.steps.len()),
            kernels: (a.kernels_per_step, b.kernels_per_step),
            host_share,
            matched_by,
            step,
            verdict,
        });
    }
    pairs
}

/// Rows of whole steps; returns the figure that says whether a step got faster, and what it did.
fn figures(a: &StepGroup, b: &StepGroup, pair: usize, host: (f64, f64), rows: &mut Rows) -> (StepFigure, Verdict) {
    let with_host = Rules::with_host_share(host.0.max(host.1));
    let mut said = None;
    for figure in [StepFigure::Period, StepFigure::Span, StepFigure::Busy, StepFigure::IdleInside, StepFigure::IdleBetween] {
        let (from, to) = (samples::figure(a, figure), samples::figure(b, figure));
        let rules = match figure {
            StepFigure::Busy => Rules::DEVICE_TIME,
            StepFigure::Period | StepFigure::Span => with_host,
            StepFigure::IdleInside | StepFigure::IdleBetween => Rules::with_host_share(1.0),
        };
        let Some(comparison) = compare(&from, &to, &rules) else { continue };
        if matches!(figure, StepFigure::Period | StepFigure::Span) && said.is_none() {
            said = Some((figure, comparison.verdict));
        }
        rows.list.push(DiffRow {
            pair: Some(pair),
            kind: DiffKind::Step,
            key: figure.code().to_owned(),
            label: figure.code().to_owned(),
            per: Per::Step,
            before_ns: Some(Ns(comparison.before)),
            after_ns: Some(Ns(comparison.after)),
            delta_ns: Ns(comparison.after) - Ns(comparison.before),
            calls: (None, None),
            comparison: Some(comparison),
        });
    }
    said.unwrap_or((StepFigure::Span, Verdict::Ambiguous))
}

/// Rows of everything inside the steps of a pair.
fn merge(pair: usize, steps: (usize, usize), mut before: Table, mut after: Table, rows: &mut Rows) {
    let keys: Vec<(DiffKind, String)> = before.keys().chain(after.keys().filter(|key| !before.contains_key(*key))).cloned().collect();
    for key in keys {
        let (a, b) = (before.remove(&key), after.remove(&key));
        rows.add(Some(pair), key, Per::Step, steps, a.as_ref(), b.as_ref());
    }
}

/// Rows of ranges with device work, by instance.
fn ranges(before: &DiffSide<'_, '_>, after: &DiffSide<'_, '_>, rows: &mut Rows) {
    let of = |side: &DiffSide<'_, '_>| {
        let (_, work) = range_tables(side.index, side.scope);
        let trace = side.index.trace();
        let mut table: HashMap<String, Vec<(Ns, i64)>, FixedState> = HashMap::default();
        for (row, work) in work.iter().enumerate() {
            if let Some(busy) = work.busy_ns {
                let name = trace.strings.get(trace.ranges.name[row]);
                let name = if name.starts_with("ProfilerStep#") { "ProfilerStep*" } else { name };
                table.entry_ref(name).or_default().push((trace.ranges.start[row], busy.get()));
            }
        }
        table
    };
    let samples = |mut times: Vec<(Ns, i64)>| {
        times.sort_unstable();
        let times: Vec<i64> = times.into_iter().map(|(_, time)| time).collect();
        Samples { calls: times.len() as u64, times, of_host: false }
    };
    let (a, mut b) = (of(before), of(after));
    for (name, times) in a {
        // A range that only one of them has is a name, not a change; markers of steps are above.
        if let Some(other) = b.remove(&name) {
            let (from, to) = (samples(times), samples(other));
            rows.add(None, (DiffKind::Range, name), Per::Instance, (1, 1), Some(&from), Some(&to));
        }
    }
}

/// Rows of whole traces, where no steps can be compared.
fn whole(before: &DiffSide<'_, '_>, after: &DiffSide<'_, '_>, rows: &mut Rows) {
    let of = |side: &DiffSide<'_, '_>| {
        let triage = side.triage;
        let mut table = Table::default();
        let mut put = |kind, key: &str, time: Option<Ns>, calls, of_host| {
            if let Some(time) = time {
                table.insert((kind, key.to_owned()), Samples { times: vec![time.get()], calls, of_host });
            }
        };
        let totals = &triage.totals;
        put(DiffKind::Total, "wall", Some(totals.wall_ns), 1, true);
        if !(before.has_device() && after.has_device()) {
            // What one of them did not record has not changed.
            return table;
        }
        put(DiffKind::Total, "gpu_busy", totals.gpu_busy_ns, 1, false);
        put(DiffKind::Total, "gpu_idle", totals.gpu_idle_ns, 1, true);
        for row in &triage.families {
            put(DiffKind::Family, row.family.name(), Some(row.self_cuda_ns), row.calls, false);
        }
        for row in &triage.kernels {
            put(DiffKind::Kernel, &row.name, Some(row.cuda_ns), row.calls, false);
        }
        for row in triage.ops.rows.iter().filter(|row| row.self_cuda_ns.is_some_and(|time| time > Ns::ZERO)) {
            put(DiffKind::Operator, &row.name, row.self_cuda_ns, row.calls, false);
        }
        table
    };
    let (mut a, mut b) = (of(before), of(after));
    let keys: Vec<_> = a.keys().chain(b.keys().filter(|key| !a.contains_key(*key))).cloned().collect();
    for key in keys {
        let (from, to) = (a.remove(&key), b.remove(&key));
        rows.add(None, key, Per::Trace, (1, 1), from.as_ref(), to.as_ref());
    }
}

/// Rows of two sources that have one number of each thing. A missing number of calls is absent.
pub(crate) fn whole_rows(before: Vec<WholeRow>, after: Vec<WholeRow>) -> Diff {
    let mut rows = Rows::default();
    let samples = |time: Ns, calls: Option<u64>| Samples { times: vec![time.get()], calls: calls.unwrap_or_default(), of_host: false };
    let mut after: HashMap<(DiffKind, String), (Ns, Option<u64>), FixedState> =
        after.into_iter().map(|(kind, key, time, calls)| ((kind, key), (time, calls))).collect();
    let mut add = |key: (DiffKind, String), a: Option<(Ns, Option<u64>)>, b: Option<(Ns, Option<u64>)>| {
        let [from, to] = [a, b].map(|side| side.map(|(time, calls)| samples(time, calls)));
        rows.add(None, key, Per::Trace, (1, 1), from.as_ref(), to.as_ref());
        if let Some(row) = rows.list.last_mut() {
            let counted = |side: Option<(Ns, Option<u64>)>| side.is_some_and(|(_, calls)| calls.is_some());
            row.calls = (row.calls.0.filter(|_| counted(a)), row.calls.1.filter(|_| counted(b)));
        }
    };
    for (kind, key, time, calls) in before {
        let key = (kind, key);
        let other = after.remove(&key);
        add(key, Some((time, calls)), other);
    }
    for (key, side) in after {
        add(key, None, Some(side));
    }
    Diff {
        settings: Vec::new(),
        pairs: Vec::new(),
        only_before: Vec::new(),
        only_after: Vec::new(),
        rows: rows.finish(),
        suspects: Vec::new(),
        ceilings: CeilingsOf::WholeTraces,
    }
}

impl DiffSide<'_, '_> {
    fn has_device(&self) -> bool {
        self.triage.totals.gpu_busy_ns.is_some()
    }

    /// Whether what its device did is there, and whole.
    fn shows_its_device(&self) -> bool {
        self.has_device() && !self.is_cut
    }
}

/// Idle pieces, by device, in order of time.
struct Idle(HashMap<DeviceId, Vec<IdlePiece>, FixedState>);

impl Idle {
    fn of(side: &DiffSide<'_, '_>) -> Self {
        let mut by_device: HashMap<DeviceId, Vec<IdlePiece>, FixedState> = HashMap::default();
        for piece in idle_pieces(side.index, side.scope) {
            by_device.entry(piece.device).or_default().push(piece);
        }
        for pieces in by_device.values_mut() {
            pieces.sort_unstable_by_key(|piece| (piece.start, piece.end));
        }
        Self(by_device)
    }

    fn on(&self, device: DeviceId) -> &[IdlePiece] {
        self.0.get(&device).map_or(&[], Vec::as_slice)
    }
}

/// Rows while they are gathered.
#[derive(Default)]
struct Rows {
    list: Vec<DiffRow>,
}

impl Rows {
    fn add(
        &mut self,
        pair: Option<usize>,
        (kind, key): (DiffKind, String),
        per: Per,
        steps: (usize, usize),
        before: Option<&Samples>,
        after: Option<&Samples>,
    ) {
        let of_host = before.or(after).is_some_and(|samples| samples.of_host);
        let rules = if of_host { Rules::with_host_share(1.0) } else { Rules::DEVICE_TIME };
        let comparison: Option<Comparison> = before.zip(after).and_then(|(a, b)| compare(&a.times, &b.times, &rules));
        let middle = |samples: Option<&Samples>| samples.and_then(|samples| longpole_stats::median(&samples.times)).map(Ns);
        let calls = |samples: Option<&Samples>, steps: usize| samples.map(|samples| samples.calls as f64 / steps.max(1) as f64);
        let (before_ns, after_ns) = (middle(before), middle(after));
        self.list.push(DiffRow {
            pair,
            kind,
            label: key.clone(),
            key,
            per,
            before_ns,
            after_ns,
            delta_ns: after_ns.unwrap_or_default() - before_ns.unwrap_or_default(),
            calls: (calls(before, steps.0), calls(after, steps.1)),
            comparison,
        });
    }

    /// In order: pair, kind, size of the change; kernels with short names.
    fn finish(mut self) -> Vec<DiffRow> {
        let mut names: Vec<&str> = self.list.iter().filter(|row| row.kind == DiffKind::Kernel).map(|row| row.key.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let labels: HashMap<String, String, FixedState> = names.iter().map(|name| (*name).to_owned()).zip(short_names(&names)).collect();
        for row in self.list.iter_mut().filter(|row| row.kind == DiffKind::Kernel) {
            if let Some(label) = labels.get(&row.key) {
                row.label.clone_from(label);
            }
        }
        // Figures of steps stay in their own order, which is that of a sentence about a step.
        let size = |row: &DiffRow| if row.kind == DiffKind::Step { 0 } else { row.delta_ns.get().unsigned_abs() };
        let pair = |row: &DiffRow| row.pair.unwrap_or(usize::MAX);
        let usual = |row: &DiffRow| if row.kind == DiffKind::Step { String::new() } else { row.key.clone() };
        self.list.sort_by_cached_key(|row| (pair(row), row.kind, std::cmp::Reverse(size(row)), usual(row)));
        self.list
    }
}

/// What the ceilings of suspects, which are of a whole trace, say about each other.
fn ceilings_of(before: &DiffSide<'_, '_>, after: &DiffSide<'_, '_>, pairs: &[Pair], all_are_paired: bool) -> CeilingsOf {
    let count = |group: &StepGroup| (group.steps.len() + group.left_out.len()) as u64;
    let mut counts = pairs.iter().map(|&(from, to, _)| (count(&before.steps.groups[from]), count(&after.steps.groups[to])));
    let Some(first) = counts.next() else { return CeilingsOf::WholeTraces };
    let (mut all_equal, mut all_alike) = (first.0 == first.1, true);
    for (from, to) in counts {
        all_equal &= from == to;
        all_alike &= (from, to) == first;
    }
    match (all_are_paired && all_equal, all_are_paired && all_alike) {
        (true, _) => CeilingsOf::EqualTraces,
        (false, true) => CeilingsOf::Step(first.0, first.1),
        (false, false) => CeilingsOf::OtherSteps,
    }
}

/// Suspects of both, by code: of several with one code the one that covers most.
fn suspects(before: &DiffSide<'_, '_>, after: &DiffSide<'_, '_>, ceilings: CeilingsOf) -> Vec<SuspectChange> {
    let steps = if let CeilingsOf::Step(from, to) = ceilings { (Some(from), Some(to)) } else { (None, None) };
    let largest = |smells: &[Smell], code: &str, steps: Option<u64>| {
        let of_code = smells.iter().filter(|smell| smell.code == code);
        of_code.max_by(|a, b| a.share_fraction.unwrap_or(0.0).total_cmp(&b.share_fraction.unwrap_or(0.0))).map(|smell| {
            let ceiling_ns = smell.ceiling.map(|ceiling| ceiling.win_ns);
            let per_step = |(ceiling, steps): (Ns, u64)| Ns(ceiling.get() / (steps as i64).max(1));
            SuspectShare { share_fraction: smell.share_fraction, ceiling_ns, ceiling_per_step_ns: ceiling_ns.zip(steps).map(per_step) }
        })
    };
    let judged = (before.shows_its_device(), after.shows_its_device());
    let mut changes: Vec<SuspectChange> = Vec::new();
    for smell in before.triage.smells.iter().chain(&after.triage.smells) {
        if changes.iter().all(|change| change.code != smell.code) {
            let (from, to) = (largest(&before.triage.smells, smell.code, steps.0), largest(&after.triage.smells, smell.code, steps.1));
            changes.push(SuspectChange { code: smell.code, before: from, after: to, judged });
        }
    }
    let share = |change: &SuspectChange| {
        let of = |side: Option<SuspectShare>| side.and_then(|side| side.share_fraction).unwrap_or(0.0);
        of(change.before).max(of(change.after))
    };
    changes.sort_by(|a, b| share(b).total_cmp(&share(a)));
    changes
}
