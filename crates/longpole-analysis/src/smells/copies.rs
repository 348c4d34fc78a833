//! Copies that the device does nothing beside, and copies from pageable memory.

use super::thresholds::{COPY_LISTED, COPY_SHARE};
use super::{Facts, Found, SmellKind, Stage};
use crate::families::Family;
use crate::phrases::{counted, fine_percent, fraction, time};

pub(super) const COPIES: SmellKind = SmellKind {
    code: "copies",
    stage: Stage::Cause,
    lead_in: "copies first: ",
    meaning: "Copies between host and device (or fills) run while no kernel does: they are on the critical path. From pageable memory they go through a \
              staging buffer, slowly, and hold the calling thread.",
    detection: "Copies and fills with no kernel running take at least {COPY_LISTED} of the device span, or pageable copies do. They lead from {COPY_SHARE} of \
                the device span alone on the device.",
    ceiling: "time of copies and fills with no kernel running, on the device with most",
    fix: "Keep data on the device; pin host buffers and copy with non_blocking=True on a stream of its own; batch small copies; read results \
          back once every few steps.",
    find: copies,
};

fn copies(facts: &Facts<'_, '_>) -> Option<Found> {
    let totals = facts.tables.totals;
    let (exposed, copied) = (totals.exposed_copy_ns?, totals.copy_busy_ns?);
    let pageable = facts.evidence.pageable_ns;
    if !COPY_LISTED.is_met(exposed, facts.span) && !COPY_LISTED.is_met(pageable, facts.span) {
        return None;
    }
    let row = facts.tables.kernels.iter().find(|row| matches!(row.family, Family::Memcpy | Family::Memset))?;
    let owner = row.owners.first().map(|owner| owner.name.as_str());
    let by = owner.map_or_else(String::new, |owner| format!(" by {}", facts.clip(owner)));
    let fix = if pageable.get() >= exposed.get() / 2 { "pin host buffers or keep data on the GPU" } else { "drop, batch or overlap them" };
    let share = fraction(exposed, facts.span);
    let summary = format!("alone on the GPU {} of its span ({}), mostly {}{by}", fine_percent(share), time(exposed), facts.clip(&row.name));
    Some(
        Found::new(row.name.as_str(), summary, format!("{fix}, then measure exposed copy time"))
            .covering(facts.device_share(copied))
            .at_most(facts.worst_device_ceiling(|device| device.exposed_copy_ns))
            .fact("copy_busy_ns", copied)
            .fact("exposed_ns", exposed)
            .fact("exposed_of_span_fraction", share)
            .fact("pageable_ns", pageable)
            .fact("copies", totals.memcpys)
            .fact("fills", totals.memsets)
            .fact("largest", format!("{}, {}", row.name, counted(row.calls, "call")).as_str())
            .fact("largest_ns", row.cuda_ns)
            .fact("owner", owner)
            .leading(COPY_SHARE.is_met(exposed, facts.span)),
    )
}
