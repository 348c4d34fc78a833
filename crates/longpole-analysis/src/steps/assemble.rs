//! Groups from clusters: steps in order, warm-up ones left out, figures, layers at a glance, slow steps.

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use longpole_trace::{ActivityId, Ns, Trace};

use super::Program;
use super::group::{Cluster, Local, Raw};
use super::table::{Table, bare_step, is_kernel, median};
use super::types::{Culprit, FoundBy, LayerStructure, LeftOut, SlowStep, Step, StepGroup, StepNote, StripLayer, Why};
use super::windows::Halving;

/// Fewest steps that must stay for first ones to be left out as slow, and the most that are.
const KEPT_AT_LEAST: usize = 3;
const WARM_UP_SHARE: usize = 3;
/// A first step is a warm-up if its busy or its span is this many times the median of the others.
const SLOW_BUSY: f64 = 1.3;
const SLOW_SPAN: f64 = 2.0;
/// Halves whose busy differs by more are warned of.
const DRIFT: f64 = 0.03;
/// Fewest steps to compare halves, and to call any of them slow.
const STEPS_TO_JUDGE: usize = 4;
/// A layer is an outlier by this share of the median and this many usual distances.
const OUTLIER_SHARE: f64 = 0.1;
const OUTLIER_DISTANCES: i64 = 5;
/// The same for slow steps.
const SLOW_SHARE: f64 = 0.2;
/// Slow steps listed at most.
const MOST_SLOW: usize = 16;

/// The groups of one device, in order of their first step.
pub(super) fn groups(
    trace: &Trace,
    program: &Program,
    raws: &[Raw],
    clusters: &[Cluster],
    names: &[String],
    halving: Halving<'_>,
) -> Vec<StepGroup> {
    // Steps of all groups in order of start, for their numbers and who follows whom.
    let mut steps: Vec<Option<Step>> = raws.iter().map(|raw| Some(bare_step(trace, program, raw, 0))).collect();
    let mut order: Vec<usize> = (0..raws.len()).collect();
    let start = |steps: &[Option<Step>], at: usize| steps[at].as_ref().map_or(Ns::ZERO, |step| step.start);
    order.sort_by_key(|&at| (start(&steps, at), at));
    let mut cluster_of = vec![usize::MAX; raws.len()];
    for (number, cluster) in clusters.iter().enumerate() {
        cluster.members.iter().for_each(|&at| cluster_of[at] = number);
    }
    for (number, &at) in order.iter().enumerate() {
        let next = order.get(number + 1).copied().filter(|&next| cluster_of[next] == cluster_of[at]);
        // Between two windows nothing was recorded.
        let next = next.filter(|&next| halving.window_of[next] == halving.window_of[at]);
        let next_start = next.map(|next| start(&steps, next));
        if let Some(step) = &mut steps[at] {
            step.number = number as u32;
            step.period_ns = next_start.map(|next| next - step.start);
        }
    }
    let mut groups: Vec<StepGroup> = Vec::new();
    for cluster in clusters {
        if let Some(group) = group(trace, program, raws, cluster, names, halving, &mut steps) {
            groups.push(group);
        }
    }
    groups.sort_by_key(|group| group.steps.first().map(|step| step.number));
    let mut seen: HashMap<String, u32, FixedState> = HashMap::default();
    for group in &mut groups {
        let count = seen.entry(group.name.clone()).or_insert(0);
        *count += 1;
        if *count > 1 {
            group.name = format!("{} ({count})", group.name);
        }
    }
    groups
}

fn group(
    trace: &Trace,
    program: &Program,
    raws: &[Raw],
    cluster: &Cluster,
    names: &[String],
    halving: Halving<'_>,
    steps: &mut [Option<Step>],
) -> Option<StepGroup> {
    let mut members: Vec<usize> = cluster.members.clone();
    members.sort_by_key(|&at| steps[at].as_ref().map(|step| step.number));
    let slow = warm_ups(&members, steps);
    let halves = halving.halves(&members[slow..], steps);
    let mut left_out = Vec::new();
    let mut take = |at: usize, why: Why| left_out.extend(steps[at].take().map(|step| LeftOut { step, why }));
    cluster.warm_ups.iter().for_each(|&at| take(at, Why::OtherKernels));
    members[..slow].iter().for_each(|&at| take(at, Why::Slow));
    cluster.cut_off.iter().for_each(|&at| take(at, Why::CutOff));
    halves.before.iter().for_each(|&at| take(at, Why::FirstHalf));
    left_out.sort_by_key(|left| left.step.number);
    let members = &halves.kept;
    let mut table = Table::new(trace, program, &raws[typical(program, raws, members)?]);
    let mut kept = Vec::with_capacity(members.len());
    for &at in members {
        let mut step = steps[at].take()?;
        table.add(&raws[at], &mut step);
        kept.push(step);
    }
    let (extra, missing) = (table.extra, table.missing);
    let layer_times = std::mem::take(&mut table.layer_times);
    let (rows, layers, numbers) = table.finish();
    kept.iter_mut().flat_map(|step| &mut step.rows).for_each(|row| *row = numbers[*row as usize]);

    let of_each = |value: &dyn Fn(&Step) -> Option<Ns>| {
        let mut values: Vec<Ns> = kept.iter().filter_map(value).collect();
        (!values.is_empty()).then(|| median(&mut values))
    };
    let kernels = |step: &Step| step.activities.iter().filter(|id| is_kernel(trace.activities.kind[id.index()])).count() as i64;
    let of_halves = |busy: Ns| (halves.steps > 0).then_some(busy);
    let mut group = StepGroup {
        name: names.get(cluster.class as usize).cloned().unwrap_or_default(),
        found_by: found_by(raws, members),
        device: program.sequence.device,
        kernels_per_step: of_each(&|step| Some(Ns(kernels(step)))).map_or(0, |count| count.get() as u64),
        activities_per_step: of_each(&|step| Some(Ns(step.activities.len() as i64))).map_or(0, |count| count.get() as u64),
        busy_ns: of_each(&|step| Some(step.busy_ns)).unwrap_or_default(),
        span_ns: of_each(&|step| Some(step.span_ns())).unwrap_or_default(),
        period_ns: of_each(&|step| step.period_ns),
        gap_between_ns: of_each(&|step| step.period_ns.map(|period| period - step.span_ns())),
        gap_inside_ns: of_each(&|step| Some(step.span_ns() - step.busy_ns)).unwrap_or_default(),
        total_busy_ns: kept.iter().map(|step| step.busy_ns).sum(),
        half_steps: halves.steps,
        first_half_busy_ns: of_halves(halves.first_busy),
        second_half_busy_ns: of_halves(halves.second_busy),
        strip: layers.as_ref().map(|layers| strip(layers, layer_times)).unwrap_or_default(),
        slow_steps: Vec::new(),
        notes: Vec::new(),
        steps: kept,
        left_out,
        layers,
        rows,
    };
    if group.name.is_empty() {
        group.name = describe(&group);
    }
    group.slow_steps = slow_steps(trace, &group);
    group.notes = notes(&group, extra, missing);
    Some(group)
}

/// How many of the first steps are much slower than the rest.
fn warm_ups(members: &[usize], steps: &[Option<Step>]) -> usize {
    let most = (members.len() / WARM_UP_SHARE).min(members.len().saturating_sub(KEPT_AT_LEAST));
    let median_of = |value: fn(&Step) -> Ns| {
        let mut values: Vec<Ns> = members[most..].iter().filter_map(|&at| steps[at].as_ref().map(value)).collect();
        median(&mut values).get() as f64
    };
    let (busy, span) = (median_of(|step| step.busy_ns), median_of(Step::span_ns));
    let is_slow = |at: usize| {
        steps[at]
            .as_ref()
            .is_some_and(|step| step.busy_ns.get() as f64 > busy * SLOW_BUSY || step.span_ns().get() as f64 > span * SLOW_SPAN)
    };
    members[..most].iter().take_while(|&&at| is_slow(at)).count()
}

/// The step whose exact sequence is most frequent; of equals the first.
fn typical(program: &Program, raws: &[Raw], members: &[usize]) -> Option<usize> {
    let mut counts: HashMap<u64, (u32, usize), FixedState> = HashMap::default();
    for (number, &at) in members.iter().enumerate() {
        let symbols = Local::of(program, &raws[at].positions).symbols;
        let hash = std::hash::BuildHasher::hash_one(&FixedState::default(), &symbols);
        counts.entry(hash).or_insert((0, number)).0 += 1;
    }
    let (_, number) = counts.into_values().max_by_key(|&(count, number)| (count, std::cmp::Reverse(number)))?;
    Some(members[number])
}

/// How most of the steps were found.
fn found_by(raws: &[Raw], members: &[usize]) -> FoundBy {
    let count = |by: FoundBy| members.iter().filter(|&&at| raws[at].by == by).count();
    let all = [FoundBy::Marker, FoundBy::GraphReplay, FoundBy::KernelSequence];
    all.into_iter().rev().max_by_key(|&by| count(by)).unwrap_or(FoundBy::KernelSequence)
}

/// What a group without a marker looks like: `28 x 58`.
fn describe(group: &StepGroup) -> String {
    match &group.layers {
        Some(layers) => {
            let kinds: Vec<String> = layers.kinds.iter().map(|kind| format!("{} x {}", kind.count, kind.places)).collect();
            kinds.join(" + ")
        }
        None => crate::phrases::counted(group.activities_per_step, "device event"),
    }
}

fn notes(group: &StepGroup, extra: u64, missing: u64) -> Vec<StepNote> {
    let mut notes = Vec::new();
    let warm: Vec<&LeftOut> = group.left_out.iter().filter(|left| matches!(left.why, Why::Slow | Why::OtherKernels)).collect();
    if !warm.is_empty() {
        let slowest = warm.iter().filter(|left| left.why == Why::Slow).map(|left| left.step.span_ns().get()).max();
        let slowest_percent =
            slowest.filter(|_| group.span_ns > Ns::ZERO).map(|span| (i128::from(span) * 100 / i128::from(group.span_ns.get())) as u64);
        notes.push(StepNote::WarmUpLeftOut { steps: warm.len() as u64, slowest_percent });
    }
    let cut_off = group.left_out.iter().filter(|left| left.why == Why::CutOff).count();
    if cut_off > 0 {
        notes.push(StepNote::CutOff { steps: cut_off as u64 });
    }
    if let (Some(first), Some(second)) = (group.first_half_busy_ns, group.second_half_busy_ns)
        && group.half_steps * 2 >= STEPS_TO_JUDGE
    {
        let larger = first.max(second).get() as f64;
        if (first.get() - second.get()).unsigned_abs() as f64 > larger * DRIFT {
            let steps = group.half_steps as i64;
            notes.push(StepNote::Drift { first_half_ns: Ns(first.get() / steps), second_half_ns: Ns(second.get() / steps) });
        }
    }
    if extra + missing > 0 {
        notes.push(StepNote::Unmatched { extra, missing });
    }
    notes
}

/// The middle distance from the median.
fn usual_distance(values: &[Ns], middle: Ns) -> Ns {
    let mut distances: Vec<Ns> = values.iter().map(|&value| Ns((value - middle).get().abs())).collect();
    median(&mut distances)
}

fn strip(layers: &LayerStructure, times: Vec<Vec<Ns>>) -> Vec<StripLayer> {
    let busy: Vec<Ns> = times.into_iter().map(|mut times| median(&mut times)).collect();
    let mut strip: Vec<StripLayer> =
        layers.order.iter().zip(&busy).map(|(&kind, &busy_ns)| StripLayer { kind, busy_ns, outlier: false }).collect();
    for kind in 0..layers.kinds.len() as u32 {
        let of_kind: Vec<Ns> = strip.iter().filter(|layer| layer.kind == kind).map(|layer| layer.busy_ns).collect();
        let middle = median(&mut of_kind.clone());
        let far = (usual_distance(&of_kind, middle).get() * OUTLIER_DISTANCES) as f64;
        let far = far.max(middle.get() as f64 * OUTLIER_SHARE);
        for layer in strip.iter_mut().filter(|layer| layer.kind == kind) {
            layer.outlier = (layer.busy_ns - middle).get().unsigned_abs() as f64 > far;
        }
    }
    strip
}

/// Steps whose span is far above the median, with what grew most: a row's time, or the idle time inside.
fn slow_steps(trace: &Trace, group: &StepGroup) -> Vec<SlowStep> {
    if group.steps.len() < STEPS_TO_JUDGE {
        return Vec::new();
    }
    let spans: Vec<Ns> = group.steps.iter().map(Step::span_ns).collect();
    let far = (usual_distance(&spans, group.span_ns).get() * OUTLIER_DISTANCES) as f64;
    let far = far.max(group.span_ns.get() as f64 * SLOW_SHARE);
    let mut slow: Vec<usize> = (0..spans.len()).filter(|&at| (spans[at] - group.span_ns).get() as f64 > far).collect();
    slow.sort_by_key(|&at| (std::cmp::Reverse(spans[at]), at));
    slow.truncate(MOST_SLOW);
    slow.into_iter().map(|at| slow_step(trace, group, at)).collect()
}

fn slow_step(trace: &Trace, group: &StepGroup, at: usize) -> SlowStep {
    let step = &group.steps[at];
    let activities = &trace.activities;
    let mut order: Vec<usize> = (0..step.activities.len()).collect();
    order.sort_by_key(|&at| activities.start[step.activities[at].index()]);
    let mut times = vec![Ns::ZERO; group.rows.len()];
    let mut covered = step.start;
    let mut widest: (Ns, Option<ActivityId>) = (Ns::ZERO, None);
    for at in order {
        let id = step.activities[at];
        let (start, end) = (activities.start[id.index()], activities.end(id.index()));
        if start - covered > widest.0 {
            widest = (start - covered, Some(id));
        }
        times[step.rows[at] as usize] += (end - start.max(covered)).max(Ns::ZERO);
        covered = covered.max(end);
    }
    let grown = times.iter().zip(&group.rows).enumerate().map(|(row, (&time, usual))| (time - usual.ns_per_step, row));
    let (row_grew, row) = grown.max_by_key(|&(grew, row)| (grew, std::cmp::Reverse(row))).unwrap_or_default();
    let idle_grew = step.span_ns() - step.busy_ns - group.gap_inside_ns;
    let (culprit, culprit_ns) = match widest.1 {
        Some(before) if idle_grew > row_grew => (Culprit::IdleInside(before), idle_grew),
        _ => (Culprit::Row(row as u32), row_grew),
    };
    SlowStep { step: at as u32, excess_ns: step.span_ns() - group.span_ns, culprit, culprit_ns }
}
