//! A group's table: every activity of its steps put in its place, times that add up, medians.

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use longpole_trace::{ActivityKind, Interval, IntervalSet, Ns, StrId, Trace};

use super::Program;
use super::canon::Canon;
use super::group::{Local, Raw};
use super::types::{LayerKind, LayerStructure, Part, RoleSource, Step, StepLayer, StepRow};
use crate::short_name::short_name;

/// What a row of the table is, before rows have numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct RowKey {
    part: Part,
    /// After all places for work that fits none.
    place: u32,
    /// Zero for places.
    name: u32,
}

/// No place.
const NOWHERE: u32 = u32::MAX;

/// A row while it is filled.
struct Filling {
    key: RowKey,
    calls: u64,
    total: Ns,
    /// Time in each step that has any.
    in_steps: Vec<Ns>,
    /// The step that is being added, and its time so far.
    current: (usize, Ns),
    /// Calls by kernel name where the steps differ.
    names: HashMap<u32, u64, FixedState>,
    kind: ActivityKind,
}

/// Fills the rows of one group.
pub(super) struct Table<'a> {
    trace: &'a Trace,
    program: &'a Program,
    pub(super) canon: Canon,
    rows: Vec<Filling>,
    numbers: HashMap<RowKey, u32, FixedState>,
    /// Row of each place of the canonical sequence.
    place_rows: Vec<u32>,
    steps: usize,
    /// Time of each layer in each step.
    pub(super) layer_times: Vec<Vec<Ns>>,
    pub(super) extra: u64,
    pub(super) missing: u64,
}

/// Time that belongs to each activity: its own, less what started before it and still ran. In the order given; the sum is the union.
pub(super) fn own_times(trace: &Trace, program: &Program, positions: &[u32]) -> Vec<Ns> {
    own_times_of(positions.len(), |at| {
        let row = program.sequence.activities[positions[at] as usize].index();
        Interval::new(trace.activities.start[row], trace.activities.dur[row])
    })
}

/// The same of any intervals.
pub(crate) fn own_times_of(count: usize, interval: impl Fn(usize) -> Interval) -> Vec<Ns> {
    let mut own = vec![Ns::ZERO; count];
    let mut covered = Ns::MIN;
    let mut add = |at: usize| {
        let interval = interval(at);
        let from = interval.start.max(covered);
        own[at] = (interval.end - from).max(Ns::ZERO);
        covered = covered.max(interval.end);
    };
    if (0..count).is_sorted_by_key(|at| interval(at).start) {
        (0..count).for_each(&mut add);
    } else {
        let mut order: Vec<usize> = (0..count).collect();
        order.sort_by_key(|&at| interval(at).start);
        order.into_iter().for_each(&mut add);
    }
    own
}

/// A step without rows and layers.
pub(super) fn bare_step(trace: &Trace, program: &Program, raw: &Raw, number: u32) -> Step {
    let activities: Vec<_> = raw.positions.iter().map(|&position| program.sequence.activities[position as usize]).collect();
    let intervals = || activities.iter().map(|id| Interval::new(trace.activities.start[id.index()], trace.activities.dur[id.index()]));
    let start = intervals().map(|interval| interval.start).min().unwrap_or_default();
    let end = intervals().map(|interval| interval.end).max().unwrap_or_default();
    let busy_ns = IntervalSet::from_unsorted(intervals().collect()).total();
    Step { number, range: raw.range, start, end, busy_ns, period_ns: None, activities, rows: Vec::new(), layers: Vec::new() }
}

impl<'a> Table<'a> {
    /// A table for steps like a typical one.
    pub(super) fn new(trace: &'a Trace, program: &'a Program, typical: &Raw) -> Self {
        let canon = Canon::of(&Local::of(program, &typical.positions).symbols);
        let layer_times = vec![Vec::new(); canon.order.len()];
        let (rows, numbers, place_rows) = (Vec::new(), HashMap::default(), Vec::new());
        let mut table = Self { trace, program, canon, rows, numbers, place_rows, steps: 0, layer_times, extra: 0, missing: 0 };
        for at in 0..table.canon.spots.len() {
            let spot = table.canon.spots[at];
            let row = table.row(RowKey { part: spot.part, place: spot.place, name: 0 }, ActivityKind::Other);
            table.place_rows.push(row);
        }
        table
    }

    fn row(&mut self, key: RowKey, kind: ActivityKind) -> u32 {
        let rows = &mut self.rows;
        *self.numbers.entry(key).or_insert_with(|| {
            let (names, current) = (HashMap::default(), (usize::MAX, Ns::ZERO));
            rows.push(Filling { key, calls: 0, total: Ns::ZERO, in_steps: Vec::new(), current, names, kind });
            rows.len() as u32 - 1
        })
    }

    /// Puts the activities of a step in their places and adds its times.
    pub(super) fn add(&mut self, raw: &Raw, step: &mut Step) {
        let (trace, program) = (self.trace, self.program);
        let local = Local::of(program, &raw.positions);
        let kind_of = |position: u32| trace.activities.kind[program.sequence.activities[position as usize].index()];
        let mut kinds: HashMap<u32, ActivityKind, FixedState> = HashMap::default();
        for (&symbol, &position) in local.symbols.iter().zip(&local.kept) {
            kinds.insert(symbol, kind_of(position));
        }
        let places = self.canon.places(&local.symbols, |a, b| kinds.get(&b).is_none_or(|b| kinds.get(&a) == Some(b)));
        let matched = places.iter().flatten().count();
        self.extra += (places.len() - matched) as u64;
        self.missing += (self.canon.symbols.len() - matched) as u64;
        self.steps += 1;
        // What fits no place is in the part of what comes before it; at the begin of a step in its first part.
        let first = self.canon.spots.first().map(|spot| (spot.part, spot.layer));
        let mut here =
            first.map_or((Part::Prologue, None), |(part, layer)| if layer.is_some() { (Part::Prologue, None) } else { (part, layer) });
        let mut spots = Vec::with_capacity(places.len());
        for (at, place) in places.iter().enumerate() {
            let row = if let Some(place) = *place {
                let spot = self.canon.spots[place as usize];
                here = (spot.part, spot.layer);
                self.place_rows[place as usize]
            } else {
                let key = RowKey { part: here.0, place: NOWHERE, name: local.symbols[at] };
                self.row(key, kind_of(local.kept[at]))
            };
            spots.push((row, here));
        }
        let own = own_times(trace, program, &raw.positions);
        step.rows.reserve_exact(raw.positions.len());
        let mut layers: Vec<(u32, StepLayer, Ns)> = Vec::new();
        for (at, &position) in raw.positions.iter().enumerate() {
            let stands = local.onto[at] as usize;
            let (mut row, (part, layer)) = spots[stands];
            let name = program.sequence.symbols[position as usize];
            let is_kept = local.kept[stands] == position;
            if !is_kept && name != local.symbols[stands] {
                // A later round of an inner loop with another kernel.
                row = self.row(RowKey { part, place: NOWHERE, name }, kind_of(position));
            }
            step.rows.push(row);
            if let (Some(layer), Part::Layer(kind)) = (layer, part) {
                match layers.last_mut() {
                    Some((last, known, time)) if *last == layer => {
                        known.count = at as u32 + 1 - known.first;
                        *time += own[at];
                    }
                    _ => layers.push((layer, StepLayer { kind, first: at as u32, count: 1 }, own[at])),
                }
            }
            self.rows[row as usize].add(self.steps, name, kind_of(position), own[at]);
        }
        if layers.len() == self.canon.order.len() {
            for (layer, _, time) in &layers {
                self.layer_times[*layer as usize].push(*time);
            }
        }
        step.layers = layers.into_iter().map(|(_, layer, _)| layer).collect();
    }

    /// The finished rows in order, the layers, and for each row as steps have it its number in that order.
    pub(super) fn finish(mut self) -> (Vec<StepRow>, Option<LayerStructure>, Vec<u32>) {
        let mut order: Vec<usize> = (0..self.rows.len()).collect();
        order.sort_by_key(|&row| self.rows[row].key);
        let mut numbers = vec![0; self.rows.len()];
        for (number, &row) in order.iter().enumerate() {
            numbers[row] = number as u32;
        }
        let mut place_names: HashMap<u32, u32, FixedState> = HashMap::default();
        for (&row, &symbol) in self.place_rows.iter().zip(&self.canon.symbols) {
            place_names.insert(row, symbol);
        }
        let mut rows = Vec::with_capacity(order.len());
        for &at in &order {
            let usual = place_names.get(&(at as u32)).copied();
            rows.push(self.rows[at].finish(self.trace, self.steps, usual));
        }
        let structure = self.structure(&rows);
        name_roles(&mut rows);
        (rows, structure, numbers)
    }

    fn structure(&self, rows: &[StepRow]) -> Option<LayerStructure> {
        if self.canon.order.is_empty() {
            return None;
        }
        let mut kinds = Vec::new();
        for (kind, symbols) in self.canon.kinds.iter().enumerate() {
            let part = Part::Layer(kind as u32);
            let first_row = rows.iter().position(|row| row.part == part)?;
            let places = symbols.len() as u32;
            let kernels = rows[first_row..first_row + symbols.len()].iter().filter(|row| is_kernel(row.kind)).count() as u32;
            let count = self.canon.order.iter().filter(|&&of| of as usize == kind).count() as u32;
            kinds.push(LayerKind { kernels, places, first_row: first_row as u32, count });
        }
        Some(LayerStructure { kinds, order: self.canon.order.clone() })
    }
}

pub(super) fn is_kernel(kind: ActivityKind) -> bool {
    matches!(kind, ActivityKind::Kernel | ActivityKind::Other)
}

impl Filling {
    fn add(&mut self, step: usize, name: u32, kind: ActivityKind, own: Ns) {
        if self.current.0 != step {
            self.close();
            self.current = (step, Ns::ZERO);
        }
        self.current.1 += own;
        self.total += own;
        if self.calls == 0 {
            self.kind = kind;
        }
        self.calls += 1;
        *self.names.entry(name).or_default() += 1;
    }

    fn close(&mut self) {
        if self.current.0 != usize::MAX {
            self.in_steps.push(self.current.1);
        }
    }

    fn finish(&mut self, trace: &Trace, steps: usize, usual: Option<u32>) -> StepRow {
        self.close();
        let absent = steps.saturating_sub(self.in_steps.len());
        self.in_steps.extend(std::iter::repeat_n(Ns::ZERO, absent));
        let most = self.names.iter().map(|(&name, &count)| (count, std::cmp::Reverse(name))).max();
        let name = most.map(|(_, name)| name.0).or(usual).unwrap_or(self.key.name);
        let min_ns = self.in_steps.iter().copied().min().unwrap_or_default();
        let max_ns = self.in_steps.iter().copied().max().unwrap_or_default();
        let full = trace.strings.get(StrId(name));
        let kernel = if is_kernel(self.kind) || full.is_empty() { short_name(full) } else { full.to_owned() };
        StepRow {
            part: self.key.part,
            place: Some(self.key.place).filter(|&place| place != NOWHERE),
            name: StrId(name),
            kind: self.kind,
            role: kernel.clone(),
            kernel,
            role_from: RoleSource::Kernel,
            calls: self.calls,
            total_ns: self.total,
            ns_per_step: median(&mut self.in_steps),
            min_ns,
            max_ns,
        }
    }
}

/// The lower of the two middle values for an even count; zero for none.
pub(super) fn median(values: &mut [Ns]) -> Ns {
    match values.len() {
        0 => Ns::ZERO,
        count => *values.select_nth_unstable((count - 1) / 2).1,
    }
}

/// Numbers the places of a part whose kernels have the same short name.
fn name_roles(rows: &mut [StepRow]) {
    let mut counts: HashMap<(Part, String), (u32, u32), FixedState> = HashMap::default();
    for row in rows.iter().filter(|row| row.place.is_some()) {
        counts.entry((row.part, row.kernel.clone())).or_default().0 += 1;
    }
    for row in rows.iter_mut().filter(|row| row.place.is_some()) {
        if let Some((all, seen)) = counts.get_mut(&(row.part, row.kernel.clone()))
            && *all > 1
        {
            *seen += 1;
            row.role = format!("{} #{seen}", row.kernel);
        }
    }
}
