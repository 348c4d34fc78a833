//! Time that a run spends once: first calls, compilation, loading.

use longpole_trace::{Interval, Ns, ThreadId};

use super::evidence::LongCall;
use super::facts::names_with;
use super::thresholds::{COLD_SHARE, LOADING_PAUSE, LOADING_SHARE};
use super::{Facts, Found, SmellKind, Stage};
use crate::phrases::{count, counted, fine_percent, time};

pub(super) const COLD_START: SmellKind = SmellKind {
    code: "cold_start",
    stage: Stage::StartUp,
    lead_in: "warm up first: ",
    meaning: "The first call of something initialises a library, loads code or picks an algorithm, while the device idles. It is start-up, not steady state.",
    detection: "One host call, the first of its name (in its operator) or before the second step, takes at least {LONG_CALL_SHARE} of the wall and {SHORTEST_START_UP} without its children, without \
                waiting and without the profiler's own work, while the device idles for four fifths of it, and is {LONG_CALL_RATIO} the median of its name. An only \
                call has nothing to be compared with, so it is listed and not called start-up, unless it lies before the second step. It comes before other experiments from {COLD_SHARE} of the wall.",
    ceiling: "the call's own time in which no device of the rank was busy, children and the profiler's own work excluded",
    fix: "Run a few steps before the profiler starts (schedule(wait=1, warmup=3, active=3); with Nsight Systems, --capture-range=cudaProfilerApi). If start-up itself matters, load and plan ahead: \
          a warm-up request, cached compilation, fewer libraries.",
    find: cold_start,
};

pub(super) const STALL: SmellKind = SmellKind {
    code: "stall",
    stage: Stage::StartUp,
    lead_in: "one stall first: ",
    meaning: "A single host call in the middle of the run took far longer than the others while the device idled.",
    detection: "As cold_start, for a call that is neither the first of its name nor before the second step, and in no step of slow_steps.",
    ceiling: "the call's own time in which no device of the rank was busy, children and the profiler's own work excluded",
    fix: "Record again: a stall that does not come back was the machine's. One that does is mostly a new shape that is planned or compiled, \
          memory that is returned, or another process.",
    find: stall,
};

pub(super) const COMPILE_OR_LOAD: SmellKind = SmellKind {
    code: "compile_or_load",
    stage: Stage::StartUp,
    lead_in: "compile before recording: ",
    meaning: "Code is compiled, autotuned or loaded inside the window: torch.compile, Triton, or modules that the driver loads at first use.",
    detection: "Module and library loading calls (cudaModuleLoad*, cuModuleLoad*, cuLibraryLoad*, cuLinkComplete, hipModuleLoad*), the profiler's loading \
                events (Lazy Function Loading, Runtime Triggered Module Loading), ranges, operators and Python frames of the compilers (dynamo_timed, \
                compile_inner, autotuning) take at least {LOADING_SHARE} of the wall together. Calls of what is compiled already (Call CompiledFxGraph, \
                TorchDynamo Cache Lookup, Torch-Compiled Region) do not count. Without operators the time from one loading call to the next of its thread \
                counts too, up to {LOADING_PAUSE} in which the device did nothing. It comes before other experiments from {COLD_SHARE} of the wall.",
    ceiling: "union of those events, less the time in which a device of the rank was busy",
    fix: "Warm up every shape that is served before recording; mark changing sizes dynamic so that they do not compile again; cache compiled \
          code; CUDA_MODULE_LOADING=EAGER moves loading to the start on NVIDIA.",
    find: compile_or_load,
};

fn long_call(facts: &Facts<'_, '_>, call: &LongCall) -> Found {
    let LongCall { name, inside, self_ns, idle_ns, calls, is_only, .. } = call;
    let place = inside.as_ref().map_or_else(String::new, |op| format!(" in {}", facts.clip(op)));
    let others = if *calls > 1 { format!(" (one of {})", count(*calls)) } else { String::new() };
    let is_cold = is_cold(facts, call);
    let steps = facts.steps.as_ref();
    let is_early = steps.is_some_and(|steps| steps.is_before_second(call.interval.start));
    let what = match (is_cold, steps) {
        (true, _) if *is_only && !is_early => "its only call here, so whether it is start-up cannot be told".to_owned(),
        (true, _) => "start-up, not steady state".to_owned(),
        (false, Some(steps)) => format!("not its first call, and after the first {}", facts.clip(&steps.name)),
        (false, None) => "not its first call".to_owned(),
    };
    let ranks = if facts.tables.totals.comm_busy_ns.is_some_and(|time| time > Ns::ZERO) { ", then compare ranks" } else { "" };
    let next = if is_cold {
        format!("record later steps{ranks}")
    } else {
        "record again and see whether it comes back, with Python stacks if it does".to_owned()
    };
    let idle = if time(*idle_ns) == time(*self_ns) {
        facts.with_idle().to_owned()
    } else {
        format!(", {} of it{}", time(*idle_ns), facts.with_idle())
    };
    let summary =
        format!("one call of {}{place}{others} takes {} of {} wall{idle}: {what}", facts.clip(name), time(*self_ns), time(facts.wall));
    Found::new(name.as_str(), summary, next)
        .covering(facts.host_share(*self_ns))
        .at_most(facts.host_ceiling(*idle_ns))
        .fact("self_ns", *self_ns)
        .fact("gpu_idle_during_ns", facts.has_device().then_some(*idle_ns))
        .fact("calls", *calls)
        .fact("inside", inside.as_deref())
        .leading(COLD_SHARE.is_met(*self_ns, facts.wall))
}

/// A first call, or one so early that it warms up what comes after.
fn is_cold(facts: &Facts<'_, '_>, call: &LongCall) -> bool {
    call.is_first || facts.steps.as_ref().is_some_and(|steps| steps.is_before_second(call.interval.start))
}

fn cold_start(facts: &Facts<'_, '_>) -> Option<Found> {
    facts.evidence.long_calls.iter().find(|call| is_cold(facts, call)).map(|call| long_call(facts, call))
}

fn stall(facts: &Facts<'_, '_>) -> Option<Found> {
    let is_explained = |call: &LongCall| super::steps::is_in_slow_step(facts, call.thread, call.interval.start);
    facts.evidence.long_calls.iter().find(|call| !is_cold(facts, call) && !is_explained(call)).map(|call| long_call(facts, call))
}

/// Names of API calls and driver calls that load code.
pub(crate) fn loads(name: &str) -> bool {
    let rest = ["cuda", "cu", "hip"].iter().find_map(|prefix| name.strip_prefix(prefix));
    rest.is_some_and(|rest| ["ModuleLoad", "LibraryLoad", "LinkComplete", "LinkAddData"].iter().any(|part| rest.starts_with(part)))
}

/// Names of operators and ranges under which compilers work.
pub(crate) fn compiles(name: &str) -> bool {
    const PARTS: &[&str] = &[
        "(dynamo_timed)",
        "compile_inner",
        "entire_frame_compile",
        "compile_fx_inner",
        "CompiledFxGraph.compile",
        "CachingAutotuner.benchmark",
        "autotune",
        "async_compile",
        "triton_compile",
    ];
    PARTS.iter().any(|part| name.contains(part))
}

/// Python functions inside which compilers work.
pub(crate) fn is_compiler_frame(name: &str) -> bool {
    const FILES: &[&str] =
        &["torch/_dynamo/convert_frame.py", "torch/_inductor/compile_fx.py", "triton/compiler/compiler.py", "triton/runtime/autotuner.py"];
    FILES.iter().any(|file| name.contains(file)) && (name.contains("compile") || name.contains("bench"))
}

/// The profiler's own word for loading.
pub(crate) fn is_loading_overhead(name: &str) -> bool {
    name.contains("Function Loading") || name.contains("Module Loading")
}

fn compile_or_load(facts: &Facts<'_, '_>) -> Option<Found> {
    let trace = facts.trace();
    let mut parts: Vec<(ThreadId, Interval)> = Vec::new();
    let (calls, ops, ranges, frames) = (&trace.api_calls, &trace.host_ops, &trace.ranges, &trace.frames);
    let (loading, compiling) = (names_with(trace, loads), names_with(trace, compiles));
    parts.extend(facts.rows_of(&loading, &calls.name, &calls.thread, &calls.start, &calls.dur));
    let load_calls = parts.len() as u64;
    // Operators say what the host does between two loads; without any it prepares the next one.
    let between = if facts.tables.totals.host_ops == 0 { between_loads(facts, &parts) } else { Vec::new() };
    let between_ns = between.iter().map(|(_, interval)| interval.len()).sum::<Ns>();
    parts.extend(facts.rows_of(&compiling, &ops.name, &ops.thread, &ops.start, &ops.dur));
    parts.extend(facts.rows_of(&compiling, &ranges.name, &ranges.thread, &ranges.start, &ranges.dur));
    let framed = names_with(trace, is_compiler_frame);
    parts.extend(facts.rows_of(&framed, &frames.name, &frames.thread, &frames.start, &frames.dur));
    let compiled = parts.len() as u64 - load_calls;
    // Overhead has no thread; with several ranks nobody knows whose it is.
    let overheads = &trace.overheads;
    let mut loaded = 0;
    if trace.ranks.len() <= 1 && facts.tables.scope.is_whole() && !trace.threads.is_empty() {
        let rows = (0..overheads.len()).filter(|&row| is_loading_overhead(trace.strings.get(overheads.name[row])));
        parts.extend(rows.map(|row| (ThreadId(0), Interval::new(overheads.start[row], overheads.dur[row]))).inspect(|_| loaded += 1));
    }
    parts.extend(between);
    let found = facts.cover(parts.into_iter());
    if found.number == 0 || !LOADING_SHARE.is_met(found.total, facts.wall) {
        return None;
    }
    let what = match (compiled, load_calls + loaded) {
        (0, loads) => format!("code is loaded {} inside the window", times(loads)),
        (compiles, 0) => format!("code is compiled inside the window ({})", counted(compiles, "event")),
        (compiles, loads) => format!("code is compiled ({}) and loaded ({}) inside the window", counted(compiles, "event"), times(loads)),
    };
    let share = facts.host_share(found.total);
    let with = if between_ns > Ns::ZERO { format!(", with {} from one load to the next", time(between_ns)) } else { String::new() };
    let summary = format!("{what}: {}{with}, {} of wall", time(found.total), share.map(fine_percent).unwrap_or_default());
    let next = "warm up every shape before recording, then see that no such event is left";
    Some(
        Found::new("compile and load", summary, next)
            .covering(share)
            .at_most(facts.host_ceiling(found.idle))
            .fact("load_calls", load_calls)
            .fact("loading_overheads", loaded)
            .fact("compile_events", compiled)
            .fact("total_ns", found.total)
            .fact("between_loads_ns", between_ns)
            .fact("gpu_idle_during_ns", facts.idle_part(&found))
            .leading(COLD_SHARE.is_met(found.idle, facts.wall)),
    )
}

/// The time between loads of one thread that follow each other within a pause in which no device of the rank worked.
fn between_loads(facts: &Facts<'_, '_>, loads: &[(ThreadId, Interval)]) -> Vec<(ThreadId, Interval)> {
    let mut loads = loads.to_vec();
    loads.sort_unstable();
    let pause = |pair: &[(ThreadId, Interval)]| {
        let ((thread, before), (other, after)) = (pair[0], pair[1]);
        let pause = Interval { start: before.end, end: after.start };
        let busy = facts.evidence.pace.busy.get(facts.trace().thread_rank(thread) as usize);
        let is_idle = || busy.is_none_or(|busy| busy.within(pause).next().is_none());
        (thread == other && !pause.is_empty() && pause.len() <= LOADING_PAUSE.ns() && is_idle()).then_some((thread, pause))
    };
    loads.windows(2).filter_map(pause).collect()
}

fn times(number: u64) -> String {
    if number == 1 { "once".to_owned() } else { format!("{} times", count(number)) }
}
