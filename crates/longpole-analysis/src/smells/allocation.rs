//! Getting and returning memory from the driver in the hot path.

use super::evidence::manages_memory;
use super::thresholds::{MEMORY_CALLS, MEMORY_SHARE};
use super::{Facts, Found, SmellKind, Stage};
use crate::phrases::{count, fine_percent, fraction, time};

pub(super) const ALLOCATION: SmellKind = SmellKind {
    code: "allocation",
    stage: Stage::Cause,
    lead_in: "stop allocating in the loop: ",
    meaning: "Memory is fetched from and returned to the driver again and again (cudaMalloc, cudaFree, cudaHostAlloc, hipFree ...). Each such call is slow, and \
              freeing waits for the device.",
    detection: "At least {MEMORY_CALLS} runtime or driver calls that get or return memory. They lead when their union, less the time in which the device was \
                busy, takes {MEMORY_SHARE} of the wall.",
    ceiling: "union of the calls, less the time in which a device of the rank was busy",
    fix: "Take torch.cuda.empty_cache() out of the loop; allocate buffers once and reuse them; PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True \
          against fragmentation; a memory pool (cudaMallocAsync) outside torch.",
    find: allocation,
};

fn allocation(facts: &Facts<'_, '_>) -> Option<Found> {
    let known = &facts.evidence.memory_calls;
    if known.calls < MEMORY_CALLS.count() {
        return None;
    }
    let calls = facts.api_calls(manages_memory);
    let per_step = facts.per_step(&calls);
    let each = match (&facts.steps, per_step) {
        (Some(steps), Some(number)) if number > 0.0 => format!(" ({number:.1} a {})", facts.clip(&steps.name)),
        _ => String::new(),
    };
    let share = fine_percent(fraction(calls.idle, facts.wall));
    let summary = format!(
        "{} memory calls{each}, mostly {}, hold the host {share} of the wall ({}){}",
        count(known.calls),
        facts.clip(&known.name),
        time(calls.idle),
        facts.with_idle()
    );
    let steps = facts.steps.as_ref().map(|steps| steps.instances.len() as i64);
    let ns_per_step = steps.filter(|&steps| steps > 0).map(|steps| longpole_trace::Ns(calls.idle.get() / steps));
    Some(
        Found::new(known.name.as_str(), summary, "use the caching allocator or reuse buffers, then measure GPU idle")
            .covering(facts.host_share(calls.idle))
            .at_most(facts.steady_host_ceiling(calls.idle))
            .fact("calls", known.calls)
            .fact("calls_per_step", per_step)
            .fact("total_ns", calls.total)
            .fact("gpu_idle_during_ns", facts.idle_part(&calls))
            .fact("hot_per_step_ns", ns_per_step)
            .leading(MEMORY_SHARE.is_met(known.idle_ns, facts.wall)),
    )
}
