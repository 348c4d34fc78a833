//! The next experiment: simple stated rules, tried from the top; the first that holds decides.
//!
//! | code | holds when |
//! |---|---|
//! | `empty` | there is no event in the scope |
//! | `record_cuda` | there is no device activity |
//! | `graph_capture` | at least 20 launch calls, 90 % of them without device work, and a graph was captured |
//! | `kernels_missing` | at least 20 launch calls, half of them without device work |
//! | `cold_start` | one host call, waiting and children excluded, takes 25 % of the wall (and 0.5 ms) while the device idles, and is 10 times the median of its name (or the only one) |
//! | `too_little` | fewer than 10 device activities |
//! | `copies` | copies and fills with no kernel running take 30 % of the device span |
//! | `communication` | collectives with no other kernel running take 20 % of the device span |
//! | `allocation` | at least 10 runtime calls that get or return memory, taking 20 % of the wall while the device idles |
//! | `data_loading` | the device idles for 20 % of its span while a data loader is waited for |
//! | `record_cpu` | there are no operators |
//! | `host_bound` | for 40 % of the device span the device idles and its next work has not been launched yet |
//! | `many_tiny_kernels` | at least 1,000 kernels, and those under 5 us take 30 % of kernel time |
//! | `one_operator` | one operator owns 40 % of device time |
//! | `one_kernel` | one kernel takes 25 % of device time |
//! | `top_family` | otherwise: the largest family |
//! | `record` | nothing above: the device work has no length |
//!
//! The device span is first start to last end of device work, summed over devices, so that start-up and the last
//! synchronisation are in no share of it. Being late with launches is judged against the launch of the work that ends each gap: a graph
//! replay whose kernels were all launched at once is not host-bound, however short they are. Host times are those of a run
//! under the profiler, which the texts about them say.

use longpole_trace::Ns;

use super::evidence::{Evidence, LongCall};
use super::text::{clip, clip_kernel, count, counted, fraction, percent, percent_of, time};
use super::{NextExperiment, Tables};
use crate::families::Family;
use crate::kernels::KernelRow;
use crate::ops::{OpRow, OpRowKind};
use crate::ranges::RangeRow;

const FEW_ACTIVITIES: u64 = 10;
const LAUNCHES_TO_JUDGE: u64 = 20;
const CAPTURE_SHARE: f64 = 0.9;
const MISSING_SHARE: f64 = 0.5;
const COLD_SHARE: f64 = 0.25;
const COPY_SHARE: f64 = 0.3;
const COMMUNICATION_SHARE: f64 = 0.2;
const MEMORY_CALLS: u64 = 10;
const MEMORY_SHARE: f64 = 0.2;
const LOADER_SHARE: f64 = 0.2;
const STARVED_SHARE: f64 = 0.4;
const MANY_KERNELS: u64 = 1_000;
const SMALL_SHARE: f64 = 0.3;
const OPERATOR_SHARE: f64 = 0.4;
const KERNEL_SHARE: f64 = 0.25;

type Rule = (&'static str, fn(&Facts<'_, '_>) -> Option<String>);

/// The rules, in the order of the table above.
const RULES: &[Rule] = &[
    ("empty", empty),
    ("record_cuda", record_cuda),
    ("graph_capture", graph_capture),
    ("kernels_missing", kernels_missing),
    ("cold_start", cold_start),
    ("too_little", too_little),
    ("copies", copies),
    ("communication", communication),
    ("allocation", allocation),
    ("data_loading", data_loading),
    ("record_cpu", record_cpu),
    ("host_bound", host_bound),
    ("many_tiny_kernels", many_tiny_kernels),
    ("one_operator", one_operator),
    ("one_kernel", one_kernel),
    ("top_family", top_family),
];

/// What the rules judge.
struct Facts<'a, 't> {
    tables: &'a Tables<'a, 't>,
    evidence: &'a Evidence,
    wall: Ns,
    busy: Ns,
    span: Ns,
    /// Summed duration of device activity: what shares of operators, kernels and families are of.
    device_time: Ns,
}

pub(super) fn next_experiment(tables: &Tables<'_, '_>, evidence: &Evidence) -> NextExperiment {
    let totals = tables.totals;
    let facts = Facts {
        tables,
        evidence,
        wall: totals.wall_ns,
        busy: totals.gpu_busy_ns.unwrap_or_default(),
        span: totals.gpu_span_ns().unwrap_or_default(),
        device_time: tables.ops.self_cuda_total_ns.unwrap_or_default(),
    };
    let chosen = RULES.iter().find_map(|&(code, rule)| rule(&facts).map(|text| NextExperiment { code, text }));
    chosen
        .unwrap_or_else(|| NextExperiment { code: "record", text: "record again: the trace has device work of no length only".to_owned() })
}

fn empty(facts: &Facts<'_, '_>) -> Option<String> {
    let totals = facts.tables.totals;
    let nothing = totals.host_ops == 0 && totals.devices.is_empty() && facts.tables.ops.rows.is_empty() && facts.tables.ranges.is_empty();
    nothing.then(|| "record again: there are no events here".to_owned())
}

fn record_cuda(facts: &Facts<'_, '_>) -> Option<String> {
    if !facts.tables.totals.devices.is_empty() {
        return None;
    }
    if facts.evidence.launch_calls > 0 {
        return Some(format!(
            "record the device: {} but no device activity; profile with ProfilerActivity.CUDA and no counter or range profiling, then read the \
             GPU busy share",
            counted(facts.evidence.launch_calls, "launch call")
        ));
    }
    let top = top_host_row(facts).map_or_else(String::new, |(row, time)| {
        let share = percent(time, facts.wall).unwrap_or_default();
        format!("; if the CPU does the work, {} is {share} of the wall", clip(&row.name))
    });
    Some(format!("record the device, if one was used: no device activity and no launch is here, so add ProfilerActivity.CUDA{top}"))
}

fn graph_capture(facts: &Facts<'_, '_>) -> Option<String> {
    let evidence = facts.evidence;
    let all = evidence.launch_calls >= LAUNCHES_TO_JUDGE && evidence.unanswered as f64 >= evidence.launch_calls as f64 * CAPTURE_SHARE;
    (all && evidence.captured).then(|| {
        format!(
            "record a replay: here a graph is being captured ({} of {} launches ran nothing yet); profile steps that replay it and measure \
             busy over span",
            count(evidence.unanswered),
            count(evidence.launch_calls)
        )
    })
}

fn kernels_missing(facts: &Facts<'_, '_>) -> Option<String> {
    let evidence = facts.evidence;
    let many = evidence.launch_calls >= LAUNCHES_TO_JUDGE && evidence.unanswered as f64 >= evidence.launch_calls as f64 * MISSING_SHARE;
    many.then(|| {
        format!(
            "record again: {} of {} launches have no device work, so every device time is a lower bound; synchronise before the profiler stops",
            count(evidence.unanswered),
            count(evidence.launch_calls)
        )
    })
}

fn cold_start(facts: &Facts<'_, '_>) -> Option<String> {
    let call = facts.evidence.long_calls.iter().find(|call| fraction(call.self_ns, facts.wall) >= COLD_SHARE)?;
    let LongCall { name, inside, self_ns, calls } = call;
    let place = inside.as_ref().map_or_else(String::new, |op| format!(" in {}", clip(op)));
    let others = if *calls > 1 { format!(" (one of {})", count(*calls)) } else { String::new() };
    let ranks = if facts.tables.totals.comm_busy_ns.is_some_and(|time| time > Ns::ZERO) { ", then compare ranks" } else { "" };
    Some(format!(
        "warm up first: one call of {}{place}{others} takes {} of {} wall with the GPU idle: start-up, not steady state; record later \
         steps{ranks}",
        clip(name),
        time(*self_ns),
        time(facts.wall)
    ))
}

fn too_little(facts: &Facts<'_, '_>) -> Option<String> {
    let activities: u64 = facts.tables.totals.devices.iter().map(|device| device.activities).sum();
    (activities < FEW_ACTIVITIES).then(|| {
        format!(
            "record more: {} ({}) in {} is too little to judge; profile several whole steps and read busy over span",
            format_args!("{} of device work", counted(activities, "piece")),
            time(facts.busy),
            time(facts.wall)
        )
    })
}

fn copies(facts: &Facts<'_, '_>) -> Option<String> {
    let exposed = facts.tables.totals.exposed_copy_ns?;
    if fraction(exposed, facts.span) < COPY_SHARE {
        return None;
    }
    let row = facts.tables.kernels.iter().find(|row| matches!(row.family, Family::Memcpy | Family::Memset))?;
    let by = row.owners.first().map_or_else(String::new, |owner| format!(" by {}", clip(&owner.name)));
    let fix = if facts.evidence.pageable_ns.get() >= exposed.get() / 2 {
        "pin host buffers or keep data on the GPU"
    } else {
        "drop, batch or overlap them"
    };
    Some(format!(
        "copies first: they are alone on the GPU {} of its span ({}), mostly {}{by}; {fix}, then measure exposed copy time",
        percent(exposed, facts.span)?,
        time(exposed),
        clip(&row.name)
    ))
}

fn communication(facts: &Facts<'_, '_>) -> Option<String> {
    let exposed = facts.tables.totals.exposed_comm_ns?;
    if fraction(exposed, facts.span) < COMMUNICATION_SHARE {
        return None;
    }
    let share = percent(exposed, facts.span)?;
    let ranks = &facts.evidence.comm_by_rank;
    if let (Some((most, most_time)), Some((least, least_time))) = (ranks.first(), ranks.last()) {
        return Some(format!(
            "collectives with nothing beside them take {share} of the GPU span, waiting included: rank {least} spends {} in them, rank {most} \
             {}; find what makes rank {least} late, then compare again",
            time(*least_time),
            time(*most_time)
        ));
    }
    Some(format!(
        "collectives with nothing beside them take {share} of the GPU span ({}), waiting included: load all ranks, compare their collective \
         times, and look at the rank with the least",
        time(exposed)
    ))
}

fn allocation(facts: &Facts<'_, '_>) -> Option<String> {
    let calls = &facts.evidence.memory_calls;
    let holds = calls.calls >= MEMORY_CALLS && fraction(calls.idle_ns, facts.wall) >= MEMORY_SHARE;
    holds.then(|| {
        format!(
            "stop allocating in the loop: {} memory calls, mostly {}, hold the host {} of the wall with the GPU idle; use the caching allocator \
             or reuse buffers, then measure GPU idle",
            count(calls.calls),
            clip(&calls.name),
            percent_of(fraction(calls.idle_ns, facts.wall))
        )
    })
}

fn data_loading(facts: &Facts<'_, '_>) -> Option<String> {
    let waited = facts.evidence.loader_ns;
    (fraction(waited, facts.span) >= LOADER_SHARE).then(|| {
        format!(
            "feed the GPU: it idles {} of its span ({}) while enumerate(DataLoader) runs; add workers, pinned memory and prefetch, then measure \
             idle per step",
            percent_of(fraction(waited, facts.span)),
            time(waited)
        )
    })
}

fn record_cpu(facts: &Facts<'_, '_>) -> Option<String> {
    if facts.tables.totals.host_ops > 0 {
        return None;
    }
    let top = facts.tables.kernels.first()?;
    Some(format!(
        "record operators too (ProfilerActivity.CPU), to see who launches what; the GPU is busy {} of its span, {} ({}) is {} of its time",
        percent(facts.busy, facts.span)?,
        clip_kernel(&top.short_name),
        top.family.name(),
        percent(top.cuda_ns, facts.device_time)?
    ))
}

fn host_bound(facts: &Facts<'_, '_>) -> Option<String> {
    let starved = facts.evidence.starved_ns;
    if fraction(starved, facts.span) < STARVED_SHARE {
        return None;
    }
    let share = percent(starved, facts.span)?;
    let fix = if facts.evidence.replays.device_ns.get() > facts.busy.get() / 2 {
        "launch the next graph before the last one ends"
    } else if is_compiled(facts) {
        "it is compiled already, so add CUDA graphs"
    } else {
        "try CUDA graphs or torch.compile"
    };
    // Recording slows the host down, more so with stacks: host times are not those of a plain run.
    let profiler = if facts.tables.index.trace().recorded.stacks { "profiler and stacks included" } else { "profiler included" };
    let subject = host_bound_range(facts).and_then(|row| {
        let calls = i64::try_from(row.calls).ok().filter(|&calls| calls > 0)?;
        Some(format!(
            "one {} costs {} of host ({profiler}) for {} of GPU in {}",
            clip(&row.name),
            time(Ns(row.cpu_ns.get() / calls)),
            time(Ns(row.gpu_busy_ns?.get() / calls)),
            counted(row.kernels / row.calls, "kernel")
        ))
    });
    let subject = subject.unwrap_or_else(|| {
        let launches = counted(facts.tables.totals.launches, "launch");
        format!("{launches} in {} ({profiler}) for {} of GPU", time(facts.span), time(facts.busy))
    });
    Some(format!("host-bound: the GPU waits for work {share} of its span; {subject}; {fix}, then measure busy/span"))
}

/// The range in which most host time passes beyond the device time it causes: of those that repeat, if they matter.
fn host_bound_range<'a>(facts: &Facts<'a, '_>) -> Option<&'a RangeRow> {
    let matters = |row: &&RangeRow| row.kernels > 0 && is_users(&row.name) && fraction(row.cpu_ns, facts.wall) >= 0.3;
    let excess = |row: &&RangeRow| row.cpu_ns - row.gpu_busy_ns.unwrap_or_default();
    let rows = || facts.tables.ranges.iter().filter(matters);
    rows().filter(|row| row.calls > 1).max_by_key(excess).or_else(|| rows().max_by_key(excess))
}

/// Ranges that libraries open on their own are not what the user calls a step.
pub(super) fn is_users(range: &str) -> bool {
    !["nccl:", "## Call CompiledFxGraph", "Torch-Compiled Region"].iter().any(|prefix| range.starts_with(prefix))
}

fn is_compiled(facts: &Facts<'_, '_>) -> bool {
    facts.tables.ops.rows.iter().any(|row| row.name.starts_with("Torch-Compiled Region"))
}

fn many_tiny_kernels(facts: &Facts<'_, '_>) -> Option<String> {
    let (totals, evidence) = (facts.tables.totals, facts.evidence);
    let kernel_time: Ns = facts.tables.kernels.iter().filter(|row| is_kernel(row)).map(|row| row.cuda_ns).sum();
    if totals.kernels < MANY_KERNELS || fraction(evidence.small_kernels_ns, kernel_time) < SMALL_SHARE {
        return None;
    }
    let replays = &evidence.replays;
    let launched = if replays.device_ns.get() > kernel_time.get() / 2 {
        format!(" from {}", counted(replays.launches, "graph replay"))
    } else {
        String::new()
    };
    let family = small_family(facts).map_or_else(String::new, |family| format!(" {}", family.name()));
    Some(format!(
        "fuse kernels: {}{launched}, median {}; those under 5 us take {} of kernel time, the GPU is busy {} of its span; fuse{family} \
         neighbours, then count kernels per step",
        count(totals.kernels),
        time(evidence.median_kernel_ns),
        percent(evidence.small_kernels_ns, kernel_time)?,
        percent(facts.busy, facts.span)?
    ))
}

fn is_kernel(row: &KernelRow) -> bool {
    !matches!(row.family, Family::Memcpy | Family::Memset)
}

/// The family with most time in kernels that are small on the median. Matrix products and attention are not fused away.
fn small_family(facts: &Facts<'_, '_>) -> Option<Family> {
    let mut sums = vec![Ns::ZERO; Family::ALL.len()];
    for row in facts.tables.kernels.iter().filter(|row| is_kernel(row)) {
        let fusable = !matches!(row.family, Family::Gemm | Family::Attention | Family::Communication | Family::Other);
        if fusable && row.median_ns < super::evidence::SMALL_KERNEL {
            sums[row.family as usize] += row.cuda_ns;
        }
    }
    Family::ALL.iter().copied().max_by_key(|&family| sums[family as usize]).filter(|&family| sums[family as usize] > Ns::ZERO)
}

fn one_operator(facts: &Facts<'_, '_>) -> Option<String> {
    let operators = facts.tables.ops.rows.iter().filter(|row| row.kind == OpRowKind::Operator);
    let row = operators.max_by_key(|row| row.self_cuda_ns)?;
    let own = row.self_cuda_ns?;
    if fraction(own, facts.device_time) < OPERATOR_SHARE {
        return None;
    }
    let kernel = facts.tables.kernels.iter().filter_map(|kernel| {
        let owner = kernel.owners.iter().find(|owner| owner.name == row.name)?;
        Some((kernel, owner.cuda_ns))
    });
    let (kernel, kernel_time) = kernel.max_by_key(|&(_, time)| time)?;
    Some(format!(
        "one operator: {} owns {} of GPU time ({}); profile {} ({}) with ncu against its memory or FLOP floor, then measure its \
         self CUDA time",
        clip(&row.name),
        percent(own, facts.device_time)?,
        counted(row.calls, "call"),
        clip_kernel(&kernel.short_name),
        time(kernel_time)
    ))
}

fn one_kernel(facts: &Facts<'_, '_>) -> Option<String> {
    let row = facts.tables.kernels.iter().find(|row| is_kernel(row))?;
    if fraction(row.cuda_ns, facts.device_time) < KERNEL_SHARE {
        return None;
    }
    Some(format!(
        "one kernel: {} ({}) takes {} of GPU time, {} at a median of {}; profile one with ncu against its memory or FLOP floor, then \
         measure the median",
        clip_kernel(&row.short_name),
        row.family.name(),
        percent(row.cuda_ns, facts.device_time)?,
        counted(row.calls, "call"),
        time(row.median_ns)
    ))
}

fn top_family(facts: &Facts<'_, '_>) -> Option<String> {
    let family = facts.tables.families.first()?;
    let kernel = facts.tables.kernels.iter().find(|row| row.family == family.family)?;
    Some(format!(
        "no single cause: the GPU is busy {} of its span; {} takes {} of its time, {} ({}) the most; profile that one with ncu, then \
         measure the family again",
        percent(facts.busy, facts.span)?,
        family.family.name(),
        percent(family.self_cuda_ns, facts.device_time)?,
        clip_kernel(&kernel.short_name),
        time(kernel.cuda_ns)
    ))
}

/// The operator or call with most self host time.
fn top_host_row<'a>(facts: &Facts<'a, '_>) -> Option<(&'a OpRow, Ns)> {
    let rows = facts.tables.ops.rows.iter().filter_map(|row| Some((row, row.self_cpu_ns?)));
    rows.max_by_key(|&(_, time)| time)
}
