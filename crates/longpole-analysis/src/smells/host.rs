//! The host holds the clock.

use longpole_trace::Ns;

use super::recording::is_torch;
use super::thresholds::{STARVED_LISTED, STARVED_SHARE};
use super::{Facts, Found, SmellKind, Stage};
use crate::ceilings::{CeilingKind, Replay, replay_marked};
use crate::phrases::{counted, fraction, percent, time};
use crate::ranges::{RangeRow, is_users};
use crate::step_choice::{Instance, Steps, median, median_length};

pub(super) const HOST_BOUND: SmellKind = SmellKind {
    code: "host_bound",
    stage: Stage::Host,
    lead_in: "host-bound: ",
    meaning: "The device idles because its next work has not been launched yet: Python, dispatch and launch calls take longer than the kernels they launch.",
    detection: "For at least {STARVED_LISTED} of the device span the device idles and the call that launches its next work has not begun. It leads from \
                {STARVED_SHARE}. A cold first step is left out (cold_first_step has it). A graph replay whose kernels were all launched at once is not host-bound, however short they are. Recording slows the \
                host (1.2 to 3 times in our own measurements of decoding): with --unprofiled-step-ms the idle time that is left without the profiler decides.",
    ceiling: "idle time inside steps that a graph replay has no place for (dispatch, Python, code outside operators, memory management, launch latency), \
              where a range that repeats stands for a step, device work is not replayed already, and the steps hold half of the idle time in which the next work was not launched yet; otherwise all of the latter, \
              inside the device span. With --unprofiled-step-ms the part of it that is left without the profiler",
    fix: "CUDA or HIP graphs (torch.compile(mode=\"reduce-overhead\") or torch.cuda.graph) for steps of fixed shape; torch.compile to fuse; larger batches; \
          fewer, larger operators; less Python per step.",
    find: host_bound,
};

fn host_bound(facts: &Facts<'_, '_>) -> Option<Found> {
    let pace = facts.host_pace;
    // Without operators and ranges nobody can say what the host does.
    if !STARVED_LISTED.is_met(pace.starved, pace.span) || !facts.knows_launchers() {
        return None;
    }
    let plain = unprofiled(facts);
    let (starved, span) = plain.unwrap_or((pace.starved, pace.span));
    if !STARVED_LISTED.is_met(starved, span) {
        return None;
    }
    let calibrated = if plain.is_some() { format!(" ({} without the profiler)", percent(starved, span)?) } else { String::new() };
    let without_first = facts.steps.as_ref().filter(|_| pace.is_without_first);
    let without_first = without_first.map_or_else(String::new, |steps| format!(", the cold first {} left out", facts.clip(&steps.name)));
    let is_replayed = facts.evidence.replays.device_ns.get() > facts.busy.get() / 2;
    let replay = if is_replayed { None } else { replay(facts) };
    let of_steps = replay.map(|replay| (replay, replay.win_ns.get() >= pace.starved.get() / 2));
    let (ceiling, fix) = match of_steps {
        Some((Replay { win_ns, steps }, false)) => {
            let steps = counted(steps, "step");
            // Inside the steps, where a graph replay can win, the GPU is hardly kept waiting.
            let fix = if win_ns.get() > 0 {
                format!(
                    "most of that is outside the {steps}; inside them {} save at most {}: do the work between them less often or beside them",
                    facts.graphs(),
                    time(win_ns)
                )
            } else {
                format!(
                    "most of that is outside the {steps}; inside them {} save nothing: do the work between them less often or beside them",
                    facts.graphs()
                )
            };
            (facts.idle_ceiling(CeilingKind::IdleGone, pace.starved), fix)
        }
        Some((Replay { win_ns, .. }, true)) => (facts.idle_ceiling(CeilingKind::GraphReplay, win_ns), graph_fix(facts)),
        None if is_replayed => {
            let gap = facts.evidence.pace.largest_gap_ns();
            let fix = if gap.get() > pace.starved.get() / 2 {
                format!("most of that is one gap of {}: see what the host does in it", time(gap))
            } else {
                "launch the next graph before the last one ends".to_owned()
            };
            (facts.idle_ceiling(CeilingKind::IdleGone, pace.starved), fix)
        }
        None => (facts.idle_ceiling(CeilingKind::IdleGone, pace.starved), graph_fix(facts)),
    };
    let typical = typical(facts);
    // Recording slows the host down, more so with stacks: host times are not those of a plain run.
    let profiler = if facts.trace().recorded.stacks { "profiler and stacks included" } else { "profiler included" };
    let subject = typical.as_ref().map_or_else(
        || {
            // Of a part of the span the launches are not counted.
            let launches = counted(facts.tables.totals.launches, "launch");
            let launches = if pace.is_without_first { String::new() } else { format!("{launches} in ") };
            format!("{launches}{} ({profiler}) for {} of GPU", time(pace.span), time(pace.busy))
        },
        |Typical { name, calls, host, busy, kernels }| {
            let median = if *calls > 2 { " on the median" } else { "" };
            format!(
                "one {} costs {} of host{median} ({profiler}) for {} of GPU in {}",
                facts.clip(name),
                time(*host),
                time(*busy),
                counted(*kernels, "kernel")
            )
        },
    );
    Some(
        Found::new(
            typical.as_ref().map_or("the host", |typical| typical.name),
            format!("the GPU waits for work {} of its span{calibrated}{without_first}; {subject}", percent(pace.starved, pace.span)?),
            format!("{fix}, then measure busy/span"),
        )
        .covering(facts.device_share(pace.starved))
        .at_most(ceiling)
        .fact("starved_ns", pace.starved)
        .fact("starved_of_span_fraction", fraction(pace.starved, pace.span))
        .fact("starved_of_unprofiled_span_fraction", plain.map(|(starved, span)| fraction(starved, span)))
        .fact("cold_first_step_left_out", if pace.is_without_first { "yes" } else { "no" })
        .fact("gpu_busy_ns", facts.busy)
        .fact("gpu_idle_ns", facts.idle())
        .fact("launches", facts.tables.totals.launches)
        .fact("steps_to_replay", replay.map(|replay| replay.steps))
        .fact("graph_replay_ns", replay.map(|replay| replay.win_ns))
        .fact("range", typical.as_ref().map(|typical| typical.name))
        .fact("range_calls", typical.as_ref().map(|typical| typical.calls))
        .fact("host_per_call_ns", typical.as_ref().map(|typical| typical.host))
        .fact("gpu_busy_per_call_ns", typical.as_ref().map(|typical| typical.busy))
        .fact("kernels_per_call", typical.as_ref().map(|typical| typical.kernels))
        .leading(STARVED_SHARE.is_met(starved, span)),
    )
}

/// What replaying the steps wins, the cold first ones left out.
fn replay(facts: &Facts<'_, '_>) -> Option<Replay> {
    let steps = facts.steps.as_ref()?;
    let warm = steps.by_rank.iter().map(|(rank, instances)| {
        let cold = usize::from(Steps::cold_first(instances, &facts.evidence.profiler).is_some());
        (*rank, instances[cold..].iter().map(|&(_, interval)| interval).collect())
    });
    replay_marked(facts.tables.index, facts.tables.scope, &warm.collect::<Vec<_>>())
}

/// What keeps the host out of a step.
fn graph_fix(facts: &Facts<'_, '_>) -> String {
    if facts.tables.ops.rows.iter().any(|row| row.name.starts_with("Torch-Compiled Region")) {
        format!("it is compiled already, so add {}", facts.graphs())
    } else if !is_torch(facts) {
        format!("try {}", facts.graphs())
    } else {
        format!("try {} or torch.compile", facts.graphs())
    }
}

/// Time without launches, and the span, that a timed step leaves of what was recorded: the rest is the profiler's.
fn unprofiled(facts: &Facts<'_, '_>) -> Option<(Ns, Ns)> {
    let pace = facts.host_pace;
    facts.plain.map(|plain| (plain.left(pace.starved), pace.busy + plain.left(pace.span - pace.busy)))
}

/// Whether a run that looks host-bound is not so without the profiler, as a timed step has it.
pub(crate) fn is_profilers(facts: &Facts<'_, '_>) -> bool {
    let pace = facts.host_pace;
    let is_met = |(starved, span): (Ns, Ns)| STARVED_LISTED.is_met(starved, span);
    facts.knows_launchers() && is_met((pace.starved, pace.span)) && unprofiled(facts).is_some_and(|plain| !is_met(plain))
}

/// What one instance of a range costs, on the median of each.
struct Typical<'a> {
    name: &'a str,
    calls: u64,
    host: Ns,
    busy: Ns,
    kernels: u64,
}

/// The step, if it takes longer on the host than on the device; else the range in which most host time passes beyond the device time it causes.
fn typical<'a>(facts: &'a Facts<'_, '_>) -> Option<Typical<'a>> {
    let steps = facts.steps.as_ref().and_then(|steps| {
        let instances = steps.steady(&facts.evidence.profiler);
        let work = |&(range, _): &Instance| facts.tables.range_work.get(range.index()).copied().unwrap_or_default();
        let kernels = median(instances.iter().map(|instance| work(instance).kernels)).filter(|&kernels| kernels > 0)?;
        Some(Typical {
            name: &steps.name,
            calls: instances.len() as u64,
            host: median_length(&instances),
            busy: median(instances.iter().map(|instance| work(instance).busy_ns.unwrap_or_default()))?,
            kernels,
        })
        .filter(|step| step.host > step.busy)
    });
    steps.or_else(|| {
        let is_step = |row: &RangeRow| facts.steps.as_ref().is_some_and(|steps| steps.name == row.name);
        let matters = |row: &&RangeRow| row.kernels > 0 && is_users(&row.name) && !is_step(row) && fraction(row.cpu_ns, facts.wall) >= 0.3;
        let excess = |row: &&RangeRow| row.cpu_ns - row.gpu_busy_ns.unwrap_or_default();
        let row = facts.tables.ranges.iter().filter(matters).max_by_key(excess)?;
        let calls = i64::try_from(row.calls).ok().filter(|&calls| calls > 0)?;
        Some(Typical {
            name: &row.name,
            calls: 1,
            host: Ns(row.cpu_ns.get() / calls),
            busy: Ns(row.gpu_busy_ns?.get() / calls),
            kernels: row.kernels / row.calls,
        })
    })
}
