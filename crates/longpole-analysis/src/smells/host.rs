//! The host holds the clock.

use longpole_trace::Ns;

use super::thresholds::{STARVED_LISTED, STARVED_SHARE};
use super::{Facts, Found, SmellKind, Stage};
use crate::phrases::{clip, counted, fraction, percent, time};
use crate::ranges::{RangeRow, is_users};

pub(super) const HOST_BOUND: SmellKind = SmellKind {
    code: "host_bound",
    stage: Stage::Host,
    lead_in: "host-bound: ",
    meaning: "The device idles because its next work has not been launched yet: Python, dispatch and launch calls take longer than the kernels they launch.",
    detection: "For at least {STARVED_LISTED} of the device span the device idles and the call that launches its next work has not begun. It leads from \
                {STARVED_SHARE}. A graph replay whose kernels were all launched at once is not host-bound, however short they are. Recording slows the \
                host (1.2 to 3 times in our own measurements of decoding): calibrate with --unprofiled-step-ms.",
    ceiling: "idle time inside the device span in which the next work was not launched yet",
    fix: "CUDA or HIP graphs (torch.compile(mode=\"reduce-overhead\") or torch.cuda.graph) for steps of fixed shape; torch.compile to fuse; larger batches; \
          fewer, larger operators; less Python per step.",
    find: host_bound,
};

fn host_bound(facts: &Facts<'_, '_>) -> Option<Found> {
    let starved = facts.evidence.starved_ns;
    // Without operators nobody can say what the host does.
    if !STARVED_LISTED.is_met(starved, facts.span) || facts.tables.totals.host_ops == 0 {
        return None;
    }
    let share = percent(starved, facts.span)?;
    let fix = if facts.evidence.replays.device_ns.get() > facts.busy.get() / 2 {
        "launch the next graph before the last one ends".to_owned()
    } else if facts.tables.ops.rows.iter().any(|row| row.name.starts_with("Torch-Compiled Region")) {
        format!("it is compiled already, so add {}", facts.graphs())
    } else {
        format!("try {} or torch.compile", facts.graphs())
    };
    // Recording slows the host down, more so with stacks: host times are not those of a plain run.
    let profiler = if facts.trace().recorded.stacks { "profiler and stacks included" } else { "profiler included" };
    let range = host_bound_range(facts);
    let subject = range.and_then(|row| {
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
    Some(
        Found::new(
            range.map_or("the host", |row| row.name.as_str()),
            format!("the GPU waits for work {share} of its span; {subject}"),
            format!("{fix}, then measure busy/span"),
        )
        .covering(facts.device_share(starved))
        .at_most(facts.device_ceiling(starved))
        .fact("starved_ns", starved)
        .fact("starved_of_span_fraction", fraction(starved, facts.span))
        .fact("gpu_busy_ns", facts.busy)
        .fact("gpu_idle_ns", facts.idle())
        .fact("launches", facts.tables.totals.launches)
        .fact("range", range.map(|row| row.name.as_str()))
        .fact("range_calls", range.map(|row| row.calls))
        .fact("range_host_ns", range.map(|row| row.cpu_ns))
        .fact("range_gpu_busy_ns", range.and_then(|row| row.gpu_busy_ns))
        .leading(STARVED_SHARE.is_met(starved, facts.span)),
    )
}

/// The range in which most host time passes beyond the device time it causes: of those that repeat, if they matter.
fn host_bound_range<'a>(facts: &Facts<'a, '_>) -> Option<&'a RangeRow> {
    let matters = |row: &&RangeRow| row.kernels > 0 && is_users(&row.name) && fraction(row.cpu_ns, facts.wall) >= 0.3;
    let excess = |row: &&RangeRow| row.cpu_ns - row.gpu_busy_ns.unwrap_or_default();
    let rows = || facts.tables.ranges.iter().filter(matters);
    rows().filter(|row| row.calls > 1).max_by_key(excess).or_else(|| rows().max_by_key(excess))
}
