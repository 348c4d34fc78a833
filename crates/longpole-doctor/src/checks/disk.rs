//! Is there room for reports, where they are written and where tools keep temporary files?

use super::{Finding, Fix, Status, good, size};
use crate::facts::{Facts, Place};

/// Room below which a report may not fit. A minute of a busy server as a trace, or some kernels with all of ncu's sections, take hundreds of MiB,
/// and nsys needs the size of its report a second time while it writes.
const LEAST_BYTES: u64 = 1 << 30;

/// Room below which longer recordings may not fit.
const TIGHT_BYTES: u64 = 10 << 30;

fn described(facts: &Facts, place: &Place) -> String {
    let path = facts.shown(&place.path);
    let room = place.free_bytes.map_or_else(|| "room not known".to_owned(), |bytes| format!("{} free", size(bytes)));
    let rights = if place.is_writable == Some(false) { ", not writable" } else { "" };
    format!("{} {path}: {room}{rights}", place.what)
}

pub(super) fn check(facts: &Facts) -> Finding {
    let places = &facts.session.places;
    let mut found: Vec<String> = places.iter().map(|place| described(facts, place)).collect();
    found.dedup();
    let found = found.join("; ");
    if let Some(lock) = &facts.session.foreign_lock {
        let text = format!(
            "ncu takes a lock in {}, which belongs to another user: give it a folder for temporary files of your own.",
            facts.shown(lock)
        );
        let fix = Fix::commands(text, ["mkdir -p ~/tmp && export TMPDIR=~/tmp"]);
        return (Status::Bad, found, Some(fix));
    }
    let is_full = |place: &&Place| place.free_bytes.is_some_and(|bytes| bytes < LEAST_BYTES);
    let is_closed = |place: &&Place| place.is_writable == Some(false);
    if let Some(place) = places.iter().find(|place| is_full(place) || is_closed(place)) {
        let is_temporary = places.last() == Some(place);
        let fix = if is_temporary {
            Fix::commands("Use another folder for temporary files:", ["export TMPDIR=/path/with/room"])
        } else {
            Fix::text("Write reports elsewhere: ncu -o FILE, nsys profile -o FILE.")
        };
        // A folder that cannot be written to is left, one that is full fails in the middle.
        return (if is_full(&place) || is_temporary { Status::Bad } else { Status::Note }, found, Some(fix));
    }
    if places.iter().any(|place| place.free_bytes.is_some_and(|bytes| bytes < TIGHT_BYTES)) {
        let fix = "Keep recordings short: a window of some steps, a few kernels (ncu --launch-count).";
        return (Status::Note, found, Some(Fix::text(fix)));
    }
    if places.iter().all(|place| place.free_bytes.is_none()) {
        return (Status::Unknown, found, None);
    }
    good(found)
}
