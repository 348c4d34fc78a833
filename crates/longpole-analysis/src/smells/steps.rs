//! Steps that are unlike the others.

use foldhash::fast::FixedState;
use hashbrown::{HashMap, HashSet};
use longpole_trace::{Interval, IntervalSet, Ns, RangeId, StrId, ThreadId};

use super::thresholds::{CHURN_SHARE, COLD_STEP_SHARE, SLOW_STEP_RATIO, STEPS_TO_JUDGE};
use super::{Facts, Found, SmellKind, Stage};
use crate::families::{Family, FamilyOfName};
use crate::phrases::{count, counted, list, percent, time};
use crate::profiler_overhead::is_full_queue;
use crate::step_choice::{Instance, Steps, median_length};

pub(super) const COLD_FIRST_STEP: SmellKind = SmellKind {
    code: "cold_first_step",
    stage: Stage::StartUp,
    lead_in: "warm up first: ",
    meaning: "The first step is much longer than the others: it warms up what the others use.",
    detection: "The first of at least {STEPS_TO_JUDGE} instances of the repeated range that covers most host time, {STEP_COVERS} of the wall or more, takes {COLD_STEP_RATIO} the median of the \
                others, and {SHORTEST_START_UP} more, without the profiler's own work. It comes before other experiments from {COLD_STEP_SHARE} of the wall.",
    ceiling: "the first step less the median of the others, at most its time in which no device of the rank was busy or collectives alone ran, which wait \
              for the other ranks",
    fix: "Leave the first steps out of the recording (schedule(wait=1, warmup=3, active=3); with Nsight Systems, --capture-range=cudaProfilerApi).",
    find: cold_first_step,
};

pub(super) const SLOW_STEPS: SmellKind = SmellKind {
    code: "slow_steps",
    stage: Stage::Listed,
    lead_in: "",
    meaning: "Some steps, not the first, take far longer on the host than the others; averages hide them, users feel them.",
    detection: "Of at least {STEPS_TO_JUDGE} instances of the repeated range that covers most host time, some other than the first take {SLOW_STEP_RATIO} the \
                median by host time, from the begin of the range to its end; longpole steps judges by span, which is device time. Where instances hold different kinds of work (each has ranges inside that the other lacks), they are no steps: the group of longpole steps that covers most host time is judged instead. Named is the operator, call or overhead (a full launch queue, the profiler's own work) whose own time grew most against a step of median length.",
    ceiling: "the slow steps less the median, summed, at most their time in which no device of the rank was busy",
    fix: "Look at the operator that took the time: a new shape that is planned or compiled, memory that is returned, a data loader, garbage \
          collection, another process. Record more steps to see whether it comes back.",
    find: slow_steps,
};

pub(super) const SHAPE_CHURN: SmellKind = SmellKind {
    code: "shape_churn",
    stage: Stage::Listed,
    lead_in: "",
    meaning: "Operators see new input shapes from step to step. Libraries plan and compilers compile for each, the allocator cannot reuse blocks, and a \
              graph cannot be captured once and replayed.",
    detection: "Shapes were recorded, there are at least {STEPS_TO_JUDGE} steps, and in {CHURN_SHARE} of those after the first one operator has input shapes \
                that no earlier step had. Named is the operator with most new shapes.",
    ceiling: "calls with new shapes of all such operators after the first step, less the time in which a device of the rank was busy",
    fix: "A key/value cache of fixed size (written in place, masked) instead of cat(); padding to a few bucket sizes; mark_dynamic for \
          compilers.",
    find: shape_churn,
};

/// The steps, if there are enough of them.
fn judged<'f>(facts: &'f Facts<'_, '_>) -> Option<&'f Steps> {
    facts.steps.as_ref().filter(|steps| steps.instances.len() as u64 >= STEPS_TO_JUDGE.count())
}

fn is_times(time: Ns, ratio: super::Threshold, median: Ns) -> bool {
    median > Ns::ZERO && time.get() as f64 >= median.get() as f64 * ratio.value
}

fn cold_first_step(facts: &Facts<'_, '_>) -> Option<Found> {
    let steps = facts.steps.as_ref()?;
    let cold = Steps::cold_first(&steps.instances, &facts.evidence.profiler)?;
    let working = working_during(facts, facts.trace().thread_rank(steps.thread), cold.interval);
    let profiler = if cold.profiler > Ns::ZERO { format!(" ({} of it the profiler's own)", time(cold.profiler)) } else { String::new() };
    let summary = format!(
        "the first {} takes {}{profiler}, the median of the other {} {}",
        facts.clip(&steps.name),
        time(cold.interval.len()),
        steps.instances.len() - 1,
        time(cold.median)
    );
    let win = cold.excess.min(cold.interval.len() - cold.profiler - working).max(Ns::ZERO);
    // Steps that run at the same time on other ranks are one step of the run.
    let ceiling = facts.host_ceiling(Ns(win.get().saturating_mul(facts.ranks_in_scope() as i64)));
    let leads = ceiling.is_some_and(|ceiling| COLD_STEP_SHARE.is_met(ceiling.win_ns, facts.wall));
    Some(
        Found::new(
            steps.name.as_str(),
            summary,
            "warm up before the profiler starts and record again, then compare first and median again",
        )
        .covering(facts.host_share(Ns(cold.excess.get().saturating_mul(facts.ranks_in_scope() as i64))))
        .at_most(ceiling)
        .fact("first_ns", cold.interval.len())
        .fact("profiler_ns", cold.profiler)
        .fact("median_of_others_ns", cold.median)
        .fact("steps", steps.instances.len() as u64)
        .leading(leads),
    )
}

/// The part of an interval in which a device of the rank ran more than collectives, which mostly wait; whoever launched it.
fn working_during(facts: &Facts<'_, '_>, rank: u32, during: Interval) -> Ns {
    let trace = facts.trace();
    let activities = &trace.activities;
    let mut families = FamilyOfName::new(trace);
    let working = (0..activities.len())
        .filter(|&row| activities.start[row] < during.end && activities.end(row) > during.start)
        .filter(|&row| trace.lane_rank(activities.lane[row]) == rank && families.get(trace, row) != Family::Communication)
        .map(|row| Interval::new(activities.start[row], activities.dur[row]))
        .collect();
    IntervalSet::from_unsorted(vec![during]).intersection(&IntervalSet::from_unsorted(working)).total()
}

/// The steps that are slow.
fn slow(steps: &Steps) -> Vec<Instance> {
    let median = median_length(&steps.instances);
    let later = steps.instances.iter().skip(1);
    later.filter(|(_, interval)| is_times(interval.len(), SLOW_STEP_RATIO, median)).copied().collect()
}

/// Whether a host event lies in a step that is listed as slow.
pub(super) fn is_in_slow_step(facts: &Facts<'_, '_>, thread: ThreadId, at: Ns) -> bool {
    let Some(steps) = judged(facts).filter(|steps| steps.thread == thread) else { return false };
    slow(steps).iter().any(|(_, interval)| interval.start <= at && at < interval.end)
}

/// The own time of each operator, call and inner range in a step. What the profiler notes as overhead is taken out of the event it lies in and
/// stands under its own name, be it the profiler's bookkeeping or a wait for room in the launch queue.
fn own_times(facts: &Facts<'_, '_>, range: RangeId) -> HashMap<StrId, Ns, FixedState> {
    let tree = facts.tables.index.tree();
    let mut own: HashMap<StrId, Ns, FixedState> = HashMap::default();
    let Some(root) = tree.range_node(range) else { return own };
    let interval = |node| {
        let (start, duration) = tree.times(node);
        Interval::new(start, duration)
    };
    for node in tree.subtree(root) {
        let duration = tree.times(node).1;
        *own.entry(tree.name(node)).or_default() += duration;
        if let Some(parent) = tree.parent(node).filter(|_| node != root) {
            *own.entry(tree.name(parent)).or_default() -= duration;
        }
    }
    let overheads = &facts.trace().overheads;
    // Overhead names no rank; with several nobody knows in whose step it lies.
    let rows = if facts.trace().ranks.len() > 1 { 0 } else { overheads.len() };
    let within = interval(root);
    for row in (0..rows).filter(|&row| within.start <= overheads.start[row] && overheads.start[row] < within.end) {
        let start = overheads.start[row];
        let holds = |&node: &_| interval(node).start <= start && start < interval(node).end;
        // Depth first, the last that holds it is the innermost.
        let Some(around) = tree.subtree(root).filter(holds).last() else { continue };
        let inside = Interval { start, end: Interval::new(start, overheads.dur[row]).end.min(interval(around).end) }.len();
        *own.entry(tree.name(around)).or_default() -= inside;
        *own.entry(overheads.name[row]).or_default() += inside;
    }
    own
}

/// A name of [`own_times`] for a sentence.
fn culprit_text(facts: &Facts<'_, '_>, name: StrId) -> String {
    let text = facts.trace().strings.get(name);
    match (is_overhead(facts, name), is_full_queue(text)) {
        (true, true) => format!("waiting for room in the launch queue ({})", facts.clip(text)),
        (true, false) => format!("the profiler or driver itself ({})", facts.clip(text)),
        (false, _) => facts.clip(text),
    }
}

fn is_overhead(facts: &Facts<'_, '_>, name: StrId) -> bool {
    facts.trace().overheads.name.contains(&name)
}

fn slow_steps(facts: &Facts<'_, '_>) -> Option<Found> {
    let steps = judged(facts)?;
    let slow = slow(steps);
    if slow.is_empty() {
        return None;
    }
    let median = median_length(&steps.instances);
    let typical = steps.instances.iter().find(|(_, interval)| interval.len() == median)?.0;
    let usual = own_times(facts, typical);
    let strings = &facts.trace().strings;
    let mut culprits: HashMap<StrId, (u64, Ns), FixedState> = HashMap::default();
    let mut each = Vec::new();
    let (trace, numbers) = (facts.trace(), facts.tables.index.step_numbers());
    let number = |range| numbers.of_range(trace, range);
    // What has no number is known by when it was.
    let said = |range, interval: Interval| number(range).map_or_else(|| facts.moment(interval.start), |number| format!("step {number}"));
    for &(range, interval) in &slow {
        let own = own_times(facts, range);
        let growth = |(&name, &time): (&StrId, &Ns)| (time - usual.get(&name).copied().unwrap_or_default(), std::cmp::Reverse(name));
        let Some((grew, std::cmp::Reverse(name))) = own.iter().map(growth).max() else { continue };
        let known = culprits.entry(name).or_default();
        *known = (known.0 + 1, known.1 + grew);
        each.push(format!(
            "{}, {}: {}, of which {} more in {}",
            steps.name,
            said(range, interval),
            time(interval.len()),
            time(grew),
            culprit_text(facts, name)
        ));
    }
    let (culprit, grew) =
        culprits.iter().map(|(&name, &(_, grew))| (grew, std::cmp::Reverse(name))).max().map(|(grew, name)| (name.0, grew))?;
    let excess: Ns = slow.iter().map(|(_, interval)| interval.len() - median).sum();
    let all = slow.iter().map(|&(range, interval)| format!("{} ({})", time(interval.len()), said(range, interval)));
    let summary = format!(
        "{} of host time, the median of all {} is {}; {} took {} of the {} more",
        list(&format!("{} takes ", facts.clip(&steps.name)), all, 4),
        count(steps.instances.len() as u64),
        time(median),
        culprit_text(facts, culprit),
        percent(grew, excess).unwrap_or_default(),
        time(excess)
    );
    let idle = facts.cover(slow.iter().map(|&(_, interval)| (steps.thread, interval))).idle;
    let slowest = slow.iter().max_by_key(|(_, interval)| interval.len()).copied();
    let of_slowest = slowest.and_then(|(range, _)| number(range));
    let scope = match (of_slowest, slowest) {
        (Some(number), _) => format!("--step {number}"),
        (None, Some((_, interval))) => format!("--time {}", facts.window(interval)),
        (None, None) => String::new(),
    };
    let next = match (is_overhead(facts, culprit), is_full_queue(strings.get(culprit))) {
        (true, true) => {
            "no harm while the GPU is busy: the host ran ahead as far as it can; record more steps and see whether the GPU idles in them"
                .to_owned()
        }
        (true, false) => "record more steps and see whether the slow ones are others".to_owned(),
        (false, _) => {
            format!("see what {} does there (longpole ops {scope}), then record more steps", facts.clip(strings.get(culprit)))
        }
    };
    Some(
        Found::new(steps.name.as_str(), summary, next)
            .covering(facts.host_share(excess))
            .at_most(facts.host_ceiling(excess.min(idle)))
            .fact("slow_steps", slow.len() as u64)
            .fact("steps", steps.instances.len() as u64)
            .fact("slowest_step", of_slowest.map(u64::from))
            .fact("median_ns", median)
            .fact("excess_ns", excess)
            .fact("operator", strings.get(culprit))
            .fact("operator_grew_ns", grew)
            .fact("each", super::FactValue::List(each)),
    )
}

/// What is known of an operator's shapes.
#[derive(Default)]
struct Shapes {
    seen: HashSet<StrId, FixedState>,
    /// Steps after the first that brought a new shape, the last one last.
    fresh_steps: u64,
    last_fresh: Option<usize>,
    fresh: u64,
    /// Calls with shapes that were new in their step.
    calls: Vec<(ThreadId, Interval)>,
    fresh_now: HashSet<StrId, FixedState>,
}

fn shape_churn(facts: &Facts<'_, '_>) -> Option<Found> {
    let steps = judged(facts)?;
    let (trace, ops) = (facts.trace(), &facts.trace().host_ops);
    // Step and row.
    let mut inside: Vec<(u32, u32)> = (0..ops.len())
        .filter(|&row| ops.thread[row] == steps.thread && ops.shapes(row).is_some())
        .filter_map(|row| Some((steps.position(ops.start[row])? as u32, row as u32)))
        .collect();
    if !inside.is_sorted() {
        inside.sort_unstable();
    }
    let mut known: HashMap<StrId, Shapes, FixedState> = HashMap::default();
    for (step, row) in inside {
        let (step, row) = (step as usize, row as usize);
        let Some(shapes) = ops.shapes(row) else { continue };
        let of = known.entry(ops.name[row]).or_default();
        if of.last_fresh != Some(step) {
            of.fresh_now.clear();
        }
        let is_new = of.seen.insert(shapes);
        if step == 0 || !(is_new || of.fresh_now.contains(&shapes)) {
            continue;
        }
        if is_new {
            of.fresh_steps += u64::from(of.last_fresh.replace(step) != Some(step));
            of.fresh += 1;
            of.fresh_now.insert(shapes);
        }
        of.calls.push((ops.thread[row], Interval::new(ops.start[row], ops.dur[row])));
    }
    let later = steps.instances.len() as u64 - 1;
    let churns = |of: &Shapes| of.fresh_steps as f64 >= later as f64 * CHURN_SHARE.value && of.fresh_steps > 0;
    known.retain(|_, of| churns(of));
    let most = known.iter().max_by_key(|(name, of)| (of.fresh, of.calls.len(), std::cmp::Reverse(**name)))?;
    let (name, subject) = (trace.strings.get(*most.0), most.1);
    let calls = facts.cover(known.values().flat_map(|of| of.calls.iter().copied()));
    let summary = format!(
        "{} has new input shapes in {} of {} later {} ({}), as have {}",
        facts.clip(name),
        count(subject.fresh_steps),
        count(later),
        facts.clip(&steps.name),
        counted(subject.fresh, "new shape"),
        counted(known.len() as u64 - 1, "other operator")
    );
    Some(
        Found::new(name, summary, "keep shapes fixed (a preallocated cache, padding to buckets), then count distinct shapes per step")
            .covering(facts.host_share(calls.total))
            .at_most(facts.steady_host_ceiling(calls.idle))
            .fact("operators", known.len() as u64)
            .fact("new_shapes", subject.fresh)
            .fact("steps_with_new_shapes", subject.fresh_steps)
            .fact("later_steps", later)
            .fact("calls", calls.number)
            .fact("host_ns", calls.total)
            .fact("gpu_idle_during_ns", calls.idle),
    )
}
