//! `longpole.steps/1`

use longpole_analysis::{
    CeilingRow, CeilingSubject, Culprit, GroupCeilings, LayerKind, LeftOut, Part, RowCeiling, SlowStep, Step, StepGroup, StepNote, StepRow,
    StepTable, Why,
};
use longpole_trace::{ActivityKind, Trace};
use serde::Serialize;

use super::roofline::{PeaksOut, peaks};
use super::{DeviceOut, device, ns};
use crate::header::Header;
use crate::views::{Recorded, Steps, no_peaks, of_span, role_source, since_first};

#[derive(Serialize)]
struct Kind {
    kernels: u32,
    copies_and_fills: u32,
    count: u32,
}

#[derive(Serialize)]
struct StepOut {
    number: u32,
    start_ns: i64,
    span_ns: i64,
    busy_ns: i64,
    period_ns: Option<i64>,
}

#[derive(Serialize)]
struct LeftOutStep {
    #[serde(flatten)]
    step: StepOut,
    why: &'static str,
}

#[derive(Serialize)]
struct RowOut<'a> {
    part: &'static str,
    layer_kind: Option<u32>,
    place: Option<u32>,
    role: &'a str,
    role_from: &'static str,
    kernel: &'a str,
    kernel_name: &'a str,
    kind: &'static str,
    calls: u64,
    calls_per_step: f64,
    ns_per_step: i64,
    min_ns: i64,
    max_ns: i64,
    total_ns: i64,
    share_fraction: f64,
    floor_ns: Option<i64>,
    ceiling_ns: Option<i64>,
}

/// What one change wins at most.
#[derive(Clone, Serialize)]
struct CeilingOut<'a> {
    kind: &'static str,
    subject: &'static str,
    part: Option<&'static str>,
    layer_kind: Option<u32>,
    roles: Vec<&'a str>,
    cause: Option<&'static str>,
    ns_per_step: Option<i64>,
    total_ns: i64,
    of_span_fraction: Option<f64>,
    basis: &'a str,
}

#[derive(Serialize)]
struct Layer {
    kind: u32,
    busy_ns: i64,
    outlier: bool,
}

#[derive(Serialize)]
struct Slow<'a> {
    number: u32,
    start_ns: i64,
    excess_ns: i64,
    culprit: &'static str,
    culprit_role: Option<&'a str>,
    culprit_kernel: Option<&'a str>,
    culprit_ns: i64,
}

#[derive(Serialize)]
struct Group<'a> {
    name: &'a str,
    found_by: &'static str,
    #[serde(flatten)]
    device: DeviceOut,
    count: usize,
    layers: usize,
    layer_kinds: Vec<Kind>,
    layer_order: &'a [u32],
    kernels_per_step: u64,
    activities_per_step: u64,
    busy_ns: i64,
    span_ns: i64,
    period_ns: Option<i64>,
    gap_inside_ns: i64,
    gap_between_ns: Option<i64>,
    total_busy_ns: i64,
    half_steps: usize,
    first_half_busy_ns: Option<i64>,
    second_half_busy_ns: Option<i64>,
    rows: Vec<RowOut<'a>>,
    best_ceiling: Option<CeilingOut<'a>>,
    ceilings: Vec<CeilingOut<'a>>,
    strip: Vec<Layer>,
    steps: Vec<StepOut>,
    left_out: Vec<LeftOutStep>,
    slow_steps: Vec<Slow<'a>>,
    notes: Vec<Note>,
}

#[derive(Serialize)]
struct Note {
    code: &'static str,
    text: String,
}

/// The run that was recorded for the document.
#[derive(Serialize)]
struct RecordedOut<'a> {
    program: &'a str,
    status: i32,
    range: Option<&'a str>,
    windows: Option<usize>,
    delay_ns: Option<i64>,
    window_ns: Option<i64>,
    path: Option<&'a str>,
}

fn recorded<'a>(recorded: &Recorded<'a>) -> RecordedOut<'a> {
    let Recorded { program, status, range, windows, delay, window, path } = *recorded;
    RecordedOut { program, status, range, windows, delay_ns: ns(delay), window_ns: ns(window), path }
}

#[derive(Serialize)]
struct Body<'a> {
    recorded: Option<RecordedOut<'a>>,
    last_half: bool,
    peaks: Option<PeaksOut<'a>>,
    no_peaks: Option<String>,
    groups: Vec<Group<'a>>,
    activities_outside: u64,
    outside_ns: i64,
    notes: Vec<Note>,
}

fn note(note: &StepNote) -> Note {
    let code = match note {
        StepNote::WarmUpLeftOut { .. } => "warm_up_left_out",
        StepNote::Drift { .. } => "drift",
        StepNote::WithoutLaunch { .. } => "without_launch",
        StepNote::RepeatsAreSteps => "repeats_are_steps",
        StepNote::CutOff { .. } => "cut_off",
        StepNote::Unmatched { .. } => "unmatched",
        StepNote::MarkerHoldsSeveralSteps { .. } => "marker_holds_several_steps",
        StepNote::RolesBorrowed(_) => "roles_borrowed",
        StepNote::NumberedApart => "numbered_apart",
        StepNote::NoSteps => "no_steps",
    };
    Note { code, text: note.to_string() }
}

fn step(step: &Step, trace: &Trace) -> StepOut {
    StepOut {
        number: step.number,
        start_ns: since_first(trace, step.start).get(),
        span_ns: step.span_ns().get(),
        busy_ns: step.busy_ns.get(),
        period_ns: ns(step.period_ns),
    }
}

fn left_out(left: &LeftOut, trace: &Trace) -> LeftOutStep {
    let why = match left.why {
        Why::Slow => "slow",
        Why::OtherKernels => "other_kernels",
        Why::CutOff => "cut_off",
        Why::FirstHalf => "first_half",
    };
    LeftOutStep { step: step(&left.step, trace), why }
}

fn layer_kind(part: Part) -> Option<u32> {
    if let Part::Layer(kind) = part { Some(kind) } else { None }
}

fn ceiling<'a>(row: &'a CeilingRow, group: &'a StepGroup) -> CeilingOut<'a> {
    let (subject, part, roles, cause): (_, Option<Part>, Vec<&str>, _) = match &row.subject {
        CeilingSubject::Role { part, role, .. } => ("role", Some(*part), vec![role.as_str()], None),
        CeilingSubject::Chain { rows, roles, .. } => {
            let parts = || rows.iter().filter_map(|&row| Some(group.rows.get(row as usize)?.part));
            let only = parts().next().filter(|first| parts().all(|part| part == *first));
            ("chain", only, roles.iter().map(String::as_str).collect(), None)
        }
        CeilingSubject::Steps { .. } => ("step", None, Vec::new(), None),
        CeilingSubject::Cause { cause, .. } => ("idle", None, Vec::new(), Some(cause.code())),
    };
    CeilingOut {
        kind: row.kind.code(),
        subject,
        part: part.map(Part::code),
        layer_kind: part.and_then(layer_kind),
        roles,
        cause,
        ns_per_step: ns(row.per_step_ns),
        total_ns: row.ceiling_ns.get(),
        of_span_fraction: of_span(row, group),
        basis: &row.basis,
    }
}

fn row<'a>(row: &'a StepRow, ceiling: RowCeiling, group: &StepGroup, trace: &'a Trace) -> RowOut<'a> {
    RowOut {
        part: row.part.code(),
        layer_kind: layer_kind(row.part),
        place: row.place,
        role: &row.role,
        role_from: role_source(row.role_from),
        kernel: &row.kernel,
        kernel_name: trace.strings.get(row.name),
        kind: match row.kind {
            ActivityKind::Kernel => "kernel",
            ActivityKind::Memcpy => "memcpy",
            ActivityKind::Memset => "memset",
            ActivityKind::Other => "other",
        },
        calls: row.calls,
        calls_per_step: row.calls_per_step(group.steps.len()),
        ns_per_step: row.ns_per_step.get(),
        min_ns: row.min_ns.get(),
        max_ns: row.max_ns.get(),
        total_ns: row.total_ns.get(),
        share_fraction: row.share_fraction(group.total_busy_ns),
        floor_ns: ns(ceiling.floor_ns),
        ceiling_ns: ns(ceiling.ceiling_ns),
    }
}

fn slow<'a>(slow: &SlowStep, group: &'a StepGroup, trace: &'a Trace) -> Option<Slow<'a>> {
    let step = group.steps.get(slow.step as usize)?;
    let (culprit, role, kernel) = match slow.culprit {
        Culprit::Row(row) => {
            let row = group.rows.get(row as usize)?;
            ("row", Some(row.role.as_str()), Some(row.kernel.as_str()))
        }
        Culprit::IdleInside(id) => ("idle_inside", None, trace.activities.name.get(id.index()).map(|&name| trace.strings.get(name))),
    };
    Some(Slow {
        number: step.number,
        start_ns: since_first(trace, step.start).get(),
        excess_ns: slow.excess_ns.get(),
        culprit,
        culprit_role: role,
        culprit_kernel: kernel,
        culprit_ns: slow.culprit_ns.get(),
    })
}

fn kind(kind: &LayerKind) -> Kind {
    Kind { kernels: kind.places, copies_and_fills: kind.places.saturating_sub(kind.kernels), count: kind.count }
}

fn group<'a>(group: &'a StepGroup, ceilings: &'a GroupCeilings, trace: &'a Trace, order: &[usize]) -> Group<'a> {
    let layers = group.layers.as_ref();
    let of_row = |at: usize| ceilings.rows.get(at).copied().unwrap_or_default();
    let of_group: Vec<CeilingOut<'a>> = ceilings.ceilings.iter().map(|row| ceiling(row, group)).collect();
    Group {
        name: &group.name,
        found_by: group.found_by.code(),
        device: device(trace, group.device),
        count: group.steps.len(),
        layers: layers.map_or(0, |layers| layers.order.len()),
        layer_kinds: layers.iter().flat_map(|layers| &layers.kinds).map(kind).collect(),
        layer_order: layers.map_or(&[], |layers| &layers.order),
        kernels_per_step: group.kernels_per_step,
        activities_per_step: group.activities_per_step,
        busy_ns: group.busy_ns.get(),
        span_ns: group.span_ns.get(),
        period_ns: ns(group.period_ns),
        gap_inside_ns: group.gap_inside_ns.get(),
        gap_between_ns: ns(group.gap_between_ns),
        total_busy_ns: group.total_busy_ns.get(),
        half_steps: group.half_steps,
        first_half_busy_ns: ns(group.first_half_busy_ns),
        second_half_busy_ns: ns(group.second_half_busy_ns),
        rows: order.iter().filter_map(|&at| Some(row(group.rows.get(at)?, of_row(at), group, trace))).collect(),
        best_ceiling: ceilings.best.and_then(|best| of_group.get(best).cloned()),
        ceilings: of_group,
        strip: group.strip.iter().map(|layer| Layer { kind: layer.kind, busy_ns: layer.busy_ns.get(), outlier: layer.outlier }).collect(),
        steps: group.steps.iter().map(|of_group| step(of_group, trace)).collect(),
        left_out: group.left_out.iter().map(|left| left_out(left, trace)).collect(),
        slow_steps: group.slow_steps.iter().filter_map(|of_group| slow(of_group, group, trace)).collect(),
        notes: group.notes.iter().map(note).collect(),
    }
}

/// The document of `longpole steps`, each group's rows as `layout` orders and limits them. Times at which something happened count from the
/// first event, as `--time` does.
pub fn steps<'a>(header: &Header<'a>, steps: &Steps<'a>, trace: &'a Trace, layout: &crate::views::StepLayout) -> impl Serialize + use<'a> {
    let table: &'a StepTable = steps.table;
    let body = Body {
        recorded: steps.recorded.map(recorded),
        last_half: table.last_half,
        peaks: steps.peaks.ok().map(peaks),
        no_peaks: steps.peaks.err().map(no_peaks),
        groups: table
            .groups
            .iter()
            .zip(steps.ceilings)
            .map(|(of_table, ceilings)| group(of_table, ceilings, trace, &crate::views::rows_in_order(of_table, layout)))
            .collect(),
        activities_outside: table.activities_outside,
        outside_ns: table.outside_ns.get(),
        notes: table.notes.iter().map(note).collect(),
    };
    super::document("longpole.steps/1", header, body)
}
