//! The steps: a line a group, then for each group its medians, its table by role, its layers and its slow steps.

use longpole_analysis::{
    Culprit, FoundBy, GroupCeilings, LayerKind, LayerStructure, Part, RoleSource, RowCeiling, StepGroup, StepNote, StepRow, StepTable, Why,
    role_lines, short_name,
};
use longpole_trace::{ActivityId, Ns, Trace};

use super::roofline::no_peaks;
use super::step_ceilings::{Steps, most_to_win};
use super::{device_label, since_first, text};
use crate::blocks::{Bar, Block, Strip};
use crate::table::{Column, Kind, Row, Table, Value};
use crate::units::{count, percent, plural, time};

/// Groups with a table of their own when the user does not ask for all.
const GROUPS_SHOWN: usize = 5;
/// Slow steps that are named.
const SLOW_SHOWN: usize = 5;
/// Layers that are named as outliers.
const OUTLIERS_SHOWN: usize = 5;
/// Runs of one kind that an order of layers is described by.
const RUNS_SHOWN: usize = 12;

/// Layers whose kinds are written a letter each.
const LETTERS_SHOWN: usize = 64;

/// The order of the rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StepOrder {
    /// As the step runs.
    #[default]
    Part,
    /// Most time first.
    Time,
    /// Largest spread over steps first.
    Spread,
    /// Most calls first.
    Calls,
}

/// How the steps are shown.
#[derive(Clone, Copy, Debug)]
pub struct StepLayout {
    /// The order of the rows.
    pub order: StepOrder,
    /// Rows of each group; `None` for all, and then all groups have their table.
    pub limit: Option<usize>,
    /// A row for each kernel, not for each role.
    pub by_kernel: bool,
    /// Show kernel names as the compiler wrote them.
    pub full_names: bool,
}

/// Where a role comes from, as it is written in JSON and text.
pub fn role_source(source: RoleSource) -> &'static str {
    match source {
        RoleSource::Module => "module",
        RoleSource::Operator => "operator",
        RoleSource::Inferred => "inferred",
        RoleSource::Borrowed => "borrowed",
        RoleSource::Kernel => "kernel",
    }
}

fn found_by(by: FoundBy) -> &'static str {
    match by {
        FoundBy::Marker => "marker",
        FoundBy::GraphReplay => "graph replay",
        FoundBy::KernelSequence => "kernel sequence",
    }
}

/// A letter for a kind of layer, or its number where letters run out.
fn kind_name(kind: u32) -> String {
    u8::try_from(kind).ok().filter(|&kind| kind < 26).map_or_else(|| kind.to_string(), |kind| char::from(b'A' + kind).to_string())
}

fn of(part: Ns, whole: Ns) -> f64 {
    if whole > Ns::ZERO { part.get() as f64 / whole.get() as f64 } else { 0.0 }
}

/// The change from `base` in percent, with its sign; as a factor where it is large.
fn change(now: Ns, base: Ns) -> String {
    let factor = of(now, base);
    if factor >= 3.0 { format!("{factor:.1} times") } else { format!("{:+.1} %", (factor - 1.0) * 100.0) }
}

/// `364 kernels and 39 copies or fills`, of as many kernels and as many activities.
fn kernels_and_others(kernels: u64, activities: u64) -> String {
    let others = activities.saturating_sub(kernels);
    let kernels = plural(kernels, "kernel", "kernels");
    if others == 0 { kernels } else { format!("{kernels} and {}", plural(others, "copy or fill", "copies or fills")) }
}

/// `28 layers x 58 kernels`, or the kinds apart with their order.
fn layers_in_words(layers: Option<&LayerStructure>) -> String {
    let Some(layers) = layers else { return "no repeated layers".to_owned() };
    let each = |kind: &LayerKind| kernels_and_others(u64::from(kind.kernels), u64::from(kind.places));
    match layers.kinds.as_slice() {
        [one] => format!("{} x {}", plural(u64::from(one.count), "layer", "layers"), each(one)),
        kinds => {
            let all: Vec<String> = kinds
                .iter()
                .enumerate()
                .map(|(kind, of_kind)| format!("{} x {} ({})", of_kind.count, each(of_kind), kind_name(kind as u32)))
                .collect();
            format!(
                "{} layers of {} kinds: {}; order {}",
                count(layers.order.len() as u64),
                kinds.len(),
                all.join(", "),
                order(&layers.order)
            )
        }
    }
}

/// The order of kinds: `A B repeated`, or runs of one kind.
fn order(kinds: &[u32]) -> String {
    let period = (2..=4).find(|&period| kinds.len() > period && kinds.iter().zip(&kinds[period..]).all(|(a, b)| a == b));
    if let Some(period) = period {
        let names: Vec<String> = kinds[..period].iter().map(|&kind| kind_name(kind)).collect();
        return format!("{} repeated", names.join(" "));
    }
    if kinds.len() <= LETTERS_SHOWN && kinds.iter().all(|&kind| kind < 26) {
        return kinds.iter().map(|&kind| kind_name(kind)).collect();
    }
    let mut runs: Vec<String> =
        kinds.chunk_by(|a, b| a == b).take(RUNS_SHOWN + 1).map(|run| format!("{} x {}", run.len(), kind_name(run[0]))).collect();
    if runs.len() > RUNS_SHOWN {
        "…".clone_into(&mut runs[RUNS_SHOWN]);
    }
    runs.join(", ")
}

/// The part of a row, with the number of layers.
fn part(group: &StepGroup, part: Part) -> String {
    let Part::Layer(kind) = part else { return part.code().to_owned() };
    let Some(layers) = &group.layers else { return part.code().to_owned() };
    let times = layers.kinds.get(kind as usize).map_or(0, |kind| kind.count);
    if layers.kinds.len() == 1 { format!("layer x {times}") } else { format!("layer {} x {times}", kind_name(kind)) }
}

fn several_devices(table: &StepTable) -> bool {
    table.groups.iter().any(|group| group.device != table.groups[0].device)
}

/// The table with a line for each group.
fn overview(table: &StepTable, trace: &Trace, limit: Option<usize>) -> Table {
    let mut columns = vec![
        Column::new("name", "group", Kind::Text).at_least(20),
        Column::new("device", "device", Kind::Text).droppable(6),
        Column::new("found_by", "found by", Kind::Text).droppable(1),
        Column::new("count", "steps", Kind::Count),
        Column::new("left_out", "left out", Kind::Count).droppable(2),
        Column::new("layers", "layers", Kind::Count).droppable(7),
        Column::new("kernels_per_step", "kernels", Kind::Count).droppable(8),
        Column::new("busy_ns", "busy", Kind::Time).in_unit_of("step").droppable(10),
        Column::new("span_ns", "span", Kind::Time).in_unit_of("step").droppable(9),
        Column::new("period_ns", "period", Kind::Time).in_unit_of("step").droppable(5),
        Column::new("gap_inside_ns", "idle inside", Kind::Time).in_unit_of("step").droppable(4),
        Column::new("gap_between_ns", "idle between", Kind::Time).in_unit_of("step").droppable(3),
    ];
    let rows = table.groups.iter().map(|group| {
        Row::new(vec![
            text(&group.name),
            Value::Text(device_label(trace, group.device)),
            text(found_by(group.found_by)),
            Value::Count(group.steps.len() as u64),
            Value::Count(group.left_out.len() as u64),
            Value::Count(group.layers.as_ref().map_or(0, |layers| layers.order.len() as u64)),
            Value::Count(group.kernels_per_step),
            Value::Time(group.busy_ns),
            Value::Time(group.span_ns),
            Value::time(group.period_ns),
            Value::Time(group.gap_inside_ns),
            Value::time(group.gap_between_ns),
        ])
    });
    columns[1].csv_only = !several_devices(table);
    let mut overview = Table {
        noun: "groups of steps",
        columns,
        rows: rows.collect(),
        totals: Vec::new(),
        hidden: 0,
        filtered_out: 0,
        empty: None,
        notes: vec!["medians over the steps of a group".to_owned()],
    };
    overview.truncate(limit);
    overview
}

/// Why steps were left out, with their spans.
fn left_out(group: &StepGroup) -> Option<String> {
    let of = |why: Why, one: &str, many: &str| {
        let spans: Vec<Ns> = group.left_out.iter().filter(|left| left.why == why).map(|left| left.step.span_ns()).collect();
        let longest = spans.iter().copied().max()?;
        let at_most = if spans.len() == 1 { "span" } else { "spans up to" };
        Some(format!("{} ({at_most} {})", plural(spans.len() as u64, one, many), time(longest)))
    };
    let all = [
        of(Why::Slow, "slow first step", "slow first steps"),
        of(Why::OtherKernels, "first step with other kernels", "first steps with other kernels"),
        of(Why::CutOff, "step cut off by the recording", "steps cut off by the recording"),
        of(Why::FirstHalf, "step before the second half", "steps before the second half"),
    ];
    let all: Vec<String> = all.into_iter().flatten().collect();
    (!all.is_empty()).then(|| all.join(", "))
}

/// Busy of a step in the two halves, with the warning where they differ.
fn halves(group: &StepGroup, last_half: bool) -> Option<String> {
    let half = group.half_steps.max(1) as i64;
    let (first, second) = (Ns(group.first_half_busy_ns?.get() / half), Ns(group.second_half_busy_ns?.get() / half));
    let drifts = group.notes.iter().any(|note| matches!(note, StepNote::Drift { .. }));
    let apart = (first - second).get().unsigned_abs() as f64 > 0.03 * first.max(second).get() as f64;
    let warning = match (drifts, apart) {
        (true, _) => "; WARNING: over 3 % apart: clocks rising, throttling, or work that grows",
        (false, true) => "; too few steps to call it drift",
        (false, false) => "",
    };
    // Of nothing there is no share.
    let by = if first > Ns::ZERO { format!(" ({})", change(second, first)) } else { String::new() };
    let shown = if last_half { ", which is what is reported" } else { "" };
    Some(format!("busy {} a step in the first half, {} in the second{by}{shown}{warning}", time(first), time(second)))
}

fn facts(group: &StepGroup, last_half: bool) -> Vec<(&'static str, String)> {
    let mut facts = vec![("layers", layers_in_words(group.layers.as_ref()))];
    facts.extend(left_out(group).map(|said| ("left out", said)));
    let period = group.period_ns.map_or_else(String::new, |period| format!(", period {}", time(period)));
    facts.push((
        "median step",
        format!(
            "{}, busy {}, span {}{period}",
            kernels_and_others(group.kernels_per_step, group.activities_per_step),
            time(group.busy_ns),
            time(group.span_ns)
        ),
    ));
    let between = group.gap_between_ns.map_or_else(String::new, |gap| {
        if gap < Ns::ZERO {
            format!("; steps overlap by {}", time(Ns::ZERO - gap))
        } else {
            format!("; {} between steps (period - span)", time(gap))
        }
    });
    facts.push((
        "idle",
        format!(
            "{} inside a step (span - busy, {} % of span){between}",
            time(group.gap_inside_ns),
            percent(of(group.gap_inside_ns, group.span_ns))
        ),
    ));
    facts.extend(halves(group, last_half).map(|said| ("halves", said)));
    facts
}

/// Rows of a group that are shown as one: all of one role in one part, or a single one.
struct Line {
    /// Positions in [`StepGroup::rows`], in order.
    rows: Vec<usize>,
    calls: u64,
    /// Sums over the rows; of the time of a step, of medians.
    per_step: Ns,
    min: Ns,
    max: Ns,
    total: Ns,
}

/// The lines of a group, as its steps run.
fn lines(group: &StepGroup, by_kernel: bool) -> Vec<Line> {
    let of_rows = if by_kernel { (0..group.rows.len()).map(|row| vec![row]).collect() } else { role_lines(group) };
    let line = |rows: Vec<usize>| {
        let mut line = Line { rows: Vec::new(), calls: 0, per_step: Ns::ZERO, min: Ns::ZERO, max: Ns::ZERO, total: Ns::ZERO };
        for row in rows.iter().map(|&row| &group.rows[row]) {
            line.calls += row.calls;
            line.per_step += row.ns_per_step;
            line.min += row.min_ns;
            line.max += row.max_ns;
            line.total += row.total_ns;
        }
        Line { rows, ..line }
    };
    of_rows.into_iter().map(line).collect()
}

/// The lines to show, in order, and how many are left out.
fn chosen(group: &StepGroup, layout: &StepLayout) -> (Vec<Line>, usize) {
    let mut lines = lines(group, layout.by_kernel);
    match layout.order {
        // What is left out are the lines with the least time, wherever they are in the step.
        StepOrder::Part | StepOrder::Time => lines.sort_by_key(|line| std::cmp::Reverse(line.total)),
        StepOrder::Spread => lines.sort_by_key(|line| std::cmp::Reverse(line.max - line.min)),
        StepOrder::Calls => lines.sort_by_key(|line| std::cmp::Reverse(line.calls)),
    }
    let all = lines.len();
    lines.truncate(layout.limit.unwrap_or(usize::MAX));
    if layout.order == StepOrder::Part {
        lines.sort_by_key(|line| line.rows[0]);
    }
    let hidden = all - lines.len();
    (lines, hidden)
}

/// The positions of the rows of a group in the order and number asked for.
pub(crate) fn rows_in_order(group: &StepGroup, layout: &StepLayout) -> Vec<usize> {
    let layout = StepLayout { by_kernel: true, ..*layout };
    chosen(group, &layout).0.into_iter().flat_map(|line| line.rows).collect()
}

/// A figure of all rows of a line, if all of them have it.
fn of_line(line: &Line, rows: &[RowCeiling], figure: impl Fn(&RowCeiling) -> Option<Ns>) -> Option<Ns> {
    line.rows.iter().map(|&row| figure(rows.get(row)?)).sum()
}

fn by_role(group: &StepGroup, ceilings: &GroupCeilings, peaks: bool, trace: &Trace, layout: &StepLayout) -> Table {
    const NO_PEAKS: &str = "floors: the peaks of the device are not known (--peaks FILE gives them)";
    const NO_SHAPES: &str =
        "floors: no shapes or no element types recorded, or replayed from a graph (--roles-from an eager trace with shapes lends them)";
    let mut columns = vec![
        Column::new("part", "part", Kind::Text).at_least(13).droppable(7),
        Column::new("role", "role", Kind::Text).at_least(18),
        Column::new("role_from", "from", Kind::Text).at_least(8).droppable(2),
        Column::new("kernel", "kernel", Kind::Text).at_least(20).not_below(16).droppable(6),
        Column::new("calls_per_step", "calls", Kind::Number).droppable(8),
        Column::new("ns_per_step", "time/step", Kind::Time).in_unit_of("step"),
        Column::new("share_fraction", "share", Kind::Share),
        Column::new("share_fraction", "", Kind::Bar).droppable(1),
        Column::new("floor_ns", "floor", Kind::Time).in_unit_of("step").droppable(5).or_absent(if peaks { NO_SHAPES } else { NO_PEAKS }),
        Column::new("ceiling_ns", "could save", Kind::Time).in_unit_of("step").droppable(9),
        Column::new("min_ns", "min", Kind::Time).in_unit_of("step").droppable(3),
        Column::new("max_ns", "max", Kind::Time).in_unit_of("step").droppable(4),
    ];
    // One step has no spread.
    let one_step = group.steps.len() == 1;
    columns[0].csv_only = group.layers.is_none();
    columns[9].csv_only = ceilings.rows.iter().all(|row| row.ceiling_ns.is_none());
    columns[10].csv_only = one_step;
    columns[11].csv_only = one_step;
    let (shown, hidden) = chosen(group, layout);
    let mut before = None;
    let body: Vec<Row> = shown
        .iter()
        .map(|line| {
            let row = &group.rows[line.rows[0]];
            // The part is said where it begins; in any other order it is said everywhere.
            let is_same = layout.order == StepOrder::Part && before == Some(row.part);
            before = Some(row.part);
            let share = Value::share(Some(line.total), Some(group.total_busy_ns));
            Row::new(vec![
                if is_same { Value::Blank } else { Value::Text(part(group, row.part)) },
                text(&row.role),
                text(role_source(row.role_from)),
                kernels(group, line, trace, layout.full_names),
                Value::Mean(line.calls as f64 / group.steps.len().max(1) as f64),
                Value::Time(line.per_step),
                share.clone(),
                share,
                Value::time(of_line(line, &ceilings.rows, |row| row.floor_ns)),
                Value::time(of_line(line, &ceilings.rows, |row| row.ceiling_ns)),
                Value::Time(line.min),
                Value::Time(line.max),
            ])
        })
        .collect();
    let calls: u64 = group.rows.iter().map(|row| row.calls).sum();
    let busy = || group.steps.iter().map(|step| step.busy_ns);
    let total = Row::new(vec![
        Value::Blank,
        Value::Text(format!("step, all {}", plural((shown.len() + hidden) as u64, "row", "rows"))),
        Value::Blank,
        Value::Blank,
        Value::Mean(calls as f64 / group.steps.len().max(1) as f64),
        Value::Time(group.busy_ns),
        Value::share(Some(group.total_busy_ns), Some(group.total_busy_ns)),
        Value::Blank,
        Value::Blank,
        Value::Time(ceilings.rows.iter().filter_map(|row| row.ceiling_ns).sum()),
        Value::time(busy().min()),
        Value::time(busy().max()),
    ]);
    let mut notes = Vec::new();
    if hidden > 0 {
        let seen: Ns = shown.iter().map(|line| line.total).sum();
        notes.push(format!("rows not shown take {} % of busy", percent(of(group.total_busy_ns - seen, group.total_busy_ns))));
    }
    if group.activities_per_step > group.kernels_per_step {
        notes.push("rows and calls are of kernels, copies and fills".to_owned());
    }
    if shown.iter().any(|line| line.rows.len() > 1) {
        notes.push("+N: several kernels, whose times are added; --by kernel tells them apart".to_owned());
    }
    Table { noun: "rows", columns, rows: body, totals: vec![total], hidden, filtered_out: 0, empty: None, notes }
}

/// The kernel of a line with most time, and how many others there are. Where the role is only the kernel's name, it is not said twice.
fn kernels(group: &StepGroup, line: &Line, trace: &Trace, full_names: bool) -> Value {
    let Some(largest) = line.rows.iter().map(|&row| &group.rows[row]).max_by_key(|row| row.total_ns) else { return Value::Blank };
    if largest.role_from == RoleSource::Kernel && !full_names {
        return Value::Blank;
    }
    let name = if full_names { trace.strings.get(largest.name) } else { &largest.kernel };
    match line.rows.len() {
        1 => text(name),
        rows => Value::Text(format!("{name} +{}", rows - 1)),
    }
}

/// The busy time of each layer, drawn around the median of all.
fn strip(group: &StepGroup) -> Option<Strip> {
    let layers = &group.strip;
    let mut sorted: Vec<Ns> = layers.iter().map(|layer| layer.busy_ns).collect();
    sorted.sort_unstable();
    let (least, most, median) = (*sorted.first()?, *sorted.last()?, sorted[(sorted.len() - 1) / 2]);
    // Differences below a tenth are not blown up to the full height.
    let reach = (most - median).max(median - least).get().max(median.get() / 10).max(1);
    let height = |busy: Ns| f64::midpoint((busy - median).get() as f64 / reach as f64, 1.0);
    let bars = layers.iter().map(|layer| Bar { height: height(layer.busy_ns), marked: layer.outlier }).collect();
    let scale = format!("busy of each layer, number 0 first: median {}, least {}, most {}", time(median), time(least), time(most));
    let kinds = group.layers.as_ref().map_or(1, |layers| layers.kinds.len());
    let of_kind = |kind: u32| {
        let mut of_kind: Vec<Ns> = layers.iter().filter(|layer| layer.kind == kind).map(|layer| layer.busy_ns).collect();
        of_kind.sort_unstable();
        of_kind[(of_kind.len() - 1) / 2]
    };
    let outliers: Vec<(usize, Ns, u32)> =
        (0..).zip(layers).filter(|(_, layer)| layer.outlier).map(|(at, l)| (at, l.busy_ns, l.kind)).collect();
    let mut remarks: Vec<String> = outliers
        .iter()
        .take(OUTLIERS_SHOWN)
        .map(|&(at, busy, kind)| {
            let of = if kinds > 1 { format!("layers {}", kind_name(kind)) } else { "layers".to_owned() };
            let median = of_kind(kind);
            format!("^ layer {at}: {}, the median of {of} {} ({})", time(busy), time(median), change(busy, median))
        })
        .collect();
    if outliers.len() > OUTLIERS_SHOWN {
        remarks.push(format!("^ and {} more", count((outliers.len() - OUTLIERS_SHOWN) as u64)));
    }
    Some(Strip { label: "layers", bars, scale, remarks })
}

fn activity_name(trace: &Trace, id: ActivityId) -> String {
    trace.activities.name.get(id.index()).map_or_else(String::new, |&name| short_name(trace.strings.get(name)))
}

fn slow_steps(group: &StepGroup, trace: &Trace) -> Vec<String> {
    let mut lines: Vec<String> = group
        .slow_steps
        .iter()
        .take(SLOW_SHOWN)
        .filter_map(|slow| {
            let step = group.steps.get(slow.step as usize)?;
            let took = match slow.culprit {
                Culprit::Row(row) => {
                    let row = group.rows.get(row as usize)?;
                    format!("{} (`{}`, {})", row.role, row.kernel, part(group, row.part))
                }
                Culprit::IdleInside(activity) => format!("idle, most of it before `{}`", activity_name(trace, activity)),
            };
            Some(format!(
                "step {} (at {}): span {}, {} over the median; {} of it {took}",
                step.number,
                time(since_first(trace, step.start)),
                time(step.span_ns()),
                time(slow.excess_ns),
                time(slow.culprit_ns)
            ))
        })
        .collect();
    if group.slow_steps.len() > SLOW_SHOWN {
        lines.push(format!("and {} more slow steps", count((group.slow_steps.len() - SLOW_SHOWN) as u64)));
    }
    lines
}

fn chapter(
    group: &StepGroup,
    ceilings: &GroupCeilings,
    peaks: bool,
    trace: &Trace,
    layout: &StepLayout,
    (several_devices, last_half): (bool, bool),
) -> Vec<Block> {
    let steps = plural(group.steps.len() as u64, "step", "steps");
    let steps = if last_half && group.half_steps > 0 { format!("{steps} of the second half,") } else { steps };
    let device = if several_devices { format!(", {}", device_label(trace, group.device)) } else { String::new() };
    let mut blocks = vec![
        Block::Heading(group.name.clone(), format!("{steps} found by {}{device}", found_by(group.found_by))),
        Block::Facts(facts(group, last_half)),
        Block::Table(by_role(group, ceilings, peaks, trace, layout)),
    ];
    blocks.extend(most_to_win(group, ceilings).into_iter().flatten());
    blocks.extend(strip(group).map(Block::Strip));
    let slow = slow_steps(group, trace);
    if !slow.is_empty() {
        blocks.extend([Block::Title("Slow steps, by span (first to last device work)"), Block::Notes(slow)]);
    }
    // What the facts say already is not said again.
    let is_said = |note: &&StepNote| matches!(note, StepNote::Drift { .. } | StepNote::WarmUpLeftOut { .. } | StepNote::CutOff { .. });
    let notes: Vec<String> = group.notes.iter().filter(|note| !is_said(note)).map(ToString::to_string).collect();
    if !notes.is_empty() {
        blocks.extend([Block::Title("Notes"), Block::Notes(notes)]);
    }
    blocks
}

/// The whole report.
pub fn steps(steps: &Steps<'_>, trace: &Trace, layout: &StepLayout) -> Vec<Block> {
    let table = steps.table;
    let mut blocks: Vec<Block> = steps.recorded.into_iter().flat_map(|recorded| recorded.blocks(table.last_half)).collect();
    if table.groups.is_empty() {
        let nothing = if trace.activities.is_empty() { trace.recorder.advice().no_device } else { "" };
        blocks.push(Block::Heading("Steps".to_owned(), nothing.to_owned()));
    }
    if table.groups.len() > 1 {
        blocks.push(Block::Heading("Steps".to_owned(), plural(table.groups.len() as u64, "group", "groups")));
        blocks.push(Block::Table(overview(table, trace, layout.limit)));
    }
    let mut largest: Vec<usize> = (0..table.groups.len()).collect();
    largest.sort_by_key(|&group| std::cmp::Reverse(table.groups[group].total_busy_ns));
    let shown = if layout.limit.is_none() { largest.len() } else { largest.len().min(GROUPS_SHOWN) };
    let hidden = largest.len() - shown;
    largest.truncate(shown);
    largest.sort_unstable();
    let several_devices = several_devices(table);
    for &group in &largest {
        if let Some(ceilings) = steps.ceilings.get(group) {
            blocks.extend(chapter(&table.groups[group], ceilings, steps.peaks.is_ok(), trace, layout, (several_devices, table.last_half)));
        }
    }
    let mut notes: Vec<String> = table.notes.iter().map(ToString::to_string).collect();
    if let Some(reason) = steps.peaks.err().filter(|_| !table.groups.is_empty()) {
        notes.push(no_peaks(reason));
    }
    if hidden > 0 {
        notes.push(format!(
            "{} with less busy time: --filter NAME shows one, --limit 0 shows all",
            plural(hidden as u64, "more group", "more groups")
        ));
    }
    if table.activities_outside > 0 && !table.groups.is_empty() {
        notes.push(format!(
            "{} ({}) in none of these steps",
            plural(table.activities_outside, "device activity", "device activities"),
            time(table.outside_ns)
        ));
    }
    if !notes.is_empty() {
        if !table.groups.is_empty() {
            blocks.push(Block::Title("About all steps"));
        }
        blocks.push(Block::Notes(notes));
    }
    blocks
}

/// All rows of all groups, for CSV.
pub fn steps_csv(steps: &Steps<'_>, trace: &Trace) -> Table {
    let columns = vec![
        Column::new("group", "group", Kind::Text),
        Column::new("device", "device", Kind::Text),
        Column::new("found_by", "found by", Kind::Text),
        Column::new("steps", "steps", Kind::Count),
        Column::new("part", "part", Kind::Text),
        Column::new("layer_kind", "kind", Kind::Count),
        Column::new("place", "place", Kind::Count),
        Column::new("role", "role", Kind::Text),
        Column::new("role_from", "from", Kind::Text),
        Column::new("kernel", "kernel", Kind::Text),
        Column::new("kernel_name", "name", Kind::Text),
        Column::new("calls_per_step", "calls", Kind::Number),
        Column::new("ns_per_step", "a step", Kind::Time),
        Column::new("min_ns", "min", Kind::Time),
        Column::new("max_ns", "max", Kind::Time),
        Column::new("total_ns", "total", Kind::Time),
        Column::new("share_fraction", "share", Kind::Share),
        Column::new("floor_ns", "floor", Kind::Time),
        Column::new("ceiling_ns", "could save", Kind::Time),
    ];
    let row = |group: &StepGroup, row: &StepRow, ceiling: RowCeiling| {
        let kind = if let Part::Layer(kind) = row.part { Value::Count(u64::from(kind)) } else { Value::Blank };
        Row::new(vec![
            text(&group.name),
            Value::Text(device_label(trace, group.device)),
            text(group.found_by.code()),
            Value::Count(group.steps.len() as u64),
            text(row.part.code()),
            kind,
            row.place.map_or(Value::Missing, |place| Value::Count(u64::from(place))),
            text(&row.role),
            text(role_source(row.role_from)),
            text(&row.kernel),
            text(trace.strings.get(row.name)),
            Value::Mean(row.calls_per_step(group.steps.len())),
            Value::Time(row.ns_per_step),
            Value::Time(row.min_ns),
            Value::Time(row.max_ns),
            Value::Time(row.total_ns),
            Value::share(Some(row.total_ns), Some(group.total_busy_ns)),
            Value::time(ceiling.floor_ns),
            Value::time(ceiling.ceiling_ns),
        ])
    };
    let rows =
        steps.table.groups.iter().zip(steps.ceilings).flat_map(|(group, ceilings)| {
            group.rows.iter().zip(&ceilings.rows).map(move |(of_group, ceiling)| row(group, of_group, *ceiling))
        });
    Table { noun: "rows", columns, rows: rows.collect(), totals: Vec::new(), hidden: 0, filtered_out: 0, empty: None, notes: Vec::new() }
}
