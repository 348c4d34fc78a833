//! A trace, or a part of one, as a Chrome trace: JSON events as PyTorch (Kineto) writes them, for viewers and for longpole itself.
//!
//! It is written from the model, not copied from a file, so it has what the model has, of any source format, redacted when the trace
//! was. Rows come table by table in their order, so that reading them again gives the same tables: `kineto` in `longpole-ingest` is the
//! other side of this module. What a scope takes along is decided in `selection`, what an event looks like in `events`, and what
//! stands around the events in `metadata`; `json` is the text itself. To write another kind of event, add a function in `events` and a
//! line in [`ChromeTrace::write`].
//!
//! Limits: one recording a file, as a Chrome trace knows no ranks. Not in the model, and so not written: sequence numbers and arrows
//! from forward to backward operators, annotations mirrored on the GPU timeline, occupancy, addresses, counters, and whatever a
//! producer adds to events or metadata for its own ends.

mod collectives;
mod events;
mod json;
mod metadata;
mod selection;
mod surroundings;

use std::io::{self, Write};

use longpole_analysis::{Scope, TraceIndex};

use collectives::Descriptions;
use events::Events;
use json::JsonLines;
use selection::Selection;

/// Where a written trace comes from, as its metadata say it.
#[derive(Clone, Copy, Debug)]
pub struct ChromeOrigin<'a> {
    /// The program, with its version.
    pub writer: &'a str,
    /// The trace it was made of.
    pub source: &'a str,
    /// What part of that, in words; empty for all of it.
    pub part: &'a str,
    /// What was lost of it, by code and how often, as far as nothing in the written trace shows it.
    pub lost: &'a [(&'a str, u64)],
}

/// Why a scope cannot be written.
#[derive(Debug)]
pub enum ChromeError {
    /// Nothing is in it.
    Nothing,
    /// It holds events of several recordings; these are their ranks.
    SeveralRanks(Vec<u32>),
}

/// What was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChromeSummary {
    /// Events, arrows and names included.
    pub events: u64,
    /// Bytes of text.
    pub bytes: u64,
    /// Shapes, types, strides and values of arguments that were left out because they are no JSON.
    pub unreadable_inputs: u64,
}

/// A scope that can be written as a Chrome trace.
pub struct ChromeTrace<'a, 't> {
    selection: Selection<'a, 't>,
}

impl<'a, 't> ChromeTrace<'a, 't> {
    /// Finds what belongs to a scope.
    pub fn new(index: &'a TraceIndex<'t>, scope: &'a Scope) -> Result<Self, ChromeError> {
        Ok(Self { selection: Selection::find(index, scope)? })
    }

    /// Writes it. `out` is written to in pieces of 64 KiB and flushed.
    pub fn write(&self, out: &mut dyn Write, origin: ChromeOrigin<'_>) -> io::Result<ChromeSummary> {
        let (selection, trace) = (&self.selection, self.selection.index.trace());
        let mut lines = JsonLines::new(out, metadata::zero(trace));
        metadata::head(&mut lines, selection, origin);
        metadata::names(&mut lines, selection)?;
        let mut events = Events::new(lines, selection, Descriptions::find(selection));
        for &(row, times) in &selection.surroundings.rows {
            events.surrounding(row, times)?;
        }
        for row in (0..trace.ranges.len()).filter(|&row| selection.range(row)) {
            events.range(row, (trace.ranges.start[row], trace.ranges.dur[row]))?;
        }
        for row in (0..trace.host_ops.len()).filter(|&row| selection.op(row)) {
            events.op(row, (trace.host_ops.start[row], trace.host_ops.dur[row]))?;
        }
        for row in (0..trace.api_calls.len()).filter(|&row| selection.call(row)) {
            events.call(row, (trace.api_calls.start[row], trace.api_calls.dur[row]))?;
        }
        for row in (0..trace.memory.len()).filter(|&row| selection.memory(row)) {
            events.memory(row)?;
        }
        for (row, times) in selection.frames() {
            events.frame(row, times)?;
        }
        for row in (0..trace.activities.len()).filter(|&row| selection.activity(row)) {
            events.activity(row)?;
        }
        for row in (0..trace.sync_events.len()).filter(|&row| selection.sync_event(row)) {
            events.sync_event(row)?;
        }
        for row in (0..trace.overheads.len()).filter(|&row| selection.overlaps(trace.overheads.start[row], trace.overheads.end(row))) {
            events.overhead(row)?;
        }
        let (mut lines, unreadable_inputs) = events.finish();
        lines.text("\n]}\n");
        let events = lines.events();
        Ok(ChromeSummary { events, bytes: lines.finish()?, unreadable_inputs })
    }
}
